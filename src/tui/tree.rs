//! The visible nodes of the differential tree, their order, and the position of the cursor.
//!
//! In: a comparison's tree (pre-order, possibly millions of nodes). State: the unfolded contexts and, made from them,
//! the visible nodes in the order of drawing. Unfolding and folding splice that list; children are found by jumping
//! over subtrees; nothing else is ever touched, so a key costs the rows that it changes. Children below one per cent of
//! the whole share a row with their sum. A node shares its row with an only child that has the same time, and so on: a
//! chain of calls says nothing but its names. A thread has a row of its own, since a path that goes over to it is no
//! call, and so has a root of the tree with callees first, which is what all below is about. Contexts are handles of
//! the model and stay valid when groups change; for another model they are found again by name.

mod items;
mod walk;

use crate::compare::arranged::TreeDirection;
use crate::compare::{DiffNode, DiffTree};
use crate::model::Model;
use crate::model::context::{ContextId, FrameKind};
use crate::view::words;
use items::SmallLimits;
pub use items::{NodeChain, SmallNodes, TreeItem};
use std::cmp::Ordering;
use std::collections::BTreeSet;
pub use walk::{ancestry, children, find_context, find_path, is_within, path_text};

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

/// Part of the time of the first node of a chain by which the times of the others may be less.
const SAME: f64 = 0.02;

/// The visible part of a tree.
#[derive(Clone, Debug, Default)]
pub struct TreeRows {
    /// The rows, from top to bottom.
    pub visible: Vec<TreeItem>,
    unfolded: BTreeSet<ContextId>,
    /// Nodes (`None`: above the roots) whose small children have rows of their own.
    split: BTreeSet<Option<ContextId>>,
    /// Nodes whose only child has a row of its own, whatever its time.
    opened: BTreeSet<ContextId>,
    /// Roots of the subtrees that were zoomed into, each below the one before it. Rows show the last one alone.
    zoom: Vec<ContextId>,
    small: SmallLimits,
    order: TreeOrder,
    direction: TreeDirection,
}

impl TreeRows {
    /// Nothing is unfolded; the rows are made by [`TreeRows::rebuild`].
    pub fn new(direction: TreeDirection) -> TreeRows {
        TreeRows { direction, ..TreeRows::default() }
    }

    /// What the roots are.
    pub fn direction(&self) -> TreeDirection {
        self.direction
    }

    /// The order of siblings.
    pub fn order(&self) -> TreeOrder {
        self.order
    }

    /// True if the node's children are shown.
    pub fn is_unfolded(&self, node: &DiffNode) -> bool {
        self.unfolded.contains(&node.context)
    }

    /// The nodes that rows without another row above them are about.
    pub fn roots(&self, model: &Model, tree: &DiffTree) -> Vec<u32> {
        let zoomed = self.zoom.last().and_then(|context| find_context(model, tree, *context));
        zoomed.map_or_else(|| children(tree, None).collect(), |root| vec![root])
    }

    /// Make the list again: another tree, another order. Where the groups no longer have what was zoomed into, they
    /// have what it is in.
    pub fn rebuild(&mut self, model: &Model, tree: &DiffTree) {
        while self.zoom.pop_if(|context| find_context(model, tree, *context).is_none()).is_some() {}
        let roots = self.roots(model, tree);
        self.small = SmallLimits::new(roots.iter().filter_map(|at| tree.nodes.get(*at as usize)));
        let rows = match (self.zoom.is_empty(), roots.first()) {
            (false, Some(root)) => vec![self.row(model, tree, *root, 0)],
            _ => self.items(model, tree, None),
        };
        self.visible = self.unfolded_rows(model, tree, rows);
    }

    /// The first node of a row; `None` where it is about several siblings.
    pub fn first_node(&self, row: usize) -> Option<u32> {
        match self.visible.get(row)? {
            TreeItem::Node(chain) => Some(chain.first),
            TreeItem::Small(_) => None,
        }
    }

    /// Show the subtree of a node alone; false where it is that already.
    pub fn zoom_in(&mut self, node: u32, model: &Model, tree: &DiffTree) -> bool {
        let context = |at: u32| tree.nodes[at as usize].context;
        let root = context(node);
        if self.zoom.last() == Some(&root) {
            return false;
        }
        self.zoom.push(root);
        self.unfolded.insert(context(self.chain_end(model, tree, node)));
        self.rebuild(model, tree);
        true
    }

    /// Show what was shown before the last zoom, and return the row of the node that was zoomed into.
    pub fn zoom_out(&mut self, model: &Model, tree: &DiffTree) -> Option<usize> {
        let root = self.zoom.pop()?;
        self.rebuild(model, tree);
        find_context(model, tree, root).map(|node| self.reveal(node, model, tree))
    }

