//! Many spans of time: of all executions of a task that could be asked about, say.
//!
//! In: spans in any order, nearly sorted ones cost least. Out: the same spans, as often as they are asked for, and the
//! lengths at some ranks. A span takes 4 to 8 bytes: its distance from the one before it, and its length. Full blocks
//! go to a [`BlockRoom`], so memory holds as many as the room has, whatever their number. Ranks are found without a
//! sort where the spans are many: each walk over them counts the lengths in 4096 parts of the range in which a rank is,
//! which is then one part of it. Cost: O(1) for a span; three walks for lengths below 16 seconds.
//!
//! The first error of the temporary file cancels the work with its reason; spans that cannot be read are absent until
//! then.

use super::block_list::{BlockList, BlockRoom};
use super::ctx::{Cancel, Ctx};
use super::memory_error::MemoryError;
use super::pack::{Pack, Unpack};
use super::spill::SpillError;
use super::time::{Ns, Span, Timestamp};
use std::borrow::Cow;
use std::sync::Arc;

/// Bytes of a block, about.
const BLOCK: usize = 4096;
/// So many lengths are sorted: they take 512 KiB.
const SORTED: usize = 1 << 16;
/// Bits of a length that a walk decides.
const DIGIT: u32 = 12;

/// The room that some lists share.
#[derive(Clone, Debug)]
pub struct SpanRoom {
    blocks: Arc<BlockRoom>,
    cancel: Cancel,
}

impl SpanRoom {
    /// A part of the budget.
    pub fn of(ctx: &Ctx) -> SpanRoom {
        SpanRoom { blocks: BlockRoom::of(ctx), cancel: ctx.cancel.clone() }
    }

    fn fail(&self, error: SpillError) {
        self.cancel.fail(MemoryError::Spill(error));
    }
}

/// See the module.
#[derive(Debug)]
pub struct SpanList {
    room: SpanRoom,
    blocks: BlockList,
    /// The block that is being filled; each begins with the distance from time zero.
    open: Pack,
    last: Timestamp,
    count: usize,
    /// The shortest and the longest length.
    lengths: (Ns, Ns),
}

impl SpanList {
    /// No spans yet.
    pub fn new(room: &SpanRoom) -> SpanList {
        SpanList {
            blocks: BlockList::new(&room.blocks),
            room: room.clone(),
            open: Pack::default(),
            last: Timestamp::ZERO,
            count: 0,
            lengths: (Ns::MAX, 0),
        }
    }

    /// How many spans there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// True where there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Add a span.
    pub fn push(&mut self, span: Span) {
        self.open.signed(span.start.ns().wrapping_sub(self.last.ns()));
        self.open.signed(span.end.ns().wrapping_sub(span.start.ns()));
        self.last = span.start;
        self.count += 1;
        self.lengths = (self.lengths.0.min(span.len()), self.lengths.1.max(span.len()));
        if self.open.0.len() >= BLOCK {
            self.last = Timestamp::ZERO;
            if let Err(error) = self.blocks.push(&mut self.open.0) {
                self.room.fail(error);
            }
        }
    }

    /// Add the spans of another list in the same room.
    pub fn append(&mut self, mut other: SpanList) {
        if self.is_empty() {
            *self = other;
            return;
        }
        let open = std::mem::take(&mut other.open);
        spans(&open.0).for_each(|span| self.push(span));
        let of_blocks = other.count.saturating_sub(spans(&open.0).count());
        self.count += of_blocks;
        self.lengths = (self.lengths.0.min(other.lengths.0), self.lengths.1.max(other.lengths.1));
        self.blocks.append(&mut other.blocks);
    }

    /// All spans, in no order that says anything.
    pub fn all(&self) -> impl Iterator<Item = Span> {
        let readable = self.blocks.all().map_while(|block| block.map_err(|error| self.room.fail(error)).ok());
        readable.chain([Cow::Borrowed(self.open.0.as_slice())]).flat_map(|block| Spans { block, at: 0, last: 0 })
    }

    /// By rank the length that has it when all are sorted, the shortest first; zero for ranks that none has.
    pub fn lengths_at<const N: usize>(&self, ranks: [usize; N]) -> [Ns; N] {
        if self.count <= SORTED {
            let mut lengths: Vec<Ns> = self.all().map(Span::len).collect();
            lengths.sort_unstable();
            return ranks.map(|rank| lengths.get(rank).copied().unwrap_or(0));
        }
        let mut ranges = ranks.map(|rank| RankRange { least: self.lengths.0, most: self.lengths.1, rank });
        while ranges.iter().any(|range| range.least < range.most) {
            let mut counts = [[0_u32; N]; 1 << DIGIT];
            for length in self.all().map(Span::len) {
                for (at, range) in ranges.iter().enumerate() {
                    if (range.least..=range.most).contains(&length)
                        && let Some(count) = counts.get_mut(range.part(length)).and_then(|counts| counts.get_mut(at))
                    {
                        *count += 1;
                    }
                }
            }
            for (at, range) in ranges.iter_mut().enumerate() {
                range.narrow(counts.iter().filter_map(|counts| counts.get(at)).map(|count| *count as usize));
            }
        }
        ranges.map(|range| range.least)
    }
}

