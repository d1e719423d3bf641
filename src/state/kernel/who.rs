//! From ids in events to incarnations of threads (ALGORITHMS.md 1, 2.3, 3.5).
//!
//! A thread is `(host, tid, generation)`; an idle task `(host, 0, cpu)`. Kernel contexts name the thread that runs; what
//! user-space contexts name stands in `user`.

use super::life::{Life, Sched};
use super::machine::{Machine, Renumber};
use crate::base::names::NameId;
use crate::base::time::Ns;
use crate::event::kind::{Event, TextId};
use crate::reading::batch::{DumpedThread, ThreadContext};
use crate::state::timeline::{HostId, ThreadId};

impl Machine {
    fn add(&mut self, life: Life) -> ThreadId {
        self.lives.push(life);
        ThreadId::at(self.lives.len() - 1)
    }

    /// The incarnation that `tid` names now. Not known: it lives since the recording began. Ended: the fork of the
    /// next one was lost, which lives from here on.
    pub(super) fn thread(&mut self, host: HostId, tid: i32, t: Ns) -> ThreadId {
        let previous = self.by_tid.get(&(host, tid)).copied();
        let start = match previous {
            Some(thread) if self.lives[thread.index()].is_alive() => return thread,
            Some(_) => t,
            None => self.start(),
        };
        self.open(host, tid, start, Sched::Unseen, previous)
    }

    /// A new incarnation of `tid`.
    pub(super) fn open(
        &mut self,
        host: HostId,
        tid: i32,
        start: Ns,
        sched: Sched,
        previous: Option<ThreadId>,
    ) -> ThreadId {
        let mut life = Life::new(host, tid, start, sched, 0);
        life.previous = previous;
        let thread = self.add(life);
        self.by_tid.insert((host, tid), thread);
        thread
    }

    /// The same for an event of CPU `c`, where 0 is the CPU's own idle task.
    pub(super) fn thread_on(&mut self, c: usize, tid: i32, t: Ns) -> ThreadId {
        let (host, number, idle, running) = {
            let cpu = &self.cpus[c];
            (cpu.host, cpu.number, cpu.idle, cpu.thread)
        };
        if tid != 0 {
            let same = |thread: &ThreadId| self.lives[thread.index()].thread.tid == tid;
            return running.filter(same).unwrap_or_else(|| self.thread(host, tid, t));
        }
        if let Some(idle) = idle {
            return idle;
        }
        let mut life = Life::new(host, 0, self.start(), Sched::Unseen, number);
        life.thread.idle = true;
        life.pid_known = true;
        let idle = self.add(life);
        self.cpus[c].idle = Some(idle);
        idle
    }

    /// The thread that runs on CPU `c`: what the context says, else what the last switch said.
    pub(super) fn running(&mut self, c: usize, event: &Event, ids: &mut Renumber<'_>) -> Option<ThreadId> {
        let batch = ids.batch;
        let Some(identity) = batch.identity(event.who) else { return self.cpus[c].thread };
        let Some(tid) = identity.tid else { return self.cpus[c].thread };
        let thread = self.thread_on(c, tid, event.time);
        if self.cpus[c].thread == Some(thread) {
            self.cpus[c].agreed = event.time;
        } else {
            if let Some(believed) = self.cpus[c].thread {
                self.gap(believed, event.time);
            }
            self.runs(c, thread, event.time);
            self.lives[thread.index()].followed = true;
        }
        self.describe(thread, event.time, identity, ids);
        Some(thread)
    }

    /// The thread of an event that does not say that it runs now: without contexts whoever does.
    pub(super) fn named(&mut self, c: usize, event: &Event, ids: &mut Renumber<'_>) -> Option<ThreadId> {
        let batch = ids.batch;
        let told = batch.identity(event.who).and_then(|identity| Some((identity, identity.tid?)));
        let Some((identity, tid)) = told else { return self.cpus[c].thread };
        let thread = self.thread_on(c, tid, event.time);
        self.describe(thread, event.time, identity, ids);
        Some(thread)
    }

