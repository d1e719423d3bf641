//! The events that perf recorded (`perf_event_attr`), and the attr of each record.
//!
//! `include/uapi/linux/perf_event.h`. The layout of samples is in `sample.rs`.

use super::sample::SampleLayout;
use crate::base::cursor::{ByteOrder, bits};
use crate::input::tracepoint::format::{Field, FieldType};
use foldhash::HashMap;

/// Bits of `sample_type`.
pub(super) const IP: u64 = 1;
pub(super) const TID: u64 = 1 << 1;
pub(super) const TIME: u64 = 1 << 2;
pub(super) const ADDR: u64 = 1 << 3;
pub(super) const READ: u64 = 1 << 4;
pub(super) const CALLCHAIN: u64 = 1 << 5;
pub(super) const ID: u64 = 1 << 6;
pub(super) const CPU: u64 = 1 << 7;
pub(super) const PERIOD: u64 = 1 << 8;
const STREAM_ID: u64 = 1 << 9;
pub(super) const RAW: u64 = 1 << 10;
pub(super) const BRANCH_STACK: u64 = 1 << 11;
pub(super) const REGS_USER: u64 = 1 << 12;
pub(super) const STACK_USER: u64 = 1 << 13;
pub(super) const IDENTIFIER: u64 = 1 << 16;
/// The parts of 8 bytes that a sample begins with, in order.
pub(super) const FIXED: [u64; 9] = [IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD];
/// The parts that other records end with, in order.
pub(super) const TRAILER: [u64; 6] = [TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER];

/// `perf_event_attr.type` of a tracepoint.
pub const TRACEPOINT: u32 = 2;

/// `perf_event_attr.type` of the kernel's own counters: clocks, page faults.
const SOFTWARE: u32 = 1;
const NS_PER_SECOND: u64 = 1_000_000_000;

/// Flags by bit.
/// `sample_period` is a frequency.
const FREQ: u32 = 10;
pub(super) const SAMPLE_ID_ALL: u32 = 18;
const USE_CLOCKID: u32 = 25;
/// Flag of attrs that begin with the command that perf runs; perf sets it without `-a`, `-p` and the like alone.
pub const ENABLE_ON_EXEC: u32 = 12;
/// FORK and EXIT are recorded.
pub const TASK: u32 = 13;
/// Flag of attrs with records of thread names.
pub const COMM: u32 = 9;
/// Flag of attrs whose ring is filled from its end.
pub const WRITE_BACKWARD: u32 = 27;
/// Flag of attrs whose records of thread names mark those that an exec set.
pub const COMM_EXEC: u32 = 24;
/// Flag of attrs whose call stacks in user space come in records of their own, behind the samples.
pub const DEFER_CALLCHAIN: u32 = 38;

/// Bits of `branch_sample_type` that make its part longer: an index before the branches, a word of counters for each.
pub(super) const HW_INDEX: u32 = 17;
pub(super) const COUNTERS: u32 = 19;

/// One event that perf was asked to record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attr {
    /// 0 hardware, 1 software, 2 tracepoint ...
    pub kind: u32,
    /// The event of that kind; for tracepoints the number of their format.
    pub config: u64,
    /// Events between two samples, or samples in a second.
    period_or_frequency: u64,
    pub(super) sample_type: u64,
    pub(super) read_format: u64,
    flags: u64,
    pub(super) branch_type: u64,
    /// A bit for each user-space register that a sample holds.
    pub(super) registers: u64,
    pub(super) byte_order: ByteOrder,
    /// The requested clock.
    clockid: Option<i32>,
    /// The ids in its samples that identify the event.
    pub ids: Vec<u64>,
    /// The name that perf gives it.
    pub name: Option<String>,
}

impl Attr {
    /// Parse an attr of this size; fields behind its end are 0.
    pub fn parse(bytes: &[u8], byte_order: ByteOrder) -> Option<Attr> {
        let word = |at: u64, size: u32| bits(bytes, at * 8, size * 8, byte_order).unwrap_or(0);
        if bytes.len() < 64 {
            return None;
        }
        let mut attr = Attr {
            kind: word(0, 4) as u32,
            config: word(8, 8),
            period_or_frequency: word(16, 8),
            sample_type: word(24, 8),
            read_format: word(32, 8),
            flags: word(40, 8),
            branch_type: word(72, 8),
            registers: word(80, 8),
            byte_order,
            ..Attr::default()
        };
        attr.clockid = attr.flag(USE_CLOCKID).then(|| word(92, 4) as u32 as i32);
        Some(attr)
    }

    /// A flag; on a big-endian machine bit fields begin with the highest bit.
    pub fn flag(&self, bit: u32) -> bool {
        self.flags >> (if self.byte_order == ByteOrder::Big { 63 - bit } else { bit }) & 1 == 1
    }

