//! The tree pane in another arrangement: callees first, with the kernel's functions, with transforms; asked for, shown,
//! kept while groups change, and left.
//!
//! The tree with callers first is always there, since causes, bookmarks and jumps lead to it; the one with callees
//! first is there while it is shown. A place in either is kept by names when the other arrangement has other contexts.

use super::state::{Cursor, Icicle, MarkedNodes, ShownInverted};
use crate::compare::arranged::{ArrangedTree, Arrangement, KernelFrames, Transform, TransformKind, TreeDirection};
use crate::tui::app::App;
use crate::tui::job::{ArrangedTrees, Job, JobError};
use crate::tui::search::TextSearch;
use crate::tui::tree::{TreeRows, find_path, path_text};
use crate::view::words;
use std::sync::Arc;

/// Show the tree with callees first, or with callers first again.
pub fn toggle_direction(app: &mut App) {
    if app.tree.inverted.is_some() {
        leave(app);
        return app.say("callers first");
    }
    let arrangement = app.tree.arrangement.clone();
    begin(app, arrangement, TreeDirection::CalleesFirst);
}

/// Show the kernel's functions below system calls and page faults, or hide them again.
pub fn toggle_kernel(app: &mut App) {
    if app.shown_tree().is_none() {
        return app.say("nothing to show yet");
    }
    let kernel = match app.tree.arrangement.kernel {
        KernelFrames::Hidden if app.arranged_tree().is_none_or(|tree| !tree.hides_kernel) => {
            return app.say("the recording has no kernel functions below a system call or page fault");
        }
        KernelFrames::Hidden => KernelFrames::Shown,
        KernelFrames::Shown => KernelFrames::Hidden,
    };
    let arrangement = Arrangement { kernel, ..app.tree.arrangement.clone() };
    rearrange(app, arrangement);
}

/// Transform all contexts that have the frame under the cursor.
pub fn transform(app: &mut App, kind: TransformKind) {
    let frame = app.node().map(|(_, node)| node.context).zip(app.shown_tree());
    let Some(frame) = frame.map(|(context, (model, _))| model.contexts.frame(context)) else {
        return app.say("works on a row of the tree");
    };
    let mut arrangement = app.tree.arrangement.clone();
    arrangement.transforms.push(Transform { kind, frame });
    rearrange(app, arrangement);
}

/// Show the subtree under the cursor alone.
pub fn zoom_in(app: &mut App) {
    let (Some((model, comparison)), Cursor::Row(row)) = (app.shown_tree(), app.tree.cursor) else {
        return app.say("works on a row of the tree");
    };
    app.tree.touched = true;
    let node = match &app.tree.icicle {
        Some(_) => app.node().map(|(at, _)| at),
        None => app.tree.rows.first_node(row),
    };
    if node.is_some_and(|node| app.tree.rows.zoom_in(node, &model, &comparison.tree)) {
        app.tree.cursor = Cursor::Row(0);
        app.say("this subtree alone; -: back, Backspace: the whole tree");
    }
}

/// Take back the last zoom, or where there is none the last transform.
pub fn zoom_out(app: &mut App) {
    let Some((model, comparison)) = app.shown_tree() else { return };
    match app.tree.rows.zoom_out(&model, &comparison.tree) {
        Some(row) => app.tree.cursor = Cursor::Row(row),
        None if app.tree.arrangement.transforms.is_empty() => app.say("this is the whole tree"),
        None => {
            let mut arrangement = app.tree.arrangement.clone();
            arrangement.transforms.pop();
            rearrange(app, arrangement);
        }
    }
}

/// Show the whole tree again: no zoom, no transforms.
pub fn show_whole(app: &mut App) {
    let Some((model, comparison)) = app.shown_tree() else { return };
    if let Some(row) = app.tree.rows.zoom_out_fully(&model, &comparison.tree) {
        app.tree.cursor = Cursor::Row(row);
    }
    if !app.tree.arrangement.transforms.is_empty() {
        let kernel = app.tree.arrangement.kernel;
        rearrange(app, Arrangement { kernel, ..Arrangement::default() });
    }
}

fn rearrange(app: &mut App, arrangement: Arrangement) {
    let direction = app.tree.direction();
    begin(app, arrangement, direction);
}

fn begin(app: &mut App, arrangement: Arrangement, direction: TreeDirection) {
    let Some((model, comparison)) = app.compared_executions() else {
        return app.say("nothing to show yet");
    };
    if app.busy.is_some() {
        app.say("the analysis still runs; try again when it is done");
        return;
    }
    let has_callers_first = app.tree.arrangement == arrangement;
    app.begin(Job::Arrange { model, comparison, arrangement, direction, has_callers_first })
}

/// The tree was arranged, or not.
pub fn on_arranged(app: &mut App, arrangement: Arrangement, result: Result<ArrangedTrees, JobError>) {
    app.busy = None;
    let trees = match result {
        Ok(trees) => trees,
        Err(error) => return app.report_failure(error.to_string()),
    };
    let inverted = leave(app);
    let is_new = app.tree.arrangement != arrangement;
    if is_new {
        let place = TreePlace::now(app);
        app.tree.arrangement = arrangement;
        app.tree.callers_first = trees.callers_first;
        show_place(app, &place, TreeDirection::CallersFirst);
        search_again(app);
    }
    let was_inverted = inverted.is_some();
    if let Some(tree) = trees.callees_first {
        show(app, tree, inverted);
    }
    match app.tree.direction() {
        _ if is_new => app.say(arrangement_in_words(app)),
        TreeDirection::CalleesFirst if !was_inverted => {
            app.say("callees first: each frame by its own time, its callers below it; I: back")
        }
        _ => {}
    }
}

