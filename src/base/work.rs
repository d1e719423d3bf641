//! Work in parallel with results in order; progress; cancelling.
//!
//! [`in_order`] runs `make(i)` for `i` in `0..n` on several workers and hands the results to `take` in order of
//! `i`, on the calling thread, while later ones are still being made (a pipeline with at most two results per
//! worker in flight, so memory is bounded). With one worker everything runs on the calling thread. Because `take`
//! sees the same sequence whatever the number of workers, serial equals parallel by construction.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

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
    pub memory: Option<u64>,
}

impl Work {
    /// Work on `threads` workers (0: all cores).
    pub fn new(threads: usize) -> Self {
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = if threads == 0 { all() } else { threads };
        Work { threads, cancel: Cancel::default(), progress: Arc::default(), memory: None }
    }
}

struct Pipeline<T> {
    next: usize,
    taken: usize,
    ready: BTreeMap<usize, T>,
    stop: bool,
}

/// Raises `stop` when a thread leaves by a panic, so that nobody waits for it.
struct StopOnPanic<'a, T>(&'a Mutex<Pipeline<T>>, &'a Condvar);

impl<T> Drop for StopOnPanic<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).stop = true;
            self.1.notify_all();
        }
    }
}

/// Run `make(0..n)` on the workers of `work` and give the results to `take` in order.
pub fn in_order<T: Send>(
    work: &Work,
    n: usize,
    make: impl Fn(usize) -> T + Sync,
    mut take: impl FnMut(usize, T),
) -> Result<(), Cancelled> {
    if work.threads <= 1 || n <= 1 {
        for i in 0..n {
            work.cancel.check()?;
            take(i, make(i));
        }
        return work.cancel.check();
    }
    let in_flight = 2 * work.threads;
    let state = Mutex::new(Pipeline { next: 0, taken: 0, ready: BTreeMap::new(), stop: false });
    let changed = Condvar::new();
    let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        for _ in 0..work.threads.min(n) {
            scope.spawn(|| {
                let _guard = StopOnPanic(&state, &changed);
                loop {
                    let i = {
                        let mut s = lock();
                        while !s.stop && s.next < n && s.next >= s.taken + in_flight {
                            s = changed.wait(s).unwrap_or_else(PoisonError::into_inner);
                        }
                        if s.stop || s.next >= n {
                            return;
                        }
                        s.next += 1;
                        s.next - 1
                    };
                    let made = make(i);
                    lock().ready.insert(i, made);
                    changed.notify_all();
                }
            });
        }
        let _guard = StopOnPanic(&state, &changed);
        let mut result = Ok(());
        for i in 0..n {
            let mut s = lock();
            let made = loop {
                if work.cancel.is_cancelled() {
                    s.stop = true;
                    result = Err(Cancelled);
                }
                if s.stop {
                    break None;
                }
                if let Some(made) = s.ready.remove(&i) {
                    break Some(made);
                }
                // Woken by results; the short time-out only bounds how late a cancel is seen.
                let wait = std::time::Duration::from_millis(20);
                s = changed.wait_timeout(s, wait).unwrap_or_else(PoisonError::into_inner).0;
            };
            drop(s);
            let Some(made) = made else { break };
            take(i, made);
            lock().taken = i + 1;
            changed.notify_all();
        }
        changed.notify_all();
        result
    })
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
