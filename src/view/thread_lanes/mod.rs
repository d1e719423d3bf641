//! Many threads over time: as text, as JSON (`whyslow.timeline/1`) and as a picture. The interface has the same lanes,
//! letters and words.
//!
//! - [`text`]: a letter for each cell, an axis, a legend
//! - [`document`]: all sums
//! - [`picture`]: a picture in SVG

pub mod document;
pub mod picture;
mod text;

pub use text::{columns, text};

use super::lanes::thread_name;
use crate::base::time::Timestamp;
use crate::base::{clean, figure};
use crate::model::thread_lanes::{LaneOwner, LaneThread, ShownCell, ThreadLanes, ThreadMoment};
use crate::model::wait_kind::SegmentKind;
use std::collections::BTreeSet;

/// The mark of a cell that shows a wait in which its threads were active for a part of the time.
pub const PART: char = '+';

/// Functions named of a stack, at most.
const FUNCTIONS: usize = 3;

/// What [`PART`] means.
pub const PART_MEANS: &str = "active for less than half of the time";

/// A state in words.
pub fn state_name(kind: SegmentKind, of_ranks: bool) -> &'static str {
    match (kind, of_ranks) {
        (SegmentKind::Running, true) => "computing",
        (SegmentKind::Blocked, true) => "waiting",
        (SegmentKind::Network, true) => "transferring",
        // What it waits for is known of a segment, not of a cell.
        (SegmentKind::Blocked, false) => "blocked",
        _ => kind.wait_kind().row().state,
    }
}

/// The letter of a cell.
pub fn letter(cell: Option<ShownCell>) -> char {
    match cell {
        None => ' ',
        Some(ShownCell { is_active_in_part: true, .. }) => PART,
        Some(ShownCell { kind, .. }) => kind.wait_kind().row().letter,
    }
}

/// The states that lanes show, and whether any cell is marked as active in part.
pub fn shown_states(lanes: &ThreadLanes) -> (Vec<SegmentKind>, bool) {
    let (mut kinds, mut in_part) = (BTreeSet::new(), false);
    for lane in &lanes.lanes {
        for shown in (0..lanes.grid.columns()).filter_map(|column| lanes.shown(lane, column)) {
            in_part |= shown.is_active_in_part;
            kinds.insert(shown.kind);
        }
    }
    (kinds.into_iter().collect(), in_part)
}

/// A thread: its name and tid, with its process where that has another name; a rank by its name.
pub fn thread_label(thread: &LaneThread, of_ranks: bool) -> String {
    let names = &thread.names;
    if of_ranks {
        return clean::owned(&names.name);
    }
    if names.process.is_empty() || names.process == names.name {
        thread_name(names)
    } else {
        format!("{} of {}", thread_name(names), clean::text(&names.process))
    }
}

/// Whose lane it is.
pub fn lane_label(owner: &LaneOwner, lanes: &ThreadLanes) -> String {
    let of_ranks = lanes.of_ranks;
    let (host, label) = match owner {
        LaneOwner::Thread(thread) => (&thread.names.host, thread_label(thread, of_ranks)),
        LaneOwner::Process { first, threads } => {
            let name = clean::text(&first.names.process);
            let label = format!("{name} {}: {}", first.names.pid, figure::plural(*threads as u64, "thread"));
            (&first.names.host, label)
        }
        LaneOwner::Cpu { host, cpu } => (host, format!("CPU {cpu}")),
        LaneOwner::Others { threads } => {
            let what = if of_ranks { "more rank" } else { "more thread" };
            return figure::plural(*threads as u64, what);
        }
    };
    if lanes.hosts > 1 { format!("{}: {label}", clean::text(host)) } else { label }
}

/// The order of the lanes.
pub fn order(lanes: &ThreadLanes) -> &'static str {
    if lanes.of_ranks {
        "ranks by number; where not all fit, the busiest: by their time in computing and transferring"
    } else {
        "the busiest threads first: by their time on a CPU, ready for one, or waiting for a disk"
    }
}

/// The time that lanes are of, and how long a column is.
pub fn window(lanes: &ThreadLanes, origin: Timestamp) -> String {
    let span = lanes.grid.whole();
    let since = |t: Timestamp| figure::stamp(t.since(origin));
    let clock = |t: Timestamp| figure::time_of_day(t.since(Timestamp::ZERO));
    let clock = clock(span.start).map_or_else(String::new, |clock| format!(" ({clock} UTC)"));
    let column = figure::time(span.len() as f64 / lanes.grid.columns().max(1) as f64);
    format!("{} to {}{clock}, a column is {column}", since(span.start), since(span.end))
}