/// What is not as it is in the whole tree, with the way back.
fn arrangement_in_words(app: &App) -> String {
    match transforms(app).last() {
        // While a subtree is shown alone, - takes that back first.
        Some(last) if !app.tree.rows.zoom().is_empty() => format!("{last}; Backspace: the whole tree"),
        Some(last) => format!("{last}; -: back, Backspace: the whole tree"),
        None if app.tree.arrangement.kernel == KernelFrames::Shown => "kernel functions shown; H: hide them".to_owned(),
        None if app.arranged_tree().is_some_and(|tree| tree.hides_kernel) => {
            "kernel functions hidden: their time counts in what led into the kernel; H: show them".to_owned()
        }
        None => "the whole tree".to_owned(),
    }
}

/// The transforms in words, in their order.
pub fn transforms(app: &App) -> Vec<String> {
    let Some((model, _)) = app.compared_executions() else { return Vec::new() };
    let word = |transform: &Transform| {
        let name = words::frame_in_words(&model, transform.frame);
        match transform.kind {
            TransformKind::Focus => format!("only {name}"),
            TransformKind::Drop => format!("without {name}"),
            TransformKind::Collapse => format!("{name} collapsed"),
        }
    };
    app.tree.arrangement.transforms.iter().map(word).collect()
}

/// A place in a tree, by names.
#[derive(Default)]
pub struct TreePlace {
    unfolded: Vec<Vec<String>>,
    zoom: Vec<Vec<String>>,
    /// The node under the cursor; `None` where a cause was.
    cursor: Option<Vec<String>>,
}

impl TreePlace {
    /// The place in the tree that is shown.
    fn now(app: &App) -> TreePlace {
        let Some((model, _)) = app.shown_tree() else { return TreePlace::default() };
        let node = app.node().map(|(_, node)| node.context);
        TreePlace {
            unfolded: app.tree.rows.remember(&model),
            zoom: app.tree.rows.remember_zoom(&model),
            cursor: node.map(|context| path_text(&model, context)),
        }
    }
}

/// Make the rows of the tree that is shown, at a place of another one: its node, or the nearest one above it.
fn show_place(app: &mut App, place: &TreePlace, direction: TreeDirection) {
    let Some((model, comparison)) = app.shown_tree() else { return };
    let tree = &comparison.tree;
    let order = app.tree.rows.order();
    let mut rows = TreeRows::new(direction);
    rows.recall(&place.unfolded, &model, tree);
    rows.recall_zoom(&place.zoom, &model, tree);
    rows.set_order(order, &model, tree);
    let found = place.cursor.as_ref().map(|path| {
        let paths = (1..=path.len()).rev().filter_map(|frames| path.get(..frames));
        paths.filter_map(|path| find_path(&model, tree, path)).find_map(|node| rows.row_of(node))
    });
    app.tree.rows = rows;
    app.tree.marked = MarkedNodes::default();
    if let Some(icicle) = &mut app.tree.icicle {
        let above =
            |path: &Vec<String>| (1..=path.len()).rev().find_map(|frames| find_path(&model, tree, &path[..frames]));
        let node = place.cursor.as_ref().and_then(above).and_then(|at| tree.nodes.get(at as usize));
        *icicle = Icicle::new(node.map(|node| node.context));
    }
    if let Some(row) = found {
        app.tree.cursor = Cursor::Row(row.unwrap_or(0));
    }
}

/// Show an inverted tree, at a place of the one before or at its top.
pub fn show(app: &mut App, tree: Arc<ArrangedTree>, place: Option<TreePlace>) {
    leave(app);
    let (rows, cursor, icicle) = (app.tree.rows.clone(), app.tree.cursor, app.tree.icicle.clone());
    app.tree.inverted = Some(ShownInverted { tree, rows, cursor, icicle });
    if place.is_none() {
        app.tree.cursor = Cursor::Row(0);
    }
    show_place(app, &place.unwrap_or_default(), TreeDirection::CalleesFirst);
    search_again(app);
}

/// Show the tree with callers first, where the cursor was; returns the place in the other one.
pub fn leave(app: &mut App) -> Option<TreePlace> {
    app.tree.inverted.as_ref()?;
    let place = TreePlace::now(app);
    let shown = app.tree.inverted.take()?;
    let order = app.tree.rows.order();
    app.tree.rows = shown.rows;
    app.tree.icicle = app.tree.icicle.take().map(|_| shown.icicle.unwrap_or_default());
    app.tree.marked = MarkedNodes::default();
    if let Cursor::Row(_) = app.tree.cursor {
        app.tree.cursor = shown.cursor;
    }
    if let Some((model, comparison)) = app.callers_first() {
        app.tree.rows.set_order(order, &model, &comparison.tree);
    }
    search_again(app);
    Some(place)
}

/// Nodes whose frame has this text in it; again whenever the tree is another one.
pub fn search_tree(app: &mut App, text: &str) {
    let matches = match app.shown_tree() {
        Some((model, comparison)) if !text.is_empty() => app.tree.rows.matches(text, &model, &comparison.tree),
        _ => Vec::new(),
    };
    app.tree.search = TextSearch { text: text.to_owned(), matches };
}

/// The last search in another tree.
pub fn search_again(app: &mut App) {
    let text = app.tree.search.text.clone();
    search_tree(app, &text);
}
