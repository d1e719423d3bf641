//! Runs of records of one CPU: where each begins and ends, found by one walk over record headers.
//!
//! perf empties the ring of one CPU after the other, so the data are a sequence of runs of one CPU each; in a CPU's
//! runs, one after the other, times ascend. A run is a packet; a long one is cut where a record ends. Records that perf
//! made up at the start (names, processes and maps of what was there before) have time 0: their runs come first, at the
//! begin of the recording. Of threads the names and processes are kept. Cost: one look at the header, the time and the
//! CPU of each record.

use super::header::{outside, record};
use super::walk::{COMM, FORK, LOST, SAMPLE, SideClass, USER, WalkRules};
use crate::base::cursor::bits;
use crate::base::notice::{Notice, Notices};
use crate::input::tracepoint::threads::Threads;
use crate::input::tracepoint::{ClockLoss, CpuPacket, CpuStream};
use foldhash::HashMap;
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes after which a run is cut.
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

/// State of the scan.
#[derive(Debug, Default)]
pub struct Index {
    cpus: BTreeMap<u32, Cpu>,
    /// Records that perf synthesised at the start.
    before: Vec<RecordRun>,
    /// Names and parents, each with its time and its place in the file.
    threads_seen: Vec<(u64, usize, ThreadRecord)>,
    /// Irregularities found on the way.
    pub notices: Notices,
}

#[derive(Debug, Default)]
struct Cpu {
    runs: Vec<RecordRun>,
    losses: Vec<ClockLoss>,
    last: u64,
}

#[derive(Debug)]
enum ThreadRecord {
    Name { tid: i32, name: Box<[u8]> },
    Parent { tid: i32, pid: i32, parent: i32 },
}

/// The run that is being made, and whose it is.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// `None`: made up.
    cpu: Option<u32>,
    run: RecordRun,
}

impl Index {
    /// Walk through the records of a file. `shown`: its name.
    pub fn walk(&mut self, ways: &WalkRules, file: u32, bytes: &[u8], data: Range<usize>, shown: &str) {
        let mut open: Option<Open> = None;
        let mut at = data.start;
        let data = bytes.get(..data.end).unwrap_or(bytes);
        while let Some(rest) = data.get(at..).filter(|rest| !rest.is_empty()) {
            let found = record(rest, ways.byte_order).and_then(|(kind, misc, size)| {
                let body = rest.get(8..size)?;
                Some((kind, misc, body, size.checked_add(outside(kind, body, ways.byte_order)?)?))
            });
            let Some((kind, misc, body, size)) = found else {
                self.notices
                    .add(Notice::DamagedStream, 1, || format!("{shown}: at byte {at}: a record passes the end"));
                break;
            };
            if let Some((cpu, time)) = self.look(ways, kind, misc, body, at) {
                let goes_on = |o: &Open| o.cpu == cpu && at - o.run.at < LONG;
                let last = cpu.and_then(|cpu| self.cpus.get(&cpu)).map_or(0, |cpu| cpu.last);
                let time = time.unwrap_or(last);
                match &mut open {
                    Some(o) if goes_on(o) => {
                        (o.run.begin, o.run.end) = (o.run.begin.min(time), o.run.end.max(time));
                    }
                    _ => {
                        self.close(open.take());
                        open = Some(Open { cpu, run: RecordRun { file, at, bytes: 0, begin: time, end: time } });
                    }
                }
                if let Some(o) = &mut open {
                    o.run.bytes = at + size - o.run.at;
                }
                if let Some(cpu) = cpu {
                    let cpu = self.cpus.entry(cpu).or_default();
                    if kind == LOST {
                        let n = bits(body, 64, 64, ways.byte_order);
                        cpu.losses.push(ClockLoss { from: cpu.last.min(time), to: time, events: n });
                    }
                    cpu.last = cpu.last.max(time);
                }
            }
            at += size;
        }
        self.close(open);
    }

