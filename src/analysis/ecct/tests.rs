//! Trees of hand-written paths.

mod environments;
mod unanswered;
mod waits_for_a_cpu;

use super::*;
use crate::analysis::outline::NoAnswer;
use crate::analysis::path;
use crate::analysis::pauses::pauses;
use crate::analysis::timeline_builder::{HOST, TimelineBuilder, thread};
use crate::base::ctx::Ctx;
use crate::base::names::Names;
use crate::base::notice::Notices;
use crate::base::time::Ns;
use crate::event::stack::StackOrigin;
use crate::model::environment::PlacedEnvironment;
use crate::symbols::images::Spaces;
use crate::timeline::questions::Asker;
use crate::timeline::{Call, ThreadName};
use std::collections::BTreeMap;

/// Nanoseconds by path, steps as words.
fn tree(builder: &TimelineBuilder, n: usize, start: Ns, end: Ns) -> BTreeMap<String, u64> {
    tree_in(builder, None, n, start, end)
}

/// Nanoseconds by path in a recording with an environment.
fn tree_in(
    builder: &TimelineBuilder,
    environment: Option<PlacedEnvironment>,
    n: usize,
    start: Ns,
    end: Ns,
) -> BTreeMap<String, u64> {
    let mut recorded = builder.recorded();
    environment.into_iter().for_each(|environment| recorded.set_environment(HOST, environment));
    let timeline = recorded.seal();
    let spaces = Spaces::default();
    let timelines = StackTimelines::new(&timeline, &spaces, false, &Ctx::new(1)).unwrap();
    let mut shown = Names::default();
    let names = ThreadNames::new(&timeline, &mut shown, &mut Notices::default());
    let disk = DiskUse::new(&timeline);
    let leaders = Leaders::new(&timeline);
    let pauses = pauses(&timeline);
    let sources = EcctInputs {
        timeline: &timeline,
        timelines: &timelines,
        names: &names,
        disk: &disk,
        leaders: &leaders,
        pauses: &pauses,
        remarks: &Remarks::new(&timeline),
        kernel: None,
    };
    let path = path::walk(&timeline, thread(n), Span::of_ns(start, end));
    let mut outline = Outline::default();
    let reader = timeline.reader(Asker::Ecct);
    let own = TreeBuilder::new(&sources, &reader).accumulate(&path, TimeOrder::Kept, &mut outline);
    let mut paths: Vec<String> = Vec::new();
    for (parent, step) in outline.nodes() {
        let above = parent.map_or(String::new(), |p| paths[p.index()].clone());
        let word = match step {
            OutlineStep::Process(_) => String::new(),
            OutlineStep::Stack(id) => {
                let letters = timelines.get(id).user.map_or(String::new(), |u| builder.letters(u.stack));
                letters.chars().map(|c| format!(";{c}")).collect()
            }
            OutlineStep::Wait(kind, _) => format!(";[{}]", kind.name()),
            OutlineStep::Named(_, name) => format!(";[{name}]"),
            OutlineStep::Work(work) => format!(";({})", work.name()),
            OutlineStep::SentBy(name) => format!(";[sent by {}]", shown.get(name.unwrap())),
            OutlineStep::IdleCpus(idle, all) => format!(";[{idle} of {all} idle]"),
            OutlineStep::Quota(period) => format!(";[quota of {period}]"),
            OutlineStep::Throttled(_, group) => format!(";[quota of group {group}]"),
            OutlineStep::Polls(call) => format!(";[polls {}]", builder.0.tables.names.get(call)),
            OutlineStep::NoAnswer(NoAnswer { within, port }) => {
                format!(";[no answer in {within} on {:?}]", port.map(|port| port.number))
            }
            OutlineStep::Thread(_, name) => format!(";thread {}", shown.get(name.unwrap())),
        };
        paths.push(above + &word);
    }
    let mut tree = BTreeMap::new();
    for NodeTime { node, ns } in own {
        *tree.entry(paths[node.index()].trim_start_matches(';').to_owned()).or_insert(0) += ns;
    }
    assert_eq!(tree.values().sum::<u64>() as Ns, end - start, "the tree holds the whole path");
    tree
}

fn expect(tree: BTreeMap<String, u64>, expected: &[(&str, u64)]) {
    let expected = expected.iter().map(|(path, ns)| ((*path).to_owned(), *ns)).collect();
    assert_eq!(tree, expected);
}

