//! The rows of a timeline in blocks, one for each leaf of each family.
//!
//! In: a timeline. Out: its sections; and from a file a timeline. A block is the bytes of a leaf, with their own
//! checksum; where each leaf is, what span it has and which lines have which of its rows, is in the index of its
//! family, which is read by the first question about the family and resident from then on. A leaf is read and checked
//! when it is asked for (`kept`). The first one that is damaged, or has rows that cannot be, ends the work, and so does
//! an index; then the file is opened again, and all is read at once: damaged leaves lose their rows, threads are in an
//! unknown state then, and events count as lost over their spans. So an answer does not depend on the order in which
//! leaves were asked for.

use super::LeafChecks::{self, AtOpening, WhenRead};
use super::checked::CheckedRow;
use super::index::{BlockEntry, CounterIndex, FamilyIndex, MarkIndex};
use super::kept::{BlocksOf, KeptLeaves, KeptMarks};
use super::tables::Bounds;
use super::{StatesOf, lazily};
use crate::base::ctx::{Cancel, Ctx};
use crate::base::lazy::Lazy;
use crate::base::names::NameId;
use crate::base::notice::{Notice, Notices};
use crate::base::packed::{Packed, bytes_of};
use crate::base::time::{Span, Timestamp};
use crate::saved::SavedFileError;
use crate::saved::container::{SavedFile, SectionName};
use crate::saved::writing::SavedFileWriter;
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
use crate::timeline::store::sums::StateSums;
use crate::timeline::{HostCpu, Tables, Thread, Timeline, TimelineParts};
use std::sync::{Arc, Mutex, PoisonError};

const TABLES: &str = "tables";
const THREADS: &str = "threads";
const CPUS: &str = "cpus";
/// The blocks of all families; the index of a family, its blocks and the parts of its lines, has the family's name.
const LEAVES: &str = "leaves";
/// The sums of the segments.
const SUMS: &str = "sums";

fn section(states: StatesOf, name: &str) -> SectionName {
    SectionName::new(name).of(states as u32)
}

/// The reason of unknown time where rows are missing.
const LOST: &str = "events lost";

