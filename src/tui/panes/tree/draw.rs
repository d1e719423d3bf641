//! The tree pane: the ranked causes, and below them the differential flame tree, drawn sideways.
//!
//! A row is a context. Its bar is the mean time there: shaded what both groups have, full the extra of the slow group,
//! light what the fast group has more. The colour says by how many standard deviations the groups differ, no stronger
//! than the share of the difference deserves; sign and figure are beside it. The cost is that of the visible rows.

use super::arranged;
use super::causes::{self, WIDE, affected_head};
use super::figures::part_of;
use super::icicle;
use super::state::Cursor;
use crate::base::figure;
use crate::compare::arranged::TreeDirection;
use crate::compare::{DiffNode, DiffTree, share_of_group};
use crate::model::Model;
use crate::model::context::FrameKind;
use crate::tui::app::App;
use crate::tui::canvas::{Canvas, clip_front, width};
use crate::tui::frame::DETAILS_LINES;
use crate::tui::pane::Pane;
use crate::tui::theme::{StyleScope, Theme};
use crate::tui::tree::{NodeChain, SmallNodes, TreeItem};
use crate::tui::widget::page::StyledLine;
use crate::tui::widget::table::{TableColumn, TableLayout};
use crate::view::words;
use std::borrow::Cow;

pub fn draw(canvas: &mut Canvas<'_>, app: &App) {
    let Some((model, comparison)) = app.shown_tree() else {
        if app.failure.is_none() {
            canvas.text(2, 1, "comparing …", StyleScope::Progress);
        }
        return;
    };
    let lines = app.frame.tree;
    let here = |cursor: Cursor| app.pane == Pane::Tree && app.tree.cursor == cursor;
    causes::draw(canvas, app, &comparison);
    let tree = tree_table(canvas.width(), lines.names);
    let top = lines.cause_head + lines.causes;
    if lines.tree_head > 0 {
        tree_head(canvas, &tree, top, app);
    }
    if !app.frame.tree_details.is_empty() {
        details(canvas, &app.frame.tree_details);
    }
    if app.tree.icicle.is_some() {
        let details = if app.frame.tree_details.is_empty() { 0 } else { usize::from(DETAILS_LINES) };
        return icicle::draw(canvas, app, (top + lines.tree_head, lines.rows.saturating_sub(details)));
    }
    let nodes = &comparison.tree.nodes;
    let roots = app.tree.rows.roots(&model, &comparison.tree);
    let roots = roots.into_iter().filter_map(|at| nodes.get(at as usize));
    let widest = roots.map(|n| n.slow_mean_ns.max(n.fast_mean_ns)).fold(0.0, f64::max);
    let visible = app.tree.rows.visible.iter().enumerate().skip(app.tree.offset).take(lines.rows);
    for (line, (row, item)) in visible.enumerate() {
        let (y, here) = (top + lines.tree_head + line, here(Cursor::Row(row)));
        match item {
            TreeItem::Node(chain) => {
                let Some(node) = nodes.get(chain.last as usize) else { continue };
                let share = part_of(node.delta_ns, comparison.extra_ns as f64);
                let is_marked = is_marked(app, *chain, node);
                let names = names(&model, &comparison.tree, *chain);
                let row = TreeRow {
                    app,
                    model: &model,
                    node,
                    chain: *chain,
                    tree: &comparison.tree,
                    names,
                    share,
                    is_marked,
                    here,
                };
                row.draw(canvas, &tree, y, widest);
            }
            TreeItem::Small(small) => {
                small_row(canvas, &tree, y, small);
                if here {
                    canvas.mark_line(y);
                }
            }
        }
    }
}

/// The details below the rows, always in the same lines.
fn details(canvas: &mut Canvas<'_>, lines: &[StyledLine]) {
    let y = canvas.height().saturating_sub(usize::from(DETAILS_LINES));
    canvas.fill(0, y, canvas.width(), '┄', StyleScope::Rule);
    canvas.text(2, y, " details (i: with sample executions) ", StyleScope::Dim);
    for (line, text) in lines.iter().enumerate() {
        canvas.pieces(1, y + 1 + line, canvas.width(), text);
    }
}

/// True if the row of a node shows time of the marked cause: its own, or that of nodes folded below it.
fn is_marked(app: &App, chain: NodeChain, node: &DiffNode) -> bool {
    let end = chain.last + if app.tree.rows.is_unfolded(node) { 1 } else { node.size.max(1) };
    let marked = &app.tree.marked.nodes;
    marked.get(marked.partition_point(|m| *m < chain.first)).is_some_and(|first| *first < end)
}

