//! Drawing: text, rules and bars into a buffer of cells, clipped to a rectangle, styled by scope.
//!
//! In: a rectangle of the buffer, a theme. Out: cells. All text is cut at its column with a mark (never in silence)
//! and measured by display width. Widgets know neither colours nor whether the terminal shows Unicode: [`to_ascii`]
//! replaces what it cannot show once, after the whole screen is drawn.

use super::theme::{StyleScope, Theme};
use crate::base::clean;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::borrow::Cow;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns that a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The text cut to `columns`, with `…` where something is missing.
pub fn clip(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let Some(room) = columns.checked_sub(1) else { return Cow::Borrowed("") };
    Cow::Owned(format!("{}…", head(text, room)))
}

/// The text cut to `columns` so that a number at its end stays, which distinguishes threads of one name: `ledger… 193`.
pub fn clip_name(text: &str, columns: usize) -> Cow<'_, str> {
    let is_number = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_digit());
    match text.rsplit_once(' ').filter(|(_, id)| width(text) > columns && is_number(id) && width(id) + 3 <= columns) {
        Some((name, id)) => Cow::Owned(format!("{} {id}", clip(name, columns - width(id) - 1))),
        None => clip(text, columns),
    }
}

/// The text cut to `columns` at its front: the end of a path says more than its beginning.
pub fn clip_front(text: &str, columns: usize) -> Cow<'_, str> {
    let all = width(text);
    if all <= columns {
        return Cow::Borrowed(text);
    }
    let Some(room) = columns.checked_sub(1) else { return Cow::Borrowed("") };
    let mut left = all;
    let kept = text.char_indices().find(|(_, c)| {
        let fits = left <= room;
        left -= c.width().unwrap_or(0).min(left);
        fits
    });
    Cow::Owned(format!("…{}", kept.map_or("", |(at, _)| &text[at..])))
}

fn head(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > columns {
            return &text[..at];
        }
    }
    text
}

/// The text in lines of at most `columns`, broken between words; a longer word is broken where it must be.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    if columns == 0 {
        return Vec::new();
    }
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        for word in glued(paragraph) {
            let mut word = word;
            let gap = usize::from(!line.is_empty());
            if width(&line) + gap + width(word) > columns && !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            while width(word) > columns {
                // At least one character: a wide one in a single column would else never be passed.
                let cut = head(word, columns).len().max(word.chars().next().map_or(0, char::len_utf8));
                lines.push(word[..cut].to_owned());
                word = &word[cut..];
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}

/// The words of a line, a figure and its unit being one word.
fn glued(line: &str) -> Vec<&str> {
    let mut words: Vec<&str> = Vec::new();
    let mut start = 0;
    for (at, _) in line.match_indices(' ').chain([(line.len(), "")]) {
        let next = line.get(at + 1..).unwrap_or_default();
        let next =
            next.split(' ').next().unwrap_or_default().trim_end_matches(|c: char| c.is_ascii_punctuation() && c != '%');
        let is_unit = ["%", "ns", "us", "ms", "s", "min", "B", "KiB", "MiB", "GiB"].contains(&next);
        if is_unit && line[start..at].ends_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        words.push(&line[start..at]);
        start = at + 1;
    }
    words
}

/// A rectangle to draw on.
pub struct Canvas<'a> {
    buffer: &'a mut Buffer,
    theme: &'a Theme,
    /// The rectangle, in cells of the screen.
    pub area: Rect,
}

impl<'a> Canvas<'a> {
    /// The whole buffer.
    pub fn new(buffer: &'a mut Buffer, theme: &'a Theme) -> Self {
        let area = buffer.area;
        Canvas { buffer, theme, area }
    }

