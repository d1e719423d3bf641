//! Whatever call to the system fails, whatever allocation, at whatever moment the program is killed: it does not crash, does not
//! hang, leaves no half file, and says nothing with confidence that it would not have said.
//!
//! Each command runs as often as it makes calls of a kind, and the n-th of them fails in the n-th run; then it is counted as
//! sound if its answer is the one it gives undisturbed, if the answer's `warnings` name something more, or if it ends with
//! exit status 1 and one line. System calls fail through `ptrace`, allocations through a library that is loaded before libc.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/ask.rs"]
mod ask;
#[path = "../support/desk.rs"]
mod desk;
#[path = "../support/tracer.rs"]
mod tracer;

use ask::{fixture, said, whyslow};
use desk::Desk;
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use tracer::{Call, Verdict};

/// A kind of calls, those that belong to it, and the errors that they have in practice.
struct Kind {
    name: &'static str,
    calls: &'static [i64],
    errors: &'static [i32],
}

const KINDS: [Kind; 7] = [
    Kind {
        name: "open",
        calls: &[libc::SYS_open, libc::SYS_openat, libc::SYS_openat2],
        errors: &[libc::EACCES, libc::EMFILE],
    },
    Kind {
        name: "read",
        calls: &[libc::SYS_read, libc::SYS_pread64, libc::SYS_readv, libc::SYS_getdents64],
        errors: &[libc::EIO],
    },
    Kind {
        name: "stat",
        calls: &[libc::SYS_statx, libc::SYS_fstat, libc::SYS_newfstatat, libc::SYS_lseek],
        errors: &[libc::EIO],
    },
    Kind { name: "mmap", calls: &[libc::SYS_mmap, libc::SYS_brk, libc::SYS_mremap], errors: &[libc::ENOMEM] },
    Kind {
        name: "write",
        calls: &[libc::SYS_write, libc::SYS_writev, libc::SYS_pwrite64],
        errors: &[libc::ENOSPC, libc::EIO],
    },
    Kind { name: "fsync", calls: &[libc::SYS_fsync, libc::SYS_fdatasync, libc::SYS_flock], errors: &[libc::EIO] },
    Kind {
        name: "rename",
        calls: &[
            libc::SYS_rename,
            libc::SYS_renameat,
            libc::SYS_renameat2,
            libc::SYS_link,
            libc::SYS_linkat,
            libc::SYS_unlink,
        ],
        errors: &[libc::EACCES],
    },
];

/// How an answer is wrong, if it is: held against the one that was given undisturbed.
fn unsound(out: &Output, plain: &Output) -> Option<String> {
    let said = said(out);
    let whyslows = said.lines().filter(|l| l.starts_with("whyslow: ")).count();
    match out.status.code() {
        Some(0) if out.stdout == plain.stdout => None,
        Some(0) if names_more(&out.stdout, &plain.stdout) || said.contains("note: ") => None,
        Some(0) => Some(format!("another answer, and no warning: {}", difference(&out.stdout, &plain.stdout))),
        Some(1) if whyslows == 1 && said.lines().count() == 1 => None,
        // Whoever cannot write to stderr cannot say why.
        Some(1) if said.is_empty() && out.stderr.len() < plain.stderr.len() + 1 && plain.status.code() == Some(1) => {
            None
        }
        _ => Some(format!("{:?}: {said}", out.status)),
    }
}

fn warnings(answer: &[u8]) -> Option<Vec<String>> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let all = answer["warnings"].as_array()?;
    Some(all.iter().map(|w| w.as_str().unwrap_or_default().to_owned()).collect())
}

/// Its warnings say something that the other's don't.
fn names_more(answer: &[u8], plain: &[u8]) -> bool {
    match (warnings(answer), warnings(plain)) {
        (Some(ours), Some(theirs)) => ours.iter().any(|w| !theirs.contains(w)),
        _ => false,
    }
}

