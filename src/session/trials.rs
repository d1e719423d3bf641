//! What may be asked about where the user named no task: of each program its tasks, and the reason for trying them.
//!
//! In: a pass over the events. Out: trials, those first that the program's own events delimit, then by program as
//! `analysis/candidates/` ranks them. The connections of a server take the place of its requests where they carry one
//! request each: they hold the time before the first byte as well. Cost: that of the candidates, and pairing the
//! connections.

use super::pass::KernelPass;
use crate::analysis::candidates::{
    self, Candidate, CandidateSources, ENOUGH, ProgramCandidates, Programs, program_task,
};
use crate::analysis::executions::{self, PairingRule};
use crate::analysis::{derived, functions};
use crate::base::ctx::Ctx;
use crate::base::notice::Notices;
use crate::base::span_list::{SpanList, SpanRoom};
use crate::event::derived::Derived;
use crate::event::task::{Asked, Pairing, TaskDefinition};
use crate::model::choice::{ChosenBy, ExecutionKind, TaskChoice};
use crate::symbols::files::SymbolPaths;
use crate::timeline::ThreadId;
use std::collections::{BTreeMap, BTreeSet};

/// Programs that are named beside the chosen one, at most.
const PROGRAMS: usize = 8;

/// The first tasks of a pass: those that the program's own events delimit.
#[derive(Clone, Copy)]
pub(super) struct OwnTasks<'a> {
    /// How many they are. The next one, if there is one, is that of all functions.
    pub pairs: usize,
    /// Only executions of these processes are meant, by name or pid.
    pub process: Option<&'a str>,
}

/// Paths of symbol files, and the workers.
#[derive(Clone, Copy)]
pub(super) struct SymbolsAndCtx<'a> {
    pub places: &'a SymbolPaths,
    pub ctx: &'a Ctx,
}

/// The executions of a trial.
pub(super) enum TrialTask {
    /// Delimited in the pass: the position of the task, and how its events pair.
    Marked(usize, PairingRule),
    /// Marked when its turn comes: most are never tried.
    Unmarked(TaskDefinition),
}

impl TrialTask {
    pub fn marked(&self, pass: &mut KernelPass, with: SymbolsAndCtx<'_>) -> anyhow::Result<(usize, PairingRule)> {
        match self {
            TrialTask::Marked(task, rule) => Ok((*task, rule.clone())),
            TrialTask::Unmarked(definition) => {
                let task = pass.add(definition.clone(), with.places, with.ctx)?;
                Ok((task, pass.rule(task)?))
            }
        }
    }
}

/// Something to ask about: its executions, and the reason for trying it.
pub(super) struct Trial {
    pub task: TrialTask,
    pub name: String,
    pub choice: TaskChoice,
}

/// By program, the most promising first, what may be tried where the program's own events delimit nothing; then what
/// ran more seldom, the processes, and the threads.
pub(super) type Trials = Vec<Vec<Trial>>;

/// The tasks that the program's own events delimit.
pub(super) fn own_trials(pass: &KernelPass, own: OwnTasks<'_>) -> anyhow::Result<Vec<Trial>> {
    let is_own = |at: &usize| *at < own.pairs && !is_connection(&pass.tasks[*at]);
    let begun: Vec<usize> = pass.begun().filter(is_own).collect();
    let mut trials = Vec::with_capacity(begun.len());
    for at in begun {
        let name = pass.tasks[at].name.clone();
        let choice = TaskChoice { by: ChosenBy::Marked, ..TaskChoice::default() };
        trials.push(Trial { task: TrialTask::Marked(at, pass.rule(at)?), name, choice });
    }
    Ok(trials)
}

/// True for the task of connections, which hold the waits for requests if they carry several.
fn is_connection(task: &TaskDefinition) -> bool {
    task.pairing == Pairing::ProcessKey
}

/// Connections by the name of the program that closed them, and their task.
struct Connections {
    task: usize,
    rule: PairingRule,
    by_program: BTreeMap<String, SpanList>,
}

impl Connections {
    /// Those that were recorded; `None` where there are none.
    fn of(
        pass: &KernelPass,
        own: OwnTasks<'_>,
        programs: &Programs,
        room: &SpanRoom,
    ) -> anyhow::Result<Option<Connections>> {
        let Some(task) = pass.begun().find(|at| *at < own.pairs && is_connection(&pass.tasks[*at])) else {
            return Ok(None);
        };
        let rule = pass.rule(task)?;
        let mut by_program: BTreeMap<String, SpanList> = BTreeMap::new();
        for one in executions::pair(&pass.timeline, task as u32, &rule, &mut Notices::default()) {
            if let Some(name) = programs.name_of(one.thread) {
                by_program.entry(name.to_owned()).or_insert_with(|| SpanList::new(room)).push(one.span);
            }
        }
        Ok(Some(Connections { task, rule, by_program }))
    }

