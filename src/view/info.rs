//! `info`: what the traces are (`whyslow.info/1`), from metadata, index and packet headers; with a survey also how
//! often and how long each task ran.

use super::anomalies::duration;
use super::clean;
use crate::analysis::clocks::HostClock;
use crate::analysis::survey::{Survey, Unknown};
use crate::base::notice::Notices;
use crate::base::statistics::nearest_rank;
use crate::base::time::Shift;
use crate::event::task::TaskDefinition;
use crate::input::Source;
use crate::input::count::lost;
use serde::Serialize;
use std::fmt::Write;

/// The document.
#[derive(Clone, Debug, Serialize)]
pub struct Facts {
    schema: &'static str,
    traces: Vec<TraceFacts>,
    lost: Lost,
    tasks: Vec<TaskFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clocks: Option<Vec<ClockFacts>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown_waits: Option<UnknownWaits>,
    warnings: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct TraceFacts {
    path: String,
    format: String,
    begin_ns: Option<i64>,
    end_ns: Option<i64>,
    streams: usize,
    packets: usize,
    host: Option<String>,
    clock: Option<String>,
    event_types: usize,
}

/// Common time = own time + `offset_ns`, at the start of its recording; it grows by `drift_ppb`.
#[derive(Clone, Debug, Serialize)]
struct ClockFacts {
    host: Option<String>,
    traces: Vec<String>,
    offset_ns: i64,
    drift_ppb: f64,
    error_ns: Option<i64>,
    packets: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
struct Lost {
    events: u64,
    packets: u64,
    streams: u64,
}

/// A task, and where it was measured its figures.
#[derive(Clone, Debug, Serialize)]
pub(super) struct TaskFacts {
    pub name: String,
    #[serde(flatten)]
    pub measured: Option<Measured>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_waits: Option<UnknownWaits>,
}

/// How many executions, and how long they took.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Measured {
    executions: usize,
    p50_ns: Option<i64>,
    p95_ns: Option<i64>,
    p99_ns: Option<i64>,
    max_ns: Option<i64>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct UnknownWaits {
    off_cpu_ns: i64,
    reasons: Vec<Reason>,
}

#[derive(Clone, Debug, Serialize)]
struct Reason {
    reason: String,
    waits: u64,
    ns: i64,
}

impl Facts {
    /// The facts of some traces and, where a survey was made, its figures and the hosts' clocks.
    pub fn new(
        sources: &[Source],
        tasks: &[TaskDefinition],
        full: Option<(&Survey, &[HostClock])>,
        notices: &Notices,
    ) -> Facts {
        let survey = full.map(|(survey, _)| survey);
        let mut all_lost = Lost::default();
        for source in sources {
            let (events, packets) = lost(&source.trace);
            all_lost.events += events;
            all_lost.packets += packets;
            all_lost.streams += source.trace.streams().iter().filter(|s| !s.losses.is_empty()).count() as u64;
        }
        let mut tasks: Vec<TaskFacts> = tasks
            .iter()
            .map(|t| TaskFacts {
                name: clean::text(&t.name).into_owned(),
                measured: survey.map(|s| Measured::new(s.tasks.get(&t.name).map_or(&[], |t| &t.durations))),
                unknown_waits: survey.and_then(|s| s.tasks.get(&t.name)).map(|t| UnknownWaits::new(&t.unknown)),
            })
            .collect();
        // With figures, what never ran is of no interest: a kernel declares hundreds of system calls.
        tasks.retain(|t| t.measured.as_ref().is_none_or(|m| m.executions > 0));
        Facts {
            schema: "whyslow.info/1",
            traces: sources.iter().map(TraceFacts::new).collect(),
            lost: all_lost,
            tasks,
            clocks: full.map(|(_, clocks)| clocks.iter().map(|clock| ClockFacts::new(clock, sources)).collect()),
            unknown_waits: survey.map(|s| UnknownWaits::new(&s.unknown)),
            warnings: notices.sentences().iter().map(|s| clean::line(s)).collect(),
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        for t in &self.traces {
            let seconds = t.begin_ns.zip(t.end_ns).map(|(b, e)| e.saturating_sub(b) as f64 / 1e9);
            writeln!(out, "{}  {}", t.path, t.format)?;
            let host = t.host.as_deref().unwrap_or("unknown host");
            let clock = t.clock.as_deref().unwrap_or("no clock");
            let length = seconds.map_or_else(|| "no time stamps".to_owned(), |s| format!("{s:.3} s"));
            writeln!(
                out,
                "    {host}, {clock}, {length}, {} streams, {} packets, {} event types",
                t.streams, t.packets, t.event_types
            )?;
        }
        let lost = &self.lost;
        if lost.events + lost.packets > 0 {
            writeln!(out, "lost: {} events and {} packets in {} streams", lost.events, lost.packets, lost.streams)?;
        } else {
            writeln!(out, "lost: nothing")?;
        }
        for clock in self.clocks.iter().flatten() {
            writeln!(out, "{clock}")?;
        }
        write_tasks(&self.tasks, out)?;
        if let Some(unknown) = &self.unknown_waits {
            writeln!(out, "\nwaits on critical paths without a cause: {unknown} off the CPU")?;
            for r in &unknown.reasons {
                writeln!(out, "{:>10} {:>11.3} ms  {}", r.waits, r.ns as f64 / 1e6, r.reason)?;
            }
            for t in &self.tasks {
                if let Some(own) = t.unknown_waits.as_ref().filter(|own| !own.reasons.is_empty()) {
                    writeln!(out, "           {own} in {}", t.name)?;
                }
            }
        }
        self.warnings.iter().try_for_each(|w| writeln!(out, "note: {w}"))
    }
}

/// A table of tasks: with figures where they were measured.
pub(super) fn write_tasks(tasks: &[TaskFacts], out: &mut String) -> std::fmt::Result {
    if tasks.iter().any(|t| t.measured.is_some()) {
        writeln!(
            out,
            "\n{:>10} {:>11} {:>11} {:>11} {:>11}  task",
            "executions", "p50 ms", "p95 ms", "p99 ms", "max ms"
        )?;
    } else {
        writeln!(out, "\ntasks")?;
    }
    for t in tasks {
        match &t.measured {
            None => writeln!(out, "    {}", t.name)?,
            Some(m) => {
                write!(out, "{:>10}", m.executions)?;
                for ns in [m.p50_ns, m.p95_ns, m.p99_ns, m.max_ns] {
                    write!(out, " {:>11.3}", ns.unwrap_or(0) as f64 / 1e6)?;
                }
                writeln!(out, "  {}", t.name)?;
            }
        }
    }
    Ok(())
}

/// Label and path of a trace.
fn name(source: &Source) -> String {
    let name = if source.name.is_empty() { source.label.clone() } else { format!("{}/{}", source.label, source.name) };
    clean::text(&name).into_owned()
}

impl std::fmt::Display for ClockFacts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let host = self.host.as_deref().unwrap_or("unknown host");
        let error = self.error_ns.map_or_else(|| "unknown".to_owned(), duration);
        let offset = duration(self.offset_ns);
        write!(f, "clock of {host}: {offset} to add, error up to {error}, by {} packets", self.packets)?;
        if self.drift_ppb == 0.0 { Ok(()) } else { write!(f, ", drift {:.1} ppm", self.drift_ppb / 1e3) }
    }
}

impl ClockFacts {
    fn new(clock: &HostClock, sources: &[Source]) -> ClockFacts {
        let ppb = clock.shift.drift as f64 * 1e9 / (1u64 << Shift::SCALE) as f64;
        ClockFacts {
            host: Some(clean::text(&clock.host).into_owned()).filter(|host| !host.is_empty()),
            traces: clock.traces.iter().filter_map(|at| sources.get(*at)).map(name).collect(),
            offset_ns: clock.shift.offset,
            drift_ppb: (ppb * 1e3).round() / 1e3,
            error_ns: clock.error,
            packets: clock.packets,
        }
    }
}

impl TraceFacts {
    fn new(source: &Source) -> TraceFacts {
        let trace = &source.trace;
        let packets = || trace.streams().iter().flat_map(|s| &s.packets);
        let clean = |text: &str| clean::text(text).into_owned();
        let clock = trace.clock_uuid().map(|uuid| format!("{} {uuid}", trace.clock_name().unwrap_or("clock")));
        TraceFacts {
            path: name(source),
            format: format!("CTF {}", if trace.version() == 2 { "2" } else { "1.8" }),
            begin_ns: packets().filter_map(|p| p.begin).min(),
            end_ns: packets().filter_map(|p| p.end).max(),
            streams: trace.streams().len(),
            packets: packets().count(),
            host: trace.environment("hostname").map(clean),
            clock: clock.or_else(|| trace.clock_name().map(str::to_owned)).map(|c| clean(&c)),
            event_types: trace.classes().len(),
        }
    }
}

impl Measured {
    /// Of durations, ascending.
    pub fn new(sorted: &[i64]) -> Measured {
        let at = |p: f64| nearest_rank(sorted, p);
        Measured {
            executions: sorted.len(),
            p50_ns: at(50.0),
            p95_ns: at(95.0),
            p99_ns: at(99.0),
            max_ns: sorted.last().copied(),
        }
    }
}

impl UnknownWaits {
    fn new(unknown: &Unknown) -> UnknownWaits {
        let reason = |(reason, (waits, ns)): (&String, &(u64, i64))| Reason {
            reason: clean::text(reason).into_owned(),
            waits: *waits,
            ns: *ns,
        };
        let mut reasons: Vec<Reason> = unknown.reasons.iter().map(reason).collect();
        reasons.sort_by_key(|r| std::cmp::Reverse(r.ns));
        UnknownWaits { off_cpu_ns: unknown.off_cpu_ns, reasons }
    }
}

impl std::fmt::Display for UnknownWaits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let total: i64 = self.reasons.iter().map(|r| r.ns).sum();
        let percent = total as f64 * 100.0 / self.off_cpu_ns.max(1) as f64;
        write!(f, "{percent:.2} % of {:.1} ms", self.off_cpu_ns as f64 / 1e6)
    }
}
