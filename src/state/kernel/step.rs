//! One event, and the slots that it concerns.
//!
//! In: an event in its place in the total order. Out: the machine after it. Whose event it is comes first (`who`,
//! `user`), then what happened: the scheduler's transitions stand in `sched`, those of interrupt contexts in `cpu`, the
//! rest in the modules that hold the slots. Cost: O(1) for each event.

use super::machine::{BatchIds, Machine};
use super::requests::Submitter;
use super::services::WorkChange;
use super::thread_state::{Interruption, Sched};
use crate::base::time::Timestamp;
use crate::event::host::TraceOrigin;
use crate::event::kind::{Context, Event, Kind, RequestStep, TextId, ThreadContextId, WorkStep};
use crate::event::prev_state::Leaves;
use crate::reading::batch::BlockRequest;
use crate::state::timeline::{HostId, ThreadId};

/// The bit of `prev_state`, on all kernels.
const UNINTERRUPTIBLE: u16 = 2;
/// The bit beside it of a kernel thread that rests, before Linux 4.14; later ones tell of that by a bit of its own.
const NO_LOAD: u16 = 0x400;

impl Machine {
    /// The next event.
    pub(super) fn step(&mut self, event: &Event, ids: &mut BatchIds<'_>) {
        let Some(&origin) = self.origins.get(usize::from(event.trace)) else { return };
        let t = event.time;
        self.end = self.end.max(t);
        // What tells of threads alone may have been made up when the recording began, with no time and on no CPU.
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
        let Some(c) = self.cpu(origin.host, event.cpu, t) else { return };
        let thread = match event.kind {
            // Of a switch, and of what is followed elsewhere, the thread is told, not that it runs now.
            Kind::Switch { .. } | Kind::Stack { witness: false, .. } => self.named(c, event, ids),
            _ => self.running(c, event, ids),
        };
        self.on_cpu(c, event, origin, thread, ids);
    }

    /// An event of a kernel trace on CPU `c`, where `thread` runs.
    fn on_cpu(
        &mut self,
        c: usize,
        event: &Event,
        origin: TraceOrigin,
        thread: Option<ThreadId>,
        ids: &mut BatchIds<'_>,
    ) {
        let (t, host) = (event.time, origin.host);
        if let Kind::Stack { kernel: Some(kernel), .. } = event.kind {
            self.chain = Some((c, t, kernel));
        }
        match event.kind {
            Kind::Switch { .. } => self.switched(c, event, origin, ids),
            Kind::Wake { .. } => self.woke(c, event, host, ids),
            Kind::Migrate { tid, cpu } => self.migrate(t, host, tid, u32::from(cpu)),
            Kind::Enter { context, name } => self.enter(c, t, context, name, ids),
            Kind::Raise { soft_irq } => self.cpus[c].raise(soft_irq),
            Kind::Leave { context } => {
                if self.cpus[c].leave(t, context) {
                    self.interrupt(c, t, None);
                }
            }
            Kind::Send(id) => {
                if let Some(packet) = ids.batch.packet_of(id)
                    && let Some((by, at)) = self.sender(c, t, packet)
                {
                    let ended = self.packets.send(host, packet, by, at);
                    self.came_early(ended, by, at);
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
                    self.count(c, thread, t, name, value);
                }
            }
            Kind::Lost { source, resumes, .. } => self.lose(c, t, source, resumes),
            Kind::CallEntry { .. } | Kind::CallExit { .. } => {
                self.go_on(c);
                self.common(event, origin, thread, ids);
            }
            kind if self.thread_event(t, host, kind, ids) => {}
            _ => self.common(event, origin, thread, ids),
        }
    }

    /// A switch names both threads.
    fn switched(&mut self, c: usize, event: &Event, origin: TraceOrigin, ids: &mut BatchIds<'_>) {
        let t = event.time;
        let Kind::Switch { prev, next, prev_state, prev_name, next_name } = event.kind else { return };
        let prev = self.thread_on(c, prev, t);
        self.name(prev, t, prev_name, ids);
        let exited = self.threads[prev].exited;
        let leaves = origin.generation.decode(prev_state, exited);
        let next = self.thread_on(c, next, t);
        self.name(next, t, next_name, ids);
        self.switch(c, t, prev, leaves, next);
        self.threads[prev].uninterruptible = prev_state & UNINTERRUPTIBLE != 0;
        let at_work = leaves == Leaves::Ready || prev_state & (UNINTERRUPTIBLE | NO_LOAD) == UNINTERRUPTIBLE;
        if !at_work {
            self.services.rest(prev, t);
        }
    }

