//! User space recorded by two sessions, on a clock of its own, or alone: generated recordings (`simulator/`) with known
//! causes.

use crate::simulator;
use crate::support::ask;
use serde_json::Value;
use simulator::recorder::{Manner, record};
use simulator::service::sleeper;
use simulator::{Machine, Op, World, explained, turns};
use std::path::Path;

/// Two sessions at once record each event of user space twice: the executions are the same.
#[test]
fn user_space_recorded_by_two_sessions_is_followed_once() {
    let world = sleeper(6);
    let ask = |name: &str, manner: Manner, kernel: bool| -> Value {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("machines-twice-{name}"));
        let recorded = record(&world, &manner, &folder);
        let traces = recorded.traces.iter().filter(|t| kernel || !t.ends_with("kernel"));
        let mut command = ask::program();
        let out = ask::run(command.args(["explain", "--json", "--task", "app:request"]).args(traces));
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        serde_json::from_slice(&out.stdout).unwrap()
    };
    let twice = |from| Manner { second_user_session: Some((from, 700)), ..Manner::default() };
    for (name, manner) in [("all", twice(0)), ("half", twice(250_000_000))] {
        for kernel in [true, false] {
            let (one, two) = (ask("not", Manner::default(), kernel), ask(name, manner.clone(), kernel));
            for part in ["slow", "fast", "causes", "extra_ns"] {
                assert_eq!(one[part], two[part], "{name}, {kernel}: {part}");
            }
            let mut warnings = two["warnings"].as_array().unwrap().iter().filter_map(Value::as_str);
            assert!(warnings.any(|w| w.contains("two sessions at once")), "{:#}", two["warnings"]);
        }
    }
}

