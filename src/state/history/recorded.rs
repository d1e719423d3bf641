//! The history of a kernel recording: every thread and CPU as lines that can be asked for.
//!
//! In: a sealed [`Timeline`]. Out: a [`History`] with these attributes (below `hosts/NAME/` where there are several
//! hosts):
//!
//! | path | value |
//! |---|---|
//! | `threads/TID/state` | one of [`STATES`] |
//! | `threads/TID/cpu` | the CPU it ran on, or whose queue it stood in |
//! | `threads/TID/syscall` | the system call it was in |
//! | `threads/TID/name`, `/pid`, `/ppid` | as the kernel named them |
//! | `cpus/N/thread` | the tid that ran on it, 0 when idle |
//!
//! Threads that had the same tid one after the other share their lines. Traces contradict themselves: where two things
//! are said of one instant, what began later holds, so lines never overlap. Neighbours of equal value become one
//! interval. Cost: linear in segments, calls and switches, in parallel by stretches of lines of about equal weight.
//! Attributes and texts are numbered at once in the order in which the sealed history has them, so that nothing is
//! numbered anew.

use super::History;
use super::builder::{HistoryBuilder, canonical};
use super::bulk::BuildError;
use super::interval::{Run, StateValue};
use super::tree::Shape;
use crate::base::ctx::Ctx;
use crate::base::names::NameId;
use crate::base::parallel::in_order;
use crate::base::time::{Span, Timestamp};
use crate::state::attributes::{AttributeId, Attributes};
use crate::state::timeline::{CpuRun, CpuTimeline, HostId, SegmentKind, Thread, Timeline};
use std::fmt::Write;
use std::ops::Range;

/// Names of the states of a thread.
pub const STATES: &[&str] =
    &["running", "interrupted", "preempted", "blocked", "timer", "disk", "network", "user input", "ipi", "device"];

/// The state of a segment; `None` where it is unknown.
fn state(kind: SegmentKind) -> Option<StateValue> {
    let code = match kind {
        SegmentKind::Running => 0,
        SegmentKind::Interrupted => 1,
        SegmentKind::Preempted => 2,
        SegmentKind::Blocked => 3,
        SegmentKind::Timer => 4,
        SegmentKind::Disk => 5,
        SegmentKind::Network => 6,
        SegmentKind::UserInput => 7,
        SegmentKind::Ipi => 8,
        SegmentKind::Device => 9,
        SegmentKind::Unknown => return None,
    };
    Some(StateValue::Code(code))
}

/// The attributes of the threads of one tid, and those threads.
struct Lines<'a> {
    threads: &'a [&'a Thread],
    state: AttributeId,
    cpu: AttributeId,
    syscall: AttributeId,
    name: AttributeId,
    pid: AttributeId,
    ppid: AttributeId,
}

