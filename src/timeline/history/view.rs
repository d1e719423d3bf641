//! The history of a recording as a view of the store's rows: nothing is copied.
//!
//! In: a timeline. Out: the values of its attributes at instants and over spans. An attribute is a name for a line: the
//! state of a tid is the segments of its thread. The intervals of an attribute
//! about a span are made of the rows there (`around`), so equal neighbours join as they do in the whole line; those at
//! an instant of what is known of parts, and of two leaves at most (`instant`). Lines of several threads with one tid
//! are made as a whole: their rows may contradict each other.
//!
//! Cost: the table of names; for each line of a question one descent, and the rows of its intervals. ALGORITHMS.md
//! 8.13.

use super::all_threads::known;
use super::around::{Around, meeting, windowed};
use super::attributes_of::{AttributeTable, NamedLine, STATES, ThreadLine, state};
use super::instant::{AtInstant, AttributeParts};
use super::join::join;
use super::lines::{Held, HistoryLine, Longest, Time, points_of};
use super::{Shown, StateValue, Times, most};
use crate::base::ctx::{Cancel, Cancelled, Ctx};
use crate::base::memory_error::MemoryError;
use crate::base::spans::LongestSpans;
use crate::base::time::{Span, Timestamp};
use crate::timeline::attributes::{AttributeId, Attributes};
use crate::timeline::questions::Asker;
use crate::timeline::reader::RowReader;
use crate::timeline::{Call, CpuRun, Segment, Thread, ThreadId, Timeline};

/// The history of a timeline.
#[derive(Clone, Debug)]
pub struct StateHistory {
    pub(super) timeline: Timeline,
    pub(super) table: AttributeTable,
    window: Span,
    /// Intervals end here at the latest.
    until: Timestamp,
}

impl StateHistory {
    /// Of `timeline`; up to the end of a span that it begins with, where one is given.
    pub fn new(timeline: Timeline, beginning: Option<Span>) -> StateHistory {
        let until = beginning.map_or(Timestamp::MAX, |span| span.end);
        let table = AttributeTable::new(&timeline, until);
        let window = beginning.unwrap_or(timeline.span());
        StateHistory { timeline, table, window, until }
    }

    /// Its leaves give the memory of a limit back until they are asked for again.
    pub fn let_leaves_go(&self) {
        self.timeline.let_leaves_go();
    }

    /// Why answers are not whole, where leaves could not be written or read back.
    pub fn failure(&self) -> Option<MemoryError> {
        self.timeline.failure()
    }

    /// The states.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// True where another history has the same intervals under the same paths.
    pub fn is_same(&self, other: &StateHistory, cancel: &Cancel) -> bool {
        let ids = || self.table.attributes.ids();
        if (self.window, self.table.attributes.len()) != (other.window, other.table.attributes.len())
            || ids().any(|id| self.table.attributes.path_of(id) != other.table.attributes.path_of(id))
        {
            return false;
        }
        let readers = [self, other].map(|view| view.timeline.reader(Asker::History));
        ids().all(|id| {
            let [own, theirs] = [(self, &readers[0]), (other, &readers[1])].map(|(view, reader)| view.all(reader, id));
            let equal = |((a, one), (b, other_one)): (&(Span, StateValue), &(Span, StateValue))| {
                a == b && self.show(*one) == other.show(*other_one)
            };
            !cancel.is_cancelled() && own.len() == theirs.len() && own.iter().zip(&theirs).all(equal)
        })
    }

    fn all(&self, reader: &RowReader<'_>, attribute: AttributeId) -> Vec<(Span, StateValue)> {
        self.around(reader, attribute, Span::new(Timestamp::MIN, Timestamp::MAX)).intervals
    }

    /// The intervals of an attribute about a span.
    fn around(&self, reader: &RowReader<'_>, attribute: AttributeId, want: Span) -> Around {
        let mut intervals = Vec::new();
        let next = self.each_about(reader, attribute, want, &mut |span, value| intervals.push((span, value)));
        Around { intervals, next }
    }

