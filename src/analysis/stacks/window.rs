//! The rows of a thread near the call whose stack is placed.
//!
//! In: the calls and samples of a thread, in order of time. Out: call after call, each with the sample that gives its
//! user stack; the samples near it. A profiler's sample may come up to [`LATEST`] calls late, so that many calls are
//! read ahead; the full stack that follows a hole may be far, so full stacks have a reader of their own. Memory: the
//! rows of those calls, and the samples between two of them.

use super::table::{LATEST, LONG_CALL, Sample, SurroundingStacks};
use crate::base::time::{Span, Timestamp};
use crate::event::stack::StackOrigin;
use crate::symbols::images::Spaces;
use crate::symbols::{AddressKind, ProcessStack};
use crate::timeline::reader::RowReader;
use crate::timeline::{Call, StackSample, Thread, ThreadId, Timeline};
use std::collections::VecDeque;

/// Samples are dropped after the last call when there are this many.
const PASSED: usize = 256;

/// Gives the samples of one process the images of their times.
#[derive(Clone, Copy)]
pub(super) struct Sampled<'a> {
    pub timeline: &'a Timeline,
    pub spaces: &'a Spaces,
    pub thread: &'a Thread,
    /// True where kernel stacks are wanted.
    pub kernel: bool,
}

impl Sampled<'_> {
    fn addresses(&self, sample: &StackSample) -> usize {
        sample.user.map_or(0, |user| self.timeline.stacks().get(user).len())
    }

    fn of_process(&self, sample: &StackSample) -> Option<ProcessStack> {
        let (host, pid) = (self.thread.host, self.thread.pid);
        let addresses = match sample.origin {
            StackOrigin::Function => AddressKind::FunctionEntry,
            _ => AddressKind::Sampled,
        };
        let (space, code) = (self.spaces.at(host, pid, sample.time), self.spaces.code_since(pid, sample.time));
        sample.user.map(|stack| ProcessStack { host, pid, space, code, stack, addresses })
    }

    /// A sample with its process's images.
    pub fn sample(&self, row: StackSample) -> Sample {
        let addresses = self.addresses(&row);
        let user = if addresses > 0 { self.of_process(&row) } else { None };
        let kernel = row.kernel.filter(|k| self.kernel && !self.timeline.stacks().get(*k).is_empty());
        Sample { time: row.time, origin: row.origin, user, kernel, full: addresses > 1 }
    }

    /// A stack whose callers are known.
    fn full(&self, row: &StackSample) -> Option<FullStack> {
        let momentary = !matches!(row.origin, StackOrigin::Function | StackOrigin::AfterCall);
        let stack = if momentary && self.addresses(row) > 1 { self.of_process(row) } else { None };
        Some(FullStack { time: row.time, stack: stack? })
    }
}

/// A call, and the sample that gives its user stack.
#[derive(Clone, Copy)]
pub(super) struct PlacedCall {
    pub call: Call,
    pub sample: Option<Sample>,
    /// The end of the call before it.
    after: Timestamp,
}

/// See the module.
pub(super) struct RowWindow<'a> {
    sampled: Sampled<'a>,
    /// The times at which the process began other programs.
    programs: &'a [Timestamp],
    calls: Box<dyn Iterator<Item = Call> + 'a>,
    rows: std::iter::Peekable<Box<dyn Iterator<Item = StackSample> + 'a>>,
    /// Calls that were read ahead.
    ahead: VecDeque<PlacedCall>,
    is_at_end: bool,
    /// The start of the call that was returned last.
    returned: Timestamp,
    /// Samples at or in their calls, and those between calls.
    samples: VecDeque<Sample>,
    /// Those that come after their call.
    late: VecDeque<Sample>,
    /// The open functions over time, which were not taken yet.
    pub functions: VecDeque<Sample>,
}

impl<'a> RowWindow<'a> {
    pub fn new(reader: &'a RowReader<'_>, id: ThreadId, sampled: Sampled<'a>, programs: &'a [Timestamp]) -> Self {
        let rows: Box<dyn Iterator<Item = StackSample>> = Box::new(reader.samples(id).all());
        RowWindow {
            sampled,
            programs,
            calls: Box::new(reader.calls(id).all()),
            rows: rows.peekable(),
            ahead: VecDeque::new(),
            is_at_end: false,
            returned: Timestamp::MIN,
            samples: VecDeque::new(),
            late: VecDeque::new(),
            functions: VecDeque::new(),
        }
    }

    /// The next call; after the last one, all samples that are left have been read.
    pub fn next_call(&mut self) -> Option<PlacedCall> {
        if self.samples.len() >= PASSED {
            let passed = self.samples.partition_point(|sample| sample.time < self.returned);
            self.samples.drain(..passed);
        }
        while !self.is_at_end && self.ahead.len() <= LATEST {
            self.read_call();
        }
        let next = self.ahead.pop_front()?;
        self.returned = next.call.span.start;
        Some(next)
    }

