//! Where nothing delimits executions: the call in which a thread waits for its next piece of work.
//!
//! A server's thread repeats a loop that begins with a wait: for a request, a message, a time. That wait is as long as
//! nobody asks for anything, and says nothing of the program. In: what was mined from a kernel recording. Out: per thread
//! the call of its outermost loop in which it waits most. MPI ranks have none: nobody asks them. Cost: linear in the operations of the loops.

use crate::analysis::patterns::{Mined, Treatment};
use crate::base::names::NameId;
use crate::base::time::Ns;
use crate::event::operation::{EventKind, Kind, Place};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// By stream: the call in which it waits for work.
pub(super) struct IdleCalls(Vec<Option<NameId>>);

impl IdleCalls {
    /// Find them.
    pub(super) fn new(mined: &Mined) -> IdleCalls {
        let sequences = &mined.operations.sequences;
        let mut calls = vec![None; sequences.len()];
        if sequences.iter().all(|s| s.thread.is_none()) {
            return IdleCalls(calls);
        }
        for turns in mined.iterations() {
            let Some(sequence) = sequences.get(turns.stream as usize).filter(|s| s.thread.is_some()) else { continue };
            let (Some(first), Some(last)) = (turns.spans.first(), turns.spans.last()) else { continue };
            let mut waited: BTreeMap<NameId, Ns> = BTreeMap::new();
            let from = sequence.operations.partition_point(|o| o.start < first.start);
            let inside = sequence.operations.iter().skip(from).take_while(|o| o.start < last.end);
            for operation in inside.filter(|o| matches!(o.kind, Kind::Wait | Kind::Receive)) {
                *waited.entry(operation.symbol).or_default() += operation.span().len();
            }
            let most = waited.into_iter().max_by_key(|(name, ns)| (*ns, Reverse(*name)));
            if let Some(call) = calls.get_mut(turns.stream as usize) {
                *call = most.map(|(name, _)| name);
            }
        }
        IdleCalls(calls)
    }

    /// The call in which a stream waits for work.
    pub(super) fn of(&self, stream: u32) -> Option<NameId> {
        self.0.get(stream as usize).copied().flatten()
    }

    /// What is to be made of an event that took too long.
    pub(super) fn treat(&self, mined: &Mined, stream: u32, kind: EventKind, event: u32) -> Treatment {
        let waits = kind.waits() || kind == EventKind::Wait;
        let operation = mined.operations.get(Place { stream, operation: event / 2 });
        let idle = self.of(stream);
        match waits && idle.is_some() && operation.map(|o| o.symbol) == idle {
            true => Treatment::Idle,
            false => Treatment::Judged,
        }
    }
}
