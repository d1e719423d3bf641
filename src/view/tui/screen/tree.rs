//! The tree pane: the ranked causes, and below them the differential flame tree, drawn sideways.
//!
//! A row is a context: the length of its bar is the slow group's mean time there, its colour says by how many standard
//! deviations the groups differ, and sign and figure are beside it. The cost is that of the visible rows.

use crate::base::figure;
use crate::compare::{Cause, DiffNode};
use crate::model::Model;
use crate::model::context::FrameKind;
use crate::view::tui::app::{App, Cursor};
use crate::view::tui::canvas::{Canvas, clip_front, width};
use crate::view::tui::pane::Pane;
use crate::view::tui::theme::{StyleScope, Theme};
use crate::view::tui::tree::children;
use crate::view::words;
use std::borrow::Cow;

/// Draw it.
pub fn draw(canvas: &mut Canvas<'_>, app: &App) {
    let (Some(model), Some(comparison)) = (&app.model, &app.comparison) else {
        canvas.text(2, 1, "comparing …", StyleScope::Progress);
        return;
    };
    let shape = app.frame.tree;
    let here = |cursor: Cursor| app.pane == Pane::Tree && app.tree.cursor == cursor;
    if shape.cause_head > 0 {
        cause_head(canvas, app, shape.causes);
    }
    for (line, at) in (app.tree.cause_offset..comparison.causes.len()).take(shape.causes).enumerate() {
        cause(canvas, shape.cause_head + line, &comparison.causes[at], here(Cursor::Cause(at)));
    }
    let columns = Columns::of(canvas.width());
    let top = shape.cause_head + shape.causes;
    if shape.tree_head > 0 {
        columns.head(canvas, top, app);
    }
    let nodes = &comparison.tree.nodes;
    let whole = children(&comparison.tree, None).filter_map(|at| nodes.get(at as usize)).map(|n| n.slow_mean_ns);
    let widest = whole.fold(0.0, f64::max);
    let visible = app.tree.rows.visible.iter().enumerate().skip(app.tree.offset).take(shape.rows);
    for (line, (row, at)) in visible.enumerate() {
        let Some(node) = nodes.get(*at as usize) else { continue };
        let y = top + shape.tree_head + line;
        columns.row(canvas, y, Drawn { app, model, node, widest, here: here(Cursor::Row(row)) });
    }
}

/// From this width on the last column has its long name.
const WIDE: usize = 100;

