//! The servers that delays are planted in: a client asks each worker over the network, and `plant` delays some of the
//! worker's executions by about `delay`.

use super::plants::{LENGTH, Plant, WORK};
use super::simulator::{self, Channel, Machine, Mutex, Op, Process, Random, turns};
use Plant::*;
use whyslow::parts::base::time::Ns;

fn call(function: &'static str, ops: Vec<Op>) -> Op {
    Op::Call(function, ops)
}

/// Two ways between a thread and its helper.
#[derive(Clone, Copy)]
struct Pair(Channel, Channel);

impl Pair {
    fn new(m: &mut Machine) -> Pair {
        Pair(m.channel(), m.channel())
    }
}

/// How they are used.
#[derive(Clone, Copy, PartialEq)]
enum By {
    Pipe,
    Socket,
    Condition,
    Signal,
}

impl By {
    fn of(plant: Plant) -> By {
        match plant {
            Condition => By::Condition,
            Signal => By::Signal,
            Socket => By::Socket,
            _ => By::Pipe,
        }
    }

    fn give(self, to: Channel, message: u64) -> Op {
        match self {
            By::Pipe => Op::Write(to, message),
            By::Socket => Op::SendLocal(to, message),
            By::Condition => Op::Post(to),
            By::Signal => Op::Kill(to),
        }
    }

    fn take(self, from: Channel) -> Op {
        match self {
            By::Pipe => Op::Read(from),
            By::Socket => Op::ReceiveLocal(from),
            By::Condition => Op::Await(from),
            By::Signal => Op::TakeSignal(from),
        }
    }
}

/// A helper that does `work` for each request, and answers.
fn helper(m: &mut Machine, process: Process, by: By, work: impl Fn(&mut Random) -> Vec<Op> + 'static) -> Pair {
    let pair = Pair::new(m);
    let answers = turns(move |dice, _| {
        let mut ops = vec![by.take(pair.0)];
        ops.extend(work(dice));
        ops.push(by.give(pair.1, 0));
        ops
    });
    m.thread(process, "helper", answers);
    pair
}

/// Take a lock for a moment.
fn locked(lock: Mutex, dice: &mut Random) -> Vec<Op> {
    vec![Op::Lock(lock), Op::Run(dice.about(5_000)), Op::Unlock(lock)]
}

/// A thread that holds a lock from time to time and does something meanwhile.
fn journal(m: &mut Machine, process: Process, lock: Mutex, meanwhile: impl Fn(&mut Random) -> Vec<Op> + 'static) {
    journal_every(14_000_000, m, process, lock, meanwhile);
}

fn journal_every(
    pause: Ns,
    m: &mut Machine,
    process: Process,
    lock: Mutex,
    meanwhile: impl Fn(&mut Random) -> Vec<Op> + 'static,
) {
    let flushes = turns(move |dice, _| {
        let held = call("flush_journal", meanwhile(dice));
        vec![Op::Sleep(dice.about(pause)), Op::Lock(lock), held, Op::Unlock(lock)]
    });
    m.thread(process, "journal", flushes);
}

/// The state that the parts of the server share.
#[derive(Clone, Copy)]
struct Parts {
    plant: Plant,
    delay: Ns,
    server: Process,
    backend: Process,
    log_lock: Mutex,
    deep_lock: Mutex,
    backend_lock: Mutex,
    disk: simulator::Disk,
}

/// Once in this many times.
const RARE: usize = 25;

impl Parts {
    /// A server without clients.
    fn disturb(self, m: &mut Machine) {
        let Parts { delay, disk, .. } = self;
        match self.plant {
            Lock => journal(m, self.server, self.log_lock, move |dice| vec![Op::Run(dice.about(delay))]),
            LockSleep => journal(m, self.server, self.log_lock, move |dice| vec![Op::Sleep(dice.about(delay))]),
            PipeLock => journal(m, self.server, self.deep_lock, move |dice| vec![Op::Run(dice.about(delay))]),
            NetworkLockPipe => {
                let scan = move |dice: &mut Random| vec![call("scan_segment", vec![Op::Run(dice.about(delay))])];
                let pair = helper(m, self.backend, By::Pipe, scan);
                journal(m, self.backend, self.backend_lock, move |_| vec![Op::Write(pair.0, 1), Op::Read(pair.1)]);
            }
            NetworkPipeLockDisk => {
                // The workers' own reads are from another disk.
                let disk = m.disk(60_000, 1_000);
                let reads = move |_: &mut Random| vec![Op::ReadDisk(disk, 4096)];
                journal_every(5_000_000, m, self.backend, self.deep_lock, reads);
                self.audit(m, disk, 2 * delay);
            }
            Disk => self.audit(m, disk, 20_000_000),
            Cpu => self.telemetry(m),
            LockCpu => self.preempted_holder(m),
            Interrupt | SoftIrq => self.interrupts(m),
            _ => {}
        }
    }

