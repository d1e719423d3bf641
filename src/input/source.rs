//! An opened trace with its label, and the clocks that traces share.
//!
//! In: opened traces. Out: the same, on one time line: traces whose clocks have one uuid, and recordings of tracepoints
//! beside a CTF trace of the same host on the same clock, get the offset of the first of them.

use super::trace::Trace;
use crate::model::environment::Environment;
use foldhash::HashMap;
use std::sync::Arc;

/// An opened trace, and the argument by which the user named it.
#[derive(Debug)]
pub struct Source {
    /// The label, or the path as the user wrote it.
    pub label: String,
    /// True where the user gave the label.
    pub labelled: bool,
    /// Path of the trace below the named path; empty for the named path itself.
    pub name: String,
    pub trace: Trace,
    /// What was counted while it was recorded, where that is beside it.
    pub environment: Option<Arc<Environment>>,
}

/// The monotonic clock of a CTF trace.
struct MonotonicClock {
    label: String,
    labelled: bool,
    host: String,
    uuid: String,
    base: i128,
}

impl MonotonicClock {
    fn of(source: &Source) -> Option<MonotonicClock> {
        let (uuid, base) = *source.trace.clock_offsets().first()?;
        let (label, labelled) = (source.label.clone(), source.labelled);
        Some(MonotonicClock { label, labelled, host: source.trace.host()?.to_owned(), uuid: uuid.to_owned(), base })
    }
}

/// Gives all traces whose clocks have equal uuids the clock offset of the first of them. If a recording of tracepoints
/// on the monotonic clock is opened beside a CTF trace of the same host on the same clock, both count from the start of
/// the machine, so they share that offset too.
pub(super) fn share_clocks(sources: &mut [Source]) {
    let monotonic = |source: &Source| matches!(source.trace.clock_name(), Some("mono" | "monotonic"));
    let clocks: Vec<MonotonicClock> =
        sources.iter().filter(|source| monotonic(source)).filter_map(MonotonicClock::of).collect();
    for source in sources.iter_mut().filter(|source| monotonic(source)) {
        let host = source.trace.host().unwrap_or("").to_owned();
        let same = |clock: &&MonotonicClock| {
            clock.host == host && (clock.label == source.label || !(clock.labelled && source.labelled))
        };
        if let Some(clock) = clocks.iter().find(same) {
            source.trace.join_clock(&clock.uuid, clock.base);
        }
    }
    let mut known: HashMap<String, i128> = HashMap::default();
    for source in sources {
        for (uuid, base) in source.trace.clock_offsets() {
            known.entry(uuid.to_owned()).or_insert(base);
        }
        source.trace.set_clock_offsets(&|uuid| known.get(uuid).copied());
    }
}
