//! Timelines made of a few segments: position, scale, alignment and search.

use super::*;
use crate::base::ctx::Cancel;
use crate::compare::moments::align;
use crate::model::context::{Frame, FrameKind};
use crate::model::execution_timeline::TimelineThread;
use crate::model::wait_kind::WaitKind;

/// Two executions of segments as (thread, function, length).
fn loaded(executions: [&[(u32, &str, Ns)]; 2]) -> LoadedTimelines {
    let mut model = Model::default();
    for (at, segments) in executions.iter().enumerate() {
        let mut timeline = ExecutionTimeline::default();
        for (thread, function, ns) in *segments {
            let name = model.names.intern(function);
            let context = model.contexts.child(None, Frame { kind: FrameKind::Function, name });
            let (start_ns, state) = (timeline.ns, WaitKind::Cpu);
            timeline.segments.push(TimelineSegment { start_ns, ns: *ns, thread: *thread, state, cpu: None, context });
            timeline.ns += ns;
        }
        let threads = segments.iter().map(|(thread, ..)| *thread).max().unwrap_or(0) + 1;
        timeline.threads = (0..threads)
            .map(|thread| TimelineThread {
                host: "host".into(),
                process: "server".into(),
                name: ["worker", "journal"][thread as usize].into(),
                pid: 1,
                tid: 10 + thread as i32,
            })
            .collect();
        model.timelines.insert(ExecutionId::at(at), timeline);
    }
    LoadedTimelines::new(read(model, 2), vec![ExecutionId::at(0), ExecutionId::at(1)]).unwrap()
}

/// What a job would read of the first executions of a model.
fn read(model: Model, executions: usize) -> ReadTimelines {
    let [a, b] = [0, 1].map(ExecutionId::at);
    let (b, cancel) = ((executions > 1).then_some(b), Cancel::default());
    let calls = PairedCalls::new(&model, a, b, KernelFrames::Shown, &cancel).unwrap_or_default();
    let divergence = b.and_then(|b| align(&model, a, b).unwrap().divergence());
    ReadTimelines { model: Arc::new(model), calls: Arc::new(calls), divergence }
}

fn example() -> LoadedTimelines {
    loaded([
        &[(0, "parse", 100), (0, "send", 5), (0, "lock", 5), (1, "flush", 800), (0, "reply", 90)],
        &[(0, "parse", 110), (0, "reply", 90)],
    ])
}

#[test]
fn new_shows_the_whole_with_the_cursor_on_the_longest_segment() {
    let view = example();
    assert_eq!((view.window.clone(), view.cursor), (0..1000, [3, 1]), "the other is where it goes on alike");
    assert_eq!(view.divergence, Some(Divergence { a_ns: 110, b_ns: 110, delta_ns: 800 }));
    assert!(LoadedTimelines::new(read(Model::default(), 1), vec![ExecutionId::at(0)]).is_none());
}

#[test]
fn steps_go_from_column_to_column_and_over_all_segments_where_each_has_one() {
    let mut view = example();
    view.go_to(0, 20);
    let mut visited = Vec::new();
    for _ in 0..5 {
        view.step(1, 20);
        visited.push(view.cursor[0]);
    }
    // Three segments begin in one column: the longest of them is shown.
    assert_eq!(visited, [3, 4, 4, 4, 4]);
    view.go_to(0, 1000);
    let steps: Vec<usize> = (0..4)
        .map(|_| {
            view.step(1, 1000);
            view.cursor[0]
        })
        .collect();
    assert_eq!(steps, [1, 2, 3, 4]);
    let steps: Vec<usize> = (0..5)
        .map(|_| {
            view.step(-1, 1000);
            view.cursor[0]
        })
        .collect();
    assert_eq!(steps, [3, 2, 1, 0, 0]);
}

#[test]
fn zoom_keeps_the_cursor_in_sight_and_ends_at_a_nanosecond_per_column() {
    let mut view = example();
    view.go_to(2, 20);
    for _ in 0..20 {
        view.zoom(1, 20);
        let segment = view.here().unwrap().1;
        assert!(segment.start_ns < view.window.end && segment.end_ns() > view.window.start, "{:?}", view.window);
    }
    assert_eq!(view.window.end - view.window.start, 20);
    (0..20).for_each(|_| view.zoom(-1, 20));
    assert_eq!(view.window, 0..1000);
    view.show_segment(4);
    assert_eq!(view.window.end - view.window.start, 10);
    view.pan(1_000, 4);
    assert_eq!(view.window.end, 1000);
    view.go_to(0, 4);
    assert!(view.window.start < 100, "a cursor outside of the window moves it");
}

#[test]
fn threads_and_executions_are_reached_by_lines() {
    let mut view = example();
    view.step_thread(-1, 20);
    assert_eq!((view.front, view.cursor[0]), (0, 2), "the worker's segment that is nearest in time");
    view.step_thread(1, 20);
    assert_eq!(view.cursor[0], 3);
    view.step_thread(1, 20);
    assert_eq!((view.front, view.cursor[1]), (1, 1), "the second ended before");
    view.step_thread(1, 20);
    assert_eq!(view.front, 1);
    view.step_thread(-1, 20);
    assert_eq!(view.front, 0);
}

#[test]
fn alignment_at_the_divergence_shifts_the_second() {
    let mut view =
        loaded([&[(0, "parse", 300), (0, "flush", 500)], &[(0, "parse", 100), (0, "flush", 20), (0, "reply", 900)]]);
    assert_eq!(view.divergence.map(|d| (d.a_ns, d.b_ns)), Some((800, 120)));
    assert!(view.next_alignment(20));
    assert_eq!((view.shift(0), view.shift(1)), (0, 680));
    assert_eq!(view.window, 0..1700);
    assert_eq!(view.window_of(1), -680..1020);
    view.next_alignment(20);
    view.go_to(1, 20);
    assert_eq!((view.linked, view.shift(1)), ([300, 100], 200), "at the begin of flush in both");
    view.next_alignment(20);
    assert_eq!((view.shift(1), view.window.clone()), (0, 0..1020));
}

#[test]
fn find_marks_segments_by_frame_and_thread() {
    let mut view = example();
    view.find("JOURNAL");
    assert_eq!(view.search.matches, [3]);
    view.find("parse");
    assert_eq!(view.search.matches, [0]);
    assert_eq!(view.step_match(MatchStep::Next, 20), "match 1 of 1: parse");
    assert_eq!(view.cursor[0], 0);
    view.switch(20);
    assert_eq!(view.search.matches, [0], "matches are of the execution in front");
    view.find("nothing");
    assert!(view.step_match(MatchStep::Here, 20).contains("not on the path"));
}

#[test]
fn question_asks_about_the_segment_under_the_cursor() {
    let view = example();
    let question = view.question().unwrap();
    assert_eq!((question.tid, question.cpu, question.span), (11, None, Span::of_ns(110, 910)));
}
