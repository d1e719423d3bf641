//! Profiles without scheduler events: the heaviest function is named, with and without call chains; of two profiles the
//! function that gained; every screen's figures are sums of samples (`fixtures/profiles/README.md`).

use crate::support::ask;
use ask::{json, output, refuses, said};
use serde_json::Value;
use std::path::Path;

fn fixture(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/profiles").join(name).display().to_string()
}

fn explained(words: &[&str]) -> Value {
    let symbols = fixture("");
    json(&[&["explain", "--json", "--check", "--symbols", &symbols], words].concat())
}

fn sentence(answer: &Value) -> &str {
    answer["verdict"]["sentence"].as_str().unwrap()
}

/// The function of a cause, without the mark of unproven names.
fn function(answer: &Value, rank: usize) -> &str {
    answer["causes"][rank]["by"]["function"].as_str().unwrap().trim_end_matches('?')
}

#[test]
fn one_profile_names_the_heaviest_functions_and_not_main() {
    for (file, first) in [("old-1.data", "split_words"), ("new.data", "rank_pages")] {
        let answer = explained(&[&fixture(file)]);
        let said = sentence(&answer);
        assert!(said.starts_with("indexer, ") && said.contains("both from main"), "{said}");
        assert_eq!((function(&answer, 0), answer["task"].as_str()), (first, Some("profile")), "{said}");
        assert_eq!(answer["verdict"]["basis"], "profile");
        let share = answer["causes"][0]["share"].as_f64().unwrap();
        assert!((0.55..0.75).contains(&share), "{file}: {share}");
        // A sample of 1 ms counts for 1 ms.
        assert_eq!(answer["extra_ns"].as_u64().unwrap(), answer["slow"]["count"].as_u64().unwrap() * 1_000_000);
        assert_eq!((&answer["profile"]["event"], &answer["profile"]["unit"]), (&"cpu-clock".into(), &"ns".into()));
    }
}

#[test]
fn two_profiles_name_the_function_that_gained() {
    let (old, new) = (format!("old={}", fixture("old-1.data")), format!("new={}", fixture("new.data")));
    let labelled = explained(&[&old, &new]);
    let baseline = explained(&[&fixture("new.data"), "--baseline", &fixture("old-1.data")]);
    let bare = explained(&[&fixture("old-1.data"), &fixture("new.data")]);
    for answer in [&labelled, &baseline, &bare] {
        assert_eq!(function(answer, 0), "rank_pages", "{}", sentence(answer));
        assert!(answer["verdict"]["confident"].as_bool().unwrap(), "{}", sentence(answer));
        assert_eq!(answer["extra_ns"], labelled["extra_ns"]);
    }
    assert!(sentence(&labelled).contains("in new") && sentence(&labelled).contains("in old"));
    assert!(sentence(&labelled).contains("split_words"), "{}", sentence(&labelled));
    let same_work = explained(&[&old, &new, "--per", "sample"]);
    assert!(same_work["extra_ns"].as_i64().unwrap().abs() <= 1);
    assert_eq!(function(&same_work, 0), "rank_pages");
}

#[test]
fn several_runs_of_a_side_are_one_group() {
    let (old, new) = (format!("old={}", fixture("old-*.data")), format!("new={}", fixture("new-*.data")));
    let answer = explained(&[&new, &old]);
    assert_eq!(function(&answer, 0), "rank_pages", "{}", sentence(&answer));
    let warnings = answer["warnings"].to_string();
    assert!(!warnings.contains("a side has one run"), "{warnings}");
    // By the run: a run of the new program takes about as much more as it has more samples.
    let extra = answer["extra_ns"].as_f64().unwrap() / 1e6;
    let samples = |group: &str| answer[group]["count"].as_f64().unwrap() / 3.0;
    assert!((extra - (samples("slow") - samples("fast"))).abs() < 1.0, "{extra}");
    let held = output(&["explain", "--symbols", &fixture(""), "--fail-if", "mean>+5%", &old, &new]);
    assert_eq!(held.status.code(), Some(3), "{}", said(&held));
    refuses(&["explain", "--fail-if", "p95>+5%", &old, &new], 2, &["samples have no percentiles"]);
}

#[test]
fn tasks_of_profiles_choose_programs_and_events() {
    let of = |task: &str| explained(&["--task", task, &fixture("new.data")]);
    assert_eq!(of("profile=indexer")["extra_ns"], of("profile")["extra_ns"]);
    assert!(of("profile=*")["extra_ns"].as_u64() >= of("profile")["extra_ns"].as_u64());
    refuses(&["explain", "--event", "cycles", &fixture("new.data")], 1, &["no sample of cycles", "cpu-clock"]);
    refuses(&["explain", "--task", "profile=sorter", &fixture("new.data")], 1, &["no sample is of sorter"]);
    refuses(&["explain", "--task", "profile=", &fixture("new.data")], 2, &["profile[=PROGRAM]"]);
}

#[test]
fn a_profile_is_the_same_for_any_number_of_workers() {
    let of = |workers: &str| {
        let (old, new) = (format!("old={}", fixture("old-1.data")), format!("new={}", fixture("new.data")));
        let out = output(&["diff", "--json", "--threads", workers, "--chunk", "4096", &old, &new]);
        assert!(out.status.success(), "{}", said(&out));
        out.stdout
    };
    assert_eq!(of("1"), of("2"));
    assert_eq!(of("1"), of("7"));
}

#[test]
fn texts_speak_of_samples() {
    let out = output(&["explain", "--symbols", &fixture(""), &fixture("new.data")]);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains("Where the samples fell") && text.contains("process: indexer"), "{text}");
    assert!(!text.contains("execution of"), "{text}");
}
