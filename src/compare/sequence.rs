//! The common subsequence of two sequences that is worth most.
//!
//! In: two sequences, and what a pair of their elements is worth. Out: all elements of both in their orders, those of
//! the subsequence in pairs. Cost: a step and a byte for each pair of elements, so callers bound the sequences.

/// Elements of two sequences: of one of them, or a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paired {
    Both(usize, usize),
    First(usize),
    Second(usize),
}

/// Pair equal elements of two sequences, so that the pairs together are worth most; `worth` is `None` for elements that
/// are not equal.
pub(super) fn paired<T>(a: &[T], b: &[T], worth: impl Fn(&T, &T) -> Option<i64>) -> Vec<Paired> {
    #[derive(Clone, Copy)]
    enum Go {
        Both,
        First,
        Second,
    }
    // From the ends: what the remainders of both are worth, a row at a time; the steps are kept.
    let width = b.len() + 1;
    let mut ways = vec![Go::Second; (a.len() + 1) * width];
    let mut below = vec![0_i64; width];
    for (i, element) in a.iter().enumerate().rev() {
        let mut row = vec![0_i64; width];
        for (j, other) in b.iter().enumerate().rev() {
            let (mut best, mut way) =
                if below[j] >= row[j + 1] { (below[j], Go::First) } else { (row[j + 1], Go::Second) };
            if let Some(worth) = worth(element, other) {
                let both = below[j + 1] + worth;
                if both >= best {
                    (best, way) = (both, Go::Both);
                }
            }
            row[j] = best;
            ways[i * width + j] = way;
        }
        below = row;
    }
    let mut pairs = Vec::with_capacity(a.len().max(b.len()));
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let way = match (i < a.len(), j < b.len()) {
            (true, true) => ways[i * width + j],
            (true, false) => Go::First,
            _ => Go::Second,
        };
        match way {
            Go::Both => {
                pairs.push(Paired::Both(i, j));
                (i, j) = (i + 1, j + 1);
            }
            Go::First => {
                pairs.push(Paired::First(i));
                i += 1;
            }
            Go::Second => {
                pairs.push(Paired::Second(j));
                j += 1;
            }
        }
    }
    pairs
}
