//! The visible nodes of the differential tree, their order, and the position of the cursor.
//!
//! In: a comparison's tree (pre-order, possibly millions of nodes). State: the unfolded contexts and, made from
//! them, the visible nodes in the order of drawing. Unfolding and folding splice that list; children are found by
//! jumping over subtrees; nothing else is ever touched, so a key costs the rows that it changes. Contexts are handles
//! of the model and stay valid when groups change; for another model they are found again by name.

use crate::compare::{DiffNode, DiffTree};
use crate::model::Model;
use crate::model::context::ContextId;
use crate::view::words;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Order of siblings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TreeOrder {
    /// Most extra time first.
    #[default]
    Extra,
    /// Most deviations first, in either direction.
    Deviations,
    /// By name.
    Name,
}

impl TreeOrder {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            TreeOrder::Extra => "extra time",
            TreeOrder::Deviations => "deviations",
            TreeOrder::Name => "name",
        }
    }

    /// The one after it.
    pub fn next(self) -> TreeOrder {
        match self {
            TreeOrder::Extra => TreeOrder::Deviations,
            TreeOrder::Deviations => TreeOrder::Name,
            TreeOrder::Name => TreeOrder::Extra,
        }
    }
}

/// The visible part of a tree.
#[derive(Clone, Debug, Default)]
pub struct TreeRows {
    /// Positions in [`DiffTree::nodes`], from top to bottom.
    pub visible: Vec<u32>,
    unfolded: BTreeSet<ContextId>,
    order: TreeOrder,
}

impl TreeRows {
    /// The order of siblings.
    pub fn order(&self) -> TreeOrder {
        self.order
    }

    /// True if the node's children are shown.
    pub fn is_unfolded(&self, node: &DiffNode) -> bool {
        self.unfolded.contains(&node.context)
    }

    /// Make the list again: another tree, another order.
    pub fn rebuild(&mut self, model: &Model, tree: &DiffTree) {
        self.visible.clear();
        let mut stack = self.children(model, tree, None);
        stack.reverse();
        while let Some(at) = stack.pop() {
            self.visible.push(at);
            if self.is_unfolded(&tree.nodes[at as usize]) {
                let children = self.children(model, tree, Some(at));
                stack.extend(children.into_iter().rev());
            }
        }
    }

    /// Change the order of siblings.
    pub fn set_order(&mut self, order: TreeOrder, model: &Model, tree: &DiffTree) {
        self.order = order;
        self.rebuild(model, tree);
    }

    /// Forget what was unfolded.
    pub fn fold_all(&mut self) {
        self.unfolded.clear();
    }

    /// The row of a node, if it is visible.
    pub fn row_of(&self, node: u32) -> Option<usize> {
        self.visible.iter().position(|at| *at == node)
    }

    /// Show the children of the node in `row`; where there is only one child, its children too, and so on.
    pub fn unfold(&mut self, row: usize, model: &Model, tree: &DiffTree) {
        let mut row = row;
        while let Some(&at) = self.visible.get(row) {
            if !self.unfolded.insert(tree.nodes[at as usize].context) {
                return;
            }
            let mut shown = Vec::new();
            let mut stack = self.children(model, tree, Some(at));
            let only = stack.len() == 1;
            stack.reverse();
            while let Some(at) = stack.pop() {
                shown.push(at);
                if self.is_unfolded(&tree.nodes[at as usize]) {
                    stack.extend(self.children(model, tree, Some(at)).into_iter().rev());
                }
            }
            self.visible.splice(row + 1..row + 1, shown);
            if !only {
                return;
            }
            row += 1;
        }
    }

    /// Hide everything below the node in `row`.
    pub fn fold(&mut self, row: usize, tree: &DiffTree) {
        let Some(&at) = self.visible.get(row) else { return };
        let node = &tree.nodes[at as usize];
        if self.unfolded.remove(&node.context) {
            let below =
                self.visible[row + 1..].iter().take_while(|n| tree.nodes[**n as usize].depth > node.depth).count();
            self.visible.drain(row + 1..row + 1 + below);
        }
    }

    /// Unfold everything above a node and return its row.
    pub fn reveal(&mut self, node: u32, model: &Model, tree: &DiffTree) -> usize {
        let mut above = tree.nodes.get(node as usize).and_then(|n| n.parent);
        let mut changed = false;
        while let Some(at) = above {
            let n = &tree.nodes[at as usize];
            changed |= self.unfolded.insert(n.context);
            above = n.parent;
        }
        if changed {
            self.rebuild(model, tree);
        }
        self.row_of(node).unwrap_or(0)
    }

    /// The row of the parent.
    pub fn parent_row(&self, row: usize, tree: &DiffTree) -> Option<usize> {
        let node = self.visible.get(row)?;
        let parent = tree.nodes[*node as usize].parent?;
        self.visible[..row].iter().rposition(|at| *at == parent)
    }

