//! The one place where the state changes: a message goes in, effects come out, nothing else happens.
//!
//! In: keys, pasted text, sizes, results of jobs. Out: [`Effect`]s for the loop. Pure: the same state and message give
//! the same state and effects, so that tests play keystrokes without a terminal. After each message the cursors are
//! inside what there is and their lines inside what is shown.

use super::actions::{self, Action};
use super::app::{App, Busy, Cursor, Pane, Search, Status, Trail};
use super::copied;
use super::details;
use super::groups::{Selection, Side};
use super::jobs::{Done, Job, Outcome};
use super::key::Key;
use super::layout::{Grid, TreeLines, grid, histogram_shape, layout, tree_lines};
use super::overlay::{Answer, Asked, Choice, Does, Overlay, Page, Scroll};
use super::screen;
use super::theme::Theme;
use super::tree::{find_context, path_text};
use crate::compare::{Comparison, Request};
use crate::model::Model;
use std::path::PathBuf;
use std::sync::Arc;

/// What comes in.
#[derive(Debug)]
pub enum Message {
    /// A key.
    Key(Key),
    /// Pasted text.
    Paste(String),
    /// The screen has this size now.
    Resize(u16, u16),
    /// The wheel, by lines; negative is up.
    Wheel(isize),
    /// A click on a cell.
    Click(u16, u16),
    /// A job has a result.
    Done(Done),
    /// The running job is so far.
    Progress(Busy),
    /// The picture is saved, or not.
    Saved(PathBuf, Outcome),
}

/// What the loop is to do.
#[derive(Debug)]
pub enum Effect {
    /// Run a job.
    Start(Job),
    /// Send a text to the terminal's clipboard.
    Copy(String),
    /// Draw the screen into a file.
    SavePicture {
        /// Where.
        path: PathBuf,
        /// Replace a file that exists.
        overwrite: bool,
    },
    /// Draw everything anew.
    Redraw,
    /// Stop until `fg`.
    Suspend,
    /// End.
    Quit,
}

/// Terminals drop longer texts.
const COPY_LIMIT: usize = 74_000;
/// Answer of all that belongs to pattern analysis.
const LATER: &str = "needs pattern analysis: not in this version";

/// What the program does first.
pub fn start(app: &mut App, task: Option<String>) -> Vec<Effect> {
    begin(app, Job::Analyse { task })
}

/// Take a message.
pub fn update(app: &mut App, message: Message) -> Vec<Effect> {
    let effects = match message {
        Message::Key(key) => {
            app.status = None;
            on_key(app, key)
        }
        Message::Paste(text) => match app.overlays.last_mut().map(|o| o.paste(&text)) {
            Some(answer) => on_answer(app, answer),
            None => Vec::new(),
        },
        Message::Resize(columns, lines) => {
            app.size = (columns, lines);
            Vec::new()
        }
        Message::Wheel(lines) => {
            let action = if lines < 0 { Action::Up } else { Action::Down };
            (0..lines.unsigned_abs()).flat_map(|_| route(app, action)).collect()
        }
        Message::Click(x, y) => {
            click(app, x, y);
            Vec::new()
        }
        Message::Done(done) => on_done(app, done),
        Message::Progress(busy) => {
            if let Some(now) = &mut app.busy {
                *now = Busy { what: now.what, ..busy };
            }
            Vec::new()
        }
        Message::Saved(path, outcome) => {
            on_outcome(app, Asked::Picture, path, outcome);
            Vec::new()
        }
    };
    settle(app);
    effects
}

fn on_key(app: &mut App, key: Key) -> Vec<Effect> {
    if let Some(top) = app.overlays.last_mut() {
        let answer = top.key(key);
        return on_answer(app, answer);
    }
    match actions::bound(key, app.pane.place()) {
        Some(action) => act(app, action),
        None => {
            say(app, &format!("{key} does nothing here: ? shows the keys"));
            Vec::new()
        }
    }
}

/// An action that does not come from a key: to the page on top, if there is one.
fn route(app: &mut App, action: Action) -> Vec<Effect> {
    match (app.overlays.last(), action) {
        (Some(_), Action::Up) => on_answer(app, Answer::Scroll(Scroll::Lines(-1))),
        (Some(_), Action::Down) => on_answer(app, Answer::Scroll(Scroll::Lines(1))),
        (Some(_), _) => Vec::new(),
        (None, action) => act(app, action),
    }
}

