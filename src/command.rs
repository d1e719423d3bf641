//! What each command does: ask the session, hand the answer to a view, say how it ended.

mod record;

use crate::analysis::patterns::measure::{Limit, Settings};
use crate::analysis::symbols::files::Places;
use crate::base::notice::Notices;
use crate::base::sandbox;
use crate::base::work::Work;
use crate::base::{file, memory};
use crate::cli::{Common, Request, Selection, Stats, SymbolFiles, When};
use crate::compare::condition::FailIf;
use crate::compare::{self, Comparison};
use crate::confinement;
use crate::event::bind::Focus;
use crate::event::task;
use crate::model::Model;
use crate::model::build;
use crate::model::execution::ExecutionId;
use crate::model::facts::Facts;
use crate::model::join::Renamed;
use crate::model::mining::Mining;
use crate::model::questions::questions;
use crate::session::{self, Databases, Run, Session, Traces, Wrong};
use crate::view::agreement::agreement;
use crate::view::anomalies::Shown;
use crate::view::stderr::say;
use crate::view::tui::setup::{Backend, Exported, First, Looks, Setup};
use crate::view::tui::theme::{self, Depth};
use crate::view::{anomalies, archive, clean, dump, info, json, query, stats, text, tui};
use anyhow::Context;
use record::Next;
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Exit status of `--fail-if` when its condition holds.
const CONDITION_HELD: u8 = 3;

/// Run a command; the exit status where nothing went wrong.
pub fn run(common: &Common, request: Request) -> anyhow::Result<u8> {
    let (common, request) = match request {
        // The recorders need what an analysis gives up.
        Request::Record(recording) => match record::run(common, *recording)? {
            Next::Open(opening) => *opening,
            Next::Done(code) => return Ok(code),
        },
        request => (common.clone(), request),
    };
    let common = &common;
    let mut clock = Stages::new(common.timings);
    let limit = memory::Limit::new(common.memory);
    // Before a byte of the input is read, and before there is another thread.
    confine(common, &request, &clock);
    let common = &Common { memory: limit.map(memory::Limit::bytes), ..common.clone() };
    let work = Work { memory: limit, ..Work::new(workers(common.threads)) };
    let has_no_place_for_notices = matches!(request, Request::Build { .. } | Request::Dump { .. });
    let (notices, code) = match request {
        Request::Interface { selection, color, theme, ascii, mouse } => {
            let depth = depth(color);
            let suits = depth.suits(|name| std::env::var(name).ok());
            let looks = Looks { theme: chosen_theme(theme)?, suits, depth, ascii, mouse };
            (interface(common, selection, looks, &work)?, 0)
        }
        // From opening to the last line of output.
        request => memory::within(work.memory, &work.cancel, || print_answer(common, request, &work, &mut clock))??,
    };
    clock.finish(&work);
    if common.strict && notices.has_fault() {
        anyhow::bail!("{}: {}", "the input is malformed (--strict)", notices.sentences().first().map_or("", |s| s));
    }
    if has_no_place_for_notices {
        for sentence in notices.missing().sentences() {
            say(&format!("note: {}", clean::line(&sentence)));
        }
    }
    Ok(code)
}

/// Give up what the command does not need, and say so where that is not possible.
fn confine(common: &Common, request: &Request, clock: &Stages) {
    if !common.sandbox {
        return;
    }
    let confined = sandbox::confine(&confinement::rules(common, request));
    let is_interface = matches!(request, Request::Interface { .. });
    if let Err(why) = confined
        && (is_interface || clock.wanted)
    {
        say(&format!("note: without a sandbox: {why}"));
    }
}

/// As many workers as were asked for, or as the machine has use for.
fn workers(asked: usize) -> usize {
    let most = 4 * std::thread::available_parallelism().map_or(1, usize::from);
    if asked > most {
        say(&format!("note: --threads {asked}: {most} are used, four for each core"));
        return most;
    }
    asked
}

