//! The heat map of pane 1: its cells are the executions, its box a group, its cursor that of the list beside it.

use super::interface::Session;
use super::session;
use std::path::Path;
use std::sync::Arc;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::compare::filter::Filter;
use whyslow::parts::compare::heat_map::{HeatBox, HeatMap};
use whyslow::parts::compare::members::members;
use whyslow::parts::input::Argument;
use whyslow::parts::model::execution::ExecutionId;
use whyslow::parts::session::OpenOptions;
use whyslow::parts::symbols::files::SymbolPaths;
use whyslow::parts::tui::heat_cells::HeatQuestion;
use whyslow::parts::tui::job::{Done, Job, JobError};
use whyslow::parts::tui::message::{UiEffect, UiMessage};
use whyslow::parts::tui::pane::Pane;
use whyslow::parts::tui::theme::ColourDepth;
use whyslow::parts::tui::update::update;
use whyslow::parts::view::diff_parts::DiffParts;
use whyslow::parts::view::text::{Glyphs, Page};
use whyslow::parts::view::{json, text};

fn map(session: &Session) -> &HeatMap {
    session.app.histograms.heat.map().expect("no heat map")
}

/// The executions of the box, by its filters.
fn inside(session: &Session) -> Vec<ExecutionId> {
    let heat = &session.app.histograms.heat;
    let filters: Vec<Filter> = map(session).filters(&heat.boxed().expect("no box")).unwrap();
    members(session.app.model.as_ref().unwrap(), &filters, &[]).unwrap()
}

#[test]
fn cells_add_up_to_the_executions_at_every_size_and_axis() {
    for (columns, lines) in [(80, 24), (200, 60), (40, 10), (300, 100)] {
        let mut session = session(columns, lines, "1");
        let axes = 4;
        for _ in 0..axes {
            let comparison = session.app.comparison.clone().unwrap();
            let map = map(&session);
            let whole = HeatBox { columns: 0..map.columns.len(), rows: 0..map.rows() };
            let sum = map.sum(&whole);
            let counts = [sum.all, sum.slow, sum.fast].map(|n| n as usize);
            let model = session.app.model.as_ref().unwrap();
            let groups = [&comparison.slow, &comparison.fast].map(|group| group.members.len());
            assert_eq!(counts, [model.executions.len(), groups[0], groups[1]], "{columns}x{lines} {:?}", map.across);
            session.keys("a");
        }
    }
}

#[test]
fn a_frame_counts_nothing_anew() {
    let mut session = session(80, 24, "1");
    let before = counted(&session);
    session.keys("Left Right Up Down > > Esc ? Esc 2 1 PgDn Down");
    assert!(Arc::ptr_eq(&counted(&session), &before));
    session.send(UiMessage::Resize(100, 30));
    assert!(!Arc::ptr_eq(&counted(&session), &before));
}

/// Counting a million executions takes longer than a frame: nothing waits for it.
#[test]
fn cells_are_counted_in_the_background() {
    let mut session = session(80, 24, "1");
    let cells = |effects: &[UiEffect]| -> Vec<HeatQuestion> {
        let question = |effect: &UiEffect| match effect {
            UiEffect::Start(Job::CountCells { question }) => Some(question.clone()),
            _ => None,
        };
        effects.iter().filter_map(question).collect()
    };
    let old = cells(&update(&mut session.app, UiMessage::Resize(100, 30)));
    assert_eq!(old.len(), 1);
    assert!(session.lines().iter().any(|line| line.contains("counting …")), "{:?}", session.lines());
    // The same question is not asked twice, and the answer to an old one is not taken.
    assert!(cells(&update(&mut session.app, UiMessage::Resize(100, 30))).is_empty());
    let new = cells(&update(&mut session.app, UiMessage::Resize(120, 40)));
    let [old, new] = [old, new].map(|mut asked| asked.remove(0));
    let answer =
        |of: &HeatQuestion| UiMessage::Done(Done::Cells(Box::new(of.clone()), Box::new(Ok(of.clone().count()))));
    update(&mut session.app, answer(&old));
    assert!(session.lines().iter().any(|line| line.contains("counting …")));
    update(&mut session.app, answer(&new));
    assert!(!session.lines().iter().any(|line| line.contains("counting …")));
    // Without memory for them there is the reason.
    let again = cells(&update(&mut session.app, UiMessage::Resize(90, 30))).remove(0);
    let refusal = JobError::Failed("no room".to_owned());
    update(&mut session.app, UiMessage::Done(Done::Cells(Box::new(again), Box::new(Err(refusal)))));
    assert!(session.lines().iter().any(|line| line.contains("no room")), "{:?}", session.lines());
}

