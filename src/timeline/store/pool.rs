//! Leaves in memory as far as a budget goes, the others in a temporary file.
//!
//! In: sealed leaves. Out: a number for each, by which it is asked for. When the leaves in memory pass the budget, one
//! that was not used for long gives way: the pool goes round the leaves in memory like a clock's hand and passes over
//! those that were asked for since it came by last. A leaf is written once, as it never changes; when it is asked for
//! again it is read with one positioned read, and its checksum and columns are checked. A reader holds its
//! leaf ([`LeafPin`](super::leaves::LeafPin)), so the next row costs no look into the pool; leaves that are held do not
//! give way. Where leaves are never changes an answer.
//!
//! The first error, of the file or of a checksum, cancels the work, which ends with that reason: rows that cannot be
//! read look absent until then. Cost: a lock and an atomic addition where a reader moves to another leaf; a read takes
//! 5 us from the system's cache.

use super::leaf_bytes::Leaf;
use crate::base::allocator::return_free_memory;
use crate::base::ctx::{Cancel, Cancelled, Ctx, Progress};
use crate::base::givers::GivesWay;
use crate::base::heap::MemoryPart;
use crate::base::memory_error::MemoryError;
use crate::base::memory_limit::Limit;
use crate::base::spill::{SpillArea, SpillFile, SpillPlace};
use crate::base::{budget, memory};
use crate::timeline::questions::Family;
use get_size2::GetSize;
use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Leaves of a file of the user's, which are read one by one.
pub trait LeafSource: Debug + Send + Sync {
    /// A leaf by its number, if its bytes and rows are what was written; else the reason with which the work ends.
    fn read(&self, leaf: u32) -> Result<Leaf, MemoryError>;
}

/// Bytes of leaves that stay in memory even where they are asked for.
const LEAST: u64 = budget::least_for_leaves(1);

/// The number of a leaf in its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, GetSize)]
pub(super) struct LeafId(u32);

/// A leaf in memory, in the file, or both.
#[derive(Debug)]
struct PooledLeaf {
    family: Family,
    leaf: Option<Arc<Leaf>>,
    place: Option<LeafPlace>,
    used: bool,
}

/// Where a leaf can be read.
#[derive(Clone, Debug)]
enum LeafPlace {
    /// In the temporary file.
    Spilled(SpillPlace),
    /// In a file of the user's, which has it by this number.
    Kept(Arc<dyn LeafSource>, u32),
}

#[derive(Debug, Default)]
struct PoolState {
    leaves: Vec<PooledLeaf>,
    /// Those in memory; the hand is at the front.
    clock: VecDeque<LeafId>,
    /// Bytes of those in memory.
    bytes: u64,
}

/// The leaves of all families of a timeline.
#[derive(Debug)]
pub struct LeafPool {
    state: Mutex<PoolState>,
    budget: AtomicU64,
    /// All leaves come here as they are made, so that all can give way.
    takes_all: bool,
    /// Where leaves go that memory has no room for; without it they stay.
    area: Option<SpillArea>,
    cancel: Cancel,
    progress: Arc<Progress>,
    failed: AtomicBool,
}

/// How many leaves stay in memory, and where the others go.
#[derive(Clone, Debug)]
pub struct LeafRoom {
    /// The most bytes in memory.
    pub bytes: u64,
    /// The file for all else.
    pub file: Arc<SpillFile>,
}

impl LeafPool {
    /// A pool without leaves. All that come stay in memory where no `room` is set for them.
    pub fn new(room: Option<LeafRoom>, ctx: &Ctx) -> LeafPool {
        let (bytes, area) = match room {
            Some(LeafRoom { bytes, file }) => (bytes, Some(SpillArea::new(file))),
            None => (u64::MAX, None),
        };
        LeafPool {
            state: Mutex::default(),
            budget: AtomicU64::new(bytes),
            takes_all: matches!(ctx.memory, Some(Limit::Asked(_) | Limit::Group(_))),
            area,
            cancel: ctx.cancel.clone(),
            progress: Arc::clone(&ctx.progress),
            failed: AtomicBool::new(false),
        }
    }

