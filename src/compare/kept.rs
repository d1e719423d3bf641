//! The words of what keeps a thread from running: a quota, a paused CPU, a signal or a tracer, another thread.
//!
//! In: what is known of a wait ([`WaitManner`]), the name of its quota, the threads of a chain. Out: parts of the
//! sentences that `words.rs` makes. ALGORITHMS.md 5.4 and 7.6.

use super::Culprit;
use super::culprit::thread;
use crate::base::demangle::abbreviated;

/// What is known of time besides its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitManner {
    /// Nothing but its kind.
    Plain,
    /// It ran on a CPU, and its stacks share no function; for the most part it was in one.
    Mostly,
    /// A timer ended a call that waited for something else, which did not come in time.
    TimedOut,
    /// A thread was ready to run, and its CPU was idle.
    HeldBack,
    /// A thread was ready to run beside an idle CPU, and the counters of its control groups exclude a quota.
    HeldBackWithoutQuota,
    /// A thread was ready to run on a CPU that was leaving an idle state.
    IdleExit,
    /// The kernel held a thread back whose control group had used up its CPU quota.
    Throttled,
    /// The hypervisor gave its CPU to others.
    Stolen,
    /// Its CPU was paused, and not by that.
    NotStolen,
    /// A timer of TCP ended its wait for the network.
    TcpTimer,
    /// A timer of TCP ended its wait for the network by sending a segment again.
    Retransmitted,
    /// The disk that it waited for had no request.
    DiskIdle,
    /// The disk that it waited for had no request, and a control group of the thread has a limit on a disk.
    DiskLimit,
    /// A signal stopped it.
    Signalled,
    /// A tracer stopped it.
    Traced,
    /// The freezer of its control group stopped it.
    Frozen,
}

/// A thread that others waited for, while it waited for a CPU.
#[derive(Clone)]
pub(super) struct KeptFromRunning {
    /// The thread.
    pub holder: Culprit,
    /// What kept it from running, for the most part.
    pub by: KeptBy,
    /// Hardly any other thread did, or hardly anything else.
    pub is_alone: bool,
}

/// What kept a thread from running.
#[derive(Clone)]
pub(super) enum KeptBy {
    /// A thread that ran meanwhile.
    Thread(Culprit),
    /// The quota of its control group.
    Quota,
    /// Something that is not known: its CPU was idle.
    Unknown,
    /// Its CPU was leaving an idle state.
    IdleExit,
}

impl KeptFromRunning {
    /// The thread that ran meanwhile.
    pub(super) fn taker(&self) -> Option<&Culprit> {
        if let KeptBy::Thread(taker) = &self.by { Some(taker) } else { None }
    }
}

/// A wait for a disk that had no request; `within` says where.
pub(super) fn before_disk(manner: WaitManner, within: &str) -> String {
    let why = match manner {
        WaitManner::DiskLimit => "presumably by the limit of its control group on the disk (io.max)",
        _ => "for example by a limit of a control group or by a layer above the disk",
    };
    format!("waiting for the disk{within}, which had no requests: they were held back, {why}")
}

/// ` (for 42% of the time it had no request)`, of a disk; nothing below a tenth.
pub(super) fn disk_idle(percent: i128) -> String {
    if percent < 10 { String::new() } else { format!(" (for {percent}% of the time it had no request)") }
}

/// What is known of the reason of a stop.
pub(super) fn stopped(manner: WaitManner, sender: Option<&str>) -> String {
    match (manner, sender) {
        (WaitManner::Traced, _) => "stopped by a debugger or another tracer".into(),
        (WaitManner::Frozen, _) => "frozen by the freezer of its control group".into(),
        (WaitManner::Signalled, Some(sender)) => format!("stopped by a signal that thread {sender} sent"),
        (WaitManner::Signalled, None) => "stopped by a signal".into(),
        _ => "stopped".into(),
    }
}

/// The number of threads to blame for a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blame {
    /// One thread.
    One,
    /// One program, mostly one of its threads.
    Program,
    /// Several threads.
    Several,
    /// No thread is to blame, or it is unknown.
    NoThread,
}

/// The thread that ended a stop.
pub(super) fn let_go_on(blame: Blame, who: &str) -> String {
    match blame {
        Blame::One | Blame::Program => format!(" until {who} let it go on"),
        Blame::Several => format!(" until others let it go on, most of all {who}"),
        Blame::NoThread => String::new(),
    }
}

