//! The messages of a Perfetto trace that are read, with the field numbers of its published schema
//! (`protos/perfetto/trace` of Perfetto's sources). Fields that are not listed are skipped. Text is bytes, because
//! names of threads need not be UTF-8.

use super::track_messages::{InternedDataMessage, PacketDefaultsMessage, TrackDescriptorMessage, TrackEventMessage};
use prost::Message;
use prost::bytes::Buf;
use prost::encoding::{DecodeContext, decode_key, skip_field};

/// `TracePacket`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TracePacket {
    #[prost(message, optional, tag = "1")]
    pub ftrace_events: Option<FtraceEventBundleMessage>,
    #[prost(message, optional, tag = "2")]
    pub process_tree: Option<ProcessTreeMessage>,
    #[prost(message, optional, tag = "6")]
    pub clock_snapshot: Option<ClockSnapshotMessage>,
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// The writer.
    #[prost(uint32, optional, tag = "10")]
    pub sequence: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEventMessage>,
    #[prost(message, optional, tag = "12")]
    pub interned: Option<InternedDataMessage>,
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    /// What the sequence said before no longer holds; older than the flag for it.
    #[prost(bool, optional, tag = "41")]
    pub cleared: Option<bool>,
    #[prost(message, optional, tag = "45")]
    pub system_info: Option<SystemInfoMessage>,
    /// Packets compressed by zlib.
    #[prost(bytes = "vec", optional, tag = "50")]
    pub compressed_packets: Option<Vec<u8>>,
    /// Packets of the same sequence before this one were lost, or it is the first.
    #[prost(uint32, optional, tag = "42")]
    pub previous_dropped: Option<u32>,
    #[prost(uint32, optional, tag = "58")]
    pub timestamp_clock_id: Option<u32>,
    #[prost(message, optional, tag = "59")]
    pub defaults: Option<PacketDefaultsMessage>,
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptorMessage>,
    /// Packets compressed by zstd.
    #[prost(bytes = "vec", optional, tag = "133")]
    pub zstd_compressed_packets: Option<Vec<u8>>,
}

/// Fields of a `TracePacket` that describe the trace, a writer or the machine, or frame other packets.
const DESCRIPTIONS: [u32; 33] = [
    2, 3, 6, 8, 10, 12, 13, 33, 34, 35, 36, 41, 42, 43, 44, 45, 46, 50, 58, 59, 60, 67, 69, 72, 78, 79, 87, 89, 90, 98,
    124, 126, 133,
];

/// The first field of a packet that is the data of a source which is not read.
pub(super) fn source(mut packet: &[u8]) -> Option<u32> {
    while packet.has_remaining() {
        let (field, kind) = decode_key(&mut packet).ok()?;
        if !DESCRIPTIONS.contains(&field) {
            return Some(field);
        }
        skip_field(kind, field, &mut packet, DecodeContext::default()).ok()?;
    }
    None
}

/// `ProcessTree`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ProcessTreeMessage {
    #[prost(message, repeated, tag = "1")]
    pub processes: Vec<ProcessMessage>,
    #[prost(message, repeated, tag = "2")]
    pub threads: Vec<ThreadMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ProcessMessage {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(bytes = "vec", repeated, tag = "3")]
    pub cmdline: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ThreadMessage {
    #[prost(int32, optional, tag = "1")]
    pub tid: Option<i32>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub name: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "3")]
    pub tgid: Option<i32>,
}

/// `ClockSnapshot`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ClockSnapshotMessage {
    #[prost(message, repeated, tag = "1")]
    pub clocks: Vec<ClockMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ClockMessage {
    #[prost(uint32, optional, tag = "1")]
    pub clock_id: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    pub timestamp: Option<u64>,
    #[prost(bool, optional, tag = "3")]
    pub is_incremental: Option<bool>,
    #[prost(uint64, optional, tag = "4")]
    pub unit_multiplier_ns: Option<u64>,
}

