//! Layout: from the size of the screen and the texts to show to the [`ScreenFrame`], once after each message.
//!
//! Cost: the header is wrapped once; all else is arithmetic.

use super::app::App;
use super::frame::{
    DETAILS_FROM, DETAILS_LINES, HistogramCells, ListLines, PaneArea, PathLines, ScreenFrame, TreeLines, footer_lines,
    most_header_lines,
};
use super::header;
use super::layers::details;
use super::pane::Pane;
use super::report::streams;
use super::theme::StyleScope;
use super::widget::page::{StyledLine, plain};
use ratatui::layout::Rect;

/// From this width on two panes are side by side.
pub const SIDE_BY_SIDE: u16 = 140;

/// The frame of the state.
pub fn frame(app: &App) -> ScreenFrame {
    let header_lines = header::lines(app, usize::from(app.size.0));
    let mut frame = rectangles(app, header_lines.len());
    frame.header_lines = header_lines;
    frame.tree = TreeLines::new(frame.inside(Pane::Tree).height, app.causes().len());
    frame.tree_details = tree_details(app, &frame);
    let counts = app.counts.as_ref();
    frame.histograms = HistogramCells::new(
        frame.inside(Pane::Histograms),
        counts.map_or(0, |c| c.rows.len()),
        counts.is_some_and(|c| !c.constant.is_empty()),
    );
    frame.list = ListLines::new(frame.inside(Pane::Anomalies).height);
    let path = app.patterns.selected().and_then(|(report, at)| report.anomalies.paths.get(at));
    frame.path = PathLines::new(
        frame.inside(Pane::Path).height,
        path.map_or(0, |p| streams(p).len()),
        path.map_or(0, |p| p.steps.len()),
    );
    frame
}

/// The details below the rows of the tree, if there is room.
fn tree_details(app: &App, frame: &ScreenFrame) -> Vec<StyledLine> {
    let (inside, most) = (frame.inside(Pane::Tree), usize::from(DETAILS_LINES) - 1);
    let is_shown = frame.panes.iter().any(|shown| shown.pane == Pane::Tree && shown.area.width >= DETAILS_FROM);
    let left = frame.tree.rows.saturating_sub(app.tree.rows.visible.len());
    let Some(beside) = app.beside.as_ref().filter(|_| is_shown && left > most + 1) else { return Vec::new() };
    let mut lines = details::place(app, &beside.details, usize::from(inside.width).saturating_sub(2));
    if lines.len() > most {
        lines.truncate(most - 1);
        lines.push(plain(StyleScope::Dim, "… i: all"));
    }
    lines
}

/// The parts of the screen, for a header that needs so many lines.
fn rectangles(app: &App, header_lines: usize) -> ScreenFrame {
    let (columns, lines) = app.size;
    let footer_lines = footer_lines(lines);
    let header = Rect::new(0, 0, columns, header_lines.min(most_header_lines(lines)) as u16);
    let body = Rect::new(0, header.height, columns, lines.saturating_sub(header.height + footer_lines));
    let panes = if columns >= SIDE_BY_SIDE && !app.zoom {
        let [first, second] = app.pane.pair();
        // A line of the list of root causes has more to show than one of histograms.
        let left = if app.pane.is_of_patterns() { columns / 2 } else { columns * 2 / 5 };
        let right = Rect { x: left + 1, width: columns - left - 1, ..body };
        vec![PaneArea { pane: first, area: Rect { width: left, ..body } }, PaneArea { pane: second, area: right }]
    } else {
        vec![PaneArea { pane: app.pane, area: body }]
    };
    let footer = Rect::new(0, lines - footer_lines, columns, footer_lines);
    // Pages and lists cover the panes; the verdict stays visible where both fit.
    let top = if footer.y.saturating_sub(body.y) >= 10 { body.y } else { 0 };
    let overlay = Rect::new(0, top, columns, footer.y.max(1).saturating_sub(top));
    let full = Rect::new(0, 0, columns, footer.y.max(1).min(lines));
    ScreenFrame { header, panes, footer, overlay, full, ..ScreenFrame::default() }
}
