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
    /// The text below.
    pub details: Vec<StyledLine>,
}

/// Lines below the drawings that are left for text where the screen has them.
const TIMELINE_TEXT: usize = 7;

impl TimelineLines {
    /// The lines of executions with this many threads, with the cursor on one of them (by execution), in a rectangle.
    /// `labels`: columns of the longest name.
    pub fn new(area: Rect, threads: &[usize], cursor: &[usize], labels: usize) -> TimelineLines {
        let (width, height) = (usize::from(area.width), usize::from(area.height));
        let label_columns = labels.min(width / 4);
        // Title, a head per execution (or a line that says that there is no other), axis.
        let fixed = 2 + threads.len().max(2);
        let text = TIMELINE_TEXT.min(height / 3);
        let available = height.saturating_sub(fixed + text);
        let all: usize = threads.iter().sum();
        let per_lane = if 2 * all <= available { 2 } else { 1 };
        let mut rows: Vec<usize> = threads.iter().map(|n| n * per_lane).collect();
        if let [first, second] = rows.as_mut_slice()
            && *first + *second > available
        {
            // The second keeps a third where the first needs the rest.
            *second = (*second).min((available / 3).max(available.saturating_sub(*first)));
            *first = (*first).min(available - *second);
        }
        rows.iter_mut().for_each(|n| *n = (*n).min(available));
        let first = rows.iter().zip(threads).zip(cursor).map(|((rows, threads), cursor)| {
            let shown = (rows / per_lane).max(1);
            cursor.saturating_sub(shown / 2).min(threads.saturating_sub(shown))
        });
        let first = first.collect();
        let columns = width.saturating_sub(label_columns + 3);
        TimelineLines { label_columns, columns, per_lane, rows, first, details: Vec::new() }
    }

    /// Lines of text that fit below.
    pub fn text_lines(&self, area: Rect) -> usize {
        let drawn = 2 + self.rows.len().max(2) + self.rows.iter().sum::<usize>();
        usize::from(area.height).saturating_sub(drawn)
    }
}
