//! Indexes a file of records in parts, which several workers walk at once.
//!
//! In: the records of a file. Out: the [`Index`] of all of them. Where a record begins is known only from the records
//! before it, so each part begins at a guess: the first place after its nominal begin from which on [`ALIKE`] headers
//! follow one another. A guess is right if the walk of the part before it ends there; otherwise the part is walked once
//! more from where that walk ended. Parts depend on the file alone, so any number of workers gives the same index, and
//! damage in one part ends the walk as it would without parts. Cost: that of one walk; a wrong guess costs its part
//! twice.

use super::header::{RecordHeader, bytes_after, record};
use super::index::{Index, WalkStop};
use super::record_types::{SAMPLE, USER};
use super::runs::DataBytes;
use super::walk_rules::WalkRules;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::parallel::in_order;
use std::ops::Range;

/// Nominal bytes of a part.
const PART: usize = 4 << 20;
/// Headers that a guess needs.
const ALIKE: usize = 24;
/// Bytes in which a guess is looked for: two of the longest records.
const NEAR: usize = 128 << 10;
/// The types of records that the kernel and perf know.
const KNOWN: [Range<u32>; 2] = [1..32, USER..96];

/// A part that was walked.
struct Part {
    range: Range<usize>,
    index: Index,
    stop: WalkStop,
}

impl Part {
    fn walk(rules: &WalkRules, data: DataBytes<'_>, range: Range<usize>) -> Part {
        let mut index = Index::default();
        let stop = index.walk(rules, data, range.clone());
        Part { range, index, stop }
    }
}

/// The index of a file whose records begin at `start`.
pub fn index(rules: &WalkRules, data: DataBytes<'_>, start: usize, ctx: &Ctx) -> Result<Index, Cancelled> {
    index_in(PART, rules, data, start, ctx)
}

/// The index of a file, read in parts of nominally `size` bytes.
fn index_in(size: usize, rules: &WalkRules, data: DataBytes<'_>, start: usize, ctx: &Ctx) -> Result<Index, Cancelled> {
    let mut all = Index::default();
    let end = data.bytes.len();
    let parts = end.saturating_sub(start).div_ceil(size);
    let begin = |part: usize| match part {
        0 => Some(start),
        _ => guess(rules, data.bytes, start + part * size),
    };
    let make = |part: usize| {
        let from = begin(part)?;
        let to = (part + 1..parts).find_map(begin).unwrap_or(end);
        Some(Part::walk(rules, data, from..to))
    };
    let mut stop = WalkStop::At(start);
    in_order(ctx, parts, make, |_, part| {
        let (Some(mut part), WalkStop::At(at)) = (part, stop) else { return };
        if part.range.start != at {
            part = Part::walk(rules, data, at..part.range.end);
        }
        stop = part.stop;
        all.append(part.index);
    })?;
    Ok(all)
}

/// The first place from `from` on that looks like the begin of a record.
fn guess(rules: &WalkRules, bytes: &[u8], from: usize) -> Option<usize> {
    (from..from.saturating_add(NEAR).min(bytes.len())).step_by(8).find(|at| is_likely(rules, bytes, *at))
}

