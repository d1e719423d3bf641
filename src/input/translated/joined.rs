//! Joins the translations of parts of one file, which workers made, in the order of the file.
//!
//! In: what was translated of each part, with numbers of classes, functions and nameless threads of its own. Out: one
//! translation, whose numbers follow from the order of the file alone, so they are the same for any number of
//! workers. Cost: each record is passed over once; its words are changed in place.

use super::sealed::sized_records;
use super::translation::Translation;
use super::{RecordHead, StackPlaces, WORD};
use crate::base::named_frames::renamed;
use crate::base::names::NameId;
use crate::input::record::ClassId;
use std::ops::Range;

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
}

impl Translation {
    /// Add the translation of the next part of the file.
    pub fn join(&mut self, part: Translation) {
        let classes = part.keyed_schemas().into_iter().map(|(key, schema)| self.known_class(key, schema)).collect();
        let renumbered = Renumbered { classes, frames: self.frames.join(part.frames) };
        self.threads.join(part.threads);
        self.notices.merge(&part.notices);
        self.switches += part.switches;
        let mut lost = 0;
        for (cpu, mut other) in part.cpus {
            let records = self.cpus.entry(cpu).or_default();
            records.is_unordered |= other.is_unordered;
            let places: Vec<Range<usize>> = sized_records(&other.bytes).collect();
            if let Some(first) = places.first().and_then(|at| RecordHead::read(other.bytes.get(at.clone())?)) {
                records.is_unordered |= first.time < records.last;
            }
            records.last = records.last.max(other.last);
            for place in places {
                let Some(record) = other.bytes.get_mut(place) else { continue };
                match renumbered.change(record) {
                    true => records.bytes.extend_from_slice(record),
                    false => lost += 1,
                }
            }
            records.losses.append(&mut other.losses);
        }
        for _ in 0..lost {
            self.unused(|| "names of events beyond the first thousands".to_owned());
        }
    }
}
