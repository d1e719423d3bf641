//! How many bytes a navigation key costs: the cursor's keys in every pane and dialog, on lists and trees of many pages.

use super::interface::Session;
use super::recording::recording;
use std::sync::Arc;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::compare::{ComparisonRequest, compare};
use whyslow::parts::model::Model;
use whyslow::parts::tui::counts::HistogramCounter;
use whyslow::parts::tui::job::{ArrangedTrees, ComparedGroups, Done};
use whyslow::parts::tui::message::UiMessage;
use whyslow::parts::tui::paint::Painter;
use whyslow::parts::tui::theme::ColourDepth;

/// A screen with the most bytes that a key may cost on it.
const LIMITS: [(u16, u16, usize); 2] = [(80, 24, 1024), (200, 60, 4096)];

/// Keys that move, without those that show another pane.
const MOVES: &str = "Down Down Down Right Down Down Right Down Down Down PgDn PgDn PgDn Down Up Up PgUp Left Left Home \
                     End Up Up PgUp PgUp Home PgDn PgDn End Home Right Right Left Right Down Down Down Down Up Up End \
                     Home";

/// A key with the bytes that it costs.
#[derive(Debug)]
struct KeyCost {
    key: String,
    bytes: usize,
}

/// The bytes that each of these keys costs.
fn bytes_per_key(session: &mut Session, keys: &str) -> Vec<KeyCost> {
    let mut painter = Painter::default();
    painter.paint(&session.draw(), &mut Vec::new());
    let cost = |key: &str| {
        session.keys(key);
        let mut out = Vec::new();
        painter.paint(&session.draw(), &mut out);
        KeyCost { key: key.to_owned(), bytes: out.len() }
    };
    keys.split_whitespace().map(cost).collect()
}

/// Print the most expensive key, and remember it where it is above the limit.
fn check(name: &str, session: &mut Session, keys: &str, limit: usize, above: &mut Vec<String>) {
    let (columns, lines) = session.app.size;
    let costs = bytes_per_key(session, keys);
    let most = costs.iter().max_by_key(|cost| cost.bytes).unwrap();
    let sum: usize = costs.iter().map(|cost| cost.bytes).sum();
    println!("{columns}x{lines} {name}: {} bytes on average, {} for {}", sum / costs.len(), most.bytes, most.key);
    if most.bytes > limit {
        above.push(format!("{columns}x{lines} {name}: {most:?}"));
    }
}

#[test]
fn moving_writes_few_bytes_in_every_pane() {
    let mut above = Vec::new();
    for (columns, lines, limit) in LIMITS {
        for (name, keys, moves) in [
            ("histograms", "1", MOVES),
            ("tree", "Enter", MOVES),
            ("inverted tree", "I Right Right", "Down Down Down Up Up Down PgDn PgUp Down Down Up"),
            ("anomalies", "3 { { { {", MOVES),
            ("propagation", "3 { { { { 4", "Down Down Up PgDn PgUp End Home Down"),
            ("timeline", "v", MOVES),
            ("overview", "r", MOVES),
            ("functions", "F", MOVES),
            ("tasks", "T", MOVES),
            ("actions", ":", MOVES),
        ] {
            let mut session = Session::new(columns, lines, ColourDepth::True);
            session.ready();
            session.keys(keys);
            check(name, &mut session, moves, limit, &mut above);
        }
    }
    assert!(above.is_empty(), "{above:#?}");
}

/// What replaces the whole picture by another one costs no more than a byte for each cell of the screen.
#[test]
fn another_page_of_text_or_path_costs_a_byte_a_cell() {
    let mut above = Vec::new();
    for (columns, lines, _) in LIMITS {
        for (name, keys, moves) in [
            ("paths", "3 { { { { 4", "Right Right Right Left"),
            ("details", "i", MOVES),
            ("details of a range", "1 PgDn End < < < < i", MOVES),
            ("help", "?", MOVES),
            ("data quality", "w", MOVES),
            ("patterns", "3 p", MOVES),
            ("ranks", "3 v", MOVES),
        ] {
            let mut session = Session::new(columns, lines, ColourDepth::True);
            session.ready();
            session.keys(keys);
            check(name, &mut session, moves, usize::from(columns) * usize::from(lines), &mut above);
        }
    }
    assert!(above.is_empty(), "{above:#?}");
}

/// A recording whose tree has pages of rows below each node, with figures and functions that differ.
fn wide() -> Model {
    const LEAVES: u64 = 400;
    let leaf = |at: u64| {
        let function = ["read", "find_entry", "serialise"][at as usize % 7 % 3];
        format!("server;outer_{};{function}_{at}", at % 3)
    };
    recording(4_000, |number| {
        let slow = number % 20 == 0;
        let part = |at: u64| {
            let spread = (number + 7 * at).wrapping_mul(2_654_435_761) % 60_000;
            (leaf(at), 3_000 + spread + if slow { at % 11 * 90_000 } else { 0 })
        };
        (0..24).map(|step| part((number * 24 + step * 17) % LEAVES)).collect()
    })
}

#[test]
fn pages_of_a_large_tree_are_few_bytes() {
    let model = Arc::new(wide());
    let ctx = Ctx::new(1);
    let comparison = Arc::new(compare(&model, &ComparisonRequest::default(), &ctx).unwrap());
    let counts = Arc::new(HistogramCounter::new(&model, &ctx).unwrap().count(&comparison.request()));
    let mut above = Vec::new();
    for (columns, lines, limit) in LIMITS {
        for keys in ["End", "End Up o", "End o o"] {
            let mut session = Session::new(columns, lines, ColourDepth::True);
            session.send(UiMessage::Done(Done::Analysed(Ok(Arc::clone(&model)))));
            let comparison = Arc::clone(&comparison);
            session.send(UiMessage::Done(Done::Compared(Ok(ComparedGroups {
                comparison,
                trees: ArrangedTrees::default(),
            }))));
            session.send(UiMessage::Done(Done::Counted(Arc::clone(&counts))));
            session.keys(keys);
            let rows = session.app.tree.rows.visible.len();
            check(&format!("{rows} rows, {keys}"), &mut session, MOVES, limit, &mut above);
        }
    }
    assert!(above.is_empty(), "{above:#?}");
}