    /// The pool of a recording whose traces are open, for leaves beside `buffers` bytes of events; `None` where no
    /// budget is set, or there is no file. The work ends here where a limit has no room for the least of each part.
    pub fn within(ctx: &Ctx, buffers: u64) -> Result<Option<Arc<LeafPool>>, Cancelled> {
        let Some(budget) = &ctx.budget else { return Ok(None) };
        let mut opened = memory::held().unwrap_or(0);
        if let Some(limit) = ctx.memory {
            let check = |opened: u64| budget::check_parts(limit, opened, buffers, ctx.threads);
            let checked = check(opened).or_else(|_| {
                // The C library may keep blocks that earlier steps have freed: they do not count.
                return_free_memory();
                opened = memory::held().unwrap_or(opened);
                check(opened)
            });
            checked.map_err(|why| ctx.cancel.fail(why)).or_else(|()| ctx.cancel.check())?;
        }
        let bytes = budget.for_leaves(opened, buffers, ctx.threads);
        let pool = |file| LeafPool::new(Some(LeafRoom { bytes, file }), ctx);
        ctx.progress.leaf_budget.store(bytes, Ordering::Relaxed);
        ctx.progress.parts.give(MemoryPart::EventBuffers, budget.for_buffers(ctx.threads).max(buffers));
        ctx.progress.parts.give(MemoryPart::OpenRows, budget.for_rows(opened, buffers, ctx.threads));
        ctx.progress.parts.give(MemoryPart::Leaves, bytes);
        Ok(budget.file.clone().map(|file| {
            let pool = Arc::new(pool(file));
            ctx.givers.add(&pool);
            pool
        }))
    }

    /// True where this many bytes of leaves are to come here: they are more than may be in memory, or the memory is
    /// limited by others, and leaves that are here can still give way to results.
    pub fn takes(&self, bytes: u64) -> bool {
        self.takes_all || bytes > self.budget()
    }

    /// The most bytes of leaves in memory.
    pub(super) fn budget(&self) -> u64 {
        self.budget.load(Ordering::Relaxed)
    }

    /// At most this many bytes of leaves are in memory from now on, unless they were fewer before; others give way at
    /// once, but for those that are held.
    pub fn shrink(&self, bytes: u64) {
        let before = self.budget.fetch_min(bytes, Ordering::Relaxed);
        if bytes < before {
            self.progress.leaf_budget.store(bytes, Ordering::Relaxed);
            self.progress.parts.give(MemoryPart::Leaves, bytes);
            self.let_leaves_go(&mut self.state());
            return_free_memory();
        }
    }

    /// Where others set the limit, all leaves give way but those that are held; they come back when they are asked for.
    pub fn empty(&self) {
        if self.takes_all {
            let before = self.budget.swap(0, Ordering::Relaxed);
            self.let_leaves_go(&mut self.state());
            self.budget.store(before, Ordering::Relaxed);
            return_free_memory();
        }
    }

