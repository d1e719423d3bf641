//! Events of Windows as `xperf -i FILE.etl -o FILE.csv -a dumper` prints them.
//!
//! ```text
//! BeginHeader
//!   CSwitch,  TimeStamp, New Process Name ( PID), New TID, ..., Old Process Name ( PID), Old TID, ..., OldState, ...
//! EndHeader
//!   CSwitch,     214810,   server.exe (14224),      5956, ...
//! ```
//! The header names the columns of each kind of event, so columns are found by their names; versions of the tool differ
//! in their number and order. Used are `CSwitch`, `ReadyThread`, `T-End`, and pairs of events of programs whose names
//! end in `/Start` and `/Stop`. Times are microseconds since the recording began. The dumper writes no CPU for
//! `ReadyThread`: it is that on which the readying thread runs.

use super::about::About;
use super::error::TranslationError;
use super::event_place::{EventPlace, NamedThread};
use super::lines::{self, TextLine, TextLines};
use super::translation::{EventUse, FieldValue, IN_INTERRUPT, LeavingState, Translation};
use crate::input::tracepoint::RecorderClock;
use foldhash::HashMap;
use std::collections::BTreeMap;
use std::io::{self, BufRead};

/// The first line.
pub(super) const BEGIN: &str = "BeginHeader";
const END: &[u8] = b"EndHeader";
/// Kinds of events that the header may name.
const MOST_KINDS: usize = 10_000;

pub(super) const NO_SWITCHES: &str =
    "record with `xperf -on PROC_THREAD+LOADER+CSWITCH+DISPATCHER`, or `wpr -start CPU`";

