//! The state history answers like the plain one of the same rows, and reads the leaves of its question.

use super::plain::{Plain, PlainHistory, said};
use crate::support::random::Random;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use whyslow::parts::base::column_grid::ColumnGrid;
use whyslow::parts::base::ctx::{Cancel, Ctx};
use whyslow::parts::base::file::Output;
use whyslow::parts::base::notice::Notices;
use whyslow::parts::base::time::{Ns, Span, Timestamp};
use whyslow::parts::event::host::HostId;
use whyslow::parts::input::{Argument, Opened, open};
use whyslow::parts::kernel::{Options, record};
use whyslow::parts::saved::SavedKind;
use whyslow::parts::saved::container::{SavedFile, SavedFileWriter};
use whyslow::parts::saved::states::{self, LeafChecks, StatesOf};
use whyslow::parts::timeline::history::lines::{Longest, Time};
use whyslow::parts::timeline::history::{STATES, StateHistory, ThreadActivity};
use whyslow::parts::timeline::questions::Asker;
use whyslow::parts::timeline::{
    Call, CpuRun, CpuTimeline, Segment, SegmentKind, Thread, ThreadDraft, ThreadId, ThreadName, ThreadRows, Timeline,
    TimelineDraft,
};

fn recorded(path: &str) -> Timeline {
    recorded_in_leaves(path, Options::default().seal_every)
}

/// The same, with rows sealed every so many events on average.
pub fn recorded_in_leaves(path: &str, seal_every: usize) -> Timeline {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(path);
    let Ok(Opened::Traces(sources)) = open(&[Argument::new(path)], &Ctx::new(2)) else { panic!("no traces") };
    let traces: Vec<_> = sources.iter().map(|source| &source.trace).collect();
    record(&traces, &[], &Options { seal_every, ..Options::default() }, &Ctx::new(2)).unwrap().0.seal()
}

const PATTERNS: [&str; 11] = [
    "threads/*/state",
    "threads/*/cpu",
    "threads/*/syscall",
    "threads/*/name",
    "threads/*/pid",
    "threads/*/ppid",
    "cpus/*/thread",
    "threads/7/*",
    "threads/7/state",
    "threads",
    "nothing",
];

fn answers_like_the_plain_one(timeline: &Timeline, beginning: Option<Span>, random: &mut Random, times: usize) {
    let plain = PlainHistory::new(timeline, beginning);
    let view = StateHistory::new(timeline.clone(), beginning);
    let paths: Vec<String> = view.attributes().ids().map(|id| view.attributes().path_of(id)).collect();
    let named: Vec<&String> = paths
        .iter()
        .filter(|path| path.matches('/').count() == 2 || path.starts_with("cpus/") && path.ends_with("thread"))
        .collect();
    assert_eq!(named, plain.all.iter().map(|(path, _)| path).collect::<Vec<_>>());
    assert_eq!(timeline.check(), None);
    assert!(view.is_same(&StateHistory::new(timeline.clone(), beginning), &Cancel::default()));
    let window = view.window();
    let long = window.len().max(1);
    let mut moment = || window.start + random.below((long + long / 4) as usize) as Ns - long / 8;
    for _ in 0..times {
        let (from, to) = (moment(), moment());
        let part = Span::new(from.min(to), from.max(to));
        let asked = [
            Time::Range(window),
            Time::Range(part),
            Time::Range(Span::new(from, from)),
            Time::Instants(vec![to, from, moment(), from]),
            Time::Points(part, 7),
            Time::Points(window, 300),
            Time::Points(part, 0),
            Time::Longest(Longest { span: part, count: 1_000_000, value: None }),
        ];
        for pattern in PATTERNS {
            for time in &asked {
                let (mut expected, mut found) = (plain.said(&view, pattern, time), said(&view, pattern, time));
                if matches!(time, Time::Longest(..)) {
                    // The order of equal spans of two attributes is no promise.
                    expected.sort();
                    found.sort();
                }
                assert_eq!(found, expected, "{pattern} {time:?}");
            }
        }
    }
}

