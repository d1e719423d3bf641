//! Every screen from keystrokes: its symbols and styles at two sizes by snapshot, its essentials at three others.
//!
//! The whole interface runs here without a terminal: keys go into `update`, the job runner performs the jobs on a
//! made-up recording at once, `draw` draws the screen. A snapshot has the text of the screen, and below it the runs of
//! style of each line by the name of a letter, so that a change of colour shows in the snapshot as a change of letters.
mod arranged;
mod bytes;
mod defects;
mod executions;
mod filters;
mod heat;
mod inverted;
mod overview;
mod panes;
mod patterns;
mod random;
mod recording;
mod recordings;
mod saved;
mod stacks;
mod states;
mod tasks;
mod themes;
mod threads;
mod timeline;
mod twins;
mod twins_pages;

use crate::support::interface;
use interface::Session;
use ratatui::buffer::Buffer;
use ratatui::style::Style;
use std::collections::BTreeMap;
use std::fmt::Write;
use whyslow::parts::tui::message::UiMessage;
use whyslow::parts::tui::theme::ColourDepth;

/// One pane, and two panes side by side.
const SNAPSHOT_SIZES: [(u16, u16); 2] = [(80, 24), (200, 60)];
/// Other sizes, down to the least.
const OTHER_SIZES: [(u16, u16); 3] = [(120, 40), (40, 10), (1, 1)];

/// A session with the answer on its screen, after some keys.
fn session(columns: u16, lines: u16, keys: &str) -> Session {
    let mut session = Session::new(columns, lines, ColourDepth::True);
    session.ready();
    session.keys(keys);
    session
}

/// A screen.
struct Screen {
    name: &'static str,
    /// The keys that lead to it.
    keys: &'static str,
    /// A text that it shows at every size but the least.
    shows: &'static str,
}

const fn screen(name: &'static str, keys: &'static str, shows: &'static str) -> Screen {
    Screen { name, keys, shows }
}

const SCREENS: [Screen; 40] = [
    screen("answer", "", "2 Flame tree"),
    screen("cause", "Enter", "expensive_flush"),
    screen("search", "Enter Enter / w r i t e Enter", "match 1 of"),
    screen("histograms", "1", "1 Histograms"),
    screen("heat-box", "1 Shift-Left Shift-Left Shift-Left Shift-Down", "1 Histograms"),
    screen("heat-type", "1 a", "1 Histograms"),
    screen("heat-executions", "1 E Down Down", "Executions, the slowest first"),
    screen("heat-details", "1 i", "Details"),
    screen("filter", "1 PgDn End < < < < < < < < < < s Enter Shift-Left", "1 Histograms"),
    screen("filters", "1 PgDn Down Right Right Right > > > s", "slow> "),
    screen("completion", "s t y p e Tab a Tab Space d u r Tab > 5 Tab", "slow> type=append duration>5ms"),
    screen("refused", "s t y p e = a p p e n d Space d u r a t i o n > 5 Enter", "`5` has no unit"),
    screen("details", "i", "Details"),
    screen("range", "1 PgDn End < < < < i", "Details"),
    screen("timeline", "v", "Timeline of an execution"),
    screen("timeline-events", "v p o Right", "Timeline of an execution"),
    screen("timeline-aligned", "v a + + Shift-Left Tab", "Timeline of an execution"),
    screen("overview", "r", "The recording at a glance"),
    screen("overview-selected", "r PgDn > > > > > +", "The recording at a glance"),
    screen("inverted", "I Right Right", "serialize_entries"),
    screen("inverted-details", "I i", "Details"),
    screen("search-prompt", "/ w r", "search > wr"),
    screen("list-filter", "3 & w a i t", "filter by words > wait"),
    screen("replace", "e Enter", "The file exists. Overwrite it?"),
    screen("functions", "F", "Difference by function"),
    screen("function", "F e x p e n Enter", "Function: callers"),
    screen("save-database", "D", "whyslow-app-request.why"),
    screen("quality", "w", "Data quality"),
    screen("help", "? PgDn", "Help"),
    screen("palette", ": t h", "Any action"),
    screen("note", "b o n c e", "note (empty: no bookmark) > once"),
    screen("bookmarks", "b o n c e Enter 1 PgDn b t w o Enter B Down", "Bookmarks"),
    screen("tasks", "T Down", "syscall:futex"),
    screen("export", "e", "whyslow-app-request.json"),
    screen("anomalies", "3 Down", "3 Anomalies"),
    screen("factors", "3 o o", "3 Anomalies"),
    screen("path", "3 Down Enter Enter", "4 Propagation"),
    screen("patterns", "3 p", "Patterns: selected"),
    screen("anomaly", "3 i", "Anomaly"),
    screen("ranks", "3 v", "Ranks over time"),
];

