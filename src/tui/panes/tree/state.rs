//! State of the tree pane, and of the details beside its rows.

use crate::compare::arranged::{ArrangedTree, Arrangement, TreeDirection};
use crate::compare::{Comparison, DiffTree};
use crate::model::Model;
use crate::model::context::ContextId;
use crate::tui::details::Details;
use crate::tui::search::TextSearch;
use crate::tui::tree::{SmallNodes, TreeItem, TreeRows, find_context, is_within};
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

/// The tree drawn as an icicle.
#[derive(Clone, Debug, Default)]
pub struct Icicle {
    /// The context under the cursor; `None` before there was one.
    pub at: Option<ContextId>,
    /// The first level that is shown.
    pub offset: usize,
}

impl Icicle {
    /// With the cursor on a context.
    pub fn new(at: Option<ContextId>) -> Icicle {
        Icicle { at, offset: 0 }
    }

    /// The node under the cursor: that of its context, or the nearest one above it that is there, or the first root.
    pub fn node(&self, model: &Model, tree: &DiffTree, roots: &[u32]) -> Option<u32> {
        let above = std::iter::successors(self.at, |at| model.contexts.parent(*at));
        let is_shown = |node: &u32| roots.iter().any(|root| is_within(tree, *root, *node));
        let found = above.filter_map(|context| find_context(model, tree, context)).find(is_shown);
        found.or_else(|| roots.first().copied())
    }
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
