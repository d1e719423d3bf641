//! The environment of a recording: what the control groups and `/proc` counted while it was made.
//!
//! `record` and `snapshot` write it, a line of JSON ([`EnvironmentLine`]) at a time, and it is read back beside the
//! recording as an [`Environment`]. A line holds what has changed since the line before; the first one, and each one
//! that says `whole`, holds all. A value is a number or a text under a name; PRODUCT.md, "The environment of a
//! recording", lists the names.

use crate::base::notice::Notices;
use crate::base::time::{Ns, Span, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name of the file beside a recording.
pub const ENVIRONMENT_FILE: &str = "environment.jsonl";

/// Lines in which the next one is looked for that says something of a process.
const MOST_LINES: usize = 64;

/// Names of values of control groups that the analysis reads.
pub const QUOTA_US: &str = "quota_us";
/// The period in which a group has its quota.
pub const PERIOD_US: &str = "period_us";
/// Periods in which a group was throttled.
pub const NR_THROTTLED: &str = "nr_throttled";
/// Time for which CPUs were throttled, added up.
pub const THROTTLED_US: &str = "throttled_us";
/// The group's part of the CPU: `cpu.weight`, or `cpu.shares` of version 1.
pub const WEIGHT: &str = "weight";
/// Of a process or thread: the control group that limits its CPU.
pub const CPU_GROUP: &str = "cpu_group";
/// Of a process or thread: the control group that limits its use of disks.
pub const DISK_GROUP: &str = "io_group";
/// Limits of a control group on disks: `254:0 rbps=4194304`; `max` where it has none.
pub const DISK_LIMITS: &str = "io.max";
/// Of a process or thread: the CPUs on which it may run, `0-3,8`.
pub const CPUS_ALLOWED: &str = "cpus_allowed";
/// Of a process or thread: its nice value and scheduling policy, `0 other`.
pub const PRIORITY: &str = "priority";
/// Of a process: the sockets that it has connected, by descriptor: `5 udp 127.0.0.53:53, 9 tcp [::1]:5432`; `unknown`
/// where they were not read.
pub const SOCKETS: &str = "sockets";
/// Of a CPU: time that the hypervisor gave to others.
pub const STEAL_MS: &str = "steal_ms";

/// A value of the environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SampledValue {
    /// A counter or a size.
    Count(u64),
    /// Anything else; `max` where there is no limit.
    Text(String),
}

/// Values by name.
pub type SampledValues = BTreeMap<String, SampledValue>;
/// Values by name, of each group, CPU, process or thread.
pub type SampledTable = BTreeMap<String, SampledValues>;

/// The readings of three clocks of the kernel at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentClocks {
    /// CLOCK_MONOTONIC.
    pub monotonic_ns: i64,
    /// CLOCK_BOOTTIME.
    pub boottime_ns: i64,
    /// The wall clock.
    pub realtime_ns: i64,
}

/// A line of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentLine {
    /// When it was read.
    #[serde(flatten)]
    pub clocks: EnvironmentClocks,
    /// The line holds all values, not only those that changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
    /// The name of the machine, and its boot; of whole lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// `/proc/sys/kernel/random/boot_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// What the recording itself cost, in words; of the last line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<String>,
    /// The whole machine.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub machine: SampledValues,
    /// CPUs by number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cpus: SampledTable,
    /// Control groups by path: `/shop` of version 2, `cpu:/shop` of a hierarchy of version 1.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: SampledTable,
    /// Processes by id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub processes: SampledTable,
    /// Threads by id, where they differ from their process.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub threads: SampledTable,
}

impl EnvironmentLine {
    /// What has changed since another line, under the clocks of this one.
    pub fn since(&self, before: &EnvironmentLine) -> EnvironmentLine {
        EnvironmentLine {
            clocks: self.clocks,
            machine: changed(&self.machine, Some(&before.machine)),
            cpus: changed_rows(&self.cpus, &before.cpus),
            groups: changed_rows(&self.groups, &before.groups),
            processes: changed_rows(&self.processes, &before.processes),
            threads: changed_rows(&self.threads, &before.threads),
            ..EnvironmentLine::default()
        }
    }
}

fn changed(now: &SampledValues, before: Option<&SampledValues>) -> SampledValues {
    let differs = |(name, value): &(&String, &SampledValue)| before.and_then(|all| all.get(*name)) != Some(*value);
    now.iter().filter(differs).map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn changed_rows(now: &SampledTable, before: &SampledTable) -> SampledTable {
    let rows = now.iter().map(|(key, values)| (key.clone(), changed(values, before.get(key))));
    rows.filter(|(_, values)| !values.is_empty()).collect()
}

/// The CPU quota of a control group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CpuQuota {
    /// CPU time in a period.
    pub quota: Ns,
    pub period: Ns,
}