    /// The connections of a program as something to try; `None` where they carry several requests each, on average.
    fn trial(&self, pass: &KernelPass, program: &ProgramCandidates, choice: &TaskChoice) -> Option<Trial> {
        let first = &program.often.first()?.about;
        let spans = self.by_program.get(&first.program).filter(|spans| spans.len() >= ENOUGH)?;
        let requests = if first.kind == ExecutionKind::Requests { first.executions } else { 0 };
        (requests.saturating_mul(2) <= spans.len().saturating_mul(3)).then(|| {
            let mut rule = self.rule.clone();
            let mut name = pass.tasks[self.task].name.clone();
            if self.by_program.len() > 1 && rule.threads.is_none() {
                rule.threads = pass.threads_of(&first.program).ok();
                name = Asked { task: Some(&name), process: Some(&first.program) }.to_string();
            }
            let kind = ExecutionKind::Connections;
            let mut choice = choice.clone();
            if let Some(shown) = choice.programs.first_mut() {
                let spans = (pass.timeline.span(), spans);
                *shown = program_task(&first.program, first.is_recorded, kind, name.clone(), spans);
            }
            (choice.whose, choice.why) = (Some((first.program.clone(), kind)), why_of_kind(kind).to_owned());
            Trial { task: TrialTask::Marked(self.task, rule), name, choice }
        })
    }

    /// All connections, where no program has anything better.
    fn all(&self, pass: &KernelPass, own: OwnTasks<'_>) -> Trial {
        let choice = TaskChoice { by: unsure(own), why: "all connections".to_owned(), ..TaskChoice::default() };
        let task = TrialTask::Marked(self.task, self.rule.clone());
        Trial { task, name: pass.tasks[self.task].name.clone(), choice }
    }
}

/// What may be tried where the program's own events delimit nothing.
pub(super) fn trials(pass: &KernelPass, own: OwnTasks<'_>, with: SymbolsAndCtx<'_>) -> anyhow::Result<Trials> {
    let timeline = &pass.timeline;
    let within = own.process.map(|process| pass.threads_of(process)).transpose()?;
    let programs = Programs::new(timeline, within.as_deref());
    let called = pass
        .functions
        .get(own.pairs)
        .map(|names| (functions::pair(timeline, own.pairs as u32, &mut Notices::default()), names));
    let functions = called.as_ref().map(|(called, names)| (called.as_slice(), *names));
    let room = &SpanRoom::of(with.ctx);
    let sources = CandidateSources { timeline, stacks: &pass.stacks, symbol_paths: with.places, functions, room };
    let found = candidates::candidates(sources, &programs, with.ctx)?;
    let shown = found.iter().filter_map(|program| program.often.first()).take(PROGRAMS);
    let shown: Vec<_> = shown.map(|candidate| candidate.about.clone()).collect();
    let connections = Connections::of(pass, own, &programs, room)?;
    let mut by_program = Trials::new();
    for (at, program) in found.iter().enumerate() {
        let choice = |candidate: &Candidate| TaskChoice {
            by: chosen_by(own, program),
            whose: Some((candidate.about.program.clone(), candidate.about.kind)),
            why: why(candidate, program),
            others: others(&found, at, candidate),
            // The chosen program is first, also where those before it had nothing to ask about.
            programs: shown.get(at..).unwrap_or_default().to_vec(),
            ..TaskChoice::default()
        };
        let connections = program.often.first().zip(connections.as_ref());
        let connections = connections.and_then(|(first, all)| all.trial(pass, program, &choice(first)));
        let trial = |candidate: &Candidate| trial(pass, own, candidate, choice(candidate));
        by_program.push(connections.into_iter().chain(program.often.iter().filter_map(trial)).collect());
    }
    by_program.push(connections.iter().map(|connections| connections.all(pass, own)).collect());
    let seldom = found.iter().flat_map(|program| &program.seldom).take(1);
    let few = |candidate: &Candidate| {
        let whose = Some((candidate.about.program.clone(), candidate.about.kind));
        let why = format!("the {} with the most extra time in its slowest executions", words_of_one(candidate));
        trial(pass, own, candidate, TaskChoice { by: unsure(own), whose, why, ..TaskChoice::default() })
    };
    by_program.push(seldom.filter_map(few).collect());
    if by_program.iter().all(Vec::is_empty) {
        by_program.push(lives(pass, own, &programs, within.as_deref()).into_iter().collect());
    }
    Ok(by_program)
}

