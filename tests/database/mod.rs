//! The execution database: every answer from it is the answer from the trace, to the byte; damaged files get one line.

mod damage;
mod merge;
mod partials;
mod samples;

use crate::support::{ask, random, random_model};
use ask::{output, refuses, said};
use proptest::prelude::*;
use random::Random;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::file::Output;
use whyslow::parts::base::notice::{Notice, Notices};
use whyslow::parts::base::time::Timestamp;
use whyslow::parts::compare::{self, compare};
use whyslow::parts::explain;
use whyslow::parts::model::Model;
use whyslow::parts::model::facts::{Facts, Lost, TraceFacts};
use whyslow::parts::model::join::{self, LabelNames, Renamed};
use whyslow::parts::saved::SavedFileError;
use whyslow::parts::saved::executions::{Database, Writer};

const LOCK: &str = "fixtures/traces/lock-contention";

const CPU: &str = "fixtures/traces/cpu-contention";

fn answer(words: &[&str]) -> Vec<u8> {
    let out = output(words);
    assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
    out.stdout
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A database of a fixture.
fn built(folder: &Path, trace: &str, more: &[&str]) -> String {
    let file = folder.join(format!("{}.why", trace.rsplit('/').next().unwrap())).to_str().unwrap().to_owned();
    let symbols = format!("{trace}/bin");
    let mut words = vec!["build", "--symbols", &symbols, trace, "-o", &file];
    words.extend(more);
    answer(&words);
    file
}

#[test]
fn database_gives_the_answers_of_its_trace() {
    let folder = folder();
    let file = built(folder.path(), LOCK, &[]);
    let tasks = Database::open(Path::new(&file)).unwrap().contents.tasks();
    assert_eq!(tasks, ["app:request", "client:call"]);
    for task in &tasks {
        for command in ["explain", "diff"] {
            let symbols = format!("{LOCK}/bin");
            let words = [command, "--json", "--task", task, "--slow", "duration>=p90", "--fast", "duration<=p60"];
            let from_trace = answer(&[&words[..], &["--symbols", &symbols, LOCK]].concat());
            let from_file = answer(&[&words[..], &[&file]].concat());
            assert!(from_trace == from_file, "{command} {task}: {}", String::from_utf8_lossy(&from_file));
        }
    }
}

#[test]
fn build_is_deterministic_and_replaces_the_old_file() {
    let folder = folder();
    let one = std::fs::read(built(folder.path(), CPU, &["--threads", "1"])).unwrap();
    let file = built(folder.path(), CPU, &["--threads", "3", "--chunk", "0"]);
    assert!(one == std::fs::read(&file).unwrap());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left in the folder");
}

#[test]
fn databases_are_compared_like_their_traces() {
    let folder = folder();
    let files = [built(folder.path(), LOCK, &[]), built(folder.path(), CPU, &[])];
    let symbols = [format!("{LOCK}/bin"), format!("{CPU}/bin")];
    let words = ["explain", "--json", "--task", "app:request", "--slow", "trace=old", "--fast", "trace=new"];
    let named = |old: &str, new: &str| [format!("old={old}"), format!("new={new}")];
    let traces = named(LOCK, CPU);
    let from_traces =
        answer(&[&words[..], &["--symbols", &symbols[0], "--symbols", &symbols[1], &traces[0], &traces[1]]].concat());
    let files = named(&files[0], &files[1]);
    let from_files = answer(&[&words[..], &[&files[0], &files[1]]].concat());
    let (a, b): (serde_json::Value, serde_json::Value) =
        (serde_json::from_slice(&from_traces).unwrap(), serde_json::from_slice(&from_files).unwrap());
    for part in ["task", "slow", "fast", "extra_ns", "verdict", "causes", "dimensions"] {
        assert_eq!(a[part], b[part], "{part}");
    }
}

#[test]
fn questions_about_events_are_refused_and_info_lists_the_contents() {
    let folder = folder();
    let file = built(folder.path(), LOCK, &["--task", "client:call"]);
    for command in [&["stats", "count"][..], &["anomalies"], &["dump"], &["query", "--attribute", "x"]] {
        refuses(&[command, &[&file]].concat(), 1, &["holds the executions alone", "on the original recording"]);
    }
    refuses(&["build", &file, "-o", "x"], 1, &["run `whyslow build` on the original recording"]);
    refuses(&["explain", "--task", "app:request", &file], 2, &["holds `client:call` only", "whyslow build --task"]);
    refuses(&["explain", &file, LOCK], 1, &["not a database", "build a database"]);
    let info: serde_json::Value = serde_json::from_slice(&answer(&["info", "--json", &file])).unwrap();
    let of_trace: serde_json::Value = serde_json::from_slice(&answer(&["info", "--full", "--json", LOCK])).unwrap();
    assert_eq!((&info["traces"], &info["lost"]), (&of_trace["traces"], &of_trace["lost"]));
    // Only traces have the waits without a cause and their reasons.
    let figures = |document: &serde_json::Value| {
        let task = document["tasks"].as_array().unwrap().iter().find(|t| t["name"] == "client:call").unwrap();
        ["executions", "p50_ns", "p95_ns", "p99_ns", "max_ns"].map(|key| task[key].as_i64().unwrap())
    };
    assert_eq!(figures(&info), figures(&of_trace));
    assert_eq!(info["tasks"].as_array().unwrap().len(), 1);
}

#[test]
fn fail_if_and_strict_hold_for_databases() {
    let folder = folder();
    let file = built(folder.path(), LOCK, &["--task", "app:request"]);
    let ask = |condition: &str, trace: &str| {
        output(&["explain", "--task", "app:request", "--slow", "duration>=p95", "--fail-if", condition, trace])
    };
    for condition in ["extra>1us", "extra>1h"] {
        let (of_file, of_trace) = (ask(condition, &file), ask(condition, LOCK));
        assert_eq!((of_file.status.code(), &of_file.stderr), (of_trace.status.code(), &of_trace.stderr), "{condition}");
    }
    assert_eq!(ask("extra>1us", &file).status.code(), Some(3));
    // A damaged packet is a fault of the recording, and stays one in its database.
    let mut notices = Notices::default();
    notices.add(Notice::DamagedPacket, 1, || "kernel/chan_0, packet 3".into());
    let mut model = random_model::model(50, 1);
    model.notices.merge(&notices);
    let mut writer = Writer::new(facts(), notices);
    writer.add(model, &Ctx::new(1)).unwrap();
    let path = folder.path().join("damaged.why");
    writer.save(Output::open(&path).unwrap()).unwrap();
    for command in ["explain", "info"] {
        // The answer is printed before the status says that it rests on a damaged recording.
        let strict = output(&[command, "--strict", path.to_str().unwrap()]);
        let said = said(&strict);
        assert_eq!((strict.status.code(), said.lines().count()), (Some(1), 1), "{command}: {said}");
        assert!(said.contains("malformed") && said.contains("packet 3"), "{command}: {said}");
        assert!(output(&[command, path.to_str().unwrap()]).status.success(), "{command}");
    }
}

#[test]
fn build_replaces_nothing_but_a_database() {
    let folder = folder();
    let precious = folder.path().join("notes.txt");
    std::fs::write(&precious, "precious").unwrap();
    refuses(&["build", LOCK, "-o", precious.to_str().unwrap()], 1, &["notes.txt", "not overwritten"]);
    assert_eq!(std::fs::read(&precious).unwrap(), b"precious");
    refuses(&["build", LOCK, "-o", "no/such/folder/x.why"], 1, &["x.why"]);
    refuses(&["build", "--task", "vmsplice", LOCK, "-o", "x.why"], 1, &["vmsplice", "no executions"]);
}

#[test]
fn functions_option_renames_functions() {
    let folder = folder();
    let file = built(folder.path(), LOCK, &["--task", "app:request"]);
    let map = folder.path().join("renamed.toml");
    std::fs::write(&map, "# version 2\n\"expensive_flush\" = \"expensive::flush(int)\"\n").unwrap();
    let words = ["diff", "--json", "--functions", map.to_str().unwrap(), &file];
    let (old, new) = (answer(&["diff", "--json", &file]), answer(&words));
    let old = String::from_utf8(old).unwrap();
    assert!(old.contains("expensive_flush"));
    let (old, new): (serde_json::Value, serde_json::Value) = (
        serde_json::from_str(&old.replace("expensive_flush", "expensive::flush(int)")).unwrap(),
        serde_json::from_slice(&new).unwrap(),
    );
    assert_eq!((&old["causes"], &old["metrics"]), (&new["causes"], &new["metrics"]));
    std::fs::write(&map, "# version 2\n\"a\" = \"b\"\nc d\n").unwrap();
    refuses(&words, 2, &["renamed.toml:3", "\"old name\" = \"new name\""]);
    refuses(&["explain", "--functions", "no/such", &file], 2, &["no/such"]);
}

/// Whether a file proves a name is kept beside the name: the function is the same one for whatever is compared.
#[test]
fn unproven_function_names_are_joined() {
    const NAME: &str = "function_7";
    let work = Ctx::new(1);
    let unproven = |model: &Model| -> Vec<String> {
        model.names.unproven().map(|name| model.names.function(name).into_owned()).collect()
    };
    let marked = || {
        let mut model = random_model::model(200, 1);
        let name = model.names.find(NAME).unwrap();
        model.names.mark_unproven(name);
        model
    };
    let from_file = || open(&written(&[marked()])).unwrap().model(0, &work).unwrap();
    assert_eq!(unproven(&from_file()), [format!("{NAME}?")]);
    assert!(unproven(&open(&written(&[random_model::model(200, 1)])).unwrap().model(0, &work).unwrap()).is_empty());
    // Together with a recording that proves it, on either side: one function, and not proven.
    let whole = |models| join::join(models, &Renamed::default(), &work).unwrap();
    let plain = whole(vec![random_model::model(200, 1), random_model::model(200, 2)]);
    for models in [vec![from_file(), random_model::model(200, 2)], vec![random_model::model(200, 2), from_file()]] {
        let both = whole(models);
        assert_eq!((both.contexts.len(), unproven(&both)), (plain.contexts.len(), vec![format!("{NAME}?")]));
        let shown = |text: &str| both.contexts.nodes().filter(|(_, f)| both.names.function(f.name) == text).count();
        assert!(shown(&format!("{NAME}?")) > 0 && shown(NAME) == 0);
    }
    // The user names it without the mark.
    let renamed: Renamed = [(NAME.to_owned(), "handle".to_owned())].into();
    assert_eq!(unproven(&join::join(vec![from_file()], &renamed, &work).unwrap()), ["handle?"]);
    // Answers show it, and are the same ones.
    let folder = folder();
    let explained = |model: &Model| {
        let path = folder.path().join("one.why");
        std::fs::write(&path, written(std::slice::from_ref(model))).unwrap();
        String::from_utf8(answer(&["explain", "--json", path.to_str().unwrap()])).unwrap()
    };
    let mut all = random_model::model(200, 1);
    let bare = explained(&all);
    for at in 0..250 {
        let name = all.names.intern(&format!("function_{at}"));
        all.names.mark_unproven(name);
    }
    let shown = explained(&all);
    assert!(shown.matches("?\"").count() > 10 && shown.replace('?', "") == bare, "{shown}");
}

#[test]
fn functions_of_the_runtime_are_read_back_and_joined() {
    let mut model = random_model::model(200, 1);
    let marked: Vec<String> = ["function_3", "function_7"].map(str::to_owned).into();
    for name in &marked {
        let name = model.names.find(name).unwrap();
        model.names.mark_runtime(name);
    }
    let runtime = |model: &Model| -> Vec<String> {
        let mut all: Vec<String> = model.names.runtime().map(|name| model.names.get(name).to_owned()).collect();
        all.sort();
        all
    };
    let work = Ctx::new(1);
    let from_file = open(&written(&[model])).unwrap().model(0, &work).unwrap();
    assert_eq!(runtime(&from_file), marked);
    let whole = join::join(vec![random_model::model(200, 2), from_file], &Renamed::default(), &work).unwrap();
    assert_eq!(runtime(&whole), marked);
}

fn facts() -> Facts {
    let begin = Some(Timestamp::new(-5));
    let trace = TraceFacts { path: "a/kernel".into(), format: "CTF 1.8".into(), begin, ..Default::default() };
    Facts { traces: vec![trace], lost: Lost { events: 3, packets: 1 << 40, streams: 2 } }
}

fn written(models: &[Model]) -> Vec<u8> {
    let mut notices = Notices::default();
    notices.add(Notice::DiscardedEvents, 3, || "packet 4".into());
    let mut writer = Writer::new(facts(), notices);
    models.iter().for_each(|m| writer.add(m.clone(), &Ctx::new(1)).unwrap());
    writer.bytes().unwrap()
}

/// The same executions, of a task of another name.
fn other_task(model: Model) -> Model {
    Model { tasks: vec!["app:other".into()].into(), ..model }
}

fn open(bytes: &[u8]) -> Result<Database, SavedFileError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    Database::open(file.path())
}

