//! A simulated scheduler writes events and, beside them, the truth: what each thread did at each nanosecond, and who
//! ended each of its waits. The machine must find the truth from the events, in whatever batches they come; the walk
//! of the critical path must say of every instant what the definition says.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use std::collections::VecDeque;
use whyslow::analysis::path::{label, walk};
use whyslow::analysis::recording::{EdgeKind, HostId, Recording, ThreadId};
use whyslow::base::time::{Ns, Span};
use whyslow::event::batch::Batch;
use whyslow::event::kind::{Context, Event, Kind, TextId, WakeSource, WhoId};
use whyslow::state::kernel::{Generation, Handlers, Machine, Origin};

const CPUS: usize = 3;

/// What one thread did at one nanosecond; for waits, the tid of who ended it.
type Instant = (EdgeKind, Option<i32>);

#[derive(Default)]
struct Task {
    tid: i32,
    /// Born at; `truth[i]` is the nanosecond `born + i`.
    born: Ns,
    truth: Vec<Instant>,
    blocked: bool,
    dead: bool,
}

/// Pseudo-random numbers (xorshift), so that a failure is its seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n.max(1)
    }
}

#[derive(Default)]
struct World {
    now: Ns,
    tasks: Vec<Task>,
    running: [Option<usize>; CPUS],
    queues: [VecDeque<usize>; CPUS],
    contexts: [Vec<Context>; CPUS],
    events: Vec<Event>,
}

impl World {
    fn emit(&mut self, cpu: usize, kind: Kind) {
        self.events.push(Event { time: self.now, who: WhoId::NOBODY, trace: 0, cpu: cpu as u16, kind });
    }

