//! Finds the runs of records of one CPU by one walk over the record headers of a part of a file.
//!
//! In: the records of a part. Out: an [`Index`]; those of successive parts are appended to one another (`parts.rs`).
//! perf empties the ring of one CPU after the other, so the data are a sequence of runs of one CPU each; times ascend
//! within the runs of a CPU. A run is a packet; a long one is divided where a record ends. Records that perf
//! synthesised at the start (names, processes and mappings that existed before) have time 0: their runs come first, at
//! the beginning of the recording. Names and processes of threads are kept. Cost: reading the header, the time and the
//! CPU of each record.

use super::header::{RecordHeader, bytes_behind, record};
use super::parts::DataBytes;
use super::sample::TimeAndCpu;
use super::side::SideRecords;
use super::unpack;
use super::walk::{COMM, FORK, LOST, RecordOrigin, SAMPLE, SideClass, USER, WalkRules};
use crate::base::cursor::bits;
use crate::base::notice::{Notice, Notices};
use crate::input::tracepoint::threads::Threads;
use crate::input::tracepoint::{ClockLoss, CpuPacket, CpuStream};
use foldhash::HashMap;
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes after which a run is divided.
const LONG: usize = 256 << 10;

/// A run of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRun {
    /// Position of its file.
    pub file: u32,
    /// Its offset in the file.
    pub at: usize,
    /// Bytes.
    pub bytes: usize,
    /// First time.
    pub begin: u64,
    /// Last time.
    pub end: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Index {
    cpus: BTreeMap<u32, Cpu>,
    /// Records that perf synthesised at the start.
    before: Vec<RecordRun>,
    threads_seen: Vec<ThreadRecord>,
    /// Some records are compressed.
    pub packed: bool,
    /// Records of other kinds.
    pub side: SideRecords,
    /// Irregularities found on the way.
    pub notices: Notices,
}

#[derive(Debug, Default)]
struct Cpu {
    runs: Vec<RecordRun>,
    /// Positions of the runs whose records have no time, and come before any that has one.
    untimed: Vec<usize>,
    losses: Vec<ClockLoss>,
    /// The number of losses before any record with a time.
    early: usize,
    /// The last time.
    last: Option<u64>,
}

impl Cpu {
    /// Add what a later part has found.
    fn append(&mut self, mut later: Cpu) {
        let last = self.last.unwrap_or(0);
        for at in later.untimed {
            if let Some(run) = later.runs.get_mut(at) {
                (run.begin, run.end) = (last, last);
            }
            if self.last.is_none() {
                self.untimed.push(self.runs.len() + at);
            }
        }
        for loss in later.losses.iter_mut().take(later.early) {
            loss.from = last.min(loss.to);
        }
        if self.last.is_none() {
            self.early += later.early;
        }
        self.runs.append(&mut later.runs);
        self.losses.append(&mut later.losses);
        self.last = self.last.max(later.last);
    }

    fn lose(&mut self, time: u64, events: Option<u64>) {
        self.early += usize::from(self.last.is_none());
        self.losses.push(ClockLoss { from: self.last.unwrap_or(0).min(time), to: time, events });
    }
}

/// A record about a thread.
#[derive(Debug)]
struct ThreadRecord {
    time: u64,
    /// Offset in the file.
    at: usize,
    change: ThreadChange,
}

#[derive(Debug)]
enum ThreadChange {
    Name { tid: i32, name: Box<[u8]> },
    Parent { tid: i32, pid: i32, parent: i32 },
}

/// Place of a record in time and among the CPUs.
#[derive(Clone, Copy, Debug)]
struct RecordPlace {
    /// `None`: perf synthesised the record at the start.
    cpu: Option<u32>,
    time: Option<u64>,
}

/// The runs of a CPU, and the stream that they form.
#[derive(Debug)]
pub struct CpuRuns {
    /// Runs in order of time.
    pub runs: Vec<RecordRun>,
    /// The stream, with a packet for each run.
    pub stream: CpuStream,
}

