//! Generated runs of MPI ranks with planted delays.
//!
//! In: the dependence of ranks on each other, a seed, the noise of the work. Out: the operations, with each rank's
//! times on a clock of its own, and the planted delays.

use super::operations::{MS, OperationsBuilder};
use super::random::Random;
use std::collections::BTreeMap;
use whyslow::parts::base::time::Ns;
use whyslow::parts::event::operation::{CollectiveInstance, CollectiveKind, OperationKind, OperationPlace};

/// The time of a message.
pub const LATENCY: Ns = 2_000;
/// The time of a call that does not wait.
pub const CALL: Ns = 1_000;

/// How ranks depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// Each iteration: compute, exchange with both neighbours.
    Stencil,
    /// Each iteration: receive from the rank before, compute, send to the one after (a pipeline).
    Pipeline,
    /// Each iteration: tasks out to all, results back in rank order.
    MasterWorker,
    /// Each iteration: compute, meet all others.
    Allreduce,
}

pub const SHAPES: [Shape; 4] = [Shape::Stencil, Shape::Pipeline, Shape::MasterWorker, Shape::Allreduce];

/// A delay as planted: its rank, its start on that rank's clock, its length.
#[derive(Debug)]
pub struct PlantedDelay {
    pub rank: u32,
    pub start: Ns,
    pub length: Ns,
}

/// A generated run.
pub struct Run {
    pub operations: OperationsBuilder,
    pub planted: Vec<PlantedDelay>,
    /// The longest that noise makes an iteration.
    pub noise: Ns,
}

/// One run: some hundred iterations of some hundred microseconds each, clocks up to 50 ms apart, work that varies by
/// the noise (`percent` of it or a little more), and four delays of `times` the noise.
pub fn generate(shape: Shape, seed: u64, percent: Ns, times: f64) -> Run {
    let mut generator = Generator::new(seed, percent, times);
    for _ in 0..generator.iterations {
        match shape {
            Shape::Stencil => generator.stencil(),
            Shape::Pipeline => generator.pipeline(),
            Shape::MasterWorker => generator.master_worker(),
            Shape::Allreduce => generator.allreduce(),
        }
        generator.iteration += 1;
    }
    Run { operations: generator.run, planted: generator.planted, noise: generator.noise }
}

/// An operation that sent a message, and the time of sending.
#[derive(Clone, Copy)]
struct Sent {
    place: OperationPlace,
    time: Ns,
}

struct Generator {
    random: Random,
    run: OperationsBuilder,
    planted: Vec<PlantedDelay>,
    ranks: u32,
    iterations: u64,
    iteration: u64,
    work: Ns,
    noise: Ns,
    delay: Ns,
    /// By iteration, the rank that is delayed.
    planned: BTreeMap<u64, u32>,
    /// By rank, how far its clock is behind the common time.
    offsets: Vec<Ns>,
    /// By rank, the common time.
    now: Vec<Ns>,
}

impl Generator {
    fn new(seed: u64, percent: Ns, times: f64) -> Generator {
        let mut random = Random::new(seed);
        let ranks = 3 + random.below(8) as u32;
        let iterations = 150 + random.below(150) as u64;
        let work = random.between(200_000, 1_000_000);
        let noise = work * percent * random.between(10, 14) / 1_000;
        let offsets: Vec<Ns> = (0..ranks).map(|_| random.between(0, 50 * MS)).collect();
        // The delays are far enough apart for each to be its own.
        let mut planned: BTreeMap<u64, u32> = BTreeMap::new();
        for n in 0..4 {
            let iteration = 20 + n * iterations / 5 + random.below(10) as u64;
            planned.insert(iteration, random.below(ranks as usize) as u32);
        }
        Generator {
            random,
            run: OperationsBuilder::new(ranks),
            planted: Vec::new(),
            ranks,
            iterations,
            iteration: 0,
            work,
            noise,
            delay: (noise as f64 * times) as Ns,
            planned,
            offsets,
            now: vec![MS; ranks as usize],
        }
    }

    /// A rank computes, longer by the delay where one is planned.
    fn compute(&mut self, rank: u32) {
        let now = &mut self.now[rank as usize];
        *now += self.work + self.random.below(self.noise as usize) as Ns;
        if self.planned.get(&self.iteration) == Some(&rank) {
            let start = *now - self.offsets[rank as usize];
            self.planted.push(PlantedDelay { rank, start, length: self.delay });
            *now += self.delay;
        }
    }

    /// A call that lasts until a time, or as short as a call is.
    fn call(&mut self, rank: u32, name: &str, kind: OperationKind, until: Ns) -> Sent {
        let start = self.now[rank as usize];
        let end = until.max(start + CALL);
        self.now[rank as usize] = end;
        // Each rank's recorded times are on its own clock.
        let own = self.offsets[rank as usize];
        Sent { place: self.run.add(rank, name, kind, start - own, end - own), time: end }
    }

    fn short(&mut self, rank: u32, name: &str) -> Sent {
        self.call(rank, name, OperationKind::Work, 0)
    }

    fn receive(&mut self, rank: u32, from: Sent) {
        let receive = self.call(rank, "MPI_Recv", OperationKind::Receive, from.time + LATENCY);
        self.run.send(from.place, receive.place);
    }

    fn stencil(&mut self) {
        let ranks = self.ranks;
        let neighbours = |r: u32| [r.checked_sub(1), (r + 1 < ranks).then_some(r + 1)].into_iter().flatten();
        let mut sent: BTreeMap<(u32, u32), Sent> = BTreeMap::new();
        for rank in 0..ranks {
            self.compute(rank);
            for to in neighbours(rank) {
                sent.insert((rank, to), self.short(rank, "MPI_Isend"));
            }
        }
        for rank in 0..ranks {
            let last = neighbours(rank).map(|n| sent[&(n, rank)].time).max().unwrap() + LATENCY;
            let wait = self.call(rank, "MPI_Waitall", OperationKind::Receive, last);
            neighbours(rank).for_each(|n| self.run.send(sent[&(n, rank)].place, wait.place));
        }
    }

    fn pipeline(&mut self) {
        let mut before: Option<Sent> = None;
        for rank in 0..self.ranks {
            if let Some(from) = before {
                self.receive(rank, from);
            }
            self.compute(rank);
            let name = if rank + 1 < self.ranks { "MPI_Send" } else { "MPI_Test" };
            before = Some(self.short(rank, name));
        }
    }

    fn master_worker(&mut self) {
        let tasks: Vec<Sent> = (1..self.ranks).map(|_| self.short(0, "MPI_Send")).collect();
        let mut results = Vec::new();
        for (rank, task) in (1..self.ranks).zip(tasks) {
            self.receive(rank, task);
            self.compute(rank);
            results.push(self.short(rank, "MPI_Send"));
        }
        for result in results {
            self.receive(0, result);
        }
    }

    fn allreduce(&mut self) {
        (0..self.ranks).for_each(|rank| self.compute(rank));
        let last = self.now.iter().max().unwrap() + LATENCY;
        let members =
            (0..self.ranks).map(|r| self.call(r, "MPI_Allreduce", OperationKind::Collective, last).place).collect();
        self.run.operations.collectives.push(CollectiveInstance { exchange: CollectiveKind::All, members });
    }
}
