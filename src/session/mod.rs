//! From a path to an answer: open, find tasks, read, explain, compare.
//!
//! A [`Session`] is what one command line names, opened: [`Traces`] or a history file in their place, [`MpiRuns`] under
//! MPI, [`Databases`] of executions, or [`PartialFiles`]. Each method is one question; each runs on the workers of the
//! [`Ctx`] it is given, reports progress to it and ends early when it is cancelled. Questions that only one kind of
//! input answers are methods of that kind.

mod about;
mod account;
mod build;
mod catalog;
mod choice;
mod database;
mod environments;
mod export;
mod history;
mod history_file;
mod joined;
mod keep;
mod merge;
mod mining;
mod partials;
mod pass;
mod profile;
mod reopened;
mod run;
mod sampling;
mod stages;
mod states;
mod survey;
mod symbols;
mod traces;
mod trend;
mod trials;

pub use crate::saved::states::LeafChecks;
pub use account::LabelledAccount;
pub use database::{Databases, UnreadDatabases};
pub use export::import;
pub use history::RecordedHistory;
pub use keep::NewHistoryFile;
pub use partials::{PartialFiles, PartialRequest};
pub use run::MpiRuns;
pub use sampling::Sampling;
pub use survey::{Invariants, TraceSurvey};
pub use traces::Traces;
pub use trend::{TrendFiles, TrendRequest};

use crate::base::ctx::Ctx;
use crate::base::notice::Notices;
use crate::compare::arranged::KernelFrames;
use crate::compare::calls::aligned::PairedCalls;
use crate::compare::moments::{self, Alignment};
use crate::compare::{self, CompareError, Comparison};
use crate::delays::mining::Mining;
use crate::event::task::Asked;
use crate::input::{self, Argument, OpenError, Opened};
use crate::model::execution::ExecutionId;
use crate::model::join::{self, LabelNames, Renamed};
use crate::model::recorded::Recorded;
use crate::model::{Model, elapsed};
use crate::saved::SavedKind;
use crate::symbols::files::SymbolPaths;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The command line is wrong, which only the trace could show: exit status 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// How traces are read.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Bytes of trace in one chunk; `None` balances chunks over the workers, 0 makes each packet one.
    pub chunk: Option<u64>,
    /// A file that declares tasks.
    pub tasks: Option<PathBuf>,
    /// The user's own table of interrupt handlers.
    pub handlers: Option<PathBuf>,
    /// When the rows of history files are read.
    pub leaves: LeafChecks,
}

/// The inputs of a command line, opened.
pub enum Session {
    /// Traces of the kernel and of user space, in any format.
    Traces(Traces),
    /// The archive of an MPI run.
    Run(MpiRuns),
    /// Execution databases.
    Databases(Databases),
    /// Partial results.
    Partials(PartialFiles),
}

impl Session {
    /// Open what a command line names. Cost: metadata, packet indexes and packet headers.
    pub fn open(arguments: &[Argument], options: &OpenOptions, ctx: &Ctx) -> anyhow::Result<Session> {
        Session::by(input::open, arguments, options, ctx)
    }

    /// Open what a command line names, for commands that read no events. Cost: metadata and packet indexes.
    pub fn outline(arguments: &[Argument], options: &OpenOptions, ctx: &Ctx) -> anyhow::Result<Session> {
        Session::by(input::outline, arguments, options, ctx)
    }

    /// Without any input.
    pub fn none() -> Session {
        Session::Databases(Databases::default())
    }

    fn by(
        open: impl Fn(&[Argument], &Ctx) -> Result<Opened, OpenError>,
        arguments: &[Argument],
        options: &OpenOptions,
        ctx: &Ctx,
    ) -> anyhow::Result<Session> {
        if let Some(databases) = Databases::open(arguments)? {
            return Ok(Session::Databases(databases));
        }
        if let Some(partials) = PartialFiles::open(arguments)? {
            return Ok(Session::Partials(partials));
        }
        if let Some(one) = arguments.iter().find(|a| SavedKind::States.is_of(&a.path)) {
            if let Some(other) = arguments.iter().find(|a| !SavedKind::States.is_of(&a.path)) {
                anyhow::bail!(
                    "{}: not a history file, and {} is one: build one of the other as well",
                    other.path.display(),
                    one.path.display()
                );
            }
            return Ok(Session::Traces(Traces::reopen(arguments, options, ctx)?));
        }
        Ok(match open(arguments, ctx)? {
            Opened::Traces(sources) => Session::Traces(Traces::new(sources, options)?),
            Opened::Otf2(archives) => Session::Run(MpiRuns::of(archives)?),
        })
    }

