//! What the kernel's tracepoints print in the text of `perf script`, as the fields that they record.
//!
//! ```text
//! sched:sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b c next_pid=2 next_prio=120
//! sched:sched_switch: a:1 [120] S ==> b c:2 [120]                                          before Linux 4.0
//! raw_syscalls:sys_enter: NR 16 (d, 2400, 0)       raw_syscalls:sys_exit: NR 16 = 0
//! syscalls:sys_enter_read: fd: 0x3, buf: 0x7f00    syscalls:sys_exit_read: 0x10
//! block:block_rq_issue: 254,0 WS 4096 () 1234 + 8 [kworker/0:1]
//! any other: NAME=VALUE NAME=VALUE ...
//! ```
//! Values may hold spaces: each ends where the next name and `=` begin. The forms are those of the `TP_printk` of
//! Linux 3.2 to 6.18; what has no such form is an event without fields.

use super::lines;
use super::script_line::word;
use super::translation::{DiskStep, FieldValue};
use crate::base::text::copied;
use std::borrow::Cow;

/// The most fields of an event.
const MOST_FIELDS: usize = 32;
/// The kernel's letters of the states of threads, by bit (`TASK_STATE_TO_CHAR_STR`, since Linux 4.14).
const STATES: &[u8] = b"SDTtXZPI";
/// The bit of a thread that was preempted.
const PREEMPTED: i64 = 0x100;
/// The number of a device has its minor number in these bits.
const MINOR_BITS: u32 = 20;

/// A field as printed.
pub(super) type Printed<'t> = (Cow<'static, str>, FieldValue<'t>);

/// A context switch as printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PrintedSwitch<'t> {
    pub prev_name: &'t [u8],
    pub prev: i32,
    pub state: i64,
    pub next_name: &'t [u8],
    pub next: i32,
}

impl<'t> PrintedSwitch<'t> {
    /// `None` for another form.
    pub fn read(text: &'t [u8]) -> Option<PrintedSwitch<'t>> {
        let arrow = memchr::memmem::find(text, b" ==> ")?;
        let (left, right) = (text.get(..arrow)?, text.get(arrow + 5..)?);
        if let Some(name) = left.strip_prefix(b"prev_comm=") {
            let [prev_name, prev, _, state] = named_values(name, [b" prev_pid=", b" prev_prio=", b" prev_state="])?;
            let name = right.strip_prefix(b"next_comm=")?;
            let [next_name, next, ..] = named_values(name, [b" next_pid=", b" next_prio=", b""])?;
            let state = state_number(state)?;
            return Some(PrintedSwitch { prev_name, prev: lines::id(prev)?, state, next_name, next: lines::id(next)? });
        }
        let (prev_name, prev, state) = old_thread(left)?;
        let (next_name, next, _) = old_thread(right)?;
        Some(PrintedSwitch { prev_name, prev, state: state_number(state)?, next_name, next })
    }
}

/// The values before, between and behind some names; the first ends at the last place of its name.
fn named_values<'t>(text: &'t [u8], names: [&[u8]; 3]) -> Option<[&'t [u8]; 4]> {
    let mut values: [&[u8]; 4] = [text, b"", b"", b""];
    for (at, name) in names.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
        let value = *values.get(at)?;
        let end = memchr::memmem::rfind(value, name)?;
        *values.get_mut(at)? = value.get(..end)?;
        *values.get_mut(at + 1)? = value.get(end + name.len()..)?;
    }
    Some(values)
}

/// `NAME:TID [PRIORITY] STATE`: the name, the thread, and what follows.
fn old_thread(text: &[u8]) -> Option<(&[u8], i32, &[u8])> {
    let priority = memchr::memmem::rfind(text, b" [")?;
    let thread = text.get(..priority)?;
    let colon = memchr::memrchr(b':', thread)?;
    let behind = text.get(priority + 2..)?;
    let state = behind.get(memchr::memchr(b']', behind)? + 1..)?.trim_ascii();
    Some((thread.get(..colon)?, lines::id(thread.get(colon + 1..)?)?, state))
}