/// Several small nodes in one row: how many, and their sums.
fn small_row(canvas: &mut Canvas<'_>, table: &TableLayout, y: usize, small: &SmallNodes) {
    let column = table.column(NAME);
    let indent = indent(column.width, small.depth as usize);
    canvas.text_in(column.x + indent, y, column.width.saturating_sub(indent + 1), &small_name(small), StyleScope::Dim);
    let cells = [
        (figure::extra(small.delta_ns), StyleScope::Dim),
        (figure::time(small.slow_mean_ns), StyleScope::Dim),
        (figure::time(small.fast_mean_ns), StyleScope::Dim),
    ];
    table.cells(canvas, y, FIGURES, &cells);
}

/// The column of the triangle of a row of this depth, in a pane of this width whose names take this many columns.
pub fn fold_column(width: usize, names: usize, depth: usize) -> usize {
    let name = tree_table(width, names).column(NAME);
    name.x + indent(name.width, depth)
}

fn small_name(small: &SmallNodes) -> String {
    format!("… {} below 1%", small.count)
}

/// Columns by which a row of this depth is moved in. Deep rows give up their indent before their name.
fn indent(columns: usize, depth: usize) -> usize {
    let step = if columns >= 40 { INDENT } else { 1 };
    (depth * step).min(columns.saturating_sub(18).max(2))
}

/// Columns that names have at least.
const LEAST_NAMES: usize = 24;
/// The bar has at least one in this many of the columns that it shares with the names.
const LEAST_BAR: usize = 6;
/// Rows whose names say how wide their column is.
const MEASURED: usize = 512;

/// The names of the nodes of a row, from the first to the last.
fn names(model: &Model, tree: &DiffTree, chain: NodeChain) -> Vec<String> {
    let nodes = tree.nodes.get(chain.first as usize..=chain.last as usize).unwrap_or(&[]);
    nodes.iter().map(|node| words::frame(model, node.context)).collect()
}

/// Columns that the names of the rows take, with their indent. The rows that are unfolded, not those on the screen:
/// columns stay where they are while the user scrolls.
pub fn widest_name(app: &App) -> usize {
    let Some((model, comparison)) = app.shown_tree() else { return 0 };
    let of_item = |item: &TreeItem| match item {
        TreeItem::Node(chain) => {
            let names = names(&model, &comparison.tree, *chain);
            let between = names.len().saturating_sub(1) * width(CALLS);
            names.iter().map(|name| width(name)).sum::<usize>() + between
        }
        TreeItem::Small(small) => width(&small_name(small)),
    };
    let all = app.tree.rows.visible.iter().take(MEASURED);
    all.map(|item| INDENT * item.depth() as usize + MARK + of_item(item) + 1).max().unwrap_or(0)
}

/// Between the names of a row: a caller and what it calls.
const CALLS: &str = " › ";
/// Between the names of a row: a function and its caller.
const CALLED_BY: &str = " ‹ ";
/// Columns of the triangle before a name, and of the gap after it.
const MARK: usize = 2;
/// Columns by which a child is moved in.
const INDENT: usize = 2;

/// The names of a row in this many columns: all of them, or the last with as many of the first as fit.
fn joined(names: &[String], between: &str, room: usize) -> String {
    let all = names.join(between);
    let Some((last, others)) = names.split_last().filter(|_| width(&all) > room) else { return all };
    let shortened = |kept: usize| {
        let hidden = format!("… {}", others.len() - kept);
        let (kept, end) = (others.iter().take(kept).map(String::as_str), [hidden.as_str(), last]);
        kept.chain(end).collect::<Vec<_>>().join(between)
    };
    let fitting = (0..others.len()).rev().map(shortened).find(|text| width(text) <= room);
    fitting.unwrap_or_else(|| last.clone())
}

/// Positions of the columns of the tree.
const NAME: usize = 0;
const BAR: usize = 1;
const FIGURES: usize = 2;

/// The columns of a tree whose names take this many: the bar is beside them, and has what they leave.
fn tree_table(width: usize, names: usize) -> TableLayout {
    let least = match width {
        0..=47 => 0,
        48..=75 => 8,
        _ => 10,
    };
    let of_bar = |bar: usize| {
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
    };
    let table = of_bar(least);
    let both = least + table.column(NAME).width;
    let bar = both.saturating_sub(names.max(LEAST_NAMES)).max(both / LEAST_BAR).max(least);
    if least == 0 { table } else { of_bar(bar) }
}

