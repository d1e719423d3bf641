//! Samples: slow executions are all there, numbers are exact, sums are right on average, weights travel.

use super::{answer, built, folder};
use crate::support::ask::{output, said};
use crate::support::random_model;
use serde_json::Value;
use std::path::Path;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::file::Output;
use whyslow::parts::base::notice::Notices;
use whyslow::parts::compare::condition::FailIf;
use whyslow::parts::compare::heat_map::{HeatMap, HeatSize};
use whyslow::parts::compare::{Comparison, ComparisonRequest, DiffNode, compare};
use whyslow::parts::model::Model;
use whyslow::parts::model::execution::ExecutionId;
use whyslow::parts::model::facts::Facts;
use whyslow::parts::model::metric::{Column, Metric};
use whyslow::parts::model::sample;
use whyslow::parts::model::weights::KeptNumbers;
use whyslow::parts::saved::executions::{Database, Writer};

const LOCK: &str = "fixtures/traces/lock-contention";
const CPU: &str = "fixtures/traces/cpu-contention";

/// The slowest hundredth.
fn slowest(model: &Model) -> Vec<ExecutionId> {
    let e = &model.executions;
    let mut all: Vec<usize> = (0..e.len()).collect();
    all.sort_unstable_by_key(|i| std::cmp::Reverse((e.duration(*i), *i)));
    let mut slow: Vec<ExecutionId> = all[..e.len().div_ceil(100)].iter().map(|i| ExecutionId::at(*i)).collect();
    slow.sort_unstable();
    slow
}

/// The sum of a column over all executions for which those of a model stand.
fn sum(model: &Model, metric: &Metric) -> f64 {
    let (e, weights) = (&model.executions, model.executions.weights());
    let column = e.column(metric).unwrap();
    let known = (0..e.len()).filter_map(|i| Some((column.values.get(i)?, weights.of(i))));
    known.filter(|(value, _)| *value != i64::MIN).map(|(value, weight)| value as f64 * weight as f64).sum()
}

fn sampled(whole: &Model, one_in: u64, seed: u64) -> Model {
    let (mut model, slow) = (whole.clone(), slowest(whole));
    sample::weigh(&mut model, &slow, one_in, seed);
    sample::kept(model)
}

#[test]
fn sample_keeps_slow_executions_and_the_number_of_all() {
    for (n, one_in) in [(1, 2), (3, 100), (200, 2), (1_000, 7), (1_000, 50), (1_003, 1_000)] {
        let whole = random_model::model(n, 5);
        let (e, slow) = (&whole.executions, slowest(&whole));
        let model = sampled(&whole, one_in, 9);
        assert_eq!(model.executions.count(), n as u64);
        let weights = model.executions.weights();
        let spans: Vec<_> = model.executions.spans().collect();
        for id in &slow {
            let at = spans.iter().position(|span| *span == e.span(id.index())).unwrap();
            assert_eq!(weights.of(at), 1, "{n} {one_in}: a slow one represents itself");
        }
        let others = (n - slow.len()) as u64;
        assert_eq!(model.executions.len() as u64, slow.len() as u64 + others.div_ceil(one_in));
        // What is kept is what it was.
        for (at, span) in spans.iter().enumerate() {
            let before = (0..n).find(|i| e.span(*i) == *span && same_times(&whole, *i, &model, at));
            assert!(before.is_some(), "{n} {one_in}: {at}");
        }
        // The same again, and others for another seed.
        assert_eq!(sampled(&whole, one_in, 9).executions.start, model.executions.start);
        if others > 100 {
            assert_ne!(sampled(&whole, one_in, 10).executions.start, model.executions.start);
        }
    }
}

/// Both executions spent the same in the same contexts, and have the same numbers.
fn same_times(a: &Model, i: usize, b: &Model, j: usize) -> bool {
    let times = |model: &Model, at: usize| -> Vec<(String, u64)> {
        let path = |context| {
            let frames = model.contexts.path(context).into_iter().map(|c| model.contexts.frame(c));
            frames
                .map(|frame| format!("{:?} {}", frame.kind, model.names.get(frame.name)))
                .collect::<Vec<_>>()
                .join(";")
        };
        let mut all: Vec<_> = model.executions.own.row(at).map(|time| (path(time.context), time.ns)).collect();
        all.sort();
        all
    };
    let who = |model: &Model, at: usize| model.who[model.executions.who.get(at).unwrap().index()].tid;
    times(a, i) == times(b, j) && who(a, i) == who(b, j)
}

