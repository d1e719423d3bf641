//! Records of threads in the text of `perf script --show-task-events`, and of what was lost.
//!
//! ```text
//! PERF_RECORD_COMM exec: NAME:PID/TID       PERF_RECORD_COMM: NAME:PID/TID
//! PERF_RECORD_FORK(PID:TID):(PARENT_PID:PARENT_TID)     PERF_RECORD_EXIT(PID:TID):(...)
//! PERF_RECORD_LOST lost EVENTS
//! ```
//! A record without a time describes a thread that was there before the recording.

use super::event_place::{EventPlace, NamedThread};
use super::lines;
use super::script_line::ScriptLine;
use super::thread_ids::id_of_name;
use super::translation::{FieldValue, Translation};

const COMM: &[u8] = b"PERF_RECORD_COMM";
const FORK: &[u8] = b"PERF_RECORD_FORK";
const EXIT: &[u8] = b"PERF_RECORD_EXIT";
const LOST: &[u8] = b"PERF_RECORD_LOST lost";

/// The text of a record: perf ends `PERF_RECORD_COMM:` with a colon, as it ends events.
fn text<'t>(line: &ScriptLine<'t>) -> Vec<u8> {
    match line.event {
        b"" => line.rest.to_vec(),
        event => [event, b": ", line.rest].concat(),
    }
}

/// True for a record that is read.
pub(super) fn is_task_record(line: &ScriptLine<'_>) -> bool {
    let text = text(line);
    [COMM, FORK, EXIT, LOST].iter().any(|begin| text.starts_with(begin))
}

/// Add a record; one of another form is counted.
pub(super) fn read(line: &ScriptLine<'_>, translation: &mut Translation) {
    if add(line, translation).is_none() {
        translation.unreadable(|| format!("a record at {} ns", line.time));
    }
}

fn add(line: &ScriptLine<'_>, translation: &mut Translation) -> Option<()> {
    let text = text(line);
    let number = |id: i32| FieldValue::Number(id.into());
    if let Some(name) = text.strip_prefix(COMM) {
        let is_exec = name.starts_with(b" exec");
        let named = name.get(memchr::memmem::find(name, b": ")? + 2..)?.trim_ascii();
        let colon = memchr::memrchr(b':', named)?;
        let (name, ids) = (named.get(..colon)?, named.get(colon + 1..)?);
        let slash = memchr::memchr(b'/', ids)?;
        let (pid, tid) = (lines::id(ids.get(..slash)?)?, lines::id(ids.get(slash + 1..)?)?);
        translation.know(line.time, NamedThread { tid, pid, name });
        if line.time > 0 && is_exec {
            let fields = [("tid", number(tid)), ("old_tid", number(tid)), ("comm", FieldValue::Text(name))];
            translation.event(place(line), "perf:comm_exec", &fields);
        }
        return Some(());
    }
    if let Some(ids) = text.strip_prefix(FORK) {
        let [pid, tid, _, parent] = four_ids(ids)?;
        translation.know(line.time, NamedThread { tid, pid, name: b"" });
        if line.time > 0 {
            let fields = [("ptid", number(parent)), ("tid", number(tid)), ("pid", number(pid))];
            translation.event(place(line), "perf:fork", &fields);
        }
        return Some(());
    }
    if let Some(ids) = text.strip_prefix(EXIT) {
        let [_, tid, ..] = four_ids(ids)?;
        translation.describes();
        if line.time > 0 {
            translation.event(place(line), "perf:exit", &[("tid", number(tid))]);
        }
        return Some(());
    }
    let events = lines::number(text.strip_prefix(LOST)?)?;
    translation.lost(line.cpu, line.time, Some(events));
    Some(())
}

/// `(1:2):(3:4)`.
fn four_ids(text: &[u8]) -> Option<[i32; 4]> {
    let mut ids = text.split(|byte| !byte.is_ascii_digit()).filter(|id| !id.is_empty()).map(lines::id);
    let mut next = || ids.next().flatten();
    Some([next()?, next()?, next()?, next()?])
}

/// The thread and the CPU of a line.
pub(super) fn place<'t>(line: &ScriptLine<'t>) -> EventPlace<'t> {
    // The kernel has one idle thread for each CPU; the text has their number in the name.
    let name = if line.tid == 0 { b"swapper" } else { line.name };
    let tid = if line.tid < 0 && !name.is_empty() { id_of_name(name) } else { line.tid };
    let thread = NamedThread { tid, pid: line.pid, name };
    EventPlace { time: line.time, cpu: line.cpu, thread }
}
