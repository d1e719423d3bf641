//! Questions about many lines at once, answered by the nodes above the leaves.
//!
//! In: a range of lines and a span. Out: the rows that meet it, each once, in no order; or the time in each state, by
//! lanes of lines and columns of time; or all rows, leaf by leaf. Cost: the nodes and leaves that meet the span,
//! whatever the number of lines: a search line by line costs a descent for each. Of states the leaves below a node are
//! not read where the node is inside a column and all of its lines have one lane: it has the sums.

use super::leaf::StoredRow;
use super::leaf_bytes::Leaf;
use super::leaves::LeafPin;
use super::nodes::{LiftedRow, NodeBounds, Step, meets};
use super::parts::LineStore;
use crate::base::column_grid::ColumnGrid;
use crate::base::time::Span;
use std::ops::Range;

impl<R: StoredRow> LineStore<R> {
    /// The rows of some lines that meet a span, those without length where they are inside. Returns the number of nodes
    /// and leaves that were looked at.
    pub fn meeting(&self, lines: Range<u32>, span: Span, mut each: impl FnMut(u32, R)) -> (u32, u32) {
        let (mut pin, mut leaves) = (LeafPin::default(), 0);
        let nodes = self.nodes.search(
            lines.clone(),
            span,
            |_, _| None::<()>,
            |step| match step {
                Step::Inside(..) => {}
                Step::Lifted(leaf, row) => {
                    leaves += 1;
                    if let Some(leaf) = self.leaves.get(leaf, &mut pin) {
                        each(row.line, leaf.get(row.row.into(), row.span.start));
                    }
                }
                Step::Leaf(leaf) => {
                    leaves += 1;
                    self.meeting_in_leaf(leaf, &lines, span, &mut pin, |line, leaf, row, of| {
                        each(line, leaf.get(row, of.start));
                    });
                }
            },
        );
        (nodes, leaves)
    }

    /// All rows with their lines, leaf by leaf: each leaf is read once, where a walk over each line would read it for
    /// each of its parts. Rows of a line come in order. Returns the number of nodes and leaves that were looked at.
    pub fn each_row(&self, mut each: impl FnMut(u32, R)) -> (u32, u32) {
        self.leaves.iter().for_each(|leaf| leaf.each_row(&mut each));
        (0, self.leaves.len() as u32)
    }

    /// The rows of a leaf that meet a span and are not lifted: the line of each, its position in the leaf, its span.
    fn meeting_in_leaf(
        &self,
        leaf: u32,
        lines: &Range<u32>,
        span: Span,
        pin: &mut LeafPin,
        mut each: impl FnMut(u32, &Leaf, usize, Span),
    ) {
        let Some((begin, leaf)) =
            self.nodes.bounds(leaf).map(|bounds| bounds.span.start).zip(self.leaves.get(leaf, pin))
        else {
            return;
        };
        leaf.each_span::<R>(lines, |line, row, of| {
            if of.start >= begin && meets(of, span) {
                each(line, leaf, row, of);
            }
        });
    }

    /// Where the time is that a question asks for.
    pub fn lane_places(&self, asked: &LaneQuestion<'_>) -> LanePlaces<'_> {
        let mut places = LanePlaces::default();
        let all = &mut places.all;
        places.nodes = self.nodes.search(
            0..u32::MAX,
            asked.span(),
            |bounds, times| asked.place(bounds, times),
            |step| match step {
                Step::Inside(place, times) => all.extend(place.map(|place| LanePlace::Node(place, times))),
                Step::Lifted(leaf, row) if asked.lanes.of(row.line).is_some() => {
                    all.push(LanePlace::Lifted(leaf, row));
                }
                Step::Lifted(..) => {}
                Step::Leaf(leaf) => all.push(LanePlace::Leaf(leaf)),
            },
        );
        places
    }

    /// The time of lines in each state, by lane and column, at some of the places of a question, of which there are
    /// [`LanePlaces::len`]: `add` gets lane, columns, state, and the nanoseconds in the one column, or `None` where
    /// rows cover all of several columns; several times for each of these.
    pub fn times(
        &self,
        asked: &LaneQuestion<'_>,
        places: &LanePlaces<'_>,
        part: Range<usize>,
        mut add: impl FnMut(usize, Range<usize>, usize, Option<u64>),
    ) {
        let (mut pin, span, all) = (LeafPin::default(), asked.span(), 0..u32::MAX);
        for place in places.all.get(part).unwrap_or(&[]) {
            match place {
                LanePlace::Node((lane, column), times) => {
                    for (state, ns) in
                        times.iter().enumerate().filter(|(state, ns)| **ns > 0 && asked.states.contains(*state))
                    {
                        add(*lane, *column..*column + 1, state, Some(*ns));
                    }
                }
                LanePlace::Lifted(leaf, row) => {
                    if let Some(leaf) = self.leaves.get(*leaf, &mut pin) {
                        asked.add_row(row.line, leaf.state::<R>(row.row.into()), row.span, &mut add);
                    }
                }
                LanePlace::Leaf(leaf) => {
                    self.meeting_in_leaf(*leaf, &all, span, &mut pin, |line, leaf, row, of| {
                        asked.add_row(line, leaf.state::<R>(row), of, &mut add);
                    });
                }
            }
        }
    }
}

/// A place of time that a question asks for.
#[derive(Clone, Copy, Debug)]
enum LanePlace<'s> {
    /// A node that is taken as a whole: lane and column, and the time in each state.
    Node((usize, usize), &'s [u64]),
    /// A leaf, and one of its rows.
    Lifted(u32, &'s LiftedRow),
    /// A leaf, all of whose rows are looked at.
    Leaf(u32),
}

/// Where the time is that a question asks for.
#[derive(Clone, Debug, Default)]
pub struct LanePlaces<'s> {
    all: Vec<LanePlace<'s>>,
    /// Nodes that were looked at.
    nodes: u32,
}

impl LanePlaces<'_> {
    /// Number of them.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Number of nodes and leaves that a question looks at.
    pub fn looked(&self) -> (u32, u32) {
        let leaves = self.all.iter().filter(|place| !matches!(place, LanePlace::Node(..))).count();
        (self.nodes, leaves as u32)
    }
}

