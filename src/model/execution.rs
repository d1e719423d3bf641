//! Executions in columns, each with its sparse vectors over the contexts.

use super::context::{ContextId, Contexts};
use super::metric::{Column, Metric};
use super::{ThreadInfoId, TraceId};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::heap::{HeapSize, block};
use crate::base::parallel::in_order;
use crate::base::spans::{Direction, SpanOrder, SpanStore, StoredSpan};
use crate::base::time::{Ns, Span, Timestamp};
use std::sync::OnceLock;

/// Executions that a worker takes at once.
const CHUNK: usize = 4096;

crate::base::names::handle! {
/// An execution of the model's task, numbered by (start, end, thread).
ExecutionId, }

/// A time in a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContextTime {
    /// In which context.
    pub context: ContextId,
    /// How long.
    pub ns: u64,
}

/// For each execution its times, sorted by context; compressed rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sparse {
    starts: Vec<u32>,
    contexts: Vec<ContextId>,
    ns: Vec<u64>,
}

impl Sparse {
    /// Append the next execution's list; sorted by context here, equal contexts added.
    pub fn push(&mut self, mut row: Vec<ContextTime>) {
        row.sort_unstable();
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        let first = self.contexts.len();
        for ContextTime { context, ns } in row {
            match self.contexts[first..].last() {
                Some(last) if *last == context => {
                    let at = self.ns.len() - 1;
                    self.ns[at] += ns;
                }
                _ => {
                    self.contexts.push(context);
                    self.ns.push(ns);
                }
            }
        }
        self.starts.push(self.contexts.len() as u32);
    }

    /// The next execution's list, already ascending and without repetition.
    pub fn push_sorted(&mut self, row: impl IntoIterator<Item = ContextTime>) {
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        for ContextTime { context, ns } in row {
            self.contexts.push(context);
            self.ns.push(ns);
        }
        self.starts.push(self.contexts.len() as u32);
    }

    /// Number of lists.
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The list of execution `i`.
    pub fn row(&self, i: usize) -> impl ExactSizeIterator<Item = ContextTime> + '_ {
        let at = |i: usize| self.starts.get(i).map_or(self.contexts.len(), |s| *s as usize);
        let range = at(i)..at(i + 1);
        self.contexts[range.clone()]
            .iter()
            .zip(&self.ns[range])
            .map(|(context, ns)| ContextTime { context: *context, ns: *ns })
    }

    /// From own times to inclusive ones: each context's time is added to all contexts above it. Cost: the entries
    /// times their depth, side by side.
    pub fn inclusive(&self, contexts: &Contexts, ctx: &Ctx) -> Result<Sparse, Cancelled> {
        let mut whole = Sparse::default();
        let part = |i: usize| {
            let mut above = Above { contexts, sums: vec![0; contexts.len()], touched: Vec::new() };
            let mut part = Sparse::default();
            (i * CHUNK..((i + 1) * CHUNK).min(self.len())).for_each(|row| above.push(self.row(row), &mut part));
            part
        };
        in_order(ctx, self.len().div_ceil(CHUNK), part, |_, part| whole.append(&part))?;
        Ok(whole)
    }

    fn append(&mut self, other: &Sparse) {
        let first = self.contexts.len() as u32;
        let starts = other.starts.get(usize::from(!self.starts.is_empty())..).unwrap_or(&[]);
        self.starts.extend(starts.iter().map(|s| first + s));
        self.contexts.extend_from_slice(&other.contexts);
        self.ns.extend_from_slice(&other.ns);
    }
}

/// Adds up own times into inclusive ones, with one number per context kept between executions.
struct Above<'a> {
    contexts: &'a Contexts,
    sums: Vec<u64>,
    /// Contexts of this execution whose sums are not zero.
    touched: Vec<ContextId>,
}

impl Above<'_> {
    /// Append the inclusive list of an execution to `part`.
    fn push(&mut self, own: impl Iterator<Item = ContextTime>, part: &mut Sparse) {
        for ContextTime { context, ns } in own.filter(|time| time.ns > 0) {
            let mut at = Some(context);
            while let Some(c) = at {
                let sum = &mut self.sums[c.index()];
                if *sum == 0 {
                    self.touched.push(c);
                }
                *sum += ns;
                at = self.contexts.parent(c);
            }
        }
        self.touched.sort_unstable();
        let sums = &mut self.sums;
        let time = |context: ContextId| ContextTime { context, ns: std::mem::take(&mut sums[context.index()]) };
        part.push_sorted(self.touched.drain(..).map(time));
    }
}

/// All executions of one task.
#[derive(Clone, Debug, Default)]
pub struct Executions {
    /// First event.
    pub start: Vec<Timestamp>,
    /// Last event.
    pub end: Vec<Timestamp>,
    /// The thread of the end event (the one whose path is walked).
    pub who: Vec<ThreadInfoId>,
    /// Which trace.
    pub trace: Vec<TraceId>,
    /// The CPU of the begin event; `u16::MAX` where unknown.
    pub cpu: Vec<u16>,
    /// Events were lost while it ran, or a wait stayed unresolved.
    pub unsure: Vec<bool>,
    /// Metrics that could be computed for at least one execution.
    pub columns: Vec<Column>,
    /// Time per context without its descendants. Sums to the duration, exactly.
    pub own: Sparse,
    /// Time per context with its descendants.
    pub inclusive: Sparse,
    /// Their spans, computed on the first query by time; nothing changes afterwards.
    pub(super) segments: OnceLock<SpanStore>,
}

impl HeapSize for Sparse {
    fn heap_bytes(&self) -> usize {
        block(&self.starts) + block(&self.contexts) + block(&self.ns)
    }
}

impl HeapSize for Executions {
    fn heap_bytes(&self) -> usize {
        let columns = self.columns.iter().map(|column| block(&column.values));
        let places = block(&self.who) + block(&self.trace) + block(&self.cpu) + block(&self.unsure);
        let times = block(&self.start) + block(&self.end);
        places + times + columns.sum::<usize>() + self.own.heap_bytes() + self.inclusive.heap_bytes()
    }
}

impl Executions {
    /// How many.
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
        let met = segments.iter(SpanOrder::Duration, Direction::Down, Span::new(instant, instant.saturating_add(1)));
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
    fn inclusive_times_add_up_for_any_number_of_workers() {
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
        let one = own.inclusive(&contexts, &Ctx::new(1)).unwrap();
        assert_eq!(one.row(4).collect::<Vec<_>>(), times(&[(root, 7), (left, 6), (right, 1), (deep, 6)]));
        assert_eq!(one.row(9999).collect::<Vec<_>>(), times(&[(root, 6), (left, 6), (deep, 6)]));
        assert_eq!((one.len(), &one), (10_000, &own.inclusive(&contexts, &Ctx::new(3)).unwrap()));
        assert!(Sparse::default().inclusive(&contexts, &Ctx::new(2)).unwrap().is_empty());
    }
}