fn counted(session: &Session) -> Arc<HeatMap> {
    Arc::clone(&session.app.histograms.heat.counted.as_ref().unwrap().map)
}

#[test]
fn a_box_becomes_a_group_that_moves_with_it() {
    // Shift with arrows, and the way without: Space, arrows, Space.
    for keys in ["1 Shift-Left Shift-Left Shift-Down Shift-Down", "1 Space Left Left Down Down Space"] {
        let mut session = session(120, 40, keys);
        let boxed = session.app.histograms.heat.boxed().unwrap();
        assert_eq!((boxed.columns.len(), boxed.rows.len()), (3, 3), "{keys}");
        let wanted = inside(&session);
        session.keys("s");
        let prompt = session.lines().join("\n");
        assert!(prompt.contains("slow> start ") && prompt.contains("duration"), "{prompt}");
        session.keys("Enter");
        assert_eq!(session.app.comparison.as_ref().unwrap().slow.members, wanted, "{keys}");
        // Moving the box moves the group, as one change.
        session.keys("Shift-Left Shift-Left Shift-Left");
        let moved = inside(&session);
        assert!(moved.len() >= wanted.len());
        assert_eq!(session.app.comparison.as_ref().unwrap().slow.members, moved);
        let kept = session.app.histograms.heat.selection.clone();
        session.keys("u");
        assert_ne!(session.app.comparison.as_ref().unwrap().slow.members, moved);
        session.keys("U");
        assert_eq!(session.app.histograms.heat.selection, kept);
        // Without the box the filters go, too.
        session.keys("Backspace");
        assert!(session.app.groups.now().slow.is_empty(), "{:?}", session.app.groups.now());
    }
}

#[test]
fn a_box_keeps_its_executions_when_the_screen_changes() {
    let mut session = session(80, 24, "1 Shift-Left Shift-Left Shift-Left Shift-Down s Enter");
    let slow = session.app.comparison.as_ref().unwrap().slow.members.clone();
    for (columns, lines) in [(200, 60), (100, 30), (40, 10), (80, 24)] {
        session.send(UiMessage::Resize(columns, lines));
        let heat = &session.app.histograms.heat;
        let found = map(&session).members(session.app.model.as_ref().unwrap(), &heat.boxed().unwrap());
        assert!(slow.iter().all(|id| found.contains(id)), "{columns}x{lines}");
        assert_eq!(session.app.comparison.as_ref().unwrap().slow.members, slow);
    }
}

#[test]
fn a_box_is_dragged_by_the_mouse() {
    let mut session = Session::new(80, 24, ColourDepth::True);
    session.ready();
    session.keys("1");
    let (inside_pane, cells) = (session.app.frame.inside(Pane::Histograms), session.app.frame.heat);
    let (x, y) = (inside_pane.x + cells.gutter as u16, inside_pane.y + cells.head as u16);
    session.send(UiMessage::Click(x + 3, y));
    session.send(UiMessage::Drag(x + 20, y + 1));
    session.send(UiMessage::Drag(x + 30, y + 2));
    let boxed = session.app.histograms.heat.boxed().unwrap();
    assert_eq!((boxed.columns, boxed.rows.len()), (3..31, 3));
    session.keys("f");
    assert!(session.lines().join("\n").contains("fast> start in "));
}

