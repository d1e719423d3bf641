//! How many bytes a navigation key costs: the cursor's keys in every pane and dialog, on lists and trees of many pages.

use super::interface::Session;
use crate::support::model_parts;
use std::sync::Arc;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::time::{Span, Timestamp};
use whyslow::parts::compare::{ComparisonRequest, compare};
use whyslow::parts::model::column_values::ColumnValues;
use whyslow::parts::model::execution::ContextTime;
use whyslow::parts::model::metric::{Column, Metric};
use whyslow::parts::model::{Model, TraceId, TraceInfo, TraceLevel};
use whyslow::parts::tui::counts::HistogramCounter;
use whyslow::parts::tui::job::{ComparedGroups, Done};
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
    const START: Timestamp = Timestamp::new(1_700_000_000_000_000_000);
    const EXECUTIONS: usize = 4_000;
    let mut model = Model { tasks: vec!["app:request".to_owned()].into(), origin: START, ..Model::default() };
    let leaf =
        |at: usize| format!("server;outer_{};{}_{}", at % 3, ["read", "find_entry", "serialise"][at % 7 % 3], at);
    let leaves: Vec<_> = (0..400).map(|at| model_parts::context(&mut model, "host", &leaf(at), 0)).collect();
    let who = model_parts::thread(&mut model, "host", ("server", 1), ("worker", 2));
    let mut column = Column { metric: Metric::Duration, values: ColumnValues::default() };
    let mut at = START;
    for number in 0..EXECUTIONS {
        let slow = number % 20 == 0;
        let part = |leaf: usize| {
            let spread = (number as u64 + 7 * leaf as u64).wrapping_mul(2_654_435_761) % 60_000;
            let ns = 3_000 + spread + if slow { leaf as u64 % 11 * 90_000 } else { 0 };
            ContextTime { context: leaves[leaf], ns }
        };
        let parts: Vec<ContextTime> = (0..24).map(|step| part((number * 24 + step * 17) % leaves.len())).collect();
        let duration: i64 = parts.iter().map(|part| part.ns as i64).sum();
        column.values.push(duration);
        let all = &mut model.executions;
        all.start.push(at);
        all.duration.push(duration);
        all.who.push(who);
        all.trace.push(TraceId::at(0));
        all.unsure.push(false);
        all.own.push(parts);
        at += 10_000_000;
    }
    model.executions.columns = vec![column];
    model.traces.push(TraceInfo {
        label: "wide".into(),
        level: TraceLevel::Machine,
        span: Span::new(START, at),
        recorded: None,
    });
    model
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
            session.send(UiMessage::Done(Done::Compared(Ok(ComparedGroups { comparison, inverted: None }))));
            session.send(UiMessage::Done(Done::Counted(Arc::clone(&counts))));
            session.keys(keys);
            let rows = session.app.tree.rows.visible.len();
            check(&format!("{rows} rows, {keys}"), &mut session, MOVES, limit, &mut above);
        }
    }
    assert!(above.is_empty(), "{above:#?}");
}
