//! From the ids in events to thread instances (ALGORITHMS.md 1, 2.3, 3.5).
//!
//! A thread is `(host, tid, generation)`; an idle task `(host, 0, cpu)`. The contexts of kernel events name the thread
//! that runs; `user` finds the thread of a user-space event.

use super::cpu::CpuId;
use super::machine::{BatchIds, Machine};
use super::thread_state::{Sched, ThreadState};
use crate::base::names::NameId;
use crate::base::time::Timestamp;
use crate::event::host::HostId;
use crate::event::kind::{Event, TextId};
use crate::kernel::threads::{Holder, HostTid};
use crate::reading::batch::{DumpStatus, DumpedThread, ThreadContext};
use crate::timeline::{ThreadId, VirtualIds};

impl Machine {
    /// The instance that `tid` names now, for an event that may be of any CPU.
    pub(super) fn thread(&mut self, host: HostId, tid: i32, t: Timestamp) -> ThreadId {
        let key = HostTid::new(host, tid);
        self.instance(key, self.threads.holder(key), t)
    }

    /// The instance that `tid` names now, for an event of CPU `c`, where 0 is the CPU's own idle task.
    pub(super) fn thread_on(&mut self, c: CpuId, tid: i32, t: Timestamp) -> ThreadId {
        let cpu = &self.cpus[c];
        let key = HostTid::on_cpu(cpu.host, cpu.number, tid);
        if let Some(idle) = cpu.idle.filter(|_| key.is_idle()) {
            return idle;
        }
        let thread = self.instance(key, self.threads.holder_on(key, cpu.thread), t);
        if key.is_idle() {
            self.cpus[c].idle = Some(thread);
        }
        thread
    }

    /// The instance that has an id, else a new one, which begins with the recording where no event has named the id,
    /// else at `t`.
    pub(super) fn instance(&mut self, key: HostTid, holder: Holder, t: Timestamp) -> ThreadId {
        let start = match holder {
            Holder::Alive(thread) => return thread,
            Holder::Ended => t,
            // Seen before the first event: `close` moves its begin to that of the recording.
            Holder::Unseen => self.start.unwrap_or(Timestamp::MIN),
        };
        let state = ThreadState::new(key, start, Sched::Unseen, self.threads.latest(key));
        self.threads.open(key, state)
    }

    /// The thread that runs on CPU `c`: the one that the context names, else that of the last switch.
    pub(super) fn running(&mut self, c: CpuId, event: &Event, ids: &mut BatchIds<'_>) -> Option<ThreadId> {
        let batch = ids.batch;
        if let Some(thread) = self.described(c, event, ids) {
            self.cpus[c].confirmed_at = event.time;
            return Some(thread);
        }
        let Some(identity) = batch.context(event.who) else { return self.cpus[c].thread };
        let Some(tid) = identity.tid else { return self.cpus[c].thread };
        let thread = self.thread_on(c, tid, event.time);
        if self.cpus[c].thread == Some(thread) {
            self.cpus[c].confirmed_at = event.time;
        } else {
            if let Some(previous) = self.cpus[c].thread.filter(|_| self.cpus[c].is_known()) {
                self.count_gap(previous, event.time);
            }
            self.set_running(c, thread, event.time);
            self.threads[thread].followed = true;
        }
        self.describe(thread, event.time, identity, ids);
        ids.set_described(event.who, thread, self.threads[thread].description);
        Some(thread)
    }

    /// The thread that runs on CPU `c` if the context of the event names it and says nothing new: most do.
    fn described(&self, c: CpuId, event: &Event, ids: &BatchIds<'_>) -> Option<ThreadId> {
        let thread = self.cpus[c].thread?;
        ids.has_described(event.who, thread, self.threads[thread].description).then_some(thread)
    }

    /// The thread of an event whose context may name another thread than the running one; without contexts the running
    /// thread.
    pub(super) fn named(&mut self, c: CpuId, event: &Event, ids: &mut BatchIds<'_>) -> Option<ThreadId> {
        if let Some(thread) = self.described(c, event, ids) {
            return Some(thread);
        }
        let batch = ids.batch;
        let Some((identity, tid)) = batch.context(event.who).and_then(|identity| Some((identity, identity.tid?)))
        else {
            return self.cpus[c].thread;
        };
        let thread = self.thread_on(c, tid, event.time);
        self.describe(thread, event.time, identity, ids);
        Some(thread)
    }