/// The command that ran longest from its start to its end; else the threads that ran most.
fn lives(
    pass: &KernelPass,
    own: OwnTasks<'_>,
    programs: &Programs,
    within: Option<&BTreeSet<ThreadId>>,
) -> Option<Trial> {
    let timeline = &pass.timeline;
    let left_out = derived::tracers(timeline);
    let is_meant = |life: &derived::ThreadLife| {
        !left_out.contains(&life.thread) && within.is_none_or(|within| within.contains(&life.thread))
    };
    let lives = derived::processes(timeline);
    let run = |(name, lives): (&String, &Vec<derived::ThreadLife>)| {
        let ns: i64 = lives.iter().map(|life| life.span.len()).sum();
        (std::cmp::Reverse(ns), name.clone())
    };
    let whole = lives.iter().filter(|(_, lives)| lives.iter().any(|life| life.whole && is_meant(life)));
    let (task, why) = match whole.map(run).min() {
        Some((_, name)) => (Derived::Process(name), "the command that ran longest from its start to its end"),
        None => (
            Derived::Thread(programs.busiest(timeline)?),
            "the threads that ran most, because no command ran from its start to its end",
        ),
    };
    let definition = TaskDefinition::derived(task.to_string(), task);
    let definition = own.process.map_or_else(|| definition.clone(), |process| definition.clone().of_process(process));
    let choice = TaskChoice { by: unsure(own), why: why.to_owned(), ..TaskChoice::default() };
    Some(Trial { name: definition.name.clone(), task: TrialTask::Unmarked(definition), choice })
}

/// What chose a task about which nothing says that it was meant.
fn unsure(own: OwnTasks<'_>) -> ChosenBy {
    if own.process.is_some() { ChosenBy::Given } else { ChosenBy::Guessed }
}

/// What chose the tasks of a program.
fn chosen_by(own: OwnTasks<'_>, program: &ProgramCandidates) -> ChosenBy {
    if own.process.is_none() && program.is_recorded() { ChosenBy::Recorded } else { unsure(own) }
}

/// Why executions are asked about whose kind is reason enough; empty for those of other kinds.
fn why_of_kind(kind: ExecutionKind) -> &'static str {
    match kind {
        ExecutionKind::Connections => "the connections that it accepted",
        ExecutionKind::Requests => "the requests that these servers answered over sockets",
        ExecutionKind::Questions => "what these clients asked over sockets",
        ExecutionKind::Iterations => "the loop whose iterations vary most",
        ExecutionKind::SystemCalls | ExecutionKind::FunctionCalls | ExecutionKind::Lives => "",
    }
}

/// Why a task is tried.
fn why(candidate: &Candidate, program: &ProgramCandidates) -> String {
    let by_kind = why_of_kind(candidate.about.kind);
    if !by_kind.is_empty() {
        return by_kind.to_owned();
    }
    let whose = match program.rank {
        _ if program.is_recorded() => ", of the program that was recorded",
        candidates::Rank::Busiest => ", of the processes that did most",
        _ => "",
    };
    let of_kind = |other: &&Candidate| other.about.kind == candidate.about.kind;
    let what = words_of_one(candidate);
    if program.often.iter().find(of_kind) == Some(candidate) {
        format!("the {what} with the most extra time in its slowest tail{whose}")
    } else {
        format!("the first {what} with a clear answer, of those with the most extra time in the slowest tail{whose}")
    }
}

/// One task of a kind in words.
fn words_of_one(candidate: &Candidate) -> &'static str {
    match candidate.about.kind {
        ExecutionKind::SystemCalls => "system call",
        ExecutionKind::FunctionCalls => "function",
        ExecutionKind::Connections | ExecutionKind::Requests | ExecutionKind::Questions => "conversation",
        ExecutionKind::Iterations => "loop",
        ExecutionKind::Lives => "command",
    }
}

/// Two other tasks that are worth a look: those of other programs first.
fn others(found: &[ProgramCandidates], at: usize, chosen: &Candidate) -> Vec<String> {
    let of_others = found.iter().enumerate().filter(|(other, _)| *other != at).filter_map(|(_, p)| p.often.first());
    let of_own = found.get(at).into_iter().flat_map(|program| &program.often).filter(|other| *other != chosen);
    of_others.chain(of_own).map(|candidate| candidate.about.task.clone()).take(2).collect()
}

/// A candidate as something to try.
fn trial(pass: &KernelPass, own: OwnTasks<'_>, candidate: &Candidate, choice: TaskChoice) -> Option<Trial> {
    let definition = candidate.definition(own.process);
    let name = definition.name.clone();
    // Functions are marked already, all under one task; each gets the name of its own.
    let task = if let Derived::Named(function) = &candidate.task {
        let meant = pass.functions.get(own.pairs)?.matching(function);
        let all = pass.tasks.get(own.pairs).filter(|t| t.pairing == Pairing::Function)?;
        let threads = definition.process.as_deref().and_then(|process| pass.threads_of(process).ok());
        let rule = PairingRule { called: Some(meant), threads, ..PairingRule::of(all) };
        TrialTask::Marked(own.pairs, rule)
    } else {
        TrialTask::Unmarked(definition)
    };
    Some(Trial { task, name, choice })
}
