//! Records that are neither samples nor about threads and their files: names of kernel code that was made while
//! recording, pid namespaces, throttled clocks, losses, and kinds that no analysis uses.
//!
//! In: each such record of the walk of `index.rs`. Out: symbols in the form of `/proc/kallsyms`, and notices. What an
//! analysis cannot use is counted and named; only records that frame the others, and those that repeat another's
//! contents, are passed over. Addresses that several programs had at different times have no name, because symbols are
//! looked up without a time. `include/uapi/linux/perf_event.h`, perf's `tools/lib/perf/include/perf/event.h`.

use super::record_types::USER;
use crate::base::cursor::{ByteOrder, bits};
use crate::base::notice::{Notice, Notices};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Record types of the kernel, beside those of `walk.rs`.
const THROTTLE: u32 = 5;
const LOST_SAMPLES: u32 = 13;
const NAMESPACES: u32 = 16;
const KSYMBOL: u32 = 17;

/// Record types whose contents no analysis uses, with their names.
const UNUSED: [(u32, &str); 13] = [
    (8, "READ"),
    (11, "AUX"),
    (12, "ITRACE_START"),
    (14, "SWITCH"),
    (19, "CGROUP"),
    (20, "TEXT_POKE"),
    (21, "AUX_OUTPUT_HW_ID"),
    (70, "AUXTRACE_INFO"),
    (71, "AUXTRACE"),
    (72, "AUXTRACE_ERROR"),
    (75, "STAT_CONFIG"),
    (76, "STAT"),
    (77, "STAT_ROUND"),
];

/// Record types with nothing of their own: UNTHROTTLE ends what THROTTLE begins, a switch to a thread is
/// repeated by the switch away from the other, BPF_EVENT by KSYMBOL; CALLCHAIN_DEFERRED is read by `chains.rs`.
const REPEATED: [u32; 4] = [6, 15, 18, 22];

/// perf's own record types that frame the others or repeat the header: HEADER_ATTR to ID_INDEX, THREAD_MAP, CPU_MAP,
/// EVENT_UPDATE to COMPRESSED2, BPF_METADATA.
const FRAMING: [std::ops::RangeInclusive<u32>; 3] = [64..=69, 73..=74, 78..=84];

/// The number of the pid namespace among the namespaces of a thread (`NS_*_INDEX`).
const PID_NAMESPACE: u64 = 3;

/// True for records that say something of others or of the recording; what they say is used, or repeats another's.
pub fn is_description(kind: u32) -> bool {
    matches!(kind, THROTTLE | LOST_SAMPLES | NAMESPACES | KSYMBOL)
        || REPEATED.contains(&kind)
        || FRAMING.iter().any(|kinds| kinds.contains(&kind))
}

/// Flag of KSYMBOL: the code is removed.
const REMOVED: u64 = 1;

/// Kernel code that was made while recording, or shortly before.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KernelCode {
    length: u64,
    /// `None` where several had its address in turn.
    name: Option<String>,
}

/// A record of kernel code that was made or removed.
#[derive(Clone, Debug)]
struct CodeChange {
    address: u64,
    length: u64,
    is_removed: bool,
    name: Box<[u8]>,
}

