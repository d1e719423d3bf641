//! Which functions the threads of a recording ran, laid beside their operations: a late step is told with its function.
//!
//! In: a [`Timeline`] with call stacks, and its [`Operations`]. Out: each sequence's stacks over time, with names.
//! Every distinct stack is resolved once; cost: linear in the intervals of the stack timelines. Threads without stacks
//! get none, and a recording without stacks costs nothing.

use super::operations::streams;
use super::stacks::StackTimelines;
use super::symbols::cache::SymbolCache;
use super::symbols::files::SymbolPaths;
use super::symbols::images::Spaces;
use super::symbols::{ProcessStack, StackResolver};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::notice::Notices;
use crate::event::operation::Operations;
use crate::state::timeline::Timeline;
use foldhash::HashMap;

/// Fill in [`Sequence::stacks`](crate::event::operation::Sequence::stacks) and [`Operations::stacks`].
pub fn attach(
    timeline: &Timeline,
    (spaces, timelines, cache): (&Spaces, &StackTimelines, &SymbolCache),
    operations: &mut Operations,
    places: &SymbolPaths,
    notices: &mut Notices,
    ctx: &Ctx,
) -> Result<(), Cancelled> {
    if timeline.threads.iter().all(|t| t.samples.is_empty()) {
        return Ok(());
    }
    let mut numbers: HashMap<ProcessStack, u32> = HashMap::default();
    let mut stacks: Vec<ProcessStack> = Vec::new();
    for (thread, sequence) in streams(timeline).zip(&mut operations.sequences) {
        let Some(life) = timeline.thread(thread).map(|t| t.life) else { continue };
        let known = timelines.over(thread, life).filter_map(|(span, id)| Some((span, timelines.get(id).user?)));
        sequence.stacks = known
            .map(|(span, placed)| {
                let number = *numbers.entry(placed).or_insert_with(|| {
                    stacks.push(placed);
                    stacks.len() as u32 - 1
                });
                (span, number)
            })
            .collect();
    }
    let resolver = StackResolver::new(timeline, spaces, places, cache);
    let frames = resolver.resolve(&stacks, &mut operations.names, notices, ctx)?;
    let named = |frames: Vec<_>| {
        let known = frames.into_iter().filter(|f: &super::symbols::UserFrame| !f.folded);
        known.map(|f| f.name).collect()
    };
    operations.stacks = frames.into_iter().map(named).collect();
    Ok(())
}
