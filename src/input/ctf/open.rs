//! Opens a trace: reads the metadata, finds the stream files, orders their packets, and derives losses from counters.

use super::clock::CycleScale;
use super::directory::Directory;
use super::ids::EventIds;
use super::packet::{PacketHeaderReader, PacketTable, UnreadableHeader, agrees, outline, read_index, scan_packets};
use super::roles::has_role;
use super::schema::{EventClass, Role, Schema, StreamClass};
use super::streams::FilePackets;
use super::trace::{Chunk, ChunkClock, ClassTables, CtfTrace, StreamFile};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::mapped::Mapped;
use crate::base::notice::{Notice, Notices};
use crate::base::parallel::in_order;
use crate::input::error::OpenError;
use crate::input::stream::Class;
use foldhash::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The amount of a stream that is read when its trace is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenDepth {
    /// Trust an index that fits its file; for commands that read no events.
    Outline,
    /// Read the header of each packet.
    Headers,
}

/// A trace whose metadata is read, and whose stream files are known by name.
#[derive(Debug)]
pub struct Opening {
    trace: CtfTrace,
    files: Vec<Candidate>,
}

/// A file that may be a stream file.
#[derive(Debug)]
struct Candidate {
    /// Position of the directory.
    chunk: usize,
    name: String,
    path: PathBuf,
    /// The index file that it should have.
    index: PathBuf,
    /// The directory has a folder of index files.
    indexed: bool,
}

/// A candidate after its packets were scanned.
struct ScannedFile {
    mapped: Mapped,
    table: PacketTable,
    /// Whether the index file agrees with the packets; `None` without an index.
    agrees: Option<bool>,
    /// The error, if the index file cannot be opened.
    unindexed: Option<String>,
}

impl Opening {
    /// Begin to open a trace that was recorded in these directories, in this order.
    pub fn of<'d>(directories: impl IntoIterator<Item = &'d Directory>) -> Result<Opening, OpenError> {
        let mut opening: Option<Opening> = None;
        for directory in directories {
            match &mut opening {
                None => opening = Some(Opening { trace: CtfTrace::bare(directory), files: Vec::new() }),
                Some(opening) => opening.trace.join(directory),
            }
            if let Some(opening) = &mut opening {
                opening.list(&directory.path);
            }
        }
        opening.ok_or(OpenError::NoTrace)
    }

    /// The files of the directory that was joined last; a folder that cannot be listed raises a notice.
    fn list(&mut self, folder: &Path) {
        let chunk = self.trace.chunks.len() - 1;
        let mut names = Vec::new();
        let mut list = || {
            for entry in std::fs::read_dir(folder)? {
                let entry = entry?;
                let name = entry.file_name();
                let bytes = name.as_encoded_bytes();
                if bytes != b"metadata" && !bytes.starts_with(b".") && !entry.path().is_dir() {
                    names.push(name);
                }
            }
            Ok::<(), std::io::Error>(())
        };
        if let Err(e) = list() {
            let place = format!("{}: {e}", folder.display());
            self.trace.unopened.get_or_insert_with(|| place.clone());
            self.trace.notices.add(Notice::FolderUnreadable, 1, || place);
        }
        names.sort_unstable();
        let indexes = folder.join("index");
        let indexed = indexes.is_dir();
        self.files.extend(names.into_iter().map(|name| {
            let mut index = name.clone();
            index.push(".idx");
            let (path, index) = (folder.join(&name), indexes.join(index));
            Candidate { chunk, name: name.to_string_lossy().into_owned(), path, index, indexed }
        }));
    }

    /// Scan the packets of a file; `None` where the file is empty.
    fn scan(&self, file: &Candidate, depth: OpenDepth) -> std::io::Result<Option<ScannedFile>> {
        let mapped = Mapped::open(&file.path)?;
        let Some(chunk) = self.trace.chunks.get(file.chunk).filter(|_| !mapped.bytes().is_empty()) else {
            return Ok(None);
        };
        let index = Mapped::open(&file.index);
        let unindexed = index.as_ref().err().filter(|e| e.kind() != std::io::ErrorKind::NotFound);
        let unindexed = unindexed.map(|e| format!("{}: {e}", file.index.display()));
        let entries = index.ok().and_then(|index| read_index(index.bytes()));
        let (headers, slots) = (&chunk.headers, self.trace.schema.slots);
        let known = entries.as_ref().filter(|_| depth == OpenDepth::Outline);
        let outlined = known.and_then(|entries| outline(headers, slots, mapped.bytes(), entries));
        let table = outlined.unwrap_or_else(|| scan_packets(headers, slots, mapped.bytes()));
        let agrees = entries.map(|entries| agrees(&entries, &table.packets));
        Ok(Some(ScannedFile { mapped, table, agrees, unindexed }))
    }
}

