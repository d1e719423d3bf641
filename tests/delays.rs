//! Delays planted in generated servers, one carrier or chain of carriers each: `anomalies` must name their source first, and
//! where nothing is planted no source may claim much of the executions' time.
//!
//! The machines are simulated (`simulator/`); what is planted is known from the programs. A delay is some times the noise: an
//! execution takes 80 to 160 % of its work.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod simulator;

use serde_json::Value;
use simulator::recorder::{Manner, record};
use simulator::{Channel, Dice, Machine, Mutex, Op, Process, turns};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use whyslow::base::time::Ns;

/// What an execution does without delays.
const WORK: Ns = 500_000;
/// By how much that varies.
const NOISE: Ns = WORK * 8 / 10;

/// What is planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Plant {
    Nothing,
    Work,
    Sleep,
    Lock,
    Cpu,
    Disk,
    Network,
    Pipe,
    Condition,
    Signal,
    Worker,
    Child,
    /// Request <- lock <- a holder that sleeps.
    LockSleep,
    /// Request <- pipe <- helper <- lock <- the holder that runs.
    PipeLock,
    /// Request <- network <- backend <- lock <- holder <- pipe <- the helper that runs.
    NetworkLockPipe,
    /// Request <- network <- backend <- pipe <- helper <- lock <- holder <- the disk behind another process's writes.
    NetworkPipeLockDisk,
}
use Plant::*;

const PLANTS: [Plant; 15] = [
    Work,
    Sleep,
    Lock,
    Cpu,
    Disk,
    Network,
    Pipe,
    Condition,
    Signal,
    Worker,
    Child,
    LockSleep,
    PipeLock,
    NetworkLockPipe,
    NetworkPipeLockDisk,
];

impl Plant {
    /// For the table.
    fn row(self) -> &'static str {
        match self {
            Nothing => "nothing",
            Work => "own work",
            Sleep => "sleep",
            Lock | LockSleep => "lock",
            Cpu => "preemption",
            Disk => "disk",
            Network => "network",
            Pipe | Condition | Signal => "pipe, condition, signal",
            Worker | Child => "kernel worker, child",
            PipeLock | NetworkLockPipe | NetworkPipeLockDisk => "chains of three and four hops",
        }
    }

    /// Thread and function of the source.
    fn source(self) -> (&'static str, &'static str) {
        match self {
            Nothing => ("", ""),
            Work => ("worker", "rebuild_index"),
            Sleep => ("worker", "retry_backoff"),
            Lock | LockSleep | PipeLock => ("journal", "flush_journal"),
            Cpu => ("telemetryd", "compress_burst"),
            Disk | NetworkPipeLockDisk => ("auditd", "commit_log"),
            Network => ("backend", "rebuild_cache"),
            Pipe | Condition | Signal | NetworkLockPipe => ("helper", "scan_segment"),
            Worker => ("kworker", ""),
            Child => ("gzip", "compress_log"),
        }
    }
}

fn call(function: &'static str, ops: Vec<Op>) -> Op {
    Op::Call(function, ops)
}

/// Two ways between a thread and its helper.
#[derive(Clone, Copy)]
struct Pair(Channel, Channel);

/// How they are used.
#[derive(Clone, Copy, PartialEq)]
enum By {
    Pipe,
    Condition,
    Signal,
}

impl By {
    fn give(self, to: Channel, message: u64) -> Op {
        match self {
            By::Pipe => Op::Write(to, message),
            By::Condition => Op::Post(to),
            By::Signal => Op::Kill(to),
        }
    }

    fn take(self, from: Channel) -> Op {
        match self {
            By::Pipe => Op::Read(from),
            By::Condition => Op::Await(from),
            By::Signal => Op::TakeSignal(from),
        }
    }
}

/// A helper that answers, and before it does so does `rarely` once in so many times.
fn helper(m: &mut Machine, process: Process, by: By, rarely: impl Fn(&mut Dice) -> Vec<Op> + 'static) -> Pair {
    let pair = Pair(m.channel(), m.channel());
    let answers = turns(move |dice, _| {
        let mut ops = vec![by.take(pair.0), Op::Run(dice.about(20_000))];
        if dice.once_in(25) {
            ops.extend(rarely(dice));
        }
        ops.push(by.give(pair.1, 0));
        ops
    });
    m.thread(process, "helper", answers);
    pair
}

