//! All threads over time, as a dialog.

use super::interface::Session;
use super::{SNAPSHOT_SIZES, assert_snapshot, session};
use whyslow::parts::model::thread_lanes::LaneOwner;
use whyslow::parts::model::wait_kind::SegmentKind;
use whyslow::parts::tui::layers::{ThreadsView, TimelineView};
use whyslow::parts::tui::message::UiMessage;
use whyslow::parts::tui::theme::ColourDepth;

fn page(session: &Session) -> String {
    session.lines().join("\n")
}

fn view(session: &Session) -> &ThreadsView {
    session.app.top::<ThreadsView>().unwrap_or_else(|| panic!("closed:\n{}", page(session)))
}

#[test]
fn states_of_the_view_equal_their_snapshots() {
    for (columns, lines) in SNAPSHOT_SIZES {
        let mut waiting = Session::new(columns, lines, ColourDepth::True);
        let key = whyslow::parts::tui::key::KeyPress::parse("t").unwrap();
        whyslow::parts::tui::update::update(&mut waiting.app, UiMessage::Key(key));
        assert_snapshot(&format!("threads-loading-{columns}x{lines}"), &waiting);
        let mut failed = Session::unreadable(columns, lines);
        failed.ready();
        failed.keys("t");
        assert!(page(&failed).contains("a database holds executions only"));
        assert_snapshot(&format!("threads-failed-{columns}x{lines}"), &failed);
        for (name, keys) in [
            ("threads", "t"),
            ("threads-unfolded", "t Space Down Right Right Right + c"),
            ("threads-selected", "t Down + + > > > > o"),
        ] {
            assert_snapshot(&format!("{name}-{columns}x{lines}"), &session(columns, lines, keys));
        }
    }
}

#[test]
fn zoom_asks_for_the_window_and_keeps_the_thread() {
    let mut session = session(120, 40, "t Down Down");
    let of = |session: &Session| match view(session).lane().map(|lane| lane.owner.clone()) {
        Some(LaneOwner::Thread(thread)) => thread.number,
        other => panic!("{other:?}"),
    };
    let before = of(&session);
    let whole = view(&session).time.window;
    session.keys("End + + c");
    let lanes = view(&session).lanes.clone().unwrap();
    assert_eq!((lanes.grid.whole(), lanes.recorded), (view(&session).time.window, whole));
    assert_eq!(view(&session).time.window.len(), whole.len() / 2 / 2);
    assert_eq!(of(&session), before, "a lane of a CPU is above now");
    session.keys("z");
    assert_eq!(view(&session).lanes.as_ref().unwrap().grid.whole(), whole);
}

#[test]
fn enter_follows_the_wake_up_to_the_waker() {
    // The first thread below the folded process waits somewhere: go right until it does.
    let mut session = session(120, 40, "t Down");
    let moment = |session: &Session| view(session).moment.clone().unwrap();
    for _ in 0..90 {
        if moment(&session).waker.is_some() {
            break;
        }
        session.keys("Right");
    }
    let (waker, at) = moment(&session).waker.unwrap();
    assert!(page(&session).contains("woken by"), "{}", page(&session));
    session.keys("Enter");
    let now = moment(&session);
    assert_eq!(now.thread.number, waker.number);
    assert!(now.span.start < at && at <= now.span.end, "just before the wake-up");
    // A thread that shares a lane gets its own.
    session.keys("z Home");
    for _ in 0..4 {
        while moment(&session).waker.is_none() {
            session.keys("Right");
        }
        session.keys("Enter");
    }
    assert!(!page(&session).contains("reading"), "{}", page(&session));
}

#[test]
fn enter_says_what_ended_a_state_where_no_thread_did() {
    let mut session = session(120, 40, "t Down");
    let mut said = Vec::new();
    for _ in 0..90 {
        let moment = view(&session).moment.clone().unwrap();
        if moment.waker.is_none() {
            let ended_by = match moment.kind {
                SegmentKind::Running => "the thread runs here",
                SegmentKind::Timer => "a timer ended this wait",
                SegmentKind::Disk => "a disk request ended this wait",
                SegmentKind::Preempted => "the scheduler ended this",
                _ => "the recording does not show who",
            };
            session.keys("Enter");
            assert!(page(&session).contains(ended_by), "{:?}\n{}", moment.kind, page(&session));
            said.push(moment.kind);
        }
        session.keys("Right");
    }
    assert!(said.contains(&SegmentKind::Running), "{said:?}");
}

#[test]
fn a_process_unfolds_into_its_threads_and_back() {
    let mut session = session(120, 40, "t");
    let lanes = |session: &Session| view(session).lanes.as_ref().unwrap().lanes.len();
    assert!(page(&session).contains("ledgerd 311: 8 threads"), "{}", page(&session));
    assert_eq!(lanes(&session), 5);
    session.keys("Space");
    assert!(page(&session).contains("worker-3 of ledgerd 314") || page(&session).contains("worker-3 314"));
    assert_eq!(lanes(&session), 12);
    session.keys("Home Space");
    assert_eq!(lanes(&session), 5);
    session.keys("& a u d i t l o g d Enter");
    assert_eq!(lanes(&session), 4);
    session.keys("Backspace");
    assert_eq!(lanes(&session), 5);
}

#[test]
fn a_selection_becomes_a_group_by_start() {
    let session = session(80, 24, "t Right Right > > > > > > > > > > > > > > s Enter");
    assert!(session.app.layers.is_empty(), "{}", page(&session));
    let model = session.app.model.clone().unwrap();
    let comparison = session.app.comparison.clone().unwrap();
    assert!(comparison.slow.members.len() < 250, "{}", comparison.slow.members.len());
    assert_eq!(comparison.slow.members.len() + comparison.fast.members.len(), model.executions.len());
}

#[test]
fn an_execution_leads_to_its_moment_and_back() {
    let mut session = session(120, 40, "v");
    let timeline = session.app.top::<TimelineView>().is_some();
    assert!(timeline, "{}", page(&session));
    session.keys("t");
    let time = view(&session).time.clone();
    assert!(
        time.window.contains(time.cursor) && time.window.len() < view(&session).lanes.as_ref().unwrap().recorded.len()
    );
    session.keys("Esc");
    assert!(session.app.top::<TimelineView>().is_some());
    session.keys("Esc t v");
    let shown = session.app.top::<TimelineView>().is_some() || page(&session).contains("no execution runs");
    assert!(shown, "{}", page(&session));
}

#[test]
fn every_size_draws_the_view() {
    for (columns, lines) in [(1, 1), (2, 2), (5, 3), (19, 7), (40, 10), (60, 16), (140, 20), (500, 200), (1, 80)] {
        let mut session = session(columns, lines, "t");
        for key in "Space Right > > + + - z PgDn Shift-Left End Home o c & x Esc ? Esc Enter t t Esc".split(' ') {
            session.keys(key);
            session.draw();
        }
    }
}
