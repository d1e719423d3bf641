//! Why a memory limit ended the work: one line that names the part for which it is not enough, and what would help.
//!
//! In: a limit, and the stage of the work or the bytes of each part. Out: the error, whose text is that line.

use super::memory_limit::{Limit, size};
use super::spill::SpillError;

/// The limit did not suffice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// More was needed.
    #[error("{}", exceeded(*.limit, .stage))]
    Exceeded {
        limit: Limit,
        /// The stage of the work.
        stage: &'static str,
    },
    /// What must be in memory is more, before any work.
    #[error(
        "{limit}: opened traces and what is known of them hold {}, and buffers of events, open rows and leaves of \
         states need {}, {} and {} more at least; raise the limit to {}, use fewer --threads, or fewer traces",
        size(*.opened), size(*.buffers), size(*.rows), size(*.leaves), size(*.needed)
    )]
    Parts {
        limit: Limit,
        /// Bytes that the process holds once the traces are open, and what an earlier pass over them has found.
        opened: u64,
        /// Bytes of buffers of events.
        buffers: u64,
        /// Bytes of open rows.
        rows: u64,
        /// Bytes of leaves.
        leaves: u64,
        /// The limit that has room for them.
        needed: u64,
    },
    /// States gave way to a file, which failed.
    #[error("{0}")]
    Spill(SpillError),
    /// States are in a file, which has other bytes than were written.
    #[error("{0}")]
    Damaged(String),
    /// The system does not report how much is held.
    #[error("--memory: this system does not report how much memory a process holds; leave the option out")]
    Unknown,
    /// There is no thread to look.
    #[error("out of memory: the system gives no thread to watch the limit; raise its limits, or use fewer --threads")]
    Unwatched,
}

/// A limit that did not suffice, and what it was for.
fn exceeded(limit: Limit, stage: &str) -> String {
    let part = part_of(stage);
    let remedy = match stage {
        // Those hold something for each execution.
        "paths" | "symbols" | "results" => "choose a --task with fewer executions, or use a shorter trace",
        _ => "use fewer --threads, or use a shorter trace",
    };
    match limit {
        Limit::Asked(bytes) => format!("--memory {}: this is not enough{part}; raise the limit, {remedy}", size(bytes)),
        Limit::Group(bytes) => format!(
            "out of memory: the control group may hold {}, which is not enough{part}; raise its limit, {remedy}",
            size(bytes)
        ),
        Limit::Free(bytes) => format!(
            "out of memory: 70 % of what was free, {}, is not enough{part}; free memory, or allow more by --memory, \
             {remedy}",
            size(bytes)
        ),
    }
}

/// What a stage of the work holds that cannot give way.
fn part_of(stage: &str) -> &'static str {
    match stage {
        "opening" => " for opened traces",
        "reading" | "counting" => " for buffers of events, open rows and threads",
        "unwinding stacks" | "stacks" => " for distinct call stacks",
        "tasks" => " for the choice of the task",
        "paths" => " for the critical paths of executions",
        "symbols" => " for symbols",
        "results" => " for the results of executions",
        "answer" => " for the answer",
        "clocks" => " for messages between hosts",
        "mining" => " for patterns",
        "states" => " for the states that were asked for",
        "overview" => " for the overview",
        // Before the first stage; the interface has results of earlier jobs.
        "" => " for the program itself, with what it holds already",
        _ => "",
    }
}
