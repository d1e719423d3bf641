//! Recordings below and around a path.
//!
//! In: a path. Out: the recordings of a folder and its subfolders that are not CTF traces, or the recording of which
//! the path is a part. Links are not followed: they may lead in a circle. Cost: at most 10,000 directory entries.

use super::{formats, otf2, perf};
use std::path::{Path, PathBuf};

/// The number of directory entries that are examined.
const MOST_ENTRIES: usize = 10_000;
/// The depth of folders that are searched.
const DEEPEST: usize = 4;
/// The number of folders around a path that may be the recording.
const PARENTS: usize = 2;

/// OTF2 anchors, perf.data and trace.dat below a folder, sorted.
pub(super) fn other_recordings_below(folder: &Path) -> Vec<PathBuf> {
    let mut search = Search { left: MOST_ENTRIES, ..Search::default() };
    search.look_into(folder, DEEPEST);
    search.found.sort_unstable();
    search.found
}

/// The recording of a folder that holds no other.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OnlyRecording {
    pub path: PathBuf,
    /// Folders that could not be opened, each with the reason: others may be in them.
    pub unopened: Vec<String>,
}

/// True for a folder that holds a recording, at any depth that is searched.
pub(super) fn holds_recording(folder: &Path) -> bool {
    let mut search = Search { left: MOST_ENTRIES, ends_at_ctf: true, ..Search::default() };
    search.look_into(folder, DEEPEST);
    search.has_ctf || !search.found.is_empty()
}

/// The perf.data, trace.dat or OTF2 archive in a folder that holds no other recording.
pub(super) fn only_recording_in(folder: &Path) -> Option<OnlyRecording> {
    let mut search = Search { left: MOST_ENTRIES, ends_at_ctf: true, ..Search::default() };
    search.look_into(folder, DEEPEST);
    // Where entries were left out, other recordings may be among them.
    let is_whole = search.left > 0 && !search.has_ctf;
    let only = search.found.pop().filter(|_| is_whole && search.found.is_empty())?;
    let path = Some(only).filter(|path| is_recording(path))?;
    search.unopened.sort_unstable();
    Some(OnlyRecording { path, unopened: search.unopened })
}

/// The two recordings of a folder that holds no other: perf's, and the kernel's events that were recorded beside it
/// (`whyslow record` writes both).
pub(super) fn pair_in(folder: &Path) -> Option<[PathBuf; 2]> {
    let mut search = Search { left: MOST_ENTRIES, ends_at_ctf: true, ..Search::default() };
    search.look_into(folder, DEEPEST);
    search.found.sort_unstable();
    let pair = ["perf.data", "trace.dat"].map(|name| folder.join(name));
    (search.left > 0 && !search.has_ctf && search.found == pair).then_some(pair)
}

#[derive(Default)]
struct Search {
    /// Directory entries that may still be examined.
    left: usize,
    found: Vec<PathBuf>,
    unopened: Vec<String>,
    /// A CTF trace was seen.
    has_ctf: bool,
    /// The search ends at the first CTF trace.
    ends_at_ctf: bool,
}

impl Search {
    fn look_into(&mut self, folder: &Path, depth: usize) {
        self.has_ctf |= folder.join("metadata").is_file();
        if self.has_ctf && self.ends_at_ctf {
            return;
        }
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(e) => return self.unopened.push(format!("{}: {e}", folder.display())),
        };
        let mut folders = Vec::new();
        for entry in entries.flatten() {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && perf::header_file(&path).is_some() => self.found.push(path),
                Ok(kind) if kind.is_dir() => folders.push(path),
                // `data` in a folder is the header of a recording that is the folder.
                Ok(kind) if kind.is_file() && is_recording(&path) => match path.file_name() {
                    Some(name) if name == "data" => self.found.push(folder.to_owned()),
                    _ => self.found.push(path),
                },
                _ => {}
            }
        }
        if depth > 0 {
            folders.iter().for_each(|folder| self.look_into(folder, depth - 1));
        }
    }
}

/// True for a recording that is no CTF trace.
fn is_recording(path: &Path) -> bool {
    formats::at(path).is_some_and(|known| !known.is_folder())
}

/// The trace or archive that holds a path in itself (`channel0_0`, `traces/0.evt`) or one folder down (`index`).
pub(super) fn recording_around(path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    absolute.ancestors().skip(1).take(PARENTS).find_map(|folder| {
        let shown = path.ancestors().find(|shown| std::path::absolute(shown).is_ok_and(|shown| shown == folder));
        let shown = shown.filter(|shown| !shown.as_os_str().is_empty()).unwrap_or(folder);
        let is_trace = folder.join("metadata").is_file();
        is_trace.then(|| shown.to_owned()).or_else(|| otf2::find(shown))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_recording_in_a_folder_stands_for_it() {
        let perf = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recorders/switch.data");
        let folder = tempfile::tempdir().unwrap();
        let only_in = |folder: &Path| only_recording_in(folder).map(|only| only.path);
        let only = || only_in(folder.path());
        assert_eq!(only(), None);
        let first = folder.path().join("perf.data");
        std::fs::copy(&perf, &first).unwrap();
        std::fs::write(folder.path().join("record.log"), "lost: nothing").unwrap();
        assert_eq!(only(), Some(first));
        // A folder with `data` is a recording itself, whether or not its header could be read before.
        let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recorders/dir.data");
        assert_eq!(only_in(&whole), Some(whole));
        // An OTF2 archive is its anchor.
        let run = tempfile::tempdir().unwrap();
        std::fs::create_dir(run.path().join("trace")).unwrap();
        let anchor = run.path().join("trace/run.otf2");
        std::fs::write(&anchor, "").unwrap();
        assert_eq!(only_in(run.path()), Some(anchor));
        // With a second recording of any kind it is not clear which is meant.
        std::fs::create_dir(folder.path().join("ust")).unwrap();
        std::fs::write(folder.path().join("ust/metadata"), "/* CTF 1.8 */").unwrap();
        assert_eq!(only(), None);
        std::fs::remove_file(folder.path().join("ust/metadata")).unwrap();
        std::fs::copy(&perf, folder.path().join("ust/perf.data")).unwrap();
        assert_eq!(only(), None);
    }
}
