//! One event, and the slots that it changes.
//!
//! In: an event in its place in the total order. Out: the machine after it. First the thread of the event is found
//! (`identity`, `user`), then its slots change: the scheduler's transitions are in `sched`, those of interrupt contexts
//! in `cpu`, the others in the modules that hold the slots. Cost: O(1) for each event.

use super::cpu::{Completion, CpuId};
use super::machine::{BatchIds, Machine};
use super::requests::Submitter;
use super::services::WorkChange;
use super::thread_state::{Interruption, Sched, ThreadState};
use crate::base::names::NameId;
use crate::base::time::Timestamp;
use crate::event::host::{HostId, TraceOrigin};
use crate::event::kind::{Context, Event, Kind, RequestStep, TextId, ThreadContextId, WorkStep};
use crate::event::prev_state::PrevState;
use crate::kernel::threads::HostTid;
use crate::reading::batch::BlockRequest;
use crate::timeline::{ThreadId, WakeStack};

/// `TASK_UNINTERRUPTIBLE` in `prev_state`, on all kernels.
const UNINTERRUPTIBLE: u16 = 2;
/// `TASK_NOLOAD`, which an idle kernel thread has besides before Linux 4.14; later kernels have a state of its own.
const NO_LOAD: u16 = 0x400;

/// True if a thread that leaves its CPU so has no more work to do.
pub(super) fn rests(leaves: PrevState, prev_state: u16) -> bool {
    leaves != PrevState::Ready && prev_state & (UNINTERRUPTIBLE | NO_LOAD) != UNINTERRUPTIBLE
}

/// The id of no thread.
const NO_THREAD: i32 = -1;

impl ThreadState {
    /// It left its CPU, and the switch names its state.
    pub(super) fn left_with(&mut self, prev_state: u16) {
        self.uninterruptible = prev_state & UNINTERRUPTIBLE != 0;
    }
}

impl Machine {
    /// The next event.
    pub(super) fn step(&mut self, event: &Event, ids: &mut BatchIds<'_>) {
        let Some(&origin) = self.origins.get(usize::from(event.trace)) else { return };
        let t = event.time;
        self.end = self.end.max(t);
        if matches!(event.kind, Kind::Exec { .. }) {
            // The recorded command executes its program before it does anything else.
            self.start.get_or_insert(t);
        }
        // A recorder may have made up the other events that describe threads when it began, without a time and a CPU.
        if event.who == ThreadContextId::ABSENT && self.thread_event(t, origin.host, event.kind, ids) {
            return;
        }
        self.start.get_or_insert(t);
        if !origin.kernel {
            let thread = self.find_user(origin.host, event, ids);
            if !self.is_copy(event, origin, thread, ids) {
                self.common(event, origin, thread, ids);
            }
            return;
        }
        let Some(c) = self.cpu_of(origin.host, event, ids) else { return };
        let thread = match event.kind {
            // The contexts of these events name a thread, but not the one that runs now.
            Kind::Switch { .. } | Kind::Stack { witness: false, .. } => self.named(c, event, ids),
            _ => self.running(c, event, ids),
        };
        self.on_cpu(c, event, origin, thread, ids);
    }

    /// The CPU of an event. Where it is unknown, that on which its thread runs, else the thread's own: whatever happens
    /// there shows nothing about other threads.
    fn cpu_of(&mut self, host: HostId, event: &Event, ids: &BatchIds<'_>) -> Option<CpuId> {
        if event.cpu != Event::NO_CPU {
            return self.cpus.id(host, event.cpu, event.time);
        }
        let tid = match event.kind {
            Kind::Leaves { tid, .. } | Kind::Returns { tid } => Some(tid),
            _ => ids.batch.context(event.who).and_then(|context| context.tid),
        };
        let tid = tid.unwrap_or(NO_THREAD);
        let thread = self.threads.latest(HostTid::new(host, tid)).map(|thread| self.threads[thread].sched);
        let Some(Sched::Running(c)) = thread else { return Some(self.cpus.of_thread(host, tid, event.time)) };
        Some(c)
    }

    /// The next event, of a kernel trace and on `thread`, as a worker knows.
    pub(super) fn step_on(&mut self, event: &Event, thread: ThreadId, ids: &mut BatchIds<'_>) {
        let Some(&origin) = self.origins.get(usize::from(event.trace)) else { return };
        self.end = self.end.max(event.time);
        if let Some(c) = self.cpus.id(origin.host, event.cpu, event.time) {
            self.on_cpu(c, event, origin, Some(thread), ids);
        }
    }