    /// The samples in a span that does not begin before the call that was returned last.
    pub fn within(&self, span: Span) -> impl Iterator<Item = Sample> {
        let start = self.samples.partition_point(|sample| sample.time < span.start);
        let end = self.samples.partition_point(|sample| sample.time < span.end).max(start);
        self.samples.range(start..end).copied()
    }

    fn read_call(&mut self) {
        let Some(call) = self.calls.next() else {
            self.is_at_end = true;
            self.read_samples(Timestamp::MAX);
            self.place_sample(Timestamp::MAX);
            self.place_late(Timestamp::MAX);
            return;
        };
        self.read_samples(call.span.end);
        self.place_sample(call.span.start);
        self.place_late(call.span.end);
        let after = self.ahead.back().map_or(Timestamp::MIN, |before| before.call.span.end);
        self.ahead.push_back(PlacedCall { call, sample: None, after });
    }

    /// Read the samples up to a moment, which is included.
    fn read_samples(&mut self, until: Timestamp) {
        while let Some(row) = self.rows.next_if(|row| row.time <= until) {
            let sample = self.sampled.sample(row);
            match sample.origin {
                StackOrigin::Function => self.functions.push_back(sample),
                StackOrigin::AfterCall => self.late.extend(sample.user.map(|_| sample)),
                _ if sample.user.is_some() || sample.kernel.is_some() => self.samples.push_back(sample),
                _ => {}
            }
        }
    }

    /// The sample of the last call read, among the samples up to the next one. Entry and exit are recorded in several
    /// channels, some microseconds apart in either order, but all records of one come before all of the next. A call
    /// that runs another program ends with another stack than it began with.
    fn place_sample(&mut self, next: Timestamp) {
        let Some(PlacedCall { call, sample: placed, after }) = self.ahead.back_mut() else { return };
        let another = self.programs.partition_point(|from| *from <= call.span.start);
        let program_end = self.programs.get(another).copied().unwrap_or(Timestamp::MAX);
        let first = self.samples.partition_point(|sample| sample.time < *after);
        let near = self.samples.range(first..).take_while(|sample| sample.time <= next);
        let is_of_call = |s: &&Sample| match s.origin {
            StackOrigin::CallEntry => s.time < call.span.end || s.time <= call.span.start,
            StackOrigin::CallExit => s.time >= call.span.start,
            _ => call.span.contains(s.time),
        };
        let distance = |sample: &Sample| sample.time.abs_diff(call.span.start);
        let known = near.filter(|sample| sample.user.is_some() && sample.time < program_end);
        *placed = known.filter(is_of_call).min_by_key(|sample| (sample.rank(), distance(sample))).copied();
    }

    /// Assign each sample that came after its call, and before `until`, to the latest long call before it without a
    /// sample.
    fn place_late(&mut self, until: Timestamp) {
        while let Some(late) = self.late.front().copied().filter(|sample| sample.time < until || self.is_at_end) {
            self.late.pop_front();
            let is_open = |of: &&mut PlacedCall| of.sample.is_none() && of.call.span.len() >= LONG_CALL;
            if let Some(of) = self.ahead.iter_mut().rev().take(LATEST).find(is_open) {
                of.sample = Some(late);
            }
        }
    }
}

#[derive(Clone, Copy)]
struct FullStack {
    time: Timestamp,
    stack: ProcessStack,
}

/// The full stacks of a thread, for questions whose spans begin in order of time.
pub(super) struct FullStacks<'a> {
    rows: Box<dyn Iterator<Item = FullStack> + 'a>,
    /// From the last one at or before the start of the last question.
    near: VecDeque<FullStack>,
}

impl<'a> FullStacks<'a> {
    pub fn new(reader: &'a RowReader<'_>, id: ThreadId, sampled: Sampled<'a>) -> Self {
        let rows = reader.samples(id).all().filter_map(move |row| sampled.full(&row));
        FullStacks { rows: Box::new(rows), near: VecDeque::new() }
    }

    /// The last one at or before the start of a span, and the first one from its end.
    pub fn around(&mut self, span: Span) -> Option<SurroundingStacks> {
        while self.near.back().is_none_or(|full| full.time < span.end) {
            let Some(next) = self.rows.next() else { break };
            self.near.push_back(next);
        }
        let begun = self.near.partition_point(|full| full.time <= span.start);
        self.near.drain(..begun.saturating_sub(1));
        let before = self.near.front().filter(|full| full.time <= span.start)?.stack;
        let after = self.near.get(self.near.partition_point(|full| full.time < span.end))?.stack;
        Some(SurroundingStacks { before, after })
    }
}

#[cfg(test)]
mod tests;
