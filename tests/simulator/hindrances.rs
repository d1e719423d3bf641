//! Machines on which the threads of a server do not run although they could: its CPU quota is used up, a hypervisor has
//! the CPU, it is bound to a busy one, it is frozen, the holder of its lock gets no CPU, the kernel looks for memory,
//! its CPU leaves an idle state.
//! Each has a twin with the same surface and another cause.
//!
//! Requests take some milliseconds and hindrances some tens of them, as time slices, periods of quotas and ticks have
//! these lengths.

use super::bandwidth::Enforcement;
use super::kernel_code::Fault;
use super::plants::Plant;
use super::program::Program;
use super::rests::Late;
use super::{Channel, Disk, Machine, Mutex, Op, Process, Random, World, turns};
use whyslow::parts::base::time::Ns;

const MS: Ns = 1_000_000;
/// One request in this many does what the plant of its own work is.
const RARE: usize = 16;

/// The machine and what the parts of the service share.
struct Shop {
    machine: Machine,
    plant: Plant,
    dice: Random,
    server: Process,
    disk: Disk,
    lock: Mutex,
    /// Of a request without a hindrance, about.
    base: Ns,
    /// The hindrance takes so long, about.
    delay: Ns,
    workers: usize,
    /// The CPUs of the workers.
    own: Vec<usize>,
    /// Another process keeps them busy.
    is_busy: bool,
    length: Ns,
}

/// So many CPUs make sense.
pub(super) fn cpus(plant: Plant, dice: &mut Random) -> usize {
    match plant {
        Plant::Bound => [4, 6, 8][dice.below(3)],
        Plant::Crowd => [2, 3, 4][dice.below(3)],
        Plant::IdleExit | Plant::IdleInterrupted => [3, 4, 6, 8][dice.below(4)],
        _ => [2, 3, 4, 4, 8][dice.below(5)],
    }
}

/// Of a plant, on this many CPUs, which another process may keep busy.
pub(super) fn build(plant: Plant, (cpus, is_busy): (usize, bool), seed: u64) -> World {
    let mut dice = Random::new(seed ^ 0x51de);
    let mut machine = Machine::new(cpus, seed);
    // A tick must come often in a request to be missed.
    let base = match plant {
        Plant::Steal | Plant::Tickless => dice.between(6 * MS, 10 * MS),
        // No CPU needs longer than two to leave an idle state.
        Plant::IdleExit | Plant::IdleInterrupted => dice.between(150_000, 300_000),
        _ => dice.between(2 * MS, 4 * MS),
    };
    let own: Vec<usize> = match plant {
        Plant::Bound => (0..2).collect(),
        // The first CPU is the holder's.
        Plant::Inversion | Plant::SlowHolder => (1..cpus).collect(),
        // The next one is the backend's.
        Plant::IdleExit | Plant::IdleInterrupted => (0..(cpus - 1).min(4)).collect(),
        _ => (0..cpus.min(4)).collect(),
    };
    let mut shop = Shop {
        server: machine.process("server"),
        disk: machine.disk(150_000, 800),
        lock: machine.mutex(),
        base,
        delay: match plant {
            Plant::IdleExit | Plant::IdleInterrupted => dice.between(700_000, 1_300_000),
            _ => dice.between(30 * MS, 70 * MS),
        },
        workers: match plant {
            // None waits for another.
            Plant::IdleExit | Plant::IdleInterrupted => own.len(),
            _ => (2 + dice.below(3)).max(own.len().min(3)),
        },
        length: base * 1000,
        own,
        is_busy,
        machine,
        plant,
        dice,
    };
    shop.serve();
    shop.hinder();
    shop.others();
    shop.machine.run(shop.length)
}

impl Shop {
    fn serve(&mut self) {
        let client = self.machine.process("loadgen");
        let think = self.base * 2;
        let (reads, asks) = (self.dice.once_in(2), matches!(self.plant, Plant::IdleExit | Plant::IdleInterrupted));
        for number in 0..self.workers {
            let (to, from) = self.machine.connection();
            let name = ["worker-0", "worker-1", "worker-2", "worker-3"][number];
            let allowed = match self.plant {
                Plant::Bound => vec![self.own[number % self.own.len()]],
                _ => self.own.clone(),
            };
            let backend = asks.then(|| self.backend());
            let program = self.worker((to, from), reads && !asks, backend);
            self.machine.thread_on(self.server, name, program, 1, allowed);
            let ask = turns(move |dice, _| {
                vec![Op::Sleep(dice.between(think / 3, think * 5 / 3)), Op::Send(to, 1), Op::Receive(from)]
            });
            self.machine.thread(client, "loadgen", ask);
        }
    }

