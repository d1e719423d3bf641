//! The cells of a stack chart: which call of a line is in each column of a drawing.
//!
//! In: the call tree of an execution, and a range of its times, divided into columns. Out: a cell for each column of a
//! line, which one level has or several that show the same. A cell has the call with more than half of its time; where
//! none has, some being in it, they are short ones, and where none is in it, nothing is known there. Screen and text
//! share it. Cost: three binary searches for each level of a cell, however many calls there are. ALGORITHMS.md 7.9.

use super::words;
use crate::base::column_grid::ColumnGrid;
use crate::base::demangle::abbreviated;
use crate::compare::calls::{CallTree, PathCall};
use crate::model::Model;
use crate::model::context::ContextId;
use std::ops::Range;

/// A cell of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackCell {
    /// No call of this line is on the path, or none is known.
    Empty,
    /// This call has more than half of the column.
    Call(u32),
    /// One or more calls, none of which has more than half of the column.
    Short,
}

/// The cells of a line.
pub fn cells(tree: &CallTree, line: usize, grid: &ColumnGrid) -> Vec<StackCell> {
    let levels = tree.lines().get(line).cloned().unwrap_or_default();
    (0..grid.columns()).map(|column| deepest(tree, levels.clone(), grid, column)).collect()
}

/// The cell of the deepest call; where none has the column, that of any short ones.
fn deepest(tree: &CallTree, levels: Range<usize>, grid: &ColumnGrid, column: usize) -> StackCell {
    let mut found = StackCell::Empty;
    for level in levels.rev() {
        match cell(tree, level, grid, column) {
            StackCell::Empty => {}
            StackCell::Short => found = StackCell::Short,
            call @ StackCell::Call(_) => return call,
        }
    }
    found
}

fn cell(tree: &CallTree, level: usize, grid: &ColumnGrid, column: usize) -> StackCell {
    let (start, end) = (grid.start(column), grid.start(column + 1));
    // More than half of the column: its middle, too.
    let middle = tree.at(level, start.midpoint(end)).and_then(|at| Some((at, tree.call(at)?)));
    let fills = |(_, call): &(u32, &PathCall)| 2 * (call.end_ns().min(end) - call.start_ns.max(start)) > end - start;
    match middle.filter(fills) {
        Some((at, _)) => StackCell::Call(at),
        None if tree.meeting(level, start, end.max(start + 1)).is_empty() => StackCell::Empty,
        None => StackCell::Short,
    }
}

/// The name of a call in a drawing: that of the calls above it on the same line, too.
pub fn label(model: &Model, tree: &CallTree, at: u32) -> String {
    let first =
        tree.call(at).and_then(|call| tree.lines().get(tree.line_of(call.level as usize))).map(|line| line.start);
    let is_on_line = |call: &&PathCall| first.is_none_or(|first| call.level as usize >= first);
    let up = std::iter::successors(tree.call(at), |call| tree.call(call.parent?));
    let mut names: Vec<String> = up.take_while(is_on_line).map(|call| short_name(model, call.context)).collect();
    names.reverse();
    names.join(" › ")
}

/// The name of a context's frame without the arguments of templates.
fn short_name(model: &Model, context: ContextId) -> String {
    abbreviated(&words::frame(model, context)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::arranged::KernelFrames;
    use crate::model::context::{Frame, FrameKind};
    use crate::model::execution::ExecutionId;
    use crate::model::execution_timeline::{ExecutionTimeline, TimelineSegment};
    use crate::model::wait_kind::WaitKind;

    /// An execution of calls as (name below `main`, length); empty: `main` alone.
    fn model(calls: &[(&str, i64)]) -> (Model, CallTree) {
        let mut model = Model::default();
        let mut timeline = ExecutionTimeline::default();
        for (name, ns) in calls {
            let mut context = None;
            for (kind, name) in [(FrameKind::Process, "p"), (FrameKind::Function, "main"), (FrameKind::Function, name)]
            {
                if !name.is_empty() {
                    let name = model.names.intern(name);
                    context = Some(model.contexts.child(context, Frame { kind, name }));
                }
            }
            let (start_ns, state, context) = (timeline.ns, WaitKind::Cpu, context.unwrap());
            timeline.segments.push(TimelineSegment { start_ns, ns: *ns, thread: 0, state, cpu: None, context });
            timeline.ns += ns;
        }
        model.timelines.insert(ExecutionId::at(0), timeline);
        let tree = CallTree::new(&model, ExecutionId::at(0), KernelFrames::Shown);
        (model, tree)
    }

    fn drawn(model: &Model, tree: &CallTree, window: Range<i64>, columns: usize) -> Vec<String> {
        let grid = ColumnGrid::new(&window, columns);
        let symbol = |cell| match cell {
            StackCell::Empty => ' ',
            StackCell::Short => ':',
            StackCell::Call(at) => label(model, tree, at).chars().next().unwrap_or('?'),
        };
        let line = |line| cells(tree, line, &grid).into_iter().map(symbol).collect();
        (0..tree.lines().len()).map(line).collect()
    }

    #[test]
    fn cells_have_the_call_with_most_of_their_time_and_say_where_none_has() {
        let (model, tree) =
            model(&[("read", 20), ("", 30), ("parse", 3), ("", 3), ("send", 4), ("", 20), ("parse", 20)]);
        assert_eq!(drawn(&model, &tree, 0..100, 10), ["pppppppppp", "rr   :  pp"]);
        assert_eq!(drawn(&model, &tree, 50..60, 10), ["pppppppppp", "ppp   ssss"]);
        assert_eq!(
            drawn(&model, &tree, 0..200, 10),
            ["ppppp     ", "r : p     "],
            "half of a column is not most of it"
        );
        assert_eq!(label(&model, &tree, 1), "p › main");
    }

    #[test]
    fn cells_equal_a_scan_of_all_calls() {
        let mut random = crate::base::statistics::Random::new(4);
        for _ in 0..100 {
            let calls: Vec<(&str, i64)> =
                (0..30).map(|_| (["", "a", "b", "c"][random.below(4)], 1 + random.below(12) as i64)).collect();
            let (_, tree) = model(&calls);
            let (start, length) = (random.below(60) as i64, 1 + random.below(200) as i64);
            let grid = ColumnGrid::new(&(start..start + length), 1 + random.below(40));
            for level in 0..tree.depth() {
                for column in 0..grid.columns() {
                    let cell = cell(&tree, level, &grid, column);
                    let (from, to) = (grid.start(column), grid.start(column + 1));
                    let part = |at: &u32| {
                        let call = tree.call(*at).unwrap();
                        (call.end_ns().min(to) - call.start_ns.max(from)).max(0)
                    };
                    let most = tree.level(level).iter().max_by_key(|at| part(at));
                    let expected = match most {
                        Some(at) if 2 * part(at) > to - from => StackCell::Call(*at),
                        Some(at) if part(at) > 0 => StackCell::Short,
                        _ => StackCell::Empty,
                    };
                    // A column of no length has the call that is there then.
                    if to > from {
                        assert_eq!(cell, expected, "level {level}, column {column}");
                    }
                }
            }
        }
    }
}
