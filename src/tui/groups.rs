//! The groups that the user asked for, with undo and redo, and how a selection becomes a filter.

use super::counts::HistogramRow;
use crate::base::op::Op;
use crate::compare::ComparisonRequest;
use crate::compare::filter::{Filter, Operand, Test};
use crate::compare::heat_map::HeatCorner;
use crate::model::metric::{Metric, Unit};

/// One of the two groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupSide {
    Slow,
    Fast,
}

impl GroupSide {
    /// Its name in messages and in filters.
    pub fn name(self) -> &'static str {
        match self {
            GroupSide::Slow => "slow",
            GroupSide::Fast => "fast",
        }
    }

    /// Its filters in a request.
    pub fn of(self, request: &mut ComparisonRequest) -> &mut Vec<Filter> {
        match self {
            GroupSide::Slow => &mut request.slow,
            GroupSide::Fast => &mut request.fast,
        }
    }
}

/// A request with the task that it is about, and what was selected when it was left.
#[derive(Clone, Debug, PartialEq)]
struct GroupEntry {
    request: ComparisonRequest,
    /// `None` before the first analysis has chosen one.
    task: Option<String>,
    selections: Selections,
}

/// Requests in the order in which they were made. An empty request asks for a proposal.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupHistory {
    entries: Vec<GroupEntry>,
    at: usize,
    /// Position and request of the last comparison that succeeded: it is on the screen.
    shown: Option<(usize, ComparisonRequest)>,
}

impl GroupHistory {
    /// Begins with the groups of the command line.
    pub fn new(first: ComparisonRequest) -> GroupHistory {
        GroupHistory {
            entries: vec![GroupEntry { request: first, task: None, selections: Selections::default() }],
            at: 0,
            shown: None,
        }
    }

    /// The request in force.
    pub fn now(&self) -> &ComparisonRequest {
        &self.entries[self.at].request
    }

    /// The task that the request in force is about, once it is known.
    pub fn task(&self) -> Option<&str> {
        self.entries[self.at].task.as_deref()
    }

    /// The task that the user chose in the interface, if any.
    pub fn chosen_task(&self) -> Option<&str> {
        self.task().filter(|task| self.entries[0].task.as_deref() != Some(*task))
    }

    /// The request that asks for a proposal, within the limits of the command line.
    pub fn proposal(&self) -> ComparisonRequest {
        let first = &self.entries[0].request;
        ComparisonRequest { slow: Vec::new(), fast: Vec::new(), ..first.clone() }
    }

    /// A new request about the same task; undone ones can no longer be redone.
    pub fn push(&mut self, request: ComparisonRequest) {
        let task = self.entries[self.at].task.clone();
        self.entries.truncate(self.at + 1);
        self.entries.push(GroupEntry { request, task, selections: Selections::default() });
        self.at += 1;
    }

    /// Replace the request in force: a filter that moves step by step is one change.
    pub fn amend(&mut self, request: ComparisonRequest) {
        self.entries.truncate(self.at + 1);
        self.entries[self.at].request = request;
    }

    /// The executions of a task are there: another task than that of the request in force is a change of its own.
    pub fn analysed(&mut self, task: &str) {
        match &self.entries[self.at].task {
            Some(now) if now != task => {
                self.push(ComparisonRequest::default());
                self.entries[self.at].task = Some(task.to_owned());
            }
            _ => self.entries[self.at].task = Some(task.to_owned()),
        }
    }

    /// Keep what is selected with the request in force, to have it again when one comes back to it.
    pub fn keep(&mut self, selections: Selections) {
        self.entries[self.at].selections = selections;
    }

    /// What was kept with the request in force.
    pub fn selections(&self) -> Selections {
        self.entries[self.at].selections.clone()
    }

    /// The request in force was compared.
    pub fn confirm(&mut self) {
        self.shown = Some((self.at, self.now().clone()));
    }

    /// The request in force cannot be compared: the one on the screen is in force again. False where there is none.
    pub fn reject(&mut self) -> bool {
        let Some((at, request)) = self.shown.clone().filter(|(at, _)| *at < self.entries.len()) else { return false };
        if self.at > at {
            self.entries.truncate(self.at);
        }
        self.at = at;
        self.entries[at].request = request;
        true
    }

    /// True where there is a request before.
    pub fn can_undo(&self) -> bool {
        self.at > 0
    }

    /// Go back to the request before; false at the first.
    pub fn undo(&mut self) -> bool {
        let can = self.can_undo();
        self.at -= usize::from(can);
        can
    }

    /// Go on to the request after; false at the last.
    pub fn redo(&mut self) -> bool {
        let can = self.at + 1 < self.entries.len();
        self.at += usize::from(can);
        can
    }
}

/// A range of bins of one metric. `anchor` stays where it began, `head` moves; each is the first bin of a column on the
/// screen.
#[derive(Clone, Debug, PartialEq)]
pub struct BinSelection {
    /// Of which metric.
    pub metric: Metric,
    /// The end that stays.
    pub anchor: usize,
    /// The free end.
    pub head: usize,
    /// The group whose filter it has become: moving it moves the filter.
    pub attached: Option<GroupSide>,
}

