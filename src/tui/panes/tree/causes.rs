//! The ranked causes above the tree: figures, and in a few words the kind and the culprit.
//!
//! A cause sums up the same kind of time in many calling contexts: the row says in how many places of the execution's
//! own thread, and the tree below marks them.

use super::state::Cursor;
use crate::base::figure;
use crate::compare::{Cause, Comparison, share_of_group};
use crate::tui::app::App;
use crate::tui::canvas::{Canvas, clip, width};
use crate::tui::cause_labels::labels;
use crate::tui::pane::Pane;
use crate::tui::theme::{StyleScope, Theme};
use crate::tui::widget::table::{TableColumn, TableLayout};

/// From this width on the last column has its long name.
pub(super) const WIDE: usize = 100;

/// The head of the share of slow executions that are affected.
pub(super) fn affected_head(width: usize) -> &'static str {
    if width >= WIDE { "% of slow" } else { "% slow" }
}

/// Draw them, as many as the frame has lines for.
pub fn draw(canvas: &mut Canvas<'_>, app: &App, comparison: &Comparison) {
    let lines = app.frame.tree;
    let table = table(canvas.width());
    if lines.cause_head > 0 {
        head(canvas, &table, app);
    }
    let labels = labels(&comparison.causes);
    let shown = comparison.causes.iter().zip(&labels).enumerate().skip(app.tree.cause_offset).take(lines.causes);
    for (line, (at, (cause, label))) in shown.enumerate() {
        let here = app.pane == Pane::Tree && app.tree.cursor == Cursor::Cause(at);
        let cause = ShownCause { comparison, cause, label };
        row(canvas, &table, lines.cause_head + line, &cause, here);
    }
}

/// The label in this many columns; where it is cut, the number of places stays.
fn with_places(cause: &Cause, label: &str, columns: usize) -> String {
    let places = match cause.places.len() {
        0 | 1 => return label.to_owned(),
        n => format!(", in {n} places"),
    };
    match columns.checked_sub(width(&places)) {
        Some(room) if room >= 20 => format!("{}{places}", clip(label, room)),
        _ => label.to_owned(),
    }
}

/// Explains the short names of columns.
const LEGEND: &str = "dev: standard deviations apart; % of slow: share affected";

/// Position of the column that names the cause, after its figures.
const CAUSE: usize = 5;

fn table(width: usize) -> TableLayout {
    let columns = [
        TableColumn::right("").from(16, 2),
        TableColumn::right("extra").gap(1).fixed(9),
        TableColumn::right("share").gap(1).from(32, 5),
        TableColumn::right("dev").gap(1).from(39, 6),
        TableColumn::right(affected_head(width)).gap(1).from(46, 6).from(WIDE, 9),
        TableColumn::left("").gap(2),
    ];
    TableLayout::new(width, 2, 0, &columns)
}

fn head(canvas: &mut Canvas<'_>, table: &TableLayout, app: &App) {
    table.head(canvas, 0);
    let (shown, first, all) = (app.frame.tree.causes, app.tree.cause_offset, app.causes().len());
    let text =
        if shown < all { format!("causes {}-{} of {all}", first + 1, first + shown) } else { "causes".to_owned() };
    let at = canvas.text(table.column(CAUSE).x, 0, &text, StyleScope::Dim);
    if at + 2 + width(LEGEND) <= canvas.width() {
        canvas.right(canvas.width(), 0, LEGEND, StyleScope::Dim);
    }
}

/// A cause with its label, and the comparison that it is part of.
struct ShownCause<'a> {
    comparison: &'a Comparison,
    cause: &'a Cause,
    label: &'a str,
}

fn row(canvas: &mut Canvas<'_>, table: &TableLayout, y: usize, shown: &ShownCause<'_>, here: bool) {
    let ShownCause { comparison, cause, label } = *shown;
    let scope = Theme::of_difference(cause.deviations, cause.share);
    let label = with_places(cause, label, table.column(CAUSE).width);
    let cells = [
        (cause.rank.map_or("·".into(), |r| r.to_string()), StyleScope::Dim),
        (figure::extra(cause.extra_ns as f64), scope),
        (comparison.share(cause.share), StyleScope::Text),
        (figure::deviations(cause.deviations), scope),
        (share_of_group(cause.slow_affected, comparison.slow.count), StyleScope::Dim),
        (label, if here { StyleScope::Strong } else { StyleScope::Text }),
    ];
    table.cells(canvas, y, 0, &cells);
    if here {
        canvas.mark_line(y);
    }
}