/// Names and widths of the columns of the cause list.
const fn cause_columns(width: usize) -> [(&'static str, usize); 5] {
    let affected = if width >= WIDE { ("% of slow", 9) } else { ("% slow", 6) };
    [("", 2), ("extra", 9), ("share", 5), ("dev", 6), affected]
}

/// Explains the short names of columns.
const LEGEND: &str = "dev: standard deviations apart; % of slow: share affected";

fn cause_head(canvas: &mut Canvas<'_>, app: &App, shown: usize) {
    let mut end = 1;
    for (name, columns) in cause_columns(canvas.width()) {
        end += columns + 1;
        canvas.right(end, 0, name, StyleScope::Dim);
    }
    let (first, all) = (app.tree.cause_offset, app.causes().len());
    let text =
        if shown < all { format!("causes {}-{} of {all}", first + 1, first + shown) } else { "causes".to_owned() };
    let at = canvas.text(end + 2, 0, &text, StyleScope::Dim);
    if at + 2 + width(LEGEND) <= canvas.width() {
        canvas.right(canvas.width(), 0, LEGEND, StyleScope::Dim);
    }
}

/// The column of the extra time, shown at any width.
const EXTRA: usize = 1;

fn cause(canvas: &mut Canvas<'_>, y: usize, cause: &Cause, here: bool) {
    let scope = Theme::of_deviations(cause.deviations);
    let figures = [
        (cause.rank.map_or("·".into(), |r| r.to_string()), StyleScope::Dim),
        (figure::extra(cause.extra_ns as f64), scope),
        (figure::share(cause.share), StyleScope::Text),
        (figure::deviations(cause.deviations), scope),
        (figure::share(cause.slow_affected), StyleScope::Dim),
    ];
    let mut end = 1;
    for (at, ((_, columns), (text, scope))) in cause_columns(canvas.width()).into_iter().zip(figures).enumerate() {
        end += columns + 1;
        if end + 12 <= canvas.width() || at == EXTRA {
            canvas.right(end, y, &text, scope);
        } else {
            end -= columns + 1;
        }
    }
    canvas.text(end + 2, y, &cause_text(cause), if here { StyleScope::Strong } else { StyleScope::Text });
    mark(canvas, y, here);
}

/// A cause in a few words: its kind and the culprit; the details page has the sentence.
pub fn cause_text(cause: &Cause) -> String {
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

fn mark(canvas: &mut Canvas<'_>, y: usize, here: bool) {
    if here {
        canvas.shade(0, y, canvas.width(), StyleScope::Cursor);
        canvas.text(0, y, "▌", StyleScope::Selection);
    }
}

/// Widths of the columns that fit; 0 leaves a column out.
struct Columns {
    name: usize,
    bar: usize,
    extra: usize,
    slow: usize,
    fast: usize,
    deviations: usize,
    affected: usize,
}

struct Drawn<'a> {
    app: &'a App,
    model: &'a Model,
    node: &'a DiffNode,
    widest: f64,
    here: bool,
}

impl Columns {
    fn of(width: usize) -> Columns {
        let (bar, extra, slow, fast, deviations, affected) = match width {
            0..=19 => (0, 0, 0, 0, 0, 0),
            20..=33 => (0, 10, 0, 0, 0, 0),
            34..=47 => (0, 10, 0, 0, 7, 0),
            48..=63 => (8, 10, 0, 0, 7, 0),
            64..=75 => (8, 10, 8, 0, 7, 7),
            76..=99 => (10, 10, 8, 8, 7, 7),
            wide => ((wide - 56) / 2 - 10, 10, 9, 9, 7, 10),
        };
        let used = 1 + bar + extra + slow + fast + deviations + affected;
        Columns { name: width.saturating_sub(used + 1), bar, extra, slow, fast, deviations, affected }
    }

    fn ends(&self) -> [(usize, &'static str); 5] {
        let mut end = 1 + self.name + self.bar;
        let columns = [
            (self.extra, "extra"),
            (self.slow, "slow"),
            (self.fast, "fast"),
            (self.deviations, "dev"),
            (self.affected, if self.affected >= 10 { "% of slow" } else { "% slow" }),
        ];
        columns.map(|(columns, name)| {
            end += columns;
            (if columns > 0 { end } else { 0 }, name)
        })
    }

    fn head(&self, canvas: &mut Canvas<'_>, y: usize, app: &App) {
        let figures = self.extra + self.slow + self.fast + self.deviations + self.affected;
        canvas.fill(0, y, canvas.width().saturating_sub(figures), '┄', StyleScope::Rule);
        let search = &app.tree.search;
        let found = if search.text.is_empty() {
            String::new()
        } else {
            format!(", {} match /{}", search.matches.len(), search.text)
        };
        let title = format!(" by {}{found} ", app.tree.rows.order().name());
        canvas.text_in(1, y, (self.name + self.bar).saturating_sub(1), &title, StyleScope::Dim);
        for (end, name) in self.ends().into_iter().filter(|(end, _)| *end > 0) {
            canvas.right(end, y, name, StyleScope::Dim);
        }
    }

    fn row(&self, canvas: &mut Canvas<'_>, y: usize, drawn: Drawn<'_>) {
        let node = drawn.node;
        let scope = Theme::of_deviations(node.deviations);
        let fold = match (node.size > 1, drawn.app.tree.rows.is_unfolded(node)) {
            (false, _) => ' ',
            (true, true) => '▾',
            (true, false) => '▸',
        };
        // Deep rows give up their indent before their name.
        let depth = node.depth as usize;
        let step = if self.name >= 40 { 2 } else { 1 };
        let most = self.name.saturating_sub(18).max(2);
        let indent = (depth * step).min(most);
        canvas.text(1 + indent, y, &fold.to_string(), StyleScope::Dim);
        if depth * step > most {
            canvas.text(indent, y, "…", StyleScope::Dim);
        }
        let room = self.name.saturating_sub(indent + 3);
        let name = words::frame(drawn.model, node.context);
        let matched = drawn.app.tree.search.is_in(&name);
        let kind = drawn.model.contexts.frame(node.context).kind;
        let style = match kind {
            _ if matched => StyleScope::Match,
            FrameKind::Thread(_) => StyleScope::Strong,
            _ if drawn.here => StyleScope::Strong,
            _ => StyleScope::Text,
        };
        // The end of a long name says more than its beginning: namespaces come first.
        let long = width(&name) > room && name.contains("::");
        let name = if long { clip_front(&name, room) } else { Cow::Borrowed(name.as_str()) };
        canvas.text_in(3 + indent, y, room, &name, style);
        if self.bar > 0 && drawn.widest > 0.0 {
            canvas.bar(1 + self.name, y, self.bar - 1, node.slow_mean_ns / drawn.widest, scope);
        }
        let figures = [
            (figure::extra(node.delta_ns), scope),
            (figure::time(node.slow_mean_ns), StyleScope::Text),
            (figure::time(node.fast_mean_ns), StyleScope::Dim),
            (figure::deviations(node.deviations), scope),
            (figure::share(node.slow_affected), StyleScope::Dim),
        ];
        for ((end, _), (text, scope)) in self.ends().into_iter().zip(figures) {
            if end > 0 {
                canvas.right(end, y, &text, scope);
            }
        }
        mark(canvas, y, drawn.here);
    }
}