fn difference(answer: &[u8], plain: &[u8]) -> String {
    let (ours, theirs) = (String::from_utf8_lossy(answer), String::from_utf8_lossy(plain));
    let line = ours.lines().zip(theirs.lines()).find(|(a, b)| a != b);
    line.map_or_else(|| format!("{} bytes for {}", answer.len(), plain.len()), |(a, b)| format!("`{a}` for `{b}`"))
}

/// What is asked, with one worker so that calls have the same order in each run.
struct Question(Vec<OsString>);

impl Question {
    fn new(words: &[&str], input: &Path) -> Question {
        let words = words.iter().copied().chain(["--threads", "1"]).map(OsString::from);
        Question(words.chain([input.as_os_str().to_owned()]).collect())
    }

    fn command(&self) -> Command {
        // Whatever the user keeps is not part of the question.
        let mut command = whyslow(&self.0);
        for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "HOME"] {
            command.env(name, "/nonexistent");
        }
        command
    }

    /// Run it with the n-th call of a kind failing, counted from 1; and how many such calls there were.
    fn with_fault(&self, kind: &Kind, n: usize, error: i32) -> (Output, usize) {
        let mut seen = 0;
        let mut judge = |call: &Call| {
            if !kind.calls.contains(&call.number) {
                return Verdict::Go;
            }
            seen += 1;
            if seen == n { Verdict::Fail(error) } else { Verdict::Go }
        };
        let out = tracer::run(&mut self.command(), &mut judge);
        (out, seen)
    }

    /// Every call of every kind fails once; `most` of a kind, evenly spread, where there are more.
    fn survives(&self, most: usize) {
        let (mut wrong, mut faults) = (String::new(), 0);
        let plain = tracer::run(&mut self.command(), &mut |_| Verdict::Go);
        assert!(plain.status.success(), "{:?}: {}", self.0, said(&plain));
        for kind in &KINDS {
            let (_, calls) = self.with_fault(kind, 0, 0);
            // Several errors of one kind share out the calls.
            for (n, error) in (1..=calls).step_by(calls / most + 1).zip(kind.errors.iter().cycle()) {
                let (out, _) = self.with_fault(kind, n, *error);
                faults += 1;
                if let Some(how) = unsound(&out, &plain) {
                    let error = std::io::Error::from_raw_os_error(*error);
                    wrong += &format!("{} {n} of {calls} ({error}): {how}\n", kind.name);
                }
            }
        }
        println!("{:?}: {faults} faults", self.0);
        assert!(wrong.is_empty() && faults > 12, "{:?}, {faults} faults:\n{wrong}", self.0);
    }

    /// Every allocation fails once; `most` of them, evenly spread, where there are more.
    fn survives_without_memory(&self, most: usize) {
        let folder = tempfile::tempdir().unwrap();
        let counted = folder.path().join("count");
        let run = |n: usize| {
            let mut command = self.command();
            command.env("LD_PRELOAD", shim()).env("FAIL_ALLOCATION", n.to_string()).env("COUNT_ALLOCATIONS", &counted);
            ask::run(&mut command)
        };
        let plain = run(0);
        let calls: usize = std::fs::read_to_string(&counted).unwrap().parse().unwrap();
        assert!(plain.status.success() && calls > 1000, "{:?}, {calls} allocations: {}", self.0, said(&plain));
        let (mut wrong, mut lines) = (String::new(), 0);
        for n in (1..=calls).step_by(calls / most + 1) {
            let out = run(n);
            lines += usize::from(said(&out).starts_with("whyslow: out of memory"));
            wrong.extend(unsound(&out, &plain).map(|how| format!("allocation {n} of {calls}: {how}\n")));
        }
        println!("{:?}: {calls} allocations, {lines} ended it", self.0);
        assert!(wrong.is_empty() && lines > 0, "{:?}:\n{wrong}", self.0);
    }
}

/// The library that makes allocations fail, built once.
fn shim() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/shim.rs");
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("shim-{}.so", std::process::id()));
        let mut rustc = Command::new("rustc");
        rustc.args(["--edition", "2024", "--crate-type", "cdylib", "-C", "panic=abort", "-C", "opt-level=2", "-o"]);
        let out = rustc.arg(&library).arg(source).output().unwrap();
        assert!(out.status.success(), "{}", said(&out));
        library
    })
}

