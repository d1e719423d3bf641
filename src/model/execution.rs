//! Executions in columns, each with its sparse vectors over the contexts.

use super::context::{ContextId, Contexts};
use super::metric::{Column, Metric};
use super::{TraceId, WhoId};
use crate::base::time::Ns;

crate::handle! {
    /// An execution of the model's task, numbered by (start, end, thread).
    ExecutionId,
}

/// For each execution a list of (context, nanoseconds), sorted by context; compressed rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sparse {
    starts: Vec<u32>,
    contexts: Vec<ContextId>,
    ns: Vec<u64>,
}

impl Sparse {
    /// Append the next execution's list; sorted by context here, equal contexts added.
    pub fn push(&mut self, mut row: Vec<(ContextId, u64)>) {
        row.sort_unstable();
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        let first = self.contexts.len();
        for (context, ns) in row {
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

    /// The list of execution `i`.
    pub fn row(&self, i: usize) -> impl ExactSizeIterator<Item = (ContextId, u64)> + '_ {
        let at = |i: usize| self.starts.get(i).map_or(self.contexts.len(), |s| *s as usize);
        let range = at(i)..at(i + 1);
        self.contexts[range.clone()].iter().copied().zip(self.ns[range].iter().copied())
    }
}

/// All executions of one task.
#[derive(Clone, Debug, Default)]
pub struct Executions {
    /// First event.
    pub start: Vec<Ns>,
    /// Last event.
    pub end: Vec<Ns>,
    /// The thread of the end event (the one whose path is walked).
    pub who: Vec<WhoId>,
    /// Which trace.
    pub trace: Vec<TraceId>,
    /// Events were lost while it ran, or a wait stayed unresolved.
    pub unsure: Vec<bool>,
    /// Metrics that could be computed for at least one execution.
    pub columns: Vec<Column>,
    /// Time per context without its descendants. Sums to the duration, exactly.
    pub own: Sparse,
    /// Time per context with its descendants.
    pub inclusive: Sparse,
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

    /// The column of a metric.
    pub fn column(&self, metric: &Metric) -> Option<&Column> {
        self.columns.iter().find(|c| c.metric == *metric)
    }
}

/// The inclusive list that belongs to a list of own times: each context's time is added to all contexts above it.
pub fn inclusive(contexts: &Contexts, own: &[(ContextId, u64)]) -> Vec<(ContextId, u64)> {
    let mut sum = std::collections::BTreeMap::new();
    for (context, ns) in own {
        let mut at = Some(*context);
        while let Some(c) = at {
            *sum.entry(c).or_insert(0) += ns;
            at = contexts.parent(c);
        }
    }
    sum.into_iter().collect()
}