/// What is said of all threads at once is the sum of what is said of each.
fn all_threads_are_the_sum(timeline: &Timeline, beginning: Option<Span>, whole: Span, columns: usize) {
    let grid = ColumnGrid::of(whole, columns);
    let cells: Vec<Span> = (0..columns).map(|column| grid.span(column)).collect();
    let plain = PlainHistory::new(timeline, beginning);
    let view = StateHistory::new(timeline.clone(), beginning);
    let states = || plain.all.iter().filter(|(path, _)| path.ends_with("/state")).map(|(path, own)| (path, own));
    for workers in [1, 3] {
        let found = view.times_of_all(&grid, &Ctx::new(workers)).unwrap();
        for (cell, found) in cells.iter().zip(found) {
            let mut summed: BTreeMap<&str, u64> = BTreeMap::new();
            for (span, state) in states().flat_map(|(_, own)| own) {
                let inside = span.clip(*cell);
                if !inside.is_empty() {
                    *summed.entry(state).or_default() += inside.len() as u64;
                }
            }
            let found: BTreeMap<&str, u64> =
                found.into_iter().map(|(code, ns)| (STATES[usize::from(code)], ns)).collect();
            assert_eq!(found, summed, "{cell:?}");
        }
    }
    for cell in &cells {
        let in_disk = |own: &[Plain]| own.iter().any(|(span, state)| state == "disk" && !span.clip(*cell).is_empty());
        let wanted = states().filter(|(_, own)| in_disk(own));
        let found = view.tids_in(*cell, ThreadActivity::State("disk"));
        for (path, _) in wanted {
            let tid = path.split('/').nth(1).unwrap().parse().unwrap();
            assert!(found.contains(&tid), "{path} {cell:?}");
        }
    }
}

#[test]
fn view_of_recordings_answers_like_the_plain_one() {
    let mut random = Random::new(3);
    for path in ["traces/cpu-contention/kernel", "traces/lost-events", "recorders/v7.dat"] {
        let timeline = recorded(path);
        answers_like_the_plain_one(&timeline, None, &mut random, 1);
        let span = timeline.span();
        let beginning = Span::new(span.start, span.start + span.len() / 3);
        answers_like_the_plain_one(&timeline, Some(beginning), &mut random, 1);
        for (beginning, whole) in [(None, span), (Some(beginning), beginning)] {
            all_threads_are_the_sum(&timeline, beginning, whole, 9);
        }
    }
}

/// Threads whose rows contradict each other: calls in calls, several threads of one tid at a time, empty rows, gaps.
pub fn contradictory(random: &mut Random) -> Timeline {
    let mut draft = TimelineDraft::default();
    let names = ["host", "one", "two", "three"].map(|name| draft.tables.names.intern(name));
    let host = HostId::at(0);
    draft.tables.hosts = vec![whyslow::parts::timeline::Host { name: names[0], kernel_release: None }];
    draft.tables.quality = vec![Default::default()];
    draft.tables.span = Span::of_ns(0, 1_000);
    for tid in [7, 7, 8, 9, 10, 11] {
        let mut rows = ThreadRows::default();
        let from = random.below(200) as Ns;
        let mut at = from;
        while at < 900 {
            let span = Span::of_ns(at, at + random.below(40) as Ns);
            let kinds = [SegmentKind::Running, SegmentKind::Disk, SegmentKind::Unknown, SegmentKind::Unknown];
            let kind = kinds[random.below(if tid == 11 { 4 } else { 3 })];
            rows.segments.push(Segment { span, kind, waker: None, qualifier: None, cpu: random.below(2) as u32 });
            at = span.end.ns();
        }
        let mut start = 0;
        for _ in 0..random.below(30) {
            start += random.below(30) as Ns;
            let span = Span::of_ns(start, start + random.below(60) as Ns);
            rows.calls.push(Call { span, name: names[1 + random.below(3)], ret: None, descriptor: None });
        }
        let mut thread = Thread::new(host, tid, Span::of_ns(from, at));
        thread.pid = [0, 7][random.below(2)];
        thread.names = vec![
            ThreadName { from: Timestamp::new(from), name: names[1] },
            ThreadName { from: Timestamp::new(from + random.below(300) as Ns), name: names[1 + random.below(2)] },
        ];
        draft.threads.push(ThreadDraft { thread, rows });
    }
    let mut end = 0;
    let runs = (0..random.below(60)).map(|_| {
        let start = end + [0, 0, 5][random.below(3)];
        end = start + random.below(20) as Ns;
        CpuRun { span: Span::of_ns(start, end), thread: ThreadId::at(random.below(6)) }
    });
    draft.cpus = vec![CpuTimeline { host, cpu: 0, runs: runs.collect() }];
    draft.seal()
}

