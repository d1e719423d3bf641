//! Comparison operators, as users write them in filters and in conditions on fields.
//!
//! In: text that begins with a sign. Out: what it means, the sign to print, and whether an order satisfies it.

use std::cmp::Ordering;

/// Comparison operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
    /// `=`, also `==`
    Equal,
    /// `!=`
    NotEqual,
}

impl Op {
    /// Longer signs first, so that `<=` is not read as `<`.
    const SIGNS: [(&str, Op); 7] = [
        ("<=", Op::AtMost),
        (">=", Op::AtLeast),
        ("!=", Op::NotEqual),
        ("==", Op::Equal),
        ("<", Op::Less),
        (">", Op::More),
        ("=", Op::Equal),
    ];

    /// The operator with which a text begins, and what follows it.
    pub fn strip(text: &str) -> Option<(Op, &str)> {
        Op::SIGNS.into_iter().find_map(|(sign, op)| Some((op, text.strip_prefix(sign)?)))
    }

    /// As it is printed.
    pub fn sign(self) -> &'static str {
        match self {
            Op::Less => "<",
            Op::AtMost => "<=",
            Op::More => ">",
            Op::AtLeast => ">=",
            Op::Equal => "=",
            Op::NotEqual => "!=",
        }
    }

    /// True where an ordering of left and right side satisfies it.
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            Op::Less => order.is_lt(),
            Op::AtMost => order.is_le(),
            Op::More => order.is_gt(),
            Op::AtLeast => order.is_ge(),
            Op::Equal => order.is_eq(),
            Op::NotEqual => order.is_ne(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_again() {
        for (sign, op) in Op::SIGNS {
            assert_eq!(Op::strip(&format!("{sign}5")), Some((op, "5")), "{sign}");
            assert_eq!(Op::strip(op.sign()), Some((op, "")));
            let held = [1, 2, 3].map(|n: i32| op.holds(n.cmp(&2)));
            let wanted = match op.sign() {
                "<" => [true, false, false],
                "<=" => [true, true, false],
                ">" => [false, false, true],
                ">=" => [false, true, true],
                "=" => [false, true, false],
                _ => [true, false, true],
            };
            assert_eq!(held, wanted, "{sign}");
        }
        assert_eq!(Op::strip("5<"), None);
    }
}
