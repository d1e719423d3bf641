//! The timeline of an execution beside a typical one: position, scale and search.
//!
//! In: two executions, and, once a job has read them, a model with their timelines and their calls. The window is a
//! range of the first one's times; the second is shifted so that both begin, diverge, or have their cursors in one
//! column. The cursor is on a segment of the execution in front, and may be on a line of its calls (`calls.rs`); that
//! of the other one is at the corresponding moment. Cost of a step: linear in the segments that share a column.

pub mod aligned;
mod calls;
mod others;

use super::lines::TimelineLines;
use crate::base::column_grid::ColumnGrid;
use crate::base::time::{Ns, Span};
use crate::compare::arranged::KernelFrames;
use crate::compare::calls::aligned::PairedCalls;
use crate::compare::frame_text;
use crate::compare::moments::Divergence;
use crate::model::Model;
use crate::model::concurrent::ConcurrentQuestion;
use crate::model::context::ContextId;
use crate::model::execution::ExecutionId;
use crate::model::execution_timeline::{ExecutionTimeline, TimelineSegment, event_letters};
use crate::model::wait_kind::WaitKind;
use crate::tui::concurrent::ConcurrentAnswer;
use crate::tui::job::ReadTimelines;
use crate::tui::search::{MatchStep, TextSearch};
use crate::view::lanes::thread_name;
use aligned::AlignedView;
use others::OtherLane;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The group of an execution, as its timeline names it.
pub type GroupLabel = &'static str;

/// An execution on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineExecution {
    pub id: ExecutionId,
    /// `slow`, `fast`, or empty.
    pub group: GroupLabel,
    /// It is beside the other one because its length is typical.
    pub is_typical: bool,
}

/// The dialog.
#[derive(Clone, Debug)]
pub struct TimelineView {
    /// The execution asked for, then a typical one of the other group, where there is one.
    pub executions: Vec<TimelineExecution>,
    pub content: TimelineContent,
    /// Who else used the same things was asked while it was read.
    pub asks_who_else: bool,
    /// Its lines in the present layout.
    pub lines: TimelineLines,
    /// Whether calls have the kernel's functions.
    pub kernel: KernelFrames,
}

/// The content of the dialog.
#[derive(Clone, Debug)]
pub enum TimelineContent {
    /// A job reads it.
    Loading,
    /// It cannot be read.
    Failed(String),
    /// It is there.
    Loaded(Box<LoadedTimelines>),
}

/// How two executions are aligned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PairAlignment {
    /// At their begins.
    #[default]
    Begins,
    /// Where they diverge most.
    Divergence,
    /// At the moments of their cursors.
    Cursor,
}

/// Timelines with a cursor.
#[derive(Clone, Debug)]
pub struct LoadedTimelines {
    /// The model that has the timelines.
    pub model: Arc<Model>,
    /// The executions, in the order of the dialog.
    ids: Vec<ExecutionId>,
    /// Where the two differ most.
    pub divergence: Option<Divergence>,
    /// The calls of both, aligned.
    pub calls: Arc<PairedCalls>,
    /// How the second is aligned with the first.
    pub alignment: PairAlignment,
    /// Position of the execution in front.
    pub front: usize,
    /// The segment under the cursor, by execution.
    pub cursor: [usize; 2],
    /// The moments of the cursors, which correspond.
    pub linked: [Ns; 2],
    /// The line of calls on which the cursor is; `None` on the lanes.
    pub line: Option<usize>,
    /// Lines by which the stack chart is scrolled.
    pub chart_top: usize,
    /// The calls of both as rows, in place of the stack chart.
    pub trees: Option<AlignedView>,
    /// The event that the text is about.
    pub event: Option<usize>,
    /// The times shown, of the first execution.
    pub window: Range<Ns>,
    /// Calls, faults and messages are drawn.
    pub events: bool,
    /// A search in the execution in front; its matches are segments.
    pub search: TextSearch,
    /// Who else used the CPU, the disk, a lock.
    pub concurrent: Option<ConcurrentAnswer>,
    /// The states that occur, and the letters of the events with their meanings: of both executions.
    pub states: Vec<WaitKind>,
    pub letters: Vec<(char, &'static str)>,
}

impl LoadedTimelines {
    /// The whole of both, with the cursor on the longest segment of the first.
    pub fn new(read: ReadTimelines, ids: Vec<ExecutionId>) -> Option<LoadedTimelines> {
        let ReadTimelines { model, calls, divergence } = read;
        let longest = |id: &ExecutionId| {
            let segments = model.timelines.get(id)?.segments.iter().enumerate();
            segments.max_by_key(|(at, segment)| (segment.ns, std::cmp::Reverse(*at))).map(|(at, _)| at)
        };
        let first = longest(ids.first()?)?;
        let second = ids.get(1).and_then(longest).unwrap_or(0);
        let mut loaded = LoadedTimelines {
            model,
            ids,
            divergence,
            calls,
            alignment: PairAlignment::default(),
            front: 0,
            cursor: [first, second],
            linked: [0; 2],
            line: None,
            chart_top: 0,
            trees: None,
            event: None,
            window: 0..1,
            events: false,
            search: TextSearch::default(),
            concurrent: None,
            states: Vec::new(),
            letters: Vec::new(),
        };
        let both = || (0..2).filter_map(|at| loaded.timeline(at));
        let mut occurs = [false; WaitKind::ALL.len()];
        both().flat_map(|timeline| &timeline.segments).for_each(|segment| occurs[segment.state as usize] = true);
        let states = WaitKind::ALL.into_iter().zip(occurs).filter(|(_, occurs)| *occurs).map(|(state, _)| state);
        let states = states.collect();
        let mut letters: Vec<_> = both().flat_map(|timeline| event_letters(&timeline.events)).collect();
        letters.sort_unstable();
        letters.dedup();
        (loaded.states, loaded.letters) = (states, letters);
        loaded.link();
        loaded.window = loaded.whole();
        Some(loaded)
    }

