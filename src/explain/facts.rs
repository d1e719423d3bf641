//! Facts about opened traces, from metadata, index and packet headers.

use crate::input::Source;
use crate::input::count::lost;
use crate::model::facts::{Facts, Lost, TraceFacts};

/// Of opened traces.
pub fn facts(sources: &[Source]) -> Facts {
    let lost_by = |source: &Source| {
        let (events, packets) = lost(&source.trace);
        let streams = source.trace.streams().iter().filter(|s| !s.losses.is_empty()).count() as u64;
        Lost { events, packets, streams }
    };
    let lost = sources.iter().map(lost_by).fold(Lost::default(), Lost::and);
    Facts { traces: sources.iter().map(trace_facts).collect(), lost }
}

fn trace_facts(source: &Source) -> TraceFacts {
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
