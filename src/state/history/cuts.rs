//! Cuts intervals into parts that follow each other in time, without sorting them.
//!
//! In: unsorted runs of intervals of one band. Out: parts of exactly `size` intervals in the total order (end,
//! attribute, start, value) over all runs. The ends of a sample of the intervals, the splitters, divide time into
//! *buckets* with about equal numbers of intervals. The sums over all runs determine the bucket that contains a cut:
//! only the intervals of such a bucket are compared, and only as far as a selection needs. Every other bucket belongs
//! to one part as a whole, as a range of each run, in which the order of intervals does not change. The parts do not
//! depend on the choice of splitters.
//!
//! Cost: the logarithm of the number of buckets per interval, one comparison per interval where a run is in order of
//! end already; selections cost a small part of that, because a part has [`PER_PART`] buckets. Many intervals that end
//! at the same instant share a bucket, however many splitters there are: a selection is linear.

use super::bulk::map;
use super::interval::{Packed, Run, StateValue};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::parallel::in_order;
use crate::base::time::Timestamp;
use std::collections::BTreeMap;

/// Number of buckets for each part; a cut needs the intervals of one.
const PER_PART: usize = 16;

/// Largest number of buckets.
const MOST: usize = 1 << 14;

/// Number of sampled ends for each bucket.
const SAMPLES: usize = 4;

/// Ends, ascending, that divide all ends into buckets of about the same size: bucket *k* contains the intervals that
/// end before splitter *k*, but not before splitter *k* - 1.
pub(super) struct Splitters(Vec<Timestamp>);

impl Splitters {
    /// For cutting `runs` into so many parts.
    pub fn sample(runs: &[Run], parts: usize) -> Self {
        let total: usize = runs.iter().map(Run::len).sum();
        let buckets = parts.saturating_mul(PER_PART).clamp(1, MOST);
        let stride = (total / (buckets * SAMPLES)).max(1);
        let mut ends = Vec::with_capacity(total / stride + 1);
        let mut next = 0;
        for run in runs {
            while let Some(item) = run.items.get(next) {
                ends.push(item.end);
                next += stride;
            }
            next -= run.len();
        }
        ends.sort_unstable();
        let mut splitters: Vec<Timestamp> = ends.into_iter().skip(SAMPLES).step_by(SAMPLES).collect();
        splitters.dedup();
        Splitters(splitters)
    }

    fn bucket(&self, end: Timestamp) -> usize {
        self.0.partition_point(|splitter| *splitter <= end)
    }
}

/// The intervals of one run and band, by bucket.
pub(super) struct Bucketed {
    items: Vec<Packed>,
    /// The start of each bucket, and the end of the last.
    starts: Vec<u32>,
    /// The bucket of each interval, until the intervals are in order.
    buckets: Option<Vec<u16>>,
}

impl Bucketed {
    /// Count the buckets of `items`.
    pub fn new(items: Vec<Packed>, splitters: &Splitters) -> Self {
        let mut starts = Vec::with_capacity(splitters.0.len() + 2);
        if items.is_sorted_by_key(|item| item.end) {
            let mut at = 0;
            starts.push(0);
            for splitter in &splitters.0 {
                at += items[at..].partition_point(|item| item.end < *splitter);
                starts.push(at as u32);
            }
            starts.push(items.len() as u32);
            return Bucketed { items, starts, buckets: None };
        }
        let buckets: Vec<u16> = items.iter().map(|item| splitters.bucket(item.end) as u16).collect();
        starts.resize(splitters.0.len() + 2, 0);
        for bucket in &buckets {
            starts[usize::from(*bucket) + 1] += 1;
        }
        for bucket in 1..starts.len() {
            starts[bucket] += starts[bucket - 1];
        }
        Bucketed { items, starts, buckets: Some(buckets) }
    }

    /// Sort the intervals by group, stably; `groups` has the group of each bucket.
    fn arrange(&mut self, groups: &[u16]) {
        let Some(buckets) = self.buckets.take() else { return };
        let mut places: Vec<u32> = Vec::new();
        for (bucket, group) in groups.iter().enumerate() {
            if usize::from(*group) == places.len() {
                places.push(self.starts[bucket]);
            }
        }
        let mut arranged = self.items.clone();
        for (item, bucket) in self.items.iter().zip(buckets) {
            let place = &mut places[usize::from(groups[usize::from(bucket)])];
            arranged[*place as usize] = *item;
            *place += 1;
        }
        self.items = arranged;
    }

