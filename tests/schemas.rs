//! Every JSON document that a command prints obeys its schema in `docs/schemas`, over all recordings in `fixtures`.
//!
//! The schemas are closed, so that a new key fails, and list the required keys, so that a missing key fails. A property
//! that no document has fails as well: the schemas describe no key that was removed.

use crate::support::{ask, json_schema};
use ask::{run, said, whyslow};
use json_schema::{Report, Schemas};
use rayon::prelude::*;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::compare::arranged::{Arrangement, invert};
use whyslow::parts::compare::functions::{by_function, sandwich};
use whyslow::parts::compare::heat_map::{HeatMap, HeatSize, axes};
use whyslow::parts::input::Argument;
use whyslow::parts::model::settings::Settings;
use whyslow::parts::session::{OpenOptions, Session};
use whyslow::parts::symbols::files::SymbolPaths;
use whyslow::parts::tui::bookmarks::{Bookmark, BookmarkPlace, with_bookmarks};
use whyslow::parts::view::anomalies;
use whyslow::parts::view::diff_parts::DiffParts;

/// Described properties that no recording in `fixtures` shows: a kernel recording with waits without a known cause.
const NOT_IN_FIXTURES: [&str; 4] = ["pid", "tid", "thread", "process"];

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn schemas() -> Schemas {
    Schemas::read(&repository().join("docs/schemas"))
}

/// The recordings in `fixtures`: folders of CTF traces, OTF2 archives, perf.data and trace.dat.
fn recordings() -> Vec<PathBuf> {
    let list = |folder: &str| {
        let entries = std::fs::read_dir(repository().join("fixtures").join(folder)).unwrap();
        entries.map(|e| e.unwrap().path()).collect::<Vec<_>>()
    };
    let mut all = list("traces");
    all.retain(|path| path.is_dir());
    all.extend(list("archives").into_iter().map(|path| path.join("trace")).filter(|path| path.is_dir()));
    let is_recording = |path: &PathBuf| path.extension().is_some_and(|e| e == "data" || e == "dat");
    all.extend(list("recorders").into_iter().filter(is_recording));
    all.push(repository().join("fixtures/recorders/pair"));
    all.extend([repository().join("fixtures/texts/profile.txt"), repository().join("fixtures/profiles/new.data")]);
    all.sort();
    assert!(all.len() >= 18, "{all:?}");
    all
}

/// The document that a command prints, or one for each line; none where the recording cannot answer it.
fn printed(words: &[&str], recording: &Path) -> Vec<Value> {
    let out = run(whyslow(words).arg("--json").arg(recording));
    match out.status.code() {
        Some(0) => serde_json::Deserializer::from_slice(&out.stdout).into_iter().map(Result::unwrap).collect(),
        Some(1 | 2) if said(&out).starts_with("whyslow: ") => Vec::new(),
        other => panic!("{words:?} {}: {other:?}: {}", recording.display(), said(&out)),
    }
}

/// The documents that all commands print about a recording.
fn documents(recording: &Path) -> Vec<Value> {
    let commands: [&[&str]; 14] = [
        &["explain"],
        // The other program's samples are left out.
        &["explain", "--task", "profile=server"],
        &["diff", "--max-nodes", "200"],
        &["diff", "--executions", "0,1"],
        &["executions", "--slowest", "3"],
        &["anomalies"],
        &["stats", "count"],
        &["stats", "cpu"],
        &["stats", "io"],
        &["info"],
        &["info", "--full"],
        &["info", "--timings"],
        &["query", "--overview", "--points", "7"],
        &["timeline", "--rows", "5", "--columns", "9", "--cpus"],
    ];
    let query = ["threads/*/state", "cpus/*/thread"];
    let query = query.map(|attribute| vec!["query", "--attribute", attribute, "--longest", "3"]);
    let words = commands.into_iter().map(<[&str]>::to_vec).chain(query);
    words.flat_map(|words| printed(&words, recording)).collect()
}

/// The document of partial results.
fn of_partial_results() -> (PathBuf, Value) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (database, sums) = (path("a.why"), path("a.partial"));
    let recording = repository().join("fixtures/traces/lock-contention");
    for words in [
        &["build", recording.to_str().unwrap(), "-o", &database][..],
        &["build", "--partial", "--slow", "duration>=20ms", &database, "-o", &sums],
    ] {
        assert!(run(&mut whyslow(words)).status.success(), "{words:?}");
    }
    let mut printed = printed(&["diff"], Path::new(&sums));
    (recording, printed.pop().unwrap())
}

#[test]
fn documents_obey_their_schemas() {
    let schemas = schemas();
    let mut documents: Vec<(PathBuf, Value)> = recordings()
        .into_par_iter()
        .flat_map_iter(|path| documents(&path).into_iter().map(move |document| (path.clone(), document)))
        .collect();
    documents.push(of_partial_results());
    documents.extend(crate::trend::documents().into_iter().map(|document| (PathBuf::from("made up"), document)));
    let mut report = Report::default();
    for name in schemas.documents() {
        let of_name = |(_, document): &&(PathBuf, Value)| schemas.file_of(document) == Some(name);
        assert!(documents.iter().any(|d| of_name(&d)), "no recording has a document of {name}");
    }
    for (recording, document) in &documents {
        let file = schemas.file_of(document).unwrap_or_else(|| panic!("no schema for {}", document["schema"]));
        schemas.check(file, document, &mut report);
        assert!(report.deviations.is_empty(), "{} of {}: {:#?}", file, recording.display(), report.deviations);
    }
    exported(&schemas, &mut report);
    let is_known = |pointer: &str| {
        let name = pointer.strip_prefix("/$defs/unexplained/properties/");
        // Nor one in which a function is the cause over several kinds.
        let is_of_parts = pointer.starts_with("/$defs/cause/properties/parts");
        is_of_parts || name.is_some_and(|name| NOT_IN_FIXTURES.contains(&name))
    };
    let unseen: Vec<_> = schemas.properties().difference(&report.seen).cloned().collect();
    let unseen: Vec<_> = unseen.into_iter().filter(|place| !is_known(&place.pointer)).collect();
    assert!(unseen.is_empty(), "properties that no document has: {unseen:#?}");
}

