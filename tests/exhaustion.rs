//! Without memory there is one line and exit status 1, never a signal: under every limit of the address space from too
//! small to begin to large enough to answer. Under `--memory` states go to a file, and what cannot is refused by name.

use crate::support::operations::{MS, OperationsBuilder};
use crate::support::{ask, ctf_writer, kernel_trace, otf2, repeated};
use ask::{fixture, run, said};
use ctf_writer::{Channel, Context, Event, Task, TraceWriter, Value};
use kernel_trace::KernelTrace;
use std::path::Path;
use std::process::{Command, Output};
use std::rc::Rc;
use whyslow::parts::base::time::Ns;
use whyslow::parts::event::operation::OperationKind;

/// True if the program's own code is reached under this limit: the loader and the kernel report smaller ones
/// themselves.
fn begins(mebibytes: u64) -> bool {
    let out = run(limited(mebibytes).arg("--version"));
    matches!(out.status.code(), Some(0 | 1)) && said(&out).lines().all(|l| l.starts_with("whyslow: "))
}

fn limited(mebibytes: u64) -> Command {
    let mut command = Command::new("sh");
    let script = format!("ulimit -v {}; exec \"$@\"", mebibytes * 1024);
    command.args(["-c", &script, "sh", ask::PROGRAM]);
    command
}

/// True for an answer, false for one line and exit status 1; nothing else may be.
fn answered_or_told(out: &Output, what: &str) -> bool {
    let said = said(out);
    assert!(!said.contains("panicked") && !said.contains("memory allocation"), "{what}: {said}");
    match out.status.code() {
        Some(0) => true,
        Some(1) => {
            let one = said.lines().filter(|l| l.starts_with("whyslow: ")).count();
            assert_eq!(one, 1, "{what}: {said}");
            false
        }
        other => panic!("{what} ends with {other:?} ({:?}): {said}", out.status),
    }
}

/// The C library aborts the process where a thread that begins finds no memory. Whether it does depends on which thread
/// is first, so limits with just enough memory for a thread are tried several times.
#[test]
fn threads_start_only_where_memory_allows() {
    let least = (1..1024).find(|m| begins(*m)).expect("a limit under which the program begins");
    for mebibytes in least..least + 8 {
        for words in [&["explain", "--threads", "4", "--memory", "1GiB"][..], &["dump", "--threads", "2"]] {
            for _ in 0..8 {
                let out = run(limited(mebibytes).args(words).arg(fixture("snap")));
                answered_or_told(&out, &format!("{words:?} with {mebibytes} MiB"));
            }
        }
    }
}

#[test]
fn commands_answer_under_every_limit_of_the_address_space() {
    let least = (1..1024).find(|m| begins(*m)).expect("a limit under which the program begins");
    let (mut answered, mut lines) = (0, 0);
    for words in [
        &["explain", "--threads", "1"][..],
        &["explain", "--threads", "4", "--memory", "1GiB"],
        &["anomalies", "--threads", "2"],
        &["info", "--full", "--threads", "2"],
        &["stats", "count", "--threads", "3"],
        &["dump", "--threads", "2"],
    ] {
        let mut more = 0;
        while more < 400 {
            let mebibytes = least + more;
            let out = run(limited(mebibytes).args(words).arg(fixture("snap")));
            match answered_or_told(&out, &format!("{words:?} with {mebibytes} MiB")) {
                true => answered += 1,
                false => lines += usize::from(said(&out).contains("out of memory")),
            }
            more += more / 5 + 1;
        }
    }
    println!("from {least} MiB: {answered} answers, {lines} lines");
    assert!(answered > 20 && lines > 5, "{answered} answers, {lines} lines");
}

/// The answer of `explain` to one fixture, within limits.
fn explained(words: &[&str], folder: &str) -> Output {
    let mut command = ask::whyslow(["explain", "--json", "--task", "client:call"]);
    run(command.args(words).arg(fixture("lock-contention")).env("TMPDIR", folder))
}

