//! The index of a history file: where the blocks of each family are, and which lines have which of their rows.

use crate::base::names::NameId;
use crate::base::pack::{Pack, Unpack};
use crate::base::packed::{Packed, packed};
use crate::base::time::{Span, Timestamp};
use crate::timeline::store::leaf::StoredRow;
use crate::timeline::store::nodes::{LeafNode, LiftedRow, NodeBounds};
use crate::timeline::store::parts::{LinePart, LineStore};
use crate::timeline::store::values::PartValue;
use crate::timeline::{CounterOwner, Mark};

/// A leaf in its section.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockEntry {
    pub offset: u64,
    pub length: u64,
    /// Of its rows.
    pub span: Span,
}

/// The blocks of one family, and the parts of its lines.
#[derive(Debug, Default)]
pub(super) struct FamilyIndex {
    pub blocks: Vec<BlockEntry>,
    /// One for each block.
    pub nodes: Vec<LeafNode>,
    pub parts: Parts,
}

/// The parts of all lines.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub parts: Vec<LinePart>,
    /// By line: the position of its first part; then the number of parts.
    pub lines: Vec<u32>,
}

/// A hardware counter.
#[derive(Debug)]
pub(super) struct CounterIndex {
    pub name: NameId,
    pub owners: Vec<CounterOwner>,
    pub values: FamilyIndex,
}

/// The blocks of delimiting events.
#[derive(Debug)]
pub(super) struct MarkIndex {
    pub blocks: Vec<BlockEntry>,
    /// Those after the last block.
    pub open: Vec<Mark>,
}

/// The index of all families.
#[derive(Debug)]
pub(super) struct Index {
    pub segments: FamilyIndex,
    pub calls: FamilyIndex,
    pub samples: FamilyIndex,
    pub runs: FamilyIndex,
    pub requests: FamilyIndex,
    pub services: FamilyIndex,
    pub page_faults: Option<FamilyIndex>,
    pub counters: Vec<CounterIndex>,
    pub marks: MarkIndex,
}

/// What is known of the values of all parts, one number for each shown value, in a section of its own.
#[derive(Debug)]
pub(super) struct Values {
    pub segments: Vec<u8>,
    pub calls: Vec<u8>,
    pub runs: Vec<u8>,
}

impl Values {
    /// Those of the parts of a family.
    pub fn of<R: StoredRow>(store: &LineStore<R>) -> Vec<u8> {
        let numbers = |part: &LinePart| part.values.map(PartValue::number).into_iter().take(R::SHOWN);
        store.parts().iter().flat_map(numbers).collect()
    }

    /// Put them to the parts of a family; false where they are none, or of other parts.
    pub fn put<R: StoredRow>(numbers: &[u8], index: &mut FamilyIndex) -> bool {
        let Parts { parts, .. } = &mut index.parts;
        if R::SHOWN == 0 || numbers.len() != parts.len() * R::SHOWN {
            return false;
        }
        parts.iter_mut().zip(numbers.chunks(R::SHOWN)).all(|(part, numbers)| {
            part.values
                .iter_mut()
                .zip(numbers)
                .all(|(value, number)| PartValue::of_number(*number).map(|known| *value = known).is_some())
        })
    }
}

packed! {
    Values { segments, calls, runs }
    BlockEntry { offset, length, span }
    NodeBounds { span, low, high }
    LiftedRow { span, line, row }
    LeafNode { bounds, times, lifted }
    FamilyIndex { blocks, nodes, parts }
    CounterIndex { name, owners, values }
    MarkIndex { blocks, open }
    Index { segments, calls, samples, runs, requests, services, page_faults, counters, marks }
}

/// By line the number of its parts, then each: its leaf, its rows and its start, as distances from the part before.
impl Packed for Parts {
    fn pack(&self, pack: &mut Pack) {
        pack.number(self.lines.len() as u64);
        for line in self.lines.windows(2) {
            let &[from, to] = line else { continue };
            let parts = self.parts.get(from as usize..to as usize).unwrap_or(&[]);
            pack.number(parts.len() as u64);
            let (mut leaf, mut start) = (0, Timestamp::ZERO);
            for part in parts {
                pack.number(part.leaf.wrapping_sub(leaf).into());
                pack.number(part.first.into());
                pack.number(part.rows.into());
                pack.signed(part.start.ns().wrapping_sub(start.ns()));
                (leaf, start) = (part.leaf, part.start);
            }
        }
    }

    fn unpack(unpack: &mut Unpack<'_>) -> Option<Self> {
        let mut all = Parts::default();
        let lines = unpack.index(unpack.0.len().checked_add(2)?)?;
        if lines == 0 {
            return Some(all);
        }
        all.lines.push(0);
        for _ in 1..lines {
            let (mut leaf, mut start, mut before) = (0_u32, Timestamp::ZERO, 0_u32);
            for _ in 0..unpack.index(unpack.0.len().checked_add(1)?)? {
                leaf = leaf.checked_add(u32::unpack(unpack)?)?;
                let (first, rows) = (u16::unpack(unpack)?, u16::unpack(unpack)?);
                start = start.wrapping_add(unpack.signed()? as u64);
                all.parts.push(LinePart { start, before, leaf, first, rows, values: Default::default() });
                before = before.checked_add(rows.into())?;
            }
            all.lines.push(u32::try_from(all.parts.len()).ok()?);
        }
        Some(all)
    }
}
