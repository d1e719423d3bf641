//! The sampled stack of a thread in each of its calls, and between them.
//!
//! In: the calls and samples of a thread. Out: its stacks over time, in order, some at a time. What a sample says of
//! the time around it is in [`super::reach`].

use super::overlay::{Overlay, SampledStack};
use super::table::{Sample, Stack, StackTable, SurroundingStacks};
use super::window::{FullStacks, PlacedCall, RowWindow, Sampled};
use crate::base::time::{Ns, Span, Timestamp};
use crate::symbols::ProcessStack;
use crate::symbols::images::Spaces;
use crate::timeline::reader::RowReader;
use crate::timeline::{Call, StackChange, Thread, ThreadId, Timeline};
use std::collections::VecDeque;

/// Stacks are handed on when this many are placed.
const SETTLED: usize = 64;

/// What is the same for all threads.
pub(super) struct PlacementInputs<'a> {
    pub timeline: &'a Timeline,
    pub spaces: &'a Spaces,
    /// True where kernel stacks are wanted.
    pub kernel: bool,
    /// The running time for which a sample holds.
    pub reach: Ns,
    /// Of any thread.
    pub calls_recorded: bool,
}

/// The placing of one thread's stacks.
pub(super) struct Placement<'a> {
    pub(super) inputs: &'a PlacementInputs<'a>,
    pub(super) reader: &'a RowReader<'a>,
    pub(super) id: ThreadId,
    thread: &'a Thread,
    /// The times at which its process began other programs.
    programs: &'a [Timestamp],
    rows: RowWindow<'a>,
    full: FullStacks<'a>,
    table: &'a mut StackTable,
    /// Stacks that a later one may still replace.
    placed: VecDeque<SampledStack>,
}

impl<'a> Placement<'a> {
    pub fn new(
        inputs: &'a PlacementInputs<'a>,
        reader: &'a RowReader<'a>,
        id: ThreadId,
        thread: &'a Thread,
        programs: &'a [Timestamp],
        table: &'a mut StackTable,
    ) -> Self {
        let PlacementInputs { timeline, spaces, kernel, .. } = *inputs;
        let sampled = Sampled { timeline, spaces, thread, kernel };
        let rows = RowWindow::new(reader, id, sampled, programs);
        let full = FullStacks::new(reader, id, sampled);
        Placement { inputs, reader, id, thread, programs, rows, full, table, placed: VecDeque::new() }
    }

    /// Place all stacks of the thread; `change` gets them in order.
    pub fn place(mut self, mut change: impl FnMut(StackChange)) {
        let mut overlay = Overlay::default();
        let mut from = self.thread.life.start;
        while let Some(PlacedCall { call, sample, .. }) = self.rows.next_call() {
            if self.placed.len() >= SETTLED {
                self.settle(from.min(call.span.start), &mut overlay, &mut change);
            }
            self.between_calls(Span::new(from, call.span.start));
            self.call(&call, sample);
            from = call.span.end.max(from);
        }
        self.between_calls(Span::new(from, self.thread.life.end));
        self.settle(Timestamp::MAX, &mut overlay, &mut change);
    }

    /// Hand on the stacks before `now`, which no later one replaces; but the last of them, which a later one may equal.
    fn settle(&mut self, now: Timestamp, overlay: &mut Overlay, change: impl FnMut(StackChange)) {
        let kept = if now == Timestamp::MAX { 0 } else { 1 };
        let settled = self.placed.partition_point(|placed| placed.from < now).saturating_sub(kept);
        let until = self.placed.get(settled).map_or(now, |next| next.from);
        overlay.merge(self.placed.drain(..settled), &mut self.rows.functions, until, self.table, change);
    }

    fn call(&mut self, call: &Call, own: Option<Sample>) {
        let user = own.and_then(|sample| sample.user);
        let around = if own.is_some_and(|sample| sample.full) { None } else { self.around(call.span) };
        let stack = Stack { user, around, call: Some(call.name), kernel: None };
        self.put(call.span.start, stack);
        let program = self.program_life(call.span.start);
        if program.end < call.span.end {
            self.put(program.end, Stack { user: None, around: None, ..stack });
            return;
        }
        let inside = self.rows.within(call.span).filter(|sample| sample.is_momentary() && sample.kernel.is_some());
        let inside: Vec<Sample> = inside.collect();
        for (span, sample) in self.spread(call.span, &inside) {
            self.put(span.start, Stack { kernel: sample.kernel, ..stack });
            self.put(span.end, stack);
        }
    }

    /// User mode: samples, and the holes between them.
    fn between_calls(&mut self, span: Span) {
        if span.is_empty() {
            return;
        }
        let inside: Vec<Sample> = self.rows.within(span).filter(Sample::is_momentary).collect();
        let mut from = span.start;
        let calls_recorded = self.inputs.calls_recorded;
        let parts = if calls_recorded { self.spread(span, &inside) } else { self.around_waits(span, &inside) };
        for (part, sample) in parts {
            self.hole(Span::new(from, part.start));
            let around = if sample.full { None } else { self.around(part) };
            self.put(part.start, Stack { user: sample.user, around, call: None, kernel: sample.kernel });
            from = part.end;
        }
        self.hole(Span::new(from, span.end));
    }

    fn hole(&mut self, span: Span) {
        if !span.is_empty() {
            let around = self.around(span);
            self.put(span.start, Stack { around, ..Stack::default() });
        }
    }

    /// The full stacks around a span, where they belong to one program.
    fn around(&mut self, span: Span) -> Option<SurroundingStacks> {
        let around = self.full.around(span)?;
        (self.program(around.before) == self.program(around.after)).then_some(around)
    }

    /// The time over which the process runs the program that it runs at `t`.
    pub(super) fn program_life(&self, t: Timestamp) -> Span {
        let next = self.programs.partition_point(|from| *from <= t);
        let start = next.checked_sub(1).and_then(|i| self.programs.get(i)).copied().unwrap_or(Timestamp::MIN);
        Span::new(start, self.programs.get(next).copied().unwrap_or(Timestamp::MAX))
    }

    pub(super) fn program(&self, stack: ProcessStack) -> Option<u32> {
        self.inputs.spaces.get(stack.space?).map(|space| space.program)
    }

    fn put(&mut self, from: Timestamp, stack: Stack) {
        let id = self.table.intern(stack);
        while self.placed.back().is_some_and(|last| last.from >= from) {
            self.placed.pop_back();
        }
        if self.placed.back().is_none_or(|last| last.stack != id) {
            self.placed.push_back(SampledStack { from, stack: id });
        }
    }
}