/// `SystemInfo`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SystemInfoMessage {
    #[prost(message, optional, tag = "1")]
    pub utsname: Option<UtsnameMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct UtsnameMessage {
    #[prost(string, optional, tag = "1")]
    pub sysname: Option<String>,
    #[prost(string, optional, tag = "3")]
    pub release: Option<String>,
    #[prost(string, optional, tag = "4")]
    pub machine: Option<String>,
}

/// `FtraceEventBundle`: events of one CPU.
#[derive(Clone, PartialEq, Message)]
pub(super) struct FtraceEventBundleMessage {
    #[prost(uint32, optional, tag = "1")]
    pub cpu: Option<u32>,
    /// Each an [`FtraceEventMessage`], decoded one at a time: that message is large, and its bytes may be few.
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub event: Vec<Vec<u8>>,
    #[prost(bool, optional, tag = "3")]
    pub lost_events: Option<bool>,
    #[prost(message, optional, tag = "4")]
    pub compact_sched: Option<CompactSchedMessage>,
    /// The clock of the events, if it is not `boot`.
    #[prost(int32, optional, tag = "5")]
    pub clock: Option<i32>,
}

/// Switches and wake-ups in columns; times are differences.
#[derive(Clone, PartialEq, Message)]
pub(super) struct CompactSchedMessage {
    #[prost(uint64, repeated, tag = "1")]
    pub switch_timestamp: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub switch_prev_state: Vec<i64>,
    #[prost(int32, repeated, tag = "3")]
    pub switch_next_pid: Vec<i32>,
    #[prost(bytes = "vec", repeated, tag = "5")]
    pub intern_table: Vec<Vec<u8>>,
    #[prost(uint32, repeated, tag = "6")]
    pub switch_next_comm_index: Vec<u32>,
    #[prost(uint64, repeated, tag = "7")]
    pub waking_timestamp: Vec<u64>,
    #[prost(int32, repeated, tag = "8")]
    pub waking_pid: Vec<i32>,
    #[prost(int32, repeated, tag = "9")]
    pub waking_target_cpu: Vec<i32>,
    #[prost(uint32, repeated, tag = "11")]
    pub waking_comm_index: Vec<u32>,
    #[prost(uint32, repeated, tag = "12")]
    pub waking_common_flags: Vec<u32>,
}

impl CompactSchedMessage {
    /// Rows of switches and of wake-ups, as far as any of their columns that are needed has them.
    pub fn rows(&self) -> usize {
        let switches = self.switch_timestamp.len().max(self.switch_next_pid.len());
        switches + self.waking_timestamp.len().max(self.waking_pid.len())
    }

    /// Rows of switches, and of wake-ups, that are in all of these columns.
    pub fn whole_rows(&self) -> [usize; 2] {
        let switches = self.switch_timestamp.len().min(self.switch_next_pid.len());
        [switches, self.waking_timestamp.len().min(self.waking_pid.len())]
    }
}

