//! A made-up recording for tests of the interface: a server whose requests wait for a lock, and a backend over it.
//!
//! Everything is deterministic: the same numbers on every machine, so that pictures of the screen can be compared.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod ring;

use ratatui::buffer::Buffer;
use ring::ring;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use whyslow::analysis::patterns::Mined;
use whyslow::base::ctx::Ctx;
use whyslow::base::notice::{Notice, Notices};
use whyslow::base::time::Span;
use whyslow::compare::{Comparison, ComparisonRequest, compare};
use whyslow::event::operation::Operations;
use whyslow::explain::mining::Mining;
use whyslow::model::context::{ContextId, Frame, FrameKind};
use whyslow::model::metric::{Column, Metric};
use whyslow::model::wait_kind::WaitKind;
use whyslow::model::{Model, TraceId, TraceInfo, Who, WhoId};
use whyslow::view::tui::app::{App, Busy};
use whyslow::view::tui::counts::HistogramCounter;
use whyslow::view::tui::jobs::{Done, Job, JobLane, Outcome};
use whyslow::view::tui::key::KeyPress;
use whyslow::view::tui::patterns::AnomalyReport;
use whyslow::view::tui::theme::ColourDepth;
use whyslow::view::tui::update::{self, UiEffect, UiMessage, update};
use whyslow::view::tui::{Backend, Exported, FirstQuestion, UiOptions, screen};

/// A small generator of numbers (SplitMix64).
pub struct Random(pub u64);

impl Random {
    /// The next number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit.max(1)
    }

    /// `base`, give or take a third.
    pub fn around(&mut self, base: u64) -> u64 {
        base * 2 / 3 + self.below(base / 3) + self.below(base / 3)
    }
}

const MS: u64 = 1_000_000;
const START: i64 = 1_700_000_000_000_000_000;

struct Builder {
    model: Model,
}

impl Builder {
    /// The context of a path like `ledgerd;worker;[futex];thread journal;flush`; `{disk}` is a wait.
    fn context(&mut self, path: &str) -> ContextId {
        let mut at: Option<ContextId> = None;
        for part in path.split(';') {
            let inner = part.get(1..part.len() - 1).unwrap_or_default();
            let (kind, name) = match part.chars().next() {
                _ if at.is_none() => (FrameKind::Process, part),
                Some('[') => (FrameKind::Call, inner),
                Some('{') => (FrameKind::Wait(if inner == "timer" { WaitKind::Timer } else { WaitKind::Disk }), inner),
                _ => match part.strip_prefix("thread ") {
                    Some(thread) => (FrameKind::Thread(WaitKind::Thread), thread),
                    None => (FrameKind::Function, part),
                },
            };
            let name = self.model.names.intern(name);
            at = Some(self.model.contexts.child(at, Frame { kind, name }));
        }
        at.unwrap()
    }

    fn who(&mut self, process: &str, pid: i32, thread: &str, tid: i32) -> WhoId {
        let names = &mut self.model.names;
        let who =
            Who { host: names.intern("db3"), process: names.intern(process), pid, tid, thread: names.intern(thread) };
        let at = self.model.who.iter().position(|w| *w == who).unwrap_or_else(|| {
            self.model.who.push(who);
            self.model.who.len() - 1
        });
        WhoId::at(at)
    }
}

