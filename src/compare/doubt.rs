//! Why the first cause is no answer: everything that must hold before a verdict is confident.
//!
//! In: the evidence. Out: nothing, or the first doubt in words that finish "Nothing stands out, because ...". The tests in
//! order: size (half of the extra time, and not far more than all of it), chance (corrected p-value), a smallest effect, that it
//! touches an execution at all, the A/A control, the control of tails, and how far the recording can be believed.
//! ALGORITHMS.md 7.6 and 7.7.

use super::chance::{control, flips};
use super::verdict::Evidence;
use super::{Cause, by_duration, interrupts, tail, windows};
use crate::base::figure;
use crate::model::context::ContextId;
use crate::model::execution::ExecutionId;
use crate::model::facts::Quality;
use crate::model::metric::{ABSENT, Metric};
use crate::model::wait_kind::WaitKind;

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
    if let Some(paused) = paused(e, cause) {
        return Some(paused);
    }
    if by_duration(e.slow, e.fast) {
        // Of time of which nothing is known nobody can say of what it is more.
        if !is_place(cause) && tail::is_usual(e.groups, e.ranked) {
            return said("the slow executions do what all do, only more of it, as any tail of such executions");
        }
    } else if let Some(reached) = flips(lists, &in_time(e), e.slow.members.len(), ROUNDS)
        && as_large(&reached) > MAY_REACH
    {
        return said("stretches of time differ as much within the groups: neighbouring executions are alike");
    }
    let time = |i: usize| tail::time_in(e.groups.model, i, &e.ranked.first);
    if windows::differ_elsewhere(e.groups, (e.slow, e.fast), time, cause.extra_ns as f64) {
        return said("other stretches of this recording differ as much");
    }
    if let Some(error) = off(e, cause) {
        return Some(error);
    }
    interrupts::unseen(e, cause).or_else(|| unbelieved(e, cause))
}

/// The executions' bounds are user-space events on a clock that may be off: what stands before an execution, or behind, may have been
/// taken for a part of it. The first cause may have gained as much as the clock is off, another one may have lost it.
fn off(e: &Evidence<'_>, cause: &Cause) -> Option<String> {
    let error = e.groups.model.quality.iter().map(|host| host.quality.clock_error).max().unwrap_or(0);
    (error > 0 && lead(e, cause).unsigned_abs() <= error.saturating_mul(2)).then(|| {
        let told = match i64::try_from(error) {
            Ok(i64::MAX) | Err(_) => "is on no known place of the kernel's".to_owned(),
            Ok(error) => format!("may be off the kernel's by {}", figure::time(error as f64)),
        };
        format!("the clock of the user-space events {told}, and so may the bounds of the executions")
    })
}

/// Its place is known, and no more.
pub(super) fn is_place(cause: &Cause) -> bool {
    matches!(cause.kind, Some(WaitKind::UnknownWait | WaitKind::UnknownState))
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
        Some(kind @ (WaitKind::Preempted | WaitKind::Interrupted)) => fast_mean(e, &Metric::Time(kind)),
        _ => 0.0,
    }
}

fn fast_mean(e: &Evidence<'_>, metric: &Metric) -> f64 {
    group_mean(e, metric, &e.fast.members)
}

fn group_mean(e: &Evidence<'_>, metric: &Metric, members: &[ExecutionId]) -> f64 {
    let Some(column) = e.groups.model.executions.column(metric) else { return 0.0 };
    let sum: f64 = members
        .iter()
        .filter_map(|id| column.values.get(id.index()))
        .filter(|v| **v != ABSENT)
        .map(|v| (*v).max(0) as f64)
        .sum();
    sum / members.len().max(1) as f64
}

/// All threads of the machine stood still in most of what the first cause adds.
fn paused(e: &Evidence<'_>, cause: &Cause) -> Option<String> {
    let paused = group_mean(e, &Metric::Paused, &e.slow.members) - fast_mean(e, &Metric::Paused);
    (paused * 2.0 > cause.extra_ns as f64).then(|| {
        let (paused, whole) = (figure::time(paused), figure::time(e.extra_ns as f64));
        format!("for {paused} of the {whole} extra all threads of the machine stood still at once: it was paused, or its CPUs were taken away")
    })
}

/// What is not known of the slow executions could have put another cause first: time of which nobody knows whether the thread ran
/// or what it waited for, and of the rest as much as the recording contradicts itself.
fn unbelieved(e: &Evidence<'_>, cause: &Cause) -> Option<String> {
    let quality = &e.groups.model.quality;
    let count = |of: fn(&Quality) -> u64| quality.iter().map(|host| of(&host.quality)).sum::<u64>();
    let (switches, contradictions) = (count(|q| q.switches), count(|q| q.contradictions));
    let astray = contradictions + count(|q| q.gaps);
    if switches > 0 && astray * 2 >= switches {
        return Some(format!(
            "at {astray} of {switches} switches the recording contradicts itself on who ran, so that no path can be believed"
        ));
    }
    if is_place(cause) {
        return None;
    }
    // Gaps have left unknown time already.
    let unknown = unknown(e);
    let wrong = (e.slow.mean_ns as f64 - unknown) * contradictions as f64 / switches.max(1) as f64;
    let lead = lead(e, cause) as f64;
    (unknown + wrong >= lead).then(|| {
        let (mean, lead) = (figure::time(e.slow.mean_ns as f64), figure::time(lead));
        let what = match wrong > unknown {
            true => format!("at {contradictions} of {switches} switches the recording contradicts itself on who ran"),
            false => format!(
                "of {} of a slow execution's {mean} nobody knows whether the thread ran or what it waited for",
                figure::time(unknown)
            ),
        };
        format!("{what}, and the largest difference leads by {lead} only")
    })
}

