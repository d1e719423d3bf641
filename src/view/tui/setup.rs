//! What the interface is started with: a title, its looks, and the [`Backend`] that does the work.

use super::theme::{Depth, Source};
use crate::base::work::Work;
use crate::compare::{Comparison, Request};
use crate::model::Model;
use std::sync::Arc;

/// What the interface asks to be done; called on one background thread, one call at a time.
///
/// Long work looks at `work.cancel` often enough to end within 100 ms, and tells `work.progress` how far it is.
/// Errors are shown as they are: one sentence with the place and the remedy.
pub trait Backend: Send {
    /// Analyse the traces for a task by name; `None` on the first call: the command line's, or the trace's first.
    fn analyse(&mut self, task: Option<&str>, work: &Work) -> anyhow::Result<Arc<Model>>;

    /// Compare two groups; where the request is empty, proposed ones.
    fn compare(&mut self, model: &Model, request: &Request, work: &Work) -> anyhow::Result<Comparison>;

    /// The comparison as the JSON document of `whyslow diff --json`.
    fn export(&mut self, model: &Model, comparison: &Comparison) -> anyhow::Result<String>;
}

/// How it looks and behaves.
#[derive(Clone, Debug)]
pub struct Looks {
    /// Theme to begin with: the name of one built in, or a user's own source. `None`: what suits the depth.
    pub theme: Option<Source>,
    /// Colours that the terminal shows.
    pub depth: Depth,
    /// ASCII only.
    pub ascii: bool,
    /// Take the mouse.
    pub mouse: bool,
}

/// Everything that [`run`](super::run) needs.
pub struct Setup {
    /// The traces, as the header names them.
    pub title: String,
    /// The groups given on the command line; empty: proposed.
    pub request: Request,
    /// Looks and manners.
    pub looks: Looks,
    /// Worker threads; 0: all cores.
    pub threads: usize,
    /// Does the work.
    pub backend: Box<dyn Backend>,
}
