//! The words of causes: a time, a kind of waiting, the thread to blame. They are in one place, so that text, JSON and
//! the interface say the same.

use super::culprit::thread;
use super::kept::{
    Blame, WaitManner, before_disk, cpu_paused, disk_idle, held_back, kept_from_running, let_go_on, stopped, tcp_timer,
    throttled,
};
use super::naming::PartName;
use super::partition::Common;
use super::tree::{GroupPair, Parties};
use super::{Cause, CausePart, Culprit};
use crate::base::demangle::abbreviated;
use crate::base::figure;
use crate::model::wait_kind::{WITHIN, WaitKind};

/// A cause as a phrase: `waiting in append_entry for thread journal of ledgerd, which ran expensive_flush`.
pub(super) fn phrase(kind: WaitKind, named: &PartName) -> String {
    let PartName { site, by, blame: blames, parties, activity, .. } = named;
    let (site, blames, others) = (abbreviated(site), *blames, parties.noun());
    let within = if site.is_empty() { String::new() } else { format!(" in {site}") };
    let function = by.function.as_deref().map(abbreviated);
    let also = function.as_deref().filter(|f| !site.is_empty() && *f == site).map_or("", |_| " too");
    let ran = match &named.kept {
        Some(kept) => kept_from_running(kept, named.quota.as_deref()),
        None => doing(*activity, function.as_deref(), named.manner),
    };
    let (tcp, idle) = (tcp_timer(named.manner), disk_idle(named.idle_disk));
    let no_answer = named.no_answer.as_ref().map_or_else(String::new, |within| format!(" (no answer came {within})"));
    let ran = match *activity {
        Some(WaitKind::Disk) => ran + &idle,
        Some(WaitKind::Timer) => ran + &no_answer,
        _ => ran,
    };
    let precedence = named.precedence.unwrap_or_default();
    let inside = function.map_or_else(String::new, |f| format!(" (in {f})"));
    let who = match parties {
        Parties::Threads => thread(named.kept.as_ref().map_or(by, |kept| &kept.holder)),
        Parties::Ranks => rank(by),
    };
    match (kind, blames) {
        (WaitKind::Cpu, _) if site.is_empty() => "running on the CPU".into(),
        (WaitKind::Cpu, _) if named.manner == WaitManner::Mostly => format!("running on the CPU, mostly in {site}"),
        (WaitKind::Cpu, _) => format!("running {site} on the CPU"),
        (WaitKind::Preempted, Blame::One | Blame::Program) => {
            format!("waiting for a CPU while {who}{inside} ran{precedence}{}", and_idle(named))
        }
        (WaitKind::Preempted, Blame::Several) => {
            format!("waiting for a CPU while others ran{precedence}, most of all {who}{inside}{}", and_idle(named))
        }
        (WaitKind::Preempted, Blame::NoThread) if named.manner == WaitManner::Throttled => {
            throttled(named.quota.as_deref())
        }
        (WaitKind::Preempted, Blame::NoThread) if named.manner == WaitManner::HeldBack => held_back(false).into(),
        (WaitKind::Preempted, Blame::NoThread) if named.manner == WaitManner::HeldBackWithoutQuota => {
            held_back(true).into()
        }
        (WaitKind::Preempted, Blame::NoThread) if named.manner == WaitManner::IdleExit => {
            "waiting for a CPU that was leaving its idle state".into()
        }
        (WaitKind::Disk, _) if matches!(named.manner, WaitManner::DiskIdle | WaitManner::DiskLimit) => {
            before_disk(named.manner, &within)
        }
        (WaitKind::Disk, Blame::NoThread) => format!("waiting for the disk{within}{idle}"),
        (WaitKind::Disk, _) => format!("waiting for the disk{within} while {who}{inside} kept it busy{idle}"),
        (WaitKind::Network, Blame::One) => format!("waiting{within} over the network for {who}{ran}{tcp}"),
        (WaitKind::Network, Blame::Program) => {
            let (program, thread) = (by.process.as_deref().unwrap_or("a program"), by.thread.as_deref().unwrap_or(""));
            format!("waiting{within} over the network for {program}, mostly its thread {thread}{ran}{tcp}")
        }
        (WaitKind::Network, Blame::Several) => {
            format!("waiting{within} over the network for others, most of all {who}{ran}{tcp}")
        }
        (WaitKind::Network, Blame::NoThread) => format!("waiting for the network{within}{tcp}"),
        (WaitKind::Timer, _) if named.manner == WaitManner::TimedOut => {
            format!("waiting{within} until it timed out{no_answer}")
        }
        (WaitKind::Timer, _) => match &named.polled {
            Some(call) => format!("sleeping{within} between calls of {call} that failed"),
            None => format!("sleeping{within}"),
        },
        (WaitKind::Thread, Blame::One | Blame::Program) => format!("waiting{within} for {who}{ran}{also}"),
        (WaitKind::Thread, Blame::Several) => format!("waiting{within} for other {others}s, most of all {who}{ran}"),
        (WaitKind::Thread, Blame::NoThread) => format!("waiting{within} for an unknown {others}"),
        (WaitKind::Stopped, blame) => stopped(named.manner, named.sender.as_deref()) + &let_go_on(blame, &who),
        (WaitKind::Stolen, _) => cpu_paused(named.manner).into(),
        (WaitKind::Throttled, _) => throttled(named.quota.as_deref()),
        (kind, _) => kind.row().phrase.replace(WITHIN, &within),
    }
}

