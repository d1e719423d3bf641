//! Trees of waits for a CPU, of stopped threads and of paused CPUs.

use super::*;
use crate::analysis::timeline_builder::{HOST, PID, TimelineBuilder, thread};
use crate::base::time::{Ns, Timestamp};
use crate::event::remark::{KernelWork, Priority, Remark, RemarkKind};
use crate::model::wait_kind::{BY_SIGNAL, BY_TRACER, IDLE_EXIT};
use crate::timeline::{CpuRun, CpuTimeline, LONGEST_WAKE_UP};
use std::collections::BTreeMap;

pub(super) const MS: Ns = 1_000_000;

#[test]
fn accumulate_tells_time_in_which_the_cpu_was_idle() {
    let long = LONGEST_WAKE_UP;
    let tree_of = |idle: Ns| {
        let mut builder = TimelineBuilder::new(9);
        builder.0.tables.span = Span::of_ns(0, 4 * long);
        builder.segment(1, 0, 10, SegmentKind::Running, 0).segment(1, 10, 30 + idle, SegmentKind::Preempted, 0);
        builder.call(1, 0, 4 * long, "M");
        builder.runs(&[(0, 10, 1), (10, 20, 9), (20, 20 + idle, 2), (20 + idle, 30 + idle, 9)]);
        builder.0.threads[1].thread.idle = true;
        tree(&builder, 1, 10, 30 + idle)
    };
    let held = tree_of(long);
    assert_eq!(held.get("M;[preempted];[CPU idle]"), Some(&(long as u64)), "{held:?}");
    assert_eq!(held.values().sum::<u64>(), 20 + long as u64);
    // Waking up took that long.
    assert_eq!(tree_of(long - 1).get("M;[preempted]"), Some(&(long as u64 - 1)));
}

/// Twins of 1 ms beside an idle CPU: it was leaving an idle state for most of it, or was awake.
#[test]
fn accumulate_tells_an_idle_exit_from_a_late_scheduler() {
    let tree_of = |left: Ns| {
        let mut builder = TimelineBuilder::new(3);
        let leaving = builder.0.tables.names.intern(IDLE_EXIT);
        builder.0.tables.span = Span::of_ns(0, 4 * MS);
        builder.segment(1, 0, MS, SegmentKind::Running, 0);
        builder.segment(1, MS, left, SegmentKind::Preempted, 0).segment(1, left, 2 * MS, SegmentKind::Preempted, 0);
        builder.call(1, 0, 4 * MS, "M").runs(&[(0, MS, 1), (MS, 2 * MS, 2), (2 * MS, 4 * MS, 1)]);
        builder.0.threads[1].thread.idle = true;
        if left > MS {
            builder.0.threads[0].rows.segments[1].qualifier = Some(leaving);
        }
        tree(&builder, 1, MS, 2 * MS)
    };
    let (leaves, awake) = (tree_of(MS + 900_000), tree_of(MS));
    assert_eq!(leaves.get("M;[preempted];[CPU leaving idle]"), Some(&900_000), "{leaves:?}");
    assert_eq!(leaves.get("M;[preempted]"), Some(&100_000), "{leaves:?}");
    assert_eq!(awake.into_iter().collect::<Vec<_>>(), [("M;[preempted]".to_owned(), MS as u64)]);
}

/// Thread 1 waits for CPU 0 from 10 ms on, while thread 2 runs; thread 3 is idle, on CPU 1 until `idle` ms.
fn busy_neighbour(wait: Ns, idle: Ns, before: SegmentKind, after: SegmentKind) -> BTreeMap<String, u64> {
    tree(&neighbours(wait, idle, before, after), 1, 10 * MS, 10 * MS + wait * MS)
}

