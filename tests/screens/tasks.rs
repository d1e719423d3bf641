//! What people come for, each with at most six keys or one typed line.

use super::interface::Session;
use whyslow::view::tui::job::Exported;
use whyslow::view::tui::setup::FirstQuestion;
use whyslow::view::tui::theme::ColourDepth;

/// A session at the usual size, and the number of keys pressed.
struct Played {
    session: Session,
    keys: usize,
}

fn play(mut session: Session, keys: &str) -> Played {
    session.ready();
    session.keys(keys);
    Played { session, keys: keys.split_whitespace().count() }
}

impl Played {
    fn page(&self) -> String {
        self.session.lines().join("\n")
    }
}

fn usual() -> Session {
    Session::new(80, 24, ColourDepth::True)
}

#[test]
fn the_cause_is_proved_by_an_example() {
    let played = play(usual(), "v");
    assert!(played.keys <= 6 && played.page().contains("journal_tick › expensive_flush"), "{}", played.page());
    assert!(played.page().contains("worker 312 waits for it") && played.page().contains("of typical length"));
}

#[test]
fn a_type_over_a_limit_is_compared_with_the_rest_by_one_typed_line() {
    let played = play(usual(), "s t y p e = a p p e n d Space d u r a t i o n > 2 0 m s Enter");
    let comparison = played.session.app.comparison.clone().unwrap();
    let model = played.session.app.model.clone().unwrap();
    assert!(comparison.slow.members.iter().all(|id| model.executions.duration(id.index()) > 20_000_000));
    assert_eq!(comparison.slow.members.len() + comparison.fast.members.len(), 350, "the rest of the appends");
}

#[test]
fn the_difference_is_exported() {
    let played = play(usual(), "e Enter y");
    assert!(played.keys <= 6 && played.page().contains("whyslow-app-request.json written"), "{}", played.page());
    assert!(matches!(played.session.exported(), Some(Exported::Comparison { .. })));
}

#[test]
fn the_rank_and_the_time_of_a_delay_are_in_the_verdict() {
    let mut session = Session::beginning(80, 24, ColourDepth::True, FirstQuestion::Patterns);
    session.mined();
    let page = session.lines().join("\n");
    assert!(page.contains("▌ rank 1, ") && page.contains(" s after the start"), "{page}");
    session.keys("4");
    assert!(session.lines().join("\n").contains("path 1 of "), "one key to its path");
}

#[test]
fn two_versions_are_compared_by_one_typed_line() {
    let played = play(Session::labelled(80, 24), "s t r a c e = n e w Enter");
    let comparison = played.session.app.comparison.clone().unwrap();
    assert_eq!((comparison.slow.members.len(), comparison.fast.members.len()), (350, 350));
    assert!(played.page().contains("trace=new"), "{}", played.page());
}

#[test]
fn a_database_is_saved_for_a_colleague() {
    let played = play(usual(), "D Enter y");
    assert!(played.keys <= 6 && played.page().contains("whyslow-app-request.why written"), "{}", played.page());
    assert!(matches!(played.session.exported(), Some(Exported::Database)));
}
