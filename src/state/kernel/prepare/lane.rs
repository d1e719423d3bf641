//! A CPU as the worker of a chunk knows it: the thread that runs there since a switch of the chunk, and what it has
//! done by itself.
//!
//! In: the events of one CPU in order, those before the first switch left out. Out: whether the machine would do with
//! an event what can be foretold here, and then its rows. Everything here is exact or unknown: what is not known is
//! learnt again from the next event that sets it whatever was before (a switch; for calls and contexts, the entry or
//! exit of a call). Cost: constant for each event.

use crate::base::time::Timestamp;
use crate::event::kind::{Context, Event, Kind, SoftIrq, TextId, ThreadContextId};
use crate::reading::batch::ThreadContext;
use crate::state::kernel::cpu::{MOST_NESTED, bit, may_nest};
use crate::state::kernel::prepared::{CallAfter, LaneRows, LocalCall, LocalInterruption, OpenLocalCall, RunPart};
use crate::state::timeline::HostId;
use smallvec::SmallVec;

/// The system call of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum KnownCall {
    #[default]
    Unknown,
    Outside,
    Inside(OpenLocalCall),
}

/// The context of an event, compared with those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContextFit {
    /// It says nothing.
    Absent,
    /// It says of the running thread what others have said before.
    Known,
    /// It says of the running thread what may be applied any time before something else names that thread.
    New,
    /// It says something else of the running thread.
    Changed,
    /// It names another thread.
    Other,
}

/// A context in which a CPU is.
#[derive(Clone, Copy, Debug)]
struct KnownLevel {
    context: Context,
    /// True for the running thread's own work.
    own: bool,
}

/// Soft interrupts that the running thread has raised as its own work, one bit each.
#[derive(Clone, Copy, Debug, Default)]
struct KnownRaised {
    raised: u32,
    /// The bits that are known.
    known: u32,
}

/// Rows of the running thread that no other event has needed so far.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingRows {
    /// Number of events.
    pub events: u32,
    pub last: Timestamp,
    pub confirmed_at: Option<Timestamp>,
    /// Contexts that describe the thread.
    pub contexts: SmallVec<[ThreadContextId; 2]>,
    /// Number of interrupt handlers and soft interrupts among its interruptions.
    pub handlers: u64,
    /// Where its rows begin.
    pub interruptions: usize,
    pub calls: usize,
    pub samples: usize,
    /// True if its call has changed.
    pub has_called: bool,
}

/// A CPU.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    pub host: HostId,
    pub cpu: u16,
    /// The thread that runs there since a switch, where nothing has contradicted that.
    pub tid: Option<i32>,
    /// True if it is known to be the latest thread of its id.
    pub is_latest: bool,
    /// What contexts have said of it.
    described: ThreadContext,
    /// These contexts.
    shown: SmallVec<[ThreadContextId; 4]>,
    pub call: KnownCall,
    /// The interrupt contexts, from the outermost on, where they are known.
    levels: Option<SmallVec<[KnownLevel; 4]>>,
    raised: KnownRaised,
    /// The events of an interruption that has not ended: it is a row then, unless another event needs its contexts.
    pub held: SmallVec<[Event; 4]>,
    pub pending: PendingRows,
    pub rows: LaneRows,
}

impl Lane {
    pub fn new(host: HostId, cpu: u16, rows: LaneRows) -> Lane {
        Lane {
            host,
            cpu,
            tid: None,
            is_latest: false,
            described: ThreadContext::default(),
            shown: SmallVec::new(),
            call: KnownCall::Unknown,
            levels: None,
            raised: KnownRaised::default(),
            held: SmallVec::new(),
            pending: PendingRows::default(),
            rows,
        }
    }

    /// A switch gives the CPU to a thread.
    pub fn begin(&mut self, tid: i32, name: TextId, is_latest: bool, call: KnownCall) {
        self.resume();
        self.tid = Some(tid);
        self.is_latest = is_latest;
        self.call = call;
        self.describe_anew(name);
    }

