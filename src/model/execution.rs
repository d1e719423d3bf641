//! Executions in columns, each with its sparse vectors over the contexts.

use super::column_values::{ABSENT, ColumnValues, PropertyValues};
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

/// Executions whose times are packed together.
const BLOCK: usize = 4096;

/// For each execution its times, sorted by context.
///
/// Packed: the number of the times, then each context as its distance from the one before, and its nanoseconds. That
/// is 4 to 6 bytes for a time. Lists that are consumed give their memory back block by block.
#[derive(Clone, Debug, Default, PartialEq, Eq, GetSize)]
pub struct Sparse {
    blocks: Vec<SparseBlock>,
    len: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, GetSize)]
struct SparseBlock {
    /// Where each list begins.
    starts: ColumnValues,
    bytes: Vec<u8>,
}

impl SparseBlock {
    /// The list at a place.
    fn row(&self, at: usize) -> SparseRow<'_> {
        let from = self.starts.get(at).and_then(|start| usize::try_from(start).ok());
        let mut unpack = Unpack(from.and_then(|from| self.bytes.get(from..)).unwrap_or(&[]));
        let left = unpack.index(usize::MAX).unwrap_or(0);
        SparseRow { unpack, left, context: 0 }
    }
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
        if self.len.is_multiple_of(BLOCK) {
            self.shrink();
            self.blocks.push(SparseBlock::default());
        }
        let Some(SparseBlock { starts, bytes }) = self.blocks.last_mut() else { return };
        starts.push(i64::try_from(bytes.len()).unwrap_or(i64::MAX));
        let mut pack = Pack(std::mem::take(bytes));
        pack.number(row.len() as u64);
        let mut before = 0;
        for ContextTime { context, ns } in row {
            pack.number(context.raw().wrapping_sub(before).into());
            pack.number(*ns);
            before = context.raw();
        }
        *bytes = pack.0;
        self.len += 1;
    }

    /// Give back memory that growth left.
    pub fn shrink(&mut self) {
        if let Some(last) = self.blocks.last_mut() {
            last.bytes.shrink_to_fit();
        }
    }

    /// Number of lists.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The list of execution `i`; empty where there is none.
    pub fn row(&self, i: usize) -> SparseRow<'_> {
        let none = SparseRow { unpack: Unpack(&[]), left: 0, context: 0 };
        self.blocks.get(i / BLOCK).map_or(none, |block| block.row(i % BLOCK))
    }

    /// All lists in order; a block is given back when its last list was taken.
    pub fn into_lists(self) -> impl Iterator<Item = Vec<ContextTime>> {
        let lists = |block: SparseBlock| (0..block.starts.len()).map(move |at| block.row(at).collect::<Vec<_>>());
        self.blocks.into_iter().flat_map(lists)
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

/// One execution, but for its metrics.
#[derive(Clone, Debug)]
pub struct ExecutionRow {
    pub span: Span,
    pub who: ThreadInfoId,
    pub trace: TraceId,
    /// `u16::MAX` where unknown.
    pub cpu: u16,
    pub unsure: bool,
    pub own: Vec<ContextTime>,
}

/// All executions of one task, ordered by start and end.
#[derive(Clone, Debug, Default, GetSize)]
pub struct Executions {
    /// First event.
    pub start: PropertyValues<Timestamp>,
    /// From the first to the last event.
    pub duration: PropertyValues<Ns>,
    /// The thread of the end event (the one whose path is walked).
    pub who: PropertyValues<ThreadInfoId>,
    pub trace: PropertyValues<TraceId>,
    /// The CPU of the begin event; `u16::MAX` where unknown.
    pub cpu: PropertyValues<u16>,
    /// Events were lost while it ran, or a wait stayed unresolved.
    pub unsure: PropertyValues<bool>,
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
        self.duration.at(i)
    }

    /// Last event of execution `i`.
    pub fn end(&self, i: usize) -> Timestamp {
        self.start.at(i) + self.duration.at(i)
    }

    /// From the first to the last event of execution `i`.
    pub fn span(&self, i: usize) -> Span {
        Span::new(self.start.at(i), self.end(i))
    }

    /// The spans of all.
    pub fn spans(&self) -> impl Iterator<Item = Span> + '_ {
        self.start.iter().zip(self.duration.iter()).map(|(start, duration)| Span::new(start, start + duration))
    }

    /// Those that ran at `instant`, the longest first, found without a scan of all.
    pub fn at(&self, instant: Timestamp) -> impl Iterator<Item = ExecutionId> {
        let segment = |(span, item): (Span, u32)| StoredSpan { span, item };
        let segments = self.segments.get_or_init(|| SpanStore::new(self.spans().zip(0..).map(segment).collect()));
        let met = segments.longest(Span::new(instant, instant.saturating_add(1)));
        met.filter(move |segment| instant < segment.span.end).map(|segment| ExecutionId::from_raw(segment.item))
    }

    /// Add the next execution.
    pub fn push(&mut self, row: ExecutionRow) {
        let ExecutionRow { span, who, trace, cpu, unsure, own } = row;
        self.start.push(span.start);
        self.duration.push(span.len());
        self.who.push(who);
        self.trace.push(trace);
        self.cpu.push(cpu);
        self.unsure.push(unsure);
        self.own.push(own);
    }

    /// All executions in order, each with its values by column. Memory is given back as they are taken.
    pub fn into_rows(self) -> impl Iterator<Item = (ExecutionRow, Vec<i64>)> {
        let Executions { start, duration, who, trace, cpu, unsure, columns, own, segments: _ } = self;
        let mut columns: Vec<_> = columns.into_iter().map(|column| column.values.into_iter()).collect();
        let cpu = cpu.into_iter().chain(std::iter::repeat(u16::MAX));
        let times = start.into_iter().zip(duration);
        let threads = who.into_iter().zip(trace).zip(cpu).zip(unsure);
        times.zip(threads).zip(own.into_lists()).map(
            move |(((start, duration), (((who, trace), cpu), unsure)), own)| {
                let values = columns.iter_mut().map(|values| values.next().unwrap_or(ABSENT)).collect();
                let span = Span::new(start, start + duration);
                (ExecutionRow { span, who, trace, cpu, unsure, own }, values)
            },
        )
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
            executions.duration.push(i * 37 % 101);
        }
        for instant in [0, 1, 2, 750, 751, 1_400, 1_500, 1_598, 2_000].map(Timestamp::new) {
            let found: Vec<usize> = executions.at(instant).map(ExecutionId::index).collect();
            assert!(found.is_sorted_by_key(|i| std::cmp::Reverse(executions.duration(*i))));
            let runs = |i: &usize| executions.start.at(*i) <= instant && instant < executions.end(*i);
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
