//! Functions with recorded entries and exits are tasks: by name from the recorded images, and by address.

use crate::support::{ask, ctf_writer};
use ask::{json, output};
use ctf_writer::{Channel, Context, Event, Task, TraceWriter, Value};
use object::{Object, ObjectKind, ObjectSymbol};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use whyslow::parts::base::time::Ns;

const PROGRAM: &str = "fixtures/traces/lock-contention/bin/ledgerd";
/// The folder of the program. A recorded path of which nothing says that it is of this machine gives no names.
const SYMBOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/traces/lock-contention/bin");
/// Its address in the made-up process.
const BASE: u64 = 0x5555_5555_0000;
/// The first event, by the trace's clock.
const START: Ns = 1_000;

/// A function of the program: its address in the process, and whether that depends on [`BASE`].
fn address(name: &str) -> (u64, bool) {
    let bytes = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(PROGRAM)).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let relative = file.kind() == ObjectKind::Dynamic;
    let symbol = file.symbols().find(|s| s.name() == Ok(name)).unwrap();
    (if relative { BASE + symbol.address() } else { symbol.address() }, relative)
}

/// The state dump's record of the file that holds the functions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Image {
    /// Its path: the program with its symbols.
    Program,
    /// The path of a library that is not on this machine.
    Absent(&'static str),
    /// None.
    Unrecorded,
}

/// A trace of one thread: the tick function calls the flush function, which takes longer each time.
fn trace(folder: &str, provider: &str, exits_name: bool, image: Image) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    std::fs::remove_dir_all(&folder).ok();
    std::fs::create_dir_all(&folder).unwrap();
    let on = Rc::new(Task { tid: 78, pid: 77, vtid: 78, vpid: 77, comm: "ledgerd".into(), ..Task::default() });
    let mut events: Vec<Event> = Vec::new();
    let mut put = |time: Ns, name: String, fields: Vec<(&'static str, Value)>| {
        events.push(Event { time, cpu: 0, name: name.into(), fields, on: Rc::clone(&on), stack: None });
    };
    let ((tick, _), (flush, relative)) = (address("journal_tick"), address("expensive_flush"));
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join(PROGRAM);
    let path = match image {
        Image::Absent(path) => path,
        Image::Program | Image::Unrecorded => program.to_str().unwrap(),
    };
    // Without a build id, its size and the time (the clock begins in the year 2100) prove that it is the traced file.
    let mapped = vec![
        ("baddr", Value::U64(if relative { BASE } else { 0x40_0000 })),
        ("memsz", Value::U64(loaded(&program))),
        ("path", Value::Text(path.to_owned())),
        ("is_pic", Value::U8(u8::from(relative))),
    ];
    if image != Image::Unrecorded {
        put(START, "lttng_ust_statedump:bin_info".to_owned(), mapped);
    }
    let place = |function: u64| vec![("addr", Value::U64(function)), ("call_site", Value::U64(0))];
    let leave = |function: u64| if exits_name { place(function) } else { Vec::new() };
    let (entry, exit) = (format!("{provider}:func_entry"), format!("{provider}:func_exit"));
    let mut at = START + 1_000_000;
    for i in 0..20 {
        put(at, entry.clone(), place(tick));
        put(at + 10_000, entry.clone(), place(flush));
        at += 100_000 * (i + 1);
        put(at, exit.clone(), leave(flush));
        put(at + 5_000, exit.clone(), leave(tick));
        at += 1_000_000;
    }
    let mut trace = TraceWriter::new("h", "ust", 0x71, 0x72);
    trace.clock_offset = 4_102_444_800 * 1_000_000_000;
    trace.span = (START, at);
    let contexts = vec![Context::Vpid, Context::Vtid];
    trace.channels.push(Channel { name: "channel".into(), contexts, events, discarded: Vec::new() });
    trace.write(&folder);
    folder
}

/// Bytes in memory from the first that is loaded to the last.
fn loaded(program: &Path) -> u64 {
    use object::{Object, ObjectSegment};
    let data = std::fs::read(program).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let first = file.segments().map(|s| s.address()).min().unwrap();
    file.segments().map(|s| s.address() + s.size()).max().unwrap() - first
}

