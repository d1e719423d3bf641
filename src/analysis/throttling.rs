//! Waits in which a thread was held back because a control group around it had used up its CPU quota, by what the
//! kernel counted.
//!
//! In: the segments of threads in order of time, and the environment of their host. Out: the throttled waits of each
//! thread with the group whose quota ended them, and of each group how often and how long it was throttled.
//!
//! A group counts its throttled time when the time ends, added up over its CPUs. So between two samples the counter
//! grows by the union, on each CPU, of the waits of the group's threads that ended there as throttled ones. Where it
//! grew, waits are taken until they make up what was counted: those first that end in phase with the group's period
//! (which is known; where so many do that chance is no explanation), then the longest in which a period ends. Both are
//! marks of a quota; the count says how many there are. An interval is *matched* where those in phase make up half of
//! the counted time, or all waits together are hardly more than it; else nothing is said of its waits, and they stay
//! doubtful, but for those of twice the counted time and more. No wait is throttled in an interval without counted
//! periods, and none of the waits that are left in a matched one.
//!
//! Cost: linear in segments; for each interval the waits of a group are sorted. Memory: `MOST` waits of a host, the
//! longest. ALGORITHMS.md 7.7.

use super::quota_watch::{QuotaPhase, TICK, chance, densest};
use super::surroundings::Surroundings;
use crate::base::time::{Ns, Span, Timestamp};
use crate::model::environment::{ControlGroup, CpuQuota, PlacedEnvironment, ThrottleCount};
use crate::timeline::{Segment, SegmentKind, Thread, ThreadId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Waits that are looked at.
const MOST: usize = 1 << 17;
/// The shortest wait that is looked at.
const LEAST: Ns = 500_000;
/// Largest probability that the ends of a group's waits are in phase with its period by chance.
const CHANCE: f64 = 0.01;
/// A matched interval has at most this many fourths of the counted time in waits, where their phase says nothing.
const FOURTHS: Ns = 5;

/// Functions of the kernel in which a thread waits, ready to run, on its way back to its program, while its control
/// group has used up its CPU quota (since Linux 6.18).
const ENFORCING: [&str; 2] = ["throttle_cfs_rq_work", "task_work_run"];
/// The scheduler's own functions, by which a thread leaves the CPU.
const SCHEDULER: [&str; 5] =
    ["__schedule", "schedule", "__cond_resched", "preempt_schedule_common", "preempt_schedule"];

/// True for the functions of a thread, innermost first, that leaves the CPU where the kernel enforces CPU quotas: not
/// in other work that runs on this way, which may lose the CPU as well.
pub fn is_enforced_in<'n>(mut functions: impl Iterator<Item = &'n str>) -> bool {
    functions.find(|name| !SCHEDULER.contains(name)).is_some_and(|name| ENFORCING.contains(&name))
}

/// Functions of the kernel in which a thread waits while its control group is frozen, of version 1 and of version 2.
const FREEZING: [&str; 2] = ["__refrigerator", "do_freezer_trap"];

/// True for the functions of a thread, innermost first, that leaves the CPU because its control group is frozen.
pub fn is_frozen_in<'n>(mut functions: impl Iterator<Item = &'n str>) -> bool {
    functions.find(|name| !SCHEDULER.contains(name)).is_some_and(|name| FREEZING.contains(&name))
}

/// What a group's quota did in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaTotal {
    pub quota: CpuQuota,
    /// Periods in which it was used up.
    pub times: u64,
    /// For how long, added up over CPUs.
    pub time: Ns,
}

/// A wait that a quota caused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThrottledWait {
    /// The wait.
    pub span: Span,
    /// The number of the group.
    pub group: u32,
}

/// The throttled waits of a host's threads.
#[derive(Debug, Default)]
pub struct Throttling {
    environment: Option<Arc<PlacedEnvironment>>,
    /// By number of a group that was throttled.
    totals: BTreeMap<u32, QuotaTotal>,
    waits: BTreeMap<ThreadId, Vec<ThrottledWait>>,
    /// By group and sample at its end: what was counted in each interval whose count the waits do not make up.
    open: BTreeMap<(u32, u32), Ns>,
}

