//! Whole commands print the same bytes.

use super::*;

/// A command's output and exit status.
fn printed(words: &[&str], trace: &Path, more: &[&str]) -> (Option<i32>, Vec<u8>, Vec<u8>) {
    let mut command = ask::program();
    let out = ask::run(command.args(words).arg(trace).args(more));
    (out.status.code(), out.stdout, out.stderr)
}

/// One command on one trace in several ways; what it prints and how it ends.
fn prints_the_same(trace: &Path, words: &[&str]) -> (Option<i32>, Vec<u8>, Vec<u8>) {
    let bin = trace.join("bin");
    let symbols = ["--symbols", bin.to_str().unwrap()];
    let places: &[&str] = if bin.exists() && matches!(words[0], "diff" | "explain") { &symbols } else { &[] };
    let with = |threads: &str, chunk: &[&str]| {
        let more: Vec<&str> = ["--threads", threads].iter().chain(chunk).chain(places).copied().collect();
        printed(words, trace, &more)
    };
    let want = with("1", &["--chunk", "1000000000"]);
    let name = trace.display();
    for (threads, chunk) in [("1", "0"), ("2", "65536"), ("3", "0"), ("7", "1048576")] {
        assert!(with(threads, &["--chunk", chunk]) == want, "{name} {words:?}: {threads} workers, chunks of {chunk}");
    }
    assert!(with("2", &[]) == want, "{name} {words:?}: two workers, balanced chunks");
    for (threads, leaves) in [("1", "0"), ("2", "40000"), ("3", "0"), ("7", "4000")] {
        let found = with(threads, &["--leaf-memory", leaves]);
        assert!(found == want, "{name} {words:?}: {threads} workers, {leaves} bytes of leaves");
    }
    want
}

const STATES: [&str; 5] = ["query", "--json", "--attribute", "threads/*/state", "--points=50"];

const SLOWEST: [&str; 5] = ["query", "--json", "--attribute", "threads/*/syscall", "--longest=20"];

#[test]
fn commands_print_the_same_bytes_of_fixtures() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces");
    let accepted = "begin=syscall_exit_accept4,end=syscall_entry_shutdown";
    let cases: [(&str, &[&str]); 12] = [
        ("lock-contention", &["diff", "--json"]),
        ("lock-contention", &["explain", "--json", "--task", "client:call"]),
        ("lock-contention", &["anomalies", "--json"]),
        ("cpu-contention", &["explain", "--json"]),
        ("cpu-contention", &["stats", "cpu", "--json"]),
        ("cpu-contention", &STATES),
        ("disk-contention", &["diff", "--json", "--task", accepted]),
        ("disk-contention", &["stats", "io", "--json"]),
        ("disk-contention", &SLOWEST),
        ("lost-events", &["info", "--full", "--json"]),
        ("rotated", &["stats", "count", "--json"]),
        ("split-files", &["dump"]),
    ];
    for (name, words) in cases {
        let (status, _, said) = prints_the_same(&folder.join(name), words);
        assert_eq!(status, Some(0), "{name} {words:?}: {}", String::from_utf8_lossy(&said));
    }
}

#[test]
fn commands_print_the_same_bytes_of_generated_and_damaged_recordings() {
    let commands: [&[&str]; 9] = [
        &["explain", "--json"],
        &["explain", "--json", "--task", "futex"],
        &["anomalies", "--json"],
        &["stats", "cpu", "--json"],
        &["stats", "io", "--json"],
        &["stats", "count", "--json"],
        &["info", "--full", "--json"],
        &["dump", "--canonical"],
        &STATES,
    ];
    let damaged = place("commands-damaged");
    let _ = std::fs::remove_dir_all(&damaged);
    mutated(&damaged, 4711);
    let traces = [
        schedule::ctf::write(&place("commands-whole"), 61, 1200, false),
        schedule::ctf::write(&place("commands-with-losses"), 62, 1200, true),
        damaged,
    ];
    for trace in &traces {
        let ended = commands.map(|words| prints_the_same(trace, words).0 == Some(0));
        // Not all traces have system calls, but most commands find something.
        assert!(ended.iter().filter(|ended| **ended).count() > 6, "{}: {ended:?}", trace.display());
    }
}
