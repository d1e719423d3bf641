//! Recordings by perf and trace-cmd, unconverted: they are read as the recorders' own tools read them, in every form of
//! the two formats; damaged files get an answer; no answer depends on the number of workers.
//!
//! Counts come from `perf script -F event` and `trace-cmd report -t` (`fixtures/recorders/README.md`).

use crate::support::{ask, corpus, random, repeated};
use corpus::corpus;

use random::Random;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::notice::Notice;
use whyslow::parts::dump;
use whyslow::parts::dump::{Form, Sizes};
use whyslow::parts::input::{self, Argument, OpenError, Opened, Source, Trace, count};
use whyslow::parts::kernel::{Options, record};
use whyslow::parts::reading::chunks::ChunkTarget;
use whyslow::parts::reading::engine::EngineOptions;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recorders").join(name)
}

fn open(path: &Path) -> Result<Vec<Source>, OpenError> {
    match input::open(&[Argument::new(path.to_owned())], &Ctx::new(1))? {
        Opened::Traces(sources) => Ok(sources),
        Opened::Otf2(_) => panic!("{} is no archive", path.display()),
    }
}

fn counts(path: &Path) -> BTreeMap<String, u64> {
    count::count(&open(path).unwrap(), &Ctx::new(2)).unwrap().0.per_name
}

