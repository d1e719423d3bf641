//! How the machine takes what a worker has prepared of a chunk.
//!
//! In: the events that are left and, at their places among these, what the worker has made of the others. Out: the
//! machine as if it had stepped through all of them. The worker's ids become ids of this machine; most rows get theirs
//! later (`worker_rows`). Cost: about a hundred nanoseconds for each thread that is handed over.

use super::chunk_requests::TakenRequests;
use super::cpu::CpuId;
use super::fork::Inherited;
use super::machine::{BatchIds, Machine};
use super::packet_pairs::{PacketSender, RoutedPacket, SendFate, TakenPackets};
use super::prepared::{Child, CpuPart, Due, DueAt, LocalCpu, Prepared, ThreadPart};
use super::slots::ThreadSlots;
use super::thread_state::{Interruption, Sched};
use super::worker_rows::{Ids, TakenRows, WorkerRows};
use crate::base::names::NameId;
use crate::base::notice::Notice;
use crate::base::time::Timestamp;
use crate::event::host::HostId;
use crate::event::kind::Event;
use crate::kernel::threads::HostTid;
use crate::reading::batch::Batch;
use crate::timeline::{ThreadId, ThreadName, WakeStack, Waker};
use std::sync::Arc;

/// The machine while it takes what a worker has prepared.
struct Join<'b> {
    batch: BatchIds<'b>,
    prepared: &'b Prepared,
    rows: Arc<WorkerRows>,
    ids: Ids,
    packets: TakenPackets<'b>,
    requests: TakenRequests<'b>,
    children: std::vec::IntoIter<Child>,
    thread_parts: std::slice::Iter<'b, ThreadPart>,
    cpu_parts: std::slice::Iter<'b, CpuPart>,
    /// The thread of the next event.
    on: Option<ThreadId>,
}

impl Join<'_> {
    fn taken(&self) -> TakenRows<'_> {
        TakenRows { rows: &self.rows, ids: &self.ids, stacks: self.batch.stacks() }
    }
}

