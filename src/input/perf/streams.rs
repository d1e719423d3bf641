//! The streams of a perf.data, and the runs of records that their packets consist of.
//!
//! In: the [`Index`] of all records. Out: for each CPU a stream with a packet for each run. Records that do not name
//! their CPU form one stream without a CPU. Its runs come from the rings of several CPUs and overlap in time, so a
//! packet of it is a stretch of time: the runs of all rings, divided where the stretch begins and ends (`merged.rs`
//! reads them in order of time). The order of its records is that of their times; records of equal times keep the order
//! of the files. It does not depend on how the rings were written: sorting the records of a file changes nothing.
//!
//! `PERF_RECORD_FINISHED_ROUND` would bound the disorder, but is broken now and then, so it has no part in this.
//! Cost: a heap of the runs; each run is read once more for each packet that it reaches into. Memory: 40 bytes for each
//! run.

use super::index::{Cpu, Index, LONG};
use super::merged::{RecordKey, records_in_order, times};
use super::record_types::LOST;
use super::runs::{RecordFiles, RecordRun};
use crate::base::cursor::bits;
use crate::input::tracepoint::{ClockLoss, CpuPacket, CpuStream};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The runs of a stream, by packet.
#[derive(Debug, Default)]
pub struct PacketRuns {
    runs: Vec<RecordRun>,
    /// By packet: the end of its runs.
    ends: Vec<usize>,
}

impl PacketRuns {
    /// Add a packet.
    fn add(&mut self, runs: &[RecordRun]) {
        self.runs.extend(runs);
        self.ends.push(self.runs.len());
    }

    /// The number of packets.
    pub fn packets(&self) -> usize {
        self.ends.len()
    }

    /// The runs of a packet, in order; several overlap.
    pub fn of(&self, packet: usize) -> &[RecordRun] {
        let end = self.ends.get(packet).copied().unwrap_or(0);
        let begin = packet.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.runs.get(begin..end).unwrap_or(&[])
    }

    /// All packets, as the stream describes them.
    fn described(&self) -> Vec<CpuPacket> {
        let packet = |number: usize| {
            let runs = self.of(number);
            let [begin, end] = [runs.iter().map(|run| run.begin).min(), runs.iter().map(|run| run.end).max()];
            let bytes = runs.iter().map(|run| run.bytes as u64).sum();
            CpuPacket { begin: begin.unwrap_or(0), end: end.unwrap_or(0), bytes }
        };
        (0..self.packets()).map(packet).collect()
    }
}

/// The runs of a stream, and the stream that they form.
#[derive(Debug)]
pub struct CpuRuns {
    pub runs: PacketRuns,
    pub stream: CpuStream,
}

/// The streams of a recording.
pub fn streams(index: Index, files: RecordFiles<'_, '_>) -> Vec<CpuRuns> {
    let Index { mut cpus, mut before, .. } = index;
    let begin = cpus.values().flat_map(|cpu| &cpu.runs).map(|run| run.begin).min().unwrap_or(0);
    before.iter_mut().for_each(|run| (run.begin, run.end) = (begin, begin));
    if cpus.is_empty() {
        cpus.insert(Some(0), Cpu::default());
    }
    let stream = |(number, mut cpu): (Option<u32>, Cpu)| {
        let mut runs = PacketRuns::default();
        before.drain(..).for_each(|run| runs.add(&[run]));
        let (name, losses) = match number {
            Some(number) => {
                // A stable sort: runs of equal times stay in the order of the file.
                cpu.runs.sort_by_key(|run| run.begin);
                cpu.runs.iter().for_each(|run| runs.add(&[*run]));
                (format!("cpu {number}"), cpu.losses)
            }
            None => {
                let first = runs.packets();
                merge(cpu.runs, files, &mut runs);
                let losses = if cpu.losses.is_empty() { Vec::new() } else { losses(&runs, first, files) };
                ("any cpu".to_owned(), losses)
            }
        };
        let stream = CpuStream { name, cpu: number, packets: runs.described(), losses };
        CpuRuns { runs, stream }
    };
    cpus.into_iter().map(stream).collect()
}

/// Add packets of overlapping runs, each of which ascends in time. Packets follow one another in time.
fn merge(runs: Vec<RecordRun>, files: RecordFiles<'_, '_>, packets: &mut PacketRuns) {
    let mut waiting: BinaryHeap<Reverse<RecordRun>> = runs.into_iter().map(Reverse).collect();
    let mut packet: Vec<RecordRun> = Vec::new();
    while let Some(Reverse(first)) = waiting.pop() {
        let mut bytes = first.bytes;
        packet.clear();
        packet.push(first);
        // The packet ends before the first record of a run that has no room in it.
        let end = loop {
            let Some(Reverse(next)) = waiting.peek() else { break None };
            if bytes + next.bytes > LONG {
                break Some(RecordKey::begin(next));
            }
            bytes += next.bytes;
            match packet.last_mut() {
                Some(last) if continues(last, next) => (last.bytes, last.end) = (last.bytes + next.bytes, next.end),
                _ => packet.push(*next),
            }
            waiting.pop();
        };
        for run in &mut packet {
            let rest = end.and_then(|end| divide(run, end, files));
            waiting.extend(rest.map(Reverse));
        }
        packets.add(&packet);
    }
}

/// True if a run directly follows another one, in the file and in time.
fn continues(last: &RecordRun, next: &RecordRun) -> bool {
    last.file == next.file && last.at + last.bytes == next.at && last.end <= next.begin
}

/// Cut a run off before its first record from `end` on, which is not its first one. Returns the rest.
fn divide(run: &mut RecordRun, end: RecordKey, files: RecordFiles<'_, '_>) -> Option<RecordRun> {
    if run.end < end.time {
        return None;
    }
    let mut last = run.begin;
    for timed in times(files.rules, files.bytes(run), *run) {
        if timed.key >= end && timed.key.at > run.at {
            let size = timed.key.at - run.at;
            let rest = RecordRun { begin: timed.key.time, at: timed.key.at, bytes: run.bytes - size, ..*run };
            (run.bytes, run.end) = (size, last);
            return Some(rest);
        }
        last = timed.key.time;
    }
    None
}

/// The losses of a stream without a CPU. A record of a loss says that its own ring had no room before it; which ring
/// that was is unknown, so a loss lasts from the record before it in the stream.
fn losses(runs: &PacketRuns, first: usize, files: RecordFiles<'_, '_>) -> Vec<ClockLoss> {
    let mut losses = Vec::new();
    let mut before = 0;
    for packet in first..runs.packets() {
        for timed in records_in_order(files, runs.of(packet)) {
            let to = timed.key.time;
            if timed.kind == LOST {
                let events = bits(timed.record, 128, 64, files.rules.byte_order);
                losses.push(ClockLoss { from: before, to, events });
            }
            before = to;
        }
    }
    losses
}