pub(super) fn neighbours(wait: Ns, idle: Ns, before: SegmentKind, after: SegmentKind) -> TimelineBuilder {
    let mut builder = TimelineBuilder::new(4);
    let (end, all) = (10 * MS + wait * MS, 500 * MS);
    builder.0.tables.span = Span::of_ns(0, all);
    builder.0.threads.iter_mut().for_each(|state| state.thread.life = Span::of_ns(0, all));
    builder.segment(1, 0, 10 * MS, before, 0).segment(1, 10 * MS, end, SegmentKind::Preempted, 0);
    builder.segment(1, end, end + MS, SegmentKind::Running, 0);
    builder.segment(2, 0, end, SegmentKind::Running, 0).segment(2, end, end + MS, after, 0);
    builder.call(1, 0, all, "M").runs(&[(10 * MS, end, 2), (end, end + MS, 1)]);
    let other = |(start, end, n): (Ns, Ns, usize)| CpuRun { span: Span::of_ns(start, end), thread: thread(n) };
    let runs = [(0, idle * MS, 3), (idle * MS, all, 4)].map(other).to_vec();
    builder.0.cpus.push(CpuTimeline { host: builder.0.cpus[0].host, cpu: 1, runs });
    builder.0.threads[2].thread.idle = true;
    builder
}

#[test]
fn accumulate_says_that_other_cpus_were_idle() {
    let of = |wait, idle| busy_neighbour(wait, idle, SegmentKind::Timer, SegmentKind::Timer).into_keys().next();
    assert_eq!(of(20, 500).as_deref(), Some("M;[preempted];[1 of 2 idle];thread 2"));
    assert_eq!(of(20, 22).as_deref(), Some("M;[preempted];thread 2"), "idle in the first half alone");
    assert_eq!(of(3, 500).as_deref(), Some("M;[preempted];thread 2"), "a time slice");
}

/// Twins: whether the neighbour was to run on, whether the wait is longer than its turn, and how it began.
#[test]
fn accumulate_tells_waits_that_end_out_of_turn() {
    let of = |wait, before, after| busy_neighbour(wait, 0, before, after).into_keys().next().unwrap_or_default();
    let (ran, woken) = (SegmentKind::Running, SegmentKind::Timer);
    assert_eq!(of(60, ran, SegmentKind::Preempted), "M;[preempted];[as under a quota];thread 2");
    assert_eq!(of(60, woken, SegmentKind::Preempted), "M;[preempted];[out of turn];thread 2");
    assert_eq!(of(60, ran, SegmentKind::Timer), "M;[preempted];thread 2", "it ended by itself");
    assert_eq!(of(20, ran, SegmentKind::Preempted), "M;[preempted];thread 2", "its turn");
}

/// A remark on a thread of CPU 0.
fn remark(ns: Ns, tid: i32, kind: RemarkKind) -> Remark {
    Remark { time: Timestamp::new(ns), host: HOST, cpu: 0, tid, kind }
}

/// Twins: the same wait, out of turn, behind a thread of each priority.
#[test]
fn accumulate_says_that_threads_of_higher_priority_ran() {
    let of = |waits: i64, runs: i64| {
        let mut builder = neighbours(60, 0, SegmentKind::Running, SegmentKind::Preempted);
        let priority = |tid, prio| remark(5 * MS, tid, RemarkKind::Priority(Priority::from_kernel(Some(prio))));
        builder.0.tables.remarks = vec![priority(1, waits), priority(2, runs)];
        tree(&builder, 1, 10 * MS, 70 * MS).into_keys().next().unwrap_or_default()
    };
    assert_eq!(of(120, 49), "M;[preempted];[for a real-time thread];thread 2");
    assert_eq!(of(60, 49), "M;[preempted];[for a thread of higher priority];thread 2");
    assert_eq!(of(120, 110), "M;[preempted];[for a thread of higher priority];thread 2");
    assert_eq!(of(120, 120), "M;[preempted];[as under a quota];thread 2");
    assert_eq!(of(115, 120), "M;[preempted];[as under a quota];thread 2", "it precedes the other a little");
    assert_eq!(of(110, 120), "M;[preempted];[before threads of lower priority];thread 2");
}

/// The kernel works for a thread, which runs and waits meanwhile.
#[test]
fn accumulate_puts_kernel_work_below_the_stack() {
    let mut builder = TimelineBuilder::new(2);
    builder.segment(1, 0, 30, SegmentKind::Running, 0).segment(1, 30, 70, SegmentKind::Disk, 0);
    builder.segment(1, 70, 100, SegmentKind::Running, 0).call(1, 0, 100, "M").runs(&[(0, 30, 1), (70, 100, 1)]);
    let work = KernelWork::Reclaim;
    builder.0.tables.remarks = vec![remark(20, 1, RemarkKind::Begins(work)), remark(80, 1, RemarkKind::Ends(work))];
    let reclaim = "M;(mm_vmscan_direct_reclaim)";
    let waits = format!("{reclaim};[blocked.disk]");
    expect(tree(&builder, 1, 0, 100), &[("M", 40), (reclaim, 20), (&waits, 40)]);
}

