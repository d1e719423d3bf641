//! The table of root causes: the delay that each caused, how often, in how many executions, when (a strip of time), the
//! thread, its activity and its victims; below an open row its occurrences.

use super::pane_view::{PaneCell, PaneView};
use crate::base::time::Timestamp;
use crate::base::{clean, figure};
use crate::model::root_cause::{CausedDelay, RootCause};
use crate::tui::app::App;
use crate::tui::bookmarks::BookmarkPlace;
use crate::tui::canvas::{Canvas, clip_name, width, wrap};
use crate::tui::details::{SampleExecution, samples_of_moment};
use crate::tui::frame::{ListLines, ScreenFrame, first_shown};
use crate::tui::layers::anomaly::AnomalyPage;
use crate::tui::layers::page::PageLayer;
use crate::tui::pane::{JumpOrigin, Pane};
use crate::tui::report::AnomalyReport;
use crate::tui::search::MatchStep;
use crate::tui::sources::{RootCauseOrder, RootCauseRow};
use crate::tui::theme::{StyleScope, Theme};
use crate::tui::widget::table::{TableColumn, TableLayout};
use crate::view::anomalies::{Words, examined, of_source};

/// The pane.
pub struct AnomaliesView;

impl PaneView for AnomaliesView {
    fn draw(&self, canvas: &mut Canvas<'_>, app: &App) {
        draw(canvas, app);
    }

    fn lay_out(&self, _: &App, frame: &mut ScreenFrame) {
        frame.list = ListLines::new(frame.inside(Pane::Anomalies).height);
    }

    /// The path follows the list.
    fn settle(&self, app: &mut App) {
        let list = &mut app.patterns.list;
        list.row = list.row.min(list.visible.len().saturating_sub(1));
        if app.pane == Pane::Anomalies {
            app.patterns.follow_list();
        }
    }

    fn scroll(&self, app: &mut App) {
        let list = &mut app.patterns.list;
        list.offset = first_shown(list.offset, list.row, app.frame.list.rows, list.visible.len());
    }

    fn shown(&self, app: &App) -> usize {
        app.frame.list.rows
    }

    fn vertical(&self, app: &mut App, by: isize) {
        app.patterns.list.row = app.patterns.list.row.saturating_add_signed(by);
    }

    /// Show the occurrences of the source under the cursor, or hide them and go back to it.
    fn sideways(&self, app: &mut App, by: isize) {
        let open = by > 0;
        let (Some(found), Some(here)) = (app.patterns.found.clone(), app.patterns.list.here()) else { return };
        let list = &mut app.patterns.list;
        if list.open.contains(&here.at()) != open {
            list.toggle(&found, here.at());
        } else if open {
            self.vertical(app, 1);
        }
    }

    /// From a source to its occurrences, from an occurrence to its path.
    fn open(&self, app: &mut App) {
        let Some(found) = app.patterns.found.clone() else { return };
        let Some(here) = app.patterns.list.here() else { return };
        let several = here.source(&found).is_some_and(|s| s.occurrences.len() > 1);
        if let (RootCauseRow::Source(at), true) = (here, several) {
            return app.patterns.list.toggle(&found, at);
        }
        app.patterns.follow_list();
        if app.patterns.selected().is_none() {
            return app.say("waiting for work: not a delay, so there is no path");
        }
        app.trail.push(JumpOrigin::Anomaly(app.patterns.list.row));
        app.pane = Pane::Path;
    }

    fn click(&self, app: &mut App, at: PaneCell) -> bool {
        let Some(line) = at.line.checked_sub(app.frame.list.head) else { return false };
        let row = app.patterns.list.offset + line;
        let is_again = std::mem::replace(&mut app.patterns.list.row, row) == row;
        is_again && row < app.patterns.list.visible.len() && at.was_in_front
    }

    fn details(&self, app: &App) -> Option<PageLayer> {
        page(app, self.anomaly(app)?)
    }

    fn example(&self, app: &App) -> Option<SampleExecution> {
        example_of(app, self.anomaly(app)?)
    }

