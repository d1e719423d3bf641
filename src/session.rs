//! The whole way from a path to an answer: open, find tasks, read, explain, compare.
//!
//! A [`Session`] is the CTF traces of one command line, opened: metadata and packet indexes are read, events are not. The
//! archive of an MPI run takes the other way, over patterns: nothing delimits its executions.
//! Each method below it is one question; each runs on the workers of the [`Work`] it is given, reports progress to it
//! and ends early when it is cancelled.

use crate::analysis::clocks::{self, HostClock};
use crate::analysis::executions::Rule;
use crate::analysis::operations;
use crate::analysis::patterns::Mined;
use crate::analysis::patterns::measure::Settings;
use crate::analysis::survey::{self, Survey};
use crate::analysis::symbols::files::Places;
use crate::base::notice::Notices;
use crate::base::time::{Ns, Span};
use crate::base::work::Work;
use crate::cli::Common;
use crate::compare::{self, CompareError, Comparison};
use crate::event::bind::is_kernel;
use crate::event::mpi;
use crate::event::operation::Operations;
use crate::event::task::{self, ClassFace, Pairing, TaskDefinition};
use crate::input::count::{self, Counts};
use crate::input::otf2::Archive;
use crate::input::record::ClassId;
use crate::input::{self, Opened, Source};
use crate::model::build;
use crate::model::pattern::Anomalies;
use crate::model::{Model, TraceInfo};
use crate::state::engine::ChunkTarget;
use crate::state::history::History;
use crate::state::history::lines::Time;
use crate::state::kernel::{Handlers, Options, record};
use crate::state::recording::Recording;
use anyhow::Context;
use etcetera::BaseStrategy;
use std::path::Path;

/// The command line is wrong, which only the trace could tell: exit status 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Wrong(pub String);

/// Opened traces.
pub struct Session {
    /// The traces, on one time line.
    pub sources: Vec<Source>,
    /// Tasks found by themselves.
    pub found: Vec<TaskDefinition>,
    /// The hosts' clocks, once they were asked for; from then on the traces lie on one time line.
    pub clocks: Option<(Vec<HostClock>, Notices)>,
    handlers: Handlers,
    classes: Vec<ClassFace>,
    chunks: ChunkTarget,
}

impl Session {
    /// Open the traces of a command line whose executions can be compared. Cost: metadata and packet indexes.
    pub fn open(common: &Common) -> anyhow::Result<Session> {
        match input::open(&common.arguments)? {
            Opened::Ctf(sources) => Session::new(sources, common),
            Opened::Otf2(archive) => {
                let what =
                    "an MPI run: `whyslow anomalies` tells what held it up, `stats count` and `info` what is in it";
                anyhow::bail!("{}: {what}", archive.path.display())
            }
        }
    }

    /// Traces that are open.
    pub fn new(sources: Vec<Source>, common: &Common) -> anyhow::Result<Session> {
        let classes: Vec<ClassFace> = sources.iter().flat_map(faces).collect();
        let chunks = match common.chunk {
            None => ChunkTarget::default(),
            Some(0) => ChunkTarget::Packet,
            Some(bytes) => ChunkTarget::Bytes(bytes),
        };
        let handlers = handlers(common.handlers.as_deref())?;
        Ok(Session { found: task::discover(&classes), sources, clocks: None, handlers, classes, chunks })
    }

    /// The traces as people name them.
    pub fn title(&self) -> String {
        let mut labels: Vec<&str> = self.sources.iter().map(|s| s.label.as_str()).collect();
        labels.dedup();
        labels.join(" + ")
    }

    /// Events per name.
    pub fn count(&self, work: &Work) -> anyhow::Result<(Counts, Notices)> {
        Ok(count::count(&self.sources, work)?)
    }

    /// The task that `--task` names; without it those whose executions are worth a look unasked: all but system calls and
    /// interrupts, which every recording has.
    pub fn candidates(&self, typed: Option<&str>) -> anyhow::Result<Vec<TaskDefinition>> {
        if let Some(typed) = typed {
            let task = task::parse(typed, &self.found, &self.classes).map_err(|e| Wrong(e.to_string()))?;
            return Ok(vec![task]);
        }
        Ok(self.found.iter().filter(|t| self.is_users(t)).cloned().collect())
    }

    fn is_users(&self, task: &TaskDefinition) -> bool {
        let by_kernel = |event: &str| self.classes.iter().any(|c| c.kernel && c.name == event);
        task.pairing == Pairing::ProcessKey || !task.begins.iter().any(|d| by_kernel(&d.event))
    }

