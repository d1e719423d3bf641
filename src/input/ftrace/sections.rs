//! The parts of a trace.dat of version 6 or 7: the description of the recording, and the places of each CPU's pages.
//!
//! The parts of each version are in `version_6.rs` and `version_7.rs`; what both share is here. Follows trace-cmd's
//! `Documentation/trace-cmd/trace-cmd.dat.v*.txt`, except for the size of sections (64 bits) and the page size in a
//! buffer's option, which these texts do not describe. Sizes are checked against the file; a chain of options that
//! returns to an earlier place ends there.

use super::maps::{self, MappedFile};
use super::pages::TickScale;
use super::unpack::Compression;
use crate::base::cursor::Bytes;
use crate::base::notice::{Notice, Notices};
use crate::base::text::{copied, copied_exactly};
use crate::base::time::Ns;
use crate::input::coverage::Coverage;
use crate::input::error::FormatError;
use crate::input::tracepoint::format::Format;
use crate::input::tracepoint::head::{FormatText, Head};
use std::ops::Range;

/// Options, and in version 7 sections, by number.
pub(super) mod id {
    pub const DONE: u16 = 0;
    pub const BUFFER: u16 = 3;
    pub const CPUSTAT: u16 = 2;
    pub const TRACECLOCK: u16 = 4;
    pub const UNAME: u16 = 5;
    pub const OFFSET: u16 = 7;
    pub const PROCMAPS: u16 = 10;
    pub const GUEST: u16 = 13;
    pub const TSC2NSEC: u16 = 14;
    pub const HEADER_INFO: u16 = 16;
    pub const FTRACE_EVENTS: u16 = 17;
    pub const EVENT_FORMATS: u16 = 18;
    pub const KALLSYMS: u16 = 19;
    pub const CMDLINES: u16 = 21;
}

/// The data of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuData {
    /// Number of the CPU.
    pub cpu: u32,
    /// The place of its pages in the file.
    pub at: usize,
    /// Bytes, in version 7 without the number of chunks.
    pub bytes: usize,
}

/// A buffer: the top-level one, or that of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    /// Its name; empty for the top-level buffer.
    pub name: String,
    /// Its clock, if its option gives one.
    pub clock: String,
    /// Bytes of a page.
    pub page: usize,
    pub cpus: Vec<CpuData>,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Sections {
    pub head: Head,
    /// How buffers are compressed.
    pub compression: Compression,
    /// Offset of the data in a page.
    pub page_data: usize,
    /// The texts of the formats of all events.
    pub formats: Vec<FormatText>,
    /// `/proc/kallsyms` of the machine; empty where not recorded.
    pub symbols: SymbolText,
    /// Last names of threads.
    pub commands: Vec<SavedName>,
    /// Buffers in the order of their options.
    pub buffers: Vec<Buffer>,
    /// The selected clock.
    pub clock: String,
    /// `Linux HOST RELEASE ARCH`.
    pub uname: Vec<String>,
    /// Nanoseconds to add to reach wall time.
    pub offset: Ns,
    /// The scale of the clock, where it does not count nanoseconds.
    pub ticks: Option<TickScale>,
    /// Events that each CPU lost in each buffer.
    pub lost: Vec<LostCount>,
    /// The buffer of the counters that follow: those of an instance follow its name.
    counted: String,
    /// Guests were recorded with it.
    pub guests: bool,
    /// The files that processes had mapped.
    pub maps: Vec<MappedFile>,
    /// What of the file is described.
    pub(super) coverage: Coverage,
    /// What is missing or could not be read.
    pub notices: Notices,
}

/// A long text of the file. It is copied only where it was compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SymbolText {
    /// Its place in the file.
    InFile(Range<usize>),
    /// The text.
    Unpacked(Vec<u8>),
}

/// The saved name of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedName {
    /// Thread id.
    pub tid: i32,
    /// The name; any bytes.
    pub name: Vec<u8>,
}

/// The events that a CPU lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostCount {
    /// The name of the buffer; empty for the top-level one.
    pub buffer: String,
    pub cpu: u32,
    /// Their number.
    pub events: u64,
}

/// The reason why a trace.dat cannot be read, and its remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceDatError {
    /// The header passes the end of the file.
    #[error("the file ends inside its own header; end `trace-cmd record` with Ctrl-C")]
    CutOff,
    /// Another version.
    #[error("version {0} of trace.dat is not supported; 6 and 7 are")]
    Version(u32),
    /// Sizes that no machine has.
    #[error("a page size of {page} bytes and a long of {long} bytes are not possible")]
    Sizes {
        /// Bytes of a page.
        page: usize,
        /// Bytes of a `long`.
        long: u8,
    },
    /// Another compression.
    #[error("compression {0} is not supported; none, zlib and zstd are")]
    Compression(String),
}

impl FormatError for TraceDatError {}