    fn copied(&self, app: &App) -> Option<String> {
        let found = app.patterns.found.as_ref()?;
        let here = app.patterns.list.here()?;
        let words = of_source(here.source(found)?);
        Some(match here {
            RootCauseRow::Source(_) => {
                let source = here.source(found)?;
                let delay = figure::time(source.affected_ns as f64);
                format!("{words}: caused {delay} of delay, {} times", source.occurrences.len())
            }
            RootCauseRow::Occurrence(..) => {
                let o = here.occurrence(found)?;
                let (delay, extra) = (figure::time(o.affected_ns as f64), figure::extra(o.excess_ns as f64));
                format!("{words} at {}: {extra}, caused {delay} of delay", figure::stamp(o.span.start - app.origin()))
            }
        })
    }

    fn place(&self, app: &App) -> Option<BookmarkPlace> {
        let found = app.patterns.found.as_ref()?;
        let row = app.patterns.list.here()?;
        let (source, occurrence) = (row.source(found)?, row.occurrence(found)?);
        Some(BookmarkPlace::Anomaly {
            start_ns: occurrence.span.start.since(Timestamp::ZERO),
            place: clean::owned(&format!("{} {}", source.name, source.what)),
        })
    }
}

impl AnomaliesView {
    /// The anomaly under the cursor.
    fn anomaly(&self, app: &App) -> Option<u32> {
        app.patterns.list.anomaly(app.patterns.found.as_ref()?)
    }
}

/// The page about an anomaly.
pub fn page(app: &App, at: u32) -> Option<PageLayer> {
    Some(PageLayer::new(AnomalyPage { report: app.patterns.found.clone()?, at }))
}

/// The longest execution during an anomaly.
pub fn example_of(app: &App, at: u32) -> Option<SampleExecution> {
    let (model, _) = app.compared_executions()?;
    samples_of_moment(&model, app.patterns.found.as_ref()?.get(at)?.span).into_iter().next()
}

/// The next order, from its top.
pub fn reorder(app: &mut App) {
    let Some(found) = app.patterns.found.clone() else { return };
    let list = &mut app.patterns.list;
    list.order = list.order.next();
    list.rebuild(&found);
    (list.row, list.offset) = (0, 0);
    let said = format!("ordered by {}", list.order.name());
    app.say(&said);
}

/// List only the root causes that match all of these words.
pub fn filter(app: &mut App, words: &str) {
    let Some(found) = app.patterns.found.clone() else { return };
    let list = &mut app.patterns.list;
    let here = list.here();
    list.filter = words.trim().to_owned();
    list.rebuild(&found);
    if !here.is_some_and(|at| list.go_to(at)) {
        list.row = 0;
    }
}

pub fn search(app: &mut App, text: &str) {
    if let Some(found) = app.patterns.found.clone() {
        app.patterns.list.find(&found, text.to_owned());
    }
}

pub fn step_match(app: &mut App, step: MatchStep) {
    let list = &mut app.patterns.list;
    if list.search.text.is_empty() {
        return app.say("no search yet; /: search");
    }
    // Matches are in the order of the list.
    let mut matches = list.search.matches.iter().peekable();
    let is_match = |(_, row): &(usize, &RootCauseRow)| {
        matches!(row, RootCauseRow::Source(_)) && matches.next_if(|at| **at == row.at()).is_some()
    };
    let rows: Vec<usize> = list.visible.iter().enumerate().filter(is_match).map(|(row, _)| row).collect();
    let count = rows.len();
    if count == 0 {
        let text = format!("no listed root cause or pattern contains {:?}", list.search.text);
        return app.report_failure(&text);
    }
    let before = rows.partition_point(|r| *r < list.row);
    let until = rows.partition_point(|r| *r <= list.row);
    let at = step.target(before, until, count);
    list.row = rows[at];
    app.say(format!("match {} of {count}", at + 1));
}