fn on_answer(app: &mut App, answer: Answer) -> Vec<Effect> {
    match answer {
        Answer::Taken => Vec::new(),
        Answer::Close => {
            app.overlays.pop();
            Vec::new()
        }
        Answer::Scroll(scroll) => {
            scroll_page(app, scroll);
            Vec::new()
        }
        Answer::Do(does) => {
            app.overlays.pop();
            match does {
                Does::Act(action) => act(app, action),
                Does::Task(task) => begin(app, Job::Analyse { task: Some(task) }),
                Does::Theme(at) => {
                    take_theme(app, at);
                    Vec::new()
                }
            }
        }
        Answer::Typed(Asked::Search) => {
            // The search runs while it is typed: what is found shows at once.
            if let Some(Overlay::Prompt { input, .. }) = app.overlays.last() {
                let text = input.text().to_owned();
                search(app, &text);
            }
            Vec::new()
        }
        Answer::Typed(_) => Vec::new(),
        Answer::Text(asked, text) => {
            app.overlays.pop();
            match asked {
                Asked::Search => {
                    search(app, &text);
                    if !text.is_empty() {
                        step_match(app, true, true);
                    }
                    Vec::new()
                }
                asked => write_file(app, asked, PathBuf::from(text), false),
            }
        }
        Answer::Replace(asked, path) => {
            app.overlays.pop();
            write_file(app, asked, path, true)
        }
        Answer::Act(action) => act(app, action),
    }
}

fn say(app: &mut App, text: &str) {
    app.status = Some(Status { text: text.to_owned(), failed: false });
}

fn complain(app: &mut App, text: &str) {
    app.status = Some(Status { text: text.to_owned(), failed: true });
}

fn begin(app: &mut App, job: Job) -> Vec<Effect> {
    app.busy = Some(Busy { what: job.name(), ..Busy::default() });
    app.failure = None;
    vec![Effect::Start(job)]
}

fn act(app: &mut App, action: Action) -> Vec<Effect> {
    use Action as A;
    let in_tree = app.pane == Pane::Tree;
    match action {
        A::Up => vertical(app, -1),
        A::Down => vertical(app, 1),
        A::PageUp => vertical(app, -page(app)),
        A::PageDown => vertical(app, page(app)),
        A::Home if in_tree => vertical(app, isize::MIN / 2),
        A::End if in_tree => vertical(app, isize::MAX / 2),
        A::Home => move_bin(app, isize::MIN / 2),
        A::End => move_bin(app, isize::MAX / 2),
        A::Left if in_tree => fold(app),
        A::Right if in_tree => unfold(app),
        A::Left => move_bin(app, -1),
        A::Right => move_bin(app, 1),
        A::NextPane | A::PreviousPane => {
            let at = Pane::ALL.iter().position(|p| *p == app.pane).unwrap_or(0);
            let step = if action == A::NextPane { 1 } else { Pane::ALL.len() - 1 };
            app.pane = Pane::ALL[(at + step) % Pane::ALL.len()];
        }
        A::Pane(number) => match Pane::ALL.get(usize::from(number).wrapping_sub(1)) {
            Some(pane) => app.pane = *pane,
            None => say(app, &format!("{} {LATER}", if number == 3 { "anomalies:" } else { "propagation:" })),
        },
        A::QuotientDown | A::QuotientUp => say(app, &format!("q: {LATER}")),
        A::ThresholdDown | A::ThresholdUp => say(app, &format!("s: {LATER}")),
        A::Zoom => app.zoom = !app.zoom,
        A::GrowLeft => return select(app, |s, by| s.head = s.head.saturating_sub(by)),
        A::GrowRight => return select(app, |s, by| s.head += by),
        A::MoveLeft => return move_selection(app, false),
        A::MoveRight => return move_selection(app, true),
        A::Widen => return select(app, |s, by| widen(s, by, true)),
        A::Narrow => return select(app, |s, by| widen(s, by, false)),
        A::MakeSlow => return make_filter(app, Side::Slow),
        A::MakeFast => return make_filter(app, Side::Fast),
        A::Clear => return clear(app),
        A::Swap => {
            let mut now = effective(app);
            std::mem::swap(&mut now.slow, &mut now.fast);
            return regroup(app, now, "groups swapped");
        }
        A::Propose => return regroup(app, Request::default(), "groups proposed again"),
        A::Undo | A::Redo => {
            if !can_regroup(app) {
                return Vec::new();
            }
            let (moved, none) = match action {
                A::Undo => (app.groups.undo(), "nothing to undo"),
                _ => (app.groups.redo(), "nothing to redo"),
            };
            if moved {
                app.histograms.dragging = false;
                app.histograms.selection = None;
                return compare(app);
            }
            say(app, none);
        }
        A::Open => open(app),
        A::Back => back(app),
        A::Search => app.overlays.push(Overlay::Prompt { asked: Asked::Search, input: Default::default() }),
        A::NextMatch => step_match(app, true, false),
        A::PreviousMatch => step_match(app, false, false),
        A::Order => reorder(app),
        A::Trust => app.overlays.push(Overlay::page(Page::Trust)),
        A::Help => app.overlays.push(Overlay::page(Page::Help)),
        A::Details => open_details(app),
        A::Palette => app.overlays.push(palette(app)),
        A::ChooseTask => match tasks(app) {
            Some(list) => app.overlays.push(list),
            None => say(app, "the tasks are not known yet"),
        },
        A::Theme => {
            let at = app.themes.iter().position(|t| t.name == app.theme.name).unwrap_or(0);
            take_theme(app, (at + 1) % app.themes.len().max(1));
        }
        A::Export => ask_file(app, Asked::Export),
        A::SaveScreen => ask_file(app, Asked::Picture),
        A::Copy => {
            let text = copied::text(app);
            if text.is_empty() {
                say(app, "there is nothing to copy here");
            } else if text.len() > COPY_LIMIT {
                complain(app, "too long for the terminal's clipboard: e writes a file");
            } else {
                say(app, "sent to the terminal's clipboard (OSC 52; some terminals must allow it)");
                return vec![Effect::Copy(text)];
            }
        }
        A::Close => {
            app.histograms.selection = None;
            app.tree.search = Search::default();
        }
        A::Redraw => return vec![Effect::Redraw],
        A::Suspend => return vec![Effect::Suspend],
        A::Quit => return vec![Effect::Quit],
    }
    Vec::new()
}

