//! Generated servers with one planted delay each: by every carrier that the kernel has, and through chains of up to
//! four of them.
//!
//! The programs (`servers.rs`) determine the planted delay; the simulated schedule shows that it is the largest.

use super::servers::server;
use super::simulator::World;
use super::simulator::truth::{Blame, End, Schedule};
use std::collections::BTreeMap;
use whyslow::parts::base::time::Ns;

/// The time of an execution without delays.
pub const WORK: Ns = 500_000;
/// Its variation: an execution takes 80 to 160 % of its work.
pub const NOISE: Ns = WORK * 8 / 10;
/// The length of a recording.
pub const LENGTH: Ns = 400_000_000;

/// The planted delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plant {
    Nothing,
    Work,
    Sleep,
    Lock,
    Cpu,
    Disk,
    Network,
    Socket,
    Pipe,
    Condition,
    Signal,
    Worker,
    Child,
    Thread,
    Interrupt,
    SoftIrq,
    /// Request <- lock <- a holder that sleeps.
    LockSleep,
    /// Request <- lock <- a holder that lost its CPU <- another process.
    LockCpu,
    /// Request <- pipe <- helper <- lock <- the holder that runs.
    PipeLock,
    /// Request <- network <- backend <- lock <- holder <- pipe <- the helper that runs.
    NetworkLockPipe,
    /// Request <- network <- backend <- pipe <- helper <- lock <- holder <- the disk behind another process's writes.
    NetworkPipeLockDisk,
}
use Plant::*;

pub const PLANTS: [Plant; 20] = [
    Work,
    Sleep,
    Lock,
    Cpu,
    Disk,
    Network,
    Socket,
    Pipe,
    Condition,
    Signal,
    Worker,
    Child,
    Thread,
    Interrupt,
    SoftIrq,
    LockSleep,
    LockCpu,
    PipeLock,
    NetworkLockPipe,
    NetworkPipeLockDisk,
];

/// The expected source: its thread or interrupt, its function, and the carriers of its delay to the worker.
pub struct Source {
    pub name: &'static str,
    pub function: &'static str,
    pub via: &'static [&'static str],
}

impl Plant {
    /// For the table.
    pub fn row(self) -> &'static str {
        match self {
            Nothing => "nothing",
            Work => "own work",
            Sleep => "sleep (timer)",
            Lock | LockSleep => "lock",
            Cpu => "preemption",
            Disk => "disk",
            Network => "network",
            Socket | Pipe => "socket, pipe",
            Condition | Signal => "condition, signal",
            Worker => "work queue",
            Child | Thread => "fork, exit",
            Interrupt | SoftIrq => "interrupt, soft interrupt",
            LockCpu => "lock of a preempted holder",
            PipeLock | NetworkLockPipe | NetworkPipeLockDisk => "chains of two to four carriers",
        }
    }

    /// The culprit.
    pub fn source(self) -> Source {
        let (name, function, via): (_, _, &'static [&'static str]) = match self {
            Nothing => ("", "", &[]),
            Work => ("worker", "rebuild_index", &[]),
            Sleep => ("worker", "retry_backoff", &[]),
            Lock | LockSleep => ("journal", "flush_journal", &["lock"]),
            Cpu => ("telemetryd", "compress_burst", &["cpu"]),
            Disk => ("auditd", "commit_log", &["disk"]),
            Network => ("backend", "rebuild_cache", &["packet"]),
            Socket => ("helper", "scan_segment", &["socket"]),
            Pipe => ("helper", "scan_segment", &["pipe"]),
            Condition => ("helper", "scan_segment", &["lock"]),
            Signal => ("helper", "scan_segment", &["signal"]),
            Worker => ("kworker", "", &["workqueue"]),
            Child => ("gzip", "compress_log", &["exit"]),
            Thread => ("acceptor", "prepare_job", &["fork"]),
            Interrupt => ("interrupt eth0-rx-0", "", &["interrupt"]),
            SoftIrq => ("softirq NET_RX", "", &["softirq"]),
            LockCpu => ("telemetryd", "compress_burst", &["cpu", "lock"]),
            PipeLock => ("journal", "flush_journal", &["lock", "pipe"]),
            NetworkLockPipe => ("helper", "scan_segment", &["pipe", "lock", "packet"]),
            NetworkPipeLockDisk => ("auditd", "commit_log", &["disk", "lock", "pipe", "packet"]),
        };
        Source { name, function, via }
    }

    /// True if, by the schedule, the plant delays the execution.
    fn is_behind(self, schedule: &Schedule, thread: usize, blame: &Blame) -> bool {
        let source = self.source();
        match (self, blame.end) {
            (Interrupt | SoftIrq, End::Interrupted(by)) => by == "eth0-rx-0",
            (Interrupt | SoftIrq, _) => false,
            _ => {
                let by = schedule.threads[blame.last(thread)].task.comm.starts_with(source.name);
                by && (source.function.is_empty() || blame.function == Some(source.function))
            }
        }
    }
}

/// The run of such a server. With a delay over 3 times the noise, a run is drawn again if, by the schedule, the plant
/// delayed executions less than twice as much as any other cause: its delay would not be the first.
pub fn world(seed: u64, workers: usize, plant: Plant, delay: Ns) -> World {
    for attempt in 0..20 {
        let world = server(seed + 10_000 * attempt, workers, plant, delay).run(LENGTH);
        // A request of its own thread is no execution to the schedule.
        if matches!(plant, Nothing | Thread) || delay < 3 * NOISE || is_largest(&world.schedule, plant) {
            return world;
        }
    }
    panic!("{plant:?} {seed}: the plant has no effect")
}

/// How an execution waits, for which thread, and in which function.
type Cause = (&'static str, String, Option<&'static str>);

fn is_largest(schedule: &Schedule, plant: Plant) -> bool {
    const SAMPLES: Ns = 64;
    // By cause of the delay, `None` for the plant: the length of each execution.
    let mut held: BTreeMap<Option<Cause>, Vec<Ns>> = BTreeMap::new();
    let executions = schedule.executions("app:request_begin", "app:request_end");
    for (at, execution) in executions.iter().enumerate() {
        let length = execution.to - execution.from;
        for i in 0..SAMPLES {
            let blame = schedule.blame(execution.thread, execution.from + length * (2 * i + 1) / (2 * SAMPLES));
            let last = || schedule.threads[blame.last(execution.thread)].task.comm.to_string();
            let by = match plant.is_behind(schedule, execution.thread, &blame) {
                true => None,
                false if blame.kind() == "cpu" => continue,
                false => Some((blame.kind(), last(), blame.function)),
            };
            held.entry(by).or_insert_with(|| vec![0; executions.len()])[at] += length / SAMPLES;
        }
    }
    // A wait that every execution has delays none.
    let delay = |mut held: Vec<Ns>| {
        held.sort_unstable();
        let usual = held[held.len() / 2];
        held.into_iter().map(|ns| (ns - usual).max(0)).sum::<Ns>()
    };
    let planted = held.remove(&None).map_or(0, delay);
    planted > 0 && held.into_values().map(delay).all(|other| planted >= 2 * other)
}
