//! Questions about all threads in a span: which of them did something, and their time in each state.
//!
//! In: a state history and spans. Out: tids, or times, exact where attributes of one tid do not contradict each other,
//! and joined where they do. Cost: the nodes and leaves of the store that meet the spans (`timeline::window`); threads
//! that had one tid are asked one by one.

use super::attributes_of::{NamedLine, STATES, ThreadLine, code};
use super::{StateHistory, Times};
use crate::base::column_grid::ColumnGrid;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::parallel::in_order;
use crate::base::time::Span;
use crate::timeline::attributes::AttributeId;
use crate::timeline::questions::Asker;
use crate::timeline::store::sums::KindTimes;
use crate::timeline::window::{LaneQuestion, LaneTable, StateSet};
use crate::timeline::{Call, Segment, SegmentKind, ThreadId};
use std::collections::BTreeSet;

/// Parts of the leaves that workers look at, at most: each has sums of its own.
const PARTS: usize = 16;

/// Leaves of a part, at least.
const LEAST: usize = 16;

/// Kinds of segments.
const KINDS: usize = SegmentKind::ALL.len();

/// Where times are added up.
pub struct Slots<F> {
    pub count: usize,
    pub lanes: usize,
    /// The slot of a lane, a column and a kind of segment.
    pub of: F,
}

/// What a thread does.
#[derive(Clone, Copy, Debug)]
pub enum ThreadActivity<'a> {
    /// It is in the state of this name.
    State(&'a str),
    /// It is in a system call whose name begins so.
    Call(&'a str),
}

impl ThreadActivity<'_> {
    /// True for a value, as it is shown, of the attribute that shows such activities.
    pub fn fits(self, shown: &str) -> bool {
        match self {
            ThreadActivity::State(name) => shown == name,
            ThreadActivity::Call(prefix) => shown.starts_with(prefix),
        }
    }
}

impl StateHistory {
    /// The tids of threads that did something during a part of a span; others may be among them where threads of one
    /// tid contradict each other.
    pub fn tids_in(&self, span: Span, activity: ThreadActivity<'_>) -> BTreeSet<i32> {
        let reader = self.timeline.reader(Asker::History);
        let mut tids = BTreeSet::new();
        let mut add = |thread: ThreadId, fits: bool| {
            if let Some(thread) = self.timeline.thread(thread).filter(|thread| fits && !thread.idle) {
                tids.insert(thread.tid);
            }
        };
        match activity {
            ThreadActivity::State(_) => {
                let state = |row: &Segment| code(row.kind).and_then(|code| STATES.get(usize::from(code)));
                let fits = |row: &Segment| state(row).is_some_and(|name| activity.fits(name));
                reader.segments_across(span, |thread, row| add(thread, fits(row)));
            }
            ThreadActivity::Call(_) => {
                let fits = |row: &Call| activity.fits(self.timeline.names().get(row.name));
                reader.calls_across(span, |thread, row| add(thread, fits(row)));
            }
        }
        tids
    }

    /// The time of all threads in each state, in each column of a span.
    pub fn times_of_all(&self, grid: &ColumnGrid, ctx: &Ctx) -> Result<Vec<Times>, Cancelled> {
        let is_shared = |attribute: &AttributeId| match self.table.line(*attribute) {
            NamedLine::Threads(ThreadLine::State, threads) => self.table.threads(threads).len() > 1,
            _ => false,
        };
        // The rows of several threads of one tid may contradict each other: they are joined, once for all columns.
        let shared: Vec<AttributeId> = self.table.attributes.ids().filter(is_shared).collect();
        ctx.progress.enter("overview", shared.len() as u64);
        let slots = Slots { count: grid.columns() * KINDS, lanes: 1, of: |_, column, kind| column * KINDS + kind };
        let asked = LaneQuestion { grid, lanes: &self.alone(), states: StateSet::ALL };
        let sums = self.lane_times(&asked, &slots, ctx)?;
        let mut all: Vec<Times> = sums.as_chunks().0.iter().map(|times| known(*times)).collect();
        let columns: Vec<Span> = (0..grid.columns()).map(|column| grid.span(column)).collect();
        let of_shared = |at: usize| shared.get(at).map_or(Vec::new(), |attribute| self.times(*attribute, &columns));
        in_order(ctx, shared.len(), of_shared, |_, times| {
            for (all, times) in all.iter_mut().zip(times) {
                times.into_iter().for_each(|(code, ns)| *all.entry(code).or_default() += ns);
            }
            ctx.progress.step(1);
        })?;
        Ok(all)
    }