/// A thread that holds a lock from time to time and does something meanwhile.
fn journal(m: &mut Machine, process: Process, lock: Mutex, meanwhile: impl Fn(&mut Dice) -> Vec<Op> + 'static) {
    let flushes = turns(move |dice, _| {
        let held = call("flush_journal", meanwhile(dice));
        vec![Op::Sleep(dice.about(14_000_000)), Op::Lock(lock), held, Op::Unlock(lock)]
    });
    m.thread(process, "journal", flushes);
}

/// A server of so many workers, each asked by a client, in which `plant` delays some executions by about `delay`.
#[allow(clippy::too_many_lines)]
fn machine(seed: u64, workers: usize, plant: Plant, delay: Ns) -> Machine {
    let mut m = Machine::new(2, seed);
    let (server, client) = (m.process("server"), m.process("client"));
    let (log_lock, deep_lock) = (m.mutex(), m.mutex());
    let disk = m.disk(60_000, 1_000);
    let backend = m.process("backend");
    let backend_lock = m.mutex();
    match plant {
        Lock => journal(&mut m, server, log_lock, move |dice| vec![Op::Run(dice.about(delay))]),
        LockSleep => journal(&mut m, server, log_lock, move |dice| vec![Op::Sleep(dice.about(delay))]),
        PipeLock => journal(&mut m, server, deep_lock, move |dice| vec![Op::Run(dice.about(delay))]),
        NetworkLockPipe => {
            let scan = move |dice: &mut Dice| vec![call("scan_segment", vec![Op::Run(dice.about(delay))])];
            let pair = Pair(m.channel(), m.channel());
            let answers = turns(move |dice, _| {
                let mut ops = vec![Op::Read(pair.0)];
                ops.extend(scan(dice));
                ops.push(Op::Write(pair.1, 0));
                ops
            });
            m.thread(backend, "helper", answers);
            journal(&mut m, backend, backend_lock, move |_| vec![Op::Write(pair.0, 1), Op::Read(pair.1)]);
        }
        NetworkPipeLockDisk => journal(&mut m, backend, deep_lock, move |_| vec![Op::ReadDisk(disk, 4096)]),
        Cpu => {
            let telemetry = m.process("telemetryd");
            for _ in 0..2 {
                let burst = turns(move |dice, _| {
                    vec![Op::Sleep(dice.about(20_000_000)), call("compress_burst", vec![Op::Run(dice.about(delay))])]
                });
                m.urgent_thread(telemetry, "telemetryd", burst);
            }
        }
        _ => {}
    }
    if matches!(plant, Disk | NetworkPipeLockDisk) {
        let audit = m.process("auditd");
        let pause = if plant == Disk { 20_000_000 } else { 3 * delay };
        let commit = turns(move |dice, _| {
            let bytes = (dice.about(delay) / 1_000 * 1024) as u32;
            vec![Op::Sleep(dice.about(pause)), call("commit_log", vec![Op::SyncDisk(disk, bytes)])]
        });
        m.thread(audit, "auditd", commit);
    }
    for _ in 0..workers {
        let (to, from) = m.connection();
        let (ask, answer) = m.connection();
        let by = match plant {
            Condition => By::Condition,
            Signal => By::Signal,
            _ => By::Pipe,
        };
        let own = match plant {
            Pipe | Condition | Signal => {
                let scan = move |dice: &mut Dice| vec![call("scan_segment", vec![Op::Run(dice.about(delay))])];
                Some(helper(&mut m, server, by, scan))
            }
            PipeLock => {
                let pair = Pair(m.channel(), m.channel());
                let held =
                    move |dice: &mut Dice| vec![Op::Lock(deep_lock), Op::Run(dice.about(5_000)), Op::Unlock(deep_lock)];
                let answers = turns(move |dice, _| {
                    let mut ops = vec![Op::Read(pair.0)];
                    ops.extend(held(dice));
                    ops.push(Op::Write(pair.1, 0));
                    ops
                });
                m.thread(server, "helper", answers);
                Some(pair)
            }
            _ => None,
        };
        let has_backend = matches!(plant, Network | NetworkLockPipe | NetworkPipeLockDisk);
        if has_backend {
            let below = (plant == NetworkPipeLockDisk).then(|| {
                let pair = Pair(m.channel(), m.channel());
                let answers = turns(move |dice, _| {
                    vec![
                        Op::Read(pair.0),
                        Op::Lock(deep_lock),
                        Op::Run(dice.about(5_000)),
                        Op::Unlock(deep_lock),
                        Op::Write(pair.1, 0),
                    ]
                });
                m.thread(backend, "helper", answers);
                pair
            });
            let serves = turns(move |dice, _| {
                let mut ops = vec![Op::Receive(ask), Op::Run(dice.about(30_000))];
                match plant {
                    Network if dice.once_in(25) => ops.push(call("rebuild_cache", vec![Op::Run(dice.about(delay))])),
                    NetworkLockPipe => {
                        ops.extend([Op::Lock(backend_lock), Op::Run(dice.about(5_000)), Op::Unlock(backend_lock)]);
                    }
                    _ => {}
                }
                if let Some(pair) = below {
                    ops.extend([Op::Write(pair.0, 1), Op::Read(pair.1)]);
                }
                ops.push(Op::Send(answer, 0));
                ops
            });
            m.thread(backend, "backend", serves);
        }
        let ended = m.channel();
        let worker = turns(move |dice, _| {
            let mut ops = vec![call("parse_request", vec![Op::Run(dice.about(WORK / 2))])];
            let append = vec![Op::Lock(log_lock), Op::Run(dice.about(10_000)), Op::Unlock(log_lock)];
            ops.push(call("append_entry", append));
            if matches!(plant, Disk) || dice.once_in(8) {
                ops.push(call("fetch_block", vec![Op::ReadDisk(disk, 4096)]));
            }
            if let Some(pair) = own {
                ops.push(call("ask_helper", vec![by.give(pair.0, 1), by.take(pair.1)]));
            }
            if has_backend {
                ops.push(call("ask_backend", vec![Op::Send(ask, 1), Op::Receive(answer)]));
            }
            match plant {
                Sleep if dice.once_in(25) => ops.push(call("retry_backoff", vec![Op::Sleep(dice.about(delay))])),
                Work if dice.once_in(25) => ops.push(call("rebuild_index", vec![Op::Run(dice.about(delay))])),
                Worker if dice.once_in(25) => ops.push(call("sync_index", vec![Op::FlushWork(dice.about(delay))])),
                Child if dice.once_in(25) => {
                    let runs = dice.about(delay);
                    let child = Op::fork("gzip", move || vec![call("compress_log", vec![Op::Run(runs)])], ended);
                    ops.push(call("rotate_log", vec![child, Op::WaitChild(ended)]));
                }
                _ => {}
            }
            ops.push(call("send_reply", vec![Op::Run(dice.about(WORK / 2))]));
            let (begin, end) = (Op::Mark("app:request_begin", vec![]), Op::Mark("app:request_end", vec![]));
            vec![Op::Receive(to), begin, call("handle_request", ops), end, Op::Send(from, 0)]
        });
        m.thread(server, "worker", worker);
        let think = WORK * workers as Ns;
        let asks = turns(move |dice, _| vec![Op::Sleep(dice.about(think)), Op::Send(to, 1), Op::Receive(from)]);
        m.thread(client, "client", asks);
    }
    m
}

