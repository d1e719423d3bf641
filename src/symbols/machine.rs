//! Whether a recording was made on this machine since it started.
//!
//! In: the names of the machine and of its present boot, and what a recording says about the machine that it is of.
//! Out: for a recording of the present boot what its time line lacks to wall-clock time; nothing for all others. A file
//! of this machine shows nothing about another one, and the addresses of the kernel are those of one boot.
//!
//! The names of host and release must be equal, and they do not suffice: many machines are called alike, and a machine
//! starts again with the same kernel. LTTng's clock carries the id of the boot, which decides. Else a recording with
//! wall-clock times must lie between the start and now. A recording whose clock counts from the start (perf without
//! `-k`) must have been written when that clock showed its last time: its file has not been copied since then without
//! its time, and no other boot is as old at that moment. What is unknown counts as another machine.

use crate::base::mapped::read_small;
use crate::base::time::{Ns, Timestamp};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Clocks that count from the start of a machine show less than this, those that count from the Epoch more: 30 years.
pub const SINCE_EPOCH: Timestamp = Timestamp::new(30 * 365 * 86_400 * SECOND);

/// The files about the machine, below the root.
pub const FILES: [&str; 4] =
    ["proc/sys/kernel/hostname", "proc/sys/kernel/osrelease", "proc/sys/kernel/random/boot_id", "proc/stat"];

/// Time from the last event until a recorder has written its file.
const WRITING: Ns = 60 * SECOND;
const SECOND: Ns = 1_000_000_000;

/// Bytes of a file that are read: `/proc/stat` has a line for each CPU and one for all interrupts.
const MOST: u64 = 1 << 20;

/// The names of a machine and of its present boot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThisMachine {
    host: String,
    release: String,
    boot: String,
    /// The wall-clock time of its start.
    started: Option<Timestamp>,
}

/// What a recording says about the machine that it is of.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordedMachine<'a> {
    pub host: Option<&'a str>,
    /// Release of its kernel.
    pub release: Option<&'a str>,
    /// The id of its boot, by LTTng.
    pub boot: Option<&'a str>,
    /// The last time, on the time line of the recording.
    pub last: Option<Timestamp>,
    /// When the file was written.
    pub written: Option<SystemTime>,
}

impl ThisMachine {
    /// The machine whose files are below `root`; what cannot be read is equal to nothing.
    pub fn read(root: &Path) -> ThisMachine {
        let text = |name: &str| read_small(&root.join(name), MOST).unwrap_or_default();
        let [host, release, boot, stat] = FILES.map(|name| String::from_utf8_lossy(&text(name)).trim().to_owned());
        let started = stat.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse::<Ns>().ok());
        let started = started.map(|seconds| Timestamp::new(seconds.saturating_mul(SECOND)));
        ThisMachine { host, release, boot, started }
    }

    /// What is added to the times of a recording to give wall-clock time, where it is of this machine since it started.
    pub fn recorded(&self, recording: &RecordedMachine<'_>) -> Option<Ns> {
        let is_same = |own: &str, other: Option<&str>| other.is_some_and(|other| !own.is_empty() && own == other);
        if !is_same(&self.host, recording.host) || recording.release.is_some_and(|release| release != self.release) {
            return None;
        }
        let last = recording.last?;
        let is_dated = last > SINCE_EPOCH;
        if recording.boot.is_some() {
            // Its clock has been aligned with wall-clock time.
            return (is_same(&self.boot, recording.boot) && is_dated).then_some(0);
        }
        let (started, _) = (self.started?, recording.release?);
        if is_dated {
            return (started <= last && last <= now()?).then_some(0);
        }
        let end = started.saturating_add(last.ns());
        let late = wall(recording.written?)?.since(end);
        (-WRITING..=WRITING).contains(&late).then_some(started.ns())
    }
}

fn wall(time: SystemTime) -> Option<Timestamp> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    Some(Timestamp::clamped(i128::try_from(since.as_nanos()).ok()?))
}

fn now() -> Option<Timestamp> {
    wall(SystemTime::now())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const BOOT: &str = "6f1d2c7e-5c1a-4f0e-9a51-0a6c1c3e9b11";
    const STARTED: u64 = 1_700_000_000;

    fn machine() -> ThisMachine {
        let root = tempfile::tempdir().unwrap();
        let stat = format!("cpu 1 2 3\nbtime {STARTED}\nprocesses 7\n");
        for (name, text) in FILES.into_iter().zip(["gate-1\n", "6.1.0-28\n", &format!("{BOOT}\n"), &stat]) {
            let file = root.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        ThisMachine::read(root.path())
    }

    fn at(seconds: u64) -> Option<Timestamp> {
        Some(Timestamp::new(seconds as Ns * SECOND))
    }

    #[test]
    fn recorded_demands_host_release_and_boot() {
        let machine = machine();
        let (host, release) = (Some("gate-1"), Some("6.1.0-28"));
        let same = RecordedMachine { host, release, last: at(STARTED + 50), ..RecordedMachine::default() };
        assert_eq!(machine.recorded(&same), Some(0));
        for other in [
            RecordedMachine { host: Some("gate-2"), ..same },
            RecordedMachine { host: None, ..same },
            RecordedMachine { release: Some("6.1.0-29"), ..same },
            RecordedMachine { release: None, ..same },
            RecordedMachine { last: None, ..same },
            // Before this boot, and in the future.
            RecordedMachine { last: at(STARTED - 1), ..same },
            RecordedMachine { last: at(STARTED * 4), ..same },
            RecordedMachine { boot: Some("another"), ..same },
        ] {
            assert_eq!(machine.recorded(&other), None, "{other:?}");
        }
        // A user-space trace has no release, but the boot.
        assert_eq!(machine.recorded(&RecordedMachine { release: None, boot: Some(BOOT), ..same }), Some(0));
        // Nothing is known about this machine.
        assert_eq!(
            ThisMachine::default().recorded(&RecordedMachine { host: Some(""), release: Some(""), ..same }),
            None
        );
    }

    #[test]
    fn recorded_compares_the_time_of_the_file_where_the_clock_has_no_date() {
        let machine = machine();
        let written = |seconds| Some(UNIX_EPOCH + Duration::from_secs(seconds));
        let (host, release) = (Some("gate-1"), Some("6.1.0-28"));
        let recording = RecordedMachine { host, release, last: at(500), ..RecordedMachine::default() };
        let of = |written| machine.recorded(&RecordedMachine { written, ..recording });
        let offset = Some(STARTED as Ns * SECOND);
        assert_eq!((of(written(STARTED + 501)), of(written(STARTED + 559))), (offset, offset));
        // Copied later, of another boot, or unknown.
        assert_eq!((of(written(STARTED + 900)), of(written(STARTED - 7_000)), of(None)), (None, None, None));
    }
}
