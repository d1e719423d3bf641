//! Without memory there is one line and exit status 1, never a signal: under every limit of the address space from too
//! small to begin to large enough to answer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/ask.rs"]
mod ask;

use ask::{fixture, run, said};
use std::process::Command;

/// The program's own code is reached under this limit: the loader and the kernel have their own ways to say that it is too small.
fn begins(mebibytes: u64) -> bool {
    let out = run(limited(mebibytes).arg("--version"));
    matches!(out.status.code(), Some(0 | 1)) && said(&out).lines().all(|l| l.starts_with("whyslow: "))
}

fn limited(mebibytes: u64) -> Command {
    let mut command = Command::new("sh");
    let script = format!("ulimit -v {}; exec \"$@\"", mebibytes * 1024);
    command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_whyslow")]);
    command
}

#[test]
fn every_limit_of_the_address_space_has_an_answer() {
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
            let said = said(&out);
            match out.status.code() {
                Some(0) => answered += 1,
                Some(1) => {
                    let one = said.lines().filter(|l| l.starts_with("whyslow: ")).count();
                    assert_eq!(one, 1, "{words:?} with {mebibytes} MiB: {said}");
                    lines += usize::from(said.contains("out of memory"));
                }
                other => panic!("{words:?} with {mebibytes} MiB ends with {other:?} ({:?}): {said}", out.status),
            }
            assert!(!said.contains("panicked") && !said.contains("memory allocation"), "{mebibytes} MiB: {said}");
            more += more / 5 + 1;
        }
    }
    println!("from {least} MiB: {answered} answers, {lines} lines");
    assert!(answered > 20 && lines > 5, "{answered} answers, {lines} lines");
}
