//! The surprises of perf.data and trace.dat: what a reader that assumes the usual case gets wrong, each on a small
//! recording that a writer of these tests makes (`support/tracepoints`) for machines of both byte orders and of 32
//! and 64 bits.

mod clocks;
mod processes;
mod threads;

use crate::support::{ask, tracepoints};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tracepoints::{Given, Happened, MACHINES, Machine, requests};

/// The bytes of an attr, as perf 6.1 writes it.
const ATTR: usize = 128;
const LITTLE: Machine = MACHINES[0];

/// A file in a folder that is removed.
struct Written {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

fn written(name: &str, bytes: &[u8]) -> Written {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    Written { path, _folder: folder }
}

fn output(words: &[&str], path: &Path) -> String {
    let out = ask::run(ask::whyslow(words).arg(path));
    assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn dump(bytes: &[u8]) -> String {
    output(&["dump"], &written("a", bytes).path)
}

fn json(words: &[&str], bytes: &[u8]) -> Value {
    serde_json::from_str(&output(&[words, &["--json"]].concat(), &written("a", bytes).path)).unwrap()
}

/// Those that need all events to be read are among them.
fn all_warnings(bytes: &[u8]) -> String {
    json(&["info", "--full"], bytes)["warnings"].to_string()
}

fn warnings(bytes: &[u8]) -> String {
    json(&["info"], bytes)["warnings"].to_string()
}

#[test]
fn trace_dat_of_any_machine_has_the_same_events() {
    let of = |machine: Machine| dump(&machine.trace_dat(&requests(), &[]));
    let usual = of(LITTLE);
    for part in ["sched_switch {", "prev_comm=\"worker\"", "prev_state=1", "args=[3,32767,64,0,0,0]", "ret=64"] {
        assert!(usual.contains(part), "{part}: {}", &usual[..2000]);
    }
    assert_eq!(usual.lines().count(), requests().len());
    for machine in MACHINES {
        assert_eq!(of(machine), usual, "{machine:?}");
    }
}

#[test]
fn perf_data_of_any_machine_has_the_same_events() {
    let of = |machine: Machine, attr| dump(&machine.perf_data(&requests(), &[], attr));
    let usual = of(LITTLE, ATTR);
    for part in ["sched:sched_switch {", "prev_comm=\"worker\"", "prev_state=1", "ret=64"] {
        assert!(usual.contains(part), "{part}: {}", &usual[..2000]);
    }
    assert_eq!(usual.lines().count(), requests().iter().filter(|event| event.format < 4).count());
    for machine in MACHINES {
        // A newer perf writes longer attrs.
        for attr in [ATTR, 136, 160] {
            assert_eq!(of(machine, attr), usual, "{machine:?} {attr}");
        }
    }
}

#[test]
fn both_recorders_give_the_same_answer_on_any_machine() {
    let verdict = |bytes: &[u8]| {
        let answer = json(&["explain", "--task", "read"], bytes);
        assert_eq!(answer["causes"][0]["kind"], "blocked.thread", "{answer:#}");
        assert_eq!(answer["causes"][0]["by"]["thread"], "indexer", "{answer:#}");
        answer["extra_ns"].clone()
    };
    for machine in MACHINES {
        let extra = verdict(&machine.trace_dat(&requests(), &[]));
        assert_eq!(extra, 2_000_000, "{machine:?}");
        assert_eq!(verdict(&machine.perf_data(&requests(), &[], ATTR)), extra, "{machine:?}");
    }
}

#[test]
fn stack_events_belong_to_the_event_before_them() {
    for machine in MACHINES {
        let mut events = requests();
        let waits = events.iter().position(|e| e.format == 0 && e.tid == 100).unwrap();
        let (time, tid) = (events[waits].time, 100);
        let numbers = |all: &[u64]| Given::Numbers(all.to_vec());
        let stack = |format, first, addresses| Happened {
            time: time + 10,
            cpu: 0,
            tid,
            format,
            values: vec![first, addresses],
            ..Happened::default()
        };
        // The format claims eight addresses; the size counts.
        let kernel = (0..11).map(|n| 0xc010_0000 + n).collect::<Vec<_>>();
        events.insert(waits + 1, stack(6, Given::Number(100), numbers(&[0x40_1000, 0x40_2000, 0, 0, 0, 0, 0, 0])));
        events.insert(waits + 1, stack(5, Given::Number(11), numbers(&kernel)));
        let all = dump(&machine.trace_dat(&events, &[]));
        let line = all.lines().find(|line| line.contains("sched_switch {") && line.contains("prev_pid=100")).unwrap();
        let shown = |all: &[u64]| all.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        assert!(line.contains(&format!("callstack_kernel=[{}]", shown(&kernel))), "{machine:?}: {line}");
        assert!(line.contains("callstack_user=[4198400,4202496]"), "{machine:?}: {line}");
    }
}

#[test]
fn marker_pairs_are_tasks() {
    let bytes = LITTLE.trace_dat(&requests(), &[]);
    let info = json(&["info", "--full"], &bytes);
    let runs = |name: &str| {
        let task = info["tasks"].as_array().unwrap().iter().find(|task| task["name"] == name);
        task.map(|task| task["executions"].as_u64().unwrap())
    };
    // Two nested spans in each of ten requests; one that begins and ends on different threads.
    assert_eq!((runs("trace_marker"), runs("trace_marker:async")), (Some(20), Some(10)), "{info:#}");
    let answer = json(&["explain", "--task", "trace_marker", "--type", "request"], &bytes);
    assert_eq!(answer["causes"][0]["by"]["thread"], "indexer", "{answer:#}");
    let all = dump(&bytes);
    assert!(all.contains("trace_marker:begin {") && all.contains("name=\"read page\""), "{all}");
    assert!(all.contains("buf=\"other text"), "{all}");
    // Other text makes no task.
    let plain: Vec<Happened> = requests().into_iter().filter(|event| event.format != 4).collect();
    let tasks = json(&["info"], &LITTLE.trace_dat(&plain, &[]))["tasks"].to_string();
    assert!(!tasks.contains("trace_marker"), "{tasks}");
}

#[test]
fn clock_of_the_processor_becomes_nanoseconds() {
    for machine in MACHINES {
        // 2.5 ticks for a ns, less 7 s.
        let mut events = requests();
        events.iter_mut().for_each(|event| event.time = event.time * 5 / 2);
        let scale = [machine.number(0x6666_6666, 4), machine.number(32, 4), machine.number(7_000_000_000, 8)].concat();
        let ticks = machine.trace_dat(&events, &[(14, scale), (4, b"local [x86-tsc]".to_vec())]);
        let info = json(&["info"], &ticks);
        let trace = &info["traces"][0];
        assert_eq!(trace["clock"], "x86-tsc");
        let length = trace["end_ns"].as_i64().unwrap() - trace["begin_ns"].as_i64().unwrap();
        assert!((length - 2_000_000_000).abs() < 10_000, "{machine:?}: {length}");
        let begin = trace["begin_ns"].as_i64().unwrap();
        assert!((begin - 1_007_000_000_000).abs() < 2_000, "{machine:?}: {begin}");
    }
}

#[test]
fn guests_are_a_notice() {
    for machine in MACHINES {
        let guest = [b"vm\0".to_vec(), machine.number(77, 8), machine.number(0, 4)].concat();
        let bytes = machine.trace_dat(&requests(), &[(13, guest)]);
        assert!(warnings(&bytes).contains("virtual machines"), "{}", warnings(&bytes));
    }
    assert!(!warnings(&LITTLE.trace_dat(&requests(), &[])).contains("virtual machines"));
}

#[test]
fn options_of_the_recorder_are_no_damage() {
    let machine = LITTLE;
    let lost = |cpu: u32, n: u32| {
        format!("CPU: {cpu}\nentries: 1\noverrun: {n}\ncommit overrun: 1\ndropped events: 2\n\0").into_bytes()
    };
    // An unknown option, one that is too short, and counters of losses.
    let options = [(99, vec![1, 2, 3]), (14, vec![0]), (2, lost(0, 4)), (2, lost(1, 0)), (8, machine.number(2, 4))];
    let info = json(&["info"], &machine.trace_dat(&requests(), &options));
    assert_eq!(info["lost"]["events"], 7 + 3, "{info:#}");
}

#[test]
fn other_records_of_perf_are_counted_and_named() {
    for machine in MACHINES {
        let n = |value: i64, size| machine.number(value, size);
        let symbol = [n(0x7f00_0000, 8), n(0x80, 4), n(1, 2), n(0, 2), b"bpf_prog_1_x\0\0\0\0".to_vec()].concat();
        let spaces = |inode| {
            [n(5, 4), n(5, 4), n(7, 8), (0..7).flat_map(|_| [n(3, 8), n(inode, 8)].concat()).collect()].concat()
        };
        let records = [
            (17, 0, symbol),
            (16, 0, spaces(100)),
            (16, 0, spaces(200)),
            (16, 0, spaces(100)),
            (11, 0, vec![0; 24]),
            (11, 0, vec![0; 24]),
            (19, 0, vec![0; 16]),
            (5, 0, vec![0; 24]),
            (13, 0, n(9, 8)),
            (41, 0, vec![]),
            (68, 0, vec![]),
            // Times of samples are ns whatever the conversion of the processor's ticks.
            (79, 0, [n(5, 8), n(3, 8), n(7, 8), n(1, 8)].concat()),
        ];
        let bytes = machine.perf_data(&requests(), &records, ATTR);
        let said = warnings(&bytes);
        for part in
            ["2 AUX, 1 CGROUP, 1 of type 41", "2 pid namespaces", "stopped sampling 1 time", "discarded 9 events"]
        {
            assert!(said.contains(part), "{machine:?}: {part}: {said}");
        }
        assert!(!said.contains("79"), "{said}");
        assert_eq!(dump(&bytes), dump(&machine.perf_data(&requests(), &[], ATTR)));
    }
}

/// LOST and LOST_SAMPLES count the same losses.
#[test]
fn losses_count_once() {
    let n = |value: i64, size| LITTLE.number(value, size);
    let lost = [(2, 0, [n(7000, 8), n(9, 8)].concat()), (13, 0, n(9, 8))];
    let info = json(&["stats", "count"], &LITTLE.perf_data(&requests(), &lost, ATTR));
    assert_eq!(info["discarded_events"], 9, "{info:#}");
}
