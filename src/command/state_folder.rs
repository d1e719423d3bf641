//! The state folder: what was open in the interface, one small file for each recording.
//!
//! In: the traces of a command line. Out: the [`SavedView`] of the last session, unless the recording has changed
//! since: the files below it have another number, size or time. Files are named by a hash of the traces' paths and
//! hold those paths, so that two recordings never share a view. They are written whole (`base/file.rs`). No failure
//! here ends the program: without a folder nothing is kept. Cost: the entries of the recording's folders, at most
//! `ENTRIES`.

use crate::base::clean;
use crate::base::file::{self, Existing};
use crate::input::Argument;
use crate::tui::saved::SavedView;
use etcetera::BaseStrategy;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The form of the files; others are passed over.
const VERSION: u32 = 1;
/// Entries of a recording that are looked at.
const ENTRIES: usize = 20_000;
/// The largest file that is read.
const LARGEST: u64 = 4 << 20;
/// Recordings that are kept; the oldest are removed.
const RECORDINGS: usize = 100;

/// A trace as the command line named it, by its absolute path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedTrace {
    pub label: Option<String>,
    pub path: PathBuf,
}

impl OpenedTrace {
    /// The word that names it on a command line.
    pub fn word(&self) -> OsString {
        let mut word = self.label.as_ref().map_or_else(OsString::new, |label| OsString::from(format!("{label}=")));
        word.push(&self.path);
        word
    }
}

/// What distinguishes a recording from a changed one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Fingerprint {
    files: u64,
    bytes: u64,
    /// The latest change of a file, ns since 1970.
    changed_ns: i128,
}

impl Fingerprint {
    fn of(traces: &[OpenedTrace]) -> Fingerprint {
        let mut all = Fingerprint::default();
        let mut left = ENTRIES;
        let mut pending: Vec<PathBuf> = traces.iter().map(|trace| trace.path.clone()).collect();
        while let Some(path) = pending.pop() {
            let Ok(about) = std::fs::symlink_metadata(&path) else { continue };
            if about.is_dir() {
                let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
                for entry in entries.take(left) {
                    left -= 1;
                    pending.push(entry.path());
                }
            } else {
                all.add(&about);
            }
        }
        all
    }

    fn add(&mut self, file: &Metadata) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(file.len());
        let changed = i128::from(file.mtime()) * 1_000_000_000 + i128::from(file.mtime_nsec());
        self.changed_ns = self.changed_ns.max(changed);
    }
}

/// The content of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SavedFile {
    version: u32,
    traces: Vec<OpenedTrace>,
    fingerprint: Fingerprint,
    /// When it was open, seconds since 1970.
    opened_s: u64,
    view: SavedView,
}

/// What is known about a recording.
#[derive(Clone, Debug, Default)]
pub struct KnownRecording {
    /// What was open; with bookmarks alone where the recording has changed.
    pub view: Option<SavedView>,
    /// A sentence for the user.
    pub notice: Option<String>,
}

/// The file of a recording in the state folder.
#[derive(Clone, Debug)]
pub struct StateFile {
    path: PathBuf,
    traces: Vec<OpenedTrace>,
    fingerprint: Fingerprint,
}

/// The folder, if this user has a home.
pub fn folder() -> Option<PathBuf> {
    let strategy = etcetera::choose_base_strategy().ok()?;
    Some(strategy.state_dir()?.join("whyslow"))
}

/// Make the folder, for its owner alone: it names recordings and has private notes. The sandbox allows writing only
/// into folders that exist when it begins.
pub fn prepare() {
    if let Some(folder) = folder() {
        let _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    }
}

impl StateFile {
    /// The file of these traces in a folder.
    pub fn new(folder: &Path, traces: &[Argument]) -> StateFile {
        let opened = |trace: &Argument| OpenedTrace {
            label: trace.label.clone(),
            path: std::fs::canonicalize(&trace.path).unwrap_or_else(|_| trace.path.clone()),
        };
        let traces: Vec<OpenedTrace> = traces.iter().map(opened).collect();
        let path = folder.join(format!("{:016x}.json", hash(&traces)));
        StateFile { path, fingerprint: Fingerprint::of(&traces), traces }
    }

    /// What was open the last time.
    pub fn read(&self) -> KnownRecording {
        let Some(saved) = read(&self.path).filter(|saved| saved.traces == self.traces) else {
            return KnownRecording::default();
        };
        if saved.fingerprint == self.fingerprint {
            return KnownRecording { view: Some(saved.view), notice: None };
        }
        let bookmarks = saved.view.bookmarks;
        let notice = "the recording has changed since it was open last: beginning anew";
        KnownRecording {
            view: (!bookmarks.is_empty()).then(|| SavedView { bookmarks, ..SavedView::default() }),
            notice: Some(notice.to_owned()),
        }
    }

    /// Keep what is open now. Failures are passed over: a full disk or a home that cannot be written is no reason to
    /// disturb the user, who has not asked for a file.
    pub fn write(&self, view: &SavedView) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let saved = SavedFile {
            version: VERSION,
            traces: self.traces.clone(),
            fingerprint: self.fingerprint,
            opened_s: now,
            view: view.clone(),
        };
        if let Ok(text) = serde_json::to_vec(&saved)
            && file::write(&self.path, &text, Existing::Replace).is_ok()
            && let Some(folder) = self.path.parent()
        {
            remove_oldest(folder);
        }
    }
}

/// A recording that was open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecentRecording {
    pub traces: Vec<OpenedTrace>,
    /// When, seconds since 1970.
    pub opened_s: u64,
}

