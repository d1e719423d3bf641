//! One database of the recordings of several.
//!
//! In: databases, and which of their parts count ([`ChosenParts`]). Out: a file that has the tables of each task
//! united, and of each part the list of its entries there; its other sections are copied as they are, since their ids
//! are positions in that list. The bytes follow from the set of parts alone. Cost: the tables of each database are read
//! twice, all else once; in memory are the tables of one task, what the databases say of their recordings, and one
//! section. ALGORITHMS.md section 6.4.

use super::recordings::{ChosenParts, Contents, RecordingPlace, StoredRecording};
use super::{CONTENTS, Database, OF_PART, SavedFileError, SavedKind, TABLES, USED};
use crate::base::ctx::Ctx;
use crate::base::file::Output;
use crate::base::pack::Pack;
use crate::base::packed::bytes_of;
use crate::model::united::{ModelTables, Renamed, TableUnion, UnitedIds};
use crate::saved::writing::save_sections;
use std::collections::{BTreeMap, BTreeSet};

/// A part to copy.
struct CopiedPart {
    database: usize,
    /// The numbers of its sections in its database, and in the file.
    from: u32,
    to: u32,
}

/// Write the chosen parts of databases to an output, where only a database may be replaced. Returns its length.
pub fn merge(databases: &[Database], chosen: &ChosenParts, output: Output, ctx: &Ctx) -> Result<u64, SavedFileError> {
    let (contents, parts) = plan(databases, chosen);
    let path = output.path().to_owned();
    save_sections(SavedKind::Executions, output, |out| {
        let io = |error| SavedFileError::Io { path: path.clone(), error };
        out.add(CONTENTS, &bytes_of(&contents)).map_err(io)?;
        ctx.progress.enter("merging", parts.values().map(Vec::len).sum::<usize>() as u64);
        for (task, name) in (0..).zip(contents.tasks()) {
            let Some(parts) = parts.get(name.as_str()) else { continue };
            let united = united(databases, &name, parts, ctx)?;
            out.add(TABLES.of(task), &bytes_of(&united)).map_err(io)?;
            let mut ids = KnownIds::new(databases, &name, &united, parts);
            for part in parts {
                ctx.cancel.check()?;
                let database = &databases[part.database];
                let used = ids.of_part(part)?;
                out.add(USED.of(part.to), &used).map_err(io)?;
                for section in OF_PART {
                    let block = database.file.block(section.of(part.from))?;
                    out.add_block(section.of(part.to), &block).map_err(io)?;
                }
                ctx.progress.step(1);
            }
        }
        Ok(())
    })
}

/// What the file says of its recordings, and by task the parts to copy, in the order of their numbers.
fn plan(databases: &[Database], chosen: &ChosenParts) -> (Contents, BTreeMap<String, Vec<CopiedPart>>) {
    let first_of: Vec<Vec<usize>> =
        databases.iter().map(|database| database.contents.numbered().map(|(_, first)| first).collect()).collect();
    let (mut contents, mut copied, mut next) = (Contents::default(), BTreeMap::<String, Vec<CopiedPart>>::new(), 0);
    for (RecordingPlace { database, recording }, kept) in &chosen.kept {
        let stored = &databases[*database].contents.recordings[*recording];
        let mut parts = Vec::new();
        for at in kept {
            let part = &stored.parts[*at];
            let from = (first_of[*database][*recording] + at) as u32;
            copied.entry(part.task.clone()).or_default().push(CopiedPart { database: *database, from, to: next });
            parts.push(part.clone());
            next += 1;
        }
        contents.recordings.push(StoredRecording { parts, ..stored.clone() });
    }
    (contents, copied)
}

/// The tables of a task of all databases that have parts of it.
fn united(databases: &[Database], task: &str, parts: &[CopiedPart], ctx: &Ctx) -> Result<ModelTables, SavedFileError> {
    let mut union = TableUnion::default();
    for database in parts.iter().map(|part| part.database).collect::<BTreeSet<_>>() {
        ctx.cancel.check()?;
        union.add(&databases[database].tables_of(task)?, &Renamed::new(), &BTreeMap::new());
    }
    union.use_all();
    Ok(union.sorted().0)
}

/// The ids of the databases' tables in the united ones.
struct KnownIds<'a> {
    databases: &'a [Database],
    task: &'a str,
    /// The united tables, found by what they hold.
    union: TableUnion,
    /// Of databases with several parts, whose tables would be read for each of them.
    known: BTreeMap<usize, (ModelTables, UnitedIds)>,
    several: BTreeSet<usize>,
}

impl<'a> KnownIds<'a> {
    fn new(databases: &'a [Database], task: &'a str, united: &ModelTables, parts: &[CopiedPart]) -> KnownIds<'a> {
        let mut union = TableUnion::default();
        union.add(united, &Renamed::new(), &BTreeMap::new());
        let (mut once, mut several) = (BTreeSet::new(), BTreeSet::new());
        for CopiedPart { database, .. } in parts {
            if !once.insert(*database) {
                several.insert(*database);
            }
        }
        KnownIds { databases, task, union, known: BTreeMap::new(), several }
    }

    /// The bytes of the list of a part's entries in the united tables.
    fn of_part(&mut self, part: &CopiedPart) -> Result<Vec<u8>, SavedFileError> {
        let database = &self.databases[part.database];
        let read = match self.known.remove(&part.database) {
            Some(known) => known,
            None => {
                let tables = database.tables_of(self.task)?;
                let ids = self.union.add(&tables, &Renamed::new(), &BTreeMap::new());
                (tables, ids)
            }
        };
        let (tables, ids) = &read;
        let used = database.used(part.from, tables)?.united(ids);
        let used = used.ok_or_else(|| database.file.contradiction(USED.of(part.from)))?;
        let mut pack = Pack::default();
        used.pack(&mut pack);
        if self.several.contains(&part.database) {
            self.known.insert(part.database, read);
        }
        Ok(pack.0)
    }
}