/// The screen as text: symbols, then style letters (`.` is ordinary text), then the meaning of each letter.
fn text(buffer: &Buffer) -> String {
    let columns = usize::from(buffer.area.width);
    let mut letters: BTreeMap<String, char> = BTreeMap::new();
    let (mut symbols, mut styles) = (String::new(), String::new());
    let ordinary = buffer.content.first().map_or(Style::default(), |c| c.style());
    for line in buffer.content.chunks(columns) {
        let mut shown = String::new();
        let mut looks = String::new();
        for cell in line {
            shown.push_str(cell.symbol());
            let blank = cell.symbol() == " " && cell.bg == ratatui::style::Color::Reset;
            if blank || cell.style() == ordinary {
                looks.push('.');
                continue;
            }
            let name = format!("{} on {} {:?}", cell.fg, cell.bg, cell.modifier);
            let next = char::from_u32('a' as u32 + letters.len() as u32).unwrap();
            looks.push(*letters.entry(name).or_insert(next));
        }
        let _ = writeln!(symbols, "|{}|", shown.trim_end());
        let _ = writeln!(styles, "|{}|", looks.trim_end_matches('.'));
    }
    let mut named: Vec<(char, String)> = letters.into_iter().map(|(name, letter)| (letter, name)).collect();
    named.sort();
    let legend: String = named.into_iter().map(|(letter, name)| format!("{letter}: {name}\n")).collect();
    format!("{symbols}\n{styles}\n{legend}")
}

fn assert_snapshot(name: &str, session: &Session) {
    insta::with_settings!({
        snapshot_path => "../snapshots",
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!(name, text(&session.draw()));
    });
}

#[test]
fn every_screen_equals_its_snapshots() {
    for screen in &SCREENS {
        for (columns, lines) in SNAPSHOT_SIZES {
            let session = session(columns, lines, screen.keys);
            assert_snapshot(&format!("{}-{columns}x{lines}", screen.name), &session);
        }
    }
}

#[test]
fn progress_of_the_analysis_equals_its_snapshots() {
    for (columns, lines) in SNAPSHOT_SIZES {
        let mut session = Session::new(columns, lines, ColourDepth::True);
        session.progress("reading", 21, 50, 432_000);
        assert_snapshot(&format!("progress-{columns}x{lines}"), &session);
    }
}

#[test]
fn every_screen_shows_its_essentials_at_other_sizes() {
    for screen in &SCREENS {
        for (columns, lines) in OTHER_SIZES {
            // Drawing outside of the screen panics.
            let session = session(columns, lines, screen.keys);
            let shown = session.lines();
            let place = format!("{} at {columns}x{lines}:\n{}", screen.name, shown.join("\n"));
            assert_eq!(shown.len(), usize::from(lines), "{place}");
            assert!(shown.iter().all(|line| line.chars().count() == usize::from(columns)), "{place}");
            if columns == 1 {
                continue;
            }
            assert!(shown.iter().any(|line| line.contains(screen.shows)), "no {:?} on {place}", screen.shows);
            if session.app.layers.is_empty() {
                // The answer comes first, the line of the cursor is marked, and the last line shows keys or a message.
                assert!(shown[..4].iter().any(|line| line.starts_with("▌ Waiting in ")), "{place}");
                let pane = session.app.frame.inside(session.app.pane);
                let body = &shown[usize::from(pane.top())..usize::from(pane.bottom())];
                // A propagation path also marks the lane of the thread that the cursor is on.
                let marked = body.iter().filter(|line| line.starts_with('▌')).count();
                assert!((1..=2).contains(&marked), "{marked} lines marked on {place}");
                assert!(!shown[shown.len() - 1].trim().is_empty(), "{place}");
            }
        }
    }
}

#[test]
fn fewer_colours_equal_their_snapshots() {
    for (name, depth, ascii) in [
        ("indexed", ColourDepth::Indexed, false),
        ("ansi", ColourDepth::Ansi, false),
        ("mono", ColourDepth::Mono, true),
    ] {
        let mut session = Session::new(80, 24, depth);
        session.app.options.ascii = ascii;
        session.ready();
        session.keys("1 PgDn Right Right > > s Enter 2 Enter");
        assert_snapshot(&format!("depth-{name}"), &session);
    }
}

