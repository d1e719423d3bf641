//! The machine's part of [`functions`](super::functions): threads enter and leave functions.

use super::functions::{Functions, OpenFunction, Pairs};
use super::machine::Machine;
use crate::base::notice::Notice;
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::host::HostId;
use crate::event::stack::{OptionalWeight, StackOrigin, named};
use crate::timeline::{Call, MarkRow, StackSample, ThreadId};
use foldhash::HashMap;

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

/// Open functions of one thread that are kept.
const DEEPEST: usize = 128;

/// Addresses of all stacks together.
const MOST_ADDRESSES: usize = 1 << 26;
