//! The size of the stores of a timeline, for `info --timings`.
//!
//! In: the stores. Out: lines, rows, leaves, levels and bytes of each family that has rows. Cost: linear in the index;
//! leaves that are in a file are read once for their size.

use super::families::RowStores;
use super::leaf::StoredRow;
use super::leaves::Leaves;
use super::parts::LineStore;
use crate::model::stored::{StoredFamily, StoredRows};
use crate::timeline::questions::Family;
use get_size2::GetSize;

/// Bytes of all leaves.
fn leaf_bytes(leaves: &Leaves) -> u64 {
    leaves.iter().map(|leaf| leaf.bytes().len() as u64).sum()
}

fn of_family<R: StoredRow>(store: &LineStore<R>) -> StoredFamily {
    let directory = store.directory();
    let lines = (0..directory.lines()).filter(|line| !directory.line(*line).is_empty()).count();
    StoredFamily {
        family: R::FAMILY.name(),
        lines: lines as u64,
        rows: directory.rows(),
        leaves: store.leaves().len() as u64,
        levels: store.nodes().levels() as u64,
        bytes: leaf_bytes(store.leaves()),
        index_bytes: (directory.get_heap_size() + store.nodes().get_heap_size()) as u64,
    }
}

impl RowStores {
    /// What each family holds that has rows.
    pub fn stored(&self) -> StoredRows {
        let marks = &self.marks;
        let mut families = vec![
            of_family(&self.segments),
            of_family(&self.calls),
            of_family(&self.samples),
            of_family(&self.runs),
            of_family(&self.requests),
            of_family(&self.services),
        ];
        families.extend(self.page_faults.iter().map(of_family));
        families.extend(self.counters.iter().map(|counter| of_family(&counter.values)));
        families.push(StoredFamily {
            family: Family::Marks.name(),
            lines: 1,
            rows: marks.len() as u64,
            leaves: marks.leaves().len() as u64,
            levels: u64::from(marks.leaves().len() > 0),
            bytes: leaf_bytes(marks.leaves()) + marks.open_bytes() as u64,
            index_bytes: 0,
        });
        families.retain(|family| family.rows > 0);
        StoredRows { families }
    }
}
