//! A server whose workers answer requests over connections, with a lock, a disk and a backend, among other processes;
//! and, planted in it, one cause that makes some requests slow, or none.

use super::plants::Plant;
use super::program::Program;
use super::{Channel, Disk, Machine, Mutex, Op, Process, Random, World, turns};
use whyslow::parts::base::time::Ns;

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
    /// One request in this many meets it.
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

pub(super) fn build(plant: Plant, cpus: usize, seed: u64) -> World {
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
        _ => {}
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
