//! Every screen from keystrokes: its symbols and styles at two sizes by snapshot, its essentials at three others.
//!
//! The whole interface runs here without a terminal: keys go into `update`, the job runner performs the jobs on a
//! made-up recording at once, `draw` draws the screen. A snapshot has the text of the screen, and below it the runs of
//! style of each line by the name of a letter, so that a change of colour shows in the snapshot as a change of letters.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/interface/mod.rs"]
mod interface;

use interface::Session;
use ratatui::buffer::Buffer;
use ratatui::style::Style;
use std::collections::BTreeMap;
use std::fmt::Write;
use whyslow::view::tui::job::SelectedPath;
use whyslow::view::tui::message::UiMessage;
use whyslow::view::tui::paint::Painter;
use whyslow::view::tui::pane::Pane;
use whyslow::view::tui::sources::RootCauseRow;
use whyslow::view::tui::theme::ColourDepth;
use whyslow::view::tui::{Exported, FirstQuestion};

/// One pane, and two panes side by side.
const SNAPSHOT_SIZES: [(u16, u16); 2] = [(80, 24), (200, 60)];
/// Other sizes, down to the least.
const OTHER_SIZES: [(u16, u16); 3] = [(120, 40), (40, 10), (1, 1)];

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

const SCREENS: [Screen; 17] = [
    screen("answer", "", "2 Flame tree"),
    screen("cause", "Enter", "expensive_flush"),
    screen("search", "Enter Enter / w r i t e Enter", "match 1 of"),
    screen("histograms", "1", "1 Histograms"),
    screen("filter", "1 Down Right Right Right > > > > > > > s Shift-Right", "1 Histograms"),
    screen("details", "i", "Details"),
    screen("range", "1 End < < < < i", "Details"),
    screen("quality", "w", "Data quality"),
    screen("help", "? PgDn", "Help"),
    screen("palette", ": t h", "Any action"),
    screen("tasks", "T Down", "syscall:futex"),
    screen("export", "e", "export JSON to > "),
    screen("anomalies", "3 Down", "3 Anomalies"),
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

/// The screen that these keys lead to.
fn session_at(columns: u16, lines: u16, keys: &str) -> Session {
    let mut session = Session::new(columns, lines, ColourDepth::True);
    session.ready();
    session.keys(keys);
    session
}

fn assert_snapshot(name: &str, session: &Session) {
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, text(&session.draw()));
    });
}

