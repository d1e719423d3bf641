//! What a worker has prepared of a chunk, and how the machine takes it.
//!
//! In: the events that only the machine can step through and, at their places among these, what the worker's own
//! machine has made of the others: slots and rows of threads and CPUs. Out: the machine as if it had stepped through
//! all of them. The worker's ids (names, threads, CPUs, senders of packets) become ids of this machine. Cost: some
//! nanoseconds for each row, about a hundred for each thread that is handed over.

use super::cpu::{CpuId, CpuSlots};
use super::machine::{BatchIds, Machine};
use super::slots::{KnownSlots, ThreadSlots};
use super::thread_state::{Interruption, Label, OpenCall, Sched};
use crate::base::heap::{HeapSize, block};
use crate::base::names::NameId;
use crate::base::notice::Notice;
use crate::base::time::Timestamp;
use crate::event::kind::{Event, PacketId, TextId, ThreadContextId};
use crate::event::stack::RawStackId;
use crate::model::facts::Quality;
use crate::reading::batch::Batch;
use crate::state::threads::HostTid;
use crate::state::timeline::{Call, CpuRun, HostId, Segment, StackSample, ThreadId, ThreadName, WakeStack, Waker};
use std::collections::BTreeSet;
use std::ops::Range;

/// Ids from here on are no threads of the worker's machine: they are the unknown senders of packets, by number.
const SENDERS: u32 = 1 << 31;

/// The sender of a packet, by its number among the receives of a chunk.
pub(super) fn sender_of(receive: usize) -> Waker {
    Waker { thread: ThreadId::from_raw(SENDERS | receive as u32), at: Timestamp::MIN }
}

/// True for an id that is the number of an unknown sender.
pub(super) fn is_sender(thread: ThreadId) -> bool {
    thread.raw() & SENDERS != 0
}

/// A thing that the machine does at a place among the events that are left. Threads and CPUs are the worker's.
#[derive(Clone, Copy, Debug)]
pub(super) enum Due {
    /// A text becomes a name: names are numbered in the order of all events.
    Name {
        text: TextId,
        local: NameId,
    },
    /// The same for a stack.
    Stack(RawStackId),
    /// The call chain that was recorded with the wake-up that follows.
    WakeChain(RawStackId),
    /// One of the moments at which rows may be sealed; the worker has made rows of so many events since the last one.
    Seal {
        events: u32,
    },
    /// The worker's next thread is the one that runs on a CPU.
    Hold {
        cpu: CpuId,
    },
    /// The worker's next thread gets a CPU.
    GetCpu {
        cpu: CpuId,
        t: Timestamp,
        tid: i32,
        name: TextId,
    },
    /// The worker's next thread has just been forked.
    Child {
        host: HostId,
        tid: i32,
    },
    /// A context describes a thread.
    Describe {
        thread: ThreadId,
        who: ThreadContextId,
        t: Timestamp,
    },
    /// The next part of a thread.
    Thread,
    /// The next part of a CPU.
    Cpu,
    /// The event that follows happens on this thread.
    On(ThreadId),
    Send {
        host: HostId,
        packet: PacketId,
        sender: Waker,
    },
    Receive {
        host: HostId,
        packet: PacketId,
    },
    /// A thread has no more work to do.
    Rest {
        thread: ThreadId,
        t: Timestamp,
    },
    /// A wake-up had a call chain.
    Woke(WakeStack),
    /// A thread got another CPU than the one in whose queue its waker put it.
    QueuedElsewhere(Timestamp),
}

/// A thing at its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct DueAt {
    /// Number of events before it.
    pub at: u32,
    pub due: Due,
}

/// What events have made of a thread since its last part.
#[derive(Clone, Debug)]
pub(super) struct ThreadPart {
    pub thread: ThreadId,
    pub slots: ThreadSlots,
    pub known: KnownSlots,
    pub segments: Range<usize>,
    pub calls: Range<usize>,
    pub samples: Range<usize>,
    pub names: Range<usize>,
}

