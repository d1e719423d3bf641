//! An OTF2 archive as operations, messages and collective operations.
//!
//! In: records per location (`location.rs`). Out: [`MpiRun`], and from it the neutral [`Operations`]. What threads and
//! accelerators of one process wait for is put together in `process.rs`.
//!
//! Collectives are matched by the members of their communicator, in order, because each rank may give a communicator
//! its own id; messages in [`super::matching`]. Costs: linear; reading parallel over locations, matching over
//! receivers.

mod innermost;
mod location;
mod process;
mod recorded;
mod regions;
mod rma;
mod task_graph;
mod threads;
mod windows;

use super::matching::{self, MessagePair};
use crate::base::allocator::return_free_memory;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::names::Names;
use crate::base::notice::{Notice, Notices};
use crate::base::parallel::in_order;
use crate::event::operation::{
    CallPaths, CollectiveInstance, CollectiveKind, NO_PATH, NamedParameter, OperationPlace, Operations, Readings,
    RegionChange, Sequence,
};
use crate::input::otf2::{Archive, LocationId, LocationKind, MetricMode, ParameterValue, class_name};
use crate::model::counts::ArchiveCounts;
pub use crate::model::usage::{FileTransfers, ProcessTransfers};
use foldhash::HashMap;
pub(super) use recorded::NOWHERE;
pub use recorded::{LocationRun, MessageHalf};
use recorded::{MetricRun, ParameterRecord};
use regions::Symbols;
pub use regions::{FLUSH, IDLE, has_program_regions};

/// Everything read from an archive.
#[derive(Clone, Debug, Default)]
pub struct MpiRun {
    /// By [`LocationId`].
    pub locations: Vec<LocationRun>,
    /// Matched messages, by receiving location and posting order.
    pub pairs: Vec<MessagePair>,
    /// Problems in the archive.
    pub notices: Notices,
    names: Names,
    paths: CallPaths,
    program: Vec<bool>,
    polls: Vec<bool>,
}

/// Read a whole archive.
pub fn read(archive: &Archive, ctx: &Ctx) -> Result<MpiRun, Cancelled> {
    let mut run = locations(archive, None, ctx)?;
    run.pairs = matching::pairs(&run.locations, ctx)?;
    // Sends without a receive are no loss: EZTrace does not record the receives of C programs. Nor are receives
    // without a peer (MPI_PROC_NULL).
    let received: usize = run.locations.iter().map(|l| l.receives.iter().filter(|r| r.peer().is_some()).count()).sum();
    run.notices.add(Notice::UnmatchedMessages, (received - run.pairs.len()) as u64, String::new);
    Ok(run)
}

/// Read a whole archive in the neutral form, for clocks, mining and propagation, with notices of what was wrong. It
/// takes less memory than [`read`], which keeps what was recorded as it was.
pub fn operations(archive: &Archive, ctx: &Ctx) -> Result<(Operations, Notices), Cancelled> {
    locations(archive, None, ctx)?.assemble(archive, ctx)
}

/// [`operations`], with the innermost region of each stream over time.
pub fn operations_with_regions(archive: &Archive, ctx: &Ctx) -> Result<(Operations, Notices), Cancelled> {
    locations(archive, Some(Vec::new()), ctx)?.assemble(archive, ctx)
}

/// All locations, nothing tied together; with `regions`, which begins each list, the innermost regions are kept.
fn locations(archive: &Archive, regions: Option<Vec<RegionChange>>, ctx: &Ctx) -> Result<MpiRun, Cancelled> {
    let n = archive.definitions.locations.len();
    let symbols = Symbols::new(archive);
    let mut run = MpiRun { notices: archive.notices.clone(), ..MpiRun::default() };
    ctx.progress.enter("reading", n as u64);
    in_order(
        ctx,
        n,
        |i| location::read(archive, &symbols, LocationId::at(i), regions.clone(), &ctx.cancel),
        |_, mut location| {
            ctx.progress.step(1);
            run.notices.merge(&location.notices);
            let ids = run.paths.merge(&std::mem::take(&mut location.paths));
            let global = |path: u32| ids.get(path as usize).copied().unwrap_or(NO_PATH);
            location.call_sites.renumber(global);
            run.locations.push(location);
        },
    )?;
    (run.program, run.polls) = (symbols.program(), symbols.polls());
    run.names = symbols.names;
    Ok(run)
}