    /// The kernel pass, with marks for some tasks. The first one fits the hosts' clocks.
    pub fn record(&mut self, tasks: &[TaskDefinition], work: &Work) -> anyhow::Result<(Recording, Notices)> {
        if self.clocks.is_none() {
            let mut notices = Notices::default();
            let clocks = clocks::lay(&mut self.sources, &mut notices, work)?;
            self.clocks = Some((clocks, notices));
        }
        let traces: Vec<_> = self.sources.iter().map(|s| &s.trace).collect();
        let labels = self.sources.iter().map(|s| s.labelled.then(|| s.label.clone())).collect();
        let options = Options { chunks: self.chunks, handlers: self.handlers.clone(), labels };
        let (recording, mut notices) = record(&traces, tasks, &options, work)?;
        notices.merge(&self.notices());
        self.clocks.iter().for_each(|(_, fitted)| notices.merge(fitted));
        Ok((recording, notices))
    }

    /// The state history of the whole recording.
    pub fn history(&mut self, work: &Work) -> anyhow::Result<(History, Notices)> {
        let (recording, notices) = self.record(&[], work)?;
        Ok((History::of_recording(&recording, work)?, notices))
    }

    /// Patterns of each thread's system calls; wake-ups and packets carry delays from thread to thread.
    pub fn anomalies(&mut self, settings: &Settings, work: &Work) -> anyhow::Result<(Anomalies, Notices)> {
        let (recording, notices) = self.record(&[], work)?;
        let (_, found) = mine(operations::of_recording(&recording), settings, work)?;
        Ok((found, notices))
    }

    /// What was odd about the traces when they were opened.
    pub fn notices(&self) -> Notices {
        let mut notices = Notices::default();
        self.sources.iter().for_each(|s| notices.merge(s.trace.notices()));
        notices
    }

    /// How often and how long each task ran.
    pub fn survey(&mut self, work: &Work) -> anyhow::Result<(Survey, Notices)> {
        let tasks = self.candidates(None)?;
        let (recording, mut notices) = self.record(&tasks, work)?;
        let survey = survey::survey(&recording, &tasks, &mut notices);
        Ok((survey, notices))
    }

    /// The executions of a task, explained. Without a task: of the first that has executions.
    pub fn model(&mut self, typed: Option<&str>, places: &Places, work: &Work) -> anyhow::Result<Model> {
        let candidates = self.candidates(typed)?;
        if candidates.is_empty() {
            anyhow::bail!("{}", self.nothing(work, "no task is found in it by itself")?);
        }
        let (recording, notices) = self.record(&candidates, work)?;
        let begun = |i: &usize| recording.marks.iter().any(|m| m.task as usize == *i && m.thread.is_some());
        let Some(chosen) = (0..candidates.len()).find(begun) else {
            let names: Vec<&str> = candidates.iter().map(|t| t.name.as_str()).collect();
            anyhow::bail!("{}", self.nothing(work, &format!("task {} has no executions", names.join(", ")))?);
        };
        let mut tasks: Vec<String> = self.found.iter().map(|t| t.name.clone()).collect();
        let name = &candidates[chosen].name;
        let task = tasks.iter().position(|t| t == name).unwrap_or_else(|| {
            tasks.push(name.clone());
            tasks.len() - 1
        });
        let traces = self.sources.iter().map(about).collect();
        let (marks, rule) = (chosen as u32, Rule::of(&candidates[chosen]));
        let request = build::Request { tasks, task, marks, rule, traces, places: places.clone() };
        let model = build::build(&recording, &request, &notices, work)?;
        if model.executions.is_empty() {
            anyhow::bail!("{}", self.nothing(work, &format!("task {name} has no executions that end in it"))?);
        }
        Ok(model)
    }

    /// One line for a recording without an answer.
    fn nothing(&self, work: &Work, what: &str) -> anyhow::Result<String> {
        let title = self.title();
        if self.count(work)?.0.events == 0 {
            return Ok(format!("{title}: the trace holds no events; was anything recorded before it was stopped?"));
        }
        Ok(format!(
            "{title}: {what}; `whyslow info --full` lists tasks with their counts, --task begin=EVENT,end=EVENT names one by hand"
        ))
    }
}

