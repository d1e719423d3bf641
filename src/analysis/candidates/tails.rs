//! The executions of tasks that could be asked about, and how much their slowest take beyond the usual.
//!
//! In: spans of executions by program and task. Out: a [`Candidate`] of each, the one with most extra time first. Cost:
//! some walks over the spans, which may be in the temporary file.

use super::programs::{Programs, Rank};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::parallel::in_order;
use crate::base::span_list::{SpanList, SpanRoom};
use crate::base::statistics::nearest_rank_of;
use crate::base::time::{Ns, Span};
use crate::event::derived::Derived;
use crate::event::task::TaskDefinition;
use crate::model::choice::{CELLS, ExecutionKind, ProgramTask};
use std::collections::BTreeMap;

/// A task that the user did not name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// How it is delimited; a function by its name.
    pub task: Derived,
    /// Other programs have this task, too.
    pub is_shared: bool,
    /// What is known of its executions.
    pub about: ProgramTask,
}

impl Candidate {
    /// Its definition; of the processes of the program alone where others have it, too. `within`: of these processes
    /// alone, by name or pid.
    pub fn definition(&self, within: Option<&str>) -> TaskDefinition {
        let mut task = self.task.clone();
        if let (Derived::Exchanges(conversations), Some(within)) = (&mut task, within) {
            conversations.process = within.to_owned();
            return TaskDefinition::derived(task.to_string(), task);
        }
        let definition = TaskDefinition::derived(task.to_string(), task);
        match within.or(self.is_shared.then_some(&self.about.program)) {
            Some(process) => definition.of_process(process),
            None => definition,
        }
    }
}

/// The slowest twentieth of some executions.
pub(super) struct Tail {
    /// The time that they take beyond the median.
    pub excess: Ns,
    pub count: usize,
    /// The median of all durations.
    pub median: Ns,
    /// 99 of a hundred take at most this.
    p99: Ns,
    /// The shortest of the slowest twentieth.
    least: Ns,
}

impl Tail {
    /// Of these executions.
    pub fn of(spans: &SpanList) -> Tail {
        let all = spans.len();
        let count = all.div_ceil(20);
        let [median, p99, least] =
            spans.lengths_at([nearest_rank_of(all, 50.0), nearest_rank_of(all, 99.0), all - count]);
        let slower = spans.all().map(Span::len).filter(|ns| *ns > least);
        let (slower, excess) =
            slower.fold((0, 0), |(n, sum): (usize, Ns), ns| (n + 1, sum.saturating_add(ns - median)));
        // Of those that take as long as the shortest of them some may be left out.
        let equal = count.saturating_sub(slower) as Ns;
        let excess = excess.saturating_add(equal.saturating_mul(least - median));
        Tail { excess, count, median, p99, least }
    }
}

/// Spans of executions by program, a position, and task.
pub(super) struct TaskSpans {
    tasks: BTreeMap<(usize, Derived), SpanList>,
    room: SpanRoom,
}

impl TaskSpans {
    /// None so far.
    pub fn new(room: &SpanRoom) -> TaskSpans {
        TaskSpans { tasks: BTreeMap::new(), room: room.clone() }
    }

    /// The executions of a task of a program.
    pub fn of(&mut self, program: usize, task: Derived) -> &mut SpanList {
        self.tasks.entry((program, task)).or_insert_with(|| SpanList::new(&self.room))
    }

    /// Without the tasks of another kind.
    pub fn without(&mut self, others: &TaskSpans) {
        self.tasks.retain(|task, _| !others.tasks.contains_key(task));
    }
}

/// The candidates of one kind, by program; those with most extra time first. The name of a task that several programs
/// have says whose it is.
pub(super) fn ranked(
    programs: &Programs,
    whole: Span,
    kind: ExecutionKind,
    tasks: TaskSpans,
    ctx: &Ctx,
) -> Result<BTreeMap<usize, Vec<Candidate>>, Cancelled> {
    let mut all: BTreeMap<usize, Vec<Candidate>> = BTreeMap::new();
    let mut owners: BTreeMap<Derived, usize> = BTreeMap::new();
    tasks.tasks.keys().for_each(|(_, task)| *owners.entry(task.clone()).or_default() += 1);
    let tasks: Vec<((usize, Derived), SpanList)> = tasks.tasks.into_iter().collect();
    let candidate = |i: usize| {
        let ((at, task), spans) = &tasks[i];
        let program = programs.all.get(*at)?;
        let is_shared = owners.get(task).is_some_and(|owners| *owners > 1) && !program.name.is_empty();
        let is_recorded = program.rank >= Rank::Command;
        let about = program_task(&program.name, is_recorded, kind, task.to_string(), (whole, spans));
        let mut candidate = Candidate { task: task.clone(), is_shared, about };
        candidate.about.task = candidate.definition(None).name;
        Some((*at, candidate))
    };
    in_order(ctx, tasks.len(), candidate, |_, found| {
        found.into_iter().for_each(|(at, candidate)| all.entry(at).or_default().push(candidate));
    })?;
    for candidates in all.values_mut() {
        candidates.sort_by(|a, b| b.about.tail_ns.cmp(&a.about.tail_ns).then_with(|| a.task.cmp(&b.task)));
    }
    Ok(all)
}

/// A task of a program with the spans of its executions, in a recording over `whole`.
pub fn program_task(
    program: &str,
    is_recorded: bool,
    kind: ExecutionKind,
    task: String,
    (whole, spans): (Span, &SpanList),
) -> ProgramTask {
    let tail = Tail::of(spans);
    let mut over_time = [0; CELLS];
    for span in spans.all().filter(|span| span.len() >= tail.least) {
        let cell = &mut over_time[cell(whole, &span)];
        *cell = Ns::saturating_add(*cell, span.len() - tail.median);
    }
    ProgramTask {
        program: program.to_owned(),
        kind,
        task,
        executions: spans.len(),
        p50_ns: tail.median,
        p99_ns: tail.p99,
        tail_ns: tail.excess,
        over_time,
        is_recorded,
    }
}

/// The cell of a recording in which an execution began.
fn cell(whole: Span, span: &Span) -> usize {
    let since = i128::from(span.start.since(whole.start).max(0));
    let cell = since * CELLS as i128 / i128::from(whole.len().max(1));
    (cell as usize).min(CELLS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cell_is_the_part_of_the_recording() {
        let whole = Span::of_ns(100, 220);
        let cells = [(100, 0), (109, 0), (110, 1), (219, 11), (220, 11), (90, 0), (i64::MAX - 1, 11)];
        for (start, wanted) in cells {
            assert_eq!(cell(whole, &Span::of_ns(start, start + 1)), wanted, "{start}");
        }
    }

    fn tail(durations: impl Iterator<Item = Ns>) -> (Ns, usize, Ns, Ns, Ns) {
        let mut spans = SpanList::new(&SpanRoom::of(&Ctx::new(1)));
        durations.for_each(|ns| spans.push(Span::of_ns(5, 5 + ns)));
        let tail = Tail::of(&spans);
        (tail.excess, tail.count, tail.median, tail.p99, tail.least)
    }

    #[test]
    fn tail_is_the_slowest_twentieth() {
        assert_eq!(tail((1..=40).rev()), (19 + 20, 2, 20, 40, 39));
        // Three of forty take as long as the shortest of the two slowest.
        assert_eq!(tail((1..=37).chain([50, 50, 50])), (30 + 30, 2, 20, 50, 50));
        assert_eq!(tail([].into_iter()), (0, 0, 0, 0, 0));
    }
}
