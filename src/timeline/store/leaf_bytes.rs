//! The bytes of a leaf: one block that describes itself, so that it can be written anywhere and read back.
//!
//! ```text
//!  0  version (1)   family   number of columns   0
//!  4  bytes of the block (32 bits)      8  rows (32 bits)      12  items (32 bits; parts of lines, or fields of marks)
//! 16  base: the moment from which ends count (64 bits)
//! 24  for each column: offset in the block (32 bits), words of its bitmap (16 bits), bytes of a number, 0
//!     the columns (`super::columns`)
//!     four zeros, so that the last number can be read as eight bytes
//!     CRC-32 (the one of zlib and PNG) of all before it (32 bits)
//! ```
//! Numbers are little endian. In: columns, by a [`LeafWriter`]; or any bytes, by [`Leaf::from_bytes`], which reads what
//! a writer wrote and refuses all else: a flipped byte by the checksum, and bytes of a forger, whose checksum fits, by
//! the bounds of every column. Whatever is in a leaf, reading a row of it ends and does not panic. Cost: the checksum,
//! 1 ns for some ten bytes, and a look at each word of a bitmap.

use super::columns::PackedColumn;
use crate::base::time::Timestamp;
use crate::timeline::questions::Family;
use get_size2::{GetSize, GetSizeTracker};
use std::sync::Arc;

/// The version of the layout.
const VERSION: u8 = 2;
/// Bytes before the list of columns.
const HEADER: usize = 24;
/// Bytes of a column in the list.
const COLUMN: usize = 8;
/// Bytes after the columns: zeros and the checksum.
const TRAILER: usize = ZEROS + CHECKSUM;
/// Zeros before the checksum. With it they are the eight bytes that may be read at the last number.
const ZEROS: usize = 4;
const CHECKSUM: usize = 4;
/// The most columns of a leaf.
pub(super) const MOST_COLUMNS: usize = 10;

/// What is wrong with bytes that should be a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeafError {
    /// The length is not the one that the header states.
    #[error("it is cut off, or longer than it states")]
    Length,
    /// The checksum of the bytes is not the one at their end.
    #[error("its checksum does not fit")]
    Checksum,
    /// Made by another version.
    #[error("it has version {0}, known is {VERSION}")]
    Version(u8),
    /// Of another family than asked for.
    #[error("it has other rows than expected")]
    Family,
    /// A column does not fit into the bytes, or its bitmap does not fit the rows.
    #[error("column {0} does not fit its rows")]
    Column(u8),
    /// The header has values that no writer writes.
    #[error("its header is inconsistent")]
    Header,
}

/// Rows of one family, or delimiting events.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// The whole block.
    pub(super) bytes: Arc<[u8]>,
    pub(super) base: Timestamp,
    pub(super) columns: [PackedColumn; MOST_COLUMNS],
    rows: u32,
    items: u32,
}

/// The block of a leaf while columns are added.
pub(super) struct LeafWriter {
    bytes: Vec<u8>,
    columns: [PackedColumn; MOST_COLUMNS],
    added: usize,
    family: Family,
    base: Timestamp,
    rows: usize,
    items: usize,
}

/// Number of columns of a family.
fn columns_of(family: Family) -> usize {
    let of_rows = match family {
        Family::Segments | Family::Calls | Family::Samples => 6,
        Family::Services => 5,
        Family::Counters => 4,
        Family::Runs | Family::Faults | Family::Stacks => 3,
        Family::Requests | Family::Marks => 8,
        // No rows of these are stored.
        Family::Names => 0,
    };
    of_rows + item_columns(family)
}

/// Columns with a number for each item, not for each row: the last ones of the family. Items are the fields of marks,
/// and the parts of lines.
fn item_columns(family: Family) -> usize {
    match family {
        Family::Segments => 3,
        Family::Calls | Family::Samples | Family::Services | Family::Faults | Family::Marks => 2,
        _ => 0,
    }
}

/// True for families whose leaves name the lines of their parts, so that all lines can be asked at once. Lines of
/// others get their numbers when the last leaf is sealed.
pub(super) fn names_lines(family: Family) -> bool {
    item_columns(family) > 0 && family != Family::Marks
}

impl LeafWriter {
    /// A leaf of this many rows, to which the columns of its family will be added.
    pub fn new(family: Family, base: Timestamp, rows: usize) -> LeafWriter {
        let mut bytes = Vec::with_capacity(HEADER + MOST_COLUMNS * COLUMN + rows * 8 + TRAILER);
        bytes.resize(HEADER + columns_of(family) * COLUMN, 0);
        let columns = [PackedColumn::default(); MOST_COLUMNS];
        LeafWriter { bytes, columns, added: 0, family, base, rows, items: 0 }
    }

    /// Add the next column; an empty one is all zeros.
    pub fn append(&mut self, numbers: &[u64]) {
        if let Some(column) = self.columns.get_mut(self.added) {
            *column = PackedColumn::append(&mut self.bytes, numbers);
        }
        self.added += 1;
    }

