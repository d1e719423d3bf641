//! What the program knows of a format outside of its reader.
//!
//! In: a path. Out: whether a format is that of the recording there, by the first bytes of the file or by what is in
//! the folder ([`InputFormat::is_one`]). Each folder of readers describes its formats so; `formats.rs` lists them.

use super::stream::Class;
use crate::base::ctx::Ctx;
use crate::base::mapped;
use crate::model::recorder::TraceRecorder;
use std::cell::OnceCell;
use std::io::Read;
use std::path::Path;

/// The bytes of a file that show its format: files of Chrome's JSON may begin with other members.
pub const BEGIN: u64 = 1 << 16;

/// A format of recordings.
#[derive(Debug)]
pub struct InputFormat {
    pub name: &'static str,
    /// How the message about a file of no format names it.
    pub(super) listed: Listed,
    /// True for the file or folder of a recording.
    pub(super) is_one: fn(&NamedPath<'_>) -> bool,
    /// Temporary files into which a recording may have to be unpacked.
    pub(super) temporary_files: usize,
    /// The program that writes it, where a trace does not say it itself.
    pub recorder: TraceRecorder,
    /// True for a class that a trace of this many classes declares whether or not it has records.
    pub declares_unrecorded: fn(&Class, usize) -> bool,
    /// True where call stacks are records of their own.
    pub stacks_are_records: bool,
    /// True where a clock by the name of one of the kernel's is that of the recorded machine.
    pub has_kernel_clocks: bool,
}

/// How a message names a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listed {
    /// With an article: `a trace.dat`.
    As(&'static str),
    /// As one of the files of other tools.
    FileOf(&'static str),
}

/// What most formats are.
pub(super) const PLAIN: InputFormat = InputFormat {
    name: "",
    listed: Listed::As(""),
    is_one: |_| false,
    temporary_files: 0,
    recorder: TraceRecorder::Other,
    declares_unrecorded: |_, _| false,
    stacks_are_records: false,
    has_kernel_clocks: false,
};

/// A path that may be a recording.
pub(super) struct NamedPath<'a> {
    pub path: &'a Path,
    begin: OnceCell<Vec<u8>>,
}

impl<'a> NamedPath<'a> {
    pub fn new(path: &'a Path) -> NamedPath<'a> {
        NamedPath { path, begin: OnceCell::new() }
    }

    /// The first [`BEGIN`] bytes of the file; none of what is no file or cannot be read.
    pub fn begin(&self) -> &[u8] {
        self.begin.get_or_init(|| {
            let mut begin = Vec::new();
            let read = mapped::open_regular(self.path).and_then(|file| file.take(BEGIN).read_to_end(&mut begin));
            if read.is_ok() { begin } else { Vec::new() }
        })
    }

    /// The first bytes of a text, without its byte-order mark and white space.
    pub fn text(&self) -> &[u8] {
        let begin = self.begin();
        begin.strip_prefix(b"\xef\xbb\xbf").unwrap_or(begin).trim_ascii_start()
    }
}

/// A recording to open.
#[derive(Clone, Copy)]
pub struct NamedFile<'a> {
    pub format: &'static InputFormat,
    pub path: &'a Path,
    /// The path as the user wrote it.
    pub shown: &'a str,
    pub ctx: &'a Ctx,
}
