//! The delimiting events of all tasks, in the order in which they were recorded or added.
//!
//! In: marks with any number of fields. Out: the same by their numbers. Each [`MOST_MARKS`] of them are a leaf: a
//! column for each property of a mark, and columns of all their fields one after the other; the last ones are open. A
//! mark takes some 10 bytes, and as many as its fields need. Cost: O(1) for a mark.

use super::columns::BLOCK;
use super::leaf::RowBlock;
use super::leaf_bytes::{Leaf, LeafError, LeafWriter};
use super::leaves::{LeafHandle, LeafPin, Leaves};
use super::pool::LeafPool;
use super::rows::{optional, present, unzigzag, zigzag};
use super::whole::StoreError;
use crate::base::names::NameId;
use crate::timeline::questions::Family;
use crate::timeline::rows::{Mark, MarkField, MarkRow};
use crate::timeline::segments::ThreadId;
use get_size2::GetSize;
use std::ops::Range;
use std::sync::Arc;

/// Marks of a leaf.
const MOST_MARKS: usize = 1024;

/// The columns of a leaf, by number.
#[derive(Clone, Copy)]
enum MarkColumn {
    Time,
    /// The task, whether the mark begins an execution, whether it has a key.
    Task,
    Thread,
    Trace,
    Cpu,
    Key,
    Kind,
    /// Number of fields of the marks before it.
    FieldsBefore,
    FieldName,
    FieldValue,
}

/// Columns of a mark without its fields.
const ROW_COLUMNS: usize = MarkColumn::FieldsBefore as usize;

/// [`MOST_MARKS`] marks that follow each other.
#[derive(Clone, Debug)]
pub struct MarkLeaf(Leaf);

/// The marks of a leaf, as they are read.
#[derive(Clone, Copy)]
struct MarkView<'l>(&'l Leaf);

impl MarkLeaf {
    fn encode(marks: &OpenMarks) -> MarkLeaf {
        let OpenMarks { rows, fields, ends } = marks;
        let base = rows.iter().map(|mark| mark.time).min().unwrap_or_default();
        let mut leaf = LeafWriter::new(Family::Marks, base, rows.len());
        let mut numbers = Vec::with_capacity(fields.len().max(rows.len()));
        // In the order of `MarkColumn`.
        let mut append = |number: &dyn Fn(&MarkRow) -> u64| {
            numbers.clear();
            numbers.extend(rows.iter().map(number));
            leaf.append(&numbers);
        };
        append(&|mark| mark.time.abs_diff(base));
        append(&|mark| u64::from(mark.task) << 2 | u64::from(mark.begins) << 1 | u64::from(mark.key.is_some()));
        append(&|mark| optional(mark.thread.map(|thread| thread.raw())));
        append(&|mark| mark.trace.into());
        append(&|mark| mark.cpu.into());
        append(&|mark| mark.key.map_or(0, zigzag));
        append(&|mark| optional(mark.kind.map(|kind| kind.raw())));
        numbers.clear();
        numbers.extend([0].iter().chain(ends).take(rows.len()).map(|before| u64::from(*before)));
        leaf.append(&numbers);
        // Larger than zero, so that each field takes a byte.
        numbers.clear();
        numbers.extend(fields.iter().map(|field| u64::from(field.name.raw()) + 1));
        leaf.append_items(&numbers);
        numbers.clear();
        numbers.extend(fields.iter().map(|field| zigzag(field.value)));
        leaf.append_items(&numbers);
        MarkLeaf(leaf.finish())
    }

    /// The leaf of marks that these bytes are.
    pub fn from_bytes(bytes: Arc<[u8]>) -> Result<MarkLeaf, LeafError> {
        let leaf = Leaf::from_bytes(bytes, Family::Marks)?;
        let before = (0..leaf.rows()).map(|at| MarkView(&leaf).number(MarkColumn::FieldsBefore, at) as usize);
        let in_order = before.clone().is_sorted() && before.clone().next_back().is_none_or(|last| last <= leaf.items());
        if in_order && leaf.rows() == MOST_MARKS { Ok(MarkLeaf(leaf)) } else { Err(LeafError::Header) }
    }
}

impl From<MarkLeaf> for Leaf {
    fn from(leaf: MarkLeaf) -> Leaf {
        leaf.0
    }
}

