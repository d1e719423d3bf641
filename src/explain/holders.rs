//! Holders of an execution: the threads that delayed it, by context and time. The entries of its critical path are
//! added up by context and hop.
//!
//! Cost: linear in the entries. The result is a few dozen entries per execution, however often threads alternated.

use super::contribution::{Contribution, ContributionRows, Contributions};
use crate::analysis::ecct::NodeTime;
use crate::analysis::executions::Execution;
use crate::analysis::hops::{HopId, Hops};
use crate::analysis::leaders::Leaders;
use crate::analysis::operations::place;
use crate::analysis::outline::OutlineId;
use crate::analysis::thread_names::ThreadNames;
use crate::base::packed::packed;
use crate::base::time::{Ns, Span, Timestamp};
use crate::model::context::ContextId;
use crate::model::thread::ThreadIdentity;
use crate::timeline::questions::Asker;
use crate::timeline::{SegmentKind, ThreadId, Timeline};
use foldhash::HashMap;
use std::collections::BTreeMap;

/// A contribution before contexts have names.
#[derive(Clone, Copy, Debug)]
pub struct HeldContext {
    pub node: OutlineId,
    pub hop: HopId,
    pub span: Span,
    pub ns: u64,
}

packed! { HeldContext { node, hop, span, ns } }

/// Add up a path that began at `start`; `spent_by` names the hop of each entry.
pub fn add_up(start: Timestamp, own: &[NodeTime], spent_by: &[HopId]) -> Vec<HeldContext> {
    let mut positions: HashMap<(OutlineId, HopId), usize> = HashMap::default();
    let mut all: Vec<HeldContext> = Vec::new();
    let mut at = start;
    for (NodeTime { node, ns }, hop) in own.iter().zip(spent_by) {
        let span = Span::new(at, at.saturating_add(i64::try_from(*ns).unwrap_or(Ns::MAX)));
        at = span.end;
        let position = *positions.entry((*node, *hop)).or_insert_with(|| {
            all.push(HeldContext { node: *node, hop: *hop, span, ns: 0 });
            all.len() - 1
        });
        if let Some(held) = all.get_mut(position) {
            held.span.end = span.end;
            held.ns += ns;
        }
    }
    all
}

/// Waits for a CPU that are sampled for the scheduler's noise.
const SAMPLED: usize = 100_000;

impl Contributions {
    /// None yet, of these executions, with room for this many.
    pub fn new(
        timeline: &Timeline,
        leaders: &Leaders,
        names: &ThreadNames,
        executions: &[Execution],
        hops: Hops,
        number: usize,
    ) -> Contributions {
        let mut threads: BTreeMap<ThreadId, ThreadIdentity> = BTreeMap::new();
        for id in hops.iter().map(|hop| hop.thread) {
            threads.entry(id).or_insert_with(|| place(timeline, leaders, id));
        }
        Contributions {
            hops,
            threads,
            own: executions.iter().map(|e| e.thread).collect(),
            names: executions.iter().map(|e| names.at(timeline.thread(e.thread)?, e.last_moment())).collect(),
            lossy: executions.iter().map(|e| timeline.is_lossy(e.span)).collect(),
            rows: ContributionRows::with_capacity(executions.len(), number),
            scheduler_noise_ns: scheduler_noise(timeline),
        }
    }

    /// Those of the next execution; `contexts` by node of the outline.
    pub fn push(&mut self, held: Vec<HeldContext>, contexts: &[ContextId]) {
        let named = |held: HeldContext| {
            let context = *contexts.get(held.node.index())?;
            Some(Contribution { context, hop: held.hop, span: held.span, ns: held.ns })
        };
        self.rows.push(held.into_iter().filter_map(named));
    }
}

/// How long three quarters of the waits for a CPU last at most, of the first in each thread: a delay that is no longer
/// is the scheduler's noise.
fn scheduler_noise(timeline: &Timeline) -> Ns {
    let reader = timeline.reader(Asker::Explain);
    let segments = timeline.threads_by_id().flat_map(|(id, _)| reader.segments(id).all());
    let waits = segments.filter(|e| e.kind == SegmentKind::Preempted);
    let mut waits: Vec<Ns> = waits.take(SAMPLED).map(|e| e.span.len()).collect();
    let at = waits.len() * 3 / 4;
    if at >= waits.len() {
        return 0;
    }
    *waits.select_nth_unstable(at).1
}
