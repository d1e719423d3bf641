//! A plain state history of a recording: the intervals of every attribute in a list, and each answer a scan of them.
//!
//! In: a timeline. Out: what `query` has to say. It shares no code with the program's state history but the rows, and
//! the paths that a pattern matches.

use whyslow::parts::base::ctx::Cancel;
use whyslow::parts::base::time::{Span, Timestamp};
use whyslow::parts::timeline::history::lines::{Longest, Time};
use whyslow::parts::timeline::history::{Shown, StateHistory};
use whyslow::parts::timeline::questions::Asker;
use whyslow::parts::timeline::{SegmentKind, Thread, ThreadId, Timeline};

/// A value as it is shown.
pub type Text = String;

/// An interval of one attribute.
pub type Plain = (Span, Text);

/// A value with its span; `None` where it is unknown.
type Valued = (Span, Option<Text>);

/// The intervals of all attributes that have any, by path.
pub struct PlainHistory {
    pub all: Vec<(String, Vec<Plain>)>,
    window: Span,
}

fn state(kind: SegmentKind) -> Option<Text> {
    let name = match kind {
        SegmentKind::Running => "running",
        SegmentKind::Interrupted => "interrupted",
        SegmentKind::Preempted => "preempted",
        SegmentKind::Blocked => "blocked",
        SegmentKind::Timer => "timer",
        SegmentKind::Disk => "disk",
        SegmentKind::Network => "network",
        SegmentKind::UserInput => "user input",
        SegmentKind::Ipi => "ipi",
        SegmentKind::Device => "device",
        SegmentKind::Stopped => "stopped",
        SegmentKind::Unknown => return None,
    };
    Some(name.to_owned())
}

/// The intervals of values: each is cut where a later one begins, unknown ones are left out, equal neighbours joined.
fn intervals(mut values: Vec<Valued>, until: Timestamp) -> Vec<Plain> {
    values.iter_mut().for_each(|(span, _)| span.end = span.end.min(until));
    values.retain(|(span, _)| span.start < span.end);
    values.sort_by_key(|(span, _)| span.start);
    let mut joined: Vec<Valued> = Vec::new();
    for (span, value) in values {
        match joined.last_mut() {
            Some((before, same)) if *same == value && before.end >= span.start => before.end = before.end.max(span.end),
            Some((before, _)) => {
                before.end = before.end.min(span.start);
                joined.push((span, value));
            }
            None => joined.push((span, value)),
        }
    }
    let known = joined.into_iter().filter(|(span, _)| span.start < span.end);
    known.filter_map(|(span, value)| Some((span, value?))).collect()
}

impl PlainHistory {
    /// Of a timeline of one host, up to the end of a span that it begins with, where one is given.
    pub fn new(timeline: &Timeline, beginning: Option<Span>) -> PlainHistory {
        let until = beginning.map_or(Timestamp::MAX, |span| span.end);
        let reader = timeline.reader(Asker::History);
        let name = |id| Some(timeline.names().get(id).to_owned());
        let tid = |id: ThreadId| timeline.thread(id).map_or(0, |thread| thread.tid);
        let number = |n: i32| (n != 0).then(|| n.to_string());
        let mut all = Vec::new();
        for (host, cpu) in timeline.cpus() {
            let runs = reader.runs(host, cpu).all().map(|run| (run.span, Some(tid(run.thread).to_string())));
            all.push((format!("cpus/{cpu}/thread"), intervals(runs.collect(), until)));
        }
        let known = timeline.threads_by_id().filter(|(_, thread)| !thread.idle && thread.life.start < until);
        let mut threads: Vec<(ThreadId, &Thread)> = known.collect();
        threads.sort_by_key(|(_, thread)| thread.tid);
        for same in threads.chunk_by(|a, b| a.1.tid == b.1.tid) {
            let segments = || same.iter().flat_map(|(id, _)| reader.segments(*id).all());
            let calls = same.iter().flat_map(|(id, _)| reader.calls(*id).all());
            let lives = || same.iter().map(|(_, thread)| (thread.life, *thread));
            let names = same.iter().flat_map(|(_, thread)| {
                let ends = thread.names.iter().skip(1).map(|name| name.from).chain([thread.life.end]);
                thread.names.iter().zip(ends).map(|(named, end)| (Span::new(named.from, end), name(named.name)))
            });
            let lines: [(&str, Vec<Valued>); 6] = [
                ("cpu", segments().map(|row| (row.span, row.known_cpu().map(|cpu| cpu.to_string()))).collect()),
                ("name", names.collect()),
                ("pid", lives().map(|(life, thread)| (life, number(thread.pid))).collect()),
                ("ppid", lives().map(|(life, thread)| (life, number(thread.ppid))).collect()),
                ("state", segments().map(|row| (row.span, state(row.kind))).collect()),
                ("syscall", calls.map(|row| (row.span, name(row.name))).collect()),
            ];
            for (line, values) in lines {
                all.push((format!("threads/{}/{line}", same[0].1.tid), intervals(values, until)));
            }
        }
        PlainHistory { all, window: beginning.unwrap_or(timeline.span()) }
    }

