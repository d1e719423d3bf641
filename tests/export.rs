//! Exported tables have what the database has: every execution, metric, field, time, context and thread.

use crate::support::random::Random;
use crate::support::{ask, random_model};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::file::Output;
use whyslow::parts::base::notice::Notices;
use whyslow::parts::model::Model;
use whyslow::parts::model::context::ContextId;
use whyslow::parts::model::facts::Facts;
use whyslow::parts::model::metric::ABSENT;
use whyslow::parts::model::sample;
use whyslow::parts::saved::executions::{Database, Writer};

const LOCK: &str = "fixtures/traces/lock-contention";

/// A row: its cells by column.
type Row = BTreeMap<String, Field>;

fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// All rows of a table.
fn table(folder: &Path, name: &str) -> Vec<Row> {
    let mut all = Vec::new();
    for path in files(&folder.join(name)) {
        let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        let about = reader.metadata().file_metadata().key_value_metadata().unwrap();
        let value = |key: &str| about.iter().find(|pair| pair.key == key).and_then(|pair| pair.value.clone());
        assert_eq!((value("whyslow.schema").as_deref(), value("whyslow.table").as_deref()), (Some("3"), Some(name)));
        for row in reader.get_row_iter(None).unwrap() {
            all.push(row.unwrap().into_columns().into_iter().collect());
        }
    }
    all
}

fn number(row: &Row, column: &str) -> i64 {
    if let Field::Long(number) = row[column] { number } else { panic!("{column}: {:?}", row[column]) }
}

fn text<'a>(row: &'a Row, column: &str) -> &'a str {
    if let Field::Str(text) = &row[column] { text } else { panic!("{column}: {:?}", row[column]) }
}

fn run(words: &[&str]) {
    let out = ask::output(words);
    assert!(out.status.success(), "{words:?}: {}", ask::said(&out));
}

/// The tables of an export.
struct Tables {
    executions: Vec<Row>,
    spent: Vec<Row>,
    contexts: Vec<Row>,
    threads: Vec<Row>,
    recordings: Vec<Row>,
}

impl Tables {
    fn read(folder: &Path) -> Tables {
        let [executions, spent, contexts, threads, recordings] =
            ["executions", "spent", "contexts", "threads", "recordings"].map(|name| table(folder, name));
        Tables { executions, spent, contexts, threads, recordings }
    }
}

fn of_part<'a>(rows: &'a [Row], part: &'a str) -> Vec<&'a Row> {
    rows.iter().filter(|row| text(row, "part") == part).collect()
}

/// The row of an execution has what the model has of it.
fn check_execution(model: &Model, i: usize, row: &Row) {
    let e = &model.executions;
    let who = &model.who[e.who.at(i).index()];
    assert_eq!((number(row, "start_ns"), number(row, "duration_ns")), (e.start.at(i).ns(), e.duration(i)));
    assert_eq!((number(row, "pid"), number(row, "tid")), (who.pid.into(), who.tid.into()));
    let names = [who.process, who.thread].map(|name| model.names.get(name));
    assert_eq!(["process", "thread"].map(|column| text(row, column)), names);
    assert_eq!(row["unsure"], Field::Bool(e.unsure.at(i)));
    for column in e.columns.iter().filter(|column| column.metric.name() != "start") {
        let name = column.metric.name().replace('.', "_");
        let columns = [format!("metric_{name}_ns"), format!("metric_{name}"), format!("{name}_ns"), name.clone()];
        let Some(cell) = columns.iter().find_map(|column| row.get(column)) else {
            assert_eq!(name, "trace", "a metric without a column");
            continue;
        };
        let value = column.values.at(i);
        let is_equal = match cell {
            Field::Null => value == ABSENT,
            Field::Str(text) => text == model.name_of(value),
            Field::Long(number) => *number == value,
            _ => false,
        };
        assert!(is_equal, "{name}: {cell:?}, not {value}");
    }
}

