//! Text that programs write into `trace_marker`, in the form that begins and ends spans (atrace, systemd, Perfetto).
//!
//! ```text
//! B|PID|NAME          E|PID  (or E)            nested on a thread
//! S|PID|NAME|COOKIE   F|PID|NAME|COOKIE        by name and cookie, on any threads
//! ```
//! In: the text of a `print` record. Out: one of four classes beside that of `print`, whose fields are the parts of the
//! text. The classes exist only in recordings that hold such text: a search for it ([`MarkerSearch`]) decides, at the
//! speed of memory, while the workers index the pages. All other text stays `print`.

use crate::base::cursor::{ByteOrder, bits};
use crate::input::record::ClassId;
use crate::input::tracepoint::ClassSchema;
use crate::input::tracepoint::format::{Field, FieldType, Format, MarkerPart};
use std::sync::atomic::{AtomicBool, Ordering};

/// The beginnings of texts, and their classes, in the order of the classes.
const KINDS: [(u8, &str); 4] = [
    (b'B', "trace_marker:begin"),
    (b'E', "trace_marker:end"),
    (b'S', "trace_marker:async_begin"),
    (b'F', "trace_marker:async_end"),
];

/// The classes of a recording's markers.
#[derive(Clone, Copy, Debug)]
pub struct MarkerClasses {
    /// The class of `print`.
    print: ClassId,
    /// Offset of the text in a record.
    at: usize,
    /// The first of the four.
    first: ClassId,
}

/// The text of a record, without its end.
fn text(record: &[u8], at: usize) -> &[u8] {
    let text = record.get(at..).unwrap_or(&[]);
    text.get(..memchr::memchr2(0, b'\n', text).unwrap_or(text.len())).unwrap_or(text)
}

/// The kind of a text, as a position in [`KINDS`].
fn kind(text: &[u8]) -> Option<usize> {
    let kind = KINDS.iter().position(|(letter, _)| text.first() == Some(letter))?;
    let parts = text.split(|byte| *byte == b'|').count();
    // Any text may begin with these letters.
    let is_marker = match (text.get(1), kind) {
        (None, 1) | (Some(b'|'), 1) => true,
        (Some(b'|'), 0) => parts >= 3,
        (Some(b'|'), _) => parts >= 4,
        _ => false,
    };
    is_marker.then_some(kind)
}

/// The search for text that is a marker.
#[derive(Debug)]
pub struct MarkerSearch {
    /// The number of the format of `print`.
    id: u64,
    /// Offset of the text in a record.
    at: usize,
    byte_order: ByteOrder,
    found: AtomicBool,
}

impl MarkerSearch {
    /// The search, given the format of `print`; `None` where that has no text.
    pub fn new(format: &Format, byte_order: ByteOrder) -> Option<MarkerSearch> {
        let field = format.fields.iter().find(|field| field.name == "buf")?;
        Some(MarkerSearch { id: format.id, at: field.at, byte_order, found: AtomicBool::new(false) })
    }

    /// Search whole pages, unless a marker has been found.
    pub fn search(&self, pages: &[u8]) {
        // One pass over the bars: they are fewer than either letter before them.
        let begins = || memchr::memchr_iter(b'|', pages).filter_map(|bar| bar.checked_sub(1));
        if !self.has_found() && begins().any(|text| self.is_marker(pages, text)) {
            self.found.store(true, Ordering::Relaxed);
        }
    }

    /// True once a marker has been found.
    pub fn has_found(&self) -> bool {
        self.found.load(Ordering::Relaxed)
    }

    /// True where the text at a place, before a bar, is a marker in a record of `print`.
    fn is_marker(&self, pages: &[u8], text: usize) -> bool {
        let id = || bits(pages, text.checked_sub(self.at)? as u64 * 8, 16, self.byte_order);
        matches!(pages.get(text), Some(b'B' | b'S')) && id() == Some(self.id) && kind(self::text(pages, text)).is_some()
    }
}

impl MarkerClasses {
    /// The classes after the `count` classes of the formats, given the class of `print`.
    pub fn new(print: ClassId, search: &MarkerSearch, count: usize) -> MarkerClasses {
        MarkerClasses { print, at: search.at, first: ClassId::at(count) }
    }

    /// The class of a record, given that of its format.
    #[inline(always)]
    pub fn class(&self, class: ClassId, record: &[u8]) -> ClassId {
        if class != self.print {
            return class;
        }
        kind(text(record, self.at)).map_or(class, |kind| ClassId::at(self.first.index() + kind))
    }

    /// The four classes; `print`: that of the format.
    pub fn schemas(&self, print: &ClassSchema) -> impl Iterator<Item = ClassSchema> {
        let field = |name: &str, part| Field::new(name, self.at, 0, FieldType::Marker(part));
        let (pid, name) = (field("pid", MarkerPart::Process), field("name", MarkerPart::Name));
        let parts = [
            vec![pid.clone(), name.clone()],
            vec![pid.clone()],
            vec![pid, field("name", MarkerPart::NameOfTwo), field("cookie", MarkerPart::Cookie)],
        ];
        let print = print.clone();
        KINDS.iter().enumerate().map(move |(at, (_, name))| ClassSchema {
            name: (*name).to_owned(),
            fields: parts.get(at.min(2)).cloned().unwrap_or_default(),
            known_as: None,
            ..print.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_takes_only_whole_markers() {
        let of = |text: &str| kind(text.as_bytes()).map(|kind| KINDS[kind].1);
        for (text, class) in [
            ("B|12|load page", Some("trace_marker:begin")),
            ("B|12", None),
            ("Begin", None),
            ("E|12", Some("trace_marker:end")),
            ("E", Some("trace_marker:end")),
            ("Error: x", None),
            ("S|12|fetch|7", Some("trace_marker:async_begin")),
            ("S|12|fetch", None),
            ("F|12|fetch|7", Some("trace_marker:async_end")),
            ("C|12|queue|3", None),
            ("", None),
        ] {
            assert_eq!(of(text), class, "{text}");
        }
    }
}
