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

use super::idle_state::IdleState;
use crate::base::names::NameId;
use crate::base::time::{Span, Timestamp};
use crate::event::host::HostId;
use crate::event::kind::{Context, Event, SoftIrq};
use crate::reading::batch::NetworkPacket;
use crate::timeline::{CpuRun, ThreadId, Waker};
use foldhash::HashMap;
use std::ops::{Index, IndexMut};

/// The start of what began before a worker knew of it: the other machine has it.
pub(super) const UNKNOWN_START: Timestamp = Timestamp::MIN;

/// The span of the first row that a worker makes of what began at `since` where the worker does not know that; `None`
/// if it is empty.
pub(super) fn known_span(span: Span, since: Timestamp) -> Option<Span> {
    let start = if span.start == UNKNOWN_START { since } else { span.start };
    (start < span.end).then(|| Span::new(start, span.end))
}

/// Interrupts nest three or four deep; more is damage.
pub(super) const MOST_NESTED: usize = 16;

/// A packet being delivered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    /// Depth of the context stack in which it arrived.
    depth: usize,
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

impl CpuId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// All CPUs, in the order in which events named them.
#[derive(Clone, Debug)]
pub(super) struct Cpus {
    all: Vec<Cpu>,
    /// By host and number.
    ids: Vec<Vec<Option<CpuId>>>,
    /// By host and thread id: the CPUs of threads whose events do not name theirs.
    unknown: HashMap<(HostId, i32), CpuId>,
}

impl Cpus {
    pub fn new(hosts: usize) -> Cpus {
        Cpus { all: Vec::new(), ids: vec![Vec::new(); hosts], unknown: HashMap::default() }
    }

    /// The CPU of a thread whose events do not name theirs: one of its own, since two such threads may run at the same
    /// time.
    pub fn of_thread(&mut self, host: HostId, tid: i32, t: Timestamp) -> CpuId {
        *self.unknown.entry((host, tid)).or_insert_with(|| {
            self.all.push(Cpu::new(host, u32::from(Event::NO_CPU), t));
            CpuId(self.all.len() as u32 - 1)
        })
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

    /// The CPU of this number if an event has named it.
    pub fn find(&self, host: HostId, number: u16) -> Option<CpuId> {
        *self.ids.get(host.index())?.get(usize::from(number))?
    }

    /// The CPUs so far.
    pub fn ids(&self) -> impl Iterator<Item = CpuId> + use<> {
        (0..self.all.len() as u32).map(CpuId)
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
    #[inline]
    fn index(&self, id: CpuId) -> &Cpu {
        &self.all[id.0 as usize]
    }
}

impl IndexMut<CpuId> for Cpus {
    #[inline]
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

/// The slots of a CPU that the events of a chunk set.
#[derive(Clone, Debug)]
pub(super) struct CpuSlots {
    pub thread: Option<ThreadId>,
    since: Timestamp,
    confirmed_at: Timestamp,
    contexts: Vec<ContextLevel>,
    raised: u32,
    delivery: Option<Delivery>,
    idle_state: IdleState,
    idle_leaves: bool,
}

impl CpuSlots {
    /// With other ids of names, threads and senders.
    pub fn rename(
        &mut self,
        name: impl Fn(NameId) -> NameId,
        thread: impl Fn(ThreadId) -> ThreadId,
        sender: impl Fn(Waker) -> Option<Waker>,
    ) {
        self.thread = self.thread.map(thread);
        for level in &mut self.contexts {
            level.name = level.name.map(&name);
        }
        if let Some(delivery) = &mut self.delivery {
            delivery.sender = delivery.sender.and_then(sender);
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Cpu {
    pub host: HostId,
    pub number: u32,
    /// The running thread, where it is known.
    pub thread: Option<ThreadId>,
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
    /// The processor's, while the idle task runs.
    pub idle_state: IdleState,
    pub runs: Vec<CpuRun>,
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
            idle_state: IdleState::Unknown,
            runs: Vec::new(),
            idle: None,
            idle_leaves: false,
        }
    }

    /// False for a CPU whose number no event names: one thread's own.
    pub fn is_known(&self) -> bool {
        self.number != u32::from(Event::NO_CPU)
    }

    /// From `t` on another thread runs, or an unknown one.
    pub fn set_thread(&mut self, thread: Option<ThreadId>, t: Timestamp) {
        let t = t.max(self.since);
        if let Some(thread) = self.thread
            && t > self.since
            && self.is_known()
        {
            self.runs.push(CpuRun { span: Span::new(self.since, t), thread });
        }
        self.thread = thread;
        self.since = t;
        self.confirmed_at = t;
        self.idle_state = IdleState::Unknown;
    }

    /// Nothing is known before the switch at `t` but the soft interrupts that are raised.
    pub fn begin_again(&mut self, t: Timestamp, raised: u32) {
        let idle = self.idle;
        *self = Cpu { idle, raised, ..Cpu::new(self.host, self.number, t) };
    }

    /// A switch at `t` gives the CPU to a thread.
    pub fn set_next(&mut self, next: ThreadId, t: Timestamp) {
        self.first = None;
        self.set_thread(Some(next), t);
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

    /// True if a context interrupts the running thread.
    pub fn is_interrupted(&self) -> bool {
        self.contexts.iter().any(|level| !level.own)
    }

    /// True if a context that begins now would be the running thread's own work had the thread raised it.
    pub fn may_own(&self, context: Context) -> bool {
        let over = self.contexts.iter().position(|level| !may_nest(level.context, context));
        !self.contexts.iter().take(over.unwrap_or(usize::MAX)).any(|level| !level.own)
    }

    /// The soft interrupts that the running thread raised as its own work.
    pub fn raised(&self) -> u32 {
        self.raised
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
        self.idle_state.interrupt(t);
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

    /// A packet arrives in the current context, if the CPU is in one.
    pub fn deliver(&mut self, packet: NetworkPacket, sender: Option<Waker>) {
        let depth = self.contexts.len();
        self.delivery = (depth > 0).then_some(Delivery { depth, packet, sender });
    }

    /// What the events of a chunk have made of this CPU, all ids being those of this machine; of the soft interrupts
    /// that the running thread has raised, the chunk does not know those in `unknown`.
    pub fn continue_with(&mut self, after: CpuSlots, unknown: u32) {
        self.thread = after.thread;
        if after.since != UNKNOWN_START {
            self.since = after.since;
        }
        if after.confirmed_at != UNKNOWN_START {
            self.confirmed_at = after.confirmed_at;
        }
        self.first = None;
        self.contexts = after.contexts;
        self.raised = self.raised & unknown | after.raised & !unknown;
        self.delivery = after.delivery;
        self.idle_state = after.idle_state;
        self.idle_leaves |= after.idle_leaves;
    }

    /// Add the first run that a worker has made.
    pub fn add_first_run(&mut self, run: CpuRun) {
        self.runs.extend(known_span(run.span, self.since).map(|span| CpuRun { span, ..run }));
    }

    /// What the events of a chunk set.
    pub fn slots(&self) -> CpuSlots {
        CpuSlots {
            thread: self.thread,
            since: self.since,
            confirmed_at: self.confirmed_at,
            contexts: self.contexts.clone(),
            raised: self.raised,
            delivery: self.delivery,
            idle_state: self.idle_state,
            idle_leaves: self.idle_leaves,
        }
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
mod tests;
