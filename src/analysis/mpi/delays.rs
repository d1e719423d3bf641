//! Delay costs: the waiting that each activity caused, directly and through ranks that waited for it.
//!
//! In: waits. Out: nanoseconds of waiting by stream and region. Since the last common wait the late rank spent more
//! time in some regions than the waiting rank: the wait is distributed over these regions in proportion to the
//! difference. If the late rank had waited itself meanwhile, that part is passed on to the rank that it waited for
//! (Scalasca's short-term and long-term costs). Waits are processed from the last to the first, so that each has all
//! its costs before it is distributed; the workers determine the regions of the waits in parallel. Cost: O(waits log
//! waits), and a few passes over the events between two waits of each stream.

use super::profile::{Region, RegionSum, RegionSums, Streams};
use super::wait_states::RankWait;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::parallel::in_order;
use crate::base::time::{Ns, Span, Timestamp};
use crate::model::wait_state::WaitState;
use foldhash::HashMap;
use std::cmp::Reverse;

/// Shorter waits are not shared out.
const SHORTEST: Ns = 1_000;
/// A late rank counts as having waited itself if that took at least this fraction of the wait.
const PART: Ns = 10;
/// Number of earlier waits of the late rank that are searched for a long one.
const LOOKED_AT: usize = 64;

/// Activity that made others wait.
#[derive(Clone, Debug, Default)]
pub struct DelayCosts {
    /// By stream and region: waiting that it caused, and the call path where most of it was.
    pub by_region: HashMap<(u32, Region), (Ns, u32)>,
    /// By wait: the region of its cause that has most of it.
    pub causes: Vec<Option<Region>>,
}

/// Waits that are shared out together, and those of them that a worker takes at once.
const BATCH: usize = 1 << 16;
const PIECE: usize = 1 << 12;

/// Share out all waits.
pub fn share_out(streams: &Streams<'_>, waits: &[RankWait], ctx: &Ctx) -> Result<DelayCosts, Cancelled> {
    let mut order: Vec<u32> = (0..waits.len() as u32).collect();
    order.sort_unstable_by_key(|w| (Reverse(waits[*w as usize].until), Reverse(*w)));
    let mut passing = CostPropagation::new(waits);
    let mut costs = DelayCosts { causes: vec![None; waits.len()], ..DelayCosts::default() };
    for batch in order.chunks(BATCH) {
        ctx.cancel.check()?;
        let shares: Vec<Share> = batch.iter().filter_map(|at| passing.pass_on(*at)).collect();
        let pieces: Vec<&[Share]> = shares.chunks(PIECE).collect();
        let put = |i: usize| CostDistribution::new(streams, waits).all(pieces[i]);
        in_order(ctx, pieces.len(), put, |i, (by_region, causes)| {
            for (key, (ns, path)) in by_region {
                costs.by_region.entry(key).or_insert((0, path)).0 += ns;
            }
            for (share, cause) in pieces[i].iter().zip(causes) {
                costs.causes[share.wait as usize] = cause;
            }
        })?;
    }
    Ok(costs)
}

/// Remainder of a wait after a part of it was passed on.
struct Share {
    wait: u32,
    /// Part that is passed on to the rank that it waited for.
    amount: Ns,
    /// Begin of the time without a long wait, for the waiting rank and for the late rank.
    since: (Timestamp, Timestamp),
}

/// Waits, with what was passed on to them by later ones.
struct CostPropagation<'a> {
    waits: &'a [RankWait],
    amounts: Vec<Ns>,
    /// Less is no cause of anything.
    least: Ns,
}

