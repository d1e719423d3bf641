//! Do pattern analysis and comparison name the same culprit, and if not, why?
//!
//! Both can be right, because they answer different questions: the comparison explains the mean difference between slow
//! and fast executions, pattern analysis finds the single delays that cost most. In: a comparison with its model, and
//! the root causes found. Out: one sentence each, and the reason where they differ.

use super::anomalies::Words;
use crate::base::{clean, figure};
use crate::compare::{Basis, Cause, Comparison};
use crate::model::Model;
use crate::model::anomalies::Anomalies;
use crate::model::root_cause::RootCause;
use serde::Serialize;
use std::collections::BTreeSet;

/// The result of a comparison of the same executions, beside the root causes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// The comparison's verdict.
    pub sentence: String,
    /// The verdict is confident.
    pub confident: bool,
    /// Why the first root cause is another culprit; `None` where they agree, or one of them names none.
    pub disagreement: Option<String>,
}

/// Both results side by side.
pub fn agreement(model: &Model, comparison: &Comparison, found: &Anomalies) -> Agreement {
    Agreement {
        sentence: clean::line(&comparison.verdict.sentence),
        confident: comparison.verdict.confident,
        disagreement: disagreement(model, comparison, found).map(|why| clean::line(&why)),
    }
}

/// Why the first root cause differs from the comparison's; `None` if it does not, or if one of them names nothing.
fn disagreement(model: &Model, comparison: &Comparison, found: &Anomalies) -> Option<String> {
    let top = found.sources.first().filter(|s| !s.idle && s.affected_ns > 0)?;
    let cause = comparison.causes.first().filter(|c| c.rank.is_some() && comparison.verdict.basis == Basis::Cause)?;
    let task = model.tasks.get(model.task);
    if let Some(other) = found.examined.executions.as_ref().filter(|e| Some(&e.task) != task) {
        return Some(format!("Different executions: pattern analysis shows delays of {}.", clean::text(&other.task)));
    }
    if same(cause, top) {
        return None;
    }
    let who = Words::of(top).who;
    let why = match delayed(comparison, top) {
        None => format!("{who} delayed none of the compared executions; it acted at another time or on another thread"),
        Some(DelayedExecutions { slow: inside, all }) if inside * 2 < all => {
            format!("{who} delayed {all} executions, of which {inside} are in the slow group")
        }
        Some(DelayedExecutions { slow: inside, all }) => {
            let each = figure::time(top.affected_ns as f64 / all.max(1) as f64);
            let mean = figure::time(cause.extra_ns as f64);
            format!(
                "{who} delayed {inside} slow executions by {each} each; the comparison's cause costs the slow group \
                 {mean} on average"
            )
        }
    };
    let row = found.sources.iter().position(|s| same(cause, s)).filter(|row| *row > 0);
    let row = row.map_or_else(String::new, |row| format!(" The comparison's culprit is root cause {} here.", row + 1));
    Some(format!("They name different culprits: {why}.{row}"))
}

/// How many executions a root cause delayed.
struct DelayedExecutions {
    /// Of the slow group.
    slow: usize,
    all: usize,
}

/// The executions that a root cause delayed; `None` if it delayed none.
fn delayed(comparison: &Comparison, source: &RootCause) -> Option<DelayedExecutions> {
    let all: BTreeSet<u32> = source.occurrences.iter().flat_map(|o| &o.executions).copied().collect();
    let slow = comparison.slow.members.iter().filter(|id| all.contains(&id.raw())).count();
    (!all.is_empty()).then_some(DelayedExecutions { slow, all: all.len() })
}

/// True if a cause of the comparison and a root cause name the same thread or function.
fn same(cause: &Cause, source: &RootCause) -> bool {
    let by = &cause.by;
    let thread = [&by.thread, &by.process].into_iter().flatten().any(|name| *name == source.name);
    let function = source.function.as_ref();
    let in_path = function.is_some_and(|f| by.function.as_ref() == Some(f) || cause.path.contains(f));
    // A thread that was delayed by others is not the culprit.
    in_path || thread && (function.is_none() || by.function.is_none() || source.victim.is_some())
}
