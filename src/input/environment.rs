//! The environment of a recording (`environment.jsonl`), read from beside it.
//!
//! In: the path of a recording. Out: an [`Environment`], or none where there is no such file. Each line is applied to
//! what the lines before it said; of the values those are kept that an analysis uses, where they changed. The file is
//! not trusted: a line that cannot be read, that goes back in time, or that is beyond [`MOST_LINES`] or
//! [`MOST_CHANGES`] is counted and left out. Memory: at most those, and one line of [`LONGEST_LINE`] bytes.

use crate::base::mapped::open_regular;
use crate::base::notice::Notice;
use crate::base::time::Ns;
use crate::model::environment::{
    CPU_GROUP, CPUS_ALLOWED, ConnectedSocket, ControlGroup, CpuQuota, DISK_GROUP, DISK_LIMITS, ENVIRONMENT_FILE,
    Environment, EnvironmentLine, NR_THROTTLED, PERIOD_US, PRIORITY, Protocol, QUOTA_US, SOCKETS, STEAL_MS,
    SampledTable, SampledValue, SampledValues, ServerPort, THROTTLED_US, ThreadSetting, ThreadSettings, ThrottleCount,
    WEIGHT,
};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of a line.
const LONGEST_LINE: u64 = 4 << 20;
/// Bytes that are read: `record` ends before.
const MOST_BYTES: u64 = 256 << 20;
/// Lines that are read: twelve days at one a second.
const MOST_LINES: usize = 1 << 20;
/// Values that changed, over all lines.
const MOST_CHANGES: usize = 1 << 20;
/// Runs of numbers in a list of CPUs.
const MOST_RUNS: usize = 256;
/// Sockets of a process.
const MOST_SOCKETS: usize = 4096;
/// The weights of a group of which nothing was said: of version 2, and of version 1.
const USUAL_WEIGHTS: [u64; 2] = [100, 1024];

/// The file that belongs to a recording: in its folder, or beside it.
fn file_of(recording: &Path) -> Option<PathBuf> {
    let inside = recording.join(ENVIRONMENT_FILE);
    let beside = recording.with_file_name(ENVIRONMENT_FILE);
    [inside, beside].into_iter().find(|path| path.is_file())
}

/// The environment of a recording, if there is one.
pub(super) fn of(recording: &Path) -> Option<Arc<Environment>> {
    let path = file_of(recording)?;
    let place = path.display().to_string();
    let mut read = ReadEnvironment::new(place.clone());
    match open_regular(&path) {
        Ok(file) => read.lines(BufReader::new(file.take(MOST_BYTES))),
        Err(e) => read.whole.notices.add(Notice::EnvironmentUnread, 1, || format!("{place}: {e}")),
    }
    Some(Arc::new(read.finish()))
}

/// The environment so far.
struct ReadEnvironment {
    whole: Environment,
    /// By path of a group.
    groups: BTreeMap<String, KnownGroup>,
    changes: usize,
}

/// A group, and its values as the last line left them.
#[derive(Clone, Copy)]
struct KnownGroup {
    number: u32,
    quota_us: Option<u64>,
    period_us: Option<u64>,
    times: u64,
    throttled_us: u64,
}

impl ReadEnvironment {
    fn new(place: String) -> ReadEnvironment {
        let whole = Environment { place, ..Environment::default() };
        ReadEnvironment { whole, groups: BTreeMap::new(), changes: 0 }
    }

    fn lines(&mut self, mut from: impl BufRead) {
        let mut bytes = Vec::new();
        for number in 1_u64.. {
            bytes.clear();
            match (&mut from).take(LONGEST_LINE).read_until(b'\n', &mut bytes) {
                Ok(0) => return,
                Ok(_) => {}
                Err(e) => return self.unread(number, &e.to_string()),
            }
            if bytes.len() as u64 == LONGEST_LINE {
                self.unread(number, "the line is too long");
                if from.skip_until(b'\n').is_err() {
                    return;
                }
                continue;
            }
            if bytes.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            match serde_json::from_slice::<EnvironmentLine>(&bytes) {
                Ok(line) => self.line(number, line),
                Err(e) => self.unread(number, &e.to_string()),
            }
        }
    }

    fn unread(&mut self, number: u64, why: &str) {
        let place = &self.whole.place;
        self.whole.notices.add(Notice::EnvironmentUnread, 1, || format!("{place}:{number}: {why}"));
    }

