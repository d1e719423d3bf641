//! The recording at a glance: in the header, and as a dialog.

use super::interface::Session;
use super::{SNAPSHOT_SIZES, assert_snapshot, session};
use whyslow::parts::tui::layers::OverviewView;
use whyslow::parts::tui::message::UiMessage;
use whyslow::parts::tui::theme::ColourDepth;

#[test]
fn overview_states_equal_their_snapshots() {
    for (columns, lines) in SNAPSHOT_SIZES {
        let mut waiting = Session::new(columns, lines, ColourDepth::True);
        let key = whyslow::parts::tui::key::KeyPress::parse("r").unwrap();
        whyslow::parts::tui::update::update(&mut waiting.app, UiMessage::Key(key));
        assert_snapshot(&format!("overview-loading-{columns}x{lines}"), &waiting);
        let mut failed = Session::unreadable(columns, lines);
        failed.ready();
        failed.keys("r");
        assert!(failed.lines().join(" ").contains("a database holds executions only"));
        assert_snapshot(&format!("overview-failed-{columns}x{lines}"), &failed);
    }
}

#[test]
fn header_has_a_strip_where_there_is_space() {
    for (columns, lines, shown) in
        [(100, 40, 2), (99, 40, 0), (200, 60, 2), (120, 30, 2), (120, 29, 1), (100, 20, 1), (100, 19, 0)]
    {
        let page = session(columns, lines, "").lines();
        let strip = page.iter().filter(|l| l.starts_with("CPU use (r)") || l.starts_with("● slow  · fast")).count();
        assert_eq!(strip, shown, "{columns}x{lines}\n{}", page.join("\n"));
    }
}

#[test]
fn a_selected_range_becomes_a_group_by_start() {
    let mut session = session(80, 24, "r Right Right Right > > > > > > > > > > > > > > s Enter");
    assert!(session.app.layers.is_empty(), "{}", session.lines().join("\n"));
    let model = session.app.model.clone().unwrap();
    let comparison = session.app.comparison.clone().unwrap();
    let first = model.executions.start.at(comparison.slow.members[0].index()).since(model.origin);
    assert!(first > 0 && comparison.slow.members.len() < 200, "{first}");
    assert_eq!(comparison.slow.members.len() + comparison.fast.members.len(), model.executions.len());
    session.keys("u");
    assert_ne!(session.app.comparison.as_ref().unwrap().slow.members, comparison.slow.members);
}

#[test]
fn zoom_reads_the_window_and_counts_its_executions() {
    let mut session = session(80, 24, "r");
    let page = |s: &Session| s.lines().join("\n");
    assert!(page(&session).contains("slow and ") && page(&session).contains("lost"), "{}", page(&session));
    let whole = session.app.overview.whole.as_ref().unwrap().grid.whole();
    session.keys("End + +");
    assert!(!page(&session).contains("lost"), "{}", page(&session));
    let Some(view) = session.app.top::<OverviewView>() else { panic!("closed") };
    assert_eq!(view.detail.as_ref().map(|detail| detail.grid.whole()), Some(view.time.window), "the window was read");
    assert_eq!(view.time.window.len(), whole.len() / 2 / 2);
    session.keys("z Esc");
    assert!(session.app.layers.is_empty());
}

#[test]
fn every_size_draws_the_overview() {
    for (columns, lines) in [(1, 1), (2, 2), (5, 3), (19, 7), (40, 10), (60, 16), (140, 20), (500, 200), (1, 80)] {
        let mut session = session(columns, lines, "r");
        for key in "Right > > + + - z PgDn Shift-Left End Home ? Esc f Esc".split(' ') {
            session.keys(key);
            session.draw();
        }
    }
}
