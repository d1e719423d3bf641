//! The cursor among the calls of a timeline, on its events, and in both executions at corresponding moments.
//!
//! In: timelines, the call trees of both, and how they are aligned. The cursor is on a segment; it may also be at a
//! level of the calls above it. Wherever it goes, the other execution's goes to the corresponding moment. Cost of a
//! step: a walk over the calls of one level, or down the tree at one moment.

use super::{LoadedTimelines, PairAlignment};
use crate::base::column_grid::ColumnGrid;
use crate::base::time::Ns;
use crate::compare::calls::{CallTree, PathCall};
use crate::model::execution_timeline::TimelineEvent;
use crate::view::stack_chart;

impl LoadedTimelines {
    /// The calls of an execution of the dialog.
    pub fn tree(&self, at: usize) -> &CallTree {
        &self.calls.trees[at.min(1)]
    }

    /// The call under the cursor, where that is among the calls: the one of its level, or the deepest above it.
    pub fn call_here(&self) -> Option<(u32, &PathCall)> {
        let level = self.level?;
        let at_ns = self.here()?.1.start_ns;
        let tree = self.tree(self.front);
        let deepest = tree.deepest_at(at_ns).and_then(|at| tree.call(at))?.level as usize;
        let at = tree.at(level.min(deepest), at_ns)?;
        Some((at, tree.call(at)?))
    }

    /// The call of an execution that is drawn as under the cursor: in the other execution the partner.
    pub fn call_marked(&self, at: usize) -> Option<u32> {
        let (call, _) = self.call_here()?;
        if at == self.front { Some(call) } else { self.calls.partner(self.front, call) }
    }

    /// One line down (1) or up (-1): threads, then the calls of the execution in front, then the other execution.
    pub fn step_line(&mut self, by: isize, columns: usize) {
        match (self.level, by > 0) {
            (Some(_), true) => {
                if !self.enter_call(columns) && self.front == 0 {
                    self.level = None;
                    self.switch(columns);
                }
            }
            (Some(_), false) => {
                let level = self.call_here().map(|(_, call)| call.level as usize);
                let first = stack_chart::first_level(self.tree(self.front));
                self.level = level.filter(|level| *level > first).map(|level| level - 1);
            }
            (None, true) if !self.has_thread_below() && self.tree(self.front).depth() > 0 => {
                self.level = Some(stack_chart::first_level(self.tree(self.front)));
            }
            (None, _) => self.step_thread(by, columns),
        }
    }

    /// To the call below that is on the path at the cursor, else to the longest one; false where there is none.
    fn enter_call(&mut self, columns: usize) -> bool {
        let (Some((at, call)), Some((_, segment))) = (self.call_here(), self.here()) else { return false };
        let (level, at_ns) = (call.level as usize + 1, segment.start_ns);
        let tree = self.tree(self.front);
        let below = tree.at(level, at_ns).or_else(|| {
            let longest = |child: &u32| tree.call(*child).map(|call| (call.ns, std::cmp::Reverse(call.start_ns)));
            tree.children(Some(at)).max_by_key(longest)
        });
        let Some(start_ns) = below.and_then(|at| tree.call(at)).map(|call| call.start_ns) else { return false };
        self.level = Some(level);
        if tree_is_elsewhere(self, level, at_ns) {
            self.go_to_moment(start_ns, columns);
        }
        true
    }

    /// To the next (1) or previous (-1) column in which a call of the cursor's level begins; of several there to the
    /// longest.
    pub fn step_call(&mut self, by: isize, columns: usize) {
        let Some((here, call)) = self.call_here() else { return };
        let tree = self.tree(self.front);
        let (level, window) = (call.level as usize, self.window_of(self.front));
        let grid = ColumnGrid::new(&window, columns);
        let all = tree.level(level);
        let start = |at: usize| all.get(at).and_then(|at| tree.call(*at)).map(|call| call.start_ns);
        let column = |at: usize| start(at).and_then(|ns| grid.column(ns));
        let at = all.partition_point(|other| *other < here);
        let Some(mut next) = at.checked_add_signed(by).filter(|next| *next < all.len()) else { return };
        let further = |next: usize| next.checked_add_signed(by).filter(|next| *next < all.len());
        while column(at).is_some() && column(next) == column(at) {
            let Some(after) = further(next) else { return };
            next = after;
        }
        let there = column(next);
        let length = |at: usize| all.get(at).and_then(|at| tree.call(*at)).map_or(0, |call| call.ns);
        let mut best = (length(next), next);
        while let Some(after) = further(next).filter(|after| there.is_some() && column(*after) == there) {
            next = after;
            best = best.max((length(next), next));
        }
        if let Some(start_ns) = start(best.1) {
            self.level = Some(level);
            self.go_to_moment(start_ns, columns);
        }
    }

