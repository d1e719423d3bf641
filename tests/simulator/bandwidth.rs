//! CPU quotas of control groups: in each period the threads of a group may use this much CPU time, all together.
//!
//! A CPU takes slices of the group's time for the threads that it runs. Where it has used up its slice and nothing is
//! left, it is throttled to the end of the period; ticks notice that late, and what was used beyond the quota is paid
//! in the next period. [`Enforcement`] is what becomes of the threads. The counters are those of `cpu.stat`.
//!
//! Source: kernel/sched/fair.c of Linux 6.1 and 6.18.

use super::interrupts::Interrupt;
use super::truth::What;
use super::{Action, Machine, Process, SLICE, State};
use whyslow::parts::base::time::Ns;

/// What a CPU takes at a time.
const PORTION: Ns = 5_000_000;

/// What is throttled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enforcement {
    /// The group's queue on the CPU, with the threads that are woken meanwhile (up to Linux 6.17).
    Queue,
    /// Each thread on its way back to its program, in a function of the kernel for that (since 6.18).
    Thread,
}

/// The quota of a group.
pub(super) struct Bandwidth {
    pub quota: Ns,
    pub period: Ns,
    pub enforcement: Enforcement,
    left: Ns,
    cpus: Vec<CpuPortion>,
    /// Periods at whose end a CPU was throttled.
    pub times: u64,
    /// For how long CPUs were, where that has ended.
    pub time: Ns,
}

/// A CPU's part.
#[derive(Default)]
struct CpuPortion {
    left: Ns,
    /// It is throttled since then.
    since: Option<Ns>,
    /// Threads that are held back.
    held: Vec<usize>,
}

impl Machine {
    /// The threads of a process get a quota.
    pub fn limit(&mut self, process: Process, quota: Ns, period: Ns, enforcement: Enforcement) {
        let cpus = self.cpus.iter().map(|_| CpuPortion::default()).collect();
        self.bandwidths.push(Bandwidth { quota, period, enforcement, left: quota, cpus, times: 0, time: 0 });
        let number = self.bandwidths.len() - 1;
        self.processes[process.0].bandwidth = Some(number);
        self.later(self.now + period, Action::Period(number));
    }

    fn bandwidth(&self, thread: usize) -> Option<&Bandwidth> {
        self.processes[self.threads[thread].process.0].bandwidth.map(|number| &self.bandwidths[number])
    }

    /// A thread has used a CPU.
    pub(super) fn charge(&mut self, cpu: usize, thread: usize, spent: Ns) {
        let process = self.threads[thread].process;
        let Some(number) = self.processes[process.0].bandwidth else { return };
        let of = &mut self.bandwidths[number];
        let portion = &mut of.cpus[cpu];
        portion.left -= spent;
        if portion.left > 0 || portion.since.is_some() {
            return;
        }
        let more = of.left.min(PORTION - portion.left);
        portion.left += more;
        of.left -= more;
        if portion.left > 0 {
            return;
        }
        portion.since = Some(self.now);
        self.cpus[cpu].need_reschedule = true;
        if of.enforcement == Enforcement::Queue {
            let threads = &self.threads;
            let mut held = Vec::new();
            for queue in &mut self.cpus[cpu].queues {
                held.extend(queue.iter().copied().filter(|t| threads[*t].process == process));
                queue.retain(|t| threads[*t].process != process);
            }
            held.into_iter().for_each(|t| self.hold(t, cpu));
        }
    }

    /// A thread may not run on a CPU.
    pub(super) fn is_throttled(&self, thread: usize, cpu: usize) -> bool {
        let Some(of) = self.bandwidth(thread) else { return false };
        let in_kernel = of.enforcement == Enforcement::Thread && self.threads[thread].in_call;
        of.cpus[cpu].since.is_some() && !in_kernel
    }

    /// A thread that is to leave a CPU leaves it in the function that throttles it.
    pub(super) fn leaves_throttled(&self, thread: usize, cpu: usize) -> bool {
        self.is_throttled(thread, cpu) && self.bandwidth(thread).is_some_and(|of| of.enforcement == Enforcement::Thread)
    }

    /// Take a thread out of the CPU's queue, or leave it out.
    pub(super) fn hold(&mut self, thread: usize, cpu: usize) {
        self.threads[thread].state = State::Queued;
        self.schedule.thread(thread, self.now, What::Throttled);
        let number = self.processes[self.threads[thread].process.0].bandwidth.unwrap();
        self.bandwidths[number].cpus[cpu].held.push(thread);
    }

    /// The end of a group's period.
    pub(super) fn period(&mut self, number: usize) {
        self.later(self.now + self.bandwidths[number].period, Action::Period(number));
        let of = &mut self.bandwidths[number];
        of.left = of.quota;
        of.times += u64::from(of.cpus.iter().any(|portion| portion.since.is_some()));
        for cpu in 0..self.cpus.len() {
            let of = &mut self.bandwidths[number];
            let portion = &mut of.cpus[cpu];
            let Some(since) = portion.since else { continue };
            let more = of.left.min(1 - portion.left);
            portion.left += more;
            of.left -= more;
            if portion.left > 0 {
                portion.since = None;
                of.time += self.now - since;
                let held = std::mem::take(&mut portion.held);
                self.let_run(held, cpu);
            }
        }
    }

    /// Threads go on: at once, unless a more urgent thread runs.
    fn let_run(&mut self, held: Vec<usize>, cpu: usize) {
        let Some(first) = held.iter().map(|t| self.threads[*t].priority).min() else { return };
        for thread in held.into_iter().rev() {
            self.threads[thread].left = SLICE;
            self.schedule.thread(thread, self.now, What::Queue(cpu));
            let priority = self.threads[thread].priority;
            self.cpus[cpu].queues[priority].push_front(thread);
        }
        let delay = self.dice.between(2_000, 9_000);
        match self.cpus[cpu].current {
            None => self.later(self.now + delay, Action::Reschedule(cpu)),
            Some(current) if first <= self.threads[current].priority => {
                self.threads[current].left = 0;
                self.cpus[cpu].need_reschedule = true;
                self.later(self.now + delay, Action::Interrupt(cpu, Interrupt::Reschedule));
            }
            Some(_) => {}
        }
    }
}
