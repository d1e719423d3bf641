//! Programs that run on a machine of a few CPUs, and what `perf record` writes of them.
//!
//! In: a seed. Out: a perf.data, the ELF files of the programs, and the truth: how long each thread ran, and in which
//! functions. The scheduler gives each CPU the thread that waits the longest, for a millisecond at a time; threads run
//! in functions, sleep, create threads, processes and programs. A profiler takes samples by a clock, one for each
//! thread or one for each CPU, and perhaps by a counter besides; its rings are written one behind the other, as perf
//! empties them, so that records of two rounds are out of order.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod perf_file;
mod runs;

use super::elf::{Elf, TEXT};
use super::random::Random;
use perf_file::Writer;
pub use runs::{Run, Slowdown};
use runs::{repeat, slow_down, vary_sleeps};
use std::collections::BTreeMap;

/// The step of time in which threads run, in ns.
const STEP: u64 = 50_000;
/// How long a thread has a CPU while others wait, in steps.
const SLICE: u64 = 20;
/// Where the text of a program is in memory.
const BASE: u64 = 0x5555_5555_4000;
/// Bytes of a function.
const FUNCTION_BYTES: u64 = 0x100;
/// Functions of a program below `main`.
const FUNCTIONS: usize = 4;
/// The process of the recorded command.
const COMMAND: i32 = 500;
/// A process that runs before and after.
const STRANGER: i32 = 77;

/// How it is recorded.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// `-a`: all processes, one clock for each CPU.
    pub all: bool,
    /// `-g`.
    pub chains: bool,
    /// `-F`: the period of each sample differs.
    pub frequency: bool,
    /// Name and number of a software clock.
    pub clock: (&'static str, u64),
    /// A counter of cycles besides.
    pub counter: bool,
    /// ns between two samples.
    pub period: u64,
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    /// ns on a CPU, by the name of the thread, of the command and its descendants.
    pub threads: BTreeMap<String, u64>,
    /// How often it got a CPU.
    pub runs: BTreeMap<String, u64>,
    /// ns by the innermost function of the program.
    pub functions: BTreeMap<String, u64>,
}

/// A generated profile.
#[derive(Clone, Debug)]
pub struct Generated {
    pub recorded: Recorded,
    pub truth: Truth,
    /// The file as perf writes it.
    pub file: Vec<u8>,
    /// The same records in order of time.
    pub sorted: Vec<u8>,
    /// File names and contents of the programs.
    pub programs: Vec<(String, Vec<u8>)>,
    /// The name of the recorded program.
    pub command: String,
    /// Its functions.
    pub functions: Vec<String>,
}

/// A program: its name and functions.
#[derive(Clone, Debug)]
struct Program {
    name: String,
    functions: Vec<String>,
    id: [u8; 20],
}

impl Program {
    fn elf(&self) -> Vec<u8> {
        let mut elf = Elf::default().id(&self.id).function(TEXT, FUNCTION_BYTES, "main");
        for (at, name) in (1..).zip(&self.functions) {
            elf = elf.function(TEXT + at * FUNCTION_BYTES, FUNCTION_BYTES, name);
        }
        elf.bytes()
    }

    fn path(&self) -> String {
        format!("/opt/app/{}", self.name)
    }
}

/// An address in a function; 0 is `main`.
fn address(function: usize, offset: usize) -> u64 {
    BASE + TEXT + function as u64 * FUNCTION_BYTES + 4 + offset as u64
}

#[derive(Clone, Debug)]
enum Do {
    /// Run for this many steps in a function.
    Run(usize, u64),
    Sleep(u64),
    /// Create a thread of a name.
    Thread(String, Vec<Do>),
    /// Create a process that executes a program.
    Process(usize, Vec<Do>),
}

struct Thread {
    pid: i32,
    tid: i32,
    name: String,
    program: usize,
    left: Vec<Do>,
    wakes: u64,
    /// Since when it waits for a CPU.
    ready: u64,
    /// ns until its clock and its counter make a sample.
    until: [u64; 2],
    periods: [u64; 2],
    ended: bool,
}

/// The work of a thread: most of it in `heavy`.
fn work(heavy: usize, steps: u64, dice: &mut Random) -> Vec<Do> {
    let mut all = Vec::new();
    let mut left = steps;
    while left > 0 {
        let function = if dice.below(100) < 60 { heavy } else { dice.below(FUNCTIONS) };
        let now = left.min(4 + dice.below(60) as u64);
        left -= now;
        all.push(Do::Run(function + 1, now));
        if dice.once_in(3) {
            all.push(Do::Sleep(1 + dice.below(80) as u64));
        }
    }
    all.reverse();
    all
}

struct World {
    recorded: Recorded,
    programs: Vec<Program>,
    threads: Vec<Thread>,
    writer: Writer,
    truth: Truth,
    next_id: i32,
    dice: Random,
}

/// A profile of a seed.
pub fn generate(seed: u64) -> Generated {
    generate_run(seed, None)
}

