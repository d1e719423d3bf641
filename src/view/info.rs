//! `info`: facts about the traces (`whyslow.info/1`), from metadata, index and packet headers; with a survey also how
//! often and how long each task ran.

use crate::advice::questions::Answered;
use crate::base::heap::PartSizes;
use crate::base::notice::Notices;
use crate::base::time::{ClockCorrection, Ns, Timestamp};
use crate::base::{clean, figure};
use crate::model::clock::HostClock;
use crate::model::facts::{self, TraceFacts};
use crate::model::stored::StoredRows;
use crate::model::survey::{Survey, UnknownTime};
use crate::model::weights::RankedValues;
use crate::view::missing::{self, MissingJson};
use crate::view::stored::{MemoryJson, StoreJson};
use serde::Serialize;
use std::fmt::Write;

#[derive(Clone, Debug, Serialize)]
pub struct InfoDocument {
    schema: &'static str,
    traces: Vec<TraceJson>,
    /// First and last event, where these were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<Events>,
    lost: Lost,
    tasks: Vec<TaskFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clocks: Option<Vec<ClockFacts>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown_waits: Option<UnknownWaits>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    questions: Vec<QuestionJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<StoreJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    memory: Vec<MemoryJson>,
    missing: Vec<MissingJson>,
    warnings: Vec<String>,
}

/// Share of the time for which a question is answered, over the executions of the task that `explain` chooses.
#[derive(Clone, Debug, Serialize)]
pub struct QuestionJson {
    question: &'static str,
    known_ns: u64,
    of_ns: u64,
    share: f64,
    remedy: String,
}

#[derive(Clone, Debug, Serialize)]
struct TraceJson {
    path: String,
    format: String,
    begin_ns: Option<Timestamp>,
    end_ns: Option<Timestamp>,
    streams: u64,
    packets: u64,
    host: Option<String>,
    clock: Option<String>,
    event_types: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    recording_cost: Option<String>,
}

/// Common time = own time + `offset_ns`, at the start of its recording; it grows by `drift_ppb`.
#[derive(Clone, Debug, Serialize)]
struct ClockFacts {
    host: Option<String>,
    traces: Vec<String>,
    offset_ns: Ns,
    drift_ppb: f64,
    error_ns: Option<Ns>,
    packets: u64,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Events {
    begin_ns: Timestamp,
    end_ns: Timestamp,
}

#[derive(Clone, Debug, Default, Serialize)]
struct Lost {
    events: u64,
    packets: u64,
    streams: u64,
}

/// A task, and where it was measured its figures.
#[derive(Clone, Debug, Serialize)]
pub struct TaskFacts {
    pub name: String,
    #[serde(flatten)]
    pub measured: Option<Measured>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_waits: Option<UnknownWaits>,
}

/// How many executions, and how long they took.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    executions: u64,
    p50_ns: Option<i64>,
    p95_ns: Option<i64>,
    p99_ns: Option<i64>,
    max_ns: Option<i64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct UnknownWaits {
    /// Absent where no scheduler was recorded.
    off_cpu_ns: Option<i64>,
    unscheduled_ns: i64,
    reasons: Vec<Reason>,
}

#[derive(Clone, Debug, Serialize)]
struct Reason {
    reason: String,
    waits: u64,
    ns: i64,
}

impl InfoDocument {
    /// The facts of some traces and, for each task that was measured, its durations, ascending; with a survey also its
    /// findings and the hosts' clocks.
    pub fn new<'a>(
        recorded: &facts::Facts,
        tasks: impl Iterator<Item = (&'a str, Option<Measured>)>,
        full: Option<(&Survey, &[HostClock])>,
        notices: &Notices,
    ) -> InfoDocument {
        let facts::Lost { events, packets, streams } = recorded.lost;
        let mut tasks: Vec<TaskFacts> = tasks
            .map(|(name, measured)| TaskFacts {
                name: clean::owned(name),
                measured,
                unknown_waits: full.and_then(|(s, _)| s.tasks.get(name)).map(|t| UnknownWaits::new(&t.unknown)),
            })
            .collect();
        // Tables with figures leave out tasks that never ran: a kernel declares hundreds of system calls.
        tasks.retain(|t| t.measured.as_ref().is_none_or(|m| m.executions > 0));
        InfoDocument {
            schema: "whyslow.info/1",
            traces: recorded.traces.iter().map(TraceJson::new).collect(),
            events: full.map(|(survey, _)| Events { begin_ns: survey.span.start, end_ns: survey.span.end }),
            lost: Lost { events, packets, streams },
            tasks,
            clocks: full.map(|(_, clocks)| clocks.iter().map(|clock| ClockFacts::new(clock, recorded)).collect()),
            unknown_waits: full.map(|(survey, _)| UnknownWaits::new(&survey.unknown)),
            questions: Vec::new(),
            store: None,
            memory: Vec::new(),
            missing: missing::of(recorded),
            warnings: notices.sentences().iter().map(|s| clean::line(s)).collect(),
        }
    }

