//! Within `--memory` the program holds no more memory of its own than the limit: the interface, whose jobs follow each
//! other in one process, and, where the corpus is there, long recordings of each format. Pages of mapped recordings are
//! the system's, and do not count.

use crate::support::{ask, corpus, pty_shell, repeated};
use pty_shell::PtyShell;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Bytes of its own that a process holds; `None` where there is no such process.
fn held(pid: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?.trim().strip_suffix(" kB")?;
    Some(kib.parse::<u64>().unwrap() << 10)
}

/// The most bytes that a process holds while something is done.
fn most_held<T>(pid: impl Fn() -> String + Sync, done: impl FnOnce() -> T) -> (T, u64) {
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = || {
            let mut most = 0;
            while !has_ended.load(Ordering::Relaxed) {
                most = most.max(held(&pid()).unwrap_or(0));
                std::thread::sleep(Duration::from_millis(1));
            }
            most
        };
        let watcher = scope.spawn(watch);
        let result = done();
        has_ended.store(true, Ordering::Relaxed);
        (result, watcher.join().unwrap())
    })
}

/// Nothing more comes to the screen: what shows that work goes on moves.
fn until_still(shell: &PtyShell) {
    let (mut since, mut before) = (Instant::now(), 0);
    while since.elapsed() < Duration::from_millis(800) {
        let now = *shell.read.lock().unwrap();
        if now != before {
            (since, before) = (Instant::now(), now);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Open a recording in the interface within a limit, and ask for all that it has. Returns the most bytes held.
fn asked_in_the_interface(path: &Path, limit: u64) -> u64 {
    let mut shell = PtyShell::new(120, 40);
    let pid = shell.folder.path().join("pid");
    let pid_now = || std::fs::read_to_string(&pid).unwrap_or_default().trim().to_owned();
    let words = format!("{} --memory {limit} --threads 2 {}", ask::PROGRAM, path.display());
    let ((), most) = most_held(pid_now, || {
        shell.send(&format!("clear; sh -c 'echo $$ > {}; exec {words}'\r", pid.display()));
        shell.wait("2 Flame tree");
        until_still(&shell);
        // Patterns with their propagation, the recording at a glance, the tasks, and the groups anew.
        for key in ["3", "4", "r", "\x1b", "T", "\x1b", "2"] {
            shell.send(key);
            until_still(&shell);
            let page = shell.contents();
            assert!(!page.contains("--memory") && !page.contains("limit to"), "{key:?}: {page}");
        }
        shell.send("q");
        shell.until("shell", |d| !d.is_alternate());
    });
    most
}

#[test]
fn the_interface_obeys_a_limit_from_question_to_question() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v6.dat");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recorders/v6.dat");
    std::fs::write(&path, repeated::trace_dat(&std::fs::read(fixture).unwrap(), 12 << 20)).unwrap();
    let free = asked_in_the_interface(&path, 4 << 30);
    let limit = 24 << 20;
    assert!(free > limit, "{free} bytes without a limit: this one does not matter");
    let most = asked_in_the_interface(&path, limit);
    println!("{free} bytes are held without a limit, {most} within {limit}");
    assert!(most <= limit, "{most} bytes are held within {limit}");
}

/// What a command wrote, the most bytes that it held, and its seconds.
fn measured(words: &[&str], path: &Path, limit: Option<u64>) -> (Output, u64, f64) {
    let mut command = Command::new(ask::PROGRAM);
    command.args(words).args(["--threads", "2"]);
    if let Some(limit) = limit {
        command.args(["--memory", &limit.to_string()]);
    }
    let started = Instant::now();
    let child = command.arg(path).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id().to_string();
    let (out, most) = most_held(|| pid.clone(), || ask::finish(child, &words.join(" ")));
    (out, most, started.elapsed().as_secs_f64())
}

/// The recordings of the corpus, each repeated to this many bytes.
fn long_recordings(folder: &Path, bytes: usize) -> impl Iterator<Item = PathBuf> {
    let all = [
        ("cs1-cpu-contention/tracecmd/trace.dat", repeated::trace_dat as fn(&[u8], usize) -> Vec<u8>),
        ("cs3-lock-contention/perf/perf.data", repeated::perf_data),
    ];
    let folder = folder.to_owned();
    all.into_iter().map(move |(name, repeat)| {
        let path = folder.join(name.rsplit('/').next().unwrap());
        std::fs::write(&path, repeat(&std::fs::read(corpus::corpus("kernel").join(name)).unwrap(), bytes)).unwrap();
        path
    })
}

/// Prints what each command holds within each limit. `WHYSLOW_MEGABYTES` makes other sizes, `WHYSLOW_RECORDING` names
/// one recording instead.
#[test]
#[ignore = "needs target/corpus, a disk with room for its repetitions, and minutes"]
fn long_recordings_obey_every_limit() {
    let megabytes = std::env::var("WHYSLOW_MEGABYTES").map_or(1000, |text| text.parse::<usize>().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let named = std::env::var_os("WHYSLOW_RECORDING").map(PathBuf::from);
    let generated = named.is_none().then(|| long_recordings(folder.path(), megabytes * 1_000_000));
    let mut wrong = Vec::new();
    for path in named.iter().cloned().chain(generated.into_iter().flatten()) {
        for words in [
            &["explain", "--json"][..],
            &["anomalies", "--json"],
            &["query", "--json", "--attribute", "threads/*/state", "--longest", "10"],
            &["info", "--json"],
        ] {
            wrong.extend(passed_limits(words, &path));
        }
        if named.is_none() {
            std::fs::remove_file(&path).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Print what a command holds within each limit, and return what is wrong of it.
fn passed_limits(words: &[&str], path: &Path) -> Vec<String> {
    let name = format!("{} {}", words[0], path.file_name().unwrap().to_string_lossy());
    println!("\n{name}");
    let (whole, most, seconds) = measured(words, path, None);
    println!("| no limit | {} MiB | {seconds:.1} s | {} |", most >> 20, whole.status.code().unwrap_or(-1));
    let (mut works, mut wrong) = (false, Vec::new());
    for limit in [96, 128, 192, 256, 384, 512, 768, 1024].map(|mebibytes| mebibytes << 20) {
        let (out, most, seconds) = measured(words, path, Some(limit));
        let said = ask::said(&out);
        println!("| {} MiB | {} MiB | {seconds:.1} s | {} |", limit >> 20, most >> 20, said.trim());
        let is_right = match out.status.success() {
            true => out.stdout == whole.stdout,
            false => !works && said.lines().count() == 1 && out.stdout.is_empty(),
        };
        works |= out.status.success();
        if most > limit || !is_right {
            wrong.push(format!("{name} within {} MiB: {} MiB, {}", limit >> 20, most >> 20, said.trim()));
        }
    }
    wrong
}
