//! Generated machines (`simulator/`): the simulated schedule shows the cause of each delay, and `explain` must find it
//! in the recording.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/ask.rs"]
mod ask;
mod simulator;

use serde_json::Value;
use simulator::ctf_writer;
use simulator::plants::{Generated, Plant, machine, sleeper, words};
use simulator::recorder::{BASE, Dialect, Events, IMAGE, Manner, Missing, record};
use simulator::{Machine, Op, World, explained, turns};
use std::collections::BTreeMap;
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
        std::fs::remove_dir_all(folder).unwrap();
    }
}

/// The grade of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grade {
    /// The first cause is the planted one, and the verdict is confident.
    Right,
    /// The first cause is the planted one; the verdict is not confident.
    RightUnsure,
    /// Another, and not confident: or there is nothing to be found, and the verdict is not confident.
    Honest,
    /// Another, and confident of it; or an error where the executions were recorded.
    Wrong,
}

/// The grade of the answer to a generated machine, whether it names a caller of the planted function, and its text.
fn grade(generated: &Generated, folder: &Path) -> (Grade, bool, String) {
    let recorded = record(&generated.world, &generated.manner, folder);
    let mut command = ask::program();
    command.args(["explain", "--json", "--threads", "1", "--task", "app:request", "--symbols"]).arg(&recorded.symbols);
    let out = ask::run(command.args(&recorded.traces));
    let _ = std::fs::remove_dir_all(folder);
    let said = String::from_utf8_lossy(&out.stderr).trim().to_owned();
    let lacks = generated.plant.lacks(&generated.manner);
    if !out.status.success() {
        // A refusal in one line is honest where the recording lacks the events of the plant.
        let refused = lacks && out.status.code().is_some() && said.lines().count() == 1;
        return (if refused { Grade::Honest } else { Grade::Wrong }, false, said);
    }
    let answer: Value = serde_json::from_slice(&out.stdout).unwrap();
    let confident = answer["verdict"]["confident"] == true;
    let sentence = answer["verdict"]["sentence"].as_str().unwrap_or("").to_owned();
    let right = generated.plant != Plant::None && names(generated, &answer["causes"][0], lacks);
    let grade = match (right, confident) {
        (true, true) => Grade::Right,
        (true, false) => Grade::RightUnsure,
        (false, false) => Grade::Honest,
        (false, true) => Grade::Wrong,
    };
    let first = &answer["causes"][0];
    let said = format!("{sentence} [{} by {} in {}]", first["kind"], first["by"]["thread"], first["by"]["function"]);
    (grade, right && is_caller(first), said)
}

