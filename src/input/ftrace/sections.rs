//! The parts of a trace.dat of version 6 or 7: the description of the recording, and the places of each CPU's pages.
//!
//! Version 6 is the head, its parts one after the other, options and a table of the CPUs' data. In version 7 all parts
//! are sections, perhaps compressed, to which chained lists of options point. Follows trace-cmd's
//! `Documentation/trace-cmd/trace-cmd.dat.v*.txt`, except for the size of sections (64 bits) and the page size in a
//! buffer's option, which these texts do not describe. Sizes are checked against the file; a chain of options that
//! returns to an earlier place ends there.

use super::maps::{self, MappedFile};
use super::pages::TickScale;
use super::unpack::{self, Compression};
use crate::base::cursor::Bytes;
use crate::base::notice::{Notice, Notices};
use crate::base::text::{copied, copied_exactly};
use crate::base::time::Ns;
use crate::input::tracepoint::format::Format;
use crate::input::tracepoint::head::{self, FormatText, Head};
use std::borrow::Cow;
use std::ops::Range;

/// Options, and in version 7 sections, by number.
mod id {
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
    /// Its CPUs.
    pub cpus: Vec<CpuData>,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Sections {
    /// The head.
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
}

/// A long text of the file. It is copied only where it was compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SymbolText {
    /// Its place in the file.
    InFile(Range<usize>),
    /// The text.
    Unpacked(Vec<u8>),
}

