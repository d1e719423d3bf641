//! The records of a perf.data: its files, and the runs of records of each packet.
//!
//! In: the files, opened and indexed (`open.rs`). Out: a walk through a packet, which is one run or several that
//! overlap in time, with the stacks that are not in its samples. The files stay mapped; runs are a few words each.

use super::chains::{Deferred, PacketKey, SampleStack, StackStore};
use super::format::FORMAT;
use super::index::Index;
use super::merged::records_in_order;
use super::parts;
use super::runs::{DataBytes, RecordFiles, RecordRun};
use super::sample::ThreadIds;
use super::streams::PacketRuns;
use super::unpack;
use super::walk::{PacketRecords, RunWalk};
use super::walk_rules::WalkRules;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::cursor::ByteOrder;
use crate::base::mapped::Mapped;
use crate::base::notice::{Notice, Notices};
use crate::input::format::InputFormat;
use crate::input::recorded_code::RecordedCode;
use crate::input::tracepoint;
use crate::input::tracepoint::threads::Threads;
use crate::input::tracepoint::{PacketPlace, Walk, WalkStep};
use foldhash::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

/// An opened perf.data.
pub type PerfTrace = tracepoint::TracepointTrace<PerfStorage>;

/// The records of the recording.
#[derive(Debug)]
pub struct PerfStorage {
    pub(super) files: Vec<DataFile>,
    pub(super) runs: Vec<PacketRuns>,
    pub(super) rules: WalkRules,
    pub(super) threads: Threads,
    pub(super) symbols: Option<Mapped>,
    /// Symbols of kernel code that was made while recording.
    pub(super) code: String,
    /// Build ids of files by their paths, where their records have none.
    pub(super) build_ids: HashMap<Vec<u8>, Vec<u8>>,
    /// Samples hold copies of the stack.
    pub(super) copied: bool,
    /// Stacks that were recorded after their samples.
    pub(super) deferred: StackStore,
    /// Stacks that were unwound from copies.
    pub(super) unwound: OnceLock<StackStore>,
}

/// A file of records.
#[derive(Debug)]
pub(super) struct DataFile {
    pub(super) mapped: Mapped,
    /// As messages name it.
    pub(super) name: String,
    /// The part of it that holds records.
    pub(super) data: Range<usize>,
    /// Its compressed records could not be unpacked.
    pub(super) is_packed: bool,
}

impl DataFile {
    pub(super) fn new(mapped: Mapped, name: String, data: Range<usize>) -> DataFile {
        DataFile { mapped, name, data, is_packed: false }
    }

    /// All of a file.
    pub(super) fn whole(mapped: Mapped, name: String) -> DataFile {
        let data = 0..mapped.bytes().len();
        DataFile::new(mapped, name, data)
    }

    /// Its compressed records as a file of their own; `None` where it has none.
    pub(super) fn unpacked(&mut self, byte_order: ByteOrder, notices: &mut Notices) -> Option<DataFile> {
        let name = &self.name;
        match unpack::unpack(byte_order, self.mapped.bytes(), self.data.clone()) {
            Ok(plain) => plain.map(|plain| DataFile::whole(plain, format!("{name} (unpacked)"))),
            Err(e) => {
                notices.add(Notice::DamagedStream, 1, || format!("{name}: compressed records: {e}"));
                self.is_packed = true;
                None
            }
        }
    }

    /// The bytes up to the end of its records.
    pub(super) fn records(&self) -> &[u8] {
        self.mapped.bytes().get(..self.data.end).unwrap_or(self.mapped.bytes())
    }

    /// The index of its records.
    pub(super) fn index(&self, rules: &WalkRules, number: usize, ctx: &Ctx) -> Result<Index, Cancelled> {
        let data = DataBytes { file: number as u32, bytes: self.records(), shown: &self.name };
        parts::index(rules, data, self.data.start, ctx)
    }
}

