//! The trees that the pane can show, and where contexts of the executions are in them.

use super::state::Cursor;
use crate::compare::arranged::ArrangedTree;
use crate::compare::{Cause, Comparison, DiffNode};
use crate::model::Model;
use crate::model::context::ContextId;
use crate::tui::app::App;
use crate::tui::details::cause_node;
use crate::tui::tree::find_context;
use std::sync::Arc;

impl App {
    /// The tree of the tree pane in its arrangement; `None` where it is that of the comparison.
    pub fn arranged_tree(&self) -> Option<&Arc<ArrangedTree>> {
        self.tree.inverted.as_ref().map(|shown| &shown.tree).or(self.tree.callers_first.as_ref())
    }

    /// The tree of the tree pane: the comparison, or the same with its tree arranged and the contexts of that.
    pub fn shown_tree(&self) -> Option<(Arc<Model>, Arc<Comparison>)> {
        let arranged = self.arranged_tree().map(|tree| (Arc::clone(&tree.model), Arc::clone(&tree.comparison)));
        arranged.or_else(|| self.compared_executions())
    }

    /// The tree with callers first, arranged or not, with the contexts that it is about.
    pub fn callers_first(&self) -> Option<(Arc<Model>, Arc<Comparison>)> {
        let tree = self.tree.callers_first.as_ref();
        let arranged = tree.map(|tree| (Arc::clone(&tree.model), Arc::clone(&tree.comparison)));
        arranged.or_else(|| self.compared_executions())
    }

    /// The node of the tree with callers first that a context of the executions is in.
    pub fn node_of_context(&self, context: ContextId) -> Option<u32> {
        let (model, comparison) = self.callers_first()?;
        let shown = match &self.tree.callers_first {
            Some(tree) => tree.counted(context)?,
            None => context,
        };
        find_context(&model, &comparison.tree, shown)
    }

    /// The node of the tree with callers first that a cause is about.
    pub fn node_of_cause(&self, cause: &Cause) -> Option<u32> {
        let (model, comparison) = self.compared_executions()?;
        let node = cause_node(&model, &comparison, cause)?;
        self.node_of_context(comparison.tree.nodes.get(node as usize)?.context)
    }

    /// The tree node under the cursor.
    pub fn node(&self) -> Option<(u32, &DiffNode)> {
        let Cursor::Row(row) = self.tree.cursor else { return None };
        let at = match &self.tree.icicle {
            Some(icicle) => {
                let (model, comparison) = self.shown_tree()?;
                let tree = &comparison.tree;
                icicle.node(&model, tree, &self.tree.rows.roots(&model, tree))?
            }
            None => self.tree.rows.visible.get(row)?.node()?,
        };
        let comparison = match self.arranged_tree() {
            Some(arranged) => &arranged.comparison,
            None => self.comparison.as_ref()?,
        };
        Some((at, comparison.tree.nodes.get(at as usize)?))
    }
}
