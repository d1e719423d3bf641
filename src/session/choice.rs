//! The choice of a task where the user named none: the first that answers.
//!
//! In this order: pairs of user-space events and connections, which say what the program is for; then requests over
//! sockets, iterations of loops, system calls and functions with uneven durations (`analysis/candidates.rs`). A task
//! answers if it has at least [`ENOUGH`] executions and a confident verdict. If none does, the first with so many is
//! taken, else the first with any: it shows where its time went. Of the scheduler alone the busiest threads are left.
//! Tasks that the program's own events delimit come first: once one of them has enough executions, no other task is
//! tried. Cost: a model and a comparison for each task that is tried.

use super::pass::KernelPass;
use super::traces::Traces;
use crate::analysis::candidates::{self, Candidate, ENOUGH, Priority, ThreadActivity};
use crate::analysis::executions::{MarksByTask, PairingRule};
use crate::analysis::symbols::files::SymbolPaths;
use crate::analysis::{derived, functions};
use crate::base::ctx::Ctx;
use crate::base::notice::Notices;
use crate::compare::{self, Comparison, GroupsOrigin};
use crate::event::derived::{ConversationSide, Conversations, Derived};
use crate::event::profile::ProfileTask;
use crate::event::task::Pairing;
use crate::model::execution::ExecutionId;
use crate::model::{Model, TaskChoice};
use crate::reading::tasks;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Tasks of one kind that are tried, at most.
const TRIED: usize = 6;

/// Servers and clients that are tried, at most.
const SERVERS: usize = 3;

/// Slow executions beyond a gap from which a task answers.
const SLOW_ENOUGH: usize = 5;

/// The model of a task, and what else the caller makes of its executions.
type Made<T> = (Model, T);

/// Makes a model of the task at a position.
type Maker<'a, T> = dyn Fn(&KernelPass, usize, PairingRule) -> anyhow::Result<Made<T>> + 'a;

/// The task of a loop whose begins and ends are marked.
pub(super) struct MarkedLoop {
    /// Its position.
    pub task: usize,
    pub name: String,
}

/// The result of one candidate.
struct Attempt<T> {
    /// Its position.
    at: usize,
    made: Made<T>,
}

/// The best results so far.
struct Best<T> {
    /// It answers.
    answer: Option<Attempt<T>>,
    /// The first with enough executions.
    enough: Option<Attempt<T>>,
    /// The first that ran at all.
    some: Option<Attempt<T>>,
}

impl<T> Best<T> {
    fn is_settled(&self) -> bool {
        self.answer.is_some()
    }

    fn take(self) -> Option<Attempt<T>> {
        self.answer.or(self.enough).or(self.some)
    }
}

/// Paths of symbol files, and the workers.
#[derive(Clone, Copy)]
struct SymbolsAndCtx<'a> {
    places: &'a SymbolPaths,
    ctx: &'a Ctx,
}

/// The executions of a candidate.
enum TrialTask {
    /// Delimited in the pass: the position of the task, and how its events pair.
    Marked(usize, PairingRule),
    /// Marked when its turn comes: most candidates are never tried.
    Unmarked(Derived),
}

impl TrialTask {
    fn marked(&self, pass: &mut KernelPass, with: SymbolsAndCtx<'_>) -> anyhow::Result<(usize, PairingRule)> {
        match self {
            TrialTask::Marked(task, rule) => Ok((*task, rule.clone())),
            TrialTask::Unmarked(derived) => {
                let task = pass.add(derived, with.places, with.ctx)?;
                Ok((task, PairingRule::of(&pass.tasks[task])))
            }
        }
    }
}

/// A candidate: its executions, and the reason for trying it.
struct Trial {
    task: TrialTask,
    why: Option<String>,
    name: String,
}

