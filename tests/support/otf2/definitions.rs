//! Global definitions of an OTF2 archive, and the files that hold it.
//!
//! In: calls that define things and give their ids. Out: anchor, global definitions, and the two files of each
//! location.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

use super::encoding::{ByteOrder, Chunks, UNDEFINED, packed32, packed64, record};
use super::events::{DEFINITION_CHUNK, EVENT_CHUNK, Events, Paradigm, Role};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Location groups of accelerators are numbered from here on.
const ACCELERATORS: u32 = 1 << 16;

/// An archive as it grows. Times are nanoseconds.
pub struct ArchiveWriter {
    folder: PathBuf,
    definitions: Vec<(u8, Vec<u8>)>,
    strings: BTreeMap<String, u32>,
    locations: Vec<u64>,
    processes: u32,
    regions: u32,
    groups: u32,
    communicators: u32,
    metrics: u32,
    parameters: u32,
    windows: u32,
    attributes: u32,
    records: BTreeMap<u64, u64>,
    /// First and last time.
    span: (u64, u64),
    threads: BTreeMap<u32, u32>,
}

impl ArchiveWriter {
    /// In a folder of its own, which is made; `traces.otf2` is the anchor.
    pub fn new(folder: &Path) -> Self {
        std::fs::create_dir_all(folder.join("traces")).unwrap();
        let mut writer = ArchiveWriter {
            folder: folder.to_owned(),
            definitions: Vec::new(),
            strings: BTreeMap::new(),
            locations: Vec::new(),
            processes: 0,
            regions: 0,
            groups: 0,
            communicators: 0,
            metrics: 0,
            parameters: 0,
            windows: 0,
            attributes: 0,
            records: BTreeMap::new(),
            span: (u64::MAX, 0),
            threads: BTreeMap::new(),
        };
        let (name, class) = (writer.string("node0"), writer.string("node"));
        writer.define(12, |p| {
            packed32(0, p);
            packed32(name, p);
            packed32(class, p);
            packed32(UNDEFINED, p);
        });
        writer
    }

    fn define(&mut self, kind: u8, fill: impl FnOnce(&mut Vec<u8>)) {
        let mut payload = Vec::new();
        fill(&mut payload);
        self.definitions.push((kind, payload));
    }

    /// The id of a text.
    pub fn string(&mut self, text: &str) -> u32 {
        if let Some(id) = self.strings.get(text) {
            return *id;
        }
        let id = self.strings.len() as u32;
        self.strings.insert(text.to_owned(), id);
        self.define(10, |p| {
            packed32(id, p);
            p.extend(text.as_bytes());
            p.push(0);
        });
        id
    }

    /// A region; it is a call of MPI if its name begins with `MPI_`.
    pub fn region(&mut self, name: &str) -> u32 {
        let paradigm = if name.starts_with("MPI_") { Paradigm::Mpi } else { Paradigm::Compiler };
        self.region_of(name, Role::Function, paradigm)
    }

    pub fn region_of(&mut self, name: &str, role: Role, paradigm: Paradigm) -> u32 {
        let (id, name) = (self.regions, self.string(name));
        self.regions += 1;
        self.define(15, |p| {
            [id, name, name].iter().for_each(|n| packed32(*n, p));
            p.push(0);
            [UNDEFINED, 0, 0, name].iter().for_each(|n| packed32(*n, p));
            p.extend([role as u8, paradigm as u8]);
            packed32(0, p);
        });
        id
    }

    /// A process with its first thread: the number of that location. Processes are ranks in the order of these calls.
    pub fn rank(&mut self) -> u64 {
        let rank = self.processes;
        self.processes += 1;
        let name = self.string(&format!("MPI Rank {rank}"));
        self.define(13, |p| {
            packed32(rank, p);
            packed32(name, p);
            p.push(1);
            packed32(0, p);
            packed32(UNDEFINED, p);
        });
        self.location(u64::from(rank), "Master thread", 1, rank)
    }

    /// One more thread of a rank.
    pub fn thread(&mut self, rank: u32) -> u64 {
        let thread = self.threads.entry(rank).or_insert(0);
        *thread += 1;
        let (number, name) = ((u64::from(*thread) << 32) + u64::from(rank), format!("OMP thread {thread}"));
        self.location(number, &name, 1, rank)
    }