    /// Show the whole tree, and return the row of the node that was zoomed into last.
    pub fn zoom_out_fully(&mut self, model: &Model, tree: &DiffTree) -> Option<usize> {
        let last = self.zoom.len().checked_sub(1)?;
        self.zoom.drain(..last);
        self.zoom_out(model, tree)
    }

    /// The roots of the subtrees that were zoomed into, the last one shown.
    pub fn zoom(&self) -> &[ContextId] {
        &self.zoom
    }

    /// The visible rows of some rows and of what is below them.
    fn unfolded_rows(&self, model: &Model, tree: &DiffTree, mut stack: Vec<TreeItem>) -> Vec<TreeItem> {
        let mut rows = Vec::new();
        stack.reverse();
        while let Some(item) = stack.pop() {
            rows.push(item);
            if let TreeItem::Node(chain) = item
                && self.is_unfolded(&tree.nodes[chain.last as usize])
            {
                stack.extend(self.items(model, tree, Some(chain)).into_iter().rev());
            }
        }
        rows
    }

    /// The visible rows below a row.
    fn below(&self, model: &Model, tree: &DiffTree, chain: NodeChain) -> Vec<TreeItem> {
        self.unfolded_rows(model, tree, self.items(model, tree, Some(chain)))
    }

    /// The row that begins with this node.
    fn row(&self, model: &Model, tree: &DiffTree, first: u32, depth: u32) -> TreeItem {
        TreeItem::Node(NodeChain { first, last: self.chain_end(model, tree, first), depth })
    }

    /// The last node of the chain that begins with this one.
    fn chain_end(&self, model: &Model, tree: &DiffTree, first: u32) -> u32 {
        let whole = &tree.nodes[first as usize];
        let less = SAME * whole.slow_mean_ns.max(whole.fast_mean_ns);
        let is_thread = |node: &DiffNode| matches!(model.contexts.frame(node.context).kind, FrameKind::Thread(_));
        let is_same = |node: &DiffNode| {
            whole.slow_mean_ns - node.slow_mean_ns <= less
                && whole.fast_mean_ns - node.fast_mean_ns <= less
                && !is_thread(node)
        };
        let mut last = first;
        if is_thread(whole) || whole.parent.is_none() && self.direction == TreeDirection::CalleesFirst {
            return first;
        }
        while !self.opened.contains(&tree.nodes[last as usize].context) {
            let mut below = children(tree, Some(last));
            match (below.next(), below.next()) {
                (Some(only), None) if is_same(&tree.nodes[only as usize]) => last = only,
                _ => break,
            }
        }
        last
    }

    /// The rows of the children of a row's node in the order of drawing: from two small ones on, these share the last
    /// row.
    fn items(&self, model: &Model, tree: &DiffTree, parent: Option<NodeChain>) -> Vec<TreeItem> {
        let (parent, depth) = (parent.map(|chain| chain.last), parent.map_or(0, |chain| chain.depth + 1));
        let children = self.children(model, tree, parent);
        let row = |first: u32| self.row(model, tree, first, depth);
        let node = |at: &u32| &tree.nodes[*at as usize];
        let (small, large): (Vec<u32>, Vec<u32>) = children.iter().partition(|at| self.small.is_small(node(at)));
        let split = self.split.contains(&parent.map(|at| tree.nodes[at as usize].context));
        let (true, Some(first)) = (small.len() >= 2 && !split, small.first()) else {
            return children.into_iter().map(row).collect();
        };
        let sum = |value: fn(&DiffNode) -> f64| small.iter().map(|at| value(node(at))).sum();
        let together = SmallNodes {
            parent,
            first: *first,
            count: small.len() as u32,
            depth,
            slow_mean_ns: sum(|n| n.slow_mean_ns),
            fast_mean_ns: sum(|n| n.fast_mean_ns),
            delta_ns: sum(|n| n.delta_ns),
        };
        large.into_iter().map(row).chain([TreeItem::Small(together)]).collect()
    }

    /// Give the small nodes of a row rows of their own; returns that of the first one.
    pub fn split(&mut self, small: SmallNodes, model: &Model, tree: &DiffTree) -> usize {
        self.split.insert(small.parent.map(|at| tree.nodes[at as usize].context));
        self.rebuild(model, tree);
        self.row_of(small.first).unwrap_or(0)
    }

    /// Change the order of siblings.
    pub fn set_order(&mut self, order: TreeOrder, model: &Model, tree: &DiffTree) {
        self.order = order;
        self.rebuild(model, tree);
    }

    /// Forget what was unfolded.
    pub fn fold_all(&mut self) {
        self.unfolded.clear();
        self.split.clear();
        self.opened.clear();
        self.zoom.clear();
    }

    /// The row of a node, if it is visible.
    pub fn row_of(&self, node: u32) -> Option<usize> {
        self.visible.iter().position(|item| matches!(item, TreeItem::Node(chain) if chain.has(node)))
    }

