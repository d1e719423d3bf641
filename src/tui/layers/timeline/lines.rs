//! Lines and columns of the drawing of timelines.

use crate::tui::widget::page::StyledLine;
use ratatui::layout::Rect;

/// Lines and columns of the timelines of one or two executions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimelineLines {
    /// Columns of the names of threads.
    pub label_columns: usize,
    /// Columns of the drawing.
    pub columns: usize,
    /// Lines per thread: 1 or 2.
    pub per_lane: usize,
    /// Lines for the threads, by execution.
    pub rows: Vec<usize>,
    /// The first thread shown, by execution.
    pub first: Vec<usize>,
    /// Lines for events, by execution: where they are not between the threads.
    pub marks: Vec<usize>,
    /// Lines of the stack chart, by execution.
    pub chart: Vec<usize>,
    /// Lines for the calls of both as a tree.
    pub trees: usize,
    /// The text below.
    pub details: Vec<StyledLine>,
}

/// What is drawn of an execution.
#[derive(Clone, Copy, Debug)]
pub struct DrawnLines {
    pub threads: usize,
    /// The thread under the cursor.
    pub cursor: usize,
    /// Lines of its stack chart.
    pub calls: usize,
}

/// What is drawn of both.
#[derive(Clone, Copy, Debug)]
pub struct DrawnParts {
    /// The execution in front.
    pub front: usize,
    /// Events are marked.
    pub has_marks: bool,
    /// The calls of both are a tree, in place of the stack charts.
    pub has_trees: bool,
}

/// Lines below the drawings that are left for text where the screen has them.
const TIMELINE_TEXT: usize = 7;
/// Those below a tree, which has the calls itself.
const TREE_TEXT: usize = 4;
/// Lines of a stack chart that go before space between the threads.
const LEAST_CHART: usize = 6;

impl TimelineLines {
    /// The lines of executions in a rectangle. `labels`: columns of the longest name.
    pub fn new(area: Rect, executions: &[DrawnLines], parts: DrawnParts, labels: usize) -> TimelineLines {
        let (width, height) = (usize::from(area.width), usize::from(area.height));
        let label_columns = labels.min(width / 4);
        // Title, a head per execution (or a line that says that there is no other), axis.
        let fixed = 2 + executions.len().max(2);
        let text = if parts.has_trees { TREE_TEXT } else { TIMELINE_TEXT }.min(height / 3);
        let available = height.saturating_sub(fixed + text);
        let all: usize = executions.iter().map(|execution| execution.threads).sum();
        let calls = |at: usize| executions.get(at).filter(|_| !parts.has_trees).map_or(0, |drawn| drawn.calls);
        // The tree has half of the lines, the chart in front a third.
        let reserved = if parts.has_trees { available.div_ceil(2) } else { calls(parts.front).min(available / 3) };
        let wanted = if parts.has_trees { available / 2 } else { calls(parts.front).min(LEAST_CHART) };
        let per_lane = if 2 * all + wanted <= available { 2 } else { 1 };
        let has_marks = usize::from(parts.has_marks && per_lane == 1);
        let marks = vec![has_marks.min(available / 4); executions.len()];
        let for_lanes = available.saturating_sub(reserved + marks.iter().sum::<usize>());
        let mut rows: Vec<usize> = executions.iter().map(|execution| execution.threads * per_lane).collect();
        if let [first, second] = rows.as_mut_slice()
            && *first + *second > for_lanes
        {
            // The second keeps a third where the first needs the rest.
            *second = (*second).min((for_lanes / 3).max(for_lanes.saturating_sub(*first)));
            *first = (*first).min(for_lanes - *second);
        }
        rows.iter_mut().for_each(|n| *n = (*n).min(for_lanes));
        let first = rows.iter().zip(executions).map(|(rows, drawn)| {
            let shown = (rows / per_lane).max(1);
            drawn.cursor.saturating_sub(shown / 2).min(drawn.threads.saturating_sub(shown))
        });
        let first = first.collect();
        let mut left = available.saturating_sub(rows.iter().chain(&marks).sum());
        let mut chart = vec![0; executions.len()];
        for at in [parts.front, 1 - parts.front.min(1)] {
            // Less than three lines of the other one's chart say nothing.
            let lines = calls(at).min(left);
            if let Some(chart) = chart.get_mut(at).filter(|_| at == parts.front || lines >= calls(at).min(3)) {
                *chart = lines;
                left -= lines;
            }
        }
        let trees = if parts.has_trees { left } else { 0 };
        let columns = width.saturating_sub(label_columns + 3);
        TimelineLines { label_columns, columns, per_lane, rows, first, marks, chart, trees, details: Vec::new() }
    }

    /// Lines of an execution: its head, its threads, its events.
    fn of(&self, at: usize) -> usize {
        1 + self.rows.get(at).copied().unwrap_or(0) + self.marks.get(at).copied().unwrap_or(0)
    }

    /// The line of the first thread of an execution, below the title and its head.
    pub fn lanes_at(&self, at: usize) -> usize {
        2 + (0..at).map(|before| self.of(before)).sum::<usize>()
    }

    /// The line of the stack chart of an execution, below all threads.
    pub fn chart_at(&self, at: usize) -> usize {
        let heads = 1 + (0..self.rows.len()).map(|of| self.of(of)).sum::<usize>();
        let alone = 2_usize.saturating_sub(self.rows.len());
        heads + alone + self.chart.iter().take(at).sum::<usize>()
    }

    /// Lines of text that fit below.
    pub fn text_lines(&self, area: Rect) -> usize {
        // The axis is below the charts.
        let drawn = self.chart_at(self.chart.len()) + 1;
        usize::from(area.height).saturating_sub(drawn + self.trees)
    }
}
