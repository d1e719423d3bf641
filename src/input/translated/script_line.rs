//! The first line of an event in the text of `perf script`.
//!
//! ```text
//! COMM  TID | PID/TID  [CPU]  SECONDS:  PERIOD  EVENT:  REST
//! ```
//! perf prints the fields in this order, whichever `-F` chose, so the time in seconds, with six or nine decimals and a
//! colon after it, divides the line: before it are the name of the thread, which may hold spaces, its ids and the CPU;
//! after it the period, the event and what the event prints. All but the time may be missing. A single id is that of
//! the thread.

use super::lines::digits;
use super::translation::UNKNOWN_CPU;

/// The first line of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScriptLine<'t> {
    /// Empty where it was not printed.
    pub name: &'t [u8],
    /// Below 0: not printed.
    pub tid: i32,
    /// Below 0: not printed.
    pub pid: i32,
    /// [`UNKNOWN_CPU`] where it was not printed.
    pub cpu: u32,
    /// In ns.
    pub time: u64,
    pub period: Option<u64>,
    /// Without the colon; empty where it was not printed.
    pub event: &'t [u8],
    /// What follows the event, without the space around it.
    pub rest: &'t [u8],
}

impl<'t> ScriptLine<'t> {
    /// `None` for a line without a time.
    pub fn read(line: &'t [u8]) -> Option<ScriptLine<'t>> {
        let (before, time, after) = memchr::memchr_iter(b':', line).find_map(|colon| {
            let (before, after) = line.split_at_checked(colon)?;
            // The time ends the line where nothing else was asked for.
            let after = after.get(1..).filter(|rest| rest.first().is_none_or(|byte| *byte == b' '))?;
            let (before, time) = split_time(before)?;
            Some((before, time, after))
        })?;
        let (name, Place { tid, pid, cpu }) = place(before.trim_ascii());
        let after = after.trim_ascii();
        let (period, after) = match after.first().filter(|byte| byte.is_ascii_digit()).map(|_| word(after)) {
            Some((first, rest)) if first.iter().all(u8::is_ascii_digit) => (digits(first), rest),
            _ => (None, after),
        };
        let (event, rest) = match word(after) {
            (first, rest) if first.ends_with(b":") => (first.get(..first.len() - 1)?, rest),
            _ => (&b""[..], after),
        };
        Some(ScriptLine { name, tid, pid, cpu, time, period, event, rest })
    }
}

/// The first word, and what follows it.
#[inline]
pub(super) fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let end = memchr::memchr(b' ', text).unwrap_or(text.len());
    let (first, rest) = text.split_at(end);
    (first, rest.trim_ascii_start())
}

/// What is before the last word, and that word as seconds with six or nine decimals, in ns.
fn split_time(text: &[u8]) -> Option<(&[u8], u64)> {
    let point = |decimals: usize| text.len().checked_sub(decimals + 1).filter(|at| text.get(*at) == Some(&b'.'));
    let (point, unit) = point(6).map(|at| (at, 1_000)).or_else(|| point(9).map(|at| (at, 1)))?;
    let (before, seconds) = split_last(text.get(..point)?);
    let decimals = digits(text.get(point + 1..)?)? * unit;
    Some((before, digits(seconds)?.checked_mul(1_000_000_000)?.checked_add(decimals)?))
}

/// What is before the last word, with the space after it, and that word. Words are short.
fn split_last(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(text.iter().rposition(|byte| *byte == b' ').map_or(0, |space| space + 1))
}

/// Where an event happened.
struct Place {
    tid: i32,
    pid: i32,
    cpu: u32,
}

