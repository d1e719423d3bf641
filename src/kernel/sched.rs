//! The transitions of the scheduler's slots (ALGORITHMS.md 3.2, 3.5, 3.6). The comment of each names the states that it
//! expects, and those that it tolerates and how.

use super::cpu::CpuId;
use super::machine::Machine;
use super::thread_state::{EarlyWake, Label, Sched, ThreadState, UnknownReason, WakeOutsideCall};
use crate::base::notice::Notice;
use crate::base::time::{Ns, Timestamp};
use crate::event::host::HostId;
use crate::event::kernel_thread::{is_handed_work, is_worker};
use crate::event::kind::WakeSource;
use crate::event::prev_state::PrevState;
use crate::kernel::threads::{HostTid, ThreadInstance};
use crate::timeline::{SegmentKind, ThreadId};

/// A thread can be woken between its decision to wait and its switch-out. A wake-up that is older than this ended
/// another wait.
const EARLY_WAKE_WITHIN: Ns = 1_000_000;

/// Instances of one id of which the oldest is looked for that was not freed.
const MAX_UNFREED: usize = 64;

impl Machine {
    /// An event shows that `thread` runs on CPU `c`.
    ///
    /// Expected: the thread of the CPU was unknown; then this one ran since the CPU's first event, unless events were
    /// lost. Tolerated: another thread seemed to run here, or this one elsewhere: switches are missing. Then everything
    /// that is known from switches alone is unknown after the last event that confirmed it: the thread that ran on the
    /// CPU, and whether this thread was still in its run queue.
    pub(super) fn set_running(&mut self, c: CpuId, thread: ThreadId, t: Timestamp) {
        let (confirmed_at, number) = (self.cpus[c].confirmed_at, self.cpus[c].number);
        self.apply_early_wake(thread);
        self.apply_losses(thread, t);
        if let Some(other) = self.cpus[c].thread {
            let state = &mut self.threads[other];
            state.followed |= self.cpus[c].is_confirmed();
            if state.sched == Sched::Running(c) {
                state.left_unseen(confirmed_at, t, &self.reasons);
            }
            self.cpus[c].set_thread(None, confirmed_at);
        }
        self.end_queueing(thread, number, confirmed_at);
        self.leave_elsewhere(c, thread, t);
        let first = self.cpus[c].first.take();
        let state = &mut self.threads[thread];
        let unseen = state.sched == Sched::Unseen;
        let from = first.filter(|_| unseen).map_or(t, |first| first.max(state.start_of_segment()));
        state.change(from, Sched::Running(c), &self.reasons);
        state.cpu = number;
        self.cpus[c].set_thread(Some(thread), from);
        self.cpus[c].confirmed_at = t;
    }

    /// `thread` runs on CPU `c`: if it seemed to run on another one, it left that.
    fn leave_elsewhere(&mut self, c: CpuId, thread: ThreadId, t: Timestamp) {
        if let Sched::Running(other) = self.threads[thread].sched
            && other != c
        {
            let confirmed_at = self.cpus[other].confirmed_at.min(t);
            if !self.cpus[other].is_known() {
                // It runs on: the event names its CPU, and those before did not.
                self.cpus[other].set_thread(None, confirmed_at);
                return;
            }
            self.count_gap(thread, t);
            self.threads[thread].left_unseen(confirmed_at, t, &self.reasons);
            if self.cpus[other].thread == Some(thread) {
                self.cpus[other].set_thread(None, confirmed_at);
            }
        }
    }

    /// Switches are missing since `thread` got a CPU, and no loss was reported.
    pub(super) fn count_gap(&mut self, thread: ThreadId, t: Timestamp) {
        let gaps = &mut self.threads[thread].gaps;
        gaps.count += 1;
        gaps.first = t.min(gaps.first);
    }

    /// A thread that was woken just before it left its CPU for a wait did not wait: it was runnable at once.
    fn apply_early_wake(&mut self, thread: ThreadId) {
        let state = &mut self.threads[thread];
        let early = |wake: EarlyWake| state.start_of_segment().since(wake.at) <= EARLY_WAKE_WITHIN;
        if matches!(state.sched, Sched::Blocked | Sched::Stopped(_)) && state.early_wake.is_some_and(early) {
            state.sched = Sched::Ready;
        }
    }

    /// `prev` leaves CPU `c`, `next` gets it.
    ///
    /// Tolerated: another thread than `prev` seemed to run there (`prev` did, and a contradiction is counted); the CPU
    /// is in an interrupt context (its exit was lost, or threads handle interrupts: the context ends); `next` was not
    /// woken.
    pub(super) fn switch(&mut self, c: CpuId, t: Timestamp, prev: ThreadId, leaves: PrevState, next: ThreadId) {
        self.leave_cpu(c, t, prev, leaves);
        let c = if self.cpus[c].is_known() {
            c
        } else {
            self.cpus.of_thread(self.cpus[c].host, self.threads[next].thread.tid, t)
        };
        self.get_cpu(c, t, next, self.cpus[c].idle_state.left());
        self.cpus[c].set_next(next, t);
    }

