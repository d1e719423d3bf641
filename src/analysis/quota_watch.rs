//! Threads that a CPU quota of their control group holds back while others use their CPUs.
//!
//! In: the segments of threads in order of time. Out: the groups of threads (a process, or the threads of one name)
//! whose waits show a quota, with its period, and when their waits end. A quota ends the run of all threads of a group
//! in the moment in which it is used up, and lets all of them go on in the same moment at the end of a period: whatever
//! runs there then loses its CPU. So of the waits that began when their thread lost a CPU, and that ended when another
//! thread lost that CPU although it was to run on and after more than its turn ([`super::ecct`] doubts such waits one
//! by one), the *moments* of their ends are looked at. They are those of a quota if
//!
//! - [`LEAST_JOINT`] of them or more, and a quarter, are of several threads on several CPUs, within a millisecond;
//! - all lie in one window of the period, so narrow that chance is no explanation ([`CHANCE`], corrected for the
//!   periods that are tried): m moments lie in a window of the part f of a period with a probability of at most m
//!   f^(m-1).
//!
//! Where neither is so, a quota is still suspected of waits of [`LEAST_SUSPECTED`] or more if so many of their ends are
//! in a twentieth of a period (or [`TICK`]) that chance is no explanation either, and at half of these the thread that
//! ran lost the CPU: on a busy CPU a thread gets its turn a little after its quota lets it go on.
//!
//! A neighbour that comes with a period ends of itself, one with a quota of its own stays away when it has lost the
//! CPU: neither makes such moments. Memory: [`MOST`] waits for each group. ALGORITHMS.md 7.7.

use crate::base::names::NameId;
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::host::HostId;
use crate::timeline::reader::RowReader;
use crate::timeline::{Segment, SegmentKind, Thread, ThreadId};
use std::collections::BTreeMap;

/// The longest time in which each thread of a run queue has its turn, on kernels of default settings, where these are
/// few.
pub(super) const ROUND: Ns = 24_000_000;
/// Shorter waits are those of one or two time slices.
const LEAST_SUSPECTED: Ns = 8_000_000;
/// A longer time than that between two ticks of the scheduler, in most configurations.
pub(super) const TICK: Ns = 4_000_000;
/// Largest probability of a suspected quota by chance.
const SUSPECTED: f64 = 1e-4;
/// Waits of a group that are looked at.
const MOST: usize = 1024;
/// Ends of one moment are at most so far from the first of them.
const JOINT: Ns = 1_000_000;
/// Moments at which several threads go on.
const LEAST_JOINT: usize = 3;
/// Periods that are tried, in ms: the kernel's default first, then other usual ones.
const PERIODS: [Ns; 9] = [100, 50, 20, 10, 200, 250, 500, 25, 40];
/// Largest probability that the moments are in phase with one of them by chance.
const CHANCE: f64 = 1e-6;
/// How far the end of a wait may be from the others of its group, as a part of the period.
const WINDOW: f64 = 0.2;

/// Threads that may have one quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum QuotaGroup {
    Process(i32),
    Name(NameId),
}

/// The quota of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaPhase {
    pub period: Ns,
    /// The ends of waits, as times since a multiple of the period: the first of them.
    start: Ns,
    /// So much later is the last.
    width: Ns,
}

impl QuotaPhase {
    /// True for the end of a wait that is as the others are.
    pub fn holds(&self, end: Timestamp) -> bool {
        (end.ns() - self.start).rem_euclid(self.period) <= self.width.max(JOINT)
    }

    /// True for a wait in which a period ends: another one is not due to the quota.
    pub(super) fn ends_within(&self, wait: Span) -> bool {
        (self.start - wait.start.ns()).rem_euclid(self.period) <= wait.len()
    }
}

/// The quotas of a host's threads.
#[derive(Debug, Default)]
pub struct Quotas {
    known: BTreeMap<ThreadId, QuotaPhase>,
    suspected: BTreeMap<ThreadId, QuotaPhase>,
}

impl Quotas {
    /// That of a thread.
    pub fn of(&self, thread: ThreadId) -> Option<&QuotaPhase> {
        self.known.get(&thread)
    }

