//! Score-P archives with injected delays: the right rank and function come first, clocks stay, totals are those of
//! Scalasca.

use crate::support::ask;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn archive(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/archives").join(name).join("trace/traces.otf2")
}

fn truth(name: &str) -> Value {
    let file = archive(name).parent().unwrap().parent().unwrap().join("truth.json");
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn run(words: &[&str]) -> (i32, String, String) {
    let out = ask::run(ask::program().args(words));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (out.status.code().unwrap(), text(&out.stdout), text(&out.stderr))
}

fn json(words: &[&str]) -> Value {
    let (status, out, error) = run(words);
    assert_eq!(status, 0, "{words:?}: {error}");
    serde_json::from_str(&out).unwrap()
}

fn state(found: &Value, kind: &str) -> i64 {
    let states = found["wait_states"].as_array().unwrap();
    states.iter().find(|s| s["kind"] == kind).map_or(0, |s| s["ns"].as_i64().unwrap())
}

/// Sources, clocks, causes and totals of one archive; `totals` are Scalasca's, in ms.
fn holds(name: &str, label: &str, function: &str, totals: &[(&str, f64)]) {
    let (file, truth) = (archive(name), truth(name));
    let file = file.to_str().unwrap();
    let found = json(&["anomalies", "--json", file]);
    assert!(found["clocks"].as_array().unwrap().iter().all(|c| c["offset_ns"] == 0), "{name}: one clock");
    let paths = found["paths"].as_array().unwrap();
    for (at, injected) in truth["injected"].as_array().unwrap().iter().enumerate() {
        let (start, end) = (injected["start"].as_i64().unwrap(), injected["end"].as_i64().unwrap());
        let starts = |p: &&Value| {
            let first = &p["steps"][0];
            let (from, to) = (first["local_start_ns"].as_i64().unwrap(), first["local_end_ns"].as_i64().unwrap());
            first["label"] == label && first["what"] == function && from.max(start) < to.min(end)
        };
        let of: Vec<&Value> = paths.iter().filter(starts).collect();
        assert!(!of.is_empty(), "{name}: injection {at} is a source");
        assert!(of.iter().all(|p| p["steps"][0]["noise"].is_null()), "{name}: injection {at} is no noise");
    }
    let explained = json(&["explain", "--json", file]);
    let first = &explained["causes"][0];
    assert_eq!((&first["by"]["thread"], &first["by"]["function"]), (&label.into(), &function.into()), "{name}");
    assert!(first["sentence"].as_str().unwrap().contains(&format!("for {label}, which ran {function}")), "{first}");
    for (kind, ms) in totals {
        let (got, want) = (state(&found, kind) as f64 / 1e6, *ms);
        assert!((got - want).abs() <= want * 0.02, "{name}: {kind} {got:.1} ms, Scalasca {want} ms");
    }
    let costs = &found["delay_costs"][0];
    assert_eq!((&costs["label"], &costs["function"]), (&label.into(), &function.into()), "{name}: {costs}");
}

/// One archive for each wait state, written by libotf2 (`fixtures/archives/src`): its total to the nanosecond, the late
/// rank and its function as the first cause and the first source.
#[test]
fn each_wait_state_equals_its_truth() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/archives/wait_states");
    let mut kinds = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let folder = entry.unwrap().path();
        let truth: Value = serde_json::from_str(&std::fs::read_to_string(folder.join("truth.json")).unwrap()).unwrap();
        let file = folder.join("traces.otf2");
        let found = json(&["anomalies", "--json", file.to_str().unwrap()]);
        let (kind, function) = (truth["kind"].as_str().unwrap(), truth["function"].as_str().unwrap());
        kinds += 1;
        assert_eq!(state(&found, kind), truth["waited_ns"].as_i64().unwrap(), "{kind}");
        let row = &found["wait_states"].as_array().unwrap().iter().find(|s| s["kind"] == kind).unwrap()["by"][0];
        assert!(!row["call_path"].as_array().unwrap().is_empty(), "{kind}: {row}");
        if kind == "completion" {
            assert_eq!((&row["rank"], &row["function"]), (&truth["rank"], &"MPI_Barrier".into()));
            assert!(row["causes"].as_array().unwrap().is_empty() && found["delay_costs"] == serde_json::json!([]));
            continue;
        }
        let label = match truth["thread"].as_u64().unwrap() {
            0 => format!("rank {}", truth["rank"]),
            thread => format!("rank {} thread {thread}", truth["rank"]),
        };
        let is_late = |by: &Value| by["label"] == label && by["function"] == function;
        // Of a lock that went from thread to thread, the last waits for the second.
        let state = found["wait_states"].as_array().unwrap().iter().find(|s| s["kind"] == kind).unwrap();
        let names_late = |row: &Value| row["causes"][0]["label"] == label;
        assert!(state["by"].as_array().unwrap().iter().any(names_late), "{kind}: {state}");
        // The idle time of a team has no cost; its master is its cause.
        assert!(kind == "idle_threads" || is_late(&found["delay_costs"][0]), "{kind}: {}", found["delay_costs"][0]);
        let first = &found["paths"][0]["steps"][0];
        assert_eq!((&first["label"], &first["what"]), (&label.as_str().into(), &function.into()), "{kind}: {first}");
        assert!(first["noise"].is_null(), "{kind}: {first}");
    }
    assert_eq!(kinds, 12);
}

