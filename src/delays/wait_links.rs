//! Delayed executions, and the links of their wait chains that caused the delay.
//!
//! In: a model and its wait chains. Out: [`Reference`], the usual time of each chain (computed once), and from it for
//! any q and s the [`Delay`]s. An occurrence is an execution; an event of it is the time of one chain: of the thread at
//! the chain's end alone (*own*), or with everything that it waited for (*whole*). The rules are those of patterns
//! (ALGORITHMS.md 9.4, 9.7): the reference group is the fastest part q of a population, with zero for executions
//! without the chain; a delay further down the chain is not reported again above. Cost: O(n log n) in the entries of
//! the executions' chains once, then linear in them per choice.

use super::chains::{ChainId, Populations, WaitChains, populations};
use crate::base::ctx::{Cancel, Cancelled};
use crate::base::time::Ns;
use crate::model::Model;
use crate::model::execution::ContextTime;
use crate::model::settings::{FEWEST_EXECUTIONS, Settings, ThresholdRule};
use foldhash::HashMap;
use std::cmp::Reverse;

/// Durations below this are clock granularity: they never make a limit.
const SMALLEST: u64 = 1_000;
/// A shorter delay is never reported: interrupts and caches cause such delays.
const FLOOR: Ns = 20_000;
/// A delay is at least one part in this many of what its execution usually takes, and of what is late in it altogether.
const SHARE_OF_DURATION: Ns = 20;
/// See [`SHARE_OF_DURATION`].
const SHARE_OF_DELAY: Ns = 10;

/// A chain in one execution.
#[derive(Clone, Copy, Debug)]
struct Entry {
    chain: ChainId,
    own: u64,
    whole: u64,
}

/// Times of a chain in the executions of a population that have it, ascending; in the others it takes nothing.
#[derive(Clone, Debug, Default)]
struct Usual {
    own: Vec<u64>,
    whole: Vec<u64>,
}

/// Sorted values and the zeros before them.
#[derive(Clone, Copy)]
struct Distribution<'a> {
    present: &'a [u64],
    count: usize,
}

impl Distribution<'_> {
    fn at(&self, position: usize) -> u64 {
        let zeros = self.count - self.present.len();
        position.checked_sub(zeros).and_then(|at| self.present.get(at)).copied().unwrap_or(0)
    }
}

/// Usual values under some settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsualTimes {
    /// The lower median of the reference group.
    pub typical_ns: Ns,
    /// The longest of the reference group.
    pub max_ref_ns: Ns,
    /// From here on it took too long.
    pub limit_ns: Ns,
    /// The longest of all.
    pub longest_ns: Ns,
}

impl UsualTimes {
    fn new(values: Distribution<'_>, settings: &Settings) -> UsualTimes {
        let n = values.count;
        let k = ((settings.q * n as f64).ceil() as usize).clamp(1, n.max(1));
        let (max_ref, typical, lowest) = (values.at(k - 1), values.at((k - 1) / 2), values.at(0));
        let limit = match settings.limit {
            ThresholdRule::Quotient => {
                // A chain of nearly constant length is late before it takes s times as long.
                let quotient = settings.s * max_ref.max(SMALLEST) as f64;
                let range = max_ref as f64 + settings.s * (max_ref - lowest).max(SMALLEST) as f64;
                quotient.min(range)
            }
            ThresholdRule::Robust => robust_limit(values).max(SMALLEST as f64),
        };
        UsualTimes {
            typical_ns: typical as Ns,
            max_ref_ns: max_ref as Ns,
            limit_ns: limit.ceil() as Ns,
            longest_ns: values.at(n.saturating_sub(1)) as Ns,
        }
    }
}

/// Median + 5 robust standard deviations.
fn robust_limit(values: Distribution<'_>) -> f64 {
    let middle = values.count.saturating_sub(1) / 2;
    let median = values.at(middle);
    let mut deviations: Vec<u64> = (0..values.count).map(|i| values.at(i).abs_diff(median)).collect();
    if deviations.is_empty() {
        return 0.0;
    }
    let (_, deviation, _) = deviations.select_nth_unstable(middle);
    median as f64 + 5.0 * 1.4826 * *deviation as f64
}

/// A delay of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// Position of the execution.
    pub execution: u32,
    /// The end of the chain.
    pub chain: ChainId,
    /// All below the chain, if no part is unusual by itself; else the time of the chain's last link itself.
    pub whole: bool,
    /// Longer than usual by this.
    pub excess_ns: Ns,
    /// The usual time.
    pub reference_ns: Ns,
}

/// The executions of a model, ready for any choice of q and s.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    pub chains: WaitChains,
    /// By execution.
    pub population: Vec<u32>,
    /// Executions of each population.
    pub sizes: Vec<usize>,
    /// By execution, chains ascending.
    entries: Vec<Entry>,
    /// By execution: after its last entry.
    ends: Vec<usize>,
    usual: HashMap<(u32, ChainId), Usual>,
    /// A shorter delay may be the clocks' or the scheduler's.
    noise_ns: Ns,
}

