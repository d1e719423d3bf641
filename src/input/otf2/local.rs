//! Definitions of one location: the archive's ids for its own, and its clock.
//!
//! OTF2-FACTS.md section 6. Cost: linear in the file, and a binary search per id of an event.

use super::clock::{ClockOffset, LocalClock};
use super::written::each;
use crate::base::notice::Notices;

const MAPPING_TABLE: u8 = 5;
const CLOCK_OFFSET: u8 = 6;

/// Replaces a location's own ids by the archive's.
#[derive(Clone, Debug, Default)]
pub(super) struct IdMap {
    /// Sorted by local id.
    pairs: Vec<IdPair>,
}

/// A location's own id, and the archive's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct IdPair {
    local: u64,
    global: u64,
}

impl IdMap {
    /// The archive's id; ids that are not in the table, and "undefined", stay the same.
    pub(super) fn global(&self, local: u32) -> u32 {
        if self.pairs.is_empty() || local == u32::MAX {
            return local;
        }
        match self.pairs.binary_search_by_key(&u64::from(local), |pair| pair.local) {
            Ok(i) => self.pairs.get(i).map_or(local, |pair| pair.global as u32),
            Err(_) => local,
        }
    }
}

/// Local definitions of one location.
#[derive(Clone, Debug, Default)]
pub(super) struct LocalDefinitions {
    pub(super) regions: IdMap,
    pub(super) communicators: IdMap,
    pub(super) calling_contexts: IdMap,
    pub(super) strings: IdMap,
    pub(super) attributes: IdMap,
    pub(super) groups: IdMap,
    pub(super) metrics: IdMap,
    pub(super) parameters: IdMap,
    pub(super) windows: IdMap,
    pub(super) handles: IdMap,
    pub(super) clock: LocalClock,
}

const MAP_STRINGS: u8 = 0;
const MAP_ATTRIBUTES: u8 = 1;
const MAP_REGIONS: u8 = 3;
const MAP_GROUPS: u8 = 4;
const MAP_METRICS: u8 = 5;
const MAP_COMMUNICATORS: u8 = 6;
const MAP_PARAMETERS: u8 = 7;
const MAP_WINDOWS: u8 = 8;
const MAP_CALLING_CONTEXTS: u8 = 10;
const MAP_HANDLES: u8 = 13;
const DENSE: u8 = 0;

/// Read the local definitions of a location.
pub(super) fn read(
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
                    let local = if mode == DENSE { i } else { p.packed_u64()? };
                    Some(IdPair { local, global: p.packed_u64()? })
                };
                let mut pairs = (0..count).map(pair).collect::<Option<Vec<_>>>()?;
                pairs.sort_unstable();
                match what {
                    MAP_REGIONS => found.regions = IdMap { pairs },
                    MAP_COMMUNICATORS => found.communicators = IdMap { pairs },
                    MAP_CALLING_CONTEXTS => found.calling_contexts = IdMap { pairs },
                    MAP_ATTRIBUTES => found.attributes = IdMap { pairs },
                    MAP_STRINGS => found.strings = IdMap { pairs },
                    MAP_GROUPS => found.groups = IdMap { pairs },
                    MAP_METRICS => found.metrics = IdMap { pairs },
                    MAP_PARAMETERS => found.parameters = IdMap { pairs },
                    MAP_WINDOWS => found.windows = IdMap { pairs },
                    MAP_HANDLES => found.handles = IdMap { pairs },
                    _ => {}
                }
            }
            CLOCK_OFFSET => offsets.push(ClockOffset { time: p.full_u64()?, offset: p.packed_u64()? as i64 }),
            _ => {}
        }
        Some(())
    });
    found.clock = LocalClock::new(&offsets);
    found
}
