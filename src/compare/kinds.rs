//! Kinds within the slow group: do all slow executions have the same trouble?
//!
//! Each slow execution is the list of its shares of time by cause (ALGORITHMS.md 7.5 takes contexts; causes are
//! the same time without the noise of sampled stacks). Hellinger distance, k-medoids for k of 2 to 4, best
//! silhouette; below 0.5 all are of one kind. Medoids are sought among at most [`SAMPLE`] executions spread evenly,
//! starting from the ones farthest apart: deterministic, O(SAMPLE² + N k).

use super::Kind;
use super::causes::Ranked;
use super::tree::Groups;
use super::words::{sentence_case, time_words};
use crate::base::statistics::divide_rounded;

const SAMPLE: usize = 200;
const MOST_KINDS: usize = 4;
/// Silhouette from which kinds are told apart.
const CLEAR: f64 = 0.5;
/// Executions that make a kind: fewer are exceptions.
const LEAST: usize = 3;

/// The kinds of slow executions, most time first; empty when there is only one.
pub(super) fn kinds(groups: &Groups<'_>, ranked: &Ranked) -> Vec<Kind> {
    let shares = shares(groups, ranked);
    let n = shares.len();
    if n < 2 * LEAST || ranked.values.is_empty() {
        return Vec::new();
    }
    let sample: Vec<&[f64]> = (0..n.min(SAMPLE)).map(|i| shares[i * n / n.min(SAMPLE)].as_slice()).collect();
    let mut best: Option<(f64, Vec<usize>)> = None;
    for k in 2..=MOST_KINDS {
        let medoids = medoids(&sample, k);
        let clear = silhouette(&sample, &medoids);
        if medoids.len() == k && clear >= CLEAR && best.as_ref().is_none_or(|(most, _)| clear > *most) {
            best = Some((clear, medoids));
        }
    }
    let Some((_, medoids)) = best else { return Vec::new() };
    let mut members = vec![Vec::new(); medoids.len()];
    for (i, own) in shares.iter().enumerate() {
        members[nearest(own, &sample, &medoids).0].push(i);
    }
    if members.iter().any(|m| m.len() < LEAST) {
        return Vec::new();
    }
    let mut kinds: Vec<Kind> = members.iter().map(|m| describe(groups, ranked, m)).collect();
    kinds.sort_by_key(|k| {
        (std::cmp::Reverse(i128::from(k.mean_ns) * k.members.len() as i128), k.members.first().copied())
    });
    kinds
}

/// By slow execution: its shares of time by cause, and of all else; they add up to one.
fn shares(groups: &Groups<'_>, ranked: &Ranked) -> Vec<Vec<f64>> {
    let share = |(i, e): (usize, &crate::model::execution::ExecutionId)| {
        let duration = groups.model.executions.duration(e.index()).max(1) as f64;
        let mut list: Vec<f64> = ranked.values.iter().map(|v| v[i] as f64 / duration).collect();
        list.push((1.0 - list.iter().sum::<f64>()).max(0.0));
        list
    };
    groups.slow.iter().enumerate().map(share).collect()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    let square: f64 = a.iter().zip(b).map(|(x, y)| (x.sqrt() - y.sqrt()).powi(2)).sum();
    (square / 2.0).sqrt()
}

/// Position of the nearest medoid, and how far it is.
fn nearest(own: &[f64], sample: &[&[f64]], medoids: &[usize]) -> (usize, f64) {
    let mut best = (0, f64::INFINITY);
    for (at, medoid) in medoids.iter().enumerate() {
        let far = distance(own, sample[*medoid]);
        if far < best.1 {
            best = (at, far);
        }
    }
    best
}

/// `k` members of the sample in the middle of their kinds; fewer where the sample has no `k` different ones.
fn medoids(sample: &[&[f64]], k: usize) -> Vec<usize> {
    let total = |of: &[usize], from: usize| of.iter().map(|i| distance(sample[*i], sample[from])).sum::<f64>();
    let central = |of: &[usize]| of.iter().copied().min_by(|a, b| total(of, *a).total_cmp(&total(of, *b)));
    let all: Vec<usize> = (0..sample.len()).collect();
    let mut medoids: Vec<usize> = central(&all).into_iter().collect();
    while medoids.len() < k {
        let far = |i: &usize| nearest(sample[*i], sample, &medoids).1;
        match all.iter().copied().max_by(|a, b| far(a).total_cmp(&far(b)).then(b.cmp(a))) {
            Some(next) if far(&next) > 0.0 => medoids.push(next),
            _ => break,
        }
    }
    for _ in 0..20 {
        let mut members = vec![Vec::new(); medoids.len()];
        for i in &all {
            members[nearest(sample[*i], sample, &medoids).0].push(*i);
        }
        let next: Vec<usize> = members.iter().zip(&medoids).map(|(m, old)| central(m).unwrap_or(*old)).collect();
        if next == medoids {
            break;
        }
        medoids = next;
    }
    medoids
}

/// Mean over the sample of how much nearer the own kind is than the next (by medoids): 1 is clear, 0 is none.
fn silhouette(sample: &[&[f64]], medoids: &[usize]) -> f64 {
    let one = |own: &&[f64]| {
        let mut far: Vec<f64> = medoids.iter().map(|m| distance(own, sample[*m])).collect();
        far.sort_by(f64::total_cmp);
        match far[..] {
            [a, b, ..] if b > 0.0 => (b - a) / b,
            _ => 0.0,
        }
    };
    sample.iter().map(one).sum::<f64>() / sample.len().max(1) as f64
}

fn describe(groups: &Groups<'_>, ranked: &Ranked, members: &[usize]) -> Kind {
    let n = members.len();
    let ids = members.iter().map(|i| groups.slow[*i]).collect::<Vec<_>>();
    let sum: i128 = ids.iter().map(|e| i128::from(groups.model.executions.duration(e.index()))).sum();
    let fast = groups.fast.len().max(1) as f64;
    let extra = |values: &Vec<u64>| {
        let own = members.iter().map(|i| values[*i] as f64).sum::<f64>() / n as f64;
        own - values[groups.slow.len()..].iter().map(|v| *v as f64).sum::<f64>() / fast
    };
    let most = (0..ranked.values.len())
        .max_by(|a, b| extra(&ranked.values[*a]).total_cmp(&extra(&ranked.values[*b])).then(b.cmp(a)));
    let mean_ns = divide_rounded(sum, n as u128);
    let what = most.and_then(|at| ranked.phrases.get(at)).map_or_else(String::new, |p| sentence_case(p));
    let more = time_words(most.map_or(0.0, |at| extra(&ranked.values[at])));
    let sentence = format!(
        "{n} of {} slow executions, {} on average: {what}, {more} more than the fast ones.",
        groups.slow.len(),
        time_words(mean_ns as f64)
    );
    Kind { members: ids, mean_ns, cause: most.map(|at| at as u32 + 1), sentence }
}
