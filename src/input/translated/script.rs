//! The text of `perf script`: samples and tracepoints with symbolised call chains.
//!
//! ```text
//! # hostname : web1                                              only with --header
//! server 812/815 [003]  2058.407332:    2000000 cpu-clock:ppp:
//!             1153 parse+0x1a (/usr/bin/server)                  a call chain, innermost first
//!             11dd main+0x18 (/usr/bin/server)
//!
//! server 815 [003]  2058.409338:     sched:sched_switch: prev_comm=server prev_pid=815 ...
//! ```
//! The file is mapped and cut into parts, each from the first line of an event to that of another; workers translate
//! the parts (`script_part.rs`), which are joined in their order. Records are sorted by time on each CPU, so files that
//! were put one after the other are merged. Samples of any counter are ticks of a class with the counter's name,
//! weighted by their `period`; a sample without a period counts for one of `samples`. Cost: linear
//! (`benches/decode.rs`); the records take a fifth of a text with call chains, a third of one without.

use super::about::About;
use super::error::TranslationError;
use super::script_line::ScriptLine;
use super::script_part::ScriptPart;
use super::translation::Translation;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::mapped::Mapped;
use crate::base::parallel::in_order;
use crate::base::text::copied;
use crate::input::tracepoint::RecorderClock;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Bytes of a part.
const PART: usize = 1 << 22;
/// Lines at the begin of a file among which the first events are.
const FIRST_LINES: usize = 400;
/// Members of perf's header, and those of the environment.
const HEADER: [(&str, &str); 3] =
    [("hostname", "hostname"), ("os release", "kernel_release"), ("arch", "architecture")];

/// True for the begin of a file: of its first lines that are no comment one is an event, and none before it is of
/// another text.
pub(super) fn is_one(begin: &[u8]) -> bool {
    let plain = |line: &&[u8]| !line.is_empty() && !line.starts_with(b"#");
    let mut lines = begin.split(|byte| *byte == b'\n').take(FIRST_LINES).filter(plain);
    let first = lines.find(|line| !line.starts_with(b"\t"));
    let Some(line) = first.and_then(ScriptLine::read) else { return false };
    // A line of a log may have a time too: perf prints the thread or the event.
    line.tid >= 0 || line.pid >= 0 || !line.event.is_empty() && line.name.len() <= 16
}

/// Read the events of the file at a path.
pub(super) fn read_file(
    path: &Path,
    translation: &mut Translation,
    ctx: &Ctx,
) -> Result<io::Result<Result<About, TranslationError>>, Cancelled> {
    match Mapped::open(path) {
        Ok(file) => read(file.bytes(), translation, ctx).map(Ok),
        Err(e) => Ok(Err(e)),
    }
}

/// Read the events of a text.
pub(super) fn read(
    text: &[u8],
    translation: &mut Translation,
    ctx: &Ctx,
) -> Result<Result<About, TranslationError>, Cancelled> {
    read_in_parts(text, PART, translation, ctx)
}

/// Read a text in parts of about `part` bytes.
fn read_in_parts(
    text: &[u8],
    part: usize,
    translation: &mut Translation,
    ctx: &Ctx,
) -> Result<Result<About, TranslationError>, Cancelled> {
    let parts: Vec<Range<usize>> = parts(text, part);
    let idle: Mutex<Vec<ScriptPart<'_>>> = Mutex::default();
    let lock = || idle.lock().unwrap_or_else(PoisonError::into_inner);
    let make = |part: usize| {
        let bytes = parts.get(part).and_then(|part| text.get(part.clone())).unwrap_or(&[]);
        let mut reader = lock().pop().unwrap_or_default();
        let translation = reader.read(bytes);
        lock().push(reader);
        translation
    };
    in_order(ctx, parts.len(), make, |_, part| translation.join(part))?;
    if !translation.has_switches() && !translation.has_samples() {
        let remedy = "record with `perf record -g`, or with `whyslow record`, and print it with `perf script`";
        return Ok(Err(TranslationError::NoSamples { remedy }));
    }
    let clock = RecorderClock { name: "perf".to_owned(), ..RecorderClock::default() };
    Ok(Ok(About { environment: environment(text), clock, spans: None }))
}

/// Parts of about `size` bytes, each but the first from the first line of an event on.
fn parts(text: &[u8], size: usize) -> Vec<Range<usize>> {
    let (mut parts, mut begin) = (Vec::new(), 0);
    while begin < text.len() {
        let mut end = begin.saturating_add(size).min(text.len());
        loop {
            let line = text.get(end..).and_then(|rest| memchr::memchr(b'\n', rest)).map(|at| end + at + 1);
            let Some(next) = line else {
                end = text.len();
                break;
            };
            end = next;
            let rest = text.get(end..).unwrap_or(&[]);
            let line = rest.get(..memchr::memchr(b'\n', rest).unwrap_or(rest.len())).unwrap_or(&[]);
            if !line.starts_with(b"\t") && ScriptLine::read(line).is_some() {
                break;
            }
        }
        parts.push(begin..end);
        begin = end;
    }
    parts
}

