//! What a recording says of itself: its title, facts, labels, notices, and the sums of `stats`; of open traces, or of a
//! history file in their place.

use super::reopened::Reopened;
use super::traces::Traces;
use super::{Invariants, OpenOptions, UsageError};
use crate::analysis::symbols::files::SymbolPaths;
use crate::analysis::usage::Usage;
use crate::base::ctx::Ctx;
use crate::base::notice::Notices;
use crate::base::time::Span;
use crate::explain::facts::facts;
use crate::input::{Argument, Source, count};
use crate::model::counts::RecordCounts;
use crate::model::execution::ExecutionId;
use crate::model::facts::Facts;
use crate::model::join::{self, Renamed};
use crate::model::recorded::Recorded;
use crate::model::usage::{CpuTotals, IoUse};
use crate::model::{Model, TraceInfo, TraceLevel};
use crate::reading::bind::Focus;
use crate::reading::engine::EngineOptions;
use crate::reading::topics;
use crate::state::kernel::Handlers;
use std::collections::BTreeSet;
use std::sync::OnceLock;

impl Traces {
    /// Recordings in history files, at least one.
    pub fn reopen(arguments: &[Argument], options: &OpenOptions, ctx: &Ctx) -> anyhow::Result<Traces> {
        let mut opened = Vec::new();
        for argument in arguments {
            let (reopened, mut catalog, clocks) = Reopened::open(argument, ctx)?;
            if let Some(file) = options.tasks.as_deref() {
                catalog = catalog.with_file(file)?;
            }
            if let Some(file) = &options.handlers {
                let why = "the causes of waits are those of the build: give it to `whyslow build --history`";
                return Err(UsageError(format!("--handlers {}: {why}", file.display())).into());
            }
            opened.push(Traces {
                sources: Vec::new(),
                reopened: Some(Box::new(reopened)),
                others: Vec::new(),
                tasks: OnceLock::from(Box::new(catalog)),
                clocks: Some(clocks),
                handlers: Handlers::built_in(),
                handlers_checksum: 0,
                engine: EngineOptions::default(),
                recorded: OnceLock::new(),
            });
        }
        let mut opened = opened.into_iter();
        let first = opened.next().ok_or_else(|| UsageError("name a history file".to_owned()))?;
        Ok(Traces { others: opened.collect(), ..first })
    }

    /// Error, in one line, if a question about one recording is asked of several history files.
    pub fn alone(&self, question: &str) -> anyhow::Result<()> {
        if self.others.is_empty() {
            return Ok(());
        }
        anyhow::bail!("{}: `whyslow {question}` is asked of one history file at a time", self.title())
    }

    /// The open traces; one line for a question that a history file does not answer.
    pub fn opened(&self, question: &str) -> anyhow::Result<&[Source]> {
        match &self.reopened {
            Some(reopened) => reopened.refuse(question),
            None => Ok(&self.sources),
        }
    }

    /// The executions of several history files: those of the task that the first one chooses, where none is named.
    pub(super) fn joined_model(
        &mut self,
        typed: Option<&str>,
        places: &SymbolPaths,
        timelines: &[ExecutionId],
        ctx: &Ctx,
    ) -> anyhow::Result<Model> {
        if !timelines.is_empty() {
            self.alone("diff --executions")?;
        }
        let mut others = std::mem::take(&mut self.others);
        let models = self.model(typed, places, &[], ctx).and_then(|first| {
            let task = first.tasks.get(first.task).cloned().unwrap_or_default();
            let mut models = vec![first];
            for other in &mut others {
                models.push(other.model(Some(&task), places, &[], ctx)?);
            }
            Ok(models)
        });
        self.others = others;
        Ok(join::join(models?, &Renamed::new(), ctx)?)
    }

    /// The traces as the user named them.
    pub fn title(&self) -> String {
        if let Some(reopened) = &self.reopened {
            let others = self.others.iter().map(Traces::title);
            return std::iter::once(reopened.title()).chain(others).collect::<Vec<_>>().join(" + ");
        }
        let mut labels: Vec<&str> = self.sources.iter().map(|s| s.label.as_str()).collect();
        labels.dedup();
        labels.join(" + ")
    }