    /// The intervals of an attribute about a span, one by one. Returns what [`Around::next`] is.
    fn each_about(
        &self,
        reader: &RowReader<'_>,
        attribute: AttributeId,
        want: Span,
        add: &mut dyn FnMut(Span, StateValue),
    ) -> Option<Timestamp> {
        match self.table.line(attribute) {
            NamedLine::Cpu(host, cpu) => {
                let run = |run: &CpuRun| Some(StateValue::Int(self.tid(run.thread)));
                windowed(reader.runs(*host, *cpu), self.until, want, run, add)
            }
            NamedLine::Threads(line, threads) => {
                let threads = self.table.threads(threads);
                match (line, threads) {
                    (ThreadLine::State, [one]) => windowed(reader.segments(*one), self.until, want, of_state, add),
                    (ThreadLine::Cpu, [one]) => windowed(reader.segments(*one), self.until, want, of_cpu, add),
                    (ThreadLine::Syscall, [one]) => windowed(reader.calls(*one), self.until, want, of_call, add),
                    _ => {
                        self.whole(reader, *line, threads, add);
                        None
                    }
                }
            }
            NamedLine::None => None,
        }
    }

    fn tid(&self, thread: ThreadId) -> i64 {
        self.timeline.thread(thread).map_or(0, |thread| thread.tid.into())
    }

    /// All intervals of a line of threads.
    fn whole(
        &self,
        reader: &RowReader<'_>,
        line: ThreadLine,
        threads: &[ThreadId],
        write: &mut dyn FnMut(Span, StateValue),
    ) {
        let of = || threads.iter().filter_map(|id| self.timeline.thread(*id));
        let segments = || threads.iter().flat_map(|id| reader.segments(*id).all());
        let known = |id: i32| (id != 0).then_some(StateValue::Int(id.into()));
        match line {
            ThreadLine::State => join(segments().map(|row| (row.span, of_state(&row))), self.until, write),
            ThreadLine::Cpu => join(segments().map(|row| (row.span, of_cpu(&row))), self.until, write),
            ThreadLine::Syscall => {
                let calls = threads.iter().flat_map(|id| reader.calls(*id).all());
                join(calls.map(|row| (row.span, of_call(&row))), self.until, write);
            }
            ThreadLine::Name => join(of().flat_map(names), self.until, write),
            ThreadLine::Pid => join(of().map(|thread| (thread.life, known(thread.pid))), self.until, write),
            ThreadLine::Ppid => join(of().map(|thread| (thread.life, known(thread.ppid))), self.until, write),
        }
    }

    /// The value of an attribute of one line at an instant; `None` where too little is known of its parts.
    fn at(&self, reader: &RowReader<'_>, attribute: AttributeId, t: Timestamp) -> Option<AtInstant> {
        match self.table.line(attribute) {
            NamedLine::Cpu(host, cpu) => {
                let run = |run: &CpuRun| Some(StateValue::Int(self.tid(run.thread)));
                AttributeParts::new(reader.run_parts(*host, *cpu), 0, run).until(t, self.until)
            }
            NamedLine::Threads(line, threads) => {
                let [one] = self.table.threads(threads) else { return None };
                let segments = || reader.segment_parts(*one);
                match line {
                    ThreadLine::State => AttributeParts::new(segments(), 0, of_state).until(t, self.until),
                    ThreadLine::Cpu => AttributeParts::new(segments(), 1, of_cpu).until(t, self.until),
                    ThreadLine::Syscall => {
                        AttributeParts::new(reader.call_parts(*one), 0, of_call).until(t, self.until)
                    }
                    _ => None,
                }
            }
            NamedLine::None => None,
        }
    }

    /// The value at an instant, of the intervals about it.
    fn joined_at(&self, reader: &RowReader<'_>, attribute: AttributeId, t: Timestamp) -> AtInstant {
        let around = self.around(reader, attribute, Span::new(t, t.saturating_add(1)));
        let own = around.intervals.iter().find(|(span, _)| span.contains(t));
        let (before, next) = around.known_about(t);
        own.map_or(AtInstant::Unknown { before, next }, |(span, value)| AtInstant::Holds(*span, *value))
    }

    /// The span around `t` in which nothing is known; it ends with the window where nothing is known before or after.
    fn gap(&self, (before, after): (Option<Timestamp>, Option<Timestamp>), t: Timestamp) -> Span {
        let window = Span::new(self.window.start.min(t), self.window.end.max(t.saturating_add(1)));
        match (before, after) {
            (None, None) => window,
            (None, Some(after)) => Span::new(window.start.min(after), after),
            (Some(before), None) => Span::new(before, window.end.max(before)),
            (Some(before), Some(after)) => Span::new(before, after),
        }
    }

