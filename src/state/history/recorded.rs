//! The history of a kernel timeline: attributes of every thread and CPU.
//!
//! In: a sealed [`Timeline`]. Out: a [`History`] with these attributes (below `hosts/NAME/` where there are several
//! hosts):
//!
//! | path | value |
//! |---|---|
//! | `threads/TID/state` | one of [`STATES`] |
//! | `threads/TID/cpu` | the CPU on which it ran, or in whose run queue it was |
//! | `threads/TID/syscall` | its current system call |
//! | `threads/TID/name`, `/pid`, `/ppid` | as the kernel named them |
//! | `cpus/N/thread` | the tid of its running thread, 0 when idle |
//!
//! Instances of one tid share their attributes. Traces contradict themselves: of two intervals that overlap the later
//! one counts, so the intervals of an attribute never overlap. Neighbours of equal value become one interval. Cost:
//! linear in segments, calls and switches, in parallel by groups of attributes of about equal weight. Attributes and
//! texts are numbered at once in the order of the sealed history, so that none is renumbered.

use super::History;
use super::builder::{HistoryBuilder, canonical};
use super::bulk::BuildError;
use super::interval::{Interval, Run, StateValue};
use super::search::{When, Which};
use super::tree::Shape;
use crate::base::ctx::{Cancel, Ctx};
use crate::base::names::NameId;
use crate::base::parallel::in_order;
use crate::base::time::{Span, Timestamp};
use crate::state::attributes::{AttributeId, Attributes};
use crate::state::questions::Asker;
use crate::state::reader::RowReader;
use crate::state::timeline::{HostId, SegmentKind, Thread, ThreadId, Timeline};
use std::fmt::Write;
use std::ops::Range;

/// Names of the states of a thread.
pub const STATES: &[&str] = SegmentKind::NAMES;

/// The state of a segment; `None` where it is unknown.
pub(super) fn state(kind: SegmentKind) -> Option<StateValue> {
    (kind != SegmentKind::Unknown).then_some(StateValue::Code(kind as u16))
}

/// The attributes of the instances of one tid, and these threads.
pub(super) struct TidAttributes<'a> {
    pub(super) threads: &'a [ThreadOf<'a>],
    pub(super) state: AttributeId,
    pub(super) cpu: AttributeId,
    pub(super) syscall: AttributeId,
    pub(super) name: AttributeId,
    pub(super) pid: AttributeId,
    pub(super) ppid: AttributeId,
}

/// A thread of the timeline.
pub(super) struct ThreadOf<'a> {
    pub(super) id: ThreadId,
    pub(super) thread: &'a Thread,
    /// Upper bound of the number of its intervals of state, CPU and system call.
    pub(super) rows: usize,
}

/// The source of the intervals of some attributes.
pub(super) enum IntervalSource<'a> {
    Tid(TidAttributes<'a>),
    Cpu { attribute: AttributeId, host: HostId, cpu: u32, runs: usize },
}

/// Largest number of intervals that a worker writes at a time; one source may have more.
const GROUP: usize = 1 << 15;

impl History {
    /// The history of `timeline`.
    pub fn of_recording(timeline: &Timeline, ctx: &Ctx) -> Result<History, BuildError> {
        History::until(timeline, timeline.span(), Timestamp::MAX, ctx)
    }

    /// The history of `timeline` up to the end of a span that it begins with.
    pub fn of_beginning(timeline: &Timeline, window: Span, ctx: &Ctx) -> Result<History, BuildError> {
        History::until(timeline, window, window.end, ctx)
    }

    /// Intervals end at `until` at the latest.
    fn until(timeline: &Timeline, window: Span, until: Timestamp, ctx: &Ctx) -> Result<History, BuildError> {
        let mut builder = HistoryBuilder::new(STATES);
        let (texts, new_texts) = canonical(timeline.names().clone());
        builder.texts = texts;
        let reader = timeline.reader(Asker::History);
        let threads = threads_until(timeline, &reader, until);
        let sources = sources(timeline, &reader, &threads, &mut builder.attributes);
        let groups = groups(&sources);
        let make = |i: usize| {
            let sources = &sources[groups[i].clone()];
            let mut run = Run::with_capacity(sources.iter().map(IntervalSource::weight).sum());
            let reader = timeline.reader(Asker::History);
            let target = Target { texts: &new_texts, until };
            sources.iter().for_each(|source| source.write(timeline, &reader, target, &mut run));
            run
        };
        in_order(ctx, groups.len(), make, |_, run| builder.push(run))?;
        builder.seal(window, Shape::default(), ctx)
    }