    /// The input as the user named it.
    pub fn title(&self) -> String {
        match self {
            Session::Traces(traces) => traces.title(),
            Session::Run(run) => run.title(),
            Session::Databases(databases) => databases.title(),
            Session::Partials(partials) => partials.title(),
        }
    }

    /// Notices raised when the input was opened.
    pub fn notices(&self) -> Notices {
        match self {
            Session::Traces(traces) => traces.notices(),
            Session::Run(run) => run.notices(),
            Session::Databases(databases) => databases.notices(),
            Session::Partials(_) => Notices::default(),
        }
    }

    /// What each trace or archive recorded, whatever is asked of it.
    pub fn recorded(&self) -> Vec<Recorded> {
        match self {
            Session::Traces(traces) => traces.facts().traces.into_iter().filter_map(|trace| trace.recorded).collect(),
            Session::Run(run) => run.recorded(),
            Session::Databases(_) | Session::Partials(_) => Vec::new(),
        }
    }

    /// The executions of a task, explained. Without a task: of the first that has executions.
    /// `timelines`: executions whose timelines are wanted too.
    pub fn model(
        &mut self,
        task: Option<&str>,
        places: &SymbolPaths,
        timelines: &[ExecutionId],
        ctx: &Ctx,
    ) -> anyhow::Result<Model> {
        self.check_process(task)?;
        let mut model = match self {
            Session::Traces(traces) => traces.model(task, places, timelines, ctx),
            Session::Run(run) if !timelines.is_empty() => {
                anyhow::bail!(
                    "{}: the timeline of an execution needs a recording with scheduler events; of an MPI run, t \
                     shows all ranks, panes 3 and 4 the delays",
                    run.title()
                )
            }
            Session::Run(run) => run.model(task, ctx),
            Session::Databases(databases) if !timelines.is_empty() => databases.refuse("diff --executions"),
            Session::Databases(databases) => databases.model(task, ctx),
            Session::Partials(partials) => partials.refuse("explain"),
        }?;
        if !matches!(self, Session::Databases(_)) {
            // As it would be in a database, where ids break ties.
            model = join::canonical(model, LabelNames::Kept, ctx)?;
        }
        elapsed::replace_start(&mut model);
        Ok(model)
    }

    /// Error, in one line, where a task is of a process and executions cannot be distinguished by their processes.
    fn check_process(&self, task: Option<&str>) -> anyhow::Result<()> {
        let Some(process) = task.and_then(|task| Asked::of(task).process) else { return Ok(()) };
        let is_kept = |databases: &Databases| databases.tasks().iter().any(|kept| Some(kept.as_str()) == task);
        let why = match self {
            Session::Traces(_) | Session::Partials(_) => return Ok(()),
            Session::Databases(databases) if is_kept(databases) => return Ok(()),
            Session::Run(_) => "an MPI run has ranks: compare with --slow rank=N",
            Session::Databases(_) => {
                "a database holds the executions of all processes: compare with --slow process=NAME, or name the trace"
            }
        };
        Err(UsageError(format!("--process {process}: {}: {why}", self.title())).into())
    }

    /// The state history of a recording, for a command.
    pub fn history(&mut self, command: &str, ctx: &Ctx) -> anyhow::Result<RecordedHistory> {
        match self {
            Session::Traces(traces) => traces.recorded_history(command, ctx),
            Session::Run(run) => run.recorded_history(command, ctx),
            Session::Databases(databases) => databases.refuse(command),
            Session::Partials(partials) => partials.refuse(command),
        }
    }

    /// Where symbols are, with what the recordings say themselves.
    pub fn symbol_paths(&self, places: &SymbolPaths) -> anyhow::Result<SymbolPaths> {
        match self {
            Session::Traces(traces) => Ok(traces.with_recorded(places)?),
            Session::Run(_) | Session::Databases(_) | Session::Partials(_) => Ok(places.clone()),
        }
    }

