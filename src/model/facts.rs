//! Facts about traces, from metadata, index and packet headers: `info` shows them and a database stores them.

use super::recorded::{ArchiveContent, Recorded};
use super::weights::RankedValues;
use crate::base::time::Timestamp;
use get_size2::GetSize;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceFacts {
    /// Label, or path as given, and the path below it.
    pub path: String,
    /// Format and version.
    pub format: String,
    /// Begin of the first packet.
    pub begin: Option<Timestamp>,
    /// End of the last one.
    pub end: Option<Timestamp>,
    pub streams: u64,
    pub packets: u64,
    /// Host name.
    pub host: Option<String>,
    /// Name and uuid of the clock.
    pub clock: Option<String>,
    /// Record classes.
    pub event_types: u64,
    /// What it recorded.
    pub recorded: Option<Recorded>,
    /// What the recording cost, in words, where its recorder has written it.
    pub cost: Option<String>,
}

/// Losses of the tracer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    pub events: u64,
    pub packets: u64,
    /// Streams that lost any.
    pub streams: u64,
}

/// Reliability of the scheduler's events of one host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, GetSize)]
pub struct Quality {
    /// Switches that were followed.
    pub switches: u64,
    /// Switches among these in which another thread left the CPU than the one that was known to run there.
    pub contradictions: u64,
    /// Times at which another event showed that switches are missing although the tracer reported no loss.
    pub gaps: u64,
    /// Losses that the tracer reported, on streams whose switches are followed.
    pub losses: u64,
    /// Handlers of interrupts and soft interrupts whose begin was recorded.
    pub interrupts: u64,
    /// How far the clock of its user-space events may be off, in nanoseconds, if it is not the kernel's; the largest
    /// value if nothing bounds it.
    pub clock_error: u64,
}

/// Reliability of the scheduler's events, with the name of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostQuality {
    /// Name of the host; empty where not recorded.
    pub host: String,
    /// Counts.
    pub quality: Quality,
}

/// Some traces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Each of them, in the order in which they were given.
    pub traces: Vec<TraceFacts>,
    /// Losses of all traces together.
    pub lost: Lost,
}

impl Quality {
    /// Of two parts of the events of one host.
    pub fn and(self, other: Quality) -> Quality {
        Quality {
            switches: self.switches.saturating_add(other.switches),
            contradictions: self.contradictions.saturating_add(other.contradictions),
            gaps: self.gaps.saturating_add(other.gaps),
            losses: self.losses.saturating_add(other.losses),
            interrupts: self.interrupts.saturating_add(other.interrupts),
            clock_error: self.clock_error.max(other.clock_error),
        }
    }
}

impl Lost {
    pub fn and(self, other: Lost) -> Lost {
        Lost {
            events: self.events.saturating_add(other.events),
            packets: self.packets.saturating_add(other.packets),
            streams: self.streams.saturating_add(other.streams),
        }
    }
}

/// An OTF2 archive, from its anchor file and definitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveFacts {
    /// Path of the anchor file.
    pub path: String,
    /// Format and version.
    pub format: String,
    /// Begin, as declared.
    pub begin: Option<Timestamp>,
    /// End, as declared.
    pub end: Option<Timestamp>,
    /// Locations.
    pub streams: usize,
    /// Name of the machine.
    pub host: Option<String>,
    /// Resolution of the clock.
    pub clock: String,
    /// The tracer.
    pub creator: String,
    /// Names of the nodes.
    pub nodes: BTreeSet<String>,
    /// MPI ranks.
    pub ranks: usize,
    /// Locations that are threads.
    pub threads: usize,
    /// Locations that are streams of accelerators.
    pub accelerator_streams: usize,
    pub communicators: usize,
    /// Properties, by name.
    pub properties: BTreeMap<String, String>,
    /// What it holds of that which tracers record only on request.
    pub holds: BTreeSet<ArchiveContent>,
}

/// A task, and how long its executions took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskDurations {
    pub name: String,
    pub durations: RankedValues,
}
