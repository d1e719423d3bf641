//! The tables that classify interrupt handlers and kernel workers by their names: the user's own table takes precedence
//! over the built-in one (`handlers.toml`). Each is parsed once.

use crate::timeline::SegmentKind;
use serde::Deserialize;

/// Classifies interrupt handlers and kernel workers by their names.
#[derive(Clone, Debug, Default)]
pub struct Handlers {
    tables: Vec<HandlerTable>,
}

/// One file. Missing lists are empty.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct HandlerTable {
    user_input: Vec<String>,
    disk: Vec<String>,
    network: Vec<String>,
    timer: Vec<String>,
    device: Vec<String>,
    disk_workers: Vec<String>,
}

/// A file is not a valid table; the message names the line.
#[derive(Debug, thiserror::Error)]
#[error("not a table of interrupt handlers: {0}")]
pub struct HandlersError(String);

impl Handlers {
    /// The built-in table.
    pub const BUILT_IN: &'static str = include_str!("handlers.toml");

    /// The built-in table; a test checks that it is valid.
    pub fn built_in() -> Handlers {
        Handlers::parse(Handlers::BUILT_IN).unwrap_or_default()
    }

    /// Parse one table.
    fn parse(text: &str) -> Result<Handlers, HandlersError> {
        let table = toml::from_str(text).map_err(|e| HandlersError(e.to_string().trim_end().replace('\n', " ")))?;
        Ok(Handlers { tables: vec![table] })
    }

    /// A user's table, which takes precedence over the built-in one.
    pub fn with_own(text: &str) -> Result<Handlers, HandlersError> {
        let mut handlers = Handlers::parse(text)?;
        handlers.tables.extend(Handlers::built_in().tables);
        Ok(handlers)
    }

    /// The kind of a wait that ends in the handler `name`.
    pub fn label(&self, name: &str) -> SegmentKind {
        self.tables.iter().find_map(|table| table.label(name)).unwrap_or(SegmentKind::Device)
    }

    /// True for a kernel thread that works for a disk.
    pub fn is_disk_worker(&self, name: &str) -> bool {
        self.tables.iter().any(|table| table.disk_workers.iter().any(|p| matches(p, name)))
    }
}

impl HandlerTable {
    fn label(&self, name: &str) -> Option<SegmentKind> {
        let lists = [
            (&self.user_input, SegmentKind::UserInput),
            (&self.disk, SegmentKind::Disk),
            (&self.network, SegmentKind::Network),
            (&self.timer, SegmentKind::Timer),
            (&self.device, SegmentKind::Device),
        ];
        let known = lists.iter().find(|(patterns, _)| patterns.iter().any(|p| matches(p, name)));
        known.map(|(_, kind)| *kind)
    }
}

/// True if `name` matches a pattern of literal characters, `*` and `[abc]`. Only the last `*` is ever retried, so the
/// cost is at most the product of the lengths.
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
    fn matches_stars_and_sets_of_letters() {
        assert!(matches("virtio*-req*", "virtio2-req.1"));
        assert!(matches("*blk*", "xen-BLKif"));
        assert!(matches("a*b*c", "aXbbYc") && !matches("a*b*c", "aXbbY"));
        assert!(matches("en[os]*", "eno1") && !matches("en[os]*", "energy"));
        assert!(matches("*", "") && !matches("", "x"));
    }

    #[test]
    fn with_own_takes_precedence_over_the_built_in_table() {
        let own = "disk = [\"fastcard*\"]\ndevice = [\"nvme7*\"]\ndisk_workers = [\"mydm-*\"]";
        let table = Handlers::with_own(own).unwrap();
        assert_eq!(table.label("fastcard3"), SegmentKind::Disk);
        assert_eq!((table.label("nvme7q1"), table.label("nvme0q1")), (SegmentKind::Device, SegmentKind::Disk));
        assert!(table.is_disk_worker("mydm-4") && table.is_disk_worker("jbd2/vda1-8"));
        for wrong in ["disks = []", "disk = 7", "disk = ["] {
            let message = Handlers::with_own(wrong).unwrap_err().to_string();
            assert!(message.starts_with("not a table of interrupt handlers: ") && !message.contains('\n'), "{message}");
        }
    }

    #[test]
    fn label_knows_common_names() {
        let table = Handlers::parse(Handlers::BUILT_IN).unwrap();
        assert_eq!(Handlers::built_in().tables.len(), 1);
        for (name, kind) in [
            ("virtio2-req.0", SegmentKind::Disk),
            ("nvme0q3", SegmentKind::Disk),
            ("i8042", SegmentKind::UserInput),
            ("virtio1-input.0", SegmentKind::Network),
            ("enp3s0-TxRx-1", SegmentKind::Network),
            ("timer", SegmentKind::Timer),
            ("ttyS0", SegmentKind::Device),
        ] {
            assert_eq!(table.label(name), kind, "{name}");
        }
        assert!(table.is_disk_worker("jbd2/vda1-8") && table.is_disk_worker("kworker/1:1H"));
        assert!(!table.is_disk_worker("kworker/1:1") && !table.is_disk_worker("worker"));
    }
}