    /// True for a history file of traces under two labels, and for databases: as of two labelled traces, one group is
    /// each label's.
    pub fn has_two_labels(&self) -> bool {
        match self {
            Session::Traces(traces) => {
                traces.reopened.is_some() && traces.others.is_empty() && traces.labels_of_two().is_some()
            }
            Session::Databases(databases) => databases.has_two_labels(),
            Session::Run(_) | Session::Partials(_) => false,
        }
    }

    /// An error where `--task` names a task that the input cannot have. Cost: metadata.
    pub fn check_task(&self, task: Option<&str>) -> anyhow::Result<()> {
        match (self, task) {
            (Session::Traces(traces), Some(task)) if traces.profile_task(Some(task))?.is_some() => Ok(()),
            (Session::Traces(traces), Some(task)) => traces.candidates(&[task]).map(drop),
            (Session::Databases(databases), task) => {
                self.check_process(task).and_then(|()| databases.task(task).map(drop))
            }
            (Session::Traces(_), None) | (Session::Partials(_), _) => Ok(()),
            (Session::Run(_), task) => self.check_process(task),
        }
    }

    /// Repeated sequences of each thread or rank; in kernel recordings also the executions of a task, and the threads
    /// that delayed them.
    pub fn mine(&mut self, task: Option<&str>, places: &SymbolPaths, ctx: &Ctx) -> anyhow::Result<Arc<Mining>> {
        match self {
            Session::Traces(traces) if task.is_some() && traces.profile_task(task)?.is_some() => {
                anyhow::bail!(
                    "{}: a profile holds samples alone, and no sequences; record switches, wake-ups and system calls: \
                     whyslow record",
                    traces.title()
                )
            }
            Session::Traces(traces) => traces.mine(task, places, ctx).map(Arc::new),
            Session::Run(run) => {
                run.alone("anomalies")?;
                run.mine(ctx)
            }
            Session::Databases(databases) => databases.refuse("anomalies"),
            Session::Partials(partials) => partials.refuse("anomalies"),
        }
    }
}

/// Compare two groups of a model's executions.
pub fn compare(model: &Model, request: &compare::ComparisonRequest, ctx: &Ctx) -> anyhow::Result<Comparison> {
    compare::compare(model, request, ctx).map_err(wrong)
}

/// The names that functions get (`--functions FILE`): a TOML file of lines `"old" = "new"`.
pub fn renamed(path: Option<&Path>) -> anyhow::Result<Renamed> {
    let Some(path) = path else { return Ok(Renamed::new()) };
    let option = || format!("--functions {}", path.display());
    let text = text_of(path).map_err(|e| UsageError(format!("{}: {e}", option())))?;
    toml::from_str(&text).map_err(|e| {
        let line = e.span().map_or(1, |s| text[..s.start.min(text.len())].matches('\n').count() + 1);
        let remedy = "write one \"old name\" = \"new name\" per line";
        UsageError(format!("{}:{line}: {}; {remedy}", option(), e.message().replace('\n', " "))).into()
    })
}

/// The longest file that an option may name.
const LONGEST_TEXT: u64 = 64 << 20;

/// The text of a file that an option names; a pipe is read to its end.
pub fn text_of(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(LONGEST_TEXT + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST_TEXT {
        Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, "it has more than 64 MiB"))
    } else {
        Ok(text)
    }
}

/// A model whose functions have the names that were asked for.
pub fn rename(model: Model, renamed: &Renamed, ctx: &Ctx) -> anyhow::Result<Model> {
    Ok(join::join(vec![model], renamed, ctx)?)
}

/// Two executions of a model, moment by moment and as trees of calls.
pub fn align(
    model: &Model,
    [a, b]: [ExecutionId; 2],
    kernel: KernelFrames,
    ctx: &Ctx,
) -> anyhow::Result<(Alignment, PairedCalls)> {
    let aligned = moments::align(model, a, b).map_err(wrong)?;
    let calls = PairedCalls::new(model, a, Some(b), kernel, &ctx.cancel).map_err(wrong)?;
    calls.hold(model, ctx);
    Ok((aligned, calls))
}

fn wrong(error: CompareError) -> anyhow::Error {
    match error {
        CompareError::Filter(_) | CompareError::UnknownExecution { .. } => UsageError(error.to_string()).into(),
        other => anyhow::Error::new(other),
    }
}
