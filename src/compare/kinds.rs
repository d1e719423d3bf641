//! Kinds within the slow group: do all slow executions have the same trouble?
//!
//! Each slow execution is the list of its shares of time by cause, which have no noise of sampled stacks
//! (ALGORITHMS.md 7.5). Hellinger distance, k-medoids for k of 2 to 4, best
//! silhouette; below 0.5 all are of one kind. Medoids are sought among at most [`SAMPLE`] executions spread evenly,
//! starting from the ones farthest apart: deterministic. Cost: O(SAMPLE² + N k) distances, each computed once.

use super::SlowKind;
use super::causes::RankedCauses;
use super::groups::total;
use super::tree::GroupPair;
use super::words::sentence_case;
use crate::base::figure;
use crate::base::statistics::divide_rounded;

const SAMPLE: usize = 200;
const MOST_KINDS: usize = 4;
/// Silhouette from which kinds are separate.
const CLEAR: f64 = 0.5;
/// Executions that make a kind: fewer are exceptions.
const LEAST: usize = 3;

/// The kinds of slow executions, most time first; empty when there is only one.
pub(super) fn kinds(groups: &GroupPair<'_>, ranked: &RankedCauses) -> Vec<SlowKind> {
    let roots = roots(groups, ranked);
    let n = roots.len();
    if n < 2 * LEAST || ranked.values.is_empty() {
        return Vec::new();
    }
    let sample: Vec<&[f64]> = (0..n.min(SAMPLE)).map(|i| roots[i * n / n.min(SAMPLE)].as_slice()).collect();
    let apart = Distances::new(&sample);
    let mut best: Option<(f64, Vec<usize>)> = None;
    for k in 2..=MOST_KINDS {
        let medoids = medoids(&apart, k);
        let clear = silhouette(&apart, &medoids);
        if medoids.len() == k && clear >= CLEAR && best.as_ref().is_none_or(|(most, _)| clear > *most) {
            best = Some((clear, medoids));
        }
    }
    let Some((_, medoids)) = best else { return Vec::new() };
    let mut members = vec![Vec::new(); medoids.len()];
    for (i, own) in roots.iter().enumerate() {
        members[nearest(&medoids, |medoid| distance(own, sample[medoid])).0].push(i);
    }
    if members.iter().any(|m| m.len() < LEAST) {
        return Vec::new();
    }
    let mut kinds: Vec<SlowKind> = members.iter().map(|m| describe(groups, ranked, m)).collect();
    kinds.sort_by_key(|k| (std::cmp::Reverse(i128::from(k.mean_ns) * i128::from(k.count)), k.members.first().copied()));
    kinds
}

/// By slow execution: the square roots of its shares of time by cause, and of the rest; the shares add up to one.
fn roots(groups: &GroupPair<'_>, ranked: &RankedCauses) -> Vec<Vec<f64>> {
    let roots = |(i, e): (usize, &crate::model::execution::ExecutionId)| {
        let duration = groups.model.executions.duration(e.index()).max(1) as f64;
        let mut list: Vec<f64> = ranked.values.iter().map(|v| v[i] as f64 / duration).collect();
        list.push((1.0 - list.iter().sum::<f64>()).max(0.0));
        list.iter_mut().for_each(|share| *share = share.sqrt());
        list
    };
    groups.slow.iter().enumerate().map(roots).collect()
}

/// Hellinger distance of two executions, by the roots of their shares.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    let square: f64 = a.iter().zip(b).map(|(x, y)| (x - y).powi(2)).sum();
    (square / 2.0).sqrt()
}

/// The distances within a sample.
struct Distances {
    n: usize,
    distances: Vec<f64>,
}

impl Distances {
    fn new(sample: &[&[f64]]) -> Distances {
        let n = sample.len();
        let mut distances = vec![0.0; n * n];
        for (a, one) in sample.iter().enumerate() {
            for (b, other) in sample.iter().enumerate().skip(a + 1) {
                let far = distance(one, other);
                (distances[a * n + b], distances[b * n + a]) = (far, far);
            }
        }
        Distances { n, distances }
    }

