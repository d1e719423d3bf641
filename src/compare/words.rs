//! How causes are worded: a time, a kind of waiting, who is to blame. One place, so that text, JSON and the
//! interface say the same.

use super::{Cause, Culprit};
use crate::model::context::Spent;

/// A time for people: three digits and a unit.
pub fn time_words(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        size if size >= 1e9 => (ns / 1e9, "s"),
        size if size >= 1e6 => (ns / 1e6, "ms"),
        size if size >= 1e3 => (ns / 1e3, "us"),
        _ => (ns, "ns"),
    };
    let digits = match value.abs() {
        size if size >= 100.0 || unit == "ns" => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {unit}")
}

/// A share for people.
pub fn percent_words(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// What a cause is, as a phrase: `waiting in append_entry for thread journal of ledgerd, which ran expensive_flush`.
pub(super) fn phrase(kind: Spent, site: &str, by: &Culprit, blames: Blame) -> String {
    let within = if site.is_empty() { String::new() } else { format!(" in {site}") };
    let ran = by.function.as_ref().map_or_else(String::new, |f| format!(", which ran {f}"));
    let who = match (&by.thread, &by.process) {
        (Some(t), Some(p)) if t == p => p.clone(),
        (Some(t), Some(p)) if !p.is_empty() => format!("thread {t} of {p}"),
        (Some(t), _) => format!("thread {t}"),
        (None, Some(p)) => p.clone(),
        (None, None) => "nobody known".into(),
    };
    match (kind, blames) {
        (Spent::Cpu, _) if site.is_empty() => "running on the CPU".into(),
        (Spent::Cpu, _) => format!("running {site} on the CPU"),
        (Spent::Preempted, Blame::One | Blame::Program) => format!("waiting for a CPU that {who} had{ran}"),
        (Spent::Preempted, Blame::Several) => format!("waiting for a CPU that others had, most of all {who}{ran}"),
        (Spent::Preempted, Blame::Nobody) => "waiting for a CPU".into(),
        (Spent::Interrupted, _) => "standing still while interrupts had the CPU".into(),
        (Spent::Disk, Blame::Nobody) => format!("waiting for the disk{within}"),
        (Spent::Disk, _) => format!("waiting for the disk{within} while {who} used it{ran}"),
        (Spent::Network, Blame::One) => format!("waiting{within} over the network for {who}{ran}"),
        (Spent::Network, Blame::Program) => {
            let (program, thread) = (by.process.as_deref().unwrap_or("a program"), by.thread.as_deref().unwrap_or(""));
            format!("waiting{within} over the network for {program}, most of all its thread {thread}{ran}")
        }
        (Spent::Network, Blame::Several) => {
            format!("waiting{within} over the network for others, most of all {who}{ran}")
        }
        (Spent::Network, Blame::Nobody) => format!("waiting for the network{within}"),
        (Spent::Timer, _) => format!("sleeping{within}"),
        (Spent::Thread, Blame::One | Blame::Program) => format!("waiting{within} for {who}{ran}"),
        (Spent::Thread, Blame::Several) => format!("waiting{within} for other threads, most of all {who}{ran}"),
        (Spent::Thread, Blame::Nobody) => format!("waiting{within} for a thread that is not known"),
        (Spent::Device, _) => format!("waiting for a device{within}"),
        (Spent::Ipi, _) => format!("waiting{within} for another CPU"),
        (Spent::User, _) => format!("waiting for a person{within}"),
        (Spent::UnknownWait, _) => format!("waiting{within} for something that the trace does not show"),
        (Spent::UnknownState, _) => format!("running or waiting{within}: the trace does not show which"),
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

/// `12.3 ms of 14.9 ms extra (82 %), in 95 of 108 slow executions`; of what slow ones do less, how much less.
pub(super) fn figures(cause: &Cause, whole_ns: i64, slow: usize) -> String {
    if cause.extra_ns < 0 {
        return format!("{} less in the slow executions", time_words(-(cause.extra_ns as f64)));
    }
    let share = if whole_ns > 0 { format!(" ({})", percent_words(cause.share)) } else { String::new() };
    let touched = (cause.slow_affected * slow as f64).round();
    let whole = time_words(whole_ns as f64);
    format!("{} of {whole} extra{share}, in {touched} of {slow} slow executions", time_words(cause.extra_ns as f64))
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
    fn times_have_three_digits() {
        let shown: Vec<String> = [0.0, 999.0, 1500.0, 12_345.0, 12_300_000.0, 345_600_000.0, 1e9, -2_500_000.0]
            .into_iter()
            .map(time_words)
            .collect();
        assert_eq!(shown, ["0 ns", "999 ns", "1.50 us", "12.3 us", "12.3 ms", "346 ms", "1.00 s", "-2.50 ms"]);
    }

    #[test]
    fn phrases_name_who_and_where() {
        let by = Culprit {
            process: Some("ledgerd".into()),
            thread: Some("journal".into()),
            function: Some("expensive_flush".into()),
            ..Culprit::default()
        };
        assert_eq!(
            phrase(Spent::Thread, "append_entry", &by, Blame::One),
            "waiting in append_entry for thread journal of ledgerd, which ran expensive_flush"
        );
        assert_eq!(
            phrase(Spent::Timer, "retry_backoff", &Culprit::default(), Blame::Nobody),
            "sleeping in retry_backoff"
        );
    }
}