#[test]
fn sums_of_samples_are_those_of_all_on_average() {
    const SEEDS: u64 = 400;
    let whole = random_model::model(600, 3);
    for metric in [Metric::Duration, Metric::BytesRead, Metric::Syscalls, Metric::Time(cpu())] {
        let exact = sum(&whole, &metric);
        let found: Vec<f64> = (0..SEEDS).map(|seed| sum(&sampled(&whole, 10, seed), &metric)).collect();
        let mean = found.iter().sum::<f64>() / SEEDS as f64;
        let variance = found.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (SEEDS - 1) as f64;
        let error = (variance / SEEDS as f64).sqrt();
        assert!(error > 0.0 && (mean - exact).abs() <= 4.0 * error, "{metric:?}: {mean} of {exact}, error {error}");
        // One sample is not far off, either: the strata are of equal length.
        assert!(variance.sqrt() < 0.2 * exact, "{metric:?}: {} of {exact}", variance.sqrt());
    }
}

fn cpu() -> whyslow::parts::model::wait_kind::WaitKind {
    whyslow::parts::model::wait_kind::WaitKind::Cpu
}

#[test]
fn each_execution_is_kept_as_often_as_its_weight_says() {
    const SEEDS: u64 = 3_000;
    let whole = random_model::model(101, 8);
    let mut kept = [0_u32; 101];
    for seed in 0..SEEDS {
        let mut model = whole.clone();
        sample::weigh(&mut model, &[], 10, seed);
        let weights = &model.executions.column(&Metric::Weight).unwrap().values;
        (0..101).filter(|i| weights.at(*i) > 0).for_each(|i| kept[i] += 1);
    }
    // The longest is a stratum by itself. The others: 300 of 3,000, whose standard deviation is 16.
    assert_eq!(kept.iter().filter(|times| u64::from(**times) == SEEDS).count(), 1);
    assert!(kept.iter().all(|times| u64::from(*times) == SEEDS || (220..380).contains(times)), "{kept:?}");
}

/// A model without weights, which has each execution as often as it counts.
fn repeated(weighted: &Model) -> Model {
    let mut model = weighted.clone();
    let place = model.executions.columns.iter().position(|column| column.metric == Metric::Weight).unwrap();
    let all = std::mem::take(&mut model.executions);
    let metrics = all.columns.iter().map(|column| Column { metric: column.metric.clone(), values: Default::default() });
    model.executions.columns = metrics.collect();
    for (row, values) in all.into_rows() {
        for _ in 0..values[place] {
            model.executions.push(row.clone());
            let columns = model.executions.columns.iter_mut();
            columns.zip(&values).for_each(|(column, value)| column.values.push(*value));
        }
    }
    model.executions.columns.remove(place);
    model
}

