//! What `record` writes beside a recording: the counters of the control groups, the settings of processes and threads,
//! and the time that was taken from CPUs, a line each second (four in the first one).

use super::{Action, Machine};
use whyslow::parts::base::time::Ns;
use whyslow::parts::model::environment::{
    CPU_GROUP, CPUS_ALLOWED, EnvironmentClocks, EnvironmentLine, NR_THROTTLED, PERIOD_US, PRIORITY, QUOTA_US, STEAL_MS,
    SampledTable, SampledValue, SampledValues, THROTTLED_US,
};

const SECOND: Ns = 1_000_000_000;
/// Lines in the first second.
const FIRST: u64 = 4;

impl Machine {
    /// Write a line, and plan the next one.
    pub(super) fn sample(&mut self, number: u64) {
        let line = self.line();
        self.samples.push(line);
        let next = if number < FIRST { SECOND / FIRST as Ns } else { SECOND };
        self.later(self.now + next, Action::Sample(number + 1));
    }

    /// The values of now, all of them.
    pub(super) fn line(&self) -> EnvironmentLine {
        let now = self.now;
        let clocks = EnvironmentClocks { monotonic_ns: now, boottime_ns: now, realtime_ns: now };
        let cpu = |(number, cpu): (usize, &super::Cpu)| {
            (number.to_string(), SampledValues::from([count(STEAL_MS, cpu.stolen / 1_000_000)]))
        };
        EnvironmentLine {
            clocks,
            whole: true,
            host: Some(super::recorder::HOST.to_owned()),
            cpus: self.cpus.iter().enumerate().map(cpu).collect(),
            groups: self.groups(),
            processes: self.settings(|m, thread| m.is_first(thread), |m, thread| m.threads[thread].task.pid),
            threads: self.settings(|m, thread| m.differs(thread), |m, thread| m.threads[thread].task.tid),
            ..EnvironmentLine::default()
        }
    }

    fn groups(&self) -> SampledTable {
        let limits = |number: Option<usize>| match number.map(|number| &self.bandwidths[number]) {
            Some(of) => SampledValues::from([
                count(QUOTA_US, of.quota / 1000),
                count(PERIOD_US, of.period / 1000),
                count(NR_THROTTLED, of.times as Ns),
                count(THROTTLED_US, of.time / 1000),
            ]),
            None => SampledValues::from([text(QUOTA_US, "max"), count(PERIOD_US, 100_000)]),
        };
        let processes = self.processes.iter().filter(|p| p.user);
        let mut groups: SampledTable = processes.map(|p| (format!("/{}", p.name), limits(p.bandwidth))).collect();
        groups.insert("/".to_owned(), SampledValues::new());
        groups
    }

    fn settings(&self, holds: impl Fn(&Machine, usize) -> bool, id: impl Fn(&Machine, usize) -> i32) -> SampledTable {
        let living = (0..self.threads.len()).filter(|t| self.threads[*t].state != super::State::Dead);
        let row = |thread: usize| {
            let t = &self.threads[thread];
            let cpus: Vec<String> = t.allowed.iter().map(usize::to_string).collect();
            let priority = ["0 fifo", "0 other", "19 other"][t.priority];
            let group = format!("/{}", self.processes[t.process.0].name);
            let values = [text(CPU_GROUP, &group), text(CPUS_ALLOWED, &cpus.join(",")), text(PRIORITY, priority)];
            (id(self, thread).to_string(), SampledValues::from(values))
        };
        living.filter(|thread| !self.threads[*thread].kernel && holds(self, *thread)).map(row).collect()
    }

    fn is_first(&self, thread: usize) -> bool {
        self.threads[thread].task.tid == self.threads[thread].task.pid
    }

    /// A thread has other settings than the first one of its process.
    fn differs(&self, thread: usize) -> bool {
        let t = &self.threads[thread];
        let first = self.threads.iter().find(|other| other.task.tid == t.task.pid);
        first.is_some_and(|first| first.allowed != t.allowed || first.priority != t.priority)
    }
}

fn count(name: &str, value: Ns) -> (String, SampledValue) {
    (name.to_owned(), SampledValue::Count(value as u64))
}

fn text(name: &str, value: &str) -> (String, SampledValue) {
    (name.to_owned(), SampledValue::Text(value.to_owned()))
}

/// The lines of the file: the first one whole, of the others what has changed.
pub(super) fn file(lines: &[EnvironmentLine]) -> String {
    let before = std::iter::once(None).chain(lines.iter().map(Some));
    let line = |(now, before): (&EnvironmentLine, Option<&EnvironmentLine>)| {
        let changed = before.map_or_else(|| now.clone(), |before| now.since(before));
        serde_json::to_string(&changed).unwrap() + "\n"
    };
    lines.iter().zip(before).map(line).collect()
}