/// The plain bytes of a section.
struct PlainSection<'f> {
    bytes: Cow<'f, [u8]>,
    /// The place of these bytes in the file, where they are not compressed.
    at: Option<usize>,
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
    /// The CPU.
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

    fn page_header(&mut self, text: &str) {
        if let Some(format) = Format::parse("ftrace", &format!("name: page\nID: 0\n{text}"), self.head.long)
            && let Some(data) = format.fields.iter().find(|f| f.name == "data")
        {
            self.page_data = data.at.clamp(8, self.head.page);
        }
    }

    fn commands(&mut self, text: &[u8]) {
        let line = |line: &[u8]| {
            let space = memchr::memchr(b' ', line)?;
            let (tid, name) = line.split_at_checked(space)?;
            Some(SavedName { tid: copied_exactly(tid)?.parse().ok()?, name: name.get(1..)?.to_vec() })
        };
        self.commands.extend(text.split(|b| *b == b'\n').filter_map(line));
    }

    fn version_6(&mut self, file: &[u8], bytes: &mut Bytes<'_>) -> Option<()> {
        let head = self.head;
        let parts = head::metadata(bytes, &head, &mut self.formats)?;
        self.page_header(&parts.page);
        self.symbols = SymbolText::InFile(parts.symbols);
        self.commands(parts.commands);
        let cpus = bytes.u32(head.byte_order)?;
        let mut next = bytes.take(10)?;
        if next == b"options  \0" {
            loop {
                let option = bytes.u16(head.byte_order)?;
                if option == id::DONE {
                    break;
                }
                let content = bytes.counted_u32(head.byte_order)?;
                // An option that cannot be parsed is ignored.
                let _ = self.option_6(file, option, content);
            }
            next = bytes.take(10)?;
        }
        if next == b"flyrecord\0" {
            let top = self.table(bytes, cpus, String::new())?;
            self.buffers.insert(0, top);
        }
        Some(())
    }

    /// One entry of a version 6 buffer for each CPU.
    fn table(&self, bytes: &mut Bytes<'_>, cpus: u32, name: String) -> Option<Buffer> {
        let byte_order = self.head.byte_order;
        let mut buffer = Buffer { name, page: self.head.page, ..Buffer::default() };
        for cpu in 0..cpus {
            let (at, size) = (bytes.u64(byte_order)?, bytes.u64(byte_order)?);
            buffer.cpus.push(CpuData { cpu, at: usize::try_from(at).ok()?, bytes: usize::try_from(size).ok()? });
        }
        Some(buffer)
    }

    fn option_6(&mut self, file: &[u8], option: u16, content: &[u8]) -> Option<()> {
        if option != id::BUFFER {
            return self.option(option, content);
        }
        let mut bytes = Bytes::new(content);
        let at = usize::try_from(bytes.u64(self.head.byte_order)?).ok()?;
        let name = copied(bytes.text()?);
        let mut place = Bytes::new(file.get(at..)?);
        // The number of CPUs is that of the top-level buffer.
        let mut tag = place.take(10)?;
        if tag == b"options  \0" {
            while place.u16(self.head.byte_order)? != id::DONE {
                place.counted_u32(self.head.byte_order)?;
            }
            tag = place.take(10)?;
        }
        let own = self.lost.iter().filter(|lost| lost.buffer.is_empty()).count();
        let cpus = own.max(self.buffers.first().map_or(0, |b| b.cpus.len())) as u32;
        if tag == b"flyrecord\0" {
            let buffer = self.table(&mut place, cpus, name)?;
            self.buffers.push(buffer);
        }
        Some(())
    }

    /// The parts that versions 6 and 7 share.
    fn option(&mut self, option: u16, content: &[u8]) -> Option<()> {
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

    fn version_7(&mut self, file: &[u8], bytes: &mut Bytes<'_>) -> Option<()> {
        let byte_order = self.head.byte_order;
        let _version = bytes.text()?;
        let mut next = bytes.u64(byte_order)?;
        let mut seen = Vec::new();
        while next != 0 && !seen.contains(&next) {
            seen.push(next);
            next = self.options(file, usize::try_from(next).ok()?)?;
        }
        Some(())
    }

    /// Reads one list of options; returns the place of the next one, or 0.
    fn options(&mut self, file: &[u8], at: usize) -> Option<u64> {
        let byte_order = self.head.byte_order;
        let mut bytes = Bytes::new(file.get(at..)?);
        let (_id, _flags, _name, size) =
            (bytes.u16(byte_order)?, bytes.u16(byte_order)?, bytes.u32(byte_order)?, bytes.u64(byte_order)?);
        let list = bytes.rest();
        let mut options = Bytes::new(list.get(..usize::try_from(size).ok()?.min(list.len()))?);
        while let Some(option) = options.u16(byte_order) {
            let content = options.counted_u32(byte_order)?;
            match option {
                id::DONE => return Bytes::new(content).u64(byte_order),
                id::BUFFER => {
                    let buffer = self.buffer(content)?;
                    self.buffers.push(buffer);
                }
                id::HEADER_INFO | id::FTRACE_EVENTS | id::EVENT_FORMATS | id::KALLSYMS | id::CMDLINES => {
                    let at = usize::try_from(Bytes::new(content).u64(byte_order)?).ok()?;
                    let section = self.section(file, at)?;
                    self.content(option, &section)?;
                }
                // An option that cannot be parsed is ignored.
                _ => drop(self.option(option, content)),
            }
        }
        Some(0)
    }

    fn section<'f>(&self, file: &'f [u8], at: usize) -> Option<PlainSection<'f>> {
        let byte_order = self.head.byte_order;
        let mut bytes = Bytes::new(file.get(at..)?);
        let (_id, flags, _name) = (bytes.u16(byte_order)?, bytes.u16(byte_order)?, bytes.u32(byte_order)?);
        let content = bytes.counted_u64(byte_order)?;
        if flags & 1 == 0 {
            let at = at + bytes.at() - content.len();
            return Some(PlainSection { bytes: Cow::Borrowed(content), at: Some(at) });
        }
        let mut packed = Bytes::new(content);
        let (length, plain) = (packed.u32(byte_order)? as usize, packed.u32(byte_order)? as usize);
        let plain = unpack::whole(self.compression, packed.take(length)?, plain)?;
        Some(PlainSection { bytes: Cow::Owned(plain), at: None })
    }

    fn content(&mut self, section: u16, content: &PlainSection<'_>) -> Option<()> {
        let head = self.head;
        let mut bytes = Bytes::new(&content.bytes);
        match section {
            id::HEADER_INFO => {
                let text = head::page_header(&mut bytes, head.byte_order)?;
                self.page_header(&text);
            }
            id::FTRACE_EVENTS => head::ftrace_formats(&mut bytes, &head, &mut self.formats)?,
            id::EVENT_FORMATS => head::event_formats(&mut bytes, &head, &mut self.formats)?,
            id::KALLSYMS => {
                let symbols = bytes.counted_u32(head.byte_order)?;
                self.symbols = match content.at {
                    Some(at) => SymbolText::InFile(at + bytes.at() - symbols.len()..at + bytes.at()),
                    None => SymbolText::Unpacked(symbols.to_vec()),
                };
            }
            _ => {
                let text = bytes.counted_u64(head.byte_order)?;
                self.commands(text);
            }
        }
        Some(())
    }

    fn buffer(&self, content: &[u8]) -> Option<Buffer> {
        let byte_order = self.head.byte_order;
        let mut bytes = Bytes::new(content);
        let _section = bytes.u64(byte_order)?;
        let name = copied(bytes.text()?);
        let clock = copied(bytes.text()?);
        let page = bytes.u32(byte_order)? as usize;
        let page = if page.is_power_of_two() && (64..=1 << 24).contains(&page) { page } else { self.head.page };
        let mut buffer = Buffer { name, clock, page, cpus: Vec::new() };
        for _ in 0..bytes.u32(byte_order)? {
            let (cpu, at, size) = (bytes.u32(byte_order)?, bytes.u64(byte_order)?, bytes.u64(byte_order)?);
            buffer.cpus.push(CpuData { cpu, at: usize::try_from(at).ok()?, bytes: usize::try_from(size).ok()? });
        }
        Some(buffer)
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
