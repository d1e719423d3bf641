//! Many threads over time as text: a line of letters for each lane.

use super::{PART, PART_MEANS, lane_label, letter, order, shown_states, state_name, window};
use crate::base::time::Timestamp;
use crate::model::thread_lanes::ThreadLanes;
use crate::view::page::{Page, cut};
use crate::view::ticks::ticks;
use unicode_width::UnicodeWidthStr;

/// Columns of the names, at most.
const LONGEST_NAME: usize = 32;

/// The columns that lanes can have on a page, where their number is not given.
pub fn columns(page: Page) -> usize {
    page.width().saturating_sub(LONGEST_NAME + 3).max(16)
}

/// The drawing; times count from `origin`.
pub fn text(lanes: &ThreadLanes, origin: Timestamp, page: Page) -> String {
    let mut out = String::new();
    page.wrap(&mut out, 0, &format!("{}; {}", window(lanes, origin), order(lanes)));
    let columns = lanes.grid.columns();
    for lane in &lanes.lanes {
        let name = cut(&lane_label(&lane.owner, lanes), LONGEST_NAME);
        let pad = " ".repeat(LONGEST_NAME.saturating_sub(name.width()));
        let cells: String = (0..columns).map(|column| letter(lanes.shown(lane, column))).collect();
        out.push_str(format!("{name}{pad} |{cells}").trim_end());
        out.push('\n');
    }
    let span = lanes.grid.whole();
    let mut axis = String::new();
    for (column, label) in ticks(span.start.since(origin), span.len(), columns) {
        let gap = column.saturating_sub(axis.width());
        axis.push_str(&format!("{}^ {label}", " ".repeat(gap)));
    }
    out.push_str(format!("{} {axis}", " ".repeat(LONGEST_NAME + 1)).trim_end());
    out.push('\n');
    let (kinds, in_part) = shown_states(lanes);
    let states =
        kinds.iter().map(|kind| format!("{} {}", kind.wait_kind().row().letter, state_name(*kind, lanes.of_ranks)));
    let part = in_part.then(|| format!("{PART} {PART_MEANS}"));
    page.wrap(&mut out, 0, &states.chain(part).collect::<Vec<_>>().join(", "));
    out
}
