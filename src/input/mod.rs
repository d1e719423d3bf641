//! Reads bytes as records: one folder for each format. The meaning of the records is not known here.
//!
//! ```text
//! path -> argument -> plain (unpacked) -> formats -> folder of a format -> format_trace
//!      -> open: sources with their labels, on one time line -> trace: readers -> record
//! ```
//! [`record`] holds the types that `reading/` uses. [`open`] finds the traces below the paths that a user names.

pub mod account;
mod argument;
mod beside;
pub mod checked_account;
pub mod count;
mod coverage;
pub mod ctf;
mod environment;
mod error;
mod foreign;
mod format;
pub mod format_trace;
mod formats;
pub mod ftrace;
mod not_a_recording;
mod open;
pub mod otf2;
pub mod perf;
mod plain;
pub mod record;
pub mod recorded_code;
pub mod records;
mod search;
mod source;
pub mod stream;
pub mod trace;
pub mod tracepoint;
pub mod translated;

pub use argument::Argument;
pub use error::{OpenError, Unreadable};
pub use open::{LabelledArchive, Opened, open, outline, temporary_files};
pub use source::Source;
pub use trace::Trace;
