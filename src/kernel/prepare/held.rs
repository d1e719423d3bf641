//! The threads and CPUs that a worker holds: it begins to follow them, and hands over their state.
//!
//! A held CPU has a held thread that runs there, and a held thread that runs does so on a held CPU. A thread is held as
//! the one that has its id. Cost: that of a thread's slots, and of its rows.

use super::Preparation;
use crate::base::time::Timestamp;
use crate::event::host::HostId;
use crate::event::kind::{Context, Kind, TextId};
use crate::kernel::cpu::{CpuId, bit};
use crate::kernel::fork::NewThread;
use crate::kernel::prepared::{Child, CpuPart, Due, ThreadPart};
use crate::kernel::slots::KnownSlots;
use crate::kernel::thread_state::{OpenCall, Sched, ThreadState};
use crate::kernel::threads::HostTid;
use crate::kernel::worker_rows::may_join;
use crate::timeline::ThreadId;

/// A thread of the worker's machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldThread {
    pub is_held: bool,
    /// What is known of it.
    pub known: KnownSlots,
    /// True if it may be doing work for another thread.
    pub may_work: bool,
    /// True if it exited while it was held, or is known not to have exited before.
    pub knows_exit: bool,
    /// Number of its names that were handed over.
    pub names: usize,
}

/// A CPU of the worker's machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldCpu {
    pub is_held: bool,
    /// While it is not held: the id of the thread that runs there, where that is known.
    pub running: Option<i32>,
    /// The number of an event at which that thread was the one that has its id, where one is known.
    pub had_id: Option<u32>,
    /// While it is not held: the soft interrupts that are raised, one bit each.
    pub raised: u32,
    /// Those of which that is not known.
    pub unknown_raised: u32,
    /// A block request may have completed there, at this time at the latest.
    pub completed: Option<Timestamp>,
    /// True if the thread that ran there when the chunk began has left it, or is known to have its id.
    pub is_followed: bool,
}

impl Default for HeldCpu {
    fn default() -> Self {
        HeldCpu {
            is_held: false,
            running: None,
            had_id: None,
            raised: 0,
            unknown_raised: u32::MAX,
            completed: None,
            is_followed: false,
        }
    }
}

impl HeldCpu {
    /// While it is not held: a thread with this id runs there after event `number`. If another one did before, it is
    /// the one that has its id.
    pub fn runs_another(&mut self, tid: i32, number: u32) {
        if self.running != Some(tid) {
            self.had_id = self.running.map(|_| number);
        }
        self.running = Some(tid);
    }

    /// While it is not held: an event may change what is raised.
    pub fn follow_raised(&mut self, kind: Kind) {
        match kind {
            // In an interrupt that does not count.
            Kind::Raise { soft_irq } => self.unknown_raised |= bit(soft_irq) & !self.raised,
            Kind::Enter { context: Context::SoftIrq(soft_irq), .. } => {
                self.raised &= !bit(soft_irq);
                self.unknown_raised &= !bit(soft_irq);
            }
            // It is over, if the CPU was in a context.
            Kind::CallEntry { .. } | Kind::CallExit { .. } | Kind::Switch { .. } => {
                self.unknown_raised |= std::mem::take(&mut self.raised);
            }
            Kind::Lost { .. } => (self.raised, self.unknown_raised) = (0, 0),
            _ => {}
        }
    }
}