/// `, and 2 of 4 CPUs were idle`.
fn and_idle(named: &PartName) -> String {
    let Some(number) = &named.idle_cpus else { return String::new() };
    let were = if number.starts_with("1 ") { "was" } else { "were" };
    format!(", and {number} CPUs {were} idle")
}

/// What a cause over several kinds has in common, as a phrase.
pub(super) fn common_phrase(common: &Common, named: &PartName) -> String {
    match common {
        Common::Function(_) => format!("in {}", abbreviated(&named.site)),
        Common::Thread(_) => {
            let ran = named.by.function.as_deref().map(|f| format!(", which ran {}", abbreviated(f)));
            format!("because of {}{}", thread(&named.by), ran.unwrap_or_default())
        }
    }
}

/// What such a cause has of one kind; the function is named already.
pub(super) fn part_phrase(kind: WaitKind, named: &PartName, common: &Common) -> String {
    match (kind, common) {
        (WaitKind::Cpu, _) => "running".into(),
        (WaitKind::Preempted, Common::Thread(_)) => "waiting for a CPU while it ran".into(),
        (WaitKind::Thread, Common::Thread(_)) => "waiting for it".into(),
        (WaitKind::Network, Common::Thread(_)) => "waiting for it over the network".into(),
        (WaitKind::Stopped, Common::Thread(_)) => {
            stopped(named.manner, named.sender.as_deref()) + &let_go_on(Blame::One, "it")
        }
        (_, Common::Thread(_)) => phrase(kind, named),
        (_, Common::Function(_)) => phrase(kind, &PartName { site: String::new(), ..named.clone() }),
    }
}

/// What the culprit did meanwhile, as far as it is known: `, which ran expensive_flush`.
fn doing(activity: Option<WaitKind>, function: Option<&str>, manner: WaitManner) -> String {
    let within = function.map_or_else(String::new, |f| format!(" in {f}"));
    let did = match (activity, function) {
        (Some(WaitKind::Cpu), Some(f)) => format!("ran {f}"),
        (None, Some(f)) => format!("was in {f}"),
        (None | Some(WaitKind::Cpu | WaitKind::UnknownState), None) => return String::new(),
        (Some(WaitKind::Timer), _) if manner == WaitManner::TimedOut => format!("waited{within} until it timed out"),
        (Some(kind), _) => kind.row().past.replace(WITHIN, &within),
    };
    format!(", which {did}")
}