impl Machine {
    /// Step through the events of a batch, and take what was made of the others; batches come in order of time. Returns
    /// the rows, which slabs may still read.
    pub(super) fn absorb_prepared(&mut self, batch: &Batch, prepared: &mut Prepared) -> Arc<WorkerRows> {
        self.packets.drop_unused();
        self.take_remarks(std::mem::take(&mut prepared.remarks));
        let rows = WorkerRows::new(std::mem::take(&mut prepared.rows));
        let children = std::mem::take(&mut prepared.children).into_iter();
        let prepared = &*prepared;
        let mut names = Vec::with_capacity(prepared.names);
        names.extend((0..prepared.own_names).map(NameId::at));
        let (threads, cpus) = (Vec::with_capacity(prepared.threads), vec![None; prepared.cpus.len()]);
        let mut join = Join {
            batch: BatchIds::in_memory_of(std::mem::take(&mut self.spare_described), batch),
            prepared,
            rows,
            ids: Ids { names, threads, cpus, senders: Vec::with_capacity(prepared.packets.receives.len()) },
            packets: TakenPackets::new(&prepared.packets),
            requests: TakenRequests::new(
                &prepared.requests,
                self.requests.has_room(batch.events.len() + prepared.requests.len()),
            ),
            children,
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
        let Join { batch, rows, ids, .. } = join;
        let (stacks, described) = batch.into_parts();
        rows.set_ids(ids, stacks);
        self.spare_described = described;
        rows
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
            Due::Stack(stack) => _ = batch.stack(&mut self.out.tables, Some(stack)),
            Due::WakeChain(stack) => batch.wake_chain = Some(stack),
            Due::Seal { events } => {
                self.unsealed_events += events as usize;
                self.seal_rows();
                if !self.has_room_for_slabs() {
                    join.rows.set_ids(ids.clone(), batch.stacks().to_vec());
                    self.seal_slabs();
                }
            }
            Due::Hold { cpu } => self.take_hold(cpu, join.prepared, ids),
            Due::GetCpu { cpu, t, tid, name, left_idle_state } => {
                let Some(Some(c)) = ids.cpus.get(cpu.index()).copied() else { return };
                let thread = self.next_on(c, tid, t);
                self.name(thread, t, name, batch);
                self.get_cpu(c, t, thread, left_idle_state);
                ids.threads.push(thread);
            }
            Due::Fork => join.children.next().into_iter().for_each(|child| {
                let child = self.take_child(child, ids, batch);
                ids.threads.push(child);
            }),
            Due::Describe { thread, who, t } => {
                if let Some(context) = batch.batch.context(who) {
                    self.describe(ids.thread(thread), t, context, batch);
                }
            }
            Due::Thread => join.thread_parts.next().into_iter().for_each(|part| {
                self.take_thread(part, &join.taken());
            }),
            Due::Cpu => join.cpu_parts.next().into_iter().for_each(|part| {
                self.take_cpu(part, &join.taken());
            }),
            Due::On(thread) => join.on = Some(ids.thread(thread)),
            Due::Send { host, packet, route } => {
                let send = join.packets.next_send();
                let packet = batch.batch.packet_of(packet).map(|packet| RoutedPacket { host, packet, route });
                if let (Some(of), Some(send)) = (packet, send)
                    && let Some(sender) = ids.waker(send.sender)
                {
                    self.take_send(of, sender, send.fate, &mut join.packets);
                }
            }
            Due::Receive { host, packet, route } => {
                let packet = batch.batch.packet_of(packet).map(|packet| RoutedPacket { host, packet, route });
                let sender = packet.and_then(|of| join.packets.sender(of, &mut self.packets));
                ids.senders.push(sender.and_then(|sender| match sender {
                    PacketSender::Known(sender) => Some(sender),
                    PacketSender::OfChunk(sender) => ids.waker(sender),
                }));
            }
            Due::Block(event) => {
                let Some(Some(c)) = ids.cpus.get(event.cpu.index()).copied() else { return };
                if let Some(request) = batch.batch.request_of(event.request) {
                    let by = ids.thread(event.by);
                    self.take_block(c, by, &event, request, &mut join.requests);
                }
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

    /// The worker's next thread is the one that runs on a CPU.
    fn take_hold(&mut self, cpu: CpuId, prepared: &Prepared, ids: &mut Ids) {
        let Some(LocalCpu { host, number }) = prepared.cpus.get(cpu.index()).copied() else { return };
        let global = self.cpus.id(host, number, self.end);
        ids.cpus[cpu.index()] = global;
        let thread = global.and_then(|c| self.cpus[c].thread);
        ids.threads.push(thread.unwrap_or(ThreadId::at(0)));
    }

    /// A thread that a held one has created.
    fn take_child(&mut self, child: Child, ids: &Ids, batch: &mut BatchIds<'_>) -> ThreadId {
        let Child { t, parent, pid, new, state } = child;
        let parent = ids.thread(parent);
        // Its first part sets the CPU, and the call where the worker knows it.
        let inherited = self.threads[parent].inherited();
        let inherited = Inherited { pid: pid.unwrap_or(inherited.pid), ..inherited };
        self.fork(t, parent, inherited, state, new, batch)
    }

    /// A packet is sent.
    fn take_send(&mut self, of: RoutedPacket<'_>, sender: Waker, fate: SendFate, packets: &mut TakenPackets<'_>) {
        match packets.list_for(of, fate, &mut self.packets) {
            Some(list) => {
                let ended = self.packets.send_on(list, of.host, of.packet, sender);
                self.came_early(ended, sender);
            }
            None => self.packets.pass(sender.at, fate == SendFate::Received),
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

    /// True if rows of a host go to the store: those of a host without switches are made anew at the end.
    fn may_seal(&self, host: HostId) -> bool {
        self.out.tables.quality.get(host.index()).is_some_and(|quality| quality.switches > 0)
    }

    fn take_thread(&mut self, part: &ThreadPart, taken: &TakenRows<'_>) {
        let (thread, ids) = (taken.ids.thread(part.thread), taken.ids);
        let may_seal = self.may_seal(self.threads[thread].thread.host);
        let state = &mut self.threads[thread];
        for ThreadName { from, name } in taken.rows.rows.names.get(part.names.clone()).unwrap_or(&[]) {
            let name = ids.name(*name);
            if state.thread.names.last().map(|last| last.name) != Some(name) {
                state.push_name(*from, name);
                state.named_by_exec = false;
                state.runs_softirqs = self.out.tables.names.get(name).starts_with("ksoftirqd/");
            }
        }
        let since = state.since;
        state.set_slots(&slots(ids, part.slots), part.known);
        // What came before the recording's begin is cut off when rows are sealed.
        let may_seal = may_seal && self.start.is_some_and(|begin| state.thread.life.start >= begin);
        state.take_rows((thread.index(), since), part, taken, may_seal.then_some(&mut self.sealed));
    }

    fn take_cpu(&mut self, part: &CpuPart, taken: &TakenRows<'_>) {
        let ids = taken.ids;
        let Some(Some(c)) = ids.cpus.get(part.cpu.index()).copied() else { return };
        let may_seal = self.may_seal(self.cpus[c].host);
        let cpu = &mut self.cpus[c];
        cpu.take_runs(c.index(), part, taken, may_seal.then_some(&mut self.sealed));
        let mut slots = part.slots.clone();
        slots.rename(|name| ids.name(name), |thread| ids.thread(thread), |waker| ids.waker(waker));
        cpu.continue_with(slots, part.unknown_raised);
    }
}

/// Slots of a thread with the machine's ids.
fn slots(ids: &Ids, mut slots: ThreadSlots) -> ThreadSlots {
    if let Sched::Running(cpu) = slots.sched
        && let Some(Some(cpu)) = ids.cpus.get(cpu.index())
    {
        slots.sched = Sched::Running(*cpu);
    }
    if let Some(Interruption { handler: Some(name) }) = &mut slots.interrupted {
        *name = ids.name(*name);
    }
    if let Some(wake) = &mut slots.early_wake {
        wake.label = ids.label(wake.label);
    }
    slots.call = slots.call.map(|call| ids.open_call(call));
    slots
}
