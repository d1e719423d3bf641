//! The whole screen from the state: header, panes, footer, and dialogs. Nothing here changes any state.

pub mod anomalies;
pub mod anomaly;
pub mod details;
pub mod footer;
pub mod header;
pub mod help;
pub mod histograms;
pub mod path;
mod ranks;
pub mod tree;
pub mod trust;

use super::app::{App, Busy, Pane};
use super::canvas::{Canvas, to_ascii, width, wrap};
use super::layout::{ScreenLayout, layout};
use super::overlay::{Overlay, OverlayPage, PromptPurpose};
use super::theme::StyleScope;
use super::widget::page::StyledLine;
use super::widget::{list, page, progress};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Draw everything into a new buffer of the screen's size.
pub fn draw(app: &App) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, app.size.0, app.size.1));
    let layout = layout(app);
    let mut canvas = Canvas::new(&mut buffer, &app.theme);
    canvas.clear();
    header::draw(&mut canvas.part(layout.header), app);
    for (pane, area) in &layout.panes {
        draw_pane(&mut canvas.part(*area), app, &layout, *pane);
    }
    if let [(_, left), _] = layout.panes.as_slice() {
        for y in left.top()..left.bottom() {
            canvas.text(usize::from(left.right()), usize::from(y), "│", StyleScope::Rule);
        }
    }
    footer::draw(&mut canvas.part(layout.footer), app);
    let over = page_area(&layout);
    match app.overlays.last() {
        Some(Overlay::Page { page, offset }) => {
            let lines = page_lines(app, page, usize::from(over.width).saturating_sub(2));
            page::draw(&mut canvas.part(over), page_title(page), &lines, *offset);
        }
        Some(Overlay::List { title, input, choices, at }) => {
            list::draw(&mut canvas.part(over), title, input, choices, *at);
        }
        Some(Overlay::Prompt { asked, input }) => {
            let label = match asked {
                PromptPurpose::Search => "search ",
                PromptPurpose::Filter => "only with the words ",
                PromptPurpose::Export => "export JSON to ",
                PromptPurpose::Picture => "save SVG to ",
            };
            let mut line = canvas.part(last_line(app));
            line.clear();
            list::line(&mut line, 0, label, input);
        }
        Some(Overlay::Replace { path, .. }) => {
            let mut line = canvas.part(last_line(app));
            line.clear();
            line.text(
                0,
                0,
                &format!("{} already exists. Overwrite it? y: yes, any other key: no", path.display()),
                StyleScope::Warning,
            );
        }
        None => {}
    }
    if app.looks.ascii {
        to_ascii(&mut buffer);
    }
    buffer
}

fn last_line(app: &App) -> Rect {
    Rect::new(0, app.size.1.saturating_sub(1), app.size.0, app.size.1.min(1))
}

/// Pages and lists cover the panes; the verdict stays visible where there is room for both.
fn page_area(layout: &ScreenLayout) -> Rect {
    let top = layout.panes.first().map_or(0, |(_, area)| area.y);
    let top = if layout.footer.y.saturating_sub(top) >= 10 { top } else { 0 };
    Rect::new(0, top, layout.header.width, layout.footer.y.max(1).saturating_sub(top))
}

fn page_title(page: &OverlayPage) -> &'static str {
    match page {
        OverlayPage::Help => "Help",
        OverlayPage::Trust => "Data quality: losses, unknowns, caveats",
        OverlayPage::Details(_) => "Details",
        OverlayPage::Anomaly(..) => "Anomaly",
        OverlayPage::Patterns => "Patterns: selected and rejected",
        OverlayPage::Ranks => "Ranks over time",
    }
}

fn page_lines(app: &App, page: &OverlayPage, columns: usize) -> Vec<StyledLine> {
    match page {
        OverlayPage::Help => help::lines(columns),
        OverlayPage::Trust => trust::lines(app, columns),
        OverlayPage::Details(details) => details::lines(app, details, columns),
        OverlayPage::Anomaly(found, at) => anomaly::lines(app, found, *at, columns),
        OverlayPage::Patterns => app.patterns.found.as_ref().map_or(Vec::new(), |f| anomaly::patterns(f, columns)),
        OverlayPage::Ranks => ranks::lines(app, columns),
    }
}

/// Lines of the page on top, and how many of them are shown at once.
pub fn page_size(app: &App) -> Option<(usize, usize)> {
    let Some(Overlay::Page { page, .. }) = app.overlays.last() else { return None };
    let area = page_area(&layout(app));
    let lines = page_lines(app, page, usize::from(area.width).saturating_sub(2)).len();
    Some((lines, usize::from(area.height).saturating_sub(1)))
}

/// The text of the page on top, for the clipboard.
pub fn page_text(app: &App) -> Option<String> {
    let Some(Overlay::Page { page, .. }) = app.overlays.last() else { return None };
    let line = |line: StyledLine| line.into_iter().map(|(_, text)| text).collect::<String>();
    Some(page_lines(app, page, 100).into_iter().map(line).collect::<Vec<_>>().join("\n"))
}

fn draw_pane(canvas: &mut Canvas<'_>, app: &App, layout: &ScreenLayout, pane: Pane) {
    canvas.fill(0, 0, canvas.width(), '─', StyleScope::Rule);
    if layout.panes.len() > 1 {
        let scope = if pane == app.pane { StyleScope::Title } else { StyleScope::Dim };
        canvas.text(1, 0, &format!(" {} ", pane.title()), scope);
    } else {
        // If the titles do not all fit, only that of the pane in front is written out.
        let all: usize = Pane::ALL.iter().map(|p| width(p.title()) + 3).sum();
        let short = all > canvas.width();
        let mut at = 1;
        for other in Pane::ALL {
            let (front, title) = (other == app.pane, other.title());
            let title = if short && !front { title.get(..1).unwrap_or(title) } else { title };
            at = canvas.text(at, 0, &format!(" {title} "), if front { StyleScope::Title } else { StyleScope::Dim }) + 1;
        }
    }
    let inside = layout.inside(pane);
    let mut inner = canvas.part(inside);
    if pane.is_of_patterns() && app.patterns.found.is_none() {
        waiting(&mut inner, app.patterns.busy.as_ref(), app.patterns.failure.as_deref());
    } else if !pane.is_of_patterns() && app.comparison.is_none() && app.counts.is_none() {
        waiting(&mut inner, app.busy.as_ref(), app.failure.as_deref());
    } else {
        match pane {
            Pane::Histograms => histograms::draw(&mut inner, app),
            Pane::Tree => tree::draw(&mut inner, app),
            Pane::Anomalies => anomalies::draw(&mut inner, app),
            Pane::Path => path::draw(&mut inner, app),
        }
    }
}

/// Before there are results: progress of the analysis, or its failure and the remedy.
fn waiting(canvas: &mut Canvas<'_>, busy: Option<&Busy>, failure: Option<&str>) {
    let y = canvas.height() / 3;
    match (busy, failure) {
        (Some(busy), _) => progress::draw(canvas, 2, y, busy),
        (None, Some(failure)) => {
            let lines = wrap(failure, canvas.width().saturating_sub(4));
            for (i, line) in lines.iter().enumerate() {
                canvas.text(2, y + i, line, StyleScope::Error);
            }
            canvas.text(2, y + lines.len(), "q: quit, ?: show the keys", StyleScope::Dim);
        }
        (None, None) => {}
    }
}