/// The answer of `anomalies --json` about a machine.
fn anomalies(seed: u64, workers: usize, plant: Plant, delay: Ns) -> Value {
    let world = machine(seed, workers, plant, delay).run(400_000_000);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("delays-{plant:?}-{seed}"));
    let recorded = record(&world, &Manner::default(), &folder);
    let mut command = Command::new(env!("CARGO_BIN_EXE_whyslow"));
    command.args(["anomalies", "--json", "--symbols"]).arg(&recorded.symbols);
    let out = command.args(&recorded.traces).output().unwrap();
    assert!(out.status.success(), "{plant:?} {seed}: {}", String::from_utf8_lossy(&out.stderr));
    std::fs::remove_dir_all(&folder).unwrap();
    serde_json::from_slice(&out.stdout).unwrap()
}

/// The first source is the planted one: its thread, and its function or one that calls it (where no stack was sampled in the
/// function itself), if any is known.
fn named_first(answer: &Value, plant: Plant) -> bool {
    let (thread, function) = plant.source();
    let first = &answer["sources"][0];
    let callers = ["main", "handle_request"];
    let named = first["function"].as_str().is_none_or(|f| function.is_empty() || f == function || callers.contains(&f));
    first["name"].as_str().is_some_and(|name| name.starts_with(thread)) && named
}

