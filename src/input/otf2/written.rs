//! Global definitions as written in the file, and their resolution to [`Definitions`].
//!
//! In: the file of global definitions. Out: its locations, regions, communicators and names, resolved. Writers give
//! definitions in any order, use a group id twice, and give each rank its own ids, so all definitions are collected
//! first and resolved afterwards. Cost: linear in the file. OTF2-FACTS.md sections 5 and 6.

use super::bytes::{Bytes, Chunks, Next};
use super::definitions::{CallingContext, Definitions, Location, LocationId, LocationKind, RegionDefinition};
use super::named;
use crate::base::names::Names;
use crate::base::notice::{Notice, Notices};
use crate::base::text::copied;
use foldhash::HashMap;

const CLOCK_PROPERTIES: u8 = 5;
const STRING: u8 = 10;
const SYSTEM_TREE_NODE: u8 = 12;
const LOCATION_GROUP: u8 = 13;
const LOCATION: u8 = 14;
const REGION: u8 = 15;
const GROUP: u8 = 18;
const COMM: u8 = 22;
const CALLING_CONTEXT: u8 = 34;

const COMM_LOCATIONS: u8 = 4;
const COMM_GROUP: u8 = 5;
const PARADIGM_MPI: u8 = 4;

/// A group as written.
struct Group {
    kind: u8,
    paradigm: u8,
    members: Vec<u64>,
}

/// A location as written.
struct WrittenLocation {
    number: u64,
    name: u32,
    kind: u8,
    group: u32,
}

/// A location group as written.
#[derive(Clone, Copy)]
struct WrittenProcess {
    name: u32,
    node: u32,
    /// The process that created it, where it is an accelerator.
    creator: Option<u32>,
}

/// A node of the machine; `name` and `class` are strings.
struct WrittenNode {
    name: u32,
    class: u32,
    parent: u32,
}

/// A region as written.
struct WrittenRegion {
    id: u32,
    name: u32,
    role: u8,
    paradigm: u8,
}

/// A communicator as written.
struct WrittenCommunicator {
    id: u32,
    name: u32,
    group: u32,
}

/// See [`Definitions`].
struct WrittenClock {
    ticks_per_second: u64,
    global_offset: u64,
    trace_length: u64,
}

/// Global definitions as written.
#[derive(Default)]
struct Written {
    strings: HashMap<u32, String>,
    locations: Vec<WrittenLocation>,
    location_groups: HashMap<u32, WrittenProcess>,
    nodes: HashMap<u32, WrittenNode>,
    regions: Vec<WrittenRegion>,
    calling_contexts: HashMap<u32, CallingContext>,
    groups: HashMap<u32, Group>,
    /// `COMM_LOCATIONS` groups apart from the others: EZTrace gives both the same id.
    rank_lists: Vec<(u32, Group)>,
    communicators: Vec<WrittenCommunicator>,
    clock: Option<WrittenClock>,
    named: named::WrittenNames,
}

