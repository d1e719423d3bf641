//! The header of a perf.data: the recorded events, how they were recorded, and the machine.
//!
//! In a file a header of 104 bytes points at the attrs and at the data; after the data follows a table of sections,
//! one for each feature bit. In pipe mode (a header of 16 bytes) the same comes as records between the others. Both are
//! read into one [`Header`]. perf's `Documentation/perf.data-file-format.txt`. Sizes are checked against the file.

use super::attr::Attr;
use crate::base::cursor::{ByteOrder, Bytes, bits};
use crate::base::notice::{Notice, Notices};
use crate::base::text::copied;
use crate::input::coverage::Coverage;
use crate::input::error::FormatError;
use crate::input::tracepoint::format::Format;
use crate::input::tracepoint::head::{self, Head};
use foldhash::HashMap;
use std::ops::Range;

/// Features, by bit.
mod feature {
    pub const TRACING_DATA: u64 = 1;
    pub const BUILD_ID: u64 = 2;
    pub const HOSTNAME: u64 = 3;
    pub const OSRELEASE: u64 = 4;
    pub const ARCH: u64 = 6;
    pub const CMDLINE: u64 = 11;
    pub const EVENT_DESC: u64 = 12;
    pub const CLOCK_DATA: u64 = 29;
}

/// Bytes of the header of a file.
const HEADER: usize = 104;

/// Types of the records that are the header in pipe mode.
const ATTR: u32 = 64;
const TRACING_DATA: u32 = 66;
const BUILD_ID: u32 = 67;
const FEATURE: u32 = 80;
const AUXTRACE: u32 = 71;

/// The contents of the header.
#[derive(Clone, Debug, Default)]
pub struct Header {
    /// The order of the bytes of numbers.
    pub byte_order: ByteOrder,
    /// It was written in pipe mode.
    pub pipe: bool,
    /// The records of the recording.
    pub data: Range<usize>,
    /// The recorded events.
    pub attrs: Vec<Attr>,
    /// Formats of tracepoints.
    pub formats: Vec<Format>,
    /// Build ids by path.
    pub build_ids: HashMap<Vec<u8>, Vec<u8>>,
    /// `hostname`, `kernel_release`, `architecture`.
    pub environment: Vec<(&'static str, String)>,
    /// The command that recorded it.
    pub command: Vec<String>,
    /// The readings of two clocks at one moment.
    pub wall: Option<ClockReadings>,
    /// What of a file is described.
    pub(in crate::input) coverage: Coverage,
    /// What could not be read.
    pub notices: Notices,
}

/// The readings of two clocks at one moment, in ns.
#[derive(Clone, Copy, Debug)]
pub struct ClockReadings {
    /// Wall-clock time.
    pub wall: u64,
    /// The recorder's clock.
    pub clock: u64,
}

/// The header of a record.
#[derive(Clone, Copy, Debug)]
pub struct RecordHeader {
    pub kind: u32,
    /// Flags whose meaning depends on the type.
    pub misc: u16,
    /// Bytes of the record, header included.
    pub size: usize,
}

/// The header of the record at the beginning of `bytes`.
#[inline(always)]
pub fn record(bytes: &[u8], byte_order: ByteOrder) -> Option<RecordHeader> {
    let word = bits(bytes, 0, 64, byte_order)?;
    let (kind, misc, size) = match byte_order {
        ByteOrder::Little => (word as u32, (word >> 32) as u16, (word >> 48) as u16),
        ByteOrder::Big => ((word >> 32) as u32, (word >> 16) as u16, word as u16),
    };
    Some(RecordHeader { kind, misc, size: usize::from(size) })
}

/// The number of bytes after a record that belong to it but are not counted in its size.
pub fn bytes_after(kind: u32, body: &[u8], byte_order: ByteOrder) -> Option<usize> {
    match kind {
        TRACING_DATA => usize::try_from(bits(body, 0, 32, byte_order)?).ok()?.checked_next_multiple_of(8),
        AUXTRACE => usize::try_from(bits(body, 0, 64, byte_order)?).ok(),
        _ => Some(0),
    }
}

/// The reason why a perf.data cannot be read, and its remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PerfDataError {
    /// The file begins with another magic number.
    #[error("not a perf.data of version 2")]
    NotVersion2,
    /// The header passes the end of the file.
    #[error("the file ends inside its own header; copy the whole file again")]
    CutOff,
    /// The header gives no size of the data: perf writes it at the end.
    #[error(
        "the recording was not finished (perf was killed): names, formats and clock are missing; \
         stop `perf record` with Ctrl-C or SIGINT"
    )]
    Unfinished,
    /// No attr is recorded.
    #[error("it lists no recorded event")]
    NoEvents,
}

impl FormatError for PerfDataError {}

