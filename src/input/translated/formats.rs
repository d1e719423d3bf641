//! The formats whose files are translated, each with its translation.
//!
//! In: a file of a known format. Out: the recording, or the spans of programs where the file has no events of the
//! kernel: these are placed beside a recording of the kernel (`input/beside.rs`). Cost: one pass over the file.

use super::about::{PlainSource, Translated, TranslatedTrace};
use super::chrome;
use super::dtrace;
use super::error::TranslationError;
use super::firefox;
use super::folded;
use super::perfetto;
use super::script;
use super::span_file::SpanFile;
use super::tracerpt;
use super::translation::Translation;
use super::xperf;
use crate::base::mapped;
use crate::input::format::{InputFormat, Listed, NamedFile, PLAIN};
use crate::input::{OpenError, Unreadable};
use crate::model::recorder::TraceRecorder;
use std::io;
use std::io::BufReader;

/// A format, and the translation of its files.
#[derive(Debug)]
pub struct TranslatedFormat {
    pub format: InputFormat,
    pub open: fn(&NamedFile<'_>) -> Result<TranslatedFile, OpenError>,
}

/// What was in a file.
#[derive(Debug)]
pub enum TranslatedFile {
    /// It has the kernel's events.
    Trace(Box<TranslatedTrace>),
    /// It has spans of programs alone.
    Spans(Box<SpanFile>),
}

/// The formats, in the order in which a file is asked for them.
pub static FORMATS: [TranslatedFormat; 8] = [
    TranslatedFormat {
        format: InputFormat {
            name: "DTrace text",
            listed: Listed::FileOf("DTrace"),
            is_one: |named| named.text().starts_with(dtrace::BEGIN.as_bytes()),
            recorder: TraceRecorder::Dtrace,
            ..PLAIN
        },
        open: |file| translated(file, |from, to| Ok(dtrace::read(&mut from.reader, to))),
    },
    TranslatedFormat {
        format: InputFormat {
            name: "ETW text (xperf)",
            listed: Listed::FileOf("ETW"),
            is_one: |named| named.text().starts_with(xperf::BEGIN.as_bytes()),
            recorder: TraceRecorder::Etw,
            ..PLAIN
        },
        open: |file| translated(file, |from, to| Ok(xperf::read(&mut from.reader, to))),
    },
    TranslatedFormat {
        format: InputFormat {
            name: "ETW text (tracerpt)",
            listed: Listed::FileOf("ETW"),
            is_one: |named| named.text().starts_with(tracerpt::BEGIN.as_bytes()),
            recorder: TraceRecorder::Etw,
            ..PLAIN
        },
        open: |file| translated(file, |from, to| Ok(tracerpt::read(&mut from.reader, to))),
    },
    TranslatedFormat {
        format: InputFormat {
            name: "Perfetto",
            listed: Listed::FileOf("Perfetto"),
            is_one: |named| perfetto::is_one(named.begin()),
            recorder: TraceRecorder::Perfetto,
            ..PLAIN
        },
        open: |file| translated(file, |from, to| Ok(perfetto::read(&mut from.reader, to))),
    },
    TranslatedFormat {
        format: InputFormat {
            name: "Chrome JSON",
            listed: Listed::FileOf("Chrome JSON"),
            is_one: |named| chrome::is_one(named.begin()),
            ..PLAIN
        },
        open: |file| translated(file, |from, to| Ok(chrome::read(&mut from.reader, from.size, to))),
    },
    TranslatedFormat {
        format: InputFormat {
            name: "perf script text",
            listed: Listed::As("text of `perf script`"),
            is_one: |named| script::is_one(named.begin()),
            recorder: TraceRecorder::Perf,
            ..PLAIN
        },
        open: |file| translated(file, |_, to| script::read_file(file.path, to, file.ctx)),
    },
    TranslatedFormat {
        format: InputFormat {
            name: "folded stacks",
            listed: Listed::As("folded stacks"),
            is_one: |named| folded::is_one(named.begin()),
            ..PLAIN
        },
        open: |file| translated(file, |from, to| Ok(folded::read(&mut from.reader, to))),
    },
    TranslatedFormat {
        format: InputFormat {
            name: "Firefox profile",
            listed: Listed::As("a Firefox profile"),
            is_one: |named| firefox::is_one(named.begin()),
            ..PLAIN
        },
        open: |file| translated(file, |from, to| Ok(firefox::read(&mut from.reader, from.size, to))),
    },
];

/// Open a file by the translation of its format.
fn translated(
    file: &NamedFile<'_>,
    read: impl FnOnce(&mut PlainSource, &mut Translation) -> Translated,
) -> Result<TranslatedFile, OpenError> {
    let path = file.path;
    let io = |e: io::Error| Unreadable::from(e).at(path);
    let opened = mapped::open_regular(path).map_err(io)?;
    let size = opened.metadata().map_err(io)?.len();
    let mut source = PlainSource { reader: BufReader::with_capacity(1 << 18, opened), size };
    let mut translation = Translation::new(file.shown.to_owned());
    let read = read(&mut source, &mut translation)?;
    let mut about = read.map_err(io)?.map_err(|e| Unreadable::from(e).at(path))?;
    match about.spans.take() {
        Some(spans) if spans.is_empty() => Err(Unreadable::from(TranslationError::NoSpans).at(path)),
        Some(spans) => Ok(TranslatedFile::Spans(Box::new(SpanFile::new(file, spans, about, translation)))),
        None => Ok(TranslatedFile::Trace(Box::new(about.trace(translation.seal(file.format))))),
    }
}