/// The part of a chain's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainPart {
    /// The time of the chain's end alone.
    Own,
    /// Also the time of everything that it waited for.
    Whole,
}

impl Reference {
    /// Add up the chains of all executions. `noise_ns`: the longest delay that clocks and scheduler alone may cause.
    pub fn new(model: &Model, noise_ns: Ns, cancel: &Cancel) -> Result<Reference, Cancelled> {
        let chains = WaitChains::new(&model.contexts);
        let Populations { of_execution: population, sizes } = populations(model, FEWEST_EXECUTIONS);
        let mut sums: Vec<(u64, u64)> = vec![(0, 0); chains.len()];
        let (mut entries, mut ends) = (Vec::new(), Vec::with_capacity(model.executions.len()));
        let mut usual: HashMap<(u32, ChainId), Usual> = HashMap::default();
        for (i, population) in population.iter().enumerate() {
            cancel.check()?;
            let mut met: Vec<ChainId> = Vec::new();
            for ContextTime { context, ns } in model.executions.own.row(i).filter(|time| time.ns > 0) {
                let chain = chains.of(context);
                sums[chain.index()].0 += ns;
                for above in chains.upwards(chain) {
                    let sum = &mut sums[above.index()].1;
                    if *sum == 0 {
                        met.push(above);
                    }
                    *sum += ns;
                }
            }
            met.sort_unstable();
            let entry = |chain: ChainId| {
                let (own, whole) = std::mem::take(&mut sums[chain.index()]);
                let usual = usual.entry((*population, chain)).or_default();
                usual.own.extend(Some(own).filter(|ns| *ns > 0));
                usual.whole.push(whole);
                Entry { chain, own, whole }
            };
            entries.extend(met.into_iter().map(entry));
            ends.push(entries.len());
        }
        for usual in usual.values_mut() {
            usual.own.sort_unstable();
            usual.whole.sort_unstable();
        }
        Ok(Reference { chains, population, sizes, entries, ends, usual, noise_ns })
    }

    /// The entries of an execution.
    fn of(&self, execution: usize) -> &[Entry] {
        let from = execution.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(execution).and_then(|end| self.entries.get(from..*end)).unwrap_or(&[])
    }

    /// The usual time of a chain in a population.
    pub fn bounds(&self, population: u32, chain: ChainId, part: ChainPart, settings: &Settings) -> UsualTimes {
        let count = self.sizes.get(population as usize).copied().unwrap_or(0);
        let usual = self.usual.get(&(population, chain));
        let present = usual.map_or(&[][..], |u| match part {
            ChainPart::Own => &u.own,
            ChainPart::Whole => &u.whole,
        });
        UsualTimes::new(Distribution { present, count }, settings)
    }

    /// The time of a chain in an execution, with everything that it waited for.
    pub fn whole_time(&self, execution: u32, chain: ChainId) -> Ns {
        let entries = self.of(execution as usize);
        let found = entries.binary_search_by_key(&chain, |e| e.chain).ok().and_then(|at| entries.get(at));
        found.map_or(0, |e| e.whole as Ns)
    }

    /// The chain of an execution that holds all of it.
    pub fn root(&self, execution: u32) -> Option<ChainId> {
        self.of(execution as usize).first().map(|e| e.chain)
    }