/// The rows of a task have what its model has.
fn check_task(model: &Model, task: &str, tables: &Tables) {
    let of_task = tables.executions.iter().filter(|row| text(row, "task") == task);
    let rows: BTreeMap<i64, &Row> = of_task.map(|row| (number(row, "execution"), row)).collect();
    assert_eq!(rows.len(), model.executions.len(), "{task}");
    let part = text(rows[&0], "part");
    let time = |row: &Row| ((number(row, "execution"), number(row, "context")), number(row, "spent_ns"));
    let own: BTreeMap<(i64, i64), i64> = of_part(&tables.spent, part).into_iter().map(time).collect();
    let mut times = 0;
    for (i, row) in &rows {
        check_execution(model, *i as usize, row);
        for time in model.executions.own.row(*i as usize) {
            assert_eq!(own[&(*i, time.context.raw().into())], time.ns as i64);
            times += 1;
        }
    }
    assert_eq!((own.len(), of_part(&tables.spent, part).len()), (times, times), "{task}: no time is there twice");
    let contexts = of_part(&tables.contexts, part);
    let paths: BTreeSet<&str> = contexts.iter().map(|row| text(row, "path")).collect();
    assert_eq!(contexts.len(), model.contexts.len());
    for id in (0..model.contexts.len()).map(ContextId::at) {
        let names = model.contexts.path(id).into_iter().map(|id| model.names.function(model.contexts.frame(id).name));
        assert!(paths.contains(names.collect::<Vec<_>>().join(";").as_str()));
    }
    let threads = of_part(&tables.threads, part);
    let held = threads.iter().filter(|row| row["held_ns"] != Field::Null).map(|row| number(row, "held_ns"));
    assert_eq!(held.sum::<i64>(), model.contexts.who.values().sum::<u64>() as i64);
    assert_eq!(threads.len(), model.who.len() + model.contexts.who.len());
    assert_eq!(of_part(&tables.recordings, part).len(), model.traces.len());
}

#[test]
fn export_has_all_that_the_database_has() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (file, folder_of_tables) = (path("lock.why"), path("tables"));
    run(&["build", "--symbols", &format!("{LOCK}/bin"), LOCK, "-o", &file]);
    run(&["export", &file, "-o", &folder_of_tables]);
    let folder_of_tables = Path::new(&folder_of_tables);
    let database = Database::open(Path::new(&file)).unwrap();
    let tables = Tables::read(folder_of_tables);
    for (at, task) in database.contents.tasks().iter().enumerate() {
        check_task(&database.model(at, &Ctx::new(1)).unwrap(), task, &tables);
    }
    // By day and host, which are in the path.
    let shown: Vec<String> = files(folder_of_tables).iter().map(|path| path.display().to_string()).collect();
    let is_placed = |path: &String| path.contains("/executions/day=2026-") && path.contains("/host=tracebox/");
    assert!(shown.iter().any(is_placed), "{shown:?}");
    // Again, and from a merged database: the same files.
    let bytes = || files(folder_of_tables).iter().map(|path| std::fs::read(path).unwrap()).collect::<Vec<_>>();
    let before = bytes();
    run(&["merge", &file, "-o", &path("all.why")]);
    run(&["export", &path("all.why"), &file, "-o", folder_of_tables.to_str().unwrap()]);
    assert!(bytes() == before);
}

#[test]
fn export_refuses_what_is_no_database() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let tables = folder.path().join("tables");
    ask::refuses(&["export", LOCK, "-o", tables.to_str().unwrap()], 1, &["not a database", "whyslow build"]);
}

/// The database that import writes.
fn imported(tables: &Path, folder: &Path) -> Vec<u8> {
    let path = folder.join("imported.why");
    run(&["import", tables.to_str().unwrap(), "-o", path.to_str().unwrap()]);
    std::fs::read(path).unwrap()
}

/// Export and import give the same bytes: of a recording what `build` wrote, of several what `merge` wrote.
#[test]
fn import_gives_back_the_database() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let traces = ["traces/lock-contention", "traces/cpu-contention", "archives/late_sender/trace/traces.otf2"];
    let mut files = Vec::new();
    for trace in traces {
        let (trace, at) = (format!("fixtures/{trace}"), files.len());
        if !Path::new(env!("CARGO_MANIFEST_DIR")).join(&trace).exists() {
            continue;
        }
        let file = path(&format!("{at}.why"));
        run(&["build", &trace, "-o", &file]);
        let tables = folder.path().join(format!("tables-{at}"));
        run(&["export", &file, "-o", tables.to_str().unwrap()]);
        assert!(imported(&tables, folder.path()) == std::fs::read(&file).unwrap(), "{trace}");
        files.push(file);
    }
    assert!(files.len() >= 2);
    let all = path("all.why");
    run(&["merge", &format!("new={}", files[0]), &files[1], "-o", &all]);
    run(&["export", &all, "-o", &path("tables")]);
    assert!(imported(Path::new(&path("tables")), folder.path()) == std::fs::read(&all).unwrap());
}

