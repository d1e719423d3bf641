//! Size of a growing recording: bytes, and the numbers of events and losses where an unfinished file shows them.
//!
//! Of a perf.data, each measurement reads the records that were written since the last one, by their 8-byte headers
//! (perf's `perf.data-file-format.txt`). For the other recorders it adds up the sizes of files, and reads ftrace's own
//! counters of losses.

use std::fs::File;
use std::ops::Add;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Size of a recording so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordingSize {
    /// Bytes written.
    pub bytes: u64,
    /// Events; `None` while the files do not show them.
    pub events: Option<u64>,
    /// Events that the recorder reports as lost; `None` while the files do not show them.
    pub lost: Option<u64>,
}

/// Record types of perf: `PERF_RECORD_LOST`, `PERF_RECORD_SAMPLE`.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;

/// Follows a growing perf.data.
#[derive(Debug)]
pub(super) struct PerfData {
    path: PathBuf,
    file: Option<File>,
    at: u64,
    size: RecordingSize,
}

impl PerfData {
    pub fn new(path: PathBuf) -> PerfData {
        let size = RecordingSize { bytes: 0, events: Some(0), lost: Some(0) };
        PerfData { path, file: None, at: 0, size }
    }

    /// Read the records that were written since the last call; the size of the whole recording.
    pub fn measure(&mut self) -> RecordingSize {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        let Some(file) = self.file.take() else { return self.size };
        self.walk_file(&file);
        self.file = Some(file);
        self.size
    }

    fn walk_file(&mut self, file: &File) {
        self.size.bytes = file.metadata().map_or(0, |data| data.len());
        if self.at == 0 {
            // The sixth word of the header is the offset of the records, 0 until perf has written the header.
            let mut header = [0; 104];
            if file.read_exact_at(&mut header, 0).is_err() {
                return;
            }
            self.at = word(&header[40..]);
        }
        let mut bytes = vec![0; 1 << 18];
        while self.at > 0 {
            let Ok(read) = file.read_at(&mut bytes, self.at) else { break };
            let walked = self.walk(&bytes[..read]);
            if walked == 0 {
                break;
            }
            self.at += walked as u64;
        }
    }

    /// Count the complete records at the beginning of `bytes`, and return their total length.
    fn walk(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while let Some(header) = bytes.get(at..at + 8) {
            let header = word(header);
            let (kind, size) = (header as u32, usize::from((header >> 48) as u16));
            let Some(record) = bytes.get(at..at + size) else { break };
            match kind {
                SAMPLE => self.size.events = self.size.events.map(|n| n + 1),
                // The body is the event's id and the number of lost events.
                LOST => {
                    let lost = record.get(16..24).map_or(0, word);
                    self.size.lost = self.size.lost.map(|n| n.saturating_add(lost));
                }
                _ => {}
            }
            if size < 8 {
                break;
            }
            at += size;
        }
        at
    }
}

/// A word in the byte order of this machine, which is perf's.
fn word(bytes: &[u8]) -> u64 {
    bytes.get(..8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

/// Total size of the files below a folder.
pub(super) fn bytes_below(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => bytes_below(&entry.path()),
        Ok(kind) if kind.is_file() => entry.metadata().map_or(0, |data| data.len()),
        _ => 0,
    };
    entries.map(size).sum()
}

/// What a ring buffer of the kernel has counted, over all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RingCounts {
    /// Those in the buffer, and those that were read.
    pub events: u64,
    pub lost: u64,
}

impl Add for RingCounts {
    type Output = RingCounts;

    fn add(self, other: RingCounts) -> RingCounts {
        RingCounts { events: self.events.saturating_add(other.events), lost: self.lost.saturating_add(other.lost) }
    }
}

/// The counts of the ring buffer whose folder in tracefs this is (`per_cpu/cpuN/stats`).
pub(super) fn ring_counts(buffer: &Path) -> Option<RingCounts> {
    let cpus = std::fs::read_dir(buffer.join("per_cpu")).ok()?.flatten();
    let count = |stats: String| {
        let number = |line: &str| line.split_once(": ").and_then(|(_, n)| n.trim().parse::<u64>().ok()).unwrap_or(0);
        let sum = |names: &[&str]| {
            stats.lines().filter(|line| names.iter().any(|name| line.starts_with(name))).map(number).sum()
        };
        let events = sum(&["entries", "read events"]);
        RingCounts { events, lost: sum(&["overrun", "commit overrun", "dropped events"]) }
    };
    let counts = cpus.filter_map(|cpu| std::fs::read_to_string(cpu.path().join("stats")).ok()).map(count);
    Some(counts.fold(RingCounts::default(), RingCounts::add))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn measure_counts_each_record_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("perf.data");
        let mut recording = PerfData::new(path.clone());
        assert_eq!(recording.measure(), RecordingSize { bytes: 0, events: Some(0), lost: Some(0) });
        let record = |kind: u32, body: &[u64]| {
            let size = 8 + 8 * body.len() as u64;
            let mut bytes = (u64::from(kind) | size << 48).to_ne_bytes().to_vec();
            body.iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
            bytes
        };
        let mut header = vec![0; 104];
        header[40..48].copy_from_slice(&104_u64.to_ne_bytes());
        let mut file = File::create(&path).unwrap();
        file.write_all(&header).unwrap();
        file.write_all(&record(SAMPLE, &[1, 2])).unwrap();
        let cut = record(LOST, &[7, 12]);
        file.write_all(&cut[..20]).unwrap();
        assert_eq!(recording.measure(), RecordingSize { bytes: 148, events: Some(1), lost: Some(0) });
        file.write_all(&cut[20..]).unwrap();
        file.write_all(&record(SAMPLE, &[])).unwrap();
        assert_eq!(recording.measure(), RecordingSize { bytes: 160, events: Some(2), lost: Some(12) });
        assert_eq!(recording.measure().events, Some(2));
    }

    #[test]
    fn ring_counts_are_of_all_cpus() {
        let folder = tempfile::tempdir().unwrap();
        for (cpu, overrun) in [("cpu0", 3), ("cpu1", 4)] {
            let cpu = folder.path().join("per_cpu").join(cpu);
            std::fs::create_dir_all(&cpu).unwrap();
            let text = format!(
                "entries: 9\noverrun: {overrun}\ncommit overrun: 1\nbytes: 55\ndropped events: 0\nread events: 8\n"
            );
            std::fs::write(cpu.join("stats"), text).unwrap();
        }
        assert_eq!(ring_counts(folder.path()), Some(RingCounts { events: 34, lost: 9 }));
        assert_eq!(ring_counts(&folder.path().join("nothing")), None);
    }
}
