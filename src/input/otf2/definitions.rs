//! Global definitions: the objects that the ids in events name. `written` reads them from the file; the definitions of
//! one location (id maps, clocks) are in [`super::local`].
//!
//! OTF2-FACTS.md sections 5 and 6. A communicator shares the member list of its group, so memory is linear in the file.

use super::named::NameTables;
use crate::base::names::{NameId, Names};
use foldhash::HashMap;

crate::base::names::handle! {
    /// A location of one archive, in the order of their definitions.
    LocationId,
}

/// The kind of a location.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LocationKind {
    #[default]
    Thread,
    /// A queue of an accelerator (a CUDA stream, an OpenCL command queue).
    Stream,
    /// Only values of metrics are recorded there.
    Metric,
}

/// A region as defined. Role and paradigm are 0 where the writer does not give them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionDefinition {
    pub name: NameId,
    /// Role; OTF2's number.
    pub role: u8,
    /// Paradigm; OTF2's number.
    pub paradigm: u8,
}

/// A location: one thread of one process, or one queue of an accelerator; it is a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Its number in the archive, which names its files.
    pub number: u64,
    /// `P#3T#0`, as written.
    pub name: String,
    /// Name of its location group (the process).
    pub process: String,
    /// Position of its process among all processes, in the order of their first locations. The queues of an accelerator
    /// belong to the process that created them.
    pub process_index: u32,
    /// Position among the locations of its process, threads first: 0 is the master.
    pub member: u32,
    /// MPI rank of its process, where it has one.
    pub rank: Option<u32>,
    pub kind: LocationKind,
    /// Name of the node of the machine on which it ran; empty where not recorded.
    pub node: String,
}

impl Location {
    /// Display name: `rank 2` for a process with one location and for its master, else `rank 2 thread 1`.
    pub fn label(&self) -> String {
        let process = self.rank.map_or_else(|| self.process.clone(), |rank| format!("rank {rank}"));
        match (self.kind, self.member, process.is_empty()) {
            (_, _, true) => self.name.clone(),
            (LocationKind::Thread, 0, _) if self.rank.is_some() => process,
            (LocationKind::Thread, member, _) if self.rank.is_some() => format!("{process} thread {member}"),
            _ => format!("{process} {}", self.name),
        }
    }
}

/// Global definitions, resolved.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    /// Names of regions.
    pub names: Names,
    /// Locations by [`LocationId`].
    pub locations: Vec<Location>,
    /// Ticks per second; 10^9 where not recorded.
    pub ticks_per_second: u64,
    /// First tick, as declared.
    pub global_offset: u64,
    /// Ticks of the trace, as declared (EZTrace: about those of rank 0; others go beyond).
    pub trace_length: u64,
    pub(super) regions: HashMap<u32, RegionDefinition>,
    /// By id.
    pub(super) calling_contexts: HashMap<u32, CallingContext>,
    pub(super) groups: Vec<Vec<Option<LocationId>>>,
    /// Position in `groups` by communicator.
    pub(super) communicators: HashMap<u32, usize>,
    pub(super) communicator_names: HashMap<u32, String>,
    /// Position in `groups` by group.
    pub(super) group_positions: HashMap<u32, usize>,
    /// Metrics, parameters, windows, handles.
    pub named: NameTables,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallingContext {
    /// Global id of its region.
    pub region: u32,
    /// Global id of the context around it, if there is one.
    pub parent: Option<u32>,
}

/// The members of a communicator.
#[derive(Clone, Copy, Debug)]
pub struct CommunicatorMembers<'a> {
    /// Equal for all communicators with equal members: each rank may give its communicator an id of its own.
    pub group: usize,
    /// By rank, the location; `None` for a rank without one.
    pub ranks: &'a [Option<LocationId>],
}

impl Definitions {
    /// A region, by global id.
    pub fn region(&self, id: u32) -> Option<RegionDefinition> {
        self.regions.get(&id).copied()
    }

    /// All regions with their global ids, in order of these.
    pub fn regions(&self) -> impl Iterator<Item = (u32, RegionDefinition)> {
        let mut all: Vec<(u32, RegionDefinition)> = self.regions.iter().map(|(id, region)| (*id, *region)).collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        all.into_iter()
    }

    /// A calling context, by global id.
    pub fn calling_context(&self, id: u32) -> Option<CallingContext> {
        self.calling_contexts.get(&id).copied()
    }

    /// The name of a communicator, by global id; empty where it has none.
    pub fn communicator_name(&self, id: u32) -> &str {
        self.communicator_names.get(&id).map_or("", |name| name)
    }

    /// The number of communicators with known members.
    pub fn communicators(&self) -> usize {
        self.communicators.len()
    }

    /// The members of a communicator with this global id.
    pub fn members(&self, communicator: u32) -> Option<CommunicatorMembers<'_>> {
        let group = *self.communicators.get(&communicator)?;
        Some(CommunicatorMembers { group, ranks: self.groups.get(group)? })
    }

    /// The members of a group, by global id.
    pub fn group(&self, id: u32) -> &[Option<LocationId>] {
        let at = self.group_positions.get(&id);
        at.and_then(|at| self.groups.get(*at)).map_or(&[], Vec::as_slice)
    }

    /// The location of rank `peer` of a communicator, by global id.
    pub fn peer(&self, communicator: u32, peer: u32) -> Option<LocationId> {
        *self.members(communicator)?.ranks.get(peer as usize)?
    }
}
