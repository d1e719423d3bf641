//! `diff` prints trees: callees first, transformed, and one function with its callers and callees.

use crate::support::ask;
use ask::{json, output, refuses};

const LOCK: &str = "fixtures/traces/lock-contention";
#[test]
fn diff_prints_one_function_and_callees_first() {
    let words = ["diff", "--task", "app:request", LOCK, "--symbols", "fixtures/traces/lock-contention/bin"];
    let answer = json(&[&words[..], &["--json", "--callees-first", "--function", "expensive_flush"]].concat());
    let sum = |key: &str| {
        let roots = answer[key].as_array().unwrap().iter().filter(|node| node["depth"] == 0);
        roots.map(|node| node["delta_ns"].as_f64().unwrap()).sum::<f64>()
    };
    assert!((sum("callees_first") - answer["extra_ns"].as_f64().unwrap()).abs() < 10.0);
    let function = &answer["function"];
    let of_list = answer["functions"].as_array().unwrap().iter().find(|f| f["name"] == "expensive_flush").unwrap();
    assert_eq!((&function["delta_ns"], &function["places"]), (&of_list["delta_ns"], &of_list["places"]));
    assert_eq!(function["callers"]["frames"][0]["name"], "journal_tick");
    let text = |more: &[&str]| {
        let out = output(&[&words[..], more].concat());
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    assert!(text(&["--callees-first"]).contains("\nCallees first: own time of each frame"));
    let one = text(&["--function", "expensive_flush"]);
    assert!(one.contains("\nCallers, the nearest first\n") && one.contains("journal_tick"), "{one}");
    refuses(&[&words[..], &["--function", "expensive_flsh"]].concat(), 2, &["did you mean `expensive_flush`"]);
}

/// A function alone, without it, and as one; together with callees first.
#[test]
fn diff_transforms_trees() {
    let words = ["diff", "--task", "app:request", LOCK, "--symbols", "fixtures/traces/lock-contention/bin"];
    let answer = |more: &[&str]| json(&[&words[..], &["--json"], more].concat());
    let names = |answer: &serde_json::Value, key: &str| -> Vec<String> {
        let nodes = answer[key].as_array().unwrap().iter();
        nodes.map(|node| node["name"].as_str().unwrap().to_owned()).collect()
    };
    let whole = answer(&[]);
    let of_all = names(&whole, "tree");
    assert!(of_all.contains(&"expensive_flush".to_owned()) && of_all[0] == "ledgerd", "{of_all:?}");
    let focused = answer(&["--focus", "expensive_flush", "--callees-first"]);
    assert_eq!(focused["tree"][0]["name"], "expensive_flush");
    assert_eq!(focused["tree"][0]["kind"], "blocked.thread", "the request waits for it");
    let of_list = whole["functions"].as_array().unwrap().iter().find(|f| f["name"] == "expensive_flush").unwrap();
    assert_eq!(focused["tree"][0]["delta_ns"], of_list["delta_ns"]);
    assert!(!names(&focused, "callees_first").contains(&"journal_tick".to_owned()));
    assert_eq!((&focused["causes"], &focused["functions"]), (&whole["causes"], &whole["functions"]));
    let without = names(&answer(&["--drop", "expensive_flush"]), "tree");
    assert!(!without.contains(&"expensive_flush".to_owned()) && without.len() < of_all.len());
    let closed = answer(&["--collapse", "expensive_flush"]);
    let closed = closed["tree"].as_array().unwrap().iter().find(|node| node["name"] == "expensive_flush").unwrap();
    assert_eq!(closed["delta_ns"], closed["self_delta_ns"]);
    refuses(&[&words[..], &["--drop", "expensive_flsh"]].concat(), 2, &["--drop", "did you mean `expensive_flush`"]);
}
