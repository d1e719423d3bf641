//! Delay costs: the waiting that each activity caused, directly and through ranks that waited for it.
//!
//! In: waits. Out: nanoseconds of waiting by stream and region. Since the last common wait the late rank spent more
//! time in some regions than the waiting rank: the wait is distributed over these regions in proportion to the
//! difference. If the late rank had waited itself meanwhile, that part is passed on to the rank that it waited for
//! (Scalasca's short-term and long-term costs). Waits are processed from the last to the first, so that each has all
//! its costs before it is distributed; the workers determine the regions of the waits in parallel. Cost: O(waits log
//! waits), and the events between two waits of each stream; long times are taken from an index (`region_index`).

use super::profile::{ActivitySpan, Region, RegionSums, Streams};
use super::region_index::RegionIndex;
use super::wait_states::RankWait;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::parallel::in_order;
use crate::base::search::partition_point_near;
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::operation::{NO_PATH, OperationPlace};
use crate::model::wait_state::WaitState;
use foldhash::HashMap;
use std::cmp::Reverse;

/// Shorter waits are not distributed.
const SHORTEST: Ns = 1_000;
/// A late rank counts as having waited itself if that took at least this fraction of the wait.
const PART: Ns = 10;
/// Number of earlier waits of the late rank that are searched for a long one.
const LOOKED_AT: usize = 64;

/// Activity that made others wait.
#[derive(Clone, Debug, Default)]
pub struct DelayCosts {
    /// The waiting that each region of a stream caused.
    pub by_region: ByRegion,
    /// By wait: the region of the late rank with the largest part of it.
    pub causes: Vec<Option<Region>>,
}

/// Waits that are distributed together, and those of them that a worker takes at once.
const BATCH: usize = 1 << 16;
const CHUNK: usize = 1 << 12;

/// Distribute all waits over their causes.
pub fn distribute(streams: &Streams<'_>, waits: &[RankWait], ctx: &Ctx) -> Result<DelayCosts, Cancelled> {
    // Those of each stream are nearly in order; of equals the last by place comes first.
    let mut order: Vec<u32> = (0..waits.len() as u32).collect();
    order.sort_by_key(|w| waits[*w as usize].until);
    order.reverse();
    let mut passing = CostPropagation::new(waits, streams.operations().sequences.len());
    let index = RegionIndex::new(streams);
    let mut costs = DelayCosts { causes: vec![None; waits.len()], ..DelayCosts::default() };
    for batch in order.chunks(BATCH) {
        ctx.cancel.check()?;
        let shares: Vec<Share> = batch.iter().filter_map(|at| passing.pass_on(*at)).collect();
        let chunks: Vec<&[Share]> = shares.chunks(CHUNK).collect();
        let distribute = |i: usize| CostDistribution::new(streams, &index, waits).all(chunks[i]);
        in_order(ctx, chunks.len(), distribute, |i, (by_region, causes)| {
            for ((stream, region), cost) in by_region {
                let path = || last_path(streams, stream, region, cost.first);
                let sum = costs.by_region.entry((stream, region));
                sum.or_insert_with(|| RegionCost { ns: 0, path: path() }).ns += cost.ns;
            }
            for (share, cause) in chunks[i].iter().zip(causes) {
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
    /// Begin of the time without a long wait of the waiting rank; `None`: it had none.
    since: Option<Timestamp>,
    /// Begin of the time since which neither rank had a long wait; `None`: neither had one.
    late_since: Option<Timestamp>,
}

/// Waits, with the time that later ones passed on to them.
struct CostPropagation<'a> {
    waits: &'a [RankWait],
    amounts: Vec<Ns>,
    /// Smaller amounts are ignored.
    least: Ns,
    /// By stream: the first wait that does not precede the last one that was searched for there.
    near: Vec<usize>,
}

impl CostPropagation<'_> {
    fn new(waits: &[RankWait], streams: usize) -> CostPropagation<'_> {
        // Idle threads and accelerators cause no delay; the activity for which they wait is passed on.
        let amount = |w: &RankWait| if w.kind.has_no_late_rank() { 0 } else { w.len() };
        let amounts: Vec<Ns> = waits.iter().map(amount).collect();
        // A millionth of all costs together is ignored.
        let least = (amounts.iter().sum::<Ns>() / 1_000_000).max(SHORTEST);
        CostPropagation { waits, amounts, least, near: vec![waits.len(); streams] }
    }

    /// Pass on the part of a wait in which the late rank had waited itself. All later waits have passed on theirs.
    fn pass_on(&mut self, wait: u32) -> Option<Share> {
        let at = wait as usize;
        let (wait, amount) = (*self.waits.get(at)?, *self.amounts.get(at)?);
        if wait.kind == WaitState::Completion || amount < self.least {
            return None;
        }
        let long = (wait.len() / PART).max(SHORTEST);
        let same = self.waits[..at].iter().rev().take_while(|w| w.place == wait.place).count();
        let own = self.before(at - same, wait.place.stream, wait.start, long);
        let since = own.map(|w| self.waits[w].until);
        let (cause, entered) = (wait.cause, wait.until);
        let mut unknown = self.waits.len();
        let near = self.near.get_mut(cause.stream as usize).unwrap_or(&mut unknown);
        let first = partition_point_near(self.waits, *near, |w| w.place < cause);
        *near = first;
        let other = self.before(first, cause.stream, entered, long);
        let other = other.filter(|w| self.waits[*w].until < entered || *w < at);
        let passed = other.map_or(0, |w| overlap(&self.waits[w], &wait));
        let on = part(amount, passed, wait.len());
        if let Some(other) = other.filter(|_| on > 0) {
            self.amounts[other] += on;
        }
        let late_since = other.map(|w| self.waits[w].until).max(since);
        (amount > on).then_some(Share { wait: at as u32, amount: amount - on, since, late_since })
    }

    /// The last long wait of a stream before one of its waits.
    fn before(&self, first: usize, stream: u32, until: Timestamp, long: Ns) -> Option<usize> {
        let of_stream = self.waits[..first].iter().enumerate().rev().take_while(|(_, w)| w.place.stream == stream);
        let is_long = |w: &RankWait| w.kind != WaitState::Completion && w.len() >= long && w.until <= until;
        of_stream.take(LOOKED_AT).find(|(_, w)| is_long(w)).map(|(at, _)| at)
    }
}

/// `amount` times the part that `of` is of `whole`.
fn part(amount: Ns, of: Ns, whole: Ns) -> Ns {
    let whole = whole.max(1);
    match amount.checked_mul(of) {
        Some(product) => product / whole,
        None => (i128::from(amount) * i128::from(of) / i128::from(whole)) as Ns,
    }
}

fn overlap(a: &RankWait, b: &RankWait) -> Ns {
    (a.until.min(b.until) - a.start.max(b.start)).max(0)
}

/// The waiting that a region caused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionCost {
    pub ns: Ns,
    /// A call path of the region.
    pub path: u32,
}

