//! The verdict on anomalies in one or two sentences: who delayed others most in all, and the largest single delay.
//!
//! In: [`Anomalies`]. Out: sentences, and the path that the interface shows first. The verdict names the first row of
//! the table of root causes; where no unusual event delayed others, the rank that all waited for most, usual or not. So
//! verdict, table and the totals of waiting name the same rank or thread.

use super::paths::sentence;
use super::words::{Words, examined, name};
use crate::base::notice::Notices;
use crate::base::{clean, figure};
use crate::compare::Comparison;
use crate::model::anomalies::{Anomalies, ExaminedExecutions};
use crate::model::root_cause::{CausedDelay, RootCause};
use crate::model::settings::FEWEST_EXECUTIONS;
use crate::model::waiting::Waiting;

/// The root cause that delayed others most in all, where no executions were examined.
fn first_source(found: &Anomalies) -> Option<&RootCause> {
    let first = found.sources.first().filter(|_| found.examined.executions.is_none());
    first.filter(|source| !source.idle)
}

/// The largest of several delays; of equals the first.
fn largest<'a>(delays: impl Iterator<Item = &'a CausedDelay>) -> Option<&'a CausedDelay> {
    delays.reduce(|a, b| if (b.affected_ns, b.excess_ns) > (a.affected_ns, a.excess_ns) { b } else { a })
}

/// The path of the largest delay of the root cause that the verdict names, where no executions were examined.
pub fn verdict_path(found: &Anomalies) -> Option<usize> {
    largest(first_source(found)?.occurrences.iter())?.path.map(|path| path as usize)
}

/// The root cause that cost most, then the largest single delay; without a root cause the rank that others waited for
/// most.
pub fn verdict(found: &Anomalies) -> String {
    if let Some(ExaminedExecutions { task, count }) = &found.examined.executions {
        return of_executions(found, task, *count);
    }
    let Some(source) = first_source(found) else { return without_source(found) };
    match &source.occurrences[..] {
        [only] if source.affected_ns > 0 => {
            let begin = |who: &str| format!("{} delayed others most, once", capitalised(who));
            of_delay(found, only, begin).unwrap_or_default()
        }
        _ => {
            let begin = |who: &str| format!("The largest single delay is that of {who}");
            let all = found.sources.iter().filter(|source| !source.idle).flat_map(|source| &source.occurrences);
            let single = largest(all).filter(|single| single.affected_ns > 0);
            let single = single.and_then(|single| of_delay(found, single, begin));
            of_source(found, source) + &single.map_or_else(String::new, |single| format!(" {single}"))
        }
    }
}

/// Beside a comparison of the iterations of an MPI run: who delayed others most in the whole run.
pub fn beside_comparison(found: &Anomalies, comparison: &Comparison) -> String {
    let why = why_others(found, comparison).map_or_else(String::new, |why| format!(" {why}"));
    format!("Pattern analysis: {}{why}", verdict(found))
}

/// Why a comparison of an MPI run's iterations names another rank than its anomalies. A delay that reaches a rank over
/// others takes each of them their usual time on the way, which the comparison adds up for them.
pub fn why_others(found: &Anomalies, comparison: &Comparison) -> Option<&'static str> {
    let compared = comparison.causes.first()?.by.thread.as_deref()?;
    let late = || found.waiting.as_ref().and_then(|waiting| waiting.costs.first());
    let (named, why) = match first_source(found) {
        Some(source) => (
            source.name.as_str(),
            "The pattern analysis counts each delay for the rank that began it, the comparison for the ranks that ran \
             while slow iterations waited.",
        ),
        None => (
            late()?.label.as_str(),
            "The pattern analysis adds up all waiting of the run, usual or not, the comparison what slow iterations \
             waited longer than fast ones.",
        ),
    };
    (found.examined.is_mpi && named != compared).then_some(why)
}

/// The rank that others waited for most, and how many long waits there were.
fn without_source(found: &Anomalies) -> String {
    let waits: u64 = found.unexplained.iter().map(|row| row.waits).sum();
    let late = found.waiting.as_ref().and_then(of_late_rank);
    match (waits, late) {
        (0, None) => examined(found, &Notices::default()),
        (0, Some(late)) => late,
        (n, None) => format!("{n} waits were unusually long, and the recording does not show why."),
        (n, Some(late)) => format!("{late} {n} waits were unusually long; no unusual event explains them."),
    }
}

