//! Waiting of an MPI run in totals, with the names of ranks and regions.

use crate::base::figure;
use crate::base::time::{Ns, Span};
use crate::model::timeline::RankTimeline;
use crate::model::wait_state::WaitState;

/// A thread or rank with its function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RankTime {
    /// The label shown: `rank 2`, `rank 2 thread 1`.
    pub label: String,
    /// MPI rank of its process, where it has one.
    pub rank: Option<u32>,
    /// The region; empty where it is not known.
    pub function: String,
    /// The regions around it, outermost first, and itself.
    pub call_path: Vec<String>,
    pub ns: Ns,
}

/// Waits of one kind at one place.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitPlace {
    /// The waiting rank, and its call.
    pub at: RankTime,
    pub waits: u64,
    /// The late ranks, most delay first.
    pub causes: Vec<RankTime>,
}

/// All waits of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitStateTotal {
    pub kind: WaitState,
    pub waits: u64,
    pub ns: Ns,
    /// Part of the time of all ranks and threads.
    pub share: f64,
    /// By place, longest first.
    pub rows: Vec<WaitPlace>,
}

/// A rank that all others wait for although nothing is unusual.
#[derive(Clone, Debug, PartialEq)]
pub struct Imbalance {
    /// The rank, its function and the time.
    pub at: RankTime,
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
    pub function: String,
    /// On all ranks together.
    pub ns: Ns,
    pub visits: u64,
    /// Mean of all ranks.
    pub mean_ns: Ns,
    /// Most on one rank.
    pub max_ns: Ns,
    /// On which.
    pub max_label: String,
    /// By rank or thread, longest first; of many the first.
    pub by: Vec<RankShare>,
}

/// The time of a rank or thread in a region.
#[derive(Clone, Debug, PartialEq)]
pub struct RankShare {
    /// The label shown.
    pub label: String,
    /// MPI rank of its process, where it has one.
    pub rank: Option<u32>,
    pub ns: Ns,
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
    pub states: Vec<WaitStateTotal>,
    /// Causes of waiting, largest first.
    pub costs: Vec<RankTime>,
    /// Steady imbalance and serialisation, by cost.
    pub imbalances: Vec<Imbalance>,
    /// POP's efficiencies.
    pub efficiency: Option<Efficiency>,
    /// Regions by time.
    pub regions: Vec<RegionTime>,
    /// Useful time on the critical path, longest first.
    pub critical_path: Vec<RankTime>,
    /// Computing and waiting of all ranks over time.
    pub strip: RankTimeline,
}

impl Waiting {
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

/// POP's efficiencies, each between 0 and 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Efficiency {
    /// Load balance x communication.
    pub parallel: f64,
    /// Mean useful time over the largest.
    pub load_balance: f64,
    /// Serialisation x transfer.
    pub communication: f64,
    /// Largest useful time over the ideal length.
    pub serialisation: f64,
    /// Ideal length over the length of the run.
    pub transfer: f64,
    /// The length of the run on a network that delivers every message at once.
    pub ideal_ns: Ns,
}
