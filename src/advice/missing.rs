//! What a trace recorded, the questions that it therefore cannot answer, and the command that records the answers.
//!
//! In: for each trace its recorder and its events, by the kernel's names. Out: the topics of [`TOPICS`] of which an
//! event is missing, each with one line for a shell. The line records what the trace has and what it lacks, by the same
//! recorder where that can. Names of events are copied from the recording into the line only if they are plain words,
//! because a user may paste it. Traces of one host count together: LTTng writes the kernel and programs apart.

use super::archive_gaps;
use super::topic::{
    COUNTERS, FRAMELESS, KERNEL, MissingExtent, MissingTopic, OptionTopic, RecordingWay, STACKS_OF_SAMPLES,
    STACKS_OF_SWITCHES, TOPICS, Topic, is_lttng_event, lttng_name,
};
use crate::model::event_name::{ENVIRONMENT, ESSENTIAL, SYSTEM_CALLS, USER_SPACE, is_plain_name};
use crate::model::recorded::{Recorded, StackKind};
use crate::model::recorder::{NO_EVENT, NO_STACKS, Platform, TraceRecorder};
use std::collections::{BTreeMap, BTreeSet};

/// Records what answers all questions.
const RECORD_ALL: &str = "whyslow record --full --duration 10s";

/// Written where the woken thread will run; it does not always show the waker.
const WAKEUP: &str = "sched:sched_wakeup";

/// The questions that some traces cannot answer, host by host.
pub fn missing<'a>(traces: impl Iterator<Item = &'a Recorded>) -> Vec<MissingTopic> {
    let traces: Vec<&Recorded> = traces.collect();
    let named: BTreeSet<&str> =
        traces.iter().map(|trace| trace.host.as_str()).filter(|host| !host.is_empty()).collect();
    // A trace that names no host is of the only one that is named.
    let only = if named.len() == 1 { named.first().copied() } else { None };
    let mut hosts: BTreeMap<&str, Recorded> = BTreeMap::new();
    for trace in traces {
        let name = if trace.host.is_empty() { only.unwrap_or("unknown host") } else { &trace.host };
        let host = hosts.entry(name).or_default();
        // The trace with the switches is the kernel's; a recorder of programs alone can be another one.
        let is_kernel = trace.events.contains(ESSENTIAL) && !host.events.contains(ESSENTIAL);
        if host.events.is_empty() && host.stacks.is_empty() || is_kernel {
            host.recorder = trace.recorder;
        }
        host.events.extend(trace.events.iter().cloned());
        host.stacks.extend(&trace.stacks);
    }
    let several = hosts.len() > 1;
    let named = |host: &str| if several { host.to_owned() } else { String::new() };
    hosts.iter().flat_map(|(host, recorded)| recorded.missing(&named(host))).collect()
}

impl Recorded {
    /// True if the recorder has an event of this name, and does not record its contents in another way.
    fn applies(&self, event: &str) -> bool {
        self.recorder != TraceRecorder::Lttng || is_lttng_event(event) || SYSTEM_CALLS.contains(&event)
    }

