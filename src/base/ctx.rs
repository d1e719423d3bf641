//! The context of a long computation: workers, cancel flag, progress, memory limit.
//!
//! Every function that may take long gets a [`Ctx`] by reference. The worker threads are started when they are first
//! needed and kept for all copies of one context; [`super::parallel`] runs on them.

use super::allocator::room_for_threads;
use super::budget::Budget;
use super::givers::Givers;
use super::heap::PartSizes;
use super::memory_error::MemoryError;
use super::memory_limit::Limit;
use super::question_counts::QuestionCounts;
use super::time_left::{PresentStage, StageShare, TimeLeft, time_left};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The computation was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cancelled")]
pub struct Cancelled;

/// A flag that long computations read often (every packet, every chunk, every node), and the reason where the
/// computation cannot go on.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<CancelState>);

#[derive(Debug, Default)]
struct CancelState {
    asked: AtomicBool,
    failure: OnceLock<MemoryError>,
}

impl Cancel {
    /// Ask the computation to stop.
    pub fn cancel(&self) {
        self.0.asked.store(true, Ordering::Relaxed);
    }

    /// Stop the computation for a reason, with which it ends; the first one counts.
    pub fn fail(&self, why: MemoryError) {
        // Keep the first reason: later failures are its consequences.
        let _ = self.0.failure.set(why);
        self.cancel();
    }

    /// The reason why it cannot go on.
    pub fn failure(&self) -> Option<&MemoryError> {
        self.0.failure.get()
    }

    /// True once asked.
    pub fn is_cancelled(&self) -> bool {
        self.0.asked.load(Ordering::Relaxed)
    }

    /// `Err` once asked, for `?`.
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.is_cancelled() { Err(Cancelled) } else { Ok(()) }
    }
}

/// How far the computation is, read by the interface and by the progress line on stderr.
#[derive(Debug, Default)]
pub struct Progress {
    stage: Mutex<Stage>,
    /// Stages that have ended and were not taken yet, each once, in the order in which they were entered.
    ended: Mutex<Vec<StageTime>>,
    /// The stages that the job goes through, where these are known.
    expected: Mutex<&'static [StageShare]>,
    /// Units done in this stage (bytes while decoding, items else).
    pub done: AtomicU64,
    /// Units in this stage; 0 while unknown.
    pub total: AtomicU64,
    /// Events seen so far.
    pub events: AtomicU64,
    /// Chunks that were read a second time, because they depend on the state that the previous chunk leaves.
    pub replayed: AtomicU64,
    /// Memory by part of the program.
    pub parts: PartSizes,
    /// Bytes of leaves that may be in memory; 0 while unknown.
    pub leaf_budget: AtomicU64,
    /// Leaves that were written to a file, because memory had no room for them.
    pub leaves_written: AtomicU64,
    /// Leaves that were read back.
    pub leaves_read: AtomicU64,
}

/// The stage of the work.
#[derive(Debug, Default)]
struct Stage {
    name: &'static str,
    began: Option<Instant>,
}

/// How long a stage took, all its times together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageTime {
    pub name: &'static str,
    pub took: Duration,
}

impl Progress {
    /// Enter a stage ("reading", "paths" ...) of `total` units.
    pub fn enter(&self, stage: &'static str, total: u64) {
        self.end_stage(stage);
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// End the present stage, and begin another one.
    fn end_stage(&self, name: &'static str) {
        let now = Instant::now();
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        let Stage { name: ended, began } = std::mem::replace(&mut *stage, Stage { name, began: Some(now) });
        let Some(took) = began.map(|began| now.duration_since(began)) else { return };
        let mut all = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        match all.iter_mut().find(|stage| stage.name == ended) {
            Some(stage) => stage.took += took,
            None => all.push(StageTime { name: ended, took }),
        }
    }

    /// The stages that the job goes through from now on.
    pub fn expect(&self, stages: &'static [StageShare]) {
        *self.expected.lock().unwrap_or_else(PoisonError::into_inner) = stages;
    }

    /// How long the job, or its stage, will still take, by the rates of its stages so far; `None` while that is not
    /// known.
    pub fn left(&self) -> Option<TimeLeft> {
        let expected = *self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        let (done, total) = (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed));
        let present = {
            let stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
            let done = (total > 0).then(|| done as f64 / total as f64);
            PresentStage { name: stage.name, took: stage.began?.elapsed(), done }
        };
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let took = |name: &str| ended.iter().find(|stage| stage.name == name).map(|stage| stage.took);
        time_left(expected, took, present)
    }