/// What a command answers without the interface; what was odd about the input, and the exit status.
fn print_answer(common: &Common, request: Request, work: &Work, clock: &mut Stages) -> anyhow::Result<(Notices, u8)> {
    let mut code = 0;
    let notices = match request {
        Request::Explain { selection, json, fail_if } => {
            let condition: Option<FailIf> = fail_if.map(|c| c.parse().map_err(wrong)).transpose()?;
            let (model, comparison) = answer(common, &selection, None, work, clock)?;
            if json {
                print_json(&json::explain(&model, &comparison))?;
            } else {
                print(&text::explain(&model, &comparison, page()))?;
            }
            if let Some(said) = condition.and_then(|c| c.holds(&model, &comparison)) {
                say(&format!("whyslow: {}", clean::line(&said)));
                code = CONDITION_HELD;
            }
            model.notices
        }
        Request::Build { output, tasks, symbols } => {
            let mut session = open(common, work)?;
            clock.lap("open");
            session.fit_clocks(work)?;
            if output.with_file_name("metadata").exists() {
                let why = "a trace lies in that folder, and every file in it counts as a stream: choose another";
                return Err(Wrong(format!("--output {}: {why}", output.display())).into());
            }
            let tasks: Vec<&str> = tasks.iter().map(String::as_str).collect();
            let writer = with_progress(work, || match &session {
                Session::Traces(traces) => traces.build(&tasks, &places(common, &symbols), work),
                Session::Run(run) => run.build(&tasks, work),
                Session::Databases(databases) => databases.refuse("build"),
            })?;
            clock.lap("analyse");
            // Without a thread for it the next build removes what a signal leaves.
            let _ = file::remove_on_signals();
            writer.save(&output)?;
            writer.notices().clone()
        }
        Request::Diff { selection, json, max_nodes, executions } => {
            let wanted = executions.as_deref().map(session::executions).transpose()?;
            let (model, comparison) = answer(common, &selection, wanted.as_ref(), work, clock)?;
            let aligned = wanted.map(|[a, b]| session::align(&model, a, b)).transpose()?;
            if json {
                print_json(&json::diff(&model, &comparison, aligned.as_ref(), max_nodes))?;
            } else if let Some(aligned) = aligned {
                print(&text::moments(&model, &aligned, page()))?;
            } else {
                print(&text::diff(&model, &comparison, page()))?;
            }
            model.notices
        }
        request => {
            let mut session = match request {
                Request::Info { full: false, .. } => Session::outline(common, work)?,
                _ => open(common, work)?,
            };
            clock.lap("open");
            if !matches!(request, Request::Stats { .. } | Request::Info { full: false, .. } | Request::Dump { .. }) {
                session.fit_clocks(work)?;
            }
            tell(&session, common, request, work, clock)?
        }
    };
    Ok((notices, code))
}

/// What the command line names, ready to be asked.
fn open(common: &Common, work: &Work) -> anyhow::Result<Session> {
    with_progress(work, || Session::open(common, work))
}

fn wrong(error: impl std::fmt::Display) -> Wrong {
    Wrong(error.to_string())
}

fn places(common: &Common, symbols: &SymbolFiles) -> Places {
    Places {
        folders: symbols.folders.clone(),
        kernel: symbols.kernel.clone(),
        recorded: Vec::new(),
        beside: common.arguments.iter().map(|a| a.path.clone()).collect(),
    }
}

/// What `--check` found; nothing is well.
fn sound(violation: Option<String>) -> anyhow::Result<()> {
    violation.map_or(Ok(()), |said| Err(anyhow::anyhow!("an invariant does not hold: {said}; please report this")))
}

/// The model of the chosen task, with the moments of some executions, and the comparison of the chosen groups.
fn answer(
    common: &Common,
    selection: &Selection,
    moments: Option<&[ExecutionId; 2]>,
    work: &Work,
    clock: &mut Stages,
) -> anyhow::Result<(Model, Comparison)> {
    let request = session::request(&selection.slow, &selection.fast)?;
    let renamed = session::renamed(selection.functions.as_deref())?;
    let mut session = open(common, work)?;
    clock.lap("open");
    with_progress(work, || {
        session.fit_clocks(work)?;
        let (places, moments) = (places(common, &selection.symbols), moments.map_or(&[][..], |m| m));
        let model = session.model(selection.task.as_deref(), &places, moments, work)?;
        let model = session::rename(model, &renamed, work)?;
        clock.lap("analyse");
        if common.check {
            sound(build::check(&model, 1).pop())?;
        }
        let comparison = session::compare(&model, &request, work)?;
        clock.lap("compare");
        Ok((model, comparison))
    })
}

