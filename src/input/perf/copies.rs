//! Copies of the stack in user space (`perf record --call-graph dwarf`), and the data that is needed to unwind them.
//!
//! Each sample holds registers and some KiB of the stack from its pointer on. Unwinding needs the unwind tables of the
//! files that were mapped at that time, which are not in the recording, so `symbols/unwind.rs` unwinds the
//! copies and passes the stacks to [`PerfTrace::unwound`]. Until then such samples have no stack of user space.

use super::chains::{PacketKey, StackStore};
use super::record_types::SideClass;
use super::sample::{Copied, ThreadIds};
use super::streams::PacketRuns;
use super::{PerfStorage, PerfTrace};
use crate::base::cursor::{ByteOrder, bits};
use crate::base::text::copied;
use crate::input::format_trace::FormatTrace;
use crate::input::tracepoint::{self, Raw, Walk as _, WalkStep};

/// A recorded change of the files that a process has mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapChange {
    /// A part of a file is mapped.
    Map {
        /// First address.
        base: u64,
        /// Bytes.
        size: u64,
        /// Its offset in the file.
        offset: u64,
        /// The file.
        path: String,
        /// Its build id, where the record has it.
        build_id: Option<Box<[u8]>>,
    },
    /// The process begins to run another program.
    Exec,
    /// The process was created.
    Fork {
        /// The process that created it.
        parent: i32,
    },
}

/// A change of mappings, with its time and process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapEvent {
    /// The recorder's clock.
    pub clock: u64,
    /// The process.
    pub pid: i32,
    pub change: MapChange,
}

/// The processor to which the registers belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// x86-64.
    X86,
    /// 64-bit ARM.
    Arm,
}

/// Registers that are needed to go from a function to its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    pub instruction: u64,
    /// The stack pointer.
    pub stack: u64,
    /// The frame pointer.
    pub frame: u64,
    /// The return address of a function that has called none; 0 on machines that have it on the stack.
    pub link: u64,
}

impl Registers {
    /// The registers of a copy; `None` where one of them was not recorded.
    fn of(copied: &Copied<'_>, numbers: &RegisterNumbers) -> Option<Registers> {
        Some(Registers {
            instruction: copied.register(numbers.instruction)?,
            stack: copied.register(numbers.stack)?,
            frame: copied.register(numbers.frame)?,
            link: numbers.link.and_then(|link| copied.register(link)).unwrap_or(0),
        })
    }
}

/// One copy of a stack.
#[derive(Clone, Copy, Debug)]
pub struct StackCopy<'a> {
    /// Offset of its record in the packet.
    pub at: usize,
    /// The recorder's clock.
    pub clock: u64,
    /// The process.
    pub pid: i32,
    pub registers: Registers,
    /// The bytes from the stack pointer on.
    pub stack: &'a [u8],
}

/// The numbers of a processor's registers.
struct RegisterNumbers {
    instruction: u32,
    stack: u32,
    frame: u32,
    link: Option<u32>,
}

impl Architecture {
    /// The architecture with this name from `uname -m`.
    fn named(name: &str) -> Option<Architecture> {
        match name {
            "x86_64" => Some(Architecture::X86),
            "aarch64" => Some(Architecture::Arm),
            _ => None,
        }
    }

    /// The numbers of the registers in `arch/*/include/uapi/asm/perf_regs.h`.
    fn numbers(self) -> RegisterNumbers {
        match self {
            Architecture::X86 => RegisterNumbers { instruction: 8, stack: 7, frame: 6, link: None },
            Architecture::Arm => RegisterNumbers { instruction: 32, stack: 31, frame: 29, link: Some(30) },
        }
    }
}

impl PerfTrace {
    /// The processor whose stacks were copied; `None` where none were, or where they cannot be unwound.
    pub fn copied_on(&self) -> Option<Architecture> {
        let architecture = self.environment("architecture").and_then(Architecture::named)?;
        self.storage().copied.then_some(architecture)
    }

