//! `whyslow anomalies` for people and for programs (schema `whyslow.anomalies/1`, PRODUCT.md).
//!
//! In: [`Anomalies`] and the warnings. Out: JSON, or text that begins with the paths, because they are the answer: who
//! was late by itself, by how much, and whom that delayed.

use super::clean;
use super::waiting::{self, WaitingJson};
use crate::analysis::patterns::measure::{Limit, Verdict};
use crate::base::notice::Notices;
use crate::base::time::Ns;
use crate::event::operation::{EventKind, ThreadPlace, Via};
use crate::model::pattern::{Anomalies, Anomaly, Pattern, Responsible, Stream};
use crate::model::propagation::{Noise, Path, Step};
use crate::model::waiting::Waiting;
use serde::Serialize;
use std::fmt::Write;

/// The JSON document.
#[derive(Clone, Debug, Serialize)]
pub struct Document {
    schema: &'static str,
    q: f64,
    s: f64,
    limit: &'static str,
    summary: SummaryJson,
    clocks: Vec<ClockJson>,
    patterns: Vec<PatternJson>,
    anomalies: Vec<AnomalyJson>,
    paths: Vec<PathJson>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    waiting: Option<WaitingJson>,
    /// Who all others wait for although nothing is unusual, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    steady: Option<String>,
    truncated: bool,
    warnings: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct SummaryJson {
    events: u64,
    patterns: u64,
    selected: u64,
    anomalies: u64,
    sources: u64,
    longest_path: u64,
    violations: u64,
}

/// A stream's clock.
#[derive(Clone, Debug, Serialize)]
pub struct ClockJson {
    stream: String,
    offset_ns: Ns,
    error_ns: Option<Ns>,
    drift_ppb: f64,
}

impl std::fmt::Display for ClockJson {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let error = self.error_ns.map_or_else(|| "unknown".to_owned(), duration);
        write!(f, "clock of {}: {} to add, error up to {error}", self.stream, duration(self.offset_ns))?;
        if self.drift_ppb == 0.0 { Ok(()) } else { write!(f, ", drift {:.1} ppm", self.drift_ppb / 1e3) }
    }
}

#[derive(Clone, Debug, Serialize)]
struct PatternJson {
    id: usize,
    name: String,
    symbols: Vec<String>,
    #[serde(rename = "loop")]
    is_loop: bool,
    occurrences: u64,
    selected: bool,
    reason: &'static str,
    max_ref_ns: Ns,
    limit_ns: Ns,
    longest_ns: Ns,
}

/// Where: `pid`, `tid` and `thread` in kernel recordings only, `rank` null there.
#[derive(Clone, Debug, Default, Serialize)]
struct PlaceJson {
    stream: String,
    rank: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(flatten)]
    thread: Option<ThreadJson>,
}

#[derive(Clone, Debug, Serialize)]
struct ThreadJson {
    pid: i32,
    tid: i32,
    thread: String,
}

#[derive(Clone, Debug, Serialize)]
struct AnomalyJson {
    id: usize,
    pattern: Option<u32>,
    #[serde(flatten)]
    place: PlaceJson,
    start_ns: Ns,
    end_ns: Ns,
    local_start_ns: Ns,
    local_end_ns: Ns,
    factor: f64,
    excess_ns: Ns,
    source: bool,
    diffuse: bool,
    responsible: Vec<ResponsibleJson>,
}

#[derive(Clone, Debug, Serialize)]
struct ResponsibleJson {
    what: String,
    kind: &'static str,
    local_start_ns: Ns,
    local_end_ns: Ns,
    excess_ns: Ns,
    reference_ns: Ns,
}

/// A path.
#[derive(Clone, Debug, Serialize)]
struct PathJson {
    excess_ns: Ns,
    affected_ns: Ns,
    messages: u64,
    steps: Vec<StepJson>,
}