#[test]
fn names_take_the_place_of_the_time() {
    let mut session = session(80, 24, "1 a");
    assert_eq!(map(&session).across.name(), "type");
    let page = session.lines().join("\n");
    assert!(page.contains("type × duration") && page.contains("append") && page.contains("lookup"), "{page}");
    session.keys("Home Shift-Up Shift-Down Shift-Down Shift-Down Shift-Down Shift-Down Shift-Down s");
    let prompt = session.lines().join("\n");
    assert!(prompt.contains("slow> type="), "{prompt}");
}

#[test]
fn list_and_heat_map_follow_each_other() {
    for (columns, lines) in [(80, 24), (200, 60)] {
        let mut session = session(columns, lines, "1 E");
        let place = |session: &Session, number: u32| {
            let model = session.app.model.as_ref().unwrap();
            map(session).place(model, ExecutionId::from_raw(number)).unwrap()
        };
        // Both are in sight, and the map's cursor is on the execution of the list's.
        let page = session.lines().join("\n");
        assert!(page.contains("start × duration") && page.contains("Executions, the slowest first"), "{page}");
        for keys in ["Down", "Down Down Down", "Left", "Right", "PgDn", "l o o k u p Down"] {
            session.keys(keys);
            let number = listed(&session);
            assert_eq!(session.app.histograms.heat.cursor, place(&session, number), "{columns}x{lines} {keys}");
        }
        // A click on the cell of another one moves the list.
        session.keys("Esc 1 E");
        let before = listed(&session);
        session.keys("Down Down Down Down Down Down");
        let (column, row) = place(&session, before);
        let (inside, cells) = (session.app.frame.inside(Pane::Histograms), session.app.frame.heat);
        let from_top = map(&session).rows() - 1 - row;
        let x = inside.x as usize + cells.gutter + column;
        session.send(UiMessage::Click(x as u16, inside.y + (cells.head + from_top) as u16));
        assert_eq!(listed(&session), before);
        assert_eq!(session.app.histograms.heat.cursor, (column, row));
    }
}

