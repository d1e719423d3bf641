//! Record classes to typed events, decided once per class.
//!
//! In: the classes of a trace and the requested tasks. Out: a projection (the fields to decode at all) and, per class,
//! the event that its values make (`mark`: for classes that delimit executions). Reading a record (`read`) is then a
//! jump, some copies, and the interning of texts and stacks, without a look-up by name. Rules:
//!
//! - `sched_waking` names the waker; `sched_wakeup` does so only in traces that did not record the former
//!   (ALGORITHMS.md 2.3).
//! - An event that is recorded in several channels of a host's traces is followed in one of them (`follow`). Its twin
//!   in another channel gives its call stacks, if it has them and the followed one has not, but says nothing about the
//!   running thread.
//! - The thread of a switch is the one that leaves the CPU: its stack is that thread's.
//! - The context of an interrupt's own events is not decoded: it names the interrupted thread, which the switches show
//!   already, and such events are half of a recording.

mod delimiters;
mod follow;
mod mark;
mod paths;
mod payload;
mod read;
mod recent;
mod values;

pub use read::Binder;

use super::classes::{self, Meaning, Shape};
use super::coverage::Coverage;
use super::dialect;
use crate::base::heap::block;
use crate::event::stack::StackOrigin;
use crate::event::task::TaskDefinition;
use crate::event::transfer::transfer;
use crate::input::Trace;
use crate::input::record::{ClassId, Projection};
use crate::input::stream::Class;
use delimiters::Delimiters;
use foldhash::HashSet;
use follow::DeclaredEvents;
use get_size2::GetSize;
use mark::BoundMark;
use paths::{NOWHERE, Paths, Slot, StackSlots};
use std::sync::Arc;

/// The events of kernel traces to decode; of other events with a meaning only the time is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Focus {
    /// All, and those of user-space traces.
    #[default]
    Everything,
    /// The threads that run on the CPUs.
    Running,
    /// Packets that the network sends and receives.
    Packets,
    /// System calls that move bytes, and their threads: by the context, else by the switches.
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
            (Focus::Transfers, Shape::Switch) => !habits.calls_name_threads,
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
    /// Exits do not name their call.
    nameless_exits: bool,
    /// The context of every call has the id and the name of its thread.
    calls_name_threads: bool,
}

impl Habits {
    /// Those of the classes that are followed: copies in other channels may lack a context, and are not read.
    fn of(trace: &Trace, followed: &HashSet<ClassId>) -> Habits {
        let mut habits = Habits { nameless_exits: false, calls_name_threads: true };
        for (i, class) in trace.classes().iter().enumerate().filter(|(i, _)| followed.contains(&ClassId::at(*i))) {
            let Some(event) = classes::call(class.known()) else { continue };
            let mut paths = Paths::new(trace, ClassId::at(i));
            habits.nameless_exits |= event.call.is_empty();
            habits.calls_name_threads &= paths.context("tid") != NOWHERE && paths.context("procname") != NOWHERE;
        }
        habits
    }
}

/// A class bound to its meaning.
#[derive(Clone, Debug, GetSize)]
struct Bound {
    #[get_size(ignore)]
    shape: Shape,
    /// Slots of the contexts that name the thread, in the order of `ThreadContext`.
    context: Option<[Slot; 6]>,
    /// Slots of the fields of the meaning.
    fields: Vec<Slot>,
    /// The CPU, where the packet does not name it.
    cpu: Slot,
    /// The event is followed in another channel of its trace.
    twin: bool,
    /// Where the event is followed in another trace.
    #[get_size(ignore)]
    followed_elsewhere: Option<Coverage>,
    /// The call stack of its records, where they have one.
    #[get_size(ignore)]
    stack: Option<BoundStack>,
    /// Name of the system call, the vector, or the event that was sampled.
    text: Option<String>,
    /// Hardware counters among the contexts.
    counters: Vec<(String, Slot)>,
    #[get_size(size_fn = block)]
    marks: Vec<BoundMark>,
}

/// The call stack of a class's records.
#[derive(Clone, Copy, Debug)]
struct BoundStack {
    /// The occasion on which it was recorded.
    origin: StackOrigin,
    addresses: StackSlots,
}

