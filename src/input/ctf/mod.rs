//! The Common Trace Format, 1.8 and 2: a directory of streams and its metadata, opened, indexed, decoded.
//!
//! ```text
//! metadata -> tsdl / json -> schema -> locate -> plan -> decode -> reader -> records
//! stream files, index files -> packet -> table of packets --------^
//! ```
//! [`CtfTrace::open`] reads metadata, packet indexes and packet headers. [`CtfPlan`] is a projection, compiled;
//! [`CtfReader`] runs the plan over a run of packets of one stream. A decode error ends a
//! packet, never a trace.
//!
//! A trace may be recorded in several directories (the chunks of a rotated session): their schemas are joined, and
//! streams go on from one to the next.

mod account;
mod branches;
mod clock;
mod compile;
mod decode;
mod directory;
mod emit;
mod error;
mod extent;
mod format;
mod ids;
mod json;
mod locate;
mod metadata;
mod open;
mod orders;
mod packet;
mod phase;
mod plan;
mod reader;
mod real;
mod roles;
mod schema;
mod slots;
mod steps;
mod streams;
mod stride;
mod trace;
mod tsdl;
mod want;

pub use decode::Sink;
pub use directory::Directory;
pub use format::FORMAT;
pub use metadata::MetadataFileError;
pub use open::{OpenDepth, Opening, open_all};
pub use plan::CtfPlan;
pub use reader::CtfReader;
pub use real::Real;
pub use steps::{ElementFormat, FieldNode, FieldShape, NumberFormat};
pub use trace::CtfTrace;
