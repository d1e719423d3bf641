//! The machine's part of [`losses`](super::losses): what lost events leave unknown of threads, calls and CPUs.

use super::cpu::CpuId;
use super::machine::Machine;
use super::thread_state::{Label, Sched, UnknownReason};
use crate::base::time::{Span, Timestamp};
use crate::event::kind::LossSource;
use crate::timeline::{SegmentKind, ThreadId};

impl Machine {
    /// Events of CPU `c` were lost from `t` until `resumes`: the thread that runs there, its call and the context are
    /// not known any more. Where the CPU is unknown it may be any of the host.
    pub(super) fn lose(&mut self, c: CpuId, t: Timestamp, source: LossSource, resumes: Timestamp) {
        if source == LossSource::Damaged {
            self.out.tables.lossy.push(Span::new(t, resumes.max(t)));
            self.losses.damaged_until = self.losses.damaged_until.max(Some(resumes));
        }
        let (host, number) = (self.cpus[c].host, self.cpus[c].number);
        self.losses.begin(host, number, t, resumes);
        self.packets.lose(host, t);
        if let Some(quality) = self.out.tables.quality.get_mut(host.index()) {
            quality.losses += 1;
        }
        if self.cpus[c].is_known() {
            return self.forget(c, t);
        }
        let of_host = self.cpus.ids().filter(|c| self.cpus[*c].host == host).collect::<Vec<_>>();
        of_host.into_iter().for_each(|c| self.forget(c, t));
    }

    /// The thread that runs on CPU `c`, its call and the context are not known any more.
    fn forget(&mut self, c: CpuId, t: Timestamp) {
        let cpu = &mut self.cpus[c];
        cpu.leave_all();
        cpu.first = None;
        self.services.lose(t, cpu.host, cpu.thread);
        if let Some(thread) = cpu.thread {
            let state = &mut self.threads[thread];
            if state.sched == Sched::Running(c) {
                state.change(t, Sched::Unknown(UnknownReason::Lost), &self.reasons);
            }
            state.end_call(t, None);
            state.has_called = false;
            state.lost_at = t;
        }
        self.cpus[c].set_thread(None, t);
    }

    /// Until `t` a thread seems to have waited or to have been runnable. Where events were lost meanwhile it may have
    /// run as well: from there on its state is unknown.
    pub(super) fn apply_losses(&mut self, thread: ThreadId, t: Timestamp) {
        let state = &self.threads[thread];
        let where_lost = match state.sched {
            // A runnable thread is taken from its own CPU's queue; a wait can be ended from any CPU.
            Sched::Ready | Sched::New => Some(state.cpu),
            Sched::Blocked | Sched::Stopped(_) => None,
            _ => return,
        };
        if let Some(from) = self.losses.first(state.thread.host, where_lost, state.start_of_segment(), t) {
            self.threads[thread].change(from, Sched::Unknown(UnknownReason::Lost), &self.reasons);
        }
    }

    /// A runnable thread is found on CPU `number`, whose running thread is known until `confirmed_at`: from then on it
    /// may have run. From another CPU's queue it may have come at any time.
    pub(super) fn end_queueing(&mut self, thread: ThreadId, number: u32, confirmed_at: Timestamp) {
        let state = &mut self.threads[thread];
        if matches!(state.sched, Sched::Ready | Sched::New) {
            let known = if state.cpu == number { confirmed_at } else { state.start_of_segment() };
            state.cut(known, Label::of(SegmentKind::Preempted));
            state.sched = Sched::Unknown(UnknownReason::Gap);
        }
    }
}
