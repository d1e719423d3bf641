//! The difference by function: a list of all functions, calls, waits and threads, and one of them with its callers and
//! callees.

use crate::base::figure;
use crate::compare::functions::{FunctionDiff, by_function, sandwich};
use crate::view::tui::app::App;
use crate::view::tui::menu::{MenuCommand, MenuItem};
use crate::view::tui::overlay::{Overlay, OverlayPage};
use crate::view::words;

/// Show the list, the largest difference first; typing narrows it.
pub(super) fn open(app: &mut App) {
    let Some((model, comparison)) = app.compared_executions() else { return app.say("nothing to show yet") };
    let item = |function: FunctionDiff| MenuItem {
        help: format!(
            "{:>9} in all {:>9} by itself  {}",
            figure::extra(function.delta_ns),
            figure::extra(function.self_delta_ns),
            figure::plural(function.places.into(), "place")
        ),
        command: MenuCommand::Function(function.name.clone()),
        name: words::frame_of_path(&function.name).to_owned(),
    };
    let choices = by_function(&model, &comparison.tree).into_iter().map(item).collect();
    app.open(Overlay::list("Difference by function (Enter: callers and callees)", choices));
}

/// Show a function with its callers and callees; the list stays below it.
pub(super) fn show(app: &mut App, name: &str) {
    let Some((model, comparison)) = app.compared_executions() else { return };
    match sandwich(&model, &comparison.tree, name) {
        Some(found) => app.open(Overlay::page(OverlayPage::Function(Box::new(found)))),
        None => app.say("this function is not in the tree"),
    }
}
