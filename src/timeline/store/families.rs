//! The rows of a timeline, family by family.

use super::counters::CounterStore;
use super::leaves::Leaves;
use super::marks::MarkStore;
use super::parts::LineStore;
use super::pool::LeafPool;
use super::sums::StateSums;
use super::whole::StoreError;
use crate::base::ctx::Ctx;
use crate::base::heap::{MemoryPart, PartSizes};
use crate::base::lazy::Lazy;
use crate::base::{budget, memory};
use crate::timeline::questions::Family;
use crate::timeline::{Call, CpuRun, DiskRequest, PageFault, Segment, Service, StackSample};
use get_size2::GetSize;
use std::sync::Arc;

/// The sealed rows of a timeline; those of a family in a file are opened by the first question about them.
#[derive(Clone, Debug, Default)]
pub struct RowStores {
    /// By thread.
    pub segments: Lazy<LineStore<Segment>>,
    /// Of the segments, where they are those of a history file as they were written.
    pub sums: Lazy<StateSums>,
    /// By thread.
    pub calls: Lazy<LineStore<Call>>,
    /// By thread.
    pub samples: Lazy<LineStore<StackSample>>,
    /// By position of the CPU.
    pub runs: Lazy<LineStore<CpuRun>>,
    /// All in line 0.
    pub requests: Lazy<LineStore<DiskRequest>>,
    /// By thread.
    pub services: Lazy<LineStore<Service>>,
    /// By thread; `None` where page faults were not recorded.
    pub page_faults: Lazy<Option<LineStore<PageFault>>>,
    pub counters: Lazy<Vec<CounterStore>>,
    /// Of all tasks.
    pub marks: Lazy<MarkStore>,
    /// For the leaves that memory has no room for, and for those of rows that are derived.
    pub pool: Option<Arc<LeafPool>>,
}

impl RowStores {
    /// The stores with their leaves in a pool, if these have more than its bytes.
    pub fn kept_in(mut self, pool: Option<Arc<LeafPool>>) -> RowStores {
        pool.iter().for_each(|pool| self.keep_in(pool));
        self
    }

    fn keep_in(&mut self, pool: &Arc<LeafPool>) {
        if pool.takes(self.leaf_bytes()) {
            self.move_to(pool);
        }
        self.pool = Some(Arc::clone(pool));
    }

    /// Once the pass has ended: leaves have half of the memory that what else is held leaves them.
    pub fn leave_room_for_results(&mut self, pool: &Arc<LeafPool>, ctx: &Ctx) {
        let (Some(limit), Some(held)) = (ctx.memory, memory::held()) else { return };
        let here: usize = self.leaves().iter().map(|leaves| leaves.own_bytes()).sum();
        let others = held.saturating_sub((here + pool.heap_bytes()) as u64);
        pool.shrink(budget::rows_beside_results(limit, others, ctx.threads));
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
        self.segments.change(|rows| rows.move_to(pool));
        self.calls.change(|rows| rows.move_to(pool));
        self.samples.change(|rows| rows.move_to(pool));
        self.runs.change(|rows| rows.move_to(pool));
        self.requests.change(|rows| rows.move_to(pool));
        self.services.change(|rows| rows.move_to(pool));
        self.page_faults.change(|faults| faults.iter_mut().for_each(|rows| rows.move_to(pool)));
        self.counters.change(|all| all.iter_mut().for_each(|counter| counter.values.move_to(pool)));
        self.marks.change(|marks| marks.move_to(pool));
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
        let broken = |(family, of): (Family, Result<(), StoreError>)| {
            Some(format!("the store of {}: {}", family.name(), of.err()?))
        };
        let is_summed = *self.sums == StateSums::default() || *self.sums == StateSums::of(&self.segments);
        let sums = || (!is_summed).then(|| "the sums of segments are not those of the rows".to_owned());
        checks.into_iter().find_map(broken).or_else(sums)
    }

    /// What each family holds on the heap.
    pub fn hold(&self, sizes: &PartSizes) {
        let counters = self.counters.made().into_iter().flatten().map(|counter| counter.values.get_heap_size());
        let faults = self.page_faults.made().and_then(Option::as_ref).map_or(0, GetSize::get_heap_size);
        let devices = self.requests.get_heap_size() + self.services.get_heap_size();
        sizes.hold(MemoryPart::Segments, self.segments.get_heap_size() + self.sums.get_heap_size());
        sizes.hold(MemoryPart::Calls, self.calls.get_heap_size());
        sizes.hold(MemoryPart::Samples, self.samples.get_heap_size());
        sizes.hold(MemoryPart::OtherRows, self.runs.get_heap_size() + devices + faults + counters.sum::<usize>());
        sizes.hold(MemoryPart::Marks, self.marks.get_heap_size());
        sizes.hold(MemoryPart::Leaves, self.pool.as_ref().map_or(0, |pool| pool.heap_bytes()));
    }
}