#[test]
fn view_of_contradictory_rows_answers_like_the_plain_one() {
    for seed in 0..30 {
        let mut random = Random::new(seed);
        let timeline = contradictory(&mut random);
        let beginning = (seed % 3 == 0).then(|| Span::of_ns(0, 1 + random.below(900) as Ns));
        let until = beginning.map_or(1_000, |span: Span| span.end.ns());
        all_threads_are_the_sum(&timeline, beginning, Span::of_ns(0, until), 11);
        // `--check` of these finds what contradicts itself in the rows: only the answers are compared.
        let plain = PlainHistory::new(&timeline, beginning);
        let view = StateHistory::new(timeline.clone(), beginning);
        for _ in 0..20 {
            let moment = |random: &mut Random| Timestamp::new(random.below(1_100) as Ns - 50);
            let (from, to) = (moment(&mut random), moment(&mut random));
            let part = Span::new(from.min(to), from.max(to));
            let times = [
                Time::Range(part),
                Time::Instants(vec![to, from]),
                Time::Instants((0..1_000).step_by(7).map(Timestamp::new).collect()),
                Time::Points(part, 11),
            ];
            for pattern in PATTERNS {
                for time in &times {
                    let (expected, found) = (plain.said(&view, pattern, time), said(&view, pattern, time));
                    assert_eq!(found, expected, "seed {seed}: {pattern} {time:?}");
                }
            }
        }
    }
}

/// A history file, opened anew for each question, which is cold then.
struct Cold(tempfile::TempPath);

impl Cold {
    fn of(timeline: &Timeline) -> Cold {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        std::fs::remove_file(&path).unwrap();
        let mut writer = SavedFileWriter::new(SavedKind::States);
        states::write(timeline, StatesOf::AllEvents, &mut writer);
        writer.save(Output::open(&path).unwrap()).unwrap();
        Cold(path)
    }

    /// The answer, and how many leaves were read for it.
    fn ask<T>(&self, question: impl FnOnce(Timeline, &dyn Fn() -> u64) -> T) -> (T, u64) {
        let ctx = Ctx::new(1);
        let opened = Arc::new(SavedFile::open(&self.0, SavedKind::States).unwrap());
        let how = (StatesOf::AllEvents, LeafChecks::WhenRead);
        let timeline = states::read(&opened, how, &mut Notices::default(), &ctx).unwrap();
        let read = || ctx.progress.leaves_read.load(Ordering::Relaxed);
        assert_eq!(read(), 0, "opening reads no leaf");
        let answer = question(timeline, &read);
        (answer, read())
    }
}

/// The leaf in which each segment of a thread is, by number: the leaves that were read when a walk came to it.
fn leaves_of(cold: &Cold, thread: ThreadId) -> Vec<(Span, u64)> {
    let walk = |timeline: Timeline, read: &dyn Fn() -> u64| {
        let reader = timeline.reader(Asker::History);
        let mut cursor = reader.segments(thread);
        let mut all = Vec::new();
        let mut row = cursor.first();
        while let Some(segment) = row {
            all.push((segment.span, read()));
            row = cursor.next_row();
        }
        all
    };
    cold.ask(walk).0
}