/// The thread that sends a signal is not the one that ends the stop.
#[test]
fn accumulate_names_the_sender_of_a_stop() {
    let mut builder = TimelineBuilder::new(3);
    let signal = builder.0.tables.names.intern(BY_SIGNAL);
    builder.segment(1, 0, 10, SegmentKind::Running, 0).segment(1, 10, 50, SegmentKind::Stopped, 3);
    builder.segment(1, 50, 60, SegmentKind::Running, 0).segment(2, 0, 20, SegmentKind::Running, 0);
    builder.segment(3, 0, 100, SegmentKind::Running, 0).call(1, 0, 60, "M").runs(&[(0, 20, 2)]);
    builder.0.threads[0].rows.segments[1].qualifier = Some(signal);
    let stop = "M;[stopped];[by a signal]";
    let without = format!("{stop};thread 3");
    expect(tree(&builder, 1, 0, 60), &[("M", 20), (&without, 40)]);
    builder.0.tables.remarks = vec![remark(9, 2, RemarkKind::Stops(PID))];
    let with = format!("{stop};[sent by 2];thread 3");
    expect(tree(&builder, 1, 0, 60), &[("M", 20), (&with, 40)]);
}

/// A holder is stopped, and a debugger lets it go on.
#[test]
fn accumulate_puts_the_thread_that_lets_go_on_below_the_stop() {
    let of = |waker: usize| {
        let mut builder = TimelineBuilder::new(3);
        let by = [BY_SIGNAL, BY_TRACER].map(|name| builder.0.tables.names.intern(name));
        builder.segment(1, 0, 10, SegmentKind::Running, 0).segment(1, 10, 50, SegmentKind::Stopped, waker);
        builder.segment(1, 50, 60, SegmentKind::Running, 0).segment(2, 0, 100, SegmentKind::Running, 0);
        builder.call(1, 0, 60, "M");
        builder.0.threads[0].rows.segments[1].qualifier = Some(by[1]);
        tree(&builder, 1, 0, 60)
    };
    expect(of(2), &[("M", 20), ("M;[stopped];[by a tracer];thread 2", 40)]);
    expect(of(0), &[("M", 20), ("M;[stopped];[stopped]", 40)]);
}

/// A thread computes, and another one waits for its CPU, which is paused for 60 ms: its clock comes each millisecond.
#[test]
fn accumulate_blames_no_thread_for_a_paused_cpu() {
    let of = |handler: &str| tree(&paused_cpu(handler), 2, 30 * MS, 130 * MS);
    expect(of("local_timer"), &[("[preempted];thread 1", 40 * MS as u64), ("[stolen]", 60 * MS as u64)]);
    // Interrupts of a network card may stay away.
    expect(of("eth0-rx-0"), &[("[preempted];thread 1", 100 * MS as u64)]);
}

pub(super) fn paused_cpu(handler: &str) -> TimelineBuilder {
    let mut builder = TimelineBuilder::new(3);
    let handler = builder.0.tables.names.intern(handler);
    builder.0.tables.hosts.push(crate::timeline::Host { name: handler, kernel_release: None });
    builder.0.tables.quality = vec![crate::model::facts::Quality { switches: 9, ..Default::default() }];
    builder.0.tables.span = Span::of_ns(0, 200 * MS);
    builder.0.threads.iter_mut().for_each(|state| state.thread.life = Span::of_ns(0, 200 * MS));
    let mut at = 0;
    for ms in (1..40).chain(100..160) {
        builder.segment(1, at, ms * MS, SegmentKind::Running, 0);
        at = ms * MS + 1_000;
        builder.segment(1, ms * MS, at, SegmentKind::Interrupted, 0);
        builder.0.threads[0].rows.segments.last_mut().unwrap().qualifier = Some(handler);
    }
    builder.segment(2, 30 * MS, 130 * MS, SegmentKind::Preempted, 0).runs(&[(0, 160 * MS, 1)]);
    builder
}