impl MpiRun {
    /// Figures for `stats count`.
    pub fn counts(&self) -> ArchiveCounts {
        let mut counts = ArchiveCounts {
            streams: self.locations.len() as u64,
            matched: self.pairs.len() as u64,
            ..ArchiveCounts::default()
        };
        for location in &self.locations {
            counts.events += location.records;
            counts.sends += location.sends.len() as u64;
            counts.receives += location.receives.len() as u64;
            for (class, n) in &location.per_class {
                let name = class_name(*class).map_or_else(|| format!("type {class}"), str::to_owned);
                *counts.per_name.entry(name).or_default() += n;
            }
        }
        counts
    }

    /// The file transfers of each process; none where no event was read.
    pub fn transfers(&self, archive: &Archive) -> Vec<ProcessTransfers> {
        if self.locations.iter().all(|l| l.records == 0) {
            return Vec::new();
        }
        let mut by_process: Vec<ProcessTransfers> = Vec::new();
        for (l, run) in archive.definitions.locations.iter().zip(&self.locations) {
            let at = by_process.iter().position(|p| p.index == l.process_index);
            let at = at.unwrap_or_else(|| {
                let name = l.rank.map_or_else(|| l.process.clone(), |rank| format!("rank {rank}"));
                by_process.push(ProcessTransfers { index: l.process_index, name, sum: FileTransfers::default() });
                by_process.len() - 1
            });
            if let Some(ProcessTransfers { sum, .. }) = by_process.get_mut(at) {
                sum.read_bytes = sum.read_bytes.saturating_add(run.transfers.read_bytes);
                sum.written_bytes = sum.written_bytes.saturating_add(run.transfers.written_bytes);
                sum.reads += run.transfers.reads;
                sum.writes += run.transfers.writes;
            }
        }
        by_process
    }

    /// The neutral form, for clocks, mining and propagation.
    pub fn into_operations(self, archive: &Archive) -> Operations {
        // Nothing can cancel this.
        self.assemble(archive, &Ctx::new(1)).map(|(operations, _)| operations).unwrap_or_default()
    }

    fn assemble(mut self, archive: &Archive, ctx: &Ctx) -> Result<(Operations, Notices), Cancelled> {
        let talks: Vec<bool> = self.locations.iter().map(|l| !l.sends.is_empty() || !l.receives.is_empty()).collect();
        let matching::Matched { mut messages, send_completions, unmatched } =
            matching::messages(&mut self.locations, ctx)?;
        self.notices.add(Notice::UnmatchedMessages, unmatched, String::new);
        self.locations.iter_mut().for_each(|l| l.sends = Vec::new());
        return_free_memory();
        let mut collectives = self.collectives();
        let between_ranks = messages.len();
        process::tie(archive, &self.locations, &mut messages, &mut collectives);
        rma::tie(archive, &self.locations, &mut messages);
        if messages.len() > between_ranks {
            messages.sort_unstable_by_key(|m| (m.to, m.received, m.from, m.carrier));
        }
        let one_clock = !self.locations.is_empty()
            && self.locations.iter().all(|l| !l.clock.is_empty() || l.records == 0)
            && self.locations.iter().any(|l| l.records > 0);
        let mut uses: HashMap<&str, u32> = HashMap::default();
        for l in &archive.definitions.locations {
            *uses.entry(&l.name).or_default() += 1;
        }
        let mut names = self.names;
        let sequences = archive.definitions.locations.iter().zip(self.locations).zip(talks);
        let sequences = sequences
            .map(|((l, run), talks)| Sequence {
                // Score-P calls the first thread of every process the same.
                stream: match uses.get(l.name.as_str()) {
                    Some(1) | None => l.name.clone(),
                    _ => format!("{} {}", l.process, l.name),
                },
                label: l.label(),
                rank: l.rank,
                process: Some(l.process_index),
                worker: l.kind != LocationKind::Thread || (l.member > 0 && run.works_for_others() && !talks),
                readings: readings(archive, &mut names, run.metrics),
                parameters: parameters(archive, &mut names, &run.parameters),
                flushes: run.flushes,
                operations: run.operations,
                regions: run.regions.unwrap_or_default(),
                call_sites: run.call_sites,
                ..Sequence::default()
            })
            .collect();
        let operations = Operations {
            names,
            one_clock,
            sequences,
            messages,
            collectives,
            send_completions,
            paths: self.paths,
            program: self.program,
            polls: self.polls,
            ..Operations::default()
        };
        Ok((operations, self.notices))
    }