impl Traces {
    /// The executions of the task that answers, explained.
    pub(super) fn choose(&self, places: &SymbolPaths, timelines: &[ExecutionId], ctx: &Ctx) -> anyhow::Result<Model> {
        let pairs = self.candidates(&[])?;
        let called = tasks::function("", &self.tasks().classes);
        let mut pass = self.pass(pairs.iter().cloned().chain(called).collect(), places, ctx)?;
        let marks = MarksByTask::new(&pass.timeline);
        let is_own = |task: usize| task < pairs.len() && marks.most_executions(task) >= ENOUGH;
        if self.are_profiles() && !pass.begun().any(is_own) {
            return self.profile(&ProfileTask::default(), places, ctx);
        }
        let placed = self.place_stacks(&pass, places, ctx)?;
        let make = |pass: &KernelPass, task: usize, rule: PairingRule| {
            Ok((self.explain((pass, &placed), task, rule, places, timelines, ctx)?, ()))
        };
        match self.choose_in(&mut pass, pairs.len(), places, &make, ctx)? {
            Some((model, ())) => Ok(model),
            None => anyhow::bail!("{}", self.nothing_by_itself(ctx, &pass)?),
        }
    }

    /// The result of `make` for the task that answers; `None` if no task has executions. The first `pairs` tasks of the
    /// pass are delimited by the program's own events; the next one, if there is one, is that of all functions.
    pub(super) fn choose_in<T>(
        &self,
        pass: &mut KernelPass,
        pairs: usize,
        places: &SymbolPaths,
        make: &Maker<'_, T>,
        ctx: &Ctx,
    ) -> anyhow::Result<Option<Made<T>>> {
        let with = SymbolsAndCtx { places: &self.with_recorded(places), ctx };
        let begun: Vec<usize> = pass.begun().filter(|at| *at < pairs).collect();
        let own = |at: usize| {
            let task = &pass.tasks[at];
            Trial { task: TrialTask::Marked(at, PairingRule::of(task)), why: None, name: task.name.clone() }
        };
        let own: Vec<Trial> = begun.iter().copied().map(own).collect();
        let mut best = Best { answer: None, enough: None, some: None };
        let marks = MarksByTask::new(&pass.timeline);
        // A single candidate needs no comparison.
        let alone = own.len() == 1;
        for (at, (trial, task)) in own.iter().zip(begun).enumerate() {
            // One more of those that ran too seldom changes nothing, and there may be thousands.
            if best.some.is_some() && marks.most_executions(task) < ENOUGH {
                continue;
            }
            attempt(pass, (at, trial), alone, &mut best, make, with)?;
            if best.is_settled() {
                break;
            }
        }
        if best.answer.is_some() || best.enough.is_some() {
            return Ok(best.take().map(|attempt| attempt.made));
        }
        if let Some(trial) = self.in_both_traces(pass) {
            let (task, rule) = trial.task.marked(pass, with)?;
            let (mut model, more) = make(pass, task, rule)?;
            let (why, others) = (trial.why.unwrap_or_default(), Vec::new());
            model.choice = Some(TaskChoice { why, others, profile: false, by_trace: true });
            return Ok(Some((model, more)));
        }
        let (others, few) = self.others(pass, pairs, with)?;
        let first = own.len();
        let trials: Vec<Trial> = own.into_iter().chain(others).chain(few).collect();
        for (at, trial) in trials.iter().enumerate().skip(first) {
            // A task with few executions shows where its time goes, if nothing else is left.
            attempt(pass, (at, trial), false, &mut best, make, with)?;
            if best.is_settled() || (best.enough.is_some() && at + 1 >= first + SERVERS + 3 * TRIED) {
                break;
            }
        }
        Ok(best.take().map(|Attempt { at, made: (model, more) }| (with_choice(model, at, &trials), more)))
    }

