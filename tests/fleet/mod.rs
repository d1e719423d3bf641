//! The statements of `whyslow sql` give the figures of `diff`, in the engines that are installed.
//!
//! `run.py` runs them. Sums are compared exactly, means to 1e-9.

use crate::support::{ask, random_model};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::file::Output;
use whyslow::parts::base::notice::Notices;
use whyslow::parts::compare::members::members;
use whyslow::parts::compare::{ComparisonRequest, compare};
use whyslow::parts::model::Model;
use whyslow::parts::model::execution::ExecutionId;
use whyslow::parts::model::facts::Facts;
use whyslow::parts::model::metric::Metric;
use whyslow::parts::model::sample;
use whyslow::parts::model::table_columns::context_keys;
use whyslow::parts::saved::executions::{Database, Writer};

/// A name that ends literals and comments, where it is not written with care.
const HOSTILE: &str = "put'; DROP TABLE x; -- \\' \" \n\u{1b}[31m {slow} \u{202e}é";

fn answer(words: &[&str]) -> String {
    let out = ask::output(words);
    assert!(out.status.success(), "{words:?}: {}", ask::said(&out));
    String::from_utf8(out.stdout).unwrap()
}

/// The rows of each query.
fn run(engine: &str, statements: &str, folder: &Path) -> Vec<Vec<Value>> {
    let path = folder.join(format!("{engine}.sql"));
    std::fs::write(&path, statements).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fleet/run.py");
    let out = Command::new("python3").arg(script).arg(engine).arg(&path).output().unwrap();
    assert!(out.status.success(), "{engine}: {}\n{statements}", String::from_utf8_lossy(&out.stderr));
    let rows: Vec<Vec<Value>> = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(rows.len(), 5);
    rows
}

/// An exact number, which some engines print as a text.
fn exact(value: &Value) -> i128 {
    match value {
        Value::String(text) => text.split('.').next().unwrap().parse().unwrap(),
        _ => i128::from(value.as_i64().unwrap_or_else(|| panic!("{value}"))),
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

fn near(a: f64, b: f64, scale: f64) -> bool {
    (a - b).abs() <= 1e-9 * scale.abs().max(a.abs()).max(b.abs()).max(1.0)
}

/// Rows by the text of a column.
fn by<'a>(rows: &'a [Value], column: &str) -> BTreeMap<String, &'a Value> {
    let text = |row: &Value| row[column].as_str().map_or_else(|| row[column].to_string(), str::to_owned);
    rows.iter().map(|row| (text(row), row)).collect()
}

/// Times in contexts and below, by key; of both groups.
fn sums(model: &Model, groups: [&[ExecutionId]; 2]) -> BTreeMap<String, [i128; 2]> {
    let (keys, weights) = (context_keys(model), model.executions.weights());
    let mut all: BTreeMap<String, [i128; 2]> = BTreeMap::new();
    for (side, group) in groups.into_iter().enumerate() {
        for execution in group {
            for time in model.executions.own.row(execution.index()).filter(|time| time.ns > 0) {
                for context in model.contexts.path(time.context) {
                    let weighted = i128::from(time.ns) * i128::from(weights.of(execution.index()));
                    all.entry(keys[context.index()].to_string()).or_default()[side] += weighted;
                }
            }
        }
    }
    all
}

