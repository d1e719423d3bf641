//! The control of interrupts: could unrecorded interrupts explain the extra running time?
//!
//! Time on the CPU is the thread's own only if the recording shows interrupts. If it shows none, the extra time may be
//! theirs: interrupts come independently of the running thread, so they stretch all running time in proportion. Two
//! observations distinguish them from the thread's own work.
//!
//! *Place*: own work is done in functions or calls in which the fast executions seldom are. So the slow executions that
//! ran longer are counted, and those of them that did so in the place that the cause names; the chance of so many
//! follows from the share of the fast ones' running time of known place that is spent there. *Neighbours*: own work
//! stretches no other thread. So of the executions that alternated with others on a CPU (the metric `interleaved`),
//! those are counted beside which the others ran no longer than usual; by chance that happens in the part of the time
//! that interrupts would have left. Both use Chernoff's bound of a binomial tail, which is never too small. Cost:
//! linear in the groups' sparse lists. ALGORITHMS.md 7.7.

use super::Cause;
use super::evidence::Evidence;
use super::partition::is_below;
use super::tail::has_unknown_stack;
use crate::model::Model;
use crate::model::context::ContextId;
use crate::model::execution::ContextTime;
use crate::model::metric::{ABSENT, Metric};
use crate::model::wait_kind::WaitKind;

/// Chance from which interrupts explain the observations as well.
const LIKELY: f64 = 0.01;
/// Part of a CPU's time that interrupts are assumed to leave, at least.
const LEAST_LEFT: f64 = 0.25;
/// Part of the slow executions that ran longer whose neighbours must be known.
const KNOWN_NEIGHBOURS: f64 = 0.25;

const SAME_CODE: &str = "interrupts were not recorded, and the slow executions spend their extra CPU time in the same \
                         code as the fast ones, so it may have gone to interrupts (record irq_handler_entry and \
                         irq_softirq_entry)";
const UNKNOWN_CODE: &str = "neither interrupts nor the code that ran were recorded, so the extra CPU time may have \
                            gone to interrupts (record irq_handler_entry, irq_softirq_entry and call stacks at a \
                            timer's rate)";

/// Running time of an execution, in nanoseconds.
#[derive(Clone, Copy, Default)]
struct RunningTime {
    /// In the place that the cause names.
    inside: f64,
    /// In all places that are known.
    known: f64,
    /// In functions and calls: more is known than the process.
    in_code: f64,
    all: f64,
}

/// Running times of a slow execution and of those that alternated with it.
struct Neighbours {
    own: f64,
    /// Their mean.
    others: f64,
}

fn running_time(model: &Model, execution: usize, node: ContextId) -> RunningTime {
    let own = model.executions.own.row(execution).filter(|time| model.contexts.spent(time.context) == WaitKind::Cpu);
    own.fold(RunningTime::default(), |time, ContextTime { context, ns }| {
        let ns = ns as f64;
        let is_known = !has_unknown_stack(model, context);
        let is_inside = is_known && is_below(model, context, node);
        RunningTime {
            inside: time.inside + if is_inside { ns } else { 0.0 },
            known: time.known + if is_known { ns } else { 0.0 },
            in_code: time.in_code + if is_known && model.contexts.parent(context).is_some() { ns } else { 0.0 },
            all: time.all + ns,
        }
    })
}

