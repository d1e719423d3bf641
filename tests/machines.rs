//! Generated machines (`simulator/`): what held up their executions is known from the simulated schedule, and `explain` must
//! find it in what was recorded.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod simulator;

use simulator::recorder::{Manner, record};
use simulator::{Machine, Op, World, turns};
use std::path::Path;
use std::process::Command;

/// A server whose requests sleep in `retry_backoff` once in 20 times.
fn sleeper(seed: u64) -> World {
    let mut m = Machine::new(2, seed);
    let (server, client) = (m.process("server"), m.process("client"));
    let (lock, disk) = (m.mutex(), m.disk(200_000, 1_000));
    for _ in 0..3 {
        let (to, from) = m.connection();
        let request = move |slow: bool, dice: &mut simulator::Dice| {
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

#[test]
fn one_seed_makes_one_machine_and_its_schedule_accounts_for_all_time() {
    let (world, again) = (sleeper(3), sleeper(3));
    assert_eq!(format!("{:?}", world.kernel), format!("{:?}", again.kernel));
    let executions = world.schedule.executions("app:request_begin", "app:request_end");
    assert!(executions.len() > 300, "{}", executions.len());
    for execution in &executions {
        let sum: f64 = world.schedule.spent(execution).values().sum();
        let length = (execution.to - execution.from) as f64;
        assert!((sum - length).abs() < 1.0, "{sum} of {length}");
    }
}

#[test]
fn a_planted_sleep_is_found() {
    let world = sleeper(5);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("machines-sleeper");
    let recorded = record(&world, &Manner::default(), &folder);
    let mut command = Command::new(env!("CARGO_BIN_EXE_whyslow"));
    command.args(["explain", "--json", "--task", "app:request", "--symbols"]).arg(&recorded.symbols);
    let out = command.args(&recorded.traces).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let first = &answer["causes"][0];
    assert_eq!(first["kind"], "blocked.timer", "{first:#}");
    assert!(first["path"].as_array().unwrap().iter().any(|f| f == "retry_backoff"), "{first:#}");
    assert_eq!(answer["verdict"]["confident"], true, "{:#}", answer["verdict"]);
}
