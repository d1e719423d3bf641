//! Generated machines (`simulator/`): the simulated schedule shows the cause of each delay, and `explain` must find it
//! in the recording.

mod rates;

use crate::simulator;
use crate::support::{ask, ctf_writer};
use rates::rates;
use serde_json::Value;
use simulator::plants::{hindered, machine};
use simulator::recorder::{BASE, Dialect, Events, IMAGE, Manner, Missing, record};
use simulator::service::sleeper;
use simulator::{Machine, Op, World, explained, turns};
use std::path::Path;

#[test]
fn machine_of_a_seed_is_the_same_and_accounts_for_all_time() {
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
fn planted_sleep_is_found() {
    let world = sleeper(5);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("machines-sleeper");
    let recorded = record(&world, &Manner::default(), &folder);
    let answer = explained(&recorded);
    let first = &answer["causes"][0];
    assert_eq!(first["kind"], "blocked.timer", "{first:#}");
    assert!(first["path"].as_array().unwrap().iter().any(|f| f == "retry_backoff"), "{first:#}");
    assert_eq!(answer["verdict"]["confident"], true, "{:#}", answer["verdict"]);
}

/// Two sessions of one kernel at once, on clocks of one uuid: one kernel, each event followed once.
#[test]
fn kernel_recorded_by_two_sessions_is_read_once() {
    let world = sleeper(9);
    let ask = |name: &str, second: Option<i64>| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("machines-sessions-{name}"));
        explained(&record(&world, &Manner { second_session: second, ..Manner::default() }, &folder))
    };
    let (one, two) = (ask("one", None), ask("two", Some(6_000)));
    for part in ["slow", "fast", "causes", "extra_ns"] {
        assert_eq!(one[part], two[part], "{part}");
    }
    assert_eq!(one["verdict"], two["verdict"]);
}

/// perf's own records in CTF show where a process's code begins, and no more: functions have their names.
#[test]
fn mmap_records_name_functions() {
    let world = sleeper(7);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("machines-perf-maps");
    let manner = Manner { dialect: Dialect::Perf, ..Manner::default() };
    let mut events = Events::of(&world);
    events.user.retain(|e| !e.name.contains("statedump"));
    let on = std::rc::Rc::clone(&events.kernel[0].on);
    for (name, pid, _) in &world.processes {
        let id = ctf_writer::Value::I32(*pid);
        let (start, filename) = (BASE, if &**name == "client" { "[vdso]" } else { IMAGE });
        let fields = vec![
            ("pid", id.clone()),
            ("tid", id),
            ("start", ctf_writer::Value::U64(start)),
            ("filename", ctf_writer::Value::Text(filename.into())),
        ];
        let (time, on) = (events.span.0, std::rc::Rc::clone(&on));
        events.kernel.push(ctf_writer::Event { time, cpu: 0, name: "perf_mmap2".into(), fields, on, stack: None });
    }
    events.kernel.sort_by_key(|e| e.time);
    let recorded = record(&world, &manner, &folder);
    let traces = simulator::recorder::write(events, &manner, &folder.join("mapped"));
    let mut command = ask::program();
    command.args(["explain", "--json", "--task", "app:request", "--symbols"]).arg(&recorded.symbols);
    let out = ask::run(command.args(traces));
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let answer: Value = serde_json::from_slice(&out.stdout).unwrap();
    let first = &answer["causes"][0];
    assert_eq!(first["kind"], "blocked.timer", "{first:#}");
    // Marked: the record holds neither a build id nor how much of the file was mapped.
    assert!(first["path"].as_array().unwrap().iter().any(|f| f == "retry_backoff?"), "{first:#}");
}

/// One kernel worker does the deferred work of all threads: a backup's work takes long, and requests queue behind it.
fn put_off(seed: u64) -> World {
    let mut m = Machine::new(2, seed);
    let (server, client, backup) = (m.process("server"), m.process("client"), m.process("backup"));
    for _ in 0..2 {
        let (to, from) = m.connection();
        let worker = turns(move |dice, _| {
            let work =
                vec![Op::Run(dice.about(300_000)), Op::Call("save_record", vec![Op::FlushWork(dice.about(50_000))])];
            let (begin, end) = (Op::Mark("app:request_begin", vec![]), Op::Mark("app:request_end", vec![]));
            vec![Op::Receive(to), begin, Op::Call("handle_request", work), end, Op::Send(from, 0)]
        });
        m.thread(server, "worker", worker);
        let asks = turns(move |dice, _| vec![Op::Sleep(dice.about(1_000_000)), Op::Send(to, 1), Op::Receive(from)]);
        m.thread(client, "client", asks);
    }
    let archives = turns(move |dice, _| {
        vec![Op::Sleep(dice.about(40_000_000)), Op::Call("flush_archive", vec![Op::FlushWork(dice.about(8_000_000))])]
    });
    m.thread(backup, "backup", archives);
    m.run(800_000_000)
}

