//! Waits for work, where nothing delimits executions: the waits in which a thread waits for its next piece of work.
//!
//! A server's thread repeats a loop that begins with a wait for a request, a message or a timer. That wait lasts until
//! the next request arrives and says nothing about the program. In: mined patterns of a kernel recording. Out: per
//! thread the positions at which its outermost loop begins an iteration: the longest wait of an iteration,
//! distinguished from others in the same call by the call before it, and in an iteration that ends with an unusual call
//! by the call after it. MPI ranks have none: they receive no requests. Cost: linear in the operations of threads with
//! loops.

use crate::analysis::patterns::iterations::Iterations;
use crate::analysis::patterns::{PatternAnalysis, Treatment};
use crate::base::names::NameId;
use crate::base::time::Ns;
use crate::event::operation::{Operation, OperationKind};
use crate::model::event_kind::EventKind;
use foldhash::HashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// By stream: positions of the operations at which iterations begin, ascending.
pub struct IdleWaits(Vec<Vec<u32>>);

impl IdleWaits {
    /// Find them.
    pub fn new(mined: &PatternAnalysis) -> IdleWaits {
        let sequences = &mined.operations.sequences;
        let mut waits = vec![Vec::new(); sequences.len()];
        if sequences.iter().all(|s| s.thread.is_none()) {
            return IdleWaits(waits);
        }
        for loops in mined.iterations() {
            let Some(sequence) = sequences.get(loops.stream as usize).filter(|s| s.thread.is_some()) else { continue };
            if let Some(begins) = waits.get_mut(loops.stream as usize) {
                *begins = begins_of(&sequence.operations, &loops);
            }
        }
        IdleWaits(waits)
    }

    /// The operations of a stream at which iterations begin, whether it waited there or found work at once.
    pub fn of(&self, stream: u32) -> &[u32] {
        self.0.get(stream as usize).map_or(&[], Vec::as_slice)
    }

    /// Treatment of an event that took longer than usual.
    pub fn treat(&self, stream: u32, kind: EventKind, event: u32) -> Treatment {
        let waits = kind.waits() || kind == EventKind::Wait;
        if waits && self.of(stream).binary_search(&(event / 2)).is_ok() {
            Treatment::Idle
        } else {
            Treatment::Responsible
        }
    }
}

/// Positions at which iterations of a loop begin; none where its iterations do not wait.
fn begins_of(operations: &[Operation], loops: &Iterations) -> Vec<u32> {
    let (Some(first), Some(last)) = (loops.spans.first(), loops.spans.last()) else { return Vec::new() };
    let from = operations.partition_point(|o| o.start < first.start);
    let until = operations.partition_point(|o| o.start < last.end);
    let name = |at: usize| operations.get(at).map(|o| o.symbol);
    let mut waited: BTreeMap<(NameId, NameId), Ns> = BTreeMap::new();
    for (before, operation) in (from..until).filter_map(|at| Some((name(at.checked_sub(1)?)?, operations.get(at)?))) {
        if matches!(operation.kind, OperationKind::Wait | OperationKind::Receive) {
            *waited.entry((before, operation.symbol)).or_default() += operation.span().len();
        }
    }
    let longest = waited.into_iter().max_by_key(|(key, ns)| (*ns, Reverse(*key)));
    let Some(((before, call), _)) = longest else { return Vec::new() };
    let is_after = |at: &usize| name(*at) == Some(call) && at.checked_sub(1).and_then(name) == Some(before);
    // The usual next call, and the calls of an iteration.
    let mut next: HashMap<NameId, u32> = HashMap::default();
    for after in (from..until).filter(is_after).filter_map(|at| name(at + 1)) {
        *next.entry(after).or_default() += 1;
    }
    let next = next.into_iter().max_by_key(|(name, count)| (*count, Reverse(*name))).map(|(name, _)| name);
    let end = operations.partition_point(|o| o.start < first.end);
    let in_first = |name: NameId| operations[from..end].iter().any(|o| o.symbol == name);
    let begins = |at: &usize| match at.checked_sub(1).and_then(name) {
        _ if name(*at) != Some(call) => false,
        None => true,
        Some(other) => other == before || (name(at + 1) == next && !in_first(other)),
    };
    (0..operations.len()).filter(begins).map(|at| at as u32).collect()
}

#[cfg(test)]
mod tests {
    use crate::base::ctx::Ctx;
    use crate::base::time::Timestamp;
    use crate::event::operation::{Operations, Sequence};
    use crate::explain::idle::*;
    use crate::model::thread::ThreadIdentity;

    /// A thread whose iterations are these calls; those that wait have an asterisk and take ten times as long, `**` a
    /// hundred times.
    fn begins(iterations: &[&str]) -> Vec<u32> {
        let mut operations = Operations { one_clock: true, ..Operations::default() };
        let place = ThreadIdentity { pid: 1, tid: 1, name: "server".into(), process: "server".into() };
        let mut sequence = Sequence { thread: Some(place), ..Sequence::default() };
        let mut now = Timestamp::ZERO;
        for call in iterations.iter().flat_map(|iteration| iteration.split(' ')) {
            let bare = call.trim_end_matches('*');
            let long = [1_000, 10_000, 100_000][call.len() - bare.len()];
            let kind = if bare == call { OperationKind::Work } else { OperationKind::Wait };
            let symbol = operations.names.intern(bare);
            sequence.operations.push(Operation { symbol, kind, start: now, end: now + long });
            now += long + 100;
        }
        operations.sequences.push(sequence);
        let mined = PatternAnalysis::new(operations, &Ctx::new(1)).unwrap();
        IdleWaits::new(&mined).of(0).to_vec()
    }

    #[test]
    fn longer_of_two_waits_in_one_call_begins_the_iteration() {
        let iterations = vec!["read** write read* send"; 20];
        assert_eq!(begins(&iterations), (0..20).map(|iteration| 4 * iteration).collect::<Vec<u32>>());
        // Wherever the recording begins.
        let mut cut = vec!["read* send"];
        cut.extend(&iterations);
        assert_eq!(begins(&cut)[..3], [0, 2, 6], "what came before the first call is not known");
    }

    #[test]
    fn rare_wait_in_the_same_call_is_inside_an_iteration() {
        let mut iterations = vec!["nanosleep** lock write"; 40];
        iterations[17] = "nanosleep** lock nanosleep* lock write";
        iterations[23] = "nanosleep** lock write log";
        let begun = begins(&iterations);
        assert_eq!(begun.len(), 40, "{begun:?}");
        assert!(!begun.contains(&(17 * 3 + 2)), "the back-off is no wait for work");
        assert!(begun.contains(&(24 * 3 + 3)), "iterations may end differently");
    }

    #[test]
    fn thread_without_waits_has_no_iterations() {
        assert!(begins(&["read write send"; 20]).is_empty());
        assert!(begins(&["a* b* c*"]).is_empty());
    }
}