    /// A thread of another process that answers at once, on a CPU of its own.
    fn backend(&mut self) -> (Channel, Channel) {
        let (to, from) = self.machine.connection();
        let process = self.machine.process("backend");
        let work = self.base / 8;
        let answer = turns(move |dice, _| {
            vec![Op::Receive(to), Op::Call("lookup_key", vec![Op::Run(dice.about(work))]), Op::Send(from, 0)]
        });
        self.machine.thread_on(process, "backend", answer, 1, vec![self.own.len()]);
        (to, from)
    }

    fn worker(&self, (to, from): (Channel, Channel), reads: bool, backend: Option<(Channel, Channel)>) -> Program {
        let (base, delay, plant, disk, lock) = (self.base, self.delay, self.plant, self.disk, self.lock);
        let locks = matches!(plant, Plant::Inversion | Plant::SlowHolder);
        turns(move |dice, turn| {
            let mut ops = vec![Op::Call("parse_request", vec![Op::Run(dice.about(base / 4))])];
            if locks {
                let inside = vec![Op::Lock(lock), Op::Run(dice.about(base / 20)), Op::Unlock(lock)];
                ops.push(Op::Call("update_table", inside));
            }
            if reads {
                ops.push(Op::Call("load_record", vec![Op::ReadDisk(disk, 4096)]));
            }
            if let Some((to, from)) = backend {
                ops.push(Op::Call("ask_backend", vec![Op::Send(to, 1), Op::Receive(from)]));
            }
            let work = dice.about(delay);
            match plant {
                Plant::Tickless | Plant::EvenFrequency if dice.once_in(RARE) => {
                    ops.push(Op::Call("rebuild_index", vec![Op::Run(work)]))
                }
                Plant::Reclaim if dice.once_in(RARE) => {
                    ops.push(Op::Call("fill_cache", vec![Op::Fault(Fault::Reclaim, work)]));
                }
                Plant::Clearing if dice.once_in(RARE) => {
                    ops.push(Op::Call("fill_cache", vec![Op::Fault(Fault::Clear, work)]));
                }
                _ => {}
            }
            ops.push(Op::Call("render_reply", vec![Op::Run(dice.about(base / 2))]));
            vec![
                Op::Receive(to),
                Op::Mark("app:request_begin", vec![("id", turn as i64)]),
                Op::Call("handle_request", ops),
                Op::Mark("app:request_end", vec![]),
                Op::Send(from, 0),
            ]
        })
    }

    fn hinder(&mut self) {
        match self.plant {
            Plant::Quota => self.limit(Enforcement::Queue),
            Plant::QuotaOfThreads => self.limit(Enforcement::Thread),
            Plant::PeriodicNeighbour => self.collect(),
            Plant::Steal => self.steal(),
            Plant::Tickless => (0..self.own.len()).for_each(|cpu| self.machine.make_tickless(cpu)),
            Plant::Bound | Plant::Crowd => self.pack(),
            Plant::Frozen | Plant::Stopped => self.halt(),
            Plant::Inversion | Plant::SlowHolder => self.keep(),
            Plant::LowFrequency => self.change_clocks(40),
            Plant::EvenFrequency => self.change_clocks(11),
            Plant::IdleExit => self.machine.let_rest(self.own.clone(), Late::Deep, self.delay),
            Plant::IdleInterrupted => self.machine.let_rest(self.own.clone(), Late::Interrupt, self.delay),
            _ => {}
        }
    }

    /// Reports now and then use up what the requests need of the group's quota.
    fn limit(&mut self, enforcement: Enforcement) {
        let period = [100 * MS, 100 * MS, 50 * MS][self.dice.below(3)];
        let quota = period * (self.workers as Ns * 26 + self.dice.between(10, 25)) / 100;
        self.length = self.length.max(period * 70);
        self.machine.limit(self.server, quota, period, enforcement);
        let report = turns(move |dice, _| {
            vec![Op::Sleep(dice.about(period * 9 / 2)), Op::Call("build_report", vec![Op::Run(dice.about(period))])]
        });
        self.machine.thread_on(self.server, "reporter", report, 1, self.own.clone());
        self.crowd_if_busy();
    }

    /// A busy process of low priority on each CPU.
    fn crowd(&mut self) {
        let batch = self.machine.process("batch");
        for cpu in self.own.clone() {
            let compress =
                turns(|dice, _| vec![Op::Call("compress", vec![Op::Run(dice.about(90 * MS))]), Op::Sleep(50_000)]);
            self.machine.thread_on(batch, "batch", compress, 2, vec![cpu]);
        }
    }