    /// The time of threads in some states, added up in slots by lane, column and kind of segment. All workers look at
    /// the leaves, each at a part of them.
    pub fn lane_times(
        &self,
        asked: &LaneQuestion<'_>,
        slots: &Slots<impl Fn(usize, usize, usize) -> usize + Sync>,
        ctx: &Ctx,
    ) -> Result<Vec<u64>, Cancelled> {
        let reader = self.timeline.reader(Asker::History);
        let places = reader.lane_places(asked);
        let each = places.len().div_ceil(PARTS).max(LEAST);
        let parts = places.len().div_ceil(each).max(1);
        let slot = |lane, column, kind| (slots.of)(lane, column, kind);
        let of_part = |part: usize| {
            let (mut sums, mut covers) = (vec![0_u64; slots.count], vec![0_i32; slots.count]);
            let part = part * each..((part + 1) * each).min(places.len());
            let reader = self.timeline.reader(Asker::History);
            reader.lane_times(asked, &places, part, |lane, columns, kind, ns| match ns {
                Some(ns) => sums.get_mut(slot(lane, columns.start, kind)).into_iter().for_each(|sum| *sum += ns),
                // One more row covers all columns from here on, until one less does.
                None => {
                    covers.get_mut(slot(lane, columns.start, kind)).into_iter().for_each(|rows| *rows += 1);
                    covers.get_mut(slot(lane, columns.end, kind)).into_iter().for_each(|rows| *rows -= 1);
                }
            });
            (sums, covers)
        };
        let (mut all, mut covering) = (vec![0_u64; slots.count], vec![0_i32; slots.count]);
        in_order(ctx, parts, of_part, |_, (sums, covers)| {
            all.iter_mut().zip(sums).for_each(|(all, sum)| *all += sum);
            covering.iter_mut().zip(covers).for_each(|(all, rows)| *all += rows);
        })?;
        // Rows cover columns only where there are three.
        let covered = if asked.grid.columns() < 3 { 0 } else { slots.lanes };
        for (lane, kind) in (0..covered).flat_map(|lane| (0..KINDS).map(move |kind| (lane, kind))) {
            let mut rows = 0_i64;
            for column in 0..asked.grid.columns() {
                let at = slot(lane, column, kind);
                rows += i64::from(covering.get(at).copied().unwrap_or(0));
                if let Some(sum) = all.get_mut(at).filter(|_| rows > 0) {
                    *sum += rows.unsigned_abs() * asked.grid.span(column).len().unsigned_abs();
                }
            }
        }
        Ok(all)
    }

    /// The threads that have a tid for themselves, in one lane.
    fn alone(&self) -> LaneTable {
        let mut lanes = vec![LaneTable::NONE; self.timeline.threads().len()];
        for attribute in self.table.attributes.ids() {
            if let NamedLine::Threads(ThreadLine::State, threads) = self.table.line(attribute)
                && let [one] = self.table.threads(threads)
            {
                lanes[one.index()] = 0;
            }
        }
        LaneTable::new(lanes)
    }
}

/// The times in known states.
pub(super) fn known(kinds: KindTimes) -> Times {
    let times = kinds.into_iter().zip(SegmentKind::ALL).filter(|(ns, _)| *ns > 0);
    times.filter_map(|(ns, kind)| Some((code(kind)?, ns))).collect()
}
