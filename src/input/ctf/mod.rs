//! The Common Trace Format, 1.8 and 2: a directory of streams and its metadata, opened, indexed, decoded.
//!
//! [`Trace::open`] reads metadata and packet indexes only. [`Trace::compile`] turns a projection into a decode plan;
//! [`Trace::reader`] runs the plan over a run of packets of one stream. Damage ends a packet, never a trace.

use super::record::{ClassId, FieldPath, Projection, Record, StreamId};
use crate::base::notice::Notices;
use crate::base::time::Ns;
use std::ops::Range;
use std::path::Path;

/// Why a directory is not a readable trace: one line with file, place, expectation and remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct OpenError(pub String);

/// A record class (CTF: an event class of one stream class).
#[derive(Clone, Debug)]
pub struct Class {
    /// Event name; empty when it has none.
    pub name: String,
    /// The stream class it belongs to (dense number within the trace).
    pub stream_class: u32,
}

/// What is known of a packet before its events are read.
#[derive(Clone, Debug)]
pub struct Packet {
    /// First and last time stamp on the common time line; `None` where not recorded.
    pub begin: Option<Ns>,
    /// See `begin`.
    pub end: Option<Ns>,
    /// Bytes of content.
    pub bytes: u64,
}

/// A stream: its packets in order, over all files that continue it.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Path of its (first) file, relative to the trace.
    pub name: String,
    /// Dense number of its stream class.
    pub stream_class: u32,
    /// CPU of its packets, where they name one.
    pub cpu: Option<u32>,
    /// Packets in order.
    pub packets: Vec<Packet>,
    /// Losses: (from, to, number of events or `None`).
    pub losses: Vec<(Ns, Ns, Option<u64>)>,
}

/// An opened trace.
#[derive(Debug)]
pub struct Trace {}

/// A compiled projection.
#[derive(Debug)]
pub struct Plan {}

/// Decodes a run of packets of one stream.
#[derive(Debug)]
pub struct Reader<'a> {
    trace: &'a Trace,
}

impl Trace {
    /// Open a trace directory (one that holds `metadata`).
    pub fn open(path: &Path) -> Result<Trace, OpenError> {
        Err(OpenError(format!("{}: not readable yet", path.display())))
    }

    /// Record classes by [`ClassId`].
    pub fn classes(&self) -> &[Class] {
        &[]
    }

    /// True where records of the class can have the field.
    pub fn has_field(&self, class: ClassId, field: &FieldPath) -> bool {
        let _ = (class, field);
        false
    }

    /// Names of the payload's direct members that are integers (`true`) or text (`false`).
    pub fn payload_fields(&self, class: ClassId) -> Vec<(String, bool)> {
        let _ = class;
        Vec::new()
    }

    /// Streams by [`StreamId`].
    pub fn streams(&self) -> &[Stream] {
        &[]
    }

    /// A member of the trace environment (`hostname`, `kernel_release`, `domain` ...), numbers as text.
    pub fn environment(&self, name: &str) -> Option<&str> {
        let _ = name;
        None
    }

    /// Uuid of the clock, where there is exactly one clock and it has one.
    pub fn clock_uuid(&self) -> Option<&str> {
        None
    }

    /// Compile a projection.
    pub fn compile(&self, projection: &Projection) -> Plan {
        let _ = projection;
        Plan {}
    }

    /// Read some packets of a stream.
    pub fn reader<'a>(&'a self, plan: &'a Plan, stream: StreamId, packets: Range<usize>) -> Reader<'a> {
        let _ = (plan, stream, packets);
        Reader { trace: self }
    }
}

impl<'a> Reader<'a> {
    /// The next record of a class of interest; `None` at the end. Damaged packets are left with a notice.
    #[allow(clippy::should_implement_trait)] // a lending iterator: the record borrows the reader's values
    pub fn next(&mut self) -> Option<Record<'_, 'a>> {
        let _ = self.trace;
        None
    }

    /// What was wrong in the packets read so far.
    pub fn notices(&self) -> Notices {
        Notices::default()
    }
}