#[test]
fn every_size_is_drawn_and_every_key_taken() {
    let keys = "Enter Down Right 1 > > s Enter Shift-Left f Tab Tab Up Down Left x Esc x u U g 2 s 5 Enter Esc o \
                o / a Enter n N - i y Esc ? End Esc w Esc : Esc T Esc e Esc Ctrl-t z Tab t Space o & x Enter c Esc 3 \
                4 [ { Home End PgUp PgDn Backspace 3 o / r n N & s Enter Esc i Esc p Esc R R Enter Enter Right Left \
                End m Ctrl-o Backspace Backspace y";
    for (columns, lines) in
        [(1, 1), (2, 2), (5, 3), (19, 7), (40, 10), (139, 20), (140, 20), (300, 100), (80, 1), (1, 80)]
    {
        let mut session = Session::new(columns, lines, ColourDepth::True);
        session.draw();
        session.ready();
        for key in keys.split_whitespace() {
            session.keys(key);
            session.draw();
        }
    }
}

#[test]
fn ascii_option_draws_ascii_alone() {
    let mut session = Session::new(200, 60, ColourDepth::Mono);
    session.app.options.ascii = true;
    session.ready();
    for keys in [
        "1 > > s",
        "Enter",
        "?",
        "Esc : ",
        "Esc 2 i",
        "Esc w",
        "Esc v",
        "p o",
        "Esc r",
        "Esc t",
        "Space Down Down o + +",
        "Esc F",
        "> >",
        "Esc 3",
        "i",
        "Esc p",
        "Esc Enter",
    ] {
        session.keys(keys);
        assert!(session.draw().content.iter().all(|c| c.symbol().is_ascii()), "after {keys}");
    }
}

#[test]
fn header_marks_a_verdict_that_is_cut() {
    let mut session = Session::new(80, 24, ColourDepth::True);
    session.ready();
    let sentence = session.app.comparison.as_ref().unwrap().verdict.sentence.clone();
    let whole: String = sentence.chars().filter(|c| !c.is_whitespace()).collect();
    for columns in 1..120 {
        for lines in 2..40 {
            session.send(UiMessage::Resize(columns, lines));
            let header = usize::from(session.app.frame.header.height);
            let shown = session.lines()[..header].concat();
            let shown: String = shown.chars().filter(|c| !c.is_whitespace() && *c != '▌').collect();
            assert!(shown.contains(&whole) || shown.contains('…'), "{columns}x{lines}: {shown}");
        }
    }
}

#[test]
fn export_asks_before_it_replaces_a_file() {
    let mut session = Session::new(80, 24, ColourDepth::True);
    session.ready();
    session.keys("e Enter");
    assert!(session.lines()[23].contains("The file exists. Overwrite it? y: yes"));
    session.keys("n");
    assert!(!session.lines()[23].contains("written"));
    session.keys("e Enter y");
    assert!(session.lines()[23].contains("whyslow-app-request.json written"));
}

#[test]
fn summary_and_command_are_copied_for_the_groups_on_the_screen() {
    let mut session = Session::new(80, 24, ColourDepth::True);
    session.app.command_line.words = vec!["ledger/trace".into()];
    session.ready();
    session.keys("s Ctrl-u d u r a t i o n > = 5 m s Enter");
    session.ready();
    session.keys("Y");
    session.keys(": c o p y Space c o m m a n d Enter");
    let [summary, command] = session.copied.as_slice() else { panic!("{:?}", session.copied) };
    assert_eq!(command, "whyslow explain ledger/trace --slow 'duration>=5ms'");
    assert!(summary.starts_with("## ") && summary.contains("| slow |"), "{summary}");
    assert!(summary.trim_end().ends_with(command), "{summary}");
}

#[test]
fn copy_takes_the_item_under_the_cursor() {
    let mut session = Session::new(80, 24, ColourDepth::True);
    session.ready();
    session.keys("y Enter y 1 PgDn Right > y");
    let [cause, node, filter] = session.copied.as_slice() else { panic!("{:?}", session.copied) };
    assert!(cause.contains("expensive_flush") && node.starts_with("ledgerd > start_thread > "), "{cause}\n{node}");
    assert!(filter.parse::<whyslow::parts::compare::filter::Filter>().is_ok(), "{filter}");
}
