//! Propagation of delays as text: each root cause with the victims on its longest path and a summary of its other
//! victims, then the waits without a known cause.

use super::text::ListBounds;
use super::words::{doing, name, place, stream_label};
use crate::base::time::Ns;
use crate::base::{clean, figure};
use crate::model::anomalies::Anomalies;
use crate::model::carrier::Carrier;
use crate::model::event_kind::EventKind;
use crate::model::propagation::{Noise, PropagationPath, PropagationStep, RouteChange};
use crate::view::strips;
use std::fmt::Write;

/// The root causes, those that caused most delay first.
pub(super) fn write(found: &Anomalies, shown: ListBounds, out: &mut String) -> std::fmt::Result {
    let mut sources = found.paths.chunk_by(|a, b| a.source == b.source);
    for paths in sources.by_ref().take(shown.sources) {
        writeln!(out)?;
        write_source(found, paths, shown, out)?;
        let number = paths.first().map_or(usize::MAX, |p| p.source as usize);
        if let Some(line) = found.around.get(number).filter(|_| number == 0 || shown.victims == usize::MAX) {
            writeln!(out, "  the ranks around it, computing (#) or waiting (.):")?;
            for line in strips::lines(line, strips::StripContent::Both, usize::MAX, COLUMNS) {
                writeln!(out, "  {line}")?;
            }
        }
    }
    if sources.next().is_some() {
        writeln!(out, "\nmore root causes with --all, fewer with a larger s")?;
    }
    Ok(())
}

/// A root cause: its longest path step by step, and the ends of its other paths.
fn write_source(found: &Anomalies, paths: &[PropagationPath], shown: ListBounds, out: &mut String) -> std::fmt::Result {
    let Some((path, others)) = paths.split_first() else { return Ok(()) };
    let Some((first, rest)) = path.steps.split_first() else { return Ok(()) };
    writeln!(out, "{}: {}", place(found, first), sentence(first))?;
    if path.affected_ns > 0 && !rest.is_empty() {
        writeln!(
            out,
            "  this delay of {} cost its victims {} in total:",
            figure::duration(first.excess_ns),
            figure::duration(path.affected_ns)
        )?;
    }
    for step in rest.iter().take(shown.victims) {
        let what = doing(step);
        let carrier = step.carrier.map_or("", Carrier::name);
        writeln!(
            out,
            "    {carrier} to {}: {what} {} longer than usual",
            place(found, step),
            figure::duration(step.excess_ns)
        )?;
    }
    if let Some(more) = rest.len().checked_sub(shown.victims).filter(|more| *more > 0) {
        writeln!(out, "    {more} more steps with --all")?;
    }
    let hop = if path.execution.is_some() { "hop" } else { "message" };
    if others.len() <= FOLDED || shown.victims == usize::MAX {
        for (other, last) in others.iter().filter_map(|other| Some((other, other.steps.last()?))) {
            writeln!(out, "    over {} to {}", figure::plural(other.messages, hop), place(found, last))?;
        }
        return Ok(());
    }
    let (least, most) = others.iter().fold((u64::MAX, 0), |(a, b), p| (a.min(p.messages), b.max(p.messages)));
    let over = if least == most { figure::plural(least, hop) } else { format!("{least} to {most} {hop}s") };
    let ends = others.iter().filter_map(|other| other.steps.last());
    writeln!(out, "    over {over} to {} more: {}", others.len(), fold(found, ends))
}

/// Width of a timeline.
const COLUMNS: usize = 78;
/// With more other victims than this, one line summarises them.
const FOLDED: usize = 3;
/// Runs of ranks, or names, in that line.
const RUNS: usize = 8;

/// The places of steps, each once: ranks as ranges of numbers, others by name.
fn fold<'a>(found: &Anomalies, steps: impl Iterator<Item = &'a PropagationStep>) -> String {
    let (mut ranks, mut names): (Vec<u32>, Vec<String>) = (Vec::new(), Vec::new());
    for step in steps {
        let name = name(found, step);
        match name.strip_prefix("rank ").and_then(|number| number.parse().ok()) {
            Some(rank) => ranks.push(rank),
            None => names.push(name),
        }
    }
    names.sort_unstable();
    names.dedup();
    ranks.sort_unstable();
    ranks.dedup();
    let run = |run: &[u32]| match run {
        [first, .., last] if first != last => format!("{first}-{last}"),
        _ => run.iter().map(u32::to_string).collect(),
    };
    let mut parts: Vec<String> = ranks.chunk_by(|a, b| a + 1 == *b).map(run).collect();
    if let Some(first) = parts.first_mut() {
        *first = format!("rank{} {first}", if ranks.len() > 1 { "s" } else { "" });
    }
    parts.extend(names);
    let more = parts.len().saturating_sub(RUNS);
    parts.truncate(RUNS);
    let rest = if more > 0 { format!(", and {more} more, with --all") } else { String::new() };
    parts.join(", ") + &rest
}

