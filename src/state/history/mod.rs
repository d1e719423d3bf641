//! The state history: the value of each attribute at every instant, found in microseconds.
//!
//! ```text
//!  machines, chunk by chunk        once                          any view, any time
//!  Run, Run, Run ...       ->      HistoryBuilder::seal    ->    History: attributes + texts + Tree
//!  (unsorted intervals)            (bulk build, parallel)        (single, full, 2D queries; lines to print)
//! ```
//! The thesis of L. Prieur-Drevon (\[002\] in ALGORITHMS.md) found that histories with many attributes need a tree that
//! is packed by time above and by attribute below, the R-SHT, and built it serially, from intervals sorted by end, into
//! a file. The thesis of F. Reumont-Locke (\[004\]) computed the intervals of chunks in parallel, and had no tree for
//! them. This module does both: it builds the R-SHT in memory, on all workers, from unsorted runs; the bytes are the
//! same for any number of workers and any order of the runs.
//!
//! - [`interval`]: intervals, values, and the runs that the machines write
//! - [`columns`]: the intervals of one node in 12 to 14 bytes each
//! - [`tree`]: the sealed nodes and how packed nodes become a tree
//! - [`bulk`]: the parallel build; `cuts`: how it cuts time without sorting; [`growing`]: the incremental one
//! - [`search`]: single, full and 2D queries
//! - [`builder`]: joins the names of all chunks, then runs the bulk build
//! - [`recorded`]: the history of a kernel recording
//! - [`lines`]: what the `query` command prints
//! - [`check`]: the invariants

pub mod builder;
pub mod bulk;
pub mod check;
pub mod columns;
mod cuts;
pub mod growing;
pub mod interval;
pub mod lines;
pub mod recorded;
pub mod search;
pub mod tree;

use crate::base::ctx::{Cancelled, Ctx};
use crate::base::names::Names;
use crate::base::time::Span;
use crate::state::attributes::Attributes;
use crate::state::summary::Summary;
use interval::StateValue;
use std::sync::OnceLock;
use tree::Tree;

/// A sealed history.
#[derive(Clone, Debug)]
pub struct History {
    /// The attributes, numbered by path.
    pub attributes: Attributes,
    /// The texts that values name, numbered by content.
    pub texts: Names,
    states: &'static [&'static str],
    window: Span,
    tree: Tree,
    /// Built on first use.
    summary: OnceLock<Summary>,
}

/// A value as screens and JSON show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown<'a> {
    /// A number.
    Number(i64),
    /// A text, or the name of a state.
    Text(&'a str),
}

impl History {
    /// The tree, for searches by attribute id.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Time per state at several scales, made on first use.
    pub fn summary(&self, ctx: &Ctx) -> Result<&Summary, Cancelled> {
        if let Some(summary) = self.summary.get() {
            return Ok(summary);
        }
        let summary = Summary::build(&self.tree, ctx)?;
        Ok(self.summary.get_or_init(|| summary))
    }

    /// The time that the trace covers.
    pub fn window(&self) -> Span {
        self.window
    }

    /// The code of a state.
    pub fn code_of(&self, state: &str) -> Option<u16> {
        self.states.iter().position(|name| *name == state).and_then(|at| u16::try_from(at).ok())
    }

    /// A value as screens and JSON show it.
    pub fn show(&self, value: StateValue) -> Shown<'_> {
        match value {
            StateValue::Code(code) => Shown::Text(self.states.get(usize::from(code)).copied().unwrap_or("?")),
            StateValue::Int(n) => Shown::Number(n),
            StateValue::Text(id) => Shown::Text(self.texts.get(id)),
        }
    }
}
