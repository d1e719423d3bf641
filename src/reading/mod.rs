//! Records to typed events, in parallel.
//!
//! ```text
//!  traces -> Sources: a Binding and a decode plan each
//!                |
//!  engine: cut into chunks -> a worker reads a chunk -> Batch of typed events -> merged in order of time by an Analysis
//!                             (Binder: record -> event)  (all streams, sorted)
//! ```
//! [`sources`] prepares traces and reads a chunk of them; [`engine`] cuts the time line and drives the workers. [`bind`] binds each
//! record class once, by the names and fields of `classes` in the words of a tracer ([`dialect`]); after that, reading a record is a jump and
//! some copies. [`tasks`] and [`declared`] find in the same classes what delimits executions.

pub mod batch;
pub mod bind;
pub mod classes;
pub mod declared;
pub mod dialect;
pub mod engine;
pub mod sources;
mod syscalls;
pub mod tasks;
