//! Opens the traces below the paths that a user names, and places them on one time line.
//!
//! In: arguments. Out: sources in a stable order, or the archives of MPI runs. A CTF trace is a directory with
//! `metadata`, a session holds several, and traces of one uuid under one label (the chunks of a rotated session) are
//! one trace. What cannot be read is left out with a notice as long as anything else can be.

use super::argument::Argument;
use super::beside::PendingSpans;
use super::error::{LeftOut, OpenError, Unreadable};
use super::format::NamedFile;
use super::format_trace::FormatTrace;
use super::formats::{KnownFormat, OpenedBy, OpenedFile};
use super::plain::PlainFile;
use super::source::{Source, share_clocks};
use super::trace::Trace;
use super::{beside, ctf, environment, formats, not_a_recording, otf2, plain, search};
use crate::base::ctx::Ctx;
use crate::base::heap::MemoryPart;
use crate::base::notice::Notice;
use foldhash::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The inputs of a command line, opened.
#[derive(Debug)]
pub enum Opened {
    /// Traces in a stable order, on one time line.
    Traces(Vec<Source>),
    /// The archives of MPI runs, at least one.
    Otf2(Vec<LabelledArchive>),
}

impl Opened {
    /// Add the notice of a folder beside the inputs that could not be opened.
    fn left_out(&mut self, place: String) {
        let left_out = LeftOut { notice: Notice::FolderUnreadable, place };
        match self {
            Opened::Traces(sources) => sources.iter_mut().take(1).for_each(|source| source.trace.left_out(&left_out)),
            Opened::Otf2(archives) => archives.iter_mut().take(1).for_each(|one| one.archive.left_out(&left_out)),
        }
    }
}

/// The archive of an MPI run.
#[derive(Debug)]
pub struct LabelledArchive {
    /// The label that the user gave.
    pub label: Option<String>,
    /// The opened archive.
    pub archive: otf2::Archive,
}

impl LabelledArchive {
    fn open(argument: &Argument) -> Result<LabelledArchive, OpenError> {
        Ok(LabelledArchive { label: argument.label.clone(), archive: otf2::Archive::open(&argument.path)? })
    }
}

/// Open the traces below the named paths, for commands that read events.
///
/// If one of several traces has metadata that cannot be read, it is left out, with a notice. Errors: a path that does
/// not exist, a folder without a trace that can be read, a file of another format; each in one line with its remedy.
pub fn open(arguments: &[Argument], ctx: &Ctx) -> Result<Opened, OpenError> {
    open_to_depth(arguments, ctf::OpenDepth::Headers, ctx)
}

/// Open the traces for commands that read no events, by metadata and packet indexes alone.
pub fn outline(arguments: &[Argument], ctx: &Ctx) -> Result<Opened, OpenError> {
    open_to_depth(arguments, ctf::OpenDepth::Outline, ctx)
}

fn open_to_depth(arguments: &[Argument], depth: ctf::OpenDepth, ctx: &Ctx) -> Result<Opened, OpenError> {
    let arguments: Vec<Argument> = arguments.iter().flat_map(Argument::parts).collect();
    let files: Vec<PlainFile> = arguments.iter().map(PlainFile::of).collect::<Result<_, _>>()?;
    let plain = |(argument, file): (&Argument, &PlainFile)| NamedArgument {
        label: argument.label.clone().unwrap_or_else(|| argument.path.display().to_string()),
        argument: Argument { path: file.path.clone(), ..argument.clone() },
        shown: argument.path.display().to_string(),
    };
    let named: Vec<NamedArgument> = arguments.iter().zip(&files).map(plain).collect();
    let mut opened = open_plain(&named, depth, ctx);
    if let Ok(opened) = &mut opened {
        let unopened = arguments.iter().flat_map(|argument| &argument.unopened);
        unopened.for_each(|place| opened.left_out(place.clone()));
    }
    // Errors name what the user named.
    opened.map_err(|error| match error {
        OpenError::At { path, reason } => {
            let own = files.iter().position(|file| file.path == path).and_then(|at| arguments.get(at));
            OpenError::At { path: own.map_or(path, |argument| argument.path.clone()), reason }
        }
        other => other,
    })
}

