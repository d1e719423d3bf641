//! The calls of both executions aligned, as a tree below their lanes: rows, cursor, drawing.
//!
//! In: aligned calls. A row has a call, calls that repeat, or neighbours that are short; its times in both executions,
//! and the difference. Moving moves the cursors of both timelines to the calls of the row; a jump shows them in time.
//! Cost: the rows that are shown.

use super::state::LoadedTimelines;
use crate::base::figure;
use crate::base::time::Ns;
use crate::compare::calls::aligned::AlignedRow;
use crate::tui::actions::Action;
use crate::tui::canvas::{Canvas, clip, width, wrap};
use crate::tui::theme::{StyleScope, Theme};
use crate::tui::widget::page::{StyledLine, paragraph, plain};
use crate::tui::widget::table::{TableColumn, TableLayout};
use crate::view::call_rows::{self, ShownCalls};
use std::collections::BTreeSet;

/// Parts of the longer execution from which on a row is shown by itself, and from which on it is open.
const SHOWN: Ns = 500;
const OPEN: Ns = 20;

/// Columns of names, and those of the figures beside them.
const LEAST_NAME: usize = 40;
const FIGURES: usize = 33;
/// Columns of the bars, at least and at most.
const LEAST_BAR: usize = 10;
const LONGEST_BAR: usize = 60;

/// The rows on the screen.
#[derive(Clone, Debug, Default)]
pub struct AlignedView {
    /// Rows of which what is below them is shown.
    open: BTreeSet<u32>,
    pub rows: Vec<ShownCalls>,
    /// Their names.
    labels: Vec<String>,
    pub cursor: usize,
    /// The first row on the screen.
    pub top: usize,
}

impl AlignedView {
    /// The rows of two executions, the long ones open, with the cursor on the call at the cursor of the timelines.
    pub fn new(loaded: &LoadedTimelines) -> AlignedView {
        let least = longest(loaded) / OPEN;
        let is_long =
            |row: &AlignedRow| !row.is_run() && [row.a, row.b].into_iter().flatten().any(|calls| calls.ns >= least);
        let rows = (0_u32..).zip(&loaded.calls.rows).filter(|(_, row)| is_long(row));
        let mut view = AlignedView { open: rows.map(|(at, _)| at).collect(), ..AlignedView::default() };
        view.arrange(loaded);
        let at_ns = loaded.linked[loaded.front.min(1)];
        let call = loaded.call_here().map(|(call, _)| call);
        let call = call.or_else(|| loaded.tree(loaded.front).deepest_at(at_ns));
        if let Some(row) = call.and_then(|call| loaded.calls.row_of(loaded.front, call)) {
            view.cursor = view.rows.partition_point(|shown| shown.first <= row).saturating_sub(1);
        }
        view
    }

    fn arrange(&mut self, loaded: &LoadedTimelines) {
        let least = (longest(loaded) / SHOWN).max(1);
        self.rows = call_rows::shown(&loaded.calls, least, |row| self.open.contains(&row));
        let label = |shown: &ShownCalls| call_rows::label(&loaded.model, &loaded.calls, shown);
        self.labels = self.rows.iter().map(label).collect();
        self.cursor = self.cursor.min(self.rows.len().saturating_sub(1));
    }

    /// The row under the cursor.
    pub fn here(&self) -> Option<&ShownCalls> {
        self.rows.get(self.cursor)
    }

    /// Scroll so that the cursor is on a screen of so many rows.
    pub fn scroll(&mut self, lines: usize) {
        let lines = lines.max(1);
        self.top = self.top.clamp((self.cursor + 1).saturating_sub(lines), self.cursor);
        self.top = self.top.min(self.rows.len().saturating_sub(lines));
    }