/// A profile of one of the runs of a seed's programs: all do the same work, but for the slowdown. `None` is the run of
/// [`generate`].
pub fn generate_run(seed: u64, run: Option<Run>) -> Generated {
    let mut dice = Random::new(seed);
    let recorded = Recorded {
        all: dice.once_in(3),
        chains: dice.once_in(2),
        frequency: dice.once_in(2),
        clock: [("cpu-clock", 0), ("task-clock", 1)][dice.below(2)],
        counter: dice.once_in(3),
        period: [500_000, 1_000_000, 250_000][dice.below(3)],
    };
    let mut program = |name: &str, verbs: [&str; FUNCTIONS]| Program {
        name: format!("{name}{}", dice.below(90)),
        functions: verbs.iter().map(|verb| format!("{verb}_{}", dice.below(1000))).collect(),
        id: std::array::from_fn(|_| dice.below(256) as u8),
    };
    let programs = vec![
        program("server", ["parse", "rank", "hash", "store"]),
        program("helper", ["split", "sort", "merge", "flush"]),
        program("stranger", ["mine", "spin", "poll", "sweep"]),
    ];
    let cpus = 1 + dice.below(4);
    let writer = Writer::new(&recorded, cpus);
    let command = programs[0].name.clone();
    let mut world =
        World { recorded, programs, threads: Vec::new(), writer, truth: Truth::default(), next_id: COMMAND, dice };
    world.begin();
    if let Some(run) = run {
        world.dice = Random::new(seed.wrapping_mul(1_000).wrapping_add(run.number));
        for thread in world.threads.iter_mut().filter(|thread| thread.pid == COMMAND) {
            repeat(&mut thread.left, run.repeats);
            vary_sleeps(&mut thread.left, &mut world.dice);
            if let Some(slowdown) = run.slowdown {
                slow_down(&mut thread.left, slowdown, &mut 0.0);
            }
        }
    }
    world.run(cpus);
    let World { recorded, programs, truth, mut writer, mut dice, .. } = world;
    let [file, sorted] = writer.files(&programs[0].path(), &mut dice);
    let functions = programs[0].functions.clone();
    let programs = programs.iter().map(|program| (program.name.clone(), program.elf())).collect();
    Generated { recorded, truth, file, sorted, programs, command, functions }
}

impl World {
    /// What is there at the beginning: a stranger, and the command before it executes its program.
    fn begin(&mut self) {
        let heavy = self.dice.below(FUNCTIONS);
        let workers = self.dice.below(8);
        let mut main = Vec::new();
        for worker in 0..workers {
            let steps = 2_000 + self.dice.below(4_000) as u64;
            main.push(Do::Thread(format!("work-{worker}"), work(heavy, steps, &mut self.dice)));
            main.push(Do::Sleep(1 + self.dice.below(200) as u64));
        }
        if self.dice.once_in(2) {
            let heavy = self.dice.below(FUNCTIONS);
            let steps = 400 + self.dice.below(400) as u64;
            main.push(Do::Process(1, work(heavy, steps, &mut self.dice)));
        }
        let steps = if workers == 0 { 6_000 } else { 400 };
        main.splice(0..0, work(heavy, steps, &mut self.dice));
        let busy = vec![Do::Run(1, 30_000)];
        for (pid, program, left) in [(STRANGER, 2, busy), (COMMAND, 0, main)] {
            let name = self.programs[program].name.clone();
            self.writer.process(pid, if pid == COMMAND { "perf-exec" } else { &name });
            let program_of = &self.programs[program];
            let map = (program_of.path(), program_of.id);
            if pid == COMMAND {
                self.writer.executes(pid, &name, &map, 0);
            } else {
                self.writer.maps(pid, &map, None);
            }
            self.threads.push(self.thread(pid, pid, name, program, left));
        }
        self.next_id += 1;
    }

    fn thread(&self, pid: i32, tid: i32, name: String, program: usize, left: Vec<Do>) -> Thread {
        let period = self.recorded.period;
        Thread {
            pid,
            tid,
            name,
            program,
            left,
            wakes: 0,
            ready: 0,
            until: [period; 2],
            periods: [period; 2],
            ended: false,
        }
    }

    /// All steps until the command and its descendants have ended.
    fn run(&mut self, cpus: usize) {
        let mut on: Vec<Option<(usize, u64)>> = vec![None; cpus];
        let mut tick = vec![self.recorded.period; cpus];
        let mut step = 0;
        while self.threads.iter().any(|thread| thread.pid != STRANGER && !thread.ended) {
            for cpu in 0..cpus {
                self.schedule(cpu, &mut on, step);
                let now = step * STEP + cpu as u64 * 1_000;
                let ran = on[cpu].and_then(|(at, _)| self.step(at, cpu, step).map(|function| (at, function)));
                if let Some((at, function)) = ran {
                    self.count(at, function);
                    if !self.recorded.all && self.threads[at].pid != STRANGER {
                        self.sample_thread(at, cpu, now, function);
                    }
                }
                // One clock for each CPU, which comes a step early or late, or it would keep time with the scheduler.
                tick[cpu] -= STEP;
                if self.recorded.all && tick[cpu] == 0 {
                    tick[cpu] = self.recorded.period + STEP * self.dice.below(3) as u64 - STEP;
                    self.sample(ran, cpu, now + 900, 0, self.recorded.period);
                } else if tick[cpu] == 0 {
                    tick[cpu] = self.recorded.period;
                }
                if let Some((at, _)) = on[cpu]
                    && (self.threads[at].ended || self.threads[at].wakes > step)
                {
                    on[cpu] = None;
                }
            }
            step += 1;
        }
    }

