//! Background jobs: one runs, the newest request wins, the running one is cancelled (ARCHITECTURE.md rule 8).
//!
//! In: [`Job`]s from the loop. Out: [`Done`]s through the function given at the start, each with the [`Ticket`] of its
//! request, so that the loop can drop what comes too late. Everything slow happens on the one thread here: the
//! analysis, counting histograms, comparing, pattern mining, writing files. A job that panics ends with an error that
//! says so. There are two lanes, because a request about executions does not make one about patterns obsolete: within
//! a lane the newest wins; executions go first, and mining that they interrupt is begun again after them.

use super::counts::{HistogramCounter, HistogramCounts};
use super::patterns::AnomalyReport;
use super::setup::{Backend, Exported};
use crate::base::allocator::room_for_threads;
use crate::base::ctx::{Cancel, Ctx, Progress};
use crate::base::file::{self, Existing};
use crate::base::sandbox;
use crate::compare::{Comparison, ComparisonRequest};
use crate::explain::mining::Mining;
use crate::model::Model;
use crate::model::settings::Settings;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What can be asked for.
#[derive(Clone, Debug)]
pub enum Job {
    /// Analyse the trace for a task (`None`: the one that the command line or the trace chooses).
    Analyse {
        /// Name of the task.
        task: Option<String>,
    },
    /// Compare two groups and count the histograms.
    Compare {
        /// Of these executions.
        model: Arc<Model>,
        /// The groups.
        request: ComparisonRequest,
    },
    /// Find patterns, unless that is done; then what took too long under these settings, and why.
    Mine {
        /// q and s.
        settings: Settings,
    },
    /// Write something as JSON.
    Export {
        /// What to write.
        what: Exported,
        /// Where.
        path: PathBuf,
        /// Replace a file that exists.
        overwrite: bool,
    },
}

/// Which requests a request makes obsolete: those of its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobLane {
    /// About executions; goes first.
    Executions,
    /// About patterns.
    Patterns,
}

/// A request by its lane and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Lane.
    pub lane: JobLane,
    number: u64,
}

impl Job {
    /// Its lane.
    pub fn lane(&self) -> JobLane {
        match self {
            Job::Mine { .. } => JobLane::Patterns,
            Job::Analyse { .. } | Job::Compare { .. } | Job::Export { .. } => JobLane::Executions,
        }
    }

    /// What it is called while it runs.
    pub fn name(&self) -> &'static str {
        match self {
            Job::Analyse { .. } => "analysing",
            Job::Compare { .. } => "comparing",
            Job::Mine { .. } => "mining",
            Job::Export { .. } => "exporting",
        }
    }
}

/// A result, or a part of it.
#[derive(Clone, Debug)]
pub enum Done {
    /// The analysis is done.
    Analysed(Result<Arc<Model>, String>),
    /// The histograms are counted.
    Counted(Arc<HistogramCounts>),
    /// The comparison is done.
    Compared(Result<Arc<Comparison>, String>),
    /// Patterns are mined and held against these settings.
    Mined(Settings, Result<Arc<AnomalyReport>, String>),
    /// The file is written, or not.
    Exported {
        /// Where.
        path: PathBuf,
        /// How it went.
        outcome: Outcome,
    },
}

/// How writing a file went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Bytes written.
    Written(u64),
    /// There is such a file, and nobody said that it may be replaced.
    Exists,
    /// What went wrong.
    Failed(String),
}

#[derive(Clone)]
struct Asked {
    ticket: Ticket,
    job: Job,
    ctx: Ctx,
}