    /// The thread is not known any more.
    pub fn end(&mut self) {
        self.tid = None;
        self.call = KnownCall::Unknown;
        self.levels = None;
        self.raised = KnownRaised::default();
    }

    /// Another event may have described the thread; `name` is its last name, where it is known.
    pub fn describe_anew(&mut self, name: TextId) {
        let name = (name != TextId::NONE).then_some(name);
        self.described = ThreadContext { name, ..ThreadContext::default() };
        self.shown.clear();
    }

    /// Compare the context of an event.
    pub fn fit(&self, who: ThreadContextId, context: Option<&ThreadContext>) -> ContextFit {
        let Some((context, tid)) = context.and_then(|context| Some((context, context.tid?))) else {
            return ContextFit::Absent;
        };
        if self.tid != Some(tid) {
            return ContextFit::Other;
        }
        if self.shown.contains(&who) {
            return ContextFit::Known;
        }
        let known = &self.described;
        let agrees = agree(known.pid, context.pid) && agree(known.ppid, context.ppid);
        // A name that is not the thread's last one begins with the event, ids in a namespace are looked up by others.
        let is_named = context.name.is_none() || context.name == known.name;
        let is_inside = context.vtid.zip(context.vpid).is_some_and(|(vtid, _)| vtid != tid);
        if agrees && is_named && !is_inside { ContextFit::New } else { ContextFit::Changed }
    }

    /// The context of an event describes the thread.
    pub fn describe(&mut self, who: ThreadContextId, context: &ThreadContext) {
        let known = &mut self.described;
        let agrees = agree(known.pid, context.pid)
            && agree(known.ppid, context.ppid)
            && agree(known.vtid, context.vtid)
            && agree(known.vpid, context.vpid)
            && agree(known.name, context.name);
        if !agrees {
            self.shown.clear();
        }
        known.pid = context.pid.or(known.pid);
        known.ppid = context.ppid.or(known.ppid);
        known.vtid = context.vtid.or(known.vtid);
        known.vpid = context.vpid.or(known.vpid);
        known.name = context.name.or(known.name);
        self.shown.push(who);
    }

    /// True where the running thread is in no interrupt context.
    pub fn is_outside(&self) -> bool {
        self.levels.as_ref().is_some_and(|levels| levels.is_empty())
    }

    /// The running thread continues: all contexts are over.
    pub fn resume(&mut self) {
        match &mut self.levels {
            Some(levels) if levels.is_empty() => {}
            Some(levels) => {
                levels.clear();
                self.raised = KnownRaised { raised: 0, known: u32::MAX };
            }
            None => {
                self.levels = Some(SmallVec::new());
                self.raised.known &= !self.raised.raised;
            }
        }
    }

    fn is_interrupted(&self) -> Option<bool> {
        Some(self.levels.as_ref()?.iter().any(|level| !level.own))
    }

    /// A soft interrupt is raised. True if that changes nothing.
    pub fn raise(&mut self, soft_irq: SoftIrq) -> bool {
        let bit = bit(soft_irq);
        match self.is_interrupted() {
            Some(true) => return true,
            Some(false) => {
                self.raised.raised |= bit;
                self.raised.known |= bit;
            }
            // It may be raised now.
            None => self.raised.known &= !bit | self.raised.raised,
        }
        false
    }

    /// The CPU enters a context. True if the entry can be held: the interruption has begun with events that are held,
    /// or begins now.
    pub fn enter(&mut self, context: Context) -> bool {
        let bit = if let Context::SoftIrq(soft_irq) = context { bit(soft_irq) } else { 0 };
        let KnownRaised { raised, known } = self.raised;
        let interrupted = self.is_interrupted();
        self.raised = KnownRaised { raised: raised & !bit, known: known | bit };
        let (Some(levels), Some(interrupted)) = (&mut self.levels, interrupted) else { return false };
        let is_known = known & bit == bit;
        let nests = levels.len() < MOST_NESTED && levels.iter().all(|level| may_nest(level.context, context));
        if !nests || !is_known && !interrupted {
            self.levels = None;
            return false;
        }
        let own = raised & bit != 0 && !interrupted;
        let can_hold = is_known && raised & bit == 0 && (levels.is_empty() || !self.held.is_empty());
        levels.push(KnownLevel { context, own });
        can_hold
    }

