//! Anomalies as text: the table of root causes, their paths step by step, and the sentences that the interface shares.

use super::paths::{self, sentence};
use crate::base::notice::{Notices, Severity};
use crate::base::{clean, figure};
use crate::model::anomalies::{Anomalies, ExaminedExecutions, StreamInfo};
use crate::model::event_kind::EventKind;
use crate::model::propagation::{PropagationPath, PropagationStep, RouteChange};
use crate::model::root_cause::{RootCause, Victim};
use crate::model::settings::{FEWEST_EXECUTIONS, PatternVerdict, ThresholdRule};
use crate::view::compared_causes::ComparedCauses;
use crate::view::waiting;
use std::fmt::Write;

/// How much of each list is shown as text; the JSON has all.
#[derive(Clone, Copy, Debug)]
pub struct ListBounds {
    /// Root causes, and single delays below them.
    pub sources: usize,
    /// Steps of a path, and lines for its other victims.
    pub victims: usize,
    /// Rows of waits without a known cause.
    pub waits: usize,
    pub patterns: usize,
    /// Rows of strips.
    pub rows: usize,
}

impl ListBounds {
    /// As much as one reads at a glance.
    pub const FIRST: ListBounds = ListBounds { sources: 10, victims: 8, waits: 5, patterns: 30, rows: 8 };
    /// Everything.
    pub const ALL: ListBounds = ListBounds {
        sources: usize::MAX,
        victims: usize::MAX,
        waits: usize::MAX,
        patterns: usize::MAX,
        rows: usize::MAX,
    };
}

/// The text for people; `compared` is the result of comparing the same executions.
pub fn text(found: &Anomalies, notices: &Notices, compared: Option<&ComparedCauses>, shown: ListBounds) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(found, notices, compared, shown, &mut out);
    out
}

fn write(
    found: &Anomalies,
    notices: &Notices,
    compared: Option<&ComparedCauses>,
    shown: ListBounds,
    out: &mut String,
) -> std::fmt::Result {
    let s = &found.summary;
    let step = if found.examined.executions.is_some() { "hop" } else { "message" };
    writeln!(
        out,
        "{} patterns, {} selected ({}): {} anomalies, {}, {}, longest path {}",
        s.patterns,
        s.selected,
        rule(found.limit, found.q, found.s),
        s.anomalies,
        figure::plural(found.sources.len() as u64, "root cause"),
        figure::plural(found.times(), "time"),
        figure::plural(s.longest_path, step)
    )?;
    writeln!(out, "{}", verdict(found))?;
    if let Some(compared) = compared {
        writeln!(out, "Comparison: {}", compared.sentence)?;
    }
    if found.sources.iter().all(|s| s.idle) {
        writeln!(out, "{}", examined(found, notices))?;
    }
    write_sources(found, compared, shown, out)?;
    paths::write_unexplained(found, shown, out)?;
    paths::write(found, shown, out)?;
    if let Some(w) = &found.waiting {
        waiting::write(w, shown.rows, out)?;
        if let Some(sentence) = w.sentence() {
            writeln!(out, "{}", clean::line(&sentence))?;
        }
    }
    writeln!(out, "\n{:>9} {:>11} {:>11} {:>11}  pattern", "times", "reference", "limit", "longest")?;
    for p in found.patterns.iter().take(shown.patterns) {
        let [reference, limit, longest] = [p.max_ref_ns, p.limit_ns, p.longest_ns].map(figure::duration);
        let (name, reason) = (clean::text(&p.name), p.verdict.reason());
        writeln!(out, "{:>9} {reference:>11} {limit:>11} {longest:>11}  {name} ({reason})", p.occurrences)?;
    }
    if let Some(more) = found.patterns.len().checked_sub(shown.patterns).filter(|more| *more > 0) {
        writeln!(out, "{:>9} more with --all", format!("{more}"))?;
    }
    for warning in notices.sentences() {
        writeln!(out, "note: {}", clean::line(&warning))?;
    }
    Ok(())
}

/// The rule behind the limits: `q 0.75, s 2`.
pub fn rule(limit: ThresholdRule, q: f64, s: f64) -> String {
    match limit {
        ThresholdRule::Quotient => format!("q {q}, s {s}"),
        ThresholdRule::Robust => format!("robust limit, s {s}"),
    }
}

