//! Why the first cause is no answer: everything that must hold before a verdict is confident.
//!
//! In: the evidence. Out: nothing, or the first doubt in words that finish "Nothing stands out, because ...". The tests in
//! order: size (half of the extra time, and not far more than all of it), chance (corrected p-value), a smallest effect, that it
//! touches an execution at all, the A/A control, the control of tails, and how far the recording can be believed.
//! ALGORITHMS.md 7.6 and 7.7.

use super::chance::{control, flips};
use super::verdict::Evidence;
use super::words::time_words;
use super::{Cause, by_duration, tail, windows};
use crate::model::context::Spent;
use crate::model::execution::ExecutionId;
use crate::model::metric::Metric;

/// Largest corrected p-value of a difference that counts.
pub(super) const SIGNIFICANT: f64 = 0.05;
/// Random splits of the control, and those that may reach what was observed.
pub(super) const ROUNDS: usize = 300;
pub(super) const MAY_REACH: usize = 3;
/// Part of the extra time above which what a cause has more and others less are both larger than the difference itself.
const MOST_SHARE: f64 = 1.5;
/// Least difference, as a part of the fast mean, and in ns: below, clocks and tracing decide.
const LEAST_SHARE: f64 = 0.02;
const LEAST_NS: f64 = 1e3;

/// Why the first cause is no answer; `None` when it is one.
pub(super) fn doubt(e: &Evidence<'_>, cause: &Cause) -> Option<String> {
    let said = |text: &str| Some(text.to_owned());
    if cause.extra_ns.saturating_mul(2) < e.extra_ns {
        return said("no single cause explains half of the extra time");
    }
    if cause.share > MOST_SHARE {
        return said("what the slow executions do more and what they do less are both larger than the difference");
    }
    if cause.p_value.is_none_or(|p| p >= SIGNIFICANT) {
        return said("the executions are too few or too uneven to tell the largest difference from chance");
    }
    if (e.extra_ns as f64) < LEAST_NS.max(LEAST_SHARE * e.fast.mean_ns as f64) {
        return said("the difference is too small to matter");
    }
    if (cause.extra_ns as f64) < noise(e, cause) {
        return said("it is no more than what the scheduler and interrupts cost the fast executions as well");
    }
    if (cause.slow_affected * e.slow.members.len() as f64).round() < 1.0 {
        return said("no slow execution has clearly more of the largest difference than fast ones have");
    }
    let lists = &e.ranked.values;
    let reached = control(lists, e.slow.members.len(), e.fast.members.len(), ROUNDS);
    let as_large = |reached: &[f64]| reached.iter().filter(|r| **r >= cause.extra_ns as f64).count();
    if as_large(&reached) > MAY_REACH {
        return said("random halves of the same executions differ as much");
    }
    if by_duration(e.slow, e.fast) {
        if tail::is_usual(e.groups, e.ranked) {
            return said("the slow executions do what all do, only more of it, as any tail of such executions");
        }
    } else if let Some(reached) = flips(lists, &in_time(e), e.slow.members.len(), ROUNDS)
        && as_large(&reached) > MAY_REACH
    {
        return said("stretches of time differ as much within the groups: neighbouring executions are alike");
    }
    if windows::differ_elsewhere(e.groups, (e.slow, e.fast), e.ranked, cause.extra_ns as f64) {
        return said("other stretches of this recording differ as much");
    }
    unbelieved(e, cause)
}

/// The members of both groups, slow ones first, by position in the order of their starts.
fn in_time(e: &Evidence<'_>) -> Vec<u32> {
    let starts = &e.groups.model.executions.start;
    let members: Vec<ExecutionId> = e.groups.members().map(|(_, id)| id).collect();
    let mut order: Vec<u32> = (0..members.len() as u32).collect();
    order.sort_by_key(|at| members.get(*at as usize).map(|id| (starts.get(id.index()).copied(), *id)));
    order
}

/// What waiting for a CPU and interrupts cost a fast execution on average: less than that is the machine's noise.
fn noise(e: &Evidence<'_>, cause: &Cause) -> f64 {
    match cause.kind {
        Some(kind @ (Spent::Preempted | Spent::Interrupted)) => fast_mean(e, &Metric::Spent(kind)),
        _ => 0.0,
    }
}

fn fast_mean(e: &Evidence<'_>, metric: &Metric) -> f64 {
    group_mean(e, metric, &e.fast.members)
}

fn group_mean(e: &Evidence<'_>, metric: &Metric, members: &[ExecutionId]) -> f64 {
    let Some(column) = e.groups.model.executions.column(metric) else { return 0.0 };
    let sum: f64 = members.iter().filter_map(|id| column.values.get(id.index())).map(|v| (*v).max(0) as f64).sum();
    sum / members.len().max(1) as f64
}

/// What is not known of the slow executions could be another cause, or the recording contradicts itself.
fn unbelieved(e: &Evidence<'_>, cause: &Cause) -> Option<String> {
    let quality = &e.groups.model.quality;
    let (switches, contradictions) = quality
        .iter()
        .fold((0, 0), |(s, c), q| (s + q.quality.switches, c + q.quality.contradictions + q.quality.gaps));
    if switches > 0 && contradictions * 2 >= switches {
        return Some(format!(
            "at {contradictions} of {switches} switches the recording contradicts itself on who ran, so that no path can be believed"
        ));
    }
    if matches!(cause.kind, Some(Spent::UnknownState)) {
        return None;
    }
    let metric = Metric::Spent(Spent::UnknownState);
    let unknown = group_mean(e, &metric, &e.slow.members) - fast_mean(e, &metric);
    (unknown * 2.0 > cause.extra_ns as f64).then(|| {
        let (unknown, whole) = (time_words(unknown), time_words(e.extra_ns as f64));
        format!("of {unknown} of the {whole} extra nobody knows whether the thread ran or waited")
    })
}
