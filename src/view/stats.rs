//! `stats count`, `cpu` and `io`: one table, as JSON (`whyslow.stats.*/1`) and as text.

use crate::base::notice::Notices;
use crate::base::{clean, figure};
use crate::model::counts::{ArchiveCounts, RecordCounts};
use crate::model::usage::{CpuUse, IoUse, ProcessTransfers, ThreadUse};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A document of one of the three schemas.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum StatsTable {
    /// Events per type.
    Count(CountDocument),
    /// CPU time per CPU and thread.
    Cpu(CpuDocument),
    /// Bytes read and written per process.
    Io(IoDocument),
}

/// `whyslow.stats.count/1`
#[derive(Clone, Debug, Serialize)]
pub struct CountDocument {
    schema: &'static str,
    events: u64,
    discarded_events: u64,
    discarded_packets: u64,
    streams: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    packets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Messages>,
    per_name: BTreeMap<String, u64>,
    warnings: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct Messages {
    sends: u64,
    receives: u64,
    matched: u64,
}

/// `whyslow.stats.cpu/1`
#[derive(Clone, Debug, Serialize)]
pub struct CpuDocument {
    schema: &'static str,
    cpus: Vec<CpuLine>,
    threads: Vec<ThreadLine>,
    warnings: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct CpuLine {
    cpu: u32,
    active_ns: i64,
    percent: f64,
    idle_percent: f64,
}

#[derive(Clone, Debug, Serialize)]
struct ThreadLine {
    tid: i32,
    pid: i32,
    name: String,
    cpu_ns: i64,
    /// Of all CPUs together.
    percent: f64,
}

/// `whyslow.stats.io/1`
#[derive(Clone, Debug, Serialize)]
pub struct IoDocument {
    schema: &'static str,
    processes: Vec<IoLine>,
    warnings: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct IoLine {
    pid: i32,
    name: String,
    read_bytes: u64,
    written_bytes: u64,
    reads: u64,
    writes: u64,
}

fn warnings(notices: &Notices) -> Vec<String> {
    notices.sentences().iter().map(|s| clean::line(s)).collect()
}

/// Why there is no file transfer in an archive.
const NO_TRANSFERS: &str = "the archive holds no I/O operations: record them (Score-P: build with scorep --io=posix; \
                            EZTrace: add posixio to the modules, -t \"openmpi posixio\")";

/// The warnings; the reason for an empty table comes first.
fn reasoned(is_empty: bool, why: &str, notices: &Notices) -> Vec<String> {
    is_empty.then(|| why.to_owned()).into_iter().chain(warnings(notices)).collect()
}

/// Two decimals.
fn rounded(percent: f64) -> f64 {
    (percent * 100.0).round() / 100.0
}

fn percent(part: i64, whole: i64) -> f64 {
    rounded(part as f64 * 100.0 / whole.max(1) as f64)
}

fn cleaned(per_name: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    per_name.iter().map(|(name, n)| (clean::owned(name), *n)).collect()
}

impl StatsTable {
    /// From counted headers.
    pub fn count(counts: &RecordCounts, notices: &Notices) -> StatsTable {
        StatsTable::Count(CountDocument {
            schema: "whyslow.stats.count/1",
            events: counts.events,
            discarded_events: counts.discarded_events,
            discarded_packets: counts.discarded_packets,
            streams: counts.streams,
            packets: Some(counts.packets),
            messages: None,
            per_name: cleaned(&counts.per_name),
            warnings: warnings(notices),
        })
    }

    /// From the records of an MPI run, which have no packets and come as messages.
    pub fn messages(counts: &ArchiveCounts, notices: &Notices) -> StatsTable {
        let (sends, receives, matched) = (counts.sends, counts.receives, counts.matched);
        StatsTable::Count(CountDocument {
            schema: "whyslow.stats.count/1",
            events: counts.events,
            discarded_events: 0,
            discarded_packets: 0,
            streams: counts.streams,
            packets: None,
            messages: Some(Messages { sends, receives, matched }),
            per_name: cleaned(&counts.per_name),
            warnings: warnings(notices),
        })
    }

    /// From CPU times.
    pub fn cpu(cpus: &[CpuUse], threads: Vec<ThreadUse>, notices: &Notices) -> StatsTable {
        let known: i64 = cpus.iter().map(|c| c.total_ns).fold(0, i64::saturating_add);
        let cpu = |c: &CpuUse| {
            let percent = percent(c.active_ns, c.total_ns);
            CpuLine { cpu: c.cpu, active_ns: c.active_ns, percent, idle_percent: rounded(100.0 - percent) }
        };
        let thread = |t: ThreadUse| {
            let name = clean::owned(&t.name);
            ThreadLine { tid: t.tid, pid: t.pid, name, cpu_ns: t.cpu_ns, percent: percent(t.cpu_ns, known) }
        };
        let threads: Vec<ThreadLine> = threads.into_iter().map(thread).collect();
        let why = "no CPU time per thread: the recording has no sched_switch events; record sched_switch";
        StatsTable::Cpu(CpuDocument {
            schema: "whyslow.stats.cpu/1",
            cpus: cpus.iter().map(cpu).collect(),
            warnings: reasoned(threads.is_empty(), why, notices),
            threads,
        })
    }

