//! The values of a record by their places, and the call stacks among them.

use super::paths::Slot;
use crate::event::stack::RawStackId;
use crate::input::record::Value;
use crate::reading::batch::Batch;
use crate::reading::dialect::{SplitChain, split_chain};
use smallvec::SmallVec;

/// The values of a record by slot.
#[derive(Clone, Copy)]
pub(super) struct Values<'r, 'a>(pub &'r [Value<'a>]);

impl<'a> Values<'_, 'a> {
    #[inline]
    pub(super) fn at(self, slot: Slot) -> Value<'a> {
        self.0.get(usize::from(slot)).copied().unwrap_or_default()
    }

    #[inline]
    pub(super) fn number(self, slot: Slot) -> i64 {
        self.at(slot).as_i64().unwrap_or(0)
    }

    #[inline]
    pub(super) fn id(self, slot: Slot) -> i32 {
        self.number(slot) as i32
    }

    #[inline]
    pub(super) fn cpu(self, slot: Slot) -> u16 {
        u16::try_from(self.number(slot)).unwrap_or(u16::MAX)
    }
}

/// Addresses of a call stack without the mark of truncation at their end.
pub(super) fn stack(value: Value<'_>, batch: &mut Batch) -> Option<RawStackId> {
    // Filled in its place: it is too large to be moved for each stack.
    let mut addresses = SmallVec::<[u64; 128]>::new();
    addresses.extend(value.as_words()?.iter());
    if addresses.last() == Some(&u64::MAX) {
        addresses.pop();
    }
    (!addresses.is_empty()).then(|| batch.stacks.intern(&addresses))
}

/// The stacks of an event.
#[derive(Default)]
pub(super) struct EventStacks {
    pub user: Option<RawStackId>,
    pub kernel: Option<RawStackId>,
}

/// The stacks of a call chain.
pub(super) fn chain(value: Value<'_>, batch: &mut Batch) -> EventStacks {
    let Some(words) = value.as_words() else { return EventStacks::default() };
    let SplitChain { user, kernel } = split_chain(words.iter());
    let mut intern = |addresses: Vec<u64>| (!addresses.is_empty()).then(|| batch.stacks.intern(&addresses));
    EventStacks { user: intern(user), kernel: intern(kernel) }
}
