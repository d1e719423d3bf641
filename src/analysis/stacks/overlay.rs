//! Open functions over the sampled stacks of a thread.
//!
//! In: the sampled stacks and the functions that are open, both in order of time, some at a time. Out: the changes of
//! the stack that is known: entry and exit events of functions are exact, so an open function replaces the samples.

use super::table::{Sample, Stack, StackId, StackTable};
use crate::base::time::Timestamp;
use crate::symbols::ProcessStack;
use crate::timeline::StackChange;
use std::collections::VecDeque;

/// The sampled stack of a thread from a moment on.
#[derive(Clone, Copy)]
pub(super) struct SampledStack {
    pub from: Timestamp,
    pub stack: StackId,
}

/// Where a thread is.
#[derive(Default)]
pub(super) struct Overlay {
    sampled: Option<StackId>,
    open: Option<ProcessStack>,
    /// The last change that was made.
    last: Option<StackId>,
}

impl Overlay {
    /// Take the stacks of `sampled`, and the functions before `until`; at `until` or later follow all others.
    pub fn merge(
        &mut self,
        sampled: impl Iterator<Item = SampledStack>,
        functions: &mut VecDeque<Sample>,
        until: Timestamp,
        table: &mut StackTable,
        mut change: impl FnMut(StackChange),
    ) {
        let mut sampled = sampled.peekable();
        loop {
            let function = functions.front().map(|function| function.time).filter(|time| *time < until);
            let time = match (sampled.peek().map(|next| next.from), function) {
                (Some(a), Some(b)) => a.min(b),
                (Some(time), None) | (None, Some(time)) => time,
                (None, None) => return,
            };
            while let Some(next) = sampled.next_if(|next| next.from == time) {
                self.sampled = Some(next.stack);
            }
            while let Some(function) = functions.front().filter(|function| function.time == time) {
                self.open = function.user;
                functions.pop_front();
            }
            let stack = self.stack(table);
            if self.last.replace(stack) != Some(stack) {
                change(StackChange { time, stack: stack.raw() });
            }
        }
    }

    fn stack(&self, table: &mut StackTable) -> StackId {
        let sampled = |table: &mut StackTable| self.sampled.unwrap_or_else(|| table.intern(Stack::default()));
        let Some(open) = self.open else { return sampled(table) };
        let below = self.sampled.map_or_else(Stack::default, |id| table.get(id));
        table.intern(Stack { user: Some(open), around: None, ..below })
    }
}