    /// Events per name.
    pub fn count(&self, ctx: &Ctx) -> anyhow::Result<(RecordCounts, Notices)> {
        if let Some(reopened) = &self.reopened {
            return reopened.refuse("stats count");
        }
        Ok(count::count(&self.sources, ctx)?)
    }

    /// True where they hold any event.
    pub(super) fn has_events(&self, ctx: &Ctx) -> anyhow::Result<bool> {
        match &self.reopened {
            Some(reopened) => Ok(reopened.has_events()),
            None => Ok(self.count(ctx)?.0.events > 0),
        }
    }

    /// Facts about the traces.
    pub fn facts(&self) -> Facts {
        self.reopened.as_ref().map_or_else(|| facts(&self.sources), |reopened| reopened.facts().clone())
    }

    /// By trace: its label, and whether the user gave it.
    pub(super) fn given_labels(&self) -> Vec<(&str, bool)> {
        match &self.reopened {
            Some(reopened) => reopened.labels().collect(),
            None => self.sources.iter().map(|source| (source.label.as_str(), source.labelled)).collect(),
        }
    }

    /// The labels, if users gave all and there are two of them.
    pub(super) fn labels_of_two(&self) -> Option<BTreeSet<&str>> {
        let given = self.given_labels();
        let labels: BTreeSet<&str> = given.iter().map(|(label, _)| *label).collect();
        (labels.len() == 2 && given.iter().all(|(_, labelled)| *labelled)).then_some(labels)
    }

    /// CPU time by CPU and thread.
    pub fn cpu_totals(&self, invariants: Invariants, ctx: &Ctx) -> anyhow::Result<(CpuTotals, Notices)> {
        self.alone("stats cpu")?;
        if let Some(reopened) = &self.reopened {
            return Ok(reopened.cpu_totals());
        }
        let (usage, notices) = self.usage(Focus::Running, invariants, ctx)?;
        Ok((CpuTotals { cpus: usage.cpus(), threads: usage.threads() }, notices))
    }

    /// Bytes read and written by process.
    pub fn transfers(&self, invariants: Invariants, ctx: &Ctx) -> anyhow::Result<(Vec<IoUse>, Notices)> {
        self.alone("stats io")?;
        if let Some(reopened) = &self.reopened {
            return Ok(reopened.transfers());
        }
        let (usage, notices) = self.usage(Focus::Transfers, invariants, ctx)?;
        Ok((usage.processes(), notices))
    }

    /// CPU time by thread, or bytes read and written by process.
    fn usage(&self, focus: Focus, invariants: Invariants, ctx: &Ctx) -> anyhow::Result<(Usage, Notices)> {
        let (usage, mut notices) = Usage::read(&self.traces(), &self.labels(), focus, &self.engine, ctx)?;
        notices.merge(&self.notices());
        if invariants == Invariants::Checked
            && let Some(broken) = usage.check()
        {
            anyhow::bail!("an invariant does not hold: {broken}; please report this");
        }
        Ok((usage, notices))
    }

    /// Notices raised when the traces were opened.
    pub fn notices(&self) -> Notices {
        let mut notices = self.reopened.as_ref().map(|reopened| reopened.notices()).unwrap_or_default();
        self.others.iter().for_each(|other| notices.merge(&other.notices()));
        self.sources.iter().for_each(|s| notices.merge(&s.trace.notices()));
        notices
    }

    /// The traces as a model describes them.
    pub(super) fn about(&self) -> Vec<TraceInfo> {
        if let Some(reopened) = &self.reopened {
            return reopened.traces();
        }
        let read = || self.sources.iter().map(|source| topics::recorded(&source.trace)).collect();
        let recorded: &Vec<Recorded> = self.recorded.get_or_init(read);
        self.sources.iter().zip(recorded).map(|(source, recorded)| about(source, recorded)).collect()
    }
}

/// Label and bounds, from the packets.
fn about(source: &Source, recorded: &Recorded) -> TraceInfo {
    let packets = || source.trace.streams().iter().flat_map(|s| &s.packets);
    let start = packets().filter_map(|p| p.begin).min().unwrap_or_default();
    let end = packets().filter_map(|p| p.end).max().unwrap_or(start);
    let (label, span, recorded) = (source.label.clone(), Span::new(start, end), Some(recorded.clone()));
    TraceInfo { label, level: TraceLevel::Machine, span, recorded }
}
