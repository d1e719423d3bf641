//! Questions about all threads in a span: which of them did something, and their time in each state.
//!
//! In: a state history and spans. Out: tids, or times, exact where attributes of one tid do not contradict each other,
//! and joined where they do. Cost: the nodes and leaves of the store that meet the spans (`timeline::window`); threads
//! that had one tid are asked one by one.

use super::attributes_of::{NamedLine, STATES, ThreadLine, code};
use super::{StateHistory, Times};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::parallel::in_order;
use crate::base::time::Span;
use crate::timeline::attributes::AttributeId;
use crate::timeline::questions::Asker;
use crate::timeline::store::sums::KindTimes;
use crate::timeline::window::ThreadsApart;
use crate::timeline::{Call, Segment, SegmentKind, ThreadId};
use std::collections::BTreeSet;

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

    /// The time of all threads in each state, in each of some cells.
    pub fn times_of_all(&self, cells: &[Span], ctx: &Ctx) -> Result<Vec<Times>, Cancelled> {
        let is_shared = |attribute: &AttributeId| match self.table.line(*attribute) {
            NamedLine::Threads(ThreadLine::State, threads) => self.table.threads(threads).len() > 1,
            _ => false,
        };
        // The rows of several threads of one tid may contradict each other: they are joined, once for all cells.
        let shared: Vec<AttributeId> = self.table.attributes.ids().filter(is_shared).collect();
        let apart = self.apart();
        let mut all = vec![Times::new(); cells.len()];
        let mut add = |cell: usize, times: Times| {
            if let Some(all) = all.get_mut(cell) {
                times.into_iter().for_each(|(code, ns)| *all.entry(code).or_default() += ns);
            }
        };
        let of_cell = |cell: usize| {
            let Some(span) = cells.get(cell) else { return Times::new() };
            let kinds = self.timeline.reader(Asker::History).kind_times(*span, &apart);
            known(kinds)
        };
        ctx.progress.enter("overview", (cells.len() + shared.len()) as u64);
        in_order(ctx, cells.len(), of_cell, |cell, times| {
            add(cell, times);
            ctx.progress.step(1);
        })?;
        let of_shared = |at: usize| shared.get(at).map_or(Vec::new(), |attribute| self.times(*attribute, cells));
        in_order(ctx, shared.len(), of_shared, |_, times| {
            times.into_iter().enumerate().for_each(|(cell, times)| add(cell, times));
            ctx.progress.step(1);
        })?;
        Ok(all)
    }

    /// The threads that are not added up with all others: those of a tid that several had, and those that no attribute
    /// names.
    fn apart(&self) -> ThreadsApart {
        let mut alone: Vec<ThreadId> = Vec::new();
        for attribute in self.table.attributes.ids() {
            if let NamedLine::Threads(ThreadLine::State, threads) = self.table.line(attribute)
                && let [one] = self.table.threads(threads)
            {
                alone.push(*one);
            }
        }
        alone.sort_unstable();
        let all = self.timeline.threads_by_id().map(|(id, _)| id);
        ThreadsApart(all.filter(|id| alone.binary_search(id).is_err()).collect())
    }
}

/// The times in known states.
pub(super) fn known(kinds: KindTimes) -> Times {
    let times = kinds.into_iter().zip(SegmentKind::ALL).filter(|(ns, _)| *ns > 0);
    times.filter_map(|(ns, kind)| Some((code(kind)?, ns))).collect()
}
