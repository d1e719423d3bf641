//! Record classes to typed events, decided once per class.
//!
//! In: the classes of a trace and the tasks asked for. Out: a projection (which fields to decode at all) and, per
//! class, what to make of its values (`mark`: of those that delimit executions). Reading a record (`read`) is then a
//! jump, some copies, and the interning of what is long; nothing is looked up by name. Rules:
//!
//! - `sched_waking` is believed, `sched_wakeup` only in traces that do not declare the former (ALGORITHMS.md 2.3).
//! - An event that is recorded in several channels of a host's traces is followed in one: a channel that lost nothing
//!   goes before one that did, then the one that declares most of what we ask for (`follow`). Its twin gives its call
//!   stacks, if it has them and the followed one has not; of who runs it says nothing.
//! - The thread of a switch is the one that leaves: its stack is that thread's.
//! - The context of an interrupt's own events is not decoded: it names whoever was interrupted, which the switches
//!   tell already, and such events are half of a recording.

mod mark;
mod payload;
mod read;
mod recent;

pub use read::Binder;

use super::classes::{self, Meaning, Shape};
use super::dialect;
use crate::base::time::Span;
use crate::event::stack::StackOrigin;
use crate::event::task::TaskDefinition;
use crate::event::transfer::transfer;
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
            let Some((_, call)) = classes::call(class.known()) else { continue };
            let mut paths = Paths { trace, class: ClassId::at(i), wanted: Vec::new() };
            habits.nameless_exits |= call.is_empty();
            habits.calls_tell_threads &= paths.context("tid") != NOWHERE && paths.context("procname") != NOWHERE;
        }
        habits
    }
}

/// The contexts of [`ThreadContext`], in its order.
const CONTEXTS: [&str; 6] = ["tid", "pid", "ppid", "vtid", "vpid", "procname"];

/// A class bound to its meaning.
#[derive(Clone, Debug)]
struct Bound {
    shape: Shape,
    /// Slots of [`CONTEXTS`].
    context: Option<[Slot; 6]>,
    /// Slots of the fields of the meaning.
    fields: Vec<Slot>,
    /// The CPU, where the packet does not name it.
    cpu: Slot,
    /// The event is followed in another channel of its trace.
    twin: bool,
    /// Over this time the event is followed in another trace.
    told_elsewhere: Option<Span>,
    /// What took the stack; slots of the user's and the kernel's addresses (one slot for both: a call chain).
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
    /// How system calls are numbered.
    machine: Option<String>,
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

    /// A context, by whatever name a dialect has for it.
    fn context(&mut self, name: &str) -> Slot {
        let slot = self.slot(&[Scope::CommonContext, Scope::SpecificContext], name);
        match dialect::context(name).filter(|_| slot == NOWHERE) {
            Some(other) => self.any(other),
            None => slot,
        }
    }

    /// The contexts that name the thread of an event; of a switch it is the one that leaves.
    fn identity(&mut self, shape: Shape, wanted: impl Fn(&str) -> bool) -> [Slot; 6] {
        CONTEXTS.map(|name| match (name, shape) {
            _ if !wanted(name) => NOWHERE,
            ("tid", Shape::Switch) => match self.payload(classes::LEAVING) {
                NOWHERE => self.context(name),
                leaving => leaving,
            },
            _ => self.context(name),
        })
    }

    /// The addresses of the user's and the kernel's call stack, where there are any.
    fn stacks(&mut self) -> Option<(Slot, Slot)> {
        let (user, kernel) = (self.context("callstack_user"), self.context("callstack_kernel"));
        if user != NOWHERE || kernel != NOWHERE {
            return Some((user, kernel));
        }
        let both = self.any(dialect::CALL_CHAIN);
        (both != NOWHERE).then_some((both, both))
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
        None => trace.classes().iter().any(|c| dialect::event(&c.name) == "sched_switch"),
    }
}

