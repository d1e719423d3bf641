//! The kinds of questions that analyses ask of a timeline, and the counters of one reader.
//!
//! In: a question, by the analysis that asks it. Out: how many of each kind, with the nodes and leaves that were looked
//! at. Cost: an addition to a counter of the asking [`RowReader`](super::reader::RowReader), which adds its counters to
//! those of the timeline when it is dropped, where these are wanted.

use crate::base::question_counts::{CountedQuestion, QuestionCost, QuestionCounts};
use std::cell::Cell;

/// Declares an enum without values, with all its variants and their names.
macro_rules! kinds {
    ($(#[$doc:meta])* $visibility:vis $name:ident { $($(#[$about:meta])* $kind:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        $visibility enum $name { $($(#[$about])* $kind,)+ }
        impl $name {
            /// All of them, in their order.
            pub const ALL: &[$name] = &[$($name::$kind),+];
            /// Its name in documents.
            pub fn name(self) -> &'static str {
                match self { $($name::$kind => $text),+ }
            }
        }
    };
}

kinds! {
    /// An analysis that asks.
    pub Asker {
        /// `analysis/path.rs`.
        Path = "path",
        /// `analysis/counts.rs`, `analysis/counters.rs`.
        Counts = "counts",
        /// `analysis/ecct.rs`, `analysis/carriers.rs`.
        Ecct = "ecct",
        /// `analysis/stacks`.
        Stacks = "stacks",
        /// `analysis/disk.rs`.
        Disk = "disk",
        /// `analysis/executions.rs`.
        Executions = "executions",
        /// `analysis/interleaved.rs`.
        Interleaved = "interleaved",
        /// `analysis/pauses.rs`.
        Pauses = "pauses",
        /// `analysis/survey.rs`.
        Survey = "survey",
        /// `analysis/operations.rs`, `analysis/operation_stacks.rs`.
        Operations = "operations",
        /// `analysis/iterations.rs`, `analysis/candidates/`, `analysis/derived.rs`.
        Tasks = "tasks",
        /// `analysis/functions.rs`.
        Functions = "functions",
        /// `analysis/clocks/users.rs`.
        Clocks = "clocks",
        /// `analysis/wakers.rs`.
        Wakers = "wakers",
        /// `explain`.
        Explain = "explain",
        /// `timeline/history`.
        History = "history",
    }
}

kinds! {
    /// The rows that are asked for.
    pub Family {
        /// Segments of a thread.
        Segments = "segments",
        /// System calls of a thread.
        Calls = "calls",
        /// Stack samples of a thread.
        Samples = "samples",
        /// Threads on a CPU.
        Runs = "runs",
        /// Disk requests.
        Requests = "requests",
        /// Work of a kernel thread for others.
        Services = "services",
        /// Page faults of a thread.
        Faults = "faults",
        /// Values of a hardware counter.
        Counters = "counters",
        /// Delimiting events.
        Marks = "marks",
        /// Stacks of a thread over time, which `analysis/stacks` derives.
        Stacks = "stacks",
        /// Names of a thread over time, which are resident.
        Names = "names",
    }
}

kinds! {
    /// How rows are found.
    pub Access {
        /// At a moment: a search, unless the cursor is already there or before it.
        At = "at",
        /// The neighbour of the row that was returned last.
        Next = "next",
        /// Those of a span: a search, then neighbours.
        Within = "within",
        /// All rows in order.
        All = "all",
        /// Those of all lines in a span.
        Across = "across",
    }
}

const KINDS: usize = Family::ALL.len() * Access::ALL.len();

fn place(family: Family, access: Access) -> usize {
    family as usize * Access::ALL.len() + access as usize
}

/// A counter for each kind of question.
type Counters = [Cell<u32>; KINDS];

/// The questions of one reader, and what it looked at to answer them.
#[derive(Debug)]
pub struct Tally {
    asked: Counters,
    nodes: Counters,
    leaves: Counters,
}

/// Add to a counter.
#[inline(always)]
pub fn add(counter: &Cell<u32>, count: u32) {
    counter.set(counter.get().saturating_add(count));
}

impl Tally {
    pub fn new() -> Tally {
        let [asked, nodes, leaves] = [const { [const { Cell::new(0) }; KINDS] }; 3];
        Tally { asked, nodes, leaves }
    }

    /// Count a question.
    #[inline(always)]
    pub fn ask(&self, family: Family, access: Access) {
        add(&self.asked[place(family, access)], 1);
    }

    /// The counter of the leaves that a kind of question looks at.
    #[inline(always)]
    pub fn leaves(&self, family: Family, access: Access) -> &Cell<u32> {
        &self.leaves[place(family, access)]
    }

    /// Count a question about all lines, with the nodes and leaves that it looked at.
    pub fn ask_across(&self, family: Family, (nodes, leaves): (u32, u32)) {
        self.ask(family, Access::Across);
        add(&self.nodes[place(family, Access::Across)], nodes);
        add(self.leaves(family, Access::Across), leaves);
    }

    /// Add them to those of all readers.
    pub fn add_to(&self, counts: &QuestionCounts, asker: Asker) {
        for family in Family::ALL {
            for access in Access::ALL {
                let at = place(*family, *access);
                let [asked, nodes, leaves] =
                    [&self.asked, &self.nodes, &self.leaves].map(|counters| u64::from(counters[at].get()));
                let question = CountedQuestion { asker: asker.name(), family: family.name(), access: access.name() };
                if asked > 0 {
                    counts.add(question, QuestionCost { asked, nodes, leaves });
                }
            }
        }
    }
}
