//! Occurrences whose calls differ from those of the others: an additional operation, a missing one, one in place of
//! another, or another order.
//!
//! In: occurrences ([`RouteOccurrence`]), each a run of one stream's operations, in populations that do the same work.
//! Out: the differences ([`Difference`]), which cost or save time. A transition from one operation to the
//! next is *rare* when at most one occurrence in `RARE` has it; a run of rare transitions is a difference, named by the
//! usual calls between its ends. Operations that are repeated more or less often than usual do not show in transitions
//! and are found by their number. If less than the part q of a population takes a usual route, no differences are
//! reported. Cost: two passes over the operations. ALGORITHMS.md 9.8.

use crate::base::ctx::Cancel;
use crate::base::names::NameId;
use crate::base::time::{Ns, Span};
use crate::event::operation::{Operation, Operations};
use crate::model::propagation::RouteChange;
use foldhash::{HashMap, HashSet};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

/// Fewer occurrences have no usual route.
pub const FEWEST: usize = 20;

/// A transition is rare if at most one occurrence in this many has it; of few occurrences, if only one has it.
const RARE: usize = 20;

/// The most steps along the usual route in which missing operations are searched.
const FARTHEST: usize = 64;

/// One occurrence: operations of a stream that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteOccurrence {
    /// The occurrences of one population are compared with each other.
    pub population: u32,
    /// Position of the stream.
    pub stream: u32,
    /// Positions of its operations there.
    pub operations: Range<u32>,
}

/// A difference of an occurrence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Position of the [`RouteOccurrence`].
    pub occurrence: u32,
    /// The kind of difference.
    pub change: RouteChange,
    /// Positions in the stream of the operations that differ; where one is missing, empty, before the operation that
    /// follows.
    pub operations: Range<u32>,
    /// The usual calls there.
    pub usual: Vec<NameId>,
    /// Excess over the usual calls there; negative if time was saved.
    pub excess: Ns,
    /// The usual duration of these calls.
    pub reference: Ns,
}

/// All differences, in order of the occurrences. `q` is the part of a population that must take usual routes; `s` is
/// the factor by which a varying number may be outside its range.
pub fn find(
    operations: &Operations,
    occurrences: &[RouteOccurrence],
    q: f64,
    s: f64,
    cancel: &Cancel,
) -> Vec<Difference> {
    let mut populations: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (at, occurrence) in (0..).zip(occurrences) {
        populations.entry(occurrence.population).or_default().push(at);
    }
    let mut found = Vec::new();
    for members in populations.into_values().filter(|m| m.len() >= FEWEST) {
        if cancel.is_cancelled() {
            break;
        }
        found.extend(Routes::new(operations, occurrences, members, s).differences(q));
    }
    found.sort_by_key(|d: &Difference| (d.occurrence, d.operations.start));
    found
}

/// An operation by name; `None` before the first and after the last.
type Stop = Option<NameId>;

/// The routes of one population.
struct Routes<'a> {
    operations: &'a Operations,
    occurrences: &'a [RouteOccurrence],
    members: Vec<u32>,
    /// Transitions of at most this many occurrences are rare.
    rare: u32,
    /// The number of occurrences that have a transition.
    transitions: HashMap<(Stop, Stop), u32>,
    /// After each operation the one that follows in most occurrences.
    next: HashMap<Stop, Stop>,
    /// By operation its usual numbers per occurrence.
    limits: HashMap<NameId, RangeInclusive<u32>>,
}

