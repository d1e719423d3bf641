//! Opens a perf.data, or a directory of perf.
//!
//! In: a path. Out: the recording, with the index of its records: header, attrs and formats become classes, runs of
//! records become the packets of one stream for each CPU. Compressed records are unpacked, and records that the kernel
//! wrote backwards are reversed, into temporary files. Cost: one pass over the heads of all records, by all workers.

use super::attr::{Attr, DEFER_CALLCHAIN, ENABLE_ON_EXEC, WRITE_BACKWARD};
use super::attrs::Attrs;
use super::backward;
use super::chains::{Deferred, StackStore};
use super::format::header_file;
use super::header;
use super::header::Header;
use super::index::Index;
use super::runs::RecordFiles;
use super::schemas;
use super::storage::{DataFile, PerfStorage, PerfTrace};
use super::streams;
use super::walk_rules::WalkRules;
use crate::base::ctx::Ctx;
use crate::base::mapped::Mapped;
use crate::base::notice::{Notice, Notices};
use crate::input::tracepoint::{RecorderClock, TraceParts};
use crate::input::{OpenError, Unreadable};
use std::io::ErrorKind;
use std::path::Path;
use std::path::PathBuf;
use std::sync::OnceLock;

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
