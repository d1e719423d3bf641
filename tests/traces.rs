//! Small recorded traces, end to end, against the numbers that babeltrace2 gives (`oracle.json` beside each).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn count(trace: &Path, more: &[&str]) -> Value {
    let out =
        Command::new(env!("CARGO_BIN_EXE_whyslow")).args(["stats", "count", "--json"]).args(more).arg(trace).output();
    let out = out.unwrap();
    assert!(out.status.success(), "{}: {}", trace.display(), String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// Folders below `root` that hold an oracle.
fn recordings(root: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(root) else { return Vec::new() };
    let mut found: Vec<_> = entries.map(|e| e.unwrap().path()).filter(|p| p.join("oracle.json").exists()).collect();
    found.sort();
    found
}

fn agrees(folder: &Path) {
    let oracle: Value = serde_json::from_slice(&std::fs::read(folder.join("oracle.json")).unwrap()).unwrap();
    let got = count(folder, &[]);
    let name = folder.display();
    assert_eq!(got["events"], oracle["total_events"], "{name}");
    assert_eq!(got["discarded_events"], oracle["discarded_events"], "{name}");
    assert_eq!(got["per_name"], oracle["events_by_name"], "{name}");
    assert_eq!(got["schema"], "whyslow.stats.count/1");
}

#[test]
fn counts_are_those_of_the_oracle() {
    let fixtures = recordings(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces"));
    assert_eq!(fixtures.len(), 8, "{fixtures:?}");
    fixtures.iter().for_each(|f| agrees(f));
}

#[test]
fn counts_on_the_larger_corpus() {
    let corpus = std::env::var_os("WHYSLOW_CORPUS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target/corpus"), PathBuf::from);
    let extras = recordings(&corpus.join("kernel/extras"));
    if extras.is_empty() {
        eprintln!("skipped: no corpus at {}", corpus.display());
    }
    extras.iter().for_each(|f| agrees(f));
}

/// Every folder of recordings says where it comes from and what a reader must find in it.
#[test]
fn each_fixture_has_a_readme() {
    for folder in recordings(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces")) {
        let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
        for part in ["**Why it is here:**", "**Expected:**", "LTTng 2.13.9"] {
            assert!(readme.contains(part), "{}: no {part}", folder.display());
        }
    }
}
