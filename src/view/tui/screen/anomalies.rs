//! The table of root causes: the delay that each caused, how often, in how many executions, when (a strip of time), the
//! thread, its activity and its victims; below an open row its occurrences.

use crate::base::figure;
use crate::model::root_cause::{CausedDelay, RootCause};
use crate::view::anomalies::{Words, examined};
use crate::view::tui::app::App;
use crate::view::tui::canvas::{Canvas, width};
use crate::view::tui::pane::Pane;
use crate::view::tui::report::AnomalyReport;
use crate::view::tui::sources::{RootCauseOrder, RootCauseRow};
use crate::view::tui::theme::StyleScope;

/// Draw it.
pub fn draw(canvas: &mut Canvas<'_>, app: &App) {
    let Some(found) = &app.patterns.found else { return };
    let list = &app.patterns.list;
    let columns = Columns::of(canvas.width(), found);
    let head = app.frame.list.head;
    if head > 0 {
        columns.head(canvas, app, found);
    }
    if list.visible.is_empty() {
        let text = match found.anomalies.sources.is_empty() {
            true => {
                format!("{} {{ lowers the threshold, p lists the patterns.", examined(&found.anomalies, &found.notices))
            }
            false => "no root cause matches all of these words; Esc: show all".to_owned(),
        };
        for (line, text) in crate::view::tui::canvas::wrap(&text, canvas.width().saturating_sub(4)).iter().enumerate() {
            canvas.text(2, head + 1 + line, text, StyleScope::Dim);
        }
    }
    let shown = list.visible.iter().enumerate().skip(list.offset).take(canvas.height() - head);
    for (line, (row, at)) in shown.enumerate() {
        let here = row == list.row;
        columns.row(canvas, head + line, app, found, *at, here && app.pane == Pane::Anomalies);
        if here && app.pane != Pane::Anomalies {
            canvas.text(0, head + line, "▏", StyleScope::Dim);
        }
    }
}

/// Multiple of the reference: `21.3 ×`; `>9999 ×` beyond four digits; `unusual` where the usual time is zero.
fn factor(times: Option<f64>) -> String {
    match times {
        None => "unusual".to_owned(),
        Some(f) if f >= 9_999.5 => ">9999 ×".to_owned(),
        Some(f) if f >= 99.95 => format!("{f:.0} ×"),
        Some(f) => format!("{f:.1} ×"),
    }
}

/// Delay that a root cause created in each part of the time: one symbol per cell, relative to its largest.
fn strip(found: &AnomalyReport, source: &RootCause, cells: usize) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let length = found.span.len().max(1) as i128;
    let mut sums = vec![0_i64; cells];
    for o in &source.occurrences {
        let since = i128::from(o.span.start - found.span.start).max(0);
        let at = (since * cells as i128 / length) as usize;
        if let Some(sum) = sums.get_mut(at.min(cells.saturating_sub(1))) {
            *sum += o.affected_ns.max(o.excess_ns).max(1);
        }
    }
    let most = sums.iter().copied().max().unwrap_or(0).max(1);
    let symbol = |sum: &i64| match sum {
        0 => '·',
        n => BLOCKS[((i128::from(*n) * 8 - 1) / i128::from(most)).clamp(0, 7) as usize],
    };
    sums.iter().map(symbol).collect()
}

/// Widths of the columns that fit; 0 leaves a column out.
struct Columns {
    delay: usize,
    times: usize,
    executions: usize,
    factor: usize,
    strip: usize,
    who: usize,
}

impl Columns {
    fn of(columns: usize, found: &AnomalyReport) -> Columns {
        let of_executions = found.anomalies.examined.executions.is_some();
        let (times, executions, factor, strip) = match columns {
            0..=39 => (0, 0, 0, 0),
            40..=59 => (6, 0, 0, 0),
            60..=77 => (6, 6, 0, 8),
            78..=99 => (6, 6, 7, 8),
            100..=139 => (6, 6, 7, 12),
            _ => (6, 6, 7, 20),
        };
        let executions = if of_executions { executions } else { 0 };
        // The row of an occurrence shows its time in this column.
        let (least, most) = match columns {
            0..=59 => (5, 18),
            60..=89 => (14, 18),
            90..=139 => (14, 24),
            _ => (14, 32),
        };
        let who = found.widest.clamp(least, most);
        Columns { delay: 9, times, executions, factor, strip, who }
    }

    /// Positions where the figures end.
    fn ends(&self) -> [usize; 4] {
        let mut end = 1;
        [self.delay, self.times, self.executions, self.factor].map(|columns| {
            end += columns + usize::from(columns > 0);
            if columns > 0 { end } else { 0 }
        })
    }

    /// Position after the figures.
    fn strip_from(&self) -> usize {
        self.ends().into_iter().max().unwrap_or(0) + 2
    }

    fn text_from(&self) -> usize {
        self.strip_from() + self.strip + if self.strip > 0 { 2 } else { 0 }
    }

