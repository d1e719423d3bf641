//! Spans of programs in Chrome's Trace Event JSON: `{"traceEvents": [...]}`, or the array alone.
//!
//! ```text
//! {"ph":"B","pid":100,"tid":101,"ts":1000.125,"name":"handle_request","args":{...}},   begin, on a thread
//! {"ph":"E","pid":100,"tid":101,"ts":1210.125},                                         its end
//! {"ph":"X","pid":100,"tid":101,"ts":1000,"dur":210,"name":"parse"},                    both
//! {"ph":"b","cat":"io","id":"0x7","pid":100,"tid":101,"ts":1000,"name":"fetch"},        begin, on a track; `e` ends it
//! {"ph":"M","pid":100,"tid":101,"name":"thread_name","args":{"name":"server"}},         a name
//! ```
//! Events may be in any order. Tracks are distinguished by category, `id` and `scope`, and by the process where the id
//! is a local one (`id2.local`). `ts` is microseconds of a clock that the file does not name, with fractions. The file
//! may be compressed by gzip, and may end in the middle, as a program that is killed leaves it. Events of other phases
//! are counted. Format: Trace Event Format, Google, 2016.
//!
//! The text is read once, event by event, and nothing but the spans is kept.

use super::about::About;
use super::chrome_event::{BoundedText, ChromeEvent, EventMember, EventPart, Scalar, TextBounds};
use super::error::TranslationError;
use super::event_place::NamedThread;
use super::spans::{SpanPart, SpanThread, SpanTrack, Spans};
use super::translation::Translation;
use super::unicode_text::UnicodeText;
use crate::input::format::BEGIN;
use crate::input::tracepoint::RecorderClock;
use flate2::bufread::MultiGzDecoder;
use foldhash::HashMap;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use std::fmt;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};

/// The largest compression ratio.
const MOST_RATIO: u64 = 64;
const GZIP: &[u8] = b"\x1f\x8b";
/// Errors that the bytes of a file cause, not the system.
const DAMAGE: [ErrorKind; 3] = [ErrorKind::UnexpectedEof, ErrorKind::InvalidInput, ErrorKind::FileTooLarge];

/// True for the begin of a file, of [`BEGIN`] bytes or the whole.
pub(super) fn is_one(begin: &[u8]) -> bool {
    let mut plain = Vec::new();
    let text = if begin.starts_with(GZIP) {
        // The begin of a longer file ends with an error, after what was read.
        let _ = MultiGzDecoder::new(begin).take(BEGIN).read_to_end(&mut plain);
        &plain
    } else {
        begin
    };
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text).trim_ascii_start();
    let has = |what: &str| memchr::memmem::find(text, what.as_bytes()).is_some();
    match text.first() {
        Some(b'{') => has("\"traceEvents\""),
        Some(b'[') => text.get(1..).is_some_and(|rest| rest.trim_ascii_start().starts_with(b"{")) && has("\"ph\""),
        _ => false,
    }
}

/// Read the spans of a file of `size` bytes.
pub(super) fn read(
    from: &mut impl BufRead,
    size: u64,
    translation: &mut Translation,
) -> io::Result<Result<About, TranslationError>> {
    let packed = from.fill_buf()?.starts_with(GZIP);
    let mut events = ChromeEvents { spans: Spans::default(), tracks: HashMap::default(), translation, number: 0 };
    let ended = match packed {
        true => {
            let mut plain = MultiGzDecoder::new(from).take(size.saturating_mul(MOST_RATIO));
            // The parser asks for one byte at a time.
            match events.read(BufReader::with_capacity(1 << 16, &mut plain)) {
                _ if plain.limit() == 0 => ReadEnd::Damaged,
                ended => ended,
            }
        }
        false => {
            let mark = b"\xef\xbb\xbf";
            if from.fill_buf()?.starts_with(mark) {
                from.consume(mark.len());
            }
            events.read(from)
        }
    };
    let ChromeEvents { spans, translation, number, .. } = events;
    match ended {
        ReadEnd::Whole => {}
        ReadEnd::InEvent => translation.unreadable_record(|| format!("event {number}")),
        ReadEnd::Damaged => translation.unreadable_record(|| format!("the text after event {number}")),
        ReadEnd::Failed(e) => return Err(e),
    }
    let clock = RecorderClock { name: "unknown".to_owned(), ..RecorderClock::default() };
    Ok(Ok(About { environment: Vec::new(), clock, spans: Some(spans) }))
}