#[derive(Default)]
struct State {
    newest: [u64; 2],
    waiting: [Option<Asked>; 2],
    running: Option<Asked>,
    closed: bool,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The background thread.
pub struct Jobs {
    shared: Arc<Shared>,
    threads: usize,
}

impl Jobs {
    /// Start the thread. `send` is called on it with each result.
    pub fn start(
        backend: Box<dyn Backend>,
        threads: usize,
        send: impl Fn(Ticket, Done) + Send + 'static,
    ) -> std::io::Result<Jobs> {
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() });
        let theirs = Arc::clone(&shared);
        let mut worker = Worker { backend, counter: None, mined: None };
        room_for_threads(1)?;
        std::thread::Builder::new().name("jobs".into()).spawn(move || {
            while let Some(Asked { ticket, job, ctx }) = next(&theirs) {
                worker.run(job, &ctx, &|done| {
                    if !ctx.cancel.is_cancelled() {
                        send(ticket, done);
                    }
                });
                theirs.lock().running = None;
            }
        })?;
        Ok(Jobs { shared, threads })
    }

    /// Ask for a job: cancels the running one and replaces the waiting one of its lane. Returns its progress.
    pub fn request(&self, job: Job) -> (Ticket, Arc<Progress>) {
        let ctx = Ctx::new(self.threads);
        let progress = Arc::clone(&ctx.progress);
        let lane = job.lane();
        let mut guard = self.shared.lock();
        let state = &mut *guard;
        state.newest[lane as usize] += 1;
        let ticket = Ticket { lane, number: state.newest[lane as usize] };
        match &state.running {
            Some(running) if running.ticket.lane == lane => running.ctx.cancel.cancel(),
            Some(running) if lane == JobLane::Executions => {
                running.ctx.cancel.cancel();
                let again = Ctx { cancel: Cancel::default(), ..running.ctx.clone() };
                let theirs = &mut state.waiting[running.ticket.lane as usize];
                theirs.get_or_insert_with(|| Asked { ctx: again, ..running.clone() });
            }
            _ => {}
        }
        state.waiting[lane as usize] = Some(Asked { ticket, job, ctx });
        drop(guard);
        self.shared.changed.notify_all();
        (ticket, progress)
    }

    /// True when nothing newer was asked for in its lane.
    pub fn is_newest(&self, ticket: Ticket) -> bool {
        self.shared.lock().newest[ticket.lane as usize] == ticket.number
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closed = true;
        if let Some(running) = &state.running {
            running.ctx.cancel.cancel();
        }
        self.shared.changed.notify_all();
    }
}

fn next(shared: &Shared) -> Option<Asked> {
    let mut state = shared.lock();
    loop {
        if state.closed {
            return None;
        }
        if let Some(asked) = state.waiting.iter_mut().find_map(Option::take) {
            state.running = Some(asked.clone());
            return Some(asked);
        }
        state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
}

struct Worker {
    backend: Box<dyn Backend>,
    counter: Option<HistogramCounter>,
    mined: Option<Arc<Mining>>,
}

impl Worker {
    fn run(&mut self, job: Job, ctx: &Ctx, send: &dyn Fn(Done)) {
        match job {
            Job::Analyse { task } => {
                // The old model's indexes are of no use to the new one: free them before it is built.
                self.counter = None;
                // What was mined is about the executions of the task before.
                if task.is_some() {
                    self.mined = None;
                }
                let result = caught(|| self.backend.analyse(task.as_deref(), ctx));
                send(Done::Analysed(result));
            }
            Job::Compare { model, request } => {
                let known = self.counter.as_ref().is_some_and(|c| c.is_of(&model));
                let given = !request.slow.is_empty() || !request.fast.is_empty();
                // While a filter moves, the counts come first: they take milliseconds.
                if known && given {
                    self.count(&model, &request, ctx, send);
                }
                let result = caught(|| self.backend.compare(&model, &request, ctx)).map(Arc::new);
                let groups = match &result {
                    Ok(c) => c.request(),
                    Err(_) => request,
                };
                send(Done::Compared(result));
                if !(known && given) {
                    self.count(&model, &groups, ctx, send);
                }
            }
            Job::Mine { settings } => {
                let found = caught(|| {
                    let mining = match &mut self.mined {
                        Some(mined) => &**mined,
                        none => &**none.insert(self.backend.mine(ctx)?),
                    };
                    Ok(Arc::new(AnomalyReport::new(mining.anomalies(&settings, ctx)?, mining.notices.clone())))
                });
                send(Done::Mined(settings, found));
            }
            Job::Export { what, path, overwrite } => {
                let outcome = match caught(|| self.backend.export(&what)) {
                    Ok(text) => write_new(&path, text.as_bytes(), overwrite),
                    Err(what) => Outcome::Failed(what),
                };
                send(Done::Exported { path, outcome });
            }
        }
    }

    fn count(&mut self, model: &Arc<Model>, groups: &ComparisonRequest, ctx: &Ctx, send: &dyn Fn(Done)) {
        if !self.counter.as_ref().is_some_and(|c| c.is_of(model)) {
            self.counter = HistogramCounter::new(model, ctx).ok();
        }
        if let Some(counter) = &mut self.counter {
            send(Done::Counted(Arc::new(counter.count(groups))));
        }
    }
}

/// Errors and panics of the backend as one line.
fn caught<T>(run: impl FnOnce() -> anyhow::Result<T>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(format!("{error:#}")),
        Err(panic) => {
            let said = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
            let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            Err(format!("whyslow failed here, which is its own fault and not the trace's: {said}"))
        }
    }
}