    /// Do an action; `None` where it is none of the rows.
    pub fn act(&mut self, action: Action, loaded: &mut LoadedTimelines, page: usize) -> Option<()> {
        let last = self.rows.len().saturating_sub(1);
        match action {
            Action::Up => self.cursor = self.cursor.saturating_sub(1),
            Action::Down => self.cursor = (self.cursor + 1).min(last),
            Action::PageUp => self.cursor = self.cursor.saturating_sub(page.max(1)),
            Action::PageDown => self.cursor = (self.cursor + page.max(1)).min(last),
            Action::Home => self.cursor = 0,
            Action::End => self.cursor = last,
            Action::Right => self.unfold(loaded),
            Action::Left => self.fold(loaded),
            _ => return None,
        }
        self.point(loaded);
        Some(())
    }

    /// Open a row: what is below it, or each of the short calls.
    pub fn unfold(&mut self, loaded: &LoadedTimelines) {
        let Some(shown) = self.here().copied() else { return };
        if shown.short > 0 {
            let size = |at: u32| loaded.calls.rows.get(at as usize).map_or(1, |row| row.size);
            let beside = std::iter::successors(Some(shown.first), |at| Some(*at + size(*at)));
            self.open.extend(beside.take(shown.short));
        } else {
            self.open.insert(shown.last);
        }
        self.arrange(loaded);
    }

    /// Fold a row, or go to the one above it.
    fn fold(&mut self, loaded: &LoadedTimelines) {
        let Some(shown) = self.here().copied() else { return };
        if shown.is_open {
            self.open.remove(&shown.last);
            self.arrange(loaded);
        } else if let Some(above) = self.rows.iter().take(self.cursor).rposition(|row| row.level < shown.level) {
            self.cursor = above;
        }
    }

    /// The cursors of both timelines go to the calls of the row.
    fn point(&self, loaded: &mut LoadedTimelines) {
        let Some(row) = self.here().and_then(|shown| loaded.calls.rows.get(shown.last as usize)).copied() else {
            return;
        };
        let starts = [row.a, row.b].map(|calls| calls.map(|calls| calls.start_ns));
        let moments = match starts {
            [Some(a), Some(b)] => [a, b],
            [Some(a), None] => [a, loaded.calls.time_in_other(0, a)],
            [None, Some(b)] => [loaded.calls.time_in_other(1, b), b],
            [None, None] => return,
        };
        loaded.point_both(moments);
    }

    /// Show the calls of the row in time: those of the execution in front, where it has them. False for short calls.
    pub fn jump(&self, loaded: &mut LoadedTimelines, columns: usize) -> bool {
        let Some(shown) = self.here().filter(|shown| shown.short == 0) else { return false };
        let Some(row) = loaded.calls.rows.get(shown.last as usize).copied() else { return false };
        let front = if row.calls(loaded.front).is_some() { loaded.front } else { 1 - loaded.front.min(1) };
        let Some(calls) = row.calls(front) else { return false };
        loaded.front = front;
        self.point(loaded);
        loaded.line = loaded.tree(front).call(calls.first).map(|call| loaded.tree(front).line_of(call.level as usize));
        let (start, ns) = (calls.start_ns + loaded.shift(front), calls.end_ns - calls.start_ns);
        loaded.set_window(start - ns / 2, ns.saturating_mul(2), columns);
        true
    }
}

/// The length of the longer execution.
fn longest(loaded: &LoadedTimelines) -> Ns {
    (0..2).filter_map(|at| loaded.timeline(at)).map(|timeline| timeline.ns).max().unwrap_or(0)
}