impl<'a> Routes<'a> {
    fn new(operations: &'a Operations, occurrences: &'a [RouteOccurrence], members: Vec<u32>, s: f64) -> Routes<'a> {
        let rare = (members.len() / RARE).max(1) as u32;
        let (transitions, next, limits) = Default::default();
        let mut routes = Routes { operations, occurrences, members, rare, transitions, next, limits };
        // By transition: the occurrence that had it last.
        let mut last: HashMap<(Stop, Stop), u32> = HashMap::default();
        let mut numbers: HashMap<NameId, Vec<u32>> = HashMap::default();
        for occurrence in routes.members.clone() {
            for pair in routes.transitions_of(occurrence) {
                if last.insert(pair, occurrence) != Some(occurrence) {
                    *routes.transitions.entry(pair).or_default() += 1;
                }
            }
            for (name, number) in routes.numbers(occurrence) {
                numbers.entry(name).or_default().push(number);
            }
        }
        let mut most: HashMap<Stop, (u32, Reverse<Stop>)> = HashMap::default();
        for ((from, to), count) in &routes.transitions {
            let best = most.entry(*from).or_insert((0, Reverse(*to)));
            *best = (*best).max((*count, Reverse(*to)));
        }
        routes.next = most.into_iter().map(|(from, (_, to))| (from, to.0)).collect();
        let (n, rare) = (routes.members.len(), rare as usize);
        routes.limits = numbers.into_iter().map(|(name, numbers)| (name, usual_range(numbers, n, rare, s))).collect();
        routes
    }

    fn of(&self, occurrence: u32) -> &'a [Operation] {
        let Some(occurrence) = self.occurrences.get(occurrence as usize) else { return &[] };
        let all = self.operations.sequences.get(occurrence.stream as usize).map_or(&[][..], |s| &s.operations);
        all.get(occurrence.operations.start as usize..occurrence.operations.end as usize).unwrap_or(&[])
    }

    fn stops(&self, occurrence: u32) -> impl Iterator<Item = Stop> + 'a {
        let inside = self.of(occurrence).iter().map(|o| Some(o.symbol));
        std::iter::once(None).chain(inside).chain(std::iter::once(None))
    }

    fn transitions_of(&self, occurrence: u32) -> impl Iterator<Item = (Stop, Stop)> + 'a {
        self.stops(occurrence).zip(self.stops(occurrence).skip(1))
    }

    /// The number of each operation in an occurrence.
    fn numbers(&self, occurrence: u32) -> BTreeMap<NameId, u32> {
        let mut numbers = BTreeMap::new();
        for operation in self.of(occurrence) {
            *numbers.entry(operation.symbol).or_default() += 1;
        }
        numbers
    }

    fn is_rare(&self, from: Stop, to: Stop) -> bool {
        self.transitions.get(&(from, to)).is_none_or(|count| *count <= self.rare)
    }

    /// The usual calls between two operations, empty where one usually follows the other. `None` where the usual route
    /// does not lead from one to the other.
    fn between(&self, from: Stop, to: Stop) -> Option<Vec<NameId>> {
        if !self.is_rare(from, to) {
            return Some(Vec::new());
        }
        let (mut calls, mut at) = (Vec::new(), from);
        while calls.len() < FARTHEST {
            let next = *self.next.get(&at)?;
            if self.is_rare(at, next) {
                return None;
            }
            if next == to {
                return Some(calls);
            }
            calls.push(next?);
            at = next;
        }
        None
    }

    fn differences(&self, q: f64) -> Vec<Difference> {
        let mut found: Vec<Difference> = Vec::new();
        let mut differing = 0;
        for occurrence in &self.members {
            let before = found.len();
            self.differences_of(*occurrence, &mut found);
            differing += usize::from(found.len() > before);
        }
        let n = self.members.len();
        if differing as f64 > (1.0 - q) * n as f64 {
            return Vec::new();
        }
        self.add_costs(&mut found);
        found
    }

    fn differences_of(&self, occurrence: u32, found: &mut Vec<Difference>) {
        let Some(first) = self.occurrences.get(occurrence as usize).map(|t| t.operations.start) else { return };
        let stops: Vec<Stop> = self.stops(occurrence).collect();
        let is_rare: Vec<bool> = stops.windows(2).map(|pair| self.is_rare(pair[0], pair[1])).collect();
        let before = found.len();
        let mut at = 0;
        for run in is_rare.chunk_by(|a, b| a == b) {
            // Stops `at` and `end` are on the usual route, those between them are not.
            let end = at + run.len();
            if run[0] {
                found.extend(self.difference(occurrence, first, &stops, at, end));
            }
            at = end;
        }
        if found.len() > before {
            return;
        }
        // Every transition is usual, but their numbers may not be.
        let numbers = self.numbers(occurrence);
        for (name, usual_numbers) in &self.limits {
            let number = numbers.get(name).copied().unwrap_or(0);
            // After the last of them; where there is none, at the end.
            let last = stops.iter().rposition(|s| *s == Some(*name)).unwrap_or(stops.len() - 2);
            let after = first + last as u32;
            let (change, operations, usual) = match () {
                () if number > *usual_numbers.end() => (RouteChange::Additional, after - 1..after, Vec::new()),
                () if number < *usual_numbers.start() => (RouteChange::Missing, after..after, vec![*name]),
                () => continue,
            };
            found.push(Difference { occurrence, change, operations, usual, excess: 0, reference: 0 });
        }
        // The names are unordered.
        found[before..].sort_by_key(|d| (d.operations.start, d.usual.clone()));
    }

    /// The difference between two stops.
    fn difference(&self, occurrence: u32, first: u32, stops: &[Stop], from: usize, to: usize) -> Option<Difference> {
        let inside: Vec<NameId> = stops.get(from + 1..to)?.iter().copied().flatten().collect();
        let position = |stop: usize| first + stop as u32 - 1;
        let mut operations = position(from + 1)..position(to);
        let mut usual = Vec::new();
        let change = match self.between(stops[from], stops[to]) {
            Some(calls) => {
                let change = compare(&inside, &calls)?;
                usual = calls;
                change
            }
            None => {
                // The route returns, or continues elsewhere: to an operation that is made too often, else out of order.
                let numbers = self.numbers(occurrence);
                let is_repeated = |stop: &usize| {
                    let Some(name) = stops.get(*stop).copied().flatten() else { return false };
                    let most = self.limits.get(&name).map_or(0, |numbers| *numbers.end());
                    numbers.get(&name).is_some_and(|number| *number > most)
                };
                let last = stops.len().checked_sub(2).filter(|last| *last > 0)?;
                match (from + 1..=to).find(is_repeated) {
                    Some(begin) => {
                        let end = (begin..).take_while(|stop| *stop <= to || is_repeated(stop)).last()?.min(last);
                        let end = (begin..=end).rev().find(is_repeated)?;
                        operations = position(begin)..position(end) + 1;
                        RouteChange::Additional
                    }
                    None => {
                        operations = position((from + 1).min(last))..position(to.min(last)) + 1;
                        usual.extend(self.next.get(&stops[from]).copied().flatten());
                        RouteChange::Order
                    }
                }
            }
        };
        Some(Difference { occurrence, change, operations, usual, excess: 0, reference: 0 })
    }

    /// Compute the cost of each difference: its own time less the time of the usual calls there.
    fn add_costs(&self, found: &mut [Difference]) {
        let usual_names: HashSet<NameId> = found.iter().flat_map(|d| d.usual.iter().copied()).collect();
        let mut lengths: HashMap<NameId, Vec<Ns>> = HashMap::default();
        if !usual_names.is_empty() {
            for operation in self.members.iter().flat_map(|occurrence| self.of(*occurrence)) {
                if usual_names.contains(&operation.symbol) {
                    lengths.entry(operation.symbol).or_default().push(operation.span().len());
                }
            }
        }
        let median = |mut lengths: Vec<Ns>| {
            let middle = lengths.len().saturating_sub(1) / 2;
            if lengths.is_empty() { 0 } else { *lengths.select_nth_unstable(middle).1 }
        };
        let usual: HashMap<NameId, Ns> = lengths.into_iter().map(|(name, all)| (name, median(all))).collect();
        for difference in found {
            let Some(occurrence) = self.occurrences.get(difference.occurrence as usize) else { continue };
            let took = span(self.operations, occurrence.stream, &difference.operations).map_or(0, |s| s.len());
            difference.reference = difference.usual.iter().filter_map(|name| usual.get(name)).sum();
            difference.excess = took - difference.reference;
        }
    }
}

