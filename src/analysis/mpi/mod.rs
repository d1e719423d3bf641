//! The lost time of the ranks and threads of a run, usual or not: total waits, their causes, the balance of the work.
//!
//! ```text
//! operations -> wait_states -> delays (costs of waiting) -> WaitAnalysis
//!            -> profile     -> efficiency (POP, regions, critical path), with the replay on an ideal network
//! ```
//! It needs no repetition, so a run of one step has an answer too. ALGORITHMS.md 9.6.

pub mod delays;
pub mod efficiency;
pub mod lines;
pub mod profile;
mod region_index;
mod replay;
pub mod strip;
pub mod wait_states;

use super::offsets::StreamClock;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::names::NameId;
use crate::base::parallel::both;
use crate::base::time::{Ns, Span};
use crate::event::operation::{NO_PATH, Operations};
use crate::model::wait_state::WaitState;
use crate::model::waiting::Efficiency;
use delays::{DelayCosts, RegionCost};
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
    pub waits: u64,
    pub ns: Ns,
    /// The late ranks and their activities, largest first.
    pub causes: Vec<WaitCause>,
}

/// All waits of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitStateRows {
    pub kind: WaitState,
    pub waits: u64,
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
    pub ns: Ns,
    /// The mean over all ranks, including those that were never in the region.
    pub mean_ns: Ns,
    /// Waiting that it causes.
    pub cost_ns: Ns,
}

/// Everything about the waiting of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WaitAnalysis {
    /// The time between start-up and shutdown.
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
    /// The analysis of a run whose streams are connected by messages or collectives.
    pub fn new(operations: &Operations, clocks: &[StreamClock], ctx: &Ctx) -> Result<WaitAnalysis, Cancelled> {
        let streams = Streams::new(operations, clocks);
        let window = efficiency::window(&streams);
        let ideal = || replay::ideal_length(&streams, window, &ctx.cancel);
        let found = || -> Result<_, Cancelled> {
            let mut waits = wait_states::find(operations, clocks, ctx)?;
            let measured = efficiency::measure(&streams, window, &waits, ctx)?;
            // Waiting for the start-up of others does not count.
            waits.retain(|w| w.until > window.start && w.start < window.end);
            let costs = delays::distribute(&streams, &waits, ctx)?;
            Ok((waits, measured, costs))
        };
        let (ideal_ns, (waits, measured, costs)) = both(ctx, ideal, found)?;
        let life = |s: &crate::event::operation::Sequence| {
            let (Some(first), Some(last)) = (s.operations.first(), s.operations.last()) else { return 0 };
            (last.end - first.start).min(window.len())
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
        waiting.efficiency = measured.useful.efficiency(window.len(), ideal_ns);
        waiting.critical_path = measured.critical_path;
        waiting.regions = measured.regions;
        Ok(waiting)
    }

    /// The waiting for late ranks of all kinds, without idle threads and completion.
    pub fn waited_ns(&self) -> Ns {
        self.states.iter().filter(|s| !s.kind.has_no_late_rank()).map(|s| s.ns).sum()
    }
}

fn ranked(costs: &DelayCosts) -> Vec<Cost> {
    let one = |((stream, region), cost): (&(u32, Region), &RegionCost)| Cost {
        stream: *stream,
        region: *region,
        path: cost.path,
        ns: cost.ns,
    };
    let mut all: Vec<Cost> = costs.by_region.iter().map(one).filter(|c| c.ns > 0).collect();
    all.sort_by_key(|c| (Reverse(c.ns), c.stream, c.region));
    all
}

/// The number of causes that are named per place.
const CAUSES: usize = 3;

/// A kind of waits at a place.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct WaitKey {
    kind: WaitState,
    stream: u32,
    path: u32,
    call: NameId,
}

/// The waits of one key.
#[derive(Default)]
struct WaitSum {
    waits: u64,
    ns: Ns,
    /// By late stream and its activity.
    causes: HashMap<(u32, Option<Region>), Ns>,
}

fn states(operations: &Operations, waits: &[RankWait], costs: &DelayCosts) -> Vec<WaitStateRows> {
    let mut rows: HashMap<WaitKey, WaitSum> = HashMap::default();
    for (wait, cause) in waits.iter().zip(&costs.causes) {
        let Some(operation) = operations.get(wait.place) else { continue };
        let sequence = operations.sequences.get(wait.place.stream as usize);
        let site = sequence.and_then(|s| s.call_sites.get(wait.place.operation as usize));
        let path = site.map_or(NO_PATH, |site| site.path);
        let key = WaitKey { kind: wait.kind, stream: wait.place.stream, path, call: operation.symbol };
        let row = rows.entry(key).or_default();
        row.waits += 1;
        row.ns += wait.len();
        if wait.cause.stream != wait.place.stream {
            *row.causes.entry((wait.cause.stream, *cause)).or_default() += wait.len();
        }
    }
    let mut by_kind: HashMap<WaitState, WaitStateRows> = HashMap::default();
    for (WaitKey { kind, stream, path, call }, WaitSum { waits, ns, causes }) in rows {
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

/// An imbalance costs at least all waiting divided by this, and all waiting is at least the run divided by this.
const OF_WAITING: Ns = 4;
const OF_RUN: Ns = 50;
/// Its region takes at least a tenth more than the mean.
const MORE: Ns = 10;

/// The regions of streams that cause much of the waiting and take longer there than the mean of all ranks.
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
        // The mean of a masters' activity is over masters, that of a team's activity over all threads.
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
