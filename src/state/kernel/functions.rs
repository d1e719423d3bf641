//! What a thread is in by itself: functions, by their entry and exit events; a long system call, by its length alone.
//!
//! Each entry and exit leaves a stack sample that holds until the next one: innermost first, the function itself, then
//! its callers, each one behind its first address, where a return address would stand. An exit closes the nearest open
//! function of its address and all inside it (their exits were lost); one of no open function began before the
//! recording. Cost: an entry hashes the stack. Depth and the addresses of all stacks together are bounded.
//!
//! Without a kernel trace, pairs of a program's own events (`app:parse_begin`, `app:parse_end`) tell it too: they are
//! entries and exits of what is called like the pair. A pair with a key that ends on another thread is left on the one
//! where it began. ALGORITHMS.md section 5.1.

use super::machine::Machine;
use crate::base::names::NameId;
use crate::base::notice::Notice;
use crate::base::time::{Span, Timestamp};
use crate::event::stack::{RawStackId, StackOrigin, named};
use crate::state::timeline::{Call, HostId, Mark, StackSample, ThreadId};
use foldhash::HashMap;

/// Open functions that are told apart.
const DEEPEST: usize = 128;
/// Addresses of all stacks together.
const MOST_ADDRESSES: usize = 1 << 26;

/// The functions that a thread has entered and not left.
#[derive(Clone, Debug, Default)]
pub(super) struct Functions {
    /// From the outermost on: address, and the stack down to it.
    open: Vec<(u64, RawStackId)>,
    /// Entered inside the innermost of `open`.
    deeper: u64,
}

impl Functions {
    /// Addresses of the stack with one more function.
    fn with(&self, address: u64) -> Vec<u64> {
        let callers = self.open.iter().rev().map(|(address, _)| address.saturating_add(1));
        std::iter::once(address).chain(callers).collect()
    }

    /// Leave a function. True when another one is the innermost now.
    fn leave(&mut self, address: u64) -> bool {
        if self.deeper > 0 {
            self.deeper -= 1;
            return false;
        }
        let known = if address == 0 {
            self.open.len().checked_sub(1)
        } else {
            self.open.iter().rposition(|(open, _)| *open == address)
        };
        known.is_some_and(|at| {
            self.open.truncate(at);
            true
        })
    }
}

/// Pairs of a program's own events that are followed as functions are.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    /// The number of the first of them among the tasks that the pass was given.
    first: u32,
    names: Vec<NameId>,
    /// Where those with a key began: host, task and key.
    begun: HashMap<(HostId, u32, i64), ThreadId>,
}

impl Machine {
    /// The marks of tasks from `first` on delimit nothing: they tell what threads are in.
    pub fn expect_pairs<'n>(&mut self, first: usize, names: impl Iterator<Item = &'n str>) {
        let names = names.map(|name| self.out.names.intern(name)).collect();
        self.pairs = Pairs { first: first as u32, names, begun: HashMap::default() };
    }

    /// A pair begins or ends on a thread; false for a mark that delimits executions.
    pub(super) fn pair(&mut self, host: HostId, thread: Option<ThreadId>, mark: &Mark) -> bool {
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
            if self.out.stacks.addresses() > MOST_ADDRESSES {
                self.notices.add(Notice::MemoryLimit, 1, || format!("functions from {t} ns on"));
                return;
            }
            let stack = self.out.stacks.intern(&functions.with(address));
            functions.open.push((address, stack));
        } else if !functions.leave(address) {
            return;
        }
        self.tell_functions(thread, t);
    }

    /// Another program begins: nothing of the stack is left.
    pub(super) fn forget_functions(&mut self, thread: ThreadId, t: Timestamp) {
        let functions = &mut self.threads[thread].functions;
        if !functions.open.is_empty() {
            *functions = Functions::default();
            self.tell_functions(thread, t);
        }
    }

    fn tell_functions(&mut self, thread: ThreadId, time: Timestamp) {
        let state = &mut self.threads[thread];
        let user = state.functions.open.last().map(|(_, stack)| *stack);
        state.thread.samples.push(StackSample { time, origin: StackOrigin::Function, user, kernel: None });
    }

    /// A system call ends that took `ns`: told only where calls are not recorded themselves.
    pub(super) fn latency(&mut self, thread: ThreadId, t: Timestamp, ns: i64) {
        let name = self.out.names.intern("syscall");
        let state = &mut self.threads[thread];
        let before = state.thread.calls.last().map_or(state.thread.life.start, |c| c.span.end);
        let span = Span::new(t.saturating_sub(ns).max(before), t);
        if !state.called && !span.is_empty() {
            state.thread.calls.push(Call { span, name, ret: None });
        }
    }
}
