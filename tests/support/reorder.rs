//! Writes the records of a perf.data in another order: by time, or as several rings would have held them.
//!
//! Little-endian files of one kind of samples, all of whose records have a time; not compressed. perf's own records and
//! those that it synthesised (time 0) come first, in their order.
#![allow(dead_code, clippy::unwrap_used)]

use super::random::Random;

const SAMPLE: u32 = 9;
const FINISHED_ROUND: u32 = 68;

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// A record and its time.
#[derive(Clone, Debug)]
pub struct Timed {
    pub time: u64,
    pub bytes: Vec<u8>,
}

/// A perf.data in parts.
#[derive(Clone, Debug)]
pub struct PerfData {
    head: Vec<u8>,
    /// Records without a time.
    first: Vec<u8>,
    /// The others, in the order of the file.
    pub timed: Vec<Timed>,
    tail: Vec<u8>,
}

impl PerfData {
    /// Take a file apart if all its records can be moved: no pipe, no packed records, none with data behind it, and the
    /// samples and identifiers of all events alike.
    pub fn movable(file: &[u8]) -> Option<PerfData> {
        const FILE_HEADER: u64 = 104;
        const TIME: u64 = 4;
        const SAMPLE_ID_ALL: u64 = 1 << 18;
        const FOLLOWED_OR_PACKED: [u32; 4] = [66, 71, 81, 83];
        if file.get(..8)? != b"PERFILE2" || word(file, 8) != FILE_HEADER {
            return None;
        }
        let (attr, from, bytes) = (word(file, 16) as usize, word(file, 24) as usize, word(file, 32) as usize);
        let formats: Vec<(u64, bool)> = (from..from + bytes)
            .step_by(attr)
            .map(|at| (word(file, at + 24), word(file, at + 40) & SAMPLE_ID_ALL != 0))
            .collect();
        let first = *formats.first()?;
        let (mut at, end) = (word(file, 40) as usize, (word(file, 40) + word(file, 48)) as usize);
        let mut kinds = Vec::new();
        while at < end {
            kinds.push(word(file, at) as u32);
            at += usize::from(file[at + 6]) + 256 * usize::from(file[at + 7]);
        }
        let movable = first.0 & TIME != 0
            && first.1
            && formats.iter().all(|format| *format == first)
            && !kinds.iter().any(|kind| FOLLOWED_OR_PACKED.contains(kind));
        movable.then(|| PerfData::of(file))
    }

    /// Take a file apart.
    pub fn of(file: &[u8]) -> PerfData {
        let (data, size) = (word(file, 40) as usize, word(file, 48) as usize);
        let sample_type = word(file, word(file, 24) as usize + 24);
        let parts = |parts: &[u64]| 8 * parts.iter().filter(|part| sample_type & **part != 0).count();
        let in_sample = 8 + parts(&[0x10000, 1, 2]);
        let from_end = parts(&[4, 0x40, 0x200, 0x80, 0x10000]);
        let (mut first, mut timed, mut at) = (Vec::new(), Vec::new(), data);
        while at < data + size {
            let kind = word(file, at) as u32;
            let bytes = file[at..at + usize::from(file[at + 6]) + 256 * usize::from(file[at + 7])].to_vec();
            at += bytes.len();
            let time = match kind {
                SAMPLE => word(&bytes, in_sample),
                64.. => 0,
                _ => word(&bytes, bytes.len() - from_end),
            };
            if time == 0 { first.extend(bytes) } else { timed.push(Timed { time, bytes }) }
        }
        PerfData { head: file[..data].to_vec(), first, timed, tail: file[data + size..].to_vec() }
    }

    /// The file with these records after those without a time.
    pub fn with<'t>(&self, timed: impl IntoIterator<Item = &'t Timed>) -> Vec<u8> {
        let mut file = [&self.head[..], &self.first].concat();
        timed.into_iter().for_each(|record| file.extend(&record.bytes));
        file.extend(&self.tail);
        file
    }

    /// Its records in order of time.
    pub fn sorted(&self) -> Vec<Timed> {
        let mut sorted = self.timed.clone();
        sorted.sort_by_key(|record| record.time);
        sorted
    }

    /// The file in order of time.
    pub fn by_time(&self) -> Vec<u8> {
        self.with(&self.sorted())
    }

    /// The file as `rings` rings would have held its records: each got any of them, in order of time, and perf emptied
    /// one ring after the other, again and again, up to `most` records at a time.
    pub fn in_rings(&self, rings: usize, most: usize, dice: &mut Random) -> Vec<u8> {
        let mut held: Vec<Vec<Timed>> = vec![Vec::new(); rings];
        self.sorted().into_iter().for_each(|record| held[dice.below(rings)].push(record));
        let mut written = Vec::new();
        let mut left: Vec<&[Timed]> = held.iter().map(Vec::as_slice).collect();
        while left.iter().any(|ring| !ring.is_empty()) {
            for ring in &mut left {
                let (now, later) = ring.split_at(ring.len().min(1 + dice.below(most)));
                written.extend(now);
                *ring = later;
            }
        }
        self.with(written)
    }
}
