//! The index of a history file: where the blocks of each family are, and which lines have which of their rows.

use crate::base::names::NameId;
use crate::base::pack::{Pack, Unpack};
use crate::base::packed::{Packed, packed};
use crate::base::time::{Span, Timestamp};
use crate::timeline::store::directory::LineDirectory;
use crate::timeline::store::leaf::MOST_SHOWN;
use crate::timeline::store::nodes::{LeafNode, LiftedRow, NodeBounds};
use crate::timeline::store::part_value::PartValue;
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
#[derive(Debug)]
pub(super) struct FamilyIndex {
    pub blocks: Vec<BlockEntry>,
    /// One for each block.
    pub nodes: Vec<LeafNode>,
    pub directory: LineDirectory,
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

packed! {
    BlockEntry { offset, length, span }
    NodeBounds { span, low, high }
    LiftedRow { span, line, row }
    LeafNode { bounds, times, lifted }
    FamilyIndex { blocks, nodes, directory }
    CounterIndex { name, owners, values }
    MarkIndex { blocks, open }
    Index { segments, calls, samples, runs, requests, services, page_faults, counters, marks }
}

/// The number of values that rows show; by line the number of its parts, then each: its leaf, its rows, its start and
/// what is known of its values; leaf and start as distances from the part before.
impl Packed for LineDirectory {
    fn pack(&self, pack: &mut Pack) {
        pack.number(self.shown() as u64);
        pack.number(self.lines() as u64);
        for line in 0..self.lines() {
            let parts = self.line(line);
            pack.number(parts.len() as u64);
            let (mut leaf, mut start) = (0, Timestamp::ZERO);
            for part in parts.filter_map(|part| self.part(part)) {
                pack.number(part.leaf.wrapping_sub(leaf).into());
                pack.number(part.first.into());
                pack.number(part.rows.into());
                pack.signed(part.start.ns().wrapping_sub(start.ns()));
                pack.number(PartValue::to_number(part.values));
                (leaf, start) = (part.leaf, part.start);
            }
        }
    }

    fn unpack(unpack: &mut Unpack<'_>) -> Option<Self> {
        let shown = usize::unpack(unpack).filter(|shown| *shown <= MOST_SHOWN)?;
        let mut all = LineDirectory::for_values(shown);
        for _ in 0..unpack.index(unpack.0.len().checked_add(1)?)? {
            all.begin_line();
            let (mut leaf, mut start) = (0_u32, Timestamp::ZERO);
            for _ in 0..unpack.index(unpack.0.len().checked_add(1)?)? {
                leaf = leaf.checked_add(u32::unpack(unpack)?)?;
                let (first, rows) = (usize::from(u16::unpack(unpack)?), usize::from(u16::unpack(unpack)?));
                start = start.wrapping_add(unpack.signed()? as u64);
                all.push(start, leaf, first..first + rows, PartValue::of_number(unpack.number()?)?);
            }
        }
        all.begin_line();
        all.seal();
        Some(all)
    }
}