    /// Believe what a context tells of its thread.
    fn describe(&mut self, thread: ThreadId, t: Ns, identity: &ThreadContext, ids: &mut Renumber<'_>) {
        let life = &mut self.lives[thread.index()];
        if let Some(pid) = identity.pid {
            life.thread.pid = pid;
            life.pid_known = true;
        }
        if let Some(ppid) = identity.ppid {
            life.thread.ppid = ppid;
        }
        if let (Some(vtid), Some(vpid)) = (identity.vtid, identity.vpid)
            && life.thread.virtual_ids != Some((vtid, vpid))
            && vtid != life.thread.tid
        {
            self.namespace(thread, vtid, vpid, i32::MAX);
        }
        if let Some(name) = identity.name {
            self.name(thread, t, name, ids);
        }
    }

    /// From `t` on the thread is called so.
    pub(super) fn name(&mut self, thread: ThreadId, t: Ns, name: TextId, ids: &mut Renumber<'_>) {
        let Some(name) = ids.name(&mut self.out, name) else { return };
        let life = &mut self.lives[thread.index()];
        if life.thread.names.last().map(|(_, n)| *n) != Some(name) {
            life.thread.names.push((t, name));
            life.runs_softirqs = self.out.names.get(name).starts_with("ksoftirqd/");
        }
    }

    /// The thread has other ids inside a container; the innermost namespace counts.
    pub(super) fn namespace(&mut self, thread: ThreadId, vtid: i32, vpid: i32, level: i32) {
        let life = &mut self.lives[thread.index()];
        if level <= life.namespace_level || vtid == 0 {
            return;
        }
        let host = life.thread.host;
        let before = life.thread.virtual_ids.replace((vtid, vpid));
        life.namespace_level = level.min(i32::MAX - 1);
        if let Some((old, _)) = before
            && let Some(same) = self.by_vtid.get_mut(&(host, old))
        {
            same.retain(|other| *other != thread);
        }
        let same = self.by_vtid.entry((host, vtid)).or_default();
        if same.len().is_power_of_two() {
            same.retain(|other| self.lives[other.index()].is_alive());
        }
        same.push(thread);
        self.claim_images(thread, vpid);
    }

    /// An exec names its thread after the file, as the kernel does: the last part of the path, cut to 15 bytes.
    pub(super) fn rename(&mut self, thread: ThreadId, t: Ns, path: NameId) {
        const LONGEST: usize = 15;
        let path = self.out.names.get(path);
        let mut name = path.rsplit('/').next().unwrap_or(path);
        while name.len() > LONGEST {
            let cut = name.char_indices().next_back().map_or(0, |(at, _)| at);
            name = &name[..cut];
        }
        if name.is_empty() {
            return;
        }
        let name = name.to_owned();
        let name = self.out.names.intern(&name);
        let names = &mut self.lives[thread.index()].thread.names;
        if names.last().map(|(_, last)| *last) != Some(name) {
            names.push((t, name));
        }
    }

    /// The tracer's enumeration: fills what is not known, never overwrites.
    pub(super) fn enumerate(&mut self, t: Ns, host: HostId, process: &DumpedThread, ids: &mut Renumber<'_>) {
        if process.tid == 0 {
            return;
        }
        let thread = self.thread(host, process.tid, t);
        let life = &mut self.lives[thread.index()];
        if !life.pid_known {
            life.thread.pid = process.pid;
            life.pid_known = true;
        }
        if life.thread.ppid == 0 {
            life.thread.ppid = process.ppid;
        }
        if life.sched == Sched::Unseen {
            let sched = match process.status {
                1 | 2 => Sched::Ready,
                5 => Sched::Blocked,
                _ => Sched::Unseen,
            };
            life.cpu = process.cpu.map_or(life.cpu, u32::from);
            life.change(t, sched, &self.reasons);
            if matches!(process.status, 4 | 7) {
                life.die(t, &self.reasons);
            }
        }
        if self.lives[thread.index()].thread.names.is_empty() {
            self.name(thread, t, process.name, ids);
        }
    }
}
