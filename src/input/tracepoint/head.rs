//! The description of the kernel's events: the head of a trace.dat, of which perf.data holds a copy.
//!
//! Magic, version, byte order, size of a `long` and of a page. The parts after it follow one another in version 6 and
//! in perf.data; in version 7 each is a section of its own, with the same content. Sizes are checked against the file;
//! only the formats are copied, and parsed by all workers.

use super::format::Format;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::cursor::{ByteOrder, Bytes};
use crate::base::parallel::in_order;
use crate::base::text::{copied, copied_exactly};
use std::ops::Range;
use std::sync::Arc;

/// The magic bytes of the head.
pub const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// The texts that a worker parses at a time.
const TEXTS: usize = 32;

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

/// The text of a format, before it is parsed.
#[derive(Clone, Debug)]
pub struct FormatText {
    system: Arc<str>,
    text: String,
}

impl FormatText {
    /// The format; `None` where it has no name or number.
    pub fn parse(&self, head: &Head) -> Option<Format> {
        Format::parse(&self.system, &self.text, head.long)
    }
}

/// Parse the formats of a file; those that cannot be parsed are left out.
pub fn parse_formats(texts: &[FormatText], head: &Head, ctx: &Ctx) -> Result<Vec<Format>, Cancelled> {
    let parts: Vec<&[FormatText]> = texts.chunks(TEXTS).collect();
    let parse = |texts: &&[FormatText]| texts.iter().filter_map(|text| text.parse(head)).collect();
    let make = |part: usize| parts.get(part).map(parse);
    let mut all: Vec<Format> = Vec::with_capacity(texts.len());
    in_order(ctx, parts.len(), make, |_, formats: Option<Vec<Format>>| all.extend(formats.into_iter().flatten()))?;
    Ok(all)
}

/// The formats of the system `ftrace`, which has no name here.
pub fn ftrace_formats(bytes: &mut Bytes<'_>, head: &Head, formats: &mut Vec<FormatText>) -> Option<()> {
    let n = bytes.u32(head.byte_order)?;
    texts(bytes, n, &"ftrace".into(), head, formats)
}

/// The formats of all other systems.
pub fn event_formats(bytes: &mut Bytes<'_>, head: &Head, formats: &mut Vec<FormatText>) -> Option<()> {
    for _ in 0..bytes.u32(head.byte_order)? {
        let system = copied(bytes.text()?).into();
        let n = bytes.u32(head.byte_order)?;
        texts(bytes, n, &system, head, formats)?;
    }
    Some(())
}

fn texts(bytes: &mut Bytes<'_>, n: u32, system: &Arc<str>, head: &Head, formats: &mut Vec<FormatText>) -> Option<()> {
    for _ in 0..n {
        let text = copied(bytes.counted_u64(head.byte_order)?);
        formats.push(FormatText { system: Arc::clone(system), text });
    }
    Some(())
}

/// Reads all parts after the head, in version 6. `None` where a part passes the end.
pub fn metadata<'a>(bytes: &mut Bytes<'a>, head: &Head, formats: &mut Vec<FormatText>) -> Option<RecorderMetadata<'a>> {
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
