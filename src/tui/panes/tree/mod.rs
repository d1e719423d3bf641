//! The tree pane: the ranked causes, and below them the differential flame tree; folding, following causes, searching.

pub mod arranged;
mod causes;
mod draw;
mod figures;
pub mod icicle;
mod shown;
pub mod state;

use super::pane_view::{PaneCell, PaneView};
use crate::compare::Comparison;
use crate::model::Model;
use crate::model::context::ContextId;
use crate::tui::app::App;
use crate::tui::bookmarks::BookmarkPlace;
use crate::tui::canvas::Canvas;
use crate::tui::details::{self, Details, SampleExecution, SampleSearch, cause_node};
use crate::tui::frame::{DETAILS_FROM, DETAILS_LINES, ScreenFrame, TreeLines, first_shown};
use crate::tui::layers::details::{DetailsPage, about};
use crate::tui::layers::page::PageLayer;
use crate::tui::pane::{JumpOrigin, Pane};
use crate::tui::search::MatchStep;
use crate::tui::theme::StyleScope;
use crate::tui::tree::{TreeItem, find_context, path_text};
use crate::tui::widget::page::{StyledLine, plain};
use arranged::search_again;
use draw::fold_column;
use state::{Cursor, DetailsBeside, MarkedNodes, TreePaneItem};
use std::sync::Arc;

/// The pane.
pub struct TreeView;

impl PaneView for TreeView {
    fn draw(&self, canvas: &mut Canvas<'_>, app: &App) {
        draw::draw(canvas, app);
    }

    fn lay_out(&self, app: &App, frame: &mut ScreenFrame) {
        frame.tree = TreeLines {
            names: draw::widest_name(app),
            ..TreeLines::new(frame.inside(Pane::Tree).height, app.causes().len())
        };
        frame.icicle = icicle::lay_out(app, frame.inside(Pane::Tree).width);
        frame.tree_details = tree_details(app, frame);
    }

    fn settle(&self, app: &mut App) {
        let (causes, rows) = (app.causes().len(), app.tree.rows.visible.len());
        app.tree.cursor = match app.tree.cursor {
            Cursor::Cause(i) if causes > 0 => Cursor::Cause(i.min(causes - 1)),
            Cursor::Cause(_) => Cursor::Row(0),
            Cursor::Row(_) if rows == 0 && causes > 0 => Cursor::Cause(0),
            Cursor::Row(i) => Cursor::Row(i.min(rows.saturating_sub(1))),
        };
        mark(app);
        look_beside(app);
    }

    fn scroll(&self, app: &mut App) {
        let tree = app.frame.tree;
        let (causes, rows) = (app.causes().len(), app.tree.rows.visible.len());
        match app.tree.cursor {
            Cursor::Cause(i) => app.tree.cause_offset = first_shown(app.tree.cause_offset, i, tree.causes, causes),
            Cursor::Row(_) if app.tree.icicle.is_some() => icicle::scroll(app),
            Cursor::Row(i) => app.tree.offset = first_shown(app.tree.offset, i, tree.rows, rows),
        }
        app.tree.offset = app.tree.offset.min(rows.saturating_sub(tree.rows.max(1)));
    }

    fn shown(&self, app: &App) -> usize {
        app.frame.tree.rows
    }

    fn vertical(&self, app: &mut App, by: isize) {
        app.tree.touched = true;
        // Causes and rows are one list for the cursor.
        let causes = app.causes().len();
        if let (Cursor::Row(_), Some(_)) = (app.tree.cursor, &app.tree.icicle) {
            let left = icicle::vertical(app, by);
            if left > 0 && causes > 0 {
                app.tree.cursor = Cursor::Cause(causes.saturating_sub(left));
            }
            return;
        }
        let last = (causes + app.tree.rows.visible.len()).saturating_sub(1);
        let at = match app.tree.cursor {
            Cursor::Cause(i) => i,
            Cursor::Row(i) => causes + i,
        };
        let at = at.saturating_add_signed(by).min(last);
        app.tree.cursor = if at < causes { Cursor::Cause(at) } else { Cursor::Row(at - causes) };
    }