/// `FtraceEvent`; at most one of the messages is there.
#[derive(Clone, PartialEq, Message)]
pub(super) struct FtraceEventMessage {
    #[prost(uint64, optional, tag = "1")]
    pub timestamp: Option<u64>,
    /// Id of the thread that ran.
    #[prost(uint32, optional, tag = "2")]
    pub pid: Option<u32>,
    #[prost(message, optional, tag = "3")]
    pub print: Option<PrintMessage>,
    #[prost(message, optional, tag = "4")]
    pub sched_switch: Option<SchedSwitchMessage>,
    #[prost(uint32, optional, tag = "5")]
    pub common_flags: Option<u32>,
    #[prost(message, optional, tag = "17")]
    pub sched_wakeup: Option<WakeupMessage>,
    #[prost(message, optional, tag = "20")]
    pub sched_waking: Option<WakeupMessage>,
    #[prost(message, optional, tag = "24")]
    pub softirq_entry: Option<SoftirqMessage>,
    #[prost(message, optional, tag = "25")]
    pub softirq_exit: Option<SoftirqMessage>,
    #[prost(message, optional, tag = "26")]
    pub softirq_raise: Option<SoftirqMessage>,
    #[prost(message, optional, tag = "36")]
    pub irq_handler_entry: Option<IrqHandlerMessage>,
    #[prost(message, optional, tag = "37")]
    pub irq_handler_exit: Option<IrqHandlerExitMessage>,
    #[prost(message, optional, tag = "45")]
    pub block_rq_issue: Option<BlockRequestMessage>,
    #[prost(message, optional, tag = "114")]
    pub sched_wakeup_new: Option<WakeupMessage>,
    #[prost(message, optional, tag = "125")]
    pub block_rq_complete: Option<BlockCompletionMessage>,
    #[prost(message, optional, tag = "126")]
    pub block_rq_insert: Option<BlockRequestMessage>,
    #[prost(message, optional, tag = "235")]
    pub task_newtask: Option<NewTaskMessage>,
    #[prost(message, optional, tag = "236")]
    pub task_rename: Option<RenameMessage>,
    #[prost(message, optional, tag = "237")]
    pub sched_process_exec: Option<ExecMessage>,
    #[prost(message, optional, tag = "238")]
    pub sched_process_exit: Option<ExitMessage>,
    #[prost(message, optional, tag = "239")]
    pub sched_process_fork: Option<ForkMessage>,
    #[prost(message, optional, tag = "329")]
    pub sys_enter: Option<SysEnterMessage>,
    #[prost(message, optional, tag = "330")]
    pub sys_exit: Option<SysExitMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PrintMessage {
    #[prost(bytes = "vec", optional, tag = "2")]
    pub buf: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SchedSwitchMessage {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub prev_comm: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "2")]
    pub prev_pid: Option<i32>,
    #[prost(int64, optional, tag = "4")]
    pub prev_state: Option<i64>,
    #[prost(bytes = "vec", optional, tag = "5")]
    pub next_comm: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "6")]
    pub next_pid: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct WakeupMessage {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub comm: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "2")]
    pub pid: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub target_cpu: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SoftirqMessage {
    #[prost(uint32, optional, tag = "1")]
    pub vec: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct IrqHandlerMessage {
    #[prost(int32, optional, tag = "1")]
    pub irq: Option<i32>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub name: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct IrqHandlerExitMessage {
    #[prost(int32, optional, tag = "1")]
    pub irq: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct BlockRequestMessage {
    #[prost(uint64, optional, tag = "1")]
    pub dev: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub sector: Option<u64>,
    #[prost(uint32, optional, tag = "3")]
    pub nr_sector: Option<u32>,
    #[prost(uint32, optional, tag = "4")]
    pub bytes: Option<u32>,
    #[prost(bytes = "vec", optional, tag = "5")]
    pub rwbs: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct BlockCompletionMessage {
    #[prost(uint64, optional, tag = "1")]
    pub dev: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub sector: Option<u64>,
    #[prost(uint32, optional, tag = "3")]
    pub nr_sector: Option<u32>,
    #[prost(bytes = "vec", optional, tag = "5")]
    pub rwbs: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NewTaskMessage {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub comm: Option<Vec<u8>>,
    #[prost(uint64, optional, tag = "3")]
    pub clone_flags: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RenameMessage {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub newcomm: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ExecMessage {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub filename: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "2")]
    pub pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub old_pid: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ExitMessage {
    #[prost(int32, optional, tag = "2")]
    pub pid: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ForkMessage {
    #[prost(int32, optional, tag = "2")]
    pub parent_pid: Option<i32>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub child_comm: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "4")]
    pub child_pid: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SysEnterMessage {
    #[prost(int64, optional, tag = "1")]
    pub id: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SysExitMessage {
    #[prost(int64, optional, tag = "1")]
    pub id: Option<i64>,
    #[prost(int64, optional, tag = "2")]
    pub ret: Option<i64>,
}