/// Write a file in one step: it has the whole text or does not change. Refuses to replace one unless told to.
pub fn write_new(path: &std::path::Path, text: &[u8], overwrite: bool) -> Outcome {
    let existing = if overwrite { Existing::Replace } else { Existing::Keep };
    match file::write(path, text, existing) {
        Ok(()) => Outcome::Written(text.len() as u64),
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Outcome::Exists,
        // The reason and its remedy first: the line is cut at the screen's edge, and the user has just typed the path.
        Err(e) => Outcome::Failed(format!("{}: {}", sandbox::explained(path, e), path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::patterns::Mined;
    use crate::base::notice::Notices;
    use std::sync::mpsc::channel;
    use std::time::{Duration, Instant};

    /// Works until it is cancelled, except for the task `quick`; panics for `broken`.
    struct Slow;

    impl Backend for Slow {
        fn analyse(&mut self, task: Option<&str>, ctx: &Ctx) -> anyhow::Result<Arc<Model>> {
            assert!(task != Some("broken"), "a bug");
            while task != Some("quick") {
                ctx.cancel.check()?;
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(Arc::default())
        }

        fn compare(&mut self, _: &Model, _: &ComparisonRequest, _: &Ctx) -> anyhow::Result<Comparison> {
            anyhow::bail!("nothing to compare")
        }

        fn mine(&mut self, ctx: &Ctx) -> anyhow::Result<Arc<Mining>> {
            std::thread::sleep(Duration::from_millis(50));
            let mined = Mined::new(Default::default(), ctx)?;
            Ok(Arc::new(Mining::of_patterns(mined, Notices::default())))
        }

        fn export(&mut self, _: &Exported) -> anyhow::Result<String> {
            Ok(String::new())
        }
    }

    fn analyse(task: &str) -> Job {
        Job::Analyse { task: Some(task.to_owned()) }
    }

    #[test]
    fn the_newest_request_wins_and_the_running_one_ends() {
        let (sender, results) = channel();
        let send = move |number, done| drop(sender.send((number, done)));
        let jobs = Jobs::start(Box::new(Slow), 1, send).unwrap();
        let (first, _) = jobs.request(analyse("long"));
        std::thread::sleep(Duration::from_millis(20));
        jobs.request(analyse("never begun"));
        let asked = Instant::now();
        let (last, _) = jobs.request(analyse("quick"));
        let (number, done) = results.recv_timeout(Duration::from_secs(20)).unwrap();
        // Within 100 ms on a quiet machine; tests also run on busy ones.
        assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
        assert!(matches!(done, Done::Analysed(Ok(_))));
        assert!(number == last && jobs.is_newest(last) && !jobs.is_newest(first));
        assert!(results.recv_timeout(Duration::from_millis(50)).is_err(), "what was cancelled says nothing");
    }

    #[test]
    fn mining_waits_for_executions_and_begins_again_after_them() {
        let (sender, results) = channel();
        let send = move |ticket, done| drop(sender.send((ticket, done)));
        let jobs = Jobs::start(Box::new(Slow), 1, send).unwrap();
        let next = || results.recv_timeout(Duration::from_secs(20)).unwrap();
        let (mining, _) = jobs.request(Job::Mine { settings: Settings::default() });
        std::thread::sleep(Duration::from_millis(10));
        jobs.request(analyse("quick"));
        assert!(matches!(next().1, Done::Analysed(Ok(_))));
        let (ticket, done) = next();
        assert!(matches!(done, Done::Mined(_, Ok(_))) && ticket == mining && jobs.is_newest(mining));
    }

    #[test]
    fn a_panic_is_a_result_and_the_next_job_runs() {
        let (sender, results) = channel();
        let send = move |_, done| drop(sender.send(done));
        let jobs = Jobs::start(Box::new(Slow), 1, send).unwrap();
        jobs.request(analyse("broken"));
        let Done::Analysed(Err(said)) = results.recv_timeout(Duration::from_secs(20)).unwrap() else { panic!() };
        assert!(said.contains("its own fault") && said.contains("a bug"), "{said}");
        jobs.request(analyse("quick"));
        assert!(matches!(results.recv_timeout(Duration::from_secs(20)).unwrap(), Done::Analysed(Ok(_))));
    }

    #[test]
    fn a_file_is_replaced_only_when_told_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.json");
        assert_eq!(write_new(&path, b"one", false), Outcome::Written(3));
        assert_eq!(write_new(&path, b"two", false), Outcome::Exists);
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        assert_eq!(write_new(&path, b"three", true), Outcome::Written(5));
        assert_eq!(std::fs::read(&path).unwrap(), b"three");
        assert!(matches!(write_new(&folder.path().join("no/such"), b"", false), Outcome::Failed(_)));
    }
}
