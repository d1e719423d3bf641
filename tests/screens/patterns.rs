//! The panes of patterns: the table of root causes, the path, and the jump to the executions of a moment.

use super::interface::Session;
use whyslow::parts::tui::job::SelectedPath;
use whyslow::parts::tui::pane::Pane;
use whyslow::parts::tui::sources::RootCauseRow;
use whyslow::parts::tui::theme::ColourDepth;
use whyslow::parts::tui::{Exported, FirstQuestion};

#[test]
fn q_and_s_change_the_list_at_once_and_the_cursor_stays() {
    let mut session = Session::new(80, 24, ColourDepth::True);
    session.ready();
    session.keys("]");
    assert!(session.lines()[23].contains("press 3"));
    session.keys("3 o o Down Down Down");
    let list = |s: &Session| s.app.patterns.list.clone();
    let here = |s: &Session| {
        let found = s.app.patterns.found.as_ref().unwrap();
        list(s).name(found, list(s).here().unwrap()).unwrap()
    };
    let (all, before) = (list(&session).visible.len(), here(&session));
    session.keys("{ { {");
    assert!(list(&session).visible.len() > all && session.app.patterns.settings.s == 1.25);
    assert_eq!(here(&session), before);
    session.keys("} } }");
    assert_eq!((list(&session).visible.len(), here(&session)), (all, before));
    session.keys("[ ]");
    assert_eq!(session.app.patterns.settings, Default::default());
    session.keys("R");
    assert!(session.lines()[1].contains("robust limit"));
}

#[test]
fn the_table_of_sources_is_filtered_searched_and_ordered() {
    let mut session = Session::new(120, 40, ColourDepth::True);
    session.ready();
    session.keys("3 & n o i s e Enter");
    let noise = |s: &Session| {
        let found = s.app.patterns.found.clone().unwrap();
        let rows = s.app.patterns.list.visible.iter();
        rows.map(|row| row.source(&found).unwrap().noise.is_some()).collect::<Vec<_>>()
    };
    assert!(!noise(&session).is_empty() && noise(&session).iter().all(|noise| *noise));
    session.keys("Esc");
    assert!(noise(&session).iter().any(|noise| !noise));
    session.keys("Home / r a n k Enter n");
    let lines = session.lines();
    assert!(lines[39].contains("match 2 of"), "{}", lines[39]);
    session.keys("o");
    let found = session.app.patterns.found.clone().unwrap();
    let list = &session.app.patterns.list;
    let excess: Vec<i64> = list.visible.iter().map(|row| row.source(&found).unwrap().excess_ns).collect();
    assert!(excess.is_sorted_by(|a, b| a >= b) && list.row == 0, "a new order is read from its top");
}

#[test]
fn the_table_of_sources_and_the_path_follow_each_other() {
    let mut session = Session::new(200, 60, ColourDepth::True);
    session.ready();
    session.keys("3 { { { {");
    let source_of_path = |s: &Session| {
        let found = s.app.patterns.found.clone().unwrap();
        found.beginnings.get(s.app.patterns.path.path).copied().flatten().map(|beginning| beginning.root_cause)
    };
    let here = |s: &Session| s.app.patterns.list.here().unwrap();
    let rows = session.app.patterns.list.visible.len();
    assert!(rows > 3);
    for _ in 0..rows {
        assert_eq!(source_of_path(&session), Some(here(&session).at()));
        session.keys("Down");
    }
    // A path with another source takes the cursor of the table along.
    session.keys("4");
    for _ in 0..5 {
        session.keys("Right");
        assert_eq!(source_of_path(&session), Some(here(&session).at()));
    }
    // A source opens to its occurrences, each with its path.
    session.keys("3 Home");
    let found = session.app.patterns.found.clone().unwrap();
    let several = |s: &Session| here(s).source(&found).unwrap().occurrences.len() > 1;
    while !several(&session) {
        session.keys("Down");
    }
    let source = here(&session);
    session.keys("Enter Down");
    let RootCauseRow::Occurrence(at, 0) = here(&session) else { panic!("{:?}", here(&session)) };
    assert_eq!((at, session.app.patterns.list.visible.len() > rows), (source.at(), true));
    let occurrence = here(&session).occurrence(&found).unwrap().clone();
    assert_eq!(session.app.patterns.path.path as u32, occurrence.path.unwrap());
    session.keys("Enter");
    assert_eq!(session.app.pane, Pane::Path);
    session.keys("Ctrl-o Left");
    assert_eq!((here(&session), session.app.patterns.list.visible.len()), (source, rows));
}

#[test]
fn from_a_step_to_the_executions_of_its_moment_and_back() {
    let mut session = Session::new(80, 24, ColourDepth::True);
    session.ready();
    session.keys("3 Enter Enter m");
    assert_eq!(session.app.pane, Pane::Tree);
    let slow = session.app.comparison.as_ref().unwrap().slow.clone();
    let moment = session.app.patterns.found.as_ref().unwrap().step(0, session.app.patterns.path.step).unwrap().span;
    let model = session.app.model.clone().unwrap();
    let contains = |at: usize| model.executions.start.at(at) < moment.end && moment.end <= model.executions.end(at);
    let ran: Vec<usize> = (0..model.executions.len()).filter(|at| contains(*at)).collect();
    let members: Vec<usize> = slow.members.iter().map(|m| m.index()).collect();
    assert!(!ran.is_empty() && members == ran, "the slow group is exactly those that ran");
    let fast = &session.app.comparison.as_ref().unwrap().fast.members;
    assert!(fast.iter().all(|m| !members.contains(&m.index())), "none is in both groups");
    assert!(session.lines()[1].contains("those that ran at "), "{}", session.lines()[1]);
    let step = session.app.patterns.path;
    session.keys("Ctrl-o");
    assert_eq!((session.app.pane, session.app.patterns.path), (Pane::Path, step));
    session.keys("Ctrl-o Ctrl-o");
    assert_eq!(session.app.pane, Pane::Anomalies);
}

#[test]
fn the_selected_path_is_exported() {
    let mut session = Session::new(80, 24, ColourDepth::True);
    session.ready();
    session.keys("3 Enter Right");
    session.keys("e Enter y");
    assert!(session.lines()[23].contains("whyslow-anomalies.json written"));
    let Some(Exported::Anomalies { path: Some(1), .. }) = session.exported() else {
        panic!("{:?}", session.exported())
    };
    session.keys("2 e Enter y");
    let Some(Exported::Comparison { path: Some(SelectedPath { at: 1, .. }), .. }) = session.exported() else {
        panic!("{:?}", session.exported())
    };
}

#[test]
fn patterns_come_first_where_nothing_delimits_executions() {
    let mut session = Session::beginning(80, 24, ColourDepth::True, FirstQuestion::Patterns);
    assert!(session.app.model.is_none() && session.app.pane == Pane::Anomalies);
    session.mined();
    let lines = session.lines();
    let verdict = lines[..4].join("\n");
    assert!(verdict.contains("Rank 1 delayed others most, once, at 0.047577 s: 40.9 ms between calls, "), "{verdict}");
    // Executions are analysed when they are asked for.
    session.keys("2");
    assert!(session.app.comparison.is_some());
}
