//! A run in which no rank does anything twice: it has no iterations, and `explain` answers from the run itself.

use super::otf2::{ArchiveWriter, Events};
use crate::support::ask::{run, said, whyslow};
use std::path::PathBuf;
use tempfile::TempDir;

/// OTF2's number of an allreduce.
const ALLREDUCE: u8 = 7;
const RANKS: u64 = 4;

/// Four ranks compute, rank 2 longest, and meet once.
fn archive(folder: &TempDir) -> PathBuf {
    let mut writer = ArchiveWriter::new(&folder.path().join("run"));
    let regions = ["main", "setup", "solve", "MPI_Allreduce"].map(|name| writer.region(name));
    let [main, setup, solve, allreduce] = regions;
    let ranks: Vec<u64> = (0..RANKS).map(|_| writer.rank()).collect();
    let world = writer.world();
    let latest = 90_000_000;
    for (rank, location) in ranks.into_iter().enumerate() {
        let mut events = Events::default();
        let arrives = if rank == 2 { latest } else { 20_000_000 + rank as u64 };
        events.enter(0, main);
        events.enter(10, setup);
        events.leave(1_000_000, setup);
        events.enter(1_000_100, solve);
        events.leave(arrives, solve);
        events.enter(arrives, allreduce);
        events.collective_begin(arrives);
        events.collective_end(latest + 20_000, ALLREDUCE, world, None);
        events.leave(latest + 20_000, allreduce);
        events.leave(latest + 30_000, main);
        writer.write_events(location, events);
    }
    writer.finish()
}

#[test]
fn explain_answers_from_a_run_without_iterations_as_anomalies_does() {
    let folder = TempDir::new().unwrap();
    let archive = archive(&folder);
    for form in [None, Some("--json")] {
        let [explain, anomalies] = ["explain", "anomalies"].map(|command| {
            let out = run(whyslow([command]).args(form).arg(&archive));
            assert_eq!(out.status.code(), Some(0), "{command} {form:?}: {}", said(&out));
            String::from_utf8(out.stdout).unwrap()
        });
        assert_eq!(explain, anomalies);
        assert!(explain.contains("Rank 2 delayed others most, once, at 0.001000 s: solve in main"), "{explain}");
    }
    let out = run(whyslow(["explain", "--plain"]).arg(&archive));
    let plain = String::from_utf8(out.stdout).unwrap();
    assert!(plain.starts_with("Rank 2 delayed others most") && plain.contains("wait at N x N"), "{plain}");
    assert!(!plain.contains("over time"), "strips are no words: {plain}");
}

#[test]
fn explain_says_that_there_are_no_iterations_where_they_are_asked_for() {
    let folder = TempDir::new().unwrap();
    let archive = archive(&folder);
    for asked in [["--slow", "duration>1ms"], ["--task", "iteration"], ["--type", "x"]] {
        let out = run(whyslow(["explain"]).args(asked).arg(&archive));
        assert_ne!(out.status.code(), Some(0));
        assert!(said(&out).contains("no rank repeats anything"), "{asked:?}: {}", said(&out));
    }
}