impl Preparation<'_> {
    /// The id of a held thread.
    fn key(&self, thread: ThreadId) -> HostTid {
        let state = &self.machine.threads[thread];
        if state.thread.idle {
            HostTid::on_cpu(state.thread.host, state.cpu, 0)
        } else {
            HostTid::new(state.thread.host, state.thread.tid)
        }
    }

    /// A switch gives CPU `c` to a thread that is not held: it is from here on, as is the CPU.
    pub(super) fn hold_next(&mut self, c: CpuId, t: Timestamp, tid: i32, name: TextId) {
        let cpu = &self.machine.cpus[c];
        let key = HostTid::on_cpu(cpu.host, cpu.number, tid);
        let mut state = ThreadState::new(key, t, Sched::Running(c), None);
        state.cpu = cpu.number;
        let known = KnownSlots { early_wake: true, ..KnownSlots::default() };
        let held = HeldThread { is_held: true, known, may_work: true, knows_exit: false, names: 0 };
        let thread = self.hold(key, state, held, name);
        if tid == 0 {
            self.machine.cpus[c].idle = Some(thread);
        }
        self.machine.cpus[c].set_next(thread, t);
    }

    /// A held thread creates one, which is held, too.
    pub(super) fn hold_child(&mut self, host: HostId, t: Timestamp, parent: ThreadId, new: NewThread) {
        let key = HostTid::new(host, new.tid);
        let (by, of) = (&self.machine.threads[parent], self.threads[parent.index()].known);
        let (call, cpu, pid) = (by.call.filter(|_| of.call), by.cpu, by.known_pid());
        let mut state = ThreadState::new(key, t, Sched::New, None);
        let with_room = Box::new(ThreadState::with_room(key, t));
        self.out.children.push(Child { t, parent, pid, new, state: with_room });
        self.need_name(new.name);
        self.due(Due::Fork);
        state.cpu = cpu;
        state.call = call.map(|call| OpenCall { since: t, ..call });
        let known = KnownSlots { call: of.call, queue: true, sample: true, early_wake: true };
        let held = HeldThread { is_held: true, known, may_work: false, knows_exit: true, names: 0 };
        self.hold(key, state, held, new.name);
    }

    /// Hold a thread to which the machine has given a name, if any.
    pub(super) fn hold(
        &mut self,
        key: HostTid,
        mut state: ThreadState,
        mut held: HeldThread,
        name: TextId,
    ) -> ThreadId {
        state.forget_process();
        if let Some(name) = self.ids.known_name(name) {
            state.push_name(state.thread.life.start, name);
            state.runs_softirqs = self.machine.out.tables.names.get(name).starts_with("ksoftirqd/");
        }
        held.names = state.thread.names.len();
        self.threads.push(held);
        self.machine.threads.open(key, state)
    }

    /// The machine has stepped through a switch: what it has made of the CPU and of the thread that got it is held.
    pub(super) fn hold_cpu(&mut self, c: CpuId, t: Timestamp, tid: i32, name: TextId) {
        self.begin_again(c, t, t);
        self.need_name(name);
        self.due(Due::Hold { cpu: c });
        self.hold_next(c, t, tid, name);
    }

    /// CPU `c` is held after the event at `t`. Its thread runs there since `since`.
    pub(super) fn begin_again(&mut self, c: CpuId, t: Timestamp, since: Timestamp) {
        let held = &mut self.cpus[c.index()];
        self.machine.cpus[c].begin_again(since, held.raised);
        *held = HeldCpu { is_held: true, running: None, completed: Some(t), is_followed: true, ..*held };
    }

    /// Hand over what events have made of a thread.
    pub(super) fn hand_over_thread(&mut self, thread: ThreadId) {
        let (Some(held), Some(_)) = (self.threads.get_mut(thread.index()), self.machine.threads.get(thread)) else {
            return;
        };
        let state = &mut self.machine.threads[thread];
        let out = &mut self.out;
        let rows = &mut out.rows;
        let from = (rows.segments.len(), rows.calls.len(), rows.samples.len(), rows.names.len());
        let may_join = may_join(&state.rows.segments);
        rows.segments.append(&mut state.rows.segments);
        rows.calls.append(&mut state.rows.calls);
        rows.samples.append(&mut state.rows.samples);
        rows.names.extend_from_slice(state.thread.names.get(held.names..).unwrap_or(&[]));
        held.names = state.thread.names.len();
        let part = ThreadPart {
            thread,
            slots: state.slots(),
            known: held.known,
            segments: from.0..rows.segments.len(),
            calls: from.1..rows.calls.len(),
            samples: from.2..rows.samples.len(),
            names: from.3..rows.names.len(),
            may_join,
        };
        out.thread_parts.push(part);
        self.machine.threads.visited(thread);
        self.due(Due::Thread);
    }

    /// Hand over what events have made of a CPU and of the thread that runs there, if they are held.
    pub(super) fn hand_over_cpu(&mut self, c: CpuId) {
        let Some(thread) = self.machine.cpus[c].thread.filter(|_| self.cpus[c.index()].is_held) else { return };
        self.hand_over_thread(thread);
        let cpu = &mut self.machine.cpus[c];
        let runs = &mut self.out.rows.runs;
        let from = runs.len();
        runs.append(&mut cpu.runs);
        let unknown_raised = self.cpus[c.index()].unknown_raised;
        let part = CpuPart { cpu: c, slots: cpu.slots(), unknown_raised, runs: from..runs.len() };
        self.out.cpu_parts.push(part);
        self.due(Due::Cpu);
    }

    /// Hand over everything that has changed; it stays held.
    pub(super) fn hand_over_all(&mut self) {
        let all: Vec<CpuId> = self.machine.cpus.ids().collect();
        all.into_iter().for_each(|c| self.hand_over_cpu(c));
        for at in 0..self.threads.len() {
            let thread = ThreadId::at(at);
            let has_changed = self.threads[at].is_held && self.machine.threads.has_changed(thread);
            if has_changed && !matches!(self.machine.threads[thread].sched, Sched::Running(_)) {
                self.hand_over_thread(thread);
            }
        }
    }

    /// A CPU and the thread that runs there are not held any more.
    pub(super) fn release_cpu(&mut self, c: CpuId) {
        if !self.cpus[c.index()].is_held {
            return;
        }
        self.hand_over_cpu(c);
        if let Some(thread) = self.machine.cpus[c].thread {
            let tid = self.machine.threads[thread].thread.tid;
            self.forget(thread);
            let unknown_raised = self.cpus[c.index()].unknown_raised;
            let raised = self.machine.cpus[c].raised() & !unknown_raised;
            self.cpus[c.index()] = HeldCpu {
                running: Some(tid),
                had_id: Some(self.number),
                raised,
                unknown_raised,
                is_followed: true,
                ..HeldCpu::default()
            };
        }
    }

    /// A thread is not held any more.
    pub(super) fn release_thread(&mut self, thread: ThreadId) {
        match self.machine.threads[thread].sched {
            Sched::Running(c) => self.release_cpu(c),
            _ => {
                self.hand_over_thread(thread);
                self.forget(thread);
            }
        }
    }

    /// The thread that has an id is not held any more.
    pub(super) fn release_tid(&mut self, key: HostTid) {
        self.machine.threads.alive(key).into_iter().for_each(|thread| self.release_thread(thread));
    }

    /// Nothing is held any more.
    pub(super) fn release_all(&mut self) {
        let all: Vec<CpuId> = self.machine.cpus.ids().collect();
        all.into_iter().for_each(|c| self.release_cpu(c));
        for at in 0..self.threads.len() {
            if self.threads[at].is_held {
                self.release_thread(ThreadId::at(at));
            }
        }
    }

    fn forget(&mut self, thread: ThreadId) {
        let key = self.key(thread);
        self.machine.threads.rename(key, None);
        self.threads[thread.index()].is_held = false;
        let cpus = self.machine.cpus.iter_mut();
        cpus.filter(|cpu| cpu.idle == Some(thread)).for_each(|cpu| cpu.idle = None);
    }

    /// A thread that is not held runs on CPU `c`, and so on no other one.
    pub(super) fn runs_on(&mut self, c: Option<CpuId>, key: HostTid) {
        for (other, cpu) in self.cpus.iter_mut().enumerate() {
            if c.is_none_or(|c| c.index() != other) && cpu.running == Some(key.tid()) {
                cpu.running = None;
            }
        }
    }
}
