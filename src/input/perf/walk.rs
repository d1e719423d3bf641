//! Walks from record to record through a run of a perf.data.
//!
//! A packet is a run of records of one CPU's ring, or several that overlap in time (`merged.rs`). Samples have the
//! class of their attr; other records have classes of their own ([`SideClass`]) if they report threads or mappings,
//! and are skipped otherwise.

use super::attr::Attrs;
use super::chains::PacketStacks;
use super::header::{RecordHeader, bytes_behind, record};
use super::merged::RecordInTime;
use super::sample::{ThreadIds, Variable};
use crate::base::cursor::{ByteOrder, bits};
use crate::input::record::{ClassId, IntegerArray};
use crate::input::tracepoint::format::{Field, FieldType};
use crate::input::tracepoint::{ClassSchema, Raw, StackSide, Walk, WalkPosition, WalkStep};

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

/// Classes of records that are no samples, behind those of the attrs.
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
    /// The same, with inode or build id.
    Map2,
    /// The same, with the build id of the file.
    MapId,
    /// The ring was full.
    Lost,
    /// A thread leaves its CPU to wait (`--switch-events`); the record of the next thread repeats this.
    SwitchOut,
    /// A thread that could continue leaves its CPU.
    SwitchPreempted,
    /// A recorded thread leaves its CPU to wait (`--switch-events` without `-a`): the next thread is unknown.
    TaskOut,
    /// The same of a thread that could continue.
    TaskPreempted,
    /// It has a CPU again.
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

/// The properties that all walks through a file share.
#[derive(Debug)]
pub struct WalkRules {
    /// Layouts of samples.
    pub attrs: Attrs,
    /// By attr: true for tracepoints.
    pub tracepoints: Vec<bool>,
    /// Nothing but the samples of each CPU says which thread runs there: one of no thread shows that its CPU was idle.
    pub shows_idle: bool,
    /// The order of the bytes of numbers.
    pub byte_order: ByteOrder,
}

impl WalkRules {
    /// The class of a record that is no sample.
    pub fn side(&self, side: SideClass) -> ClassId {
        ClassId::at(self.tracepoints.len() + side as usize)
    }
}