    fn buckets(&self, from: usize, past: usize) -> &[Packed] {
        &self.items[self.starts[from] as usize..self.starts[past] as usize]
    }
}

/// A position between two intervals of the total order: a bucket, and the number of its intervals before the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    bucket: usize,
    before: usize,
}

/// The parts of one band.
pub(super) struct Parts {
    runs: Vec<Bucketed>,
    /// The start of each part, and the end of the last.
    places: Vec<Place>,
    /// The intervals of each bucket with a cut inside, split at its cuts.
    split: BTreeMap<usize, Vec<Packed>>,
}

impl Parts {
    /// Find the positions of the cuts.
    pub fn new(runs: Vec<Bucketed>, size: usize) -> Self {
        let buckets = runs.first().map_or(0, |run| run.starts.len() - 1);
        let before: Vec<usize> = (0..=buckets).map(|b| runs.iter().map(|run| run.starts[b] as usize).sum()).collect();
        let total = before.last().copied().unwrap_or(0);
        let place = |rank: usize| {
            let bucket = before.partition_point(|before| *before <= rank).saturating_sub(1);
            Place { bucket, before: rank - before[bucket] }
        };
        let cuts = (0..total).step_by(size.max(1)).map(place);
        let places = cuts.chain([Place { bucket: buckets, before: 0 }]).collect();
        Parts { runs, places, split: BTreeMap::new() }
    }

    /// Number of parts.
    pub fn len(&self) -> usize {
        self.places.len() - 1
    }

    /// The intervals of a part, piece by piece.
    pub fn part(&self, part: usize) -> Vec<&[Packed]> {
        let (from, to) = (self.places[part], self.places[part + 1]);
        let intervals = |place: Place| self.split.get(&place.bucket).map_or(&[][..], |split| split);
        if from.bucket == to.bucket {
            return vec![&intervals(from)[from.before..to.before]];
        }
        let whole = from.bucket + usize::from(from.before > 0);
        let mut pieces = Vec::with_capacity(self.runs.len() + 2);
        if from.before > 0 {
            pieces.push(&intervals(from)[from.before..]);
        }
        pieces.extend(self.runs.iter().map(|run| run.buckets(whole, to.bucket)));
        if to.before > 0 {
            pieces.push(&intervals(to)[..to.before]);
        }
        pieces
    }

    /// The group of each bucket: neighbours are in one group unless there is a cut between them.
    fn groups(&self) -> Vec<u16> {
        let buckets = self.places.last().map_or(0, |place| place.bucket);
        let mut begins = vec![false; buckets + 1];
        for place in &self.places {
            begins[place.bucket] = true;
            if let (Some(next), true) = (begins.get_mut(place.bucket + 1), place.before > 0) {
                *next = true;
            }
        }
        let mut group = 0;
        let number = |(bucket, begins): (usize, bool)| {
            group += u16::from(begins && bucket > 0);
            group
        };
        begins.into_iter().take(buckets).enumerate().map(number).collect()
    }

    /// The cuts inside one bucket, ascending, for each bucket that has some.
    fn cuts(&self) -> impl Iterator<Item = (usize, Vec<usize>)> {
        let inside = self.places.chunk_by(|a, b| a.bucket == b.bucket);
        inside.filter_map(|places| {
            let cuts: Vec<usize> = places.iter().map(|place| place.before).filter(|before| *before > 0).collect();
            Some((places.first()?.bucket, cuts)).filter(|(_, cuts)| !cuts.is_empty())
        })
    }

    /// The intervals of one bucket, split at its cuts.
    fn split_bucket(&self, bucket: usize, cuts: &[usize], aside: &[StateValue]) -> Vec<Packed> {
        let pieces: Vec<&[Packed]> = self.runs.iter().map(|run| run.buckets(bucket, bucket + 1)).collect();
        let mut items = pieces.concat();
        split(&mut items, 0, cuts, aside);
        // Between two cuts the intervals are sorted by end, so that those of one attribute need no sorting later.
        let ends = cuts.iter().copied().chain([items.len()]);
        let pieces: Vec<_> = std::iter::once(0).chain(cuts.iter().copied()).zip(ends).collect();
        for (from, to) in pieces {
            items[from..to].sort_unstable_by_key(|item| item.end);
        }
        items
    }
}

