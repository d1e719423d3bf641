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
//! the parts, which are joined in their order. Records are sorted by time on each CPU, so files that were put one
//! behind the other are merged. Samples of any counter are ticks of a class with the counter's name, weighted by their
//! `period`; a sample without a period counts for one of `samples`. Cost: linear, about two nanoseconds a byte on one
//! worker; the records take about a sixth of the text.

use super::frames::Frame;
use super::script_event::{self, PrintedSwitch};
use super::script_frames::ScriptFrames;
use super::script_line::ScriptLine;
use super::script_records::{self, is_task_record};
use super::thread_ids::id_of_name;
use super::translation::{EventPlace, FieldValue, NamedThread, SAMPLES, StackWords, Translation, UNKNOWN_CPU};
use super::{About, TranslatedFormat, TranslationError};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::parallel::in_order;
use crate::base::text::copied;
use crate::input::tracepoint::{ClassSchema, RecorderClock};
use std::fmt::Write;
use std::ops::Range;

/// Bytes of a part.
const PART: usize = 1 << 20;
/// Frames of a call chain that are kept.
const MOST_FRAMES: usize = 4096;
/// Lines at the begin of a file among which the first events are.
const FIRST_LINES: usize = 400;
/// Letters of what may follow the name of a counter behind a colon.
const MODIFIERS: &[u8] = b"ukhGHpPSDIWeb";
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

/// Read the events of a file.
pub(super) fn read(
    text: &[u8],
    translation: &mut Translation,
    ctx: &Ctx,
) -> Result<Result<About, TranslationError>, Cancelled> {
    read_in_parts(text, PART, translation, ctx)
}

/// The same with parts of about `part` bytes.
fn read_in_parts(
    text: &[u8],
    part: usize,
    translation: &mut Translation,
    ctx: &Ctx,
) -> Result<Result<About, TranslationError>, Cancelled> {
    let parts: Vec<Range<usize>> = parts(text, part);
    let make = |part: usize| {
        let bytes = parts.get(part).and_then(|part| text.get(part.clone())).unwrap_or(&[]);
        let mut script = ScriptPart::default();
        script.read(bytes);
        script.translation
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

/// A part of the file.
struct ScriptPart<'t> {
    translation: Translation,
    frames: ScriptFrames<'t>,
    /// The event whose call chain is read.
    open: Option<ScriptLine<'t>>,
    kernel: Vec<u64>,
    user: Vec<u64>,
    /// The key of a class.
    key: String,
}

impl Default for ScriptPart<'_> {
    fn default() -> Self {
        ScriptPart {
            translation: Translation::new(TranslatedFormat::Script, String::new()),
            frames: ScriptFrames::default(),
            open: None,
            kernel: Vec::new(),
            user: Vec::new(),
            key: String::new(),
        }
    }
}

