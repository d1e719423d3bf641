//! The state of the interface: everything that a screen shows. Drawing derives nothing: the layout and the wrapped
//! texts are in [`App::frame`].
//!
//! `update` alone changes it; screens take `&App`. Dialogs are [`Layer`]s on top of the panes: each has its own state,
//! and answers keys and the mouse with a [`LayerResponse`], which `update` carries out. Results of background jobs are
//! shared (`Arc`) and replaced whole; the item under the cursor is found again in the new ones by name.

use super::actions::{Action, ActionScope};
use super::bookmarks::Bookmark;
use super::canvas::Canvas;
use super::counts::{HistogramCounts, HistogramRow};
use super::frame::{BinGrid, ScreenFrame};
use super::groups::{GroupHistory, TypedFilters};
use super::job::{Busy, Job, JobLane, TaskSummary};
use super::key::KeyPress;
use super::message::UiEffect;
use super::overview::OverviewState;
use super::pane::{JumpOrigin, Pane};
use super::panes::histograms::state::HistogramPane;
use super::panes::tree::state::{DetailsBeside, TreePane};
use super::patterns::PatternState;
use super::saved::SavedView;
use super::setup::{FirstQuestion, UiOptions};
use super::theme::{self, Theme, ThemeError, ThemeSource};
use super::tour::TourProgress;
use crate::base::time::{Span, Timestamp};
use crate::compare::{Cause, Comparison, ComparisonRequest};
use crate::model::Model;
use crate::model::choice::ProgramTask;
use crate::view::compared_causes::ComparedCauses;
use crate::view::report::Invocation;
use ratatui::layout::Position;
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// A line for the user, shown until the next key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub text: String,
    /// It reports a failure.
    pub failed: bool,
}

/// A dialog on top of the panes: its state, what it answers, and its picture. It sees the state without itself, and
/// changes nothing but itself.
pub trait Layer: Any + Debug + CloneLayer {
    /// Take a key.
    fn key(&mut self, key: KeyPress, app: &App) -> LayerResponse;

    /// Take pasted text.
    fn paste(&mut self, _text: &str) -> LayerResponse {
        LayerResponse::TAKEN
    }

    /// The mouse button went down on a cell.
    fn click(&mut self, _at: Position, _app: &App) -> LayerResponse {
        LayerResponse::TAKEN
    }

    /// The mouse moved to a column with the button down.
    fn drag(&mut self, _column: u16, _app: &App) -> LayerResponse {
        LayerResponse::TAKEN
    }

    /// The wheel turned by lines; negative is up.
    fn wheel(&mut self, _lines: isize, _app: &App) -> LayerResponse {
        LayerResponse::TAKEN
    }

    /// The layout of the screen is new: wrap texts and bring cursors to existing lines.
    fn lay_out(&mut self, _app: &App) {}

    fn draw(&self, canvas: &mut Canvas<'_>, app: &App);

    /// Keys and their words for the footer.
    fn keys(&self, _app: &App) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// A line or a few on top of the footer, for text that is typed or a question: it takes keys alone.
    fn is_line(&self) -> bool {
        false
    }

    /// The layer below it stays in sight.
    fn shows_below(&self) -> bool {
        false
    }

    /// The scope of its own actions in the table of keys.
    fn scope(&self) -> Option<ActionScope> {
        None
    }

    /// Its text for the clipboard; `None`: that of the pane below.
    fn copied(&self, _app: &App) -> Option<String> {
        None
    }
}

/// The keys of a layer that has nothing to show yet.
pub const EMPTY: &[(&str, &str)] = &[("Esc", "close"), ("?", "help")];

/// Every [`Layer`] that can be cloned can be so in its box.
pub trait CloneLayer {
    fn boxed(&self) -> Box<dyn Layer>;
}

impl<L: Layer + Clone> CloneLayer for L {
    fn boxed(&self) -> Box<dyn Layer> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Layer> {
    fn clone(&self) -> Box<dyn Layer> {
        self.as_ref().boxed()
    }
}

/// The answer of a layer.
pub struct LayerResponse {
    /// The layer is taken away, before anything else happens.
    pub closes: bool,
    pub then: Option<Consequence>,
}

/// What happens after a layer has answered.
pub enum Consequence {
    /// An action of the table of keys.
    Act(Action),
    /// A change of the state outside of the layer.
    Change(Box<StateChange>),
}

pub type StateChange = dyn FnOnce(&mut App);

impl LayerResponse {
    /// Nothing more: the key is used up.
    pub const TAKEN: LayerResponse = LayerResponse { closes: false, then: None };
    /// Take the layer away.
    pub const CLOSE: LayerResponse = LayerResponse { closes: true, then: None };

    /// Do an action.
    pub fn act(action: Action) -> LayerResponse {
        LayerResponse { closes: false, then: Some(Consequence::Act(action)) }
    }

    /// Change the state.
    pub fn change(change: impl FnOnce(&mut App) + 'static) -> LayerResponse {
        LayerResponse { closes: false, then: Some(Consequence::Change(Box::new(change))) }
    }

