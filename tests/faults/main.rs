//! Any system call and any allocation may fail, and the program may be killed at any moment: it does not crash, does
//! not hang, leaves no half file, and says nothing with confidence that it would not have said.
//!
//! Each command runs once for each call of a kind, or for some of them, evenly spread, which fails in that run; then it
//! is counted as sound if its answer is the one it gives undisturbed, if the answer's `warnings` name something more,
//! or if it ends with exit status 1 and one line. System calls fail through `ptrace`, allocations through a library
//! that is loaded before libc.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod builds;
mod calls;
mod memory;

#[path = "../support"]
mod support {
    pub mod ask;
    pub mod pty_shell;
    pub mod tracer;
}

use ask::{fixture, said, whyslow};
use pty_shell::PtyShell;
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use support::{ask, pty_shell, tracer};
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

/// How an answer is wrong, if it is: compared with the undisturbed answer.
fn unsound(out: &Output, plain: &Output) -> Option<String> {
    let said = said(out);
    let whyslows = said.lines().filter(|l| l.starts_with("whyslow: ")).count();
    match out.status.code() {
        Some(0) if out.stdout == plain.stdout => None,
        Some(0) if names_more(&out.stdout, &plain.stdout) || said.contains("note: ") => None,
        Some(0) => Some(format!("another answer, and no warning: {}", difference(&out.stdout, &plain.stdout))),
        Some(1) if whyslows == 1 && said.lines().count() == 1 => None,
        // A program that cannot write to stderr cannot say why.
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

/// A question, with one worker so that calls have the same order in each run.
struct Question(Vec<OsString>);

impl Question {
    fn new(words: &[&str], input: &Path) -> Question {
        let words = words.iter().copied().chain(["--threads", "1"]).map(OsString::from);
        Question(words.chain([input.as_os_str().to_owned()]).collect())
    }

    fn command(&self) -> Command {
        // The user's own configuration is not part of the question.
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

fn recorder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recorders").join(name)
}

fn archive() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/archives/late_sender/trace/traces.otf2")
}

/// More than any kind of calls has over the small fixtures.
const ALL: usize = 1 << 20;

/// Of the calls of a kind, where not all are tried: a run for each of several hundred takes minutes.
const SOME: usize = 20;

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
