//! A part of the text of `perf script`, as a translation of its own.
//!
//! In: lines, of which the first begins an event. Out: a record for each event. An event is its first line and the call
//! chain on the lines after it. Much of such a text repeats: a call chain whose bytes were read before in this part
//! is looked up as a whole, each event knows the classes of the fields that it printed before, so most events are
//! added without an allocation. Cost: linear; the tables refer to the text.

use super::event_place::NamedThread;
use super::frames::Frame;
use super::script_event::{self, Printed, PrintedForm, PrintedSwitch};
use super::script_frames::ScriptFrames;
use super::script_line::ScriptLine;
use super::script_records::{self, is_task_record, place};
use super::translation::{FieldValue, SAMPLES, StackWords, Translation, UNKNOWN_CPU};
use crate::base::text::copied;
use crate::input::record::ClassId;
use crate::input::tracepoint::ClassSchema;
use foldhash::HashMap;
use memchr::memmem::Finder;
use std::fmt::Write;
use std::ops::Range;

/// Frames of a call chain that are kept.
const MOST_FRAMES: usize = 4096;
/// Letters of what may follow the name of a counter after a colon.
const MODIFIERS: &[u8] = b"ukhGHpPSDIWeb";
/// Classes of an event that are compared with its fields one after the other.
const MOST_CLASSES: usize = 8;
/// Bytes of a call chain that is looked up as a whole.
const MOST_CHAIN: usize = 1 << 14;

/// A call chain that was read.
struct KnownChain {
    kernel: Range<usize>,
    user: Range<usize>,
}

/// An event that occurred.
struct KnownEvent<'t> {
    kind: EventKind,
    classes: Vec<KnownClass<'t>>,
}

/// The class of records with these fields.
struct KnownClass<'t> {
    /// Their names, and whether they are numbers.
    fields: Vec<(&'t [u8], bool)>,
    class: ClassId,
}

impl<'t> KnownClass<'t> {
    fn new(fields: &[Printed<'t>], class: ClassId) -> Self {
        KnownClass { fields: fields.iter().map(|(name, value)| (*name, is_number(value))).collect(), class }
    }

    fn has(&self, fields: &[Printed<'_>]) -> bool {
        let is_same =
            |((name, number), (of, value)): (&(&[u8], bool), &Printed<'_>)| *number == is_number(value) && name == of;
        self.fields.len() == fields.len() && self.fields.iter().zip(fields).all(is_same)
    }
}

fn is_number(value: &FieldValue<'_>) -> bool {
    matches!(value, FieldValue::Number(_))
}

/// What the events of a name are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventKind {
    Sample,
    Switch,
    /// Of a disk.
    Request,
    Tracepoint(PrintedForm),
    /// Of a thread or a mapping.
    Record,
}

impl EventKind {
    fn of(event: &[u8]) -> EventKind {
        if event.starts_with(b"PERF_RECORD_") {
            return EventKind::Record;
        }
        match memchr::memchr(b':', event).and_then(|colon| event.get(colon + 1..)) {
            Some(_) if event == b"sched:sched_switch" => EventKind::Switch,
            Some(_) if script_event::is_request(event) => EventKind::Request,
            Some(name) if name.iter().any(|byte| !MODIFIERS.contains(byte)) => {
                EventKind::Tracepoint(PrintedForm::of(event))
            }
            _ => EventKind::Sample,
        }
    }
}

/// Reads parts of the file, one after the other.
pub(super) struct ScriptPart<'t> {
    translation: Translation,
    frames: ScriptFrames<'t>,
    /// The event whose call chain is read.
    open: Option<ScriptLine<'t>>,
    kernel: Vec<u64>,
    user: Vec<u64>,
    /// Call chains by their lines, and their words.
    chains: HashMap<&'t [u8], KnownChain>,
    words: Vec<u64>,
    /// Finds the blank line after a call chain.
    blank: Finder<'static>,
    events: Vec<KnownEvent<'t>>,
    event_numbers: HashMap<&'t [u8], usize>,
    /// The fields of an event.
    fields: Vec<Printed<'t>>,
}

fn translation() -> Translation {
    Translation::new(String::new())
}

impl Default for ScriptPart<'_> {
    fn default() -> Self {
        ScriptPart {
            translation: translation(),
            frames: ScriptFrames::default(),
            open: None,
            kernel: Vec::new(),
            user: Vec::new(),
            chains: HashMap::default(),
            words: Vec::new(),
            blank: Finder::new(b"\n\n"),
            events: Vec::new(),
            event_numbers: HashMap::default(),
            fields: Vec::new(),
        }
    }
}

