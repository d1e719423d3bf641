//! The durations of executions, and the figures of them that a trend follows.
//!
//! In: durations, one by one. Out: how many, percentiles, means. They are kept as they are where there is room for all
//! of them, else by the buckets of [`DurationHistogram`], whose percentiles are at most 1 % more. Cost: a sort when
//! percentiles are asked for.

use super::super::Spread;
use crate::base::statistics::{Sums, divide_rounded, nearest_rank};
use crate::base::time::Ns;
use crate::model::partials::{DurationHistogram, added};
use std::fmt;
use std::str::FromStr;

/// Executions that a point needs whatever its figure is.
const FEWEST: f64 = 8.0;

/// The figure that a trend follows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    Mean,
    /// The percentile of this many percent, by nearest rank.
    Percentile(f64),
}

/// A text that is not a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write `mean` or a percentile: `p50`, `p95`, `p99.9`")]
pub struct FigureError;

impl FromStr for Figure {
    type Err = FigureError;

    fn from_str(text: &str) -> Result<Self, FigureError> {
        if text == "mean" {
            return Ok(Figure::Mean);
        }
        let percent = text.strip_prefix('p').and_then(|percent| percent.parse().ok());
        percent.filter(|p| (0.0..=100.0).contains(p)).map(Figure::Percentile).ok_or(FigureError)
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Figure::Mean => write!(f, "mean"),
            Figure::Percentile(percent) => write!(f, "p{percent}"),
        }
    }
}

impl Figure {
    /// Executions that a point needs: with fewer, a percentile is the longest or the shortest of them.
    pub fn fewest_executions(self) -> u64 {
        let beyond = match self {
            Figure::Mean => 50.0,
            Figure::Percentile(percent) => (100.0 - percent).min(percent),
        };
        if beyond <= 0.0 { FEWEST as u64 } else { (100.0 / beyond - 1e-9).ceil().max(FEWEST) as u64 }
    }
}

/// Durations.
#[derive(Clone, Debug, PartialEq)]
enum Kept {
    /// All of them; ascending once they are complete.
    Exact(Vec<Ns>),
    Rounded(DurationHistogram),
}

/// Durations of some executions.
#[derive(Clone, Debug, PartialEq)]
pub struct Lengths {
    kept: Kept,
    sums: Sums,
    /// How many durations were there: of a sample fewer than they represent.
    there: u64,
}

impl Lengths {
    /// None yet.
    pub fn new(exact: bool) -> Lengths {
        let kept = if exact { Kept::Exact(Vec::new()) } else { Kept::Rounded(DurationHistogram::default()) };
        Lengths { kept, sums: Sums::default(), there: 0 }
    }

    /// What a histogram has counted of so many executions that were there, each duration as the largest of its bucket.
    pub fn of_histogram(histogram: &DurationHistogram, there: u64) -> Lengths {
        let mut sums = Sums::zeros(histogram.count());
        for (bucket, count) in &histogram.counts {
            let (_, most) = DurationHistogram::bounds(*bucket);
            sums.s1 = sums.s1.saturating_add(u128::from(most.unsigned_abs()).saturating_mul(u128::from(*count)));
        }
        Lengths { kept: Kept::Rounded(histogram.clone()), sums, there }
    }

    /// Count the duration of an execution that represents so many.
    pub fn put(&mut self, duration: Ns, weight: u64) {
        if let (Kept::Exact(all), true) = (&self.kept, weight > 1) {
            let mut histogram = DurationHistogram::default();
            all.iter().for_each(|ns| histogram.put(*ns, 1));
            self.kept = Kept::Rounded(histogram);
        }
        match &mut self.kept {
            Kept::Exact(all) => all.push(duration),
            Kept::Rounded(histogram) => histogram.put(duration, weight),
        }
        self.there += 1;
        self.sums.n += weight;
        self.sums.put_times(u64::try_from(duration).unwrap_or(0), weight);
    }

