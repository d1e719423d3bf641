//! The bytes of a perf.data of samples and of what happens to threads.
//!
//! Source: tools/perf/Documentation/perf.data-file-format.txt and include/uapi/linux/perf_event.h of the kernel.

use super::super::elf::{SIZE, TEXT};
use super::super::random::Random;
use super::{BASE, Recorded};

const MMAP2: u32 = 10;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const FINISHED_ROUND: u32 = 68;
const KERNEL: u16 = 1;
const USER: u16 = 2;
const IS_EXEC: u16 = 1 << 13;
const HAS_BUILD_ID: u16 = 1 << 14;
/// The call chain goes on in the kernel, in the program.
const IN_KERNEL: i64 = -128;
const IN_USER: i64 = -512;
/// Parts of samples.
const IP: u64 = 1;
const TID: u64 = 2;
const TIME: u64 = 4;
const CALLCHAIN: u64 = 0x20;
const ID: u64 = 0x40;
const CPU: u64 = 0x80;
const PERIOD: u64 = 0x100;
/// All times begin here.
const FIRST_TIME: u64 = 4_000_000_000_000;
const ATTR_BYTES: usize = 128;

/// The records that one CPU wrote, with their times, in order.
#[derive(Clone, Debug, Default)]
pub struct Ring {
    pub records: Vec<(u64, Vec<u8>)>,
}

impl Ring {
    /// Where the records end that have a time up to this one; those before `from` do.
    fn until(&self, time: u64, from: usize) -> usize {
        from + self.records[from..].partition_point(|record| record.0 <= time)
    }
}

/// A file in the making.
#[derive(Debug)]
pub struct Writer {
    recorded: Recorded,
    /// What perf writes of processes that are there before, without a time.
    first: Vec<u8>,
    rings: Vec<Ring>,
}

fn two(a: i32, b: i32) -> Vec<u8> {
    [a.to_le_bytes(), b.to_le_bytes()].concat()
}

fn text(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize((bytes.len() + 1).next_multiple_of(8), 0);
    bytes
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = (body.len() + 8) as u16;
    [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes(), body].concat()
}

/// A string of a feature.
fn string(of: &str) -> Vec<u8> {
    let bytes = text(of);
    [&(bytes.len() as u32).to_le_bytes()[..], &bytes].concat()
}

impl Writer {
    pub fn new(recorded: &Recorded, cpus: usize) -> Writer {
        Writer { recorded: recorded.clone(), first: Vec::new(), rings: vec![Ring::default(); cpus] }
    }

    fn sample_type(&self) -> u64 {
        let Recorded { all, chains, frequency, counter, .. } = self.recorded;
        let parts = [(true, IP | TID | TIME), (chains, CALLCHAIN), (counter, ID), (all, CPU), (frequency, PERIOD)];
        parts.iter().filter(|(has, _)| *has).fold(0, |all, (_, bits)| all | bits)
    }

    /// What follows each record that is no sample.
    fn trailer(&self, ids: (i32, i32), time: u64, cpu: usize) -> Vec<u8> {
        let mut bytes = two(ids.0, ids.1);
        bytes.extend(time.to_le_bytes());
        if self.recorded.counter {
            bytes.extend(id(0).to_le_bytes());
        }
        if self.recorded.all {
            bytes.extend((cpu as u64).to_le_bytes());
        }
        bytes
    }

    /// `time` counts from the beginning of the recording.
    fn put(&mut self, cpu: usize, time: u64, ids: (i32, i32), (kind, misc): (u32, u16), body: &[u8]) {
        let time = FIRST_TIME + time;
        let body = [body, &self.trailer(ids, time, cpu)].concat();
        self.rings[cpu].records.push((time, record(kind, misc, &body)));
    }

    /// A process that is there before.
    pub fn process(&mut self, pid: i32, name: &str) {
        let body = [two(pid, pid), text(name), self.trailer((pid, pid), 0, 0)].concat();
        self.first.extend(record(COMM, 0, &body));
    }

    fn map(pid: i32, (path, build_id): &(String, [u8; 20])) -> Vec<u8> {
        let mut body = two(pid, pid);
        for word in [BASE + TEXT, SIZE, TEXT] {
            body.extend(word.to_le_bytes());
        }
        body.extend([20, 0, 0, 0]);
        body.extend(build_id);
        body.extend(two(5, 2));
        body.extend(text(path));
        body
    }

