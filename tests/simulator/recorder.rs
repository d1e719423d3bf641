//! A world as a tracer recorded it, in one of many manners: kinds of events left out, switches twice, two sessions, few
//! contexts, ids of a container, losses reported or not, another clock, perf's names.
//!
//! The manner changes the recording alone, never the schedule.

use super::World;
use super::ctf_writer::{Channel, Context, Event, TraceWriter, Value};
use super::elf::{self, Elf};
use super::kernel_code::{KERNEL_STACK, kallsyms};
use super::perf::as_perf;
use super::program::Step;
use super::random::Random;
use super::samples;
use super::state_dump::state_dump;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use whyslow::parts::base::time::Ns;
use whyslow::parts::model::environment::ENVIRONMENT_FILE;

/// The address of the program in every process.
pub const BASE: u64 = 0x5555_5555_0000;
/// Bytes between its functions.
const STEP: u64 = 64;
/// Its path in the state dump of each process.
pub const IMAGE: &str = "/opt/simulated/program";
/// The file that would hold its debug information, and that file's checksum.
const DEBUG_FILE: (&str, u32) = ("program.debug", 0x5eed_0018);

thread_local! {
    /// The functions of the one program that all processes run, by number.
    static FUNCTIONS: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
}

/// The address of a function. A world is recorded on the thread that simulated it.
pub fn address(function: &'static str) -> u64 {
    FUNCTIONS.with_borrow_mut(|functions| {
        let known = functions.iter().position(|f| *f == function);
        let at = known.unwrap_or_else(|| {
            functions.push(function);
            functions.len() - 1
        });
        assert!((at as u64 + 1) * STEP <= elf::SIZE, "more functions than the program holds");
        BASE + elf::TEXT + at as u64 * STEP
    })
}

/// The state dump of a process when tracing begins: the images that are loaded.
pub(super) fn images() -> Vec<Step> {
    let image = vec![
        ("baddr", Value::U64(BASE)),
        ("memsz", Value::U64(elf::TEXT + elf::SIZE)),
        ("path", Value::Text(IMAGE.into())),
        ("is_pic", Value::U8(1)),
        ("has_build_id", Value::U8(0)),
        ("has_debug_link", Value::U8(1)),
    ];
    // It proves the file: without it, or a build id, names would be marked.
    let link = vec![
        ("baddr", Value::U64(BASE)),
        ("crc", Value::U32(DEBUG_FILE.1)),
        ("filename", Value::Text(DEBUG_FILE.0.into())),
    ];
    let mark = |name: &'static str, fields| Step::Mark(Cow::Borrowed(name), fields);
    vec![
        Step::Spend(1_000),
        mark("lttng_ust_statedump:start", Vec::new()),
        mark("lttng_ust_statedump:bin_info", image),
        mark("lttng_ust_statedump:debug_link", link),
        mark("lttng_ust_statedump:end", Vec::new()),
        Step::Spend(5_000),
    ]
}

/// Events that may not be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Missing {
    /// `sched_waking`, `sched_wakeup`, `sched_wakeup_new`.
    Wakeups,
    /// `sched_waking` alone: `sched_wakeup` shows the waker.
    Waking,
    /// `sched_wakeup` alone.
    Wakeup,
    Migrations,
    Switches,
    /// Forks, execs, exits.
    Life,
    HrTimers,
    /// Handlers of interrupt lines and soft interrupts.
    Interrupts,
    /// Vectors of the processor.
    Vectors,
    Network,
    Block,
    Calls,
    Work,
    IdleStates,
    /// The tracer's state dump.
    Statedump,
}

impl Missing {
    fn is(self, name: &str) -> bool {
        let starts = |prefix: &str| name.starts_with(prefix);
        match self {
            Missing::Wakeups => starts("sched_wak"),
            Missing::Waking => name == "sched_waking",
            Missing::Wakeup => name == "sched_wakeup",
            Missing::Migrations => name == "sched_migrate_task",
            Missing::Switches => name == "sched_switch",
            Missing::Life => starts("sched_process_"),
            Missing::HrTimers => starts("timer_hrtimer"),
            Missing::Interrupts => starts("irq_"),
            Missing::Vectors => starts("x86_irq_vectors"),
            Missing::Network => starts("net_"),
            Missing::Block => starts("block_"),
            Missing::Calls => starts("syscall_"),
            Missing::Work => starts("workqueue_"),
            Missing::IdleStates => name == "power_cpu_idle",
            Missing::Statedump => starts("lttng_statedump"),
        }
    }
}