/// Put the intervals of each part next to each other; `of` are the parts of each band.
pub(super) fn arrange(of: &mut [Parts], aside: &[StateValue], ctx: &Ctx) -> Result<(), Cancelled> {
    let groups: Vec<Vec<u16>> = of.iter().map(Parts::groups).collect();
    let runs =
        of.iter_mut().zip(&groups).flat_map(|(parts, groups)| parts.runs.iter_mut().map(move |run| (run, groups)));
    map(ctx, runs.collect(), |(run, groups)| run.arrange(groups))?;
    let cuts: Vec<_> = of
        .iter()
        .enumerate()
        .flat_map(|(i, parts)| parts.cuts().map(move |(bucket, cuts)| (i, bucket, cuts)))
        .collect();
    let mut split = Vec::with_capacity(cuts.len());
    let make = |i: usize| {
        let (band, bucket, cuts) = &cuts[i];
        of[*band].split_bucket(*bucket, cuts, aside)
    };
    in_order(ctx, cuts.len(), make, |_, items| split.push(items))?;
    for ((band, bucket, _), items) in cuts.into_iter().zip(split) {
        of[band].split.insert(bucket, items);
    }
    Ok(())
}

/// Reorder `items`, the first of which has position `base`, so that no interval before a cut belongs after it. Works by
/// halves of the cuts, so that it costs the logarithm of their number per interval.
pub(super) fn split(items: &mut [Packed], base: usize, cuts: &[usize], aside: &[StateValue]) {
    let middle = cuts.len() / 2;
    let Some(cut) = cuts.get(middle) else { return };
    let at = cut - base;
    if (1..items.len()).contains(&at) {
        items.select_nth_unstable_by(at, |a, b| a.by_end(b, aside));
    }
    let (before, after) = items.split_at_mut(at.min(items.len()));
    split(before, base, &cuts[..middle], aside);
    split(after, *cut, &cuts[middle + 1..], aside);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::time::Span;
    use crate::state::attributes::AttributeId;
    use proptest::prelude::*;
    use std::cmp::Ordering;

    /// Many intervals end at once, some ends are far from all others.
    fn runs() -> impl Strategy<Value = Vec<Run>> {
        let end = prop_oneof![4 => 1..40i64, 4 => Just(7i64), 1 => 1_000_000..1_000_100i64, 1 => Just(i64::MAX)];
        let run = prop::collection::vec((0..6u32, end, 1..5i64), 0..300).prop_map(|items| {
            let mut run = Run::default();
            for (attribute, end, length) in items {
                let span = Span::of_ns(end - length, end);
                run.push(AttributeId::from_raw(attribute), span, StateValue::Int(length << 40));
            }
            run
        });
        (prop::collection::vec(run, 1..6), any::<bool>()).prop_map(|(mut runs, sorted)| {
            runs.iter_mut().filter(|_| sorted).for_each(|run| run.items.sort_by_key(|item| item.end));
            runs
        })
    }

    proptest! {
        #[test]
        fn parts_equal_those_of_the_sorted_intervals(mut runs in runs(), size in 1..90usize, buckets in 0..40usize) {
            let mut aside = Vec::new();
            for run in &mut runs {
                run.rebase(aside.len());
                aside.append(&mut run.aside);
            }
            let order = |a: &Packed, b: &Packed| a.by_end(b, &aside);
            let mut all: Vec<Packed> = runs.iter().flat_map(|run| run.items.iter().copied()).collect();
            all.sort_by(order);
            let splitters = Splitters::sample(&runs, buckets);
            let bucketed = runs.into_iter().map(|run| Bucketed::new(run.items, &splitters)).collect();
            let mut parts = [Parts::new(bucketed, size)];
            arrange(&mut parts, &aside, &Ctx::new(2)).unwrap();
            let [parts] = parts;
            prop_assert_eq!(parts.len(), all.len().div_ceil(size));
            for (at, want) in all.chunks(size).enumerate() {
                let mut found = parts.part(at).concat();
                found.sort_by(order);
                prop_assert_eq!(found.len(), want.len());
                prop_assert!(found.iter().zip(want).all(|(a, b)| order(a, b) == Ordering::Equal));
            }
        }

        #[test]
        fn split_puts_the_smaller_intervals_before_each_cut(
            mut runs in runs(),
            cuts in prop::collection::vec(0..300usize, 0..9),
        ) {
            let Run { mut items, aside, .. } = runs.remove(0);
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut <= items.len()).collect();
            cuts.sort_unstable();
            split(&mut items, 0, &cuts, &aside);
            for cut in cuts {
                let (before, after) = items.split_at(cut);
                prop_assert!(before.iter().all(|a| after.iter().all(|b| a.by_end(b, &aside).is_le())));
            }
        }
    }
}