    /// A queue of an accelerator of a rank.
    pub fn queue(&mut self, rank: u32, name: &str) -> u64 {
        let thread = self.threads.entry(rank).or_insert(0);
        *thread += 1;
        let number = (u64::from(*thread) << 32) + u64::from(rank);
        self.location(number, name, 2, rank)
    }

    /// A queue in a location group of its own, an accelerator's, whose creator is the group of a rank.
    pub fn accelerator(&mut self, rank: u32, device: &str, queue: &str) -> u64 {
        let thread = self.threads.entry(rank).or_insert(0);
        *thread += 1;
        let (number, group) = ((u64::from(*thread) << 32) + u64::from(rank), ACCELERATORS + rank);
        let name = self.string(device);
        self.define(13, |p| {
            packed32(group, p);
            packed32(name, p);
            p.push(2);
            packed32(UNDEFINED, p);
            packed32(rank, p);
        });
        self.location(number, queue, 2, group)
    }

    fn location(&mut self, number: u64, name: &str, kind: u8, process: u32) -> u64 {
        let name = self.string(name);
        self.define(14, |p| {
            packed64(number, p);
            packed32(name, p);
            p.push(kind);
            packed64(0, p);
            packed32(process, p);
        });
        self.locations.push(number);
        number
    }

    /// A group of `kind`: 4 lists the locations of all ranks (or threads of a paradigm), 5 counts in that list.
    pub fn group(&mut self, kind: u8, paradigm: Paradigm, members: &[u64]) -> u32 {
        let (id, name) = (self.groups, self.string(""));
        self.groups += 1;
        self.define(18, |p| {
            packed32(id, p);
            packed32(name, p);
            p.push(0);
            packed32(members.len() as u32, p);
            members.iter().for_each(|m| packed64(*m, p));
            p.extend([kind, paradigm as u8]);
            packed32(0, p);
        });
        id
    }

    /// A communicator, or a team of threads.
    pub fn communicator(&mut self, name: &str, group: u32) -> u32 {
        let (id, name) = (self.communicators, self.string(name));
        self.communicators += 1;
        self.define(22, |p| {
            [id, name, group, UNDEFINED, 0].iter().for_each(|n| packed32(*n, p));
        });
        id
    }

    /// The communicator of all ranks defined so far.
    pub fn world(&mut self) -> u32 {
        let ranks: Vec<u64> = (0..u64::from(self.processes)).collect();
        self.group(4, Paradigm::Mpi, &ranks);
        let group = self.group(5, Paradigm::Mpi, &ranks);
        self.communicator("MPI_COMM_WORLD", group)
    }

    /// Teams of threads: each a communicator over locations.
    pub fn teams(&mut self, teams: &[Vec<u64>]) -> Vec<u32> {
        let all: Vec<u64> = teams.concat();
        self.group(4, Paradigm::OpenMp, &all);
        let index = |member: &u64| all.iter().position(|m| m == member).unwrap() as u64;
        let team = |members: &Vec<u64>| -> u32 {
            let members: Vec<u64> = members.iter().map(index).collect();
            let group = self.group(5, Paradigm::OpenMp, &members);
            self.communicator("", group)
        };
        teams.iter().map(team).collect()
    }

    /// A metric class of one member that is recorded as it is (`accumulated`: since the beginning).
    pub fn metric(&mut self, name: &str, unit: &str, accumulated: bool, is_double: bool) -> u32 {
        self.scaled_metric(name, unit, accumulated, is_double, 0)
    }

    /// The same, whose values count 10 to the power of `exponent` units.
    pub fn scaled_metric(&mut self, name: &str, unit: &str, accumulated: bool, is_double: bool, exponent: i64) -> u32 {
        let (id, name, unit) = (self.metrics, self.string(name), self.string(unit));
        self.metrics += 1;
        self.define(19, |p| {
            [id, name, name].iter().for_each(|n| packed32(*n, p));
            // PAPI or other; accumulated since the start, or absolute at the point; type of the value; decimal.
            p.extend([0, if accumulated { 0 } else { 17 }, if is_double { 10 } else { 4 }, 1]);
            packed64(exponent as u64, p);
            packed32(unit, p);
        });
        self.define(20, |p| {
            packed32(id, p);
            p.push(1);
            packed32(id, p);
            p.extend([0, 1]);
        });
        id
    }

