//! Doubts about the first cause: everything that must hold before a verdict is confident.
//!
//! In: the evidence. Out: nothing, or the first doubt in words that follow "No clear cause: ". The tests in order: size
//! (half of the extra time, and not far more than all of it), chance (corrected p-value), a smallest effect, an
//! execution that the cause touches, the A/A control, the control of tails, and the quality of the recording.
//! ALGORITHMS.md 7.6 and 7.7.

use super::caveats::by_duration;
use super::chance::{Rounds, flips};
use super::dimension::SeparatingDimension;
use super::evidence::{Evidence, FEWEST_ALIKE};
use super::tail::CauseTimes;
use super::{Cause, tail, truth, windows};
use crate::base::figure;
use crate::model::context::ContextId;
use crate::model::execution::ExecutionId;
use crate::model::facts::Quality;
use crate::model::metric::{ABSENT, Metric};
use crate::model::wait_kind::WaitKind;
use std::collections::BTreeSet;

/// Largest corrected p-value of a difference that counts.
pub(super) const SIGNIFICANT: f64 = 0.05;
/// Random splits of the control, and the number of them that may reach the observed difference.
pub(super) const RANDOM_SPLITS: Rounds = Rounds { tried: 300, may_reach: 3 };
/// Share of the extra time above which the increases and the decreases are both larger than the difference itself.
const MOST_SHARE: f64 = 1.5;
/// Least difference, as a part of the fast mean, and in ns: below, clocks and tracing decide.
const LEAST_SHARE: f64 = 0.02;
const LEAST_NS: f64 = 1e3;

/// The first doubt about the first cause; `None` if it is the answer.
pub(super) fn doubt(e: &Evidence<'_>, cause: &Cause) -> Option<String> {
    let because = |text: &str| Some(text.to_owned());
    if cause.extra_ns.saturating_mul(2) < e.extra_ns {
        return because("no single cause explains half of the extra time");
    }
    if cause.share > MOST_SHARE {
        return because("the increases and the decreases in the slow executions are both larger than the difference");
    }
    if cause.p_value.is_none_or(|p| p >= SIGNIFICANT) {
        return because("the executions are too few or too uneven to rule out chance");
    }
    if (e.extra_ns as f64) < LEAST_NS.max(LEAST_SHARE * e.fast.mean_ns as f64) {
        return because("the difference is too small to matter");
    }
    if (cause.extra_ns as f64) < noise(e, cause) {
        return because("the scheduler and interrupts cost the fast executions as much");
    }
    if (cause.slow_affected * e.slow.count as f64).round() < 1.0 {
        return because("no slow execution has clearly more of the largest difference than the fast ones have");
    }
    let lists = &e.ranked.values;
    if e.splits.reach(lists, cause.extra_ns as f64) {
        return because("random halves of the same executions differ as much");
    }
    if let Some(paused) = paused(e, cause) {
        return Some(paused);
    }
    if let Some(incomparable) = incomparable(e) {
        return Some(incomparable);
    }
    if by_duration(e.slow, e.fast) {
        // A tail of unknown time says nothing about its parts.
        let prevailing = CauseTimes::new(e.groups.model, &e.ranked.prevailing);
        if !is_place(cause) && tail::is_usual(e.groups, &prevailing) {
            return because(
                "the slow executions do the same as all others, only more of it, as any tail of such executions does",
            );
        }
    } else if let Some(reached) = flips(lists, &in_time(e), e.slow.members.len(), RANDOM_SPLITS.tried)
        && reached.iter().filter(|r| **r >= cause.extra_ns as f64).count() > RANDOM_SPLITS.may_reach
    {
        return because("stretches of time differ as much within the groups: neighbouring executions are alike");
    }
    if windows::differ_elsewhere(e.groups, (e.slow, e.fast), |i| e.in_first.time(i), cause.extra_ns as f64) {
        return because("other stretches of this recording differ as much");
    }
    clock_error(e, cause).or_else(|| unreliable(e, cause)).or_else(|| truth::doubt(e, cause))
}

/// The executions' bounds are user-space events on a clock with an error: time before or after an execution may have
/// been taken for a part of it. The first cause may have gained as much as the error, and another one may have lost it.
fn clock_error(e: &Evidence<'_>, cause: &Cause) -> Option<String> {
    let error = e.groups.model.quality.iter().map(|host| host.quality.clock_error).max().unwrap_or(0);
    (error > 0 && lead(e, cause).unsigned_abs() <= error.saturating_mul(2)).then(|| match i64::try_from(error) {
        Ok(i64::MAX) | Err(_) => "the clock of the user-space events could not be aligned with the kernel's, so the \
             bounds of the executions are unknown"
            .to_owned(),
        Ok(error) => format!(
            "the clock of the user-space events may differ from the kernel's by {}, and so may the \
                 bounds of the executions",
            figure::time(error as f64)
        ),
    })
}

