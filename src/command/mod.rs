//! The commands, one file each: its options, the question that it asks the session, and its answer.
//!
//! In: a [`Command`] as read from the command line. Out: the exit status. Commands with an input go the same way
//! ([`run`]): limits, sandbox, open the input, ask and answer, notices. A new command is a file with a type that
//! implements `Question`, and its line in [`Command`].

mod anomalies;
mod build;
mod comparing;
mod console;
mod diff;
mod dump;
mod executions;
mod explain;
mod export;
mod import;
mod info;
pub mod interface;
mod merge;
mod partial;
mod query;
pub mod recent;
mod record;
mod report;
mod snapshot;
mod sql;
pub mod state_folder;
mod stats;
mod timeline;
mod tour;
mod trend;

pub use console::STDOUT;

use crate::base::budget::Budget;
use crate::base::ctx::{Cancel, Ctx};
use crate::base::file::{EndSignals, Output};
use crate::base::memory_error::MemoryError;
use crate::base::memory_limit::Limit;
use crate::base::notice::Notices;
#[cfg(test)]
use crate::base::sandbox::Rules;
use crate::base::{clean, memory, open_files, sandbox, temporary};
use crate::confinement::{self, Files};
use crate::input::{self, Argument};
use crate::options::{InputOptions, SymbolOptions};
use crate::record::tracefs::{self, TracefsOptions};
use crate::session::{LabelledAccount, LeafChecks, OpenOptions, Session, UsageError};
use crate::symbols::files::SymbolPaths;
use crate::symbols::perf_map;
use crate::view::stderr::say;
use anyhow::Context;
use clap::Subcommand;
use comparing::{compared, request, with_delays};
use console::Console;
use foldhash::HashSet;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

/// A command with its options.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// The ranked causes of the slow group's extra time, one sentence each
    Explain(explain::ExplainOptions),
    /// The data that the interface exports: groups, histograms, differential tree, causes
    Diff(diff::DiffOptions),
    /// The answer as one file: a page with pictures, a summary for a ticket, a flame graph, a profile
    Report(report::ReportOptions),
    /// A task over days, versions and hosts, from databases: when p95 moved, what grew, which host differs
    Trend(trend::TrendOptions),
    /// The executions of a task one by one: when, how long, who ran them, and what each waited for most
    Executions(executions::ExecutionsOptions),
    /// Which threads or MPI ranks delayed others, when, and how the delay travelled
    Anomalies(anomalies::AnomaliesOptions),
    /// Events per type; CPU time per CPU and thread; bytes read and written per process
    Stats(stats::StatsOptions),
    /// State of threads, CPUs and disks at a time or over a range
    Query(query::QueryOptions),
    /// The states of many threads over time: a lane for each, the busiest first; as text, JSON or a picture
    Timeline(timeline::TimelineOptions),
    /// Streams, clocks, hosts, lost events, names of tasks: from metadata and index alone, immediately
    Info(info::InfoOptions),
    /// An execution database: small, shareable, opened in place of the trace
    Build(build::BuildOptions),
    /// One database of the recordings of several, of many hosts or days: compared by their labels, hosts and times
    Merge(merge::MergeOptions),
    /// Databases as Parquet files: tables of executions, contexts and times for DuckDB, Spark, pandas
    Export(export::ExportOptions),
    /// Exported tables as a database again, with nothing lost
    Import(import::ImportOptions),
    /// The comparison as SQL over exported tables, with the thresholds of this question: for DuckDB, ClickHouse, Spark
    Sql(sql::SqlOptions),
    /// Record with what this machine has (LTTng, perf, tracefs or trace-cmd), then open the recording
    Record(Box<record::RecordOptions>),
    /// The recorder by tracefs, as a program that `record` runs
    #[command(hide = true)]
    RecordTracefs(TracefsOptions),
    /// What control groups and /proc count, once a second, to go beside a recording that is made by hand
    Snapshot(snapshot::SnapshotOptions),
    /// Every event in time order
    Dump(dump::DumpOptions),
    /// The terminal interface: no command at all
    #[command(skip)]
    Interface(interface::InterfaceOptions),
}

