//! The description of the kernel's events: the head of a trace.dat, of which perf.data holds a copy.
//!
//! Magic, version, byte order, size of a `long` and of a page. The parts behind it follow one another in version 6 and
//! in perf.data; in version 7 each is a section of its own, with the same content. Sizes are checked against the file;
//! only the formats are copied.

use super::format::Format;
use crate::base::cursor::{ByteOrder, Bytes};
use crate::base::text::{copied, copied_exactly};
use std::ops::Range;

/// The magic bytes of the head.
pub const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// The first lines of the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// 6 or 7; 0 for perf's `0.6`.
    pub version: u32,
    /// The order of the bytes of numbers.
    pub byte_order: ByteOrder,
    /// Bytes of a `long` of the kernel.
    pub long: u8,
    /// Bytes of a page.
    pub page: usize,
}

impl Head {
    /// The head at a cursor.
    pub fn read(bytes: &mut Bytes<'_>) -> Option<Head> {
        if bytes.take(MAGIC.len())? != MAGIC {
            return None;
        }
        let version = copied_exactly(bytes.text()?)?.split('.').next()?.parse().ok()?;
        let byte_order = if bytes.u8()? == 0 { ByteOrder::Little } else { ByteOrder::Big };
        let long = bytes.u8()?;
        let page = bytes.u32(byte_order)? as usize;
        Some(Head { version, byte_order, long, page })
    }
}

/// The text of `header_page`, which gives the offset of a page's data; `header_event` is skipped. Copied before it is
/// checked, because other processes may write to the file.
pub fn page_header(bytes: &mut Bytes<'_>, byte_order: ByteOrder) -> Option<String> {
    let mut named = |name: &str| {
        let found = bytes.text()? == name.as_bytes();
        let text = bytes.counted_u64(byte_order)?;
        if found { Some(text) } else { None }
    };
    let page = named("header_page")?;
    named("header_event")?;
    copied_exactly(page)
}

/// The formats of the system `ftrace`, which has no name here.
pub fn ftrace_formats(bytes: &mut Bytes<'_>, head: &Head, formats: &mut Vec<Format>) -> Option<()> {
    let n = bytes.u32(head.byte_order)?;
    texts(bytes, n, "ftrace", head, formats)
}

/// The formats of all other systems.
pub fn event_formats(bytes: &mut Bytes<'_>, head: &Head, formats: &mut Vec<Format>) -> Option<()> {
    for _ in 0..bytes.u32(head.byte_order)? {
        let system = copied(bytes.text()?);
        let n = bytes.u32(head.byte_order)?;
        texts(bytes, n, &system, head, formats)?;
    }
    Some(())
}

fn texts(bytes: &mut Bytes<'_>, n: u32, system: &str, head: &Head, formats: &mut Vec<Format>) -> Option<()> {
    for _ in 0..n {
        let text = copied(bytes.counted_u64(head.byte_order)?);
        formats.extend(Format::parse(system, &text, head.long));
    }
    Some(())
}

/// Reads all parts behind the head, in version 6. `None` where a part passes the end.
pub fn metadata<'a>(bytes: &mut Bytes<'a>, head: &Head, formats: &mut Vec<Format>) -> Option<RecorderMetadata<'a>> {
    let page = page_header(bytes, head.byte_order)?;
    ftrace_formats(bytes, head, formats)?;
    event_formats(bytes, head, formats)?;
    let symbols = bytes.counted_u32(head.byte_order)?.len();
    let symbols = bytes.at() - symbols..bytes.at();
    let _printk = bytes.counted_u32(head.byte_order)?;
    // perf 0.5 ends here.
    let commands = bytes.counted_u64(head.byte_order).unwrap_or(&[]);
    Some(RecorderMetadata { page, symbols, commands })
}

/// See [`metadata`].
#[derive(Clone, Debug)]
pub struct RecorderMetadata<'a> {
    /// The text of `header_page`.
    pub page: String,
    /// The place of kernel symbols as in `/proc/kallsyms`, in the bytes of the cursor.
    pub symbols: Range<usize>,
    /// Lines of thread id and name.
    pub commands: &'a [u8],
}
