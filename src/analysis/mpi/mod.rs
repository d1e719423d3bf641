//! Lost time of the ranks and threads of a run, usual or not: waits in totals, their causes, how evenly the work is
//! shared out.
//!
//! ```text
//! operations -> wait_states -> delays (costs of waiting) -> Waiting
//!            -> profile     -> efficiency (POP, regions, critical path)
//! ```
//! It needs no repetition, so that a run of one step has an answer too. ALGORITHMS.md 9.6.

pub mod delays;
pub mod efficiency;
pub mod profile;
pub mod strip;
pub mod wait_states;

use super::offsets::StreamClock;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::names::NameId;
use crate::base::time::{Ns, Span};
use crate::event::operation::{NO_PATH, Operations};
use crate::model::wait_state::WaitState;
use crate::model::waiting::Efficiency;
use delays::DelayCosts;
use efficiency::{EfficiencyAnalysis, RegionProfile, RegionShare};
use foldhash::HashMap;
use profile::{Region, Streams};
use std::cmp::Reverse;
use strip::Strip;
use wait_states::RankWait;

/// A late rank, and its activity where that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitCause {
    /// Position of its stream.
    pub stream: u32,
    /// The activity.
    pub region: Option<Region>,
    /// Waiting that it caused.
    pub ns: Ns,
}

/// Waits of one kind in one place.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitRow {
    /// Position of the stream.
    pub stream: u32,
    /// The call that waits.
    pub call: NameId,
    /// Its call path; none where only the call is known.
    pub path: u32,
    /// How many.
    pub waits: u64,
    /// How long together.
    pub ns: Ns,
    /// The late ranks and their activities, largest first.
    pub causes: Vec<WaitCause>,
}

/// All waits of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitStateRows {
    /// Which kind.
    pub kind: WaitState,
    /// How many.
    pub waits: u64,
    /// How long together.
    pub ns: Ns,
    /// By place, longest first.
    pub rows: Vec<WaitRow>,
}

/// An activity that others waited for.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Position of the stream.
    pub stream: u32,
    /// The activity.
    pub region: Region,
    /// The call path with most of it.
    pub path: u32,
    /// Waiting that it caused.
    pub ns: Ns,
}

/// A rank that all others wait for although nothing is unusual.
#[derive(Clone, Debug, PartialEq)]
pub struct SteadyImbalance {
    /// Position of the stream.
    pub stream: u32,
    /// The activity that takes it longer than others.
    pub region: Region,
    /// Its time there.
    pub ns: Ns,
    /// The mean of all ranks there, those that never are included.
    pub mean_ns: Ns,
    /// Waiting that it causes.
    pub cost_ns: Ns,
}

/// Everything about the waiting of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WaitAnalysis {
    /// Between starting up and shutting down.
    pub window: Span,
    /// Time of all ranks and threads together in the window.
    pub whole_ns: Ns,
    /// By kind, longest first.
    pub states: Vec<WaitStateRows>,
    /// By cost.
    pub costs: Vec<Cost>,
    /// Steady imbalance and serialisation, by cost.
    pub imbalances: Vec<SteadyImbalance>,
    /// POP's efficiencies.
    pub efficiency: Option<Efficiency>,
    /// Useful regions by time.
    pub regions: Vec<RegionProfile>,
    /// Useful time on the critical path, longest first.
    pub critical_path: Vec<RegionShare>,
    /// Computing and waiting over time.
    pub strip: Strip,
}

impl WaitAnalysis {
    /// All of it; `None` where nothing ties streams together.
    pub fn new(operations: &Operations, clocks: &[StreamClock], ctx: &Ctx) -> Result<Option<WaitAnalysis>, Cancelled> {
        if operations.messages.is_empty() && operations.collectives.is_empty() {
            return Ok(None);
        }
        let streams = Streams::new(operations, clocks);
        let mut waits = wait_states::find(operations, clocks, ctx)?;
        let measured = efficiency::measure(&streams, &waits, ctx)?;
        // Waiting for others to start up does not count.
        waits.retain(|w| w.until > measured.window.start && w.start < measured.window.end);
        let costs = delays::share_out(&streams, &waits, ctx)?;
        let life = |s: &crate::event::operation::Sequence| {
            let (Some(first), Some(last)) = (s.operations.first(), s.operations.last()) else { return 0 };
            (last.end - first.start).min(measured.window.len())
        };
        let mut waiting = WaitAnalysis {
            window: measured.window,
            whole_ns: operations.sequences.iter().map(life).sum(),
            states: states(operations, &waits, &costs),
            costs: ranked(&costs),
            strip: strip::whole(&measured.computed, &waits, measured.window, ctx)?,
            ..WaitAnalysis::default()
        };
        waiting.imbalances = imbalances(operations, &waiting, &measured);
        (waiting.efficiency, waiting.critical_path) = (measured.efficiency, measured.critical_path);
        waiting.regions = measured.regions;
        Ok(Some(waiting))
    }