    /// The values of an attribute at some instants, or over a span.
    fn line(&self, reader: &RowReader<'_>, attribute: AttributeId, time: &Time) -> HistoryLine {
        let mut held: Vec<Held> = Vec::new();
        match time {
            Time::Instants(instants) => {
                for t in instants {
                    if held.last().is_some_and(|last| *t < last.span.end) {
                        continue;
                    }
                    let at = self.at(reader, attribute, *t);
                    held.push(match at.unwrap_or_else(|| self.joined_at(reader, attribute, *t)) {
                        AtInstant::Holds(span, value) => Held { span, value: Some(value) },
                        AtInstant::Unknown { before, next } => Held { span: self.gap((before, next), *t), value: None },
                    });
                }
            }
            Time::Range(span) | Time::Points(span, _) | Time::Longest(Longest { span, .. }) if span.is_empty() => {}
            Time::Range(span) | Time::Points(span, _) | Time::Longest(Longest { span, .. }) => {
                let around = self.around(reader, attribute, *span);
                let mut known_to = span.start;
                for (own, value) in meeting(&around.intervals, *span) {
                    if known_to < own.start {
                        held.push(Held { span: self.gap(around.known_about(known_to), known_to), value: None });
                    }
                    held.push(Held { span: *own, value: Some(*value) });
                    known_to = own.end;
                }
                if known_to < span.end {
                    held.push(Held { span: self.gap(around.known_about(known_to), known_to), value: None });
                }
            }
        }
        HistoryLine { attribute, held }
    }

    fn is_state(&self, attribute: AttributeId) -> bool {
        matches!(self.table.line(attribute), NamedLine::Threads(ThreadLine::State, _))
    }

    /// True for an attribute with any known value.
    fn has_any(&self, reader: &RowReader<'_>, attribute: AttributeId) -> bool {
        let Around { intervals, next } =
            self.around(reader, attribute, Span::new(self.window.start, self.window.start));
        !intervals.is_empty() || next.is_some()
    }

    /// The longest intervals of some attributes. Memory is that of the answer.
    fn longest(
        &self,
        attributes: &[AttributeId],
        Longest { span, count, value: wanted }: &Longest,
        next: &dyn Fn() -> Result<(), Cancelled>,
    ) -> Result<Vec<HistoryLine>, Cancelled> {
        let reader = self.timeline.reader(Asker::History);
        let mut found = LongestSpans::new(*count);
        for attribute in attributes.iter().filter(|_| !span.is_empty()) {
            next()?;
            self.each_about(&reader, *attribute, *span, &mut |own, value| {
                let meets = own.end > span.start && own.start < span.end;
                if meets && wanted.as_ref().is_none_or(|wanted| self.show(value).is(wanted)) {
                    found.add(own, (*attribute, value));
                }
            });
        }
        let line =
            |(span, (attribute, value))| HistoryLine { attribute, held: vec![Held { span, value: Some(value) }] };
        Ok(found.longest_first().map(line).collect())
    }
}

impl StateHistory {
    /// The attributes, numbered by path.
    pub fn attributes(&self) -> &Attributes {
        &self.table.attributes
    }

    /// The time that the trace covers.
    pub fn window(&self) -> Span {
        self.window
    }