    fn missing(&self, host: &str) -> Vec<MissingTopic> {
        if matches!(self.recorder, TraceRecorder::ScoreP | TraceRecorder::Eztrace) {
            return archive_gaps::of(self, host);
        }
        if let Some(platform) = self.recorder.platform() {
            return self.missing_on(platform, host);
        }
        let command = self.command();
        if !TOPICS.iter().flat_map(|topic| topic.events).any(|event| self.events.contains(*event)) {
            return vec![MissingTopic {
                host: host.to_owned(),
                question: KERNEL.question,
                extent: MissingExtent::Whole,
                lacks: vec![KERNEL.option.to_owned()],
                without: KERNEL.without,
                command,
                way: RecordingWay::Machine,
            }];
        }
        let topic = |topic: &Topic| {
            let lacks = || topic.events.iter().filter(|e| self.applies(e) && !self.events.contains(**e));
            let main = topic.events.first().is_some_and(|event| !self.events.contains(*event));
            let woken = topic.events.contains(&"sched:sched_waking") && self.events.contains(WAKEUP);
            lacks().next().map(|_| MissingTopic {
                host: host.to_owned(),
                question: topic.question,
                extent: if main && !woken { MissingExtent::Whole } else { MissingExtent::Part },
                lacks: self.words(lacks().copied()),
                without: topic.without,
                command: command.clone(),
                way: RecordingWay::Machine,
            })
        };
        let stacks = |topic: &OptionTopic, kind| {
            let command = match self.recorder {
                // It records stacks of programs with every event or with none.
                TraceRecorder::TraceCmd if !self.has_counters() => self.all().perf(),
                TraceRecorder::TraceCmd => format!("{RECORD_ALL} --with perf"),
                _ => command.clone(),
            };
            (!self.stacks.contains(&kind)).then(|| MissingTopic {
                host: host.to_owned(),
                question: topic.question,
                extent: MissingExtent::Whole,
                lacks: vec![topic.option.to_owned()],
                without: topic.without,
                command,
                way: RecordingWay::Machine,
            })
        };
        let of_stacks =
            [stacks(&STACKS_OF_SWITCHES, StackKind::UserAtSwitches), stacks(&STACKS_OF_SAMPLES, StackKind::Samples)];
        // Other recorders have no other way.
        let by_pointers = self.recorder == TraceRecorder::Perf && self.stacks.contains(&StackKind::ByFramePointer);
        let frameless = by_pointers.then(|| MissingTopic {
            host: host.to_owned(),
            question: FRAMELESS.question,
            extent: MissingExtent::Part,
            lacks: vec![FRAMELESS.option.to_owned()],
            without: FRAMELESS.without,
            command: if self.has_counters() {
                format!("{RECORD_ALL} --call-graph dwarf")
            } else {
                command.replace("call-graph=fp", "call-graph=dwarf")
            },
            way: RecordingWay::Machine,
        });
        let environment = (!self.events.contains(ENVIRONMENT)).then(|| MissingTopic {
            host: host.to_owned(),
            question: COUNTERS.question,
            extent: MissingExtent::Whole,
            lacks: vec![COUNTERS.option.to_owned()],
            without: COUNTERS.without,
            // The recorders themselves have no such option.
            command: "whyslow record --duration 10s".to_owned(),
            way: RecordingWay::Machine,
        });
        let of_stacks = of_stacks.into_iter().flatten();
        TOPICS.iter().filter_map(topic).chain(of_stacks).chain(frameless).chain(environment).collect()
    }

    /// What a recorder of another platform left out. Where its files have no event for a question, no line is given.
    fn missing_on(&self, platform: &Platform, host: &str) -> Vec<MissingTopic> {
        let missing = |question, extent, lacks: Vec<String>, without, command: &str| MissingTopic {
            host: host.to_owned(),
            question,
            extent,
            lacks,
            without,
            command: command.to_owned(),
            way: RecordingWay::Machine,
        };
        let topic = |topic: &Topic| {
            let possible = || platform.events.iter().filter(|known| topic.events.contains(&known.event));
            let lacks = || possible().filter(|known| !self.events.contains(known.event));
            if topic.question == platform.answered {
                return None;
            }
            if possible().next().is_none() {
                let lacks = vec![NO_EVENT.to_owned()];
                return Some(missing(topic.question, MissingExtent::Whole, lacks, topic.without, ""));
            }
            let words: Vec<String> = lacks().map(|known| known.word.to_owned()).collect();
            let extent = if words.len() == possible().count() { MissingExtent::Whole } else { MissingExtent::Part };
            let is_missing = !words.is_empty();
            is_missing.then(|| missing(topic.question, extent, words, topic.without, platform.command))
        };
        let stacks = |topic: OptionTopic| {
            missing(topic.question, MissingExtent::Whole, vec![NO_STACKS.to_owned()], topic.without, "")
        };
        let of_stacks = [stacks(STACKS_OF_SWITCHES), stacks(STACKS_OF_SAMPLES)];
        TOPICS.iter().filter_map(topic).chain(of_stacks).collect()
    }