    /// The name of the clock; the scheduler's where none was requested.
    pub fn clock(&self) -> &'static str {
        match self.clockid {
            Some(0) => "realtime",
            Some(1) => "mono",
            Some(4) => "mono_raw",
            Some(7) => "boot",
            Some(11) => "tai",
            Some(_) => "unknown",
            None => "perf",
        }
    }

    /// True for events that interrupt the running thread at regular intervals of time or cycles, so that their samples
    /// show where threads spend their time.
    pub fn is_clock(&self) -> bool {
        // Hardware: cycles, ref-cycles, bus-cycles; software: cpu-clock, task-clock. Other kinds depend on the machine.
        match self.kind {
            0 => matches!(self.config & 0xffff_ffff, 0 | 6 | 9),
            1 => matches!(self.config, 0 | 1),
            _ => false,
        }
    }

    /// The field of a sample that says how much of the event it stands for: as recorded, else the period that was asked
    /// for, which of a clock follows from a frequency, too.
    pub fn period(&self) -> Field {
        if self.sample_type & PERIOD != 0 {
            let before = FIXED.iter().take_while(|part| **part != PERIOD).filter(|part| self.sample_type & **part != 0);
            return Field::new("period", before.count() * 8, 8, FieldType::Number { signed: false });
        }
        let period = match (self.flag(FREQ), self.is_clock()) {
            (false, _) => self.period_or_frequency.max(1),
            (true, true) if self.kind == SOFTWARE => NS_PER_SECOND / self.period_or_frequency.max(1),
            (true, _) => 1,
        };
        Field::new("period", 0, 0, FieldType::Given(period))
    }

    /// True for a tracepoint of the kernel.
    pub fn is_tracepoint(&self) -> bool {
        self.kind == TRACEPOINT && self.config != 0
    }

    /// Samples come with call chains.
    pub fn has_chains(&self) -> bool {
        self.sample_type & CALLCHAIN != 0
    }

    /// True where all its records end with the id of their thread.
    pub fn identifies_threads(&self) -> bool {
        self.flag(SAMPLE_ID_ALL) && self.sample_type & TID != 0
    }

    /// Samples come with copies of the stack in user space, and the registers to unwind them from.
    pub fn has_copies(&self) -> bool {
        self.sample_type & REGS_USER != 0 && self.sample_type & STACK_USER != 0
    }
}

/// Finds the attr of a record.
#[derive(Clone, Debug)]
pub struct Attrs {
    /// By attr.
    pub layouts: Vec<SampleLayout>,
    /// The places of the id, where records have one.
    id: Option<IdPlace>,
    by_id: HashMap<u64, u16>,
    pub(super) byte_order: ByteOrder,
}

/// The places of the id in records.
#[derive(Clone, Copy, Debug)]
struct IdPlace {
    /// Its offset in a sample.
    in_sample: usize,
    /// Its distance from the end of any other record.
    from_end: usize,
}

impl Attrs {
    /// A table of attrs, at most 65,536.
    pub fn new(attrs: &[Attr], byte_order: ByteOrder) -> Attrs {
        let all = |part: u64| attrs.iter().all(|a| a.sample_type & part != 0);
        let first = attrs.first().map_or(0, |a| a.sample_type);
        let id = if all(IDENTIFIER) {
            Some(IdPlace { in_sample: 0, from_end: 8 })
        } else if all(ID) {
            // The kernel requires that the parts before the id are the same in all attrs.
            let before = FIXED.iter().take_while(|p| **p != ID).filter(|p| first & **p != 0).count();
            let behind = TRAILER.iter().skip_while(|p| **p != ID).filter(|p| first & **p != 0).count();
            Some(IdPlace { in_sample: before * 8, from_end: behind * 8 })
        } else {
            None
        };
        let mut by_id = HashMap::default();
        for (i, attr) in attrs.iter().enumerate().take(1 << 16) {
            by_id.extend(attr.ids.iter().map(|id| (*id, i as u16)));
        }
        Attrs {
            layouts: attrs.iter().map(SampleLayout::of).collect(),
            id: id.filter(|_| attrs.len() > 1),
            by_id,
            byte_order,
        }
    }

    /// The attr of a sample.
    #[inline(always)]
    pub fn of_sample(&self, sample: &[u8]) -> Option<usize> {
        match self.id {
            None => (!self.layouts.is_empty()).then_some(0),
            Some(IdPlace { in_sample, .. }) => {
                let id = bits(sample, in_sample as u64 * 8, 64, self.byte_order)?;
                self.by_id.get(&id).map(|i| usize::from(*i))
            }
        }
    }

    /// The layout that describes the end of a record that is no sample.
    pub fn of_record(&self, body: &[u8]) -> Option<&SampleLayout> {
        let by_id = || {
            let at = body.len().checked_sub(self.id?.from_end)?;
            self.layouts.get(usize::from(*self.by_id.get(&bits(body, at as u64 * 8, 64, self.byte_order)?)?))
        };
        // Records that perf synthesised may have the id 0.
        by_id().or_else(|| self.layouts.first())
    }
}