/// `Rank 1, after MPI_Waitall, delayed others most: by 794 ms in all, 7 times from 0.564900 s to 3.206321 s.`
fn of_source(found: &Anomalies, source: &RootCause) -> String {
    let Words { who, did, .. } = Words::of(source);
    let span = source.span();
    let [first, last] = [span.start, span.end].map(|at| figure::stamp(at - found.origin));
    let times = figure::plural(source.occurrences.len() as u64, "time");
    let [affected, excess] = [source.affected_ns, source.excess_ns].map(figure::duration);
    let (what, cost) = match source.affected_ns {
        0 => (format!("took longer than usual: {excess}"), "; no other thread is known to have waited for it"),
        _ => (format!("delayed others most: by {affected}"), ""),
    };
    format!("{}, {did}, {what} in all, {times} from {first} to {last}{cost}.", capitalised(&who))
}

/// One delay; `begin` names who caused it.
fn of_delay(found: &Anomalies, delay: &CausedDelay, begin: impl Fn(&str) -> String) -> Option<String> {
    let first = found.paths.get(delay.path? as usize)?.steps.first()?;
    let (begin, at) = (begin(&name(found, first)), figure::stamp(first.span.start - found.origin));
    let affected = figure::duration(delay.affected_ns);
    Some(format!("{begin}, at {at}: {}; others waited {affected} for it.", sentence(first)))
}

/// The rank that others waited for most, usual or not: `Rank 8, computation after MPI_Barrier, was waited for most: 696
/// ms of the 1.23 s in which ranks waited for late ones (56.4%).`
fn of_late_rank(waiting: &Waiting) -> Option<String> {
    let first = waiting.costs.first().filter(|first| first.ns > 0 && waiting.waited_ns > 0)?;
    let function =
        if first.function.is_empty() { String::new() } else { format!(", {}", clean::text(&first.function)) };
    Some(format!(
        "{}{function}, was waited for most: {} of the {} in which ranks waited for late ones ({}).",
        capitalised(&clean::owned(&first.label)),
        figure::duration(first.ns),
        figure::duration(waiting.waited_ns),
        figure::percent(first.ns as f64 / waiting.waited_ns as f64, 1)
    ))
}

/// A rank begins the sentence; names of threads stay as they are.
fn capitalised(who: &str) -> String {
    who.strip_prefix("rank ").map_or_else(|| who.to_owned(), |rank| format!("Rank {rank}"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::notice::Notice;
    use crate::base::time::{Span, Timestamp};
    use crate::model::anomalies::{Examined, Pattern};
    use crate::model::event_kind::EventKind;
    use crate::model::settings::PatternVerdict;

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

    /// A root cause of rank `stream` by these delays, as (affected, excess).
    fn source(stream: u32, delays: &[(i64, i64)]) -> RootCause {
        let delay = |(affected_ns, excess_ns): &(i64, i64)| CausedDelay {
            anomaly: 0,
            path: Some(0),
            paths: 1,
            span: Span::new(Timestamp::new(0), Timestamp::new(*excess_ns)),
            affected_ns: *affected_ns,
            inner: Vec::new(),
            excess_ns: *excess_ns,
            factor: 2.0,
            is_new: false,
            executions: Vec::new(),
        };
        RootCause {
            streams: vec![stream],
            name: format!("rank {stream}"),
            process: String::new(),
            what: "after MPI_Recv".into(),
            kind: EventKind::Gap,
            function: None,
            carriers: Vec::new(),
            victim: None,
            noise: None,
            route: None,
            idle: false,
            in_executions: false,
            inner: Vec::new(),
            affected_ns: delays.iter().map(|(affected, _)| affected).sum(),
            excess_ns: delays.iter().map(|(_, excess)| excess).sum(),
            factor: 2.0,
            executions: 0,
            occurrences: delays.iter().map(delay).collect(),
        }
    }

    #[test]
    fn the_first_root_cause_is_named_also_where_no_thread_waited_for_any() {
        let sources = vec![source(1, &[(0, 3_000_000), (0, 3_000_000)]), source(2, &[(0, 5_000_000)])];
        let found = Anomalies { sources, ..Anomalies::default() };
        let sentence = "Rank 1, after MPI_Recv, took longer than usual: 6.00 ms in all, 2 times from 0.000000 s to \
                        0.003000 s; no other thread is known to have waited for it.";
        assert_eq!(verdict(&found), sentence);
        assert_eq!(verdict_path(&found), Some(0));
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