/// The tables of a database, and the statements for a question, in an engine; against the answer of `diff`.
fn check(database: &Path, task: &str, groups: &[&str], engine: &str, folder: &Path) {
    let (file, tables) = (database.to_str().unwrap(), folder.join("tables"));
    let words = [&["--task", task], groups].concat();
    let diff: Value = serde_json::from_str(&answer(&[&["diff", "--json", file][..], &words].concat())).unwrap();
    let sql = [&["sql", "--engine", engine, "--tables", tables.to_str().unwrap(), file][..], &words].concat();
    let statements = answer(&sql);
    assert!(!statements.chars().any(|c| c.is_control() && c != '\n'), "{statements}");
    let rows = run(engine, &statements, folder);
    let what = format!("{engine} {file} {task} {groups:?}");
    let database = Database::open(database).unwrap();
    let place = database.contents.tasks().iter().position(|known| known == task).unwrap();
    let model = database.model(place, &Ctx::new(1)).unwrap();
    check_groups(&diff, &rows[0], &what);
    check_histogram(&diff, &rows[1], &what);
    let (slow, fast) = filters(&model, groups);
    let both = [members(&model, &slow, &fast).unwrap(), members(&model, &fast, &slow).unwrap()];
    check_tree(&model, (&both, slow, fast), &rows[2], &what);
    let weights = model.executions.weights();
    let counts = [0, 1].map(|side: usize| weights.sum(&both[side]) as usize);
    check_causes(&diff, &rows[3], counts, &what);
    let all: i128 = rows[4].iter().map(|row| exact(&row["executions"])).sum();
    let sum: i128 = rows[4].iter().map(|row| exact(&row["sum_ns"])).sum();
    assert_eq!(all, i128::from(model.executions.count()), "{what}");
    let weighted = |(i, ns): (usize, i64)| i128::from(ns) * i128::from(weights.of(i));
    assert_eq!(sum, model.executions.duration.iter().enumerate().map(weighted).sum::<i128>(), "{what}");
    assert_eq!(rows[4].iter().map(|row| exact(&row["slow"])).sum::<i128>(), counts[0] as i128, "{what}");
}

/// The filters of both groups: those that were asked for, or the proposed ones. (What `diff` prints is clean.)
fn filters(model: &Model, asked: &[&str]) -> (Filters, Filters) {
    if let [_, slow, _, fast] = asked {
        return (vec![slow.parse().unwrap()], vec![fast.parse().unwrap()]);
    }
    let labels: BTreeSet<&str> = model.traces.iter().map(|trace| trace.label.as_str()).collect();
    let request = ComparisonRequest { by_trace: labels.len() == 2, ..ComparisonRequest::default() };
    let proposed = compare(model, &request, &Ctx::new(1)).unwrap();
    (proposed.slow.filters, proposed.fast.filters)
}

fn check_groups(diff: &Value, rows: &[Value], what: &str) {
    let rows = by(rows, "side");
    for group in ["slow", "fast"] {
        let (row, of_diff) = (rows[group], &diff[group]);
        assert_eq!(exact(&row["executions"]), exact(&of_diff["count"]), "{what}");
        let mean = exact(&row["sum_ns"]) as f64 / exact(&row["executions"]) as f64;
        assert_eq!((mean.round() - number(&of_diff["mean_ns"])).abs(), 0.0, "{what}");
        assert!(near(number(&row["mean_ns"]), mean, mean), "{what}");
        assert_eq!(exact(&row["max_ns"]), exact(&of_diff["max_ns"]), "{what}");
    }
}

fn check_histogram(diff: &Value, rows: &[Value], what: &str) {
    let metrics = diff["metrics"].as_array().unwrap();
    let duration = metrics.iter().find(|metric| metric["name"] == "duration").unwrap();
    let rows = by(rows, "bin");
    let counts = |group: &str| duration[group].as_array().unwrap().iter().map(exact).collect::<Vec<_>>();
    for (bin, (slow, fast)) in counts("slow").into_iter().zip(counts("fast")).enumerate() {
        let row = rows.get(&bin.to_string());
        let counted = ["slow", "fast"].map(|group| row.map_or(0, |row| exact(&row[group])));
        assert_eq!(counted, [slow, fast], "{what}: bin {bin}");
        if let Some(row) = row {
            assert_eq!(exact(&row["from_ns"]), exact(&duration["bins"][bin]), "{what}");
        }
    }
}

type Filters = Vec<whyslow::parts::compare::filter::Filter>;