/// The interface exports the same documents with the selected propagation path.
fn exported(schemas: &Schemas, report: &mut Report) {
    let ctx = Ctx::new(0);
    let trace = Argument::parse(repository().join("fixtures/traces/lock-contention"));
    let mut session = Session::open(&[trace], &OpenOptions::default(), &ctx).unwrap();
    let mining = session.mine(None, &SymbolPaths::default(), &ctx).unwrap();
    let found = mining.anomalies(&Settings::default(), &ctx).unwrap();
    assert!(!found.paths.is_empty());
    let model = mining.executions().unwrap();
    let comparison = whyslow::parts::session::compare(model, &Default::default(), &ctx).unwrap();
    let inverted = invert(model, &comparison, &Arrangement::default(), &ctx).unwrap();
    let function = sandwich(model, &comparison.tree, &by_function(model, &comparison.tree)[0].name);
    let groups = [&*comparison.slow.members, &*comparison.fast.members];
    let size = |names| HeatSize { times: 20, names, rows: 5 };
    let by_time = HeatMap::new(model, &axes(model)[0], groups, size(20)).unwrap();
    let [by_thread, others] =
        [20, 1].map(|names| HeatMap::new(model, axes(model).last().unwrap(), groups, size(names)).unwrap());
    for map in [&by_time, &by_thread, &others] {
        let parts = DiffParts { heat_map: Some(map), ..DiffParts::default() };
        let document =
            serde_json::to_value(whyslow::parts::view::json::diff(model, &comparison, &parts, None)).unwrap();
        schemas.check(schemas.file_of(&document).unwrap(), &document, report);
    }
    let parts = DiffParts { inverted: Some(&inverted), function: function.as_ref(), ..DiffParts::default() };
    let diff = whyslow::parts::view::json::diff(model, &comparison, &parts, None);
    let listed = anomalies::json(&found, &mining.notices, None);
    let places = [
        BookmarkPlace::Context { path: vec!["main".into()] },
        BookmarkPlace::Metric { metric: "duration".into() },
        BookmarkPlace::Anomaly { start_ns: 7, place: "journal futex".into() },
    ];
    let bookmarks = places.map(|place| Bookmark { task: None, place, note: "ask the owner".into() });
    let diff = with_bookmarks(diff, &bookmarks);
    let documents = [
        serde_json::to_value(anomalies::with_path(diff, &found, 0)).unwrap(),
        serde_json::to_value(anomalies::with_path(listed, &found, 0)).unwrap(),
    ];
    for document in documents {
        assert!(document["path"].is_object());
        schemas.check(schemas.file_of(&document).unwrap(), &document, report);
        assert!(report.deviations.is_empty(), "{:#?}", report.deviations);
    }
}

/// Deviations of a document of `whyslow.stats.cpu/1`.
fn deviations(document: &Value) -> Vec<String> {
    let mut report = Report::default();
    schemas().check("stats.cpu.json", document, &mut report);
    report.deviations
}

#[test]
fn check_names_the_place_of_each_deviation() {
    let right = json!({
        "schema": "whyslow.stats.cpu/1", "threads": [], "warnings": ["a"],
        "cpus": [{ "cpu": 0, "active_ns": 5, "percent": 1.5, "idle_percent": 98.5 }],
    });
    assert_eq!(deviations(&right), [""; 0]);
    let changed = |pointer: &str, to: Value| {
        let mut document = right.clone();
        *document.pointer_mut(pointer).unwrap() = to;
        deviations(&document)
    };
    assert_eq!(changed("/schema", json!("x")), ["$.schema: \"x\" is not \"whyslow.stats.cpu/1\""]);
    assert_eq!(changed("/cpus/0/cpu", json!(1.5)), ["$.cpus[0].cpu: 1.5 is not of type \"integer\""]);
    assert_eq!(changed("/cpus/0/cpu", json!(-1)), ["$.cpus[0].cpu: -1 is out of bounds"]);
    assert_eq!(changed("/warnings/0", json!(null)), ["$.warnings[0]: null is not of type \"string\""]);
    let mut document = right.clone();
    document["new"] = json!(1);
    document["cpus"][0].as_object_mut().unwrap().remove("percent");
    let expected = ["$.cpus[0]: the property percent is missing", "$.new: the schema has no such property"];
    assert_eq!(deviations(&document), expected);
}

#[test]
fn check_refuses_part_of_what_belongs_together() {
    let mut report = Report::default();
    let task = json!({ "name": "t", "executions": 3, "p50_ns": 1, "p95_ns": 1, "p99_ns": 1 });
    let lost = json!({ "events": 0, "packets": 0, "streams": 0 });
    let document = json!({ "schema": "whyslow.info/1", "traces": [], "lost": lost, "tasks": [task], "warnings": [] });
    schemas().check("info.json", &document, &mut report);
    assert_eq!(report.deviations, ["$.tasks[0]: the property max_ns is missing"]);
}
