//! The kernel's description of a tracepoint's record: its `format` text to fields with offsets.
//!
//! In: the text that tracefs has for each event, and recorders copy. Out: offset and type of each field. Offsets and
//! sizes are trusted; names of types are used only to distinguish text from numbers, because `pid_t` has eight bytes in
//! system calls, and the sign of `char` changed with Linux 6.2. Lines without a field are skipped.

use crate::base::cursor::ByteOrder;
use std::fmt::Debug;

/// The kind of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// An integer of 1, 2, 4 or 8 bytes.
    Number {
        /// Two's complement.
        signed: bool,
    },
    /// Text up to a NUL, in a fixed number of bytes.
    Text,
    /// An array of integers of `width` bytes.
    Words {
        /// Bytes of each.
        width: u8,
    },
    /// Text or integers at the offset, and of the length, that the field gives (`__data_loc`; `relative`: `__rel_loc`).
    Elsewhere {
        /// The offset counts from the end of this field, else from the beginning of the record.
        relative: bool,
        /// Bytes of each integer; `None`: text.
        width: Option<u8>,
    },
    /// The rest of the record.
    Rest {
        /// Bytes of each integer; `None`: text.
        width: Option<u8>,
    },
    /// An integer that the kind of the record implies; it has no bytes in the record.
    Given(u64),
    /// A part of the text of a marker, from here on.
    Marker(MarkerPart),
}

/// A part of `KIND|PID|NAME` or `KIND|PID|NAME|COOKIE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkerPart {
    /// The process that wrote it, or for which it was written.
    Process,
    /// The rest is a name.
    Name,
    /// A name before a cookie.
    NameOfTwo,
    /// The last part.
    Cookie,
}

impl MarkerPart {
    /// This part of a text, which ends at a NUL or a new line; `None` where the text has no such part.
    pub(super) fn of(self, text: &[u8]) -> Option<&[u8]> {
        let text = text.get(..memchr::memchr2(0, b'\n', text).unwrap_or(text.len()))?;
        let number = |n: usize| memchr::memchr_iter(b'|', text).nth(n);
        let last = memchr::memrchr(b'|', text)?;
        match self {
            MarkerPart::Process => text.get(number(0)? + 1..number(1).unwrap_or(text.len())),
            MarkerPart::Name => text.get(number(1)? + 1..),
            MarkerPart::NameOfTwo => text.get(number(1)? + 1..last),
            MarkerPart::Cookie => text.get(last + 1..),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    /// Bytes from the beginning of the record.
    pub at: usize,
    /// Bytes.
    pub size: usize,
    /// Kind.
    pub field_type: FieldType,
}

impl Field {
    /// A field that no text describes.
    pub fn new(name: &str, at: usize, size: usize, field_type: FieldType) -> Field {
        Field { name: name.to_owned(), at, size, field_type }
    }

    /// True for integers, false for text; `None` for the others.
    pub fn is_number(&self) -> Option<bool> {
        match self.field_type {
            FieldType::Number { .. } | FieldType::Given(_) => Some(true),
            FieldType::Text
            | FieldType::Marker(_)
            | FieldType::Elsewhere { width: None, .. }
            | FieldType::Rest { width: None } => Some(false),
            _ => None,
        }
    }
}

/// A tracepoint's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// `sched`, `syscalls` ...
    pub system: String,
    /// `sched_switch` ...
    pub name: String,
    /// The number that its records begin with.
    pub id: u64,
    /// The fields that all records of the kernel begin with (`common_pid` ...).
    pub common: Vec<Field>,
    pub fields: Vec<Field>,
}

impl Format {
    /// Parse a format text; `None` without name and number. `long`: bytes of a `long` of the kernel.
    pub fn parse(system: &str, text: &str, long: u8) -> Option<Format> {
        let (mut name, mut id) = (None, None);
        let (mut common, mut fields) = (Vec::new(), Vec::new());
        for line in split(text, b'\n').map(str::trim_ascii) {
            if let Some(field) = field(line, long) {
                let part = if field.name.starts_with("common_") { &mut common } else { &mut fields };
                part.push(field);
            } else if name.is_none()
                && let Some(first) = line.strip_prefix("name:")
            {
                name = Some(first.trim_ascii().to_owned());
            } else if id.is_none()
                && let Some(first) = line.strip_prefix("ID:")
            {
                id = Some(first.trim_ascii());
            }
        }
        Some(Format { system: system.to_owned(), name: name?, id: id?.parse().ok()?, common, fields })
    }
}

/// The parts of a text between separators.
fn split(text: &str, separator: u8) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let all = rest?;
        let (part, after) = match memchr::memchr(separator, all.as_bytes()) {
            Some(at) => (all.get(..at)?, all.get(at + 1..)),
            None => (all, None),
        };
        rest = after;
        Some(part)
    })
}

