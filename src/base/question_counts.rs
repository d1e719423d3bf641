//! The questions that analyses ask of the states of a recording, and what they cost, for `--timings`.
//!
//! In: from each reader that is done, how often it asked each question, and the nodes and leaves of the index that it
//! looked at. Out: the sums by question, in order. ALGORITHMS.md 8.10 has the table of analysis, question and cost; a
//! test compares it with these counts. Cost: a lock and a look-up for each reader and question; nothing where they are
//! not wanted.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::ops::AddAssign;
use std::sync::{Mutex, PoisonError};

/// Who asks, for what, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CountedQuestion {
    /// `path`, `history`, ...
    pub asker: &'static str,
    /// `segments`, `calls`, ...
    pub family: &'static str,
    /// `at`, `within`, ...
    pub access: &'static str,
}

/// How often it was asked, and what was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuestionCost {
    pub asked: u64,
    /// Nodes above the leaves, those of leaves among them.
    pub nodes: u64,
    pub leaves: u64,
}

impl AddAssign for QuestionCost {
    fn add_assign(&mut self, other: QuestionCost) {
        self.asked += other.asked;
        self.nodes += other.nodes;
        self.leaves += other.leaves;
    }
}

impl Display for QuestionCost {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let QuestionCost { asked, nodes, leaves } = self;
        write!(f, "{asked} questions, {nodes} nodes, {leaves} leaves")
    }
}

/// The sums of all readers.
#[derive(Debug, Default)]
pub struct QuestionCounts(Mutex<BTreeMap<CountedQuestion, QuestionCost>>);

impl QuestionCounts {
    /// Add what one reader did.
    pub fn add(&self, question: CountedQuestion, cost: QuestionCost) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(question).or_default() += cost;
    }

    /// All questions, with what each cost.
    #[cfg(not(program))]
    pub fn all(&self) -> BTreeMap<CountedQuestion, QuestionCost> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A line for each question.
    pub fn lines(&self) -> Vec<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let line = |(of, cost): (&CountedQuestion, &QuestionCost)| {
            format!("{:>10} {} {}: {cost}", of.asker, of.family, of.access)
        };
        all.iter().map(line).collect()
    }
}
