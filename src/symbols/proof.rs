//! The evidence that a file on this machine is the one that was traced.
//!
//! In: the recorded properties of a mapped file, and the file. A build id decides where one was recorded, and so does
//! the checksum in a debug link. Where neither was, two facts can contradict a file: another size, and a change
//! after it was mapped. The sizes that recorders give: LTTng's `bin_info` and `dlopen` the number of bytes between
//! the first and the last that are loaded (`memsz`), and whether the file is position independent; perf's `mmap` which
//! part of the file was mapped, in whole pages; trace-cmd's `--proc-map` the whole pages of all parts; an exec nothing
//! but the path. A file of the right size that has not changed since counts as the one that was traced. A file of
//! another size in memory is another file. For all others it is unknown: names from them are
//! [marked](crate::base::names::Names::mark_unproven).

use super::elf::{FileIdentity, LoadSegment};
use super::machine::SINCE_EPOCH;
use crate::base::time::Timestamp;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// The unit in which files are mapped.
const PAGE: u64 = 4096;

/// The recorded properties of a mapped file besides its path and its build id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mapping {
    pub extent: Option<MappedExtent>,
    /// The time of the first report that it is mapped, on the time line of the recording.
    pub reported: Timestamp,
}

/// The size of what was mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MappedExtent {
    /// All that is loaded: bytes from the first to the last.
    Loaded {
        /// Their number.
        bytes: u64,
        /// It can be loaded at any address.
        position_independent: bool,
    },
    /// A part of the file.
    Part {
        /// Its offset in the file.
        offset: u64,
        /// Bytes, in whole pages.
        bytes: u64,
    },
}

/// The evidence for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// It is the one that was traced.
    Same,
    /// Nothing shows that it is, or is not.
    Unknown,
    /// It is another one.
    Other,
}

/// Compare a file with the recorded mapping where there is no build id.
pub fn by_size_and_time(path: &Path, built: &FileIdentity, mapping: Mapping) -> Proof {
    match mapping.extent.and_then(|extent| fits(built, extent)) {
        Some(true) if is_older(path, mapping.reported) => Proof::Same,
        Some(false) => Proof::Other,
        _ => Proof::Unknown,
    }
}

/// `None` where the two cannot be compared.
fn fits(built: &FileIdentity, extent: MappedExtent) -> Option<bool> {
    match extent {
        MappedExtent::Loaded { bytes, position_independent } => {
            let loaded = built.loaded.filter(|_| bytes > 0)?;
            let is_exact = loaded == bytes && built.position_independent == position_independent;
            // trace-cmd lists whole pages of what is mapped from the file, whatever its kind.
            Some(is_exact || in_pages(built) == Some(bytes))
        }
        // Neighbouring parts may have been reported as one, so a part that is missing in the file proves nothing.
        MappedExtent::Part { offset, bytes } => {
            let page = |n: u64| n / PAGE * PAGE;
            let is_part = |segment: &LoadSegment| {
                let end = segment.offset.saturating_add(segment.size).div_ceil(PAGE).saturating_mul(PAGE);
                page(segment.offset) == offset && end.checked_sub(page(segment.offset)) == Some(bytes)
            };
            built.segments.iter().any(is_part).then_some(true)
        }
    }
}

/// Bytes of the pages that are mapped from a file, from the first to the last.
fn in_pages(built: &FileIdentity) -> Option<u64> {
    let first = built.segments.iter().map(|s| s.address / PAGE * PAGE).min()?;
    let end = |s: &LoadSegment| s.address.checked_add(s.size)?.checked_next_multiple_of(PAGE);
    built.segments.iter().filter(|s| s.size > 0).filter_map(end).max()?.checked_sub(first)
}

/// True where the file has not changed since.
fn is_older(path: &Path, reported: Timestamp) -> bool {
    let changed = std::fs::metadata(path).and_then(|about| about.modified()).ok();
    let since = changed.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    reported > SINCE_EPOCH && since.is_some_and(|since| since <= Duration::from_nanos(reported.ns().unsigned_abs()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn by_size_and_time_decides_where_there_is_no_build_id() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server");
        std::fs::write(&path, "").unwrap();
        let since = |time: SystemTime| Timestamp::new(time.duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64);
        let changed = since(std::fs::metadata(&path).unwrap().modified().unwrap());
        let built = FileIdentity {
            loaded: Some(0x6420),
            position_independent: true,
            segments: [(0, 0x1510), (0x2010, 0x1bed)]
                .map(|(offset, size)| LoadSegment { offset, size, address: offset })
                .into(),
            ..FileIdentity::default()
        };
        let loaded = |bytes| Some(MappedExtent::Loaded { bytes, position_independent: true });
        let part = |offset, bytes| Some(MappedExtent::Part { offset, bytes });
        let later = changed + 1;
        for (extent, reported, expected) in [
            (loaded(0x6420), later, Proof::Same),
            (loaded(0x6420), changed, Proof::Same),
            // Changed after it was mapped, or on a clock that has no date.
            (loaded(0x6420), changed - 1, Proof::Unknown),
            (loaded(0x6420), Timestamp::new(5_000_000_000), Proof::Unknown),
            (loaded(0x6421), later, Proof::Other),
            (Some(MappedExtent::Loaded { bytes: 0x6420, position_independent: false }), later, Proof::Other),
            (loaded(0), later, Proof::Unknown),
            (part(0x2000, 0x2000), later, Proof::Same),
            (part(0, 0x2000), later, Proof::Same),
            (part(0x2000, 0x1000), later, Proof::Unknown),
            (part(0x2000, 0x2000), changed - 1, Proof::Unknown),
            (None, later, Proof::Unknown),
        ] {
            assert_eq!(
                by_size_and_time(&path, &built, Mapping { extent, reported }),
                expected,
                "{extent:?} at {reported}"
            );
        }
        assert_eq!(
            by_size_and_time(&folder.path().join("gone"), &built, Mapping { extent: loaded(0x6420), reported: later }),
            Proof::Unknown
        );
    }
}