#[test]
fn kernel_worker_leads_to_the_thread_that_queued_its_work() {
    let world = put_off(4);
    // Work items are recorded by events; without them, the thread that woke the worker handed it work.
    for missing in [vec![], vec![Missing::Work]] {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("machines-put-off-{}", missing.len()));
        let recorded = record(&world, &Manner { missing, ..Manner::default() }, &folder);
        let answer = explained(&recorded);
        let first = &answer["causes"][0];
        assert_eq!(first["kind"], "blocked.thread", "{first:#}");
        assert_eq!(first["by"]["thread"], "backup", "{first:#}");
        assert_eq!(first["by"]["function"], "flush_archive", "{first:#}");
        let sentence = answer["verdict"]["sentence"].as_str().unwrap();
        assert!(
            sentence.contains("whose work a kernel worker did") && answer["verdict"]["confident"] == true,
            "{sentence}"
        );
    }
}

/// `anomalies` examines the executions of the task that `explain` chooses: with the program's own events, and without
/// them (loops and system calls).
#[test]
fn anomalies_chooses_the_task_of_explain() {
    for (seed, kernel_only) in [(1, false), (1, true), (5, true), (12, true)] {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("machines-task-{seed}-{kernel_only}"));
        let recorded = record(&machine(seed).world, &Manner::default(), &folder);
        let traces = if kernel_only { &recorded.traces[..1] } else { &recorded.traces[..] };
        let ask = |command: &str| -> Value {
            let out = ask::run(ask::program().args([command, "--json"]).args(traces));
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
            serde_json::from_slice(&out.stdout).unwrap()
        };
        let (explained, anomalies) = (ask("explain"), ask("anomalies"));
        let executions = |group: &str| explained[group]["count"].as_u64().unwrap();
        assert_eq!(anomalies["summary"]["task"], explained["task"], "machine {seed}");
        let all = anomalies["summary"]["executions"].as_u64().unwrap();
        assert!(all >= executions("slow") + executions("fast"), "machine {seed}: {all}");
        assert_eq!(kernel_only, explained["task"] != "app:request", "machine {seed}: {}", explained["task"]);
        let (sources, causes) = (anomalies["sources"].as_array(), anomalies["comparison"]["causes"].as_array());
        assert_eq!(sources.map(Vec::len), causes.map(Vec::len), "machine {seed}");
        if !kernel_only {
            assert_eq!(causes.unwrap()[0], explained["causes"][0]["rank"], "{:#}", sources.unwrap()[0]);
            assert_eq!(sources.unwrap()[0]["name"], explained["causes"][0]["by"]["thread"]);
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn planted_causes_are_found_or_nothing_is_claimed() {
    rates(0..32, "machines-few", machine).hold();
}

#[test]
fn hindrances_are_told_from_their_twins_or_nothing_is_claimed() {
    rates(0..34, "machines-hindered-few", hindered).hold();
}

/// Twins without any timer event: the hypervisor takes CPUs, which the steal time beside the recording shows, or
/// threads compute for long, and it stays as it is.
#[test]
fn running_is_sure_without_a_clock_only_where_no_steal_time_grew() {
    let answer = |seed: u64| {
        let missing = vec![Missing::Vectors, Missing::HrTimers];
        let manner = Manner { missing, environment: true, seed, ..Manner::default() };
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("machines-no-clock-{seed}"));
        let answer = explained(&record(&hindered(seed).world, &manner, &folder));
        (answer["causes"][0]["kind"].clone(), answer["verdict"].clone())
    };
    for seed in [3, 20, 37] {
        let (kind, verdict) = answer(seed);
        assert!(kind == "cpu" && verdict["confident"] == false, "{seed}: {kind} {verdict:#}");
        assert!(verdict["sentence"].as_str().unwrap().contains("the steal time of /proc/stat grew"), "{verdict:#}");
    }
    for seed in [4, 21, 38] {
        let (kind, verdict) = answer(seed);
        assert!(kind == "cpu" && verdict["confident"] == true, "{seed}: {kind} {verdict:#}");
    }
}

/// The machines that are asked for.
fn asked(all: &str) -> std::ops::Range<u64> {
    let asked = std::env::var("WHYSLOW_MACHINES").unwrap_or(all.to_owned());
    let (from, to) = asked.split_once("..").expect("WHYSLOW_MACHINES is a range of numbers, as 0..300");
    from.parse().unwrap()..to.parse().unwrap()
}

/// `cargo test --release --test all machines::planted_causes -- --ignored --nocapture`; others with
/// `WHYSLOW_MACHINES=300..900`.
#[test]
#[ignore = "takes minutes"]
fn planted_causes_print_their_rates_on_300_machines() {
    rates(asked("0..300"), "machines", machine).hold();
}

#[test]
#[ignore = "takes minutes"]
fn hindrances_print_their_rates_on_680_machines() {
    rates(asked("0..680"), "machines-hindered", hindered).hold();
}
