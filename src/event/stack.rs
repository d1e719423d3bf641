//! Raw call stacks: addresses as the tracer wrote them, each distinct sequence once.
//!
//! The table is used twice: by each batch for its own stacks, and by the recording for all of them. A sample is one
//! integer; interning costs a hash of the addresses.

use crate::base::names::NameId;

crate::base::names::handle! {
    /// A raw stack: addresses, innermost first, interned by content.
    RawStackId,
}

/// Marks addresses that are none: no machine has code with this bit alone in front.
const NAMED: u64 = 1 << 63;

/// The address that represents a thing with a name and no address on a stack.
pub fn named(name: NameId) -> u64 {
    NAMED | u64::from(name.raw())
}

/// The name that an address represents.
pub fn name_of(address: u64) -> Option<NameId> {
    u32::try_from(address ^ NAMED).ok().map(NameId::from_raw)
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

/// Raw stacks, each distinct sequence once.
#[derive(Clone, Debug, Default)]
pub struct RawStacks {
    starts: Vec<u32>,
    addresses: Vec<u64>,
    ids: foldhash::HashMap<Box<[u64]>, RawStackId>,
}

impl RawStacks {
    /// The id of a sequence of addresses, innermost first.
    pub fn intern(&mut self, stack: &[u64]) -> RawStackId {
        if let Some(id) = self.ids.get(stack) {
            return *id;
        }
        let id = RawStackId::at(self.starts.len());
        self.starts.push(self.addresses.len() as u32);
        self.addresses.extend_from_slice(stack);
        self.ids.insert(stack.into(), id);
        id
    }

    /// The addresses, innermost first.
    pub fn get(&self, id: RawStackId) -> &[u64] {
        let at = |i: usize| self.starts.get(i).map_or(self.addresses.len(), |s| *s as usize);
        self.addresses.get(at(id.index())..at(id.index() + 1)).unwrap_or(&[])
    }

    /// Addresses of all distinct stacks together.
    pub fn addresses(&self) -> usize {
        self.addresses.len()
    }

    /// Number of distinct stacks.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// True when none was recorded.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }
}