/// Costs by stream and region.
pub type ByRegion = HashMap<(u32, Region), RegionCost>;

/// A time of a late rank.
#[derive(Clone, Copy)]
struct LateTime {
    span: Span,
    /// An operation that begins near its end.
    near: u32,
}

/// The waiting of some shares that a region caused.
struct ChunkCost {
    ns: Ns,
    /// The late time of the first of them.
    first: LateTime,
}

/// The costs of some shares by stream and region.
type ChunkCosts = HashMap<(u32, Region), ChunkCost>;

/// The call path of a region's last visit in a time, without waits.
fn last_path(streams: &Streams<'_>, stream: u32, region: Region, within: LateTime) -> u32 {
    let is_visit = |activity: &ActivitySpan| activity.region == region && !activity.kind.waits();
    let last = streams.back_near(stream, within.span, within.near).find(is_visit);
    last.map_or(NO_PATH, |activity| streams.path(stream, activity.event))
}

/// The additional time that a late rank spent in a region.
struct Longer {
    region: Region,
    ns: Ns,
}

/// Distributes costs over regions.
struct CostDistribution<'a> {
    index: &'a RegionIndex<'a>,
    waits: &'a [RankWait],
    /// Activities of the waiting rank and of the late rank.
    waiting: RegionSums,
    late: RegionSums,
    /// The regions in which the late rank spent more time than the waiting rank.
    longer: Vec<Longer>,
}

impl<'a> CostDistribution<'a> {
    fn new(streams: &'a Streams<'a>, index: &'a RegionIndex<'a>, waits: &'a [RankWait]) -> CostDistribution<'a> {
        let [waiting, late] = [0, 1].map(|_| RegionSums::new(streams.operations()));
        CostDistribution { index, waits, waiting, late, longer: Vec::new() }
    }

    /// The costs of some shares, and the cause of each.
    fn all(mut self, shares: &[Share]) -> (ChunkCosts, Vec<Option<Region>>) {
        let mut costs = ChunkCosts::default();
        let causes = shares.iter().map(|share| self.distribute(share, &mut costs)).collect();
        (costs, causes)
    }

    /// Distribute a share over the regions in which the late rank spent more time than the waiting rank; returns the
    /// one with the largest part.
    fn distribute(&mut self, share: &Share, costs: &mut ChunkCosts) -> Option<Region> {
        let wait = self.waits.get(share.wait as usize)?;
        let late = wait.cause.stream;
        self.waiting.clear();
        self.late.clear();
        let late_since = share.late_since.unwrap_or(Timestamp::MIN).min(wait.until);
        let since = share.since.unwrap_or(Timestamp::MIN).min(wait.start);
        let mut late_time = Span::new(late_since, wait.until);
        self.index.add_up(&mut self.late, late, late_time, wait.cause.operation);
        let OperationPlace { stream, operation } = wait.place;
        self.index.add_up(&mut self.waiting, stream, Span::new(since, wait.start), operation);
        self.longer.clear();
        let waiting = &self.waiting;
        self.longer.extend(self.late.iter().filter_map(|(region, sum)| {
            let ns = sum.ns - waiting.ns(region);
            (ns > 0).then_some(Longer { region, ns })
        }));
        if self.longer.is_empty() {
            // The late rank did nothing longer and only began later: then its activity during the wait counts.
            self.late.clear();
            late_time = Span::new(wait.start, wait.until);
            self.index.add_up(&mut self.late, late, late_time, wait.cause.operation);
            self.longer.extend(self.late.iter().map(|(region, sum)| Longer { region, ns: sum.ns }));
        }
        let whole: Ns = self.longer.iter().map(|longer| longer.ns).sum();
        for Longer { region, ns } in &self.longer {
            let cost = part(share.amount, *ns, whole);
            let first = LateTime { span: late_time, near: wait.cause.operation };
            costs.entry((late, *region)).or_insert(ChunkCost { ns: 0, first }).ns += cost;
        }
        self.longer.iter().max_by_key(|longer| (longer.ns, Reverse(longer.region))).map(|longer| longer.region)
    }
}