fn tree_head(canvas: &mut Canvas<'_>, table: &TableLayout, y: usize, app: &App) {
    match app.tree.icicle {
        Some(_) => canvas.fill(0, y, canvas.width(), '┄', StyleScope::Rule),
        None => table.ruled_head(canvas, y),
    }
    let search = &app.tree.search;
    let found = if search.text.is_empty() {
        String::new()
    } else {
        format!(", {} match /{}", search.matches.len(), search.text)
    };
    // Boxes have an order of their own.
    let order = match app.tree.icicle {
        Some(_) => "icicle".to_owned(),
        None => format!("by {}", app.tree.rows.order().name()),
    };
    let title = format!(" {}{order}{found} ", arrangement(app));
    let (name, bar) = (table.column(NAME), table.column(BAR));
    canvas.text_in(name.x, y, (name.width + bar.width).saturating_sub(1), &title, StyleScope::Dim);
}

/// How the tree is arranged, as the beginning of its title.
fn arrangement(app: &App) -> String {
    let zoom = app.tree.rows.zoom().last().zip(app.shown_tree());
    let mut parts: Vec<String> =
        zoom.map(|(root, (model, _))| format!("in {}", words::frame(&model, *root))).into_iter().collect();
    parts.extend(arranged::transforms(app));
    match app.tree.inverted.as_ref().map(|inverted| inverted.tree.truncated) {
        None => {}
        Some(false) => parts.push("callees first".to_owned()),
        Some(true) => parts.push("callees first, cut".to_owned()),
    }
    if app.arranged_tree().is_some_and(|tree| tree.hides_kernel) {
        parts.push("kernel hidden (H)".to_owned());
    }
    parts.into_iter().map(|part| part + ", ").collect()
}

/// A visible node of the tree.
struct TreeRow<'a> {
    app: &'a App,
    model: &'a Model,
    /// The one that the row is about.
    node: &'a DiffNode,
    chain: NodeChain,
    tree: &'a DiffTree,
    names: Vec<String>,
    /// Its part of the whole difference.
    share: f64,
    is_marked: bool,
    here: bool,
}

impl TreeRow<'_> {
    /// Draw it; a bar of full length is `widest`.
    fn draw(&self, canvas: &mut Canvas<'_>, table: &TableLayout, y: usize, widest: f64) {
        let node = self.node;
        let slow = self.app.comparison.as_ref().map_or(0, |comparison| comparison.slow.count);
        let scope = Theme::of_difference(node.deviations, self.share);
        self.name(canvas, table, y);
        let bar = table.column(BAR);
        if bar.width > 0 && widest > 0.0 {
            let (slow, fast) = (node.slow_mean_ns / widest, node.fast_mean_ns / widest);
            canvas.compared_bar(bar.x, y, bar.width - 1, slow, fast, scope);
        }
        let cells = [
            (figure::extra(node.delta_ns), scope),
            // One style for the rest of the line: a change of colour costs 20 bytes.
            (figure::time(node.slow_mean_ns), StyleScope::Dim),
            (figure::time(node.fast_mean_ns), StyleScope::Dim),
            (figure::deviations(node.deviations), StyleScope::Dim),
            (share_of_group(node.slow_affected, slow), StyleScope::Dim),
        ];
        table.cells(canvas, y, FIGURES, &cells);
        if self.is_marked {
            canvas.text(0, y, "●", StyleScope::Slow3);
        }
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
        let depth = self.chain.depth as usize;
        let indent = indent(column.width, depth);
        canvas.text(column.x + indent, y, &fold.to_string(), StyleScope::Dim);
        if indent < depth {
            canvas.text(indent, y, "…", StyleScope::Dim);
        }
        let room = column.width.saturating_sub(indent + MARK + 1);
        let is_thread = |at: u32| {
            let node = self.tree.nodes.get(at as usize);
            node.is_some_and(|node| matches!(self.model.contexts.frame(node.context).kind, FrameKind::Thread(_)))
        };
        let style = if self.names.iter().any(|name| self.app.tree.search.is_in(name)) {
            StyleScope::Match
        } else if self.here || is_thread(self.chain.first) {
            StyleScope::Strong
        } else {
            StyleScope::Text
        };
        let between = match self.app.tree.direction() {
            TreeDirection::CallersFirst => CALLS,
            TreeDirection::CalleesFirst => CALLED_BY,
        };
        let name = joined(&self.names, between, room);
        // The end of a long name says more than its beginning: namespaces come first.
        let long = width(&name) > room && name.contains("::");
        let name = if long { clip_front(&name, room) } else { Cow::Borrowed(name.as_str()) };
        canvas.text_in(column.x + MARK + indent, y, room, &name, style);
    }
}
