//! Small statistics: exact sums, the tests that the comparison uses, percentiles.
//!
//! In go integers (nanoseconds, counts); sums stay integers, so that adding in any order gives the same bits, and
//! floats appear only in results. Each test is checked against published values. ALGORITHMS.md 7.2 and 7.4.
//! Cost: [`Sums`] and [`welch`] O(1) per value, [`mann_whitney`] O(n log n), [`benjamini_hochberg`] O(n log n).

use statrs::function::beta::beta_reg;
use statrs::function::erf::{erfc, erfc_inv};

/// Number, sum and sum of squares of values that are not negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// How many values.
    pub n: u64,
    /// Their sum.
    pub s1: u128,
    /// The sum of their squares; saturates beyond 2^128, which only broken clocks reach.
    pub s2: u128,
}

impl Sums {
    /// `n` values of zero.
    pub fn zeros(n: u64) -> Self {
        Sums { n, s1: 0, s2: 0 }
    }

    /// Replace one of the zeros by `x`.
    pub fn put(&mut self, x: u64) {
        self.put_times(x, 1);
    }

    /// Replace so many of the zeros by `x`.
    pub fn put_times(&mut self, x: u64, times: u64) {
        let (x, times) = (u128::from(x), u128::from(times));
        self.s1 = self.s1.saturating_add(x * times);
        self.s2 = self.s2.saturating_add((x * x).saturating_mul(times));
    }

    /// The mean; zero of no values.
    pub fn mean(&self) -> f64 {
        if self.n == 0 { 0.0 } else { self.s1 as f64 / self.n as f64 }
    }

    /// Sum of the squared distances from the mean: `s2 - s1²/n`, exact until the final division.
    fn scatter(&self) -> f64 {
        if self.n == 0 {
            return 0.0;
        }
        let n = u128::from(self.n);
        match (self.s2.checked_mul(n), self.s1.checked_mul(self.s1)) {
            (Some(left), Some(right)) => left.saturating_sub(right) as f64 / self.n as f64,
            _ => (self.s2 as f64 - self.s1 as f64 * self.s1 as f64 / self.n as f64).max(0.0),
        }
    }

    /// Variance of these values.
    pub fn population_variance(&self) -> f64 {
        if self.n == 0 { 0.0 } else { self.scatter() / self.n as f64 }
    }

    /// Estimate of the variance of what these values are drawn from; zero of fewer than two.
    pub fn sample_variance(&self) -> f64 {
        if self.n < 2 { 0.0 } else { self.scatter() / (self.n - 1) as f64 }
    }
}

/// Result of Welch's test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Welch {
    /// Difference of the means (second minus first) in standard errors.
    pub t: f64,
    /// Degrees of freedom after Welch and Satterthwaite.
    pub df: f64,
    /// Two-sided.
    pub p: f64,
}

/// Welch's t test of two means; `None` with fewer than two values on a side. Without any variance the means either
/// agree (p = 1) or differ beyond doubt (p = 0).
pub fn welch(a: &Sums, b: &Sums) -> Option<Welch> {
    if a.n < 2 || b.n < 2 {
        return None;
    }
    let variances = [a.sample_variance() / a.n as f64, b.sample_variance() / b.n as f64];
    Some(welch_of_means(b.mean() - a.mean(), variances, [a.n as f64, b.n as f64]))
}

/// Welch's test of values some of which represent several: the sums are weighted, and `sizes` are the numbers of values
/// of equal weight that would say as much of the means. `None` with fewer than two on a side.
pub fn welch_of_sample(a: &Sums, b: &Sums, sizes: [f64; 2]) -> Option<Welch> {
    if sizes == [a.n as f64, b.n as f64] {
        return welch(a, b);
    }
    let [na, nb] = sizes;
    if na < 2.0 || nb < 2.0 {
        return None;
    }
    let variances = [a.population_variance() / (na - 1.0), b.population_variance() / (nb - 1.0)];
    Some(welch_of_means(b.mean() - a.mean(), variances, sizes))
}