    /// Show a line to the user.
    pub fn say(text: impl Into<String>) -> LayerResponse {
        let text = text.into();
        LayerResponse::change(|app| app.say(text))
    }

    /// The layer is taken away first.
    pub fn closing(self) -> LayerResponse {
        LayerResponse { closes: true, ..self }
    }
}

#[derive(Clone, Debug)]
pub struct App {
    /// The traces.
    pub title: String,
    /// The command line, for summaries.
    pub command_line: Invocation,
    /// Columns and lines of the screen.
    pub size: (u16, u16),
    /// Rectangles and wrapped texts after the latest message.
    pub frame: ScreenFrame,
    /// Appearance and behaviour.
    pub options: UiOptions,
    /// The themes that the key of themes goes through.
    pub themes: Vec<ThemeSource>,
    /// The one in force.
    pub theme: Theme,
    /// The model, once analysed.
    pub model: Option<Arc<Model>>,
    /// The comparison, once made.
    pub comparison: Option<Arc<Comparison>>,
    /// The histograms, once counted.
    pub counts: Option<Arc<HistogramCounts>>,
    /// The baseline, as typed.
    pub baseline: Option<String>,
    /// The groups asked for.
    pub groups: GroupHistory,
    /// Filters that were typed and are being compared: refused ones go back into the prompt.
    pub typed: Option<TypedFilters>,
    /// Texts of filters that were typed, the oldest first.
    pub typed_filters: Vec<String>,
    /// The tasks that have executions, once they are counted.
    pub surveyed: Option<Arc<[TaskSummary]>>,
    /// Of each program the task that could be asked about first, where none was named.
    pub programs: Vec<ProgramTask>,
    /// Work for the loop, until the update returns it.
    pub effects: Vec<UiEffect>,
    /// The running job.
    pub busy: Option<Busy>,
    /// Why there is no (new) answer.
    pub failure: Option<String>,
    /// A line for the user.
    pub status: Option<Status>,
    /// The events are at hand, from which timelines are drawn.
    pub has_events: bool,
    /// The question whose verdict is line 1 in every pane.
    pub first: FirstQuestion,
    /// The pane in front.
    pub pane: Pane,
    /// It fills the screen although two would fit.
    pub zoom: bool,
    pub histograms: HistogramPane,
    pub tree: TreePane,
    /// Details for the empty part below the tree of large screens.
    pub beside: Option<DetailsBeside>,
    /// Dialogs, the topmost last.
    pub layers: Vec<Box<dyn Layer>>,
    /// Origins of jumps, the latest last.
    pub trail: Vec<JumpOrigin>,
    /// Nodes unfolded in the previous model, until the same nodes are unfolded in the new one.
    pub remembered: Vec<Vec<String>>,
    /// Patterns, anomalies, paths.
    pub patterns: PatternState,
    /// The causes of which the root causes are parts, once both are known.
    pub compared: Option<ComparedCauses>,
    /// The recording at a glance.
    pub overview: OverviewState,
    /// The running job about many threads.
    pub threads_busy: Option<Busy>,
    /// A moment whose executions are to be the slow group as soon as there are any.
    pub moment: Option<Span>,
    /// What was open the last time, until it is open again.
    pub restoring: Option<Box<SavedView>>,
    /// The metric that was under the cursor the last time, until the histograms are counted.
    pub restored_metric: Option<String>,
    /// Places with notes.
    pub bookmarks: Vec<Bookmark>,
    /// The tour, while it runs.
    pub tour: Option<TourProgress>,
}

impl App {
    /// The state before anything is known.
    pub fn new(
        title: String,
        request: ComparisonRequest,
        options: UiOptions,
        size: (u16, u16),
    ) -> Result<App, ThemeError> {
        let mut themes = theme::built_in();
        let first = match &options.theme {
            Some(own) => {
                themes.retain(|t| t.name != own.name);
                themes.insert(0, own.clone());
                own.name.clone()
            }
            None => options.suits.to_owned(),
        };
        let source = themes.iter().find(|t| t.name == first).cloned().unwrap_or_else(|| themes[0].clone());
        let theme = Theme::compile(&source, options.depth)?;
        Ok(App {
            title,
            command_line: Invocation::default(),
            size,
            frame: ScreenFrame::default(),
            options,
            themes,
            theme,
            model: None,
            comparison: None,
            counts: None,
            baseline: None,
            groups: GroupHistory::new(request),
            typed: None,
            typed_filters: Vec::new(),
            surveyed: None,
            programs: Vec::new(),
            effects: Vec::new(),
            busy: None,
            failure: None,
            status: None,
            has_events: true,
            first: FirstQuestion::Executions,
            pane: Pane::Tree,
            zoom: false,
            histograms: HistogramPane::default(),
            tree: TreePane::default(),
            beside: None,
            layers: Vec::new(),
            trail: Vec::new(),
            remembered: Vec::new(),
            patterns: PatternState::default(),
            compared: None,
            overview: OverviewState::default(),
            threads_busy: None,
            moment: None,
            restoring: None,
            restored_metric: None,
            bookmarks: Vec::new(),
            tour: None,
        })
    }

