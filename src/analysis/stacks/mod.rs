//! The call stack of every thread at every time, as far as samples show it.
//!
//! In: a thread's system calls, its stack samples, its segments. Out: a *stack timeline*, half-open parts that each
//! have one interned [`Stack`]; functions are named later, and only those that an execution needs.
//!
//! - Entry and exit events of functions are exact and take precedence wherever they show an open function.
//! - Inside a system call the user stack cannot change: the sample at its entry holds until its exit (else the one at
//!   its exit, else any taken meanwhile, else the profiler's sample that follows a long call and belongs to it).
//! - Between two calls a sample holds backward and forward to the next sample's, meeting it midway; a time off the CPU
//!   is not cut: it has the stack with which it began. No sample extends further than ten sampling periods of running
//!   time, and none beyond an exec.
//! - Where that leaves a hole, and where the tracer lost the callers (one address only: some functions of the C library
//!   keep no frame pointer), the stacks before and after are kept: they may have callers in common.
//!
//! - `placement`: the stack of each call, and of the times between calls; `reach`: how far a sample holds
//! - [`cursor`]: places among the stacks of threads
//! - `window`: the rows near a call; `overlay`: open functions over sampled stacks
//!
//! Cost: linear in calls plus samples per thread, groups of threads in parallel. Of a thread only the rows near one
//! call are decoded; the result is in compressed leaves (`timeline/derived.rs`). ALGORITHMS.md section 5.1.

pub mod cursor;
mod overlay;
mod placement;
mod reach;
mod table;
mod window;

pub use table::{Stack, StackId, StackTable};

use crate::analysis::thread_groups::ThreadGroups;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::heap::MemoryPart;
use crate::base::parallel::in_order;
use crate::base::span_list::{SpanList, SpanRoom};
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::stack::StackOrigin;
use crate::symbols::images::Spaces;
use crate::timeline::derived::{StackLines, StackLinesBuilder};
use crate::timeline::questions::Asker;
use crate::timeline::reader::RowReader;
use crate::timeline::{StackSample, ThreadId, Timeline};
use get_size2::GetSize;
use placement::{Placement, PlacementInputs};
use table::{Sample, UNKNOWN};
use window::Sampled;

/// A sample holds for this many sampling periods.
const PERIODS: Ns = 10;
/// Assumed where no two ticks hit one thread.
const DEFAULT_PERIOD: Ns = 10_000_000;
/// The stacks of all threads over time.
#[derive(Debug, Default, GetSize)]
pub struct StackTimelines {
    /// In order of their threads.
    groups: Vec<GroupStacks>,
    stacks: StackTable,
}

/// The stacks of a group of threads.
#[derive(Debug, GetSize)]
struct GroupStacks {
    /// The first of its threads.
    first: ThreadId,
    /// Lines by the thread's place in the group; the numbers of its stacks are places in `ids`.
    lines: StackLines,
    ids: Vec<StackId>,
}

impl StackTimelines {
    /// Build all timelines. `kernel` says whether kernel stacks are wanted.
    pub fn new(timeline: &Timeline, spaces: &Spaces, kernel: bool, ctx: &Ctx) -> Result<Self, Cancelled> {
        ctx.progress.enter("stacks", units(timeline));
        let counter = &timeline.reader(Asker::Stacks);
        let groups = ThreadGroups::new(timeline, |id| placed_rows(counter, id));
        let reach = PERIODS.saturating_mul(period(timeline, ctx));
        let inputs = PlacementInputs { timeline, spaces, kernel, reach, calls_recorded: timeline.has_calls() };
        let mut all = StackTimelines::default();
        all.stacks.intern(Stack::default());
        let build = |group: usize| {
            let (mut table, mut lines) = (StackTable::default(), StackLinesBuilder::new(timeline));
            let reader = &timeline.reader(Asker::Stacks);
            for (line, (id, thread)) in groups.threads(group).enumerate().filter(|(_, (_, thread))| !thread.idle) {
                let programs = spaces.programs(thread.host, thread.pid);
                let placement = Placement::new(&inputs, reader, id, thread, &programs, &mut table);
                placement.place(|change| lines.push(line, change));
                ctx.progress.step(placed_rows(reader, id));
            }
            (lines.finish(groups.positions(group).len()), table.stacks)
        };
        in_order(ctx, groups.len(), build, |group, (lines, stacks)| {
            let ids = stacks.into_iter().map(|stack| all.stacks.intern(stack)).collect();
            all.groups.push(GroupStacks { first: ThreadId::at(groups.positions(group).start), lines, ids });
        })?;
        ctx.progress.parts.hold(MemoryPart::Stacks, all.get_heap_size());
        Ok(all)
    }

    /// A stack; an unknown one for an id of another table.
    pub fn get(&self, id: StackId) -> Stack {
        self.stacks.get(id)
    }

    /// The table of its stacks.
    pub fn table(&self) -> &StackTable {
        &self.stacks
    }

    pub fn distinct(&self) -> &[Stack] {
        &self.stacks.stacks
    }
}

/// The stack of a sample at its own moment, in the images that its process had then.
pub fn stack_of_sample(timeline: &Timeline, spaces: &Spaces, thread: ThreadId, sample: &StackSample) -> Stack {
    let Some(thread) = timeline.thread(thread) else { return Stack::default() };
    let sampled = Sampled { timeline, spaces, thread, kernel: true };
    let Sample { user, kernel, .. } = sampled.sample(*sample);
    Stack { user, kernel, ..Stack::default() }
}

/// The rows of a thread of which its stacks are placed.
fn placed_rows(reader: &RowReader<'_>, thread: ThreadId) -> u64 {
    (reader.samples(thread).len() + reader.calls(thread).len()) as u64
}

/// Units of the progress: the samples in which the period is looked for, and the rows of which stacks are placed.
fn units(timeline: &Timeline) -> u64 {
    let reader = &timeline.reader(Asker::Stacks);
    let threads = timeline.threads_by_id().filter(|(_, thread)| !thread.idle);
    threads.map(|(id, _)| reader.samples(id).len() as u64 + placed_rows(reader, id)).sum()
}

/// The sampling period: the median distance of neighbouring ticks that hit one thread.
fn period(timeline: &Timeline, ctx: &Ctx) -> Ns {
    let mut gaps = SpanList::new(&SpanRoom::of(ctx));
    let reader = timeline.reader(Asker::Stacks);
    for (thread, _) in timeline.threads_by_id().filter(|(_, t)| !t.idle) {
        let mut last: Option<Timestamp> = None;
        for tick in reader.samples(thread).all().filter(|sample| sample.origin == StackOrigin::Tick) {
            last.replace(tick.time).into_iter().for_each(|before| gaps.push(Span::new(before, tick.time)));
        }
        ctx.progress.step(reader.samples(thread).len() as u64);
    }
    let [middle] = gaps.lengths_at([gaps.len() / 2]);
    if gaps.is_empty() { DEFAULT_PERIOD } else { middle }
}

#[cfg(test)]
mod tests;