/// What events have made of a CPU since its last part.
#[derive(Clone, Debug)]
pub(super) struct CpuPart {
    pub cpu: CpuId,
    pub slots: CpuSlots,
    /// The soft interrupts of which the worker does not know whether they were raised, one bit each.
    pub unknown_raised: u32,
    pub runs: Range<usize>,
}

/// What a worker has prepared of a batch, besides the events that it left there.
#[derive(Clone, Debug, Default)]
pub(super) struct Prepared {
    /// By place.
    pub due: Vec<DueAt>,
    /// Number of names that the worker's machine had at first, as this one had.
    pub own_names: usize,
    /// By the worker's ids.
    pub cpus: Vec<LocalCpu>,
    pub thread_parts: Vec<ThreadPart>,
    pub cpu_parts: Vec<CpuPart>,
    /// The rows of all parts.
    pub segments: Vec<Segment>,
    pub calls: Vec<Call>,
    pub samples: Vec<StackSample>,
    pub names: Vec<ThreadName>,
    pub runs: Vec<CpuRun>,
    /// By host.
    pub quality: Vec<Quality>,
    pub unrecorded: BTreeSet<(HostId, u32)>,
    /// Time of the first event.
    pub start: Option<Timestamp>,
    /// Time of the last event that the worker stepped through.
    pub end: Option<Timestamp>,
    /// Number of events since the last moment for sealing.
    pub unsealed: u32,
}

/// A CPU of the worker's machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LocalCpu {
    pub host: HostId,
    pub number: u16,
}

impl Prepared {
    /// Its memory, for another batch.
    pub fn emptied(mut self) -> Prepared {
        self.due.clear();
        self.cpus.clear();
        self.thread_parts.clear();
        self.cpu_parts.clear();
        self.segments.clear();
        self.calls.clear();
        self.samples.clear();
        self.names.clear();
        self.runs.clear();
        Prepared { quality: Vec::new(), unrecorded: BTreeSet::new(), start: None, end: None, unsealed: 0, ..self }
    }
}

impl HeapSize for Prepared {
    fn heap_bytes(&self) -> usize {
        let parts = block(&self.due) + block(&self.cpus) + block(&self.thread_parts) + block(&self.cpu_parts);
        let rows = block(&self.segments) + block(&self.calls) + block(&self.samples) + block(&self.runs);
        parts + rows + block(&self.names) + block(&self.quality)
    }
}

/// The ids of this machine for those of a worker's.
struct Ids {
    names: Vec<NameId>,
    threads: Vec<ThreadId>,
    cpus: Vec<Option<CpuId>>,
    /// By number of the receive.
    senders: Vec<Option<Waker>>,
}

impl Ids {
    #[inline]
    fn name(&self, name: NameId) -> NameId {
        self.names.get(name.index()).copied().unwrap_or(name)
    }

    #[inline]
    fn thread(&self, thread: ThreadId) -> ThreadId {
        self.threads.get(thread.index()).copied().unwrap_or(thread)
    }

    fn waker(&self, waker: Waker) -> Option<Waker> {
        let raw = waker.thread.raw();
        match raw & SENDERS {
            0 => Some(Waker { thread: self.thread(waker.thread), ..waker }),
            _ => *self.senders.get((raw & !SENDERS) as usize)?,
        }
    }

    fn label(&self, label: Label) -> Label {
        Label {
            waker: label.waker.and_then(|waker| self.waker(waker)),
            qualifier: label.qualifier.map(|name| self.name(name)),
            ..label
        }
    }

    fn slots(&self, mut slots: ThreadSlots) -> ThreadSlots {
        if let Sched::Running(cpu) = slots.sched
            && let Some(Some(cpu)) = self.cpus.get(cpu.index())
        {
            slots.sched = Sched::Running(*cpu);
        }
        if let Some(Interruption { handler: Some(name) }) = &mut slots.interrupted {
            *name = self.name(*name);
        }
        if let Some(wake) = &mut slots.early_wake {
            wake.label = self.label(wake.label);
        }
        slots.call = slots.call.map(|call| OpenCall { name: self.name(call.name), ..call });
        slots
    }

