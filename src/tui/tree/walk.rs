//! Ways through a differential tree: to children, to the root, and to a node that is named.

use crate::compare::DiffTree;
use crate::model::Model;
use crate::model::context::ContextId;
use crate::view::words;

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

/// True if a node is `root` or below it.
pub fn is_within(tree: &DiffTree, root: u32, node: u32) -> bool {
    let size = tree.nodes.get(root as usize).map_or(0, |node| node.size.max(1));
    (root..root + size).contains(&node)
}
