//! One event as text: the parts of each line that the schema determines, and the sink that writes the values as they
//! are decoded.
//!
//! The parts that the schema determines (names, separators) are prepared once for each field.

use crate::base::clean;
use crate::base::cursor::ByteOrder;
use crate::base::text::with_copy;
use crate::base::time::Timestamp;
use crate::input::ctf::{ElementFormat, FieldNode, FieldShape, NumberFormat, Real, Sink};
use crate::input::record::{IntegerArray, Projection};
use crate::input::stream::Class;
use crate::input::trace::{Plan, Trace};
use smallvec::SmallVec;
use std::io::Write;

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As docs/CANONICAL.md says.
    Canonical,
    /// Time of day, host, CPU, event, fields.
    Readable,
}

/// The parts of each line that the schema determines.
pub(super) struct LineLayout {
    pub(super) form: Form,
    pub(super) plan: Plan,
    /// To step over events.
    pub(super) steps: Plan,
    /// Before the CPU: a separator, and for people the host.
    pub(super) host: Vec<u8>,
    /// By class: a separator and its name.
    pub(super) names: Vec<Vec<u8>>,
    /// By node: the text before its value.
    prefixes: Vec<Vec<u8>>,
}

impl LineLayout {
    pub(super) fn new(trace: &Trace, form: Form) -> LineLayout {
        let plan = trace.compile_whole();
        // Of each class nothing but its time.
        let steps = trace.compile(&Projection { wanted: vec![Some(Vec::new()); trace.classes().len()] });
        let separator = match form {
            Form::Canonical => b'\t',
            Form::Readable => b' ',
        };
        let name = |class: &Class| {
            let mut text = vec![separator];
            if class.name.is_empty() {
                text.push(b'-')
            } else {
                form.escape(class.name.as_bytes(), &mut text)
            }
            text
        };
        let prefix = |node: &FieldNode| {
            let mut text = Vec::new();
            if let Some(name) = &node.name {
                if node.position > 0 {
                    text.extend_from_slice(if form == Form::Canonical { b"," } else { b", " });
                }
                form.escape(name.as_bytes(), &mut text);
                text.push(b'=');
            }
            if let FieldShape::Scope(_) = node.shape {
                text.push(separator);
            }
            text
        };
        let mut host = vec![separator];
        if form == Form::Readable {
            form.escape(trace.environment("hostname").unwrap_or("-").as_bytes(), &mut host);
            host.extend_from_slice(b" cpu ");
        }
        let names = trace.classes().iter().map(name).collect();
        let prefixes = plan.nodes().iter().map(prefix).collect();
        LineLayout { form, plan, steps, host, names, prefixes }
    }

    /// The sink for an event's values.
    pub(super) fn text(&self) -> Text<'_> {
        Text { form: self.form, out: Vec::new(), nodes: self.plan.nodes(), prefixes: &self.prefixes }
    }
}

impl Form {
    /// Text from the trace, safe to show: ASCII with escapes, or for people the same text with characters that
    /// control a terminal escaped.
    fn escape(self, text: &[u8], out: &mut Vec<u8>) {
        match self {
            Form::Canonical => escape(text, out),
            Form::Readable => with_copy(text, |text| out.extend_from_slice(clean::text(text).as_bytes())),
        }
    }
}

/// Writes values as the decoder reads them.
pub(super) struct Text<'s> {
    form: Form,
    pub(super) out: Vec<u8>,
    nodes: &'s [FieldNode],
    prefixes: &'s [Vec<u8>],
}

impl<'s> Text<'s> {
    fn prefix(&mut self, node: u32) {
        if let Some(prefix) = self.prefixes.get(node as usize) {
            self.out.extend_from_slice(prefix);
        }
    }

    fn shape(&self, node: u32) -> Option<&'s FieldShape> {
        self.nodes.get(node as usize).map(|n| &n.shape)
    }
}

/// A number as its appearance says.
fn number(form: Form, appearance: &NumberFormat, value: i128, out: &mut Vec<u8>) {
    match appearance {
        NumberFormat::Decimal => decimal(value, out),
        NumberFormat::Boolean => out.extend_from_slice(if value == 0 { b"false" } else { b"true" }),
        NumberFormat::Labels(labels) => {
            decimal(value, out);
            list(form, labels.of(value), out);
        }
        NumberFormat::Flags(flags) => {
            out.push(b'b');
            let bits = value as u64;
            unsigned(bits, out);
            list(form, flags.set_in(bits), out);
        }
    }
}

fn list<'n>(form: Form, names: impl Iterator<Item = &'n str>, out: &mut Vec<u8>) {
    let mut names: SmallVec<[&str; 8]> = names.collect();
    names.sort_unstable();
    names.dedup();
    out.push(b'(');
    for (i, name) in names.into_iter().enumerate() {
        if i > 0 {
            out.push(b'|');
        }
        form.escape(name.as_bytes(), out);
    }
    out.push(b')');
}

fn decimal(value: i128, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    unsigned(value.unsigned_abs() as u64, out);
}

pub(super) fn signed(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    unsigned(value.unsigned_abs(), out);
}

pub(super) fn unsigned(mut value: u64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut length = 0;
    for place in digits.iter_mut().rev() {
        *place = b'0' + (value % 10) as u8;
        value /= 10;
        length += 1;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(20 - length..).unwrap_or(&[]));
}