    fn line(&mut self, number: u64, line: EnvironmentLine) {
        let is_later = self.whole.lines.last().is_none_or(|last| last.monotonic_ns < line.clocks.monotonic_ns);
        if !is_later {
            return self.unread(number, "it is no later than the line before");
        }
        if self.whole.lines.len() >= MOST_LINES || self.changes >= MOST_CHANGES {
            return self.unread(number, "there are too many lines or values");
        }
        let at = self.whole.lines.len() as u32;
        self.whole.lines.push(line.clocks);
        self.whole.host = self.whole.host.take().or(line.host);
        self.whole.recording = line.recording.or(self.whole.recording.take());
        for (path, values) in &line.groups {
            self.group(at, path, values);
        }
        for (cpu, values) in &line.cpus {
            if let (Ok(cpu), Some(steal)) = (cpu.parse(), count(values, STEAL_MS)) {
                self.changes += note(self.whole.steal.entry(cpu).or_default(), at, steal);
            }
        }
        self.threads(at, &line.processes, |whole| &mut whole.processes);
        self.threads(at, &line.threads, |whole| &mut whole.threads);
    }

    /// The number of a group, which is new where none has its path.
    fn number(&mut self, path: &str) -> &mut KnownGroup {
        let next = self.whole.groups.len() as u32;
        let groups = &mut self.whole.groups;
        let changes = &mut self.changes;
        self.groups.entry(path.to_owned()).or_insert_with(|| {
            // A long path counts as several.
            *changes += 1 + path.len() / 64;
            groups.push(ControlGroup { path: path.to_owned(), has_usual_weight: true, ..ControlGroup::default() });
            KnownGroup { number: next, quota_us: None, period_us: None, times: 0, throttled_us: 0 }
        })
    }

    fn group(&mut self, line: u32, path: &str, values: &SampledValues) {
        let known = self.number(path);
        known.quota_us = count(values, QUOTA_US).or(known.quota_us);
        // `max`: there is none, any more.
        if text(values, QUOTA_US).is_some() {
            known.quota_us = None;
        }
        known.period_us = count(values, PERIOD_US).or(known.period_us);
        known.times = count(values, NR_THROTTLED).unwrap_or(known.times);
        known.throttled_us = count(values, THROTTLED_US).unwrap_or(known.throttled_us);
        let known = *known;
        let ns = |us: u64| Ns::try_from(us.saturating_mul(1000)).unwrap_or(Ns::MAX);
        let quota = known
            .quota_us
            .zip(known.period_us)
            .map(|(quota, period)| CpuQuota { quota: ns(quota), period: ns(period) });
        let quota = quota.filter(|quota| quota.quota > 0 && quota.period > 0);
        let now = ThrottleCount { line, quota, times: known.times, time: ns(known.throttled_us) };
        let Some(group) = self.whole.groups.get_mut(known.number as usize) else { return };
        group.is_sampled = true;
        if count(values, WEIGHT).is_some_and(|weight| !USUAL_WEIGHTS.contains(&weight)) {
            group.has_usual_weight = false;
        }
        group.limits_disk |= text(values, DISK_LIMITS).is_some_and(|limits| limits != "max");
        let is_new = group.counts.last().is_none_or(|last| ThrottleCount { line, ..*last } != now);
        // Counters of a group that has none say nothing.
        let counts = values.contains_key(NR_THROTTLED) || !group.counts.is_empty() || quota.is_some();
        if is_new && counts {
            group.counts.push(now);
            self.changes += 1;
        }
    }

    fn threads(
        &mut self,
        line: u32,
        table: &SampledTable,
        which: impl Fn(&mut Environment) -> &mut BTreeMap<i32, ThreadSettings>,
    ) {
        for (id, values) in table {
            let Ok(id) = id.parse::<i32>() else { continue };
            let mut group = |name| text(values, name).map(|path| self.number(path).number);
            let (group, disk_group) = (group(CPU_GROUP), group(DISK_GROUP));
            let settings = which(&mut self.whole).entry(id).or_default();
            let mut changes = 1;
            if let Some(group) = group {
                changes += note(&mut settings.group, line, group);
            }
            if let Some(group) = disk_group {
                changes += note(&mut settings.disk_group, line, group);
            }
            if let Some(allowed) = text(values, CPUS_ALLOWED).and_then(cpus) {
                changes += allowed.len() + note(&mut settings.allowed, line, allowed);
            }
            if let Some(priority) = text(values, PRIORITY) {
                changes += note(&mut settings.is_usual, line, priority == "0 other");
            }
            if let Some(all) = text(values, SOCKETS) {
                let sockets = sockets(all);
                changes += sockets.as_ref().map_or(0, Vec::len) + note(&mut settings.sockets, line, sockets);
            }
            self.changes += changes;
        }
    }