// Moving.

fn tree_shape(app: &App) -> TreeLines {
    tree_lines(layout(app).inside(Pane::Tree).height, app.causes().len())
}

fn page(app: &App) -> isize {
    match app.pane {
        Pane::Tree => tree_shape(app).rows.max(2) as isize - 1,
        Pane::Histograms => histogram_shape(app).shown as isize,
    }
}

fn vertical(app: &mut App, by: isize) {
    match app.pane {
        Pane::Histograms => {
            app.histograms.row = app.histograms.row.saturating_add_signed(by);
            app.histograms.dragging = false;
        }
        Pane::Tree => {
            app.tree.touched = true;
            // Causes and rows are one list for the cursor.
            let causes = app.causes().len();
            let last = (causes + app.tree.rows.visible.len()).saturating_sub(1);
            let at = match app.tree.cursor {
                Cursor::Cause(i) => i,
                Cursor::Row(i) => causes + i,
            };
            let at = at.saturating_add_signed(by).min(last);
            app.tree.cursor = if at < causes { Cursor::Cause(at) } else { Cursor::Row(at - causes) };
        }
    }
}

/// The grid of the metric under the cursor.
fn bin_grid(app: &App) -> Option<Grid> {
    let cells = histogram_shape(app);
    Some(grid(app.histogram_row()?.bins.len(), cells.columns))
}

fn move_bin(app: &mut App, by: isize) {
    let Some(grid) = bin_grid(app) else { return };
    let column = (app.histograms.bin / grid.step).saturating_add_signed(by).min(grid.count.saturating_sub(1));
    app.histograms.bin = column * grid.step;
    app.histograms.dragging = false;
}

