//! Layout: from the size of the screen and the texts to show to the [`ScreenFrame`], once after each message.
//!
//! Cost: the header is wrapped once; all else is arithmetic.

use super::app::App;
use super::frame::{PaneArea, ScreenFrame, footer_lines, most_header_lines};
use super::header;
use super::pane::Pane;
use super::panes;
use ratatui::layout::Rect;

/// From this width on two panes are side by side.
pub const SIDE_BY_SIDE: u16 = 140;

/// The frame of the state.
pub fn frame(app: &App) -> ScreenFrame {
    let header_lines = header::lines(app, usize::from(app.size.0));
    let mut frame = rectangles(app, header_lines.len());
    frame.header_lines = header_lines;
    for pane in Pane::ALL {
        panes::view(pane).lay_out(app, &mut frame);
    }
    frame
}

/// The parts of the screen, for a header that needs this many lines.
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