    /// Apply the ids and the name that a context has of its thread.
    pub(super) fn describe(
        &mut self,
        thread: ThreadId,
        t: Timestamp,
        identity: &ThreadContext,
        ids: &mut BatchIds<'_>,
    ) {
        let state = &mut self.threads[thread];
        state.observe_pid(identity.pid);
        if let Some(ppid) = identity.ppid {
            state.set_ppid(ppid);
        }
        if let (Some(tid), Some(pid)) = (identity.vtid, identity.vpid)
            && state.thread.virtual_ids != Some(VirtualIds { tid, pid })
            && tid != state.thread.tid
        {
            self.namespace(thread, VirtualIds { tid, pid }, i32::MAX);
        }
        if let Some(name) = identity.name {
            self.name(thread, t, name, ids);
        }
    }

    /// From `t` on the thread has this name.
    pub(super) fn name(&mut self, thread: ThreadId, t: Timestamp, name: TextId, ids: &mut BatchIds<'_>) {
        let Some(name) = ids.name(&mut self.out, name) else { return };
        let state = &mut self.threads[thread];
        if state.thread.names.last().map(|last| last.name) != Some(name) {
            state.push_name(t, name);
            state.named_by_exec = false;
            state.runs_softirqs = self.out.tables.names.get(name).starts_with("ksoftirqd/");
        }
    }

    /// The thread has other ids inside a container; the innermost namespace counts.
    pub(super) fn namespace(&mut self, thread: ThreadId, ids: VirtualIds, level: i32) {
        let state = &mut self.threads[thread];
        if level <= state.namespace_level || ids.tid == 0 {
            return;
        }
        let host = state.thread.host;
        let before = state.thread.virtual_ids.replace(ids);
        state.change_description();
        state.namespace_level = level.min(i32::MAX - 1);
        if let Some(old) = before
            && let Some(same) = self.by_vtid.get_mut(&(host, old.tid))
        {
            same.retain(|other| *other != thread);
        }
        let same = self.by_vtid.entry((host, ids.tid)).or_default();
        if same.len().is_power_of_two() {
            same.retain(|other| self.threads.is_alive(*other));
        }
        same.push(thread);
        self.claim_images(thread, ids.pid);
    }

    /// An exec names its thread after the file, as the kernel does: the last component of the path, cut to 15 bytes.
    pub(super) fn rename(&mut self, thread: ThreadId, t: Timestamp, path: NameId) {
        const LONGEST: usize = 15;
        let path = self.out.tables.names.get(path);
        let mut name = path.rsplit('/').next().unwrap_or(path);
        while name.len() > LONGEST {
            let cut = name.char_indices().next_back().map_or(0, |(at, _)| at);
            name = &name[..cut];
        }
        if name.is_empty() {
            return;
        }
        let name = name.to_owned();
        let name = self.out.tables.names.intern(&name);
        let state = &mut self.threads[thread];
        let was_named_by_exec = std::mem::replace(&mut state.named_by_exec, true);
        match state.thread.names.as_mut_slice() {
            // The kernel names the thread a little before it emits the event: a switch between the two has the new
            // name.
            [_, .., last] if last.name == name && !was_named_by_exec => last.from = t,
            [.., last] if last.name == name => {}
            _ => {
                state.push_name(t, name);
                state.runs_softirqs = false;
            }
        }
    }

    /// The state dump describes a thread: it fills unknown values and replaces none.
    pub(super) fn apply_state_dump(
        &mut self,
        t: Timestamp,
        host: HostId,
        process: &DumpedThread,
        ids: &mut BatchIds<'_>,
    ) {
        if process.tid == 0 {
            return;
        }
        let thread = self.thread(host, process.tid, t);
        let state = &mut self.threads[thread];
        state.fill_pid(process.pid);
        if state.thread.ppid == 0 {
            state.set_ppid(process.ppid);
        }
        if state.sched == Sched::Unseen {
            let sched = match process.status {
                DumpStatus::Runnable => Sched::Ready,
                DumpStatus::Waiting => Sched::Blocked,
                DumpStatus::Ended | DumpStatus::Other => Sched::Unseen,
            };
            state.cpu = process.cpu.map_or(state.cpu, u32::from);
            state.change(t, sched, &self.reasons);
            if process.status == DumpStatus::Ended {
                state.die(t, &self.reasons);
            }
        }
        if self.threads[thread].thread.names.is_empty() {
            self.name(thread, t, process.name, ids);
        }
    }
}
