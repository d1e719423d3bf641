//! The calls of both executions aligned, as a tree below their lanes: rows, cursor, drawing.
//!
//! In: aligned calls. A row has a call, calls that repeat, or neighbours that are short; its times in both executions,
//! and the difference. Moving moves the cursors of both timelines to the calls of the row; a jump shows them in time.
//! Cost: the rows that are shown.

use super::state::LoadedTimelines;
use super::state::aligned::AlignedView;
use crate::base::figure;
use crate::base::time::Ns;
use crate::tui::actions::Action;
use crate::tui::canvas::{Canvas, clip, wrap};
use crate::tui::theme::{StyleScope, Theme};
use crate::tui::widget::page::{StyledLine, paragraph, plain};
use crate::tui::widget::table::{TableColumn, TableLayout};
use crate::view::call_rows;
use std::sync::Arc;

/// Columns of names, and those of the figures beside them.
const LEAST_NAME: usize = 40;
const FIGURES: usize = 33;
/// Columns of the bars, at least and at most.
const LEAST_BAR: usize = 10;
const LONGEST_BAR: usize = 60;

/// Move, open or fold, and let the cursors of both timelines go to the calls of the row; false where the action is none
/// of these.
pub fn act(loaded: &mut LoadedTimelines, action: Action, page: usize) -> bool {
    let (model, calls) = (Arc::clone(&loaded.model), Arc::clone(&loaded.calls));
    let is_done = loaded.trees.as_mut().is_some_and(|view| view.act(action, &model, &calls, page));
    if is_done {
        point(loaded);
    }
    is_done
}

/// The cursors of both timelines go to the calls of the row.
fn point(loaded: &mut LoadedTimelines) {
    let shown = loaded.trees.as_ref().and_then(|view| view.here());
    // Of short calls the first one, else the innermost of a chain.
    let at = shown.map(|shown| if shown.short > 0 { shown.first } else { shown.last });
    let Some(row) = at.and_then(|at| loaded.calls.rows.get(at as usize)) else { return };
    let moments = match [row.a, row.b].map(|calls| calls.map(|calls| calls.start_ns)) {
        [Some(a), Some(b)] => [a, b],
        [Some(a), None] => [a, loaded.calls.time_in_other(0, a)],
        [None, Some(b)] => [loaded.calls.time_in_other(1, b), b],
        [None, None] => return,
    };
    loaded.point_both(moments);
}

/// Show the calls of the row in time, in place of the tree: those of the execution in front, where it has them. Short
/// calls open.
pub fn jump(loaded: &mut LoadedTimelines, columns: usize) {
    let (model, calls) = (Arc::clone(&loaded.model), Arc::clone(&loaded.calls));
    let Some(view) = loaded.trees.as_mut() else { return };
    let Some(shown) = view.here().copied() else { return };
    if shown.short > 1 {
        return view.unfold(&model, &calls);
    }
    let Some(row) = calls.rows.get(shown.last as usize) else { return };
    let front = if row.calls(loaded.front).is_some() { loaded.front } else { 1 - loaded.front.min(1) };
    let Some(found) = row.calls(front) else { return };
    loaded.front = front;
    point(loaded);
    loaded.trees = None;
    let tree = loaded.tree(front);
    loaded.line = tree.call(found.first).map(|call| tree.line_of(call.level as usize));
    let (start, ns) = (found.start_ns + loaded.shift(front), found.end_ns - found.start_ns);
    loaded.set_window(start - ns / 2, ns.saturating_mul(2), columns);
}

