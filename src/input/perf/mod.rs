//! perf.data: what `perf record` writes.
//!
//! ```text
//! header (attrs, features, formats) -> classes
//! records -> index: runs -> streams: one per CPU, runs as packets -> walk -> records of tracepoint::TracepointReader
//! ```
//! A file, the output of a pipe, or a directory with one data file per thread of perf; compressed records are unpacked
//! before all else (`unpack.rs`). Samples of tracepoints have the fields of the kernel's format; samples of clocks and
//! counters have their call chain. perf's `tools/perf/Documentation/perf.data-file-format.txt` and
//! `include/uapi/linux/perf_event.h`.

mod account;
pub mod attr;
mod backward;
pub mod chains;
pub mod copies;
pub mod header;
mod index;
mod merged;
mod parts;
mod sample;
mod schemas;
pub mod side;
mod streams;
mod unpack;
mod walk;

use super::account::Account;
use super::formats::{InputFormat, Listed, OpenedBy, OpenedFile, PLAIN};
use super::trace::{Reader, RecordedCode, Trace};
use super::tracepoint::reader::TracepointReader;
use super::tracepoint::threads::Threads;
use super::tracepoint::{self, PacketPlace, RecorderClock, TraceParts, Walk, WalkStep};
use super::{OpenError, Unreadable};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::cursor::ByteOrder;
use crate::base::mapped::{Mapped, open_regular};
use crate::base::notice::{Notice, Notices};
use crate::model::recorder::TraceRecorder;
use attr::{Attr, Attrs, DEFER_CALLCHAIN, ENABLE_ON_EXEC, WRITE_BACKWARD};
use chains::{Deferred, PacketKey, SampleStack, StackStore};
use foldhash::HashMap;
use header::Header;
use index::{Index, RecordRun};
use merged::records_in_order;
use parts::DataBytes;
use sample::ThreadIds;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use streams::{PacketRuns, RecordFiles};
use walk::{PacketRecords, RunWalk, WalkRules};

/// An opened perf.data.
pub type PerfTrace = tracepoint::TracepointTrace<PerfStorage>;

/// The records of the recording.
#[derive(Debug)]
pub struct PerfStorage {
    files: Vec<DataFile>,
    runs: Vec<PacketRuns>,
    rules: WalkRules,
    threads: Threads,
    symbols: Option<Mapped>,
    /// Symbols of kernel code that was made while recording.
    code: String,
    /// Build ids of files by their paths, where their records have none.
    build_ids: HashMap<Vec<u8>, Vec<u8>>,
    /// Samples hold copies of the stack.
    copied: bool,
    /// Stacks that were recorded after their samples.
    deferred: StackStore,
    /// Stacks that were unwound from copies.
    unwound: OnceLock<StackStore>,
}

/// A file of records.
#[derive(Debug)]
struct DataFile {
    mapped: Mapped,
    /// As messages name it.
    name: String,
    /// The part of it that holds records.
    data: Range<usize>,
    /// Its compressed records could not be unpacked.
    is_packed: bool,
}

impl DataFile {
    fn new(mapped: Mapped, name: String, data: Range<usize>) -> DataFile {
        DataFile { mapped, name, data, is_packed: false }
    }

    /// All of a file.
    fn whole(mapped: Mapped, name: String) -> DataFile {
        let data = 0..mapped.bytes().len();
        DataFile::new(mapped, name, data)
    }

