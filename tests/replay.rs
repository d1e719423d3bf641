//! The properties of the fuzz targets (`fuzz/src/lib.rs`) on seeds, on the corpora that they left
//! (`fuzz/kept/TARGET/`), on inputs that they once found (`fuzz/found/TARGET/`) and on mutations of all these, with a
//! stable compiler: no panic, and each target's own promises. `WHYSLOW_INPUTS` is the number of mutations for each
//! target, `WHYSLOW_TARGET` the only target, `WHYSLOW_SEED` the seed of the mutations.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, unused_qualifications)]

#[path = "../fuzz/src/lib.rs"]
mod targets;

use std::path::{Path, PathBuf};
use targets::random::Random;
use targets::seeds::{root, seeds, stored};

/// Of each target in an ordinary run; those whose inputs go through files, or are drawn, get a tenth.
const INPUTS: usize = 3_000;
/// Targets whose inputs stay in memory.
const QUICK: [&str; 3] = ["declared", "command_line", "keys"];

/// One to four strokes: bytes changed, removed, doubled, put elsewhere; numbers at the edges.
fn mutated(seeds: &[Vec<u8>], dice: &mut Random) -> Vec<u8> {
    let mut bytes = seeds[dice.below(seeds.len())].clone();
    for _ in 0..1 + dice.below(4) {
        let at = dice.below(bytes.len());
        let until = (at + 1 + dice.below(16)).min(bytes.len());
        match dice.below(8) {
            _ if bytes.is_empty() => bytes.push(dice.below(256) as u8),
            0 => bytes[at] ^= 1 << dice.below(8),
            1 => bytes[at] = dice.below(256) as u8,
            2 => bytes[at..until].fill([0, 0xff, 0x7f, 0x80][dice.below(4)]),
            3 => drop(bytes.drain(at..until)),
            4 => {
                let piece = bytes[at..until].to_vec();
                let to = dice.below(bytes.len());
                bytes.splice(to..to, piece);
            }
            5 => bytes.truncate(at),
            6 => {
                let other = &seeds[dice.below(seeds.len())];
                let from = dice.below(other.len());
                let piece = other[from..(from + 1 + dice.below(64)).min(other.len())].to_vec();
                bytes.splice(at..until, piece);
            }
            _ => bytes[at] = bytes[at].wrapping_add(1),
        }
    }
    bytes
}

/// The file that keeps the current input, should it end the process.
fn last() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("replay-last")
}

#[test]
fn fuzz_targets_hold_on_seeds_kept_inputs_and_mutations() {
    let wanted: Option<usize> = std::env::var("WHYSLOW_INPUTS").ok().and_then(|n| n.parse().ok());
    let only = std::env::var("WHYSLOW_TARGET").ok();
    let start: u64 = std::env::var("WHYSLOW_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let wanted_targets = targets::TARGETS.into_iter().filter(|(name, _)| only.as_ref().is_none_or(|only| only == name));
    // All before the first is asked: one of them is a database, which the program itself builds.
    let all: Vec<_> = wanted_targets.map(|(name, ask)| (name, ask, seeds(name))).collect();
    for (name, ask, seeds) in all {
        let known = [seeds, stored("kept", name), stored("found", name)].concat();
        let inputs = wanted.unwrap_or(if QUICK.contains(&name) { INPUTS } else { INPUTS / 10 });
        let mut dice = Random::new(0x5eed_0000_0000_0000 | start);
        let mutations = (0..inputs).map(|_| mutated(&known, &mut dice));
        for (number, input) in known.iter().cloned().chain(mutations).enumerate() {
            let asked = std::panic::catch_unwind(|| ask(&input));
            if asked.is_err() {
                std::fs::write(last(), &input).unwrap();
                panic!("{name}: input {number} of {} known ones is kept as {}", known.len(), last().display());
            }
        }
        println!("{name}: {} known inputs, {inputs} mutations", known.len());
    }
    std::fs::remove_dir_all(targets::folder().unwrap()).unwrap();
}

/// Each target has its file, its entry in the manifest, its kept corpus and its turn in the weekly job.
#[test]
fn replay_runs_every_target() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let (manifest, workflow) = (read("fuzz/Cargo.toml"), read(".github/workflows/ci.yml"));
    let turns = workflow.lines().find_map(|l| l.trim().strip_prefix("target: [")?.strip_suffix(']')).unwrap();
    let mut turns: Vec<&str> = turns.split(", ").collect();
    let mut names: Vec<&str> = targets::TARGETS.iter().map(|t| t.0).collect();
    for name in &names {
        assert!(read(&format!("fuzz/fuzz_targets/{name}.rs")).contains(&format!("ask_{name}(")), "{name}");
        assert!(manifest.contains(&format!("\nname = \"{name}\"\n")), "{name} is not in the manifest");
        assert!(!stored("kept", name).is_empty(), "{name} has no corpus");
    }
    names.sort_unstable();
    turns.sort_unstable();
    assert_eq!(names, turns);
}
