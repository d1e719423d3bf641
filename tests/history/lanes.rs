//! Many threads over time: each lane is the sum of a scan of its threads, and the leaves that are read are those that
//! meet the time.

use super::view::{contradictory, recorded_in_leaves};
use crate::support::random::Random;
use std::collections::{BTreeMap, BTreeSet};
use whyslow::parts::analysis::leaders::Leaders;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::time::{Ns, Span};
use whyslow::parts::event::host::HostId;
use whyslow::parts::explain::thread_lanes::LaneSource;
use whyslow::parts::model::thread_lanes::{LaneOwner, LanesRequest, ThreadLanes};
use whyslow::parts::timeline::history::StateHistory;
use whyslow::parts::timeline::questions::Asker;
use whyslow::parts::timeline::slabs::SegmentSlab;
use whyslow::parts::timeline::{
    Segment, SegmentKind, Thread, ThreadDraft, ThreadId, ThreadRows, Timeline, TimelineDraft,
};

fn lanes(history: &StateHistory, request: &LanesRequest, workers: usize) -> ThreadLanes {
    let leaders = &Leaders::new(history.timeline());
    LaneSource { history, leaders }.lanes(request, &Ctx::new(workers)).unwrap()
}

/// The time of threads in each column and kind, of all their rows.
fn scan(timeline: &Timeline, threads: &BTreeSet<u32>, found: &ThreadLanes) -> Vec<Vec<u64>> {
    let reader = timeline.reader(Asker::Explain);
    let mut cells = vec![vec![0; SegmentKind::ALL.len()]; found.grid.columns()];
    for number in threads {
        for row in reader.segments(ThreadId::from_raw(*number)).all() {
            for (column, cell) in cells.iter_mut().enumerate() {
                let inside = row.span.clip(found.grid.span(column));
                if !inside.is_empty() {
                    cell[row.kind as usize] += inside.len() as u64;
                }
            }
        }
    }
    cells
}

/// The threads of each lane: those that have their own, then of each process the rest, then all others.
fn threads_of(timeline: &Timeline, living: &BTreeSet<u32>, found: &ThreadLanes) -> Vec<BTreeSet<u32>> {
    let mut left = living.clone();
    let mut of: BTreeMap<usize, BTreeSet<u32>> = BTreeMap::new();
    for (at, lane) in found.lanes.iter().enumerate() {
        if let LaneOwner::Thread(thread) = &lane.owner {
            assert!(left.remove(&thread.number), "a thread has two lanes");
            of.insert(at, [thread.number].into());
        }
    }
    let process = |number: &u32| timeline.thread(ThreadId::from_raw(*number)).map(|thread| (thread.host, thread.pid));
    for (at, lane) in found.lanes.iter().enumerate() {
        if let LaneOwner::Process { first, threads } = &lane.owner {
            let own: BTreeSet<u32> =
                left.iter().copied().filter(|number| process(number) == process(&first.number)).collect();
            assert_eq!(own.len(), *threads);
            left.retain(|number| !own.contains(number));
            of.insert(at, own);
        }
    }
    if let Some(LaneOwner::Others { threads }) = found.lanes.last().map(|lane| &lane.owner) {
        assert_eq!(left.len(), *threads);
        of.insert(found.lanes.len() - 1, std::mem::take(&mut left));
    }
    assert!(left.is_empty(), "{left:?} have no lane");
    of.into_values().collect()
}

fn lanes_are_sums(timeline: &Timeline, random: &mut Random) {
    let history = StateHistory::new(timeline.clone(), None);
    let whole = timeline.span();
    for _ in 0..8 {
        let from = whole.start + random.below(whole.len() as usize) as Ns;
        let length = [whole.len(), whole.len() / 50 + 1, 37][random.below(3)];
        let span = if random.below(3) == 0 { whole } else { Span::new(from, from + length) };
        let columns = [1, 7, 120][random.below(3)];
        let request = LanesRequest { span, columns, most: [2, 3, 9, 500][random.below(4)], ..Default::default() };
        let found = lanes(&history, &request, 1);
        assert_eq!(found, lanes(&history, &request, 3), "{request:?}");
        assert!(found.lanes.len() <= request.most);
        let shown = found.grid.whole();
        let is_alive = |thread: &Thread| !thread.idle && !thread.life.clip(shown).is_empty();
        let living = timeline.threads_by_id().filter(|(_, thread)| is_alive(thread)).map(|(id, _)| id.raw()).collect();
        for (lane, threads) in found.lanes.iter().zip(threads_of(timeline, &living, &found)) {
            let scanned = scan(timeline, &threads, &found);
            let cells: Vec<Vec<u64>> = lane.cells.iter().map(|cell| cell.to_vec()).collect();
            assert_eq!(cells, scanned, "{:?} {request:?}", lane.owner);
        }
        let all_have_lanes = found.lanes.iter().all(|lane| matches!(lane.owner, LaneOwner::Thread(_)));
        let active =
            |cells: &[[u64; SegmentKind::ALL.len()]]| cells.iter().map(|cell| found.active_ns(cell)).sum::<u64>();
        let by_activity: Vec<u64> = found.lanes.iter().map(|lane| active(&lane.cells)).collect();
        assert!(!all_have_lanes || by_activity.is_sorted_by(|a, b| a >= b), "{by_activity:?}");
    }
}

