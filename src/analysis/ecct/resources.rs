//! Waits for what threads share: a CPU, a disk.
//!
//! In: a segment of a path in which its thread waited for a CPU or a disk. Out: its time below the wait, by the threads
//! that ran on the CPU or had requests in flight meanwhile. Time in which the CPU was idle, for longer than a wake-up
//! takes, is apart: no thread kept this one from running, so it was held back; so is time in which the disk had no
//! request. Between a long wait for a CPU and the
//! threads that ran there are its circumstances: other CPUs that were idle, and an end out of turn. Cost:
//! linear in the runs of the CPU, or the requests, in the segment. ALGORITHMS.md sections 5.3 and 5.4.

use super::held::HeldFor;
use super::{OutlineId, OutlineStep, Walk};
use crate::analysis::disk::DiskWait;
use crate::analysis::path::PathSegment;
use crate::analysis::quota_watch::{ROUND, preempted_at};
use crate::analysis::surroundings::is_among;
use crate::base::time::{Ns, Span};
use crate::event::host::HostId;
use crate::model::carrier::Carrier;
use crate::model::wait_kind::{
    BEFORE_LOWER, BEHIND_PRIORITY, BEHIND_REAL_TIME, HYPERVISOR, IDLE_CPU, IDLE_DISK, IDLE_EXIT, IDLE_LIMITED_DISK,
    IDLE_NO_QUOTA, IN_PHASE, LIKE_A_QUOTA, NO_STEAL, OTHER_PRIORITY, OUT_OF_TURN, WaitKind,
};
use crate::timeline::{CpuRun, LONGEST_WAKE_UP, SegmentKind, Thread, ThreadId};
use smallvec::SmallVec;

/// A wait for a CPU of this length is worth a look at its circumstances: a time slice is no longer.
const LONG: Ns = 5_000_000;
/// Moments of a wait at which the other CPUs are looked at.
const MOMENTS: Ns = 3;
/// The longest turn of each thread of a run queue where these are many; where they are few each has its turn in
/// [`ROUND`].
const TURN: Ns = 4_000_000;
/// What the kernel may not have counted of stolen time.
const STEAL_TICK: Ns = 10_000_000;
/// Moves to other run queues within one wait that are looked through.
const MOST_MOVES: usize = 16;

impl Walk<'_, '_> {
    /// A wait in a run queue, by the threads that ran on that CPU.
    pub(super) fn add_preempted(&mut self, node: OutlineId, segment: &PathSegment) {
        let timeline = self.sources.timeline;
        let host = timeline.thread(segment.thread).map(|t| t.host);
        if let Some(quota) = host.and_then(|host| self.quota(host, segment)) {
            let wait = self.outline.child(Some(node), OutlineStep::Wait(WaitKind::Throttled, None));
            let node = quota.map_or(wait, |quota| self.outline.child(Some(wait), quota));
            self.add(node, segment.span.len() as u64);
            return;
        }
        let wait = self.outline.child(Some(node), OutlineStep::Wait(WaitKind::Preempted, None));
        if segment.qualifier.is_some_and(|by| timeline.names().get(by) == IDLE_EXIT) {
            let leaving = self.outline.child(Some(wait), OutlineStep::Named(WaitKind::Preempted, IDLE_EXIT));
            self.add(leaving, segment.span.len() as u64);
            return;
        }
        let runs = host.map(|host| self.reader.runs(host, segment.cpu).within(segment.span));
        let runs: SmallVec<[CpuRun; 8]> = runs.into_iter().flatten().collect();
        let circumstances = self.circumstances(segment, &runs);
        let mut at = segment.span.start;
        for run in runs {
            let part = run.span.clip(Span::new(at, segment.span.end));
            let other = timeline.thread(run.thread).filter(|_| run.thread != segment.thread);
            let Some(other) = other.filter(|other| !other.idle || part.len() >= LONGEST_WAKE_UP) else { continue };
            self.add(wait, Span::new(at, part.start).len() as u64);
            at = part.end;
            if other.idle {
                let name = if host.is_some_and(|host| self.is_unthrottled(host, segment.thread, part)) {
                    IDLE_NO_QUOTA
                } else {
                    IDLE_CPU
                };
                let idle = self.outline.child(Some(wait), OutlineStep::Named(WaitKind::Preempted, name));
                self.add(idle, part.len() as u64);
                continue;
            }
            let above = circumstances.iter().fold(wait, |node, step| self.outline.child(Some(node), *step));
            let above = match self.precedence(segment.thread, other, part) {
                Some(name) => self.outline.child(Some(above), OutlineStep::Named(WaitKind::Preempted, name)),
                None => above,
            };
            let waiting = self.hop;
            let mut from = part.start;
            let ends = other.renames_in(part).iter().map(|rename| rename.from).chain([part.end]);
            for to in ends {
                let step = OutlineStep::Thread(WaitKind::Preempted, self.name_at(other, from));
                let root = self.outline.child(Some(above), step);
                self.hop = self.hop_to(Some(waiting), run.thread, |_| Carrier::Cpu);
                self.add_served(root, run.thread, Span::new(from, to));
                self.hop = waiting;
                self.outline.count(root, run.thread, Span::new(from, to).len() as u64);
                from = to;
            }
        }
        self.add(wait, Span::new(at, segment.span.end).len() as u64);
    }

