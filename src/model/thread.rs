//! Threads as answers name them.

/// A thread of a kernel recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadIdentity {
    /// Process id.
    pub pid: i32,
    /// Thread id.
    pub tid: i32,
    /// Name of the thread.
    pub name: String,
    /// Name of its process.
    pub process: String,
}