impl Throttling {
    /// The environment of the host, where there is one.
    pub fn surroundings(&self) -> Option<Surroundings<'_>> {
        self.environment.as_deref().map(Surroundings)
    }

    /// What the quota of a group did.
    pub fn total(&self, group: u32) -> Option<&QuotaTotal> {
        self.totals.get(&group)
    }

    /// The throttled waits of a thread, in order.
    pub fn of(&self, thread: ThreadId) -> &[ThrottledWait] {
        self.waits.get(&thread).map_or(&[], Vec::as_slice)
    }

    /// The group whose quota caused a wait, or the wait of which this is a part.
    pub fn group_of(&self, thread: ThreadId, part: Span) -> Option<u32> {
        let all = self.of(thread);
        let at = all.partition_point(|wait| wait.span.end <= part.start);
        all.get(at).filter(|wait| wait.span.start <= part.start && part.end <= wait.span.end).map(|wait| wait.group)
    }

    /// Of the groups that limit a thread the innermost one that was throttled around a time.
    pub fn throttled_group(&self, thread: &Thread, t: Timestamp) -> Option<u32> {
        let known = self.surroundings()?;
        let samples = known.around(Span::new(t, t.saturating_add(1)))?;
        known.groups_of(thread, samples.1).find(|group| known.was_throttled(*group, samples))
    }

    /// True if the counters show that no quota held a thread back in a wait.
    pub fn is_excluded(&self, id: ThreadId, thread: &Thread, wait: Span) -> bool {
        let Some(known) = self.surroundings() else { return false };
        let Some((before, after)) = known.around(wait) else { return false };
        // At most this much of it was throttled.
        let counted = |sample: u32| {
            let of_group = |group| self.open.get(&(group, sample)).copied();
            known.groups_of(thread, sample).filter_map(of_group).max().unwrap_or(0)
        };
        let counted = (before + 1..=after).map(counted).fold(0, Ns::saturating_add);
        self.group_of(id, wait).is_none()
            && known.knows_groups_of(thread, before)
            && known.knows_groups_of(thread, after)
            && counted.saturating_mul(2) < wait.len()
    }
}

/// A wait for a CPU of a thread whose groups were throttled at some time.
#[derive(Clone, Copy, Debug)]
struct LimitedWait {
    thread: ThreadId,
    span: Span,
    cpu: u32,
}

/// Collects the waits of a host's threads.
#[derive(Debug, Default)]
pub(super) struct ThrottleWatch {
    environment: Option<Arc<PlacedEnvironment>>,
    totals: BTreeMap<u32, QuotaTotal>,
    waits: Vec<LimitedWait>,
    /// Shorter waits are left out.
    least: Ns,
    /// The wait that goes on, of the thread that is read.
    open: Option<LimitedWait>,
}

impl ThrottleWatch {
    /// Of a host with an environment, or without one.
    pub fn new(environment: Option<&Arc<PlacedEnvironment>>) -> ThrottleWatch {
        let totals = environment.map(|all| totals(all)).unwrap_or_default();
        ThrottleWatch { environment: environment.cloned(), totals, least: LEAST, ..ThrottleWatch::default() }
    }

    /// The next segment of a thread. A thread that moves to another CPU while it waits goes on waiting.
    pub fn segment(&mut self, thread: ThreadId, segment: &Segment) {
        if self.totals.is_empty() {
            return;
        }
        let waits = segment.kind == SegmentKind::Preempted;
        match &mut self.open {
            Some(open) if waits && open.thread == thread && open.span.end == segment.span.start => {
                open.span.end = segment.span.end;
            }
            open => {
                let ended = open.take();
                *open = waits.then_some(LimitedWait { thread, span: segment.span, cpu: segment.cpu });
                ended.into_iter().for_each(|wait| self.add(wait));
            }
        }
    }

    /// The last thread has ended.
    fn close(&mut self) {
        let ended = self.open.take();
        ended.into_iter().for_each(|wait| self.add(wait));
    }

    fn add(&mut self, wait: LimitedWait) {
        if wait.span.len() < self.least {
            return;
        }
        while self.waits.len() >= MOST {
            self.least = self.least.saturating_mul(2);
            self.waits.retain(|wait| wait.span.len() >= self.least);
        }
        self.waits.push(wait);
    }

