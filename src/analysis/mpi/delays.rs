//! Delay costs: how much waiting what somebody did has caused, directly and through others who waited for it.
//!
//! In: waits. Out: nanoseconds of waiting by stream and region. Whoever came late did something longer than who waited for it,
//! since both last went on from a wait: the wait is shared out over the regions in which it spent more time than the other, in
//! proportion. Where it had waited itself meanwhile, that part is passed on to whom it waited for (what Scalasca calls
//! short-term and long-term costs). Waits are taken from the last to the first, so that each has all its costs when it is
//! shared out. Cost: O(waits log waits), and the events between two waits of each stream a few times.

use super::profile::{Region, Streams};
use super::wait_states::{Wait, WaitKind};
use crate::base::time::{Ns, Span};
use crate::base::work::Cancel;
use foldhash::HashMap;
use std::cmp::Reverse;

/// Shorter waits are not shared out.
const SHORTEST: Ns = 1_000;
/// Who came late had waited itself if that took at least one part in this many of the wait.
const PART: Ns = 10;
/// Waits looked at, back from where somebody came late, for one that was long.
const LOOKED_AT: usize = 64;

/// What costs others their time.
#[derive(Clone, Debug, Default)]
pub struct Costs {
    /// By stream and region: waiting that it caused, and the call path where most of it was.
    pub by_region: HashMap<(u32, Region), (Ns, u32)>,
    /// By wait: the region of its cause that has most of it.
    pub causes: Vec<Option<Region>>,
}

/// Share out all waits.
pub fn share_out(streams: &Streams<'_>, waits: &[Wait], cancel: &Cancel) -> Costs {
    let mut order: Vec<u32> = (0..waits.len() as u32).collect();
    order.sort_unstable_by_key(|w| (Reverse(waits[*w as usize].until), Reverse(*w)));
    // Idle threads and accelerators are nobody's delay; what they do instead is handed on through them.
    let amount = |w: &Wait| if w.kind.is_nobodys() { 0 } else { w.len() };
    let mut amounts: Vec<Ns> = waits.iter().map(amount).collect();
    let mut costs = Costs { causes: vec![None; waits.len()], ..Costs::default() };
    // Costs of a millionth of all together are no cause of anything.
    let least = (amounts.iter().sum::<Ns>() / 1_000_000).max(SHORTEST);
    for (n, at) in order.into_iter().map(|at| at as usize).enumerate() {
        if n % 1024 == 0 && cancel.is_cancelled() {
            return costs;
        }
        let (wait, amount) = (waits[at], amounts[at]);
        if wait.kind == WaitKind::Completion || amount < least {
            continue;
        }
        let long = (wait.len() / PART).max(SHORTEST);
        let own = before(waits, wait.place.stream, wait.start, wait.place.operation, long);
        let since = own.map_or(Ns::MIN / 2, |w| waits[w].until);
        let came = wait.until;
        let other = before(waits, wait.cause.stream, came, wait.cause.operation, long)
            .filter(|w| waits[*w].until < came || *w < at);
        let passed = other.map_or(0, |w| overlap(&waits[w], &wait));
        let on = (i128::from(amount) * i128::from(passed) / i128::from(wait.len().max(1))) as Ns;
        if let Some(other) = other
            && on > 0
        {
            amounts[other] += on;
        }
        let from = other.map_or(since, |w| waits[w].until.max(since));
        let region = put(streams, &wait, (since, from), amount - on, &mut costs);
        costs.causes[at] = region;
    }
    costs
}

fn overlap(a: &Wait, b: &Wait) -> Ns {
    (a.until.min(b.until) - a.start.max(b.start)).max(0)
}

/// The last long wait of a stream before one of its operations.
fn before(waits: &[Wait], stream: u32, until: Ns, operation: u32, long: Ns) -> Option<usize> {
    let end = waits.partition_point(|w| (w.place.stream, w.place.operation) < (stream, operation));
    let of_stream = waits[..end].iter().enumerate().rev().take_while(|(_, w)| w.place.stream == stream);
    let is_long = |w: &Wait| w.kind != WaitKind::Completion && w.len() >= long && w.until <= until;
    of_stream.take(LOOKED_AT).find(|(_, w)| is_long(w)).map(|(at, _)| at)
}

/// Put costs on the regions in which the cause spent more time than who waited. The last times that each went on are given.
fn put(streams: &Streams<'_>, wait: &Wait, went_on: (Ns, Ns), amount: Ns, costs: &mut Costs) -> Option<Region> {
    if amount <= 0 {
        return None;
    }
    let theirs = profile(streams, wait.cause.stream, Span::new(went_on.1.min(wait.until), wait.until));
    let mine = profile(streams, wait.place.stream, Span::new(went_on.0.min(wait.start), wait.start));
    let known = |region: Region| mine.iter().find(|(r, ..)| *r == region).map_or(0, |(_, ns, _)| *ns);
    let mut more: Vec<(Region, Ns, u32)> =
        theirs.iter().map(|(r, ns, path)| (*r, (*ns - known(*r)).max(0), *path)).filter(|(_, ns, _)| *ns > 0).collect();
    if more.is_empty() {
        // It did nothing longer, and only began later: then what it did meanwhile.
        more = profile(streams, wait.cause.stream, Span::new(wait.start, wait.until));
    }
    let whole: Ns = more.iter().map(|(_, ns, _)| ns).sum();
    for (region, ns, path) in &more {
        let cost = (i128::from(amount) * i128::from(*ns) / i128::from(whole.max(1))) as Ns;
        let sum = costs.by_region.entry((wait.cause.stream, *region)).or_insert((0, *path));
        sum.0 += cost;
    }
    more.into_iter().max_by_key(|(region, ns, _)| (*ns, Reverse(*region))).map(|(region, ..)| region)
}

/// Time by region that is no waiting; the path is that of the first piece found.
fn profile(streams: &Streams<'_>, stream: u32, within: Span) -> Vec<(Region, Ns, u32)> {
    let mut found: Vec<(Region, Ns, u32)> = Vec::new();
    for piece in streams.back(stream, within).filter(|p| !p.kind.waits()) {
        match found.iter_mut().find(|(region, ..)| *region == piece.region) {
            Some((_, ns, _)) => *ns += piece.span.len(),
            None => found.push((piece.region, piece.span.len(), piece.path)),
        }
    }
    found
}