#[test]
fn what_cannot_fit_is_refused_by_its_parts_with_the_limit_that_would_do() {
    let refused = (2..20).find_map(|mebibytes| {
        let limit = format!("{mebibytes}MiB");
        let out = explained(&["--memory", &limit, "--threads", "7"], "/tmp");
        answered_or_told(&out, &limit);
        let said = said(&out);
        let enough = said.split_once("what is known of them hold ")?.1.split_once("raise the limit to ")?.1;
        Some((said.clone(), enough.split_once(',')?.0.to_owned()))
    });
    let (said, enough) = refused.expect("a limit with room for the traces, but not for buffers");
    assert!(
        said.contains("buffers of events, open rows and leaves of states need") && said.contains("--threads"),
        "{said}"
    );
    let out = explained(&["--memory", &enough, "--threads", "7"], "/tmp");
    assert!(!ask::said(&out).contains("opened traces"), "{enough}: {}", ask::said(&out));
}

/// A recording of this many executions of one task.
fn executions(n: usize, folder: &Path) {
    let on = Rc::new(Task { vtid: 77, vpid: 77, ..Task::default() });
    let event = |name: &'static str, time: Ns| {
        let fields = vec![("n", Value::U8(0))];
        Event { time, cpu: 0, name: name.into(), fields, on: Rc::clone(&on), stack: None }
    };
    let pair = |i: usize| [event("p:job_begin", 1000 + 100 * i as Ns), event("p:job_end", 1050 + 100 * i as Ns)];
    let mut trace = TraceWriter::new("h", "ust", 0x71, 0x72);
    trace.span = (1000, 1000 + 100 * n as Ns);
    let (contexts, events) = (vec![Context::Vtid, Context::Vpid], (0..n).flat_map(pair).collect());
    trace.channels.push(Channel { name: "stream".into(), contexts, events, discarded: Vec::new() });
    trace.write(folder);
}

/// Lists of executions, of operations and of occurrences are large blocks, which a file has where a limit has no room
/// for them.
#[test]
fn a_hundred_thousand_executions_are_answered_within_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    executions(100_000, folder.path());
    for (command, most) in [("explain", 24), ("anomalies", 80)] {
        let asked = |more: &[&str]| {
            let words = [command, "--json", "--threads", "1", "--task", "begin=p:job_begin,end=p:job_end"];
            run(ask::whyslow(words.iter().chain(more)).arg(folder.path()))
        };
        let whole = asked(&[]);
        let least = (8..most).step_by(8).find(|mebibytes| {
            let limit = format!("{mebibytes}MiB");
            let out = asked(&["--memory", &limit]);
            answered_or_told(&out, &limit) && out.stdout == whole.stdout
        });
        assert!(least.is_some(), "{command}: no limit has the answer without a limit");
    }
}

/// The answer of a command under limits from 4 MiB on, each half as large again as the one before it, is that without a
/// limit, from the least limit on that suffices; the others end with one line that names the part. The answer is what
/// the command prints, and what it writes to `output`.
fn sweep(words: &[&str], output: Option<&Path>, path: &Path) {
    let ask = |limit: Option<u64>| {
        let limit = limit.map(|bytes| bytes.to_string());
        let more = limit.iter().flat_map(|limit| ["--memory", limit.as_str()]);
        let mut command = ask::whyslow(words.iter().copied().chain(more));
        if let Some(file) = output {
            // An answer that is not written is not that of the limit before.
            let _ = std::fs::remove_file(file);
            command.arg("--output").arg(file);
        }
        let mut out = run(command.args(["--threads", "2"]).arg(path));
        out.stdout.extend(output.and_then(|file| std::fs::read(file).ok()).unwrap_or_default());
        out
    };
    let whole = ask(None);
    assert!(whole.status.success() && !whole.stdout.is_empty(), "{words:?}: {}", said(&whole));
    let limits = std::iter::successors(Some(4_u64 << 20), |bytes| Some(bytes / 2 * 3)).take_while(|at| *at < 96 << 20);
    let mut least = None;
    for limit in limits {
        let what = format!("{words:?} of {} within {limit} bytes", path.display());
        // What is freed, and when that is seen, differs from run to run: near the least limit either is right.
        let fits = |limit| answered_or_told(&ask(Some(limit)), &what);
        let out = ask(Some(limit));
        if answered_or_told(&out, &what) {
            assert!(out.stdout == whole.stdout, "{what}: another answer");
            least = least.or(Some(limit));
            continue;
        }
        assert!(out.stdout.is_empty(), "{what}: a part of an answer");
        let names = ["opened traces", " not enough for "];
        assert!(names.iter().any(|name| said(&out).contains(name)), "{what}: {}", said(&out));
        assert!(least.is_none() || fits(limit) || fits(limit), "{what}, but not within {least:?}: {}", said(&out));
    }
    assert!(least.is_some(), "{words:?} of {}: no limit suffices", path.display());
}

