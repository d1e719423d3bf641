//! Lines of the state history with the names of attributes and values.

use crate::model::history::{HistoryInterval, HistoryRow, HistoryValue};
use crate::timeline::history::lines::{Held, HistoryLine};
use crate::timeline::history::{Shown, StateHistory};

/// Lines that a question found, as rows that hold no reference to the history.
pub fn rows(history: &StateHistory, lines: &[HistoryLine]) -> Vec<HistoryRow> {
    let value = |value| match history.show(value) {
        Shown::Number(n) => HistoryValue::Number(n),
        Shown::Text(text) => HistoryValue::Text(text.to_owned()),
    };
    let interval = |held: &Held| HistoryInterval { span: held.span, value: held.value.map(value) };
    let row = |line: &HistoryLine| HistoryRow {
        attribute: history.attributes().path_of(line.attribute),
        intervals: line.held.iter().map(interval).collect(),
    };
    lines.iter().map(row).collect()
}
