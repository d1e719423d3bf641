//! The size of the store of a recording's states and the memory that was held, for `info --timings`.

use crate::base::heap::{HeldPart, PartSizes};
use crate::model::stored::{StoredFamily, StoredRows};
use serde::Serialize;
use std::fmt::Write;

/// All families, and their sums.
#[derive(Clone, Debug, Serialize)]
pub(super) struct StoreJson {
    leaves: u64,
    levels: u64,
    bytes: u64,
    index_bytes: u64,
    families: Vec<FamilyJson>,
}

/// A part of the program that held memory.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct MemoryJson {
    part: &'static str,
    bytes: u64,
    given_bytes: Option<u64>,
}

impl MemoryJson {
    /// The parts that have held anything, in the order of the work.
    pub fn of(parts: &PartSizes) -> Vec<MemoryJson> {
        let json = |HeldPart { part, most, given }| MemoryJson { part: part.name(), bytes: most, given_bytes: given };
        parts.held().map(json).collect()
    }
}

#[derive(Clone, Copy, Debug, Serialize)]
struct FamilyJson {
    family: &'static str,
    lines: u64,
    rows: u64,
    leaves: u64,
    levels: u64,
    bytes: u64,
    index_bytes: u64,
}

impl StoreJson {
    pub fn new(stored: &StoredRows) -> StoreJson {
        let family = |of: &StoredFamily| {
            let StoredFamily { family, lines, rows, leaves, levels, bytes, index_bytes } = *of;
            FamilyJson { family, lines, rows, leaves, levels, bytes, index_bytes }
        };
        let sum = |of: fn(&StoredFamily) -> u64| stored.families.iter().map(of).sum();
        StoreJson {
            leaves: sum(|family| family.leaves),
            levels: stored.families.iter().map(|family| family.levels).max().unwrap_or(0),
            bytes: sum(|family| family.bytes),
            index_bytes: sum(|family| family.index_bytes),
            families: stored.families.iter().map(family).collect(),
        }
    }

    /// A line for each family.
    pub fn write(&self, out: &mut String) -> std::fmt::Result {
        let StoreJson { leaves, levels, bytes, index_bytes, families } = self;
        writeln!(out, "\nstore: {bytes} bytes in {leaves} leaves, {index_bytes} bytes of index, {levels} levels")?;
        let titles = ["lines", "rows", "leaves", "levels", "bytes", "index"];
        titles.iter().try_for_each(|title| write!(out, "{title:>10} "))?;
        writeln!(out, " rows of")?;
        for FamilyJson { family, lines, rows, leaves, levels, bytes, index_bytes } in families {
            let figures = [lines, rows, leaves, levels, bytes, index_bytes];
            figures.iter().try_for_each(|figure| write!(out, "{figure:>10} "))?;
            writeln!(out, " {family}")?;
        }
        Ok(())
    }
}