    /// The CPU leaves a context. True if that was the innermost one.
    pub fn leave(&mut self, context: Context) -> bool {
        let Some(levels) = &mut self.levels else { return false };
        match levels.last() {
            Some(level) if level.context == context => {
                levels.pop();
                return true;
            }
            // Contexts between were left unseen; in none, the exit is ignored.
            Some(_) => self.levels = None,
            None => {}
        }
        false
    }

    /// An event that is left to the machine changes the contexts.
    pub fn change_context(&mut self, kind: Kind) {
        match kind {
            Kind::Enter { context, .. } => _ = self.enter(context),
            Kind::Leave { context } => _ = self.leave(context),
            Kind::Raise { soft_irq } => _ = self.raise(soft_irq),
            _ => {}
        }
    }

    /// An event that is left to the machine shows the call of the thread.
    pub fn learn_call(&mut self, event: &Event) {
        match event.kind {
            Kind::CallEntry { name } => {
                self.resume();
                if name != TextId::NONE {
                    self.call = KnownCall::Inside(OpenLocalCall { since: event.time, name });
                }
            }
            Kind::CallExit { .. } => {
                self.resume();
                self.call = KnownCall::Outside;
            }
            _ => {}
        }
    }

    /// The interruption whose events are held has ended at `t`: it is a row.
    pub fn end_interruption(&mut self, t: Timestamp) {
        let Some(Event { time: from, kind: Kind::Enter { context, name }, .. }) = self.held.first().copied() else {
            return;
        };
        let counts =
            |event: &&Event| matches!(event.kind, Kind::Enter { context: Context::Irq(_) | Context::SoftIrq(_), .. });
        let named = self.held.iter().filter(|event| event.who == ThreadContextId::CONFIRMED);
        let confirmed_at = named.map(|event| event.time).max();
        self.pending.confirmed_at = self.pending.confirmed_at.max(confirmed_at);
        self.pending.last = t;
        self.pending.handlers += self.held.iter().filter(counts).count() as u64;
        self.pending.events += self.held.len() as u32;
        self.rows.interruptions.push(LocalInterruption { from, to: t, context, name });
        self.held.clear();
    }

    /// A call returns: it is a row.
    pub fn end_call(&mut self, call: OpenLocalCall, t: Timestamp, ret: i64) {
        self.rows.calls.push(LocalCall { since: call.since, until: t, name: call.name, ret });
        self.pending.has_called = true;
        self.call = KnownCall::Outside;
    }

    /// The rows that no other event has needed so far; `lane` is its number.
    pub fn take_part(&mut self, lane: usize) -> RunPart {
        let Lane { host, cpu, call, rows, .. } = self;
        let next = PendingRows {
            interruptions: rows.interruptions.len(),
            calls: rows.calls.len(),
            samples: rows.samples.len(),
            ..PendingRows::default()
        };
        let pending = std::mem::replace(&mut self.pending, next);
        let call = match *call {
            KnownCall::Inside(call) if pending.has_called => CallAfter::Inside(call),
            KnownCall::Outside if pending.has_called => CallAfter::Outside,
            _ => CallAfter::Same,
        };
        RunPart {
            host: *host,
            cpu: *cpu,
            events: pending.events,
            last: pending.last,
            confirmed_at: pending.confirmed_at,
            contexts: pending.contexts,
            lane,
            interruptions: pending.interruptions..rows.interruptions.len(),
            handlers: pending.handlers,
            calls: pending.calls..rows.calls.len(),
            samples: pending.samples..rows.samples.len(),
            call,
        }
    }
}

/// True where one of two values is not known, or both are equal.
fn agree<T: PartialEq>(known: Option<T>, new: Option<T>) -> bool {
    new.is_none() || known.is_none() || known == new
}
