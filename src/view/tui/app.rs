//! The state of the interface: everything that a screen shows, and nothing that is derived while drawing.
//!
//! Changed by [`update`](mod@super::update) alone; screens take `&App`. Results of background jobs are shared (`Arc`) and
//! replaced whole; the item under the cursor is found again in the new ones by name.

use super::actions::ActionScope;
use super::counts::{HistogramCounts, HistogramRow};
use super::groups::{BinSelection, GroupHistory};
use super::jobs::JobLane;
use super::overlay::Overlay;
use super::patterns::{PathPane, PatternState};
use super::setup::UiOptions;
use super::theme::{self, Theme, ThemeError, ThemeSource};
use super::tree::TreeRows;
use crate::base::time::Span;
use crate::compare::{Cause, Comparison, ComparisonRequest, DiffNode};
use crate::model::Model;
use crate::model::context::ContextId;
use crate::view::agreement::Agreement;
use std::sync::Arc;

/// The panes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pane {
    /// Histograms of the metrics.
    Histograms,
    /// Causes and the differential flame tree.
    Tree,
    /// Occurrences of patterns that took too long.
    Anomalies,
    /// How one delay spread.
    Path,
}

impl Pane {
    /// In the order of their numbers.
    pub const ALL: [Pane; 4] = [Pane::Histograms, Pane::Tree, Pane::Anomalies, Pane::Path];

    /// The two panes that are side by side on wide screens: executions, or patterns.
    pub fn pair(self) -> [Pane; 2] {
        if self.is_of_patterns() { [Pane::Anomalies, Pane::Path] } else { [Pane::Histograms, Pane::Tree] }
    }

    /// It shows patterns and not executions.
    pub fn is_of_patterns(self) -> bool {
        matches!(self, Pane::Anomalies | Pane::Path)
    }

    /// The place of its actions in the table.
    pub fn place(self) -> ActionScope {
        match self {
            Pane::Histograms => ActionScope::Histograms,
            Pane::Tree => ActionScope::Tree,
            Pane::Anomalies => ActionScope::Anomalies,
            Pane::Path => ActionScope::Path,
        }
    }

    /// Its number and title.
    pub fn title(self) -> &'static str {
        match self {
            Pane::Histograms => "1 Histograms",
            Pane::Tree => "2 Flame tree",
            Pane::Anomalies => "3 Anomalies",
            Pane::Path => "4 Propagation",
        }
    }
}

/// A background job while it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// `analysing`, `comparing`, `mining`, `exporting`.
    pub what: &'static str,
    /// Its stage.
    pub stage: &'static str,
    /// Units done in the stage.
    pub done: u64,
    /// Units in the stage; 0 while unknown.
    pub total: u64,
    /// Events seen.
    pub events: u64,
}

/// A line for the user, shown until the next key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The text.
    pub text: String,
    /// Something did not work.
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

/// A search and what it found, in the order of drawing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextSearch {
    /// The text.
    pub text: String,
    /// Nodes, or anomalies.
    pub matches: Vec<u32>,
}

impl TextSearch {
    /// True if a frame is one that was searched: letters are compared without case.
    pub fn is_in(&self, frame: &str) -> bool {
        !self.text.is_empty() && frame.to_lowercase().contains(&self.text.to_lowercase())
    }
}

/// State of the tree pane.
#[derive(Clone, Debug)]
pub struct TreePane {
    /// The visible nodes.
    pub rows: TreeRows,
    /// The cursor.
    pub cursor: Cursor,
    /// The first row shown.
    pub offset: usize,
    /// The first cause shown.
    pub cause_offset: usize,
    /// The last search.
    pub search: TextSearch,
    /// The user has moved or unfolded something: leave it as it is when results are replaced.
    pub touched: bool,
}

/// The origin of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JumpOrigin {
    /// A cause.
    Cause(usize),
    /// A context of the tree.
    Context(ContextId),
    /// The row of an anomaly.
    Anomaly(usize),
    /// A step of a path.
    Step(PathPane),
}