/// What a thread does at a moment, in one sentence.
pub fn moment(moment: &ThreadMoment, origin: Timestamp, of_ranks: bool) -> String {
    let stamp = |t: Timestamp| figure::stamp(t.since(origin));
    let mut text = format!("{}: {}", thread_label(&moment.thread, of_ranks), state_name(moment.kind, of_ranks));
    if !moment.qualifier.is_empty() {
        text.push_str(&format!(" ({})", clean::text(&moment.qualifier)));
    }
    if let Some(cpu) = moment.cpu.filter(|_| moment.kind.has_cpu()) {
        text.push_str(&format!(" on CPU {cpu}"));
    }
    // The innermost functions say most.
    let inner = moment.functions.iter().skip(moment.functions.len().saturating_sub(FUNCTIONS));
    let place: Vec<String> = inner
        .chain([&moment.call].into_iter().filter(|call| !call.is_empty()))
        .map(|name| clean::owned(name))
        .collect();
    if !place.is_empty() {
        text.push_str(&format!(" in {}", place.join(" › ")));
    }
    let length = figure::duration(moment.span.len());
    text.push_str(&format!(", {length} from {} on", stamp(moment.span.start)));
    if let Some((waker, at)) = &moment.waker {
        let what = match moment.kind {
            SegmentKind::Stopped => "let go on",
            _ if of_ranks => "ended",
            _ => "woken",
        };
        text.push_str(&format!("; {what} by {} at {}", thread_label(waker, of_ranks), stamp(*at)));
    }
    text
}

/// Why no thread is said to have ended a state, in one sentence without its full stop.
pub fn no_waker(kind: SegmentKind) -> &'static str {
    match kind {
        SegmentKind::Running => "the thread runs here: no other thread ended this",
        SegmentKind::Interrupted => "interrupt handlers run here: no other thread ended this",
        SegmentKind::Preempted => "the thread is ready to run here: the scheduler ended this",
        SegmentKind::Timer => "a timer ended this wait",
        SegmentKind::Disk => "a disk request ended this wait",
        SegmentKind::UserInput => "the user's input ended this wait",
        SegmentKind::Ipi => "an inter-processor interrupt ended this wait",
        SegmentKind::Device => "the interrupt of a device ended this wait",
        SegmentKind::Network => "a packet ended this wait; the recording does not show its sender",
        SegmentKind::Blocked | SegmentKind::Unknown | SegmentKind::Stopped => {
            "the recording does not show who ended this"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::column_grid::ColumnGrid;
    use crate::base::notice::Notices;
    use crate::base::time::Span;
    use crate::model::execution_timeline::TimelineThread;
    use crate::model::thread_lanes::{KINDS, ThreadLane};
    use crate::view::page::{Glyphs, Page};

    /// A thread with a name that acts in terminals and in markup, and the lane of others.
    fn lanes() -> ThreadLanes {
        let names =
            TimelineThread { host: "h".into(), process: "<b>&".into(), name: "a\u{1b}[31m".into(), pid: 7, tid: 8 };
        let cell = |of: &[(SegmentKind, u64)]| {
            let mut times = [0; KINDS];
            of.iter().for_each(|(kind, ns)| times[*kind as usize] = *ns);
            times
        };
        use SegmentKind::{Blocked, Disk, Preempted, Running, Timer, Unknown};
        let cells = vec![
            cell(&[(Running, 60), (Timer, 40)]),
            cell(&[(Running, 30), (Preempted, 20), (Blocked, 50)]),
            cell(&[(Running, 10), (Blocked, 50), (Timer, 40)]),
            cell(&[(Unknown, 70), (Disk, 30)]),
            cell(&[(Disk, 5)]),
            cell(&[]),
        ];
        let others = cells.iter().map(|times| times.map(|ns| ns * 3)).collect();
        let lanes = vec![
            ThreadLane { owner: LaneOwner::Thread(LaneThread { number: 0, names }), cells },
            ThreadLane { owner: LaneOwner::Others { threads: 3 }, cells: others },
        ];
        let grid = ColumnGrid::of(Span::of_ns(0, 600), 6);
        ThreadLanes { recorded: grid.whole(), grid, of_ranks: false, hosts: 1, lanes }
    }

    #[test]
    fn text_shows_activity_of_half_a_column_and_marks_less() {
        let text = text(&lanes(), Timestamp::ZERO, Page { width: 100, glyphs: Glyphs::Ascii });
        let cells: Vec<&str> = text.lines().filter_map(|line| line.split_once(" |").map(|(_, cells)| cells)).collect();
        assert_eq!(cells, ["RR++D", "RR+DD"], "{text}");
        assert!(!text.contains('\u{1b}') && text.contains("3 more threads"), "{text}");
        assert!(text.ends_with("R running, b blocked, D disk, ? unknown, + active for less than half of the time\n"));
    }

    #[test]
    fn picture_and_document_have_names_without_effect() {
        let svg = picture::picture(&lanes(), Timestamp::ZERO);
        assert!(svg.contains("&lt;b&gt;&amp;") && !svg.contains("<b>") && !svg.contains('\u{1b}'), "{svg}");
        // Two rectangles where a wait is below activity: the first four columns, then a disk alone.
        assert_eq!(svg.matches("y=\"30\" width=\"244\"").count(), 1, "{svg}");
        let json = serde_json::to_string(&document::LanesDocument::new(&lanes(), &Notices::default())).unwrap();
        assert!(!json.contains("\\u001b") && json.contains("\"active_ns\":155") && json.contains("null]"), "{json}");
    }
}
