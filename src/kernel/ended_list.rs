//! What is kept of threads that have ended, by place.
//!
//! A recording may have many more of them than live at a time. They have no small blocks of the heap: those of the list
//! are large, so that they go to the temporary file where a memory limit has no room for them.

use crate::base::large_blocks::LARGE;
use std::ops::Index;

/// What is kept of threads that have ended, in large blocks of the heap.
#[derive(Clone, Debug)]
pub struct EndedList<E> {
    /// All but the last are full.
    blocks: Vec<Vec<Option<E>>>,
}

impl<E> Default for EndedList<E> {
    fn default() -> Self {
        EndedList { blocks: Vec::new() }
    }
}

impl<E> EndedList<E> {
    /// Entries of a block: as many as make it a large one.
    const BLOCK: usize = (LARGE / size_of::<Option<E>>() + 1).next_power_of_two();

    /// Put an entry to a place, or to a new one. Returns its place.
    pub fn put(&mut self, place: Option<u32>, ended: E) -> u32 {
        if let Some((place, entry)) = place.and_then(|place| Some((place, self.entry(place)?))) {
            *entry = Some(ended);
            return place;
        }
        if self.blocks.last().is_none_or(|last| last.len() == Self::BLOCK) {
            self.blocks.push(Vec::with_capacity(Self::BLOCK));
        }
        let before = (self.blocks.len() - 1) * Self::BLOCK;
        let last = self.blocks.last_mut().map_or(0, |last| {
            last.push(Some(ended));
            last.len() - 1
        });
        (before + last) as u32
    }

    /// Take an entry.
    pub fn take(&mut self, place: u32) -> Option<E> {
        self.entry(place)?.take()
    }

    fn entry(&mut self, place: u32) -> Option<&mut Option<E>> {
        self.blocks.get_mut(place as usize / Self::BLOCK)?.get_mut(place as usize % Self::BLOCK)
    }
}

impl<E> Index<u32> for EndedList<E> {
    type Output = E;

    /// Places come from this list.
    fn index(&self, place: u32) -> &E {
        &self.blocks[place as usize / Self::BLOCK][place as usize % Self::BLOCK].as_slice()[0]
    }
}