impl CodeChange {
    /// Follow the change in the code by address.
    fn apply(&self, all: &mut BTreeMap<u64, KernelCode>) {
        let CodeChange { address, length, is_removed, ref name } = *self;
        let plain = |byte: &u8| if byte.is_ascii_graphic() { char::from(*byte) } else { '?' };
        let name: String = name.iter().map(plain).collect();
        let Some(end) = address.checked_add(length).filter(|end| *end > address && !name.is_empty()) else { return };
        // The record of a removal repeats the name. Only where the code was there before recording is it the first.
        if is_removed && all.get(&address).is_some_and(|code| code.length == length) {
            return;
        }
        let mut name = Some(name);
        let overlaps = |from: u64, code: &KernelCode| from < end && address < from.saturating_add(code.length);
        // Ranges of different begin overlap only if one took the place of others.
        let before = all.range(..end).next_back().map(|(from, _)| *from);
        if let Some(from) = before
            && let Some(code) = all.get_mut(&from)
            && overlaps(from, code)
            && (from, code.length, &code.name) != (address, length, &name)
        {
            (code.name, name) = (None, None);
        }
        let length = all.get(&address).map_or(length, |code| code.length.max(length));
        all.insert(address, KernelCode { length, name });
    }
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct SideRecords {
    unused: BTreeMap<u32, u64>,
    /// Events, by LOST and by LOST_SAMPLES, which count the same losses.
    lost: u64,
    lost_samples: u64,
    throttled: u64,
    /// By device and inode.
    pid_namespaces: BTreeSet<[u64; 2]>,
    /// In order of the file.
    code: Vec<CodeChange>,
}

impl SideRecords {
    /// Note a record that has no class. `trailer`: bytes of the parts at its end that all records have.
    pub fn add(&mut self, kind: u32, body: &[u8], trailer: usize, byte_order: ByteOrder) {
        let own = body.get(..body.len().saturating_sub(trailer)).unwrap_or(body);
        let word = |at: usize, size: u32| bits(own, at as u64 * 8, size * 8, byte_order);
        match kind {
            THROTTLE => self.throttled += 1,
            LOST_SAMPLES => self.lost_samples = self.lost_samples.saturating_add(word(0, 8).unwrap_or(0)),
            NAMESPACES => {
                // Thread, number of namespaces, then device and inode of each.
                let at = 16 + 16 * PID_NAMESPACE as usize;
                if word(8, 8).is_some_and(|n| n > PID_NAMESPACE) {
                    self.pid_namespaces.extend(word(at, 8).zip(word(at + 8, 8)).map(<[u64; 2]>::from));
                }
            }
            KSYMBOL => {
                let (address, length, flags) = (word(0, 8), word(8, 4), word(14, 2));
                if let (Some(address), Some(length), Some(flags)) = (address, length, flags) {
                    let name = own.get(16..).unwrap_or(&[]);
                    let name = name.get(..memchr::memchr(0, name).unwrap_or(name.len())).unwrap_or(name).into();
                    self.code.push(CodeChange { address, length, is_removed: flags & REMOVED != 0, name });
                }
            }
            kind if is_description(kind) => {}
            kind => *self.unused.entry(kind).or_default() += 1,
        }
    }

    /// Note events that a LOST record counts.
    pub fn lose(&mut self, events: u64) {
        self.lost = self.lost.saturating_add(events);
    }

    /// Add the records of the part of the file after this one.
    pub fn append(&mut self, later: SideRecords) {
        let SideRecords { unused, lost, lost_samples, throttled, pid_namespaces, mut code } = later;
        for (kind, n) in unused {
            *self.unused.entry(kind).or_default() += n;
        }
        self.lost = self.lost.saturating_add(lost);
        self.lost_samples = self.lost_samples.saturating_add(lost_samples);
        self.throttled += throttled;
        self.pid_namespaces.extend(pid_namespaces);
        self.code.append(&mut code);
    }

    /// Symbols of the code, and the end of each, as `/proc/kallsyms` lists symbols; empty where none was recorded.
    pub fn symbols(&self) -> String {
        let mut all = BTreeMap::new();
        self.code.iter().for_each(|change| change.apply(&mut all));
        let mut text = String::new();
        for (address, KernelCode { length, name }) in &all {
            // Writing to a string does not fail.
            if let Some(name) = name {
                let _ = writeln!(text, "{address:016x} t {name} [bpf]");
            }
            let _ = writeln!(text, "{:016x} {END} -", if name.is_some() { address + length } else { *address });
        }
        text
    }