    /// True where another history has the same intervals under the same paths.
    pub fn is_same(&self, other: &History, cancel: &Cancel) -> bool {
        /// Attributes that are compared at a time.
        const SOME: usize = 256;
        let paths = |history: &History| (history.window, history.attributes.len(), history.tree.len());
        let ids = || self.attributes.ids();
        if paths(self) != paths(other) || ids().any(|id| self.attributes.path_of(id) != other.attributes.path_of(id)) {
            return false;
        }
        (0..self.attributes.len()).step_by(SOME).all(|first| {
            let some = || Which::range(AttributeId::at(first), AttributeId::at(first + SOME - 1));
            let intervals = |history: &History| {
                let mut all: Vec<Interval> = history.tree.search(some(), When::ALWAYS, cancel).collect();
                all.sort_unstable_by_key(|interval| (interval.attribute, interval.span));
                all
            };
            let (own, theirs) = (intervals(self), intervals(other));
            let equal = |(a, b): (&Interval, &Interval)| {
                (a.attribute, a.span, self.show(a.value)) == (b.attribute, b.span, other.show(b.value))
            };
            own.len() == theirs.len() && own.iter().zip(&theirs).all(equal)
        })
    }
}

/// The threads that live before a moment, by host and tid, those of one tid by id.
pub(super) fn threads_until<'t>(timeline: &'t Timeline, reader: &RowReader<'_>, until: Timestamp) -> Vec<ThreadOf<'t>> {
    let thread = |(id, thread)| {
        let rows = 2 * reader.segments(id).len() + reader.calls(id).len();
        ThreadOf { id, thread, rows }
    };
    let known = timeline.threads_by_id().filter(|(_, of)| !of.idle && of.life.start < until);
    let mut threads: Vec<ThreadOf<'_>> = known.map(thread).collect();
    threads.sort_by_key(|one| (one.thread.host, one.thread.tid));
    threads
}

/// What intervals are written with.
#[derive(Clone, Copy)]
struct Target<'a> {
    /// The new ids of the timeline's names.
    texts: &'a [NameId],
    /// Where the last ones end.
    until: Timestamp,
}

/// All sources with their attributes, which are added in the order of a sealed history.
pub(super) fn sources<'a>(
    timeline: &'a Timeline,
    reader: &RowReader<'_>,
    threads: &'a [ThreadOf<'a>],
    attributes: &mut Attributes,
) -> Vec<IntervalSource<'a>> {
    let prefixes = prefixes(timeline);
    let prefix = |host: HostId| prefixes.get(host.index()).map_or("", |prefix| prefix);
    let tids = || threads.chunk_by(|a, b| (a.thread.host, a.thread.tid) == (b.thread.host, b.thread.tid));
    let mut hosts: Vec<HostId> = timeline.cpus().map(|(host, _)| host).collect();
    hosts.extend(tids().filter_map(|same| same.first()).map(|one| one.thread.host));
    hosts.sort_unstable();
    hosts.dedup();
    hosts.sort_by_key(|host| prefix(*host));
    attributes.reserve(7 * tids().count() + 2 * timeline.cpus().len());
    let mut sources = Vec::with_capacity(tids().count() + timeline.cpus().len());
    let mut number = String::new();
    let mut below = |attributes: &mut Attributes, above: AttributeId, id: i64| {
        number.clear();
        // Writing to a string does not fail.
        let _ = write!(number, "{id}");
        attributes.child(above, &number)
    };
    for host in hosts {
        for (_, cpu) in timeline.cpus().filter(|(of, _)| *of == host) {
            let above = attributes.path(&format!("{}cpus", prefix(host)));
            let at = below(attributes, above, cpu.into());
            let (attribute, runs) = (attributes.child(at, "thread"), reader.runs(host, cpu).len());
            sources.push(IntervalSource::Cpu { attribute, host, cpu, runs });
        }
        let from = threads.partition_point(|one| one.thread.host < host);
        let past = from + threads[from..].partition_point(|one| one.thread.host == host);
        let Some(own) = threads.get(from..past).filter(|own| !own.is_empty()) else { continue };
        let above = attributes.path(&format!("{}threads", prefix(host)));
        let names = ["cpu", "name", "pid", "ppid", "state", "syscall"].map(|name| attributes.name(name));
        for same in own.chunk_by(|a, b| a.thread.tid == b.thread.tid) {
            let at = below(attributes, above, same.first().map_or(0, |one| one.thread.tid.into()));
            let [cpu, name, pid, ppid, state, syscall] = names.map(|name| attributes.named(at, name));
            sources.push(IntervalSource::Tid(TidAttributes { threads: same, state, cpu, syscall, name, pid, ppid }));
        }
    }
    sources
}