fn check_tree(
    model: &Model,
    (both, slow, fast): (&[Vec<ExecutionId>; 2], Filters, Filters),
    rows: &[Value],
    what: &str,
) {
    let rows = by(rows, "path_key");
    let expected = sums(model, [&both[0], &both[1]]);
    assert_eq!(rows.len(), expected.len(), "{what}");
    for (key, [slow, fast]) in &expected {
        let row = rows[key];
        assert_eq!([exact(&row["slow_sum_ns"]), exact(&row["fast_sum_ns"])], [*slow, *fast], "{what}: {row}");
    }
    let request = ComparisonRequest { slow, fast, ..ComparisonRequest::default() };
    let keys = context_keys(model);
    let tree = compare(model, &request, &Ctx::new(1)).unwrap().tree;
    assert_eq!(tree.nodes.len(), rows.len(), "{what}");
    for node in &tree.nodes {
        let row = rows[&keys[node.context.index()].to_string()];
        let scale = node.slow_mean_ns.max(node.fast_mean_ns);
        for (column, mean) in
            [("slow_mean_ns", node.slow_mean_ns), ("fast_mean_ns", node.fast_mean_ns), ("delta_ns", node.delta_ns)]
        {
            assert!(near(number(&row[column]), mean, scale), "{what} {column}: {row} {mean}");
        }
        assert_eq!(exact(&row["depth"]), i128::from(node.depth), "{what}");
    }
}

fn check_causes(diff: &Value, rows: &[Value], [slow, fast]: [usize; 2], what: &str) {
    let rows = by(rows, "cause");
    for cause in diff["causes"].as_array().unwrap().iter().filter(|cause| !cause["rank"].is_null()) {
        let row = rows[&cause["rank"].to_string()];
        let sums = ["slow_sum_ns", "fast_sum_ns"].map(|column| exact(&row[column]));
        let (numerator, pairs) = (sums[0] * fast as i128 - sums[1] * slow as i128, (slow * fast) as i128);
        // Rounded to the nearest, halves away from zero.
        let rounded = (2 * numerator.abs() + pairs) / (2 * pairs) * numerator.signum();
        assert_eq!(rounded, exact(&cause["extra_ns"]), "{what}: {cause}");
        assert!((number(&row["extra_ns"]) - rounded as f64).abs() <= 0.5 + 1e-3, "{what}: {row}");
    }
}

/// A database of a model under two labels, with names that are hard to write.
fn generated(seed: u64, folder: &Path) -> PathBuf {
    let mut files = Vec::new();
    for (at, label) in ["new", HOSTILE].into_iter().enumerate() {
        let mut model = random_model::model(60 + 7 * at, seed ^ (at as u64) << 32);
        model.traces[0].label = label.to_owned();
        let hostile = i64::from(model.names.intern(HOSTILE).raw());
        // As in a recording, where numbers of threads are names.
        for tid in 100..116 {
            model.names.intern(&tid.to_string());
        }
        let put = i64::from(model.names.find("put").unwrap().raw());
        for column in model.executions.columns.iter_mut().filter(|column| column.metric == Metric::Type) {
            column.values =
                std::mem::take(&mut column.values).into_iter().map(|v| if v == put { hostile } else { v }).collect();
        }
        // Of every third one a sample.
        if seed.is_multiple_of(3) {
            sample::weigh(&mut model, &[ExecutionId::at(1), ExecutionId::at(40)], 3, seed);
        }
        let path = folder.join(format!("{at}.why"));
        let mut writer = Writer::new(Facts::default(), Notices::default()).labelled(true);
        writer.add(model, &Ctx::new(1)).unwrap();
        writer.save(Output::open(&path).unwrap()).unwrap();
        files.push(path);
    }
    let all = folder.join("all.why");
    answer(&["merge", files[0].to_str().unwrap(), files[1].to_str().unwrap(), "-o", all.to_str().unwrap()]);
    all
}

/// Pairs of groups, one for each kind of condition.
fn questions() -> Vec<Vec<String>> {
    let pairs = [
        ("duration>=p90", "duration<=p60"),
        ("bytes_read>8KiB", "bytes_read<=8KiB"),
        ("threads=2,3", "threads=1"),
        ("start>4ms", "start<=4ms"),
        ("end in 2ms..5ms", "end>=5ms"),
        ("cpu>1ms", "blocked.disk!=0ns"),
        ("duration!=3ms", "host=host"),
        ("thread=worker-1", "thread!=worker-1"),
        ("field.id<70030", "field.id>=70030"),
        ("tid=103", "tid!=103"),
    ];
    let pairs = pairs.map(|(slow, fast)| [slow.to_owned(), fast.to_owned()]).into_iter();
    let hostile =
        [[format!("type={HOSTILE}"), format!("type!={HOSTILE}")], [format!("trace={HOSTILE}"), "trace=new".to_owned()]];
    let words = |[slow, fast]: [String; 2]| vec!["--slow".to_owned(), slow, "--fast".to_owned(), fast];
    pairs.chain(hostile).map(words).chain([Vec::new()]).collect()
}