    /// Keep the place of timelines of the same executions that were read before.
    pub fn keep_place(&mut self, old: &LoadedTimelines) {
        (self.front, self.window) = (old.front, old.window.clone());
        (self.cursor, self.linked) = (old.cursor, old.linked);
        (self.alignment, self.events, self.event) = (old.alignment, old.events, old.event);
        self.line = old.line;
        if old.trees.is_some() {
            self.show_trees();
        }
    }

    /// The timeline of an execution of the dialog.
    pub fn timeline(&self, at: usize) -> Option<&ExecutionTimeline> {
        self.model.timelines.get(self.ids.get(at)?)
    }

    /// The timeline in front, and the segment under the cursor.
    pub fn here(&self) -> Option<(&ExecutionTimeline, &TimelineSegment)> {
        let timeline = self.timeline(self.front)?;
        Some((timeline, timeline.segments.get(*self.cursor.get(self.front)?)?))
    }

    /// Nanoseconds by which an execution is shifted to the right.
    pub fn shift(&self, at: usize) -> Ns {
        match (at, self.alignment, self.divergence) {
            (1, PairAlignment::Divergence, Some(d)) => d.a_ns - d.b_ns,
            (1, PairAlignment::Cursor, _) => self.linked[0] - self.linked[1],
            _ => 0,
        }
    }

    /// The window in the times of an execution.
    pub fn window_of(&self, at: usize) -> Range<Ns> {
        let shift = self.shift(at);
        self.window.start - shift..self.window.end - shift
    }

    /// The window that shows both executions.
    fn whole(&self) -> Range<Ns> {
        let ranges = (0..self.ids.len()).filter_map(|at| {
            let shift = self.shift(at);
            Some((shift, self.timeline(at)?.ns + shift))
        });
        let (start, end) = ranges.fold((0, 1), |(start, end), (from, to)| (start.min(from), end.max(to)));
        start..end
    }

    /// Show the whole of both.
    pub fn show_whole(&mut self) {
        self.window = self.whole();
    }

    /// Show the segment under the cursor with as much before and after it as it is half long.
    pub fn show_segment(&mut self, columns: usize) {
        let Some((_, segment)) = self.here() else { return };
        let (start, ns) = (segment.start_ns + self.shift(self.front), segment.ns);
        self.set_window(start - ns / 2, ns.saturating_mul(2), columns);
    }

    /// Half of the window (`1`), or twice as much (`-1`), around the cursor.
    pub fn zoom(&mut self, by: isize, columns: usize) {
        let length = self.window.end - self.window.start;
        let new = if by > 0 { length / 2 } else { length.saturating_mul(2) };
        let middle = self.window.start + length / 2;
        let pivot = self.here().map_or(middle, |(_, segment)| {
            let shift = self.shift(self.front);
            let (start, end) = (segment.start_ns + shift, segment.end_ns() + shift);
            // Of a segment that reaches beyond the window the visible part stays in sight.
            let (start, end) = (start.max(self.window.start), end.min(self.window.end));
            if start < end { start + (end - start) / 2 } else { middle }
        });
        let before = (i128::from(pivot - self.window.start) * i128::from(new) / i128::from(length.max(1))) as Ns;
        self.set_window(pivot - before, new, columns);
    }