/// Draw the rows, below a line of heads.
pub fn draw(canvas: &mut Canvas<'_>, loaded: &LoadedTimelines, view: &AlignedView, names: &[String; 2]) {
    // In wide terminals the figures are beside the names, and a bar is beside the figures.
    let names_of = view.rows.iter().zip(&view.labels).map(|(shown, label)| shown.level + width(label) + 2);
    let wanted = names_of.max().unwrap_or(0).max(LEAST_NAME) + FIGURES;
    let columns = [
        TableColumn::left(""),
        TableColumn::right("").gap(1).fixed(9),
        TableColumn::right("").gap(1).fixed(9),
        TableColumn::right("").gap(1).from(48, 10),
    ];
    let table_width = canvas.width().min(wanted);
    let table = TableLayout::new(table_width, 1, 1, &columns);
    let bar = canvas.width().saturating_sub(table_width + 2).min(LONGEST_BAR);
    table.cell(canvas, 0, 0, "calls of both, aligned", StyleScope::Dim);
    for (at, name) in names.iter().enumerate() {
        let columns = table.column(at + 1).width;
        table.cell(canvas, 0, at + 1, &clip(name, columns), StyleScope::Dim);
    }
    table.cell(canvas, 0, 3, "difference", StyleScope::Dim);
    let whole = longest(loaded).max(1) as f64;
    let rows = view.rows.iter().enumerate().skip(view.top).take(canvas.height().saturating_sub(1));
    for (y, (at, shown)) in (1..).zip(rows) {
        let label = view.labels.get(at).map_or("", String::as_str);
        let has_below = loaded.calls.rows.get(shown.last as usize).is_some_and(|row| row.size > 1) || shown.short > 1;
        let mark = if shown.is_open {
            '▾'
        } else if has_below {
            '▸'
        } else {
            ' '
        };
        let indent = shown.level.min(table.column(0).width / 3);
        let name = format!("{}{mark} {label}", " ".repeat(indent));
        let style = match shown.short {
            0 if loaded.search.is_in(label) => StyleScope::Match,
            0 => StyleScope::Text,
            _ => StyleScope::Dim,
        };
        table.cell(canvas, y, 0, &name, style);
        let time = |ns: Ns| if ns == 0 { "-".to_owned() } else { figure::time(ns as f64) };
        let delta = shown.a_ns - shown.b_ns;
        let hue = Theme::of_difference(Some(4.0_f64.copysign(delta as f64)), delta as f64 / whole);
        let cells = [
            (time(shown.a_ns), StyleScope::Text),
            (time(shown.b_ns), StyleScope::Text),
            (figure::extra(delta as f64), hue),
        ];
        table.cells(canvas, y, 1, &cells);
        if bar >= LEAST_BAR {
            let part = |ns: Ns| ns as f64 / whole;
            canvas.compared_bar(table_width + 1, y, bar, part(shown.a_ns), part(shown.b_ns), hue);
        }
        if at == view.cursor {
            canvas.mark_line(y);
        }
    }
}

/// The row under the cursor in words.
pub fn text(loaded: &LoadedTimelines, view: &AlignedView, names: &[String; 2], columns: usize) -> Vec<StyledLine> {
    let Some(shown) = view.here() else { return vec![plain(StyleScope::Dim, "no call stacks were recorded")] };
    let label = call_rows::label(&loaded.model, &loaded.calls, shown);
    let name = wrap(&label, columns).into_iter().take(2);
    let mut lines: Vec<StyledLine> = name.map(|line| plain(StyleScope::Strong, line)).collect();
    let row = loaded.calls.rows.get(shown.last as usize);
    let of = |at: usize, ns: Ns| {
        let name = &names[at];
        let calls = row.and_then(|row| row.calls(at));
        match calls {
            None => format!("{name}: none"),
            Some(_) if shown.short > 0 => format!("{name}: {}", figure::time(ns as f64)),
            Some(calls) => {
                let own = if calls.times == 1 {
                    format!(", itself {}", figure::time(loaded.tree(at).own_ns(calls.first) as f64))
                } else {
                    String::new()
                };
                let whole = loaded.timeline(at).map_or(1, |timeline| timeline.ns.max(1));
                let share = figure::share(ns as f64 / whole as f64);
                let (start, ns) = (figure::time(calls.start_ns as f64), figure::time(ns as f64));
                format!("{name}: {ns} ({share} of it) at {start}{own}")
            }
        }
    };
    let both = format!("{}; {}", of(0, shown.a_ns), of(1, shown.b_ns));
    lines.extend(paragraph(StyleScope::Text, &both, columns, 2));
    if loaded.calls.coarse > 0 {
        let long = figure::plural(loaded.calls.coarse as u64, "sequence");
        lines.push(plain(StyleScope::Warning, format!("{long} of calls are too long to be aligned: paired in order")));
    }
    lines
}
