//! The parts of a trace.dat of version 6: one after the other, options, and a table of the CPUs' data. An option leads
//! to the table of each instance.

use super::sections::{Buffer, CpuData, Sections, SymbolText, id};
use crate::base::cursor::Bytes;
use crate::base::text::copied;
use crate::input::tracepoint::head;

/// The mark before the options.
const OPTIONS: &[u8] = b"options  \0";
/// The mark before the table of the CPUs' data.
const TABLE: &[u8] = b"flyrecord\0";

impl Sections {
    /// Read the parts after the head. `None` where one passes the end.
    pub(super) fn version_6(&mut self, file: &[u8], bytes: &mut Bytes<'_>) -> Option<()> {
        let head = self.head;
        let parts = head::metadata(bytes, &head, &mut self.formats)?;
        self.page_header(&parts.page);
        self.symbols = SymbolText::InFile(parts.symbols);
        self.commands(parts.commands);
        let cpus = bytes.u32(head.byte_order)?;
        let mut next = bytes.take(10)?;
        if next == OPTIONS {
            loop {
                let option = bytes.u16(head.byte_order)?;
                if option == id::DONE {
                    break;
                }
                let content = bytes.counted_u32(head.byte_order)?;
                if self.option_6(file, option, content).is_none() {
                    self.unread(option);
                }
            }
            next = bytes.take(10)?;
        }
        if next == TABLE {
            let top = self.table(bytes, cpus, String::new())?;
            self.buffers.insert(0, top);
        } else {
            self.unfinished(|| format!("no table of buffers at byte {}", bytes.at() - TABLE.len()));
        }
        self.coverage.claim(0..bytes.at());
        Some(())
    }

    /// One entry of a version 6 buffer for each CPU.
    fn table(&mut self, bytes: &mut Bytes<'_>, cpus: u32, name: String) -> Option<Buffer> {
        let byte_order = self.head.byte_order;
        let mut buffer = Buffer { name, page: self.head.page, ..Buffer::default() };
        for cpu in 0..cpus {
            let (at, size) = (bytes.u64(byte_order)?, bytes.u64(byte_order)?);
            let (at, bytes) = (usize::try_from(at).ok()?, usize::try_from(size).ok()?);
            self.coverage.claim(at..at.saturating_add(bytes));
            buffer.cpus.push(CpuData { cpu, at, bytes });
        }
        // Recorders write the text of `trace_clock` after it; an option repeats what is chosen there.
        let mut after = *bytes;
        if after.counted_u64(byte_order).is_some_and(|clock| clock.len() < self.head.page && clock.is_ascii()) {
            *bytes = after;
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
        if tag == OPTIONS {
            while place.u16(self.head.byte_order)? != id::DONE {
                place.counted_u32(self.head.byte_order)?;
            }
            tag = place.take(10)?;
        }
        let own = self.lost.iter().filter(|lost| lost.buffer.is_empty()).count();
        let cpus = own.max(self.buffers.first().map_or(0, |b| b.cpus.len())) as u32;
        if tag != TABLE {
            return None;
        }
        let buffer = self.table(&mut place, cpus, name)?;
        self.coverage.claim(at..at.saturating_add(place.at()));
        self.buffers.push(buffer);
        Some(())
    }
}