    /// Give each node of the chain in `row` a row of its own; false where it has one node.
    pub fn open_chain(&mut self, row: usize, model: &Model, tree: &DiffTree) -> bool {
        let Some(TreeItem::Node(chain)) = self.visible.get(row).copied().filter(|item| item.node().is_some()) else {
            return false;
        };
        for at in chain.first..chain.last {
            let context = tree.nodes[at as usize].context;
            self.opened.insert(context);
            self.unfolded.insert(context);
        }
        if chain.is_long() {
            self.rebuild(model, tree);
        }
        chain.is_long()
    }

    /// Show the children of the node in `row`; where there is only one child, its children too, and so on.
    pub fn unfold(&mut self, row: usize, model: &Model, tree: &DiffTree) {
        let mut row = row;
        while let Some(&TreeItem::Node(chain)) = self.visible.get(row) {
            if !self.unfolded.insert(tree.nodes[chain.last as usize].context) {
                return;
            }
            let only = self.items(model, tree, Some(chain)).len() == 1;
            let shown = self.below(model, tree, chain);
            self.visible.splice(row + 1..row + 1, shown);
            if !only {
                return;
            }
            row += 1;
        }
    }

    /// Hide everything below the node in `row`: its chain is one row again.
    pub fn fold(&mut self, row: usize, model: &Model, tree: &DiffTree) {
        let Some(&TreeItem::Node(chain)) = self.visible.get(row) else { return };
        let context = |at: u32| tree.nodes[at as usize].context;
        if !self.unfolded.remove(&context(chain.last)) {
            return;
        }
        let below = self.visible[row + 1..].iter().take_while(|item| item.depth() > chain.depth).count();
        self.visible.drain(row + 1..row + 1 + below);
        // Small children share a row again when they are shown the next time.
        self.split.remove(&Some(context(chain.last)));
        if self.opened.remove(&context(chain.last)) {
            let last = loop {
                let last = self.chain_end(model, tree, chain.first);
                self.unfolded.remove(&context(last));
                if !self.opened.remove(&context(last)) {
                    break last;
                }
            };
            self.visible[row] = TreeItem::Node(NodeChain { last, ..chain });
        }
    }

    /// Unfold everything above a node and return its row.
    pub fn reveal(&mut self, node: u32, model: &Model, tree: &DiffTree) -> usize {
        let holds = |root: &ContextId| find_context(model, tree, *root).is_some_and(|root| is_within(tree, root, node));
        let mut changed = false;
        while self.zoom.pop_if(|root| !holds(root)).is_some() {
            changed = true;
        }
        let roots = self.roots(model, tree);
        self.small = SmallLimits::new(roots.iter().filter_map(|at| tree.nodes.get(*at as usize)));
        let mut at = tree.nodes.get(node as usize);
        while let Some(n) = at {
            let above = n.parent.map(|at| &tree.nodes[at as usize]);
            if self.small.is_small(n) {
                changed |= self.split.insert(above.map(|n| n.context));
            }
            if let Some(above) = above {
                changed |= self.unfolded.insert(above.context);
            }
            at = above;
        }
        if changed {
            self.rebuild(model, tree);
        }
        let row = self.row_of(node).unwrap_or(0);
        if self.visible.get(row).is_some_and(|item| item.node() != Some(node)) {
            self.open_chain(row, model, tree);
        }
        self.row_of(node).unwrap_or(0)
    }

    /// The row of the parent.
    pub fn parent_row(&self, row: usize, tree: &DiffTree) -> Option<usize> {
        let parent = match self.visible.get(row)? {
            TreeItem::Node(chain) => tree.nodes[chain.first as usize].parent?,
            TreeItem::Small(small) => small.parent?,
        };
        self.visible[..row].iter().rposition(|item| item.node() == Some(parent))
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

    /// What was zoomed into as paths of drawn frames, to find it again in another model.
    pub fn remember_zoom(&self, model: &Model) -> Vec<Vec<String>> {
        self.zoom.iter().map(|context| path_text(model, *context)).collect()
    }

    /// Zoom into what was remembered, as far as it is there.
    pub fn recall_zoom(&mut self, paths: &[Vec<String>], model: &Model, tree: &DiffTree) {
        let found = paths.iter().filter_map(|path| find_path(model, tree, path));
        self.zoom = found.map(|at| tree.nodes[at as usize].context).collect();
    }

    /// The unfolded contexts as paths of drawn frames, to find them again in another model.
    pub fn remember(&self, model: &Model) -> Vec<Vec<String>> {
        self.unfolded.iter().map(|c| path_text(model, *c)).collect()
    }

    /// Unfold what was remembered, as far as it is there.
    pub fn recall(&mut self, paths: &[Vec<String>], model: &Model, tree: &DiffTree) {
        let found = paths.iter().filter_map(|p| find_path(model, tree, p));
        self.unfolded = found.map(|at| tree.nodes[at as usize].context).collect();
        self.zoom.clear();
    }
}

fn descending(a: f64, b: f64) -> Ordering {
    b.total_cmp(&a)
}
