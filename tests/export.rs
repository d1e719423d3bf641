//! Exported tables have what the database has: every execution, metric, field, time, context and thread.

use crate::support::ask;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::model::Model;
use whyslow::parts::model::context::ContextId;
use whyslow::parts::model::metric::ABSENT;
use whyslow::parts::saved::executions::Database;

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
        assert_eq!((value("whyslow.schema").as_deref(), value("whyslow.table").as_deref()), (Some("2"), Some(name)));
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
    for column in &e.columns {
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
