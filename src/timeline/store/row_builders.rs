//! The rows of a timeline while they are sealed, family by family.
//!
//! In: rows of lines in order of time, pushed to the builder of their family; at each seal moment the slabs of all
//! families are taken together, made leaves on any thread, and added in the order in which they were taken. Out: the
//! builders, of which [`RowStores`](super::families::RowStores) makes the stores. What is done to every family is
//! written once: a macro has their list. Counters are a list of their own, in the order in which they were first seen;
//! slabs that were taken before a counter was seen are without it. Cost: a copy of each row.

use super::builder::{LineStoreBuilder, OpenBytes, OpenSlab, SealedSlab};
use super::counters::CounterBuilder;
use super::marks::MarkStore;
use super::pool::LeafPool;
use crate::base::names::NameId;
use crate::timeline::segments::ThreadRows;
use crate::timeline::{Call, CounterValue, CpuRun, DiskRequest, PageFault, Segment, Service, StackSample};
use std::sync::Arc;

/// A slab is sealed when it has this many rows: what is not sealed takes little memory, and a line has few parts.
const SLAB: usize = 1 << 14;

/// Declares the families that have one builder, and what is done to all of them and to the counters.
macro_rules! families {
    ($($(#[$doc:meta])* $family:ident: $row:ty;)+) => {
        /// The families whose rows are sealed while the kernel pass runs.
        #[derive(Clone, Debug, Default)]
        pub struct RowBuilders {
            $($(#[$doc])* pub $family: LineStoreBuilder<$row>,)+
            /// In the order in which they were first seen.
            pub counters: Vec<CounterBuilder>,
            pub marks: MarkStore,
            /// For leaves that do not fit into memory; `None` where all stay there.
            pub pool: Option<Arc<LeafPool>>,
        }

        /// The rows of these families that are in no leaf yet.
        #[derive(Clone, Debug, Default)]
        pub struct OpenSlabs {
            $($family: OpenSlab<$row>,)+
            counters: Vec<OpenSlab<CounterValue>>,
        }

        /// A slab of each of these families.
        #[derive(Clone, Debug, Default)]
        pub struct SealedSlabs {
            $($family: SealedSlab,)+
            counters: Vec<SealedSlab>,
        }

        impl OpenSlabs {
            /// Bytes of the memory for their rows.
            pub fn bytes(&self) -> usize {
                let counters: usize = self.counters.iter().map(OpenSlab::bytes).sum();
                counters $(+ self.$family.bytes())+
            }

            /// Their rows as leaves; the slabs are empty then.
            pub fn seal(&mut self) -> SealedSlabs {
                SealedSlabs {
                    $($family: self.$family.seal(),)+
                    counters: self.counters.iter_mut().map(OpenSlab::seal).collect(),
                }
            }
        }

        impl RowBuilders {
            /// Take the rows added since the last slabs.
            pub fn take_slabs(&mut self) -> OpenSlabs {
                OpenSlabs {
                    $($family: self.$family.take_slab(),)+
                    counters: self.counters.iter_mut().map(|counter| counter.values.take_slab()).collect(),
                }
            }

            /// Use the memory of slabs that were sealed again.
            pub fn give_back(&mut self, empty: OpenSlabs) {
                $(self.$family.give_back(empty.$family);)+
                let counters = self.counters.iter_mut().zip(empty.counters);
                counters.for_each(|(counter, empty)| counter.values.give_back(empty));
            }

            /// Bytes of the memory for rows that are in no leaf yet, those of slabs that were taken, too.
            pub fn open_bytes(&self) -> OpenBytes {
                let counters = self.counters.iter().map(|counter| counter.values.open_bytes());
                counters.fold(OpenBytes::default(), |all, of| all + of) $(+ self.$family.open_bytes())+
            }

            fn add_leaves(&mut self, slabs: SealedSlabs) {
                $(self.$family.add_slab(slabs.$family);)+
                let counters = self.counters.iter_mut().zip(slabs.counters);
                counters.for_each(|(counter, slab)| counter.values.add_slab(slab));
            }

            /// Bytes of all leaves so far.
            fn sealed_bytes(&self) -> usize {
                let counters: usize = self.counters.iter().map(|counter| counter.values.sealed_bytes()).sum();
                counters + self.marks.leaves().own_bytes() $(+ self.$family.sealed_bytes())+
            }

            fn move_to(&mut self, pool: &Arc<LeafPool>) {
                $(self.$family.move_to(pool);)+
                self.counters.iter_mut().for_each(|counter| counter.values.move_to(pool));
                self.marks.move_to(pool);
            }
        }
    };
}

families! {
    /// By thread.
    segments: Segment;
    /// By thread.
    calls: Call;
    /// By thread.
    samples: StackSample;
    /// By position of the CPU.
    runs: CpuRun;
    /// All in line 0.
    requests: DiskRequest;
    /// By thread.
    services: Service;
    /// By thread.
    page_faults: PageFault;
}

impl RowBuilders {
    /// Add the next slabs that were taken.
    pub fn add_slabs(&mut self, slabs: SealedSlabs) {
        self.add_leaves(slabs);
        // Leaves that memory has no room for go to the pool.
        if let Some(pool) = self.pool.clone().filter(|pool| pool.takes(self.sealed_bytes() as u64)) {
            self.move_to(&pool);
        }
    }

    /// Add the last rows of a thread.
    pub fn push_thread(&mut self, thread: usize, rows: ThreadRows) {
        self.segments.push(thread, &rows.segments);
        self.calls.push(thread, &rows.calls);
        self.samples.push(thread, &rows.samples);
        if self.segments.open_rows() + self.calls.open_rows() + self.samples.open_rows() >= SLAB {
            self.seal_slabs();
        }
    }

    /// Move all rows so far into leaves.
    pub fn seal_slabs(&mut self) {
        let mut slabs = self.take_slabs();
        self.add_slabs(slabs.seal());
        self.give_back(slabs);
    }

    /// The builder of a counter, which is a new one where the counter was not seen before.
    pub fn counter(&mut self, name: NameId) -> &mut CounterBuilder {
        let at = self.position(name).unwrap_or(self.counters.len());
        if at == self.counters.len() {
            self.counters.push(CounterBuilder::new(name));
        }
        &mut self.counters[at]
    }

    /// Take the builder of a counter out, at the end, when no slab is open.
    pub fn take_counter(&mut self, name: NameId) -> CounterBuilder {
        self.position(name).map_or_else(|| CounterBuilder::new(name), |at| self.counters.swap_remove(at))
    }

    fn position(&self, name: NameId) -> Option<usize> {
        self.counters.iter().position(|counter| counter.name == name)
    }
}