/// The endings of the names of two events that begin and end an execution.
const SPANS: [(&str, SpanSide); 4] = [
    ("/win:Start", SpanSide::Begin),
    ("/win:Stop", SpanSide::End),
    ("/Start", SpanSide::Begin),
    ("/Stop", SpanSide::End),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpanSide {
    Begin,
    End,
}

/// Where the values of an event of use stand in its line.
#[derive(Clone, Debug)]
enum EventColumns {
    Switch { time: usize, next: ThreadColumns, prev: ThreadColumns, state: usize, reason: Option<usize>, cpu: usize },
    Ready { time: usize, thread: ThreadColumns, woken: ThreadColumns, in_dpc: Option<usize>, cpu: Option<usize> },
    ThreadEnd { time: usize, thread: ThreadColumns },
    Span { time: usize, thread: ThreadColumns, cpu: Option<usize>, side: SpanSide, task: String },
}

/// The columns of a thread: `NAME (PID)` and thread id.
#[derive(Clone, Copy, Debug)]
struct ThreadColumns {
    process: usize,
    tid: usize,
}

/// The threads that run, by CPU.
pub(super) type Running = BTreeMap<u32, i32>;

/// The CPU on which a thread runs.
pub(super) fn cpu_of(running: &Running, tid: i32) -> Option<u32> {
    running.iter().find(|(_, runs)| **runs == tid).map(|(cpu, _)| *cpu)
}

/// Read the events of a file.
pub(super) fn read(
    from: &mut impl BufRead,
    translation: &mut Translation,
) -> io::Result<Result<About, TranslationError>> {
    let mut lines = TextLines::new(from);
    let mut kinds: HashMap<Vec<u8>, Option<EventColumns>> = HashMap::default();
    loop {
        let number = lines.number + 1;
        let line = match lines.read_next()? {
            Some(TextLine::Whole(line)) => line,
            Some(TextLine::TooLong) => {
                translation.unreadable_record(|| format!("line {number} is too long"));
                continue;
            }
            None => return Ok(Err(TranslationError::Header { line: number, expected: "`EndHeader` is missing" })),
        };
        if line.trim_ascii() == END {
            break;
        }
        let columns = lines::values(line);
        let Some(name) = columns.first().filter(|_| columns.len() > 1 && kinds.len() < MOST_KINDS) else { continue };
        let found = match EventColumns::find(name, &columns) {
            Ok(found) => found,
            Err(expected) => return Ok(Err(TranslationError::Header { line: number, expected })),
        };
        // Each kind of event is described once; the last description counts.
        kinds.insert(name.to_vec(), found);
    }
    let mut running = Running::new();
    while let Some((number, line)) = lines.next_record(translation)? {
        let values = lines::values(line);
        translation.begin_record();
        match values.first().map(|name| kinds.get(*name)) {
            Some(Some(Some(columns))) => match columns.add(&values, &mut running, translation) {
                Some(EventUse::Used) => {}
                Some(EventUse::Unknown) => {
                    translation.unused(|| "events before the first switch to their thread".to_owned());
                }
                None => translation.unreadable(|| format!("line {number}")),
            },
            _ => translation.unused(|| "events of other kinds".to_owned()),
        }
        translation.end_record();
    }
    if !translation.has_switches() {
        return Ok(Err(TranslationError::NoSwitches { remedy: NO_SWITCHES }));
    }
    let clock = RecorderClock { name: "qpc".to_owned(), ..RecorderClock::default() };
    Ok(Ok(About { environment: vec![("sysname", "Windows".to_owned())], clock, spans: None }))
}

impl EventColumns {
    /// The columns of an event; `None` where the event is of no use.
    fn find(name: &[u8], columns: &[&[u8]]) -> Result<Option<EventColumns>, &'static str> {
        // Spaces in the names of columns differ between versions.
        let place = |wanted: &str| {
            let same = |column: &&[u8]| column.iter().filter(|byte| **byte != b' ').eq(wanted.as_bytes());
            columns.iter().position(same)
        };
        let thread = |process: &str, tid: &str| Some(ThreadColumns { process: place(process)?, tid: place(tid)? });
        let time = place("TimeStamp");
        Ok(match name {
            b"CSwitch" => {
                let found = || {
                    Some(EventColumns::Switch {
                        time: time?,
                        next: thread("NewProcessName(PID)", "NewTID")?,
                        prev: thread("OldProcessName(PID)", "OldTID")?,
                        state: place("OldState")?,
                        reason: place("WaitReason"),
                        cpu: place("CPU")?,
                    })
                };
                Some(found().ok_or("CSwitch needs TimeStamp, new and old process name and TID, OldState and CPU")?)
            }
            b"ReadyThread" => {
                let found = || {
                    Some(EventColumns::Ready {
                        time: time?,
                        thread: thread("ProcessName(PID)", "ThreadID")?,
                        woken: thread("RdyProcessName(PID)", "RdyTID")?,
                        in_dpc: place("InDPC"),
                        cpu: place("CPU"),
                    })
                };
                Some(found().ok_or("ReadyThread needs TimeStamp, process name, ThreadID and those of Rdy")?)
            }
            b"T-End" => {
                (|| Some(EventColumns::ThreadEnd { time: time?, thread: thread("ProcessName(PID)", "ThreadID")? }))()
            }
            _ => {
                let name = lines::plain(name);
                let span = SPANS.iter().find_map(|(end, side)| Some((name.strip_suffix(end)?, *side)));
                span.and_then(|(task, side)| {
                    let thread = thread("ProcessName(PID)", "ThreadID")?;
                    Some(EventColumns::Span {
                        time: time?,
                        thread,
                        cpu: place("CPU"),
                        side,
                        task: format!("etw:{task}"),
                    })
                })
            }
        })
    }

    /// Add the event of a line; `None` where a value is missing or wrong. Before the first switch to a thread its CPU
    /// is not known.
    fn add(&self, values: &[&[u8]], running: &mut Running, translation: &mut Translation) -> Option<EventUse> {
        let value = |at: usize| values.get(at).copied();
        let thread = |at: &ThreadColumns| named_thread(value(at.process)?, value(at.tid)?);
        let cpu = |at: usize| u32::try_from(lines::number(value(at)?)?).ok();
        match self {
            EventColumns::Switch { time, next, prev, state, reason, cpu: at } => {
                let state = state_of(value(*state)?, reason.and_then(value).unwrap_or(b""))?;
                let (cpu, next) = (cpu(*at)?, thread(next)?);
                let at = EventPlace { time: nanoseconds(value(*time)?)?, cpu, thread: thread(prev)? };
                running.insert(cpu, next.tid);
                translation.switch(at, state, next);
            }
            EventColumns::Ready { time, thread: waker, woken, in_dpc, cpu: at } => {
                let waker = thread(waker)?;
                let Some(cpu) = at.and_then(cpu).or_else(|| cpu_of(running, waker.tid)) else {
                    return Some(EventUse::Unknown);
                };
                let at = EventPlace { time: nanoseconds(value(*time)?)?, cpu, thread: waker };
                let in_dpc =
                    in_dpc.and_then(value).is_some_and(|flag| !matches!(flag, b"" | b"0" | b"FALSE" | b"False"));
                translation.waking(at, thread(woken)?, None, if in_dpc { IN_INTERRUPT } else { 0 });
            }
            EventColumns::ThreadEnd { time, thread: ended } => {
                let thread = thread(ended)?;
                let Some(cpu) = cpu_of(running, thread.tid) else { return Some(EventUse::Unknown) };
                let at = EventPlace { time: nanoseconds(value(*time)?)?, cpu, thread };
                let tid = FieldValue::Number(thread.tid.into());
                translation.event(at, "sched:sched_process_exit", &[("pid", tid)]);
            }
            EventColumns::Span { time, thread: own, cpu: at, side, task } => {
                let thread = thread(own)?;
                let Some(cpu) = at.and_then(cpu).or_else(|| cpu_of(running, thread.tid)) else {
                    return Some(EventUse::Unknown);
                };
                let at = EventPlace { time: nanoseconds(value(*time)?)?, cpu, thread };
                match side {
                    SpanSide::Begin => translation.begin(at, task),
                    SpanSide::End => translation.end(at, task),
                }
            }
        }
        Some(EventUse::Used)
    }
}

