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
use super::translation::{DISK_STEPS, DiskStep, FieldValue};

/// The most fields of an event.
const MOST_FIELDS: usize = 32;
/// The kernel's letters of the states of threads, by bit (`TASK_STATE_TO_CHAR_STR`, since Linux 4.14).
const STATES: &[u8] = b"SDTtXZPI";
/// The bit of a thread that was preempted.
const PREEMPTED: i64 = 0x100;
/// The number of a device has its minor number in these bits.
const MINOR_BITS: u32 = 20;

/// A field as printed: its name, and its value.
pub(super) type Printed<'t> = (&'t [u8], FieldValue<'t>);

/// A thread of a context switch as printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SwitchedThread<'t> {
    pub name: &'t [u8],
    pub tid: i32,
    /// As the kernel counts it: 120 for a nice value of 0.
    pub priority: i64,
}

/// A context switch as printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PrintedSwitch<'t> {
    pub prev: SwitchedThread<'t>,
    /// The number of its state.
    pub state: i64,
    pub next: SwitchedThread<'t>,
}

impl<'t> PrintedSwitch<'t> {
    /// `None` for another form.
    pub fn read(text: &'t [u8]) -> Option<PrintedSwitch<'t>> {
        let is_arrow = |end: &usize| text.get(..*end).is_some_and(|to| to.ends_with(b" ==")) && is_space(text, end + 1);
        let end = memchr::memchr_iter(b'>', text).find(is_arrow)?;
        let (left, right) = (text.get(..end - 3)?, text.get(end + 2..)?);
        if let Some(name) = left.strip_prefix(b"prev_comm=") {
            let (before, state) = split_named(name, b" prev_state=")?;
            let (before, prev_priority) = split_named(before, b" prev_prio=")?;
            let (prev_name, prev) = split_named(before, b" prev_pid=")?;
            let (before, next_priority) = split_named(right.strip_prefix(b"next_comm=")?, b" next_prio=")?;
            let (next_name, next) = split_named(before, b" next_pid=")?;
            return Some(PrintedSwitch {
                prev: SwitchedThread {
                    name: prev_name,
                    tid: lines::id(prev)?,
                    priority: lines::signed(prev_priority)?,
                },
                state: state_number(state)?,
                next: SwitchedThread {
                    name: next_name,
                    tid: lines::id(next)?,
                    priority: lines::signed(next_priority)?,
                },
            });
        }
        let ((prev, state), (next, _)) = (old_thread(left)?, old_thread(right)?);
        Some(PrintedSwitch { prev, state: state_number(state)?, next })
    }
}

fn is_space(text: &[u8], at: usize) -> bool {
    text.get(at) == Some(&b' ')
}

/// What is before and after the last place of ` NAME=`: names of threads may hold anything.
fn split_named<'t>(text: &'t [u8], name: &[u8]) -> Option<(&'t [u8], &'t [u8])> {
    let begin = |equals: usize| text.get(..equals + 1).filter(|to| to.ends_with(name)).map(|to| to.len() - name.len());
    let begin = memchr::memrchr_iter(b'=', text).find_map(begin)?;
    Some((text.get(..begin)?, text.get(begin + name.len()..)?))
}

/// `NAME:TID [PRIORITY] STATE`: the thread, and what follows.
fn old_thread(text: &[u8]) -> Option<(SwitchedThread<'_>, &[u8])> {
    let priority = memchr::memmem::rfind(text, b" [")?;
    let thread = text.get(..priority)?;
    let colon = memchr::memrchr(b':', thread)?;
    let after = text.get(priority + 2..)?;
    let end = memchr::memchr(b']', after)?;
    let (tid, priority) = (lines::id(thread.get(colon + 1..)?)?, lines::signed(after.get(..end)?)?);
    Some((SwitchedThread { name: thread.get(..colon)?, tid, priority }, after.get(end + 1..)?.trim_ascii()))
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

/// How an event of another kind than a switch prints its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PrintedForm {
    /// `NR 16 (d, 2400, 0)`.
    RawEntry,
    /// `NR 16 = 0`.
    RawExit,
    /// Arguments of a system call, which have the names of its parameters: none is read.
    Entry,
    /// `0x10`.
    Exit,
    /// A thread is woken: `NAME:TID [PRIORITY] success=1 [CPU]` before Linux 4.0.
    Waking,
    /// A thread is created: its parent's fields have names as if they were its own.
    Fork,
    /// `NAME=VALUE NAME=VALUE`.
    Assigned,
}

impl PrintedForm {
    /// The form of an event by its name.
    pub fn of(event: &[u8]) -> PrintedForm {
        let begins = |with: &str| event.starts_with(with.as_bytes());
        match () {
            () if event == b"raw_syscalls:sys_exit" => PrintedForm::RawExit,
            () if begins("raw_syscalls:sys_") => PrintedForm::RawEntry,
            () if begins("syscalls:sys_exit") => PrintedForm::Exit,
            () if begins("syscalls:") => PrintedForm::Entry,
            () if begins("sched:sched_wak") => PrintedForm::Waking,
            () if event == b"sched:sched_process_fork" => PrintedForm::Fork,
            () => PrintedForm::Assigned,
        }
    }