    /// A part of it; text outside is cut off.
    pub fn part(&mut self, area: Rect) -> Canvas<'_> {
        let area = area.intersection(self.area);
        Canvas { buffer: self.buffer, theme: self.theme, area }
    }

    /// Columns.
    pub fn width(&self) -> usize {
        usize::from(self.area.width)
    }

    /// Lines.
    pub fn height(&self) -> usize {
        usize::from(self.area.height)
    }

    /// Everything blank, in the style of ordinary text.
    pub fn clear(&mut self) {
        let style = self.theme.style(StyleScope::Text);
        for y in self.area.top()..self.area.bottom() {
            for x in self.area.left()..self.area.right() {
                if let Some(cell) = self.buffer.cell_mut((x, y)) {
                    cell.reset();
                    cell.set_style(style);
                }
            }
        }
    }

    /// A text at a column and line of this canvas; cut with a mark at the right border. Returns the column after it.
    pub fn text(&mut self, x: usize, y: usize, text: &str, scope: StyleScope) -> usize {
        self.text_in(x, y, self.width().saturating_sub(x), text, scope)
    }

    /// A text in this many columns from `x`; cut with a mark. Returns the column after it.
    pub fn text_in(&mut self, x: usize, y: usize, columns: usize, text: &str, scope: StyleScope) -> usize {
        let columns = columns.min(self.width().saturating_sub(x));
        if y >= self.height() || columns == 0 {
            return x;
        }
        // The one gate: no text reaches the screen but through here.
        let text = clean::text(text);
        let shown = clip(&text, columns);
        let style = self.theme.style(scope);
        let (at_x, at_y) = (self.area.x + x as u16, self.area.y + y as u16);
        self.buffer.set_stringn(at_x, at_y, shown.as_ref(), columns, style);
        x + width(&shown)
    }

    /// Pieces of text one after the other; cut with a mark at column `end`. Returns the column after them.
    pub fn pieces(&mut self, x: usize, y: usize, end: usize, pieces: &[(StyleScope, String)]) -> usize {
        let mut at = x;
        for (scope, text) in pieces {
            at = self.text_in(at, y, end.saturating_sub(at), text, *scope);
        }
        at
    }

    /// A text that ends before column `end`.
    pub fn right(&mut self, end: usize, y: usize, text: &str, scope: StyleScope) {
        let columns = width(text).min(end);
        self.text_in(end - columns, y, columns, text, scope);
    }

    /// The same character over this many columns.
    pub fn fill(&mut self, x: usize, y: usize, columns: usize, symbol: char, scope: StyleScope) {
        let columns = columns.min(self.width().saturating_sub(x));
        let text: String = std::iter::repeat_n(symbol, columns).collect();
        self.text_in(x, y, columns, &text, scope);
    }

    /// Apply a style to `columns` columns without changing their text.
    pub fn shade(&mut self, x: usize, y: usize, columns: usize, scope: StyleScope) {
        if x >= self.width() || y >= self.height() {
            return;
        }
        let columns = columns.min(self.width() - x);
        let area = Rect::new(self.area.x + x as u16, self.area.y + y as u16, columns as u16, 1);
        self.buffer.set_style(area, self.theme.style(scope));
    }

    /// Mark a line as the one under the cursor.
    pub fn mark_line(&mut self, y: usize) {
        self.shade(0, y, self.width(), StyleScope::Cursor);
        self.text(0, y, "▌", StyleScope::Selection);
    }

    /// Two means as one bar of this many columns (parts from 0 to 1): shaded what both have, full the extra of the slow
    /// one, light what the fast one has more. The symbols differ, so that it reads without colours.
    pub fn compared_bar(&mut self, x: usize, y: usize, columns: usize, slow: f64, fast: f64, scope: StyleScope) {
        let part = |p: f64| if p.is_nan() { 0.0 } else { p.clamp(0.0, 1.0) * columns as f64 };
        let (slow, fast) = (part(slow), part(fast));
        if slow <= 0.0 && fast <= 0.0 {
            return;
        }
        let shared = slow.min(fast).round() as usize;
        self.fill(x, y, shared, '▒', scope);
        if slow >= fast {
            // The whole bar ends where the slow mean is; a bar that has something is seen.
            let rest = ((slow - shared as f64) / columns.max(1) as f64).max(0.0);
            let seen = if shared == 0 { rest.max(f64::MIN_POSITIVE) } else { rest };
            self.bar(x + shared, y, columns, seen, scope);
        } else {
            let end = (fast.round() as usize).max(usize::from(shared == 0));
            self.fill(x + shared, y, end.saturating_sub(shared), '░', scope);
        }
    }

    /// A bar of `part` (0 to 1) of this many columns, in eighths of a column; at least an eighth if it is not nothing.
    pub fn bar(&mut self, x: usize, y: usize, columns: usize, part: f64, scope: StyleScope) {
        const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
        if part.is_nan() || part <= 0.0 {
            return;
        }
        let eighths = ((part.min(1.0) * columns as f64 * 8.0).round() as usize).max(1);
        let mut text: String = std::iter::repeat_n('█', eighths / 8).collect();
        if !eighths.is_multiple_of(8) {
            text.push(EIGHTHS[eighths % 8]);
        }
        self.text_in(x, y, columns, &text, scope);
    }
}