#[test]
fn lanes_are_the_sums_of_a_scan() {
    let mut random = Random::new(11);
    for path in
        ["traces/cpu-contention/kernel", "traces/lock-contention/kernel", "traces/lost-events", "recorders/v7.dat"]
    {
        lanes_are_sums(&recorded_in_leaves(path, 300), &mut random);
    }
    for _ in 0..20 {
        lanes_are_sums(&contradictory(&mut random), &mut random);
    }
}

#[test]
fn words_and_names_choose_lanes() {
    let timeline = recorded_in_leaves("traces/lock-contention/kernel", 300);
    let history = StateHistory::new(timeline.clone(), None);
    let all = LanesRequest { span: timeline.span(), columns: 10, most: 500, ..Default::default() };
    let names = |request: &LanesRequest| -> Vec<(String, i32, i32)> {
        let named = |owner: &LaneOwner| match owner {
            LaneOwner::Thread(thread) => Some((thread.names.name.clone(), thread.names.pid, thread.names.tid)),
            _ => None,
        };
        lanes(&history, request, 2).lanes.iter().filter_map(|lane| named(&lane.owner)).collect()
    };
    let every = names(&all);
    let (name, pid, tid) = every.iter().find(|(_, pid, tid)| pid != tid).unwrap().clone();
    let of_process: Vec<_> = every.iter().filter(|(_, own, other)| *own == pid || *other == pid).cloned().collect();
    assert!(of_process.len() > 1 && of_process.len() < every.len());
    assert_eq!(names(&LanesRequest { only: vec![pid.to_string()], ..all.clone() }), of_process);
    let of_name = names(&LanesRequest { only: vec![name[..3].to_owned()], ..all.clone() });
    assert!(of_name.contains(&(name, pid, tid)) && of_name.len() < every.len(), "{of_name:?}");
    assert_eq!(names(&LanesRequest { only: vec!["no such thread".into()], ..all.clone() }), []);
    // A cause comes first, although others are busier.
    let last = every.last().unwrap().clone();
    let host = timeline.names().get(timeline.hosts()[0].name).to_owned();
    let few = LanesRequest { most: 4, causes: vec![(host, last.2)], ..all };
    assert_eq!(names(&few)[0], last);
}

/// 100,000 threads that sleep, of which 50 at a time take turns in running.
fn sleepers() -> Timeline {
    const THREADS: u32 = 100_000;
    const SLABS: i64 = 60;
    let end = SLABS * 1_000;
    let mut draft = TimelineDraft::default();
    draft.tables.span = Span::of_ns(0, end);
    let thread = |number: u32| {
        let mut thread = Thread::new(HostId::at(0), number as i32 + 1, Span::of_ns(0, end));
        thread.pid = 1 + number as i32 / 100;
        ThreadDraft { thread, rows: ThreadRows::default() }
    };
    draft.threads = (0..THREADS).map(thread).collect();
    let segment = |span, kind| Segment { span, kind, waker: None, qualifier: None, cpu: 0 };
    let mut at = vec![0; THREADS as usize];
    let mut slabs = Vec::new();
    for slab in 0..SLABS {
        let mut made = SegmentSlab::default();
        for number in (slab as u32 * 50)..(slab as u32 + 1) * 50 {
            let from = made.rows.len();
            for turn in 0..40 {
                let start = slab * 1_000 + turn * 25;
                made.rows.push(segment(Span::of_ns(at[number as usize], start), SegmentKind::Timer));
                made.rows.push(segment(Span::of_ns(start, start + 5), SegmentKind::Running));
                at[number as usize] = start + 5;
            }
            made.rows.retain(|row| !row.span.is_empty());
            made.threads.push((ThreadId::from_raw(number), from..made.rows.len()));
        }
        slabs.push(made);
    }
    let mut last = SegmentSlab::default();
    for (number, at) in (0..THREADS).zip(at) {
        last.threads.push((ThreadId::from_raw(number), last.rows.len()..last.rows.len() + 1));
        last.rows.push(segment(Span::of_ns(at, end), SegmentKind::Timer));
    }
    slabs.push(last);
    draft.seal_slabs(&slabs, &Ctx::new(2)).unwrap()
}

#[test]
fn lanes_of_a_window_read_the_leaves_that_meet_it() {
    let timeline = sleepers();
    let history = StateHistory::new(timeline.counted(), None);
    let request = LanesRequest { span: Span::of_ns(30_100, 30_900), columns: 100, most: 40, ..Default::default() };
    let found = lanes(&history, &request, 2);
    let asked = history.timeline().questions().unwrap().all();
    let read: u64 = asked.values().map(|cost| cost.leaves).sum();
    assert!(asked.keys().all(|of| of.access == "across"), "no thread is asked by itself: {asked:?}");
    // The last slab has the sleep of all threads, which meets every window; one row in 64 of it is lifted.
    let sleep = 100_000_u64.div_ceil(2_048) + 100_000_u64.div_ceil(64);
    assert!(read <= 2 * (sleep + 10), "{read}");
    let busiest = match &found.lanes[0].owner {
        LaneOwner::Process { first, .. } => first.number,
        other => panic!("{other:?}"),
    };
    assert_eq!(busiest / 50, 30, "the process that runs in the window");
    let threads = |owner: &LaneOwner| match owner {
        LaneOwner::Thread(_) => 1,
        LaneOwner::Process { threads, .. } | LaneOwner::Others { threads } => *threads,
        LaneOwner::Cpu { .. } => 0,
    };
    assert_eq!(found.lanes.iter().map(|lane| threads(&lane.owner)).sum::<usize>(), 100_000);
}