/// ALGORITHMS.md 5.5, after Fig. 4.2 of the thesis.
fn figure() -> TimelineBuilder {
    let mut builder = TimelineBuilder::new(3);
    builder.segment(1, 1, 3, SegmentKind::Running, 0);
    builder.segment(1, 3, 7, SegmentKind::Blocked, 2);
    builder.segment(1, 7, 11, SegmentKind::Running, 0);
    builder.call(1, 1, 2, "A").call(1, 2, 8, "AB").call(1, 8, 9, "A").call(1, 9, 10, "AX").call(1, 10, 11, "A");
    builder.segment(2, 1, 6, SegmentKind::Running, 0);
    builder.segment(2, 6, 7, SegmentKind::Disk, 0);
    builder.segment(2, 7, 11, SegmentKind::Running, 0);
    builder.call(2, 0, 4, "X").call(2, 4, 5, "").call(2, 5, 8, "X");
    builder
}

#[test]
fn accumulate_gives_the_worked_example_of_the_handbook() {
    let expected = [
        ("A", 3),
        ("A;B", 2),
        ("A;B;thread 2", 1),
        ("A;B;thread 2;X", 2),
        ("A;B;thread 2;X;[blocked.disk]", 1),
        ("A;X", 1),
    ];
    expect(tree(&figure(), 1, 1, 11), &expected);
}

#[test]
fn accumulate_uses_a_late_sample_of_a_call() {
    let sampled = |at: Ns| {
        let mut builder = TimelineBuilder::new(1);
        builder.0.threads[0].thread.life = Span::of_ns(0, 2_000_000);
        builder.segment(1, 0, 100_000, SegmentKind::Running, 0).segment(1, 100_000, 400_000, SegmentKind::Timer, 0);
        builder.segment(1, 400_000, 2_000_000, SegmentKind::Running, 0).silent_call(1, 100_000, 400_000);
        builder.sample(1, at, StackOrigin::AfterCall, "AB");
        tree(&builder, 1, 50_000, 450_000)
    };
    // Before the execution ends, and long after.
    let in_time = sampled(400_100);
    assert_eq!(in_time.get("A;B;[blocked.timer]"), Some(&300_000));
    assert_eq!(sampled(1_900_000), in_time);
}

/// A shell waits for its child, which becomes another program in the middle of a run.
#[test]
fn accumulate_names_a_thread_as_it_is_called_then() {
    let mut builder = TimelineBuilder::new(2);
    builder.segment(1, 0, 100, SegmentKind::Blocked, 2).segment(2, 0, 60, SegmentKind::Running, 0);
    builder.segment(2, 60, 100, SegmentKind::Timer, 0);
    let exec = builder.0.tables.names.intern("gzip");
    builder.0.threads[1].thread.names.push(ThreadName { from: Timestamp::new(10), name: exec });
    let wanted = [("thread 2", 10), ("thread gzip", 50), ("thread gzip;[blocked.timer]", 40)];
    expect(tree(&builder, 1, 0, 100), &wanted);
    // The thread that runs on the CPU has the name that it had then, too.
    let mut builder = TimelineBuilder::new(2);
    builder.segment(1, 0, 100, SegmentKind::Preempted, 0).runs(&[(0, 100, 2)]);
    let exec = builder.0.tables.names.intern("gzip");
    builder.0.threads[1].thread.names.push(ThreadName { from: Timestamp::new(10), name: exec });
    let wanted = [("[preempted];thread 2", 10), ("[preempted];thread gzip", 90)];
    expect(tree(&builder, 1, 0, 100), &wanted);
}

#[test]
fn accumulate_divides_a_disk_wait_among_the_waiting_threads() {
    let mut builder = figure();
    builder.segment(3, 5, 7, SegmentKind::Disk, 0).call(3, 5, 7, "F");
    let tree = tree(&builder, 1, 1, 11);
    assert_eq!(tree.get("A;B;thread 2;X;[blocked.disk];thread 3;F"), Some(&1));
    assert_eq!(tree.get("A;B;thread 2;X;[blocked.disk]"), None);
}

/// Something above the disk holds a request back for 40 of 50 ms.
#[test]
fn accumulate_sets_time_apart_in_which_the_disk_had_no_request() {
    const MS: Ns = 1_000_000;
    let mut builder = TimelineBuilder::new(2);
    builder.segment(1, 0, 50 * MS, SegmentKind::Disk, 0);
    builder.request(40 * MS, 49 * MS, 1).request(44 * MS, 49 * MS, 2);
    let wanted = [
        ("[blocked.disk];[disk idle]", 40_000_000),
        ("[blocked.disk]", 7_500_000),
        ("[blocked.disk];thread 2", 2_500_000),
    ];
    expect(tree(&builder, 1, 0, 50 * MS), &wanted);
}

