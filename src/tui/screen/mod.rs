//! The whole screen from the state: header, panes, footer, and dialogs. Nothing here changes any state or computes any
//! layout: rectangles and wrapped texts are in [`App::frame`].

pub mod footer;
pub mod header;

use super::app::App;
use super::canvas::{Canvas, to_ascii, wrap};
use super::frame::ScreenFrame;
use super::header::SMALL;
use super::job::Busy;
use super::pane::Pane;
use super::panes;
use super::tabs::tabs;
use super::theme::StyleScope;
use super::widget::progress;
use header::FirstCut;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Draw everything into a new buffer of the screen's size.
pub fn draw(app: &App) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, app.size.0, app.size.1));
    let frame = &app.frame;
    let mut canvas = Canvas::new(&mut buffer, &app.theme);
    canvas.clear();
    let left_out = if app.size.1 < SMALL { FirstCut::Title } else { FirstCut::Groups };
    header::draw(&mut canvas.part(frame.header), &frame.header_lines, left_out);
    for shown in &frame.panes {
        draw_pane(&mut canvas.part(shown.area), app, frame, shown.pane);
    }
    for tab in tabs(frame, app.pane) {
        let scope = if tab.pane == app.pane { StyleScope::Title } else { StyleScope::Dim };
        canvas.part(tab.area).text(0, 0, &format!(" {} ", tab.title), scope);
    }
    if let [first, _] = frame.panes.as_slice() {
        for y in first.area.top()..first.area.bottom() {
            canvas.text(usize::from(first.area.right()), usize::from(y), "│", StyleScope::Rule);
        }
    }
    footer::draw(&mut canvas.part(frame.footer), app);
    // A line leaves the timeline in sight that it searches.
    let from = app.layers.iter().rposition(|layer| !layer.shows_below()).unwrap_or(0);
    for layer in app.layers.iter().skip(from) {
        layer.draw(&mut canvas, app);
    }
    if app.options.ascii {
        to_ascii(&mut buffer);
    }
    buffer
}

fn draw_pane(canvas: &mut Canvas<'_>, app: &App, frame: &ScreenFrame, pane: Pane) {
    canvas.fill(0, 0, canvas.width(), '─', StyleScope::Rule);
    let inside = frame.inside(pane);
    let mut inner = canvas.part(inside);
    if pane.is_of_patterns() && app.patterns.found.is_none() {
        waiting(&mut inner, app.patterns.busy.as_ref(), app.patterns.failure.as_deref());
    } else if !pane.is_of_patterns() && app.comparison.is_none() && app.counts.is_none() {
        waiting(&mut inner, app.busy.as_ref(), app.failure.as_deref());
    } else {
        panes::view(pane).draw(&mut inner, app);
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