fn draw(canvas: &mut Canvas<'_>, app: &App) {
    let Some(found) = &app.patterns.found else { return };
    let list = &app.patterns.list;
    let table = table(canvas.width(), found, list.order);
    let top = app.frame.list.head;
    if top > 0 {
        head(canvas, &table, app, found);
    }
    if list.visible.is_empty() {
        let text = match found.anomalies.sources.is_empty() {
            true => {
                format!("{} {{ lowers the threshold, p lists the patterns.", examined(&found.anomalies, &found.notices))
            }
            false => "no root cause matches all of these words; Esc: show all".to_owned(),
        };
        for (line, text) in wrap(&text, canvas.width().saturating_sub(4)).iter().enumerate() {
            canvas.text(2, top + 1 + line, text, StyleScope::Dim);
        }
    }
    let shown = list.visible.iter().enumerate().skip(list.offset).take(app.frame.list.rows);
    let all_ns = found.anomalies.sources.iter().map(|source| cost_ns(found, source)).sum();
    let rows = Rows { app, report: found, table: &table, all_ns };
    for (line, (row, at)) in shown.enumerate() {
        let here = row == list.row;
        rows.draw(canvas, top + line, *at, here && app.pane == Pane::Anomalies);
        if here && app.pane != Pane::Anomalies {
            canvas.text(0, top + line, "▏", StyleScope::Dim);
        }
    }
}

