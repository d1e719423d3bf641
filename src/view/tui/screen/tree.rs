//! The tree pane: the ranked causes, and below them the differential flame tree, drawn sideways.
//!
//! A row is a context: the length of its bar is the slow group's mean time there, its colour says by how many standard
//! deviations the groups differ, and sign and figure are beside it. The cost is that of the visible rows.

use crate::base::figure;
use crate::compare::{Cause, Comparison, DiffNode, part};
use crate::model::Model;
use crate::model::context::FrameKind;
use crate::view::tui::app::{App, Cursor};
use crate::view::tui::canvas::{Canvas, clip_front, width};
use crate::view::tui::pane::Pane;
use crate::view::tui::theme::{StyleScope, Theme};
use crate::view::tui::tree::children;
use crate::view::tui::widget::table::{TableColumn, TableLayout};
use crate::view::words;
use std::borrow::Cow;

/// Draw it.
pub fn draw(canvas: &mut Canvas<'_>, app: &App) {
    let (Some(model), Some(comparison)) = (&app.model, &app.comparison) else {
        canvas.text(2, 1, "comparing …", StyleScope::Progress);
        return;
    };
    let lines = app.frame.tree;
    let here = |cursor: Cursor| app.pane == Pane::Tree && app.tree.cursor == cursor;
    let causes = cause_table(canvas.width());
    if lines.cause_head > 0 {
        cause_head(canvas, &causes, app);
    }
    for (line, at) in (app.tree.cause_offset..comparison.causes.len()).take(lines.causes).enumerate() {
        let cause = ShownCause { comparison, cause: &comparison.causes[at] };
        cause_row(canvas, &causes, lines.cause_head + line, &cause, here(Cursor::Cause(at)));
    }
    let tree = tree_table(canvas.width());
    let top = lines.cause_head + lines.causes;
    if lines.tree_head > 0 {
        tree_head(canvas, &tree, top, app);
    }
    let nodes = &comparison.tree.nodes;
    let whole = children(&comparison.tree, None).filter_map(|at| nodes.get(at as usize)).map(|n| n.slow_mean_ns);
    let widest = whole.fold(0.0, f64::max);
    let visible = app.tree.rows.visible.iter().enumerate().skip(app.tree.offset).take(lines.rows);
    for (line, (row, at)) in visible.enumerate() {
        let Some(node) = nodes.get(*at as usize) else { continue };
        let shown = TreeRow { app, model, node, here: here(Cursor::Row(row)) };
        shown.draw(canvas, &tree, top + lines.tree_head + line, widest);
    }
}

/// From this width on the last column has its long name.
const WIDE: usize = 100;

/// The head of the share of slow executions that are affected.
fn affected_head(width: usize) -> &'static str {
    if width >= WIDE { "% of slow" } else { "% slow" }
}

/// Explains the short names of columns.
const LEGEND: &str = "dev: standard deviations apart; % of slow: share affected";

/// Position of the column that names the cause, after its figures.
const CAUSE: usize = 5;

fn cause_table(width: usize) -> TableLayout {
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

fn cause_head(canvas: &mut Canvas<'_>, table: &TableLayout, app: &App) {
    table.head(canvas, 0);
    let (shown, first, all) = (app.frame.tree.causes, app.tree.cause_offset, app.causes().len());
    let text =
        if shown < all { format!("causes {}-{} of {all}", first + 1, first + shown) } else { "causes".to_owned() };
    let at = canvas.text(table.column(CAUSE).x, 0, &text, StyleScope::Dim);
    if at + 2 + width(LEGEND) <= canvas.width() {
        canvas.right(canvas.width(), 0, LEGEND, StyleScope::Dim);
    }
}

/// A cause, and the comparison that it is part of.
struct ShownCause<'a> {
    comparison: &'a Comparison,
    cause: &'a Cause,
}

fn cause_row(canvas: &mut Canvas<'_>, table: &TableLayout, y: usize, cause: &ShownCause<'_>, here: bool) {
    let ShownCause { comparison, cause } = *cause;
    let scope = Theme::of_deviations(cause.deviations);
    let cells = [
        (cause.rank.map_or("·".into(), |r| r.to_string()), StyleScope::Dim),
        (figure::extra(cause.extra_ns as f64), scope),
        (comparison.share(cause.share), StyleScope::Text),
        (figure::deviations(cause.deviations), scope),
        (part(cause.slow_affected, comparison.slow.members.len()), StyleScope::Dim),
        (cause_text(cause), if here { StyleScope::Strong } else { StyleScope::Text }),
    ];
    table.cells(canvas, y, 0, &cells);
    if here {
        canvas.mark_line(y);
    }
}