fn recorder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recorders").join(name)
}

fn archive() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/archives/late_sender/trace/traces.otf2")
}

/// More than any kind of calls has over the small fixtures.
const ALL: usize = 1 << 20;
/// Of the calls of a kind where a fixture is large.
const SOME: usize = 20;

#[test]
fn any_call_may_fail_while_a_trace_is_explained() {
    Question::new(&["explain", "--json"], &fixture("snap")).survives(ALL);
}

#[test]
fn any_call_may_fail_while_two_groups_are_compared() {
    Question::new(&["diff", "--json"], &fixture("snap")).survives(SOME);
}

#[test]
fn any_call_may_fail_while_events_are_counted_and_listed() {
    Question::new(&["stats", "count", "--json"], &fixture("snap")).survives(ALL);
    Question::new(&["dump"], &fixture("snap")).survives(SOME);
}

#[test]
fn any_call_may_fail_while_it_is_told_what_is_there() {
    Question::new(&["info", "--json"], &fixture("split-files")).survives(ALL);
    Question::new(&["info", "--full", "--json"], &fixture("snap")).survives(SOME);
}

#[test]
fn any_call_may_fail_while_patterns_are_mined() {
    Question::new(&["anomalies", "--json"], &fixture("snap")).survives(ALL);
}

#[test]
fn any_call_may_fail_while_the_state_history_is_asked() {
    Question::new(&["query", "--json", "--attribute", "cpus/*/thread"], &fixture("snap")).survives(SOME);
}

#[test]
fn any_call_may_fail_while_functions_get_their_names() {
    let folder = fixture("lock-contention");
    let (bin, tasks) = (folder.join("bin"), "wait=read,thread=worker");
    Question::new(&["explain", "--json", "--task", tasks, "--symbols", bin.to_str().unwrap()], &folder).survives(4);
}

#[test]
fn any_call_may_fail_over_the_formats_of_other_tools() {
    for file in ["v6.dat", "v7.dat", "zstd.data", "dir.data", "pipe.data"] {
        Question::new(&["stats", "count", "--json"], &recorder(file)).survives(SOME);
    }
    Question::new(&["explain", "--json"], &recorder("v7.dat")).survives(SOME);
}

#[test]
fn any_call_may_fail_over_the_archive_of_a_run() {
    for words in [&["anomalies", "--json"][..], &["info", "--json"]] {
        Question::new(words, &archive()).survives(SOME);
    }
}

#[test]
fn any_call_may_fail_over_a_database() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("a.whyslow");
    assert!(ask::run(whyslow(["build", "-o"]).arg(&database).arg(fixture("snap"))).status.success());
    for words in [&["explain", "--json"][..], &["info", "--json"]] {
        Question::new(words, &database).survives(ALL);
    }
}

/// Some of the 18,000 allocations of a whole analysis, each of which is a run of its own: all of them take an hour.
#[test]
fn any_allocation_may_fail() {
    Question::new(&["explain", "--json"], &fixture("snap")).survives_without_memory(60);
    Question::new(&["anomalies", "--json"], &archive()).survives_without_memory(30);
}

/// All 1,400 of a small command: opening, the schema or the header, decoding or unpacking, and writing.
#[test]
fn every_allocation_of_a_small_command_may_fail() {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/interop/barectf/trace");
    Question::new(&["dump"], &trace).survives_without_memory(ALL);
    Question::new(&["stats", "count", "--json"], &recorder("zstd.data")).survives_without_memory(ALL);
}