    /// Its compressed records as a file of their own; `None` where it has none.
    fn unpacked(&mut self, byte_order: ByteOrder, notices: &mut Notices) -> Option<DataFile> {
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
    fn records(&self) -> &[u8] {
        self.mapped.bytes().get(..self.data.end).unwrap_or(self.mapped.bytes())
    }

    /// The index of its records.
    fn index(&self, rules: &WalkRules, number: usize, ctx: &Ctx) -> Result<Index, Cancelled> {
        let data = DataBytes { file: number as u32, bytes: self.records(), shown: &self.name };
        parts::index(rules, data, self.data.start, ctx)
    }
}

impl PerfStorage {
    /// The runs of a packet.
    fn runs(&self, stream: usize, packet: usize) -> &[RecordRun] {
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
    fn stacks_of(&self, deferred: &Deferred) -> StackStore {
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

    fn any_reader(reader: TracepointReader<'_, PerfStorage>) -> Reader<'_> {
        Reader::Perf(reader)
    }

    fn account(trace: &PerfTrace, ctx: &Ctx) -> Result<Account, Cancelled> {
        trace.counted(ctx)
    }

    fn as_perf(trace: &PerfTrace) -> Option<&PerfTrace> {
        Some(trace)
    }
}

/// A perf.data, or a directory of perf.
pub static FORMAT: InputFormat = InputFormat {
    name: "perf.data",
    listed: Listed::As("a perf.data"),
    is_one: |named| header_file(named.path).is_some(),
    opened_by: OpenedBy::File(|file| Ok(OpenedFile::Trace(Trace::new(open(file.path, file.ctx)?)))),
    temporary_files: 1,
    recorder: TraceRecorder::Perf,
    // Its own records have no declarations.
    declares_unrecorded: |class, _| class.name.starts_with("perf:"),
    has_kernel_clocks: true,
    ..PLAIN
};

/// The file with the header of a recording: the path itself, or `data` in a directory of perf.
pub fn header_file(path: &Path) -> Option<PathBuf> {
    let file = if path.is_dir() { path.join("data") } else { path.to_owned() };
    let begin = open_regular(&file).ok();
    let mut magic = [0u8; 8];
    std::io::Read::read_exact(&mut begin?, &mut magic).ok()?;
    matches!(&magic, b"PERFILE2" | b"2ELIFREP").then_some(file)
}

/// Open a perf.data, or a directory of perf.
pub fn open(path: &Path, ctx: &Ctx) -> Result<PerfTrace, OpenError> {
    let file = header_file(path).unwrap_or_else(|| path.to_owned());
    let shown = |path: &Path| path.display().to_string();
    let mapped = Mapped::open(&file).map_err(|e| Unreadable::from(e).at(&file))?;
    let mut header = Header::read(mapped.bytes()).map_err(|e| Unreadable::from(e).at(&file))?;
    let (byte_order, data) = (header.byte_order, header.data.clone());
    let mut notices = std::mem::take(&mut header.notices);
    if !header.pipe {
        header.coverage.notice(mapped.bytes(), &shown(&file), &mut notices);
    }
    let mut files = vec![DataFile::new(mapped, shown(&file), data)];
    for path in data_files(path, &mut notices) {
        match Mapped::open(&path) {
            Ok(mapped) => files.push(DataFile::whole(mapped, shown(&path))),
            Err(e) => notices.add(Notice::DamagedStream, 1, || format!("{}: {e}", shown(&path))),
        }
    }
    let attrs = std::mem::take(&mut header.attrs);
    let tracepoints = attrs.iter().map(Attr::is_tracepoint).collect();
    let schemas = schemas::schemas(&attrs, &header);
    let rules = WalkRules {
        attrs: Attrs::new(&attrs, byte_order),
        tracepoints,
        shows_idle: attrs.iter().all(Attr::has_cpu) && !schemas::has_switches(&attrs, &schemas),
        byte_order,
    };
    let backward = attrs.iter().any(|attr| attr.flag(WRITE_BACKWARD));
    if backward {
        let unpacked: Vec<DataFile> =
            files.iter_mut().filter_map(|file| file.unpacked(byte_order, &mut notices)).collect();
        files.extend(unpacked);
        for DataFile { mapped, name, data, .. } in &mut files {
            let reversed = backward::reversed(&rules, mapped.bytes(), data.clone());
            *mapped = reversed.map_err(|e| Unreadable::from(e).at(Path::new(name)))?;
            *data = 0..mapped.bytes().len();
        }
    }
    note_events(&attrs, &header, &shown(path), &mut notices);
    let mut index = Index::default();
    let mut unpacked = Vec::new();
    for (number, file) in files.iter_mut().enumerate() {
        let found = file.index(&rules, number, ctx).map_err(OpenError::Cancelled)?;
        if found.packed && !backward {
            unpacked.extend(file.unpacked(byte_order, &mut notices));
        }
        index.append(found);
    }
    for (number, file) in unpacked.iter().enumerate() {
        index.append(file.index(&rules, files.len() + number, ctx).map_err(OpenError::Cancelled)?);
    }
    files.extend(unpacked);
    let mut deferred = Deferred::default();
    if attrs.iter().any(|attr| attr.flag(DEFER_CALLCHAIN)) {
        for DataFile { mapped, data, .. } in &files {
            deferred.gather(&rules, mapped.bytes(), data.clone());
        }
    }
    let threads = index.threads();
    notices.merge(&index.notices);
    index.side.notices(&mut notices);
    let code = index.side.symbols();
    let file = |number: u32| files.get(number as usize).map_or(&[][..], |file| file.mapped.bytes());
    let streams = streams::streams(index, RecordFiles { rules: &rules, file: &file });
    let (runs, cpu_streams) = streams.into_iter().map(|cpu| (cpu.runs, cpu.stream)).unzip();
    let clock = clock(&attrs, &header);
    let symbols = kernel_symbols(path, &mut notices);
    let copied = attrs.iter().any(Attr::has_copies);
    let unwound = OnceLock::new();
    let build_ids = std::mem::take(&mut header.build_ids);
    let none = StackStore::default();
    let mut storage =
        PerfStorage { files, runs, rules, threads, symbols, code, build_ids, copied, deferred: none, unwound };
    if !deferred.is_empty() {
        storage.deferred = storage.stacks_of(&deferred);
    }
    let version = if header.pipe { "perf.data (pipe)" } else { "perf.data" }.to_owned();
    let environment = header.environment;
    Ok(PerfTrace::new(TraceParts { storage, version, schemas, cpu_streams, environment, clock, notices }))
}

/// Add notices about what was recorded of which events.
fn note_events(attrs: &[Attr], header: &Header, shown: &str, notices: &mut Notices) {
    let own_threads = attrs.iter().any(|attr| attr.is_tracepoint() && attr.flag(ENABLE_ON_EXEC));
    let own_threads = own_threads || header::chooses_threads(&header.command);
    notices.add(Notice::OwnThreadsOnly, own_threads.into(), || shown.to_owned());
    let mut names = |notice: Notice, is_such: &dyn Fn(&Attr) -> bool| {
        let names: Vec<String> = attrs.iter().filter(|attr| is_such(attr)).map(Attr::shown_name).collect();
        notices.add(notice, names.len() as u64, || names.join(", "));
    };
    names(Notice::TracepointsSampled, &Attr::is_thinned_out);
    let has_format = |attr: &Attr| header.formats.iter().any(|format| format.id == attr.config);
    names(Notice::FormatsMissing, &|attr| attr.is_tracepoint() && !has_format(attr));
}

/// The kernel symbols of the recording, if it has any: in a directory of perf, or beside a file as `whyslow record`
/// writes them.
fn kernel_symbols(path: &Path, notices: &mut Notices) -> Option<Mapped> {
    for path in [path.join("kcore_dir/kallsyms"), path.with_file_name("kallsyms")] {
        match Mapped::open(&path) {
            Ok(symbols) => return Some(symbols),
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(e) => notices.add(Notice::SymbolFileMissing, 1, || format!("{}: {e}", path.display())),
        }
    }
    None
}

/// `data.0`, `data.1` ... beside `data`, in order of their numbers; none where the path is not a folder.
fn data_files(folder: &Path, notices: &mut Notices) -> Vec<PathBuf> {
    let number = |path: PathBuf| {
        let number: u32 = path.file_name()?.to_str()?.strip_prefix("data.")?.parse().ok()?;
        Some((number, path))
    };
    let mut files: Vec<(u32, PathBuf)> = Vec::new();
    let mut list = || {
        for entry in std::fs::read_dir(folder)? {
            files.extend(number(entry?.path()));
        }
        Ok::<(), std::io::Error>(())
    };
    match list() {
        Err(e) if e.kind() != ErrorKind::NotADirectory => {
            notices.add(Notice::FolderUnreadable, 1, || format!("{}: {e}", folder.display()));
        }
        _ => {}
    }
    files.sort();
    files.into_iter().map(|(_, path)| path).collect()
}

/// The clock, on wall time where the two were read at one moment.
fn clock(attrs: &[Attr], header: &Header) -> RecorderClock {
    let name = attrs.first().map_or("perf", Attr::clock).to_owned();
    let base = header.wall.map_or(0, |at| i128::from(at.wall) - i128::from(at.clock));
    RecorderClock { name, base, ..RecorderClock::default() }
}
