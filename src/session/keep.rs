//! Writing a history file: the states of a recording, with all that answers about it without its traces.
//!
//! In: traces, and tasks whose events are wanted beside those that are worth a look by themselves. Out: the file's
//! sections. The states are kept as the kernel pass leaves them, before anything is derived of them, so that what is
//! derived of the file is what is derived of the traces. The functions of all stacks that threads ever had are
//! resolved, not only those on some critical path. Cost: two kernel passes (the second one without programs' events,
//! for `query`), the stacks of all threads, and two passes for `stats`.

use super::UsageError;
use super::history::RecordedHistory;
use super::history_file::{
    CLASSES, HISTORY, HistoryStates, KeptHistory, KeptRecording, KeptTasks, KeptTrace, KeptUsage, RECORDING, SYMBOLS,
    TASKS, USAGE,
};
use super::pass::KernelPass;
use super::run::MpiRuns;
use super::traces::Traces;
use crate::base::ctx::Ctx;
use crate::base::names::Names;
use crate::base::notice::Notices;
use crate::base::packed::bytes_of;
use crate::event::task::{Pairing, TaskDefinition};
use crate::model::clock::FittedClocks;
use crate::model::facts::Facts;
use crate::model::{TraceInfo, TraceLevel};
use crate::reading::signature::EventSignature;
use crate::reading::tasks;
use crate::saved::SavedKind;
use crate::saved::states::{self, StatesOf};
use crate::saved::writing::SavedFileWriter;
use crate::symbols::cache::SymbolCache;
use crate::symbols::files::SymbolPaths;
use crate::symbols::{self, ProcessStack, StackResolver, kept};
use crate::timeline::Timeline;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A history file in the making, and the notices of the pass over its recording.
pub struct NewHistoryFile {
    pub writer: SavedFileWriter,
    /// About the recording.
    pub notices: Notices,
}

impl Traces {
    /// A history file of the recording. `typed` are tasks whose events it holds beside those that are worth a look by
    /// themselves: system calls and interrupts, and delimiters that the user names.
    pub fn keep(&mut self, typed: &[&str], places: &SymbolPaths, ctx: &Ctx) -> anyhow::Result<NewHistoryFile> {
        if let Some(reopened) = &self.reopened {
            anyhow::bail!("{}: it is a history file already: copy it", reopened.title());
        }
        self.fit_clocks(ctx)?;
        let marked = self.marked(typed)?;
        // Before the copies of stacks are unwound, about which there are notices: only some questions need them.
        let opened = self.notices();
        let usage = self.kept_usage(ctx)?;
        let (bare, bare_notices) = self.record(&[], ctx)?;
        let known = Arc::new(SymbolCache::default());
        let places = SymbolPaths { known: Some(Arc::clone(&known)), ..self.with_recorded(places)? };
        let (timeline, notices) = self.states(&marked, &places, ctx)?;
        let mut writer = SavedFileWriter::new(SavedKind::States);
        writer.add(RECORDING, bytes_of(&self.kept_recording(opened, &notices, ctx)?));
        let catalog = self.tasks();
        let tasks = KeptTasks { tasks: catalog.tasks.clone(), declared: catalog.declared, marked };
        writer.add(TASKS, bytes_of(&tasks));
        writer.add(CLASSES, bytes_of(&*catalog.classes));
        writer.add(USAGE, bytes_of(&usage));
        states::write(&timeline, StatesOf::AllEvents, &mut writer);
        let history = kept_history(&timeline, (&bare, bare_notices), &mut writer, ctx)?;
        writer.add(HISTORY, bytes_of(&history));
        drop(bare);
        // A leaf that cannot be read back from a temporary file ends the work.
        ctx.cancel.check()?;
        let pass = self.derive(tasks.marked, timeline, notices.clone(), &places, ctx)?;
        writer.add(SYMBOLS, kept_symbols(&pass, &known, &places, ctx)?);
        Ok(NewHistoryFile { writer, notices })
    }

    /// The tasks whose events are kept: those that are tried where none is named, functions, and `typed`.
    fn marked(&self, typed: &[&str]) -> anyhow::Result<Vec<TaskDefinition>> {
        let mut marked = self.candidates(&[])?;
        marked.extend(tasks::function("", &self.tasks().classes));
        if !typed.is_empty() {
            for task in self.candidates(typed)? {
                if !matches!(task.pairing, Pairing::Derived(_)) && !marked.contains(&task) {
                    marked.push(task);
                }
            }
        }
        Ok(marked)
    }

