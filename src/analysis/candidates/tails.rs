//! The executions of tasks that could be asked about, and how much their slowest take beyond the usual.
//!
//! In: spans of executions by program and task. Out: a [`Candidate`] of each, the one with most extra time first. Cost:
//! sorting the durations.

use super::programs::{Programs, Rank};
use crate::base::statistics::nearest_rank;
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

/// The slowest twentieth of some durations.
pub(super) struct Tail {
    /// The time that they take beyond the median.
    pub excess: Ns,
    pub count: usize,
    /// The median of all durations.
    pub median: Ns,
    /// The shortest of the slowest twentieth.
    least: Ns,
}

impl Tail {
    /// Sorts the durations.
    pub fn of(durations: &mut [Ns]) -> Tail {
        durations.sort_unstable();
        let median = nearest_rank(durations, 50.0).unwrap_or(0);
        let slow = &durations[durations.len() - durations.len().div_ceil(20)..];
        let excess = slow.iter().fold(0, |sum: Ns, d| sum.saturating_add(d - median));
        Tail { excess, count: slow.len(), median, least: slow.first().copied().unwrap_or(0) }
    }
}

/// Spans of executions by program, a position, and task.
pub(super) type TaskSpans = BTreeMap<(usize, Derived), Vec<Span>>;

/// The candidates of one kind, by program; those with most extra time first. The name of a task that several programs
/// have says whose it is.
pub(super) fn ranked(
    programs: &Programs,
    whole: Span,
    kind: ExecutionKind,
    tasks: TaskSpans,
) -> BTreeMap<usize, Vec<Candidate>> {
    let mut all: BTreeMap<usize, Vec<Candidate>> = BTreeMap::new();
    let mut owners: BTreeMap<Derived, usize> = BTreeMap::new();
    tasks.keys().for_each(|(_, task)| *owners.entry(task.clone()).or_default() += 1);
    for ((at, task), spans) in tasks {
        let Some(program) = programs.all.get(at) else { continue };
        let is_shared = owners.get(&task).is_some_and(|owners| *owners > 1) && !program.name.is_empty();
        let is_recorded = program.rank >= Rank::Command;
        let about = program_task(&program.name, is_recorded, kind, task.to_string(), (whole, &spans));
        let mut candidate = Candidate { task, is_shared, about };
        candidate.about.task = candidate.definition(None).name;
        all.entry(at).or_default().push(candidate);
    }
    for candidates in all.values_mut() {
        candidates.sort_by(|a, b| b.about.tail_ns.cmp(&a.about.tail_ns).then_with(|| a.task.cmp(&b.task)));
    }
    all
}

/// A task of a program with the spans of its executions, in a recording over `whole`.
pub fn program_task(
    program: &str,
    is_recorded: bool,
    kind: ExecutionKind,
    task: String,
    (whole, spans): (Span, &[Span]),
) -> ProgramTask {
    let mut durations: Vec<Ns> = spans.iter().map(|span| span.len()).collect();
    let tail = Tail::of(&mut durations);
    let mut over_time = [0; CELLS];
    for span in spans.iter().filter(|span| span.len() >= tail.least) {
        let cell = &mut over_time[cell(whole, span)];
        *cell = Ns::saturating_add(*cell, span.len() - tail.median);
    }
    ProgramTask {
        program: program.to_owned(),
        kind,
        task,
        executions: durations.len(),
        p50_ns: tail.median,
        p99_ns: nearest_rank(&durations, 99.0).unwrap_or(0),
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

    #[test]
    fn tail_is_the_slowest_twentieth() {
        let mut durations: Vec<Ns> = (1..=40).rev().collect();
        let tail = Tail::of(&mut durations);
        assert_eq!((tail.excess, tail.count, tail.median, tail.least), (19 + 20, 2, 20, 39));
    }
}
