//! System calls fail while a question is answered.

use super::*;

#[test]
fn explain_answers_when_any_system_call_fails() {
    Question::new(&["explain", "--json"], &fixture("snap")).survives(SOME);
}

#[test]
fn diff_answers_when_any_system_call_fails() {
    Question::new(&["diff", "--json"], &fixture("snap")).survives(SOME);
}

#[test]
fn stats_and_dump_answer_when_any_system_call_fails() {
    Question::new(&["stats", "count", "--json"], &fixture("snap")).survives(SOME);
    Question::new(&["dump"], &fixture("snap")).survives(SOME);
}

#[test]
fn info_answers_when_any_system_call_fails() {
    Question::new(&["info", "--json"], &fixture("split-files")).survives(SOME);
    Question::new(&["info", "--full", "--json"], &fixture("snap")).survives(SOME);
}

#[test]
fn anomalies_answers_when_any_system_call_fails() {
    Question::new(&["anomalies", "--json"], &fixture("snap")).survives(SOME);
}

#[test]
fn query_answers_when_any_system_call_fails() {
    Question::new(&["query", "--json", "--attribute", "cpus/*/thread"], &fixture("snap")).survives(SOME);
}

#[test]
fn symbols_are_resolved_or_missed_when_any_system_call_fails() {
    let folder = fixture("lock-contention");
    let (bin, tasks) = (folder.join("bin"), "wait=read,thread=worker");
    Question::new(&["explain", "--json", "--task", tasks, "--symbols", bin.to_str().unwrap()], &folder).survives(4);
}

#[test]
fn perf_data_and_trace_dat_are_answered_when_any_system_call_fails() {
    for file in ["v6.dat", "v7.dat", "zstd.data", "dir.data", "pipe.data"] {
        Question::new(&["stats", "count", "--json"], &recorder(file)).survives(SOME);
    }
    Question::new(&["explain", "--json"], &recorder("v7.dat")).survives(SOME);
}

#[test]
fn otf2_archive_is_answered_when_any_system_call_fails() {
    for words in [&["anomalies", "--json"][..], &["info", "--json"]] {
        Question::new(words, &archive()).survives(SOME);
    }
}

#[test]
fn database_is_answered_when_any_system_call_fails() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("a.whyslow");
    assert!(ask::run(whyslow(["build", "-o"]).arg(&database).arg(fixture("snap"))).status.success());
    for words in [&["explain", "--json"][..], &["info", "--json"]] {
        Question::new(words, &database).survives(SOME);
    }
}

#[test]
#[ignore = "takes ten minutes: each call of every kind, one after the other"]
fn all_questions_are_answered_when_any_system_call_fails() {
    let (snap, folder) = (fixture("snap"), tempfile::tempdir().unwrap());
    for words in [&["explain", "--json"][..], &["stats", "count", "--json"], &["anomalies", "--json"]] {
        Question::new(words, &snap).survives(ALL);
    }
    Question::new(&["info", "--json"], &fixture("split-files")).survives(ALL);
    let database = folder.path().join("a.whyslow");
    assert!(ask::run(whyslow(["build", "-o"]).arg(&database).arg(&snap)).status.success());
    Question::new(&["explain", "--json"], &database).survives(ALL);
}

/// A file may be replaced between the look at its name and its opening: a pipe takes the place of a stream, its
/// index or the metadata right before each opening of a file, and the program does not wait for a writer.
#[test]
fn file_that_becomes_a_pipe_is_a_notice() {
    for name in ["kernel/k_0", "kernel/index/k_0.idx", "kernel/metadata"] {
        let (mut last, mut answers) = (0, 0);
        for n in 1.. {
            let folder = tempfile::tempdir().unwrap();
            let trace = folder.path().join("t");
            ask::copy(&fixture("lost-events"), &trace);
            let mut opened = 0;
            let question = Question::new(&["stats", "count", "--json"], &trace);
            let out = tracer::run(&mut question.command(), &mut |call| {
                opened += usize::from(KINDS[0].calls.contains(&call.number));
                if opened == n && last < n {
                    last = n;
                    ask::pipe(&trace.join(name));
                }
                Verdict::Go
            });
            // The others are there in any case.
            assert!(out.status.success(), "{name} at opening {n}: {:?}: {}", out.status, said(&out));
            answers += usize::from(warnings(&out.stdout).is_some_and(|all| !all.is_empty()));
            if opened < n {
                break;
            }
        }
        assert!(last > 10 && answers > 3, "{name}: {last} openings, {answers} warnings");
    }
}
