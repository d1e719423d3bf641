//! One CPU while the machine runs: its thread, its stack of interrupt contexts, the packet it is delivering.
//!
//! ALGORITHMS.md 4.3: entries push, exits pop. An exit whose entry is deeper in the stack pops all contexts down to it
//! (the exits between were lost); one without an entry is ignored. A context whose exit was lost ends when another
//! begins that cannot nest in it ([`may_nest`]), or when the thread continues; it lasted until the last event that was
//! recorded in it. The depth is bounded, because a damaged recording may contain entries alone.
//!
//! A soft interrupt that the running thread raised itself, outside any interrupt, runs inline, as part of its own
//! system call (sending over the loopback device delivers the packet there and then): it is a context, so that wake-ups
//! in it get the right label, but it interrupts no thread. Without `irq_softirq_raise` the recording does not show
//! this: there every soft interrupt interrupts the thread.

use crate::base::names::NameId;
use crate::base::time::{Span, Timestamp};
use crate::event::kind::{Context, SoftIrq};
use crate::reading::batch::NetworkPacket;
use crate::state::timeline::{CpuRun, HostId, ThreadId, Waker};
use std::ops::{Index, IndexMut};

/// Interrupts nest three or four deep; more is damage.
pub(super) const MOST_NESTED: usize = 16;

/// A packet being delivered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    /// Depth of the context stack in which it arrived.
    depth: usize,
    /// The packet.
    pub packet: NetworkPacket,
    /// The thread that sent it, and when, where that is known.
    pub sender: Option<Waker>,
}

#[derive(Clone, Copy, Debug)]
struct ContextLevel {
    context: Context,
    name: Option<NameId>,
    /// True for the running thread's own work.
    own: bool,
    /// Time of the last event in it.
    seen: Timestamp,
}

impl ContextLevel {
    /// True for the handler of a hard interrupt. It may begin at any time, so that its beginning shows nothing about
    /// the context that it interrupts.
    fn is_hard(&self) -> bool {
        matches!(self.context, Context::Irq(_) | Context::Vector(_))
    }
}

/// A CPU of a host: its position in [`Cpus`], which alone makes handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CpuId(u32);

/// All CPUs, in the order in which events named them.
#[derive(Clone, Debug)]
pub(super) struct Cpus {
    all: Vec<Cpu>,
    /// By host and number.
    ids: Vec<Vec<Option<CpuId>>>,
}

impl Cpus {
    pub fn new(hosts: usize) -> Cpus {
        Cpus { all: Vec::new(), ids: vec![Vec::new(); hosts] }
    }

    /// A CPU by its number, made on first sight; `None` for a host that does not exist.
    pub fn id(&mut self, host: HostId, number: u16, t: Timestamp) -> Option<CpuId> {
        let ids = self.ids.get_mut(host.index())?;
        let at = usize::from(number);
        if ids.len() <= at {
            ids.resize(at + 1, None);
        }
        let id = ids[at].get_or_insert_with(|| {
            self.all.push(Cpu::new(host, u32::from(number), t));
            CpuId(self.all.len() as u32 - 1)
        });
        Some(*id)
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Cpu> {
        self.all.iter()
    }

    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Cpu> {
        self.all.iter_mut()
    }

    pub fn into_vec(self) -> Vec<Cpu> {
        self.all
    }
}

impl Index<CpuId> for Cpus {
    type Output = Cpu;

    /// Ids come from this table.
    fn index(&self, id: CpuId) -> &Cpu {
        &self.all[id.0 as usize]
    }
}

impl IndexMut<CpuId> for Cpus {
    fn index_mut(&mut self, id: CpuId) -> &mut Cpu {
        &mut self.all[id.0 as usize]
    }
}

/// The completion of a block request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completion {
    pub at: Timestamp,
    pub submitter: ThreadId,
}

/// Effect of an entry into a context on the running thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ContextEntry {
    /// When its interruption ended, if it did and its end was not recorded.
    pub ended: Option<Timestamp>,
    /// True where an interruption begins.
    pub interrupts: bool,
}

