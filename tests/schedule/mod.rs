//! A simulated scheduler: it writes events and, beside them, the truth: the state of each thread at each nanosecond,
//! and the waker of each of its waits. [`ctf`] writes it as a recording, whole or damaged.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod ctf;

use crate::support::{ctf_writer, random};
use random::Random;
use std::collections::VecDeque;
use whyslow::parts::base::time::{Ns, Timestamp};
use whyslow::parts::event::kind::{Context, Event, Kind, SoftIrq, TextId, ThreadContextId, WakeSource};
use whyslow::parts::event::remark::Priority;
use whyslow::parts::timeline::SegmentKind;

/// CPUs of the simulated machine.
pub const CPUS: usize = 3;

/// The state of one thread at one nanosecond; for waits, the tid of the waker.
pub type Instant = (SegmentKind, Option<i32>);

/// A thread and its truth.
#[derive(Default)]
pub struct Task {
    pub tid: i32,
    /// Born at; `truth[i]` is the nanosecond `born + i`.
    pub born: Ns,
    pub truth: Vec<Instant>,
    blocked: bool,
    dead: bool,
}

/// The simulated machine.
#[derive(Default)]
pub struct World {
    pub now: Ns,
    pub tasks: Vec<Task>,
    running: [Option<usize>; CPUS],
    queues: [VecDeque<usize>; CPUS],
    contexts: [Vec<Context>; CPUS],
    /// Contexts nest as in the kernel; else in any way, as where exits were lost.
    as_kernels_nest: bool,
    pub events: Vec<Event>,
}

impl World {
    fn emit(&mut self, cpu: usize, kind: Kind) {
        self.events.push(Event {
            time: Timestamp::new(self.now),
            who: ThreadContextId::ABSENT,
            trace: 0,
            cpu: cpu as u16,
            kind,
        });
    }

    /// Let a nanosecond pass.
    fn pass(&mut self) {
        for task in 0..self.tasks.len() {
            let instant = match self.running.iter().position(|r| *r == Some(task)) {
                Some(cpu) if self.contexts[cpu].is_empty() => SegmentKind::Running,
                Some(_) => SegmentKind::Interrupted,
                None if self.tasks[task].blocked => SegmentKind::Blocked,
                None => SegmentKind::Preempted,
            };
            if !self.tasks[task].dead {
                self.tasks[task].truth.push((instant, None));
            }
        }
        self.now += 1;
    }

    fn switch(&mut self, cpu: usize, prev_state: u16) {
        let tid = |task: Option<usize>, tasks: &[Task]| task.map_or(0, |t| tasks[t].tid);
        let (prev, next) = (self.running[cpu], self.queues[cpu].pop_front());
        let (prev_name, next_name) = (TextId::NONE, TextId::NONE);
        let (p, n) = (tid(prev, &self.tasks), tid(next, &self.tasks));
        self.running[cpu] = next;
        self.emit(
            cpu,
            Kind::Switch { prev: p, next: n, prev_state, prev_name, next_name, priorities: [Priority::UNKNOWN; 2] },
        );
        match (prev, prev_state) {
            (Some(prev), 0) => self.queues[cpu].push_back(prev),
            (Some(prev), 1) => self.tasks[prev].blocked = true,
            (Some(prev), _) => self.tasks[prev].dead = true,
            (None, _) => {}
        }
    }

