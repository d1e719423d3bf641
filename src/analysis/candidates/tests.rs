//! Which tasks are found, and in which order.

use super::*;
use crate::analysis::timeline_builder::TimelineBuilder;
use crate::base::time::{Ns, Span, Timestamp};
use crate::timeline::{Segment, SegmentKind, ThreadId, ThreadName};

/// A thread that waits in `call` and works in between: `n` iterations, every twentieth ten times as long.
fn looping(name: &str, n: usize, spread: bool) -> TimelineBuilder {
    let mut builder = TimelineBuilder::new(1);
    let id = builder.0.tables.names.intern(name);
    builder.0.threads[0].thread.names = vec![ThreadName { from: Timestamp::ZERO, name: id }];
    let mut at = 0;
    for i in 0..n as Ns {
        let work = if spread && i % 20 == 7 { 100 } else { 10 };
        builder.segment(1, at, at + work, SegmentKind::Running, 0).segment(
            1,
            at + work,
            at + work + 5,
            SegmentKind::Network,
            0,
        );
        builder.silent_call(1, at + work - 1, at + work + 6);
        at += work + 5;
    }
    builder.segment(1, at, at + 50, SegmentKind::Running, 0);
    builder
}

fn found(builder: &TimelineBuilder) -> (Vec<String>, Vec<String>) {
    let timeline = builder.sealed();
    let programs = Programs::new(&timeline, None);
    let (stacks, symbol_paths) = (LazyStackTables::default(), SymbolPaths::default());
    let (ctx, symbol_paths) = (Ctx::new(1), &symbol_paths);
    let room = &SpanRoom::of(&ctx);
    let sources = CandidateSources { timeline: &timeline, stacks: &stacks, symbol_paths, functions: None, room };
    let all = candidates(sources, &programs, &ctx).unwrap();
    let of = |kind: ExecutionKind| {
        let tasks = all.iter().flat_map(|program| program.often.iter().chain(&program.seldom));
        tasks.filter(|c| c.about.kind == kind).map(|c| c.about.task.clone()).collect()
    };
    (of(ExecutionKind::Iterations), of(ExecutionKind::SystemCalls))
}

#[test]
fn loops_needs_many_iterations_of_uneven_length() {
    assert_eq!(found(&looping("job-1", 40, true)).0, ["wait=call,thread=job-*"]);
    assert!(found(&looping("job-1", 40, false)).0.is_empty());
    assert!(found(&looping("job-1", 10, true)).0.is_empty());
    assert!(found(&looping("lttng-sessiond", 40, true)).0.is_empty());
}

#[test]
fn candidates_of_the_recorded_command_come_before_those_of_busier_processes() {
    let mut builder = looping("job-1", 40, true);
    let other = looping("idler", 40, true);
    let mut command = other.0.threads[0].clone();
    (command.thread.tid, command.thread.pid) = (9, 9);
    let [before, own] = ["perf-exec", "server"].map(|name| builder.0.tables.names.intern(name));
    command.thread.names =
        vec![ThreadName { from: Timestamp::ZERO, name: before }, ThreadName { from: Timestamp::new(1), name: own }];
    builder.0.threads[0].thread.pid = builder.0.threads[0].thread.tid;
    builder.0.threads.push(command);
    // The command ran for far less time.
    let busy = &mut builder.0.threads[0].rows.segments;
    let end = busy.last().map_or(0, |segment| segment.span.end.ns());
    busy.push(Segment { span: Span::of_ns(end, end + 1_000_000), ..busy[0] });
    assert_eq!(found(&builder).0, ["wait=call,thread=server", "wait=call,thread=job-*"]);
    // A thread that keeps a tracer's name to its end is the tracer's own.
    builder.0.threads[1].thread.names.truncate(1);
    let perf = builder.0.tables.names.intern("perf");
    builder.0.threads[1].thread.names.push(ThreadName { from: Timestamp::new(2), name: perf });
    assert_eq!(found(&builder).0, ["wait=call,thread=job-*"]);
}

#[test]
fn programs_that_only_wait_beside_the_recorded_command_are_not_its_purpose() {
    // A shell that perf runs begins the server, becomes `cat` and waits; a stranger is called `cat`, too.
    let mut builder = TimelineBuilder::new(3);
    let names: [&[&str]; 3] = [&["perf-exec", "sh", "cat"], &["server"], &["cat"]];
    for (at, (names, ns)) in names.into_iter().zip([5, 600, 300]).enumerate() {
        let names = (0..)
            .zip(names)
            .map(|(since, name)| ThreadName { from: Timestamp::new(since), name: builder.0.tables.names.intern(name) });
        let names = names.collect();
        let thread = &mut builder.0.threads[at].thread;
        (thread.names, thread.pid) = (names, thread.tid);
        builder.segment(at + 1, 0, ns, SegmentKind::Running, 0);
    }
    builder.0.threads[1].thread.parent = Some(ThreadId::at(0));
    let ranks = |builder: &TimelineBuilder| {
        let programs = Programs::new(&builder.sealed(), None);
        ["server", "cat"].map(|name| programs.all.iter().find(|program| program.name == name).map(|of| of.rank))
    };
    assert_eq!(ranks(&builder), [Some(Rank::Recorded), Some(Rank::Command)]);
    // What works for the server belongs to the purpose.
    builder.segment(1, 600, 620, SegmentKind::Running, 0);
    assert_eq!(ranks(&builder), [Some(Rank::Recorded); 2]);
}

#[test]
fn calls_ranks_the_busiest_process_and_the_longest_tail_first() {
    let mut builder = TimelineBuilder::new(2);
    let (busy, idle) = (builder.0.tables.names.intern("busy"), builder.0.tables.names.intern("quiet"));
    for (at, (name, until)) in [(busy, 950), (idle, 20)].into_iter().enumerate() {
        let thread = &mut builder.0.threads[at].thread;
        (thread.names, thread.pid) = (vec![ThreadName { from: Timestamp::ZERO, name }], thread.tid);
        builder.segment(at + 1, 0, until, SegmentKind::Running, 0);
    }
    let (read, sync) = (builder.0.tables.names.intern("read"), builder.0.tables.names.intern("fsync"));
    for i in 0..20 {
        let long = if i == 9 { 30 } else { 2 };
        builder.silent_call(1, i * 40, i * 40 + long).silent_call(2, i * 40, i * 40 + long + 9);
        builder.0.threads[0].rows.calls[i as usize].name = read;
        builder.0.threads[1].rows.calls[i as usize].name = sync;
    }
    assert_eq!(found(&builder).1, ["read", "fsync"]);
}
