//! Events of Windows as `tracerpt FILE.etl -of CSV -o FILE.csv` prints them.
//!
//! ```text
//! Event Name, Type, Event ID, Version, Channel, Level, Opcode, Task, Keyword, PID, TID, Processor Number, ...,
//!     Clock-Time, Kernel(ms), User(ms), User Data
//! Thread, CSwitch, 0, 2, ..., 0xFFFFFFFF, 0xFFFFFFFF, 1, ..., 130476864670000000, 0, 0, 0x0000120C, 0x00000000, ...
//! ```
//! The first line names the columns; from `User Data` on stand the values of the event in the order of its class in
//! Windows' documentation (`CSwitch`, `ReadyThread`, `Thread_TypeGroup1`, `Process_TypeGroup1`). Used are `Thread`
//! with `CSwitch`, `ReadyThread`, `Start`, `DCStart` and `End`; `Process` with `Start` and `DCStart`, which give
//! threads their processes and names; and `Start` and `Stop` of programs' own events, which begin and end an execution.
//! `Clock-Time` counts units of 100 ns from 1601.

use super::about::About;
use super::error::TranslationError;
use super::event_place::{EventPlace, NamedThread};
use super::lines::{self, TextLine, TextLines};
use super::translation::{FieldValue, IN_INTERRUPT, LeavingState, Translation};
use super::xperf::{NO_SWITCHES, Running};
use crate::input::tracepoint::RecorderClock;
use foldhash::HashMap;
use std::io::{self, BufRead};

/// The begin of the first line.
pub(super) const BEGIN: &str = "Event Name,";

/// Units of 100 ns from 1601 to 1970.
const TO_1970: u64 = 116_444_736_000_000_000;

/// Values of `OldThreadState` (class `CSwitch`).
const READY: [u64; 4] = [1, 2, 3, 7];
const TERMINATED: u64 = 4;
/// Values of `OldThreadWaitReason`: `PageIn`, `WrPageIn`, `WrPageOut`, `WrPhysicalFault`; `Suspended`, `WrSuspended`.
const PAGES: [u64; 4] = [2, 9, 19, 39];
const SUSPENDED: [u64; 2] = [5, 12];

/// Events of the kernel's own that are called `Start`.
const OF_KERNEL: [&[u8]; 4] = [b"Thread", b"Process", b"Image", b"EventTrace"];

/// Where the values stand that all lines have.
struct CsvColumns {
    kind: usize,
    pid: usize,
    tid: usize,
    cpu: usize,
    time: usize,
    data: usize,
}

/// Processes and names that are known so far.
#[derive(Default)]
struct KnownProcesses {
    processes: HashMap<i32, Vec<u8>>,
    threads: HashMap<i32, i32>,
}

impl KnownProcesses {
    fn thread(&self, tid: i32) -> NamedThread<'_> {
        if tid == 0 {
            return NamedThread { tid, pid: 0, name: b"swapper" };
        }
        let pid = self.threads.get(&tid).copied();
        let name = pid.and_then(|pid| self.processes.get(&pid)).map_or(&b""[..], |name| name);
        NamedThread { tid, pid: pid.unwrap_or(-1), name }
    }
}

/// Read the events of a file.
pub(super) fn read(
    from: &mut impl BufRead,
    translation: &mut Translation,
) -> io::Result<Result<About, TranslationError>> {
    let mut lines = TextLines::new(from);
    let columns = loop {
        let Some(TextLine::Whole(line)) = lines.read_next()? else { break None };
        if !line.trim_ascii().is_empty() {
            break CsvColumns::find(&lines::values(line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)));
        }
    };
    let expected = "the columns Type, PID, TID, Processor Number, Clock-Time and User Data";
    let Some(columns) = columns else {
        return Ok(Err(TranslationError::Header { line: lines.number, expected }));
    };
    let (mut names, mut running) = (KnownProcesses::default(), Running::new());
    while let Some((number, line)) = lines.next_record(translation)? {
        translation.begin_record();
        match event(&columns, &lines::values(line), &mut names, &mut running, translation) {
            Some(true) => {}
            Some(false) => translation.unused(|| "events of other kinds".to_owned()),
            None => translation.unreadable(|| format!("line {number}")),
        }
        translation.end_record();
    }
    if !translation.has_switches() {
        return Ok(Err(TranslationError::NoSwitches { remedy: NO_SWITCHES }));
    }
    let clock = RecorderClock { name: "system".to_owned(), ..RecorderClock::default() };
    Ok(Ok(About { environment: vec![("sysname", "Windows".to_owned())], clock, spans: None }))
}