    /// The children of a node (`None`: the roots) in the order of drawing.
    fn children(&self, model: &Model, tree: &DiffTree, parent: Option<u32>) -> Vec<u32> {
        let mut children: Vec<u32> = children(tree, parent).collect();
        let node = |at: &u32| &tree.nodes[*at as usize];
        match self.order {
            TreeOrder::Extra => children.sort_by(|a, b| descending(node(a).delta_ns, node(b).delta_ns).then(a.cmp(b))),
            TreeOrder::Deviations => {
                let size = |at: &u32| node(at).deviations.map_or(-1.0, f64::abs);
                children.sort_by(|a, b| descending(size(a), size(b)).then(a.cmp(b)));
            }
            TreeOrder::Name => children.sort_by(|a, b| {
                let name = |at: &u32| words::frame(model, node(at).context);
                name(a).cmp(&name(b)).then(a.cmp(b))
            }),
        }
        children
    }

    /// All nodes whose frame contains `text` (letters compared without case), in the order of drawing as if all
    /// were unfolded. O(nodes): names are compared once per distinct name.
    pub fn matches(&self, text: &str, model: &Model, tree: &DiffTree) -> Vec<u32> {
        let wanted = text.to_lowercase();
        let mut known = foldhash::HashMap::default();
        let mut fits = |node: &DiffNode| {
            let frame = model.contexts.frame(node.context);
            *known.entry(frame).or_insert_with(|| words::frame(model, node.context).to_lowercase().contains(&wanted))
        };
        // A subtree without a match is not sorted: its nodes need no order.
        let mut holds = vec![false; tree.nodes.len()];
        for at in (0..tree.nodes.len()).rev() {
            if fits(&tree.nodes[at]) {
                holds[at] = true;
            }
            if holds[at]
                && let Some(parent) = tree.nodes[at].parent
            {
                holds[parent as usize] = true;
            }
        }
        let mut found = Vec::new();
        let mut stack = self.children(model, tree, None);
        stack.reverse();
        while let Some(at) = stack.pop() {
            if !holds[at as usize] {
                continue;
            }
            if fits(&tree.nodes[at as usize]) {
                found.push(at);
            }
            stack.extend(self.children(model, tree, Some(at)).into_iter().rev());
        }
        found
    }

    /// Of two nodes, which is drawn first when all is unfolded.
    pub fn compare(&self, a: u32, b: u32, model: &Model, tree: &DiffTree) -> Ordering {
        let (path_a, path_b) = (ancestry(tree, a), ancestry(tree, b));
        let same = path_a.iter().zip(&path_b).take_while(|(x, y)| x == y).count();
        match (path_a.get(same), path_b.get(same)) {
            (Some(x), Some(y)) => {
                let parent = same.checked_sub(1).and_then(|i| path_a.get(i)).copied();
                let siblings = self.children(model, tree, parent);
                let place = |n: &u32| siblings.iter().position(|s| s == n);
                place(x).cmp(&place(y))
            }
            (x, y) => x.is_some().cmp(&y.is_some()),
        }
    }

    /// The unfolded contexts as paths of drawn frames, to find them again in another model.
    pub fn remember(&self, model: &Model) -> Vec<Vec<String>> {
        self.unfolded.iter().map(|c| path_text(model, *c)).collect()
    }

    /// Unfold what was remembered, as far as it is there.
    pub fn recall(&mut self, paths: &[Vec<String>], model: &Model, tree: &DiffTree) {
        let found = paths.iter().filter_map(|p| find_path(model, tree, p));
        self.unfolded = found.map(|at| tree.nodes[at as usize].context).collect();
    }
}

fn descending(a: f64, b: f64) -> Ordering {
    b.total_cmp(&a)
}

/// Children of a node in tree order, by jumping over subtrees.
pub fn children(tree: &DiffTree, parent: Option<u32>) -> impl Iterator<Item = u32> + '_ {
    let (mut at, end) = match parent {
        None => (0, tree.nodes.len()),
        Some(p) => (p as usize + 1, p as usize + tree.nodes.get(p as usize).map_or(1, |n| n.size as usize)),
    };
    std::iter::from_fn(move || {
        let node = tree.nodes.get(at).filter(|_| at < end)?;
        let this = at as u32;
        at += (node.size as usize).max(1);
        Some(this)
    })
}

/// The nodes from the root to `node`, both included.
pub fn ancestry(tree: &DiffTree, node: u32) -> Vec<u32> {
    let mut path = vec![node];
    while let Some(parent) = path.last().and_then(|at| tree.nodes.get(*at as usize)).and_then(|n| n.parent) {
        path.push(parent);
    }
    path.reverse();
    path
}

/// The node of a context, found along its path.
pub fn find_context(model: &Model, tree: &DiffTree, context: ContextId) -> Option<u32> {
    let mut at = None;
    for step in model.contexts.path(context) {
        at = Some(children(tree, at).find(|c| tree.nodes[*c as usize].context == step)?);
    }
    at
}

/// The node at a path of drawn frames.
pub fn find_path(model: &Model, tree: &DiffTree, path: &[String]) -> Option<u32> {
    let mut at = None;
    for step in path {
        at = Some(children(tree, at).find(|c| words::frame(model, tree.nodes[*c as usize].context) == *step)?);
    }
    at
}

/// A context's frames from the root, as drawn.
pub fn path_text(model: &Model, context: ContextId) -> Vec<String> {
    model.contexts.path(context).into_iter().map(|c| words::frame(model, c)).collect()
}
