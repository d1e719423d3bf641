//! The table of interrupt handlers and kernel workers (`handlers.toml`), read once.

use crate::state::recording::EdgeKind;
use serde::Deserialize;

/// What a handler's name says about the wait that it ends; a user may replace the built-in table.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handlers {
    user_input: Vec<String>,
    disk: Vec<String>,
    network: Vec<String>,
    timer: Vec<String>,
    disk_workers: Vec<String>,
}

/// The table is not what it should be; says the line.
#[derive(Debug, thiserror::Error)]
#[error("not a table of interrupt handlers: {0}")]
pub struct HandlersError(String);

impl Handlers {
    /// The built-in table.
    pub const BUILT_IN: &'static str = include_str!("handlers.toml");

    /// The built-in table, read; a test holds it to its form.
    pub fn built_in() -> Handlers {
        Handlers::parse(Handlers::BUILT_IN).unwrap_or_default()
    }

    /// Read a table.
    pub fn parse(text: &str) -> Result<Handlers, HandlersError> {
        toml::from_str(text).map_err(|e| HandlersError(e.to_string()))
    }

    /// The label of a wait that ends in the handler called `name`.
    pub fn label(&self, name: &str) -> EdgeKind {
        let lists = [
            (&self.user_input, EdgeKind::UserInput),
            (&self.disk, EdgeKind::Disk),
            (&self.network, EdgeKind::Network),
            (&self.timer, EdgeKind::Timer),
        ];
        let known = lists.iter().find(|(patterns, _)| patterns.iter().any(|p| matches(p, name)));
        known.map_or(EdgeKind::Device, |(_, kind)| *kind)
    }

    /// True for a kernel thread that works for a disk.
    pub fn is_disk_worker(&self, name: &str) -> bool {
        self.disk_workers.iter().any(|p| matches(p, name))
    }
}

/// `name` against a pattern of literal characters, `*` and `[abc]`. Only the last `*` is ever retried, so the cost is
/// at most the product of the lengths.
fn matches(pattern: &str, name: &str) -> bool {
    /// Length of the pattern's first element if it accepts `c`.
    fn accepts(pattern: &[u8], c: u8) -> Option<usize> {
        match pattern {
            [b'[', rest @ ..] => {
                let end = rest.iter().position(|p| *p == b']')?;
                rest[..end].iter().any(|p| p.eq_ignore_ascii_case(&c)).then_some(end + 2)
            }
            [p, ..] => p.eq_ignore_ascii_case(&c).then_some(1),
            [] => None,
        }
    }
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, n));
            p += 1;
        } else if let Some(width) = accepts(&pattern[p..], name[n]) {
            p += width;
            n += 1;
        } else if let Some((at, from)) = star {
            star = Some((at, from + 1));
            (p, n) = (at + 1, from + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        assert!(matches("virtio*-req*", "virtio2-req.1"));
        assert!(matches("*blk*", "xen-BLKif"));
        assert!(matches("a*b*c", "aXbbYc") && !matches("a*b*c", "aXbbY"));
        assert!(matches("en[os]*", "eno1") && !matches("en[os]*", "energy"));
        assert!(matches("*", "") && !matches("", "x"));
    }

    #[test]
    fn the_built_in_table_knows_common_names() {
        let table = Handlers::parse(Handlers::BUILT_IN).unwrap();
        assert!(!Handlers::built_in().disk.is_empty());
        for (name, kind) in [
            ("virtio2-req.0", EdgeKind::Disk),
            ("nvme0q3", EdgeKind::Disk),
            ("i8042", EdgeKind::UserInput),
            ("virtio1-input.0", EdgeKind::Network),
            ("enp3s0-TxRx-1", EdgeKind::Network),
            ("timer", EdgeKind::Timer),
            ("ttyS0", EdgeKind::Device),
        ] {
            assert_eq!(table.label(name), kind, "{name}");
        }
        assert!(table.is_disk_worker("jbd2/vda1-8") && table.is_disk_worker("kworker/1:1H"));
        assert!(!table.is_disk_worker("kworker/1:1") && !table.is_disk_worker("worker"));
    }
}
