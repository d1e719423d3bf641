//! `trend`: changes are found where they were planted and nowhere else, what grew is what `diff` of both sides says,
//! the host that differs is named, and what is not known is said.

mod made_up;

use crate::support::ask;
use ask::{output, refuses, said};
use made_up::{DAY, DISK, LOCK, NOVEMBER, Recording, SLEEP, WORK, written};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The words of a command with files behind them.
fn words<'a>(command: &[&'a str], files: &'a [PathBuf]) -> Vec<&'a str> {
    command.iter().copied().chain(files.iter().map(|file| file.to_str().unwrap())).collect()
}

fn json(command: &[&str], files: &[PathBuf]) -> Value {
    let command = [&["trend", "--json"][..], command].concat();
    let out = output(&words(&command, files));
    assert!(out.status.success(), "{}", said(&out));
    serde_json::from_slice(&out.stdout).unwrap()
}

fn text(command: &[&str], files: &[PathBuf]) -> String {
    let command = [&["trend"][..], command].concat();
    let out = output(&words(&command, files));
    assert!(out.status.success(), "{}", said(&out));
    String::from_utf8(out.stdout).unwrap()
}

fn places(document: &Value) -> Vec<u64> {
    document["changes"].as_array().unwrap().iter().map(|change| change["at"].as_u64().unwrap()).collect()
}

/// Nightly recordings of a host; from a day on with more milliseconds in a path.
fn nightly(days: i64, from: i64, path: &'static str, more: f64) -> Vec<Recording> {
    let recording = |day| {
        let recording = Recording::nightly(day, "db-1");
        if day >= from { recording.with(path, more) } else { recording }
    };
    (0..days).map(recording).collect()
}