/// A rank in words, or the ranks of a role: `rank 2 thread 1`, `ranks with few partners`.
fn rank(by: &Culprit) -> String {
    match (by.thread.as_deref(), &by.process) {
        (Some(several), _) if several.contains('*') => "several ranks".into(),
        (Some(one), _) if one.contains(|c: char| c.is_ascii_digit()) && !one.contains(" of ") => one.to_owned(),
        (Some(role), _) => role.replacen("rank", "ranks", 1).replacen("that exchanges", "that exchange", 1),
        (None, Some(process)) => process.clone(),
        (None, None) => "an unknown rank".into(),
    }
}

/// Executions in a group below which no share is printed.
const FEWEST: usize = 5;

/// A part of more than this many times the difference has no share: the groups are alike, and others take it back.
const LARGEST_SHARE: f64 = 10.0;

/// A share of the difference of groups of these sizes, `82%`, where it is a figure for people: the groups are large
/// enough, and the part is not many times the difference. No fast executions: there is only one group.
pub(super) fn share_of_difference(share: f64, slow: usize, fast: usize) -> Option<String> {
    let least = if fast == 0 { slow } else { slow.min(fast) };
    (least >= FEWEST && share.abs() <= LARGEST_SHARE).then(|| figure::share(share))
}

/// A share of a group's executions: `82%`, or `3 of 4` where there are too few for a share.
pub fn share_of_group(share: f64, executions: u64) -> String {
    if executions < FEWEST as u64 {
        format!("{} of {executions}", (share * executions as f64).round())
    } else {
        figure::share(share)
    }
}

/// The difference of which a cause is a part.
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

    /// True if there is only one group: the parts show where its time went.
    pub fn is_profile(&self) -> bool {
        self.fast == 0
    }

    /// ` (82%)`; empty where it has no share.
    pub fn share(&self, share: f64) -> String {
        let share = share_of_difference(share, self.slow, self.fast).filter(|_| self.ns > 0);
        share.map_or_else(String::new, |share| format!(" ({share})"))
    }
}

/// `12.3 ms of 14.9 ms extra (82%), in 95 of 108 slow executions`; `1.2 ms less in the slow executions` for a cause
/// of which they have less; `311 us more on average, from 2 of 50 slow executions, where the groups differ by 143 ns`
/// for one that is many times the difference.
pub(super) fn figures(cause: &Cause, whole: &TotalDifference) -> String {
    if cause.extra_ns < 0 {
        return format!("{} less in the slow executions", figure::time(-(cause.extra_ns as f64)));
    }
    let share = whole.share(cause.share);
    let touched = (cause.slow_affected * whole.slow as f64).round();
    let (extra, ns) = (figure::time(cause.extra_ns as f64), figure::time(whole.ns as f64));
    let part = |part: &CausePart| format!(", {} {}", figure::time(part.extra_ns as f64), part.phrase);
    let parts: String = cause.parts.iter().map(part).collect();
    match (whole.is_profile(), whole.slow) {
        (false, n) if cause.share > LARGEST_SHARE => {
            format!("{extra} more on average, from {touched} of {n} slow executions, where the groups differ by {ns}")
        }
        (true, 1) => format!("{extra} of {ns}"),
        (true, n) => format!("{extra} of {ns} on average{share}, in {touched} of {n} executions"),
        (false, n) => format!("{extra} of {ns} extra{share}{parts}, in {touched} of {n} slow executions"),
    }
}

/// The missing fact about a wait or a time, the reason and the remedy; follows "this recording does not say".
pub(super) fn missing_fact(kind: WaitKind, reason: Option<&str>) -> String {
    let fact = match kind {
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
        // Of an archive: a frame of explain/iterations.
        Some("unknown") => (
            "no recorded message or collective explains it",
            "Score-P: SCOREP_MPI_ENABLE_GROUPS=all; EZTrace records no completions of C programs",
        ),
        Some("woken from another CPU") => ("the wake-up came from another CPU, and its source was not recorded", ""),
        Some("recording ended") => ("the recording ended before", "record for longer"),
        Some(other) => (other, ""),
        None => ("", ""),
    };
    let reason = if why.is_empty() { String::new() } else { format!(": {why}") };
    let remedy = if remedy.is_empty() { String::new() } else { format!(" ({remedy})") };
    format!("{fact}{reason}{remedy}")
}

