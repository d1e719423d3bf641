//! The list of executions: it has those of `executions --slowest`, and leads to their timelines.

use super::interface::Session;
use super::session;
use whyslow::parts::compare::filter::Filter;
use whyslow::parts::compare::members::members;
use whyslow::parts::model::execution::ExecutionId;
use whyslow::parts::tui::layers::TimelineView;
use whyslow::parts::view::executions::line;

/// The numbers of the executions that pass a filter, the slowest first.
fn slowest(session: &Session, filters: &[Filter]) -> Vec<ExecutionId> {
    let model = session.app.model.as_ref().unwrap();
    let mut ids = members(model, filters, &[]).unwrap();
    ids.sort_by_key(|id| (-model.executions.duration(id.index()), *id));
    ids
}

/// The entries on the screen, without the cursor.
fn entries(session: &Session) -> Vec<String> {
    let lines = session.lines();
    let title = lines.iter().position(|line| line.contains("Executions, the slowest first")).expect("no list");
    let lines = lines[title + 2..].iter().map(|line| line.trim_start_matches(['▌', ' ']).to_owned());
    lines.take_while(|line| line.starts_with(|c: char| c.is_ascii_digit())).collect()
}

/// The executions of the timeline on top.
fn shown(session: &Session) -> Vec<(u32, bool)> {
    match session.app.top::<TimelineView>() {
        Some(view) => view.executions.iter().map(|one| (one.id.raw(), one.is_typical)).collect(),
        other => panic!("no timeline on top: {other:?}"),
    }
}

#[test]
fn list_has_the_slowest_executions_first() {
    let session = session(200, 60, "E");
    let ids = slowest(&session, &[]);
    let model = session.app.model.as_ref().unwrap();
    for (entry, id) in entries(&session).iter().zip(&ids) {
        let wanted = line(model, *id);
        let words = [wanted.number.to_string(), wanted.duration, wanted.what];
        assert!(words.iter().all(|word| entry.contains(word.as_str())), "{words:?}: {entry}");
    }
    assert!(ids.len() > 20);
}

#[test]
fn enter_shows_an_execution_beside_a_typical_or_the_marked_one() {
    let ids = slowest(&session(80, 24, ""), &[]);
    let alone = shown(&session(80, 24, "E Down Enter"));
    assert_eq!((alone[0], alone[1].1), ((ids[1].raw(), false), true));
    let both = shown(&session(80, 24, "E Tab Down Enter"));
    assert_eq!(both, [(ids[2].raw(), false), (ids[0].raw(), false)]);
    // A second Tab takes the mark away; the list stays below the timeline.
    assert!(shown(&session(80, 24, "E Tab Up Tab Down Enter"))[1].1);
    assert!(entries(&session(80, 24, "E Enter Esc"))[0].starts_with(&ids[0].raw().to_string()));
}

#[test]
fn list_of_a_time_has_the_executions_that_ran_then() {
    let mut session = session(80, 24, "");
    let model = session.app.model.as_ref().unwrap();
    let since = model.executions.start.at(slowest(&session, &[])[0].index()).since(model.origin) + 1_000_000;
    let at = format!("{since}ns");
    let wanted = slowest(&session, &Filter::at_time(&at).unwrap());
    let typed = |text: &str| text.chars().map(|c| c.to_string()).collect::<Vec<_>>().join(" ");
    session.keys(&format!(": g o Space t o Enter {} Enter", typed(&at)));
    let entries = entries(&session);
    assert!(entries[0].starts_with(&wanted[0].raw().to_string()), "{entries:?}");
    assert_eq!(entries.len(), wanted.len());
    session.keys(&format!("Esc : g o Space t o Enter {} Enter", typed("never")));
    assert!(session.lines().join(" ").contains("never: "), "{:#?}", session.lines());
}

#[test]
fn marked_executions_become_the_slow_group() {
    let ids = slowest(&session(80, 24, ""), &[]);
    let marked = session(80, 24, "E Tab Down Tab Ctrl-s");
    let comparison = marked.app.comparison.clone().unwrap();
    let mut wanted = vec![ids[0], ids[2]];
    wanted.sort();
    assert_eq!(comparison.slow.members, wanted);
    assert!(marked.lines().join("\n").contains("2 executions of the list"), "{:?}", marked.lines());
    // A fast execution that is taken leaves the fast group.
    let fast = session(80, 24, "").app.comparison.clone().unwrap().fast.members.clone();
    let last =
        session(80, 24, "E PgDn PgDn PgDn PgDn PgDn PgDn PgDn PgDn PgDn PgDn PgDn PgDn PgDn PgDn PgDn Tab Ctrl-s");
    let comparison = last.app.comparison.clone().unwrap();
    assert!(
        fast.contains(&comparison.slow.members[0]) && !comparison.fast.members.contains(&comparison.slow.members[0])
    );
    assert_eq!(comparison.fast.members.len(), fast.len() - 1);
    let mut undone = marked;
    undone.keys("u");
    assert_ne!(undone.app.comparison.clone().unwrap().slow.members, wanted);
}

#[test]
fn a_kind_of_slow_executions_is_compared_alone() {
    let mut session = session(200, 60, "");
    let kinds = session.app.comparison.clone().unwrap().kinds.clone();
    session.keys("K");
    let page = session.lines().join("\n");
    assert!(page.contains("kind 1: ") && page.contains("what else differs"), "{page}");
    session.keys("Enter");
    assert_eq!(session.app.comparison.clone().unwrap().slow.members, kinds[0].members);
}
