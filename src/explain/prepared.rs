//! Executions with all that the recording says of them, before they get their places in the model.
//!
//! In: executions with what their paths spent. Out: the same with their delimiting events, the fields of these, what
//! ended them and their times by context, each of which is a look into the timeline. Workers do that for chunks of
//! executions, so that only names and columns are left for the one that puts the model together. Cost: linear in
//! executions and their contexts.

use super::holders::HeldContext;
use super::paths::Explained;
use crate::analysis::counts::PathCounts;
use crate::analysis::executions::Execution;
use crate::analysis::outline::Outline;
use crate::base::names::NameId;
use crate::model::context::ContextId;
use crate::model::execution::ContextTime;
use crate::model::wait_kind::WaitKind;
use crate::timeline::questions::Asker;
use crate::timeline::{MarkRow, Timeline};
use std::collections::BTreeMap;

/// An execution that has no place in the model yet.
pub(super) struct PreparedExecution {
    pub(super) counts: PathCounts,
    pub(super) counters: Vec<Option<i64>>,
    /// Waits without a cause.
    pub(super) unresolved: u64,
    /// Its segments cover it without gaps or overlaps.
    pub(super) tiled: bool,
    /// By holder, where these are asked for.
    pub(super) contributions: Vec<HeldContext>,
    /// Its own times by context; in order of time if its timeline is wanted.
    pub(super) own: Vec<ContextTime>,
    /// Its own times by kind, in the order of [`WaitKind::ALL`].
    pub(super) spent: [u64; WaitKind::ALL.len()],
    /// Its delimiting events.
    pub(super) begin: MarkRow,
    pub(super) end: MarkRow,
    /// Their fields; where both have one the begin's counts.
    pub(super) fields: BTreeMap<NameId, i64>,
    /// What the system call returned that ended it.
    pub(super) returned: Option<i64>,
    /// Events were lost meanwhile.
    pub(super) is_lossy: bool,
}

/// What executions are prepared from.
pub(super) struct PreparedFrom<'a> {
    pub(super) timeline: &'a Timeline,
    pub(super) outline: &'a Outline,
    /// By node of the outline.
    pub(super) contexts: &'a [ContextId],
}

impl PreparedFrom<'_> {
    /// The executions of a chunk, as many as have been explained.
    pub(super) fn of_chunk(&self, executions: &[Execution], explained: Vec<Explained>) -> Vec<PreparedExecution> {
        let PreparedFrom { timeline, outline, contexts } = *self;
        let reader = timeline.reader(Asker::Executions);
        let one = |(execution, explained): (&Execution, Explained)| {
            let Explained { own: times, counts, counters, unresolved, tiled, contributions } = explained;
            let mut spent = [0; WaitKind::ALL.len()];
            for time in &times {
                spent[outline.wait_kind(time.node) as usize] += time.ns;
            }
            let own =
                times.iter().map(|time| ContextTime { context: contexts[time.node.index()], ns: time.ns }).collect();
            let [begin, end] = [execution.begin, execution.end].map(|mark| timeline.mark(mark).unwrap_or_default());
            let fields = [end, begin].into_iter().flat_map(|mark| timeline.mark_fields(mark.number));
            let call = reader.calls(execution.thread).last_begun(execution.last_moment());
            PreparedExecution {
                counts,
                counters,
                unresolved,
                tiled,
                contributions,
                own,
                spent,
                begin,
                end,
                fields: fields.map(|field| (field.name, field.value)).collect(),
                returned: call.filter(|call| call.span.end == execution.span.end).and_then(|call| call.ret),
                is_lossy: timeline.is_lossy(execution.span),
            }
        };
        executions.iter().zip(explained).map(one).collect()
    }
}