/// Welch's test of the difference of two means by their variances and the numbers of values, at least two.
fn welch_of_means(difference: f64, [va, vb]: [f64; 2], [na, nb]: [f64; 2]) -> Welch {
    let error = (va + vb).sqrt();
    if error == 0.0 {
        let same = difference == 0.0;
        let t = if same { 0.0 } else { f64::INFINITY.copysign(difference) };
        return Welch { t, df: na + nb - 2.0, p: f64::from(u8::from(same)) };
    }
    let t = difference / error;
    let df = (va + vb).powi(2) / (va * va / (na - 1.0) + vb * vb / (nb - 1.0));
    Welch { t, df, p: student_two_sided(t, df) }
}

/// The probability that a value of the second group exceeds one of the first, ties counting half, of values with the
/// numbers for which they stand. `None` when a side is empty. Both sides are sorted in place.
pub fn superiority(a: &mut [(i64, u64)], b: &mut [(i64, u64)]) -> Option<f64> {
    a.sort_unstable();
    b.sort_unstable();
    let sum = |side: &[(i64, u64)]| side.iter().map(|(_, weight)| *weight as f64).sum::<f64>();
    let (all_a, all_b) = (sum(a), sum(b));
    let (mut below, mut at, mut exceeding) = (0.0, 0, 0.0);
    for of_b in b.chunk_by(|x, y| x.0 == y.0) {
        while a.get(at).is_some_and(|(value, _)| *value < of_b[0].0) {
            below += a[at].1 as f64;
            at += 1;
        }
        let equal = sum(&a[at..at + a[at..].partition_point(|(value, _)| *value == of_b[0].0)]);
        exceeding += sum(of_b) * (below + equal / 2.0);
    }
    (all_a > 0.0 && all_b > 0.0).then(|| exceeding / (all_a * all_b))
}

/// Probability that Student's t with `df` degrees of freedom is further from zero than `t`.
fn student_two_sided(t: f64, df: f64) -> f64 {
    let x = df / (df + t * t);
    if !x.is_finite() || x <= 0.0 {
        return 0.0;
    }
    beta_reg(df / 2.0, 0.5, x.min(1.0))
}

/// Result of the Mann-Whitney test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MannWhitney {
    /// Pairs in which the second group's value is greater; ties count half.
    pub u: f64,
    /// `u` by the number of pairs: the probability that one of the second group exceeds one of the first.
    pub superiority: f64,
    /// Two-sided.
    pub p: f64,
}

/// Mann-Whitney's test with mid-ranks and tie correction: exact up to 400 pairs without ties, else the normal
/// approximation with continuity correction. `None` when a side is empty. Both sides are sorted in place.
pub fn mann_whitney(a: &mut [i64], b: &mut [i64]) -> Option<MannWhitney> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    a.sort_unstable();
    b.sort_unstable();
    let (mut in_a, mut in_b) = (&*a, &*b);
    let (n, m) = (a.len() as f64, b.len() as f64);
    // Twice the rank sum of the second group, so that mid-ranks stay integers.
    let (mut rank_sum_twice, mut ties, mut seen) = (0_u128, 0.0, 0_u128);
    while let Some(least) = in_a.first().into_iter().chain(in_b.first()).min().copied() {
        let of_a = in_a.iter().take_while(|v| **v == least).count();
        let of_b = in_b.iter().take_while(|v| **v == least).count();
        (in_a, in_b) = (&in_a[of_a..], &in_b[of_b..]);
        let size = of_a + of_b;
        rank_sum_twice += of_b as u128 * (2 * seen + size as u128 + 1);
        seen += size as u128;
        let size = size as f64;
        ties += size * size * size - size;
    }
    let u = rank_sum_twice as f64 / 2.0 - m * (m + 1.0) / 2.0;
    let p = if ties == 0.0 && a.len() * b.len() <= 400 {
        exact_two_sided(a.len(), b.len(), u as usize)
    } else {
        let total = n + m;
        let variance = n * m / 12.0 * (total + 1.0 - ties / (total * (total - 1.0)));
        let distance = ((u - n * m / 2.0).abs() - 0.5).max(0.0);
        if variance > 0.0 { erfc(distance / variance.sqrt() / std::f64::consts::SQRT_2) } else { 1.0 }
    };
    Some(MannWhitney { u, superiority: u / (n * m), p })
}