/// What is in the input, whatever it is.
fn tell(
    session: &Session,
    common: &Common,
    request: Request,
    work: &Work,
    clock: &mut Stages,
) -> anyhow::Result<Notices> {
    if let Request::Anomalies { q, s, robust, task, symbols, all, json } = request {
        let limit = if robust { Limit::Robust } else { Limit::Quotient };
        let settings = Settings { q, s, limit };
        let shown = match (json, all) {
            (true, _) => None,
            (false, true) => Some(Shown::ALL),
            (false, false) => Some(Shown::FIRST),
        };
        return anomalies(session, task.as_deref(), &settings, &places(common, &symbols), shown, work, clock);
    }
    match session {
        Session::Traces(traces) => tell_traces(traces, common, request, work, clock),
        Session::Run(run) => tell_run(run, request, work, clock),
        Session::Databases(databases) => tell_databases(databases, request, clock),
    }
}

/// What repeats, what broke it, and where that came from: as text with so much of each list, else as JSON.
fn anomalies(
    session: &Session,
    task: Option<&str>,
    settings: &Settings,
    places: &Places,
    shown: Option<Shown>,
    work: &Work,
    clock: &mut Stages,
) -> anyhow::Result<Notices> {
    let (found, compared, notices) = with_progress(work, || {
        let mining = session.mine(task, places, work)?;
        clock.lap("mine");
        clock.tell("detection", mining.mined.detection);
        let found = mining.anomalies(settings, work)?;
        clock.lap("judge");
        // Executions that cannot be compared are no fault of the patterns.
        let compared = mining.executions().and_then(|model| {
            let comparison = session::compare(model, &compare::Request::default(), work).ok()?;
            Some(agreement(model, &comparison, &found))
        });
        clock.lap("compare");
        Ok((found, compared, mining.notices.clone()))
    })?;
    match shown {
        None => print_json(&anomalies::json(&found, &notices, compared))?,
        Some(shown) => print(&anomalies::text(&found, &notices, compared.as_ref(), shown))?,
    }
    Ok(notices)
}

/// What is in some CTF traces.
fn tell_traces(
    session: &Traces,
    common: &Common,
    request: Request,
    work: &Work,
    clock: &mut Stages,
) -> anyhow::Result<Notices> {
    match request {
        Request::Stats { what, json } => {
            let (table, notices) = with_progress(work, || count(session, what, common.check, work))?;
            clock.lap("read");
            if json {
                print_json(&table)?
            } else {
                print(&table.text())?
            }
            Ok(notices)
        }
        Request::Query { attribute, at, range, points, longest, json } => {
            let (history, notices) = with_progress(work, || session.history(work))?;
            clock.lap("build");
            if common.check {
                sound(history.tree().check().err().map(|broken| broken.to_string()))?;
            }
            let time = session::query_time(&at, range.as_deref(), points, longest, history.window())?;
            if points.is_some() {
                history.summary(work)?;
                clock.lap("summarise");
            }
            let lines = history.lines(&attribute, &time, &work.cancel)?;
            clock.lap("query");
            if lines.is_empty() {
                let hint = "try threads/*/state or cpus/*/thread";
                anyhow::bail!("--attribute {attribute}: the recording has no such attribute; {hint}");
            }
            let answer = query::Answer::new(&attribute, &lines, &history, &notices);
            if json {
                print_json(&answer)?
            } else {
                print(&answer.text(history.window().start))?
            }
            Ok(notices)
        }
        Request::Info { full, json } => {
            let places = places(common, &SymbolFiles::default());
            let (survey, functions, notices) = if full {
                let (survey, functions, notices) = with_progress(work, || session.survey(common.check, &places, work))?;
                clock.lap("survey");
                if common.check {
                    sound(build::untiled(&notices))?;
                }
                (Some(survey), functions, notices)
            } else {
                (None, Vec::new(), session.notices())
            };
            let figures = |name: &str| {
                let survey = survey.as_ref()?;
                Some(survey.tasks.get(name).map_or(&[][..], |t| &t.durations))
            };
            // Metadata declare hundreds of system calls that never occurred: only the analysis knows which did.
            let listed = session.found().iter().filter(|t| full || !task::is_system_call(t));
            let names = listed.map(|t| &t.name).chain(&functions);
            let tasks = names.map(|name| (name.as_str(), figures(name)));
            let analysed = survey.as_ref().map(|s| (s, session.clocks()));
            let mut facts = info::Facts::new(&Facts::of(&session.sources), tasks, analysed, &notices);
            // Where nothing can be asked about, there is nothing to say of the answers.
            if let Some(model) = survey.as_ref().and_then(|_| session.model(None, &places, &[], work).ok()) {
                facts = facts.with_questions(&questions(&model));
            }
            if json {
                print_json(&facts)?
            } else {
                print(&facts.text())?
            }
            Ok(notices)
        }
        Request::Dump { canonical } => {
            let write = if canonical { dump::canonical } else { dump::readable };
            let mut notices = write(&session.sources, work, &mut std::io::stdout()).context(STDOUT)?;
            notices.merge(&session.notices());
            Ok(notices)
        }
        // These were answered before.
        _ => Ok(Notices::default()),
    }
}