/// What weights say of executions is what the same executions say, each there as often.
#[test]
fn weighted_figures_are_those_of_the_repeated_executions() {
    let (near, ctx) = (|a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs().max(1.0), Ctx::new(1));
    for (seed, one_in) in (1..9).zip([2, 3, 5, 7, 11, 2, 3, 40]) {
        let weighted = sampled(&random_model::model(400, seed), one_in, seed);
        let whole = repeated(&weighted);
        assert_eq!(whole.executions.len() as u64, weighted.executions.count());
        for (slow, fast) in [
            ("", ""),
            ("duration>=p90", "duration<=p50"),
            ("bytes_read>p60", "bytes_read<=p40"),
            ("type=get", "type=put"),
        ] {
            let list = |text: &str| if text.is_empty() { vec![] } else { vec![text.parse().unwrap()] };
            let request = ComparisonRequest { slow: list(slow), fast: list(fast), ..ComparisonRequest::default() };
            let [a, b] = [&weighted, &whole].map(|model| compare(model, &request, &ctx).unwrap());
            for (a, b) in [(&a.slow, &b.slow), (&a.fast, &b.fast)] {
                assert_eq!((a.count, a.mean_ns, a.spread, &a.filters), (b.count, b.mean_ns, b.spread, &b.filters));
                assert_eq!(b.count, b.members.len() as u64);
            }
            assert_eq!((a.extra_ns, a.tree.nodes.len()), (b.extra_ns, b.tree.nodes.len()), "{seed} {slow}");
            for (a, b) in a.tree.nodes.iter().zip(&b.tree.nodes) {
                let figures = |n: &DiffNode| [n.slow_mean_ns, n.fast_mean_ns, n.self_delta_ns, n.slow_affected];
                assert!(figures(a).into_iter().zip(figures(b)).all(|(a, b)| near(a, b)), "{a:?} {b:?}");
                // Deviations are those of all, chances those of what was kept.
                assert!(near(a.deviations.unwrap_or(0.0), b.deviations.unwrap_or(0.0)), "{a:?} {b:?}");
            }
            let causes =
                |c: &Comparison| c.causes.iter().map(|c| (c.rank, c.extra_ns, c.path.clone())).collect::<Vec<_>>();
            assert_eq!(causes(&a), causes(&b), "{seed} {slow}");
            let shares = |c: &Comparison| -> Vec<(f64, f64)> {
                c.causes.iter().map(|cause| (cause.slow_affected, cause.fast_affected)).collect()
            };
            assert!(shares(&a).iter().zip(shares(&b)).all(|(a, b)| near(a.0, b.0) && near(a.1, b.1)));
            let dimensions =
                |c: &Comparison| -> Vec<_> { c.dimensions.iter().map(|d| (d.name.clone(), d.value.clone())).collect() };
            assert_eq!(dimensions(&a), dimensions(&b), "{seed} {slow}");
            let heat = |model: &Model, c: &Comparison| {
                let size = HeatSize { times: 7, names: 7, rows: 9 };
                let map = HeatMap::new(model, &Metric::Start, [&c.slow.members, &c.fast.members], size).unwrap();
                let cells = |row| (0..map.columns.len()).map(move |column| (column, row));
                (0..map.rows()).flat_map(cells).map(|(column, row)| map.cell(column, row)).collect::<Vec<_>>()
            };
            assert_eq!(heat(&weighted, &a), heat(&whole, &b), "{seed} {slow}");
            for limit in ["p95>1ns", "mean>0.1%"] {
                let failing: FailIf = limit.parse().unwrap();
                let figures = |text: Option<String>| text.map(|text| text.split(" holds").next().unwrap().to_owned());
                let [a, b] = [(&weighted, &a), (&whole, &b)].map(|(model, c)| figures(failing.holds(model, c)));
                // Of fewer executions the same difference may be chance.
                assert!(a.is_none() || a == b, "{seed} {slow}: {a:?} {b:?}");
            }
        }
    }
}

#[test]
fn database_of_a_sample_is_read_with_its_weights() {
    let folder = folder();
    let path = folder.path().join("sample.why");
    let (mut model, ctx) = (random_model::model(2_000, 4), Ctx::new(1));
    let slow = slowest(&model);
    sample::weigh(&mut model, &slow, 20, 1);
    let mut writer = Writer::new(Facts::default(), Notices::default());
    writer.add(model, &ctx).unwrap();
    writer.save(Output::open(&path).unwrap()).unwrap();
    let database = Database::open(&path).unwrap();
    let part = &database.contents.recordings[0].parts[0];
    assert_eq!((part.count, part.whole), (20 + 99, 2_000));
    let model = database.model(0, &ctx).unwrap();
    let kept = KeptNumbers::of(&model.executions).unwrap();
    assert_eq!(kept, KeptNumbers { of: 2_000, kept: 119, in_full: 20, one_in: 20 });
    assert_eq!(kept.words(), "a sample: 119 of 2000 executions, 20 kept in full, the others one in 20 with weights");
}