/// A cause in a few words: its kind and the culprit; the details page has the sentence.
fn cause_text(cause: &Cause) -> String {
    let Some(kind) = cause.kind else { return "many small differences".to_owned() };
    let by = &cause.by;
    let who = match (&by.process, &by.thread) {
        (Some(process), Some(thread)) if process != thread => format!("{process}/{thread}"),
        (Some(name), _) | (None, Some(name)) => name.clone(),
        (None, None) => String::new(),
    };
    let mut parts = vec![who];
    parts.extend(by.function.clone());
    parts.retain(|p| !p.is_empty());
    if parts.is_empty() {
        let tail = cause.path.len().saturating_sub(2);
        parts.extend(cause.path.iter().skip(tail).map(|frame| words::frame_of_path(frame).to_owned()));
    }
    format!("{}  {}", words::kind(kind), parts.join(" › "))
}

/// Positions of the columns of the tree.
const NAME: usize = 0;
const BAR: usize = 1;
const FIGURES: usize = 2;

fn tree_table(width: usize) -> TableLayout {
    let bar = match width {
        0..=47 => 0,
        48..=75 => 8,
        76..WIDE => 10,
        wide => (wide - 56) / 2 - 10,
    };
    let columns = [
        TableColumn::left(""),
        TableColumn::left("").fixed(bar),
        TableColumn::right("extra").from(20, 10),
        TableColumn::right("slow").from(64, 8).from(WIDE, 9),
        TableColumn::right("fast").from(76, 8).from(WIDE, 9),
        TableColumn::right("dev").from(34, 7),
        TableColumn::right(affected_head(width)).from(64, 7).from(WIDE, 10),
    ];
    TableLayout::new(width, 1, 1, &columns)
}

fn tree_head(canvas: &mut Canvas<'_>, table: &TableLayout, y: usize, app: &App) {
    table.ruled_head(canvas, y);
    let search = &app.tree.search;
    let found = if search.text.is_empty() {
        String::new()
    } else {
        format!(", {} match /{}", search.matches.len(), search.text)
    };
    let title = format!(" by {}{found} ", app.tree.rows.order().name());
    let (name, bar) = (table.column(NAME), table.column(BAR));
    canvas.text_in(name.x, y, (name.width + bar.width).saturating_sub(1), &title, StyleScope::Dim);
}

/// A visible node of the tree.
struct TreeRow<'a> {
    app: &'a App,
    model: &'a Model,
    node: &'a DiffNode,
    here: bool,
}

impl TreeRow<'_> {
    /// Draw it; a bar of full length is `widest`.
    fn draw(&self, canvas: &mut Canvas<'_>, table: &TableLayout, y: usize, widest: f64) {
        let node = self.node;
        let slow = self.app.comparison.as_ref().map_or(0, |comparison| comparison.slow.members.len());
        let scope = Theme::of_deviations(node.deviations);
        self.name(canvas, table, y);
        let bar = table.column(BAR);
        if bar.width > 0 && widest > 0.0 {
            canvas.bar(bar.x, y, bar.width - 1, node.slow_mean_ns / widest, scope);
        }
        let cells = [
            (figure::extra(node.delta_ns), scope),
            (figure::time(node.slow_mean_ns), StyleScope::Text),
            (figure::time(node.fast_mean_ns), StyleScope::Dim),
            (figure::deviations(node.deviations), scope),
            (part(node.slow_affected, slow), StyleScope::Dim),
        ];
        table.cells(canvas, y, FIGURES, &cells);
        if self.here {
            canvas.mark_line(y);
        }
    }

    fn name(&self, canvas: &mut Canvas<'_>, table: &TableLayout, y: usize) {
        let (node, column) = (self.node, table.column(NAME));
        let fold = match (node.size > 1, self.app.tree.rows.is_unfolded(node)) {
            (false, _) => ' ',
            (true, true) => '▾',
            (true, false) => '▸',
        };
        // Deep rows give up their indent before their name.
        let depth = node.depth as usize;
        let step = if column.width >= 40 { 2 } else { 1 };
        let most = column.width.saturating_sub(18).max(2);
        let indent = (depth * step).min(most);
        canvas.text(column.x + indent, y, &fold.to_string(), StyleScope::Dim);
        if depth * step > most {
            canvas.text(indent, y, "…", StyleScope::Dim);
        }
        let room = column.width.saturating_sub(indent + 3);
        let name = words::frame(self.model, node.context);
        let style = match self.model.contexts.frame(node.context).kind {
            _ if self.app.tree.search.is_in(&name) => StyleScope::Match,
            FrameKind::Thread(_) => StyleScope::Strong,
            _ if self.here => StyleScope::Strong,
            _ => StyleScope::Text,
        };
        // The end of a long name says more than its beginning: namespaces come first.
        let long = width(&name) > room && name.contains("::");
        let name = if long { clip_front(&name, room) } else { Cow::Borrowed(name.as_str()) };
        canvas.text_in(column.x + 2 + indent, y, room, &name, style);
    }
}
