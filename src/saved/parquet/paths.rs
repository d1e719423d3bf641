//! The table of paths: each context with each context on its path, itself included.
//!
//! In: the contexts of a part. Out: columns, whose rows are made for one row group at a time, since a deep tree has
//! many. With it a query adds up times below a context by a join, and needs no recursion.

use super::file::{ColumnData, ColumnKind, FileColumn};
use crate::model::context::{ContextId, Contexts};
use parquet::data_type::ByteArray;
use std::ops::Range;

/// Rows of a row group, nearly: paths are not divided.
const GROUP: usize = 1 << 17;
/// Rows that a part may have: beyond, its tree is deeper than a program's.
pub(super) const MOST_ROWS: usize = 1 << 28;

/// Contexts whose paths have the rows of a row group, in order of the groups; `None` beyond the most rows.
pub(super) fn groups(contexts: &Contexts) -> Option<Vec<Range<usize>>> {
    let (mut groups, mut from, mut rows, mut all) = (Vec::new(), 0, 0, 0_usize);
    for at in 0..contexts.len() {
        let length = contexts.depth(ContextId::at(at)) as usize + 1;
        (rows, all) = (rows + length, all.checked_add(length).filter(|all| *all <= MOST_ROWS)?);
        if rows >= GROUP || at + 1 == contexts.len() {
            groups.push(from..at + 1);
            (from, rows) = (at + 1, 0);
        }
    }
    Some(groups)
}

/// The columns of the table.
pub(super) fn columns<'a>(part: ByteArray, contexts: &'a Contexts, groups: &'a [Range<usize>]) -> Vec<FileColumn<'a>> {
    let rows = move |group: usize| {
        let of_group = groups.get(group).cloned().unwrap_or_default();
        of_group.flat_map(move |at| contexts.path(ContextId::at(at)).into_iter().map(move |above| (at, above)))
    };
    let number = |name: &str, value: fn((usize, ContextId)) -> i64| FileColumn {
        name: name.to_owned(),
        kind: ColumnKind::Ids,
        values: Box::new(move |group| ColumnData::Numbers(rows(group).map(|row| Some(value(row))).collect())),
    };
    let parts = move |group: usize| ColumnData::Texts(rows(group).map(|_| Some(part.clone())).collect());
    vec![
        FileColumn { name: "part".to_owned(), kind: ColumnKind::Texts, values: Box::new(parts) },
        number("context", |(at, _)| i64::try_from(at).unwrap_or(i64::MAX)),
        number("above", |(_, above)| above.raw().into()),
    ]
}
