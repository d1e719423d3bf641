//! Input of the interface: a title, its appearance, and the [`Backend`] that does the work.

use super::patterns::AnomalyReport;
use super::theme::{ColourDepth, ThemeSource};
use crate::base::ctx::Ctx;
use crate::compare::{Comparison, ComparisonRequest};
use crate::explain::mining::Mining;
use crate::model::Model;
use crate::view::agreement::Agreement;
use std::sync::Arc;

/// Results that can be written to a file.
#[derive(Clone, Debug)]
pub enum Exported {
    /// The comparison, and the propagation path that is selected.
    Comparison {
        /// The executions.
        model: Arc<Model>,
        /// Their groups.
        comparison: Arc<Comparison>,
        /// All paths, and which of them.
        path: Option<(Arc<AnomalyReport>, usize)>,
    },
    /// Patterns, anomalies and paths, and the path that is selected.
    Anomalies {
        /// All of it.
        found: Arc<AnomalyReport>,
        /// Position of a path.
        path: Option<usize>,
        /// The comparison's result beside them.
        compared: Option<Agreement>,
    },
}

/// The first question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstQuestion {
    /// Why slow executions are slow; patterns only on request, or where there are no executions.
    Executions,
    /// Anomalies of patterns: nothing in the input delimits executions.
    Patterns,
}

/// The work behind the interface; called on one background thread, one call at a time.
///
/// Long work checks `work.cancel` often enough to end within 100 ms, and reports to `work.progress`.
/// Errors are shown as they are: one sentence with the place and the remedy.
pub trait Backend: Send {
    /// Analyse the traces for a task by name; `None` on the first call: the command line's, or the trace's first.
    fn analyse(&mut self, task: Option<&str>, ctx: &Ctx) -> anyhow::Result<Arc<Model>>;

    /// Compare two groups; where the request is empty, proposed ones.
    fn compare(&mut self, model: &Model, request: &ComparisonRequest, ctx: &Ctx) -> anyhow::Result<Comparison>;

    /// Mine the repeating patterns of each thread or rank.
    fn mine(&mut self, ctx: &Ctx) -> anyhow::Result<Arc<Mining>>;

    /// The JSON document of `whyslow diff --json` or `whyslow anomalies --json`, with the selected path.
    fn export(&mut self, what: &Exported) -> anyhow::Result<String>;
}

/// Appearance and behaviour.
#[derive(Clone, Debug)]
pub struct UiOptions {
    /// Theme to begin with: the name of one built in, or a user's own source. `None`: the one that suits.
    pub theme: Option<ThemeSource>,
    /// Name of the built-in theme that suits the terminal.
    pub suits: &'static str,
    /// Colours that the terminal shows.
    pub depth: ColourDepth,
    /// ASCII only.
    pub ascii: bool,
    /// Enable mouse support.
    pub mouse: bool,
}

/// Everything that [`run`](super::run) needs.
pub struct Setup {
    /// The traces, as the header names them.
    pub title: String,
    /// The groups given on the command line; empty: proposed.
    pub request: ComparisonRequest,
    /// The first question.
    pub first: FirstQuestion,
    /// Appearance and behaviour.
    pub looks: UiOptions,
    /// Worker threads; 0: all cores.
    pub threads: usize,
    /// Does the work.
    pub backend: Box<dyn Backend>,
}
