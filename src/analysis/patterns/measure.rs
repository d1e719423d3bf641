//! Durations of the occurrences of each pattern, and the limit from which on an occurrence is late.
//!
//! In: the table of patterns and the operations. Out: durations, sorted once ([`Durations`]); from them, for any q and
//! s and without mining again, the limit of each pattern and its verdict ([`DurationLimits`]). ALGORITHMS.md 9.4. Cost:
//! O(n log n) in the occurrences once, then O(1) per pattern and choice.
//!
//! An occurrence lasts until the operation after it begins. So the computation after its last operation belongs to it;
//! otherwise the time between two iterations of a loop would belong to none. Where the following operation is unusual
//! for the pattern (the loop is over), the occurrence ends with its last operation.

use super::table::{Occurrence, PatternId, PatternTable};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::names::NameId;
use crate::base::parallel::in_order;
use crate::base::time::{Ns, Span};
use crate::event::operation::{Operation, Operations};
use crate::model::settings::{PatternVerdict, Settings, ThresholdRule};
use std::collections::BTreeMap;

/// The fewest occurrences for statistics, and the fewest times that an operation must follow to count as usual.
const FEWEST: usize = 10;

/// Durations below this are within the clock's granularity: no limit is smaller.
pub(super) const SMALLEST: Ns = 1_000;

/// Durations of one pattern's occurrences.
#[derive(Clone, Debug, Default)]
pub struct Durations {
    /// In the order of the occurrences.
    pub each: Vec<Ns>,
    /// Sorted: first those of all occurrences except first iterations of loops, then those of first iterations where
    /// there are enough of them.
    sorted: [Vec<Ns>; 2],
    /// By occurrence: the population it belongs to.
    opens: Vec<bool>,
    /// Operations that usually follow: the time before them belongs to the occurrence.
    followers: Vec<NameId>,
}

/// Measure all patterns.
pub fn measure(table: &PatternTable, operations: &Operations, ctx: &Ctx) -> Result<Vec<Durations>, Cancelled> {
    let mut all = Vec::with_capacity(table.patterns.len());
    let measure = |p: usize| Durations::new(table, operations, PatternId::at(p));
    in_order(ctx, table.patterns.len(), measure, |_, durations| all.push(durations))?;
    Ok(all)
}

fn operations_of(operations: &Operations, occurrence: Occurrence) -> &[Operation] {
    let all = operations.sequences.get(occurrence.stream as usize).map_or(&[][..], |s| &s.operations);
    all.get(occurrence.first as usize..).unwrap_or(&[])
}

impl Durations {
    fn new(table: &PatternTable, operations: &Operations, id: PatternId) -> Self {
        let length = table.patterns[id.index()].length as usize;
        let occurrences = &table.occurrences[id.index()];
        let mut following: BTreeMap<NameId, usize> = BTreeMap::new();
        for occurrence in occurrences {
            if let Some(next) = operations_of(operations, *occurrence).get(length) {
                *following.entry(next.symbol).or_default() += 1;
            }
        }
        let followers = following.into_iter().filter(|(_, n)| *n >= FEWEST).map(|(symbol, _)| symbol).collect();
        let mut durations = Durations { followers, ..Durations::default() };
        durations.each = occurrences.iter().map(|o| durations.events(operations, *o, length).span().len()).collect();
        durations.opens = occurrences.iter().map(|o| o.opens).collect();
        // A few first iterations are no population of their own: they are counted with the others.
        let apart = durations.opens.iter().filter(|o| **o).count() >= FEWEST;
        for (duration, opens) in durations.each.iter().zip(&durations.opens) {
            durations.sorted[usize::from(*opens && apart)].push(*duration);
        }
        durations.sorted.iter_mut().for_each(|s| s.sort_unstable());
        durations
    }

