//! Generated services: a server whose workers answer requests over connections, with a lock, a disk and a backend, on a
//! machine of 1 to 16 CPUs among other processes; and, planted in it, one cause that makes some requests slow, or none.

use super::program::Program;
use super::recorder::{Contexts, Dialect, Losses, Manner, Missing, Twice};
use super::truth::Execution;
use super::{Channel, Disk, Machine, Mutex, Op, Process, Random, World, turns};
use whyslow::base::time::Ns;

/// The planted cause of slow requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plant {
    None,
    /// Another thread of the server holds the lock for long.
    Lock,
    /// Another process writes much.
    Disk,
    /// An urgent process takes the CPUs.
    Preemption,
    /// Some requests sleep.
    Sleep,
    /// Some requests compute.
    Cpu,
    /// The backend, another process, computes for some requests.
    Backend,
    /// A device floods the CPUs with interrupts.
    Interrupts,
}

impl Plant {
    pub const ALL: [Plant; 8] = [
        Plant::None,
        Plant::Lock,
        Plant::Disk,
        Plant::Preemption,
        Plant::Sleep,
        Plant::Cpu,
        Plant::Backend,
        Plant::Interrupts,
    ];

    /// In the words of `explain --json`.
    pub fn kind(self) -> &'static str {
        match self {
            Plant::None => "",
            Plant::Lock => "blocked.thread",
            Plant::Disk => "blocked.disk",
            Plant::Preemption => "preempted",
            Plant::Sleep => "blocked.timer",
            Plant::Cpu => "cpu",
            Plant::Backend => "blocked.network",
            Plant::Interrupts => "interrupted",
        }
    }

    /// The thread at fault, where it is not the request's own.
    pub fn culprit(self) -> Option<&'static str> {
        match self {
            Plant::Lock => Some("housekeeper"),
            Plant::Disk => Some("backupd"),
            Plant::Preemption => Some("telemetryd"),
            Plant::Backend => Some("backend"),
            Plant::None | Plant::Sleep | Plant::Cpu | Plant::Interrupts => None,
        }
    }

    /// Functions of which one must be named where stacks are recorded.
    pub fn functions(self) -> &'static [&'static str] {
        match self {
            Plant::Lock => &["compact_table"],
            Plant::Disk => &["flush_archive", "load_record"],
            Plant::Preemption => &["encode_frames"],
            Plant::Sleep => &["retry_backoff"],
            Plant::Cpu => &["rebuild_index"],
            Plant::Backend => &["scan_partition"],
            Plant::None | Plant::Interrupts => &[],
        }
    }

    /// The recording lacks the events that prove this cause.
    pub fn lacks(self, manner: &Manner) -> bool {
        let none = |m: &[Missing]| m.iter().any(|m| manner.missing.contains(m));
        if self == Plant::None {
            return false;
        }
        none(&[Missing::Switches])
            || match self {
                Plant::Lock => none(&[Missing::Wakeups, Missing::Waking]),
                Plant::Disk => none(&[Missing::Wakeups, Missing::Block, Missing::Interrupts]),
                Plant::Sleep => none(&[Missing::Wakeups]) || none(&[Missing::HrTimers]) && none(&[Missing::Calls]),
                Plant::Backend => {
                    none(&[Missing::Wakeups, Missing::Waking, Missing::Network, Missing::Interrupts])
                        || manner.dialect == Dialect::Perf
                }
                Plant::Interrupts => none(&[Missing::Interrupts]),
                Plant::None | Plant::Preemption | Plant::Cpu => false,
            }
    }
}

/// A generated machine.
pub struct Generated {
    pub plant: Plant,
    pub cpus: usize,
    pub world: World,
    pub manner: Manner,
}

/// Shared by the parts of the service.
#[derive(Clone, Copy)]
struct Service {
    lock: Mutex,
    disk: Disk,
    plant: Plant,
    /// Of a request without a plant, about.
    base: Ns,
    /// The plant's delay.
    delay: Ns,
    /// One request in so many meets it.
    rare: usize,
    reads: bool,
    locks: bool,
    asks_backend: bool,
}

/// The message that makes the backend work long.
const LONG: u64 = 7;

