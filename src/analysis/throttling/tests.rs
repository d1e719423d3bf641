//! Waits and counters of a group with a quota of 20 ms per 100 ms, and twins.

use super::*;
use crate::event::host::HostId;
use crate::model::environment::{Environment, ThreadSetting, ThreadSettings};

const MS: Ns = 1_000_000;
const SECOND: Ns = 1_000 * MS;
const QUOTA: CpuQuota = CpuQuota { quota: 20 * MS, period: 100 * MS };

/// A second for each count: how often and how long the group 1 was throttled in it. The group 0 is around it.
fn environment(counted: &[(u64, Ns)]) -> PlacedEnvironment {
    let mut inner = ControlGroup {
        path: "/a".into(),
        parent: Some(0),
        is_sampled: true,
        has_usual_weight: true,
        ..ControlGroup::default()
    };
    let (mut times, mut time) = (7, 500 * MS);
    inner.counts.push(ThrottleCount { line: 0, quota: Some(QUOTA), times, time });
    for (line, (more, longer)) in (1..).zip(counted) {
        (times, time) = (times + more, time + longer);
        inner.counts.push(ThrottleCount { line, quota: Some(QUOTA), times, time });
    }
    let outer = ControlGroup { path: "/".into(), is_outermost: true, is_sampled: true, ..ControlGroup::default() };
    let group = |value| ThreadSettings { group: vec![ThreadSetting { line: 0, value }], ..ThreadSettings::default() };
    let values = Environment {
        groups: vec![outer, inner],
        processes: [(1, group(1)), (2, group(0))].into(),
        ..Environment::default()
    };
    let times = (0..=counted.len() as i64).map(|n| Timestamp::new(n * SECOND)).collect();
    PlacedEnvironment { values: Arc::new(values), times }
}

fn process(pid: i32) -> Thread {
    let mut thread = Thread::new(HostId::at(0), pid, Span::of_ns(0, i64::MAX));
    thread.pid = pid;
    thread
}

/// Waits (start and length in ms) on CPU 0 of the process 1, or on CPU 1 of the process 2.
fn found(counted: &[(u64, Ns)], waits: &[(Ns, Ns, i32)]) -> Throttling {
    let threads = [process(1), process(2)];
    let mut watch = ThrottleWatch::new(Some(&Arc::new(environment(counted))));
    for pid in [1, 2] {
        for (start, length, _) in waits.iter().filter(|wait| wait.2 == pid) {
            let span = Span::of_ns(start * MS, (start + length) * MS);
            let (cpu, id) = (pid as u32 - 1, ThreadId::at(pid as usize - 1));
            watch.segment(id, &Segment { span, kind: SegmentKind::Preempted, waker: None, qualifier: None, cpu });
            let (after, kind) = (Span::new(span.end, span.end + MS), SegmentKind::Running);
            watch.segment(id, &Segment { span: after, kind, waker: None, qualifier: None, cpu });
        }
    }
    watch.finish(|id| threads.get(id.index()))
}

fn starts(found: &Throttling, n: usize) -> Vec<Ns> {
    found.of(ThreadId::at(n)).iter().map(|wait| wait.span.start.ns() / MS).collect()
}

fn is_excluded(found: &Throttling, start: Ns, length: Ns) -> bool {
    found.is_excluded(ThreadId::at(0), &process(1), Span::of_ns(start * MS, (start + length) * MS))
}

/// Six waits of 30 ms end at the end of a period, three longer ones at any time.
const MIXED: [(Ns, Ns, i32); 9] = [
    (70, 30, 1),
    (170, 30, 1),
    (270, 30, 1),
    (301, 42, 1),
    (470, 30, 1),
    (511, 47, 1),
    (570, 30, 1),
    (711, 51, 1),
    (870, 30, 1),
];

#[test]
fn waits_in_phase_are_throttled_as_long_as_was_counted() {
    let all = found(&[(6, 180 * MS)], &MIXED);
    assert_eq!(starts(&all, 0), [70, 170, 270, 470, 570, 870]);
    assert_eq!(all.total(1), Some(&QuotaTotal { quota: QUOTA, times: 6, time: 180 * MS }));
    assert_eq!(all.group_of(ThreadId::at(0), Span::of_ns(180 * MS, 190 * MS)), Some(1), "a part of a wait");
    assert!(is_excluded(&all, 301, 42) && !is_excluded(&all, 70, 30));
    // The sum is within a wait of what was counted.
    assert_eq!(starts(&found(&[(4, 100 * MS)], &MIXED), 0).len(), 3);
}

