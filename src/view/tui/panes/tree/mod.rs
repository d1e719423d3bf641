//! The tree pane: the ranked causes, and below them the differential flame tree.

pub mod state;
