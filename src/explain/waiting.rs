//! Waiting of an MPI run in totals, with the names of ranks and regions.
//!
//! In: what was analysed, and the operations with their names. Out: [`Waiting`], which holds no reference to the
//! archive.

use super::timelines;
use crate::analysis::mpi;
use crate::analysis::mpi::efficiency;
use crate::analysis::mpi::profile::Region;
use crate::base::names::NameId;
use crate::base::time::Ns;
use crate::event::operation::{NO_PATH, Operations};
use crate::model::waiting::{Imbalance, RankShare, RankTime, RegionTime, WaitPlace, WaitStateTotal, Waiting};
use std::cmp::Reverse;

/// So many of costs, regions, ranks of a region and pieces of the critical path are kept.
const KEPT: usize = 100;

/// Totals of waiting, with names.
pub fn named(found: &mpi::WaitAnalysis, operations: &Operations) -> Waiting {
    let name = Namer { operations };
    let whole = found.whole_ns.max(1) as f64;
    let waited = found.waited_ns();
    let row = |r: &mpi::WaitRow| WaitPlace {
        at: name.call(r.stream, r.call, r.path, r.ns),
        waits: r.waits,
        causes: r.causes.iter().map(|c| name.region(c.stream, c.region, NO_PATH, c.ns)).collect(),
    };
    let state = |s: &mpi::WaitStateRows| WaitStateTotal {
        kind: s.kind,
        waits: s.waits,
        ns: s.ns,
        share: s.ns as f64 / whole,
        rows: s.rows.iter().map(row).collect(),
    };
    let imbalance = |i: &mpi::SteadyImbalance| Imbalance {
        at: name.region(i.stream, Some(i.region), NO_PATH, i.ns),
        mean_ns: i.mean_ns,
        cost_ns: i.cost_ns,
        share: i.cost_ns as f64 / waited.max(1) as f64,
    };
    let cost = |c: &mpi::Cost| name.region(c.stream, Some(c.region), c.path, c.ns);
    let path = |s: &efficiency::RegionShare| name.region(s.stream, Some(s.region), NO_PATH, s.ns);
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
        strip: timelines::whole(&found.strip, operations),
    }
}

struct Namer<'a> {
    operations: &'a Operations,
}

impl Namer<'_> {
    fn path(&self, path: u32) -> Vec<String> {
        self.operations.paths.names(path).into_iter().map(|n| self.operations.names.get(n).to_owned()).collect()
    }

    fn at(&self, stream: u32) -> RankTime {
        let rank = self.operations.sequences.get(stream as usize).and_then(|s| s.rank);
        RankTime { label: self.operations.label(stream).to_owned(), rank, ..RankTime::default() }
    }

    fn call(&self, stream: u32, call: NameId, path: u32, ns: Ns) -> RankTime {
        let function = self.operations.names.get(call).to_owned();
        RankTime { function, call_path: self.path(path), ns, ..self.at(stream) }
    }

    fn region(&self, stream: u32, region: Option<Region>, path: u32, ns: Ns) -> RankTime {
        let function = region.map_or_else(String::new, |r| r.words(self.operations));
        RankTime { function, call_path: self.path(path), ns, ..self.at(stream) }
    }

    fn regions(&self, found: &mpi::WaitAnalysis) -> Vec<RegionTime> {
        let ranks = self.operations.sequences.iter().filter(|s| !s.worker && !s.operations.is_empty()).count();
        let one = |r: &efficiency::RegionProfile| {
            let ns: Ns = r.by_stream.iter().map(|(_, ns)| ns).sum();
            let mut longest = r.by_stream.clone();
            longest.sort_unstable_by_key(|(stream, ns)| (Reverse(*ns), *stream));
            longest.truncate(KEPT);
            let share = |(stream, ns): &(u32, Ns)| {
                let RankTime { label, rank, .. } = self.at(*stream);
                RankShare { label, rank, ns: *ns }
            };
            let by: Vec<RankShare> = longest.iter().map(share).collect();
            let (max_label, max_ns) = by.first().map_or_else(Default::default, |most| (most.label.clone(), most.ns));
            RegionTime {
                function: r.region.words(self.operations),
                ns,
                visits: r.visits,
                mean_ns: ns / ranks.max(1) as Ns,
                max_ns,
                max_label,
                by,
            }
        };
        found.regions.iter().take(KEPT).map(one).collect()
    }
}
