//! The R-SHT above the leaves of the store, on the same intervals: segments of as many threads, sealed slab by slab as
//! the kernel pass does.

use super::rsht::interval::Interval;
use super::{COLD, Row, median, random::Random, thread_time, timed};
use std::hint::black_box;
use std::time::Duration;
use whyslow::parts::analysis::leaders::Leaders;
use whyslow::parts::base::column_grid::ColumnGrid;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::time::{Span, Timestamp};
use whyslow::parts::event::host::HostId;
use whyslow::parts::explain::thread_lanes::LaneSource;
use whyslow::parts::model::thread_lanes::LanesRequest;
use whyslow::parts::timeline::history::{StateHistory, StateValue};
use whyslow::parts::timeline::questions::Asker;
use whyslow::parts::timeline::slabs::SegmentSlab;
use whyslow::parts::timeline::window::{LaneQuestion, LaneTable, StateSet};
use whyslow::parts::timeline::{
    Segment, SegmentKind, Tables, Thread, ThreadDraft, ThreadId, ThreadRows, Timeline, TimelineDraft,
};

/// Segments between two slabs for each thread.
const PER_THREAD: usize = 4;
/// Segments between two slabs at least.
const LEAST: usize = 1 << 14;

/// A question, what it is compared with, and the times of both.
struct Compared<'a> {
    question: &'a str,
    with: &'a str,
    time: Duration,
    reference: Duration,
}

/// Print the time of each question and its ratio to that of a reference.
pub fn measure(all: &[Interval], threads: u32, plain: &Row) {
    let slabs = slabs(all, threads);
    let draft = || {
        let threads = (0..threads).map(thread).collect();
        let tables = Tables { span: plain.tree.span(), ..Tables::default() };
        TimelineDraft { threads, tables, ..TimelineDraft::default() }
    };
    let build = |workers: usize| {
        let ctx = Ctx::new(workers);
        let build = |_| {
            let draft = draft();
            timed(|| draft.seal_slabs(&slabs, &ctx).unwrap()).0
        };
        all.len() as f64 / median((0..5).map(build).collect()).as_secs_f64() / 1e6
    };
    let rates = [1, 2].map(build);
    let timeline = draft().seal_slabs(&slabs, &Ctx::new(2)).unwrap();
    let stored = timeline.stored().families;
    let (leaves, bytes, index) = stored
        .iter()
        .fold((0, 0, 0), |(leaves, bytes, index), of| (leaves + of.leaves, bytes + of.bytes, index + of.index_bytes));
    println!(
        "R-SHT above the store: {:.1} M/s built by one worker, {:.1} M/s by two, {:.1} and {:.1} times the plain \
         R-SHT; {leaves} leaves, {:.2} bytes a segment, index {:.0} %",
        rates[0],
        rates[1],
        rates[0] / plain.rate(all.len()),
        rates[1] / plain.rate(all.len()),
        bytes as f64 / all.len() as f64,
        index as f64 / bytes as f64 * 100.0,
    );
    let span = plain.tree.span();
    for of in [single(&timeline, span, threads, plain), many(&timeline, span, threads, plain)] {
        print(&of);
    }
    across(&timeline, span, threads).iter().for_each(print);
    lanes(&timeline, span, threads).iter().for_each(print);
}

fn print(of: &Compared<'_>) {
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    println!(
        "  {:<46} {:>10.2} us, {:.2} times {} ({:.2} us)",
        of.question,
        us(of.time),
        us(of.time) / us(of.reference),
        of.with,
        us(of.reference)
    );
}

/// A thread of a process of a hundred, which lives all the time.
fn thread(number: u32) -> ThreadDraft {
    let life = Span::new(Timestamp::MIN, Timestamp::MAX);
    let mut thread = Thread::new(HostId::at(0), number as i32 + 1, life);
    thread.pid = number as i32 / 100 * 100 + 1;
    ThreadDraft { thread, rows: ThreadRows::default() }
}

/// The intervals as segments, in order of end, as many in each slab as in the kernel pass.
fn slabs(all: &[Interval], threads: u32) -> Vec<SegmentSlab> {
    let kinds =
        [SegmentKind::Running, SegmentKind::Preempted, SegmentKind::Blocked, SegmentKind::Disk, SegmentKind::Network];
    let segment = |of: &Interval| {
        let kind = match of.value {
            StateValue::Code(code) => kinds[usize::from(code) % kinds.len()],
            _ => SegmentKind::Blocked,
        };
        Segment { span: of.span, kind, waker: None, qualifier: None, cpu: 0 }
    };
    let slab = |some: &[Interval]| {
        let mut some = some.to_vec();
        some.sort_by_key(|of| of.attribute);
        let mut slab = SegmentSlab { rows: some.iter().map(segment).collect(), threads: Vec::new() };
        let mut from = 0;
        for same in some.chunk_by(|a, b| a.attribute == b.attribute) {
            slab.threads.push((ThreadId::from_raw(same[0].attribute.raw()), from..from + same.len()));
            from += same.len();
        }
        slab
    };
    all.chunks((PER_THREAD * threads as usize).max(LEAST)).map(slab).collect()
}

/// A random thread at a random moment.
fn single<'a>(timeline: &Timeline, span: Span, threads: u32, plain: &Row) -> Compared<'a> {
    let (reader, mut random) = (timeline.reader(Asker::History), Random::new(42));
    let time = (0..20_000).map(|_| {
        let (thread, t) = (ThreadId::from_raw(random.below(threads as usize) as u32), moment(span, &mut random));
        timed(|| black_box(reader.segments(thread).at(t)).unwrap()).0
    });
    let time = median(time.collect());
    Compared { question: "one thread at a moment, median", with: "the plain R-SHT", time, reference: plain.single }
}

