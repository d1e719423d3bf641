//! Record classes to typed events, decided once per class.
//!
//! In: the classes of a trace and the tasks asked for. Out: a projection (which fields to decode at all) and, per
//! class, what to make of its values. Reading a record is then a jump, some copies, and the interning of what is long;
//! nothing is looked up by name. Rules:
//!
//! - `sched_waking` is believed, `sched_wakeup` only in traces that do not declare the former (ALGORITHMS.md 2.3).
//! - An event that is declared in several channels of one trace is followed in one: the channel that declares most of
//!   what we ask for. Its twin gives its call stacks, if it has them and the followed one has not.
//! - The context of an interrupt's own events is not decoded: it names whoever was interrupted, which the switches
//!   tell already, and such events are half of a recording.

use super::batch::{Batch, Flow, Identity, Key, MarkBody, Packet, Process, Request, Segment};
use super::classes::{self, Meaning, SOFT_IRQS, Shape};
use super::image::ImageChange;
use super::kind::{Context, Event, Kind, TextId, WakeSource, WhoId};
use super::stack::{RawStackId, StackOrigin};
use super::task::{Condition, TaskDefinition};
use super::transfer::transfer;
use crate::input::ctf::{Class, Trace};
use crate::input::record::{ClassId, FieldPath, Projection, Record, Scope, Value};
use foldhash::{HashMap, HashSet};

/// Position of a value in a record; [`NOWHERE`] where the class has no such field.
type Slot = u16;
const NOWHERE: Slot = Slot::MAX;

/// Which events of kernel traces are decoded; of the others that mean anything only the time is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Focus {
    /// All, and those of user-space traces.
    #[default]
    Everything,
    /// Who runs on the CPUs.
    Running,
    /// What is sent and received over the network.
    Packets,
    /// System calls that move bytes, and whose they are: by their context, else by who runs on the CPU.
    Transfers,
}

impl Focus {
    /// True where the events of a class are decoded in a trace of these `habits`.
    fn keeps(self, shape: Shape, call: Option<&str>, habits: Habits) -> bool {
        match (self, shape) {
            (Focus::Everything, _) => true,
            (Focus::Packets, _) => matches!(shape, Shape::Send | Shape::Receive),
            (_, Shape::Fork | Shape::Exec | Shape::Process) => true,
            (Focus::Running, Shape::Switch) => true,
            (Focus::Transfers, Shape::Switch) => !habits.calls_tell_threads,
            (Focus::Transfers, Shape::CallEntry | Shape::CallExit) => {
                habits.nameless_exits || call.is_some_and(|call| transfer(call).is_some())
            }
            _ => false,
        }
    }
}

/// How a trace records system calls.
#[derive(Clone, Copy, Debug, Default)]
struct Habits {
    /// Exits do not say of which call.
    nameless_exits: bool,
    /// The context of every call says id and name of its thread.
    calls_tell_threads: bool,
}

impl Habits {
    fn of(trace: &Trace) -> Habits {
        let mut habits = Habits { nameless_exits: false, calls_tell_threads: true };
        for (i, class) in trace.classes().iter().enumerate() {
            let Some((_, call)) = classes::call(&class.name) else { continue };
            let mut paths = Paths { trace, class: ClassId::at(i), wanted: Vec::new() };
            habits.nameless_exits |= call.is_empty();
            habits.calls_tell_threads &= paths.context("tid") != NOWHERE && paths.context("procname") != NOWHERE;
        }
        habits
    }
}

/// The contexts of [`Identity`], in its order.
const CONTEXTS: [&str; 6] = ["tid", "pid", "ppid", "vtid", "vpid", "procname"];

/// A delimiter bound to a class.
#[derive(Clone, Debug)]
struct BoundMark {
    task: u32,
    begins: bool,
    key: Vec<Slot>,
    kind: Slot,
    conditions: Vec<(Slot, Condition)>,
    fields: Vec<(String, Slot)>,
}