#[test]
fn questions_read_the_leaves_of_the_cost_model() {
    let timeline = recorded("traces/lock-contention");
    let cold = Cold::of(&timeline);
    let reader = timeline.reader(Asker::History);
    let mut threads: Vec<ThreadId> = timeline.threads_by_id().map(|(id, _)| id).collect();
    threads.sort_by_key(|id| std::cmp::Reverse(reader.segments(*id).len()));
    let mut random = Random::new(5);
    let mut most_leaves = 0;
    for thread in threads.into_iter().take(4) {
        let rows = leaves_of(&cold, thread);
        let leaves = rows.last().unwrap().1;
        most_leaves = most_leaves.max(leaves);
        // All rows: each leaf of the line once; so does a walk by moments.
        let all =
            |timeline: Timeline, _: &dyn Fn() -> u64| timeline.reader(Asker::History).segments(thread).all().count();
        assert_eq!(cold.ask(all), (rows.len(), leaves));
        let walk = |timeline: Timeline, _: &dyn Fn() -> u64| {
            let reader = timeline.reader(Asker::History);
            let mut cursor = reader.segments(thread);
            rows.iter().filter(|(span, _)| cursor.at(span.start).is_some_and(|row| row.span == *span)).count()
        };
        assert_eq!(cold.ask(walk), (rows.len(), leaves));
        for _ in 0..20 {
            let at = random.below(rows.len());
            let (span, leaf) = rows[at];
            // At a moment: one leaf. The same again, and neighbours in the leaf: none.
            let near = |timeline: Timeline, read: &dyn Fn() -> u64| {
                let reader = timeline.reader(Asker::History);
                let mut cursor = reader.segments(thread);
                assert_eq!(cursor.at(span.start).map(|row| row.span), Some(span));
                assert_eq!(read(), 1);
                assert_eq!(cursor.at(span.end - 1).map(|row| row.span), Some(span));
                assert_eq!(read(), 1);
                let next = cursor.next_row().map(|row| row.span);
                assert_eq!(next, rows.get(at + 1).map(|(span, _)| *span));
            };
            let is_same_leaf = rows.get(at + 1).is_none_or(|(_, next)| *next == leaf);
            assert_eq!(cold.ask(near).1, if is_same_leaf { 1 } else { 2 });
            // A span: the leaves that have its rows, and that of the row that ends it, where that is another.
            let until = random.below(rows.len() - at) + at;
            let wanted = Span::new(span.start, rows[until].0.end);
            let within = |timeline: Timeline, _: &dyn Fn() -> u64| {
                timeline.reader(Asker::History).segments(thread).within(wanted).count()
            };
            let behind = rows.get(until + 1).map_or(rows[until].1, |(_, next)| *next);
            let (count, read) = cold.ask(within);
            assert_eq!(count, until - at + 1);
            assert!((rows[until].1 - leaf + 1..=behind - leaf + 1).contains(&read), "{read}");
        }
    }
    assert!(most_leaves >= 3, "{most_leaves}: a line of several leaves is wanted");
}

/// Leaves that questions at an instant read, by number; the last for more.
type Reads = [u32; 6];

/// Cells of a long line are added up from its sums: the leaves about their borders are read, not those between them.
#[test]
fn cells_of_a_thread_read_the_leaves_about_their_borders() {
    let mut saved = 0;
    for seal_every in [1, 300] {
        let timeline = recorded_in_leaves("traces/lock-contention", seal_every);
        let (cold, reader) = (Cold::of(&timeline), timeline.reader(Asker::History));
        let mut threads: Vec<(ThreadId, &Thread)> = timeline.threads_by_id().filter(|(_, of)| !of.idle).collect();
        threads.sort_by_key(|(id, _)| std::cmp::Reverse(reader.segments(*id).len()));
        cold.ask(|timeline, _| assert_eq!(timeline.check(), None));
        let span = timeline.span();
        for beginning in [None, Some(Span::new(span.start, span.start + span.len() / 2))] {
            let plain = PlainHistory::new(&timeline, beginning);
            let view = StateHistory::new(timeline.clone(), beginning);
            for (_, thread) in &threads[..4] {
                let path = format!("threads/{}/state", thread.tid);
                let ask = |time: &Time| {
                    let (found, read) =
                        cold.ask(|timeline, _| said(&StateHistory::new(timeline, beginning), &path, time));
                    assert_eq!(found, plain.said(&view, &path, time), "{path} {time:?}");
                    read
                };
                let middle = Span::new(span.start + span.len() / 5, span.start + span.len() / 5 * 4);
                ask(&Time::Points(middle, 300));
                let (cells, rows) = (ask(&Time::Points(middle, 3)), ask(&Time::Range(middle)));
                println!("sealed every {seal_every}, {path}, {beginning:?}: {cells} leaves, {rows} by rows");
                saved += u32::from(cells * 3 < rows);
            }
        }
    }
    assert!(saved >= 4, "{saved}");
}

