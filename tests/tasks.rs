//! Tasks that no event delimits: the iterations between waits have the same cause as the requests that user-space
//! events delimit.

use crate::support::{ask, kernel_trace};
use ask::{json, output};
use serde_json::Value;

const LOCK: &str = "fixtures/traces/lock-contention";

/// The requests of the server are the turns of its workers between two waits for the next request.
#[test]
fn iterations_between_waits_have_the_cause_of_the_requests() {
    let turn = "wait=read,thread=worker";
    let answer = json(&["explain", "--json", LOCK, "--symbols", "fixtures/traces/lock-contention/bin", "--task", turn]);
    let requests = json(&["explain", "--json", LOCK, "--symbols", "fixtures/traces/lock-contention/bin"]);
    assert_eq!(answer["task"], turn);
    assert_eq!(answer["verdict"]["confident"], true, "{}", answer["verdict"]);
    for field in ["kind", "by"] {
        let of = |answer: &Value| answer["causes"][0][field].clone();
        match field {
            "by" => assert_eq!(of(&answer)["function"], of(&requests)["function"]),
            _ => assert_eq!(of(&answer), of(&requests)),
        }
    }
    let (turns, all) = (answer["fast"]["count"].as_u64().unwrap(), requests["fast"]["count"].as_u64().unwrap());
    assert!(turns.abs_diff(all) <= 1 + all / 50, "{turns} {all}");
}

#[test]
fn task_file_declares_iterations() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("turns.toml");
    let declared = |text: &str| {
        std::fs::write(&file, text).unwrap();
        output(&["explain", "--json", LOCK, "--tasks", file.to_str().unwrap()])
    };
    let out = declared("[[task]]\nname = \"turn\"\nwait = \"read\"\nthread = \"worker\"\n");
    let answer: Value = serde_json::from_slice(&out.stdout).unwrap();
    let typed = json(&["explain", "--json", LOCK, "--task", "wait=read,thread=worker"]);
    assert_eq!((&answer["task"], &answer["causes"]), (&Value::from("turn"), &typed["causes"]));
    for (text, line) in [
        ("[[task]]\nname = \"turn\"\nwait = \"read\"\nbegin = \"x\"\n", ":3: `wait` delimits the task by itself"),
        ("[[task]]\nname = \"turn\"\nthread = \"worker\"\n", ":3: `thread` goes with `wait`"),
        ("[[task]]\nname = \"turn\"\n", ":2: task `turn` has no begin"),
    ] {
        let out = declared(text);
        let said = String::from_utf8(out.stderr).unwrap();
        assert!(out.status.code() == Some(2) && said.contains(line) && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn task_of_an_unknown_wait_is_an_error() {
    let out = output(&["explain", LOCK, "--task", "wait=no_such_call"]);
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(out.status.code() == Some(1) && said.contains("wait=no_such_call has no executions"), "{said}");
}

/// The kernel's half of a recording of a server, without its own events: the task is an iteration of one of its
/// threads.
#[test]
fn kernel_recording_alone_gets_an_answer() {
    let answer = json(&["explain", "--json", "fixtures/traces/lock-contention/kernel"]);
    let executions = |group: &str| answer[group]["count"].as_u64().unwrap();
    assert!(executions("slow") + executions("fast") >= 12, "{answer}");
    let (task, sentence) = (answer["task"].as_str().unwrap(), answer["verdict"]["sentence"].as_str().unwrap());
    assert!(sentence.contains(&format!(" Analysed: {task}, ")), "{sentence}");
    assert!(sentence.contains("; others: "), "{sentence}");
}

#[test]
fn few_executions_show_where_their_time_went() {
    let all = json(&["explain", "--json", LOCK, "--task", "process=sleep"]);
    assert_eq!(all["verdict"]["basis"], "profile");
    assert_eq!((&all["verdict"]["confident"], &all["verdict"]["groups"]), (&Value::from(false), &Value::from("all")));
    assert_eq!(all["fast"], serde_json::json!({"count": 0, "of": 2, "mean_ns": null, "filters": []}));
    assert_eq!(all["extra_ns"], all["slow"]["mean_ns"]);
    let causes: i64 = all["causes"].as_array().unwrap().iter().map(|c| c["extra_ns"].as_i64().unwrap()).sum();
    assert_eq!(causes, all["extra_ns"].as_i64().unwrap());
    let text = String::from_utf8(output(&["explain", LOCK, "--task", "process=sleep"]).stdout).unwrap();
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("2 executions take ") && words.contains("without a group to compare with"), "{text}");
}

#[test]
fn unknown_task_is_a_usage_error() {
    let out = output(&["explain", LOCK, "--task", "app:requst"]);
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(out.status.code() == Some(2) && said.contains("no such task"), "{said}");
}

/// Each question that a recording cannot answer is named, with the option that would have recorded the answer.
#[test]
fn data_quality_is_reported_by_question() {
    let info = json(&["info", "--full", "--json", LOCK]);
    let questions = info["questions"].as_array().unwrap();
    let words: Vec<&str> = questions.iter().map(|q| q["question"].as_str().unwrap()).collect();
    assert_eq!(words, ["who ran", "who woke whom", "why it waited", "in which function"]);
    assert!(questions[0]["share"].as_f64().unwrap() > 0.95, "{questions:?}");
    let listed: Vec<&str> = info["tasks"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert!(listed.iter().any(|name| name.starts_with("wait=")) && listed.contains(&"process=sleep"), "{listed:?}");
}

/// The text where the place of the time is known but not its reason, and where there is no group to compare with.
#[test]
fn text_names_places_and_profiles() {
    let text = |words: &[&str]| {
        let out = output(words);
        assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    let place = ["explain", "fixtures/traces/lock-contention/ust"];
    let profile = ["explain", LOCK, "--task", "process=sleep"];
    for (name, basis, words) in [("verdict-place", "place", place.as_slice()), ("verdict-profile", "profile", &profile)]
    {
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name, text(words));
        });
        let answer = json(&[words, &["--json"]].concat());
        assert_eq!(answer["verdict"]["basis"], basis);
        assert_eq!(answer["verdict"]["confident"], false);
    }
}

