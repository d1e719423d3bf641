//! The rows of a timeline in blocks, one for each leaf of each family.
//!
//! In: a timeline. Out: its sections; and from a file a timeline. A block is the bytes of a leaf, with their own
//! checksum; where each leaf is, what span it has and which lines have which of its rows, is in an index that is
//! resident. A leaf is read and checked when it is asked for (`kept`). The first one that is damaged, or has rows that
//! cannot be, ends the work; then the file is opened again, and all leaves are read at once: damaged ones lose their
//! rows, threads are in an unknown state then, and events count as lost over their spans. So an answer does not depend
//! on the order in which leaves were asked for.

use super::checked::CheckedRow;
use super::index::{BlockEntry, CounterIndex, FamilyIndex, Index, MarkIndex};
use super::kept::{BlocksOf, KeptLeaves, KeptMarks};
use super::tables::Bounds;
use super::{LeafChecks, StatesOf};
use crate::base::ctx::Ctx;
use crate::base::names::NameId;
use crate::base::notice::{Notice, Notices};
use crate::base::packed::bytes_of;
use crate::base::time::{Span, Timestamp};
use crate::saved::SavedFileError;
use crate::saved::container::{SavedFile, SavedFileWriter, SectionName};
use crate::timeline::questions::Family;
use crate::timeline::store::builder::LineStoreBuilder;
use crate::timeline::store::counters::CounterStore;
use crate::timeline::store::directory::LineDirectory;
use crate::timeline::store::families::RowStores;
use crate::timeline::store::leaf::StoredRow;
use crate::timeline::store::leaf_bytes::Leaf;
use crate::timeline::store::leaves::{LeafHandle, Leaves};
use crate::timeline::store::marks::MarkStore;
use crate::timeline::store::nodes::{LeafNode, Nodes};
use crate::timeline::store::parts::LineStore;
use crate::timeline::store::pool::{LeafPool, LeafSource};
use crate::timeline::{HostCpu, Tables, Thread, Timeline, TimelineParts};
use std::sync::Arc;

/// The sections of a timeline.
#[derive(Clone, Copy)]
struct SectionNames {
    tables: SectionName,
    threads: SectionName,
    cpus: SectionName,
    /// Where the blocks are, and the parts of lines.
    index: SectionName,
    /// The blocks.
    leaves: SectionName,
}

impl SectionNames {
    fn of(states: StatesOf) -> SectionNames {
        let name = |name| SectionName::new(name).of(states as u32);
        SectionNames {
            tables: name("tables"),
            threads: name("threads"),
            cpus: name("cpus"),
            index: name("index"),
            leaves: name("leaves"),
        }
    }
}

/// The reason of unknown time where rows are missing.
const LOST: &str = "events lost";

/// Add the sections of a timeline.
pub fn write(timeline: &Timeline, states: StatesOf, writer: &mut SavedFileWriter) {
    let sections = SectionNames::of(states);
    let TimelineParts { tables, threads, cpus, rows } = timeline.parts();
    writer.add_plain(sections.tables, bytes_of(tables));
    writer.add_plain(sections.threads, bytes_of(threads));
    writer.add_plain(sections.cpus, bytes_of(cpus));
    let mut blocks = Blocks::default();
    let index = Index {
        segments: blocks.family(&rows.segments),
        calls: blocks.family(&rows.calls),
        samples: blocks.family(&rows.samples),
        runs: blocks.family(&rows.runs),
        requests: blocks.family(&rows.requests),
        services: blocks.family(&rows.services),
        page_faults: rows.page_faults.as_ref().map(|faults| blocks.family(faults)),
        counters: rows.counters.iter().map(|counter| blocks.counter(counter)).collect(),
        marks: blocks.marks(&rows.marks),
    };
    writer.add_plain(sections.index, bytes_of(&index));
    writer.add_leaves(sections.leaves, blocks.leaves);
}

/// The blocks so far.
#[derive(Default)]
struct Blocks {
    bytes: u64,
    /// Those of each family; their bytes stay where they are.
    leaves: Vec<Leaves>,
}

impl Blocks {
    /// Add leaves of these spans.
    fn add(&mut self, leaves: &Leaves, spans: impl IntoIterator<Item = Span>) -> Vec<BlockEntry> {
        self.leaves.push(leaves.clone());
        let entry = |(leaf, span): (LeafHandle<'_>, Span)| {
            let (offset, length) = (self.bytes, leaf.bytes().len() as u64);
            self.bytes += length;
            BlockEntry { offset, length, span }
        };
        leaves.iter().zip(spans).map(entry).collect()
    }