    /// Fold, or unfold.
    fn sideways(&self, app: &mut App, by: isize) {
        match app.tree.cursor {
            Cursor::Row(_) if app.tree.icicle.is_some() => icicle::sideways(app, by),
            _ if by < 0 => fold(app),
            _ => self.unfold(app),
        }
    }

    /// Follow a cause; fold or unfold a node.
    fn open(&self, app: &mut App) {
        if matches!(app.tree.cursor, Cursor::Cause(_)) {
            return follow_cause(app);
        }
        let Some((model, comparison)) = app.shown_tree() else { return };
        app.tree.touched = true;
        let Cursor::Row(row) = app.tree.cursor else { return };
        if app.tree.icicle.is_some() {
            return arranged::zoom_in(app);
        }
        if let Some(small) = app.tree.small_nodes() {
            app.tree.cursor = Cursor::Row(app.tree.rows.split(small, &model, &comparison.tree));
        } else if app.node().is_some_and(|(_, n)| app.tree.rows.is_unfolded(n)) {
            app.tree.rows.fold(row, &model, &comparison.tree);
        } else {
            app.tree.rows.unfold(row, &model, &comparison.tree);
        }
    }

    fn click(&self, app: &mut App, PaneCell { line, column, was_in_front }: PaneCell) -> bool {
        let shape = app.frame.tree;
        let rows_from = shape.cause_head + shape.causes + shape.tree_head;
        if app.tree.icicle.is_some() && line >= rows_from {
            let before = app.node().map(|(at, _)| at);
            let is_hit = icicle::click(app, line - rows_from, column);
            if is_hit {
                app.tree.cursor = Cursor::Row(0);
            }
            return is_hit && was_in_front && before == app.node().map(|(at, _)| at);
        }
        let cursor = if line >= rows_from {
            Cursor::Row(app.tree.offset + line - rows_from)
        } else {
            match line.checked_sub(shape.cause_head).filter(|i| *i < shape.causes) {
                Some(i) => Cursor::Cause(app.tree.cause_offset + i),
                None => return false,
            }
        };
        let item = match cursor {
            Cursor::Row(row) => app.tree.rows.visible.get(row),
            Cursor::Cause(_) => None,
        };
        if item.is_none() && matches!(cursor, Cursor::Row(_)) {
            return false;
        }
        let width = usize::from(app.frame.inside(Pane::Tree).width);
        let is_triangle = item.is_some_and(|item| {
            let at = fold_column(width, app.frame.tree.names, item.depth() as usize);
            matches!(item, TreeItem::Node(_)) && (at..at + 2).contains(&column)
        });
        app.tree.touched = true;
        let is_again = std::mem::replace(&mut app.tree.cursor, cursor) == cursor && was_in_front;
        is_triangle || is_again
    }

    fn details(&self, app: &App) -> Option<PageLayer> {
        Some(PageLayer::new(DetailsPage(under_cursor(app, SampleSearch::Done)?)))
    }

    fn example(&self, app: &App) -> Option<SampleExecution> {
        under_cursor(app, SampleSearch::Done)?.samples().first().cloned()
    }

    fn copied(&self, app: &App) -> Option<String> {
        if let Cursor::Cause(at) = app.tree.cursor {
            return app.causes().get(at).map(|cause| cause.sentence.clone());
        }
        let (_, node) = app.node()?;
        let (model, _) = app.shown_tree()?;
        let between = if app.tree.inverted.is_some() { " < " } else { " > " };
        let path = path_text(&model, node.context).join(between);
        Some(format!("{path}: {}", figures::figures(app, node)))
    }

    fn place(&self, app: &App) -> Option<BookmarkPlace> {
        path_under_cursor(app).map(|path| BookmarkPlace::Context { path })
    }
}

impl TreeView {
    fn unfold(&self, app: &mut App) {
        let Some((model, comparison)) = app.shown_tree() else { return };
        app.tree.touched = true;
        match app.tree.cursor {
            Cursor::Row(_) if app.tree.small_nodes().is_some() => self.open(app),
            Cursor::Row(row) if app.node().is_some_and(|(_, n)| n.size == 1 || app.tree.rows.is_unfolded(n)) => {
                // A chain is opened, an unfolded node is entered.
                if !app.tree.rows.open_chain(row, &model, &comparison.tree)
                    && app.node().is_some_and(|(_, n)| n.size > 1)
                {
                    self.vertical(app, 1);
                }
            }
            Cursor::Row(row) => app.tree.rows.unfold(row, &model, &comparison.tree),
            Cursor::Cause(_) => self.open(app),
        }
    }
}

