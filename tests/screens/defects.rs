//! What a review of the interface found, each with the behaviour that it asked for; other tests here show the rest.

use super::interface::Session;
use super::session;
use whyslow::view::tui::message::UiMessage;
use whyslow::view::tui::pane::Pane;
use whyslow::view::tui::sources::RootCauseOrder;
use whyslow::view::tui::theme::ColourDepth;
use whyslow::view::tui::{FirstQuestion, key_bar};

/// D2: the verdict of the comparison stays beside that of the patterns, and a sentence says why they differ.
#[test]
fn both_verdicts_are_shown_together() {
    let mut session = session(120, 40, "3");
    let verdict = session.app.comparison.as_ref().unwrap().verdict.sentence.clone();
    let header = |s: &Session| s.lines()[..usize::from(s.app.frame.header.height)].join(" ").replace("▌ ", "");
    assert!(header(&session).contains("Comparison: "), "{}", header(&session));
    let begin: String = verdict.chars().take(60).collect();
    assert!(header(&session).contains(&begin), "{}", header(&session));
    session.keys("2");
    assert!(header(&session).contains(&begin) && header(&session).contains("Pattern analysis: rank 1"));
    assert!(session.app.compared.is_some());
}

/// D4: the list begins with the root cause of the verdict, says when, and the path beside it follows the cursor.
#[test]
fn anomalies_and_path_side_by_side_are_linked() {
    for columns in [140, 200] {
        let mut session = session(columns, 40, "3");
        let page = session.lines().join("\n");
        assert!(page.contains("when ") && page.contains("delay "), "{page}");
        assert_eq!(session.app.patterns.list.order, RootCauseOrder::Caused);
        let found = session.app.patterns.found.clone().unwrap();
        let caused: Vec<i64> =
            session.app.patterns.list.visible.iter().map(|row| row.source(&found).unwrap().affected_ns).collect();
        assert!(caused.is_sorted_by(|a, b| a >= b), "{caused:?}");
        let title = |s: &Session| {
            let right = s.app.frame.inside(Pane::Path);
            let line = &s.lines()[usize::from(right.y)];
            line.chars().skip(usize::from(right.x)).collect::<String>()
        };
        let before = title(&session);
        session.keys("Down");
        let after = title(&session);
        assert_ne!(before, after, "the path is that of the row under the cursor");
    }
}

/// D12: a trace without tasks shows its patterns, and why, in few lines.
#[test]
fn trace_without_tasks_shows_patterns_and_the_remedy() {
    let why = "ledger/kernel, ledger/ust: no task detected; define one with --task begin=EVENT,end=EVENT, or run \
               `whyslow anomalies`, which needs none";
    let mut session = Session::new(80, 24, ColourDepth::True);
    let failed = whyslow::view::tui::job::JobError::Failed(why.to_owned());
    session.send(UiMessage::Done(whyslow::view::tui::job::Done::Analysed(Err(failed))));
    let lines = session.lines();
    assert_eq!(session.app.pane, Pane::Anomalies);
    let page = lines.join("\n");
    assert!(page.contains("no task detected") && page.contains("rank 1"), "{page}");
    assert_eq!(page.matches("ledger/kernel").count(), 1, "the path is in the title alone:\n{page}");
    assert!(usize::from(session.app.frame.header.height) <= 8, "{page}");
}

/// D25: Esc takes away what is on top and what is marked, never the program; q leaves one layer; `-` goes back.
#[test]
fn keys_that_leave_mean_the_same_in_every_pane() {
    for pane in ["1", "2", "3", "4"] {
        let mut session = session(80, 24, pane);
        session.keys("Esc Esc Esc");
        assert!(!session.ended, "Esc does not quit");
        session.keys("? q");
        assert!(!session.ended && session.app.overlays.is_empty(), "q closes the page");
        session.keys("? Esc");
        assert!(session.app.overlays.is_empty());
        session.keys("-");
        assert!(session.lines()[23].contains("nothing to go back to"), "{}", session.lines()[23]);
        session.keys("/ a b c Enter Backspace");
        assert!(session.app.tree.search.text.is_empty() || pane == "1", "Backspace clears");
        session.keys("q");
        assert!(session.ended, "q quits");
    }
}

/// D26: each id once, times since the begin, and the time of day.
#[test]
fn details_name_ids_once_and_the_time_of_day() {
    let page = session(120, 40, "i End").lines().join("\n");
    let sample = page.lines().find(|line| line.contains("worker 3") && line.contains("slow")).unwrap().to_owned();
    for id in sample.split_whitespace().filter(|word| word.len() == 3 && word.starts_with('3')) {
        let id = id.trim_end_matches(',');
        assert_eq!(sample.matches(&format!(" {id}")).count(), 1, "{sample}");
    }
    assert!(page.contains(" UTC (") && page.contains("start times count from the first event"), "{page}");
}

/// D28: a bar shows what both groups have apart from the extra, on nine cells, too.
#[test]
fn bars_of_equal_means_and_of_extra_time_look_different() {
    for columns in [80, 140] {
        let session = session(columns, 24, "Enter");
        let row = |name: &str| {
            let lines = session.lines();
            lines.iter().rfind(|line| line.contains(name) && !line.contains("Waiting")).unwrap().clone()
        };
        let cells = |line: &str, symbol: char| line.chars().filter(|c| *c == symbol).count();
        let (extra, both) = (row("expensive_flush"), row("worker_main"));
        assert!(cells(&extra, '█') > 0 && cells(&extra, '▒') == 0, "{extra}");
        assert!(cells(&both, '▒') > 0, "{both}");
    }
}