/// A class bound to its meaning.
#[derive(Clone, Debug)]
struct Bound {
    shape: Shape,
    /// Slots of [`CONTEXTS`].
    context: Option<[Slot; 6]>,
    /// Slots of the fields of the meaning.
    fields: Vec<Slot>,
    /// What took the stack; slots of the user's and the kernel's addresses.
    stack: Option<(StackOrigin, Slot, Slot)>,
    /// Name of the system call or vector.
    text: Option<String>,
    /// Hardware counters among the contexts.
    counters: Vec<(String, Slot)>,
    marks: Vec<BoundMark>,
}

/// The classes of one trace, bound.
#[derive(Clone, Debug)]
pub struct Binding {
    classes: Vec<Option<Bound>>,
    /// What to decode.
    pub projection: Projection,
    /// Its contexts name the thread that runs on the CPU.
    pub kernel: bool,
    /// Page faults are declared.
    pub page_faults: bool,
    /// Stream classes in which switches are followed: where these lose events, who runs is not known any more.
    pub switches: Vec<u32>,
    /// Switches are decoded.
    pub follows_switches: bool,
}

/// Collects the paths of one class, each once.
struct Paths<'t> {
    trace: &'t Trace,
    class: ClassId,
    wanted: Vec<FieldPath>,
}

impl Paths<'_> {
    fn slot(&mut self, scopes: &[Scope], alternatives: &str) -> Slot {
        for name in alternatives.split('|') {
            for scope in scopes {
                if let Some(at) = self.wanted.iter().position(|w| w.is(*scope, name)) {
                    return at as Slot;
                }
                if self.wanted.len() < usize::from(NOWHERE) && self.trace.has_field(self.class, *scope, name) {
                    self.wanted.push(FieldPath::new(*scope, name));
                    return (self.wanted.len() - 1) as Slot;
                }
            }
        }
        NOWHERE
    }

    fn context(&mut self, name: &str) -> Slot {
        self.slot(&[Scope::CommonContext, Scope::SpecificContext], name)
    }

    /// The addresses of the user's and the kernel's call stack, where there are any.
    fn stacks(&mut self) -> Option<(Slot, Slot)> {
        let (user, kernel) = (self.context("callstack_user"), self.context("callstack_kernel"));
        (user != NOWHERE || kernel != NOWHERE).then_some((user, kernel))
    }

    fn payload(&mut self, name: &str) -> Slot {
        self.slot(&[Scope::Payload], name)
    }

    fn any(&mut self, name: &str) -> Slot {
        self.slot(&[Scope::Payload, Scope::SpecificContext, Scope::CommonContext], name)
    }
}

/// True for traces of the kernel tracer.
pub fn is_kernel(trace: &Trace) -> bool {
    match trace.environment("domain") {
        Some(domain) => domain == "kernel",
        None => trace.classes().iter().any(|c| c.name == "sched_switch"),
    }
}

fn origin_of(shape: Shape) -> StackOrigin {
    match shape {
        Shape::CallEntry => StackOrigin::CallEntry,
        Shape::CallExit => StackOrigin::CallExit,
        Shape::TimerEnter => StackOrigin::Tick,
        Shape::Switch => StackOrigin::SwitchOut,
        _ => StackOrigin::Other,
    }
}

impl Binding {
    /// Bind the classes of a trace.
    pub fn new(trace: &Trace, tasks: &[TaskDefinition]) -> Binding {
        Binding::focused(trace, tasks, Focus::Everything)
    }

    /// True for a stream class in which something is bound.
    pub fn binds(&self, trace: &Trace, stream_class: u32) -> bool {
        let bound = |(class, bound): (&Class, &Option<Bound>)| class.stream_class == stream_class && bound.is_some();
        trace.classes().iter().zip(&self.classes).any(bound)
    }

    /// True for the class of switches that is decoded.
    pub fn is_switch(&self, class: ClassId) -> bool {
        self.classes.get(class.index()).is_some_and(|bound| bound.as_ref().is_some_and(|b| b.shape == Shape::Switch))
    }