impl<'t> ScriptPart<'t> {
    fn read(&mut self, text: &'t [u8]) {
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\n', text).chain([text.len()]) {
            let line = text.get(begin..end).unwrap_or(&[]);
            begin = end + 1;
            self.line(line.strip_suffix(b"\r").unwrap_or(line));
        }
        self.close();
    }

    fn line(&mut self, line: &'t [u8]) {
        let plain = line.trim_ascii();
        if plain.is_empty() {
            return self.close();
        }
        // A chain whose tabs became spaces is known by its event before it.
        let is_indented = line.starts_with(b"\t") || (line.starts_with(b" ") && self.open.is_some());
        if is_indented && (self.frame(plain) || line.starts_with(b"\t")) {
            return;
        }
        match ScriptLine::read(line) {
            Some(event) => {
                self.close();
                self.open = Some(event);
            }
            None if plain.starts_with(b"#") => {}
            None => self.translation.unreadable(|| format!("`{}`", copied(plain.get(..60).unwrap_or(plain)))),
        }
    }

    /// Add a frame to the open event; false for a line that is none. Lines of sources are passed over.
    fn frame(&mut self, line: &'t [u8]) -> bool {
        let Some(frame) = self.frames.frame(line, &mut self.translation.frames) else { return false };
        let stack = match frame {
            Frame::User(_) => &mut self.user,
            Frame::Kernel(_) => &mut self.kernel,
        };
        let word = frame.word(stack.len());
        if self.open.is_some() && stack.len() < MOST_FRAMES {
            stack.push(word);
        }
        true
    }

    /// The open event is complete.
    fn close(&mut self) {
        let Some(line) = self.open.take() else {
            self.kernel.clear();
            self.user.clear();
            return;
        };
        match Event::of(&line) {
            Event::Sample => self.sample(&line),
            Event::Tracepoint => self.tracepoint(&line),
            Event::Record if is_task_record(&line) => script_records::read(&line, &mut self.translation),
            Event::Record => {
                self.translation.unused(|| "records of mappings and others that no analysis uses".to_owned())
            }
        }
        self.kernel.clear();
        self.user.clear();
    }

    fn sample(&mut self, line: &ScriptLine<'t>) {
        // Without a call chain the sampled address is behind the event.
        if self.kernel.is_empty() && self.user.is_empty() && !line.rest.is_empty() {
            self.open = Some(*line);
            self.frame(line.rest);
            self.open = None;
        }
        // With its modifiers (`cycles:u`), as the perf.data has it.
        let (name, period) = match line.period {
            Some(period) if !line.event.is_empty() => (copied(line.event), period),
            _ => (SAMPLES.to_owned(), 1),
        };
        let stacks = StackWords { kernel: &self.kernel, user: &self.user };
        self.translation.sample(place(line), &name, period, stacks);
    }

    fn tracepoint(&mut self, line: &ScriptLine<'t>) {
        let event = copied(line.event);
        if event == "sched:sched_switch" {
            return self.switch(line);
        }
        if let Some(request) = script_event::request(&event, line.rest) {
            return self.translation.disk(place(line), request);
        }
        let fields = script_event::fields(&event, line.rest);
        let fields: Vec<_> = fields.iter().map(|(name, value)| (&**name, *value)).collect();
        self.event(&event, line, &fields);
    }

    fn switch(&mut self, line: &ScriptLine<'t>) {
        let Some(switch) = PrintedSwitch::read(line.rest) else {
            return self.translation.unreadable(|| format!("a switch at {} ns", line.time));
        };
        if line.cpu == UNKNOWN_CPU {
            return self.translation.unused(|| "switches without a CPU (`perf script -F +cpu`)".to_owned());
        }
        let next = NamedThread { tid: switch.next, pid: -1, name: switch.next_name };
        self.translation.know(line.time, next);
        self.translation.switches += 1;
        let fields = [
            ("prev_comm", FieldValue::Text(switch.prev_name)),
            ("prev_pid", FieldValue::Number(switch.prev.into())),
            ("prev_state", FieldValue::Number(switch.state)),
            ("next_comm", FieldValue::Text(switch.next_name)),
            ("next_pid", FieldValue::Number(switch.next.into())),
        ];
        self.event("sched:sched_switch", line, &fields);
    }

    fn event(&mut self, name: &str, line: &ScriptLine<'t>, fields: &[(&str, FieldValue<'_>)]) {
        self.key.clear();
        self.key.push_str(name);
        for (field, value) in fields {
            let letter = if matches!(value, FieldValue::Number(_)) { 'n' } else { 't' };
            // Writing to a text cannot fail.
            let _ = write!(self.key, " {letter}{field}");
        }
        let schema = || ClassSchema { name: name.to_owned(), stacks: true, ..ClassSchema::default() };
        let stacks = StackWords { kernel: &self.kernel, user: &self.user };
        self.translation.event_of_class(place(line), &self.key, schema, fields, stacks);
    }
}

/// The thread and the CPU of a line.
pub(super) fn place<'t>(line: &ScriptLine<'t>) -> EventPlace<'t> {
    // The kernel has one idle thread for each CPU; the text has their number in the name.
    let name = if line.tid == 0 { b"swapper" } else { line.name };
    let tid = if line.tid < 0 && !name.is_empty() { id_of_name(name) } else { line.tid };
    let thread = NamedThread { tid, pid: line.pid, name };
    EventPlace { time: line.time, cpu: line.cpu, thread }
}

/// What a line describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Sample,
    Tracepoint,
    /// Of a thread or a mapping.
    Record,
}

impl Event {
    fn of(line: &ScriptLine<'_>) -> Event {
        if line.event.starts_with(b"PERF_RECORD_") || line.rest.starts_with(b"PERF_RECORD_") {
            return Event::Record;
        }
        match memchr::memchr(b':', line.event).and_then(|colon| line.event.get(colon + 1..)) {
            Some(name) if name.iter().any(|byte| !MODIFIERS.contains(byte)) => Event::Tracepoint,
            _ => Event::Sample,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::notice::Notice;

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
        let mut translation = Translation::new(TranslatedFormat::Script, String::new());
        read_in_parts(text.as_bytes(), part, &mut translation, &Ctx::new(workers)).unwrap().unwrap();
        let unread = translation.notices.count(Notice::LinesUnread);
        let storage = translation.seal().storage;
        let frames = storage.frames.iter().map(|frame| frame.to_string()).collect();
        (storage.cpus.into_iter().map(|cpu| cpu.bytes).collect(), frames, storage.kernel_symbols, unread)
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