/// What is written in one go.
enum Source<'a> {
    Tid(Lines<'a>),
    Cpu(AttributeId, &'a [CpuRun]),
}

/// Intervals, at most, that a worker writes at a time; one source may have more.
const STRETCH: usize = 1 << 15;

impl History {
    /// The history of `recording`.
    pub fn of_recording(recording: &Timeline, ctx: &Ctx) -> Result<History, BuildError> {
        let mut builder = HistoryBuilder::new(STATES);
        let (texts, new_texts) = canonical(recording.names.clone());
        builder.texts = texts;
        let mut threads: Vec<&Thread> = recording.threads.iter().filter(|thread| !thread.idle).collect();
        threads.sort_by_key(|thread| (thread.host, thread.tid));
        let sources = sources(recording, &threads, &mut builder.attributes);
        let stretches = stretches(&sources);
        let make = |i: usize| {
            let sources = &sources[stretches[i].clone()];
            let mut run = Run::with_capacity(sources.iter().map(Source::weight).sum());
            sources.iter().for_each(|source| source.write(recording, &new_texts, &mut run));
            run
        };
        in_order(ctx, stretches.len(), make, |_, run| builder.push(run))?;
        builder.seal(recording.span, Shape::default(), ctx)
    }
}

/// All sources with their attributes, made in the order in which a sealed history has them.
fn sources<'a>(recording: &'a Timeline, threads: &'a [&'a Thread], attributes: &mut Attributes) -> Vec<Source<'a>> {
    let prefixes = prefixes(recording);
    let prefix = |host: HostId| prefixes.get(host.index()).map_or("", |prefix| prefix);
    let tids = || threads.chunk_by(|a, b| (a.host, a.tid) == (b.host, b.tid));
    let mut hosts: Vec<HostId> = recording.cpus.iter().map(|cpu| cpu.host).collect();
    hosts.extend(tids().filter_map(|same| same.first()).map(|thread| thread.host));
    hosts.sort_unstable();
    hosts.dedup();
    hosts.sort_by_key(|host| prefix(*host));
    attributes.reserve(7 * tids().count() + 2 * recording.cpus.len());
    let mut sources = Vec::with_capacity(tids().count() + recording.cpus.len());
    let mut number = String::new();
    let mut below = |attributes: &mut Attributes, above: AttributeId, id: i64| {
        number.clear();
        // Writing to a string does not fail.
        let _ = write!(number, "{id}");
        attributes.child(above, &number)
    };
    for host in hosts {
        let own = recording.cpus.iter().filter(|cpu| cpu.host == host);
        for CpuTimeline { cpu, runs, .. } in own {
            let above = attributes.path(&format!("{}cpus", prefix(host)));
            let cpu = below(attributes, above, (*cpu).into());
            sources.push(Source::Cpu(attributes.child(cpu, "thread"), runs));
        }
        let (from, past) = (threads.partition_point(|t| t.host < host), threads.partition_point(|t| t.host <= host));
        let Some(own) = threads.get(from..past).filter(|own| !own.is_empty()) else { continue };
        let above = attributes.path(&format!("{}threads", prefix(host)));
        let names = ["cpu", "name", "pid", "ppid", "state", "syscall"].map(|name| attributes.name(name));
        for same in own.chunk_by(|a, b| a.tid == b.tid) {
            let at = below(attributes, above, same.first().map_or(0, |thread| thread.tid.into()));
            let [cpu, name, pid, ppid, state, syscall] = names.map(|name| attributes.named(at, name));
            sources.push(Source::Tid(Lines { threads: same, state, cpu, syscall, name, pid, ppid }));
        }
    }
    sources
}

/// The sources in stretches of about equal weight.
fn stretches(sources: &[Source<'_>]) -> Vec<Range<usize>> {
    let mut stretches: Vec<Range<usize>> = Vec::new();
    let mut weight = usize::MAX;
    for (at, source) in sources.iter().enumerate() {
        weight = weight.saturating_add(source.weight());
        match stretches.last_mut() {
            Some(last) if weight <= STRETCH => last.end = at + 1,
            _ => {
                stretches.push(at..at + 1);
                weight = source.weight();
            }
        }
    }
    stretches
}

/// What paths of each host begin with: nothing where there is one, else its name, made different where it is not.
fn prefixes(recording: &Timeline) -> Vec<String> {
    if recording.hosts.len() < 2 {
        return vec![String::new(); recording.hosts.len()];
    }
    let mut prefixes: Vec<String> = Vec::with_capacity(recording.hosts.len());
    for host in &recording.hosts {
        let name = format!("hosts/{}", recording.names.get(host.name));
        let taken = |prefix: &String| prefixes.contains(prefix);
        let first = format!("{name}/");
        let others = (2..).map(|n| format!("{name}~{n}/"));
        prefixes.extend(std::iter::once(first).chain(others).find(|prefix| !taken(prefix)));
    }
    prefixes
}

impl Source<'_> {
    /// Intervals, at most.
    fn weight(&self) -> usize {
        match self {
            Source::Cpu(_, runs) => runs.len(),
            Source::Tid(lines) => {
                let of = |thread: &&Thread| 2 * thread.segments.len() + thread.calls.len() + thread.names.len() + 2;
                lines.threads.iter().map(of).sum()
            }
        }
    }

    /// Write it; `texts` are the new ids of the recording's names.
    fn write(&self, recording: &Timeline, texts: &[NameId], run: &mut Run) {
        match self {
            Source::Tid(lines) => lines.write(texts, run),
            Source::Cpu(attribute, runs) => {
                let tid = |id| recording.thread(id).map_or(0, |thread| i64::from(thread.tid));
                hold(run, *attribute, runs.iter().map(|run| (run.span, Some(StateValue::Int(tid(run.thread))))));
            }
        }
    }
}

