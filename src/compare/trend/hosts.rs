//! Hosts of a fleet against each other: the one that differs at the same time, and those that moved at a change.
//!
//! In: a figure of each host in each stretch of time, or of each host's points before and after a change. Out: how
//! often a host had the most or the least of all, with the corrected chance of that; and for each change which hosts
//! moved, which did not, and which have too few points. Cost: linear in the values, quadratic in the stretches
//! of a host. ALGORITHMS.md 7.12.

use super::changes::CHANCE;
use crate::base::statistics::{benjamini_hochberg, mann_whitney, median};
use std::collections::BTreeMap;

/// The chance, after correction, below which a host is said to have moved.
const MOVED: f64 = 0.05;

/// A host among the others of its time.
#[derive(Clone, Debug, PartialEq)]
pub struct HostLevel {
    pub name: String,
    /// Stretches of time in which other hosts have a figure, too.
    pub compared: u64,
    /// Those in which it has the largest figure of all.
    pub highest: u64,
    /// Those in which it has the smallest.
    pub lowest: u64,
    /// The median over these stretches of its figure by the median of the others'.
    pub ratio: f64,
    /// The chance that any host has the most, or the least, as often; `None` where no number of times would be rare.
    pub p_value: Option<f64>,
}

impl HostLevel {
    /// True where it differs beyond chance.
    pub fn differs(&self) -> bool {
        self.p_value.is_some_and(|p| p <= CHANCE)
    }
}

/// The levels of all hosts that can be compared, by name. `stretches`: by stretch of time the figure of each host.
pub fn host_levels<'a>(stretches: impl IntoIterator<Item = &'a BTreeMap<String, i64>>) -> Vec<HostLevel> {
    struct Compared {
        /// By stretch: one by the number of hosts.
        chances: Vec<f64>,
        highest: u64,
        lowest: u64,
        ratios: Vec<f64>,
    }
    let mut hosts: BTreeMap<&str, Compared> = BTreeMap::new();
    for figures in stretches {
        if figures.len() < 2 {
            continue;
        }
        let mut sorted: Vec<i64> = figures.values().copied().collect();
        sorted.sort_unstable();
        for (host, figure) in figures {
            let others = figures.iter().filter(|(other, _)| *other != host).map(|(_, figure)| *figure);
            let none = Compared { chances: Vec::new(), highest: 0, lowest: 0, ratios: Vec::new() };
            let compared = hosts.entry(host).or_insert(none);
            compared.chances.push(1.0 / figures.len() as f64);
            // Of equal ones none has the most.
            let [is_most, is_least] = [sorted.iter().rev().take(2).copied().collect(), sorted[..2].to_vec()]
                .map(|ends: Vec<i64>| ends[0] == *figure && ends[1] != *figure);
            compared.highest += u64::from(is_most);
            compared.lowest += u64::from(is_least);
            compared.ratios.push(*figure as f64 / median(others.collect()).max(1) as f64);
        }
    }
    let many = 2.0 * hosts.len() as f64;
    let level = |(name, compared): (&str, Compared)| {
        let Compared { chances, highest, lowest, mut ratios } = compared;
        ratios.sort_by(f64::total_cmp);
        let corrected = |times: u64| (many * at_least(&chances, times)).min(1.0);
        let can_be_rare = corrected(chances.len() as u64) <= CHANCE;
        HostLevel {
            name: name.to_owned(),
            compared: chances.len() as u64,
            highest,
            lowest,
            ratio: ratios[(ratios.len() - 1) / 2],
            p_value: can_be_rare.then(|| corrected(highest.max(lowest))),
        }
    };
    hosts.into_iter().map(level).collect()
}

/// The probability that at least so many of independent events with these chances happen.
fn at_least(chances: &[f64], times: u64) -> f64 {
    // By number of events so far: its probability.
    let mut exactly = vec![1.0];
    for chance in chances {
        exactly.push(0.0);
        for many in (0..exactly.len()).rev() {
            let one_less = many.checked_sub(1).map_or(0.0, |less| exactly[less]);
            exactly[many] = exactly[many] * (1.0 - chance) + one_less * chance;
        }
    }
    exactly.iter().skip(times as usize).sum::<f64>().min(1.0)
}

/// What a host did at a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostMove {
    /// Its level moved, too, in the direction of the change.
    Moved,
    /// That is not shown by points that could show it.
    Stayed,
    /// It has too few points on a side.
    TooFew,
}

/// A host at a change.
#[derive(Clone, Debug, PartialEq)]
pub struct HostAtChange {
    pub name: String,
    /// The median of its points' figures before the change, and after it; `None` without a point there.
    pub levels: [Option<i64>; 2],
    pub moved: HostMove,
    /// Corrected for the number of hosts; `None` where it has too few points.
    pub p_value: Option<f64>,
}

impl HostAtChange {
    /// The level after by the one before.
    pub fn ratio(&self) -> Option<f64> {
        let [before, after] = self.levels;
        Some(after? as f64 / before?.max(1) as f64)
    }
}