/// The user's table of interrupt handlers: as typed, else the one among the configuration.
fn handlers(typed: Option<&Path>) -> anyhow::Result<Handlers> {
    let kept = || {
        let folder = etcetera::choose_base_strategy().ok()?.config_dir();
        Some(folder.join("whyslow/handlers.toml")).filter(|path| path.is_file())
    };
    let Some(path) = typed.map(Path::to_owned).or_else(kept) else { return Ok(Handlers::built_in()) };
    let said = |e: &dyn std::fmt::Display| Wrong(format!("{}: {e}", path.display()));
    let text = std::fs::read_to_string(&path).map_err(|e| said(&e))?;
    Ok(Handlers::with_own(&text).map_err(|e| said(&e))?)
}

/// Patterns of an MPI run, which of their occurrences took too long, and from where the delay came.
pub fn anomalies(archive: &Archive, settings: &Settings, work: &Work) -> anyhow::Result<(Mined, Anomalies, Notices)> {
    let run = mpi::read(archive, work)?;
    let notices = run.notices.clone();
    let (mined, found) = mine(run.into_operations(archive), settings, work)?;
    Ok((mined, found, notices))
}

fn mine(operations: Operations, settings: &Settings, work: &Work) -> anyhow::Result<(Mined, Anomalies)> {
    let mined = Mined::new(operations, work)?;
    let found = Anomalies::new(&mined, settings, work)?;
    Ok((mined, found))
}

/// Hold two groups of a model's executions against each other.
pub fn compare(model: &Model, request: &compare::Request, work: &Work) -> anyhow::Result<Comparison> {
    compare::compare(model, request, work).map_err(|e| match e {
        CompareError::Filter(said) => Wrong(said).into(),
        other => anyhow::Error::new(other),
    })
}

/// A time as typed: nanoseconds on the time line, or with a unit since the first event.
fn instant(typed: &str, origin: Ns) -> anyhow::Result<Ns> {
    let typed = typed.trim();
    let digits = typed.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match &typed[digits.len()..] {
        "" => return typed.parse().map_err(|_| Wrong(format!("time `{typed}`: write nanoseconds, or 12.5ms")).into()),
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        unit => return Err(Wrong(format!("time `{typed}`: unit `{unit}` is none of ns, us, ms, s")).into()),
    };
    let number: f64 = digits.parse().map_err(|_| Wrong(format!("time `{typed}`: `{digits}` is no number")))?;
    Ok(origin.saturating_add((number * scale).round() as Ns))
}

/// The time that a query asks for: instants, else a range (default: all of `window`), else points of it.
pub fn query_time(at: &[String], range: Option<&str>, points: Option<u32>, window: Span) -> anyhow::Result<Time> {
    if !at.is_empty() {
        let instants = at.iter().map(|t| instant(t, window.start)).collect::<anyhow::Result<_>>()?;
        return Ok(Time::Instants(instants));
    }
    let span = match range {
        None => window,
        Some(range) => {
            let (from, to) = range.split_once("..").ok_or_else(|| Wrong(format!("--range {range}: write A..B")))?;
            let span = Span::new(instant(from, window.start)?, instant(to, window.start)?);
            if span.is_empty() {
                return Err(Wrong(format!("--range {range}: it ends before it begins")).into());
            }
            span
        }
    };
    Ok(points.map_or(Time::Range(span), |n| Time::Points(span, n as usize)))
}

/// Filters as typed, understood.
pub fn request(slow: &[String], fast: &[String]) -> anyhow::Result<compare::Request> {
    let filters = |option: &str, typed: &[String]| -> anyhow::Result<Vec<_>> {
        let parsed =
            typed.iter().map(|t| t.parse().map_err(|e: compare::filter::FilterError| Wrong(e.to_string()).into()));
        parsed.collect::<anyhow::Result<_>>().with_context(|| option.to_owned())
    };
    let request = compare::Request { slow: filters("--slow", slow)?, fast: filters("--fast", fast)? };
    Ok(request)
}

fn faces(source: &Source) -> Vec<ClassFace> {
    let kernel = is_kernel(&source.trace);
    let face = |(i, class): (usize, &input::ctf::Class)| ClassFace {
        name: class.name.clone(),
        kernel,
        fields: source.trace.payload_fields(ClassId::at(i)),
    };
    source.trace.classes().iter().enumerate().map(face).collect()
}

/// Label and bounds, from the packets.
fn about(source: &Source) -> TraceInfo {
    let packets = || source.trace.streams().iter().flat_map(|s| &s.packets);
    let start = packets().filter_map(|p| p.begin).min().unwrap_or(0);
    let end = packets().filter_map(|p| p.end).max().unwrap_or(start);
    TraceInfo { label: source.label.clone(), span: Span::new(start, end) }
}