    fn kept_recording(&self, opened: Notices, pass: &Notices, ctx: &Ctx) -> anyhow::Result<KeptRecording> {
        let labelled = self.sources.iter().map(|source| source.labelled);
        let traces = self.about().into_iter().zip(labelled);
        Ok(KeptRecording {
            facts: self.facts(),
            traces: traces.map(|(info, labelled)| KeptTrace { info, labelled }).collect(),
            opened,
            pass: pass.clone(),
            clocks: self.clocks.clone().unwrap_or_default(),
            has_events: self.has_events(ctx)?,
        })
    }

    fn kept_usage(&self, ctx: &Ctx) -> anyhow::Result<KeptUsage> {
        let (cpu, cpu_notices) = self.cpu_totals(super::Invariants::Assumed, ctx)?;
        let (io, io_notices) = self.transfers(super::Invariants::Assumed, ctx)?;
        Ok(KeptUsage { cpu, cpu_notices, io, io_notices })
    }
}

impl MpiRuns {
    /// A history file of the ranks of a run. It has no task: iterations are found in operations.
    pub fn keep(&self, typed: &[&str], ctx: &Ctx) -> anyhow::Result<NewHistoryFile> {
        self.alone("build --history")?;
        if let Some(task) = typed.first() {
            let why = "a history file of an MPI run holds states and no iterations: leave out --task or --history";
            return Err(UsageError(format!("--task {task}: {why}")).into());
        }
        let (timeline, notices) = self.states(ctx)?;
        let (facts, span) = (self.facts(), timeline.span());
        let (label, recorded) = (facts.path.clone(), facts.recorded.clone());
        let info = TraceInfo { label, level: TraceLevel::MpiRun, span, recorded };
        let recording = KeptRecording {
            facts: Facts { traces: vec![facts], ..Facts::default() },
            traces: vec![KeptTrace { info, labelled: self.label.is_some() }],
            opened: self.notices(),
            pass: notices.clone(),
            clocks: FittedClocks::default(),
            has_events: true,
        };
        let mut writer = SavedFileWriter::new(SavedKind::States);
        writer.add(RECORDING, bytes_of(&recording));
        writer.add(TASKS, bytes_of(&KeptTasks::default()));
        writer.add(CLASSES, bytes_of(&Vec::<Arc<EventSignature>>::new()));
        states::write(&timeline, StatesOf::AllEvents, &mut writer);
        let history = KeptHistory { states: HistoryStates::All, span, notices: notices.clone() };
        writer.add(HISTORY, bytes_of(&history));
        let none = kept::write(&SymbolCache::default(), None, &Notices::default(), timeline.stacks());
        writer.add(SYMBOLS, none);
        // A leaf that cannot be read back from a temporary file ends the work.
        ctx.cancel.check()?;
        Ok(NewHistoryFile { writer, notices })
    }
}

/// The state history of the kernel's events alone, which `query` asks: it seldom differs from the beginning of the
/// one of all events. Where it does, its states are kept as well.
fn kept_history(
    timeline: &Timeline,
    (bare, notices): (&Timeline, Notices),
    writer: &mut SavedFileWriter,
    ctx: &Ctx,
) -> anyhow::Result<KeptHistory> {
    let span = bare.span();
    let wanted = RecordedHistory::new(bare.clone(), None, Notices::default());
    let beginning = (timeline.span() != span).then_some(span);
    let own = RecordedHistory::new(timeline.clone(), beginning, Notices::default());
    let states = match (wanted.is_same(&own, ctx)?, beginning) {
        (true, None) => HistoryStates::All,
        (true, Some(_)) => HistoryStates::Beginning,
        (false, _) => {
            states::write(bare, StatesOf::KernelEvents, writer);
            HistoryStates::Own
        }
    };
    Ok(KeptHistory { states, span, notices })
}

/// The names of all functions that were on a stack or entered.
fn kept_symbols(pass: &KernelPass, known: &SymbolCache, places: &SymbolPaths, ctx: &Ctx) -> anyhow::Result<Vec<u8>> {
    let timeline = &pass.timeline;
    let tables = pass.stacks.get(timeline, places, ctx)?;
    let mut wanted: BTreeSet<ProcessStack> = BTreeSet::new();
    for stack in tables.timelines.distinct() {
        wanted.extend(stack.user);
        wanted.extend(stack.around.into_iter().flat_map(|around| [around.before, around.after]));
    }
    let wanted: Vec<ProcessStack> = wanted.into_iter().collect();
    let resolver = StackResolver::new(timeline, &tables.spaces, places, known);
    resolver.resolve(&wanted, &mut Names::default(), &mut Notices::default(), ctx)?;
    let mut about_kernel = Notices::default();
    let kernel = symbols::files::kernel_symbols(places, &mut about_kernel);
    Ok(kept::write(known, kernel.as_ref(), &about_kernel, timeline.stacks()))
}
