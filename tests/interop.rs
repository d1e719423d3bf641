//! Files of other tools read like their originals: traces by barectf's tracer, traces rewritten by babeltrace2, a
//! recording converted by perf. `fixtures/interop/README.md` says how each was made; no tool is needed here.

use crate::support::ask;
use ask::{fixture, run, said, whyslow};
use std::path::{Path, PathBuf};

fn written(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/interop").join(name)
}

/// A command's output about a trace without malformations.
fn answer(words: &[&str], trace: &Path) -> String {
    let out = run(whyslow(words).arg("--strict").arg(trace));
    assert!(out.status.success(), "{words:?} of {}: {}", trace.display(), said(&out));
    String::from_utf8(out.stdout).unwrap()
}

fn events(trace: &Path) -> String {
    answer(&["dump", "--canonical"], trace)
}

/// Line by line, so that the test shows the first difference.
fn assert_alike(found: &str, expected: &str, what: &str) {
    for (number, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "{what}, event {}", number + 1);
    }
    assert_eq!(found.lines().count(), expected.lines().count(), "{what}");
}

#[test]
fn barectf_traces_hold_what_was_written() {
    let expected = std::fs::read_to_string(written("barectf/expected.txt")).unwrap();
    assert!(expected.lines().count() > 30);
    assert_alike(&events(&written("barectf/trace")), &expected, "barectf");
}

/// Metadata without its first line, which other readers do not need either, are not malformed.
#[test]
fn metadata_without_its_signature_is_a_note() {
    const SIGNATURE: &str = "/* CTF 1.8 */";
    let folder = tempfile::tempdir().unwrap();
    let copied = folder.path().join("trace");
    ask::copy(&written("barectf/trace"), &copied);
    let metadata = std::fs::read_to_string(copied.join("metadata")).unwrap();
    assert!(metadata.starts_with(SIGNATURE));
    std::fs::write(copied.join("metadata"), metadata.trim_start_matches(SIGNATURE)).unwrap();
    assert_alike(&events(&copied), &events(&written("barectf/trace")), "without a signature");
    assert!(answer(&["stats", "count"], &copied).contains("does not begin with"));
}

/// Its clock is declared twice in the metadata, which is a note and no malformation.
#[test]
fn babeltrace_copies_read_like_their_originals() {
    let twice = written("babeltrace2/barectf");
    let metadata = std::fs::read_to_string(twice.join("metadata")).unwrap();
    assert_eq!(metadata.lines().filter(|l| *l == "clock {").count(), 2);
    assert_alike(&events(&twice), &events(&written("barectf/trace")), "barectf's trace");
    assert!(answer(&["stats", "count"], &twice).contains("declared again, with the same attributes"));

    let (rewritten, recorded) = (written("babeltrace2/split-files"), fixture("split-files"));
    assert_alike(&events(&rewritten), &events(&recorded), "LTTng's trace");
    // Its meaning is read as well: the running threads, and the cause of slow requests.
    let questions: [&[&str]; 4] = [
        &["stats", "cpu", "--json"],
        &["diff", "--json"],
        &["query", "--json", "--attribute", "cpus/*/thread"],
        &["anomalies", "--json"],
    ];
    for words in questions {
        let plain = |trace: &Path| answer(words, Path::new(&format!("t={}", trace.display())));
        assert_eq!(plain(&rewritten), plain(&recorded), "{words:?}");
    }
}

/// The listing that a decode case expects.
fn expected(case: &Path) -> String {
    let text = std::fs::read_to_string(case).unwrap();
    text.split_once("\n--- expect\n").unwrap().1.to_owned()
}

#[test]
fn fields_rewritten_by_babeltrace_read_like_their_originals() {
    let mut cases: Vec<PathBuf> =
        std::fs::read_dir(written("babeltrace2/cases")).unwrap().map(|e| e.unwrap().path()).collect();
    cases.sort();
    for trace in &cases {
        let name = trace.file_name().unwrap().to_str().unwrap();
        let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/ctf").join(format!("pass-1-{name}.case"));
        assert_alike(&events(trace), &expected(&case), name);
    }
    assert_eq!(cases.len(), 16);
}

/// An event in six columns.
fn columns(line: &str) -> Vec<&str> {
    line.split('\t').collect()
}

/// perf puts the sample's own values before the fields of the tracepoint, which are the same then.
#[test]
fn perf_conversions_read_like_the_recording() {
    let (converted, recorded) = (events(&written("perf/ctf")), events(&written("perf/perf.data")));
    // Records that are no samples (comm, mmap) are not converted.
    let samples: Vec<Vec<&str>> = recorded.lines().map(columns).filter(|c| !c[2].starts_with("perf:")).collect();
    assert_eq!((samples.len(), converted.lines().count()), (28, 28));
    for (sample, event) in samples.iter().zip(converted.lines().map(columns)) {
        assert_eq!(sample[..3], event[..3]);
        let fields = sample[5].trim_matches(['{', '}']);
        assert!(event[5].ends_with(&format!(",{fields}}}")), "{event:?} for {sample:?}");
    }
    // The running thread is known in both.
    let busy = |trace: &str| {
        let answer: serde_json::Value =
            serde_json::from_str(&answer(&["stats", "cpu", "--json"], &written(trace))).unwrap();
        let mut threads: Vec<(i64, i64)> = answer["threads"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| (t["tid"].as_i64().unwrap(), t["cpu_ns"].as_i64().unwrap()))
            .collect();
        threads.sort_unstable();
        threads
    };
    let (converted, recorded) = (busy("perf/ctf"), busy("perf/perf.data"));
    // perf.data has more about the thread that ran when the recording began: its own records come before the first
    // sample.
    let alike = converted.iter().filter(|thread| recorded.contains(thread)).count();
    assert!(alike > 5 && alike + 2 >= converted.len(), "{converted:?} for {recorded:?}");
}
