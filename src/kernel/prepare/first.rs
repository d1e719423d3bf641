//! The first thread by which a CPU is held: the one that makes a call there, or that gets it by its first switch.
//!
//! On a CPU an id names the thread that runs there, even one that ended or whose id went to another thread. A worker
//! does not know whether such a thread ran there when its chunk began. It assumes that none did, and the machine makes
//! sure of that before it joins the chunk; if it is not so, the chunk is run again event by event. Cost: that of a
//! look-up for each CPU.

use super::Preparation;
use super::held::HeldThread;
use crate::event::kind::{Event, Kind, TextId};
use crate::kernel::cpu::{CpuId, UNKNOWN_START};
use crate::kernel::machine::Machine;
use crate::kernel::prepared::{Due, LocalCpu, Prepared};
use crate::kernel::slots::KnownSlots;
use crate::kernel::thread_state::{OpenCall, Sched, ThreadState};
use crate::kernel::threads::HostTid;

/// The first thread by which a worker holds a CPU. If it ran there when the chunk began, the worker takes it for the
/// one that has its id.
#[derive(Clone, Copy, Debug)]
pub(in crate::kernel) struct FirstThread {
    cpu: LocalCpu,
    tid: i32,
}

impl Preparation<'_> {
    /// The machine has stepped through the entry or exit of a call: the thread that runs on CPU `c` is held from here
    /// on, as is the CPU. Since when it runs is not known, nor, where no context says it, its name.
    pub(super) fn hold_caller(&mut self, c: CpuId, event: &Event) {
        let (is_known, call, descriptor) = match event.kind {
            Kind::CallEntry { name, descriptor } => (name != TextId::NONE, name, descriptor),
            Kind::CallExit { .. } => (true, TextId::NONE, None),
            _ => (false, TextId::NONE, None),
        };
        let Some(tid) = self.cpus[c.index()].running.filter(|_| is_known) else { return };
        let (host, number, t) = (self.machine.cpus[c].host, self.machine.cpus[c].number, event.time);
        let key = HostTid::on_cpu(host, number, tid);
        if key.is_idle() || self.machine.threads.alive(key).is_some() || !self.has_its_id(c, key) {
            return;
        }
        let context = self.batch.context(event.who).filter(|context| context.tid.is_some());
        let name = context.and_then(|context| context.name).unwrap_or(TextId::NONE);
        self.begin_again(c, t, UNKNOWN_START);
        [name, call].into_iter().for_each(|name| self.need_name(name));
        self.due(Due::Hold { cpu: c });
        let mut state = ThreadState::new(key, t, Sched::Running(c), None);
        (state.since, state.cpu) = (UNKNOWN_START, number);
        state.call = self.ids.known_name(call).map(|name| OpenCall { since: t, name, descriptor });
        state.has_called = true;
        let known = KnownSlots { call: true, ..KnownSlots::default() };
        let held = HeldThread { is_held: true, known, may_work: true, knows_exit: false, names: 0 };
        let thread = self.hold(key, state, held, name);
        self.machine.cpus[c].set_next(thread, UNKNOWN_START);
    }

    /// True if the thread on CPU `c` with the id `key` is the one that this id names: it did not end, and its id went
    /// to no other since that was known. The machine makes sure of it for the thread that ran there when the chunk
    /// began.
    pub(super) fn has_its_id(&mut self, c: CpuId, key: HostTid) -> bool {
        if key.is_idle() {
            return true;
        }
        let ended = self.ended.get(&key).copied();
        let held = &self.cpus[c.index()];
        let had_id = held.had_id.filter(|_| held.running == Some(key.tid()));
        if ended.is_some_and(|ended| had_id.is_none_or(|known| ended >= known)) {
            return false;
        }
        if had_id.is_some() {
            return true;
        }
        if !std::mem::replace(&mut self.cpus[c.index()].is_followed, true) {
            let cpu = self.out.cpus[c.index()];
            self.out.first_threads.push(FirstThread { cpu, tid: key.tid() });
        }
        true
    }
}

impl Machine {
    /// True if what a worker took for granted is so, before the batch: damaged packets do not reach into it, and the
    /// threads that run have their ids.
    pub(in crate::kernel) fn fits(&self, prepared: &Prepared) -> bool {
        let is_damaged = prepared.start.is_some_and(|start| self.losses.damage_reaches(start));
        !is_damaged && prepared.first_threads.iter().all(|first| self.has_its_id(first))
    }

    /// False if a thread runs on its CPU whose id names another one, or none: it ended, or its id went to a later one.
    fn has_its_id(&self, first: &FirstThread) -> bool {
        let FirstThread { cpu: LocalCpu { host, number }, tid } = *first;
        let Some(c) = self.cpus.find(host, number) else { return true };
        let Some(thread) = self.cpus[c].thread.filter(|thread| self.threads[*thread].thread.tid == tid) else {
            return true;
        };
        let holder = self.threads.alive(HostTid::new(host, tid));
        holder == Some(thread) && self.threads[thread].sched == Sched::Running(c)
    }
}