/// The name of the thread, its ids and the CPU, from what is before the time.
fn place(text: &[u8]) -> (&[u8], Place) {
    let mut place = Place { tid: -1, pid: -1, cpu: UNKNOWN_CPU };
    let (mut before, mut last) = last_word(text);
    // `-F +misc` prints letters for the mode after the CPU.
    if matches!(last.len(), 1..=4) && last.iter().all(|byte| b"KUHGgMESDF".contains(byte)) {
        let (other, cpu) = last_word(before);
        if cpu.ends_with(b"]") || ids(cpu).is_some() {
            (before, last) = (other, cpu);
        }
    }
    let mut name = text;
    if let Some(cpu) = last.strip_prefix(b"[").and_then(|cpu| digits(cpu.strip_suffix(b"]")?)) {
        place.cpu = u32::try_from(cpu).ok().filter(|cpu| *cpu < UNKNOWN_CPU).unwrap_or(u32::MAX);
        name = before;
        (before, last) = last_word(before);
    }
    if let Some((pid, tid)) = ids(last) {
        (place.pid, place.tid) = (pid, tid);
        name = before;
    }
    (name, place)
}

/// What is before the last word, and that word.
fn last_word(text: &[u8]) -> (&[u8], &[u8]) {
    let (before, word) = split_last(text);
    (before.trim_ascii_end(), word)
}

/// `TID` or `PID/TID`; -1 is a thread that perf does not know.
fn ids(text: &[u8]) -> Option<(i32, i32)> {
    let id = |text: &[u8]| match text {
        b"-1" => Some(-1),
        _ => i32::try_from(digits(text)?).ok(),
    };
    match text.iter().position(|byte| *byte == b'/') {
        Some(at) => Some((id(text.get(..at)?)?, id(text.get(at + 1..)?)?)),
        None => Some((-1, id(text)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<ScriptLine<'_>> {
        ScriptLine::read(line.as_bytes())
    }

    #[test]
    fn read_takes_the_fields_that_were_printed() {
        let whole = ScriptLine {
            name: b"my server: 2",
            tid: 15282,
            pid: 15281,
            cpu: 3,
            time: 2_058_407_332_456,
            period: Some(250_000),
            event: b"cpu-clock:ppp",
            rest: b"",
        };
        let line = "  my server: 2 15281/15282 [003]  2058.407332456:     250000 cpu-clock:ppp: ";
        assert_eq!(read(line), Some(whole));
        let (tid, time) = (15281, 2_058_407_332_000);
        let bare = ScriptLine { name: b"work", tid, pid: -1, cpu: UNKNOWN_CPU, time, period: None, ..whole };
        let line = "work 15281  2058.407332: cpu-clock:ppp:    55c9 parse+0x1a (/tmp/work)";
        assert_eq!(read(line), Some(ScriptLine { rest: b"55c9 parse+0x1a (/tmp/work)", ..bare }));
        assert_eq!(read("work 15281  2058.407332: "), Some(ScriptLine { event: b"", ..bare }));
        assert_eq!(read("15281 2058.407332:"), Some(ScriptLine { name: b"", event: b"", ..bare }));
        assert_eq!(read("work 2058.407332: cycles:"), Some(ScriptLine { tid: -1, event: b"cycles", ..bare }));
        let misc = "swapper     0 [001] KH 2058.407332:  sched:sched_waking: comm=a pid=5";
        let waking = ScriptLine { name: b"swapper", tid: 0, cpu: 1, event: b"sched:sched_waking", ..bare };
        assert_eq!(read(misc), Some(ScriptLine { rest: b"comm=a pid=5", ..waking }));
        assert_eq!(
            read("a b [001] 2058.407332: x:").map(|line| (line.name, line.tid, line.cpu)),
            Some((&b"a b"[..], -1, 1))
        );
        assert_eq!(read(":-1    -1 [000] 1.000000: x:").map(|line| line.tid), Some(-1));
    }

    #[test]
    fn read_refuses_lines_of_other_texts() {
        for line in [
            "",
            "\t    1153 parse+0x1a (/tmp/work)",
            "work 15281 cpu-clock:",
            "12:00:01.123456 read(3, \"\", 4) = 0 <0.000012>",
            "99999999999999999999.000000: x:",
            "1.00000: x:",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
