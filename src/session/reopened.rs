//! A recording that is reopened from a history file, without its traces.
//!
//! In: the file. Out: what a session asks of traces: states with the events of tasks, tasks, facts, notices. Tables and
//! index are read when the file is opened, rows when they are asked for ([`LeafChecks`]); each question gets a copy of
//! the tables, which shares the rows. A task whose events are not in the file is refused by its name. Several files are
//! several recordings, whose executions are joined. Cost: the bytes of tables and index, and a read for each leaf.

use super::UsageError;
use super::catalog::TaskCatalog;
use super::history::RecordedHistory;
use super::history_file::{
    HISTORY, HistoryStates, KeptHistory, KeptRecording, KeptTasks, KeptTrace, KeptUsage, RECORDING, SYMBOLS, TASKS,
    USAGE,
};
use crate::base::ctx::Ctx;
use crate::base::notice::Notices;
use crate::event::task::{Pairing, TaskDefinition};
use crate::input::Argument;
use crate::model::TraceInfo;
use crate::model::clock::FittedClocks;
use crate::model::facts::Facts;
use crate::model::stored::StoredRows;
use crate::model::usage::{CpuTotals, IoUse};
use crate::saved::states::{self, HistoryFile, HistoryFileError, LeafChecks, StatesOf};
use crate::symbols::cache::SymbolCache;
use crate::symbols::files::SymbolPaths;
use crate::symbols::kept;
use crate::timeline::{RecordedTimeline, Timeline};
use std::sync::Arc;

/// See the module.
pub(super) struct Reopened {
    file: Arc<HistoryFile>,
    checks: LeafChecks,
    /// Given by the user.
    label: Option<String>,
    timeline: Timeline,
    /// The tasks whose events are in it.
    marked: Vec<TaskDefinition>,
    recording: KeptRecording,
    usage: KeptUsage,
    history: KeptHistory,
    symbols: Arc<SymbolCache>,
    /// About the file itself.
    damage: Notices,
}

impl Reopened {
    /// Open a history file; and the tasks and clocks of its recording.
    pub fn open(
        argument: &Argument,
        checks: LeafChecks,
        ctx: &Ctx,
    ) -> Result<(Reopened, TaskCatalog, FittedClocks), HistoryFileError> {
        ctx.progress.enter("opening", 0);
        let file = Arc::new(HistoryFile::open(&argument.path)?);
        let mut damage = Notices::default();
        let mut recording: KeptRecording = file.value(RECORDING)?;
        let KeptTasks { tasks, declared, classes, marked } = file.value(TASKS)?;
        let usage = file.value(USAGE)?;
        let symbols = kept::read(&file.section(SYMBOLS)?).ok_or_else(|| file.contradiction(SYMBOLS))?;
        let timeline = states::read(&file, (StatesOf::AllEvents, checks), &mut damage, ctx)?;
        let history = file.value(HISTORY)?;
        if recording.traces.len() != timeline.traces().len() || declared > tasks.len() {
            return Err(file.contradiction(RECORDING));
        }
        if let Some(label) = &argument.label {
            recording.rename(label);
        }
        let clocks = std::mem::take(&mut recording.clocks);
        let catalog = TaskCatalog::kept(tasks, declared, classes.into_iter().map(Arc::new).collect());
        let (label, symbols) = (argument.label.clone(), Arc::new(symbols));
        let reopened = Reopened { file, checks, label, timeline, marked, recording, usage, history, symbols, damage };
        Ok((reopened, catalog, clocks))
    }

    /// The file as the user named it.
    pub fn title(&self) -> String {
        self.label.clone().unwrap_or_else(|| self.file.path().display().to_string())
    }

    /// The states, with the events of some tasks in this order.
    pub fn record(&self, tasks: &[TaskDefinition]) -> Result<(RecordedTimeline, Notices), UsageError> {
        let mut positions = vec![Vec::new(); self.marked.len()];
        for (position, task) in (0_u32..).zip(tasks) {
            if matches!(task.pairing, Pairing::Derived(_)) {
                continue;
            }
            let marked = self.marked.iter().position(|marked| has_same_events(marked, task));
            match marked.and_then(|marked| positions.get_mut(marked)) {
                Some(positions) => positions.push(position),
                None => return Err(self.refuse_task(task)),
            }
        }
        let mut timeline = RecordedTimeline::new(self.timeline.clone());
        let is_same = |(at, positions): (u32, &Vec<u32>)| *positions == [at];
        if !(0_u32..).zip(&positions).all(is_same) {
            timeline.renumber_tasks(&positions);
        }
        let mut notices = self.recording.pass.clone();
        notices.merge(&self.damage);
        Ok((timeline, notices))
    }