    /// Count those of others.
    pub fn add(&mut self, other: &Lengths) {
        self.sums = added(self.sums, other.sums);
        self.there += other.there;
        match (&mut self.kept, &other.kept) {
            (Kept::Exact(all), Kept::Exact(more)) => all.extend_from_slice(more),
            (Kept::Rounded(histogram), Kept::Rounded(more)) => histogram.add(more),
            (Kept::Rounded(histogram), Kept::Exact(more)) => more.iter().for_each(|ns| histogram.put(*ns, 1)),
            (Kept::Exact(all), Kept::Rounded(more)) => {
                let mut histogram = more.clone();
                all.iter().for_each(|ns| histogram.put(*ns, 1));
                self.kept = Kept::Rounded(histogram);
            }
        }
    }

    /// All durations are there.
    pub fn complete(&mut self) {
        if let Kept::Exact(all) = &mut self.kept {
            all.sort_unstable();
        }
    }

    pub fn count(&self) -> u64 {
        self.sums.n
    }

    /// The percentile of complete durations.
    fn percentile(&self, percent: f64) -> Ns {
        match &self.kept {
            Kept::Exact(all) => nearest_rank(all, percent).unwrap_or(0),
            Kept::Rounded(histogram) => histogram.percentile(percent).map_or(0, |(_, most)| most),
        }
    }

    /// The mean, rounded to the nearest nanosecond.
    pub fn mean_ns(&self) -> Ns {
        divide_rounded(i128::try_from(self.sums.s1).unwrap_or(i128::MAX), self.sums.n.into())
    }

    /// The usual percentiles of complete durations.
    pub fn spread(&self) -> Spread {
        let [p50_ns, p95_ns, p99_ns, max_ns] = [50.0, 95.0, 99.0, 100.0].map(|percent| self.percentile(percent));
        Spread { p50_ns, p95_ns, p99_ns, max_ns }
    }

    /// A figure of complete durations; `None` where they are too few for it.
    pub fn figure(&self, figure: Figure) -> Option<Ns> {
        (self.there >= figure.fewest_executions()).then(|| match figure {
            Figure::Mean => self.mean_ns(),
            Figure::Percentile(percent) => self.percentile(percent),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figure_parses_what_it_displays_and_needs_executions() {
        for (text, fewest) in [("mean", 8), ("p50", 8), ("p95", 20), ("p99", 100), ("p99.9", 1000), ("p100", 8)] {
            let figure: Figure = text.parse().unwrap();
            assert_eq!(figure.to_string(), text);
            assert!(figure.fewest_executions() == fewest, "{text}");
        }
        for text in ["", "p", "p101", "median", "p-1", "pnan"] {
            assert_eq!(text.parse::<Figure>(), Err(FigureError), "{text}");
        }
    }

    #[test]
    fn lengths_by_buckets_are_those_of_the_durations_within_a_hundredth() {
        let (mut exact, mut rounded) = (Lengths::new(true), Lengths::new(false));
        for i in 0..400_i64 {
            exact.put(1_000_000 + i * i * 777, 1);
            rounded.put(1_000_000 + i * i * 777, 1);
        }
        exact.complete();
        rounded.complete();
        assert_eq!((exact.count(), exact.mean_ns()), (rounded.count(), rounded.mean_ns()));
        for (a, b) in
            [(exact.spread().p50_ns, rounded.spread().p50_ns), (exact.spread().p99_ns, rounded.spread().p99_ns)]
        {
            assert!(a <= b && b as f64 <= a as f64 * 1.01, "{a} {b}");
        }
        // Added up either way round.
        let (mut one, mut other) = (exact.clone(), rounded.clone());
        one.add(&rounded);
        other.add(&exact);
        assert_eq!((&one, one.count()), (&other, 800));
        assert_eq!(Lengths::new(true).figure(Figure::Percentile(95.0)), None);
    }
}