fn document(words: &[&str]) -> Value {
    serde_json::from_slice(&answer(words)).unwrap()
}

#[test]
fn samples_answer_like_all_executions() {
    let folder = folder();
    let whole = built(folder.path(), LOCK, &[]);
    let file = format!("{whole}.sample");
    answer(&["build", "--sample", "5", "--symbols", &format!("{LOCK}/bin"), LOCK, "-o", &file]);
    assert!(std::fs::metadata(&file).unwrap().len() * 2 < std::fs::metadata(&whole).unwrap().len());
    let explained = |file: &str| document(&["explain", "--json", "--task", "app:request", file]);
    let (of_all, of_sample) = (explained(&whole), explained(&file));
    assert_eq!(of_sample["recording"]["executions"], of_all["recording"]["executions"]);
    for key in ["count", "mean_ns", "p50_ns", "max_ns", "filters"] {
        assert_eq!(of_sample["slow"][key], of_all["slow"][key], "{key}: slow ones are all there");
    }
    let near = |a: &Value, b: &Value| {
        let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
        assert!((a - b).abs() <= 0.05 * b.abs(), "{a} {b}");
    };
    near(&of_sample["fast"]["count"], &of_all["fast"]["count"]);
    near(&of_sample["fast"]["mean_ns"], &of_all["fast"]["mean_ns"]);
    near(&of_sample["extra_ns"], &of_all["extra_ns"]);
    let (a, b) = (&of_sample["causes"][0], &of_all["causes"][0]);
    assert_eq!((&a["kind"], &a["by"]["function"]), (&b["kind"], &b["by"]["function"]));
    near(&a["extra_ns"], &b["extra_ns"]);
    assert_eq!(of_sample["verdict"]["confident"], of_all["verdict"]["confident"], "{of_sample:#}");
    let causes: i64 = of_sample["causes"].as_array().unwrap().iter().map(|c| c["extra_ns"].as_i64().unwrap()).sum();
    assert_eq!(Some(causes), of_sample["extra_ns"].as_i64(), "causes add up");
    let text = String::from_utf8(answer(&["explain", "--task", "app:request", &file])).unwrap();
    assert!(text.replace("\n  ", " ").contains("kept in full, the others one in 5 with weights"), "{text}");
    let heat = document(&["diff", "--json", "--heat-map", "start", "--task", "app:request", &file]);
    let cells = heat["heat_map"]["all"].as_array().unwrap().iter().flat_map(|row| row.as_array().unwrap());
    let cells: i64 = cells.map(|cell| cell.as_i64().unwrap()).sum();
    assert_eq!(Some(cells), heat["recording"]["executions"].as_i64());
    let info = |file: &str| document(&["info", "--json", file])["tasks"][0].clone();
    assert_eq!(info(&file)["executions"], info(&whole)["executions"]);
    assert_eq!(info(&file)["max_ns"], info(&whole)["max_ns"]);
}

