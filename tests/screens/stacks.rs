//! Stack charts, events and aligned calls of executions: their keys on a made-up recording, and their drawings over a
//! kernel trace and a recording by perf.

use super::interface::Session;
use super::{SNAPSHOT_SIZES, assert_snapshot, session};
use std::path::Path;
use std::sync::Arc;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::compare::arranged::KernelFrames;
use whyslow::parts::compare::calls::PairedCalls;
use whyslow::parts::compare::moments::align;
use whyslow::parts::input::Argument;
use whyslow::parts::session::OpenOptions;
use whyslow::parts::symbols::files::SymbolPaths;
use whyslow::parts::tui::job::{Done, ReadTimelines};
use whyslow::parts::tui::layers::{LoadedTimelines, PairAlignment, TimelineContent, TimelineView};
use whyslow::parts::tui::message::UiMessage;
use whyslow::parts::tui::paint::Painter;
use whyslow::parts::tui::theme::ColourDepth;

fn loaded(session: &Session) -> &LoadedTimelines {
    let view: &TimelineView = session.app.top().expect("a timeline on top");
    match &view.content {
        TimelineContent::Loaded(loaded) => loaded,
        other => panic!("not loaded: {other:?}"),
    }
}

fn page(session: &Session) -> String {
    session.lines().join("\n")
}

#[test]
fn down_leads_from_the_lanes_into_the_calls_and_up_leads_back() {
    let mut session = session(120, 40, "v Home");
    assert!(loaded(&session).line.is_none());
    // Two threads; then the first line of calls.
    session.keys("Down Down");
    assert_eq!(loaded(&session).line, Some(0));
    session.keys("Down");
    assert_eq!(loaded(&session).line, Some(1));
    let (_, call) = loaded(&session).call_here().unwrap();
    assert_eq!(loaded(&session).tree(0).line_of(call.level as usize), 1);
    assert!(page(&session).contains("of this execution, at"), "{}", page(&session));
    session.keys("Up Up");
    assert!(loaded(&session).line.is_none());
    session.keys("Up");
    assert!(loaded(&session).line.is_none());
}

#[test]
fn left_and_right_go_from_call_to_call_of_a_level() {
    let mut session = session(120, 40, "v Home Down Down Home Down");
    let line = loaded(&session).line;
    let mut before = loaded(&session).call_here().unwrap().0;
    let mut moves = 0;
    for _ in 0..10 {
        session.keys("Right");
        let (call, at) = loaded(&session).call_here().map(|(at, call)| (*call, at)).unwrap();
        assert_eq!(Some(loaded(&session).tree(0).line_of(call.level as usize)), line, "the line stays");
        moves += usize::from(at > before);
        assert!(at >= before);
        before = at;
    }
    assert!(moves > 0, "{}", page(&session));
    session.keys("Enter");
    let window = loaded(&session).window.clone();
    let (_, call) = loaded(&session).call_here().unwrap();
    assert!(
        window.start <= call.start_ns && call.end_ns() <= window.end,
        "the call is shown whole: {window:?} {call:?}"
    );
}

#[test]
fn the_other_execution_goes_to_the_corresponding_moment() {
    let mut session = session(120, 40, "v Home");
    for _ in 0..12 {
        session.keys("Right");
        let shown = loaded(&session);
        let here = shown.here().unwrap().1.start_ns;
        assert_eq!(shown.linked[0], here);
        assert_eq!(shown.linked[1], shown.calls.time_in_other(0, here));
        let other = shown.timeline(1).unwrap();
        assert_eq!(Some(shown.cursor[1]), other.segment_at(shown.linked[1]));
    }
    session.keys("a a");
    assert_eq!(loaded(&session).alignment, PairAlignment::Cursor);
    assert_eq!(loaded(&session).shift(1), loaded(&session).linked[0] - loaded(&session).linked[1]);
    assert!(session.lines()[0].contains("aligned at the cursor"));
}

#[test]
fn aligned_calls_move_both_cursors_and_lead_to_the_time_of_a_call() {
    let mut session = session(120, 40, "v c Home");
    assert!(page(&session).contains("calls of both, aligned"), "{}", page(&session));
    let mut visited = Vec::new();
    for _ in 0..8 {
        session.keys("Down");
        let shown = loaded(&session);
        let trees = shown.trees.as_ref().unwrap();
        let row = shown.calls.rows[trees.here().unwrap().last as usize];
        for (at, calls) in [row.a, row.b].into_iter().enumerate() {
            if let Some(calls) = calls {
                assert_eq!(shown.linked[at], calls.start_ns, "execution {at}");
            }
        }
        visited.push(trees.cursor);
    }
    assert!(visited.is_sorted() && visited.last() > visited.first());
    let shown = loaded(&session);
    let row = shown.calls.rows[shown.trees.as_ref().unwrap().here().unwrap().last as usize];
    session.keys("Enter");
    let shown = loaded(&session);
    assert!(shown.trees.is_none());
    let front = shown.front;
    let calls = row.calls(front).unwrap();
    // The cursor is on the call, or on what it calls at its begin, which shares its line.
    let tree = shown.tree(front);
    let mut up = std::iter::successors(shown.call_here().map(|(at, _)| at), |at| tree.call(*at)?.parent);
    assert!(up.any(|at| at == calls.first), "{}", page(&session));
    session.keys("c Esc");
    assert!(loaded(&session).trees.is_none(), "Esc leads from the tree to the charts");
    session.keys("Esc");
    assert!(session.app.layers.is_empty());
}