/// The recordings that were open and still exist, the latest first.
pub fn recent(folder: &Path) -> Vec<RecentRecording> {
    let mut all: Vec<RecentRecording> = files(folder)
        .iter()
        .filter_map(|path| read(path))
        .filter(|saved| !saved.traces.is_empty() && saved.traces.iter().all(|trace| trace.path.exists()))
        .map(|saved| RecentRecording { traces: saved.traces, opened_s: saved.opened_s })
        .collect();
    all.sort_by(|a, b| b.opened_s.cmp(&a.opened_s).then_with(|| a.traces[0].path.cmp(&b.traces[0].path)));
    all
}

/// The paths of the recordings that were open and still exist.
pub fn recent_paths() -> Vec<PathBuf> {
    let recordings = folder().map_or_else(Vec::new, |folder| recent(&folder));
    recordings.into_iter().flat_map(|recording| recording.traces).map(|trace| trace.path).collect()
}

/// The recent recordings as numbered lines.
pub fn listing(recent: &[RecentRecording]) -> String {
    let line = |(number, recording): (usize, &RecentRecording)| {
        let word = |trace: &OpenedTrace| trace.word().to_string_lossy().into_owned();
        let words: Vec<String> = recording.traces.iter().map(word).collect();
        format!("{number:>3}  {}\n", clean::line(&words.join(" ")))
    };
    (1..).zip(recent).map(line).collect()
}

fn read(path: &Path) -> Option<SavedFile> {
    let about = std::fs::symlink_metadata(path).ok()?;
    if !about.is_file() || about.len() > LARGEST {
        return None;
    }
    let saved: SavedFile = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    (saved.version == VERSION).then_some(saved)
}

/// The files of recordings in the folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|e| e == "json")).collect()
}

fn remove_oldest(folder: &Path) {
    let files = files(folder);
    if files.len() <= RECORDINGS {
        return;
    }
    let changed = |path: &PathBuf| std::fs::metadata(path).and_then(|about| about.modified()).unwrap_or(UNIX_EPOCH);
    let mut by_age: Vec<(SystemTime, PathBuf)> = files.into_iter().map(|path| (changed(&path), path)).collect();
    by_age.sort();
    for (_, path) in by_age.iter().take(by_age.len() - RECORDINGS) {
        let _ = std::fs::remove_file(path);
    }
}

/// FNV-1a over labels and paths: the same in every version of the program.
fn hash(traces: &[OpenedTrace]) -> u64 {
    let label = |trace: &OpenedTrace| trace.label.clone().unwrap_or_default().into_bytes();
    let bytes = traces.iter().flat_map(|trace| {
        let path = trace.path.as_os_str().as_bytes();
        label(trace).into_iter().chain([0]).chain(path.iter().copied()).chain([0]).collect::<Vec<u8>>()
    });
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argument(path: &Path) -> Argument {
        Argument::new(path.to_owned())
    }

    fn view() -> SavedView {
        SavedView { slow: "duration>=5ms".into(), pane: 1, ..SavedView::default() }
    }

    #[test]
    fn read_returns_what_was_written_for_the_same_recording_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (state, one, two) = (folder.path().join("state"), folder.path().join("one"), folder.path().join("two"));
        for path in [&state, &one, &two] {
            std::fs::create_dir(path).unwrap();
        }
        std::fs::write(one.join("stream"), b"events").unwrap();
        StateFile::new(&state, &[argument(&one)]).write(&view());
        assert_eq!(StateFile::new(&state, &[argument(&one)]).read().view, Some(view()));
        assert!(StateFile::new(&state, &[argument(&two)]).read().view.is_none());
        let labelled = Argument { label: Some("old".into()), ..Argument::new(one.clone()) };
        assert!(StateFile::new(&state, &[labelled]).read().view.is_none());
        let recent = recent(&state);
        assert_eq!(recent.len(), 1);
        assert!(listing(&recent).contains(&one.canonicalize().unwrap().display().to_string()));
    }

    #[test]
    fn read_gives_up_groups_of_a_recording_that_changed() {
        let folder = tempfile::tempdir().unwrap();
        let (state, trace) = (folder.path().join("state"), folder.path().join("trace"));
        std::fs::create_dir(&state).unwrap();
        std::fs::create_dir(&trace).unwrap();
        std::fs::write(trace.join("stream"), b"events").unwrap();
        StateFile::new(&state, &[argument(&trace)]).write(&view());
        std::fs::write(trace.join("stream"), b"more events").unwrap();
        let known = StateFile::new(&state, &[argument(&trace)]).read();
        assert!(known.view.is_none() && known.notice.unwrap().starts_with("the recording has changed"));
    }

    #[test]
    fn read_and_write_pass_over_missing_folders_and_damaged_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = StateFile::new(&folder.path().join("missing"), &[argument(folder.path())]);
        file.write(&view());
        assert!(file.read().view.is_none() && recent(&folder.path().join("missing")).is_empty());
        let state = folder.path().join("state");
        std::fs::create_dir(&state).unwrap();
        let file = StateFile::new(&state, &[argument(folder.path())]);
        for damaged in [&b""[..], b"{", b"[1]", b"{\"version\":2}", &[0xff; 40]] {
            std::fs::write(&file.path, damaged).unwrap();
            assert!(file.read().view.is_none());
        }
    }

    #[test]
    fn write_keeps_the_latest_recordings() {
        let state = tempfile::tempdir().unwrap();
        for at in 0..RECORDINGS + 5 {
            StateFile::new(state.path(), &[argument(&PathBuf::from(format!("/traces/{at}")))]).write(&view());
        }
        assert_eq!(files(state.path()).len(), RECORDINGS);
    }
}
