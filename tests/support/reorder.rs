//! Writes the records of a perf.data in another order: by time, or as several rings would have held them.
//!
//! Little-endian files with one attr, whose samples and other records have a time; not compressed. perf's own records
//! and those that it synthesised (time 0) come first, in their order.
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