/// The contexts of kernel events about the running thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contexts {
    Full,
    Tid,
    None,
}

/// Switches that are recorded a second time, this much later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Twice {
    /// In the channel that has call stacks.
    WithStacks(Ns),
    /// In a channel of their own.
    InChannel(Ns),
}

/// Lost events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Losses {
    None,
    /// Windows of a CPU's events, counted by the tracer.
    Reported,
    /// Windows of a CPU's events, not counted.
    Unreported,
}

/// The tracer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Lttng,
    /// `perf data convert --to-ctf`: its names and fields.
    Perf,
}

/// How a world is recorded.
#[derive(Clone, Debug)]
pub struct Manner {
    pub missing: Vec<Missing>,
    pub contexts: Contexts,
    /// Call stacks at system calls and ticks, in a channel of their own.
    pub stacks: bool,
    /// The kernel's call stacks at switches, too, all in one channel.
    pub kernel_stacks: bool,
    /// What was counted meanwhile is beside the recording.
    pub environment: bool,
    pub twice: Option<Twice>,
    /// A second session recorded the scheduler at the same time, as a trace of its own, this much later.
    pub second_session: Option<Ns>,
    /// A second session recorded user space from so far into the recording on, each event this much later.
    pub second_user_session: Option<(Ns, Ns)>,
    /// Forks and the state dump record the ids in containers.
    pub namespaces_recorded: bool,
    pub losses: Losses,
    pub dialect: Dialect,
    /// The user-space trace is on another clock, ahead by this.
    pub user_clock_ahead: Option<Ns>,
    /// The tracer of each process writes a trace of its own, on a clock of its own with one of these frequencies in
    /// turn; none: one trace for all, in nanoseconds.
    pub user_clock_frequencies: Vec<u64>,
    /// User-space events are recorded.
    pub user: bool,
    pub seed: u64,
}

impl Default for Manner {
    fn default() -> Manner {
        Manner {
            missing: Vec::new(),
            contexts: Contexts::Full,
            stacks: true,
            kernel_stacks: false,
            environment: false,
            twice: None,
            second_session: None,
            second_user_session: None,
            namespaces_recorded: true,
            losses: Losses::None,
            dialect: Dialect::Lttng,
            user_clock_ahead: None,
            user_clock_frequencies: Vec::new(),
            user: true,
            seed: 1,
        }
    }
}

/// A recording.
pub struct Recorded {
    pub traces: Vec<PathBuf>,
    /// The folder with the program, for `--symbols`.
    pub symbols: PathBuf,
    /// The kernel's functions, for `--kallsyms`.
    pub kallsyms: PathBuf,
}

const CLOCK: u128 = 0xf52e_ea38_2b46_45a3_8120_bd68_2c7a_c0ea;
pub(super) const HOST: &str = "simulated";

/// All events, before a manner of recording leaves some out or changes them.
#[derive(Clone, Default)]
pub struct Events {
    /// The kernel's events, the state dump included.
    pub kernel: Vec<Event>,
    /// Of them those that are recorded a second time with call stacks.
    pub stacks: Vec<Event>,
    pub user: Vec<Event>,
    /// From when to when the tracer ran.
    pub span: (Ns, Ns),
    pub cpus: usize,
}

impl Events {
    /// Everything of a world.
    pub fn of(world: &World) -> Events {
        let mut kernel = state_dump(world);
        kernel.extend(world.kernel.iter().cloned());
        let stacks = world.kernel.iter().filter(|e| with_stack(e)).cloned().collect();
        Events { kernel, stacks, user: world.user.clone(), span: world.schedule.span, cpus: world.cpus }
    }
}

