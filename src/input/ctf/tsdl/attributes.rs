//! Values of attributes: numbers, texts, uuids, byte orders, encodings, alignments.

use super::syntax::{Attribute, Item, Value};
use crate::base::cursor::ByteOrder;
use crate::input::ctf::error::{MetadataError, MetadataWarning};

pub(super) type Resolved<T> = Result<T, MetadataError>;

impl Attribute<'_> {
    pub(super) fn number(&self) -> Resolved<u64> {
        match &self.value {
            Value::Number(n) => u64::try_from(*n).map_err(|_| self.refuse("an unsigned integer of 64 bits")),
            _ => Err(self.refuse("an unsigned integer")),
        }
    }

    pub(super) fn text(&self) -> Resolved<&str> {
        match &self.value {
            // Readers of a name take it up to its first NUL, so a name that contains one would be read in two ways.
            Value::Text(text) if text.contains('\0') => {
                Err(MetadataError::at(self.value_at, "a string must not contain a NUL"))
            }
            Value::Text(text) => Ok(text),
            _ => Err(self.refuse("a string")),
        }
    }

    pub(super) fn refuse(&self, expected: &str) -> MetadataError {
        MetadataError::at(self.value_at, format!("`{}` must be {expected}", self.name))
    }

    pub(super) fn unknown(&self, of: &str) -> MetadataWarning {
        MetadataWarning { at: self.at, what: format!("{of} has no attribute `{}`", self.name) }
    }
}

/// Sets a value that may be given once.
pub(super) fn once<T>(place: &mut Option<T>, value: T, name: &str, at: usize) -> Resolved<()> {
    if place.replace(value).is_some() {
        return Err(MetadataError::at(at, format!("`{name}` is given twice")));
    }
    Ok(())
}

/// The attributes of a block that may contain attributes only.
pub(super) fn attributes<'a, 't>(body: &'a [Item<'t>]) -> impl Iterator<Item = Resolved<&'a Attribute<'t>>> {
    body.iter().map(|item| match item {
        Item::Attribute(attribute) => Ok(attribute),
        Item::Assigned { at, .. } | Item::Block { at, .. } | Item::Known { at, .. } => {
            Err(MetadataError::at(*at, "only attributes may be here"))
        }
        Item::Declaration(typed, _) | Item::Typedef(typed, _) | Item::Typealias(typed, ..) => {
            Err(MetadataError::at(typed.at, "only attributes may be here"))
        }
    })
}

/// A uuid as text (lower case) and bytes.
pub(super) fn parse_uuid(a: &Attribute<'_>) -> Resolved<(String, [u8; 16])> {
    let wrong = || a.refuse("a uuid (32 hexadecimal digits in groups of 8, 4, 4, 4 and 12)");
    let text = a.text()?;
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    let digits: Vec<u8> = text.bytes().filter(|b| *b != b'-').collect();
    if groups != [8, 4, 4, 4, 12] || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(wrong());
    }
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
        *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
    }
    Ok((text.to_ascii_lowercase(), bytes))
}

/// The offset of a clock.
pub(super) struct NormalOffset {
    pub(super) seconds: i64,
    /// Less than a second.
    pub(super) cycles: u64,
}

/// Move whole seconds from the offset in cycles to that in seconds; `None` if the seconds do not fit 64 bits.
pub(super) fn normal_offset(seconds: i64, cycles: i128, frequency: u64) -> Option<NormalOffset> {
    if (0..i128::from(frequency)).contains(&cycles) {
        return Some(NormalOffset { seconds, cycles: cycles as u64 });
    }
    let frequency = i128::from(frequency);
    let whole = i64::try_from(cycles.div_euclid(frequency)).ok()?;
    let cycles = u64::try_from(cycles.rem_euclid(frequency)).ok()?;
    Some(NormalOffset { seconds: seconds.checked_add(whole)?, cycles })
}

/// A power of two.
pub(super) fn alignment(align: i128, at: usize) -> Resolved<u64> {
    match u64::try_from(align) {
        Ok(align) if align.is_power_of_two() => Ok(align),
        _ => Err(MetadataError::at(at, format!("an alignment must be a power of two, not {align}"))),
    }
}

/// The word or text that an attribute has; nothing where it is a number.
fn word<'a>(attribute: &'a Attribute<'_>) -> &'a str {
    match &attribute.value {
        Value::Word(word) | Value::Text(word) => word,
        Value::Number(_) => "",
    }
}

/// `le`, `be`, `network`; `native` is `None`.
pub(super) fn byte_order(attribute: &Attribute<'_>) -> Resolved<Option<ByteOrder>> {
    match word(attribute) {
        "le" => Ok(Some(ByteOrder::Little)),
        "be" | "network" => Ok(Some(ByteOrder::Big)),
        "native" => Ok(None),
        _ => Err(MetadataError::at(attribute.value_at, "a byte order must be `le`, `be`, `network` or `native`")),
    }
}

/// True for `UTF8` and `ASCII`, false for `none`.
pub(super) fn encoding_is_text(attribute: &Attribute<'_>) -> Resolved<bool> {
    match word(attribute) {
        "none" | "NONE" => Ok(false),
        "UTF8" | "utf8" | "UTF-8" | "utf-8" | "ASCII" | "ascii" => Ok(true),
        _ => Err(MetadataError::at(attribute.value_at, "an encoding must be `none`, `UTF8` or `ASCII`")),
    }
}
