//! Runs of a sequence that repeat: `read parse read parse read parse` is a unit of two, three times.
//!
//! In: a sequence, and units that repeat elsewhere. Out: runs that tile it. At each place the unit that covers most is
//! taken, of several the shortest. A unit that repeats in one of two sequences is a run of the other one as well where
//! it occurs there once, and it begins with the same element there: a rotation of a known unit is no unit. Cost: linear
//! in the sequence times [`LONGEST`]², and in the units that begin with an element. ALGORITHMS.md 7.10.

use foldhash::HashMap;
use std::hash::Hash;

/// Elements of a unit, at most.
const LONGEST: usize = 16;
/// Units that begin with the same element, at most; further ones are no runs of the other sequence.
const ALIKE: usize = 64;

/// A part of a sequence: a unit, so many times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RepeatRun {
    /// Where it begins.
    pub start: usize,
    /// Elements of the unit.
    pub unit: usize,
    /// How often the unit is there.
    pub count: usize,
}

impl RepeatRun {
    /// Its elements.
    pub fn len(&self) -> usize {
        self.unit * self.count
    }
}

/// Units by their first element.
#[derive(Debug)]
pub(super) struct Units<T>(HashMap<T, Vec<Vec<T>>>);

impl<T: Copy + Eq + Hash> Units<T> {
    /// The units of more than one element that repeat in one of two sequences; those of the first are preferred.
    pub fn of(a: &[T], b: &[T]) -> Units<T> {
        let mut units = Units(HashMap::default());
        for sequence in [a, b] {
            for run in units.runs(sequence) {
                let unit = &sequence[run.start..run.start + run.unit];
                let known = units.0.entry(unit[0]).or_default();
                if run.unit > 1 && known.len() < ALIKE && !known.iter().any(|known| known == unit) {
                    known.push(unit.to_vec());
                }
            }
        }
        units
    }

    fn has(&self, unit: &[T]) -> bool {
        self.0.get(&unit[0]).is_some_and(|known| known.iter().any(|known| known == unit))
    }

    /// The runs of a sequence.
    pub fn runs(&self, sequence: &[T]) -> Vec<RepeatRun> {
        let mut runs = Vec::new();
        let mut start = 0;
        while start < sequence.len() {
            let run = self.run_at(sequence, start);
            // A rotation of a known unit begins later.
            let later = (1..run.unit).find(|by| {
                let rotated = sequence.get(start + by..start + by + run.unit);
                !self.has(&sequence[start..start + run.unit]) && rotated.is_some_and(|rotated| self.has(rotated))
            });
            match later {
                None => {
                    runs.push(run);
                    start += run.len();
                }
                Some(by) => {
                    runs.extend((start..start + by).map(|start| RepeatRun { start, unit: 1, count: 1 }));
                    start += by;
                }
            }
        }
        runs
    }

    /// The run at a place that covers most.
    fn run_at(&self, sequence: &[T], start: usize) -> RepeatRun {
        let rest = &sequence[start..];
        let mut best = RepeatRun { start, unit: 1, count: times(rest, 1) };
        for unit in 2..=LONGEST.min(rest.len() / 2) {
            let run = RepeatRun { start, unit, count: times(rest, unit) };
            if run.count > 1 && run.len() > best.len() {
                best = run;
            }
        }
        for unit in self.0.get(&rest[0]).into_iter().flatten().filter(|unit| rest.starts_with(unit)) {
            let run = RepeatRun { start, unit: unit.len(), count: times(rest, unit.len()) };
            if run.len() > best.len() {
                best = run;
            }
        }
        best
    }
}

/// How often a sequence begins with its first elements.
fn times<T: Eq>(sequence: &[T], unit: usize) -> usize {
    let first = sequence.get(..unit).unwrap_or(sequence);
    sequence.chunks_exact(unit.max(1)).take_while(|chunk| *chunk == first).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::statistics::Random;

    fn runs(a: &str, b: &str) -> [Vec<String>; 2] {
        let [a, b]: [Vec<char>; 2] = [a, b].map(|text| text.chars().collect());
        let units = Units::of(&a, &b);
        [&a, &b].map(|sequence| {
            let name = |run: &RepeatRun| sequence[run.start..run.start + run.unit].iter().collect::<String>();
            units.runs(sequence).iter().map(|run| format!("{}{}", name(run), run.count)).collect()
        })
    }

    #[test]
    fn runs_are_the_units_that_cover_most() {
        assert_eq!(runs("aaaab", "")[0], ["a4", "b1"]);
        assert_eq!(runs("xababab", "")[0], ["x1", "ab3"]);
        assert_eq!(runs("abcabcab", "")[0], ["abc2", "a1", "b1"]);
        assert_eq!(runs("abc", "")[0], ["a1", "b1", "c1"]);
    }

    #[test]
    fn a_unit_of_one_sequence_is_one_of_the_other() {
        assert_eq!(runs("ababab", "xaby"), [vec!["ab3"], vec!["x1", "ab1", "y1"]]);
        assert_eq!(runs("ababab", "babab"), [vec!["ab3"], vec!["b1", "ab2"]], "a rotation is none");
        assert_eq!(runs("xaby", "ababab"), [vec!["x1", "ab1", "y1"], vec!["ab3"]]);
    }

    #[test]
    fn runs_tile_any_sequence() {
        let mut random = Random::new(5);
        for _ in 0..300 {
            let [a, b]: [Vec<u8>; 2] =
                [60, 40].map(|n| (0..random.below(n)).map(|_| random.below(3) as u8).collect::<Vec<u8>>());
            let units = Units::of(&a, &b);
            for sequence in [&a, &b] {
                let mut at = 0;
                for run in units.runs(sequence) {
                    assert_eq!(run.start, at);
                    let unit = &sequence[at..at + run.unit];
                    assert!(sequence[at..at + run.len()].chunks(run.unit).all(|chunk| chunk == unit));
                    at += run.len();
                }
                assert_eq!(at, sequence.len());
            }
        }
    }
}