/// True if only the place of the cause is known.
pub(super) fn is_place(cause: &Cause) -> bool {
    matches!(cause.kind, Some(WaitKind::UnknownWait | WaitKind::UnknownState))
}

/// The members of both groups, slow ones first, by position in the order of their starts.
fn in_time(e: &Evidence<'_>) -> Vec<u32> {
    let starts = &e.groups.model.executions.start;
    let members: Vec<ExecutionId> = e.groups.members().map(|(_, id)| id).collect();
    let mut order: Vec<u32> = (0..members.len() as u32).collect();
    order.sort_by_key(|at| members.get(*at as usize).map(|id| (starts.get(id.index()), *id)));
    order
}

/// The time that waiting for a CPU or interrupts cost a fast execution on average: less than that is the machine's
/// noise.
fn noise(e: &Evidence<'_>, cause: &Cause) -> f64 {
    match cause.kind {
        Some(kind @ (WaitKind::Preempted | WaitKind::Interrupted | WaitKind::Stolen | WaitKind::Throttled)) => {
            fast_mean(e, &Metric::Time(kind))
        }
        _ => 0.0,
    }
}

fn fast_mean(e: &Evidence<'_>, metric: &Metric) -> f64 {
    group_mean(e, metric, &e.fast.members)
}

fn group_mean(e: &Evidence<'_>, metric: &Metric, members: &[ExecutionId]) -> f64 {
    let Some(column) = e.groups.model.executions.column(metric) else { return 0.0 };
    e.groups.mean(members, |i| column.values.get(i).filter(|v| *v != ABSENT).map_or(0.0, |v| v.max(0) as f64))
}

/// All threads of the machine were stopped during most of the time that the first cause adds.
fn paused(e: &Evidence<'_>, cause: &Cause) -> Option<String> {
    if cause.kind == Some(WaitKind::Stolen) {
        return None;
    }
    let paused = group_mean(e, &Metric::Paused, &e.slow.members) - fast_mean(e, &Metric::Paused);
    (paused * 2.0 > cause.extra_ns as f64).then(|| {
        let (paused, whole) = (figure::time(paused), figure::time(e.extra_ns as f64));
        format!(
            "for {paused} of the {whole} extra the machine was paused, or its CPUs were taken away: all threads were \
             stopped at once, the timer interrupts of a CPU did not come, or the steal time of /proc/stat grew"
        )
    })
}

/// The slow executions were chosen by duration, are few, and all that are of their kind: no fast one does the same
/// work, so that what they do beyond the fast ones is their work and may be no fault. A name that most executions have
/// for themselves is no kind.
fn incomparable(e: &Evidence<'_>) -> Option<String> {
    const KINDS: [&str; 4] = ["type", "role", "process", "thread"];
    const SHARED: usize = 4;
    let n = e.slow.members.len();
    if n >= FEWEST_ALIKE || !by_duration(e.slow, e.fast) {
        return None;
    }
    let own = |d: &&SeparatingDimension| {
        let class = e.slow.members.first().and_then(|x| d.classes.get(x.index()));
        let kinds: BTreeSet<i64> = d.classes.iter().collect();
        KINDS.contains(&d.dimension.name.as_str())
            && d.dimension.slow_share == 1.0
            && d.classes.iter().filter(|of| Some(*of) == class).count() == n
            && kinds.len() * SHARED <= d.classes.len()
    };
    let d = &e.dimensions.iter().find(own)?.dimension;
    let (who, are) = (figure::plural(n as u64, "execution"), if n == 1 { "is" } else { "are" });
    Some(format!(
        "only {who} {are} of {} {}, none of them fast: nothing does the same work in less time",
        d.name, d.value
    ))
}