/// The text with its first letter in upper case.
pub(super) fn sentence_case(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::context::ContextId;

    #[test]
    fn share_of_difference_is_no_multiple_of_a_tiny_difference() {
        let share = |share| share_of_difference(share, 50, 150);
        assert_eq!([0.5, 1.3, -2.0].map(share), ["50%", "130%", "-200%"].map(|text| Some(text.to_owned())));
        assert_eq!([10.5, -2171.74].map(share), [None, None]);
        assert_eq!(share_of_difference(0.5, 4, 150), None, "a group of four");
    }

    fn part(site: &str, parties: Parties, process: Option<&str>, thread: &str, function: &str) -> PartName {
        let by = Culprit {
            process: process.map(str::to_owned),
            thread: Some(thread.to_owned()),
            function: Some(function.to_owned()),
            ..Culprit::default()
        };
        let context = ContextId::at(0);
        let named = PartName::new(context, by, site.to_owned(), parties);
        PartName { blame: Blame::One, activity: Some(WaitKind::Cpu), ..named }
    }

    #[test]
    fn phrase_names_thread_and_function() {
        let journal = part("append_entry", Parties::Threads, Some("ledgerd"), "journal", "expensive_flush");
        assert_eq!(
            phrase(WaitKind::Thread, &journal),
            "waiting in append_entry for thread journal of ledgerd, which ran expensive_flush"
        );
        let holder = |activity, function: Option<&str>| {
            let by = Culprit { function: function.map(str::to_owned), ..journal.by.clone() };
            let named = PartName { by, site: String::new(), activity, ..part("", Parties::Threads, None, "", "") };
            phrase(WaitKind::Thread, &named).replace("waiting for thread journal of ledgerd", "")
        };
        assert_eq!(holder(Some(WaitKind::Disk), Some("flush")), ", which waited for the disk in flush");
        assert_eq!(holder(Some(WaitKind::Timer), None), ", which slept");
        assert_eq!(holder(Some(WaitKind::UnknownState), Some("flush")), ", which was in flush");
        assert_eq!(holder(None, Some("flush")), ", which was in flush");
        assert_eq!(holder(Some(WaitKind::Cpu), None), "");
        let unknown = PartName { by: Culprit::default(), blame: Blame::NoThread, ..journal };
        let asleep = PartName { site: "retry_backoff".into(), ..unknown };
        assert_eq!(phrase(WaitKind::Timer, &asleep), "sleeping in retry_backoff");
        let unanswered = PartName { site: "__poll".into(), manner: WaitManner::TimedOut, ..asleep };
        assert_eq!(phrase(WaitKind::Timer, &unanswered), "waiting in __poll until it timed out");
    }

    #[test]
    fn phrase_calls_ranks_by_number_or_role() {
        let said =
            |process, thread| phrase(WaitKind::Thread, &part("MPI_Recv", Parties::Ranks, process, thread, "smooth"));
        let of = |who: &str| format!("waiting in MPI_Recv for {who}, which ran smooth");
        assert_eq!(said(Some("rank 5"), "rank 5"), of("rank 5"));
        assert_eq!(said(Some("rank 5"), "rank 5 thread 1"), of("rank 5 thread 1"));
        assert_eq!(said(None, "rank 5"), of("rank 5"));
        assert_eq!(said(Some("rank 9"), "rank with few partners"), of("ranks with few partners"));
        assert_eq!(said(None, "thread 1 of root rank"), of("thread 1 of root ranks"));
        assert_eq!(said(None, "rank that exchanges with most"), of("ranks that exchange with most"));
        assert_eq!(said(None, "rank *"), of("several ranks"));
        let several = part("MPI_Recv", Parties::Ranks, Some("rank 5"), "rank 5", "smooth");
        let several = PartName { blame: Blame::Several, ..several };
        let text = phrase(WaitKind::Thread, &several);
        assert_eq!(text, "waiting in MPI_Recv for other ranks, most of all rank 5, which ran smooth");
    }
}