    /// The throttled ones among the waits.
    pub fn finish<'t>(mut self, thread: impl Fn(ThreadId) -> Option<&'t Thread>) -> Throttling {
        self.close();
        let ThrottleWatch { environment, totals, waits, .. } = self;
        let mut found = Throttling { environment, totals, ..Throttling::default() };
        let Some(environment) = found.environment.clone() else { return found };
        let known = Surroundings(&environment);
        // A quota of an inner group holds its threads back before that of one around it.
        let depth = |group: &u32| std::iter::successors(Some(*group), |at| known.group(*at)?.parent).take(64).count();
        let mut groups: Vec<u32> = found.totals.keys().copied().collect();
        groups.sort_by_key(|group| (std::cmp::Reverse(depth(group)), *group));
        let mut left = waits;
        left.sort_unstable_by_key(|wait| (wait.span.end, wait.span.start, wait.thread));
        for group in groups {
            let is_its = |wait: &LimitedWait| {
                let sample = known.sample_after(wait.span.end);
                thread(wait.thread).is_some_and(|of| known.groups_of(of, sample).any(|at| at == group))
            };
            let (its, others): (Vec<LimitedWait>, Vec<LimitedWait>) = left.into_iter().partition(is_its);
            left = others;
            left.extend(match_group(known, group, its, &mut found));
            left.sort_unstable_by_key(|wait| (wait.span.end, wait.span.start, wait.thread));
        }
        for waits in found.waits.values_mut() {
            waits.sort_by_key(|wait| wait.span.start);
        }
        found
    }
}

/// The groups that were throttled between the first sample and the last one.
fn totals(environment: &PlacedEnvironment) -> BTreeMap<u32, QuotaTotal> {
    let total = |(number, group): (usize, &ControlGroup)| {
        let (first, last) = (group.counts.first()?, group.counts.last()?);
        let quota = group.counts.iter().rev().find_map(|count| count.quota)?;
        let (times, time) = (last.times.saturating_sub(first.times), last.time.saturating_sub(first.time));
        (times > 0).then_some((number as u32, QuotaTotal { quota, times, time }))
    };
    environment.values.groups.iter().enumerate().filter_map(total).collect()
}

/// Adds the throttled waits of a group, which are in order of their ends, to what was found; the others are left.
fn match_group(
    known: Surroundings<'_>,
    group: u32,
    mut waits: Vec<LimitedWait>,
    found: &mut Throttling,
) -> Vec<LimitedWait> {
    let (Some(all), Some(total)) = (known.group(group), found.totals.get(&group).copied()) else { return waits };
    let period = total.quota.period;
    let intervals: Vec<Interval> = all.counts.windows(2).filter_map(|pair| Interval::of(known, pair)).collect();
    let is_counted = |end: &Timestamp| {
        let at = intervals.partition_point(|interval| interval.span.end < *end);
        intervals.get(at).is_some_and(|interval| interval.span.start < *end)
    };
    let ends: Vec<Timestamp> = waits.iter().map(|wait| wait.span.end).filter(is_counted).collect();
    let phase = phase(ends, period);
    let mut is_taken = vec![false; waits.len()];
    for interval in &intervals {
        let Span { start, end } = interval.span;
        // A thread may wait for its turn after its quota lets it go on.
        let from = waits.partition_point(|wait| wait.span.end <= start);
        let to = waits.partition_point(|wait| wait.span.end <= end.saturating_add(period));
        let numbered = (from..).zip(waits.get(from..to).unwrap_or_default());
        let is_candidate =
            |(at, wait): &(usize, &LimitedWait)| wait.span.start < end && is_taken.get(*at) == Some(&false);
        let candidates: Vec<(usize, LimitedWait)> =
            numbered.filter(is_candidate).map(|(at, wait)| (at, *wait)).collect();
        let Some(taken) = interval.take(candidates, phase.as_ref()) else {
            found.open.insert((group, interval.sample), interval.counted);
            continue;
        };
        for (at, wait) in taken {
            if let Some(is_taken) = is_taken.get_mut(at) {
                *is_taken = true;
            }
            found.waits.entry(wait.thread).or_default().push(ThrottledWait { span: wait.span, group });
        }
    }
    let mut taken = is_taken.into_iter();
    waits.retain(|_| taken.next() == Some(false));
    waits
}

