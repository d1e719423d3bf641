//! Executions in columns, each with its sparse vectors over the contexts.

use super::context::{ContextId, Contexts};
use super::ids::{ThreadInfoId, TraceId};
use super::metric::{Column, Metric};
use crate::base::pack::{Pack, Unpack};
use crate::base::spans::{SpanStore, StoredSpan};
use crate::base::time::{Ns, Span, Timestamp};
use get_size2::GetSize;
use std::sync::OnceLock;

crate::base::names::handle! {
/// An execution of the model's task, numbered by (start, end, thread).
ExecutionId, }

/// A time in a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContextTime {
    pub context: ContextId,
    pub ns: u64,
}

/// For each execution its times, sorted by context.
///
/// Packed: the number of the times, then each context as its distance from the one before, and its nanoseconds. That
/// is 4 to 6 bytes for a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, GetSize)]
pub struct Sparse {
    /// Where each list begins.
    starts: Vec<usize>,
    bytes: Vec<u8>,
}

impl Sparse {
    /// Append the next execution's list; sorted by context here, equal contexts added.
    pub fn push(&mut self, mut row: Vec<ContextTime>) {
        row.sort_unstable();
        row.dedup_by(|next, kept| {
            let same = next.context == kept.context;
            if same {
                kept.ns += next.ns;
            }
            same
        });
        self.push_sorted(&row);
    }

    /// The next execution's list, already ascending and without repetition.
    pub fn push_sorted(&mut self, row: &[ContextTime]) {
        self.starts.push(self.bytes.len());
        let mut pack = Pack(std::mem::take(&mut self.bytes));
        pack.number(row.len() as u64);
        let mut before = 0;
        for ContextTime { context, ns } in row {
            pack.number(context.raw().wrapping_sub(before).into());
            pack.number(*ns);
            before = context.raw();
        }
        self.bytes = pack.0;
    }

    /// Give back memory that growth left.
    pub fn shrink(&mut self) {
        self.starts.shrink_to_fit();
        self.bytes.shrink_to_fit();
    }

    /// Number of lists.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The list of execution `i`.
    pub fn row(&self, i: usize) -> SparseRow<'_> {
        let from = self.starts.get(i).map_or(self.bytes.len(), |start| *start);
        let mut unpack = Unpack(self.bytes.get(from..).unwrap_or(&[]));
        let left = unpack.index(usize::MAX).unwrap_or(0);
        SparseRow { unpack, left, context: 0 }
    }
}

/// The times of one execution, in order of their contexts.
#[derive(Clone, Debug)]
pub struct SparseRow<'a> {
    unpack: Unpack<'a>,
    left: usize,
    context: u32,
}

impl Iterator for SparseRow<'_> {
    type Item = ContextTime;

    fn next(&mut self) -> Option<ContextTime> {
        self.left = self.left.checked_sub(1)?;
        self.context = self.context.wrapping_add(self.unpack.number()? as u32);
        Some(ContextTime { context: ContextId::from_raw(self.context), ns: self.unpack.number()? })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for SparseRow<'_> {}

/// Adds up an execution's own times into inclusive ones: each time counts in its context and in all above it.
///
/// Inclusive times are not kept: they would take twice the memory of the own ones, and adding them up costs what
/// reading them would. One number per context is kept between executions.
#[derive(Debug)]
pub struct InclusiveTimes<'a> {
    contexts: &'a Contexts,
    sums: Vec<u64>,
    /// Contexts of this execution whose sums are not zero.
    touched: Vec<ContextId>,
}