fn fold(app: &mut App) {
    let (Some((model, comparison)), Cursor::Row(row)) = (app.shown_tree(), app.tree.cursor) else { return };
    app.tree.touched = true;
    let unfolded = app.node().is_some_and(|(_, n)| n.size > 1 && app.tree.rows.is_unfolded(n));
    if unfolded {
        app.tree.rows.fold(row, &model, &comparison.tree);
    } else if let Some(parent) = app.tree.rows.parent_row(row, &comparison.tree) {
        app.tree.cursor = Cursor::Row(parent);
    }
}

/// Details of the cause or node under the cursor.
fn under_cursor(app: &App, search: SampleSearch) -> Option<Details> {
    let (model, comparison) = app.compared_executions()?;
    if let Cursor::Cause(at) = app.tree.cursor {
        return Some(details::of_cause(&model, &comparison, comparison.causes.get(at)?, search));
    }
    let (node, _) = app.node()?;
    Some(match app.arranged_tree() {
        Some(tree) => {
            let executions = (&*model, &*comparison);
            details::of_arranged(executions, tree, app.tree.direction(), node, search)
        }
        None => details::of_context(&model, &comparison, node, search),
    })
}

/// Look up the details of the item under the cursor of the tree, where the screen may have space for them.
fn look_beside(app: &mut App) {
    let (columns, lines) = app.size;
    let item = match app.tree.cursor {
        Cursor::Cause(at) => Some(TreePaneItem::Cause(at)),
        Cursor::Row(_) => app.node().map(|(at, _)| TreePaneItem::Node(at)),
    };
    let shown = app.shown_tree().zip(item).filter(|_| columns >= DETAILS_FROM && lines > DETAILS_LINES);
    let Some(((_, tree), item)) = shown else {
        app.beside = None;
        return;
    };
    if app.beside.as_ref().is_some_and(|beside| beside.item == item && Arc::ptr_eq(&beside.tree, &tree)) {
        return;
    }
    let found = under_cursor(app, SampleSearch::LeftOut);
    app.beside = found.map(|details| DetailsBeside { item, tree, details });
}

/// Mark the nodes of the cause under the cursor: one pass over the tree, when the cause is another one.
fn mark(app: &mut App) {
    let Cursor::Cause(at) = app.tree.cursor else { return };
    if app.tree.marked.cause == Some(at) {
        return;
    }
    let Some((_, comparison)) = app.shown_tree() else { return };
    let of_cause = comparison.causes.get(at).map_or(&[][..], |cause| &cause.contexts);
    let mut contexts = of_cause.to_vec();
    if let Some(tree) = app.arranged_tree() {
        contexts = of_cause.iter().filter_map(|context| tree.counted(*context)).collect();
        contexts.sort_unstable();
    }
    let nodes = (0_u32..).zip(&comparison.tree.nodes);
    let marked = nodes.filter(|(_, node)| contexts.binary_search(&node.context).is_ok()).map(|(at, _)| at);
    app.tree.marked = MarkedNodes { cause: Some(at), nodes: marked.collect() };
}

/// The details below the rows of the tree, if there is room.
fn tree_details(app: &App, frame: &ScreenFrame) -> Vec<StyledLine> {
    let (inside, most) = (frame.inside(Pane::Tree), usize::from(DETAILS_LINES) - 1);
    let is_shown = frame.panes.iter().any(|shown| shown.pane == Pane::Tree && shown.area.width >= DETAILS_FROM);
    let used = if app.tree.icicle.is_some() { icicle::lines(&frame.icicle) } else { app.tree.rows.visible.len() };
    let left = frame.tree.rows.saturating_sub(used);
    let Some(beside) = app.beside.as_ref().filter(|_| is_shown && left > most + 1) else { return Vec::new() };
    let mut lines = about(app, &beside.details, usize::from(inside.width).saturating_sub(2));
    if lines.len() > most {
        lines.truncate(most - 1);
        lines.push(plain(StyleScope::Dim, "… i: all"));
    }
    lines
}

