//! The words of root causes, steps and streams, which text and interface share.
//!
//! In: parts of [`Anomalies`]. Out: phrases without what an untrusted trace may not print.

use crate::base::notice::{Notices, Severity};
use crate::base::{clean, figure};
use crate::model::anomalies::{Anomalies, ExaminedExecutions, StreamInfo};
use crate::model::event_kind::EventKind;
use crate::model::propagation::{PropagationStep, RouteChange};
use crate::model::root_cause::{RootCause, Victim};
use crate::model::settings::PatternVerdict;

/// Thread, activity, carriers and victim: `journal of ledgerd: running in expensive_flush; carried by lock to worker in
/// append_entry`.
pub fn of_source(source: &RootCause) -> String {
    let words = Words::of(source);
    let to = if words.to.is_empty() { String::new() } else { format!("; {}", words.to) };
    format!("{}: {}{}{to}", words.who, words.did, words.inner)
}

/// A root cause as text.
pub struct Words {
    /// `journal of ledgerd`, `rank 4`.
    pub who: String,
    /// `running in expensive_flush`.
    pub did: String,
    /// ` (395 ms of it in checksum_block)`: of the functions below the named one that with most of the delay.
    pub inner: String,
    /// `carried by lock to worker in append_entry`; empty without a known victim.
    pub to: String,
}

impl Words {
    /// The words of a root cause.
    pub fn of(source: &RootCause) -> Words {
        let (name, process) = (clean::owned(&source.name), clean::owned(&source.process));
        let of = if process.is_empty() || process == name { name } else { format!("{name} of {process}") };
        let is_interrupt = source.kind == EventKind::Interrupt;
        let who = match source.streams.len() {
            _ if is_interrupt => of,
            0 | 1 => of,
            n => format!("{of} ({n} threads)"),
        };
        let what =
            if is_interrupt { "ran on the CPU".to_owned() } else { routed(&source.what, source.kind, source.route) };
        let did = match &source.function {
            Some(function) => format!("{what} in {}", clean::text(function)),
            None => what,
        };
        let noise = match source.noise {
            Some(_) => " (system noise)",
            // Others waited for it, and it waited itself, for something whose lateness was not recorded.
            None if source.kind.waits() && !source.idle && source.route.is_none() => " (a wait without a known cause)",
            None => "",
        };
        let carriers: Vec<&str> = source.carriers.iter().map(|carrier| carrier.name()).collect();
        let to = match &source.victim {
            Some(Victim { name: victim, function: Some(function) }) => {
                format!("carried by {} to {} in {}", carriers.join(", "), clean::text(victim), clean::text(function))
            }
            Some(Victim { name: victim, function: None }) => {
                format!("carried by {} to {}", carriers.join(", "), clean::text(victim))
            }
            None => String::new(),
        };
        let inner = source.inner.first().filter(|inner| inner.ns * 100 >= source.affected_ns);
        let inner = inner.map_or_else(String::new, |inner| {
            format!(" ({} of it in {})", figure::duration(inner.ns), clean::text(&inner.function))
        });
        Words { who, did: did + noise, inner, to }
    }
}

/// The extent of the analysis and, if it found little, the reason: data that was not recorded or lost, or no anomalies.
pub fn examined(found: &Anomalies, notices: &Notices) -> String {
    let e = &found.examined;
    let streams = figure::plural(e.streams, if e.is_mpi { "rank" } else { "thread" });
    let patterns = found.patterns.iter().filter(|p| p.symbols.len() + usize::from(p.is_loop) > 0).count() as u64;
    let base = format!(
        "{} in {} of {streams}",
        figure::plural(patterns, "pattern"),
        figure::plural(e.operations, "operation")
    );
    let executions = match &e.executions {
        Some(ExaminedExecutions { task, count }) => {
            format!(", {} of {}", figure::plural(*count, "execution"), clean::text(task))
        }
        None => String::new(),
    };
    let why = match () {
        () if e.operations == 0 && e.is_mpi => ": this run has no MPI calls",
        () if e.operations == 0 && e.executions.is_none() && e.declares_calls => {
            ": no system call or user-space event in this recording belongs to a known thread; record sched_switch, \
             or the context tid"
        }
        () if e.operations == 0 && e.executions.is_none() => {
            ": this recording has no system calls or user-space events"
        }
        () if patterns == 0 => ": no sequence of events repeats",
        () if found.patterns.iter().all(|p| p.verdict == PatternVerdict::TooFew) => {
            ": none occurs at least 10 times, which the analysis needs"
        }
        () if found.paths.is_empty() => ": none exceeded its limit by more than the noise",
        () => "",
    };
    let lost: Vec<String> = notices
        .iter()
        .filter(|(notice, _)| notice.severity() == Severity::Loss)
        .map(|(notice, entry)| notice.sentence(entry.count))
        .collect();
    let lost =
        if lost.is_empty() { String::new() } else { format!(" Lost data was not examined: {}.", lost.join(", ")) };
    clean::line(&format!("Examined {base}{executions}{why}.{lost}")).to_string()
}

/// The activity of a step, with its function if known.
pub fn doing(step: &PropagationStep) -> String {
    let what = routed(&step.what, step.kind, step.route);
    match &step.function {
        Some(function) => format!("{what} in {}", clean::text(function)),
        None => what,
    }
}

/// The name of an event, marked if its calls differ from the other occurrences.
pub fn routed(what: &str, kind: EventKind, route: Option<RouteChange>) -> String {
    let what = clean::text(what);
    let is_call = !matches!(kind, EventKind::Running | EventKind::Runnable | EventKind::Interrupt);
    match route {
        Some(RouteChange::Additional) if is_call => format!("additional {what}"),
        Some(RouteChange::Missing) => format!("no {what}"),
        _ => what.into_owned(),
    }
}

pub fn name(found: &Anomalies, step: &PropagationStep) -> String {
    stream_label(found, step.stream)
}

/// A stream as people call it: `rank 2 thread 1`, the name of a thread.
pub(super) fn stream_label(found: &Anomalies, stream: u32) -> String {
    match found.streams.get(stream as usize) {
        Some(stream) if !stream.label.is_empty() => clean::owned(&stream.label),
        Some(StreamInfo { rank: Some(rank), .. }) => format!("rank {rank}"),
        stream => clean::owned(stream.map_or("", |s| &s.name)),
    }
}

pub fn place(found: &Anomalies, step: &PropagationStep) -> String {
    format!("{} at {}", name(found, step), figure::stamp(step.span.start - found.origin))
}
