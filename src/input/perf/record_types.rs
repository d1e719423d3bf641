//! The types of records, and the classes of those that are no samples (`perf_event.h`, `enum perf_event_type`).
//!
//! In: the head of a record. Out: its class, if an analysis uses it, with the fields that all records of it have.

use crate::input::tracepoint::ClassSchema;
use crate::input::tracepoint::format::{Field, FieldType};

/// Record types of the kernel.
pub const MMAP: u32 = 1;
pub const LOST: u32 = 2;
pub const COMM: u32 = 3;
pub const EXIT: u32 = 4;
pub const FORK: u32 = 7;
pub const SAMPLE: u32 = 9;
pub const MMAP2: u32 = 10;
const SWITCH: u32 = 14;
const SWITCH_CPU_WIDE: u32 = 15;
/// From here on records are perf's own.
pub const USER: u32 = 64;

/// COMM by an exec.
pub const EXEC: u16 = 0x2000;
/// MMAP2 with a build id in place of the inode.
const BUILD_ID: u16 = 0x4000;
/// A switch away from the thread, not to it; and one that did not ask for it.
const OUT: u16 = 0x2000;
const PREEMPTED: u16 = 0x4000;

/// Classes of records that are no samples, after those of the attrs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideClass {
    /// A thread gets a name.
    Comm,
    /// A thread gets a name by an exec.
    CommExec,
    /// The name of a thread that existed before the recording: synthesised by perf.
    CommBefore,
    /// A thread is created.
    Fork,
    /// A thread that existed before the recording.
    ForkBefore,
    /// A thread ends.
    Exit,
    /// A file is mapped.
    Map,
    /// A file is mapped, with its inode.
    Map2,
    /// A file is mapped, with its build id.
    MapId,
    /// The ring was full.
    Lost,
    /// A thread leaves its CPU to wait (`--switch-events`); the record of the next thread repeats this.
    SwitchOut,
    /// A thread that could continue leaves its CPU.
    SwitchPreempted,
    /// A recorded thread leaves its CPU to wait (`--switch-events` without `-a`): the next thread is unknown.
    TaskOut,
    /// A recorded thread that could continue leaves its CPU (`--switch-events` without `-a`).
    TaskPreempted,
    /// A recorded thread has a CPU again (`--switch-events` without `-a`).
    TaskIn,
}

/// How a record came into the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordOrigin {
    /// The kernel recorded it.
    Recorded,
    /// perf synthesised it at the start, from the state of the machine.
    Synthesised,
}

impl RecordOrigin {
    /// The origin of a record with this time: synthesised records have time 0.
    pub fn at(time: Option<u64>) -> RecordOrigin {
        if time == Some(0) { RecordOrigin::Synthesised } else { RecordOrigin::Recorded }
    }
}

impl SideClass {
    /// All, in the order of their classes.
    pub const ALL: [SideClass; 15] = [
        SideClass::Comm,
        SideClass::CommExec,
        SideClass::CommBefore,
        SideClass::Fork,
        SideClass::ForkBefore,
        SideClass::Exit,
        SideClass::Map,
        SideClass::Map2,
        SideClass::MapId,
        SideClass::Lost,
        SideClass::SwitchOut,
        SideClass::SwitchPreempted,
        SideClass::TaskOut,
        SideClass::TaskPreempted,
        SideClass::TaskIn,
    ];

    /// True for records that consist of the identification of their thread alone, or end with it: it is among their
    /// fields.
    pub fn is_switch(self) -> bool {
        use SideClass::{SwitchOut, SwitchPreempted, TaskIn, TaskOut, TaskPreempted};
        matches!(self, SwitchOut | SwitchPreempted | TaskOut | TaskPreempted | TaskIn)
    }

