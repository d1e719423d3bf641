//! What a pane is to the rest of the interface.

use crate::tui::app::App;
use crate::tui::bookmarks::BookmarkPlace;
use crate::tui::canvas::Canvas;
use crate::tui::details::SampleExecution;
use crate::tui::frame::ScreenFrame;
use crate::tui::layers::page::PageLayer;

/// A cell of a pane that was clicked.
#[derive(Clone, Copy, Debug)]
pub struct PaneCell {
    /// Below the title.
    pub line: usize,
    pub column: usize,
    /// The pane had been in front before.
    pub was_in_front: bool,
}

/// What a pane does.
pub trait PaneView {
    fn draw(&self, canvas: &mut Canvas<'_>, app: &App);

    /// Put its lines into the frame, whose rectangles are known.
    fn lay_out(&self, app: &App, frame: &mut ScreenFrame);

    /// Bring the cursor back to an existing item.
    fn settle(&self, app: &mut App);

    /// Scroll so that the line of the cursor is visible in the frame, which is up to date.
    fn scroll(&self, app: &mut App);

    /// Lines that are shown at once.
    fn shown(&self, app: &App) -> usize;

    /// Move the cursor by lines; negative is up.
    fn vertical(&self, app: &mut App, by: isize);

    /// Move the cursor to the left (-1) or to the right (1).
    fn sideways(&self, app: &mut App, by: isize);

    /// Move the cursor to the first or the last: by more than there are.
    fn along(&self, app: &mut App, by: isize) {
        self.vertical(app, by);
    }

    /// Open the item under the cursor.
    fn open(&self, app: &mut App);

    /// The mouse button went down on a cell; true: the item there is opened.
    fn click(&self, app: &mut App, at: PaneCell) -> bool;

    /// The mouse moved to a cell with the button down.
    fn drag(&self, _app: &mut App, _at: PaneCell) {}

    /// The page about the item under the cursor.
    fn details(&self, app: &App) -> Option<PageLayer>;

    /// An execution that is an example of the item under the cursor: the one with most time there.
    fn example(&self, app: &App) -> Option<SampleExecution>;

    /// The item under the cursor as a text.
    fn copied(&self, app: &App) -> Option<String>;

    /// The item under the cursor as a place with a note.
    fn place(&self, app: &App) -> Option<BookmarkPlace>;
}
