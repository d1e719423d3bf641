//! The registry of formats: all that the program knows of a format outside of its reader.
//!
//! In: a path. Out: its [`InputFormat`], by the first bytes of a file or by what is in a folder. Each folder of readers
//! has the rows of its formats; [`all`] lists them in the order in which they are asked, and in which messages name
//! them. What a recorder can record, and how, is in `advice/`, because answers without a trace ask that, too.

use super::stream::Class;
use super::trace::Trace;
use super::translated::{self, SpanFile};
use super::{OpenError, ctf, ftrace, otf2, perf};
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
    pub(super) opened_by: OpenedBy,
    /// Temporary files into which a recording may have to be unpacked.
    pub(super) temporary_files: usize,
    /// The program that writes it, where a trace does not say it itself.
    pub recorder: TraceRecorder,
    /// True for a class that a trace of so many classes declares whether or not it has records.
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

/// How recordings of a format are opened.
#[derive(Debug)]
pub(super) enum OpenedBy {
    /// CTF: folders are searched for traces, and all traces are opened together.
    Ctf,
    /// OTF2: an archive, which has no streams of the kernel's records.
    Otf2,
    /// A file or folder by itself.
    File(fn(&NamedFile<'_>) -> Result<OpenedFile, OpenError>),
}

/// A recording to open.
#[derive(Clone, Copy)]
pub(super) struct NamedFile<'a> {
    pub format: &'static InputFormat,
    pub path: &'a Path,
    /// The path as the user wrote it.
    pub shown: &'a str,
    pub ctx: &'a Ctx,
}

/// What was in a file.
#[derive(Debug)]
pub(super) enum OpenedFile {
    /// It has the kernel's events.
    Trace(Trace),
    /// It has spans of programs alone.
    Spans(Box<SpanFile>),
}

/// What most formats are.
pub(super) const PLAIN: InputFormat = InputFormat {
    name: "",
    listed: Listed::As(""),
    is_one: |_| false,
    opened_by: OpenedBy::Ctf,
    temporary_files: 0,
    recorder: TraceRecorder::Other,
    declares_unrecorded: |_, _| false,
    stacks_are_records: false,
    has_kernel_clocks: false,
};

/// All formats.
pub fn all() -> impl Iterator<Item = &'static InputFormat> {
    [&ctf::FORMAT, &otf2::FORMAT, &perf::FORMAT, &ftrace::FORMAT].into_iter().chain(&translated::FORMATS)
}

impl InputFormat {
    /// The format of the recording at a path.
    pub(super) fn at(path: &Path) -> Option<&'static InputFormat> {
        let candidate = NamedPath { path, begin: OnceCell::new() };
        all().find(|format| (format.is_one)(&candidate))
    }

    /// True where a recording is opened by itself: it is no archive, and no folder of traces.
    pub(super) fn is_file(&self) -> bool {
        matches!(self.opened_by, OpenedBy::File(_))
    }

    /// True where a recording is a folder, in which traces are searched.
    pub(super) fn is_folder(&self) -> bool {
        matches!(self.opened_by, OpenedBy::Ctf)
    }
}

/// A path that may be a recording.
pub(super) struct NamedPath<'a> {
    pub path: &'a Path,
    begin: OnceCell<Vec<u8>>,
}

impl NamedPath<'_> {
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

/// What may be named as a recording: `a perf.data, a trace.dat, or a file of DTrace or Perfetto`.
pub(super) fn listed() -> String {
    let (mut alone, mut files) = (Vec::new(), Vec::new());
    for format in all() {
        match format.listed {
            Listed::As(name) => alone.push(name),
            Listed::FileOf(tool) => files.push(tool),
        }
    }
    files.dedup();
    let last = files.pop().unwrap_or_default();
    format!("{}, or a file of {} or {last}", alone.join(", "), files.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_is_recognised_by_the_beginning_of_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let of = |begin: &[u8]| {
            let path = folder.path().join("file");
            std::fs::write(&path, begin).unwrap();
            InputFormat::at(&path).map(|format| format.name)
        };
        assert_eq!(of(b"\n\nwhyslow-dtrace\t1\tos=FreeBSD\n"), Some("DTrace text"));
        assert_eq!(of(b"BeginHeader\r\n"), Some("ETW text (xperf)"));
        assert_eq!(of(b"\xef\xbb\xbf   Event Name,   Type,"), Some("ETW text (tracerpt)"));
        assert_eq!(of(b"\x0a\x04\x40\x01\x50\x01"), Some("Perfetto"));
        assert_eq!(of(b"PERFILE2"), Some("perf.data"));
        for other in [&b"\x0a\x0d\x0d\x0a\x1c\0\0\0"[..], b"", b"\n", b"hello", b"\nThis is text", b"\x0a\x02zz"] {
            assert_eq!(of(other), None, "{other:?}");
        }
    }

    #[test]
    fn formats_have_names_of_their_own_and_are_documented() {
        let document = |name| std::fs::read_to_string(format!("{}/docs/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let documents = document("PRODUCT.md") + &document("OTHER-PLATFORMS.md");
        let mut names = Vec::new();
        for format in all() {
            let (Listed::As(words) | Listed::FileOf(words)) = format.listed;
            let words = words.trim_start_matches("a ").trim_start_matches("an ");
            assert!(!words.is_empty() && documents.contains(words), "{}: {words}", format.name);
            names.push(format.name);
        }
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }
}
