//! A simulated machine: CPUs with run queues, threads that run programs, locks that are handed over, disks with a
//! queue, timers, packets over loopback, pipes, signals, children, kernel workers and interrupts. The results are the
//! events of a tracer and the schedule as it was.
//!
//! In: a [`Machine`] with processes, threads and what they share; each thread runs a [`Program`], which gives a list of
//! [`Op`]s a turn. Out of [`Machine::run`]: a [`World`], that is the events ([`recorder`] makes traces of them, in many
//! manners) and the [`truth::Schedule`], which gives the state of every thread at every nanosecond and, followed
//! through all waits, which thread delayed it. The truth knows the owners of locks and the heads of queues, never
//! wake-ups: it shares no rule with the program that it tests. One seed, one machine, one recording.
//!
//! ```ignore
//! let mut m = Machine::new(2, seed);
//! let (server, journal) = (m.process("server"), ...);
//! let (lock, (to, from)) = (m.mutex(), m.connection());
//! m.thread(server, "worker", turns(move |dice, _| vec![
//!     Op::Receive(to),
//!     Op::Mark("app:request_begin", vec![]),
//!     Op::Call("handle_request", vec![Op::Run(100_000), Op::Lock(lock), Op::Run(50_000), Op::Unlock(lock)]),
//!     Op::Mark("app:request_end", vec![]),
//!     Op::Send(from, 0),
//! ]));
//! let world = m.run(2_000_000_000);
//! let recorded = recorder::record(&world, &Manner::default(), &folder);
//! ```
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

mod agenda;
pub mod bandwidth;
mod calls;
mod hindrances;
mod interrupts;
pub mod kernel_code;
mod perf;
pub mod plants;
pub mod program;
pub mod recorder;
mod rests;
mod samples;
mod scheduler;
pub mod service;
mod shared;
mod stalls;
mod state_dump;
mod system_calls;
pub mod truth;

use crate::support::{ask, ctf_writer, elf, random};
use agenda::{Action, Agendum};
use ctf_writer::{Event, Task, Value};
use program::{Program, Step};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;
use truth::{Schedule, What};
use whyslow::parts::base::time::Ns;
use whyslow::parts::model::environment::EnvironmentLine;

pub use program::{Op, turns};
pub use random::Random;

/// Priorities of threads.
const PRIORITIES: usize = 3;
/// A time slice.
const SLICE: Ns = 4_000_000;

/// Small handles of the parts of a machine.
macro_rules! handles {
    ($($name:ident),*) => { $(
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub usize);
    )* };
}
handles! { Process, Thread, Mutex, Disk, Channel }

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Running,
    Queued,
    Waiting,
    Dead,
}

struct ThreadState {
    task: Rc<Task>,
    process: Process,
    /// The smaller is served first.
    priority: usize,
    /// CPUs on which it may run.
    allowed: Vec<usize>,
    program: Option<Program>,
    turn: u64,
    steps: VecDeque<Step>,
    functions: Vec<&'static str>,
    state: State,
    cpu: usize,
    /// Of its time slice.
    left: Ns,
    /// In a system call or a page fault.
    in_call: bool,
    fault: Option<kernel_code::Fault>,
    message: u64,
    /// The channel that gets a token when it ends.
    parent: Option<Channel>,
    kernel: bool,
    born: Ns,
}

#[derive(Default)]
struct Cpu {
    current: Option<usize>,
    queues: [VecDeque<usize>; PRIORITIES],
    /// When the running thread began to spend its time; `None` while it does not.
    spending: Option<Ns>,
    epoch: u64,
    interrupt: Option<interrupts::Handling>,
    pending: VecDeque<interrupts::Interrupt>,
    need_reschedule: bool,
    /// When its thread came.
    switched: Ns,
    /// It is paused until then.
    stalled: Option<Ns>,
    /// For how long it has.
    stolen: Ns,
    /// It has no tick while one thread is to run.
    tickless: bool,
    /// In tenths, how many times as long programs take there as at its highest frequency; 0 where that never changed.
    slowness: Ns,
    /// It is in an idle state.
    rests: bool,
}

#[derive(Default)]
struct MutexState {
    owner: Option<usize>,
    waiters: VecDeque<usize>,
}

struct DiskState {
    /// Nanoseconds of each request, and of each of its KiB.
    seek: Ns,
    per_kib: Ns,
    irq_cpu: usize,
    queue: VecDeque<calls::Request>,
    sector: u64,
}

/// Threads leave tokens here, or wait for them: a socket, a pipe, a semaphore, a queue of signals or of work.
#[derive(Default)]
struct ChannelState {
    tokens: VecDeque<u64>,
    waiters: VecDeque<usize>,
    tcp: Option<ctf_writer::Tcp>,
}

struct ProcessState {
    name: Rc<str>,
    pid: i32,
    user: bool,
    contained: bool,
    /// The number of its quota.
    bandwidth: Option<usize>,
    halt: Option<stalls::Halt>,
}

