//! Input and output of the update: messages come in, effects go out.

use super::background::Background;
use super::job::{Busy, Done, Job, JobLane, WriteOutcome};
use super::key::KeyPress;
use crate::base::file::Existing;
use std::path::PathBuf;

/// Input of the update.
#[derive(Debug)]
pub enum UiMessage {
    Key(KeyPress),
    /// Pasted text.
    Paste(String),
    /// The screen has this size now.
    Resize(u16, u16),
    /// The wheel, by lines; negative is up.
    Wheel(isize),
    /// The mouse button went down on a cell.
    Click(u16, u16),
    /// The mouse moved to a cell with the button down.
    Drag(u16, u16),
    /// A job has a result.
    Done(Done),
    /// Progress of the running job of a lane.
    Progress(JobLane, Busy),
    /// The picture is saved, or not.
    Saved(PathBuf, WriteOutcome),
    /// The terminal has reported its background.
    Background(Background),
}

/// Work for the loop.
#[derive(Clone, Debug)]
pub enum UiEffect {
    /// Run a job.
    Start(Job),
    /// Send a text to the terminal's clipboard.
    Copy(String),
    /// Draw the screen into a file.
    SavePicture {
        /// The file.
        path: PathBuf,
        /// For a file that exists.
        existing: Existing,
    },
    /// Keep the state for the next session now: a bookmark changed.
    KeepState,
    /// Draw everything again.
    Redraw,
    /// Stop until `fg`.
    Suspend,
    /// End.
    Quit,
}
