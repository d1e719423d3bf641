//! The numbers of an execution, beside the time in its contexts.
//!
//! In: an execution's path and marks, the calls and page faults of the threads on the path. Out: columns over all
//! executions. Time per kind is that of the execution's own thread (its outermost wait), so that it adds up to the
//! duration and agrees with the causes. A metric that the recording cannot tell is absent, not zero.
//! PRODUCT.md, `FILTER`; ALGORITHMS.md section 6.2.

use super::executions::Execution;
use super::path::PathSegment;
use super::recording::{Call, Mark, Recording, ThreadId};
use crate::base::names::{NameId, Names};
use crate::base::time::Ns;
use crate::model::context::Spent;
use crate::model::metric::{ABSENT, Column, Metric};
use std::collections::{BTreeMap, BTreeSet};

const READS: [&str; 9] = ["read", "pread64", "readv", "preadv", "preadv2", "recv", "recvfrom", "recvmsg", "pread"];
const WRITES: [&str; 9] = ["write", "pwrite64", "writev", "pwritev", "pwritev2", "send", "sendto", "sendmsg", "pwrite"];

/// What is counted along a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    syscalls: i64,
    page_faults: i64,
    read: i64,
    written: i64,
    threads: i64,
}

/// Counts along the paths of one recording.
#[derive(Debug)]
pub struct Counter<'a> {
    recording: &'a Recording,
    reads: Vec<NameId>,
    writes: Vec<NameId>,
    calls_recorded: bool,
}

impl<'a> Counter<'a> {
    /// A counter for a recording.
    pub fn new(recording: &'a Recording) -> Self {
        let ids = |names: [&str; 9]| names.iter().filter_map(|n| recording.names.find(n)).collect();
        let calls_recorded = recording.threads.iter().any(|t| !t.calls.is_empty());
        Counter { recording, reads: ids(READS), writes: ids(WRITES), calls_recorded }
    }

    /// Count what the threads on a path did while they were on it.
    pub fn count(&self, path: &[PathSegment]) -> Counts {
        let mut counts = Counts::default();
        let mut threads = BTreeSet::new();
        for segment in path.iter().filter(|s| !s.span.is_empty()) {
            threads.insert(segment.thread);
            let calls = self.recording.thread(segment.thread).map_or(&[][..], |t| &t.calls);
            let begun = |c: &Call| c.span.start < segment.span.start;
            let first = calls.partition_point(begun);
            for call in calls[first..].iter().take_while(|c| c.span.start < segment.span.end) {
                counts.syscalls += 1;
                let moved = call.ret.unwrap_or(0).max(0);
                if self.reads.contains(&call.name) {
                    counts.read = counts.read.saturating_add(moved);
                } else if self.writes.contains(&call.name) {
                    counts.written = counts.written.saturating_add(moved);
                }
            }
            counts.page_faults += self.faults(segment);
        }
        counts.threads = threads.len() as i64;
        counts
    }

    fn faults(&self, segment: &PathSegment) -> i64 {
        let faults = self.recording.page_faults.as_deref().unwrap_or(&[]);
        let before = |t: Ns| faults.partition_point(|f: &(ThreadId, Ns)| *f < (segment.thread, t));
        before(segment.span.end).saturating_sub(before(segment.span.start)) as i64
    }
}

/// Collects the metrics of executions, one after the other, in order.
#[derive(Debug)]
pub struct Columns<'a> {
    counter: &'a Counter<'a>,
    executions: usize,
    fixed: Vec<Column>,
    kinds: Vec<i64>,
    fields: BTreeMap<NameId, Vec<i64>>,
}

/// Kinds with a metric of their own; all others are `blocked.other`.
const KINDS: [Spent; 7] =
    [Spent::Cpu, Spent::Preempted, Spent::Interrupted, Spent::Disk, Spent::Network, Spent::Timer, Spent::Thread];

impl<'a> Columns<'a> {
    /// No executions yet.
    pub fn new(counter: &'a Counter<'a>) -> Self {
        let other = [
            Metric::Other,
            Metric::Syscalls,
            Metric::PageFaults,
            Metric::BytesRead,
            Metric::BytesWritten,
            Metric::Threads,
            Metric::Trace,
        ];
        let metrics = [Metric::Duration, Metric::Start].into_iter().chain(KINDS.map(Metric::Spent)).chain(other);
        let fixed = metrics.map(|metric| Column { metric, values: Vec::new() }).collect();
        Columns { counter, executions: 0, fixed, kinds: Vec::new(), fields: BTreeMap::new() }
    }

    /// The next execution. `spent` is the own thread's time by kind, in the order of [`Spent::ALL`]; `kind` and
    /// `trace` are names of the model.
    pub fn push(
        &mut self,
        execution: &Execution<'_>,
        counts: Counts,
        spent: &[u64],
        kind: Option<NameId>,
        trace: NameId,
    ) {
        let of = |s: Spent| Spent::ALL.iter().zip(spent).find(|(k, _)| **k == s).map_or(0, |(_, ns)| *ns as i64);
        let recording = self.counter.recording;
        let other = Spent::ALL.into_iter().filter(|s| !KINDS.contains(s)).map(of).sum();
        let if_known = |known: bool, value: i64| if known { value } else { ABSENT };
        let calls = self.counter.calls_recorded;
        for column in &mut self.fixed {
            column.values.push(match &column.metric {
                Metric::Duration => execution.span.len(),
                Metric::Start => execution.span.start.saturating_sub(recording.span.start),
                Metric::Spent(s) => of(*s),
                Metric::Other => other,
                Metric::Syscalls => if_known(calls, counts.syscalls),
                Metric::PageFaults => if_known(recording.page_faults.is_some(), counts.page_faults),
                Metric::BytesRead => if_known(calls, counts.read),
                Metric::BytesWritten => if_known(calls, counts.written),
                Metric::Threads => counts.threads,
                Metric::Trace => i64::from(trace.0),
                Metric::Type | Metric::Field(_) => ABSENT,
            });
        }
        self.kinds.push(kind.map_or(ABSENT, |k| i64::from(k.0)));
        for (name, value) in fields(execution.begin, execution.end) {
            let column = self.fields.entry(name).or_default();
            column.resize(self.executions, ABSENT);
            column.push(value);
        }
        self.executions += 1;
    }

    /// The columns that hold at least one value.
    pub fn finish(mut self, names: &Names) -> Vec<Column> {
        self.fixed.push(Column { metric: Metric::Type, values: self.kinds });
        let mut fields: Vec<Column> = self
            .fields
            .into_iter()
            .map(|(name, mut values)| {
                values.resize(self.executions, ABSENT);
                Column { metric: Metric::Field(names.get(name).to_owned()), values }
            })
            .collect();
        fields.sort_by(|a, b| a.metric.cmp(&b.metric));
        self.fixed.extend(fields);
        self.fixed.retain(|c| c.values.iter().any(|v| *v != ABSENT));
        self.fixed
    }
}

/// Numeric fields of both delimiters; where both have one the begin's counts.
fn fields(begin: &Mark, end: &Mark) -> BTreeMap<NameId, i64> {
    end.fields.iter().chain(&begin.fields).copied().collect()
}
