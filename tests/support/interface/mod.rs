//! The interface without a terminal, over a made-up server and a made-up MPI run: keys go in, screens come out.
//!
//! The real job runner performs the jobs, on a backend whose answers are the same on every machine, so that drawn
//! screens can be compared; only the terminal, the loop and the threads are missing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod lanes;
mod recording;
mod ring;
mod server;

use super::{model_parts, random};
use ratatui::buffer::Buffer;
use ring::{ring, ring_with};
use server::{START, label, server, timeline};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use whyslow::parts::analysis::patterns::PatternAnalysis;
use whyslow::parts::base::column_grid::ColumnGrid;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::file::Existing;
use whyslow::parts::base::notice::Notices;
use whyslow::parts::base::op::Op;
use whyslow::parts::base::time::Span;
use whyslow::parts::compare::filter::Filter;
use whyslow::parts::compare::{Comparison, ComparisonRequest, compare};
use whyslow::parts::delays::mining::Mining;
use whyslow::parts::event::operation::Operations;
use whyslow::parts::model::Model;
use whyslow::parts::model::choice::TaskChoice;
use whyslow::parts::model::concurrent::{ConcurrentQuestion, ConcurrentThread, ConcurrentUse};
use whyslow::parts::model::execution::ExecutionId;
use whyslow::parts::model::metric::Metric;
use whyslow::parts::model::overview::{OverviewCell, RecordingOverview, RequestRecord};
use whyslow::parts::model::settings::Settings;
use whyslow::parts::model::thread::ThreadIdentity;
use whyslow::parts::model::thread_lanes::{ThreadsAnswer, ThreadsQuestion};
use whyslow::parts::model::weights::RankedValues;
use whyslow::parts::tui::app::App;
use whyslow::parts::tui::job::{BaselineInput, Busy, Done, Job, JobLane, TaskSummary, WriteOutcome};
use whyslow::parts::tui::key::KeyPress;
use whyslow::parts::tui::message::{UiEffect, UiMessage};
use whyslow::parts::tui::report::AnomalyReport;
use whyslow::parts::tui::runner::Runner;
use whyslow::parts::tui::saved::SavedView;
use whyslow::parts::tui::theme::ColourDepth;
use whyslow::parts::tui::update::{self, update};
use whyslow::parts::tui::{Backend, Exported, FirstQuestion, UiOptions, screen};
use whyslow::parts::view::report::Invocation;

/// The backend over the made-up recordings. It writes no files: it remembers what it was to export, and says that every
/// file exists until it may replace it.
struct MadeUp {
    executions: usize,
    operations: Operations,
    mining: Option<Mining>,
    /// Nothing can be read any more.
    fails: bool,
    /// Half of the executions are of a second trace.
    labelled: bool,
    exported: Arc<Mutex<Option<Exported>>>,
}

impl Backend for MadeUp {
    fn analyse(&mut self, task: Option<&str>, ctx: &Ctx) -> anyhow::Result<Arc<Model>> {
        const STEPS: u64 = 50;
        ctx.progress.enter("reading", STEPS);
        for step in 0..STEPS {
            ctx.cancel.check()?;
            ctx.progress.events.store(step * 24_000, Ordering::Relaxed);
            ctx.progress.step(1);
        }
        let mut model = server(self.executions);
        if self.labelled {
            label(&mut model);
        }
        if let Some(task) = task {
            model.task = model.tasks.iter().position(|t| t == task).unwrap_or(0);
        }
        Ok(Arc::new(model))
    }

    fn set_baseline(&mut self, baseline: Option<&str>, task: Option<&str>, ctx: &Ctx) -> anyhow::Result<BaselineInput> {
        anyhow::ensure!(baseline.is_none_or(|old| old == "old"), "no recording of this name");
        self.labelled = baseline.is_some();
        let on_trace = |op| baseline.map(|old| Filter::named(Metric::Trace, op, old)).into_iter().collect();
        let (slow, fast) = (on_trace(Op::NotEqual), on_trace(Op::Equal));
        Ok(BaselineInput {
            baseline: baseline.map(str::to_owned),
            title: baseline.map_or("ledger".to_owned(), |old| format!("ledger, {old}")),
            command_line: Invocation::default(),
            request: ComparisonRequest { slow, fast, ..ComparisonRequest::default() },
            model: self.analyse(task, ctx)?,
        })
    }

    fn compare(&mut self, model: &Model, request: &ComparisonRequest, ctx: &Ctx) -> anyhow::Result<Comparison> {
        Ok(compare(model, request, ctx)?)
    }