impl BinSelection {
    /// The lower end and the higher one.
    pub fn ends(&self) -> (usize, usize) {
        (self.anchor.min(self.head), self.anchor.max(self.head))
    }

    /// The bins inside, for columns of `step` bins.
    pub fn bins(&self, step: usize) -> std::ops::Range<usize> {
        let (low, high) = self.ends();
        low..high + step
    }

    /// The filter that lets just these bins in; `None` for all of them, or for several names.
    pub fn filter(&self, row: &HistogramRow, step: usize) -> Option<Filter> {
        let range = self.bins(step);
        let last = row.bins.len();
        let test = if row.metric.unit() == Unit::Name {
            match row.names.get(range.clone()) {
                Some([name]) => Test::Compare(Op::Equal, Operand::Name(name.clone())),
                _ => return None,
            }
        } else {
            let (low, high) = (row.bins.edges.get(range.start)?, row.bins.edges.get(range.end.min(last))?);
            match (range.start == 0, range.end >= last) {
                (true, true) => return None,
                (true, false) => Test::Compare(Op::Less, Operand::Number(*high)),
                (false, true) => Test::Compare(Op::AtLeast, Operand::Number(*low)),
                (false, false) => Test::In(Operand::Number(*low), Operand::Number(*high)),
            }
        };
        Some(Filter { metric: self.metric.clone(), test })
    }
}

/// A box on the heat map. Its corners are values, not cells: it stays where it is on a map of another size.
#[derive(Clone, Debug, PartialEq)]
pub struct BoxSelection {
    /// What the columns are of.
    pub across: Metric,
    /// The corner that stays and the one that moves.
    pub corners: [HeatCorner; 2],
    /// The group whose filters it has become: moving it moves the filters.
    pub attached: Option<GroupSide>,
}

/// What was selected on the histograms and on the heat map.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selections {
    pub bins: Option<BinSelection>,
    pub cells: Option<BoxSelection>,
}

/// The filters of a group as they were typed, while they are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedFilters {
    pub side: GroupSide,
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::histogram::Bins;
    use crate::tui::counts::GroupCounts;
    use std::sync::Arc;

    fn request(value: i64) -> ComparisonRequest {
        ComparisonRequest {
            slow: vec![Filter::compare(Metric::Duration, Op::AtLeast, value)],
            ..ComparisonRequest::default()
        }
    }

    #[test]
    fn redo_repeats_what_was_undone_until_a_new_request() {
        let mut history = GroupHistory::new(ComparisonRequest::default());
        history.push(request(1));
        history.push(request(2));
        assert!(history.undo() && history.undo() && !history.undo());
        assert_eq!(*history.now(), ComparisonRequest::default());
        assert!(history.redo());
        history.push(request(3));
        assert!(!history.redo());
        history.amend(request(4));
        assert!(history.undo());
        assert_eq!(*history.now(), request(1));
    }

    #[test]
    fn reject_returns_to_the_request_on_the_screen() {
        let mut history = GroupHistory::new(request(1));
        assert!(!history.reject(), "nothing was compared yet");
        history.confirm();
        history.push(request(2));
        assert!(history.reject() && *history.now() == request(1));
        assert!(!history.redo(), "a refused request is no change");
        history.push(request(3));
        history.confirm();
        history.amend(request(4));
        assert!(history.reject() && *history.now() == request(3));
        assert!(history.undo() && *history.now() == request(1));
    }

    #[test]
    fn analysed_makes_another_task_a_change() {
        let mut history = GroupHistory::new(request(1));
        history.analysed("a");
        history.analysed("a");
        assert_eq!((history.task(), history.now()), (Some("a"), &request(1)));
        history.analysed("b");
        assert_eq!((history.task(), history.now()), (Some("b"), &ComparisonRequest::default()));
        assert!(history.undo() && history.task() == Some("a"));
        assert!(history.redo() && history.task() == Some("b"));
    }

    #[test]
    fn filter_of_a_selection_at_a_border_is_open_there() {
        let row = HistogramRow {
            metric: Metric::Duration,
            bins: Arc::new(Bins { edges: vec![0, 10, 20, 30, 40], logarithmic: false }),
            names: Arc::new([]),
            all: Arc::new([]),
            slow: GroupCounts::default(),
            fast: GroupCounts::default(),
            separation: 0.0,
        };
        let select = |anchor, head| BinSelection { metric: Metric::Duration, anchor, head, attached: None };
        let text = |s: BinSelection| s.filter(&row, 1).map(|f| f.to_string());
        assert_eq!(text(select(1, 2)).unwrap(), "duration in 10ns..30ns");
        assert_eq!(text(select(3, 2)).unwrap(), "duration>=20ns");
        assert_eq!(text(select(0, 0)).unwrap(), "duration<10ns");
        assert_eq!(text(select(3, 0)), None);
    }
}
