//! State of the tree pane, and of the details beside its rows.

use super::icicle::Icicle;
use crate::compare::Comparison;
use crate::compare::arranged::{ArrangedTree, Arrangement, TreeDirection};
use crate::tui::details::Details;
use crate::tui::search::TextSearch;
use crate::tui::tree::{SmallNodes, TreeItem, TreeRows};
use std::sync::Arc;

/// Position of the cursor in the tree pane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// On a cause of the list.
    Cause(usize),
    /// On a row of the tree.
    Row(usize),
}

impl Default for Cursor {
    fn default() -> Cursor {
        Cursor::Cause(0)
    }
}

/// Nodes of the tree that have time of a cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarkedNodes {
    /// The cause, by position; `None` before the cursor was on one.
    pub cause: Option<usize>,
    /// The nodes, ascending.
    pub nodes: Vec<u32>,
}

/// The inverted tree, and the rows of the other one.
#[derive(Clone, Debug)]
pub struct ShownInverted {
    pub tree: Arc<ArrangedTree>,
    /// The rows of the tree with callers first, for the way back.
    pub rows: TreeRows,
    /// The cursor in them.
    pub cursor: Cursor,
    /// The cursor in the icicle of that tree, where there was one.
    pub icicle: Option<Icicle>,
}

/// State of the tree pane.
#[derive(Clone, Debug, Default)]
pub struct TreePane {
    /// The visible nodes.
    pub rows: TreeRows,
    pub cursor: Cursor,
    /// The first row shown.
    pub offset: usize,
    /// The first cause shown.
    pub cause_offset: usize,
    /// The last search.
    pub search: TextSearch,
    /// Nodes with time of the cause that the cursor was on last; their rows are marked.
    pub marked: MarkedNodes,
    /// How the trees are arranged, but for their direction.
    pub arrangement: Arrangement,
    /// The tree with callers first in this arrangement; `None` where it is that of the comparison.
    pub callers_first: Option<Arc<ArrangedTree>>,
    /// The tree with callees first, while it is shown; the rows and the cursor are about it then.
    pub inverted: Option<ShownInverted>,
    /// The tree is drawn as an icicle. The cursor on a row is then one on a box.
    pub icicle: Option<Icicle>,
    /// The user has moved or unfolded something: leave it as it is when results are replaced.
    pub touched: bool,
}

impl TreePane {
    /// The direction of the tree that is shown.
    pub fn direction(&self) -> TreeDirection {
        self.rows.direction()
    }

    /// The small nodes under the cursor, if it is on a row of several.
    pub fn small_nodes(&self) -> Option<SmallNodes> {
        let Cursor::Row(row) = self.cursor else { return None };
        match self.rows.visible.get(row)? {
            TreeItem::Small(small) => Some(*small),
            TreeItem::Node(_) => None,
        }
    }
}

/// What the cursor of the tree pane is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreePaneItem {
    /// A cause, by position.
    Cause(usize),
    /// A node of the tree that is shown, by position.
    Node(u32),
}

/// Details of the item under the cursor, without executions.
#[derive(Clone, Debug)]
pub struct DetailsBeside {
    pub item: TreePaneItem,
    /// The tree that it is of.
    pub tree: Arc<Comparison>,
    pub details: Details,
}
