//! The choice of a task where the user named none.
//!
//! What marks executions itself comes first: pairs of user-space events, which say what a program is for. Then whose
//! executions are asked about is settled, by what the recording was made for (`analysis/candidates/`), and of that
//! program the first task that answers is taken: it has at least [`ENOUGH`] executions and a confident verdict. That
//! another program's task can be explained with more certainty makes it no better question. If none answers, the first
//! with so many is taken, else the first with any: it shows where its time went. Of the scheduler alone the busiest
//! threads are left. Cost: a model and a comparison for each task that is tried.

use super::pass::KernelPass;
use super::traces::Traces;
use super::trials::{OwnTasks, SymbolsAndCtx, Trial, TrialTask, own_trials, trials};
use crate::analysis::candidates::{self, ENOUGH, Programs};
use crate::analysis::derived;
use crate::analysis::executions::{MarksByTask, PairingRule};
use crate::base::ctx::Ctx;
use crate::base::span_list::SpanRoom;
use crate::compare::{self, Comparison, GroupsOrigin};
use crate::event::derived::Derived;
use crate::event::profile::ProfileTask;
use crate::event::task::{Asked, TaskDefinition};
use crate::model::Model;
use crate::model::choice::{ChosenBy, ExecutionKind, TaskChoice};
use crate::model::execution::ExecutionId;
use crate::reading::tasks;
use crate::symbols::files::SymbolPaths;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Slow executions beyond a gap from which a task answers.
const SLOW_ENOUGH: usize = 5;

/// The model of a task, and what else the caller makes of its executions.
type Made<T> = (Model, T);

/// Makes a model of the task at a position.
type Maker<'a, T> = dyn Fn(&KernelPass, usize, PairingRule) -> anyhow::Result<Made<T>> + 'a;

/// The task of a loop whose begins and ends are marked.
pub(super) struct MarkedLoop {
    pub task: usize,
    pub name: String,
}

/// The result of one trial.
struct Attempt<T> {
    at: usize,
    made: Made<T>,
}

/// The best results so far.
struct Best<T> {
    answer: Option<Attempt<T>>,
    /// The first with enough executions.
    enough: Option<Attempt<T>>,
    /// The first that ran at all.
    some: Option<Attempt<T>>,
}

impl<T> Best<T> {
    fn has_enough(&self) -> bool {
        self.answer.is_some() || self.enough.is_some()
    }

    fn take(self) -> Option<Attempt<T>> {
        self.answer.or(self.enough).or(self.some)
    }
}

impl Traces {
    /// The executions of the task that answers, explained; of some processes alone where these are named.
    pub(super) fn choose(
        &self,
        process: Option<&str>,
        places: &SymbolPaths,
        timelines: &[ExecutionId],
        ctx: &Ctx,
    ) -> anyhow::Result<Model> {
        let typed = process.map(|process| Asked { task: None, process: Some(process) }.to_string());
        let pairs = self.candidates(typed.as_deref().as_slice())?;
        let called = tasks::function("", &self.tasks().classes);
        let mut pass = self.pass(pairs.iter().cloned().chain(called).collect(), places, ctx)?;
        let marks = MarksByTask::new(&pass.timeline);
        let is_own = |task: usize| task < pairs.len() && marks.most_executions(task) >= ENOUGH;
        if self.are_profiles() && !pass.begun().any(is_own) {
            let program = process.map(str::to_owned);
            return self.profile(&ProfileTask { program, ..ProfileTask::default() }, places, ctx);
        }
        let placed = self.place_stacks(&pass, places, ctx)?;
        let make = |pass: &KernelPass, task: usize, rule: PairingRule| {
            Ok((self.explain((pass, &placed), task, rule, places, timelines, ctx)?, ()))
        };
        match self.choose_in(&mut pass, OwnTasks { pairs: pairs.len(), process }, places, &make, ctx)? {
            Some((model, ())) => Ok(model),
            None => anyhow::bail!("{}", self.nothing_by_itself(ctx, &pass)?),
        }
    }