/// The reason why the running time of the first cause may not be the thread's own.
pub(super) fn unrecorded(e: &Evidence<'_>, cause: &Cause) -> Option<String> {
    let model = e.groups.model;
    let recorded = model.quality.iter().all(|host| host.quality.interrupts > 0);
    let node = cause.context.filter(|_| cause.kind == Some(WaitKind::Cpu) && !recorded)?;
    let fast: Vec<RunningTime> = e.fast.members.iter().map(|id| running_time(model, id.index(), node)).collect();
    let mean = |of: fn(&RunningTime) -> f64| {
        let weighted =
            fast.iter().zip(&e.fast.members).map(|(time, id)| of(time) * e.groups.weights.of(id.index()) as f64);
        weighted.sum::<f64>() / e.fast.count.max(1) as f64
    };
    let (fast_inside, fast_known, fast_all) = (mean(|t| t.inside), mean(|t| t.known), mean(|t| t.all));
    // Time without a stack says nothing about its place.
    let usual = if fast_known > 0.0 { fast_inside / fast_known } else { 1.0 };
    let (mut longer, mut there) = (0.0, 0.0);
    let mut slow = RunningTime::default();
    let mut beside = Vec::new();
    for id in &e.slow.members {
        let RunningTime { inside, in_code, all, .. } = running_time(model, id.index(), node);
        let extra = all - fast_all;
        if extra * 2.0 >= cause.extra_ns as f64 {
            longer += 1.0;
            slow = RunningTime { in_code: slow.in_code + in_code, all: slow.all + all, ..slow };
            there += if (inside - fast_inside) * 2.0 >= extra { 1.0 } else { 0.0 };
            beside.extend(interleaved(e, id.index()).map(|others| Neighbours { own: all, others }));
        }
    }
    let doubted = at_least(there, longer, usual) >= LIKELY && !spare_others(&beside, fast_all, longer);
    // Nothing is known of the code if most of the running time has none.
    let sentence = if slow.in_code * 2.0 >= slow.all { SAME_CODE } else { UNKNOWN_CODE };
    doubted.then(|| sentence.to_owned())
}

/// Mean running time of the executions that alternated with one.
fn interleaved(e: &Evidence<'_>, execution: usize) -> Option<f64> {
    let column = e.groups.model.executions.column(&Metric::Interleaved)?;
    column.values.get(execution).filter(|ns| *ns != ABSENT).map(|ns| ns as f64)
}

/// True if the executions that alternated on a CPU with those that ran longer ran no longer themselves, too often for
/// interrupts. `fast` is the running time of fast executions, `longer` the number that ran longer.
fn spare_others(beside: &[Neighbours], fast: f64, longer: f64) -> bool {
    let asked = beside.len() as f64;
    // Nearer to their usual time than to that time stretched as much as the slow one's.
    let spared = beside.iter().filter(|n| n.others * n.others <= n.own * fast).count() as f64;
    // Interrupts come in bursts: the estimate of the time that they leave is rough, and the neighbours must be enough
    // to represent all.
    let left = beside.iter().map(|n| fast / n.own.max(1.0)).sum::<f64>() / asked.max(1.0);
    asked >= longer * KNOWN_NEIGHBOURS && at_least(spared, asked, left.max(LEAST_LEFT)) < LIKELY
}

