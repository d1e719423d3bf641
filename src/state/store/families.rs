//! The rows of a timeline, family by family.

use super::builder::{LineStoreBuilder, OpenBytes, OpenSlab, SealedSlab};
use super::leaf::StoredRow;
use super::leaves::Leaves;
use super::marks::MarkStore;
use super::parts::LineStore;
use super::pool::LeafPool;
use crate::base::budget;
use crate::base::ctx::Ctx;
use crate::base::heap::{HeapSize, MemoryPart, PartSizes};
use crate::base::memory;
use crate::base::names::NameId;
use crate::state::draft::TimelineDraft;
use crate::state::questions::Family;
use crate::state::segments::ThreadRows;
use crate::state::timeline::{
    Call, Counter, CounterOwner, CounterValue, CpuRun, DiskRequest, PageFault, Segment, Service, StackSample, ThreadId,
};
use std::sync::Arc;

/// A slab is sealed when it has so many rows: what is not sealed takes little memory, and a line has few parts.
const SLAB: usize = 1 << 14;

/// The values of a hardware counter.
#[derive(Clone, Debug)]
pub(in crate::state) struct CounterStore {
    pub name: NameId,
    /// Sorted; their positions are their lines.
    pub owners: Vec<CounterOwner>,
    pub values: LineStore<CounterValue>,
}

/// The sealed rows of a timeline.
#[derive(Clone, Debug, Default)]
pub(in crate::state) struct RowStores {
    /// By thread.
    pub segments: LineStore<Segment>,
    /// By thread.
    pub calls: LineStore<Call>,
    /// By thread.
    pub samples: LineStore<StackSample>,
    /// By position of the CPU.
    pub runs: LineStore<CpuRun>,
    /// All in line 0.
    pub requests: LineStore<DiskRequest>,
    /// By thread.
    pub services: LineStore<Service>,
    /// By thread; `None` where page faults were not recorded.
    pub page_faults: Option<LineStore<PageFault>>,
    pub counters: Vec<CounterStore>,
    /// Of all tasks.
    pub marks: MarkStore,
    /// Where the leaves are that memory has no room for.
    pub pool: Option<Arc<LeafPool>>,
}

/// The families whose rows are sealed while the kernel pass runs.
#[derive(Clone, Debug, Default)]
pub(in crate::state) struct RowBuilders {
    pub segments: LineStoreBuilder<Segment>,
    pub calls: LineStoreBuilder<Call>,
    pub samples: LineStoreBuilder<StackSample>,
    pub runs: LineStoreBuilder<CpuRun>,
    pub marks: MarkStore,
    /// For leaves that do not fit into memory; `None` where all stay there.
    pub pool: Option<Arc<LeafPool>>,
}

/// The rows of these families that are in no leaf yet.
#[derive(Clone, Debug, Default)]
pub(in crate::state) struct OpenSlabs {
    segments: OpenSlab<Segment>,
    calls: OpenSlab<Call>,
    samples: OpenSlab<StackSample>,
    runs: OpenSlab<CpuRun>,
}

/// A slab of each of these families.
#[derive(Clone, Debug, Default)]
pub(in crate::state) struct SealedSlabs {
    segments: SealedSlab,
    calls: SealedSlab,
    samples: SealedSlab,
    runs: SealedSlab,
}

impl OpenSlabs {
    /// Bytes of the memory for their rows.
    pub fn bytes(&self) -> usize {
        let OpenSlabs { segments, calls, samples, runs } = self;
        segments.bytes() + calls.bytes() + samples.bytes() + runs.bytes()
    }

    /// Their rows as leaves; the slabs are empty then.
    pub fn seal(&mut self) -> SealedSlabs {
        SealedSlabs {
            segments: self.segments.seal(),
            calls: self.calls.seal(),
            samples: self.samples.seal(),
            runs: self.runs.seal(),
        }
    }
}

impl RowBuilders {
    /// Take the rows added since the last slabs.
    pub fn take_slabs(&mut self) -> OpenSlabs {
        OpenSlabs {
            segments: self.segments.take_slab(),
            calls: self.calls.take_slab(),
            samples: self.samples.take_slab(),
            runs: self.runs.take_slab(),
        }
    }

