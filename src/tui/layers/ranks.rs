//! Ranks over time: those around the root cause under the cursor, then all of the run, first waiting, then computing.

use super::page::PageContent;
use crate::base::figure;
use crate::model::timeline::{RankRow, RankTimeline};
use crate::tui::actions::{Action, ActionScope};
use crate::tui::app::App;
use crate::tui::canvas::width;
use crate::tui::theme::StyleScope;
use crate::tui::widget::page::{StyledLine, paragraph, plain};
use crate::view::strips::{StripContent, cells, folded};

/// Rows of a strip of the whole run.
const ROWS: usize = 16;

/// True if there are ranks to show: the recording is the archive of an MPI run.
pub fn are_known(app: &App) -> bool {
    let waiting = app.patterns.found.as_ref().and_then(|found| found.anomalies.waiting.as_ref());
    waiting.is_some_and(|waiting| !waiting.strip.rows.is_empty())
}

/// The page.
#[derive(Debug)]
pub struct RanksPage;

impl PageContent for RanksPage {
    fn title(&self) -> &'static str {
        "Ranks over time"
    }

    fn action(&self) -> Action {
        Action::ShowRanks
    }

    fn lines(&self, app: &App, columns: usize, _: usize) -> Vec<StyledLine> {
        lines(app, columns)
    }

    fn scope(&self) -> ActionScope {
        ActionScope::Anomalies
    }
}

/// Its lines in this width.
fn lines(app: &App, columns: usize) -> Vec<StyledLine> {
    let Some(found) = &app.patterns.found else { return Vec::new() };
    let mut lines = Vec::new();
    let path = found.anomalies.paths.get(app.patterns.path.path);
    if let Some((path, line)) = path.and_then(|p| Some((p, found.anomalies.around.get(p.source as usize)?))) {
        let (stream, what) = path.steps.first().map_or((0, ""), |s| (s.stream, s.what.as_str()));
        lines.push(plain(StyleScope::Strong, format!("Around {}, {what}", found.place(stream))));
        lines.push(plain(StyleScope::Dim, "#: computing, .: waiting, -: in a library call"));
        lines.extend(strip(app, line, StripContent::Both, usize::MAX, columns));
    }
    let Some(waiting) = found.anomalies.waiting.as_ref().filter(|w| !w.strip.rows.is_empty()) else {
        let text = "No rank or thread waits for another: this page needs the archive of an MPI run.";
        lines.extend(paragraph(StyleScope::Dim, text, columns, 0));
        return lines;
    };
    for (title, shown) in [("Waiting", StripContent::Waiting), ("Computing", StripContent::Computing)] {
        if !lines.is_empty() {
            lines.push(StyledLine::new());
        }
        lines.push(plain(StyleScope::Strong, format!("{title}, from 0% ( ) to 100% (#)")));
        lines.extend(strip(app, &waiting.strip, shown, ROWS, columns));
    }
    lines
}

fn strip(app: &App, strip: &RankTimeline, shown: StripContent, rows: usize, columns: usize) -> Vec<StyledLine> {
    let rows: Vec<RankRow> = folded(strip, rows);
    let widest = rows.iter().map(|r| width(&r.label)).max().unwrap_or(0).min(columns / 3);
    let room = columns.saturating_sub(widest + 4).max(1);
    let line = |row: &RankRow| {
        let (mark, scope) = if row.source { ('>', StyleScope::Slow3) } else { (' ', StyleScope::Text) };
        let label: String = row.label.chars().take(widest).collect();
        vec![
            (scope, format!("{mark}{label:<widest$} ")),
            (StyleScope::Dim, "|".to_owned()),
            (scope, cells(row, shown, room)),
        ]
    };
    let mut lines: Vec<StyledLine> = rows.iter().map(line).collect();
    let (from, length) = (figure::stamp(strip.window.start - app.origin()), figure::time(strip.window.len() as f64));
    lines.push(plain(StyleScope::Dim, format!(" {:widest$}  from {from}, {length} in total", "")));
    lines
}