/// Multiple of the reference: `21.3 ×`; `>9999 ×` beyond four digits; `usual 0` where the usual time is zero.
fn factor(times: Option<f64>) -> String {
    match times {
        None => "usual 0".to_owned(),
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

/// Positions of the columns.
const DELAY: usize = 0;
const STRIP: usize = 4;
const PLACE: usize = 5;
const ACTIVITY: usize = 6;

fn table(width: usize, report: &AnomalyReport, order: RootCauseOrder) -> TableLayout {
    let of_executions = report.anomalies.examined.executions.is_some();
    // The row of an occurrence shows its time in this column.
    let (least, most) = match width {
        0..=59 => (5, 18),
        60..=89 => (14, 18),
        90..=139 => (14, 24),
        _ => (14, 32),
    };
    let executions = TableColumn::right("execs").gap(1);
    let columns = [
        TableColumn::right(if order == RootCauseOrder::Excess { "extra" } else { "delay" }).fixed(9),
        TableColumn::right("times").gap(1).from(40, 6),
        if of_executions { executions.from(60, 6) } else { executions.fixed(0) },
        // Narrow tables show it where it is the order.
        TableColumn::right("factor").gap(1).from(if order == RootCauseOrder::Factor { 78 } else { 90 }, 7),
        TableColumn::left("when").gap(2).from(60, 8).from(100, 12).from(140, 20),
        TableColumn::left("root cause").gap(2).fixed(report.widest.clamp(least, most)),
        TableColumn::left("").gap(2),
    ];
    TableLayout::new(width, 2, 0, &columns)
}

fn head(canvas: &mut Canvas<'_>, table: &TableLayout, app: &App, report: &AnomalyReport) {
    let list = &app.patterns.list;
    table.head(canvas, 0);
    let all = report.anomalies.sources.len() as u64;
    let shown = list.visible.iter().filter(|r| matches!(r, RootCauseRow::Source(_))).count();
    let count = match (list.filter.is_empty(), list.search.text.is_empty()) {
        (true, true) => format!("{} by {}", figure::count(all), list.order.name()),
        (false, _) => format!("{shown} of {} match '{}'", figure::count(all), list.filter),
        (true, false) => format!("{} match /{}", list.search.matches.len(), list.search.text),
    };
    let end = canvas.text(table.column(ACTIVITY).x, 0, "activity; affected threads", StyleScope::Dim);
    if end + width(&count) + 2 <= canvas.width() {
        canvas.right(canvas.width(), 0, &count, StyleScope::Dim);
    }
}

/// True where executions are judged, and this was in none.
fn is_outside(report: &AnomalyReport, source: &RootCause) -> bool {
    report.anomalies.examined.executions.is_some() && !source.in_executions
}

/// What a root cause cost: the delay that it caused, or its own where no victim is known. Rows in brackets cost
/// nothing that is asked about.
fn cost_ns(report: &AnomalyReport, source: &RootCause) -> i64 {
    match source.affected_ns {
        _ if source.idle || is_outside(report, source) => 0,
        0 => source.excess_ns.max(0),
        ns => ns,
    }
}

/// Draws the rows of the table.
struct Rows<'a> {
    app: &'a App,
    report: &'a AnomalyReport,
    table: &'a TableLayout,
    /// What all root causes cost.
    all_ns: i64,
}

impl Rows<'_> {
    fn draw(&self, canvas: &mut Canvas<'_>, y: usize, row: RootCauseRow, here: bool) {
        let (Some(source), Some(occurrence)) = (row.source(self.report), row.occurrence(self.report)) else { return };
        match row {
            RootCauseRow::Source(at) => {
                let is_match = self.app.patterns.list.search.matches.contains(&at);
                self.root_cause(canvas, y, (at as usize, source), is_match, here);
            }
            RootCauseRow::Occurrence(..) => self.occurrence(canvas, y, occurrence, here),
        }
        if here {
            canvas.mark_line(y);
        }
    }

    fn root_cause(
        &self,
        canvas: &mut Canvas<'_>,
        y: usize,
        (at, source): (usize, &RootCause),
        is_match: bool,
        here: bool,
    ) {
        let is_outside = is_outside(self.report, source);
        let share = cost_ns(self.report, source) as f64 / self.all_ns.max(1) as f64;
        let scope = if source.idle || is_outside { StyleScope::Dim } else { Theme::of_share(share) };
        // A delay without a known victim is shown in brackets.
        let delay = match source.affected_ns {
            _ if self.app.patterns.list.order == RootCauseOrder::Excess => figure::extra(source.excess_ns as f64),
            0 => format!("({})", figure::time(source.excess_ns as f64)),
            ns => figure::time(ns as f64),
        };
        let text = match () {
            () if is_match => StyleScope::Match,
            () if here => StyleScope::Strong,
            () if scope == StyleScope::Dim => StyleScope::Dim,
            () => StyleScope::Text,
        };
        let words = Words::of(source);
        let cells = [
            (delay, scope),
            (figure::count(source.occurrences.len() as u64), StyleScope::Text),
            (figure::count(source.executions), StyleScope::Text),
            (factor(source.times()), StyleScope::Dim),
            (strip(self.report, source, self.table.column(STRIP).width), scope),
            (clip_name(&words.who, self.table.column(PLACE).width).into_owned(), text),
        ];
        self.table.cells(canvas, y, DELAY, &cells);
        let rank = self.app.compared.as_ref().and_then(|compared| compared.of(at));
        let part = match rank {
            _ if source.idle => "idle, waiting for work: ".into(),
            _ if is_outside => "outside executions: ".into(),
            Some(rank) => format!("cause {rank}: "),
            None => String::new(),
        };
        let to = if words.to.is_empty() { String::new() } else { format!("; {}", words.to) };
        self.activity(canvas, y, &format!("{part}{}{}{to}", words.did, words.inner), text);
    }

    fn occurrence(&self, canvas: &mut Canvas<'_>, y: usize, o: &CausedDelay, here: bool) {
        let (report, origin) = (self.report, self.app.origin());
        let text = if here { StyleScope::Strong } else { StyleScope::Text };
        let cells = [
            (figure::extra(o.excess_ns as f64), StyleScope::Slow1),
            (String::new(), StyleScope::Text),
            (figure::count(o.executions.len() as u64), StyleScope::Dim),
            (factor(o.times()), StyleScope::Dim),
            (String::new(), StyleScope::Text),
            (format!("at {}", figure::stamp(o.span.start - origin)), text),
        ];
        self.table.cells(canvas, y, DELAY, &cells);
        let path = o.path.and_then(|p| report.anomalies.paths.get(p as usize));
        let waited = path.filter(|p| p.steps.len() > 1).and_then(|p| p.steps.last());
        let victims = match (waited, o.paths) {
            (Some(last), 1) => format!("{} waited", report.place(last.stream)),
            (Some(last), n) => format!("{} and {} more waited", report.place(last.stream), n - 1),
            (None, _) => report.get(o.anomaly).map_or_else(String::new, |a| report.place(a.stream)),
        };
        let delay = match o.affected_ns {
            ns @ 1.. => format!(", {} delay caused", figure::time(ns as f64)),
            _ => String::new(),
        };
        self.activity(canvas, y, &format!("{victims}{delay}"), text);
    }

    /// The activity, unless a few characters of it would say nothing.
    fn activity(&self, canvas: &mut Canvas<'_>, y: usize, text: &str, scope: StyleScope) {
        if self.table.column(ACTIVITY).width > 4 {
            self.table.cell(canvas, y, ACTIVITY, text, scope);
        }
    }
}