/// Microseconds as nanoseconds.
fn nanoseconds(text: &[u8]) -> Option<u64> {
    lines::number(text)?.checked_mul(1000)
}

/// A thread of a process that is written `NAME (PID)`. The idle thread has id 0 on each CPU.
fn named_thread<'a>(process: &'a [u8], tid: &[u8]) -> Option<NamedThread<'a>> {
    let tid = lines::id(tid)?;
    if tid == 0 {
        return Some(NamedThread { tid, pid: 0, name: b"swapper" });
    }
    let open = memchr::memrchr(b'(', process);
    let pid = open.and_then(|open| process.get(open + 1..)?.strip_suffix(b")")).and_then(lines::id);
    let name = open.and_then(|open| process.get(..open)).unwrap_or(process).trim_ascii();
    Some(NamedThread { tid, pid: pid.unwrap_or(-1), name })
}

/// How the old thread left its CPU. Waits for a page are waits for the disk.
fn state_of(state: &[u8], reason: &[u8]) -> Option<LeavingState> {
    Some(match state {
        b"Ready" | b"Running" | b"Standby" | b"DeferredReady" => LeavingState::Runnable,
        b"Terminated" => LeavingState::Exited,
        b"Waiting" if matches!(reason, b"PageIn" | b"WrPageIn" | b"WrPageOut" | b"WrPhysicalFault") => {
            LeavingState::Disk
        }
        b"Waiting" if matches!(reason, b"Suspended" | b"WrSuspended") => LeavingState::Stopped,
        b"Waiting" | b"Transition" | b"Initialized" | b"GateWait" => LeavingState::Sleeping,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_thread_and_state_are_read_from_their_columns() {
        assert_eq!(
            named_thread(b"my app (2).exe (14224)", b"5956"),
            Some(NamedThread { tid: 5956, pid: 14224, name: b"my app (2).exe" })
        );
        assert_eq!(named_thread(b"Idle (   0)", b"0").map(|idle| (idle.tid, idle.pid)), Some((0, 0)));
        assert_eq!(state_of(b"Waiting", b"WrPageIn"), Some(LeavingState::Disk));
        assert_eq!((state_of(b"Ready", b"WrPreempted"), state_of(b"?", b"")), (Some(LeavingState::Runnable), None));
    }
}