/// What ended a wait for the network besides the partner.
pub(super) fn tcp_timer(manner: WaitManner) -> &'static str {
    match manner {
        WaitManner::Retransmitted => {
            " until TCP sent again a segment that was lost, or that a full accept queue refused"
        }
        WaitManner::TcpTimer => {
            " until a timer of TCP sent a packet (a delayed acknowledgement, a segment that was lost, or a look at a \
             closed window)"
        }
        _ => "",
    }
}

/// What is known of time in which a CPU did nothing at all.
pub(super) fn cpu_paused(manner: WaitManner) -> &'static str {
    match manner {
        WaitManner::Stolen => {
            "paused with its CPU, which the hypervisor gave to others: nothing happened there, and the steal time of \
             /proc/stat grew by as much"
        }
        WaitManner::NotStolen => {
            "paused with its CPU: nothing happened there, not even the timer interrupts that were due (the machine was \
             paused, or the CPU's interrupts were off; by /proc/stat the hypervisor did not give it to others)"
        }
        _ => {
            "paused with its CPU: nothing happened there, not even the timer interrupts that were due (the machine was \
             paused, a hypervisor took the CPU away, or its interrupts were off)"
        }
    }
}

/// What is known of a thread that was ready to run beside an idle CPU.
pub(super) fn held_back(is_without_quota: bool) -> &'static str {
    if is_without_quota {
        "held back, ready to run, while its CPU was idle (a frozen group or a hypervisor does that; by the \
         counters of its control groups no CPU quota did)"
    } else {
        "held back, ready to run, while its CPU was idle (a CPU quota of its control group, a frozen group or a \
         hypervisor does that)"
    }
}

/// What the kernel does to threads beyond their quota: the place where it does so, or the period in which it ends.
pub(super) fn throttled(period: Option<&str>) -> String {
    match period {
        None => {
            "held back in the kernel's task_work_run, where Linux 6.18 and later enforce CPU quotas of control groups"
                .into()
        }
        Some(counted) if counted.contains(" per ") => {
            let (quota, count) = counted.split_once(", throttled ").unwrap_or((counted, ""));
            format!(
                "held back by the CPU quota of its control group, {quota}: the kernel throttled it {count} in this \
                 recording"
            )
        }
        Some(period) => format!(
            "held back as by a CPU quota of its control group: such waits of its threads end together, in phase with a \
             period of {period}, whatever runs on their CPUs"
        ),
    }
}

/// What kept a thread from running: `, which waited for a CPU while thread render of player ran encode`.
pub(super) fn kept_from_running(kept: &KeptFromRunning, period: Option<&str>) -> String {
    let mostly = if kept.is_alone { "" } else { "mostly " };
    let by = match &kept.by {
        KeptBy::Quota => return format!(", which was {mostly}{}", throttled(period)),
        KeptBy::Unknown => return format!(", which was {mostly}{}", held_back(false)),
        KeptBy::IdleExit => return format!(", which {mostly}waited for a CPU that was leaving its idle state"),
        KeptBy::Thread(by) => by,
    };
    let taker = thread(by);
    let function = by.function.as_deref().map_or_else(String::new, |f| format!(" {}", abbreviated(f)));
    if kept.is_alone {
        format!(", which waited for a CPU while {taker} ran{function}")
    } else {
        format!(", which waited for a CPU while others ran, mostly {taker}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttled_says_what_is_known_of_the_quota() {
        let counted = throttled(Some("20.0 ms per 100 ms, throttled 42 times for 3.10 s"));
        let whole = "held back by the CPU quota of its control group, 20.0 ms per 100 ms: the kernel throttled it 42 \
                     times for 3.10 s in this recording";
        assert_eq!(counted, whole);
        assert!(throttled(Some("100 ms")).contains("in phase with a period of 100 ms"));
        assert!(throttled(None).contains("task_work_run"));
    }

    #[test]
    fn cpu_paused_names_the_hypervisor_where_that_is_known() {
        assert!(cpu_paused(WaitManner::Plain).contains("a hypervisor took the CPU away, or"));
        assert!(cpu_paused(WaitManner::Stolen).contains("which the hypervisor gave to others"));
        assert!(cpu_paused(WaitManner::NotStolen).contains("the hypervisor did not give it to others"));
    }
}