/// An event that a binding follows.
#[derive(Clone, Debug)]
pub struct FollowedEvent {
    /// LTTng's name of it.
    pub name: String,
    /// The stream class in which it is followed.
    pub stream_class: u32,
    /// Its record class there.
    pub class: ClassId,
}

/// The classes of one trace, bound.
#[derive(Clone, Debug, GetSize)]
pub struct Binding {
    classes: Vec<Option<Bound>>,
    /// The fields to decode.
    pub projection: Projection,
    /// Its contexts name the thread that runs on the CPU.
    pub kernel: bool,
    /// Page faults are declared.
    pub page_faults: bool,
    /// Stream classes in which switches are followed: after a loss in one of these, the running thread is unknown.
    pub switches: Vec<u32>,
    /// Switches are decoded.
    pub follows_switches: bool,
    /// The architecture, by which system calls are numbered.
    machine: Option<String>,
    /// Functions on call stacks that are recorded by name.
    #[get_size(ignore)]
    frames: Arc<[Box<str>]>,
    /// How many numbers delimiters have, those of each counted.
    numbers: usize,
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

    /// The most events that a record of a class makes.
    pub fn most_events(&self, class: ClassId) -> u64 {
        let Some(Some(bound)) = self.classes.get(class.index()) else { return 0 };
        let stack = u64::from(bound.stack.is_some());
        if bound.twin {
            return stack;
        }
        let own = u64::from(!matches!(bound.shape, Shape::Tick | Shape::Other));
        stack + own + (bound.counters.len() + bound.marks.len()) as u64
    }