/// Instants about the first rows of leaves, and others anywhere.
fn instants(cold: &Cold, timeline: &Timeline, random: &mut Random) -> Vec<Timestamp> {
    let reader = timeline.reader(Asker::History);
    let mut threads: Vec<ThreadId> =
        timeline.threads_by_id().filter(|(_, thread)| !thread.idle).map(|(id, _)| id).collect();
    threads.sort_by_key(|id| std::cmp::Reverse(reader.segments(*id).len()));
    let mut instants = Vec::new();
    for thread in threads.into_iter().take(3) {
        let rows = leaves_of(cold, thread);
        let borders: Vec<Span> = rows.windows(2).filter(|of| of[0].1 != of[1].1).map(|of| of[1].0).collect();
        for _ in 0..4 {
            let Some(border) = borders.get(random.below(borders.len().max(1))) else { continue };
            instants.extend([border.start.saturating_sub(1), border.start, border.end]);
        }
    }
    let span = timeline.span();
    instants.extend((0..12).map(|_| span.start + random.below(span.len() as usize) as Ns));
    instants
}

/// Ask a cold file for one attribute at an instant: like the plain history.
fn ask_cold(timeline: &Timeline, beginning: Option<Span>, random: &mut Random) -> (Reads, Reads) {
    let cold = Cold::of(timeline);
    let plain = PlainHistory::new(timeline, beginning);
    let view = StateHistory::new(timeline.clone(), beginning);
    let tids = |tid: i32| timeline.threads_by_id().filter(|(_, thread)| thread.tid == tid).count();
    let of_one = |path: &String| match path.split('/').collect::<Vec<_>>().as_slice() {
        ["threads", tid, _] => tids(tid.parse().unwrap()) == 1,
        _ => true,
    };
    let instants = instants(&cold, timeline, random);
    let (mut reads, mut by_rows) = (Reads::default(), Reads::default());
    for pattern in ["threads/*/state", "threads/*/cpu", "threads/*/syscall", "cpus/*/thread"] {
        let paths: Vec<String> =
            view.attributes().matching(pattern).iter().map(|id| view.attributes().path_of(*id)).collect();
        let paths: Vec<&String> = paths.iter().filter(|path| of_one(path)).collect();
        for t in &instants {
            let path = paths[random.below(paths.len())];
            let ask = |time: &Time| {
                let lines =
                    |timeline: Timeline, _: &dyn Fn() -> u64| said(&StateHistory::new(timeline, beginning), path, time);
                cold.ask(lines)
            };
            let at = Time::Instants(vec![*t]);
            let (found, read) = ask(&at);
            assert_eq!(found, plain.said(&view, path, &at), "{path} {t:?}");
            assert!(read <= 2, "{read} leaves for {path} at {t:?}: {found:?}");
            reads[read as usize] += 1;
            let (_, read) = ask(&Time::Range(Span::new(*t, *t + 1)));
            by_rows[read.min(5) as usize] += 1;
        }
    }
    (reads, by_rows)
}

#[test]
fn cold_query_reads_two_leaves_at_most() {
    let mut random = Random::new(9);
    let (mut all, mut all_by_rows) = (Reads::default(), Reads::default());
    for path in ["traces/lock-contention", "traces/cpu-contention/kernel", "traces/lost-events", "recorders/v7.dat"] {
        for seal_every in [1, 300, Options::default().seal_every] {
            let timeline = recorded_in_leaves(path, seal_every);
            let span = timeline.span();
            for beginning in [None, Some(Span::new(span.start, span.start + span.len() / 2))] {
                let (reads, by_rows) = ask_cold(&timeline, beginning, &mut random);
                println!("{path}, sealed every {seal_every}, {beginning:?}: {reads:?}, by rows {by_rows:?}");
                all.iter_mut().zip(reads).for_each(|(all, reads)| *all += reads);
                all_by_rows.iter_mut().zip(by_rows).for_each(|(all, reads)| *all += reads);
            }
        }
    }
    println!("{all:?}, by rows {all_by_rows:?}");
    // The same by the rows about the instant takes more: there are intervals over several leaves.
    assert!(all[2] > 100 && all_by_rows[3..].iter().sum::<u32>() > 100, "{all:?} {all_by_rows:?}");
}
