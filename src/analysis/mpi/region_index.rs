//! Sums of a stream's time by region over long times, without a look at each event.
//!
//! In: a stream. Out: for each [`BLOCK`] of its operations the time in each region from there to the end, its waits
//! apart; the difference of two blocks is the time between them. Streams are indexed when the first long time is asked
//! for, because most questions are about a few events. Cost: a pass over the events of each stream that is asked, and
//! at most 8 bytes per operation; a question about a long time costs two blocks of events and a look at each region.

use super::profile::{ActivitySpan, Region, RegionSums, Streams};
use crate::base::time::{Ns, Span, Timestamp};
use std::sync::OnceLock;

/// The least number of operations in a block.
const BLOCK: usize = 512;

/// Operations that are looked at before an index is.
const SHORT: usize = 2 * BLOCK;

/// The sums of all streams that were asked for.
pub struct RegionIndex<'a> {
    streams: &'a Streams<'a>,
    /// Operations in a block: as many as there may be regions, so that the rows are no longer than the operations.
    block: usize,
    by_stream: Vec<OnceLock<StreamIndex>>,
}

/// The sums of one stream.
struct StreamIndex {
    /// In the order in which they were met, from the end.
    regions: Vec<Region>,
    /// By block: the time in the first regions from its first operation to the end; the others have none.
    rows: Vec<Vec<Ns>>,
}

impl<'a> RegionIndex<'a> {
    /// Of some streams; nothing is added up yet.
    pub fn new(streams: &'a Streams<'a>) -> RegionIndex<'a> {
        let operations = streams.operations();
        let by_stream = operations.sequences.iter().map(|_| OnceLock::new()).collect();
        RegionIndex { streams, block: BLOCK.max(2 * operations.names.len()), by_stream }
    }

    /// Add up a stream's time by region, without its waits. `near`: an operation that begins near the end of that time.
    pub fn add_up(&self, sums: &mut RegionSums, stream: u32, within: Span, near: u32) {
        let add = |sums: &mut RegionSums, activity: ActivitySpan| {
            if !activity.kind.waits() {
                sums.add_time(activity.region, activity.span.len());
            }
        };
        let mut events = self.streams.back_near(stream, within, near);
        // Up to the begin of a block.
        let short = events.left().saturating_sub(SHORT) / self.block * self.block;
        events.each_down_to(short, |activity| add(sums, activity));
        if events.left() == 0 {
            return;
        }
        let (from, to) = (events.first_within().div_ceil(self.block), events.left() / self.block);
        if from < to {
            self.add_blocks(sums, stream, from, to);
            events.continue_before(from * self.block);
        }
        events.each_down_to(0, |activity| add(sums, activity));
    }

    /// Add the time from the begin of one block up to the begin of a later one.
    fn add_blocks(&self, sums: &mut RegionSums, stream: u32, from: usize, to: usize) {
        let Some(cell) = self.by_stream.get(stream as usize) else { return };
        let index = cell.get_or_init(|| StreamIndex::new(self.streams, stream, self.block));
        let row = |at: usize| index.rows.get(at).map_or(&[][..], Vec::as_slice);
        let (whole, later) = (row(from), row(to));
        for (at, (region, ns)) in index.regions.iter().zip(whole).enumerate() {
            let ns = ns - later.get(at).copied().unwrap_or(0);
            if ns > 0 {
                sums.add_time(*region, ns);
            }
        }
    }
}

impl StreamIndex {
    fn new(streams: &Streams<'_>, stream: u32, block: usize) -> StreamIndex {
        let operations = streams.operations();
        let all = operations.sequences.get(stream as usize).map_or(&[][..], |s| &s.operations);
        let mut sums = RegionSums::new(operations);
        let mut rows = vec![Vec::new(); all.len() / block + 1];
        // Rows from this one on are complete.
        let mut next = rows.len();
        let end = all.last().map_or(Timestamp::MIN, |last| streams.common(stream, last.end));
        streams.back(stream, Span::new(Timestamp::MIN, end)).each_down_to(0, |activity| {
            while (activity.event as usize / 2) < (next - 1) * block {
                next -= 1;
                rows[next] = sums.iter().map(|(_, sum)| sum.ns).collect();
            }
            if !activity.kind.waits() {
                sums.add_time(activity.region, activity.span.len());
            }
        });
        for row in &mut rows[..next] {
            *row = sums.iter().map(|(_, sum)| sum.ns).collect();
        }
        StreamIndex { regions: sums.iter().map(|(region, _)| region).collect(), rows }
    }
}