/// What a control group had counted when a line was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThrottleCount {
    /// The position of the line.
    pub line: u32,
    /// Its quota then; `None` where it had none.
    pub quota: Option<CpuQuota>,
    /// Periods in which it was throttled.
    pub times: u64,
    /// For how long, added up over CPUs.
    pub time: Ns,
}

/// A control group that limits or shares CPU time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlGroup {
    /// Its path, as in [`EnvironmentLine::groups`].
    pub path: String,
    /// The group around it; `None` for the outermost, and where that was not sampled.
    pub parent: Option<u32>,
    /// There is no group around it.
    pub is_outermost: bool,
    /// Its values were read, not only that a thread is in it.
    pub is_sampled: bool,
    /// What it counted, in order of lines, where it had changed.
    pub counts: Vec<ThrottleCount>,
    /// True while its part of the CPU was always that of a group of which nothing was said.
    pub has_usual_weight: bool,
    /// True if it ever had a limit on a disk.
    pub limits_disk: bool,
}

/// What is known of a thread or process from a line on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadSetting<T> {
    /// The position of the line.
    pub line: u32,
    pub value: T,
}

/// A protocol of sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// A stream.
    Tcp,
    /// Datagrams.
    Udp,
}

impl Protocol {
    /// Its name: `TCP`.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Tcp => "TCP",
            Protocol::Udp => "UDP",
        }
    }
}

/// The port of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerPort {
    pub protocol: Protocol,
    pub number: u16,
}

/// A socket that a process has connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectedSocket {
    pub descriptor: u32,
    /// Where it leads.
    pub port: ServerPort,
}

/// The settings of a thread or process, in order of lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadSettings {
    /// Its control group, a position among the groups.
    pub group: Vec<ThreadSetting<u32>>,
    /// The control group that limits its use of disks.
    pub disk_group: Vec<ThreadSetting<u32>>,
    /// The CPUs on which it may run, ascending and apart: first and last of each run of numbers.
    pub allowed: Vec<ThreadSetting<Vec<(u32, u32)>>>,
    /// True for nice 0 and the policy of a usual thread.
    pub is_usual: Vec<ThreadSetting<bool>>,
    /// Of a process: the sockets that it has connected; `None` where they were not read.
    pub sockets: Vec<ThreadSetting<Option<Vec<ConnectedSocket>>>>,
}

/// The environment of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Where it was read.
    pub place: String,
    /// The name of the machine.
    pub host: Option<String>,
    /// What the recording cost, in words.
    pub recording: Option<String>,
    /// When each line was written, in order.
    pub lines: Vec<EnvironmentClocks>,
    pub groups: Vec<ControlGroup>,
    /// By id of a process.
    pub processes: BTreeMap<i32, ThreadSettings>,
    /// By id of a thread that differs from its process.
    pub threads: BTreeMap<i32, ThreadSettings>,
    /// By CPU: stolen time in ms, in order of lines, where it had changed.
    pub steal: BTreeMap<u32, Vec<ThreadSetting<u64>>>,
    /// What could not be read.
    pub notices: Notices,
}

/// An environment on the time line of its recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacedEnvironment {
    pub values: std::sync::Arc<Environment>,
    /// The times of its lines, ascending.
    pub times: Vec<Timestamp>,
}

impl<T> ThreadSetting<T> {
    /// The value that held at a line: the last one before it, else the first one after.
    pub fn at(all: &[ThreadSetting<T>], line: u32) -> Option<&T> {
        let after = all.partition_point(|setting| setting.line <= line);
        all.get(after.saturating_sub(1)).map(|setting| &setting.value)
    }
}

impl ControlGroup {
    /// What it had counted at a line; `None` before the first count.
    pub fn count_at(&self, line: u32) -> Option<&ThrottleCount> {
        let after = self.counts.partition_point(|count| count.line <= line);
        self.counts.get(after.checked_sub(1)?)
    }
}

impl Environment {
    /// The settings of a thread: its own where they differ from those of its process.
    pub fn settings<T>(
        &self,
        pid: i32,
        tid: i32,
        which: impl Fn(&ThreadSettings) -> &Vec<ThreadSetting<T>>,
    ) -> Option<&[ThreadSetting<T>]> {
        let own = self.threads.get(&tid).map(&which).filter(|known| !known.is_empty());
        own.or_else(|| self.processes.get(&pid).map(&which)).map(Vec::as_slice)
    }
}