    /// Move the window by eighths of its length.
    pub fn pan(&mut self, eighths: i64, columns: usize) {
        let length = self.window.end - self.window.start;
        self.set_window(self.window.start + length / 8 * eighths, length, columns);
    }

    /// A window inside the whole, of at least a nanosecond per column.
    pub fn set_window(&mut self, start: Ns, length: Ns, columns: usize) {
        let whole = self.whole();
        let length = length.max(columns.max(1) as i64).min(whole.end - whole.start);
        let start = start.clamp(whole.start, whole.end - length);
        self.window = start..start + length;
    }

    /// Put the cursor on a segment of the execution in front and bring it into the window.
    pub fn go_to(&mut self, segment: usize, columns: usize) {
        let front = self.front;
        let Some(last) = self.timeline(front).and_then(|t| t.segments.len().checked_sub(1)) else { return };
        if let Some(cursor) = self.cursor.get_mut(front) {
            *cursor = segment.min(last);
        }
        self.event = None;
        self.link();
        let Some((_, segment)) = self.here() else { return };
        let window = self.window_of(front);
        let is_visible = segment.start_ns < window.end && segment.end_ns() > window.start;
        if !is_visible {
            let length = self.window.end - self.window.start;
            let start = segment.start_ns + self.shift(front);
            self.set_window(start - length / 2, length, columns);
        }
    }

    /// To the next (1) or previous (-1) column in which a segment begins; of several there to the longest.
    pub fn step(&mut self, by: isize, columns: usize) {
        let Some(target) = self.neighbour(by, columns) else { return };
        self.go_to(target, columns);
    }

    fn neighbour(&self, by: isize, columns: usize) -> Option<usize> {
        let timeline = self.timeline(self.front)?;
        let grid = ColumnGrid::new(&self.window_of(self.front), columns);
        let column = |at: usize| timeline.segments.get(at).and_then(|s| grid.column(s.start_ns));
        let at = *self.cursor.get(self.front)?;
        let here = column(at);
        let mut next = at.checked_add_signed(by)?;
        while here.is_some() && column(next) == here {
            next = next.checked_add_signed(by)?;
        }
        let first = timeline.segments.get(next)?;
        let there = grid.column(first.start_ns);
        let mut best = (first.ns, next);
        while let Some(further) = next.checked_add_signed(by)
            && there.is_some()
            && column(further) == there
        {
            next = further;
            best = best.max((timeline.segments.get(next).map_or(0, |s| s.ns), next));
        }
        Some(best.1)
    }

    /// To the thread above (-1) or below (1), where the path is in it nearest in time; on to the other execution from
    /// the last thread of one.
    pub fn step_thread(&mut self, by: isize, columns: usize) {
        let Some((timeline, segment)) = self.here() else { return };
        let middle = segment.start_ns + segment.ns / 2;
        let mut thread = segment.thread as usize;
        while let Some(next) = thread.checked_add_signed(by).filter(|next| *next < timeline.threads.len()) {
            thread = next;
            if let Some(nearest) = nearest_of(timeline, thread as u32, middle) {
                return self.go_to(nearest, columns);
            }
        }
        if (by > 0) == (self.front == 0) {
            self.switch(columns);
        }
    }

    /// The other execution comes to the front, with its cursor at the corresponding moment.
    pub fn switch(&mut self, columns: usize) {
        let other = 1 - self.front.min(1);
        if self.timeline(other).is_none() {
            return;
        }
        (self.front, self.line) = (other, None);
        self.search.matches.clear();
        let text = self.search.text.clone();
        self.find(&text);
        self.go_to(self.cursor[other], columns);
    }

    /// True where the path is in a thread below that of the cursor.
    pub(super) fn has_thread_below(&self) -> bool {
        self.here().is_some_and(|(timeline, segment)| {
            let is_below = |other: &TimelineSegment| other.thread > segment.thread;
            timeline.segments.iter().any(is_below)
        })
    }