/// `HH:MM:SS.nnnnnnnnn`, UTC.
pub(super) fn time_of_day(time: Timestamp, out: &mut Vec<u8>) {
    let (second, ns) = (time.ns().div_euclid(1_000_000_000), time.ns().rem_euclid(1_000_000_000));
    let of_day = second.rem_euclid(86_400);
    let _ = write!(out, "{:02}:{:02}:{:02}.{ns:09}", of_day / 3600, of_day / 60 % 60, of_day % 60);
}

/// Bytes with everything outside printable ASCII escaped.
fn escape(text: &[u8], out: &mut Vec<u8>) {
    let plain = |b: &u8| matches!(b, 0x20..=0x7e) && *b != b'"' && *b != b'\\';
    let mut rest = text;
    while let Some(end) = rest.iter().position(|b| !plain(b)) {
        let (before, after) = rest.split_at(end);
        out.extend_from_slice(before);
        if let Some((byte, after)) = after.split_first() {
            match byte {
                b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\t' => out.extend_from_slice(b"\\t"),
                b'\r' => out.extend_from_slice(b"\\r"),
                _ => {
                    out.extend_from_slice(b"\\x");
                    hex(*byte, out);
                }
            }
            rest = after;
        }
    }
    out.extend_from_slice(rest);
}

fn hex(byte: u8, out: &mut Vec<u8>) {
    let digit = |n: u8| char::from_digit(u32::from(n), 16).map_or(b'?', |c| c as u8);
    out.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
}

/// Text of units of `width` bytes in quotes, cut at the first NUL unit.
fn quoted(form: Form, bytes: &[u8], width: u8, byte_order: ByteOrder, out: &mut Vec<u8>) {
    out.push(b'"');
    if width == 1 {
        let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
        form.escape(bytes.get(..end).unwrap_or(bytes), out);
    } else {
        let units = IntegerArray { bytes, width, byte_order }.iter().take_while(|unit| *unit != 0);
        let text: String = if width == 2 {
            char::decode_utf16(units.map(|u| u as u16)).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
        } else {
            units.map(|u| char::from_u32(u as u32).unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
        };
        form.escape(text.as_bytes(), out);
    }
    out.push(b'"');
}

impl<'a> Sink<'a> for Text<'_> {
    fn unsigned(&mut self, node: u32, value: u64) {
        self.prefix(node);
        match self.shape(node) {
            Some(FieldShape::Number(NumberFormat::Decimal)) | None => unsigned(value, &mut self.out),
            Some(FieldShape::Number(appearance)) => number(self.form, appearance, i128::from(value), &mut self.out),
            Some(_) => {}
        }
    }

    fn signed(&mut self, node: u32, value: i64) {
        self.prefix(node);
        match self.shape(node) {
            Some(FieldShape::Number(NumberFormat::Decimal)) | None => signed(value, &mut self.out),
            Some(FieldShape::Number(appearance)) => number(self.form, appearance, i128::from(value), &mut self.out),
            Some(_) => {}
        }
    }

    fn real(&mut self, node: u32, number: Real<'a>) {
        self.prefix(node);
        let value = number.value();
        if self.form == Form::Readable {
            let _ = write!(self.out, "{value}");
            return;
        }
        let _ = write!(self.out, "f{}:", number.size());
        if value.is_nan() {
            self.out.extend_from_slice(b"nan");
            return;
        }
        for group in number.groups() {
            group.to_be_bytes().into_iter().for_each(|byte| hex(byte, &mut self.out));
        }
    }

    fn text(&mut self, node: u32, bytes: &'a [u8], width: u8, byte_order: ByteOrder) {
        self.prefix(node);
        quoted(self.form, bytes, width, byte_order, &mut self.out);
    }

    fn words(&mut self, node: u32, words: IntegerArray<'a>) {
        self.prefix(node);
        let Some(FieldShape::Array { element: Some(ElementFormat { format: appearance, signed: is_signed }) }) =
            self.shape(node)
        else {
            return;
        };
        self.out.push(b'[');
        let unused = 64 - 8 * u32::from(words.width);
        for (i, word) in words.iter().enumerate() {
            if i > 0 {
                self.out.push(b',');
            }
            let value = if *is_signed { i128::from((word << unused) as i64 >> unused) } else { i128::from(word) };
            number(self.form, appearance, value, &mut self.out);
        }
        self.out.push(b']');
    }

    fn blob(&mut self, node: u32, bytes: &'a [u8]) {
        self.prefix(node);
        self.out.extend_from_slice(b"blob:");
        for byte in bytes {
            hex(*byte, &mut self.out);
        }
    }

    fn open(&mut self, node: u32) {
        self.prefix(node);
        match self.shape(node) {
            Some(FieldShape::Scope(_) | FieldShape::Struct) => self.out.push(b'{'),
            Some(FieldShape::Array { .. }) => self.out.push(b'['),
            _ => {}
        }
    }

    fn element(&mut self, first: bool) {
        if !first {
            self.out.push(b',');
        }
    }

    fn close(&mut self, node: u32) {
        match self.shape(node) {
            Some(FieldShape::Scope(_) | FieldShape::Struct) => self.out.push(b'}'),
            Some(FieldShape::Array { .. }) => self.out.push(b']'),
            _ => {}
        }
    }

    fn void(&mut self) {
        self.out.clear();
    }

    fn missing(&mut self, node: u32) {
        match self.shape(node) {
            Some(FieldShape::Scope(_)) if self.form == Form::Readable => {}
            Some(FieldShape::Scope(_)) => self.out.extend_from_slice(b"\t-"),
            _ => self.out.extend_from_slice(b"none"),
        }
    }
}
