//! Every event as a line of text, in time order over all streams of all traces.
//!
//! Two forms: the canonical one (docs/CANONICAL.md), made to be compared byte for byte, and one for people. Both are
//! made by a sink that the decoder writes into (`text`).
//!
//! The next line is always the least of the streams' next lines by (time, stream). A stream whose times go back does
//! not delay the others: its line is written at once. So the order is that of (the latest time of the stream up to the
//! event, stream, event), which is total and can be cut anywhere: each worker makes the text of one chunk, and the
//! chunks are written in order (`chunks`).

pub mod archive;
mod chunks;
mod error;
mod lines;
mod text;

pub use chunks::Sizes;
pub use text::Form;

pub use error::DumpError;

use crate::base::ctx::Ctx;
use crate::base::notice::Notices;
use crate::input::Source;
use lines::{Stream, StreamPosition};
use std::io::Write;
use text::LineLayout;

/// Write every event of some traces in canonical form. Returns the notices about their packets.
pub fn canonical(sources: &[Source], ctx: &Ctx, out: &mut (impl Write + Send)) -> Result<Notices, DumpError> {
    write(sources, Form::Canonical, &Sizes::default(), ctx, out)
}

/// Write every event of some traces for people: time of day (UTC) on the common time line, host, CPU, event, fields.
/// Returns the notices about their packets.
pub fn readable(sources: &[Source], ctx: &Ctx, out: &mut (impl Write + Send)) -> Result<Notices, DumpError> {
    write(sources, Form::Readable, &Sizes::default(), ctx, out)
}

/// Write every event of some traces; the output does not depend on the sizes.
pub fn write(
    sources: &[Source],
    form: Form,
    sizes: &Sizes,
    ctx: &Ctx,
    out: &mut (impl Write + Send),
) -> Result<Notices, DumpError> {
    let layouts: Vec<LineLayout> = sources.iter().map(|s| LineLayout::new(&s.trace, form)).collect();
    let mut streams = Vec::new();
    for (source, layout) in sources.iter().zip(&layouts) {
        streams.extend((0..source.trace.streams().len()).map(|number| Stream::new(&source.trace, layout, number)));
    }
    let mut positions: Vec<StreamPosition> = streams.iter().map(|_| StreamPosition::default()).collect();
    let mut notices: Vec<Notices> = streams.iter().map(|_| Notices::default()).collect();
    if ctx.threads > 1 {
        chunks::write(&streams, &mut positions, &mut notices, sizes, ctx, out)?;
    }
    // All of it, or what contradicts itself.
    let flush = |text: &mut Vec<u8>| {
        ctx.cancel.check()?;
        out.write_all(text)?;
        text.clear();
        Ok(())
    };
    let ends = lines::merge(&streams, &positions, None, &mut Vec::new(), flush)?;
    notices.iter_mut().zip(&ends).for_each(|(all, end)| all.merge(&end.notices));
    let mut all = Notices::default();
    notices.iter().for_each(|notices| all.merge(notices));
    Ok(all)
}
