//! The format perf.data: its row in the registry, and how its recordings are recognised.
//!
//! In: a path. Out: the file with the header, where the path is a recording: the path itself, or `data` in a directory
//! of perf. Cost: the first eight bytes of that file.

use crate::base::mapped::open_regular;
use crate::input::format::{InputFormat, Listed, PLAIN};
use crate::model::recorder::TraceRecorder;
use std::path::Path;
use std::path::PathBuf;

/// A perf.data, or a directory of perf.
pub static FORMAT: InputFormat = InputFormat {
    name: "perf.data",
    listed: Listed::As("a perf.data"),
    is_one: |named| header_file(named.path).is_some(),
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
