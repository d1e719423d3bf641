//! The terminal interface, which a command line without a command opens.

use super::console::{Console, shows_ascii_only};
use super::state_folder::{self, KnownRecording, StateFile};
use super::{Outcome, Question, places, tour};
use crate::base::ctx::Ctx;
use crate::base::notice::Notices;
use crate::base::time::Span;
use crate::compare::{self, Comparison};
use crate::confinement::Files;
use crate::delays::mining::Mining;
use crate::explain::concurrent;
use crate::input::Argument;
use crate::model::Model;
use crate::model::concurrent::{ConcurrentQuestion, ConcurrentUse};
use crate::model::execution::ExecutionId;
use crate::model::join::Renamed;
use crate::model::overview::RecordingOverview;
use crate::model::settings::Settings;
use crate::model::thread_lanes::{ThreadsAnswer, ThreadsQuestion};
use crate::model::weights::RankedValues;
use crate::options::{AppearanceOptions, ColorChoice, GroupOptions, InputOptions};
use crate::session::{self, Invariants, LeafChecks, RecordedHistory, Session, TraceSurvey, UsageError};
use crate::symbols::files::SymbolPaths;
use crate::tui;
use crate::tui::bookmarks::with_bookmarks;
use crate::tui::job::{BaselineInput, Exported, SelectedPath, TaskSummary};
use crate::tui::key_map::KeyMap;
use crate::tui::report::AnomalyReport;
use crate::tui::saved::SavedView;
use crate::tui::setup::{Backend, FirstQuestion, Setup, UiOptions};
use crate::tui::theme::{self, ColourDepth};
use crate::view::diff_parts::DiffParts;
use crate::view::report::{Report, ReportFormat, drawn, slowest_lanes};
use crate::view::{anomalies, json};
use clap::Args;
use std::ffi::OsStr;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The options of the interface.
#[derive(Args, Debug, Default)]
pub struct InterfaceOptions {
    /// The executions that are compared.
    #[command(flatten)]
    pub groups: GroupOptions,
    /// Colours, theme, characters, mouse.
    #[command(flatten)]
    pub appearance: AppearanceOptions,
    /// Start anew: do not open the groups and the place of the last time
    #[arg(long)]
    pub fresh: bool,
    /// Plain text for screen readers: what `explain --plain` prints
    #[arg(long)]
    pub plain: bool,
    /// Learn the interface in nine steps, on a recording that comes with the program
    #[arg(long, conflicts_with = "traces")]
    pub tour: bool,
    /// The traces, and the options for reading them.
    #[command(flatten)]
    pub input: InputOptions,
}

impl Question for InterfaceOptions {
    fn input(&self) -> &InputOptions {
        &self.input
    }

    fn files(&self) -> Files<'_> {
        Files { interface: true, theme: self.appearance.theme.as_deref(), ..Files::of_groups(&self.groups) }
    }

    fn is_interface(&self) -> bool {
        true
    }

    fn traces(&self) -> Vec<Argument> {
        if self.tour { vec![Argument::parse(tour::path())] } else { self.groups.traces(&self.input) }
    }

    fn run(&self, session: Session, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
        let options = ui_options(&self.appearance)?;
        let renamed = session::renamed(self.groups.functions.as_deref())?;
        session.check_task(self.groups.asked().as_deref())?;
        if !has_terminal() {
            anyhow::bail!("the interface needs a terminal: use `whyslow explain` or `whyslow diff` instead");
        }
        if let Session::Partials(partials) = &session {
            return partials.refuse("explain");
        }
        let title = session.title();
        let request = super::request(&self.groups, &self.input, &session);
        let first = first_question(&session);
        let has_events = !matches!(session, Session::Databases(_));
        let backend = Box::new(self.analyst(session, renamed));
        let notices = Arc::clone(&backend.notices);
        let state = state_folder::folder().filter(|_| !self.tour).map(|folder| StateFile::new(&folder, &self.traces()));
        let known = state.as_ref().map_or_else(KnownRecording::default, StateFile::read);
        let saved = match (known.view, self.fresh) {
            // Notes are the user's own work: a fresh start keeps them.
            (Some(view), true) => Some(SavedView { bookmarks: view.bookmarks, ..SavedView::default() }),
            (view, _) => view,
        };
        tui::run(Setup {
            title,
            command_line: self.groups.command_line(&self.input),
            baseline: self.groups.baseline.as_ref().map(|old| old.to_string_lossy().into_owned()),
            request,
            first,
            has_events,
            options,
            ctx: console.ctx.clone(),
            tour: self.tour,
            saved,
            saved_notice: known.notice.filter(|_| !self.fresh),
            keep: Box::new(move |view| {
                if let Some(state) = &state {
                    state.write(view);
                }
            }),
            backend,
        })?;
        let notices = notices.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(notices.clone().into())
    }
}