fn moment(span: Span, random: &mut Random) -> Timestamp {
    span.start + random.between(0, span.len())
}

/// A hundred threads at 2,000 moments.
fn many<'a>(timeline: &Timeline, span: Span, threads: u32, plain: &Row) -> Compared<'a> {
    let (reader, mut random) = (timeline.reader(Asker::History), Random::new(7));
    let step = span.len() / 2_000;
    let time = (0..9).map(|_| {
        let some: Vec<_> = (0..100).map(|_| ThreadId::from_raw(random.below(threads as usize) as u32)).collect();
        let ask = |thread: &ThreadId| {
            let mut cursor = reader.segments(*thread);
            (0..2_000).filter_map(|i| cursor.at(span.start + i * step)).map(black_box).count()
        };
        thread_time(|| some.iter().map(ask).sum::<usize>()).0
    });
    let time = median(time.collect());
    Compared { question: "100 threads at 2,000 moments", with: "the plain R-SHT", time, reference: plain.many }
}

/// Forty lanes of 200 columns of all threads, by one worker: in windows, and over all of the time.
fn lanes<'a>(timeline: &Timeline, span: Span, threads: u32) -> [Compared<'a>; 3] {
    let history = StateHistory::new(timeline.clone(), None);
    let leaders = Leaders::new(timeline);
    let (source, ctx) = (LaneSource { history: &history, leaders: &leaders }, Ctx::new(1));
    let mut random = Random::new(42);
    let reader = timeline.reader(Asker::History);
    let mut compared = |question: &'static str, part: i64| {
        let long = span.len() / part;
        let windows: Vec<Span> = (0..9)
            .map(|_| span.start + random.between(0, span.len() - long))
            .map(|start| Span::new(start, start + long))
            .collect();
        let ask = |span: &Span| {
            let request = LanesRequest { span: *span, columns: 200, most: 40, ..LanesRequest::default() };
            thread_time(|| black_box(source.lanes(&request, &ctx).unwrap().lanes.len())).0
        };
        let descend = |of: &Span| {
            let rows = |thread| reader.segments(ThreadId::from_raw(thread)).within(*of).count();
            thread_time(|| (0..threads).map(rows).map(black_box).sum::<usize>()).0
        };
        let time = median(windows.iter().map(ask).collect());
        let reference = median(windows.iter().take(3).map(descend).collect());
        Compared { question, with: "one descent for each thread", time, reference }
    };
    [
        compared("40 lanes of 200 columns, 0.1 % of the time", 1_000),
        compared("40 lanes of 200 columns, 1 % of the time", 100),
        compared("40 lanes of 200 columns, all of the time", 1),
    ]
}

/// All threads at an instant and in a window, as rows and as times in each state.
fn across<'a>(timeline: &Timeline, span: Span, threads: u32) -> [Compared<'a>; 3] {
    let reader = timeline.reader(Asker::History);
    let mut random = Random::new(42);
    let long = span.len() / 100;
    let windows = |long: i64, random: &mut Random| -> Vec<Span> {
        let from = |_| span.start + random.between(0, span.len() - long);
        (0..21).map(from).map(|start| Span::new(start, start + long)).collect()
    };
    let all = |window: &Span| {
        let mut found: Vec<(ThreadId, Segment)> = Vec::new();
        reader.segments_across(*window, |thread, row| found.push((thread, *row)));
        found
    };
    let instants = windows(1, &mut random);
    let full = median(instants.iter().map(|at| thread_time(|| black_box(all(at)).len()).0).collect());
    let results: Vec<_> = instants.iter().map(all).collect();
    assert!(results.iter().all(|found| found.len() == threads as usize));
    black_box(vec![1u8; COLD].iter().fold(0, |all, byte| all ^ byte));
    let copy = median(results.iter().map(|found| thread_time(|| black_box(found.to_vec()).len()).0).collect());
    let windows = windows(long, &mut random);
    let window = median(windows.iter().map(|of| thread_time(|| black_box(all(of)).len()).0).collect());
    let descend = |of: &Span| {
        let mut found: Vec<(ThreadId, Segment)> = Vec::new();
        for thread in (0..threads).map(ThreadId::from_raw) {
            found.extend(reader.segments(thread).within(*of).map(|row| (thread, row)));
        }
        found
    };
    let descents = median(windows.iter().take(5).map(|of| thread_time(|| black_box(descend(of)).len()).0).collect());
    assert_eq!(all(&windows[0]).len(), descend(&windows[0]).len());
    let lanes = LaneTable::new(vec![0; threads as usize]);
    let sum = |span: &Span| {
        let mut times = [0; SegmentKind::ALL.len()];
        let asked = LaneQuestion { grid: &ColumnGrid::of(*span, 1), lanes: &lanes, states: StateSet::ALL };
        let places = reader.lane_places(&asked);
        reader.lane_times(&asked, &places, 0..places.len(), |_, _, kind, ns| times[kind] += ns.unwrap_or(0));
        times
    };
    let times = median(windows.iter().map(|of| thread_time(|| sum(of)).0).collect());
    let descent = "one descent for each thread";
    [
        Compared { question: "all threads at an instant", with: "copying the result", time: full, reference: copy },
        Compared { question: "all threads in 1 % of the time", with: descent, time: window, reference: descents },
        Compared { question: "time in each state, 1 % of the time", with: descent, time: times, reference: descents },
    ]
}
