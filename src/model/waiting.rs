//! Waiting in totals, with the names of ranks and regions: it holds no reference to the archive.

use super::strips::{self, Named};
use crate::analysis::mpi::efficiency::{self, Efficiency};
use crate::analysis::mpi::profile::Region;
use crate::analysis::mpi::{self, wait_states::WaitKind};
use crate::base::figure;
use crate::base::names::NameId;
use crate::base::time::{Ns, Span};
use crate::event::operation::{NO_PATH, Operations};

/// A thread or rank with its function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Doer {
    /// The label shown: `rank 2`, `rank 2 thread 1`.
    pub label: String,
    /// MPI rank of its process, where it has one.
    pub rank: Option<u32>,
    /// The region; empty where it is not known.
    pub function: String,
    /// The regions around it, outermost first, and itself.
    pub call_path: Vec<String>,
    /// How long.
    pub ns: Ns,
}

/// Waits of one kind at one place.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The waiting rank, and its call.
    pub at: Doer,
    /// How often.
    pub waits: u64,
    /// The late ranks, most delay first.
    pub causes: Vec<Doer>,
}

/// All waits of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// Which kind.
    pub kind: WaitKind,
    /// How many.
    pub waits: u64,
    /// How long together.
    pub ns: Ns,
    /// Part of the time of all ranks and threads.
    pub share: f64,
    /// By place, longest first.
    pub rows: Vec<Row>,
}

/// A rank that all others wait for although nothing is unusual.
#[derive(Clone, Debug, PartialEq)]
pub struct Imbalance {
    /// The rank, its function and the time.
    pub at: Doer,
    /// Mean time of all ranks there.
    pub mean_ns: Ns,
    /// Waiting that it causes.
    pub cost_ns: Ns,
    /// Part of all waiting.
    pub share: f64,
}

/// A region on all ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionTime {
    /// Its name.
    pub function: String,
    /// On all ranks together.
    pub ns: Ns,
    /// How often.
    pub visits: u64,
    /// Mean of all ranks.
    pub mean_ns: Ns,
    /// Most on one rank.
    pub max_ns: Ns,
    /// On which.
    pub max_label: String,
}

/// Waiting in totals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waiting {
    /// Between starting up and shutting down.
    pub window: Span,
    /// Time of all ranks and threads together.
    pub whole_ns: Ns,
    /// Waiting for late ranks.
    pub waited_ns: Ns,
    /// By kind, longest first.
    pub states: Vec<State>,
    /// Causes of waiting, largest first.
    pub costs: Vec<Doer>,
    /// Steady imbalance and serialisation, by cost.
    pub imbalances: Vec<Imbalance>,
    /// POP's efficiencies.
    pub efficiency: Option<Efficiency>,
    /// Regions by time.
    pub regions: Vec<RegionTime>,
    /// Useful time on the critical path, longest first.
    pub critical_path: Vec<Doer>,
    /// Computing and waiting of all ranks over time.
    pub strip: Named,
}

/// So many of costs, regions and pieces of the critical path are kept.
const KEPT: usize = 100;

impl Waiting {
    /// With the names of what was analysed.
    pub fn new(found: &mpi::Waiting, operations: &Operations) -> Waiting {
        let name = Namer { operations };
        let whole = found.whole_ns.max(1) as f64;
        let waited = found.waited_ns();
        let row = |r: &mpi::Row| Row {
            at: name.call(r.stream, r.call, r.path, r.ns),
            waits: r.waits,
            causes: r.causes.iter().map(|(s, region, ns)| name.doer(*s, *region, NO_PATH, *ns)).collect(),
        };
        let state = |s: &mpi::State| State {
            kind: s.kind,
            waits: s.waits,
            ns: s.ns,
            share: s.ns as f64 / whole,
            rows: s.rows.iter().map(row).collect(),
        };
        let imbalance = |i: &mpi::Imbalance| Imbalance {
            at: name.doer(i.stream, Some(i.region), NO_PATH, i.ns),
            mean_ns: i.mean_ns,
            cost_ns: i.cost_ns,
            share: i.cost_ns as f64 / waited.max(1) as f64,
        };
        let cost = |c: &mpi::Cost| name.doer(c.stream, Some(c.region), c.path, c.ns);
        let path = |(stream, region, ns): &(u32, Region, Ns)| name.doer(*stream, Some(*region), NO_PATH, *ns);
        Waiting {
            window: found.window,
            whole_ns: found.whole_ns,
            waited_ns: waited,
            states: found.states.iter().map(state).collect(),
            costs: found.costs.iter().take(KEPT).map(cost).collect(),
            imbalances: found.imbalances.iter().map(imbalance).collect(),
            efficiency: found.efficiency,
            regions: name.regions(found),
            critical_path: found.critical_path.iter().take(KEPT).map(path).collect(),
            strip: strips::whole(&found.strip, operations),
        }
    }

    /// The steady imbalance that costs most, in one sentence.
    pub fn sentence(&self) -> Option<String> {
        let first = self.imbalances.first()?;
        let (label, function) = (&first.at.label, &first.at.function);
        let more = match first.mean_ns {
            0 => "which no other rank does".to_owned(),
            mean => format!("{:.2} times the mean of all ranks", first.at.ns as f64 / mean as f64),
        };
        Some(format!(
            "Others wait for {label}: it spent {} in {function}, {more}; this causes {} of the {} of all waiting ({}).",
            figure::duration(first.at.ns),
            figure::duration(first.cost_ns),
            figure::duration(self.waited_ns),
            figure::share(first.share)
        ))
    }
}

struct Namer<'a> {
    operations: &'a Operations,
}

impl Namer<'_> {
    fn path(&self, path: u32) -> Vec<String> {
        self.operations.paths.names(path).into_iter().map(|n| self.operations.names.get(n).to_owned()).collect()
    }

    fn at(&self, stream: u32) -> Doer {
        let rank = self.operations.sequences.get(stream as usize).and_then(|s| s.rank);
        Doer { label: self.operations.label(stream).to_owned(), rank, ..Doer::default() }
    }

    fn call(&self, stream: u32, call: NameId, path: u32, ns: Ns) -> Doer {
        let function = self.operations.names.get(call).to_owned();
        Doer { function, call_path: self.path(path), ns, ..self.at(stream) }
    }

    fn doer(&self, stream: u32, region: Option<Region>, path: u32, ns: Ns) -> Doer {
        let function = region.map_or_else(String::new, |r| r.words(self.operations));
        Doer { function, call_path: self.path(path), ns, ..self.at(stream) }
    }

    fn regions(&self, found: &mpi::Waiting) -> Vec<RegionTime> {
        let ranks = self.operations.sequences.iter().filter(|s| !s.worker && !s.operations.is_empty()).count();
        let one = |r: &efficiency::RegionTime| {
            let ns: Ns = r.by_stream.iter().map(|(_, ns)| ns).sum();
            let most = r.by_stream.iter().max_by_key(|(s, ns)| (*ns, std::cmp::Reverse(*s))).copied();
            let (stream, max_ns) = most.unwrap_or((0, 0));
            RegionTime {
                function: r.region.words(self.operations),
                ns,
                visits: r.visits,
                mean_ns: ns / ranks.max(1) as Ns,
                max_ns,
                max_label: self.operations.label(stream).to_owned(),
            }
        };
        found.regions.iter().take(KEPT).map(one).collect()
    }
}
