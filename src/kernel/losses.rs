//! The effect of lost events: states that were known before are unknown from the loss on.
//!
//! A loss removes all events of one CPU for some time: switches, entries and exits of calls, wake-ups. So a call, a
//! wait or a request that was open when it began is known until then at most, and one that is found open afterwards
//! began there at the earliest. Losses arrive in order of time; a look-up visits only those that can end after the time
//! in question.

use crate::base::time::{Ns, Span, Timestamp};
use crate::event::host::HostId;
use crate::event::kind::Event;

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
    pub damaged_until: Option<Timestamp>,
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
