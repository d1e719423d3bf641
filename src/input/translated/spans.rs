//! Spans that programs recorded themselves, without a CPU.
//!
//! In: begins and ends in any order, each on a thread, because a writer keeps its events for long and writes a whole
//! span when it ends. Out: events that begin and end tasks, on the CPU where the thread ran at that time. Spans of a
//! thread are nested there; those of a track of their own may end on another thread. Ends are paired in order of time,
//! so the end of a span needs no name. The most frequent names are tasks of their own (`span:NAME`); all others, which
//! may be different for each span, are types of the task `span`. Names that count (`ProfilerStep#2`, `ProfilerStep#3`)
//! are one task, `span:ProfilerStep#*`, with the whole names as types. Cost: sorting; all spans stay in memory until
//! the file is read.

use super::event_place::{EventPlace, NamedThread};
use super::lines;
use super::thread_runs::{ThreadMoment, ThreadRuns};
use super::translation::{FieldValue, Translation};
use crate::base::names::{NameId, Names};
use crate::base::time::Timestamp;
use foldhash::{HashMap, HashSet};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Names that are tasks of their own.
const OWN_TASKS: usize = 256;
/// Moments that are compared with the runs of threads.
const MOMENTS: usize = 4096;

/// The thread of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SpanThread {
    pub tid: i32,
    /// Below 0: unknown.
    pub pid: i32,
}

/// The row on which spans are nested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SpanTrack {
    /// That of a thread.
    Thread(SpanThread),
    /// One of its own, by a number of the file.
    Own(u64),
}

/// What is known of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpanPart {
    Begin(NameId),
    /// The end of the last one that is open on the track.
    End,
    /// All of a span, with its length in ns.
    Whole(NameId, u64),
}

/// A part of a span at its time.
#[derive(Clone, Copy, Debug)]
struct Timed {
    time: u64,
    thread: SpanThread,
    track: SpanTrack,
    part: SpanPart,
}

/// The begin or end of a span.
#[derive(Clone, Copy, Debug)]
struct SpanBound {
    time: u64,
    thread: SpanThread,
}

#[derive(Clone, Copy, Debug)]
struct PairedSpan {
    name: NameId,
    track: SpanTrack,
    begin: SpanBound,
    /// `None`: it was open when the file ended.
    end: Option<SpanBound>,
    /// Its end is a record of its own.
    has_own_end: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Spans {
    names: Names,
    all: Vec<Timed>,
}

impl Spans {
    /// The id of a name.
    pub fn name(&mut self, name: &[u8]) -> NameId {
        self.names.intern_bytes(name)
    }

    /// Add a part of a span.
    pub fn add(&mut self, time: u64, thread: SpanThread, track: SpanTrack, part: SpanPart) {
        self.all.push(Timed { time, thread, track, part });
    }

    /// True where there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The threads that begin or end spans.
    pub fn threads(&self) -> HashSet<i32> {
        self.all.iter().map(|timed| timed.thread.tid).collect()
    }

    /// Some moments at which their threads ran, distributed over the file, on a clock that counts from `base`.
    pub fn moments(&self, base: i128) -> impl Iterator<Item = ThreadMoment> {
        let step = self.all.len() / MOMENTS + 1;
        self.all.iter().step_by(step).map(move |timed| ThreadMoment {
            tid: timed.thread.tid,
            time: Timestamp::clamped(base + i128::from(timed.time)),
        })
    }