impl InterfaceOptions {
    fn analyst(&self, session: Session, renamed: Renamed) -> Analyst {
        let notices = Arc::new(Mutex::new(session.notices()));
        Analyst {
            session,
            input: self.input.clone(),
            groups: self.groups.clone(),
            task: self.groups.asked(),
            places: places(&self.traces(), &self.groups.symbols),
            renamed,
            mined: None,
            history: None,
            notices,
        }
    }
}

fn first_question(session: &Session) -> FirstQuestion {
    match session {
        Session::Traces(_) | Session::Databases(_) | Session::Partials(_) => FirstQuestion::Executions,
        Session::Run(_) => FirstQuestion::Patterns,
    }
}

/// What answers the interface about a recording, and its first question, without the interface: tests draw the screens
/// over recordings.
#[cfg(not(program))]
pub fn backend(trace: Argument, symbols: &Path, ctx: &Ctx) -> anyhow::Result<(Box<dyn Backend>, FirstQuestion)> {
    let mut options = InterfaceOptions::default();
    options.input.traces.push(trace);
    options.groups.symbols.only.push(symbols.to_owned());
    let open = super::open_options(&options.input, LeafChecks::AtOpening);
    let session = Session::open(&options.input.traces, &open, ctx)?;
    let first = first_question(&session);
    Ok((Box::new(options.analyst(session, Renamed::new())), first))
}

/// True if the interface could show itself and take keys.
pub(super) fn has_terminal() -> bool {
    std::io::stdout().is_terminal() && std::io::stdin().is_terminal()
}

/// True for a terminal that can print lines only.
pub(super) fn needs_plain_text() -> bool {
    std::env::var("TERM").is_ok_and(|term| term == "dumb") && std::io::stdout().is_terminal()
}

/// The session behind the interface.
struct Analyst {
    session: Session,
    /// The options with which the session was opened.
    input: InputOptions,
    groups: GroupOptions,
    task: Option<String>,
    places: SymbolPaths,
    renamed: Renamed,
    /// The patterns, once they are mined for the task.
    mined: Option<Arc<Mining>>,
    /// The state history, once it was needed.
    history: Option<Arc<RecordedHistory>>,
    /// The notices of the last analysis.
    notices: Arc<Mutex<Notices>>,
}

/// Cells of an overview: more than a wide terminal has columns.
const OVERVIEW_CELLS: usize = 512;

impl Analyst {
    /// The state history, which the first question builds.
    fn recorded(&mut self, ctx: &Ctx) -> anyhow::Result<Arc<RecordedHistory>> {
        if let Some(history) = &self.history {
            return Ok(Arc::clone(history));
        }
        Ok(Arc::clone(self.history.insert(Arc::new(self.session.history("query", ctx)?))))
    }

    /// An answer of the state history, if all leaves could be read.
    fn whole<T>(&mut self, recorded: &RecordedHistory, answer: T) -> anyhow::Result<T> {
        // The job that built the history has the flag that an unreadable leaf sets: this one does not see it.
        match recorded.history.failure() {
            Some(why) => {
                self.history = None;
                Err(why.into())
            }
            None => Ok(answer),
        }
    }

    /// Before a job that reads the recording: the leaves of the history, which waits for its next question, give the
    /// memory of a limit back. The job's own leaves and results need it.
    fn make_room(&self) {
        self.history.iter().for_each(|recorded| recorded.history.let_leaves_go());
    }

    /// Mine the patterns, and keep them.
    fn mine(&mut self, ctx: &Ctx) -> anyhow::Result<Arc<Mining>> {
        self.make_room();
        let mining = self.session.mine(self.task.as_deref(), &self.places, ctx)?;
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).merge(&mining.notices);
        self.mined = Some(Arc::clone(&mining));
        Ok(mining)
    }
}

impl Analyst {
    /// The database that `whyslow build` would write for the current task.
    fn database(&mut self, ctx: &Ctx) -> anyhow::Result<Vec<u8>> {
        self.make_room();
        let tasks: Vec<&str> = self.task.as_deref().into_iter().collect();
        let writer = match &mut self.session {
            Session::Traces(traces) => traces.build(&tasks, &self.places, None, ctx)?,
            Session::Run(run) => run.build(&[], None, ctx)?,
            Session::Databases(databases) => return databases.refuse("build"),
            Session::Partials(partials) => return partials.refuse("build"),
        };
        Ok(writer.bytes()?)
    }
}

