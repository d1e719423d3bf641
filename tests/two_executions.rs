//! `diff --executions`: timelines, calls and events of two executions, and how they are aligned.

use crate::support::ask;
use ask::{output, refuses};

const LOCK: &str = "fixtures/traces/lock-contention";

/// The segments of a timeline tile the execution, and all references lead to something.
fn is_whole_timeline(timeline: &serde_json::Value, duration: i64) {
    let list = |key: &str| timeline[key].as_array().unwrap();
    let (threads, paths) = (list("threads").len() as u64, list("paths").len() as u64);
    let mut at = 0;
    for segment in list("segments") {
        assert_eq!(segment["start_ns"].as_i64(), Some(at));
        at += segment["ns"].as_i64().unwrap();
        assert!(segment["thread"].as_u64() < Some(threads) && segment["path"].as_u64() < Some(paths));
    }
    assert_eq!(at, duration);
    for wait in list("waits") {
        let (start, end) = (wait["start_ns"].as_i64().unwrap(), wait["end_ns"].as_i64().unwrap());
        assert!(0 <= start && start < end && end <= duration, "{wait}");
        assert!(wait["thread"] != wait["waits_for"], "{wait}");
        // While a thread waits, the path is in the one that it waits for or in those behind that one.
        let inside = |s: &&serde_json::Value| (start..end).contains(&s["start_ns"].as_i64().unwrap());
        assert!(list("segments").iter().filter(inside).all(|s| s["thread"] != wait["thread"]), "{wait}");
    }
    let of_kind = |kind: &str| list("events").iter().filter(|e| e["kind"] == kind).cloned().collect::<Vec<_>>();
    assert!(!of_kind("call").is_empty(), "calls are recorded");
    // The execution itself begins and ends on its own thread.
    let times = |kind: &str| of_kind(kind).iter().map(|e| e["at_ns"].as_i64().unwrap()).collect::<Vec<_>>();
    assert_eq!((times("begin").first(), times("end").last()), (Some(&0), Some(&duration)));
    // A wait that ends by a wake-up has that as an event, of the thread that the path was in.
    let woken = list("waits").iter().filter(|wait| ["lock", "wakeup"].contains(&wait["via"].as_str().unwrap()));
    for wait in woken {
        let waker = &list("threads")[wait["waits_for"].as_u64().unwrap() as usize];
        let name = format!("{} {}", waker["thread"].as_str().unwrap(), waker["tid"]);
        let is_it = |e: &&serde_json::Value| e["at_ns"] == wait["end_ns"] && e["thread"] == wait["thread"];
        assert!(of_kind("wakeup").iter().filter(is_it).any(|e| e["name"] == name.as_str()), "{wait} {name}");
    }
    // A thread migrates where it runs on another CPU than when it last ran.
    let mut cpus = std::collections::BTreeMap::new();
    let mut moves = Vec::new();
    for segment in list("segments").iter().filter(|s| s["state"] == "cpu" && s["cpu"].is_number()) {
        let before = cpus.insert(segment["thread"].as_u64(), segment["cpu"].clone());
        if before.is_some_and(|before| before != segment["cpu"]) {
            moves.push(segment["start_ns"].as_i64().unwrap());
        }
    }
    assert_eq!(times("migration"), moves);
}

/// The calls of two executions: the roots have all time, children no more than their parents, and a call is in one row.
fn are_whole_calls(both: &serde_json::Value) {
    let list = |value: &serde_json::Value| value.as_array().unwrap().clone();
    let rows = list(&both["calls"]["rows"]);
    assert_eq!((&both["calls"]["rows_left_out"], &both["calls"]["coarse"]), (&0.into(), &0.into()));
    assert!(rows.len() > 5 && rows[0]["parent"].is_null());
    for side in ["a", "b"] {
        let whole = both[side]["duration_ns"].as_i64().unwrap();
        assert_eq!(rows[0][side]["ns"].as_i64(), Some(whole));
        for (at, row) in rows.iter().enumerate() {
            let below = rows.iter().filter(|child| child["parent"].as_u64() == Some(at as u64));
            let sum: i64 = below.filter_map(|child| child[side]["ns"].as_i64()).sum();
            assert!(sum <= row[side]["ns"].as_i64().unwrap_or(0), "row {at}");
        }
        let calls = list(&both[format!("{side}_timeline")]["calls"]);
        let alone = |row: &&serde_json::Value| {
            let times = |side: &str| row[side]["times"].as_u64().unwrap_or(0);
            row["names"].as_array().unwrap().len() == 1 && times("a") < 2 && times("b") < 2
        };
        let single: i64 = rows.iter().filter(alone).filter_map(|row| row[side]["ns"].as_i64()).sum();
        assert_eq!(single, calls.iter().map(|call| call["ns"].as_i64().unwrap()).sum::<i64>());
        assert_eq!(calls[0]["ns"].as_i64(), Some(whole));
    }
    let delta: i64 = ["a", "b"].iter().zip([1, -1]).map(|(s, by)| by * both[*s]["duration_ns"].as_i64().unwrap()).sum();
    assert_eq!(rows[0]["delta_ns"].as_i64(), Some(delta));
}