    /// Urgent threads that run to the same moment of a period of 100 ms, in one of three to five.
    fn collect(&mut self) {
        let collector = self.machine.process("collector");
        let length = self.delay;
        self.length = self.length.max(5_000 * MS);
        for cpu in self.own.clone() {
            let collect = turns(move |dice, _| {
                let period = 100 * MS * (3 + dice.below(3) as Ns);
                vec![Op::Rest(period), Op::Call("collect_metrics", vec![Op::Run(length)])]
            });
            self.machine.thread_on(collector, "collector", collect, 0, vec![cpu]);
        }
        self.crowd_if_busy();
    }

    fn crowd_if_busy(&mut self) {
        if self.is_busy {
            self.crowd();
        }
    }

    /// About one request in twenty loses its CPU.
    fn steal(&mut self) {
        let every = self.base * 66 * self.own.len() as Ns / self.workers as Ns;
        for cpu in self.own.clone() {
            let mut at = self.dice.about(every / 2);
            while at < self.length {
                let length = self.dice.about(self.delay).max(32 * MS);
                self.machine.steal(cpu, at, length);
                at += self.dice.about(every) + length;
            }
        }
        self.crowd_if_busy();
    }

    /// About one request in twenty meets a lower frequency, at which it takes `slowness` tenths of its time.
    fn change_clocks(&mut self, slowness: Ns) {
        let every = self.base * 66;
        for cpu in self.own.clone() {
            self.machine.slow_down(cpu, 0, 1, slowness);
            let mut at = self.dice.about(every / 2);
            while at < self.length {
                let length = self.dice.about(self.base * 5);
                self.machine.slow_down(cpu, at, length, slowness);
                at += self.dice.about(every) + length;
            }
        }
        self.crowd_if_busy();
    }

    /// Urgent bursts on the workers' CPUs; the others are idle, or have a process of low priority.
    fn pack(&mut self) {
        let packer = self.machine.process("packer");
        let (delay, pause) = (self.delay, self.base * 24);
        for cpu in self.own.clone() {
            let burst = turns(move |dice, _| {
                vec![Op::Sleep(dice.about(pause)), Op::Call("encode_frames", vec![Op::Run(dice.about(delay))])]
            });
            self.machine.thread_on(packer, "packer", burst, 0, vec![cpu]);
        }
        if self.plant == Plant::Crowd {
            self.crowd();
        }
    }

    /// Another process stops the whole server now and then.
    fn halt(&mut self) {
        let (server, delay, pause) = (self.server, self.delay, self.base * 24);
        let (name, function, begin, end) = match self.plant {
            Plant::Frozen => ("snapshotd", "copy_pages", Op::Freeze(server), Op::Thaw(server)),
            _ => ("debugd", "dump_core", Op::Stop(server), Op::Continue(server)),
        };
        let process = self.machine.process(name);
        let sleeps = self.dice.once_in(2);
        let halt = turns(move |dice, _| {
            let work = dice.about(delay);
            let inside = if sleeps { Op::Sleep(work) } else { Op::Run(work) };
            vec![Op::Sleep(dice.about(pause)), begin.clone(), Op::Call(function, vec![inside]), end.clone()]
        });
        self.machine.thread(process, name, halt);
        self.crowd_if_busy();
    }

    /// A thread of low priority holds the lock now and then, on a CPU that it shares with another process, or not.
    fn keep(&mut self) {
        let (lock, base, delay) = (self.lock, self.base, self.delay);
        let is_shared = self.plant == Plant::Inversion;
        let (work, pause) = if is_shared { (base, base * 4) } else { (delay, base * 24) };
        let keep = turns(move |dice, _| {
            let inside =
                vec![Op::Lock(lock), Op::Call("compact_table", vec![Op::Run(dice.about(work))]), Op::Unlock(lock)];
            vec![Op::Sleep(dice.about(pause)), Op::Call("housekeeping", inside)]
        });
        self.machine.thread_on(self.server, "keeper", keep, 2, vec![0]);
        let render = self.machine.process("render");
        let cpu = if is_shared { 0 } else { self.own[self.own.len() - 1] };
        let (length, rest) = if is_shared { (delay, base * 8) } else { (base / 8, base * 8) };
        let frames = turns(move |dice, _| {
            vec![Op::Sleep(dice.about(rest)), Op::Call("encode_frames", vec![Op::Run(dice.about(length))])]
        });
        self.machine.thread_on(render, "render", frames, 1, vec![cpu]);
    }

    fn others(&mut self) {
        let base = self.base;
        let cron = self.machine.process("cron");
        let work =
            turns(move |dice, _| vec![Op::Sleep(dice.between(base * 20, base * 60)), Op::Run(dice.about(base / 8))]);
        self.machine.thread(cron, "cron", work);
    }
}