    fn anomalies(&mut self, settings: &Settings, ctx: &Ctx) -> anyhow::Result<AnomalyReport> {
        let mining = match &mut self.mining {
            Some(mining) => mining,
            none => {
                let mined = PatternAnalysis::new(self.operations.clone(), ctx)?;
                none.insert(Mining::of_patterns(mined, Notices::default()))
            }
        };
        Ok(AnomalyReport::new(mining.anomalies(settings, ctx)?, mining.notices.clone()))
    }

    fn survey(&mut self, _: &Ctx) -> anyhow::Result<Vec<TaskSummary>> {
        let model = server(self.executions);
        let mut durations: Vec<i64> = (0..model.executions.len()).map(|i| model.executions.duration(i)).collect();
        durations.sort_unstable();
        // The third task has no executions.
        let tasks = model.tasks.iter().zip([durations.as_slice(), &durations[..40], &[]]);
        Ok(tasks
            .filter_map(|(name, sorted)| TaskSummary::new(name, &RankedValues::of_sorted(sorted.to_vec())))
            .collect())
    }

    fn timelines(&mut self, executions: &[ExecutionId], _: &Ctx) -> anyhow::Result<Arc<Model>> {
        if self.fails {
            anyhow::bail!("ledger: a database holds executions only: run `whyslow diff --executions` on the trace");
        }
        let mut model = server(self.executions);
        for id in executions {
            let timeline = timeline(&model, *id);
            model.timelines.insert(*id, timeline);
        }
        Ok(Arc::new(model))
    }

    fn overview(&mut self, span: Option<Span>, _: &Ctx) -> anyhow::Result<RecordingOverview> {
        if self.fails {
            anyhow::bail!("ledger: a database holds executions only: run `whyslow query` on the original trace");
        }
        let span = span.unwrap_or(server(self.executions).traces[0].span);
        let cell = |at: u64| OverviewCell {
            running_ns: span.len() as u64 / 64 * (at % 13) / 4,
            runnable_ns: span.len() as u64 / 64 * (at % 7),
            disk_ns: span.len() as u64 / 640 * (at % 5),
            network_ns: 0,
            requests_ns: span.len() as u64 / 320 * (at % 5),
        };
        let lossy = vec![Span::new(span.start, span.start + span.len() / 40)];
        Ok(RecordingOverview {
            grid: ColumnGrid::of(span, 64),
            cpus: 4,
            cells: (0..64).map(cell).collect(),
            lossy,
            requests: RequestRecord::Recorded,
        })
    }

    fn concurrent(&mut self, question: &ConcurrentQuestion, _: &Ctx) -> anyhow::Result<ConcurrentUse> {
        let thread = |name: &str, tid, part| {
            let ns = question.span.len() / part;
            let start = question.span.start;
            ConcurrentThread { name: name.into(), tid, ns, spans: vec![Span::new(start, start + ns)] }
        };
        let on_cpu = question.cpu.map(|_| thread("telemetryd", 77, 3)).into_iter().collect();
        Ok(ConcurrentUse { on_cpu, on_disk: vec![thread("auditlogd", 91, 2)], in_futex: Vec::new() })
    }

    fn threads(&mut self, question: &ThreadsQuestion, _: &Ctx) -> anyhow::Result<ThreadsAnswer> {
        if self.fails {
            anyhow::bail!("ledger: a database holds executions only: run `whyslow timeline` on the original trace");
        }
        let recorded = server(self.executions).traces[0].span;
        Ok(ThreadsAnswer {
            lanes: question.lanes.as_ref().map(|request| lanes::lanes(request, recorded)),
            moment: question.moment.map(|(number, at)| lanes::moment(number, at, recorded)),
        })
    }

    fn export(&mut self, what: &Exported, _: &Ctx) -> anyhow::Result<Vec<u8>> {
        *self.exported.lock().unwrap() = Some(what.clone());
        Ok(format!("{what:?}\n").chars().take(22).collect::<String>().into_bytes())
    }

    fn write(&mut self, _: &Path, text: &[u8], existing: Existing) -> WriteOutcome {
        match existing {
            Existing::Keep => WriteOutcome::Exists,
            Existing::Replace => WriteOutcome::Written(text.len() as u64),
        }
    }
}

