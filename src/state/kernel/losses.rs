//! What losses leave of what was known: from where on nobody knows any more.
//!
//! A loss takes from one CPU all that happened there meanwhile: who ran, which calls were entered and left, who was
//! woken. So whatever was open when it began (a call, a wait, a request) is known up to there at most, and what is
//! found open afterwards began there at the earliest. Losses arrive in order of time; a question looks only at those
//! that can reach behind the time that it asks for.

use super::machine::Machine;
use super::thread_state::{Label, Sched, UnknownReason};
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::kind::LossSource;
use crate::state::timeline::{HostId, SegmentKind, ThreadId};

#[derive(Clone, Debug, Default)]
struct OfHost {
    /// By start, with their CPU.
    all: Vec<(Span, u32)>,
    longest: Ns,
}

/// The losses so far, by host.
#[derive(Clone, Debug, Default)]
pub(super) struct Losses {
    hosts: Vec<OfHost>,
}

impl Losses {
    /// Events of a CPU are lost from `t` until `resumes`.
    fn begin(&mut self, host: HostId, cpu: u32, t: Timestamp, resumes: Timestamp) {
        if self.hosts.len() <= host.index() {
            self.hosts.resize(host.index() + 1, OfHost::default());
        }
        let end = resumes.max(t.saturating_add(1));
        let of_host = &mut self.hosts[host.index()];
        of_host.longest = of_host.longest.max(end.saturating_sub(t));
        of_host.all.push((Span::new(t, end), cpu));
    }

    /// From when on nobody knows what was known at `since`: the start of the first loss between `since` and `t`, on one
    /// CPU or on any of the host.
    pub fn first(&self, host: HostId, cpu: Option<u32>, since: Timestamp, t: Timestamp) -> Option<Timestamp> {
        let OfHost { all, longest } = self.hosts.get(host.index())?;
        let begun = &all[..all.partition_point(|(span, _)| span.start < t)];
        let near = begun.iter().rev().take_while(|(span, _)| span.start.saturating_add(*longest) > since);
        let meets = near.filter(|(span, on)| span.end > since && cpu.is_none_or(|cpu| cpu == *on));
        meets.map(|(span, _)| span.start.max(since)).min()
    }
}

impl Machine {
    /// Events of CPU `c` were lost from `t` until `resumes`: which thread runs there, and in which call and context, is
    /// not known.
    pub(super) fn lose(&mut self, c: usize, t: Timestamp, source: LossSource, resumes: Timestamp) {
        if source == LossSource::Damaged {
            self.out.lossy.push(Span::new(t, resumes.max(t)));
        }
        let cpu = &mut self.cpus[c];
        cpu.leave_all();
        cpu.first = None;
        let host = cpu.host;
        self.losses.begin(host, cpu.number, t, resumes);
        self.packets.lose(host, t);
        self.services.lose(t, host, cpu.thread);
        if let Some(quality) = self.out.quality.get_mut(host.index()) {
            quality.losses += 1;
        }
        if let Some(thread) = cpu.thread {
            let state = &mut self.threads[thread];
            if state.sched == Sched::Running(c) {
                state.change(t, Sched::Unknown(UnknownReason::Lost), &self.reasons);
            }
            state.end_call(t, None);
            state.called = false;
            state.floor = t;
        }
        self.cpus[c].give_to(None, t);
    }

    /// Until `t` a thread seems to have waited, or to have stood in a run queue. Where events were lost meanwhile it
    /// may have run as well: from there on its state is not known.
    pub(super) fn doubt(&mut self, thread: ThreadId, t: Timestamp) {
        let state = &self.threads[thread];
        let where_lost = match state.sched {
            // Whoever is in a queue is fetched from there; a wait can be ended from anywhere.
            Sched::Ready | Sched::New => Some(state.cpu),
            Sched::Blocked => None,
            _ => return,
        };
        if let Some(from) = self.losses.first(state.thread.host, where_lost, state.start_of_segment(), t) {
            self.threads[thread].change(from, Sched::Unknown(UnknownReason::Lost), &self.reasons);
        }
    }

    /// A thread that stood in a run queue is found on CPU `number`, of which who ran there is known until `agreed`:
    /// from then on nobody knows since when. From another CPU's queue it may have come at any time.
    pub(super) fn doubt_queued(&mut self, thread: ThreadId, number: u32, agreed: Timestamp) {
        let state = &mut self.threads[thread];
        if matches!(state.sched, Sched::Ready | Sched::New) {
            let known = if state.cpu == number { agreed } else { state.start_of_segment() };
            state.cut(known, Label::of(SegmentKind::Preempted));
            state.sched = Sched::Unknown(UnknownReason::Gap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_loss_that_reaches_behind_a_time_counts() {
        const HOST: HostId = HostId::at(1);
        let mut losses = Losses::default();
        for (cpu, t, resumes) in [(0, 10, 50), (1, 20, 20), (0, 60, 60)] {
            losses.begin(HOST, cpu, t, resumes);
        }
        assert_eq!(losses.first(HOST, None, 0, 100), Some(10));
        assert_eq!(losses.first(HOST, None, 30, 100), Some(30));
        assert_eq!(losses.first(HOST, Some(1), 0, 100), Some(20));
        assert_eq!(losses.first(HOST, Some(1), 21, 100), None);
        assert_eq!(losses.first(HOST, None, 55, 100), Some(60));
        assert_eq!(losses.first(HOST, None, 55, 60), None);
        assert_eq!(losses.first(HostId::at(0), None, 0, 100), None);
    }
}