#[test]
fn a_larger_limit_never_fails_where_a_smaller_one_works() {
    let folder = tempfile::tempdir().unwrap();
    let recorders = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recorders");
    for (name, repeat) in
        [("file.data", repeated::perf_data as fn(&[u8], usize) -> Vec<u8>), ("v6.dat", repeated::trace_dat)]
    {
        let path = folder.path().join(name);
        std::fs::write(&path, repeat(&std::fs::read(recorders.join(name)).unwrap(), 3 << 20)).unwrap();
        sweep(&["explain", "--json"], None, &path);
    }
    let path = fixture("lock-contention");
    sweep(&["explain", "--json"], None, &path);
    // Of a file with debug information only what is asked for is in memory: a C library's took 25 MiB within
    // milliseconds, so that it was chance whether that was seen.
    sweep(&["diff", "--json", path.to_str().unwrap()], None, &path);
    let path = folder.path().join("v6.dat");
    sweep(&["query", "--json", "--attribute", "threads/*/state", "--longest", "20"], None, &path);
    sweep(&["anomalies", "--json"], None, &path);
}

/// Two ranks that work by turns, each of them sending its result to the other.
#[test]
fn archives_of_runs_obey_every_limit() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = OperationsBuilder::on_one_clock(2);
    for turn in 0..40_000 {
        let (from, to) = (turn % 2, (turn + 1) % 2);
        let took = if turn % 900 == 17 { 9 * MS } else { MS };
        run.work(from, "assemble", took);
        let sent = run.until(from, "MPI_Send", OperationKind::Work, run.now[from] + 1000);
        let received = run.until(to, "MPI_Recv", OperationKind::Receive, run.now[from] + 5000);
        run.send(sent, received);
    }
    let path = otf2::recording::record(&run.finish(), folder.path());
    sweep(&["anomalies", "--json"], None, &path);
    sweep(&["explain", "--json"], None, &path);
}

/// Those that write files keep more at a time than an answer needs: all tasks, all states, timelines.
#[test]
fn commands_that_write_obey_every_limit() {
    let folder = tempfile::tempdir().unwrap();
    let (file, path) = (|name: &str| folder.path().join(name), folder.path().join("jobs"));
    executions(5_000, &path);
    let task = ["--task", "begin=p:job_begin,end=p:job_end"];
    sweep(&[&["build"][..], &task].concat(), Some(&file("executions.db")), &path);
    sweep(&[&["report"][..], &task].concat(), Some(&file("report.html")), &path);
    sweep(&[&["diff", "--json"][..], &task].concat(), None, &path);
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recorders/v6.dat");
    let path = file("v6.dat");
    std::fs::write(&path, repeated::trace_dat(&std::fs::read(fixture).unwrap(), 3 << 20)).unwrap();
    sweep(&["build", "--history"], Some(&file("states.history")), &path);
}

/// Thread 5 shares its CPU with thread 9: 15,000 times one runs and the other waits for the CPU. Sixty jobs of thread 5
/// last as long as all of that, side by side.
#[test]
fn long_executions_take_the_memory_of_their_contexts_not_of_their_switches() {
    const TURNS: i64 = 15_000;
    const JOBS: i64 = 60;
    let folder = tempfile::tempdir().unwrap();
    let mut trace = KernelTrace::new("alpha", 0x11);
    let job = |n: i64| vec![("n", Value::I64(n))];
    trace.switch(0, 0, 0, 0, 5);
    for n in 0..JOBS {
        trace.event(10 + n, 0, 5, "job_begin", job(n));
    }
    for turn in 0..TURNS {
        trace.switch(1000 * turn + 500, 0, 5, 0, 9).switch(1000 * turn + 1000, 0, 9, 0, 5);
    }
    for n in 0..JOBS {
        trace.event(1000 * TURNS + 10 + 3 * n, 0, 5, "job_end", job(n));
    }
    trace.switch(1000 * TURNS + 5000, 0, 5, 1, 0);
    trace.write(folder.path());
    for threads in ["1", "2"] {
        let words = ["explain", "--json", "--task", "begin=job_begin,end=job_end,key=n", "--threads", threads];
        let explained = |more: &[&str]| run(ask::whyslow(words).args(more).arg(folder.path()));
        let (out, whole) = (explained(&["--memory", "20MiB"]), explained(&[]));
        assert!(out.status.success() && out.stdout == whole.stdout, "{threads}: {}", said(&out));
        let answer: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(answer["fast"]["count"], JOBS / 2, "{answer:#}");
    }
}