/// Replace what an ASCII terminal cannot show. One rule for all widgets: similar strokes, else `?`.
pub fn to_ascii(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if cell.symbol().is_ascii() {
            continue;
        }
        let mut replaced = String::new();
        if let Some(c) = cell.symbol().chars().next() {
            replaced.push(match c {
                '─' | '–' => '-',
                // Nothing known, or only waiting: no line of the kinds above and below.
                '┄' => '_',
                '━' => '=',
                '═' => '#',
                '│' | '┃' | '▌' | '▍' => '|',
                '▁' | '▂' | '▃' => '.',
                // Nothing, or too short to draw, beside bars that are low.
                '·' => '\'',
                '▄' | '▅' => ':',
                '▆' | '▇' => '|',
                '█' | '▉' | '▊' | '▋' => '#',
                '▎' | '▏' => '.',
                '░' => ',',
                '▓' => '=',
                '▪' => 'o',
                '■' => 'O',
                '▚' => '%',
                '▔' => '\'',
                '▀' => '"',
                '▾' => 'v',
                '▸' | '›' | '→' => '>',
                '┬' | '┴' | '├' | '└' | '┼' => '+',
                '×' => 'x',
                '▲' => '^',
                '▼' => 'v',
                '▒' => ':',
                '…' => '~',
                '⚠' => '!',
                'µ' => 'u',
                'σ' => 's',
                '●' => '*',
                _ => '?',
            });
        }
        while replaced.len() < width(cell.symbol()) {
            replaced.push(' ');
        }
        cell.set_symbol(&replaced);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::style::Style;

    /// In ASCII, too, what means something else in one drawing is another symbol: shapes show what colours show.
    #[test]
    fn to_ascii_keeps_the_symbols_of_a_drawing_apart() {
        let drawings = [
            ("lanes of a timeline", "━┄│"),
            ("all threads over time", "┄▄█"),
            ("stack chart", "─┄·│"),
            ("strip of a root cause", "·▁▄▆█"),
            ("heat map", "▪■█░▒▓▚·"),
            ("axis of a histogram", "─═━"),
            ("bars of a histogram", "▂▄▆█▔▀"),
            ("bars of the tree", "█▒░"),
            ("propagation", "█▒┄·│"),
        ];
        for (name, symbols) in drawings {
            let mut buffer = Buffer::empty(Rect::new(0, 0, symbols.chars().count() as u16, 1));
            buffer.set_string(0, 0, symbols, Style::new());
            to_ascii(&mut buffer);
            let shown: std::collections::BTreeSet<&str> = buffer.content.iter().map(|cell| cell.symbol()).collect();
            assert_eq!(shown.len(), buffer.content.len(), "{name}: {symbols} as {shown:?}");
            assert!(!shown.contains("?"), "{name}: {shown:?}");
        }
    }

    #[test]
    fn what_is_cut_says_so() {
        assert_eq!(clip("handle_request", 8), "handle_…");
        assert_eq!(clip_front("server > handle", 7), "…handle");
        assert_eq!(clip("漢字漢字", 5), "漢字…");
        assert_eq!(clip("x", 0), "");
        assert_eq!(clip_front("漢字漢字", 4), "…字");
    }

    #[test]
    fn clip_name_keeps_the_number_that_tells_threads_apart() {
        assert_eq!(clip_name("ledgerclient 193", 16), "ledgerclient 193");
        assert_eq!(clip_name("ledgerclient 193", 14), "ledgercli… 193");
        assert_eq!(clip_name("ledgerclient 193", 5), "ledg…");
        assert_eq!(clip_name("worker of ledgerd", 8), "worker …");
        assert_eq!(clip_name("漢字漢字 7", 7), "漢字… 7");
    }

    #[test]
    fn a_figure_stays_with_its_unit() {
        assert_eq!(wrap("extra (97 %), in all", 10), ["extra", "(97 %), in", "all"]);
        assert_eq!(wrap("takes 52.2 ms more", 10), ["takes", "52.2 ms", "more"]);
    }

    #[test]
    fn wrapping_loses_nothing() {
        let text = "Slow executions take 52.2 ms longer: averyveryverylongfunctionname 漢字漢字";
        for columns in 1..40 {
            let lines = wrap(text, columns);
            let joined: String = lines.concat().replace(' ', "");
            assert_eq!(joined, text.replace(' ', ""));
            assert!(columns < 2 || lines.iter().all(|l| width(l) <= columns), "{lines:?}");
        }
    }
}
