//! The process gives up the rights that it does not need: it reads only the named files and those that belong to them,
//! writes only the named outputs, opens no socket and runs no program; its answers are the same without the sandbox.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(unsafe_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support {
    pub mod ask;
    pub mod pty_shell;
    pub mod tracer;
}

use ask::{copy, fixture, run, said, whyslow};
use pty_shell::PtyShell;
use std::collections::BTreeSet;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use support::{ask, pty_shell, tracer};
use tracer::{Call, Verdict};

fn archive() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/archives/late_sender/trace/traces.otf2")
}

fn recorder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recorders").join(name)
}

/// True if the kernel supports the sandbox; otherwise the timings say that it does not.
fn is_confined() -> bool {
    let out = run(whyslow(["info", "--timings"]).arg(fixture("snap")));
    let free = said(&out).contains("note: without a sandbox: ");
    println!("confined: {}", !free);
    !free
}

#[test]
fn sandbox_changes_no_answer() {
    let database = tempfile::tempdir().unwrap();
    let database = database.path().join("a.whyslow");
    assert!(run(whyslow(["build", "-o"]).arg(&database).arg(fixture("snap"))).status.success());
    let questions: [(&[&str], PathBuf); 10] = [
        (&["explain", "--json"], fixture("snap")),
        (&["diff", "--json"], fixture("snap")),
        (&["anomalies", "--json"], fixture("snap")),
        (&["info", "--full", "--json"], fixture("split-files")),
        (&["stats", "cpu", "--json"], fixture("snap")),
        (&["query", "--json", "--attribute", "cpus/*/thread"], fixture("snap")),
        (&["dump"], recorder("zstd.data")),
        (&["stats", "count", "--json"], recorder("v7.dat")),
        (&["anomalies", "--json"], archive()),
        (&["explain", "--json"], database),
    ];
    for (words, input) in questions {
        let confined = run(whyslow(words).arg(&input));
        let free = run(whyslow(words).arg("--no-sandbox").arg(&input));
        assert!(confined.status.success(), "{words:?}: {}", said(&confined));
        assert_eq!((&confined.stdout, &confined.stderr), (&free.stdout, &free.stderr), "{words:?}");
    }
}

/// A trace of unknown origin refers to a file that the user never named.
#[test]
fn sandbox_denies_files_that_are_not_named() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, outside) = (folder.path().join("trace"), folder.path().join("outside"));
    copy(&fixture("lost-events"), &trace);
    std::fs::rename(trace.join("kernel/k_0"), &outside).unwrap();
    symlink(&outside, trace.join("kernel/k_0")).unwrap();
    for threads in ["1", "2"] {
        let ask = |option: Option<&str>| {
            let words = ["stats", "count", "--json", "--threads", threads].into_iter().chain(option);
            let out = run(whyslow(words).arg(&trace));
            assert!(out.status.success(), "{}", said(&out));
            String::from_utf8(out.stdout).unwrap()
        };
        let refused = |answer: &str| answer.contains("k_0: Permission denied");
        assert!(!refused(&ask(Some("--no-sandbox"))));
        assert_eq!(refused(&ask(None)), is_confined());
    }
    // Named, it is read.
    let kernel = run(whyslow(["stats", "count", "--json"]).arg(&trace).arg(folder.path()));
    assert!(!String::from_utf8_lossy(&kernel.stdout).contains("Permission denied"), "{}", said(&kernel));
}

/// Calls by which a process reaches beyond itself. A pair of connected sockets does not: signals wake the interface by
/// one.
const OUTWARD: [i64; 9] = [
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_ptrace,
];

/// The call, if it reaches beyond the process; making a thread does not, making a process does.
fn outward(call: &Call) -> Option<i64> {
    let flags = call.arguments[0] as i32;
    let makes_process = call.number == libc::SYS_clone && flags & libc::CLONE_THREAD == 0;
    (OUTWARD.contains(&call.number) || makes_process).then_some(call.number)
}