/// Cursors inside what there is, their lines inside what is shown.
fn settle(app: &mut App) {
    let shape = tree_shape(app);
    let (causes, rows) = (app.causes().len(), app.tree.rows.visible.len());
    app.tree.cursor = match app.tree.cursor {
        Cursor::Cause(i) if causes > 0 => Cursor::Cause(i.min(causes - 1)),
        Cursor::Cause(_) => Cursor::Row(0),
        Cursor::Row(_) if rows == 0 && causes > 0 => Cursor::Cause(0),
        Cursor::Row(i) => Cursor::Row(i.min(rows.saturating_sub(1))),
    };
    match app.tree.cursor {
        Cursor::Cause(i) => app.tree.cause_offset = shown_from(app.tree.cause_offset, i, shape.causes, causes),
        Cursor::Row(i) => app.tree.offset = shown_from(app.tree.offset, i, shape.rows, rows),
    }
    app.tree.offset = app.tree.offset.min(rows.saturating_sub(shape.rows.max(1)));
    let metrics = app.counts.as_ref().map_or(0, |c| c.rows.len());
    app.histograms.row = app.histograms.row.min(metrics.saturating_sub(1));
    let cells = histogram_shape(app);
    app.histograms.offset = shown_from(app.histograms.offset, app.histograms.row, cells.shown, metrics);
    if let Some(grid) = bin_grid(app) {
        let column = (app.histograms.bin / grid.step).min(grid.count.saturating_sub(1));
        app.histograms.bin = column * grid.step;
    }
}

/// The first line shown, so that line `at` of `count` is among the `shown`.
fn shown_from(offset: usize, at: usize, shown: usize, count: usize) -> usize {
    let shown = shown.max(1);
    let offset = offset.min(at).max((at + 1).saturating_sub(shown));
    offset.min(count.saturating_sub(shown))
}

fn scroll_page(app: &mut App, scroll: Scroll) {
    let Some((lines, shown)) = screen::page_size(app) else { return };
    let last = lines.saturating_sub(shown);
    if let Some(Overlay::Page { offset, .. }) = app.overlays.last_mut() {
        *offset = match scroll {
            Scroll::Lines(n) => offset.saturating_add_signed(n),
            Scroll::Pages(n) => offset.saturating_add_signed(n * shown.saturating_sub(1).max(1) as isize),
            Scroll::Home => 0,
            Scroll::End => last,
        }
        .min(last);
    }
}

fn click(app: &mut App, x: u16, y: u16) {
    if !app.overlays.is_empty() {
        return;
    }
    let layout = layout(app);
    let Some((pane, _)) = layout.panes.iter().find(|(_, area)| area.contains((x, y).into())) else { return };
    app.pane = *pane;
    let inside = layout.inside(*pane);
    let Some(line) = y.checked_sub(inside.y).map(usize::from) else { return };
    match pane {
        Pane::Tree => {
            app.tree.touched = true;
            let shape = tree_shape(app);
            let rows_from = shape.cause_head + shape.causes + shape.tree_head;
            if line >= rows_from {
                app.tree.cursor = Cursor::Row(app.tree.offset + line - rows_from);
            } else if let Some(i) = line.checked_sub(shape.cause_head).filter(|i| *i < shape.causes) {
                app.tree.cursor = Cursor::Cause(app.tree.cause_offset + i);
            }
        }
        Pane::Histograms => {
            let cells = histogram_shape(app);
            app.histograms.row = app.histograms.offset + line.saturating_sub(cells.head) / cells.block;
        }
    }
}

// The tree.

fn both(app: &App) -> Option<(Arc<Model>, Arc<Comparison>)> {
    Some((app.model.clone()?, app.comparison.clone()?))
}

fn fold(app: &mut App) {
    let (Some((_, comparison)), Cursor::Row(row)) = (both(app), app.tree.cursor) else { return };
    app.tree.touched = true;
    let unfolded = app.node().is_some_and(|(_, n)| n.size > 1 && app.tree.rows.is_unfolded(n));
    if unfolded {
        app.tree.rows.fold(row, &comparison.tree);
    } else if let Some(parent) = app.tree.rows.parent_row(row, &comparison.tree) {
        app.tree.cursor = Cursor::Row(parent);
    }
}

fn unfold(app: &mut App) {
    let Some((model, comparison)) = both(app) else { return };
    app.tree.touched = true;
    match app.tree.cursor {
        // What is unfolded already is entered.
        Cursor::Row(_) if app.node().is_some_and(|(_, n)| n.size > 1 && app.tree.rows.is_unfolded(n)) => {
            vertical(app, 1);
        }
        Cursor::Row(row) => app.tree.rows.unfold(row, &model, &comparison.tree),
        Cursor::Cause(_) => open(app),
    }
}