    /// Bind the classes of a trace, with only some of them to be decoded.
    pub fn focused(trace: &Trace, tasks: &[TaskDefinition], focus: Focus) -> Binding {
        let kernel = is_kernel(trace);
        let habits = if focus == Focus::Transfers { Habits::of(trace) } else { Habits::default() };
        let declared: HashSet<&str> = trace.classes().iter().map(|c| c.name.as_str()).collect();
        let waking = declared.contains("sched_waking");
        let mut delimiters: HashMap<&str, Vec<(u32, bool, usize)>> = HashMap::default();
        for (number, task) in tasks.iter().enumerate() {
            for (begins, side) in [(true, &task.begins), (false, &task.ends)] {
                for (at, delimiter) in side.iter().enumerate() {
                    delimiters.entry(&delimiter.event).or_default().push((number as u32, begins, at));
                }
            }
        }
        let meaning = |name: &str| -> Option<Meaning> {
            let known = if kernel { classes::kernel(name) } else { classes::user(name) };
            let marked = Meaning { shape: Shape::Other, fields: &[], context: true };
            known
                .filter(|m| m.shape != Shape::Wakeup || !waking)
                .or_else(|| delimiters.contains_key(name).then_some(marked))
        };
        let followed = follow(trace, &meaning);
        let mut bound = Binding {
            classes: Vec::new(),
            projection: Projection::default(),
            kernel,
            page_faults: false,
            switches: Vec::new(),
            follows_switches: false,
        };
        for (i, class) in trace.classes().iter().enumerate() {
            let mut paths = Paths { trace, class: ClassId::at(i), wanted: Vec::new() };
            let found = meaning(&class.name).and_then(|meaning| {
                let in_followed = followed.get(class.name.as_str()) == Some(&class.stream_class);
                if in_followed {
                    bound.page_faults |= meaning.shape == Shape::PageFault;
                    if meaning.shape == Shape::Switch {
                        bound.switches.push(class.stream_class);
                    }
                }
                match focus {
                    Focus::Everything => {
                        let marks = delimiters.get(class.name.as_str()).map_or(&[][..], Vec::as_slice);
                        bind(&mut paths, meaning, in_followed, &class.name, tasks, marks).map(Some)
                    }
                    _ if in_followed => {
                        let call = classes::call(&class.name).map(|(_, call)| call);
                        let kept = kernel && focus.keeps(meaning.shape, call, habits);
                        Some(kept.then(|| narrow(&mut paths, meaning, &class.name)))
                    }
                    _ => paths.stacks().map(|_| None),
                }
            });
            // Of what is followed the time is read, decoded or not.
            let timed = found.is_some();
            let found = found.flatten();
            bound.follows_switches |= found.as_ref().is_some_and(|b| b.shape == Shape::Switch);
            if found.is_none() {
                paths.wanted.clear();
            }
            bound.projection.wanted.push(timed.then_some(paths.wanted));
            bound.classes.push(found);
        }
        bound
    }
}

/// For each event name its stream class that is followed: the one that declares most of what we ask for.
fn follow<'t>(trace: &'t Trace, meaning: &impl Fn(&str) -> Option<Meaning>) -> HashMap<&'t str, u32> {
    let mut declares: HashMap<u32, usize> = HashMap::default();
    let wanted = || trace.classes().iter().filter(|c| meaning(&c.name).is_some());
    for class in wanted() {
        *declares.entry(class.stream_class).or_default() += 1;
    }
    let mut followed: HashMap<&str, u32> = HashMap::default();
    for class in wanted() {
        let best = followed.entry(&class.name).or_insert(class.stream_class);
        let rank = |stream_class: &u32| (declares.get(stream_class), std::cmp::Reverse(*stream_class));
        if rank(&class.stream_class) > rank(best) {
            *best = class.stream_class;
        }
    }
    followed
}

