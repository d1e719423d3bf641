//! Recorded archives of the corpus against their oracles.

use super::corpus::corpus;
use super::{pairs, read};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use whyslow::parts::analysis::patterns::PatternAnalysis;
use whyslow::parts::base::ctx::Ctx;

/// Folders of the corpus that hold an OTF2 archive and its oracle.
fn archives(part: &str) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(corpus(part)).unwrap();
    let mut all: Vec<PathBuf> = folders.map(|f| f.unwrap().path()).filter(|f| f.join("oracle.json").exists()).collect();
    all.sort();
    assert!(!all.is_empty(), "no archive in {part}");
    all
}

fn parsed(path: &Path) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// `MpiIsend` as the oracle writes it: `MPI_ISEND`.
fn screaming(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_uppercase());
    }
    out
}

#[test]
#[ignore = "needs the corpus"]
fn recorded_archives_agree_with_their_oracles() {
    for folder in ["mpi", "npb"].into_iter().flat_map(archives) {
        let oracle = parsed(&folder.join("oracle.json"));
        let (archive, run) = read(&folder.join("trace"));
        let counts = run.counts();
        let name = folder.display();
        assert_eq!(counts.events, oracle["records"].as_u64().unwrap(), "{name}");
        let expected = oracle["records_by_type"].as_object().unwrap();
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        for (class, n) in &counts.per_name {
            let class = screaming(class);
            *found.entry(if expected.contains_key(&class) { class } else { "OTHER".into() }).or_default() += n;
        }
        let expected: BTreeMap<String, u64> =
            expected.iter().map(|(k, v)| (k.clone(), v.as_u64().unwrap())).filter(|(_, n)| *n > 0).collect();
        assert_eq!(found, expected, "{name}");
        for ((location, run), expected) in
            archive.definitions.locations.iter().zip(&run.locations).zip(oracle["locations"].as_array().unwrap())
        {
            assert_eq!(location.number, expected["id"].as_u64().unwrap(), "{name}");
            assert_eq!(location.name, expected["name"].as_str().unwrap(), "{name}");
            assert_eq!(run.records, expected["records"].as_u64().unwrap(), "{name}");
            let ends = [&expected["first"], &expected["last"]].map(|t| i128::from(t.as_i64().unwrap()));
            assert_eq!(run.ticks.map(|range| [range.first, range.last]), Some(ends), "{name} {}", location.name);
        }
        let messages = &oracle["messages"];
        let figures = [counts.sends, counts.receives, counts.matched];
        assert_eq!(figures, ["sends", "receives", "matched"].map(|k| messages[k].as_u64().unwrap()), "{name}");
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for (s, i, r, j) in pairs(&run) {
            for byte in format!("{s}:{i}:{r}:{j}\n").bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        assert_eq!(format!("{hash:016x}"), messages["pairs_fnv1a64"].as_str().unwrap(), "{name}");
    }
}

#[test]
#[ignore = "needs the corpus"]
fn clocks_of_recorded_runs_are_found_within_5_us() {
    for folder in archives("mpi") {
        let Ok(truth) = std::fs::read_to_string(folder.join("ground_truth.json")) else { continue };
        let truth: serde_json::Value = serde_json::from_str(&truth).unwrap();
        let Some(expected) = truth["trace_clock_plus_this_is_common"].as_array() else { continue };
        let (archive, run) = read(&folder.join("trace"));
        if run.pairs.is_empty() {
            continue;
        }
        let mined = PatternAnalysis::new(run.into_operations(&archive), &Ctx::new(0)).unwrap();
        let first = expected[0].as_i64().unwrap();
        for (clock, expected) in mined.clocks.iter().zip(expected) {
            let off = clock.offset - (expected.as_i64().unwrap() - first);
            assert!(off.abs() <= 5_000, "{}: {off} ns off", folder.display());
        }
    }
}
