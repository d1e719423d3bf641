//! The machine of `stats cpu` and `stats io`: the running thread of each CPU, and the bytes that the system calls of
//! each thread read and write.
//!
//! In: the typed events of a chunk (switches, forks, system calls ...). Out: a [`UsageMachine`]. The rules of
//! `kernel/threads.rs` find the thread of an id, as in the kernel machine. The same steps run in two ways: from the
//! beginning of the recording, or from the beginning of a chunk whose carried-in state is unknown. In a chunk:
//!
//! - a thread that an event names may be one of the carried-in state ([`UsageThread::carried_in`]);
//! - its CPU is a slot whose first changes depend on the carried-in value (`slot.rs`);
//! - events of the running thread of a CPU, while that thread is unknown, are kept in [`UsageCpu::deferred`].
//!
//! `join` appends the machine of the next chunk. An event that contradicts the state (a switch away from a thread that
//! did not run there) replaces it and is counted, as in the kernel machine. ALGORITHMS.md 10.3 and 10.4.

use super::calls::{CallKind, CallStep};
use super::thread::{HostCpu, UsageThread};
use crate::base::names::{NameId, Names};
use crate::base::time::{Ns, Timestamp};
use crate::event::host::{HostId, TraceOrigin};
use crate::event::kind::{Event, Kind, TextId};
use crate::event::prev_state::PrevState;
use crate::kernel::threads::{Holder, HostTid, ThreadTable};
use crate::reading::batch::{Batch, BatchNames};
use crate::timeline::ThreadId;
use foldhash::HashMap;

/// The running thread of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runs {
    /// The one that ran when the chunk began.
    CarriedIn,
    /// Unknown; it is the same thread since that time, or since the first event.
    Unknown(Timestamp),
    /// This one.
    Thread(ThreadId),
}

/// An event of the running thread of a CPU, while that thread was unknown.
#[derive(Clone, Copy, Debug)]
pub(super) enum DeferredEvent {
    Call(CallStep),
    Lost,
}

/// A thread that was seen to run on a CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub at: Timestamp,
    pub thread: ThreadId,
}

/// A deferred event, and when it happened.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimedDeferred {
    pub at: Timestamp,
    pub event: DeferredEvent,
}

#[derive(Clone, Debug)]
pub(super) struct UsageCpu {
    pub runs: Runs,
    /// In a chunk: the events of the thread of the carried-in state.
    pub deferred: Vec<TimedDeferred>,
    /// In a chunk: the first thread that was seen to run.
    pub seen: Option<Seen>,
    /// In a chunk: the thread that ran at its beginning, by the last switch before it in the same packet.
    pub seed: Option<ThreadId>,
    /// The first event of any kind.
    pub first: Timestamp,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct KernelTrace {
    pub origin: TraceOrigin,
    /// True if its switches are read.
    pub follows_switches: bool,
}

/// Events that contradict the state before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Contradictions {
    pub count: u64,
    /// Time of the first.
    pub first: Option<Timestamp>,
}

impl Contradictions {
    pub fn join(&mut self, other: Contradictions) {
        self.count += other.count;
        self.first = [self.first, other.first].into_iter().flatten().min();
    }
}

/// The usage so far, and the state of all threads and CPUs.
#[derive(Clone, Debug, Default)]
pub(super) struct UsageMachine {
    /// True if it began with the recording.
    pub from_beginning: bool,
    pub threads: ThreadTable<UsageThread>,
    pub cpus: HashMap<HostCpu, UsageCpu>,
    pub names: Names,
    /// Time of the last event of any kind.
    pub end: Option<Timestamp>,
    pub contradictions: Contradictions,
}

/// A batch while its events are stepped through.
struct Texts<'b> {
    names: BatchNames<'b>,
    /// By text: the kind of the system call with that name.
    calls: Vec<Option<CallKind>>,
}

impl Texts<'_> {
    /// The kind of a system call; `None` where the event does not name it.
    fn call(&mut self, id: TextId) -> Option<CallKind> {
        let kind = self.calls.get_mut(id.index())?;
        if kind.is_none() {
            *kind = self.names.batch.text_of(id).filter(|name| !name.is_empty()).map(CallKind::of);
        }
        *kind
    }
}

impl UsageMachine {
    /// A machine at the beginning of the recording, or of any chunk.
    pub fn new(from_beginning: bool) -> UsageMachine {
        UsageMachine { from_beginning, ..UsageMachine::default() }
    }

    /// An event of any kind happened on a CPU.
    pub fn see(&mut self, at: HostCpu, t: Timestamp) {
        let cpu = self.cpu(at, t);
        cpu.first = cpu.first.min(t);
        self.see_elsewhere(t);
    }

