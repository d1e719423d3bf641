//! One thread of the usage machine: its time on each CPU, its reads and writes, its ids and its name.

use super::calls::Calls;
use super::slot::{Change, Slot};
use crate::base::names::NameId;
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::host::HostId;
use crate::kernel::threads::{HostTid, Observed, ThreadInstance};
use foldhash::HashMap;

/// A CPU of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct HostCpu {
    pub host: HostId,
    pub cpu: u16,
}

/// A thread instance.
#[derive(Clone, Debug)]
pub(super) struct UsageThread {
    /// Its name in the first event that named it.
    pub key: HostTid,
    tid: i32,
    /// In a chunk: true if it may be a thread of the carried-in state, found by its id.
    pub carried_in: bool,
    /// True if its last switch was recorded, or another thread took its id.
    pub ended: bool,
    /// The CPU on which it runs.
    slot: Slot<Option<HostCpu>>,
    /// Its time on each CPU.
    pub on: HashMap<HostCpu, Ns>,
    pub calls: Calls,
    pid: Observed<i32>,
    name: Observed<NameId>,
}

impl ThreadInstance for UsageThread {
    type Ended = UsageThread;

    fn tid(&self) -> i32 {
        self.tid
    }

    fn set_tid(&mut self, tid: i32) {
        self.tid = tid;
    }

    fn is_alive(&self) -> bool {
        !self.ended
    }
}

impl UsageThread {
    /// A thread that does not run, or one that may be carried in, whose state is unknown.
    pub fn new(key: HostTid, carried_in: bool) -> UsageThread {
        UsageThread {
            key,
            tid: key.tid(),
            carried_in,
            ended: false,
            slot: if carried_in { Slot::default() } else { Slot::known(None, Timestamp::MIN) },
            on: HashMap::default(),
            calls: Calls::new(!carried_in),
            pid: Observed::default(),
            name: Observed::default(),
        }
    }

    /// True for an idle task.
    pub fn is_idle(&self) -> bool {
        self.key.is_idle()
    }

    pub fn host(&self) -> HostId {
        self.key.host()
    }

    pub fn pid(&self) -> i32 {
        self.pid.get().unwrap_or(self.tid)
    }

    pub fn name(&self) -> Option<NameId> {
        self.name.get()
    }

    /// An event of the thread has its process and name, or one of them.
    pub fn observe(&mut self, pid: Option<i32>, name: Option<NameId>) {
        self.pid.observe(pid);
        self.name.observe(name);
    }

    /// The state dump has its process and name.
    pub fn fill(&mut self, pid: i32, name: Option<NameId>) {
        self.pid.fill(Some(pid));
        self.name.fill(name);
    }

    /// From `t` on it runs on a CPU, whatever its state was.
    pub fn run(&mut self, t: Timestamp, cpu: HostCpu) {
        self.change(t, Change::Set(Some(cpu)));
    }

    /// It runs on a CPU since `since`, or since `t` if it ran on another CPU after `since`.
    pub fn run_since(&mut self, since: Timestamp, t: Timestamp, cpu: HostCpu) {
        let from = if self.slot.last().is_none_or(|last| last <= since) { since } else { t };
        self.run(from, cpu);
    }

    /// From `t` on it does not run.
    pub fn stop(&mut self, t: Timestamp) {
        self.change(t, Change::Set(None));
    }

    /// If it runs on this CPU, it stops at `t`.
    pub fn leave(&mut self, t: Timestamp, cpu: HostCpu) {
        self.change(t, Change::If(Some(cpu), None));
    }

    fn change(&mut self, t: Timestamp, change: Change<Option<HostCpu>>) {
        let on = &mut self.on;
        self.slot.change(t, change, &mut |cpu, span| add_time(on, cpu, span.len()));
    }

    /// Time of the first event by which it starts or stops running, if it may be carried in.
    pub fn first_change(&self) -> Option<Timestamp> {
        self.slot.begins()
    }

    /// Join the same thread of the next chunk; `rename` returns this machine's id of a name.
    pub fn append(&mut self, next: UsageThread, rename: impl Fn(NameId) -> Option<NameId>) {
        let on = &mut self.on;
        next.on.iter().for_each(|(cpu, time)| add_time(on, Some(*cpu), *time));
        if next.carried_in {
            self.slot.append(next.slot, &mut |cpu, span| add_time(on, cpu, span.len()));
            self.calls.append(next.calls);
        } else {
            (self.slot, self.calls) = (next.slot, next.calls);
        }
        self.tid = next.tid;
        self.ended |= next.ended;
        self.pid.join(next.pid, Some);
        self.name.join(next.name, rename);
    }

    /// Its run ends; `end` returns when, by its CPU.
    pub fn close(&mut self, end: impl Fn(Option<HostCpu>) -> Timestamp) {
        let slot = std::mem::take(&mut self.slot);
        let (end, on) = (end(slot.value().flatten()), &mut self.on);
        slot.close(end, &mut |cpu, span: Span| add_time(on, cpu, span.len()));
    }
}

fn add_time(on: &mut HashMap<HostCpu, Ns>, cpu: Option<HostCpu>, time: Ns) {
    if let Some(cpu) = cpu {
        let all = on.entry(cpu).or_default();
        *all = all.saturating_add(time);
    }
}