fn open(app: &mut App) {
    let Some((model, comparison)) = both(app) else { return };
    app.tree.touched = true;
    match app.tree.cursor {
        Cursor::Row(row) => {
            if app.node().is_some_and(|(_, n)| app.tree.rows.is_unfolded(n)) {
                app.tree.rows.fold(row, &comparison.tree);
            } else {
                app.tree.rows.unfold(row, &model, &comparison.tree);
            }
        }
        Cursor::Cause(i) => {
            let Some(cause) = comparison.causes.get(i) else { return };
            match details::cause_node(&model, &comparison, cause) {
                Some(node) => {
                    app.trail.push(Trail::Cause(i));
                    go_to(app, node, &model, &comparison);
                }
                None => say(app, "this is the sum of many small parts: it has no place of its own in the tree"),
            }
        }
    }
}

fn go_to(app: &mut App, node: u32, model: &Model, comparison: &Comparison) {
    let row = app.tree.rows.reveal(node, model, &comparison.tree);
    app.tree.cursor = Cursor::Row(row);
    app.pane = Pane::Tree;
}

fn back(app: &mut App) {
    match (app.trail.pop(), both(app)) {
        (Some(Trail::Cause(i)), _) => app.tree.cursor = Cursor::Cause(i),
        (Some(Trail::Context(context)), Some((model, comparison))) => {
            if let Some(node) = find_context(&model, &comparison.tree, context) {
                go_to(app, node, &model, &comparison);
            }
        }
        _ => say(app, "the trail is empty"),
    }
}

fn reorder(app: &mut App) {
    let Some((model, comparison)) = both(app) else { return };
    let here = app.node().map(|(at, _)| at);
    let order = app.tree.rows.order().next();
    app.tree.rows.set_order(order, &model, &comparison.tree);
    if let Some(row) = here.and_then(|at| app.tree.rows.row_of(at)) {
        app.tree.cursor = Cursor::Row(row);
    }
    let text = app.tree.search.text.clone();
    search(app, &text);
    say(app, &format!("ordered by {}", order.name()));
}

fn search(app: &mut App, text: &str) {
    let matches = match both(app) {
        Some((model, comparison)) if !text.is_empty() => app.tree.rows.matches(text, &model, &comparison.tree),
        _ => Vec::new(),
    };
    app.tree.search = Search { text: text.to_owned(), matches };
}

fn step_match(app: &mut App, forward: bool, stay: bool) {
    let Some((model, comparison)) = both(app) else { return };
    let matches = &app.tree.search.matches;
    if app.tree.search.text.is_empty() {
        return say(app, "nothing was searched yet: / searches");
    }
    if matches.is_empty() {
        let text = format!("no function, call, wait or thread has {:?} in its name", app.tree.search.text);
        return complain(app, &text);
    }
    let rows = &app.tree.rows;
    let before = |limit: bool| {
        app.node().map_or(0, |(here, _)| {
            matches.partition_point(|m| {
                let order = rows.compare(*m, here, &model, &comparison.tree);
                order.is_lt() || (limit && order.is_eq())
            })
        })
    };
    let count = matches.len();
    let at = match (forward, stay) {
        (true, true) => before(false) % count,
        (true, false) => before(true) % count,
        (false, _) => (before(false) + count - 1) % count,
    };
    let node = matches[at];
    if let Some((_, here)) = app.node() {
        let context = here.context;
        app.trail.push(Trail::Context(context));
    }
    app.tree.touched = true;
    go_to(app, node, &model, &comparison);
    say(app, &format!("match {} of {count}", at + 1));
}

// Groups.

/// The filters in force, those proposed included.
fn effective(app: &App) -> Request {
    match (&app.comparison, app.groups.now()) {
        (Some(c), now) if *now == Request::default() => {
            Request { slow: c.slow.filters.clone(), fast: c.fast.filters.clone() }
        }
        (_, now) => now.clone(),
    }
}

/// Groups cannot change while another model is on its way.
fn can_regroup(app: &mut App) -> bool {
    let analysing = app.busy.as_ref().is_some_and(|b| b.what == "analysing");
    if analysing || app.model.is_none() {
        say(app, "wait until the analysis is done");
        return false;
    }
    true
}

fn regroup(app: &mut App, request: Request, said: &str) -> Vec<Effect> {
    if !can_regroup(app) {
        return Vec::new();
    }
    app.histograms.dragging = false;
    app.groups.push(request);
    say(app, said);
    compare(app)
}

