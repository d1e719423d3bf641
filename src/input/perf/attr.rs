//! The events that perf recorded (`perf_event_attr`), and the attr of each record.
//!
//! `include/uapi/linux/perf_event.h`. The layout of samples is in `sample.rs`.

use crate::base::cursor::{ByteOrder, bits};

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

/// Kinds of general events, and the numbers of some.
const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const CPU_CLOCK: u64 = 0;
const TASK_CLOCK: u64 = 1;
const DUMMY: u64 = 9;
const BPF_OUTPUT: u64 = 10;
/// `enum perf_hw_id` and `enum perf_sw_ids`, with perf's names.
const HARDWARE_NAMES: [&str; 10] = [
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];
const SOFTWARE_NAMES: [&str; 12] = [
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
];

/// Flags by bit.
pub(super) const SAMPLE_ID_ALL: u32 = 18;
/// The period is a frequency.
const FREQUENCY: u32 = 10;
const USE_CLOCKID: u32 = 25;
/// Flag of attrs that begin with the command that perf runs; perf sets it without `-a`, `-p` and the like alone.
pub const ENABLE_ON_EXEC: u32 = 12;
/// FORK and EXIT are recorded.
pub const TASK: u32 = 13;
/// Flag of attrs with records of switches.
pub const CONTEXT_SWITCH: u32 = 26;
/// Flag of attrs with records of thread names.
pub const COMM: u32 = 9;
/// Flag of attrs whose ring is filled from its end.
pub const WRITE_BACKWARD: u32 = 27;
/// Flag of attrs whose records of thread names mark those that an exec set.
pub const COMM_EXEC: u32 = 24;
/// Flag of attrs whose call stacks in user space come in records of their own, after the samples.
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
    /// Events from one sample to the next, or samples in a second.
    period: u64,
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
    /// Parse an attr of this size; fields after its end are 0.
    pub fn parse(bytes: &[u8], byte_order: ByteOrder) -> Option<Attr> {
        let word = |at: u64, size: u32| bits(bytes, at * 8, size * 8, byte_order).unwrap_or(0);
        if bytes.len() < 64 {
            return None;
        }
        let mut attr = Attr {
            kind: word(0, 4) as u32,
            config: word(8, 8),
            period: word(16, 8),
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

    /// True for events whose samples show what threads do: all that are counted but for tracepoints, and for those that
    /// only carry records of other kinds (`dummy`, `bpf-output`).
    pub fn is_sampled(&self) -> bool {
        self.period > 0
            && !self.is_tracepoint()
            && !(self.kind == SOFTWARE && matches!(self.config, DUMMY | BPF_OUTPUT))
    }

    /// True where samples name their CPU.
    pub fn has_cpu(&self) -> bool {
        self.sample_type & CPU != 0
    }

    /// True for a tracepoint of which only some events were recorded: `-F` and `-c` hold for tracepoints, too.
    pub fn is_thinned_out(&self) -> bool {
        self.is_tracepoint() && (self.flag(FREQUENCY) || self.period > 1)
    }

    /// The number of events, or for clocks of nanoseconds, that a sample counts for, where samples do not say it: the
    /// fixed period; for a frequency the time between two samples of a clock, else unknown, and the sample itself is
    /// counted.
    pub fn usual_period(&self) -> u64 {
        let counts_ns = self.kind == SOFTWARE && matches!(self.config, CPU_CLOCK | TASK_CLOCK);
        match (self.flag(FREQUENCY), counts_ns) {
            (false, _) => self.period,
            (true, true) => 1_000_000_000 / self.period.max(1),
            (true, false) => 1,
        }
    }

    /// Its name: that by which perf knows it, else the kernel's name of a general event.
    pub fn shown_name(&self) -> String {
        let general: &[&str] = match self.kind {
            HARDWARE => &HARDWARE_NAMES,
            SOFTWARE => &SOFTWARE_NAMES,
            _ => &[],
        };
        // The upper half names one of several kinds of cores.
        let general = usize::try_from(self.config & u64::from(u32::MAX)).ok().and_then(|at| general.get(at));
        self.name
            .clone()
            .or_else(|| general.map(|name| (*name).to_owned()))
            .unwrap_or_else(|| format!("perf:type {} config {}", self.kind, self.config))
    }

    /// Samples hold the address at which they were taken.
    pub fn has_addresses(&self) -> bool {
        self.sample_type & IP != 0
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn attr(kind: u32, config: u64, period: u64, frequency: bool) -> Attr {
        let mut bytes = vec![0u8; 128];
        bytes[..4].copy_from_slice(&kind.to_le_bytes());
        bytes[8..16].copy_from_slice(&config.to_le_bytes());
        bytes[16..24].copy_from_slice(&period.to_le_bytes());
        bytes[40..48].copy_from_slice(&(u64::from(frequency) << FREQUENCY).to_le_bytes());
        Attr::parse(&bytes, ByteOrder::Little).unwrap()
    }

    #[test]
    fn usual_period_is_that_of_the_attr_or_of_its_frequency() {
        let period = |kind, config, period, frequency| attr(kind, config, period, frequency).usual_period();
        assert_eq!(period(SOFTWARE, CPU_CLOCK, 4000, true), 250_000);
        assert_eq!(period(SOFTWARE, CPU_CLOCK, 1_000_000, false), 1_000_000);
        assert_eq!(period(HARDWARE, 0, 4000, true), 1);
        assert_eq!(period(HARDWARE, 3, 10_000, false), 10_000);
    }

    #[test]
    fn is_sampled_leaves_out_tracepoints_and_events_without_samples() {
        let sampled = |kind, config, period| attr(kind, config, period, false).is_sampled();
        assert!(sampled(SOFTWARE, CPU_CLOCK, 1) && sampled(HARDWARE, 0, 1) && sampled(8, 5, 1) && sampled(4, 0x1c2, 1));
        assert!(!sampled(SOFTWARE, DUMMY, 1) && !sampled(SOFTWARE, BPF_OUTPUT, 1));
        assert!(
            !sampled(TRACEPOINT, 314, 1) && !sampled(HARDWARE, 0, 0),
            "a tracepoint, and a counter without samples"
        );
    }

    #[test]
    fn is_thinned_out_says_that_a_tracepoint_was_sampled() {
        let thinned = |kind, period, frequency| attr(kind, 314, period, frequency).is_thinned_out();
        assert!(thinned(TRACEPOINT, 1000, true) && thinned(TRACEPOINT, 2, false));
        assert!(!thinned(TRACEPOINT, 1, false) && !thinned(HARDWARE, 1000, true));
    }

    #[test]
    fn shown_name_is_perfs_or_the_kernels() {
        let name = |kind, config| attr(kind, config, 1, false).shown_name();
        assert_eq!(
            [name(HARDWARE, 3), name(HARDWARE, 5 << 32), name(SOFTWARE, 2)],
            ["cache-misses", "cycles", "page-faults"]
        );
        assert_eq!([name(HARDWARE, 77), name(8, 3)], ["perf:type 0 config 77", "perf:type 8 config 3"]);
        let named = Attr { name: Some("cpu_core/cycles/".to_owned()), ..attr(8, 0, 1, false) };
        assert_eq!(named.shown_name(), "cpu_core/cycles/");
    }
}