/// Samples find a call in one line and then in another: it is one call.
#[test]
fn samples_in_several_lines_are_one_visit() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/archives/wait_states/calling_contexts/traces.otf2");
    let found = json(&["anomalies", "--json", file.to_str().unwrap()]);
    let regions = found["regions"].as_array().unwrap();
    let visits = |name: &str| regions.iter().find(|r| r["function"] == name).map(|r| r["visits"].as_u64().unwrap());
    assert_eq!((visits("assemble"), visits("smooth")), (Some(30), Some(30)), "{regions:?}");
    let names: Vec<&str> = found["patterns"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"assemble MPI_Send") && names.contains(&"smooth MPI_Recv"), "{names:?}");
}

#[test]
fn late_stage_of_a_pipeline_is_named_first() {
    holds("late_sender", "rank 1", "assemble", &[("late_sender", 748.0)]);
}

#[test]
fn extra_step_is_named_first() {
    holds("regridding", "rank 3", "regrid", &[("late_sender", 242.0), ("late_receiver", 128.0), ("n_to_n", 664.0)]);
}

#[test]
fn late_thread_of_a_team_is_named_first() {
    let totals = [("thread_barrier", 419.0), ("late_sender", 181.0), ("n_to_n", 147.0), ("late_receiver", 68.2)];
    holds("hybrid", "rank 2 thread 1", "smooth", &totals);
    let tasks = json(&["info", "--full", "--json", archive("hybrid").to_str().unwrap()]);
    assert_eq!(tasks["tasks"][0]["executions"], 200, "iterations are the ranks', not their threads'");
}