/// Add the sections of a timeline.
pub fn write(timeline: &Timeline, states: StatesOf, writer: &mut SavedFileWriter) {
    let TimelineParts { tables, threads, cpus, rows } = timeline.parts();
    writer.add_plain(section(states, TABLES), bytes_of(tables));
    writer.add_plain(section(states, THREADS), bytes_of(threads));
    writer.add_plain(section(states, CPUS), bytes_of(cpus));
    let mut blocks = Blocks::default();
    let mut add = |family: Family, index: Vec<u8>| writer.add_plain(section(states, family.name()), index);
    add(Family::Segments, bytes_of(&blocks.family(&rows.segments)));
    add(Family::Calls, bytes_of(&blocks.family(&rows.calls)));
    add(Family::Samples, bytes_of(&blocks.family(&rows.samples)));
    add(Family::Runs, bytes_of(&blocks.family(&rows.runs)));
    add(Family::Requests, bytes_of(&blocks.family(&rows.requests)));
    add(Family::Services, bytes_of(&blocks.family(&rows.services)));
    add(Family::Faults, bytes_of(&rows.page_faults.as_ref().map(|faults| blocks.family(faults))));
    let counters = rows.counters.iter().map(|counter| blocks.counter(counter));
    add(Family::Counters, bytes_of(&counters.collect::<Vec<_>>()));
    add(Family::Marks, bytes_of(&blocks.marks(&rows.marks)));
    writer.add_plain(section(states, SUMS), bytes_of(&StateSums::of(&rows.segments)));
    writer.add_leaves(section(states, LEAVES), blocks.leaves);
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
    let mut tables: Tables = file.value(section(states, TABLES))?;
    let threads: Vec<Thread> = file.value(section(states, THREADS))?;
    let cpus: Vec<HostCpu> = file.value(section(states, CPUS))?;
    let bounds = Bounds {
        names: tables.names.len(),
        stacks: tables.stacks.len(),
        threads: threads.len(),
        hosts: tables.hosts.len(),
        traces: tables.traces.len(),
    };
    let sound = [
        (section(states, TABLES), bounds.tables(&tables)),
        (section(states, THREADS), bounds.threads(&threads)),
        (section(states, CPUS), bounds.cpus(&cpus)),
    ];
    if let Some((section, _)) = sound.into_iter().find(|(_, is_sound)| !is_sound) {
        return Err(file.contradiction(section));
    }
    let lost = tables.names.intern(LOST);
    let pool = LeafPool::within(ctx, 0)?;
    let all = || Arc::new(LeafPool::new(None, ctx));
    let kept = (checks == WhenRead).then(|| pool.clone().unwrap_or_else(all));
    let blocks = BlocksOf { file: Arc::clone(file), section: section(states, LEAVES), bounds };
    let ends = match &kept {
        Some(_) => Vec::new(),
        None => threads.iter().map(|thread| (thread.life.end, thread.tid)).collect(),
    };
    let (damaged, cancel) = (Mutex::default(), ctx.cancel.clone());
    let reader = Arc::new(BlockReader { blocks, states, ends, lost, kept, damaged, cancel });
    let rows = reader.stores(cpus.len())?;
    let mut rows = if checks == WhenRead { rows } else { rows.kept_in(pool) };
    let damaged = std::mem::take(&mut *reader.damaged.lock().unwrap_or_else(PoisonError::into_inner));
    if !damaged.is_empty() {
        // They are of rows that are not there.
        rows.sums = Lazy::default();
    }
    let first = damaged.iter().min().copied().unwrap_or_default();
    let place = || format!("from {} to {} ns", first.start, first.end);
    notices.add(Notice::HistoryDamaged, damaged.len() as u64, place);
    tables.lossy = Span::union(tables.lossy.into_iter().chain(damaged).collect());
    Ok(Timeline::of_parts(tables, threads, cpus, rows, ctx))
}

/// Reads blocks, and keeps the spans of those that are damaged.
#[derive(Debug)]
struct BlockReader {
    blocks: BlocksOf,
    states: StatesOf,
    /// By thread: where its life ends, and its tid; where all leaves are read at once.
    ends: Vec<(Timestamp, i32)>,
    /// The reason of unknown time.
    lost: NameId,
    /// Where leaves go that are read when they are asked for.
    kept: Option<Arc<LeafPool>>,
    damaged: Mutex<Vec<Span>>,
    cancel: Cancel,
}

impl BlockReader {
    fn stores(self: &Arc<Self>, cpus: usize) -> Result<RowStores, SavedFileError> {
        let threads = self.blocks.bounds.threads;
        Ok(RowStores {
            segments: self.of_lines(threads)?,
            sums: self.store(SUMS, |_, sums| Ok(sums))?,
            calls: self.of_lines(threads)?,
            samples: self.of_lines(threads)?,
            runs: self.of_lines(cpus)?,
            requests: self.of_lines(1)?,
            services: self.of_lines(threads)?,
            page_faults: self.store(Family::Faults.name(), move |reader, faults: Option<FamilyIndex>| {
                faults.map(|index| reader.family(index, threads)).transpose()
            })?,
            counters: self.store(Family::Counters.name(), |reader, counters: Vec<CounterIndex>| {
                counters.into_iter().map(|counter| reader.counter(counter)).collect()
            })?,
            marks: self.store(Family::Marks.name(), BlockReader::marks)?,
            pool: self.kept.clone(),
        })
    }

    fn of_lines<R: CheckedRow>(self: &Arc<Self>, lines: usize) -> Result<Lazy<LineStore<R>>, SavedFileError> {
        self.store(R::FAMILY.name(), move |reader, index| reader.family(index, lines))
    }

