//! What was open is found again, bookmarks lead back, and what no longer fits is given up.

use super::interface::Session;
use whyslow::parts::compare::ComparisonRequest;
use whyslow::parts::tui::job::Exported;
use whyslow::parts::tui::keeping;
use whyslow::parts::tui::pane::Pane;
use whyslow::parts::tui::saved::SavedView;
use whyslow::parts::tui::theme::ColourDepth;

/// A session in which these keys were pressed, and another one that opens what was left.
fn left_and_found(keys: &str) -> (Session, Session) {
    let mut left = Session::new(80, 24, ColourDepth::True);
    left.ready();
    left.keys(keys);
    let text = serde_json::to_string(&keeping::view(&left.app)).unwrap();
    let view = serde_json::from_str(&text).unwrap();
    (left, Session::restoring(80, 24, view, ComparisonRequest::default()))
}

#[test]
fn restored_session_shows_groups_nodes_order_and_place() {
    for keys in [
        "s Ctrl-u d u r a t i o n > = 5 m s Enter Enter Down Right Down",
        "Enter Left Left o Down",
        "Enter o o Down Right",
        "1 PgDn Down Down Down",
        "T Down Enter Enter",
        "x",
        "s Ctrl-u t y p e = a p p e n d Enter 1 PgDn Down",
    ] {
        let (mut left, mut found) = left_and_found(keys);
        left.keys("Esc");
        found.keys("Esc");
        let (left, found) = (left.lines(), found.lines());
        // The first row shown may differ, the row under the cursor not.
        assert_eq!(left[..3], found[..3], "after {keys}");
        let marked = |lines: &[String]| lines.iter().filter(|l| l.starts_with('▌')).cloned().collect::<Vec<_>>();
        assert_eq!(marked(&left), marked(&found), "after {keys}:\n{}\n{}", left.join("\n"), found.join("\n"));
    }
}

#[test]
fn restored_session_shows_the_columns_of_the_heat_map() {
    for keys in ["1 a", "1 a a", "1 a a a a"] {
        let (left, found) = left_and_found(keys);
        let across = |session: &Session| session.app.histograms.heat.map().unwrap().across.clone();
        assert_eq!(across(&left), across(&found), "after {keys}");
    }
    let (left, _) = left_and_found("1 a");
    assert!(keeping::view(&left.app).heat_axis.is_some());
    // A property that these executions do not have is passed over.
    let view = SavedView { heat_axis: Some("none".into()), pane: 1, ..SavedView::default() };
    let found = Session::restoring(80, 24, view, ComparisonRequest::default());
    assert_eq!(found.app.histograms.heat.across, None);
}

#[test]
fn restored_groups_are_announced_and_can_be_undone() {
    let (_, mut found) = left_and_found("s Ctrl-u d u r a t i o n > = 5 m s Enter");
    assert!(found.lines()[23].contains("restored your last groups"), "{}", found.lines()[23]);
    assert!(!found.app.groups.now().slow.is_empty());
    found.keys("u");
    assert!(found.app.groups.now().slow.is_empty());
}

#[test]
fn groups_of_the_command_line_take_precedence() {
    let view = SavedView { slow: "duration>=5ms".into(), ..SavedView::default() };
    let given = ComparisonRequest { slow: vec!["duration>=2ms".parse().unwrap()], ..ComparisonRequest::default() };
    let session = Session::restoring(80, 24, view, given.clone());
    assert_eq!(*session.app.groups.now(), given);
}

#[test]
fn restored_groups_that_do_not_fit_are_given_up() {
    for view in [
        SavedView { slow: "duration>=5h".into(), ..SavedView::default() },
        SavedView { slow: "no such text".into(), ..SavedView::default() },
        SavedView { slow: "type=none".into(), fast: "type=neither".into(), ..SavedView::default() },
        SavedView { node: Some(vec!["gone".into()]), order: "size".into(), pane: 9, ..SavedView::default() },
        SavedView { unfolded: vec![vec!["gone".into()]], metric: Some("none".into()), ..SavedView::default() },
    ] {
        let session = Session::restoring(80, 24, view.clone(), ComparisonRequest::default());
        let lines = session.lines();
        assert!(session.app.comparison.is_some() && session.app.failure.is_none(), "{view:?}\n{}", lines.join("\n"));
        assert!(lines.iter().any(|line| line.contains("▌ Waiting in ")), "{}", lines.join("\n"));
    }
}

#[test]
fn bookmark_leads_back_and_is_kept_and_exported() {
    let mut session = Session::new(80, 24, ColourDepth::True);
    session.ready();
    session.keys("Enter b a s k Space j o e Enter");
    assert_eq!((session.app.bookmarks.len(), session.kept), (1, 1));
    let place = session.app.node().map(|(at, _)| at);
    session.keys("1 PgDn Down b t w o Enter 3 b l a t e Enter 2 Home B Enter");
    assert_eq!((session.app.pane, session.app.node().map(|(at, _)| at)), (Pane::Tree, place));
    session.keys("B Down Enter");
    assert_eq!((session.app.pane, session.app.histograms.row), (Pane::Histograms, 1));
    session.keys("2 B Down Down Enter");
    assert_eq!(session.app.pane, Pane::Anomalies);
    session.keys("2 e Enter y");
    let Some(Exported::Comparison { bookmarks, .. }) = session.exported() else { panic!() };
    assert_eq!(bookmarks.iter().map(|b| b.note.as_str()).collect::<Vec<_>>(), ["ask joe", "two", "late"]);
    // They are there the next time, and an empty note removes one.
    let mut next = Session::restoring(80, 24, keeping::view(&session.app), ComparisonRequest::default());
    assert_eq!(next.app.bookmarks, session.app.bookmarks);
    next.keys("2 B Enter b Ctrl-u Enter");
    assert_eq!(next.app.bookmarks.len(), 2);
}