impl Service {
    fn request(self, backend: Option<(Channel, Channel)>, dice: &mut Random) -> Op {
        let hit = dice.once_in(self.rare);
        let mut ops = vec![Op::Call("parse_request", vec![Op::Run(dice.about(self.base / 4))])];
        if self.locks {
            let inside = vec![Op::Lock(self.lock), Op::Run(dice.about(self.base / 20)), Op::Unlock(self.lock)];
            ops.push(Op::Call("update_table", inside));
        }
        if self.reads {
            ops.push(Op::Call("load_record", vec![Op::ReadDisk(self.disk, 4096)]));
        }
        if let Some((to, from)) = backend {
            let message = if hit && self.plant == Plant::Backend { LONG } else { 1 };
            ops.push(Op::Call("ask_backend", vec![Op::Send(to, message), Op::Receive(from)]));
        }
        match self.plant {
            Plant::Sleep if hit => ops.push(Op::Call("retry_backoff", vec![Op::Sleep(dice.about(self.delay))])),
            Plant::Cpu if hit => ops.push(Op::Call("rebuild_index", vec![Op::Run(dice.about(self.delay))])),
            _ => {}
        }
        ops.push(Op::Call("render_reply", vec![Op::Run(dice.about(self.base / 2))]));
        Op::Call("handle_request", ops)
    }

    fn worker(self, (to, from): (Channel, Channel), backend: Option<(Channel, Channel)>) -> Program {
        turns(move |dice, turn| {
            vec![
                Op::Receive(to),
                Op::Mark("app:request_begin", vec![("id", turn as i64)]),
                self.request(backend, dice),
                Op::Mark("app:request_end", vec![]),
                Op::Send(from, 0),
            ]
        })
    }

    fn backend(self, (to, from): (Channel, Channel)) -> Program {
        turns(move |_, _| {
            let work = move |message: u64, dice: &mut Random| {
                let function = if message == LONG { "scan_partition" } else { "lookup_key" };
                let ns = if message == LONG { self.delay } else { self.base / 6 };
                vec![Op::Call(function, vec![Op::Run(dice.about(ns))])]
            };
            vec![Op::Receive(to), Op::choose(work), Op::Send(from, 0)]
        })
    }
}

/// A machine by its number.
pub fn machine(seed: u64) -> Generated {
    let mut dice = Random::new(seed ^ 0x00ac_415e);
    let plant = Plant::ALL[seed as usize % Plant::ALL.len()];
    let manner = manner(&mut dice, seed);
    let cpus = [1, 2, 2, 3, 4, 4, 6, 8, 12, 16][dice.below(10)];
    for attempt in 0.. {
        let world = build(plant, cpus, seed * 31 + attempt);
        // The truth decides: a plant that the schedule does not show to be the largest part is drawn again.
        if plant == Plant::None || share(&world, plant) > 0.6 {
            return Generated { plant, cpus, world, manner };
        }
        assert!(attempt < 20, "machine {seed}: the plant {plant:?} has no effect");
    }
    unreachable!("an attempt is made or the machine is refused")
}

fn build(plant: Plant, cpus: usize, seed: u64) -> World {
    let mut dice = Random::new(seed);
    let mut m = Machine::new(cpus, seed);
    let base = dice.between(300_000, 900_000);
    let service = Service {
        lock: m.mutex(),
        disk: m.disk(150_000, 800),
        plant,
        base,
        delay: base * dice.between(8, 16),
        rare: 10 + dice.below(8),
        reads: plant == Plant::Disk || dice.once_in(2),
        locks: plant == Plant::Lock || dice.once_in(2),
        asks_backend: plant == Plant::Backend || dice.once_in(3),
    };
    let contained = dice.once_in(3);
    let server = m.process("server");
    let (client, backend) = (m.process("loadgen"), m.process("backend"));
    if contained {
        m.contain(server);
    }
    let workers = 2 + dice.below(4);
    // The server's share of the machine: so that planted CPU time is met.
    let own: Vec<usize> = (0..cpus.min(workers.max(2))).collect();
    // The machine is busy to a third.
    let think = base * (workers as Ns) * 3 / own.len() as Ns;
    for number in 0..workers {
        let connection = m.connection();
        let to_backend = service.asks_backend.then(|| m.connection());
        if let Some(connection) = to_backend {
            m.thread(backend, "backend", service.backend(connection));
        }
        let name = ["worker-0", "worker-1", "worker-2", "worker-3", "worker-4", "worker-5"][number];
        m.thread_on(server, name, service.worker(connection, to_backend), 1, own.clone());
        let (to, from) = connection;
        let ask = turns(move |dice, _| {
            vec![Op::Sleep(dice.between(think / 3, think * 2)), Op::Send(to, 1), Op::Receive(from)]
        });
        m.thread(client, "loadgen", ask);
    }
    disturb(&mut m, service, server, &own, think, &mut dice);
    others(&mut m, service, &mut dice);
    m.run(think * 150)
}

