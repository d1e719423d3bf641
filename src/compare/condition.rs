//! `--fail-if CONDITION`: the condition on which a comparison fails a build (`p95>+5%`, `extra>2ms`).
//!
//! A quantity of the slow group (`mean`, a percentile, or `extra`, the difference of the means) exceeds the fast
//! group's by a share (`+5%`) or by a time (`2ms`). It holds only if the difference is significant: at most one in
//! a hundred random splits of the same executions may reach it. Meant for two versions as two groups
//! (`--slow trace=new --fast trace=old`).

use super::Comparison;
use super::trend::lengths::Figure;
use crate::base::statistics::{Random, Sums, welch};
use crate::base::time::Ns;
use crate::base::{figure, quantity};
use crate::model::Model;
use crate::model::execution::ExecutionId;
use crate::model::weights::RankedValues;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

const ROUNDS: usize = 400;
const MAY_REACH: usize = ROUNDS / 100;
/// The chance that a difference between the runs of two profiles may have.
const RUNS_DIFFER: f64 = 0.01;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Quantity {
    Mean,
    Extra,
    Percentile(f64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// Percent of the fast group's value.
    Percent(f64),
    /// Nanoseconds more than the fast group's value.
    Ns(i64),
}

/// A condition; `Display` writes it as the user would type it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FailIf {
    quantity: Quantity,
    limit: Limit,
}

/// A text that is not a condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "condition `{0}`: write `extra>2ms`, `mean>+5%` or `p95>+5%` (extra, mean or a percentile, `>`, a time or a \
     percentage)"
)]
pub struct ConditionError(String);

impl FromStr for FailIf {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let parsed = || {
            let (quantity, limit) = text.split_once('>')?;
            let quantity = match quantity.trim() {
                "mean" => Quantity::Mean,
                "extra" => Quantity::Extra,
                percentile => {
                    let percent = percentile.strip_prefix('p')?.parse().ok()?;
                    Quantity::Percentile(Some(percent).filter(|p| (0.0..=100.0).contains(p))?)
                }
            };
            let limit = limit.trim();
            let limit = limit.strip_prefix('+').unwrap_or(limit);
            let limit = match limit.strip_suffix('%') {
                Some(percent) => {
                    Limit::Percent(percent.trim().parse().ok().filter(|p: &f64| p.is_finite() && *p >= 0.0)?)
                }
                None => Limit::Ns(quantity::parse(limit, quantity::TIME).filter(|ns| *ns >= 0)?),
            };
            Some(FailIf { quantity, limit })
        };
        parsed().ok_or_else(|| ConditionError(text.into()))
    }
}

impl fmt::Display for FailIf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.quantity {
            Quantity::Mean => write!(f, "mean")?,
            Quantity::Extra => write!(f, "extra")?,
            Quantity::Percentile(p) => write!(f, "p{p}")?,
        }
        match self.limit {
            Limit::Percent(p) => write!(f, ">+{p}%"),
            Limit::Ns(ns) => write!(f, ">{}", quantity::exact(ns, quantity::TIME)),
        }
    }
}

impl FailIf {
    /// A sentence if the condition holds for the comparison, else `None`.
    pub fn holds(&self, model: &Model, c: &Comparison) -> Option<String> {
        if model.profile.is_some() {
            return self.holds_of_profiles(model, c);
        }
        let weights = model.executions.weights();
        let durations = |members: &[ExecutionId]| -> Vec<(i64, u64)> {
            members.iter().map(|e| (model.executions.duration(e.index()), weights.of(e.index()))).collect()
        };
        let (slow, fast) = (durations(&c.slow.members), durations(&c.fast.members));
        let (of_slow, of_fast) = (self.measure(&slow)?, self.measure(&fast)?);
        if !self.exceeds(of_slow, of_fast) || !self.is_significant(&slow, &fast, of_slow - of_fast) {
            return None;
        }
        Some(self.sentence(of_slow, of_fast))
    }

    /// The figure of a trend that the condition is about.
    pub fn figure(&self) -> Figure {
        match self.quantity {
            Quantity::Mean | Quantity::Extra => Figure::Mean,
            Quantity::Percentile(percent) => Figure::Percentile(percent),
        }
    }

    /// A sentence if the condition holds for a figure before and after a change that is known to be significant.
    pub fn holds_of_change(&self, before: Ns, after: Ns) -> Option<String> {
        self.exceeds(after as f64, before as f64).then(|| self.sentence(after as f64, before as f64))
    }

    fn exceeds(&self, of_slow: f64, of_fast: f64) -> bool {
        let more = of_slow - of_fast;
        match self.limit {
            Limit::Percent(percent) => more > of_fast.abs() * percent / 100.0,
            Limit::Ns(ns) => more > ns as f64,
        }
    }

    fn sentence(&self, of_slow: f64, of_fast: f64) -> String {
        let more = of_slow - of_fast;
        let (slow, fast) = (figure::time(of_slow), figure::time(of_fast));
        let share = if of_fast > 0.0 { format!(" (+{})", figure::share(more / of_fast)) } else { String::new() };
        format!("{self} holds: {slow} against {fast}, {} more{share}", figure::time(more))
    }

    /// True for a percentile, which the samples of a profile do not have.
    pub fn is_percentile(&self) -> bool {
        matches!(self.quantity, Quantity::Percentile(_))
    }