/// Two labelled traces in which the same command ran, and no event of its own delimits enough executions: one run is
/// compared with the other.
#[test]
fn two_labelled_traces_with_the_same_command_are_compared_by_trace() {
    let (old, new) = (format!("old={LOCK}/kernel"), format!("new={LOCK}/kernel"));
    let answer = json(&["explain", "--json", &old, &new]);
    assert_eq!((answer["task"].as_str(), answer["verdict"]["groups"].as_str()), (Some("process=sleep"), Some("trace")));
    assert_eq!((&answer["slow"]["count"], &answer["fast"]["count"]), (&Value::from(2), &Value::from(2)));
    let sentence = answer["verdict"]["sentence"].as_str().unwrap();
    assert!(sentence.contains("the command that ran in both traces"), "{sentence}");
    // A program's own events delimit the task where there are enough of them.
    let (old, new) = (format!("old={LOCK}"), format!("new={LOCK}"));
    assert_eq!(json(&["explain", "--json", &old, &new])["task"], "app:request");
}

/// Of the scheduler alone, without forks and calls, the threads that ran most show where their time went.
#[test]
fn scheduler_events_alone_get_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let mut trace = kernel_trace::KernelTrace::new("alpha", 0x11);
    for i in 0..40 {
        let t = 1_000_000 * i;
        trace.switch(t + 10, 0, 0, 0, 5).switch(t + 300_000, 0, 5, 1, 0).waking(t + 600_000, 1, 9, 5, 0);
        trace.switch(t + 500_000, 1, 0, 0, 9).switch(t + 700_000, 1, 9, 1, 0);
    }
    trace.write(folder.path());
    let answer = json(&["explain", "--json", folder.path().to_str().unwrap()]);
    assert_eq!((&answer["task"], &answer["slow"]["count"]), (&"thread=t*".into(), &2.into()), "{answer:#}");
    let verdict = &answer["verdict"];
    assert_eq!((&verdict["basis"], &verdict["confident"]), (&"profile".into(), &false.into()), "{verdict:#}");
    assert!(verdict["sentence"].as_str().unwrap().contains("the threads that ran most"), "{verdict:#}");
}

#[test]
fn executions_are_listed_by_time_or_duration() {
    let lines = |more: &[&str]| {
        let out = output(&[&["executions", "--json", "--task", "app:request", LOCK], more].concat());
        assert!(out.status.success(), "{more:?}: {}", String::from_utf8_lossy(&out.stderr));
        let text = String::from_utf8(out.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    let all = lines(&[]);
    assert!(all.is_sorted_by_key(|e| e["start_ns"].as_i64()) && all.len() > 500);
    let slowest = lines(&["--slowest", "5"]);
    assert!(slowest.is_sorted_by_key(|e| std::cmp::Reverse(e["duration_ns"].as_i64())) && slowest.len() == 5);
    let longest = all.iter().map(|e| e["duration_ns"].as_i64()).max().unwrap();
    assert_eq!(slowest[0]["duration_ns"].as_i64(), longest);
    assert_eq!((&slowest[0]["most"]["kind"], &slowest[0]["process"]), (&"blocked.thread".into(), &"ledgerd".into()));
    let number = slowest[0]["execution"].to_string();
    let tid = slowest[0]["tid"].to_string();
    let of_thread = lines(&["--filter", &format!("tid={tid}")]);
    assert!(of_thread.len() < all.len() && of_thread.iter().all(|e| e["tid"].as_i64() == tid.parse().ok()));
    let ran = lines(&["--at", "6.5s"]);
    assert!(!ran.is_empty() && ran.len() <= 8, "{ran:?}");
    let text = String::from_utf8(output(&["executions", LOCK, "--slowest", "1"]).stdout).unwrap();
    assert!(text.starts_with("app:request: 1 execution of ") && text.contains(&number), "{text}");
    for (words, says) in [(["--at", "noon"], "--at noon"), (["--filter", "duration>1h"], "no execution passes")] {
        let out = output(&[&["executions", LOCK][..], &words].concat());
        let said = String::from_utf8(out.stderr).unwrap();
        assert!(out.status.code() == Some(2) && said.contains(says) && said.lines().count() == 1, "{said}");
    }
}
