//! The ids of a table's entries, found by content.
//!
//! In: a content, and the table that has those of known ids. Out: its id. The index keeps half of each content's hash
//! beside the id: it grows without reading the contents, and compares only those whose halves are equal. Cost: a hash
//! of the content, a comparison with an equal one, eight bytes for each entry.

use foldhash::fast::RandomState;
use get_size2::GetSize;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::hash::{BuildHasher, Hash};

/// The index of a table.
#[derive(Clone, Debug, GetSize)]
pub struct HashedIds<I> {
    #[get_size(size_fn = block)]
    ids: HashTable<(u32, I)>,
    #[get_size(ignore)]
    hasher: RandomState,
}

fn block<I>(ids: &HashTable<(u32, I)>) -> usize {
    ids.allocation_size()
}

impl<I> Default for HashedIds<I> {
    fn default() -> Self {
        HashedIds { ids: HashTable::new(), hasher: RandomState::default() }
    }
}

/// Half a hash as 64 bits: `hashbrown` finds the place by the low ones and compares the high ones first.
fn spread(half: u32) -> u64 {
    u64::from(half).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl<I: Copy> HashedIds<I> {
    fn half(&self, content: &(impl Hash + ?Sized)) -> u32 {
        self.hasher.hash_one(content) as u32
    }

    /// The id of a content, which is `next` if it is new; `is` compares it with that of an id.
    pub fn find_or_add(&mut self, content: &(impl Hash + ?Sized), is: impl Fn(I) -> bool, next: I) -> I {
        let half = self.half(content);
        let equal = |(of, id): &(u32, I)| *of == half && is(*id);
        match self.ids.entry(spread(half), equal, |(half, _)| spread(*half)) {
            Entry::Occupied(known) => known.get().1,
            Entry::Vacant(place) => place.insert((half, next)).get().1,
        }
    }

    /// The id of a content if it is known; `is` compares it with that of an id.
    pub fn find(&self, content: &(impl Hash + ?Sized), is: impl Fn(I) -> bool) -> Option<I> {
        let half = self.half(content);
        self.ids.find(spread(half), |(of, id)| *of == half && is(*id)).map(|(_, id)| *id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_by_content() {
        let (mut ids, mut texts) = (HashedIds::default(), Vec::new());
        let text = |i: usize| (i % 5000).to_string();
        for i in 0..10_000 {
            let (text, len) = (text(i), texts.len());
            let id = ids.find_or_add(text.as_str(), |id: usize| texts.get(id) == Some(&text), len);
            if id == len {
                texts.push(text);
            }
            assert_eq!(id, i % 5000);
        }
        assert_eq!(ids.find("4999", |id| texts[id] == "4999"), Some(4999));
        assert_eq!(ids.find("5000", |id| texts[id] == "5000"), None);
        assert!(ids.get_heap_size() >= 8 * texts.len());
    }
}