/// Bound of the chance that of `n` at least `k` are hits where each is one with probability `p`.
fn at_least(k: f64, n: f64, p: f64) -> f64 {
    let share = k / n.max(1.0);
    if n == 0.0 || share <= p {
        return 1.0;
    }
    // The divergence of the two, 0 ln 0 being 0.
    let term = |a: f64, b: f64| if a > 0.0 { a * (a / b).ln() } else { 0.0 };
    (-n * (term(share, p.max(f64::MIN_POSITIVE)) + term(1.0 - share, 1.0 - p))).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ctx::Ctx;
    use crate::compare::scenario::ModelBuilder;
    use crate::compare::{ComparisonRequest, Verdict, compare};
    use crate::model::facts::{HostQuality, Quality};
    use crate::model::metric::Column;

    #[test]
    fn at_least_is_no_smaller_than_the_chance() {
        // 8 of 8 at one half: 1 in 256. 10 of 20 at a tenth: 7.1e-6.
        assert!((at_least(8.0, 8.0, 0.5) - 1.0 / 256.0).abs() < 1e-12);
        assert!((7.1e-6..1e-3).contains(&at_least(10.0, 20.0, 0.1)));
        assert_eq!((at_least(3.0, 10.0, 0.5), at_least(0.0, 0.0, 0.0)), (1.0, 1.0));
        assert!(at_least(2.0, 4.0, 0.0) < 1e-9);
    }

    /// One execution in 20 runs 9 ms longer: in a function of its own, or half in one, half in the other of those that
    /// all are in.
    fn ask(own_function: bool, interrupts: u64) -> Verdict {
        let mut s = ModelBuilder::new(5);
        for i in 0..400_u64 {
            let (parse, render) = (s.around(0.7), s.around(1.4));
            let extra = if i % 20 == 3 { 9_000_000 } else { 0 };
            let (rebuild, in_render) = if own_function { (extra, 0) } else { (0, extra) };
            let parts = [("p;main;parse", parse), ("p;main;render", render + in_render), ("p;main;rebuild", rebuild)];
            s.run("x", "p", "p", 1, &parts);
        }
        let mut model = s.seal();
        let quality = Quality { switches: 1000, interrupts, ..Quality::default() };
        model.quality.push(HostQuality { host: "h".into(), quality });
        compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap().verdict
    }

    #[test]
    fn unrecorded_accepts_a_function_that_only_slow_executions_run() {
        assert!(ask(true, 9).confident && ask(true, 0).confident);
        assert!(ask(false, 9).confident);
        // 20 of 20 in a function that has two thirds of the time are no chance, either.
        assert!(ask(false, 0).confident);
    }

    #[test]
    fn unrecorded_doubts_time_that_is_longer_everywhere() {
        let ask = |interrupts: u64| {
            let mut s = ModelBuilder::new(6);
            for i in 0..400_u64 {
                let (parse, render) = (s.around(0.2), s.around(1.9));
                let extra = if i % 20 == 3 { 9_000_000 } else { 0 };
                let first = i % 200 == 3;
                let (in_parse, in_render) = if first { (extra, 0) } else { (0, extra) };
                s.run("x", "p", "p", 1, &[("p;main;parse", parse + in_parse), ("p;main;render", render + in_render)]);
            }
            let mut model = s.seal();
            let quality = Quality { switches: 1000, interrupts, ..Quality::default() };
            model.quality.push(HostQuality { host: "h".into(), quality });
            compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap().verdict
        };
        assert!(ask(9).confident);
        let verdict = ask(0);
        assert!(!verdict.confident && verdict.sentence.contains("in the same code as the fast ones"), "{verdict:?}");
    }

    #[test]
    fn spare_others_decides_by_the_neighbours() {
        // One in 20 runs 9 ms longer, no stacks; some of those alternated with others, whose running time is given.
        let ask = |beside: u64, others_ms: f64| {
            let mut s = ModelBuilder::new(9);
            let mut interleaved = Vec::new();
            for i in 0..400_u64 {
                let slow = i % 20 == 3;
                let ns = s.around(2.0) + if slow { 9_000_000 } else { 0 };
                let known = slow && i / 20 < beside;
                interleaved.push(if known { (others_ms * 1e6) as i64 } else { ABSENT });
                s.run("x", "p", "p", 1, &[("p", ns)]);
            }
            let mut model = s.seal();
            model.executions.columns.push(Column { metric: Metric::Interleaved, values: interleaved.into() });
            let quality = Quality { switches: 1000, ..Quality::default() };
            model.quality.push(HostQuality { host: "h".into(), quality });
            let verdict = compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap().verdict;
            // Without stacks it is not known whether the fast ones ran the same code.
            assert!(verdict.confident || verdict.sentence.contains("nor the code that ran"), "{verdict:?}");
            verdict.confident
        };
        assert!(ask(20, 2.1) && ask(8, 2.1), "others were spared");
        assert!(!ask(20, 9.0), "all were stretched");
        assert!(!ask(3, 2.1), "three of twenty do not represent all");
        assert!(!ask(0, 2.1), "no neighbours are known");
    }
}