    /// What was found.
    pub fn notices(&self, notices: &mut Notices) {
        let names: Vec<String> = self
            .unused
            .iter()
            .map(|(kind, n)| match UNUSED.iter().find(|(known, _)| known == kind) {
                Some((_, name)) => format!("{n} {name}"),
                None if *kind >= USER => format!("{n} of perf's type {kind}"),
                None => format!("{n} of type {kind}"),
            })
            .collect();
        notices.add(Notice::RecordsUnused, self.unused.values().sum(), || names.join(", "));
        notices.add(Notice::ClockThrottled, self.throttled, || "record with a lower frequency".to_owned());
        let more = self.lost_samples.saturating_sub(self.lost);
        notices.add(Notice::DiscardedEvents, more, || "counted by perf at the end of the recording".to_owned());
        if self.pid_namespaces.len() > 1 {
            notices.add(Notice::PidNamespaces, self.pid_namespaces.len() as u64, || {
                "ids of processes are those of perf's own namespace".to_owned()
            });
        }
    }
}

/// The type letter of the end of code; `nm` and the kernel have none such.
pub const END: &str = "e";

#[cfg(test)]
mod tests {
    use super::*;

    fn code(records: &mut SideRecords, address: u64, length: u32, flags: u16, name: &str) {
        let mut body = address.to_le_bytes().to_vec();
        body.extend(length.to_le_bytes());
        body.extend(1u16.to_le_bytes());
        body.extend(flags.to_le_bytes());
        body.extend(name.as_bytes());
        body.extend([0; 8]);
        // A trailer of 16 bytes.
        body.extend([0xff; 16]);
        records.add(KSYMBOL, &body, 16, ByteOrder::Little);
    }

    #[test]
    fn symbols_lists_code_that_came_and_went() {
        let mut records = SideRecords::default();
        code(&mut records, 0x1000, 0x80, 0, "bpf_prog_1");
        code(&mut records, 0x1000, 0x80, 1, "bpf_prog_1");
        code(&mut records, 0x1080, 0x40, 1, "bpf prog 2");
        assert_eq!(
            records.symbols(),
            "0000000000001000 t bpf_prog_1 [bpf]\n0000000000001080 e -\n\
             0000000000001080 t bpf?prog?2 [bpf]\n00000000000010c0 e -\n"
        );
        // Another program takes the place of the first.
        code(&mut records, 0x1040, 0x20, 0, "bpf_prog_3");
        let symbols = records.symbols();
        assert!(!symbols.contains("bpf_prog_1") && !symbols.contains("bpf_prog_3"), "{symbols}");
        assert!(symbols.contains("bpf?prog?2"), "{symbols}");
        code(&mut records, u64::MAX - 1, 0x20, 0, "past the end");
        assert_eq!(records.symbols(), symbols);
    }

    #[test]
    fn notices_name_what_is_not_used() {
        let mut records = SideRecords::default();
        for kind in [11, 11, 12, 40, 90, 14, THROTTLE, 18, 68, 6] {
            records.add(kind, &[], 0, ByteOrder::Little);
        }
        records.lose(5);
        records.add(LOST_SAMPLES, &7u64.to_le_bytes(), 0, ByteOrder::Little);
        for inode in [1u64, 2] {
            let words = [7, 7u64].into_iter().chain((0..7).flat_map(|_| [3, inode]));
            let body: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
            records.add(NAMESPACES, &body, 0, ByteOrder::Little);
        }
        let mut notices = Notices::default();
        records.notices(&mut notices);
        let entry = notices.iter().find(|(kind, _)| *kind == Notice::RecordsUnused).unwrap().1;
        assert_eq!(
            (entry.count, entry.first.as_str()),
            (6, "2 AUX, 1 ITRACE_START, 1 SWITCH, 1 of type 40, 1 of perf's type 90")
        );
        let count = |kind| notices.count(kind);
        assert_eq!((count(Notice::ClockThrottled), count(Notice::DiscardedEvents)), (1, 2));
        assert_eq!(count(Notice::PidNamespaces), 2);
    }
}
