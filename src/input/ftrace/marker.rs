//! Text that programs write into `trace_marker`, in the form that begins and ends spans (atrace, systemd, Perfetto).
//!
//! ```text
//! B|PID|NAME          E|PID  (or E)            nested on a thread
//! S|PID|NAME|COOKIE   F|PID|NAME|COOKIE        by name and cookie, on any threads
//! ```
//! In: the text of a `print` record. Out: one of four classes beside that of `print`, whose fields are the parts of the
//! text. The classes exist only in recordings that hold such text: a search for it in the pages decides, at the speed
//! of memory, by all workers. All other text stays `print`.

use crate::base::ctx::{Cancelled, Ctx};
use crate::base::cursor::{ByteOrder, bits};
use crate::base::parallel::in_order;
use crate::input::record::ClassId;
use crate::input::tracepoint::ClassSchema;
use crate::input::tracepoint::format::{Field, FieldType, Format, MarkerPart};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of pages that a worker searches at a time.
const PART: usize = 4 << 20;

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

impl MarkerClasses {
    /// The classes behind the `count` classes of the formats, where the pages hold such text.
    pub fn find(
        print: ClassId,
        format: &Format,
        pages: &[u8],
        byte_order: ByteOrder,
        count: usize,
        ctx: &Ctx,
    ) -> Result<Option<Self>, Cancelled> {
        let Some(field) = format.fields.iter().find(|field| field.name == "buf") else { return Ok(None) };
        let at = field.at;
        let is_print = |text: usize| {
            let begin = text.checked_sub(at)?;
            let id = bits(pages, begin as u64 * 8, 16, byte_order)?;
            (id == format.id && kind(self::text(pages, text)).is_some()).then_some(())
        };
        // One pass over the bars: they are fewer than either letter before them. A bar belongs to the part that it is
        // in; what is read around it may be in another one.
        let search = |part: usize| {
            let from = part * PART;
            let bytes = pages.get(from..pages.len().min(from + PART)).unwrap_or(&[]);
            let begins = memchr::memchr_iter(b'|', bytes).filter_map(|bar| (from + bar).checked_sub(1));
            let mut begins = begins.filter(|text| matches!(pages.get(*text), Some(b'B' | b'S')));
            begins.any(|text| is_print(text).is_some())
        };
        let found = AtomicBool::new(false);
        let make = |part| {
            if !found.load(Ordering::Relaxed) && search(part) {
                found.store(true, Ordering::Relaxed);
            }
        };
        in_order(ctx, pages.len().div_ceil(PART), make, |_, ()| {})?;
        Ok(found.into_inner().then(|| MarkerClasses { print, at, first: ClassId::at(count) }))
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
