//! Definitions: what the ids in events mean. Global ones for the archive, local ones (id maps, clocks) per location.
//!
//! OTF2-FACTS section 5 and 6. Writers give definitions in any order, the same group id twice, and each rank its own
//! ids: so everything is collected first and resolved afterwards. Cost: linear in the file. A communicator shares the
//! member list of its group, so memory is linear in the file too.

use super::bytes::{Bytes, Chunks, Next};
use super::clock::LocalClock;
use crate::base::names::{NameId, Names};
use crate::base::notice::{Notice, Notices};
use foldhash::HashMap;

const CLOCK_PROPERTIES: u8 = 5;
const STRING: u8 = 10;
const LOCATION_GROUP: u8 = 13;
const LOCATION: u8 = 14;
const REGION: u8 = 15;
const GROUP: u8 = 18;
const COMM: u8 = 22;
const MAPPING_TABLE: u8 = 5;
const CLOCK_OFFSET: u8 = 6;

const COMM_LOCATIONS: u8 = 4;
const COMM_GROUP: u8 = 5;
const PARADIGM_MPI: u8 = 4;

crate::handle! {
    /// A location of one archive, in the order of their definitions.
    LocationId,
}

/// A location: one thread of one process; it is a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Its number in the archive, which names its files.
    pub number: u64,
    /// `P#3T#0`, as written.
    pub name: String,
    /// Name of its location group (the process).
    pub process: String,
    /// MPI rank, where it has one.
    pub rank: Option<u32>,
}

/// Global definitions, resolved.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    /// Names of regions.
    pub names: Names,
    /// Locations by [`LocationId`].
    pub locations: Vec<Location>,
    /// Ticks per second; 10^9 where not said.
    pub ticks_per_second: u64,
    /// First tick, as declared.
    pub global_offset: u64,
    /// Ticks of the trace, as declared (EZTrace: about those of rank 0; others go beyond).
    pub trace_length: u64,
    regions: HashMap<u32, NameId>,
    groups: Vec<Vec<Option<LocationId>>>,
    /// Position in `groups` by communicator.
    communicators: HashMap<u32, usize>,
}

impl Definitions {
    /// The name of a region, by global id.
    pub fn region(&self, id: u32) -> Option<NameId> {
        self.regions.get(&id).copied()
    }

    /// The members of a communicator in rank order, by global id; `None` inside for those without a location. The
    /// number is the same for all communicators with equal members (each rank may give one its own id).
    pub fn members(&self, communicator: u32) -> Option<(usize, &[Option<LocationId>])> {
        let group = *self.communicators.get(&communicator)?;
        Some((group, self.groups.get(group)?))
    }

    /// The location of rank `peer` of a communicator, by global id.
    pub fn peer(&self, communicator: u32, peer: u32) -> Option<LocationId> {
        *self.members(communicator)?.1.get(peer as usize)?
    }
}

/// A group as written.
struct Group {
    kind: u8,
    paradigm: u8,
    members: Vec<u64>,
}

/// Global definitions as written.
#[derive(Default)]
struct Written {
    strings: HashMap<u32, String>,
    locations: Vec<(u64, u32, u32)>,
    location_groups: HashMap<u32, u32>,
    regions: Vec<(u32, u32)>,
    groups: HashMap<u32, Group>,
    /// `COMM_LOCATIONS` groups apart from the others: EZTrace gives both the same id.
    rank_lists: Vec<(u32, Group)>,
    communicators: Vec<(u32, u32)>,
    clock: Option<(u64, u64, u64)>,
}

impl Written {
    fn record(&mut self, kind: u8, p: &mut Bytes<'_>) -> Option<()> {
        match kind {
            CLOCK_PROPERTIES => self.clock = Some((p.packed_u64()?, p.packed_u64()?, p.packed_u64()?)),
            STRING => {
                let id = p.packed_u32()?;
                self.strings.insert(id, String::from_utf8_lossy(p.string()?).into_owned());
            }
            LOCATION_GROUP => {
                let (id, name) = (p.packed_u32()?, p.packed_u32()?);
                self.location_groups.insert(id, name);
            }
            LOCATION => {
                let (number, name) = (p.packed_u64()?, p.packed_u32()?);
                p.u8()?;
                p.packed_u64()?; // the number of events as declared: EZTrace always says 2
                self.locations.push((number, name, p.packed_u32()?));
            }
            REGION => self.regions.push((p.packed_u32()?, p.packed_u32()?)),
            GROUP => {
                let id = p.packed_u32()?;
                p.packed_u32()?;
                let old_kind = p.u8()?;
                let count = p.packed_u32()?;
                let members = (0..count).map(|_| p.packed_u64()).collect::<Option<Vec<u64>>>()?;
                let kind = p.u8().unwrap_or(old_kind);
                let group = Group { kind, paradigm: p.u8().unwrap_or(PARADIGM_MPI), members };
                if kind == COMM_LOCATIONS {
                    self.rank_lists.push((id, group));
                } else {
                    self.groups.insert(id, group);
                }
            }
            COMM => {
                let id = p.packed_u32()?;
                p.packed_u32()?;
                self.communicators.push((id, p.packed_u32()?));
            }
            _ => {}
        }
        Some(())
    }

    fn text(&self, id: u32) -> &str {
        self.strings.get(&id).map_or("", |s| s)
    }

    /// The list of all ranks of a paradigm.
    fn rank_list(&self, paradigm: u8) -> &[u64] {
        let same = self.rank_lists.iter().find(|(_, g)| g.paradigm == paradigm);
        same.or(self.rank_lists.first()).map_or(&[], |(_, g)| &g.members)
    }