    /// An event of a kernel trace on CPU `c`, where `thread` runs.
    fn on_cpu(
        &mut self,
        c: CpuId,
        event: &Event,
        origin: TraceOrigin,
        thread: Option<ThreadId>,
        ids: &mut BatchIds<'_>,
    ) {
        let (t, host) = (event.time, origin.host);
        ids.follow_chains(host, event);
        match event.kind {
            Kind::Switch { .. } => self.switched(c, event, origin, ids),
            Kind::Leaves { tid, prev_state } => self.leaves(c, t, tid, origin.generation.decode(prev_state, false)),
            Kind::Returns { tid } => self.returns(c, t, tid),
            Kind::Wake { .. } => self.woke(c, event, host, ids),
            Kind::Migrate { tid, cpu } => self.migrate(t, host, tid, u32::from(cpu)),
            Kind::Enter { context, name } => self.enter(c, t, context, name, ids),
            Kind::IdleState { enters } => {
                // Where another thread seems to run there, switches are missing.
                if thread.is_some_and(|thread| self.threads[thread].thread.idle) {
                    self.cpus[c].idle_state.step(t, enters);
                }
            }
            Kind::Raise { soft_irq } => self.cpus[c].raise(soft_irq),
            Kind::Leave { context } => {
                if self.cpus[c].leave(t, context) {
                    self.interrupt(c, t, None);
                }
            }
            Kind::Send(id) => {
                if let Some(packet) = ids.batch.packet_of(id)
                    && let Some(sender) = self.sender(c, t, packet)
                {
                    let ended = self.packets.send(host, packet, sender);
                    self.came_early(ended, sender);
                }
            }
            Kind::Receive(id) => {
                self.cpus[c].see(t);
                if let Some(packet) = ids.batch.packet_of(id) {
                    let sender = self.packets.receive(host, packet);
                    self.cpus[c].deliver(*packet, sender);
                }
            }
            Kind::Block { step, request } => {
                self.cpus[c].see(t);
                if let Some(request) = ids.batch.request_of(request) {
                    self.block(c, t, step, request, thread);
                }
            }
            Kind::Work { step, address } => self.work(c, t, step, address, thread),
            Kind::Line { irq, name } => {
                if let Some(name) = ids.name(&mut self.out, name) {
                    self.lines.insert((host, irq), name);
                }
            }
            Kind::Counter { name, value } => {
                if let Some(name) = ids.name(&mut self.out, name) {
                    self.record_counter(c, thread, t, name, value);
                }
            }
            Kind::Lost { source, resumes, .. } => self.lose(c, t, source, resumes),
            Kind::CallEntry { .. } | Kind::CallExit { .. } => {
                self.resume_thread(c);
                self.common(event, origin, thread, ids);
            }
            kind if self.thread_event(t, host, kind, ids) => {}
            _ => self.common(event, origin, thread, ids),
        }
    }

    /// A switch names both threads.
    fn switched(&mut self, c: CpuId, event: &Event, origin: TraceOrigin, ids: &mut BatchIds<'_>) {
        let t = event.time;
        let Kind::Switch { prev, next, prev_state, prev_name, next_name, .. } = event.kind else { return };
        let prev = self.thread_on(c, prev, t);
        self.name(prev, t, prev_name, ids);
        let exited = self.threads[prev].exited;
        let leaves = origin.generation.decode(prev_state, exited);
        let next = self.thread_on(c, next, t);
        self.name(next, t, next_name, ids);
        self.switch(c, t, prev, leaves, next);
        self.threads[prev].left_with(prev_state);
        if rests(leaves, prev_state) {
            self.services.rest(prev, t);
        }
    }

    /// A wake-up names the woken thread; the call chain recorded with it is evidence of the cause of the wake-up.
    fn woke(&mut self, c: CpuId, event: &Event, host: HostId, ids: &mut BatchIds<'_>) {
        let t = event.time;
        self.cpus[c].see(t);
        let Kind::Wake { tid, cpu, source, name } = event.kind else { return };
        if tid == 0 {
            return;
        }
        let woken = self.thread(host, tid, t);
        self.name(woken, t, name, ids);
        self.wake(c, t, woken, u32::from(cpu), source);
        let chain = ids.wake_chain.take();
        if let Some(stack) = ids.stack(&mut self.out.tables, chain) {
            self.out.tables.wake_stacks.push(WakeStack { woken, time: t, stack });
        }
    }

