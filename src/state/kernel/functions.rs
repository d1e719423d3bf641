//! What a thread is in by itself: functions, by their entry and exit events; a long system call, by its length alone.
//!
//! Each entry and exit leaves a stack sample that holds until the next one: innermost first, the function itself, then
//! its callers, each one behind its first address, where a return address would stand. An exit closes the nearest open
//! function of its address and all inside it (their exits were lost); one of no open function began before the
//! recording. Cost: an entry hashes the stack. Depth and the addresses of all stacks together are bounded.
//! ALGORITHMS.md section 5.1.

use super::machine::Machine;
use crate::base::notice::Notice;
use crate::base::time::{Ns, Span};
use crate::event::stack::{RawStackId, StackOrigin};
use crate::state::recording::{Call, StackSample, ThreadId};

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

impl Machine {
    /// A thread enters or leaves a function.
    pub(super) fn function(&mut self, thread: ThreadId, t: Ns, enters: bool, address: u64) {
        let functions = &mut self.lives[thread.index()].functions;
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
    pub(super) fn forget_functions(&mut self, thread: ThreadId, t: Ns) {
        let functions = &mut self.lives[thread.index()].functions;
        if !functions.open.is_empty() {
            *functions = Functions::default();
            self.tell_functions(thread, t);
        }
    }

    fn tell_functions(&mut self, thread: ThreadId, time: Ns) {
        let life = &mut self.lives[thread.index()];
        let user = life.functions.open.last().map(|(_, stack)| *stack);
        life.thread.samples.push(StackSample { time, origin: StackOrigin::Function, user, kernel: None });
    }

    /// A system call ends that took `ns`: told only where calls are not recorded themselves.
    pub(super) fn latency(&mut self, thread: ThreadId, t: Ns, ns: i64) {
        let name = self.out.names.intern("syscall");
        let life = &mut self.lives[thread.index()];
        let before = life.thread.calls.last().map_or(life.thread.life.start, |c| c.span.end);
        let span = Span::new(t.saturating_sub(ns).max(before), t);
        if !life.called && !span.is_empty() {
            life.thread.calls.push(Call { span, name, ret: None });
        }
    }
}