/// Open some traces: the workers scan all files of all traces in parallel.
pub fn open_all(openings: Vec<Opening>, depth: OpenDepth, ctx: &Ctx) -> Result<Vec<CtfTrace>, Cancelled> {
    let files: Vec<(usize, &Candidate)> =
        openings.iter().enumerate().flat_map(|(i, opening)| opening.files.iter().map(move |file| (i, file))).collect();
    ctx.progress.enter("opening", files.len() as u64);
    let mut scanned: Vec<Vec<std::io::Result<Option<ScannedFile>>>> = openings.iter().map(|_| Vec::new()).collect();
    let scan = |i: usize| {
        let (trace, file) = files.get(i)?;
        Some((*trace, openings.get(*trace)?.scan(file, depth)))
    };
    in_order(ctx, files.len(), scan, |_, found| {
        let place = found.and_then(|(trace, found)| Some((scanned.get_mut(trace)?, found)));
        place.into_iter().for_each(|(place, found)| place.push(found));
        ctx.progress.step(1);
    })?;
    let mut schemas: HashMap<usize, OnceLock<Arc<ClassTables>>> = HashMap::default();
    for opening in &openings {
        schemas.entry(opening.trace.schema_address()).or_default();
    }
    let parts: Vec<_> = openings.into_iter().zip(scanned).map(|part| Mutex::new(Some(part))).collect();
    let finish = |i: usize| {
        let part = parts.get(i)?.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (mut opening, scanned) = part?;
        if let Some(shared) = schemas.get(&opening.trace.schema_address()) {
            let tables = shared.get_or_init(|| Arc::new(ClassTables::new(&opening.trace.schema)));
            opening.trace.tables = Arc::clone(tables);
        }
        Some(opening.trace.finish(opening.files, scanned))
    };
    let mut traces = Vec::with_capacity(parts.len());
    in_order(ctx, parts.len(), finish, |_, trace| traces.extend(trace))?;
    Ok(traces)
}

impl CtfTrace {
    /// Open a trace directory (one that holds `metadata`).
    pub fn open(path: &Path) -> Result<CtfTrace, OpenError> {
        let ctx = Ctx::new(1);
        let directories: Result<Vec<Directory>, OpenError> =
            Directory::read_all(vec![path.to_owned()], &ctx)?.into_iter().collect();
        let opening = Opening::of(&directories?)?;
        open_all(vec![opening], OpenDepth::Headers, &ctx)?.pop().ok_or(OpenError::NoTrace)
    }

    /// Files to streams.
    fn finish(mut self, files: Vec<Candidate>, scanned: Vec<std::io::Result<Option<ScannedFile>>>) -> CtfTrace {
        let mut found = Vec::new();
        for (file, scanned) in files.into_iter().zip(scanned) {
            match scanned {
                Ok(Some(scanned)) => found.extend(self.take(file, scanned)),
                Ok(None) => {}
                Err(e) => {
                    let place = format!("{}: {e}", file.path.display());
                    self.unopened.get_or_insert_with(|| place.clone());
                    self.notices.add(Notice::DamagedStream, 1, || place);
                }
            }
        }
        self.group(found);
        self.time_packets();
        self.follow_clocks();
        self
    }

    /// Keep a file that holds packets, and add notices about its faults.
    fn take(&mut self, file: Candidate, scanned: ScannedFile) -> Option<FilePackets> {
        let Candidate { chunk, name, path, indexed, .. } = file;
        let ScannedFile { mapped, table: PacketTable { packets, first, error, breaks }, agrees, unindexed } = scanned;
        if let Some(UnreadableHeader { offset, error }) = error {
            let what = if packets.is_empty() { Notice::DamagedStream } else { Notice::DamagedPacket };
            let (shown, number, bit) = (path.display(), packets.len(), error.at);
            self.notices
                .add(what, breaks, || format!("{shown}: packet {number} at byte {offset}, bit {bit}: {}", error.kind));
        }
        match agrees {
            Some(true) => {}
            Some(false) => self.notices.add(Notice::IndexStale, 1, || path.display().to_string()),
            None if indexed => {
                self.notices.add(Notice::IndexMissing, 1, || unindexed.unwrap_or_else(|| path.display().to_string()));
            }
            None => {}
        }
        let first = first?;
        if first.foreign {
            self.notices.add(Notice::ForeignUuid, 1, || path.display().to_string());
        }
        let class = self.chunks.get(chunk)?.streams.get(first.stream).copied().unwrap_or(0);
        let file = self.files.len() as u32;
        self.files.push(StreamFile { mapped, name, chunk });
        Some(FilePackets { file, class, instance: first.get(Role::StreamInstance), packets })
    }

