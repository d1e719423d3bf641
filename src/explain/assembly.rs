//! The model of one task: executions one after the other, with the names of contexts and threads.
//!
//! In: prepared executions, and the contexts of the nodes of their outline. Out: a [`Model`], and the
//! contributions of threads where they are wanted.

use super::columns::{MetricColumns, NewExecution};
use super::contribution::Contributions;
use super::execution_timelines::{self, TimelineInputs};
use super::prepared::PreparedExecution;
use super::request::TaskRequest;
use super::threads::ModelThreads;
use crate::analysis::counts::PathCounts;
use crate::analysis::executions::Execution;
use crate::analysis::leaders::Leaders;
use crate::analysis::outline::{Outline, OutlineStep};
use crate::analysis::remarks::Remarks;
use crate::analysis::thread_names::ThreadNames;
use crate::base::figure;
use crate::base::names::NameId;
use crate::base::notice::Notice;
use crate::base::time::Timestamp;
use crate::event::errno;
use crate::model::context::ContextId;
use crate::model::execution::{ExecutionId, ExecutionRow};
use crate::model::metric::SUCCEEDED;
use crate::model::{Model, TraceId, categories};
use crate::timeline::Timeline;
use foldhash::HashMap;

/// A model as it grows.
pub(super) struct Assembly<'a> {
    pub(super) timeline: &'a Timeline,
    pub(super) request: &'a TaskRequest,
    pub(super) outline: &'a Outline,
    /// By node of the outline.
    pub(super) contexts: &'a [ContextId],
    pub(super) names: &'a ThreadNames,
    /// By trace the name of its label in the model.
    pub(super) labels: Vec<NameId>,
    /// By the type of executions in the recording its name in the model.
    pub(super) kinds: HashMap<NameId, NameId>,
    /// By what a call returned the name of its error in the model.
    pub(super) errors: HashMap<i64, NameId>,
    pub(super) leaders: &'a Leaders,
    pub(super) remarks: &'a Remarks,
    pub(super) threads: ModelThreads<'a>,
    pub(super) columns: MetricColumns,
    pub(super) contributions: Contributions,
    pub(super) model: Model,
}

impl Assembly<'_> {
    /// The next execution. `interleaved`: its threads' time on a CPU during which others ran there, where that is
    /// known.
    pub(super) fn push(&mut self, execution: &Execution, prepared: PreparedExecution, interleaved: Option<i64>) {
        let PreparedExecution { counts, counters, unresolved, tiled, contributions, own, spent, .. } = prepared;
        let PreparedExecution { begin, end, fields, returned, is_lossy, .. } = prepared;
        self.contributions.push(contributions, self.contexts);
        let model = &mut self.model;
        let id = ExecutionId::at(model.executions.len());
        if self.request.timelines.contains(&id) {
            let (timeline, names, contexts) = (self.timeline, &model.names, &model.contexts);
            let (leaders, shown, remarks) = (self.leaders, self.names, self.remarks);
            let task = self.request.marks;
            let inputs = TimelineInputs { timeline, leaders, shown, names, contexts, remarks, task };
            model.timelines.insert(id, execution_timelines::of(inputs, execution, &own));
        }
        let of_recording = self.timeline.names();
        let kind = begin.kind.or(end.kind);
        let kind = kind.map(|k| *self.kinds.entry(k).or_insert_with(|| model.names.intern(of_recording.get(k))));
        let trace = TraceId::from_raw(end.trace);
        let label = self.labels.get(trace.index()).copied().unwrap_or_else(|| model.names.intern(""));
        // Every value that means success has one name.
        let error = returned.map(|ret| if errno::failed(ret) { ret } else { 0 }).map(|ret| {
            let name = || model.names.intern(errno::name(ret).as_deref().unwrap_or(SUCCEEDED));
            *self.errors.entry(ret).or_insert_with(name)
        });
        let new = NewExecution { spent: &spent, kind, error, trace: label };
        self.columns.push(execution, fields, PathCounts { interleaved, ..counts }, &counters, new);
        let first = || format!("execution {}", figure::moment(execution.span.start.ns()));
        model.notices.add(Notice::UnresolvedWaits, unresolved, first);
        model.notices.add(Notice::UntiledPaths, u64::from(!tiled), first);
        let thread = self.threads.id(execution.thread, execution.last_moment(), &mut model.who, &mut model.names);
        model.executions.push(ExecutionRow {
            span: execution.span,
            who: thread,
            trace,
            cpu: begin.cpu,
            unsure: is_lossy || unresolved > 0,
            own,
        });
    }

    /// The model, once all executions are in it.
    pub(super) fn finish(mut self) -> (Model, Contributions) {
        let model = &mut self.model;
        model.executions.own.shrink();
        model.executions.columns = self.columns.finish(self.timeline.names());
        let mut threads: Vec<_> = self.outline.threads().collect();
        threads.sort_unstable();
        for (node, thread, ns) in threads {
            let end = self.timeline.thread(thread).map_or(Timestamp::ZERO, |t| t.life.end);
            // Named as on the path: a thread that runs another program later had another name then.
            let shown: Option<NameId> = match self.outline.step(node) {
                Some(OutlineStep::Thread(_, shown)) => shown,
                _ => None,
            };
            let named_until = shown.and_then(|shown| self.names.last_time(self.timeline.thread(thread)?, shown));
            let id = self.threads.id(thread, named_until.unwrap_or(end), &mut model.who, &mut model.names);
            *model.contexts.who.entry((self.contexts[node.index()], id)).or_insert(0) += ns;
        }
        categories::add(&mut self.model);
        (self.model, self.contributions)
    }
}