/// Requests of a server, one in 24 of which waits for a lock that the journal thread holds while it flushes.
pub fn server(executions: usize) -> Model {
    let mut b = Builder { model: Model::default() };
    let mut random = Random(7);
    b.model.tasks = vec!["app:request".into(), "syscall:futex".into(), "syscall:read".into()].into();
    b.model.origin = START;
    b.model.traces.push(TraceInfo { label: "ledger".into(), span: Span::new(START, START) });
    let base = "ledgerd;start_thread;worker_main;handle_request";
    let own = [b.context(&format!("{base};append_entry")), b.context(&format!("{base};lookup_entry"))];
    let parse = b.context(&format!("{base};parse_request;std::io::BufReader<R>::read_line"));
    let read = b.context(&format!("{base};send_reply;[write]"));
    let disk = b.context(&format!("{base};append_entry;write_page;[pwrite64];{{block device}}"));
    let lock = b.context(&format!("{base};append_entry;pthread_mutex_lock;[futex]"));
    let held = format!("{base};append_entry;pthread_mutex_lock;[futex];thread journal;journal_tick;expensive_flush");
    let (serialize, checksum) =
        (b.context(&format!("{held};serialize_entries")), b.context(&format!("{held};checksum_block")));
    let timer = b.context(&format!("{base};retry;[clock_nanosleep];{{timer}}"));
    let workers: Vec<WhoId> = (0..3).map(|i| b.who("ledgerd", 311, "worker", 312 + i)).collect();
    let journal = b.who("ledgerd", 311, "journal", 319);
    let kinds = ["append", "lookup"].map(|name| i64::from(b.model.names.intern(name).raw()));
    let trace = i64::from(b.model.names.intern("ledger").raw());
    let mut columns: Vec<(Metric, Vec<i64>)> = [
        Metric::Duration,
        Metric::Time(WaitKind::Cpu),
        Metric::Time(WaitKind::Thread),
        Metric::Time(WaitKind::Disk),
        Metric::Syscalls,
        Metric::BytesWritten,
        Metric::Type,
        Metric::Trace,
    ]
    .map(|metric| (metric, Vec::new()))
    .into();
    let thread_frame = b.model.contexts.path(serialize)[7];
    let mut at = START;
    for i in 0..executions {
        let append = i % 2 == 0;
        let mut parts = vec![
            (own[usize::from(!append)], random.around(if append { 4 * MS } else { 3 * MS })),
            (parse, random.around(MS / 2)),
            (read, random.around(MS / 5)),
        ];
        let mut waited = 0;
        if append {
            parts.push((disk, random.around(MS)));
            if random.below(12) == 0 {
                let hold = random.around(48 * MS);
                parts.push((lock, random.around(MS / 10)));
                parts.push((serialize, hold * 2 / 3));
                parts.push((checksum, hold / 3));
                waited = hold;
                *b.model.contexts.who.entry((thread_frame, journal)).or_insert(0) += hold;
            }
        }
        if random.below(90) == 0 {
            parts.push((timer, random.around(2 * MS)));
        }
        let sum = |contexts: &[ContextId]| {
            parts.iter().filter(|(c, _)| contexts.contains(c)).map(|(_, ns)| *ns as i64).sum::<i64>()
        };
        let duration: i64 = parts.iter().map(|(_, ns)| *ns as i64).sum();
        let values = [
            duration,
            sum(&[own[0], own[1], parse, read]),
            sum(&[lock]) + waited as i64,
            sum(&[disk]),
            3 + i64::from(append) + i64::from(waited > 0),
            if append { 4096 * (1 + random.below(4) as i64) } else { 512 },
            kinds[usize::from(!append)],
            trace,
        ];
        for ((_, column), value) in columns.iter_mut().zip(values) {
            column.push(value);
        }
        let e = &mut b.model.executions;
        e.start.push(at);
        e.end.push(at + duration);
        e.who.push(workers[i % 3]);
        e.trace.push(TraceId::at(0));
        e.unsure.push(i % 97 == 5);
        e.own.push(parts);
        at += 2_700_000;
    }
    b.model.executions.inclusive = b.model.executions.own.inclusive(&b.model.contexts, &Ctx::new(1)).unwrap();
    b.model.executions.columns = columns.into_iter().map(|(metric, values)| Column { metric, values }).collect();
    b.model.traces[0].span.end = at;
    b.model.notices.add(Notice::DiscardedEvents, 1723, || "kernel/kchan_1, packet 88".into());
    b.model.notices.add(Notice::UnresolvedWaits, 41, String::new);
    b.model
}

/// The backend over such a model. Work takes as long as it is told to, and looks at its cancel flag.
pub struct Made {
    /// Executions of the model.
    pub executions: usize,
    /// How long the analysis takes.
    pub analysis: Duration,
    /// What is mined.
    pub operations: Operations,
}

impl Backend for Made {
    fn analyse(&mut self, task: Option<&str>, work: &Ctx) -> anyhow::Result<Arc<Model>> {
        const STEPS: u64 = 50;
        work.progress.enter("reading", STEPS);
        for step in 0..STEPS {
            work.cancel.check()?;
            work.progress.events.store(step * 24_000, Ordering::Relaxed);
            work.progress.step(1);
            std::thread::sleep(self.analysis / STEPS as u32);
        }
        let mut model = server(self.executions);
        if let Some(task) = task {
            model.task = model.tasks.iter().position(|t| t == task).unwrap_or(0);
        }
        Ok(Arc::new(model))
    }

    fn compare(&mut self, model: &Model, request: &ComparisonRequest, work: &Ctx) -> anyhow::Result<Comparison> {
        Ok(compare(model, request, work)?)
    }

    fn mine(&mut self, work: &Ctx) -> anyhow::Result<Arc<Mining>> {
        Ok(Arc::new(Mining::of_patterns(Mined::new(self.operations.clone(), work)?, Notices::default())))
    }

    fn export(&mut self, what: &Exported) -> anyhow::Result<String> {
        Ok(format!("{what:?}\n").chars().take(21).collect())
    }
}