    /// Write the label of the wait that ends now over its instants.
    fn wake(&mut self, dice: &mut Random, cpu: usize) {
        let waiting: Vec<usize> = (0..self.tasks.len()).filter(|t| self.tasks[*t].blocked).collect();
        if waiting.is_empty() {
            return;
        }
        let woken = waiting[dice.below(waiting.len())];
        let waker = self.running[cpu].map(|t| self.tasks[t].tid);
        let label = match (self.contexts[cpu].last(), waker) {
            (None, Some(waker)) => (SegmentKind::Blocked, Some(waker)),
            // An interrupt of which nothing was recorded.
            (None, None) => (SegmentKind::Blocked, None),
            (Some(Context::Timer), _) => (SegmentKind::Timer, None),
            (Some(Context::SoftIrq(SoftIrq::Block)), _) => (SegmentKind::Disk, None),
            (Some(_), _) => (SegmentKind::Network, None),
        };
        let task = &mut self.tasks[woken];
        task.blocked = false;
        for instant in task.truth.iter_mut().rev().take_while(|i| i.0 == SegmentKind::Blocked && i.1.is_none()) {
            // Unresolved waits are marked by a waker of their own, which is unlike labelled ones.
            *instant = (label.0, label.1.or(Some(-1)));
        }
        let queue = dice.below(CPUS);
        let tid = task.tid;
        self.queues[queue].push_back(woken);
        self.emit(cpu, Kind::Wake { tid, cpu: queue as u16, source: WakeSource::Waking, name: TextId::NONE });
    }

    fn fork(&mut self, cpu: usize) {
        let Some(parent) = self.running[cpu] else { return };
        let tid = 100 + self.tasks.len() as i32;
        let (parent, name) = (self.tasks[parent].tid, TextId::NONE);
        self.emit(cpu, Kind::Fork { parent, child: tid, child_pid: parent, child_vtid: 0, name });
        self.emit(cpu, Kind::Wake { tid, cpu: cpu as u16, source: WakeSource::New, name });
        self.queues[cpu].push_back(self.tasks.len());
        self.tasks.push(Task { tid, born: self.now, ..Task::default() });
    }

    /// In the kernel nothing but a hard interrupt comes inside another context, and hard ones do not nest.
    fn may_interrupt(&self, cpu: usize) -> bool {
        let open = &self.contexts[cpu];
        if self.as_kernels_nest { !open.contains(&Context::Timer) } else { open.len() < 3 }
    }

    /// One step on one CPU.
    fn step(&mut self, dice: &mut Random) {
        let cpu = dice.below(CPUS);
        let contexts = [Context::Timer, Context::SoftIrq(SoftIrq::Block), Context::SoftIrq(SoftIrq::NetRx)];
        let inside = !self.contexts[cpu].is_empty();
        match dice.below(10) {
            0 | 1 if self.may_interrupt(cpu) => {
                let mut context = contexts[dice.below(contexts.len())];
                if inside && self.as_kernels_nest {
                    context = Context::Timer;
                }
                self.contexts[cpu].push(context);
                self.emit(cpu, Kind::Enter { context, name: TextId::NONE });
            }
            2..=4 if inside => {
                let context = self.contexts[cpu].pop().unwrap();
                self.emit(cpu, Kind::Leave { context });
            }
            5 | 6 => self.wake(dice, cpu),
            7 if !inside && self.tasks.len() < 12 => self.fork(cpu),
            8 if !inside && self.running[cpu].is_some() => {
                let living = self.tasks.iter().filter(|t| !t.dead).count();
                let state = if living > CPUS + 1 && dice.below(6) == 0 { 0x10 } else { 1 };
                self.switch(cpu, state);
            }
            _ if !inside && !self.queues[cpu].is_empty() => self.switch(cpu, 0),
            _ => {}
        }
    }
}

/// Contexts nest in any way.
pub fn simulate(seed: u64, steps: usize) -> World {
    run(World::default(), seed, steps)
}

/// A schedule whose contexts nest as in the kernel, so that the events determine all states.
#[allow(dead_code)]
pub fn simulate_kernel(seed: u64, steps: usize) -> World {
    run(World { as_kernels_nest: true, ..World::default() }, seed, steps)
}

/// Each CPU begins with a thread of its own.
fn run(mut world: World, seed: u64, steps: usize) -> World {
    let mut dice = Random::new(seed);
    for cpu in 0..CPUS {
        world.tasks.push(Task { tid: cpu as i32 + 1, ..Task::default() });
        world.queues[cpu].push_back(cpu);
        world.switch(cpu, 0);
    }
    for _ in 0..steps {
        for _ in 0..=dice.below(3) {
            world.pass();
        }
        world.step(&mut dice);
    }
    world.pass();
    // The last event is the end of the recording.
    world.emit(0, Kind::Migrate { tid: 1, cpu: 0 });
    world
}
