//! How causes are worded: a time, a kind of waiting, who is to blame. One place, so that text, JSON and the
//! interface say the same.

use super::tree::GroupPair;
use super::{Cause, Culprit};
use crate::base::figure;
use crate::event::kernel_thread;
use crate::model::wait_kind::WaitKind;

/// What a cause is, as a phrase: `waiting in append_entry for thread journal of ledgerd, which ran expensive_flush`.
pub(super) fn phrase(kind: WaitKind, site: &str, by: &Culprit, blames: Blame) -> String {
    let within = if site.is_empty() { String::new() } else { format!(" in {site}") };
    let ran = by.function.as_ref().map_or_else(String::new, |f| format!(", which ran {f}"));
    let inside = by.function.as_ref().map_or_else(String::new, |f| format!(" (in {f})"));
    // The kernel's own threads are called by what they are for.
    let of_kernel = by.process.as_deref().is_none_or(kernel_thread::is_name);
    let role = by.thread.as_deref().filter(|_| of_kernel).and_then(kernel_thread::role);
    let who = match (&by.thread, &by.process) {
        (Some(t), _) if role.is_some() => format!("{} ({t})", role.unwrap_or_default()),
        // `rank 2 thread 1` of `rank 2` says it all.
        (Some(t), Some(p)) if p.starts_with("rank ") && t.starts_with(p.as_str()) => t.clone(),
        (Some(t), Some(p)) if !p.is_empty() => format!("thread {t} of {p}"),
        (Some(t), _) => format!("thread {t}"),
        (None, Some(p)) => p.clone(),
        (None, None) => "an unknown thread".into(),
    };
    match (kind, blames) {
        (WaitKind::Cpu, _) if site.is_empty() => "running on the CPU".into(),
        (WaitKind::Cpu, _) => format!("running {site} on the CPU"),
        (WaitKind::Preempted, Blame::One | Blame::Program) => format!("waiting for a CPU while {who}{inside} ran"),
        (WaitKind::Preempted, Blame::Several) => format!("waiting for a CPU while others ran, mostly {who}{inside}"),
        (WaitKind::Preempted, Blame::Nobody) => "waiting for a CPU".into(),
        (WaitKind::Interrupted, _) => "paused while interrupt handlers ran".into(),
        (WaitKind::Disk, Blame::Nobody) => format!("waiting for the disk{within}"),
        (WaitKind::Disk, _) => format!("waiting for the disk{within} while {who}{inside} kept it busy"),
        (WaitKind::Network, Blame::One) => format!("waiting{within} over the network for {who}{ran}"),
        (WaitKind::Network, Blame::Program) => {
            let (program, thread) = (by.process.as_deref().unwrap_or("a program"), by.thread.as_deref().unwrap_or(""));
            format!("waiting{within} over the network for {program}, mostly its thread {thread}{ran}")
        }
        (WaitKind::Network, Blame::Several) => {
            format!("waiting{within} over the network for others, mostly {who}{ran}")
        }
        (WaitKind::Network, Blame::Nobody) => format!("waiting for the network{within}"),
        (WaitKind::Timer, _) => format!("sleeping{within}"),
        (WaitKind::Thread, Blame::One | Blame::Program) => format!("waiting{within} for {who}{ran}"),
        (WaitKind::Thread, Blame::Several) => format!("waiting{within} for other threads, mostly {who}{ran}"),
        (WaitKind::Thread, Blame::Nobody) => format!("waiting{within} for an unknown thread"),
        (WaitKind::Device, _) => format!("waiting for a device{within}"),
        (WaitKind::Ipi, _) => format!("waiting{within} for another CPU"),
        (WaitKind::User, _) => format!("waiting for user input{within}"),
        (WaitKind::UnknownWait, _) => format!("waiting{within} for something that the recording does not show"),
        (WaitKind::UnknownState, _) => format!("running or waiting{within} (the recording cannot tell)"),
    }
}