/// The table of root causes, those that caused most delay first.
fn write_sources(
    found: &Anomalies,
    compared: Option<&ComparedCauses>,
    bound: ListBounds,
    out: &mut String,
) -> std::fmt::Result {
    let shown: Vec<&RootCause> = found.sources.iter().take(bound.sources).collect();
    if shown.is_empty() {
        return Ok(());
    }
    let of_executions = found.examined.executions.is_some();
    let executions = if of_executions { " executions" } else { "" };
    let cause = if compared.is_some() { " cause" } else { "" };
    writeln!(out, "\n{:>11} {:>7}{executions} {:>11} {:>11}{cause}  root cause", "delay", "times", "first", "last")?;
    let mut before = None;
    for (at, source) in shown.into_iter().enumerate() {
        let part = (source.idle, of_executions && !source.in_executions);
        if part != before.unwrap_or((false, false)) {
            let title = if source.idle {
                "idle, waiting for work (neither root cause nor victim)"
            } else {
                "outside executions"
            };
            writeln!(out, "{:>11} {title}:", "")?;
        }
        before = Some(part);
        let span = source.span();
        let [first, last] = [span.start, span.end].map(|t| figure::stamp(t - found.origin));
        let delay = if source.affected_ns > 0 { source.affected_ns } else { source.excess_ns };
        let executions = if of_executions { format!(" {:>10}", source.executions) } else { String::new() };
        let (delay, times, words) = (figure::duration(delay), source.occurrences.len(), of_source(source));
        let rank = |compared: &ComparedCauses| compared.of(at).map_or("-".to_owned(), |rank| rank.to_string());
        let cause = compared.map_or_else(String::new, |compared| format!(" {:>5}", rank(compared)));
        writeln!(out, "{delay:>11} {times:>7}{executions} {first:>11} {last:>11}{cause}  {words}")?;
    }
    if let Some(more) = found.sources.len().checked_sub(bound.sources).filter(|more| *more > 0) {
        writeln!(out, "{:>11} {more} more root causes with --all", "")?;
    }
    Ok(())
}

/// Thread, activity, carriers and victim: `journal of ledgerd: running in expensive_flush; carried by lock to worker in
/// append_entry`.
pub fn of_source(source: &RootCause) -> String {
    let words = Words::of(source);
    let to = if words.to.is_empty() { String::new() } else { format!("; {}", words.to) };
    format!("{}: {}{to}", words.who, words.did)
}

