//! Joins the machine of the next chunk: the threads of its carried-in state are found by their ids, the first changes
//! of their slots are applied to the current values, and deferred events are applied to the threads that ran.
//!
//! Where a contradiction at the cut makes the order of changes unknown, [`UsageMachine::fits`] is false, and the engine
//! runs the chunk again from the machine before it. Cost: the threads and CPUs of the chunk. ALGORITHMS.md 10.3 and
//! 10.4.

use super::machine::{DeferredEvent, Runs, Seen, TimedDeferred, UsageCpu, UsageMachine};
use super::thread::{HostCpu, UsageThread};
use crate::base::names::NameId;
use crate::kernel::threads::{ThreadInstance, ThreadTable};
use crate::timeline::ThreadId;
use foldhash::HashSet;

/// A thread of the next chunk, once joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Joined {
    /// A thread of this machine.
    Known(ThreadId),
    /// A new one, by its id in the chunk.
    New(ThreadId),
}

/// By thread of the next chunk: the same thread in this machine; `None` for new ones.
struct CarriedIn(Vec<Option<ThreadId>>);

impl CarriedIn {
    fn find(threads: &ThreadTable<UsageThread>, next: &ThreadTable<UsageThread>) -> CarriedIn {
        let known = |thread: &UsageThread| if thread.carried_in { threads.alive(thread.key) } else { None };
        CarriedIn(next.iter().map(known).collect())
    }

    /// The thread of this machine, if there is one.
    fn known(&self, next: ThreadId) -> Option<ThreadId> {
        self.0.get(next.index()).copied().flatten()
    }

    fn joined(&self, next: ThreadId) -> Joined {
        self.known(next).map_or(Joined::New(next), Joined::Known)
    }

    /// The thread of the next chunk that is this thread.
    fn position(&self, known: ThreadId) -> Option<ThreadId> {
        self.0.iter().position(|thread| *thread == Some(known)).map(ThreadId::at)
    }
}

impl UsageMachine {
    /// True when [`UsageMachine::append`] has exactly the result of stepping through the events of the next chunk from
    /// here.
    pub fn fits(&self, next: &UsageMachine) -> bool {
        let carried_in = CarriedIn::find(&self.threads, &next.threads);
        self.changes_each_once(next, &carried_in)
            && next.cpus.iter().all(|(at, cpu)| self.fits_on(*at, cpu, next, &carried_in))
    }

    /// True when the join changes no thread for two CPUs (on both of which it seemed to run): the order of the two
    /// changes would be lost.
    fn changes_each_once(&self, next: &UsageMachine, carried_in: &CarriedIn) -> bool {
        let mut changed: HashSet<Joined> = HashSet::default();
        next.cpus.iter().all(|(at, cpu)| {
            let seen = cpu.seen.map(|seen| carried_in.joined(seen.thread));
            let thread = match self.cpus.get(at).map(|before| before.runs) {
                Some(Runs::Thread(running)) => Some(Joined::Known(running))
                    .filter(|running| !cpu.deferred.is_empty() || seen.is_some_and(|seen| seen != *running)),
                _ => seen,
            };
            thread.is_none_or(|thread| changed.insert(thread))
        })
    }

    fn fits_on(&self, at: HostCpu, cpu: &UsageCpu, next: &UsageMachine, carried_in: &CarriedIn) -> bool {
        let Some(Runs::Thread(running)) = self.cpus.get(&at).map(|before| before.runs) else {
            // The first thread that was seen ran before that as well: it must have no earlier change.
            let is_first_change = |seen: Seen| {
                let thread = next.threads.get(seen.thread);
                thread.is_some_and(|thread| thread.carried_in && thread.first_change() == Some(seen.at))
            };
            return cpu.seed.is_none() && cpu.seen.is_none_or(is_first_change);
        };
        if cpu.seed.is_some_and(|seed| carried_in.known(seed) != Some(running)) {
            return false;
        }
        let other = cpu.seen.filter(|seen| carried_in.known(seen.thread) != Some(running));
        // The same id but another instance: the chunk knew the id alone and confused them.
        let tid = self.threads.get(running).map(UsageThread::tid);
        if other.is_some_and(|seen| next.threads.get(seen.thread).map(|thread| thread.key.tid()) == tid) {
            return false;
        }
        // Deferred events of the running thread must precede all changes of that thread in the chunk.
        let deferred = cpu.deferred.last().map(|deferred| deferred.at);
        let begin = || next.threads.get(carried_in.position(running)?)?.first_change();
        match (deferred.max(other.map(|seen| seen.at)), begin()) {
            (Some(last), Some(begin)) => last < begin || other.is_none() && last == begin && cpu.seen.is_some(),
            _ => true,
        }
    }

    /// Join the machine of the next chunk, which fits.
    pub fn append(&mut self, next: UsageMachine) {
        let carried_in = CarriedIn::find(&self.threads, &next.threads);
        let names: Vec<NameId> =
            (0..next.names.len()).map(|at| self.names.intern(next.names.get(NameId::at(at)))).collect();
        let mut now = Vec::with_capacity(carried_in.0.len());
        for (thread, known) in next.threads.iter().zip(&carried_in.0) {
            let new = || self.threads.open(thread.key, UsageThread::new(thread.key, false));
            now.push(known.unwrap_or_else(new));
        }
        let renamed = |thread: ThreadId| now.get(thread.index()).copied().unwrap_or(thread);
        // In the order of CPUs: a hash table has none.
        let mut cpus: Vec<(&HostCpu, &UsageCpu)> = next.cpus.iter().collect();
        cpus.sort_unstable_by_key(|(at, _)| **at);
        for (at, cpu) in cpus {
            self.append_cpu(*at, cpu, renamed);
        }
        let (threads, holders) = next.threads.into_parts();
        for (thread, here) in threads.zip(&now) {
            self.threads[*here].append(thread, |name| names.get(name.index()).copied());
        }
        for (key, thread) in holders {
            self.threads.rename(key, thread.map(renamed));
        }
        self.end = self.end.max(next.end);
        self.contradictions.join(next.contradictions);
    }

    /// Join one CPU of the next chunk, before its threads.
    fn append_cpu(&mut self, at: HostCpu, next: &UsageCpu, renamed: impl Fn(ThreadId) -> ThreadId) {
        // The CPU may be new: then its first event is that of the chunk.
        self.cpu(at, next.first);
        for TimedDeferred { at: t, event } in &next.deferred {
            match event {
                DeferredEvent::Call(step) => self.call(at, None, *t, *step),
                // The state of the CPU at the end of the chunk has the end of the loss.
                DeferredEvent::Lost => self.lose(at, *t, *t),
            }
        }
        if let Some(Seen { at: t, thread }) = next.seen {
            let thread = renamed(thread);
            match self.cpu(at, next.first).runs {
                Runs::Thread(other) if other != thread => {
                    self.contradict(t);
                    self.threads[other].leave(t, at);
                }
                // The slot of the thread has the change at `t`.
                Runs::Unknown(since) => self.ran_since(at, thread, since, t),
                _ => {}
            }
        }
        let cpu = self.cpu(at, next.first);
        cpu.runs = match next.runs {
            Runs::CarriedIn => cpu.runs,
            Runs::Unknown(since) => Runs::Unknown(since),
            Runs::Thread(thread) => Runs::Thread(renamed(thread)),
        };
    }
}
