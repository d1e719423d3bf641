//! Facts about traces, from metadata, index and packet headers: `info` shows them and a database stores them.

use crate::base::time::Ns;
use crate::input::Source;
use crate::input::count::lost;
pub use crate::state::timeline::Quality;

/// One trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceFacts {
    /// Label, or path as given, and the path below it.
    pub path: String,
    /// Format and version.
    pub format: String,
    /// Begin of the first packet.
    pub begin: Option<Ns>,
    /// End of the last one.
    pub end: Option<Ns>,
    /// Streams.
    pub streams: u64,
    /// Packets.
    pub packets: u64,
    /// Host name.
    pub host: Option<String>,
    /// Name and uuid of the clock.
    pub clock: Option<String>,
    /// Record classes.
    pub event_types: u64,
}

/// Losses of the tracer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Events.
    pub events: u64,
    /// Packets.
    pub packets: u64,
    /// Streams that lost any.
    pub streams: u64,
}

/// How far the scheduler's events of a host can be believed.
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

impl Lost {
    /// Both together.
    pub fn and(self, other: Lost) -> Lost {
        Lost {
            events: self.events.saturating_add(other.events),
            packets: self.packets.saturating_add(other.packets),
            streams: self.streams.saturating_add(other.streams),
        }
    }
}

impl Facts {
    /// Of opened traces.
    pub fn of(sources: &[Source]) -> Facts {
        let of = |source: &Source| {
            let (events, packets) = lost(&source.trace);
            let streams = source.trace.streams().iter().filter(|s| !s.losses.is_empty()).count() as u64;
            Lost { events, packets, streams }
        };
        let lost = sources.iter().map(of).fold(Lost::default(), Lost::and);
        Facts { traces: sources.iter().map(TraceFacts::of).collect(), lost }
    }
}

impl TraceFacts {
    fn of(source: &Source) -> TraceFacts {
        let trace = &source.trace;
        let packets = || trace.streams().iter().flat_map(|s| &s.packets);
        let below = if source.name.is_empty() { String::new() } else { format!("/{}", source.name) };
        let clock = trace.clock_uuid().map(|uuid| format!("{} {uuid}", trace.clock_name().unwrap_or("clock")));
        TraceFacts {
            path: source.label.clone() + &below,
            format: trace.format(),
            begin: packets().filter_map(|p| p.begin).min(),
            end: packets().filter_map(|p| p.end).max(),
            streams: trace.streams().len() as u64,
            packets: packets().count() as u64,
            host: trace.host().map(str::to_owned),
            clock: clock.or_else(|| trace.clock_name().map(str::to_owned)),
            event_types: trace.classes().len() as u64,
        }
    }
}