/// The interface without a terminal: effects are performed at once.
pub struct Session {
    /// The state.
    pub app: App,
    /// The texts that were sent to the clipboard.
    pub copied: Vec<String>,
    /// The user has quit.
    pub ended: bool,
    /// How often the state was kept.
    pub kept: usize,
    runner: Runner,
    exported: Arc<Mutex<Option<Exported>>>,
    /// Results of jobs, where they are remembered.
    known: Option<Rc<RefCell<Known>>>,
}

/// By question: its answer, and the model that it is about, which lives on, so that addresses distinguish models.
type Known = BTreeMap<String, (Option<Arc<Model>>, Vec<Done>)>;

/// So many jobs are remembered.
#[allow(dead_code)]
const REMEMBERED: usize = 200;

impl Session {
    /// A session of this size that has just begun to analyse.
    pub fn new(columns: u16, lines: u16, depth: ColourDepth) -> Session {
        Session::beginning(columns, lines, depth, FirstQuestion::Executions)
    }

    /// The model comes, with the reason for its task.
    #[allow(dead_code)]
    pub fn choose(&mut self, choice: TaskChoice) {
        let mut model = server(700);
        model.choice = Some(choice);
        self.send(UiMessage::Done(Done::Analysed(Ok(Arc::new(model)))));
    }

    /// The same, beginning with patterns.
    pub fn beginning(columns: u16, lines: u16, depth: ColourDepth, first: FirstQuestion) -> Session {
        let options = UiOptions {
            theme: None,
            suits: depth.suits(|_| None),
            depth,
            ascii: false,
            mouse: false,
            keys: Arc::default(),
        };
        let mut app =
            App::new("ledger/kernel, ledger/ust".into(), ComparisonRequest::default(), options, (columns, lines))
                .unwrap();
        update::start(&mut app, first);
        Session::over(app, 700, ring(6, 120))
    }

    /// A session that opens what was open the last time, with the groups of a command line.
    #[allow(dead_code)]
    pub fn restoring(columns: u16, lines: u16, view: SavedView, request: ComparisonRequest) -> Session {
        let mut session = Session::new(columns, lines, ColourDepth::True);
        session.app =
            App::new(session.app.title.clone(), request, session.app.options.clone(), (columns, lines)).unwrap();
        session.app.restoring = Some(Box::new(view));
        let effects = update::start(&mut session.app, FirstQuestion::Executions);
        session.perform(effects);
        session
    }

    /// The same over a recording of threads of this name with these numbers, which delay each other.
    #[allow(dead_code)]
    pub fn threads(columns: u16, lines: u16, name: &str, tids: &[i32]) -> Session {
        let mut session = Session::new(columns, lines, ColourDepth::True);
        let mut operations = ring(tids.len() as u32, 120);
        for (sequence, tid) in operations.sequences.iter_mut().zip(tids) {
            let thread = ThreadIdentity { pid: tids[0], tid: *tid, name: name.to_owned(), process: name.to_owned() };
            (sequence.rank, sequence.stream, sequence.thread) = (None, format!("{name} {tid}"), Some(thread));
        }
        session.runner = Session::of(session.app.clone(), 700, operations, false).runner;
        session
    }

    /// The same over a run in which the first rank is interrupted often.
    #[allow(dead_code)]
    pub fn over_interruptions(&mut self) {
        let turns: Vec<u64> = (1..12).map(|at| at * 20).collect();
        self.runner = Session::of(self.app.clone(), 700, ring_with(6, 240, &turns), false).runner;
    }

    /// The same over a recording that cannot be read again.
    #[allow(dead_code)]
    pub fn unreadable(columns: u16, lines: u16) -> Session {
        let mut session = Session::new(columns, lines, ColourDepth::True);
        session.runner = Session::of(session.app.clone(), 700, ring(6, 120), true).runner;
        session
    }

    /// The same over two traces with the labels `old` and `new`.
    #[allow(dead_code)]
    pub fn labelled(columns: u16, lines: u16) -> Session {
        let mut session = Session::new(columns, lines, ColourDepth::True);
        let exported = Arc::default();
        let backend = MadeUp {
            executions: 700,
            operations: ring(6, 120),
            mining: None,
            fails: false,
            labelled: true,
            exported: Arc::clone(&exported),
        };
        (session.runner, session.exported) = (Runner::new(Box::new(backend)), exported);
        session
    }

    fn over(app: App, executions: usize, operations: Operations) -> Session {
        Session::of(app, executions, operations, false)
    }

    fn of(app: App, executions: usize, operations: Operations, fails: bool) -> Session {
        let exported = Arc::default();
        let backend =
            MadeUp { executions, operations, mining: None, fails, labelled: false, exported: Arc::clone(&exported) };
        let runner = Runner::new(Box::new(backend));
        Session { app, copied: Vec::new(), ended: false, kept: 0, runner, exported, known: None }
    }

