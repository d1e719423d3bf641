//! Timelines of small recordings, worked out by hand.

use super::*;
use crate::analysis::timeline_builder::{HOST, PID, TimelineBuilder, thread};
use crate::state::timeline::{ImageChange, ImageEvent};

/// The pieces of thread 1 up to `end`: (from, stack, in a call). A hole shows what is around it.
fn pieces(builder: &TimelineBuilder, end: Timestamp) -> Vec<(Timestamp, String, bool)> {
    let spaces = Spaces::new(&builder.0.images);
    let lines = StackTimelines::new(&builder.0, &spaces, false, &Ctx::new(1)).unwrap();
    let text = |s: Stack| {
        let user = s.user.map_or("?".to_owned(), |u| builder.letters(u.stack));
        let around = s.around.map(|(a, b)| format!("({}|{})", builder.letters(a.stack), builder.letters(b.stack)));
        around.unwrap_or_default() + &user
    };
    let over = lines.over(thread(1), Span::new(0, end));
    let all: Vec<_> = over.map(|(span, id)| (span.start, text(lines.get(id)), lines.get(id).call.is_some())).collect();
    for (from, stack, _) in &all {
        assert_eq!(*stack, text(lines.get(lines.at(thread(1), *from))));
    }
    all
}

fn piece(from: Timestamp, stack: &str, call: bool) -> (Timestamp, String, bool) {
    (from, stack.to_owned(), call)
}

#[test]
fn entry_stacks_hold_through_their_call_whichever_channel_comes_first() {
    let mut builder = TimelineBuilder::new(1);
    builder.silent_call(1, 10, 20).silent_call(1, 30, 40).silent_call(1, 50, 60);
    builder.sample(1, 9, StackOrigin::CallEntry, "AB").sample(1, 21, StackOrigin::CallExit, "AB");
    builder.sample(1, 31, StackOrigin::CallEntry, "AC").sample(1, 39, StackOrigin::CallExit, "AC");
    builder.sample(1, 61, StackOrigin::CallExit, "AD");
    let wanted = [
        piece(0, "?", false),
        piece(10, "AB", true),
        piece(20, "(AB|AC)?", false),
        piece(30, "AC", true),
        piece(40, "(AC|AD)?", false),
        piece(50, "AD", true),
        piece(60, "?", false),
    ];
    assert_eq!(pieces(&builder, 70), wanted);
}

#[test]
fn samples_meet_midway_and_a_time_off_the_cpu_is_not_cut() {
    let mut builder = TimelineBuilder::new(1);
    builder.segment(1, 0, 20, SegmentKind::Running, 0).segment(1, 20, 60, SegmentKind::Preempted, 0);
    builder.segment(1, 60, 100, SegmentKind::Running, 0);
    builder.sample(1, 4, StackOrigin::Tick, "AB").sample(1, 16, StackOrigin::Tick, "AC");
    builder.sample(1, 70, StackOrigin::Tick, "AD");
    builder.silent_call(1, 80, 90);
    assert_eq!(pieces(&builder, 80), [piece(0, "AB", false), piece(10, "AC", false), piece(60, "AD", false)]);
}

#[test]
fn a_sample_holds_for_ten_periods_of_running_time() {
    let mut builder = TimelineBuilder::new(1);
    builder.segment(1, 0, 30, SegmentKind::Running, 0).segment(1, 30, 500, SegmentKind::Preempted, 0);
    builder.segment(1, 500, 1000, SegmentKind::Running, 0);
    // Two ticks 4 apart: the period; the second holds for 40, of which 14 lie before the preemption.
    builder.sample(1, 12, StackOrigin::Tick, "AB").sample(1, 16, StackOrigin::Tick, "AC");
    assert_eq!(pieces(&builder, 900), [piece(0, "AB", false), piece(14, "AC", false), piece(526, "?", false)]);
}

