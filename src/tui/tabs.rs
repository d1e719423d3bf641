//! The titles of the panes: their texts and places, for drawing and for clicks.

use super::canvas::width;
use super::frame::ScreenFrame;
use super::pane::Pane;
use ratatui::layout::Rect;

/// A title on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tab {
    pub pane: Pane,
    /// The title, or its number alone.
    pub title: &'static str,
    /// The cells of the title with a blank on both sides.
    pub area: Rect,
}

/// The titles: of both panes where two are side by side, else of all four. Where these do not all fit, only that of the
/// pane in front is written out.
pub fn tabs(frame: &ScreenFrame, front: Pane) -> Vec<Tab> {
    let at = |x: u16, title: &'static str, y: u16| Rect::new(x, y, width(title) as u16 + 2, 1);
    if let [_, _] = frame.panes.as_slice() {
        let tab = |p: &super::frame::PaneArea| Tab {
            pane: p.pane,
            title: p.pane.title(),
            area: at(p.area.x + 1, p.pane.title(), p.area.y),
        };
        return frame.panes.iter().map(tab).collect();
    }
    let Some(shown) = frame.panes.first().filter(|p| p.area.height > 0) else { return Vec::new() };
    let all: usize = Pane::ALL.iter().map(|p| width(p.title()) + 3).sum();
    let short = all > usize::from(shown.area.width);
    let mut x = shown.area.x + 1;
    let tab = |pane: Pane| {
        let title = pane.title();
        let title = if short && pane != front { title.get(..1).unwrap_or(title) } else { title };
        let area = at(x, title, shown.area.y);
        x = area.right() + 1;
        Tab { pane, title, area }
    };
    Pane::ALL.into_iter().map(tab).collect()
}
