//! The work of the kernel machine that a worker does for its chunk, without the states before it.
//!
//! In: a batch of events in their order. Out: the events that the machine has to step through, and what a machine of
//! the worker's own has made of the others ([`Prepared`]). The idea: a switch sets the slots of a thread and of a CPU
//! whatever they were before, and the entry or exit of a call shows most of them. From there on the worker *holds*
//! them: its machine, the same code, steps through their events as long as these ask for nothing that it does not hold.
//! Any other event is left for the machine that joins the chunks and knows all states: before it, the worker hands over
//! the state that the event may read, and drops the state that it may write. Events that may meet keep their order so,
//! and the machine ends in the same state. ALGORITHMS.md section 10.7, after \[004\] 4.5.2.
//!
//! - A CPU is held with the thread that runs on it; its other threads stay held when they leave it.
//! - A user-space event may ask for any thread by ids that are not known here; nothing is held then, unless it only
//!   delimits an execution.
//! - Names and stacks get their ids in the order of all events, both those that are left and the others.
//!
//! - [`held`]: taking hold, handing over
//! - [`first`]: the first thread of a CPU
//! - [`follow`]: the events of a held CPU
//! - [`wakes`]: its wake-ups
//! - [`packets`]: its packets
//! - [`requests`]: its block requests
//! - [`chains`]: call chains of wake-ups
//!
//! Cost: that of the machine's steps, and some nanoseconds for each event.

mod chains;
mod first;
mod follow;
mod held;
mod packets;
mod requests;
mod wakes;

#[cfg(test)]
mod tests;

use super::cpu::CpuId;
use super::machine::{BatchIds, Machine};
use super::prepared::{Due, DueAt, LocalCpu, Prepared};
use super::remarks;
use super::sealed_rows::SealMoments;
use crate::event::host::HostId;
use crate::event::kind::{Event, Kind, TextId, ThreadContextId};
use crate::event::stack::RawStackId;
use crate::kernel::threads::HostTid;
use crate::reading::batch::Batch;
pub(super) use chains::WakeChains;
pub(super) use first::FirstThread;
use foldhash::{HashMap, HashSet};
use held::{HeldCpu, HeldThread};
use packets::ChunkPackets;
use requests::OpenRequests;

/// What a worker has to know of the machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct PrepareOptions {
    /// Delimiters may be entries and exits of functions.
    pub has_pairs: bool,
    pub seal_moments: SealMoments,
}

/// A worker at its chunk.
struct Preparation<'b> {
    batch: &'b Batch,
    options: PrepareOptions,
    /// The events, those that are left in front.
    events: Vec<Event>,
    /// Number of those that are left.
    left: usize,
    /// The worker's own machine, and its ids for those of the batch.
    machine: Machine,
    ids: BatchIds<'b>,
    /// By its ids.
    threads: Vec<HeldThread>,
    cpus: Vec<HeldCpu>,
    /// Hosts of which a switch was left.
    has_switches: HashSet<HostId>,
    /// Number of the event.
    number: u32,
    /// Ids whose thread an event of the chunk may have ended, or may have given another id, by number of the last.
    ended: HashMap<HostTid, u32>,
    /// By text and stack: it has an id.
    has_name: Vec<bool>,
    has_stack: Vec<bool>,
    chains: WakeChains,
    packets: ChunkPackets,
    requests: OpenRequests,
    out: Prepared,
}

