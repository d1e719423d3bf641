//! Parallel work whose results are consumed in order.
//!
//! [`in_order`] runs `make(i)` for `i` in `0..n` on several workers and hands the results to `consume` in order of
//! `i`, while later ones are still being made. At most two results per worker are in flight, so memory is bounded. The
//! calling thread is one of the workers. The worker that finds the next result ready consumes it, so no thread only
//! waits for others and there are never more threads than workers. Because `consume` sees the same sequence for any
//! number of workers, serial equals parallel by construction.
//!
//! [`in_order_then`] has a third step, `finish`, for work that only `consume` can hand out and that needs no order: the
//! worker that has consumed a result does it while another one consumes the next.

use super::ctx::{Cancelled, Ctx};
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Progress of one call: results that were produced and not yet consumed.
struct State<T> {
    /// The first item that no worker has claimed.
    unclaimed: usize,
    /// The first item that was not consumed.
    unconsumed: usize,
    /// Results that were produced and not consumed.
    ready: BTreeMap<usize, T>,
    /// A worker is consuming.
    consuming: bool,
    /// Workers that wait until more is consumed.
    waiting: usize,
    stop: bool,
}

impl<T> State<T> {
    /// The next result to consume, if it is ready and no worker is consuming.
    fn next_ready(&mut self) -> Option<(usize, T)> {
        if self.consuming { None } else { self.ready.remove(&self.unconsumed).map(|made| (self.unconsumed, made)) }
    }
}

/// An ordered pipeline, shared by the workers of one call.
struct OrderedPipeline<'c, T, M, F, G> {
    ctx: &'c Ctx,
    n: usize,
    make: M,
    consume: Mutex<F>,
    finish: G,
    state: Mutex<State<T>>,
    changed: Condvar,
}

/// Lock, also after a panic in another worker: that panic is on its way to the caller.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T, R, M: Fn(usize) -> T, F: FnMut(usize, T) -> R, G: Fn(usize, R)> OrderedPipeline<'_, T, M, F, G> {
    /// Consume the next result if it is ready; otherwise claim and produce the next unclaimed item. The worker that
    /// completes the sequence consumes it, so no thread blocks on a result. A worker leaves when nothing is left to
    /// claim and no result waits for the one that is being consumed: the last results are finished beside each other,
    /// too.
    fn run(&self) {
        let _guard = StopOnPanic(self);
        let mut s = lock(&self.state);
        while !s.stop {
            if self.ctx.cancel.is_cancelled() {
                s.stop = true;
            } else if let Some((i, made)) = s.next_ready() {
                s.consuming = true;
                drop(s);
                let rest = lock(&self.consume)(i, made);
                s = lock(&self.state);
                (s.consuming, s.unconsumed) = (false, i + 1);
                if s.waiting > 0 {
                    self.changed.notify_all();
                }
                drop(s);
                (self.finish)(i, rest);
                s = lock(&self.state);
                continue;
            } else if s.unclaimed >= self.n && s.ready.is_empty() {
                break;
            } else if s.unclaimed < self.n.min(s.unconsumed + 2 * self.ctx.threads) {
                let i = s.unclaimed;
                s.unclaimed += 1;
                drop(s);
                let made = (self.make)(i);
                s = lock(&self.state);
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

/// Stops the other workers when one of them panics, so that none waits for it.
struct StopOnPanic<'a, 'c, T, M, F, G>(&'a OrderedPipeline<'c, T, M, F, G>);

impl<T, M, F, G> Drop for StopOnPanic<'_, '_, T, M, F, G> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(&self.0.state).stop = true;
            self.0.changed.notify_all();
        }
    }
}

/// Run `make(0..n)` on the workers of `ctx` and give the results to `consume` in order.
pub fn in_order<T: Send>(
    ctx: &Ctx,
    n: usize,
    make: impl Fn(usize) -> T + Sync + Send,
    consume: impl FnMut(usize, T) + Send,
) -> Result<(), Cancelled> {
    in_order_then(ctx, n, make, consume, |_, ()| {})
}