    /// A wake-up names the woken; the call chain that came with it is evidence of who or what ended the wait.
    fn woke(&mut self, c: usize, event: &Event, host: HostId, ids: &mut BatchIds<'_>) {
        let t = event.time;
        self.cpus[c].see(t);
        let Kind::Wake { tid, cpu, source, name } = event.kind else { return };
        if tid == 0 {
            return;
        }
        let woken = self.thread(host, tid, t);
        self.name(woken, t, name, ids);
        self.wake(c, t, woken, u32::from(cpu), source);
        if let Some((_, _, kernel)) = self.chain.take().filter(|(at, when, _)| (*at, *when) == (c, t))
            && let Some(stack) = ids.stack(&mut self.out.stacks, Some(kernel))
        {
            self.out.wake_stacks.push((woken, t, stack));
        }
    }

    /// The CPU enters an interrupt context.
    fn enter(&mut self, c: usize, t: Timestamp, context: Context, name: TextId, ids: &mut BatchIds<'_>) {
        let host = self.cpus[c].host;
        let mut name = ids.name(&mut self.out, name);
        if let (None, Context::Irq(irq)) = (name, context) {
            name = self.lines.get(&(host, irq)).copied();
        }
        if let (Context::Irq(_) | Context::SoftIrq(_), Some(quality)) =
            (context, self.out.quality.get_mut(host.index()))
        {
            quality.interrupts += 1;
        }
        let (ended, begins) = self.cpus[c].enter(t, context, name);
        if let Some(ended) = ended {
            self.interrupt(c, ended, None);
        }
        if begins {
            self.interrupt(c, t, Some(Interruption { by: name }));
        }
    }

    /// A block request moves on.
    fn block(&mut self, c: usize, t: Timestamp, step: RequestStep, request: &BlockRequest, running: Option<ThreadId>) {
        let host = self.cpus[c].host;
        let named = request.tid.filter(|_| step != RequestStep::Complete);
        let thread = named.map_or(running, |tid| Some(self.thread_on(c, tid, t)));
        let for_whom = thread.and_then(|thread| self.services.of(thread)).map(|(client, _)| client);
        let lost = |since| self.losses.first(host, None, since, t);
        let completed = self.requests.step(t, host, step, request, Submitter { thread, for_whom }, lost);
        if let Some(submitter) = completed {
            self.cpus[c].completed = Some((t, submitter));
            self.threads[submitter].request_done = t;
        }
    }

    /// A piece of work moves on; one that is queued in an interrupt is nobody's.
    fn work(&mut self, c: usize, t: Timestamp, step: WorkStep, address: u64, thread: Option<ThreadId>) {
        let alone = self.cpus[c].context().is_none();
        let work = match (step, thread) {
            (WorkStep::Queue, by) => WorkChange::Queued(by.filter(|by| alone && !self.threads[*by].thread.idle)),
            (WorkStep::Begin, Some(worker)) => WorkChange::Begins(worker),
            (WorkStep::End, Some(worker)) => WorkChange::Ends(worker),
            _ => return,
        };
        self.services.step(t, self.cpus[c].host, address, work);
    }

    /// The thread on a CPU goes on: no handler lasts any more.
    pub(super) fn go_on(&mut self, c: usize) {
        if let Some(ended) = self.cpus[c].go_on() {
            self.interrupt(c, ended, None);
        }
    }

    /// The outermost interrupt context of a CPU begins or ends, and with it the interruption of its thread.
    fn interrupt(&mut self, c: usize, t: Timestamp, by: Option<Interruption>) {
        let Some(thread) = self.cpus[c].thread else { return };
        let state = &mut self.threads[thread];
        if state.sched == Sched::Running(c) && !state.runs_softirqs {
            let label = state.own_label(&self.reasons);
            state.cut(t, label);
            state.interrupted = by;
        }
    }
}