/// Bind one class; `None` for a twin that has nothing to add.
fn bind(
    paths: &mut Paths<'_>,
    meaning: Meaning,
    followed: bool,
    name: &str,
    tasks: &[TaskDefinition],
    marks: &[(u32, bool, usize)],
) -> Option<Bound> {
    let stacks = paths.stacks();
    if !followed && stacks.is_none() {
        return None;
    }
    let stack = stacks.map(|(user, kernel)| (origin_of(meaning.shape), user, kernel));
    let with_context = meaning.context || stack.is_some() || !marks.is_empty();
    let context = with_context.then(|| CONTEXTS.map(|name| paths.context(name)));
    let mut bound = Bound {
        shape: Shape::Other,
        context,
        fields: Vec::new(),
        stack,
        text: None,
        counters: Vec::new(),
        marks: Vec::new(),
    };
    if !followed {
        return Some(bound);
    }
    bound.shape = meaning.shape;
    bound.fields = meaning.fields.iter().map(|field| paths.payload(field)).collect();
    bound.text = match meaning.shape {
        Shape::CallEntry | Shape::CallExit => classes::call(name).map(|(_, call)| call.to_owned()),
        Shape::VectorEnter(_) => {
            Some(name.trim_start_matches("x86_irq_vectors_").trim_end_matches("_entry").to_owned())
        }
        Shape::TimerEnter => Some("hrtimer".to_owned()),
        _ => None,
    };
    if with_context {
        let counters = paths.trace.context_fields(paths.class).filter(|(name, number)| *number && is_counter(name));
        bound.counters = counters.map(|(name, _)| (name.to_owned(), paths.context(name))).collect();
    }
    let numbers: Vec<String> = if marks.is_empty() {
        Vec::new()
    } else {
        let fields = paths.trace.payload_fields(paths.class);
        fields.filter(|(_, number)| *number).map(|(name, _)| name.to_owned()).collect()
    };
    for &(number, begins, at) in marks {
        let Some(task) = tasks.get(number as usize) else { continue };
        let side = if begins { &task.begins } else { &task.ends };
        let Some(delimiter) = side.get(at) else { continue };
        let key = delimiter.key.iter().map(|field| paths.any(field)).collect();
        let kind = task.kind.as_ref().map_or(NOWHERE, |field| paths.any(field));
        let conditions = delimiter.conditions.iter().map(|c| (paths.any(&c.field), c.clone())).collect();
        let fields = numbers.iter().map(|field| (field.clone(), paths.payload(field))).collect();
        bound.marks.push(BoundMark { task: number, begins, key, kind, conditions, fields });
    }
    Some(bound)
}

/// Bind one class for its own fields and the context that names its thread.
fn narrow(paths: &mut Paths<'_>, meaning: Meaning, name: &str) -> Bound {
    let who = |name| if matches!(name, "tid" | "pid" | "procname") { paths.context(name) } else { NOWHERE };
    let context = Some(CONTEXTS.map(who));
    let fields = meaning.fields.iter().map(|field| paths.payload(field)).collect();
    let text = classes::call(name).map(|(_, call)| call.to_owned());
    Bound { shape: meaning.shape, context, fields, stack: None, text, counters: Vec::new(), marks: Vec::new() }
}

/// Turns the records of one stream into events of a batch.
#[derive(Debug)]
pub struct Binder<'b> {
    binding: &'b Binding,
    trace: u16,
    /// The last context and what it was made from, because most records repeat it.
    last: Option<([Option<i64>; 5], Vec<u8>, WhoId)>,
    /// Names of classes in the batch.
    texts: Vec<TextId>,
}

/// The values of a record by slot.
#[derive(Clone, Copy)]
struct Values<'r, 'a>(&'r [Value<'a>]);

impl<'a> Values<'_, 'a> {
    fn at(self, slot: Slot) -> Value<'a> {
        self.0.get(usize::from(slot)).copied().unwrap_or_default()
    }

    fn number(self, slot: Slot) -> i64 {
        self.at(slot).as_i64().unwrap_or(0)
    }

    fn id(self, slot: Slot) -> i32 {
        self.number(slot) as i32
    }

    fn cpu(self, slot: Slot) -> u16 {
        u16::try_from(self.number(slot)).unwrap_or(u16::MAX)
    }
}