/// The records of a packet.
#[derive(Debug)]
pub enum PacketRecords<'a> {
    Run(&'a [u8]),
    /// Several runs, merged.
    Merged(Vec<RecordInTime<'a>>),
}

impl<'a> PacketRecords<'a> {
    /// The bytes from the record at a position on, with its time where that is known from the merge.
    #[inline(always)]
    fn rest(&self, at: usize) -> Option<(&'a [u8], Option<u64>)> {
        match self {
            PacketRecords::Run(run) => run.get(at..).filter(|rest| !rest.is_empty()).map(|rest| (rest, None)),
            PacketRecords::Merged(records) => records.get(at).map(|timed| (timed.record, Some(timed.key.time))),
        }
    }
}

/// See the module.
#[derive(Debug)]
pub struct RunWalk<'a> {
    rules: &'a WalkRules,
    records: PacketRecords<'a>,
    /// Position of the next record: its offset in a run, its number among merged records.
    at: usize,
    clock: u64,
    /// The time of synthesised records.
    begin: u64,
    /// Position of the last record.
    begun: usize,
    /// Stacks of user space that are not part of their samples.
    chains: [PacketStacks<'a>; 2],
}

impl<'a> RunWalk<'a> {
    /// Through the records of a packet whose first time is `begin`.
    pub fn new(
        rules: &'a WalkRules,
        records: PacketRecords<'a>,
        begin: u64,
        chains: [PacketStacks<'a>; 2],
    ) -> RunWalk<'a> {
        RunWalk { rules, records, at: 0, clock: begin, begin, begun: 0, chains }
    }

    /// Position of the last record: no other record of the packet has it, and later ones have greater ones.
    pub fn begun(&self) -> usize {
        self.begun
    }

    /// The kind of a class whose records are no samples.
    pub fn side(&self, class: ClassId) -> Option<SideClass> {
        SideClass::ALL.get(class.index().checked_sub(self.rules.tracepoints.len())?).copied()
    }

    /// The order of the bytes of numbers.
    pub fn byte_order(&self) -> ByteOrder {
        self.rules.byte_order
    }

    /// A sample or another record of a class; `None`: not of interest.
    #[inline(always)]
    fn record(&mut self, kind: u32, misc: u16, body: &'a [u8]) -> Result<Option<Raw<'a>>, &'static str> {
        let rules = self.rules;
        if kind == SAMPLE {
            let Some(attr) = rules.attrs.of_sample(body) else { return Ok(None) };
            let layout = rules.attrs.layouts.get(attr).ok_or("a sample whose id belongs to no event")?;
            self.clock = layout.time(body).unwrap_or(self.clock);
            let parts = layout.variable(body);
            let Variable { chain, raw } = if rules.tracepoints.get(attr) == Some(&true) {
                parts.ok_or("a length in a sample passes its end")?
            } else {
                Variable { raw: body, ..parts.unwrap_or_default() }
            };
            return Ok(Some(Raw { class: ClassId::at(attr), clock: self.clock, body: raw, around: body, chain }));
        }
        if kind >= USER {
            return Ok(None);
        }
        let layout = rules.attrs.of_record(body);
        let time = layout.and_then(|l| l.time_and_cpu(body).time);
        let origin = RecordOrigin::at(time);
        let Some(side) = SideClass::of(kind, misc, origin) else { return Ok(None) };
        let without_time = if origin == RecordOrigin::Synthesised { self.begin } else { self.clock };
        self.clock = time.filter(|t| *t > 0).unwrap_or(without_time);
        let trailer = layout.filter(|_| !side.is_switch());
        let own = body.len().saturating_sub(trailer.map_or(0, |l| l.trailer_bytes()));
        let body = body.get(..own).unwrap_or(body);
        Ok(Some(Raw { class: rules.side(side), clock: self.clock, body, around: &[], chain: &[] }))
    }
}

impl<'a> Walk<'a> for RunWalk<'a> {
    #[inline(always)]
    fn next(&mut self) -> WalkStep<'a> {
        while let Some((rest, time)) = self.records.rest(self.at) {
            self.clock = time.unwrap_or(self.clock);
            let Some(RecordHeader { kind, misc, size }) = record(rest, self.rules.byte_order) else {
                return WalkStep::Damage("a record is cut off");
            };
            let Some(body) = rest.get(8..size) else {
                return WalkStep::Damage("a record's size passes the end of the data");
            };
            let Some(more) = bytes_behind(kind, body, self.rules.byte_order) else {
                return WalkStep::Damage("a record is too short");
            };
            match self.record(kind, misc, body) {
                Err(what) => return WalkStep::Damage(what),
                Ok(found) => {
                    self.begun = self.at;
                    let step = if time.is_some() { 1 } else { size.saturating_add(more) };
                    self.at = self.at.saturating_add(step);
                    if let Some(raw) = found {
                        return WalkStep::Record(raw);
                    }
                }
            }
        }
        WalkStep::End
    }

    fn position(&self) -> WalkPosition {
        WalkPosition { at: self.at as u64, clock: self.clock }
    }

    fn offset(&self) -> u64 {
        match &self.records {
            PacketRecords::Run(_) => self.at as u64,
            PacketRecords::Merged(records) => records.get(self.at).map_or(0, |timed| timed.key.at as u64),
        }
    }

    fn go(&mut self, WalkPosition { at, clock }: WalkPosition) {
        (self.at, self.clock) = (at as usize, clock);
    }

    fn thread(&self, raw: &Raw<'a>) -> Option<i32> {
        let attr = raw.class.index();
        if self.rules.tracepoints.get(attr)? == &true {
            // `common_pid`: an id of the initial namespace, valid for threads that have exited too.
            return bits(raw.body, 32, 32, self.rules.byte_order).map(|tid| tid as u32 as i32);
        }
        let ThreadIds { pid, tid } = self.rules.attrs.layouts.get(attr)?.ids(raw.around)?;
        // 0 is the idle task, or any thread of another namespace: where switches are recorded, they know which. A
        // negative id is that of a thread that has exited.
        let is_nobody = self.rules.shows_idle && (pid, tid) == (0, 0);
        (is_nobody || tid > 0 && pid > 0).then_some(tid)
    }

    fn process(&self, raw: &Raw<'a>) -> Option<i32> {
        let ThreadIds { pid, tid } = self.rules.attrs.layouts.get(raw.class.index())?.ids(raw.around)?;
        (pid > 0 && self.thread(raw) == Some(tid)).then_some(pid)
    }

    fn stack(&self, raw: &Raw<'a>, side: StackSide) -> Option<IntegerArray<'a>> {
        let byte_order = self.rules.byte_order;
        let own = part(raw.chain, side, byte_order);
        let found = match side {
            StackSide::Kernel => own,
            StackSide::User => own.or_else(|| self.chains.iter().find_map(|chains| chains.get(self.begun, byte_order))),
        };
        found.or_else(|| self.sampled_address(raw, side))
    }
}

