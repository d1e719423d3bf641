//! One event of Chrome's JSON: the members that are of use, read from the text as it comes.
//!
//! Members that are not in [`PATHS`] are skipped without being kept. The parser keeps a text that is not skipped in
//! memory until its end, and a byte for each open bracket; [`TextBounds`] bounds both while the text is read.

use super::lines;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::cell::Cell;
use std::fmt;
use std::io::{self, Read};

/// The most bytes of an event, or of another text that the parser keeps.
const MOST_KEPT: u64 = 4 << 20;
/// The most brackets that are open at once.
const MOST_OPEN: u32 = 1024;

/// What the parser may still read into its memory.
#[derive(Debug, Default)]
pub(super) struct TextBounds {
    /// Bytes of what is kept; `None` where the text is skipped.
    left: Cell<Option<u64>>,
    /// The text is that of an event.
    in_event: Cell<bool>,
}

impl TextBounds {
    /// The next text is kept.
    pub fn keep(&self) {
        self.left.set(Some(MOST_KEPT));
    }

    /// The next text is skipped.
    pub fn skip(&self) {
        self.left.set(None);
    }

    /// True from the begin of an event to its end.
    pub fn in_event(&self) -> bool {
        self.in_event.get()
    }
}

/// A reader that fails with [`io::ErrorKind::FileTooLarge`] where a text passes its bounds.
pub(super) struct BoundedText<'c, R> {
    from: R,
    bounds: &'c TextBounds,
    /// Open brackets.
    open: u32,
    place: TextPlace,
}

/// Whether a byte is part of a text in quotes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TextPlace {
    Outside,
    InQuotes,
    BehindBackslash,
}

impl<'c, R: Read> BoundedText<'c, R> {
    pub fn new(from: R, bounds: &'c TextBounds) -> BoundedText<'c, R> {
        BoundedText { from, bounds, open: 0, place: TextPlace::Outside }
    }

    /// Follow the brackets; false where too many are open.
    fn follow(&mut self, byte: u8) -> bool {
        self.place = match (self.place, byte) {
            (TextPlace::Outside, b'"') | (TextPlace::BehindBackslash, _) => TextPlace::InQuotes,
            (TextPlace::InQuotes, b'"') => TextPlace::Outside,
            (TextPlace::InQuotes, b'\\') => TextPlace::BehindBackslash,
            (place, _) => place,
        };
        match byte {
            b'[' | b'{' if self.place == TextPlace::Outside => self.open += 1,
            b']' | b'}' if self.place == TextPlace::Outside => self.open = self.open.saturating_sub(1),
            _ => {}
        }
        self.open <= MOST_OPEN
    }
}

impl<R: Read> Read for BoundedText<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let too_large = || io::Error::from(io::ErrorKind::FileTooLarge);
        let read = self.from.read(buffer)?;
        if let Some(left) = self.bounds.left.get() {
            self.bounds.left.set(Some(left.checked_sub(read as u64).ok_or_else(too_large)?));
        }
        let is_bounded = buffer.iter().take(read).all(|byte| self.follow(*byte));
        if is_bounded { Ok(read) } else { Err(too_large()) }
    }
}

/// A number or a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Scalar {
    #[default]
    Absent,
    Whole(u64),
    Negative(i64),
    Real(f64),
    Text(String),
}

impl Scalar {
    /// Microseconds as nanoseconds.
    pub fn nanoseconds(&self) -> Option<u64> {
        match self {
            Scalar::Whole(us) => us.checked_mul(1000),
            Scalar::Real(us) => Some((us * 1000.0).round()).filter(|ns| (0.0..1e19).contains(ns)).map(|ns| ns as u64),
            Scalar::Text(text) => Scalar::Real(text.parse().ok()?).nanoseconds(),
            Scalar::Absent | Scalar::Negative(_) => None,
        }
    }

    pub fn id(&self) -> Option<i32> {
        match self {
            Scalar::Whole(n) => i32::try_from(*n).ok(),
            Scalar::Text(text) => lines::id(text.as_bytes()),
            Scalar::Real(n) => Some(*n as i32).filter(|id| f64::from(*id) == *n && *id >= 0),
            Scalar::Absent | Scalar::Negative(_) => None,
        }
    }
}

/// A member of an event that is of use.
#[derive(Clone, Copy, Debug)]
pub(super) enum EventMember {
    Phase,
    Time,
    Length,
    Process,
    Thread,
    Name,
    Category,
    Id,
    Scope,
    LocalId,
    GlobalId,
    Argument,
}

/// Where they stand, in the order of [`EventMember`].
const PATHS: [&str; 12] =
    ["ph", "ts", "dur", "pid", "tid", "name", "cat", "id", "scope", "id2.local", "id2.global", "args.name"];

/// The members of an event.
#[derive(Debug, Default)]
pub(super) struct ChromeEvent([Scalar; PATHS.len()]);

impl ChromeEvent {
    pub fn at(&self, member: EventMember) -> &Scalar {
        &self.0[member as usize]
    }

    pub fn text(&self, member: EventMember) -> Option<String> {
        Some(match self.at(member) {
            Scalar::Absent | Scalar::Real(_) => return None,
            Scalar::Whole(n) => n.to_string(),
            Scalar::Negative(n) => n.to_string(),
            Scalar::Text(text) => text.clone(),
        })
    }
}

/// A part of an event: it puts the members of [`PATHS`] in their places and skips all others.
pub(super) struct EventPart<'e, 'p, 'c> {
    pub event: &'e mut ChromeEvent,
    /// Its path; empty for the event itself.
    pub path: &'p str,
    /// Set where the part is the event itself.
    pub bounds: Option<&'c TextBounds>,
}

impl EventPart<'_, '_, '_> {
    fn put(self, value: Scalar) {
        if let Some(at) = PATHS.iter().position(|path| *path == self.path) {
            self.event.0[at] = value;
        }
    }
}

impl<'de> DeserializeSeed<'de> for EventPart<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for EventPart<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.put(Scalar::Whole(number));
        Ok(())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.put(Scalar::Negative(number));
        Ok(())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        self.put(Scalar::Real(number));
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.put(Scalar::Text(text.to_owned()));
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        if let Some(bounds) = self.bounds {
            bounds.keep();
            bounds.in_event.set(true);
        }
        while let Some(key) = members.next_key::<String>()? {
            let path = if self.path.is_empty() { key } else { format!("{}.{key}", self.path) };
            let leads = |wanted: &&str| {
                wanted.strip_prefix(&*path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            match PATHS.iter().any(leads) {
                true => members.next_value_seed(EventPart { event: &mut *self.event, path: &path, bounds: None })?,
                false => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        if let Some(bounds) = self.bounds {
            bounds.in_event.set(false);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_times_and_ids_as_programs_write_them() {
        let times = [Scalar::Whole(7), Scalar::Real(1.0005), Scalar::Text("2.25".to_owned()), Scalar::Real(f64::NAN)];
        assert_eq!(times.map(|time| time.nanoseconds()), [Some(7000), Some(1001), Some(2250), None]);
        let ids = [Scalar::Whole(7), Scalar::Real(8.0), Scalar::Text("0x1f".to_owned()), Scalar::Negative(-1)];
        assert_eq!(ids.map(|id| id.id()), [Some(7), Some(8), Some(31), None]);
    }
}
