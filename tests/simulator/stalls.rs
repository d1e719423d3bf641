//! CPUs that are paused while others go on, as a hypervisor that gives them to another machine makes them; CPUs whose
//! frequency is lower for a while; and processes that are frozen or stopped until another thread lets them go on.

use super::ctf_writer::Value;
use super::interrupts::Interrupt;
use super::program::{Carrier, Reason, Step};
use super::truth::What;
use super::{Action, Machine, Process};
use whyslow::parts::base::time::Ns;

/// A CPU's slowness at its highest frequency.
pub(super) const TENTHS: Ns = 10;
/// The highest frequency.
const HIGHEST_KHZ: Ns = 3_000_000;
/// How long later a CPU that runs no thread is tried again.
const AGAIN: Ns = 300_000;

/// A process that may not go on.
pub(super) struct Halt {
    carrier: Carrier,
    waiters: Vec<usize>,
}

impl Machine {
    /// A CPU is paused for so long from `at` on, or from when it next runs a thread.
    pub fn steal(&mut self, cpu: usize, at: Ns, length: Ns) {
        self.later(self.now + at, Action::Stall(cpu, length));
    }

    /// Programs take `slowness` tenths of their time on a CPU for so long from `at` on, because its frequency is lower.
    pub fn slow_down(&mut self, cpu: usize, at: Ns, length: Ns, slowness: Ns) {
        self.later(self.now + at, Action::Clock(cpu, slowness));
        self.later(self.now + at + length, Action::Clock(cpu, TENTHS));
    }

    pub(super) fn change_clock(&mut self, cpu: usize, slowness: Ns) {
        let runs = self.cpus[cpu].spending.is_some();
        self.pause(cpu);
        self.cpus[cpu].slowness = slowness;
        let khz = HIGHEST_KHZ * TENTHS / slowness;
        self.emit(
            cpu,
            "power_cpu_frequency",
            vec![("state", Value::U32(khz as u32)), ("cpu_id", Value::U32(cpu as u32))],
        );
        if runs {
            self.resume(cpu);
        }
    }

    /// The scheduler's tick leaves a CPU alone that has one thread to run.
    pub fn make_tickless(&mut self, cpu: usize) {
        self.cpus[cpu].tickless = true;
    }

    pub(super) fn stall(&mut self, cpu: usize, length: Ns) {
        let of = &self.cpus[cpu];
        let Some(current) = of.current.filter(|_| of.interrupt.is_none() && of.stalled.is_none()) else {
            return self.later(self.now + AGAIN, Action::Stall(cpu, length));
        };
        self.pause(cpu);
        self.cpus[cpu].stalled = Some(self.now + length);
        self.schedule.thread(current, self.now, What::Stolen);
        self.schedule.stalls[cpu].push((self.now, true));
        self.later(self.now + length, Action::GoOn(cpu, length));
    }

    /// The CPU goes on; what was due on it meanwhile follows.
    pub(super) fn go_on(&mut self, cpu: usize, length: Ns) {
        self.cpus[cpu].stalled = None;
        self.cpus[cpu].stolen += length;
        self.schedule.stalls[cpu].push((self.now, false));
        if let Some(current) = self.cpus[cpu].current {
            self.schedule.thread(current, self.now, What::Run);
        }
        self.resume(cpu);
    }

    /// A thread lets a process wait or go on, or a page fault of its own begins or ends.
    pub(super) fn change(&mut self, cpu: usize, thread: usize, step: &Step) {
        match step {
            Step::Halt(process, carrier) => self.halt(*process, *carrier),
            Step::EndHalt(process) => self.end_halt(cpu, thread, *process),
            Step::Fault(fault) => {
                self.threads[thread].in_call = fault.is_some();
                self.threads[thread].fault = *fault;
            }
            _ => unreachable!("another step"),
        }
    }

    /// The threads of a process leave their CPUs, or their next call, and wait.
    fn halt(&mut self, process: Process, carrier: Carrier) {
        self.processes[process.0].halt = Some(Halt { carrier, waiters: Vec::new() });
        for cpu in 0..self.cpus.len() {
            if self.cpus[cpu].current.is_some_and(|t| self.threads[t].process == process) {
                self.cpus[cpu].need_reschedule = true;
                let delay = self.dice.between(2_000, 9_000);
                self.later(self.now + delay, Action::Interrupt(cpu, Interrupt::Reschedule));
            }
        }
    }

    /// A thread that runs must wait.
    pub(super) fn must_halt(&self, thread: usize) -> bool {
        let t = &self.threads[thread];
        self.processes[t.process.0].halt.is_some() && !t.in_call
    }

    /// The running thread waits until its process may go on.
    pub(super) fn wait_halted(&mut self, cpu: usize, thread: usize) {
        let halt = self.processes[self.threads[thread].process.0].halt.as_mut().unwrap();
        halt.waiters.push(thread);
        let reason = Reason::Token(halt.carrier);
        self.block(cpu, thread, reason);
    }

    /// A thread lets a process go on.
    fn end_halt(&mut self, cpu: usize, by: usize, process: Process) {
        let Some(halt) = self.processes[process.0].halt.take() else { return };
        for thread in halt.waiters {
            self.schedule.given(thread, by, self.now);
            self.wake(thread, cpu);
        }
    }
}
