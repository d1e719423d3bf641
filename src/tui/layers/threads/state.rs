//! Many threads over time: which lanes are asked for, the window of time, and the lane under the cursor.
//!
//! In: answers of the state history. Out: the questions that follow from a key. The cursor is on a lane and a moment;
//! when lanes are replaced it stays on the same thread, process or CPU.

use crate::base::time::{Span, Timestamp};
use crate::model::concurrent::ConcurrentQuestion;
use crate::model::thread_lanes::{
    LaneOwner, LanesRequest, MOST_CELLS, ThreadLane, ThreadLanes, ThreadMoment, ThreadsAnswer, ThreadsQuestion,
};
use crate::model::wait_kind::SegmentKind;
use crate::tui::concurrent::ConcurrentAnswer;
use crate::tui::time_window::TimeWindow;
use crate::tui::widget::page::StyledLine;
use crate::view::thread_lanes::shown_states;
use std::sync::Arc;

/// Lanes that are asked for, at most.
const MOST_LANES: usize = 400;

/// Threads that keep a lane of their own because the cursor was on them, at most.
const MOST_KEPT: usize = 8;

/// The dialog.
#[derive(Clone, Debug, Default)]
pub struct ThreadsView {
    pub time: TimeWindow,
    /// The lanes that are drawn.
    pub lanes: Option<Arc<ThreadLanes>>,
    /// The states that they show.
    pub states: Vec<SegmentKind>,
    /// Why there are none, or no new ones.
    pub failure: Option<String>,
    /// The lane under the cursor.
    pub row: usize,
    /// The first lane that is drawn.
    pub first: usize,
    /// What the thread of that lane does at the moment under the cursor, once it is known.
    pub moment: Option<ThreadMoment>,
    /// A thread and a moment outside of its life.
    absent: Option<(u32, Timestamp)>,
    /// Who else was there, where that was asked.
    pub concurrent: Option<ConcurrentAnswer>,
    /// Which lanes, but for their time and their number.
    pub wanted: LanesRequest,
    /// The lanes that were asked for last.
    asked: Option<LanesRequest>,
    /// They have not come yet.
    pub is_waiting: bool,
    /// The thread that gets the cursor when they come.
    goes_to: Option<u32>,
    /// Its lines in the present layout.
    pub lines: ThreadsLines,
}

/// The lines and columns of the dialog.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadsLines {
    /// Lines of executions above the lanes.
    pub strips: usize,
    /// Lines of lanes.
    pub lanes: usize,
    /// The text below.
    pub details: Vec<StyledLine>,
}

/// Columns of names on a screen of this width.
pub fn label_columns(width: usize) -> usize {
    (width / 4).clamp(8, 36)
}

/// Columns of time on a screen of this width.
pub fn time_columns(width: usize) -> usize {
    width.saturating_sub(label_columns(width) + 3).max(1)
}

impl ThreadsView {
    /// A view of a part of the time, or all of it, in which threads of causes come first.
    pub fn new(time: Option<TimeWindow>, causes: Vec<(String, i32)>) -> ThreadsView {
        let all = TimeWindow { window: Span::new(Timestamp::MIN, Timestamp::MAX), ..TimeWindow::default() };
        let wanted = LanesRequest { causes, ..LanesRequest::default() };
        ThreadsView { time: time.unwrap_or(all), wanted, ..ThreadsView::default() }
    }

    /// The lane under the cursor.
    pub fn lane(&self) -> Option<&ThreadLane> {
        self.lanes.as_ref()?.lanes.get(self.row)
    }

    /// The thread under the cursor, and when.
    fn moment_asked(&self) -> Option<(u32, Timestamp)> {
        match &self.lane()?.owner {
            LaneOwner::Thread(thread) => Some((thread.number, self.time.cursor)),
            _ => None,
        }
    }

    /// What is not known yet on a screen of this width; `None` where all is.
    pub fn question(&mut self, width: usize) -> Option<ThreadsQuestion> {
        let columns = time_columns(width);
        let most = MOST_LANES.min(MOST_CELLS / columns.max(1)).max(2);
        let request = LanesRequest { span: self.time.window, columns, most, ..self.wanted.clone() };
        let is_new = self.asked.as_ref() != Some(&request);
        let lanes = (is_new || self.is_waiting).then(|| request.clone());
        if is_new {
            (self.asked, self.is_waiting) = (Some(request), true);
        }
        let asked = self.moment_asked();
        let holds = |known: &ThreadMoment| {
            asked.is_some_and(|(number, at)| known.thread.number == number && known.span.contains(at))
        };
        let is_known = self.moment.as_ref().is_some_and(holds);
        if !is_known {
            (self.moment, self.concurrent) = (None, None);
        }
        let moment = asked.filter(|_| !is_known && asked != self.absent);
        (lanes.is_some() || moment.is_some()).then_some(ThreadsQuestion { lanes, moment })
    }