#[test]
fn no_stack_survives_an_exec() {
    let mut builder = TimelineBuilder::new(1);
    let exec = ImageChange::Exec { path: builder.0.names.intern("server") };
    builder.segment(1, 0, 900, SegmentKind::Running, 0);
    builder.0.images.push(ImageEvent { time: 0, host: HOST, pid: PID, change: exec.clone() });
    builder.0.images.push(ImageEvent { time: 50, host: HOST, pid: PID, change: exec });
    builder.sample(1, 10, StackOrigin::Tick, "AB").call(1, 40, 60, "AC").sample(1, 61, StackOrigin::CallExit, "X");
    let wanted = [piece(0, "AB", false), piece(40, "AC", true), piece(50, "?", true), piece(60, "?", false)];
    assert_eq!(pieces(&builder, 100), wanted);
}

#[test]
fn a_sample_after_a_long_call_tells_of_it() {
    // The 2 first calls are long, the third is short; two samples come late: the last one for the last long call
    // without a stack, which is the first call if the second has a sample of its own.
    let mut builder = TimelineBuilder::new(1);
    builder.0.threads[0].life = Span::new(0, 2_000_000);
    let (a, b) = ((100_000, 300_000), (400_000, 600_000));
    builder.silent_call(1, a.0, a.1).silent_call(1, b.0, b.1).silent_call(1, 700_000, 700_500);
    builder.sample(1, 300_100, StackOrigin::AfterCall, "AB").sample(1, 800_000, StackOrigin::AfterCall, "AC");
    let calls = |builder: &TimelineBuilder| -> Vec<String> {
        pieces(builder, 900_000).into_iter().filter(|p| p.2).map(|p| p.1).collect()
    };
    assert_eq!(calls(&builder), ["AB", "AC", "?"]);
    // However late the second comes, it is the same.
    builder.0.threads[0].samples[1].time = 1_900_000;
    assert_eq!(calls(&builder), ["AB", "AC", "?"]);
    // An entry stack is believed first.
    builder.sample(1, b.0, StackOrigin::CallEntry, "AD");
    builder.0.threads[0].samples.sort_by_key(|s| s.time);
    assert_eq!(calls(&builder), ["AB", "AD", "?"]);
}

#[test]
fn open_functions_are_believed_before_samples() {
    let mut builder = TimelineBuilder::new(1);
    builder.segment(1, 0, 1000, SegmentKind::Running, 0);
    builder.sample(1, 10, StackOrigin::Tick, "AB").sample(1, 20, StackOrigin::Function, "F");
    builder.sample(1, 30, StackOrigin::Function, "FG").call(1, 40, 60, "AC");
    builder.sample(1, 50, StackOrigin::Function, "F").sample(1, 70, StackOrigin::Function, "");
    builder.0.threads[0].samples.sort_by_key(|s| s.time);
    let wanted = [
        piece(0, "AB", false),
        piece(20, "F", false),
        piece(30, "FG", false),
        piece(40, "FG", true),
        piece(50, "F", true),
        piece(60, "F", false),
        piece(70, "?", false),
    ];
    assert_eq!(pieces(&builder, 100), wanted);
}

#[test]
fn a_hole_and_a_lost_chain_keep_what_is_around_them() {
    let mut builder = TimelineBuilder::new(1);
    let exec = ImageChange::Exec { path: builder.0.names.intern("server") };
    builder.0.images.push(ImageEvent { time: 0, host: HOST, pid: PID, change: exec.clone() });
    builder.0.images.push(ImageEvent { time: 65, host: HOST, pid: PID, change: exec });
    builder.call(1, 10, 20, "AB").call(1, 30, 40, "R").call(1, 50, 60, "AC").call(1, 70, 80, "AD");
    let wanted = [
        piece(0, "?", false),
        piece(10, "AB", true),
        piece(20, "(AB|AC)?", false),
        piece(30, "(AB|AC)R", true),
        piece(40, "(AB|AC)?", false),
        piece(50, "AC", true),
        // Another program: nothing is in common.
        piece(60, "?", false),
        piece(70, "AD", true),
    ];
    assert_eq!(pieces(&builder, 80), wanted);
}