impl CostPropagation<'_> {
    fn new(waits: &[RankWait]) -> CostPropagation<'_> {
        // Idle threads and accelerators cause no delay; the activity behind them is passed on.
        let amount = |w: &RankWait| if w.kind.has_no_late_rank() { 0 } else { w.len() };
        let amounts: Vec<Ns> = waits.iter().map(amount).collect();
        // Costs of a millionth of all together are no cause of anything.
        let least = (amounts.iter().sum::<Ns>() / 1_000_000).max(SHORTEST);
        CostPropagation { waits, amounts, least }
    }

    /// Pass on what who came late had waited itself. All later waits have passed on theirs.
    fn pass_on(&mut self, wait: u32) -> Option<Share> {
        let at = wait as usize;
        let (wait, amount) = (*self.waits.get(at)?, *self.amounts.get(at)?);
        if wait.kind == WaitState::Completion || amount < self.least {
            return None;
        }
        let long = (wait.len() / PART).max(SHORTEST);
        let same = self.waits[..at].iter().rev().take_while(|w| w.place == wait.place).count();
        let own = self.before(at - same, wait.place.stream, wait.start, long);
        let since = own.map_or(Timestamp::new(Ns::MIN / 2), |w| self.waits[w].until);
        let (cause, came) = (wait.cause, wait.until);
        let first = self.waits.partition_point(|w| w.place < cause);
        let other = self.before(first, cause.stream, came, long).filter(|w| self.waits[*w].until < came || *w < at);
        let passed = other.map_or(0, |w| overlap(&self.waits[w], &wait));
        let on = (i128::from(amount) * i128::from(passed) / i128::from(wait.len().max(1))) as Ns;
        if let Some(other) = other.filter(|_| on > 0) {
            self.amounts[other] += on;
        }
        let from = other.map_or(since, |w| self.waits[w].until.max(since));
        (amount > on).then_some(Share { wait: at as u32, amount: amount - on, since: (since, from) })
    }

    /// The last long wait of a stream before one of its waits.
    fn before(&self, first: usize, stream: u32, until: Timestamp, long: Ns) -> Option<usize> {
        let of_stream = self.waits[..first].iter().enumerate().rev().take_while(|(_, w)| w.place.stream == stream);
        let is_long = |w: &RankWait| w.kind != WaitState::Completion && w.len() >= long && w.until <= until;
        of_stream.take(LOOKED_AT).find(|(_, w)| is_long(w)).map(|(at, _)| at)
    }
}

fn overlap(a: &RankWait, b: &RankWait) -> Ns {
    (a.until.min(b.until) - a.start.max(b.start)).max(0)
}

/// Nanoseconds by stream and region, with a call path.
type ByRegion = HashMap<(u32, Region), (Ns, u32)>;

/// Puts costs on regions.
struct CostDistribution<'a> {
    streams: &'a Streams<'a>,
    waits: &'a [RankWait],
    /// Activities of the waiting rank and of the late rank.
    mine: RegionSums,
    theirs: RegionSums,
    /// In which regions who came late spent more time than who waited: how much more, and where first.
    more: Vec<(Region, Ns, u32)>,
}

impl<'a> CostDistribution<'a> {
    fn new(streams: &'a Streams<'a>, waits: &'a [RankWait]) -> CostDistribution<'a> {
        let [mine, theirs] = [0, 1].map(|_| RegionSums::new(streams.operations()));
        CostDistribution { streams, waits, mine, theirs, more: Vec::new() }
    }

    /// The costs of some shares, and the cause of each.
    fn all(mut self, shares: &[Share]) -> (ByRegion, Vec<Option<Region>>) {
        let mut costs = ByRegion::default();
        let causes = shares.iter().map(|share| self.put(share, &mut costs)).collect();
        (costs, causes)
    }

    /// Put a share on the regions in which the cause spent more time than who waited; the one that has most of it.
    fn put(&mut self, share: &Share, costs: &mut ByRegion) -> Option<Region> {
        let wait = self.waits.get(share.wait as usize)?;
        let late = wait.cause.stream;
        self.mine.clear();
        self.theirs.clear();
        let (since, from) = share.since;
        fill(&mut self.theirs, self.streams, late, Span::new(from.min(wait.until), wait.until));
        fill(&mut self.mine, self.streams, wait.place.stream, Span::new(since.min(wait.start), wait.start));
        let mine = &self.mine;
        let longer = |(region, sum): (Region, RegionSum)| (region, sum.ns - mine.ns(region), sum.first);
        self.more.clear();
        self.more.extend(self.theirs.iter().map(longer).filter(|(_, ns, _)| *ns > 0));
        if self.more.is_empty() {
            // It did nothing longer, and only began later: then what it did meanwhile.
            self.theirs.clear();
            fill(&mut self.theirs, self.streams, late, Span::new(wait.start, wait.until));
            self.more.extend(self.theirs.iter().map(|(region, sum)| (region, sum.ns, sum.first)));
        }
        let whole: Ns = self.more.iter().map(|(_, ns, _)| ns).sum();
        for (region, ns, first) in &self.more {
            let cost = (i128::from(share.amount) * i128::from(*ns) / i128::from(whole.max(1))) as Ns;
            costs.entry((late, *region)).or_insert_with(|| (0, self.streams.path(late, *first))).0 += cost;
        }
        self.more.iter().max_by_key(|(region, ns, _)| (*ns, Reverse(*region))).map(|(region, ..)| *region)
    }
}

/// Add up a stream's time by region that is no waiting.
fn fill(sums: &mut RegionSums, streams: &Streams<'_>, stream: u32, within: Span) {
    streams.back(stream, within).filter(|p| !p.kind.waits()).for_each(|piece| sums.add(&piece));
}