/// Draw the rows, below a line of heads.
pub fn draw(canvas: &mut Canvas<'_>, loaded: &LoadedTimelines, view: &AlignedView, names: &[String; 2]) {
    // In wide terminals the figures are beside the names, and a bar is beside the figures.
    let wanted = view.name_columns.max(LEAST_NAME) + FIGURES;
    let columns = [
        TableColumn::left(""),
        TableColumn::right("").gap(1).fixed(9),
        TableColumn::right("").gap(1).fixed(9),
        TableColumn::right("").gap(1).from(48, 10),
    ];
    let table_width = canvas.width().min(wanted);
    let table = TableLayout::new(table_width, 1, 1, &columns);
    let bar = canvas.width().saturating_sub(table_width + 2).min(LONGEST_BAR);
    table.cell(canvas, 0, 0, "calls of both, aligned", StyleScope::Dim);
    for (at, name) in names.iter().enumerate() {
        let columns = table.column(at + 1).width;
        table.cell(canvas, 0, at + 1, &clip(name, columns), StyleScope::Dim);
    }
    table.cell(canvas, 0, 3, "difference", StyleScope::Dim);
    let whole = loaded.longest().max(1) as f64;
    let rows = view.rows.iter().enumerate().skip(view.top).take(canvas.height().saturating_sub(1));
    for (y, (at, shown)) in (1..).zip(rows) {
        let label = view.labels.get(at).map_or("", String::as_str);
        let has_below = loaded.calls.rows.get(shown.last as usize).is_some_and(|row| row.size > 1) || shown.short > 1;
        let mark = if shown.is_open {
            '▾'
        } else if has_below {
            '▸'
        } else {
            ' '
        };
        let indent = shown.level.min(table.column(0).width / 3);
        let name = format!("{}{mark} {label}", " ".repeat(indent));
        let style = match shown.short {
            0 if loaded.search.is_in(label) => StyleScope::Match,
            0 => StyleScope::Text,
            _ => StyleScope::Dim,
        };
        table.cell(canvas, y, 0, &name, style);
        let time = |ns: Ns| if ns == 0 { "-".to_owned() } else { figure::time(ns as f64) };
        let delta = shown.a_ns - shown.b_ns;
        let hue = Theme::of_difference(Some(4.0_f64.copysign(delta as f64)), delta as f64 / whole);
        let cells = [
            (time(shown.a_ns), StyleScope::Text),
            (time(shown.b_ns), StyleScope::Text),
            (figure::extra(delta as f64), hue),
        ];
        table.cells(canvas, y, 1, &cells);
        if bar >= LEAST_BAR {
            let part = |ns: Ns| ns as f64 / whole;
            canvas.compared_bar(table_width + 1, y, bar, part(shown.a_ns), part(shown.b_ns), hue);
        }
        if at == view.cursor {
            canvas.mark_line(y);
        }
    }
}

/// The row under the cursor in words.
pub fn text(loaded: &LoadedTimelines, view: &AlignedView, names: &[String; 2], columns: usize) -> Vec<StyledLine> {
    let Some(shown) = view.here() else { return vec![plain(StyleScope::Dim, "no call stacks were recorded")] };
    let label = call_rows::label(&loaded.model, &loaded.calls, shown);
    let name = wrap(&label, columns).into_iter().take(2);
    let mut lines: Vec<StyledLine> = name.map(|line| plain(StyleScope::Strong, line)).collect();
    let row = loaded.calls.rows.get(shown.last as usize);
    let of = |at: usize, ns: Ns| {
        let name = &names[at];
        // Short calls beside each other have the sum of all of them, of which the row is one.
        let calls = row.and_then(|row| row.calls(at)).filter(|_| shown.short == 0);
        match calls {
            None if ns == 0 => format!("{name}: none"),
            None => format!("{name}: {}", figure::time(ns as f64)),
            Some(calls) => {
                let own = if calls.times == 1 {
                    format!(", itself {}", figure::time(loaded.tree(at).own_ns(calls.first) as f64))
                } else {
                    String::new()
                };
                let whole = loaded.timeline(at).map_or(1, |timeline| timeline.ns.max(1));
                let share = figure::share(ns as f64 / whole as f64);
                let (start, ns) = (figure::time(calls.start_ns as f64), figure::time(ns as f64));
                format!("{name}: {ns} ({share} of it) at {start}{own}")
            }
        }
    };
    let both = format!("{}; {}", of(0, shown.a_ns), of(1, shown.b_ns));
    lines.extend(paragraph(StyleScope::Text, &both, columns, 2));
    if loaded.calls.coarse > 0 {
        let long = figure::plural(loaded.calls.coarse as u64, "sequence");
        lines.push(plain(StyleScope::Warning, format!("{long} of calls are too long to be aligned: paired in order")));
    }
    lines
}