/// The interface is up and at work when memory runs out: the terminal is as it was, and the line stands on the shell's screen.
#[test]
fn without_memory_the_interface_gives_the_terminal_back() {
    let mut desk = Desk::new(100, 24);
    let settings = |desk: &mut Desk, name: &str| {
        desk.send(&format!("stty -g > {name}; echo {name} wri''tten\r"));
        desk.wait(&format!("{name} written"));
        std::fs::read_to_string(desk.folder.path().join(name)).unwrap()
    };
    let before = settings(&mut desk, "before");
    let (program, trace) = (env!("CARGO_BIN_EXE_whyslow"), fixture("snap"));
    desk.send(&format!(
        "clear; LD_PRELOAD={} FAIL_ALLOCATION=9000 {program} --theme dark {}; echo ended with $?.\r",
        shim().display(),
        trace.display()
    ));
    desk.wait("out of memory");
    desk.wait("ended with 1.");
    // It had taken the screen over.
    assert!(*desk.read.lock().unwrap() > 500 && !desk.is_alternate());
    assert_eq!(settings(&mut desk, "after"), before);
}

#[test]
#[ignore = "takes an hour: each allocation of a command, one after the other"]
fn every_allocation_may_fail() {
    Question::new(&["explain", "--json"], &fixture("snap")).survives_without_memory(ALL);
}

/// Whatever is asked about a name, it may stand for something else when it is opened: a pipe takes the place of a stream, its
/// index or the metadata right before each opening of a file, and nobody waits for who might write into it.
#[test]
fn a_file_that_becomes_a_pipe_in_between_is_a_notice() {
    for name in ["kernel/k_0", "kernel/index/k_0.idx", "kernel/metadata"] {
        let (mut last, mut answers) = (0, 0);
        for n in 1.. {
            let folder = tempfile::tempdir().unwrap();
            let trace = folder.path().join("t");
            ask::copy(&fixture("lost-events"), &trace);
            let mut opened = 0;
            let question = Question::new(&["stats", "count", "--json"], &trace);
            let out = tracer::run(&mut question.command(), &mut |call| {
                opened += usize::from(KINDS[0].calls.contains(&call.number));
                if opened == n && last < n {
                    last = n;
                    ask::pipe(&trace.join(name));
                }
                Verdict::Go
            });
            // The others are there in any case.
            assert!(out.status.success(), "{name} at opening {n}: {:?}: {}", out.status, said(&out));
            answers += usize::from(warnings(&out.stdout).is_some_and(|all| !all.is_empty()));
            if opened < n {
                break;
            }
        }
        assert!(last > 10 && answers > 3, "{name}: {last} openings, {answers} warnings");
    }
}

/// A folder in which databases are built, one of another recording perhaps being there already.
struct Shelf {
    folder: tempfile::TempDir,
    old: Vec<u8>,
    new: Vec<u8>,
    /// The folder's file system has no files without names.
    plain_names: bool,
}

impl Shelf {
    fn new(plain_names: bool) -> Shelf {
        let folder = tempfile::tempdir().unwrap();
        let built = |trace: &str| {
            let path = folder.path().join("built");
            let out = ask::run(whyslow(["build", "-o"]).arg(&path).arg(fixture(trace)));
            assert!(out.status.success(), "{}", said(&out));
            let bytes = std::fs::read(&path).unwrap();
            std::fs::remove_file(path).unwrap();
            bytes
        };
        let (old, new) = (built("split-files"), built("snap"));
        assert_ne!(old, new);
        Shelf { folder, old, new, plain_names }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("a.whyslow")
    }

    fn build(&self, replaces: bool, mut judge: impl FnMut(&Call) -> Verdict) -> Output {
        std::fs::remove_file(self.path()).ok();
        if replaces {
            std::fs::write(self.path(), &self.old).unwrap();
        }
        let question = Question::new(&["build", "-o", self.path().to_str().unwrap()], &fixture("snap"));
        tracer::run(&mut question.command(), &mut |call| {
            let nameless =
                call.number == libc::SYS_openat && call.arguments[2] as i32 & libc::O_TMPFILE == libc::O_TMPFILE;
            if self.plain_names && nameless { Verdict::Fail(libc::EOPNOTSUPP) } else { judge(call) }
        })
    }

    /// What stands there is whole; whether it is the new one.
    fn is_whole(&self, replaced: bool, when: &str) -> bool {
        match std::fs::read(self.path()) {
            Ok(bytes) if bytes == self.new => true,
            Ok(bytes) => {
                assert!(replaced && bytes == self.old, "{when}: half a database, {} bytes", bytes.len());
                false
            }
            Err(_) => {
                assert!(!replaced, "{when}: the old database is gone");
                false
            }
        }
    }