    /// All changes of mappings, in order of time.
    pub fn mapped(&self) -> Vec<MapEvent> {
        let storage = self.storage();
        let mut changes: Vec<MapEvent> =
            storage.packets().filter_map(|at| storage.walk_of(at)).flat_map(changes).collect();
        for change in &mut changes {
            if let MapChange::Map { path, build_id: build_id @ None, .. } = &mut change.change {
                *build_id = self.storage().build_ids.get(path.as_bytes()).map(|id| id.as_slice().into());
            }
        }
        // A stable sort: changes of equal time stay in the order of the file.
        changes.sort_by_key(|change| change.clock);
        changes
    }

    /// The packets that may hold copies.
    pub fn packets_of_copies(&self) -> Vec<PacketKey> {
        self.storage().packets().collect()
    }

    /// The copies of a packet, in the order of its records.
    pub fn copies(&self, at: PacketKey, architecture: Architecture) -> Vec<StackCopy<'_>> {
        let storage = self.storage();
        let Some(mut walk) = storage.walk_of(at) else { return Vec::new() };
        let mut copies = Vec::new();
        while let WalkStep::Record(raw) = walk.next() {
            let Some(layout) = storage.rules.attrs.layouts.get(raw.class.index()) else { continue };
            let (Some(copied), Some(ThreadIds { pid, .. })) = (layout.copied(raw.around), layout.ids(raw.around))
            else {
                continue;
            };
            let Some(registers) = Registers::of(&copied, &architecture.numbers()) else { continue };
            copies.push(StackCopy { at: walk.begun(), clock: raw.clock, pid, registers, stack: copied.stack });
        }
        copies
    }

    /// Set the stacks that were unwound; the first call wins.
    pub fn unwound(&self, chains: StackStore) {
        // If another worker was first, its stacks are the same.
        drop(self.storage().unwound.set(chains));
    }

    /// True once the stacks were set.
    pub fn is_unwound(&self) -> bool {
        self.storage().unwound.get().is_some()
    }
}

fn changes(mut walk: super::walk::RunWalk<'_>) -> Vec<MapEvent> {
    let mut found = Vec::new();
    while let WalkStep::Record(raw) = walk.next() {
        let side = walk.side(raw.class);
        found.extend(side.and_then(|side| changed(side, &raw, walk.byte_order())));
    }
    found
}

fn changed(side: SideClass, raw: &Raw<'_>, byte_order: ByteOrder) -> Option<MapEvent> {
    let word = |at: u64, size: u32| bits(raw.body, at * 8, size * 8, byte_order);
    let id = |at: u64| word(at, 4).map(|id| id as u32 as i32);
    let pid = id(0)?;
    let path_at = match side {
        SideClass::Map => 32,
        SideClass::Map2 | SideClass::MapId => 64,
        SideClass::CommExec => return Some(MapEvent { clock: raw.clock, pid, change: MapChange::Exec }),
        SideClass::Fork if id(4)? != pid => {
            return Some(MapEvent { clock: raw.clock, pid, change: MapChange::Fork { parent: id(4)? } });
        }
        _ => return None,
    };
    let path = raw.body.get(path_at..)?;
    let path = path.get(..memchr::memchr(0, path).unwrap_or(path.len()))?;
    let build_id = || raw.body.get(36..56)?.get(..usize::from(*raw.body.get(32)?).min(20)).map(Into::into);
    let change = MapChange::Map {
        base: word(8, 8)?,
        size: word(16, 8)?,
        offset: word(24, 8)?,
        path: copied(path),
        build_id: if side == SideClass::MapId { build_id() } else { None },
    };
    (pid > 0).then_some(MapEvent { clock: raw.clock, pid, change })
}

impl PerfStorage {
    fn packets(&self) -> impl Iterator<Item = PacketKey> + '_ {
        let packets =
            |(stream, runs): (usize, &PacketRuns)| (0..runs.packets()).map(move |packet| PacketKey { stream, packet });
        self.runs.iter().enumerate().flat_map(packets)
    }

    fn walk_of(&self, PacketKey { stream, packet }: PacketKey) -> Option<super::walk::RunWalk<'_>> {
        tracepoint::Storage::walk(self, stream, packet)
    }
}