fn count(session: &Traces, what: Stats, check: bool, work: &Work) -> anyhow::Result<(stats::Table, Notices)> {
    if what == Stats::Count {
        let (counts, notices) = session.count(work)?;
        return Ok((stats::Table::count(&counts, &notices), notices));
    }
    let focus = if what == Stats::Io { Focus::Transfers } else { Focus::Running };
    let (usage, notices) = session.usage(focus, work)?;
    if check {
        sound(usage.check())?;
    }
    let table = if what == Stats::Io { stats::Table::io } else { stats::Table::cpu };
    Ok((table(&usage, &notices), notices))
}

/// What is in the archive of an MPI run, and what held the run up.
fn tell_run(session: &Run, request: Request, work: &Work, clock: &mut Stages) -> anyhow::Result<Notices> {
    let archive = &session.archive;
    match &request {
        Request::Stats { .. } => session.alone("stats")?,
        Request::Dump { .. } => session.alone("dump")?,
        _ => session.alone("info")?,
    }
    match request {
        Request::Stats { what: Stats::Count, json } => {
            let run = with_progress(work, || session.read(work))?;
            clock.lap("read");
            let table = stats::Table::messages(&run.counts(), &run.notices);
            if json {
                print_json(&table)?
            } else {
                print(&table.text())?
            }
            Ok(run.notices)
        }
        Request::Stats { what: Stats::Io, json } => {
            let run = with_progress(work, || session.read(work))?;
            clock.lap("read");
            let table = stats::Table::transfers(&run.transfers(archive), &run.notices);
            if json {
                print_json(&table)?
            } else {
                print(&table.text())?
            }
            Ok(run.notices)
        }
        Request::Info { full, json } => {
            let analysed = if full {
                let mining = with_progress(work, || session.mine(work))?;
                let found = mining.anomalies(&Settings::default(), work)?;
                clock.lap("analyse");
                Some((mining, found))
            } else {
                None
            };
            let notices = analysed.as_ref().map_or(&archive.notices, |(mining, _)| &mining.notices);
            let facts = archive::Facts::new(archive, analysed.as_ref().map(|(m, f)| (&m.mined, f)), notices);
            if json {
                print_json(&facts)?
            } else {
                print(&facts.text())?
            }
            Ok(notices.clone())
        }
        Request::Dump { canonical: false } => {
            archive::dump(archive, &work.cancel, &mut std::io::stdout().lock()).context(STDOUT)
        }
        Request::Dump { .. } => anyhow::bail!("{}: the canonical form is defined for CTF", archive.path.display()),
        _ => anyhow::bail!("{}: an OTF2 archive holds no scheduler events", archive.path.display()),
    }
}

/// What is in some databases.
fn tell_databases(session: &Databases, request: Request, clock: &mut Stages) -> anyhow::Result<Notices> {
    let json = match request {
        Request::Info { json, .. } => json,
        Request::Stats { .. } => return session.refuse("stats"),
        Request::Query { .. } => return session.refuse("query"),
        Request::Build { .. } => return session.refuse("build"),
        _ => return session.refuse("dump"),
    };
    let ((recorded, durations), notices) = (session.survey()?, session.notices());
    clock.lap("survey");
    let tasks = durations.iter().map(|(task, sorted)| (task.as_str(), Some(sorted.as_slice())));
    let facts = info::Facts::new(&recorded, tasks, None, &notices);
    if json {
        print_json(&facts)?
    } else {
        print(&facts.text())?
    }
    Ok(notices)
}