    /// The n-th collective operations of the members of a group form one instance.
    fn collectives(&self) -> Vec<CollectiveInstance> {
        let mut found: Vec<(u8, Option<LocationId>, CollectiveInstance)> = Vec::new();
        let mut positions: HashMap<(usize, u32), usize> = HashMap::default();
        for (stream, location) in (0_u32..).zip(&self.locations) {
            let mut how_many: HashMap<usize, u32> = HashMap::default();
            for a in &location.participations {
                let n = how_many.entry(a.group).or_default();
                let at = *positions.entry((a.group, *n)).or_insert_with(|| {
                    found.push((
                        a.collective,
                        a.root,
                        CollectiveInstance { exchange: CollectiveKind::Prefix, members: Vec::new() },
                    ));
                    found.len() - 1
                });
                *n += 1;
                // Another operation under the same number: this location lost records, or counts another way.
                if let Some((operation, root, collective)) = found.get_mut(at)
                    && *operation == a.collective
                    && a.operation != NOWHERE
                {
                    *root = root.or(a.root);
                    collective.members.push(OperationPlace { stream, operation: a.operation });
                }
            }
        }
        let shaped = |(operation, root, mut collective): (u8, Option<LocationId>, CollectiveInstance)| {
            let at = |root: LocationId| collective.members.iter().position(|m| m.stream == root.raw());
            collective.exchange = shape(operation, root.and_then(at).map(|at| at as u32));
            collective
        };
        found.into_iter().map(shaped).filter(|m| m.members.len() > 1).collect()
    }
}

/// Metrics of one location with their names.
fn readings(archive: &Archive, names: &mut Names, metrics: Vec<MetricRun>) -> Vec<Readings> {
    let reading = |run: MetricRun| {
        let member = archive.definitions.named.members.get(run.member as usize)?;
        let counts = member.mode != MetricMode::Absolute;
        Some(Readings { name: names.intern(&member.name), counts, values: run.by_operation })
    };
    metrics.into_iter().filter_map(reading).collect()
}

/// Parameters of one location as `name=value`.
fn parameters(archive: &Archive, names: &mut Names, all: &[ParameterRecord]) -> Vec<NamedParameter> {
    let named = &archive.definitions.named;
    let mut text = |parameter: u32, value: ParameterValue| {
        let name = named.parameter(parameter);
        names.intern(&match value {
            ParameterValue::Text(id) => format!("{name}={}", named.text(id)),
            ParameterValue::Number(n) => format!("{name}={n}"),
        })
    };
    let named = |p: &ParameterRecord| NamedParameter { operation: p.operation, name: text(p.parameter, p.value) };
    all.iter().map(named).collect()
}

/// How the members of a collective wait for each other, by OTF2's number of it.
fn shape(collective: u8, root: Option<u32>) -> CollectiveKind {
    match collective {
        0 => CollectiveKind::Barrier,
        // Bcast, Scatter, Scatterv.
        1 | 4 | 5 => CollectiveKind::FromOne(root),
        // Gather, Gatherv, Reduce.
        2 | 3 | 12 => CollectiveKind::ToOne(root),
        // Allgather, Allgatherv, Alltoall, Alltoallv, Alltoallw, Allreduce, Reduce_scatter, Reduce_scatter_block.
        6..=11 | 13 | 16 => CollectiveKind::All,
        // Of a window: created, freed.
        17..=22 => CollectiveKind::Barrier,
        _ => CollectiveKind::Prefix,
    }
}