impl Header {
    /// Read the header of a file.
    pub fn read(file: &[u8]) -> Result<Header, PerfDataError> {
        let byte_order = match file.get(..8) {
            Some(b"PERFILE2") => ByteOrder::Little,
            Some(b"2ELIFREP") => ByteOrder::Big,
            _ => return Err(PerfDataError::NotVersion2),
        };
        let mut header = Header { byte_order, ..Header::default() };
        let word = |at: usize| bits(file, at as u64 * 8, 64, byte_order).and_then(|w| usize::try_from(w).ok());
        if word(8) == Some(16) {
            header.pipe = true;
            header.data = 16..file.len();
            header.read_records(file);
        } else {
            let section = |at: usize| Some((word(at)?, word(at + 8)?));
            let (entry, attrs, data) = (word(16), section(24), section(40));
            let (Some(entry), Some(attrs), Some(data)) = (entry, attrs, data) else {
                return Err(PerfDataError::CutOff);
            };
            if data.1 == 0 {
                return Err(PerfDataError::Unfinished);
            }
            let end = data.0.checked_add(data.1).filter(|end| *end <= file.len()).ok_or(PerfDataError::CutOff)?;
            header.data = data.0..end;
            let event_types = section(56).unwrap_or_default();
            for (at, size) in [(0, HEADER), attrs, data, event_types] {
                header.coverage.claim(at..at.saturating_add(size));
            }
            header.read_attrs(file, entry, attrs).ok_or(PerfDataError::CutOff)?;
            header.read_features(file, end);
        }
        if header.attrs.is_empty() {
            return Err(PerfDataError::NoEvents);
        }
        Ok(header)
    }

    fn read_attrs(&mut self, file: &[u8], entry: usize, (at, size): (usize, usize)) -> Option<()> {
        if entry < 64 + 16 {
            return None;
        }
        let section = file.get(at..at.checked_add(size)?)?;
        for one in section.chunks_exact(entry) {
            let (attr, ids) = one.split_at_checked(entry - 16)?;
            let mut attr = Attr::parse(attr, self.byte_order)?;
            let mut place = Bytes::new(ids);
            let (from, bytes) = (place.u64(self.byte_order)?, place.u64(self.byte_order)?);
            let from = usize::try_from(from).ok()?;
            let end = from.checked_add(usize::try_from(bytes).ok()?)?;
            let all = file.get(from..end)?;
            self.coverage.claim(from..end);
            attr.ids = words(all, self.byte_order);
            self.attrs.push(attr);
        }
        Some(())
    }

    /// Reads the table of sections after the data.
    fn read_features(&mut self, file: &[u8], table: usize) {
        let begin = table;
        let mut table = Bytes::new(file.get(begin..).unwrap_or(&[]));
        for bit in 0..256u64 {
            // Four words of 64 bits from byte 72 on.
            let word = bits(file, (72 + bit / 64 * 8) * 8, 64, self.byte_order).unwrap_or(0);
            if word >> (bit % 64) & 1 == 0 {
                continue;
            }
            let place = table.u64(self.byte_order).zip(table.u64(self.byte_order));
            let place = place.and_then(|(at, size)| {
                let at = usize::try_from(at).ok()?;
                Some(at..at.checked_add(usize::try_from(size).ok()?)?)
            });
            let section = place.and_then(|place| {
                let section = file.get(place.clone())?;
                self.coverage.claim(place);
                Some(section)
            });
            let read = section.and_then(|section| self.feature(bit, section));
            self.unread_unless(read, || format!("feature {bit}"));
        }
        self.coverage.claim(begin..begin.saturating_add(table.at()));
    }

    /// Count a part that could not be read.
    fn unread_unless(&mut self, read: Option<()>, part: impl FnOnce() -> String) {
        self.notices.add(Notice::HeaderUnread, read.is_none().into(), || format!("{} of the perf.data", part()));
    }

    fn feature(&mut self, bit: u64, section: &[u8]) -> Option<()> {
        let byte_order = self.byte_order;
        let mut bytes = Bytes::new(section);
        match bit {
            feature::TRACING_DATA => self.tracing(section)?,
            feature::BUILD_ID => {
                while let Some(RecordHeader { misc, size, .. }) = record(bytes.rest(), byte_order) {
                    let one = bytes.take(size.max(8))?;
                    self.build_id(misc, one.get(8..)?);
                }
            }
            feature::HOSTNAME => self.environment.push(("hostname", string(&mut bytes, byte_order)?)),
            feature::OSRELEASE => self.environment.push(("kernel_release", string(&mut bytes, byte_order)?)),
            feature::ARCH => self.environment.push(("architecture", string(&mut bytes, byte_order)?)),
            feature::CMDLINE => {
                for _ in 0..bytes.u32(byte_order)? {
                    self.command.push(string(&mut bytes, byte_order)?);
                }
            }
            feature::EVENT_DESC => {
                let (n, size) = (bytes.u32(byte_order)?, bytes.u32(byte_order)?);
                for _ in 0..n {
                    let attr = Attr::parse(bytes.take(size as usize)?, byte_order)?;
                    let ids = bytes.u32(byte_order)? as usize;
                    let name = string(&mut bytes, byte_order)?;
                    let ids = words(bytes.take(ids.checked_mul(8)?)?, byte_order);
                    let same = |a: &&mut Attr| {
                        a.name.is_none() && (a.kind, a.config) == (attr.kind, attr.config) && a.ids == ids
                    };
                    if let Some(known) = self.attrs.iter_mut().find(same) {
                        known.name = Some(name);
                    }
                }
            }
            feature::CLOCK_DATA => {
                let (_version, _id) = (bytes.u32(byte_order)?, bytes.u32(byte_order)?);
                self.wall = Some(ClockReadings { wall: bytes.u64(byte_order)?, clock: bytes.u64(byte_order)? });
            }
            _ => {}
        }
        Some(())
    }

