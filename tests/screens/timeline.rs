//! The timeline of an execution: its ways in, its states, its keys.

use super::interface::Session;
use super::{SNAPSHOT_SIZES, assert_snapshot, session};
use whyslow::parts::tui::layers::{LoadedTimelines, PairAlignment, TimelineContent, TimelineView};
use whyslow::parts::tui::message::UiMessage;

fn view(session: &Session) -> &TimelineView {
    session.app.top().expect("a timeline on top")
}

fn loaded(session: &Session) -> &LoadedTimelines {
    match &view(session).content {
        TimelineContent::Loaded(loaded) => loaded,
        other => panic!("not loaded: {other:?}"),
    }
}

#[test]
fn timeline_states_equal_their_snapshots() {
    for (columns, lines) in SNAPSHOT_SIZES {
        // The job is requested and does not end: no effect is performed.
        let mut waiting = session(columns, lines, "");
        let key = whyslow::parts::tui::key::KeyPress::parse("v").unwrap();
        whyslow::parts::tui::update::update(&mut waiting.app, UiMessage::Key(key));
        assert_snapshot(&format!("timeline-loading-{columns}x{lines}"), &waiting);
        let mut failed = Session::unreadable(columns, lines);
        failed.ready();
        failed.keys("v");
        assert!(failed.lines().join(" ").contains("a database holds executions only"));
        assert_snapshot(&format!("timeline-failed-{columns}x{lines}"), &failed);
    }
}

#[test]
fn examples_open_from_causes_details_and_anomalies() {
    // A cause, a node, a range of a metric, the marked example of details, an example of an anomaly.
    for keys in ["v", "Enter v", "1 v", "i Enter", "i Tab Tab Enter", "1 i Tab Enter"] {
        let session = session(80, 24, keys);
        let shown = view(&session);
        assert_eq!(shown.executions.len(), 2, "{keys}");
        assert_eq!(shown.executions[1].group, "fast");
        let model = session.app.model.as_ref().unwrap();
        let kind = |at: usize| {
            let id = shown.executions[at].id.index();
            let types = model.executions.column(&whyslow::parts::model::metric::Metric::Type).unwrap();
            types.values.get(id).unwrap()
        };
        assert_eq!(kind(0), kind(1), "{keys}: of the same type");
    }
    let first = view(&session(80, 24, "i Enter")).executions[0].id;
    let third = view(&session(80, 24, "i Tab Tab Enter")).executions[0].id;
    assert_ne!(first, third);
    assert_eq!(view(&session(80, 24, "v")).executions[0].id, first);
    assert_eq!(view(&session(80, 24, "i Shift-Tab Tab Enter")).executions[0].id, first);
}

#[test]
fn the_marked_example_is_in_sight() {
    let mut session = session(80, 24, "i");
    for _ in 0..12 {
        session.keys("Tab");
        let lines = session.lines();
        assert!(lines.iter().any(|line| line.starts_with(" ▌slow") || line.starts_with(" ▌fast")), "{lines:#?}");
    }
}

#[test]
fn timeline_names_state_stack_and_reason_of_the_segment() {
    let session = session(120, 40, "v p o");
    let page = session.lines().join("\n");
    for part in [
        "journal 319  R running (CPU 2)",
        "serialize_entries",
        "waits for it until",
        "(lock, which it held)",
        "CPU: telemetryd 77",
        "disk: auditlogd 91",
        "ran on CPU 2 meanwhile: telemetryd 77",
        "waited for a disk meanwhile: auditlogd 91",
        "▲",
        "of typical length",
    ] {
        assert!(page.contains(part), "no {part:?} on\n{page}");
    }
}

#[test]
fn timeline_keys_move_zoom_search_and_align() {
    let mut session = session(120, 40, "v");
    let whole = loaded(&session).window.clone();
    session.keys("+ + +");
    let zoomed = loaded(&session).window.clone();
    assert_eq!((whole.end - whole.start) / 8, zoomed.end - zoomed.start);
    session.keys("z / p a r s e Enter");
    let (_, segment) = loaded(&session).here().unwrap();
    let frames = loaded(&session).model.contexts.path(segment.context);
    let name = |c| loaded(&session).model.names.get(loaded(&session).model.contexts.frame(c).name).to_owned();
    assert!(frames.into_iter().map(name).any(|name| name.contains("parse")), "the search went to a match");
    assert!(session.lines().join("").contains("match 1 of"));
    session.keys("Tab");
    assert_eq!(loaded(&session).front, 1);
    session.keys("a");
    assert!(
        loaded(&session).alignment == PairAlignment::Divergence
            && session.lines()[0].contains("aligned where they diverge")
    );
    session.keys("y");
    assert!(session.copied[0].contains("whyslow diff --executions "), "{:?}", session.copied);
    session.keys("?");
    assert!(session.lines().join("\n").contains("In the timeline"));
    session.keys("Esc Esc");
    assert!(session.app.layers.is_empty());
    session.keys("Shift-Right");
    assert!(session.lines().join("").contains("Shift-Right is not bound here"));
}

#[test]
fn a_step_of_the_cursor_writes_few_bytes() {
    for (columns, lines, limit) in [(80, 24, 1024), (200, 60, 4096)] {
        let mut session = session(columns, lines, "v");
        let mut painter = whyslow::parts::tui::paint::Painter::default();
        painter.paint(&session.draw(), &mut Vec::new());
        for key in ["Right", "Right", "Left", "Down", "Up", "Home", "End", "Left"] {
            session.keys(key);
            let mut out = Vec::new();
            painter.paint(&session.draw(), &mut out);
            assert!(out.len() <= limit, "{columns}x{lines} {key}: {} bytes", out.len());
        }
    }
}

#[test]
fn every_size_draws_the_timeline() {
    for (columns, lines) in
        [(1, 1), (2, 2), (5, 3), (19, 7), (40, 10), (60, 16), (140, 20), (500, 200), (80, 1), (1, 80)]
    {
        let mut session = session(columns, lines, "v");
        for key in "Right p Tab o Down Down a + + + + Left Shift-Right - z / x Esc Up Home End ? Esc".split(' ') {
            session.keys(key);
            session.draw();
        }
    }
}

#[test]
fn timeline_and_overview_have_the_time_of_day() {
    let page = session(120, 40, "v").lines().join("\n");
    assert!(page.contains("begins at 1.846800 s, 2 threads, 2023-11-14 22:13:21.846800 UTC"), "{page}");
    let page = session(80, 24, "v").lines().join("\n");
    assert!(page.contains("begins at 1.846800 s, 2 threads, 22:13:21.846800 UTC"), "{page}");
    let page = session(80, 24, "r").lines().join("\n");
    assert!(page.contains("22:13:20.000000 UTC; < > select"), "{page}");
}
