//! The tour: a few steps through the interface, each one thing to do, on a recording that comes with the program.
//!
//! A step is done when the state of the interface says so, whichever keys led there (`update/tour.rs`): the tour
//! neither takes keys nor presses any. Its line is below the verdict.

/// The progress of the tour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TourProgress {
    step: usize,
}

/// The texts of the steps.
const TEXTS: [&str; 9] = [
    "the sentence above is the answer: what the slow executions do that the fast ones don't. Its causes are \
               listed below. Press Enter to go to the place of the first one.",
    "a row is a call path. 'extra' is how much longer the slow group spends there, 'dev' how sure that is. \
               Up and Down move, Right unfolds. Press i for the details of this row.",
    "these are example executions, with the time of day for your logs. Press Esc to close the page.",
    "other questions need other evidence. Press 1 for the metrics of both groups: the ones that separate \
               them best come first.",
    "ask what you mean: press s, clear the line with Ctrl-u, type duration>20ms and press Enter. Tab \
               completes names.",
    "everything was compared anew, all others are the fast group now. Press u to undo.",
    "press F: the difference by function, with its callers and callees; Esc closes it.",
    "close the list with Esc and press w: what this recording cannot say, and the option that would have \
               recorded it.",
    "Esc closes the page. e exports all of this, Y copies a summary for a ticket, b keeps a note. Press ? \
               for all keys.",
];

impl TourProgress {
    /// The position of the current step.
    pub fn step(self) -> usize {
        self.step
    }

    /// The text of the current step, with its number; `key` skips it.
    pub fn text(self, key: &str) -> String {
        let text = TEXTS.get(self.step).copied().unwrap_or_default();
        format!("Tour {} of {} ({key} skips): {text}", self.step + 1, TEXTS.len())
    }

    /// The tour after this step; `None` after the last one.
    pub fn next(self) -> Option<TourProgress> {
        (self.step + 1 < TEXTS.len()).then_some(TourProgress { step: self.step + 1 })
    }
}