    fn bare(directory: &Directory) -> CtfTrace {
        let Directory { path, schema, .. } = directory;
        let chunk = Chunk::new(path, schema, (0..schema.streams.len()).collect());
        let mut notices = Notices::default();
        for warning in &schema.warnings {
            notices.add(Notice::SchemaLenient, 1, || format!("{}: {}", path.join("metadata").display(), warning.what));
        }
        report_data_after(directory, &mut notices);
        CtfTrace {
            schema: schema.clone(),
            chunks: vec![chunk],
            files: Vec::new(),
            packets: Vec::new(),
            tables: Arc::default(),
            streams: Vec::new(),
            notices,
            unopened: None,
        }
    }

    /// Add a chunk's schema: equal stream classes are one, and get the event classes they lack.
    fn join(&mut self, directory: &Directory) {
        let schema = &directory.schema;
        let mut chunk = Chunk::new(&directory.path, schema, Vec::new());
        report_data_after(directory, &mut self.notices);
        let joined = Arc::make_mut(&mut self.schema);
        joined.slots = joined.slots.max(schema.slots);
        let mut of_id: HashMap<u64, Vec<usize>> = HashMap::default();
        for (place, ours) in joined.streams.iter().enumerate() {
            of_id.entry(ours.id).or_default().push(place);
        }
        for theirs in &schema.streams {
            let alike = of_id.entry(theirs.id).or_default();
            match alike
                .iter()
                .copied()
                .find(|place| joined.streams.get(*place).is_some_and(|ours| is_same(ours, theirs)))
            {
                Some(place) => {
                    chunk.streams.push(place);
                    if let Some(ours) = joined.streams.get_mut(place) {
                        let known: foldhash::HashSet<u64> = ours.events.iter().map(|e| e.id).collect();
                        ours.events.extend(theirs.events.iter().filter(|e| !known.contains(&e.id)).cloned());
                    }
                }
                None => {
                    chunk.streams.push(joined.streams.len());
                    alike.push(joined.streams.len());
                    joined.streams.push(theirs.clone());
                }
            }
        }
        self.chunks.push(chunk);
    }
}

impl ClassTables {
    fn new(schema: &Schema) -> ClassTables {
        let mut tables = ClassTables::default();
        for (number, stream) in schema.streams.iter().enumerate() {
            let has_id = has_role(stream.event_header.as_ref(), Role::EventClass);
            tables.ids.push(EventIds::new(&stream.events, tables.classes.len(), has_id));
            tables.firsts.push(tables.classes.len());
            let class = |event: &Arc<EventClass>| Class {
                name: event.name.as_deref().unwrap_or("").to_owned(),
                stream_class: number as u32,
                known_as: event.known_as(),
            };
            tables.classes.extend(stream.events.iter().map(class));
        }
        tables
    }
}

/// True where two metadata texts describe the same stream class: the parts that both describe are equal.
fn is_same(ours: &StreamClass, theirs: &StreamClass) -> bool {
    let alike = ours.id == theirs.id
        && ours.clock == theirs.clock
        && ours.packet_context == theirs.packet_context
        && ours.event_header == theirs.event_header
        && ours.common_context == theirs.common_context;
    if !alike {
        return false;
    }
    let known: HashMap<u64, &Arc<EventClass>> = ours.events.iter().map(|e| (e.id, e)).collect();
    theirs.events.iter().all(|e| known.get(&e.id).is_none_or(|o| Arc::ptr_eq(o, e) || *o == e))
}

/// Bytes after the last packet of a metadata file.
fn report_data_after(directory: &Directory, notices: &mut Notices) {
    if let Some(what) = &directory.schema.after {
        notices.add(Notice::MetadataBehind, 1, || format!("{}: {what}", directory.path.join("metadata").display()));
    }
}

impl Chunk {
    fn new(path: &Path, schema: &Schema, streams: Vec<usize>) -> Chunk {
        let chunk_clock =
            |clock: &super::schema::Clock| ChunkClock { common: CycleScale::of(clock), clock: clock.clone() };
        let clocks = schema.clocks.iter().map(chunk_clock).collect();
        Chunk { path: path.to_owned(), headers: PacketHeaderReader::new(schema), streams, clocks }
    }
}