    /// With the groups around each.
    fn finish(mut self) -> Environment {
        let around = |path: &str| {
            let (above, last) = path.rsplit_once('/')?;
            let is_top = above.is_empty() || above.ends_with(':');
            let above = if is_top { format!("{above}/") } else { above.to_owned() };
            self.groups.get(&above).filter(|_| !last.is_empty()).map(|known| known.number)
        };
        for group in &mut self.whole.groups {
            group.parent = around(&group.path);
            // The outermost group of version 2 has no limits. One that has is that of a container.
            group.is_outermost = match group.path.as_str() {
                "/" => self.groups.get("/").is_none_or(|known| known.period_us.is_none()),
                path => path.ends_with(":/"),
            };
        }
        self.whole
    }
}

fn count(values: &SampledValues, name: &str) -> Option<u64> {
    match values.get(name)? {
        SampledValue::Count(count) => Some(*count),
        SampledValue::Text(_) => None,
    }
}

fn text<'v>(values: &'v SampledValues, name: &str) -> Option<&'v str> {
    match values.get(name)? {
        SampledValue::Text(text) => Some(text),
        SampledValue::Count(_) => None,
    }
}

/// Add a value where it differs from the last one; how many were added.
fn note<T: PartialEq>(all: &mut Vec<ThreadSetting<T>>, line: u32, value: T) -> usize {
    if all.last().is_some_and(|last| last.value == value) {
        return 0;
    }
    all.push(ThreadSetting { line, value });
    1
}

/// The sockets of a process: `5 udp 127.0.0.53:53, 9 tcp [::1]:5432`; `None` where they were not read.
fn sockets(list: &str) -> Option<Vec<ConnectedSocket>> {
    let socket = |words: &str| {
        let mut words = words.split(' ');
        let (descriptor, protocol, peer) = (words.next()?, words.next()?, words.next()?);
        let protocol = match protocol {
            "tcp" => Protocol::Tcp,
            "udp" => Protocol::Udp,
            _ => return None,
        };
        let number = peer.parse::<SocketAddr>().ok()?.port();
        Some(ConnectedSocket { descriptor: descriptor.parse().ok()?, port: ServerPort { protocol, number } })
    };
    list.split(", ").filter(|words| !words.is_empty()).take(MOST_SOCKETS).map(socket).collect()
}