impl<'b> Binder<'b> {
    /// A binder for one stream of the trace at position `trace`.
    pub fn new(binding: &'b Binding, trace: u16) -> Binder<'b> {
        Binder { binding, trace, last: None, texts: vec![TextId::NONE; binding.classes.len()] }
    }

    /// Append what a record means.
    pub fn read(&mut self, record: &Record<'_, '_>, batch: &mut Batch, events: &mut Vec<Event>) {
        let binding = self.binding;
        let Some(Some(bound)) = binding.classes.get(record.class.index()) else { return };
        let values = Values(record.values);
        let who = bound.context.map_or(WhoId::NOBODY, |slots| self.who(values, slots, batch));
        let cpu = u16::try_from(record.cpu).unwrap_or(u16::MAX);
        let event = |kind| Event { time: record.time, who, trace: self.trace, cpu, kind };
        if let Some((origin, user, kernel)) = bound.stack {
            let (user, kernel) = (stack(values.at(user), batch), stack(values.at(kernel), batch));
            if user.is_some() || kernel.is_some() {
                events.push(event(Kind::Stack { origin, user, kernel }));
            }
        }
        for (name, slot) in &bound.counters {
            if let Some(value) = values.at(*slot).as_u64() {
                events.push(event(Kind::Counter { name: batch.text(name.as_bytes()), value }));
            }
        }
        for mark in &bound.marks {
            if let Some(body) = mark.read(values, batch) {
                let id = batch.mark(body);
                events.push(event(Kind::Mark(id)));
            }
        }
        let text = &mut self.texts[record.class.index()];
        if let (&mut TextId::NONE, Some(name)) = (&mut *text, &bound.text)
            && !name.is_empty()
        {
            *text = batch.text(name.as_bytes());
        }
        let text = *text;
        if let Some(kind) = kind(bound, values, text, batch) {
            events.push(Event { time: record.time, who, trace: self.trace, cpu, kind });
        }
    }

    fn who(&mut self, values: Values<'_, '_>, slots: [Slot; 6], batch: &mut Batch) -> WhoId {
        let ids = std::array::from_fn(|i| values.at(slots[i]).as_i64());
        let name = values.at(slots[5]).as_text().unwrap_or(b"");
        if let Some((last_ids, last_name, who)) = &self.last
            && *last_ids == ids
            && last_name == name
        {
            return *who;
        }
        let id = |i: usize| ids[i].map(|v| v as i32);
        let text = (!name.is_empty()).then(|| batch.text(name));
        let identity = Identity { tid: id(0), pid: id(1), ppid: id(2), vtid: id(3), vpid: id(4), name: text };
        let who = if identity == Identity::default() { WhoId::NOBODY } else { batch.who(identity) };
        let kept = self.last.get_or_insert_with(|| (ids, Vec::new(), who));
        (kept.0, kept.2) = (ids, who);
        kept.1.clear();
        kept.1.extend_from_slice(name);
        who
    }
}

/// The tracer's names of hardware counters; other contexts with this beginning (`perf_tid`, `perf_ip`) are no counters.
fn is_counter(name: &str) -> bool {
    name.starts_with("perf_thread_") || name.starts_with("perf_cpu_")
}

/// Addresses of a call stack without the mark of truncation at their end.
fn stack(value: Value<'_>, batch: &mut Batch) -> Option<RawStackId> {
    let mut addresses: smallvec::SmallVec<[u64; 128]> = value.as_words()?.iter().collect();
    if addresses.last() == Some(&u64::MAX) {
        addresses.pop();
    }
    (!addresses.is_empty()).then(|| batch.stacks.intern(&addresses))
}

impl BoundMark {
    fn read(&self, values: Values<'_, '_>, batch: &mut Batch) -> Option<MarkBody> {
        if !self.conditions.iter().all(|(slot, condition)| condition.holds(values.at(*slot))) {
            return None;
        }
        let key = match self.key.as_slice() {
            [] => None,
            [slot] => Some(match values.at(*slot) {
                Value::Text(text) => Key::Text(batch.text(text)),
                value => Key::Number(value.as_i64()?),
            }),
            several => Some(together(several, values, batch)?),
        };
        let kind = match values.at(self.kind) {
            Value::Text(text) => Some(batch.text(text)),
            Value::Unsigned(n) => Some(batch.text(n.to_string().as_bytes())),
            Value::Signed(n) => Some(batch.text(n.to_string().as_bytes())),
            _ => None,
        };
        let number = |(name, slot): &(String, Slot)| {
            let value = values.at(*slot).as_i64()?;
            Some((batch.text(name.as_bytes()), value))
        };
        let fields = self.fields.iter().filter_map(number).collect();
        Some(MarkBody { task: self.task, begins: self.begins, key, kind, fields })
    }
}

/// Several values as one key: each with its length before it, so that no two lists of values are written alike.
fn together(slots: &[Slot], values: Values<'_, '_>, batch: &mut Batch) -> Option<Key> {
    let mut all: Vec<u8> = Vec::new();
    for slot in slots {
        let number;
        let value: &[u8] = match values.at(*slot) {
            Value::Text(text) => text,
            value => {
                number = value.as_i64()?.to_string().into_bytes();
                &number
            }
        };
        all.extend(format!("{}:", value.len()).bytes());
        all.extend(value);
    }
    Some(Key::Text(batch.text(&all)))
}

/// The event itself.
fn kind(bound: &Bound, values: Values<'_, '_>, text: TextId, batch: &mut Batch) -> Option<Kind> {
    let slot = |i: usize| bound.fields.get(i).copied().unwrap_or(NOWHERE);
    let id = |i: usize| values.id(slot(i));
    let word = |i: usize| values.at(slot(i)).as_u64();
    let name = |i: usize, batch: &mut Batch| match values.at(slot(i)) {
        Value::Text(text) => batch.text(text),
        _ => TextId::NONE,
    };
    let wake =
        |source, batch: &mut Batch| Kind::Wake { tid: id(0), cpu: values.cpu(slot(1)), source, name: name(2, batch) };
    Some(match bound.shape {
        Shape::Switch => Kind::Switch {
            prev: id(0),
            next: id(1),
            prev_state: values.number(slot(2)) as u16,
            prev_name: name(3, batch),
            next_name: name(4, batch),
        },
        Shape::Waking => wake(WakeSource::Waking, batch),
        Shape::Wakeup => wake(WakeSource::Wakeup, batch),
        Shape::WakeNew => wake(WakeSource::New, batch),
        Shape::Fork => {
            let vtids = values.at(slot(3)).as_words();
            let child_vtid = vtids.and_then(|w| w.iter().last()).unwrap_or(0) as i32;
            let (parent, child, child_pid) = (id(0), id(1), values.at(slot(2)).as_i64());
            let child_pid = child_pid.map_or(child, |pid| pid as i32);
            Kind::Fork { parent, child, child_pid, child_vtid, name: name(4, batch) }
        }
        Shape::Exec => {
            let tid = id(0);
            let old_tid = values.at(slot(1)).as_i64().map_or(tid, |old| old as i32);
            Kind::Exec { tid, old_tid, path: name(2, batch) }
        }
        Shape::Exit => Kind::Exit { tid: id(0) },
        Shape::Free => Kind::Free { tid: id(0) },
        Shape::Migrate => Kind::Migrate { tid: id(0), cpu: values.cpu(slot(1)) },
        Shape::IrqEnter => Kind::Enter { context: Context::Irq(id(0)), name: name(1, batch) },
        Shape::IrqLeave => Kind::Leave { context: Context::Irq(id(0)) },
        Shape::SoftIrqRaise => Kind::Raise { vector: id(0) as u32 },
        Shape::SoftIrqEnter => {
            let vector = id(0) as u32;
            let name = SOFT_IRQS.get(vector as usize).map_or(TextId::NONE, |n| batch.text(n.as_bytes()));
            Kind::Enter { context: Context::SoftIrq(vector), name }
        }
        Shape::SoftIrqLeave => Kind::Leave { context: Context::SoftIrq(id(0) as u32) },
        Shape::TimerEnter => Kind::Enter { context: Context::Timer, name: text },
        Shape::TimerLeave => Kind::Leave { context: Context::Timer },
        Shape::VectorEnter(vector) => Kind::Enter { context: Context::Vector(vector), name: text },
        Shape::VectorLeave(vector) => Kind::Leave { context: Context::Vector(vector) },
        Shape::ReceptionEnter => Kind::Enter { context: Context::Reception, name: TextId::NONE },
        Shape::ReceptionLeave => Kind::Leave { context: Context::Reception },
        Shape::CallEntry => Kind::CallEntry { name: text },
        Shape::CallExit => Kind::CallExit { name: text, ret: values.number(slot(0)) },
        Shape::Send => Kind::Send(batch.packet(packet(values, slot))),
        Shape::Receive => Kind::Receive(batch.packet(packet(values, slot))),
        Shape::Block(step) => {
            let write = match values.at(slot(4)) {
                Value::Text(text) => text.contains(&b'W'),
                value => value.as_u64().unwrap_or(0) & 1 != 0,
            };
            let bytes = word(3).unwrap_or_else(|| word(2).unwrap_or(0).saturating_mul(512));
            let tid = values.at(slot(5)).as_i64().map(|tid| tid as i32);
            let device = word(0).unwrap_or(0) as u32;
            let request = batch.request(Request { device, sector: word(1).unwrap_or(0), bytes, write, tid });
            Kind::Block { step, request }
        }
        Shape::Process => {
            let cpu = values.at(slot(4)).as_i64().and_then(|cpu| u16::try_from(cpu).ok());
            let name = name(5, batch);
            let process = Process { tid: id(0), pid: id(1), ppid: id(2), status: id(3), cpu, name };
            Kind::Process(batch.process(process))
        }
        Shape::Namespace => Kind::Namespace { tid: id(0), vtid: id(1), vpid: id(2), level: id(3) },
        Shape::Line => Kind::Line { irq: id(0), name: name(1, batch) },
        Shape::PageFault => Kind::PageFault,
        Shape::FunctionEntry => Kind::Function { enters: true, address: word(0)? },
        Shape::FunctionExit => Kind::Function { enters: false, address: word(0).unwrap_or(0) },
        Shape::Sample(origin) => Kind::Stack { origin, user: stack(values.at(slot(0)), batch), kernel: None },
        Shape::Work(step) => Kind::Work { step, address: word(0)? },
        Shape::Latency => Kind::Latency { ns: values.number(slot(0)) },
        Shape::Restart => Kind::Image(batch.image(ImageChange::Restart)),
        Shape::Load => {
            let (base, size) = (word(0)?, word(1).unwrap_or(0));
            let position_independent = word(3).is_none_or(|pic| pic != 0);
            let path = name(2, batch);
            Kind::Image(batch.image(ImageChange::Load { base, size, path, position_independent }))
        }
        Shape::BuildId => {
            let bytes = values.at(slot(1)).as_words()?.iter().map(|b| b as u8).collect();
            Kind::Image(batch.image(ImageChange::BuildId { base: word(0)?, id: bytes }))
        }
        Shape::DebugLink => {
            let (base, file, crc) = (word(0)?, name(1, batch), word(2).unwrap_or(0) as u32);
            Kind::Image(batch.image(ImageChange::DebugLink { base, file, crc }))
        }
        Shape::Unload => Kind::Image(batch.image(ImageChange::Unload { base: word(0)? })),
        Shape::Other => return None,
    })
}

/// A packet from the fields of `classes::TCP_FIELDS`.
fn packet(values: Values<'_, '_>, slot: impl Fn(usize) -> Slot) -> Packet {
    let word = |i: usize| values.at(slot(i)).as_u64();
    let address = |i: usize| {
        let words = values.at(slot(i)).as_words()?;
        let bits = u32::from(words.width) * 8;
        Some(words.iter().fold(0u128, |sum, word| sum.checked_shl(bits).unwrap_or(0) | u128::from(word)))
    };
    // IPv4 counts its own header in the length, IPv6 does not.
    let tcp = |source: usize, dest: usize, bytes: Option<u64>, first: usize| {
        let header = word(first + 4).unwrap_or(5) * 4;
        Some(Segment {
            flow: Flow {
                source: address(source)?,
                dest: address(dest)?,
                source_port: word(first)? as u16,
                dest_port: word(first + 1)? as u16,
            },
            seq: word(first + 2)? as u32,
            ack: word(first + 3)? as u32,
            flags: word(first + 5).unwrap_or(0) as u16,
            len: bytes.unwrap_or(0).saturating_sub(header) as u32,
        })
    };
    let v4 = word(3).map(|total| total.saturating_sub(word(4).unwrap_or(5) * 4));
    Packet { buffer: word(0).unwrap_or(0), tcp: tcp(1, 2, v4, 8).or_else(|| tcp(5, 6, word(7), 14)) }
}