/// [`in_order`], where what `consume` returns goes to `finish`, on the same worker, while other results are made and
/// consumed.
pub fn in_order_then<T: Send, R>(
    ctx: &Ctx,
    n: usize,
    make: impl Fn(usize) -> T + Sync + Send,
    mut consume: impl FnMut(usize, T) -> R + Send,
    finish: impl Fn(usize, R) + Sync + Send,
) -> Result<(), Cancelled> {
    let Some(pool) = ctx.helpers().filter(|_| n > 1) else {
        for i in 0..n {
            ctx.cancel.check()?;
            finish(i, consume(i, make(i)));
        }
        return ctx.cancel.check();
    };
    let state =
        State { unclaimed: 0, unconsumed: 0, ready: BTreeMap::new(), consuming: false, waiting: 0, stop: false };
    let (consume, state) = (Mutex::new(consume), Mutex::new(state));
    let pipeline = OrderedPipeline { ctx, n, make, consume, finish, state, changed: Condvar::new() };
    pool.in_place_scope(|scope| {
        for _ in 1..ctx.threads.min(n) {
            scope.spawn(|_| pipeline.run());
        }
        pipeline.run();
    });
    ctx.cancel.check()
}

/// Run two computations beside each other where there are workers, else one after the other. Each may use the workers.
pub fn both<A: Send, B>(
    ctx: &Ctx,
    beside: impl FnOnce() -> Result<A, Cancelled> + Send,
    here: impl FnOnce() -> Result<B, Cancelled>,
) -> Result<(A, B), Cancelled> {
    let Some(pool) = ctx.helpers() else { return Ok((beside()?, here()?)) };
    let mut result = Err(Cancelled);
    let other = pool.in_place_scope(|scope| {
        scope.spawn(|_| result = beside());
        here()
    });
    Ok((result?, other?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_return_their_results_and_may_use_the_workers() {
        for threads in [1, 2, 3] {
            let ctx = Ctx::new(threads);
            let sum = || {
                let mut sum = 0;
                in_order(&ctx, 20, |i| i, |_, i| sum += i).map(|()| sum)
            };
            assert!(matches!(both(&ctx, sum, sum), Ok((190, 190))));
        }
    }

    #[test]
    fn in_order_consumes_by_index_for_any_number_of_workers() {
        for threads in [1, 2, 3, 7] {
            let mut seen = Vec::new();
            let ctx = Ctx::new(threads);
            let slow_first = |i: usize| {
                std::thread::sleep(std::time::Duration::from_micros(((i * 7) % 5) as u64 * 100));
                i * i
            };
            in_order(&ctx, 50, slow_first, |i, v| seen.push((i, v))).unwrap();
            assert_eq!(seen, (0..50).map(|i| (i, i * i)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn in_order_then_finishes_each_result_and_lets_the_next_be_consumed() {
        for threads in [1, 2, 3, 7] {
            let ctx = Ctx::new(threads);
            let (mut consumed, finished) = (0, Mutex::new(Vec::new()));
            let finish = |i: usize, sum: usize| {
                std::thread::sleep(std::time::Duration::from_micros(((i * 5) % 3) as u64 * 100));
                lock(&finished).push((i, sum));
            };
            let add = |_, i: usize| {
                consumed += i;
                consumed
            };
            in_order_then(&ctx, 50, |i| i, add, finish).unwrap();
            let mut finished = finished.into_inner().unwrap();
            finished.sort_unstable();
            assert_eq!(finished, (0..50).map(|i| (i, i * (i + 1) / 2)).collect::<Vec<_>>());
        }
        // Two results are finished at once: each waits for the other to be consumed.
        let both = std::sync::Barrier::new(2);
        in_order_then(&Ctx::new(2), 2, |i| i, |_, i| i, |_, _| _ = both.wait()).unwrap();
    }

    #[test]
    fn in_order_ends_when_cancelled() {
        let ctx = Ctx::new(2);
        let cancel = ctx.cancel.clone();
        let mut consumed = 0;
        let end = in_order(
            &ctx,
            1_000_000,
            |i| i,
            |i, _| {
                consumed += 1;
                if i == 10 {
                    cancel.cancel();
                }
            },
        );
        assert_eq!((end, consumed), (Err(Cancelled), 11));
    }
}