    fn names(&self) -> Vec<OsString> {
        let mut names: Vec<_> =
            std::fs::read_dir(self.folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    }
}

/// Both ways of writing, to a new name and in another's place.
const WAYS: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];

#[test]
fn a_build_that_is_killed_at_any_call_leaves_the_old_or_the_new() {
    for (plain_names, replaces) in WAYS {
        let shelf = Shelf::new(plain_names);
        let (mut calls, mut new) = (0, 0);
        for n in 1.. {
            let mut seen = 0;
            let out = shelf.build(replaces, |_| {
                seen += 1;
                if seen == n { Verdict::Kill } else { Verdict::Go }
            });
            new += usize::from(shelf.is_whole(replaces, &format!("killed at call {n}")));
            assert!(shelf.names().len() <= 2, "call {n}: {:?}", shelf.names());
            if seen < n {
                assert!(out.status.success(), "{}", said(&out));
                break;
            }
            calls = n;
        }
        println!(
            "names {plain_names}, replaces {replaces}: killed at {calls} calls, {new} times the new one was there"
        );
        assert!(calls > 50 && (1..calls / 2).contains(&new), "{calls} calls, {new} new");
        // The last build, which went through, removed what the ones before it left.
        assert_eq!(shelf.names(), ["a.whyslow"]);
    }
}

/// Signals that can be caught leave nothing at all, also where files have names from the start.
#[test]
fn a_build_that_is_ended_by_a_signal_leaves_nothing_beside_the_database() {
    for (signal, (plain_names, replaces)) in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP].into_iter().cycle().zip(WAYS) {
        let shelf = Shelf::new(plain_names);
        // Counted from the first call of those that write the file: the signal's own pair of sockets is made before.
        for n in 1.. {
            let (mut writes, mut seen) = (false, 0);
            let out = shelf.build(replaces, |call| {
                writes |= call.number == libc::SYS_socketpair;
                seen += usize::from(writes);
                if writes && seen == n { Verdict::Signal(signal) } else { Verdict::Go }
            });
            let when = format!("signal {signal} at call {n}");
            shelf.is_whole(replaces, &when);
            let beside: Vec<_> = shelf.names().into_iter().filter(|n| *n != "a.whyslow").collect();
            assert!(beside.is_empty(), "{when}: {beside:?} is left, {:?}", out.status);
            if seen < n {
                assert!(n > 10, "{n} calls");
                break;
            }
        }
    }
}

#[test]
fn a_build_whose_calls_fail_leaves_the_old_or_the_new() {
    for (plain_names, replaces) in WAYS {
        let shelf = Shelf::new(plain_names);
        for kind in &KINDS {
            for n in 1.. {
                let mut seen = 0;
                let out = shelf.build(replaces, |call| {
                    seen += usize::from(kind.calls.contains(&call.number));
                    if seen == n && kind.calls.contains(&call.number) {
                        Verdict::Fail(kind.errors[n % kind.errors.len()])
                    } else {
                        Verdict::Go
                    }
                });
                if seen < n {
                    break;
                }
                let when = format!("{} {n}", kind.name);
                // Whoever could not read all says so, and the database does as well.
                let new = said(&out).contains("note: ") || shelf.is_whole(replaces, &when);
                match out.status.code() {
                    // A build that says nothing has written all, or has told in the database what is missing.
                    Some(0) => {
                        assert!(new || said(&out).contains("note: "), "{when}: another database, and not a word")
                    }
                    Some(1) => assert_eq!(said(&out).lines().count(), 1, "{when}: {}", said(&out)),
                    _ => panic!("{when}: {:?}: {}", out.status, said(&out)),
                }
                let beside: Vec<_> = shelf.names().into_iter().filter(|n| *n != "a.whyslow").collect();
                // Only who cannot remove it leaves it.
                assert!(beside.is_empty() || kind.name == "rename", "{when}: {beside:?} is left");
            }
        }
    }
}
