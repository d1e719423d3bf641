//! Places among the stacks of threads.
//!
//! In: a thread and a moment or span. Out: its stacks there. A cursor keeps its place, so that questions in order of
//! time cost a few comparisons each; others cost a search (ALGORITHMS.md 8.10).

use super::{StackId, StackTimelines, UNKNOWN};
use crate::base::time::{Span, Timestamp};
use crate::timeline::questions::{Access, Family};
use crate::timeline::reader::{RowCursor, RowReader};
use crate::timeline::{StackChange, ThreadId};
use smallvec::SmallVec;

/// Threads whose places are kept.
const KEPT: usize = 4;

impl StackTimelines {
    /// A place among the stacks of a thread.
    pub fn cursor<'r>(&'r self, reader: &'r RowReader<'r>, thread: ThreadId) -> StackCursor<'r> {
        let after = self.groups.partition_point(|group| group.first <= thread);
        let group = after.checked_sub(1).and_then(|at| self.groups.get(at));
        let changes = group.map(|group| reader.stacks(&group.lines, thread.index() - group.first.index()));
        StackCursor { thread, reader, ids: group.map_or(&[], |group| &group.ids), changes, held: None }
    }

    /// Places among the stacks of several threads.
    pub fn cursors<'r>(&'r self, reader: &'r RowReader<'r>) -> StackCursors<'r> {
        StackCursors { timelines: self, reader, kept: SmallVec::new(), next: 0 }
    }
}

/// Places among the stacks of the threads that were asked for last.
pub struct StackCursors<'r> {
    timelines: &'r StackTimelines,
    reader: &'r RowReader<'r>,
    kept: SmallVec<[StackCursor<'r>; KEPT]>,
    /// The one that gives way to the next thread.
    next: usize,
}

impl<'r> StackCursors<'r> {
    /// The place among the stacks of a thread.
    pub fn of(&mut self, thread: ThreadId) -> &mut StackCursor<'r> {
        let known = self.kept.iter().position(|cursor| cursor.thread == thread);
        let at = known.unwrap_or_else(|| {
            let cursor = self.timelines.cursor(self.reader, thread);
            if self.kept.len() < KEPT {
                self.kept.push(cursor);
                return self.kept.len() - 1;
            }
            let at = self.next;
            self.kept[at] = cursor;
            self.next = (at + 1) % KEPT;
            at
        });
        &mut self.kept[at]
    }
}

/// A place among the stacks of one thread.
#[derive(Debug)]
pub struct StackCursor<'r> {
    thread: ThreadId,
    reader: &'r RowReader<'r>,
    ids: &'r [StackId],
    changes: Option<RowCursor<'r, StackChange>>,
    /// The stack that was found last: many questions in turn are about one.
    held: Option<HeldStack>,
}

/// A stack, and when the thread has it.
#[derive(Clone, Copy, Debug)]
struct HeldStack {
    span: Span,
    stack: StackId,
}

impl<'r> StackCursor<'r> {
    /// Its stack at `t`.
    pub fn at(&mut self, t: Timestamp) -> StackId {
        if let Some(held) = self.held.filter(|held| held.span.contains(t)) {
            self.reader.asked(Family::Stacks, Access::At);
            return held.stack;
        }
        self.held = self.changes.as_mut().and_then(|changes| {
            let change = changes.last_begun(t)?;
            let span = Span::new(change.time, changes.next_start().unwrap_or(Timestamp::MAX));
            Some(HeldStack { span, stack: id(self.ids, change.stack) })
        });
        self.held.map_or(UNKNOWN, |held| held.stack)
    }

    /// Its stacks over a span: parts that tile it.
    pub fn over(&mut self, span: Span) -> impl Iterator<Item = (Span, StackId)> + use<'r> {
        let ids = self.ids;
        let held = self.held.filter(|held| held.span.start <= span.start && span.end <= held.span.end);
        let changes = match held {
            Some(_) => {
                self.reader.asked(Family::Stacks, Access::Within);
                None
            }
            None => self.changes.as_mut().map(|changes| changes.holding_in(span)),
        };
        let id = move |number| id(ids, number);
        let mut changes = changes.into_iter().flatten().peekable();
        let first = changes.next_if(|change| change.time <= span.start);
        let known = held.map(|held| held.stack).or(first.map(|change| id(change.stack)));
        let mut stack = known.unwrap_or(UNKNOWN);
        let mut start = span.start;
        std::iter::from_fn(move || {
            if start >= span.end {
                return None;
            }
            let change = changes.next();
            let end = change.map_or(span.end, |change| change.time);
            let piece = (Span::new(start, end), stack);
            (start, stack) = (end, change.map_or(stack, |change| id(change.stack)));
            Some(piece)
        })
    }
}

fn id(ids: &[StackId], number: u32) -> StackId {
    ids.get(number as usize).copied().unwrap_or(UNKNOWN)
}