/// A cause is the planted one: of its kind, by its culprit and, where stacks show it, in its function.
fn names(generated: &Generated, cause: &Value, lacks: bool) -> bool {
    let (plant, manner) = (generated.plant, &generated.manner);
    // Only network and interrupt events prove that the backend woke the request by a packet; that it was the backend is
    // true all the same.
    let as_thread = plant == Plant::Backend && lacks && cause["kind"] == "blocked.thread";
    if cause["kind"] != plant.kind() && !as_thread {
        return false;
    }
    let by = [&cause["by"]["process"], &cause["by"]["thread"]];
    // Where the recording does not show the culprit, an answer that names none is right.
    let names_none = by.iter().all(|b| b.is_null());
    let culprit = plant.culprit().is_none_or(|culprit| by.iter().any(|b| **b == culprit) || lacks && names_none);
    let mut words: Vec<&str> = cause["path"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    words.extend(cause["by"]["function"].as_str());
    let shows_functions =
        manner.stacks && !manner.missing.contains(&Missing::Calls) && !manner.missing.contains(&Missing::HrTimers);
    let functions = plant.functions();
    culprit
        && (!shows_functions
            || lacks && !as_thread
            || is_caller(cause)
            || functions.is_empty()
            || functions.iter().any(|f| words.contains(f)))
}

/// The function is a caller of the planted one: true, but less exact. No tick may have sampled the planted one itself.
fn is_caller(cause: &Value) -> bool {
    ["main", "housekeeping"].iter().any(|f| cause["by"]["function"] == *f)
}

/// Grades of the answers about many machines, by plant.
struct Rates {
    /// By plant: machines, right of those that recorded what is needed, those, right of the others, unsure, wrong.
    table: BTreeMap<Plant, [usize; 6]>,
    /// Wrong and sure, with a plant and without.
    wrong: Vec<(u64, String)>,
    without_plant: Vec<(u64, String)>,
    /// Right, and the function named is a caller of the planted one.
    callers: usize,
}

fn rates(numbers: std::ops::Range<u64>, folder: &str) -> Rates {
    let next = std::sync::atomic::AtomicU64::new(numbers.start);
    let found = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if seed >= numbers.end {
                        break;
                    }
                    let generated = machine(seed);
                    let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{folder}-{seed}"));
                    let (grade, caller, said) = grade(&generated, &own);
                    let (plant, lacks) = (generated.plant, generated.plant.lacks(&generated.manner));
                    let line =
                        format!("{seed}: {plant:?}, {} CPUs, {}: {said}", generated.cpus, words(&generated.manner));
                    if std::env::var_os("WHYSLOW_VERBOSE").is_some() {
                        println!("{grade:?} {line}");
                    }
                    found.lock().unwrap().push((seed, plant, lacks, (grade, caller), line));
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap();
    found.sort_by_key(|f| f.0);
    let mut rates = Rates { table: BTreeMap::new(), wrong: Vec::new(), without_plant: Vec::new(), callers: 0 };
    for (seed, plant, lacks, (grade, caller), line) in found {
        rates.callers += usize::from(caller);
        let row = rates.table.entry(plant).or_default();
        let right = matches!(grade, Grade::Right | Grade::RightUnsure);
        row[0] += 1;
        row[1] += usize::from(right && !lacks);
        row[2] += usize::from(!lacks);
        row[3] += usize::from(right && lacks);
        row[4] += usize::from(matches!(grade, Grade::Honest | Grade::RightUnsure));
        row[5] += usize::from(grade == Grade::Wrong);
        if grade == Grade::Wrong {
            let list = if plant == Plant::None { &mut rates.without_plant } else { &mut rates.wrong };
            list.push((seed, line));
        }
    }
    rates
}

impl Rates {
    fn print(&self) {
        println!(
            "| planted | machines | right, of those that recorded what is needed | right, of the others | not sure | wrong and sure |"
        );
        println!("|---|---|---|---|---|---|");
        for (plant, [all, right, needed, lucky, unsure, wrong]) in &self.table {
            if *plant == Plant::None {
                println!("| nothing | {all} | | | {unsure} | {wrong} |");
            } else {
                println!(
                    "| {plant:?} | {all} | {right} of {needed} | {lucky} of {} | {unsure} | {wrong} |",
                    all - needed
                );
            }
        }
    }

    fn print_callers(&self) {
        println!("{} of the right ones name a caller of the planted function.", self.callers);
    }

    fn sum(&self, column: usize) -> usize {
        self.table.iter().filter(|(plant, _)| **plant != Plant::None).map(|(_, row)| row[column]).sum()
    }

    /// Nothing wrong and sure; right in at least nine tenths of those that recorded what is needed; sure in at most a
    /// twentieth of those without a plant.
    fn hold(&self) {
        assert!(self.wrong.is_empty(), "{:#?}", self.wrong);
        let (found, of) = (self.sum(1), self.sum(2));
        assert!(found * 10 >= of * 9, "right in {found} of {of}");
        let none = self.table.get(&Plant::None).map_or(0, |row| row[0]);
        assert!(self.without_plant.len() * 20 <= none, "{:#?}", self.without_plant);
    }
}

#[test]
fn planted_causes_are_found_or_nothing_is_claimed() {
    let rates = rates(0..32, "machines-few");
    rates.print();
    rates.print_callers();
    rates.hold();
}

/// `cargo test --release --test machines rates -- --ignored --nocapture`; others with `WHYSLOW_MACHINES=300..900`.
#[test]
#[ignore = "takes minutes"]
fn planted_causes_print_their_rates_on_300_machines() {
    let asked = std::env::var("WHYSLOW_MACHINES").unwrap_or("0..300".to_owned());
    let (from, to) = asked.split_once("..").expect("WHYSLOW_MACHINES is a range of numbers, as 0..300");
    let rates = rates(from.parse().unwrap()..to.parse().unwrap(), &format!("machines-{from}"));
    rates.print();
    rates.print_callers();
    rates.hold();
}
