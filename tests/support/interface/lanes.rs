//! Made-up states of twelve threads of two processes: each state follows from the number of the thread and the time.

use whyslow::parts::base::column_grid::ColumnGrid;
use whyslow::parts::base::time::{Span, Timestamp};
use whyslow::parts::model::execution_timeline::TimelineThread;
use whyslow::parts::model::thread_lanes::{
    KINDS, LaneOwner, LaneThread, LanesRequest, ThreadLane, ThreadLanes, ThreadMoment,
};
use whyslow::parts::timeline::SegmentKind;

const THREADS: u32 = 12;
/// Segments of the whole recording.
const SEGMENTS: usize = 240;

fn thread(number: u32) -> LaneThread {
    let (process, pid) = if number < 8 { ("ledgerd", 311) } else { ("auditlogd", 90) };
    let name = if number.is_multiple_of(8) { process.to_owned() } else { format!("worker-{number}") };
    let names = TimelineThread { host: "db3".into(), process: process.into(), name, pid, tid: pid + number as i32 };
    LaneThread { number, names }
}

/// The state of a thread in a segment of the recording.
fn state(number: u32, segment: usize) -> SegmentKind {
    use SegmentKind::{Blocked, Disk, Preempted, Running, Timer};
    let kinds = [Running, Blocked, Timer, Running, Preempted, Blocked, Disk];
    kinds[(segment * (number as usize + 3) / 7 + number as usize) % kinds.len()]
}

fn cells(numbers: &[u32], grid: &ColumnGrid, recorded: Span) -> Vec<[u64; KINDS]> {
    let segments = ColumnGrid::of(recorded, SEGMENTS);
    let cell = |column: usize| {
        let mut times = [0; KINDS];
        let span = grid.span(column);
        for (segment, ns) in segments.parts(span.start.ns()..span.end.ns()) {
            numbers.iter().for_each(|number| times[state(*number, segment) as usize] += ns);
        }
        times
    };
    (0..grid.columns()).map(cell).collect()
}

/// The lanes that a request asks for: the threads of ledgerd share one unless they are unfolded.
pub fn lanes(request: &LanesRequest, recorded: Span) -> ThreadLanes {
    let grid = ColumnGrid::of(request.span.clip(recorded), request.columns);
    let has = |number: &u32| {
        let names = thread(*number).names;
        request.only.is_empty() || request.only.iter().any(|word| names.name.contains(word) || names.process == *word)
    };
    let all: Vec<u32> = (0..THREADS).filter(has).collect();
    let is_own = |number: &u32| *number >= 8 || !request.open.is_empty() || request.own.contains(number);
    let (own, folded): (Vec<u32>, Vec<u32>) = all.into_iter().partition(is_own);
    let of_thread =
        |number: u32| ThreadLane { owner: LaneOwner::Thread(thread(number)), cells: cells(&[number], &grid, recorded) };
    let mut lanes: Vec<ThreadLane> = Vec::new();
    if request.cpus {
        let owner = LaneOwner::Cpu { host: "db3".into(), cpu: 0 };
        let mut cells = cells(&[3], &grid, recorded);
        cells.iter_mut().for_each(|times| times[1..].fill(0));
        lanes.push(ThreadLane { owner, cells });
    }
    if let Some(first) = folded.first() {
        let owner = LaneOwner::Process { first: thread(*first), threads: folded.len() };
        lanes.push(ThreadLane { owner, cells: cells(&folded, &grid, recorded) });
    }
    lanes.extend(own.into_iter().map(of_thread));
    ThreadLanes { grid, of_ranks: false, hosts: 1, recorded, lanes }
}

/// What a thread does at a moment; it waits for the next one.
pub fn moment(number: u32, at: Timestamp, recorded: Span) -> ThreadMoment {
    let segments = ColumnGrid::of(recorded, SEGMENTS);
    let segment = segments.column(at.ns()).unwrap_or(0);
    let (kind, span) = (state(number, segment), segments.span(segment));
    let is_wait = kind.is_wait();
    ThreadMoment {
        thread: thread(number),
        span,
        kind,
        qualifier: String::new(),
        cpu: (!is_wait).then_some(1),
        call: if is_wait { "futex".into() } else { String::new() },
        functions: vec!["worker_main".into(), "append_entry".into()],
        waker: is_wait.then(|| (thread((number + 1) % THREADS), span.end)),
    }
}
