//! The system calls of a process that matter for its conversations, of all its threads in the order of their effects.
//!
//! In: the calls of each thread. Out: one stream of them. Data that a call sends may be answered before it returns, so
//! sends, closes and connects take effect at their entry; what a call receives or makes is there at its exit. Cost: a
//! heap of the threads' next calls.

use crate::base::ctx::Progress;
use crate::base::names::{NameId, Names};
use crate::base::time::Timestamp;
use crate::event::descriptor::{DescriptorOrigin, DescriptorUse, descriptor_origin, descriptor_use};
use crate::event::waiting_calls::{is_poll, is_sleep};
use crate::timeline::reader::RowReader;
use crate::timeline::{Call, ThreadId};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a system call means for conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallMeaning {
    /// It names a descriptor.
    Uses(DescriptorUse),
    /// Its result is a new descriptor.
    Makes(DescriptorOrigin),
    /// It waits for some of many descriptors.
    Polls,
    Sleeps,
}

/// What each system call means, by the number of its name.
#[derive(Debug)]
pub(super) struct CallMeanings(Vec<Option<CallMeaning>>);

impl CallMeanings {
    /// By the names of a timeline.
    pub fn new(names: &Names) -> CallMeanings {
        CallMeanings((0..names.len()).map(|at| meaning(names.get(NameId::at(at)))).collect())
    }

    /// What a call means.
    pub fn of(&self, call: &Call) -> Option<CallMeaning> {
        self.0.get(call.name.index()).copied().flatten()
    }
}

fn meaning(call: &str) -> Option<CallMeaning> {
    let makes = || descriptor_origin(call).map(CallMeaning::Makes);
    let waits = || match call {
        _ if is_poll(call) => Some(CallMeaning::Polls),
        _ if is_sleep(call) => Some(CallMeaning::Sleeps),
        _ => None,
    };
    descriptor_use(call).map(CallMeaning::Uses).or_else(makes).or_else(waits)
}

/// One of the calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessCall {
    /// Position of its thread among those of the process.
    pub thread: usize,
    pub call: Call,
    pub meaning: CallMeaning,
}

impl ProcessCall {
    /// When it takes effect.
    pub fn at(&self) -> Timestamp {
        let at_entry = matches!(
            self.meaning,
            CallMeaning::Uses(
                DescriptorUse::Write
                    | DescriptorUse::Send
                    | DescriptorUse::Connect
                    | DescriptorUse::Close
                    | DescriptorUse::CloseFrom
            )
        );
        if at_entry { self.call.span.start } else { self.call.span.end }
    }
}

/// The calls of all threads of a process, in the order of their effects.
pub(super) struct ProcessCalls<I> {
    threads: Vec<I>,
    next: Vec<Option<ProcessCall>>,
    order: BinaryHeap<Reverse<(Timestamp, usize)>>,
}

/// The calls of some threads that form one process.
pub(super) fn process_calls<'r>(
    reader: &'r RowReader<'_>,
    meanings: &'r CallMeanings,
    threads: &[ThreadId],
    progress: &'r Progress,
) -> ProcessCalls<impl Iterator<Item = ProcessCall> + use<'r>> {
    let of_thread = |(thread, id): (usize, &ThreadId)| {
        let known = move |call: Call| Some(ProcessCall { thread, call, meaning: meanings.of(&call)? });
        progress.follow(reader.calls(*id).all()).filter_map(known)
    };
    let mut calls = ProcessCalls {
        threads: threads.iter().enumerate().map(of_thread).collect(),
        next: vec![None; threads.len()],
        order: BinaryHeap::with_capacity(threads.len()),
    };
    (0..threads.len()).for_each(|thread| calls.read(thread));
    calls
}

impl<I: Iterator<Item = ProcessCall>> ProcessCalls<I> {
    /// Read the next call of a thread.
    fn read(&mut self, thread: usize) {
        let next = self.threads.get_mut(thread).and_then(Iterator::next);
        self.order.extend(next.map(|next| Reverse((next.at(), thread))));
        if let Some(slot) = self.next.get_mut(thread) {
            *slot = next;
        }
    }
}

impl<I: Iterator<Item = ProcessCall>> Iterator for ProcessCalls<I> {
    type Item = ProcessCall;

    fn next(&mut self) -> Option<ProcessCall> {
        let Reverse((_, thread)) = self.order.pop()?;
        let next = self.next.get_mut(thread)?.take();
        self.read(thread);
        next
    }
}