    /// Waiting of all kinds for late ranks: idle threads and completion apart.
    pub fn waited_ns(&self) -> Ns {
        self.states.iter().filter(|s| !s.kind.has_no_late_rank()).map(|s| s.ns).sum()
    }
}

fn ranked(costs: &DelayCosts) -> Vec<Cost> {
    let one = |((stream, region), (ns, path)): (&(u32, Region), &(Ns, u32))| Cost {
        stream: *stream,
        region: *region,
        path: *path,
        ns: *ns,
    };
    let mut all: Vec<Cost> = costs.by_region.iter().map(one).filter(|c| c.ns > 0).collect();
    all.sort_by_key(|c| (Reverse(c.ns), c.stream, c.region));
    all
}

/// Causes named per place.
const CAUSES: usize = 3;

/// A place that waits, for a kind of reason.
type Where = (WaitState, u32, u32, NameId);

/// Waiting by who came late, doing what.
type Causes = HashMap<(u32, Option<Region>), Ns>;

fn states(operations: &Operations, waits: &[RankWait], costs: &DelayCosts) -> Vec<WaitStateRows> {
    let mut rows: HashMap<Where, (u64, Ns, Causes)> = HashMap::default();
    for (wait, cause) in waits.iter().zip(&costs.causes) {
        let Some(operation) = operations.get(wait.place) else { continue };
        let call_sites = operations.sequences.get(wait.place.stream as usize).map_or(&[][..], |s| &s.call_sites);
        let path = call_sites.get(wait.place.operation as usize).map_or(NO_PATH, |w| w.path);
        let row = rows.entry((wait.kind, wait.place.stream, path, operation.symbol)).or_default();
        row.0 += 1;
        row.1 += wait.len();
        if wait.cause.stream != wait.place.stream {
            *row.2.entry((wait.cause.stream, *cause)).or_default() += wait.len();
        }
    }
    let mut by_kind: HashMap<WaitState, WaitStateRows> = HashMap::default();
    for ((kind, stream, path, call), (waits, ns, causes)) in rows {
        let state = by_kind.entry(kind).or_insert(WaitStateRows { kind, waits: 0, ns: 0, rows: Vec::new() });
        state.waits += waits;
        state.ns += ns;
        let mut causes: Vec<_> =
            causes.into_iter().map(|((stream, region), ns)| WaitCause { stream, region, ns }).collect();
        causes.sort_by_key(|c: &WaitCause| (Reverse(c.ns), c.stream, c.region));
        causes.truncate(CAUSES);
        state.rows.push(WaitRow { stream, call, path, waits, ns, causes });
    }
    let mut states: Vec<WaitStateRows> = by_kind.into_values().collect();
    states.iter_mut().for_each(|s| s.rows.sort_by_key(|r| (Reverse(r.ns), r.stream, r.path, r.call)));
    states.sort_by_key(|s| (Reverse(s.ns), s.kind));
    states
}

/// An imbalance costs at least one part in this many of all waiting, and waiting at least one in this many of the run.
const OF_WAITING: Ns = 4;
const OF_RUN: Ns = 50;
/// Its region takes at least a tenth more than the mean.
const MORE: Ns = 10;

/// Stream and region that cause much of the waiting and take more there than the mean of all ranks.
fn imbalances(operations: &Operations, waiting: &WaitAnalysis, measured: &EfficiencyAnalysis) -> Vec<SteadyImbalance> {
    let waited = waiting.waited_ns();
    if waited.saturating_mul(OF_RUN) < waiting.whole_ns {
        return Vec::new();
    }
    let active =
        |worker| operations.sequences.iter().filter(|s| s.worker == worker && !s.operations.is_empty()).count();
    let worker = |s: u32| operations.sequences.get(s as usize).is_some_and(|s| s.worker);
    let found = waiting.costs.iter().take_while(|c| c.ns.saturating_mul(OF_WAITING) >= waited).filter_map(|cost| {
        let time = measured.regions.iter().find(|r| r.region == cost.region)?;
        let ns = time.by_stream.iter().find(|(s, _)| *s == cost.stream)?.1;
        // Activities of masters count for masters, activities of teams for all threads.
        let of_teams = time.by_stream.iter().any(|(s, _)| worker(*s));
        let streams = active(false) + if of_teams { active(true) } else { 0 };
        let mean_ns = time.by_stream.iter().map(|(_, ns)| ns).sum::<Ns>() / streams.max(1) as Ns;
        let region = cost.region;
        (ns - mean_ns >= mean_ns / MORE).then_some(SteadyImbalance {
            stream: cost.stream,
            region,
            ns,
            mean_ns,
            cost_ns: cost.ns,
        })
    });
    found.collect()
}
