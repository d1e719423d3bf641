//! Call paths of operations: what encloses a call, each path once.
//!
//! A path is a small number; interning one call further is one hash look-up. Parents precede children.

use crate::base::names::NameId;
use foldhash::HashMap;

/// No call path.
pub const NO_PATH: u32 = u32::MAX;

/// The call path of an operation, and that of the time behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// Position in `Operations::paths` of the path that ends with the operation.
    pub path: u32,
    /// Of the path in which most of the time until the next operation was spent; [`NO_PATH`] outside all.
    pub after: u32,
}

/// Call paths: each once, parents first.
#[derive(Clone, Debug, Default)]
pub struct CallPaths {
    nodes: Vec<(u32, NameId)>,
    ids: HashMap<(u32, NameId), u32>,
}

impl CallPaths {
    /// The path one call further, made on first sight.
    pub fn child(&mut self, parent: u32, name: NameId) -> u32 {
        *self.ids.entry((parent, name)).or_insert_with(|| {
            self.nodes.push((parent, name));
            self.nodes.len() as u32 - 1
        })
    }

    /// Parent and last name of a path; `None` for [`NO_PATH`].
    pub fn get(&self, path: u32) -> Option<(u32, NameId)> {
        self.nodes.get(path as usize).copied()
    }

    /// The path around one.
    pub fn parent(&self, path: u32) -> u32 {
        self.get(path).map_or(NO_PATH, |(parent, _)| parent)
    }

    /// The names of a path, outermost first.
    pub fn names(&self, path: u32) -> Vec<NameId> {
        let mut names = Vec::new();
        let mut at = path;
        while let Some((parent, name)) = self.get(at) {
            names.push(name);
            at = parent;
        }
        names.reverse();
        names
    }

    /// Number of paths.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Take in others; gives the new position of each.
    pub fn merge(&mut self, others: &CallPaths) -> Vec<u32> {
        let mut ids: Vec<u32> = Vec::with_capacity(others.nodes.len());
        for (parent, name) in &others.nodes {
            let parent = ids.get(*parent as usize).copied().unwrap_or(NO_PATH);
            ids.push(self.child(parent, *name));
        }
        ids
    }
}