    /// Another process that writes much.
    fn audit(self, m: &mut Machine, disk: simulator::Disk, pause: Ns) {
        let audit = m.process("auditd");
        let delay = self.delay;
        let commit = turns(move |dice, _| {
            let bytes = (dice.about(delay) / 1_000 * 1024) as u32;
            vec![Op::Sleep(dice.about(pause)), call("commit_log", vec![Op::SyncDisk(disk, bytes)])]
        });
        m.thread(audit, "auditd", commit);
    }

    /// Another process that takes all CPUs at once: a free one would go on with the preempted thread.
    fn telemetry(self, m: &mut Machine) {
        let telemetry = m.process("telemetryd");
        let (delay, begins) = (self.delay, m.channel());
        let burst = move |dice: &mut Random| call("compress_burst", vec![Op::Run(dice.about(delay))]);
        let first = turns(move |dice, _| vec![Op::Sleep(dice.about(20_000_000)), Op::Write(begins, 1), burst(dice)]);
        let second = turns(move |dice, _| vec![Op::Read(begins), burst(dice)]);
        m.thread_on(telemetry, "telemetryd", first, 0, vec![0]);
        m.thread_on(telemetry, "telemetryd", second, 0, vec![1]);
    }

    /// A holder that another process preempts as soon as it has the lock.
    fn preempted_holder(self, m: &mut Machine) {
        let (delay, lock, begins) = (self.delay, self.log_lock, m.channel());
        let telemetry = m.process("telemetryd");
        let burst =
            turns(move |dice, _| vec![Op::Read(begins), call("compress_burst", vec![Op::Run(dice.about(delay))])]);
        m.thread_on(telemetry, "telemetryd", burst, 0, vec![0]);
        let holds = turns(move |dice, _| {
            let held = vec![Op::Write(begins, 1), Op::Run(dice.about(30_000))];
            vec![Op::Sleep(dice.about(14_000_000)), Op::Lock(lock), call("flush_journal", held), Op::Unlock(lock)]
        });
        m.thread_on(self.server, "journal", holds, 1, vec![0]);
    }

    /// A device that interrupts both CPUs for long.
    fn interrupts(self, m: &mut Machine) {
        let mut dice = Random::new(self.delay as u64);
        let (mut at, each) = (5_000_000, 100_000);
        while at < LENGTH {
            for i in 0..dice.about(self.delay) / each {
                let (hard, soft) = if self.plant == Interrupt { (each, 0) } else { (3_000, each - 3_000) };
                (0..2).for_each(|cpu| m.device(cpu, "eth0-rx-0", at + i * (each + 2_000), hard, soft));
            }
            at += dice.about(15_000_000);
        }
    }

    /// The server that a worker asks, and how.
    fn helper_of_worker(self, m: &mut Machine) -> Option<Pair> {
        let Parts { plant, delay, deep_lock, server, .. } = self;
        match plant {
            Pipe | Socket | Condition | Signal => {
                let work = move |dice: &mut Random| {
                    let mut ops = vec![Op::Run(dice.about(20_000))];
                    if dice.once_in(RARE) {
                        ops.push(call("scan_segment", vec![Op::Run(dice.about(delay))]));
                    }
                    ops
                };
                Some(helper(m, server, By::of(plant), work))
            }
            PipeLock => Some(helper(m, server, By::Pipe, move |dice| locked(deep_lock, dice))),
            _ => None,
        }
    }

