//! Without memory there is one line and exit status 1, never a signal: under every limit of the address space from too
//! small to begin to large enough to answer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/ask.rs"]
mod ask;

use ask::{fixture, run, said};
use std::process::Command;

#[test]
#[ignore = "not yet seen to pass up to the largest limit"]
fn every_limit_of_the_address_space_has_an_answer() {
    let mut answered = 0;
    let mut lines = 0;
    for words in [&["explain", "--threads", "1"][..], &["info", "--threads", "2"]] {
        let mut mebibytes = 24;
        while mebibytes < 400 {
            let mut command = Command::new("sh");
            let limited = format!("ulimit -v {}; exec \"$@\"", mebibytes * 1024);
            command.args(["-c", &limited, "sh", env!("CARGO_BIN_EXE_whyslow")]).args(words);
            let out = run(command.arg(fixture("lock-contention")));
            let said = said(&out);
            match out.status.code() {
                Some(0) => answered += 1,
                // The loader and the threads that the runtime starts have their own words for it.
                Some(127) => {}
                Some(1) => {
                    assert!(said.lines().any(|l| l.starts_with("whyslow: ")), "{mebibytes} MiB: {said}");
                    lines += usize::from(said.contains("out of memory"));
                }
                other => panic!("{words:?} with {mebibytes} MiB ends with {other:?} ({:?}): {said}", out.status),
            }
            assert!(!said.contains("panicked") && !said.contains("memory allocation"), "{mebibytes} MiB: {said}");
            mebibytes += mebibytes / 5 + 1;
        }
    }
    assert!(answered > 0 && lines > 0, "{answered} answers, {lines} lines");
}