    /// The name of the priority of a thread that ran while one of lower priority waited, as the switches show them.
    fn precedence(&self, waiter: ThreadId, ran: &Thread, span: Span) -> Option<&'static str> {
        let remarks = self.sources.remarks;
        let waits = remarks.priority(self.sources.timeline.thread(waiter)?, span.end);
        let runs = remarks.priority(ran, span.start);
        runs.precedes(waits)
            .then(|| if runs.is_real_time() && !waits.is_real_time() { BEHIND_REAL_TIME } else { BEHIND_PRIORITY })
    }

    /// True where only threads of much lower priority ran on a CPU, as the switches show, although the kernel would
    /// have let the waiting one run; not where the counters show that no quota held it back.
    fn is_before_lower(&self, host: HostId, segment: &PathSegment, ran: &[ThreadId]) -> bool {
        let (timeline, remarks) = (self.sources.timeline, self.sources.remarks);
        let Some(waiter) = timeline.thread(segment.thread) else { return false };
        let waits = remarks.priority(waiter, segment.span.end);
        let is_lower = |id: &ThreadId| {
            timeline.thread(*id).is_some_and(|ran| waits.precedes_by_far(remarks.priority(ran, segment.span.start)))
        };
        !ran.is_empty() && ran.iter().all(is_lower) && !self.is_unthrottled(host, segment.thread, segment.span)
    }

    /// What else is known of a long wait in a run queue: the other CPUs were idle, it ended out of turn, or only
    /// threads of much lower priority ran.
    fn circumstances(&self, segment: &PathSegment, runs: &[CpuRun]) -> SmallVec<[OutlineStep; 2]> {
        let timeline = self.sources.timeline;
        let is_busy = |run: &&CpuRun| timeline.thread(run.thread).is_some_and(|thread| !thread.idle);
        let host = timeline.thread(segment.thread).map(|thread| thread.host);
        let Some(host) = host.filter(|_| segment.span.len() >= LONG) else { return SmallVec::new() };
        let idle = self.idle_elsewhere(host, segment).map(|(idle, all)| OutlineStep::IdleCpus(idle, all));
        let mut threads: SmallVec<[ThreadId; 8]> = runs.iter().filter(is_busy).map(|run| run.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        let name = if self.is_before_lower(host, segment, &threads) {
            Some(BEFORE_LOWER)
        } else {
            self.out_of_turn(host, segment, threads.len())
        };
        idle.into_iter().chain(name.map(|name| OutlineStep::Named(WaitKind::Preempted, name))).collect()
    }

    /// How many of all CPUs of a host, but for that of a wait, were idle at each of [`MOMENTS`] of it on average;
    /// `None` where none was. Where it was recorded on which CPUs the thread may run, these are all. Numbers from 10 on
    /// are rounded down to tens, so that few names of waits differ by them.
    fn idle_elsewhere(&self, host: HostId, segment: &PathSegment) -> Option<(u16, u16)> {
        let timeline = self.sources.timeline;
        let (mut idle, mut all) = (0, 0_u16);
        let known = self.sources.pauses.get(host.index()).and_then(|pauses| pauses.throttling.surroundings());
        let allowed = known.zip(timeline.thread(segment.thread));
        let allowed = allowed.and_then(|(known, thread)| known.allowed(thread, segment.span.start));
        let is_allowed = |cpu: u32| allowed.is_none_or(|cpus| is_among(cpus, cpu));
        for (_, cpu) in timeline.cpus().filter(|(of, cpu)| *of == host && is_allowed(*cpu)) {
            all = all.saturating_add(1);
            if cpu == segment.cpu {
                continue;
            }
            let mut runs = self.reader.runs(host, cpu);
            idle += (1..=MOMENTS)
                .filter_map(|n| runs.at(segment.span.start.saturating_add(segment.span.len() / (MOMENTS + 1) * n)))
                .filter(|run| timeline.thread(run.thread).is_some_and(|thread| thread.idle))
                .count();
        }
        let idle = u16::try_from(idle / MOMENTS as usize).ok()?;
        let idle = if idle < 10 { idle } else { idle / 10 * 10 };
        (idle > 0).then_some((idle, all))
    }

    /// Something where a quota holds a thread back, and what is known of it. By the kernel's call stack at the switch,
    /// else by what the kernel counted, else by how the waits of the thread's group end.
    fn quota(&mut self, host: HostId, segment: &PathSegment) -> Option<Option<OutlineStep>> {
        let pauses = self.sources.pauses.get(host.index())?;
        let throttling = &pauses.throttling;
        if let Some(group) = throttling.group_of(segment.thread, segment.span) {
            return Some(Some(OutlineStep::Throttled(host, group)));
        }
        let whole = || self.reader.segments(segment.thread).at(segment.span.start);
        let remarks = self.sources.remarks;
        let is_seen =
            remarks.has_throttling() && whole().is_some_and(|wait| remarks.begins_throttled(host, wait.cpu, wait.span));
        if is_seen || self.held_for(segment.thread, segment.span.start) == Some(HeldFor::Quota) {
            let thread = self.sources.timeline.thread(segment.thread)?;
            let group = throttling.throttled_group(thread, segment.span.end);
            return Some(group.map(|group| OutlineStep::Throttled(host, group)));
        }
        let (phase, wait) = (pauses.quotas.of(segment.thread)?, whole()?);
        if self.is_unthrottled(host, segment.thread, wait.span) {
            return None;
        }
        let is_held = wait.kind == SegmentKind::Preempted && wait.span.len() >= ROUND && phase.holds(wait.span.end);
        let preempted = is_held.then(|| preempted_at(self.reader, host, wait.cpu, wait.span.end)).flatten();
        preempted.map(|_| Some(OutlineStep::Quota(phase.period)))
    }

    /// True if the counters of the control groups show that no quota held a thread back in a wait.
    fn is_unthrottled(&self, host: HostId, id: ThreadId, wait: Span) -> bool {
        let Some(pauses) = self.sources.pauses.get(host.index()) else { return false };
        self.sources.timeline.thread(id).is_some_and(|thread| pauses.throttling.is_excluded(id, thread, wait))
    }

    /// True if a thread has the usual priority: one that runs in its place for longer has a higher one, and is the
    /// reason.
    fn has_usual_priority(&self, host: HostId, id: ThreadId, wait: Span) -> Option<bool> {
        let thread = self.sources.timeline.thread(id)?;
        let of_switches = self.sources.remarks.priority(thread, wait.end);
        if of_switches.is_known() && !of_switches.is_usual() {
            return Some(false);
        }
        let known = self.sources.pauses.get(host.index())?.throttling.surroundings()?;
        known.has_usual_priority(thread, wait.end)
    }

    /// Time in which the CPU was paused; the environment may show whether the hypervisor gave it to others.
    pub(super) fn add_stolen(&mut self, node: OutlineId, segment: &PathSegment) {
        let host = self.sources.timeline.thread(segment.thread).map(|thread| thread.host);
        let pauses = host.and_then(|host| self.sources.pauses.get(host.index()));
        let known = pauses.and_then(|pauses| pauses.throttling.surroundings());
        let name = known.and_then(|known| known.steal(segment.cpu, segment.span)).and_then(|steal| {
            // The kernel counts steal in ticks.
            match steal.saturating_add(STEAL_TICK).saturating_mul(2) >= segment.span.len() {
                true if steal > 0 => Some(HYPERVISOR),
                true => None,
                false => Some(NO_STEAL),
            }
        });
        let wait = match name {
            Some(name) => self.named(node, WaitKind::Stolen, name),
            None => self.wait(node, WaitKind::Stolen, None),
        };
        self.add(wait, segment.span.len() as u64);
    }

    /// The name of a wait that lasted longer than the turns of this many threads take, and that ended when the last of
    /// them lost the CPU although it was to run on: at equal priority it would have lost the CPU before. A thread whose
    /// control group has a CPU quota comes back so, and one of lower priority. Also that of a wait of which a quota is
    /// suspected. No such name where the counters of the control groups exclude a quota, and the waiting thread has the
    /// usual priority.
    fn out_of_turn(&self, host: HostId, segment: &PathSegment, threads: usize) -> Option<&'static str> {
        let mut segments = self.reader.segments(segment.thread);
        let wait = segments.at(segment.span.start).filter(|wait| wait.kind == SegmentKind::Preempted)?;
        let end = wait.span.end;
        let is_unthrottled = self.is_unthrottled(host, segment.thread, wait.span);
        let is_usual = self.has_usual_priority(host, segment.thread, wait.span).filter(|_| is_unthrottled);
        if is_usual == Some(true) {
            return None;
        }
        let pauses = self.sources.pauses.get(host.index()).filter(|_| !is_unthrottled);
        if pauses.is_some_and(|pauses| pauses.quotas.suspects(segment.thread, wait.span)) {
            return Some(IN_PHASE);
        }
        if wait.span.len() < ROUND.max(TURN.saturating_mul(threads as Ns)) {
            return None;
        }
        preempted_at(self.reader, host, wait.cpu, end)?;
        let loser = self.reader.runs(host, wait.cpu).at(end.saturating_sub(1)).map(|run| run.thread);
        let loser = loser.and_then(|loser| self.sources.timeline.thread(loser));
        if loser.is_some_and(|loser| self.precedence(segment.thread, loser, wait.span).is_some()) {
            return None;
        }
        let before = std::iter::successors(segments.previous_row(), |_| segments.previous_row());
        let before = before.take(MOST_MOVES).find(|before| before.kind != SegmentKind::Preempted);
        Some(match before.map(|before| before.kind) {
            Some(SegmentKind::Running | SegmentKind::Interrupted) if !is_unthrottled => LIKE_A_QUOTA,
            _ if is_usual == Some(false) => OTHER_PRIORITY,
            _ => OUT_OF_TURN,
        })
    }

    /// A wait for a disk, by the threads that used it.
    pub(super) fn add_disk(&mut self, node: OutlineId, segment: &PathSegment) {
        let wait = self.outline.child(Some(node), OutlineStep::Wait(WaitKind::Disk, None));
        let timeline = self.sources.timeline;
        let host = timeline.thread(segment.thread).map(|t| t.host);
        let of_wait = host.map(|host| self.sources.disk.wait(host, segment.thread, segment.span));
        let DiskWait { shares, idle } = of_wait.unwrap_or_default();
        let mut left = segment.span.len() as u64;
        if idle > 0 {
            let name = if self.limits_disk(host, segment) { IDLE_LIMITED_DISK } else { IDLE_DISK };
            let held = self.outline.child(Some(wait), OutlineStep::Named(WaitKind::Disk, name));
            self.add(held, idle as u64);
            left = left.saturating_sub(idle as u64);
        }
        for share in shares {
            let Some((id, other)) = share.thread.and_then(|id| Some((id, timeline.thread(id)?))) else { continue };
            let step = OutlineStep::Thread(WaitKind::Disk, self.name_at(other, share.since));
            let root = self.outline.child(Some(wait), step);
            let node = self.stack(root, id, share.since);
            let waiting = self.hop;
            self.hop = self.hop_to(Some(waiting), id, |_| Carrier::Disk);
            self.add(node, share.ns);
            self.hop = waiting;
            self.outline.count(root, id, share.ns);
            left = left.saturating_sub(share.ns);
        }
        self.add(wait, left);
    }

    /// True if a control group of the thread is known to have a limit on a disk.
    fn limits_disk(&self, host: Option<HostId>, segment: &PathSegment) -> bool {
        let pauses = host.and_then(|host| self.sources.pauses.get(host.index()));
        let known = pauses.and_then(|pauses| pauses.throttling.surroundings());
        let thread = self.sources.timeline.thread(segment.thread);
        known.zip(thread).is_some_and(|(known, thread)| known.limits_disk(thread, segment.span.end))
    }
}