impl MarkView<'_> {
    #[inline(always)]
    fn number(self, column: MarkColumn, at: usize) -> u64 {
        self.0.columns.get(column as usize).map_or(0, |column| column.get(&self.0.bytes, at))
    }

    fn get(self, number: u32, at: usize) -> MarkRow {
        self.row(number, |column| self.number(column, at))
    }

    /// The mark whose columns have these numbers.
    #[inline(always)]
    fn row(self, number: u32, of: impl Fn(MarkColumn) -> u64) -> MarkRow {
        let task = of(MarkColumn::Task);
        MarkRow {
            number,
            time: self.0.base.wrapping_add(of(MarkColumn::Time)),
            task: (task >> 2) as u32,
            begins: task & 2 != 0,
            thread: present(of(MarkColumn::Thread)).map(ThreadId::from_raw),
            trace: of(MarkColumn::Trace) as u32,
            cpu: of(MarkColumn::Cpu) as u16,
            key: (task & 1 == 1).then(|| unzigzag(of(MarkColumn::Key))),
            kind: present(of(MarkColumn::Kind)).map(NameId::from_raw),
        }
    }

    /// Some marks from `at` on, of which the first has this number.
    fn decode(self, number: u32, at: usize, rows: &mut RowBlock<MarkRow>) {
        let mut columns = [[0; BLOCK]; ROW_COLUMNS];
        let count = BLOCK.min(MOST_MARKS - at);
        for (numbers, column) in columns.iter_mut().zip(&self.0.columns) {
            column.fill(&self.0.bytes, at, numbers);
        }
        rows.extend((0..count).map(|row| {
            let of = |column: MarkColumn| columns.get(column as usize).and_then(|numbers| numbers.get(row));
            self.row(number + row as u32, |column| of(column).copied().unwrap_or(0))
        }));
    }

    /// The positions of the fields of a mark.
    fn fields(self, at: usize) -> Range<usize> {
        let first = |at: usize| match at < MOST_MARKS {
            true => self.number(MarkColumn::FieldsBefore, at) as usize,
            false => self.0.items(),
        };
        first(at)..first(at + 1)
    }

    fn field(self, at: usize) -> MarkField {
        MarkField {
            name: NameId::from_raw(self.number(MarkColumn::FieldName, at).wrapping_sub(1) as u32),
            value: unzigzag(self.number(MarkColumn::FieldValue, at)),
        }
    }
}

/// Marks that are not in a leaf yet.
#[derive(Clone, Debug, Default, GetSize)]
struct OpenMarks {
    rows: Vec<MarkRow>,
    /// The fields of all of them, one after the other.
    fields: Vec<MarkField>,
    /// By mark: the number of fields up to its last one.
    ends: Vec<u32>,
}

impl OpenMarks {
    fn fields_of(&self, at: usize) -> &[MarkField] {
        let end = |mark: usize| self.ends.get(mark).map_or(0, |end| *end as usize);
        let first = at.checked_sub(1).map_or(0, end);
        self.fields.get(first..end(at)).unwrap_or(&[])
    }
}

#[derive(Clone, Debug, Default, GetSize)]
pub struct MarkStore {
    leaves: Leaves,
    /// Those after the last leaf.
    open: OpenMarks,
}

impl MarkStore {
    /// Add a mark, whatever its number, with its fields.
    pub fn push(&mut self, mark: MarkRow, fields: &[MarkField]) {
        let number = self.len() as u32;
        self.open.rows.push(MarkRow { number, ..mark });
        self.open.fields.extend_from_slice(fields);
        self.open.ends.push(self.open.fields.len() as u32);
        if self.open.rows.len() == MOST_MARKS {
            self.leaves.push(MarkLeaf::encode(&self.open).0, Family::Marks);
            self.open.rows.clear();
            self.open.fields.clear();
            self.open.ends.clear();
        }
    }

    /// The marks of these leaves, then `open`, which are fewer than a leaf has.
    pub fn from_parts(leaves: Vec<MarkLeaf>, open: impl IntoIterator<Item = Mark>) -> MarkStore {
        MarkStore::from_kept(Leaves::Here(leaves.into_iter().map(Leaf::from).collect()), open)
    }

    /// The marks of leaves that are looked at when they are read, then `open`.
    pub fn from_kept(leaves: Leaves, open: impl IntoIterator<Item = Mark>) -> MarkStore {
        let mut store = MarkStore { leaves, open: OpenMarks::default() };
        store.extend(open);
        store
    }

    /// The full leaves.
    pub fn leaves(&self) -> &Leaves {
        &self.leaves
    }

    /// The marks after those of the last leaf.
    pub fn open(&self) -> impl Iterator<Item = Mark> {
        let fields = |at: usize| self.open.fields_of(at).to_vec();
        self.open.rows.iter().enumerate().map(move |(at, mark)| mark.with_fields(fields(at)))
    }

    pub fn open_bytes(&self) -> usize {
        self.open.get_heap_size()
    }