    /// Show a line to the user.
    pub fn say(&mut self, text: impl Into<String>) {
        self.status = Some(Status { text: text.into(), failed: false });
    }

    /// Show the user that something failed.
    pub fn report_failure(&mut self, text: impl Into<String>) {
        self.status = Some(Status { text: text.into(), failed: true });
    }

    /// Put a layer on top.
    pub fn open(&mut self, layer: impl Layer) {
        self.layers.push(Box::new(layer));
    }

    /// The layer on top, if it is of this type.
    pub fn top<L: Layer>(&self) -> Option<&L> {
        (self.layers.last()?.as_ref() as &dyn Any).downcast_ref()
    }

    /// The layer on top, if it is of this type.
    pub fn top_mut<L: Layer>(&mut self) -> Option<&mut L> {
        (self.layers.last_mut()?.as_mut() as &mut dyn Any).downcast_mut()
    }

    /// The layers of this type, the topmost first.
    pub fn layers_of<L: Layer>(&mut self) -> impl Iterator<Item = &mut L> {
        self.layers.iter_mut().rev().filter_map(|layer| (layer.as_mut() as &mut dyn Any).downcast_mut())
    }

    /// Begin a job: it counts as running from now on.
    pub fn begin(&mut self, job: Job) {
        let lane = job.lane();
        *self.busy_mut(lane) = Some(Busy { what: job.name(), ..Busy::default() });
        match lane {
            JobLane::Executions => self.failure = None,
            JobLane::Cells => self.histograms.heat.failure = None,
            JobLane::Patterns => self.patterns.failure = None,
            JobLane::Overview => self.overview.failure = None,
            JobLane::Threads => {}
        }
        self.effects.push(UiEffect::Start(job));
    }

    /// The executions and their comparison, once both are there.
    pub fn compared_executions(&self) -> Option<(Arc<Model>, Arc<Comparison>)> {
        Some((self.model.clone()?, self.comparison.clone()?))
    }

    /// The metric under the cursor.
    pub fn histogram_row(&self) -> Option<&HistogramRow> {
        self.counts.as_ref()?.rows.get(self.histograms.row)
    }

    /// How the bins of the metric under the cursor share the columns of the screen.
    pub fn bin_grid(&self) -> Option<BinGrid> {
        Some(BinGrid::new(self.histogram_row()?.bins.len(), self.frame.histograms.columns))
    }

    /// The causes, best first.
    pub fn causes(&self) -> &[Cause] {
        self.comparison.as_ref().map_or(&[], |c| &c.causes)
    }

    /// Losses, unknowns and caveats, one sentence each; those of the groups first.
    pub fn warnings(&self) -> Vec<String> {
        let mut all: Vec<String> = self.comparison.iter().flat_map(|c| c.warnings.iter().cloned()).collect();
        let of_model = self.model.iter().flat_map(|m| m.notices.sentences());
        let of_patterns = self.patterns.found.iter().flat_map(|f| f.notices.sentences());
        for sentence in of_model.chain(of_patterns) {
            if !all.contains(&sentence) {
                all.push(sentence);
            }
        }
        all
    }

    /// The running job of a lane.
    pub fn busy(&self, lane: JobLane) -> Option<&Busy> {
        match lane {
            JobLane::Executions => self.busy.as_ref(),
            JobLane::Cells => self.histograms.heat.busy.as_ref(),
            JobLane::Patterns => self.patterns.busy.as_ref(),
            JobLane::Overview => self.overview.busy.as_ref(),
            JobLane::Threads => self.threads_busy.as_ref(),
        }
    }

    /// The place of the running job of a lane.
    pub fn busy_mut(&mut self, lane: JobLane) -> &mut Option<Busy> {
        match lane {
            JobLane::Executions => &mut self.busy,
            JobLane::Cells => &mut self.histograms.heat.busy,
            JobLane::Patterns => &mut self.patterns.busy,
            JobLane::Overview => &mut self.overview.busy,
            JobLane::Threads => &mut self.threads_busy,
        }
    }

    /// Time of the first event, from which times are shown.
    pub fn origin(&self) -> Timestamp {
        let of_patterns = || self.patterns.found.as_ref().map_or(Timestamp::ZERO, |f| f.anomalies.origin);
        self.model.as_ref().map_or_else(of_patterns, |m| m.origin)
    }

    /// True once the pane in front has something to show.
    pub fn has_results(&self) -> bool {
        match self.pane.is_of_patterns() {
            true => self.patterns.found.is_some(),
            false => self.comparison.is_some(),
        }
    }

    /// The task's name.
    pub fn task(&self) -> Option<&str> {
        let model = self.model.as_ref()?;
        model.tasks.get(model.task).map(String::as_str)
    }
}
