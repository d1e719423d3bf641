//! What people come for, each with at most six keys or one typed line.

use super::interface::Session;
use whyslow::parts::base::time::Timestamp;
use whyslow::parts::model::choice::{ChosenBy, ExecutionKind, ProgramTask, TaskChoice};
use whyslow::parts::tui::job::Exported;
use whyslow::parts::tui::keeping;
use whyslow::parts::tui::layers::TimelineView;
use whyslow::parts::tui::setup::FirstQuestion;
use whyslow::parts::tui::theme::ColourDepth;
use whyslow::parts::view::report::ReportFormat;

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
fn the_ending_of_a_file_chooses_its_format() {
    let of = |keys: &str| play(usual(), &format!("e Ctrl-u {keys} Enter"));
    let html = of("w h y . h t m l");
    let Some(Exported::Report { command, format: ReportFormat::Html, .. }) = html.session.exported() else { panic!() };
    assert_eq!(command, "whyslow explain");
    assert!(matches!(of("w h y . w h y").session.exported(), Some(Exported::Database)));
    let unknown = of("w h y . t x t");
    assert!(
        unknown.session.exported().is_none() && unknown.page().contains("use one of .md .why"),
        "{}",
        unknown.page()
    );
}

#[test]
fn the_rank_and_the_time_of_a_delay_are_in_the_verdict() {
    let mut session = Session::beginning(80, 24, ColourDepth::True, FirstQuestion::Patterns);
    session.mined();
    let page = session.lines().join("\n");
    assert!(page.contains("▌ Rank 1 delayed others most, once, at 0.047577 s: "), "{page}");
    session.keys("4");
    assert!(session.lines().join("\n").contains("path 1 of "), "one key to its path");
}

#[test]
fn a_page_for_a_colleague_takes_four_keys() {
    let played = play(usual(), "e Tab Enter y");
    assert!(played.keys <= 4 && played.page().contains("whyslow-app-request.html written"), "{}", played.page());
    let Some(Exported::Report { format: ReportFormat::Html, .. }) = played.session.exported() else { panic!() };
    // Tab goes on to the other formats, and to the first again.
    let round = play(usual(), "e Tab Tab Tab Tab Tab Tab Tab Tab Enter y");
    assert!(matches!(round.session.exported(), Some(Exported::Comparison { .. })));
}

#[test]
fn a_request_at_a_time_of_day_takes_fifteen_keys() {
    let mut session = usual();
    session.ready();
    let model = session.app.model.clone().unwrap();
    // The slowest execution, in the second in which it ends.
    let slowest = (0..model.executions.len()).max_by_key(|at| model.executions.duration(*at)).unwrap();
    let second = model.executions.span(slowest).end.since(Timestamp::ZERO) / 1_000_000_000;
    let time = format!("{:02}:{:02}:{:02}", second / 3600 % 24, second / 60 % 60, second % 60);
    let typed: Vec<String> = time.chars().map(|c| c.to_string()).collect();
    let played = play(session, &format!(": g o Enter {} Enter Enter", typed.join(" ")));
    assert!(played.keys <= 15, "{}", played.keys);
    let Some(shown) = played.session.app.top::<TimelineView>() else { panic!("{}", played.page()) };
    assert_eq!(shown.executions[0].id.index(), slowest, "{}", played.page());
}

#[test]
fn one_process_takes_seven_keys() {
    let mut session = Session::new(140, 24, ColourDepth::True);
    session.choose(guessed());
    let played = play(session, "Esc T p r o x Enter");
    assert!(played.keys <= 7 && played.session.app.task() == Some("syscall:futex"), "{}", played.page());
}

#[test]
fn two_versions_are_compared_by_one_typed_line() {
    let played = play(Session::labelled(80, 24), "s t r a c e = n e w Enter");
    let comparison = played.session.app.comparison.clone().unwrap();
    assert_eq!((comparison.slow.members.len(), comparison.fast.members.len()), (350, 350));
    assert!(played.page().contains("trace=new"), "{}", played.page());
}

#[test]
fn a_baseline_is_set_and_taken_away() {
    let mut session = play(usual(), "C o l d Enter").session;
    let comparison = session.app.comparison.clone().unwrap();
    assert_eq!((comparison.slow.members.len(), comparison.fast.members.len()), (350, 350));
    assert!(session.app.title == "ledger, old" && keeping::view(&session.app).slow.is_empty());
    session.keys("C Ctrl-u n o n e Enter");
    assert!(session.lines().join("\n").contains("no recording of this name"));
    assert_eq!(session.app.comparison.clone().unwrap(), comparison, "what is on the screen stays");
    session.keys("C Ctrl-u Enter");
    assert_eq!(session.app.comparison.clone().unwrap().slow.members.len(), 24, "proposed again");
}