/// D29: while nothing is known, the key bar has no key that would do nothing, and the stage is shown.
#[test]
fn loading_shows_its_stage_and_only_keys_that_work() {
    let mut session = Session::new(80, 24, ColourDepth::True);
    for (stage, done) in [("reading", 21), ("paths", 3), ("symbols", 50)] {
        session.progress(stage, done, 50, 432_000);
        let page = session.lines().join("\n");
        assert!(page.contains(&format!("{stage} {}%", done * 2)), "{page}");
    }
    for word in key_bar::words(&session.app, 200) {
        let mut pressed = Session::new(80, 24, ColourDepth::True);
        let effects = whyslow::view::tui::update::update(
            &mut pressed.app,
            UiMessage::Key(whyslow::view::tui::key::KeyPress::parse(&word.key).unwrap()),
        );
        let status = pressed.app.status.clone();
        let does_something = !effects.is_empty() || !pressed.app.overlays.is_empty() || pressed.app.pane != Pane::Tree;
        assert!(does_something, "{} {}: {status:?}", word.key, word.word);
    }
    // Mining has stages of its own.
    let mut session = Session::beginning(80, 24, ColourDepth::True, FirstQuestion::Patterns);
    let busy = |stage| whyslow::view::tui::job::Busy { what: "mining", stage, done: 1, total: 4, events: 0 };
    let lane = whyslow::view::tui::job::JobLane::Patterns;
    for stage in ["reading", "patterns", "paths"] {
        session.send(UiMessage::Progress(lane, busy(stage)));
        assert!(session.lines().join("\n").contains(&format!("{stage} 25%")));
    }
}

/// D30: on ten lines the verdict says its figure, or that it goes on; large screens are not left empty.
#[test]
fn small_screens_keep_the_verdicts_figure() {
    let session = session(40, 10, "");
    let header = session.lines()[..usize::from(session.app.frame.header.height)].join(" ");
    assert!(header.contains(" ms of ") || header.contains('…'), "{header}");
    // All of it is one key away.
    let mut session = session_of(session, "w");
    session.keys("Esc i");
    assert!(!session.app.overlays.is_empty());
}

fn session_of(mut session: Session, keys: &str) -> Session {
    session.keys(keys);
    session
}

#[test]
fn clicks_in_dialogs_choose_point_and_close() {
    // A list: the first click takes the cursor, the second one chooses.
    let mut session = session(80, 24, "T");
    let top = session.app.frame.overlay.y;
    session.send(UiMessage::Click(5, top + 3));
    assert_eq!(session.app.task(), Some("app:request"));
    session.send(UiMessage::Click(5, top + 3));
    assert_eq!(session.app.task(), Some("syscall:futex"));
    // A page closes by a click above it or on `Esc close`, and scrolls by the wheel.
    session.keys("?");
    session.send(UiMessage::Wheel(3));
    let page = session.lines();
    session.send(UiMessage::Wheel(-3));
    assert_ne!(page, session.lines());
    session.send(UiMessage::Click(5, 0));
    assert!(session.app.overlays.is_empty());
    session.keys("?");
    session.send(UiMessage::Click(2, 23));
    assert!(session.app.overlays.is_empty());
}

#[test]
fn clicks_and_wheel_move_in_the_timeline() {
    use whyslow::view::tui::overlay::Overlay;
    use whyslow::view::tui::timeline::{LoadedTimelines, TimelineContent};
    let mut session = session(120, 40, "v o");
    let loaded = |s: &Session| -> LoadedTimelines {
        let Some(Overlay::Timeline(view)) = s.app.overlays.last() else { panic!("closed") };
        let TimelineContent::Loaded(loaded) = &view.content else { panic!("not loaded") };
        loaded.as_ref().clone()
    };
    assert!(!loaded(&session).others(0).is_empty());
    let lines = session.app.frame.timeline.clone();
    // The first thread of the first execution, at its begin.
    let x = (lines.label_columns + 2) as u16;
    session.send(UiMessage::Click(x, 2));
    let (timeline, segment) = (loaded(&session), loaded(&session).cursor[0]);
    assert_eq!((timeline.front, segment), (0, 0));
    assert!(timeline.others(0).is_empty(), "the answer was about another segment");
    let whole = timeline.window.clone();
    session.send(UiMessage::Wheel(-3));
    let zoomed = loaded(&session).window.clone();
    assert_eq!(zoomed.end - zoomed.start, (whole.end - whole.start) / 2);
    session.send(UiMessage::Wheel(3));
    assert_eq!(loaded(&session).window, whole);
    // The other execution.
    let below = 1 + 1 + session.app.frame.timeline.rows[0] + 1;
    session.send(UiMessage::Click(x + 3, below as u16));
    assert_eq!(loaded(&session).front, 1);
    // Outside of the drawings nothing happens.
    for (x, y) in [(0, 0), (119, 38), (0, 39), (60, 1)] {
        session.send(UiMessage::Click(x + 20, y));
    }
}

#[test]
fn dragging_selects_a_range_of_the_recording() {
    use whyslow::view::tui::overlay::Overlay;
    let mut session = session(80, 24, "r");
    session.send(UiMessage::Click(20, 5));
    session.send(UiMessage::Drag(25, 5));
    session.send(UiMessage::Drag(30, 6));
    let Some(Overlay::Overview(view)) = session.app.overlays.last() else { panic!("closed") };
    let count = session.app.frame.overview_columns;
    assert_eq!((view.column(count), view.selected(count).is_some()), (20, true));
    assert!(session.lines().join("\n").contains("selected: "));
    session.keys("s");
    assert!(session.lines().join("").contains("slow> start in "));
}
