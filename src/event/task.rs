//! Tasks: what delimits executions. Definitions only; pairing is done in `analysis/`.
//!
//! Found tasks come from the names of record classes (PRODUCT.md, "Tasks found by themselves"), given ones from
//! `--task` and task files. ALGORITHMS.md 6.1.

/// One end of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delimiter {
    /// Name of the event.
    pub event: String,
    /// The event counts only where this numeric payload field is not negative (`ret` of a system call's exit).
    pub not_negative: Option<String>,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskDefinition {
    /// As listed by `info` and given to `--task`.
    pub name: String,
    /// Begins an execution.
    pub begin: Delimiter,
    /// Ends it.
    pub end: Delimiter,
    /// Payload field whose equal values pair begin and end, across threads; else they pair on the thread.
    pub key: Option<String>,
    /// Payload field of the begin (else the end) event that names the type of the execution.
    pub kind: Option<String>,
    /// A second begin on the same thread (or key) opens an inner execution; else it restarts the outer.
    pub nest: bool,
}
