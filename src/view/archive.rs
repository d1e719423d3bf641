//! `info` of an OTF2 archive.
//!
//! In: facts about the archive, and its iterations. Out: the same schema as for other traces (`whyslow.info/1`),
//! without the fields that an archive does not have (packets, losses).

use super::anomalies::{ClockJson, clocks};
use super::info::{self, Measured, QuestionJson, TaskFacts};
use super::missing::{self, MissingJson};
use crate::advice::questions::Answered;
use crate::base::notice::Notices;
use crate::base::time::Timestamp;
use crate::base::{clean, figure};
use crate::model::anomalies::Anomalies;
use crate::model::facts::{ArchiveFacts, TaskDurations};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

fn warnings(notices: &Notices) -> Vec<String> {
    notices.sentences().iter().map(|s| clean::line(s)).collect()
}

/// `whyslow.info/1`
#[derive(Clone, Debug, Serialize)]
pub struct ArchiveDocument {
    schema: &'static str,
    traces: Vec<TraceFacts>,
    lost: Lost,
    tasks: Vec<TaskFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clocks: Option<Vec<ClockJson>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    questions: Vec<QuestionJson>,
    missing: Vec<MissingJson>,
    warnings: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct TraceFacts {
    path: String,
    format: String,
    begin_ns: Option<Timestamp>,
    end_ns: Option<Timestamp>,
    streams: usize,
    packets: Option<u64>,
    host: Option<String>,
    clock: Option<String>,
    event_types: Option<usize>,
    creator: String,
    nodes: BTreeSet<String>,
    ranks: usize,
    threads: usize,
    accelerator_streams: usize,
    communicators: usize,
    properties: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Serialize)]
struct Lost {
    events: u64,
    packets: u64,
    streams: u64,
}

impl ArchiveDocument {
    /// From anchor and definitions alone; with `analysed` also clocks and the iterations as tasks.
    pub fn new(
        archive: &ArchiveFacts,
        analysed: Option<(&[TaskDurations], &Anomalies)>,
        notices: &Notices,
    ) -> ArchiveDocument {
        let trace = TraceFacts {
            path: clean::owned(&archive.path),
            format: archive.format.clone(),
            begin_ns: archive.begin,
            end_ns: archive.end,
            streams: archive.streams,
            packets: None,
            host: archive.host.as_deref().map(clean::owned),
            clock: Some(archive.clock.clone()),
            event_types: None,
            creator: clean::owned(&archive.creator),
            nodes: archive.nodes.iter().map(|node| clean::owned(node)).collect(),
            ranks: archive.ranks,
            threads: archive.threads,
            accelerator_streams: archive.accelerator_streams,
            communicators: archive.communicators,
            properties: archive.properties.iter().map(|(k, v)| (clean::owned(k), clean::owned(v))).collect(),
        };
        let task = |task: &TaskDurations| TaskFacts {
            name: clean::owned(&task.name),
            measured: Some(Measured::new(&task.durations)),
            unknown_waits: None,
        };
        ArchiveDocument {
            schema: "whyslow.info/1",
            traces: vec![trace],
            lost: Lost { events: 0, packets: 0, streams: 0 },
            tasks: analysed.map_or_else(Vec::new, |(tasks, _)| tasks.iter().map(task).collect()),
            clocks: analysed.map(|(_, found)| clocks(&found.streams)),
            questions: Vec::new(),
            missing: missing::of_archive(archive),
            warnings: warnings(notices),
        }
    }

    /// Add the answers to the questions of data quality.
    pub fn with_questions(mut self, answered: &[Answered]) -> ArchiveDocument {
        self.questions = info::questions(answered);
        self
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        for t in &self.traces {
            writeln!(out, "{}  {}", t.path, t.format)?;
            let clock = t.clock.as_deref().unwrap_or("unknown frequency");
            writeln!(out, "    clock of {clock}, {}", figure::plural(t.streams as u64, "location"))?;
            let by = if t.creator.is_empty() { "an unknown tracer" } else { &t.creator };
            write!(out, "    by {by}: {} ranks, {} threads, ", t.ranks, t.threads)?;
            writeln!(out, "{} accelerator streams, {} communicators", t.accelerator_streams, t.communicators)?;
            if !t.nodes.is_empty() {
                let more = match t.nodes.len().saturating_sub(NODES) {
                    0 => String::new(),
                    more => format!(" and {more} more (--json lists all)"),
                };
                let nodes = t.nodes.iter().take(NODES).cloned().collect::<Vec<_>>().join(", ");
                writeln!(out, "    nodes: {nodes}{more}")?;
            }
            if let Some(length) = t.begin_ns.zip(t.end_ns).map(|(begin, end)| end - begin) {
                writeln!(out, "    {} s, as declared by the archive", figure::seconds(length, 3))?;
            }
        }
        if !self.tasks.is_empty() {
            info::write_tasks(&self.tasks, out)?;
        }
        for clock in self.clocks.iter().flatten() {
            writeln!(out, "{clock}")?;
        }
        info::write_questions(&self.questions, out)?;
        missing::write_of_archive(&self.missing, out)?;
        for warning in &self.warnings {
            writeln!(out, "note: {warning}")?;
        }
        Ok(())
    }
}

/// Nodes named in the text.
const NODES: usize = 16;