#[test]
fn a_database_is_saved_for_a_colleague() {
    let played = play(usual(), "D Enter y");
    assert!(played.keys <= 6 && played.page().contains("whyslow-app-request.why written"), "{}", played.page());
    assert!(matches!(played.session.exported(), Some(Exported::Database)));
}

/// A guess among two programs of similar weight.
fn guessed() -> TaskChoice {
    let program = |program: &str, task: &str, tail_ns| ProgramTask {
        program: program.to_owned(),
        kind: ExecutionKind::Requests,
        task: task.to_owned(),
        executions: 475,
        p50_ns: 100_000,
        p99_ns: 46_300_000,
        tail_ns,
        over_time: [0, 9, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1],
        is_recorded: false,
    };
    let programs =
        vec![program("redis-server", "app:request", 1_900_000_000), program("proxy", "syscall:futex", 1_500_000_000)];
    TaskChoice { by: ChosenBy::Guessed, programs, ..TaskChoice::default() }
}

#[test]
fn a_guess_among_programs_is_a_question_first() {
    let mut session = Session::new(140, 24, ColourDepth::True);
    session.choose(guessed());
    let page = session.lines().join("\n");
    assert!(page.contains("Which program was meant") && page.contains("redis-server"), "{page}");
    assert!(page.contains("475 requests") && page.contains("current task"), "{page}");
    // The first answers already.
    session.keys("Enter");
    assert!(session.app.layers.is_empty() && session.app.task() == Some("app:request"));
    session.keys("T Down Enter");
    assert_eq!(session.app.task(), Some("syscall:futex"));
    // It is asked once.
    assert!(session.app.layers.is_empty());
    session.keys("T");
    assert!(session.lines().join("\n").contains("proxy"));
}

#[test]
fn a_choice_that_is_no_guess_asks_nothing() {
    let mut session = usual();
    session.choose(TaskChoice { by: ChosenBy::Recorded, ..guessed() });
    assert!(session.app.layers.is_empty());
}

/// A task of a user: its letter in the review of November 2026, what it is, the keys that do it once the recording is
/// open, how many the review counted for it, and what the screen shows then.
type CountedTask = (char, &'static str, fn() -> Session, &'static str, usize, &'static str);

/// The tasks that are done in the interface. A request at a time of day (d), a page for a colleague (e), one process
/// (k) and another version (b) have tests of their own above; a condition for CI (f) and two hosts (g) are one command
/// each.
const COUNTED: [CountedTask; 7] = [
    ('a', "why the slow tail is slow", usual, "", 0, "▌ Waiting in pthread_mutex_lock for thread journal"),
    ('a', "why p99 is slow", usual, "s d u r a t i o n > = p 9 9 Enter", 16, "duration>=p99 "),
    ('c', "the difference as JSON", usual, "e Enter", 2, "The file exists. Overwrite it?"),
    ('h', "a delay to its source", patterns_first, "4", 1, "path 1 of "),
    ('i', "executions of a type", usual, "s t y p e = Tab Enter", 8, "type=append "),
    ('j', "who holds the lock", usual, "", 0, "thread journal"),
    ('l', "the way back", narrowed, "u", 1, "slow     24 of 700"),
];

fn narrowed() -> Session {
    let mut session = usual();
    session.ready();
    session.keys("s Ctrl-u t y p e = a p p e n d Enter");
    assert!(!session.lines().join("\n").contains("slow     24 of 700"));
    session
}

fn patterns_first() -> Session {
    let mut session = Session::beginning(80, 24, ColourDepth::True, FirstQuestion::Patterns);
    session.mined();
    session
}

#[test]
fn the_counted_tasks_take_no_more_keys_than_the_review_counted() {
    for (letter, task, begin, keys, most, shows) in COUNTED {
        let mut session = begin();
        if session.app.comparison.is_none() && letter != 'h' {
            session.ready();
        }
        session.keys(keys);
        let played = Played { session, keys: keys.split_whitespace().count() };
        assert!(played.keys <= most, "{letter}, {task}: {} keys, not {most}", played.keys);
        assert!(played.page().contains(shows), "{letter}, {task}: no {shows:?} on\n{}", played.page());
    }
}