fn on_generated_models(engine: &str) {
    let questions = questions();
    for seed in 0..50 {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let database = generated(seed, folder.path());
        answer(&["export", database.to_str().unwrap(), "-o", folder.path().join("tables").to_str().unwrap()]);
        let question = &questions[seed as usize % questions.len()];
        let words: Vec<&str> = question.iter().map(String::as_str).collect();
        check(&database, "app:request", &words, engine, folder.path());
    }
}

fn on_fixtures(engine: &str) {
    let mut asked = 0;
    for name in ["lock-contention", "cpu-contention", "disk-contention", "rare-sleep", "many-threads"] {
        let trace = ask::fixture(name);
        if !trace.is_dir() {
            continue;
        }
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let database = folder.path().join("a.why");
        answer(&["build", trace.to_str().unwrap(), "-o", database.to_str().unwrap()]);
        answer(&["export", database.to_str().unwrap(), "-o", folder.path().join("tables").to_str().unwrap()]);
        for task in Database::open(&database).unwrap().contents.tasks() {
            for groups in [&[][..], &["--slow", "duration>=p90", "--fast", "duration<=p60"]] {
                check(&database, &task, groups, engine, folder.path());
                asked += 1;
            }
        }
    }
    assert!(asked >= 4, "{asked} questions");
}

#[test]
#[ignore = "needs DuckDB for Python"]
fn statements_give_the_figures_of_diff_in_duckdb() {
    on_fixtures("duckdb");
    on_generated_models("duckdb");
}

#[test]
#[ignore = "needs chdb, ClickHouse for Python"]
fn statements_give_the_figures_of_diff_in_clickhouse() {
    on_fixtures("clickhouse");
    on_generated_models("clickhouse");
}

#[test]
#[ignore = "needs PySpark and Java"]
fn statements_give_the_figures_of_diff_in_spark() {
    on_fixtures("spark");
}

/// The literals of a hostile name are the name, and nothing ends early: each statement is one of the documented ones.
#[test]
fn sql_writes_hostile_names_as_literals() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let database = generated(3, folder.path());
    let file = database.to_str().unwrap();
    let ask = |engine: &str, slow: &str| answer(&["sql", "--engine", engine, "--slow", slow, file]);
    let documented = include_str!("../../docs/fleet/comparison.sql").matches(";\n").count();
    for (engine, literal, definitions) in [
        ("duckdb", "type\" = ('put''; DROP TABLE x; -- \\'' \" ' || chr(10) || '' || chr(27) || '[31m {slow} '", 4),
        ("clickhouse", r#"type` = 'put\'; DROP TABLE x; -- \\\' " \x0A\x1B[31m {slow} \xE2\x80\xAEé'"#, 5),
        ("spark", r#"type` = 'put\'; DROP TABLE x; -- \\\' " \u000A\u001B[31m {slow} \u202Eé'"#, 4),
    ] {
        let text = ask(engine, &format!("type={HOSTILE}"));
        assert!(text.contains(literal), "{engine}: {text}");
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{engine}");
        assert_eq!(text.matches(";\n").count(), documented + definitions, "{engine}");
    }
    let thresholds = ask("duckdb", "duration>=p90");
    assert!(!thresholds.contains("p90)") && thresholds.contains("duration_ns >= "), "{thresholds}");
    ask::refuses(&["sql", "--tables", "a*b", file], 2, &["--tables a*b", "pattern"]);
    ask::refuses(&["sql", "--slow", "execution=3", file], 2, &["execution=3", "no column"]);
}
