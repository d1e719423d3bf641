//! The tree pane: folding, following causes, searching, and the trail of jumps back.

use super::inverted;
use super::moving::vertical;
use super::patterns;
use super::tree_search::search_tree;
use crate::compare::Comparison;
use crate::model::Model;
use crate::view::tui::app::{App, JumpOrigin};
use crate::view::tui::details;
use crate::view::tui::pane::Pane;
use crate::view::tui::panes::tree::state::Cursor;
use crate::view::tui::search::MatchStep;
use crate::view::tui::tree::find_context;

pub fn fold(app: &mut App) {
    let (Some((_, comparison)), Cursor::Row(row)) = (app.shown_tree(), app.tree.cursor) else { return };
    app.tree.touched = true;
    let unfolded = app.node().is_some_and(|(_, n)| n.size > 1 && app.tree.rows.is_unfolded(n));
    if unfolded {
        app.tree.rows.fold(row, &comparison.tree);
    } else if let Some(parent) = app.tree.rows.parent_row(row, &comparison.tree) {
        app.tree.cursor = Cursor::Row(parent);
    }
}

pub fn unfold(app: &mut App) {
    let Some((model, comparison)) = app.shown_tree() else { return };
    app.tree.touched = true;
    match app.tree.cursor {
        // An unfolded node is entered.
        Cursor::Row(_) if app.node().is_some_and(|(_, n)| n.size > 1 && app.tree.rows.is_unfolded(n)) => {
            vertical(app, 1);
        }
        Cursor::Row(_) if app.tree.small_nodes().is_some() => open(app),
        Cursor::Row(row) => app.tree.rows.unfold(row, &model, &comparison.tree),
        Cursor::Cause(_) => open(app),
    }
}

pub fn open(app: &mut App) {
    if matches!(app.tree.cursor, Cursor::Cause(_)) {
        return follow_cause(app);
    }
    let Some((model, comparison)) = app.shown_tree() else { return };
    app.tree.touched = true;
    let Cursor::Row(row) = app.tree.cursor else { return };
    if let Some(small) = app.tree.small_nodes() {
        app.tree.cursor = Cursor::Row(app.tree.rows.split(small, &model, &comparison.tree));
    } else if app.node().is_some_and(|(_, n)| app.tree.rows.is_unfolded(n)) {
        app.tree.rows.fold(row, &comparison.tree);
    } else {
        app.tree.rows.unfold(row, &model, &comparison.tree);
    }
}

/// Go to the node of the cause under the cursor, which is in the tree with callers first.
fn follow_cause(app: &mut App) {
    let (Some((model, comparison)), Cursor::Cause(i)) = (app.compared_executions(), app.tree.cursor) else { return };
    app.tree.touched = true;
    let Some(cause) = comparison.causes.get(i) else { return };
    match details::cause_node(&model, &comparison, cause) {
        Some(node) => {
            app.trail.push(JumpOrigin::Cause(i));
            go_to(app, node, &model, &comparison);
        }
        None if cause.kind.is_some() => app.say("this cause has no place in the tree"),
        None => app.say("this row is the sum of many small differences, which have no single node in the tree"),
    }
}

/// Go to a node of the tree with callers first.
pub fn go_to(app: &mut App, node: u32, model: &Model, comparison: &Comparison) {
    inverted::leave(app);
    put_on(app, node, model, comparison);
}

/// Put the cursor on a node of the tree that is shown.
fn put_on(app: &mut App, node: u32, model: &Model, comparison: &Comparison) {
    let row = app.tree.rows.reveal(node, model, &comparison.tree);
    app.tree.cursor = Cursor::Row(row);
    app.pane = Pane::Tree;
}

/// Keep the node under the cursor as the origin of a jump; the way back leads to the tree with callers first alone.
pub fn remember_node(app: &mut App) {
    let context = app.node().filter(|_| app.tree.inverted.is_none()).map(|(_, here)| here.context);
    app.trail.extend(context.map(JumpOrigin::Context));
}

pub fn back(app: &mut App) {
    match (app.trail.pop(), app.compared_executions()) {
        (Some(JumpOrigin::Cause(i)), _) => {
            app.tree.cursor = Cursor::Cause(i);
            app.pane = Pane::Tree;
        }
        (Some(JumpOrigin::Anomaly(row)), _) => {
            app.patterns.list.row = row;
            app.pane = Pane::Anomalies;
        }
        (Some(JumpOrigin::Step(place)), _) => {
            app.patterns.path = place;
            app.pane = Pane::Path;
        }
        (Some(JumpOrigin::Context(context)), Some((model, comparison))) => {
            if let Some(node) = find_context(&model, &comparison.tree, context) {
                go_to(app, node, &model, &comparison);
            }
        }
        _ => app.say("nothing to go back to"),
    }
}

pub fn reorder(app: &mut App) {
    let Some((model, comparison)) = app.shown_tree() else { return };
    let order = app.tree.rows.order().next();
    app.tree.rows.set_order(order, &model, &comparison.tree);
    // A new order is read from its top.
    app.tree.touched = true;
    (app.tree.cursor, app.tree.offset) = (Cursor::Row(0), 0);
    let text = app.tree.search.text.clone();
    search_tree(app, &text);
    app.say(format!("ordered by {}", order.name()));
}

pub fn search(app: &mut App, text: &str) {
    if app.pane.is_of_patterns() {
        return patterns::search(app, text);
    }
    search_tree(app, text);
}

/// Go to a match of the last search.
pub fn step_match(app: &mut App, step: MatchStep) {
    if app.pane.is_of_patterns() {
        return patterns::step_match(app, step);
    }
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