/// The terminal interface; what was odd about all that was looked at in it.
fn interface(common: &Common, selection: Selection, looks: Looks, work: &Work) -> anyhow::Result<Notices> {
    let request = session::request(&selection.slow, &selection.fast)?;
    let renamed = session::renamed(selection.functions.as_deref())?;
    let session = memory::within(work.memory, &work.cancel, || open(common, work))??;
    match (&session, &selection.task) {
        (Session::Traces(traces), Some(task)) => drop(traces.candidates(&[task.as_str()])?),
        (Session::Databases(databases), task) => drop(databases.task(task.as_deref())?),
        _ => {}
    }
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        anyhow::bail!("the interface needs a terminal; `whyslow explain` and `whyslow diff` do without");
    }
    let title = session.title();
    let first = match session {
        Session::Traces(_) | Session::Databases(_) => First::Executions,
        Session::Run(_) => First::Patterns,
    };
    let places = places(common, &selection.symbols);
    let told = Arc::new(Mutex::new(session.notices()));
    let backend = Box::new(Analyst {
        session,
        task: selection.task,
        places,
        renamed,
        memory: work.memory,
        told: Arc::clone(&told),
    });
    tui::run(Setup { title, request, first, looks, threads: work.threads, backend })?;
    let told = told.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(told.clone())
}

/// The session behind the interface.
struct Analyst {
    session: Session,
    task: Option<String>,
    places: Places,
    renamed: Renamed,
    memory: Option<memory::Limit>,
    /// What was odd about what was analysed last.
    told: Arc<Mutex<Notices>>,
}

impl Backend for Analyst {
    fn analyse(&mut self, task: Option<&str>, work: &Work) -> anyhow::Result<Arc<Model>> {
        if let Some(task) = task {
            self.task = Some(task.to_owned());
        }
        let task = self.task.as_deref();
        let model = || {
            self.session.fit_clocks(work)?;
            let model = self.session.model(task, &self.places, &[], work)?;
            session::rename(model, &self.renamed, work)
        };
        let model = memory::within(self.memory, &work.cancel, model)??;
        // Delays are asked of the same executions.
        self.task = model.tasks.get(model.task).cloned();
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&model.notices);
        Ok(Arc::new(model))
    }

    fn compare(&mut self, model: &Model, request: &compare::Request, work: &Work) -> anyhow::Result<Comparison> {
        memory::within(self.memory, &work.cancel, || session::compare(model, request, work))?
    }

    fn mine(&mut self, work: &Work) -> anyhow::Result<Arc<Mining>> {
        let mining = || {
            self.session.fit_clocks(work)?;
            self.session.mine(self.task.as_deref(), &self.places, work)
        };
        let mining = memory::within(self.memory, &work.cancel, mining)??;
        self.told.lock().unwrap_or_else(PoisonError::into_inner).merge(&mining.notices);
        Ok(mining)
    }

    fn export(&mut self, what: &Exported) -> anyhow::Result<String> {
        let text = match what {
            Exported::Comparison { model, comparison, path: None } => {
                serde_json::to_string_pretty(&json::diff(model, comparison, None, None))
            }
            Exported::Comparison { model, comparison, path: Some((found, at)) } => {
                let diff = json::diff(model, comparison, None, None);
                serde_json::to_string_pretty(&anomalies::with_path(diff, &found.anomalies, *at))
            }
            Exported::Anomalies { found, path, compared } => {
                let document = anomalies::json(&found.anomalies, &found.notices, compared.clone());
                match path {
                    Some(at) => serde_json::to_string_pretty(&anomalies::with_path(document, &found.anomalies, *at)),
                    None => serde_json::to_string_pretty(&document),
                }
            }
        };
        Ok(text? + "\n")
    }
}

