//! The transitions of the scheduler's slots (ALGORITHMS.md 3.2, 3.5, 3.6). Each says what is expected, what is
//! tolerated and how.

use super::machine::Machine;
use super::thread_state::{Label, Sched, ThreadState, UnknownReason};
use crate::base::notice::Notice;
use crate::base::time::{Ns, Timestamp};
use crate::event::kind::WakeSource;
use crate::event::prev_state::Leaves;
use crate::state::threads::{HostTid, ThreadInstance};
use crate::state::timeline::{HostId, SegmentKind, ThreadId};

/// A thread can be woken in the moment between deciding to wait and being switched out. An older wake-up was for
/// another wait.
const JUST_NOW: Ns = 1_000_000;

/// Incarnations of one id that may wait to be freed.
const LATEST_FREE: usize = 64;

impl Machine {
    /// It turns out that `thread` runs on CPU `c`.
    ///
    /// Expected: nothing was known of the CPU; then it ran since the CPU's first event, unless events were lost.
    /// Tolerated: another thread was believed to run here, or this one elsewhere: switches are missing. Then what only
    /// switches said is not known any more from the last event that agreed with them: who had the CPU, and whether this
    /// thread still queued for it.
    pub(super) fn runs(&mut self, c: usize, thread: ThreadId, t: Timestamp) {
        let (agreed, number) = (self.cpus[c].agreed, self.cpus[c].number);
        self.early(thread);
        self.doubt(thread, t);
        if let Some(other) = self.cpus[c].thread {
            let state = &mut self.threads[other];
            state.followed |= self.cpus[c].is_confirmed();
            if state.sched == Sched::Running(c) {
                state.left_unseen(agreed, t, &self.reasons);
            }
            self.cpus[c].give_to(None, agreed);
        }
        self.doubt_queued(thread, number, agreed);
        self.leave_elsewhere(c, thread, t);
        let first = self.cpus[c].first.take();
        let state = &mut self.threads[thread];
        let unseen = state.sched == Sched::Unseen;
        let from = first.filter(|_| unseen).map_or(t, |first| first.max(state.start_of_segment()));
        state.change(from, Sched::Running(c), &self.reasons);
        state.cpu = number;
        self.cpus[c].give_to(Some(thread), from);
        self.cpus[c].agreed = t;
    }

    /// A thread runs on one CPU at a time.
    fn leave_elsewhere(&mut self, c: usize, thread: ThreadId, t: Timestamp) {
        if let Sched::Running(other) = self.threads[thread].sched
            && other != c
        {
            self.gap(thread, t);
            let agreed = self.cpus[other].agreed.min(t);
            self.threads[thread].left_unseen(agreed, t, &self.reasons);
            if self.cpus[other].thread == Some(thread) {
                self.cpus[other].give_to(None, agreed);
            }
        }
    }

    /// Switches are missing since `believed` got a CPU, and no loss tells of them.
    pub(super) fn gap(&mut self, believed: ThreadId, t: Timestamp) {
        let (times, first) = &mut self.threads[believed].gaps;
        *times += 1;
        *first = t.min(*first);
    }

    /// Who was woken while it still ran, about to wait, did not wait: it could go on at once.
    fn early(&mut self, thread: ThreadId) {
        let state = &mut self.threads[thread];
        let early = |(woken, _): (Timestamp, Label)| state.start_of_segment().saturating_sub(woken) <= JUST_NOW;
        if state.sched == Sched::Blocked && state.early_wake.is_some_and(early) {
            state.sched = Sched::Ready;
        }
    }

    /// `prev` leaves CPU `c`, `next` gets it.
    ///
    /// Tolerated: `prev` is not who ran there (believed and counted); the CPU is in an interrupt context (its exit
    /// was lost, or threads handle interrupts: forgotten); `next` was not woken.
    pub(super) fn switch(&mut self, c: usize, t: Timestamp, prev: ThreadId, leaves: Leaves, next: ThreadId) {
        let (runs, host) = (self.cpus[c].thread, self.cpus[c].host);
        if let Some(quality) = self.out.quality.get_mut(host.index()) {
            quality.switches += 1;
        }
        if runs != Some(prev) {
            if let Some(runs) = runs {
                let state = &mut self.threads[runs];
                state.contradictions += 1;
                // What the idle task's are is seen at the end.
                match state.thread.idle {
                    true => state.gaps.1 = t.min(state.gaps.1),
                    false => self.inconsistent(t),
                }
            }
            self.runs(c, prev, t);
        }
        self.go_on(c);
        self.cpus[c].idle_leaves |= self.cpus[c].idle == Some(prev);
        let state = &mut self.threads[prev];
        if state.sched != Sched::Running(c) {
            // The CPU knew better than the thread: a wrong switch elsewhere had taken it away.
            state.change(t, Sched::Running(c), &self.reasons);
        }
        state.placed_by_waker = false;
        state.followed = true;
        match leaves {
            Leaves::Ready => state.change(t, Sched::Ready, &self.reasons),
            Leaves::Blocked | Leaves::Stopped => state.change(t, Sched::Blocked, &self.reasons),
            Leaves::Dead => state.die(t, &self.reasons),
        }
        self.leave_elsewhere(c, next, t);
        self.early(next);
        let number = self.cpus[c].number;
        let state = &mut self.threads[next];
        if state.sched == Sched::Ready && state.placed_by_waker && state.cpu != number {
            // The waker only knows where it ran last, and no migration was recorded.
            state.cpu = number;
            self.notices.add(Notice::QueuedElsewhere, 1, || format!("at {t} ns"));
        }
        self.doubt(next, t);
        let state = &mut self.threads[next];
        state.wait_for_own_request();
        state.change(t, Sched::Running(c), &self.reasons);
        state.early_wake = None;
        state.cpu = number;
        self.cpus[c].first = None;
        self.cpus[c].give_to(Some(next), t);
    }

