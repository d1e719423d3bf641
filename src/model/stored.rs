//! The size of the store of a recording's states, family by family, as `info --timings` shows it.

/// The rows of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredFamily {
    /// `segments`, `calls`, ...
    pub family: &'static str,
    /// Threads, CPUs, ... that have rows.
    pub lines: u64,
    /// Number of rows.
    pub rows: u64,
    /// Blocks of compressed rows.
    pub leaves: u64,
    /// Tables that are read on the way to a row, the leaf among them: 2 where the index of lines leads to the leaf, 1
    /// where the number of a row does, 0 where there is no leaf.
    pub levels: u64,
    /// Bytes of the leaves, and of rows that are in none yet.
    pub bytes: u64,
    /// Bytes of the index, which is always in memory.
    pub index_bytes: u64,
}

/// The rows of all families that have any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredRows {
    /// By family.
    pub families: Vec<StoredFamily>,
}
