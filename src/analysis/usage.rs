//! Who used the CPUs, and who read and wrote how much: `stats cpu` and `stats io`.
//!
//! Both are sums over the sealed [`Recording`]: its CPU runs and its system calls. Linear; integers only; the parts
//! add up to the whole (a CPU's active time is the sum of its threads' runs on it).

use super::recording::{Recording, Thread, ThreadId};
use crate::base::time::Ns;
use std::collections::BTreeMap;

/// One CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuUse {
    /// Its number.
    pub cpu: u32,
    /// Time on threads other than the idle task.
    pub active_ns: Ns,
    /// Time in which it is known who ran, the idle task included.
    pub total_ns: Ns,
}

/// One thread's share of all CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadUse {
    /// The thread.
    pub thread: ThreadId,
    /// Time on any CPU.
    pub cpu_ns: Ns,
}

/// CPUs in order, and threads that ran at all, longest first.
pub fn cpu(recording: &Recording) -> (Vec<CpuUse>, Vec<ThreadUse>) {
    let mut threads: BTreeMap<ThreadId, Ns> = BTreeMap::new();
    let mut cpus = Vec::new();
    for ((_, cpu), runs) in &recording.cpus {
        let mut active_ns = 0;
        for run in runs {
            if recording.thread(run.thread).is_some_and(|t| !t.idle) {
                active_ns += run.span.len();
                *threads.entry(run.thread).or_default() += run.span.len();
            }
        }
        cpus.push(CpuUse { cpu: *cpu, active_ns, total_ns: runs.iter().map(|run| run.span.len()).sum() });
    }
    let mut threads: Vec<_> = threads.into_iter().map(|(thread, cpu_ns)| ThreadUse { thread, cpu_ns }).collect();
    threads.sort_by_key(|t| (std::cmp::Reverse(t.cpu_ns), t.thread));
    (cpus, threads)
}

/// One process's reads and writes: what its system calls returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IoUse {
    /// Process id.
    pub pid: i32,
    /// Name of its main thread, or of the first thread seen.
    pub name: String,
    /// Bytes that reads returned.
    pub read_bytes: u64,
    /// Bytes that writes took.
    pub written_bytes: u64,
    /// Reads that returned.
    pub reads: u64,
    /// Writes that returned.
    pub writes: u64,
}

/// True for reads, false for writes, `None` for other system calls (names without prefix).
pub fn direction(call: &str) -> Option<bool> {
    match call {
        "read" | "pread64" | "pread" | "readv" | "preadv" | "preadv2" | "recv" | "recvfrom" | "recvmsg" => Some(true),
        "write" | "pwrite64" | "pwrite" | "writev" | "pwritev" | "pwritev2" | "send" | "sendto" | "sendmsg" => {
            Some(false)
        }
        _ => None,
    }
}

/// Processes that read or wrote, most bytes first.
pub fn io(recording: &Recording) -> Vec<IoUse> {
    let mut processes: BTreeMap<(u32, i32), IoUse> = BTreeMap::new();
    for thread in &recording.threads {
        for call in &thread.calls {
            let Some(reads) = direction(recording.names.get(call.name)) else { continue };
            let Some(ret) = call.ret else { continue };
            let bytes = u64::try_from(ret).unwrap_or(0);
            let usage = processes.entry((thread.host.0, thread.pid)).or_default();
            if usage.name.is_empty() || thread.tid == thread.pid {
                usage.name = last_name(recording, thread);
            }
            let (total, count) = if reads {
                (&mut usage.read_bytes, &mut usage.reads)
            } else {
                (&mut usage.written_bytes, &mut usage.writes)
            };
            *total = total.saturating_add(bytes);
            *count += 1;
        }
    }
    let mut list: Vec<_> = processes.into_iter().map(|((_, pid), usage)| IoUse { pid, ..usage }).collect();
    list.sort_by_key(|p| (std::cmp::Reverse(p.read_bytes.saturating_add(p.written_bytes)), p.pid));
    list
}

fn last_name(recording: &Recording, thread: &Thread) -> String {
    thread.names.last().map_or(String::new(), |(_, name)| recording.names.get(*name).to_owned())
}
