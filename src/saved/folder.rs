//! The databases below a folder, as a fleet collects them: by day, by host.
//!
//! In: a folder. Out: the files of a kind in it and in its folders, sorted. Links are not followed: they may lead in a
//! circle. Cost: a million entries at most, and the first bytes of each file.

use super::SavedKind;
use std::path::{Path, PathBuf};

/// The number of directory entries that are examined.
const MOST_ENTRIES: usize = 1_000_000;
/// The depth of folders that are searched.
const DEEPEST: usize = 8;

impl SavedKind {
    /// The files of the kind below a folder, sorted.
    pub fn below(self, folder: &Path) -> Vec<PathBuf> {
        let (mut found, mut folders, mut left) = (Vec::new(), vec![(folder.to_owned(), 0)], MOST_ENTRIES);
        while let Some((folder, depth)) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten().take(left) {
                left -= 1;
                let path = entry.path();
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() && depth < DEEPEST => folders.push((path, depth + 1)),
                    Ok(kind) if kind.is_file() && self.is_of(&path) => found.push(path),
                    _ => {}
                }
            }
        }
        found.sort_unstable();
        found
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
        assert_eq!(SavedKind::Executions.below(folder.path()), [path("b.why"), path("day/host/a.why")]);
        assert_eq!(SavedKind::States.below(folder.path()), [path("day/states")]);
        assert!(SavedKind::States.below(&path("none")).is_empty());
    }
}
