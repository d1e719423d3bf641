//! The cursor among the calls of a timeline, on its events, and in both executions at corresponding moments.
//!
//! In: timelines, the call trees of both, and how they are aligned. The cursor is on a segment; it may also be on a
//! line of its calls. Wherever it goes, the cursor of the other execution goes to the corresponding moment. Cost of a
//! step: the cells of a line, or a walk down the tree at one moment.

use super::aligned::AlignedView;
use super::{LoadedTimelines, PairAlignment};
use crate::base::column_grid::ColumnGrid;
use crate::base::time::Ns;
use crate::compare::calls::{CallTree, PathCall};
use crate::model::execution_timeline::TimelineEvent;
use crate::view::stack_chart::{self, StackCell};
use std::ops::Range;

impl LoadedTimelines {
    /// The calls of an execution of the dialog.
    pub fn tree(&self, at: usize) -> &CallTree {
        &self.calls.trees[at.min(1)]
    }

    /// The call under the cursor, where that is among the calls: the deepest of its line, or of those above it.
    pub fn call_here(&self) -> Option<(u32, &PathCall)> {
        let tree = self.tree(self.front);
        let at = tree.on_line(self.line?, self.here()?.1.start_ns)?;
        Some((at, tree.call(at)?))
    }

    /// The call of an execution that is drawn as under the cursor: in the other execution the partner.
    pub fn call_marked(&self, at: usize) -> Option<u32> {
        let (call, _) = self.call_here()?;
        if at == self.front { Some(call) } else { self.calls.partner(self.front, call) }
    }

    /// The line on which the call under the cursor is.
    fn line_here(&self) -> Option<usize> {
        let (_, call) = self.call_here()?;
        Some(self.tree(self.front).line_of(call.level as usize))
    }

    /// One line down (1) or up (-1): threads, then the calls of the execution in front, then the other execution.
    pub fn step_line(&mut self, by: isize, columns: usize) {
        match (self.line, by > 0) {
            (Some(_), true) => {
                if !self.enter_call(columns) && self.front == 0 {
                    self.switch(columns);
                }
            }
            (Some(_), false) => self.line = self.line_here().and_then(|line| line.checked_sub(1)),
            (None, true) if !self.has_thread_below() && !self.tree(self.front).lines().is_empty() => {
                self.line = Some(0);
            }
            (None, _) => self.step_thread(by, columns),
        }
    }

    /// To the call below that is on the path at the cursor, else to the longest one; false where there is none.
    fn enter_call(&mut self, columns: usize) -> bool {
        let (Some((_, call)), Some(line), Some((_, segment))) = (self.call_here(), self.line_here(), self.here())
        else {
            return false;
        };
        let tree = self.tree(self.front);
        let Some(level) = tree.lines().get(line + 1).map(|levels| levels.start) else { return false };
        if tree.at(level, segment.start_ns).is_none() {
            let below = tree.meeting(level, call.start_ns, call.end_ns()).iter().filter_map(|at| tree.call(*at));
            let longest = below.max_by_key(|call| (call.ns, std::cmp::Reverse(call.start_ns)));
            let Some(start_ns) = longest.map(|call| call.start_ns) else { return false };
            self.go_to_moment(start_ns, columns);
        }
        self.line = Some(line + 1);
        true
    }

    /// To the call that is drawn to the right (1) or left (-1) on the cursor's line; of several short ones in a column
    /// to the longest. Beyond the window to the next one there.
    pub fn step_call(&mut self, by: isize, columns: usize) {
        let (Some((_, call)), Some(line)) = (self.call_here(), self.line_here()) else { return };
        let (tree, window) = (self.tree(self.front), self.window_of(self.front));
        let grid = ColumnGrid::new(&window, columns);
        let cells = stack_chart::cells(tree, line, &grid);
        let here = grid.column(call.start_ns.clamp(window.start, window.end - 1)).unwrap_or(0);
        let cell = cells.get(here).copied();
        let mut at = Some(here);
        while let Some(column) = at.filter(|column| {
            let found = cells.get(*column).copied();
            *column == here || found == cell && cell != Some(StackCell::Short) || found == Some(StackCell::Empty)
        }) {
            at = column.checked_add_signed(by).filter(|next| *next < columns);
        }
        let start_ns = match at.and_then(|at| Some((at, cells.get(at)?))) {
            Some((_, StackCell::Call(next))) => tree.call(*next).map(|call| call.start_ns),
            Some((column, _)) => longest_in(tree, line, grid.start(column)..grid.start(column + 1)),
            None => beyond(tree, line, &window, by),
        };
        if let Some(start_ns) = start_ns {
            self.line = Some(line);
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
        let line = line + if at == self.front { self.chart_top } else { 0 };
        let tree = self.tree(at);
        let start_ns = match stack_chart::cells(tree, line, &grid).get(column) {
            Some(StackCell::Call(call)) => tree.call(*call).map(|call| call.start_ns),
            Some(StackCell::Short) => longest_in(tree, line, grid.start(column)..grid.start(column + 1)),
            Some(StackCell::Empty) | None => None,
        };
        if let Some(start_ns) = start_ns {
            self.front = at.min(1);
            self.line = Some(line);
            self.go_to_moment(start_ns, columns);
        }
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
        let most = self.tree(self.front).lines().len().saturating_sub(lines);
        let top = self
            .line_here()
            .map_or(self.chart_top, |line| self.chart_top.clamp((line + 1).saturating_sub(lines.max(1)), line));
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
        self.event = None;
        for (at, at_ns) in moments.into_iter().enumerate() {
            if let Some(segment) = self.timeline(at).and_then(|timeline| timeline.segment_at(at_ns)) {
                self.cursor[at] = segment;
                self.linked[at] = at_ns;
            }
        }
    }

    /// The length of the longer execution.
    pub fn longest(&self) -> Ns {
        (0..2).filter_map(|at| self.timeline(at)).map(|timeline| timeline.ns).max().unwrap_or(0)
    }

    /// Show the calls of both as a tree, with its cursor on the call at that of the timelines.
    pub fn show_trees(&mut self) {
        let front = self.front.min(1);
        let call = self.call_here().map(|(call, _)| call).or_else(|| self.tree(front).deepest_at(self.linked[front]));
        let row = call.and_then(|call| self.calls.row_of(front, call));
        self.trees = Some(AlignedView::new(&self.model, &self.calls, self.longest(), row));
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

    /// The event that the text is about, with its number from 1.
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

/// The begin of the longest call of a line that meets a range of times.
fn longest_in(tree: &CallTree, line: usize, range: Range<Ns>) -> Option<Ns> {
    let levels = tree.lines().get(line)?.clone();
    let all = levels.flat_map(|level| tree.meeting(level, range.start, range.end)).filter_map(|at| tree.call(*at));
    all.max_by_key(|call| (call.ns, std::cmp::Reverse(call.start_ns))).map(|call| call.start_ns)
}

/// The begin of the next call of a line after a window (1), or before it (-1).
fn beyond(tree: &CallTree, line: usize, window: &Range<Ns>, by: isize) -> Option<Ns> {
    let level = tree.lines().get(line)?.start;
    let mut starts = tree.level(level).iter().filter_map(|at| tree.call(*at)).map(|call| call.start_ns);
    if by > 0 { starts.find(|start| *start >= window.end) } else { starts.rfind(|start| *start < window.start) }
}