    /// Take an answer; those to older questions are dropped.
    pub fn take(&mut self, question: &ThreadsQuestion, answer: ThreadsAnswer) {
        if let Some(lanes) = answer.lanes.filter(|_| question.lanes == self.asked) {
            self.replace(lanes);
        }
        if question.moment.is_some() && question.moment == self.moment_asked() {
            self.absent = question.moment.filter(|_| answer.moment.is_none());
            self.moment = answer.moment;
        }
    }

    fn replace(&mut self, lanes: ThreadLanes) {
        (self.is_waiting, self.failure) = (false, None);
        self.time.window = lanes.grid.whole();
        if let Some(asked) = &mut self.asked {
            asked.span = self.time.window;
        }
        if !self.time.window.contains(self.time.cursor) {
            self.time.cursor = self.time.window.start;
        }
        let same = |a: &LaneOwner, b: &LaneOwner| match (a, b) {
            (LaneOwner::Thread(a), LaneOwner::Thread(b)) => a.number == b.number,
            (LaneOwner::Process { first: a, .. }, LaneOwner::Process { first: b, .. }) => {
                (&a.names.host, a.names.pid) == (&b.names.host, b.names.pid)
            }
            (LaneOwner::Others { .. }, LaneOwner::Others { .. }) => true,
            (a, b) => a == b,
        };
        let is_here = |lane: &ThreadLane| match self.goes_to {
            Some(number) => matches!(&lane.owner, LaneOwner::Thread(thread) if thread.number == number),
            None => self.lane().is_some_and(|before| same(&before.owner, &lane.owner)),
        };
        let is_first = self.lanes.is_none() && self.goes_to.is_none();
        let found = lanes.lanes.iter().position(is_here).filter(|_| !is_first);
        self.row = found.unwrap_or(self.row).min(lanes.lanes.len().saturating_sub(1));
        self.goes_to = None;
        self.states = shown_states(&lanes).0;
        self.lanes = Some(Arc::new(lanes));
    }

    /// A thread has a lane of its own from now on, before those that were kept earlier.
    fn keep(&mut self, number: u32) {
        self.wanted.own.retain(|own| *own != number);
        self.wanted.own.insert(0, number);
        self.wanted.own.truncate(MOST_KEPT);
    }

    /// The thread under the cursor stays among the first lanes, although others are busier in another time.
    pub fn keep_here(&mut self) {
        if let Some((number, _)) = self.moment_asked() {
            self.keep(number);
        }
    }

    /// The cursor goes to the thread that ended the wait, when it did; false where that is not known.
    pub fn follow(&mut self) -> bool {
        let Some((waker, at)) = self.moment.as_ref().and_then(|moment| moment.waker.clone()) else { return false };
        let Some(lanes) = self.lanes.clone() else { return false };
        // The wake-up belongs to what the waker did just before.
        self.time.go_to(at.saturating_sub(1).max(lanes.recorded.start), lanes.recorded);
        let has_lane = |lane: &ThreadLane| matches!(&lane.owner, LaneOwner::Thread(of) if of.number == waker.number);
        match lanes.lanes.iter().position(has_lane) {
            Some(row) => self.row = row,
            None => {
                self.keep(waker.number);
                self.wanted.only.clear();
            }
        }
        self.goes_to = Some(waker.number);
        true
    }

    /// Show each thread of the process under the cursor, or all of them in one lane; false where there is none.
    pub fn unfold(&mut self) -> bool {
        let (number, is_folded) = match self.lane().map(|lane| &lane.owner) {
            Some(LaneOwner::Process { first, .. }) => (first.number, true),
            Some(LaneOwner::Thread(thread)) => (thread.number, false),
            _ => return false,
        };
        let pid_of = |number: u32| {
            let lanes = &self.lanes.as_ref()?.lanes;
            lanes.iter().find_map(|lane| match &lane.owner {
                LaneOwner::Thread(of) | LaneOwner::Process { first: of, .. } if of.number == number => {
                    Some((of.names.host.clone(), of.names.pid))
                }
                _ => None,
            })
        };
        let process = pid_of(number);
        let before = self.wanted.open.len();
        let kept = self.wanted.open.iter().copied().filter(|open| pid_of(*open) != process).collect();
        self.wanted.open = kept;
        if is_folded {
            self.wanted.open.push(number);
        }
        is_folded || self.wanted.open.len() < before
    }

    /// Who else was there: about the segment under the cursor.
    pub fn concurrent_question(&self) -> Option<ConcurrentQuestion> {
        let moment = self.moment.as_ref()?;
        let names = &moment.thread.names;
        let (host, cpu) = (names.host.clone(), moment.cpu);
        Some(ConcurrentQuestion { span: moment.span, host, tid: names.tid, pid: names.pid, cpu })
    }
}