    fn family<R: StoredRow>(&mut self, store: &LineStore<R>) -> FamilyIndex {
        let nodes = store.nodes().leaves();
        let blocks = self.add(store.leaves(), nodes.iter().map(LeafNode::span));
        FamilyIndex { blocks, nodes, directory: LineDirectory::clone(store.directory()) }
    }

    fn counter(&mut self, counter: &CounterStore) -> CounterIndex {
        let values = self.family(&counter.values);
        CounterIndex { name: counter.name, owners: counter.owners.clone(), values }
    }

    fn marks(&mut self, store: &MarkStore) -> MarkIndex {
        let mut marks = store.all();
        let rows = |leaf: LeafHandle<'_>| marks.by_ref().take(leaf.rows()).map(|mark| mark.time).collect::<Vec<_>>();
        let times: Vec<Vec<Timestamp>> = store.leaves().iter().map(rows).collect();
        let span = |times: &Vec<Timestamp>| {
            let ends = times.iter().min().zip(times.iter().max());
            ends.map_or_else(Span::default, |(first, last)| Span::new(*first, *last))
        };
        MarkIndex { blocks: self.add(store.leaves(), times.iter().map(span)), open: store.open().collect() }
    }
}

/// The timeline in a file. With [`LeafChecks::AtOpening`] a damaged block costs its rows and a notice; anything else is
/// an error.
pub fn read(
    file: &Arc<SavedFile>,
    (states, checks): (StatesOf, LeafChecks),
    notices: &mut Notices,
    ctx: &Ctx,
) -> Result<Timeline, SavedFileError> {
    let sections = SectionNames::of(states);
    let mut tables: Tables = file.value(sections.tables)?;
    let threads: Vec<Thread> = file.value(sections.threads)?;
    let cpus: Vec<HostCpu> = file.value(sections.cpus)?;
    let index: Index = file.value(sections.index)?;
    let bounds = Bounds {
        names: tables.names.len(),
        stacks: tables.stacks.len(),
        threads: threads.len(),
        hosts: tables.hosts.len(),
        traces: tables.traces.len(),
    };
    let sound = [
        (sections.tables, bounds.tables(&tables)),
        (sections.threads, bounds.threads(&threads)),
        (sections.cpus, bounds.cpus(&cpus)),
    ];
    if let Some((section, _)) = sound.into_iter().find(|(_, is_sound)| !is_sound) {
        return Err(file.contradiction(section));
    }
    let lost = tables.names.intern(LOST);
    let pool = LeafPool::within(ctx, 0)?;
    let all = || Arc::new(LeafPool::new(None, ctx));
    let kept = (checks == LeafChecks::WhenRead).then(|| pool.clone().unwrap_or_else(all));
    let blocks = BlocksOf { file: Arc::clone(file), section: sections.leaves, bounds };
    let mut reader =
        BlockReader { blocks, index: sections.index, threads: &threads, lost, kept, damaged: Vec::new(), ctx };
    let rows = reader.stores(index, cpus.len())?.kept_in(reader.kept.clone().or(pool));
    let damaged = std::mem::take(&mut reader.damaged);
    let first = damaged.iter().min().copied().unwrap_or_default();
    let place = || format!("from {} to {} ns", first.start, first.end);
    notices.add(Notice::HistoryDamaged, damaged.len() as u64, place);
    tables.lossy.extend(damaged);
    tables.lossy.sort_unstable();
    Ok(Timeline::of_parts(tables, threads, cpus, rows, ctx))
}

/// Reads blocks, and keeps the spans of those that are damaged.
struct BlockReader<'f> {
    blocks: BlocksOf,
    /// The section of the index.
    index: SectionName,
    threads: &'f [Thread],
    /// The reason of unknown time.
    lost: NameId,
    /// Where leaves go that are read when they are asked for.
    kept: Option<Arc<LeafPool>>,
    damaged: Vec<Span>,
    ctx: &'f Ctx,
}