    /// Another session in the same state, over a recording of few executions and iterations, for tests that begin very
    /// often: all sessions that began from one share the results of their jobs.
    #[allow(dead_code)]
    pub fn again(&self) -> Session {
        let session = Session::over(self.app.clone(), 60, ring(3, 12));
        Session { known: Some(self.known.clone().unwrap_or_default()), ..session }
    }

    /// The result that was last written as JSON.
    #[allow(dead_code)]
    pub fn exported(&self) -> Option<Exported> {
        self.exported.lock().unwrap().clone()
    }

    /// Report progress.
    pub fn progress(&mut self, stage: &'static str, done: u64, total: u64, events: u64) {
        self.send(UiMessage::Progress(JobLane::Executions, Busy { what: "", stage, done, total, events, left: None }));
    }

    /// Let the analysis end.
    pub fn ready(&mut self) {
        self.perform(vec![UiEffect::Start(Job::Analyse { task: None })]);
    }

    /// Let mining end.
    pub fn mined(&mut self) {
        let settings = self.app.patterns.settings;
        self.perform(vec![UiEffect::Start(Job::Mine { settings })]);
    }

    /// Press keys, written as in the table of actions, blanks between them.
    pub fn keys(&mut self, keys: &str) {
        for text in keys.split_whitespace() {
            let key = KeyPress::parse(text).unwrap_or_else(|| panic!("no key {text}"));
            self.send(UiMessage::Key(key));
        }
    }

    /// Send a message and perform its effects.
    pub fn send(&mut self, message: UiMessage) {
        let effects = update(&mut self.app, message);
        self.perform(effects);
    }

    fn perform(&mut self, effects: Vec<UiEffect>) {
        for effect in effects {
            match effect {
                UiEffect::Start(job) => {
                    for done in self.results(job) {
                        self.send(UiMessage::Done(done));
                    }
                }
                UiEffect::Copy(text) => self.copied.push(text),
                UiEffect::Quit => self.ended = true,
                UiEffect::SavePicture { path, existing } => {
                    let outcome = match existing {
                        Existing::Keep => WriteOutcome::Exists,
                        Existing::Replace => WriteOutcome::Written(1),
                    };
                    self.send(UiMessage::Saved(path, outcome));
                }
                UiEffect::KeepState => self.kept += 1,
                UiEffect::Redraw | UiEffect::Suspend => {}
            }
        }
    }

    /// The results of a job. The backend gives the same answer to the same question, so it need not be asked again.
    fn results(&mut self, job: Job) -> Vec<Done> {
        let (key, about) = match &job {
            Job::Analyse { task } => (format!("{task:?}"), None),
            Job::Compare { model, request, arrangement, direction } => {
                let key = format!("{:?} {request:?} {arrangement:?} {direction:?}", Arc::as_ptr(model));
                (key, Some(Arc::clone(model)))
            }
            Job::Mine { settings } => (format!("{settings:?}"), None),
            Job::Survey => ("survey".to_owned(), None),
            Job::Timelines { executions, .. } => (format!("{executions:?}"), None),
            Job::Overview { span } => (format!("{span:?}"), None),
            Job::Threads { question } => (format!("{question:?}"), None),
            Job::Concurrent { question } => (format!("{question:?}"), None),
            Job::CountCells { .. } | Job::Export { .. } | Job::Arrange { .. } | Job::SetBaseline { .. } => {
                return self.run(job);
            }
        };
        let Some(known) = self.known.clone() else { return self.run(job) };
        if let Some((_, done)) = known.borrow().get(&key) {
            return done.clone();
        }
        let done = self.run(job);
        if known.borrow().len() < REMEMBERED {
            known.borrow_mut().insert(key, (about, done.clone()));
        }
        done
    }

    fn run(&mut self, job: Job) -> Vec<Done> {
        let mut results = Vec::new();
        self.runner.run(job, &Ctx::new(1), &mut |done| results.push(done));
        results
    }

    /// The screen now.
    pub fn draw(&self) -> Buffer {
        screen::draw(&self.app)
    }

    /// Its lines as text.
    pub fn lines(&self) -> Vec<String> {
        let buffer = self.draw();
        let line = |cells: &[ratatui::buffer::Cell]| cells.iter().map(|c| c.symbol()).collect::<String>();
        buffer.content.chunks(usize::from(buffer.area.width)).map(line).collect()
    }
}
