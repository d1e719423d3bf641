//! Joins the translations of parts of one file, which workers made, in the order of the file.
//!
//! In: what was translated of each part, with numbers of classes, functions and nameless threads of its own. Out: one
//! translation, whose numbers follow from the order of the file alone, so they are the same for any number of
//! workers. Cost: each record is passed over once; its words are changed in place.

use super::storage::{HEAD, RecordHead, StackPlaces, WORD};
use super::translation::Translation;
use crate::base::named_frames::renamed;
use crate::base::names::NameId;
use crate::base::notice::Notice;
use crate::input::record::ClassId;

/// The new numbers of a part's classes and functions.
struct Renumbered {
    classes: Vec<Option<ClassId>>,
    frames: Vec<NameId>,
}

impl Renumbered {
    /// Change the numbers in a record; false where its class is one too many.
    fn change(&self, record: &mut [u8]) -> bool {
        let number = |record: &[u8]| Some(u32::from_le_bytes(record.get(4..8)?.try_into().ok()?));
        let class = number(record).and_then(|class| *self.classes.get(class as usize)?);
        let (Some(class), Some(StackPlaces { user, .. })) = (class, StackPlaces::of(record)) else { return false };
        if let Some(place) = record.get_mut(4..8) {
            place.copy_from_slice(&(class.index() as u32).to_le_bytes());
        }
        for (depth, bytes) in record.get_mut(user).into_iter().flat_map(|u| u.chunks_exact_mut(WORD)).enumerate() {
            let Ok(word) = <[u8; WORD]>::try_from(&*bytes) else { continue };
            let frame = |frame: u32| self.frames.get(frame as usize).map(|name| name.raw());
            bytes.copy_from_slice(&renamed(depth, u64::from_le_bytes(word), frame).to_le_bytes());
        }
        true
    }

    /// Change all records of a block. Those of a class that is one too many are removed; gives their number.
    fn change_block(&self, block: &mut Vec<u8>) -> u64 {
        let (mut at, mut kept, mut lost) = (0, 0, 0);
        while let Some(RecordHead { size, .. }) = block.get(at..).and_then(RecordHead::read) {
            let end = at + size.max(HEAD);
            match block.get_mut(at..end).is_some_and(|record| self.change(record)) {
                true if lost == 0 => kept = end,
                true => {
                    block.copy_within(at..end, kept);
                    kept += end - at;
                }
                false => lost += 1,
            }
            at = end;
        }
        block.truncate(kept);
        lost
    }
}

impl Translation {
    /// Add the translation of the next part of the file.
    pub fn join(&mut self, part: Translation) {
        let classes = part.keyed_schemas().into_iter().map(|(key, schema)| self.known_class(key, schema)).collect();
        let renumbered = Renumbered { classes, frames: self.frames.join(part.frames) };
        self.threads.join(part.threads);
        self.notices.merge(&part.notices);
        self.switches += part.switches;
        self.records.account.merge(&part.records.account);
        let mut lost = 0;
        for (cpu, mut other) in part.cpus {
            let records = self.cpus.entry(cpu).or_default();
            let first = other.blocks.first().and_then(|block| RecordHead::read(block)).map(|head| head.time);
            records.is_unordered |= other.is_unordered || first.is_some_and(|first| first < records.last);
            records.last = records.last.max(other.last);
            for mut block in other.blocks {
                lost += renumbered.change_block(&mut block);
                block.shrink_to_fit();
                records.blocks.push(block);
            }
            records.losses.append(&mut other.losses);
        }
        let what = || "names of events beyond the first thousands".to_owned();
        self.notices.add(Notice::RecordsUnused, lost, what);
        self.records.take_back(lost, Notice::RecordsUnused);
    }
}