    fn head(&self, canvas: &mut Canvas<'_>, app: &App, found: &AnomalyReport) {
        let list = &app.patterns.list;
        let first = if list.order == RootCauseOrder::Excess { "extra" } else { "delay" };
        let names = [first, "times", "execs", "factor"];
        for (end, name) in self.ends().into_iter().zip(names).filter(|(end, _)| *end > 0) {
            canvas.right(end, 0, name, StyleScope::Dim);
        }
        if self.strip > 0 {
            canvas.text_in(self.strip_from(), 0, self.strip, "when", StyleScope::Dim);
        }
        let at = self.text_from();
        canvas.text_in(at, 0, self.who, "root cause", StyleScope::Dim);
        let all = found.anomalies.sources.len() as u64;
        let shown = list.visible.iter().filter(|r| matches!(r, RootCauseRow::Source(_))).count();
        let count = match (list.filter.is_empty(), list.search.text.is_empty()) {
            (true, true) => format!("{} by {}", figure::count(all), list.order.name()),
            (false, _) => format!("{shown} of {} match '{}'", figure::count(all), list.filter),
            (true, false) => format!("{} match /{}", list.search.matches.len(), list.search.text),
        };
        let what = canvas.text(at + self.who + 2, 0, "activity; affected threads", StyleScope::Dim);
        if what + width(&count) + 2 <= canvas.width() {
            canvas.right(canvas.width(), 0, &count, StyleScope::Dim);
        }
    }

    fn row(&self, canvas: &mut Canvas<'_>, y: usize, app: &App, found: &AnomalyReport, row: RootCauseRow, here: bool) {
        let (Some(source), Some(occurrence)) = (row.source(found), row.occurrence(found)) else { return };
        match row {
            RootCauseRow::Source(at) => self.source(canvas, y, app, found, (at, source), here),
            RootCauseRow::Occurrence(..) => self.occurrence(canvas, y, app, found, occurrence, here),
        }
        if here {
            canvas.shade(0, y, canvas.width(), StyleScope::Cursor);
            canvas.text(0, y, "▌", StyleScope::Selection);
        }
    }

    fn source(
        &self,
        canvas: &mut Canvas<'_>,
        y: usize,
        app: &App,
        found: &AnomalyReport,
        row: (u32, &RootCause),
        here: bool,
    ) {
        let (at, source) = row;
        let of_executions = found.anomalies.examined.executions.is_some();
        let scope = match () {
            () if source.idle || (of_executions && !source.in_executions) => StyleScope::Dim,
            () if source.noise.is_some() => StyleScope::Slow2,
            () => StyleScope::Slow3,
        };
        // A delay without a known victim is shown in brackets.
        let delay = match source.affected_ns {
            _ if app.patterns.list.order == RootCauseOrder::Excess => figure::extra(source.excess_ns as f64),
            0 => format!("({})", figure::time(source.excess_ns as f64)),
            ns => figure::time(ns as f64),
        };
        let figures = [
            (delay, scope),
            (figure::count(source.occurrences.len() as u64), StyleScope::Text),
            (figure::count(source.executions), StyleScope::Text),
            (factor(source.times()), StyleScope::Dim),
        ];
        self.figures(canvas, y, figures);
        if self.strip > 0 {
            canvas.text(self.strip_from(), y, &strip(found, source, self.strip), scope);
        }
        let list = &app.patterns.list;
        let text = match (list.search.matches.contains(&at), here) {
            (true, _) => StyleScope::Match,
            (false, true) => StyleScope::Strong,
            (false, false) if scope == StyleScope::Dim => StyleScope::Dim,
            (false, false) => StyleScope::Text,
        };
        let words = Words::of(source);
        let x = self.text_from();
        canvas.text_in(x, y, self.who, &words.who, text);
        let part = match (source.idle, of_executions && !source.in_executions) {
            (true, _) => "idle, waiting for work: ",
            (_, true) => "outside executions: ",
            _ => "",
        };
        let to = if words.to.is_empty() { String::new() } else { format!("; {}", words.to) };
        if x + self.who + 6 < canvas.width() {
            canvas.text(x + self.who + 2, y, &format!("{part}{}{to}", words.did), text);
        }
    }

    fn occurrence(
        &self,
        canvas: &mut Canvas<'_>,
        y: usize,
        app: &App,
        found: &AnomalyReport,
        o: &CausedDelay,
        here: bool,
    ) {
        let figures = [
            (figure::extra(o.excess_ns as f64), StyleScope::Slow1),
            (String::new(), StyleScope::Text),
            (
                if self.executions > 0 { figure::count(o.executions.len() as u64) } else { String::new() },
                StyleScope::Dim,
            ),
            (factor(o.times()), StyleScope::Dim),
        ];
        self.figures(canvas, y, figures);
        let text = if here { StyleScope::Strong } else { StyleScope::Text };
        let stamp = format!("at {}", figure::stamp(o.span.start - app.origin()));
        let x = self.text_from();
        canvas.text_in(x, y, self.who, &stamp, text);
        let path = o.path.and_then(|p| found.anomalies.paths.get(p as usize));
        let waited = path.filter(|p| p.steps.len() > 1).and_then(|p| p.steps.last());
        let what = match (waited, o.paths) {
            (Some(last), 1) => format!("{} waited", found.place(last.stream)),
            (Some(last), n) => format!("{} and {} more waited", found.place(last.stream), n - 1),
            (None, _) => found.get(o.anomaly).map_or_else(String::new, |a| found.place(a.stream)),
        };
        let delay = if o.affected_ns > 0 {
            format!(", {} delay caused", figure::time(o.affected_ns as f64))
        } else {
            String::new()
        };
        if x + self.who + 6 < canvas.width() {
            canvas.text(x + self.who + 2, y, &format!("{what}{delay}"), text);
        }
    }

    fn figures(&self, canvas: &mut Canvas<'_>, y: usize, figures: [(String, StyleScope); 4]) {
        for (end, (text, scope)) in self.ends().into_iter().zip(figures).filter(|(end, _)| *end > 0) {
            canvas.right(end, y, &text, scope);
        }
    }
}