    /// Events that look like context switches although no dialect knows them, in a trace without known ones.
    pub fn look_like_switches<'t>(&self, trace: &'t Trace) -> Vec<&'t str> {
        let like = |(i, class): (usize, &'t Class)| {
            let fields = trace.payload_fields(ClassId::at(i)).into_iter().map(|field| field.name);
            dialect::is_like_a_switch(fields).then_some(class.name.as_str())
        };
        let known = !self.switches.is_empty();
        let is_left_out = |class: &Class| class.known().is_empty();
        let classes = trace.classes().iter().enumerate().filter(|(_, class)| !known && !is_left_out(class));
        classes.filter_map(like).collect()
    }

    /// The events that are followed in a stream class of the trace.
    pub fn followed(&self, trace: &Trace) -> Vec<FollowedEvent> {
        let all = trace.classes().iter().zip(&self.classes).enumerate();
        let followed = all.filter(|(_, (_, bound))| bound.as_ref().is_some_and(|b| !b.twin));
        followed
            .map(|(i, (class, _))| FollowedEvent {
                name: dialect::event(&class.name).into_owned(),
                stream_class: class.stream_class,
                class: ClassId::at(i),
            })
            .collect()
    }

    /// Follow the events of a class in another trace of the host where that covers them.
    pub fn follow_elsewhere(&mut self, class: ClassId, covered: Coverage) {
        if let Some(Some(bound)) = self.classes.get_mut(class.index()) {
            bound.followed_elsewhere = Some(covered);
        }
    }

    /// Bind the classes of a trace; `focus` chooses those to decode.
    pub fn focused(trace: &Trace, tasks: &[TaskDefinition], focus: Focus) -> Binding {
        let kernel = is_kernel(trace);
        let declared: HashSet<_> = trace.classes().iter().map(|c| dialect::event(c.known())).collect();
        let events = DeclaredEvents::new(trace);
        let (waking, migrations) = (kernel && events.records_wakings(), declared.contains("sched_migrate_task"));
        // perf's own records say which process a new thread belongs to, and come first.
        let named_by_perf = declared.contains("perf:fork");
        let delimiters = Delimiters::new(trace, tasks);
        let meaning = |name: &str| -> Option<Meaning> {
            let known = if kernel { classes::kernel(name) } else { classes::user(name) };
            let marked = Meaning { shape: Shape::Other, fields: &[], context: true };
            // Where both are recorded, migrations show the run queue as well.
            let queued = |m: Meaning| match m.shape {
                Shape::Fork if named_by_perf && dialect::event(name) != "perf:fork" => None,
                Shape::Wakeup if waking && migrations => None,
                Shape::Wakeup if waking => Some(Meaning { shape: Shape::Queued, context: false, ..m }),
                _ => Some(m),
            };
            known.and_then(queued).or_else(|| (!delimiters.of(name).is_empty()).then_some(marked))
        };
        let followed = events.followed(|name| meaning(name).is_some());
        let habits = if focus == Focus::Transfers { Habits::of(trace, &followed) } else { Habits::default() };
        let mut bound = Binding {
            classes: Vec::new(),
            projection: Projection::default(),
            kernel,
            page_faults: false,
            switches: Vec::new(),
            follows_switches: false,
            machine: dialect::machine(trace).map(str::to_owned),
            frames: trace.code().frames.cloned().unwrap_or_default(),
            numbers: 0,
        };
        for (i, class) in trace.classes().iter().enumerate() {
            let mut paths = Paths::new(trace, ClassId::at(i));
            let found = meaning(class.known()).and_then(|meaning| {
                let in_followed = followed.contains(&ClassId::at(i));
                if in_followed {
                    bound.page_faults |= meaning.shape == Shape::PageFault;
                    bound.switches.extend((meaning.shape == Shape::Switch).then_some(class.stream_class));
                }
                match focus {
                    Focus::Everything => {
                        let marks = delimiters.of(class.known());
                        let mut found = bind(&mut paths, meaning, in_followed, class, !marks.is_empty())?;
                        if in_followed {
                            found.marks = BoundMark::all(&mut paths, tasks, marks, &mut bound.numbers);
                        }
                        Some(Some(found))
                    }
                    _ if in_followed => {
                        let call = classes::call(class.known()).map(|event| event.call);
                        let kept = kernel && focus.keeps(meaning.shape, call, habits);
                        Some(kept.then(|| narrow(&mut paths, meaning, class.known())))
                    }
                    _ => paths.stack().map(|_| None),
                }
            });
            // The time of events that are followed is read, decoded or not.
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

/// Bind one class but for its delimiters; `None` for a twin that has nothing to add.
fn bind(paths: &mut Paths<'_>, meaning: Meaning, followed: bool, class: &Class, delimits: bool) -> Option<Bound> {
    // A sample counts without a stack, too.
    let addresses = paths.stack().or_else(|| (meaning.shape == Shape::Tick).then_some(StackSlots::NONE));
    let stack = addresses.map(|addresses| BoundStack { origin: origin_of(meaning.shape), addresses });
    if !followed && stack.is_none() {
        return None;
    }
    let with_context = meaning.context || stack.is_some() || delimits;
    let context = with_context.then(|| paths.identity(meaning.shape, |_| true));
    let mut bound = Bound {
        shape: Shape::Other,
        context,
        cpu: paths.context("cpu_id"),
        twin: !followed,
        followed_elsewhere: None,
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
        Shape::CallEntry | Shape::CallExit => classes::call(class.known()).map(|event| event.call.to_owned()),
        Shape::VectorEnter(_) => Some(classes::vector_name(class.known())),
        Shape::Tick => Some(class.name.clone()),
        Shape::TimerEnter => Some("hrtimer".to_owned()),
        _ => None,
    };
    if with_context {
        let counters =
            paths.trace.context_fields(paths.class).into_iter().filter(|f| f.is_integer && is_counter(f.name));
        bound.counters = counters.map(|field| (field.name.to_owned(), paths.context(field.name))).collect();
    }
    Some(bound)
}

/// Bind one class for its own fields and the context that names its thread.
fn narrow(paths: &mut Paths<'_>, meaning: Meaning, name: &str) -> Bound {
    let context = Some(paths.identity(meaning.shape, |name| matches!(name, "tid" | "pid" | "procname")));
    let fields = meaning.fields.iter().map(|field| paths.payload(field)).collect();
    let text = classes::call(name).map(|event| event.call.to_owned());
    let cpu = paths.context("cpu_id");
    let (counters, marks) = (Vec::new(), Vec::new());
    let (shape, twin, followed_elsewhere, stack) = (meaning.shape, false, None, None);
    Bound { shape, context, cpu, twin, followed_elsewhere, fields, stack, text, counters, marks }
}

/// The tracer's names of hardware counters; other contexts with this beginning (`perf_tid`, `perf_ip`) are no counters.
fn is_counter(name: &str) -> bool {
    name.starts_with("perf_thread_") || name.starts_with("perf_cpu_")
}
