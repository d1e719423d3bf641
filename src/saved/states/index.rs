//! The index of a family in a history file: where its blocks are, and which lines have which of their rows.

use crate::base::names::NameId;
use crate::base::packed::packed;
use crate::base::time::Span;
use crate::timeline::store::directory::LineDirectory;
use crate::timeline::store::nodes::{LeafNode, LiftedRow, NodeBounds};
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

packed! {
    BlockEntry { offset, length, span }
    NodeBounds { span, low, high }
    LiftedRow { span, line, row }
    LeafNode { bounds, times, lifted }
    FamilyIndex { blocks, nodes, directory }
    CounterIndex { name, owners, values }
    MarkIndex { blocks, open }
}