impl CsvColumns {
    fn find(names: &[&[u8]]) -> Option<CsvColumns> {
        let place = |wanted: &str| names.iter().position(|name| *name == wanted.as_bytes());
        Some(CsvColumns {
            kind: place("Type")?,
            pid: place("PID")?,
            tid: place("TID")?,
            cpu: place("Processor Number")?,
            time: place("Clock-Time")?,
            data: place("User Data")?,
        })
    }
}

/// Add the event of a line: true if it is of use; `None` where a value is missing or wrong.
fn event(
    columns: &CsvColumns,
    values: &[&[u8]],
    names: &mut KnownProcesses,
    running: &mut Running,
    translation: &mut Translation,
) -> Option<bool> {
    let value = |at: usize| values.get(at).copied();
    let data = |at: usize| value(columns.data + at);
    let cpu = u32::try_from(lines::number(value(columns.cpu)?)?).ok()?;
    let time = lines::number(value(columns.time)?)?.checked_sub(TO_1970)?.checked_mul(100)?;
    let tid_of = |at: usize| data(at).and_then(lines::id);
    match (*values.first()?, value(columns.kind)?) {
        (b"Thread", b"CSwitch") => {
            let (next, prev) = (tid_of(0)?, tid_of(1)?);
            let state = state_of(lines::number(data(8)?)?, lines::number(data(6)?)?);
            running.insert(cpu, next);
            let at = EventPlace { time, cpu, thread: names.thread(prev) };
            translation.switch(at, state, names.thread(next));
        }
        (b"Thread", b"ReadyThread") => {
            // Where the header has no thread, it is that which runs there.
            let own = value(columns.tid).and_then(lines::id).or_else(|| running.get(&cpu).copied())?;
            let flags = if data(3).and_then(lines::number).unwrap_or(0) & 1 == 1 { IN_INTERRUPT } else { 0 };
            let at = EventPlace { time, cpu, thread: names.thread(own) };
            translation.waking(at, names.thread(tid_of(0)?), None, flags);
        }
        (b"Thread", b"Start" | b"DCStart") => {
            let (pid, tid) = (tid_of(0)?, tid_of(1)?);
            names.threads.insert(tid, pid);
            translation.know(time, names.thread(tid));
        }
        (b"Thread", b"End") => {
            let tid = FieldValue::Number(tid_of(1)?.into());
            let own = value(columns.tid).and_then(lines::id).or_else(|| running.get(&cpu).copied())?;
            let at = EventPlace { time, cpu, thread: names.thread(own) };
            translation.event(at, "sched:sched_process_exit", &[("pid", tid)]);
        }
        (b"Process", b"Start" | b"DCStart") => {
            // The size of the values before the name differs between versions of Windows.
            let name = values.get(columns.data + 2..)?.iter().find(|text| text.len() > 4 && text.ends_with(b".exe"));
            let pid = tid_of(1)?;
            if let Some(name) = name.filter(|_| pid > 0) {
                names.processes.insert(pid, name.to_vec());
            }
            translation.describes();
        }
        (name, b"Start" | b"win:Start" | b"Stop" | b"win:Stop") if !OF_KERNEL.contains(&name) => {
            let at = EventPlace { time, cpu, thread: names.thread(value(columns.tid).and_then(lines::id)?) };
            let task = format!("etw:{}", lines::plain(name));
            match value(columns.kind)?.ends_with(b"Start") {
                true => translation.begin(at, &task),
                false => translation.end(at, &task),
            }
        }
        _ => return Some(false),
    }
    // A thread is of the process that the header of its own events has.
    if let (Some(pid), Some(tid)) = (value(columns.pid).and_then(lines::id), value(columns.tid).and_then(lines::id)) {
        names.threads.entry(tid).or_insert(pid);
    }
    Some(true)
}

/// How the old thread left its CPU.
fn state_of(state: u64, reason: u64) -> LeavingState {
    match state {
        _ if READY.contains(&state) => LeavingState::Runnable,
        TERMINATED => LeavingState::Exited,
        _ if PAGES.contains(&reason) => LeavingState::Disk,
        _ if SUSPENDED.contains(&reason) => LeavingState::Stopped,
        _ => LeavingState::Sleeping,
    }
}
