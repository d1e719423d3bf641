//! The effect of lost events: states that were known before are unknown from the loss on.
//!
//! A loss removes all events of one CPU for some time: switches, entries and exits of calls, wake-ups. So a call, a
//! wait or a request that was open when it began is known until then at most, and one that is found open afterwards
//! began there at the earliest. Losses arrive in order of time; a look-up visits only those that can end after the time
//! in question.

use super::cpu::CpuId;
use super::machine::Machine;
use super::thread_state::{Label, Sched, UnknownReason};
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::host::HostId;
use crate::event::kind::{Event, LossSource};
use crate::timeline::{SegmentKind, ThreadId};

/// Lost events of one CPU.
#[derive(Clone, Copy, Debug)]
struct CpuLoss {
    span: Span,
    cpu: u32,
}

#[derive(Clone, Debug, Default)]
struct HostLosses {
    /// By start.
    all: Vec<CpuLoss>,
    /// Length of the longest.
    longest: Ns,
}

/// The losses so far, by host.
#[derive(Clone, Debug, Default)]
pub(super) struct Losses {
    hosts: Vec<HostLosses>,
    /// The latest end of a damaged packet.
    damaged_until: Option<Timestamp>,
}

impl Losses {
    /// Events of a CPU are lost from `t` until `resumes`.
    pub fn begin(&mut self, host: HostId, cpu: u32, t: Timestamp, resumes: Timestamp) {
        if self.hosts.len() <= host.index() {
            self.hosts.resize(host.index() + 1, HostLosses::default());
        }
        let end = resumes.max(t.saturating_add(1));
        let of_host = &mut self.hosts[host.index()];
        of_host.longest = of_host.longest.max(end.since(t));
        of_host.all.push(CpuLoss { span: Span::new(t, end), cpu });
    }

    /// True if packets are damaged until after `t`: a worker knows the losses before its chunk that the tracer has
    /// reported, and these not.
    pub fn damage_reaches(&self, t: Timestamp) -> bool {
        self.damaged_until.is_some_and(|end| end > t)
    }

    /// Until when a state that was known at `since` stays known: the start of the first loss between `since` and `t`,
    /// on one CPU or on any CPU of the host. `None` where no events were lost.
    pub fn first(&self, host: HostId, cpu: Option<u32>, since: Timestamp, t: Timestamp) -> Option<Timestamp> {
        let HostLosses { all, longest } = self.hosts.get(host.index())?;
        let begun = &all[..all.partition_point(|loss| loss.span.start < t)];
        let near = begun.iter().rev().take_while(|loss| loss.span.start.saturating_add(*longest) > since);
        let is_on = |loss: &CpuLoss| cpu.is_none_or(|cpu| cpu == loss.cpu || loss.cpu == u32::from(Event::NO_CPU));
        let meets = near.filter(|loss| loss.span.end > since && is_on(loss));
        meets.map(|loss| loss.span.start.max(since)).min()
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: i64) -> Timestamp {
        Timestamp::new(ns)
    }

    #[test]
    fn first_finds_the_first_loss_that_ends_after_a_time() {
        const HOST: HostId = HostId::at(1);
        let mut losses = Losses::default();
        for (cpu, t, resumes) in [(0, 10, 50), (1, 20, 20), (0, 60, 60)] {
            losses.begin(HOST, cpu, at(t), at(resumes));
        }
        assert_eq!(losses.first(HOST, None, at(0), at(100)), Some(at(10)));
        assert_eq!(losses.first(HOST, None, at(30), at(100)), Some(at(30)));
        assert_eq!(losses.first(HOST, Some(1), at(0), at(100)), Some(at(20)));
        assert_eq!(losses.first(HOST, Some(1), at(21), at(100)), None);
        assert_eq!(losses.first(HOST, None, at(55), at(100)), Some(at(60)));
        assert_eq!(losses.first(HOST, None, at(55), at(60)), None);
        assert_eq!(losses.first(HostId::at(0), None, at(0), at(100)), None);
    }
}
