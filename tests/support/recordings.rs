//! Recorded traces for tests that read them all: the fixtures, those of the corpus where it is there, and damaged
//! copies.

use super::corpus;
use corpus::corpus;
use std::path::{Path, PathBuf};

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(folder).into_iter().flatten().map(|e| e.unwrap().path()).collect();
    paths.retain(|path| path.is_dir());
    paths.sort();
    paths
}

/// The traces in `fixtures/traces`.
pub fn fixtures() -> Vec<PathBuf> {
    folders_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces"))
}

/// One whose streams are in several files.
pub fn split_files() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces/split-files")
}

/// The CTF recordings of the corpus.
pub fn of_corpus() -> Vec<PathBuf> {
    ["kernel", "kernel/extras", "public/real"].iter().flat_map(|group| folders_in(&corpus(group))).collect()
}

/// Copy a recording and overwrite some bytes of each of its stream files; `random(n)` is below `n`.
pub fn damage(from: &Path, to: &Path, bytes: usize, random: &mut impl FnMut(usize) -> usize) {
    std::fs::create_dir_all(to).unwrap();
    let mut entries: Vec<_> = std::fs::read_dir(from).unwrap().map(|e| e.unwrap()).collect();
    entries.sort_by_key(|e| e.file_name());
    for entry in entries {
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            damage(&path, &copy, bytes, random);
            continue;
        }
        let mut content = std::fs::read(&path).unwrap();
        if entry.file_name() != "metadata" && !path.components().any(|c| c.as_os_str() == "index") {
            for _ in 0..bytes.min(content.len()) {
                let at = random(content.len());
                content[at] = random(256) as u8;
            }
        }
        std::fs::write(copy, content).unwrap();
    }
}
