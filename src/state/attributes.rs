//! The attributes of the state history: a tree of names, a dense id for each, patterns that match many of them.
//!
//! In: paths (`threads/1234/state`), added while the trace is read, in any order. Out: ids that index tables, paths to
//! show, the ids that a pattern (`threads/*/state`) matches. Adding or finding a path costs one hash look-up per
//! component; a pattern with wildcards costs one pass over the table, in which a parent always precedes its children.
//!
//! Ids depend on the order of addition. Where a result depends on them, [`Attributes::sorted`] numbers them again:
//! depth first, siblings by name, numbers by value (`2` before `10`). That order is a function of the set of paths
//! alone, and it keeps the attributes of one thread (`threads/7/...`) together, as the packing of the tree needs.
//!
//! A `/` in a name makes a level, so a path has one meaning.

use crate::base::names::{NameId, Names};
use foldhash::HashMap;
use std::cmp::Ordering;

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

    /// Last component of an attribute's path; empty for one of another table.
    pub fn name_of(&self, id: AttributeId) -> &str {
        self.table.get(id.index()).map_or("", |a| self.names.get(a.name))
    }

    /// The attribute above, if any.
    pub fn parent_of(&self, id: AttributeId) -> Option<AttributeId> {
        self.table.get(id.index())?.parent
    }

    /// All attributes, ascending.
    pub fn ids(&self) -> impl Iterator<Item = AttributeId> + use<> {
        (0..self.table.len()).map(AttributeId::at)
    }

    /// Number of attributes.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Add the attributes of another tree (of a later chunk). Returns their ids in this tree, by their ids there.
    pub fn absorb(&mut self, other: &Attributes) -> Vec<AttributeId> {
        let mut here: Vec<AttributeId> = Vec::with_capacity(other.len());
        for attribute in &other.table {
            let parent = attribute.parent.map(|p| here[p.index()]);
            here.push(self.one(parent, other.names.get(attribute.name)));
        }
        here
    }

    /// These attributes in the order that depends on their paths alone, and the new id of each by its old one.
    pub fn sorted(self) -> (Attributes, Vec<AttributeId>) {
        let mut order: Vec<AttributeId> = self.ids().collect();
        if self.is_sorted() {
            return (self, order);
        }
        let name = |id: &AttributeId| self.name_of(*id);
        // Children by parent, last sibling first, so that a stack gives them in order.
        order.sort_by(|a, b| by_value(name(b), name(a)));
        let mut below: Vec<Vec<AttributeId>> = vec![Vec::new(); self.len()];
        let mut stack = Vec::new();
        for id in order {
            match self.parent_of(id) {
                Some(parent) => below[parent.index()].push(id),
                None => stack.push(id),
            }
        }
        let mut sorted = Attributes::default();
        let mut new = vec![AttributeId::at(0); self.len()];
        while let Some(id) = stack.pop() {
            let parent = self.parent_of(id).map(|p| new[p.index()]);
            new[id.index()] = sorted.one(parent, self.name_of(id));
            stack.append(&mut below[id.index()]);
        }
        (sorted, new)
    }

    /// True when the attributes were added in the order that [`Attributes::sorted`] gives them.
    fn is_sorted(&self) -> bool {
        let mut above: Vec<AttributeId> = Vec::new();
        self.ids().all(|id| {
            let parent = self.parent_of(id);
            let mut before = None;
            while above.last().copied() != parent {
                before = above.pop();
                if before.is_none() {
                    return false;
                }
            }
            above.push(id);
            before.is_none_or(|before| by_value(self.name_of(before), self.name_of(id)).is_lt())
        })
    }
}

/// Numbers before words, numbers by value, words by their bytes.
fn by_value(a: &str, b: &str) -> Ordering {
    let number = |s: &str| !s.is_empty() && s.bytes().all(|c| c.is_ascii_digit());
    let digits = |s: &str| s.trim_start_matches('0').len();
    match (number(a), number(b)) {
        (true, true) => digits(a)
            .cmp(&digits(b))
            .then_with(|| a.trim_start_matches('0').cmp(b.trim_start_matches('0')).then_with(|| a.len().cmp(&b.len()))),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => a.cmp(b),
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
    fn sorted_does_not_depend_on_the_order_of_addition() {
        let one = tree(&["threads/10/state", "threads/2", "cpus/0", "threads/main", "threads/02"]);
        let two = tree(&["threads/main", "threads/02", "threads/2", "threads/10/state", "cpus/0"]);
        let (a, new) = one.clone().sorted();
        let (b, _) = two.sorted();
        let (again, same) = a.clone().sorted();
        let wanted =
            ["cpus", "cpus/0", "threads", "threads/2", "threads/02", "threads/10", "threads/10/state", "threads/main"];
        assert_eq!(paths(&a), wanted);
        assert_eq!(paths(&b), wanted);
        assert_eq!((paths(&again), same), (paths(&a), a.ids().collect()));
        for id in one.ids() {
            assert_eq!(a.path_of(new[id.index()]), one.path_of(id));
        }
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

    #[test]
    fn absorb_maps_ids() {
        let mut one = tree(&["threads/2/state"]);
        let two = tree(&["cpus/0", "threads/2/name", "threads/2/state"]);
        let here = one.absorb(&two);
        for id in two.ids() {
            assert_eq!(one.path_of(here[id.index()]), two.path_of(id));
        }
        assert_eq!(one.len(), 6);
    }
}
