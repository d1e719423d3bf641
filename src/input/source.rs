//! An opened trace with its label, and the clocks that traces share.
//!
//! In: opened traces. Out: the same, on one time line: traces whose clocks have one uuid, and recordings of tracepoints
//! of one host on its monotonic clock, get the offset of the first of them, that of a CTF trace where there is one.

use super::trace::Trace;
use crate::base::time::Ns;
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

/// Two recordings of tracepoints whose monotonic clocks begin within this time are of one start of their host: it
/// takes longer to start again, and the corrections of wall-clock time between two recordings are smaller.
const ONE_START: Ns = 1_000_000_000;

/// The monotonic clock of a host.
struct MonotonicClock {
    label: String,
    labelled: bool,
    host: String,
    /// Of a CTF trace.
    uuid: Option<String>,
    base: i128,
}

impl MonotonicClock {
    /// The clock of a CTF trace.
    fn of_ctf(source: &Source) -> Option<MonotonicClock> {
        let (uuid, base) = *source.trace.clock_offsets().first()?;
        MonotonicClock::of(source, Some(uuid.to_owned()), base)
    }

    fn of(source: &Source, uuid: Option<String>, base: i128) -> Option<MonotonicClock> {
        let (label, labelled) = (source.label.clone(), source.labelled);
        Some(MonotonicClock { label, labelled, host: source.trace.host()?.to_owned(), uuid, base })
    }

    /// True where a source may have been recorded on it.
    fn may_be_of(&self, source: &Source) -> bool {
        let is_one_host = self.host == source.trace.host().unwrap_or("");
        let begins = source.trace.monotonic().map_or(0, i128::from);
        let is_one_start = self.uuid.is_some() || (begins - self.base).abs() < i128::from(ONE_START);
        is_one_host && is_one_start && (self.label == source.label || !(self.labelled && source.labelled))
    }
}

/// Gives all traces whose clocks have equal uuids the clock offset of the first of them. Recordings of tracepoints on
/// the monotonic clock of a host count from its start, as a CTF trace on that clock does, so they share an offset, too.
pub(super) fn share_clocks(sources: &mut [Source]) {
    let monotonic = |source: &Source| matches!(source.trace.clock_name(), Some("mono" | "monotonic"));
    let mut clocks: Vec<MonotonicClock> =
        sources.iter().filter(|source| monotonic(source)).filter_map(MonotonicClock::of_ctf).collect();
    for source in sources.iter_mut().filter(|source| monotonic(source)) {
        match clocks.iter().find(|clock| clock.may_be_of(source)) {
            Some(clock) => source.trace.join_clock(clock.uuid.as_deref(), clock.base),
            None => {
                let base = source.trace.monotonic();
                clocks.extend(base.and_then(|base| MonotonicClock::of(source, None, base.into())));
            }
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