/// The part of the input that a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Depth {
    /// Metadata and packet indexes.
    Outline,
    /// The events too.
    Events,
    /// None: the command reads its input itself.
    Nothing,
}

/// The notices of an answer, and the exit status.
struct Outcome {
    notices: Notices,
    status: u8,
}

impl From<Notices> for Outcome {
    fn from(notices: Notices) -> Self {
        Outcome { notices, status: 0 }
    }
}

/// A command that asks a question about the input.
trait Question: Sync {
    /// The traces, and the options for reading them.
    fn input(&self) -> &InputOptions;

    /// The files that it uses besides the traces.
    fn files(&self) -> Files<'_> {
        Files::default()
    }

    /// The traces to open.
    fn traces(&self) -> Vec<Argument> {
        self.input().files()
    }

    /// Check that the options fit each other; an error is a wrong command line.
    fn check(&self) -> Result<(), UsageError> {
        Ok(())
    }

    /// Make what must exist before rights are given up.
    fn prepare(&self) -> anyhow::Result<()> {
        Ok(())
    }

    /// The part of the input that it needs.
    fn depth(&self) -> Depth {
        Depth::Events
    }

    /// True if the answer lists the notices itself.
    fn shows_notices(&self) -> bool {
        true
    }

    /// True for the interface, whose jobs watch the memory limit one by one and report progress on the screen.
    fn is_interface(&self) -> bool {
        false
    }

    /// Ask the session and print the answer.
    fn run(&self, session: Session, console: &mut Console<'_>) -> anyhow::Result<Outcome>;
}

impl Command {
    /// The question; `None` for those that have no input.
    fn question(&self) -> Option<&dyn Question> {
        Some(match self {
            Command::Explain(options) => options,
            Command::Diff(options) => options,
            Command::Report(options) => options,
            Command::Trend(options) => options,
            Command::Executions(options) => options,
            Command::Anomalies(options) => options,
            Command::Stats(options) => options,
            Command::Query(options) => options,
            Command::Timeline(options) => options,
            Command::Info(options) => options,
            Command::Build(options) => options,
            Command::Merge(options) => options,
            Command::Export(options) => options,
            Command::Import(options) => options,
            Command::Sql(options) => options,
            Command::Dump(options) => options,
            Command::Interface(options) => options,
            Command::Record(_) | Command::RecordTracefs(_) | Command::Snapshot(_) => return None,
        })
    }

    /// Check that its options fit each other.
    pub fn check(&self) -> Result<(), UsageError> {
        self.question().map_or(Ok(()), Question::check)
    }

    /// The files that it may use; `None` for those without an input, which need those of the whole machine.
    #[cfg(test)]
    pub fn rules(&self) -> Option<Rules> {
        self.question().map(|question| confinement::rules(question.input(), &question.traces(), &question.files()))
    }
}

/// Run a command. Returns the exit status unless an error ends it.
pub fn run(command: &Command) -> anyhow::Result<u8> {
    if let Command::Record(options) = command {
        // The recorders need the rights that other commands give up.
        return match record::run(options)? {
            record::AfterRecording::Open(interface) => {
                state_folder::prepare();
                ask(&*interface)
            }
            record::AfterRecording::Done(status) => Ok(status),
        };
    }
    if let Command::RecordTracefs(options) = command {
        let status = tracefs::run(options)?;
        return Ok(status.and_then(|status| status.code()).map_or(0, |code| u8::try_from(code).unwrap_or(1)));
    }
    if let Command::Snapshot(options) = command {
        return snapshot::run(options);
    }
    if let Command::Interface(options) = command
        && (options.plain || interface::needs_plain_text())
    {
        return ask(&explain::ExplainOptions::instead_of(options));
    }
    if let Command::Interface(options) = command
        && options.tour
        && !interface::has_terminal()
    {
        anyhow::bail!("the tour needs a terminal");
    }
    if let Command::Interface(options) = command
        && interface::has_terminal()
    {
        state_folder::prepare();
        if options.tour {
            tour::prepare()?;
        }
    }
    command.question().map_or(Ok(0), ask)
}