/// A model whose names are hard to write, with values at the ends of their types.
fn random_database(seed: u64, path: &Path) {
    let executions = if seed == 3 { 0 } else { 50 };
    let mut model = random_model::model(executions, seed);
    let hostile = model.names.intern("a;b\n\u{1b}é");
    model.names.mark_unproven(hostile);
    model.who[0].thread = hostile;
    model.traces[0].label = "a;b\n\u{1b}é".to_owned();
    let e = &mut model.executions;
    for (column, value) in e.columns.iter_mut().rev().zip([i64::MAX, i64::MIN + 1]) {
        let last = column.values.len().saturating_sub(1);
        let changed: Vec<i64> =
            column.values.iter().enumerate().map(|(i, old)| if i == last { value } else { old }).collect();
        column.values = changed.into();
    }
    if seed == 6 {
        sample::weigh(&mut model, &[], 6, seed);
    }
    let mut writer = Writer::new(Facts::default(), Notices::default()).labelled(seed.is_multiple_of(2));
    writer.add(model, &Ctx::new(1)).unwrap();
    writer.save(Output::open(path).unwrap()).unwrap();
}

#[test]
fn import_gives_back_random_models() {
    for seed in 0..8 {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let (file, tables) = (folder.path().join("a.why"), folder.path().join("tables"));
        random_database(seed, &file);
        run(&["export", file.to_str().unwrap(), "-o", tables.to_str().unwrap()]);
        assert!(imported(&tables, folder.path()) == std::fs::read(&file).unwrap(), "seed {seed}");
    }
}

/// Files that are missing, cut off, of another part or of another program: a line each, and no database.
#[test]
fn import_refuses_what_is_not_whole() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (file, tables) = (folder.path().join("a.why"), folder.path().join("tables"));
    random_database(1, &file);
    run(&["export", file.to_str().unwrap(), "-o", tables.to_str().unwrap()]);
    let output = folder.path().join("out.why");
    let refused = |why: &str| {
        ask::refuses(&["import", tables.to_str().unwrap(), "-o", output.to_str().unwrap()], 1, &[why]);
        assert!(!output.exists());
    };
    let of_table = |table: &str| files(&tables.join(table)).pop().unwrap();
    for table in ["executions", "spent", "contexts", "threads", "recordings"] {
        let path = of_table(table);
        let whole = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        refused("part ");
        std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        refused(path.to_str().unwrap());
        std::fs::copy(of_table("paths"), &path).unwrap();
        refused("no table `");
        std::fs::write(&path, &whole).unwrap();
    }
    // Twice, under another host.
    let path = of_table("executions");
    let copy = tables.join("executions/day=2001-01-01/host=b").join(path.file_name().unwrap());
    std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
    std::fs::copy(&path, &copy).unwrap();
    refused("100 of its 50 executions are there");
    std::fs::remove_file(&copy).unwrap();
    run(&["import", tables.to_str().unwrap(), "-o", output.to_str().unwrap()]);
    let nothing = folder.path().join("nothing");
    ask::refuses(&["import", nothing.to_str().unwrap(), "-o", output.to_str().unwrap()], 1, &["no tables"]);
}

/// Tables of another version, and without a column: a line that names the file and what it lacks.
#[test]
fn import_refuses_other_versions_and_columns() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (file, tables) = (folder.path().join("a.why"), folder.path().join("tables"));
    random_database(1, &file);
    run(&["export", file.to_str().unwrap(), "-o", tables.to_str().unwrap()]);
    let output = folder.path().join("out.why");
    // Of the same length, since the footer says how long it is.
    for (table, old, new, why) in [
        ("spent", &b"whyslow.schema\x18\x013"[..], &b"whyslow.schema\x18\x019"[..], "tables of version \"9\""),
        ("executions", b"start_ns", b"stopp_ns", "no column `start_ns`"),
        ("contexts", b"parent", b"purant", "no column `parent`"),
    ] {
        let path = files(&tables.join(table)).pop().unwrap();
        let whole = std::fs::read(&path).unwrap();
        let mut changed = whole.clone();
        let places: Vec<usize> = (0..whole.len()).filter(|at| whole[*at..].starts_with(old)).collect();
        assert!(!places.is_empty(), "{table} has {why}");
        places.iter().for_each(|at| changed[*at..at + new.len()].copy_from_slice(new));
        std::fs::write(&path, changed).unwrap();
        let words = ["import", tables.to_str().unwrap(), "-o", output.to_str().unwrap()];
        ask::refuses(&words, 1, &[why, path.to_str().unwrap(), "export"]);
        std::fs::write(&path, whole).unwrap();
    }
}

