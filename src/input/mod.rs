//! Bytes to records: which formats there are, and what a record is before anybody knows what it means.
//!
//! [`record`] is the face that `event/` sees; each format has a folder. [`open`] finds the traces under the
//! paths that a user names and lays them on one time line: a CTF trace is a directory with `metadata`, a session holds
//! several, and traces of one uuid under one label (the chunks of a rotated session) are one trace.

pub mod count;
pub mod ctf;
pub mod cursor;
pub mod mapped;
pub mod otf2;
pub mod record;
pub mod stream;
pub mod trace;

use crate::base::work::Work;
pub use ctf::OpenError;
use std::path::{Path, PathBuf};
pub use trace::Trace;

/// What a user names: a path, perhaps with a label (`LABEL=PATH`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// The label, where one was given.
    pub label: Option<String>,
    /// The path.
    pub path: PathBuf,
}

impl Argument {
    /// `LABEL=PATH`, or a path; a path that exists as written wins.
    pub fn parse(text: &str) -> Argument {
        match text.split_once('=') {
            Some((label, path)) if !label.is_empty() && !label.contains('/') && !Path::new(text).exists() => {
                Argument { label: Some(label.to_owned()), path: PathBuf::from(path) }
            }
            _ => Argument { label: None, path: PathBuf::from(text) },
        }
    }

    /// An OTF2 anchor file, or a folder that holds one and is no CTF trace.
    fn is_archive(&self) -> bool {
        !self.path.join("metadata").exists() && otf2::find(&self.path).is_some()
    }
}

/// An opened trace and whose it is.
#[derive(Debug)]
pub struct Source {
    /// The label, or the path as the user wrote it.
    pub label: String,
    /// True where the user gave the label.
    pub labelled: bool,
    /// Path of the trace below what the user named; empty where it is that itself.
    pub name: String,
    /// The trace.
    pub trace: Trace,
}

/// What a command line names.
#[derive(Debug)]
pub enum Opened {
    /// Traces in a stable order, on one time line.
    Traces(Vec<Source>),
    /// The archives of MPI runs, with the labels that the user gave; one at least.
    Otf2(Vec<(Option<String>, otf2::Archive)>),
}

/// Open the traces under what the user named, ready to read their events.
///
/// A trace of several whose metadata cannot be understood is left out, and the others say so in their notices. Errors: a path that
/// is not there, a folder without a trace or without one that can be read, a file of a known format that is not read
/// yet; each in one line that says what to do.
pub fn open(arguments: &[Argument], work: &Work) -> Result<Opened, OpenError> {
    open_how(arguments, ctf::How::Headers, work)
}

/// The same for those who read no events: metadata and packet indexes tell what is there.
pub fn outline(arguments: &[Argument], work: &Work) -> Result<Opened, OpenError> {
    open_how(arguments, ctf::How::Outline, work)
}

fn open_how(arguments: &[Argument], how: ctf::How, work: &Work) -> Result<Opened, OpenError> {
    if arguments.iter().any(Argument::is_archive) {
        if let Some(other) = arguments.iter().find(|a| !a.is_archive()) {
            let why = "the others are OTF2 archives: runs are compared with runs";
            return Err(OpenError(format!("{}: not an OTF2 archive, and {why}", other.path.display())));
        }
        let open = |a: &Argument| Ok((a.label.clone(), otf2::Archive::open(&a.path)?));
        return Ok(Opened::Otf2(arguments.iter().map(open).collect::<Result<_, OpenError>>()?));
    }
    let found: Vec<Vec<PathBuf>> = arguments.iter().map(traces_under).collect::<Result<_, _>>()?;
    let mut read = ctf::Directory::read_all(found.concat(), work)?.into_iter();
    let (mut openings, mut named) = (Vec::new(), Vec::new());
    for (argument, paths) in arguments.iter().zip(&found) {
        for trace in traces_of(argument, read.by_ref().take(paths.len()))? {
            openings.push(trace.opening);
            named.push((argument, trace.name, trace.left_out));
        }
    }
    let mut sources = Vec::with_capacity(named.len());
    for ((argument, name, left_out), mut trace) in named.into_iter().zip(ctf::open_all(openings, how, work)?) {
        left_out.into_iter().for_each(|error| trace.left_out(error));
        let trace = Trace::Ctf(trace);
        let label = argument.label.clone().unwrap_or_else(|| argument.path.display().to_string());
        sources.push(Source { label, labelled: argument.label.is_some(), name, trace });
    }
    share_clocks(&mut sources);
    Ok(Opened::Traces(sources))
}