/// A built-in theme by name, else a file.
fn chosen_theme(name: Option<std::ffi::OsString>) -> anyhow::Result<Option<theme::Source>> {
    let Some(file) = name else { return Ok(None) };
    let name = file.to_string_lossy().into_owned();
    let built_in = theme::built_in();
    if let Some(theme) = built_in.iter().find(|t| t.name == name) {
        return Ok(Some(theme.clone()));
    }
    let names: Vec<&str> = built_in.iter().map(|t| t.name.as_str()).collect();
    let text = session::text_of(std::path::Path::new(&file)).map_err(|e| {
        wrong(format!("--theme {name}: {e}; built in are {}, else name a theme file", names.join(", ")))
    })?;
    Ok(Some(theme::Source { name, text }))
}

fn depth(color: When) -> Depth {
    match color {
        When::Never => Depth::Mono,
        When::Auto => Depth::detect(|name| std::env::var(name).ok()),
        // What the terminal can show, even if NO_COLOR asks for none.
        When::Always => Depth::detect(|name| (name != "NO_COLOR").then(|| std::env::var(name).ok())?).max(Depth::Ansi),
    }
}

/// As wide as the terminal, else 100 columns; ASCII where the locale says that nothing else can be shown.
fn page() -> text::Page {
    let out = std::io::stdout();
    let width = if out.is_terminal() { crossterm::terminal::size().map_or(100, |(w, _)| usize::from(w)) } else { 100 };
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|n| std::env::var(n).ok().filter(|v| !v.is_empty()));
    let ascii = out.is_terminal() && locale.is_some_and(|l| !l.to_ascii_lowercase().replace('-', "").contains("utf8"));
    text::Page { width, ascii }
}

/// What a failed write to stdout begins with.
pub const STDOUT: &str = "stdout cannot be written: make room, or write to another file";

fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context(STDOUT)
}

fn print_json(document: &impl Serialize) -> anyhow::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    serde_json::to_writer_pretty(&mut out, document).context(STDOUT)?;
    out.write_all(b"\n").and_then(|()| out.flush()).context(STDOUT)
}

/// Run `job` with a progress line on stderr where that is a terminal and the job takes long enough to be asked about.
fn with_progress<T: Send>(work: &Work, job: impl FnOnce() -> anyhow::Result<T> + Send) -> anyhow::Result<T> {
    if !std::io::stderr().is_terminal() {
        return job();
    }
    const PATIENCE: Duration = Duration::from_millis(400);
    let style = indicatif::ProgressStyle::with_template("{msg} {bar:30} {percent}%").context("progress line")?;
    std::thread::scope(|scope| {
        let (done, ended) = std::sync::mpsc::channel::<()>();
        let progress = Arc::clone(&work.progress);
        let show = move || {
            use std::sync::atomic::Ordering::Relaxed;
            use std::sync::mpsc::RecvTimeoutError::Timeout;
            if ended.recv_timeout(PATIENCE) != Err(Timeout) {
                return;
            }
            let bar = indicatif::ProgressBar::new(0).with_style(style);
            while ended.recv_timeout(Duration::from_millis(100)) == Err(Timeout) {
                bar.set_message(progress.stage());
                bar.set_length(progress.total.load(Relaxed));
                bar.set_position(progress.done.load(Relaxed));
            }
            bar.finish_and_clear();
        };
        // Without a thread for it there is no progress line.
        let _ = std::thread::Builder::new().name("progress".into()).spawn_scoped(scope, show);
        let result = job();
        drop(done);
        result
    })
}

/// Times per stage and peak memory, on stderr, if asked for.
struct Stages {
    wanted: bool,
    since: Instant,
}

impl Stages {
    fn new(wanted: bool) -> Self {
        Stages { wanted, since: Instant::now() }
    }

    fn lap(&mut self, stage: &str) {
        let now = Instant::now();
        self.tell(stage, now.duration_since(self.since));
        self.since = now;
    }

    fn tell(&self, what: &str, took: Duration) {
        if self.wanted {
            say(&format!("{what:>10} {:9.3} ms", took.as_secs_f64() * 1e3));
        }
    }

    fn finish(&mut self, work: &Work) {
        self.lap("write");
        if !self.wanted {
            return;
        }
        let replayed = work.progress.replayed.load(std::sync::atomic::Ordering::Relaxed);
        if replayed > 0 {
            say(&format!("{:>10} {replayed} chunks", "run again"));
        }
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        if let Some(peak) = status.lines().find_map(|l| l.strip_prefix("VmHWM:")) {
            say(&format!("{:>10} {}", "memory", peak.trim()));
        }
    }
}
