//! The control of tails: groups chosen by duration always differ; do the slow executions differ more than any tail
//! does?
//!
//! They do not, if they take no longer than a tail that follows from the quartiles of all (log-normal, as run times
//! are), and one of two conditions holds. *The same mixture, only more of it*: of each further nanosecond of the usual
//! executions so much goes to the first cause (a straight line through them) that this gives most of the cause among
//! the slow ones. *Its own tail*: the slow ones take less than twice the time of the fast ones, and their time in the
//! cause is no further from the others' than the tail of a skewed distribution is; some part is always the most
//! variable, and in the slowest executions it took long. Time of unknown stacks says nothing about a place and is left
//! out of the mixture if enough is known. Cost: linear in the executions' sparse lists. ALGORITHMS.md 7.7.

use super::tree::GroupPair;
use crate::base::statistics::upper_normal;
use crate::model::Model;
use crate::model::column_values::ColumnValues;
use crate::model::context::{ContextId, FrameKind};
use crate::model::execution::{ContextTime, ExecutionId};
use crate::model::weights::RankedValues;
use std::cell::OnceCell;

/// Usual executions that a line needs.
const LEAST: usize = 20;
/// Part of a cause that the usual executions must predict.
const PREDICTED: f64 = 2.0 / 3.0;
/// The mean of the slow executions over the mean that the quartiles predict, at most.
const BEYOND: f64 = 1.5;
/// From this multiple of the fast mean on the slow executions are no ordinary tail; a gap between groups needs as much.
const ORDINARY: f64 = 2.0;
/// Mean of the cause among the slow ones, in standard deviations of the others': the largest twentieth reaches 2.4 of a
/// normal distribution, 4.2 of an exponential one, 6.8 of a log-normal one with a standard deviation of 1.
const SKEWED: f64 = 9.0;

/// The time of each execution in a cause: all of it, and that of known stacks. All controls of the cause ask for it, so
/// the executions' packed times are read once, when the first control asks.
pub(super) struct CauseTimes<'a> {
    model: &'a Model,
    /// Contexts of the cause; ascending.
    contexts: &'a [ContextId],
    times: OnceCell<TimesInCause>,
}

/// Times of executions in a cause, in ns.
#[derive(Debug, Default)]
struct TimesInCause {
    all: ColumnValues,
    /// The part of these times in unknown stacks: none in most recordings.
    unknown: ColumnValues,
}

/// Which part of the time in a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stacks {
    All,
    Known,
}

impl<'a> CauseTimes<'a> {
    /// The times in some contexts of the model, which ascend.
    pub fn new(model: &'a Model, contexts: &'a [ContextId]) -> CauseTimes<'a> {
        CauseTimes { model, contexts, times: OnceCell::new() }
    }

    /// Time of an execution in the cause.
    pub fn time(&self, execution: usize) -> f64 {
        self.time_in(Stacks::All, execution)
    }

    fn time_in(&self, stacks: Stacks, execution: usize) -> f64 {
        let times = self.times.get_or_init(|| self.read());
        let [all, unknown] = [&times.all, &times.unknown].map(|times| times.get(execution).unwrap_or(0));
        (if stacks == Stacks::All { all } else { all - unknown }) as f64
    }

    fn read(&self) -> TimesInCause {
        // By context: all of its time counts, or known stacks' as well.
        let mut counts: Vec<Option<Stacks>> = vec![None; self.model.contexts.len()];
        for context in self.contexts {
            let is_unknown = has_unknown_stack(self.model, *context);
            counts[context.index()] = Some(if is_unknown { Stacks::All } else { Stacks::Known });
        }
        let mut times = TimesInCause::default();
        for execution in 0..self.model.executions.len() {
            let (mut all, mut unknown) = (0_i64, 0_i64);
            for ContextTime { context, ns } in self.model.executions.own.row(execution) {
                let Some(stacks) = counts.get(context.index()).copied().flatten() else { continue };
                let ns = i64::try_from(ns).unwrap_or(i64::MAX);
                all = all.saturating_add(ns);
                unknown = if stacks == Stacks::All { unknown.saturating_add(ns) } else { unknown };
            }
            times.all.push(all);
            times.unknown.push(unknown);
        }
        times
    }

    /// Mean time of some executions.
    fn mean(&self, groups: &GroupPair<'_>, stacks: Stacks, of: &[ExecutionId]) -> f64 {
        groups.mean(of, |i| self.time_in(stacks, i))
    }
}