/// The phase of the ends of waits, which are in order, if they have one.
fn phase(mut ends: Vec<Timestamp>, period: Ns) -> Option<QuotaPhase> {
    ends.dedup_by(|next, kept| next.since(*kept) <= TICK);
    let width = TICK.max(period / 20);
    let phase = densest(&ends, period, width);
    let held = ends.iter().filter(|end| phase.holds(**end)).count();
    (chance(held, ends.len(), width as f64 / period as f64) <= CHANCE).then_some(phase)
}

/// The time between two samples in which a group was throttled.
struct Interval {
    /// The sample at its end.
    sample: u32,
    span: Span,
    /// Throttled time that was counted.
    counted: Ns,
}

impl Interval {
    /// Of two counts that follow each other; the samples between them have the first one's.
    fn of(known: Surroundings<'_>, pair: &[ThrottleCount]) -> Option<Interval> {
        let [before, after] = pair else { return None };
        let at = |sample: u32| known.0.times.get(sample as usize).copied();
        let span = Span::new(at(after.line.checked_sub(1)?)?, at(after.line)?);
        let counted = after.time.saturating_sub(before.time);
        let is_throttled = after.times > before.times && !span.is_empty();
        is_throttled.then_some(Interval { sample: after.line, span, counted })
    }

    /// The throttled ones among the waits around the interval, with their positions; `None` where the waits do not
    /// show which these are.
    fn take(
        &self,
        mut candidates: Vec<(usize, LimitedWait)>,
        phase: Option<&QuotaPhase>,
    ) -> Option<Vec<(usize, LimitedWait)>> {
        let has_phase = |wait: &LimitedWait| phase.is_some_and(|phase| phase.holds(wait.span.end));
        candidates.retain(|(_, wait)| phase.is_none_or(|phase| phase.ends_within(wait.span)));
        candidates.sort_by_key(|(at, wait)| {
            let ends_here = wait.span.end <= self.span.end;
            (!has_phase(wait), !ends_here, std::cmp::Reverse(wait.span.len()), *at)
        });
        let mut covered = CoveredTime::default();
        let all: Ns = candidates.iter().map(|(_, wait)| covered.add(wait)).sum();
        let mut covered = CoveredTime::default();
        let (mut sum, mut in_phase): (Ns, Ns) = (0, 0);
        // The last one is taken if that brings the sum nearer to the count.
        candidates.retain(|(_, wait)| {
            let more = covered.uncovered(wait);
            if sum.saturating_add(more / 2) > self.counted {
                return false;
            }
            covered.add(wait);
            sum = sum.saturating_add(more);
            in_phase += if has_phase(wait) { more } else { 0 };
            true
        });
        let is_matched = (in_phase > 0 && in_phase.saturating_mul(2) >= self.counted)
            || all.saturating_mul(4) <= self.counted.saturating_mul(FOURTHS);
        is_matched.then_some(candidates)
    }
}

/// By CPU: the union of waits, in order and apart.
#[derive(Default)]
struct CoveredTime(BTreeMap<u32, Vec<Span>>);

impl CoveredTime {
    /// The part of a wait that no other one covers.
    fn uncovered(&self, wait: &LimitedWait) -> Ns {
        let all = self.0.get(&wait.cpu).map_or(&[][..], Vec::as_slice);
        let from = all.partition_point(|span| span.end <= wait.span.start);
        let over = all.iter().skip(from).take_while(|span| span.start < wait.span.end);
        wait.span.len() - over.map(|span| span.clip(wait.span).len()).sum::<Ns>()
    }

    /// Add a wait; returns what it adds.
    fn add(&mut self, wait: &LimitedWait) -> Ns {
        let more = self.uncovered(wait);
        let all = self.0.entry(wait.cpu).or_default();
        let from = all.partition_point(|span| span.end < wait.span.start);
        let to = all.partition_point(|span| span.start <= wait.span.end);
        let mut whole = wait.span;
        for span in all.get(from..to).unwrap_or_default() {
            whole = Span::new(whole.start.min(span.start), whole.end.max(span.end));
        }
        all.splice(from..to.max(from), [whole]);
        more
    }
}

#[cfg(test)]
mod tests;
