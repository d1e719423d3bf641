//! Obeying a memory limit: work that would need more is cancelled with one line, before the system kills the process.
//!
//! The limit is the user's (`--memory`), else that of the control group in which the process runs (a container's, a
//! service's), whose end is a kill that no process can catch: it is read beforehand. Where there is neither, it is
//! 70 % of what the machine has free. A watcher looks at what the process holds every few milliseconds, the oftener the
//! nearer the limit is (the pages of its own; mapped files are the system's, which takes them back when it needs to).
//! When less than a sixteenth of the limit is left, freed blocks that the C library keeps left out, it takes memory
//! that can give way ([`Givers`]: leaves of states), whatever the work is at; once more is held all the same, it
//! cancels the work. A 32nd of the limit is left for what is allocated between two looks and until the work sees its
//! cancel flag; of a group's limit an eighth is left for that, and for what the kernel holds for the process.

use super::allocator::{return_free_memory, room_for_threads};
use super::ctx::Ctx;
use super::givers::Givers;
use super::large_blocks::LARGE_BLOCKS;
use super::memory_error::MemoryError;
use super::memory_limit::{Limit, kib};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Shortest and longest time between two looks at what is held.
const PAUSES: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(50));
/// Time between two looks at what is held without freed blocks: giving these back takes time.
const TRIM_PAUSE: Duration = Duration::from_millis(20);
/// Divisor of a limit: once less is left, memory that can give way is asked for.
const LEFT_OF: u64 = 16;
/// Divisor of a limit: the part for what is allocated after a look.
const UNSEEN_OF: u64 = 32;
/// A process takes no more bytes in a microsecond.
const FASTEST: u64 = 16_384;

/// Run `job`, which looks at `cancel`, within a limit.
pub fn within<T>(limit: Option<Limit>, ctx: &Ctx, job: impl FnOnce() -> T) -> Result<T, MemoryError> {
    let cancel = &ctx.cancel;
    let exceeded = |limit: Limit| MemoryError::Exceeded { limit, stage: ctx.progress.stage() };
    let ended = |result: T| cancel.failure().cloned().map_or(Ok(result), Err);
    let Some(limit) = limit else { return ended(job()) };
    let most = limit.bytes() - limit.bytes() / UNSEEN_OF;
    let is_given = !matches!(limit, Limit::Free(_));
    let left = || left(most, held, &ctx.givers);
    match held() {
        None if is_given => return Err(MemoryError::Unknown),
        None => return ended(job()),
        // An earlier job of the interface may have freed much.
        Some(_) if left().is_none() => return Err(exceeded(limit)),
        Some(_) => {}
    }
    let watched = Watched::default();
    let result = std::thread::scope(|scope| {
        let watch = || {
            watched.enter(Stage::Watching);
            let (mut next, mut trimmed) = (PAUSES.0, Instant::now());
            while !watched.has_ended_within(next) {
                let Some(mut left) = left() else {
                    // Until the work sees it, leaves make room for what it still takes.
                    cancel.fail(exceeded(limit));
                    LARGE_BLOCKS.leave(0);
                    next = TRIM_PAUSE;
                    continue;
                };
                if left < most / LEFT_OF && trimmed.elapsed() >= TRIM_PAUSE {
                    return_free_memory();
                    left = most.saturating_sub(held().unwrap_or(0));
                    ctx.givers.ask((most / LEFT_OF).saturating_sub(left));
                    trimmed = Instant::now();
                }
                LARGE_BLOCKS.leave(left);
                next = pause(left);
            }
        };
        let builder = std::thread::Builder::new().name("memory".into());
        let is_watched = room_for_threads(1).is_ok() && builder.spawn_scoped(scope, watch).is_ok();
        if !is_watched && is_given {
            return Err(MemoryError::Unwatched);
        }
        // Sent on the way out of a panic as well.
        let ends = OnDrop(|| watched.enter(Stage::Ended));
        if is_watched {
            watched.until_begun();
        }
        let result = job();
        drop(ends);
        ended(result)
    });
    LARGE_BLOCKS.leave(u64::MAX);
    result
}

/// Bytes that the process may still take; `None` where it holds more than `most`, even without the blocks that it has
/// freed and that its C library keeps, and without what can give way.
fn left(most: u64, held: impl Fn() -> Option<u64>, givers: &Givers) -> Option<u64> {
    let left = || most.checked_sub(held().unwrap_or(0));
    let trimmed = || {
        return_free_memory();
        left()
    };
    left().or_else(trimmed).or_else(|| {
        givers.ask(held()?.saturating_sub(most - most / LEFT_OF));
        trimmed()
    })
}

/// Until the next look, where this many bytes are left.
fn pause(left: u64) -> Duration {
    Duration::from_micros(left / FASTEST).clamp(PAUSES.0, PAUSES.1)
}

/// How far a watched job is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Before,
    Watching,
    Ended,
}

/// The messages between a job and the thread that watches it. Neither sending nor waiting takes memory.
#[derive(Debug, Default)]
struct Watched {
    stage: Mutex<Stage>,
    changed: Condvar,
}

impl Watched {
    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A job that has ended stays so.
    fn enter(&self, next: Stage) {
        let mut stage = self.stage();
        if *stage != Stage::Ended {
            *stage = next;
        }
        self.changed.notify_all();
    }