/// The hosts at a change, by name: of each the figures of its points before it and after it. `rises`: the change does.
pub fn hosts_at_change(figures: BTreeMap<String, [Vec<i64>; 2]>, rises: bool) -> Vec<HostAtChange> {
    let level = |side: &Vec<i64>| (!side.is_empty()).then(|| median(side.clone()));
    let raw: Vec<Option<f64>> = figures.values().map(|sides| raw_p_value(sides, figures.len())).collect();
    let mut corrected = benjamini_hochberg(&raw.iter().copied().flatten().collect::<Vec<f64>>()).into_iter();
    let host = |((name, sides), raw): ((String, [Vec<i64>; 2]), Option<f64>)| {
        let levels = [level(&sides[0]), level(&sides[1])];
        let p_value = raw.and_then(|_| corrected.next());
        let same_direction = levels[1] > levels[0] && rises || levels[1] < levels[0] && !rises;
        let moved = match p_value {
            None => HostMove::TooFew,
            Some(p) if p <= MOVED && same_direction => HostMove::Moved,
            Some(_) => HostMove::Stayed,
        };
        HostAtChange { name, levels, moved, p_value }
    };
    figures.into_iter().zip(raw).map(host).collect()
}

/// The chance of the difference of a host's points; `None` where even points that overlap nowhere would not be rare
/// among so many hosts.
fn raw_p_value([before, after]: &[Vec<i64>; 2], hosts: usize) -> Option<f64> {
    let (mut low, mut high): (Vec<i64>, Vec<i64>) =
        ((0..before.len() as i64).collect(), (0..after.len() as i64).map(|i| i + before.len() as i64).collect());
    let rarest = mann_whitney(&mut low, &mut high)?.p;
    let (mut before, mut after) = (before.clone(), after.clone());
    let test = mann_whitney(&mut before, &mut after)?;
    // All hosts may have moved together: the smallest chance needs no correction then. One alone needs it.
    (rarest <= MOVED / hosts.max(1) as f64).then_some(test.p)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::statistics::Random;

    fn stretches(random: &mut Random, hosts: usize, days: usize, more: i64) -> Vec<BTreeMap<String, i64>> {
        let figure = |random: &mut Random, host: usize| {
            let own = if host == 2 { more } else { 0 };
            (format!("db-{host}"), 1_000 + random.below(200) as i64 + own)
        };
        (0..days).map(|_| (0..hosts).map(|host| figure(random, host)).collect()).collect()
    }

    #[test]
    fn host_levels_name_the_one_that_differs_and_none_in_noise() {
        let mut random = Random::new(8);
        for (hosts, days) in [(3, 7), (4, 6), (12, 4), (50, 3)] {
            let all = stretches(&mut random, hosts, days, 300);
            let differing: Vec<HostLevel> = host_levels(&all).into_iter().filter(HostLevel::differs).collect();
            assert!(differing.iter().any(|host| host.name == "db-2" && host.highest == days as u64), "{differing:?}");
            assert!(differing.iter().all(|host| host.name == "db-2" || host.ratio < 1.0), "{differing:?}");
        }
        let mut wrong = 0;
        for i in 0..300 {
            wrong += usize::from(host_levels(&stretches(&mut random, 3 + i % 9, 12, 0)).iter().any(HostLevel::differs));
        }
        assert!(wrong <= 10, "{wrong} of 300");
        // Two days of three hosts are never rare.
        assert!(host_levels(&stretches(&mut random, 3, 2, 900)).iter().all(|host| host.p_value.is_none()));
        assert_eq!(host_levels(&[BTreeMap::from([("alone".into(), 5)])]), []);
    }

    #[test]
    fn at_least_is_the_binomial_tail() {
        assert!((at_least(&[0.5; 10], 10) - 1.0 / 1024.0).abs() < 1e-15);
        assert!((at_least(&[0.5; 4], 3) - 5.0 / 16.0).abs() < 1e-15);
        assert_eq!((at_least(&[0.25; 3], 0), at_least(&[], 1)), (1.0, 0.0));
    }

    #[test]
    fn hosts_at_change_moved_stayed_or_have_too_few_points() {
        let sides = |n: i64, more: i64| [(0..n).collect::<Vec<i64>>(), (0..n).map(|i| i + more).collect()];
        let figures = |all: &[(&str, i64, i64)]| -> BTreeMap<String, [Vec<i64>; 2]> {
            all.iter().map(|(name, n, more)| ((*name).to_owned(), sides(*n, *more))).collect()
        };
        let moves = |all: &[(&str, i64, i64)], rises| -> Vec<HostMove> {
            hosts_at_change(figures(all), rises).iter().map(|host| host.moved).collect()
        };
        let all = [("a", 8, 90), ("b", 8, 0), ("c", 2, 90)];
        assert_eq!(moves(&all, true), [HostMove::Moved, HostMove::Stayed, HostMove::TooFew]);
        assert_eq!(moves(&[("a", 8, 90), ("b", 8, 70)], true), [HostMove::Moved; 2]);
        // One that rises does not explain that all fall.
        assert_eq!(moves(&[("a", 8, 90)], false), [HostMove::Stayed]);
        let one_side = BTreeMap::from([("new".to_owned(), [vec![], vec![5, 6]])]);
        assert_eq!(hosts_at_change(one_side, true)[0].levels, [None, Some(5)]);
    }
}