/// Write a world into a new folder; one that exists is removed first.
pub fn record(world: &World, manner: &Manner, folder: &Path) -> Recorded {
    let traces = write(Events::of(world), manner, folder);
    let symbols = folder.join("bin");
    std::fs::create_dir_all(&symbols).unwrap();
    let program = FUNCTIONS.with_borrow(|functions| {
        let bare = Elf { debug_link: Some((DEBUG_FILE.0.to_owned(), DEBUG_FILE.1)), ..Elf::default() };
        let place = |at: usize| elf::TEXT + at as u64 * STEP;
        functions.iter().enumerate().fold(bare, |elf, (at, f)| elf.function(place(at), STEP, f))
    });
    std::fs::write(symbols.join("program"), program.bytes()).unwrap();
    let kernel = symbols.join("kallsyms");
    std::fs::write(&kernel, kallsyms()).unwrap();
    if manner.environment {
        std::fs::write(folder.join(ENVIRONMENT_FILE), samples::file(&world.environment)).unwrap();
    }
    Recorded { traces, symbols, kallsyms: kernel }
}

/// Write events in this manner into a new folder; one that exists is removed first. Returns the traces.
pub fn write(events: Events, manner: &Manner, folder: &Path) -> Vec<PathBuf> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).unwrap();
    let mut traces = vec![folder.join("kernel")];
    let (span, user_events) = (events.span, events.user.clone());
    let kernel = kernel(events, manner);
    if let Some(delay) = manner.second_session {
        let mut second = TraceWriter::new(HOST, "kernel", 0x22, CLOCK);
        second.span = (span.0 + delay, span.1 + delay);
        let mut events = kernel.channels[0].events.clone();
        events.retain(|e| e.name.starts_with("sched_"));
        events.iter_mut().for_each(|e| e.time += delay);
        let contexts = kernel.channels[0].contexts.clone();
        second.channels.push(Channel { name: "second".into(), contexts, events, discarded: Vec::new() });
        second.write(&folder.join("kernel2"));
        traces.push(folder.join("kernel2"));
    }
    kernel.write(&folder.join("kernel"));
    if let Some((from, delay)) = manner.second_user_session {
        let mut events = user_events.clone();
        events.retain(|e| e.time >= span.0 + from);
        events.iter_mut().for_each(|e| e.time += delay);
        let mut second = user(events, (span.0 + from, span.1 + delay), manner);
        second.uuid ^= 0x77;
        second.write(&folder.join("ust2"));
        traces.push(folder.join("ust2"));
    }
    if manner.user && !manner.user_clock_frequencies.is_empty() {
        traces.extend(user_by_process(user_events, span, manner, folder));
    } else if manner.user && !user_events.is_empty() {
        user(user_events, span, manner).write(&folder.join("ust"));
        traces.push(folder.join("ust"));
    }
    traces
}

/// A trace per process, each on a clock of its own.
fn user_by_process(events: Vec<Event>, span: (Ns, Ns), manner: &Manner, folder: &Path) -> Vec<PathBuf> {
    let mut processes: BTreeMap<i32, Vec<Event>> = BTreeMap::new();
    events.into_iter().for_each(|event| processes.entry(event.on.pid).or_default().push(event));
    let frequencies = manner.user_clock_frequencies.iter().cycle();
    let write = |((pid, events), frequency): ((i32, Vec<Event>), &u64)| {
        let mut trace = user(events, span, manner);
        trace.uuid ^= pid as u128;
        trace.clock_uuid = Some(CLOCK ^ 0x7777 ^ pid as u128);
        trace.clock_frequency = *frequency;
        trace.environment.push(("vpid".to_owned(), pid.to_string()));
        let path = folder.join(format!("ust-{pid}"));
        trace.write(&path);
        path
    };
    processes.into_iter().zip(frequencies).map(write).collect()
}

fn user(events: Vec<Event>, span: (Ns, Ns), manner: &Manner) -> TraceWriter {
    let mut trace = TraceWriter::new(HOST, "ust", 0x33, CLOCK);
    let ahead = manner.user_clock_ahead.unwrap_or(0);
    if ahead != 0 {
        trace.clock_uuid = Some(CLOCK ^ 0x5555);
        trace.clock_offset = ahead;
    }
    trace.span = span;
    let contexts = vec![Context::Vpid, Context::Vtid, Context::Procname];
    trace.channels.push(Channel { name: "uchan".into(), contexts, events, discarded: Vec::new() });
    trace
}