#[derive(Clone, Debug, Serialize)]
struct StepJson {
    anomaly: u32,
    #[serde(flatten)]
    place: PlaceJson,
    what: String,
    function: Option<String>,
    kind: &'static str,
    start_ns: Ns,
    end_ns: Ns,
    local_start_ns: Ns,
    local_end_ns: Ns,
    excess_ns: Ns,
    reference_ns: Ns,
    via: Option<&'static str>,
    noise: Option<&'static str>,
}

fn cleaned(text: &str) -> String {
    clean::text(text).into_owned()
}

/// The document of an analysis.
pub fn json(found: &Anomalies, notices: &Notices) -> Document {
    let summary = &found.summary;
    Document {
        schema: "whyslow.anomalies/1",
        q: found.q,
        s: found.s,
        limit: found.limit.name(),
        summary: SummaryJson {
            events: summary.events,
            patterns: summary.patterns,
            selected: summary.selected,
            anomalies: summary.anomalies,
            sources: summary.sources,
            longest_path: summary.longest_path,
            violations: summary.violations,
        },
        clocks: clocks(&found.streams),
        patterns: (0..).zip(&found.patterns).map(|(id, p)| pattern(id, p)).collect(),
        anomalies: (0..).zip(&found.anomalies).map(|(id, a)| anomaly(found, id, a)).collect(),
        paths: found.paths.iter().map(|p| path(found, p)).collect(),
        waiting: found.waiting.as_ref().map(|w| waiting::json(Some(w))),
        steady: found.waiting.as_ref().and_then(Waiting::sentence).map(|s| clean::line(&s)),
        truncated: found.paths_left_out > 0,
        warnings: notices.sentences().iter().map(|s| clean::line(s)).collect(),
    }
}

/// Another document with one path beside it.
#[derive(Clone, Debug, Serialize)]
pub struct WithPath<T> {
    #[serde(flatten)]
    document: T,
    path: Option<PathJson>,
}

/// A document, and the path that is selected on the screen.
pub fn with_path<T: Serialize>(document: T, found: &Anomalies, at: usize) -> WithPath<T> {
    WithPath { document, path: found.paths.get(at).map(|p| path(found, p)) }
}

/// The clocks alone, for `info --full`.
pub fn clocks(streams: &[Stream]) -> Vec<ClockJson> {
    let clock = |s: &Stream| ClockJson {
        stream: cleaned(&s.name),
        offset_ns: s.offset_ns,
        error_ns: s.error_ns,
        drift_ppb: s.drift_ppb,
    };
    streams.iter().map(clock).collect()
}

fn pattern(id: usize, p: &Pattern) -> PatternJson {
    PatternJson {
        id,
        name: cleaned(&p.name),
        symbols: p.symbols.iter().map(|s| cleaned(s)).collect(),
        is_loop: p.is_loop,
        occurrences: p.occurrences,
        selected: p.verdict == Verdict::Selected,
        reason: p.verdict.reason(),
        max_ref_ns: p.max_ref_ns,
        limit_ns: p.limit_ns,
        longest_ns: p.longest_ns,
    }
}

fn place_of(found: &Anomalies, stream: u32) -> PlaceJson {
    let thread = |t: &ThreadPlace| ThreadJson { pid: t.pid, tid: t.tid, thread: cleaned(&t.name) };
    let place = |s: &Stream| PlaceJson {
        stream: cleaned(&s.name),
        rank: s.rank,
        label: (!s.label.is_empty()).then(|| cleaned(&s.label)),
        thread: s.thread.as_ref().map(thread),
    };
    found.streams.get(stream as usize).map(place).unwrap_or_default()
}

