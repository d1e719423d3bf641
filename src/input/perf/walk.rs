//! Walks from record to record through a run of a perf.data.
//!
//! A packet is a run of records of one CPU's ring, or several that overlap in time (`merged.rs`). Samples have the
//! class of their attr; other records have classes of their own ([`SideClass`]) if they report threads or mappings,
//! and are skipped otherwise.

use super::chain_parts::part;
use super::chains::PacketStacks;
use super::header::{RecordHeader, bytes_after, record};
use super::merged::RecordInTime;
use super::record_types::{RecordOrigin, SAMPLE, SideClass, USER};
use super::sample::{ThreadIds, Variable};
use super::walk_rules::WalkRules;
use crate::base::cursor::{ByteOrder, bits};
use crate::input::record::{ClassId, IntegerArray};
use crate::input::tracepoint::{Raw, StackSide, Walk, WalkPosition, WalkStep};

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
            let Some(more) = bytes_after(kind, body, self.rules.byte_order) else {
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
