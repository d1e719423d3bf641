//! The output of a DTrace script, in the grammar of docs/OTHER-PLATFORMS.md: one event a line, fields between tabs.
//!
//! ```text
//! whyslow-dtrace  1  os=FreeBSD  release=14.1  host=web1  wall=NS  time=NS
//! TIME  CPU  switch  TID  PID  NAME  STATE  NEXT_TID  NEXT_PID  NEXT_NAME
//! TIME  CPU  wakeup  TID  PID  NAME  WOKEN_TID  WOKEN_PID  WOKEN_NAME
//! TIME  CPU  entry | return  TID  PID  NAME  CALL  [RESULT]
//! TIME  CPU  begin | end  TID  PID  NAME  TASK
//! TIME  CPU  issue | complete  TID  PID  NAME  DEVICE  SECTOR  BYTES  KIND
//! TIME  CPU  exit  TID  PID  NAME
//! TIME  CPU  lost  EVENTS
//! ```
//! DTrace prints the buffer of one CPU after that of another, so times ascend for each CPU only. Lines of other
//! kinds are counted.

use super::about::About;
use super::error::TranslationError;
use super::event_place::{EventPlace, NamedThread};
use super::lines::{self, TextLine, TextLines};
use super::thread_ids::UniqueThreadIds;
use super::translation::{COMPLETE, DiskStep, EventUse, FieldValue, LeavingState, SECTOR, Translation};
use crate::base::text::copied;
use crate::input::tracepoint::RecorderClock;
use std::io::{self, BufRead};

/// The begin of the first line.
pub(super) const BEGIN: &str = "whyslow-dtrace";

/// Read the events of a file.
pub(super) fn read(
    from: &mut impl BufRead,
    translation: &mut Translation,
) -> io::Result<Result<About, TranslationError>> {
    let mut lines = TextLines::new(from);
    let about = loop {
        let number = lines.number + 1;
        let expected = "the first line is `whyslow-dtrace`, a tab and the version, 1";
        match lines.read_next()? {
            Some(TextLine::Whole(line)) if line.trim_ascii().is_empty() => {}
            Some(TextLine::Whole(line)) => match header(line) {
                Some(about) => break about,
                None => return Ok(Err(TranslationError::Header { line: number, expected })),
            },
            Some(TextLine::TooLong) | None => {
                return Ok(Err(TranslationError::Header { line: number, expected }));
            }
        }
    };
    let mut ids = UniqueThreadIds::default();
    while let Some((number, line)) = lines.next_record(translation)? {
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b'\t').collect();
        translation.begin_record();
        match event(&fields, &mut ids, translation) {
            Some(EventUse::Used) => {}
            Some(EventUse::Unknown) => translation.unused(|| "lines of another kind".to_owned()),
            None => translation.unreadable(|| format!("line {number}")),
        }
        translation.end_record();
    }
    if !translation.has_switches() {
        let remedy = "record `sched:::off-cpu` as in docs/OTHER-PLATFORMS.md";
        return Ok(Err(TranslationError::NoSwitches { remedy }));
    }
    Ok(Ok(about))
}

/// The parts of the first line that are known.
fn header(line: &[u8]) -> Option<About> {
    let mut fields = line.trim_ascii_start().split(|byte| *byte == b'\t');
    if fields.next()? != BEGIN.as_bytes() || fields.next()? != b"1" {
        return None;
    }
    let mut about =
        About { clock: RecorderClock { name: "mono".to_owned(), ..RecorderClock::default() }, ..About::default() };
    let (mut wall, mut time) = (None, None);
    for field in fields {
        let Some(at) = memchr::memchr(b'=', field) else { continue };
        let (key, value) = (field.get(..at)?, field.get(at + 1..)?);
        let text = || copied(value);
        match key {
            b"os" => about.environment.push(("sysname", text())),
            b"release" => about.environment.push(("kernel_release", text())),
            b"host" => about.environment.push(("hostname", text())),
            b"wall" => wall = lines::number(value),
            b"time" => time = lines::number(value),
            _ => {}
        }
    }
    if let (Some(wall), Some(time)) = (wall, time) {
        about.clock.base = i128::from(wall) - i128::from(time);
    }
    Some(about)
}

/// Add the event of a line; `None` where a field is missing or is not what it should be.
fn event(fields: &[&[u8]], ids: &mut UniqueThreadIds, translation: &mut Translation) -> Option<EventUse> {
    let [time, cpu, line, rest @ ..] = fields else { return None };
    let (time, cpu) = (lines::number(time)?, u32::try_from(lines::number(cpu)?).ok()?);
    if *line == b"lost" {
        translation.lost(cpu, time, Some(lines::number(rest.first()?)?));
        return Some(EventUse::Used);
    }
    let [tid, pid, name, rest @ ..] = rest else { return None };
    let at = EventPlace { time, cpu, thread: thread(tid, pid, name, ids)? };
    match (*line, rest) {
        (b"switch", [state, tid, pid, name, ..]) => {
            let state = match *state {
                b"run" => LeavingState::Runnable,
                b"sleep" => LeavingState::Sleeping,
                b"disk" => LeavingState::Disk,
                b"stop" => LeavingState::Stopped,
                b"exit" => LeavingState::Exited,
                _ => return None,
            };
            translation.switch(at, state, thread(tid, pid, name, ids)?);
        }
        (b"wakeup", [tid, pid, name, ..]) => translation.waking(at, thread(tid, pid, name, ids)?, None, 0),
        (b"entry", [call, ..]) => translation.enter_call(at, &lines::plain(call)),
        (b"return", [call, result, ..]) => {
            translation.leave_call(at, &lines::plain(call), lines::signed(result)?);
        }
        (b"issue" | b"complete", [device, sector, bytes, kind, ..]) => {
            let step = if *line == b"issue" { "block:block_rq_issue" } else { COMPLETE };
            let (device, sector) = (lines::number(device)?, lines::number(sector)?);
            let sectors = lines::number(bytes)?.div_ceil(SECTOR);
            translation.disk(at, DiskStep { step, device, sector, sectors, kind });
        }
        (b"begin", [task, ..]) => translation.begin(at, &format!("dtrace:{}", lines::plain(task))),
        (b"end", [task, ..]) => translation.end(at, &format!("dtrace:{}", lines::plain(task))),
        (b"exit", _) => {
            let tid = FieldValue::Number(at.thread.tid.into());
            translation.event(at, "sched:sched_process_exit", &[("pid", tid)]);
        }
        (b"switch" | b"wakeup" | b"entry" | b"return" | b"issue" | b"complete" | b"begin" | b"end", _) => return None,
        _ => return Some(EventUse::Unknown),
    }
    Some(EventUse::Used)
}

/// A thread. The idle task has id 0, or the name that FreeBSD gives it.
fn thread<'a>(tid: &[u8], pid: &[u8], name: &'a [u8], ids: &mut UniqueThreadIds) -> Option<NamedThread<'a>> {
    let (tid, pid) = (lines::id(tid)?, lines::id(pid)?);
    if tid == 0 || name == b"idle" {
        return Some(NamedThread { tid: 0, pid: 0, name: b"swapper" });
    }
    Some(NamedThread { tid: ids.id(pid, tid), pid, name })
}