    /// Add the next column, which has a number for each item.
    pub fn append_items(&mut self, numbers: &[u64]) {
        self.items = numbers.len();
        self.append(numbers);
    }

    /// The leaf.
    pub fn finish(self) -> Leaf {
        let LeafWriter { mut bytes, columns, added, family, base, rows, items } = self;
        debug_assert_eq!(added, columns_of(family), "{family:?}");
        let length = bytes.len() + TRAILER;
        let mut header = Vec::with_capacity(HEADER + added * COLUMN);
        header.extend([VERSION, family as u8, added as u8, 0]);
        [length, rows, items].iter().for_each(|number| header.extend((*number as u32).to_le_bytes()));
        header.extend(base.ns().to_le_bytes());
        columns.iter().take(added).for_each(|column| header.extend(column.to_bytes()));
        if let Some(place) = bytes.get_mut(..header.len()) {
            place.copy_from_slice(&header);
        }
        bytes.resize(bytes.len() + ZEROS, 0);
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        Leaf { bytes: bytes.into(), base, columns, rows: rows as u32, items: items as u32 }
    }
}

/// Some bytes as an array; `None` beyond the end.
fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

impl Leaf {
    /// The leaf of a family that a writer made these bytes of.
    pub fn from_bytes(bytes: Arc<[u8]>, family: Family) -> Result<Leaf, LeafError> {
        let number = |at: usize| array(&bytes, at).map(u32::from_le_bytes).ok_or(LeafError::Length);
        let [version, of, columns, zero] = number(0)?.to_le_bytes();
        let end = bytes.len().checked_sub(CHECKSUM).ok_or(LeafError::Length)?;
        if number(4)? as usize != bytes.len() {
            return Err(LeafError::Length);
        }
        if crc32fast::hash(bytes.get(..end).unwrap_or(&[])) != number(end)? {
            return Err(LeafError::Checksum);
        }
        if version != VERSION {
            return Err(LeafError::Version(version));
        }
        if of != family as u8 {
            return Err(LeafError::Family);
        }
        let (rows, items) = (number(8)?, number(12)?);
        let base = array(&bytes, 16).map(i64::from_le_bytes).ok_or(LeafError::Length)?;
        let from = HEADER + columns_of(family) * COLUMN;
        let data = end.checked_sub(ZEROS).filter(|data| *data >= from).ok_or(LeafError::Length)?;
        let zeros = bytes.get(data..end).is_some_and(|zeros| zeros == [0; ZEROS]);
        // An item takes a byte at least, so the loops over items end.
        let has_few_items = items as usize <= if item_columns(family) > 0 { bytes.len() } else { 0 };
        if usize::from(columns) != columns_of(family)
            || zero != 0
            || !zeros
            || rows > u32::from(u16::MAX)
            || !has_few_items
        {
            return Err(LeafError::Header);
        }
        let mut leaf =
            Leaf { base: Timestamp::new(base), columns: [PackedColumn::default(); MOST_COLUMNS], rows, items, bytes };
        let known = columns_of(family);
        for (at, column) in (0..).zip(leaf.columns.iter_mut().take(known)) {
            let of_items = usize::from(at) >= known - item_columns(family);
            let count = if of_items { items } else { rows } as usize;
            let place = HEADER + usize::from(at) * COLUMN;
            let read = array(&leaf.bytes, place).ok_or(LeafError::Length)?;
            *column = PackedColumn::from_bytes(read, &leaf.bytes, from..data, count).ok_or(LeafError::Column(at))?;
        }
        if names_lines(family) && !leaf.has_parts(known - item_columns(family)) {
            return Err(LeafError::Header);
        }
        Ok(leaf)
    }

    /// True where the parts that its columns from `from` on name are those of all rows: their lines and the positions
    /// of their first rows ascend.
    fn has_parts(&self, from: usize) -> bool {
        let Some([lines, first, ..]) = self.columns.get(from..) else { return false };
        let ascends = |column: &PackedColumn| {
            let mut numbers = (0..self.items()).map(|part| column.get(&self.bytes, part));
            let mut before = numbers.next();
            numbers.all(|number| before.replace(number).is_none_or(|before| before < number))
        };
        let last = self.items().checked_sub(1).map(|last| first.get(&self.bytes, last));
        let fits = last.map_or(self.rows == 0, |last| last < u64::from(self.rows));
        let begins = self.items == 0 || first.get(&self.bytes, 0) == 0 && lines.get(&self.bytes, 0) > 0;
        fits && begins && ascends(lines) && ascends(first)
    }

    /// The block.
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows as usize
    }

    /// Number of items of all rows.
    pub(super) fn items(&self) -> usize {
        self.items as usize
    }
}

impl GetSize for Leaf {
    fn get_heap_size_with_tracker<T: GetSizeTracker>(&self, tracker: T) -> (usize, T) {
        (self.bytes.len(), tracker)
    }
}