/// True if any tail of such executions would show the first cause. Only for groups that were chosen by duration.
pub(super) fn is_usual(groups: &GroupPair<'_>, cause: &CauseTimes<'_>) -> bool {
    let model = groups.model;
    let count = model.executions.len();
    let mut is_slow = vec![false; count];
    groups.slow.iter().for_each(|e| is_slow[e.index()] = true);
    let beside = is_slow.iter().filter(|is_slow| !**is_slow).count();
    if (count * 3 / 4).min(beside) < LEAST || !within_tail(groups) {
        return false;
    }
    let mut others = Vec::with_capacity(beside);
    others.extend((0..count).map(ExecutionId::at).filter(|id| !is_slow[id.index()]));
    others.sort_unstable_by_key(|id: &ExecutionId| (model.executions.duration(id.index()), *id));
    // Three quarters of all executions, of a sample as many as stand for them.
    let most = model.executions.count() * 3 / 4;
    let upto = others.iter().scan(0_u64, |upto, id| {
        *upto += groups.weights.of(id.index());
        Some(*upto)
    });
    let usual = &others[..upto.take_while(|upto| *upto <= most).count()];
    is_mixture(groups, cause, usual) || is_own_tail(groups, cause, &others)
}

/// True if the time in the cause grows so much with the duration of the usual executions that it predicts that of the
/// slow ones.
fn is_mixture(groups: &GroupPair<'_>, cause: &CauseTimes<'_>, usual: &[ExecutionId]) -> bool {
    let model = groups.model;
    let extra = |stacks: Stacks| cause.mean(groups, stacks, groups.slow) - cause.mean(groups, stacks, groups.fast);
    let stacks = if extra(Stacks::Known) * 5.0 >= extra(Stacks::All) { Stacks::Known } else { Stacks::All };
    let duration = |i: usize| model.executions.duration(i) as f64;
    let weight = |i: usize| groups.weights.of(i) as f64;
    let points = || usual.iter().map(|e| (duration(e.index()), cause.time_in(stacks, e.index()), weight(e.index())));
    let longer = mean_duration(groups, groups.slow) - mean_duration(groups, groups.fast);
    slope(points).clamp(0.0, 1.0) * longer >= PREDICTED * extra(stacks)
}

/// True if the slow executions take less than twice the time of the fast ones, and their time in the cause is within
/// the tail of the `others`.
fn is_own_tail(groups: &GroupPair<'_>, cause: &CauseTimes<'_>, others: &[ExecutionId]) -> bool {
    if mean_duration(groups, groups.slow) > ORDINARY * mean_duration(groups, groups.fast) {
        return false;
    }
    let usual = groups.mean(others, |i| cause.time(i));
    let deviation = groups.mean(others, |i| (cause.time(i) - usual).powi(2)).sqrt();
    cause.mean(groups, Stacks::All, groups.slow) - usual <= SKEWED * deviation
}

fn mean_duration(groups: &GroupPair<'_>, of: &[ExecutionId]) -> f64 {
    groups.mean(of, |i| groups.model.executions.duration(i) as f64)
}

/// True if the slow executions take no longer than the quartiles of all predict for this many.
fn within_tail(groups: &GroupPair<'_>) -> bool {
    let executions = &groups.model.executions;
    let all = RankedValues::durations(executions, 0..executions.len());
    let at = |p: f64| all.nearest_rank(p).map_or(0.0, |v| (v.max(1) as f64).ln());
    let (low, middle, high) = (at(25.0), at(50.0), at(75.0));
    // Half of the distance of the quartiles is 0.6745 standard deviations; the longer half belongs to the tail.
    let deviation = (high - middle).max(middle - low) / 0.6745;
    let share = groups.counts[0] as f64 / all.count().max(1) as f64;
    let expected = (middle + deviation * upper_normal(share / 2.0)).exp();
    mean_duration(groups, groups.slow) <= BEYOND * expected
}

/// True if one of its frames is an unknown stack.
pub(super) fn has_unknown_stack(model: &Model, context: ContextId) -> bool {
    model.contexts.path(context).into_iter().any(|c| model.contexts.frame(c).kind == FrameKind::NoStack)
}

