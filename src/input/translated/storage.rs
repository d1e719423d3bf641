//! The records of a translation: in memory, by CPU, in packets.
//!
//! ```text
//! record = size class time thread process kernel-frames user-frames FIELDS TEXTS *( word of a kernel frame )
//!          *( word of a user frame )
//! ```
//! In: the blocks that `sealed.rs` has cut into packets. Out: a walk from record to record of a packet. Numbers are
//! little-endian; blocks hold whole records, and packets do not pass their ends.

use crate::base::cursor::{ByteOrder, Bytes};
use crate::base::mapped::Mapped;
use crate::base::notice::Notices;
use crate::input::account::Account;
use crate::input::format::InputFormat;
use crate::input::record::{ClassId, IntegerArray};
use crate::input::recorded_code::RecordedCode;
use crate::input::tracepoint::threads::Threads;
use crate::input::tracepoint::{PacketPlace, Raw, StackSide, Storage, Walk, WalkPosition, WalkStep};
use std::ops::Range;
use std::sync::Arc;

/// The records of one CPU.
#[derive(Debug, Default)]
pub(super) struct CpuRecords {
    /// Each holds whole packets.
    pub blocks: Vec<Vec<u8>>,
    /// Where packets begin: the block, and the place in it.
    pub packets: Vec<(usize, usize)>,
}

impl CpuRecords {
    /// The records of a packet.
    fn packet(&self, packet: usize) -> Option<&[u8]> {
        let (block, begin) = *self.packets.get(packet)?;
        let bytes = self.blocks.get(block)?;
        let next = self.packets.get(packet + 1).filter(|next| next.0 == block);
        bytes.get(begin..next.map_or(bytes.len(), |next| next.1))
    }

    fn bytes(&self) -> usize {
        self.blocks.iter().map(Vec::len).sum()
    }
}

/// The records of a recording.
#[derive(Debug)]
pub struct TranslatedStorage {
    pub(super) format: &'static InputFormat,
    pub(super) name: String,
    pub(super) cpus: Vec<CpuRecords>,
    pub(super) threads: Threads,
    /// Functions of programs on call stacks, by the numbers that records have of them.
    pub(super) frames: Arc<[Box<str>]>,
    /// Functions of the kernel on call stacks, as in `/proc/kallsyms`, at the addresses that records have of them.
    pub(super) kernel_symbols: Vec<u8>,
    /// What became of the records of the file.
    pub account: Account,
}

impl Storage for TranslatedStorage {
    type Walk<'a> = RecordWalk<'a>;

    fn walk(&self, stream: usize, packet: usize) -> Option<RecordWalk<'_>> {
        Some(RecordWalk { packet: self.cpus.get(stream)?.packet(packet)?, at: 0, clock: 0 })
    }

    fn threads(&self) -> &Threads {
        &self.threads
    }

    fn place(&self, stream: usize, packet: usize) -> PacketPlace<'_> {
        let before = |cpu: &CpuRecords| {
            let (block, at) = *cpu.packets.get(packet)?;
            Some(cpu.blocks.iter().take(block).map(Vec::len).sum::<usize>() + at)
        };
        PacketPlace { file: &self.name, at: self.cpus.get(stream).and_then(before).unwrap_or(0) as u64 }
    }

    fn notices(&self) -> Notices {
        Notices::default()
    }

    fn byte_order(&self) -> ByteOrder {
        ByteOrder::Little
    }

    fn code(&self) -> RecordedCode<'_> {
        let kernel_symbols = Some(&*self.kernel_symbols).filter(|symbols| !symbols.is_empty());
        RecordedCode { kernel_symbols, frames: Some(&self.frames), ..RecordedCode::default() }
    }

    fn files(&self) -> Vec<&Mapped> {
        Vec::new()
    }

    fn format(&self) -> &'static InputFormat {
        self.format
    }

    fn heap_bytes(&self) -> Option<usize> {
        let frames: usize = self.frames.iter().map(|frame| frame.len()).sum();
        Some(self.cpus.iter().map(CpuRecords::bytes).sum::<usize>() + frames + self.kernel_symbols.len())
    }
}

/// Bytes before the fields of a record: size, class, time, thread, process, frames of its stack in the kernel and in
/// user space, whose words are at its end.
pub(super) const HEAD: usize = 28;
/// Bytes of the word of a frame.
pub(super) const WORD: usize = 8;

/// The head of a record.
pub(super) struct RecordHead {
    pub size: usize,
    pub class: ClassId,
    pub time: u64,
}

impl RecordHead {
    pub fn read(record: &[u8]) -> Option<RecordHead> {
        let mut bytes = Bytes::new(record);
        let size = bytes.u32(ByteOrder::Little)? as usize;
        let class = ClassId::at(bytes.u32(ByteOrder::Little)? as usize);
        Some(RecordHead { size, class, time: bytes.u64(ByteOrder::Little)? })
    }
}

/// The places in a record of the words of its stacks.
pub(super) struct StackPlaces {
    pub kernel: Range<usize>,
    pub user: Range<usize>,
}

impl StackPlaces {
    pub fn of(record: &[u8]) -> Option<StackPlaces> {
        let count = |at: usize| Some(usize::from(u16::from_le_bytes(record.get(at..)?.get(..2)?.try_into().ok()?)));
        let user = record.len().checked_sub(count(26)? * WORD)?;
        let kernel = user.checked_sub(count(24)? * WORD)?;
        Some(StackPlaces { kernel: kernel..user, user: user..record.len() })
    }
}

/// Walks from record to record.
#[derive(Debug)]
pub struct RecordWalk<'a> {
    packet: &'a [u8],
    at: usize,
    clock: u64,
}

/// An id in the head of a record; none where it is below 0.
fn id(raw: &Raw<'_>, at: usize) -> Option<i32> {
    let bytes: [u8; 4] = raw.around.get(at..)?.get(..4)?.try_into().ok()?;
    Some(i32::from_le_bytes(bytes)).filter(|id| *id >= 0)
}

impl<'a> Walk<'a> for RecordWalk<'a> {
    fn next(&mut self) -> WalkStep<'a> {
        let rest = self.packet.get(self.at..).unwrap_or(&[]);
        if rest.is_empty() {
            return WalkStep::End;
        }
        let found = RecordHead::read(rest).and_then(|head| Some((rest.get(..head.size)?, head)));
        // Impossible: `Translation` wrote them.
        let Some((around, RecordHead { size, class, time })) = found else {
            return WalkStep::Damage("a record passes the end");
        };
        let Some(body) = around.get(HEAD..) else { return WalkStep::Damage("a record is too short") };
        self.at += size;
        self.clock = time;
        WalkStep::Record(Raw { class, clock: time, body, around, chain: &[] })
    }

    fn position(&self) -> WalkPosition {
        WalkPosition { at: self.at as u64, clock: self.clock }
    }

    fn go(&mut self, position: WalkPosition) {
        self.at = position.at as usize;
        self.clock = position.clock;
    }

    fn thread(&self, raw: &Raw<'a>) -> Option<i32> {
        id(raw, 16)
    }

    fn process(&self, raw: &Raw<'a>) -> Option<i32> {
        id(raw, 20)
    }

    fn stack(&self, raw: &Raw<'a>, side: StackSide) -> Option<IntegerArray<'a>> {
        let StackPlaces { kernel, user } = StackPlaces::of(raw.around)?;
        let bytes = raw.around.get(if side == StackSide::Kernel { kernel } else { user })?;
        Some(IntegerArray { bytes, width: WORD as u8, byte_order: ByteOrder::Little })
    }
}