/// An argument whose file is plain, and its label: the one that the user gave, or the path as the user wrote it.
struct NamedArgument {
    argument: Argument,
    label: String,
    /// The path as the user wrote it.
    shown: String,
}

fn open_plain(arguments: &[NamedArgument], depth: ctf::OpenDepth, ctx: &Ctx) -> Result<Opened, OpenError> {
    let names: Vec<&NamedArgument> = arguments.iter().collect();
    let arguments: Vec<&Argument> = arguments.iter().map(|named| &named.argument).collect();
    let formats: Vec<Option<KnownFormat>> = arguments.iter().map(|argument| formats::at(&argument.path)).collect();
    let is_archive = |known: &Option<KnownFormat>| known.is_some_and(|known| matches!(known.opened_by, OpenedBy::Otf2));
    if formats.iter().any(is_archive) {
        if let Some(other) = formats.iter().position(|format| !is_archive(format)).and_then(|at| arguments.get(at)) {
            return Err(Unreadable::NotAnArchive.at(&other.path));
        }
        return Ok(Opened::Otf2(arguments.iter().map(|a| LabelledArchive::open(a)).collect::<Result<_, _>>()?));
    }
    let mut left_out = Vec::new();
    let mut found: Vec<Vec<PathBuf>> = Vec::with_capacity(arguments.len());
    for (argument, format) in arguments.iter().copied().zip(&formats) {
        let is_file = format.is_some_and(|known| known.is_file());
        found.push(if is_file { Vec::new() } else { traces_under(argument, &mut left_out)? });
    }
    let mut read = ctf::Directory::read_all(found.concat(), ctx)?.into_iter();
    let (mut openings, mut named) = (Vec::new(), Vec::new());
    for (argument, paths) in arguments.iter().copied().zip(&found) {
        for trace in traces_of(argument, read.by_ref().take(paths.len()), &mut left_out)? {
            openings.push(trace.opening);
            named.push((argument, trace.name));
        }
    }
    let mut traces = ctf::open_all(openings, depth, ctx)?;
    if let Some(why) = nothing_left(&traces, &left_out) {
        return Err(OpenError::NothingLeft(why));
    }
    if let Some(first) = traces.first_mut() {
        left_out.iter().for_each(|what| first.left_out(what));
    }
    let mut opened = named.into_iter().zip(traces).peekable();
    let (mut sources, mut spans) = (Vec::new(), Vec::new());
    for ((argument, NamedArgument { label, shown, .. }), format) in arguments.iter().copied().zip(names).zip(formats) {
        let environment = environment::of(Path::new(shown));
        let source = |name, trace| Source {
            label: label.clone(),
            labelled: argument.label.is_some(),
            name,
            trace,
            environment: environment.clone(),
        };
        let opened_file = match format {
            Some(known) => known.open(&NamedFile { format: known.format, path: &argument.path, shown, ctx })?,
            None => None,
        };
        match opened_file {
            Some(OpenedFile::Trace(trace)) => sources.push(source(String::new(), trace)),
            Some(OpenedFile::Spans(file)) => {
                let (position, labelled) = (sources.len(), argument.label.is_some());
                spans.push(PendingSpans { position, label: label.clone(), labelled, file: *file });
            }
            None => {}
        }
        while let Some(((_, name), trace)) = opened.next_if(|((of, _), _)| std::ptr::eq(*of, argument)) {
            sources.push(source(name, Trace::new(trace)));
        }
    }
    share_clocks(&mut sources);
    beside::open(&mut sources, spans, ctx)?;
    ctx.progress.parts.hold(MemoryPart::OpenedTraces, Trace::bytes_of(sources.iter().map(|source| &source.trace)));
    Ok(Opened::Traces(sources))
}

/// The first reason, where none of the named inputs could be opened.
fn nothing_left(traces: &[ctf::CtfTrace], left_out: &[LeftOut]) -> Option<String> {
    match traces {
        [] => left_out.first().map(|one| one.place.clone()),
        all => {
            let why: Option<Vec<&str>> = all.iter().map(ctf::CtfTrace::nothing_left).collect();
            why?.first().map(|place| (*place).to_owned())
        }
    }
}

