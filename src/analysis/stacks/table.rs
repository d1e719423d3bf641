//! Stacks by number, and the samples that they are placed from.

use crate::base::heap::table;
use crate::base::names::NameId;
use crate::base::time::{Ns, Timestamp};
use crate::event::stack::{RawStackId, StackOrigin};
use crate::symbols::ProcessStack;
use foldhash::HashMap;
use get_size2::GetSize;

crate::base::names::handle! {
    /// A stack of [`StackTimelines`].
    StackId,
}

/// The known parts of a thread's stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, GetSize)]
pub struct Stack {
    pub user: Option<ProcessStack>,
    /// If the user stack is unknown or cut short: the full stacks before and after it, in the same program.
    pub around: Option<SurroundingStacks>,
    /// The system call under way.
    pub call: Option<NameId>,
    pub kernel: Option<RawStackId>,
}

/// The nearest full stacks around a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, GetSize)]
pub struct SurroundingStacks {
    /// The last one before it.
    pub before: ProcessStack,
    /// The first one after it.
    pub after: ProcessStack,
}

/// Distinct stacks by number.
#[derive(Debug, Default, GetSize)]
pub struct StackTable {
    pub(super) stacks: Vec<Stack>,
    #[get_size(size_fn = table)]
    ids: HashMap<Stack, StackId>,
}

impl StackTable {
    /// The id of a stack.
    #[inline]
    pub fn intern(&mut self, stack: Stack) -> StackId {
        *self.ids.entry(stack).or_insert_with(|| {
            self.stacks.push(stack);
            StackId::at(self.stacks.len() - 1)
        })
    }

    pub fn distinct(&self) -> &[Stack] {
        &self.stacks
    }

    /// A stack; an unknown one for an id of another table.
    #[inline]
    pub fn get(&self, id: StackId) -> Stack {
        self.stacks.get(id.index()).copied().unwrap_or_default()
    }
}

/// The stack of which nothing is known, in all tables.
pub(super) const UNKNOWN: StackId = StackId::at(0);

/// A sample for the stack timeline.
#[derive(Clone, Copy)]
pub(super) struct Sample {
    pub time: Timestamp,
    pub origin: StackOrigin,
    pub user: Option<ProcessStack>,
    pub kernel: Option<RawStackId>,
    /// More than one address: the callers are known.
    pub full: bool,
}

impl Sample {
    /// Among the samples of one call the one with the lowest rank gives its user stack; all should agree.
    #[inline]
    pub fn rank(&self) -> u8 {
        match self.origin {
            StackOrigin::CallEntry => 0,
            StackOrigin::CallExit => 1,
            StackOrigin::SwitchOut | StackOrigin::Tick | StackOrigin::Other => 2,
            StackOrigin::AfterCall | StackOrigin::Function => 3,
        }
    }

    /// True where it shows the stack at its own time, not at a call's entry.
    #[inline]
    pub fn is_momentary(&self) -> bool {
        self.rank() == 2
    }
}

/// A profiler samples calls of at least this length when they have returned.
pub(super) const LONG_CALL: Ns = 100_000;

/// The most calls by which such a sample may be late.
pub(super) const LATEST: usize = 20;
