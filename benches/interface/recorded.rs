//! What the views of the interface would read of a large recording, made up: 100,000 threads over time, an execution of
//! 200,000 segments, and an MPI run of a million iterations, of which some are late.

#[path = "../../tests/support/operations.rs"]
mod operations;
#[path = "../../tests/support/random.rs"]
mod random;

use operations::{MS, OperationsBuilder, US};
use random::Random;
use std::sync::Arc;
use whyslow::parts::analysis::leaders::Leaders;
use whyslow::parts::base::ctx::{Cancel, Ctx};
use whyslow::parts::base::notice::Notices;
use whyslow::parts::base::time::{Span, Timestamp};
use whyslow::parts::compare::calls::PairedCalls;
use whyslow::parts::compare::moments::align;
use whyslow::parts::event::host::HostId;
use whyslow::parts::event::operation::CollectiveKind;
use whyslow::parts::explain::thread_lanes::LaneSource;
use whyslow::parts::model::Model;
use whyslow::parts::model::carrier::Carrier;
use whyslow::parts::model::execution::ExecutionId;
use whyslow::parts::model::execution_timeline::{
    ExecutionTimeline, TimelineEvent, TimelineEventKind, TimelineSegment, TimelineThread, TimelineWait,
};
use whyslow::parts::model::settings::Settings;
use whyslow::parts::model::thread_lanes::{ThreadsAnswer, ThreadsQuestion};
use whyslow::parts::model::wait_kind::WaitKind;
use whyslow::parts::timeline::history::StateHistory;
use whyslow::parts::timeline::slabs::SegmentSlab;
use whyslow::parts::timeline::{Segment, SegmentKind, Thread, ThreadDraft, ThreadId, ThreadRows, TimelineDraft, Waker};
use whyslow::parts::tui::job::{Job, ReadTimelines};
use whyslow::parts::tui::report::AnomalyReport;

/// Threads of the recording, and of each of its processes.
pub const THREADS: u32 = 100_000;
const OF_A_PROCESS: i32 = 100;
/// Parts of its time, and how many threads run in each, how often.
const SLABS: i64 = 2_000;
const BUSY: u32 = 50;
const TURNS: i64 = 25;
/// Nanoseconds of such a part, and of a turn.
const PART: i64 = 1 << 20;
const TURN: i64 = PART / TURNS;

/// The state history of the threads.
pub struct ThreadsOverTime {
    history: StateHistory,
    leaders: Leaders,
}

impl ThreadsOverTime {
    /// 100,000 threads that sleep, of which 50 at a time take turns in running, being woken by each other.
    pub fn new(start: Timestamp, ctx: &Ctx) -> anyhow::Result<ThreadsOverTime> {
        let end = start + SLABS * PART;
        let mut draft = TimelineDraft::default();
        draft.tables.span = Span::new(start, end);
        let thread = |number: u32| {
            let mut thread = Thread::new(HostId::at(0), number as i32 + 1, Span::new(start, end));
            thread.pid = 1 + number as i32 / OF_A_PROCESS * OF_A_PROCESS;
            ThreadDraft { thread, rows: ThreadRows::default() }
        };
        draft.threads = (0..THREADS).map(thread).collect();
        let mut since = vec![start; THREADS as usize];
        let mut slabs = Vec::new();
        for part in 0..SLABS {
            let mut made = SegmentSlab::default();
            let first = (part as u32 * BUSY) % THREADS;
            for number in first..first + BUSY {
                let from = made.rows.len();
                let waker = (number > first).then(|| ThreadId::from_raw(number - 1));
                for turn in 0..TURNS {
                    let at = start + (part * PART + turn * TURN + i64::from(number - first) * 500);
                    let waker = waker.map(|thread| Waker { thread, at });
                    let asleep = Span::new(since[number as usize], at);
                    let mut row = |span, kind, waker| {
                        made.rows.push(Segment { span, kind, waker, qualifier: None, cpu: number % 64 });
                    };
                    row(asleep, if turn % 3 == 0 { SegmentKind::Disk } else { SegmentKind::Blocked }, waker);
                    row(Span::new(at, at + 4_000), SegmentKind::Preempted, None);
                    row(Span::new(at + 4_000, at + 16_000), SegmentKind::Running, None);
                    since[number as usize] = at + 16_000;
                }
                made.threads.push((ThreadId::from_raw(number), from..made.rows.len()));
            }
            slabs.push(made);
        }
        let mut last = SegmentSlab::default();
        for (number, since) in (0..THREADS).zip(since).filter(|(_, since)| *since < end) {
            last.threads.push((ThreadId::from_raw(number), last.rows.len()..last.rows.len() + 1));
            let kind = SegmentKind::Timer;
            last.rows.push(Segment { span: Span::new(since, end), kind, waker: None, qualifier: None, cpu: 0 });
        }
        slabs.push(last);
        let timeline = draft.seal_slabs(&slabs, ctx)?;
        let leaders = Leaders::new(&timeline);
        Ok(ThreadsOverTime { history: StateHistory::new(timeline, None), leaders })
    }