fn compare(app: &mut App) -> Vec<Effect> {
    let Some(model) = app.model.clone() else { return Vec::new() };
    let request = app.groups.now().clone();
    begin(app, Job::Compare { model, request })
}

/// Change the selection on the metric under the cursor, or begin one at the cursor.
fn select(app: &mut App, change: impl FnOnce(&mut Selection, usize)) -> Vec<Effect> {
    let (Some(grid), Some(row)) = (bin_grid(app), app.histogram_row()) else { return Vec::new() };
    let metric = row.metric.clone();
    let last = grid.count.saturating_sub(1) * grid.step;
    let aligned = |bin: usize| (bin / grid.step * grid.step).min(last);
    match app.histograms.selection.as_mut().filter(|s| s.metric == metric) {
        Some(selection) => {
            change(selection, grid.step);
            selection.anchor = aligned(selection.anchor);
            selection.head = aligned(selection.head);
            app.histograms.bin = selection.head;
        }
        None => {
            let bin = aligned(app.histograms.bin);
            app.histograms.selection = Some(Selection { metric, anchor: bin, head: bin, attached: None });
            app.histograms.dragging = false;
        }
    }
    drag(app, grid)
}

fn widen(selection: &mut Selection, by: usize, outwards: bool) {
    let (low, high) = (selection.anchor.min(selection.head), selection.anchor.max(selection.head));
    let (low, high) = if outwards {
        (low.saturating_sub(by), high + by)
    } else if low + by < high {
        (low + by, high - by)
    } else {
        (low, low)
    };
    selection.anchor = low;
    selection.head = high;
}

fn move_selection(app: &mut App, right: bool) -> Vec<Effect> {
    let Some(grid) = bin_grid(app) else { return Vec::new() };
    let last = grid.count.saturating_sub(1) * grid.step;
    let slide = move |s: &mut Selection, by: usize| {
        let (low, high) = (s.anchor.min(s.head), s.anchor.max(s.head));
        // At a border the whole selection stops: it keeps its width.
        if right && high + by <= last {
            s.anchor += by;
            s.head += by;
        } else if !right && low >= by {
            s.anchor -= by;
            s.head -= by;
        }
    };
    select(app, slide)
}

/// A selection that is a group's filter takes the filter with it.
fn drag(app: &mut App, grid: Grid) -> Vec<Effect> {
    let Some(selection) = app.histograms.selection.clone() else { return Vec::new() };
    let Some(side) = selection.attached else { return Vec::new() };
    if !can_regroup(app) {
        return Vec::new();
    }
    let Some(filter) = app.histogram_row().and_then(|row| selection.filter(row, grid.step)) else {
        return Vec::new();
    };
    let mut request = effective(app);
    let filters = side.of(&mut request);
    filters.retain(|f| f.metric != filter.metric);
    filters.push(filter);
    if app.histograms.dragging {
        app.groups.amend(request);
    } else {
        app.groups.push(request);
        app.histograms.dragging = true;
    }
    compare(app)
}

fn make_filter(app: &mut App, side: Side) -> Vec<Effect> {
    if !can_regroup(app) {
        return Vec::new();
    }
    let (Some(grid), Some(row)) = (bin_grid(app), app.histogram_row()) else { return Vec::new() };
    let selected = app.histograms.selection.clone().filter(|s| s.metric == row.metric);
    let bin = app.histograms.bin;
    let mut selection =
        selected.unwrap_or(Selection { metric: row.metric.clone(), anchor: bin, head: bin, attached: None });
    let Some(filter) = selection.filter(row, grid.step) else {
        complain(app, "the selection covers everything, or several names: narrow it with < and >");
        return Vec::new();
    };
    let said = format!("{} group: {filter}", side.name());
    selection.attached = Some(side);
    let mut request = effective(app);
    let filters = side.of(&mut request);
    filters.retain(|f| f.metric != filter.metric);
    filters.push(filter);
    let effects = regroup(app, request, &said);
    app.histograms.selection = Some(selection);
    app.histograms.dragging = true;
    effects
}

