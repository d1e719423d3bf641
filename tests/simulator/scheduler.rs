//! The scheduler: run queues by CPU and priority, time slices, placement of woken threads, stealing by idle CPUs.

use super::ctf_writer::Value;
use super::stalls::TENTHS;
use super::truth::What;
use super::{Action, Machine, SLICE, State};
use std::borrow::Cow;
use std::rc::Rc;
use whyslow::parts::base::time::Ns;

/// As `prev_state` has them.
pub(super) const READY: i64 = 0;
pub(super) const SLEEP: i64 = 1;
pub(super) const DISK_SLEEP: i64 = 2;
pub(super) const DEAD: i64 = 0x10;
pub(super) const STOPPED: i64 = 4;
const PREEMPTED: i64 = 0x100;

/// As `prev_prio` has the priorities: a real-time one, nice 0, nice 19.
const PRIO: [i32; super::PRIORITIES] = [98, 120, 139];

impl Machine {
    fn about(&self, thread: usize) -> Vec<(&'static str, Value)> {
        let t = &self.threads[thread];
        let prio = PRIO[t.priority];
        vec![
            ("comm", Value::Comm(Rc::clone(&t.task.comm))),
            ("tid", Value::I32(t.task.tid)),
            ("prio", Value::I32(prio)),
        ]
    }

    /// Make a thread runnable; its waker is the thread or interrupt that runs on `by`.
    pub(super) fn wake(&mut self, thread: usize, by: usize) {
        assert_eq!(self.threads[thread].state, State::Waiting);
        let last = self.threads[thread].cpu;
        let mut fields = self.about(thread);
        fields.push(("target_cpu", Value::I32(last as i32)));
        self.emit(by, "sched_waking", fields);
        let cpu = self.place(thread);
        if cpu != last {
            self.migrated(thread, last, cpu, by);
        }
        let mut fields = self.about(thread);
        fields.push(("target_cpu", Value::I32(cpu as i32)));
        self.emit(by, "sched_wakeup", fields);
        self.enqueue(thread, cpu, by);
    }

    pub(super) fn migrated(&mut self, thread: usize, from: usize, to: usize, by: usize) {
        let mut fields = self.about(thread);
        fields.extend([("orig_cpu", Value::I32(from as i32)), ("dest_cpu", Value::I32(to as i32))]);
        self.emit(by, "sched_migrate_task", fields);
        self.threads[thread].cpu = to;
    }

    pub(super) fn enqueue(&mut self, thread: usize, cpu: usize, by: usize) {
        self.threads[thread].cpu = cpu;
        if self.is_throttled(thread, cpu) {
            return self.hold(thread, cpu);
        }
        self.threads[thread].state = State::Queued;
        self.schedule.thread(thread, self.now, What::Queue(cpu));
        let priority = self.threads[thread].priority;
        self.cpus[cpu].queues[priority].push_back(thread);
        let delay = if cpu == by { 700 } else { self.dice.between(2_000, 9_000) };
        match self.cpus[cpu].current {
            None => {
                let delay = if cpu == by { delay } else { self.wake_up_delay(cpu, delay) };
                self.later(self.now + delay, Action::Reschedule(cpu));
            }
            Some(current) if priority < self.threads[current].priority => {
                self.cpus[cpu].need_reschedule = true;
                if cpu != by {
                    self.later(self.now + delay, Action::Interrupt(cpu, super::interrupts::Interrupt::Reschedule));
                } else if self.cpus[cpu].interrupt.is_none() {
                    self.later(self.now + delay, Action::Reschedule(cpu));
                }
            }
            Some(_) => {}
        }
    }

    /// Its last CPU if that is idle, else an idle CPU, else its last CPU.
    fn place(&mut self, thread: usize) -> usize {
        let t = &self.threads[thread];
        let idle =
            |cpu: &usize| self.cpus[*cpu].current.is_none() && self.cpus[*cpu].queues.iter().all(|q| q.is_empty());
        if idle(&t.cpu) {
            return t.cpu;
        }
        t.allowed.iter().copied().find(idle).unwrap_or(t.cpu)
    }

    /// The CPU looks at its run queue: begins to work, or gives way.
    pub(super) fn look(&mut self, cpu: usize) {
        if self.cpus[cpu].interrupt.is_some() {
            self.cpus[cpu].need_reschedule = true;
            return;
        }
        let Some(current) = self.cpus[cpu].current else {
            self.switch(cpu, READY);
            return;
        };
        let first = self.cpus[cpu].queues.iter().position(|q| !q.is_empty());
        let own = self.threads[current].priority;
        let give_way = first.is_some_and(|p| p < own || p == own && self.threads[current].left <= 0);
        if self.cpus[cpu].need_reschedule && self.must_halt(current) {
            self.pause(cpu);
            return self.wait_halted(cpu, current);
        }
        let give_way = give_way || self.is_throttled(current, cpu) && !self.threads[current].in_call;
        if self.cpus[cpu].need_reschedule && give_way {
            let state = if self.threads[current].in_call { PREEMPTED } else { READY };
            self.pause(cpu);
            self.switch(cpu, state);
        }
        self.cpus[cpu].need_reschedule = false;
    }