/// Who is to blame for a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blame {
    One,
    /// One program, most of all one of its threads.
    Program,
    Several,
    Nobody,
}

/// Executions in a group below which no share is printed.
const FEWEST: usize = 5;

/// Of what a cause is a part.
#[derive(Clone, Copy, Debug)]
pub(super) struct TotalDifference {
    ns: i64,
    slow: usize,
    fast: usize,
}

impl TotalDifference {
    /// The difference of two groups' means; without a fast group the mean of all.
    pub fn new(groups: &GroupPair<'_>, ns: i64) -> TotalDifference {
        TotalDifference { ns, slow: groups.slow.len(), fast: groups.fast.len() }
    }

    /// Where the time of one group went, not what sets two apart.
    pub fn is_profile(&self) -> bool {
        self.fast == 0
    }

    /// ` (82%)`; nothing where a share says nothing.
    pub fn share(&self, share: f64) -> String {
        let least = if self.is_profile() { self.slow } else { self.slow.min(self.fast) };
        if self.ns > 0 && least >= FEWEST { format!(" ({})", figure::share(share)) } else { String::new() }
    }
}

/// `12.3 ms of 14.9 ms extra (82%), in 95 of 108 slow executions`; of what slow ones do less, how much less.
pub(super) fn figures(cause: &Cause, whole: &TotalDifference) -> String {
    if cause.extra_ns < 0 {
        return format!("{} less in the slow executions", figure::time(-(cause.extra_ns as f64)));
    }
    let share = whole.share(cause.share);
    let touched = (cause.slow_affected * whole.slow as f64).round();
    let (told, ns) = (figure::time(cause.extra_ns as f64), figure::time(whole.ns as f64));
    match (whole.is_profile(), whole.slow) {
        (true, 1) => format!("{told} of {ns}"),
        (true, n) => format!("{told} of {ns} on average{share}, in {touched} of {n} executions"),
        (false, n) => format!("{told} of {ns} extra{share}, in {touched} of {n} slow executions"),
    }
}

/// What a recording does not say of a wait or of a time, and the remedy: after "this recording does not say".
pub(super) fn unsaid(kind: WaitKind, reason: Option<&str>) -> String {
    let what = match kind {
        WaitKind::UnknownState => "whether it ran or waited",
        _ => "what ended it",
    };
    let (why, remedy) = match reason {
        Some("no wake-up recorded" | "no wake-up was seen") => {
            ("no wake-up of it was recorded", "record sched_waking or sched_wakeup, of all CPUs")
        }
        Some("no scheduler events") => {
            ("the scheduler was not recorded", "record the kernel's sched_switch and sched_waking")
        }
        Some("events lost" | "switches missing") => ("events are missing there", "record with larger buffers"),
        Some("other processes left out") => {
            ("only some processes were recorded, and others were running", "record all: perf record -a, no lttng track")
        }
        Some("idle CPU") => {
            ("its waker was not recorded", "record sched_waking and the events of interrupts and timers")
        }
        Some("recording ended") => ("the recording ended before", "record for longer"),
        Some(other) => (other, ""),
        None => ("", ""),
    };
    let mut said = what.to_owned();
    if !why.is_empty() {
        said = format!("{said}: {why}");
    }
    if remedy.is_empty() { said } else { format!("{said} ({remedy})") }
}

/// The first letter large.
pub(super) fn sentence_case(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_name_who_and_where() {
        let by = Culprit {
            process: Some("ledgerd".into()),
            thread: Some("journal".into()),
            function: Some("expensive_flush".into()),
            ..Culprit::default()
        };
        assert_eq!(
            phrase(WaitKind::Thread, "append_entry", &by, Blame::One),
            "waiting in append_entry for thread journal of ledgerd, which ran expensive_flush"
        );
        assert_eq!(
            phrase(WaitKind::Timer, "retry_backoff", &Culprit::default(), Blame::Nobody),
            "sleeping in retry_backoff"
        );
    }
}