/// `field:TYPE NAME[LEN]; offset:N; size:N; signed:N;`
fn field(line: &str, long: u8) -> Option<Field> {
    let mut parts = split(line.strip_prefix("field:")?, b';').map(str::trim_ascii);
    let declared = parts.next()?;
    let (mut at, mut size, mut signed) = (None, None, false);
    for part in parts {
        if let Some(n) = part.strip_prefix("offset:") {
            at = n.parse().ok();
        } else if let Some(n) = part.strip_prefix("size:") {
            size = n.parse().ok();
        } else if let Some(n) = part.strip_prefix("signed:") {
            signed = n == "1";
        }
    }
    let (at, size): (usize, usize) = (at?, size?);
    // The length of an array follows the name, or, for `__data_loc`, the type.
    let (head, count) = match declared.strip_suffix(']').and_then(|d| d.rsplit_once('[')) {
        Some((head, count)) => (head.trim_ascii_end(), Some(count)),
        None => (declared, None),
    };
    let after = head.bytes().rposition(|byte| matches!(byte, b' ' | b'\t' | b'*' | b']'))?;
    let (kind, name) = (head.get(..after)?, head.get(after + 1..)?.trim_ascii());
    if name.is_empty() {
        return None;
    }
    let declaration = Declaration { kind, count, size, signed: signed && !head.contains('*') };
    Some(Field::new(name, at, size, declaration.field_type(long)))
}

/// The declaration of a field, without its name.
struct Declaration<'t> {
    /// The words of its type.
    kind: &'t str,
    /// The length of an array, which may be a number.
    count: Option<&'t str>,
    /// Bytes.
    size: usize,
    /// Two's complement.
    signed: bool,
}

impl Declaration<'_> {
    fn has(&self, names: &[&str]) -> bool {
        let mut words = self.kind.as_bytes().split(|byte| matches!(byte, b' ' | b'\t' | b'[' | b']'));
        words.any(|word| names.iter().any(|name| name.as_bytes() == word))
    }

    fn is_text(&self) -> bool {
        self.has(&["char"]) && !self.has(&["unsigned"])
    }

    fn field_type(&self, long: u8) -> FieldType {
        let several = || (!self.is_text()).then(|| self.element(long));
        if self.size == 4 && self.has(&["__data_loc", "__rel_loc"]) {
            FieldType::Elsewhere { relative: self.has(&["__rel_loc"]), width: several() }
        } else if self.size == 0 {
            FieldType::Rest { width: several() }
        } else if let Some(count) = self.count {
            let count = count.trim_ascii().parse::<usize>().ok().filter(|n| *n > 0);
            let width = count.map_or_else(|| usize::from(self.element(long)), |n| self.size / n);
            match (self.is_text(), width) {
                (true, _) => FieldType::Text,
                (false, 1 | 2 | 4 | 8) => FieldType::Words { width: width as u8 },
                _ => FieldType::Words { width: 1 },
            }
        } else if matches!(self.size, 1 | 2 | 4 | 8) {
            FieldType::Number { signed: self.signed }
        } else {
            FieldType::Words { width: 1 }
        }
    }

    /// Bytes of an element of an array whose length the text does not give.
    fn element(&self, long: u8) -> u8 {
        if self.kind.contains('*') || self.has(&["long", "cpumask_t", "size_t", "uintptr_t"]) {
            long
        } else if self.has(&["u64", "s64", "__u64", "__s64", "uint64_t", "int64_t"]) {
            8
        } else if self.has(&["char", "u8", "s8", "__u8", "__s8", "uint8_t", "bool"]) {
            1
        } else if self.has(&["short", "u16", "s16", "__u16", "__s16", "__le16", "__be16", "uint16_t"]) {
            2
        } else {
            4
        }
    }
}