    /// An event of any kind happened on no CPU of a kernel trace.
    pub fn see_elsewhere(&mut self, t: Timestamp) {
        self.end = self.end.max(Some(t));
    }

    /// A thread ran on a CPU just before the first event of the chunk.
    pub fn seed(&mut self, at: HostCpu, tid: i32, t: Timestamp) {
        let thread = self.thread(HostTid::on_cpu(at.host, at.cpu.into(), tid));
        let cpu = self.cpu(at, t);
        (cpu.runs, cpu.seed) = (Runs::Thread(thread), Some(thread));
    }

    pub fn cpu(&mut self, at: HostCpu, t: Timestamp) -> &mut UsageCpu {
        let runs = if self.from_beginning { Runs::Unknown(Timestamp::MIN) } else { Runs::CarriedIn };
        let new = || UsageCpu { runs, deferred: Vec::new(), seen: None, seed: None, first: t };
        self.cpus.entry(at).or_insert_with(new)
    }

    /// The thread that an id names, of an event that may be of any CPU.
    fn thread(&mut self, key: HostTid) -> ThreadId {
        self.instance(key, self.threads.holder(key))
    }

    /// The thread that an event of a CPU means by an id.
    fn thread_on(&mut self, at: HostCpu, tid: i32) -> ThreadId {
        let key = HostTid::on_cpu(at.host, at.cpu.into(), tid);
        let running = match self.cpus.get(&at).map(|cpu| cpu.runs) {
            Some(Runs::Thread(running)) => Some(running),
            _ => None,
        };
        self.instance(key, self.threads.holder_on(key, running))
    }

    fn instance(&mut self, key: HostTid, holder: Holder) -> ThreadId {
        match holder {
            Holder::Alive(thread) => thread,
            Holder::Ended => self.threads.open(key, UsageThread::new(key, false)),
            Holder::Unseen => self.threads.open(key, UsageThread::new(key, !self.from_beginning)),
        }
    }

    pub fn contradict(&mut self, t: Timestamp) {
        self.contradictions.join(Contradictions { count: 1, first: Some(t) });
    }

    /// Step through the events of a batch.
    pub fn absorb(&mut self, batch: &Batch, traces: &[Option<KernelTrace>]) {
        let mut texts = Texts { names: BatchNames::new(batch), calls: vec![None; batch.texts()] };
        for event in &batch.events {
            if let Some(Some(trace)) = traces.get(usize::from(event.trace)) {
                self.step(event, *trace, &mut texts);
            }
        }
    }

    fn step(&mut self, event: &Event, trace: KernelTrace, texts: &mut Texts<'_>) {
        let (t, host) = (event.time, trace.origin.host);
        let at = HostCpu { host, cpu: event.cpu };
        self.see(at, t);
        let named = self.context(event, at, trace, texts);
        match event.kind {
            Kind::Switch { .. } => self.switch(event, at, trace, texts),
            Kind::Lost { until, .. } if trace.follows_switches => self.lose(at, t, until),
            Kind::CallEntry { name, .. } => {
                let call = texts.call(name).unwrap_or(CallKind::Other);
                self.call(at, named, t, CallStep::Entry(call));
            }
            Kind::CallExit { name, ret } => {
                let call = texts.call(name);
                self.call(at, named, t, CallStep::Exit { call, ret });
            }
            kind => self.thread_event(host, kind, texts),
        }
    }

    /// The thread that the contexts of an event name: it runs there.
    fn context(&mut self, event: &Event, at: HostCpu, trace: KernelTrace, texts: &mut Texts<'_>) -> Option<ThreadId> {
        let context = texts.names.batch.context(event.who).copied().unwrap_or_default();
        let thread = self.thread_on(at, context.tid?);
        if trace.follows_switches {
            self.runs(at, thread, event.time);
        }
        let name = context.name.and_then(|name| texts.names.name(&mut self.names, name));
        self.threads[thread].observe(context.pid, name);
        Some(thread)
    }

    /// One thread leaves a CPU, another runs there.
    fn switch(&mut self, event: &Event, at: HostCpu, trace: KernelTrace, texts: &mut Texts<'_>) {
        let t = event.time;
        let Kind::Switch { prev, next, prev_state, prev_name, next_name, .. } = event.kind else { return };
        let prev = self.thread_on(at, prev);
        self.name(prev, prev_name, texts);
        let next = self.thread_on(at, next);
        self.name(next, next_name, texts);
        self.runs(at, prev, t);
        self.threads[prev].stop(t);
        self.threads[prev].ended |= trace.origin.generation.decode(prev_state, false) == PrevState::Dead;
        self.threads[next].run(t, at);
        self.cpu(at, t).runs = Runs::Thread(next);
    }

