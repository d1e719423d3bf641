//! Stack timelines of small recordings, computed by hand.

use super::*;
use crate::analysis::stacks::table::SurroundingStacks;
use crate::analysis::timeline_builder::{HOST, PID, TimelineBuilder, thread};
use crate::base::time::Span;
use crate::event::image::ImageChange;
use crate::timeline::{ImageEvent, SegmentKind};

/// A part of a stack timeline.
#[derive(Clone, Debug, PartialEq)]
struct Part {
    from: Ns,
    stack: String,
    in_call: bool,
}

/// The parts of thread 1 up to `end`. A hole shows the stacks around it.
fn parts(builder: &TimelineBuilder, end: Ns) -> Vec<Part> {
    let spaces = Spaces::new(&builder.0.tables.images);
    let timeline = builder.sealed();
    let lines = StackTimelines::new(&timeline, &spaces, false, &Ctx::new(1)).unwrap();
    let reader = timeline.reader(Asker::Stacks);
    let text = |s: Stack| {
        let user = s.user.map_or("?".to_owned(), |u| builder.letters(u.stack));
        let around = s.around.map(|SurroundingStacks { before, after }| {
            format!("({}|{})", builder.letters(before.stack), builder.letters(after.stack))
        });
        around.unwrap_or_default() + &user
    };
    let over = lines.cursor(&reader, thread(1)).over(Span::of_ns(0, end));
    let shown = |(span, id): (Span, StackId)| {
        let stack = lines.get(id);
        Part { from: span.start.ns(), stack: text(stack), in_call: stack.call.is_some() }
    };
    let all: Vec<Part> = over.map(shown).collect();
    for part in &all {
        assert_eq!(part.stack, text(lines.get(lines.cursor(&reader, thread(1)).at(Timestamp::new(part.from)))));
    }
    all
}

fn part(from: Ns, stack: &str, in_call: bool) -> Part {
    Part { from, stack: stack.to_owned(), in_call }
}

#[test]
fn entry_stack_holds_for_its_call_in_any_order_of_channels() {
    let mut builder = TimelineBuilder::new(1);
    builder.silent_call(1, 10, 20).silent_call(1, 30, 40).silent_call(1, 50, 60);
    builder.sample(1, 9, StackOrigin::CallEntry, "AB").sample(1, 21, StackOrigin::CallExit, "AB");
    builder.sample(1, 31, StackOrigin::CallEntry, "AC").sample(1, 39, StackOrigin::CallExit, "AC");
    builder.sample(1, 61, StackOrigin::CallExit, "AD");
    let expected = [
        part(0, "?", false),
        part(10, "AB", true),
        part(20, "(AB|AC)?", false),
        part(30, "AC", true),
        part(40, "(AC|AD)?", false),
        part(50, "AD", true),
        part(60, "?", false),
    ];
    assert_eq!(parts(&builder, 70), expected);
}

#[test]
fn samples_meet_midway_without_cutting_time_off_the_cpu() {
    let mut builder = TimelineBuilder::new(1);
    builder.segment(1, 0, 20, SegmentKind::Running, 0).segment(1, 20, 60, SegmentKind::Preempted, 0);
    builder.segment(1, 60, 100, SegmentKind::Running, 0);
    builder.sample(1, 4, StackOrigin::Tick, "AB").sample(1, 16, StackOrigin::Tick, "AC");
    builder.sample(1, 70, StackOrigin::Tick, "AD");
    builder.silent_call(1, 80, 90);
    assert_eq!(parts(&builder, 80), [part(0, "AB", false), part(10, "AC", false), part(60, "AD", false)]);
}

#[test]
fn sample_holds_for_ten_periods_of_running_time() {
    let mut builder = TimelineBuilder::new(1);
    builder.segment(1, 0, 30, SegmentKind::Running, 0).segment(1, 30, 500, SegmentKind::Preempted, 0);
    builder.segment(1, 500, 1000, SegmentKind::Running, 0);
    // Two ticks 4 apart: the period; the second holds for 40, of which 14 are before the preemption.
    builder.sample(1, 12, StackOrigin::Tick, "AB").sample(1, 16, StackOrigin::Tick, "AC");
    assert_eq!(parts(&builder, 900), [part(0, "AB", false), part(14, "AC", false), part(526, "?", false)]);
}

