//! The cause of a wait, from the context in which its wake-up happens (ALGORITHMS.md 4.4).

use super::cpu::{Completion, CpuId};
use super::machine::Machine;
use super::packets::EndedWait;
use super::sealed_rows::SegmentChange;
use super::thread_state::{Label, OpenCall};
use crate::base::figure;
use crate::base::names::NameId;
use crate::base::notice::Notice;
use crate::base::time::{Ns, Timestamp};
use crate::event::kind::{Context, SoftIrq, Vector, WakeSource, WakeTracepoint};
use crate::reading::batch::NetworkPacket;
use crate::timeline::{SegmentKind, ThreadId, Waker};

/// The interrupt in which a block request completes wakes the waiting thread within this time.
pub(super) const COMPLETION_WAKES_WITHIN: Ns = 100_000;

impl Machine {
    /// The label of a wait that ends by a wake-up at `t` on CPU `c`.
    pub(super) fn label(&mut self, c: CpuId, t: Timestamp, woken: ThreadId, source: WakeSource) -> Label {
        let cpu = &self.cpus[c];
        // A soft interrupt that a sending thread raised itself delivers its packets over the loopback device, whether
        // the packets were recorded or not.
        let own_sender = || {
            let sends = cpu.is_own() && cpu.delivery().is_none() && self.sends(c);
            cpu.thread.filter(|_| sends).map(|thread| Waker { thread, at: t })
        };
        let sender = cpu.delivery().and_then(|delivery| delivery.sender).or_else(own_sender);
        let Some((context, name)) = cpu.context() else {
            return self.woken_by(c, t, woken, source);
        };
        let labelled = |kind, waker| Label { kind, waker, qualifier: name };
        match context {
            Context::Timer | Context::Vector(Vector::LocalTimer) => labelled(SegmentKind::Timer, None),
            // Another CPU asked this one to put the thread into its run queue; only `sched_waking` names the waker.
            Context::Vector(Vector::Ipi | Vector::Work)
                if matches!(source, WakeSource::Wakeup | WakeSource::Queued) =>
            {
                Label { qualifier: Some(self.reasons.remote), ..Label::of(SegmentKind::Blocked) }
            }
            Context::Vector(Vector::Ipi | Vector::Work) => labelled(SegmentKind::Ipi, None),
            Context::Vector(Vector::Other) => labelled(SegmentKind::Device, None),
            Context::PacketReceive => labelled(SegmentKind::Network, sender),
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

    /// The kind of a wait that ends in a handler; each name is looked up in the tables once.
    fn handler_kind(&mut self, name: Option<NameId>) -> SegmentKind {
        let Some(name) = name else { return self.handlers.label("") };
        if let Some(Some(kind)) = self.handler_kinds.get(name.index()) {
            return *kind;
        }
        let kind = self.handlers.label(self.out.tables.names.get(name));
        self.handler_kinds.resize(self.handler_kinds.len().max(name.index() + 1), None);
        self.handler_kinds[name.index()] = Some(kind);
        kind
    }

    /// A packet ended a wait of `woken` at `t`. Where its send is not known and there are several hosts, the send may
    /// still follow in the order of events.
    pub(super) fn expect_sender(&mut self, c: CpuId, t: Timestamp, woken: ThreadId) {
        let cpu = &self.cpus[c];
        let state = &self.threads[woken];
        if self.out.tables.hosts.len() < 2
            || state.rows.segments.last().is_none_or(|last| last.kind != SegmentKind::Network || last.waker.is_some())
        {
            return;
        }
        if let Some((delivery, segment)) = cpu.delivery().zip(state.last_segment()) {
            let wait = EndedWait { thread: woken, segment };
            self.packets.ended(cpu.host, &delivery.packet, wait, t);
        }
    }

    /// A packet is sent that ended waits before, because clocks are slightly off: its transit time is zero.
    pub(super) fn came_early(&mut self, ended: Vec<EndedWait>, sender: Waker) {
        if ended.is_empty() {
            return;
        }
        self.notices.add(Notice::ClampedPackets, ended.len() as u64, || figure::moment(sender.at.ns()));
        for EndedWait { thread, segment } in ended {
            self.change_segment(thread, segment, SegmentChange::Sent(sender));
        }
    }

    /// The label of a wake-up outside any recorded interrupt: the running thread is the waker, if it can be one. A
    /// thread wakes others in system calls alone, an idle task wakes no thread; in all other cases it was an interrupt
    /// that was not recorded and whose cause is unknown, unless a block request completed in it. Where the recording
    /// has only the end of a wake-up, a thread on another CPU may have begun it.
    fn woken_by(&self, c: CpuId, t: Timestamp, woken: ThreadId, source: WakeSource) -> Label {
        let cpu = &self.cpus[c];
        let unknown = |reason| Label { qualifier: Some(reason), ..Label::of(SegmentKind::Blocked) };
        let completed = |last: Completion| last.submitter == woken && t.since(last.at) <= COMPLETION_WAKES_WITHIN;
        if cpu.completed.is_some_and(completed) {
            return Label::of(SegmentKind::Disk);
        }
        let source = match source {
            WakeSource::HardInterrupt(WakeTracepoint::Waking) => return unknown(self.reasons.interrupt),
            WakeSource::HardInterrupt(WakeTracepoint::Wakeup) => return unknown(self.reasons.remote),
            // A thread that is sending delivers its own packets over the loopback device.
            WakeSource::SoftInterrupt(_) if !self.sends(c) => return unknown(self.reasons.interrupt),
            WakeSource::SoftInterrupt(WakeTracepoint::Waking) => WakeSource::Waking,
            WakeSource::SoftInterrupt(WakeTracepoint::Wakeup) => WakeSource::Wakeup,
            source => source,
        };
        let Some(waker) = cpu.thread else { return unknown(self.reasons.lost) };
        let state = &self.threads[waker];
        let outside = state.has_called && state.call.is_none();
        match source {
            // This event alone does not name the thread that began the wake-up.
            WakeSource::Queued => unknown(self.reasons.unresolved),
            WakeSource::Wakeup if state.thread.idle || outside => unknown(self.reasons.remote),
            _ if state.thread.idle || outside || waker == woken => unknown(self.reasons.interrupt),
            _ => Label { waker: Some(Waker { thread: waker, at: t }), ..Label::of(SegmentKind::Blocked) },
        }
    }

    /// True if the thread on CPU `c` is in a call that sends, or in an unknown call.
    fn sends(&self, c: CpuId) -> bool {
        let Some(state) = self.cpus[c].thread.map(|thread| &self.threads[thread]) else { return false };
        let sending = |OpenCall { name, .. }: OpenCall| {
            let name = self.out.tables.names.get(name);
            ["send", "write", "splice", "connect", "shutdown", "close"].iter().any(|call| name.contains(call))
        };
        !state.thread.idle && (!state.has_called || state.call.is_some_and(sending))
    }

    /// The sender of a packet that leaves from CPU `c`: the running thread; in an interrupt, the sender of the packet
    /// that is being forwarded, else none (acknowledgements, retransmissions).
    pub(super) fn sender(&self, c: CpuId, t: Timestamp, packet: &NetworkPacket) -> Option<Waker> {
        let cpu = &self.cpus[c];
        if cpu.context().is_some() {
            let delivery = cpu.delivery()?;
            let same = delivery.packet.tcp.is_some() && delivery.packet.tcp == packet.tcp;
            return delivery.sender.filter(|_| same);
        }
        let thread = cpu.thread.filter(|thread| !self.threads[*thread].thread.idle)?;
        Some(Waker { thread, at: t })
    }
}
