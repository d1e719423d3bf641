//! Screens that are empty, wait for a job, or report a failure.

use super::interface::Session;
use super::{SNAPSHOT_SIZES, assert_snapshot};
use std::path::PathBuf;
use std::sync::Arc;
use whyslow::parts::tui::job::{Done, JobError, WriteOutcome};
use whyslow::parts::tui::key::KeyPress;
use whyslow::parts::tui::message::UiMessage;
use whyslow::parts::tui::report::AnomalyReport;
use whyslow::parts::tui::theme::ColourDepth;
use whyslow::parts::tui::tour::TourProgress;
use whyslow::parts::tui::update::update;

fn failed<T>(why: &str) -> Result<T, JobError> {
    Err(JobError::Failed(why.to_owned()))
}

/// Take a message without performing its effects: jobs begin and do not end.
fn take(session: &mut Session, message: UiMessage) {
    update(&mut session.app, message);
}

fn press(session: &mut Session, key: &str) {
    take(session, UiMessage::Key(KeyPress::parse(key).unwrap()));
}

const NO_TASK: &str = "ledger/kernel, ledger/ust: no task detected; define one with --task begin=EVENT,end=EVENT, or \
                       run `whyslow anomalies`, which needs none";

/// A state by name, and how a ready session comes to it.
type State = (&'static str, fn(&mut Session));

const OF_A_READY_SESSION: [State; 11] = [
    ("comparing", |s| {
        let model = s.app.model.clone().unwrap();
        take(s, UiMessage::Done(Done::Analysed(Ok(model))));
    }),
    ("task-failed", |s| take(s, UiMessage::Done(Done::Analysed(failed("task app:gone has no executions"))))),
    ("counting-tasks", |s| press(s, "T")),
    ("tasks-failed", |s| take(s, UiMessage::Done(Done::Surveyed(failed("the recording cannot be read any more"))))),
    ("inverting", |s| press(s, "I")),
    ("mining", |s| press(s, "3")),
    ("mining-failed", |s| {
        press(s, "3");
        let settings = s.app.patterns.settings;
        take(s, UiMessage::Done(Done::Mined(settings, failed("1 MiB is not enough; raise --memory"))));
    }),
    ("no-anomalies", |s| {
        press(s, "3");
        let settings = s.app.patterns.settings;
        let report = AnomalyReport::new(Default::default(), Default::default());
        take(s, UiMessage::Done(Done::Mined(settings, Ok(Arc::new(report)))));
    }),
    ("no-path", |s| {
        press(s, "4");
        let settings = s.app.patterns.settings;
        let report = AnomalyReport::new(Default::default(), Default::default());
        take(s, UiMessage::Done(Done::Mined(settings, Ok(Arc::new(report)))));
    }),
    ("tour", |s| {
        s.app.tour = Some(TourProgress::default());
        press(s, "Down");
    }),
    ("export-failed", |s| {
        let outcome = WriteOutcome::Failed("no space left on device".to_owned());
        let path = PathBuf::from("why.json");
        take(s, UiMessage::Done(Done::Exported { path, outcome }));
    }),
];

#[test]
fn states_equal_their_snapshots() {
    for (columns, lines) in SNAPSHOT_SIZES {
        for (name, bring) in OF_A_READY_SESSION {
            let mut session = Session::new(columns, lines, ColourDepth::True);
            session.ready();
            bring(&mut session);
            assert_snapshot(&format!("{name}-{columns}x{lines}"), &session);
        }
        // Nothing is known yet: the trace has no executions, and its patterns are being mined.
        let mut session = Session::new(columns, lines, ColourDepth::True);
        take(&mut session, UiMessage::Done(Done::Analysed(failed(NO_TASK))));
        assert_snapshot(&format!("no-task-{columns}x{lines}"), &session);
        // The executions cannot be compared.
        let mut session = Session::new(columns, lines, ColourDepth::True);
        take(&mut session, UiMessage::Done(Done::Compared(failed("the fast group is empty: no execution is left"))));
        assert_snapshot(&format!("not-compared-{columns}x{lines}"), &session);
    }
}

#[test]
fn states_are_drawn_at_every_size() {
    for (columns, lines) in [(1, 1), (2, 3), (19, 7), (40, 10), (139, 20), (300, 100), (500, 200), (1, 80)] {
        for (name, bring) in OF_A_READY_SESSION {
            let mut session = Session::new(columns, lines, ColourDepth::True);
            session.ready();
            bring(&mut session);
            assert_eq!(session.draw().area.as_size(), (columns, lines).into(), "{name}");
        }
    }
}

#[test]
fn failures_say_what_they_were_told() {
    for (name, text) in [
        ("task-failed", "app:gone has no executions"),
        ("tasks-failed", "cannot be read any more"),
        ("mining-failed", "1 MiB is not enough"),
        ("export-failed", "writing failed: no space left on device"),
        ("no-anomalies", "lowers the threshold"),
    ] {
        let (_, bring) = OF_A_READY_SESSION.iter().find(|(of, _)| *of == name).unwrap();
        let mut session = Session::new(80, 24, ColourDepth::True);
        session.ready();
        bring(&mut session);
        let page = session.lines().join(" ");
        assert!(page.contains(text), "{name}: {page}");
    }
}