    /// True for a wait of a thread that may be due to one.
    pub fn suspects(&self, thread: ThreadId, wait: Span) -> bool {
        wait.len() >= LEAST_SUSPECTED && self.suspected.get(&thread).is_some_and(|phase| phase.holds(wait.end))
    }
}

/// A wait for a CPU that may have ended as under a quota.
#[derive(Clone, Copy, Debug)]
struct HeldWait {
    thread: ThreadId,
    span: Span,
    cpu: u32,
}

/// The waits of a host's threads.
#[derive(Debug, Default)]
pub(super) struct QuotaWatch {
    groups: BTreeMap<QuotaGroup, Vec<HeldWait>>,
    /// The state of the thread before its next segment.
    before: Option<SegmentKind>,
}

impl QuotaWatch {
    /// Another thread follows.
    pub fn begin_thread(&mut self) {
        self.before = None;
    }

    /// The next segment of a thread.
    pub fn segment(&mut self, id: ThreadId, thread: &Thread, segment: &Segment) {
        let lost_cpu = self.before.is_some_and(SegmentKind::is_on_cpu);
        self.before = Some(segment.kind);
        if segment.kind != SegmentKind::Preempted || !lost_cpu || segment.span.len() < LEAST_SUSPECTED {
            return;
        }
        let wait = HeldWait { thread: id, span: segment.span, cpu: segment.cpu };
        let name = thread.names.last().map(|name| QuotaGroup::Name(name.name));
        for group in [QuotaGroup::Process(thread.pid)].into_iter().chain(name) {
            let waits = self.groups.entry(group).or_default();
            waits.extend((waits.len() < MOST).then_some(wait));
        }
    }

    /// The quotas that the waits show.
    pub fn finish(self, host: HostId, reader: &RowReader<'_>) -> Quotas {
        let mut quotas = Quotas::default();
        for mut waits in self.groups.into_values() {
            waits.sort_by_key(|wait| (wait.span.end, wait.thread));
            let preempts = |wait: &HeldWait| preempted_at(reader, host, wait.cpu, wait.span.end).is_some();
            if let Some(phase) = suspected(&waits, preempts) {
                quotas.suspected.extend(waits.iter().map(|wait| (wait.thread, phase)));
            }
            waits.retain(|wait| wait.span.len() >= ROUND && wait.ends_out_of_turn(host, reader));
            if let Some(phase) = phase(&waits) {
                quotas.known.extend(waits.iter().map(|wait| (wait.thread, phase)));
            }
        }
        quotas
    }
}

impl HeldWait {
    /// True if the thread that ran at its end lost the CPU ready to run, and got it back as soon as the waiting one
    /// left it: it has no quota, and no budget, of its own.
    fn ends_out_of_turn(&self, host: HostId, reader: &RowReader<'_>) -> bool {
        let Some(then) = preempted_at(reader, host, self.cpu, self.span.end) else { return false };
        let run = reader.runs(host, self.cpu).at(self.span.end);
        run.is_some_and(|run| then.span.end.since(run.span.end).abs() <= JOINT)
    }
}

/// The wait for a CPU of the thread that was preempted on a CPU at `t`; `None` where none was.
pub(super) fn preempted_at(reader: &RowReader<'_>, host: HostId, cpu: u32, t: Timestamp) -> Option<Segment> {
    let last = reader.runs(host, cpu).at(t.saturating_sub(1)).filter(|run| run.span.end == t)?;
    let then = reader.segments(last.thread).at(t)?;
    (then.kind == SegmentKind::Preempted && then.span.start == t).then_some(then)
}

/// The phase of the ends of waits, which are in order, if they are those of a quota.
fn phase(waits: &[HeldWait]) -> Option<QuotaPhase> {
    let mut moments: Vec<Timestamp> = Vec::new();
    let mut joint = 0;
    let mut rest = waits;
    while let Some(first) = rest.first() {
        let together = rest.partition_point(|wait| wait.span.end.since(first.span.end) <= JOINT);
        let (now, later) = rest.split_at(together.max(1));
        let is_joint = now.iter().any(|wait| wait.thread != first.thread && wait.cpu != first.cpu);
        joint += usize::from(is_joint);
        moments.push(first.span.end);
        rest = later;
    }
    if joint < LEAST_JOINT || joint * 4 < moments.len() {
        return None;
    }
    let mut phases = PERIODS.iter().map(|period| window(&moments, period * 1_000_000));
    phases.find(|phase| is_no_chance(phase, moments.len()))
}