/// What perf's header says.
fn environment(text: &[u8]) -> Vec<(&'static str, String)> {
    let lines = text.split(|byte| *byte == b'\n').take(FIRST_LINES).map_while(|line| line.strip_prefix(b"# "));
    let pair = |line: &[u8]| {
        let colon = memchr::memmem::find(line, b" : ")?;
        let name = line.get(..colon)?.trim_ascii();
        let (_, known) = HEADER.iter().find(|(header, _)| header.as_bytes() == name)?;
        Some((*known, copied(line.get(colon + 3..)?.trim_ascii())))
    };
    lines.filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::notice::Notice;
    use crate::input::format::PLAIN;

    const TEXT: &str = "# ========
# hostname : web1
# os release : 6.1.0
# ========
#
a b 5/6 [001]     1.000000:    2000000 cpu-clock:ppp: 
\t    1153 parse+0x1a (/bin/app)
\t    11dd main+0x18 (/bin/app)

swapper     0 [000]     1.000500:     sched:sched_waking: comm=a b pid=6 prio=120 target_cpu=001
\tffffffff8177 try_to_wake_up+0x1 ([kernel.kallsyms])

a b 5/6 [001]     1.001000:     sched:sched_switch: prev_comm=a b prev_pid=6 prev_prio=120 prev_state=S ==> \
next_comm=swapper/1 next_pid=0 next_prio=120
\tffffffff8225 __schedule+0x1 ([kernel.kallsyms])
\t    11e0 wait+0x18 (/bin/app)
\t    11dd main+0x18 (/bin/app)

late 9 [001]     1.000100:    7 cycles:u:      1153 other+0x1 (/bin/app)
";

    /// The bytes of all CPUs, the functions, and the lines that could not be read.
    fn read_text(text: &str, part: usize, workers: usize) -> (Vec<Vec<u8>>, Vec<String>, Vec<u8>, u64) {
        let mut translation = Translation::new(String::new());
        read_in_parts(text.as_bytes(), part, &mut translation, &Ctx::new(workers)).unwrap().unwrap();
        let unread = translation.notices.count(Notice::LinesUnread);
        let storage = translation.seal(&PLAIN).storage;
        let frames = storage.frames.iter().map(|frame| frame.to_string()).collect();
        (storage.cpus.into_iter().map(|cpu| cpu.blocks.concat()).collect(), frames, storage.kernel_symbols, unread)
    }

    #[test]
    fn parts_of_any_size_and_any_number_of_workers_give_the_same_records() {
        let text = TEXT.repeat(20);
        let whole = read_text(&text, usize::MAX, 1);
        assert_eq!(whole.0.len(), 2);
        assert_eq!(whole.1, ["parse", "main", "wait", "other"].map(|name| format!("{name}\t/bin/app")));
        assert_eq!(whole.3, 0);
        for (part, workers) in [(1, 1), (1, 3), (100, 2), (1000, 3)] {
            assert!(parts(text.as_bytes(), part).len() > 3);
            assert!(read_text(&text, part, workers) == whole, "{part} {workers}");
        }
    }

    #[test]
    fn chains_known_as_a_whole_have_the_frames_of_their_lines() {
        // Between such ends of lines no chain is known as a whole.
        let text = TEXT.repeat(20);
        assert!(read_text(&text, PART, 1) == read_text(&text.replace('\n', "\r\n"), PART, 1));
        // A chain ends with a line that has no tab, whatever follows it, and at the end of the text.
        let event = "a 5 [000] 1.000000: 1 cycles: \n\t1 f+0x1 (/bin/app)\n";
        let four = read_text(&(event.to_owned() + "\n" + event + event + event), PART, 1).0.concat();
        assert_eq!(four.len(), 4 * read_text(event, PART, 1).0.concat().len());
        assert_eq!(four, read_text(&format!("{event}\n").repeat(4), PART, 1).0.concat());
    }

    #[test]
    fn names_of_threads_may_look_like_addresses() {
        let text = "  dd   5 [000]     1.000000:     250000 cycles: \n".repeat(3);
        let sizes = [&text, &text.replace("dd", "ls")].map(|text| read_text(text, PART, 1).0.concat().len());
        assert_eq!(sizes[0], sizes[1]);
    }

    #[test]
    fn lines_of_other_texts_are_counted() {
        let text = TEXT.to_owned() + "\nWarning: what is this\n";
        assert_eq!(read_text(&text, PART, 1).3, 1);
        assert_eq!(
            environment(TEXT.as_bytes()),
            [("hostname", "web1".to_owned()), ("kernel_release", "6.1.0".to_owned())]
        );
    }

    #[test]
    fn is_one_knows_the_begin_of_a_file() {
        assert!(
            is_one(TEXT.as_bytes())
                && is_one(b"work 1 1.000000: cycles:\n")
                && is_one(b"  w  1 [000] 1.000000: a:b: c=1\n")
        );
        for other in ["", "# tracer: nop\n", "\t1153 parse (a)\n", "hello 1.000000: world\n", "a;b 1\n", "{\"a\":1}"] {
            assert!(!is_one(other.as_bytes()), "{other:?}");
        }
    }
}
