//! Bookmarks: a place in the results, by name, with a note of the user.
//!
//! A place refers to names and times, not to positions, so that it is found again after a change of the groups and in
//! the next session. A bookmark belongs to a task; places of another task are named and not gone to.

use serde::{Deserialize, Serialize};

/// A place with a note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bookmark {
    /// The task whose executions were on the screen.
    pub task: Option<String>,
    pub place: BookmarkPlace,
    pub note: String,
}

/// A place in the results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum BookmarkPlace {
    /// A node of the tree.
    Context {
        /// The frames from the root.
        path: Vec<String>,
    },
    /// A row of the histograms.
    Metric { metric: String },
    Anomaly {
        /// The begin of the occurrence on the recording's clock, ns.
        start_ns: i64,
        /// The place of the anomaly in words.
        place: String,
    },
}

impl BookmarkPlace {
    /// In one line.
    pub fn title(&self) -> String {
        match self {
            BookmarkPlace::Context { path } => match path.as_slice() {
                [.., above, last] => format!("{last} < {above}"),
                [only] => only.clone(),
                [] => String::new(),
            },
            BookmarkPlace::Metric { metric } => format!("histogram of {metric}"),
            BookmarkPlace::Anomaly { place, .. } => format!("anomaly {place}"),
        }
    }
}

/// A document with the bookmarks beside it.
#[derive(Clone, Debug, Serialize)]
pub struct WithBookmarks<T> {
    #[serde(flatten)]
    document: T,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bookmarks: Vec<Bookmark>,
}

/// A document with bookmarks; without any it stays as it is.
pub fn with_bookmarks<T: Serialize>(document: T, bookmarks: &[Bookmark]) -> WithBookmarks<T> {
    WithBookmarks { document, bookmarks: bookmarks.to_vec() }
}
