//! A space-time diagram: one line per stream, time from left to right, bars for delays, arrows to the streams that
//! waited.
//!
//! Bars of root causes are full, waits are shaded, so that they differ without colours. A dotted line connects a cause
//! with its arrow: the time until the delayed message was sent.

use crate::tui::canvas::{Canvas, clip_name, width};
use crate::tui::theme::StyleScope;

/// Something that took long. Times are parts of the drawing's window, from 0 to 1.
pub struct Bar {
    /// Position of its stream.
    pub line: usize,
    /// Beginning.
    pub from: f64,
    /// End.
    pub to: f64,
    /// It waited for others.
    pub waits: bool,
    /// The cursor is on it.
    pub here: bool,
}

/// The carrier of the delay from stream to stream.
pub struct Arrow {
    /// Position of the stream it left.
    pub from: usize,
    /// Position of the stream that it came to.
    pub to: usize,
    /// When the cause was over.
    pub left: f64,
    /// When the wait was over.
    pub arrived: f64,
}

/// Input of the drawing.
pub struct SpaceTime {
    /// Names of the streams, from top to bottom.
    pub labels: Vec<String>,
    /// In order of the path.
    pub bars: Vec<Bar>,
    /// Likewise.
    pub arrows: Vec<Arrow>,
    /// Lines per stream: 2 where arrows fit between them.
    pub per_line: usize,
    /// The stream that must be in sight.
    pub here: usize,
    /// Label of the left end of the axis.
    pub begin: String,
    /// How long the window is.
    pub length: String,
}

impl SpaceTime {
    /// Draw it: the streams, as many as fit around the one in sight, and the axis on the last line.
    pub fn draw(&self, canvas: &mut Canvas<'_>) {
        let lines = canvas.height().saturating_sub(1);
        let widest = self.labels.iter().map(|l| width(l)).max().unwrap_or(0);
        let label = widest.min(canvas.width() / 3);
        let left = label + 2;
        let columns = canvas.width().saturating_sub(left + 1);
        if columns < 4 || lines == 0 {
            return;
        }
        let shown = lines.div_ceil(self.per_line.max(1));
        let first = self.here.saturating_sub(shown / 2).min(self.labels.len().saturating_sub(shown));
        let x = |part: f64| left + (part.clamp(0.0, 1.0) * (columns - 1) as f64).round() as usize;
        // Lines of the screen are counted from the first stream shown; those above and below are cut off.
        let y = |stream: usize| (stream * self.per_line) as isize - (first * self.per_line) as isize;
        let mut put = |x: usize, y: isize, columns: usize, symbol: char, scope: StyleScope| {
            if let Ok(y) = usize::try_from(y)
                && y < lines
            {
                canvas.fill(x, y, columns, symbol, scope);
            }
        };
        for stream in 0..self.labels.len() {
            put(left, y(stream), columns, '·', StyleScope::Rule);
        }
        for a in &self.arrows {
            let (from, to) = (x(a.left), x(a.arrived));
            if from < to {
                put(from, y(a.from), to - from + 1, '┄', StyleScope::Dim);
            }
        }
        for bar in &self.bars {
            let (from, to) = (x(bar.from), x(bar.to));
            let (symbol, scope) = if bar.waits { ('▒', StyleScope::Slow1) } else { ('█', StyleScope::SlowBar) };
            put(from, y(bar.line), to - from + 1, symbol, if bar.here { StyleScope::Selection } else { scope });
        }
        // An interrupt and the thread that it interrupted are on one line.
        for a in self.arrows.iter().filter(|a| a.from != a.to) {
            let (at, from, to) = (x(a.arrived), y(a.from), y(a.to));
            let (step, head) = if from < to { (1, '▼') } else { (-1, '▲') };
            let mut line = from + step;
            while line != to {
                put(at, line, 1, '│', StyleScope::Strong);
                line += step;
            }
            // Without a line between streams the arrow head is drawn on the bar that it ends.
            put(at, if (to - from).abs() > 1 { to - step } else { to }, 1, head, StyleScope::Strong);
        }
        for (stream, name) in self.labels.iter().enumerate() {
            if let Ok(y) = usize::try_from(y(stream))
                && y < lines
            {
                let scope = if stream == self.here { StyleScope::Strong } else { StyleScope::Text };
                canvas.text_in(1, y, label, &clip_name(name, label), scope);
                if stream == self.here {
                    canvas.text(0, y, "▌", StyleScope::Selection);
                }
            }
        }
        let hidden = self.labels.len().saturating_sub(shown);
        if hidden > 0 {
            canvas.text_in(1, lines, label, &format!("{hidden} more"), StyleScope::Dim);
        }
        let end = canvas.text(left, lines, &self.begin, StyleScope::Dim);
        if end + 2 + width(&self.length) <= left + columns {
            canvas.right(left + columns, lines, &self.length, StyleScope::Dim);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::theme::{ColourDepth, Theme, built_in};
    use ratatui::buffer::Buffer;
    use ratatui::layout::Rect;

    #[test]
    fn an_interrupt_and_its_thread_are_on_one_line() {
        let theme = Theme::compile(&built_in()[0], ColourDepth::Mono).unwrap();
        let bar = |from, to| Bar { line: 0, from, to, waits: false, here: false };
        let drawn = SpaceTime {
            labels: vec!["worker".into()],
            bars: vec![bar(0.0, 0.5), bar(0.0, 1.0)],
            arrows: vec![Arrow { from: 0, to: 0, left: 0.5, arrived: 1.0 }],
            per_line: 1,
            here: 0,
            begin: "0 s".into(),
            length: "+1 ms".into(),
        };
        let mut buffer = Buffer::empty(Rect::new(0, 0, 30, 2));
        drawn.draw(&mut Canvas::new(&mut buffer, &theme));
        let line: String = buffer.content[..30].iter().map(|c| c.symbol()).collect();
        assert_eq!(line.trim_end(), format!("▌worker {}", "█".repeat(21)));
    }
}