/// Where reading ended.
enum ReadEnd {
    /// At the end of the list of events, whether or not it was closed.
    Whole,
    InEvent,
    /// Where the text is no JSON.
    Damaged,
    Failed(io::Error),
}

/// What is read, and what is known of it.
struct ChromeEvents<'t> {
    spans: Spans,
    /// Numbers of tracks.
    tracks: HashMap<String, u64>,
    translation: &'t mut Translation,
    /// Events so far.
    number: u64,
}

impl ChromeEvents<'_> {
    fn read(&mut self, from: impl BufRead) -> ReadEnd {
        let bounds = TextBounds::default();
        let mut json = serde_json::Deserializer::from_reader(BoundedText::new(UnicodeText::buffered(from), &bounds));
        let whole = ChromeDocument { events: self, bounds: &bounds }.deserialize(&mut json);
        match whole {
            Ok(()) => ReadEnd::Whole,
            Err(_) if bounds.in_event() => ReadEnd::InEvent,
            Err(e) if e.is_eof() => ReadEnd::Whole,
            Err(e) if e.classify() == Category::Io => match io::Error::from(e) {
                // A compressed file that is cut off, or a text that passes its bounds.
                e if DAMAGE.contains(&e.kind()) => ReadEnd::Damaged,
                e => ReadEnd::Failed(e),
            },
            Err(_) => ReadEnd::Damaged,
        }
    }

    fn add(&mut self, event: &ChromeEvent) {
        self.number += 1;
        let number = self.number;
        self.translation.begin_record();
        match self.read_event(event) {
            Some(EventPhase::Used) => {}
            Some(EventPhase::Other) => self.translation.unused(|| "events of programs that are no spans".to_owned()),
            None => self.translation.unreadable(|| format!("event {number}")),
        }
        self.translation.end_record();
    }

    /// `None` where a member is missing or wrong.
    fn read_event(&mut self, event: &ChromeEvent) -> Option<EventPhase> {
        let phase = event.text(EventMember::Phase)?;
        if phase == "M" {
            return self.name(event);
        }
        if !matches!(&*phase, "B" | "E" | "X" | "b" | "e" | "S" | "F") {
            return Some(EventPhase::Other);
        }
        let time = event.at(EventMember::Time).nanoseconds()?;
        // Ids that are no numbers are rows of a viewer, not threads.
        let (Some(tid), Some(pid)) = (event.at(EventMember::Thread).id(), event.at(EventMember::Process).id()) else {
            return Some(EventPhase::Other);
        };
        let thread = SpanThread { tid, pid };
        let track = match &*phase {
            "B" | "E" | "X" => SpanTrack::Thread(thread),
            _ => SpanTrack::Own(self.track(event, &phase)?),
        };
        let name = || event.text(EventMember::Name).filter(|name| !name.is_empty());
        let part = match &*phase {
            "B" | "b" | "S" => SpanPart::Begin(self.spans.name(name()?.as_bytes())),
            "X" => {
                let length = event.at(EventMember::Length);
                let length = if *length == Scalar::Absent { 0 } else { length.nanoseconds()? };
                SpanPart::Whole(self.spans.name(name()?.as_bytes()), length)
            }
            _ => SpanPart::End,
        };
        self.spans.add(time, thread, track, part);
        self.translation.keeps();
        Some(EventPhase::Used)
    }

    /// The number of the track of an event. Older events (`S`, `F`) are paired by their names, too.
    fn track(&mut self, event: &ChromeEvent, phase: &str) -> Option<u64> {
        let id =
            [EventMember::Id, EventMember::GlobalId, EventMember::LocalId].into_iter().find_map(|id| event.text(id))?;
        let text = |member| event.text(member).unwrap_or_default();
        let process = event.text(EventMember::LocalId).map_or_else(Default::default, |_| text(EventMember::Process));
        let name = if matches!(phase, "S" | "F") { text(EventMember::Name) } else { Default::default() };
        let key = [text(EventMember::Category), text(EventMember::Scope), id, process, name].join("\0");
        let next = self.tracks.len() as u64;
        Some(*self.tracks.entry(key).or_insert(next))
    }

    /// The name of a thread. That of a process is the name of its first thread.
    fn name(&mut self, event: &ChromeEvent) -> Option<EventPhase> {
        let tid = match &*event.text(EventMember::Name)? {
            "thread_name" => EventMember::Thread,
            "process_name" => EventMember::Process,
            _ => return Some(EventPhase::Other),
        };
        let name = event.text(EventMember::Argument)?;
        let (Some(tid), Some(pid)) = (event.at(tid).id(), event.at(EventMember::Process).id()) else {
            return Some(EventPhase::Other);
        };
        self.translation.know(0, NamedThread { tid, pid, name: name.as_bytes() });
        Some(EventPhase::Used)
    }
}