fn kernel(events: Events, manner: &Manner) -> TraceWriter {
    let mut trace = TraceWriter::new(HOST, "kernel", 0x11, CLOCK);
    trace.span = events.span;
    let cpus = events.cpus;
    let (mut events, mut stacks) = (events.kernel, events.stacks);
    for list in [&mut events, &mut stacks] {
        list.retain(|e| !manner.missing.iter().any(|m| m.is(&e.name)));
        if !manner.kernel_stacks {
            list.iter_mut().for_each(|e| e.fields.retain(|(name, _)| *name != KERNEL_STACK));
        }
    }
    if !manner.namespaces_recorded {
        events.retain(|e| e.name != "lttng_statedump_process_pid_ns");
        for event in events.iter_mut().filter(|e| e.name == "sched_process_fork") {
            event.fields.retain(|(name, _)| *name != "vtids");
        }
    }
    let discarded = lose(&mut events, manner, trace.span, cpus);
    let mut contexts = match manner.contexts {
        Contexts::Full => vec![Context::Pid, Context::Tid, Context::Procname, Context::Ppid],
        Contexts::Tid => vec![Context::Tid],
        Contexts::None => Vec::new(),
    };
    if manner.kernel_stacks {
        contexts.extend([Context::KernelStack, Context::UserStack]);
    }
    if manner.dialect == Dialect::Perf {
        let events = events.into_iter().map(|e| as_perf(e, manner.stacks)).collect();
        let environment =
            [("host", HOST), ("domain", "kernel"), ("sysname", "Linux"), ("release", "6.1.0"), ("tracer_name", "perf")];
        trace.environment = environment.map(|(k, v)| (k.to_owned(), v.to_owned())).to_vec();
        trace.channels.push(Channel { name: "perf_stream".into(), contexts: Vec::new(), events, discarded });
        return trace;
    }
    let twins = match manner.twice {
        Some(Twice::InChannel(delay)) => switches(&events, delay),
        _ => Vec::new(),
    };
    trace.channels.push(Channel { name: "kchan".into(), contexts: contexts.clone(), events, discarded });
    if manner.stacks && !manner.kernel_stacks {
        let mut with = vec![Context::Pid, Context::Tid, Context::Procname, Context::UserStack];
        if manner.contexts != Contexts::Full {
            with = [contexts.clone(), vec![Context::UserStack]].concat();
        }
        let mut events = stacks;
        if let Some(Twice::WithStacks(delay)) = manner.twice {
            events.extend(switches(&trace.channels[0].events, delay));
        }
        trace.channels.push(Channel { name: "stacks".into(), contexts: with, events, discarded: Vec::new() });
    }
    if !twins.is_empty() {
        trace.channels.push(Channel { name: "twins".into(), contexts, events: twins, discarded: Vec::new() });
    }
    trace
}

/// Stacks are usually recorded at calls and ticks.
fn with_stack(event: &Event) -> bool {
    event.stack.is_some() && (event.name.starts_with("syscall_entry") || event.name == "timer_hrtimer_expire_entry")
}

fn switches(events: &[Event], delay: Ns) -> Vec<Event> {
    let mut twins: Vec<Event> = events.iter().filter(|e| e.name == "sched_switch").cloned().collect();
    twins.iter_mut().for_each(|e| e.time += delay);
    twins
}

/// Windows of 4 % of the recording's length, one or two on each CPU.
fn lose(events: &mut Vec<Event>, manner: &Manner, (start, end): (Ns, Ns), cpus: usize) -> Vec<(u32, Ns, u64)> {
    if manner.losses == Losses::None {
        return Vec::new();
    }
    let mut dice = Random::new(manner.seed ^ 0x1055);
    let length = (end - start) / 25;
    let mut reported: Vec<(u32, Ns, u64)> = Vec::new();
    for cpu in 0..cpus as u32 {
        for _ in 0..1 + dice.below(2) {
            let from = dice.between(start + length, end - 2 * length);
            let before = events.len();
            events.retain(|e| e.cpu != cpu || !(from..from + length).contains(&e.time));
            let lost = (before - events.len()) as u64;
            if manner.losses == Losses::Reported && lost > 0 {
                reported.push((cpu, from, lost));
            }
        }
    }
    reported
}