    /// Put the cursor on the segment of the execution in front at a moment.
    pub fn go_to_moment(&mut self, at_ns: Ns, columns: usize) {
        if let Some(segment) = self.timeline(self.front).and_then(|timeline| timeline.segment_at(at_ns)) {
            self.go_to(segment, columns);
        }
    }

    /// Put the cursor on the call of an execution at a line of its stack chart and a column.
    pub fn point_to_call(&mut self, at: usize, line: usize, column: usize, columns: usize) {
        let grid = ColumnGrid::new(&self.window_of(at), columns);
        let middle = grid.start(column).midpoint(grid.start(column + 1));
        let level = stack_chart::first_level(self.tree(at)) + self.chart_top + line;
        let Some(start_ns) = self.tree(at).at(level, middle).and_then(|call| self.tree(at).call(call)) else { return };
        let start_ns = start_ns.start_ns;
        self.front = at.min(1);
        self.level = Some(level);
        self.go_to_moment(start_ns, columns);
    }

    /// Show the call under the cursor with as much before and after it as it is half long; false where there is none.
    pub fn show_call(&mut self, columns: usize) -> bool {
        let Some((_, call)) = self.call_here() else { return false };
        let (start, ns) = (call.start_ns + self.shift(self.front), call.ns);
        self.set_window(start - ns / 2, ns.saturating_mul(2), columns);
        true
    }

    /// Scroll the stack chart of so many lines so that the call under the cursor is on it.
    pub fn scroll_chart(&mut self, lines: usize) {
        let tree = self.tree(self.front);
        let first = stack_chart::first_level(tree);
        let most = stack_chart::lines(tree).saturating_sub(lines);
        let line = self.call_here().map(|(_, call)| (call.level as usize).saturating_sub(first));
        let top = line.map_or(self.chart_top, |line| {
            self.chart_top.clamp((line + 1).saturating_sub(lines.max(1)), line)
        });
        self.chart_top = top.min(most);
    }

    /// The other execution's cursor goes to the moment that corresponds to that of this one.
    pub(super) fn link(&mut self) {
        let front = self.front.min(1);
        let Some(at_ns) = self.here().map(|(_, segment)| segment.start_ns) else { return };
        let in_other = self.calls.time_in_other(front, at_ns);
        self.linked[front] = at_ns;
        if let Some(segment) = self.timeline(1 - front).and_then(|timeline| timeline.segment_at(in_other)) {
            self.linked[1 - front] = in_other;
            self.cursor[1 - front] = segment;
        }
    }

    /// Put the cursors of both at these moments.
    pub fn point_both(&mut self, moments: [Ns; 2]) {
        for (at, at_ns) in moments.into_iter().enumerate() {
            if let Some(segment) = self.timeline(at).and_then(|timeline| timeline.segment_at(at_ns)) {
                self.cursor[at] = segment;
                self.linked[at] = at_ns;
            }
        }
    }

    /// The next way to align both; false where there is only one.
    pub fn next_alignment(&mut self, columns: usize) -> bool {
        if self.timeline(1).is_none() {
            return false;
        }
        let is_whole = self.window == self.whole();
        self.alignment = match self.alignment {
            PairAlignment::Begins if self.divergence.is_some() => PairAlignment::Divergence,
            PairAlignment::Begins | PairAlignment::Divergence => PairAlignment::Cursor,
            PairAlignment::Cursor => PairAlignment::Begins,
        };
        if is_whole {
            self.show_whole();
        } else {
            let (start, length) = (self.window.start, self.window.end - self.window.start);
            self.set_window(start, length, columns);
        }
        true
    }

    /// The event that is told, with its number from 1.
    pub fn event_here(&self) -> Option<(usize, &TimelineEvent)> {
        let at = self.event?;
        Some((at + 1, self.timeline(self.front)?.events.get(at)?))
    }

    /// To the next (1) or previous (-1) event of the execution in front; false where there is none.
    pub fn step_event(&mut self, by: isize, columns: usize) -> bool {
        let (Some(timeline), Some((_, segment))) = (self.timeline(self.front), self.here()) else { return false };
        let events = &timeline.events;
        let next = match self.event {
            Some(at) => at.checked_add_signed(by).filter(|next| *next < events.len()),
            None if by > 0 => {
                Some(events.partition_point(|e| e.at_ns < segment.start_ns)).filter(|next| *next < events.len())
            }
            None => events.partition_point(|e| e.at_ns < segment.end_ns()).checked_sub(1),
        };
        let Some((next, event)) = next.and_then(|next| Some((next, events.get(next)?))) else { return false };
        let at_ns = event.at_ns.max(0);
        self.go_to_moment(at_ns, columns);
        self.event = Some(next);
        self.events = true;
        true
    }
}

/// True where no call of a level is on the path at the cursor's moment.
fn tree_is_elsewhere(loaded: &LoadedTimelines, level: usize, at_ns: Ns) -> bool {
    loaded.tree(loaded.front).at(level, at_ns).is_none()
}