/// How much more of the extra time the first cause has than the next one of a known kind.
fn lead(e: &Evidence<'_>, cause: &Cause) -> i64 {
    let known = |c: &&Cause| c.kind.is_some_and(|k| !matches!(k, WaitKind::UnknownWait | WaitKind::UnknownState));
    let next = e.ranked.causes.iter().skip(1).filter(known).map(|c| c.extra_ns).max().unwrap_or(0).max(0);
    cause.extra_ns.saturating_sub(next)
}

/// Mean time of a slow execution of which the recording does not say what it was.
fn unknown(e: &Evidence<'_>) -> f64 {
    let model = e.groups.model;
    let unknown =
        |context: ContextId| matches!(model.contexts.spent(context), WaitKind::UnknownWait | WaitKind::UnknownState);
    let of =
        |id: &ExecutionId| model.executions.own.row(id.index()).filter(|(c, _)| unknown(*c)).map(|(_, ns)| ns as f64);
    e.slow.members.iter().flat_map(of).sum::<f64>() / e.slow.members.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use crate::base::ctx::Ctx;
    use crate::compare::scenario::ModelBuilder;
    use crate::compare::{Comparison, ComparisonRequest, compare};
    use crate::model::Model;
    use crate::model::facts::{HostQuality, Quality};
    use crate::model::metric::{Column, Metric};

    /// 400 executions; one in 20 sleeps `trouble` ms more, and is `dark` ms in a state that nobody knows.
    fn model(trouble: u64, dark: u64) -> Model {
        let mut s = ModelBuilder::new(7);
        for i in 0..400 {
            let work = s.around(2.0);
            let (sleep, dark) = if i % 20 == 3 { (trouble * 1_000_000, dark * 1_000_000) } else { (0, 0) };
            let parts =
                [("p;main", work), ("p;main;retry;[nanosleep];{timer}", sleep), ("p;main;[poll];{unknown}", dark)];
            s.run("x", "p", "p", 1, &parts);
        }
        s.seal()
    }

    fn ask(model: &Model) -> Comparison {
        compare(model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap()
    }

    fn with_contradictions(mut model: Model, contradictions: u64) -> Model {
        let quality = Quality { switches: 1000, contradictions, ..Quality::default() };
        model.quality.push(HostQuality { host: "h".into(), quality });
        model
    }

    #[test]
    fn a_pause_of_the_whole_machine_is_nobodys_fault() {
        let mut model = model(40, 0);
        let paused = |ms: i64| (0..400).map(|i| if i % 20 == 3 { ms * 1_000_000 } else { 0 }).collect();
        model.executions.columns.push(Column { metric: Metric::Paused, values: paused(10) });
        assert!(ask(&model).verdict.confident);
        model.executions.columns.last_mut().unwrap().values = paused(30);
        let c = ask(&model);
        assert!(!c.verdict.confident && c.verdict.sentence.contains("stood still at once"), "{:?}", c.verdict);
        assert!(c.dimensions.iter().all(|d| d.name != "paused"));
    }

    #[test]
    fn what_is_not_known_counts_by_what_it_could_change() {
        assert!(ask(&model(40, 5)).verdict.confident);
        let c = ask(&model(40, 39));
        assert!(c.causes[0].kind == Some(crate::model::wait_kind::WaitKind::Timer), "{:?}", c.causes[0]);
        assert!(c.verdict.confident, "39 ms could not have made 40 ms the smaller one: {:?}", c.verdict);
        let c = ask(&with_contradictions(model(40, 35), 200));
        assert!(!c.verdict.confident && c.verdict.sentence.contains("nobody knows whether"), "{:?}", c.verdict);
    }

    #[test]
    fn bounds_on_a_clock_of_their_own_are_no_better_than_its_error() {
        let ask = |clock_error: u64| {
            let mut model = model(40, 0);
            let quality = Quality { switches: 1000, interrupts: 9, clock_error, ..Quality::default() };
            model.quality.push(HostQuality { host: "h".into(), quality });
            ask(&model).verdict
        };
        assert!(ask(0).confident && ask(1_000_000).confident);
        let verdict = ask(60_000_000);
        assert!(!verdict.confident && verdict.sentence.contains("may be off the kernel's by 60.0 ms"), "{verdict:?}");
        let verdict = ask(i64::MAX as u64);
        assert!(!verdict.confident && verdict.sentence.contains("on no known place"), "{verdict:?}");
    }

    #[test]
    fn contradictions_count_by_their_share_of_the_time() {
        assert!(ask(&with_contradictions(model(40, 0), 100)).verdict.confident);
        let c = ask(&with_contradictions(model(40, 0), 500));
        assert!(!c.verdict.confident && c.verdict.sentence.contains("500 of 1000 switches"), "{:?}", c.verdict);
        // Two causes of nearly one size: a tenth of the time decides.
        let mut s = ModelBuilder::new(8);
        for i in 0..400 {
            let slow = i % 20 == 3;
            let ns = |ms: u64| if slow { ms * 1_000_000 } else { 0 };
            let work = s.around(2.0);
            let parts = [
                ("p;main", work),
                ("p;main;retry;[nanosleep];{timer}", ns(22)),
                ("p;main;load;[pread64];{disk}", ns(19)),
            ];
            s.run("x", "p", "p", 1, &parts);
        }
        let model = s.seal();
        assert!(ask(&model).verdict.confident);
        let c = ask(&with_contradictions(model, 100));
        assert!(!c.verdict.confident && c.verdict.sentence.contains("leads by"), "{:?}", c.verdict);
    }
}
