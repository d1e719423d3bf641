//! The state of the interface: everything that a screen shows. Drawing derives nothing: the layout and the wrapped
//! texts are in [`App::frame`].
//!
//! `update` alone changes it; screens take `&App`. Results of background jobs are shared (`Arc`) and replaced whole;
//! the item under the cursor is found again in the new ones by name.

use super::bookmarks::Bookmark;
use super::counts::{HistogramCounts, HistogramRow};
use super::details::Details;
use super::frame::{BinGrid, ScreenFrame};
use super::groups::{BinSelection, GroupHistory, GroupSide};
use super::job::{Busy, Job, JobLane, TaskSummary};
use super::message::UiEffect;
use super::overlay::Overlay;
use super::overview::OverviewState;
use super::pane::Pane;
use super::patterns::{PathPane, PatternState};
use super::saved::SavedView;
use super::search::TextSearch;
use super::setup::{FirstQuestion, UiOptions};
use super::theme::{self, Theme, ThemeError, ThemeSource};
use super::tour::TourProgress;
use super::tree::{SmallNodes, TreeDirection, TreeItem, TreeRows};
use crate::base::time::{Span, Timestamp};
use crate::compare::inverted::InvertedTree;
use crate::compare::{Cause, Comparison, ComparisonRequest, DiffNode};
use crate::model::Model;
use crate::model::choice::ProgramTask;
use crate::model::context::ContextId;
use crate::view::compared_causes::ComparedCauses;
use crate::view::report::Invocation;
use std::sync::Arc;

/// A line for the user, shown until the next key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub text: String,
    /// It reports a failure.
    pub failed: bool,
}

/// State of the histogram pane.
#[derive(Clone, Debug, Default)]
pub struct HistogramPane {
    /// The metric under the cursor.
    pub row: usize,
    /// The first metric shown.
    pub offset: usize,
    /// The bin under the cursor; always the first of a column on the screen.
    pub bin: usize,
    /// The selected range.
    pub selection: Option<BinSelection>,
    /// The last change of the groups came from this selection: moving on amends it.
    pub dragging: bool,
}

/// Position of the cursor in the tree pane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// On a cause of the list.
    Cause(usize),
    /// On a row of the tree.
    Row(usize),
}

/// Nodes of the tree that have time of a cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarkedNodes {
    /// The cause, by position; `None` before the cursor was on one.
    pub cause: Option<usize>,
    /// The nodes, ascending.
    pub nodes: Vec<u32>,
}

/// The inverted tree, and the rows of the other one.
#[derive(Clone, Debug)]
pub struct ShownInverted {
    pub tree: Arc<InvertedTree>,
    /// The rows of the tree with callers first, for the way back.
    pub rows: TreeRows,
    /// The cursor in them.
    pub cursor: Cursor,
}

/// State of the tree pane.
#[derive(Clone, Debug)]
pub struct TreePane {
    /// The visible nodes.
    pub rows: TreeRows,
    pub cursor: Cursor,
    /// The first row shown.
    pub offset: usize,
    /// The first cause shown.
    pub cause_offset: usize,
    /// The last search.
    pub search: TextSearch,
    /// Nodes with time of the cause that the cursor was on last; their rows are marked.
    pub marked: MarkedNodes,
    /// The tree with callees first, while it is shown; the rows and the cursor are about it then.
    pub inverted: Option<ShownInverted>,
    /// The user has moved or unfolded something: leave it as it is when results are replaced.
    pub touched: bool,
}

/// What the cursor of the tree pane is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreePaneItem {
    /// A cause, by position.
    Cause(usize),
    /// A node of the tree that is shown, by position.
    Node(u32),
}

/// Details of the item under the cursor, without executions.
#[derive(Clone, Debug)]
pub struct DetailsBeside {
    pub item: TreePaneItem,
    /// The tree that it is of.
    pub tree: Arc<Comparison>,
    pub details: Details,
}

/// The origin of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JumpOrigin {
    Cause(usize),
    /// A context of the tree.
    Context(ContextId),
    /// The row of an anomaly.
    Anomaly(usize),
    /// A step of a path.
    Step(PathPane),
}

/// The filters of a group as they were typed, while they are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedFilters {
    pub side: GroupSide,
    pub text: String,
}

/// Everything.
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
    /// The themes that `t` goes through.
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
    /// The running job.
    pub busy: Option<Busy>,
    /// Why there is no (new) answer.
    pub failure: Option<String>,
    /// A line for the user.
    pub status: Option<Status>,
    /// The events are at hand, from which time-lines are drawn.
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
    pub overlays: Vec<Overlay>,
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
            busy: None,
            failure: None,
            status: None,
            has_events: true,
            first: FirstQuestion::Executions,
            pane: Pane::Tree,
            zoom: false,
            histograms: HistogramPane::default(),
            tree: TreePane {
                rows: TreeRows::default(),
                cursor: Cursor::Cause(0),
                offset: 0,
                cause_offset: 0,
                search: TextSearch::default(),
                marked: MarkedNodes::default(),
                inverted: None,
                touched: false,
            },
            beside: None,
            overlays: Vec::new(),
            trail: Vec::new(),
            remembered: Vec::new(),
            patterns: PatternState::default(),
            compared: None,
            overview: OverviewState::default(),
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

    /// Begin a job: it counts as running from now on.
    pub fn begin(&mut self, job: Job) -> Vec<UiEffect> {
        let busy = Some(Busy { what: job.name(), ..Busy::default() });
        match job.lane() {
            JobLane::Executions => {
                self.busy = busy;
                self.failure = None;
            }
            JobLane::Patterns => {
                self.patterns.busy = busy;
                self.patterns.failure = None;
            }
            JobLane::Overview => {
                self.overview.busy = busy;
                self.overview.failure = None;
            }
        }
        vec![UiEffect::Start(job)]
    }

    /// The executions and their comparison, once both are there.
    pub fn compared_executions(&self) -> Option<(Arc<Model>, Arc<Comparison>)> {
        Some((self.model.clone()?, self.comparison.clone()?))
    }

    /// The tree of the tree pane: the comparison, or the same with its tree inverted and the contexts of that.
    pub fn shown_tree(&self) -> Option<(Arc<Model>, Arc<Comparison>)> {
        match &self.tree.inverted {
            Some(inverted) => Some((Arc::clone(&inverted.tree.model), Arc::clone(&inverted.tree.comparison))),
            None => self.compared_executions(),
        }
    }

    /// The direction of the tree of the tree pane.
    pub fn tree_direction(&self) -> TreeDirection {
        if self.tree.inverted.is_some() { TreeDirection::CalleesFirst } else { TreeDirection::CallersFirst }
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

    /// The tree node under the cursor.
    pub fn node(&self) -> Option<(u32, &DiffNode)> {
        let Cursor::Row(row) = self.tree.cursor else { return None };
        let TreeItem::Node(at) = *self.tree.rows.visible.get(row)? else { return None };
        let comparison = match &self.tree.inverted {
            Some(inverted) => &inverted.tree.comparison,
            None => self.comparison.as_ref()?,
        };
        Some((at, comparison.tree.nodes.get(at as usize)?))
    }

    /// The small nodes under the cursor, if it is on a row of several.
    pub fn small_nodes(&self) -> Option<SmallNodes> {
        let Cursor::Row(row) = self.tree.cursor else { return None };
        match self.tree.rows.visible.get(row)? {
            TreeItem::Small(small) => Some(*small),
            TreeItem::Node(_) => None,
        }
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
            JobLane::Patterns => self.patterns.busy.as_ref(),
            JobLane::Overview => self.overview.busy.as_ref(),
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