/// Waits without a known cause, the largest total first.
pub(super) fn write_unexplained(found: &Anomalies, shown: ListBounds, out: &mut String) -> std::fmt::Result {
    let all = &found.unexplained;
    if all.is_empty() {
        return Ok(());
    }
    let (waits, ns) = all.iter().fold((0, 0), |(waits, ns), u| (waits + u.waits, ns + u.excess_ns));
    let late: Ns = all.iter().filter_map(|u| u.late).map(|late| late.ns).sum();
    let late = match late {
        0 => String::new(),
        ns => format!("; {} of waiting for the ranks named, whose own time exceeded no limit", figure::duration(ns)),
    };
    writeln!(out, "\n{waits} waits without a known cause, {} longer than usual in total{late}", figure::duration(ns))?;
    for u in all.iter().take(shown.waits) {
        let label = stream_label(found, u.stream);
        let late = u.late.map_or_else(String::new, |late| {
            format!(", {} for {}", figure::duration(late.ns), stream_label(found, late.stream))
        });
        let within = u.function.as_ref().map_or_else(String::new, |f| format!(" in {}", clean::text(f)));
        let in_time = match u.sent_in_time {
            0 => String::new(),
            n if n == u.waits => ", although the data was sent in time".to_owned(),
            n => format!(", {n} of them although the data was sent in time"),
        };
        let [first, last] = [u.span.start, u.span.end].map(|t| figure::stamp(t - found.origin));
        let (long, what) = (figure::duration(u.excess_ns), clean::text(&u.what));
        writeln!(out, "{long:>11} {:>7} {first:>11} {last:>11}  {label}: {what}{within}{late}{in_time}", u.waits,)?;
    }
    if let Some(more) = all.len().checked_sub(shown.waits).filter(|more| *more > 0) {
        writeln!(out, "{:>11} {more} more places with --all", "")?;
    }
    Ok(())
}

/// The kind of delay, as far as the recording shows it.
pub(super) fn sentence(step: &PropagationStep) -> String {
    let (length, what) = (figure::duration(step.local.len()), doing(step));
    // A step that is known only from the thread that waited for it may have no usual length.
    let usual = match step.reference_ns {
        0 => "absent in other occurrences".to_owned(),
        reference => format!("usually {}", figure::duration(reference)),
    };
    match step.route {
        Some(RouteChange::Missing) => return format!("{what} ({usual}): different calls from the other occurrences"),
        Some(RouteChange::Instead | RouteChange::Order) => {
            return format!("{what} took {length} ({usual}): different calls from the other occurrences");
        }
        Some(RouteChange::Additional) | None => {}
    }
    if step.noise == Some(Noise::Tracer) {
        return format!(
            "{what} took {length} ({usual}): the tracer flushed its buffer meanwhile, which is not the program's own \
             work"
        );
    }
    match (step.kind, step.noise) {
        (EventKind::Gap, Some(Noise::Interrupted)) => {
            format!("{length} between calls, {what} ({usual}): system noise, the thread was interrupted or preempted")
        }
        (EventKind::Gap, _) => format!("{length} between calls, {what} ({usual})"),
        (EventKind::Operation, Some(Noise::Interrupted)) => {
            format!("{length} inside {what} ({usual}): system noise, the thread was interrupted or preempted")
        }
        (EventKind::Operation | EventKind::Wait, _) => format!("{what} took {length} ({usual})"),
        (EventKind::Running | EventKind::Interrupt, _) => {
            format!("{what}, {} more than usual ({usual})", figure::duration(step.excess_ns))
        }
        (EventKind::Runnable, _) => {
            format!("{what}, runnable without a CPU, {} more than usual ({usual})", figure::duration(step.excess_ns))
        }
        (_, Some(Noise::Delivery)) => format!(
            "{what} took {length} ({usual}) although the data was sent in time: system noise, slow delivery or wake-up"
        ),
        (EventKind::Receive | EventKind::Collective | EventKind::Send, _) => {
            format!("{what} took {length} ({usual}); the recording does not show why")
        }
    }
}