impl<'t> ScriptPart<'t> {
    /// Read the events of a text.
    pub fn read(&mut self, text: &'t [u8]) -> Translation {
        let mut begin = 0;
        while let Some(rest) = text.get(begin..).filter(|rest| !rest.is_empty()) {
            let is_chain = rest.starts_with(b"\t") && self.open.is_some() && !self.has_chain();
            begin += if is_chain { self.chain(rest) } else { self.line_of(rest) };
        }
        self.close();
        // The memory of the tables is kept for the next text.
        self.frames.clear();
        self.chains.clear();
        self.words.clear();
        self.events.clear();
        self.event_numbers.clear();
        std::mem::replace(&mut self.translation, translation())
    }

    /// Read the first line of a text; its length with its end.
    fn line_of(&mut self, text: &'t [u8]) -> usize {
        let end = memchr::memchr(b'\n', text).unwrap_or(text.len());
        let line = text.get(..end).unwrap_or(&[]);
        self.line(line.strip_suffix(b"\r").unwrap_or(line));
        end + 1
    }

    /// Read the lines that begin with tabs at the begin of a text; their length.
    fn chain(&mut self, text: &'t [u8]) -> usize {
        let blank = self.blank.find(text.get(..MOST_CHAIN).unwrap_or(text));
        let before_blank = blank.and_then(|at| text.get(..at + 1));
        if let Some((lines, KnownChain { kernel, user })) =
            before_blank.and_then(|lines| self.chains.get_key_value(lines))
        {
            self.kernel.extend_from_slice(self.words.get(kernel.clone()).unwrap_or(&[]));
            self.user.extend_from_slice(self.words.get(user.clone()).unwrap_or(&[]));
            return lines.len();
        }
        let mut end = 0;
        while let Some(rest) = text.get(end..).filter(|rest| rest.starts_with(b"\t")) {
            end += self.line_of(rest);
        }
        // A line of nothing but space ends the event.
        if let Some(lines) = before_blank.filter(|lines| lines.len() == end && self.open.is_some()) {
            let kernel = self.words.len()..self.words.len() + self.kernel.len();
            let user = kernel.end..kernel.end + self.user.len();
            self.words.extend(self.kernel.iter().chain(&self.user));
            self.chains.insert(lines, KnownChain { kernel, user });
        }
        end
    }

    fn has_chain(&self) -> bool {
        !self.kernel.is_empty() || !self.user.is_empty()
    }

    fn line(&mut self, line: &'t [u8]) {
        let plain = line.trim_ascii();
        if plain.is_empty() {
            return self.close();
        }
        if line.starts_with(b"\t") {
            if self.frame(plain) && self.open.is_none() {
                self.unreadable(plain);
            }
            return;
        }
        match ScriptLine::read(line) {
            Some(event) => {
                self.close();
                self.open = Some(event);
            }
            // A chain whose tabs became spaces is known by its event before it.
            None if line.starts_with(b" ") && self.open.is_some() && self.frame(plain) => {}
            None if plain.starts_with(b"#") => {}
            None => self.unreadable(plain),
        }
    }

    /// Count a line that belongs to no event.
    fn unreadable(&mut self, line: &[u8]) {
        self.translation.unreadable_record(|| format!("`{}`", copied(line.get(..60).unwrap_or(line))));
    }

    /// Add a frame to the event; false for a line that is none. Lines of sources are passed over.
    fn frame(&mut self, line: &'t [u8]) -> bool {
        let Some(frame) = self.frames.frame(line, &mut self.translation.frames) else { return false };
        if self.open.is_some() {
            self.push(frame);
        }
        true
    }

    fn push(&mut self, frame: Frame) {
        let stack = match frame {
            Frame::User(_) => &mut self.user,
            Frame::Kernel(_) => &mut self.kernel,
        };
        if stack.len() < MOST_FRAMES {
            stack.push(frame.word(stack.len()));
        }
    }

    /// The open event is complete.
    fn close(&mut self) {
        if let Some(line) = self.open.take() {
            self.translation.begin_record();
            self.event(&line);
            self.translation.end_record();
        }
        self.kernel.clear();
        self.user.clear();
    }

    fn event(&mut self, line: &ScriptLine<'t>) {
        let number = self.event_number(line.event);
        let kind = match self.events.get(number) {
            Some(event) if !line.rest.starts_with(b"PERF_RECORD_") => event.kind,
            _ => EventKind::Record,
        };
        match kind {
            EventKind::Record if is_task_record(line) => script_records::read(line, &mut self.translation),
            EventKind::Record => {
                self.translation.unused(|| "records of mappings and others that no analysis uses".to_owned())
            }
            _ if !self.translation.is_placed(line.cpu) => {}
            EventKind::Sample => self.sample(number, line),
            EventKind::Switch => self.switch(number, line),
            EventKind::Tracepoint(form) => self.tracepoint(number, form, line),
            EventKind::Request => match script_event::request(line.event, line.rest) {
                Some(request) => self.translation.disk(place(line), request),
                None => self.tracepoint(number, PrintedForm::Assigned, line),
            },
        }
    }