impl Lines<'_> {
    fn write(&self, texts: &[NameId], run: &mut Run) {
        let text = |name: NameId| Some(StateValue::Text(texts.get(name.index()).copied().unwrap_or(name)));
        let segments = || self.threads.iter().flat_map(|thread| &thread.segments);
        let calls = self.threads.iter().flat_map(|thread| &thread.calls);
        let lives = || self.threads.iter().map(|thread| (thread, thread.life));
        let names = self.threads.iter().flat_map(|thread| {
            let ends = thread.names.iter().skip(1).map(|name| name.from).chain([thread.life.end]);
            thread.names.iter().zip(ends).map(|(name, end)| (Span::new(name.from, end), text(name.name)))
        });
        let known = |id: i32| (id != 0).then_some(StateValue::Int(id.into()));
        hold(run, self.state, segments().map(|segment| (segment.span, state(segment.kind))));
        hold(run, self.cpu, segments().map(|segment| (segment.span, Some(StateValue::Int(segment.cpu.into())))));
        hold(run, self.syscall, calls.map(|call| (call.span, text(call.name))));
        hold(run, self.name, names);
        hold(run, self.pid, lives().map(|(thread, life)| (life, known(thread.pid))));
        hold(run, self.ppid, lives().map(|(thread, life)| (life, known(thread.ppid))));
    }
}

/// Write one line. Of two that overlap the later cuts the earlier off; neighbours of equal value become one.
fn hold(run: &mut Run, attribute: AttributeId, said: impl Iterator<Item = (Span, Option<StateValue>)> + Clone) {
    let said = said.filter(|(span, _)| !span.is_empty());
    // One thread tells its story in order. Only several of one tid, or a recording that contradicts itself, need
    // sorting.
    if said.clone().is_sorted_by_key(|(span, _)| span.start) {
        join(run, attribute, said);
    } else {
        let mut said: Vec<(Span, Option<StateValue>)> = said.collect();
        said.sort_by_key(|(span, _)| span.start);
        join(run, attribute, said.into_iter());
    }
}

/// Write what is said in order of start.
fn join(run: &mut Run, attribute: AttributeId, said: impl Iterator<Item = (Span, Option<StateValue>)>) {
    let mut open: Option<(Span, Option<StateValue>)> = None;
    let mut write = |(span, value): (Span, Option<StateValue>), until: Timestamp| {
        if let Some(value) = value {
            run.push(attribute, Span::new(span.start, span.end.min(until)), value);
        }
    };
    for (span, value) in said {
        match &mut open {
            Some((before, same)) if *same == value && before.end >= span.start => before.end = before.end.max(span.end),
            _ => {
                if let Some(before) = open.replace((span, value)) {
                    write(before, span.start);
                }
            }
        }
    }
    if let Some(last) = open {
        write(last, Timestamp::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_no_overlap_and_no_two_neighbours_alike() {
        let said = [
            (Span::of_ns(0, 10), Some(StateValue::Int(1))),
            (Span::of_ns(10, 20), Some(StateValue::Int(1))),
            (Span::of_ns(15, 30), Some(StateValue::Int(2))),
            (Span::of_ns(30, 30), Some(StateValue::Int(9))),
            (Span::of_ns(30, 40), None),
            (Span::of_ns(35, 50), Some(StateValue::Int(2))),
            (Span::of_ns(60, 70), Some(StateValue::Int(2))),
        ];
        let mut run = Run::default();
        hold(&mut run, AttributeId::at(0), said.into_iter());
        let written: Vec<_> = run.iter().map(|i| (i.span.start.ns(), i.span.end.ns(), i.value)).collect();
        let two = StateValue::Int(2);
        assert_eq!(written, [(0, 15, StateValue::Int(1)), (15, 30, two), (35, 50, two), (60, 70, two)]);
    }
}
