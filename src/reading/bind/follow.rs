//! The record classes in which events are followed, where several have the same event.
//!
//! In: the classes of a trace that mean anything. Out: for each event name the classes of one channel. Metadata only
//! says what was enabled once: a channel in which the event was disabled, or in which a filter left less than half of
//! what another channel recorded, is no copy. Of the copies, one that lost nothing precedes one that did, then the one
//! that declares most of the requested events. Within a channel, two classes of one name are perf's: an event that was
//! asked for twice, whose records have the same fields and of which one class is followed, or two filters, which both
//! are. Cost: linear in the classes, and a sample of the records of channels that share events.

use crate::input::Trace;
use crate::input::record::ClassId;
use crate::reading::dialect;
use crate::reading::recorded::RecordEstimates;
use foldhash::{HashMap, HashSet};
use std::collections::BTreeMap;

/// A record class of an event.
#[derive(Clone, Copy)]
struct Declaration {
    stream_class: u32,
    class: ClassId,
}

/// The declared events of a trace, and what is known of their numbers.
pub(super) struct DeclaredEvents<'t> {
    trace: &'t Trace,
    /// By name, where they may be followed.
    declared: BTreeMap<&'t str, Vec<Declaration>>,
    recorded: RecordEstimates,
}

impl<'t> DeclaredEvents<'t> {
    /// All of a trace.
    pub fn new(trace: &'t Trace) -> DeclaredEvents<'t> {
        let mut declared: BTreeMap<&str, Vec<Declaration>> = BTreeMap::new();
        for (at, class) in trace.classes().iter().enumerate().filter(|(_, class)| !class.known().is_empty()) {
            let declaration = Declaration { stream_class: class.stream_class, class: ClassId::at(at) };
            declared.entry(class.known()).or_default().push(declaration);
        }
        let is_wake_up = |name: &str| matches!(&*dialect::event(name), WAKING | WAKEUP);
        let both = [WAKING, WAKEUP].iter().all(|one| declared.keys().any(|name| dialect::event(name) == *one));
        let sampled: HashSet<u32> = declared
            .iter()
            .filter(|(name, all)| all.len() > 1 || both && is_wake_up(name))
            .flat_map(|(_, all)| all.iter().map(|one| one.stream_class))
            .collect();
        let recorded = RecordEstimates::sample(trace, |stream_class| sampled.contains(&stream_class));
        DeclaredEvents { trace, declared, recorded }
    }

    /// True where `sched_waking` is recorded, and not only declared: each `sched_wakeup` follows one.
    pub fn records_wakings(&self) -> bool {
        let classes = |wanted: &'static str| {
            let named = self.declared.iter().filter(move |(name, _)| dialect::event(name) == wanted);
            named.flat_map(|(_, all)| all)
        };
        let records = |wanted: &'static str| {
            classes(wanted).fold((0.0, false), |(records, is_reliable): (f64, bool), one| {
                let estimate = self.recorded.of(one.class);
                (estimate.records.max(records), is_reliable || estimate.is_reliable)
            })
        };
        let (wakings, _) = records(WAKING);
        let (wakeups, is_reliable) = records(WAKEUP);
        classes(WAKING).next().is_some() && !(is_reliable && wakings * 2.0 < wakeups)
    }

    /// The classes in which the events that are `wanted` are followed.
    pub fn followed(&self, wanted: impl Fn(&str) -> bool) -> HashSet<ClassId> {
        let mut channels: HashMap<u32, Channel> = HashMap::default();
        let wanted: Vec<&Vec<Declaration>> =
            self.declared.iter().filter(|(name, _)| wanted(name)).map(|(_, all)| all).collect();
        for all in &wanted {
            for one in *all {
                let channel = channels.entry(one.stream_class).or_default();
                channel.declares += 1;
                if all.len() > 1 {
                    channel.shared_records += self.recorded.of(one.class).records;
                }
            }
        }
        for stream in self.trace.streams().iter().filter(|stream| !stream.losses.is_empty()) {
            channels.entry(stream.stream_class).or_default().is_lossy = true;
        }
        wanted.into_iter().flat_map(|all| self.best(all, &channels)).collect()
    }

    /// Of the classes of one event those that are followed.
    fn best(&self, all: &[Declaration], channels: &HashMap<u32, Channel>) -> Vec<ClassId> {
        let channel = |one: &Declaration| channels.get(&one.stream_class).copied().unwrap_or_default();
        let is_reliable = all.iter().map(|one| self.recorded.of(one.class)).any(|e| e.is_reliable && e.records > 0.0);
        // Of an event that is rare in the sample, all that the channels share shows more.
        let records = |one: &Declaration| {
            if is_reliable { self.recorded.of(one.class).records } else { channel(one).shared_records }
        };
        let most = all.iter().map(records).fold(0.0, f64::max);
        let rank = |one: &&Declaration| {
            let Channel { declares, is_lossy, .. } = channel(one);
            (records(one) * 2.0 >= most, !is_lossy, declares, std::cmp::Reverse(one.stream_class))
        };
        let Some(best) = all.iter().max_by_key(rank) else { return Vec::new() };
        let mut copies = 0;
        let is_first = |one: &&Declaration| {
            let is_copy = self.recorded.of(one.class).is_beside_copy;
            copies += usize::from(is_copy);
            !is_copy || copies == 1
        };
        all.iter().filter(|one| one.stream_class == best.stream_class).filter(is_first).map(|one| one.class).collect()
    }
}

const WAKING: &str = "sched_waking";
const WAKEUP: &str = "sched_wakeup";

/// A stream class.
#[derive(Clone, Copy, Default)]
struct Channel {
    /// Number of its classes that are wanted.
    declares: usize,
    /// The tracer lost some of its events.
    is_lossy: bool,
    /// Estimated number of records of its events that have several classes.
    shared_records: f64,
}