/// Whether an event is of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventPhase {
    Used,
    Other,
}

/// The whole file, or its list of events.
struct ChromeDocument<'e, 't, 'c> {
    events: &'e mut ChromeEvents<'t>,
    bounds: &'c TextBounds,
}

impl<'de> DeserializeSeed<'de> for ChromeDocument<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ChromeDocument<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a list of events")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        loop {
            self.bounds.keep();
            let Some(key) = members.next_key::<String>()? else { return Ok(()) };
            if key == "traceEvents" {
                self.bounds.keep();
                members.next_value_seed(ChromeDocument { events: &mut *self.events, bounds: self.bounds })?;
            } else {
                self.bounds.skip();
                members.next_value::<IgnoredAny>()?;
            }
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        loop {
            let mut event = ChromeEvent::default();
            let seed = EventPart { event: &mut event, path: "", bounds: Some(self.bounds) };
            self.bounds.keep();
            if list.next_element_seed(seed)?.is_none() {
                return Ok(());
            }
            self.events.add(&event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::notice::Notice;
    use flate2::write::GzEncoder;
    use std::io::Write;

    /// The parts of spans in a text, and the notices.
    fn read_text(text: &[u8]) -> (usize, u64, u64) {
        let mut translation = Translation::new(String::new());
        let about = read(&mut { text }, text.len() as u64, &mut translation).unwrap().unwrap();
        let parts = about.spans.unwrap().moments(0).count();
        let count = |notice| translation.notices.count(notice);
        (parts, count(Notice::LinesUnread), count(Notice::RecordsUnused))
    }

    const EVENT: &str = r#"{"ph":"B","ts":1.5,"pid":1,"tid":2,"name":"a"}"#;

    #[test]
    fn read_takes_both_forms_cut_off_anywhere() {
        for (text, found) in [
            (format!("[{EVENT},{EVENT}]"), (2, 0, 0)),
            (format!("[{EVENT},\n"), (1, 0, 0)),
            (format!("[{EVENT}"), (1, 0, 0)),
            (format!("{{\"metadata\":[1,[2]],\"traceEvents\":[{EVENT}],\"x\":{{}}}}"), (1, 0, 0)),
            (format!("{{\"traceEvents\":[{EVENT},{EVENT}"), (2, 0, 0)),
            // In the middle of an event; no JSON; events that are none.
            (format!("[{EVENT},{{\"ph\":\"B\",\"ts"), (1, 1, 0)),
            (format!("[{EVENT}, what]"), (1, 1, 0)),
            (format!("[{EVENT},null,7,\"x\",[{EVENT}],{{}}]"), (1, 5, 0)),
            // No time; rows of a viewer; other phases.
            (EVENT.replace("\"ts\":1.5,", "").replace('{', "[{"), (0, 1, 0)),
            (format!("[{}]", EVENT.replace("\"tid\":2", "\"tid\":\"GPU\"")), (0, 0, 1)),
            (format!("[{}]", EVENT.replace("\"B\"", "\"C\"")), (0, 0, 1)),
        ] {
            assert_eq!(read_text(text.as_bytes()), found, "{text}");
        }
    }

    /// JavaScript cuts a name between the halves of a surrogate pair; other programs write names that are no UTF-8.
    #[test]
    fn read_keeps_events_whose_names_are_no_unicode() {
        for name in [&br"cut \ud83d"[..], br"\udc00", b"caf\xe9"] {
            let event = EVENT.replace("\"a\"", "\"x\"").into_bytes();
            let at = event.iter().position(|byte| *byte == b'x').unwrap();
            let event = [&event[..at], name, &event[at + 1..]].concat();
            let text = [b"[", &event[..], b",", &event, b",", EVENT.as_bytes(), b"]"].concat();
            assert_eq!(read_text(&text), (3, 0, 0), "{}", text.escape_ascii());
        }
    }

    #[test]
    fn read_bounds_events_and_compressed_texts() {
        let large = format!("[{EVENT},{{\"name\":\"{}", "x".repeat(5 << 20));
        assert_eq!(read_text(large.as_bytes()), (1, 1, 0));
        let deep = format!("[{EVENT},{{\"args\":{}", "[".repeat(1 << 20));
        assert_eq!(read_text(deep.as_bytes()), (1, 1, 0));
        // What is too large outside of events: elements and keys that are kept, brackets of what is skipped.
        let (long, brackets) = ("x".repeat(5 << 20), "[".repeat(1 << 20));
        for damaged in [
            format!("[{EVENT},\"{long}\",{EVENT}]"),
            format!("{{\"traceEvents\":[{EVENT}],\"{long}\":1}}"),
            format!("{{\"traceEvents\":[{EVENT}],\"x\":{brackets}"),
        ] {
            assert_eq!(read_text(damaged.as_bytes()), (1, 1, 0), "{}", &damaged[..100]);
        }
        assert_eq!(read_text(format!("{{\"traceEvents\":\"{long}\"}}").as_bytes()), (0, 1, 0));
        // What is skipped may be long, and have brackets in quotes.
        let skipped = format!("{{\"x\":\"{long}{brackets}\\\"{brackets}\",\"traceEvents\":[{EVENT}]}}");
        assert_eq!(read_text(skipped.as_bytes()), (1, 0, 0));
        let packed = |text: &[u8]| {
            let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::best());
            packed.write_all(text).unwrap();
            packed.finish().unwrap()
        };
        let whole = packed(format!("[{EVENT},{EVENT}]").as_bytes());
        assert_eq!(read_text(&whole), (2, 0, 0));
        assert!(is_one(&whole) && is_one(&whole[..whole.len() - 12]));
        assert_eq!(read_text(&whole[..whole.len() - 12]).1, 1);
        // A bomb ends at the largest ratio.
        let bomb = packed(&[b"[", " ".repeat(50 << 20).as_bytes()].concat());
        assert_eq!(read_text(&bomb), (0, 1, 0));
    }

    #[test]
    fn is_one_knows_the_begin_of_a_file() {
        let known = |text: &str| is_one(text.as_bytes());
        assert!(known(" [\n{\"name\":\"a\",\"ph\":\"M\"") && known("{\"a\":1,\"traceEvents\":["));
        assert!(!known("[1,2]") && !known("{\"ph\":1}") && !known("[{\"a\":1}]") && !known("") && !known("["));
    }
}