/// The temporary files into which a recording may have to be unpacked.
pub fn temporary_files(path: &Path) -> usize {
    if let Some(pair) = path.is_dir().then(|| search::pair_in(path)).flatten() {
        return pair.iter().map(|part| temporary_files(part)).sum();
    }
    // Standard input may be a packed file, and that a recording with packed parts.
    if plain::is_needed(path) { 3 } else { formats::at(path).map_or(0, |known| known.format.temporary_files) }
}

/// The trace directories below an argument, in order; folders that cannot be opened are added to `left_out`.
fn traces_under(argument: &Argument, left_out: &mut Vec<LeftOut>) -> Result<Vec<PathBuf>, OpenError> {
    let path = &argument.path;
    let shown = path.display();
    match std::fs::metadata(path) {
        Ok(about) if about.is_file() => return Err(not_a_recording::for_file(path).at(path)),
        Ok(about) if about.is_dir() => {}
        Ok(_) => return Err(Unreadable::Special.at(path)),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            return Err(Unreadable::NotFound.at(path));
        }
        Err(e) => {
            left_out.push(LeftOut { notice: Notice::FolderUnreadable, place: format!("{shown}: {e}") });
            return Ok(Vec::new());
        }
    }
    let (mut paths, before) = (Vec::new(), left_out.len());
    find_traces(path, 0, &mut paths, left_out);
    if paths.is_empty() && left_out.len() == before {
        return Err(Unreadable::NotARecording(not_a_recording::for_folder(path)).at(path));
    }
    paths.sort_unstable();
    Ok(paths)
}

/// A trace whose metadata has been read.
struct OpeningTrace {
    opening: ctf::Opening,
    /// Path of the trace below the argument.
    name: String,
}

/// The traces of an argument: chunks of one uuid together; those that cannot be read are added to `left_out`.
fn traces_of(
    argument: &Argument,
    directories: impl Iterator<Item = Result<ctf::Directory, OpenError>>,
    left_out: &mut Vec<LeftOut>,
) -> Result<Vec<OpeningTrace>, OpenError> {
    let mut traces: Vec<Vec<ctf::Directory>> = Vec::new();
    // The trace of a uuid: sessions of many processes have thousands.
    let mut of_uuid: HashMap<String, usize> = HashMap::default();
    for directory in directories {
        let directory = match directory {
            Ok(directory) => directory,
            Err(error) => {
                left_out.push(LeftOut { notice: Notice::TraceUnreadable, place: error.to_string() });
                continue;
            }
        };
        let next = traces.len();
        let at = directory.uuid().map_or(next, |uuid| *of_uuid.entry(uuid.to_owned()).or_insert(next));
        match traces.get_mut(at) {
            Some(chunks) => chunks.push(directory),
            None => traces.push(vec![directory]),
        }
    }
    let mut openings = Vec::with_capacity(traces.len());
    for chunks in traces {
        let opening = ctf::Opening::of(&chunks)?;
        let name = chunks.first().and_then(|chunk| chunk.path().strip_prefix(&argument.path).ok());
        let name = name.map_or_else(String::new, |n| n.display().to_string());
        openings.push(OpeningTrace { opening, name });
    }
    Ok(openings)
}

/// The depth of folders that are searched; an LTTng session has at most six levels.
const DEEPEST: usize = 12;

fn find_traces(path: &Path, depth: usize, found: &mut Vec<PathBuf>, left_out: &mut Vec<LeftOut>) {
    let metadata = path.join("metadata");
    match std::fs::metadata(&metadata) {
        Ok(about) if about.is_file() => return found.push(path.to_owned()),
        Ok(about) if about.is_dir() => {}
        Ok(_) => left_out.push(LeftOut {
            notice: Notice::TraceUnreadable,
            place: format!("{}: not a regular file", metadata.display()),
        }),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
        Err(e) => {
            return left_out
                .push(LeftOut { notice: Notice::FolderUnreadable, place: format!("{}: {e}", metadata.display()) });
        }
    }
    if depth >= DEEPEST {
        return;
    }
    let mut look = || {
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            // Links are not followed: they may lead in a circle.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                find_traces(&entry.path(), depth + 1, found, left_out);
            }
        }
        Ok::<(), std::io::Error>(())
    };
    if let Err(e) = look() {
        left_out.push(LeftOut { notice: Notice::FolderUnreadable, place: format!("{}: {e}", path.display()) });
    }
}