    fn until_begun(&self) {
        let before = |stage: &mut Stage| *stage == Stage::Before;
        drop(self.changed.wait_while(self.stage(), before).unwrap_or_else(PoisonError::into_inner));
    }

    fn has_ended_within(&self, pause: Duration) -> bool {
        let goes_on = |stage: &mut Stage| *stage != Stage::Ended;
        let waited = self.changed.wait_timeout_while(self.stage(), pause, goes_on);
        *waited.unwrap_or_else(PoisonError::into_inner).0 == Stage::Ended
    }
}

/// Done when it goes out of scope.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Bytes of memory of its own that this process holds.
pub fn held() -> Option<u64> {
    kib(&std::fs::read_to_string("/proc/self/status").ok()?, "RssAnon:")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::givers::GivesWay;
    use std::hint::black_box;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// The bytes for which it was asked first; it has nothing to give.
    #[derive(Debug, Default)]
    struct Asked(AtomicU64);

    impl GivesWay for Asked {
        fn give_way(&self, bytes: u64) -> u64 {
            let _ = self.0.compare_exchange(0, bytes, Ordering::Relaxed, Ordering::Relaxed);
            0
        }
    }

    /// Bytes that it has and gives.
    #[derive(Debug)]
    struct Given(AtomicU64);

    impl GivesWay for Given {
        fn give_way(&self, bytes: u64) -> u64 {
            let given = bytes.min(self.0.load(Ordering::Relaxed));
            self.0.fetch_sub(given, Ordering::Relaxed);
            given
        }
    }

    #[test]
    fn what_takes_too_much_is_cancelled() {
        let ctx = Ctx::new(1);
        ctx.progress.enter("reading", 0);
        let cancel = &ctx.cancel;
        let bytes = held().unwrap() + (256 << 20);
        let limit = Limit::Asked(bytes);
        let started = Instant::now();
        let asked: Arc<Asked> = Arc::default();
        ctx.givers.add(&asked);
        let result = within(Some(limit), &ctx, || {
            let mut kept: Vec<Vec<u8>> = Vec::new();
            while !cancel.is_cancelled() && started.elapsed().as_secs() < 60 {
                kept.push(black_box(vec![1; 1 << 20]));
                // Slowly enough that a look of the watcher falls between the last sixteenth of the limit and its end.
                std::thread::sleep(Duration::from_millis(2));
            }
            kept.len()
        });
        assert_eq!(result, Err(MemoryError::Exceeded { limit, stage: "reading" }));
        let asked = asked.0.load(Ordering::Relaxed);
        assert!((1..=bytes / LEFT_OF).contains(&asked), "{asked} bytes were asked for first");
        assert_eq!(within(Some(Limit::Asked(u64::MAX)), &Ctx::new(1), || 7), Ok(7));
        for limit in [Limit::Asked(1), Limit::Group(1 << 10), Limit::Free(1)] {
            let error = within(Some(limit), &Ctx::new(1), || 7).unwrap_err();
            assert_eq!(error, MemoryError::Exceeded { limit, stage: "" });
            assert_eq!(error.to_string().contains("--memory 1B:"), limit == Limit::Asked(1), "{error}");
        }
        assert!(
            pause(0) == PAUSES.0 && pause(u64::MAX) == PAUSES.1 && pause(160 << 20) == Duration::from_micros(10_240)
        );
        let (limit, stage) = (Limit::Asked(512 << 20), "paths");
        let error = MemoryError::Exceeded { limit, stage }.to_string();
        assert!(error.starts_with("--memory 512MiB: this is not enough for the critical paths"), "{error}");
        assert!(error.contains("choose a --task with fewer executions"), "{error}");
        // Freed blocks below one that is held stay in the process until they are asked for.
        #[cfg(target_env = "gnu")]
        {
            let mut blocks: Vec<Vec<u8>> = (0..1 << 16).map(|_| black_box(vec![1; 4000])).collect();
            let most = held().unwrap() - (64 << 20);
            let held_block = blocks.pop();
            drop(blocks);
            assert!(left(most, held, &Givers::default()).is_some());
            drop(held_block);
        }
    }

    #[test]
    fn what_can_give_way_does_so_before_the_work_ends() {
        let given = [Arc::new(Given(AtomicU64::new(30))), Arc::new(Given(AtomicU64::new(50)))];
        let givers = Givers::default();
        given.iter().for_each(|giver| givers.add(giver));
        let given_back = || given.each_ref().map(|giver| giver.0.load(Ordering::Relaxed));
        let others = AtomicU64::new(820);
        let held = || Some(others.load(Ordering::Relaxed) + given_back().iter().sum::<u64>());
        assert_eq!((left(1600, held, &givers), given_back()), (Some(700), [30, 50]));
        // As much as leaves a sixteenth, and no more.
        others.store(1500, Ordering::Relaxed);
        given[1].0.store(120, Ordering::Relaxed);
        assert_eq!((left(1600, held, &givers), given_back()), (Some(100), [0, 0]));
        others.store(1400, Ordering::Relaxed);
        given[1].0.store(250, Ordering::Relaxed);
        assert_eq!((left(1600, held, &givers), given_back()), (Some(100), [0, 100]));
        others.store(1700, Ordering::Relaxed);
        assert_eq!(left(1600, held, &givers), None);
    }
}