impl PlacedEnvironment {
    /// Where an open file of a process led all through `span`, if it was a socket that the process had connected: a
    /// line of that time says so, else those around it say the same. Lines that say nothing of the process's sockets
    /// are passed over, 64 at most.
    pub fn server_port(&self, pid: i32, descriptor: u32, span: Span) -> Option<ServerPort> {
        let settings = &self.values.processes.get(&pid)?.sockets;
        let first = settings.first()?.line as usize;
        let said = |line: usize| {
            let sockets = ThreadSetting::at(settings, line as u32).filter(|_| line >= first)?.as_ref()?;
            Some(sockets.iter().find(|socket| socket.descriptor == descriptor).map(|socket| socket.port))
        };
        let lines = |from: Timestamp| self.times.partition_point(|time| *time < from);
        let (begin, end) = (lines(span.start), lines(span.end));
        if let Some(within) = (begin..end).take(MOST_LINES).find_map(said) {
            return within;
        }
        let before = (0..begin).rev().take(MOST_LINES).find_map(said)??;
        let after = (end..self.times.len()).take(MOST_LINES).find_map(said)??;
        (before == after).then_some(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_hold_what_has_changed() {
        let values = |pairs: &[(&str, u64)]| -> SampledValues {
            pairs.iter().map(|(name, n)| ((*name).to_owned(), SampledValue::Count(*n))).collect()
        };
        let group = |pairs| SampledTable::from([("/shop".to_owned(), values(pairs))]);
        let first = EnvironmentLine { groups: group(&[("nr_throttled", 1), ("quota_us", 7)]), ..Default::default() };
        let second = EnvironmentLine { groups: group(&[("nr_throttled", 2), ("quota_us", 7)]), ..Default::default() };
        assert_eq!(second.since(&first).groups, group(&[("nr_throttled", 2)]));
        assert!(second.since(&second).groups.is_empty());
        let text = serde_json::to_string(&second.since(&first)).unwrap();
        assert_eq!(text, r#"{"monotonic_ns":0,"boottime_ns":0,"realtime_ns":0,"groups":{"/shop":{"nr_throttled":2}}}"#);
        assert_eq!(serde_json::from_str::<EnvironmentLine>(&text).unwrap(), second.since(&first));
    }

    #[test]
    fn settings_hold_from_their_line_on() {
        let all = [ThreadSetting { line: 2, value: 'a' }, ThreadSetting { line: 5, value: 'b' }];
        let at = |line| *ThreadSetting::at(&all, line).unwrap();
        assert_eq!([0, 2, 4, 5, 9].map(at), ['a', 'a', 'a', 'b', 'b']);
        assert_eq!(ThreadSetting::<u32>::at(&[], 3), None);
    }

    #[test]
    fn a_socket_leads_where_the_lines_of_its_time_say() {
        let socket = |descriptor, number| {
            let port = ServerPort { protocol: Protocol::Udp, number };
            Some(vec![ConnectedSocket { descriptor, port }])
        };
        let none = Some(Vec::new());
        let all = [(0, socket(5, 53)), (2, socket(5, 80)), (3, None), (4, none), (5, socket(6, 53))];
        let sockets = all.into_iter().map(|(line, value)| ThreadSetting { line, value }).collect();
        let settings = ThreadSettings { sockets, ..ThreadSettings::default() };
        let values = Environment { processes: BTreeMap::from([(7, settings)]), ..Environment::default() };
        let times = (0..7).map(|line| Timestamp::new(line * 100)).collect();
        let placed = PlacedEnvironment { values: std::sync::Arc::new(values), times };
        let port = |pid, descriptor, from, to| {
            let span = Span::new(Timestamp::new(from), Timestamp::new(to));
            placed.server_port(pid, descriptor, span).map(|port| port.number)
        };
        assert_eq!(port(7, 5, 90, 110), Some(53), "a line in it");
        assert_eq!((port(7, 5, 10, 90), port(7, 5, 190, 199)), (Some(53), None), "the lines around it agree, or not");
        assert_eq!((port(7, 5, 290, 310), port(7, 5, 390, 410)), (None, None), "not read, and closed");
        assert_eq!(port(7, 5, 190, 310), Some(80), "one of two lines in it says so");
        assert_eq!((port(7, 6, 510, 590), port(7, 6, 610, 690)), (Some(53), None), "there is no line after it");
        assert_eq!((port(8, 5, 90, 110), port(7, 4, 90, 110), port(7, 5, -50, -10)), (None, None, None));
    }
}