#[test]
fn accumulate_tells_sleeps_between_calls_that_fail() {
    const EAGAIN: i64 = -11;
    let polls = |first: (&str, i64), before: (&str, i64), after: &str| {
        let mut builder = TimelineBuilder::new(1);
        builder.segment(1, 0, 20, SegmentKind::Running, 0).segment(1, 20, 50, SegmentKind::Timer, 0);
        builder.segment(1, 50, 90, SegmentKind::Running, 0);
        for (name, start, end, ret) in
            [(first.0, 2, 4, first.1), (before.0, 5, 10, before.1), ("clock_nanosleep", 15, 55, 0), (after, 60, 65, 0)]
        {
            let name = builder.0.tables.names.intern(name);
            let call = Call { span: Span::of_ns(start, end), name, ret: Some(ret), descriptor: None };
            builder.0.threads[0].rows.calls.push(call);
        }
        tree(&builder, 1, 0, 90).keys().any(|path| path.contains("[polls fcntl]"))
    };
    let other = ("write", 1);
    assert!(polls(other, ("fcntl", EAGAIN), "fcntl"));
    // Another lock was given back.
    assert!(polls(("fcntl", EAGAIN), ("fcntl", 0), "fcntl"));
    // It succeeded, a signal interrupted it, or something else was done afterwards or before.
    assert!(!polls(other, ("fcntl", 0), "fcntl") && !polls(other, ("fcntl", -4), "fcntl"));
    assert!(!polls(other, ("fcntl", EAGAIN), "read") && !polls(("fcntl", EAGAIN), other, "fcntl"));
}

#[test]
fn accumulate_puts_running_threads_below_a_runnable_wait() {
    let mut builder = TimelineBuilder::new(9);
    builder.segment(1, 8, 10, SegmentKind::Running, 0).segment(1, 10, 14, SegmentKind::Preempted, 0);
    builder.call(1, 8, 20, "M").call(9, 0, 20, "MS");
    builder.runs(&[(8, 9, 1), (9, 13, 9), (13, 14, 2)]).0.threads[1].thread.idle = true;
    expect(tree(&builder, 1, 10, 14), &[("M;[preempted];thread 9;M;S", 3), ("M;[preempted]", 1)]);
}

#[test]
fn accumulate_puts_the_client_below_a_kernel_thread() {
    let mut builder = TimelineBuilder::new(9);
    builder.segment(1, 0, 10, SegmentKind::Blocked, 2).segment(1, 10, 14, SegmentKind::Preempted, 0);
    builder.segment(2, 0, 3, SegmentKind::Running, 0).segment(2, 3, 5, SegmentKind::Timer, 0).segment(
        2,
        5,
        14,
        SegmentKind::Running,
        0,
    );
    builder.call(1, 0, 13, "AF").call(2, 0, 14, "K").call(9, 0, 14, "JQ").runs(&[(0, 9, 9), (9, 14, 2)]);
    let service = |from, to, client| Service {
        thread: thread(2),
        span: Span::of_ns(from, to),
        client: thread(client),
        since: Timestamp::ZERO,
    };
    // The service for thread 1 shows no client, because that thread waits for it.
    builder.0.services = vec![service(0, 6, 9), service(6, 8, 1), service(11, 13, 9)];
    let expected = [
        ("A;F;thread 2;K;thread 9;J;Q", 3 + 1),
        ("A;F;thread 2;K;thread 9;J;Q;[blocked.timer]", 2),
        ("A;F;thread 2;K", 4),
        ("A;F;[preempted];thread 2;K", 2),
        ("A;F;[preempted];thread 2;K;thread 9;J;Q", 2),
    ];
    expect(tree(&builder, 1, 0, 14), &expected);
}

#[test]
fn accumulate_skips_a_thread_that_waits_in_the_same_place() {
    let mut builder = TimelineBuilder::new(3);
    // 1 and 2 wait for a lock that 3 holds; 3 wakes 2, which holds it for a while and wakes 1.
    builder.segment(1, 0, 10, SegmentKind::Blocked, 2).segment(1, 10, 12, SegmentKind::Running, 0);
    builder.segment(2, 0, 7, SegmentKind::Blocked, 3).segment(2, 7, 8, SegmentKind::Preempted, 0);
    builder.segment(2, 8, 12, SegmentKind::Running, 0).segment(3, 0, 12, SegmentKind::Running, 0);
    builder.call(1, 0, 11, "AL").call(2, 0, 9, "AL").call(2, 9, 12, "A").call(3, 0, 12, "J");
    let expected = [
        ("A;L;thread 3;J", 7),
        ("A;L;thread 2;A;L;[preempted]", 1),
        ("A;L;thread 2;A;L", 1),
        ("A;L;thread 2;A", 1),
        ("A;L", 1),
        ("", 1),
    ];
    expect(tree(&builder, 1, 0, 12), &expected);
    // A thread in between that waits in another place is shown.
    builder.0.threads[1].rows.calls[0].name = builder.0.tables.names.intern("other");
    assert_eq!(tree(&builder, 1, 0, 12).get("A;L;thread 2;A;L;thread 3;J"), Some(&7));
}
