//! What a format of tracepoints knows: the packets of its streams, and the walk from record to record.
//!
//! perf, ftrace and the translations have a [`Storage`] each; all else about their recordings is the same
//! ([`TracepointTrace`](super::TracepointTrace)).

use super::threads::Threads;
use crate::base::cursor::ByteOrder;
use crate::base::mapped::Mapped;
use crate::base::notice::Notices;
use crate::input::format::InputFormat;
use crate::input::record::{ClassId, IntegerArray};
use crate::input::recorded_code::RecordedCode;
use std::fmt::Debug;

/// A record in the recording.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a> {
    pub class: ClassId,
    /// Its time on the recorder's clock, in ns.
    pub clock: u64,
    /// The bytes that hold the fields of its class.
    pub body: &'a [u8],
    /// perf: the whole sample. ftrace: what follows in the packet.
    pub around: &'a [u8],
    /// perf: the call chain in the sample, addresses of 8 bytes.
    pub chain: &'a [u8],
}

/// The result of one step through a packet.
#[derive(Clone, Copy, Debug)]
pub enum WalkStep<'a> {
    Record(Raw<'a>),
    /// The end of the packet.
    End,
    /// The data contradict the format: the rest of the packet is not read.
    Damage(&'static str),
}

/// The two parts of a call stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackSide {
    Kernel,
    /// In user space.
    User,
}

/// A position in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkPosition {
    /// The number of bytes, or of records, before it.
    pub at: u64,
    /// The recorder's clock there.
    pub clock: u64,
}

/// The place of a packet in the files of a recording.
#[derive(Clone, Copy, Debug)]
pub struct PacketPlace<'a> {
    /// The file's name.
    pub file: &'a str,
    /// Bytes before the packet.
    pub at: u64,
}

/// Steps from record to record through one packet.
pub trait Walk<'a>: Debug {
    /// The next record.
    fn next(&mut self) -> WalkStep<'a>;
    /// The position before the next record.
    fn position(&self) -> WalkPosition;
    /// The next record's bytes from the [place](Storage::place) of the packet.
    fn offset(&self) -> u64 {
        self.position().at
    }
    /// Go to a position that [`Walk::position`] returned.
    fn go(&mut self, position: WalkPosition);
    /// The thread that ran: its id in the initial namespace, where the record has it.
    fn thread(&self, raw: &Raw<'a>) -> Option<i32>;
    /// Its process, where the record has it.
    fn process(&self, raw: &Raw<'a>) -> Option<i32>;
    /// Addresses of the call stack on one side, innermost first.
    fn stack(&self, raw: &Raw<'a>, side: StackSide) -> Option<IntegerArray<'a>>;
}

/// The records of a recording.
pub trait Storage: Debug + Send + Sync {
    /// The walk through its packets.
    type Walk<'a>: Walk<'a>
    where
        Self: 'a;
    /// A walk from the beginning of a packet.
    fn walk(&self, stream: usize, packet: usize) -> Option<Self::Walk<'_>>;
    /// A walk through a packet has come to its end, or to damage.
    fn walked(&self, _stream: usize, _packet: usize, _walk: &Self::Walk<'_>) {}
    /// Names and processes of threads.
    fn threads(&self) -> &Threads;
    /// The place of a packet.
    fn place(&self, stream: usize, packet: usize) -> PacketPlace<'_>;
    /// Irregularities found since it was opened: truncated files, stacks that could not be unwound.
    fn notices(&self) -> Notices;
    /// The order of the bytes of numbers.
    fn byte_order(&self) -> ByteOrder;
    /// What the recording says of code.
    fn code(&self) -> RecordedCode<'_>;
    /// The files that hold the records.
    fn files(&self) -> Vec<&Mapped>;
    fn format(&self) -> &'static InputFormat;
    /// Bytes on the heap, where records are there.
    fn heap_bytes(&self) -> Option<usize> {
        None
    }
}