    /// A value as screens and JSON show it.
    pub fn show(&self, value: StateValue) -> Shown<'_> {
        match value {
            StateValue::Code(code) => Shown::Text(STATES.get(usize::from(code)).copied().unwrap_or("?")),
            StateValue::Int(n) => Shown::Number(n),
            StateValue::Text(id) => Shown::Text(self.timeline.names().get(id)),
        }
    }

    /// The lines of all attributes that `pattern` matches, in order of their paths. An attribute without any interval
    /// (such as `threads`, which only has others below it) has no line, unless the pattern names it.
    pub fn lines(&self, pattern: &str, time: &Time, cancel: &Cancel) -> Result<Vec<HistoryLine>, Cancelled> {
        self.lines_of(self.table.attributes.matching(pattern), time, &|| cancel.check())
    }

    /// The lines of [`StateHistory::lines`] as a stage of long work, whose units are the attributes.
    pub fn lines_in(&self, pattern: &str, time: &Time, ctx: &Ctx) -> Result<Vec<HistoryLine>, Cancelled> {
        let attributes = self.table.attributes.matching(pattern);
        ctx.progress.enter("states", attributes.len() as u64);
        self.lines_of(attributes, time, &|| {
            ctx.progress.step(1);
            ctx.cancel.check()
        })
    }

    /// The lines of some attributes; `next` is asked before each.
    fn lines_of(
        &self,
        mut attributes: Vec<AttributeId>,
        time: &Time,
        next: &dyn Fn() -> Result<(), Cancelled>,
    ) -> Result<Vec<HistoryLine>, Cancelled> {
        let reader = self.timeline.reader(Asker::History);
        if let Time::Longest(longest) = time {
            return self.longest(&attributes, longest, next);
        }
        let several = attributes.len() > 1;
        if several {
            attributes.retain(|attribute| self.has_any(&reader, *attribute));
        }
        let instants = match time {
            Time::Points(span, points) => points_of(*span, *points),
            Time::Instants(instants) => {
                let mut instants = instants.clone();
                instants.sort_unstable();
                instants
            }
            _ => Vec::new(),
        };
        let at = Time::Instants(instants);
        let line = |attribute: AttributeId| {
            next()?;
            Ok(match (time, &at) {
                (Time::Points(span, _), Time::Instants(starts))
                    if self.is_state(attribute) && (several || self.has_any(&reader, attribute)) =>
                {
                    let ends = starts.iter().skip(1).copied().chain([span.end]);
                    let cells: Vec<Span> = starts.iter().zip(ends).map(|(start, end)| Span::new(*start, end)).collect();
                    let times = self.times(attribute, &cells);
                    let held =
                        |(span, times): (&Span, Times)| Held { span: *span, value: most(&times).map(StateValue::Code) };
                    HistoryLine { attribute, held: cells.iter().zip(times).map(held).collect() }
                }
                (Time::Range(_), _) => self.line(&reader, attribute, time),
                _ => self.line(&reader, attribute, &at),
            })
        };
        attributes.into_iter().map(line).collect()
    }

    /// The time of an attribute in each state, in spans that follow each other.
    pub fn times(&self, attribute: AttributeId, cells: &[Span]) -> Vec<Times> {
        self.summed_times(attribute, cells).unwrap_or_else(|| self.added_times(attribute, cells))
    }

    /// By the sums of its thread, where they are kept and a cell has more than one part.
    fn summed_times(&self, attribute: AttributeId, cells: &[Span]) -> Option<Vec<Times>> {
        let NamedLine::Threads(ThreadLine::State, threads) = self.table.line(attribute) else { return None };
        let [one] = self.table.threads(threads) else { return None };
        let reader = self.timeline.reader(Asker::History);
        if reader.segment_parts(*one).parts() < cells.len() {
            return None;
        }
        let until = |t: Timestamp| t.min(self.until);
        let of = |cell: &Span| reader.kind_times_of(*one, Span::new(until(cell.start), until(cell.end)));
        cells.iter().map(|cell| of(cell).map(known)).collect()
    }

    /// By its intervals.
    fn added_times(&self, attribute: AttributeId, cells: &[Span]) -> Vec<Times> {
        let mut times = vec![Times::new(); cells.len()];
        let Some(whole) = cells.first().zip(cells.last()).map(|(first, last)| Span::new(first.start, last.end)) else {
            return times;
        };
        let around = self.around(&self.timeline.reader(Asker::History), attribute, whole);
        for (span, value) in meeting(&around.intervals, whole) {
            let StateValue::Code(code) = *value else { continue };
            let first = cells.partition_point(|cell| cell.end <= span.start);
            let own = cells.iter().zip(&mut times).skip(first).take_while(|(cell, _)| cell.start < span.end);
            for (cell, times) in own {
                let inside = span.clip(*cell);
                if !inside.is_empty() {
                    *times.entry(code).or_default() += inside.end.abs_diff(inside.start);
                }
            }
        }
        times
    }
}

fn of_state(segment: &Segment) -> Option<StateValue> {
    state(segment.kind)
}

fn of_cpu(segment: &Segment) -> Option<StateValue> {
    segment.known_cpu().map(|cpu| StateValue::Int(cpu.into()))
}

fn of_call(call: &Call) -> Option<StateValue> {
    Some(StateValue::Text(call.name))
}

/// The names of a thread, each until the next.
pub(super) fn names(thread: &Thread) -> impl Iterator<Item = (Span, Option<StateValue>)> + Clone {
    let ends = thread.names.iter().skip(1).map(|name| name.from).chain([thread.life.end]);
    let named = thread.names.iter().zip(ends);
    named.map(|(name, end)| (Span::new(name.from, end), Some(StateValue::Text(name.name))))
}