    /// Let a nanosecond pass.
    fn pass(&mut self) {
        for task in 0..self.tasks.len() {
            let instant = match self.running.iter().position(|r| *r == Some(task)) {
                Some(cpu) if self.contexts[cpu].is_empty() => EdgeKind::Running,
                Some(_) => EdgeKind::Interrupted,
                None if self.tasks[task].blocked => EdgeKind::Blocked,
                None => EdgeKind::Preempted,
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
        self.emit(cpu, Kind::Switch { prev: p, next: n, prev_state, prev_name, next_name });
        match (prev, prev_state) {
            (Some(prev), 0) => self.queues[cpu].push_back(prev),
            (Some(prev), 1) => self.tasks[prev].blocked = true,
            (Some(prev), _) => self.tasks[prev].dead = true,
            (None, _) => {}
        }
    }

    /// Write the label of the wait that ends now over its instants.
    fn wake(&mut self, dice: &mut Dice, cpu: usize) {
        let waiting: Vec<usize> = (0..self.tasks.len()).filter(|t| self.tasks[*t].blocked).collect();
        if waiting.is_empty() {
            return;
        }
        let woken = waiting[dice.below(waiting.len())];
        let waker = self.running[cpu].map(|t| self.tasks[t].tid);
        let label = match (self.contexts[cpu].last(), waker) {
            (None, Some(waker)) => (EdgeKind::Blocked, Some(waker)),
            (None, None) => (EdgeKind::Device, None),
            (Some(Context::Timer), _) => (EdgeKind::Timer, None),
            (Some(Context::SoftIrq(4)), _) => (EdgeKind::Disk, None),
            (Some(_), _) => (EdgeKind::Network, None),
        };
        let task = &mut self.tasks[woken];
        task.blocked = false;
        for instant in task.truth.iter_mut().rev().take_while(|i| i.0 == EdgeKind::Blocked && i.1.is_none()) {
            // Unresolved waits are marked by a waker of their own, which stands out from labelled ones.
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

    /// One thing happens on one CPU.
    fn step(&mut self, dice: &mut Dice) {
        let cpu = dice.below(CPUS);
        let contexts = [Context::Timer, Context::SoftIrq(4), Context::SoftIrq(3)];
        let inside = !self.contexts[cpu].is_empty();
        match dice.below(10) {
            0 | 1 if self.contexts[cpu].len() < 3 => {
                let context = contexts[dice.below(contexts.len())];
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

/// Each CPU begins with a thread of its own.
fn simulate(seed: u64, steps: usize) -> World {
    let mut dice = Dice(seed | 1);
    let mut world = World::default();
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

/// Run the machine over the events, cut into batches before the given times.
fn recorded(world: &World, cuts: &[Ns]) -> Recording {
    let origin = Origin { host: HostId(0), kernel: true, generation: Generation::New };
    let mut machine = Machine::new(vec![(String::new(), None)], vec![origin], Handlers::built_in());
    let mut bounds = vec![Ns::MIN];
    bounds.extend_from_slice(cuts);
    bounds.push(Ns::MAX);
    bounds.sort_unstable();
    for window in bounds.windows(2) {
        let mut batch = Batch::default();
        let here = |e: &&Event| window[0] <= e.time && e.time < window[1];
        let mut streams = vec![Vec::new(); CPUS];
        for event in world.events.iter().filter(here) {
            streams[usize::from(event.cpu)].push(*event);
        }
        batch.merge(&streams);
        machine.absorb(&batch);
    }
    machine.close(Vec::new()).0
}

fn instants(recording: &Recording, thread: ThreadId) -> Vec<Instant> {
    let edges = &recording.threads[thread.index()].edges;
    let tid = |t: ThreadId| recording.threads[t.index()].tid;
    edges.iter().flat_map(|e| (e.span.start..e.span.end).map(|_| (e.kind, e.waker.map(|w| tid(w.0))))).collect()
}

/// Events without sense, in order of time.
fn nonsense() -> impl Strategy<Value = Vec<Event>> {
    let time = prop_oneof![8 => 0..200_i64, 1 => Just(Ns::MIN), 1 => Just(Ns::MAX - 1)];
    let cpu = prop_oneof![9 => 0..3_u16, 1 => Just(u16::MAX)];
    let what = (0..16_u8, -1..6_i32, -1..6_i32, any::<u16>());
    let event = (time, cpu, what).prop_map(|(time, cpu, (which, a, b, c))| {
        let name = TextId::NONE;
        let context = [Context::Timer, Context::Irq(a), Context::SoftIrq(b as u32)][usize::from(c % 3)];
        let source = [WakeSource::Waking, WakeSource::Wakeup, WakeSource::New][usize::from(c % 3)];
        let kind = match which {
            0..4 => Kind::Switch { prev: a, next: b, prev_state: c & 0x1ff, prev_name: name, next_name: name },
            4 | 5 => Kind::Wake { tid: a, cpu: c, source, name },
            6 => Kind::Fork { parent: a, child: b, child_pid: a, child_vtid: i32::from(c % 3), name },
            7 => Kind::Exec { tid: a, old_tid: b, path: name },
            8 => Kind::Exit { tid: a },
            9 => Kind::Free { tid: a },
            10 => Kind::Migrate { tid: a, cpu: c },
            11 => Kind::Enter { context, name },
            12 => Kind::Leave { context },
            13 => Kind::Raise { vector: b as u32 },
            14 => Kind::CallExit { name, ret: -1 },
            _ => Kind::Lost,
        };
        Event { time, who: WhoId::NOBODY, trace: 0, cpu, kind }
    });
    prop::collection::vec(event, 0..120).prop_map(|mut events| {
        events.sort_by_key(|e| e.time);
        events
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_machine_finds_what_the_scheduler_did(seed in any::<u64>(), steps in 1..160_usize) {
        let world = simulate(seed, steps);
        let recording = recorded(&world, &[]);
        for task in &world.tasks {
            let thread = recording.find_thread(HostId(0), task.tid, task.born).unwrap();
            let waker = |w: Option<i32>| w.filter(|tid| *tid > 0);
            let truth: Vec<Instant> = task.truth.iter().map(|(kind, by)| (*kind, waker(*by))).collect();
            prop_assert_eq!(instants(&recording, thread), truth, "thread {}", task.tid);
        }
    }

    #[test]
    fn nonsense_is_survived_and_lives_stay_whole(events in nonsense()) {
        let origin = Origin { host: HostId(0), kernel: true, generation: Generation::New };
        let mut machine = Machine::new(vec![(String::new(), None)], vec![origin], Handlers::built_in());
        let mut batch = Batch::default();
        batch.events = events;
        machine.absorb(&batch);
        let (recording, _) = machine.close(Vec::new());
        for thread in recording.threads.iter().filter(|t| !t.idle) {
            prop_assert!(thread.edges.iter().all(|e| !e.span.is_empty()));
            prop_assert!(thread.edges.windows(2).all(|w| w[0].span.end == w[1].span.start));
            let ends = thread.edges.first().zip(thread.edges.last());
            let whole = ends.map(|(first, last)| Span::new(first.span.start, last.span.end));
            prop_assert!(whole.is_none_or(|whole| whole == thread.life), "{:?} {:?}", whole, thread.life);
            prop_assert!(whole.is_some() || thread.life.is_empty());
        }
        for (_, runs) in &recording.cpus {
            prop_assert!(runs.windows(2).all(|w| w[0].span.end <= w[1].span.start));
        }
    }

    #[test]
    fn batches_do_not_matter(seed in any::<u64>(), steps in 1..160_usize, cuts in prop::collection::vec(0..300_i64, 0..8)) {
        let world = simulate(seed, steps);
        let (whole, parts) = (recorded(&world, &[]), recorded(&world, &cuts));
        prop_assert_eq!(format!("{:?}{:?}", whole.threads, whole.cpus), format!("{:?}{:?}", parts.threads, parts.cpus));
    }

    #[test]
    fn the_walk_says_of_every_instant_what_the_definition_says(seed in any::<u64>(), steps in 1..120_usize) {
        let world = simulate(seed, steps);
        let recording = recorded(&world, &[]);
        for at in 0..recording.threads.len() {
            let thread = ThreadId::at(at);
            if recording.threads[at].idle {
                continue;
            }
            // Windows that begin before a thread's birth and end after its death are asked for, too.
            let path = walk(&recording, thread, Span::new(0, world.now));
            let mut t = 0;
            for segment in &path {
                prop_assert_eq!(segment.span.start, t);
                for instant in segment.span.start..segment.span.end {
                    prop_assert_eq!(label(&recording, thread, instant), (segment.thread, segment.kind));
                }
                t = segment.span.end;
            }
            prop_assert_eq!(t, world.now);
        }
    }
}
