//! CTF traces: tasks, the kernel pass, the executions of a task explained, patterns of system calls, state history.
//!
//! Metadata and packet indexes are read when the traces are opened, events are not: each question below reads them.

use super::Wrong;
use super::asked::Asked;
use crate::analysis::clocks::{self, HostClock};
use crate::analysis::derived;
use crate::analysis::executions::{self, Rule};
use crate::analysis::functions::{self, Functions};
use crate::analysis::survey::{self, Survey, Surveyed};
use crate::analysis::symbols::{self, files::Places};
use crate::analysis::usage::Usage;
use crate::analysis::wakers;
use crate::base::notice::Notices;
use crate::base::time::Span;
use crate::base::work::Work;
use crate::cli::Common;
use crate::event::bind::{Focus, is_kernel};
use crate::event::declared;
use crate::event::derived::Derived;
use crate::event::task::{self, ClassFace, Pairing, TaskDefinition};
use crate::input::count::{self, Counts};
use crate::input::record::{ClassId, Scope};
use crate::input::{self, Source};
use crate::model::build;
use crate::model::database::Writer;
use crate::model::execution::ExecutionId;
use crate::model::facts::Facts;
use crate::model::{Model, TraceInfo};
use crate::state::engine::{ChunkTarget, Way};
use crate::state::history::History;
use crate::state::kernel::{Handlers, Options, record};
use crate::state::recording::Recording;
use etcetera::BaseStrategy;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::OnceLock;

/// The tasks by name, and what they were found in.
pub(super) struct Known {
    /// Declared in a file, then found by themselves.
    pub tasks: Vec<TaskDefinition>,
    /// How many of them are declared.
    pub declared: usize,
    pub classes: Vec<ClassFace>,
    /// Names of the kernel's events.
    kernel: BTreeSet<String>,
}

impl Known {
    fn new(sources: &[Source]) -> Known {
        let classes: Vec<ClassFace> = sources.iter().flat_map(faces).collect();
        let kernel = classes.iter().filter(|c| c.kernel && !c.is_probe()).map(|c| c.name.clone()).collect();
        Known { tasks: task::discover(&classes), declared: 0, classes, kernel }
    }

    /// What a file declares goes before what is found under the same name.
    fn with_file(sources: &[Source], file: &Path) -> anyhow::Result<Known> {
        let mut known = Known::new(sources);
        let declared = declared(file, &known.classes)?;
        known.declared = declared.len();
        let names: BTreeSet<&str> = declared.iter().map(|d| d.name.as_str()).collect();
        known.tasks.retain(|t| !names.contains(t.name.as_str()));
        known.tasks.splice(0..0, declared);
        Ok(known)
    }
}

/// CTF traces on one time line.
pub struct Traces {
    /// The traces.
    pub sources: Vec<Source>,
    /// Known once somebody asks.
    tasks: OnceLock<Known>,
    /// The hosts' clocks and what is to be said of them, once they are fitted.
    clocks: Option<(Vec<HostClock>, Notices)>,
    handlers: Handlers,
    way: Way,
}

impl Traces {
    /// Traces that are open.
    pub fn new(sources: Vec<Source>, common: &Common) -> anyhow::Result<Traces> {
        let chunks = match common.chunk {
            // What is decoded and not merged yet takes several times its bytes, for two chunks of each worker.
            None if common.memory.is_some() => {
                let workers = Work::new(common.threads).threads as u64;
                ChunkTarget::Bytes((common.memory.unwrap_or(0) / (64 * workers)).clamp(1 << 16, 4 << 20))
            }
            None => ChunkTarget::default(),
            Some(0) => ChunkTarget::Packet,
            Some(bytes) => ChunkTarget::Bytes(bytes),
        };
        let known = common.tasks.as_deref().map(|file| Known::with_file(&sources, file)).transpose()?;
        let tasks = known.map_or_else(OnceLock::new, OnceLock::from);
        let handlers = handlers(common.handlers.as_deref())?;
        Ok(Traces { sources, tasks, clocks: None, handlers, way: Way { chunks, ..Way::default() } })
    }

    /// Lay the traces of several hosts on one time line, once.
    pub fn fit_clocks(&mut self, work: &Work) -> anyhow::Result<()> {
        if self.clocks.is_none() {
            let mut notices = Notices::default();
            let clocks = clocks::lay(&mut self.sources, &mut notices, work)?;
            self.clocks = Some((clocks, notices));
        }
        Ok(())
    }

    /// The hosts' clocks, once they are fitted.
    pub fn clocks(&self) -> &[HostClock] {
        self.clocks.as_ref().map_or(&[], |(clocks, _)| clocks)
    }

