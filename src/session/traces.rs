//! Traces of the kernel and of user space, in any format: tasks, the kernel pass, the executions of a task explained,
//! patterns of system calls, state history.
//!
//! Metadata and packet indexes are read when the traces are opened, events are not: each question below reads them.

use super::catalog::TaskCatalog;
use super::environments;
use super::pass::KernelPass;
use super::reopened::Reopened;
use super::{OpenOptions, UsageError};
use crate::analysis::derived::Known;
use crate::analysis::executions::PairingRule;
use crate::analysis::functions::FunctionNames;
use crate::analysis::stack_tables::LazyStackTables;
use crate::analysis::{clocks, derived, wakers};
use crate::base::ctx::Ctx;
use crate::base::notice::Notices;
use crate::event::derived::Derived;
use crate::event::task::{Asked, Pairing, TaskDefinition};
use crate::explain;
use crate::explain::RecordingTables;
use crate::input::recorded_code::RecordedCode;
use crate::input::{self, Source};
use crate::kernel::{Handlers, Options, record};
use crate::model::Model;
use crate::model::clock::{FittedClocks, HostClock};
use crate::model::execution::ExecutionId;
use crate::model::recorded::Recorded;
use crate::reading::bind::is_kernel;
use crate::reading::chunks::ChunkTarget;
use crate::reading::engine::EngineOptions;
use crate::reading::tasks;
use crate::symbols;
use crate::symbols::files::SymbolPaths;
use crate::timeline::RecordedTimeline;
use etcetera::BaseStrategy;
use std::cell::RefCell;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// Call stacks of a kernel pass, placed once for all its models.
pub(super) struct PlacedStacks {
    pub stacks: RecordingTables,
    notices: Notices,
}

/// Traces of the kernel and of user space on one time line.
pub struct Traces {
    /// The traces; none where the recording is reopened from a history file.
    pub(super) sources: Vec<Source>,
    /// The history file in place of traces.
    pub(super) reopened: Option<Box<Reopened>>,
    /// More history files, each a recording of its own.
    pub(super) others: Vec<Traces>,
    /// Found on the first question about tasks.
    pub(super) tasks: OnceLock<Box<TaskCatalog>>,
    /// Set by `fit_clocks`.
    pub(super) clocks: Option<FittedClocks>,
    pub(super) handlers: Handlers,
    pub(super) engine: EngineOptions,
    /// By trace: what it recorded. Found for the first model.
    pub(super) recorded: OnceLock<Vec<Recorded>>,
}

impl Traces {
    /// Traces that are open.
    pub fn new(sources: Vec<Source>, options: &OpenOptions) -> anyhow::Result<Traces> {
        let chunks = match options.chunk {
            Some(0) => ChunkTarget::Packet,
            Some(bytes) => ChunkTarget::Bytes(bytes),
            None => ChunkTarget::default(),
        };
        let known = options.tasks.as_deref().map(|file| TaskCatalog::new(&sources).with_file(file)).transpose()?;
        let tasks = known.map(Box::new).map_or_else(OnceLock::new, OnceLock::from);
        let handlers = handlers(options.handlers.as_deref())?;
        Ok(Traces {
            sources,
            reopened: None,
            others: Vec::new(),
            tasks,
            clocks: None,
            handlers,
            engine: EngineOptions { chunks, ..EngineOptions::default() },
            recorded: OnceLock::new(),
        })
    }

    /// Align the clocks of several hosts, once. Every question about times calls this first.
    pub(super) fn fit_clocks(&mut self, ctx: &Ctx) -> anyhow::Result<()> {
        if self.clocks.is_none() {
            let mut notices = Notices::default();
            let clocks = clocks::align(&mut self.sources, &mut notices, ctx)?;
            self.clocks = Some(FittedClocks { clocks, notices });
        }
        Ok(())
    }

    /// The hosts' clocks; empty until they are fitted.
    pub fn clocks(&self) -> &[HostClock] {
        self.clocks.as_ref().map_or(&[], |fitted| &fitted.clocks)
    }

    pub(super) fn tasks(&self) -> &TaskCatalog {
        self.tasks.get_or_init(|| {
            let kept = self.reopened.as_ref().map(|reopened| reopened.catalog());
            Box::new(kept.unwrap_or_else(|| TaskCatalog::new(&self.sources)))
        })
    }

    /// Tasks declared in a file, then those found among the record classes.
    pub fn found(&self) -> &[TaskDefinition] {
        &self.tasks().tasks
    }

