//! What was asked of the states of a recording and what it cost, for `--timings`.
//!
//! In: from each reader that is done, how often it asked each question, and the nodes and leaves of the index that it
//! looked at. Out: the sums by question, in order. Cost: a lock and a look-up for each reader and question; nothing
//! without `--timings`.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::ops::AddAssign;
use std::sync::{Mutex, PoisonError};

/// Who asks, for what, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProbedQuestion {
    /// `path`, `history`, ...
    pub asker: &'static str,
    /// `segments`, `calls`, ...
    pub family: &'static str,
    /// `at`, `within`, ...
    pub access: &'static str,
}

/// How often it was asked, and what was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looks {
    pub asked: u64,
    /// Nodes above the leaves, those of leaves among them.
    pub nodes: u64,
    pub leaves: u64,
}

impl AddAssign for Looks {
    fn add_assign(&mut self, other: Looks) {
        self.asked += other.asked;
        self.nodes += other.nodes;
        self.leaves += other.leaves;
    }
}

impl Display for Looks {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Looks { asked, nodes, leaves } = self;
        write!(f, "{asked} questions, {nodes} nodes, {leaves} leaves")
    }
}

/// The sums of all readers.
#[derive(Debug, Default)]
pub struct Probes(Mutex<BTreeMap<ProbedQuestion, Looks>>);

impl Probes {
    /// Add what one reader did.
    pub fn add(&self, question: ProbedQuestion, looks: Looks) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(question).or_default() += looks;
    }

    /// A line for each question.
    pub fn lines(&self) -> Vec<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let line =
            |(of, looks): (&ProbedQuestion, &Looks)| format!("{:>10} {} {}: {looks}", of.asker, of.family, of.access);
        all.iter().map(line).collect()
    }
}