    /// Give a CPU to the thread that waits the longest.
    fn schedule(&mut self, cpu: usize, on: &mut [Option<(usize, u64)>], step: u64) {
        let waits = |at: &usize| {
            let thread = &self.threads[*at];
            !thread.ended && thread.wakes <= step && !on.iter().flatten().any(|(on, _)| on == at)
        };
        let next = (0..self.threads.len()).filter(waits).min_by_key(|at| self.threads[*at].ready);
        let keeps = on[cpu].is_some_and(|(_, since)| step < since + SLICE || next.is_none());
        if keeps {
            return;
        }
        if let Some((at, _)) = on[cpu] {
            self.threads[at].ready = step;
        }
        on[cpu] = next.map(|at| (at, step));
        if let Some(at) = next.filter(|at| self.threads[*at].pid != STRANGER) {
            *self.truth.runs.entry(self.threads[at].name.clone()).or_default() += 1;
        }
    }

    /// One step of a thread: the function in which it ran, or `None` where it did something that takes no time.
    fn step(&mut self, at: usize, cpu: usize, step: u64) -> Option<usize> {
        let now = step * STEP + cpu as u64 * 1_000 + 500;
        let (pid, tid, program) = (self.threads[at].pid, self.threads[at].tid, self.threads[at].program);
        match self.threads[at].left.pop() {
            Some(Do::Run(function, steps)) => {
                if steps > 1 {
                    self.threads[at].left.push(Do::Run(function, steps - 1));
                }
                return Some(function);
            }
            Some(Do::Sleep(steps)) => (self.threads[at].wakes, self.threads[at].ready) = (step + steps, step + steps),
            Some(Do::Thread(name, left)) => {
                let new = self.new_id();
                self.writer.fork(cpu, now, (pid, new), (pid, tid));
                self.writer.named(cpu, now + 1, (pid, new), &name, false);
                let thread = self.thread(pid, new, name, program, left);
                self.threads.push(thread);
            }
            Some(Do::Process(program, left)) => {
                let new = self.new_id();
                let (name, map) = {
                    let of = &self.programs[program];
                    (of.name.clone(), (of.path(), of.id))
                };
                self.writer.fork(cpu, now, (new, new), (pid, tid));
                self.writer.executes(new, &name, &map, now + 1);
                let thread = self.thread(new, new, name, program, left);
                self.threads.push(thread);
            }
            None => {
                self.threads[at].ended = true;
                self.writer.exit(cpu, now, (pid, tid));
            }
        }
        None
    }

    fn new_id(&mut self) -> i32 {
        self.next_id += 1;
        self.next_id
    }

    fn count(&mut self, at: usize, function: usize) {
        let thread = &self.threads[at];
        if thread.pid != STRANGER {
            *self.truth.threads.entry(thread.name.clone()).or_default() += STEP;
            let name = &self.programs[thread.program].functions[function - 1];
            *self.truth.functions.entry(name.clone()).or_default() += STEP;
        }
    }

    /// The clock and the counter of a thread, after it ran for a step.
    fn sample_thread(&mut self, at: usize, cpu: usize, now: u64, function: usize) {
        for event in 0..1 + usize::from(self.recorded.counter) {
            let thread = &mut self.threads[at];
            thread.until[event] -= STEP.min(thread.until[event]);
            if thread.until[event] > 0 {
                continue;
            }
            let period = thread.periods[event];
            let next = match self.recorded.frequency {
                true => self.recorded.period / STEP * (80 + self.dice.below(41) as u64) / 100 * STEP,
                false => self.recorded.period,
            };
            let thread = &mut self.threads[at];
            (thread.periods[event], thread.until[event]) = (next, next);
            self.sample(Some((at, function)), cpu, now + 900 + event as u64, event, period);
        }
    }

    /// A sample of a thread, or of an idle CPU.
    fn sample(&mut self, of: Option<(usize, usize)>, cpu: usize, time: u64, event: usize, period: u64) {
        let Some((at, function)) = of else {
            return self.writer.sample(cpu, time, (0, 0), event, period, &[0xffff_ffff_8100_0100], 0);
        };
        let ids = (self.threads[at].pid, self.threads[at].tid);
        let mut stack = vec![address(function, self.dice.below(0xf0)), address(0, 0x20)];
        // The kernel works for the thread now and then.
        let in_kernel = self.dice.below(100) < 6;
        if in_kernel {
            stack.insert(0, 0xffff_ffff_8120_0040);
        }
        // Three cycles in a nanosecond.
        let amount = if event == 1 { 3 * period } else { period };
        self.writer.sample(cpu, time, ids, event, amount, &stack, usize::from(in_kernel));
    }
}