    /// The CPU enters an interrupt context.
    fn enter(&mut self, c: CpuId, t: Timestamp, context: Context, name: TextId, ids: &mut BatchIds<'_>) {
        let host = self.cpus[c].host;
        let name = self.handler(host, context, name, ids);
        if let (Context::Irq(_) | Context::SoftIrq(_), Some(quality)) =
            (context, self.out.tables.quality.get_mut(host.index()))
        {
            quality.interrupts += 1;
        }
        let entry = self.cpus[c].enter(t, context, name);
        if let Some(ended) = entry.ended {
            self.interrupt(c, ended, None);
        }
        if entry.interrupts {
            self.interrupt(c, t, Some(Interruption { handler: name }));
        }
    }

    /// The name of the handler of a context.
    pub(super) fn handler(
        &mut self,
        host: HostId,
        context: Context,
        name: TextId,
        ids: &mut BatchIds<'_>,
    ) -> Option<NameId> {
        let name = ids.name(&mut self.out, name);
        match (name, context) {
            (None, Context::Irq(irq)) => self.lines.get(&(host, irq)).copied(),
            _ => name,
        }
    }

    /// A block request moves on.
    pub(super) fn block(
        &mut self,
        c: CpuId,
        t: Timestamp,
        step: RequestStep,
        request: &BlockRequest,
        running: Option<ThreadId>,
    ) {
        let host = self.cpus[c].host;
        // The running thread has its id, whichever thread has got it since.
        let is_running = |tid: i32| running.is_some_and(|running| self.threads[running].thread.tid == tid);
        let named = request.tid.filter(|tid| step != RequestStep::Complete && !is_running(*tid));
        let thread = named.map_or(running, |tid| Some(self.thread_on(c, tid, t)));
        let by = self.submitter(thread);
        let lost = |since| self.losses.first(host, None, since, t);
        let completed = self.requests.step(t, host, step, request, by, lost);
        completed.into_iter().for_each(|submitter| self.complete(c, Completion { at: t, submitter }));
    }

    /// A thread as the submitter of a request.
    pub(super) fn submitter(&self, thread: Option<ThreadId>) -> Submitter {
        let client = thread.and_then(|thread| self.services.client(thread)).map(|client| client.thread);
        Submitter { thread, client }
    }

    /// A request completes on CPU `c`.
    pub(super) fn complete(&mut self, c: CpuId, completion: Completion) {
        self.cpus[c].completed = Some(completion);
        self.threads[completion.submitter].request_done = completion.at;
    }

    /// A work item moves on; one that is queued in an interrupt has no client.
    fn work(&mut self, c: CpuId, t: Timestamp, step: WorkStep, address: u64, thread: Option<ThreadId>) {
        let in_thread = self.cpus[c].context().is_none();
        let change = match (step, thread) {
            (WorkStep::Queue, by) => WorkChange::Queued(by.filter(|by| in_thread && !self.threads[*by].thread.idle)),
            (WorkStep::Begin, Some(worker)) => WorkChange::Begins(worker),
            (WorkStep::End, Some(worker)) => WorkChange::Ends(worker),
            _ => return,
        };
        self.services.step(t, self.cpus[c].host, address, change);
    }

    /// The thread on a CPU continues: all interrupt contexts are over.
    pub(super) fn resume_thread(&mut self, c: CpuId) {
        if let Some(ended) = self.cpus[c].resume_thread() {
            self.interrupt(c, ended, None);
        }
    }

    /// The outermost interrupt context of a CPU begins or ends, and with it the interruption of its thread.
    fn interrupt(&mut self, c: CpuId, t: Timestamp, interruption: Option<Interruption>) {
        let Some(thread) = self.cpus[c].thread else { return };
        let state = &mut self.threads[thread];
        // It may have got the name of one that runs soft interrupts while it was interrupted.
        let ends = interruption.is_none() && state.interrupted.is_some();
        if state.sched == Sched::Running(c) && (ends || !state.runs_softirqs) {
            let label = state.own_label(&self.reasons);
            state.cut(t, label);
            state.interrupted = interruption;
        }
    }
}
