//! Without memory there is one line and exit status 1, never a signal: under every limit of the address space from too
//! small to begin to large enough to answer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/ask.rs"]
mod ask;

use ask::{fixture, run, said};
use std::process::{Command, Output};

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