impl Written {
    fn record(&mut self, kind: u8, p: &mut Bytes<'_>) -> Option<()> {
        match kind {
            CLOCK_PROPERTIES => {
                let (ticks_per_second, global_offset) = (p.packed_u64()?, p.packed_u64()?);
                self.clock = Some(WrittenClock { ticks_per_second, global_offset, trace_length: p.packed_u64()? });
            }
            STRING => {
                let id = p.packed_u32()?;
                self.strings.insert(id, copied(p.string()?));
            }
            LOCATION_GROUP => {
                let (id, name) = (p.packed_u32()?, p.packed_u32()?);
                p.u8()?;
                let node = p.packed_u32().unwrap_or(u32::MAX);
                let creator = p.packed_u32().filter(|c| *c != u32::MAX && *c != id);
                self.location_groups.insert(id, WrittenProcess { name, node, creator });
            }
            LOCATION => {
                let (number, name) = (p.packed_u64()?, p.packed_u32()?);
                let kind = p.u8()?;
                p.packed_u64()?; // the number of events as declared: EZTrace always says 2
                self.locations.push(WrittenLocation { number, name, kind, group: p.packed_u32()? });
            }
            SYSTEM_TREE_NODE => {
                let id = p.packed_u32()?;
                let (name, class) = (p.packed_u32()?, p.packed_u32()?);
                self.nodes.insert(id, WrittenNode { name, class, parent: p.packed_u32()? });
            }
            REGION => {
                let (id, name) = (p.packed_u32()?, p.packed_u32()?);
                // Description, old type, file, lines; the mangled name, role and paradigm came later.
                let mut later = || {
                    p.packed_u32()?;
                    p.u8()?;
                    (0..4).try_for_each(|_| p.packed_u32().map(|_| ()))?;
                    Some((p.u8()?, p.u8()?))
                };
                let (role, paradigm) = later().unwrap_or_default();
                self.regions.push(WrittenRegion { id, name, role, paradigm });
            }
            CALLING_CONTEXT => {
                let (id, region) = (p.packed_u32()?, p.packed_u32()?);
                p.packed_u32()?;
                let parent = p.packed_u32().filter(|parent| *parent != u32::MAX);
                self.calling_contexts.insert(id, CallingContext { region, parent });
            }
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
                let (id, name) = (p.packed_u32()?, p.packed_u32()?);
                self.communicators.push(WrittenCommunicator { id, name, group: p.packed_u32()? });
            }
            _ => self.named.record(kind, p)?,
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

    /// The process of a location group: groups of accelerators have a creator.
    fn process(&self, group: u32) -> u32 {
        let made_by = |g: &u32| self.location_groups.get(g).and_then(|p| p.creator);
        // The number of steps is limited because a corrupt chain of creators may be a circle.
        std::iter::successors(Some(group), made_by).take(self.location_groups.len() + 1).last().unwrap_or(group)
    }

    /// The name of the node on which a process ran: the nearest of the class `node`, else the nearest.
    fn node(&self, process: &WrittenProcess) -> &str {
        let above = |id: &u32| self.nodes.get(id).map(|n| n.parent);
        let way = || std::iter::successors(Some(process.node), above).take(self.nodes.len() + 1);
        let named = |id: u32| self.nodes.get(&id);
        let of_class = way().filter_map(named).find(|n| self.text(n.class) == "node");
        of_class.or_else(|| named(process.node)).map_or("", |n| self.text(n.name))
    }

    fn locations(&self) -> (Vec<Location>, HashMap<u64, LocationId>) {
        let mut by_number = HashMap::default();
        let mut rank_of = HashMap::default();
        for (rank, number) in (0_u32..).zip(self.rank_list(PARADIGM_MPI)) {
            rank_of.entry(*number).or_insert(rank);
        }
        // The rank of one location is that of its process.
        let mut rank_of_process: HashMap<u32, u32> = HashMap::default();
        for l in &self.locations {
            if let Some(rank) = rank_of.get(&l.number) {
                rank_of_process.entry(self.process(l.group)).or_insert(*rank);
            }
        }
        let mut processes: HashMap<u32, (u32, u32)> = HashMap::default();
        let mut locations = Vec::new();
        for written in &self.locations {
            // A location defined twice has one file: the first definition counts.
            by_number.entry(written.number).or_insert_with(|| {
                let group = self.process(written.group);
                let process = self.location_groups.get(&group);
                let at = processes.len() as u32;
                let (process_index, members) = processes.entry(group).or_insert((at, 0));
                let member = *members;
                *members += 1;
                let ranked = |number: &u64| rank_of.get(number).copied();
                locations.push(Location {
                    number: written.number,
                    name: self.text(written.name).to_owned(),
                    process: process.map_or("", |p| self.text(p.name)).to_owned(),
                    process_index: *process_index,
                    member,
                    rank: ranked(&written.number).or_else(|| rank_of_process.get(&group).copied()),
                    kind: match written.kind {
                        2 => LocationKind::Stream,
                        3 => LocationKind::Metric,
                        _ => LocationKind::Thread,
                    },
                    node: process.map_or("", |p| self.node(p)).to_owned(),
                });
                LocationId::at(locations.len() - 1)
            });
        }
        (locations, by_number)
    }

    fn resolve(self) -> Definitions {
        let mut names = Names::default();
        let region = |region: &WrittenRegion| {
            let name = names.intern(self.text(region.name));
            (region.id, RegionDefinition { name, role: region.role, paradigm: region.paradigm })
        };
        let regions = self.regions.iter().map(region).collect();
        let (locations, by_number) = self.locations();
        let (mut groups, mut group_at, mut communicators) =
            (Vec::new(), HashMap::<u32, usize>::default(), HashMap::default());
        let mut equal: HashMap<Vec<Option<LocationId>>, usize> = HashMap::default();
        let of_communicators = self.communicators.iter().map(|c| (Some(c.id), c.group));
        let mut others: Vec<u32> = self.groups.keys().copied().collect();
        others.sort_unstable();
        for (communicator, id) in of_communicators.chain(others.into_iter().map(|id| (None, id))) {
            let at = *group_at.entry(id).or_insert_with(|| {
                let rank_list = || self.rank_lists.iter().find(|(other, _)| *other == id).map(|(_, g)| g);
                let members = match self.groups.get(&id).or_else(rank_list) {
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
            communicators.extend(communicator.map(|communicator| (communicator, at)));
        }
        let (ticks_per_second, global_offset, trace_length) =
            self.clock.as_ref().map_or((0, 0, 0), |c| (c.ticks_per_second, c.global_offset, c.trace_length));
        let ticks_per_second = if ticks_per_second == 0 { 1_000_000_000 } else { ticks_per_second };
        let named = |c: &WrittenCommunicator| (c.id, self.text(c.name).to_owned());
        let communicator_names = self.communicators.iter().map(named).collect();
        let calling_contexts = self.calling_contexts;
        let named = self.named.resolve(self.strings);
        Definitions {
            names,
            locations,
            ticks_per_second,
            global_offset,
            trace_length,
            regions,
            calling_contexts,
            groups,
            communicators,
            communicator_names,
            group_positions: group_at,
            named,
        }
    }
}

/// Call `record` with type and payload of each definition of a file. Definitions that are cut off or malformed raise a
/// notice.
pub(super) fn each(
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
