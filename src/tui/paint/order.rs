//! Orders of the runs of a screen: the terminal shows the same after each, and each costs other jumps and other changes
//! of attributes. What erases a line comes first in all of them.

use super::pen::{Ink, Pen};
use super::run::{CellPlace, CellRun};

/// With more runs than this the nearest one is not searched: the cost is their square.
const FEW: usize = 300;

/// By ink, in the order in which the inks first appear; those of an ink in the order of their lines.
pub fn by_ink(runs: &[CellRun]) -> Vec<usize> {
    let (_, of_run) = inks(runs);
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by_key(|at| (!runs[*at].erases, of_run[*at]));
    order
}

/// From each to the one that costs least from there.
pub fn by_nearest(runs: &[CellRun], pen: Pen) -> Vec<usize> {
    let mut order: Vec<usize> = (0..runs.len()).filter(|at| runs[*at].erases).collect();
    let mut left: Vec<usize> = (0..runs.len()).filter(|at| !runs[*at].erases).collect();
    if left.len() > FEW {
        order.extend(left);
        return order;
    }
    let (inks, of_run) = inks(runs);
    // The cost of each ink after each other one; a blank one leaves the pen as it is, about.
    let change = |from: Pen, to: Ink| {
        let mut bytes = Vec::new();
        from.change(to, &mut bytes);
        bytes.len()
    };
    let changes: Vec<Vec<usize>> = inks
        .iter()
        .map(|from| inks.iter().map(|to| change(pen.change(*from, &mut Vec::new()), *to)).collect())
        .collect();
    let mut at: Option<CellPlace> = order.last().and_then(|last| runs[*last].end);
    let mut ink: Option<usize> = None;
    while !left.is_empty() {
        let cost = |next: usize| {
            let change = ink.map_or_else(|| change(pen, inks[of_run[next]]), |ink| changes[ink][of_run[next]]);
            change + jump(at, runs[next].begin)
        };
        let Some((nearest, _)) = left.iter().enumerate().min_by_key(|(_, next)| cost(**next)) else { break };
        let next = left.remove(nearest);
        if matches!(inks[of_run[next]], Ink::Full(_)) || ink.is_none() {
            ink = Some(of_run[next]);
        }
        at = runs[next].end;
        order.push(next);
    }
    order
}

/// The different inks, and the position of that of each run.
fn inks(runs: &[CellRun]) -> (Vec<Ink>, Vec<usize>) {
    let mut inks: Vec<Ink> = Vec::new();
    let mut of_run = Vec::with_capacity(runs.len());
    for run in runs {
        let at = inks.iter().position(|ink| *ink == run.ink).unwrap_or_else(|| {
            inks.push(run.ink);
            inks.len() - 1
        });
        of_run.push(at);
    }
    (inks, of_run)
}

/// Bytes of a jump, about.
fn jump(from: Option<CellPlace>, to: CellPlace) -> usize {
    match from {
        Some(from) if from == to => 0,
        Some(from) if from.y == to.y && from.x < to.x => 4,
        Some(from) if from.y + 1 == to.y && from.x == to.x => 3,
        Some(from) if from.y + 1 == to.y => 7,
        _ => 8,
    }
}
