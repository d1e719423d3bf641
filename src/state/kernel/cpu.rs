//! One CPU while the machine runs: its thread, its stack of interrupt contexts, the packet it is delivering.
//!
//! ALGORITHMS.md 4.3: entries push, exits pop. An exit whose entry is deeper pops through it (the exits between were
//! lost); one without an entry is ignored. A context whose exit was lost is over where another begins that cannot
//! nest in it ([`may_nest`]), or where the thread goes on; it lasted until the last event that was recorded in it. The
//! depth is bounded, because damaged recordings may only ever enter.
//!
//! A soft interrupt that the running thread raised itself, outside any interrupt, runs inline, as part of its own
//! system call (sending over the loopback device delivers the packet there and then): it is a context, so that wake-ups
//! in it are told right, but it interrupts nobody. Recordings without `irq_softirq_raise` cannot tell: there all
//! interrupt.

use crate::base::names::NameId;
use crate::base::time::{Span, Timestamp};
use crate::event::kind::{Context, SoftIrq};
use crate::reading::batch::NetworkPacket;
use crate::state::timeline::{CpuRun, HostId, ThreadId};

/// Interrupts nest three or four deep; more is damage.
const MOST_NESTED: usize = 16;

/// A packet being delivered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    /// Depth of the context stack in which it arrived.
    depth: usize,
    /// The packet.
    pub packet: NetworkPacket,
    /// Who sent it, and when, where that is known.
    pub sender: Option<(ThreadId, Timestamp)>,
}

#[derive(Clone, Copy, Debug)]
struct Level {
    context: Context,
    name: Option<NameId>,
    /// The running thread's own work.
    own: bool,
    /// The last event in it.
    seen: Timestamp,
}