/// Everything.
#[derive(Clone, Debug)]
pub struct App {
    /// The traces.
    pub title: String,
    /// Columns and lines of the screen.
    pub size: (u16, u16),
    /// Appearance and behaviour.
    pub looks: UiOptions,
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
    /// The groups asked for.
    pub groups: GroupHistory,
    /// The running job.
    pub busy: Option<Busy>,
    /// Why there is no (new) answer.
    pub failure: Option<String>,
    /// A line for the user.
    pub status: Option<Status>,
    /// The pane in front.
    pub pane: Pane,
    /// It fills the screen although two would fit.
    pub zoom: bool,
    /// The histogram pane.
    pub histograms: HistogramPane,
    /// The tree pane.
    pub tree: TreePane,
    /// Dialogs, the topmost last.
    pub overlays: Vec<Overlay>,
    /// Origins of jumps, the latest last.
    pub trail: Vec<JumpOrigin>,
    /// Nodes unfolded in the previous model, until the same nodes are unfolded in the new one.
    pub remembered: Vec<Vec<String>>,
    /// Patterns, anomalies, paths.
    pub patterns: PatternState,
    /// Agreement of patterns and comparison, once both are known.
    pub compared: Option<Agreement>,
    /// A moment whose executions are to be the slow group as soon as there are any.
    pub moment: Option<Span>,
}

impl App {
    /// The state before anything is known.
    pub fn new(
        title: String,
        request: ComparisonRequest,
        looks: UiOptions,
        size: (u16, u16),
    ) -> Result<App, ThemeError> {
        let mut themes = theme::built_in();
        let first = match &looks.theme {
            Some(own) => {
                themes.retain(|t| t.name != own.name);
                themes.insert(0, own.clone());
                own.name.clone()
            }
            None => looks.suits.to_owned(),
        };
        let source = themes.iter().find(|t| t.name == first).cloned().unwrap_or_else(|| themes[0].clone());
        let theme = Theme::compile(&source, looks.depth)?;
        Ok(App {
            title,
            size,
            looks,
            themes,
            theme,
            model: None,
            comparison: None,
            counts: None,
            groups: GroupHistory::new(request),
            busy: None,
            failure: None,
            status: None,
            pane: Pane::Tree,
            zoom: false,
            histograms: HistogramPane::default(),
            tree: TreePane {
                rows: TreeRows::default(),
                cursor: Cursor::Cause(0),
                offset: 0,
                cause_offset: 0,
                search: TextSearch::default(),
                touched: false,
            },
            overlays: Vec::new(),
            trail: Vec::new(),
            remembered: Vec::new(),
            patterns: PatternState::default(),
            compared: None,
            moment: None,
        })
    }

    /// The metric under the cursor.
    pub fn histogram_row(&self) -> Option<&HistogramRow> {
        self.counts.as_ref()?.rows.get(self.histograms.row)
    }

    /// The causes, best first.
    pub fn causes(&self) -> &[Cause] {
        self.comparison.as_ref().map_or(&[], |c| &c.causes)
    }

    /// The tree node under the cursor.
    pub fn node(&self) -> Option<(u32, &DiffNode)> {
        let Cursor::Row(row) = self.tree.cursor else { return None };
        let at = *self.tree.rows.visible.get(row)?;
        Some((at, self.comparison.as_ref()?.tree.nodes.get(at as usize)?))
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
        }
    }

    /// Time of the first event, from which times are shown.
    pub fn origin(&self) -> i64 {
        let of_patterns = || self.patterns.found.as_ref().map_or(0, |f| f.anomalies.origin);
        self.model.as_ref().map_or_else(of_patterns, |m| m.origin)
    }

    /// The task's name.
    pub fn task(&self) -> Option<&str> {
        let model = self.model.as_ref()?;
        model.tasks.get(model.task).map(String::as_str)
    }
}
