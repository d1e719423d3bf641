//! A list of executions: when each began, how long it took, who ran it, and what it waited for most.
//!
//! In: a model and the numbers of some executions, in the order in which they are listed. Out: a table for people, or
//! one JSON object a line. Cost: linear in the executions' sparse lists.

use super::page::Page;
use super::words;
use crate::base::names::NameId;
use crate::base::time::{Ns, Timestamp};
use crate::base::{clean, figure};
use crate::model::Model;
use crate::model::context::{ContextId, FrameKind};
use crate::model::execution::{ContextTime, ExecutionId};
use crate::model::metric::{ABSENT, Metric};
use crate::model::wait_kind::WaitKind;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// One execution of a list.
#[derive(Serialize)]
struct ListedExecution {
    schema: &'static str,
    execution: u32,
    /// On the common time line.
    start_ns: Timestamp,
    /// Since the first event of the recording.
    since_ns: Ns,
    /// In UTC; null for clocks that count from the start of a machine.
    time_of_day: Option<String>,
    duration_ns: Ns,
    #[serde(rename = "type")]
    kind: Option<String>,
    /// The error for which the system call failed that ended it.
    errno: Option<String>,
    trace: String,
    host: String,
    rank: Option<String>,
    process: String,
    thread: String,
    pid: Option<i32>,
    tid: Option<i32>,
    cpu: Option<u16>,
    most: Option<LongestKind>,
}

/// The kind of time of which an execution had most.
#[derive(Serialize)]
struct LongestKind {
    kind: &'static str,
    ns: u64,
    /// The thread waited for, or that ran.
    thread: Option<String>,
}

fn listed(model: &Model, execution: ExecutionId) -> ListedExecution {
    let (i, all) = (execution.index(), &model.executions);
    let who = all.who.get(i).and_then(|who| model.who.get(who.index()));
    let text = |name: NameId| clean::owned(model.names.get(name));
    let start = all.start.get(i).unwrap_or_default();
    let named = |metric: Metric| {
        let value = all.column(&metric).and_then(|column| column.values.get(i)).filter(|value| *value != ABSENT);
        value.map(|value| clean::owned(model.name_of(value)))
    };
    let trace = all.trace.get(i).and_then(|trace| model.traces.get(trace.index()));
    ListedExecution {
        schema: "whyslow.executions/1",
        execution: execution.raw(),
        start_ns: start,
        since_ns: start.since(model.origin),
        time_of_day: figure::time_of_day(start.since(Timestamp::ZERO)),
        duration_ns: all.duration(i),
        kind: named(Metric::Type),
        errno: named(Metric::Errno),
        trace: trace.map_or_else(String::new, |trace| clean::owned(&trace.label)),
        host: who.map_or_else(String::new, |who| text(who.host)),
        rank: named(Metric::Rank),
        process: who.map_or_else(String::new, |who| text(who.process)),
        thread: who.map_or_else(String::new, |who| text(who.thread)),
        pid: who.map(|who| who.pid),
        tid: who.map(|who| who.tid),
        cpu: all.cpu.get(i).filter(|cpu| *cpu != u16::MAX),
        most: longest_kind(model, i),
    }
}

/// What an execution waited for most; what else it did where it never waited.
fn longest_kind(model: &Model, execution: usize) -> Option<LongestKind> {
    let mut kinds: BTreeMap<WaitKind, (u64, BTreeMap<NameId, u64>)> = BTreeMap::new();
    for ContextTime { context, ns } in model.executions.own.row(execution) {
        let (sum, threads) = kinds.entry(model.contexts.spent(context)).or_default();
        *sum += ns;
        if let Some(thread) = first_thread(model, context) {
            *threads.entry(thread).or_insert(0) += ns;
        }
    }
    let waits = |kind: &WaitKind| *kind != WaitKind::Cpu;
    let (kind, (ns, threads)) = kinds.into_iter().max_by_key(|(kind, (ns, _))| (*ns > 0, waits(kind), *ns))?;
    let thread = threads.into_iter().max_by_key(|(name, ns)| (*ns, std::cmp::Reverse(*name)));
    let thread = thread.map(|(name, _)| clean::owned(model.names.get(name)));
    Some(LongestKind { kind: words::kind(kind), ns, thread })
}

/// The first other thread on the path of a context.
fn first_thread(model: &Model, context: ContextId) -> Option<NameId> {
    let frames = model.contexts.path(context).into_iter().map(|context| model.contexts.frame(context));
    frames.filter(|frame| matches!(frame.kind, FrameKind::Thread(_))).map(|frame| frame.name).next()
}

impl LongestKind {
    fn in_words(&self) -> String {
        let thread = self.thread.as_ref().map_or_else(String::new, |thread| format!(" ({thread})"));
        format!("{} {}{thread}", figure::time(self.ns as f64), self.kind)
    }
}

/// The type of an execution, and what it waited for most; empty where they are not known.
pub fn type_and_longest_wait(model: &Model, execution: ExecutionId) -> (String, String) {
    let ListedExecution { kind, most, .. } = listed(model, execution);
    (kind.unwrap_or_default(), most.map_or_else(String::new, |most| most.in_words()))
}

/// One JSON object a line.
pub fn json_lines(model: &Model, executions: &[ExecutionId]) -> serde_json::Result<String> {
    let mut out = String::new();
    for execution in executions {
        out.push_str(&serde_json::to_string(&listed(model, *execution))?);
        out.push('\n');
    }
    Ok(out)
}

/// A table.
pub fn text(model: &Model, executions: &[ExecutionId], page: Page) -> String {
    let mut out = String::new();
    let (n, of) = (executions.len() as u64, figure::count(model.executions.len() as u64));
    let task = model.tasks.get(model.task).map_or("", |task| task);
    page.wrap(&mut out, 0, &format!("{task}: {} of {of}", figure::counted(n, "execution")));
    for execution in executions {
        let ExecutionLine { number, start, duration, what } = line(model, *execution);
        let _ = writeln!(out, "{number:>8}  {start}  {duration:>8}  {what}");
    }
    out
}

/// An execution in one line.
pub struct ExecutionLine {
    pub number: u32,
    /// When it began: with the time of day where that is known, else since the first event.
    pub start: String,
    /// How long it took.
    pub duration: String,
    /// Its type, thread, and what it waited for most.
    pub what: String,
}

/// An execution in one line.
pub fn line(model: &Model, execution: ExecutionId) -> ExecutionLine {
    let ListedExecution { execution, start_ns, time_of_day, duration_ns, kind, process, thread, tid, most, .. } =
        listed(model, execution);
    let kind = kind.map_or_else(String::new, |kind| format!("{kind}  "));
    let who = if process == thread { process } else { format!("{thread} of {process}") };
    // The name of a rank has its number.
    let is_named = |tid: &i32| who.split(' ').any(|word| word.parse() == Ok(*tid));
    let tid = tid.filter(|tid| !is_named(tid)).map_or_else(String::new, |tid| format!(" {tid}"));
    let most = most.map_or_else(String::new, |most| format!("  {}", most.in_words()));
    ExecutionLine {
        number: execution,
        start: time_of_day.unwrap_or_else(|| figure::stamp(start_ns.since(model.origin))),
        duration: figure::time(duration_ns as f64),
        what: format!("{kind}{who}{tid}{most}"),
    }
}
