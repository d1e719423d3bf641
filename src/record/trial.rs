//! A trial before the recording: how many events of each topic the machine has, and what recording them would cost.
//!
//! In: the topics, the chosen threads, a mounted tracefs. Out: events a second of each topic, on all CPUs and on the
//! busiest one, and the time that an event takes. Each topic has an instance with the smallest buffers, which keep the
//! last events and are never read: the kernel's own counters are the answer. A loop of this thread, timed without and
//! with a recorded system call, gives the time of an event on this machine ([`CallTimes`]). A shell removes the
//! instances where this program is killed meanwhile. Cost: [`TRIAL`], in which the machine pays for a full recording by
//! tracefs.

use super::RecordError;
use super::capabilities::Capabilities;
use super::leftovers::GROUP;
use super::processes::thread_ids;
use super::tracefs::{Instance, InstanceSetup, RecordedEvent};
use crate::advice::topic::{TOPICS, Topic};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long events are counted.
pub const TRIAL: Duration = Duration::from_secs(1);

/// KiB of a buffer that is not read.
const LEAST_BUFFER: u64 = 8;

/// System calls of a round of the loop, and its rounds, of which the fastest counts: others may have interrupted it.
const CALLS: u32 = 500;
const ROUNDS: u32 = 20;

/// The time of an event of perf without and with a call stack, in those of an event of a ring buffer of tracefs
/// (docs/MEASURED.md).
const OF_PERF: f64 = 3.0;
const WITH_STACK: f64 = 4.5;

/// Bytes of an event of perf without and with a call stack, about.
const PERF_BYTES: f64 = 90.0;
const STACK_BYTES: f64 = 250.0;

/// The events of some topic in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EventRate {
    /// On all CPUs.
    pub all: f64,
    /// On the CPU that has most of them.
    pub busiest: f64,
    /// Their bytes in ring buffers of tracefs.
    pub bytes: f64,
}

/// What a trial has counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trial {
    /// Of each topic, in the order of [`TOPICS`].
    rates: Vec<EventRate>,
    /// Of the chosen threads: system calls, and switches.
    chosen: EventRate,
    chosen_switches: EventRate,
    times: CallTimes,
    /// The part of the second for which the busiest CPU was busy.
    busy: f64,
}

/// What a recording would cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecordingCost {
    /// Events a second.
    pub events: f64,
    /// Bytes a second.
    pub bytes: f64,
    /// Bytes a second of the CPU that has most of the events.
    pub busiest_bytes: f64,
    /// The part of its time that the busiest CPU would take for them; 1 is all of it.
    pub share: f64,
}

impl std::ops::AddAssign for RecordingCost {
    fn add_assign(&mut self, other: RecordingCost) {
        self.events += other.events;
        self.bytes += other.bytes;
        self.busiest_bytes += other.busiest_bytes;
        self.share += other.share;
    }
}

impl Trial {
    /// Count for a second. `identity` distinguishes its instances from those of others; `None` without a tracefs.
    pub fn run(host: &Capabilities, pids: &[u32], identity: u32) -> Result<Option<Trial>, RecordError> {
        let Some(tracefs) = &host.tracefs else { return Ok(None) };
        let setup = |topic: &Topic, chosen: Option<Vec<u32>>| {
            let at = place(topic);
            let end = if chosen.is_some() { "_chosen" } else { "" };
            let events = topic.events.iter().filter(|event| host.has(event));
            InstanceSetup {
                name: format!("{GROUP}{identity}_trial_{at}{end}"),
                buffer: LEAST_BUFFER,
                events: events.map(|event| RecordedEvent { name: (*event).to_owned(), filter: None }).collect(),
                chosen,
                has_stacks: false,
            }
        };
        let prefix = tracefs.join("instances").join(format!("{GROUP}{identity}_trial_"));
        let _guard = Guard::start(&prefix).map_err(|e| RecordError::failed("sh", format!("cannot start: {e}")))?;
        let threads: Vec<u32> = thread_ids(pids).into_iter().collect();
        let of_all = TOPICS.iter().map(|topic| setup(topic, None));
        let of_chosen = TOPICS.iter().filter(|topic| topic.is_of_calls() || topic.has_stacks());
        let of_chosen = of_chosen.map(|topic| setup(topic, Some(threads.clone())));
        let instances: Vec<Instance> = of_all
            .chain(of_chosen)
            .filter(|setup| !setup.events.is_empty())
            .map(|setup| Instance::create(tracefs, setup))
            .collect::<Result<_, RecordError>>()?;
        let switch = |on: bool| instances.iter().try_for_each(|instance| instance.switch(on));
        let (begin, before) = (Instant::now(), CpuTicks::read(Path::new("/proc")));
        switch(true)?;
        std::thread::sleep(TRIAL);
        switch(false)?;
        let busy = CpuTicks::read(Path::new("/proc")).busiest_since(&before);
        let seconds = begin.elapsed().as_secs_f64();
        let mut trial = Trial { rates: vec![EventRate::default(); TOPICS.len()], busy, ..Trial::default() };
        for topic in &TOPICS {
            let of = |chosen: Option<Vec<u32>>| {
                let name = setup(topic, chosen).name;
                let instance = instances.iter().find(|instance| instance.name() == name);
                instance.map_or_else(EventRate::default, |instance| rate(&instance.stats(), seconds))
            };
            if let Some(rate) = trial.rates.get_mut(place(topic)) {
                *rate = of(None);
            }
            if topic.is_of_calls() {
                trial.chosen = of(Some(Vec::new()));
            } else if topic.has_stacks() {
                trial.chosen_switches = of(Some(Vec::new()));
            }
        }
        trial.times = CallTimes::measure(tracefs, identity)?;
        Ok(Some(trial))
    }

