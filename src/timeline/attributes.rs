//! The attributes of the state history: a tree of names, a dense id for each, patterns that match many of them.
//!
//! In: paths (`threads/1234/state`), added while the trace is read, in any order. Out: ids that index tables, paths to
//! show, the ids that a pattern (`threads/*/state`) matches. Adding or finding a path costs one hash look-up per
//! component; a pattern with wildcards costs one pass over the table, in which a parent always precedes its children.
//!
//! Ids depend on the order of addition.
//!
//! A `/` in a name makes a level, so a path has one meaning.

use crate::base::names::{NameId, Names};
use foldhash::HashMap;

crate::base::names::handle! {
    /// An attribute of the history: its position in [`Attributes`].
    AttributeId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Attribute {
    parent: Option<AttributeId>,
    name: NameId,
    /// Number of children.
    children: u32,
    /// The last child.
    last: Option<AttributeId>,
    /// The previous child of its parent.
    before: Option<AttributeId>,
}

/// The largest number of children that are searched one by one; more have an index, which costs more to build than such
/// a search.
const FEW: u32 = 8;

/// The attribute tree.
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    names: Names,
    table: Vec<Attribute>,
    /// By [`key`]: attributes without a parent, or whose parent has more than [`FEW`] children.
    index: HashMap<u64, AttributeId>,
}

/// Parent and name in one number, which is faster to hash than two.
fn key(parent: Option<AttributeId>, name: NameId) -> u64 {
    parent.map_or(0, |parent| u64::from(parent.raw()) + 1) << 32 | u64::from(name.raw())
}

impl Attributes {
    /// The attribute at `path`, added with all its ancestors on first sight. The empty path is the attribute named "".
    pub fn path(&mut self, path: &str) -> AttributeId {
        let (head, rest) = path.split_once('/').map_or((path, None), |(head, rest)| (head, Some(rest)));
        let top = self.one(None, head);
        rest.map_or(top, |rest| self.child(top, rest))
    }

    /// The attribute at `path` below `parent`.
    pub fn child(&mut self, parent: AttributeId, path: &str) -> AttributeId {
        path.split('/').fold(parent, |at, name| self.one(Some(at), name))
    }

    /// The id of a component of paths, for [`Attributes::named`].
    pub fn name(&mut self, name: &str) -> NameId {
        self.names.intern(name)
    }

    /// The attribute below `parent` by the id of its name from [`Attributes::name`]: a name of many attributes is
    /// looked up once.
    pub fn named(&mut self, parent: AttributeId, name: NameId) -> AttributeId {
        self.add(Some(parent), name)
    }

    /// Reserve memory for `more` attributes.
    pub fn reserve(&mut self, more: usize) {
        self.table.reserve(more);
    }

    fn one(&mut self, parent: Option<AttributeId>, name: &str) -> AttributeId {
        let name = self.names.intern(name);
        self.add(parent, name)
    }

    fn add(&mut self, parent: Option<AttributeId>, name: NameId) -> AttributeId {
        if let Some(id) = self.below(parent, name) {
            return id;
        }
        let id = AttributeId::at(self.table.len());
        let mut attribute = Attribute { parent, name, children: 0, last: None, before: None };
        let above = parent.and_then(|parent| self.table.get_mut(parent.index()));
        let siblings = above.map(|above| {
            above.children += 1;
            attribute.before = above.last.replace(id);
            above.children
        });
        self.table.push(attribute);
        let to_index = match siblings {
            Some(few) if few <= FEW => 0,
            Some(many) if many == FEW + 1 => many as usize,
            _ => 1,
        };
        let entries: Vec<_> = self.siblings(Some(id)).take(to_index).map(|id| (self.key_of(id), id)).collect();
        self.index.extend(entries);
        id
    }

    /// The attribute `name` below `parent`.
    fn below(&self, parent: Option<AttributeId>, name: NameId) -> Option<AttributeId> {
        match parent.and_then(|parent| self.table.get(parent.index())) {
            Some(above) if above.children <= FEW => {
                self.siblings(above.last).find(|id| self.table.get(id.index()).is_some_and(|child| child.name == name))
            }
            _ => self.index.get(&key(parent, name)).copied(),
        }
    }

    /// `last` and the children before it of the same parent.
    fn siblings(&self, last: Option<AttributeId>) -> impl Iterator<Item = AttributeId> {
        std::iter::successors(last, |id| self.table.get(id.index())?.before)
    }

