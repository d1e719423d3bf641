//! What a trace recorded: its recorder, its events by topic, and its call stacks.
//!
//! In: a trace. Out: [`Recorded`]. LTTng and perf declare the events that were enabled. trace-cmd may declare those of
//! all systems, and perf's own records of switches have no declaration; there a sample of the records decides
//! (`RecordEstimates`). Cost: a look at each class, and for perf and trace-cmd the headers of some records.

use super::bind::is_kernel;
use super::dialect;
use super::recorded::RecordEstimates;
use super::signature;
use crate::advice::topic::{TOPICS, lttng_name};
use crate::input::record::{ClassId, Scope};
use crate::input::stream::Class;
use crate::input::tracepoint::PROBED;
use crate::input::{Source, Trace};
use crate::model::event_name::{ENVIRONMENT, ESSENTIAL, SYSTEM_CALLS, USER_SPACE, is_plain_name};
use crate::model::recorded::{Recorded, StackKind};
use crate::model::recorder::TraceRecorder;

/// Further events that are kept.
const OTHERS: usize = 40;

/// What a trace recorded, with what was counted beside it.
pub fn recorded_by(source: &Source) -> Recorded {
    let mut recorded = recorded(&source.trace);
    if source.environment.is_some() {
        recorded.events.insert(ENVIRONMENT.to_owned());
    }
    recorded
}

/// What a trace recorded.
pub fn recorded(trace: &Trace) -> Recorded {
    let host = trace.host().unwrap_or_default().to_owned();
    let mut recorded = Recorded { host, recorder: trace.recorder(), ..Recorded::default() };
    if !is_kernel(trace) {
        recorded.events.insert(USER_SPACE.to_owned());
        return recorded;
    }
    let format = trace.format();
    let may_lack_records = |class: &Class| (format.declares_unrecorded)(class, trace.classes().len());
    let samples = match format.stacks_are_records || trace.classes().iter().any(may_lack_records) {
        true => RecordEstimates::sample(trace, |_| true),
        false => RecordEstimates::default(),
    };
    let occurs = |class: ClassId| samples.of(class).records > 0.0;
    for (at, class) in trace.classes().iter().enumerate() {
        let id = ClassId::at(at);
        if !may_lack_records(class) || occurs(id) {
            add_event(&mut recorded, trace, id, class);
            add_stacks(&mut recorded, trace, id, class, occurs(id));
        }
    }
    if trace.as_perf().is_some_and(|perf| !perf.copies_stacks())
        && (recorded.stacks.contains(&StackKind::UserAtSwitches) || recorded.stacks.contains(&StackKind::Samples))
    {
        recorded.stacks.insert(StackKind::ByFramePointer);
    }
    if recorded.recorder == TraceRecorder::Perf {
        // It has records of its own about threads.
        let of_threads = |event: &&&str| event.starts_with("sched:sched_process_") || event.starts_with("task:");
        let events = TOPICS.iter().flat_map(|topic| topic.events).filter(of_threads);
        recorded.events.extend(events.map(|event| (*event).to_owned()));
    }
    recorded
}

/// The name by which samples are known, whatever was sampled.
const SAMPLE: &str = "perf:tick";

/// True for a trace that may hold samples of a profiler.
pub fn has_samples(trace: &Trace) -> bool {
    trace.classes().iter().any(|class| class.known() == SAMPLE)
}

/// True for a trace with samples in which no event shows which threads run. `recorded`: what it recorded.
pub fn is_profile(trace: &Trace, recorded: &Recorded) -> bool {
    has_samples(trace) && !recorded.events.contains(ESSENTIAL)
}

/// Add the event of a class.
fn add_event(recorded: &mut Recorded, trace: &Trace, id: ClassId, class: &Class) {
    // Nothing follows from its events: another's say the same, or only a sample of them was recorded.
    if class.known() == Class::UNKNOWN {
        return;
    }
    let known = dialect::event(class.known());
    let mut events = TOPICS.iter().flat_map(|topic| topic.events);
    let event = match &*known {
        call if call.starts_with("syscall_entry_") => Some(SYSTEM_CALLS[0]),
        call if call.starts_with("syscall_exit_") => Some(SYSTEM_CALLS[1]),
        "perf:switch_out" | "perf:switch_preempted" => Some(ESSENTIAL),
        "sched_process_fork:tids" => Some("sched:sched_process_fork"),
        known => events.find(|event| lttng_name(event) == known).copied(),
    };
    if let Some(event) = event {
        recorded.events.insert(event.to_owned());
        return;
    }
    let is_event = match recorded.recorder {
        TraceRecorder::Perf => !class.name.starts_with("perf:") && class.name.contains(':'),
        TraceRecorder::Lttng => !class.name.starts_with("lttng_"),
        TraceRecorder::TraceCmd => {
            !OF_FTRACE.contains(&class.name.as_str()) && !class.name.starts_with(signature::MARKERS)
        }
        // The names of their other events are no options.
        _ => false,
    };
    let fields = trace.payload_fields(id);
    // Counters and clocks have no fields; probes are removed when their recording ends.
    let is_event = is_event && !fields.is_empty() && !fields.iter().any(|field| PROBED.contains(&field.name));
    // The topics' own events are few; these may be thousands.
    if is_event && is_plain_name(&class.name) && recorded.events.len() < OTHERS {
        recorded.events.insert(class.name.clone());
    }
}

/// Formats of the tracer itself, which no option names.
const OF_FTRACE: [&str; 16] = [
    "function",
    "funcgraph_entry",
    "funcgraph_exit",
    "fgraph_retaddr_entry",
    "context_switch",
    "wakeup",
    "kernel_stack",
    "user_stack",
    "bprint",
    "print",
    "raw_data",
    "bputs",
    "mmiotrace_rw",
    "mmiotrace_map",
    "branch",
    "hwlat",
];

/// Add the call stacks that records of a class have.
fn add_stacks(recorded: &mut Recorded, trace: &Trace, id: ClassId, class: &Class, occurs: bool) {
    let has = |name: &str| {
        [Scope::Payload, Scope::SpecificContext, Scope::CommonContext].iter().any(|s| trace.has_field(id, *s, name))
    };
    let chain = has(dialect::CALL_CHAIN);
    let (user, kernel) = (has("callstack_user") || chain, has("callstack_kernel") || chain);
    let are_records = trace.format().stacks_are_records;
    match &*dialect::event(class.known()) {
        // Stacks of trace-cmd are records of their own.
        "user_stack" if are_records && occurs => drop(recorded.stacks.insert(StackKind::UserAtSwitches)),
        "kernel_stack" if are_records && occurs => drop(recorded.stacks.insert(StackKind::KernelAtSwitches)),
        _ if are_records => {}
        "sched_switch" => {
            recorded.stacks.extend(user.then_some(StackKind::UserAtSwitches));
            recorded.stacks.extend(kernel.then_some(StackKind::KernelAtSwitches));
        }
        "perf:tick" | "timer_hrtimer_expire_entry" | "lttng_profile:on_cpu_sample" => {
            recorded.stacks.extend(user.then_some(StackKind::Samples));
        }
        _ => {}
    }
}