    fn of(&self, a: usize, b: usize) -> f64 {
        self.distances[a * self.n + b]
    }
}

/// Position of the nearest medoid, and how far it is.
fn nearest(medoids: &[usize], far: impl Fn(usize) -> f64) -> (usize, f64) {
    let mut best = (0, f64::INFINITY);
    for (at, medoid) in medoids.iter().enumerate() {
        let far = far(*medoid);
        if far < best.1 {
            best = (at, far);
        }
    }
    best
}

/// `k` medoids of the sample; fewer if the sample has no `k` different members.
fn medoids(apart: &Distances, k: usize) -> Vec<usize> {
    let central = |of: &[usize]| {
        let total = |from: usize| (of.iter().map(|i| apart.of(*i, from)).sum::<f64>(), from);
        // The first of equal ones.
        of.iter().map(|from| total(*from)).min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, from)| from)
    };
    let all: Vec<usize> = (0..apart.n).collect();
    let mut medoids: Vec<usize> = central(&all).into_iter().collect();
    while medoids.len() < k {
        let far = |i: usize| (nearest(&medoids, |medoid| apart.of(i, medoid)).1, i);
        match all.iter().map(|i| far(*i)).max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1))) {
            Some((most, next)) if most > 0.0 => medoids.push(next),
            _ => break,
        }
    }
    for _ in 0..20 {
        let mut members = vec![Vec::new(); medoids.len()];
        for i in &all {
            members[nearest(&medoids, |medoid| apart.of(*i, medoid)).0].push(*i);
        }
        let next: Vec<usize> = members.iter().zip(&medoids).map(|(m, old)| central(m).unwrap_or(*old)).collect();
        if next == medoids {
            break;
        }
        medoids = next;
    }
    medoids
}

/// Mean silhouette of the sample, by distances to the medoids: 1 is clear, 0 is none.
fn silhouette(apart: &Distances, medoids: &[usize]) -> f64 {
    let one = |own: usize| {
        let mut far: Vec<f64> = medoids.iter().map(|m| apart.of(own, *m)).collect();
        far.sort_by(f64::total_cmp);
        match far[..] {
            [a, b, ..] if b > 0.0 => (b - a) / b,
            _ => 0.0,
        }
    };
    (0..apart.n).map(one).sum::<f64>() / apart.n.max(1) as f64
}

fn describe(groups: &GroupPair<'_>, ranked: &RankedCauses, members: &[usize]) -> SlowKind {
    let ids = members.iter().map(|i| groups.slow[*i]).collect::<Vec<_>>();
    let (n, sum) = (groups.weights.sum(&ids), total(groups.model, &ids));
    let extra = |values: &Vec<u64>| {
        let mean = |members: &mut dyn Iterator<Item = usize>, count: u64| {
            members.map(|at| values[at] as f64 * groups.weight(at) as f64).sum::<f64>() / count.max(1) as f64
        };
        let own = mean(&mut members.iter().copied(), n);
        own - mean(&mut (groups.slow.len()..values.len()), groups.counts[1])
    };
    let most = (0..ranked.values.len())
        .max_by(|a, b| extra(&ranked.values[*a]).total_cmp(&extra(&ranked.values[*b])).then(b.cmp(a)));
    let mean_ns = divide_rounded(sum, n.into());
    let cause = most.and_then(|at| ranked.phrases.get(at)).map_or_else(String::new, |p| sentence_case(p));
    let more = figure::time(most.map_or(0.0, |at| extra(&ranked.values[at])));
    let sentence = format!(
        "{n} of {} slow executions, {} on average: {cause}, {more} more than the fast ones.",
        groups.counts[0],
        figure::time(mean_ns as f64)
    );
    SlowKind { members: ids, count: n, mean_ns, cause: most.map(|at| at as u32 + 1), sentence }
}
