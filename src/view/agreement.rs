//! Whether patterns and comparison blame the same, and where they do not, why.
//!
//! Both are right about different questions: the comparison tells what sets the slow executions apart in the mean, patterns tell
//! which single delays cost most. In: a comparison with its model, and the sources found. Out: both in one sentence each, and why
//! they differ where they do.

use super::anomalies::Words;
use super::clean;
use crate::base::figure;
use crate::compare::{Basis, Cause, Comparison};
use crate::model::Model;
use crate::model::pattern::Anomalies;
use crate::model::sources::Source;
use serde::Serialize;
use std::collections::BTreeSet;

/// What a comparison of the same executions says beside the sources.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// The comparison's verdict.
    pub sentence: String,
    /// Its verdict is sure.
    pub confident: bool,
    /// Why the first source is another culprit; `None` where they agree, or one of them names none.
    pub disagreement: Option<String>,
}

/// Both side by side.
pub fn agreement(model: &Model, comparison: &Comparison, found: &Anomalies) -> Agreement {
    Agreement {
        sentence: clean::line(&comparison.verdict.sentence),
        confident: comparison.verdict.confident,
        disagreement: disagreement(model, comparison, found).map(|why| clean::line(&why)),
    }
}

/// Why the first source is not what the comparison names; `None` where it is, or where one of them names nothing.
fn disagreement(model: &Model, comparison: &Comparison, found: &Anomalies) -> Option<String> {
    let top = found.sources.first().filter(|s| !s.idle && s.affected_ns > 0)?;
    let cause = comparison.causes.first().filter(|c| c.rank.is_some() && comparison.verdict.basis == Basis::Cause)?;
    let task = model.tasks.get(model.task);
    if let Some((of, _)) = found.examined.executions.as_ref().filter(|(of, _)| Some(of) != task) {
        return Some(format!("Other executions: these are delays of {}.", clean::text(of)));
    }
    if same(cause, top) {
        return None;
    }
    let who = Words::of(top).who;
    let why = match delayed(comparison, top) {
        None => format!("{who} delayed none of the executions compared: it lies at another time, or another thread"),
        Some((inside, all)) if inside * 2 < all => {
            format!("other executions: of the {all} that {who} delayed {inside} are in the slow group")
        }
        Some((inside, all)) => {
            let each = figure::time(top.affected_ns as f64 / all.max(1) as f64);
            let mean = figure::time(cause.extra_ns as f64);
            format!(
                "{who} delayed {inside} slow executions by {each} each; the comparison's cause costs the slow group {mean} in the mean"
            )
        }
    };
    let row = found.sources.iter().position(|s| same(cause, s)).filter(|row| *row > 0);
    let row = row.map_or_else(String::new, |row| format!(" The comparison's culprit is source {} here.", row + 1));
    Some(format!("They name different culprits: {why}.{row}"))
}

/// How many executions a source delayed, those in the slow group first; `None` where it delayed none.
fn delayed(comparison: &Comparison, source: &Source) -> Option<(usize, usize)> {
    let all: BTreeSet<u32> = source.occurrences.iter().flat_map(|o| &o.executions).copied().collect();
    let slow = comparison.slow.members.iter().filter(|id| all.contains(&id.0)).count();
    (!all.is_empty()).then_some((slow, all.len()))
}

/// A cause and a source name the same thread, or the same function.
fn same(cause: &Cause, source: &Source) -> bool {
    let by = &cause.by;
    let thread = [&by.thread, &by.process].into_iter().flatten().any(|name| *name == source.name);
    let function = source.function.as_ref();
    let in_path = function.is_some_and(|f| by.function.as_ref() == Some(f) || cause.path.contains(f));
    // A thread that is held up by others is not what holds it up.
    in_path || thread && (function.is_none() || by.function.is_none() || source.victim.is_some())
}
