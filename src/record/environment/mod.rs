//! Samples of the environment of a recording: what the control groups and `/proc` count.
//!
//! In: the processes that are recorded (given ones with their descendants, or all of the machine). Out: lines of
//! `environment.jsonl` (`model/environment.rs`), each with what has changed since the one before: once a second, more
//! often in the first second, so that a short recording has some. What cannot be read is left out: no file of these is
//! on every kernel, and the recording is good without them. Bounded: `MOST_PROCESSES`, `MOST_THREADS` and
//! `groups::MOST_GROUPS` in a line, `MOST_BYTES` in all. Cost: some reads below `/proc` for each group, and each ten
//! seconds for each process and thread.
//!
//! - `groups`: control groups of either version
//! - `machine`: CPUs, memory, pressure
//! - `processes`: the processes, their threads, groups, CPUs and limits
//! - `sockets`: the sockets that they have connected

mod files;
mod groups;
mod machine;
mod processes;
mod sockets;

use crate::model::environment::{EnvironmentClocks, EnvironmentLine};
use files::{GroupPaths, text};
use groups::Hierarchies;
use processes::SampleDepth;
use rustix::time::{ClockId, clock_gettime};
use sockets::SocketSampler;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Bytes of all lines: after that nothing is written. At 1 KiB a second these are 18 hours.
const MOST_BYTES: u64 = 64 << 20;
/// Lines between two whole ones: a reader that has lost one goes on from there.
const WHOLE_EVERY: u32 = 60;
/// Samples at the beginning that read the settings of all processes: a command may put itself into a group first.
const SETTLING: u32 = 8;
/// Later, one sample of this number reads them.
const SETTINGS_EVERY: u32 = 10;
/// The first samples, after the beginning.
const FIRST: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(100), Duration::from_millis(300), Duration::from_millis(600)];
/// Time between two samples after that.
const INTERVAL: Duration = Duration::from_secs(1);

/// The processes to sample.
#[derive(Clone, Debug, Default)]
pub struct SampledProcesses {
    /// These, with their descendants; none means all of the machine.
    pub pids: Vec<u32>,
}

/// Samples the environment.
#[derive(Debug)]
pub struct EnvironmentSampler {
    root: PathBuf,
    processes: SampledProcesses,
    before: EnvironmentLine,
    /// The groups of all processes so far: a group counts on when the last one has ended.
    groups: GroupPaths,
    sockets: SocketSampler,
    /// Lines so far.
    lines: u32,
}

impl EnvironmentSampler {
    /// Of the machine whose `/` is `root`.
    pub fn new(root: &Path, processes: SampledProcesses) -> EnvironmentSampler {
        let (root, before) = (root.to_owned(), EnvironmentLine::default());
        EnvironmentSampler {
            root,
            processes,
            before,
            groups: GroupPaths::new(),
            sockets: SocketSampler::default(),
            lines: 0,
        }
    }

    /// What has changed since the line before.
    pub fn next_line(&mut self) -> EnvironmentLine {
        let now = self.sample();
        let line = match self.lines % WHOLE_EVERY {
            0 => EnvironmentLine {
                whole: true,
                host: text(&self.root.join("proc/sys/kernel/hostname")).map(|name| name.trim().to_owned()),
                boot: text(&self.root.join("proc/sys/kernel/random/boot_id")).map(|id| id.trim().to_owned()),
                ..now.clone()
            },
            _ => now.since(&self.before),
        };
        self.before = now;
        self.lines = self.lines.wrapping_add(1);
        line
    }

    fn sample(&mut self) -> EnvironmentLine {
        let proc = self.root.join("proc");
        let hierarchies = Hierarchies::read(&self.root);
        let depth = if self.lines < SETTLING || self.lines.is_multiple_of(SETTINGS_EVERY) {
            SampleDepth::All
        } else {
            SampleDepth::New
        };
        let found = processes::sample(&proc, &self.processes.pids, &hierarchies, (&self.before, depth));
        let more = found.groups.into_iter().take(groups::MOST_GROUPS.saturating_sub(self.groups.len()));
        self.groups.extend(more);
        let groups = hierarchies.sample(&self.groups);
        // The counters of the groups are what the times belong to.
        let clocks = clocks();
        let (machine, cpus) = (machine::machine(&proc), machine::cpus(&self.root));
        let processes::ProcessSample { mut processes, threads, .. } = found;
        self.sockets.add(&proc, &mut processes, &self.before.processes);
        EnvironmentLine { clocks, machine, cpus, groups, processes, threads, ..EnvironmentLine::default() }
    }
}

/// A file of lines that grows while a recording is made.
#[derive(Debug)]
pub struct EnvironmentFile<W> {
    sampler: EnvironmentSampler,
    file: W,
    began: Instant,
    /// The samples at [`FIRST`] that are done.
    first: usize,
    last: Duration,
    written: u64,
}

impl EnvironmentFile<File> {
    /// Into a file.
    pub fn new(file: File, root: &Path, processes: SampledProcesses) -> EnvironmentFile<File> {
        EnvironmentFile::with(file, EnvironmentSampler::new(root, processes))
    }
}

impl<W: Write> EnvironmentFile<W> {
    /// Into any writer.
    pub fn with(file: W, sampler: EnvironmentSampler) -> EnvironmentFile<W> {
        EnvironmentFile { sampler, file, began: Instant::now(), first: 0, last: Duration::ZERO, written: 0 }
    }

    /// Write a line if one is due; `interval` is the time between two, after the first ones.
    pub fn sample_if_due(&mut self, interval: Duration) -> io::Result<()> {
        let since = self.began.elapsed();
        let due = FIRST.get(self.first).copied().filter(|first| *first < interval);
        let due = due.unwrap_or_else(|| self.last.saturating_add(interval));
        if since < due {
            return Ok(());
        }
        self.first += 1;
        self.sample()
    }

    /// Sample if a second has passed since the last sample.
    pub fn sample_each_second(&mut self) -> io::Result<()> {
        self.sample_if_due(INTERVAL)
    }

    /// Write a line.
    pub fn sample(&mut self) -> io::Result<()> {
        self.sample_with(None)
    }

    /// Write the last line, which says in words what the recording cost.
    pub fn sample_at_end(&mut self, recording: String) -> io::Result<()> {
        self.sample_with(Some(recording))
    }

    fn sample_with(&mut self, recording: Option<String>) -> io::Result<()> {
        self.last = self.began.elapsed();
        let line = serde_json::to_string(&EnvironmentLine { recording, ..self.sampler.next_line() })?;
        if self.is_full() {
            return Ok(());
        }
        self.written += line.len() as u64 + 1;
        // One write for each line: a reader never meets half of one while this program lives.
        self.file.write_all(format!("{line}\n").as_bytes())?;
        self.file.flush()
    }

    /// True once the file has as many bytes as it may have.
    pub fn is_full(&self) -> bool {
        self.written >= MOST_BYTES
    }
}

/// The three clocks now.
fn clocks() -> EnvironmentClocks {
    let ns = |id| {
        let time = clock_gettime(id);
        time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
    };
    EnvironmentClocks {
        monotonic_ns: ns(ClockId::Monotonic),
        boottime_ns: ns(ClockId::Boottime),
        realtime_ns: ns(ClockId::Realtime),
    }
}

#[cfg(test)]
mod tests;
