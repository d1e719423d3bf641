//! The registry of formats.
//!
//! In: a path. Out: its format, and how it is opened. [`all`] lists the formats in the order in which they are asked,
//! and in which messages name them. What a recorder can record, and how, is in `advice/`, because answers without a
//! trace ask that, too.

use super::error::OpenError;
use super::format::{InputFormat, Listed, NamedFile, NamedPath};
use super::trace::Trace;
use super::translated::{SpanFile, TranslatedFile, TranslatedFormat};
use super::{ctf, ftrace, otf2, perf, translated};
use std::path::Path;

/// A format of the registry.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownFormat {
    pub format: &'static InputFormat,
    pub opened_by: OpenedBy,
}

/// How recordings of a format are opened.
#[derive(Clone, Copy, Debug)]
pub(super) enum OpenedBy {
    /// CTF: folders are searched for traces, and all traces are opened together.
    Ctf,
    /// OTF2: an archive, which has no streams of the kernel's records.
    Otf2,
    /// A file or folder by itself.
    File(fn(&NamedFile<'_>) -> Result<Trace, OpenError>),
    /// A file that is translated.
    Translation(fn(&NamedFile<'_>) -> Result<TranslatedFile, OpenError>),
}

/// What was in a file.
#[derive(Debug)]
pub(super) enum OpenedFile {
    /// It has the kernel's events.
    Trace(Trace),
    /// It has spans of programs alone.
    Spans(Box<SpanFile>),
}

/// All formats.
fn all() -> impl Iterator<Item = KnownFormat> {
    let own = [
        KnownFormat::new(&ctf::FORMAT, OpenedBy::Ctf),
        KnownFormat::new(&otf2::FORMAT, OpenedBy::Otf2),
        KnownFormat::new(&perf::FORMAT, OpenedBy::File(|file| Ok(Trace::new(perf::open(file.path, file.ctx)?)))),
        KnownFormat::new(&ftrace::FORMAT, OpenedBy::File(|file| Ok(Trace::new(ftrace::open(file.path, file.ctx)?)))),
    ];
    let translated = |TranslatedFormat { format, open }: &'static TranslatedFormat| {
        KnownFormat::new(format, OpenedBy::Translation(*open))
    };
    own.into_iter().chain(translated::FORMATS.iter().map(translated))
}

/// The format of the recording at a path.
pub(super) fn at(path: &Path) -> Option<KnownFormat> {
    let candidate = NamedPath::new(path);
    all().find(|known| (known.format.is_one)(&candidate))
}

impl KnownFormat {
    fn new(format: &'static InputFormat, opened_by: OpenedBy) -> KnownFormat {
        KnownFormat { format, opened_by }
    }

    /// True where a recording is opened by itself: it is no archive, and no folder of traces.
    pub fn is_file(&self) -> bool {
        matches!(self.opened_by, OpenedBy::File(_) | OpenedBy::Translation(_))
    }

    /// True where a recording is a folder, in which traces are searched.
    pub fn is_folder(&self) -> bool {
        matches!(self.opened_by, OpenedBy::Ctf)
    }

    /// Open a recording by itself; `None` where the format has no such recordings.
    pub fn open(&self, file: &NamedFile<'_>) -> Result<Option<OpenedFile>, OpenError> {
        Ok(Some(match self.opened_by {
            OpenedBy::Ctf | OpenedBy::Otf2 => return Ok(None),
            OpenedBy::File(open) => OpenedFile::Trace(open(file)?),
            OpenedBy::Translation(open) => match open(file)? {
                TranslatedFile::Trace(trace) => OpenedFile::Trace(Trace::new(*trace)),
                TranslatedFile::Spans(file) => OpenedFile::Spans(file),
            },
        }))
    }
}

/// What may be named as a recording: `a perf.data, a trace.dat, or a file of DTrace or Perfetto`.
pub(super) fn listed() -> String {
    let (mut alone, mut files) = (Vec::new(), Vec::new());
    for KnownFormat { format, .. } in all() {
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
            at(&path).map(|known| known.format.name)
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
        for KnownFormat { format, .. } in all() {
            let (Listed::As(words) | Listed::FileOf(words)) = format.listed;
            let words = words.trim_start_matches("a ").trim_start_matches("an ");
            assert!(!words.is_empty() && documents.contains(words), "{}: {words}", format.name);
            names.push(format.name);
        }
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }
}