/// The sources in groups of about equal weight.
fn groups(sources: &[IntervalSource<'_>]) -> Vec<Range<usize>> {
    let mut stretches: Vec<Range<usize>> = Vec::new();
    let mut weight = usize::MAX;
    for (at, source) in sources.iter().enumerate() {
        weight = weight.saturating_add(source.weight());
        match stretches.last_mut() {
            Some(last) if weight <= GROUP => last.end = at + 1,
            _ => {
                stretches.push(at..at + 1);
                weight = source.weight();
            }
        }
    }
    stretches
}

/// The first components of the paths of each host: none where there is one host, else its name, made unique by a
/// number.
fn prefixes(timeline: &Timeline) -> Vec<String> {
    let hosts = timeline.hosts();
    if hosts.len() < 2 {
        return vec![String::new(); hosts.len()];
    }
    let mut prefixes: Vec<String> = Vec::with_capacity(hosts.len());
    for host in hosts {
        let name = format!("hosts/{}", timeline.names().get(host.name));
        let taken = |prefix: &String| prefixes.contains(prefix);
        let first = format!("{name}/");
        let others = (2..).map(|n| format!("{name}~{n}/"));
        prefixes.extend(std::iter::once(first).chain(others).find(|prefix| !taken(prefix)));
    }
    prefixes
}

impl IntervalSource<'_> {
    /// Upper bound of its number of intervals.
    fn weight(&self) -> usize {
        match self {
            IntervalSource::Cpu { runs, .. } => *runs,
            IntervalSource::Tid(attributes) => {
                let of = |one: &ThreadOf<'_>| one.rows + one.thread.names.len() + 2;
                attributes.threads.iter().map(of).sum()
            }
        }
    }

    /// Write its intervals.
    fn write(&self, timeline: &Timeline, reader: &RowReader<'_>, target: Target<'_>, run: &mut Run) {
        match self {
            IntervalSource::Tid(attributes) => attributes.write(reader, target, run),
            IntervalSource::Cpu { attribute, host, cpu, .. } => {
                let tid = |id| timeline.thread(id).map_or(0, |thread| i64::from(thread.tid));
                write_attribute(
                    run,
                    (*attribute, target.until),
                    reader.runs(*host, *cpu).all().map(|run| (run.span, Some(StateValue::Int(tid(run.thread))))),
                );
            }
        }
    }
}

impl TidAttributes<'_> {
    fn write(&self, reader: &RowReader<'_>, Target { texts, until }: Target<'_>, run: &mut Run) {
        let text = |name: NameId| Some(StateValue::Text(texts.get(name.index()).copied().unwrap_or(name)));
        let segments = || self.threads.iter().flat_map(|one| reader.segments(one.id).all());
        let calls = self.threads.iter().flat_map(|one| reader.calls(one.id).all());
        let lives = || self.threads.iter().map(|one| (one.thread, one.thread.life));
        let names = self.threads.iter().flat_map(|ThreadOf { thread, .. }| {
            let ends = thread.names.iter().skip(1).map(|name| name.from).chain([thread.life.end]);
            thread.names.iter().zip(ends).map(|(name, end)| (Span::new(name.from, end), text(name.name)))
        });
        let known = |id: i32| (id != 0).then_some(StateValue::Int(id.into()));
        write_attribute(run, (self.state, until), segments().map(|segment| (segment.span, state(segment.kind))));
        write_attribute(
            run,
            (self.cpu, until),
            segments().map(|segment| (segment.span, segment.known_cpu().map(|cpu| StateValue::Int(cpu.into())))),
        );
        write_attribute(run, (self.syscall, until), calls.map(|call| (call.span, text(call.name))));
        write_attribute(run, (self.name, until), names);
        write_attribute(run, (self.pid, until), lives().map(|(thread, life)| (life, known(thread.pid))));
        write_attribute(run, (self.ppid, until), lives().map(|(thread, life)| (life, known(thread.ppid))));
    }
}