#[test]
fn every_screen_equals_its_snapshots() {
    for screen in &SCREENS {
        for (columns, lines) in SNAPSHOT_SIZES {
            let session = session_at(columns, lines, screen.keys);
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
            let session = session_at(columns, lines, screen.keys);
            let shown = session.lines();
            let place = format!("{} at {columns}x{lines}:\n{}", screen.name, shown.join("\n"));
            assert_eq!(shown.len(), usize::from(lines), "{place}");
            assert!(shown.iter().all(|line| line.chars().count() == usize::from(columns)), "{place}");
            if columns == 1 {
                continue;
            }
            assert!(shown.iter().any(|line| line.contains(screen.shows)), "no {:?} on {place}", screen.shows);
            if session.app.overlays.is_empty() {
                // The answer comes first, the line of the cursor is marked, and the last line shows keys or a message.
                let answer = if session.app.pane.is_of_patterns() { "▌ rank 1" } else { "▌ Waiting in " };
                assert!(shown[..4].iter().any(|line| line.starts_with(answer)), "{place}");
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
        session.keys("1 Right Right > > s 2 Enter");
        assert_snapshot(&format!("depth-{name}"), &session);
    }
}

#[test]
fn patterns_come_first_where_nothing_delimits_executions() {
    let mut session = Session::beginning(80, 24, ColourDepth::True, FirstQuestion::Patterns);
    assert!(session.app.model.is_none() && session.app.pane == Pane::Anomalies);
    session.mined();
    let lines = session.lines();
    assert!(lines[2].contains("rank 1, ") && lines[2].contains("between calls, after MPI_Recv"), "{}", lines[2]);
    // Executions are analysed when they are asked for.
    session.keys("2");
    assert!(session.app.comparison.is_some());
}

#[test]
fn q_and_s_change_the_list_at_once_and_the_cursor_stays() {
    let mut session = Session::new(80, 24, ColourDepth::True);
    session.ready();
    session.keys("]");
    assert!(session.lines()[23].contains("press 3"));
    session.keys("3 o o Down Down Down");
    let list = |s: &Session| s.app.patterns.list.clone();
    let here = |s: &Session| {
        let found = s.app.patterns.found.as_ref().unwrap();
        list(s).name(found, list(s).here().unwrap()).unwrap()
    };
    let (all, before) = (list(&session).visible.len(), here(&session));
    session.keys("{ { {");
    assert!(list(&session).visible.len() > all && session.app.patterns.settings.s == 1.25);
    assert_eq!(here(&session), before);
    session.keys("} } }");
    assert_eq!((list(&session).visible.len(), here(&session)), (all, before));
    session.keys("[ ]");
    assert_eq!(session.app.patterns.settings, Default::default());
    session.keys("R");
    assert!(session.lines()[1].contains("robust limit"));
}

#[test]
fn the_table_of_sources_is_filtered_searched_and_ordered() {
    let mut session = Session::new(120, 40, ColourDepth::True);
    session.ready();
    session.keys("3 f n o i s e Enter");
    let noise = |s: &Session| {
        let found = s.app.patterns.found.clone().unwrap();
        let rows = s.app.patterns.list.visible.iter();
        rows.map(|row| row.source(&found).unwrap().noise.is_some()).collect::<Vec<_>>()
    };
    assert!(!noise(&session).is_empty() && noise(&session).iter().all(|noise| *noise));
    session.keys("Esc");
    assert!(noise(&session).iter().any(|noise| !noise));
    session.keys("Home / r a n k Enter n");
    let lines = session.lines();
    assert!(lines[39].contains("match 2 of"), "{}", lines[39]);
    session.keys("o");
    let found = session.app.patterns.found.clone().unwrap();
    let list = &session.app.patterns.list;
    let excess: Vec<i64> = list.visible.iter().map(|row| row.source(&found).unwrap().excess_ns).collect();
    assert!(excess.is_sorted_by(|a, b| a >= b) && list.row == 0, "a new order is read from its top");
}

#[test]
fn the_table_of_sources_and_the_path_follow_each_other() {
    let mut session = Session::new(200, 60, ColourDepth::True);
    session.ready();
    session.keys("3 { { { {");
    let source_of_path = |s: &Session| {
        let found = s.app.patterns.found.clone().unwrap();
        found.beginnings.get(s.app.patterns.path.path).copied().flatten().map(|beginning| beginning.root_cause)
    };
    let here = |s: &Session| s.app.patterns.list.here().unwrap();
    let rows = session.app.patterns.list.visible.len();
    assert!(rows > 3);
    for _ in 0..rows {
        assert_eq!(source_of_path(&session), Some(here(&session).at()));
        session.keys("Down");
    }
    // A path with another source takes the cursor of the table along.
    session.keys("4");
    for _ in 0..5 {
        session.keys("Right");
        assert_eq!(source_of_path(&session), Some(here(&session).at()));
    }
    // A source opens to its occurrences, each with its path.
    session.keys("3 Home");
    let found = session.app.patterns.found.clone().unwrap();
    let several = |s: &Session| here(s).source(&found).unwrap().occurrences.len() > 1;
    while !several(&session) {
        session.keys("Down");
    }
    let source = here(&session);
    session.keys("Enter Down");
    let RootCauseRow::Occurrence(at, 0) = here(&session) else { panic!("{:?}", here(&session)) };
    assert_eq!((at, session.app.patterns.list.visible.len() > rows), (source.at(), true));
    let occurrence = here(&session).occurrence(&found).unwrap().clone();
    assert_eq!(session.app.patterns.path.path as u32, occurrence.path.unwrap());
    session.keys("Enter");
    assert_eq!(session.app.pane, Pane::Path);
    session.keys("- Left");
    assert_eq!((here(&session), session.app.patterns.list.visible.len()), (source, rows));
}

#[test]
fn from_a_step_to_the_executions_of_its_moment_and_back() {
    let mut session = Session::new(80, 24, ColourDepth::True);
    session.ready();
    session.keys("3 Enter Enter m");
    assert_eq!(session.app.pane, Pane::Tree);
    let slow = session.app.comparison.as_ref().unwrap().slow.clone();
    let moment = session.app.patterns.found.as_ref().unwrap().step(0, session.app.patterns.path.step).unwrap().span;
    let model = session.app.model.clone().unwrap();
    let contains = |at: usize| model.executions.start[at] < moment.end && moment.end <= model.executions.end[at];
    assert!((0..model.executions.len()).any(contains));
    assert!(
        (0..model.executions.len()).filter(|at| contains(*at)).all(|at| slow.members.iter().any(|m| m.index() == at))
    );
    let step = session.app.patterns.path;
    session.keys("-");
    assert_eq!((session.app.pane, session.app.patterns.path), (Pane::Path, step));
    session.keys("Backspace Backspace");
    assert_eq!(session.app.pane, Pane::Anomalies);
}

#[test]
fn the_selected_path_is_exported() {
    let mut session = Session::new(80, 24, ColourDepth::True);
    session.ready();
    session.keys("3 Enter Right");
    session.keys("e Enter y");
    assert!(session.lines()[23].contains("whyslow-anomalies.json written"));
    let Some(Exported::Anomalies { path: Some(1), .. }) = session.exported() else {
        panic!("{:?}", session.exported())
    };
    session.keys("2 e Enter y");
    let Some(Exported::Comparison { path: Some(SelectedPath { at: 1, .. }), .. }) = session.exported() else {
        panic!("{:?}", session.exported())
    };
}

#[test]
fn every_size_is_drawn_and_every_key_taken() {
    let keys = "Enter Down Right 1 > > s Shift-Left f x u U g 2 o o / a Enter n N - i y Esc ? End Esc w Esc : Esc T Esc \
                e Esc t z Tab 3 4 [ { Home End PgUp PgDn Backspace 3 o / r n N f s Enter Esc i Esc p Esc R R Enter Enter \
                Right Left End m - Backspace Backspace y";
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
    for keys in ["1 > > s", "?", "Esc : ", "Esc 2 i", "Esc w", "Esc 3", "i", "Esc p", "Esc Enter"] {
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

/// Bytes that each of these keys costs, in a session of this size.
fn bytes_per_key(columns: u16, lines: u16, keys: &str) -> Vec<(String, usize)> {
    let mut session = Session::new(columns, lines, ColourDepth::True);
    session.ready();
    let mut painter = Painter::default();
    painter.paint(&session.draw(), &mut Vec::new());
    let cost = |key: &str| {
        session.keys(key);
        let mut out = Vec::new();
        painter.paint(&session.draw(), &mut out);
        (key.to_owned(), out.len())
    };
    keys.split_whitespace().map(cost).collect()
}

#[test]
fn moving_writes_few_bytes() {
    let keys = "Enter Down Right Down Down Right Down Down Down Down Up Up Up Up Up Up Up Up Up Left Home End Up \
                PgUp PgDn 1 Right Right Right Right Left Down Down Down Down Down Down Up End Home Tab Down";
    for (columns, lines, limit) in [(80, 24, 1024), (200, 60, 4096)] {
        let costs = bytes_per_key(columns, lines, keys);
        let moves: Vec<&(String, usize)> = costs.iter().filter(|(k, _)| !["1", "Tab"].contains(&k.as_str())).collect();
        for (key, bytes) in &moves {
            println!("{columns}x{lines} {key}: {bytes} bytes");
        }
        let most = moves.iter().map(|(_, bytes)| *bytes).max().unwrap();
        assert!(most <= limit, "{columns}x{lines}: up to {most} bytes per key");
    }
}

#[test]
fn groups_follow_the_selection_and_come_back_with_undo() {
    let mut session = Session::new(120, 40, ColourDepth::True);
    session.ready();
    let slow = |s: &Session| s.app.comparison.as_ref().unwrap().slow.members.len();
    let proposed = slow(&session);
    session.keys("1 Down Right Right Right > > > > > > > > > > s");
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
fn copy_takes_the_item_under_the_cursor() {
    let mut session = Session::new(80, 24, ColourDepth::True);
    session.ready();
    session.keys("y Enter y 1 Right > y");
    let [cause, node, filter] = session.copied.as_slice() else { panic!("{:?}", session.copied) };
    assert!(cause.contains("expensive_flush") && node.starts_with("ledgerd > start_thread > "), "{cause}\n{node}");
    assert!(filter.parse::<whyslow::compare::filter::Filter>().is_ok(), "{filter}");
}