    /// Add the events of all spans. Without runs all are on the first CPU. `base` is that of the runs.
    pub fn write(mut self, runs: Option<&ThreadRuns>, base: i128, translation: &mut Translation) {
        let mut spans = self.paired(translation);
        // Those of one begin: the outer ones first.
        let end = |span: &PairedSpan| span.end.map_or(u64::MAX, |end| end.time);
        spans.sort_by_key(|span| (span.begin.time, Reverse(end(span))));
        let numbered = self.numbered(&spans);
        let writer = SpanWriter { tasks: self.tasks(&spans, &numbered), numbered, names: &self.names, runs, base };
        // Open spans of each thread, the inner ones last.
        let mut open: HashMap<SpanThread, Vec<(usize, PairedSpan)>> = HashMap::default();
        for (number, span) in spans.into_iter().enumerate() {
            let SpanTrack::Thread(thread) = span.track else {
                if writer.begin(number, &span, translation) {
                    writer.end(number, &span, translation);
                }
                continue;
            };
            let above = open.entry(thread).or_default();
            while let Some((ended, last)) = above.pop_if(|(_, last)| end(last) <= span.begin.time) {
                writer.end(ended, &last, translation);
            }
            if writer.begin(number, &span, translation) {
                above.push((number, span));
            }
        }
        let mut left: Vec<(usize, PairedSpan)> = open.into_values().flatten().collect();
        // The inner ones end first.
        left.sort_by_key(|(number, _)| Reverse(*number));
        left.iter().for_each(|(number, span)| writer.end(*number, span, translation));
    }

    /// Pair begins and ends.
    fn paired(&mut self, translation: &mut Translation) -> Vec<PairedSpan> {
        // Parts of one time keep their order.
        self.all.sort_by_key(|timed| timed.time);
        let mut spans: Vec<PairedSpan> = Vec::new();
        let mut open: HashMap<SpanTrack, Vec<usize>> = HashMap::default();
        for Timed { time, thread, track, part } in self.all.drain(..) {
            let begin = SpanBound { time, thread };
            match part {
                SpanPart::Begin(name) => {
                    open.entry(track).or_default().push(spans.len());
                    spans.push(PairedSpan { name, track, begin, end: None, has_own_end: false });
                }
                SpanPart::Whole(name, length) => {
                    let end = Some(SpanBound { time: time.saturating_add(length), thread });
                    spans.push(PairedSpan { name, track, begin, end, has_own_end: false });
                }
                SpanPart::End => match open.get_mut(&track).and_then(Vec::pop).and_then(|at| spans.get_mut(at)) {
                    Some(span) => (span.end, span.has_own_end) = (Some(begin), true),
                    None => translation.unused_kept(1, || "ends of spans that began before the file".to_owned()),
                },
            }
        }
        spans
    }

    /// The names that differ in the number at their end alone, and count: on each track most of them occur once. They
    /// are replaced by the name of their task (`Step 3`, `Step 4`: `Step *`).
    fn numbered(&mut self, spans: &[PairedSpan]) -> HashMap<NameId, NameId> {
        let mut tracks: HashMap<NameId, HashSet<SpanTrack>> = HashMap::default();
        let mut counted: HashMap<&str, NumberedNames> = HashMap::default();
        for span in spans {
            let Some(stem) = stem(self.names.get(span.name)) else { continue };
            let names = counted.entry(stem).or_default();
            names.spans += 1;
            names.once += usize::from(tracks.entry(span.name).or_default().insert(span.track));
            names.all.insert(span.name);
        }
        let tasks = counted.into_iter().filter(|(_, names)| names.all.len() > 1 && names.once * 2 > names.spans);
        let mut tasks: Vec<(String, BTreeSet<NameId>)> =
            tasks.map(|(stem, names)| (format!("{stem}*"), names.all)).collect();
        tasks.sort_unstable();
        let mut replaced = HashMap::default();
        for (task, names) in tasks {
            let task = self.names.intern(&task);
            replaced.extend(names.into_iter().map(|name| (name, task)));
        }
        replaced
    }

