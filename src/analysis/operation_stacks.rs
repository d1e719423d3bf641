//! The functions that threads ran, beside their operations, so that a delayed step is reported with its function.
//!
//! In: a [`Timeline`] with call stacks, and its [`Operations`]. Out: the stacks of each sequence over time, with names.
//! Every distinct stack is resolved once; cost: linear in the intervals of the stack timelines. Threads without stacks
//! get none, and a recording without stacks costs nothing.

use super::operations::streams;
use super::stacks::StackTimelines;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::notice::Notices;
use crate::event::operation::{Operations, StackSpan};
use crate::symbols::cache::SymbolCache;
use crate::symbols::files::SymbolPaths;
use crate::symbols::images::Spaces;
use crate::symbols::{ProcessStack, StackResolver};
use crate::timeline::Timeline;
use crate::timeline::questions::Asker;
use foldhash::HashMap;

/// The stacks of a timeline and the files that name their functions.
#[derive(Clone, Copy)]
pub struct StackSources<'a> {
    /// The images of processes.
    pub spaces: &'a Spaces,
    /// The stacks over time.
    pub stacks: &'a StackTimelines,
    /// Symbols that are known already.
    pub symbols: &'a SymbolCache,
}

/// Fill in [`Sequence::stacks`](crate::event::operation::Sequence::stacks) and [`Operations::stacks`].
pub fn attach(
    timeline: &Timeline,
    sources: StackSources<'_>,
    operations: &mut Operations,
    symbol_paths: &SymbolPaths,
    notices: &mut Notices,
    ctx: &Ctx,
) -> Result<(), Cancelled> {
    if !timeline.has_samples() {
        return Ok(());
    }
    let reader = &timeline.reader(Asker::Operations);
    let mut numbers: HashMap<ProcessStack, u32> = HashMap::default();
    let mut stacks: Vec<ProcessStack> = Vec::new();
    for (thread, sequence) in streams(timeline).zip(&mut operations.sequences) {
        let Some(life) = timeline.thread(thread).map(|t| t.life) else { continue };
        let known = sources.stacks.cursor(reader, thread).over(life);
        let known = known.filter_map(|(span, id)| Some((span, sources.stacks.get(id).user?)));
        for (span, placed) in known {
            let stack = *numbers.entry(placed).or_insert_with(|| {
                stacks.push(placed);
                stacks.len() as u32 - 1
            });
            match sequence.stacks.last_mut() {
                Some(last) if last.stack == stack && last.span.end == span.start => last.span.end = span.end,
                _ => sequence.stacks.push(StackSpan { span, stack }),
            }
        }
        sequence.stacks.shrink_to_fit();
    }
    let resolver = StackResolver::new(timeline, sources.spaces, symbol_paths, sources.symbols);
    let frames = resolver.resolve(&stacks, &mut operations.names, notices, ctx)?;
    let named = |frames: Vec<_>| {
        let known = frames.into_iter().filter(|f: &crate::symbols::UserFrame| !f.folded);
        known.map(|f| f.name).collect()
    };
    operations.stacks = frames.into_iter().map(named).collect();
    Ok(())
}
