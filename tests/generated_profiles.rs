//! Generated profiles, from the files as perf writes them to the answer.
//!
//! Fifty single ones: the recorded command is what the answer is about, its heaviest function comes first, each thread
//! has run for as long as it did, and the order of the records changes nothing. Pairs of runs of one program: a
//! function that became slower comes first, and where none did, no answer is confident.

use crate::support::{ask, profiler};
use profiler::{Generated, Run, Slowdown, generate, generate_run};
use serde_json::Value;
use std::path::Path;

/// The answer about a file in a folder.
fn explained(folder: &Path, file: &[u8], workers: usize) -> Value {
    std::fs::write(folder.join("perf.data"), file).unwrap();
    let workers = workers.to_string();
    let words = ["explain", "--json", "--check", "--symbols", "symbols", "--threads", &workers, "perf.data"];
    let out = ask::run(ask::whyslow(words).current_dir(folder));
    assert!(out.status.success(), "{}", ask::said(&out));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// The CPU time of the threads of a group, in ns by name.
fn holds_cpu_times(profile: &Generated, answer: &Value, what: &str) {
    let total = answer["extra_ns"].as_f64().unwrap();
    let period = profile.recorded.period as f64;
    let mut seen = 0;
    for part in answer["dimensions"].as_array().unwrap().iter().filter(|part| part["name"] == "thread") {
        let name = part["value"].as_str().unwrap();
        let truth = *profile.truth.threads.get(name).unwrap_or_else(|| panic!("{what}: {name} is no thread of it"));
        let got = part["slow_share"].as_f64().unwrap() * total;
        // A clock of its own is at most one period behind; a clock of the CPU hits or misses each run by one.
        let error = match profile.recorded.all {
            false => 1.2 * period,
            true => 3.0 * period / 2.0 * (profile.truth.runs[name] as f64).sqrt().max(1.0),
        };
        let truth = truth as f64;
        assert!((got - truth).abs() <= error.max(truth / 50.0), "{what}: {name} ran {truth}, not {got}");
        seen += 1;
    }
    assert!(seen > 0, "{what}: no thread has a figure");
    let all: u64 = profile.truth.threads.values().sum();
    let runs: u64 = profile.truth.runs.values().sum();
    let error = if profile.recorded.all { 1.5 * period * (runs as f64).sqrt() } else { 1.2 * period * seen as f64 };
    assert!((total - all as f64).abs() <= error.max(all as f64 / 50.0), "{what}: all ran {all}, not {total}");
}

#[test]
fn generated_profiles_are_explained_as_they_happened() {
    let folder = tempfile::tempdir().unwrap();
    let symbols = folder.path().join("symbols");
    std::fs::create_dir(&symbols).unwrap();
    let mut disordered = 0;
    for seed in 1..=50 {
        let profile = generate(seed);
        let what = format!("profile {seed}, {:?}", profile.recorded);
        for (name, elf) in &profile.programs {
            std::fs::write(symbols.join(name), elf).unwrap();
        }
        let answer = explained(folder.path(), &profile.file, [1, 2, 7][seed as usize % 3]);
        let sentence = answer["verdict"]["sentence"].as_str().unwrap();
        assert!(sentence.starts_with(&profile.command), "{what}: {sentence}");
        let (heaviest, _) = profile.truth.functions.iter().max_by_key(|(_, time)| **time).unwrap();
        assert_eq!(answer["causes"][0]["by"]["function"].as_str(), Some(heaviest.as_str()), "{what}: {sentence}");
        holds_cpu_times(&profile, &answer, &what);
        disordered += usize::from(profile.file != profile.sorted);
        assert!(explained(folder.path(), &profile.sorted, 2) == answer, "{what}: the order of records counts");
    }
    assert!(disordered > 30, "{disordered}");
}

/// The answer about two runs in a folder, with the programs' symbols.
fn compared(folder: &Path, [old, new]: [&Generated; 2]) -> Value {
    let symbols = folder.join("symbols");
    std::fs::create_dir_all(&symbols).unwrap();
    for (name, elf) in &old.programs {
        std::fs::write(symbols.join(name), elf).unwrap();
    }
    std::fs::write(folder.join("old.data"), &old.file).unwrap();
    std::fs::write(folder.join("new.data"), &new.file).unwrap();
    let words = ["explain", "--json", "--symbols", "symbols", "old=old.data", "new=new.data"];
    let out = ask::run(ask::whyslow(words).current_dir(folder));
    assert!(out.status.success(), "{}", ask::said(&out));
    serde_json::from_slice(&out.stdout).unwrap()
}

#[test]
fn function_that_became_slower_comes_first() {
    let folder = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for pair in 0..20 {
        let seed = 1_000 + pair;
        let factor = 1.05 + 0.45 * pair as f64 / 19.0;
        let old = generate_run(seed, Some(Run { number: 1, repeats: 4, slowdown: None }));
        // A few samples more say nothing: a small slowdown is in a function that has many.
        let time = |name: &String| std::cmp::Reverse(old.truth.functions.get(name).copied());
        let mut functions: Vec<usize> = (0..old.functions.len()).collect();
        functions.sort_by_key(|at| time(&old.functions[*at]));
        let function = functions[if factor < 1.2 { 0 } else { pair as usize % functions.len() }];
        let slowdown = Some(Slowdown { function, factor });
        let new = generate_run(seed, Some(Run { number: 2, repeats: 4, slowdown }));
        let answer = compared(folder.path(), [&old, &new]);
        let name = &old.functions[function];
        let first = answer["causes"][0]["by"]["function"].as_str();
        if first != Some(name) {
            let [before, after] = [&old, &new].map(|run| run.truth.functions[name] / 1_000_000);
            let sentence = &answer["verdict"]["sentence"];
            wrong.push(format!("{pair}: {first:?} and not {name}, {before} to {after} ms: {sentence}"));
        }
    }
    assert!(wrong.len() <= 1, "{wrong:#?}");
}

#[test]
fn runs_of_the_same_work_are_seldom_distinguished() {
    let folder = tempfile::tempdir().unwrap();
    let mut sure = Vec::new();
    for pair in 0..100 {
        let [old, new] =
            [1, 2].map(|number| generate_run(2_000 + pair, Some(Run { number, repeats: 1, slowdown: None })));
        let answer = compared(folder.path(), [&old, &new]);
        if answer["verdict"]["confident"] == true {
            sure.push(format!("{pair}: {}", answer["verdict"]["sentence"]));
        }
    }
    assert!(sure.len() <= 5, "{sure:#?}");
}
