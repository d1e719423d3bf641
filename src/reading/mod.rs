//! Records to typed events, in parallel.
//!
//! ```text
//!  traces -> BoundTraces: a Binding and a decode plan each
//!                |
//!  engine: chunks of time -> a worker reads a chunk -> Batch of typed events -> an Analysis joins them
//!                            (Binder: record -> event)  (all streams, sorted)     in the order of chunks
//! ```
//! [`sources`] prepares traces and reads a chunk of them (`copies`: events that several of them recorded); [`chunks`]
//! cuts the time line (`cuts`: where, `buffers`: how finely, `packet_times`; `places`: where the packets were left),
//! [`engine`] drives the workers. [`bind`] binds each record class once, by the names and fields of `classes` in the
//! words of a tracer ([`dialect`]); after that, reading a record is a jump and some copies. [`tasks`] and [`declared`]
//! find in the same classes what delimits executions, also by the names that other recorders have
//! ([`delimiter_names`]).

pub mod batch;
pub mod bind;
mod buffers;
pub mod chunks;
pub mod classes;
mod copies;
mod coverage;
mod crowded;
mod cuts;
pub mod declared;
pub mod delimiter_names;
mod density;
pub mod dialect;
pub mod engine;
mod given;
pub mod packet_times;
mod places;
mod recorded;
pub mod signature;
pub mod sources;
mod syscalls;
pub mod tasks;
pub mod topics;