/// Damaged bytes anywhere in a table: an error in one line or, where nothing depends on the byte, the same database.
#[test]
fn import_survives_damaged_tables() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (file, tables) = (folder.path().join("a.why"), folder.path().join("tables"));
    random_database(1, &file);
    run(&["export", file.to_str().unwrap(), "-o", tables.to_str().unwrap()]);
    let output = folder.path().join("out.why");
    let mut dice = Random::new(45);
    for table in ["executions", "spent", "contexts", "threads", "recordings"] {
        let path = files(&tables.join(table)).pop().unwrap();
        let whole = std::fs::read(&path).unwrap();
        for round in 0..40 {
            let mut damaged = whole.clone();
            // The footer, at the end, says where everything is.
            let from = if round % 2 == 0 { 0 } else { whole.len() * 3 / 4 };
            for _ in 0..1 + round % 3 {
                let at = from + dice.below(whole.len() - from);
                damaged[at] ^= 1 << dice.below(8);
            }
            std::fs::write(&path, damaged).unwrap();
            let out = ask::output(&["import", tables.to_str().unwrap(), "-o", output.to_str().unwrap()]);
            let said = ask::said(&out);
            match out.status.code() {
                Some(0) => assert!(std::fs::read(&output).unwrap() == std::fs::read(&file).unwrap(), "{table} {round}"),
                Some(1) => assert!(said.starts_with("whyslow: ") && said.trim_end().lines().count() == 1, "{said}"),
                other => panic!("{table} {round}: {other:?} {said}"),
            }
        }
        std::fs::write(&path, whole).unwrap();
    }
}

/// The goal is one and a half times the database; the tables hold durations and kinds, which a database derives.
#[test]
#[ignore = "slow: a database of a million executions; prints how long a release binary takes"]
fn export_of_a_million_executions_is_of_bounded_size() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("million");
    std::fs::create_dir_all(&folder).unwrap();
    let (file, tables) = (folder.join("million.why"), folder.join("tables"));
    if !file.exists() {
        let mut writer = Writer::new(Facts::default(), Notices::default());
        writer.add(random_model::model(1_000_000, 1), &Ctx::new(2)).unwrap();
        writer.save(Output::open(&file).unwrap()).unwrap();
    }
    let start = std::time::Instant::now();
    run(&["export", file.to_str().unwrap(), "-o", tables.to_str().unwrap()]);
    let took = start.elapsed();
    let bytes = |path: &Path| std::fs::metadata(path).unwrap().len();
    let of_tables: u64 = files(&tables).iter().map(|path| bytes(path)).sum();
    println!("{took:?}, {of_tables} bytes of tables, {} of the database", bytes(&file));
    assert!(4 * of_tables <= 7 * bytes(&file));
}

/// The tables of partial results have the sums that `diff` of them shows.
#[test]
fn export_of_partial_results_has_their_sums() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (file, sums) = (path("a.why"), path("a.partial"));
    run(&["build", LOCK, "-o", &file]);
    let task = ["--task", "app:request"];
    run(&[&["build", "--partial", "--slow", "duration>=20ms", &file, "-o", &sums][..], &task].concat());
    run(&["export", &sums, "-o", &path("tables")]);
    let answer = ask::json(&["diff", "--json", &sums]);
    let rows = table(Path::new(&path("tables")), "partials");
    for (side, mean) in [("slow", "slow_mean_ns"), ("fast", "fast_mean_ns")] {
        let of_side: Vec<&Row> = rows.iter().filter(|row| text(row, "side") == side).collect();
        let count = answer[side]["count"].as_f64().unwrap();
        assert!(of_side.iter().all(|row| number(row, "executions") as f64 == count));
        let decimal = |row: &Row| match &row["sum_ns"] {
            Field::Decimal(value) => {
                let bytes: [u8; 16] = value.data().try_into().unwrap();
                i128::from_be_bytes(bytes) as f64
            }
            other => panic!("{other:?}"),
        };
        let mut means: Vec<f64> = of_side.iter().map(|row| decimal(row) / count).collect();
        let nodes = answer["tree"].as_array().unwrap();
        let mut expected: Vec<f64> =
            nodes.iter().map(|node| node[mean].as_f64().unwrap()).filter(|mean| *mean > 0.0).collect();
        means.sort_by(f64::total_cmp);
        expected.sort_by(f64::total_cmp);
        assert_eq!(means.len(), expected.len());
        let is_near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * b;
        assert!(means.iter().zip(&expected).all(is_near), "{means:?} {expected:?}");
    }
    let lengths = table(Path::new(&path("tables")), "lengths");
    let of = |side: &str| -> i64 {
        lengths.iter().filter(|row| text(row, "side") == side).map(|row| number(row, "executions")).sum()
    };
    let counts = ["slow", "fast"].map(|side| answer[side]["count"].as_i64().unwrap());
    assert_eq!([of("slow"), of("fast")], counts);
    assert_eq!(of("all"), answer["executions"].as_i64().unwrap());
    let in_path = files(Path::new(&path("tables"))).iter().any(|path| path.to_string_lossy().contains("host=tracebox"));
    assert!(in_path);
}