fn text(path: &Path, workers: usize, form: Form, sizes: &Sizes) -> String {
    let mut out = Vec::new();
    dump::write(&open(path).unwrap(), form, sizes, &Ctx::new(workers), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

const ALL: [&str; 10] = [
    "file.data",
    "pipe.data",
    "zstd.data",
    "dir.data",
    "exec.data",
    "overwrite.data",
    "dwarf.data",
    "switch.data",
    "v6.dat",
    "v7.dat",
];

#[test]
fn perf_data_of_every_form_has_the_counts_of_perf_script() {
    let expected: [(&str, &[(&str, u64)]); 4] = [
        ("file.data", &[("sched:sched_switch", 52), ("sched:sched_wakeup", 27), ("cpu-clock/freq=250/", 81)]),
        ("pipe.data", &[("sched:sched_switch", 43), ("sched:sched_waking", 23), ("sched:sched_process_exit", 1)]),
        ("zstd.data", &[("sched:sched_switch", 45), ("sched:sched_waking", 21), ("sched:sched_process_exit", 1)]),
        ("dir.data", &[("sched:sched_switch", 44), ("sched:sched_waking", 19), ("sched:sched_process_exit", 1)]),
    ];
    for (name, events) in expected {
        let found = counts(&fixture(name));
        for (event, n) in events {
            assert_eq!(found.get(*event), Some(n), "{name}: {event}");
        }
    }
}

#[test]
fn program_started_while_recording_has_its_own_maps() {
    // `sched_process_exec` comes when the program is mapped already; perf's own record of the exec comes before.
    let explain = ["explain", "--json", "--task", "wait=clock_nanosleep"];
    let out = ask::run(ask::program().args(explain).arg(fixture("exec.data")));
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let path: Vec<&str> = json["causes"][0]["path"].as_array().unwrap().iter().filter_map(|f| f.as_str()).collect();
    assert!(path.iter().any(|frame| frame.starts_with("spin+0x")) && !path.contains(&"[unknown]"), "{path:?}");
}

/// The functions of the first cause's path, and the notices. The mark on names from unproven files is left out: a
/// checkout makes files newer than their recording.
fn explained(path: &Path, options: &[&str]) -> (Vec<String>, String) {
    let out = ask::program().args(["explain", "--json"]).args(options).arg(path).output();
    let json: serde_json::Value = serde_json::from_slice(&out.unwrap().stdout).unwrap();
    let path = json["causes"][0]["path"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f.as_str().unwrap().trim_end_matches('?').to_owned())
        .collect();
    (path, json["warnings"].to_string())
}

#[test]
fn copies_of_the_stack_are_unwound() {
    let programs = fixture("turns");
    let places = ["--symbols", programs.to_str().unwrap()];
    let (path, notices) = explained(&fixture("dwarf.data"), &[&places[..], &["--threads", "1"]].concat());
    let functions =
        ["turns", "run", "serve", "handle_request", "retry_upstream", "back_off", "call", "[poll]", "[timer]"];
    assert_eq!(path, functions);
    assert!(notices.contains("could not be unwound"), "perf's own stacks are longer than what was copied: {notices}");
    for (threads, chunk) in [("2", "0"), ("3", "4000")] {
        let other =
            explained(&fixture("dwarf.data"), &[&places[..], &["--threads", threads, "--chunk", chunk]].concat());
        assert_eq!(other, (path.clone(), notices.clone()));
    }
    // Without the program, the addresses of callers are unknown.
    let folder = tempfile::tempdir().unwrap();
    let (path, notices) = explained(&fixture("dwarf.data"), &["--symbols", folder.path().to_str().unwrap()]);
    assert!(!path.iter().any(|frame| frame == "handle_request"), "{path:?}");
    assert!(notices.contains("not found"), "{notices}");
}

#[test]
fn context_switch_records_give_the_running_threads() {
    let path = fixture("switch.data");
    let found = counts(&path);
    assert_eq!((found.get("perf:switch_out"), found.get("perf:switch_preempted")), (Some(&78), Some(&32)));
    let (path, _) = explained(&path, &["--task", "wait=clock_nanosleep,thread=turns"]);
    assert_eq!(path, ["turns", "[poll]", "[timer]"]);
}

/// `pipe.data` as a kernel writes it that defers stacks of user space (Linux 6.19): the samples end in a cookie, the
/// addresses come in a record behind the next one.
fn with_deferred_stacks(pipe: &[u8]) -> (Vec<u8>, usize) {
    let [kernel_part, user_part, deferred] = [-128i64, -512, -640].map(|marker| marker as u64);
    let (mut out, mut at, mut waiting, mut cookie) = (pipe[..16].to_vec(), 16, None, 0u64);
    let record = |kind: u32, misc: u16, words: &[u64]| {
        let head = u64::from(kind) | u64::from(misc) << 32 | (8 + words.len() as u64 * 8) << 48;
        std::iter::once(&head).chain(words).flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>()
    };
    while at < pipe.len() {
        let kind = u32::from_le_bytes(pipe[at..at + 4].try_into().unwrap());
        let misc = u16::from_le_bytes(pipe[at + 4..at + 6].try_into().unwrap());
        let size = usize::from(u16::from_le_bytes(pipe[at + 6..at + 8].try_into().unwrap()));
        let body = &pipe[at + 8..at + size];
        let outside =
            if kind == 66 { u32::from_le_bytes(body[..4].try_into().unwrap()).next_multiple_of(8) } else { 0 };
        let words: Vec<u64> = body.chunks_exact(8).map(|w| u64::from_le_bytes(w.try_into().unwrap())).collect();
        let chain = words.iter().position(|w| *w == kernel_part).filter(|_| kind == 9);
        let user = chain.and_then(|from| {
            let to = from + words[from - 1] as usize;
            Some((from, from + words[from..to].iter().position(|w| *w == user_part)?, to))
        });
        match user {
            Some((from, user, to)) => {
                cookie += 1;
                let mut sample = words[..from - 1].to_vec();
                sample.push((user - from) as u64 + 2);
                sample.extend(&words[from..user]);
                sample.extend([deferred, cookie]);
                sample.extend(&words[to..]);
                out.extend(record(kind, misc, &sample));
                let mut stack = vec![cookie, (to - user) as u64];
                stack.extend(&words[user..to]);
                // Thread, time, CPU, identifier.
                stack.extend([words[2], words[3], words[4], words[0]]);
                out.extend(waiting.replace(record(22, 2, &stack)).into_iter().flatten());
            }
            None => {
                let from = out.len();
                out.extend(&pipe[at..at + size + outside as usize]);
                if kind == 64 {
                    out[from + 8 + 44] |= 1 << 6;
                }
            }
        }
        at += size + outside as usize;
    }
    out.extend(waiting.into_iter().flatten());
    (out, cookie as usize)
}

#[test]
fn deferred_stacks_come_back_to_their_samples() {
    let plain = std::fs::read(fixture("pipe.data")).unwrap();
    let (bytes, n) = with_deferred_stacks(&plain);
    assert!(n > 10, "{n}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deferred.data");
    std::fs::write(&path, bytes).unwrap();
    let dumped = |path: &Path| text(path, 2, Form::Canonical, &Sizes::default());
    let (deferred, plain) = (dumped(&path), dumped(&fixture("pipe.data")));
    assert_eq!(deferred.lines().count(), plain.lines().count());
    deferred.lines().zip(plain.lines()).for_each(|(deferred, plain)| assert_eq!(deferred, plain));
    survives(&path, "deferred");
}

#[test]
fn overwrite_mode_is_read_in_order() {
    let found = counts(&fixture("overwrite.data"));
    for (event, n) in [("sched:sched_switch", 78), ("sched:sched_waking", 37), ("sched:sched_process_exit", 1)] {
        assert_eq!(found.get(event), Some(&n), "{event}");
    }
    // The thread that leaves a CPU is the last one that came to it: in backward order this would be false everywhere.
    let all = text(&fixture("overwrite.data"), 1, Form::Readable, &Sizes::default());
    let field = |line: &str, name: &str| -> i64 {
        line.split_once(name).and_then(|(_, rest)| rest.split([',', '}']).next()?.parse().ok()).unwrap()
    };
    for cpu in ["cpu 0 ", "cpu 1 "] {
        let switches: Vec<&str> =
            all.lines().filter(|line| line.contains(cpu) && line.contains("sched_switch {")).collect();
        let follows = |pair: &&[&str]| field(pair[0], "next_pid=") == field(pair[1], "prev_pid=");
        assert_eq!(switches.windows(2).filter(follows).count(), switches.len() - 1, "{cpu}");
    }
}

#[test]
fn trace_dat_of_both_versions_has_the_counts_of_trace_cmd() {
    let found = counts(&fixture("v6.dat"));
    for (event, n) in
        [("sys_enter_newfstatat", 135), ("softirq_raise", 111), ("softirq_exit", 109), ("sched_process_exec", 3)]
    {
        assert_eq!(found.get(event), Some(&n), "{event}");
    }
    assert_eq!(found.values().sum::<u64>(), 1408);
    // The same pages in compressed chunks.
    let whole = |name: &str| text(&fixture(name), 1, Form::Canonical, &Sizes::default());
    assert_eq!(whole("v6.dat"), whole("v7.dat"));
}

#[test]
fn switch_has_fields_names_and_stacks() {
    let all = text(&fixture("file.data"), 1, Form::Readable, &Sizes::default());
    let wanted = |line: &&str| {
        let parts = ["sched:sched_switch {tid=", "procname=\"", "callstack_kernel=[18446744"];
        parts.iter().all(|part| line.contains(part))
    };
    let switch = all.lines().find(wanted).unwrap();
    for part in ["cpu ", "pid=", "procname=\"", "callstack_kernel=[18446744", "prev_comm=\"", "next_pid="] {
        assert!(switch.contains(part), "{part} in {switch}");
    }
    let pages = text(&fixture("v6.dat"), 1, Form::Readable, &Sizes::default());
    assert!(pages.contains("sys_enter_newfstatat {tid=") && pages.contains("__syscall_nr=262"));
}

#[test]
fn answers_do_not_depend_on_workers_or_chunks() {
    for name in ALL {
        let path = fixture(name);
        let whole = text(&path, 1, Form::Canonical, &Sizes::default());
        let sizes = Sizes { sample: 64, chunk: 600, window: 4000 };
        assert_eq!(text(&path, 3, Form::Canonical, &sizes), whole, "{name}");
        let sources = open(&path).unwrap();
        let traces: Vec<&Trace> = sources.iter().map(|s| &s.trace).collect();
        let recorded = |workers, chunks| {
            let options =
                Options { engine: EngineOptions { chunks, ..EngineOptions::default() }, ..Options::default() };
            let (found, notices) = record(&traces, &[], &options, &Ctx::new(workers)).unwrap();
            let found = whyslow::parts::timeline::TimelineDraft::of(&found);
            format!("{:?}\n{:?}\n{:?}\n{notices:?}", found.threads, found.tables.images, found.tables.wake_stacks)
        };
        let one = recorded(1, ChunkTarget::Whole);
        assert!(one.contains("Running"), "{name}");
        for (workers, chunks) in [(1, ChunkTarget::Packet), (3, ChunkTarget::Bytes(5000))] {
            assert!(recorded(workers, chunks) == one, "{name} {workers} {chunks:?}");
        }
    }
}

/// A folder that is removed when it is dropped.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// The error of opening these bytes as a file of this name.
fn refused(name: &str, bytes: &[u8]) -> String {
    let folder = scratch();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    open(&path).expect_err("it must not open").to_string()
}

#[test]
fn unreadable_recordings_name_the_reason() {
    let mut killed = std::fs::read(fixture("file.data")).unwrap();
    killed[48..56].fill(0);
    assert!(refused("killed.data", &killed).contains("not finished"));
    let whole = std::fs::read(fixture("file.data")).unwrap();
    assert!(refused("cut.data", &whole[..90]).contains("ends inside its own header"));
    assert!(refused("old.data", b"PERFFILE and more").contains("version 1"));
    let mut later = std::fs::read(fixture("v6.dat")).unwrap();
    later[10] = b'8';
    assert!(refused("later.dat", &later).contains("version 8"));
    assert!(refused("cut.dat", &later[..15]).contains("ends inside its own header"));
}

#[test]
fn page_after_a_loss_counts_lost_events() {
    let mut bytes = std::fs::read(fixture("v6.dat")).unwrap();
    let page = 4096;
    // The second page of the first CPU: the upper bits of the length are all ones then, and the number follows the
    // data.
    let table = bytes.windows(10).position(|w| w == b"flyrecord\0").unwrap() + 10;
    let first = u64::from_le_bytes(bytes[table..table + 8].try_into().unwrap()) as usize;
    let at = first + page;
    let length = u64::from_le_bytes(bytes[at + 8..at + 16].try_into().unwrap()) as usize;
    let length = length.min(page - 24) & !7;
    bytes[at + 8..at + 16].copy_from_slice(&(0xffff_ffff_c000_0000u64 | length as u64).to_le_bytes());
    bytes[at + 16 + length..at + 24 + length].copy_from_slice(&77u64.to_le_bytes());
    let folder = scratch();
    let path = folder.path().join("trace.dat");
    std::fs::write(&path, &bytes).unwrap();
    let (found, notices) = count::count(&open(&path).unwrap(), &Ctx::new(1)).unwrap();
    assert_eq!((found.discarded_events, notices.count(Notice::DiscardedEvents)), (77, 77));
}

/// Any bytes have an answer, in time.
fn survives(path: &Path, what: &str) {
    let began = Instant::now();
    if let Ok(sources) = open(path) {
        let (counted, _) = count::count(&sources, &Ctx::new(1)).unwrap();
        let mut out = Vec::new();
        dump::write(&sources, Form::Canonical, &Sizes::default(), &Ctx::new(1), &mut out).unwrap();
        let lines = out.iter().filter(|b| **b == b'\n').count() as u64;
        assert!(lines == counted.events, "{what}: {lines} lines of {} events", counted.events);
        let traces: Vec<&Trace> = sources.iter().map(|s| &s.trace).collect();
        record(&traces, &[], &Options::default(), &Ctx::new(1)).unwrap();
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{what} took {:?}", began.elapsed());
}

/// Long enough for several parts of the walk that finds the runs of a perf.data.
#[test]
fn long_recordings_are_the_same_on_any_number_of_workers() {
    const LONG: usize = 10 << 20;
    let folder = scratch();
    for (name, repeat) in
        [("file.data", repeated::perf_data as fn(&[u8], usize) -> Vec<u8>), ("v6.dat", repeated::trace_dat)]
    {
        let path = folder.path().join(name);
        std::fs::write(&path, repeat(&std::fs::read(fixture(name)).unwrap(), LONG)).unwrap();
        let seen = |workers: usize| {
            let argument = Argument::new(path.clone());
            let Ok(Opened::Traces(sources)) = input::open(&[argument], &Ctx::new(workers)) else { panic!("{name}") };
            let counts = count::count(&sources, &Ctx::new(workers)).unwrap().0;
            (counts.per_name, format!("{:?}", sources[0].trace.streams()))
        };
        let one = seen(1);
        let event = if name == "file.data" { "sched:sched_switch" } else { "sched_switch" };
        let (short, long) = (counts(&fixture(name))[event], one.0[event]);
        assert!(long > 10 * short && long % short == 0, "{name}: {short} {long}");
        for workers in [2, 3] {
            assert_eq!(seen(workers), one, "{name} {workers}");
        }
    }
}

#[test]
fn hostile_files_get_an_answer() {
    let mut dice = Random::new(0x2545_f491_4f6c_dd1d);
    for name in ["file.data", "pipe.data", "zstd.data", "v6.dat", "v7.dat"] {
        let bytes = std::fs::read(fixture(name)).unwrap();
        let folder = scratch();
        let path = folder.path().join(name);
        let try_one = |damaged: &[u8], what: String| {
            std::fs::write(&path, damaged).unwrap();
            survives(&path, &what);
        };
        for end in (0..120).chain((0..20).map(|i| bytes.len() * i / 20)) {
            try_one(&bytes[..end.min(bytes.len())], format!("{name} up to {end}"));
        }
        for round in 0..60 {
            let mut damaged = bytes.clone();
            for _ in 0..=dice.below(4) {
                // Every other one in the first kilobytes, which hold the sizes.
                let most = if round % 2 == 0 { 4096.min(damaged.len()) } else { damaged.len() };
                let at = dice.below(most);
                damaged[at] = [0, 0xff, 0x80, damaged[at] ^ 1 << dice.below(8)][dice.below(4)];
            }
            try_one(&damaged, format!("{name}, round {round}"));
        }
    }
}

/// The recorded problems of the corpus, by all recorders: the first cause must be the planted one.
#[test]
#[ignore = "needs the corpus"]
fn planted_cause_is_named_from_every_recorder() {
    let corpus = corpus("kernel");
    // By LTTng, perf and trace-cmd: kind of the first cause, thread, function; each names only what it recorded.
    let (telemetryd, journal) = (("preempted", "telemetryd"), ("blocked.thread", "journal"));
    let disk = |thread| ("blocked.disk", thread);
    let cases = [
        ("cs1-cpu-contention", "wait=clock_nanosleep,thread=ctl_task", [telemetryd; 3], "compress_frame"),
        (
            "cs2-disk-contention",
            "wait=accept4,thread=blk-worker",
            [disk("auditlogd"), disk(""), disk("")],
            "fetch_block",
        ),
        ("cs3-lock-contention", "wait=read,thread=worker", [journal; 3], "append_entry"),
    ];
    println!("| planted | LTTng | perf | trace-cmd |\n|---|---|---|---|");
    for (case, task, answers, function) in cases {
        let folder = corpus.join(case);
        assert!(folder.exists(), "{} is not unpacked", folder.display());
        let (symbols, kernel) = (folder.join("bin"), corpus.join("kernel_symbols.txt"));
        let mut row = format!("| {case} |");
        for (file, (kind, thread)) in ["", "perf/perf.data", "tracecmd/trace.dat"].into_iter().zip(answers) {
            let out = ask::program()
                .args(["explain", "--json", "--task", task, "--symbols", symbols.to_str().unwrap()])
                .args(["--kallsyms", kernel.to_str().unwrap(), folder.join(file).to_str().unwrap()])
                .output()
                .unwrap();
            let answer: serde_json::Value = serde_json::from_slice(&out.stdout).expect(case);
            row += &format!(" {} |", answer["verdict"]["sentence"].as_str().unwrap());
            let first = &answer["causes"][0];
            assert_eq!(first["kind"], kind, "{case} {file}: {first}");
            assert!(thread.is_empty() || first["by"]["thread"] == thread, "{case} {file}: {first}");
            // trace-cmd records no call stacks.
            assert_eq!(first.to_string().contains(function), !file.starts_with("tracecmd"), "{case} {file}: {first}");
        }
        println!("{row}");
    }
}

/// `whyslow record` writes the kernel's symbols beside its perf.data.
#[test]
fn kernel_symbols_beside_a_recording_are_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("perf.data");
    std::fs::copy(fixture("switch.data"), &data).unwrap();
    let symbols = || open(&data).unwrap()[0].trace.code().kernel_symbols.map(<[u8]>::to_vec);
    assert_eq!(symbols(), None);
    let text = b"ffffffff81000000 T _text\n";
    std::fs::write(folder.path().join("kallsyms"), text).unwrap();
    assert_eq!(symbols().unwrap(), text);
}