#[test]
fn merge_of_samples_is_the_sample_of_the_merge() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let wholes = [built(folder.path(), LOCK, &[]), built(folder.path(), CPU, &[])];
    let samples = [LOCK, CPU].map(|trace| {
        let file = path(&format!("{}.sample.why", trace.rsplit('/').next().unwrap()));
        answer(&["build", "--sample", "3", "--symbols", &format!("{trace}/bin"), trace, "-o", &file]);
        file
    });
    let merged = |name: &str, words: &[&str]| {
        let file = path(name);
        answer(&[&["merge", "-o", &file], words].concat());
        (std::fs::read(&file).unwrap(), file)
    };
    let [a, b] = [&samples[0], &samples[1]];
    let (of_samples, file) = merged("1.why", &[a, b]);
    assert!(of_samples == merged("2.why", &[b, a]).0, "any order");
    assert!(of_samples == merged("3.why", &[&file, a]).0, "idempotent");
    assert!(of_samples == merged("4.why", &["--sample", "3", &wholes[0], &wholes[1]]).0);
    let whole = merged("whole.why", &[&wholes[0], &wholes[1]]).1;
    // A merged file marks names that any of its parts has not proven: the answers are the same.
    let of_merged = merged("5.why", &["--sample", "3", &whole]).1;
    let explained = |file: &str| {
        let mut document = document(&["explain", "--json", "--task", "app:request", file]);
        document["warnings"].take();
        document
    };
    assert_eq!(explained(&of_merged), explained(&file));
    let again = output(&["merge", "--sample", "2", &file, "-o", &path("6.why")]);
    assert!(again.status.success() && said(&again).contains("a sample already: kept as they are"), "{again:?}");
    assert!(of_samples == std::fs::read(path("6.why")).unwrap());
    // A sample beside what it was taken of counts once, and is not merged with it.
    let refused = output(&["merge", &wholes[0], a, "-o", &path("7.why")]);
    assert!(!refused.status.success() && said(&refused).contains("or a sample of them"), "{refused:?}");
    let executions = |files: &[&str]| {
        let words = [&["explain", "--json", "--task", "app:request"], files].concat();
        document(&words)["recording"]["executions"].clone()
    };
    assert_eq!(executions(&[&wholes[0], a]), executions(&[&wholes[0]]));
    assert_eq!(executions(&[a, &wholes[0]]), executions(&[&wholes[0]]));
    assert!(!Path::new(&path("7.why")).exists());
}

#[test]
fn partial_results_and_trends_of_samples_have_the_weights() {
    let folder = folder();
    let whole = built(folder.path(), LOCK, &[]);
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let file = path("sample.why");
    answer(&["merge", "--sample", "4", &whole, "-o", &file]);
    let groups = ["--slow", "duration>=20ms", "--fast", "duration<20ms"];
    let partial = path("sample.partial");
    let task = ["--task", "app:request"];
    answer(&[&["build", "--partial", &file, "-o", &partial], &groups[..], &task].concat());
    let sums = document(&[&["diff", "--json", &partial], &task[..]].concat());
    let all = document(&[&["diff", "--json", &file], &groups[..], &task].concat());
    for group in ["slow", "fast"] {
        for key in ["count", "mean_ns"] {
            assert_eq!(sums[group][key], all[group][key], "{group} {key}");
        }
    }
    assert_eq!((&sums["executions"], &sums["extra_ns"]), (&all["recording"]["executions"], &all["extra_ns"]));
    assert!(sums["warnings"][0].as_str().unwrap().starts_with("a sample: "), "{:?}", sums["warnings"]);
    let trend = document(&[&["trend", "--json", &file], &task[..]].concat());
    let point = |trend: &Value| trend["points"][0].clone();
    let of_all = document(&[&["trend", "--json", &whole], &task[..]].concat());
    assert_eq!(point(&trend)["executions"], point(&of_all)["executions"]);
    assert_eq!(point(&trend)["mean_ns"], all_mean(&file));
    assert!(trend.to_string().contains("a sample: "), "{trend:#}");
}

/// The mean of all executions of the task in a file.
fn all_mean(file: &str) -> Value {
    let words = ["diff", "--json", "--task", "app:request", "--slow", "duration>=0ns", "--fast", "duration>=0ns", file];
    document(&words)["slow"]["mean_ns"].clone()
}

#[test]
fn options_of_samples_are_checked() {
    let folder = folder();
    let whole = built(folder.path(), LOCK, &[]);
    let out = folder.path().join("x.why").to_str().unwrap().to_owned();
    for (words, why) in [
        (vec!["build", "--sample", "1", LOCK], "1 is not in 2..=1000000"),
        (vec!["build", "--slow", "duration>1ms", LOCK], "add --sample N, or --partial"),
        (vec!["build", "--sample", "2", "--partial", &whole], "cannot be used with"),
        (vec!["merge", "--slow", "duration>1ms", &whole], "--sample"),
        (vec!["merge", "--sample", "2", "--slow", "field.none>1", &whole], "field.none"),
    ] {
        let refused = output(&[&words[..], &["-o", &out]].concat());
        assert!(!refused.status.success() && said(&refused).contains(why), "{words:?}: {}", said(&refused));
        assert!(!Path::new(&out).exists(), "{words:?}");
    }
}
