//! Small recorded traces, end to end, against the numbers that babeltrace2 gives (`oracle.json` beside each).

use crate::support::{ask, corpus};
use corpus::corpus;
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};

fn count(trace: &Path, more: &[&str]) -> Value {
    let out = ask::program().args(["stats", "count", "--json"]).args(more).arg(trace).output();
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
fn counts_equal_the_oracle() {
    let fixtures = recordings(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces"));
    assert_eq!(fixtures.len(), 8, "{fixtures:?}");
    fixtures.iter().for_each(|f| agrees(f));
}

#[test]
#[ignore = "needs the corpus"]
fn counts_of_the_corpus_equal_the_oracle() {
    let extras = recordings(&corpus("kernel/extras"));
    assert!(!extras.is_empty());
    extras.iter().for_each(|f| agrees(f));
}

/// The README of every folder of recordings gives its origin and the expected contents.
#[test]
fn fixtures_have_readmes() {
    for folder in recordings(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces")) {
        let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
        for part in ["**Why it is here:**", "**Expected:**", "LTTng 2.13.9"] {
            assert!(readme.contains(part), "{}: no {part}", folder.display());
        }
    }
}

fn run(words: &[&str], trace: &Path) -> (bool, Value, String) {
    let out = ask::run(ask::program().args(words).arg("--json").arg(trace));
    let json = serde_json::from_slice(&out.stdout).unwrap_or(Value::Null);
    (out.status.success(), json, String::from_utf8_lossy(&out.stderr).into_owned())
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            std::fs::copy(&from, &to).unwrap();
        }
    }
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces").join(name)
}

/// The outline of a trace from its indexes equals the one from all packet headers without an index.
#[test]
fn index_equals_the_packets() {
    for name in ["lost-events", "rotated", "split-files", "disk-contention"] {
        let folder = tempfile::tempdir().unwrap();
        copy(&fixture(name), folder.path());
        let (_, indexed, _) = run(&["info"], folder.path());
        remove_indexes(folder.path());
        let (_, scanned, _) = run(&["info"], folder.path());
        for key in ["traces", "lost", "tasks"] {
            assert_eq!(indexed[key], scanned[key], "{name} {key}");
        }
        assert!(scanned["warnings"].to_string().contains("no packet index"), "{name}: {}", scanned["warnings"]);
    }
}

fn remove_indexes(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            remove_indexes(&path);
        } else if path.extension().is_some_and(|e| e == "idx") {
            std::fs::remove_file(path).unwrap();
        }
    }
}

/// An index that fits its file but contradicts a packet is rejected before events are read.
#[test]
fn inconsistent_index_is_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    copy(&fixture("lost-events"), folder.path());
    let (_, before, _) = run(&["stats", "count"], folder.path());
    let index = folder.path().join("kernel/index");
    let mut lied = 0;
    for entry in std::fs::read_dir(index).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        let entry_bytes = u32::from_be_bytes(bytes[12..16].try_into().unwrap()) as usize;
        // The counter of discarded events in the last entry.
        if bytes.len() >= 16 + 2 * entry_bytes {
            let at = bytes.len() - entry_bytes + 40;
            bytes[at + 7] ^= 1;
            std::fs::write(&path, bytes).unwrap();
            lied += 1;
        }
    }
    assert!(lied > 0);
    let (fine, after, _) = run(&["stats", "count"], folder.path());
    assert!(fine);
    assert_eq!(after["discarded_events"], before["discarded_events"]);
    let said = after["warnings"].to_string();
    assert!(said.contains("did not match") && said.contains("rebuilt"), "{said}");
}