    /// The stages since the last call, of which the present one ends here.
    pub fn take_stages(&self) -> Vec<StageTime> {
        self.end_stage("");
        std::mem::take(&mut *self.ended.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Name of the stage.
    pub fn stage(&self) -> &'static str {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner).name
    }

    /// `n` more units are done.
    pub fn step(&self, n: u64) {
        self.done.fetch_add(n, Ordering::Relaxed);
    }

    /// The items as they are, each of which is a unit that is done.
    pub fn follow<I: Iterator>(&self, items: I) -> impl Iterator<Item = I::Item> + use<'_, I> {
        let mut unsaid = UnsaidSteps { progress: self, steps: 0 };
        items.inspect(move |_| unsaid.step())
    }
}

/// Units that are done and not said yet: who shows them looks ten times a second.
struct UnsaidSteps<'p> {
    progress: &'p Progress,
    steps: u64,
}

impl UnsaidSteps<'_> {
    fn step(&mut self) {
        self.steps += 1;
        if self.steps == 4096 {
            self.progress.step(std::mem::take(&mut self.steps));
        }
    }
}

impl Drop for UnsaidSteps<'_> {
    fn drop(&mut self) {
        self.progress.step(self.steps);
    }
}

/// The context that every long computation gets: workers, cancel flag, progress, memory limit.
#[derive(Clone, Debug)]
pub struct Ctx {
    /// Worker threads, at least 1.
    pub threads: usize,
    /// Checked often.
    pub cancel: Cancel,
    /// Written by the computation, read by the interface.
    pub progress: Arc<Progress>,
    /// Bytes that the computation may take.
    pub memory: Option<Limit>,
    /// Bytes of memory for everything, and the file for what does not fit; `None`: all stays in memory.
    pub budget: Option<Budget>,
    /// Those whose memory can give way, shared by all copies of this context and by the contexts of later jobs.
    pub givers: Givers,
    /// Counters of the questions about states; `None`: they are not counted.
    pub questions: Option<Arc<QuestionCounts>>,
    /// Shared by all copies of this context.
    pub(crate) helpers: Arc<HelperPool>,
}

/// The workers beside the calling thread, started when they are first needed.
#[derive(Debug)]
pub(crate) struct HelperPool {
    threads: usize,
    pool: OnceLock<Option<ThreadPool>>,
}

impl Ctx {
    /// A context with `threads` workers (0: one for each core).
    pub fn new(threads: usize) -> Self {
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let helpers = Arc::new(HelperPool { threads: threads - 1, pool: OnceLock::new() });
        let (cancel, progress, givers) = (Cancel::default(), Arc::default(), Givers::default());
        Ctx { threads, cancel, progress, memory: None, budget: None, givers, questions: None, helpers }
    }

    /// For another computation with the same workers and limits: it is neither cancelled nor begun.
    pub fn anew(&self) -> Ctx {
        Ctx { cancel: Cancel::default(), progress: Arc::default(), ..self.clone() }
    }

    /// The workers beside the calling thread; `None` for a single worker, or if the system refuses threads.
    pub(super) fn helpers(&self) -> Option<&ThreadPool> {
        if self.threads > 1 { self.helpers.get() } else { None }
    }
}

impl HelperPool {
    fn get(&self) -> Option<&ThreadPool> {
        if self.threads == 0 { None } else { self.pool.get_or_init(|| self.start()).as_ref() }
    }

    fn start(&self) -> Option<ThreadPool> {
        room_for_threads(self.threads).ok()?;
        let builder = ThreadPoolBuilder::new().num_threads(self.threads).thread_name(|_| "worker".to_owned());
        let pool = builder.build().ok()?;
        // Every thread has begun before the caller takes more memory.
        pool.broadcast(|_| ());
        Some(pool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stage_is_timed_once_however_often_it_is_entered() {
        let progress = Progress::default();
        for stage in ["reading", "paths", "reading", "results"] {
            progress.enter(stage, 1);
            std::thread::sleep(Duration::from_millis(2));
        }
        let stages = progress.take_stages();
        let names: Vec<&str> = stages.iter().map(|stage| stage.name).collect();
        assert_eq!(names, ["reading", "paths", "results"]);
        assert!(stages[0].took >= Duration::from_millis(4) && stages[2].took >= Duration::from_millis(2), "{stages:?}");
        assert!(progress.take_stages().iter().all(|stage| stage.name.is_empty()), "nothing was entered since");
    }
}