impl PerfStorage {
    /// The runs of a packet.
    pub(super) fn runs(&self, stream: usize, packet: usize) -> &[RecordRun] {
        self.runs.get(stream).map_or(&[], |runs| runs.of(packet))
    }
}

impl PerfTrace {
    /// True where samples hold copies of stacks; chains of others were followed by frame pointers.
    pub fn copies_stacks(&self) -> bool {
        self.storage().copied
    }
}

impl PerfStorage {
    /// The deferred stacks by their samples.
    pub(super) fn stacks_of(&self, deferred: &Deferred) -> StackStore {
        let mut chains = StackStore::default();
        let byte_order = self.rules.byte_order;
        for (stream, runs) in self.runs.iter().enumerate() {
            for packet in 0..runs.packets() {
                let Some(mut walk) = tracepoint::Storage::walk(self, stream, packet) else { continue };
                let mut stacks = Vec::new();
                while let WalkStep::Record(raw) = walk.next() {
                    let Some(layout) = self.rules.attrs.layouts.get(raw.class.index()) else { continue };
                    let (Some(parts), Some(ThreadIds { tid, .. })) =
                        (layout.variable(raw.around), layout.ids(raw.around))
                    else {
                        continue;
                    };
                    let found = deferred.of(tid, parts.chain, byte_order);
                    stacks.extend(found.map(|found| SampleStack { at: walk.begun(), addresses: found.clone() }));
                }
                chains.add(PacketKey { stream, packet }, stacks, byte_order);
            }
        }
        chains
    }
}

impl tracepoint::Storage for PerfStorage {
    type Walk<'a> = RunWalk<'a>;

    fn walk(&self, stream: usize, packet: usize) -> Option<RunWalk<'_>> {
        let runs = self.runs(stream, packet);
        let file = |number: u32| self.files.get(number as usize).map_or(&[][..], |file| file.mapped.bytes());
        let files = RecordFiles { rules: &self.rules, file: &file };
        let records = match runs {
            [run] => PacketRecords::Run(files.bytes(run)),
            _ => PacketRecords::Merged(records_in_order(files, runs)),
        };
        let key = PacketKey { stream, packet };
        let unwound = self.unwound.get().map_or_else(Default::default, |chains| chains.of(key));
        let chains = [self.deferred.of(key), unwound];
        Some(RunWalk::new(&self.rules, records, runs.first()?.begin, chains))
    }

    fn threads(&self) -> &Threads {
        &self.threads
    }

    fn place(&self, stream: usize, packet: usize) -> PacketPlace<'_> {
        let runs = self.runs(stream, packet);
        let file = runs.first().and_then(|run| self.files.get(run.file as usize)).map_or("", |file| &file.name);
        // Of several runs, records have their offset in the file.
        let at = if let [run] = runs { run.at as u64 } else { 0 };
        PacketPlace { file, at }
    }

    fn notices(&self) -> Notices {
        let mut notices = Notices::default();
        for file in self.files.iter().filter(|file| file.mapped.lost()) {
            notices.add(Notice::MappingLost, 1, || file.name.clone());
        }
        let cut_off = self.unwound.get().map_or(0, |chains| chains.cut_off);
        notices
            .add(Notice::StacksCutOff, cut_off, || "record with --call-graph dwarf,SIZE for longer copies".to_owned());
        notices
    }

    fn byte_order(&self) -> ByteOrder {
        self.rules.byte_order
    }

    fn code(&self) -> RecordedCode<'_> {
        RecordedCode {
            kernel_symbols: self.symbols.as_ref().map(Mapped::bytes),
            kernel_code: &self.code,
            // perf lists the files that samples hit.
            build_ids: Some(&self.build_ids).filter(|ids| !ids.is_empty()),
            ..RecordedCode::default()
        }
    }

    fn files(&self) -> Vec<&Mapped> {
        self.files.iter().map(|file| &file.mapped).collect()
    }

    fn format(&self) -> &'static InputFormat {
        &FORMAT
    }
}