#[test]
fn stack_ends_at_an_exec() {
    let mut builder = TimelineBuilder::new(1);
    let exec = ImageChange::Exec { path: builder.0.tables.names.intern("server") };
    builder.segment(1, 0, 900, SegmentKind::Running, 0);
    builder.0.tables.images.push(ImageEvent { time: Timestamp::ZERO, host: HOST, pid: PID, change: exec.clone() });
    builder.0.tables.images.push(ImageEvent { time: Timestamp::new(50), host: HOST, pid: PID, change: exec });
    builder.sample(1, 10, StackOrigin::Tick, "AB").call(1, 40, 60, "AC").sample(1, 61, StackOrigin::CallExit, "X");
    let expected = [part(0, "AB", false), part(40, "AC", true), part(50, "?", true), part(60, "?", false)];
    assert_eq!(parts(&builder, 100), expected);
}

#[test]
fn sample_after_a_long_call_gives_its_stack() {
    // The 2 first calls are long, the third is short; two samples come late: the last one for the last long call
    // without a stack, which is the first call if the second has a sample of its own.
    let mut builder = TimelineBuilder::new(1);
    builder.0.threads[0].thread.life = Span::of_ns(0, 2_000_000);
    let (a, b) = ((100_000, 300_000), (400_000, 600_000));
    builder.silent_call(1, a.0, a.1).silent_call(1, b.0, b.1).silent_call(1, 700_000, 700_500);
    builder.sample(1, 300_100, StackOrigin::AfterCall, "AB").sample(1, 800_000, StackOrigin::AfterCall, "AC");
    let calls = |builder: &TimelineBuilder| -> Vec<String> {
        parts(builder, 900_000).into_iter().filter(|part| part.in_call).map(|part| part.stack).collect()
    };
    assert_eq!(calls(&builder), ["AB", "AC", "?"]);
    // The result does not depend on how late the second sample is.
    builder.0.threads[0].rows.samples[1].time = Timestamp::new(1_900_000);
    assert_eq!(calls(&builder), ["AB", "AC", "?"]);
    // An entry stack takes precedence.
    builder.sample(1, b.0, StackOrigin::CallEntry, "AD");
    builder.0.threads[0].rows.samples.sort_by_key(|s| s.time);
    assert_eq!(calls(&builder), ["AB", "AD", "?"]);
}

#[test]
fn open_functions_take_precedence_over_samples() {
    let mut builder = TimelineBuilder::new(1);
    builder.segment(1, 0, 1000, SegmentKind::Running, 0);
    builder.sample(1, 10, StackOrigin::Tick, "AB").sample(1, 20, StackOrigin::Function, "F");
    builder.sample(1, 30, StackOrigin::Function, "FG").call(1, 40, 60, "AC");
    builder.sample(1, 50, StackOrigin::Function, "F").sample(1, 70, StackOrigin::Function, "");
    builder.0.threads[0].rows.samples.sort_by_key(|s| s.time);
    let expected = [
        part(0, "AB", false),
        part(20, "F", false),
        part(30, "FG", false),
        part(40, "FG", true),
        part(50, "F", true),
        part(60, "F", false),
        part(70, "?", false),
    ];
    assert_eq!(parts(&builder, 100), expected);
}

#[test]
fn hole_and_lost_chain_keep_the_stacks_around_them() {
    let mut builder = TimelineBuilder::new(1);
    let exec = ImageChange::Exec { path: builder.0.tables.names.intern("server") };
    builder.0.tables.images.push(ImageEvent { time: Timestamp::ZERO, host: HOST, pid: PID, change: exec.clone() });
    builder.0.tables.images.push(ImageEvent { time: Timestamp::new(65), host: HOST, pid: PID, change: exec });
    builder.call(1, 10, 20, "AB").call(1, 30, 40, "R").call(1, 50, 60, "AC").call(1, 70, 80, "AD");
    let expected = [
        part(0, "?", false),
        part(10, "AB", true),
        part(20, "(AB|AC)?", false),
        part(30, "(AB|AC)R", true),
        part(40, "(AB|AC)?", false),
        part(50, "AC", true),
        // Another program: nothing is in common.
        part(60, "?", false),
        part(70, "AD", true),
    ];
    assert_eq!(parts(&builder, 80), expected);
}