#[test]
fn commands_open_no_socket_and_run_no_program() {
    let output = tempfile::tempdir().unwrap();
    let database = output.path().join("a.whyslow");
    let database = database.to_str().unwrap();
    let questions: [(&[&str], PathBuf); 9] = [
        (&["build", "-o", database], fixture("snap")),
        (&["explain"], fixture("snap")),
        (&["diff"], fixture("snap")),
        (&["anomalies"], fixture("snap")),
        (&["info", "--full"], fixture("split-files")),
        (&["stats", "io"], fixture("snap")),
        (&["query", "--attribute", "cpus/*/thread"], fixture("snap")),
        (&["dump"], recorder("zstd.data")),
        (&["anomalies"], archive()),
    ];
    for (words, input) in questions {
        // Also with what the sandbox would refuse.
        for option in [None, Some("--no-sandbox")] {
            let (mut reached, mut calls) = (BTreeSet::new(), 0);
            let mut judge = |call: &Call| {
                calls += 1;
                reached.extend(outward(call));
                Verdict::Go
            };
            let out = tracer::run(whyslow(words.iter().copied().chain(option)).arg(&input), &mut judge);
            assert!(out.status.success() && calls > 50, "{words:?}, {calls} calls: {}", said(&out));
            assert!(reached.is_empty(), "{words:?} makes the calls {reached:?}");
        }
    }
}

/// Keys that visit every pane, the overlays, the clipboard, the export, and a stop by the terminal.
#[test]
fn interface_opens_no_socket_and_runs_no_program() {
    use portable_pty::{PtySize, native_pty_system};
    use std::io::{Read, Write};
    let pty = native_pty_system().openpty(PtySize { rows: 40, cols: 120, pixel_width: 0, pixel_height: 0 }).unwrap();
    let tty = pty.master.tty_name().unwrap();
    let open = || std::fs::File::options().read(true).write(true).open(&tty).unwrap();
    let mut reader = pty.master.try_clone_reader().unwrap();
    let mut keys = pty.master.take_writer().unwrap();
    let typing = std::thread::spawn(move || {
        let mut shown = Vec::new();
        let mut bytes = [0; 4096];
        let (mut typed, mut panes) = (0, ["1", "2", "3", "4", "t", "\x1b", "?", "\x1b", "y", "\x1b", "q"].into_iter());
        // Each picture is answered by the next key.
        while let Ok(n @ 1..) = reader.read(&mut bytes) {
            shown.extend(&bytes[..n]);
            if String::from_utf8_lossy(&shown).contains("Sleeping") {
                std::thread::sleep(std::time::Duration::from_millis(100));
                if let Some(key) = panes.next() {
                    keys.write_all(key.as_bytes()).unwrap();
                    typed += 1;
                }
            }
        }
        typed
    });
    let folder = tempfile::tempdir().unwrap();
    let mut reached = BTreeSet::new();
    let mut command = whyslow(["--threads", "2"]);
    command.arg(fixture("snap")).stdin(open()).stdout(open()).stderr(open()).current_dir(folder.path());
    command.env("TERM", "xterm-256color").env("COLORTERM", "");
    // SAFETY: plain system calls between fork and exec: the pty becomes the controlling terminal of a session of its
    // own.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            libc::ioctl(0, libc::TIOCSCTTY, 0);
            Ok(())
        });
    }
    let status = tracer::watch(&mut command, &mut |call| {
        reached.extend(outward(call));
        Verdict::Go
    });
    drop(command);
    drop(pty);
    assert!(status.success(), "{status:?}");
    assert!(typing.join().unwrap() >= 10);
    assert!(reached.is_empty(), "the interface makes the calls {reached:?}");
}