    pub(super) fn tasks(&self) -> &Known {
        self.tasks.get_or_init(|| Known::new(&self.sources))
    }

    /// Tasks declared in a file, then those found by themselves.
    pub fn found(&self) -> &[TaskDefinition] {
        &self.tasks().tasks
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

    /// The tasks that `--task` names; without it those that a file declares, else those whose executions are worth a look
    /// unasked: all but system calls and interrupts, which every recording has.
    pub fn candidates(&self, typed: &[&str]) -> anyhow::Result<Vec<TaskDefinition>> {
        if !typed.is_empty() {
            let task =
                |t: &&str| task::parse(t, self.found(), &self.tasks().classes).map_err(|e| Wrong(e.to_string()).into());
            return typed.iter().map(task).collect();
        }
        if self.tasks().declared > 0 {
            return Ok(self.found()[..self.tasks().declared].to_vec());
        }
        Ok(self.found().iter().filter(|t| self.is_users(t)).cloned().collect())
    }

    fn is_users(&self, task: &TaskDefinition) -> bool {
        task.pairing == Pairing::ProcessKey || !self.is_kernels(task)
    }

    /// It is delimited by events of the kernel.
    pub(super) fn is_kernels(&self, task: &TaskDefinition) -> bool {
        let by_kernel = |event: &str| self.tasks().kernel.contains(event);
        task.begins.iter().any(|d| by_kernel(&d.event))
    }

    /// The kernel pass, with marks for some tasks.
    pub fn record(&self, tasks: &[TaskDefinition], work: &Work) -> anyhow::Result<(Recording, Notices)> {
        let options = Options { way: self.way, labels: self.labels(), handlers: self.handlers.clone() };
        let (recording, mut notices) = record(&self.traces(), tasks, &options, work)?;
        notices.merge(&self.notices());
        self.clocks.iter().for_each(|(_, fitted)| notices.merge(fitted));
        Ok((recording, notices))
    }

    /// Who used the CPUs, or who read and wrote.
    pub fn usage(&self, focus: Focus, work: &Work) -> anyhow::Result<(Usage, Notices)> {
        let (usage, mut notices) = Usage::read(&self.traces(), &self.labels(), focus, &self.way, work)?;
        notices.merge(&self.notices());
        Ok((usage, notices))
    }

    fn traces(&self) -> Vec<&input::Trace> {
        self.sources.iter().map(|s| &s.trace).collect()
    }

    fn labels(&self) -> Vec<Option<String>> {
        self.sources.iter().map(|s| s.labelled.then(|| s.label.clone())).collect()
    }

    /// The state history of the whole recording.
    pub fn history(&self, work: &Work) -> anyhow::Result<(History, Notices)> {
        let (recording, notices) = self.record(&[], work)?;
        Ok((History::of_recording(&recording, work)?, notices))
    }

    /// What was odd about the traces when they were opened.
    pub fn notices(&self) -> Notices {
        let mut notices = Notices::default();
        self.sources.iter().for_each(|s| notices.merge(&s.trace.notices()));
        notices
    }

    /// How often and how long each task ran. Functions whose calls were recorded are the tasks that are not known
    /// before. `check` holds the recording against its invariants.
    pub fn survey(&self, check: bool, places: &Places, work: &Work) -> anyhow::Result<(Survey, Vec<String>, Notices)> {
        let tasks = self.candidates(&[])?;
        let functions = task::function("", &self.tasks().classes);
        let mut asked = self.pass(tasks.iter().cloned().chain(functions).collect(), places, work)?;
        let (recording, mut notices) = (&asked.recording, asked.notices.clone());
        if let Some(broken) = check.then(|| recording.check()).flatten() {
            anyhow::bail!("an invariant does not hold: {broken}; please report this");
        }
        let mut survey = survey::survey(recording, &tasks, &mut notices);
        let mut calls: BTreeMap<String, Surveyed> = BTreeMap::new();
        if asked.tasks.len() > tasks.len() {
            for call in functions::pair(recording, tasks.len() as u32, &mut notices) {
                let name = asked.name(call.begin).unwrap_or_default();
                calls.entry(name.to_owned()).or_default().add(recording, call.thread, call.span, &mut notices);
            }
        }
        let loops = self.loops(&mut asked, places, work)?;
        let recording = &asked.recording;
        let mut names = Vec::new();
        for (at, name) in loops {
            let turns = executions::pair(recording, at as u32, &Rule::default(), &mut notices);
            let surveyed = survey.tasks.entry(name.clone()).or_default();
            turns.iter().for_each(|turn| surveyed.add(recording, turn.thread, turn.span, &mut notices));
            surveyed.durations.sort_unstable();
            names.push(name);
        }
        // Calls that no class of events names (raw ones, those of old tracers) are known by now.
        let unnamed = |name: &&String| self.found().iter().all(|t| t.name != **name) && !names.contains(*name);
        let unnamed: Vec<String> = survey.tasks.keys().filter(unnamed).cloned().collect();
        names.extend(unnamed);
        names.extend(calls.keys().filter(|name| !survey.tasks.contains_key(*name)).cloned());
        survey.add_functions(calls);
        for (name, durations) in derived::whole_processes(recording) {
            names.push(name.clone());
            survey.tasks.entry(name).or_default().durations = durations;
        }
        Ok((survey, names, notices))
    }

    /// The executions of a task, explained. Without a task: of the first declared one that has executions, else of what
    /// answers (`choice.rs`). `moments`: the executions whose moments are wanted too.
    pub fn model(
        &self,
        typed: Option<&str>,
        places: &Places,
        moments: &[ExecutionId],
        work: &Work,
    ) -> anyhow::Result<Model> {
        if typed.is_none() && self.tasks().declared == 0 {
            return self.choose(places, moments, work);
        }
        let asked = self.ask(typed.as_slice(), places, work)?;
        let mut rules = asked.rules()?;
        let Some(chosen) = asked.begun().next() else {
            let names: Vec<&str> = asked.tasks.iter().map(|t| t.name.as_str()).collect();
            anyhow::bail!("{}", self.nothing(work, &format!("{} has no executions", named(&names)))?);
        };
        let model = self.explain(&asked, chosen, rules.swap_remove(chosen), places, moments, work)?;
        if model.executions.is_empty() {
            let name = &asked.tasks[chosen].name;
            anyhow::bail!("{}", self.nothing(work, &format!("task {name} has no executions that end in it"))?);
        }
        Ok(model)
    }

    /// A database of the executions of the tasks that are named; without names of all that are worth a look unasked.
    pub fn build(&self, typed: &[&str], places: &Places, work: &Work) -> anyhow::Result<Writer> {
        let asked = self.ask(typed, places, work)?;
        let rules = asked.rules()?;
        let mut writer = Writer::new(Facts::of(&self.sources), asked.notices.clone());
        let mut held = vec![false; asked.tasks.len()];
        for chosen in asked.begun() {
            let model = self.explain(&asked, chosen, rules[chosen].clone(), places, &[], work)?;
            if let Some(violation) = build::check(&model, 1).pop() {
                anyhow::bail!("an invariant does not hold: {violation}; please report this");
            }
            held[chosen] = !model.executions.is_empty();
            if held[chosen] {
                writer.add(&model);
            }
        }
        let missing = asked.tasks.iter().zip(&held).filter(|(_, held)| !**held).map(|(t, _)| t.name.as_str());
        let missing: Vec<&str> = missing.collect();
        if missing.len() == held.len() || (!typed.is_empty() && !missing.is_empty()) {
            anyhow::bail!("{}", self.nothing(work, &format!("{} has no executions", named(&missing)))?);
        }
        Ok(writer)
    }

    /// The kernel pass for the tasks that are named, or are worth a look unasked.
    fn ask(&self, typed: &[&str], places: &Places, work: &Work) -> anyhow::Result<Asked> {
        let tasks = self.candidates(typed)?;
        if tasks.is_empty() {
            anyhow::bail!("{}", self.nothing(work, "no task is found in it by itself")?);
        }
        self.pass(tasks, places, work)
    }

    /// The same places, with the kernel symbols that the recordings hold themselves.
    fn with_recorded(&self, places: &Places) -> Places {
        let recorded = self.sources.iter().filter_map(|s| s.trace.kernel_symbols()).map(Into::into);
        Places { recorded: if places.kernel.is_empty() { recorded.collect() } else { Vec::new() }, ..places.clone() }
    }

    /// The kernel pass for some tasks.
    pub(super) fn pass(&self, tasks: Vec<TaskDefinition>, places: &Places, work: &Work) -> anyhow::Result<Asked> {
        let places = &self.with_recorded(places);
        let (mut recording, mut notices) = self.record(&tasks, work)?;
        if !recording.wake_stacks.is_empty()
            && let Some(symbols) = symbols::kernel_symbols(places, &mut Notices::default())
        {
            wakers::relabel(&mut recording, &symbols);
        }
        let mut functions = vec![Functions::default(); tasks.len()];
        for (at, task) in tasks.iter().enumerate() {
            match &task.pairing {
                Pairing::Function => {
                    functions[at] = Functions::new(&mut recording, at as u32, places, &mut notices, work)?;
                }
                Pairing::Derived(derived) => {
                    let known = derived::mark(&mut recording, at as u32, derived, places, work)?;
                    if let (false, Derived::Named(name)) = (known, derived) {
                        return Err(Wrong(task::unknown(name, self.found()).to_string()).into());
                    }
                }
                _ => {}
            }
        }
        Ok(Asked { tasks, functions, recording, notices })
    }

    pub(super) fn explain(
        &self,
        asked: &Asked,
        chosen: usize,
        rule: Rule,
        places: &Places,
        moments: &[ExecutionId],
        work: &Work,
    ) -> anyhow::Result<Model> {
        let request = self.request(asked, chosen, rule, places, moments);
        Ok(build::build(&asked.recording, &request, &asked.notices, work)?)
    }

    /// What is asked of the executions of a task.
    pub(super) fn request(
        &self,
        asked: &Asked,
        chosen: usize,
        rule: Rule,
        places: &Places,
        moments: &[ExecutionId],
    ) -> build::Request {
        let candidates = &asked.tasks;
        let mut tasks: Vec<String> = self.found().iter().map(|t| t.name.clone()).collect();
        let name = &candidates[chosen].name;
        let task = tasks.iter().position(|t| t == name).unwrap_or_else(|| {
            tasks.push(name.clone());
            tasks.len() - 1
        });
        let traces = self.sources.iter().map(about).collect();
        let (places, moments) = (self.with_recorded(places), moments.to_vec());
        build::Request { tasks, task, marks: chosen as u32, rule, traces, places, moments }
    }

    /// One line for a recording without an answer.
    pub(super) fn nothing(&self, work: &Work, what: &str) -> anyhow::Result<String> {
        let title = self.title();
        if self.count(work)?.0.events == 0 {
            return Ok(format!("{title}: the trace holds no events; was anything recorded before it was stopped?"));
        }
        Ok(format!(
            "{title}: {what}; `whyslow info --full` lists tasks with their counts, --task begin=EVENT,end=EVENT names one by hand"
        ))
    }
}

/// Some tasks in words: the first few by name.
fn named(tasks: &[&str]) -> String {
    const SHOWN: usize = 5;
    let shown = tasks.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    match tasks.len().checked_sub(SHOWN) {
        Some(more @ 1..) => format!("task {shown} and {more} more"),
        _ => format!("task {shown}"),
    }
}

/// The tasks that a file declares.
fn declared(file: &Path, classes: &[ClassFace]) -> anyhow::Result<Vec<TaskDefinition>> {
    let option = format!("--tasks {}", file.display());
    let text = super::text_of(file).map_err(|e| Wrong(format!("{option}: {e}")))?;
    declared::tasks(&text, classes).map_err(|e| Wrong(format!("{option}:{e}")).into())
}

/// The user's table of interrupt handlers: as typed, else the one among the configuration.
fn handlers(typed: Option<&Path>) -> anyhow::Result<Handlers> {
    let kept = || {
        let folder = etcetera::choose_base_strategy().ok()?.config_dir();
        Some(folder.join("whyslow/handlers.toml")).filter(|path| path.is_file())
    };
    let Some(path) = typed.map(Path::to_owned).or_else(kept) else { return Ok(Handlers::built_in()) };
    let said = |e: &dyn std::fmt::Display| Wrong(format!("{}: {e}", path.display()));
    let text = super::text_of(&path).map_err(|e| said(&e))?;
    Ok(Handlers::with_own(&text).map_err(|e| said(&e))?)
}

fn faces(source: &Source) -> Vec<ClassFace> {
    let kernel = is_kernel(&source.trace);
    let has_context = |class, name: &str| {
        let scopes = [Scope::CommonContext, Scope::SpecificContext];
        scopes.iter().any(|scope| source.trace.has_field(class, *scope, name))
    };
    let fields = |class| {
        source.trace.payload_fields(class).into_iter().map(|(name, number)| (name.to_owned(), number)).collect()
    };
    let face = |(i, class): (usize, &input::stream::Class)| ClassFace {
        name: class.known().to_owned(),
        shown: class.name.clone(),
        kernel,
        fields: fields(ClassId::at(i)),
        contexts: task::CONTEXTS.iter().filter(|c| has_context(ClassId::at(i), c)).map(|c| (*c).to_owned()).collect(),
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