    fn tracing(&mut self, section: &[u8]) -> Option<()> {
        let mut bytes = Bytes::new(section);
        let head = Head::read(&mut bytes)?;
        let mut texts = Vec::new();
        let read = head::metadata(&mut bytes, &head, &mut texts);
        // The recorded events' alone: too few to share.
        self.formats.extend(texts.iter().filter_map(|text| text.parse(&head)));
        read.map(|_| ())
    }

    /// Reads a build id: pid, 20 bytes of id, the length of the id (if `misc` has that flag), 3 bytes, path.
    fn build_id(&mut self, misc: u16, body: &[u8]) -> Option<()> {
        let id = body.get(4..24)?;
        let length = if misc & 0x8000 != 0 { usize::from(*body.get(24)?).min(20) } else { 20 };
        let path = body.get(28..)?;
        let path = path.get(..memchr::memchr(0, path).unwrap_or(path.len()))?;
        self.build_ids.insert(path.to_vec(), id.get(..length)?.to_vec());
        Some(())
    }

    /// Pipe mode: the header is among the records.
    fn read_records(&mut self, file: &[u8]) {
        let mut at = self.data.start;
        while let Some(RecordHeader { kind, misc, size }) =
            file.get(at..).and_then(|rest| record(rest, self.byte_order))
        {
            let Some(body) = size.checked_sub(8).and_then(|n| file.get(at + 8..at + 8 + n)) else { return };
            let Some(more) = bytes_after(kind, body, self.byte_order) else { return };
            let after = file.get(at + size..).unwrap_or(&[]);
            match kind {
                ATTR => {
                    let read = self.attr_record(body);
                    self.unread_unless(read, || format!("the event at byte {at}"));
                }
                TRACING_DATA => {
                    let read = self.tracing(after.get(..more).unwrap_or(after));
                    self.unread_unless(read, || format!("the formats at byte {at}"));
                }
                BUILD_ID => {
                    let read = self.build_id(misc, body);
                    self.unread_unless(read, || format!("the build id at byte {at}"));
                }
                FEATURE => {
                    let bit = bits(body, 0, 64, self.byte_order).unwrap_or(u64::MAX);
                    let read = self.feature(bit, body.get(8..).unwrap_or(&[]));
                    self.unread_unless(read, || format!("feature {bit}"));
                }
                _ => {}
            }
            at = match at.checked_add(size).and_then(|at| at.checked_add(more)) {
                Some(next) => next,
                None => return,
            };
        }
    }

    /// Reads an event of pipe mode: the attr, then its ids.
    fn attr_record(&mut self, body: &[u8]) -> Option<()> {
        let size = bits(body, 32, 32, self.byte_order)? as usize;
        let (attr, ids) = body.split_at_checked(size)?;
        let mut attr = Attr::parse(attr, self.byte_order)?;
        attr.ids = words(ids, self.byte_order);
        self.attrs.push(attr);
        Some(())
    }
}

fn words(bytes: &[u8], byte_order: ByteOrder) -> Vec<u64> {
    bytes.chunks_exact(8).filter_map(|word| bits(word, 0, 64, byte_order)).collect()
}

/// Length with padding, text, NUL.
fn string(bytes: &mut Bytes<'_>, byte_order: ByteOrder) -> Option<String> {
    let text = bytes.counted_u32(byte_order)?;
    let text = text.get(..memchr::memchr(0, text).unwrap_or(text.len()))?;
    Some(copied(text))
}

/// True where the options of perf choose threads (`-p`, `-t`, `-u`), and no CPUs (`-a`, `-C`). The words of the
/// recorded command count as options too, so an `-a` there hides the choice.
pub fn chooses_threads(command: &[String]) -> bool {
    let has = |letter: char, long: &str| {
        command.iter().skip(1).any(|word| match word.strip_prefix('-') {
            Some(rest) if rest.starts_with('-') => {
                let name = rest.trim_start_matches('-').split('=').next().unwrap_or_default();
                name == long
            }
            Some(rest) => rest.starts_with(letter) || (letter == 'a' && rest.contains(letter)),
            None => false,
        })
    };
    let threads = has('p', "pid") || has('t', "tid") || has('u', "uid");
    threads && !has('a', "all-cpus") && !has('C', "cpu")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chooses_threads_reads_the_options_of_perf() {
        let of = |line: &str| chooses_threads(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for own in ["perf record -p 7", "perf record -e x --pid=7", "perf record -g -t 7,8", "perf record -u www"] {
            assert!(of(own), "{own}");
        }
        for all in ["perf record -a", "perf record -ag -- app -p 3", "perf record -C 0 -- app -p 3", "perf record app"]
        {
            assert!(!of(all), "{all}");
        }
    }
}