#[test]
fn interface_writes_into_the_current_folder_alone() {
    if !is_confined() {
        // Without a sandbox every folder may be written to; `is_confined` has checked the program's own report.
        return;
    }
    // However long the path and however narrow the screen, the remedy is to be seen.
    let other = Path::new(env!("CARGO_TARGET_TMPDIR")).join("a-folder-that-is-not-for-export".repeat(4));
    std::fs::create_dir_all(&other).unwrap();
    std::fs::remove_file(other.join("a.json")).ok();
    let mut shell = PtyShell::new(80, 24);
    let trace = fixture("snap");
    // The temporary folder may be written to as well: it must not be one that holds `other`.
    shell.send(&format!("clear; TMPDIR=$PWD {} {}\r", ask::PROGRAM, trace.display()));
    shell.wait("Sleeping");
    let export = |shell: &mut PtyShell, path: &str, answer: &str| {
        shell.send("e");
        shell.wait("export");
        // The proposed name is deleted.
        shell.send("\x15");
        shell.send(&"\x7f".repeat(60));
        shell.send(&format!("{path}\r"));
        shell.wait(answer);
    };
    export(&mut shell, &format!("{}/a.json", other.display()), "--no-sandbox");
    shell.send("\x1b");
    // A key right behind it would be taken for one with Alt.
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(!other.join("a.json").exists());
    // No more than an empty file could be made below the current folder.
    let (below, file) = (shell.folder.path().join("below"), shell.folder.path().join("c.json"));
    std::fs::create_dir(&below).unwrap();
    export(&mut shell, "below/a.json", "--no-sandbox");
    shell.send("\x1b");
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(std::fs::read_dir(&below).unwrap().count(), 0);
    export(&mut shell, "b.json", "b.json");
    // While a file is being written none is asked for.
    shell.wait("b.json written");
    assert!(std::fs::metadata(shell.folder.path().join("b.json")).is_ok_and(|about| about.len() > 100));
    // What takes another's place gives no user more rights than that.
    for mode in [0o600, 0o644] {
        std::fs::write(&file, "older").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        export(&mut shell, "c.json", "Overwrite it?");
        shell.send("y");
        shell.wait("c.json written");
        assert!(std::fs::metadata(&file).is_ok_and(|about| about.len() > 100));
        let given = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        assert!(given & !mode == 0 && given & 0o600 == 0o600, "{mode:o}: {given:o}");
    }
    shell.send("q");
    shell.until("shell", |d| !d.is_alternate());
    assert!(ask::files(shell.folder.path()).iter().all(|path| !path.to_string_lossy().contains("/.whyslow-")));
}

/// What hostile code can do in the interface, which writes after the sandbox has begun.
#[test]
fn code_of_a_hostile_file_changes_nothing_in_the_interface() {
    if !is_confined() {
        return;
    }
    let mut shell = PtyShell::new(80, 24);
    let folder = shell.folder.path().to_owned();
    let (victim, lines) = (folder.join("victim"), folder.join("lines"));
    std::fs::write(&victim, "precious").unwrap();
    std::fs::hard_link(&victim, folder.join("kept")).unwrap();
    let environment = format!("LD_PRELOAD={} PROBE_AT=metadata PROBE_VICTIM={}", probe().display(), victim.display());
    let command = format!("{} {} 2> {}", ask::PROGRAM, fixture("snap").display(), lines.display());
    shell.send(&format!("clear; env {environment} {command}; echo ended $?\r"));
    shell.wait("ended 7");
    let lines = std::fs::read_to_string(lines).unwrap();
    assert!(lines.lines().count() > 45, "{lines}");
    // It may read the folder of its exports, and take names from files there.
    let allowed: Vec<&str> = lines.lines().filter(|line| line.ends_with("ALLOWED")).collect();
    assert_eq!(allowed, ["read the file: ALLOWED", "unlink: ALLOWED"], "{lines}");
    assert_eq!(std::fs::read(folder.join("kept")).unwrap(), b"precious");
    assert_eq!(std::fs::read(folder.join("made")).unwrap_or_default(), b"");
}

/// The library that tries from inside what the process should not be able to do, built once.
fn probe() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/probe.rs");
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("probe-{}.so", std::process::id()));
        let mut rustc = Command::new("rustc");
        rustc.args(["--edition", "2024", "--crate-type", "cdylib", "-C", "panic=abort", "-o"]);
        let out = rustc.arg(&library).arg(source).output().unwrap();
        assert!(out.status.success(), "{}", said(&out));
        library
    })
}

