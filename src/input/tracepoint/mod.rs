//! Recordings of the kernel's own tracepoints by perf or ftrace: what both formats share.
//!
//! Both carry, CPU by CPU, the kernel's records in the kernel's layout, and the text that describes them (`format.rs`,
//! `head.rs`). The formats differ in how the next record is found: a [`Storage`] knows the packets of its streams and
//! walks through them ([`Walk`]). The rest is here: classes, contexts that are computed, not recorded (process and name
//! of a thread, call stacks), the clock, and a [`TracepointReader`] that reads fields of records at fixed offsets
//! ([`plan`]). Values borrow from the mapped file; nothing is allocated for a record.

pub mod account;
pub mod class;
pub mod clock;
pub mod format;
pub mod head;
mod names;
pub mod plan;
pub mod reader;
mod storage;
pub mod threads;
mod trace;

pub use class::{ClassSchema, ContextField, RecordedIds};
pub use clock::{ClockLoss, CpuPacket, CpuStream, RecorderClock};
pub use format::bytes_of;
pub use names::{PROBED, is_of_interest, known_as};
pub use storage::{PacketPlace, Raw, StackSide, Storage, Walk, WalkPosition, WalkStep};
pub use trace::{DOMAIN, TraceParts, TracepointTrace};