/// Exact distribution of U: the number of ways to reach each sum, one value of the first group after the other
/// (the coefficients of a Gaussian binomial).
fn exact_two_sided(n: usize, m: usize, u: usize) -> f64 {
    let pairs = n * m;
    let mut ways = vec![0.0_f64; pairs + 1];
    ways[0] = 1.0;
    for i in 1..=n {
        for k in (m + i..=pairs).rev() {
            ways[k] -= ways[k - m - i];
        }
        for k in i..=pairs {
            ways[k] += ways[k - i];
        }
    }
    let all: f64 = ways.iter().sum();
    let low: f64 = ways.iter().take(u.min(pairs - u.min(pairs)) + 1).sum();
    (2.0 * low / all).min(1.0)
}

/// Corrects p-values for their number (Benjamini and Hochberg): the share of false alarms among all values at most
/// this small. The result is in the order of the input.
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*b].total_cmp(&p[*a]).then(b.cmp(a)));
    let mut corrected = vec![1.0; p.len()];
    let mut least = 1.0_f64;
    for (from_top, i) in order.iter().enumerate() {
        let rank = p.len() - from_top;
        least = least.min(p[*i] * p.len() as f64 / rank as f64);
        corrected[*i] = least;
    }
    corrected
}

/// The number of standard deviations above the mean beyond which `share` of a normal distribution is.
pub fn upper_normal(share: f64) -> f64 {
    std::f64::consts::SQRT_2 * erfc_inv((2.0 * share).clamp(1e-12, 2.0 - 1e-12))
}

/// The `percent`th percentile by nearest rank of an ascending list; `None` of an empty one.
pub fn nearest_rank(sorted: &[i64], percent: f64) -> Option<i64> {
    sorted.get(nearest_rank_of(sorted.len(), percent)).copied()
}

/// The lower median of a list in any order; zero of an empty one.
pub fn median(mut values: Vec<i64>) -> i64 {
    values.sort_unstable();
    nearest_rank(&values, 50.0).unwrap_or(0)
}

/// The position of the `percent`th percentile by nearest rank in an ascending list of this many; 0 in an empty one.
pub fn nearest_rank_of(count: usize, percent: f64) -> usize {
    // The small term undoes what the product of an inexact percentage (99.9) may have added.
    let rank = (percent * count as f64 / 100.0 - 1e-9).ceil().max(1.0) as usize;
    rank.min(count).saturating_sub(1)
}

/// Integer division rounded to the nearest, halves away from zero; zero when dividing by zero.
pub fn divide_rounded(numerator: i128, denominator: u128) -> i64 {
    if denominator == 0 {
        return 0;
    }
    let size = numerator.unsigned_abs();
    let rounded = size / denominator + u128::from(size % denominator >= denominator.div_ceil(2));
    let rounded = i64::try_from(rounded).unwrap_or(i64::MAX);
    if numerator < 0 { -rounded } else { rounded }
}