    /// Somebody on CPU `c` wakes `thread`, into the run queue of CPU `queue`.
    ///
    /// Expected: it waits, or was forked and never ran, or was not seen before (then it waited since the recording
    /// began). Tolerated: it is runnable (a second wake-up: ignored, but that it may tell the run queue better), it
    /// runs (see [`JUST_NOW`]), it ended (late).
    pub(super) fn wake(&mut self, c: usize, t: Timestamp, thread: ThreadId, queue: u32, source: WakeSource) {
        let sched = self.threads[thread].sched;
        match sched {
            Sched::Running(_) => {
                let label = self.label(c, t, thread, source);
                self.threads[thread].early_wake = Some((t, label));
            }
            Sched::Dead => return,
            Sched::Ready if !matches!(source, WakeSource::Wakeup | WakeSource::Queued) => return,
            Sched::Ready => {}
            Sched::Unseen | Sched::Unknown(_) | Sched::New | Sched::Blocked => {
                let label = match sched {
                    Sched::Unknown(UnknownReason::Lost | UnknownReason::Elsewhere) => {
                        self.threads[thread].own_label(&self.reasons)
                    }
                    _ => self.label(c, t, thread, source),
                };
                if let (Some((waker, _)), SegmentKind::Blocked) = (label.waker, label.kind) {
                    self.hand_work(thread, t, waker);
                }
                let state = &mut self.threads[thread];
                state.cut(t, label);
                state.sched = Sched::Ready;
                if label.qualifier == Some(self.reasons.interrupt)
                    && let (Some(waker), Some(segment)) =
                        (self.cpus[c].thread, state.thread.segments.len().checked_sub(1))
                {
                    self.threads[waker].woke_outside = Some((thread, segment, t));
                }
                self.expect_sender(c, t, thread);
            }
        }
        self.queue(thread, t, queue);
        self.threads[thread].placed_by_waker = source == WakeSource::Waking;
    }

    /// Who is runnable stands in the run queue of CPU `number`. Of one that was not recorded nobody knows when it runs.
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

    /// `parent` makes a thread. Tolerated: the id is in use (the exit of that thread was lost; it ends here).
    pub(super) fn fork(
        &mut self,
        t: Timestamp,
        parent: ThreadId,
        child: i32,
        child_pid: i32,
        child_vtid: i32,
    ) -> ThreadId {
        let (host, call, cpu, pid, inside) = {
            let state = &self.threads[parent];
            (state.thread.host, state.call, state.cpu, state.thread.pid, state.thread.virtual_ids)
        };
        let key = HostTid::new(host, child);
        let new = ThreadState::new(key, t, Sched::New, self.threads.latest(key));
        let mut lost = false;
        let thread = self.threads.fork(key, new, |old| {
            // An exit that was seen needs no second one: only the last switch is missing.
            lost = !old.exited;
            old.die(t, &self.reasons);
        });
        if lost {
            self.inconsistent(t);
        }
        let state = &mut self.threads[thread];
        state.cpu = cpu;
        state.call = call.map(|(_, name)| (t, name));
        state.observe_pid(Some(child_pid));
        state.thread.ppid = pid;
        state.thread.parent = Some(parent);
        if child_vtid != 0 && child_vtid != child {
            // What its process is called there is not known where its parent's ids are not.
            let vpid = if child == child_pid { child_vtid } else { inside.map_or(0, |(_, vpid)| vpid) };
            self.namespace(thread, child_vtid, vpid, 1);
        }
        thread
    }

    /// A thread runs another program, with the id `tid` from now on.
    pub(super) fn exec(&mut self, t: Timestamp, host: HostId, tid: i32, old_tid: i32) -> ThreadId {
        let thread = self.thread(host, old_tid, t);
        let [own, first] = [old_tid, tid].map(|tid| HostTid::new(host, tid));
        self.threads.take_over(thread, own, first, |leader| leader.die(t, &self.reasons));
        thread
    }

    /// An id is given back, late: perhaps after its next thread was forked. It ends the oldest incarnation that has
    /// exited and was not freed.
    pub(super) fn free(&mut self, t: Timestamp, host: HostId, tid: i32) {
        let mut at = self.threads.latest(HostTid::new(host, tid));
        let mut oldest = None;
        // Frees are late by one incarnation or two; only damage makes long chains.
        for _ in 0..LATEST_FREE {
            let Some(thread) = at else { break };
            let state = &self.threads[thread];
            if state.freed {
                break;
            }
            // An exit that was lost: only a thread that the recording did not see begin can be meant.
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

    /// A thread is put into another run queue. If it waits for a CPU, from here on it waits for that one.
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
            // Back where one sees, unless it is moved on to another such CPU.
            Sched::Unknown(UnknownReason::Elsewhere) => state.change(t, Sched::Ready, &self.reasons),
            _ => {}
        }
        self.queue(thread, t, cpu);
    }
}
