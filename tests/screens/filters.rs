//! The groups: filters selected and typed, refused, undone; their members in the histograms.

use super::interface::Session;
use whyslow::parts::tui::theme::ColourDepth;

#[test]
fn groups_follow_the_selection_and_come_back_with_undo() {
    let mut session = Session::new(120, 40, ColourDepth::True);
    session.ready();
    let slow = |s: &Session| s.app.comparison.as_ref().unwrap().slow.members.len();
    let proposed = slow(&session);
    session.keys("1 PgDn Down Down Down Down Down Down Right Right Right > > > > > > > > > > s Enter");
    let selected = slow(&session);
    assert_ne!(selected, proposed);
    // Moving the filter step by step is one change.
    session.keys("Shift-Right Shift-Right Shift-Right");
    assert_ne!(slow(&session), selected);
    session.keys("u");
    assert_eq!(slow(&session), proposed);
    session.keys("U");
    assert_ne!(slow(&session), proposed);
    session.keys("g");
    assert_eq!(slow(&session), proposed);
    let fast = session.app.comparison.as_ref().unwrap().fast.members.len();
    session.keys("x");
    assert_eq!(slow(&session), fast);
}

#[test]
fn typed_filters_make_the_group_and_the_rest_is_the_other() {
    let mut session = Session::new(120, 40, ColourDepth::True);
    session.ready();
    session.keys("s t y p e = a p p e n d , d u r a t i o n > 2 0 m s Enter");
    let comparison = session.app.comparison.clone().unwrap();
    let model = session.app.model.clone().unwrap();
    let durations = |members: &[whyslow::parts::model::execution::ExecutionId]| {
        members.iter().map(|m| model.executions.duration(m.index())).collect::<Vec<_>>()
    };
    assert!(durations(&comparison.slow.members).iter().all(|ns| *ns > 20_000_000));
    assert!(durations(&comparison.fast.members).iter().all(|ns| *ns <= 20_000_000));
    let appends = 350;
    assert_eq!(comparison.slow.members.len() + comparison.fast.members.len(), appends, "the rest is of the same type");
    // The text comes back in the next prompt, and former texts by Up.
    session.keys("s Ctrl-u d u r a t i o n > = p 9 0 Enter s");
    assert!(session.lines()[38].starts_with("slow> duration>=p90"), "{}", session.lines()[38]);
    session.keys("Up Up");
    assert!(session.lines()[38].starts_with("slow> type=append,duration>20ms"), "{}", session.lines()[38]);
    // An empty text leaves the group to the other one, or to a proposal.
    session.keys("Ctrl-u Enter");
    assert!(session.lines()[2].contains("proposed"), "{}", session.lines()[1..3].join("\n"));
}

#[test]
fn an_empty_group_is_refused_in_the_prompt() {
    let mut session = Session::new(80, 24, ColourDepth::True);
    session.ready();
    let before = session.app.comparison.clone().unwrap();
    let counts = session.app.counts.clone().unwrap();
    session.keys("s d u r a t i o n > 1 h Enter");
    let lines = session.lines().join("\n");
    assert!(lines.contains("slow> duration>1h") && lines.contains("no execution passes `duration>3600s`"), "{lines}");
    session.keys("Esc");
    let after = session.app.comparison.clone().unwrap();
    assert_eq!((&before.slow, &before.fast), (&after.slow, &after.fast));
    assert_eq!(*session.app.counts.clone().unwrap(), *counts, "histograms are those of the groups on the screen");
    assert!(session.app.failure.is_none());
    session.keys("u");
    assert!(session.lines()[23].contains("nothing to undo"), "a refused group is no change");
}

#[test]
fn undo_brings_back_the_selection_and_the_task() {
    let mut session = Session::new(120, 40, ColourDepth::True);
    session.ready();
    session.keys("1 PgDn Down Down Down Down Down Down Right Right Right > > > >");
    let selection = session.app.histograms.selection.clone().unwrap();
    session.keys("s Enter u");
    assert_eq!(session.app.histograms.selection, Some(selection.clone()));
    session.keys("U");
    let attached = session.app.histograms.selection.clone().unwrap();
    assert_eq!((attached.ends(), attached.attached.is_some()), (selection.ends(), true));
    let slow = session.app.comparison.clone().unwrap().slow.clone();
    session.keys("T Down Enter");
    assert_eq!(session.app.task(), Some("syscall:futex"));
    session.keys("u");
    assert_eq!((session.app.task(), session.app.comparison.clone().unwrap().slow.clone()), (Some("app:request"), slow));
    session.keys("U");
    assert_eq!(session.app.task(), Some("syscall:futex"));
}

#[test]
fn a_metrics_own_filter_shows_which_bars_are_members() {
    for depth in [ColourDepth::True, ColourDepth::Mono] {
        let mut session = Session::new(80, 24, depth);
        session.ready();
        session.keys("1 PgDn");
        // Without colours, too: members are full, executions of the other group shaded.
        let lines = session.lines();
        let block = usize::from(session.app.frame.inside(session.app.pane).y) + session.app.frame.histograms.top;
        // The title, then the slow group's bars; the last line has the fast group's.
        let last = block + session.app.frame.histograms.lines_of(0).1 - 1;
        assert!(lines[block + 1].starts_with("slow ") && lines[last].starts_with("fast "), "{}", lines.join("\n"));
        let [slow, fast] = [&lines[block + 1..last - 1], &lines[last..=last]]
            .map(|half| half.iter().flat_map(|line| line.chars().skip(11)).collect::<String>());
        assert!(fast.contains('█') && fast.contains('░') && slow.contains('░'), "{slow}\n{fast}");
        assert_ne!(fast.replace(' ', ""), slow.replace(' ', ""));
        let model = session.app.model.clone().unwrap();
        let comparison = session.app.comparison.clone().unwrap();
        let row = session.app.histogram_row().unwrap().clone();
        let count = |members: &[whyslow::parts::model::execution::ExecutionId]| {
            let mut counts = vec![0; row.bins.len()];
            members.iter().for_each(|m| counts[row.bins.of(model.executions.duration(m.index())).unwrap()] += 1);
            counts
        };
        assert_eq!(
            (&row.slow.members, &row.fast.members),
            (&count(&comparison.slow.members), &count(&comparison.fast.members))
        );
        assert_eq!(row.all.iter().sum::<u32>(), 700);
        // A filter that cuts a bin counts what is inside.
        session.keys("s d u r a t i o n > 4 9 . 1 2 3 m s Enter");
        let comparison = session.app.comparison.clone().unwrap();
        let row = session.app.counts.clone().unwrap().rows[0].clone();
        assert_eq!(row.slow.members, count(&comparison.slow.members));
    }
}