/// Prepare the events of a batch: those that the worker's `machine`, a new one, steps through leave it. `spare` gives
/// its memory.
pub(super) fn prepare(batch: &mut Batch, machine: Machine, options: PrepareOptions, mut spare: Prepared) -> Prepared {
    let events = std::mem::take(&mut batch.events);
    let remarks = remarks::find(batch, &events, &machine.origins);
    let own_names = machine.out.tables.names.len();
    let start = events.first().map(|event| event.time);
    let span = start.zip(events.last().map(|event| event.time)).unwrap_or_default();
    let mut preparation = Preparation {
        batch,
        options,
        left: 0,
        machine,
        ids: BatchIds::of_worker(batch),
        threads: Vec::new(),
        cpus: Vec::new(),
        has_switches: HashSet::default(),
        number: 0,
        ended: HashMap::default(),
        has_name: vec![false; batch.texts()],
        has_stack: vec![false; batch.stacks.len()],
        chains: WakeChains::default(),
        packets: ChunkPackets::new(std::mem::take(&mut spare.packets)),
        requests: OpenRequests::default(),
        out: Prepared { own_names, start, remarks, ..spare },
        events,
    };
    if preparation.machine.out.tables.hosts.len() > 1 {
        preparation.packets.forget();
    }
    for at in 0..preparation.events.len() {
        let event = preparation.events[at];
        preparation.number = at as u32;
        preparation.next(&event);
    }
    preparation.hand_over_all();
    let Preparation { mut events, left, mut out, machine, packets, .. } = preparation;
    out.packets = packets.finish(span.0, span.1);
    events.truncate(left);
    batch.events = events;
    (out.names, out.threads) = (machine.out.tables.names.len(), machine.threads.len());
    out.quality = machine.out.tables.quality;
    out.unrecorded = machine.unrecorded;
    out
}