    /// From bytes that system calls read and wrote.
    pub fn io(processes: Vec<IoUse>, notices: &Notices) -> StatsTable {
        let line = |p: IoUse| IoLine {
            pid: p.pid,
            name: clean::owned(&p.name),
            read_bytes: p.read.bytes,
            written_bytes: p.written.bytes,
            reads: p.read.calls,
            writes: p.written.calls,
        };
        let processes: Vec<IoLine> = processes.into_iter().map(line).collect();
        let why = "no reads and writes: the recording lacks the system calls that move bytes, or their results; \
        record the entry and \
                   exit of read, write and similar system calls";
        let warnings = reasoned(processes.is_empty(), why, notices);
        StatsTable::Io(IoDocument { schema: "whyslow.stats.io/1", processes, warnings })
    }

    /// From bytes that each process of an MPI run read from and wrote to files; none where no event was read.
    pub fn transfers(by_process: &[ProcessTransfers], notices: &Notices) -> StatsTable {
        let numbered = (0..).zip(by_process).filter(|(_, process)| process.sum.reads + process.sum.writes > 0);
        let processes: Vec<IoLine> = numbered
            .map(|(pid, ProcessTransfers { name, sum, .. })| IoLine {
                pid,
                name: clean::owned(name),
                read_bytes: sum.read_bytes,
                written_bytes: sum.written_bytes,
                reads: sum.reads,
                writes: sum.writes,
            })
            .collect();
        // Where nothing could be read nothing is known of I/O.
        let is_known = !by_process.is_empty();
        let warnings = reasoned(is_known && processes.is_empty(), NO_TRANSFERS, notices);
        StatsTable::Io(IoDocument { schema: "whyslow.stats.io/1", processes, warnings })
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = match self {
            StatsTable::Count(t) => t.write(&mut out),
            StatsTable::Cpu(t) => t.write(&mut out),
            StatsTable::Io(t) => t.write(&mut out),
        };
        out
    }
}

fn notes(out: &mut String, warnings: &[String]) -> std::fmt::Result {
    warnings.iter().try_for_each(|w| writeln!(out, "note: {w}"))
}

impl CountDocument {
    fn write(&self, out: &mut String) -> std::fmt::Result {
        let mut names: Vec<_> = self.per_name.iter().collect();
        names.sort_by_key(|(name, n)| (std::cmp::Reverse(**n), *name));
        for (name, n) in names {
            writeln!(out, "{n:>12}  {name}")?;
        }
        let packets = self.packets.map_or_else(String::new, |n| format!("{n} packets of "));
        writeln!(out, "{:>12}  events in {packets}{} streams", self.events, self.streams)?;
        if let Some(m) = &self.messages {
            writeln!(out, "{:>12}  messages matched, of {} sent and {} received", m.matched, m.sends, m.receives)?;
        }
        notes(out, &self.warnings)
    }
}

impl CpuDocument {
    fn write(&self, out: &mut String) -> std::fmt::Result {
        for c in &self.cpus {
            let active = figure::milliseconds(c.active_ns, 3);
            let [busy, idle] = [c.percent, c.idle_percent].map(|percent| figure::percent(percent / 100.0, 2));
            writeln!(out, "cpu {:<4} {active:>12} ms active {busy:>7} idle {idle:>7}", c.cpu)?;
        }
        writeln!(out, "\n{:>8} {:>8} {:>14} {:>7}  thread", "pid", "tid", "cpu ms", "%")?;
        for t in &self.threads {
            let time = figure::milliseconds(t.cpu_ns, 3);
            writeln!(out, "{:>8} {:>8} {time:>14} {:>7.2}  {}", t.pid, t.tid, t.percent, t.name)?;
        }
        notes(out, &self.warnings)
    }
}

impl IoDocument {
    fn write(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "{:>8} {:>14} {:>14} {:>9} {:>9}  process", "pid", "read B", "written B", "reads", "writes")?;
        for p in &self.processes {
            let (read, written) = (p.read_bytes, p.written_bytes);
            writeln!(out, "{:>8} {read:>14} {written:>14} {:>9} {:>9}  {}", p.pid, p.reads, p.writes, p.name)?;
        }
        notes(out, &self.warnings)
    }
}