#[test]
fn calls_are_executions_by_name_and_by_address() {
    for (folder, provider, exits_name) in
        [("calls", "lttng_ust_cyg_profile", true), ("calls-fast", "lttng_ust_cyg_profile_fast", false)]
    {
        let folder = trace(folder, provider, exits_name, Image::Program);
        let folder = folder.to_str().unwrap();
        let ask = |task: &str| {
            let groups = ["--slow", "duration>=1ms", "--fast", "duration<1ms"];
            let words = [&["diff", "--json", "--symbols", SYMBOLS, "--task", task][..], &groups, &[folder]].concat();
            let answer = json(&words);
            (answer["slow"]["count"].as_u64().unwrap(), answer["fast"]["count"].as_u64().unwrap())
        };
        // From 10 us after 100, 200 ... 2000 us began: ten of twenty last a millisecond or more.
        assert_eq!(ask("expensive_flush"), (10, 10));
        assert_eq!(ask(&format!("{:#x}", address("expensive_flush").0)), (10, 10));
        assert_eq!(ask("journal_tick"), (11, 9));
        let out = output(&["explain", "--symbols", SYMBOLS, "--task", "expensive_flus", folder]);
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(said.contains("did you mean `expensive_flush`?") && said.lines().count() == 1, "{said}");
        let info = json(&["info", "--full", "--json", "--symbols", SYMBOLS, folder]);
        let task = |at: usize| (info["tasks"][at]["name"].clone(), info["tasks"][at]["executions"].clone());
        assert_eq!(task(0), ("expensive_flush".into(), 20.into()));
        assert_eq!((task(1), info["tasks"].as_array().unwrap().len()), (("journal_tick".into(), 20.into()), 2));
        // Without the scheduler's events it is unknown whether a call ran or waited.
        let waits = |at: &serde_json::Value| at["unknown_waits"].clone();
        let unscheduled = |waits: &serde_json::Value| waits["unscheduled_ns"].as_i64().unwrap();
        let both = unscheduled(&waits(&info["tasks"][0])) + unscheduled(&waits(&info["tasks"][1]));
        assert!(both > 20_000_000, "{both}");
        assert_eq!(waits(&info), serde_json::json!({"off_cpu_ns": null, "unscheduled_ns": both, "reasons": []}));
        let text = String::from_utf8(output(&["info", "--full", "--symbols", SYMBOLS, folder]).stdout).unwrap();
        assert!(text.contains("no scheduler events") && !text.contains("without a cause"), "{text}");
    }
}

#[test]
fn functions_without_symbols_are_contexts_by_their_address() {
    let ((tick, _), (flush, relative)) = (address("journal_tick"), address("expensive_flush"));
    let library = "/nowhere/libjournal.so.1";
    let offset = |address: u64| format!("libjournal.so.1+{:#x}", if relative { address - BASE } else { address });
    let cases = [
        ("calls-bare", Image::Unrecorded, [format!("{tick:#x}"), format!("{flush:#x}")]),
        ("calls-stripped", Image::Absent(library), [offset(tick), offset(flush)]),
    ];
    for (folder, image, names) in cases {
        let folder = trace(folder, "lttng_ust_cyg_profile", true, image);
        let folder = folder.to_str().unwrap();
        // By name where a user copies it from the answer, by address where it comes from elsewhere.
        for task in [names[0].clone(), format!("{tick:#x}")] {
            let answer = json(&["explain", "--json", "--task", &task, folder]);
            let sentence = answer["verdict"]["sentence"].as_str().unwrap();
            assert!(sentence.starts_with(&format!("In {}, running or waiting: ", names[1])), "{sentence}");
            let path = answer["causes"][0]["path"].as_array().unwrap();
            assert_eq!(path[1..3], [names[0].as_str(), names[1].as_str()], "{answer}");
            assert_eq!(answer["causes"][0]["by"]["function"], names[1].as_str());
        }
        // Each function's own time: the caller spends 15 us of each call, however long the other takes.
        let compared = json(&["diff", "--json", "--task", &names[0], folder]);
        let nodes = compared["tree"].as_array().unwrap();
        let node = |name: &str| nodes.iter().find(|node| node["name"] == name).unwrap();
        let (caller, callee) = (node(&names[0]), node(&names[1]));
        let mean = |node: &serde_json::Value, side: &str| node[side].as_f64().unwrap();
        for side in ["slow_mean_ns", "fast_mean_ns"] {
            assert_eq!(mean(caller, side) - mean(callee, side), 15_000.0, "{compared}");
        }
        let info = json(&["info", "--full", "--json", folder]);
        let tasks: Vec<&str> =
            info["tasks"].as_array().unwrap().iter().map(|task| task["name"].as_str().unwrap()).collect();
        assert!(names.iter().all(|name| tasks.contains(&name.as_str())), "{tasks:?}");
        let known = info["questions"].as_array().unwrap().iter().find(|q| q["question"] == "in which function");
        assert!(known.unwrap()["share"].as_f64().unwrap() > 0.99, "{known:?}");
        let text = String::from_utf8(output(&["explain", folder]).stdout).unwrap();
        assert!(text.contains(&names[1]) && !text.contains("[unknown]"), "{text}");
    }
}

#[test]
fn database_keeps_the_calls_of_a_function() {
    let folder = trace("calls-kept", "lttng_ust_cyg_profile", true, Image::Program);
    let (folder, file, inside) = (folder.to_str().unwrap(), folder.with_extension("why"), folder.join("calls.why"));
    let file = file.to_str().unwrap();
    let out = output(&["build", "--task", "expensive_flush", folder, "-o", inside.to_str().unwrap()]);
    assert_eq!((out.status.code(), inside.exists()), (Some(2), false), "a trace's folder holds its streams only");
    let words = ["--symbols", SYMBOLS, "--task", "expensive_flush"];
    assert!(output(&[&["build"], &words[..], &[folder, "-o", file]].concat()).status.success());
    let explained = |words: &[&str]| json(&[&["explain", "--json"], words].concat());
    assert_eq!(explained(&[&words[..], &[folder]].concat()), explained(&["--task", "expensive_flush", file]));
}