fn origin_of(shape: Shape) -> StackOrigin {
    match shape {
        Shape::CallEntry => StackOrigin::CallEntry,
        Shape::CallExit => StackOrigin::CallExit,
        Shape::TimerEnter | Shape::Tick => StackOrigin::Tick,
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

    /// Events that look like switches though no dialect knows them, where no switches are known.
    pub fn look_like_switches<'t>(&self, trace: &'t Trace) -> Vec<&'t str> {
        let like = |(i, class): (usize, &'t Class)| {
            let fields = trace.payload_fields(ClassId::at(i)).into_iter().map(|(name, _)| name);
            dialect::is_like_a_switch(fields).then_some(class.name.as_str())
        };
        let known = !self.switches.is_empty();
        trace.classes().iter().enumerate().filter(|_| !known).filter_map(like).collect()
    }

    /// By name of an event in LTTng's words: the stream class in which it is followed, and its classes.
    pub fn followed(&self, trace: &Trace) -> Vec<(String, u32, ClassId)> {
        let all = trace.classes().iter().zip(&self.classes).enumerate();
        let bound = all.filter_map(|(i, (class, bound))| Some((i, class, bound.as_ref().filter(|b| !b.twin)?)));
        bound
            .map(|(i, class, _)| (dialect::event(&class.name).into_owned(), class.stream_class, ClassId::at(i)))
            .collect()
    }

    /// Over `span` the events of a class are followed in another trace of the host.
    pub fn leave_to_another(&mut self, class: ClassId, span: Span) {
        if let Some(Some(bound)) = self.classes.get_mut(class.index()) {
            bound.told_elsewhere = Some(span);
        }
    }

    /// Bind the classes of a trace, with only some of them to be decoded.
    pub fn focused(trace: &Trace, tasks: &[TaskDefinition], focus: Focus) -> Binding {
        let kernel = is_kernel(trace);
        let habits = if focus == Focus::Transfers { Habits::of(trace) } else { Habits::default() };
        let declared: HashSet<_> = trace.classes().iter().map(|c| dialect::event(c.known())).collect();
        let (waking, migrations) = (declared.contains("sched_waking"), declared.contains("sched_migrate_task"));
        // perf's own records say which process a new thread belongs to, and come first.
        let told_by_perf = declared.contains("perf:fork");
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
            // Where both are recorded, migrations tell the run queue as well.
            let queued = |m: Meaning| match m.shape {
                Shape::Fork if told_by_perf && dialect::event(name) != "perf:fork" => None,
                Shape::Wakeup if waking && migrations => None,
                Shape::Wakeup if waking => Some(Meaning { shape: Shape::Queued, context: false, ..m }),
                _ => Some(m),
            };
            known.and_then(queued).or_else(|| delimiters.contains_key(name).then_some(marked))
        };
        let followed = follow(trace, &meaning);
        let mut bound = Binding {
            classes: Vec::new(),
            projection: Projection::default(),
            kernel,
            page_faults: false,
            switches: Vec::new(),
            follows_switches: false,
            machine: dialect::machine(trace).map(str::to_owned),
        };
        for (i, class) in trace.classes().iter().enumerate() {
            let mut paths = Paths { trace, class: ClassId::at(i), wanted: Vec::new() };
            let found = meaning(class.known()).and_then(|meaning| {
                let in_followed = followed.get(class.known()) == Some(&class.stream_class);
                if in_followed {
                    bound.page_faults |= meaning.shape == Shape::PageFault;
                    if meaning.shape == Shape::Switch {
                        bound.switches.push(class.stream_class);
                    }
                }
                match focus {
                    Focus::Everything => {
                        let marks = delimiters.get(class.known()).map_or(&[][..], Vec::as_slice);
                        bind(&mut paths, meaning, in_followed, class.known(), tasks, marks).map(Some)
                    }
                    _ if in_followed => {
                        let call = classes::call(class.known()).map(|(_, call)| call);
                        let kept = kernel && focus.keeps(meaning.shape, call, habits);
                        Some(kept.then(|| narrow(&mut paths, meaning, class.known())))
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

/// For each event name its stream class that is followed: one that lost nothing before one that did, then the one that
/// declares most of what we ask for.
fn follow<'t>(trace: &'t Trace, meaning: &impl Fn(&str) -> Option<Meaning>) -> HashMap<&'t str, u32> {
    let mut declares: HashMap<u32, usize> = HashMap::default();
    let wanted = || trace.classes().iter().filter(|c| meaning(c.known()).is_some());
    for class in wanted() {
        *declares.entry(class.stream_class).or_default() += 1;
    }
    let mut followed: HashMap<&str, u32> = HashMap::default();
    for class in wanted() {
        let best = followed.entry(class.known()).or_insert(class.stream_class);
        let lost = |class: u32| trace.streams().iter().any(|s| s.stream_class == class && !s.losses.is_empty());
        let rank = |class: &u32| (!lost(*class), declares.get(class), std::cmp::Reverse(*class));
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
    let context = with_context.then(|| paths.identity(meaning.shape, |_| true));
    let mut bound = Bound {
        shape: Shape::Other,
        context,
        cpu: paths.context("cpu_id"),
        twin: !followed,
        told_elsewhere: None,
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
        Shape::VectorEnter(_) => Some(classes::vector_name(name)),
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
    let context = Some(paths.identity(meaning.shape, |name| matches!(name, "tid" | "pid" | "procname")));
    let fields = meaning.fields.iter().map(|field| paths.payload(field)).collect();
    let text = classes::call(name).map(|(_, call)| call.to_owned());
    let cpu = paths.context("cpu_id");
    let (counters, marks) = (Vec::new(), Vec::new());
    let (shape, twin, told_elsewhere, stack) = (meaning.shape, false, None, None);
    Bound { shape, context, cpu, twin, told_elsewhere, fields, stack, text, counters, marks }
}

/// The tracer's names of hardware counters; other contexts with this beginning (`perf_tid`, `perf_ip`) are no counters.
fn is_counter(name: &str) -> bool {
    name.starts_with("perf_thread_") || name.starts_with("perf_cpu_")
}
