//! Names of kernel addresses, from `kallsyms`, `System.map` and lists of module symbols.
//!
//! Lines are `address type name [module]`; only text symbols count. The files carry no sizes: a symbol ends where the
//! next one begins, and after a mebibyte at most. Frames of interrupts, of the system call entry and of the
//! tracer's own modules are not the thread's work and are removed. So are the scheduler's own functions where a thread
//! stopped: they are in a section of their own, between `__sched_text_start` and `__sched_text_end`, as for
//! `/proc/PID/wchan`.

use super::compiled::last_before;
use crate::base::mapped::open_regular;
use crate::base::packed::packed;
use crate::input::perf::side::END;
use std::borrow::Cow;
use std::io::{self, BufRead, BufReader};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Prefixes of the functions that enter system calls, on the architectures and kernels in use.
const ENTRIES: [&str; 8] =
    ["__x64_sys_", "__ia32_sys_", "__arm64_sys_", "__riscv_sys_", "__s390x_sys_", "__se_sys_", "SyS_", "ksys_"];
/// Symbols at the beginning and end of the section of the scheduler's own functions.
const SCHEDULER: (&str, &str) = ("__sched_text_start", "__sched_text_end");
/// The longest size of a function that is accepted.
const LONGEST: u64 = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Symbol {
    address: u64,
    name: Box<str>,
    module: Option<Box<str>>,
}

/// Kernel symbols sorted by address.
#[derive(Clone, Debug, Default)]
pub struct KernelSymbols {
    symbols: Vec<Symbol>,
    /// Addresses of the scheduler's own functions.
    scheduler: Range<u64>,
}

packed! {
    Symbol { address, name, module }
    KernelSymbols { symbols, scheduler }
}

impl KernelSymbols {
    /// What is needed to name the functions at these addresses and before them, which are sorted.
    pub fn only_at(&self, addresses: &[u64]) -> KernelSymbols {
        let symbols = last_before(&self.symbols, |symbol| symbol.address, addresses).cloned().collect();
        KernelSymbols { symbols, scheduler: self.scheduler.clone() }
    }

    /// True where the symbols are in the order that the search relies on.
    pub fn is_sorted(&self) -> bool {
        self.symbols.is_sorted_by_key(|symbol| symbol.address)
    }

    /// Read symbol lists, and those from inside recordings. Other lines are skipped.
    pub fn of<'a>(files: impl IntoIterator<Item = &'a Path>, recorded: &[Arc<[u8]>]) -> io::Result<Self> {
        let mut symbols = Vec::new();
        let mut scheduler = 0..0;
        // The kernel alone has a hundred thousand lines: each is taken apart once.
        let mut take = |line: &[u8]| {
            let line = std::str::from_utf8(line).map_or_else(|_| String::from_utf8_lossy(line), Cow::Borrowed);
            let Some(line) = Line::of(&line) else { return };
            match line.name {
                name if name == SCHEDULER.0 => scheduler.start = line.address,
                name if name == SCHEDULER.1 => scheduler.end = line.address,
                _ => symbols.extend(line.symbol()),
            }
        };
        for file in files {
            for line in BufReader::new(open_regular(file)?).split(b'\n') {
                take(&line?);
            }
        }
        recorded.iter().flat_map(|text| text.split(|b| *b == b'\n')).for_each(take);
        symbols.sort_unstable();
        symbols.dedup_by(|b, a| a.address == b.address);
        Ok(KernelSymbols { symbols, scheduler })
    }

    /// Add symbols of code that was made while recording, each with its end. Where both name an address, the list of
    /// all symbols counts, which the kernel made itself.
    pub fn add<'a>(&mut self, texts: impl Iterator<Item = &'a str>) {
        let symbol = |line: &str| Line::of(line).and_then(Line::symbol).or_else(|| end(line));
        self.symbols.extend(texts.flat_map(str::lines).filter_map(symbol));
        // Of one address the named symbol comes before the end of another.
        self.symbols.sort_by_key(|symbol| (symbol.address, symbol.name.is_empty()));
        self.symbols.dedup_by(|b, a| a.address == b.address);
    }

    /// True when no symbol was found (`kallsyms` read without permission has addresses of zero only).
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    fn at(&self, address: u64) -> Option<&Symbol> {
        let after = self.symbols.partition_point(|s| s.address <= address);
        self.symbols[..after].last().filter(|s| address - s.address < LONGEST && !s.name.is_empty())
    }

    /// The system call of a kernel stack, given innermost address first.
    pub fn system_call(&self, stack: &[u64]) -> Option<&str> {
        let mut names = stack.iter().filter_map(|address| self.at(address.wrapping_sub(1)));
        let call = |symbol: &'_ Symbol| ENTRIES.iter().any(|entry| symbol.name.starts_with(entry));
        let entered = names.rfind(|symbol| call(symbol))?;
        ENTRIES.iter().find_map(|entry| entered.name.strip_prefix(entry))
    }

    /// Names of all known functions on a stack, innermost first, including those of interrupts and of the tracer.
    pub fn all_functions<'s>(&'s self, stack: &'s [u64]) -> impl Iterator<Item = &'s str> {
        // All except the innermost are return addresses: one less is inside the calling instruction.
        let known = stack.iter().enumerate().filter_map(|(depth, a)| self.at(a.wrapping_sub(u64::from(depth > 0))));
        known.map(|symbol| &*symbol.name)
    }

    /// Names of the thread's own kernel functions, outermost first, for addresses given innermost first.
    pub fn functions(&self, stack: &[u64]) -> Vec<&str> {
        let name = |(depth, address): (usize, &u64)| {
            // All except the innermost are return addresses: one less is inside the calling instruction.
            self.at(if depth == 0 { *address } else { address.wrapping_sub(1) })
        };
        let known: Vec<&Symbol> = stack.iter().enumerate().filter_map(name).collect();
        let own = known.iter().rposition(|s| is_interrupt_entry(&s.name)).map_or(0, |i| i + 1);
        let tracer = |s: &Symbol| s.module.as_deref().is_some_and(|m| m.starts_with("lttng")) || is_tracer(&s.name);
        let names_code = |s: &&&Symbol| !is_entry(&s.name) && !tracer(s);
        // Work that a thread does on its way back from the interrupt is its own.
        let works = known[..own].iter().rposition(|s| &*s.name == TASK_WORK).map_or(0, |i| i + 1);
        let own = known[..works].iter().chain(&known[own..]);
        let own = own.filter(names_code).skip_while(|s| self.scheduler.contains(&s.address));
        let mut own: Vec<&str> = own.map(|s| &*s.name).collect();
        own.reverse();
        own
    }
}

