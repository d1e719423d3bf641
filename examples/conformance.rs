//! Write the conformance suite of critical paths as CTF traces, to hold another tool against it (docs/CONFORMANCE.md).
//!
//!     cargo run --example conformance -- FOLDER
//!
//! FOLDER/GROUP/CASE then has a directory for each host, and `expected.tsv`: the segments of each path.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../tests/support"]
mod support {
    pub mod conformance;
    pub mod ctf_writer;
    pub mod random;
}

use std::fmt::Write as _;
use std::path::Path;
use support::conformance::{self, Case, START};

/// One line a segment: which path, and kind, host, thread, begin and end in nanoseconds on the clock of the traces.
fn expected(case: &Case) -> String {
    let mut text = String::from("path\tkind\thost\ttid\tbegin_ns\tend_ns\n");
    for path in &case.paths {
        for s in &path.segments {
            let (from, to) = (START + s.from * case.unit, START + s.to * case.unit);
            writeln!(text, "{}/{}\t{}\t{}\t{}\t{from}\t{to}", path.host, path.tid, s.kind, s.host, s.tid).unwrap();
        }
    }
    text
}

fn main() {
    let Some(folder) = std::env::args_os().nth(1) else {
        eprintln!("usage: conformance FOLDER");
        std::process::exit(2);
    };
    let cases = conformance::all();
    for case in &cases {
        let own = Path::new(&folder).join(&case.name);
        case.write(&own);
        std::fs::write(own.join("expected.tsv"), expected(case)).unwrap();
    }
    println!("{} cases written to {}", cases.len(), Path::new(&folder).display());
}
