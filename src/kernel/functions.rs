//! The functions that a thread is in, by their entry and exit events; long system calls known by their duration alone.
//!
//! Each entry and exit adds a stack sample that holds until the next one: innermost first, the function itself, then
//! its callers, each with its first address plus one, in place of a return address. An exit closes the nearest open
//! function of its address and all inside it (their exits were lost); an exit of a function that is not open is
//! ignored, since that function began before the recording. Cost: an entry hashes the stack. The depth and the number
//! of addresses of all stacks together are bounded.
//!
//! Without a kernel trace, pairs of a program's own events (`app:parse_begin`, `app:parse_end`) are entries and exits
//! too, of a function with the name of the pair. A pair with a key that ends on another thread leaves the function on
//! the thread where it began. ALGORITHMS.md section 5.1.

use crate::base::names::NameId;
use crate::event::host::HostId;
use crate::event::stack::RawStackId;
use crate::timeline::ThreadId;
use foldhash::HashMap;

/// A function that a thread has entered and not left.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenFunction {
    pub address: u64,
    /// The call stack down to it.
    pub stack: RawStackId,
}

/// The functions that a thread has entered and not left.
#[derive(Clone, Debug, Default)]
pub(super) struct Functions {
    /// From the outermost on.
    pub open: Vec<OpenFunction>,
    /// Number of functions entered inside the innermost of `open`.
    pub deeper: u64,
}

impl Functions {
    /// True where it is in none.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.deeper == 0
    }

    /// Addresses of the stack after the entry of one more function.
    pub(super) fn stack_with(&self, address: u64) -> Vec<u64> {
        let callers = self.open.iter().rev().map(|function| function.address.saturating_add(1));
        std::iter::once(address).chain(callers).collect()
    }

    /// Leave a function. True when the innermost function changes.
    pub(super) fn leave(&mut self, address: u64) -> bool {
        if self.deeper > 0 {
            self.deeper -= 1;
            return false;
        }
        let known = if address == 0 {
            self.open.len().checked_sub(1)
        } else {
            self.open.iter().rposition(|function| function.address == address)
        };
        known.is_some_and(|at| {
            self.open.truncate(at);
            true
        })
    }
}

/// Pairs of a program's own events that count as functions.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    /// The number of the first of them among the tasks that were passed to the kernel pass.
    pub first: u32,
    pub names: Vec<NameId>,
    /// The thread on which those with a key began, by host, task and key.
    pub begun: HashMap<(HostId, u32, i64), ThreadId>,
}
