//! What a wake-up means: the context in which it happens says what the woken thread waited for (ALGORITHMS.md 4.4).

use super::machine::Machine;
use super::thread_state::Label;
use crate::base::names::NameId;
use crate::base::notice::Notice;
use crate::base::time::{Ns, Timestamp};
use crate::event::kind::{Context, SoftIrq, Vector, WakeSource};
use crate::reading::batch::NetworkPacket;
use crate::state::timeline::{SegmentKind, ThreadId};

/// The interrupt in which a block request completes wakes at once whoever waits for it.
const COMPLETED: Ns = 100_000;

impl Machine {
    /// The label of a wait that ends by a wake-up at `t` on CPU `c`.
    pub(super) fn label(&mut self, c: usize, t: Timestamp, woken: ThreadId, source: WakeSource) -> Label {
        let cpu = &self.cpus[c];
        // What a thread that sends raises itself delivers what it sends over the loopback device, packets recorded or
        // not.
        let own = || cpu.thread.filter(|_| cpu.is_own() && cpu.delivery().is_none() && self.sends(c)).map(|by| (by, t));
        let sender = cpu.delivery().and_then(|d| d.sender).or_else(own);
        let Some((context, name)) = cpu.context() else {
            return self.woken_by(c, t, woken, source);
        };
        let labelled = |kind, waker| Label { kind, waker, qualifier: name };
        match context {
            Context::Timer | Context::Vector(Vector::LocalTimer) => labelled(SegmentKind::Timer, None),
            // Another CPU asked for it to be put into the run queue here; for whom only `sched_waking` tells.
            Context::Vector(Vector::Ipi | Vector::Work)
                if matches!(source, WakeSource::Wakeup | WakeSource::Queued) =>
            {
                Label { qualifier: Some(self.reasons.remote), ..Label::of(SegmentKind::Blocked) }
            }
            Context::Vector(Vector::Ipi | Vector::Work) => labelled(SegmentKind::Ipi, None),
            Context::Vector(Vector::Other) => labelled(SegmentKind::Device, None),
            Context::Reception => labelled(SegmentKind::Network, sender),
            Context::SoftIrq(soft_irq) => match soft_irq {
                SoftIrq::Timer | SoftIrq::HrTimer => labelled(SegmentKind::Timer, None),
                SoftIrq::NetTx | SoftIrq::NetRx => labelled(SegmentKind::Network, sender),
                SoftIrq::Block | SoftIrq::IrqPoll => labelled(SegmentKind::Disk, None),
                SoftIrq::Sched => labelled(SegmentKind::Interrupted, None),
                SoftIrq::Hi | SoftIrq::Tasklet | SoftIrq::Rcu | SoftIrq::Other(_) => {
                    labelled(SegmentKind::Device, None)
                }
            },
            Context::Irq(_) => {
                let kind = self.handler_kind(name);
                labelled(kind, sender.filter(|_| kind == SegmentKind::Network))
            }
        }
    }

    /// The label of a wait that ends in a handler: the tables are asked once for each name.
    fn handler_kind(&mut self, name: Option<NameId>) -> SegmentKind {
        let Some(name) = name else { return self.handlers.label("") };
        if let Some(Some(kind)) = self.handler_kinds.get(name.index()) {
            return *kind;
        }
        let kind = self.handlers.label(self.out.names.get(name));
        self.handler_kinds.resize(self.handler_kinds.len().max(name.index() + 1), None);
        self.handler_kinds[name.index()] = Some(kind);
        kind
    }

    /// A wait of `woken` was ended at `t` by a packet: where its sender is not known, it may turn up, with several
    /// hosts.
    pub(super) fn expect_sender(&mut self, c: usize, t: Timestamp, woken: ThreadId) {
        let cpu = &self.cpus[c];
        let segments = &self.threads[woken].thread.segments;
        if self.out.hosts.len() < 2
            || segments.last().is_none_or(|e| e.kind != SegmentKind::Network || e.waker.is_some())
        {
            return;
        }
        if let Some(delivery) = cpu.delivery() {
            self.packets.ended(cpu.host, &delivery.packet, (woken, segments.len() - 1), t);
        }
    }

