//! The one vocabulary that analysis knows: typed kernel and user-space events, and how record classes are bound to it.

pub mod mpi;
pub mod operation;
pub mod task;