    /// The loops that are worth a look, marked.
    pub(super) fn loops(
        &self,
        pass: &mut KernelPass,
        places: &SymbolPaths,
        ctx: &Ctx,
    ) -> anyhow::Result<Vec<MarkedLoop>> {
        let activity = ThreadActivity::new(&pass.timeline);
        let places = &self.with_recorded(places);
        let (loops, _) = candidates::loops(&pass.timeline, &activity, &pass.stacks, places, ctx)?;
        let mut marked = Vec::new();
        for candidate in loops {
            marked.push(MarkedLoop { task: pass.add(&candidate.task, places, ctx)?, name: candidate.task.to_string() });
        }
        Ok(marked)
    }

    /// Loops, system calls and functions that ran often enough, in the order in which they are tried; then what ran
    /// more seldom, the processes, and the threads.
    fn others(
        &self,
        pass: &KernelPass,
        pairs: usize,
        with: SymbolsAndCtx<'_>,
    ) -> anyhow::Result<(Vec<Trial>, Vec<Trial>)> {
        let SymbolsAndCtx { places, ctx } = with;
        let activity = ThreadActivity::new(&pass.timeline);
        let (loops, waited) = candidates::loops(&pass.timeline, &activity, &pass.stacks, places, ctx)?;
        let exchanges = candidates::exchanges(&pass.timeline, &activity, ctx)?;
        let calls = candidates::calls(&pass.timeline, &activity, &waited);
        let functions = match pass.functions.get(pairs) {
            Some(names) => {
                let called = functions::pair(&pass.timeline, pairs as u32, &mut Notices::default());
                candidates::functions(&pass.timeline, &activity, &called, names)
            }
            None => Vec::new(),
        };
        let mut enough = Vec::new();
        let mut few = Vec::new();
        let exchanges: Vec<Candidate> =
            exchanges.into_iter().filter(|c| c.executions >= ENOUGH).take(SERVERS).collect();
        // The loops of a server hold its waits for the next request; calls are parts of what requests and calls are.
        let above = |rank: Option<Priority>| move |c: &Candidate| rank.is_none_or(|rank| c.priority > rank);
        let served = exchanges.iter().filter(|c| !asks(&c.task)).map(|c| c.priority).max();
        let loops = loops.into_iter().filter(above(served)).collect();
        let calls = calls.into_iter().filter(above(exchanges.iter().map(|c| c.priority).max())).collect();
        let why = |candidate: Candidate| {
            let why = requests(&candidate.task).to_owned();
            trial(pass, pairs, candidate.task, why)
        };
        enough.extend(exchanges.into_iter().filter_map(why));
        for (all, what) in [(loops, "the loop"), (calls, "the system call"), (functions, "the function")] {
            let (often, seldom): (Vec<Candidate>, Vec<Candidate>) =
                all.into_iter().partition(|c| c.executions >= ENOUGH);
            let most = |candidate: &Candidate| {
                let whose = match candidate.priority {
                    Priority::Command => ", of the command that was recorded",
                    Priority::Busiest => ", of the processes that did most",
                    Priority::Other => "",
                };
                format!("with the most extra time in its slowest executions{whose}")
            };
            for (rank, candidate) in often.into_iter().take(TRIED).enumerate() {
                let why = match (what, rank) {
                    ("the loop", _) => "a loop whose iterations differ widely in duration".to_owned(),
                    (_, 0) => format!("{what} {}", most(&candidate)),
                    _ => format!("{what} that answers first, of those {}", most(&candidate)),
                };
                enough.extend(trial(pass, pairs, candidate.task, why));
            }
            for candidate in seldom.into_iter().take(1) {
                let why = format!("{what} {}", most(&candidate));
                few.extend(trial(pass, pairs, candidate.task, why));
            }
        }
        if enough.is_empty() && few.is_empty() {
            let lives = derived::processes(&pass.timeline);
            let run = |(name, lives): (&String, &Vec<derived::ThreadLife>)| {
                let ns: i64 = lives.iter().map(|life| life.span.len()).sum();
                (std::cmp::Reverse(ns), name.clone())
            };
            let left_out = derived::tracers(&pass.timeline);
            let users = |lives: &Vec<derived::ThreadLife>| {
                lives.iter().any(|life| life.whole && !left_out.contains(&life.thread))
            };
            if let Some((_, name)) = lives.iter().filter(|(_, lives)| users(lives)).map(run).min() {
                let why = "the command that ran longest from its start to its end".to_owned();
                few.extend(trial(pass, pairs, Derived::Process(name), why));
            }
        }
        if enough.is_empty()
            && few.is_empty()
            && let Some(name) = activity.busiest(&pass.timeline)
        {
            let why = "the threads that ran most, because no command ran from its start to its end".to_owned();
            few.extend(trial(pass, pairs, Derived::Thread(name), why));
        }
        Ok((enough, few))
    }

