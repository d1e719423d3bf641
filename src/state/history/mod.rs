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
//! - [`recorded`]: the history of a kernel recording, written into the tree
//! - [`view`]: the same without a tree, from the rows of the store; `instant`: at an instant, of two leaves at most;
//!   `around`: about a span
//! - [`lines`]: what the `query` command prints
//! - [`check`]: the invariants

mod around;
pub mod builder;
pub mod bulk;
pub mod check;
pub mod columns;
mod cuts;
pub mod growing;
mod instant;
pub mod interval;
pub mod lines;
pub mod recorded;
pub mod search;
pub mod tree;
pub mod view;

#[cfg(test)]
mod instant_tests;

use crate::base::ctx::{Cancel, Cancelled, Ctx};
use crate::base::names::{NameId, Names};
use crate::base::time::Span;
use crate::state::attributes::{AttributeId, Attributes};
use crate::state::summary::{Summary, Times};
use interval::StateValue;
use lines::{HistoryLine, Time};
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
    Number(i64),
    /// A text, or the name of a state.
    Text(&'a str),
}

impl Shown<'_> {
    /// True where it is shown like this.
    pub fn is(self, text: &str) -> bool {
        match self {
            Shown::Number(number) => number.to_string() == text,
            Shown::Text(own) => own == text,
        }
    }
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

    /// A value as screens and JSON show it.
    pub fn show(&self, value: StateValue) -> Shown<'_> {
        StateHistory::show(self, value)
    }
}

/// What questions need of a history, in a tree or in the rows of a store.
pub trait StateHistory: Sync {
    /// The attributes, numbered by path.
    fn attributes(&self) -> &Attributes;

    /// The time that the trace covers.
    fn window(&self) -> Span;

    /// The names of the states.
    fn states(&self) -> &'static [&'static str];

    /// A text that a value names.
    fn text(&self, id: NameId) -> &str;

    /// The lines of all attributes that `pattern` matches, in order of their paths. An attribute without any interval
    /// (such as `threads`, which only has others below it) has no line, unless the pattern names it.
    fn lines(&self, pattern: &str, time: &Time, cancel: &Cancel) -> Result<Vec<HistoryLine>, Cancelled>;

    /// The time of an attribute in each state, in spans that follow each other.
    fn times(&self, attribute: AttributeId, cells: &[Span]) -> Vec<Times>;

    /// The code of a state.
    fn code_of(&self, state: &str) -> Option<u16> {
        self.states().iter().position(|name| *name == state).and_then(|at| u16::try_from(at).ok())
    }

    /// A value as screens and JSON show it.
    fn show(&self, value: StateValue) -> Shown<'_> {
        match value {
            StateValue::Code(code) => Shown::Text(self.states().get(usize::from(code)).copied().unwrap_or("?")),
            StateValue::Int(n) => Shown::Number(n),
            StateValue::Text(id) => Shown::Text(self.text(id)),
        }
    }
}

impl StateHistory for History {
    fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    fn window(&self) -> Span {
        self.window
    }

    fn states(&self) -> &'static [&'static str] {
        self.states
    }

    fn text(&self, id: NameId) -> &str {
        self.texts.get(id)
    }

    fn lines(&self, pattern: &str, time: &Time, cancel: &Cancel) -> Result<Vec<HistoryLine>, Cancelled> {
        History::lines(self, pattern, time, cancel)
    }

    fn times(&self, attribute: AttributeId, cells: &[Span]) -> Vec<Times> {
        // Nothing cancels it.
        let summary = self.summary(&Ctx::new(1)).ok();
        let times = |cell: &Span| summary.map_or_else(Times::new, |of| of.times(&self.tree, attribute, *cell));
        cells.iter().map(times).collect()
    }
}