/// The number of `S`, `D|W`, `R+` ...
fn state_number(text: &[u8]) -> Option<i64> {
    let mut state = 0;
    for byte in text.trim_ascii() {
        match STATES.iter().position(|letter| letter == byte) {
            Some(bit) => state |= 1 << bit,
            None if matches!(byte, b'R' | b'|') => {}
            None if *byte == b'+' => state |= PREEMPTED,
            // Letters of older kernels for how a sleeper may be woken.
            None if byte.is_ascii_alphabetic() => {}
            None => return None,
        }
    }
    (!text.trim_ascii().is_empty()).then_some(state)
}

/// The fields of an event of another kind than a switch.
pub(super) fn fields<'t>(event: &str, text: &'t [u8]) -> Vec<Printed<'t>> {
    let number = |number: i64| FieldValue::Number(number);
    if let Some(side) = event.strip_prefix("raw_syscalls:sys_") {
        let (call, rest) = word(text.strip_prefix(b"NR ").unwrap_or(text));
        let Some(call) = lines::signed(call) else { return Vec::new() };
        let ret = rest.strip_prefix(b"=").and_then(lines::signed).unwrap_or(0);
        return if side == "exit" {
            vec![("id".into(), number(call)), ("ret".into(), number(ret))]
        } else {
            vec![("id".into(), number(call))]
        };
    }
    if event.starts_with("syscalls:sys_exit") {
        return vec![(
            "ret".into(),
            number(text.split(|byte| *byte == b',').next().and_then(lines::signed).unwrap_or(0)),
        )];
    }
    if event.starts_with("syscalls:") {
        return Vec::new();
    }
    if event.starts_with("sched:sched_wak") && !text.starts_with(b"comm=") {
        // `NAME:TID [PRIORITY] success=1 [CPU]`, before Linux 4.0.
        let end = memchr::memmem::find(text, b" success=").unwrap_or(text.len());
        let thread = text.get(..end).and_then(old_thread);
        let of = |(name, tid, _)| vec![("comm".into(), FieldValue::Text(name)), ("pid".into(), number(i64::from(tid)))];
        return thread.map_or(Vec::new(), of);
    }
    let mut fields = assigned(text);
    for (name, _) in &mut fields {
        match (event, &**name) {
            ("sched:sched_process_fork", "pid") => *name = "parent_pid".into(),
            ("sched:sched_process_fork", "comm") => *name = "parent_comm".into(),
            _ => {}
        }
    }
    fields
}

/// The request that an event of a disk prints: `DEVICE KIND [BYTES] (COMMAND) SECTOR + SECTORS [NAME]`.
pub(super) fn request<'t>(event: &str, text: &'t [u8]) -> Option<DiskStep<'t>> {
    let step = super::translation::DISK_STEPS.iter().find(|step| **step == event)?;
    let (device, rest) = word(text);
    let comma = memchr::memchr(b',', device)?;
    let (major, minor) = (lines::number(device.get(..comma)?)?, lines::number(device.get(comma + 1..)?)?);
    let (kind, rest) = word(rest);
    let behind = rest.get(memchr::memchr(b')', rest)? + 1..)?.trim_ascii_start();
    let (sector, behind) = word(behind);
    let (sectors, _) = word(behind.strip_prefix(b"+")?.trim_ascii_start());
    let device = major.checked_shl(MINOR_BITS)? | minor;
    Some(DiskStep { step, device, sector: lines::number(sector)?, sectors: lines::number(sectors)?, kind })
}

