//! Something that happened at the terminal.

use crate::tui::background::Background;
use crate::tui::key::KeyPress;

/// Something that happened at the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminalEvent {
    Key(KeyPress),
    /// Pasted text.
    Paste(String),
    /// Wheel: lines down.
    Wheel(isize),
    /// The left button, at this column and line.
    Click(u16, u16),
    /// The mouse moved to this column and line with the left button down.
    Drag(u16, u16),
    /// The terminal's answer about its background.
    Background(Background),
    /// The window has another size.
    Resized,
    /// The terminal sends nothing any more.
    Closed,
}