/// The time from the begin of the first of some operations to the end of the last, on the stream's own clock.
pub fn span(operations: &Operations, stream: u32, range: &Range<u32>) -> Option<Span> {
    let all = &operations.sequences.get(stream as usize)?.operations;
    let inside = all.get(range.start as usize..range.end as usize)?;
    Some(Span::new(inside.first()?.start, inside.last()?.end))
}

/// The difference of some operations from the usual ones in their place; `None` where they are equal.
fn compare(inside: &[NameId], usual: &[NameId]) -> Option<RouteChange> {
    let sorted = |names: &[NameId]| {
        let mut names = names.to_vec();
        names.sort_unstable();
        names
    };
    match () {
        () if inside == usual => None,
        () if is_part(usual, inside) => Some(RouteChange::Additional),
        () if is_part(inside, usual) => Some(RouteChange::Missing),
        () if sorted(inside) == sorted(usual) => Some(RouteChange::Order),
        () => Some(RouteChange::Instead),
    }
}

/// True if `whole` contains all of `part`, in the same order.
fn is_part(part: &[NameId], whole: &[NameId]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|name| whole.any(|other| other == name))
}

/// The usual range of a number: that of `numbers` and, for the others of `n` occurrences, zeros, without the rare ends
/// and widened by `s` as the limits of durations are.
fn usual_range(mut numbers: Vec<u32>, n: usize, rare: usize, s: f64) -> RangeInclusive<u32> {
    numbers.sort_unstable();
    let zeros = n - numbers.len().min(n);
    let at = |position: usize| position.checked_sub(zeros).and_then(|at| numbers.get(at)).copied().unwrap_or(0);
    let (low, high) = (at(rare), at((n - 1).saturating_sub(rare)));
    let range = (s * f64::from(high - low.min(high))) as u32;
    low.saturating_sub(range)..=high.saturating_add(range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::time::Timestamp;
    use crate::event::operation::{OperationKind, Sequence};

    /// Occurrences as words of one stream; every letter takes 10 ns, a capital one 100.
    fn differences(words: &[&str], q: f64) -> Vec<String> {
        let mut operations = Operations::default();
        let (mut sequence, mut occurrences, mut now) = (Sequence::default(), Vec::new(), 0);
        for word in words {
            let first = sequence.operations.len() as u32;
            for letter in word.chars() {
                let symbol = operations.names.intern(&letter.to_string());
                let length = if letter.is_uppercase() { 100 } else { 10 };
                sequence.operations.push(Operation {
                    symbol,
                    kind: OperationKind::Work,
                    start: Timestamp::new(now),
                    end: Timestamp::new(now + length),
                });
                now += length + 5;
            }
            let end = sequence.operations.len() as u32;
            occurrences.push(RouteOccurrence { population: 0, stream: 0, operations: first..end });
        }
        operations.sequences.push(sequence);
        let shown = |d: Difference| {
            let all = &operations.sequences[0].operations;
            let of = |names: Vec<NameId>| names.iter().map(|n| operations.names.get(*n)).collect::<String>();
            let inside = all[d.operations.start as usize..d.operations.end as usize].iter().map(|o| o.symbol).collect();
            let first = occurrences[d.occurrence as usize].operations.start;
            let (name, usual) = (d.change.name(), of(d.usual));
            format!("{}@{} {name} {} for {usual}: {}", d.occurrence, d.operations.start - first, of(inside), d.excess)
        };
        find(&operations, &occurrences, q, 2.0, &Cancel::default()).into_iter().map(shown).collect()
    }

    /// Thirty times `usual`, once `other` in the middle of them.
    fn one(usual: &str, other: &str) -> Vec<String> {
        let mut words = vec![usual; 30];
        words.insert(15, other);
        differences(&words, 0.75)
    }

    #[test]
    fn find_reports_each_kind_of_difference() {
        assert_eq!(one("abcd", "abcd"), [""; 0]);
        assert_eq!(one("abcd", "abXcd"), ["15@2 additional X for : 100"]);
        assert_eq!(one("abcd", "Xabcd"), ["15@0 additional X for : 100"]);
        assert_eq!(one("abcd", "abcdxY"), ["15@4 additional xY for : 115"]);
        assert_eq!(one("abcd", "abd"), ["15@2 missing  for c: -10"]);
        assert_eq!(one("abcd", "ab"), ["15@2 missing  for cd: -20"]);
        assert_eq!(one("abcd", "bcd"), ["15@0 missing  for a: -10"]);
        assert_eq!(one("abcd", ""), ["15@0 missing  for abcd: -40"]);
        assert_eq!(one("abcd", "abxd"), ["15@2 instead x for c: 0"], "the same duration");
        assert_eq!(one("abcd", "acbd"), ["15@1 order cb for bc: 5"]);
        assert_eq!(one("abcd", "xbcdY"), ["15@0 instead x for a: 0", "15@4 additional Y for : 100"]);
    }

    #[test]
    fn find_reports_operations_made_more_or_less_often() {
        assert_eq!(one("abcd", "abbcd"), ["15@2 additional b for : 10"]);
        assert_eq!(one("abcd", "abcabcd"), ["15@3 additional abc for : 40"]);
        assert_eq!(one("abc", "abSbc"), ["15@2 additional Sb for : 115"], "a second try");
        // Every transition of these is usual.
        assert_eq!(one("arwrwz", "arwrwrwz"), ["15@5 additional r for : 10", "15@6 additional w for : 10"]);
        assert_eq!(one("arwrwz", "arwz"), ["15@2 missing  for r: -10", "15@3 missing  for w: -10"]);
    }

    #[test]
    fn find_accepts_numbers_that_vary() {
        // Between one and five blocks are read.
        let blocks = ["arz", "arrz", "arrrz", "arrrrz", "arrrrrz"];
        let words: Vec<&str> = (0..50).map(|i| blocks[i % 5]).chain(["arrrrrrrrz"]).collect();
        assert_eq!(differences(&words, 0.75), [""; 0], "eight are not so many more");
        // One in eight queries twice.
        let words: Vec<&str> = (0..80).map(|i| if i % 8 == 0 { "aqqz" } else { "aqz" }).collect();
        assert_eq!(differences(&words, 0.75), [""; 0]);
    }

    #[test]
    fn find_reports_nothing_without_a_usual_route() {
        let words: Vec<String> = (0..40).map(|i| format!("a{}z", char::from(b'A' + i % 26))).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert_eq!(differences(&words, 0.75), [""; 0], "no two do the same");
        let few: Vec<&str> = std::iter::repeat_n("ab", 18).chain(["axb"]).collect();
        assert_eq!(differences(&few, 0.75), [""; 0], "19 are too few");
    }
}
