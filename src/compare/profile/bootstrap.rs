//! What each part gained, and how far samples alone scatter it.
//!
//! In: the samples of both sides, each with its part. Out: the gain of each part, its 95 % interval, and whether it is
//! more than chance. A run is cut into blocks of neighbouring samples, as many in a block as the cube root of their
//! number (Künsch 1989; Hall, Horowitz and Jing 1995), and drawn again from these blocks with replacement; amounts are
//! scaled to the total of the run, which a clock measures well: only its division among functions is sampled. What runs
//! differ in by themselves shows only where a side has several of them; else a gain needs to be large.
//!
//! The random numbers are the same each time, so equal input gives equal output. Cost: linear in the samples, plus
//! draws x blocks x tested parts, all of which are bounded.

use super::Side;
use super::parts::Parts;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::statistics::{Random, Sums, welch};
use crate::model::execution::ExecutionId;
use crate::model::{Model, TraceId};
use std::collections::BTreeMap;

const DRAWS: usize = 500;
/// Parts whose gains are drawn: the largest.
const TESTED: usize = 16;
/// Blocks of a run, at most.
const MOST_BLOCKS: usize = 2048;
/// Standard deviations that a gain needs. Of sixteen parts, one by chance reaches that in one of a hundred pairs.
const DEVIATIONS: f64 = 3.5;
/// The part of the fast side's total that a gain needs where a side is one run: how much runs differ is unknown.
const LEAST_OF_ONE_RUN: f64 = 0.05;
/// How often the part's own time it needs besides: what runs on the other hardware thread of a core can take half of
/// its throughput from one function and nothing from the next, and no profile shows it.
const TIMES_OF_ONE_RUN: f64 = 2.0;
/// The part of the fast side's total that a gain needs where runs were repeated.
const LEAST_OF_SEVERAL: f64 = 0.005;
/// Chance that a difference between repeated runs may have at most.
const RUNS_DIFFER: f64 = 0.005;
/// Shares of a run as whole numbers.
const SHARES: f64 = 1e9;

/// What a part gained from the fast to the slow side, by the run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gain {
    /// Amounts of a run on both sides.
    pub slow: f64,
    pub fast: f64,
    /// Their difference.
    pub gain: f64,
    /// The gain beyond that by which all other parts together grew: 0 if everything takes twice as long.
    pub beyond: f64,
    /// The 95 % interval of the gain; `None` for small parts.
    pub interval: Option<(f64, f64)>,
    /// More than chance.
    pub is_sure: bool,
}

/// The blocks of a run: the amounts of the tested parts, and the total last.
struct RunBlocks {
    blocks: Vec<Vec<f64>>,
    /// Sums over the blocks.
    sums: Vec<f64>,
}

/// The gain of each part.
pub(super) fn gains(model: &Model, sides: &[Side; 2], parts: &Parts, ctx: &Ctx) -> Result<Vec<Gain>, Cancelled> {
    let amounts = |at: usize| [0, 1].map(|side: usize| sides[side].per_run(parts.all[at].own[side] as f64));
    let wholes = [sides[0].whole(), sides[1].whole()];
    let mut gains: Vec<Gain> = (0..parts.all.len())
        .map(|at| {
            let [slow, fast] = amounts(at);
            Gain { slow, fast, gain: slow - fast, beyond: beyond([slow, fast], wholes), ..Gain::default() }
        })
        .collect();
    if sides[1].members.is_empty() {
        return Ok(gains);
    }
    let mut tested: Vec<usize> = (0..gains.len()).collect();
    tested.sort_by(|a, b| gains[*b].gain.abs().total_cmp(&gains[*a].gain.abs()).then(a.cmp(b)));
    tested.truncate(TESTED);
    let runs = [0, 1].map(|side: usize| blocks(model, &sides[side], parts, &tested));
    let mut random = Random::new(1);
    let mut drawn: Vec<[Vec<f64>; 2]> = vec![Default::default(); tested.len()];
    for _ in 0..DRAWS {
        ctx.cancel.check()?;
        let sums = [0, 1].map(|side: usize| draw(&runs[side], &mut random));
        for (at, values) in drawn.iter_mut().enumerate() {
            let of = [0, 1].map(|side: usize| sides[side].per_run(sums[side][at]));
            values[0].push(of[0] - of[1]);
            values[1].push(beyond(of, wholes));
        }
    }
    for ((at, part), [gained, further]) in tested.iter().enumerate().zip(drawn) {
        let gain = &mut gains[*part];
        gain.interval = Some(interval(gained.clone()));
        let scatter = deviation(&gained).max(deviation(&further));
        let repeated = sides.iter().all(|side| side.runs >= 2);
        let least = if repeated { LEAST_OF_SEVERAL } else { LEAST_OF_ONE_RUN };
        let more = gain.beyond.min(gain.gain);
        let least_slow = if repeated { 0.0 } else { TIMES_OF_ONE_RUN * (gain.slow - more) };
        let is_large = more >= least * wholes[1] && gain.slow >= least_slow;
        let is_more = more > DEVIATIONS * scatter;
        gain.is_sure = is_large && is_more && (!repeated || runs_differ(&runs, at));
    }
    Ok(gains)
}

