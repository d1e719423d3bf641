//! The one vocabulary that analysis knows: typed kernel, user-space and MPI events, tasks and operations.
//!
//! [`kind`] is the vocabulary of the kernel and of user space; `reading/` binds record classes to it. [`operation`] is
//! the neutral form that pattern mining reads; [`mpi`] makes it of OTF2 archives.

pub mod call_path;
pub mod derived;
pub mod descriptor;
pub mod errno;
pub mod host;
pub mod image;
pub mod kernel_thread;
pub mod kind;
pub mod matching;
pub mod mpi;
pub mod operation;
pub mod prev_state;
pub mod profile;
pub mod remark;
pub mod signal;
mod soft_irq;
pub mod stack;
pub mod task;
pub mod transfer;
pub mod waiting_calls;