    /// The CPU time that the chosen threads would pay for their own events: 1 is all time of a CPU.
    pub fn paid_by_chosen(&self, by_perf: bool) -> f64 {
        let of_switch = if by_perf { WITH_STACK } else { 1.0 };
        (self.chosen.all + of_switch * self.chosen_switches.all) * self.times.recorded / 1e9
    }

    /// The part of the second for which the busiest CPU was busy.
    pub fn busy(&self) -> f64 {
        self.busy
    }

    /// What a topic would cost, by perf or by tracefs.
    pub fn of_topic(&self, topic: &Topic, by_perf: bool) -> RecordingCost {
        self.cost(self.rates.get(place(topic)).copied().unwrap_or_default(), topic, by_perf)
    }

    /// What the system calls of the chosen threads would cost. The kernel looks at those of all other threads too.
    pub fn of_chosen(&self, topic: &Topic, by_perf: bool) -> RecordingCost {
        let cost = self.cost(self.chosen, topic, by_perf);
        let all = self.rates.get(place(topic)).copied().unwrap_or_default();
        let passed = (all.busiest - self.chosen.busiest).max(0.0) * self.times.passed / 1e9;
        RecordingCost { share: cost.share + passed, ..cost }
    }

    fn cost(&self, rate: EventRate, topic: &Topic, by_perf: bool) -> RecordingCost {
        let (times, bytes) = match (by_perf, topic.has_stacks()) {
            (false, _) => (1.0, rate.bytes),
            (true, false) => (OF_PERF, rate.all * PERF_BYTES),
            (true, true) => (WITH_STACK, rate.all * STACK_BYTES),
        };
        let part = if rate.all > 0.0 { rate.busiest / rate.all } else { 0.0 };
        let share = rate.busiest * times * self.times.recorded / 1e9;
        RecordingCost { events: rate.all, bytes, busiest_bytes: bytes * part, share }
    }
}

/// A process that removes the instances of a trial when this program has ended before, whatever ended it.
struct Guard(Child);

/// Waits for the end of its input; `$0` is the beginning of the paths.
const REMOVAL: &str = r#"cat >/dev/null; for one in "$0"*; do [ ! -d "$one" ] || rmdir "$one"; done"#;

impl Guard {
    /// Of the instances whose paths begin so.
    fn start(prefix: &Path) -> io::Result<Guard> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(REMOVAL).arg(prefix).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Signals of the terminal do not reach it.
        command.process_group(0).spawn().map(Guard)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// The time of each CPU in ticks: all of it, and that in which it was idle.
struct CpuTicks(BTreeMap<String, (u64, u64)>);

impl CpuTicks {
    /// By a folder like `/proc`.
    fn read(proc: &Path) -> CpuTicks {
        let text = std::fs::read_to_string(proc.join("stat")).unwrap_or_default();
        let line = |line: &str| {
            // `cpu0 USER NICE SYSTEM IDLE IOWAIT ...`
            let (name, times) = line.split_once(' ')?;
            name.strip_prefix("cpu")?.parse::<u32>().ok()?;
            let times: Vec<u64> = times.split_whitespace().map_while(|time| time.parse().ok()).collect();
            Some((name.to_owned(), (times.iter().take(8).sum(), times.iter().skip(3).take(2).sum())))
        };
        CpuTicks(text.lines().filter_map(line).collect())
    }

    /// The part of the time since then for which the busiest CPU was busy.
    fn busiest_since(&self, before: &CpuTicks) -> f64 {
        let busy = |(name, (all, idle)): (&String, &(u64, u64))| {
            let (all_before, idle_before) = before.0.get(name)?;
            let (all, idle) = (all.saturating_sub(*all_before), idle.saturating_sub(*idle_before));
            (all > 0).then(|| 1.0 - idle as f64 / all as f64)
        };
        self.0.iter().filter_map(busy).fold(0.0, f64::max)
    }
}

/// The place of a topic in the list of all.
fn place(topic: &Topic) -> usize {
    TOPICS.iter().position(|other| other.question == topic.question).unwrap_or_default()
}

/// The events that the CPUs of an instance have counted: those in the buffer, and those that were overwritten.
fn rate(stats: &[String], seconds: f64) -> EventRate {
    let mut rate = EventRate::default();
    for cpu in stats {
        let number = |name: &str| {
            let line = cpu.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|text| text.trim().parse::<f64>().ok()).unwrap_or(0.0)
        };
        let kept = number("entries");
        let events = (kept + number("overrun")) / seconds;
        rate.all += events;
        rate.busiest = rate.busiest.max(events);
        if kept > 0.0 {
            rate.bytes += events * number("bytes") / kept;
        }
    }
    rate
}