    /// Events as the recorder names them.
    fn words(&self, events: impl Iterator<Item = &'static str>) -> Vec<String> {
        let word = |event: &'static str| match self.recorder {
            TraceRecorder::Lttng if SYSTEM_CALLS.contains(&event) => "--syscall --all".to_owned(),
            TraceRecorder::Lttng => lttng_name(event),
            _ => event.to_owned(),
        };
        let mut words: Vec<String> = events.map(word).collect();
        words.dedup();
        words
    }

    /// This recording with all events that answer a question.
    fn all(&self) -> Recorded {
        let mut all = self.clone();
        all.events.extend(TOPICS.iter().flat_map(|topic| topic.events).map(|event| (*event).to_owned()));
        all
    }

    /// True where counters are beside the trace: whyslow was on that machine, and records the rest in one command.
    fn has_counters(&self) -> bool {
        self.events.contains(ENVIRONMENT)
    }

    /// A line that records what it has and what it lacks.
    fn command(&self) -> String {
        match self.recorder {
            _ if self.has_counters() => RECORD_ALL.to_owned(),
            TraceRecorder::Lttng => self.all().lttng(),
            TraceRecorder::Perf => self.all().perf(),
            TraceRecorder::TraceCmd => self.all().trace_cmd(),
            _ => RECORD_ALL.to_owned(),
        }
    }

    /// Events that no topic has.
    fn others(&self) -> impl Iterator<Item = &str> {
        let is_of_topic = |event: &str| TOPICS.iter().any(|topic| topic.events.contains(&event));
        self.events
            .iter()
            .map(String::as_str)
            .filter(move |e| !is_of_topic(e) && ![USER_SPACE, ENVIRONMENT].contains(e) && is_plain_name(e))
    }

    /// For 10 s of the whole machine; as `record/perf.rs`.
    fn perf(&self) -> String {
        let mut line = "perf record -a -k mono -m 16M".to_owned();
        for event in TOPICS.iter().flat_map(|topic| topic.events).copied() {
            let form = if event == ESSENTIAL { "fp" } else { "no" };
            line += &format!(" -e {event}/call-graph={form}/");
            if SYSTEM_CALLS.contains(&event) {
                line += " --exclude-perf";
            }
        }
        // Events of perf are `SYSTEM:NAME`; those of a trace.dat may have no system.
        for event in self.others().filter(|event| event.contains(':')) {
            line += &format!(" -e {event}/call-graph=no/");
        }
        line + " -e cpu-clock/freq=250,call-graph=fp/ -- sleep 10"
    }

    /// The command of trace-cmd that records all topics.
    fn trace_cmd(&self) -> String {
        let mut line = "trace-cmd record -C mono -b 16384".to_owned();
        for event in TOPICS.iter().flat_map(|topic| topic.events).copied().chain(self.others()) {
            line += &format!(" -e {event}");
            if event == ESSENTIAL {
                line += " -R stacktrace";
            }
        }
        line + " sleep 10"
    }

    /// The commands of LTTng that record all topics. Stacks have a channel of their own, as in `record/lttng.rs`.
    fn lttng(&self) -> String {
        let topics = TOPICS.iter().flat_map(|topic| topic.events).filter(|e| is_lttng_event(e)).map(|e| lttng_name(e));
        let events: Vec<String> = topics.chain(self.others().map(str::to_owned)).collect();
        let kernel = "--kernel --channel=kernel";
        let mut steps = vec![
            "lttng create".to_owned(),
            "lttng enable-channel --kernel kernel".to_owned(),
            format!("lttng enable-event {kernel} {}", events.join(",")),
            format!("lttng enable-event {kernel} --syscall --all"),
            format!("lttng add-context {kernel} --type=tid --type=pid --type=procname"),
            "lttng enable-channel --kernel stacks".to_owned(),
            "lttng enable-event --kernel --channel=stacks sched_switch,timer_hrtimer_expire_entry".to_owned(),
            "lttng add-context --kernel --channel=stacks --type=tid --type=pid --type=callstack-user \
             --type=callstack-kernel"
                .to_owned(),
        ];
        if self.events.contains(USER_SPACE) {
            steps.push("lttng enable-event --userspace --all".to_owned());
            steps.push("lttng add-context --userspace --type=vtid --type=vpid --type=procname".to_owned());
        }
        steps.extend(["lttng start", "sleep 10", "lttng destroy"].map(str::to_owned));
        steps.join(" && ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(recorder: TraceRecorder, events: &[&str], stacks: &[StackKind]) -> Recorded {
        Recorded {
            host: String::new(),
            recorder,
            events: events.iter().map(|event| (*event).to_owned()).collect(),
            stacks: stacks.iter().copied().collect(),
        }
    }

    /// Of perf, as copies.
    const STACKS: [StackKind; 3] = [StackKind::UserAtSwitches, StackKind::KernelAtSwitches, StackKind::Samples];

    fn of(recorded: &Recorded) -> Vec<MissingTopic> {
        missing(std::iter::once(recorded))
    }

    fn everything() -> Vec<&'static str> {
        TOPICS.iter().flat_map(|topic| topic.events).copied().chain([ENVIRONMENT]).collect()
    }

    #[test]
    fn missing_names_events_in_the_words_of_the_recorder() {
        let without = |events: &[&str]| everything().into_iter().filter(|e| !events.contains(e)).collect::<Vec<_>>();
        for (recorder, lacks) in [
            (TraceRecorder::Perf, [vec!["raw_syscalls:sys_exit"], vec!["irq:softirq_raise"]]),
            (TraceRecorder::Lttng, [vec!["--syscall --all"], vec!["irq_softirq_raise"]]),
        ] {
            let some = without(&["raw_syscalls:sys_exit", "irq:softirq_raise"]);
            let found = of(&recorded(recorder, &some, &STACKS));
            assert_eq!(found.iter().map(|topic| topic.lacks.clone()).collect::<Vec<_>>(), lacks);
            assert!(found.iter().all(|topic| topic.extent == MissingExtent::Part), "{found:?}");
        }
        assert_eq!(of(&recorded(TraceRecorder::TraceCmd, &everything(), &STACKS)), []);
        // The waker is known in part.
        let woken: Vec<&str> = without(&["sched:sched_waking"]).into_iter().chain([WAKEUP]).collect();
        let found = of(&recorded(TraceRecorder::Perf, &woken, &STACKS));
        assert_eq!((found[0].question, found[0].extent, found.len()), ("who woke whom", MissingExtent::Part, 1));
    }

    #[test]
    fn stacks_by_frame_pointers_lack_callers_of_frameless_functions() {
        let found = of(&recorded(TraceRecorder::Perf, &everything(), &StackKind::ALL));
        let [topic] = &found[..] else { panic!("{found:?}") };
        assert_eq!((topic.question, topic.extent), (FRAMELESS.question, MissingExtent::Part));
        assert!(
            topic.lacks[0].contains("--call-graph dwarf") && topic.lacks[0].contains("frame pointers"),
            "{topic:?}"
        );
        let events: Vec<&str> = everything().into_iter().filter(|event| *event != ENVIRONMENT).collect();
        let found = of(&recorded(TraceRecorder::Perf, &events, &StackKind::ALL));
        let [frameless, _counters] = &found[..] else { panic!("{found:?}") };
        assert!(frameless.command.contains("sched:sched_switch/call-graph=dwarf/"), "{frameless:?}");
        assert!(!frameless.command.contains("call-graph=fp"), "{frameless:?}");
        assert_eq!(of(&recorded(TraceRecorder::Lttng, &everything(), &StackKind::ALL)), []);
    }

    #[test]
    fn command_records_what_there_is_and_what_is_missing() {
        let perf = recorded(TraceRecorder::Perf, &[ESSENTIAL, "probe_server:handle", "x;reboot", "-o"], &[]);
        let line = &of(&perf)[0].command;
        assert!(line.starts_with("perf record -a -k mono ") && line.ends_with(" -- sleep 10"), "{line}");
        for part in ["sched_switch/call-graph=fp/", "sched_waking/call-graph=no/", "probe_server:handle/"] {
            assert!(line.contains(part), "{part}: {line}");
        }
        assert!(!line.contains("reboot") && !line.contains(" -o"), "{line}");
        let ftrace = recorded(TraceRecorder::TraceCmd, &[ESSENTIAL, "task_numa"], &[]);
        let found = of(&ftrace);
        let line = &found[0].command;
        assert!(line.contains("-e sched:sched_switch -R stacktrace") && line.contains("-e task_numa"), "{line}");
        // Stacks of programs need another recorder.
        let stacks = found.iter().find(|topic| topic.question == STACKS_OF_SAMPLES.question);
        assert!(stacks.unwrap().command.starts_with("perf record "), "{found:?}");
        let lttng = recorded(TraceRecorder::Lttng, &[ESSENTIAL, USER_SPACE], &[]);
        let line = &of(&lttng)[0].command;
        assert!(line.contains("--type=callstack-user") && line.contains("--userspace --all"), "{line}");
        assert_eq!(of(&Recorded::default())[0].command, RECORD_ALL);
    }

    #[test]
    fn recording_of_whyslow_is_completed_by_whyslow() {
        let light = recorded(TraceRecorder::Perf, &[ESSENTIAL, ENVIRONMENT], &StackKind::ALL);
        let found = of(&light);
        let calls = found.iter().find(|topic| topic.question == "system calls").unwrap();
        assert_eq!(calls.command, RECORD_ALL);
        assert!(found.last().unwrap().command.ends_with(" --call-graph dwarf"), "{found:?}");
        let ring_buffers = recorded(TraceRecorder::TraceCmd, &[ESSENTIAL, ENVIRONMENT], &[]);
        assert!(of(&ring_buffers).last().unwrap().command.ends_with(" --with perf"));
    }

    #[test]
    fn traces_of_one_host_count_together() {
        let kernel = recorded(TraceRecorder::Lttng, &everything(), &STACKS);
        let programs = recorded(TraceRecorder::Lttng, &[USER_SPACE], &[]);
        assert_eq!(missing([&programs, &kernel].into_iter()), []);
        let kernel = Recorded { host: "a".to_owned(), ..kernel };
        let other = Recorded { host: "b".to_owned(), ..programs };
        let found = missing([&kernel, &other].into_iter());
        assert!(found.iter().all(|topic| topic.host == "b" && topic.question == KERNEL.question), "{found:?}");
        assert_eq!(missing([&kernel, &Recorded { host: String::new(), ..other }].into_iter()), []);
    }
}