    /// A process maps the text of its program.
    pub fn maps(&mut self, pid: i32, map: &(String, [u8; 20]), time: Option<u64>) {
        let body = Writer::map(pid, map);
        let kind = (MMAP2, USER | HAS_BUILD_ID);
        match time {
            Some(time) => self.put(0, time, (pid, pid), kind, &body),
            None => {
                let body = [body, self.trailer((pid, pid), 0, 0)].concat();
                self.first.extend(record(kind.0, kind.1, &body));
            }
        }
    }

    /// A process executes a program.
    pub fn executes(&mut self, pid: i32, name: &str, map: &(String, [u8; 20]), time: u64) {
        self.named(0, time, (pid, pid), name, true);
        self.maps(pid, map, Some(time + 1));
    }

    /// A thread gets a name.
    pub fn named(&mut self, cpu: usize, time: u64, ids: (i32, i32), name: &str, executes: bool) {
        let misc = if executes { IS_EXEC } else { 0 };
        self.put(cpu, time, ids, (COMM, misc), &[two(ids.0, ids.1), text(name)].concat());
    }

    pub fn fork(&mut self, cpu: usize, time: u64, child: (i32, i32), parent: (i32, i32)) {
        let body =
            [two(child.0, parent.0), two(child.1, parent.1), (FIRST_TIME + time).to_le_bytes().to_vec()].concat();
        self.put(cpu, time, parent, (FORK, 0), &body);
    }

    pub fn exit(&mut self, cpu: usize, time: u64, ids: (i32, i32)) {
        let body = [two(ids.0, ids.0), two(ids.1, ids.1), (FIRST_TIME + time).to_le_bytes().to_vec()].concat();
        self.put(cpu, time, ids, (EXIT, 0), &body);
    }

    /// A sample of event 0 or 1; the first `in_kernel` addresses of the stack are the kernel's.
    #[allow(clippy::too_many_arguments)]
    pub fn sample(
        &mut self,
        cpu: usize,
        time: u64,
        ids: (i32, i32),
        event: usize,
        amount: u64,
        stack: &[u64],
        in_kernel: usize,
    ) {
        let Recorded { all, chains, frequency, counter, .. } = self.recorded;
        let is_kernel = in_kernel > 0 || ids.1 == 0;
        let mut body = stack[0].to_le_bytes().to_vec();
        body.extend(two(ids.0, ids.1));
        body.extend((FIRST_TIME + time).to_le_bytes());
        if counter {
            body.extend(id(event).to_le_bytes());
        }
        if all {
            body.extend((cpu as u64).to_le_bytes());
        }
        if frequency {
            body.extend(amount.to_le_bytes());
        }
        if chains {
            let (kernel, user) = stack.split_at(if ids.1 == 0 { stack.len() } else { in_kernel });
            let mut chain: Vec<u64> = Vec::new();
            for (mark, part) in [(IN_KERNEL, kernel), (IN_USER, user)] {
                if !part.is_empty() {
                    chain.push(mark as u64);
                    chain.extend(part);
                }
            }
            body.extend((chain.len() as u64).to_le_bytes());
            chain.iter().for_each(|address| body.extend(address.to_le_bytes()));
        }
        let misc = if is_kernel { KERNEL } else { USER };
        self.rings[cpu].records.push((FIRST_TIME + time, record(SAMPLE, misc, &body)));
    }

    fn attr(&self, event: usize) -> Vec<u8> {
        let Recorded { all, frequency, clock, period, .. } = self.recorded;
        // A software clock; the counter of CPU cycles.
        let (kind, config, amount) = [(1u32, clock.1, period), (0, 0, 3 * period)][event];
        let amount = if frequency { 1_000_000_000 / period } else { amount };
        // disabled, inherit, mmap, comm, freq, enable_on_exec, task, sample_id_all, mmap2, comm_exec
        let bits: [(bool, u32); 10] = [
            (true, 0),
            (true, 1),
            (event == 0, 8),
            (event == 0, 9),
            (frequency, 10),
            (!all, 12),
            (event == 0, 13),
            (true, 18),
            (event == 0, 23),
            (event == 0, 24),
        ];
        let flags = bits.iter().filter(|(set, _)| *set).fold(0u64, |all, (_, bit)| all | 1 << bit);
        let mut bytes = [kind.to_le_bytes(), (ATTR_BYTES as u32).to_le_bytes()].concat();
        for word in [config, amount, self.sample_type(), 0, flags] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.resize(ATTR_BYTES, 0);
        bytes
    }

