//! The tree pane with callees first.

use super::interface::Session;
use whyslow::parts::tui::app::{App, Cursor};
use whyslow::parts::tui::layers::TimelineView;
use whyslow::parts::tui::theme::ColourDepth;
use whyslow::parts::tui::tree::path_text;

fn session(keys: &str) -> Session {
    let mut session = Session::new(120, 40, ColourDepth::True);
    session.ready();
    session.keys(keys);
    session
}

/// The frames from the root to the node under the cursor of the tree that is shown.
fn here(app: &App) -> Vec<String> {
    let (model, _) = app.shown_tree().unwrap();
    path_text(&model, app.node().unwrap().1.context)
}

#[test]
fn inverted_tree_begins_with_what_took_time() {
    let mut session = session("I");
    assert!(session.lines().join("\n").contains("callees first, by extra time"));
    let comparison = session.app.comparison.clone().unwrap();
    let (model, inverted) = session.app.shown_tree().unwrap();
    let roots: Vec<u32> = session.app.tree.rows.visible.iter().filter_map(|item| item.node()).collect();
    let deltas: Vec<f64> = roots.iter().map(|at| inverted.tree.nodes[*at as usize].delta_ns).collect();
    assert!(deltas.is_sorted_by(|a, b| a >= b), "{deltas:?}");
    let all: f64 = inverted.tree.nodes.iter().filter(|n| n.parent.is_none()).map(|n| n.delta_ns).sum();
    assert!((all - comparison.extra_ns as f64).abs() < 10.0);
    // Below a frame are its callers, up to the process.
    let first = here(&session.app);
    session.keys("Right Right");
    let below = here(&session.app);
    assert!(first.len() == 1 && below.len() > 1 && below[0] == first[0], "{below:?}");
    let path = path_text(&model, inverted.tree.nodes[roots[0] as usize].context);
    assert_eq!(path, first);
}

#[test]
fn inverted_tree_stays_while_groups_change_and_leads_back() {
    let mut session = session("Enter");
    let before = (session.app.tree.cursor, session.app.tree.rows.visible.clone());
    session.keys("I Right Right");
    let place = here(&session.app);
    session.keys("s Ctrl-u d u r a t i o n > = 5 m s Enter");
    assert!(session.app.tree.inverted.is_some() && here(&session.app) == place, "{:?}", here(&session.app));
    session.keys("u");
    assert_eq!(here(&session.app), place);
    session.keys("I");
    assert_eq!((session.app.tree.cursor, session.app.tree.rows.visible.clone()), before);
    // A cause leads to its node, with callers first.
    session.keys("I");
    session.app.tree.cursor = Cursor::Cause(0);
    session.keys("Enter");
    assert!(session.app.tree.inverted.is_none() && here(&session.app)[0] == "ledgerd", "{:?}", here(&session.app));
    // Another task begins with callers first.
    session.keys("I T Down Enter");
    assert!(session.app.tree.inverted.is_none() && session.app.task() == Some("syscall:futex"));
}

#[test]
fn inverted_tree_has_details_examples_search_and_copies() {
    let mut session = session("I i");
    let page = session.lines().join("\n");
    assert!(page.contains("the part of it below each caller") && page.contains("Sample executions"), "{page}");
    session.keys("Enter");
    assert!(session.app.top::<TimelineView>().is_some());
    session.keys("Esc Esc v");
    assert!(session.app.top::<TimelineView>().is_some());
    session.keys("Esc / w o r k e r Enter");
    assert!(session.lines().join("\n").contains("match 1 of"));
    assert!(here(&session.app).last().unwrap().contains("worker"));
    session.keys("y");
    assert!(session.copied.last().unwrap().contains(" < "), "{:?}", session.copied);
    session.keys("b");
    assert!(session.lines()[39].contains("callers first"), "{}", session.lines()[39]);
    session.keys("o o o F Esc");
    assert!(session.app.tree.inverted.is_some());
}
