//! How many events of each name a recording holds: `stats count`.

use std::collections::BTreeMap;

/// Counts over all traces together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// Events of each name that occurs (`""`: events without name).
    pub per_name: BTreeMap<String, u64>,
    pub events: u64,
    /// Events that the tracer says it discarded.
    pub discarded_events: u64,
    /// Packets that the tracer numbered and that are not there.
    pub discarded_packets: u64,
    pub streams: u64,
    pub packets: u64,
}

/// `stats count` of an archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveCounts {
    /// Event records.
    pub events: u64,
    /// By record type.
    pub per_name: BTreeMap<String, u64>,
    /// Locations.
    pub streams: u64,
    /// Messages sent.
    pub sends: u64,
    /// Messages received.
    pub receives: u64,
    /// Sends and receives that belong together.
    pub matched: u64,
}