    /// The result of `make` for the task that answers; `None` if no task has executions.
    pub(super) fn choose_in<T>(
        &self,
        pass: &mut KernelPass,
        own: OwnTasks<'_>,
        places: &SymbolPaths,
        make: &Maker<'_, T>,
        ctx: &Ctx,
    ) -> anyhow::Result<Option<Made<T>>> {
        let with = SymbolsAndCtx { places: &self.with_recorded(places)?, ctx };
        let mut best = Best { answer: None, enough: None, some: None };
        let marked = own_trials(pass, own)?;
        try_own(pass, &marked, &mut best, make, with)?;
        if best.has_enough() {
            return Ok(best.take().map(|attempt| chosen(attempt, &marked)));
        }
        if let Some(trial) = self.in_both_traces(pass, own) {
            let (task, rule) = trial.task.marked(pass, with)?;
            let (mut model, more) = make(pass, task, rule)?;
            model.choice = Some(trial.choice);
            return Ok(Some((model, more)));
        }
        let trials = trials(pass, own, with)?;
        let mut all = marked;
        for of_program in trials {
            let start = all.len();
            all.extend(of_program);
            for (at, trial) in all.iter().enumerate().skip(start) {
                attempt(pass, (at, trial), false, &mut best, make, with)?;
                if best.answer.is_some() {
                    break;
                }
            }
            if best.has_enough() {
                break;
            }
        }
        Ok(best.take().map(|attempt| chosen(attempt, &all)))
    }

    /// The loops that are worth a look, marked.
    pub(super) fn loops(
        &self,
        pass: &mut KernelPass,
        places: &SymbolPaths,
        ctx: &Ctx,
    ) -> anyhow::Result<Vec<MarkedLoop>> {
        let programs = Programs::new(&pass.timeline, None);
        let places = &self.with_recorded(places)?;
        let room = SpanRoom::of(ctx);
        ctx.progress.enter("tasks", pass.timeline.segment_count() as u64);
        let (loops, _) = candidates::loops(&pass.timeline, &programs, &pass.stacks, places, &room, ctx)?;
        let mut marked = Vec::new();
        for candidate in loops.into_values().flatten() {
            let definition = candidate.definition(None);
            let name = definition.name.clone();
            marked.push(MarkedLoop { task: pass.add(definition, places, ctx)?, name });
        }
        Ok(marked)
    }

    /// The command that was recorded in both of two labelled traces; else the one that ran longest from its start to
    /// its end in both.
    fn in_both_traces(&self, pass: &KernelPass, own: OwnTasks<'_>) -> Option<Trial> {
        if own.process.is_some() {
            return None;
        }
        let labels = self.labels_of_two()?;
        let given = self.given_labels();
        let timeline = &pass.timeline;
        let left_out = derived::tracers(timeline);
        let label = |life: &derived::ThreadLife| {
            let trace = timeline.trace_of(timeline.thread(life.thread)?.host)?;
            given.get(trace as usize).map(|(label, _)| *label)
        };
        let recorded = derived::commands(timeline);
        // The command that was recorded may have been cut off; of others only whole lives show what they do.
        let both = |(name, lives): (String, Vec<derived::ThreadLife>)| {
            let in_both = |lives: &[&derived::ThreadLife]| {
                lives.iter().filter_map(|life| label(life)).collect::<BTreeSet<&str>>() == labels
            };
            let of_command: Vec<_> = lives.iter().filter(|life| recorded.contains(&life.thread)).collect();
            let whole: Vec<_> = lives.iter().filter(|life| life.whole && !left_out.contains(&life.thread)).collect();
            let is_command = in_both(&of_command);
            let lives = if is_command { of_command } else { whole };
            let ns = || lives.iter().map(|life| life.span.len()).sum::<i64>();
            in_both(&lives).then(|| (is_command, ns(), std::cmp::Reverse(name)))
        };
        let longest = derived::processes(timeline).into_iter().filter_map(both).max();
        let (_, _, std::cmp::Reverse(name)) = longest?;
        let whose = Some((name.clone(), ExecutionKind::Lives));
        let task = Derived::Process(name);
        let definition = TaskDefinition::derived(task.to_string(), task);
        let why = "the command that ran in both traces".to_owned();
        let choice = TaskChoice { by: ChosenBy::Shared, whose, why, by_trace: true, ..TaskChoice::default() };
        Some(Trial { name: definition.name.clone(), task: TrialTask::Unmarked(definition), choice })
    }