/// The unknown time of the slow executions could have put another cause first: time in which the thread ran or waited
/// for something, which of the two is unknown, and of the rest the part in which the recording contradicts itself.
fn unreliable(e: &Evidence<'_>, cause: &Cause) -> Option<String> {
    let quality = &e.groups.model.quality;
    let count = |of: fn(&Quality) -> u64| quality.iter().map(|host| of(&host.quality)).sum::<u64>();
    let (switches, contradictions) = (count(|q| q.switches), count(|q| q.contradictions));
    let wrong_switches = contradictions + count(|q| q.gaps);
    if switches > 0 && wrong_switches * 2 >= switches {
        return Some(format!(
            "at {wrong_switches} of {switches} switches the recording contradicts itself about the running \
             thread, so that no critical path is reliable"
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
        let reason = if wrong > unknown {
            format!(
                "at {contradictions} of {switches} switches the recording contradicts itself about the running \
                 thread"
            )
        } else {
            format!(
                "for {} of a slow execution's {mean} the recording does not say whether the thread ran or \
                 what it waited for",
                figure::time(unknown)
            )
        };
        format!("{reason}, and the largest difference leads by only {lead}")
    })
}

/// Extra time of the first cause beyond the next one of a known kind.
fn lead(e: &Evidence<'_>, cause: &Cause) -> i64 {
    let known = |c: &&Cause| c.kind.is_some_and(|k| !matches!(k, WaitKind::UnknownWait | WaitKind::UnknownState));
    let next = e.ranked.causes.iter().skip(1).filter(known).map(|c| c.extra_ns).max().unwrap_or(0).max(0);
    cause.extra_ns.saturating_sub(next)
}

/// Mean time of a slow execution whose kind the recording does not show.
fn unknown(e: &Evidence<'_>) -> f64 {
    let model = e.groups.model;
    let unknown =
        |context: ContextId| matches!(model.contexts.spent(context), WaitKind::UnknownWait | WaitKind::UnknownState);
    let of = |i: usize| -> f64 {
        model.executions.own.row(i).filter(|time| unknown(time.context)).map(|time| time.ns as f64).sum()
    };
    e.groups.mean(&e.slow.members, of)
}

#[cfg(test)]
mod tests {
    use crate::base::ctx::Ctx;
    use crate::compare::scenario::ModelBuilder;
    use crate::compare::{Basis, Comparison, ComparisonRequest, compare};
    use crate::model::Model;
    use crate::model::facts::{HostQuality, Quality};
    use crate::model::metric::{Column, Metric};

    /// 400 executions; one in 20 sleeps `trouble` ms more, and waits `unknown` ms for an unknown reason.
    fn model(trouble: u64, unknown: u64) -> Model {
        let mut s = ModelBuilder::new(7);
        for i in 0..400 {
            let work = s.around(2.0);
            let (sleep, unknown) = if i % 20 == 3 { (trouble * 1_000_000, unknown * 1_000_000) } else { (0, 0) };
            let parts =
                [("p;main", work), ("p;main;retry;[nanosleep];{timer}", sleep), ("p;main;[poll];{unknown}", unknown)];
            s.run("x", "p", "p", 1, &parts);
        }
        s.seal()
    }

    fn ask(model: &Model) -> Comparison {
        compare(model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap()
    }

    /// Twins: a wait that ends out of turn, or beside idle CPUs, or in its turn.
    #[test]
    fn doubt_arises_from_waits_that_end_out_of_turn() {
        let of = |wait: &str| {
            let mut s = ModelBuilder::new(7);
            for i in 0..400 {
                let (work, wait_ns) = (s.around(2.0), if i % 20 == 3 { 60_000_000 } else { 0 });
                let path = format!("p;main;append;{{preempted}};{wait}thread batch@q;spin");
                s.run("x", "p", "p", 1, &[("p;main", work), (path.as_str(), wait_ns)]);
            }
            let verdict = ask(&s.seal()).verdict;
            (verdict.confident, verdict.sentence)
        };
        assert!(of("").0 && of("{2 of 4 CPUs idle};").0 && of("{2 of 4 CPUs idle};{out of turn};").0);
        let (confident, quota) = of("{as under a quota};");
        assert!(!confident && quota.contains("has used up its CPU quota"), "{quota}");
        assert!(!of("{2 of 4 CPUs idle};{as under a quota};").0);
        let (confident, phase) = of("{in phase};");
        assert!(!confident && phase.contains("in phase with a period"), "{phase}");
        let (confident, other) = of("{out of turn};");
        assert!(!confident && other.contains("the priority, the weight") && !other.contains("quota"), "{other}");
        let (confident, lower) = of("{before threads of lower priority};");
        assert!(!confident && lower.contains("have a much lower priority"), "{lower}");
    }

    fn with_contradictions(mut model: Model, contradictions: u64) -> Model {
        let quality = Quality { switches: 1000, contradictions, ..Quality::default() };
        model.quality.push(HostQuality { host: "h".into(), quality });
        model
    }

    #[test]
    fn doubt_arises_where_no_slow_execution_has_more_of_the_cause() {
        // All exports sleep 15 ms, one view in three 20 ms: more on average, but no export sleeps unusually long.
        let mut s = ModelBuilder::new(9);
        for i in 0..400 {
            let export = i % 4 == 0;
            let ms = if export { 15 } else { 20 * u64::from(i % 2 == 0) };
            let work = s.around(2.0);
            let parts = [("p;main", work), ("p;main;retry;[nanosleep];{timer}", ms * 1_000_000)];
            s.run(if export { "export" } else { "view" }, "p", "p", 1, &parts);
        }
        let of_type = |text: &str| vec![text.parse().unwrap()];
        let request =
            ComparisonRequest { slow: of_type("type=export"), fast: of_type("type=view"), ..Default::default() };
        let c = compare(&s.seal(), &request, &Ctx::new(1)).unwrap();
        assert!(c.verdict.sentence.contains("no slow execution has clearly more"), "{:?}", c.verdict);
        assert!(!c.verdict.confident && c.causes[0].slow_affected == 0.0);
    }

    #[test]
    fn doubt_arises_from_a_pause_of_the_machine() {
        let mut model = model(40, 0);
        let paused = |ms: i64| (0..400).map(|i| if i % 20 == 3 { ms * 1_000_000 } else { 0 }).collect();
        model.executions.columns.push(Column { metric: Metric::Paused, values: paused(10) });
        assert!(ask(&model).verdict.confident);
        model.executions.columns.last_mut().unwrap().values = paused(30);
        let c = ask(&model);
        assert!(!c.verdict.confident && c.verdict.sentence.contains("the machine was paused"), "{:?}", c.verdict);
        assert!(c.dimensions.iter().all(|d| d.name != "paused"));
    }

    #[test]
    fn doubt_arises_from_what_makes_polled_calls_fail() {
        let verdict = |sleep: &str| {
            let mut s = ModelBuilder::new(13);
            for i in 0..400 {
                let (work, slept) = (s.around(2.0), if i % 20 == 3 { 40_000_000 } else { 0 });
                s.run("x", "p", "p", 1, &[("p;main", work), (sleep, slept)]);
            }
            ask(&s.seal()).verdict
        };
        assert!(verdict("p;main;retry;[nanosleep];{timer}").confident);
        let polled = verdict("p;main;retry;[nanosleep];{timer};{polling fcntl}");
        assert!(!polled.confident && polled.sentence.contains("what makes them fail was not recorded"), "{polled:?}");
    }

    #[test]
    fn doubt_arises_where_nothing_does_the_same_work() {
        // Jobs, and so many listeners that live for as long as the process.
        let said = |listeners: usize, name: fn(usize) -> String| {
            let mut s = ModelBuilder::new(11);
            for i in 0..400 {
                let work = s.around(2.0);
                s.run("t", "p", &name(i), 1, &[("p;main", work)]);
            }
            for _ in 0..listeners {
                s.run("t", "p", "listener", 1, &[("p;main;[nanosleep];{timer}", 5_000_000_000)]);
            }
            ask(&s.seal()).verdict
        };
        let verdict = said(2, |_| "job".into());
        assert!(!verdict.confident, "{verdict:?}");
        assert!(
            verdict.sentence.contains("only 2 executions are of thread listener, none of them fast"),
            "{verdict:?}"
        );
        let verdict = said(6, |_| "job".into());
        assert!(verdict.confident && verdict.basis == Basis::Dimension, "{verdict:?}");
        // Another listener is no slower than a job.
        let verdict = said(2, |i| if i == 7 { "listener".into() } else { "job".into() });
        assert!(verdict.confident && verdict.basis == Basis::Cause, "{verdict:?}");
        // Each thread has a name of its own: that is no kind of work.
        let letters = |i: usize| ('a'..='t').nth(i / 20).into_iter().chain(('a'..='t').nth(i % 20)).collect();
        let verdict = said(1, letters);
        assert!(verdict.confident && verdict.basis == Basis::Cause, "{verdict:?}");
    }

    #[test]
    fn doubt_weighs_unknown_time_by_what_it_could_change() {
        assert!(ask(&model(40, 5)).verdict.confident);
        let c = ask(&model(40, 39));
        assert!(c.causes[0].kind == Some(crate::model::wait_kind::WaitKind::Timer), "{:?}", c.causes[0]);
        assert!(c.verdict.confident, "39 ms could not have made 40 ms the smaller one: {:?}", c.verdict);
        let c = ask(&with_contradictions(model(40, 35), 200));
        assert!(!c.verdict.confident && c.verdict.sentence.contains("does not say whether"), "{:?}", c.verdict);
    }

    #[test]
    fn doubt_arises_from_the_error_of_the_user_space_clock() {
        let ask = |clock_error: u64| {
            let mut model = model(40, 0);
            let quality = Quality { switches: 1000, interrupts: 9, clock_error, ..Quality::default() };
            model.quality.push(HostQuality { host: "h".into(), quality });
            ask(&model).verdict
        };
        assert!(ask(0).confident && ask(1_000_000).confident);
        let verdict = ask(60_000_000);
        assert!(
            !verdict.confident && verdict.sentence.contains("may differ from the kernel's by 60.0 ms"),
            "{verdict:?}"
        );
        let verdict = ask(i64::MAX as u64);
        assert!(!verdict.confident && verdict.sentence.contains("could not be aligned"), "{verdict:?}");
    }

    #[test]
    fn doubt_weighs_contradictions_by_their_share_of_the_time() {
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