    /// The class of a record type; `None` for types that no analysis uses.
    pub fn of(kind: u32, misc: u16, origin: RecordOrigin) -> Option<SideClass> {
        let before = origin == RecordOrigin::Synthesised;
        Some(match kind {
            COMM if before => SideClass::CommBefore,
            COMM if misc & EXEC != 0 => SideClass::CommExec,
            COMM => SideClass::Comm,
            FORK if before => SideClass::ForkBefore,
            FORK => SideClass::Fork,
            EXIT => SideClass::Exit,
            MMAP => SideClass::Map,
            MMAP2 if misc & BUILD_ID != 0 => SideClass::MapId,
            MMAP2 => SideClass::Map2,
            LOST => SideClass::Lost,
            SWITCH_CPU_WIDE if misc & OUT == 0 => return None,
            SWITCH_CPU_WIDE if misc & PREEMPTED != 0 => SideClass::SwitchPreempted,
            SWITCH_CPU_WIDE => SideClass::SwitchOut,
            SWITCH if misc & OUT == 0 => SideClass::TaskIn,
            SWITCH if misc & PREEMPTED != 0 => SideClass::TaskPreempted,
            SWITCH => SideClass::TaskOut,
            _ => return None,
        })
    }

    /// Its name and its fields.
    pub fn schema(self) -> ClassSchema {
        let signed = |name: &str, at: usize| Field::new(name, at, 4, FieldType::Number { signed: true });
        let word = |name: &str, at: usize, size: usize| Field::new(name, at, size, FieldType::Number { signed: false });
        let text = |name: &str, at: usize| Field::new(name, at, 0, FieldType::Rest { width: None });
        let bytes = |name: &str, at: usize, n: usize| Field::new(name, at, n, FieldType::Words { width: 1 });
        let range =
            || vec![signed("pid", 0), signed("tid", 4), word("addr", 8, 8), word("len", 16, 8), word("pgoff", 24, 8)];
        let tail = || [word("prot", 56, 4), word("flags", 60, 4), text("filename", 64)];
        // The thread that leaves is the first part at the end of the record. It waits (1), with no reason given, or
        // could continue (0).
        let switch = |state| {
            let state = Field::new("prev_state", 0, 0, FieldType::Given(state));
            vec![signed("prev_tid", 12), state, signed("next_tid", 4)]
        };
        let leaves = |state| {
            let state = Field::new("prev_state", 0, 0, FieldType::Given(state));
            vec![signed("pid", 0), signed("tid", 4), state]
        };
        let (name, fields) = match self {
            SideClass::Comm => ("perf:comm", vec![signed("pid", 0), signed("tid", 4), text("comm", 8)]),
            SideClass::CommExec => ("perf:comm_exec", vec![signed("pid", 0), signed("tid", 4), text("comm", 8)]),
            SideClass::CommBefore => ("perf:comm_before", vec![signed("pid", 0), signed("tid", 4), text("comm", 8)]),
            SideClass::Fork | SideClass::ForkBefore | SideClass::Exit => {
                let name = match self {
                    SideClass::Fork => "perf:fork",
                    SideClass::Exit => "perf:exit",
                    _ => "perf:fork_before",
                };
                (name, vec![signed("pid", 0), signed("ppid", 4), signed("tid", 8), signed("ptid", 12)])
            }
            SideClass::Map => ("perf:mmap", range().into_iter().chain([text("filename", 32)]).collect()),
            SideClass::Map2 => {
                let inode = [word("maj", 32, 4), word("min", 36, 4), word("ino", 40, 8), word("ino_generation", 48, 8)];
                ("perf:mmap2", range().into_iter().chain(inode).chain(tail()).collect())
            }
            SideClass::MapId => {
                let id = [word("build_id_size", 32, 1), bytes("build_id", 36, 20)];
                ("perf:mmap2_build_id", range().into_iter().chain(id).chain(tail()).collect())
            }
            SideClass::Lost => ("perf:lost", vec![word("id", 0, 8), word("lost", 8, 8)]),
            SideClass::SwitchOut => ("perf:switch_out", switch(1)),
            SideClass::SwitchPreempted => ("perf:switch_preempted", switch(0)),
            SideClass::TaskOut => ("perf:task_out", leaves(1)),
            SideClass::TaskPreempted => ("perf:task_preempted", leaves(0)),
            SideClass::TaskIn => ("perf:task_in", vec![signed("pid", 0), signed("tid", 4)]),
        };
        ClassSchema { name: name.to_owned(), fields, ..ClassSchema::default() }
    }
}