    /// One line for a recording in which nothing runs that could be explained: what it answers, and what to record.
    fn nothing_by_itself(&self, ctx: &Ctx, pass: &KernelPass) -> anyhow::Result<String> {
        let timeline = &pass.timeline;
        let scheduled = timeline.quality().iter().any(|q| q.switches > 0);
        let what = if scheduled {
            "nothing in it delimits executions: no system calls, functions or pairs of user-space events were \
             recorded, and no \
             process ran from its start to its end"
        } else {
            "nothing in it delimits executions, and it has no scheduler events"
        };
        let known = format!("{}: {what}", self.title());
        if !self.has_events(ctx)? {
            return self.nothing(ctx, what);
        }
        Ok(format!(
            "{known}; `whyslow anomalies` and `whyslow stats count` say what is in it; record with sched_switch, \
             sched_waking \
             and system calls, or name delimiters with --task begin=EVENT,end=EVENT"
        ))
    }
}

/// Try the tasks that the program's own events delimit, until one answers.
fn try_own<T>(
    pass: &mut KernelPass,
    trials: &[Trial],
    best: &mut Best<T>,
    make: &Maker<'_, T>,
    with: SymbolsAndCtx<'_>,
) -> anyhow::Result<()> {
    let marks = MarksByTask::new(&pass.timeline);
    // A single candidate needs no comparison.
    let alone = trials.len() == 1;
    for (at, trial) in trials.iter().enumerate() {
        let TrialTask::Marked(task, _) = trial.task else { continue };
        // One more of those that ran too seldom changes nothing, and there may be thousands.
        if best.some.is_some() && marks.most_executions(task) < ENOUGH {
            continue;
        }
        attempt(pass, (at, trial), alone, best, make, with)?;
        if best.answer.is_some() {
            break;
        }
    }
    Ok(())
}

/// Make the model of one trial, and see whether it answers.
fn attempt<T>(
    pass: &mut KernelPass,
    (at, trial): (usize, &Trial),
    alone: bool,
    best: &mut Best<T>,
    make: &Maker<'_, T>,
    with: SymbolsAndCtx<'_>,
) -> anyhow::Result<()> {
    let (task, rule) = trial.task.marked(pass, with)?;
    let made = make(pass, task, rule)?;
    let n = made.0.executions.len();
    let answers = || {
        let verdict = compare::compare(&made.0, &compare::ComparisonRequest::default(), with.ctx);
        // A few executions far beyond all others (a start, a pause) are no reason to ask about a task.
        let is_few = |c: &Comparison| c.verdict.groups == GroupsOrigin::Gap && c.slow.members.len() < SLOW_ENOUGH;
        verdict.is_ok_and(|c| c.verdict.confident && !is_few(&c))
    };
    if n == 0 {
        return Ok(());
    }
    if n < ENOUGH {
        best.some.get_or_insert(Attempt { at, made });
    } else if !alone && answers() {
        best.answer.get_or_insert(Attempt { at, made });
    } else {
        best.enough.get_or_insert(Attempt { at, made });
    }
    Ok(())
}

/// The result of an attempt, whose model says why its task was chosen.
fn chosen<T>(Attempt { at, made: (mut model, more) }: Attempt<T>, trials: &[Trial]) -> Made<T> {
    let Trial { name, choice, .. } = &trials[at];
    if let Some(task) = Arc::make_mut(&mut model.tasks).get_mut(model.task)
        && task != name
    {
        // A function goes by the name of its own, not by that of all.
        task.clone_from(name);
    }
    let mut choice = TaskChoice { profile: model.executions.len() < ENOUGH, ..choice.clone() };
    if choice.by == ChosenBy::Marked && choice.profile {
        // Nothing else has enough executions.
        choice.why = "what its own events delimit".to_owned();
        choice.others =
            trials.iter().filter(|t| t.choice.by != ChosenBy::Marked).map(|t| t.name.clone()).take(2).collect();
    }
    model.choice = Some(choice);
    (model, more)
}