    /// Add the fields that a text has in this form.
    pub fn read<'t>(self, text: &'t [u8], fields: &mut Vec<Printed<'t>>) {
        let number = |number: i64| FieldValue::Number(number);
        match self {
            PrintedForm::RawEntry | PrintedForm::RawExit => {
                let (call, rest) = word(text.strip_prefix(b"NR ").unwrap_or(text));
                let Some(call) = lines::signed(call) else { return };
                fields.push((b"id", number(call)));
                if self == PrintedForm::RawExit {
                    fields.push((b"ret", number(rest.strip_prefix(b"=").and_then(lines::signed).unwrap_or(0))));
                }
            }
            PrintedForm::Entry => {}
            PrintedForm::Exit => {
                let returned = text.split(|byte| *byte == b',').next().and_then(lines::signed);
                fields.push((b"ret", number(returned.unwrap_or(0))));
            }
            PrintedForm::Waking if !text.starts_with(b"comm=") => {
                let end = memchr::memmem::find(text, b" success=").unwrap_or(text.len());
                if let Some((SwitchedThread { name, tid, .. }, _)) = text.get(..end).and_then(old_thread) {
                    fields.extend([(&b"comm"[..], FieldValue::Text(name)), (&b"pid"[..], number(i64::from(tid)))]);
                }
            }
            PrintedForm::Waking | PrintedForm::Assigned => assigned(text, fields),
            PrintedForm::Fork => {
                assigned(text, fields);
                for (name, _) in fields {
                    match *name {
                        b"pid" => *name = b"parent_pid",
                        b"comm" => *name = b"parent_comm",
                        _ => {}
                    }
                }
            }
        }
    }
}

/// True for an event of a disk's requests.
pub(super) fn is_request(event: &[u8]) -> bool {
    DISK_STEPS.iter().any(|step| step.as_bytes() == event)
}

/// The request that an event of a disk prints: `DEVICE KIND [BYTES] (COMMAND) SECTOR + SECTORS [NAME]`.
pub(super) fn request<'t>(event: &[u8], text: &'t [u8]) -> Option<DiskStep<'t>> {
    let step = DISK_STEPS.iter().find(|step| step.as_bytes() == event)?;
    let (device, rest) = word(text);
    let comma = memchr::memchr(b',', device)?;
    let (major, minor) = (lines::number(device.get(..comma)?)?, lines::number(device.get(comma + 1..)?)?);
    let (kind, rest) = word(rest);
    let after = rest.get(memchr::memchr(b')', rest)? + 1..)?.trim_ascii_start();
    let (sector, after) = word(after);
    let (sectors, _) = word(after.strip_prefix(b"+")?.trim_ascii_start());
    let device = major.checked_shl(MINOR_BITS)? | minor;
    Some(DiskStep { step, device, sector: lines::number(sector)?, sectors: lines::number(sectors)?, kind })
}

/// `NAME=VALUE NAME=VALUE`.
fn assigned<'t>(text: &'t [u8], fields: &mut Vec<Printed<'t>>) {
    let mut open: Option<(&[u8], usize)> = None;
    for equals in memchr::memchr_iter(b'=', text) {
        let begin = text.get(..equals).unwrap_or(&[]).iter().rposition(|byte| !is_word(*byte)).map_or(0, |at| at + 1);
        let begins_word = begin == 0 || is_space(text, begin - 1);
        if begin == equals || !begins_word {
            continue;
        }
        if let Some((name, value)) = open {
            fields.push(field(name, text.get(value..begin).unwrap_or(&[])));
        }
        open = text.get(begin..equals).map(|name| (name, equals + 1));
        if fields.len() + 1 == MOST_FIELDS {
            break;
        }
    }
    fields.extend(open.map(|(name, value)| field(name, text.get(value..).unwrap_or(&[]))));
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// A field: a number, except where it is a name.
fn field<'t>(name: &'t [u8], value: &'t [u8]) -> Printed<'t> {
    let value = value.trim_ascii();
    let is_name = name.ends_with(b"comm") || name.ends_with(b"name");
    let number = if is_name { None } else { lines::signed(word(value).0) };
    (name, number.map_or(FieldValue::Text(value), FieldValue::Number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_read_in_both_forms() {
        let switch = |text: &'static str| PrintedSwitch::read(text.as_bytes());
        let prev = SwitchedThread { name: b"a b", tid: 5, priority: -1 };
        let expected =
            PrintedSwitch { prev, state: 1, next: SwitchedThread { name: b"swapper/0", tid: 0, priority: 120 } };
        let new = "prev_comm=a b prev_pid=5 prev_prio=-1 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120";
        assert_eq!(switch(new), Some(expected));
        assert_eq!(switch("a b:5 [-1] S ==> swapper/0:0 [120]"), Some(expected));
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
            let mut fields = Vec::new();
            PrintedForm::of(event.as_bytes()).read(text.as_bytes(), &mut fields);
            let value = |value: FieldValue<'_>| match value {
                FieldValue::Number(number) => number.to_string(),
                FieldValue::Text(text) => format!("{:?}", String::from_utf8_lossy(text)),
            };
            let named = |(name, of): &Printed<'_>| format!("{}={}", String::from_utf8_lossy(name), value(*of));
            fields.iter().map(named).collect::<Vec<_>>().join(" ")
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
        let read = |event: &str, text: &'static str| {
            request(event.as_bytes(), text.as_bytes()).map(|r| (r.device, r.sector, r.sectors))
        };
        let device = 254 << 20 | 1;
        assert_eq!(read("block:block_rq_issue", "254,1 WS 4096 () 1234 + 8 [a]"), Some((device, 1234, 8)));
        assert_eq!(read("block:block_rq_complete", "254,1 W (2a 00) 1234 + 8 [0]"), Some((device, 1234, 8)));
        assert_eq!(read("block:block_rq_issue", "254 WS"), None);
        assert_eq!(read("block:block_touch", "254,1 WS 4096 () 1234 + 8 [a]"), None);
    }
}