/// True where records follow one another from `at` on.
fn is_likely(rules: &WalkRules, bytes: &[u8], mut at: usize) -> bool {
    for _ in 0..ALIKE {
        let Some(rest) = bytes.get(at..) else { return false };
        if rest.is_empty() {
            break;
        }
        let Some(RecordHeader { kind, size, .. }) = record(rest, rules.byte_order) else { return false };
        let Some(body) = rest.get(8..size) else { return false };
        let is_known = KNOWN.iter().any(|kinds| kinds.contains(&kind));
        let has_attr = || kind != SAMPLE || rules.attrs.of_sample(body).is_some();
        let Some(more) = bytes_after(kind, body, rules.byte_order).filter(|_| is_known && has_attr()) else {
            return false;
        };
        at = at.saturating_add(size).saturating_add(more);
    }
    true
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::base::cursor::ByteOrder;
    use crate::base::notice::Notice;
    use crate::input::perf::attr::Attr;
    use crate::input::perf::attrs::Attrs;
    use crate::input::perf::runs::{RecordFiles, RecordRun};
    use crate::input::perf::streams::streams;

    fn rules() -> WalkRules {
        let mut attr = vec![0u8; 128];
        // A tracepoint with IDENTIFIER, TIME and CPU, and the same after all other records.
        attr[0] = 2;
        attr[8] = 1;
        attr[24..32].copy_from_slice(&(0x10000u64 | 4 | 0x80).to_le_bytes());
        attr[40..48].copy_from_slice(&(1u64 << 18).to_le_bytes());
        let attr = |id| {
            let mut attr = Attr::parse(&attr, ByteOrder::Little).unwrap();
            attr.ids = vec![id];
            attr
        };
        let attrs = Attrs::new(&[attr(70), attr(71)], ByteOrder::Little);
        WalkRules { attrs, tracepoints: vec![true; 2], shows_idle: false, byte_order: ByteOrder::Little }
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// A record of a type.
    fn record_of(kind: u32, body: &[u8]) -> Vec<u8> {
        let header = u64::from(kind) | (body.len() as u64 + 8) << 48;
        [words(&[header]), body.to_vec()].concat()
    }

    /// Runs of two CPUs; samples hold what looks like records, losses and names come between.
    fn recording(records: u64) -> Vec<u8> {
        let mut data = Vec::new();
        for n in 0..records {
            let (time, cpu) = (1000 + n, n / 300 % 2);
            let trailer = words(&[time, cpu, 70]);
            match n % 97 {
                5 => data.extend(record_of(2, &[words(&[70, 3]), trailer].concat())),
                9 => data.extend(record_of(3, &[words(&[n | n << 32, 0x0041_4141]), trailer].concat())),
                _ => {
                    let inner = record_of(9, &words(&[70, 5, 1, 2])).repeat((n % 7) as usize * 6);
                    data.extend(record_of(9, &[words(&[70 + n % 2, time, cpu]), inner].concat()));
                }
            }
        }
        data
    }

    /// Everything that an index says, runs that follow one another as one.
    #[derive(Debug, PartialEq)]
    struct Summary {
        runs: Vec<RecordRun>,
        /// From, to, events.
        losses: Vec<[u64; 3]>,
        name: Option<Vec<u8>>,
        damaged: u64,
    }

    fn summary(mut index: Index, rules: &WalkRules, bytes: &[u8]) -> Summary {
        let damaged = index.notices.count(Notice::DamagedStream);
        let name = index.threads().name(9 + 97 * 10, u64::MAX).map(<[u8]>::to_vec);
        let (mut runs, mut losses) = (Vec::<RecordRun>::new(), Vec::new());
        for cpu in streams(index, RecordFiles { rules, file: &|_| bytes }) {
            let of_packets = (0..cpu.runs.packets()).flat_map(|packet| cpu.runs.of(packet));
            for run in of_packets.copied() {
                match runs.last_mut() {
                    Some(last) if last.at + last.bytes == run.at => {
                        (last.bytes, last.end) = (last.bytes + run.bytes, last.end.max(run.end));
                    }
                    _ => runs.push(run),
                }
            }
            losses.extend(cpu.stream.losses.iter().map(|loss| [loss.from, loss.to, loss.events.unwrap_or(0)]));
        }
        Summary { runs, losses, name, damaged }
    }

    #[test]
    fn parts_give_the_index_of_one_walk() {
        let rules = rules();
        let whole = recording(3000);
        let mut damaged = whole.clone();
        let mut middle = 0;
        while middle < damaged.len() / 2 {
            middle += record(&damaged[middle..], ByteOrder::Little).unwrap().size;
        }
        damaged[middle + 6..middle + 8].copy_from_slice(&[3, 0]);
        for (bytes, faults) in [(&whole, 0), (&damaged, 1)] {
            let data = DataBytes { file: 0, bytes, shown: "x" };
            let mut one = Index::default();
            one.walk(&rules, data, 0..bytes.len());
            let one = summary(one, &rules, bytes);
            assert!(one.runs.len() > 4 && one.losses.len() > 10 && one.name.is_some());
            assert_eq!(one.damaged, faults);
            for (part, workers) in [(64 << 10, 1), (64 << 10, 2), (64 << 10, 3), (100_001, 2), (PART, 2)] {
                let all = index_in(part, &rules, data, 0, &Ctx::new(workers)).unwrap();
                assert_eq!(summary(all, &rules, bytes), one, "{part} {workers}");
            }
        }
    }
}
