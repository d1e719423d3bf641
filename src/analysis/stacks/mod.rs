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
//! Cost: linear in calls plus samples per thread, threads in parallel. ALGORITHMS.md section 5.1.

mod reach;

use super::symbols::images::Spaces;
use super::symbols::{AddressKind, ProcessStack};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::names::NameId;
use crate::base::parallel::in_order;
use crate::base::time::{Ns, Span, Timestamp};
use crate::state::questions::Asker;
use crate::state::reader::RowReader;
use crate::state::timeline::{Call, RawStackId, SegmentKind, StackOrigin, StackSample, Thread, ThreadId, Timeline};
use foldhash::HashMap;

crate::base::names::handle! {
    /// A stack of [`StackTimelines`].
    StackId,
}

/// Threads given to a worker at once.
const CHUNK: usize = 64;
/// A sample holds for this many sampling periods.
const PERIODS: Ns = 10;
/// Assumed where no two ticks hit one thread.
const DEFAULT_PERIOD: Ns = 10_000_000;
/// A profiler samples calls of at least this length when they have returned.
const LONG_CALL: Ns = 100_000;
/// The most calls by which such a sample may be late.
const LATEST: usize = 20;

/// The known parts of a thread's stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stack {
    /// The user stack.
    pub user: Option<ProcessStack>,
    /// If the user stack is unknown or cut short: the full stacks before and after it, in the same program.
    pub around: Option<SurroundingStacks>,
    /// The system call under way.
    pub call: Option<NameId>,
    /// The kernel stack.
    pub kernel: Option<RawStackId>,
}

/// The nearest full stacks around a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SurroundingStacks {
    /// The last one before it.
    pub before: ProcessStack,
    /// The first one after it.
    pub after: ProcessStack,
}

/// The stacks of all threads over time.
#[derive(Clone, Debug, Default)]
pub struct StackTimelines {
    threads: Vec<Vec<(Timestamp, StackId)>>,
    stacks: Table,
}

#[derive(Clone, Debug, Default)]
struct Table {
    stacks: Vec<Stack>,
    ids: HashMap<Stack, StackId>,
}

impl Table {
    fn intern(&mut self, stack: Stack) -> StackId {
        *self.ids.entry(stack).or_insert_with(|| {
            self.stacks.push(stack);
            StackId::at(self.stacks.len() - 1)
        })
    }
}

impl StackTimelines {
    /// Build all timelines. `kernel` says whether kernel stacks are wanted.
    pub fn new(timeline: &Timeline, spaces: &Spaces, kernel: bool, ctx: &Ctx) -> Result<Self, Cancelled> {
        let reach = PERIODS.saturating_mul(period(timeline));
        let calls_recorded = timeline.has_calls();
        let mut all = StackTimelines::default();
        all.stacks.intern(Stack::default());
        let chunks = timeline.threads().len().div_ceil(CHUNK);
        let build = |i: usize| {
            let mut table = Table::default();
            let reader = &timeline.reader(Asker::Stacks);
            let threads = timeline.threads_by_id().skip(i * CHUNK).take(CHUNK);
            let lines = threads.map(|(id, thread)| {
                let programs = spaces.programs(thread.host, thread.pid);
                let (table, parts) = (&mut table, Vec::new());
                Builder { timeline, reader, spaces, programs, id, thread, kernel, reach, calls_recorded, table, parts }
                    .build()
            });
            (lines.collect::<Vec<_>>(), table.stacks)
        };
        in_order(ctx, chunks, build, |_, (lines, stacks)| {
            let ids: Vec<StackId> = stacks.into_iter().map(|s| all.stacks.intern(s)).collect();
            let renumber =
                |line: Vec<(Timestamp, StackId)>| line.into_iter().map(|(t, s)| (t, ids[s.index()])).collect();
            all.threads.extend(lines.into_iter().map(renumber));
        })?;
        Ok(all)
    }

    /// A stack; an unknown one for an id of another table.
    pub fn get(&self, id: StackId) -> Stack {
        self.stacks.stacks.get(id.index()).copied().unwrap_or_default()
    }

