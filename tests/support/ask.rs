//! Runs the built program as a user does, with a limit on its time: a program that hangs is killed and the test fails.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longer than any command of these tests takes, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// The built program. All tests run it through this file (`tests/structure.rs` checks that).
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_whyslow");

/// The program without words.
pub fn program() -> Command {
    let mut command = Command::new(PROGRAM);
    command.stdin(Stdio::null());
    command
}

/// The program with these words.
pub fn whyslow<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> Command {
    let mut command = program();
    command.args(words);
    command
}

/// Run to the end and return what it wrote.
pub fn run(command: &mut Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    finish(child, &format!("{command:?}"))
}

/// Wait for the end of a child whose outputs are pipes.
pub fn finish(mut child: Child, what: &str) -> Output {
    let drain = |pipe: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
            bytes
        })
    };
    let out = drain(child.stdout.take().map(|p| Box::new(p) as _));
    let said = drain(child.stderr.take().map(|p| Box::new(p) as _));
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if began.elapsed() > PATIENCE {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{what} still runs after {PATIENCE:?}: {}", String::from_utf8_lossy(&said.join().unwrap()));
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    Output { status, stdout: out.join().unwrap(), stderr: said.join().unwrap() }
}

/// The output of the program with these words.
pub fn output(words: &[&str]) -> Output {
    run(&mut whyslow(words))
}

/// The output as JSON of the program with these words, which must succeed.
pub fn json(words: &[&str]) -> serde_json::Value {
    let out = output(words);
    assert!(out.status.success(), "{words:?}: {}", said(&out));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// The program ends with `status` and prints nothing; its one line on stderr starts with `whyslow: ` and holds `parts`.
pub fn refuses(words: &[&str], status: i32, parts: &[&str]) {
    let out = output(words);
    let said = said(&out);
    assert_eq!(out.status.code(), Some(status), "{words:?}: {said}");
    assert!(said.starts_with("whyslow: ") && said.lines().count() == 1, "{words:?}: {said}");
    for part in parts {
        assert!(said.contains(part), "{words:?}: no `{part}` in: {said}");
    }
    assert!(out.stdout.is_empty(), "{words:?}: {}", String::from_utf8_lossy(&out.stdout));
}

/// Its stderr.
pub fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

/// A recorded trace of the repository.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces").join(name)
}

/// Copy a folder and all files below it.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target)
        } else {
            std::fs::copy(entry.path(), target).map(drop).unwrap()
        }
    }
}

/// All files below a folder, in order.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    entries.into_iter().flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Make a named pipe.
pub fn pipe(path: &Path) {
    std::fs::remove_file(path).ok();
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}