/// All that two models say; hash tables have no order.
fn same(a: &Model, b: &Model) -> Result<(), TestCaseError> {
    let names = |m: &Model| {
        (0..m.names.len())
            .map(|i| m.names.get(whyslow::parts::base::names::NameId::at(i)).to_owned())
            .collect::<Vec<_>>()
    };
    prop_assert_eq!(names(a), names(b));
    prop_assert_eq!((&a.traces, &a.tasks, a.task, &a.who), (&b.traces, &b.tasks, b.task, &b.who));
    prop_assert_eq!((&a.notices, a.origin, &a.contexts.who), (&b.notices, b.origin, &b.contexts.who));
    prop_assert!(a.contexts.nodes().eq(b.contexts.nodes()));
    let (x, y) = (&a.executions, &b.executions);
    prop_assert_eq!(
        (&x.start, &x.duration, &x.who, &x.trace, &x.unsure),
        (&y.start, &y.duration, &y.who, &y.trace, &y.unsure)
    );
    prop_assert_eq!(&x.cpu, &y.cpu);
    prop_assert_eq!((&x.columns, &x.own), (&y.columns, &y.own));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn model_is_read_as_it_was_written(seed in any::<u64>(), executions in 0..60_usize) {
        let models = [random_model::model(executions, seed), other_task(random_model::model(executions / 2, seed ^ 1))];
        let database = open(&written(&models)).unwrap();
        prop_assert_eq!(&database.contents.facts(), &facts());
        prop_assert_eq!(database.contents.notices().count(Notice::DiscardedEvents), 3);
        for (task, model) in models.iter().enumerate() {
            let read = database.model(task, &Ctx::new(2)).unwrap();
            let model = join::canonical(model.clone(), LabelNames::Kept, &Ctx::new(1)).unwrap();
            let model = Model { tasks: database.contents.tasks().into(), task, ..model };
            same(&model, &read)?;
            let durations: Vec<(i64, u64)> = model.executions.duration.iter().map(|ns| (ns, 1)).collect();
            prop_assert_eq!(database.durations(&model.tasks[task], |_| true, &Ctx::new(1)).unwrap(), durations);
        }
    }

    /// Joining the halves of a model gives the model back, but for the order of its tables.
    #[test]
    fn joined_models_have_all_executions_in_order(seed in any::<u64>(), n in 1..40_usize, m in 1..40_usize) {
        let parts = [random_model::model(n, seed), random_model::model(m, seed ^ 7)];
        let whole = join::join(parts.to_vec(), &Renamed::new(), &Ctx::new(1)).unwrap();
        prop_assert_eq!(whole.executions.len(), n + m);
        prop_assert!(whole.executions.start.iter().is_sorted() && explain::check(&whole, 1).is_empty());
        prop_assert_eq!((whole.traces.len(), whole.who.len()), (2, 16));
        let sum = |m: &Model, metric: &str| -> i64 {
            let column = m.executions.columns.iter().find(|c| c.metric.name() == metric).unwrap();
            column.values.iter().filter(|v| *v != i64::MIN).sum()
        };
        for metric in ["duration", "cpu", "blocked.thread", "syscalls", "bytes_read", "field.id"] {
            prop_assert_eq!(sum(&whole, metric), sum(&parts[0], metric) + sum(&parts[1], metric));
        }
    }
}
