//! A search in a pane: its text and its matches.

/// A search and its matches, in the order of drawing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextSearch {
    pub text: String,
    /// Nodes of the tree, or root causes.
    pub matches: Vec<u32>,
}

impl TextSearch {
    /// True if a frame contains the text; letters are compared without case.
    pub fn is_in(&self, frame: &str) -> bool {
        !self.text.is_empty() && frame.to_lowercase().contains(&self.text.to_lowercase())
    }
}

/// A step along the matches, which begin again after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchStep {
    /// The one under the cursor, or the next.
    Here,
    Next,
    Previous,
}

impl MatchStep {
    /// The match to go to, of `count`: `before` of them precede the cursor, `until` precede it or are under it.
    pub fn target(self, before: usize, until: usize, count: usize) -> usize {
        match self {
            MatchStep::Here => before % count.max(1),
            MatchStep::Next => until % count.max(1),
            MatchStep::Previous => (before + count).saturating_sub(1) % count.max(1),
        }
    }
}
