//! What events say of a thread or a CPU beside its states: priority, work of the kernel, signals, frequency.
//!
//! No state depends on them. They are rare, but for priorities, of which only changes are kept; so they are a table of
//! their own (`kernel/remarks.rs`), which `analysis/remarks.rs` reads. ALGORITHMS.md 5.4.

use super::host::HostId;
use crate::base::time::Timestamp;
use get_size2::GetSize;

/// The priority of a thread as the kernel orders threads: a smaller one runs first. One byte: that of the kernel and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, GetSize)]
pub struct Priority(u8);

impl Priority {
    /// Not recorded.
    pub const UNKNOWN: Priority = Priority(u8::MAX);
    /// That of a nice value of 0.
    const USUAL: i64 = 120;
    /// The first one that is not of real time.
    const NORMAL: i64 = 100;

    /// From `prev_prio` or `next_prio` of a switch: -1 for a deadline, 0 to 99 for real time, 100 to 139 for nice
    /// values from -20 to 19.
    pub fn from_kernel(kernel: Option<i64>) -> Priority {
        let byte = kernel.filter(|prio| (-1..140).contains(prio)).and_then(|prio| u8::try_from(prio + 1).ok());
        byte.map_or(Priority::UNKNOWN, Priority)
    }

    /// As one byte, of which [`Priority::from_byte`] makes it again.
    pub fn byte(self) -> u8 {
        self.0
    }

    /// From its byte; unknown for one that is none.
    pub fn from_byte(byte: u8) -> Priority {
        Priority::from_kernel(Some(i64::from(byte) - 1))
    }

    fn kernel(self) -> i64 {
        i64::from(self.0) - 1
    }

    /// True if it was recorded.
    pub fn is_known(self) -> bool {
        self != Priority::UNKNOWN
    }

    /// True for a nice value of 0.
    pub fn is_usual(self) -> bool {
        self.kernel() == Priority::USUAL
    }

    /// True for a thread of real time, or with a deadline, which runs before all others.
    pub fn is_real_time(self) -> bool {
        self.is_known() && self.kernel() < Priority::NORMAL
    }

    /// True if a thread of this priority runs before one of the other at once, or gets nine parts of ten of a CPU: a
    /// nice value is a tenth of the CPU.
    pub fn precedes_by_far(self, other: Priority) -> bool {
        const NICE_VALUES: i64 = 10;
        let is_far = other.kernel() - self.kernel() >= NICE_VALUES || self.is_real_time() && !other.is_real_time();
        self.precedes(other) && is_far
    }

    /// True if a thread of this priority runs before one of the other, or gets the larger part of a CPU.
    pub fn precedes(self, other: Priority) -> bool {
        self.is_known() && other.is_known() && self < other
    }
}

/// Work of the kernel on behalf of the running thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, GetSize)]
pub enum KernelWork {
    /// Direct reclaim of memory: too little was free.
    Reclaim,
    /// Reclaim for a control group: its memory is at a limit.
    GroupReclaim,
    /// Compaction of memory.
    Compaction,
    /// A pause of a thread that writes faster than the disk does.
    WriteBack,
}

impl KernelWork {
    /// Its name in trees, as that of a function: the kernel's events are called so.
    pub fn name(self) -> &'static str {
        match self {
            KernelWork::Reclaim => "mm_vmscan_direct_reclaim",
            KernelWork::GroupReclaim => "mm_vmscan_memcg_reclaim",
            KernelWork::Compaction => "mm_compaction",
            KernelWork::WriteBack => "balance_dirty_pages",
        }
    }
}

/// What an event says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, GetSize)]
pub enum RemarkKind {
    /// The thread has this priority from now on.
    Priority(Priority),
    /// The kernel begins to work for the thread.
    Begins(KernelWork),
    Ends(KernelWork),
    /// The thread sends a signal that stops the thread or process of this id.
    Stops(i32),
    /// A timer of the kernel sends a packet: no thread has a part in it.
    TimerSends,
    /// TCP sends a segment again.
    Retransmits,
    /// The control group of the thread has used up its CPU quota.
    Throttled,
    /// A CPU has another frequency from now on, whatever runs there.
    Frequency {
        cpu: u16,
        /// The frequency.
        khz: u32,
    },
    /// Another signal is sent to the thread or process of this id.
    Signal {
        number: u8,
        to: i32,
    },
}

/// A remark on a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, GetSize)]
pub struct Remark {
    pub time: Timestamp,
    pub host: HostId,
    /// The CPU of the event.
    pub cpu: u32,
    /// The thread's id, in the initial namespace; -1 for the one that runs on the CPU.
    pub tid: i32,
    /// What is said.
    pub kind: RemarkKind,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_are_ordered_as_the_kernel_does() {
        let of = |prio| Priority::from_kernel(Some(prio));
        assert!(of(-1).precedes(of(0)) && of(49).precedes(of(120)) && of(100).precedes(of(120)));
        assert!(
            !of(120).precedes(of(120)) && !of(120).precedes(Priority::UNKNOWN) && !Priority::UNKNOWN.precedes(of(0))
        );
        assert!(of(120).is_usual() && !of(119).is_usual() && of(99).is_real_time() && !of(100).is_real_time());
        assert!(!Priority::UNKNOWN.is_real_time() && !Priority::UNKNOWN.is_usual());
        assert!(
            of(120).precedes_by_far(of(139)) && of(99).precedes_by_far(of(100)) && !of(120).precedes_by_far(of(125))
        );
        for damaged in [None, Some(140), Some(-2), Some(i64::MAX)] {
            assert_eq!(Priority::from_kernel(damaged), Priority::UNKNOWN);
        }
    }
}
