//! Timelines of small recordings, worked out by hand.

use super::*;
use crate::analysis::timeline_builder::{HOST, PID, TimelineBuilder, thread};
use crate::state::timeline::{ImageChange, ImageEvent};

/// The pieces of thread 1 up to `end`: (from, stack, in a call). A hole shows what is around it.
fn pieces(story: &TimelineBuilder, end: Timestamp) -> Vec<(Timestamp, String, bool)> {
    let spaces = Spaces::new(&story.0.images);
    let lines = StackTimelines::new(&story.0, &spaces, false, &Ctx::new(1)).unwrap();
    let text = |s: Stack| {
        let user = s.user.map_or("?".to_owned(), |u| story.letters(u.stack));
        let around = s.around.map(|(a, b)| format!("({}|{})", story.letters(a.stack), story.letters(b.stack)));
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
    let mut story = TimelineBuilder::new(1);
    story.silent_call(1, 10, 20).silent_call(1, 30, 40).silent_call(1, 50, 60);
    story.sample(1, 9, StackOrigin::CallEntry, "AB").sample(1, 21, StackOrigin::CallExit, "AB");
    story.sample(1, 31, StackOrigin::CallEntry, "AC").sample(1, 39, StackOrigin::CallExit, "AC");
    story.sample(1, 61, StackOrigin::CallExit, "AD");
    let wanted = [
        piece(0, "?", false),
        piece(10, "AB", true),
        piece(20, "(AB|AC)?", false),
        piece(30, "AC", true),
        piece(40, "(AC|AD)?", false),
        piece(50, "AD", true),
        piece(60, "?", false),
    ];
    assert_eq!(pieces(&story, 70), wanted);
}

#[test]
fn samples_meet_midway_and_a_time_off_the_cpu_is_not_cut() {
    let mut story = TimelineBuilder::new(1);
    story.edge(1, 0, 20, SegmentKind::Running, 0).edge(1, 20, 60, SegmentKind::Preempted, 0);
    story.edge(1, 60, 100, SegmentKind::Running, 0);
    story.sample(1, 4, StackOrigin::Tick, "AB").sample(1, 16, StackOrigin::Tick, "AC");
    story.sample(1, 70, StackOrigin::Tick, "AD");
    story.silent_call(1, 80, 90);
    assert_eq!(pieces(&story, 80), [piece(0, "AB", false), piece(10, "AC", false), piece(60, "AD", false)]);
}

#[test]
fn a_sample_holds_for_ten_periods_of_running_time() {
    let mut story = TimelineBuilder::new(1);
    story.edge(1, 0, 30, SegmentKind::Running, 0).edge(1, 30, 500, SegmentKind::Preempted, 0);
    story.edge(1, 500, 1000, SegmentKind::Running, 0);
    // Two ticks 4 apart: the period; the second holds for 40, of which 14 lie before the preemption.
    story.sample(1, 12, StackOrigin::Tick, "AB").sample(1, 16, StackOrigin::Tick, "AC");
    assert_eq!(pieces(&story, 900), [piece(0, "AB", false), piece(14, "AC", false), piece(526, "?", false)]);
}

#[test]
fn no_stack_survives_an_exec() {
    let mut story = TimelineBuilder::new(1);
    let exec = ImageChange::Exec { path: story.0.names.intern("server") };
    story.edge(1, 0, 900, SegmentKind::Running, 0);
    story.0.images.push(ImageEvent { time: 0, host: HOST, pid: PID, change: exec.clone() });
    story.0.images.push(ImageEvent { time: 50, host: HOST, pid: PID, change: exec });
    story.sample(1, 10, StackOrigin::Tick, "AB").call(1, 40, 60, "AC").sample(1, 61, StackOrigin::CallExit, "X");
    let wanted = [piece(0, "AB", false), piece(40, "AC", true), piece(50, "?", true), piece(60, "?", false)];
    assert_eq!(pieces(&story, 100), wanted);
}

#[test]
fn a_sample_after_a_long_call_tells_of_it() {
    // The 2 first calls are long, the third is short; two samples come late: the last one for the last long call
    // without a stack, which is the first call if the second has a sample of its own.
    let mut story = TimelineBuilder::new(1);
    story.0.threads[0].life = Span::new(0, 2_000_000);
    let (a, b) = ((100_000, 300_000), (400_000, 600_000));
    story.silent_call(1, a.0, a.1).silent_call(1, b.0, b.1).silent_call(1, 700_000, 700_500);
    story.sample(1, 300_100, StackOrigin::AfterCall, "AB").sample(1, 800_000, StackOrigin::AfterCall, "AC");
    let calls = |story: &TimelineBuilder| -> Vec<String> {
        pieces(story, 900_000).into_iter().filter(|p| p.2).map(|p| p.1).collect()
    };
    assert_eq!(calls(&story), ["AB", "AC", "?"]);
    // However late the second comes, it is the same.
    story.0.threads[0].samples[1].time = 1_900_000;
    assert_eq!(calls(&story), ["AB", "AC", "?"]);
    // An entry stack is believed first.
    story.sample(1, b.0, StackOrigin::CallEntry, "AD");
    story.0.threads[0].samples.sort_by_key(|s| s.time);
    assert_eq!(calls(&story), ["AB", "AD", "?"]);
}

#[test]
fn open_functions_are_believed_before_samples() {
    let mut story = TimelineBuilder::new(1);
    story.edge(1, 0, 1000, SegmentKind::Running, 0);
    story.sample(1, 10, StackOrigin::Tick, "AB").sample(1, 20, StackOrigin::Function, "F");
    story.sample(1, 30, StackOrigin::Function, "FG").call(1, 40, 60, "AC");
    story.sample(1, 50, StackOrigin::Function, "F").sample(1, 70, StackOrigin::Function, "");
    story.0.threads[0].samples.sort_by_key(|s| s.time);
    let wanted = [
        piece(0, "AB", false),
        piece(20, "F", false),
        piece(30, "FG", false),
        piece(40, "FG", true),
        piece(50, "F", true),
        piece(60, "F", false),
        piece(70, "?", false),
    ];
    assert_eq!(pieces(&story, 100), wanted);
}

#[test]
fn a_hole_and_a_lost_chain_keep_what_is_around_them() {
    let mut story = TimelineBuilder::new(1);
    let exec = ImageChange::Exec { path: story.0.names.intern("server") };
    story.0.images.push(ImageEvent { time: 0, host: HOST, pid: PID, change: exec.clone() });
    story.0.images.push(ImageEvent { time: 65, host: HOST, pid: PID, change: exec });
    story.call(1, 10, 20, "AB").call(1, 30, 40, "R").call(1, 50, 60, "AC").call(1, 70, 80, "AD");
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
    assert_eq!(pieces(&story, 80), wanted);
}