/// The trace directories under an argument, in order.
fn traces_under(argument: &Argument) -> Result<Vec<PathBuf>, OpenError> {
    let path = &argument.path;
    let shown = path.display();
    let about = std::fs::metadata(path).map_err(|e| OpenError(format!("{shown}: {e}; name a trace directory")))?;
    if about.is_file() {
        return Err(OpenError(known_file(path)));
    }
    let mut paths = Vec::new();
    find_traces(path, 0, &mut paths)?;
    if paths.is_empty() {
        let what = "no trace in this folder: a CTF trace is a directory that holds a file `metadata`";
        return Err(OpenError(format!("{shown}: {what}")));
    }
    paths.sort_unstable();
    Ok(paths)
}

/// A trace whose metadata is read.
struct Half {
    opening: ctf::Opening,
    /// Path of the trace below the argument.
    name: String,
    /// Other traces of the argument, which cannot be read.
    left_out: Vec<OpenError>,
}

/// The traces of an argument: chunks of one uuid together.
fn traces_of(
    argument: &Argument,
    directories: impl Iterator<Item = Result<ctf::Directory, OpenError>>,
) -> Result<Vec<Half>, OpenError> {
    let mut traces: Vec<Vec<ctf::Directory>> = Vec::new();
    let mut unreadable = Vec::new();
    for directory in directories {
        let directory = match directory {
            Ok(directory) => directory,
            Err(error) => {
                unreadable.push(error);
                continue;
            }
        };
        let same = |chunks: &&mut Vec<ctf::Directory>| {
            directory.uuid().is_some() && chunks.first().is_some_and(|chunk| chunk.uuid() == directory.uuid())
        };
        match traces.iter_mut().find(same) {
            Some(chunks) => chunks.push(directory),
            None => traces.push(vec![directory]),
        }
    }
    let mut halves = Vec::with_capacity(traces.len());
    for chunks in traces {
        let opening = ctf::Opening::of(&chunks)?;
        let name = chunks.first().and_then(|chunk| chunk.path().strip_prefix(&argument.path).ok());
        let name = name.map_or_else(String::new, |n| n.display().to_string());
        halves.push(Half { opening, name, left_out: std::mem::take(&mut unreadable) });
    }
    // Nothing is left to say it.
    unreadable.into_iter().next().map_or(Ok(halves), Err)
}

/// Deeper folders are not looked into: an LTTng session has at most six levels.
const DEEPEST: usize = 12;

fn find_traces(path: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), OpenError> {
    if path.join("metadata").is_file() {
        found.push(path.to_owned());
        return Ok(());
    }
    if depth >= DEEPEST {
        return Ok(());
    }
    let unreadable = |e: std::io::Error| OpenError(format!("{}: {e}", path.display()));
    for entry in std::fs::read_dir(path).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        // Links are not followed: they may lead in a circle.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            find_traces(&entry.path(), depth + 1, found)?;
        }
    }
    Ok(())
}

/// One line for a file that is no trace directory.
fn known_file(path: &Path) -> String {
    let shown = path.display();
    let begin = mapped::Mapped::open(path).ok();
    let begin = begin.as_ref().map_or(&[][..], |m| m.bytes());
    if path.file_name().is_some_and(|name| name == "metadata") {
        let parent = path.parent().map_or_else(|| ".".to_owned(), |p| p.display().to_string());
        return format!("{shown}: this is the metadata of a trace; name its directory, {parent}");
    }
    if begin.starts_with(b"PERFILE2") || begin.starts_with(b"2ELIFREP") {
        return format!("{shown}: perf.data is known and not read yet; record with LTTng, or convert it to CTF");
    }
    if begin.starts_with(b"\x17\x08\x44tracing") {
        return format!("{shown}: trace.dat is known and not read yet; record with LTTng, or convert it to CTF");
    }
    format!("{shown}: neither a trace directory nor a file of a known format; name a CTF trace directory")
}

/// One clock offset for all traces whose clock uuid is equal: that of the first one.
fn share_clocks(sources: &mut [Source]) {
    let mut known: Vec<(String, i128)> = Vec::new();
    for source in sources {
        let own: Vec<(String, i128)> =
            source.trace.clock_offsets().into_iter().map(|(uuid, base)| (uuid.to_owned(), base)).collect();
        for (uuid, base) in own {
            match known.iter().find(|(k, _)| *k == uuid) {
                Some((_, first)) if *first != base => source.trace.set_clock_offset(&uuid, *first),
                Some(_) => {}
                None => known.push((uuid, base)),
            }
        }
    }
}