    /// What the session answers.
    pub fn answer(&self, question: &ThreadsQuestion, ctx: &Ctx) -> anyhow::Result<ThreadsAnswer> {
        let source = LaneSource { history: &self.history, leaders: &self.leaders };
        let lanes = question.lanes.as_ref().map(|request| source.lanes(request, ctx)).transpose()?;
        let moment = match question.moment {
            Some((number, at)) => source.moment(number, at, None, ctx)?,
            None => None,
        };
        Ok(ThreadsAnswer { lanes, moment })
    }
}

/// Threads of an execution, its segments, and functions on a stack.
const PATH_THREADS: u32 = 12;
const SEGMENTS: i64 = 200_000;
const DEPTH: usize = 24;

/// The timelines of executions, and their calls aligned: what the job reads.
pub fn timelines(model: &Model, job: &Job) -> anyhow::Result<Option<ReadTimelines>> {
    let Job::Timelines { executions, kernel } = job else { return Ok(None) };
    let mut model = model.clone();
    for id in executions {
        let timeline = timeline(&mut model, *id);
        model.timelines.insert(*id, timeline);
    }
    let Some(first) = executions.first() else { return Ok(None) };
    let second = executions.get(1).copied();
    let calls = PairedCalls::new(&model, *first, second, *kernel, &Cancel::default())?;
    let divergence = second.and_then(|second| align(&model, *first, second).ok()?.divergence());
    Ok(Some(ReadTimelines { model: Arc::new(model), calls: Arc::new(calls), divergence }))
}

/// An execution whose path goes to and fro between threads, with deep stacks and as many events as are kept.
fn timeline(model: &mut Model, id: ExecutionId) -> ExecutionTimeline {
    let mut random = Random::new(id.raw().into());
    let thread = |thread: u32| TimelineThread {
        host: "host".into(),
        process: "server".into(),
        name: format!("worker {thread}"),
        pid: 1,
        tid: 100 + thread as i32,
    };
    let start = model.executions.start.get(id.index()).unwrap_or(Timestamp::ZERO);
    let threads = (0..PATH_THREADS).map(thread).collect();
    let mut made = ExecutionTimeline { start, threads, ..ExecutionTimeline::default() };
    let mut stack: Vec<usize> = vec![0];
    for at in 0..SEGMENTS {
        stack.truncate(stack.len().saturating_sub(random.below(4)).max(1));
        while stack.len() < DEPTH && random.below(4) > 0 {
            stack.push(random.below(12));
        }
        let path: Vec<String> = stack.iter().map(|function| format!("level_{function}")).collect();
        let context = super::model_parts::context(model, "host", &format!("server;{}", path.join(";")), 0);
        let (thread, ns) = (random.below(PATH_THREADS as usize) as u32, 100 + random.below(10_000) as i64);
        let state = [WaitKind::Cpu, WaitKind::Preempted, WaitKind::Thread, WaitKind::Network][random.below(4)];
        let start_ns = made.ns;
        made.segments.push(TimelineSegment { start_ns, ns, thread, state, cpu: Some(thread), context });
        made.ns += ns;
        if at % 10 == 0 {
            let waits_for = (thread + 1) % PATH_THREADS;
            let (start_ns, end_ns) = (start_ns, made.ns);
            made.waits.push(TimelineWait { start_ns, end_ns, waiter: thread, waits_for, carrier: Carrier::Wakeup });
            let kind = TimelineEventKind::ALL[random.below(TimelineEventKind::ALL.len())];
            let name = "read".to_owned();
            made.events.push(TimelineEvent { at_ns: start_ns, ns: 0, thread, kind, name, result: None, error: None });
        }
    }
    made
}

/// Ranks, and iterations of each.
const RANKS: usize = 64;
const ITERATIONS: usize = 15_625;

/// Anomalies of a run whose ranks exchange messages in a ring, all meeting in a collective now and then; one iteration
/// in 300 is late.
pub fn anomalies(ctx: &Ctx) -> anyhow::Result<AnomalyReport> {
    let mut random = Random::new(7);
    let mut run = OperationsBuilder::on_one_clock(RANKS as u32);
    for iteration in 0..ITERATIONS {
        for rank in 0..RANKS {
            let late = if random.below(300) == 0 { 1 + random.below(20) as i64 } else { 0 };
            let name = ["compute", "solve", "smooth"][iteration % 3];
            run.work(rank, name, 400 * US + random.below(20) as i64 * US + late * MS);
        }
        for rank in 0..RANKS {
            run.message(rank, (rank + 1) % RANKS);
        }
        if iteration % 8 == 7 {
            run.meet("MPI_Allreduce", CollectiveKind::All);
        }
    }
    let (_, found) = run.analyse(&Settings::default(), ctx.threads);
    Ok(AnomalyReport::new(found, Notices::default()))
}