/// Runs the plant beside the service.
fn disturb(m: &mut Machine, service: Service, server: Process, own: &[usize], think: Ns, dice: &mut Random) {
    // So often that about one request in `rare` meets it.
    let period = service.delay * service.rare as Ns;
    let (delay, lock, disk) = (service.delay, service.lock, service.disk);
    match service.plant {
        Plant::Lock => {
            // On one CPU a holder that computes keeps the others from asking for the lock: it writes.
            let writes = own.len() == 1 || dice.once_in(3);
            let bytes = (delay / 800 * 1024) as u32 / 4096 * 4096;
            let keep = turns(move |dice, _| {
                let work = if writes { Op::SyncDisk(disk, bytes) } else { Op::Run(dice.about(delay)) };
                let inside = vec![Op::Lock(lock), Op::Call("compact_table", vec![work]), Op::Unlock(lock)];
                vec![Op::Sleep(dice.about(period)), Op::Call("housekeeping", inside)]
            });
            m.thread(server, "housekeeper", keep);
        }
        Plant::Disk => {
            let backup = m.process("backupd");
            let bytes = (delay / 800 / 3 * 1024) as u32 / 4096 * 4096;
            for _ in 0..3 {
                let write = turns(move |dice, _| {
                    vec![Op::Sleep(dice.about(period)), Op::Call("flush_archive", vec![Op::SyncDisk(disk, bytes)])]
                });
                m.thread(backup, "backupd", write);
            }
        }
        Plant::Preemption => {
            let telemetry = m.process("telemetryd");
            // Bursts meet only requests that run where they begin, or for which no CPU is left.
            let (delay, period) = (service.base * 4, service.base * 12);
            for cpu in own {
                let burst = turns(move |dice, _| {
                    vec![Op::Sleep(dice.about(period)), Op::Call("encode_frames", vec![Op::Run(dice.about(delay))])]
                });
                m.thread_on(telemetry, "telemetryd", burst, 0, vec![*cpu]);
            }
        }
        Plant::Interrupts => {
            let length = 150_000;
            for cpu in own {
                let mut at = dice.between(period / 2, period);
                while at < think * 150 {
                    m.interrupts(*cpu, "eth0-rx-0", at, (delay / length) as usize, length + 20_000, length);
                    at += dice.about(period);
                }
            }
        }
        Plant::None | Plant::Sleep | Plant::Cpu | Plant::Backend => {}
    }
}

/// Other processes that do their own work and delay no other for long.
fn others(m: &mut Machine, service: Service, dice: &mut Random) {
    let base = service.base;
    let cron = m.process("cron");
    m.thread(
        cron,
        "cron",
        turns(move |dice, _| vec![Op::Sleep(dice.between(base * 20, base * 60)), Op::Run(dice.about(base / 8))]),
    );
    if dice.once_in(2) {
        let logger = m.process("logger");
        let pipe = m.channel();
        m.thread(
            cron,
            "cron-log",
            turns(move |dice, _| vec![Op::Sleep(dice.between(base * 10, base * 30)), Op::Write(pipe, 1)]),
        );
        m.thread(logger, "logger", turns(move |dice, _| vec![Op::Read(pipe), Op::Run(dice.about(base / 10))]));
    }
}

/// The part of the difference between slow and fast executions that the plant made, by the schedule: of those in the
/// slowest twentieth and those in the faster half.
pub fn share(world: &World, plant: Plant) -> f64 {
    let mut all = world.schedule.executions("app:request_begin", "app:request_end");
    if all.len() < 60 {
        return 0.0;
    }
    all.sort_by_key(|e| e.to - e.from);
    let (slow, fast) = (&all[all.len() * 19 / 20..], &all[..all.len() / 2]);
    let of = |executions: &[Execution]| -> (f64, f64) {
        let (mut planted, mut total) = (0.0, 0.0);
        for execution in executions {
            for ((kind, thread, function), ns) in world.schedule.spent(execution) {
                let by = plant.culprit().is_none_or(|culprit| thread == culprit);
                let functions = plant.functions();
                if kind == plant.kind() && by && (functions.is_empty() || functions.contains(&function)) {
                    planted += ns;
                }
                total += ns;
            }
        }
        (planted / executions.len() as f64, total / executions.len() as f64)
    };
    let ((slow_planted, slow_total), (fast_planted, fast_total)) = (of(slow), of(fast));
    (slow_planted - fast_planted) / (slow_total - fast_total)
}

