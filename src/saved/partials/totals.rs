//! The totals of a host as bytes.
//!
//! In: totals. Out: numbers in few bytes, positions as distances from the one before; and back, where they ascend.

use crate::base::pack::{Pack, Unpack};
use crate::base::statistics::Sums;
use crate::base::time::Ns;
use crate::model::context::ContextId;
use crate::model::partials::{ContextTotals, DurationHistogram, GroupTotals, HostTotals};
use crate::model::weights::KeptNumbers;

/// The low half, then the high one, which nearly always is zero.
fn pack_wide(value: u128, pack: &mut Pack) {
    pack.number(value as u64);
    pack.number((value >> 64) as u64);
}

fn unpack_wide(unpack: &mut Unpack<'_>) -> Option<u128> {
    let (low, high) = (unpack.number()?, unpack.number()?);
    Some(u128::from(low) | u128::from(high) << 64)
}

fn pack_lengths(DurationHistogram { counts }: &DurationHistogram, pack: &mut Pack) {
    pack.number(counts.len() as u64);
    let mut next = 0;
    for (bucket, count) in counts {
        pack.number((bucket - next).into());
        pack.number(*count);
        next = bucket + 1;
    }
}

fn unpack_lengths(unpack: &mut Unpack<'_>) -> Option<DurationHistogram> {
    let mut histogram = DurationHistogram::default();
    let end = DurationHistogram::bucket(Ns::MAX) as usize + 1;
    let mut next = 0_usize;
    for _ in 0..unpack.index(end + 1)? {
        let bucket = next.checked_add(unpack.index(end)?).filter(|bucket| *bucket < end)?;
        let count = unpack.number().filter(|count| *count > 0)?;
        histogram.counts.insert(bucket as u32, count);
        next = bucket + 1;
    }
    Some(histogram)
}

/// All but the sources, which the file's contents have.
pub(super) fn pack(totals: &HostTotals, pack: &mut Pack) {
    let HostTotals { sources: _, by_length, kept, unsure, groups } = totals;
    pack_lengths(by_length, pack);
    let KeptNumbers { of, kept, in_full, one_in } = *kept;
    [of, kept, in_full, one_in, *unsure].into_iter().for_each(|number| pack.number(number));
    for GroupTotals { durations, squared_weights, by_length, contexts } in groups {
        pack.number(durations.n);
        pack_wide(durations.s1, pack);
        pack_wide(durations.s2, pack);
        pack_wide(*squared_weights, pack);
        pack_lengths(by_length, pack);
        pack.number(contexts.len() as u64);
        let mut next = 0;
        for (context, ContextTotals { having, sum, squares }) in contexts {
            pack.number((context.raw() - next).into());
            pack.number(*having);
            pack_wide(*sum, pack);
            pack_wide(*squares, pack);
            next = context.raw() + 1;
        }
    }
}

/// Totals in so many contexts.
pub(super) fn unpack(unpack: &mut Unpack<'_>, end: usize) -> Option<HostTotals> {
    let mut totals = HostTotals { by_length: unpack_lengths(unpack)?, ..HostTotals::default() };
    let (of, kept, in_full) = (unpack.number()?, unpack.number()?, unpack.number()?);
    totals.kept = KeptNumbers { of, kept, in_full, one_in: unpack.number()? };
    totals.unsure = unpack.number()?;
    for group in &mut totals.groups {
        group.durations = Sums { n: unpack.number()?, s1: unpack_wide(unpack)?, s2: unpack_wide(unpack)? };
        group.squared_weights = unpack_wide(unpack)?;
        group.by_length = unpack_lengths(unpack)?;
        let mut next = 0_usize;
        for _ in 0..unpack.index(end.checked_add(1)?)? {
            let context = next.checked_add(unpack.index(end)?).filter(|context| *context < end)?;
            let having = unpack.number().filter(|having| *having > 0)?;
            let totals = ContextTotals { having, sum: unpack_wide(unpack)?, squares: unpack_wide(unpack)? };
            group.contexts.push((ContextId::at(context), totals));
            next = context + 1;
        }
    }
    Some(totals)
}