/// Where a rank is known to lie.
#[derive(Clone, Copy, Debug)]
struct RankRange {
    least: Ns,
    /// Not less.
    most: Ns,
    /// Among the lengths of this range.
    rank: usize,
}

impl RankRange {
    /// The parts have this many bits.
    fn bits(&self) -> u32 {
        (u64::BITS - self.most.abs_diff(self.least).leading_zeros()).saturating_sub(DIGIT)
    }

    /// The part of the range that a length of it is in.
    fn part(&self, length: Ns) -> usize {
        (length.abs_diff(self.least) >> self.bits()) as usize
    }

    /// Only the part that has the rank stays, by the number of lengths in each.
    fn narrow(&mut self, counts: impl Iterator<Item = usize>) {
        let bits = self.bits();
        for (part, count) in (0_u64..).zip(counts) {
            if self.rank < count {
                self.least = self.least.wrapping_add_unsigned(part << bits);
                self.most = self.most.min(self.least.saturating_add_unsigned((1 << bits) - 1));
                return;
            }
            self.rank -= count;
        }
        // No length has the rank: it is larger than all, or they cannot be read.
        self.most = self.least;
    }
}

/// The spans of a block.
struct Spans<'a> {
    block: Cow<'a, [u8]>,
    at: usize,
    last: i64,
}

/// The spans of some bytes.
fn spans(bytes: &[u8]) -> Spans<'_> {
    Spans { block: Cow::Borrowed(bytes), at: 0, last: 0 }
}

impl Iterator for Spans<'_> {
    type Item = Span;

    #[inline]
    fn next(&mut self) -> Option<Span> {
        let mut rest = Unpack(self.block.get(self.at..)?);
        let before = rest.0.len();
        self.last = self.last.wrapping_add(rest.signed()?);
        let end = self.last.wrapping_add(rest.signed()?);
        self.at += before - rest.0.len();
        Some(Span::of_ns(self.last, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::budget::Budget;
    use crate::base::spill::SpillFile;
    use crate::base::statistics::Random;

    fn room(bytes: u64) -> SpanRoom {
        let file = SpillFile::new().map(Arc::new);
        // A sixteenth is for blocks.
        SpanRoom::of(&Ctx { budget: Some(Budget { bytes, leaves: None, file }), ..Ctx::new(1) })
    }

    fn filled(room: &SpanRoom, all: &[Span]) -> SpanList {
        let mut list = SpanList::new(room);
        all.iter().for_each(|span| list.push(*span));
        list
    }

    /// Mostly short, some of any length, some at the ends of time.
    fn generated(count: usize) -> Vec<Span> {
        let mut random = Random::new(7);
        let mut at = 0_i64;
        let mut one = || {
            at += (random.next_u64() % 5_000) as i64;
            match random.next_u64() % 100 {
                0 => Span::of_ns(i64::MIN, i64::MAX),
                1 => Span::of_ns(at, at - 5),
                2..20 => Span::of_ns(at, at + (random.next_u64() % (1 << 40)) as i64),
                _ => Span::of_ns(at, at + (random.next_u64() % 900) as i64),
            }
        };
        (0..count).map(|_| one()).collect()
    }

    #[test]
    fn lengths_at_are_those_of_a_sorted_list() {
        for count in [0, 1, 2, 500, SORTED, SORTED + 1, 300_000] {
            let all = generated(count);
            let mut lengths: Vec<Ns> = all.iter().map(|span| span.len()).collect();
            lengths.sort_unstable();
            let ranks = [0, count / 2, count.saturating_sub(count / 20 + 1), count.saturating_sub(1)];
            let wanted = ranks.map(|rank| lengths.get(rank).copied().unwrap_or(0));
            assert_eq!(filled(&room(1 << 40), &all).lengths_at(ranks), wanted, "{count}");
        }
        let equal = vec![Span::of_ns(3, 8); SORTED + 5];
        assert_eq!(filled(&room(0), &equal).lengths_at([0, SORTED]), [5, 5]);
    }

    #[test]
    fn spans_beyond_the_room_come_back_from_the_file() {
        let all = generated(20_000);
        let sorted = |list: &SpanList| {
            let mut all: Vec<Span> = list.all().collect();
            all.sort_by_key(|span| (span.start, span.end));
            all
        };
        let wanted = sorted(&filled(&room(1 << 40), &all));
        assert_eq!(wanted.len(), all.len());
        let room = room(16 * 5 * BLOCK as u64);
        let (some, others) = all.split_at(7_000);
        let mut list = filled(&room, some);
        list.append(filled(&room, others));
        list.append(SpanList::new(&room));
        assert!(sorted(&list) == wanted && list.len() == all.len());
        assert!(!room.cancel.is_cancelled());
    }
}