    /// The state history that `query` asks.
    pub fn history(&self, ctx: &Ctx) -> anyhow::Result<RecordedHistory> {
        let KeptHistory { states, span, notices } = &self.history;
        let mut notices = notices.clone();
        if *states == HistoryStates::Own {
            let timeline = states::read(&self.file, (StatesOf::KernelEvents, self.checks), &mut notices, ctx)?;
            return Ok(RecordedHistory::new(timeline, None, notices));
        }
        notices.merge(&self.damage);
        let beginning = (*states == HistoryStates::Beginning).then_some(*span);
        Ok(RecordedHistory::new(self.timeline.clone(), beginning, notices))
    }

    /// How large the store of the states is.
    pub fn stored(&self) -> StoredRows {
        self.timeline.stored()
    }

    fn refuse_task(&self, task: &TaskDefinition) -> UsageError {
        let name = if task.name.is_empty() { "of functions" } else { &task.name };
        UsageError(format!(
            "--task {name}: {} does not hold its events; build it again from the trace with `whyslow build --history \
             --task {name}`",
            self.title()
        ))
    }

    /// One line for a question that only the events answer.
    pub fn refuse<T>(&self, question: &str) -> anyhow::Result<T> {
        anyhow::bail!(
            "{}: a history file holds states and no events: run `whyslow {question}` on the original trace",
            self.title()
        )
    }

    /// The names of functions that are in the file, whatever files there are now.
    pub fn symbols(&self) -> SymbolPaths {
        SymbolPaths { known: Some(Arc::clone(&self.symbols)), ..SymbolPaths::default() }
    }

    /// Notices raised when the traces and the file were opened.
    pub fn notices(&self) -> Notices {
        let mut notices = self.recording.opened.clone();
        notices.merge(&self.damage);
        notices
    }

    /// Facts about the traces.
    pub fn facts(&self) -> &Facts {
        &self.recording.facts
    }

    /// By trace: its label, bounds, and what it recorded.
    pub fn traces(&self) -> Vec<TraceInfo> {
        self.recording.traces.iter().map(|trace| trace.info.clone()).collect()
    }

    /// By trace: its label, and whether a user gave it.
    pub fn labels(&self) -> impl Iterator<Item = (&str, bool)> {
        self.recording.traces.iter().map(|trace| (trace.info.label.as_str(), trace.labelled))
    }

    /// True where the traces had any event.
    pub fn has_events(&self) -> bool {
        self.recording.has_events
    }

    /// CPU time by CPU and thread.
    pub fn cpu_totals(&self) -> (CpuTotals, Notices) {
        (self.usage.cpu.clone(), self.usage.cpu_notices.clone())
    }

    /// Bytes read and written by process.
    pub fn transfers(&self) -> (Vec<IoUse>, Notices) {
        (self.usage.io.clone(), self.usage.io_notices.clone())
    }
}

impl KeptRecording {
    /// Give all traces a label.
    fn rename(&mut self, label: &str) {
        let KeptRecording { facts, traces, .. } = self;
        for (facts, KeptTrace { info, labelled, .. }) in facts.traces.iter_mut().zip(traces) {
            if let Some(below) = facts.path.strip_prefix(&info.label) {
                facts.path = format!("{label}{below}");
            }
            (info.label, *labelled) = (label.to_owned(), true);
        }
    }
}

/// The events of one delimit the other. The task of a function has the events of all functions, and that of a process
/// those of all processes.
fn has_same_events(a: &TaskDefinition, b: &TaskDefinition) -> bool {
    let TaskDefinition { name: _, begins, ends, pairing, kind, nest, process: _ } = a;
    (begins, ends, pairing, kind, nest) == (&b.begins, &b.ends, &b.pairing, &b.kind, &b.nest)
}
