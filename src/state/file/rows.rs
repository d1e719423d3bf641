//! The rows of a timeline in blocks, one for each leaf of each family.
//!
//! In: a timeline. Out: its sections; and from a file a timeline. A block is the bytes of a leaf, with their own
//! checksum; where each leaf is, what span it has and which lines have which of its rows, is in an index that is
//! resident. Each row is decoded once when it is read: its ids must be known, and its line in order of time. A leaf
//! that is damaged, or has rows that are not so, loses its rows: threads are in an unknown state then, and events count
//! as lost over its span.

use super::checked::CheckedRow;
use super::container::{HistoryFile, HistoryFileWriter, SectionName};
use super::index::{BlockEntry, CounterIndex, FamilyIndex, Index, MarkIndex, Parts};
use super::tables::Bounds;
use super::{HistoryFileError, StatesOf};
use crate::base::ctx::Ctx;
use crate::base::names::NameId;
use crate::base::notice::{Notice, Notices};
use crate::base::packed::bytes_of;
use crate::base::time::{Span, Timestamp};
use crate::state::segments::Thread;
use crate::state::store::builder::LineStoreBuilder;
use crate::state::store::families::{CounterStore, RowStores};
use crate::state::store::leaf::StoredRow;
use crate::state::store::leaf_bytes::Leaf;
use crate::state::store::leaves::LeafHandle;
use crate::state::store::marks::{MarkLeaf, MarkStore};
use crate::state::store::parts::{LinePart, LineStore};
use crate::state::store::pool::LeafPool;
use crate::state::tables::Tables;
use crate::state::timeline::{HostCpu, MarkRow, Timeline};

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
        let name = |all, kernel| SectionName::new(if states == StatesOf::AllEvents { all } else { kernel });
        SectionNames {
            tables: name("tables", "k.tables"),
            threads: name("threads", "k.thread"),
            cpus: name("cpus", "k.cpus"),
            index: name("index", "k.index"),
            leaves: name("leaves", "k.leaves"),
        }
    }
}

/// The reason of unknown time where rows are missing.
const LOST: &str = "events lost";

/// Add the sections of a timeline.
pub fn write(timeline: &Timeline, states: StatesOf, writer: &mut HistoryFileWriter) {
    let sections = SectionNames::of(states);
    let Timeline { tables, threads, cpus, rows, questions: _ } = timeline;
    writer.add(sections.tables, bytes_of(tables));
    writer.add(sections.threads, bytes_of(threads));
    writer.add(sections.cpus, bytes_of(cpus));
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
    writer.add(sections.index, bytes_of(&index));
    writer.add(sections.leaves, blocks.0);
}

/// The blocks so far.
#[derive(Default)]
struct Blocks(Vec<u8>);

impl Blocks {
    fn add(&mut self, bytes: &[u8], span: Span) -> BlockEntry {
        let entry = BlockEntry { offset: self.0.len() as u64, length: bytes.len() as u64, span };
        self.0.extend(bytes);
        entry
    }

    fn family<R: StoredRow>(&mut self, store: &LineStore<R>) -> FamilyIndex {
        let mut spans: Vec<Option<Span>> = vec![None; store.leaves().len()];
        for part in store.parts() {
            let ends = store.rows_of(part).map(|row| row.span().end).max();
            let own = Span::new(part.start, ends.unwrap_or(part.start));
            if let Some(span) = spans.get_mut(part.leaf as usize) {
                let both = |span: Span| Span::new(span.start.min(own.start), span.end.max(own.end));
                *span = Some(span.map_or(own, both));
            }
        }
        let leaves = store.leaves().iter().zip(spans);
        let blocks = leaves.map(|(leaf, span)| self.add(leaf.bytes(), span.unwrap_or_default())).collect();
        FamilyIndex { blocks, parts: Parts { parts: store.parts().to_vec(), lines: store.lines().to_vec() } }
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
        let leaves = store.leaves().iter().zip(&times);
        let blocks = leaves.map(|(leaf, times)| self.add(leaf.bytes(), span(times))).collect();
        MarkIndex { blocks, open: store.open().to_vec() }
    }
}

/// The timeline in a file. A damaged block costs its rows and a notice; anything else is an error.
pub fn read(
    file: &HistoryFile,
    states: StatesOf,
    notices: &mut Notices,
    ctx: &Ctx,
) -> Result<Timeline, HistoryFileError> {
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
    let mut reader = BlockReader { file, sections, bounds, threads: &threads, lost, damaged: Vec::new(), ctx };
    let rows = reader.stores(index, cpus.len())?;
    let damaged = std::mem::take(&mut reader.damaged);
    let first = damaged.iter().min().copied().unwrap_or_default();
    let place = || format!("from {} to {} ns", first.start, first.end);
    notices.add(Notice::HistoryDamaged, damaged.len() as u64, place);
    tables.lossy.extend(damaged);
    tables.lossy.sort_unstable();
    Ok(Timeline { tables, threads, cpus, rows, questions: Default::default() })
}

/// Reads blocks, and keeps the spans of those that are damaged.
struct BlockReader<'f> {
    file: &'f HistoryFile,
    sections: SectionNames,
    bounds: Bounds,
    threads: &'f [Thread],
    /// The reason of unknown time.
    lost: NameId,
    damaged: Vec<Span>,
    ctx: &'f Ctx,
}