/// A small generator of reproducible numbers (SplitMix64): the same seed gives the same tests on every machine.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator that begins at `seed`.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n` (0 when `n` is 0).
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next_u64()) * n as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(values: &[u64]) -> Sums {
        let mut s = Sums::zeros(values.len() as u64);
        values.iter().for_each(|v| s.put(*v));
        s
    }

    /// The worked example of ALGORITHMS.md 7.3 and 7.4.
    const LEFT: [u64; 5] = [10, 12, 11, 9, 8];
    const RIGHT: [u64; 3] = [14, 15, 16];

    #[test]
    fn variances_of_the_worked_example() {
        let (l, r) = (sums(&LEFT), sums(&RIGHT));
        assert_eq!((l.mean(), r.mean()), (10.0, 15.0));
        assert_eq!((l.population_variance(), l.sample_variance(), r.sample_variance()), (2.0, 2.5, 1.0));
    }

    #[test]
    fn huge_values_lose_precision_but_never_panic() {
        let s = sums(&[i64::MAX as u64, i64::MAX as u64, 0]);
        assert!(s.sample_variance().is_finite() && s.sample_variance() > 1e37);
    }

    #[test]
    fn welch_of_the_worked_example() {
        let w = welch(&sums(&LEFT), &sums(&RIGHT)).unwrap();
        assert!((w.t - 5.477).abs() < 5e-4 && (w.df - 5.88).abs() < 5e-3 && (w.p - 0.0017).abs() < 5e-5, "{w:?}");
        assert_eq!(welch(&sums(&[1]), &sums(&RIGHT)), None);
        assert_eq!(welch(&sums(&[4, 4]), &sums(&[4, 4])).unwrap().p, 1.0);
        assert_eq!(welch(&sums(&[4, 4]), &sums(&[5, 5])).unwrap().p, 0.0);
    }

    /// R: `pt(2, 10)`, `pt(12, 30)`.
    #[test]
    fn student_agrees_with_tables() {
        assert!((student_two_sided(2.228, 10.0) - 0.05).abs() < 1e-4);
        assert!((student_two_sided(2.0, 10.0) - 0.073_388).abs() < 1e-6);
        assert!(student_two_sided(40.0, 200.0) < 1e-90);
    }

    #[test]
    fn mann_whitney_exact_and_with_ties() {
        let w = mann_whitney(&mut LEFT.map(|v| v as i64), &mut RIGHT.map(|v| v as i64)).unwrap();
        assert_eq!((w.u, w.superiority), (15.0, 1.0));
        assert!((w.p - 2.0 / 56.0).abs() < 1e-12);
        let same = mann_whitney(&mut [3, 3, 3], &mut [3, 3]).unwrap();
        assert_eq!((same.superiority, same.p), (0.5, 1.0));
        assert_eq!(mann_whitney(&mut [], &mut [1]), None);
    }

    /// Published table of critical values: n = 5, m = 8, two-sided 0.05 at U = 6 and not at U = 7.
    #[test]
    fn mann_whitney_agrees_with_the_critical_values() {
        assert!(exact_two_sided(5, 8, 6) <= 0.05 && exact_two_sided(5, 8, 7) > 0.05);
        assert!(exact_two_sided(8, 10, 17) <= 0.05 && exact_two_sided(8, 10, 18) > 0.05);
    }

    /// The fifteen p-values of Benjamini and Hochberg (1995): four are rejected at 0.05.
    #[test]
    fn benjamini_hochberg_of_the_paper() {
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528,
            0.7590, 1.0,
        ];
        let q = benjamini_hochberg(&p);
        assert_eq!(q.iter().filter(|q| **q <= 0.05).count(), 4);
        assert!((q[3] - 0.0095 * 15.0 / 4.0).abs() < 1e-12 && q[14] == 1.0);
    }

    #[test]
    fn percentiles_by_nearest_rank() {
        let v = [15, 20, 35, 40, 50];
        let at = |p| nearest_rank(&v, p);
        assert_eq!(
            (at(5.0), at(30.0), at(40.0), at(50.0), at(100.0)),
            (Some(15), Some(20), Some(20), Some(35), Some(50))
        );
        let thousand: Vec<i64> = (1..=1000).collect();
        assert_eq!((nearest_rank(&thousand, 99.9), nearest_rank(&[], 50.0)), (Some(999), None));
    }

    #[test]
    fn division_rounds_to_the_nearest() {
        let d = divide_rounded;
        assert_eq!((d(7, 2), d(-7, 2), d(6, 4), d(5, 4), d(1, 3), d(2, 3), d(0, 5)), (4, -4, 2, 1, 0, 1, 0));
    }

    /// First outputs of the reference SplitMix64 with seed 0.
    #[test]
    fn random_is_the_published_sequence() {
        let mut r = Random::new(0);
        assert_eq!((r.next_u64(), r.next_u64()), (0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4));
        assert!((0..1000).all(|_| r.below(7) < 7));
    }
}