#[test]
fn trend_names_the_day_and_what_grew() {
    let (_folder, files) = written(&nightly(20, 12, LOCK, 4.0));
    let document = json(&[], &files);
    assert_eq!(places(&document), [12]);
    let change = &document["changes"][0];
    assert_eq!((&change["before"]["points"], &change["after"]["points"]), (&12.into(), &8.into()));
    let cause = &change["causes"][0];
    assert_eq!((cause["kind"].as_str(), cause["rank"].as_u64()), (Some("blocked.thread"), Some(1)), "{cause}");
    assert!(cause["share"].as_f64().unwrap() > 0.9, "{cause}");
    let answer = document["answer"].as_str().unwrap();
    assert!(answer.starts_with("p95 of app:request rose from ") && answer.contains("at 2026-11-13 03:00 (nightly-13)"));
    assert!(answer.contains("journal") && answer.contains("(p <= 0.001)"), "{answer}");
    let shown = text(&[], &files);
    assert!(shown.contains("^ 2026-11-13 03:00") && shown.lines().any(|line| line.starts_with("p95  ")), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
    // The same whichever way the files are named, and from one merged file.
    let mut backwards = files.clone();
    backwards.reverse();
    assert_eq!(json(&[], &backwards)["changes"], document["changes"]);
    let merged = files[0].with_file_name("all.why");
    let merge = output(&words(&["merge", "-o", merged.to_str().unwrap()], &files));
    assert!(merge.status.success(), "{}", said(&merge));
    let of_merged = json(&[], &[merged]);
    for key in ["points", "changes", "answer", "hosts"] {
        assert_eq!(of_merged[key], document[key], "{key}");
    }
    let folder = json(&[], &[files[0].parent().unwrap().to_owned()]);
    assert_eq!(folder["changes"], document["changes"], "what is there twice counts once");
}

/// The figures and parts of a change are those of `diff` of both sides.
#[test]
fn change_agrees_with_diff_of_both_sides() {
    for (path, more) in [(LOCK, 4.0), (DISK, 5.0), (SLEEP, 3.0), (WORK, -2.0)] {
        let (_folder, files) = written(&nightly(16, 7, path, more));
        let document = json(&[], &files);
        let change = &document["changes"][0];
        assert_eq!(places(&document), [7], "{path}");
        let side = |at: usize| if at < 7 { "before" } else { "after" };
        let labelled: Vec<PathBuf> =
            files.iter().enumerate().map(|(at, file)| format!("{}={}", side(at), file.display()).into()).collect();
        let groups = ["--slow", "trace=after", "--fast", "trace=before"];
        let out = output(&words(&[&["diff", "--json"][..], &groups].concat(), &labelled));
        assert!(out.status.success(), "{}", said(&out));
        let diff: Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(change["extra_ns"], diff["extra_ns"], "{path}");
        for (side, group) in [("after", "slow"), ("before", "fast")] {
            for (key, of_group) in
                [("executions", "count"), ("mean_ns", "mean_ns"), ("p50_ns", "p50_ns"), ("p95_ns", "p95_ns")]
            {
                assert_eq!(change[side][key], diff[group][of_group], "{path} {side} {key}");
            }
        }
        let parts = |document: &Value| -> Vec<(Value, Value, Value)> {
            let all = document["causes"].as_array().unwrap().iter().filter(|cause| !cause["rank"].is_null());
            all.map(|cause| (cause["kind"].clone(), cause["extra_ns"].clone(), cause["path"].clone())).collect()
        };
        assert_eq!(parts(change), parts(&diff), "{path}");
        let sum: i64 = change["causes"].as_array().unwrap().iter().map(|c| c["extra_ns"].as_i64().unwrap()).sum();
        assert_eq!(Some(sum), change["extra_ns"].as_i64());
    }
}

#[test]
fn trend_finds_nothing_in_noise_and_says_what_is_too_few() {
    let (_folder, files) = written(&nightly(24, 99, LOCK, 0.0));
    let document = json(&[], &files);
    assert_eq!((places(&document), &document["search"]), (vec![], &"done".into()));
    assert!(document["answer"].as_str().unwrap().contains("did not change beyond chance over 24 recordings"));
    // Nine points cannot show a change, however large it is.
    let (_folder, few) = written(&nightly(9, 5, LOCK, 40.0));
    let document = json(&[], &few);
    assert_eq!((places(&document), &document["search"]), (vec![], &"too few points".into()));
    let answer = document["answer"].as_str().unwrap();
    assert!(answer.starts_with("Too few points to say whether p95 of app:request changed: 9 recordings"), "{answer}");
    assert!(answer.contains("at 2026-11-06 03:00 (nightly-06)"), "the largest step: {answer}");
    // One alone.
    let answer = json(&[], &few[..1])["answer"].as_str().unwrap().to_owned();
    assert!(answer.contains("1 recording with 20 executions or more, and 10 are needed"), "{answer}");
    let answer = json(&["--by", "host"], &few[..1])["answer"].as_str().unwrap().to_owned();
    assert!(answer.ends_with(" on host db-1; no other host has enough executions."), "{answer}");
    let answer = json(&["--by", "host", "--figure", "p99.9"], &few[..1])["answer"].as_str().unwrap().to_owned();
    assert_eq!(answer, "Too few executions for p99.9 of app:request: no host has 1000 or more.");
    // Points with few executions are shown, and no part of the search.
    let mut recordings = nightly(14, 99, LOCK, 0.0);
    recordings[3].executions = 19;
    let (_folder, files) = written(&recordings);
    let document = json(&[], &files);
    assert_eq!((&document["points"][3]["figure_ns"], document["points"].as_array().unwrap().len()), (&Value::Null, 14));
    assert!(document["warnings"][0].as_str().unwrap().starts_with("1 of 14 recordings have fewer than 20"));
}

/// Documents that have every key together.
pub fn documents() -> Vec<Value> {
    let (_folder, files) = written(&fleet(2, 14, |_, day, r| if day >= 7 { r.with(LOCK, 4.0) } else { r }));
    [&["--by", "day"][..], &["--by", "host"], &[]].into_iter().map(|command| json(command, &files)).collect()
}

/// A fleet: each host every night.
fn fleet(hosts: usize, days: i64, change: impl Fn(usize, i64, Recording) -> Recording) -> Vec<Recording> {
    let mut all = Vec::new();
    for day in 0..days {
        for host in 0..hosts {
            let mut recording = Recording::nightly(day, &format!("db-{host}"));
            recording.begin += host as i64 * 600_000_000_000;
            recording.label = format!("{}-{host}", recording.label);
            all.push(change(host, day, recording));
        }
    }
    all
}

#[test]
fn trend_says_which_hosts_moved_and_which_differs() {
    let document = |recordings: &[Recording], command: &[&str]| {
        let (_folder, files) = written(recordings);
        json(command, &files)
    };
    let all = fleet(3, 14, |_, day, r| if day >= 7 { r.with(LOCK, 4.0) } else { r });
    let of_all = document(&all, &["--by", "day"]);
    assert_eq!(places(&of_all), [7]);
    let sentence = of_all["changes"][0]["hosts_sentence"].as_str().unwrap();
    assert!(sentence.starts_with("All 3 hosts moved together (+"), "{sentence}");
    assert!(of_all["answer"].as_str().unwrap().ends_with("No host differs from the others of its day beyond chance."));

    let one = fleet(3, 14, |host, day, r| if host == 2 && day >= 7 { r.with(LOCK, 9.0) } else { r });
    let of_one = document(&one, &["--by", "day"]);
    assert_eq!(places(&of_one), [7]);
    let sentence = of_one["changes"][0]["hosts_sentence"].as_str().unwrap();
    assert!(sentence.starts_with("Only host db-2 moved (+") && sentence.contains("; the others by "), "{sentence}");

    let always = fleet(3, 14, |host, _, r| if host == 1 { r.with(DISK, 3.0) } else { r });
    let of_host = document(&always, &["--by", "host"]);
    assert_eq!((&of_host["search"], of_host["points"].as_array().unwrap().len()), (&"unordered".into(), 3));
    let answer = of_host["answer"].as_str().unwrap();
    assert!(answer.contains("Host db-1 differs: the highest p95 of all hosts in 14 of 14 days"), "{answer}");
    let differing: Vec<&Value> =
        of_host["hosts"].as_array().unwrap().iter().filter(|host| host["differs"] == true).collect();
    assert!(differing.iter().any(|host| host["host"] == "db-1"), "{differing:#?}");

    let two_days = fleet(3, 2, |host, _, r| if host == 1 { r.with(DISK, 3.0) } else { r });
    let answer = document(&two_days, &["--by", "host"])["answer"].as_str().unwrap().to_owned();
    assert!(answer.contains("Too few days to say whether a host differs from the others: 2 days."), "{answer}");

    // One day is enough where its hours are.
    let hours: Vec<Recording> = (0..3 * 12)
        .map(|i| {
            let (hour, host) = (i / 3, i % 3);
            let mut recording = Recording::nightly(0, &format!("db-{host}"));
            recording.begin = NOVEMBER + hour * DAY / 24;
            recording.seed = i as u64;
            if host == 1 { recording.with(DISK, 3.0) } else { recording }
        })
        .collect();
    let answer = document(&hours, &["--by", "host"])["answer"].as_str().unwrap().to_owned();
    assert!(answer.contains("Host db-1 differs: the highest p95 of all hosts in 12 of 12 hours"), "{answer}");

    // Other hosts from then on: the change may be that of hosts.
    let replaced = |day: i64| {
        let recording = Recording::nightly(day, if day < 8 { "old" } else { "new" });
        if day < 8 { recording } else { recording.with(WORK, 4.0) }
    };
    let of_replaced = document(&(0..16).map(replaced).collect::<Vec<_>>(), &[]);
    let sentence = of_replaced["changes"][0]["hosts_sentence"].as_str().unwrap();
    assert_eq!(sentence, "No host has points on both sides: other hosts may be the whole change.");
}

/// A file with a bit changed at two thirds of it, where the sections of its executions are.
fn damaged_in_its_executions(file: &[u8]) -> Vec<u8> {
    let mut bytes = file.to_vec();
    let at = bytes.len() * 2 / 3;
    bytes[at] ^= 1;
    bytes
}

#[test]
fn copy_of_what_cannot_be_read_counts() {
    let (folder, mut files) = written(&nightly(14, 7, LOCK, 4.0));
    let whole = json(&[], &files);
    let damaged = folder.path().join("damaged.why");
    std::fs::write(&damaged, damaged_in_its_executions(&std::fs::read(&files[3]).unwrap())).unwrap();
    for place in [0, 3, 14] {
        files.insert(place, damaged.clone());
        let document = json(&[], &files);
        assert_eq!((&document["changes"], &document["points"]), (&whole["changes"], &whole["points"]), "{place}");
        files.remove(place);
    }
    files.insert(0, damaged);
    let said = json(&[], &files)["warnings"].to_string();
    assert!(said.contains("damaged.why") && said.contains("damaged at byte"), "{said}");
}

#[test]
fn task_is_one_with_enough_executions_and_files_tell_recordings_apart() {
    let few = |mut recording: Recording| {
        (recording.executions, recording.task) = (5, "app:a-rare-one");
        recording
    };
    let recordings = nightly(12, 6, LOCK, 4.0);
    let mut all: Vec<Recording> = recordings.iter().cloned().map(few).collect();
    all.extend(recordings);
    let (_folder, files) = written(&all);
    let document = json(&[], &files);
    assert_eq!(document["task"], "app:request");
    assert!(document["warnings"].to_string().contains("`app:request` is taken of 2 tasks"), "{document:#}");

    let same = |mut recording: Recording| {
        recording.label = "/var/rec/kernel".to_owned();
        recording
    };
    let (_folder, files) = written(&nightly(12, 6, LOCK, 4.0).into_iter().map(same).collect::<Vec<_>>());
    let document = json(&[], &files);
    let names: Vec<&str> =
        document["points"].as_array().unwrap().iter().map(|point| point["name"].as_str().unwrap()).collect();
    let paths: Vec<&str> = files.iter().map(|file| file.to_str().unwrap()).collect();
    assert_eq!(names, paths);
}

#[test]
fn fail_if_holds_of_the_last_change_alone() {
    let (_folder, files) = written(&nightly(20, 12, LOCK, 4.0));
    let status = |condition: &str, files: &[PathBuf]| {
        let out = output(&words(&["trend", "--fail-if", condition], files));
        (out.status.code(), said(&out))
    };
    for (condition, expected) in [("p95>+5%", 3), ("mean>+50%", 3), ("extra>1ms", 3), ("p95>+500%", 0), ("extra>1s", 0)]
    {
        let (code, said) = status(condition, &files);
        assert_eq!(code, Some(expected), "{condition}: {said}");
        assert_eq!(said.contains(&format!("{condition} holds: ")), expected == 3, "{said}");
    }
    // It came back.
    let (_folder, files) = written(
        &(0..30)
            .map(|day| {
                let recording = Recording::nightly(day, "db-1");
                if (10..20).contains(&day) { recording.with(LOCK, 4.0) } else { recording }
            })
            .collect::<Vec<_>>(),
    );
    assert_eq!(places(&json(&[], &files)), [10, 20]);
    assert_eq!(status("p95>+5%", &files).0, Some(0));
    assert_eq!(status("p95>+5%", &files[..20]).0, Some(3));
    let (code, said) = status("p95>+5%", &files[..5]);
    assert!(code == Some(0) && said.contains("not checked: there are too few points"), "{said}");
    let file = files[0].to_str().unwrap();
    refuses(&["trend", "--fail-if", "p95>+5%", "--figure", "p50", file], 2, &["follows another figure"]);
    refuses(&["trend", "--fail-if", "p95>+5%", "--by", "host", file], 2, &["hosts have no order"]);
}

#[test]
fn points_are_days_hours_labels_or_those_that_pass() {
    let (_folder, files) = written(&fleet(2, 3, |_, _, r| r));
    let names = |command: &[&str]| -> Vec<String> {
        let document = json(command, &files);
        document["points"].as_array().unwrap().iter().map(|point| point["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&["--by", "day"]), ["2026-11-01", "2026-11-02", "2026-11-03"]);
    assert_eq!(names(&["--by", "host"]), ["db-0", "db-1"]);
    assert_eq!(names(&["--by", "hour"])[..2], ["2026-11-01 03:00", "2026-11-02 03:00"]);
    assert_eq!(names(&["--by", "label"]).len(), 6);
    assert_eq!(names(&["--by", "recording"])[..2], ["nightly-01-0", "nightly-01-1"]);
    let one = json(&["--by", "day", "--type", "get"], &files);
    assert_eq!(one["points"][0]["executions"], 60);
    let all = json(&["--by", "day"], &files);
    assert_eq!((&all["points"][0]["executions"], &all["points"][0]["recordings"]), (&120.into(), &2.into()));
    let shares: f64 =
        all["points"][0]["kinds"].as_array().unwrap().iter().map(|kind| kind["share"].as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-9);
    let file = files[0].to_str().unwrap();
    refuses(&["trend", "--filter", "duration>=p95", file], 2, &["selects other executions in each recording"]);
    refuses(&["trend", "--figure", "p101", file], 2, &["write `mean` or a percentile"]);
}

#[test]
fn what_cannot_be_read_or_placed_is_said_and_the_rest_is_analysed() {
    let mut recordings = nightly(14, 7, LOCK, 4.0);
    recordings.push(Recording { task: "app:other", ..Recording::nightly(20, "db-1") });
    let (folder, mut files) = written(&recordings);
    let whole = json(&["--task", "app:request"], &files[..14]);
    let path = |name: &str| folder.path().join(name);
    Recording::nightly(40, "db-1").write(&path("damaged.why"));
    let mut damaged = std::fs::read(path("damaged.why")).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    std::fs::write(path("damaged.why"), damaged).unwrap();
    let mut version = std::fs::read(&files[4]).unwrap();
    version[8] = version[8].wrapping_add(1);
    std::fs::write(path("version.why"), version).unwrap();
    std::fs::write(path("cut.why"), &std::fs::read(&files[5]).unwrap()[..40]).unwrap();
    std::fs::write(path("text.txt"), "no database").unwrap();
    files.extend(["damaged.why", "version.why", "cut.why", "text.txt", "missing.why"].map(path));
    // The same recording under its own label counts once.
    files.push(files[0].clone());
    let document = json(&["--task", "app:request"], &files);
    assert_eq!(document["changes"], whole["changes"]);
    let warnings: Vec<&str> = document["warnings"].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
    let has = |parts: &[&str]| {
        let found = warnings.iter().any(|line| parts.iter().all(|part| line.contains(part)) && !line.contains('\n'));
        assert!(found, "{parts:?}: {warnings:#?}");
    };
    has(&["damaged.why", "damaged at byte", "left out"]);
    has(&["version.why", "version", "left out"]);
    has(&["cut.why", "left out"]);
    has(&["text.txt: neither a database nor partial results", "left out"]);
    has(&["missing.why: no such file", "left out"]);
    has(&["014.why: no executions of `app:request`, it has `app:other`: left out"]);
    has(&["1 recording was named twice under one label and is counted once"]);
    let strict = output(&words(&["trend", "--strict", "--task", "app:request"], &files));
    assert!(strict.status.code() == Some(1) && said(&strict).contains("malformed (--strict)"), "{}", said(&strict));
    refuses(&words(&["trend"], &files[17..18]), 1, &["cut.why"]);
    refuses(&["trend", "--task", "nothing", files[0].to_str().unwrap()], 2, &["holds `app:request` only"]);
}

#[test]
fn recordings_without_a_date_are_in_their_order_and_clashing_labels_are_said() {
    let undated: Vec<Recording> = (0..12)
        .map(|i| {
            let recording =
                Recording { begin: 90_000_000_000 * (20 - i), label: "run".into(), ..Recording::nightly(i, "db-1") };
            if i >= 6 { recording.with(LOCK, 4.0) } else { recording }
        })
        .collect();
    let (_folder, files) = written(&undated);
    let document = json(&[], &files);
    assert_eq!(places(&document), [6]);
    assert!(document["points"].as_array().unwrap().iter().all(|point| point["time_of_day"].is_null()));
    let warnings = document["warnings"].to_string();
    assert!(
        warnings.contains("12 of 12 recordings have no date")
            && warnings.contains("`run` is the name of 12 recordings")
    );
    refuses(&words(&["trend", "--by", "day"], &files), 1, &["without a date have no day: left out"]);
}

#[test]
fn partial_results_are_points_without_dates_and_causes() {
    let (folder, files) = written(&nightly(14, 7, LOCK, 4.0));
    let partial = |at: usize, file: &Path| -> PathBuf {
        let to = folder.path().join(format!("{at:03}.partial"));
        let out = output(&["build", "--partial", file.to_str().unwrap(), "-o", to.to_str().unwrap()]);
        assert!(out.status.success(), "{}", said(&out));
        to
    };
    let partials: Vec<PathBuf> = files.iter().enumerate().map(|(at, file)| partial(at, file)).collect();
    let (of_sums, of_databases) = (json(&[], &partials), json(&[], &files));
    assert_eq!((places(&of_sums), places(&of_databases)), (vec![7], vec![7]));
    assert_eq!((&of_sums["exact"], &of_sums["changes"][0]["extra_ns"]), (&false.into(), &Value::Null));
    for (sums, exact) in of_sums["points"].as_array().unwrap().iter().zip(of_databases["points"].as_array().unwrap()) {
        assert_eq!(sums["executions"], exact["executions"]);
        for key in ["mean_ns", "p50_ns", "p95_ns", "p99_ns", "max_ns"] {
            let [sums, exact] = [&sums[key], &exact[key]].map(|ns| ns.as_f64().unwrap());
            assert!(sums >= exact && sums <= exact * 1.01 + 1.0, "{key}: {sums} {exact}");
        }
    }
    assert!(of_sums["warnings"].to_string().contains("no causes"));
    // A file again is said, and changes nothing.
    let twice = json(&[], &[&partials[..], &partials[..1]].concat());
    assert_eq!(twice["changes"], of_sums["changes"]);
    assert!(twice["warnings"].to_string().contains("have recordings of a file before it"));
    let one = partials[0].to_str().unwrap();
    refuses(&["trend", "--by", "day", one], 2, &["partial results have no dates"]);
    refuses(&["trend", "--type", "get", one], 2, &["partial results are sums"]);
    refuses(&["trend", one, files[0].to_str().unwrap()], 1, &["databases alone, or partial results alone"]);
}

#[test]
fn trend_is_the_same_for_any_number_of_workers_and_narrow_pages_fit() {
    let (_folder, files) =
        written(&fleet(3, 20, |host, day, r| if host == 0 && day >= 9 { r.with(SLEEP, 6.0) } else { r }));
    let of = |threads: &str| output(&words(&["trend", "--json", "--threads", threads], &files)).stdout;
    assert!(of("1") == of("7"));
    let document = json(&[], &files);
    assert_eq!(document["points"].as_array().unwrap().len(), 60);
    assert_eq!(document["points"][0]["start_ns"], NOVEMBER);
    assert_eq!(document["points"][59]["start_ns"].as_i64(), Some(NOVEMBER + 19 * DAY + 1_200_000_000_000));
    let shown = text(&[], &files);
    assert!(shown.contains(" more: --json"), "{shown}");
}
