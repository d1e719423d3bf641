//! The recording of the tour: compiled in, and written into the state folder when it is asked for.
//!
//! A path and not bytes, because the interface and the sandbox know recordings by their paths.

use super::state_folder;
use crate::base::file::{self, Existing};
use anyhow::Context;
use std::path::PathBuf;

/// The database of `fixtures/traces/lock-contention` (`fixtures/tour`).
static RECORDING: &[u8] = include_bytes!("../../fixtures/tour/lock-contention.whyslow");

/// The file of the recording.
pub fn path() -> PathBuf {
    state_folder::folder().unwrap_or_else(std::env::temp_dir).join("tour.whyslow")
}

/// Write it there.
pub fn prepare() -> anyhow::Result<()> {
    let path = path();
    let write = || file::write(&path, RECORDING, Existing::Replace);
    write().with_context(|| format!("{}: the recording of the tour cannot be written", path.display()))
}