/// One CPU.
#[derive(Clone, Debug)]
pub(super) struct Cpu {
    pub host: HostId,
    pub number: u32,
    /// The running thread, where it is known.
    pub thread: Option<ThreadId>,
    /// Since when.
    since: Timestamp,
    /// The last event by which this thread runs.
    pub confirmed_at: Timestamp,
    /// The last block request that completed here.
    pub completed: Option<Completion>,
    /// Its first event, until a switch or a loss: until then the first thread is assumed to have run from there on.
    pub first: Option<Timestamp>,
    contexts: Vec<ContextLevel>,
    /// The soft interrupts that the running thread raised as part of its own work, one bit each.
    raised: u32,
    delivery: Option<Delivery>,
    pub runs: Vec<CpuRun>,
    /// Its idle task.
    pub idle: Option<ThreadId>,
    /// True if a switch by which the idle task left was recorded.
    pub idle_leaves: bool,
}

impl Cpu {
    pub fn new(host: HostId, number: u32, first: Timestamp) -> Cpu {
        Cpu {
            host,
            number,
            thread: None,
            since: first,
            confirmed_at: first,
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

    /// From `t` on another thread runs, or an unknown one.
    pub fn set_thread(&mut self, thread: Option<ThreadId>, t: Timestamp) {
        let t = t.max(self.since);
        if let Some(thread) = self.thread
            && t > self.since
        {
            self.runs.push(CpuRun { span: Span::new(self.since, t), thread });
        }
        self.thread = thread;
        self.since = t;
        self.confirmed_at = t;
    }

    /// An event at `t` shows the thread running.
    pub fn confirm(&mut self, t: Timestamp) {
        self.confirmed_at = self.confirmed_at.max(t);
    }

    /// True if an event showed the thread running after it was set.
    pub fn is_confirmed(&self) -> bool {
        self.confirmed_at > self.since
    }

    /// The innermost context.
    pub fn context(&self) -> Option<(Context, Option<NameId>)> {
        self.contexts.last().map(|level| (level.context, level.name))
    }

    /// True if the innermost context is a soft interrupt that the running thread raised as part of its own work.
    pub fn is_own(&self) -> bool {
        self.contexts.last().is_some_and(|level| level.own)
    }

    fn is_interrupted(&self) -> bool {
        self.contexts.iter().any(|level| !level.own)
    }

    /// A soft interrupt is raised: it will run soon.
    pub fn raise(&mut self, soft_irq: SoftIrq) {
        if !self.is_interrupted() {
            self.raised |= bit(soft_irq);
        }
    }

    /// Enter a context.
    pub fn enter(&mut self, t: Timestamp, context: Context, name: Option<NameId>) -> ContextEntry {
        let over = self.contexts.iter().position(|level| !may_nest(level.context, context));
        let ended = over.and_then(|at| self.close_from(at));
        let interrupted = self.is_interrupted();
        let bit = if let Context::SoftIrq(soft_irq) = context { bit(soft_irq) } else { 0 };
        let own = self.raised & bit != 0 && !interrupted;
        self.raised &= !bit;
        if self.contexts.len() < MOST_NESTED {
            self.contexts.push(ContextLevel { context, name, own, seen: t });
        }
        self.see(t);
        ContextEntry { ended, interrupts: !own && !interrupted }
    }

    /// Leave a context. True when the interruption of the thread ends by that.
    pub fn leave(&mut self, t: Timestamp, context: Context) -> bool {
        let Some(at) = self.contexts.iter().rposition(|level| level.context == context) else { return false };
        self.see(t);
        self.close_from(at).is_some()
    }

    /// An event happens in the current context.
    pub fn see(&mut self, t: Timestamp) {
        for level in self.contexts.iter_mut().rev() {
            level.seen = t;
            if level.is_hard() {
                break;
            }
        }
    }

    /// End the contexts from position `at` on. Returns when the interruption of the thread ended, if it ends by that.
    fn close_from(&mut self, at: usize) -> Option<Timestamp> {
        let interruption = self.contexts.iter().position(|level| !level.own).filter(|outermost| *outermost >= at);
        let ended = interruption.and_then(|outermost| Some(self.contexts.get(outermost)?.seen));
        self.contexts.truncate(at);
        if self.delivery.is_some_and(|d| d.depth > at) {
            self.delivery = None;
        }
        ended
    }

    /// The thread itself continues: all open contexts are over. Returns when its interruption ended, if it was
    /// interrupted and the end was not recorded.
    pub fn resume_thread(&mut self) -> Option<Timestamp> {
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

    /// A packet arrives in the current context.
    pub fn deliver(&mut self, packet: NetworkPacket, sender: Option<Waker>) {
        self.delivery = Some(Delivery { depth: self.contexts.len(), packet, sender });
    }

    /// The packet being delivered.
    pub fn delivery(&self) -> Option<&Delivery> {
        self.delivery.as_ref()
    }
}

/// Its bit in `Cpu::raised`; none for a vector beyond the 32nd.
pub(super) fn bit(soft_irq: SoftIrq) -> u32 {
    1u32.checked_shl(soft_irq.vector()).unwrap_or(0)
}

/// True where one context can begin while another lasts. Interrupt handlers run with interrupts disabled (since Linux
/// 2.6.35): only the handler of an interrupt controller calls those of other lines. Soft interrupts run one after the
/// other, at the exit of a hard interrupt or outside of any.
pub(super) fn may_nest(outer: Context, inner: Context) -> bool {
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

    fn at(ns: i64) -> Timestamp {
        Timestamp::new(ns)
    }

    fn cpu() -> Cpu {
        Cpu::new(HostId::at(0), 0, Timestamp::ZERO)
    }

    /// True where an interruption begins.
    fn enter(cpu: &mut Cpu, context: Context) -> bool {
        let entry = cpu.enter(at(1), context, None);
        assert_eq!(entry.ended, None);
        entry.interrupts
    }

    fn leave(cpu: &mut Cpu, context: Context) -> bool {
        cpu.leave(at(1), context)
    }

    #[test]
    fn raised_soft_interrupt_does_not_interrupt_its_own_thread() {
        let mut cpu = cpu();
        cpu.raise(SoftIrq::NetRx);
        assert!(!enter(&mut cpu, Context::SoftIrq(SoftIrq::NetRx)));
        assert_eq!((cpu.context(), cpu.is_own()), (Some((Context::SoftIrq(SoftIrq::NetRx), None)), true));
        // A hard interrupt inside it does, and the soft interrupts that this one raises are not the thread's own.
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
    fn leave_pops_contexts_without_exit_and_ignores_exits_without_entry() {
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
    fn context_without_exit_ends_with_the_last_event_in_it() {
        let timer = Context::Vector(Vector::LocalTimer);
        let entry = |ended, interrupts| ContextEntry { ended, interrupts };
        let mut cpu = cpu();
        assert_eq!(cpu.enter(at(10), timer, None), entry(None, true));
        cpu.enter(at(11), Context::Timer, None);
        cpu.leave(at(14), Context::Timer);
        // The next tick cannot begin inside the one before.
        assert_eq!(cpu.enter(at(4_000), timer, None), entry(Some(at(14)), true));
        // Nor a soft interrupt inside a hard one.
        assert_eq!(cpu.enter(at(4_005), Context::SoftIrq(SoftIrq::Timer), None), entry(Some(at(4_000)), true));
        cpu.see(at(4_008));
        assert_eq!(cpu.resume_thread(), Some(at(4_008)));
        assert_eq!((cpu.resume_thread(), cpu.context()), (None, None));
        // A soft interrupt stays open when a hard one inside it ends.
        cpu.enter(at(5_000), Context::SoftIrq(SoftIrq::NetRx), None);
        cpu.enter(at(5_001), timer, None);
        assert_eq!(cpu.enter(at(5_002), timer, None), entry(None, false));
        assert!(!cpu.leave(at(5_003), timer) && cpu.leave(at(5_004), Context::SoftIrq(SoftIrq::NetRx)));
        // Hard interrupts do not show whether the soft interrupt before them still lasts.
        cpu.enter(at(6_000), Context::SoftIrq(SoftIrq::NetRx), None);
        cpu.enter(at(9_000), timer, None);
        cpu.leave(at(9_002), timer);
        assert_eq!(cpu.resume_thread(), Some(at(6_000)));
    }

    #[test]
    fn delivery_ends_with_its_own_context() {
        let mut cpu = cpu();
        enter(&mut cpu, Context::SoftIrq(SoftIrq::NetRx));
        cpu.deliver(NetworkPacket::default(), Some(Waker { thread: ThreadId::at(1), at: at(7) }));
        enter(&mut cpu, Context::Timer);
        leave(&mut cpu, Context::Timer);
        assert!(cpu.delivery().is_some());
        leave(&mut cpu, Context::SoftIrq(SoftIrq::NetRx));
        assert!(cpu.delivery().is_none());
    }

    #[test]
    fn enter_bounds_the_depth() {
        let mut cpu = cpu();
        for line in 0..1000 {
            enter(&mut cpu, Context::Irq(line));
        }
        assert_eq!(cpu.contexts.len(), MOST_NESTED);
    }
}