impl<'a> RunWalk<'a> {
    /// The address at which a sample was taken, if it was on this side: without a call chain it is all that is known of
    /// the stack. Addresses in a hypervisor or a guest are none of this system. The address of a tracepoint says
    /// nothing but which tracepoint it is.
    fn sampled_address(&self, raw: &Raw<'a>, side: StackSide) -> Option<IntegerArray<'a>> {
        let (attr, byte_order) = (raw.class.index(), self.rules.byte_order);
        if self.rules.tracepoints.get(attr) != Some(&false) {
            return None;
        }
        let (bytes, _) = self.records.rest(self.begun)?;
        let RecordHeader { misc, .. } = record(bytes, byte_order)?;
        let taken_in = match misc & MODE {
            IN_KERNEL => StackSide::Kernel,
            IN_USER_SPACE => StackSide::User,
            _ => return None,
        };
        let bytes = self.rules.attrs.layouts.get(attr)?.address(raw.around).filter(|_| taken_in == side)?;
        Some(IntegerArray { bytes, width: 8, byte_order })
    }
}

/// The bits of a sample's `misc` that say where it was taken; 3: in a hypervisor, 4 and 5: in a guest.
const MODE: u16 = 7;
const IN_KERNEL: u16 = 1;
const IN_USER_SPACE: u16 = 2;

/// Markers among the addresses of a call chain: those behind it are the kernel's, or user space's.
const KERNEL: u64 = -128i64 as u64;
/// See [`KERNEL`].
pub const USER_SPACE: u64 = -512i64 as u64;
const FIRST_MARKER: u64 = -4095i64 as u64;

/// The addresses behind the marker of the kernel, or of user space, up to the next marker.
fn part(chain: &[u8], side: StackSide, byte_order: ByteOrder) -> Option<IntegerArray<'_>> {
    let marker = match side {
        StackSide::Kernel => KERNEL,
        StackSide::User => USER_SPACE,
    };
    behind(chain, marker, byte_order)
}

fn is_marker(address: u64) -> bool {
    address >= FIRST_MARKER
}

/// The words behind a marker up to the next one.
pub fn behind(chain: &[u8], marker: u64, byte_order: ByteOrder) -> Option<IntegerArray<'_>> {
    let (words, _) = chain.as_chunks::<8>();
    let address = |word: &[u8; 8]| match byte_order {
        ByteOrder::Little => u64::from_le_bytes(*word),
        ByteOrder::Big => u64::from_be_bytes(*word),
    };
    let from = words.iter().position(|word| address(word) == marker)? + 1;
    let length = words.get(from..)?.iter().position(|word| is_marker(address(word)));
    let bytes = chain.get(from * 8..)?;
    let bytes = bytes.get(..length.map_or(bytes.len() / 8 * 8, |n| n * 8))?;
    (!bytes.is_empty()).then_some(IntegerArray { bytes, width: 8, byte_order })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_divides_a_chain_at_its_markers() {
        let chain: Vec<u8> =
            [KERNEL, 1, 2, USER_SPACE, 3, 4, -640i64 as u64, 99].iter().flat_map(|w| w.to_le_bytes()).collect();
        let addresses = |side| part(&chain, side, ByteOrder::Little).map(|w| w.iter().collect::<Vec<_>>());
        assert_eq!((addresses(StackSide::Kernel), addresses(StackSide::User)), (Some(vec![1, 2]), Some(vec![3, 4])));
        assert!(part(&chain[..8], StackSide::Kernel, ByteOrder::Little).is_none());
        assert!(part(&[], StackSide::User, ByteOrder::Little).is_none());
    }
}