    /// The sentence for two profiles if the condition holds of what their runs took in all. Significant where the runs
    /// of both sides differ by more than among themselves, or where the verdict is sure of a function that takes more.
    fn holds_of_profiles(&self, model: &Model, c: &Comparison) -> Option<String> {
        let (of_slow, of_fast) = (c.slow.mean_ns as f64, c.fast.mean_ns as f64);
        let more = of_slow - of_fast;
        let exceeds = match self.limit {
            Limit::Percent(percent) => more > of_fast * percent / 100.0,
            Limit::Ns(ns) => more > ns as f64,
        };
        let [slow, fast] = [&c.slow, &c.fast].map(|group| run_totals(model, &group.members));
        let repeated = slow.n >= 2 && fast.n >= 2;
        let is_more = || welch(&fast, &slow).is_some_and(|test| test.p <= RUNS_DIFFER);
        let differ = c.verdict.confident || repeated && is_more();
        let share = if of_fast > 0.0 { format!(" (+{})", figure::share(more / of_fast)) } else { String::new() };
        let [slow, fast, more] = [of_slow, of_fast, more].map(|amount| model.amount(amount));
        (exceeds && differ).then(|| format!("{self} holds: {slow} against {fast}, {more} more{share}"))
    }

    /// The quantity of durations, with how many executions have each.
    fn measure(&self, durations: &[(i64, u64)]) -> Option<f64> {
        match self.quantity {
            Quantity::Mean | Quantity::Extra => {
                let sum: i128 = durations.iter().map(|(ns, weight)| i128::from(*ns) * i128::from(*weight)).sum();
                let count: u64 = durations.iter().map(|(_, weight)| weight).sum();
                (!durations.is_empty()).then(|| sum as f64 / count as f64)
            }
            Quantity::Percentile(p) => {
                let are_one = durations.iter().all(|(_, weight)| *weight == 1);
                RankedValues::new(durations.iter().copied(), are_one).nearest_rank(p).map(|v| v as f64)
            }
        }
    }

    /// True if at most one in a hundred random splits of the same executions differs as much.
    fn is_significant(&self, slow: &[(i64, u64)], fast: &[(i64, u64)], more: f64) -> bool {
        let mut all: Vec<(i64, u64)> = slow.iter().chain(fast).copied().collect();
        let mut random = Random::new(0xFA11_1F00);
        let reached = (0..ROUNDS).filter(|_| {
            for i in 0..slow.len() {
                let j = i + random.below(all.len() - i);
                all.swap(i, j);
            }
            let (a, b) = all.split_at(slow.len());
            self.measure(a).zip(self.measure(b)).is_some_and(|(a, b)| a - b >= more)
        });
        reached.count() <= MAY_REACH
    }
}

/// The totals of the runs that some samples come from.
fn run_totals(model: &Model, members: &[ExecutionId]) -> Sums {
    let mut totals = BTreeMap::new();
    for member in members {
        let total: &mut u64 = totals.entry(model.executions.trace.get(member.index())).or_default();
        *total = total.saturating_add(model.executions.duration(member.index()).unsigned_abs());
    }
    let mut sums = Sums::zeros(totals.len() as u64);
    totals.into_values().for_each(|total| sums.put(total));
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ctx::Ctx;
    use crate::compare::scenario::ModelBuilder;
    use crate::compare::{ComparisonRequest, compare};

    #[test]
    fn fail_if_parses_what_it_displays() {
        for text in ["p95>+5%", "extra>2ms", "mean>+12.5%", "p99.9>1.5s"] {
            assert_eq!(text.parse::<FailIf>().unwrap().to_string(), text);
        }
        for text in ["", "p95", "p95>", "p95<5%", "extra>2mz", "p101>1ms", "mean>-3%", "p95>nan%"] {
            let error = text.parse::<FailIf>().unwrap_err().to_string();
            assert!(error.contains("write `extra>2ms`"), "{error}");
        }
    }

    /// Two versions: the new one `percent` slower; both noisy.
    fn versions(percent: u64, n: usize) -> (Model, Comparison) {
        let mut s = ModelBuilder::new(9);
        for i in 0..2 * n {
            let ns = s.around(3.0);
            let (kind, ns) = if i % 2 == 0 { ("old", ns) } else { ("new", ns + ns * percent / 100) };
            s.run(kind, "p", "p", 1, &[("p;main", ns)]);
        }
        let model = s.seal();
        let filter = |t: &str| vec![t.parse().unwrap()];
        let request =
            ComparisonRequest { slow: filter("type=new"), fast: filter("type=old"), ..ComparisonRequest::default() };
        let c = compare(&model, &request, &Ctx::new(1)).unwrap();
        (model, c)
    }

    #[test]
    fn fail_if_holds_only_beyond_the_limit_and_beyond_chance() {
        let holds = |text: &str, (model, c): &(Model, Comparison)| text.parse::<FailIf>().unwrap().holds(model, c);
        let slower = versions(30, 400);
        assert!(holds("mean>+10%", &slower).is_some_and(|s| s.starts_with("mean>+10% holds: ")));
        assert!(holds("extra>100us", &slower).is_some() && holds("p95>+5%", &slower).is_some());
        assert_eq!(holds("mean>+60%", &slower), None);
        assert_eq!(holds("extra>5ms", &slower), None);
        assert_eq!(holds("extra>0ns", &versions(0, 400)), None, "noise fails no build");
        assert_eq!(holds("p95>+1%", &versions(20, 4)), None, "too few to distinguish");
    }
}
