//! Work in parallel with results in order; progress; cancelling.
//!
//! [`in_order`] runs `make(i)` for `i` in `0..n` on several workers and hands the results to `take` in order of
//! `i`, while later ones are still being made (a pipeline with at most two results per worker in flight, so memory is
//! bounded). The calling thread is one of the workers, the others are kept for all calls of one [`Work`]; whoever finds the
//! next result ready takes it, so that no thread only waits and none is more than there are workers. Because `take` sees
//! the same sequence whatever the number of workers, serial equals parallel by construction.

use super::allocator::room_for_threads;
use super::memory::Limit;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// The work was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cancelled")]
pub struct Cancelled;

/// A flag that long work looks at often (every packet, every chunk, every node).
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Ask the work to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True once asked.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// `Err` once asked, for `?`.
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.is_cancelled() { Err(Cancelled) } else { Ok(()) }
    }
}

/// How far the work is, read by the interface and by the progress line on stderr.
#[derive(Debug, Default)]
pub struct Progress {
    stage: Mutex<&'static str>,
    /// Units done in this stage (bytes while decoding, items else).
    pub done: AtomicU64,
    /// Units in this stage; 0 while unknown.
    pub total: AtomicU64,
    /// Events seen so far.
    pub events: AtomicU64,
    /// Chunks that were run again, because they could not be understood without what lies on their left.
    pub replayed: AtomicU64,
}

impl Progress {
    /// Enter a stage ("reading", "paths" ...) of `total` units.
    pub fn enter(&self, stage: &'static str, total: u64) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = stage;
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// Name of the stage.
    pub fn stage(&self) -> &'static str {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `n` more units are done.
    pub fn step(&self, n: u64) {
        self.done.fetch_add(n, Ordering::Relaxed);
    }
}

/// What every long computation is given: workers, cancel flag, progress.
#[derive(Clone, Debug)]
pub struct Work {
    /// Worker threads, at least 1.
    pub threads: usize,
    /// Looked at often.
    pub cancel: Cancel,
    /// Written by the work, read by others.
    pub progress: Arc<Progress>,
    /// Bytes that it may take.
    pub memory: Option<Limit>,
    /// Kept for all that is done with this work and its copies.
    pub(crate) others: Arc<Others>,
}

/// The workers beside the calling thread, started when they are first needed.
#[derive(Debug)]
pub(crate) struct Others {
    number: usize,
    pool: OnceLock<Option<ThreadPool>>,
}

impl Work {
    /// Work on `threads` workers (0: all cores).
    pub fn new(threads: usize) -> Self {
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = if threads == 0 { all() } else { threads };
        let others = Others { number: threads - 1, pool: OnceLock::new() };
        Work { threads, cancel: Cancel::default(), progress: Arc::default(), memory: None, others: Arc::new(others) }
    }

    /// The workers beside the calling thread; `None` if there shall be none, or if the system gives none.
    fn others(&self) -> Option<&ThreadPool> {
        let Others { number, pool } = &*self.others;
        let build = || {
            room_for_threads(*number).ok()?;
            let pool =
                ThreadPoolBuilder::new().num_threads(*number).thread_name(|_| "worker".to_owned()).build().ok()?;
            // All have begun before anybody takes more memory.
            pool.broadcast(|_| ());
            Some(pool)
        };
        if self.threads > 1 && *number > 0 { pool.get_or_init(build).as_ref() } else { None }
    }
}

/// Results between being made and being taken.
struct Pipeline<T> {
    /// The first that nobody makes yet.
    next: usize,
    /// The first that was not taken yet.
    taken: usize,
    /// Made, not taken.
    ready: BTreeMap<usize, T>,
    /// Somebody is taking.
    taking: bool,
    /// Workers that wait until more is taken.
    waiting: usize,
    stop: bool,
}

/// What the workers of one call share.
struct Line<'w, T, M, F> {
    work: &'w Work,
    n: usize,
    make: M,
    take: Mutex<F>,
    pipeline: Mutex<Pipeline<T>>,
    changed: Condvar,
}

