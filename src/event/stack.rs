//! Raw call stacks: addresses as the tracer wrote them, each distinct sequence once.
//!
//! The table is used twice: by each batch for its own stacks, and by the recording for all of them. A sample is one
//! integer; interning costs a hash of the addresses, which are kept once: the table of ids finds them.

use crate::base::hashed_ids::HashedIds;
pub use crate::base::named_frames::{FRAME_FILE, name_of, named, renamed};
use crate::base::names::NameId;
use get_size2::GetSize;

crate::base::names::handle! {
    /// A raw stack: addresses, innermost first, interned by content.
    RawStackId,
}

/// The occasion on which the tracer took a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackOrigin {
    /// Entry of a system call: holds until its exit.
    CallEntry,
    /// Exit of a system call.
    CallExit,
    /// A timer tick that interrupted the thread.
    Tick,
    /// The thread was switched out: holds until it is switched in.
    SwitchOut,
    /// A profiler's sample, taken when a long system call had returned: it shows the stack of that call.
    AfterCall,
    /// The thread entered or left a function: exact, holds until the next of its kind.
    Function,
    /// Some other event.
    Other,
}

/// What a sample of a profiler counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleWeight {
    /// The event that was sampled: `cpu-clock`, `cycles`.
    pub event: NameId,
    /// How much of it: nanoseconds of a clock, else a number of such events.
    pub amount: u64,
}

/// What a sample counts for, or nothing, in 12 bytes instead of 24: a recording may hold many millions of samples.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct OptionalWeight {
    event: NameId,
    /// The low half of the amount and the high one.
    amount: [u32; 2],
}

impl OptionalWeight {
    /// Of a stack that no profiler took.
    pub const NONE: OptionalWeight = OptionalWeight { event: NameId::from_raw(u32::MAX), amount: [0; 2] };

    /// The weight, if there is one.
    #[inline]
    pub fn get(self) -> Option<SampleWeight> {
        let [low, high] = self.amount.map(u64::from);
        (self.event != Self::NONE.event).then_some(SampleWeight { event: self.event, amount: high << 32 | low })
    }
}

impl From<Option<SampleWeight>> for OptionalWeight {
    #[inline]
    fn from(weight: Option<SampleWeight>) -> Self {
        weight.map_or(OptionalWeight::NONE, |SampleWeight { event, amount }| OptionalWeight {
            event,
            amount: [amount as u32, (amount >> 32) as u32],
        })
    }
}

impl std::fmt::Debug for OptionalWeight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}

/// Raw stacks, each distinct sequence once.
#[derive(Clone, Debug, Default, GetSize)]
pub struct RawStacks {
    /// By stack: where its addresses end.
    ends: Vec<u32>,
    addresses: Vec<u64>,
    ids: HashedIds<RawStackId>,
}

impl RawStacks {
    /// The id of a sequence of addresses, innermost first.
    pub fn intern(&mut self, stack: &[u64]) -> RawStackId {
        let (ends, addresses, next) = (&self.ends, &self.addresses, RawStackId::at(self.ends.len()));
        let id = self.ids.find_or_add(stack, |id| addresses_of(ends, addresses, id) == stack, next);
        if id == next {
            self.addresses.extend_from_slice(stack);
            self.ends.push(self.addresses.len() as u32);
        }
        id
    }

    /// The addresses, innermost first.
    pub fn get(&self, id: RawStackId) -> &[u64] {
        addresses_of(&self.ends, &self.addresses, id)
    }

    /// Addresses of all distinct stacks together.
    pub fn addresses(&self) -> usize {
        self.addresses.len()
    }

    /// Number of distinct stacks.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True when none was recorded.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

/// The addresses of one of the stacks that end at `ends`; none for an id of another table.
fn addresses_of<'a>(ends: &[u32], addresses: &'a [u64], id: RawStackId) -> &'a [u64] {
    let start = id.index().checked_sub(1).and_then(|before| ends.get(before)).map_or(0, |end| *end as usize);
    let end = ends.get(id.index()).map_or(start, |end| *end as usize);
    addresses.get(start..end).unwrap_or(&[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intern_keeps_each_sequence_once() {
        let mut stacks = RawStacks::default();
        let of = |n: u64| (0..n % 7).map(|i| n + i).collect::<Vec<u64>>();
        let ids: Vec<RawStackId> = (0..1000).map(|n| stacks.intern(&of(n))).collect();
        let (len, addresses) = (stacks.len(), stacks.addresses());
        for n in 0..1000 {
            assert_eq!(stacks.intern(&of(n)), ids[n as usize]);
            assert_eq!(stacks.get(ids[n as usize]), of(n));
        }
        // Every seventh is the empty one.
        assert_eq!((stacks.len(), stacks.addresses()), (len, addresses));
        assert_eq!(len, 1000 - 142);
        assert!(stacks.get(RawStackId::at(len)).is_empty());
    }
}