impl<'a> InclusiveTimes<'a> {
    /// Ready for executions with times in these contexts.
    pub fn new(contexts: &'a Contexts) -> InclusiveTimes<'a> {
        InclusiveTimes { contexts, sums: vec![0; contexts.len()], touched: Vec::new() }
    }

    /// Pass each context in which an execution with these own times spent any, once and in no order, with the time in
    /// it and below. Cost: the times, each by its depth.
    pub fn of(&mut self, own: impl Iterator<Item = ContextTime>, mut put: impl FnMut(ContextId, u64)) {
        for ContextTime { context, ns } in own.filter(|time| time.ns > 0) {
            for at in std::iter::successors(Some(context), |at| self.contexts.parent(*at)) {
                let sum = &mut self.sums[at.index()];
                if *sum == 0 {
                    self.touched.push(at);
                }
                *sum += ns;
            }
        }
        for at in self.touched.drain(..) {
            put(at, std::mem::take(&mut self.sums[at.index()]));
        }
    }
}

/// All executions of one task.
#[derive(Clone, Debug, Default, GetSize)]
pub struct Executions {
    /// First event.
    pub start: Vec<Timestamp>,
    /// Last event.
    pub end: Vec<Timestamp>,
    /// The thread of the end event (the one whose path is walked).
    pub who: Vec<ThreadInfoId>,
    pub trace: Vec<TraceId>,
    /// The CPU of the begin event; `u16::MAX` where unknown.
    pub cpu: Vec<u16>,
    /// Events were lost while it ran, or a wait stayed unresolved.
    pub unsure: Vec<bool>,
    /// Metrics that could be computed for at least one execution.
    pub columns: Vec<Column>,
    /// Time per context without its descendants. Sums to the duration, exactly.
    pub own: Sparse,
    /// Their spans, computed on the first query by time; nothing changes afterwards.
    #[get_size(ignore)]
    pub segments: OnceLock<SpanStore>,
}

impl Executions {
    pub fn len(&self) -> usize {
        self.start.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// Duration of execution `i`.
    pub fn duration(&self, i: usize) -> Ns {
        self.end[i] - self.start[i]
    }

    /// Those that ran at `instant`, the longest first, found without a scan of all.
    pub fn at(&self, instant: Timestamp) -> impl Iterator<Item = ExecutionId> {
        let spans = || self.start.iter().zip(&self.end).map(|(start, end)| Span::new(*start, *end));
        let segment = |(span, item): (Span, u32)| StoredSpan { span, item };
        let segments = self.segments.get_or_init(|| SpanStore::new(spans().zip(0..).map(segment).collect()));
        let met = segments.longest(Span::new(instant, instant.saturating_add(1)));
        met.filter(move |segment| instant < segment.span.end).map(|segment| ExecutionId::from_raw(segment.item))
    }

    /// The column of a metric.
    pub fn column(&self, metric: &Metric) -> Option<&Column> {
        self.columns.iter().find(|c| c.metric == *metric)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::names::NameId;
    use crate::model::context::{Frame, FrameKind};

    #[test]
    fn executions_at_equals_a_scan() {
        let mut executions = Executions::default();
        for i in 0..500 {
            executions.start.push(Timestamp::new(i * 3));
            executions.end.push(Timestamp::new(i * 3 + i * 37 % 101));
        }
        for instant in [0, 1, 2, 750, 751, 1_400, 1_500, 1_598, 2_000].map(Timestamp::new) {
            let found: Vec<usize> = executions.at(instant).map(ExecutionId::index).collect();
            assert!(found.is_sorted_by_key(|i| std::cmp::Reverse(executions.duration(*i))));
            let runs = |i: &usize| executions.start[*i] <= instant && instant < executions.end[*i];
            let mut sorted = found.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..500).filter(runs).collect::<Vec<_>>(), "at {instant}");
        }
    }

    fn times(all: &[(ContextId, u64)]) -> Vec<ContextTime> {
        all.iter().map(|&(context, ns)| ContextTime { context, ns }).collect()
    }

    #[test]
    fn inclusive_times_add_up() {
        let mut contexts = Contexts::default();
        let frame = |n: u32| Frame { kind: FrameKind::Function, name: NameId::from_raw(n) };
        let root = contexts.child(None, frame(0));
        let left = contexts.child(Some(root), frame(1));
        let right = contexts.child(Some(root), frame(2));
        let deep = contexts.child(Some(left), frame(3));
        let mut own = Sparse::default();
        for i in 0..10_000_u64 {
            own.push(times(&[(deep, 5), (right, i % 3), (deep, 1)]));
        }
        own.push(Vec::new());
        own.push(times(&[(root, u64::MAX)]));
        let mut inclusive = InclusiveTimes::new(&contexts);
        let mut of = |i: usize| {
            let mut row = Vec::new();
            inclusive.of(own.row(i), |context, ns| row.push(ContextTime { context, ns }));
            row.sort_unstable();
            row
        };
        assert_eq!(of(4), times(&[(root, 7), (left, 6), (right, 1), (deep, 6)]));
        assert_eq!(of(9999), times(&[(root, 6), (left, 6), (deep, 6)]));
        assert_eq!((of(10_000), of(10_001)), (Vec::new(), times(&[(root, u64::MAX)])));
        assert_eq!((of(10_002), own.len()), (Vec::new(), 10_002));
        let row = own.row(4);
        assert_eq!((row.len(), row.collect::<Vec<_>>()), (2, times(&[(right, 1), (deep, 6)])));
    }
}
