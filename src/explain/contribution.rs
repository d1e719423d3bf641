//! Contributions of the threads on critical paths to executions, with their times: the form of the critical path that
//! the search for propagation paths needs. The [`Model`] has the same times by context, without moments.

use crate::analysis::hops::{HopId, Hops};
use crate::base::names::NameId;
use crate::base::time::{Ns, Span};
use crate::model::Model;
use crate::model::context::ContextId;
use crate::model::thread::ThreadIdentity;
use crate::timeline::ThreadId;
use std::collections::BTreeMap;

/// Time that one thread spent in one context of an execution's critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contribution {
    pub context: ContextId,
    /// The thread and its victim.
    pub hop: HopId,
    /// From its first part to its last one; between them others may have contributed.
    pub span: Span,
    pub ns: u64,
}

/// Those of all executions of a model.
#[derive(Clone, Debug, Default)]
pub struct Contributions {
    /// Holders and their victims.
    pub hops: Hops,
    /// The threads of `hops`.
    pub threads: BTreeMap<ThreadId, ThreadIdentity>,
    /// By execution: its own thread.
    pub own: Vec<ThreadId>,
    /// By execution: the name of that thread as contexts would show it (`worker-*` for a pool).
    pub names: Vec<Option<NameId>>,
    /// By execution: events were lost while it ran.
    pub lossy: Vec<bool>,
    /// By execution, in order of time.
    pub rows: ContributionRows,
    /// Three quarters of all waits for a CPU are no longer.
    pub scheduler_noise_ns: Ns,
}

/// Rows of contributions, one after the other in one list: a large block of the heap, for which a memory limit has a
/// file, and not many small ones.
#[derive(Clone, Debug, Default)]
pub struct ContributionRows {
    all: Vec<Contribution>,
    /// By row: where it ends.
    ends: Vec<usize>,
}

impl ContributionRows {
    /// Without rows, with room for this many and for all of their contributions.
    pub fn with_capacity(rows: usize, contributions: usize) -> ContributionRows {
        ContributionRows { all: Vec::with_capacity(contributions), ends: Vec::with_capacity(rows) }
    }

    /// Add the next row.
    pub fn push(&mut self, row: impl Iterator<Item = Contribution>) {
        self.all.extend(row);
        self.ends.push(self.all.len());
    }

    /// A row; `None` after the last one.
    pub fn get(&self, row: usize) -> Option<&[Contribution]> {
        let begin = row.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.all.get(begin..*self.ends.get(row)?)
    }

    /// Those of all rows, in order.
    pub fn all(&self) -> &[Contribution] {
        &self.all
    }
}

/// Spans that take no memory worth merging.
const LEAST_MERGED: usize = 64;

impl Contributions {
    /// The name of an execution's own thread, as contexts would show it.
    pub fn name<'a>(&self, model: &'a Model, execution: u32) -> &'a str {
        let name = self.names.get(execution as usize).copied().flatten();
        name.map_or("", |name| model.names.get(name))
    }

    /// By thread: when executions' critical paths went through it, merged and sorted.
    pub fn on_paths(&self) -> BTreeMap<ThreadId, Vec<Span>> {
        let mut spans: BTreeMap<ThreadId, MergedSpans> = BTreeMap::new();
        for contribution in self.rows.all() {
            // A thread that waits for another is on the path as well.
            let mut at = self.hops.get(contribution.hop);
            while let Some(hop) = at {
                spans.entry(hop.thread).or_default().push(contribution.span);
                at = hop.above.and_then(|above| self.hops.get(above));
            }
        }
        spans.into_iter().map(|(thread, spans)| (thread, spans.finish())).collect()
    }
}

/// Spans that are merged whenever there are twice as many as after the last time: executions of one thread, and
/// contributions of many contexts, cover the same time over and over.
#[derive(Default)]
struct MergedSpans {
    spans: Vec<Span>,
    merged: usize,
}

impl MergedSpans {
    fn push(&mut self, span: Span) {
        if self.spans.len() >= LEAST_MERGED.max(2 * self.merged) {
            merge(&mut self.spans);
            self.merged = self.spans.len();
        }
        self.spans.push(span);
    }

    fn finish(mut self) -> Vec<Span> {
        merge(&mut self.spans);
        self.spans
    }
}

/// Sort spans and join those that touch.
fn merge(spans: &mut Vec<Span>) {
    spans.sort_unstable_by_key(|s| (s.start, s.end));
    spans.dedup_by(|next, before| {
        let touch = next.start <= before.end;
        if touch {
            before.end = before.end.max(next.end);
        }
        touch
    });
}

/// Length of the part of `span` that these merged spans cover.
pub fn overlap(merged: &[Span], span: Span) -> Ns {
    let first = merged.partition_point(|s| s.end <= span.start);
    let met = merged.get(first..).unwrap_or(&[]).iter().take_while(|s| s.start < span.end);
    met.map(|s| s.clip(span).len()).sum()
}

#[cfg(test)]
mod tests {
    use crate::explain::contribution::*;

    #[test]
    fn rows_are_read_back_as_they_came() {
        let of = |ns: u64| Contribution { context: ContextId::at(1), hop: HopId::at(2), span: Span::of_ns(0, 9), ns };
        let mut rows = ContributionRows::with_capacity(3, 3);
        [&[5, 6][..], &[], &[7]].into_iter().for_each(|row| rows.push(row.iter().map(|ns| of(*ns))));
        assert_eq!(rows.get(0), Some(&[of(5), of(6)][..]));
        assert_eq!((rows.get(1), rows.get(2)), (Some(&[][..]), Some(&[of(7)][..])));
        assert_eq!((rows.get(3), rows.get(usize::MAX), rows.all().len()), (None, None, 3));
    }

    #[test]
    fn merge_joins_adjacent_spans() {
        let mut spans: Vec<Span> = [(5, 7), (1, 3), (3, 4), (6, 9)].map(|(a, b)| Span::of_ns(a, b)).to_vec();
        merge(&mut spans);
        assert_eq!(spans, [Span::of_ns(1, 4), Span::of_ns(5, 9)]);
        let mut often = MergedSpans::default();
        let pairs = (0..10_000).map(|n| (n * 7919) % 10_000).filter(|n| n % 3 > 0);
        pairs.for_each(|n| often.push(Span::of_ns(n, n + 1)));
        assert!(often.spans.capacity() < 9000, "{}", often.spans.capacity());
        assert_eq!(often.finish(), (0..3333).map(|n| Span::of_ns(3 * n + 1, 3 * n + 3)).collect::<Vec<_>>());
        assert_eq!(overlap(&spans, Span::of_ns(0, 20)), 7);
        assert_eq!((overlap(&spans, Span::of_ns(4, 5)), overlap(&spans, Span::of_ns(3, 6))), (0, 2));
    }
}