fn anomaly(found: &Anomalies, id: usize, a: &Anomaly) -> AnomalyJson {
    let responsible = |r: &Responsible| ResponsibleJson {
        what: cleaned(&r.what),
        kind: r.kind.name(),
        local_start_ns: r.local.start,
        local_end_ns: r.local.end,
        excess_ns: r.excess_ns,
        reference_ns: r.reference_ns,
    };
    AnomalyJson {
        id,
        pattern: a.pattern,
        place: place_of(found, a.stream),
        start_ns: a.span.start,
        end_ns: a.span.end,
        local_start_ns: a.local.start,
        local_end_ns: a.local.end,
        factor: a.factor,
        excess_ns: a.excess_ns,
        source: a.source,
        diffuse: a.diffuse,
        responsible: a.responsible.iter().map(responsible).collect(),
    }
}

fn path(found: &Anomalies, path: &Path) -> PathJson {
    let step = |s: &Step| StepJson {
        anomaly: s.anomaly,
        place: place_of(found, s.stream),
        what: cleaned(&s.what),
        function: s.function.as_deref().map(cleaned),
        kind: s.kind.name(),
        start_ns: s.span.start,
        end_ns: s.span.end,
        local_start_ns: s.local.start,
        local_end_ns: s.local.end,
        excess_ns: s.excess_ns,
        reference_ns: s.reference_ns,
        via: s.via.map(Via::name),
        noise: s.noise.map(Noise::name),
    };
    PathJson {
        excess_ns: path.excess_ns,
        affected_ns: path.affected_ns,
        messages: path.messages,
        steps: path.steps.iter().map(step).collect(),
    }
}

/// Sources shown as text; the JSON has all.
const SHOWN: usize = 10;

/// The text for people.
pub fn text(found: &Anomalies, notices: &Notices) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(found, notices, &mut out);
    out
}

fn write(found: &Anomalies, notices: &Notices, out: &mut String) -> std::fmt::Result {
    let s = &found.summary;
    writeln!(
        out,
        "{} patterns, {} selected ({}): {} anomalies, {} sources, longest path {} messages",
        s.patterns,
        s.selected,
        rule(found.limit, found.q, found.s),
        s.anomalies,
        s.sources,
        s.longest_path
    )?;
    writeln!(out, "{}", verdict(found))?;
    let mut paths = found.paths.iter().peekable();
    if paths.peek().is_none() {
        writeln!(out, "\nnothing took too long by itself")?;
    }
    for _ in 0..SHOWN {
        let Some(path) = paths.next() else { break };
        writeln!(out)?;
        write_source(found, path, out)?;
        // The other paths of the same source: only where they end.
        while let Some(other) = paths.next_if(|other| other.steps.first() == path.steps.first()) {
            if let Some(last) = other.steps.last() {
                writeln!(out, "    and over {} messages to {}", other.messages, place(found, last))?;
            }
        }
    }
    if paths.peek().is_some() {
        writeln!(out, "\nmore sources with --json; fewer with a larger s")?;
    }
    if let Some(w) = &found.waiting {
        waiting::write(w, out)?;
        if let Some(sentence) = w.sentence() {
            writeln!(out, "{}", clean::line(&sentence))?;
        }
    }
    writeln!(out, "\n{:>9} {:>11} {:>11} {:>11}  pattern", "times", "reference", "limit", "longest")?;
    for p in &found.patterns {
        let [reference, limit, longest] = [p.max_ref_ns, p.limit_ns, p.longest_ns].map(duration);
        let (name, reason) = (clean::text(&p.name), p.verdict.reason());
        writeln!(out, "{:>9} {reference:>11} {limit:>11} {longest:>11}  {name} ({reason})", p.occurrences)?;
    }
    for warning in notices.sentences() {
        writeln!(out, "note: {}", clean::line(&warning))?;
    }
    Ok(())
}

/// How limits were found: `q 0.75, s 2`.
pub fn rule(limit: Limit, q: f64, s: f64) -> String {
    match limit {
        Limit::Quotient => format!("q {q}, s {s}"),
        Limit::Robust => format!("robust limit, s {s}"),
    }
}

