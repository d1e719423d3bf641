//! Finds the runs of records of one CPU by one walk over the record headers of a part of a file.
//!
//! In: the records of a part. Out: an [`Index`]; those of successive parts are appended to one another (`parts.rs`).
//! perf empties the ring of one CPU after the other, so the data are a sequence of runs of one CPU each; times ascend
//! within the runs of a CPU. A long run is divided where a record ends. Where records do not name their CPU (`perf
//! record PROGRAM`), a run ends where time goes back, so that times ascend in each; such runs overlap, and `streams.rs`
//! merges them. Records that perf synthesised at the start (names, processes and mappings that existed before) have
//! time 0: their runs come first, at the beginning of the recording. Names and processes of threads are kept. Cost:
//! reading the header, the time and the CPU of each record.

use super::header::{RecordHeader, bytes_after, record};
use super::record_types::{COMM, FORK, LOST, RecordOrigin, SAMPLE, SideClass, USER};
use super::runs::{DataBytes, RecordRun};
use super::sample::TimeAndCpu;
use super::side::SideRecords;
use super::unpack;
use super::walk_rules::WalkRules;
use crate::base::cursor::bits;
use crate::base::notice::{Notice, Notices};
use crate::input::tracepoint::ClockLoss;
use crate::input::tracepoint::threads::Threads;
use foldhash::HashMap;
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes after which a run is divided.
pub(super) const LONG: usize = 256 << 10;
/// Bytes after which a run is divided where records do not name their CPU: the merge divides runs once more, and reads
/// them to find the place.
const LONG_UNKNOWN: usize = 16 << 10;

/// See the module.
#[derive(Debug, Default)]
pub struct Index {
    /// By CPU; `None`: records that do not name theirs.
    pub(super) cpus: BTreeMap<Option<u32>, Cpu>,
    /// Records that perf synthesised at the start.
    pub(super) before: Vec<RecordRun>,
    threads_seen: Vec<ThreadRecord>,
    /// Some records are compressed.
    pub packed: bool,
    /// Records of other kinds.
    pub side: SideRecords,
    /// Irregularities found on the way.
    pub notices: Notices,
}

/// The runs of a CPU, in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Cpu {
    pub runs: Vec<RecordRun>,
    /// Positions of the runs whose records have no time, and come before any that has one.
    untimed: Vec<usize>,
    pub losses: Vec<ClockLoss>,
    /// The number of losses before any record with a time.
    early: usize,
    /// The last time; where records do not name their CPU that of the last record.
    last: Option<u64>,
}

impl Cpu {
    /// Add what a later part has found.
    fn append(&mut self, number: Option<u32>, mut later: Cpu) {
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
        self.last = if number.is_some() { self.last.max(later.last) } else { later.last.or(self.last) };
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

/// What a run belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunOwner {
    /// perf synthesised its records at the start.
    Before,
    /// A CPU, where its records name theirs.
    Cpu(Option<u32>),
}

impl RunOwner {
    /// Bytes after which its runs are divided.
    fn long(self) -> usize {
        if self == RunOwner::Cpu(None) { LONG_UNKNOWN } else { LONG }
    }
}

/// Place of a record in time and among the CPUs.
#[derive(Clone, Copy, Debug)]
struct RecordPlace {
    owner: RunOwner,
    time: Option<u64>,
}

/// The run that is being extended.
#[derive(Clone, Copy, Debug)]
struct Open {
    owner: RunOwner,
    run: RecordRun,
    /// See [`Cpu::last`].
    last: Option<u64>,
}

impl Open {
    /// True if a record at byte `at` continues the run.
    fn continues(&self, RecordPlace { owner, time }: RecordPlace, at: usize) -> bool {
        let goes_back = owner == RunOwner::Cpu(None) && time.is_some_and(|time| Some(time) < self.last);
        self.owner == owner && at - self.run.at < owner.long() && !goes_back
    }
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
                Some((kind, misc, body, size.checked_add(bytes_after(kind, body, rules.byte_order)?)?))
            });
            let Some((kind, misc, body, size)) = found else {
                self.notices
                    .add(Notice::DamagedStream, 1, || format!("{shown}: at byte {at}: a record passes the end"));
                stop = Some(WalkStop::Damage);
                break;
            };
            if let Some(place) = self.look(rules, kind, misc, body, at) {
                if !open.as_ref().is_some_and(|open| open.continues(place, at)) {
                    self.close(open.take());
                    let last = match place.owner {
                        RunOwner::Before => None,
                        RunOwner::Cpu(cpu) => self.cpus.get(&cpu).and_then(|cpu| cpu.last),
                    };
                    let run = RecordRun { file, at, bytes: 0, begin: u64::MAX, end: 0 };
                    open = Some(Open { owner: place.owner, run, last });
                }
                if let Some(open) = &mut open {
                    let lost = (kind == LOST).then(|| bits(body, 64, 64, rules.byte_order));
                    self.extend(open, place.time, at + size, lost);
                }
            }
            at += size;
        }
        self.close(open);
        stop.unwrap_or(WalkStop::At(at))
    }

    /// A record that ends at byte `end` continues a run. `lost`: it counts events that were lost before it.
    fn extend(
        &mut self,
        Open { owner, run, last }: &mut Open,
        time: Option<u64>,
        end: usize,
        lost: Option<Option<u64>>,
    ) {
        if let Some(time) = time.or(*last) {
            (run.begin, run.end) = (run.begin.min(time), run.end.max(time));
        }
        run.bytes = end - run.at;
        let RunOwner::Cpu(number) = *owner else { return };
        if let Some(events) = lost {
            let cpu = self.cpus.entry(number).or_default();
            cpu.last = *last;
            cpu.lose(time.or(*last).unwrap_or(0), events);
            self.side.lose(events.unwrap_or(0));
        }
        *last = if number.is_some() { (*last).max(time) } else { time.or(*last) };
    }

    fn close(&mut self, open: Option<Open>) {
        let Some(Open { owner, mut run, last }) = open else { return };
        let untimed = run.begin > run.end;
        if untimed {
            (run.begin, run.end) = (0, 0);
        }
        let RunOwner::Cpu(number) = owner else {
            self.before.push(run);
            return;
        };
        let cpu = self.cpus.entry(number).or_default();
        if untimed {
            cpu.untimed.push(cpu.runs.len());
        }
        cpu.runs.push(run);
        cpu.last = last;
    }

    /// Add what was found in the part after this one.
    pub fn append(&mut self, later: Index) {
        let Index { cpus, mut before, mut threads_seen, packed, side, notices } = later;
        for (number, cpu) in cpus {
            self.cpus.entry(number).or_default().append(number, cpu);
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
                self.notices.add(Notice::EventsUndescribed, 1, || {
                    format!("a sample whose id belongs to no event, at byte {at}")
                });
                return None;
            };
            let layout = rules.attrs.layouts.get(attr)?;
            return Some(RecordPlace { owner: RunOwner::Cpu(layout.cpu(body)), time: layout.time(body) });
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
            RecordOrigin::Synthesised => RecordPlace { owner: RunOwner::Before, time: Some(0) },
            RecordOrigin::Recorded => {
                // Old kernels identify samples alone.
                let cpu = cpu.or_else(|| (time.is_none() && rules.attrs.name_cpus()).then_some(0));
                RecordPlace { owner: RunOwner::Cpu(cpu), time }
            }
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
}