    /// The stack of a thread at `t`.
    pub fn at(&self, thread: ThreadId, t: Timestamp) -> StackId {
        let line = self.line(thread);
        let after = line.partition_point(|(from, _)| *from <= t);
        after.checked_sub(1).and_then(|i| line.get(i)).map_or(StackId::at(0), |(_, s)| *s)
    }

    /// The stacks of a thread over a span: parts that tile it.
    pub fn over(&self, thread: ThreadId, span: Span) -> impl Iterator<Item = (Span, StackId)> + '_ {
        let line = self.line(thread);
        let mut next = line.partition_point(|(from, _)| *from <= span.start);
        let mut stack = next.checked_sub(1).and_then(|i| line.get(i)).map_or(StackId::at(0), |(_, s)| *s);
        let mut start = span.start;
        std::iter::from_fn(move || {
            if start >= span.end {
                return None;
            }
            let change = line.get(next).copied().filter(|(from, _)| *from < span.end);
            let end = change.map_or(span.end, |(from, _)| from);
            let piece = (Span::new(start, end), stack);
            (start, next, stack) = (end, next + 1, change.map_or(stack, |(_, s)| s));
            Some(piece)
        })
    }

    fn line(&self, thread: ThreadId) -> &[(Timestamp, StackId)] {
        self.threads.get(thread.index()).map_or(&[], |line| line)
    }
}

/// The sampling period: the median distance of neighbouring ticks that hit one thread.
fn period(timeline: &Timeline) -> Ns {
    let mut gaps = Vec::new();
    let reader = timeline.reader(Asker::Stacks);
    for (thread, _) in timeline.threads_by_id().filter(|(_, t)| !t.idle) {
        let ticks = reader.samples(thread).all().filter(|s| s.origin == StackOrigin::Tick).map(|s| s.time);
        gaps.extend(ticks.clone().zip(ticks.skip(1)).map(|(a, b)| b.since(a)));
    }
    let middle = gaps.len() / 2;
    if gaps.is_empty() { DEFAULT_PERIOD } else { *gaps.select_nth_unstable(middle).1 }
}

/// A sample for the stack timeline.
#[derive(Clone, Copy)]
struct Sample {
    time: Timestamp,
    origin: StackOrigin,
    user: Option<ProcessStack>,
    kernel: Option<RawStackId>,
    /// More than one address: the callers are known.
    full: bool,
}

impl Sample {
    /// Among the samples of one call the one with the lowest rank gives its user stack; all should agree.
    fn rank(&self) -> u8 {
        match self.origin {
            StackOrigin::CallEntry => 0,
            StackOrigin::CallExit => 1,
            StackOrigin::SwitchOut | StackOrigin::Tick | StackOrigin::Other => 2,
            StackOrigin::AfterCall | StackOrigin::Function => 3,
        }
    }

    /// True where it shows the stack at its own time, not at a call's entry.
    fn is_momentary(&self) -> bool {
        self.rank() == 2
    }
}

/// The samples of a thread that have an address, each user stack with the images of its time.
#[derive(Default)]
struct ThreadSamples {
    /// Those at or in their calls, and those between calls.
    all: Vec<Sample>,
    /// Those that come after their call.
    late: Vec<Sample>,
    /// The open functions over time.
    functions: Vec<Sample>,
}

struct Builder<'a> {
    timeline: &'a Timeline,
    reader: &'a RowReader<'a>,
    spaces: &'a Spaces,
    /// The times at which its process began other programs.
    programs: Vec<Timestamp>,
    id: ThreadId,
    thread: &'a Thread,
    kernel: bool,
    reach: Ns,
    /// Of any thread.
    calls_recorded: bool,
    table: &'a mut Table,
    parts: Vec<(Timestamp, StackId)>,
}

