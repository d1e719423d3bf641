//! Call paths of operations: what encloses a call, each path once.
//!
//! A path is a small number; interning one call further is one hash look-up, and none where it was interned lately.
//! Parents precede children.

use crate::base::names::NameId;
use foldhash::HashMap;

/// The number of positions that are known without a hash look-up.
const RECENT: usize = 32;

/// The place of a pair of numbers among those.
fn recent(one: u32, other: u32) -> usize {
    (one.wrapping_mul(7) ^ other) as usize % RECENT
}

/// No call path.
pub const NO_PATH: u32 = u32::MAX;

/// The call path of an operation, and that of the time after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallSite {
    /// Position in `Operations::paths` of the path that ends with the operation.
    pub path: u32,
    /// Of the path in which most of the time until the next operation was spent; [`NO_PATH`] outside all.
    pub after: u32,
}

/// The call sites of a stream's operations, by position. Few of them differ, so that an operation keeps a number of two
/// bytes, and of four only where a stream has more than 65,536 of them.
#[derive(Clone, Debug, Default)]
pub struct CallSites {
    distinct: Vec<CallSite>,
    numbers: CallSiteNumbers,
    /// Numbers of the distinct ones; empty when all are there.
    known: HashMap<CallSite, u32>,
    /// Numbers that were used lately.
    recent: [u32; RECENT],
}

#[derive(Clone, Debug)]
enum CallSiteNumbers {
    Narrow(Vec<u16>),
    Wide(Vec<u32>),
}

impl Default for CallSiteNumbers {
    fn default() -> Self {
        CallSiteNumbers::Narrow(Vec::new())
    }
}

impl CallSites {
    /// That of the next operation.
    pub fn push(&mut self, site: CallSite) {
        let recent = &mut self.recent[recent(site.path, site.after)];
        if self.distinct.get(*recent as usize) != Some(&site) {
            *recent = *self.known.entry(site).or_insert_with(|| {
                self.distinct.push(site);
                self.distinct.len() as u32 - 1
            });
        }
        let number = *recent;
        match (&mut self.numbers, u16::try_from(number)) {
            (CallSiteNumbers::Narrow(all), Ok(number)) => all.push(number),
            (CallSiteNumbers::Wide(all), _) => all.push(number),
            (CallSiteNumbers::Narrow(all), Err(_)) => {
                let wide = all.iter().map(|number| u32::from(*number)).chain([number]);
                self.numbers = CallSiteNumbers::Wide(wide.collect());
            }
        }
    }

    /// That of an operation; `None` where call sites are not known.
    #[inline]
    pub fn get(&self, operation: usize) -> Option<CallSite> {
        let number = match &self.numbers {
            CallSiteNumbers::Narrow(all) => usize::from(*all.get(operation)?),
            CallSiteNumbers::Wide(all) => *all.get(operation)? as usize,
        };
        self.distinct.get(number).copied()
    }

    /// No more operations follow: give back what was kept for them.
    pub fn seal(&mut self) {
        self.known = HashMap::default();
        match &mut self.numbers {
            CallSiteNumbers::Narrow(all) => all.shrink_to_fit(),
            CallSiteNumbers::Wide(all) => all.shrink_to_fit(),
        }
    }

    /// Replace the number of each path.
    pub fn renumber(&mut self, number: impl Fn(u32) -> u32) {
        for site in &mut self.distinct {
            (site.path, site.after) = (number(site.path), number(site.after));
        }
    }
}

/// Call paths: each once, parents first.
#[derive(Clone, Debug, Default)]
pub struct CallPaths {
    nodes: Vec<CallPathNode>,
    ids: HashMap<CallPathNode, u32>,
    /// Nodes that were made or found lately.
    recent: [u32; RECENT],
}

/// The last call of a path, and the path before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallPathNode {
    /// The path around the call; [`NO_PATH`] if it is the outermost.
    pub parent: u32,
    /// Name of the called function.
    pub name: NameId,
}

impl CallPaths {
    /// The path one call further, made on first sight.
    pub fn child(&mut self, parent: u32, name: NameId) -> u32 {
        let node = CallPathNode { parent, name };
        let recent = &mut self.recent[recent(parent, name.raw())];
        if self.nodes.get(*recent as usize) != Some(&node) {
            *recent = *self.ids.entry(node).or_insert_with(|| {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            });
        }
        *recent
    }

    /// The last call of a path; `None` for [`NO_PATH`].
    pub fn get(&self, path: u32) -> Option<CallPathNode> {
        self.nodes.get(path as usize).copied()
    }

    /// The path around one.
    pub fn parent(&self, path: u32) -> u32 {
        self.get(path).map_or(NO_PATH, |node| node.parent)
    }

    /// The names of a path, outermost first.
    pub fn names(&self, path: u32) -> Vec<NameId> {
        let mut names = Vec::new();
        let mut at = path;
        while let Some(CallPathNode { parent, name }) = self.get(at) {
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
        for CallPathNode { parent, name } in &others.nodes {
            let parent = ids.get(*parent as usize).copied().unwrap_or(NO_PATH);
            ids.push(self.child(parent, *name));
        }
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_sites_get_gives_what_was_pushed_with_few_and_many_distinct_ones() {
        for distinct in [3, 70_000] {
            let mut sites = CallSites::default();
            let site = |operation: u32| CallSite { path: operation % distinct, after: NO_PATH };
            (0..140_000).for_each(|operation| sites.push(site(operation)));
            sites.seal();
            assert!((0..140_000).all(|operation| sites.get(operation as usize) == Some(site(operation))));
            assert_eq!(sites.get(140_000), None);
            sites.renumber(|path| path.wrapping_add(1));
            assert_eq!(sites.get(4), Some(CallSite { path: 4 % distinct + 1, after: 0 }));
        }
    }
}