impl Level {
    /// The handler of a hard interrupt, which may begin at any time: that it does says nothing of what it interrupts.
    fn is_hard(&self) -> bool {
        matches!(self.context, Context::Irq(_) | Context::Vector(_))
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Cpu {
    pub host: HostId,
    pub number: u32,
    /// Who runs.
    pub thread: Option<ThreadId>,
    /// Since when.
    since: Timestamp,
    /// The last time an event agreed that this thread runs.
    pub agreed: Timestamp,
    /// The last block request that completed here: when, and who had submitted it.
    pub completed: Option<(Timestamp, ThreadId)>,
    /// Its first event, as long as no switch and no loss forbids to assume that the first thread ran from then on.
    pub first: Option<Timestamp>,
    contexts: Vec<Level>,
    /// Soft interrupts, a bit each, that the running thread raised as part of its own work.
    raised: u32,
    delivery: Option<Delivery>,
    pub runs: Vec<CpuRun>,
    /// Its idle task.
    pub idle: Option<ThreadId>,
    /// A switch out of it was recorded.
    pub idle_leaves: bool,
}

impl Cpu {
    pub fn new(host: HostId, number: u32, first: Timestamp) -> Cpu {
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
            idle_leaves: false,
        }
    }

    /// From `t` on another thread runs, or nobody knows who.
    pub fn give_to(&mut self, thread: Option<ThreadId>, t: Timestamp) {
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

    /// An event agreed that the thread runs that was given the CPU.
    pub fn is_confirmed(&self) -> bool {
        self.agreed > self.since
    }

    /// The innermost context.
    pub fn context(&self) -> Option<(Context, Option<NameId>)> {
        self.contexts.last().map(|level| (level.context, level.name))
    }

    /// The innermost context is a soft interrupt that the running thread raised as part of its own work.
    pub fn is_own(&self) -> bool {
        self.contexts.last().is_some_and(|level| level.own)
    }

    fn is_interrupted(&self) -> bool {
        self.contexts.iter().any(|level| !level.own)
    }

    /// A soft interrupt is to run soon.
    pub fn raise(&mut self, soft_irq: SoftIrq) {
        if !self.is_interrupted() {
            self.raised |= bit(soft_irq);
        }
    }

    /// Enter a context: when an interruption of the thread ended whose end was not recorded, and true where one begins.
    pub fn enter(&mut self, t: Timestamp, context: Context, name: Option<NameId>) -> (Option<Timestamp>, bool) {
        let over = self.contexts.iter().position(|level| !may_nest(level.context, context));
        let ended = over.and_then(|at| self.close_from(at));
        let interrupted = self.is_interrupted();
        let bit = if let Context::SoftIrq(soft_irq) = context { bit(soft_irq) } else { 0 };
        let own = self.raised & bit != 0 && !interrupted;
        self.raised &= !bit;
        if self.contexts.len() < MOST_NESTED {
            self.contexts.push(Level { context, name, own, seen: t });
        }
        self.see(t);
        (ended, !own && !interrupted)
    }

    /// Leave a context. True when none is left of those that interrupted the thread.
    pub fn leave(&mut self, t: Timestamp, context: Context) -> bool {
        let Some(at) = self.contexts.iter().rposition(|level| level.context == context) else { return false };
        self.see(t);
        self.close_from(at).is_some()
    }

    /// Something happens in the present context.
    pub fn see(&mut self, t: Timestamp) {
        for level in self.contexts.iter_mut().rev() {
            level.seen = t;
            if level.is_hard() {
                break;
            }
        }
    }

    /// The contexts from the one at `at` on are over. When the thread's interruption ended by that, if it did.
    fn close_from(&mut self, at: usize) -> Option<Timestamp> {
        let outermost = self.contexts.iter().position(|level| !level.own);
        let seen = outermost.filter(|outermost| *outermost >= at).and_then(|outermost| self.contexts.get(outermost));
        let seen = seen.map(|level| level.seen);
        self.contexts.truncate(at);
        if self.delivery.is_some_and(|d| d.depth > at) {
            self.delivery = None;
        }
        seen
    }

    /// The thread itself goes on: whatever context was open is over. When its interruption ended whose end was not
    /// recorded.
    pub fn go_on(&mut self) -> Option<Timestamp> {
        if self.contexts.is_empty() {
            return None;
        }
        self.raised = 0;
        self.close_from(0)
    }

    /// Forget all contexts.
    pub fn leave_all(&mut self) {
        self.delivery = None;
        self.raised = 0;
        self.contexts.clear();
    }

    /// A packet arrives in the present context.
    pub fn deliver(&mut self, packet: NetworkPacket, sender: Option<(ThreadId, Timestamp)>) {
        self.delivery = Some(Delivery { depth: self.contexts.len(), packet, sender });
    }

    /// The packet being delivered.
    pub fn delivery(&self) -> Option<&Delivery> {
        self.delivery.as_ref()
    }
}

/// Its bit among those that were raised; none for a vector beyond them.
fn bit(soft_irq: SoftIrq) -> u32 {
    1u32.checked_shl(soft_irq.vector()).unwrap_or(0)
}

/// True where one context can begin while another lasts. Handlers of interrupts run with interrupts off (since Linux
/// 2.6.35): only that of an interrupt controller calls those of other lines. Soft interrupts run one after the other,
/// on the way out of a hard one or outside.
fn may_nest(outer: Context, inner: Context) -> bool {
    use Context::{Irq, SoftIrq, Timer, Vector};
    match (outer, inner) {
        (Irq(outer), Irq(inner)) => outer != inner,
        (Irq(_) | Vector(_), Irq(_) | Vector(_) | SoftIrq(_)) | (SoftIrq(_) | Timer, SoftIrq(_)) | (Timer, Timer) => {
            false
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::kind::Vector;

    fn cpu() -> Cpu {
        Cpu::new(HostId::at(0), 0, 0)
    }

    /// True where an interruption begins.
    fn enter(cpu: &mut Cpu, context: Context) -> bool {
        let (ended, begins) = cpu.enter(1, context, None);
        assert_eq!(ended, None);
        begins
    }

    fn leave(cpu: &mut Cpu, context: Context) -> bool {
        cpu.leave(1, context)
    }

    #[test]
    fn what_a_thread_raises_itself_interrupts_nobody() {
        let mut cpu = cpu();
        cpu.raise(SoftIrq::NetRx);
        assert!(!enter(&mut cpu, Context::SoftIrq(SoftIrq::NetRx)));
        assert_eq!((cpu.context(), cpu.is_own()), (Some((Context::SoftIrq(SoftIrq::NetRx), None)), true));
        // An interrupt on top of it does, and what it raises is not the thread's.
        assert!(enter(&mut cpu, Context::Irq(5)));
        assert!(!cpu.is_own());
        cpu.raise(SoftIrq::Timer);
        assert!(leave(&mut cpu, Context::Irq(5)));
        assert!(!leave(&mut cpu, Context::SoftIrq(SoftIrq::NetRx)));
        assert!(enter(&mut cpu, Context::SoftIrq(SoftIrq::Timer)));
        assert!(leave(&mut cpu, Context::SoftIrq(SoftIrq::Timer)));
        // One raise, one run.
        assert!(enter(&mut cpu, Context::SoftIrq(SoftIrq::NetRx)));
    }

    #[test]
    fn lost_exits_are_popped_through_and_lost_entries_ignored() {
        let mut cpu = cpu();
        assert!(enter(&mut cpu, Context::Irq(5)));
        assert!(!enter(&mut cpu, Context::Irq(6)));
        assert!(!enter(&mut cpu, Context::Timer));
        assert!(!leave(&mut cpu, Context::SoftIrq(SoftIrq::Timer)));
        assert!(!leave(&mut cpu, Context::Irq(6)));
        assert_eq!(cpu.context(), Some((Context::Irq(5), None)));
        assert!(leave(&mut cpu, Context::Irq(5)));
        assert!(!leave(&mut cpu, Context::Irq(5)));
    }

    #[test]
    fn a_lost_exit_leaves_a_context_open_until_the_last_event_in_it() {
        let timer = Context::Vector(Vector::LocalTimer);
        let mut cpu = cpu();
        assert_eq!(cpu.enter(10, timer, None), (None, true));
        cpu.enter(11, Context::Timer, None);
        cpu.leave(14, Context::Timer);
        // The next tick cannot come inside the one before.
        assert_eq!(cpu.enter(4_000, timer, None), (Some(14), true));
        // Nor a soft interrupt inside a hard one.
        assert_eq!(cpu.enter(4_005, Context::SoftIrq(SoftIrq::Timer), None), (Some(4_000), true));
        cpu.see(4_008);
        assert_eq!(cpu.go_on(), Some(4_008));
        assert_eq!((cpu.go_on(), cpu.context()), (None, None));
        // What a soft interrupt is in stays open where a hard one inside it is over.
        cpu.enter(5_000, Context::SoftIrq(SoftIrq::NetRx), None);
        cpu.enter(5_001, timer, None);
        assert_eq!(cpu.enter(5_002, timer, None), (None, false));
        assert!(!cpu.leave(5_003, timer) && cpu.leave(5_004, Context::SoftIrq(SoftIrq::NetRx)));
        // That hard ones come says nothing of the soft one before.
        cpu.enter(6_000, Context::SoftIrq(SoftIrq::NetRx), None);
        cpu.enter(9_000, timer, None);
        cpu.leave(9_002, timer);
        assert_eq!(cpu.go_on(), Some(6_000));
    }

    #[test]
    fn a_delivery_ends_with_its_own_context_only() {
        let mut cpu = cpu();
        enter(&mut cpu, Context::SoftIrq(SoftIrq::NetRx));
        cpu.deliver(NetworkPacket::default(), Some((ThreadId::at(1), 7)));
        enter(&mut cpu, Context::Timer);
        leave(&mut cpu, Context::Timer);
        assert!(cpu.delivery().is_some());
        leave(&mut cpu, Context::SoftIrq(SoftIrq::NetRx));
        assert!(cpu.delivery().is_none());
    }

    #[test]
    fn entering_for_ever_is_bounded() {
        let mut cpu = cpu();
        for line in 0..1000 {
            enter(&mut cpu, Context::Irq(line));
        }
        assert_eq!(cpu.contexts.len(), MOST_NESTED);
    }
}