/// A line of a list, in words.
struct Line<'a> {
    address: u64,
    /// `t` or `T` for code.
    kind: &'a str,
    name: &'a str,
    module: Option<&'a str>,
}

impl<'a> Line<'a> {
    fn of(text: &'a str) -> Option<Line<'a>> {
        let mut words = text.split_ascii_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        Some(Line { address, kind: words.next()?, name: words.next()?, module: words.next() })
    }

    /// The function that it names, if it names one.
    fn symbol(self) -> Option<Symbol> {
        let Line { address, kind, name, module } = self;
        // A section's name has the address of its first function.
        let is_section = name.ends_with("_text_start") || name.ends_with("_text_end");
        let is_function = address != 0 && matches!(kind, "t" | "T" | "w" | "W") && !is_section;
        let module = module.map(|m| m.trim_matches(['[', ']']).into());
        is_function.then(|| Symbol { address, name: name.into(), module })
    }
}

/// The end of code, as a symbol without a name.
fn end(line: &str) -> Option<Symbol> {
    let mut words = line.split_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    (words.next()? == END).then(|| Symbol { address, name: "".into(), module: None })
}

/// True for ftrace's functions from a tracepoint to its ring buffer.
fn is_tracer(name: &str) -> bool {
    [
        "trace_event_raw_event_",
        "trace_event_buffer_",
        "__traceiter_",
        "perf_trace_",
        "ftrace_syscall_",
        "event_triggers_",
    ]
    .iter()
    .any(|begin| name.starts_with(begin))
}

/// Runs the works that are left for a thread on its way back to its program, such as holding it back.
const TASK_WORK: &str = "task_work_run";

/// True for the entry function of an interrupt: the frames inside it are not the thread's own.
pub fn is_interrupt_entry(name: &str) -> bool {
    name.starts_with("asm_sysvec_")
        || matches!(
            name,
            "asm_common_interrupt"
                | "common_interrupt"
                | "apic_timer_interrupt"
                | "ret_from_intr"
                | "el0_irq"
                | "el1_irq"
        )
        || name.starts_with("el1h_64_irq")
        || name.starts_with("el0t_64_irq")
}

/// True for functions from user mode into the kernel, which the system call's own frame already shows.
fn is_entry(name: &str) -> bool {
    name.starts_with("entry_SYSCALL")
        || name.starts_with("do_syscall_")
        || name.starts_with("__x64_sys_")
        || name.starts_with("__ia32_sys_")
        || name.starts_with("__arm64_sys_")
        || name.starts_with("el0_svc")
        || name.starts_with("el0t_64_sync")
        || name.starts_with("ret_from_fork")
}

/// The symbols of the running kernel, where this user may read them: without the permission all addresses are zero.
pub const RUNNING: &str = "/proc/kallsyms";

/// True where the symbols of the running kernel can be read.
pub fn is_running_readable() -> bool {
    let Ok(file) = open_regular(Path::new(RUNNING)) else { return false };
    let first = BufReader::new(file).split(b'\n').next().and_then(Result::ok);
    first.is_some_and(|line| line.iter().take_while(|b| b.is_ascii_hexdigit()).any(|digit| *digit != b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn symbols(text: &str) -> KernelSymbols {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        KernelSymbols::of([file.path()], &[]).unwrap()
    }

    #[test]
    fn functions_removes_interrupts_entries_and_the_tracer() {
        let list = symbols(
            "ffffffff81000000 T entry_SYSCALL_64_after_hwframe\n\
             ffffffff81000100 t do_syscall_64\n\
             ffffffff81000200 T vfs_write\n\
             ffffffff81000300 T asm_sysvec_apic_timer_interrupt\n\
             ffffffff81000400 T hrtimer_interrupt\n\
             ffffffff81000500 D data\n\
             not a line\n\
             ffffffffc0000000 t probe\t[lttng_tracer]\n",
        );
        let stack = [
            0xffff_ffff_c000_0001,
            0xffff_ffff_8100_0401,
            0xffff_ffff_8100_0301,
            0xffff_ffff_8100_0210,
            0xffff_ffff_8100_0120,
            0xffff_ffff_8100_0010,
        ];
        assert_eq!(list.functions(&stack), ["vfs_write"]);
        assert_eq!(list.functions(&stack[..3]), [""; 0]);
        assert_eq!(list.functions(&[0xffff_ffff_c000_0001, 0xffff_ffff_8100_0210]), ["vfs_write"]);
    }

    #[test]
    fn functions_keeps_the_works_that_a_thread_does_on_its_way_back_from_an_interrupt() {
        let list = symbols(
            "ffffffff81000100 T asm_sysvec_apic_timer_interrupt\n\
             ffffffff81000200 T irqentry_exit_to_user_mode\n\
             ffffffff81000300 T task_work_run\n\
             ffffffff81000400 T __cond_resched\n\
             ffffffff81000500 T hrtimer_interrupt\n",
        );
        let of = |tails: &[u64]| list.functions(&tails.iter().map(|t| 0xffff_ffff_8100_0010 + t).collect::<Vec<_>>());
        let works = of(&[0x400, 0x300, 0x200, 0x100]).concat();
        assert_eq!(works, "task_work_run__cond_resched");
        // It loses the CPU there for another reason, or the handler itself runs.
        assert_eq!(of(&[0x400, 0x200, 0x100]), [""; 0]);
        assert_eq!(of(&[0x500, 0x100]), [""; 0]);
    }

    #[test]
    fn add_names_code_that_was_made_while_recording_up_to_its_end() {
        let mut symbols = symbols("ffffffff81000000 T do_sys\nffffffffc0000000 t module_init [x]\n");
        symbols.add(["ffffffffc0000400 t bpf_prog_1_run [bpf]\nffffffffc0000480 e -\n"].into_iter());
        let name = |address: u64| symbols.functions(&[address]).concat();
        assert_eq!(name(0xffff_ffff_c000_0404), "bpf_prog_1_run");
        assert_eq!(name(0xffff_ffff_c000_0500), "", "past its end");
        assert_eq!(name(0xffff_ffff_c000_0004), "module_init");
    }

    #[test]
    fn functions_removes_the_scheduler_where_a_thread_stopped() {
        let list = symbols(
            "ffffffff81000100 t do_syscall_64\n\
             ffffffff81000200 T do_nanosleep\n\
             ffffffff81000300 T __sched_text_start\n\
             ffffffff81000300 t __schedule\n\
             ffffffff81000400 T schedule\n\
             ffffffff81000500 T __sched_text_end\n\
             ffffffff81000500 T io_uring_run\n",
        );
        let stack = [0xffff_ffff_8100_0310, 0xffff_ffff_8100_0410, 0xffff_ffff_8100_0210, 0xffff_ffff_8100_0110];
        assert_eq!(list.functions(&stack), ["do_nanosleep"]);
        assert_eq!(
            list.functions(&[0xffff_ffff_8100_0510, stack[1], stack[2]]),
            ["do_nanosleep", "schedule", "io_uring_run"]
        );
    }

    #[test]
    fn functions_gives_a_return_address_to_the_function_before_it() {
        let list = symbols("ffffffff81000200 T vfs_write\nffffffff81000300 T vfs_read\n");
        assert_eq!(list.functions(&[0xffff_ffff_8100_0300]), ["vfs_read"]);
        assert_eq!(list.functions(&[0xffff_ffff_8100_0300, 0xffff_ffff_8100_0300]), ["vfs_write", "vfs_read"]);
        assert!(symbols("0000000000000000 T hidden\n").is_empty());
    }
}