/// Open the input of a question and answer it.
fn ask(question: &dyn Question) -> anyhow::Result<u8> {
    let input = question.input();
    let limit = Limit::new(input.memory);
    for folder in question.files().symbols.iter().flat_map(|symbols| symbols.all_folders()) {
        if !folder.is_dir() {
            let why = "no such folder; name the one that holds the traced programs";
            return Err(UsageError(format!("--symbols {}: {why}", folder.display())).into());
        }
    }
    // Its file for states that memory has no room for must be open before the sandbox begins.
    let budget = Budget { leaves: input.leaf_memory, ..Budget::new(limit) };
    budget.bound_large_blocks(limit);
    let signals = question.files().output.and_then(|_| EndSignals::take().ok());
    let output = question.files().output.map(opened).transpose()?;
    question.prepare()?;
    let traces = question.traces();
    open_files::make_room(traces.len());
    temporary::prepare(traces.iter().map(|trace| input::temporary_files(&trace.path)).sum());
    // The sandbox begins before a byte of the input is read, and before there is another thread.
    confine(question, &traces, output.as_ref())?;
    if let Some(signals) = signals {
        // If the thread cannot start, the next output there removes the leftovers of a signal.
        let _ = signals.remove_and_end();
    }
    let output = Mutex::new(output);
    let ctx = Ctx::new(workers(input.threads));
    // One worker is the only thread: another one, which watches the limit, is only for a limit that was set.
    let memory = limit.or_else(|| budget.limit().filter(|_| ctx.threads > 1));
    let questions = input.timings.then(Arc::default);
    let ctx = Ctx { memory, budget: Some(budget), questions, ..ctx };
    let checks = if question.is_interface() { LeafChecks::AtOpening } else { LeafChecks::WhenRead };
    let Outcome { notices, status } = match answer((question, &traces), checks, &output, &ctx) {
        // The answer is made anew without what is damaged: nothing was written yet.
        Err(_) if matches!(ctx.cancel.failure(), Some(MemoryError::Damaged(_))) => {
            let ctx = Ctx { cancel: Cancel::default(), ..ctx.clone() };
            answer((question, &traces), LeafChecks::AtOpening, &output, &ctx)?
        }
        answered => answered?,
    };
    say_where_states_are(&ctx);
    if input.strict && notices.has_fault() {
        anyhow::bail!("the input is malformed (--strict): {}", notices.sentences().first().map_or("", |s| s));
    }
    if !question.shows_notices() {
        for sentence in notices.missing().sentences() {
            say(&format!("note: {}", clean::line(&sentence)));
        }
    }
    Ok(status)
}

/// The file of `--output`, opened for writing.
fn opened(path: &Path) -> anyhow::Result<Output> {
    Output::open(path).with_context(|| format!("{} cannot be written", path.display()))
}

/// Open the input and answer the question, within the limits.
fn answer(
    (question, traces): (&dyn Question, &[Argument]),
    checks: LeafChecks,
    output: &Mutex<Option<Output>>,
    ctx: &Ctx,
) -> anyhow::Result<Outcome> {
    let mut console = Console::new(ctx, output, question.input().timings);
    let outcome = if question.is_interface() {
        // Its jobs watch the limit one by one.
        let session = memory::within(ctx.memory, ctx, || open((question, traces), checks, &mut console))??;
        question.run(session, &mut console)?
    } else {
        memory::within(ctx.memory, ctx, || {
            let session = open((question, traces), checks, &mut console)?;
            question.run(session, &mut console)
        })??
    };
    console.finish();
    Ok(outcome)
}