    fn segment(&self, segment: &Segment) -> Segment {
        Segment {
            waker: segment.waker.and_then(|waker| self.waker(waker)),
            qualifier: segment.qualifier.map(|name| self.name(name)),
            ..*segment
        }
    }
}

/// The machine while it takes what a worker has prepared.
struct Join<'b> {
    batch: BatchIds<'b>,
    prepared: &'b Prepared,
    ids: Ids,
    thread_parts: std::slice::Iter<'b, ThreadPart>,
    cpu_parts: std::slice::Iter<'b, CpuPart>,
    /// The thread of the next event.
    on: Option<ThreadId>,
}

impl Machine {
    /// Step through the events of a batch, and take what was made of the others; batches come in order of time.
    pub(super) fn absorb_prepared(&mut self, batch: &Batch, prepared: &Prepared) {
        let own = (0..prepared.own_names).map(NameId::at).collect();
        let mut join = Join {
            batch: BatchIds::new(batch),
            prepared,
            ids: Ids { names: own, threads: Vec::new(), cpus: vec![None; prepared.cpus.len()], senders: Vec::new() },
            thread_parts: prepared.thread_parts.iter(),
            cpu_parts: prepared.cpu_parts.iter(),
            on: None,
        };
        let mut stepped = 0;
        for DueAt { at, due } in &prepared.due {
            let at = *at as usize;
            self.step_all(batch.events.get(stepped..at).unwrap_or(&[]), &mut join);
            stepped = at;
            self.take(due, &mut join);
        }
        self.step_all(batch.events.get(stepped..).unwrap_or(&[]), &mut join);
        self.unsealed_events += prepared.unsealed as usize;
        self.end = prepared.end.map_or(self.end, |end| self.end.max(end));
        for (mine, theirs) in self.out.tables.quality.iter_mut().zip(&prepared.quality) {
            mine.switches += theirs.switches;
            mine.interrupts += theirs.interrupts;
        }
        self.unrecorded.extend(&prepared.unrecorded);
    }

    fn step_all(&mut self, events: &[Event], join: &mut Join<'_>) {
        for event in events {
            match join.on.take() {
                Some(thread) => self.step_on(event, thread, &mut join.batch),
                None => self.step(event, &mut join.batch),
            }
        }
        self.unsealed_events += events.len();
    }

    fn take(&mut self, due: &Due, join: &mut Join<'_>) {
        let Join { batch, ids, .. } = join;
        match *due {
            Due::Name { text, local } => {
                if let Some(name) = batch.name(&mut self.out, text)
                    && ids.names.len() == local.index()
                {
                    ids.names.push(name);
                }
            }
            Due::Stack(stack) => _ = batch.stack(&mut self.out.tables.stacks, Some(stack)),
            Due::WakeChain(stack) => batch.wake_chain = Some(stack),
            Due::Seal { events } => {
                self.unsealed_events += events as usize;
                self.seal_rows();
            }
            Due::Hold { cpu } => {
                let Some(LocalCpu { host, number }) = join.prepared.cpus.get(cpu.index()).copied() else { return };
                let global = self.cpus.id(host, number, self.end);
                ids.cpus[cpu.index()] = global;
                let thread = global.and_then(|c| self.cpus[c].thread);
                ids.threads.push(thread.unwrap_or(ThreadId::at(0)));
            }
            Due::GetCpu { cpu, t, tid, name } => {
                let Some(Some(c)) = ids.cpus.get(cpu.index()).copied() else { return };
                let thread = self.next_on(c, tid, t);
                self.name(thread, t, name, batch);
                self.get_cpu(c, t, thread);
                ids.threads.push(thread);
            }
            Due::Child { host, tid } => {
                let child = self.threads.latest(HostTid::new(host, tid));
                ids.threads.push(child.unwrap_or(ThreadId::at(0)));
            }
            Due::Describe { thread, who, t } => {
                if let Some(context) = batch.batch.context(who) {
                    self.describe(ids.thread(thread), t, context, batch);
                }
            }
            Due::Thread => join.thread_parts.next().into_iter().for_each(|part| {
                self.take_thread(part, join.prepared, &join.batch, &join.ids);
            }),
            Due::Cpu => join.cpu_parts.next().into_iter().for_each(|part| {
                self.take_cpu(part, join.prepared, &join.ids);
            }),
            Due::On(thread) => join.on = Some(ids.thread(thread)),
            Due::Send { host, packet, sender } => {
                if let (Some(packet), Some(sender)) = (batch.batch.packet_of(packet), ids.waker(sender)) {
                    let ended = self.packets.send(host, packet, sender);
                    self.came_early(ended, sender);
                }
            }
            Due::Receive { host, packet } => {
                let packet = batch.batch.packet_of(packet);
                ids.senders.push(packet.and_then(|packet| self.packets.receive(host, packet)));
            }
            Due::Rest { thread, t } => self.services.rest(ids.thread(thread), t),
            Due::Woke(WakeStack { woken, time, stack }) => {
                if let Some(stack) = batch.known_stack(Some(stack)) {
                    self.out.tables.wake_stacks.push(WakeStack { woken: ids.thread(woken), time, stack });
                }
            }
            Due::QueuedElsewhere(t) => self.notices.add(Notice::QueuedElsewhere, 1, || format!("at {t} ns")),
        }
    }