impl Analyst {
    /// The comparison as a report; a page shows timelines and threads where the recording has them.
    fn report(&mut self, report: Report<'_>, format: ReportFormat, ctx: &Ctx) -> anyhow::Result<Vec<u8>> {
        let drawn = drawn(report.model, report.comparison);
        let timelines = match (format, &self.session) {
            (ReportFormat::Html, Session::Traces(_)) if !drawn.is_empty() => Some(self.timelines(&drawn, ctx)?),
            _ => None,
        };
        let is_page = format == ReportFormat::Html && !matches!(self.session, Session::Databases(_));
        let threads = match slowest_lanes(report.model, report.comparison).filter(|_| is_page) {
            Some(request) => {
                let recorded = self.recorded(ctx)?;
                let lanes = recorded.lanes().lanes(&request, ctx)?;
                Some(self.whole(&recorded, lanes)?)
            }
            None => None,
        };
        Ok(format.write(&Report { timelines: timelines.as_deref(), threads: threads.as_ref(), ..report }))
    }
}

impl Backend for Analyst {
    fn analyse(&mut self, task: Option<&str>, ctx: &Ctx) -> anyhow::Result<Arc<Model>> {
        self.make_room();
        if task.is_some() {
            // The patterns are about the executions of the previous task.
            self.mined = None;
        }
        let wanted = task.map(str::to_owned).or_else(|| self.task.clone());
        let model = self.session.model(wanted.as_deref(), &self.places, &[], ctx)?;
        let model = session::rename(model, &self.renamed, ctx)?;
        // Delays are analysed for the same executions.
        self.task = model.tasks.get(model.task).cloned();
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&model.notices);
        Ok(Arc::new(model))
    }

    fn set_baseline(&mut self, baseline: Option<&str>, task: Option<&str>, ctx: &Ctx) -> anyhow::Result<BaselineInput> {
        let groups = GroupOptions { baseline: baseline.map(Into::into), ..self.groups.clone() };
        let traces = groups.traces(&self.input);
        traces.iter().try_for_each(|trace| within_reach(&trace.path))?;
        let places = places(&traces, &groups.symbols);
        let options = super::open_options(&self.input, LeafChecks::AtOpening);
        // What is known of the old input takes memory of the new one's; it is found again where that cannot be opened.
        (self.mined, self.history) = (None, None);
        let mut session = Session::open(&traces, &options, ctx)?;
        let model = session.model(task, &places, &[], ctx)?;
        let model = session::rename(model, &self.renamed, ctx)?;
        (self.session, self.groups, self.places) = (session, groups, places);
        self.task = model.tasks.get(model.task).cloned();
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&model.notices);
        Ok(BaselineInput {
            baseline: baseline.map(str::to_owned),
            title: self.session.title(),
            command_line: self.groups.command_line(&self.input),
            request: super::request(&self.groups, &self.input, &self.session),
            model: Arc::new(model),
        })
    }

    fn compare(
        &mut self,
        model: &Model,
        request: &compare::ComparisonRequest,
        ctx: &Ctx,
    ) -> anyhow::Result<Comparison> {
        session::compare(model, request, ctx)
    }

    fn anomalies(&mut self, settings: &Settings, ctx: &Ctx) -> anyhow::Result<AnomalyReport> {
        let mining = match &self.mined {
            Some(mining) => Arc::clone(mining),
            None => self.mine(ctx)?,
        };
        let report = AnomalyReport::new(mining.anomalies(settings, ctx)?, mining.notices.clone());
        Ok(report.with_recorded(self.session.recorded()))
    }

    fn survey(&mut self, ctx: &Ctx) -> anyhow::Result<Vec<TaskSummary>> {
        self.make_room();
        match &mut self.session {
            Session::Traces(traces) => {
                let TraceSurvey { mut survey, discovered, .. } =
                    traces.survey(Invariants::Assumed, &self.places, ctx)?;
                let names = traces.found().iter().map(|task| &task.name).chain(&discovered);
                let mut durations = |name: &String| Some(std::mem::take(&mut survey.tasks.get_mut(name)?.durations));
                let summary = |name: &String| TaskSummary::new(name, &RankedValues::of_sorted(durations(name)?));
                Ok(names.filter_map(summary).collect())
            }
            Session::Databases(databases) => {
                let (_, tasks) = databases.survey(ctx)?;
                Ok(tasks.iter().filter_map(|task| TaskSummary::new(&task.name, &task.durations)).collect())
            }
            // An archive has one kind of iterations.
            Session::Run(_) | Session::Partials(_) => Ok(Vec::new()),
        }
    }

    fn timelines(&mut self, executions: &[ExecutionId], ctx: &Ctx) -> anyhow::Result<Arc<Model>> {
        self.make_room();
        let model = self.session.model(self.task.as_deref(), &self.places, executions, ctx)?;
        Ok(Arc::new(session::rename(model, &self.renamed, ctx)?))
    }

    fn concurrent(&mut self, question: &ConcurrentQuestion, ctx: &Ctx) -> anyhow::Result<ConcurrentUse> {
        let recorded = self.recorded(ctx)?;
        let found = concurrent::concurrent(&recorded.history, question, &ctx.cancel)?;
        self.whole(&recorded, found)
    }

    fn overview(&mut self, span: Option<Span>, ctx: &Ctx) -> anyhow::Result<RecordingOverview> {
        let recorded = self.recorded(ctx)?;
        let found = recorded.overview(span.unwrap_or(recorded.history.window()), OVERVIEW_CELLS, ctx)?;
        self.whole(&recorded, found)
    }

    fn threads(&mut self, question: &ThreadsQuestion, ctx: &Ctx) -> anyhow::Result<ThreadsAnswer> {
        let recorded = self.recorded(ctx)?;
        let places = || self.session.symbol_paths(&self.places);
        let moment = question.moment.map(|moment| recorded.moment(moment, places, ctx)).transpose()?.flatten();
        let lanes = question.lanes.as_ref().map(|request| recorded.lanes().lanes(request, ctx)).transpose()?;
        self.whole(&recorded, ThreadsAnswer { lanes, moment })
    }

    fn export(&mut self, what: &Exported, ctx: &Ctx) -> anyhow::Result<Vec<u8>> {
        let text = match what {
            Exported::Database => return self.database(ctx),
            Exported::Comparison { model, comparison, path, bookmarks } => {
                let diff = with_bookmarks(json::diff(model, comparison, &DiffParts::default(), None), bookmarks);
                match path {
                    None => serde_json::to_string_pretty(&diff),
                    Some(SelectedPath { found, at }) => {
                        serde_json::to_string_pretty(&anomalies::with_path(diff, &found.anomalies, *at))
                    }
                }
            }
            Exported::Report { model, comparison, command, format } => {
                return self.report(
                    Report { model, comparison, command, timelines: None, threads: None },
                    *format,
                    ctx,
                );
            }
            Exported::Anomalies { found, path, compared } => {
                let document = anomalies::json(&found.anomalies, &found.notices, compared.clone());
                match path {
                    Some(at) => serde_json::to_string_pretty(&anomalies::with_path(document, &found.anomalies, *at)),
                    None => serde_json::to_string_pretty(&document),
                }
            }
        };
        Ok((text? + "\n").into_bytes())
    }
}

