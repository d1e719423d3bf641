//! The cells of an execution's timeline: which state a thread shows in each column of a drawing.
//!
//! In: an [`ExecutionTimeline`] and a range of its times, divided into columns. Out: a cell per thread and column, with
//! the state that has most time in it. Screen and text share it, so that both show the same. Cost: linear in the
//! segments and waits of the range, plus the columns that each of them covers.

use crate::base::column_grid::ColumnGrid;
use crate::base::time::Ns;
use crate::base::{clean, figure};
use crate::model::execution_timeline::{ExecutionTimeline, TimelineEvent, TimelineEventKind, TimelineThread};
use crate::model::wait_kind::WaitKind;
use std::ops::Range;

/// A cell of a drawing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LaneCell {
    /// The path does not touch the thread.
    #[default]
    Empty,
    /// It waits for another thread on the path.
    Waits,
    /// The path is in the thread, in this state.
    State(WaitKind),
}

/// Kinds of time of a cell: those of [`WaitKind::ALL`], and waits.
const KINDS: usize = WaitKind::ALL.len() + 1;

/// The letter of a state.
pub fn letter(state: WaitKind) -> char {
    state.row().letter
}

/// A state in words.
pub fn state_name(state: WaitKind) -> &'static str {
    state.row().state
}

/// A thread with its id; once where its name has the id.
pub fn thread_name(thread: &TimelineThread) -> String {
    let (name, tid) = (clean::text(&thread.name), thread.tid.to_string());
    if name.split([' ', '/', '-']).any(|word| word == tid) { name.into_owned() } else { format!("{name} {tid}") }
}

/// The cells of each thread over a range of times, in this many columns.
pub fn cells(timeline: &ExecutionTimeline, window: &Range<Ns>, columns: usize) -> Vec<Vec<LaneCell>> {
    let threads = timeline.threads.len();
    let grid = ColumnGrid::new(window, columns);
    let mut times = vec![[0_u64; KINDS]; threads * columns];
    let add = |times: &mut Vec<[u64; KINDS]>, thread: u32, kind: usize, range: Range<Ns>| {
        for (column, ns) in grid.parts(range) {
            if let Some(cell) = times.get_mut(thread as usize * columns + column) {
                cell[kind] += ns;
            }
        }
    };
    let first = timeline.segments.partition_point(|s| s.end_ns() <= window.start);
    // Segments follow each other: the column of each is that of the one before, or a later one.
    let mut column = 0;
    for segment in timeline.segments.iter().skip(first).take_while(|s| s.start_ns < window.end) {
        while column + 1 < columns && grid.start(column + 1) <= segment.start_ns {
            column += 1;
        }
        let (kind, range) = (segment.state as usize, segment.start_ns..segment.end_ns());
        if range.start < window.start || range.end > grid.start(column + 1) {
            add(&mut times, segment.thread, kind, range);
        } else if let Some(cell) = times.get_mut(segment.thread as usize * columns + column) {
            cell[kind] += segment.ns.unsigned_abs();
        }
    }
    let first = timeline.waits.partition_point(|w| w.end_ns <= window.start);
    for wait in timeline.waits.iter().skip(first).filter(|w| w.start_ns < window.end) {
        add(&mut times, wait.waiter, KINDS - 1, wait.start_ns..wait.end_ns);
    }
    let cell = |times: &[u64; KINDS]| {
        let (most, ns) = times.iter().enumerate().rev().max_by_key(|(_, ns)| **ns).unwrap_or((0, &0));
        match WaitKind::ALL.get(most) {
            _ if *ns == 0 => LaneCell::Empty,
            Some(state) => LaneCell::State(*state),
            None => LaneCell::Waits,
        }
    };
    times.chunks(columns.max(1)).map(|line| line.iter().map(cell).collect()).collect()
}

/// The letters of events by column, blank where there are none: `+` where a column has several kinds.
pub fn event_marks<'e>(events: impl Iterator<Item = &'e TimelineEvent>, grid: &ColumnGrid) -> Vec<char> {
    let mut marks = vec![' '; grid.columns()];
    for event in events {
        let mark = grid.column(event.at_ns).and_then(|column| marks.get_mut(column));
        for mark in mark.into_iter().filter(|mark| **mark != event.letter()) {
            *mark = if *mark == ' ' { event.letter() } else { '+' };
        }
    }
    marks
}

/// An event in words: what, of which thread, how long, and its result.
pub fn event_text(timeline: &ExecutionTimeline, event: &TimelineEvent) -> String {
    let thread = timeline.threads.get(event.thread as usize).map_or_else(String::new, thread_name);
    let name = clean::text(&event.name);
    let what = match event.kind {
        TimelineEventKind::Call => name.into_owned(),
        TimelineEventKind::Wakeup => format!("woken by {name}"),
        kind if name.is_empty() => kind.words().to_owned(),
        kind => format!("{} {name}", kind.words()),
    };
    let length = if event.ns > 0 { format!(", {}", figure::time(event.ns as f64)) } else { String::new() };
    let result = match (&event.error, event.result) {
        (Some(error), _) => format!(" = {error}"),
        (None, Some(result)) => format!(" = {result}"),
        (None, None) => String::new(),
    };
    format!("{what}{result} of {thread}{length}")
}