/// `NAME=VALUE NAME=VALUE`.
fn assigned(text: &[u8]) -> Vec<Printed<'_>> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let mut names: Vec<(usize, usize)> = Vec::new();
    for equals in memchr::memchr_iter(b'=', text) {
        let before = text.get(..equals).unwrap_or(&[]);
        let length = before.iter().rev().take_while(|byte| is_word(byte)).count();
        let begin = equals - length;
        let begins_word = begin == 0 || text.get(begin - 1) == Some(&b' ');
        if length > 0 && begins_word && names.len() < MOST_FIELDS {
            names.push((begin, equals));
        }
    }
    let mut fields = Vec::with_capacity(names.len());
    for (at, (begin, equals)) in names.iter().enumerate() {
        let end = names.get(at + 1).map_or(text.len(), |(next, _)| *next);
        let name = copied(text.get(*begin..*equals).unwrap_or(&[]));
        let value = text.get(equals + 1..end).unwrap_or(&[]).trim_ascii();
        let is_name = name.ends_with("comm") || name.ends_with("name");
        let number = if is_name { None } else { lines::signed(word(value).0) };
        fields.push((name.into(), number.map_or(FieldValue::Text(value), FieldValue::Number)));
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_read_in_both_forms() {
        let switch = |text: &'static str| PrintedSwitch::read(text.as_bytes());
        let expected = PrintedSwitch { prev_name: b"a b", prev: 5, state: 1, next_name: b"swapper/0", next: 0 };
        let new =
            "prev_comm=a b prev_pid=5 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120";
        assert_eq!(switch(new), Some(expected));
        assert_eq!(switch("a b:5 [120] S ==> swapper/0:0 [120]"), Some(expected));
        let state = |letters: &str| {
            let text = new.replace("=S ", &format!("={letters} "));
            PrintedSwitch::read(text.as_bytes()).map(|switch| switch.state)
        };
        assert_eq!([state("R"), state("R+"), state("D|W"), state("X")], [0, 0x100, 2, 0x10].map(Some));
        assert_eq!(switch("prev_comm=a prev_pid=5"), None);
        assert_eq!(switch("a ==> b"), None);
    }

    #[test]
    fn fields_are_those_that_the_kernel_records() {
        let printed = |event: &str, text: &'static str| {
            let value = |value: FieldValue<'_>| match value {
                FieldValue::Number(number) => number.to_string(),
                FieldValue::Text(text) => format!("{:?}", String::from_utf8_lossy(text)),
            };
            let named = |(name, of): &Printed<'_>| format!("{name}={}", value(*of));
            fields(event, text.as_bytes()).iter().map(named).collect::<Vec<_>>().join(" ")
        };
        let text = "comm=my server pid=18 prio=0 target_cpu=003";
        assert_eq!(printed("sched:sched_waking", text), "comm=\"my server\" pid=18 prio=0 target_cpu=3");
        assert_eq!(printed("sched:sched_wakeup", "my:server:18 [120] success=1 [003]"), "comm=\"my:server\" pid=18");
        assert_eq!(printed("raw_syscalls:sys_enter", "NR 16 (d, 2400, 0)"), "id=16");
        assert_eq!(printed("raw_syscalls:sys_exit", "NR 16 = -11"), "id=16 ret=-11");
        assert_eq!(printed("syscalls:sys_exit_read", "0xfffffffffffffff5"), "ret=-11");
        assert_eq!(printed("syscalls:sys_enter_read", "fd: 0x3, buf: 0x7f"), "");
        let fork = "comm=sh pid=1 child_comm=sh child_pid=2";
        assert_eq!(
            printed("sched:sched_process_fork", fork),
            "parent_comm=\"sh\" parent_pid=1 child_comm=\"sh\" child_pid=2"
        );
        assert_eq!(printed("irq:softirq_entry", "vec=1 [action=TIMER]"), "vec=1");
    }

    #[test]
    fn requests_of_disks_are_read() {
        let read = |event, text: &'static str| request(event, text.as_bytes()).map(|r| (r.device, r.sector, r.sectors));
        let device = 254 << 20 | 1;
        assert_eq!(read("block:block_rq_issue", "254,1 WS 4096 () 1234 + 8 [a]"), Some((device, 1234, 8)));
        assert_eq!(read("block:block_rq_complete", "254,1 W (2a 00) 1234 + 8 [0]"), Some((device, 1234, 8)));
        assert_eq!(read("block:block_rq_issue", "254 WS"), None);
        assert_eq!(read("block:block_touch", "254,1 WS 4096 () 1234 + 8 [a]"), None);
    }
}