    /// Use the memory of slabs that were sealed again.
    pub fn give_back(&mut self, empty: OpenSlabs) {
        self.segments.give_back(empty.segments);
        self.calls.give_back(empty.calls);
        self.samples.give_back(empty.samples);
        self.runs.give_back(empty.runs);
    }

    /// Bytes of the memory for rows that are in no leaf yet, those of slabs that were taken, too.
    pub fn open_bytes(&self) -> OpenBytes {
        let RowBuilders { segments, calls, samples, runs, .. } = self;
        segments.open_bytes() + calls.open_bytes() + samples.open_bytes() + runs.open_bytes()
    }

    /// Add the next slabs that were taken.
    pub fn add_slabs(&mut self, slabs: SealedSlabs) {
        self.segments.add_slab(slabs.segments);
        self.calls.add_slab(slabs.calls);
        self.samples.add_slab(slabs.samples);
        self.runs.add_slab(slabs.runs);
        self.move_to_pool();
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

    /// Leaves that memory has no room for go to the pool.
    fn move_to_pool(&mut self) {
        if let Some(pool) = self.pool.as_ref().filter(|pool| self.sealed_bytes() as u64 > pool.budget()) {
            self.segments.move_to(pool);
            self.calls.move_to(pool);
            self.samples.move_to(pool);
            self.runs.move_to(pool);
            self.marks.move_to(pool);
        }
    }

    /// Bytes of all leaves so far.
    fn sealed_bytes(&self) -> usize {
        let marks = self.marks.leaves().own_bytes();
        let threads = self.segments.sealed_bytes() + self.calls.sealed_bytes() + self.samples.sealed_bytes();
        threads + self.runs.sealed_bytes() + marks
    }
}

impl RowStores {
    /// The stores of the rows so far and those of a draft.
    pub fn of(mut builders: RowBuilders, draft: TimelineDraft) -> RowStores {
        let (threads, cpus) = (draft.threads.len(), draft.cpus.len());
        let tids: Vec<i32> = draft.threads.iter().map(|of| of.thread.tid).collect();
        for (thread, of) in draft.threads.into_iter().enumerate() {
            builders.push_thread(thread, of.rows);
        }
        for (cpu, of) in draft.cpus.into_iter().enumerate() {
            builders.runs.push(cpu, &of.runs);
        }
        builders.marks.extend(draft.marks);
        builders.seal_slabs();
        let by_thread = |thread: ThreadId| thread.index();
        let pool = builders.pool;
        let stores = RowStores {
            segments: builders.segments.finish(threads),
            calls: builders.calls.finish(threads),
            samples: builders.samples.finish(threads),
            runs: builders.runs.finish_with(cpus, |thread| Some(tids.get(thread as usize).copied().unwrap_or(0))),
            requests: sorted(draft.disk, |_| 0, 1),
            services: sorted(draft.services, |service| by_thread(service.thread), threads),
            page_faults: draft.page_faults.map(|all| sorted(all, |fault| by_thread(fault.thread), threads)),
            counters: draft.counters.into_iter().map(CounterStore::of).collect(),
            marks: builders.marks,
            pool: None,
        };
        stores.kept_in(pool)
    }

    /// The same, with the leaves in a pool if they have more than its bytes.
    pub fn kept_in(mut self, pool: Option<Arc<LeafPool>>) -> RowStores {
        pool.iter().for_each(|pool| self.keep_in(pool));
        self
    }

    fn keep_in(&mut self, pool: &Arc<LeafPool>) {
        if self.leaf_bytes() > pool.budget() {
            self.move_to(pool);
            self.pool = Some(Arc::clone(pool));
        }
    }

    /// Once the pass has ended: leaves have the memory that what else is held and the results leave them.
    pub fn leave_room_for_results(&mut self, pool: &Arc<LeafPool>, ctx: &Ctx) {
        let (Some(limit), Some(held)) = (ctx.memory, memory::held()) else { return };
        let here: usize = self.leaves().iter().map(|leaves| leaves.own_bytes()).sum();
        let others = held.saturating_sub((here + pool.heap_bytes()) as u64);
        let bytes = budget::rows_beside_results(limit, others, self.marks.len());
        pool.shrink(bytes.max(budget::least_for_leaves(ctx.threads)));
        self.keep_in(pool);
    }