    /// The tasks that `--task` names; without a name those that a file declares, else those whose executions are worth
    /// a look by themselves: all but system calls and interrupts, which every recording has.
    pub fn candidates(&self, typed: &[&str]) -> anyhow::Result<Vec<TaskDefinition>> {
        if !typed.is_empty() {
            let mut named = Vec::new();
            for typed in typed {
                let asked = self.asked(Some(typed));
                let own = match asked.task {
                    Some(task) => {
                        let parsed = tasks::parse(task, self.found(), &self.tasks().classes);
                        vec![parsed.map_err(|e| UsageError(e.to_string()))?]
                    }
                    None => self.candidates(&[])?,
                };
                let of_process = |task: TaskDefinition| match asked.process {
                    Some(process) => task.of_process(process),
                    None => task,
                };
                named.extend(own.into_iter().map(of_process));
            }
            return Ok(named);
        }
        if self.tasks().declared > 0 {
            return Ok(self.found()[..self.tasks().declared].to_vec());
        }
        Ok(self.found().iter().filter(|t| self.is_users(t)).cloned().collect())
    }

    /// What a text asks about; a name that a task has means that task.
    pub(super) fn asked<'t>(&self, typed: Option<&'t str>) -> Asked<'t> {
        match typed {
            Some(typed) if self.tasks().names().first.contains_key(typed) => Asked { task: Some(typed), process: None },
            Some(typed) => Asked::of(typed),
            None => Asked::default(),
        }
    }

    fn is_users(&self, task: &TaskDefinition) -> bool {
        task.pairing == Pairing::ProcessKey || !self.is_kernels(task)
    }

    /// True for a task that events of the kernel delimit.
    pub(super) fn is_kernels(&self, task: &TaskDefinition) -> bool {
        // A call that is recorded by its number has no event of its own name.
        let by_kernel = |event: &str| self.tasks().is_kernels(event) || tasks::is_call(event);
        task.begins.iter().any(|d| by_kernel(&d.event))
    }

    /// Without kernel events: the program's own pairs of events, which show on which CPUs its threads are.
    fn pairs(&self) -> Vec<TaskDefinition> {
        if self.sources.iter().any(|source| is_kernel(&source.trace)) {
            return Vec::new();
        }
        let is_pair = |task: &&TaskDefinition| matches!(task.pairing, Pairing::Thread | Pairing::Key);
        self.found().iter().filter(is_pair).cloned().collect()
    }

    /// The kernel pass, with marks for some tasks.
    pub fn record(&self, tasks: &[TaskDefinition], ctx: &Ctx) -> anyhow::Result<(RecordedTimeline, Notices)> {
        if let Some(reopened) = &self.reopened {
            return reopened.record(tasks, ctx);
        }
        let pairs = self.pairs();
        let options = Options {
            engine: self.engine,
            labels: self.labels(),
            handlers: self.handlers.clone(),
            pairs,
            ..Options::default()
        };
        let (mut timeline, mut notices) = record(&self.traces(), tasks, &options, ctx)?;
        for clock in self.clocks() {
            let Some(error) = clock.beside_kernel else { continue };
            let hosts = clock.traces.iter().filter_map(|trace| timeline.traces().get(*trace)).map(|trace| trace.host);
            for host in hosts.collect::<Vec<_>>() {
                timeline.widen_clock_error(host, error.unsigned_abs());
            }
        }
        environments::place(&self.sources, &mut timeline, &mut notices);
        derived::note_tracer(&timeline, &mut notices);
        notices.merge(&self.notices());
        self.clocks.iter().for_each(|fitted| notices.merge(&fitted.notices));
        Ok((timeline, notices))
    }

    pub(super) fn traces(&self) -> Vec<&input::Trace> {
        self.sources.iter().map(|s| &s.trace).collect()
    }

    pub(super) fn labels(&self) -> Vec<Option<String>> {
        self.sources.iter().map(|s| s.labelled.then(|| s.label.clone())).collect()
    }

    /// The executions of a task, explained. Without a task: of the first declared one that has executions, else of what
    /// answers (`choice.rs`). `timelines`: the executions whose timelines are wanted too.
    pub fn model(
        &mut self,
        typed: Option<&str>,
        places: &SymbolPaths,
        timelines: &[ExecutionId],
        ctx: &Ctx,
    ) -> anyhow::Result<Model> {
        if let Some(task) = self.profile_task(typed)? {
            return self.profile(&task, places, ctx);
        }
        self.expect_stages(ctx);
        self.fit_clocks(ctx)?;
        if !self.others.is_empty() {
            return self.joined_model(typed, places, timelines, ctx);
        }
        let asked = self.asked(typed);
        if asked.task.is_none() && self.tasks().declared == 0 {
            return self.choose(asked.process, places, timelines, ctx);
        }
        let pass = self.ask(typed.as_slice(), places, ctx)?;
        let mut rules = pass.rules()?;
        let Some(chosen) = pass.begun().next() else {
            let names: Vec<&str> = pass.tasks.iter().map(|t| t.name.as_str()).collect();
            anyhow::bail!("{}", self.nothing(ctx, &format!("{} has no executions", named(&names)))?);
        };
        let placed = self.place_stacks(&pass, places, ctx)?;
        let model = self.explain((&pass, &placed), chosen, rules.swap_remove(chosen), places, timelines, ctx)?;
        if model.executions.is_empty() {
            let name = &pass.tasks[chosen].name;
            anyhow::bail!("{}", self.nothing(ctx, &format!("task {name} has no executions that end in it"))?);
        }
        Ok(model)
    }

    /// The kernel pass for the tasks that are named, or are worth a look by themselves.
    pub(super) fn ask(&self, typed: &[&str], places: &SymbolPaths, ctx: &Ctx) -> anyhow::Result<KernelPass> {
        let tasks = self.candidates(typed)?;
        if tasks.is_empty() {
            anyhow::bail!("{}", self.nothing(ctx, "no task was found in the trace")?);
        }
        self.pass(tasks, places, ctx)
    }

    /// The kernel pass for some tasks.
    pub(super) fn pass(
        &self,
        tasks: Vec<TaskDefinition>,
        places: &SymbolPaths,
        ctx: &Ctx,
    ) -> anyhow::Result<KernelPass> {
        let places = &self.with_recorded(places)?;
        let (timeline, notices) = self.states(&tasks, places, ctx)?;
        self.derive(tasks, timeline, notices, places, ctx)
    }

    /// The states of all threads, with the events of some tasks, before anything is derived of them.
    pub(super) fn states(
        &self,
        tasks: &[TaskDefinition],
        places: &SymbolPaths,
        ctx: &Ctx,
    ) -> anyhow::Result<(RecordedTimeline, Notices)> {
        for (at, source) in (0..).zip(&self.sources) {
            symbols::unwind::unwind(&source.trace, at, places, ctx)?;
        }
        let (mut timeline, notices) = self.record(tasks, ctx)?;
        let code: Vec<RecordedCode<'_>> = self.sources.iter().map(|source| source.trace.code()).collect();
        symbols::images::add_files(&mut timeline, &code);
        Ok((timeline, notices))
    }

    /// The kernel pass of some states: causes of waits by the kernel's stacks, names of functions, tasks that no event
    /// delimits.
    pub(super) fn derive(
        &self,
        tasks: Vec<TaskDefinition>,
        mut recorded: RecordedTimeline,
        mut notices: Notices,
        places: &SymbolPaths,
        ctx: &Ctx,
    ) -> anyhow::Result<KernelPass> {
        if !recorded.wake_stacks().is_empty()
            && let Some(symbols) = symbols::files::kernel_symbols(places, &mut Notices::default())
        {
            wakers::relabel(&mut recorded, &symbols, &mut notices);
        }
        let mut timeline = recorded.seal();
        let mut functions = vec![FunctionNames::default(); tasks.len()];
        let mut of_tasks = vec![Notices::default(); tasks.len()];
        let stacks = LazyStackTables::default();
        for (at, task) in tasks.iter().enumerate() {
            match &task.pairing {
                Pairing::Function => {
                    functions[at] = FunctionNames::new(&timeline, at as u32, places, &mut notices, ctx)?;
                }
                Pairing::Derived(derived) => {
                    let notices = &mut of_tasks[at];
                    match (derived::marks(&timeline, at as u32, derived, &stacks, places, notices, ctx)?, derived) {
                        (Known::Yes(marks), _) => timeline = timeline.delimited_by(marks),
                        (Known::No, Derived::Named(name)) => {
                            return Err(UsageError(tasks::unknown(name, self.found()).to_string()).into());
                        }
                        (Known::Not(why), _) => return Err(UsageError(format!("--task {}: {why}", task.name)).into()),
                        (Known::No, _) => {}
                    }
                }
                _ => {}
            }
        }
        let threads = RefCell::default();
        Ok(KernelPass { tasks, functions, timeline, notices, of_tasks, stacks, threads })
    }

    /// Place the call stacks of a kernel pass, once for all its models, with all notices so far.
    pub(super) fn place_stacks(
        &self,
        pass: &KernelPass,
        places: &SymbolPaths,
        ctx: &Ctx,
    ) -> anyhow::Result<PlacedStacks> {
        let mut notices = pass.notices.clone();
        let stacks = self.stacks(pass, places, &mut notices, ctx)?;
        Ok(PlacedStacks { stacks, notices })
    }

    /// The call stacks of a kernel pass.
    pub(super) fn stacks(
        &self,
        pass: &KernelPass,
        places: &SymbolPaths,
        notices: &mut Notices,
        ctx: &Ctx,
    ) -> anyhow::Result<RecordingTables> {
        Ok(RecordingTables::new(&pass.timeline, &pass.stacks, &self.with_recorded(places)?, notices, ctx)?)
    }

    pub(super) fn explain(
        &self,
        (pass, placed): (&KernelPass, &PlacedStacks),
        chosen: usize,
        rule: PairingRule,
        places: &SymbolPaths,
        timelines: &[ExecutionId],
        ctx: &Ctx,
    ) -> anyhow::Result<Model> {
        let request = self.request(pass, chosen, rule, places, timelines)?;
        let notices = pass.notices_with(&placed.notices, chosen);
        Ok(explain::with_stacks(&pass.timeline, &placed.stacks, &request, &notices, ctx)?)
    }

    /// The request for the executions of a task.
    pub(super) fn request(
        &self,
        pass: &KernelPass,
        chosen: usize,
        rule: PairingRule,
        places: &SymbolPaths,
        timelines: &[ExecutionId],
    ) -> anyhow::Result<explain::TaskRequest> {
        let known = self.tasks().names();
        let (mut tasks, name) = (Arc::clone(&known.all), &pass.tasks[chosen].name);
        let task = known.first.get(name).copied().unwrap_or_else(|| {
            Arc::make_mut(&mut tasks).push(name.clone());
            tasks.len() - 1
        });
        let traces = self.about();
        let (places, timelines) = (self.with_recorded(places)?, timelines.to_vec());
        Ok(explain::TaskRequest { tasks, task, marks: chosen as u32, rule, traces, places, timelines })
    }

    /// One line for a recording without an answer.
    pub(super) fn nothing(&self, ctx: &Ctx, what: &str) -> anyhow::Result<String> {
        let title = self.title();
        self.reopened.iter().try_for_each(|reopened| reopened.is_of_kernel())?;
        if !self.has_events(ctx)? {
            let notices = self.notices();
            // The gravest comes first: what is lost or damaged is why there is nothing.
            let why = notices.sentences().into_iter().next().filter(|_| notices.has_fault());
            let why =
                why.map_or_else(|| "; was anything recorded before it was stopped?".to_owned(), |it| format!(": {it}"));
            return Ok(format!("{title}: the trace holds no events{why}"));
        }
        Ok(format!(
            "{title}: {what}; `whyslow info --full` lists tasks with their counts, --task begin=EVENT,end=EVENT \
             defines one"
        ))
    }
}

/// Some tasks in words: the first few by name.
pub(super) fn named(tasks: &[&str]) -> String {
    const SHOWN: usize = 5;
    let shown = tasks.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    match tasks.len().checked_sub(SHOWN) {
        Some(more @ 1..) => format!("task {shown} and {more} more"),
        _ => format!("task {shown}"),
    }
}

/// The user's table of interrupt handlers: as typed, else the one among the configuration; and
/// its checksum.
fn handlers(typed: Option<&Path>) -> anyhow::Result<Handlers> {
    let kept = || {
        let folder = etcetera::choose_base_strategy().ok()?.config_dir();
        Some(folder.join("whyslow/handlers.toml")).filter(|path| path.is_file())
    };
    let Some(path) = typed.map(Path::to_owned).or_else(kept) else { return Ok(Handlers::built_in()) };
    let said = |e: &dyn std::fmt::Display| UsageError(format!("{}: {e}", path.display()));
    let text = super::text_of(&path).map_err(|e| said(&e))?;
    Ok(Handlers::with_own(&text).map_err(|e| said(&e))?)
}
