//! Record classes to typed events, decided once per class.
//!
//! In: the classes of a trace and the tasks asked for. Out: a projection (which fields to decode at all) and, per
//! class, what to make of its values (`mark`: of those that delimit executions). Reading a record (`read`) is then a
//! jump, some copies, and the interning of what is long; nothing is looked up by name. Rules:
//!
//! - `sched_waking` is believed, `sched_wakeup` only in traces that do not declare the former (ALGORITHMS.md 2.3).
//! - An event that is declared in several channels of one trace is followed in one: the channel that declares most of
//!   what we ask for. Its twin gives its call stacks, if it has them and the followed one has not.
//! - The context of an interrupt's own events is not decoded: it names whoever was interrupted, which the switches
//!   tell already, and such events are half of a recording.

mod mark;
mod read;

pub use read::Binder;

use super::classes::{self, Meaning, Shape};
use super::stack::StackOrigin;
use super::task::TaskDefinition;
use super::transfer::transfer;
use crate::input::Trace;
use crate::input::record::{ClassId, FieldPath, Projection, Scope};
use crate::input::stream::Class;
use foldhash::{HashMap, HashSet};
use mark::BoundMark;

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
        let counters =
            paths.trace.context_fields(paths.class).into_iter().filter(|(name, number)| *number && is_counter(name));
        bound.counters = counters.map(|(name, _)| (name.to_owned(), paths.context(name))).collect();
    }
    bound.marks = BoundMark::all(paths, tasks, marks);
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

/// The tracer's names of hardware counters; other contexts with this beginning (`perf_tid`, `perf_ip`) are no counters.
fn is_counter(name: &str) -> bool {
    name.starts_with("perf_thread_") || name.starts_with("perf_cpu_")
}