    /// Why a leaf could not be written or read, where one could not.
    pub fn failure(&self) -> Option<MemoryError> {
        self.failed.load(Ordering::Relaxed).then(|| self.cancel.failure().cloned()).flatten()
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Add a leaf of a family.
    pub(super) fn add(&self, leaf: Leaf, family: Family) -> LeafId {
        let mut state = self.state();
        let id = LeafId(state.leaves.len() as u32);
        state.leaves.push(PooledLeaf { family, leaf: None, place: None, used: false });
        self.put(&mut state, id, &Arc::new(leaf));
        id
    }

    /// Add a leaf that is read from a source when it is asked for.
    pub(super) fn add_kept(&self, source: &Arc<dyn LeafSource>, number: u32, family: Family) -> LeafId {
        let mut state = self.state();
        let (id, place) = (LeafId(state.leaves.len() as u32), LeafPlace::Kept(Arc::clone(source), number));
        state.leaves.push(PooledLeaf { family, leaf: None, place: Some(place), used: false });
        id
    }

    /// A leaf; `None` after an error.
    pub(super) fn get(&self, id: LeafId) -> Option<Arc<Leaf>> {
        let (place, family) = {
            let mut state = self.state();
            let pooled = state.leaves.get_mut(id.0 as usize)?;
            pooled.used = true;
            if let Some(leaf) = &pooled.leaf {
                return Some(Arc::clone(leaf));
            }
            (pooled.place.clone()?, pooled.family)
        };
        // Without the lock, so that other workers go on; two that read one leaf get the same bytes.
        let read = match place {
            LeafPlace::Kept(source, number) => source.read(number),
            LeafPlace::Spilled(place) => {
                let area = self.area.as_ref()?;
                let whole = |error| area.unreadable(&error);
                let leaf = |bytes: Vec<u8>| Leaf::from_bytes(bytes.into(), family).map_err(whole);
                area.read(place).and_then(leaf).map_err(MemoryError::Spill)
            }
        };
        let leaf = Arc::new(read.map_err(|error| self.fail(error)).ok()?);
        self.progress.leaves_read.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state();
        match state.leaves.get(id.0 as usize)?.leaf.clone() {
            Some(other) => Some(other),
            None => {
                self.put(&mut state, id, &leaf);
                Some(leaf)
            }
        }
    }

    /// Bytes in memory.
    pub fn heap_bytes(&self) -> usize {
        self.state().bytes as usize
    }

    /// Keep a leaf in memory that was not there; others give way.
    fn put(&self, state: &mut PoolState, id: LeafId, leaf: &Arc<Leaf>) {
        let Some(pooled) = state.leaves.get_mut(id.0 as usize) else { return };
        pooled.leaf = Some(Arc::clone(leaf));
        pooled.used = true;
        state.bytes += leaf.get_heap_size() as u64;
        state.clock.push_back(id);
        self.let_leaves_go(state);
        self.progress.parts.hold(MemoryPart::Leaves, state.bytes as usize);
    }

    /// Leaves give way until the others fit.
    fn let_leaves_go(&self, state: &mut PoolState) {
        // Each leaf is passed over once at most: it was used, or is held.
        let mut left = 2 * state.clock.len();
        while state.bytes > self.budget() && left > 0 && !self.failed.load(Ordering::Relaxed) {
            left -= 1;
            let Some(next) = state.clock.pop_front() else { break };
            if !self.give_way(state, next) {
                state.clock.push_back(next);
            }
        }
    }

    /// Take a leaf out of memory unless it is in use; true if it is out.
    fn give_way(&self, state: &mut PoolState, id: LeafId) -> bool {
        let Some(pooled) = state.leaves.get_mut(id.0 as usize) else { return true };
        let Some(leaf) = &pooled.leaf else { return true };
        if std::mem::take(&mut pooled.used) || Arc::strong_count(leaf) > 1 {
            return false;
        }
        if pooled.place.is_none() {
            let Some(area) = &self.area else { return false };
            match area.write(leaf.bytes()) {
                Ok(place) => pooled.place = Some(LeafPlace::Spilled(place)),
                Err(error) => {
                    self.fail(MemoryError::Spill(error));
                    return false;
                }
            }
            self.progress.leaves_written.fetch_add(1, Ordering::Relaxed);
        }
        state.bytes -= leaf.get_heap_size() as u64;
        pooled.leaf = None;
        true
    }

    /// The work ends with this error, if it is the first.
    fn fail(&self, error: MemoryError) {
        self.failed.store(true, Ordering::Relaxed);
        self.cancel.fail(error);
    }
}

impl GivesWay for LeafPool {
    fn give_way(&self, bytes: u64) -> u64 {
        if self.area.is_none() {
            return 0;
        }
        let mut state = self.state();
        let before = state.bytes;
        self.budget.fetch_min(before.saturating_sub(bytes).max(LEAST), Ordering::Relaxed);
        self.let_leaves_go(&mut state);
        before - state.bytes
    }
}
