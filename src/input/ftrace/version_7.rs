//! The parts of a trace.dat of version 7: sections, perhaps compressed, to which chained lists of options point.

use super::sections::{Buffer, CpuData, Sections, SymbolText, id};
use super::unpack::{self, CHUNK_COUNT, Compression};
use crate::base::cursor::Bytes;
use crate::base::text::copied;
use crate::input::tracepoint::head;
use std::borrow::Cow;

/// The header of a section.
struct SectionHeader<'f> {
    id: u16,
    flags: u16,
    /// Bytes of its content.
    size: usize,
    /// At its content.
    bytes: Bytes<'f>,
}

/// The plain bytes of a section.
struct PlainSection<'f> {
    bytes: Cow<'f, [u8]>,
    /// The place of these bytes in the file, where they are not compressed.
    at: Option<usize>,
}

impl Sections {
    /// Read the lists of options and what they lead to. `None` where the first passes the end.
    pub(super) fn version_7(&mut self, file: &[u8], bytes: &mut Bytes<'_>) -> Option<()> {
        let byte_order = self.head.byte_order;
        let _version = bytes.text()?;
        let mut next = bytes.u64(byte_order)?;
        self.coverage.claim(0..bytes.at());
        if next == 0 {
            self.unfinished(|| "no options".to_owned());
        }
        let mut seen = Vec::new();
        while next != 0 && !seen.contains(&next) {
            let found = usize::try_from(next).ok().and_then(|at| self.options(file, at));
            match found {
                Some(following) => {
                    seen.push(next);
                    next = following;
                }
                None if seen.is_empty() => return None,
                None => {
                    self.unfinished(|| format!("no options at byte {next}"));
                    break;
                }
            }
        }
        self.claim_sections(file);
        Some(())
    }

    /// Sections to which no option leads: texts that analyses do not need. The data of a buffer are no such section.
    fn claim_sections(&mut self, file: &[u8]) {
        for part in self.coverage.rest(file) {
            let mut at = part.start;
            while let Some(header) = file.get(at..part.end).and_then(|rest| self.header(rest)) {
                let end = at.saturating_add(header.bytes.at()).saturating_add(header.size);
                if header.id == id::BUFFER || end > part.end {
                    break;
                }
                self.coverage.claim(at..end);
                at = end;
            }
        }
    }

    /// The header of a section.
    fn header<'f>(&self, section: &'f [u8]) -> Option<SectionHeader<'f>> {
        let byte_order = self.head.byte_order;
        let mut bytes = Bytes::new(section);
        let (id, flags, _name) = (bytes.u16(byte_order)?, bytes.u16(byte_order)?, bytes.u32(byte_order)?);
        let size = usize::try_from(bytes.u64(byte_order)?).ok()?;
        Some(SectionHeader { id, flags, size, bytes })
    }

    /// Reads one list of options; returns the place of the next one, or 0.
    fn options(&mut self, file: &[u8], at: usize) -> Option<u64> {
        let byte_order = self.head.byte_order;
        let SectionHeader { id: section, size, bytes, .. } = self.header(file.get(at..)?)?;
        if section != id::DONE {
            self.unfinished(|| format!("no options at byte {at}"));
            return Some(0);
        }
        let list = bytes.rest();
        let mut options = Bytes::new(list.get(..size.min(list.len()))?);
        self.coverage.claim(at..at.saturating_add(bytes.at()).saturating_add(size));
        while let Some(option) = options.u16(byte_order) {
            let content = options.counted_u32(byte_order)?;
            let read = match option {
                id::DONE => return Bytes::new(content).u64(byte_order),
                id::BUFFER => self.buffer(file, content),
                id::HEADER_INFO | id::FTRACE_EVENTS | id::EVENT_FORMATS | id::KALLSYMS | id::CMDLINES => {
                    self.section(file, option, content)
                }
                _ => self.option(option, content),
            };
            if read.is_none() {
                self.unread(option);
            }
        }
        self.unfinished(|| format!("the options at byte {at} have no end"));
        Some(0)
    }

    /// Reads the section to which an option leads.
    fn section(&mut self, file: &[u8], option: u16, content: &[u8]) -> Option<()> {
        let byte_order = self.head.byte_order;
        let at = usize::try_from(Bytes::new(content).u64(byte_order)?).ok()?;
        let SectionHeader { flags, size, mut bytes, .. } = self.header(file.get(at..)?)?;
        let (begin, content) = (at.checked_add(bytes.at())?, bytes.take(size)?);
        self.coverage.claim(at..begin + size);
        if flags & 1 == 0 {
            return self.content(option, &PlainSection { bytes: Cow::Borrowed(content), at: Some(begin) });
        }
        let mut packed = Bytes::new(content);
        let (length, plain) = (packed.u32(byte_order)? as usize, packed.u32(byte_order)? as usize);
        let plain = unpack::whole(self.compression, packed.take(length)?, plain)?;
        self.content(option, &PlainSection { bytes: Cow::Owned(plain), at: None })
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

    fn buffer(&mut self, file: &[u8], content: &[u8]) -> Option<()> {
        let byte_order = self.head.byte_order;
        let mut bytes = Bytes::new(content);
        let section = usize::try_from(bytes.u64(byte_order)?).ok()?;
        if let Some(header) = file.get(section..).filter(|_| section > 0).and_then(|section| self.header(section)) {
            let end = section.saturating_add(header.bytes.at()).saturating_add(header.size);
            self.coverage.claim(section..end);
        }
        let name = copied(bytes.text()?);
        let clock = copied(bytes.text()?);
        let page = bytes.u32(byte_order)? as usize;
        let page = if page.is_power_of_two() && (64..=1 << 24).contains(&page) { page } else { self.head.page };
        let mut buffer = Buffer { name, clock, page, cpus: Vec::new() };
        for _ in 0..bytes.u32(byte_order)? {
            let (cpu, at, size) = (bytes.u32(byte_order)?, bytes.u64(byte_order)?, bytes.u64(byte_order)?);
            let (at, bytes) = (usize::try_from(at).ok()?, usize::try_from(size).ok()?);
            // Compressed data begin with the number of their chunks, which their size does not count.
            let count = if self.compression == Compression::None { 0 } else { CHUNK_COUNT };
            self.coverage.claim(at..at.saturating_add(bytes).saturating_add(count));
            buffer.cpus.push(CpuData { cpu, at, bytes });
        }
        self.buffers.push(buffer);
        Some(())
    }
}