/// The number of the execution under the cursor of the list.
fn listed(session: &Session) -> u32 {
    let lines = session.lines();
    let title = lines.iter().position(|line| line.contains("Executions, the slowest first")).expect("no list");
    let left = lines[title].find("Executions").map_or(0, |at| lines[title][..at].chars().count()) - 3;
    let rows = lines[title + 1..].iter().map(|line| line.chars().skip(left).collect::<String>());
    let here = rows.into_iter().find(|line| line.starts_with('▌')).expect("no cursor");
    here.trim_start_matches(['▌', ' ']).split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn marks_of_the_groups_differ_without_colours() {
    let mut session = Session::new(80, 24, ColourDepth::Mono);
    session.ready();
    session.keys("1");
    let lines = session.lines();
    let page = lines.join("\n");
    assert!(page.contains("▪■█ slow  ░▒▓ fast  ▚ both"), "{page}");
    let top = usize::from(session.app.frame.inside(Pane::Histograms).y) + session.app.frame.heat.head;
    let cells: String =
        lines[top..top + map(&session).rows()].concat().chars().filter(|c| "▪■█░▒▓▚".contains(*c)).collect();
    assert!(cells.contains(['▪', '■', '█']) && cells.contains(['░', '▒', '▓']), "{cells}");
}

#[test]
fn a_group_from_a_box_equals_its_snapshots() {
    for (columns, lines) in super::SNAPSHOT_SIZES {
        let session = session(columns, lines, "1 Space Left Left Left Down Space s Enter Shift-Left");
        super::assert_snapshot(&format!("heat-group-{columns}x{lines}"), &session);
    }
}

/// The lines of pane 1 over a recording.
fn pane_over(path: &str, columns: u16, lines: u16) -> String {
    let ctx = Ctx::new(1);
    let trace = Argument::parse(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(path));
    let mut recording = whyslow::parts::session::Session::open(&[trace], &OpenOptions::default(), &ctx).unwrap();
    let model = recording.model(None, &SymbolPaths::default(), &[], &ctx).unwrap();
    let mut session = Session::new(columns, lines, ColourDepth::True);
    session.send(UiMessage::Done(Done::Analysed(Ok(Arc::new(model)))));
    session.keys("1");
    let inside = session.app.frame.inside(Pane::Histograms);
    let shown = session.lines()[usize::from(inside.top())..usize::from(inside.bottom())].to_vec();
    let of_pane = |line: String| line.chars().skip(inside.x.into()).take(inside.width.into()).collect::<String>();
    shown.into_iter().map(|line| format!("|{}|\n", of_pane(line).trim_end())).collect()
}

/// A kernel trace, a recording by perf, an MPI run, and a profile, whose samples have no durations.
#[test]
fn pane_over_recordings_equals_its_snapshots() {
    for (name, path) in [
        ("kernel", "traces/lock-contention"),
        ("perf", "recorders/planted/lock.data"),
        ("mpi", "archives/late_sender/trace"),
        ("profile", "profiles/flat.data"),
    ] {
        for (columns, lines) in super::SNAPSHOT_SIZES {
            let shown = pane_over(path, columns, lines);
            assert_eq!(shown.contains("× duration"), name != "profile", "{shown}");
            assert_eq!(shown.contains("samples have no durations"), name == "profile", "{shown}");
            insta::with_settings!({
                snapshot_path => "../snapshots",
                prepend_module_to_snapshot => false,
                omit_expression => true,
            }, {
                insta::assert_snapshot!(format!("heat-{name}-{columns}x{lines}"), shown);
            });
        }
    }
}

/// The drawing and the document of `diff --heat-map` have the cells of the screen.
#[test]
fn cells_equal_the_diff() {
    let session = session(120, 40, "1");
    let (model, comparison) = session.app.compared_executions().unwrap();
    let map = map(&session);
    let parts = DiffParts { heat_map: Some(map), ..DiffParts::default() };
    let document = serde_json::to_value(json::diff(&model, &comparison, &parts, None)).unwrap();
    let twin = &document["heat_map"];
    assert_eq!(twin["across"], map.across.name());
    assert_eq!(twin["row_borders_ns"], serde_json::to_value(&map.row_borders).unwrap());
    for row in 0..map.rows() {
        for column in 0..map.columns.len() {
            let cell = map.cell(column, row);
            let counts = [("all", cell.all), ("slow", cell.slow), ("fast", cell.fast)];
            assert!(counts.iter().all(|(key, count)| twin[key][row][column] == *count), "{column} {row}");
        }
    }
    let printed = text::diff(&model, &comparison, &parts, Page { width: 200, glyphs: Glyphs::Unicode });
    let sums = "start × duration: slow 24 ▪■█, fast 676 ░▒▓, both ▚, neither ·, of 700 executions";
    assert!(printed.contains(sums), "{printed}");
    // Each line of the drawing is a line of the screen.
    let lines = session.lines();
    let drawn: Vec<&str> = printed.lines().skip_while(|line| !line.contains(sums)).skip(1).take(map.rows()).collect();
    let top = usize::from(session.app.frame.inside(Pane::Histograms).y) + session.app.frame.heat.head;
    for (drawn, shown) in drawn.iter().zip(&lines[top..]) {
        let marks = |line: &str| line.chars().filter(|c| "▪■█░▒▓▚·".contains(*c)).collect::<String>();
        assert_eq!(marks(drawn), marks(shown.trim_start_matches('▌')), "{drawn}\n{shown}");
    }
}