/// Requests that parse and index between events of their own; one in 20 of the last server's indexes long. The next
/// request may begin before one has ended.
fn staged(seed: u64, servers: &[&'static str]) -> World {
    let mut m = Machine::new(2 * servers.len(), seed);
    let processes: Vec<_> = servers.iter().map(|name| m.process(name)).collect();
    for (number, server) in processes.iter().enumerate().flat_map(|server| [server; 2]) {
        let is_last = number + 1 == servers.len();
        let worker = turns(move |dice, turn| {
            let id = || vec![("id", number as i64 * 1_000_000 + turn as i64)];
            let slow = is_last && dice.once_in(20);
            vec![
                Op::Sleep(dice.about(1_000_000)),
                Op::Mark("app:request_begin", vec![]),
                Op::Mark("app:parse_begin", vec![]),
                Op::Run(dice.about(300_000)),
                Op::Mark("app:parse_end", vec![]),
                Op::Mark("app:index_begin", id()),
                Op::Run(dice.about(if slow { 9_000_000 } else { 60_000 })),
                Op::Mark("app:index_end", id()),
                Op::Mark("app:request_end", vec![]),
            ]
        });
        m.thread(*server, "worker", worker);
    }
    m.run(600_000_000)
}

/// User space alone: the program's own pairs of events inside an execution show where its time went.
#[test]
fn nested_pairs_explain_the_time_of_user_space_alone() {
    let world = staged(3, &["server"]);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("machines-staged");
    let recorded = record(&world, &Manner::default(), &folder);
    let ask = |traces: &[&std::path::PathBuf]| -> Value {
        let mut command = ask::program();
        let out = ask::run(command.args(["explain", "--json", "--task", "app:request"]).args(traces));
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        serde_json::from_slice(&out.stdout).unwrap()
    };
    let users: Vec<_> = recorded.traces.iter().filter(|t| !t.ends_with("kernel")).collect();
    let alone = ask(&users);
    let first = &alone["causes"][0];
    let path: Vec<&str> = first["path"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(path.contains(&"app:index") && !path.contains(&"app:parse"), "{first:#}");
    assert_eq!(first["by"]["function"], "app:index", "{first:#}");
    let share = first["extra_ns"].as_f64().unwrap() / alone["extra_ns"].as_f64().unwrap();
    assert!((0.95..1.05).contains(&share), "{share}");
    let verdict = &alone["verdict"];
    assert_eq!((&verdict["basis"], &verdict["confident"]), (&"place".into(), &false.into()), "{verdict:#}");
    let sentence = verdict["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("In app:index") && sentence.contains("scheduler was not recorded"), "{sentence}");
    // With the kernel's events, its stacks and calls show the place; the executions are the same.
    let both = ask(&recorded.traces.iter().collect::<Vec<_>>());
    assert_eq!(both["slow"]["count"], alone["slow"]["count"]);
    assert_eq!(both["causes"][0]["kind"], "cpu");
}

/// Clocks of user space count in ticks of their own; each process is recorded by itself. Durations, processes and
/// threads are the same.
#[test]
fn user_space_clock_may_have_any_rate() {
    let world = staged(4, &["front", "store"]);
    let ask = |name: &str, frequencies: &[u64]| -> Value {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("machines-rates-{name}"));
        let manner = Manner { user_clock_frequencies: frequencies.to_vec(), ..Manner::default() };
        let recorded = record(&world, &manner, &folder);
        let traces = recorded.traces.iter().filter(|t| !t.ends_with("kernel"));
        let mut command = ask::program();
        let out = ask::run(command.args(["explain", "--json", "--task", "app:request"]).args(traces));
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        serde_json::from_slice(&out.stdout).unwrap()
    };
    let one = ask("nanoseconds", &[]);
    assert_eq!(one["causes"][0]["by"]["function"], "app:index", "{:#}", one["causes"]);
    for frequencies in [&[2_893_202_000][..], &[24_000_000], &[2_893_202_000, 19_200_000]] {
        let name = format!("{}-{}", frequencies.len(), frequencies[0]);
        let tick = 1e9 / *frequencies.iter().min().unwrap() as f64;
        let other = ask(&name, frequencies);
        for group in ["slow", "fast"] {
            assert_eq!(one[group]["count"], other[group]["count"], "{name}");
            let mean = |answer: &Value| answer[group]["mean_ns"].as_f64().unwrap();
            assert!((mean(&one) - mean(&other)).abs() <= tick + 1.0, "{name}: {:#}", other[group]);
        }
        let (first, as_before) = (&other["causes"][0], &one["causes"][0]);
        assert_eq!((&first["by"], &first["path"]), (&as_before["by"], &as_before["path"]), "{name}");
    }
}

/// User space on a clock of its own is aligned with the kernel events: the answer is the same, up to the reported
/// error.
#[test]
fn clock_of_user_space_is_aligned_with_the_kernels() {
    let world = sleeper(8);
    let ask = |name: &str, ahead: Option<i64>| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("machines-clock-{name}"));
        explained(&record(&world, &Manner { user_clock_ahead: ahead, ..Manner::default() }, &folder))
    };
    let one = ask("same", None);
    for (name, ahead) in [("ahead", 1_500_000), ("behind", -70_000_000)] {
        let other = ask(name, Some(ahead));
        let mut warnings = other["warnings"].as_array().unwrap().iter().filter_map(Value::as_str);
        let warning = warnings.find(|w| w.contains("aligned with the kernel trace")).unwrap();
        let words: Vec<i64> = warning.split([' ', ')']).filter_map(|word| word.parse().ok()).collect();
        let [_, offset, bound] = words[..] else { panic!("{warning}") };
        assert!(bound < 100_000 && (offset + ahead).abs() <= bound, "{name}: {warning}");
        for part in ["slow", "fast"] {
            assert_eq!(one[part]["count"], other[part]["count"], "{name}");
        }
        let (first, as_before) = (&other["causes"][0], &one["causes"][0]);
        assert_eq!((&first["kind"], &first["path"]), (&as_before["kind"], &as_before["path"]), "{name}");
        let extra = |cause: &Value| cause["extra_ns"].as_i64().unwrap();
        assert!((extra(first) - extra(as_before)).abs() <= 2 * bound, "{name}");
        assert_eq!(other["verdict"]["confident"], true, "{name}: {:#}", other["verdict"]);
    }
}