/// Say so where the states that did not fit into memory went to a file in memory (tmpfs).
fn say_where_states_are(ctx: &Ctx) {
    let file = ctx.budget.as_ref().and_then(|budget| budget.file.as_ref());
    if let Some(file) = file.filter(|file| file.is_in_memory())
        && ctx.progress.leaves_written.load(Ordering::Relaxed) > 0
    {
        let folder = file.folder().display();
        say(&format!(
            "note: states that did not fit went to {folder}, which is memory: name a folder on disk by TMPDIR"
        ));
    }
}

fn open(
    (question, traces): (&dyn Question, &[Argument]),
    leaves: LeafChecks,
    console: &mut Console<'_>,
) -> anyhow::Result<Session> {
    let options = open_options(question.input(), leaves);
    let session = console.with_progress(|ctx| match question.depth() {
        Depth::Outline => Session::outline(traces, &options, ctx),
        Depth::Nothing => Ok(Session::none()),
        Depth::Events => Session::open(traces, &options, ctx),
    });
    console.stage("open");
    let session = session?;
    if question.input().check && !question.is_interface() {
        account(&session, console)?;
    }
    Ok(session)
}

/// Say what became of the records of each input; an error where their sums are wrong.
fn account(session: &Session, console: &mut Console<'_>) -> anyhow::Result<()> {
    let accounts = console.with_progress(|ctx| Ok(session.accounts(ctx)?))?;
    console.stage("account");
    for LabelledAccount { label, account, broken } in accounts {
        say(&format!("check: {}: {account}", clean::line(&label)));
        sound(broken)?;
    }
    Ok(())
}

/// How the traces are read.
fn open_options(input: &InputOptions, leaves: LeafChecks) -> OpenOptions {
    let InputOptions { chunk, tasks, handlers, .. } = input;
    OpenOptions { chunk: *chunk, tasks: tasks.clone(), handlers: handlers.clone(), leaves }
}

/// Give up the rights that the command does not need. If that is not possible, a note says so to a user, and root has
/// to ask for it.
fn confine(question: &dyn Question, traces: &[Argument], output: Option<&Output>) -> anyhow::Result<()> {
    let input = question.input();
    if input.no_sandbox {
        return Ok(());
    }
    let mut rules = confinement::rules(input, traces, &question.files());
    rules.read.extend(temporary::paths());
    if question.is_interface() {
        // One of them may become the baseline.
        rules.read.extend(state_folder::recent_paths());
    }
    let confined = sandbox::confine(&rules, output);
    if let Err(why) = confined {
        if rustix::process::geteuid().is_root() {
            anyhow::bail!(
                "root reads files of others in a sandbox only: {why}; run whyslow as another user, or with --no-sandbox"
            );
        }
        if question.is_interface() || input.timings {
            say(&format!("note: without a sandbox: {why}"));
        }
    }
    Ok(())
}

/// The number of workers requested, at most four for each core.
fn workers(asked: usize) -> usize {
    let most = 4 * std::thread::available_parallelism().map_or(1, usize::from);
    if asked > most {
        say(&format!("note: --threads {asked}: using {most}, four for each core"));
        return most;
    }
    asked
}

/// The sources of function names: the options, and files beside the traces.
fn places(traces: &[Argument], symbols: &SymbolOptions) -> SymbolPaths {
    let mut known = HashSet::default();
    let folders = traces.iter().map(|a| perf_map::folder(&a.path)).filter(|folder| known.insert(*folder));
    SymbolPaths {
        folders: symbols.all_folders().cloned().collect(),
        only: !symbols.only.is_empty(),
        kernel: symbols.kernel.clone(),
        recorded: Vec::new(),
        code: Vec::new(),
        beside: folders.map(Path::to_owned).collect(),
        monotonic: None,
        local: BTreeMap::new(),
        wants_kernel: false,
        known: None,
    }
}

/// An error for an invariant that `--check` found broken.
fn sound(violation: Option<String>) -> anyhow::Result<()> {
    violation.map_or(Ok(()), |broken| Err(anyhow::anyhow!("an invariant does not hold: {broken}; please report this")))
}
