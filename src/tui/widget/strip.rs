//! Values over time as blocks of one or more lines.

use crate::tui::canvas::Canvas;
use crate::tui::theme::StyleScope;

const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draw the values as bars of `lines` lines from line `y` on, the largest of `most` being full. A value above 0 shows.
pub fn draw(canvas: &mut Canvas<'_>, x: usize, y: usize, lines: usize, values: &[f64], most: f64, scope: StyleScope) {
    for line in 0..lines {
        let below = (lines - 1 - line) * 8;
        let text: String = values
            .iter()
            .map(|value| block(*value, most, lines).saturating_sub(below).min(8))
            .map(|n| BLOCKS[n])
            .collect();
        canvas.text_in(x, y + line, values.len(), &text, scope);
    }
}

/// The values as one line of blocks.
pub fn line(values: &[f64], most: f64) -> String {
    values.iter().map(|value| BLOCKS[block(*value, most, 1).min(8)]).collect()
}

/// Eighths of a line.
fn block(value: f64, most: f64, lines: usize) -> usize {
    if value.is_nan() || value <= 0.0 || most <= 0.0 {
        return 0;
    }
    ((value / most).min(1.0) * (lines * 8) as f64).round().max(1.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_shows_every_value_above_zero() {
        assert_eq!(line(&[0.0, 0.001, 0.5, 1.0, 3.0, f64::NAN], 1.0), " ▁▄██ ");
        assert_eq!(line(&[1.0], 0.0), " ");
    }
}
