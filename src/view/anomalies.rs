//! `whyslow anomalies` for people and for programs (schema `whyslow.anomalies/1`, PRODUCT.md).
//!
//! In: [`Anomalies`] and the warnings. Out: JSON, or text that begins with the paths, because they are the answer: who
//! was late by itself, by how much, and whom that delayed.

use crate::event::operation::EventKind;
use crate::model::pattern::{Anomalies, Anomaly, Responsible};
use crate::model::propagation::{Path, Step};
use serde_json::{Value, json};
use std::io::{self, Write};

/// The JSON document.
pub fn json(found: &Anomalies, warnings: &[String]) -> Value {
    let summary = &found.summary;
    let clocks = found
        .streams
        .iter()
        .map(|s| json!({"stream": s.name, "offset_ns": s.offset_ns, "error_ns": s.error_ns, "drift_ppb": s.drift_ppb}));
    let patterns = (0..).zip(&found.patterns).map(|(id, p): (usize, _)| {
        json!({"id": id, "name": p.name, "symbols": p.symbols, "loop": p.is_loop, "occurrences": p.occurrences,
               "selected": p.verdict == crate::analysis::patterns::measure::Verdict::Selected,
               "reason": p.verdict.reason(), "max_ref_ns": p.max_ref_ns, "limit_ns": p.limit_ns,
               "longest_ns": p.longest_ns})
    });
    let anomalies = (0..).zip(&found.anomalies).map(|(id, a)| anomaly_json(found, id, a));
    let paths = found.paths.iter().map(|path| {
        let steps: Vec<Value> = path.steps.iter().map(|step| step_json(found, step)).collect();
        json!({"excess_ns": path.excess_ns, "affected_ns": path.affected_ns, "messages": path.messages, "steps": steps})
    });
    json!({
        "schema": "whyslow.anomalies/1", "q": found.q, "s": found.s,
        "summary": {"events": summary.events, "detection_ms": summary.detection_ms,
                    "patterns": summary.patterns, "selected": summary.selected, "anomalies": summary.anomalies,
                    "sources": summary.sources, "longest_path": summary.longest_path},
        "clocks": clocks.collect::<Vec<_>>(),
        "patterns": patterns.collect::<Vec<_>>(),
        "anomalies": anomalies.collect::<Vec<_>>(),
        "paths": paths.collect::<Vec<_>>(),
        "truncated": found.paths_left_out > 0,
        "warnings": warnings,
    })
}

fn anomaly_json(found: &Anomalies, id: usize, a: &Anomaly) -> Value {
    let stream = found.streams.get(a.stream as usize);
    let responsible = a.responsible.iter().map(|r: &Responsible| {
        json!({"what": r.what, "kind": r.kind.name(), "local_start_ns": r.local.start, "local_end_ns": r.local.end,
               "excess_ns": r.excess_ns, "reference_ns": r.reference_ns})
    });
    json!({"id": id, "pattern": a.pattern, "stream": stream.map(|s| &s.name), "rank": stream.and_then(|s| s.rank),
           "start_ns": a.span.start, "end_ns": a.span.end, "local_start_ns": a.local.start,
           "local_end_ns": a.local.end, "factor": a.factor, "excess_ns": a.excess_ns, "source": a.source,
           "diffuse": a.diffuse, "responsible": responsible.collect::<Vec<_>>()})
}

fn step_json(found: &Anomalies, step: &Step) -> Value {
    let stream = found.streams.get(step.stream as usize);
    json!({"anomaly": step.anomaly, "rank": stream.and_then(|s| s.rank), "stream": stream.map(|s| &s.name),
           "what": step.what, "kind": step.kind.name(), "start_ns": step.span.start, "end_ns": step.span.end,
           "local_start_ns": step.local.start, "local_end_ns": step.local.end, "excess_ns": step.excess_ns,
           "via": step.via.map(|v| v.name())})
}

/// Sources shown as text; the JSON has all.
const SHOWN: usize = 10;

/// The text for people.
pub fn text(found: &Anomalies, warnings: &[String], out: &mut impl Write) -> io::Result<()> {
    let s = &found.summary;
    writeln!(
        out,
        "{} patterns, {} selected (q {}, s {}): {} anomalies, {} sources, longest path {} messages",
        s.patterns, s.selected, found.q, found.s, s.anomalies, s.sources, s.longest_path
    )?;
    writeln!(out)?;
    let mut shown = 0;
    let mut paths = found.paths.iter().peekable();
    while let Some(path) = paths.next() {
        if shown == SHOWN {
            writeln!(out, "... (all paths: --json)")?;
            break;
        }
        shown += 1;
        write_source(found, path, out)?;
        // The other paths of the same source: only where they end.
        while let Some(other) = paths.next_if(|other| other.steps.first() == path.steps.first()) {
            if let Some(last) = other.steps.last() {
                writeln!(out, "    ... and {} messages on to {}", other.messages, place(found, last))?;
            }
        }
    }
    writeln!(out)?;
    writeln!(out, "{:>9} {:>12} {:>12}  pattern", "times", "reference", "longest")?;
    for p in &found.patterns {
        let (reference, longest) = (duration(p.max_ref_ns), duration(p.longest_ns));
        writeln!(out, "{:>9} {reference:>12} {longest:>12}  {} ({})", p.occurrences, p.name, p.verdict.reason())?;
    }
    for warning in warnings {
        writeln!(out, "note: {warning}")?;
    }
    Ok(())
}

fn write_source(found: &Anomalies, path: &Path, out: &mut impl Write) -> io::Result<()> {
    let Some((first, rest)) = path.steps.split_first() else { return Ok(()) };
    writeln!(out, "{} {} too long: {}", place(found, first), duration(first.excess_ns), sentence(first))?;
    if path.affected_ns > 0 {
        writeln!(out, "  its victims waited {} too long together:", duration(path.affected_ns))?;
    }
    for step in rest {
        let via = step.via.map_or("", |v| v.name());
        writeln!(out, "    {via} to {}: {} {} too long", place(found, step), step.what, duration(step.excess_ns))?;
    }
    Ok(())
}

/// What kind of delay it was, as far as the recording tells.
fn sentence(step: &Step) -> String {
    let (length, usual) = (duration(step.local.len()), duration(step.reference_ns));
    match step.kind {
        EventKind::Gap => format!("computed {length} {} (usually {usual})", step.what),
        // Calls that wait for nobody take microseconds: what makes one take milliseconds is not the program.
        EventKind::Operation if step.reference_ns < 100_000 => {
            format!("{length} inside {} (usually {usual}): interrupted or preempted there, by its length", step.what)
        }
        EventKind::Operation => format!("{} took {length} (usually {usual})", step.what),
        EventKind::Receive | EventKind::Collective => {
            format!("waited {length} in {} (usually {usual}), for nothing that was recorded as late", step.what)
        }
    }
}

fn place(found: &Anomalies, step: &Step) -> String {
    let stream = found.streams.get(step.stream as usize);
    match stream.and_then(|s| s.rank) {
        Some(rank) => format!("rank {rank} at {}", duration(step.span.start)),
        None => format!("{} at {}", stream.map_or("", |s| &s.name), duration(step.span.start)),
    }
}

fn duration(ns: i64) -> String {
    let size = ns.unsigned_abs();
    let value = ns as f64;
    match size {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", value / 1e6),
        _ => format!("{:.3} s", value / 1e9),
    }
}