    /// Stop to spend time; what is left stays the thread's next step.
    pub(super) fn pause(&mut self, cpu: usize) {
        let Some(since) = self.cpus[cpu].spending.take() else { return };
        self.cpus[cpu].epoch += 1;
        let current = self.cpus[cpu].current.unwrap();
        let spent = self.now - since;
        self.threads[current].left -= spent;
        if let Some(super::Step::Spend(left)) = self.threads[current].steps.front_mut() {
            *left -= spent * TENTHS / self.cpus[cpu].slowness.max(TENTHS);
        }
        self.charge(cpu, current, spent);
    }

    /// Go on to spend time.
    pub(super) fn resume(&mut self, cpu: usize) {
        let Some(current) = self.cpus[cpu].current else { return };
        let left: Ns = match self.threads[current].steps.front() {
            Some(super::Step::Spend(left)) => (*left).max(0) * self.cpus[cpu].slowness.max(TENTHS) / TENTHS,
            _ => 0,
        };
        self.cpus[cpu].spending = Some(self.now);
        self.cpus[cpu].epoch += 1;
        self.later(self.now + left, Action::Spent(cpu, self.cpus[cpu].epoch));
    }

    /// The current thread leaves in a state; the next one comes.
    pub(super) fn switch(&mut self, cpu: usize, state: i64) {
        let prev = self.cpus[cpu].current;
        if let Some(prev) = prev {
            let priority = self.threads[prev].priority;
            if matches!(state, READY | PREEMPTED) && self.is_throttled(prev, cpu) {
                self.hold(prev, cpu);
            } else if matches!(state, READY | PREEMPTED) {
                self.threads[prev].state = State::Queued;
                self.schedule.thread(prev, self.now, What::Queue(cpu));
                if self.threads[prev].left <= 0 {
                    self.threads[prev].left = SLICE;
                    self.cpus[cpu].queues[priority].push_back(prev);
                } else {
                    self.cpus[cpu].queues[priority].push_front(prev);
                }
            }
        }
        let next = self.next(cpu);
        if next.is_none() && prev.is_none() {
            return;
        }
        self.leave_idle_state(cpu);
        if next != prev {
            let name =
                |t: Option<usize>, m: &Machine| t.map_or_else(|| Rc::clone(&m.idle), |t| Rc::clone(&m.threads[t].task));
            let prio = |t: Option<usize>, m: &Machine| t.map_or(120, |t| PRIO[m.threads[t].priority]);
            let (p, n) = (name(prev, self), name(next, self));
            let fields = vec![
                ("prev_comm", Value::Comm(Rc::clone(&p.comm))),
                ("prev_tid", Value::I32(p.tid)),
                ("prev_prio", Value::I32(prio(prev, self))),
                ("prev_state", Value::I64(state)),
                ("next_comm", Value::Comm(Rc::clone(&n.comm))),
                ("next_tid", Value::I32(n.tid)),
                ("next_prio", Value::I32(prio(next, self))),
            ];
            self.emit_with_stack(cpu, Cow::Borrowed("sched_switch"), fields);
        }
        self.cpus[cpu].current = next;
        self.cpus[cpu].switched = self.now;
        self.cpus[cpu].spending = None;
        self.cpus[cpu].epoch += 1;
        self.schedule.cpu(cpu, self.now, next);
        self.enter_idle_state(cpu);
        let Some(next) = next else { return };
        self.threads[next].state = State::Running;
        // The switch itself takes its time.
        self.threads[next].steps.push_front(super::Step::Spend(250));
        self.threads[next].left = if self.threads[next].left <= 0 { SLICE } else { self.threads[next].left };
        self.threads[next].cpu = cpu;
        self.schedule.thread(next, self.now, What::Run);
        self.advance(cpu);
    }

    /// The next of the queue, else one of another CPU's that may run here.
    fn next(&mut self, cpu: usize) -> Option<usize> {
        if let Some(next) = self.cpus[cpu].queues.iter_mut().find_map(|q| q.pop_front()) {
            return Some(next);
        }
        for other in 0..self.cpus.len() {
            for priority in 0..super::PRIORITIES {
                let may = |t: &usize| self.threads[*t].allowed.contains(&cpu) && !self.is_throttled(*t, cpu);
                let from = &self.cpus[other].queues[priority];
                // A queue that its own CPU is about to look at is left alone.
                if self.cpus[other].current.is_none() {
                    continue;
                }
                if let Some(at) = from.iter().position(may) {
                    let thread = self.cpus[other].queues[priority].remove(at).unwrap();
                    self.migrated(thread, other, cpu, cpu);
                    return Some(thread);
                }
            }
        }
        None
    }
}