    /// Search the segments of the execution in front: by a frame of their contexts, or their thread.
    pub fn find(&mut self, text: &str) {
        self.search = TextSearch { text: text.to_owned(), matches: Vec::new() };
        let Some(timeline) = self.timeline(self.front).filter(|_| !text.is_empty()) else { return };
        let mut known: BTreeMap<ContextId, bool> = BTreeMap::new();
        let threads: Vec<bool> = timeline.threads.iter().map(|t| self.search.is_in(&thread_name(t))).collect();
        let mut is_match = |segment: &TimelineSegment| {
            let of_thread = threads.get(segment.thread as usize).copied().unwrap_or(false);
            of_thread
                || *known.entry(segment.context).or_insert_with(|| {
                    let path = self.model.contexts.path(segment.context);
                    path.into_iter().any(|context| self.search.is_in(&frame_text(&self.model, context)))
                })
        };
        let segments = (0_u32..).zip(&timeline.segments);
        let matches = segments.filter(|(_, segment)| is_match(segment)).map(|(at, _)| at).collect();
        self.search.matches = matches;
    }

    /// Go to a match; the line to show.
    pub fn step_match(&mut self, step: MatchStep, columns: usize) -> String {
        let text = self.search.text.clone();
        let matches = &self.search.matches;
        let here = self.cursor.get(self.front).map_or(0, |at| *at as u32);
        let (before, until) = (matches.partition_point(|m| *m < here), matches.partition_point(|m| *m <= here));
        let at = step.target(before, until, matches.len());
        let count = matches.len();
        match matches.get(at).copied() {
            Some(segment) => {
                self.go_to(segment as usize, columns);
                format!("match {} of {count}: {text}", at + 1)
            }
            None if text.is_empty() => "nothing searched yet; press /".to_owned(),
            None => format!("{text} is not on the path of this execution"),
        }
    }

    /// Lines for the other threads that used the same things, below the execution in front.
    pub fn others(&self, at: usize) -> Vec<OtherLane> {
        let answer = self.concurrent.as_ref().and_then(|concurrent| concurrent.answer.as_ref()?.as_ref().ok());
        let (Some(used), Some(timeline)) = (answer.filter(|_| at == self.front), self.timeline(at)) else {
            return Vec::new();
        };
        others::other_lanes(used, timeline.start)
    }

    /// Put the cursor on the segment of a thread at a column, or on its nearest one.
    pub fn point_to(&mut self, at: usize, thread: usize, column: usize, columns: usize) {
        let window = self.window_of(at);
        let Some(timeline) = self.timeline(at) else { return };
        let grid = ColumnGrid::new(&window, columns);
        let middle = grid.start(column).midpoint(grid.start(column + 1));
        let Some(nearest) = nearest_of(timeline, thread as u32, middle) else { return };
        self.line = None;
        if self.front != at {
            self.front = at;
            let text = self.search.text.clone();
            self.find(&text);
        }
        self.go_to(nearest, columns);
    }

    /// True where the thread under the cursor waits for what others have: a CPU or a disk.
    pub fn waits_for_others(&self) -> bool {
        self.here().is_some_and(|(_, segment)| matches!(segment.state, WaitKind::Preempted | WaitKind::Disk))
    }

    /// The question who else used the things of the segment under the cursor.
    pub fn question(&self) -> Option<ConcurrentQuestion> {
        let (timeline, segment) = self.here()?;
        let thread = timeline.threads.get(segment.thread as usize)?;
        let start = timeline.start.saturating_add(segment.start_ns);
        Some(ConcurrentQuestion {
            span: Span::new(start, start.saturating_add(segment.ns)),
            host: thread.host.clone(),
            tid: thread.tid,
            pid: thread.pid,
            cpu: segment.cpu,
        })
    }
}

/// The segment of a thread that is nearest to a time.
fn nearest_of(timeline: &ExecutionTimeline, thread: u32, at_ns: Ns) -> Option<usize> {
    let after = timeline.segments.partition_point(|s| s.start_ns <= at_ns);
    let (earlier, later) = timeline.segments.split_at(after);
    let is_its = |s: &&TimelineSegment| s.thread == thread;
    let before = earlier.iter().rposition(|s| is_its(&s));
    let next = later.iter().position(|s| is_its(&s)).map(|at| after + at);
    let distance = |at: &usize| timeline.segments.get(*at).map_or(Ns::MAX, |s| (s.start_ns + s.ns / 2 - at_ns).abs());
    before.into_iter().chain(next).min_by_key(distance)
}

#[cfg(test)]
mod tests;