    /// An event that describes a thread by its id, wherever that runs.
    fn thread_event(&mut self, host: HostId, kind: Kind, texts: &mut Texts<'_>) {
        let key = |tid| HostTid::new(host, tid);
        match kind {
            Kind::Fork { child, child_pid, name, .. } => {
                let new = Box::new(UsageThread::new(key(child), false));
                let (child, _) = self.threads.fork(key(child), new, |old| old.ended = true);
                self.threads[child].observe(Some(child_pid), None);
                self.name(child, name, texts);
            }
            Kind::Exec { tid, old_tid, .. } if tid != old_tid => {
                let thread = self.thread(key(old_tid));
                // The first thread of the process existed, even if no event has named it.
                self.thread(key(tid));
                self.threads.take_over(thread, key(old_tid), key(tid), |leader| leader.ended = true);
            }
            Kind::Process(process) => {
                let Some(process) = texts.names.batch.process_of(process).filter(|p| p.tid != 0) else { return };
                let thread = self.thread(key(process.tid));
                let name = texts.names.name(&mut self.names, process.name);
                self.threads[thread].fill(process.pid, name);
            }
            _ => {}
        }
    }

    fn name(&mut self, thread: ThreadId, name: TextId, texts: &mut Texts<'_>) {
        let name = texts.names.name(&mut self.names, name);
        self.threads[thread].observe(None, name);
    }

    /// An event shows that `thread` runs on a CPU.
    fn runs(&mut self, at: HostCpu, thread: ThreadId, t: Timestamp) {
        match self.cpu(at, t).runs {
            Runs::Thread(other) if other == thread => return,
            Runs::Thread(other) => {
                self.contradict(t);
                self.threads[other].leave(t, at);
                self.threads[thread].run(t, at);
            }
            Runs::CarriedIn => {
                self.cpu(at, t).seen = Some(Seen { at: t, thread });
                self.threads[thread].run(t, at);
            }
            Runs::Unknown(since) => self.ran_since(at, thread, since, t),
        }
        self.cpu(at, t).runs = Runs::Thread(thread);
    }

    /// `thread` ran since `since` at least, but not before the first event of its CPU.
    pub fn ran_since(&mut self, at: HostCpu, thread: ThreadId, since: Timestamp, t: Timestamp) {
        let since = since.max(self.cpu(at, t).first).min(t);
        self.threads[thread].run_since(since, t, at);
    }

    /// A step into or out of a system call, of the thread that the event names or of the running one.
    pub fn call(&mut self, at: HostCpu, named: Option<ThreadId>, t: Timestamp, step: CallStep) {
        let cpu = self.cpu(at, t);
        match named.map_or(cpu.runs, Runs::Thread) {
            Runs::Thread(thread) => self.threads[thread].calls.step(step),
            Runs::CarriedIn => cpu.deferred.push(TimedDeferred { at: t, event: DeferredEvent::Call(step) }),
            Runs::Unknown(_) => {}
        }
    }

    /// Events of a CPU were lost from `t` to `until`.
    pub fn lose(&mut self, at: HostCpu, t: Timestamp, until: Timestamp) {
        let cpu = self.cpu(at, t);
        match std::mem::replace(&mut cpu.runs, Runs::Unknown(until)) {
            Runs::Thread(thread) => {
                self.threads[thread].leave(t, at);
                self.threads[thread].calls.lose();
            }
            Runs::CarriedIn => cpu.deferred.push(TimedDeferred { at: t, event: DeferredEvent::Lost }),
            Runs::Unknown(_) => {}
        }
    }

    /// All known CPUs with events.
    pub fn all_cpus(&self) -> impl Iterator<Item = HostCpu> {
        self.cpus.keys().copied().filter(|at| at.cpu != Event::NO_CPU)
    }

    /// From the first event of any CPU to the last of all.
    pub fn duration(&self) -> Ns {
        let first = self.cpus.values().map(|cpu| cpu.first).min();
        first.zip(self.end).map_or(0, |(first, end)| end.since(first))
    }

    /// The text of a name.
    pub fn text(&self, name: NameId) -> &str {
        self.names.get(name)
    }

    /// All states end with the last event; those of a CPU in `ends` no later than there.
    pub fn close(&mut self, ends: &HashMap<HostCpu, Timestamp>) {
        let Some(last) = self.end else { return };
        let end = |cpu: Option<HostCpu>| cpu.and_then(|cpu| ends.get(&cpu)).map_or(last, |end| last.min(*end));
        self.threads.iter_mut().for_each(|thread| thread.close(end));
    }
}