/// The slope of the least-squares line through points with their weights.
fn slope<I: Iterator<Item = (f64, f64, f64)>>(points: impl Fn() -> I) -> f64 {
    let n = points().map(|p| p.2).sum::<f64>().max(1.0);
    let (x, y) = points().fold((0.0, 0.0), |(x, y), p| (x + p.2 * p.0 / n, y + p.2 * p.1 / n));
    let (both, square) =
        points().fold((0.0, 0.0), |(b, s), p| (b + p.2 * (p.0 - x) * (p.1 - y), s + p.2 * (p.0 - x).powi(2)));
    if square > 0.0 { both / square } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ctx::Ctx;
    use crate::compare::scenario::{self, ModelBuilder};
    use crate::compare::{ComparisonRequest, compare};

    #[test]
    fn slope_of_a_line() {
        let of = |points: &[(f64, f64)]| slope(|| points.iter().map(|(x, y)| (*x, *y, 1.0)));
        assert!((of(&[(1.0, 3.0), (2.0, 5.0), (3.0, 7.0)]) - 2.0).abs() < 1e-12);
        let weighted = [(1.0, 3.0, 2.0), (2.0, 9.0, 1.0), (2.0, 5.0, 3.0)];
        assert!((slope(|| weighted.iter().copied()) - 3.0).abs() < 1e-12);
        assert!(of(&[(1.0, 3.0), (1.0, 5.0)]).abs() < 1e-12 && of(&[]).abs() < 1e-12);
    }

    /// Log-normal run times of one mixture: no cut of the tail finds a cause.
    #[test]
    fn is_usual_for_more_of_the_same_mixture() {
        for seed in 1..=4 {
            let mut s = ModelBuilder::new(seed);
            for _ in 0..1000 {
                let all = s.around(2.0);
                s.run("x", "p", "p", 1, &[("p;main;work", all * 8 / 10), ("p;main;wait;[poll];{timer}", all * 2 / 10)]);
            }
            let model = s.seal();
            let c = compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap();
            assert!(!c.verdict.confident && c.verdict.sentence.contains("any tail"), "{:?}", c.verdict);
        }
    }

    /// A disk that some executions find busy: the most variable part makes the tail.
    #[test]
    fn is_usual_for_the_tail_of_the_most_variable_part() {
        let ask = |busy: u64| {
            let mut s = ModelBuilder::new(9);
            for i in 0..1000_u64 {
                let cpu = s.around(0.8);
                // One in eight waits for another request, one in forty for two.
                let after = [(40, 2), (8, 1)].iter().find(|(every, _)| i % every == 5).map_or(0, |(_, n)| *n);
                let disk = 200_000 + after * busy + (i * 7919) % 9_000;
                s.run("x", "p", "p", 1, &[("p;main;work", cpu), ("p;main;load;[pread64];{disk}", disk)]);
            }
            compare(&s.seal(), &ComparisonRequest::default(), &Ctx::new(1)).unwrap().verdict
        };
        let usual = ask(200_000);
        assert!(!usual.confident && usual.sentence.contains("any tail"), "{usual:?}");
        let trouble = ask(4_000_000);
        assert!(trouble.confident && trouble.sentence.contains("disk"), "{trouble:?}");
    }

    /// A lock's holder runs for as long as usual, but now and then another thread takes its CPU: what usual waits for
    /// it are made of says nothing about that.
    #[test]
    fn is_usual_rejects_what_the_holder_usually_does_not() {
        let ask = |taker: &str| {
            let mut s = ModelBuilder::new(3);
            for i in 0..400_u64 {
                // Half of the calls do not wait: the quartiles are far apart.
                let held = if i % 2 == 0 { 4_000 } else { 200_000 + (i * 7919) % 90_000 };
                let taken = if i % 40 == 3 { 40_000_000 } else { 0 };
                let lock = "p;main;append;[futex];thread low@p;hold";
                let path = format!("{lock}{taker}");
                s.run("x", "p", "p", 1, &[(lock, held), (path.as_str(), taken)]);
            }
            compare(&s.seal(), &ComparisonRequest::default(), &Ctx::new(1)).unwrap().verdict
        };
        let kept = ask(";{preempted};thread medium@q;spin");
        assert!(kept.confident && kept.sentence.contains("medium"), "{kept:?}");
        let same = ask("");
        assert!(!same.confident && same.sentence.contains("any tail"), "{same:?}");
    }

    #[test]
    fn is_usual_rejects_time_that_usual_executions_do_not_have() {
        for model in [scenario::rare_sleep(3), scenario::many_threads(3), scenario::disk_contention(3)] {
            assert!(compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap().verdict.confident);
        }
    }
}