/// The bytes of a field: at its own place, or at the place that it gives.
pub fn bytes_of<'a>(body: &'a [u8], field: &Field, byte_order: ByteOrder) -> Option<&'a [u8]> {
    match field.field_type {
        FieldType::Number { .. } | FieldType::Text | FieldType::Words { .. } => body.get(field.at..)?.get(..field.size),
        FieldType::Rest { .. } => body.get(field.at..),
        FieldType::Given(_) => None,
        FieldType::Marker(part) => part.of(body.get(field.at..)?),
        FieldType::Elsewhere { relative, .. } => {
            let word: [u8; 4] = body.get(field.at..)?.get(..4)?.try_into().ok()?;
            let word = if byte_order == ByteOrder::Big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) };
            let from = if relative { field.at + 4 } else { 0 };
            body.get(from + (word & 0xffff) as usize..)?.get(..(word >> 16) as usize)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_parse_gives_the_fields_with_their_places() {
        let text = "name: sched_process_fork\nID: 308\nformat:\n\
            \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
            \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
            \tfield:__data_loc char[] parent_comm;\toffset:8;\tsize:4;\tsigned:0;\n\
            \tfield:pid_t child_pid;\toffset:12;\tsize:4;\tsigned:1;\n\
            \tfield:char comm[16];\toffset:16;\tsize:16;\tsigned:1;\n\
            \tfield:char old[TASK_COMM_LEN];\toffset:32;\tsize:16;\tsigned:0;\n\
            \tfield:unsigned long args[6];\toffset:48;\tsize:48;\tsigned:0;\n\
            \tfield:const char * filename;\toffset:96;\tsize:8;\tsigned:1;\n\
            \tfield:__u8 saddr[28];\toffset:104;\tsize:28;\tsigned:0;\n\
            \tfield:__rel_loc u64[] list;\toffset:132;\tsize:4;\tsigned:0;\n\
            \tfield:char buf[];\toffset:136;\tsize:0;\tsigned:0;\n\
            \nprint fmt: \"field:nonsense\"\n";
        let format = Format::parse("sched", text, 8).unwrap();
        assert_eq!((format.name.as_str(), format.id, format.common.len()), ("sched_process_fork", 308, 2));
        let shapes: Vec<(&str, usize, FieldType)> =
            format.fields.iter().map(|f| (f.name.as_str(), f.at, f.field_type)).collect();
        let expected = [
            ("parent_comm", 8, FieldType::Elsewhere { relative: false, width: None }),
            ("child_pid", 12, FieldType::Number { signed: true }),
            ("comm", 16, FieldType::Text),
            ("old", 32, FieldType::Text),
            ("args", 48, FieldType::Words { width: 8 }),
            ("filename", 96, FieldType::Number { signed: false }),
            ("saddr", 104, FieldType::Words { width: 1 }),
            ("list", 132, FieldType::Elsewhere { relative: true, width: Some(8) }),
            ("buf", 136, FieldType::Rest { width: None }),
        ];
        assert_eq!(shapes, expected);
        assert_eq!(Format::parse("sched", "name: x\nformat:\n", 8), None);
    }
}