impl Sections {
    /// Read the sections of a file.
    pub fn read(file: &[u8]) -> Result<Sections, TraceDatError> {
        let mut bytes = Bytes::new(file);
        let head = Head::read(&mut bytes).ok_or(TraceDatError::CutOff)?;
        if !matches!(head.version, 6 | 7) {
            return Err(TraceDatError::Version(head.version));
        }
        if head.page < 64 || head.page > 1 << 24 || !head.page.is_power_of_two() || !matches!(head.long, 4 | 8) {
            return Err(TraceDatError::Sizes { page: head.page, long: head.long });
        }
        let mut all = Sections {
            head,
            compression: Compression::None,
            page_data: 8 + usize::from(head.long),
            formats: Vec::new(),
            symbols: SymbolText::InFile(0..0),
            commands: Vec::new(),
            buffers: Vec::new(),
            clock: String::new(),
            uname: Vec::new(),
            offset: 0,
            ticks: None,
            lost: Vec::new(),
            counted: String::new(),
            guests: false,
            maps: Vec::new(),
            coverage: Coverage::default(),
            notices: Notices::default(),
        };
        if head.version == 6 {
            all.version_6(file, &mut bytes).ok_or(TraceDatError::CutOff)?;
        } else {
            let compression = bytes.text().ok_or(TraceDatError::CutOff)?;
            let name = copied(compression);
            all.compression = Compression::named(&name).ok_or(TraceDatError::Compression(name))?;
            all.version_7(file, &mut bytes).ok_or(TraceDatError::CutOff)?;
        }
        Ok(all)
    }

    /// The clock of the first buffer with data. Buffers on other clocks are emptied: their times cannot be compared.
    pub fn use_one_clock(&mut self, notices: &mut Notices) -> String {
        let chosen = if self.clock.is_empty() { "local" } else { &self.clock }.to_owned();
        let mut used: Option<String> = None;
        for buffer in self.buffers.iter_mut().filter(|buffer| buffer.cpus.iter().any(|cpu| cpu.bytes > 0)) {
            // Version 6 reports the clock of the top-level buffer alone.
            let own = if buffer.clock.is_empty() { &chosen } else { &buffer.clock };
            let used = used.get_or_insert_with(|| own.clone());
            if used != own {
                notices.add(Notice::BufferClock, 1, || format!("{}: {own}, not {used}", buffer.name));
                buffer.cpus.clear();
            }
        }
        used.unwrap_or(chosen)
    }

    /// An option could not be read.
    pub(super) fn unread(&mut self, option: u16) {
        self.notices.add(Notice::HeaderUnread, 1, || format!("option {option} of the trace.dat"));
    }

    /// The part that says where the events are is missing.
    pub(super) fn unfinished(&mut self, place: impl FnOnce() -> String) {
        self.notices.add(Notice::RecordingUnfinished, 1, place);
    }

    pub(super) fn page_header(&mut self, text: &str) {
        if let Some(format) = Format::parse("ftrace", &format!("name: page\nID: 0\n{text}"), self.head.long)
            && let Some(data) = format.fields.iter().find(|f| f.name == "data")
        {
            self.page_data = data.at.clamp(8, self.head.page);
        }
    }

    pub(super) fn commands(&mut self, text: &[u8]) {
        let line = |line: &[u8]| {
            let space = memchr::memchr(b' ', line)?;
            let (tid, name) = line.split_at_checked(space)?;
            Some(SavedName { tid: copied_exactly(tid)?.parse().ok()?, name: name.get(1..)?.to_vec() })
        };
        self.commands.extend(text.split(|b| *b == b'\n').filter_map(line));
    }

    /// The parts that versions 6 and 7 share.
    pub(super) fn option(&mut self, option: u16, content: &[u8]) -> Option<()> {
        let byte_order = self.head.byte_order;
        let text = || copied(content.get(..memchr::memchr(0, content).unwrap_or(content.len())).unwrap_or(&[]));
        match option {
            id::CPUSTAT => match text().trim().strip_prefix("Buffer: ") {
                Some(name) => self.counted = name.to_owned(),
                None => self.lost.extend(lost(&text(), &self.counted)),
            },
            id::TRACECLOCK => {
                let chosen = text();
                let chosen = chosen.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(name, _)| name);
                self.clock = chosen.unwrap_or("local").to_owned();
            }
            id::UNAME => self.uname = text().split_whitespace().map(str::to_owned).collect(),
            id::OFFSET => self.offset = offset(&text()),
            id::GUEST => self.guests = true,
            id::PROCMAPS => self.maps.extend(maps::parse(content)),
            id::TSC2NSEC => {
                let mut bytes = Bytes::new(content);
                let (multiplier, shift) = (bytes.u32(byte_order)?, bytes.u32(byte_order)?);
                self.ticks = Some(TickScale { multiplier, shift, offset: bytes.u64(byte_order)? });
            }
            _ => {}
        }
        Some(())
    }
}

/// The events that a CPU lost: overwritten, not committed, dropped.
fn lost(text: &str, buffer: &str) -> Option<LostCount> {
    let value = |line: &str| line.rsplit(':').next()?.trim().parse::<u64>().ok();
    let cpu = text.lines().find(|line| line.starts_with("CPU")).and_then(value)?;
    let counts = ["overrun:", "commit overrun:", "dropped events:"];
    let of = text.lines().filter(|line| counts.iter().any(|name| line.starts_with(name))).filter_map(value);
    let (cpu, buffer) = (u32::try_from(cpu).ok()?, buffer.to_owned());
    Some(LostCount { buffer, cpu, events: of.fold(0, u64::saturating_add) })
}

/// A number of nanoseconds, in decimal or after `0x`.
fn offset(text: &str) -> Ns {
    let text = text.trim();
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let number = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(|n| n as i64),
        None => digits.parse().ok(),
    };
    number.unwrap_or(0).wrapping_mul(sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_adds_up_three_counters() {
        let text = "CPU: 3\nentries: 10\noverrun: 5\ncommit overrun: 2\nbytes: 99\ndropped events: 1\nread events: 7\n";
        assert_eq!(lost(text, "b"), Some(LostCount { buffer: "b".to_owned(), cpu: 3, events: 8 }));
        assert_eq!((offset("-12"), offset("0x10\n"), offset("?")), (-12, 16, 0));
    }
}