    /// A parameter: 0 text, 1 signed, 2 unsigned.
    pub fn parameter(&mut self, name: &str, kind: u8) -> u32 {
        let (id, name) = (self.parameters, self.string(name));
        self.parameters += 1;
        self.define(23, |p| {
            packed32(id, p);
            packed32(name, p);
            p.push(kind);
        });
        id
    }

    /// A window of memory for one-sided communication.
    pub fn window(&mut self, name: &str, communicator: u32) -> u32 {
        let (id, name) = (self.windows, self.string(name));
        self.windows += 1;
        self.define(24, |p| [id, name, communicator, 0].iter().for_each(|n| packed32(*n, p)));
        id
    }

    /// A handle of an open file.
    pub fn handle(&mut self, id: u32, name: &str) {
        let name = self.string(name);
        self.define(40, |p| {
            [id, name, UNDEFINED].iter().for_each(|n| packed32(*n, p));
            p.push(0);
            [0, UNDEFINED, UNDEFINED, 0].iter().for_each(|n| packed32(*n, p));
        });
    }

    /// An attribute of unsigned numbers.
    pub fn attribute(&mut self, name: &str) -> u32 {
        let (id, name) = (self.attributes, self.string(name));
        self.attributes += 1;
        self.define(11, |p| {
            [id, name, name].iter().for_each(|n| packed32(*n, p));
            p.push(4);
        });
        id
    }

    /// Write the files of a location.
    pub fn write_events(&mut self, location: u64, events: Events) {
        let file = |suffix: &str| self.folder.join("traces").join(format!("{location}.{suffix}"));
        let mut local = Chunks::new(DEFINITION_CHUNK, ByteOrder::Little);
        // Two readings of the clock, both right: recorded times are common.
        for at in [0, events.last + 1] {
            let mut payload = u64::to_le_bytes(at).to_vec();
            packed64(0, &mut payload);
            payload.extend(0.0_f64.to_le_bytes());
            record(6, &payload, &mut local.bytes);
        }
        std::fs::write(file("def"), local.finish()).unwrap();
        self.records.insert(location, events.records);
        self.span.1 = self.span.1.max(events.last);
        std::fs::write(file("evt"), events.finish()).unwrap();
    }

    /// Write anchor and global definitions: the anchor's path. Locations without events get empty files.
    pub fn finish(mut self) -> PathBuf {
        for location in self.locations.clone() {
            if !self.records.contains_key(&location) {
                self.write_events(location, Events::default());
            }
        }
        let end = self.span.1;
        self.define(5, |p| [1_000_000_000, 0, end, 0].iter().for_each(|n| packed64(*n, p)));
        let count = self.definitions.len() as u64;
        let mut chunks = Chunks::new(DEFINITION_CHUNK, ByteOrder::Little);
        for (kind, payload) in &self.definitions {
            if !chunks.fits(payload.len() + 20) {
                chunks.turn();
            }
            record(*kind, payload, &mut chunks.bytes);
        }
        std::fs::write(self.folder.join("traces.def"), chunks.finish()).unwrap();
        let mut anchor = vec![3, 0x42];
        anchor.extend(b"OTF2\0");
        anchor.extend([3, 2, 3, 0, 2]);
        anchor.extend((EVENT_CHUNK as u64).to_le_bytes());
        anchor.extend((DEFINITION_CHUNK as u64).to_le_bytes());
        anchor.extend([1, 1]);
        anchor.extend((self.locations.len() as u64).to_le_bytes());
        anchor.extend(count.to_le_bytes());
        anchor.extend(b"machine\0whyslow's tests\0\0");
        anchor.extend([0; 4]);
        anchor.extend(1_u64.to_le_bytes());
        anchor.extend([0; 8]);
        anchor.extend([2, 1, 0]);
        let path = self.folder.join("traces.otf2");
        std::fs::write(&path, anchor).unwrap();
        path
    }
}
