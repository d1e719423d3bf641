//! Names of functions that a program compiled at run time, from copies of its `/tmp/perf-PID.map`.
//!
//! In: lines `START SIZE name`, numbers in hexadecimal. Out: the functions, added to a [`CodeBuilder`]. A runtime that
//! replaces a function appends a line: the last line that covers an address counts, because lines have no times. Read
//! only beside the trace, from `--symbols`, and where the recording is of this machine's present boot from `/tmp`.
//! perf's `tools/perf/Documentation/jit-interface.txt`.

use super::compiled::CodeBuilder;
use crate::base::mapped::open_regular;
use crate::base::time::Timestamp;
use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The most bytes of one file that are read: the map of a long-lived process can be huge.
const MOST: u64 = 1 << 30;

/// Where programs write the maps of their compiled code, unless an option of theirs names another place.
pub const TEMPORARY: &str = "/tmp";

/// The folder that may hold the maps of a trace: its own, or that of its file.
pub fn folder(trace: &Path) -> &Path {
    let parent = trace.parent().filter(|_| trace.is_file());
    parent.map_or(trace, |parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent })
}

/// The files about compiled code beside the files of traces: maps, dumps, and the files that `perf inject --jit` makes
/// of a dump; none for a folder, which is the trace.
pub fn beside<'t>(traces: impl IntoIterator<Item = &'t Path>) -> Vec<PathBuf> {
    let folders: BTreeSet<&Path> = traces.into_iter().filter(|trace| trace.is_file()).map(folder).collect();
    folders.into_iter().flat_map(about_code).collect()
}

/// The files about compiled code in a folder.
pub fn about_code(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let described = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_about_code));
    let mut files: Vec<PathBuf> = described.map(|entry| entry.path()).collect();
    files.sort();
    files
}

/// True for the names of files about code that a process compiled.
fn is_about_code(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let between = |before, after| name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
    between("perf-", ".map").or_else(|| between("jit-", ".dump")).is_some_and(is_number) || is_injected(name)
}

/// True for the names of files that `perf inject --jit` makes, one for each function: `jitted-PID-N.so`.
pub fn is_injected(name: &str) -> bool {
    let numbers = name.strip_prefix("jitted-").and_then(|rest| rest.strip_suffix(".so"));
    numbers.is_some_and(|numbers| numbers.bytes().all(|b| b.is_ascii_digit() || b == b'-'))
}

/// True for a file that may give the names of functions: in the folder that all users can write, it must be this user's
/// or root's, and no link. perf demands the same.
pub fn is_trusted(file: &Path) -> bool {
    file.parent() != Some(Path::new(TEMPORARY))
        || std::fs::symlink_metadata(file)
            .is_ok_and(|about| about.is_file() && [0, rustix::process::geteuid().as_raw()].contains(&about.uid()))
}

/// Read a file, see [`read`].
pub fn read_file(path: &Path, code: &mut CodeBuilder) -> io::Result<()> {
    read(BufReader::new(open_regular(path)?.take(MOST)), code)
}

/// Add the functions of a map. Other lines are skipped.
pub fn read(text: impl BufRead, code: &mut CodeBuilder) -> io::Result<()> {
    for line in text.split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        let mut words = line.splitn(3, ' ');
        let mut number = || u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok();
        if let (Some(start), Some(size)) = (number(), number())
            && let Some(name) = words.next()
        {
            code.add(start..start.saturating_add(size), Timestamp::MIN, name.trim_end());
        }
        if code.is_full() {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_of_a_file_is_where_its_maps_are() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("perf.data");
        for name in [
            "perf.data",
            "perf-12.map",
            "perf-x.map",
            "perf-.map",
            "perf-7.map",
            "notes-7.map",
            "jit-7.dump",
            "jitted-7-1.so",
            "jitted-7.txt",
        ] {
            std::fs::write(folder.path().join(name), b"").unwrap();
        }
        assert_eq!(super::folder(&trace), folder.path());
        assert_eq!(super::folder(folder.path()), folder.path());
        let found = ["jit-7.dump", "jitted-7-1.so", "perf-12.map", "perf-7.map"];
        assert_eq!(beside([trace.as_path(), &trace]), found.map(|name| folder.path().join(name)));
        assert!(beside([folder.path()]).is_empty());
    }

    #[test]
    fn at_gives_the_last_line_for_an_address() {
        let mut code = CodeBuilder::default();
        let text = b"1000 10 old\n2000 20 LazyCompile:~render app.js:7\nno function\n1000 8 new\n2ff0 20 a\n2ff8 4 b\n";
        read(&text[..], &mut code).unwrap();
        let code = code.finish();
        let at = |address| code.at(address, Timestamp::default()).unwrap_or("-");
        assert_eq!((at(0x1000), at(0x1008), at(0x1010), at(0xfff)), ("new", "old", "-", "-"));
        assert_eq!(at(0x201f), "LazyCompile:~render app.js:7");
        assert_eq!((at(0x2ff0), at(0x2ff8), at(0x2ffc)), ("a", "b", "a"));
    }
}