    /// The number of an event by its name.
    fn event_number(&mut self, event: &'t [u8]) -> usize {
        let events = &mut self.events;
        *self.event_numbers.entry(event).or_insert_with(|| {
            events.push(KnownEvent { kind: EventKind::of(event), classes: Vec::new() });
            events.len() - 1
        })
    }

    fn sample(&mut self, number: usize, line: &ScriptLine<'t>) {
        // Without a call chain the sampled address is after the event.
        if !self.has_chain() && !line.rest.is_empty() {
            let frame = self.frames.frame(line.rest, &mut self.translation.frames);
            frame.into_iter().for_each(|frame| self.push(frame));
        }
        // With its modifiers (`cycles:u`), as the perf.data has it.
        let (name, period) = match line.period {
            Some(period) if !line.event.is_empty() => (line.event, period),
            _ => (SAMPLES.as_bytes(), 1),
        };
        self.fields.clear();
        self.fields.push((name, FieldValue::Number(period as i64)));
        self.add(number, line, |translation, _| translation.sample_class(&copied(name)));
    }

    fn tracepoint(&mut self, number: usize, form: PrintedForm, line: &ScriptLine<'t>) {
        self.fields.clear();
        form.read(line.rest, &mut self.fields);
        self.add(number, line, |translation, fields| class(translation, line.event, fields));
    }

    fn switch(&mut self, number: usize, line: &ScriptLine<'t>) {
        let Some(switch) = PrintedSwitch::read(line.rest) else {
            return self.translation.unreadable(|| format!("a switch at {} ns", line.time));
        };
        if line.cpu == UNKNOWN_CPU {
            return self.translation.unused(|| "switches without a CPU (`perf script -F +cpu`)".to_owned());
        }
        let next = NamedThread { tid: switch.next.tid, pid: -1, name: switch.next.name };
        self.translation.know(line.time, next);
        self.translation.switches += 1;
        self.fields.clear();
        self.fields.extend([
            (&b"prev_comm"[..], FieldValue::Text(switch.prev.name)),
            (&b"prev_pid"[..], FieldValue::Number(switch.prev.tid.into())),
            (&b"prev_prio"[..], FieldValue::Number(switch.prev.priority)),
            (&b"prev_state"[..], FieldValue::Number(switch.state)),
            (&b"next_comm"[..], FieldValue::Text(switch.next.name)),
            (&b"next_pid"[..], FieldValue::Number(switch.next.tid.into())),
            (&b"next_prio"[..], FieldValue::Number(switch.next.priority)),
        ]);
        self.add(number, line, |translation, fields| class(translation, line.event, fields));
    }

    /// Add the record of an event with its fields; `class` makes their class.
    fn add(
        &mut self,
        number: usize,
        line: &ScriptLine<'t>,
        class: impl FnOnce(&mut Translation, &[Printed<'t>]) -> Option<ClassId>,
    ) {
        let Some(event) = self.events.get_mut(number) else { return };
        let known = event.classes.iter().find(|known| known.has(&self.fields)).map(|known| known.class);
        let class = known.or_else(|| {
            let class = class(&mut self.translation, &self.fields)?;
            if event.classes.len() < MOST_CLASSES {
                event.classes.push(KnownClass::new(&self.fields, class));
            }
            Some(class)
        });
        let stacks = StackWords { kernel: &self.kernel, user: &self.user };
        self.translation.record(place(line), class, self.fields.iter().map(|(_, value)| *value), stacks);
    }
}

/// The class of the records of a tracepoint with these fields.
fn class(translation: &mut Translation, event: &[u8], fields: &[Printed<'_>]) -> Option<ClassId> {
    let name = copied(event);
    let fields: Vec<(String, FieldValue<'_>)> = fields.iter().map(|(name, value)| (copied(name), *value)).collect();
    let mut key = name.clone();
    for (field, value) in &fields {
        let letter = if is_number(value) { 'n' } else { 't' };
        // Writing to a text cannot fail.
        let _ = write!(key, " {letter}{field}");
    }
    let fields: Vec<(&str, FieldValue<'_>)> = fields.iter().map(|(name, value)| (&**name, *value)).collect();
    translation.class(&key, || ClassSchema { name, stacks: true, ..ClassSchema::default() }, &fields)
}
