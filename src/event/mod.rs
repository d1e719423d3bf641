//! The one vocabulary that analysis knows: typed kernel and user-space events, and how record classes are bound to it.
//!
//! [`kind`] is the vocabulary, [`batch`] what a worker makes of a chunk. A record class is bound to a typed event
//! once ([`bind`], by the names and fields of `classes`); after that, reading a record is a jump and some copies.
//! [`operation`] is the neutral form that pattern mining reads; [`mpi`] makes it of OTF2 archives.

pub mod batch;
pub mod bind;
pub mod call_path;
pub mod classes;
pub mod declared;
pub mod derived;
pub mod dialect;
pub mod image;
pub mod kernel_thread;
pub mod kind;
pub mod matching;
pub mod mpi;
pub mod operation;
pub mod stack;
mod syscalls;
pub mod task;
pub mod transfer;