impl BlockReader<'_> {
    fn stores(&mut self, index: Index, cpus: usize) -> Result<RowStores, SavedFileError> {
        let Index { segments, calls, samples, runs, requests, services, page_faults, counters, marks } = index;
        let threads = self.blocks.bounds.threads;
        let mut counter = |CounterIndex { name, owners, values }: CounterIndex| {
            let sorted = owners.is_sorted_by(|a, b| a < b) && self.blocks.bounds.name(name);
            let values = self.family(values, owners.len())?;
            sorted.then_some(CounterStore { name, owners, values }).ok_or_else(|| self.contradiction())
        };
        let counters = counters.into_iter().map(&mut counter).collect::<Result<Vec<_>, _>>()?;
        Ok(RowStores {
            segments: self.family(segments, threads)?,
            calls: self.family(calls, threads)?,
            samples: self.family(samples, threads)?,
            runs: self.family(runs, cpus)?,
            requests: self.family(requests, 1)?,
            services: self.family(services, threads)?,
            page_faults: page_faults.map(|faults| self.family(faults, threads)).transpose()?,
            counters,
            marks: self.marks(marks)?,
            pool: None,
        })
    }

    fn contradiction(&self) -> SavedFileError {
        self.blocks.file.contradiction(self.index)
    }

    /// The store of a family of this many lines.
    fn family<R: CheckedRow>(&mut self, index: FamilyIndex, lines: usize) -> Result<LineStore<R>, SavedFileError> {
        self.ctx.cancel.check()?;
        let FamilyIndex { blocks, nodes, directory } = index;
        let directory = Arc::new(directory);
        let kept = KeptLeaves::<R>::new(self.blocks.clone(), blocks, &directory);
        let kept = kept.filter(|_| directory.lines() == lines).ok_or_else(|| self.contradiction())?;
        let fits = nodes.len() == kept.len() && nodes.iter().all(|node| node.times.len() == R::STATES);
        let nodes = fits.then_some(nodes).ok_or_else(|| self.contradiction())?;
        let rows: Vec<usize> = (0..kept.len()).map(|leaf| kept.rows_of(leaf)).collect();
        if let Some(pool) = &self.kept {
            let (count, source): (usize, Arc<dyn LeafSource>) = (kept.len(), Arc::new(kept));
            let leaves = Leaves::kept(pool, &source, count, R::FAMILY);
            let store = LineStore::from_kept(leaves, Nodes::of(nodes), rows.into_iter(), directory);
            return store.map_err(|_| self.contradiction());
        }
        let mut is_damaged = vec![false; kept.len()];
        let mut leaves = Vec::with_capacity(kept.len());
        for ((leaf, rows), is_damaged) in rows.into_iter().enumerate().zip(&mut is_damaged) {
            leaves.push(kept.sound(leaf).unwrap_or_else(|| {
                *is_damaged = true;
                self.damaged.push(kept.span(leaf));
                // In place of the rows that are missing, until they are left out.
                Leaf::encode(&vec![R::of(Span::default(), |_| 0); rows], [].into_iter())
            }));
        }
        let store = LineStore::from_parts(leaves, directory).map_err(|_| self.contradiction())?;
        match is_damaged.contains(&true) {
            true => Ok(self.without(&store, &is_damaged, lines)),
            false => Ok(store),
        }
    }

    /// The store without the rows of its damaged leaves.
    fn without<R: CheckedRow>(&self, store: &LineStore<R>, is_damaged: &[bool], lines: usize) -> LineStore<R> {
        let mut builder = LineStoreBuilder::default();
        let directory = store.directory();
        for line in 0..directory.lines() {
            let own = directory.line(line);
            for (at, part) in own.clone().filter_map(|at| Some((at, directory.part(at)?))) {
                if is_damaged.get(part.leaf as usize) == Some(&false) {
                    builder.push(line, &store.rows_of(at).collect::<Vec<R>>());
                    continue;
                }
                let life = self.threads.get(line).map_or(part.start, |thread| thread.life.end);
                let end = if own.contains(&(at + 1)) { directory.start(at + 1) } else { life };
                builder.push(line, R::missing(Span::new(part.start, end.max(part.start)), self.lost).as_slice());
            }
        }
        builder.finish_with(lines, |thread| Some(self.threads.get(thread as usize).map_or(0, |thread| thread.tid)))
    }

    fn marks(&mut self, index: MarkIndex) -> Result<MarkStore, SavedFileError> {
        let MarkIndex { blocks, open } = index;
        if !open.iter().all(|mark| self.blocks.bounds.mark(mark)) {
            return Err(self.contradiction());
        }
        let kept = KeptMarks::new(self.blocks.clone(), blocks);
        if let Some(pool) = &self.kept {
            let (count, source): (usize, Arc<dyn LeafSource>) = (kept.len(), Arc::new(kept));
            return Ok(MarkStore::from_kept(Leaves::kept(pool, &source, count, Family::Marks), open));
        }
        let mut leaves = Vec::with_capacity(kept.len());
        for leaf in 0..kept.len() {
            match kept.sound(leaf) {
                Some(leaf) => leaves.push(leaf),
                None => self.damaged.push(kept.span(leaf)),
            }
        }
        Ok(MarkStore::from_parts(leaves, open))
    }
}
