//! The difference by function: a list of all functions, calls, waits and threads, and one of them with its callers and
//! callees.

use crate::base::figure;
use crate::compare::functions::{FunctionDiff, Sandwich, by_function, sandwich};
use crate::tui::actions::Action;
use crate::tui::app::{App, LayerResponse};
use crate::tui::layers::menu::{Choice, Menu, MenuItem};
use crate::tui::layers::page::{PageContent, PageLayer};
use crate::tui::theme::StyleScope;
use crate::tui::widget::page::{StyledLine, paragraph, plain};
use crate::view::function_text::{HEAD, lists, sentence};
use crate::view::words;

/// A function, by its name.
#[derive(Clone, Debug)]
pub struct FunctionName(String);

impl Choice for FunctionName {
    fn chosen(self) -> LayerResponse {
        LayerResponse::change(move |app| show(app, &self.0))
    }
}

/// Show the list, the largest difference first; typing narrows it.
pub fn open(app: &mut App) {
    let Some((model, comparison)) = app.compared_executions() else { return app.say("nothing to show yet") };
    let item = |function: FunctionDiff| MenuItem {
        help: format!(
            "{:>9} in all {:>9} by itself  {}",
            figure::extra(function.delta_ns),
            figure::extra(function.self_delta_ns),
            figure::plural(function.places.into(), "place")
        ),
        choice: FunctionName(function.name.clone()),
        name: words::frame_of_path(&function.name).to_owned(),
    };
    let choices = by_function(&model, &comparison.tree).into_iter().map(item).collect();
    app.open(Menu::new("Difference by function (Enter: callers and callees)", choices));
}

/// Show a function with its callers and callees; the list stays below it.
fn show(app: &mut App, name: &str) {
    let Some((model, comparison)) = app.compared_executions() else { return };
    match sandwich(&model, &comparison.tree, name) {
        Some(found) => app.open(PageLayer::new(FunctionPage(found))),
        None => app.say("this function is not in the tree"),
    }
}

/// A function between its callers and its callees: what it costs everywhere.
#[derive(Debug)]
struct FunctionPage(Sandwich);

impl PageContent for FunctionPage {
    fn title(&self) -> &'static str {
        "Function: callers and callees"
    }

    fn action(&self) -> Action {
        Action::ShowFunctions
    }

    fn lines(&self, _: &App, columns: usize, _: usize) -> Vec<StyledLine> {
        lines(&self.0, columns)
    }
}

fn lines(sandwich: &Sandwich, columns: usize) -> Vec<StyledLine> {
    let mut lines = vec![plain(StyleScope::Strong, words::frame_of_path(&sandwich.function.name).to_owned())];
    lines.extend(paragraph(StyleScope::Text, &sentence(sandwich), columns, 0));
    for (title, rows) in lists(sandwich, columns) {
        lines.push(StyledLine::new());
        lines.push(plain(StyleScope::Strong, title));
        if rows.is_empty() {
            lines.push(plain(StyleScope::Dim, "none"));
            continue;
        }
        lines.push(plain(StyleScope::Dim, HEAD));
        for row in rows {
            lines.push(match row.small.is_empty() {
                true => vec![(StyleScope::Dim, row.figures), (StyleScope::Text, row.name)],
                false => plain(StyleScope::Dim, row.figures + &row.small),
            });
        }
    }
    lines
}