#[test]
fn all_waits_are_throttled_where_as_much_was_counted() {
    // Busy neighbours: each thread waits some time for its turn when its quota lets it go on.
    let waits = [(40, 63, 1), (151, 81, 1), (238, 77, 1), (440, 92, 1)];
    assert_eq!(starts(&found(&[(4, 300 * MS)], &waits), 0), [40, 151, 238, 440]);
}

#[test]
fn nothing_is_said_where_waits_and_counters_do_not_fit() {
    // 90 ms were counted; waits of 400 ms are at any time.
    let waits = [(7, 61, 1), (113, 63, 1), (229, 67, 1), (371, 71, 1), (493, 73, 1), (655, 67, 1)];
    let all = found(&[(2, 90 * MS)], &waits);
    assert!(starts(&all, 0).is_empty(), "{all:?}");
    assert!(!is_excluded(&all, 113, 63), "nor is a quota excluded");
    // That of a wait of which most was not counted is.
    assert!(is_excluded(&found(&[(2, 20 * MS)], &waits), 113, 63));
}

/// Twins: the counters of another time, and those of a group that the thread is not in.
#[test]
fn no_wait_is_throttled_without_counted_periods() {
    let all = found(&[(0, 0), (6, 180 * MS)], &MIXED);
    assert!(starts(&all, 0).is_empty() && is_excluded(&all, 170, 30));
    let of_others: Vec<(Ns, Ns, i32)> = MIXED.iter().map(|(start, length, _)| (*start, *length, 2)).collect();
    let all = found(&[(6, 180 * MS)], &of_others);
    assert!(starts(&all, 1).is_empty(), "{all:?}");
    assert!(all.is_excluded(ThreadId::at(1), &process(2), Span::of_ns(170 * MS, 200 * MS)));
}

#[test]
fn nothing_is_excluded_that_was_not_sampled() {
    let all = found(&[(0, 0)], &[]);
    assert!(is_excluded(&all, 100, 60));
    assert!(!is_excluded(&all, 970, 60), "it ends after the last sample");
    let unknown = process(3);
    assert!(!all.is_excluded(ThreadId::at(0), &unknown, Span::of_ns(100 * MS, 160 * MS)), "of no known group");
    assert!(!Throttling::default().is_excluded(ThreadId::at(0), &process(1), Span::of_ns(MS, 2 * MS)));
}

#[test]
fn waits_of_one_cpu_count_once() {
    // Two threads of the group wait on one CPU at once: its throttled time is that of the union.
    let mut covered = CoveredTime::default();
    let wait = |start: Ns, end: Ns, cpu| LimitedWait { thread: ThreadId::at(0), span: Span::of_ns(start, end), cpu };
    assert_eq!(covered.add(&wait(10, 30, 0)), 20);
    assert_eq!(covered.add(&wait(40, 50, 0)), 10);
    assert_eq!(covered.uncovered(&wait(20, 45, 0)), 10);
    assert_eq!(covered.add(&wait(20, 45, 0)), 10);
    assert_eq!(covered.add(&wait(0, 60, 0)), 20);
    assert_eq!(covered.add(&wait(0, 60, 1)), 60);
    assert_eq!(covered.0[&0], [Span::of_ns(0, 60)]);
}

#[test]
fn a_thread_that_moves_goes_on_waiting() {
    let mut watch = ThrottleWatch::new(Some(&Arc::new(environment(&[(1, 60 * MS)]))));
    let segment = |start: Ns, end: Ns, kind, cpu| Segment {
        span: Span::of_ns(start * MS, end * MS),
        kind,
        waker: None,
        qualifier: None,
        cpu,
    };
    watch.segment(ThreadId::at(0), &segment(0, 40, SegmentKind::Running, 0));
    watch.segment(ThreadId::at(0), &segment(40, 90, SegmentKind::Preempted, 0));
    watch.segment(ThreadId::at(0), &segment(90, 100, SegmentKind::Preempted, 1));
    let threads = [process(1)];
    let all = watch.finish(|id| threads.get(id.index()));
    let whole = ThrottledWait { span: Span::of_ns(40 * MS, 100 * MS), group: 1 };
    assert_eq!(all.of(ThreadId::at(0)), [whole]);
}

#[test]
fn quotas_are_enforced_in_one_place() {
    for (functions, is) in [
        (&["__schedule", "schedule", "throttle_cfs_rq_work", "task_work_run"][..], true),
        (&["schedule", "task_work_run", "exit_to_user_mode_loop"], true),
        (&["__schedule", "schedule", "delayed_fput", "task_work_run"], false),
        (&["__schedule", "futex_wait"], false),
    ] {
        assert_eq!(is_enforced_in(functions.iter().copied()), is, "{functions:?}");
    }
}
