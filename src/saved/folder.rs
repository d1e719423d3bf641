//! The databases below a folder, as a fleet collects them: by day, by host.
//!
//! In: a folder. Out: the files of a kind in it and in its folders, sorted, and what was not searched, with the reason.
//! Links are not followed: they may lead in a circle. Cost: a million entries at most, and the first bytes of each
//! file.

use super::SavedKind;
use std::ffi::OsStr;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

/// The number of directory entries that are examined.
const MOST_ENTRIES: usize = 1_000_000;
/// The depth of folders that are searched.
const DEEPEST: usize = 8;

/// The files of a kind below a folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FilesBelow {
    /// Their paths, sorted.
    pub found: Vec<PathBuf>,
    /// Folders and files that may be or hold others, each with the reason why they were not searched, sorted.
    pub unsearched: Vec<String>,
}

impl FilesBelow {
    fn leave_out(&mut self, path: &Path, why: impl std::fmt::Display) {
        self.unsearched.push(format!("{}: {why}", path.display()));
    }

    /// Examine an entry of a folder; the folder that it is, if it is one.
    fn examine(&mut self, kind: SavedKind, entry: &DirEntry) -> Option<PathBuf> {
        let path = entry.path();
        let entry = match entry.file_type() {
            Ok(entry) => entry,
            Err(e) => {
                self.leave_out(&path, e);
                return None;
            }
        };
        if entry.is_dir() {
            return Some(path);
        }
        if entry.is_file() {
            match kind.begins_at(&path) {
                Ok(true) => self.found.push(path),
                // An unreadable file may be anything; it counts as left out only where its name is that of a database.
                Err(e) if path.extension() == Some(OsStr::new("why")) => self.leave_out(&path, e),
                Ok(false) | Err(_) => {}
            }
        }
        None
    }
}

impl SavedKind {
    /// The files of the kind below a folder.
    pub fn below(self, folder: &Path) -> FilesBelow {
        self.below_within(folder, MOST_ENTRIES)
    }

    fn below_within(self, folder: &Path, mut left: usize) -> FilesBelow {
        let (mut files, mut folders) = (FilesBelow::default(), vec![(folder.to_owned(), 0)]);
        while let Some((folder, depth)) = folders.pop() {
            if depth > DEEPEST {
                files.leave_out(&folder, format_args!("more than {DEEPEST} folders deep"));
                continue;
            }
            let entries = match std::fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(e) => {
                    files.leave_out(&folder, e);
                    continue;
                }
            };
            for entry in entries {
                if left == 0 {
                    // One line for the whole search: what is left are as many folders as one likes.
                    files.leave_out(&folder, "too many files: name the folders one by one");
                    folders.clear();
                    break;
                }
                left -= 1;
                match entry {
                    Ok(entry) => folders.extend(files.examine(self, &entry).map(|below| (below, depth + 1))),
                    Err(e) => files.leave_out(&folder, e),
                }
            }
        }
        files.found.sort_unstable();
        files.unsearched.sort_unstable();
        files
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn below_finds_the_files_of_a_kind_in_all_folders() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("day/host")).unwrap();
        for name in ["b.why", "day/host/a.why"] {
            fs::write(path(name), SavedKind::Executions.magic()).unwrap();
        }
        fs::write(path("day/notes"), "none").unwrap();
        fs::write(path("day/states"), SavedKind::States.magic()).unwrap();
        std::os::unix::fs::symlink(folder.path(), path("day/loop")).unwrap();
        let found = |kind: SavedKind| kind.below(folder.path()).found;
        assert_eq!(found(SavedKind::Executions), [path("b.why"), path("day/host/a.why")]);
        assert_eq!(found(SavedKind::States), [path("day/states")]);
        assert!(SavedKind::Executions.below(folder.path()).unsearched.is_empty());
    }

    #[test]
    fn what_is_not_searched_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let none = SavedKind::Executions.below(&folder.path().join("none"));
        assert!(none.found.is_empty() && none.unsearched.len() == 1, "{none:?}");
        let deep = folder.path().join("1/2/3/4/5/6/7/8");
        fs::create_dir_all(deep.join("9")).unwrap();
        for folder in [deep.clone(), deep.join("9")] {
            fs::write(folder.join("a.why"), SavedKind::Executions.magic()).unwrap();
        }
        let below = SavedKind::Executions.below(folder.path());
        assert_eq!(below.found, [deep.join("a.why")]);
        assert_eq!(below.unsearched, [format!("{}: more than 8 folders deep", deep.join("9").display())]);
        for name in ["a", "b", "c"] {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("a.why"), "").unwrap();
        }
        let few = SavedKind::Executions.below_within(folder.path(), 4);
        assert_eq!(few.unsearched.len(), 1, "one line for all that is left: {few:?}");
        ["a", "b", "c"].iter().for_each(|name| fs::remove_dir_all(folder.path().join(name)).unwrap());
        let few = SavedKind::Executions.below_within(folder.path(), 8);
        assert!(few.found.is_empty() && few.unsearched.len() == 1, "{few:?}");
        assert!(few.unsearched[0].ends_with("8: too many files: name the folders one by one"), "{few:?}");
    }
}
