//! OTF2 archives, the traces of MPI runs: an anchor, global definitions, and per location (one thread of one process)
//! local definitions and events.
//!
//! [`Archive::open`] reads anchor and global definitions. [`Archive::open_location`] opens one location's two files;
//! its [`EventReader`] gives records. Files of different locations are independent, so locations are read in parallel.
//!
//! The layout (docs/OTF2-FACTS.md) was derived from the sources of OTF2 3.0.2 and checked against libotf2; it shares no
//! code with them.

mod account;
mod anchor;
mod bytes;
mod classes;
mod clock;
mod definitions;
mod events;
mod local;
mod named;
mod records;
mod written;

pub use account::CountedArchive;
pub use anchor::{Anchor, ArchiveError, find};
pub use classes::class_name;
pub use clock::LocalClock;
pub use definitions::{CommunicatorMembers, Definitions, Location, LocationId, LocationKind, RegionDefinition};
pub use events::EventReader;
pub use named::{MetricMode, TaskAttributes};
pub use records::{
    AttributeValue, CreatedThread, Envelope, EventAttribute, EventRecord, MetricValue, ParameterValue, RmaLock,
    TaskKey, TimedRecord,
};

use super::error::LeftOut;
use super::format::{InputFormat, Listed, PLAIN};
use super::{OpenError, Unreadable};
use crate::base::mapped::Mapped;
use crate::base::notice::{Notice, Notices};
use crate::base::time::{Timestamp, exact_ns};
use foldhash::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// An anchor file, or a folder that holds one.
pub static FORMAT: InputFormat = InputFormat {
    name: "OTF2",
    listed: Listed::As("an OTF2 archive"),
    is_one: |candidate| find(candidate.path).is_some(),
    ..PLAIN
};

/// The latest time, so that the difference of two times never overflows (73 years in ns).
const LATEST: Timestamp = Timestamp::new(1 << 61);

/// An opened archive.
#[derive(Debug)]
pub struct Archive {
    /// The anchor file.
    pub path: PathBuf,
    /// Contents.
    pub anchor: Anchor,
    /// Global definitions.
    pub definitions: Definitions,
    /// Irregularities in the definitions.
    pub notices: Notices,
    folder: PathBuf,
}

impl Archive {
    /// Open an anchor file, or the folder that holds one.
    pub fn open(path: &Path) -> Result<Archive, OpenError> {
        let failed = |error: ArchiveError, path: &Path| Unreadable::from(error).at(path);
        let found = find(path).ok_or_else(|| failed(ArchiveError::NoAnchor, path))?;
        let anchor = anchor::read(&found).map_err(|e| failed(e, &found))?;
        let file = found.with_extension("def");
        let data = Mapped::open(&file).map_err(|e| failed(ArchiveError::Definitions(e), &file))?;
        let mut notices = Notices::default();
        let definitions =
            written::global(data.bytes(), anchor.definition_chunk, &mut notices, || file.display().to_string());
        if definitions.locations.is_empty() {
            return Err(failed(ArchiveError::NoLocation, &file));
        }
        let archive = Archive { folder: found.with_extension(""), path: found, anchor, definitions, notices };
        Ok(archive.with_unlisted_files())
    }

    /// Add a notice of event files that belong to no location.
    fn with_unlisted_files(mut self) -> Archive {
        let listed: HashSet<u64> = self.definitions.locations.iter().map(|location| location.number).collect();
        let is_unlisted = |path: &PathBuf| {
            let number = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
            path.extension().is_some_and(|ending| ending == "evt") && number.is_none_or(|one| !listed.contains(&one))
        };
        // Where the folder cannot be listed, its files cannot be opened either, and that is said for each.
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut unlisted: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_unlisted).collect();
        unlisted.sort_unstable();
        let first = || unlisted.first().map_or_else(String::new, |path| path.display().to_string());
        self.notices.add(Notice::PartsUnclaimed, unlisted.len() as u64, first);
        self
    }

    /// Add the notice that something beside it was left out.
    pub fn left_out(&mut self, LeftOut { notice, place }: &LeftOut) {
        self.notices.add(*notice, 1, || place.clone());
    }

    /// Read the files of one location. A missing or unreadable event file is a notice and an empty location.
    pub fn open_location(&self, id: LocationId) -> LocationFiles {
        let mut notices = Notices::default();
        let number = self.definitions.locations.get(id.index()).map_or(0, |l| l.number);
        let file = |suffix: &str| self.folder.join(format!("{number}.{suffix}"));
        // Local definitions are often left out.
        let local = match Mapped::open(&file("def")) {
            Ok(data) => {
                let place = || format!("{number}.def");
                local::read(data.bytes(), self.anchor.definition_chunk, &mut notices, place)
            }
            Err(e) => {
                if e.kind() != ErrorKind::NotFound {
                    notices.add(Notice::DefinitionsUnreadable, 1, || format!("{}: {e}", file("def").display()));
                }
                local::LocalDefinitions::default()
            }
        };
        let data = Mapped::open(&file("evt"));
        if let Err(e) = &data {
            notices.add(Notice::DamagedStream, 1, || format!("{}: {e}", file("evt").display()));
        }
        LocationFiles {
            data: data.ok(),
            local,
            place: format!("{number}.evt"),
            chunk: self.anchor.event_chunk,
            notices,
        }
    }

    /// A notice of the event files that are not there. Cost: one look into the folder per location.
    pub fn missing_events(&self) -> Notices {
        let mut notices = Notices::default();
        for location in &self.definitions.locations {
            let file = self.folder.join(format!("{}.evt", location.number));
            if !file.exists() {
                notices.add(Notice::DamagedStream, 1, || format!("{}: no such file", file.display()));
            }
        }
        notices
    }

    /// Converts ticks to a time; `None` for ticks before or after the representable times.
    pub fn ns(&self, ticks: i128) -> Option<Timestamp> {
        exact_ns(ticks, self.definitions.ticks_per_second).filter(|t| t.ns().abs() < LATEST.ns())
    }
}

/// The files of one location.
#[derive(Debug)]
pub struct LocationFiles {
    /// `None` where the file cannot be read.
    data: Option<Mapped>,
    local: local::LocalDefinitions,
    place: String,
    chunk: u64,
    notices: Notices,
}

impl LocationFiles {
    /// Its event records, from the first.
    pub fn reader(&self) -> EventReader<'_> {
        EventReader::new(self.data(), self.chunk, &self.local, &self.place)
    }

    fn data(&self) -> &[u8] {
        self.data.as_ref().map_or(&[], Mapped::bytes)
    }

    /// Its clock against the archive's.
    pub fn clock(&self) -> &LocalClock {
        &self.local.clock
    }

    /// Bytes of events.
    pub fn bytes(&self) -> u64 {
        self.data().len() as u64
    }

    /// Files that could not be opened, or were truncated since: ask after reading everything.
    pub fn notices(&self) -> Notices {
        let mut notices = self.notices.clone();
        if self.data.as_ref().is_some_and(Mapped::lost) {
            notices.add(Notice::MappingLost, 1, || self.place.clone());
        }
        notices
    }
}
