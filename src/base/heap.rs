//! Bytes on the heap by part of the program, for `--timings`.
//!
//! In: structures at the moment at which a part is largest. Out: the most bytes that each part held. Sizes are those of
//! the blocks that vectors have reserved, used or not; what the allocator adds to a block is not counted, and what
//! several own counts once. They are derived (`GetSize`) of the types; a field that is small, or counted elsewhere, is
//! ignored where it is declared. Cost: a walk over the structures, once for each stage.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// The block of a vector, without what its elements own.
pub fn block<T>(list: &Vec<T>) -> usize {
    list.capacity() * size_of::<T>()
}

/// The block of a table whose entries own none: a walk over them would cost more than it finds.
pub fn table<K, V, S>(of: &HashMap<K, V, S>) -> usize {
    of.capacity() * size_of::<(K, V)>()
}

/// A part of the program that holds memory in proportion to its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryPart {
    /// Metadata, packet indexes, decode plans.
    OpenedTraces,
    /// Typed events of the chunks that are being read or joined.
    EventBuffers,
    /// Rows that are in no leaf yet.
    OpenRows,
    /// Threads and CPUs, texts, stacks, images.
    Threads,
    /// States of threads.
    Segments,
    /// System calls.
    Calls,
    /// Stack samples.
    Samples,
    /// Threads on CPUs, disk requests, work for others, page faults, hardware counters.
    OtherRows,
    /// Delimiting events.
    Marks,
    /// Stacks of threads over time, which are derived from calls and samples.
    Stacks,
    /// Leaves of all families in memory, where some are in a file.
    Leaves,
    /// Executions, with their calling contexts and metrics.
    Results,
}

impl MemoryPart {
    /// All parts, in the order of the work.
    pub const ALL: [MemoryPart; 12] = [
        MemoryPart::OpenedTraces,
        MemoryPart::EventBuffers,
        MemoryPart::OpenRows,
        MemoryPart::Threads,
        MemoryPart::Segments,
        MemoryPart::Calls,
        MemoryPart::Samples,
        MemoryPart::OtherRows,
        MemoryPart::Marks,
        MemoryPart::Stacks,
        MemoryPart::Leaves,
        MemoryPart::Results,
    ];

    /// Its name in `--timings`.
    pub fn name(self) -> &'static str {
        match self {
            MemoryPart::OpenedTraces => "traces",
            MemoryPart::EventBuffers => "buffers",
            MemoryPart::OpenRows => "open rows",
            MemoryPart::Threads => "threads",
            MemoryPart::Segments => "segments",
            MemoryPart::Calls => "calls",
            MemoryPart::Samples => "samples",
            MemoryPart::OtherRows => "other rows",
            MemoryPart::Marks => "marks",
            MemoryPart::Stacks => "stacks",
            MemoryPart::Leaves => "leaves",
            MemoryPart::Results => "results",
        }
    }
}

/// A part that has held memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldPart {
    /// Which one.
    pub part: MemoryPart,
    /// The most bytes that it has held.
    pub most: u64,
    /// The bytes that the budget gave it then, else gives it now; `None` where it has no part of its own.
    pub given: Option<u64>,
}

/// A number for each part; 0: none.
type OfParts = [AtomicU64; MemoryPart::ALL.len()];

/// The most bytes that each part has held, and the bytes that the budget gives it.
#[derive(Debug, Default)]
pub struct PartSizes {
    most: OfParts,
    given: OfParts,
    /// Those that it gave the part when that held most.
    given_then: OfParts,
}

impl PartSizes {
    /// A part holds this many bytes.
    pub fn hold(&self, part: MemoryPart, bytes: usize) {
        let at = part as usize;
        if let (Some(most), Some(given), Some(then)) = (self.most.get(at), self.given.get(at), self.given_then.get(at))
            && most.fetch_max(bytes as u64, Ordering::Relaxed) < bytes as u64
        {
            then.store(given.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// The budget gives a part this many bytes from now on.
    pub fn give(&self, part: MemoryPart, bytes: u64) {
        if let Some(given) = self.given.get(part as usize) {
            given.store(bytes, Ordering::Relaxed);
        }
    }

    /// The bytes that the budget gives a part; `None` where it has no part of its own.
    pub fn given(&self, part: MemoryPart) -> Option<u64> {
        self.given.get(part as usize).map(|given| given.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0)
    }

    /// The parts that have held anything.
    pub fn held(&self) -> impl Iterator<Item = HeldPart> + '_ {
        let load = |of: &AtomicU64| of.load(Ordering::Relaxed);
        let given = move |at: usize| [&self.given_then, &self.given].into_iter().filter_map(move |of| of.get(at));
        let part = move |(at, part): (usize, MemoryPart)| HeldPart {
            part,
            most: self.most.get(at).map_or(0, load),
            given: given(at).map(load).find(|bytes| *bytes > 0),
        };
        MemoryPart::ALL.into_iter().enumerate().map(part).filter(|held| held.most > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_names_the_most_of_each_part_in_order() {
        let sizes = PartSizes::default();
        sizes.hold(MemoryPart::Segments, 30);
        sizes.hold(MemoryPart::Segments, 20);
        sizes.hold(MemoryPart::OpenedTraces, 10);
        sizes.hold(MemoryPart::OpenRows, 7);
        sizes.give(MemoryPart::OpenRows, 90);
        sizes.give(MemoryPart::OpenRows, 8);
        // What it holds is less from here on, as it must be.
        sizes.give(MemoryPart::Leaves, 60);
        sizes.hold(MemoryPart::Leaves, 50);
        sizes.give(MemoryPart::Leaves, 8);
        sizes.hold(MemoryPart::Leaves, 8);
        let held: Vec<_> = sizes.held().map(|held| (held.part.name(), held.most, held.given)).collect();
        let rows = [("open rows", 7, Some(8)), ("segments", 30, None), ("leaves", 50, Some(60))];
        assert_eq!(held, [&[("traces", 10, None)][..], &rows].concat());
    }
}