    /// The span about `t` in which nothing is known.
    fn gap(&self, own: &[Plain], t: Timestamp) -> Span {
        let before = own.iter().map(|(span, _)| span.end).filter(|end| *end <= t).max();
        let after = own.iter().map(|(span, _)| span.start).filter(|start| *start > t).min();
        let (from, to) = (self.window.start.min(t), self.window.end.max(t.saturating_add(1)));
        match (before, after) {
            (None, None) => Span::new(from, to),
            (None, Some(after)) => Span::new(from.min(after), after),
            (Some(before), None) => Span::new(before, to.max(before)),
            (Some(before), Some(after)) => Span::new(before, after),
        }
    }

    fn at(&self, own: &[Plain], t: Timestamp) -> Valued {
        let held = own.iter().find(|(span, _)| span.contains(t));
        held.map_or_else(|| (self.gap(own, t), None), |(span, value)| (*span, Some(value.clone())))
    }

    /// The spans of one attribute at a time.
    fn line(&self, path: &str, own: &[Plain], time: &Time) -> Vec<Valued> {
        match time {
            Time::Instants(instants) => self.at_instants(own, instants),
            Time::Range(span) => {
                let mut held = Vec::new();
                let mut t = span.start;
                while t < span.end {
                    held.push(self.at(own, t));
                    // Behind the last interval nothing is known any more.
                    let is_last = own.iter().all(|(own, _)| own.end <= t);
                    t = if is_last { span.end } else { held.last().map_or(span.end, |(last, _)| last.end) };
                }
                held
            }
            Time::Points(span, points) => {
                let length = u128::from(span.end.abs_diff(span.start));
                let count = if span.is_empty() { 0 } else { (*points as u128).min(length) };
                let start = |at: u128| span.start.wrapping_add((length * at / count) as u64);
                let cells: Vec<Span> = (0..count).map(|at| Span::new(start(at), start(at + 1))).collect();
                if !path.ends_with("/state") {
                    return self.at_instants(own, &cells.iter().map(|cell| cell.start).collect::<Vec<_>>());
                }
                cells.into_iter().map(|cell| (cell, most(own, cell))).collect()
            }
            Time::Longest(_) => Vec::new(),
        }
    }

    fn at_instants(&self, own: &[Plain], instants: &[Timestamp]) -> Vec<Valued> {
        let mut instants = instants.to_vec();
        instants.sort_unstable();
        let mut held: Vec<Valued> = Vec::new();
        for t in instants {
            if held.last().is_none_or(|(span, _)| t >= span.end) {
                held.push(self.at(own, t));
            }
        }
        held
    }

    /// What a question says, line by line: `path: span value, span value`.
    pub fn said(&self, history: &StateHistory, pattern: &str, time: &Time) -> Vec<String> {
        let paths = history.attributes().matching(pattern).into_iter().map(|id| history.attributes().path_of(id));
        let paths: Vec<String> = paths.collect();
        let own = |path: &String| self.all.iter().find(|(of, _)| of == path).map_or(&[][..], |(_, own)| own);
        if let Time::Longest(Longest { span, count, value }) = time {
            let meets = |own: &Span| !span.is_empty() && own.start < span.end && span.start < own.end;
            let mut found: Vec<(&String, &Plain)> =
                paths.iter().flat_map(|path| own(path).iter().map(move |one| (path, one))).collect();
            found.retain(|(_, (own, shown))| meets(own) && value.as_ref().is_none_or(|value| value == shown));
            found.sort_by_key(|(_, (span, _))| std::cmp::Reverse(span.len()));
            found.truncate(*count);
            return found.iter().map(|(path, (span, value))| text(path, &[(*span, Some(value.clone()))])).collect();
        }
        let has_any = |path: &&String| paths.len() == 1 || !own(path).is_empty();
        paths.iter().filter(has_any).map(|path| text(path, &self.line(path, own(path), time))).collect()
    }
}

/// The state with most time in a cell, of two equal ones the one that is first in the list of states.
fn most(own: &[Plain], cell: Span) -> Option<Text> {
    const ORDER: [&str; 11] = [
        "running",
        "interrupted",
        "preempted",
        "blocked",
        "timer",
        "disk",
        "network",
        "user input",
        "ipi",
        "device",
        "stopped",
    ];
    let time = |name: &&&str| {
        let inside = own.iter().filter(|(_, value)| value == **name).map(|(span, _)| span.clip(cell));
        inside.filter(|inside| !inside.is_empty()).map(Span::len).sum::<i64>()
    };
    let mut names: Vec<&&str> = ORDER.iter().filter(|name| time(name) > 0).collect();
    names.sort_by_key(|name| std::cmp::Reverse(time(name)));
    names.first().map(|name| (**name).to_owned())
}

fn text(path: &str, held: &[Valued]) -> String {
    let held: Vec<String> = held.iter().map(|(span, value)| format!("{span:?} {value:?}")).collect();
    format!("{path}: {}", held.join(", "))
}

/// What the program's state history says, in the same words.
pub fn said(history: &StateHistory, pattern: &str, time: &Time) -> Vec<String> {
    let shown = |value| match history.show(value) {
        Shown::Number(number) => number.to_string(),
        Shown::Text(text) => text.to_owned(),
    };
    let lines = history.lines(pattern, time, &Cancel::default()).unwrap();
    let line = |line: &whyslow::parts::timeline::history::lines::HistoryLine| {
        let held: Vec<_> = line.held.iter().map(|held| (held.span, held.value.map(shown))).collect();
        text(&history.attributes().path_of(line.attribute), &held)
    };
    lines.iter().map(line).collect()
}