/// A root cause as text.
pub struct Words {
    /// `journal of ledgerd`, `rank 4`.
    pub who: String,
    /// `running in expensive_flush`.
    pub did: String,
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
        Words { who, did: did + noise, to }
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

/// The path whose root cause the verdict names, where no executions were examined: the first one that begins with
/// something else than a wait.
pub fn verdict_path(found: &Anomalies) -> Option<usize> {
    if found.examined.executions.is_some() {
        return None;
    }
    let begins = |path: &PropagationPath, waits: bool| path.steps.first().is_some_and(|s| s.kind.waits() == waits);
    let first = |waits| found.paths.iter().position(|path| begins(path, waits));
    first(false).or_else(|| first(true))
}

/// The root cause that cost most, in one sentence; waits that nothing explains come last.
pub fn verdict(found: &Anomalies) -> String {
    if let Some(ExaminedExecutions { task, count }) = &found.examined.executions {
        return of_executions(found, task, *count);
    }
    let at = verdict_path(found);
    let path = at.and_then(|at| found.paths.get(at)).and_then(|path| Some((path, path.steps.first()?)));
    let Some((path, first)) = path else {
        return match found.anomalies.len() {
            0 => examined(found, &Notices::default()),
            n => format!("{n} waits were unusually long, and the recording does not show why."),
        };
    };
    let at = figure::stamp(first.span.start - found.origin);
    let cost = match path.affected_ns {
        0 => "no other thread is known to have waited for it".to_owned(),
        affected => format!(
            "this delay of {} made others wait {} in total",
            figure::duration(first.excess_ns),
            figure::duration(affected)
        ),
    };
    format!("{}, {at} after the start: {}; {cost}.", name(found, first), sentence(first))
}

/// The sentence of [`verdict`] where executions were delayed.
fn of_executions(found: &Anomalies, task: &str, executions: u64) -> String {
    if executions < FEWEST_EXECUTIONS as u64 {
        return examined(found, &Notices::default());
    }
    let first = found.sources.first().filter(|s| s.in_executions);
    let Some(first) = first.filter(|s| s.affected_ns > 0) else {
        let none = format!("None of the {executions} executions of {} had an unusual delay", clean::text(task));
        return match first.filter(|s| s.route.is_some()) {
            Some(other) => {
                let words = Words::of(other);
                format!(
                    "{none}; {} made different calls from the others: {}, {}.",
                    other.executions, words.who, words.did
                )
            }
            None => format!("{none}."),
        };
    };
    let words = Words::of(first);
    let to = if words.to.is_empty() { String::new() } else { format!("; {}", words.to) };
    let share = found
        .share(first)
        .map_or_else(String::new, |share| format!(" ({} of their total time)", figure::percent(share, 1)));
    format!(
        "{}, {}, delayed {} of {executions} executions by {} in total{share}{to}.",
        words.who,
        words.did,
        first.executions,
        figure::duration(first.affected_ns)
    )
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
    let stream = found.streams.get(step.stream as usize);
    match stream {
        Some(stream) if !stream.label.is_empty() => clean::owned(&stream.label),
        Some(StreamInfo { rank: Some(rank), .. }) => format!("rank {rank}"),
        _ => clean::owned(stream.map_or("", |s| &s.name)),
    }
}

pub fn place(found: &Anomalies, step: &PropagationStep) -> String {
    format!("{} at {}", name(found, step), figure::stamp(step.span.start - found.origin))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::notice::Notice;
    use crate::model::anomalies::{Examined, Pattern};

    fn pattern(verdict: PatternVerdict) -> Pattern {
        Pattern {
            name: "read write".into(),
            symbols: vec!["read".into(), "write".into()],
            is_loop: false,
            occurrences: 9,
            verdict,
            max_ref_ns: 1,
            limit_ns: 2,
            longest_ns: 1,
        }
    }

    #[test]
    fn empty_result_names_its_reason() {
        let text = |examined: Examined, patterns: Vec<Pattern>, notices: &Notices| {
            super::examined(&Anomalies { examined, patterns, ..Anomalies::default() }, notices)
        };
        let (none, some) = (Examined::default(), || Examined { streams: 2, operations: 40, ..Examined::default() });
        let quiet = Notices::default();
        let mut lossy = Notices::default();
        lossy.add(Notice::DiscardedEvents, 7, String::new);
        for (examined, patterns, notices, sentence) in [
            (
                none.clone(),
                vec![],
                &quiet,
                "0 patterns in 0 operations of 0 threads: this recording has no system calls or user-space events.",
            ),
            (
                Examined { declares_calls: true, ..none.clone() },
                vec![],
                &quiet,
                "0 patterns in 0 operations of 0 threads: no system call or user-space event in this recording \
                 belongs to a known thread; record sched_switch, or the context tid.",
            ),
            (
                Examined { is_mpi: true, ..none.clone() },
                vec![],
                &quiet,
                "0 patterns in 0 operations of 0 ranks: this run has no MPI calls.",
            ),
            (some(), vec![], &quiet, "0 patterns in 40 operations of 2 threads: no sequence of events repeats."),
            (
                some(),
                vec![pattern(PatternVerdict::TooFew)],
                &quiet,
                "1 pattern in 40 operations of 2 threads: none occurs at least 10 times, which the analysis needs.",
            ),
            (
                some(),
                vec![pattern(PatternVerdict::TooFew), pattern(PatternVerdict::Regular)],
                &quiet,
                "2 patterns in 40 operations of 2 threads: none exceeded its limit by more than the noise.",
            ),
            (
                some(),
                vec![],
                &lossy,
                "0 patterns in 40 operations of 2 threads: no sequence of events repeats. Lost data was not \
                 examined: the tracer discarded 7 events.",
            ),
        ] {
            assert_eq!(text(examined, patterns, notices), format!("Examined {sentence}"));
        }
        let few = Anomalies {
            examined: Examined {
                executions: Some(ExaminedExecutions { task: "app:request".into(), count: 9 }),
                ..some()
            },
            patterns: vec![pattern(PatternVerdict::TooFew)],
            ..Anomalies::default()
        };
        let sentence = "Examined 1 pattern in 40 operations of 2 threads, 9 executions of app:request: none occurs \
                        at least 10 times, which the analysis needs.";
        assert_eq!(verdict(&few), sentence);
    }
}