    /// All delays, in order of the executions; each execution's in order of their excess.
    pub fn delays(&self, settings: &Settings) -> Vec<Delay> {
        let mut known: HashMap<(u32, ChainId, bool), UsualTimes> = HashMap::default();
        let mut explained: Vec<Ns> = vec![0; self.chains.len()];
        let mut found = Vec::new();
        for (execution, population) in (0_u32..).zip(&self.population) {
            let entries = self.of(execution as usize);
            if self.sizes.get(*population as usize).is_none_or(|n| *n < FEWEST_EXECUTIONS) {
                continue;
            }
            let mut late = |chain: ChainId, whole: bool, ns: u64| {
                let part = if whole { ChainPart::Whole } else { ChainPart::Own };
                let key = (*population, chain, whole);
                let bounds = *known.entry(key).or_insert_with(|| self.bounds(*population, chain, part, settings));
                let excess = ns as Ns - bounds.typical_ns;
                (ns as Ns >= bounds.limit_ns).then_some((excess, bounds.typical_ns))
            };
            let duration = entries.first().map_or(0, |root| root.whole) as Ns;
            let usual = entries
                .first()
                .map_or(0, |root| self.bounds(*population, root.chain, ChainPart::Whole, settings).typical_ns);
            let floor = FLOOR.max(self.noise_ns).max(usual.min(duration) / SHARE_OF_DURATION);
            let mut delays: Vec<Delay> = Vec::new();
            // The ends of a chain come before it.
            for entry in entries.iter().rev() {
                let mut accounted = explained[entry.chain.index()];
                let parts = [(entry.own, false), (entry.whole, true)];
                let both = entry.whole > entry.own;
                for (ns, whole) in parts.into_iter().filter(|(ns, whole)| *ns > 0 && (both || !whole)) {
                    let Some((excess_ns, reference_ns)) = late(entry.chain, whole, ns) else { continue };
                    let left = if whole { excess_ns - accounted } else { excess_ns };
                    if left >= floor && (!whole || accounted * 2 < excess_ns) {
                        delays.push(Delay { execution, chain: entry.chain, whole, excess_ns: left, reference_ns });
                        accounted += left;
                    }
                }
                explained[entry.chain.index()] = 0;
                if let Some(above) = self.chains.get(entry.chain).above {
                    explained[above.index()] += accounted;
                }
            }
            let all: Ns = delays.iter().map(|d| d.excess_ns).sum();
            delays.retain(|d| d.excess_ns * SHARE_OF_DELAY >= all);
            delays.sort_by_key(|d| (Reverse(d.excess_ns), d.chain));
            found.extend(delays);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use crate::base::time::Timestamp;
    use crate::delays::wait_links::*;
    use crate::model::context::{ContextId, Frame, FrameKind};
    use crate::model::wait_kind::WaitKind;

    const MS: u64 = 1_000_000;

    /// The example of ALGORITHMS.md 9.7: 20 executions that run 1 ms, the one at `late` delayed as well.
    fn model(late: usize, runs: impl Fn(usize) -> u64) -> (Model, [ContextId; 3]) {
        let mut model = Model::default();
        let [server, holder, other, lost] =
            ["server", "holder", "other", "preempted"].map(|name| model.names.intern(name));
        let mut child = |above, kind, name| model.contexts.child(above, Frame { kind, name });
        let own = child(None, FrameKind::Process, server);
        let holds = child(Some(own), FrameKind::Thread(WaitKind::Thread), holder);
        let waits = child(Some(holds), FrameKind::Wait(WaitKind::Preempted), lost);
        let has_cpu = child(Some(waits), FrameKind::Thread(WaitKind::Preempted), other);
        for i in 0..20 {
            let mut row = vec![ContextTime { context: own, ns: runs(i) }];
            if i == late {
                row.extend([(holds, 2 * MS), (has_cpu, 3 * MS)].map(|(context, ns)| ContextTime { context, ns }));
            }
            let duration: u64 = row.iter().map(|time| time.ns).sum();
            let e = &mut model.executions;
            e.start.push(Timestamp::new(i as Ns * 10 * MS as Ns));
            e.duration.push(duration as Ns);
            e.own.push(row);
        }
        (model, [own, holds, has_cpu])
    }

    fn found(model: &Model) -> Vec<(u32, ContextId, bool, Ns)> {
        let reference = Reference::new(model, 0, &Cancel::default()).unwrap();
        let first = |chain: ChainId| {
            (0..model.contexts.len()).map(ContextId::at).find(|c| reference.chains.of(*c) == chain).unwrap()
        };
        let delays = reference.delays(&Settings::default());
        delays.iter().map(|d| (d.execution, first(d.chain), d.whole, d.excess_ns)).collect()
    }

    #[test]
    fn delays_are_attributed_to_each_link_of_a_wait_chain() {
        let (model, [_, holds, has_cpu]) = model(7, |_| MS);
        assert_eq!(found(&model), [(7, has_cpu, false, 3 * MS as Ns), (7, holds, false, 2 * MS as Ns)]);
    }

    #[test]
    fn delays_depend_on_the_usual_variation() {
        // 1.0 to 1.2 ms: a run of 1.9 ms is far beyond that range.
        let (steady, [own, ..]) = model(99, |i| if i == 3 { 19 * MS / 10 } else { MS + i as u64 % 10 * MS / 45 });
        assert!(matches!(found(&steady)[..], [(3, context, false, _)] if context == own), "{:?}", found(&steady));
        // 0.1 to 1 ms: 1.5 ms does not.
        let (varied, _) = model(99, |i| if i == 3 { 15 * MS / 10 } else { MS / 10 + i as u64 % 10 * MS / 10 });
        assert_eq!(found(&varied), []);
    }

    #[test]
    fn delays_ignores_short_ones_and_few_executions() {
        let (short, _) = model(99, |i| if i == 3 { MS + 30_000 } else { MS });
        assert_eq!(found(&short), [], "less than a twentieth");
        let (mut few, _) = model(2, |_| MS);
        few.executions.start = few.executions.start.iter().take(9).collect();
        few.executions.duration = few.executions.duration.iter().take(9).collect();
        let rows: Vec<Vec<ContextTime>> = (0..9).map(|i| few.executions.own.row(i).collect()).collect();
        few.executions.own = Default::default();
        rows.into_iter().for_each(|row| few.executions.own.push(row));
        assert_eq!(found(&few), []);
    }
}