/// The gain of a part beyond the growth of everything else.
fn beyond([slow, fast]: [f64; 2], [slow_whole, fast_whole]: [f64; 2]) -> f64 {
    let (slow_rest, fast_rest) = (slow_whole - slow, fast_whole - fast);
    // Nothing else shows by how much everything grew.
    if fast_rest <= 0.0 || slow_rest <= 0.0 {
        return slow - fast;
    }
    slow - fast * slow_rest / fast_rest
}

/// The blocks of all runs of a side, in the order of its traces.
fn blocks(model: &Model, side: &Side, parts: &Parts, tested: &[usize]) -> Vec<RunBlocks> {
    let mut by_run: BTreeMap<TraceId, Vec<ExecutionId>> = BTreeMap::new();
    for member in &side.members {
        if let Some(trace) = model.executions.trace.get(member.index()) {
            by_run.entry(trace).or_default().push(*member);
        }
    }
    let mut column = vec![None; parts.all.len()];
    tested.iter().enumerate().for_each(|(at, part)| column[*part] = Some(at));
    let total = tested.len();
    let of_run = |members: Vec<ExecutionId>| {
        let cube_root = (members.len() as f64).cbrt().ceil() as usize;
        let length = cube_root.max(members.len().div_ceil(MOST_BLOCKS)).max(1);
        let mut sums = vec![0.0; total + 1];
        let mut blocks = Vec::with_capacity(members.len().div_ceil(length));
        for block in members.chunks(length) {
            let mut amounts = vec![0.0; total + 1];
            for time in block.iter().flat_map(|member| model.executions.own.row(member.index())) {
                let part = parts.of_context.get(time.context.index()).copied();
                if let Some(at) = part.and_then(|part| *column.get(part)?) {
                    amounts[at] += time.ns as f64;
                }
                amounts[total] += time.ns as f64;
            }
            sums.iter_mut().zip(&amounts).for_each(|(sum, amount)| *sum += amount);
            blocks.push(amounts);
        }
        RunBlocks { blocks, sums }
    };
    by_run.into_values().map(of_run).collect()
}

/// The amounts of the tested parts in blocks that are drawn at random, as many as there are.
fn draw(runs: &[RunBlocks], random: &mut Random) -> Vec<f64> {
    let mut all = vec![0.0; runs.first().map_or(0, |run| run.sums.len())];
    for RunBlocks { blocks, sums } in runs {
        let mut of_run = vec![0.0; sums.len()];
        for _ in 0..blocks.len() {
            let block = &blocks[random.below(blocks.len())];
            of_run.iter_mut().zip(block).for_each(|(sum, amount)| *sum += amount);
        }
        let (drawn, whole) = (of_run.last().copied().unwrap_or(0.0), sums.last().copied().unwrap_or(0.0));
        let scale = if drawn > 0.0 { whole / drawn } else { 0.0 };
        all.iter_mut().zip(of_run).for_each(|(sum, amount)| *sum += amount * scale);
    }
    all
}

/// The middle 95 % of some values.
fn interval(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values.get(((values.len() as f64 - 1.0) * share).round() as usize).copied().unwrap_or(0.0);
    (at(0.025), at(0.975))
}

fn deviation(values: &[f64]) -> f64 {
    let n = values.len().max(2) as f64;
    let mean = values.iter().sum::<f64>() / n;
    (values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (n - 1.0)).sqrt()
}

/// True if repeated runs differ in a tested part by more than they differ among themselves (Welch): in its amount, or
/// in its share, which does not change with the speed of the machine.
fn runs_differ(runs: &[Vec<RunBlocks>; 2], at: usize) -> bool {
    let differ = |value: &dyn Fn(&RunBlocks) -> f64| {
        let sums = |side: usize| {
            let mut sums = Sums::zeros(runs[side].len() as u64);
            runs[side].iter().for_each(|run| sums.put(value(run).round() as u64));
            sums
        };
        welch(&sums(1), &sums(0)).is_some_and(|test| test.p < RUNS_DIFFER)
    };
    let total = |run: &RunBlocks| run.sums.last().copied().unwrap_or(0.0).max(1.0);
    differ(&|run| run.sums[at]) || differ(&|run| run.sums[at] / total(run) * SHARES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_is_nothing_where_all_grew_alike() {
        assert!(beyond([60.0, 30.0], [200.0, 100.0]).abs() < 1e-9);
        assert!((beyond([45.0, 30.0], [115.0, 100.0]) - 15.0).abs() < 1e-9);
        assert_eq!(beyond([45.0, 30.0], [45.0, 30.0]), 15.0);
    }

    #[test]
    fn draw_keeps_the_total_of_each_run() {
        let run = |values: &[[f64; 2]]| RunBlocks {
            blocks: values.iter().map(|v| v.to_vec()).collect(),
            sums: vec![values.iter().map(|v| v[0]).sum(), values.iter().map(|v| v[1]).sum()],
        };
        let runs = [run(&[[1.0, 4.0], [3.0, 4.0], [0.0, 2.0]]), run(&[[5.0, 5.0]])];
        let mut random = Random::new(7);
        let mut seen = Vec::new();
        for _ in 0..200 {
            let drawn = draw(&runs, &mut random);
            assert!((drawn[1] - 15.0).abs() < 1e-9, "{drawn:?}");
            seen.push(drawn[0]);
        }
        // The run of one block never varies; the other one does, around its 4 of 10.
        assert!(seen.iter().all(|value| *value >= 5.0) && deviation(&seen) > 0.5);
        assert!((seen.iter().sum::<f64>() / 200.0 - 9.0).abs() < 0.6);
    }
}