    /// A packet is sent that has ended waits before, by clocks that are a little off: it took no time.
    pub(super) fn came_early(&mut self, ended: Vec<(ThreadId, usize)>, by: ThreadId, at: Timestamp) {
        self.notices.add(Notice::ClampedPackets, ended.len() as u64, || format!("at {at} ns"));
        for (woken, segment) in ended {
            if let Some(segment) = self.threads[woken].thread.segments.get_mut(segment) {
                segment.waker = Some((by, at));
            }
        }
    }

    /// Outside any recorded interrupt: whoever runs is the waker, if it can be. A thread wakes others in system calls
    /// only, an idle CPU nobody; else it was an interrupt that was not recorded, which says nothing but that a request
    /// to the disk completed in it. Where only the end of a wake-up is recorded, a thread on another CPU may have begun
    /// it.
    fn woken_by(&self, c: usize, t: Timestamp, woken: ThreadId, source: WakeSource) -> Label {
        let cpu = &self.cpus[c];
        let unknown = |reason| Label { qualifier: Some(reason), ..Label::of(SegmentKind::Blocked) };
        if cpu.completed.is_some_and(|(at, by)| by == woken && t.saturating_sub(at) <= COMPLETED) {
            return Label::of(SegmentKind::Disk);
        }
        let source = match source {
            WakeSource::HardInterrupt(true) => return unknown(self.reasons.interrupt),
            WakeSource::HardInterrupt(false) => return unknown(self.reasons.remote),
            // A thread that is sending delivers what it sends over the loopback device itself.
            WakeSource::SoftInterrupt(_) if !self.sends(c) => return unknown(self.reasons.interrupt),
            WakeSource::SoftInterrupt(true) => WakeSource::Waking,
            WakeSource::SoftInterrupt(false) => WakeSource::Wakeup,
            source => source,
        };
        let Some(waker) = cpu.thread else { return unknown(self.reasons.lost) };
        let state = &self.threads[waker];
        let outside = state.called && state.call.is_none();
        match source {
            // Who begins a wake-up that only this event tells of is not known.
            WakeSource::Queued => unknown(self.reasons.unresolved),
            WakeSource::Wakeup if state.thread.idle || outside => unknown(self.reasons.remote),
            _ if state.thread.idle || outside || waker == woken => unknown(self.reasons.interrupt),
            _ => Label { waker: Some((waker, t)), ..Label::of(SegmentKind::Blocked) },
        }
    }

    /// The thread on CPU `c` is in a call that sends, or it is not known in which call it is.
    fn sends(&self, c: usize) -> bool {
        let Some(state) = self.cpus[c].thread.map(|thread| &self.threads[thread]) else { return false };
        let sending = |(_, name): (Timestamp, NameId)| {
            let name = self.out.names.get(name);
            ["send", "write", "splice", "connect", "shutdown", "close"].iter().any(|call| name.contains(call))
        };
        !state.thread.idle && (!state.called || state.call.is_some_and(sending))
    }

    /// Who sends a packet from CPU `c`: the running thread; in an interrupt, whoever sent the packet that is being
    /// forwarded; else nobody (acknowledgements, retransmissions).
    pub(super) fn sender(&self, c: usize, t: Timestamp, packet: &NetworkPacket) -> Option<(ThreadId, Timestamp)> {
        let cpu = &self.cpus[c];
        if cpu.context().is_some() {
            let delivery = cpu.delivery()?;
            let same = delivery.packet.tcp.is_some() && delivery.packet.tcp == packet.tcp;
            return delivery.sender.filter(|_| same);
        }
        let thread = cpu.thread.filter(|t| !self.threads[*t].thread.idle)?;
        Some((thread, t))
    }
}