    fn close(&mut self, open: Option<Open>) {
        let Some(Open { cpu, run }) = open else { return };
        match cpu {
            Some(cpu) => self.cpus.entry(cpu).or_default().runs.push(run),
            None => self.before.push(run),
        }
    }

    /// CPU (`None`: made up at the start) and time of a record that is of interest.
    #[inline(always)]
    fn look(
        &mut self,
        ways: &WalkRules,
        kind: u32,
        misc: u16,
        body: &[u8],
        at: usize,
    ) -> Option<(Option<u32>, Option<u64>)> {
        if kind == SAMPLE {
            let Some(attr) = ways.attrs.of_sample(body) else {
                self.notices.add(Notice::UnknownRecords, 1, || format!("a sample of no event, at byte {at}"));
                return None;
            };
            let layout = ways.attrs.layouts.get(attr)?;
            return Some((Some(layout.cpu(body).unwrap_or(0)), layout.time(body)));
        }
        if kind >= USER {
            return None;
        }
        let (time, cpu) = ways.attrs.of_record(body).map_or((None, None), |layout| layout.trailer(body));
        let before = time == Some(0);
        SideClass::of(kind, misc, before)?;
        self.listen(ways, kind, body, time.unwrap_or(0), at);
        Some(if before { (None, Some(0)) } else { (Some(cpu.unwrap_or(0)), time) })
    }

    /// Names and processes of threads.
    fn listen(&mut self, ways: &WalkRules, kind: u32, body: &[u8], time: u64, at: usize) {
        let id = |at: u64| bits(body, at * 8, 32, ways.byte_order).map_or(0, |id| id as u32 as i32);
        match kind {
            COMM => {
                let name = body.get(8..).unwrap_or(&[]);
                let name = name.get(..memchr::memchr(0, name).unwrap_or(name.len())).unwrap_or(name);
                self.threads_seen.push((time, at, ThreadRecord::Name { tid: id(4), name: name.into() }));
            }
            FORK => self.threads_seen.push((time, at, ThreadRecord::Parent { tid: id(8), pid: id(0), parent: id(12) })),
            _ => {}
        }
    }

    /// Names and processes of threads, each thread with its parent's name until it has its own.
    pub fn threads(&mut self) -> Threads {
        self.threads_seen.sort_by_key(|(time, at, _)| (*time, *at));
        let mut threads = Threads::default();
        let mut names: HashMap<i32, Box<[u8]>> = HashMap::default();
        for (time, _, seen) in self.threads_seen.drain(..) {
            match seen {
                ThreadRecord::Name { tid, name } => {
                    threads.named(tid, time, &name);
                    names.insert(tid, name);
                }
                ThreadRecord::Parent { tid, pid, parent } => {
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

    /// One stream for each CPU: its runs in order of time, and what is said of them.
    pub fn streams(self) -> Vec<(Vec<RecordRun>, CpuStream)> {
        let begin = self.cpus.values().flat_map(|cpu| &cpu.runs).map(|run| run.begin).min().unwrap_or(0);
        let mut before = self.before;
        before.iter_mut().for_each(|run| (run.begin, run.end) = (begin, begin));
        let mut cpus = self.cpus;
        if cpus.is_empty() {
            cpus.insert(0, Cpu::default());
        }
        let stream = |(number, mut cpu): (u32, Cpu)| {
            // Stable: runs of equal times stay as they were written.
            cpu.runs.sort_by_key(|run| run.begin);
            let runs: Vec<RecordRun> = before.drain(..).chain(cpu.runs).collect();
            let packets =
                runs.iter().map(|run| CpuPacket { begin: run.begin, end: run.end, bytes: run.bytes as u64 }).collect();
            let cpu_stream =
                CpuStream { name: format!("cpu {number}"), cpu: Some(number), packets, losses: cpu.losses };
            (runs, cpu_stream)
        };
        cpus.into_iter().map(stream).collect()
    }
}