    /// The thread that a switch on CPU `c` names, and that does not run there.
    fn next_on(&mut self, c: CpuId, tid: i32, t: Timestamp) -> ThreadId {
        let cpu = &self.cpus[c];
        if let Some(idle) = cpu.idle.filter(|_| tid == 0) {
            return idle;
        }
        let key = HostTid::on_cpu(cpu.host, cpu.number, tid);
        let thread = self.instance(key, self.threads.holder(key), t);
        if key.is_idle() {
            self.cpus[c].idle = Some(thread);
        }
        thread
    }

    fn take_thread(&mut self, part: &ThreadPart, prepared: &Prepared, batch: &BatchIds<'_>, ids: &Ids) {
        let thread = ids.thread(part.thread);
        let state = &mut self.threads[thread];
        for ThreadName { from, name } in prepared.names.get(part.names.clone()).unwrap_or(&[]) {
            let name = ids.name(*name);
            if state.thread.names.last().map(|last| last.name) != Some(name) {
                state.push_name(*from, name);
                state.named_by_exec = false;
                state.runs_softirqs = self.out.tables.names.get(name).starts_with("ksoftirqd/");
            }
        }
        let segments = prepared.segments.get(part.segments.clone()).unwrap_or(&[]);
        state.rows.segments.reserve(segments.len());
        segments.iter().for_each(|segment| state.add_segment(ids.segment(segment)));
        let calls = prepared.calls.get(part.calls.clone()).unwrap_or(&[]);
        let samples = prepared.samples.get(part.samples.clone()).unwrap_or(&[]);
        let call = |call: &Call| Call { name: ids.name(call.name), ..*call };
        let sample = |sample: &StackSample| StackSample {
            user: batch.known_stack(sample.user),
            kernel: batch.known_stack(sample.kernel),
            ..*sample
        };
        state.rows.calls.extend(calls.iter().map(call));
        state.rows.samples.extend(samples.iter().map(sample));
        state.set_slots(&ids.slots(part.slots), part.known);
    }

    fn take_cpu(&mut self, part: &CpuPart, prepared: &Prepared, ids: &Ids) {
        let Some(Some(c)) = ids.cpus.get(part.cpu.index()).copied() else { return };
        let cpu = &mut self.cpus[c];
        let runs = prepared.runs.get(part.runs.clone()).unwrap_or(&[]);
        cpu.runs.extend(runs.iter().map(|run| CpuRun { thread: ids.thread(run.thread), ..*run }));
        let mut slots = part.slots.clone();
        slots.rename(|name| ids.name(name), |thread| ids.thread(thread), |waker| ids.waker(waker));
        cpu.continue_with(slots, part.unknown_raised);
    }
}