/// An error with the remedy where the sandbox refuses to read a recording: what is not read looks like an empty folder.
fn within_reach(path: &Path) -> anyhow::Result<()> {
    let tried = if path.is_dir() { std::fs::read_dir(path).map(drop) } else { std::fs::File::open(path).map(drop) };
    if tried.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied) {
        let shown = path.display();
        anyhow::bail!(
            "{shown}: outside of the sandbox, which has the current folder and recent recordings: start whyslow with \
             --baseline {shown}"
        );
    }
    Ok(())
}

fn ui_options(appearance: &AppearanceOptions) -> anyhow::Result<UiOptions> {
    let variable = |name: &str| std::env::var(name).ok();
    let depth = match appearance.color {
        ColorChoice::Never => ColourDepth::Mono,
        ColorChoice::Auto => ColourDepth::detect(variable),
        // The colours of the terminal, even if NO_COLOR is set.
        ColorChoice::Always => {
            ColourDepth::detect(|name| (name != "NO_COLOR").then(|| variable(name))?).max(ColourDepth::Ansi)
        }
    };
    let theme = appearance.theme.as_deref().map(theme).transpose()?;
    let keys = KeyMap::new(&appearance.keys).map_err(|e| UsageError(format!("--key: {e}")))?;
    Ok(UiOptions {
        theme,
        suits: depth.suits(variable),
        depth,
        ascii: appearance.ascii || shows_ascii_only(),
        mouse: appearance.mouse,
        keys: Arc::new(keys),
    })
}

/// A built-in theme by name, else a file.
fn theme(file: &OsStr) -> anyhow::Result<theme::ThemeSource> {
    let name = file.to_string_lossy().into_owned();
    let built_in = theme::built_in();
    if let Some(theme) = built_in.iter().find(|t| t.name == name) {
        return Ok(theme.clone());
    }
    let text = session::text_of(Path::new(file)).map_err(|e| {
        let names: Vec<&str> = built_in.iter().map(|t| t.name.as_str()).collect();
        UsageError(format!("--theme {name}: {e}; name a theme file or a built-in theme: {}", names.join(", ")))
    })?;
    Ok(theme::ThemeSource { name, text })
}