impl BlockReader<'_> {
    fn stores(&mut self, index: Index, cpus: usize) -> Result<RowStores, HistoryFileError> {
        let Index { segments, calls, samples, runs, requests, services, page_faults, counters, marks } = index;
        let threads = self.bounds.threads;
        let mut counter = |CounterIndex { name, owners, values }: CounterIndex| {
            let sorted = owners.is_sorted_by(|a, b| a < b) && self.bounds.name(name);
            let values = self.family(values, owners.len())?;
            sorted.then_some(CounterStore { name, owners, values }).ok_or_else(|| self.contradiction())
        };
        let counters = counters.into_iter().map(&mut counter).collect::<Result<Vec<_>, _>>()?;
        let stores = RowStores {
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
        };
        Ok(stores.kept_in(LeafPool::within(self.ctx, 0)?))
    }

    fn contradiction(&self) -> HistoryFileError {
        self.file.contradiction(self.sections.index)
    }

    fn block(&self, entry: &BlockEntry) -> Option<Vec<u8>> {
        self.file.block(self.sections.leaves, entry.offset, entry.length)
    }

    /// The store of a family of so many lines.
    fn family<R: CheckedRow>(&mut self, index: FamilyIndex, lines: usize) -> Result<LineStore<R>, HistoryFileError> {
        self.ctx.cancel.check()?;
        let FamilyIndex { blocks, parts: Parts { parts, lines: starts } } = index;
        let mut rows = vec![0_u32; blocks.len()];
        for part in &parts {
            let rows = rows.get_mut(part.leaf as usize).ok_or_else(|| self.contradiction())?;
            *rows = rows.saturating_add(part.rows.into());
        }
        if starts.len() != lines + 1 || rows.iter().any(|rows| *rows > u32::from(u16::MAX)) {
            return Err(self.contradiction());
        }
        let mut is_damaged = vec![false; blocks.len()];
        let mut leaves = Vec::with_capacity(blocks.len());
        for ((block, rows), is_damaged) in blocks.iter().zip(rows).zip(&mut is_damaged) {
            let leaf = self.block(block).and_then(|bytes| Leaf::from_bytes(bytes.into(), R::FAMILY).ok());
            leaves.push(leaf.filter(|leaf| leaf.rows() == rows as usize).unwrap_or_else(|| {
                *is_damaged = true;
                // In place of the rows that are missing, until they are left out.
                let none = R::of(Span::default(), |_| 0);
                Leaf::encode(&vec![none; rows as usize], [])
            }));
        }
        let store = LineStore::from_parts(leaves, parts, starts).map_err(|_| self.contradiction())?;
        for line in lines_of(&store) {
            let mut before = None;
            for part in line {
                let Some(is_damaged) = is_damaged.get_mut(part.leaf as usize) else { continue };
                *is_damaged = *is_damaged || !self.is_believed(&store, part, &mut before);
                before = before.filter(|_| !*is_damaged);
            }
        }
        let damaged = blocks.iter().zip(&is_damaged).filter(|(_, damaged)| **damaged);
        self.damaged.extend(damaged.map(|(of, _)| lossy(of.span)));
        if is_damaged.iter().any(|damaged| *damaged) {
            return Ok(self.without(&store, &is_damaged, lines));
        }
        Ok(store)
    }

    /// The rows of a part have known ids and are in order of time. `before` is the span of the row before them.
    fn is_believed<R: CheckedRow>(&self, store: &LineStore<R>, part: &LinePart, before: &mut Option<Span>) -> bool {
        store.rows_of(part).all(|row| {
            let span = row.span();
            let in_order = match before.replace(span) {
                None => true,
                Some(before) if R::OVERLAPS => before.start <= span.start,
                Some(before) => before.end <= span.start,
            };
            in_order && span.start <= span.end && row.is_known(&self.bounds)
        })
    }

    /// The store without the rows of its damaged leaves.
    fn without<R: CheckedRow>(&self, store: &LineStore<R>, is_damaged: &[bool], lines: usize) -> LineStore<R> {
        let mut builder = LineStoreBuilder::default();
        for (line, of) in lines_of(store).enumerate() {
            for (at, part) in of.iter().enumerate() {
                if is_damaged.get(part.leaf as usize) == Some(&false) {
                    builder.push(line, store.rows_of(part));
                    continue;
                }
                let life = self.threads.get(line).map_or(part.start, |thread| thread.life.end);
                let end = of.get(at + 1).map_or(life, |next| next.start);
                builder.push(line, R::missing(Span::new(part.start, end.max(part.start)), self.lost));
            }
        }
        builder.finish(lines)
    }

    fn marks(&mut self, index: MarkIndex) -> Result<MarkStore, HistoryFileError> {
        let MarkIndex { blocks, open } = index;
        let mut leaves = Vec::with_capacity(blocks.len());
        for block in &blocks {
            let leaf = self.block(block).and_then(|bytes| MarkLeaf::from_bytes(bytes.into()).ok());
            match leaf.filter(|leaf| self.are_known(leaf)) {
                Some(leaf) => leaves.push(leaf),
                None => self.damaged.push(lossy(block.span)),
            }
        }
        match open.iter().all(|mark| self.bounds.mark(mark)) {
            true => Ok(MarkStore::from_parts(leaves, open)),
            false => Err(self.contradiction()),
        }
    }

    fn are_known(&self, leaf: &MarkLeaf) -> bool {
        let store = MarkStore::from_parts(vec![leaf.clone()], []);
        let mark = |row: MarkRow| row.with_fields(store.fields(row.number).collect());
        store.all().all(|row| self.bounds.mark(&mark(row)))
    }
}

/// The parts of each line.
fn lines_of<R: StoredRow>(store: &LineStore<R>) -> impl Iterator<Item = &[LinePart]> {
    store.lines().windows(2).map(|line| {
        let &[from, to] = line else { return &[][..] };
        store.parts().get(from as usize..to as usize).unwrap_or(&[])
    })
}

/// The span of lost rows: an instant lasts a nanosecond, so that it meets what contains it.
fn lossy(span: Span) -> Span {
    Span::new(span.start, span.end.max(span.start.saturating_add(1)))
}