    /// What `read` makes of a section, of the index of a family its store: now, or when it is first asked for.
    fn store<I: Packed, S: Clone + Default + 'static>(
        self: &Arc<Self>,
        name: &'static str,
        read: impl Fn(&BlockReader, I) -> Result<S, SavedFileError> + Send + Sync + 'static,
    ) -> Result<Lazy<S>, SavedFileError> {
        let (reader, checks) = (Arc::clone(self), if self.kept.is_some() { WhenRead } else { AtOpening });
        lazily(checks, &self.cancel, move || read(&reader, reader.blocks.file.value(section(reader.states, name))?))
    }

    fn contradiction(&self, family: Family) -> SavedFileError {
        self.blocks.file.contradiction(section(self.states, family.name()))
    }

    fn damaged(&self, span: Span) {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner).push(span);
    }

    fn counter(&self, CounterIndex { name, owners, values }: CounterIndex) -> Result<CounterStore, SavedFileError> {
        let sorted = owners.is_sorted_by(|a, b| a < b) && self.blocks.bounds.name(name);
        let values = self.family(values, owners.len())?;
        sorted.then_some(CounterStore { name, owners, values }).ok_or_else(|| self.contradiction(Family::Counters))
    }

    /// The store of a family of this many lines.
    fn family<R: CheckedRow>(&self, index: FamilyIndex, lines: usize) -> Result<LineStore<R>, SavedFileError> {
        self.cancel.check()?;
        let contradiction = || self.contradiction(R::FAMILY);
        let FamilyIndex { blocks, nodes, directory } = index;
        if !directory.is_whole() || directory.lines() != lines || directory.shown() != R::SHOWN {
            return Err(contradiction());
        }
        let directory = Arc::new(directory);
        let kept = KeptLeaves::<R>::new(self.blocks.clone(), blocks, &directory).ok_or_else(contradiction)?;
        let fits = nodes.len() == kept.len() && nodes.iter().all(|node| node.times.len() == R::STATES);
        let nodes = fits.then_some(nodes).ok_or_else(contradiction)?;
        let rows: Vec<usize> = (0..kept.len()).map(|leaf| kept.rows_of(leaf)).collect();
        if let Some(pool) = &self.kept {
            let (count, source): (usize, Arc<dyn LeafSource>) = (kept.len(), Arc::new(kept));
            let leaves = Leaves::kept(pool, &source, count, R::FAMILY);
            let store = LineStore::from_kept(leaves, Nodes::of(nodes), rows.into_iter(), directory);
            return store.map_err(|_| contradiction());
        }
        let mut is_damaged = vec![false; kept.len()];
        let mut leaves = Vec::with_capacity(kept.len());
        for ((leaf, rows), is_damaged) in rows.into_iter().enumerate().zip(&mut is_damaged) {
            leaves.push(kept.sound(leaf).unwrap_or_else(|| {
                *is_damaged = true;
                self.damaged(kept.span(leaf));
                // In place of the rows that are missing, until they are left out.
                Leaf::encode(&vec![R::of(Span::default(), |_| 0); rows], [].into_iter())
            }));
        }
        let store = LineStore::from_parts(leaves, directory).map_err(|_| contradiction())?;
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
                let life = self.ends.get(line).map_or(part.start, |(end, _)| *end);
                let end = if own.contains(&(at + 1)) { directory.start(at + 1) } else { life };
                builder.push(line, R::missing(Span::new(part.start, end.max(part.start)), self.lost).as_slice());
            }
        }
        builder.finish_with(lines, |thread| Some(self.ends.get(thread as usize).map_or(0, |(_, tid)| *tid)))
    }

    fn marks(&self, index: MarkIndex) -> Result<MarkStore, SavedFileError> {
        let MarkIndex { blocks, open } = index;
        if !open.iter().all(|mark| self.blocks.bounds.mark(mark)) {
            return Err(self.contradiction(Family::Marks));
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
                None => self.damaged(kept.span(leaf)),
            }
        }
        Ok(MarkStore::from_parts(leaves, open))
    }
}
