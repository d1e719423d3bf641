//! Executions that a reader can look up in the trace and in logs: the slowest ones, and a typical fast one.

use crate::base::figure;
use crate::base::time::Timestamp;
use crate::compare::Comparison;
use crate::compare::members::typical;
use crate::model::Model;
use crate::model::execution::ExecutionId;
use crate::view::executions::type_and_longest_wait;

/// An execution to look up.
#[derive(Clone, Debug)]
pub(super) struct Example {
    /// `slow` or `fast`.
    pub group: &'static str,
    /// Its number, for `diff --executions`.
    pub number: u32,
    /// Its type; empty where it has none.
    pub kind: String,
    /// What it waited for most.
    pub longest_wait: String,
    /// Start, since the recording began.
    pub start: String,
    /// Start as the time of day, if the clock counts from 1970.
    pub time_of_day: Option<String>,
    pub duration: String,
    /// Thread and process with their ids.
    pub thread: String,
}

/// So many of the slow group, the slowest first. Samples of a profile are none: they have no durations.
fn slowest(model: &Model, comparison: &Comparison, most: usize) -> Vec<ExecutionId> {
    if model.profile.is_some() {
        return Vec::new();
    }
    let mut slow = comparison.slow.members.clone();
    let by_duration = |id: &ExecutionId| (std::cmp::Reverse(model.executions.duration(id.index())), *id);
    if most > 0 && most < slow.len() {
        slow.select_nth_unstable_by_key(most - 1, by_duration);
    }
    slow.truncate(most);
    slow.sort_by_key(by_duration);
    slow
}

/// The slowest execution, then a typical fast one of its type: those that a page draws.
pub(super) fn drawn(model: &Model, comparison: &Comparison) -> Vec<(&'static str, ExecutionId)> {
    let Some(worst) = slowest(model, comparison, 1).first().copied() else { return Vec::new() };
    let fast = typical(model, &comparison.fast.members, worst).map(|id| ("fast", id));
    [("slow", worst)].into_iter().chain(fast).collect()
}

/// So many of the slow group, the slowest first, and a typical one of the fast group.
pub(super) fn examples(model: &Model, comparison: &Comparison, most: usize) -> Vec<Example> {
    let slowest = slowest(model, comparison, most);
    let fast = slowest.first().and_then(|worst| typical(model, &comparison.fast.members, *worst));
    let slow = slowest.iter().map(|id| example(model, "slow", *id));
    slow.chain(fast.map(|id| example(model, "fast", id))).collect()
}

fn example(model: &Model, group: &'static str, id: ExecutionId) -> Example {
    let (executions, at) = (&model.executions, id.index());
    let start = executions.start.get(at).unwrap_or_default();
    let thread = executions.who.get(at).and_then(|who| model.who.get(who.index())).map_or_else(String::new, |who| {
        let (thread, process) = (model.names.get(who.thread), model.names.get(who.process));
        format!("{thread} (tid {}) of {process} (pid {})", who.tid, who.pid)
    });
    let (kind, longest_wait) = type_and_longest_wait(model, id);
    Example {
        group,
        kind,
        longest_wait,
        number: id.raw(),
        start: figure::stamp(start.since(model.origin)),
        time_of_day: figure::time_of_day(start.since(Timestamp::ZERO)),
        duration: figure::time(executions.duration(at) as f64),
        thread,
    }
}
