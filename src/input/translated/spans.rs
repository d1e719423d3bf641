//! Begins and ends of spans that programs recorded themselves, without a CPU, beside the kernel's events.
//!
//! In: the ends of spans in any order, each on a thread; the context switches of the same file, on the same clock. Out:
//! events like those of `trace_marker`, on the CPU where the thread ran at that time. All are kept until the file is
//! read, because a writer flushes its spans long after the kernel's events. A span of a thread that was never seen on a
//! CPU is counted as unused. Cost: one search for each end among the switches to its thread.

use super::translation::{EventPlace, FieldValue, NamedThread, Translation};
use foldhash::HashMap;

/// The begin or the end of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpanEnd {
    /// Nested on its thread.
    Begin(SpanName),
    End,
    /// Paired by name and number.
    TrackBegin(SpanName, i64),
    TrackEnd(SpanName, i64),
}

/// A name, kept once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpanName(u32);

/// An end at its time and thread.
#[derive(Clone, Copy, Debug)]
struct Timed {
    time: u64,
    tid: i32,
    pid: i32,
    end: SpanEnd,
}

/// The moment from which a thread ran on a CPU.
#[derive(Clone, Copy, Debug)]
struct SwitchIn {
    time: u64,
    cpu: u32,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Spans {
    names: Vec<Vec<u8>>,
    by_name: HashMap<Vec<u8>, SpanName>,
    all: Vec<Timed>,
    switches: HashMap<i32, Vec<SwitchIn>>,
}

impl Spans {
    /// The id of a name.
    pub fn name(&mut self, name: &[u8]) -> SpanName {
        if let Some(known) = self.by_name.get(name) {
            return *known;
        }
        let id = SpanName(self.names.len() as u32);
        self.names.push(name.to_vec());
        self.by_name.insert(name.to_vec(), id);
        id
    }

    /// A thread begins to run on a CPU.
    pub fn switched(&mut self, tid: i32, time: u64, cpu: u32) {
        self.switches.entry(tid).or_default().push(SwitchIn { time, cpu });
    }

    /// A span begins or ends.
    pub fn add(&mut self, time: u64, tid: i32, pid: i32, end: SpanEnd) {
        self.all.push(Timed { time, tid, pid, end });
    }

    /// Add the events of all spans.
    pub fn write(mut self, translation: &mut Translation) {
        for switches in self.switches.values_mut() {
            switches.sort_by_key(|switch| switch.time);
        }
        // Ends of one time keep their order.
        self.all.sort_by_key(|timed| timed.time);
        for Timed { time, tid, pid, end } in self.all {
            let of_thread = self.switches.get(&tid).map_or(&[][..], |all| all);
            let after = of_thread.partition_point(|switch| switch.time <= time);
            let Some(SwitchIn { cpu, .. }) = of_thread.get(after.saturating_sub(1)).copied() else {
                translation.unused(|| "spans of threads that no context switch names".to_owned());
                continue;
            };
            let at = EventPlace { time, cpu, thread: NamedThread { tid, pid, name: b"" } };
            let text = |name: SpanName| FieldValue::Text(self.names.get(name.0 as usize).map_or(&[][..], |name| name));
            let process = ("pid", FieldValue::Number(pid.into()));
            let cookie = |number| ("cookie", FieldValue::Number(number));
            match end {
                SpanEnd::Begin(name) => translation.event(at, "trace_marker:begin", &[process, ("name", text(name))]),
                SpanEnd::End => translation.event(at, "trace_marker:end", &[process]),
                SpanEnd::TrackBegin(name, number) => {
                    translation.event(at, "trace_marker:async_begin", &[process, ("name", text(name)), cookie(number)])
                }
                SpanEnd::TrackEnd(name, number) => {
                    translation.event(at, "trace_marker:async_end", &[process, ("name", text(name)), cookie(number)])
                }
            }
        }
    }
}