    /// The records as perf empties the rings, one behind the other, in rounds.
    fn rounds(&self, dice: &mut Random) -> Vec<u8> {
        let last = self.rings.iter().filter_map(|ring| Some(ring.records.last()?.0)).max().unwrap_or_default();
        let (mut bytes, mut from, mut time) = (Vec::new(), vec![0; self.rings.len()], FIRST_TIME);
        while time < last {
            time += 1_000_000 + dice.below(60_000_000) as u64;
            for (ring, from) in self.rings.iter().zip(&mut from) {
                // perf comes to the next ring a little later.
                time += dice.below(200_000) as u64;
                let end = ring.until(time, *from);
                ring.records[*from..end].iter().for_each(|(_, record)| bytes.extend(record));
                *from = end;
            }
            bytes.extend(record(FINISHED_ROUND, 0, &[]));
        }
        bytes
    }

    /// The file as perf writes it, and with its records in order of time.
    pub fn files(&mut self, program: &str, dice: &mut Random) -> [Vec<u8>; 2] {
        // A record of what happened in a step may lie a few nanoseconds behind the next.
        self.rings.iter_mut().for_each(|ring| ring.records.sort_by_key(|record| record.0));
        let mut all: Vec<_> = self.rings.iter().flat_map(|ring| ring.records.iter()).collect();
        all.sort_by_key(|record| record.0);
        let sorted: Vec<u8> = all.into_iter().flat_map(|(_, record)| record.iter().copied()).collect();
        [self.rounds(dice), sorted].map(|timed| self.file(program, &[&self.first[..], &timed].concat()))
    }

    fn file(&self, program: &str, data: &[u8]) -> Vec<u8> {
        const HEAD: usize = 104;
        let events = 1 + usize::from(self.recorded.counter);
        let attrs = HEAD + 8 * events;
        let at = attrs + events * (ATTR_BYTES + 16);
        let mut features = vec![(3, string("generated")), (4, string("6.1.0"))];
        let all: &[&str] = if self.recorded.all { &["-a"] } else { &[] };
        let words: Vec<&str> = [&["/usr/bin/perf", "record"], all, &[program]].concat();
        features.push((
            11,
            [(words.len() as u32).to_le_bytes().to_vec(), words.iter().flat_map(|w| string(w)).collect()].concat(),
        ));
        let names = [self.recorded.clock.0, "cycles"];
        let described = (0..events).flat_map(|event| {
            [&self.attr(event)[..], &1u32.to_le_bytes(), &string(names[event]), &id(event).to_le_bytes()].concat()
        });
        let counts = [(events as u32).to_le_bytes(), (ATTR_BYTES as u32).to_le_bytes()].concat();
        features.push((12, counts.into_iter().chain(described).collect()));
        let mut bytes = b"PERFILE2".to_vec();
        for word in [HEAD, ATTR_BYTES + 16, attrs, events * (ATTR_BYTES + 16), at, data.len(), 0, 0] {
            bytes.extend((word as u64).to_le_bytes());
        }
        bytes.extend(features.iter().fold(0u64, |all, (bit, _)| all | 1 << bit).to_le_bytes());
        bytes.resize(HEAD, 0);
        (0..events).for_each(|event| bytes.extend(id(event).to_le_bytes()));
        for event in 0..events {
            bytes.extend(self.attr(event));
            bytes.extend(((HEAD + 8 * event) as u64).to_le_bytes());
            bytes.extend(8u64.to_le_bytes());
        }
        bytes.extend(data);
        let mut place = bytes.len() + 16 * features.len();
        for (_, content) in &features {
            bytes.extend((place as u64).to_le_bytes());
            bytes.extend((content.len() as u64).to_le_bytes());
            place += content.len();
        }
        features.iter().for_each(|(_, content)| bytes.extend(content));
        bytes
    }
}

/// The number by which samples name their event.
fn id(event: usize) -> u64 {
    9_000 + event as u64
}