fn clear(app: &mut App) -> Vec<Effect> {
    let Some(metric) = app.histogram_row().map(|r| r.metric.clone()) else { return Vec::new() };
    let selection = app.histograms.selection.take_if(|s| s.metric == metric);
    if selection.is_some_and(|s| s.attached.is_none()) {
        return Vec::new();
    }
    let mut request = effective(app);
    let before = request.clone();
    for side in [Side::Slow, Side::Fast] {
        side.of(&mut request).retain(|f| f.metric != metric);
    }
    if request == before {
        say(app, "there is no selection and no filter on this metric");
        return Vec::new();
    }
    let none_left = request == Request::default();
    let said =
        format!("no filter on {} any more{}", metric.name(), if none_left { ": groups proposed again" } else { "" });
    regroup(app, request, &said)
}

// Overlays.

fn open_details(app: &mut App) {
    let Some((model, comparison)) = both(app) else { return say(app, "there is nothing to show yet") };
    let details = match (app.pane, app.tree.cursor) {
        (Pane::Tree, Cursor::Cause(i)) => comparison.causes.get(i).map(|c| details::of_cause(&model, &comparison, c)),
        (Pane::Tree, Cursor::Row(_)) => app.node().map(|(at, _)| details::of_context(&model, &comparison, at)),
        (Pane::Histograms, _) => bin_grid(app).zip(app.histogram_row()).map(|(grid, row)| {
            let selected = app.histograms.selection.as_ref().filter(|s| s.metric == row.metric);
            let bin = app.histograms.bin;
            let bins = selected.map_or(bin..bin + grid.step, |s| s.bins(grid.step));
            details::of_range(&model, &comparison, row, bins.start..bins.end.min(row.bins.len()))
        }),
    };
    match details {
        Some(details) => app.overlays.push(Overlay::page(Page::Details(Box::new(details)))),
        None => say(app, "there is nothing to show here"),
    }
}

fn palette(app: &App) -> Overlay {
    let mut choices: Vec<Choice> = actions::TABLE
        .iter()
        .map(|e| Choice { name: e.name.into(), help: format!("{}  {}", e.help, e.keys), does: Does::Act(e.action) })
        .collect();
    let themes = app.themes.iter().enumerate();
    choices.extend(themes.map(|(i, t)| Choice {
        name: format!("theme {}", t.name),
        help: "take this theme".into(),
        does: Does::Theme(i),
    }));
    choices.extend(task_choices(app, "task "));
    Overlay::list("Any action", choices)
}

fn task_choices(app: &App, prefix: &str) -> Vec<Choice> {
    let Some(model) = &app.model else { return Vec::new() };
    let choice = |(i, task): (usize, &String)| Choice {
        name: format!("{prefix}{task}"),
        help: if i == model.task { "the task shown now".into() } else { String::new() },
        does: Does::Task(task.clone()),
    };
    model.tasks.iter().enumerate().map(choice).collect()
}

fn tasks(app: &App) -> Option<Overlay> {
    let choices = task_choices(app, "");
    (!choices.is_empty()).then(|| Overlay::list("Task", choices))
}

fn take_theme(app: &mut App, at: usize) {
    let Some(source) = app.themes.get(at) else { return };
    match Theme::compile(source, app.looks.depth) {
        Ok(theme) => {
            say(app, &format!("theme {theme}"));
            app.theme = theme;
        }
        Err(error) => complain(app, &error.to_string()),
    }
}

// Files.

fn ask_file(app: &mut App, asked: Asked) {
    if asked == Asked::Export && (app.comparison.is_none() || app.busy.is_some()) {
        return say(app, "wait until the comparison is done");
    }
    let task: String =
        app.task().unwrap_or("screen").chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    let ending = if asked == Asked::Export { "json" } else { "svg" };
    let input = super::input::Input::new(format!("whyslow-{task}.{ending}"));
    app.overlays.push(Overlay::Prompt { asked, input });
}

fn write_file(app: &mut App, asked: Asked, path: PathBuf, overwrite: bool) -> Vec<Effect> {
    if path.as_os_str().is_empty() {
        say(app, "no file name: nothing was written");
        return Vec::new();
    }
    match (asked, both(app)) {
        (Asked::Picture, _) => vec![Effect::SavePicture { path, overwrite }],
        (Asked::Export, Some((model, comparison))) => begin(app, Job::Export { model, comparison, path, overwrite }),
        _ => Vec::new(),
    }
}