    /// The name of the task of each name that has one.
    fn tasks(&self, spans: &[PairedSpan], numbered: &HashMap<NameId, NameId>) -> Vec<Option<String>> {
        let mut counts = vec![0u64; self.names.len()];
        for span in spans {
            let name = numbered.get(&span.name).unwrap_or(&span.name);
            if let Some(count) = counts.get_mut(name.index()) {
                *count += 1;
            }
        }
        let mut order: Vec<(Reverse<u64>, NameId)> =
            counts.iter().enumerate().map(|(name, count)| (Reverse(*count), NameId::at(name))).collect();
        order.sort_unstable();
        let numbered_tasks: HashSet<NameId> = numbered.values().copied().collect();
        let (mut tasks, mut taken) = (vec![None; counts.len()], HashSet::default());
        for (_, name) in order.into_iter().take(OWN_TASKS) {
            let text = self.names.get(name);
            let plain = match text.strip_suffix('*').filter(|_| numbered_tasks.contains(&name)) {
                Some(stem) => {
                    let words: Vec<String> = stem.split('#').map(|word| lines::plain(word.as_bytes())).collect();
                    words.join("#") + "*"
                }
                None => lines::plain(text.as_bytes()),
            };
            // Of two names with the same plain words, the second has none.
            if let Some(task) = tasks.get_mut(name.index()).filter(|_| !plain.is_empty() && taken.insert(plain.clone()))
            {
                *task = Some(plain);
            }
        }
        tasks
    }
}

/// Names that differ in the number at their end alone.
#[derive(Default)]
struct NumberedNames {
    all: BTreeSet<NameId>,
    spans: usize,
    /// Spans that were the first of their name on their track.
    once: usize,
}

/// What is before the number at the end of a name.
fn stem(name: &str) -> Option<&str> {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (stem.len() < name.len() && stem.chars().any(char::is_alphabetic)).then_some(stem)
}

/// Writes the events of spans.
struct SpanWriter<'a> {
    names: &'a Names,
    tasks: Vec<Option<String>>,
    /// The task of names that differ in their number.
    numbered: HashMap<NameId, NameId>,
    runs: Option<&'a ThreadRuns>,
    base: i128,
}

impl SpanWriter<'_> {
    fn place(&self, bound: SpanBound) -> Option<EventPlace<'static>> {
        let SpanBound { time, thread: SpanThread { tid, pid } } = bound;
        let moment = ThreadMoment { tid, time: Timestamp::clamped(self.base + i128::from(time)) };
        let cpu = self.runs.map_or(Some(0), |runs| runs.cpu(moment))?;
        Some(EventPlace { time, cpu, thread: NamedThread { tid, pid, name: b"" } })
    }

    /// Write its begin; false where its thread never ran.
    fn begin(&self, number: usize, span: &PairedSpan, translation: &mut Translation) -> bool {
        let place = self.place(span.begin);
        match place {
            Some(at) => {
                self.event(at, number, span, "begin", translation);
                translation.used_kept(1);
            }
            None => translation.unused_kept(1 + u64::from(span.has_own_end), || {
                "spans of threads that no context switch names".to_owned()
            }),
        }
        place.is_some()
    }

    fn end(&self, number: usize, span: &PairedSpan, translation: &mut Translation) {
        let Some(end) = span.end else { return };
        let records = u64::from(span.has_own_end);
        match self.place(end) {
            Some(at) => {
                self.event(at, number, span, "end", translation);
                translation.used_kept(records);
            }
            None => {
                translation.unused_kept(records, || "ends of spans on threads that no context switch names".to_owned())
            }
        }
    }

    fn event(&self, at: EventPlace<'_>, number: usize, span: &PairedSpan, side: &str, translation: &mut Translation) {
        let of_number = self.numbered.get(&span.name);
        let task = self.tasks.get(of_number.unwrap_or(&span.name).index()).and_then(Option::as_deref);
        let prefix = task.map_or("span:".to_owned(), |task| format!("span:{task}:"));
        let name = self.names.get(span.name).as_bytes();
        let mut fields = Vec::new();
        // The number of an execution is its type.
        if task.is_none() || of_number.is_some() {
            fields.push(("name", FieldValue::Text(name)));
        }
        let own = match span.track {
            SpanTrack::Thread(_) => "",
            SpanTrack::Own(_) => {
                fields.push(("id", FieldValue::Number(number as i64)));
                "async_"
            }
        };
        translation.event(at, &format!("{prefix}{own}{side}"), &fields);
    }
}