/// The interface without a terminal: effects are performed at once on the made-up backend.
pub struct Session {
    /// The state.
    pub app: App,
    /// What was sent to the clipboard.
    pub copied: Vec<String>,
    /// What was last written as JSON.
    pub exported: Option<Exported>,
    /// The user has quit.
    pub ended: bool,
    backend: Made,
    counter: Option<HistogramCounter>,
    /// What jobs came to, where it is remembered.
    known: Option<Rc<RefCell<Known>>>,
}

/// By question: its answer, and the model that it is about, which lives on, so that addresses tell models apart.
type Known = BTreeMap<String, (Option<Arc<Model>>, Vec<Done>)>;

/// So many jobs are remembered.
#[allow(dead_code)]
const REMEMBERED: usize = 200;

impl Session {
    /// A session of this size that has just begun to analyse.
    pub fn new(columns: u16, lines: u16, depth: ColourDepth) -> Session {
        Session::beginning(columns, lines, depth, FirstQuestion::Executions)
    }

    /// The same, beginning with patterns.
    pub fn beginning(columns: u16, lines: u16, depth: ColourDepth, first: FirstQuestion) -> Session {
        let looks = UiOptions { theme: None, suits: depth.suits(|_| None), depth, ascii: false, mouse: false };
        let mut app =
            App::new("ledger/kernel, ledger/ust".into(), ComparisonRequest::default(), looks, (columns, lines))
                .unwrap();
        update::start(&mut app, first);
        Session::over(app, Made { executions: 700, analysis: Duration::ZERO, operations: ring(6, 120) })
    }

    fn over(app: App, backend: Made) -> Session {
        Session { app, copied: Vec::new(), exported: None, ended: false, backend, counter: None, known: None }
    }

    #[allow(dead_code)]
    /// Another that stands where this one does, over a recording of few executions and turns, for those who begin very often:
    /// all that began from one session know what the jobs of the others came to.
    pub fn again(&self) -> Session {
        let backend = Made { executions: 60, analysis: Duration::ZERO, operations: ring(3, 12) };
        Session { known: Some(self.known.clone().unwrap_or_default()), ..Session::over(self.app.clone(), backend) }
    }

    /// Report progress.
    pub fn progress(&mut self, stage: &'static str, done: u64, total: u64, events: u64) {
        self.send(UiMessage::Progress(JobLane::Executions, Busy { what: "", stage, done, total, events }));
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
                    for done in self.remembered(job) {
                        self.send(UiMessage::Done(done));
                    }
                }
                UiEffect::Copy(text) => self.copied.push(text),
                UiEffect::Quit => self.ended = true,
                UiEffect::SavePicture { path, overwrite } => {
                    let outcome = if overwrite { Outcome::Written(1) } else { Outcome::Exists };
                    self.send(UiMessage::Saved(path, outcome));
                }
                UiEffect::Redraw | UiEffect::Suspend => {}
            }
        }
    }

    /// What a job comes to. The backend says the same to the same question, so it need not be asked again.
    fn remembered(&mut self, job: Job) -> Vec<Done> {
        let (key, about) = match &job {
            Job::Analyse { task } => (format!("{task:?}"), None),
            Job::Compare { model, request } => {
                (format!("{:?} {request:?}", Arc::as_ptr(model)), Some(Arc::clone(model)))
            }
            Job::Mine { settings } => (format!("{settings:?}"), None),
            Job::Export { .. } => return self.run(job),
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
        let work = Ctx::new(1);
        match job {
            Job::Analyse { task } => {
                let model = self.backend.analyse(task.as_deref(), &work);
                vec![Done::Analysed(model.map_err(|e| e.to_string()))]
            }
            Job::Compare { model, request } => {
                let result = self.backend.compare(&model, &request, &work).map(Arc::new).map_err(|e| e.to_string());
                let groups = match &result {
                    Ok(c) => c.request(),
                    Err(_) => request,
                };
                if !self.counter.as_ref().is_some_and(|c| c.is_of(&model)) {
                    self.counter = HistogramCounter::new(&model, &work).ok();
                }
                let counts = self.counter.as_mut().unwrap().count(&groups);
                vec![Done::Compared(result), Done::Counted(Arc::new(counts))]
            }
            Job::Mine { settings } => {
                let mining = self.backend.mine(&work).unwrap();
                let found = mining.anomalies(&settings, &work).unwrap();
                vec![Done::Mined(settings, Ok(Arc::new(AnomalyReport::new(found, mining.notices.clone()))))]
            }
            Job::Export { what, path, overwrite } => {
                self.exported = Some(what);
                let outcome = if overwrite { Outcome::Written(22) } else { Outcome::Exists };
                vec![Done::Exported { path, outcome }]
            }
        }
    }

    /// The picture now.
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