/// Write the values of one attribute up to a moment.
fn write_attribute(
    run: &mut Run,
    (attribute, until): (AttributeId, Timestamp),
    values: impl Iterator<Item = (Span, Option<StateValue>)> + Clone,
) {
    join(values, until, |span, value| run.push(attribute, span, value));
}

/// Write the intervals of values up to a moment. Where two overlap, the later one ends the earlier one; neighbours of
/// equal value become one interval.
pub(super) fn join(
    values: impl Iterator<Item = (Span, Option<StateValue>)> + Clone,
    until: Timestamp,
    mut write: impl FnMut(Span, StateValue),
) {
    let values = values.map(|(span, value)| (cut(span, until), value)).filter(|(span, _)| !span.is_empty());
    // The values of one thread are in order; only those of several threads of one tid, or of a timeline that
    // contradicts itself, need sorting.
    let mut joined = Joined::default();
    let mut add = |(span, value)| joined.add(span, value).into_iter().for_each(|(span, value)| write(span, value));
    if values.clone().is_sorted_by_key(|(span, _)| span.start) {
        values.for_each(&mut add);
    } else {
        let mut values: Vec<(Span, Option<StateValue>)> = values.collect();
        values.sort_by_key(|(span, _)| span.start);
        values.into_iter().for_each(&mut add);
    }
    joined.last().into_iter().for_each(|(span, value)| write(span, value));
}

/// The part of a span before `until`.
pub(super) fn cut(span: Span, until: Timestamp) -> Span {
    Span::new(span.start, span.end.min(until).max(span.start))
}

/// Values in order of start, as they become intervals.
#[derive(Default)]
pub(super) struct Joined(Option<(Span, Option<StateValue>)>);

impl Joined {
    /// Add the next value; the interval that it ends.
    pub(super) fn add(&mut self, span: Span, value: Option<StateValue>) -> Option<(Span, StateValue)> {
        match &mut self.0 {
            Some((before, same)) if *same == value && before.end >= span.start => {
                before.end = before.end.max(span.end);
                None
            }
            _ => {
                let (before, known) = self.0.replace((span, value))?;
                let ended = Span::new(before.start, before.end.min(span.start));
                // Nothing is left of one of two that begin together.
                known.filter(|_| !ended.is_empty()).map(|known| (ended, known))
            }
        }
    }

    /// Where the value that was added last begins, its equal neighbours included.
    pub(super) fn start(&self) -> Option<Timestamp> {
        self.0.map(|(span, _)| span.start)
    }

    /// The last interval.
    pub(super) fn last(self) -> Option<(Span, StateValue)> {
        let (span, value) = self.0?;
        Some((span, value?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_attribute_cuts_overlaps_and_joins_equal_neighbours() {
        let values = [
            (Span::of_ns(0, 10), Some(StateValue::Int(1))),
            (Span::of_ns(10, 20), Some(StateValue::Int(1))),
            (Span::of_ns(15, 30), Some(StateValue::Int(2))),
            (Span::of_ns(30, 30), Some(StateValue::Int(9))),
            (Span::of_ns(30, 40), None),
            (Span::of_ns(35, 50), Some(StateValue::Int(2))),
            (Span::of_ns(60, 70), Some(StateValue::Int(2))),
        ];
        let mut run = Run::default();
        write_attribute(&mut run, (AttributeId::at(0), Timestamp::MAX), values.into_iter());
        let written: Vec<_> = run.iter().map(|i| (i.span.start.ns(), i.span.end.ns(), i.value)).collect();
        let two = StateValue::Int(2);
        assert_eq!(written, [(0, 15, StateValue::Int(1)), (15, 30, two), (35, 50, two), (60, 70, two)]);
    }
}