/// A list of CPUs as the kernel writes it: `0-3,8`.
fn cpus(list: &str) -> Option<Vec<(u32, u32)>> {
    let run = |word: &str| {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        Some((first.parse().ok()?, last.parse().ok()?)).filter(|(first, last)| first <= last)
    };
    let runs: Vec<(u32, u32)> = list.split(',').take(MOST_RUNS).map(run).collect::<Option<_>>()?;
    runs.is_sorted_by(|a, b| a.1 < b.0).then_some(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Environment {
        let mut read = ReadEnvironment::new("environment.jsonl".to_owned());
        read.lines(text.as_bytes());
        read.finish()
    }

    fn line(monotonic_ns: i64, rest: &str) -> String {
        format!(r#"{{"monotonic_ns":{monotonic_ns},"boottime_ns":{monotonic_ns},"realtime_ns":0{rest}}}"#) + "\n"
    }

    /// A line that is written on several.
    fn joined_line(monotonic_ns: i64, rest: &str) -> String {
        line(monotonic_ns, &rest.replace('\n', ""))
    }

    #[test]
    fn lines_add_to_each_other() {
        let first = joined_line(
            5,
            r#","whole":true,"host":"shop-1","future":[1],"groups":{"/a":{"weight":100},
            "/a/b":{"quota_us":20000,"period_us":100000,"nr_throttled":1,"throttled_us":80}},
            "cpus":{"1":{"steal_ms":4}},
            "processes":{"7":{"cpu_group":"/a/b","cpus_allowed":"0-1,4","priority":"0 other"}},
            "threads":{"8":{"cpus_allowed":"2"}}"#,
        );
        let second = line(9, r#","groups":{"/a/b":{"nr_throttled":3,"throttled_us":240}},"cpus":{"1":{"steal_ms":9}}"#);
        let third = line(12, r#","processes":{"7":{"cpu_group":"/a","priority":"5 batch"}}"#);
        let all = read(&[first, second, third].concat());
        assert!(all.notices.is_empty() && all.lines.len() == 3 && all.host.as_deref() == Some("shop-1"), "{all:?}");
        let at = |path: &str| all.groups.iter().position(|group| group.path == path).unwrap();
        let (outer, inner) = (at("/a"), at("/a/b"));
        assert_eq!(all.groups[inner].parent, Some(outer as u32));
        let quota = Some(CpuQuota { quota: 20_000_000, period: 100_000_000 });
        let count = |line, times, time| ThrottleCount { line, quota, times, time };
        assert_eq!(all.groups[inner].counts, [count(0, 1, 80_000), count(1, 3, 240_000)]);
        assert!(all.groups[outer].counts.is_empty() && all.groups[outer].has_usual_weight);
        assert!(all.groups[outer].is_sampled && !all.groups[outer].is_outermost);
        let group = |line| all.settings(7, 8, |of| &of.group).and_then(|known| ThreadSetting::at(known, line));
        assert_eq!(
            [group(0), group(1), group(2)],
            [Some(&(inner as u32)), Some(&(inner as u32)), Some(&(outer as u32))]
        );
        let allowed = |tid| all.settings(7, tid, |of| &of.allowed).map(|known| known[0].value.clone());
        assert_eq!((allowed(7), allowed(8)), (Some(vec![(0, 1), (4, 4)]), Some(vec![(2, 2)])));
        assert_eq!(all.processes[&7].is_usual.iter().map(|s| s.value).collect::<Vec<_>>(), [true, false]);
        assert_eq!(all.steal[&1].iter().map(|s| (s.line, s.value)).collect::<Vec<_>>(), [(0, 4), (1, 9)]);
    }

    #[test]
    fn lines_that_cannot_be_used_are_counted() {
        let text = [
            line(5, ""),
            "no json\n".to_owned(),
            line(5, ""),
            line(7, r#","groups":{"/a":{"nr_throttled":-1}}"#),
            line(8, r#","processes":{"x":{},"7":{"cpus_allowed":"4-2","cpu_group":5}}"#),
            "\n".to_owned(),
            r#"{"monotonic_ns":9"#.to_owned(),
        ];
        let all = read(&text.concat());
        assert_eq!(all.notices.count(Notice::EnvironmentUnread), 4, "{:?}", all.notices);
        assert_eq!(all.lines.len(), 2);
        assert_eq!(all.processes, BTreeMap::from([(7, ThreadSettings::default())]));
    }

    #[test]
    fn a_line_without_end_is_one_notice() {
        let mut text = vec![b'x'; LONGEST_LINE as usize * 2 + 7];
        text.extend(b"\n");
        text.extend(line(5, "").bytes());
        let mut all = ReadEnvironment::new(String::new());
        all.lines(&text[..]);
        assert_eq!((all.whole.notices.count(Notice::EnvironmentUnread), all.whole.lines.len()), (1, 1));
    }

    #[test]
    fn sockets_lead_to_ports() {
        let port = |protocol, number| ServerPort { protocol, number };
        let socket = |descriptor, port| ConnectedSocket { descriptor, port };
        let two = vec![socket(5, port(Protocol::Udp, 53)), socket(9, port(Protocol::Tcp, 5432))];
        assert_eq!(sockets("5 udp 127.0.0.53:53, 9 tcp [::1]:5432"), Some(two));
        assert_eq!(sockets(""), Some(Vec::new()));
        for wrong in ["unknown", "5 udp", "5 sctp 127.0.0.1:5", "x udp 127.0.0.1:5", "5 udp 127.0.0.1:99999"] {
            assert_eq!(sockets(wrong), None, "{wrong}");
        }
        let all = read(&[line(5, r#","processes":{"7":{"sockets":"5 udp 127.0.0.53:53"}}"#)].concat());
        assert_eq!(all.processes[&7].sockets.len(), 1);
    }

    #[test]
    fn cpus_are_runs_of_numbers() {
        assert_eq!(cpus("0-3,8,10-11"), Some(vec![(0, 3), (8, 8), (10, 11)]));
        for wrong in ["", "a", "3-1", "4,2", "0-", "0,,1"] {
            assert_eq!(cpus(wrong), None, "{wrong}");
        }
    }
}
