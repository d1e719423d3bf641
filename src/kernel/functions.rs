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

use super::machine::Machine;
use crate::base::names::NameId;
use crate::base::notice::Notice;
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::host::HostId;
use crate::event::stack::{OptionalWeight, RawStackId, StackOrigin, named};
use crate::timeline::{Call, MarkRow, StackSample, ThreadId};
use foldhash::HashMap;

/// Open functions of one thread that are kept.
const DEEPEST: usize = 128;
/// Addresses of all stacks together.
const MOST_ADDRESSES: usize = 1 << 26;

/// A function that a thread has entered and not left.
#[derive(Clone, Copy, Debug)]
struct OpenFunction {
    address: u64,
    /// The call stack down to it.
    stack: RawStackId,
}

/// The functions that a thread has entered and not left.
#[derive(Clone, Debug, Default)]
pub(super) struct Functions {
    /// From the outermost on.
    open: Vec<OpenFunction>,
    /// Number of functions entered inside the innermost of `open`.
    deeper: u64,
}

impl Functions {
    /// Addresses of the stack after the entry of one more function.
    fn stack_with(&self, address: u64) -> Vec<u64> {
        let callers = self.open.iter().rev().map(|function| function.address.saturating_add(1));
        std::iter::once(address).chain(callers).collect()
    }

    /// Leave a function. True when the innermost function changes.
    fn leave(&mut self, address: u64) -> bool {
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
    first: u32,
    names: Vec<NameId>,
    /// The thread on which those with a key began, by host, task and key.
    begun: HashMap<(HostId, u32, i64), ThreadId>,
}

impl Machine {
    /// The marks of tasks from `first` on delimit no executions: they are entries and exits of functions.
    pub fn expect_pairs<'n>(&mut self, first: usize, names: impl Iterator<Item = &'n str>) {
        let names = names.map(|name| self.out.tables.names.intern(name)).collect();
        self.pairs = Pairs { first: first as u32, names, begun: HashMap::default() };
    }

    /// A pair begins or ends on a thread; false for a mark that delimits executions.
    pub(super) fn pair(&mut self, host: HostId, thread: Option<ThreadId>, mark: &MarkRow) -> bool {
        let at = mark.task.checked_sub(self.pairs.first).map(|at| at as usize);
        let Some(name) = at.and_then(|at| self.pairs.names.get(at)).copied() else { return false };
        let begun = mark.key.map(|key| (host, mark.task, key));
        let on = match begun {
            Some(begun) if mark.begins => {
                if let Some(thread) = thread {
                    self.pairs.begun.insert(begun, thread);
                }
                thread
            }
            Some(begun) => self.pairs.begun.remove(&begun),
            None => thread,
        };
        if let Some(on) = on {
            self.function(on, mark.time, mark.begins, named(name));
        }
        true
    }

    /// A thread enters or leaves a function.
    pub(super) fn function(&mut self, thread: ThreadId, t: Timestamp, enters: bool, address: u64) {
        let functions = &mut self.threads[thread].functions;
        if enters {
            if functions.open.len() >= DEEPEST {
                functions.deeper += 1;
                return;
            }
            if self.out.tables.stacks.addresses() > MOST_ADDRESSES {
                self.notices.add(Notice::MemoryLimit, 1, || format!("functions from {t} ns on"));
                return;
            }
            let stack = self.out.tables.stacks.intern(&functions.stack_with(address));
            functions.open.push(OpenFunction { address, stack });
        } else if !functions.leave(address) {
            return;
        }
        self.sample_functions(thread, t);
    }

    /// Another program begins: the stack is empty.
    pub(super) fn forget_functions(&mut self, thread: ThreadId, t: Timestamp) {
        let functions = &mut self.threads[thread].functions;
        if !functions.open.is_empty() {
            *functions = Functions::default();
            self.sample_functions(thread, t);
        }
    }

    /// Add a stack sample of the innermost function.
    fn sample_functions(&mut self, thread: ThreadId, time: Timestamp) {
        let state = &mut self.threads[thread];
        let user = state.functions.open.last().map(|function| function.stack);
        let weight = OptionalWeight::NONE;
        state.push_sample(StackSample { time, origin: StackOrigin::Function, user, kernel: None, weight });
    }

    /// A system call ends that took `duration`; it counts only where calls are not recorded themselves.
    pub(super) fn latency(&mut self, thread: ThreadId, t: Timestamp, duration: Ns) {
        let name = self.out.tables.names.intern("syscall");
        let state = &mut self.threads[thread];
        let before = state.rows.calls.last().map_or(state.thread.life.start, |call| call.span.end);
        let span = Span::new(t.saturating_sub(duration).max(before), t);
        if !state.has_called && !span.is_empty() {
            state.rows.calls.push(Call { span, name, ret: None, descriptor: None });
        }
    }
}