    /// Add the answers to the questions of data quality.
    pub fn with_questions(mut self, answered: &[Answered]) -> InfoDocument {
        self.questions = questions(answered);
        self
    }

    /// Add the size of the store of states, and the memory that was held to make it.
    pub fn with_stored(self, stored: &StoredRows, parts: &PartSizes) -> InfoDocument {
        InfoDocument { store: Some(StoreJson::new(stored)), memory: MemoryJson::of(parts), ..self }
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let mut said = None;
        for t in &self.traces {
            let length = t.begin_ns.zip(t.end_ns).map(|(begin, end)| end.since(begin));
            writeln!(out, "{}  {}", t.path, t.format)?;
            let host = t.host.as_deref().unwrap_or("unknown host");
            let clock = t.clock.as_deref().unwrap_or("no clock");
            let length = length
                .map_or_else(|| "no time stamps".to_owned(), |length| format!("{} s", figure::seconds(length, 3)));
            writeln!(
                out,
                "    {host}, {clock}, {length}, {} streams, {} packets, {} event types",
                t.streams, t.packets, t.event_types
            )?;
            // A recording in two files says it once.
            if let Some(cost) = t.recording_cost.as_ref().filter(|cost| said.replace(*cost) != Some(*cost)) {
                writeln!(out, "    its recording cost {cost}")?;
            }
        }
        if let Some(Events { begin_ns, end_ns }) = self.events
            && !self.traces.iter().any(|t| t.begin_ns == Some(begin_ns) && t.end_ns == Some(end_ns))
        {
            let began = self.traces.iter().filter_map(|t| t.begin_ns).min().unwrap_or(begin_ns);
            let (length, after) = (end_ns.since(begin_ns), begin_ns.since(began));
            writeln!(
                out,
                "events: spanning {} s, the first {} s after the recording began",
                figure::seconds(length, 3),
                figure::seconds(after, 3)
            )?;
        }
        let lost = &self.lost;
        if lost.events > 0 || lost.packets > 0 {
            writeln!(out, "lost: {} events and {} packets in {} streams", lost.events, lost.packets, lost.streams)?;
        } else {
            writeln!(out, "lost: nothing")?;
        }
        for clock in self.clocks.iter().filter(|clocks| clocks.len() > 1).flatten() {
            writeln!(out, "{clock}")?;
        }
        write_tasks(&self.tasks, out)?;
        if let Some(unknown) = &self.unknown_waits {
            unknown.write(&self.tasks, out)?;
        }
        write_questions(&self.questions, out)?;
        self.store.iter().try_for_each(|store| store.write(out))?;
        missing::write(&self.missing, out)?;
        self.warnings.iter().try_for_each(|w| writeln!(out, "note: {w}"))
    }
}

/// The questions that were asked of any time.
pub fn questions(answered: &[Answered]) -> Vec<QuestionJson> {
    let json = |a: &Answered| {
        let (question, remedy) = (a.question, a.remedy.to_string());
        Some(QuestionJson { question, known_ns: a.known_ns, of_ns: a.of_ns, share: a.share()?, remedy })
    };
    answered.iter().filter_map(json).collect()
}

/// Each question with the share of the time for which it is answered.
pub fn write_questions(questions: &[QuestionJson], out: &mut String) -> std::fmt::Result {
    if !questions.is_empty() {
        writeln!(out, "\nquestions that this recording answers, by share of the analysed executions' time")?;
    }
    for q in questions {
        write!(out, "{:>10}  {}", figure::percent(q.share, 1), q.question)?;
        if q.known_ns < q.of_ns { writeln!(out, " (for the rest: {})", q.remedy)? } else { writeln!(out)? }
    }
    Ok(())
}

/// A table of tasks: with figures where they were measured.
pub fn write_tasks(tasks: &[TaskFacts], out: &mut String) -> std::fmt::Result {
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
                    write!(out, " {:>11}", figure::milliseconds(ns.unwrap_or(0), 3))?;
                }
                writeln!(out, "  {}", t.name)?;
            }
        }
    }
    Ok(())
}