/// The cells of a thread that used something at these times, at least one for each.
pub fn used(spans: &[Range<Ns>], state: WaitKind, window: &Range<Ns>, columns: usize) -> Vec<LaneCell> {
    let grid = ColumnGrid::new(window, columns);
    let mut cells = vec![LaneCell::Empty; columns];
    for (column, _) in spans.iter().flat_map(|span| grid.parts(span.clone())) {
        if let Some(cell) = cells.get_mut(column) {
            *cell = LaneCell::State(state);
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::carrier::Carrier;
    use crate::model::context::ContextId;
    use crate::model::execution_timeline::{TimelineSegment, TimelineWait, event_letters};

    fn timeline() -> ExecutionTimeline {
        let segment = |thread, state, start_ns, ns| TimelineSegment {
            start_ns,
            ns,
            thread,
            state,
            cpu: None,
            context: ContextId::from_raw(0),
        };
        let thread = |name: &str, tid| TimelineThread {
            host: "host".into(),
            process: "server".into(),
            name: name.into(),
            pid: 1,
            tid,
        };
        ExecutionTimeline {
            ns: 100,
            threads: vec![thread("worker", 7), thread("kworker/7:1", 7)],
            segments: vec![
                segment(0, WaitKind::Cpu, 0, 20),
                segment(1, WaitKind::Disk, 20, 50),
                segment(0, WaitKind::Cpu, 70, 3),
                segment(0, WaitKind::Preempted, 73, 27),
            ],
            waits: vec![TimelineWait { start_ns: 20, end_ns: 70, waiter: 0, waits_for: 1, carrier: Carrier::Lock }],
            ..ExecutionTimeline::default()
        }
    }

    fn text(cells: &[Vec<LaneCell>]) -> Vec<String> {
        let symbol = |cell: &LaneCell| match cell {
            LaneCell::Empty => ' ',
            LaneCell::Waits => '.',
            LaneCell::State(state) => letter(*state),
        };
        cells.iter().map(|line| line.iter().map(symbol).collect()).collect()
    }

    #[test]
    fn cells_show_the_state_with_most_time() {
        let timeline = timeline();
        assert_eq!(text(&cells(&timeline, &(0..100), 10)), ["RR.....rrr", "  DDDDD   "]);
        assert_eq!(text(&cells(&timeline, &(60..80), 4)), ["..Rr", "DD  "]);
        assert_eq!(text(&cells(&timeline, &(0..200), 10)), ["R...r     ", " DDD      "]);
        assert_eq!(cells(&timeline, &(0..100), 0), Vec::<Vec<LaneCell>>::new());
    }

    #[test]
    fn used_marks_each_column_with_use() {
        let spans = [5..12, 30..31, 95..200];
        assert_eq!(text(&[used(&spans, WaitKind::Disk, &(0..100), 10)]), ["DD D     D"]);
        assert_eq!(used(&spans, WaitKind::Disk, &(0..100), 0), Vec::new());
    }

    #[test]
    fn events_are_marked_by_kind_and_told_with_their_results() {
        let event = |at_ns, kind, name: &str, result: Option<i64>| TimelineEvent {
            at_ns,
            ns: if kind == TimelineEventKind::Call { 3 } else { 0 },
            thread: 0,
            kind,
            name: name.into(),
            result,
            error: result.filter(|result| *result < 0).map(|_| "EAGAIN".into()),
        };
        let events = [
            event(-5, TimelineEventKind::Call, "read", Some(3)),
            event(5, TimelineEventKind::Call, "read", Some(-11)),
            event(25, TimelineEventKind::Fault, "", None),
            event(28, TimelineEventKind::Migration, "CPU 1 to 2", None),
            event(31, TimelineEventKind::Fault, "", None),
            event(32, TimelineEventKind::Fault, "", None),
        ];
        let grid = ColumnGrid::new(&(0..100), 10);
        assert_eq!(event_marks(events.iter(), &grid).into_iter().collect::<String>(), "e +f      ");
        let texts: Vec<String> = events.iter().take(4).map(|event| event_text(&timeline(), event)).collect();
        let expected = [
            "read = 3 of worker 7, 3 ns",
            "read = EAGAIN of worker 7, 3 ns",
            "page fault of worker 7",
            "migration CPU 1 to 2 of worker 7",
        ];
        assert_eq!(texts, expected);
        let letters: String = event_letters(&events).into_iter().map(|(letter, _)| letter).collect();
        assert_eq!(letters, "cefg");
    }

    #[test]
    fn thread_name_says_the_id_once() {
        let timeline = timeline();
        let names: Vec<String> = timeline.threads.iter().map(thread_name).collect();
        assert_eq!(names, ["worker 7", "kworker/7:1 7"]);
    }
}
