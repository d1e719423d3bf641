//! System calls fail while a question is answered.

use super::*;

#[test]
fn any_call_may_fail_during_explain() {
    Question::new(&["explain", "--json"], &fixture("snap")).survives(ALL);
}

#[test]
fn any_call_may_fail_during_diff() {
    Question::new(&["diff", "--json"], &fixture("snap")).survives(SOME);
}

#[test]
fn any_call_may_fail_during_stats_and_dump() {
    Question::new(&["stats", "count", "--json"], &fixture("snap")).survives(ALL);
    Question::new(&["dump"], &fixture("snap")).survives(SOME);
}

#[test]
fn any_call_may_fail_during_info() {
    Question::new(&["info", "--json"], &fixture("split-files")).survives(ALL);
    Question::new(&["info", "--full", "--json"], &fixture("snap")).survives(SOME);
}

#[test]
fn any_call_may_fail_during_anomalies() {
    Question::new(&["anomalies", "--json"], &fixture("snap")).survives(ALL);
}

#[test]
fn any_call_may_fail_during_query() {
    Question::new(&["query", "--json", "--attribute", "cpus/*/thread"], &fixture("snap")).survives(SOME);
}

#[test]
fn any_call_may_fail_while_symbols_are_resolved() {
    let folder = fixture("lock-contention");
    let (bin, tasks) = (folder.join("bin"), "wait=read,thread=worker");
    Question::new(&["explain", "--json", "--task", tasks, "--symbols", bin.to_str().unwrap()], &folder).survives(4);
}

#[test]
fn any_call_may_fail_over_perf_data_and_trace_dat() {
    for file in ["v6.dat", "v7.dat", "zstd.data", "dir.data", "pipe.data"] {
        Question::new(&["stats", "count", "--json"], &recorder(file)).survives(SOME);
    }
    Question::new(&["explain", "--json"], &recorder("v7.dat")).survives(SOME);
}

#[test]
fn any_call_may_fail_over_an_otf2_archive() {
    for words in [&["anomalies", "--json"][..], &["info", "--json"]] {
        Question::new(words, &archive()).survives(SOME);
    }
}

#[test]
fn any_call_may_fail_over_a_database() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("a.whyslow");
    assert!(ask::run(whyslow(["build", "-o"]).arg(&database).arg(fixture("snap"))).status.success());
    for words in [&["explain", "--json"][..], &["info", "--json"]] {
        Question::new(words, &database).survives(ALL);
    }
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