    fn key_of(&self, id: AttributeId) -> u64 {
        self.table.get(id.index()).map_or(0, |attribute| key(attribute.parent, attribute.name))
    }

    /// The attribute at `path`, if there is one.
    pub fn find(&self, path: &str) -> Option<AttributeId> {
        path.split('/').try_fold(None, |at, name| self.below(at, self.names.find(name)?).map(Some))?
    }

    /// All attributes that `pattern` matches, ascending. `*` as a whole component matches any one name.
    pub fn matching(&self, pattern: &str) -> Vec<AttributeId> {
        let wanted: Vec<&str> = pattern.split('/').collect();
        if !wanted.contains(&"*") {
            return self.find(pattern).into_iter().collect();
        }
        // Number of components of the pattern that each attribute's path matches; 0 once one differs.
        let mut matched: Vec<usize> = Vec::with_capacity(self.table.len());
        let mut found = Vec::new();
        for (at, attribute) in self.table.iter().enumerate() {
            let above = attribute.parent.map_or(Some(0), |p| Some(matched[p.index()]).filter(|n| *n > 0));
            let here = above
                .filter(|n| wanted.get(*n).is_some_and(|name| *name == "*" || *name == self.names.get(attribute.name)));
            matched.push(here.map_or(0, |n| n + 1));
            if here.is_some_and(|n| n + 1 == wanted.len()) {
                found.push(AttributeId::at(at));
            }
        }
        found
    }

    /// The path of an attribute; empty for one of another table.
    pub fn path_of(&self, id: AttributeId) -> String {
        let mut names = Vec::new();
        let mut at = Some(id);
        while let Some(attribute) = at.and_then(|id| self.table.get(id.index())) {
            names.push(self.names.get(attribute.name));
            at = attribute.parent;
        }
        names.reverse();
        names.join("/")
    }

    /// All attributes, ascending.
    pub fn ids(&self) -> impl Iterator<Item = AttributeId> + use<> {
        (0..self.table.len()).map(AttributeId::at)
    }

    /// Number of attributes.
    pub fn len(&self) -> usize {
        self.table.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(paths: &[&str]) -> Attributes {
        let mut tree = Attributes::default();
        for path in paths {
            tree.path(path);
        }
        tree
    }

    fn paths(tree: &Attributes) -> Vec<String> {
        tree.ids().map(|id| tree.path_of(id)).collect()
    }

    #[test]
    fn path_adds_an_attribute_once_with_its_ancestors() {
        let mut tree = tree(&["threads/7/state", "threads/7/name", "threads/7/state"]);
        assert_eq!(paths(&tree), ["threads", "threads/7", "threads/7/state", "threads/7/name"]);
        assert_eq!(tree.find("threads/7"), Some(AttributeId::at(1)));
        assert_eq!(tree.find("threads/8"), None);
        assert_eq!(tree.find("7"), None);
        assert_eq!(tree.child(AttributeId::at(0), "7/name"), AttributeId::at(3));
    }

    #[test]
    fn matching_compares_whole_components_at_their_level() {
        let tree =
            tree(&["threads/7/state", "threads/12/state", "threads/12/name", "cpus/0/state", "threads/x/y/state"]);
        let find =
            |pattern: &str| -> Vec<String> { tree.matching(pattern).iter().map(|id| tree.path_of(*id)).collect() };
        assert_eq!(find("threads/*/state"), ["threads/7/state", "threads/12/state"]);
        assert_eq!(find("*/*/state"), ["threads/7/state", "threads/12/state", "cpus/0/state"]);
        assert_eq!(find("*"), ["threads", "cpus"]);
        assert_eq!(find("threads/12/*"), ["threads/12/state", "threads/12/name"]);
        assert_eq!(find("threads/12"), ["threads/12"]);
        assert!(find("threads/1*").is_empty());
    }

    #[test]
    fn find_finds_few_and_many_children() {
        let mut tree = Attributes::default();
        for many in [1, 8, 9, 10, 100] {
            let top = tree.path(&many.to_string());
            let made: Vec<_> = (0..many).map(|i| tree.child(top, &i.to_string())).collect();
            let again: Vec<_> = (0..many).map(|i| tree.child(top, &i.to_string())).collect();
            assert_eq!(made, again);
            for (i, id) in made.into_iter().enumerate() {
                assert_eq!(tree.find(&format!("{many}/{i}")), Some(id));
            }
            assert_eq!(tree.find(&format!("{many}/{many}")), None);
        }
    }
}
