//! Writes small recordings of tracepoints as perf and trace-cmd write them, for machines of both byte orders and of 32
//! and 64 bits: the same events, the records and formats of such a kernel.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod perf_data;
mod requests;
mod trace_dat;

pub use perf_data::{PERF, PerfOptions};
pub use requests::{requests, switch};
use std::fmt::Write;
pub use trace_dat::BufferOf;

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
pub const FORMATS: [EventFormat; 13] = [
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
    EventFormat(
        "sched",
        "sched_wakeup",
        &[("char comm[16]", 16), ("pid_t pid", 4), ("int prio", 4), ("int target_cpu", 4)],
    ),
    // A gap of four bytes where a `long` has eight.
    EventFormat(
        "syscalls",
        "sys_enter_clone3",
        &[("int __syscall_nr", 4), ("struct clone_args * uargs", LONG), ("size_t size", LONG)],
    ),
    EventFormat("syscalls", "sys_exit_clone3", &[("int __syscall_nr", 4), ("long ret", LONG)]),
    EventFormat(
        "block",
        "block_rq_issue",
        &[
            ("dev_t dev", 4),
            ("sector_t sector", 8),
            ("unsigned int nr_sector", 4),
            ("unsigned int bytes", 4),
            ("char rwbs[8]", 8),
            ("char comm[16]", 16),
        ],
    ),
    EventFormat(
        "block",
        "block_rq_complete",
        &[
            ("dev_t dev", 4),
            ("sector_t sector", 8),
            ("unsigned int nr_sector", 4),
            ("int error", 4),
            ("char rwbs[8]", 8),
        ],
    ),
    EventFormat(
        "task",
        "task_newtask",
        &[("pid_t pid", 4), ("char comm[16]", 16), ("unsigned long clone_flags", LONG), ("short oom_score_adj", 2)],
    ),
];

/// Positions in [`FORMATS`].
pub const SWITCH: usize = 0;
pub const WAKING: usize = 1;
pub const SYS_ENTER: usize = 2;
pub const SYS_EXIT: usize = 3;
pub const PRINT: usize = 4;
pub const KERNEL_STACK: usize = 5;
pub const USER_STACK: usize = 6;
pub const WAKEUP: usize = 7;
pub const ENTER_CLONE: usize = 8;
pub const EXIT_CLONE: usize = 9;
pub const ISSUE: usize = 10;
pub const COMPLETE: usize = 11;
pub const NEW_TASK: usize = 12;

/// Saved names of threads.
const COMMANDS: &str = "100 worker\n200 indexer\n";

/// The number of the first format.
pub const FIRST: u16 = 300;

/// An event that happened: time in ns, CPU, thread, format, and the values of its members.
#[derive(Clone, Default)]
pub struct Happened {
    pub time: u64,
    pub cpu: u32,
    pub tid: i32,
    pub format: usize,
    pub values: Vec<Given>,
    /// `common_flags`.
    pub flags: u8,
    /// Process and thread as perf gives them, if not `tid` for both.
    pub ids: Option<(i32, i32)>,
    /// perf's call chain, with its markers.
    pub chain: Vec<u64>,
}

/// The value of a member.
#[derive(Clone)]
pub enum Given {
    Number(i64),
    Numbers(Vec<u64>),
    Text(&'static str),
}

/// The formats of some events.
fn formats_of(events: &[Happened]) -> Vec<usize> {
    let is_used = |number: &usize| FORMATS[*number].0 == "ftrace" || events.iter().any(|e| e.format == *number);
    (0..FORMATS.len()).filter(is_used).collect()
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
        bytes.extend([event.flags, 0]);
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

    /// Magic, version, and the sizes of the machine.
    fn magic(self, version: &str, page: usize) -> Vec<u8> {
        let mut bytes = b"\x17\x08\x44tracing".to_vec();
        bytes.extend(version.as_bytes());
        bytes.extend([0, u8::from(self.big), self.long as u8]);
        bytes.extend(self.number(page as i64, 4));
        bytes
    }

    /// The description of a page.
    fn header_info(self, page: usize) -> Vec<u8> {
        let data = 8 + self.long;
        let field =
            |name: &str, at: usize, size: usize| format!("\tfield: {name};\toffset:{at};\tsize:{size};\tsigned:0;\n");
        let parts = [
            field("u64 timestamp", 0, 8),
            field("local_t commit", 8, self.long),
            field("char data", data, page - data),
        ];
        let header = parts.concat();
        [b"header_page\0".to_vec(), self.counted(&header), b"header_event\0".to_vec(), self.counted("")].concat()
    }

    /// The formats of the tracer's own events.
    fn ftrace_formats(self, formats: &[usize]) -> Vec<u8> {
        let own: Vec<usize> = formats.iter().copied().filter(|n| FORMATS[*n].0 == "ftrace").collect();
        let texts = own.iter().flat_map(|n| self.counted(&self.format(*n)));
        [self.number(own.len() as i64, 4), texts.collect()].concat()
    }

    /// The formats of all other events, by system.
    fn event_formats(self, formats: &[usize]) -> Vec<u8> {
        let systems: std::collections::BTreeSet<&str> =
            formats.iter().map(|n| FORMATS[*n].0).filter(|system| *system != "ftrace").collect();
        let mut bytes = self.number(systems.len() as i64, 4);
        for system in systems {
            let of: Vec<usize> = formats.iter().copied().filter(|n| FORMATS[*n].0 == system).collect();
            bytes.extend([system.as_bytes(), &[0]].concat());
            bytes.extend(self.number(of.len() as i64, 4));
            of.iter().for_each(|n| bytes.extend(self.counted(&self.format(*n))));
        }
        bytes
    }

    /// The head that both recorders share, up to the saved names of threads.
    fn head(self, version: &str, page: usize, formats: &[usize]) -> Vec<u8> {
        let mut bytes = self.magic(version, page);
        bytes.extend([self.header_info(page), self.ftrace_formats(formats), self.event_formats(formats)].concat());
        // Neither symbols nor formats of printk.
        bytes.extend([0; 8]);
        bytes.extend(self.counted(COMMANDS));
        bytes
    }
}