    /// `prev` leaves CPU `c`.
    pub(super) fn leave_cpu(&mut self, c: CpuId, t: Timestamp, prev: ThreadId, leaves: PrevState) {
        let (running, host) = (self.cpus[c].thread, self.cpus[c].host);
        if let Some(quality) = self.out.tables.quality.get_mut(host.index()) {
            quality.switches += 1;
        }
        if running != Some(prev) {
            if let Some(running) = running {
                let state = &mut self.threads[running];
                state.contradictions += 1;
                // `assess_switches` counts those of the idle task at the end.
                if state.thread.idle {
                    state.gaps.first = t.min(state.gaps.first);
                } else {
                    self.inconsistent(t);
                }
            }
            self.set_running(c, prev, t);
        }
        self.resume_thread(c);
        self.cpus[c].idle_leaves |= self.cpus[c].idle == Some(prev);
        let state = &mut self.threads[prev];
        if state.sched != Sched::Running(c) {
            // The CPU still has this thread, but a contradictory switch on another CPU ended its running.
            state.change(t, Sched::Running(c), &self.reasons);
        }
        state.placed_by_waker = false;
        state.followed = true;
        match leaves {
            PrevState::Ready => state.change(t, Sched::Ready, &self.reasons),
            PrevState::Blocked | PrevState::Parked => state.change(t, Sched::Blocked, &self.reasons),
            PrevState::Stopped(by) => state.change(t, Sched::Stopped(by), &self.reasons),
            PrevState::Dead => state.die(t, &self.reasons),
        }
    }

    /// A thread leaves CPU `c`, and which one gets it is not recorded.
    ///
    /// Tolerated: it does not run. Then a switch has shown a little earlier that it leaves, and with which state.
    pub(super) fn leaves(&mut self, c: CpuId, t: Timestamp, tid: i32, leaves: PrevState) {
        let thread = self.thread_on(c, tid, t);
        let has_left =
            matches!(self.threads[thread].sched, Sched::Ready | Sched::Blocked | Sched::Stopped(_) | Sched::Dead);
        if tid <= 0 || has_left {
            return;
        }
        self.leave_cpu(c, t, thread, leaves);
        self.cpus[c].set_thread(None, t);
    }

    /// A thread has CPU `c` again, and which one left it is not recorded.
    pub(super) fn returns(&mut self, c: CpuId, t: Timestamp, tid: i32) {
        if tid <= 0 {
            return;
        }
        let thread = self.thread_on(c, tid, t);
        let confirmed_at = self.cpus[c].confirmed_at;
        if let Some(other) = self.cpus[c].thread.filter(|other| *other != thread) {
            let other = &mut self.threads[other];
            if other.sched == Sched::Running(c) {
                other.left_unseen(confirmed_at, t, &self.reasons);
            }
        }
        if self.threads[thread].sched != Sched::Running(c) {
            self.get_cpu(c, t, thread, None);
        }
        self.cpus[c].set_next(thread, t);
    }

    /// `next` gets CPU `c`, as far as the thread is concerned; where the CPU was idle, it left its idle state at
    /// `left_idle_state`.
    pub(super) fn get_cpu(&mut self, c: CpuId, t: Timestamp, next: ThreadId, left_idle_state: Option<Timestamp>) {
        self.leave_elsewhere(c, next, t);
        self.apply_early_wake(next);
        let number = self.cpus[c].number;
        let state = &mut self.threads[next];
        if state.sched == Sched::Ready && state.placed_by_waker && state.cpu != number {
            // The waker names the CPU on which it ran last, and no migration was recorded.
            state.cpu = number;
            self.notices.add(Notice::QueuedElsewhere, 1, || format!("at {t} ns"));
        }
        self.apply_losses(next, t);
        let state = &mut self.threads[next];
        state.wait_for_own_request();
        left_idle_state.into_iter().for_each(|left| state.wait_for_idle_exit(left, &self.reasons));
        state.change(t, Sched::Running(c), &self.reasons);
        state.early_wake = None;
        state.cpu = number;
    }