impl std::fmt::Display for ClockFacts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let host = self.host.as_deref().unwrap_or("unknown host");
        let error = self.error_ns.map_or_else(|| "unknown".to_owned(), figure::duration);
        let offset = figure::duration(self.offset_ns);
        write!(f, "clock of {host}: correction {offset}, error at most {error}, from {} packets", self.packets)?;
        if self.drift_ppb == 0.0 { Ok(()) } else { write!(f, ", drift {}", figure::drift(self.drift_ppb)) }
    }
}

impl ClockFacts {
    fn new(clock: &HostClock, recorded: &facts::Facts) -> ClockFacts {
        let ppb = clock.correction.drift as f64 * 1e9 / (1u64 << ClockCorrection::SCALE) as f64;
        ClockFacts {
            host: Some(clean::owned(&clock.host)).filter(|host| !host.is_empty()),
            traces: clock
                .traces
                .iter()
                .filter_map(|at| recorded.traces.get(*at))
                .map(|t| clean::owned(&t.path))
                .collect(),
            offset_ns: clock.correction.offset,
            drift_ppb: (ppb * 1e3).round() / 1e3,
            error_ns: clock.error,
            packets: clock.packets,
        }
    }
}

impl TraceJson {
    fn new(facts: &TraceFacts) -> TraceJson {
        let TraceFacts { path, format, begin, end, streams, packets, host, clock, event_types, cost, .. } = facts;
        let clean = |text: &String| clean::owned(text);
        TraceJson {
            path: clean(path),
            format: clean(format),
            begin_ns: *begin,
            end_ns: *end,
            streams: *streams,
            packets: *packets,
            host: host.as_ref().map(clean),
            clock: clock.as_ref().map(clean),
            event_types: *event_types,
            recording_cost: cost.as_ref().map(clean),
        }
    }
}

impl Measured {
    /// Of durations.
    pub fn new(durations: &RankedValues) -> Measured {
        let at = |p: f64| durations.nearest_rank(p);
        Measured {
            executions: durations.count(),
            p50_ns: at(50.0),
            p95_ns: at(95.0),
            p99_ns: at(99.0),
            max_ns: durations.values().last().copied(),
        }
    }
}

impl UnknownWaits {
    fn new(unknown: &UnknownTime) -> UnknownWaits {
        let reason = |(reason, (waits, ns)): (&String, &(u64, i64))| Reason {
            reason: clean::owned(reason),
            waits: *waits,
            ns: *ns,
        };
        let mut reasons: Vec<Reason> = unknown.reasons.iter().map(reason).collect();
        reasons.sort_by_key(|r| std::cmp::Reverse(r.ns));
        let UnknownTime { off_cpu_ns, unscheduled_ns, .. } = *unknown;
        let known = unscheduled_ns == 0 || off_cpu_ns > 0;
        UnknownWaits { off_cpu_ns: known.then_some(off_cpu_ns), unscheduled_ns, reasons }
    }

    /// Of all tasks, and of each that has any.
    fn write(&self, tasks: &[TaskFacts], out: &mut String) -> std::fmt::Result {
        let own = || tasks.iter().filter_map(|t| Some((t.name.as_str(), t.unknown_waits.as_ref()?)));
        if let Some(share) = self.share() {
            writeln!(out, "\nwaits on critical paths without a known cause: {share} off the CPU")?;
            for r in &self.reasons {
                writeln!(out, "{:>10} {:>11} ms  {}", r.waits, figure::milliseconds(r.ns, 3), r.reason)?;
            }
            for (task, waits) in own().filter(|(_, waits)| !waits.reasons.is_empty()) {
                writeln!(out, "           {} in {task}", waits.share().unwrap_or_default())?;
            }
        }
        if self.unscheduled_ns > 0 {
            let all = figure::duration(self.unscheduled_ns);
            writeln!(
                out,
                "\nno scheduler events for {all} of the executions' time: running and waiting cannot be distinguished"
            )?;
            for (task, waits) in own().filter(|(_, waits)| waits.unscheduled_ns > 0) {
                writeln!(out, "           {} in {task}", figure::duration(waits.unscheduled_ns))?;
            }
        }
        Ok(())
    }

    /// Share of the time off the CPU without a known cause.
    fn share(&self) -> Option<String> {
        let off = self.off_cpu_ns?;
        let total: i64 = self.reasons.iter().map(|r| r.ns).sum();
        let percent = figure::percent(total as f64 / off.max(1) as f64, 2);
        Some(format!("{percent} of {}", figure::duration(off)))
    }
}
