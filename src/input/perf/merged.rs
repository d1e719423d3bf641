//! The records of runs that overlap in time, in order of time.
//!
//! In: some runs, in each of which times ascend. Out: their records by time; those of equal times in the order of the
//! files. Cost: a sort of ascending sequences, and 48 bytes of memory for each record of the runs while they are read:
//! a packet has at most 256 KiB of records.

use super::header::{RecordHeader, bytes_after, record};
use super::record_types::{RecordOrigin, SAMPLE, SideClass, USER};
use super::runs::{RecordFiles, RecordRun};
use super::walk_rules::WalkRules;

/// The place of a record in a stream without a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordKey {
    /// Its time; that of the record before it in its run where it has none.
    pub time: u64,
    /// Position of its file.
    pub file: u32,
    /// Its offset in the file.
    pub at: usize,
}

impl RecordKey {
    /// That of the first record of a run.
    pub fn begin(run: &RecordRun) -> RecordKey {
        RecordKey { time: run.begin, file: run.file, at: run.at }
    }
}

/// A record and its place.
#[derive(Clone, Copy, Debug)]
pub struct RecordInTime<'a> {
    pub key: RecordKey,
    pub kind: u32,
    /// Its bytes, with the header.
    pub record: &'a [u8],
}

/// The records of a run that belong to its stream, in order, with their times.
pub fn times<'a>(rules: &'a WalkRules, bytes: &'a [u8], run: RecordRun) -> impl Iterator<Item = RecordInTime<'a>> {
    let byte_order = rules.byte_order;
    let (mut at, mut clock) = (0, run.begin);
    std::iter::from_fn(move || {
        loop {
            let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
            let RecordHeader { kind, misc, size } = record(rest, byte_order)?;
            let body = rest.get(8..size)?;
            let key = RecordKey { time: clock, file: run.file, at: run.at.saturating_add(at) };
            at = at.saturating_add(size).saturating_add(bytes_after(kind, body, byte_order)?);
            if let Some(time) = time_in_stream(rules, kind, misc, body) {
                clock = time.unwrap_or(clock);
                let key = RecordKey { time: clock, ..key };
                return Some(RecordInTime { key, kind, record: rest.get(..size)? });
            }
        }
    })
}

/// The records of some runs in order.
pub fn records_in_order<'a>(files: RecordFiles<'_, 'a>, runs: &[RecordRun]) -> Vec<RecordInTime<'a>> {
    let of_run = |run: &RecordRun| times(files.rules, files.bytes(run), *run);
    let mut records: Vec<RecordInTime<'a>> = runs.iter().flat_map(of_run).collect();
    records.sort_by_key(|timed| timed.key);
    records
}

/// The time of a record that belongs to a stream, where it has one; `None` for records that belong to none.
fn time_in_stream(rules: &WalkRules, kind: u32, misc: u16, body: &[u8]) -> Option<Option<u64>> {
    if kind == SAMPLE {
        let attr = rules.attrs.of_sample(body)?;
        return Some(rules.attrs.layouts.get(attr)?.time(body));
    }
    if kind >= USER {
        return None;
    }
    let time = rules.attrs.of_record(body).and_then(|layout| layout.time_and_cpu(body).time);
    SideClass::of(kind, misc, RecordOrigin::at(time)).map(|_| time)
}