    /// The backend of a worker: a connection to it.
    fn backend_of_worker(self, m: &mut Machine) -> Option<(Channel, Channel)> {
        let Parts { plant, delay, deep_lock, backend_lock, backend, .. } = self;
        if !matches!(plant, Network | NetworkLockPipe | NetworkPipeLockDisk) {
            return None;
        }
        let (ask, answer) = m.connection();
        let below =
            (plant == NetworkPipeLockDisk).then(|| helper(m, backend, By::Pipe, move |dice| locked(deep_lock, dice)));
        let serves = turns(move |dice, _| {
            let mut ops = vec![Op::Receive(ask), Op::Run(dice.about(30_000))];
            match plant {
                Network if dice.once_in(RARE) => ops.push(call("rebuild_cache", vec![Op::Run(dice.about(delay))])),
                NetworkLockPipe => ops.extend(locked(backend_lock, dice)),
                _ => {}
            }
            if let Some(pair) = below {
                ops.extend([Op::Write(pair.0, 1), Op::Read(pair.1)]);
            }
            ops.push(Op::Send(answer, 0));
            ops
        });
        m.thread(backend, "backend", serves);
        Some((ask, answer))
    }

    /// A worker and the client that asks it.
    fn worker(self, m: &mut Machine, workers: usize) {
        let Parts { plant, delay, server, log_lock, disk, .. } = self;
        let (own, backend) = (self.helper_of_worker(m), self.backend_of_worker(m));
        let (to, from) = m.connection();
        let (by, ended) = (By::of(plant), m.channel());
        let request = move |dice: &mut Random| {
            let mut ops = vec![call("parse_request", vec![Op::Run(dice.about(WORK / 2))])];
            let append = vec![Op::Lock(log_lock), Op::Run(dice.about(10_000)), Op::Unlock(log_lock)];
            ops.push(call("append_entry", append));
            if matches!(plant, Disk) || dice.once_in(8) {
                ops.push(call("fetch_block", vec![Op::ReadDisk(disk, 4096)]));
            }
            if let Some(pair) = own {
                ops.push(call("ask_helper", vec![by.give(pair.0, 1), by.take(pair.1)]));
            }
            if let Some((ask, answer)) = backend {
                ops.push(call("ask_backend", vec![Op::Send(ask, 1), Op::Receive(answer)]));
            }
            match plant {
                Sleep if dice.once_in(RARE) => ops.push(call("retry_backoff", vec![Op::Sleep(dice.about(delay))])),
                Work if dice.once_in(RARE) => ops.push(call("rebuild_index", vec![Op::Run(dice.about(delay))])),
                Worker if dice.once_in(RARE) => ops.push(call("sync_index", vec![Op::FlushWork(dice.about(delay))])),
                Child if dice.once_in(RARE) => {
                    let runs = dice.about(delay);
                    let child = Op::fork("gzip", move || vec![call("compress_log", vec![Op::Run(runs)])], ended);
                    ops.push(call("rotate_log", vec![child, Op::WaitChild(ended)]));
                }
                _ => {}
            }
            ops.push(call("send_reply", vec![Op::Run(dice.about(WORK / 2))]));
            call("handle_request", ops)
        };
        let number = to.0 as i64 * 1_000_000;
        let serves = turns(move |dice, turn| {
            let id = vec![("id", number + turn as i64)];
            let (begin, end) = (Op::Mark("app:request_begin", id.clone()), Op::Mark("app:request_end", id));
            let request = request(dice);
            if plant != Thread {
                return vec![Op::Receive(to), begin, request, end, Op::Send(from, 0)];
            }
            // A thread of its own for each request.
            let mut ops = vec![Op::Receive(to), begin];
            if dice.once_in(RARE) {
                ops.push(call("prepare_job", vec![Op::Run(dice.about(delay))]));
            }
            let serve = move || vec![request.clone(), end.clone(), Op::Send(from, 0)];
            ops.push(Op::spawn("worker", serve, ended));
            ops
        });
        m.thread(server, if plant == Thread { "acceptor" } else { "worker" }, serves);
        let think = WORK * workers as Ns;
        let asks = turns(move |dice, _| vec![Op::Sleep(dice.about(think)), Op::Send(to, 1), Op::Receive(from)]);
        let client = m.process("client");
        m.thread(client, "client", asks);
    }
}

/// A server of this many workers, in which `plant` delays some executions by about `delay`.
pub fn server(seed: u64, workers: usize, plant: Plant, delay: Ns) -> Machine {
    let mut m = Machine::new(2, seed);
    let (server, backend) = (m.process("server"), m.process("backend"));
    let (log_lock, deep_lock, backend_lock) = (m.mutex(), m.mutex(), m.mutex());
    let disk = m.disk(60_000, 1_000);
    let parts = Parts { plant, delay, server, backend, log_lock, deep_lock, backend_lock, disk };
    parts.disturb(&mut m);
    (0..workers).for_each(|_| parts.worker(&mut m, workers));
    m
}
