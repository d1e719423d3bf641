//! Functions on call stacks that a file gives by their names.
//!
//! In: the function and the file of a frame. Out: the word of it on a stack. A function of a program is
//! a number, and all numbers together with their names belong to the recording ([`named`]). A function of the
//! kernel is an address that follows from its name, so that parts of a file agree on it, with a list like
//! `/proc/kallsyms` that gives the name back: analyses know system calls, interrupts and the scheduler by this list.
//! Two functions of ten thousand have the same address in one of 100,000 recordings. Cost: a hash of each new name.

use crate::base::named_frames::{FRAME_FILE, named};
use crate::base::names::{NameId, Names};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The word of a frame, as the innermost one of its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// In a program.
    User(NameId),
    Kernel(u64),
}

/// The addresses of the kernel's functions begin here.
const KERNEL: u64 = 0xffff_8000_0000_0000;
/// Those of the scheduler's own functions begin and end here.
const SCHEDULER: std::ops::Range<u64> = 0xffff_f000_0000_0000..0xffff_f800_0000_0000;
/// Bytes between two functions.
const APART: u64 = 16;

/// Beginnings of the names of functions in the kernel's section `.sched.text`: a thread that leaves its CPU is in
/// these, whatever it waits for.
const SCHEDULING: [&str; 21] = [
    "__schedule",
    "schedule",
    "io_schedule",
    "preempt_schedule",
    "__cond_resched",
    "yield",
    "__wait_on_bit",
    "out_of_line_wait_on_bit",
    "bit_wait",
    "__wait_for_common",
    "wait_for_completion",
    "__mutex_lock",
    "mutex_lock",
    "__ww_mutex_lock",
    "__down",
    "down_",
    "rwsem_down_",
    "percpu_down_write",
    "rt_mutex_slowlock",
    "do_nanosleep",
    "usleep_range_state",
];
/// Functions that begin so and are in other sections.
const NOT_SCHEDULING: [&str; 2] = ["schedule_work", "schedule_tail"];

/// Functions on call stacks; see the module.
#[derive(Debug, Default)]
pub(super) struct Frames {
    user: Names,
    kernel: BTreeMap<u64, String>,
}

impl Frames {
    /// A function of a program; an empty file is not known.
    pub fn user(&mut self, function: &str, file: &str) -> Frame {
        let name = match file {
            "" => function.to_owned(),
            _ => format!("{function}{FRAME_FILE}{file}"),
        };
        Frame::User(self.user.intern(&name))
    }

    /// A function of the kernel; an empty module is the kernel itself.
    pub fn kernel(&mut self, function: &str, module: &str) -> Frame {
        // Names in the list end at a space.
        let plain = |text: &str| text.replace(char::is_whitespace, "_");
        let symbol = match module {
            "" => plain(function),
            _ => format!("{} [{}]", plain(function), plain(module)),
        };
        let base = if is_scheduling(&symbol) { SCHEDULER.start } else { KERNEL };
        let address = base + hash(&symbol) % (SCHEDULER.end - SCHEDULER.start) / APART * APART;
        self.kernel.entry(address).or_insert(symbol);
        // Behind its begin, so that it is inside of the function as a return address, too.
        Frame::Kernel(address + 1)
    }

    /// Take the functions of another part: the numbers here of its functions of programs.
    pub fn join(&mut self, part: Frames) -> Vec<NameId> {
        for (address, symbol) in part.kernel {
            self.kernel.entry(address).or_insert(symbol);
        }
        let name = |name| self.user.intern(part.user.get(NameId::at(name)));
        (0..part.user.len()).map(name).collect()
    }

    /// The names of all functions of programs, by number.
    pub fn names(&self) -> impl Iterator<Item = Box<str>> + '_ {
        (0..self.user.len()).map(|name| self.user.get(NameId::at(name)).into())
    }

    /// The functions of the kernel as in `/proc/kallsyms`.
    pub fn kernel_symbols(&self) -> Vec<u8> {
        if self.kernel.is_empty() {
            return Vec::new();
        }
        let mut text = String::new();
        for (bound, address) in [("start", SCHEDULER.start), ("end", SCHEDULER.end)] {
            // Writing to a text cannot fail.
            let _ = writeln!(text, "{address:x} T __sched_text_{bound}");
        }
        for (address, symbol) in &self.kernel {
            let _ = writeln!(text, "{address:x} t {symbol}");
        }
        text.into_bytes()
    }
}

impl Frame {
    /// Its word at a depth of a stack: a caller's word is one more, as a return address is after its call.
    pub fn word(self, depth: usize) -> u64 {
        match self {
            Frame::User(name) => named(name) + u64::from(depth > 0),
            Frame::Kernel(address) => address,
        }
    }
}

fn is_scheduling(function: &str) -> bool {
    let begins = |with: &&str| function.starts_with(*with);
    SCHEDULING.iter().any(&begins) && !NOT_SCHEDULING.iter().any(begins)
}

/// FNV-1a: the same in all runs and versions.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::named_frames::name_of;

    #[test]
    fn frames_of_two_parts_join_by_name() {
        let (mut first, mut second) = (Frames::default(), Frames::default());
        let main = first.user("main", "/bin/app");
        assert_eq!(first.user("main", "/bin/app"), main);
        second.user("parse", "/bin/app");
        second.user("main", "/bin/app");
        let read = first.kernel("vfs_read", "");
        assert_eq!(second.kernel("vfs_read", ""), read);
        assert_ne!(second.kernel("vfs_read", "other"), read);
        assert_eq!(first.join(second), [NameId::at(1), NameId::at(0)]);
        assert_eq!(first.names().collect::<Vec<_>>(), ["main\t/bin/app".into(), Box::from("parse\t/bin/app")]);
        let symbols = String::from_utf8(first.kernel_symbols()).unwrap();
        assert!(symbols.contains(" t vfs_read\n") && symbols.contains(" t vfs_read [other]\n"), "{symbols}");
        assert_eq!(name_of(main.word(0)), Some(NameId::at(0)));
        assert_eq!(main.word(3), main.word(0) + 1);
    }

    #[test]
    fn functions_of_the_scheduler_have_addresses_of_their_own() {
        let mut frames = Frames::default();
        let mut is_in = |name| matches!(frames.kernel(name, ""), Frame::Kernel(at) if SCHEDULER.contains(&at));
        assert!(is_in("__schedule") && is_in("schedule_timeout") && is_in("do_nanosleep") && is_in("__down_read"));
        assert!(!is_in("schedule_work") && !is_in("futex_wait") && !is_in("vfs_read"));
    }
}