/// What hostile code can do where the sandbox is in force, as a user and as root.
#[test]
fn code_of_a_hostile_file_has_no_rights() {
    if !is_confined() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (outputs, victim) = (folder.path().join("outputs"), folder.path().join("outputs/victim"));
    std::fs::create_dir(&outputs).unwrap();
    let report = outputs.join("a.md");
    // Otherwise programs could be anywhere, in the temporary folder as well.
    let programs = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/traces");
    let commands: [(&[&str], PathBuf, &str); 3] = [
        (&["dump"], recorder("zstd.data"), "zstd.data"),
        (&["stats", "count"], recorder("v7.dat"), "v7.dat"),
        (&["report", "--symbols-only", programs, "-o", report.to_str().unwrap()], fixture("snap"), "metadata"),
    ];
    for (words, input, at) in commands {
        std::fs::write(&victim, "precious").unwrap();
        let mut command = whyslow(words);
        command.arg(&input).env("LD_PRELOAD", probe()).env("PROBE_AT", at).env("PROBE_VICTIM", &victim);
        let out = run(command.env("TMPDIR", folder.path()));
        let lines = said(&out);
        assert_eq!(out.status.code(), Some(7), "{words:?}: the probe did not run: {lines}");
        let names = ["change rights", "socket", "process", "program", "key ring", "the passwords", "CapEff"];
        assert!(names.iter().all(|name| lines.contains(name)) && lines.lines().count() > 45, "{words:?}: {lines}");
        let allowed: Vec<&str> = lines.lines().filter(|line| line.ends_with("ALLOWED")).collect();
        assert!(allowed.is_empty(), "{words:?}: {allowed:#?}");
        // To read recordings of others, and to put an output into another's folder.
        let kept = if words[0] == "report" { 1 << 2 | 1 << 1 } else { 1 << 2 };
        for line in lines.lines().filter(|line| line.starts_with("Cap")) {
            let sets = u64::from_str_radix(line.split_whitespace().last().unwrap(), 16).unwrap();
            assert_eq!(sets & !kept, 0, "{words:?}: {line}");
        }
        assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
        // A folder in which an output gets its name lets empty files be made, and nothing be put into them.
        let made = std::fs::read(outputs.join("made"));
        assert!(made.as_ref().map_or(words[0] != "report", Vec::is_empty), "{words:?}: {made:?}");
        assert_eq!(std::fs::remove_file(outputs.join("made")).is_ok(), words[0] == "report");
        assert_eq!(ask::files(folder.path()), [victim.as_path()], "{words:?}");
    }
}

/// A database or history that takes another's place while it is opened: the answer is of one of them, whole.
#[test]
fn a_file_that_is_replaced_while_it_is_opened_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for kind in [&["build", "-o"][..], &["build", "--history", "-o"]] {
        for name in ["old", "a"] {
            std::fs::remove_file(path(name)).ok();
        }
        for (name, trace) in [("old", "split-files"), ("new", "snap")] {
            assert!(run(whyslow(kind).arg(path(name)).arg(fixture(trace))).status.success());
        }
        let ask = |name: &str| run(whyslow(["info", "--json"]).arg(path(name)));
        std::fs::copy(path("old"), path("a")).unwrap();
        let old = ask("a");
        let mut replaced = 0;
        let mut judge = |call: &Call| {
            if call.number == RESTRICT {
                replaced += 1;
                std::fs::rename(path("new"), path("a")).unwrap();
            }
            Verdict::Go
        };
        let out = tracer::run(whyslow(["info", "--json"]).arg(path("a")), &mut judge);
        assert!(out.status.success(), "{}", said(&out));
        assert_eq!(replaced, usize::from(is_confined()));
        let text = |out: &std::process::Output| String::from_utf8_lossy(&out.stdout).into_owned();
        assert_eq!(text(&out), text(&old), "neither the old nor the new");
        assert_ne!(text(&ask("a")), text(&old));
    }
}

/// The call by which Landlock begins (`landlock_restrict_self`).
const RESTRICT: i64 = 446;

/// Whenever the process is killed, no unpacked recording stays.
#[test]
fn unpacked_recordings_have_no_name_at_any_call() {
    for name in ["zstd.data", "overwrite.data", "v7.dat"] {
        let temporary = tempfile::tempdir().unwrap();
        let (mut calls, mut named) = (0, BTreeSet::new());
        let mut judge = |_: &Call| {
            calls += 1;
            named.extend(std::fs::read_dir(temporary.path()).unwrap().map(|entry| entry.unwrap().file_name()));
            Verdict::Go
        };
        let mut command = whyslow(["stats", "count"]);
        let out = tracer::run(command.arg(recorder(name)).env("TMPDIR", temporary.path()), &mut judge);
        assert!(out.status.success() && calls > 50, "{name}: {}", said(&out));
        assert!(named.is_empty(), "{name}: {named:?}");
    }
}