/// The phase of the ends of waits, which are in order, if many of them may be those of a quota; `preempts` is true for
/// a wait at whose end another thread was preempted.
fn suspected(waits: &[HeldWait], preempts: impl Fn(&HeldWait) -> bool) -> Option<QuotaPhase> {
    let mut moments: Vec<Timestamp> = waits.iter().map(|wait| wait.span.end).collect();
    moments.dedup_by(|next, kept| next.since(*kept) <= TICK);
    let in_phase = |period: &Ns| {
        let period = period * 1_000_000;
        let width = TICK.max(period / 20);
        let phase = densest(&moments, period, width);
        let inside: Vec<&HeldWait> = waits.iter().filter(|wait| phase.holds(wait.span.end)).collect();
        let held = moments.iter().filter(|end| phase.holds(**end)).count();
        let is_suspect = is_unlikely(held, moments.len(), width as f64 / period as f64)
            && inside.iter().filter(|wait| preempts(wait)).count() * 2 >= inside.len();
        is_suspect.then_some(phase)
    };
    PERIODS.iter().find_map(in_phase)
}

/// The window of a period, of this width, that begins with one of the moments and holds most of them.
pub(super) fn densest(moments: &[Timestamp], period: Ns, width: Ns) -> QuotaPhase {
    let mut at: Vec<Ns> = moments.iter().map(|t| t.ns().rem_euclid(period)).collect();
    at.sort_unstable();
    let held = |start: Ns| {
        let until = |end: Ns| at.partition_point(|t| *t <= end);
        let before = at.partition_point(|t| *t < start);
        until(start + width) - before + until(start + width - period)
    };
    let start = at.iter().copied().max_by_key(|start| (held(*start), std::cmp::Reverse(*start)));
    QuotaPhase { period, start: start.unwrap_or(0), width }
}

/// True if that `held` of `all` moments are in a window of a part of a period, one of them at its begin, has no
/// likelihood by chance, over the periods that are tried.
fn is_unlikely(held: usize, all: usize, part: f64) -> bool {
    part <= WINDOW && chance(held, all, part) * PERIODS.len() as f64 <= SUSPECTED
}

/// A bound of the probability that so many of all moments are in some window of a part of one period, one of them at
/// its begin: by Chernoff, over the windows.
pub(super) fn chance(held: usize, all: usize, part: f64) -> f64 {
    let (n, k) = (all.saturating_sub(1) as f64, held.saturating_sub(1) as f64);
    let share = if n > 0.0 { k / n } else { 0.0 };
    if share <= part {
        return 1.0;
    }
    // The divergence of the two, 0 ln 0 being 0.
    let term = |a: f64, b: f64| if a > 0.0 { a * (a / b).ln() } else { 0.0 };
    let divergence = term(share, part) + term(1.0 - share, 1.0 - part);
    all as f64 * (-n * divergence).exp()
}

/// The narrowest window of a period that holds all moments.
fn window(moments: &[Timestamp], period: Ns) -> QuotaPhase {
    let mut at: Vec<Ns> = moments.iter().map(|t| t.ns().rem_euclid(period)).collect();
    at.sort_unstable();
    let next = at.iter().skip(1).copied().chain(at.first().map(|first| first + period));
    // The window begins after the widest gap.
    let gaps = at.iter().zip(next).map(|(from, to)| (to - from, to));
    let (gap, to) = gaps.max_by_key(|(gap, _)| *gap).unwrap_or((0, 0));
    QuotaPhase { period, start: to.rem_euclid(period), width: period - gap }
}

/// True if this many moments are in the window of the phase for a reason.
fn is_no_chance(phase: &QuotaPhase, moments: usize) -> bool {
    let part = phase.width.max(JOINT) as f64 / phase.period as f64;
    let chance = moments as f64 * part.powi(i32::try_from(moments.saturating_sub(1)).unwrap_or(i32::MAX));
    part <= WINDOW && chance * PERIODS.len() as f64 <= CHANCE
}

#[cfg(test)]
mod tests;
