//! One CPU while the machine runs: its thread, its stack of interrupt contexts, the packet it is delivering.
//!
//! ALGORITHMS.md 4.3: entries push, exits pop. An exit whose entry is deeper pops through it (the exits between were
//! lost); one without an entry is ignored. The depth is bounded, because damaged recordings may only ever enter.
//!
//! A soft interrupt that the running thread raised itself, outside any interrupt, runs inline, as part of its own system
//! call (sending over the loopback device delivers the packet there and then): it is a context, so that wake-ups in it
//! are told right, but it interrupts nobody. Recordings without `irq_softirq_raise` cannot tell: there all interrupt.

use crate::base::names::NameId;
use crate::base::time::{Ns, Span};
use crate::event::batch::Packet;
use crate::event::kind::Context;
use crate::state::recording::{CpuRun, HostId, ThreadId};

/// Interrupts nest three or four deep; more is damage.
const MOST_NESTED: usize = 16;

/// A packet being delivered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    /// Depth of the context stack in which it arrived.
    depth: usize,
    /// The packet.
    pub packet: Packet,
    /// Who sent it, and when, where that is known.
    pub sender: Option<(ThreadId, Ns)>,
}

#[derive(Clone, Copy, Debug)]
struct Level {
    context: Context,
    name: Option<NameId>,
    /// The running thread's own work.
    own: bool,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Cpu {
    pub host: HostId,
    pub number: u32,
    /// Who runs.
    pub thread: Option<ThreadId>,
    /// Since when.
    since: Ns,
    /// The last time an event agreed that this thread runs.
    pub agreed: Ns,
    /// The last block request that completed here: when, and who had submitted it.
    pub completed: Option<(Ns, ThreadId)>,
    /// Its first event, as long as no switch and no loss forbids to assume that the first thread ran from then on.
    pub first: Option<Ns>,
    contexts: Vec<Level>,
    /// Soft interrupts, a bit each, that the running thread raised as part of its own work.
    raised: u32,
    delivery: Option<Delivery>,
    pub runs: Vec<CpuRun>,
    /// Its idle task.
    pub idle: Option<ThreadId>,
}

impl Cpu {
    pub fn new(host: HostId, number: u32, first: Ns) -> Cpu {
        Cpu {
            host,
            number,
            thread: None,
            since: first,
            agreed: first,
            completed: None,
            first: Some(first),
            contexts: Vec::new(),
            raised: 0,
            delivery: None,
            runs: Vec::new(),
            idle: None,
        }
    }

    /// From `t` on another thread runs, or nobody knows who.
    pub fn give_to(&mut self, thread: Option<ThreadId>, t: Ns) {
        let t = t.max(self.since);
        if let Some(thread) = self.thread
            && t > self.since
        {
            self.runs.push(CpuRun { span: Span::new(self.since, t), thread });
        }
        self.thread = thread;
        self.since = t;
        self.agreed = t;
    }

    /// The innermost context.
    pub fn context(&self) -> Option<(Context, Option<NameId>)> {
        self.contexts.last().map(|level| (level.context, level.name))
    }

    fn is_interrupted(&self) -> bool {
        self.contexts.iter().any(|level| !level.own)
    }

    /// A soft interrupt is to run soon.
    pub fn raise(&mut self, vector: u32) {
        if !self.is_interrupted() {
            self.raised |= 1u32.checked_shl(vector).unwrap_or(0);
        }
    }

    /// Enter a context. True when it is the outermost that interrupts the thread.
    pub fn enter(&mut self, context: Context, name: Option<NameId>) -> bool {
        let interrupted = self.is_interrupted();
        let bit = if let Context::SoftIrq(vector) = context { 1u32.checked_shl(vector).unwrap_or(0) } else { 0 };
        let own = self.raised & bit != 0 && !interrupted;
        self.raised &= !bit;
        if self.contexts.len() < MOST_NESTED {
            self.contexts.push(Level { context, name, own });
        }
        !own && !interrupted
    }

    /// Leave a context. True when none is left of those that interrupted the thread.
    pub fn leave(&mut self, context: Context) -> bool {
        let Some(at) = self.contexts.iter().rposition(|level| level.context == context) else { return false };
        let interrupted = self.is_interrupted();
        self.contexts.truncate(at);
        if self.delivery.is_some_and(|d| d.depth > at) {
            self.delivery = None;
        }
        interrupted && !self.is_interrupted()
    }

    /// Forget all contexts. True when there was one.
    pub fn leave_all(&mut self) -> bool {
        self.delivery = None;
        self.raised = 0;
        let some = !self.contexts.is_empty();
        self.contexts.clear();
        some
    }

    /// A packet arrives in the present context.
    pub fn deliver(&mut self, packet: Packet, sender: Option<(ThreadId, Ns)>) {
        self.delivery = Some(Delivery { depth: self.contexts.len(), packet, sender });
    }

    /// The packet being delivered.
    pub fn delivery(&self) -> Option<&Delivery> {
        self.delivery.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu() -> Cpu {
        Cpu::new(HostId(0), 0, 0)
    }

    #[test]
    fn what_a_thread_raises_itself_interrupts_nobody() {
        let mut cpu = cpu();
        cpu.raise(3);
        assert!(!cpu.enter(Context::SoftIrq(3), None));
        assert_eq!(cpu.context(), Some((Context::SoftIrq(3), None)));
        // An interrupt on top of it does, and what it raises is not the thread's.
        assert!(cpu.enter(Context::Irq(5), None));
        cpu.raise(1);
        assert!(cpu.leave(Context::Irq(5)));
        assert!(!cpu.leave(Context::SoftIrq(3)));
        assert!(cpu.enter(Context::SoftIrq(1), None));
        assert!(cpu.leave(Context::SoftIrq(1)));
        // One raise, one run.
        assert!(cpu.enter(Context::SoftIrq(3), None));
    }

    #[test]
    fn lost_exits_are_popped_through_and_lost_entries_ignored() {
        let mut cpu = cpu();
        assert!(cpu.enter(Context::Irq(5), None));
        assert!(!cpu.enter(Context::SoftIrq(3), None));
        assert!(!cpu.enter(Context::Timer, None));
        assert!(!cpu.leave(Context::SoftIrq(1)));
        assert!(!cpu.leave(Context::SoftIrq(3)));
        assert_eq!(cpu.context(), Some((Context::Irq(5), None)));
        assert!(cpu.leave(Context::Irq(5)));
        assert!(!cpu.leave(Context::Irq(5)));
    }

    #[test]
    fn a_delivery_ends_with_its_own_context_only() {
        let mut cpu = cpu();
        cpu.enter(Context::SoftIrq(3), None);
        cpu.deliver(Packet::default(), Some((ThreadId(1), 7)));
        cpu.enter(Context::Timer, None);
        cpu.leave(Context::Timer);
        assert!(cpu.delivery().is_some());
        cpu.leave(Context::SoftIrq(3));
        assert!(cpu.delivery().is_none());
    }

    #[test]
    fn entering_for_ever_is_bounded() {
        let mut cpu = cpu();
        for _ in 0..1000 {
            cpu.enter(Context::Timer, None);
        }
        assert_eq!(cpu.contexts.len(), MOST_NESTED);
    }
}