#[test]
fn diff_aligns_two_executions_moment_by_moment() {
    let ask = |more: &[&str]| {
        let out = output(&[&["diff", "--json", "--task", "app:request", LOCK], more].concat());
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        serde_json::from_slice::<serde_json::Value>(&out.stdout).unwrap()
    };
    let samples = ask(&[])["samples"].as_array().unwrap().clone();
    let of = |group: &str| samples.iter().find(|s| s["group"] == group).unwrap();
    let number = |group: &str| of(group)["execution"].as_u64().unwrap();
    let (slow, fast) = (number("slow"), number("fast"));
    let typed = format!("{slow},{fast}");
    let answer = ask(&["--executions", &typed]);
    let both = &answer["executions"];
    assert_eq!((&both["a"]["execution"], &both["b"]["execution"]), (&slow.into(), &fast.into()));
    let sum = |key: &str| both["moments"].as_array().unwrap().iter().map(|m| m[key].as_i64().unwrap()).sum::<i64>();
    let long = |group: &str| of(group)["duration_ns"].as_i64().unwrap();
    assert_eq!((sum("a_ns"), sum("b_ns")), (long("slow"), long("fast")), "no nanosecond is lost");
    assert_eq!(sum("delta_ns"), long("slow") - long("fast"));
    for key in ["a_start_ns", "b_start_ns"] {
        let starts = both["moments"].as_array().unwrap().iter().filter_map(|m| m[key].as_i64());
        assert!(starts.is_sorted(), "{key}");
    }
    for side in ["a", "b"] {
        is_whole_timeline(&both[format!("{side}_timeline")], both[side]["duration_ns"].as_i64().unwrap());
    }
    are_whole_calls(both);
    let largest = |m: &&serde_json::Value| m["delta_ns"].as_i64().unwrap().abs();
    let most = both["moments"].as_array().unwrap().iter().max_by_key(largest).unwrap();
    assert_eq!(both["divergence"]["delta_ns"], most["delta_ns"]);
    assert!(both["divergence"]["a_ns"].as_i64() <= Some(long("slow")));
    let out = output(&["diff", "--task", "app:request", "--executions", &typed, LOCK]);
    let text = String::from_utf8(out.stdout).unwrap();
    let of_thread = |line: &&str| {
        let name = line.split_once('|').map(|(name, _)| name.trim());
        name.is_some_and(|name| !["", "calls", "events"].contains(&name))
    };
    let drawn = text.lines().filter(of_thread).count();
    let threads = |side: &str| both[format!("{side}_timeline")]["threads"].as_array().unwrap().len();
    assert_eq!(drawn, threads("a") + threads("b"), "a line per thread: {text}");
    assert!(text.contains("waits for journal") && text.contains("(lock)"), "{text}");
    assert!(text.starts_with(&format!("a: execution {slow}")) && text.contains("a - b"), "{text}");
    // Alone it is beside a typical fast one.
    let alone = output(&["diff", "--task", "app:request", "--executions", &slow.to_string(), LOCK]);
    let alone = String::from_utf8(alone.stdout).unwrap();
    assert!(alone.starts_with(&format!("a: execution {slow}")) && alone.contains("b: execution"), "{alone}");
    refuses(&["diff", "--executions", "1,x", LOCK], 2, &["--executions", "samples"]);
    refuses(&["diff", "--executions", "99999", LOCK], 2, &["--executions 99999", "executions 0 to"]);
    refuses(&["diff", "--executions", "1,99999", LOCK], 2, &["--executions 99999", "executions 0 to"]);
}
