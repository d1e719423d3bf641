//! The interface of the readers of all formats.
//!
//! Readers are generic arguments where records are read in a loop, so that the loop is compiled for each format.

use super::ctf::Sink;
use super::record::{ClassId, Record};
use super::stream::{Passed, Position};
use crate::base::notice::Notices;
use crate::base::time::Timestamp;

/// An event that was skipped, or whose fields were written into a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassedRecord {
    pub class: ClassId,
    /// The full value of its clock.
    pub clock: u64,
}

/// The interface of the readers of all formats.
pub trait Records<'a> {
    /// The next record of a wanted class; `None` at the end. Damage raises a notice, and reading goes on with the next
    /// packet.
    fn next(&mut self) -> Option<Record<'_, 'a>>;
    /// Skip the events of the packet before `from`, without decoding their values, and add them to those that were
    /// passed: with the position of the last one whose class is a `checkpoint`. The result is the position after them,
    /// before the damage where there is some.
    fn seek(&mut self, from: Timestamp, passed: &mut Passed, checkpoint: impl Fn(ClassId) -> bool) -> Position;
    /// Skip the next event.
    fn step(&mut self) -> Option<PassedRecord>;
    /// Write all fields of the next event into `sink`.
    fn show<S: Sink<'a>>(&mut self, sink: &mut S) -> Option<PassedRecord>;
    /// Count the events of each class into `counts`, without decoding their values.
    fn count(&mut self, counts: &mut [u64]);
    /// Position in the packet.
    fn position(&self) -> Position;
    /// Go to a position in the same packet.
    fn go(&mut self, position: Position);
    /// Go to a position in the next packet; to its begin where there is none.
    fn resume(&mut self, position: Option<Position>);
    /// The position before the event that was shown or skipped last.
    fn began(&self) -> Position;
    /// Number of the packet that the last record was in.
    fn packet(&self) -> usize;
    /// Damage found in the packets read so far.
    fn notices(&self) -> Notices;
}
