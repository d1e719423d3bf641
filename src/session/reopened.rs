//! A recording that is reopened from a history file, without its traces.
//!
//! In: the file. Out: what a session asks of traces: states with the events of tasks, tasks, facts, notices. Facts are
//! read when the file is opened; tasks, classes of events, tables of the states, functions and totals when a question
//! first needs them; the index of a family of rows, and then the rows, when they are asked for ([`LeafChecks`]), all
//! with the file where damaged ones are to be left out.
//! Each question gets a copy of the tables, which shares the rows. A task whose events are not in the file is refused
//! by its name. Several files are several recordings, whose executions are joined. Cost: the bytes of the sections that
//! are needed, and a read for each leaf.

use super::UsageError;
use super::catalog::TaskCatalog;
use super::history::RecordedHistory;
use super::history_file::{
    CLASSES, HISTORY, HistoryStates, KeptHistory, KeptRecording, KeptTasks, KeptTrace, KeptUsage, RECORDING, SYMBOLS,
    TASKS, USAGE,
};
use crate::base::ctx::Ctx;
use crate::base::lazy::Lazy;
use crate::base::notice::Notices;
use crate::event::task::{Pairing, TaskDefinition};
use crate::input::Argument;
use crate::model::clock::FittedClocks;
use crate::model::facts::Facts;
use crate::model::stored::StoredRows;
use crate::model::{TraceInfo, TraceLevel};
use crate::reading::signature::EventSignature;
use crate::saved::container::SavedFile;
use crate::saved::states::{self, LeafChecks, StatesOf};
use crate::saved::{SavedFileError, SavedKind};
use crate::symbols::cache::SymbolCache;
use crate::symbols::files::SymbolPaths;
use crate::symbols::kept;
use crate::timeline::{RecordedTimeline, Timeline};
use std::sync::{Arc, OnceLock};

/// See the module.
pub(super) struct Reopened {
    file: Arc<SavedFile>,
    checks: LeafChecks,
    /// Given by the user.
    label: Option<String>,
    states: OnceLock<KeptStates>,
    tasks: Lazy<KeptTasks>,
    classes: Lazy<Vec<Arc<EventSignature>>>,
    recording: KeptRecording,
    symbols: OnceLock<Arc<SymbolCache>>,
}

/// The states in the file.
struct KeptStates {
    timeline: Timeline,
    /// Rows that were left out.
    damage: Notices,
}

impl Reopened {
    /// Open a history file; and the clocks of its recording.
    pub fn open(
        argument: &Argument,
        checks: LeafChecks,
        ctx: &Ctx,
    ) -> Result<(Reopened, FittedClocks), SavedFileError> {
        ctx.progress.enter("opening", 0);
        let file = Arc::new(SavedFile::open(&argument.path, SavedKind::States)?);
        let mut recording: KeptRecording = file.value(RECORDING)?;
        let of_tasks = Arc::clone(&file);
        let tasks = states::lazily(checks, &ctx.cancel, move || {
            let tasks: KeptTasks = of_tasks.value(TASKS)?;
            if tasks.declared <= tasks.tasks.len() { Ok(tasks) } else { Err(of_tasks.contradiction(TASKS)) }
        })?;
        let of_classes = Arc::clone(&file);
        let classes = states::lazily(checks, &ctx.cancel, move || of_classes.value(CLASSES))?;
        if let Some(label) = &argument.label {
            recording.rename(label);
        }
        let clocks = std::mem::take(&mut recording.clocks);
        let (label, states, symbols) = (argument.label.clone(), OnceLock::new(), OnceLock::new());
        let reopened = Reopened { file, checks, label, states, tasks, classes, recording, symbols };
        if checks == LeafChecks::AtOpening {
            // All notices are known from then on.
            reopened.states(ctx)?;
        }
        Ok((reopened, clocks))
    }

    /// Its tasks.
    pub fn catalog(&self) -> TaskCatalog {
        TaskCatalog::kept(self.tasks.tasks.clone(), self.tasks.declared, self.classes.clone())
    }

