//! Databases from parts that were elsewhere: the same bytes as those of the databases that they are from; or from
//! samples of their parts.
//!
//! In: recordings with their parts, each as a model. Out: a file, as `build` writes it of one recording, as `merge`
//! writes it of several. A part that was exported must be what its digest says. In memory are the packed parts.
//! ALGORITHMS.md sections 6.4 and 6.6.

use super::packed_part::PackedPart;
#[cfg(feature = "parquet")]
use super::packed_part::digest_of_sections;
use super::recordings::{Contents, StoredPart, StoredRecording};
use super::tables::{self, UsedEntries};
use super::{CONTENTS, Database, OF_PART, TABLES, USED, Writer};
use crate::base::ctx::{Cancelled, Ctx};
#[cfg(feature = "parquet")]
use crate::base::digest::Digest;
use crate::base::file::Output;
use crate::base::pack::{Pack, Unpack};
use crate::base::packed::bytes_of;
use crate::model::Model;
use crate::model::united::{ModelTables, Renamed, TableUnion};
use crate::saved::writing::save_sections;
use crate::saved::{SavedFileError, SavedKind};
use std::collections::BTreeMap;

/// Recordings on their way into a file.
#[derive(Default)]
pub struct RestoredDatabase {
    recordings: Vec<(StoredRecording, Vec<PackedPart>)>,
}

impl RestoredDatabase {
    /// Add a recording that has no parts yet.
    #[cfg(feature = "parquet")]
    pub fn recording(&mut self, recording: StoredRecording) {
        self.recordings.push((recording, Vec::new()));
    }

    /// Add a recording of whose parts samples will come: its digest will be that of these.
    pub fn sampled(&mut self, recording: StoredRecording) {
        self.recordings.push((StoredRecording { parts: Vec::new(), ..recording }, Vec::new()));
    }

    /// Add the executions of the next part of the last recording that are kept.
    pub fn add_sample(&mut self, part: &StoredPart, model: Model, ctx: &Ctx) -> Result<(), Cancelled> {
        let added = PackedPart::of_kept(model, part.task.clone(), Some(part.executions), ctx)?;
        self.add(added);
        Ok(())
    }

    /// Add the next part of the last recording as a database has it, by the positions of its recording and of it there.
    pub fn add_stored(&mut self, database: &Database, place: (usize, usize)) -> Result<(), SavedFileError> {
        self.add(database.stored_part(place)?);
        Ok(())
    }

    fn add(&mut self, (part, packed): (StoredPart, PackedPart)) {
        if let Some((recording, parts)) = self.recordings.last_mut() {
            recording.parts.push(part);
            parts.push(packed);
            recording.digest = StoredRecording::digest(&recording.facts, &recording.parts);
        }
    }

    /// Add the next part of the last recording. Returns false where the model is not what the digest says.
    #[cfg(feature = "parquet")]
    pub fn part(&mut self, part: StoredPart, digest: Digest, model: &Model) -> bool {
        let packed = PackedPart::new(model, &part.task);
        let is_same = digest_of_sections(&packed.tables, &packed.sections) == digest;
        if let Some((recording, parts)) = self.recordings.last_mut().filter(|_| is_same) {
            recording.parts.push(part);
            parts.push(packed);
        }
        is_same
    }

    /// Write the file. Returns its length.
    pub fn save(mut self, output: Output) -> Result<u64, SavedFileError> {
        if let [(recording, _)] = &self.recordings[..] {
            let (recording, parts) = (recording.clone(), std::mem::take(&mut self.recordings[0].1));
            return Writer::restored(recording, parts).save(output);
        }
        self.recordings.sort_by_cached_key(|(recording, _)| (recording.digest, recording.description()));
        let path = output.path().to_owned();
        let contents =
            Contents { recordings: self.recordings.iter().map(|(recording, _)| recording.clone()).collect() };
        let all: Vec<(u32, &str, &PackedPart)> = (0..)
            .zip(self.recordings.iter().flat_map(|(recording, parts)| recording.parts.iter().zip(parts)))
            .map(|(number, (part, packed))| (number, part.task.as_str(), packed))
            .collect();
        let mut by_task: BTreeMap<&str, Vec<(u32, &PackedPart)>> = BTreeMap::new();
        for (number, task, packed) in all {
            by_task.entry(task).or_default().push((number, packed));
        }
        save_sections(SavedKind::Executions, output, |out| {
            let io = |error| SavedFileError::Io { path: path.clone(), error };
            out.add(CONTENTS, &bytes_of(&contents)).map_err(io)?;
            for (task, name) in (0..).zip(contents.tasks()) {
                let Some(parts) = by_task.get(name.as_str()) else { continue };
                let own: Vec<ModelTables> =
                    parts.iter().filter_map(|(_, packed)| tables::unpack(&mut Unpack(&packed.tables))).collect();
                let mut union = TableUnion::default();
                let ids: Vec<_> = own.iter().map(|own| union.add(own, &Renamed::new(), &BTreeMap::new())).collect();
                union.use_all();
                let (united, order) = union.sorted();
                out.add(TABLES.of(task), &bytes_of(&united)).map_err(io)?;
                for (((number, packed), own), ids) in parts.iter().zip(&own).zip(ids) {
                    let ModelTables { names, who, contexts } = own;
                    let used = UsedEntries::all(names.len(), who.len(), contexts.len()).united(&ids.then(&order));
                    let mut pack = Pack::default();
                    used.unwrap_or_default().pack(&mut pack);
                    out.add(USED.of(*number), &pack.0).map_err(io)?;
                    for (section, bytes) in OF_PART.into_iter().zip(&packed.sections) {
                        out.add(section.of(*number), bytes).map_err(io)?;
                    }
                }
            }
            Ok(())
        })
    }
}