/// A machine.
pub struct Machine {
    now: Ns,
    dice: Random,
    cpus: Vec<Cpu>,
    threads: Vec<ThreadState>,
    processes: Vec<ProcessState>,
    mutexes: Vec<MutexState>,
    disks: Vec<DiskState>,
    channels: Vec<ChannelState>,
    bandwidths: Vec<bandwidth::Bandwidth>,
    samples: Vec<EnvironmentLine>,
    rests: Option<rests::Rests>,
    agenda: BinaryHeap<Reverse<Agendum>>,
    agenda_number: u64,
    next_tid: i32,
    worker: Option<Channel>,
    idle: Rc<Task>,
    kernel_events: Vec<Event>,
    user_events: Vec<Event>,
    schedule: Schedule,
}

/// The result of a run: events and schedule.
pub struct World {
    /// The events of a kernel tracer that records everything, in order of time.
    pub kernel: Vec<Event>,
    /// The same for user space.
    pub user: Vec<Event>,
    /// The schedule that produced them.
    pub schedule: Schedule,
    /// CPUs.
    pub cpus: usize,
    /// The initial threads, for state dumps.
    pub initial: Vec<Rc<Task>>,
    /// Processes that emit user-space events (name, pid), and whether they run in a container.
    pub processes: Vec<(Rc<str>, i32, bool)>,
    /// What was counted meanwhile.
    pub environment: Vec<EnvironmentLine>,
    /// End of the recording.
    pub end: Ns,
}

impl Machine {
    /// A machine with this many CPUs.
    pub fn new(cpus: usize, seed: u64) -> Machine {
        let idle = Rc::new(Task { comm: "swapper/0".into(), ..Task::default() });
        let mut machine = Machine {
            now: 1_000_000_000,
            dice: Random::new(seed),
            cpus: (0..cpus).map(|_| Cpu::default()).collect(),
            threads: Vec::new(),
            processes: Vec::new(),
            mutexes: Vec::new(),
            disks: Vec::new(),
            channels: Vec::new(),
            bandwidths: Vec::new(),
            samples: Vec::new(),
            rests: None,
            agenda: BinaryHeap::new(),
            agenda_number: 0,
            next_tid: 1000,
            worker: None,
            idle,
            kernel_events: Vec::new(),
            user_events: Vec::new(),
            schedule: Schedule::new(cpus),
        };
        for cpu in 0..cpus {
            let at = machine.now + 4_000_000 * (cpu as Ns + 1) / (cpus as Ns + 1);
            machine.later(at, Action::Tick(cpu));
        }
        machine.later(machine.now, Action::Sample(0));
        machine.create_worker();
        machine
    }

    /// A process; its threads share its id and its user-space trace.
    pub fn process(&mut self, name: &str) -> Process {
        // Ids as if other processes had been started between them.
        self.next_tid += 1 + self.dice.below(40) as i32;
        let (name, pid) = (name.into(), self.next_tid);
        self.processes.push(ProcessState { name, pid, user: true, contained: false, bandwidth: None, halt: None });
        Process(self.processes.len() - 1)
    }

    /// The process runs in a container: its user-space events carry small ids, counted in the container.
    pub fn contain(&mut self, process: Process) {
        self.processes[process.0].contained = true;
    }

    /// A thread that runs a program on any CPU, like all others.
    pub fn thread(&mut self, process: Process, name: &str, program: Program) -> Thread {
        let all = (0..self.cpus.len()).collect();
        self.thread_on(process, name, program, 1, all)
    }

    /// The same, before all others in the run queue.
    pub fn urgent_thread(&mut self, process: Process, name: &str, program: Program) -> Thread {
        let all = (0..self.cpus.len()).collect();
        self.thread_on(process, name, program, 0, all)
    }

    /// The same with a priority (0 is served before 1, and that before 2) and the CPUs on which it may run.
    pub fn thread_on(
        &mut self,
        process: Process,
        name: &str,
        program: Program,
        priority: usize,
        allowed: Vec<usize>,
    ) -> Thread {
        let first = !self.threads.iter().any(|t| t.process == process);
        let thread = self.create(process, name, program, priority, allowed, None);
        if first {
            self.threads[thread].steps.extend(recorder::images());
        }
        let cpu = self.threads[thread].cpu;
        self.threads[thread].state = State::Queued;
        self.schedule.thread(thread, self.now, What::Queue(cpu));
        self.cpus[cpu].queues[priority].push_back(thread);
        self.later(self.now + 1000 + cpu as Ns, Action::Reschedule(cpu));
        Thread(thread)
    }