    /// The events of an occurrence of a pattern of `length` operations.
    pub(super) fn events<'a>(&self, operations: &'a Operations, at: Occurrence, length: usize) -> Events<'a> {
        let all = operations_of(operations, at);
        let after = all.get(length).filter(|next| self.followers.binary_search(&next.symbol).is_ok());
        let end = length + usize::from(after.is_some());
        Events { operations: all.get(..end).unwrap_or(all), length }
    }

    /// Its limits under these settings.
    pub fn limits(&self, settings: &Settings) -> PatternLimits {
        let [usual, opening] = [false, true].map(|opens| self.population(opens, settings));
        PatternLimits { usual, opening }
    }

    fn population(&self, opens: bool, settings: &Settings) -> DurationLimits {
        let sorted = &self.sorted[usize::from(opens)];
        let n = sorted.len();
        let k = ((settings.q * n as f64).ceil() as usize).clamp(1, n.max(1));
        let at = |i: usize| sorted.get(i).copied().unwrap_or(0);
        let max_ref = at(k - 1);
        let judged = self.each.iter().zip(&self.opens).filter(|(_, o)| **o == opens).map(|(d, _)| *d);
        let longest = judged.max().unwrap_or(0);
        let limit = match settings.limit {
            ThresholdRule::Quotient => (settings.s * max_ref.max(SMALLEST) as f64).ceil() as Ns,
            ThresholdRule::Robust => robust_limit(sorted).max(SMALLEST),
        };
        let verdict = match (n < FEWEST, longest >= limit) {
            (true, _) => PatternVerdict::TooFew,
            (false, true) => PatternVerdict::Selected,
            (false, false) => PatternVerdict::Regular,
        };
        let typical = at((k - 1) / 2);
        let reference = self.each.iter().position(|d| *d == typical);
        DurationLimits { verdict, max_ref, limit, longest, reference }
    }
}

/// Median + 5 robust standard deviations.
fn robust_limit(sorted: &[Ns]) -> Ns {
    let middle = sorted.len().saturating_sub(1) / 2;
    let Some(median) = sorted.get(middle) else { return 0 };
    let mut deviations: Vec<Ns> = sorted.iter().map(|d| (d - median).abs()).collect();
    let (_, deviation, _) = deviations.select_nth_unstable(middle);
    median + (5.0 * 1.4826 * *deviation as f64).ceil() as Ns
}

/// A pattern under some settings, by population: first iterations of loops are compared with first iterations only, and
/// not judged where there are too few of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternLimits {
    /// All but first iterations.
    pub usual: DurationLimits,
    /// First iterations.
    pub opening: DurationLimits,
}

impl PatternLimits {
    /// The limits that an occurrence is compared with.
    pub fn of(&self, occurrence: Occurrence) -> &DurationLimits {
        if occurrence.opens { &self.opening } else { &self.usual }
    }

    /// Of the pattern as a whole: selected when either population is.
    pub fn verdict(&self) -> PatternVerdict {
        match self.opening.verdict {
            PatternVerdict::Selected => PatternVerdict::Selected,
            _ => self.usual.verdict,
        }
    }
}

/// One population of a pattern's occurrences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurationLimits {
    /// Selected, or why not.
    pub verdict: PatternVerdict,
    /// The longest of the reference group.
    pub max_ref: Ns,
    /// The duration from which on an occurrence is late.
    pub limit: Ns,
    /// The longest of all.
    pub longest: Ns,
    /// Position of the occurrence that others are compared with: the lower median of the reference group, the earliest
    /// of equals.
    pub reference: Option<usize>,
}

/// The events of one occurrence: its operations and the gaps between them, alternating.
#[derive(Clone, Copy, Debug)]
pub(super) struct Events<'a> {
    /// Its operations, and the one after it where the time before that belongs to it.
    operations: &'a [Operation],
    /// The number of operations without that one.
    length: usize,
}

impl Events<'_> {
    /// The number of events: event `2i` is operation `i`, event `2i + 1` the gap after it.
    pub(super) fn count(&self) -> usize {
        (2 * self.length.min(self.operations.len())).saturating_sub(usize::from(self.operations.len() <= self.length))
    }

    /// The time of an event, on the stream's own clock.
    pub(super) fn span_of(&self, event: usize) -> Span {
        let operation = |i: usize| self.operations.get(i).map_or(Span::default(), Operation::span);
        let this = operation(event / 2);
        if event.is_multiple_of(2) { this } else { Span::new(this.end, operation(event / 2 + 1).start) }
    }

    /// The time of the occurrence, on the stream's own clock.
    pub(super) fn span(&self) -> Span {
        match self.operations {
            [] => Span::default(),
            [first, .., next] if self.operations.len() > self.length => Span::new(first.start, next.start),
            [first, .., last] => Span::new(first.start, last.end),
            [only] => only.span(),
        }
    }
}