    /// An event on CPU `c` wakes `thread`, into the run queue of CPU `queue`.
    ///
    /// Expected: it waits, or was forked and never ran, or was not seen before (then it waited since the recording
    /// began). Tolerated: it is runnable (a second wake-up, which may correct the run queue alone), it runs (see
    /// [`EARLY_WAKE_WITHIN`]), it ended (a late event).
    pub(super) fn wake(&mut self, c: CpuId, t: Timestamp, thread: ThreadId, queue: u32, source: WakeSource) {
        let sched = self.threads[thread].sched;
        match sched {
            Sched::Running(_) => {
                let label = self.label(c, t, thread, source);
                self.threads[thread].early_wake = Some(EarlyWake { at: t, label });
            }
            Sched::Dead => return,
            Sched::Ready if !matches!(source, WakeSource::Wakeup | WakeSource::Queued) => return,
            Sched::Ready => {}
            Sched::Unseen | Sched::Unknown(_) | Sched::New | Sched::Blocked | Sched::Stopped(_) => {
                let label = match sched {
                    Sched::Unknown(UnknownReason::Lost | UnknownReason::Elsewhere) => {
                        self.threads[thread].own_label(&self.reasons)
                    }
                    _ => self.label(c, t, thread, source),
                };
                let state = &self.threads[thread];
                let of_wait = state.label_of_wait(label, &self.reasons);
                if let (Some(waker), SegmentKind::Blocked) = (of_wait.waker, of_wait.kind) {
                    self.hand_work(thread, t, waker.thread);
                }
                let state = &mut self.threads[thread];
                state.cut(t, of_wait);
                state.sched = Sched::Ready;
                if label.qualifier == Some(self.reasons.interrupt)
                    && let (Some(waker), Some(segment)) = (self.cpus[c].thread, state.last_segment())
                    && !self.threads[waker].thread.idle
                {
                    self.threads[waker].woke_outside = Some(WakeOutsideCall { woken: thread, segment, at: t });
                }
                self.expect_sender(c, t, thread);
            }
        }
        self.queue(thread, t, queue);
        self.threads[thread].placed_by_waker = source == WakeSource::Waking;
    }

    /// If the thread is runnable, it is in the run queue of CPU `number`. On a CPU that was not recorded it is unknown
    /// when it runs.
    fn queue(&mut self, thread: ThreadId, t: Timestamp, number: u32) {
        let host = self.threads[thread].thread.host;
        let recorded = self.is_recorded(host, number);
        let state = &mut self.threads[thread];
        if matches!(state.sched, Sched::Running(_)) {
            return;
        }
        state.cpu = number;
        if state.sched == Sched::Ready && !recorded {
            state.change(t, Sched::Unknown(UnknownReason::Elsewhere), &self.reasons);
        }
    }

    /// A thread runs another program, with the id `tid` from now on.
    pub(super) fn exec(&mut self, t: Timestamp, host: HostId, tid: i32, old_tid: i32) -> ThreadId {
        let thread = self.thread(host, old_tid, t);
        let [own, first] = [old_tid, tid].map(|tid| HostTid::new(host, tid));
        self.threads.take_over(thread, own, first, |leader| leader.die(t, &self.reasons));
        thread
    }

    /// An id is freed, perhaps after its next thread was forked. It ends the oldest instance that has exited and was
    /// not freed.
    pub(super) fn free(&mut self, t: Timestamp, host: HostId, tid: i32) {
        let mut at = self.threads.latest(HostTid::new(host, tid));
        let mut oldest = None;
        // An id is freed one or two instances later; only damage makes long chains.
        for _ in 0..MAX_UNFREED {
            let Some(thread) = at else { break };
            let state = &self.threads[thread];
            if state.freed {
                break;
            }
            // Where the exit was lost, the event can only mean a thread that is older than the recording.
            if state.exited || state.thread.parent.is_none() && state.previous.is_none() {
                oldest = Some(thread);
            }
            at = state.previous;
        }
        let Some(thread) = oldest else { return };
        let state = &mut self.threads[thread];
        state.freed = true;
        if state.is_alive() {
            state.die(t, &self.reasons);
        }
    }

    /// A thread is moved to another run queue. If it is runnable, it waits for that CPU from now on.
    pub(super) fn migrate(&mut self, t: Timestamp, host: HostId, tid: i32, cpu: u32) {
        if tid == 0 {
            return;
        }
        let thread = self.thread(host, tid, t);
        let state = &mut self.threads[thread];
        state.placed_by_waker = false;
        match state.sched {
            Sched::Running(_) | Sched::Dead => return,
            Sched::Ready => state.cut(t, Label::of(SegmentKind::Preempted)),
            // It is visible again, unless the new CPU was not recorded either.
            Sched::Unknown(UnknownReason::Elsewhere) => state.change(t, Sched::Ready, &self.reasons),
            _ => {}
        }
        self.queue(thread, t, cpu);
    }
}

impl Machine {
    /// `waker` woke `thread` at `t`: a kernel thread may have been handed work.
    pub(super) fn hand_work(&mut self, thread: ThreadId, t: Timestamp, waker: ThreadId) {
        let names = &self.out.tables.names;
        let [woken, by] = [thread, waker].map(|id| &self.threads[id]);
        let name = |state: &ThreadState| state.thread.names.last().map_or("", |last| names.get(last.name));
        let (woken_name, waker_name) = (name(woken), name(by));
        if is_handed_work(woken_name) && woken.is_kernel(names) && !(is_worker(woken_name) && is_worker(waker_name)) {
            self.services.hand(thread, t, waker);
        }
    }
}