/// Their packets begin at the same moments, and they have as many threads for each event as the original. How many
/// events a byte makes is measured on one packet, and which chunks meet depends on what else the machine does: a tenth
/// more is within that error.
#[test]
fn buffers_and_open_rows_of_copies_stay_within_their_parts() {
    let copies: Vec<String> = (0..8).map(|i| format!("h{i}={}/kernel", fixture("lock-contention").display())).collect();
    for threads in ["2", "4"] {
        let words = ["info", "--json", "--timings", "--memory", "48MiB", "--threads", threads];
        let out = run(Command::new(ask::PROGRAM).args(words).args(&copies));
        assert!(out.status.success(), "{}", said(&out));
        let info: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        for name in ["buffers", "open rows"] {
            let part = info["memory"].as_array().unwrap().iter().find(|part| part["part"] == name).unwrap();
            let bytes = |key: &str| part[key].as_u64().unwrap();
            assert!(0 < bytes("bytes") && bytes("bytes") <= bytes("given_bytes") / 10 * 11, "{threads}: {part}");
        }
    }
}

#[test]
fn states_go_to_a_file_that_leaves_no_name() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let want = explained(&[], place);
    for more in [&["--leaf-memory", "0"][..], &["--leaf-memory", "0", "--no-sandbox"], &["--leaf-memory", "20000"]] {
        let out = explained(&[&["--timings", "--check"], more].concat(), place);
        assert!(out.status.success() && out.stdout == want.stdout, "{more:?}: {}", said(&out));
        let text = said(&out);
        let file = text.lines().find_map(|line| line.trim().strip_prefix("file")).unwrap();
        assert!(!file.trim().starts_with("0 leaves") && !file.contains(" 0 read"), "{text}");
        assert!(text.contains(" for leaves") && text.lines().any(|line| line.trim().starts_with("leaves")), "{text}");
    }
    assert_eq!(std::fs::read_dir(place).unwrap().count(), 0);
    // Without a folder that can be written, another is found.
    let out = explained(&["--leaf-memory", "0"], "/no/such/folder");
    assert!(out.status.success() && out.stdout == want.stdout, "{}", said(&out));
}

#[test]
fn a_disk_that_is_full_ends_the_work_with_one_line() {
    // No file may grow: a write fails as on a full disk, where its signal is ignored.
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$@\"";
    let words = ["explain", "--json", "--task", "client:call", "--leaf-memory", "0"];
    let mut command = Command::new("sh");
    let out = run(command.args(["-c", script, "sh", ask::PROGRAM]).args(words).arg(fixture("lock-contention")));
    assert!(!answered_or_told(&out, "a full disk") && out.stdout.is_empty(), "{}", said(&out));
    assert!(said(&out).contains("cannot hold them") && said(&out).contains("TMPDIR"), "{}", said(&out));
}

#[test]
fn a_folder_in_memory_is_not_for_states() {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    let in_memory = |folder: &str| mounts.lines().any(|line| line.contains(&format!(" {folder} tmpfs ")));
    if !in_memory("/dev/shm") || ["/", "/var", "/var/tmp"].iter().any(|folder| in_memory(folder)) {
        return;
    }
    let out = explained(&["--leaf-memory", "0", "--timings"], "/dev/shm");
    assert!(said(&out).contains("in /var/tmp") && !said(&out).contains("which is memory"), "{}", said(&out));
}
