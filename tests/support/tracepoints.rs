//! Writes small recordings of tracepoints as perf and trace-cmd write them, for machines of both byte orders and of 32
//! and 64 bits: the same events, the records and formats of such a kernel.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fmt::Write;

/// A machine that records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The order of the bytes of its numbers.
    pub big: bool,
    /// Bytes of a `long`.
    pub long: usize,
}

/// One of each kind.
pub const MACHINES: [Machine; 4] = [
    Machine { big: false, long: 8 },
    Machine { big: true, long: 8 },
    Machine { big: false, long: 4 },
    Machine { big: true, long: 4 },
];

/// A member of an event: its declaration in C, with its size in bytes; 0 is the rest of the record, and `LONG` that of
/// a `long`.
type Member = (&'static str, usize);

/// See [`Member`].
const LONG: usize = 1000;

/// An event: system, name, members.
pub struct EventFormat(pub &'static str, pub &'static str, pub &'static [Member]);

/// By number minus [`FIRST`].
pub const FORMATS: [EventFormat; 7] = [
    EventFormat(
        "sched",
        "sched_switch",
        &[
            ("char prev_comm[16]", 16),
            ("pid_t prev_pid", 4),
            ("int prev_prio", 4),
            ("long prev_state", LONG),
            ("char next_comm[16]", 16),
            ("pid_t next_pid", 4),
            ("int next_prio", 4),
        ],
    ),
    EventFormat(
        "sched",
        "sched_waking",
        &[("char comm[16]", 16), ("pid_t pid", 4), ("int prio", 4), ("int target_cpu", 4)],
    ),
    EventFormat("raw_syscalls", "sys_enter", &[("long id", LONG), ("unsigned long args[6]", 6 * LONG)]),
    EventFormat("raw_syscalls", "sys_exit", &[("long id", LONG), ("long ret", LONG)]),
    EventFormat("ftrace", "print", &[("unsigned long ip", LONG), ("char buf[]", 0)]),
    EventFormat("ftrace", "kernel_stack", &[("int size", 4), ("unsigned long caller[8]", 8 * LONG)]),
    EventFormat("ftrace", "user_stack", &[("unsigned int tgid", 4), ("unsigned long caller[8]", 8 * LONG)]),
];

/// The number of the first format.
pub const FIRST: u16 = 300;

/// An event that happened: time in ns, CPU, thread, format, and the values of its members.
pub struct Happened {
    pub time: u64,
    pub cpu: u32,
    pub tid: i32,
    pub format: usize,
    pub values: Vec<Given>,
}

/// The value of a member.
pub enum Given {
    Number(i64),
    Numbers(Vec<u64>),
    Text(&'static str),
}

impl Machine {
    /// A number of this many bytes.
    pub fn number(self, value: i64, size: usize) -> Vec<u8> {
        match self.big {
            true => value.to_be_bytes()[8 - size..].to_vec(),
            false => value.to_le_bytes()[..size].to_vec(),
        }
    }

    fn size(self, size: usize) -> usize {
        if size >= LONG { size / LONG * self.long } else { size }
    }

    /// Offset and size of each member.
    fn places(self, format: &EventFormat) -> Vec<(usize, usize)> {
        let mut at = 8usize;
        let place = |(declared, size): &Member| {
            let bytes = self.size(*size);
            let align = if *size >= LONG {
                self.long
            } else if declared.starts_with("char") {
                1
            } else {
                bytes.max(1)
            };
            let from = at.next_multiple_of(align);
            at = from + bytes;
            (from, bytes)
        };
        format.2.iter().map(place).collect()
    }

    /// The text of a format.
    pub fn format(self, number: usize) -> String {
        let format = &FORMATS[number];
        let mut text = format!("name: {}\nID: {}\nformat:\n", format.1, usize::from(FIRST) + number);
        for (declared, at, size) in [
            ("unsigned short common_type", 0, 2),
            ("unsigned char common_flags", 2, 1),
            ("unsigned char common_preempt_count", 3, 1),
            ("int common_pid", 4, 4),
        ] {
            let signed = i32::from(declared.starts_with("int"));
            writeln!(text, "\tfield:{declared};\toffset:{at};\tsize:{size};\tsigned:{signed};").unwrap();
        }
        text.push('\n');
        for ((declared, _), (at, size)) in format.2.iter().zip(self.places(format)) {
            let signed = i32::from(!declared.starts_with("unsigned"));
            writeln!(text, "\tfield:{declared};\toffset:{at};\tsize:{size};\tsigned:{signed};").unwrap();
        }
        text + "\nprint fmt: \"\"\n"
    }

    /// The kernel's record of an event.
    pub fn record(self, event: &Happened) -> Vec<u8> {
        let format = &FORMATS[event.format];
        let mut bytes = self.number(i64::from(FIRST) + event.format as i64, 2);
        bytes.extend([0, 0]);
        bytes.extend(self.number(i64::from(event.tid), 4));
        for ((at, size), value) in self.places(format).into_iter().zip(&event.values) {
            bytes.resize(at, 0);
            match value {
                Given::Number(n) => bytes.extend(self.number(*n, size)),
                Given::Numbers(all) => all.iter().for_each(|n| bytes.extend(self.number(*n as i64, self.long))),
                Given::Text(text) => {
                    bytes.extend(text.as_bytes());
                    bytes.resize((at + size).max(bytes.len() + usize::from(size == 0)), 0);
                }
            }
        }
        bytes
    }

    /// Length and text, as the formats' containers have them.
    fn counted(self, text: &str) -> Vec<u8> {
        [self.number(text.len() as i64, 8), text.as_bytes().to_vec()].concat()
    }

    /// The head that both recorders share, up to the saved names of threads.
    fn head(self, version: &str, page: usize) -> Vec<u8> {
        let mut bytes = b"\x17\x08\x44tracing".to_vec();
        bytes.extend(version.as_bytes());
        bytes.extend([0, u8::from(self.big), self.long as u8]);
        bytes.extend(self.number(page as i64, 4));
        let data = 8 + self.long;
        let field =
            |name: &str, at: usize, size: usize| format!("\tfield: {name};\toffset:{at};\tsize:{size};\tsigned:0;\n");
        let parts = [
            field("u64 timestamp", 0, 8),
            field("local_t commit", 8, self.long),
            field("char data", data, page - data),
        ];
        let header = parts.concat();
        bytes.extend(
            [b"header_page\0".to_vec(), self.counted(&header), b"header_event\0".to_vec(), self.counted("")].concat(),
        );
        let of = |system: &'static str| (0..FORMATS.len()).filter(move |n| FORMATS[*n].0 == system);
        bytes.extend(self.number(of("ftrace").count() as i64, 4));
        of("ftrace").for_each(|n| bytes.extend(self.counted(&self.format(n))));
        bytes.extend(self.number(2, 4));
        for system in ["sched", "raw_syscalls"] {
            bytes.extend([system.as_bytes(), &[0]].concat());
            bytes.extend(self.number(of(system).count() as i64, 4));
            of(system).for_each(|n| bytes.extend(self.counted(&self.format(n))));
        }
        // Neither symbols nor formats of printk.
        bytes.extend([0; 8]);
        bytes.extend(self.counted("100 worker\n200 indexer\n"));
        bytes
    }

    /// A trace.dat of version 6. `options`: number and content of further options.
    pub fn trace_dat(self, events: &[Happened], options: &[(u16, Vec<u8>)]) -> Vec<u8> {
        const PAGE: usize = 4096;
        let cpus = events.iter().map(|event| event.cpu).max().unwrap_or(0) + 1;
        let mut bytes = self.head("6", PAGE);
        bytes.extend(self.number(i64::from(cpus), 4));
        bytes.extend(b"options  \0");
        for (id, content) in options {
            bytes.extend(
                [self.number(i64::from(*id), 2), self.number(content.len() as i64, 4), content.clone()].concat(),
            );
        }
        bytes.extend([0, 0]);
        bytes.extend(b"flyrecord\0");
        let mut at = (bytes.len() + 16 * cpus as usize).next_multiple_of(PAGE);
        let pages: Vec<Vec<u8>> = (0..cpus).map(|cpu| self.pages(events, cpu, PAGE)).collect();
        for pages in &pages {
            bytes.extend([self.number(at as i64, 8), self.number(pages.len() as i64, 8)].concat());
            at += pages.len();
        }
        bytes.resize(bytes.len().next_multiple_of(PAGE), 0);
        bytes.extend(pages.concat());
        bytes
    }

    /// One page for every eight events of a CPU; the first record of each has an absolute time.
    fn pages(self, events: &[Happened], cpu: u32, page: usize) -> Vec<u8> {
        let mut all = Vec::new();
        let own: Vec<&Happened> = events.iter().filter(|event| event.cpu == cpu).collect();
        for some in own.chunks(8) {
            let mut time = some[0].time - 5;
            let mut data = Vec::new();
            for (n, event) in some.iter().enumerate() {
                let delta = event.time - time;
                let mut word = |kind: u64, delta: u64| {
                    let word = if self.big { kind << 27 | delta } else { delta << 5 | kind };
                    data.extend(self.number(word as i64, 4));
                };
                let mask = (1 << 27) - 1;
                let record = self.record(event);
                let left = match n {
                    0 => {
                        word(31, event.time & mask);
                        data.extend(self.number((event.time >> 27 & 0xffff_ffff) as i64, 4));
                        0
                    }
                    _ if delta > mask => {
                        word(30, delta & mask);
                        data.extend(self.number((delta >> 27) as i64, 4));
                        0
                    }
                    _ => delta,
                };
                let mut word = |kind: u64, delta: u64| {
                    let word = if self.big { kind << 27 | delta } else { delta << 5 | kind };
                    data.extend(self.number(word as i64, 4));
                };
                let length = record.len().next_multiple_of(4);
                match length / 4 {
                    words @ 1..=28 => word(words as u64, left),
                    _ => {
                        word(0, left);
                        data.extend(self.number(length as i64 + 4, 4));
                    }
                }
                data.extend(&record);
                data.resize(data.len() + length - record.len(), 0);
                time = event.time;
            }
            let mut bytes = self.number(some[0].time as i64 - 5, 8);
            bytes.extend(self.number(data.len() as i64, self.long));
            bytes.extend(data);
            bytes.resize(page, 0);
            all.extend(bytes);
        }
        all
    }

    /// A perf.data. `records`: type, misc and body of records that are no samples; they come first, without a trailer.
    /// `attr`: bytes of each attr.
    pub fn perf_data(self, events: &[Happened], records: &[(u32, u16, Vec<u8>)], attr: usize) -> Vec<u8> {
        let n = |value: u64, size| self.number(value as i64, size);
        let attrs: Vec<usize> = (0..4).collect();
        // IDENTIFIER, TID, TIME, CPU, RAW; without sample_id_all.
        let sample_type = 0x10000 | 2 | 4 | 0x80 | 0x400;
        let one = |format: usize| {
            let mut bytes =
                [n(2, 4), n(attr as u64, 4), n(u64::from(FIRST) + format as u64, 8), n(1, 8), n(sample_type, 8)]
                    .concat();
            bytes.extend([n(0, 8), n(1 << 8 | 1 << 9 | 1 << 13 | 1 << 25, 8)].concat());
            bytes.resize(92, 0);
            bytes.extend(n(1, 4));
            bytes.resize(attr, 0);
            bytes
        };
        let id = |format: usize| 7000 + format as u64;
        let mut data = Vec::new();
        let mut record = |kind: u32, misc: u16, body: &[u8]| {
            data.extend([n(kind.into(), 4), n(misc.into(), 2), n(body.len() as u64 + 8, 2), body.to_vec()].concat());
        };
        records.iter().for_each(|(kind, misc, body)| record(*kind, *misc, body));
        for event in events.iter().filter(|event| event.format < 4) {
            let mut raw = self.record(event);
            raw.resize((raw.len() + 4).next_multiple_of(8) - 4, 0xee);
            let parts = [
                n(id(event.format), 8),
                n(event.tid as u64, 4),
                n(event.tid as u64, 4),
                n(event.time, 8),
                n(event.cpu.into(), 4),
                n(0, 4),
                n(raw.len() as u64, 4),
                raw,
            ];
            record(9, 1, &parts.concat());
        }
        let string = |text: &str| [n(text.len() as u64 + 1, 4), text.as_bytes().to_vec(), vec![0]].concat();
        let desc = attrs.iter().map(|format| {
            let name = format!("{}:{}", FORMATS[*format].0, FORMATS[*format].1);
            [one(*format), n(1, 4), string(&name), n(id(*format), 8)].concat()
        });
        let desc = [n(attrs.len() as u64, 4), n(attr as u64, 4), desc.collect::<Vec<_>>().concat()].concat();
        let features = [(1, self.head("0.6", 4096)), (4, string("6.1.0")), (12, desc)];
        let ids = 104;
        let list = ids + 8 * attrs.len();
        let at = list + (attr + 16) * attrs.len();
        let mut bytes = if self.big { b"2ELIFREP".to_vec() } else { b"PERFILE2".to_vec() };
        bytes.extend(
            [n(104, 8), n(attr as u64 + 16, 8), n(list as u64, 8), n(((attr + 16) * attrs.len()) as u64, 8)].concat(),
        );
        bytes.extend([n(at as u64, 8), n(data.len() as u64, 8), n(0, 8), n(0, 8)].concat());
        bytes.extend(n(features.iter().map(|(bit, _)| 1 << bit).sum(), 8));
        bytes.resize(104, 0);
        attrs.iter().for_each(|format| bytes.extend(n(id(*format), 8)));
        for format in &attrs {
            bytes.extend([one(*format), n(ids as u64 + 8 * *format as u64, 8), n(8, 8)].concat());
        }
        bytes.extend(&data);
        let mut place = at + data.len() + 16 * features.len();
        for (_, content) in &features {
            bytes.extend([n(place as u64, 8), n(content.len() as u64, 8)].concat());
            place += content.len();
        }
        features.into_iter().for_each(|(_, content)| bytes.extend(content));
        bytes
    }
}

/// Ten requests: `worker` (100) reads, is woken by `indexer` (200) after 1 ms, or 3 ms every fourth time, and writes
/// two nested spans into `trace_marker`.
pub fn requests() -> Vec<Happened> {
    use Given::{Number, Numbers, Text};
    let mut events = Vec::new();
    let mut at = 1_000_000_000_000u64;
    let switch = |time, cpu, prev: (&'static str, i32, i64), next: (&'static str, i32)| Happened {
        time,
        cpu,
        tid: prev.1,
        format: 0,
        values: vec![
            Text(prev.0),
            Number(prev.1.into()),
            Number(120),
            Number(prev.2),
            Text(next.0),
            Number(next.1.into()),
            Number(120),
        ],
    };
    let (worker, indexer, idle) = (("worker", 100), ("indexer", 200), ("swapper", 0));
    events.push(switch(at, 0, (idle.0, 0, 0), worker));
    events.push(switch(at, 1, (idle.0, 0, 0), indexer));
    for n in 0..10u64 {
        let wait = if n % 4 == 3 { 3_000_000 } else { 1_000_000 };
        let mut happens = |time, cpu, tid, format, values| events.push(Happened { time, cpu, tid, format, values });
        let print = |text| vec![Number(0x1234), Text(text)];
        happens(at + 1000, 0, 100, 4, print("B|100|request\n"));
        happens(at + 2000, 0, 100, 4, print("B|100|read page\n"));
        happens(at + 3000, 0, 100, 2, vec![Number(0), Numbers(vec![3, 0x7fff, 64, 0, 0, 0])]);
        happens(at + 3500, 0, 100, 4, print("S|100|fetch|7\n"));
        events.push(switch(at + 4000, 0, ("worker", 100, 1), idle));
        let mut happens = |time, cpu, tid, format, values| events.push(Happened { time, cpu, tid, format, values });
        happens(at + wait, 1, 200, 1, vec![Text("worker"), Number(100), Number(120), Number(0)]);
        happens(at + wait + 500, 1, 200, 4, print("F|100|fetch|7\n"));
        events.push(switch(at + wait + 1000, 0, (idle.0, 0, 0), worker));
        let mut happens = |time, cpu, tid, format, values| events.push(Happened { time, cpu, tid, format, values });
        happens(at + wait + 2000, 0, 100, 3, vec![Number(0), Number(64)]);
        happens(at + wait + 3000, 0, 100, 4, print("E|100\n"));
        happens(at + wait + 4000, 0, 100, 4, print("E|100\n"));
        happens(at + wait + 4500, 0, 100, 4, print("other text\n"));
        // More than 27 bits of ns.
        at += 200_000_000;
    }
    // So that all CPUs were recorded to the end.
    events.push(switch(at, 0, ("worker", 100, 1), idle));
    events.push(switch(at, 1, ("indexer", 200, 1), idle));
    events
}