    /// What does not hold of its leaves (`--check`): they are made again of their bytes.
    pub fn check(&self) -> Result<(), StoreError> {
        let read = |(leaf, of): (usize, LeafHandle<'_>)| {
            MarkLeaf::from_bytes(of.bytes().clone()).map_err(|error| StoreError::Leaf { leaf, error })
        };
        let leaves = self.leaves().iter().enumerate().map(read).collect::<Result<_, _>>()?;
        let again = MarkStore::from_parts(leaves, self.open());
        if again.len() == self.len() { Ok(()) } else { Err(StoreError::Rows(again.leaves.len())) }
    }

    /// Number of marks.
    pub fn len(&self) -> usize {
        self.leaves.len() * MOST_MARKS + self.open.rows.len()
    }

    /// Move the leaves, and those to come, to a pool.
    pub fn move_to(&mut self, pool: &Arc<LeafPool>) {
        self.leaves.move_to(pool, Family::Marks);
    }

    /// A mark by its number.
    pub fn get(&self, number: u32) -> Option<MarkRow> {
        self.read(number, &mut LeafPin::default())
    }

    fn read(&self, number: u32, pin: &mut LeafPin) -> Option<MarkRow> {
        let (leaf, at) = (number as usize / MOST_MARKS, number as usize % MOST_MARKS);
        match leaf < self.leaves.len() {
            true => Some(MarkView(self.leaves.get(leaf as u32, pin)?).get(number, at)),
            false => self.open.rows.get(at).copied(),
        }
    }

    /// Some marks from a number on that is a multiple of [`BLOCK`].
    fn decode(&self, number: u32, rows: &mut RowBlock<MarkRow>, pin: &mut LeafPin) {
        let (leaf, at) = (number as usize / MOST_MARKS, number as usize % MOST_MARKS);
        match leaf < self.leaves.len() {
            true => {
                let leaf = self.leaves.get(leaf as u32, pin);
                leaf.into_iter().for_each(|leaf| MarkView(leaf).decode(number, at, rows));
            }
            false => {
                rows.extend(self.open.rows.iter().skip(at).take(BLOCK).copied());
            }
        }
    }

    /// The fields of a mark.
    pub fn fields(&self, number: u32) -> impl Iterator<Item = MarkField> {
        let (of, at) = (number as usize / MOST_MARKS, number as usize % MOST_MARKS);
        let leaf = self.leaves.handle(of);
        let fields = leaf.as_deref().map_or(0..0, |leaf| MarkView(leaf).fields(at));
        let packed = fields.filter_map(move |field| Some(MarkView(leaf.as_deref()?).field(field)));
        let open = if of == self.leaves.len() { self.open.fields_of(at) } else { &[] };
        packed.chain(open.iter().copied())
    }

    /// All marks in order.
    pub fn all(&self) -> impl ExactSizeIterator<Item = MarkRow> {
        let (mut pin, mut block) = (LeafPin::default(), RowBlock::<MarkRow>::new());
        (0..self.len() as u32).map(move |number| {
            let in_block = number as usize % MOST_MARKS % BLOCK;
            if in_block == 0 {
                block.clear();
                self.decode(number, &mut block, &mut pin);
            }
            // The numbers are those of marks; one that cannot be read ends the work.
            block.get(in_block).copied().unwrap_or_default()
        })
    }
}

impl Extend<Mark> for MarkStore {
    fn extend<T: IntoIterator<Item = Mark>>(&mut self, marks: T) {
        marks.into_iter().for_each(|mark| self.push(MarkRow::of(0, &mark), &mark.fields));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::time::Timestamp;

    #[test]
    fn marks_and_their_fields_are_found_by_number() {
        let mark = |n: u32| Mark {
            time: Timestamp::new(i64::from(n) * 7 - 100),
            task: n % 3,
            begins: n.is_multiple_of(2),
            thread: (!n.is_multiple_of(11)).then_some(ThreadId::from_raw(n % 50)),
            trace: n % 2,
            cpu: if n.is_multiple_of(13) { u16::MAX } else { n as u16 % 4 },
            key: n.is_multiple_of(5).then_some(i64::MIN + i64::from(n)),
            kind: n.is_multiple_of(4).then_some(NameId::from_raw(n)),
            fields: (0..n % 4).map(|at| MarkField { name: NameId::from_raw(at), value: -i64::from(n) }).collect(),
        };
        let all: Vec<Mark> = (0..3 * MOST_MARKS as u32 + 5).map(mark).collect();
        let mut store = MarkStore::default();
        store.extend(all.iter().cloned());
        assert_eq!((store.len(), store.leaves.len()), (all.len(), 3));
        for (number, (mark, found)) in (0..).zip(all.iter().zip(store.all())) {
            assert_eq!(found, MarkRow::of(number, mark));
            assert_eq!(store.fields(number).collect::<Vec<_>>(), mark.fields);
        }
        assert_eq!(store.get(all.len() as u32), None);
        assert_eq!(store.fields(all.len() as u32).count(), 0);
    }
}