/// The source that cost most, in one sentence; one that was late by itself before a wait that nothing explains.
pub fn verdict(found: &Anomalies) -> String {
    let mut sources = found.paths.iter().filter_map(|p| Some((p, p.steps.first()?)));
    let own = sources.clone().find(|(_, first)| !first.kind.waits());
    let Some((path, first)) = own.or_else(|| sources.next()) else {
        return match found.anomalies.len() {
            0 => "Nothing that repeats took too long.".to_owned(),
            n => format!("{n} waits took too long, for nothing that was recorded as late."),
        };
    };
    let at = duration(first.span.start - found.origin);
    let cost = match path.affected_ns {
        0 => "nobody is known to have waited for it".to_owned(),
        affected => format!("its {} too much made others wait {}", duration(first.excess_ns), duration(affected)),
    };
    format!("{}, {at} after the start: {}; {cost}.", name(found, first), sentence(first))
}

fn write_source(found: &Anomalies, path: &Path, out: &mut String) -> std::fmt::Result {
    let Some((first, rest)) = path.steps.split_first() else { return Ok(()) };
    writeln!(out, "{}: {}", place(found, first), sentence(first))?;
    if path.affected_ns > 0 {
        writeln!(out, "  its {} too much cost its victims {}:", duration(first.excess_ns), duration(path.affected_ns))?;
    }
    for step in rest {
        let what = doing(step);
        let via = step.via.map_or("", Via::name);
        writeln!(out, "    {via} to {}: {what} {} too long", place(found, step), duration(step.excess_ns))?;
    }
    Ok(())
}

/// What happened, and in which function where that is known.
pub(super) fn doing(step: &Step) -> String {
    match &step.function {
        Some(function) => format!("{} in {}", clean::text(&step.what), clean::text(function)),
        None => cleaned(&step.what),
    }
}

/// What kind of delay it was, as far as the recording tells.
fn sentence(step: &Step) -> String {
    let (length, what) = (duration(step.local.len()), doing(step));
    // What was found by what waited for it alone may have no usual length.
    let usual = match step.reference_ns {
        0 => "other steps do no such thing".to_owned(),
        reference => format!("usually {}", duration(reference)),
    };
    if step.noise == Some(Noise::Tracer) {
        return format!(
            "{what} took {length} ({usual}): the tracer wrote out its buffer meanwhile, which the program did not ask for"
        );
    }
    match (step.kind, step.noise) {
        (EventKind::Gap, Some(Noise::Interrupted)) => {
            format!("{length} between calls, {what} ({usual}): noise of the system, interrupted or preempted there")
        }
        (EventKind::Gap, _) => format!("{length} between calls, {what} ({usual})"),
        (EventKind::Operation, Some(Noise::Interrupted)) => {
            format!("{length} inside {what} ({usual}): noise of the system, interrupted or preempted there")
        }
        (EventKind::Operation, _) => format!("{what} took {length} ({usual})"),
        (_, Some(Noise::Delivery)) => format!(
            "{what} took {length} ({usual}) for what had been sent in time: noise of the system, slow to arrive or to run again"
        ),
        (EventKind::Receive | EventKind::Collective | EventKind::Send, _) => {
            format!("{what} took {length} ({usual}), for nothing that was recorded as late")
        }
    }
}

fn name(found: &Anomalies, step: &Step) -> String {
    let stream = found.streams.get(step.stream as usize);
    match stream {
        Some(stream) if !stream.label.is_empty() => cleaned(&stream.label),
        Some(Stream { rank: Some(rank), .. }) => format!("rank {rank}"),
        _ => cleaned(stream.map_or("", |s| &s.name)),
    }
}

fn place(found: &Anomalies, step: &Step) -> String {
    format!("{} at {}", name(found, step), duration(step.span.start - found.origin))
}

pub(super) fn duration(ns: i64) -> String {
    let size = ns.unsigned_abs();
    let value = ns as f64;
    match size {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", value / 1e6),
        _ => format!("{:.3} s", value / 1e9),
    }
}