impl Builder<'_> {
    fn build(mut self) -> Vec<(Timestamp, StackId)> {
        if self.thread.idle {
            return Vec::new();
        }
        let ThreadSamples { all: samples, late, functions } = self.samples();
        let full: Vec<Sample> = samples.iter().filter(|s| s.full && s.user.is_some()).copied().collect();
        let calls: &[Call] = &self.reader.calls(self.id).all().collect::<Vec<_>>();
        let window = |i: usize| {
            let from =
                i.checked_sub(1).and_then(|before| calls.get(before)).map_or(Timestamp::MIN, |call| call.span.end);
            Span::new(from, calls.get(i + 1).map_or(Timestamp::MAX, |next| next.span.start))
        };
        let owned: Vec<Option<Sample>> =
            calls.iter().enumerate().map(|(i, call)| self.sample_of(call, window(i), &samples)).collect();
        let owned = after_calls(calls, owned, &late);
        let mut from = self.thread.life.start;
        for (call, own) in calls.iter().zip(owned) {
            self.between_calls(Span::new(from, call.span.start), &samples, &full);
            self.call(call, own, &samples, &full);
            from = call.span.end.max(from);
        }
        self.between_calls(Span::new(from, self.thread.life.end), &samples, &full);
        self.overlay(&functions);
        self.parts
    }

    fn samples(&self) -> ThreadSamples {
        let (host, pid) = (self.thread.host, self.thread.pid);
        let sample = |s: StackSample| {
            let user = s.user.filter(|u| !self.timeline.stacks().get(*u).is_empty());
            let full = user.is_some_and(|u| self.timeline.stacks().get(u).len() > 1);
            let addresses = match s.origin {
                StackOrigin::Function => AddressKind::FunctionEntry,
                _ => AddressKind::Sampled,
            };
            let of_process =
                |stack| ProcessStack { host, pid, space: self.spaces.at(host, pid, s.time), stack, addresses };
            let kernel = s.kernel.filter(|k| self.kernel && !self.timeline.stacks().get(*k).is_empty());
            Sample { time: s.time, origin: s.origin, user: user.map(of_process), kernel, full }
        };
        let ThreadSamples { mut all, mut late, mut functions } = ThreadSamples::default();
        for s in self.reader.samples(self.id).all().map(sample) {
            match s.origin {
                StackOrigin::Function => functions.push(s),
                StackOrigin::AfterCall => late.extend(s.user.map(|_| s)),
                _ if s.user.is_some() || s.kernel.is_some() => all.push(s),
                _ => {}
            }
        }
        ThreadSamples { all, late, functions }
    }

    /// The sample that gives the user stack of a call, among those in the window in which its samples can be. Entry and
    /// exit are recorded in several channels, some microseconds apart in either order, but all records of one come
    /// before all of the next. A call that runs another program ends with another stack than it began with.
    fn sample_of(&self, call: &Call, window: Span, samples: &[Sample]) -> Option<Sample> {
        let program = self.program_life(call.span.start);
        let first = samples.partition_point(|s| s.time < window.start);
        let near = samples[first..].iter().take_while(|s| s.time <= window.end);
        let is_of_call = |s: &&Sample| match s.origin {
            StackOrigin::CallEntry => s.time < call.span.end || s.time <= call.span.start,
            StackOrigin::CallExit => s.time >= call.span.start,
            _ => call.span.contains(s.time),
        };
        let distance = |s: &Sample| s.time.abs_diff(call.span.start);
        let known = near.filter(|s| s.user.is_some() && s.time < program.end);
        known.filter(is_of_call).min_by_key(|s| (s.rank(), distance(s))).copied()
    }

    fn call(&mut self, call: &Call, own: Option<Sample>, samples: &[Sample], full: &[Sample]) {
        let user = own.and_then(|s| s.user);
        let around = if own.is_some_and(|s| s.full) { None } else { self.around(call.span, full) };
        let stack = Stack { user, around, call: Some(call.name), kernel: None };
        self.put(call.span.start, stack);
        let program = self.program_life(call.span.start);
        if program.end < call.span.end {
            self.put(program.end, Stack { user: None, around: None, ..stack });
            return;
        }
        let inside = within(samples, call.span).iter().filter(|s| s.is_momentary() && s.kernel.is_some());
        let inside: Vec<Sample> = inside.copied().collect();
        for (span, sample) in self.spread(call.span, &inside) {
            self.put(span.start, Stack { kernel: sample.kernel, ..stack });
            self.put(span.end, stack);
        }
    }

    /// User mode: samples, and the holes between them.
    fn between_calls(&mut self, span: Span, samples: &[Sample], full: &[Sample]) {
        if span.is_empty() {
            return;
        }
        let inside: Vec<Sample> = within(samples, span).iter().filter(|s| s.is_momentary()).copied().collect();
        let mut from = span.start;
        let parts = if self.calls_recorded { self.spread(span, &inside) } else { self.around_waits(span, &inside) };
        for (part, sample) in parts {
            self.hole(Span::new(from, part.start), full);
            let around = if sample.full { None } else { self.around(part, full) };
            self.put(part.start, Stack { user: sample.user, around, call: None, kernel: sample.kernel });
            from = part.end;
        }
        self.hole(Span::new(from, span.end), full);
    }

    fn hole(&mut self, span: Span, full: &[Sample]) {
        if !span.is_empty() {
            let around = self.around(span, full);
            self.put(span.start, Stack { around, ..Stack::default() });
        }
    }

    /// The full stacks around a span, where they belong to one program.
    fn around(&self, span: Span, full: &[Sample]) -> Option<SurroundingStacks> {
        let before = full[..full.partition_point(|s| s.time <= span.start)].last()?.user?;
        let after = full.get(full.partition_point(|s| s.time < span.end))?.user?;
        (self.program(before) == self.program(after)).then_some(SurroundingStacks { before, after })
    }

    /// The time over which the process runs the program that it runs at `t`.
    fn program_life(&self, t: Timestamp) -> Span {
        let next = self.programs.partition_point(|from| *from <= t);
        let start = next.checked_sub(1).and_then(|i| self.programs.get(i)).copied().unwrap_or(Timestamp::MIN);
        Span::new(start, self.programs.get(next).copied().unwrap_or(Timestamp::MAX))
    }

    fn program(&self, stack: ProcessStack) -> Option<u32> {
        self.spaces.get(stack.space?).map(|s| s.program)
    }

    /// Put the open functions over the sampled stacks.
    fn overlay(&mut self, functions: &[Sample]) {
        if functions.is_empty() {
            return;
        }
        let below = std::mem::take(&mut self.parts);
        let (mut at, mut next) = (0, 0);
        let (mut stack, mut open) = (Stack::default(), None);
        loop {
            let times = (below.get(at).map(|(t, _)| *t), functions.get(next).map(|s| s.time));
            let t = match times {
                (Some(a), Some(b)) => a.min(b),
                (Some(t), None) | (None, Some(t)) => t,
                (None, None) => return,
            };
            while let Some((_, id)) = below.get(at).filter(|(from, _)| *from == t) {
                stack = self.table.stacks.get(id.index()).copied().unwrap_or_default();
                at += 1;
            }
            while let Some(sample) = functions.get(next).filter(|s| s.time == t) {
                open = sample.user;
                next += 1;
            }
            let exact = Stack { user: open, around: None, ..stack };
            self.put(t, if open.is_some() { exact } else { stack });
        }
    }

    fn put(&mut self, from: Timestamp, stack: Stack) {
        let id = self.table.intern(stack);
        while self.parts.last().is_some_and(|(last, _)| *last >= from) {
            self.parts.pop();
        }
        if self.parts.last().is_none_or(|(_, last)| *last != id) {
            self.parts.push((from, id));
        }
    }
}

/// Assign each sample that came after its call to the latest long call before it without a sample.
fn after_calls(calls: &[Call], mut owned: Vec<Option<Sample>>, late: &[Sample]) -> Vec<Option<Sample>> {
    for sample in late {
        let ended = calls.partition_point(|c| c.span.end <= sample.time);
        let before = (0..ended).rev().take(LATEST);
        let open = |i: &usize| owned.get(*i).is_some_and(Option::is_none);
        let long = |i: &usize| calls.get(*i).is_some_and(|c| c.span.len() >= LONG_CALL);
        if let Some(slot) = before.filter(long).find(open).and_then(|i| owned.get_mut(i)) {
            *slot = Some(*sample);
        }
    }
    owned
}

fn within(samples: &[Sample], span: Span) -> &[Sample] {
    let start = samples.partition_point(|s| s.time < span.start);
    let end = samples.partition_point(|s| s.time < span.end);
    samples.get(start..end).unwrap_or(&[])
}

fn on_cpu(kind: SegmentKind) -> bool {
    matches!(kind, SegmentKind::Running | SegmentKind::Interrupted)
}

#[cfg(test)]
mod tests;