    /// The command that ran longest from its start to its end in both of two labelled traces.
    fn in_both_traces(&self, pass: &KernelPass) -> Option<Trial> {
        let labels = self.labels_of_two()?;
        let given = self.given_labels();
        let timeline = &pass.timeline;
        let left_out = derived::tracers(timeline);
        let label = |life: &derived::ThreadLife| {
            let trace = timeline.trace_of(timeline.thread(life.thread)?.host)?;
            given.get(trace as usize).map(|(label, _)| *label)
        };
        let both = |(name, lives): (String, Vec<derived::ThreadLife>)| {
            let whole = || lives.iter().filter(|life| life.whole && !left_out.contains(&life.thread));
            let of: BTreeSet<&str> = whole().filter_map(label).collect();
            (of == labels).then(|| (whole().map(|life| life.span.len()).sum::<i64>(), std::cmp::Reverse(name)))
        };
        let longest = derived::processes(timeline).into_iter().filter_map(both).max();
        let (_, std::cmp::Reverse(name)) = longest?;
        let why = "the command that ran in both traces".to_owned();
        trial(pass, pass.tasks.len(), Derived::Process(name), why)
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

/// True for the calls of clients over sockets.
fn asks(task: &Derived) -> bool {
    matches!(task, Derived::Exchanges(Conversations { side: ConversationSide::Calls, .. }))
}

/// Why exchanges over sockets are tried.
fn requests(task: &Derived) -> &'static str {
    match asks(task) {
        true => "what these clients asked over sockets",
        false => "the requests that these servers answered over sockets",
    }
}

/// A candidate as something to try; `pairs` is the position of the task of all functions.
fn trial(pass: &KernelPass, pairs: usize, task: Derived, why: String) -> Option<Trial> {
    let name = task.to_string();
    // Functions are marked already, all under one task; each gets the name of its own.
    let task = if let Derived::Named(function) = &task {
        let meant = pass.functions.get(pairs)?.matching(function);
        let all = pass.tasks.get(pairs).filter(|t| t.pairing == Pairing::Function)?;
        TrialTask::Marked(pairs, PairingRule { called: Some(meant), ..PairingRule::of(all) })
    } else {
        TrialTask::Unmarked(task)
    };
    Some(Trial { task, why: Some(why), name })
}

/// Make the model of one candidate, and see whether it answers.
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

/// A model that says why its task was chosen.
fn with_choice(mut model: Model, at: usize, trials: &[Trial]) -> Model {
    let profile = model.executions.len() < ENOUGH;
    let chosen = &trials[at];
    let name = chosen.name.clone();
    if let Some(task) = Arc::make_mut(&mut model.tasks).get_mut(model.task)
        && *task != name
    {
        // A function goes by the name of its own, not by that of all.
        *task = name;
    }
    // Tasks of the program's own events have too few executions, or one of them had been chosen.
    let others =
        trials.iter().filter(|t| t.why.is_some() && t.name != chosen.name).map(|t| t.name.clone()).take(2).collect();
    let why = chosen.why.clone().unwrap_or_else(|| "what its own events delimit".to_owned());
    model.choice = Some(TaskChoice { why, others, profile, by_trace: false });
    model
}
