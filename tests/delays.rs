//! Delays planted in generated servers, one carrier or chain of carriers each (`delays/plants.rs`): `anomalies` must
//! name their source first, with its function and carriers, and where nothing is planted no source may claim much of
//! the executions' time. Executions with other calls than usual are found at any cost (`delays/routes.rs`).

mod nested;
mod plants;
mod routes;
mod servers;

use crate::simulator;
use crate::support::ask;
use plants::{NOISE, PLANTS, Plant, world};
use serde_json::Value;
use simulator::recorder::{Manner, record};
use simulator::{Random, World};
use std::collections::BTreeMap;
use std::path::Path;
use whyslow::parts::base::time::Ns;

/// The answer of `anomalies --json` about a recorded machine, with further arguments.
fn anomalies(world: &World, manner: &Manner, name: &str, arguments: &[&str]) -> Value {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("delays-{name}"));
    let recorded = record(world, manner, &folder);
    let mut command = ask::program();
    command.args(["anomalies", "--json"]).args(arguments).arg("--symbols").arg(&recorded.symbols);
    let out = ask::run(command.args(&recorded.traces));
    assert!(out.status.success(), "{name}: {}", String::from_utf8_lossy(&out.stderr));
    std::fs::remove_dir_all(&folder).unwrap();
    serde_json::from_slice(&out.stdout).unwrap()
}

/// The first source is the planted one: its thread and carriers, and its function or one that calls it (where no stack
/// was sampled in the function itself), if any is known.
fn is_named_first(answer: &Value, plant: Plant) -> bool {
    let source = plant.source();
    let first = &answer["sources"][0];
    let callers = ["main", "handle_request"];
    let function = first["function"].as_str();
    let function = function.is_none_or(|f| source.function.is_empty() || f == source.function || callers.contains(&f));
    let name = first["name"].as_str().is_some_and(|name| name.starts_with(source.name));
    let via: Vec<&str> = first["via"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    name && function && via == source.via
}

/// The largest part of the executions' time that a source claims.
fn largest_claim(answer: &Value) -> f64 {
    let sources = answer["sources"].as_array().unwrap();
    sources.iter().filter_map(|s| s["share"].as_f64()).fold(0.0, f64::max)
}

/// By plant: recordings whose source was named first, and recordings.
type Rates = BTreeMap<Plant, (usize, usize)>;

/// `count` recordings with plants of all kinds in turns, delays from `from` to `to` times the noise.
fn planted(count: usize, from: Ns, to: Ns) -> Rates {
    let mut found = Rates::new();
    for at in 0..count {
        let plant = PLANTS[at % PLANTS.len()];
        let seed = at as u64 + 1;
        let mut dice = Random::new(seed);
        let delay = NOISE * dice.between(from * 100, to * 100) / 100;
        let workers = 1 + dice.below(9);
        let world = world(seed, workers, plant, delay);
        let answer = anomalies(&world, &Manner::default(), &format!("{plant:?}-{seed}-{from}"), &[]);
        let is_right = is_named_first(&answer, plant);
        let all = found.entry(plant).or_default();
        (all.0, all.1) = (all.0 + usize::from(is_right), all.1 + 1);
        if !is_right {
            println!("{plant:?} {at}, {workers} workers, {delay} ns:");
            for s in answer["sources"].as_array().unwrap().iter().take(4) {
                println!(
                    "    {} {} {} {} via {} {} times",
                    s["name"], s["what"], s["function"], s["affected_ns"], s["via"], s["occurrences"]
                );
            }
        }
    }
    found
}

/// The largest claim of any source in `count` recordings of 3 to 40 threads without a plant.
fn without(count: usize) -> f64 {
    let claims = (0..count).map(|at| {
        let workers = 1 + at % 19;
        let world = world(1_000 + at as u64, workers, Plant::Nothing, 0);
        let answer = anomalies(&world, &Manner::default(), &format!("control-{at}"), &[]);
        let claim = largest_claim(&answer);
        if claim > 0.05 {
            println!("control {at}, {workers} workers: {:#}", answer["sources"][0]);
        }
        claim
    });
    claims.fold(0.0, f64::max)
}

fn share(found: &Rates) -> f64 {
    let (right, all) = found.values().fold((0, 0), |sum, n| (sum.0 + n.0, sum.1 + n.1));
    right as f64 / all.max(1) as f64
}

/// Print the rows of the table of docs/MEASURED.md, and check its bounds.
fn table(weak: &Rates, strong: &Rates, claim: f64, controls: usize) {
    println!("| planted | recordings | not named first, 1 to 3 times the noise | over 3 times |\n|---|---|---|---|");
    let mut rows: BTreeMap<&str, [(usize, usize); 2]> = BTreeMap::new();
    for (at, found) in [weak, strong].into_iter().enumerate() {
        for (plant, (right, all)) in found {
            let sum = &mut rows.entry(plant.row()).or_default()[at];
            (sum.0, sum.1) = (sum.0 + all - right, sum.1 + all);
        }
    }
    let percent = |(missed, all): (usize, usize)| match all {
        0 => "-".to_owned(),
        all => format!("{:.0}%", 100.0 * missed as f64 / all as f64),
    };
    for (row, [weak, strong]) in &rows {
        println!("| {row} | {} | {} | {} |", weak.1 + strong.1, percent(*weak), percent(*strong));
    }
    println!(
        "largest claim of a source in {controls} recordings without a plant: {:.1}% of the executions' time",
        100.0 * claim
    );
    assert!(share(strong) >= 0.9, "{strong:?}");
    assert!(claim <= 0.05, "{claim}");
}

#[test]
fn planted_delays_are_named_first() {
    table(&Rates::new(), &planted(2 * PLANTS.len(), 3, 12), without(5), 5);
}

/// The whole table of docs/MEASURED.md; nine in ten of each kind.
#[test]
#[ignore = "310 recordings: cargo test --release --test all delays:: -- --ignored --nocapture"]
fn planted_delays_print_their_rates() {
    let (weak, strong) = (planted(60, 1, 3), planted(200, 3, 12));
    table(&weak, &strong, without(50), 50);
    for (plant, (right, all)) in &strong {
        assert!(right * 10 >= all * 9, "{plant:?}: {right} of {all}");
    }
}