/// The run that is being extended.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// `None`: perf synthesised its records.
    cpu: Option<u32>,
    run: RecordRun,
    /// The last time of the CPU.
    last: Option<u64>,
}

/// Where a walk stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkStop {
    /// Before the record at this byte, which is the first that does not begin in the part.
    At(usize),
    /// At data that are no record.
    Damage,
}

impl Index {
    /// Walk through the records of a file that begin in a part of it. `data`: the bytes of all of its records; `shown`:
    /// its name.
    pub fn walk(
        &mut self,
        rules: &WalkRules,
        DataBytes { file, bytes, shown }: DataBytes<'_>,
        part: Range<usize>,
    ) -> WalkStop {
        let mut open: Option<Open> = None;
        let mut at = part.start;
        let mut stop = None;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty() && at < part.end) {
            let found = record(rest, rules.byte_order).and_then(|RecordHeader { kind, misc, size }| {
                let body = rest.get(8..size)?;
                Some((kind, misc, body, size.checked_add(bytes_behind(kind, body, rules.byte_order)?)?))
            });
            let Some((kind, misc, body, size)) = found else {
                self.notices
                    .add(Notice::DamagedStream, 1, || format!("{shown}: at byte {at}: a record passes the end"));
                stop = Some(WalkStop::Damage);
                break;
            };
            if let Some(RecordPlace { cpu, time }) = self.look(rules, kind, misc, body, at) {
                let is_one = |o: &Open| o.cpu == cpu && at - o.run.at < LONG;
                if !open.as_ref().is_some_and(is_one) {
                    self.close(open.take());
                    let last = cpu.and_then(|cpu| self.cpus.get(&cpu)?.last);
                    let run = RecordRun { file, at, bytes: 0, begin: u64::MAX, end: 0 };
                    open = Some(Open { cpu, run, last });
                }
                if let Some(Open { run, last, .. }) = &mut open {
                    if let Some(time) = time.or(*last) {
                        (run.begin, run.end) = (run.begin.min(time), run.end.max(time));
                    }
                    run.bytes = at + size - run.at;
                    if kind == LOST
                        && let Some(cpu) = cpu
                    {
                        let n = bits(body, 64, 64, rules.byte_order);
                        let cpu = self.cpus.entry(cpu).or_default();
                        cpu.last = *last;
                        cpu.lose(time.or(*last).unwrap_or(0), n);
                        self.side.lose(n.unwrap_or(0));
                    }
                    *last = (*last).max(time);
                }
            }
            at += size;
        }
        self.close(open);
        stop.unwrap_or(WalkStop::At(at))
    }

    fn close(&mut self, open: Option<Open>) {
        let Some(Open { cpu, mut run, last }) = open else { return };
        let untimed = run.begin > run.end;
        if untimed {
            (run.begin, run.end) = (0, 0);
        }
        let Some(cpu) = cpu else {
            self.before.push(run);
            return;
        };
        let cpu = self.cpus.entry(cpu).or_default();
        if untimed {
            cpu.untimed.push(cpu.runs.len());
        }
        cpu.runs.push(run);
        cpu.last = last;
    }

    /// Add what was found in the part behind this one.
    pub fn append(&mut self, later: Index) {
        let Index { cpus, mut before, mut threads_seen, packed, side, notices } = later;
        for (number, cpu) in cpus {
            self.cpus.entry(number).or_default().append(cpu);
        }
        self.before.append(&mut before);
        self.threads_seen.append(&mut threads_seen);
        self.packed |= packed;
        self.side.append(side);
        self.notices.merge(&notices);
    }

    /// The place of a record that belongs to a run; `None` for other records.
    #[inline(always)]
    fn look(&mut self, rules: &WalkRules, kind: u32, misc: u16, body: &[u8], at: usize) -> Option<RecordPlace> {
        if kind == SAMPLE {
            let Some(attr) = rules.attrs.of_sample(body) else {
                self.notices
                    .add(Notice::UnknownRecords, 1, || format!("a sample whose id belongs to no event, at byte {at}"));
                return None;
            };
            let layout = rules.attrs.layouts.get(attr)?;
            return Some(RecordPlace { cpu: Some(layout.cpu(body).unwrap_or(0)), time: layout.time(body) });
        }
        if kind >= USER {
            self.packed |= unpack::is_packed(kind);
            self.side.add(kind, body, 0, rules.byte_order);
            return None;
        }
        let layout = rules.attrs.of_record(body);
        let TimeAndCpu { time, cpu } = layout.map_or_else(TimeAndCpu::default, |layout| layout.time_and_cpu(body));
        let origin = RecordOrigin::at(time);
        if SideClass::of(kind, misc, origin).is_none() {
            let trailer = layout.map_or(0, |layout| layout.trailer_bytes());
            self.side.add(kind, body, trailer, rules.byte_order);
            return None;
        }
        self.note_thread(rules, kind, body, time.unwrap_or(0), at);
        Some(match origin {
            RecordOrigin::Synthesised => RecordPlace { cpu: None, time: Some(0) },
            RecordOrigin::Recorded => RecordPlace { cpu: Some(cpu.unwrap_or(0)), time },
        })
    }

    /// Keep a record that names a thread or its process.
    fn note_thread(&mut self, rules: &WalkRules, kind: u32, body: &[u8], time: u64, at: usize) {
        let id = |at: u64| bits(body, at * 8, 32, rules.byte_order).map_or(0, |id| id as u32 as i32);
        match kind {
            COMM => {
                let name = body.get(8..).unwrap_or(&[]);
                let name = name.get(..memchr::memchr(0, name).unwrap_or(name.len())).unwrap_or(name);
                let change = ThreadChange::Name { tid: id(4), name: name.into() };
                self.threads_seen.push(ThreadRecord { time, at, change });
            }
            FORK => {
                let change = ThreadChange::Parent { tid: id(8), pid: id(0), parent: id(12) };
                self.threads_seen.push(ThreadRecord { time, at, change });
            }
            _ => {}
        }
    }

    /// Names and processes of threads, each thread with its parent's name until it has its own.
    pub fn threads(&mut self) -> Threads {
        self.threads_seen.sort_by_key(|seen| (seen.time, seen.at));
        let mut threads = Threads::default();
        let mut names: HashMap<i32, Box<[u8]>> = HashMap::default();
        for ThreadRecord { time, change, .. } in self.threads_seen.drain(..) {
            match change {
                ThreadChange::Name { tid, name } => {
                    threads.named(tid, time, &name);
                    names.insert(tid, name);
                }
                ThreadChange::Parent { tid, pid, parent } => {
                    threads.belongs(tid, time, pid);
                    // Earlier records of the thread keep its earlier name.
                    if let Some(name) = names.get(&parent).filter(|_| time > 0).cloned() {
                        threads.named(tid, time, &name);
                        names.insert(tid, name);
                    }
                }
            }
        }
        threads.named(0, 0, b"swapper");
        threads.seal();
        threads
    }

    /// One stream for each CPU.
    pub fn streams(self) -> Vec<CpuRuns> {
        let begin = self.cpus.values().flat_map(|cpu| &cpu.runs).map(|run| run.begin).min().unwrap_or(0);
        let mut before = self.before;
        before.iter_mut().for_each(|run| (run.begin, run.end) = (begin, begin));
        let mut cpus = self.cpus;
        if cpus.is_empty() {
            cpus.insert(0, Cpu::default());
        }
        let stream = |(number, mut cpu): (u32, Cpu)| {
            // A stable sort: runs of equal times stay in the order of the file.
            cpu.runs.sort_by_key(|run| run.begin);
            let runs: Vec<RecordRun> = before.drain(..).chain(cpu.runs).collect();
            let packets =
                runs.iter().map(|run| CpuPacket { begin: run.begin, end: run.end, bytes: run.bytes as u64 }).collect();
            let stream = CpuStream { name: format!("cpu {number}"), cpu: Some(number), packets, losses: cpu.losses };
            CpuRuns { runs, stream }
        };
        cpus.into_iter().map(stream).collect()
    }
}