    fn create(
        &mut self,
        process: Process,
        name: &str,
        program: Program,
        priority: usize,
        allowed: Vec<usize>,
        parent: Option<Channel>,
    ) -> usize {
        let own = &self.processes[process.0];
        let first = !self.threads.iter().any(|t| t.process == process);
        let pid = own.pid;
        let tid = if first { pid } else { self.next_tid + 1 };
        let contained = own.contained;
        self.next_tid = self.next_tid.max(tid);
        // In a container ids begin at 1: the first process of the machine's containers is 1, later threads follow.
        let base = self.processes.iter().filter(|p| p.contained).map(|p| p.pid).min().unwrap_or(0) - 1;
        let inside = |id: i32| if contained { id - base } else { id };
        // The kernel's own threads are children of kthreadd, all others of init.
        let ppid = if own.user { 1 } else { 2 };
        let task = Rc::new(Task { tid, pid, ppid, vtid: inside(tid), vpid: inside(pid), comm: name.into() });
        let cpu = allowed[self.dice.below(allowed.len())];
        let at = self.threads.len();
        self.schedule.create(Rc::clone(&task), self.now);
        self.threads.push(ThreadState {
            task,
            process,
            priority,
            allowed,
            program: Some(program),
            turn: 0,
            steps: VecDeque::new(),
            functions: vec!["main"],
            state: State::Waiting,
            cpu,
            left: SLICE,
            in_call: false,
            fault: None,
            message: 0,
            parent,
            kernel: false,
            born: self.now,
        });
        at
    }

    fn later(&mut self, at: Ns, action: Action) {
        self.agenda_number += 1;
        self.agenda.push(Reverse(Agendum(at, self.agenda_number, action)));
    }

    fn emit(&mut self, cpu: usize, name: &'static str, fields: Vec<(&'static str, Value)>) {
        let current = self.cpus[cpu].current;
        let on = current.map_or_else(|| Rc::clone(&self.idle), |t| Rc::clone(&self.threads[t].task));
        self.kernel_events.push(Event { time: self.now, cpu: cpu as u32, name: name.into(), fields, on, stack: None });
    }

    /// The same with the user-space stack of the running thread.
    fn emit_with_stack(
        &mut self,
        cpu: usize,
        name: std::borrow::Cow<'static, str>,
        fields: Vec<(&'static str, Value)>,
    ) {
        self.emit(cpu, "", fields);
        let stack = self.cpus[cpu].current.filter(|t| !self.threads[*t].kernel).map(|t| self.stack(t));
        let kernel = self.kernel_stack(cpu, &name);
        let event = self.kernel_events.last_mut().unwrap();
        event.fields.push((kernel_code::KERNEL_STACK, kernel));
        (event.name, event.stack) = (name, stack);
    }

    fn stack(&self, thread: usize) -> Rc<[u64]> {
        self.threads[thread].functions.iter().rev().map(|f| recorder::address(f) + 16).collect()
    }

    /// Let this much time pass; returns the world as it was recorded.
    pub fn run(mut self, length: Ns) -> World {
        let (start, end) = (self.now, self.now + length);
        let initial = self.threads.iter().map(|t| Rc::clone(&t.task)).collect();
        while let Some(Reverse(Agendum(at, _, action))) = self.agenda.pop() {
            if at > end {
                break;
            }
            self.now = at;
            if let Some(until) = action.cpu().and_then(|cpu| self.cpus[cpu].stalled) {
                self.later(until, action);
                continue;
            }
            match action {
                Action::Spent(cpu, epoch) => {
                    if self.cpus[cpu].epoch == epoch {
                        self.spent(cpu);
                    }
                }
                Action::Interrupt(cpu, interrupt) => self.interrupt(cpu, interrupt),
                Action::Handle(cpu) => self.handle(cpu),
                Action::Reschedule(cpu) => self.look(cpu),
                Action::Tick(cpu) => {
                    self.tick(cpu);
                    self.later(self.now + 4_000_000, Action::Tick(cpu));
                }
                Action::Period(group) => self.period(group),
                Action::Stall(cpu, length) => self.stall(cpu, length),
                Action::GoOn(cpu, length) => self.go_on(cpu, length),
                Action::Clock(cpu, slowness) => self.change_clock(cpu, slowness),
                Action::Sample(number) => self.sample(number),
            }
        }
        self.now = end;
        let last = self.line();
        self.samples.push(last);
        self.schedule.span = (start, end);
        let processes = self.processes.iter().filter(|p| p.user).map(|p| (Rc::clone(&p.name), p.pid, p.contained));
        World {
            processes: processes.collect(),
            kernel: self.kernel_events,
            user: self.user_events,
            schedule: self.schedule,
            cpus: self.cpus.len(),
            initial,
            environment: self.samples,
            end,
        }
    }
}

/// The answer on the requests of a recorded machine.
pub fn explained(recorded: &recorder::Recorded) -> serde_json::Value {
    let mut command = ask::program();
    command.args(["explain", "--json", "--task", "app:request", "--symbols"]).arg(&recorded.symbols);
    let out = ask::run(command.args(&recorded.traces));
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}
