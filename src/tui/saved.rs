//! The part of the interface's state that is kept from one session to the next: groups, place, bookmarks.
//!
//! It refers to everything by name, so that it fits a recording that is analysed anew; names that no longer occur are
//! passed over. `keeping` makes it from the state, `update` restores it. Nothing here reads or writes files: the
//! command does (`command/state_folder.rs`).

use super::bookmarks::Bookmark;
use super::pane::Pane;
use super::tree::TreeOrder;
use serde::{Deserialize, Serialize};

/// What was open.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SavedView {
    /// The task that was chosen in the interface.
    pub task: Option<String>,
    /// Filters of the slow group, as one types them; empty: proposed.
    pub slow: String,
    /// Filters of the fast group.
    pub fast: String,
    /// The number of the pane in front.
    pub pane: u8,
    /// The order of the tree, by name.
    pub order: String,
    /// Unfolded nodes, by the frames from the root.
    pub unfolded: Vec<Vec<String>>,
    /// The node under the cursor; none where a cause was.
    pub node: Option<Vec<String>>,
    /// The metric under the cursor.
    pub metric: Option<String>,
    /// What the columns of the heat map are of, where it is not the time.
    pub heat_axis: Option<String>,
    /// Notes.
    pub bookmarks: Vec<Bookmark>,
}

impl SavedView {
    /// True if it changes what a new session shows.
    pub fn has_groups(&self) -> bool {
        self.task.is_some() || !self.slow.is_empty() || !self.fast.is_empty()
    }

    /// The order of the tree, if the name is one.
    pub fn order(&self) -> Option<TreeOrder> {
        [TreeOrder::Extra, TreeOrder::Deviations, TreeOrder::Name].into_iter().find(|o| o.name() == self.order)
    }

    /// The pane in front, if the number is one.
    pub fn pane(&self) -> Option<Pane> {
        Pane::numbered(self.pane)
    }
}