fn on_outcome(app: &mut App, asked: Asked, path: PathBuf, outcome: Outcome) {
    match outcome {
        Outcome::Written(bytes) => {
            say(app, &format!("{} written, {}", path.display(), super::figure::bytes(bytes as f64)));
        }
        Outcome::Exists => app.overlays.push(Overlay::Replace { asked, path }),
        Outcome::Failed(what) => complain(app, &format!("not written: {what}")),
    }
}

// Results.

fn on_done(app: &mut App, done: Done) -> Vec<Effect> {
    match done {
        Done::Analysed(Ok(model)) => {
            if let Some(old) = &app.model {
                app.remembered = app.tree.rows.remember(old);
                app.groups = super::groups::History::new(Request::default());
                app.trail.clear();
                app.tree.touched = false;
            }
            app.model = Some(model);
            app.comparison = None;
            app.counts = None;
            app.histograms = Default::default();
            app.tree.rows.visible.clear();
            compare(app)
        }
        Done::Analysed(Err(what)) => {
            app.busy = None;
            // A model that is there stays: another task could not be analysed.
            if app.model.is_some() {
                complain(app, &what)
            } else {
                app.failure = Some(what)
            }
            Vec::new()
        }
        Done::Counted(counts) => {
            replace_counts(app, counts);
            // Counts are the last part of a job only when the comparison came before them.
            Vec::new()
        }
        Done::Compared(Ok(comparison)) => {
            app.busy = None;
            app.failure = None;
            replace_comparison(app, comparison);
            Vec::new()
        }
        Done::Compared(Err(what)) => {
            app.busy = None;
            app.failure = Some(what);
            if app.comparison.is_some() {
                say(app, "what is shown below is the comparison before; u undoes the change");
            }
            Vec::new()
        }
        Done::Exported { path, outcome } => {
            app.busy = None;
            on_outcome(app, Asked::Export, path, outcome);
            Vec::new()
        }
    }
}

fn replace_counts(app: &mut App, counts: Arc<super::counts::Counts>) {
    let metric = app.histogram_row().map(|r| r.metric.clone());
    if let Some(at) = metric.and_then(|m| counts.rows.iter().position(|r| r.metric == m)) {
        app.histograms.row = at;
    }
    app.counts = Some(counts);
}

fn replace_comparison(app: &mut App, comparison: Arc<Comparison>) {
    let Some(model) = app.model.clone() else { return };
    let cause = match app.tree.cursor {
        Cursor::Cause(i) => app.causes().get(i).map(|c| (c.kind, c.path.clone())),
        Cursor::Row(_) => None,
    };
    let context = app.node().filter(|_| app.tree.touched).map(|(_, n)| n.context);
    app.comparison = Some(Arc::clone(&comparison));
    let tree = &comparison.tree;
    if !app.remembered.is_empty() {
        let remembered = std::mem::take(&mut app.remembered);
        app.tree.rows.recall(&remembered, &model, tree);
    } else if !app.tree.touched {
        app.tree.rows.fold_all();
    }
    if !app.tree.touched {
        app.tree.cursor = Cursor::Cause(0);
    }
    if !app.tree.touched
        && let Some(node) = comparison.causes.first().and_then(|c| details::cause_node(&model, &comparison, c))
    {
        app.tree.rows.reveal(node, &model, tree);
    }
    app.tree.rows.rebuild(&model, tree);
    if let Some((kind, path)) = cause
        && let Some(at) = comparison.causes.iter().position(|c| c.kind == kind && c.path == path)
    {
        app.tree.cursor = Cursor::Cause(at);
    }
    if let Some(context) = context {
        app.tree.cursor = nearest_row(app, &model, &comparison, context);
    }
    let text = app.tree.search.text.clone();
    search(app, &text);
}

/// The row of a context, or of the nearest one above it that is still there.
fn nearest_row(app: &App, model: &Model, comparison: &Comparison, context: crate::model::context::ContextId) -> Cursor {
    let mut at = Some(context);
    while let Some(c) = at {
        let row = find_context(model, &comparison.tree, c).and_then(|node| app.tree.rows.row_of(node));
        if let Some(row) = row {
            return Cursor::Row(row);
        }
        at = model.contexts.parent(c);
    }
    Cursor::Row(0)
}

/// The path of the node under the cursor, as text.
pub fn path_under_cursor(app: &App) -> Option<Vec<String>> {
    let model = app.model.as_ref()?;
    app.node().map(|(_, n)| path_text(model, n.context))
}
