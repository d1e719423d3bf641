//! The stack chart below the lanes: the calls of an execution over time, the callers above.
//!
//! In: the call tree of the execution, and the columns of its lanes. A call begins with a bar and its name; one that
//! began before the window has no bar. Waits have the colours of their states, what has no stack is dotted, columns of
//! several short calls have a dot. Cost: the cells of the screen.

use super::lines::TimelineLines;
use super::state::LoadedTimelines;
use crate::base::column_grid::ColumnGrid;
use crate::model::context::{ContextId, FrameKind};
use crate::tui::canvas::Canvas;
use crate::tui::theme::StyleScope;
use crate::tui::widget::lanes::scope;
use crate::view::stack_chart::{self, StackCell};

/// Draw the chart of an execution, which has this name, over the whole canvas.
pub fn draw(canvas: &mut Canvas<'_>, loaded: &LoadedTimelines, at: usize, name: &str, lines: &TimelineLines) {
    let tree = loaded.tree(at);
    let window = loaded.window_of(at);
    let grid = ColumnGrid::new(&window, lines.columns);
    let top = if at == loaded.front { loaded.chart_top } else { 0 };
    let (height, all) = (canvas.height(), tree.lines().len());
    let below = all.saturating_sub(top + height);
    let left = lines.label_columns + 2;
    let marked = loaded.call_marked(at);
    for (y, line) in (top..all).take(height).enumerate() {
        let label = match y {
            0 if top > 0 => format!("▲ {name}"),
            0 => name.to_owned(),
            _ if y + 1 == height && below > 0 => format!("▼ {below} below"),
            _ => String::new(),
        };
        canvas.text_in(1, y, lines.label_columns, &label, StyleScope::Dim);
        let mut x = left;
        for run in stack_chart::cells(tree, line, &grid).chunk_by(|a, b| a == b) {
            match run.first() {
                Some(StackCell::Call(call)) => {
                    let begins = tree.call(*call).is_some_and(|call| call.start_ns >= window.start);
                    draw_call(canvas, loaded, at, *call, (x, y, run.len()), begins);
                    if marked == Some(*call) {
                        let shade = if at == loaded.front { StyleScope::Match } else { StyleScope::Selection };
                        canvas.shade(x, y, run.len(), shade);
                    }
                }
                Some(StackCell::Short) => canvas.fill(x, y, run.len(), '·', StyleScope::Dim),
                Some(StackCell::Empty) | None => {}
            }
            x += run.len();
        }
    }
}

/// The styles of a call's name and of the line after it.
fn styles(loaded: &LoadedTimelines, context: ContextId) -> (StyleScope, StyleScope, char) {
    match loaded.model.contexts.frame(context).kind {
        FrameKind::Wait(kind) => (scope(kind), scope(kind), '─'),
        FrameKind::NoStack => (StyleScope::Dim, StyleScope::Dim, '┄'),
        FrameKind::KernelFunction => (StyleScope::Dim, StyleScope::Rule, '─'),
        FrameKind::Process | FrameKind::Thread(_) => (StyleScope::Strong, StyleScope::Rule, '─'),
        FrameKind::Function | FrameKind::Inlined | FrameKind::File | FrameKind::Call => {
            (StyleScope::Text, StyleScope::Rule, '─')
        }
    }
}

fn draw_call(
    canvas: &mut Canvas<'_>,
    loaded: &LoadedTimelines,
    at: usize,
    call: u32,
    (x, y, columns): (usize, usize, usize),
    begins: bool,
) {
    let tree = loaded.tree(at);
    let Some(context) = tree.call(call).map(|call| call.context) else { return };
    let (name_style, line_style, line) = styles(loaded, context);
    canvas.fill(x, y, columns, line, line_style);
    if begins {
        canvas.text_in(x, y, 1, "│", StyleScope::Rule);
    }
    let name = stack_chart::label(&loaded.model, tree, call);
    let style = if loaded.search.is_in(&name) { StyleScope::Match } else { name_style };
    if columns > 2 {
        canvas.text_in(x + 1, y, columns - 1, &name, style);
    }
}