/// One trace of a folder that cannot be read does not take the others with it; alone it is an error.
#[test]
fn unreadable_trace_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    copy(&fixture("lock-contention"), folder.path());
    let kernel = folder.path().join("kernel");
    let (_, alone, _) = run(&["stats", "count"], &kernel);
    let metadata = metadata_under(&folder.path().join("ust"));
    std::fs::write(&metadata, "/* CTF 1.8 */ trace { nonsense").unwrap();
    let (fine, rest, error) = run(&["stats", "count"], folder.path());
    assert!(fine, "{error}");
    assert_eq!(rest["events"], alone["events"]);
    assert!(rest["warnings"].to_string().contains("could not be read and w"), "{}", rest["warnings"]);
    let (strict, ..) = run(&["stats", "count", "--strict"], folder.path());
    assert!(!strict);
    let (fine, _, error) = run(&["stats", "count"], metadata.parent().unwrap());
    assert!(!fine && error.starts_with("whyslow: "), "{error}");
}

/// A few bytes behind the last packet of metadata: an editor's line feed, or a copy that did not end in time.
#[test]
fn bytes_after_the_metadata_are_a_notice_and_refused_by_strict() {
    for behind in [&b"\n"[..], b"\0", b"abc"] {
        let folder = tempfile::tempdir().unwrap();
        copy(&fixture("lock-contention").join("kernel"), folder.path());
        let (_, before, _) = run(&["stats", "count"], folder.path());
        let (strict, ..) = run(&["stats", "count", "--strict"], folder.path());
        assert!(strict && !before["warnings"].to_string().contains("after the last packet"), "{}", before["warnings"]);
        let metadata = folder.path().join("metadata");
        let length = std::fs::metadata(&metadata).unwrap().len();
        std::fs::OpenOptions::new().append(true).open(&metadata).unwrap().write_all(behind).unwrap();
        let (fine, after, error) = run(&["stats", "count"], folder.path());
        assert!(fine && after["per_name"] == before["per_name"], "{error}");
        let warned = after["warnings"].to_string();
        let place = format!("byte {length}: {} bytes that are no packet", behind.len());
        assert!(warned.contains("data after the last packet") && warned.contains(&place), "{warned}");
        let (strict, _, error) = run(&["stats", "count", "--strict"], folder.path());
        assert!(!strict && error.starts_with("whyslow: ") && error.contains(&place), "{error}");
    }
}

fn metadata_under(folder: &Path) -> PathBuf {
    let direct = folder.join("metadata");
    if direct.exists() {
        return direct;
    }
    let inside = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir());
    inside.map(|p| metadata_under(&p)).next().unwrap()
}

/// A packet header that cannot be read takes its own packet with it and no other.
#[test]
fn broken_packet_header_ends_one_packet() {
    let folder = tempfile::tempdir().unwrap();
    copy(&fixture("disk-contention"), folder.path());
    remove_indexes(folder.path());
    let (_, before, _) = run(&["stats", "count"], folder.path());
    let files = std::fs::read_dir(folder.path().join("kernel")).unwrap().map(|e| e.unwrap().path());
    let magic = 0xc1fc_1fc1_u32.to_le_bytes();
    let packets = |bytes: &[u8]| (0..bytes.len() / 4096).filter(|i| bytes[i * 4096..].starts_with(&magic)).count();
    let several = |path: &PathBuf| path.is_file() && packets(&std::fs::read(path).unwrap()) > 2;
    let mut broken = 0;
    for path in files.filter(several) {
        let mut bytes = std::fs::read(&path).unwrap();
        let second = (1..).find(|i| bytes[i * 4096..].starts_with(&magic)).unwrap() * 4096;
        bytes[second..second + 4].fill(0);
        std::fs::write(&path, bytes).unwrap();
        broken += 1;
    }
    assert!(broken > 0);
    let (fine, after, error) = run(&["stats", "count"], folder.path());
    assert!(fine, "{error}");
    let packets = |counts: &Value| counts["packets"].as_u64().unwrap();
    assert_eq!(packets(&after), packets(&before) - broken);
    assert!(after["events"].as_u64() < before["events"].as_u64());
    assert!(after["warnings"].to_string().contains(&format!("{broken} packet")), "{}", after["warnings"]);
}
