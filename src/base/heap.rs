//! Bytes on the heap by part of the program, for `--timings`.
//!
//! In: structures at the moment at which a part is largest. Out: the most bytes that each part held. Sizes are those of
//! the blocks that vectors have reserved, used or not; what the allocator adds to a block is not counted. Cost: a walk
//! over the structures, once for each stage.

use std::sync::atomic::{AtomicU64, Ordering};

/// Blocks of the heap that belong to a value.
pub trait HeapSize {
    /// Their bytes.
    fn heap_bytes(&self) -> usize;
}

/// The block of a vector, without what its elements own.
pub fn block<T>(list: &Vec<T>) -> usize {
    list.capacity() * size_of::<T>()
}

/// The block of a vector, and what its elements own.
pub fn with_elements<T: HeapSize>(list: &Vec<T>) -> usize {
    block(list) + list.iter().map(HeapSize::heap_bytes).sum::<usize>()
}

/// A part of the program that holds memory in proportion to its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryPart {
    /// Metadata, packet indexes, decode plans.
    OpenedTraces,
    /// Typed events of the chunks that are being read or joined.
    EventBuffers,
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
    pub const ALL: [MemoryPart; 11] = [
        MemoryPart::OpenedTraces,
        MemoryPart::EventBuffers,
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

/// The most bytes that each part has held.
#[derive(Debug, Default)]
pub struct PartSizes([AtomicU64; MemoryPart::ALL.len()]);

impl PartSizes {
    /// A part holds so many bytes.
    pub fn hold(&self, part: MemoryPart, bytes: usize) {
        if let Some(most) = self.0.get(part as usize) {
            most.fetch_max(bytes as u64, Ordering::Relaxed);
        }
    }

    /// The parts that have held anything, with their most bytes.
    pub fn held(&self) -> impl Iterator<Item = (MemoryPart, u64)> + '_ {
        let most = self.0.iter().map(|most| most.load(Ordering::Relaxed));
        MemoryPart::ALL.into_iter().zip(most).filter(|(_, bytes)| *bytes > 0)
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
        let held: Vec<_> = sizes.held().map(|(part, bytes)| (part.name(), bytes)).collect();
        assert_eq!(held, [("traces", 10), ("segments", 30)]);
    }
}
