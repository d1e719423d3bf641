//! What a recording says of itself: its title, facts, labels, notices, and the sums of `stats`; of open traces, or of a
//! history file in their place.

use super::Invariants;
use super::history_file::KeptUsage;
use super::traces::Traces;
use crate::analysis::usage::Usage;
use crate::base::ctx::Ctx;
use crate::base::notice::Notices;
use crate::base::time::Span;
use crate::explain::facts::facts;
use crate::input::{Source, count};
use crate::model::counts::RecordCounts;
use crate::model::facts::Facts;
use crate::model::recorded::Recorded;
use crate::model::usage::{CpuTotals, IoUse};
use crate::model::{TraceInfo, TraceLevel};
use crate::reading::bind::Focus;
use crate::reading::topics;
use std::collections::BTreeSet;

impl Traces {
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
        let counted = count::count(&self.sources, ctx)?;
        count::give_back(&self.sources, ctx)?;
        Ok(counted)
    }

    /// True where they hold any event.
    pub(super) fn has_events(&self, ctx: &Ctx) -> anyhow::Result<bool> {
        match &self.reopened {
            Some(reopened) => Ok(reopened.has_events()),
            None => Ok(count::count(&self.sources, ctx)?.0.events > 0),
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
            let KeptUsage { cpu, cpu_notices, .. } = reopened.usage()?;
            return Ok((cpu, cpu_notices));
        }
        let (usage, notices) = self.usage(Focus::Running, invariants, ctx)?;
        Ok((CpuTotals { cpus: usage.cpus(), threads: usage.threads() }, notices))
    }

    /// Bytes read and written by process.
    pub fn transfers(&self, invariants: Invariants, ctx: &Ctx) -> anyhow::Result<(Vec<IoUse>, Notices)> {
        self.alone("stats io")?;
        if let Some(reopened) = &self.reopened {
            let KeptUsage { io, io_notices, .. } = reopened.usage()?;
            return Ok((io, io_notices));
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

    /// By trace: what it recorded.
    pub(super) fn recorded(&self) -> &[Recorded] {
        self.recorded.get_or_init(|| self.sources.iter().map(topics::recorded_by).collect())
    }

    /// The traces as a model describes them.
    pub(super) fn about(&self) -> Vec<TraceInfo> {
        if let Some(reopened) = &self.reopened {
            return reopened.traces();
        }
        self.sources.iter().zip(self.recorded()).map(|(source, recorded)| about(source, recorded)).collect()
    }
}

/// A trace as a model describes it.
pub(super) fn about_one(source: &Source) -> TraceInfo {
    about(source, &topics::recorded_by(source))
}

/// Label and bounds, from the packets.
fn about(source: &Source, recorded: &Recorded) -> TraceInfo {
    let packets = || source.trace.streams().iter().flat_map(|s| &s.packets);
    let start = packets().filter_map(|p| p.begin).min().unwrap_or_default();
    let end = packets().filter_map(|p| p.end).max().unwrap_or(start);
    let (label, span, recorded) = (source.label.clone(), Span::new(start, end), Some(recorded.clone()));
    TraceInfo { label, level: TraceLevel::Machine, span, recorded }
}