/// Lock, whatever happened to who held it before: a panic is on its way to the caller then.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T, M: Fn(usize) -> T, F: FnMut(usize, T)> Line<'_, T, M, F> {
    /// Take what is next while it is there, else make what nobody makes yet. Nobody waits for a result: who makes it takes it.
    fn run(&self) {
        let _guard = StopOnPanic(self);
        let mut s = lock(&self.pipeline);
        while !s.stop {
            if self.work.cancel.is_cancelled() {
                s.stop = true;
            } else if let Some((i, made)) = s.first() {
                s.taking = true;
                drop(s);
                lock(&self.take)(i, made);
                s = lock(&self.pipeline);
                (s.taking, s.taken) = (false, i + 1);
            } else if s.next >= self.n {
                break;
            } else if s.next < s.taken + 2 * self.work.threads {
                let i = s.next;
                s.next += 1;
                drop(s);
                let made = (self.make)(i);
                s = lock(&self.pipeline);
                s.ready.insert(i, made);
                continue;
            } else {
                s.waiting += 1;
                s = self.changed.wait(s).unwrap_or_else(PoisonError::into_inner);
                s.waiting -= 1;
                continue;
            }
            if s.waiting > 0 {
                self.changed.notify_all();
            }
        }
    }
}

impl<T> Pipeline<T> {
    /// What is to be taken next, if it is there and nobody is taking.
    fn first(&mut self) -> Option<(usize, T)> {
        if self.taking { None } else { self.ready.remove(&self.taken).map(|made| (self.taken, made)) }
    }
}

/// Stops the others when a worker leaves by a panic, so that nobody waits for it.
struct StopOnPanic<'a, 'w, T, M, F>(&'a Line<'w, T, M, F>);

impl<T, M, F> Drop for StopOnPanic<'_, '_, T, M, F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(&self.0.pipeline).stop = true;
            self.0.changed.notify_all();
        }
    }
}

/// Run `make(0..n)` on the workers of `work` and give the results to `take` in order.
pub fn in_order<T: Send>(
    work: &Work,
    n: usize,
    make: impl Fn(usize) -> T + Sync + Send,
    mut take: impl FnMut(usize, T) + Send,
) -> Result<(), Cancelled> {
    let Some(pool) = work.others().filter(|_| n > 1) else {
        for i in 0..n {
            work.cancel.check()?;
            take(i, make(i));
        }
        return work.cancel.check();
    };
    let pipeline = Pipeline { next: 0, taken: 0, ready: BTreeMap::new(), taking: false, waiting: 0, stop: false };
    let (take, pipeline) = (Mutex::new(take), Mutex::new(pipeline));
    let line = Line { work, n, make, take, pipeline, changed: Condvar::new() };
    pool.in_place_scope(|scope| {
        for _ in 1..work.threads.min(n) {
            scope.spawn(|_| line.run());
        }
        line.run();
    });
    work.cancel.check()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_for_any_number_of_workers() {
        for threads in [1, 2, 3, 7] {
            let mut seen = Vec::new();
            let work = Work::new(threads);
            let slow_first = |i: usize| {
                std::thread::sleep(std::time::Duration::from_micros(((i * 7) % 5) as u64 * 100));
                i * i
            };
            in_order(&work, 50, slow_first, |i, v| seen.push((i, v))).unwrap();
            assert_eq!(seen, (0..50).map(|i| (i, i * i)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn cancelling_ends_it() {
        let work = Work::new(2);
        let cancel = work.cancel.clone();
        let mut taken = 0;
        let end = in_order(
            &work,
            1_000_000,
            |i| i,
            |i, _| {
                taken += 1;
                if i == 10 {
                    cancel.cancel();
                }
            },
        );
        assert_eq!((end, taken), (Err(Cancelled), 11));
    }
}