/// Some states of a row, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateSet(u64);

impl StateSet {
    pub const ALL: StateSet = StateSet(u64::MAX);

    /// Of numbers below 64.
    pub fn of(states: impl IntoIterator<Item = usize>) -> StateSet {
        StateSet(states.into_iter().fold(0, |set, state| set | 1_u64.checked_shl(state as u32).unwrap_or(0)))
    }

    fn contains(self, state: usize) -> bool {
        self.0.checked_shr(state as u32).is_some_and(|rest| rest & 1 == 1)
    }
}

/// The lane in which the time of each line is added up.
#[derive(Clone, Debug, Default)]
pub struct LaneTable {
    /// By line; [`LaneTable::NONE`] for those whose time is not asked for.
    lanes: Vec<u32>,
    /// By line: the first one after it that has another lane.
    until: Vec<u32>,
}

impl LaneTable {
    /// No lane.
    pub const NONE: u32 = u32::MAX;

    /// Of the lane of each line.
    pub fn new(lanes: Vec<u32>) -> LaneTable {
        let mut until = vec![lanes.len() as u32; lanes.len()];
        for line in (1..lanes.len()).rev() {
            until[line - 1] = if lanes[line - 1] == lanes[line] { until[line] } else { line as u32 };
        }
        LaneTable { lanes, until }
    }

    fn of(&self, line: u32) -> Option<usize> {
        let lane = self.lanes.get(line as usize).copied()?;
        (lane != LaneTable::NONE).then_some(lane as usize)
    }

    /// True where all lines between two, both included, have the same lane, or none.
    fn is_one(&self, low: u32, high: u32) -> bool {
        self.until.get(low as usize).is_some_and(|until| high < *until)
    }
}

/// A question about the time of lines in cells: lanes of lines, and columns of time.
#[derive(Clone, Debug)]
pub struct LaneQuestion<'q> {
    /// The columns of the time that is asked about.
    pub grid: &'q ColumnGrid,
    pub lanes: &'q LaneTable,
    /// The states whose time is wanted.
    pub states: StateSet,
}

impl LaneQuestion<'_> {
    fn span(&self) -> Span {
        self.grid.whole()
    }

    /// Add the time of a row in each column.
    #[inline]
    fn add_row(
        &self,
        line: u32,
        state: usize,
        span: Span,
        add: &mut impl FnMut(usize, Range<usize>, usize, Option<u64>),
    ) {
        let Some(lane) = self.lanes.of(line).filter(|_| self.states.contains(state)) else { return };
        let (ends, whole) = self.grid.pieces(span.start.ns()..span.end.ns());
        for (column, ns) in ends.into_iter().flatten() {
            add(lane, column..column + 1, state, Some(ns));
        }
        if !whole.is_empty() {
            add(lane, whole, state, None);
        }
    }

    /// Where the time below a node is added as a whole: `None` where it must be looked at row by row, `Some(None)`
    /// where nothing of it is wanted.
    fn place(&self, bounds: &NodeBounds, times: &[u64]) -> Option<Option<(usize, usize)>> {
        if times.iter().enumerate().all(|(state, ns)| *ns == 0 || !self.states.contains(state)) {
            return Some(None);
        }
        if !self.lanes.is_one(bounds.low, bounds.high) {
            return None;
        }
        let Some(lane) = self.lanes.of(bounds.low) else { return Some(None) };
        let (first, last) = (bounds.span.start, bounds.span.last_moment());
        let columns = self.grid.column(first.ns()).zip(self.grid.column(last.ns()));
        columns.filter(|(first, last)| first == last).map(|(column, _)| Some((lane, column)))
    }
}