    /// Bytes of all leaves that are in no pool, or more than any budget where some are in one.
    fn leaf_bytes(&self) -> u64 {
        let all = self.leaves();
        match all.iter().any(|leaves| leaves.is_pooled()) {
            true => u64::MAX,
            false => all.iter().map(|leaves| leaves.own_bytes() as u64).sum(),
        }
    }

    fn leaves(&self) -> Vec<&Leaves> {
        let mut all = vec![
            self.segments.leaves(),
            self.calls.leaves(),
            self.samples.leaves(),
            self.runs.leaves(),
            self.requests.leaves(),
            self.services.leaves(),
            self.marks.leaves(),
        ];
        all.extend(self.page_faults.iter().map(LineStore::leaves));
        all.extend(self.counters.iter().map(|counter| counter.values.leaves()));
        all
    }

    fn move_to(&mut self, pool: &Arc<LeafPool>) {
        self.segments.move_to(pool);
        self.calls.move_to(pool);
        self.samples.move_to(pool);
        self.runs.move_to(pool);
        self.requests.move_to(pool);
        self.services.move_to(pool);
        self.page_faults.iter_mut().for_each(|faults| faults.move_to(pool));
        self.counters.iter_mut().for_each(|counter| counter.values.move_to(pool));
        self.marks.move_to(pool);
    }
}

/// The store of rows that are sorted by line and start.
fn sorted<R: StoredRow>(rows: Vec<R>, line: impl Fn(&R) -> usize, lines: usize) -> LineStore<R> {
    let mut builder = LineStoreBuilder::default();
    for same in rows.chunk_by(|a, b| line(a) == line(b)) {
        same.first().into_iter().for_each(|first| builder.push(line(first), same));
    }
    builder.finish(lines)
}

impl CounterStore {
    fn of(counter: Counter) -> CounterStore {
        let Counter { name, values } = counter;
        let mut owners: Vec<CounterOwner> = values.iter().map(|value| value.owner).collect();
        owners.dedup();
        let line = |value: &CounterValue| owners.binary_search(&value.owner).unwrap_or(owners.len());
        let values = sorted(values, line, owners.len());
        CounterStore { name, owners, values }
    }

    /// The counter with all its values.
    pub fn to_counter(&self) -> Counter {
        let values = (0..self.owners.len()).flat_map(|line| self.values.line(line).all()).collect();
        Counter { name: self.name, values }
    }
}

impl RowStores {
    /// What does not hold of the stores (`--check`); `tid` has the tid of a thread.
    pub fn check(&self, tid: impl Fn(u32) -> Option<i32>) -> Option<String> {
        let mut checks = vec![
            (Family::Segments, self.segments.check(&tid)),
            (Family::Calls, self.calls.check(&tid)),
            (Family::Samples, self.samples.check(&tid)),
            (Family::Runs, self.runs.check(&tid)),
            (Family::Requests, self.requests.check(&tid)),
            (Family::Services, self.services.check(&tid)),
            (Family::Marks, self.marks.check()),
        ];
        checks.extend(self.page_faults.iter().map(|faults| (Family::Faults, faults.check(&tid))));
        checks.extend(self.counters.iter().map(|counter| (Family::Counters, counter.values.check(&tid))));
        checks.into_iter().find_map(|(family, of)| Some(format!("the store of {}: {}", family.name(), of.err()?)))
    }

    /// What each family holds on the heap.
    pub fn hold(&self, sizes: &PartSizes) {
        let counters = self.counters.iter().map(|counter| counter.values.heap_bytes());
        let faults = self.page_faults.as_ref().map_or(0, HeapSize::heap_bytes);
        let devices = self.requests.heap_bytes() + self.services.heap_bytes();
        sizes.hold(MemoryPart::Segments, self.segments.heap_bytes());
        sizes.hold(MemoryPart::Calls, self.calls.heap_bytes());
        sizes.hold(MemoryPart::Samples, self.samples.heap_bytes());
        sizes.hold(MemoryPart::OtherRows, self.runs.heap_bytes() + devices + faults + counters.sum::<usize>());
        sizes.hold(MemoryPart::Marks, self.marks.heap_bytes());
        sizes.hold(MemoryPart::Leaves, self.pool.as_ref().map_or(0, |pool| pool.heap_bytes()));
    }
}
