//! Exported tables have what the database has: every execution, metric, field, time, context and thread.

use crate::support::ask;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::model::context::ContextId;
use whyslow::parts::model::metric::{ABSENT, Unit};
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
        assert_eq!((value("whyslow.schema").as_deref(), value("whyslow.table").as_deref()), (Some("1"), Some(name)));
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

#[test]
fn export_has_all_that_the_database_has() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (file, tables) = (path("lock.why"), path("tables"));
    run(&["build", "--symbols", &format!("{LOCK}/bin"), LOCK, "-o", &file]);
    run(&["export", &file, "-o", &tables]);
    let tables = Path::new(&tables);
    let database = Database::open(Path::new(&file)).unwrap();
    let [executions, spent, contexts, threads, recordings] =
        ["executions", "spent", "contexts", "threads", "recordings"].map(|name| table(tables, name));
    for (at, task) in database.contents.tasks().iter().enumerate() {
        let model = database.model(at, &Ctx::new(1)).unwrap();
        let rows: BTreeMap<i64, &Row> = executions
            .iter()
            .filter(|row| text(row, "task") == task)
            .map(|row| (number(row, "execution"), row))
            .collect();
        assert_eq!(rows.len(), model.executions.len(), "{task}");
        let part = text(rows[&0], "part");
        let own: BTreeMap<(i64, i64), i64> = spent
            .iter()
            .filter(|row| text(row, "part") == part)
            .map(|row| ((number(row, "execution"), number(row, "context")), number(row, "spent_ns")))
            .collect();
        let mut times = 0;
        for (i, row) in &rows {
            let i = *i as usize;
            let who = &model.who[model.executions.who.at(i).index()];
            assert_eq!(number(row, "start_ns"), model.executions.start.at(i).ns());
            assert_eq!(number(row, "duration_ns"), model.executions.duration(i));
            assert_eq!((number(row, "pid"), number(row, "tid")), (who.pid.into(), who.tid.into()));
            assert_eq!(
                (text(row, "process"), text(row, "thread")),
                (model.names.get(who.process), model.names.get(who.thread))
            );
            assert_eq!(row["unsure"], Field::Bool(model.executions.unsure.at(i)));
            for time in model.executions.own.row(i) {
                assert_eq!(own[&(i as i64, time.context.raw().into())], time.ns as i64);
                times += 1;
            }
            for column in &model.executions.columns {
                let name = column.metric.name().replace('.', "_");
                let name = if column.metric.unit() == Unit::Ns { format!("{name}_ns") } else { name };
                let name = if row.contains_key(&format!("metric_{name}")) { format!("metric_{name}") } else { name };
                let Some(cell) = row.get(&name) else {
                    assert_eq!(name, "trace", "a metric without a column");
                    continue;
                };
                match (column.values.at(i), column.metric.unit()) {
                    (ABSENT, _) => assert_eq!(*cell, Field::Null, "{name}"),
                    (value, Unit::Name) => assert_eq!(*cell, Field::Str(model.name_of(value).to_owned()), "{name}"),
                    (value, _) => assert_eq!(*cell, Field::Long(value), "{name}"),
                }
            }
        }
        assert_eq!(own.len(), times, "{task}: no time is there twice");
        let of_part = |rows: &[Row]| rows.iter().filter(|row| text(row, "part") == part).cloned().collect::<Vec<Row>>();
        let paths: BTreeSet<String> = of_part(&contexts).iter().map(|row| text(row, "path").to_owned()).collect();
        assert_eq!(of_part(&contexts).len(), model.contexts.len());
        for id in (0..model.contexts.len()).map(ContextId::at) {
            let names =
                model.contexts.path(id).into_iter().map(|id| model.names.function(model.contexts.frame(id).name));
            assert!(paths.contains(&names.collect::<Vec<_>>().join(";")));
        }
        let held: i64 = of_part(&threads)
            .iter()
            .filter(|row| row["held_ns"] != Field::Null)
            .map(|row| number(row, "held_ns"))
            .sum();
        assert_eq!(held, model.contexts.who.values().sum::<u64>() as i64);
        assert_eq!(of_part(&threads).len(), model.who.len() + model.contexts.who.len());
        assert_eq!(of_part(&recordings).len(), model.traces.len());
    }
    // By day and host, which are in the path.
    let shown = files(tables).iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
    assert!(
        shown.iter().any(|path| path.contains("/executions/day=2026-") && path.contains("/host=tracebox/")),
        "{shown:?}"
    );
    // Again, and from a merged database: the same files.
    let bytes = |folder: &Path| files(folder).iter().map(|path| std::fs::read(path).unwrap()).collect::<Vec<_>>();
    let before = bytes(tables);
    run(&["merge", &file, "-o", &path("all.why")]);
    run(&["export", &path("all.why"), &file, "-o", tables.to_str().unwrap()]);
    assert!(bytes(tables) == before);
}

#[test]
fn export_refuses_what_is_no_database() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let tables = folder.path().join("tables");
    ask::refuses(&["export", LOCK, "-o", tables.to_str().unwrap()], 1, &["not a database", "whyslow build"]);
}