    fn resolve(self) -> Definitions {
        let mut names = Names::default();
        let regions = self.regions.iter().map(|(id, name)| (*id, names.intern(self.text(*name)))).collect();
        let mut by_number = HashMap::default();
        let mut rank_of = HashMap::default();
        for (rank, number) in (0_u32..).zip(self.rank_list(PARADIGM_MPI)) {
            rank_of.entry(*number).or_insert(rank);
        }
        let mut locations = Vec::new();
        for (number, name, group) in &self.locations {
            // A location defined twice has one file: the first definition stands.
            by_number.entry(*number).or_insert_with(|| {
                let process = self.location_groups.get(group).map_or("", |name| self.text(*name));
                locations.push(Location {
                    number: *number,
                    name: self.text(*name).to_owned(),
                    process: process.to_owned(),
                    rank: rank_of.get(number).copied(),
                });
                LocationId::at(locations.len() - 1)
            });
        }
        let (mut groups, mut group_at, mut communicators) = (Vec::new(), HashMap::default(), HashMap::default());
        let mut equal: HashMap<Vec<Option<LocationId>>, usize> = HashMap::default();
        for (communicator, id) in &self.communicators {
            let at = *group_at.entry(*id).or_insert_with(|| {
                let rank_list = || self.rank_lists.iter().find(|(other, _)| other == id).map(|(_, g)| g);
                let members = match self.groups.get(id).or_else(rank_list) {
                    Some(group) if group.kind == COMM_GROUP => {
                        let all = self.rank_list(group.paradigm);
                        let number = |index: &u64| usize::try_from(*index).ok().and_then(|i| all.get(i));
                        group.members.iter().map(|i| by_number.get(number(i)?).copied()).collect()
                    }
                    Some(group) => group.members.iter().map(|n| by_number.get(n).copied()).collect(),
                    None => Vec::new(),
                };
                *equal.entry(members).or_insert_with_key(|members| {
                    groups.push(members.clone());
                    groups.len() - 1
                })
            });
            communicators.insert(*communicator, at);
        }
        let (ticks_per_second, global_offset, trace_length) = self.clock.unwrap_or((1_000_000_000, 0, 0));
        let ticks_per_second = if ticks_per_second == 0 { 1_000_000_000 } else { ticks_per_second };
        Definitions { names, locations, ticks_per_second, global_offset, trace_length, regions, groups, communicators }
    }
}

/// Call `record` with type and payload of each definition of a file. What is cut or malformed is counted.
fn each(
    data: &[u8],
    chunk_size: u64,
    notices: &mut Notices,
    place: impl Fn() -> String,
    mut record: impl FnMut(u8, &mut Bytes<'_>) -> Option<()>,
) {
    let mut chunks = Chunks::new(data, chunk_size);
    loop {
        let read = match chunks.next() {
            Next::Type(kind) => chunks.bytes.payload().and_then(|mut payload| record(kind, &mut payload)),
            Next::Chunk => Some(()),
            Next::End => return,
            Next::Broken => None,
        };
        if read.is_none() {
            let offset = chunks.offset();
            notices.add(Notice::DamagedPacket, 1, || format!("{} at byte {offset}", place()));
            chunks.skip();
        }
    }
}

/// Read the global definitions.
pub(super) fn global(data: &[u8], chunk_size: u64, notices: &mut Notices, place: impl Fn() -> String) -> Definitions {
    let mut written = Written::default();
    each(data, chunk_size, notices, place, |kind, payload| written.record(kind, payload));
    written.resolve()
}

/// Replaces a location's own ids by the archive's.
#[derive(Clone, Debug, Default)]
pub(super) struct IdMap {
    /// Sorted by local id.
    pairs: Vec<(u64, u64)>,
}

impl IdMap {
    /// The global id; ids not in the table stay, and so does "undefined".
    pub(super) fn global(&self, local: u32) -> u32 {
        if self.pairs.is_empty() || local == u32::MAX {
            return local;
        }
        match self.pairs.binary_search_by_key(&u64::from(local), |(l, _)| *l) {
            Ok(i) => self.pairs.get(i).map_or(local, |(_, global)| *global as u32),
            Err(_) => local,
        }
    }
}

/// Local definitions of one location.
#[derive(Clone, Debug, Default)]
pub(super) struct LocalDefinitions {
    pub(super) regions: IdMap,
    pub(super) communicators: IdMap,
    pub(super) clock: LocalClock,
}

const MAP_REGIONS: u8 = 3;
const MAP_COMMUNICATORS: u8 = 6;
const DENSE: u8 = 0;

/// Read the local definitions of a location.
pub(super) fn local(
    data: &[u8],
    chunk_size: u64,
    notices: &mut Notices,
    place: impl Fn() -> String,
) -> LocalDefinitions {
    let mut found = LocalDefinitions::default();
    let mut offsets = Vec::new();
    each(data, chunk_size, notices, place, |kind, p| {
        match kind {
            MAPPING_TABLE => {
                let (what, count, mode) = (p.u8()?, p.packed_u64()?, p.u8()?);
                let pair = |i| {
                    if mode == DENSE { Some((i, p.packed_u64()?)) } else { Some((p.packed_u64()?, p.packed_u64()?)) }
                };
                let mut pairs = (0..count).map(pair).collect::<Option<Vec<_>>>()?;
                pairs.sort_unstable();
                match what {
                    MAP_REGIONS => found.regions = IdMap { pairs },
                    MAP_COMMUNICATORS => found.communicators = IdMap { pairs },
                    _ => {}
                }
            }
            CLOCK_OFFSET => offsets.push((p.full_u64()?, p.packed_u64()? as i64)),
            _ => {}
        }
        Some(())
    });
    found.clock = LocalClock::new(offsets);
    found
}