    /// The states, read once.
    fn states(&self, ctx: &Ctx) -> Result<&KeptStates, SavedFileError> {
        if let Some(states) = self.states.get() {
            return Ok(states);
        }
        let mut damage = Notices::default();
        let timeline = states::read(&self.file, (StatesOf::AllEvents, self.checks), &mut damage, ctx)?;
        if self.recording.traces.len() != timeline.traces().len() {
            return Err(self.file.contradiction(RECORDING));
        }
        Ok(self.states.get_or_init(|| KeptStates { timeline, damage }))
    }

    /// The file as the user named it.
    pub fn title(&self) -> String {
        self.label.clone().unwrap_or_else(|| self.file.path().display().to_string())
    }

    /// The states, with the events of some tasks in this order.
    pub fn record(&self, tasks: &[TaskDefinition], ctx: &Ctx) -> anyhow::Result<(RecordedTimeline, Notices)> {
        let mut positions = vec![Vec::new(); self.tasks.marked.len()];
        for (position, task) in (0_u32..).zip(tasks) {
            if matches!(task.pairing, Pairing::Derived(_)) {
                continue;
            }
            let marked = self.tasks.marked.iter().position(|marked| has_same_events(marked, task));
            match marked.and_then(|marked| positions.get_mut(marked)) {
                Some(positions) => positions.push(position),
                None => return Err(self.refuse_task(task).into()),
            }
        }
        self.is_of_kernel()?;
        let KeptStates { timeline, damage } = self.states(ctx)?;
        let mut timeline = RecordedTimeline::new(timeline.clone());
        let is_same = |(at, positions): (u32, &Vec<u32>)| *positions == [at];
        if !(0_u32..).zip(&positions).all(is_same) {
            timeline.renumber_tasks(&positions);
        }
        let mut notices = self.recording.pass.clone();
        notices.merge(damage);
        Ok((timeline, notices))
    }

    /// The state history that `query` asks.
    pub fn history(&self, ctx: &Ctx) -> anyhow::Result<RecordedHistory> {
        let KeptHistory { states, span, mut notices } = self.file.value(HISTORY)?;
        if states == HistoryStates::Own {
            let timeline = states::read(&self.file, (StatesOf::KernelEvents, self.checks), &mut notices, ctx)?;
            return Ok(RecordedHistory::new(timeline, None, notices));
        }
        let KeptStates { timeline, damage } = self.states(ctx)?;
        notices.merge(damage);
        let beginning = (states == HistoryStates::Beginning).then_some(span);
        Ok(RecordedHistory::new(timeline.clone(), beginning, notices))
    }

    /// How large the store of the states is.
    pub fn stored(&self, ctx: &Ctx) -> anyhow::Result<StoredRows> {
        Ok(self.states(ctx)?.timeline.stored())
    }

    /// One line for a question that the states of an MPI run do not answer.
    pub fn is_of_kernel(&self) -> anyhow::Result<()> {
        if self.recording.traces.iter().all(|trace| trace.info.level == TraceLevel::Machine) {
            return Ok(());
        }
        anyhow::bail!(
            "{}: a history file of an MPI run holds the states and regions of its ranks, which `whyslow query` answers \
             of: ask other questions of the archive",
            self.title()
        )
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
    pub fn symbols(&self) -> Result<SymbolPaths, SavedFileError> {
        let known = match self.symbols.get() {
            Some(known) => known,
            None => {
                let read = kept::read(&self.file.section(SYMBOLS)?);
                let known = Arc::new(read.ok_or_else(|| self.file.contradiction(SYMBOLS))?);
                self.symbols.get_or_init(|| known)
            }
        };
        Ok(SymbolPaths { known: Some(Arc::clone(known)), ..SymbolPaths::default() })
    }

    /// Notices raised when the traces and the file were opened.
    pub fn notices(&self) -> Notices {
        let mut notices = self.recording.opened.clone();
        self.states.get().iter().for_each(|states| notices.merge(&states.damage));
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

    /// CPU time by CPU and thread, and bytes read and written by process.
    pub fn usage(&self) -> anyhow::Result<KeptUsage> {
        self.is_of_kernel()?;
        Ok(self.file.value(USAGE)?)
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