#[test]
fn events_are_visited_one_by_one() {
    let mut session = session(80, 24, "v Home ) ");
    let total = loaded(&session).timeline(0).unwrap().events.len();
    assert!(total > 1 && loaded(&session).events);
    let (first, _) = loaded(&session).event_here().unwrap();
    assert!(page(&session).contains(&format!("event {first} of {total}")), "{}", page(&session));
    for _ in first..total {
        session.keys(")");
    }
    assert_eq!(loaded(&session).event_here().unwrap().0, total);
    session.keys(")");
    assert!(page(&session).contains("no further event"), "{}", page(&session));
    session.keys("(");
    assert_eq!(loaded(&session).event_here().unwrap().0, total - 1);
    session.keys("Left");
    assert!(loaded(&session).event_here().is_none(), "moving elsewhere leaves the event");
}

#[test]
fn a_failed_call_has_a_letter_of_its_own_and_its_error() {
    let mut session = session(120, 40, "v p Home");
    let failed = loaded(&session).timeline(0).unwrap().events.iter().position(|event| event.has_failed());
    for _ in 0..=failed.expect("a failed call") {
        session.keys(")");
    }
    let page = page(&session);
    assert!(page.contains("e event") && page.contains("= EAGAIN") && page.contains("e failed call"), "{page}");
}

#[test]
fn moving_among_calls_writes_few_bytes() {
    for (columns, lines, limit) in [(80, 24, 1024), (200, 60, 4096)] {
        for (keys, moves) in [
            ("v Home Down Down", "Down Down Right Right Right Left Down Up Up"),
            ("v c", "Down Down Up Down Down Left Right Home End Up"),
            ("v p Home", ") ) ) ) ( Right Left"),
        ] {
            let mut session = session(columns, lines, keys);
            let mut painter = Painter::default();
            painter.paint(&session.draw(), &mut Vec::new());
            for key in moves.split(' ') {
                session.keys(key);
                let mut out = Vec::new();
                painter.paint(&session.draw(), &mut out);
                assert!(out.len() <= limit, "{columns}x{lines} {keys}, then {key}: {} bytes", out.len());
            }
        }
    }
}

/// A timeline over a recording: the interface has its executions, and is given what the job would read.
fn over(path: &str, symbols: Option<&str>, columns: u16, lines: u16, keys: &str) -> Session {
    let ctx = Ctx::new(1);
    let fixture = |path: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(path);
    let opened = [Argument::parse(fixture(path))];
    let mut recording = whyslow::parts::session::Session::open(&opened, &OpenOptions::default(), &ctx).unwrap();
    let folders = symbols.map(fixture).into_iter().collect();
    let places = SymbolPaths { folders, only: true, ..SymbolPaths::default() };
    let model = Arc::new(recording.model(None, &places, &[], &ctx).unwrap());
    let mut session = Session::new(columns, lines, ColourDepth::True);
    session.send(UiMessage::Done(Done::Analysed(Ok(model))));
    // The backend's recording is another one: its answer is refused.
    session.keys("v");
    let view: &TimelineView = session.app.top().expect("a timeline on top");
    let ids: Vec<_> = view.executions.iter().map(|execution| execution.id).collect();
    let model = Arc::new(recording.model(None, &places, &ids, &ctx).unwrap());
    let [a, b] = [ids[0], ids[1]];
    let calls = PairedCalls::new(&model, a, Some(b), KernelFrames::Hidden, &ctx.cancel).unwrap();
    let divergence = align(&model, a, b).unwrap().divergence();
    let read = ReadTimelines { model, calls: Arc::new(calls), divergence };
    session.send(UiMessage::Done(Done::Timelines(ids, Ok(read))));
    session.keys(keys);
    session
}

#[test]
fn charts_and_trees_over_recordings_equal_their_snapshots() {
    for (name, path, symbols) in [
        ("kernel", "traces/lock-contention", Some("traces/lock-contention/bin")),
        ("perf", "recorders/planted/lock.data", None),
    ] {
        for (columns, lines) in SNAPSHOT_SIZES {
            for (part, keys) in [("chart", "Down Down Down Down"), ("events", "p )"), ("calls", "c Down Down")] {
                let session = over(path, symbols, columns, lines, keys);
                assert_snapshot(&format!("stacks-{part}-{name}-{columns}x{lines}"), &session);
            }
        }
    }
}