/// The largest part of the executions' time that a source claims.
fn largest_claim(answer: &Value) -> f64 {
    let sources = answer["sources"].as_array().unwrap();
    sources.iter().filter_map(|s| s["share"].as_f64()).fold(0.0, f64::max)
}

/// `count` recordings with plants of all kinds in turns, delays from `from` to `to` times the noise: by plant how many were
/// named first, and how many there were.
fn planted(count: usize, from: Ns, to: Ns) -> BTreeMap<Plant, (usize, usize)> {
    let mut found: BTreeMap<Plant, (usize, usize)> = BTreeMap::new();
    for at in 0..count {
        let plant = PLANTS[at % PLANTS.len()];
        let mut dice = Dice::new(at as u64 + 1);
        let delay = NOISE * dice.between(from * 100, to * 100) / 100;
        let workers = 1 + dice.below(if matches!(plant, Disk | Cpu) { 6 } else { 9 });
        let answer = anomalies(at as u64 + 1, workers, plant, delay);
        let right = named_first(&answer, plant);
        let all = found.entry(plant).or_default();
        (all.0, all.1) = (all.0 + usize::from(right), all.1 + 1);
        if !right {
            let first = &answer["sources"][0];
            println!(
                "{plant:?} {at}, {workers} workers, {delay} ns: {} {} {} {} via {} {} times",
                first["name"],
                first["what"],
                first["function"],
                first["affected_ns"],
                first["via"],
                first["occurrences"]
            );
        }
    }
    found
}

/// The largest claim of any source in `count` recordings without a plant.
fn without(count: usize) -> f64 {
    let claims = (0..count).map(|at| {
        let workers = 1 + at % 18;
        let answer = anomalies(1_000 + at as u64, workers, Nothing, 0);
        let claim = largest_claim(&answer);
        if claim > 0.05 {
            println!("control {at}, {workers} workers: {:#}", answer["sources"][0]);
        }
        claim
    });
    claims.fold(0.0, f64::max)
}

fn share(found: &BTreeMap<Plant, (usize, usize)>) -> f64 {
    let (right, all) = found.values().fold((0, 0), |sum, n| (sum.0 + n.0, sum.1 + n.1));
    right as f64 / all as f64
}

#[test]
fn planted_delays_are_named_first() {
    let found = planted(2 * PLANTS.len(), 3, 12);
    assert!(share(&found) >= 0.9, "{found:?}");
    let claim = without(5);
    assert!(claim <= 0.05, "{claim}");
}

/// Prints the table of the README.
#[test]
#[ignore = "250 recordings: cargo test --release --test delays rates -- --ignored --nocapture"]
fn rates() {
    let (weak, strong) = (planted(60, 1, 3), planted(200, 3, 12));
    println!("| planted | recordings | not named first, 1 to 3 times the noise | over 3 times |\n|---|---|---|---|");
    let mut rows: BTreeMap<&str, [(usize, usize); 2]> = BTreeMap::new();
    for (at, found) in [&weak, &strong].into_iter().enumerate() {
        for (plant, (right, all)) in found {
            let sum = &mut rows.entry(plant.row()).or_default()[at];
            (sum.0, sum.1) = (sum.0 + all - right, sum.1 + all);
        }
    }
    let percent = |(missed, all): (usize, usize)| 100.0 * missed as f64 / all.max(1) as f64;
    for (row, [weak, strong]) in &rows {
        println!("| {row} | {} | {:.0} % | {:.0} % |", weak.1 + strong.1, percent(*weak), percent(*strong));
    }
    let claim = without(50);
    println!(
        "largest claim of a source in 50 recordings without a plant: {:.1} % of the executions' time",
        100.0 * claim
    );
    assert!(share(&strong) >= 0.9, "{strong:?}");
    assert!(claim <= 0.05, "{claim}");
}