/// A rank's team works inside of the iterations of its master and has none of its own.
#[test]
fn iterations_are_those_of_the_ranks_masters() {
    let file = archive("hybrid");
    let groups = ["--slow", "rank=2", "--fast", "rank!=2"];
    let explained = json(&[&["explain", "--json"][..], &groups, &[file.to_str().unwrap()]].concat());
    let count = |group: &str| explained[group]["count"].as_u64().unwrap();
    assert_eq!((count("slow"), count("fast")), (50, 150), "4 ranks, 50 steps");
    let causes = explained["causes"].as_array().unwrap();
    let inside = |c: &Value| {
        let path: Vec<&str> = c["path"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        path.contains(&"rank 2 thread 1") && path.contains(&"!$omp implicit barrier @inject.c:59")
    };
    assert!(causes.iter().any(inside), "{causes:?}");
    // The groups differ by next to nothing: a share of it would be 217,174 %.
    let shares = |text: &str| text.contains('%');
    let sentences = || causes.iter().map(|c| c["sentence"].as_str().unwrap());
    assert!(explained["extra_ns"].as_i64().unwrap() < 1_000 && sentences().all(|s| !shares(s)), "{causes:?}");
    let verdict = explained["verdict"]["sentence"].as_str().unwrap();
    assert!(!shares(verdict) && verdict.contains("more on average, from 2 of 50 slow executions"), "{verdict}");
    // What is left of a barrier of threads after the last of them came is no transfer over a network.
    let of_threads = |c: &&Value| c["sentence"].as_str().unwrap().contains("for the network in !$omp");
    assert_eq!(causes.iter().find(of_threads), None);
}

#[test]
fn waits_without_a_known_cause_are_listed_beside_the_paths() {
    let file = archive("late_sender");
    let file = file.to_str().unwrap();
    let found = json(&["anomalies", "--json", file]);
    let lone = found["waits_without_source"].as_array().unwrap();
    assert!(!found["paths"].as_array().unwrap().is_empty() && !lone.is_empty());
    for row in lone {
        assert!(row["label"].as_str().unwrap().starts_with("rank "), "{row}");
        assert!(row["waits"].as_u64().unwrap() >= row["sent_in_time"].as_u64().unwrap(), "{row}");
        assert_ne!(row["what"], "MPI_Init", "starting up is no delay");
        // None of them is a step of a path at that place and time.
        let step =
            |s: &Value| (&s["label"], &s["what"], &s["start_ns"]) == (&row["label"], &row["what"], &row["first_ns"]);
        let steps = found["paths"].as_array().unwrap().iter().flat_map(|p| p["steps"].as_array().unwrap());
        assert_eq!(steps.filter(|s| step(s)).count(), 0, "{row}");
    }
    let (_, text, _) = run(&["anomalies", file]);
    let line = text.lines().find(|l| l.contains("waits without a known cause, ")).unwrap();
    let waits: u64 = lone.iter().map(|r| r["waits"].as_u64().unwrap()).sum();
    assert!(line.starts_with(&format!("{waits} waits")), "{line}");
}

/// The injected delays: the one that cost most is named first everywhere, before the largest single one.
#[test]
fn all_answers_name_the_same_rank() {
    for (name, rank) in [("late_sender", "rank 1"), ("regridding", "rank 3"), ("hybrid", "rank 2 thread 1")] {
        let file = archive(name);
        let file = file.to_str().unwrap();
        let found = json(&["anomalies", "--json", file]);
        let verdict = found["verdict"].as_str().unwrap();
        assert!(verdict.starts_with(&format!("R{},", &rank[1..])), "{name}: {verdict}");
        assert!(
            verdict.contains(" delayed others most: by ") && verdict.contains(" largest single delay "),
            "{verdict}"
        );
        assert_eq!(found["sources"][0]["name"], rank, "{name}");
        let (_, text, _) = run(&["anomalies", file]);
        assert_eq!(text.lines().next(), Some(verdict), "{name}");
        let (_, explained, _) = run(&["explain", file]);
        let sentence = explained.lines().take(2).collect::<Vec<_>>().join(" ");
        assert!(sentence.contains(&format!("for {rank}, ")), "{name}: {sentence}");
        let (_, page, _) = run(&["report", file]);
        assert!(page.contains(&format!("for {rank}, ")), "{name}: {page}");
    }
}

/// What nothing unusual explains still has the rank that came last.
#[test]
fn waits_without_a_known_cause_name_the_late_rank() {
    for name in ["late_sender", "regridding"] {
        let found = json(&["anomalies", "--json", archive(name).to_str().unwrap()]);
        let rows = found["waits_without_source"].as_array().unwrap();
        let states = found["wait_states"].as_array().unwrap();
        let late = |row: &Value| row["late"]["label"].as_str().map(str::to_owned);
        for row in rows.iter().filter(|row| late(row).is_some()) {
            let waits = states.iter().flat_map(|state| state["by"].as_array().unwrap());
            let here = waits.filter(|by| (&by["label"], &by["function"]) == (&row["label"], &row["what"]));
            let ranks: Vec<&str> =
                here.flat_map(|by| by["causes"].as_array().unwrap()).filter_map(|c| c["label"].as_str()).collect();
            assert!(ranks.contains(&late(row).unwrap().as_str()), "{name}: {row} {ranks:?}");
        }
        assert!(rows.iter().any(|row| late(row).is_some()), "{name}: {rows:?}");
    }
}

#[test]
fn text_is_bounded_without_the_option_all() {
    let file = archive("regridding");
    let (_, short, _) = run(&["anomalies", file.to_str().unwrap()]);
    let (_, whole, _) = run(&["anomalies", "--all", file.to_str().unwrap()]);
    assert!(short.contains("over 1 message to 4 more: ranks 1-2, 4-5"), "victims are folded: {short}");
    assert!(whole.contains("over 1 message to rank 5 at "), "{whole}");
    assert!(whole.lines().count() > short.lines().count() && !whole.contains("--all"), "{whole}");
}

#[test]
fn runs_are_compared_and_stored() {
    let [a, b] = ["late_sender", "regridding"].map(|n| archive(n).to_str().unwrap().to_owned());
    let both = [format!("old={a}"), format!("new={b}")];
    let one = |path: &str| json(&["explain", "--json", path]);
    let executions = |v: &Value| v["slow"]["count"].as_i64().unwrap() + v["fast"]["count"].as_i64().unwrap();
    let filters = ["--slow", "trace=new", "--fast", "trace=old"];
    let words: Vec<&str> =
        ["explain", "--json"].into_iter().chain(filters).chain(both.iter().map(String::as_str)).collect();
    let compared = json(&words);
    assert!(executions(&compared) >= executions(&one(&a)), "{}", compared["verdict"]);
    let (status, _, error) = run(&["anomalies", &both[0], &both[1]]);
    assert_eq!((status, error.lines().count()), (1, 1), "{error}");
    // From a database the same causes as from its archive.
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("a.why");
    let kept = kept.to_str().unwrap();
    let (status, _, error) = run(&["build", &a, "-o", kept]);
    assert_eq!(status, 0, "{error}");
    assert_eq!(one(kept)["causes"], one(&a)["causes"]);
}

/// An archive cannot record the scheduler: the options named are those of Score-P and EZTrace.
#[test]
fn data_quality_names_options_of_the_recorder() {
    let found = json(&["info", "--full", "--json", archive("regridding").to_str().unwrap()]);
    let questions = found["questions"].as_array().unwrap();
    let words: Vec<&str> = questions.iter().map(|q| q["question"].as_str().unwrap()).collect();
    assert_eq!(words, ["whether it computed or was preempted", "who held it up", "in which function"]);
    assert_eq!(questions[0]["share"], 0.0, "{questions:?}");
    assert!(questions.iter().all(|q| !q["remedy"].as_str().unwrap().contains("sched_")), "{questions:?}");
    assert!(questions[1]["share"].as_f64().unwrap() > 0.5, "{questions:?}");
}

/// Time per region and rank, its balance, and who carries the critical path.
#[test]
fn time_by_region_and_rank_adds_up() {
    for name in ["hybrid", "late_sender", "regridding"] {
        let file = archive(name);
        let found = json(&["anomalies", "--json", file.to_str().unwrap()]);
        let regions = found["regions"].as_array().unwrap();
        assert!(!regions.is_empty());
        for region in regions {
            let by = region["by"].as_array().unwrap();
            let times: Vec<i64> = by.iter().map(|b| b["ns"].as_i64().unwrap()).collect();
            assert_eq!(times.iter().sum::<i64>(), region["ns"].as_i64().unwrap(), "{name}: {region}");
            assert!(times.is_sorted_by(|a, b| a >= b), "{name}: {region}");
            assert_eq!((&by[0]["label"], &by[0]["ns"]), (&region["max_label"], &region["max_ns"]));
        }
        let (_, text, _) = run(&["anomalies", file.to_str().unwrap()]);
        assert!(text.contains("times the mean") && text.contains("computing on the critical path"), "{text}");
    }
    let found = json(&["anomalies", "--json", archive("regridding").to_str().unwrap()]);
    let regrid = found["regions"].as_array().unwrap().iter().find(|r| r["function"] == "regrid").unwrap();
    let ranks: Vec<i64> = regrid["by"].as_array().unwrap().iter().map(|b| b["rank"].as_i64().unwrap()).collect();
    assert_eq!(ranks, [3], "no other rank calls it");
}

#[test]
fn archive_without_events_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let from = archive("late_sender");
    for name in ["traces.otf2", "traces.def"] {
        std::fs::copy(from.with_file_name(name), folder.path().join(name)).unwrap();
    }
    let path = folder.path().join("traces.otf2");
    for command in ["anomalies", "explain"] {
        let (status, out, error) = run(&[command, path.to_str().unwrap()]);
        assert_eq!((status, out.as_str()), (1, ""), "{error}");
        assert!(error.contains("no call can be read from its event files"), "{error}");
    }
    // Other commands give the same reason, and say nothing of what was not read.
    for command in [&["info"][..], &["stats", "count"], &["stats", "io"]] {
        let found = json(&[command, &["--json", path.to_str().unwrap()]].concat());
        let warnings: Vec<&str> = found["warnings"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert!(
            warnings.len() == 1 && warnings[0].starts_with("6 streams could not be read"),
            "{command:?}: {warnings:?}"
        );
    }
}
