//! The job runner: runs one job on the backend and sends its results.
//!
//! `jobs` calls it on the background thread; tests call it directly, so that they see the results of a
//! job in the order in which the interface does. All work of a job obeys its memory limit. The runner keeps the
//! histogram counter from one comparison to the next. Errors and panics of the backend become results.

use super::counts::HistogramCounter;
use super::job::{ArrangedTrees, ComparedGroups, Done, Job, JobError, ReadTimelines, WriteOutcome};
use super::setup::Backend;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::memory;
use crate::compare::arranged::{Arrangement, KernelFrames, TreeDirection, arrange, invert};
use crate::compare::calls::aligned::PairedCalls;
use crate::compare::moments::align;
use crate::compare::{Comparison, ComparisonRequest};
use crate::model::Model;
use crate::model::execution::ExecutionId;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The backend, and the histogram counter of the latest model.
pub struct Runner {
    backend: Box<dyn Backend>,
    counter: Option<HistogramCounter>,
}

impl Runner {
    /// A runner that has done nothing yet.
    pub fn new(backend: Box<dyn Backend>) -> Runner {
        Runner { backend, counter: None }
    }

    /// Run a job to its end; `send` gets each result as soon as it is there.
    pub fn run(&mut self, job: Job, ctx: &Ctx, send: &mut dyn FnMut(Done)) {
        match job {
            Job::Analyse { task } => {
                // The counter of the old model is of no use to the new one: free it before that is built.
                self.counter = None;
                send(Done::Analysed(caught(ctx, || self.backend.analyse(task.as_deref(), ctx))));
            }
            Job::SetBaseline { baseline, task } => {
                self.counter = None;
                let input = caught(ctx, || self.backend.set_baseline(baseline.as_deref(), task.as_deref(), ctx));
                send(Done::BaselineSet(input.map(Box::new)));
            }
            Job::Compare { model, request, arrangement, direction } => self.compare(
                &model,
                request,
                &|comparison| trees(&model, comparison, &arrangement, direction, false, ctx),
                ctx,
                send,
            ),
            Job::Arrange { model, comparison, arrangement, direction, has_callers_first } => {
                let made = || Ok(trees(&model, &comparison, &arrangement, direction, has_callers_first, ctx)?);
                let trees = caught(ctx, made);
                send(Done::Arranged(arrangement, trees));
            }
            Job::CountCells { question } => {
                let cells = caught(ctx, || Ok(question.clone().count()));
                send(Done::Cells(Box::new(question), Box::new(cells)));
            }
            Job::Mine { settings } => {
                let found = caught(ctx, || self.backend.anomalies(&settings, ctx)).map(Arc::new);
                send(Done::Mined(settings, found));
            }
            Job::Survey => send(Done::Surveyed(caught(ctx, || self.backend.survey(ctx)).map(Into::into))),
            Job::Timelines { executions, kernel } => {
                let read =
                    caught(ctx, || timelines(self.backend.timelines(&executions, ctx)?, &executions, kernel, ctx));
                send(Done::Timelines(executions, read));
            }
            Job::Concurrent { question } => {
                let found = caught(ctx, || self.backend.concurrent(&question, ctx));
                send(Done::Concurrent(question, found));
            }
            Job::Overview { span } => {
                let overview = caught(ctx, || self.backend.overview(span, ctx)).map(Arc::new);
                send(Done::Overview(span, overview));
            }
            Job::Threads { question } => {
                let answer = caught(ctx, || self.backend.threads(&question, ctx)).map(Box::new);
                send(Done::Threads(question, answer));
            }
            Job::Export { what, path, existing } => {
                let outcome = match caught(ctx, || self.backend.export(&what, ctx)) {
                    Ok(text) => self.backend.write(&path, &text, existing),
                    Err(error) => WriteOutcome::Failed(error.to_string()),
                };
                send(Done::Exported { path, outcome });
            }
        }
    }

    fn compare(
        &mut self,
        model: &Arc<Model>,
        request: ComparisonRequest,
        trees: &dyn Fn(&Comparison) -> Result<ArrangedTrees, Cancelled>,
        ctx: &Ctx,
        send: &mut dyn FnMut(Done),
    ) {
        // While the user moves a filter, the counts come first: they take milliseconds.
        let known = self.counter.as_ref().is_some_and(|c| c.is_of(model));
        let given = !request.slow.is_empty() || !request.fast.is_empty();
        let counts_first = known && given;
        if counts_first {
            self.count(model, &request, ctx, send);
        }
        let result = caught(ctx, || {
            let comparison = Arc::new(self.backend.compare(model, &request, ctx)?);
            let trees = trees(&comparison)?;
            Ok(ComparedGroups { comparison, trees })
        });
        let groups = match &result {
            Ok(compared) => compared.comparison.request(),
            Err(_) => request.clone(),
        };
        send(Done::Compared(result));
        // A group without filters is the rest of the other one, which only the comparison knows.
        if !counts_first || groups != request {
            self.count(model, &groups, ctx, send);
        }
    }

    fn count(&mut self, model: &Arc<Model>, groups: &ComparisonRequest, ctx: &Ctx, send: &mut dyn FnMut(Done)) {
        if !self.counter.as_ref().is_some_and(|c| c.is_of(model)) {
            self.counter = caught(ctx, || Ok(HistogramCounter::new(model, ctx)?)).ok();
        }
        if let Some(counter) = &mut self.counter {
            send(Done::Counted(Arc::new(counter.count(groups))));
        }
    }
}

/// The result of work within the limit of its job; it may fail or panic.
fn caught<T>(ctx: &Ctx, run: impl FnOnce() -> anyhow::Result<T>) -> Result<T, JobError> {
    match catch_unwind(AssertUnwindSafe(|| memory::within(ctx.memory, ctx, run)?)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(JobError::Failed(format!("{error:#}"))),
        Err(panic) => {
            let message = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
            let message = message.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            Err(JobError::Panicked(message))
        }
    }
}
/// The trees of a comparison in an arrangement: callers first unless the screen has that one, and callees first where
/// that is asked for.
fn trees(
    model: &Model,
    comparison: &Comparison,
    arrangement: &Arrangement,
    direction: TreeDirection,
    has_callers_first: bool,
    ctx: &Ctx,
) -> Result<ArrangedTrees, Cancelled> {
    let callees_first = match direction {
        TreeDirection::CallersFirst => None,
        TreeDirection::CalleesFirst => Some(Arc::new(invert(model, comparison, arrangement, ctx)?)),
    };
    let callers_first = if has_callers_first { None } else { arrange(model, comparison, arrangement, ctx)? };
    Ok(ArrangedTrees { callers_first: callers_first.map(Arc::new), callees_first })
}

/// The timelines of one or two executions, with their calls aligned.
fn timelines(
    model: Arc<Model>,
    executions: &[ExecutionId],
    kernel: KernelFrames,
    ctx: &Ctx,
) -> anyhow::Result<ReadTimelines> {
    let other = executions.get(1).copied();
    let first = executions.first().filter(|first| model.timelines.contains_key(first)).copied();
    let other = other.filter(|other| model.timelines.contains_key(other));
    let calls = match first {
        Some(first) => PairedCalls::new(&model, first, other, kernel, &ctx.cancel)?,
        None => PairedCalls::default(),
    };
    calls.hold(&model, ctx);
    let aligned = first.zip(other).map(|(first, other)| align(&model, first, other)).transpose()?;
    let divergence = aligned.and_then(|aligned| aligned.divergence());
    Ok(ReadTimelines { model, calls: Arc::new(calls), divergence })
}