impl Preparation<'_> {
    fn next(&mut self, event: &Event) {
        if self.options.seal_moments.holds(event) {
            self.hand_over_all();
            let events = std::mem::take(&mut self.out.unsealed);
            self.due(Due::Seal { events });
        }
        let Some(&origin) = self.machine.origins.get(usize::from(event.trace)) else { return self.leave(event) };
        let host = origin.host;
        if event.who == ThreadContextId::ABSENT && is_thread_event(event.kind) {
            // It concerns no CPU.
            self.meet_named(host, event.kind);
            return self.leave(event);
        }
        if !origin.kernel {
            return self.user(host, event);
        }
        let chain = self.chains.next(host, event);
        let is_unplaced =
            event.cpu == Event::NO_CPU || matches!(event.kind, Kind::Leaves { .. } | Kind::Returns { .. });
        if is_unplaced {
            return self.leave_unplaced(host, event, chain);
        }
        let Some(c) = self.cpu(host, event) else { return self.leave(event) };
        if self.cpus[c.index()].is_held {
            self.on_held(c, origin, event, chain);
        } else {
            self.on_other(c, origin, event, chain);
        }
    }

    /// An event of an unknown CPU may be of any thread, and a loss may be on any CPU. Who runs on a CPU after a thread
    /// has left or got it alone is known to the machine.
    fn leave_unplaced(&mut self, host: HostId, event: &Event, chain: Option<RawStackId>) {
        self.release_all();
        self.meet_named(host, event.kind);
        self.cpus.iter_mut().for_each(|cpu| cpu.running = None);
        if let Kind::Lost { resumes, .. } = event.kind {
            self.packets.forget();
            self.machine.losses.begin(host, u32::from(Event::NO_CPU), event.time, resumes);
        }
        self.leave_with(event, chain);
    }

    /// The CPU of an event.
    fn cpu(&mut self, host: HostId, event: &Event) -> Option<CpuId> {
        let c = self.machine.cpus.id(host, event.cpu, event.time)?;
        if c.index() == self.cpus.len() {
            self.cpus.push(HeldCpu::default());
            self.out.cpus.push(LocalCpu { host, number: event.cpu });
        }
        Some(c)
    }

    /// Leave an event to the machine.
    fn leave(&mut self, event: &Event) {
        if let Some(origin) = self.machine.origins.get(usize::from(event.trace)) {
            match event.kind {
                Kind::Send(packet) | Kind::Receive(packet) => self.packets.leave(self.batch, origin.host, packet),
                Kind::Block { request, .. } => self.requests.leave(self.batch, origin.host, request),
                _ => {}
            }
        }
        self.events[self.left] = *event;
        self.left += 1;
    }

    /// Leave an event with the call chain that was recorded with it.
    fn leave_with(&mut self, event: &Event, chain: Option<RawStackId>) {
        chain.into_iter().for_each(|stack| self.due(Due::WakeChain(stack)));
        self.leave(event);
    }

    fn due(&mut self, due: Due) {
        self.out.due.push(DueAt { at: self.left as u32, due });
    }

    /// The worker's machine steps through an event.
    fn step(&mut self, event: &Event) {
        self.machine.step(event, &mut self.ids);
        self.stepped(event);
    }

    /// An event is not left.
    fn stepped(&mut self, event: &Event) {
        self.out.unsealed += 1;
        self.out.end = self.out.end.max(Some(event.time));
    }

    /// Threads that an event of any trace names by their ids: they are not held any more.
    fn meet_named(&mut self, host: HostId, kind: Kind) {
        let batch = self.batch;
        self.ends(host, kind);
        let mut meet = |tid: i32| self.release_tid(HostTid::new(host, tid));
        match kind {
            Kind::Wake { tid, .. }
            | Kind::Migrate { tid, .. }
            | Kind::Namespace { tid, .. }
            | Kind::Name { tid, .. }
            | Kind::Exit { tid }
            | Kind::Free { tid } => meet(tid),
            Kind::Fork { parent, child, .. } => [parent, child].into_iter().for_each(meet),
            Kind::Exec { tid, old_tid, .. } => {
                [tid, old_tid].into_iter().for_each(meet);
                // A thread that runs may have another id now.
                if tid != old_tid {
                    [tid, old_tid].into_iter().for_each(|tid| self.runs_on(None, HostTid::new(host, tid)));
                }
            }
            Kind::Process(id) => batch.process_of(id).into_iter().for_each(|process| meet(process.tid)),
            _ => {}
        }
    }

    /// Ids whose thread an event may end, or may give another id.
    fn ends(&mut self, host: HostId, kind: Kind) {
        let mut end = |tid: i32| _ = self.ended.insert(HostTid::new(host, tid), self.number);
        match kind {
            Kind::Free { tid } | Kind::Fork { child: tid, .. } => end(tid),
            Kind::Exec { tid, old_tid, .. } if tid != old_tid => [tid, old_tid].into_iter().for_each(end),
            _ => {}
        }
    }

    /// A user-space event.
    fn user(&mut self, host: HostId, event: &Event) {
        if !matches!(event.kind, Kind::Mark(_)) || self.options.has_pairs {
            self.release_all();
            return self.leave(event);
        }
        // It asks for the thread that runs on its CPU and the one that has its id, and changes neither.
        if let Some(c) = self.cpu(host, event) {
            self.hand_over_cpu(c);
        }
        let context = self.batch.context(event.who);
        if let Some(tid) = context.and_then(|context| context.vtid.or(context.tid))
            && let Some(thread) = self.machine.threads.alive(HostTid::new(host, tid))
        {
            if self.machine.has_recorded(host, event.cpu.into()) {
                self.hand_over_thread(thread);
            } else {
                self.release_thread(thread);
            }
        }
        self.leave(event);
    }

    fn need_name(&mut self, name: TextId) {
        if let Some(has_name) = self.has_name.get_mut(name.index())
            && !std::mem::replace(has_name, true)
            && let Some(local) = self.ids.name(&mut self.machine.out, name)
        {
            self.due(Due::Name { text: name, local });
        }
    }

    fn need_stack(&mut self, stack: RawStackId) {
        if let Some(has_stack) = self.has_stack.get_mut(stack.index())
            && !std::mem::replace(has_stack, true)
        {
            self.due(Due::Stack(stack));
        }
    }
}

/// True for the events that describe threads by their ids.
fn is_thread_event(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Fork { .. }
            | Kind::Exec { .. }
            | Kind::Exit { .. }
            | Kind::Free { .. }
            | Kind::Process(_)
            | Kind::Namespace { .. }
            | Kind::Mapped { .. }
            | Kind::Name { .. }
    )
}
