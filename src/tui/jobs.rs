//! Background jobs: one runs, the newest request wins, the running one is cancelled (ARCHITECTURE.md rule 8).
//!
//! In: [`Job`]s from the loop. Out: [`Done`]s through the function given at the start, each with the [`Ticket`] of its
//! request, so that the loop can drop results that come too late. One thread does everything slow: the analysis,
//! counting histograms, comparing, pattern mining, writing files ([`Runner`]). There is a lane for each subject,
//! because a request about executions does not make one about patterns obsolete. Within a lane the newest wins;
//! executions go first, then the heat map, and mining that they interrupt begins again after them.

use super::job::{Done, Job, JobLane, LANES};
use super::runner::Runner;
use super::setup::Backend;
use crate::base::allocator::room_for_threads;
use crate::base::ctx::{Cancel, Ctx, Progress};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A request by its lane and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    pub lane: JobLane,
    number: u64,
}

#[derive(Clone)]
struct QueuedJob {
    ticket: Ticket,
    job: Job,
    ctx: Ctx,
}

#[derive(Default)]
struct JobQueue {
    /// By lane, as are the waiting jobs.
    newest: [u64; LANES],
    waiting: [Option<QueuedJob>; LANES],
    running: Option<QueuedJob>,
    closed: bool,
}

struct Shared {
    queue: Mutex<JobQueue>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, JobQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wait for a job, and mark it as running; `None` at the end.
    fn next(&self) -> Option<QueuedJob> {
        let mut queue = self.lock();
        loop {
            if queue.closed {
                return None;
            }
            if let Some(job) = queue.waiting.iter_mut().find_map(Option::take) {
                queue.running = Some(job.clone());
                return Some(job);
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The background thread.
pub struct Jobs {
    shared: Arc<Shared>,
    /// The workers and the limits of all jobs.
    ctx: Ctx,
}

impl Jobs {
    /// Start the thread. It calls `send` with each result. Jobs have the workers and the limits of `ctx`.
    pub fn start(
        backend: Box<dyn Backend>,
        ctx: Ctx,
        send: impl Fn(Ticket, Done) + Send + 'static,
    ) -> std::io::Result<Jobs> {
        let shared = Arc::new(Shared { queue: Mutex::default(), changed: Condvar::new() });
        let of_thread = Arc::clone(&shared);
        let mut runner = Runner::new(backend);
        room_for_threads(1)?;
        std::thread::Builder::new().name("jobs".into()).spawn(move || {
            while let Some(QueuedJob { ticket, job, ctx }) = of_thread.next() {
                runner.run(job, &ctx, &mut |done| {
                    if !ctx.cancel.is_cancelled() || ctx.cancel.failure().is_some() {
                        send(ticket, done);
                    }
                });
                of_thread.lock().running = None;
            }
        })?;
        Ok(Jobs { shared, ctx })
    }

    /// Ask for a job: cancels the running one and replaces the waiting one of its lane. Returns its progress.
    pub fn request(&self, job: Job) -> (Ticket, Arc<Progress>) {
        let ctx = self.ctx.anew();
        let progress = Arc::clone(&ctx.progress);
        let lane = job.lane();
        let mut guard = self.shared.lock();
        let queue = &mut *guard;
        queue.newest[lane as usize] += 1;
        let ticket = Ticket { lane, number: queue.newest[lane as usize] };
        match &queue.running {
            Some(running) if running.ticket.lane == lane => running.ctx.cancel.cancel(),
            // What is long is interrupted by what is more urgent, and waits again.
            Some(running) if lane.interrupts(running.ticket.lane) => {
                running.ctx.cancel.cancel();
                let again = Ctx { cancel: Cancel::default(), ..running.ctx.clone() };
                let waiting = &mut queue.waiting[running.ticket.lane as usize];
                waiting.get_or_insert_with(|| QueuedJob { ctx: again, ..running.clone() });
            }
            _ => {}
        }
        queue.waiting[lane as usize] = Some(QueuedJob { ticket, job, ctx });
        drop(guard);
        self.shared.changed.notify_all();
        (ticket, progress)
    }

    /// True when no newer request came in its lane.
    pub fn is_newest(&self, ticket: Ticket) -> bool {
        self.shared.lock().newest[ticket.lane as usize] == ticket.number
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        queue.closed = true;
        if let Some(running) = &queue.running {
            running.ctx.cancel.cancel();
        }
        self.shared.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Comparison, ComparisonRequest};
    use crate::model::Model;
    use crate::model::settings::Settings;
    use crate::tui::job::Exported;
    use crate::tui::report::AnomalyReport;
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

        fn anomalies(&mut self, _: &Settings, ctx: &Ctx) -> anyhow::Result<AnomalyReport> {
            std::thread::sleep(Duration::from_millis(50));
            ctx.cancel.check()?;
            Ok(AnomalyReport::default())
        }

        fn export(&mut self, _: &Exported, _: &Ctx) -> anyhow::Result<Vec<u8>> {
            Ok(Vec::new())
        }
    }

    fn analyse(task: &str) -> Job {
        Job::Analyse { task: Some(task.to_owned()) }
    }

    #[test]
    fn request_cancels_the_running_job_and_replaces_the_waiting_one() {
        let (sender, results) = channel();
        let send = move |number, done| drop(sender.send((number, done)));
        let jobs = Jobs::start(Box::new(Slow), Ctx::new(1), send).unwrap();
        let (first, _) = jobs.request(analyse("long"));
        std::thread::sleep(Duration::from_millis(20));
        jobs.request(analyse("never begun"));
        let asked = Instant::now();
        let (last, _) = jobs.request(analyse("quick"));
        let (number, done) = results.recv_timeout(Duration::from_secs(20)).unwrap();
        // Within 100 ms on an idle machine; tests also run on busy ones.
        assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
        assert!(matches!(done, Done::Analysed(Ok(_))));
        assert!(number == last && jobs.is_newest(last) && !jobs.is_newest(first));
        assert!(results.recv_timeout(Duration::from_millis(50)).is_err(), "a cancelled job sends nothing");
    }

    #[test]
    fn request_about_executions_interrupts_mining_which_begins_again() {
        let (sender, results) = channel();
        let send = move |ticket, done| drop(sender.send((ticket, done)));
        let jobs = Jobs::start(Box::new(Slow), Ctx::new(1), send).unwrap();
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
        let jobs = Jobs::start(Box::new(Slow), Ctx::new(1), send).unwrap();
        jobs.request(analyse("broken"));
        let Done::Analysed(Err(error)) = results.recv_timeout(Duration::from_secs(20)).unwrap() else { panic!() };
        let text = error.to_string();
        assert!(text.contains("an error in whyslow") && text.contains("a bug"), "{text}");
        jobs.request(analyse("quick"));
        assert!(matches!(results.recv_timeout(Duration::from_secs(20)).unwrap(), Done::Analysed(Ok(_))));
    }
}
