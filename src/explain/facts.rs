//! Facts about opened traces, from metadata, index and packet headers.

use super::iterations::{self, ITERATION};
use crate::analysis::patterns::PatternAnalysis;
use crate::base::time::Ns;
use crate::event::mpi::has_program_regions;
use crate::input::Source;
use crate::input::count::{LostTotals, lost};
use crate::input::otf2::{Archive, LocationKind};
use crate::model::facts::{ArchiveFacts, Facts, Lost, TaskDurations, TraceFacts};
use crate::model::recorded::ArchiveContent;
use crate::model::weights::RankedValues;
use crate::reading::topics;
use std::collections::{BTreeMap, BTreeSet};

/// Of opened traces.
pub fn facts(sources: &[Source]) -> Facts {
    let lost_by = |source: &Source| {
        let LostTotals { events, packets } = lost(&source.trace);
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
        format: trace.version(),
        begin: packets().filter_map(|p| p.begin).min(),
        end: packets().filter_map(|p| p.end).max(),
        streams: trace.streams().len() as u64,
        packets: packets().count() as u64,
        host: trace.host().map(str::to_owned),
        clock: clock.or_else(|| trace.clock_name().map(str::to_owned)),
        event_types: trace.classes().len() as u64,
        recorded: Some(topics::recorded_by(source)),
        cost: source.environment.as_ref().and_then(|environment| environment.recording.clone()),
    }
}

/// Of an archive, from its anchor file and definitions.
pub fn archive_facts(archive: &Archive) -> ArchiveFacts {
    let (anchor, definitions) = (&archive.anchor, &archive.definitions);
    let end = i128::from(definitions.global_offset) + i128::from(definitions.trace_length);
    let locations = || definitions.locations.iter();
    let program = has_program_regions(archive).then_some(ArchiveContent::ProgramRegions);
    let files = definitions.named.has_handles().then_some(ArchiveContent::FileOperations);
    ArchiveFacts {
        path: archive.path.display().to_string(),
        format: format!("OTF2 {}", anchor.version),
        begin: archive.ns(i128::from(definitions.global_offset)),
        end: archive.ns(end),
        streams: definitions.locations.len(),
        host: (!anchor.machine.is_empty()).then(|| anchor.machine.clone()),
        clock: format!("{} Hz", definitions.ticks_per_second),
        creator: anchor.creator.clone(),
        nodes: locations().filter(|l| !l.node.is_empty()).map(|l| l.node.clone()).collect(),
        ranks: locations().filter_map(|l| l.rank).collect::<BTreeSet<u32>>().len(),
        threads: locations().filter(|l| l.kind == LocationKind::Thread).count(),
        accelerator_streams: locations().filter(|l| l.kind == LocationKind::Stream).count(),
        communicators: definitions.communicators(),
        properties: anchor.properties.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
        holds: program.into_iter().chain(files).collect(),
    }
}

/// Iterations by pattern, over all streams.
pub fn iteration_durations(mined: &PatternAnalysis) -> Vec<TaskDurations> {
    let mut by_task: BTreeMap<String, Vec<Ns>> = BTreeMap::new();
    for one in mined.iterations() {
        let durations = || one.spans.iter().map(|s| s.len());
        by_task.entry(ITERATION.to_owned()).or_default().extend(durations());
        let name = one.pattern.name(mined);
        by_task.entry(name).or_default().extend(durations());
    }
    let task = |name: String| {
        let mut sorted = by_task.remove(&name)?;
        sorted.sort_unstable();
        Some(TaskDurations { name, durations: RankedValues::of_sorted(sorted) })
    };
    iterations::tasks(mined).into_iter().filter_map(task).collect()
}