/// Go to the node of the cause under the cursor, which is in the tree with callers first.
fn follow_cause(app: &mut App) {
    let (Some((model, comparison)), Cursor::Cause(i)) = (app.compared_executions(), app.tree.cursor) else { return };
    app.tree.touched = true;
    let Some(cause) = comparison.causes.get(i) else { return };
    let node = cause_node(&model, &comparison, cause).and_then(|node| comparison.tree.nodes.get(node as usize));
    match node {
        Some(node) => {
            app.trail.push(JumpOrigin::Cause(i));
            go_to(app, node.context);
        }
        None if cause.kind.is_some() => app.say("this cause has no place in the tree"),
        None => app.say("this row is the sum of many small differences, which have no single node in the tree"),
    }
}

/// Go to where the time of a context of the executions is in the tree with callers first.
pub fn go_to(app: &mut App, context: ContextId) {
    arranged::leave(app);
    match app.node_of_context(context).zip(app.callers_first()) {
        Some((node, (model, comparison))) => put_on(app, node, &model, &comparison),
        None => app.say("this part of the tree is left out; Backspace shows the whole tree"),
    }
}

/// Put the cursor on a node of the tree that is shown.
fn put_on(app: &mut App, node: u32, model: &Model, comparison: &Comparison) {
    let row = app.tree.rows.reveal(node, model, &comparison.tree);
    app.tree.cursor = Cursor::Row(row);
    icicle::put_on(app, node);
    app.pane = Pane::Tree;
}

/// Keep the node under the cursor as the origin of a jump; the way back leads to the tree with callers first alone.
pub fn remember_node(app: &mut App) {
    app.trail.extend(context_under_cursor(app).map(JumpOrigin::Context));
}

pub fn reorder(app: &mut App) {
    let Some((model, comparison)) = app.shown_tree() else { return };
    let order = app.tree.rows.order().next();
    app.tree.rows.set_order(order, &model, &comparison.tree);
    // A new order is read from its top.
    app.tree.touched = true;
    (app.tree.cursor, app.tree.offset) = (Cursor::Row(0), 0);
    search_again(app);
    app.say(format!("ordered by {}", order.name()));
}

/// Go to a match of the last search.
pub fn step_match(app: &mut App, step: MatchStep) {
    let Some((model, comparison)) = app.shown_tree() else { return };
    let matches = &app.tree.search.matches;
    if app.tree.search.text.is_empty() {
        return app.say("no search yet; /: search");
    }
    if matches.is_empty() {
        let text = format!("no function, call, wait or thread has a name with {:?}", app.tree.search.text);
        return app.report_failure(&text);
    }
    let rows = &app.tree.rows;
    let here = app.node().map(|(here, _)| here);
    let preceding = |or_equal: bool| {
        here.map_or(0, |here| {
            matches.partition_point(|m| {
                let order = rows.compare(*m, here, &model, &comparison.tree);
                order.is_lt() || (or_equal && order.is_eq())
            })
        })
    };
    let count = matches.len();
    let at = step.target(preceding(false), preceding(true), count);
    let node = matches[at];
    remember_node(app);
    app.tree.touched = true;
    put_on(app, node, &model, &comparison);
    app.say(format!("match {} of {count}", at + 1));
}

/// A context of the executions whose time counts in the node under the cursor, where callers are first.
fn context_under_cursor(app: &App) -> Option<ContextId> {
    let (_, here) = app.node().filter(|_| app.tree.inverted.is_none())?;
    let Some(tree) = app.arranged_tree() else { return Some(here.context) };
    let (model, comparison) = app.compared_executions()?;
    tree.counting_in(here.context).find(|context| find_context(&model, &comparison.tree, *context).is_some())
}

/// The frames from the root to the node under the cursor of the tree pane: a row's, or a cause's.
fn path_under_cursor(app: &App) -> Option<Vec<String>> {
    let (model, comparison) = app.compared_executions()?;
    let context = match app.tree.cursor {
        Cursor::Cause(at) => {
            let node = cause_node(&model, &comparison, comparison.causes.get(at)?)?;
            comparison.tree.nodes.get(node as usize)?.context
        }
        Cursor::Row(_) => context_under_cursor(app)?,
    };
    Some(path_text(&model, context))
}