/// What recording system calls takes on this machine, in nanoseconds for each of the two events of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct CallTimes {
    /// Where the thread was chosen: the event is in the ring buffer.
    recorded: f64,
    /// Where it was not: once the system calls of any thread are recorded, the kernel takes its slow way into and out
    /// of each system call.
    passed: f64,
}

impl CallTimes {
    /// What the calls of a loop of this thread take longer.
    fn measure(tracefs: &Path, identity: u32) -> Result<CallTimes, RecordError> {
        let this = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let setup = |name: &str, tid: u32| {
            let event = |name: &str| RecordedEvent { name: format!("raw_syscalls:{name}"), filter: None };
            InstanceSetup {
                name: format!("{GROUP}{identity}_trial_{name}"),
                buffer: LEAST_BUFFER,
                events: vec![event("sys_enter"), event("sys_exit")],
                chosen: Some(vec![tid]),
                has_stacks: false,
            }
        };
        let without = ns_of_call();
        // The first process makes few system calls.
        let passed = {
            let _of_another = Instance::create(tracefs, setup("passed", 1))?;
            ns_of_call()
        };
        let recorded = {
            let of_this = Instance::create(tracefs, setup("loop", this))?;
            of_this.switch(true)?;
            let ns = ns_of_call();
            of_this.switch(false)?;
            ns
        };
        let of_event = |ns: f64| (ns - without).max(0.0) / 2.0;
        Ok(CallTimes { recorded: of_event(recorded), passed: of_event(passed) })
    }
}

/// Nanoseconds that a short system call of this thread takes.
fn ns_of_call() -> f64 {
    let round = || {
        let begin = Instant::now();
        for _ in 0..CALLS {
            let _ = rustix::process::getppid();
        }
        begin.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
impl Trial {
    /// A trial on a busy machine in which each topic has these events, and an event takes 200 ns.
    pub fn of_rates(rate: impl Fn(&Topic) -> f64) -> Trial {
        let rate = |topic: &Topic| EventRate { all: rate(topic), busiest: rate(topic), bytes: 40.0 * rate(topic) };
        Trial {
            rates: TOPICS.iter().map(rate).collect(),
            times: CallTimes { recorded: 200.0, passed: 50.0 },
            busy: 1.0,
            ..Trial::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busiest_cpu_is_that_with_least_idle_time() {
        let proc = tempfile::tempdir().unwrap();
        let read = |cpu0: &str, cpu1: &str| {
            let text = format!("cpu  9 9 9 9 9\ncpu0 {cpu0} 0 0 0 0 0\ncpu1 {cpu1} 0 0 0 0 0\nintr 5\n");
            std::fs::write(proc.path().join("stat"), text).unwrap();
            CpuTicks::read(proc.path())
        };
        let before = read("10 0 10 100 0", "0 0 0 0 0");
        let busy = read("20 0 20 160 20", "30 20 10 40 0").busiest_since(&before);
        assert!((busy - 0.6).abs() < 1e-9, "{busy}");
    }

    #[test]
    fn rates_are_of_all_cpus_and_of_the_busiest() {
        let cpu = |kept: u32, overwritten: u32| {
            format!("CPU: 0\nentries: {kept}\noverrun: {overwritten}\ncommit overrun: 0\nbytes: {}\n", kept * 40)
        };
        let rate = rate(&[cpu(100, 900), cpu(0, 0), cpu(50, 0)], 0.5);
        assert_eq!(rate, EventRate { all: 2100.0, busiest: 2000.0, bytes: 84_000.0 });
    }

    #[test]
    fn perf_takes_longer_for_an_event_and_longest_with_a_stack() {
        let trial = Trial::of_rates(|_| 10_000.0);
        let shares = [(0, true), (1, true), (1, false)].map(|(at, perf)| trial.of_topic(&TOPICS[at], perf).share);
        assert!(shares[0] > shares[1] && shares[1] > shares[2], "{shares:?}");
        assert!((shares[2] - 0.002).abs() < 1e-9, "{shares:?}");
    }

    #[test]
    fn calls_of_others_take_longer_too() {
        let mut trial = Trial::of_rates(|_| 10_000.0);
        let calls = TOPICS.iter().find(|topic| topic.is_of_calls()).unwrap();
        let cost = trial.of_chosen(calls, false);
        assert_eq!((cost.events, cost.share), (0.0, 10_000.0 * 50.0 / 1e9));
        trial.chosen = EventRate { all: 6000.0, busiest: 4000.0, bytes: 60_000.0 };
        let cost = trial.of_chosen(calls, false);
        assert!((cost.share - (4000.0 * 200.0 + 6000.0 * 50.0) / 1e9).abs() < 1e-12, "{cost:?}");
        assert_eq!((cost.events, cost.bytes, cost.busiest_bytes), (6000.0, 60_000.0, 40_000.0));
    }
}