/// The manner of a recording: a quarter record everything, the others have one or two peculiarities.
fn manner(dice: &mut Random, seed: u64) -> Manner {
    let mut manner = Manner { seed, ..Manner::default() };
    let missing = [
        Missing::Wakeups,
        Missing::Waking,
        Missing::Wakeup,
        Missing::Migrations,
        Missing::Switches,
        Missing::Life,
        Missing::HrTimers,
        Missing::Interrupts,
        Missing::Vectors,
        Missing::Network,
        Missing::Block,
        Missing::Calls,
        Missing::Statedump,
    ];
    for _ in 0..[0, 1, 1, 2][dice.below(4)] {
        match dice.below(12) {
            0 => manner.contexts = Contexts::Tid,
            1 => manner.contexts = Contexts::None,
            2 => manner.stacks = false,
            3 => manner.twice = Some(Twice::WithStacks(dice.between(3_000, 12_000))),
            4 => manner.twice = Some(Twice::InChannel(dice.between(3_000, 12_000))),
            5 => manner.second_session = Some(dice.between(3_000, 12_000)),
            6 => manner.namespaces_recorded = false,
            7 => manner.losses = if dice.once_in(2) { Losses::Reported } else { Losses::Unreported },
            8 => manner.dialect = Dialect::Perf,
            9 => manner.user_clock_ahead = Some(dice.between(200_000, 3_000_000)),
            _ => manner.missing.push(missing[dice.below(missing.len())]),
        }
    }
    manner
}

/// The manner in a few words.
pub fn words(manner: &Manner) -> String {
    let mut words: Vec<String> = manner.missing.iter().map(|m| format!("no {m:?}")).collect();
    let mut say = |holds: bool, word: &str| {
        if holds {
            words.push(word.to_owned());
        }
    };
    say(manner.contexts == Contexts::Tid, "tid only");
    say(manner.contexts == Contexts::None, "no contexts");
    say(!manner.stacks, "no stacks");
    say(matches!(manner.twice, Some(Twice::WithStacks(_))), "switches twice with stacks");
    say(matches!(manner.twice, Some(Twice::InChannel(_))), "switches twice");
    say(manner.second_session.is_some(), "two sessions");
    say(!manner.namespaces_recorded, "containers unrecorded");
    say(manner.losses == Losses::Reported, "reported losses");
    say(manner.losses == Losses::Unreported, "unreported losses");
    say(manner.dialect == Dialect::Perf, "perf's names");
    say(manner.user_clock_ahead.is_some(), "another clock");
    if words.is_empty() { "everything".to_owned() } else { words.join(", ") }
}

/// A server whose requests sleep in `retry_backoff` once in 20 times.
pub fn sleeper(seed: u64) -> World {
    let mut m = Machine::new(2, seed);
    let (server, client) = (m.process("server"), m.process("client"));
    let (lock, disk) = (m.mutex(), m.disk(200_000, 1_000));
    for _ in 0..3 {
        let (to, from) = m.connection();
        let request = move |slow: bool, dice: &mut Random| {
            let mut ops =
                vec![Op::Run(dice.about(300_000)), Op::Lock(lock), Op::Run(dice.about(50_000)), Op::Unlock(lock)];
            ops.push(Op::ReadDisk(disk, 4096));
            if slow {
                ops.push(Op::Call("retry_backoff", vec![Op::Sleep(dice.about(9_000_000))]));
            }
            Op::Call("handle_request", ops)
        };
        let worker = turns(move |dice, _| {
            let slow = dice.once_in(20);
            let (begin, end) = (Op::Mark("app:request_begin", vec![]), Op::Mark("app:request_end", vec![]));
            vec![Op::Receive(to), begin, request(slow, dice), end, Op::Send(from, 0)]
        });
        m.thread(server, "worker", worker);
        let asks = turns(move |dice, _| vec![Op::Sleep(dice.about(1_000_000)), Op::Send(to, 1), Op::Receive(from)]);
        m.thread(client, "client", asks);
    }
    m.run(500_000_000)
}
