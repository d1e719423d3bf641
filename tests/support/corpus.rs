//! The larger corpus of recordings, for tests that are ignored unless it is there.

use std::path::{Path, PathBuf};

/// A folder of the corpus: below `WHYSLOW_CORPUS`, else `target/corpus`. Panics where it is missing.
pub fn corpus(part: &str) -> PathBuf {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("target/corpus");
    let folder = std::env::var_os("WHYSLOW_CORPUS").map_or_else(default, PathBuf::from).join(part);
    assert!(folder.is_dir(), "no corpus at {}: unpack it there, or set WHYSLOW_CORPUS", folder.display());
    folder
}
