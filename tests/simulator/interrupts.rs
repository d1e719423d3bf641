//! Interrupts: timers, the disk's completions, devices, ticks, other CPUs. One at a time on a CPU; the thread there is
//! interrupted meanwhile.

use super::ctf_writer::Value;
use super::truth::What;
use super::{Action, Machine};
use std::borrow::Cow;
use std::collections::VecDeque;
use whyslow::parts::base::time::Ns;

/// An interrupt.
#[derive(Clone, Copy, Debug)]
pub(super) enum Interrupt {
    /// A thread's timer expires.
    Timer(usize),
    Tick,
    /// The request at the head of the disk's queue is done.
    Disk(usize),
    /// A device's handler and the soft interrupt that it raises, which may take no time.
    Device {
        handler: &'static str,
        hard: Ns,
        soft: Ns,
    },
    Reschedule,
}

enum Part {
    Emit(&'static str, Vec<(&'static str, Value)>),
    WithStack(&'static str, Vec<(&'static str, Value)>),
    Wake(usize),
    Complete(usize),
}

/// An interrupt being handled: the remaining steps, each with its length.
pub(super) struct Handling(VecDeque<(Ns, Part)>);

const TIMER: u64 = 0xffff_8880_0000_1000;

impl Machine {
    pub(super) fn interrupt(&mut self, cpu: usize, interrupt: Interrupt) {
        if self.cpus[cpu].interrupt.is_some() {
            self.cpus[cpu].pending.push_back(interrupt);
            return;
        }
        self.leave_idle_state(cpu);
        self.pause(cpu);
        let parts = self.parts(interrupt);
        self.cpus[cpu].interrupt = Some(Handling(parts));
        if let Some(current) = self.cpus[cpu].current {
            self.schedule.thread(current, self.now, What::Interrupted(name(interrupt)));
        }
        self.handle(cpu);
    }

    fn parts(&mut self, interrupt: Interrupt) -> VecDeque<(Ns, Part)> {
        let vector = |v: i32| vec![("vector", Value::I32(v))];
        let hrtimer = || vec![("hrtimer", Value::U64(TIMER))];
        let softirq = |vec: u32| vec![("vec", Value::U32(vec))];
        let mut parts = Vec::new();
        let mut emit = |ns: Ns, name, fields| parts.push((ns, Part::Emit(name, fields)));
        match interrupt {
            Interrupt::Timer(thread) => {
                emit(600, "x86_irq_vectors_local_timer_entry", vector(236));
                emit(700, "timer_hrtimer_expire_entry", hrtimer());
                parts.push((600, Part::Wake(thread)));
                parts.push((300, Part::Emit("timer_hrtimer_expire_exit", hrtimer())));
                parts.push((0, Part::Emit("x86_irq_vectors_local_timer_exit", vector(236))));
            }
            Interrupt::Tick => {
                emit(500, "x86_irq_vectors_local_timer_entry", vector(236));
                parts.push((900, Part::WithStack("timer_hrtimer_expire_entry", hrtimer())));
                parts.push((300, Part::Emit("timer_hrtimer_expire_exit", hrtimer())));
                parts.push((0, Part::Emit("x86_irq_vectors_local_timer_exit", vector(236))));
            }
            Interrupt::Disk(disk) => {
                let irq = ("irq", Value::I32(28 + disk as i32));
                let name = ("name", Value::Text(format!("virtio{disk}-req.0")));
                emit(1_500, "irq_handler_entry", vec![irq.clone(), name]);
                parts.push((1_500, Part::Complete(disk)));
                parts.push((0, Part::Emit("irq_handler_exit", vec![irq, ("ret", Value::I32(1))])));
            }
            Interrupt::Device { handler, hard, soft } => {
                let irq = ("irq", Value::I32(24));
                emit(hard, "irq_handler_entry", vec![irq.clone(), ("name", Value::Text(handler.into()))]);
                if soft > 0 {
                    emit(100, "irq_softirq_raise", softirq(3));
                }
                emit(200, "irq_handler_exit", vec![irq, ("ret", Value::I32(1))]);
                if soft > 0 {
                    emit(soft, "irq_softirq_entry", softirq(3));
                    emit(0, "irq_softirq_exit", softirq(3));
                }
            }
            Interrupt::Reschedule => {
                emit(500, "x86_irq_vectors_reschedule_entry", vector(253));
                emit(0, "x86_irq_vectors_reschedule_exit", vector(253));
            }
        }
        parts.into()
    }

    /// Go on with the interrupt of this CPU.
    pub(super) fn handle(&mut self, cpu: usize) {
        while let Some((length, part)) = self.cpus[cpu].interrupt.as_mut().and_then(|h| h.0.pop_front()) {
            match part {
                Part::Emit(name, fields) => self.emit(cpu, name, fields),
                Part::WithStack(name, fields) => self.emit_with_stack(cpu, Cow::Borrowed(name), fields),
                Part::Wake(thread) => self.wake(thread, cpu),
                Part::Complete(disk) => self.complete(disk, cpu),
            }
            if length > 0 {
                self.later(self.now + length, Action::Handle(cpu));
                return;
            }
        }
        self.cpus[cpu].interrupt = None;
        if let Some(next) = self.cpus[cpu].pending.pop_front() {
            self.interrupt(cpu, next);
            return;
        }
        if let Some(current) = self.cpus[cpu].current {
            self.schedule.thread(current, self.now, What::Run);
        }
        if self.cpus[cpu].need_reschedule || self.cpus[cpu].current.is_none() {
            let before = self.cpus[cpu].current;
            self.look(cpu);
            if self.cpus[cpu].current != before {
                return;
            }
        }
        if self.cpus[cpu].spending.is_none() {
            self.resume(cpu);
        }
        self.enter_idle_state(cpu);
    }

    /// The scheduler's tick: only on a CPU that runs a thread.
    pub(super) fn tick(&mut self, cpu: usize) {
        let Some(current) = self.cpus[cpu].current else { return };
        if self.cpus[cpu].tickless && self.cpus[cpu].queues.iter().all(|queue| queue.is_empty()) {
            return;
        }
        if self.threads[current].left <= 0 || self.running_for(cpu) >= self.threads[current].left {
            self.cpus[cpu].need_reschedule = true;
        }
        self.interrupt(cpu, Interrupt::Tick);
    }

    fn running_for(&self, cpu: usize) -> Ns {
        self.cpus[cpu].spending.map_or(0, |since| self.now - since)
    }
}

fn name(interrupt: Interrupt) -> &'static str {
    match interrupt {
        Interrupt::Timer(_) | Interrupt::Tick => "timer",
        Interrupt::Disk(_) => "disk",
        Interrupt::Device { handler, .. } => handler,
        Interrupt::Reschedule => "reschedule",
    }
}
