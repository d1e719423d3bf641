//! From one screen to the next in few bytes: so that the interface is usable over a slow line.
//!
//! In: the buffer that should be on the screen. Out: bytes for the terminal. The painter remembers what it painted
//! last. It first looks for lines that only moved and lets the terminal scroll them; then it writes the cells that
//! differ, rewriting a short gap where that is shorter than jumping over it, erasing to the end of a line where the
//! rest is blank, and naming only the attributes that change. Cost: linear in the cells, plus lines times shifts.
//! ratatui's own backend names both colours at each change and never scrolls: a step of the cursor at the edge of
//! a tree would cost it several kilobytes.

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};
use std::hash::{BuildHasher, Hasher};
use std::io::Write;
use unicode_width::UnicodeWidthStr;

/// A gap of so many unchanged cells is rewritten rather than jumped over.
const GAP: u16 = 4;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Pen {
    fg: Color,
    bg: Color,
    modifier: Modifier,
}

const PLAIN: Pen = Pen { fg: Color::Reset, bg: Color::Reset, modifier: Modifier::empty() };

impl Pen {
    fn of(cell: &Cell) -> Pen {
        Pen { fg: cell.fg, bg: cell.bg, modifier: cell.modifier }
    }
}

/// Modifiers that show on a blank cell.
const ON_BLANK: Modifier = Modifier::REVERSED.union(Modifier::UNDERLINED);

/// True when both look the same: the colour of a blank cell's text does not show.
fn same(a: &Cell, b: &Cell) -> bool {
    let blank = a.symbol() == " " && !a.modifier.intersects(ON_BLANK) && !b.modifier.intersects(ON_BLANK);
    a.symbol() == b.symbol() && a.bg == b.bg && (blank || (a.fg == b.fg && a.modifier == b.modifier))
}

fn is_blank(cell: &Cell) -> bool {
    cell.symbol() == " " && cell.bg == Color::Reset && !cell.modifier.intersects(ON_BLANK)
}

/// The contents of the terminal, and how to change them.
pub struct Painter {
    shown: Buffer,
    valid: bool,
    pen: Pen,
    at: Option<(u16, u16)>,
}

impl Default for Painter {
    fn default() -> Self {
        Painter { shown: Buffer::empty(Rect::ZERO), valid: false, pen: PLAIN, at: None }
    }
}

impl Painter {
    /// Forget the screen: the next picture is painted whole.
    pub fn forget(&mut self) {
        self.valid = false;
    }

    /// The bytes that turn what is shown into `next`, appended to `out`.
    pub fn paint(&mut self, next: &Buffer, out: &mut Vec<u8>) {
        self.at = None;
        if !self.valid || self.shown.area != next.area {
            self.shown = Buffer::empty(next.area);
            self.pen = PLAIN;
            self.valid = true;
            out.extend_from_slice(b"\x1b[r\x1b[m\x1b[2J");
        } else {
            self.scroll(next, out);
        }
        for y in 0..next.area.height {
            self.line(next, y, out);
        }
        self.shown.clone_from(next);
    }

    fn line(&mut self, next: &Buffer, y: u16, out: &mut Vec<u8>) {
        let columns = next.area.width;
        let new = |x: u16| &next.content[usize::from(y) * usize::from(columns) + usize::from(x)];
        let old = |x: u16| &self.shown.content[usize::from(y) * usize::from(columns) + usize::from(x)];
        let blank_from = (0..columns).rev().find(|x| !is_blank(new(*x))).map_or(0, |x| x + 1);
        // Cells that must be written; a wide character covers the cell after it, before and now.
        let mut dirty = Vec::new();
        let mut x = 0;
        while x < columns {
            let wide = new(x).symbol().width().clamp(1, 2) as u16;
            let covered = (x + wide).min(columns);
            // A wide character that goes away takes the cell after it along.
            let was_covered = x > 0 && old(x - 1).symbol().width() > 1 && !same(new(x - 1), old(x - 1));
            if was_covered || (x..covered).any(|c| !same(new(c), old(c))) {
                dirty.push((x, covered));
            }
            x = covered;
        }
        let mut written_to: Option<u16> = None;
        for (x, end) in dirty {
            if x >= blank_from && columns - x > 3 {
                self.go(x, y, out);
                self.take(Pen { bg: Color::Reset, modifier: self.pen.modifier - ON_BLANK, ..self.pen }, out);
                out.extend_from_slice(b"\x1b[K");
                return;
            }
            // A short gap in the same attributes is cheaper written again than jumped over.
            if let Some(from) = written_to.filter(|from| *from < x && x - from <= GAP) {
                let plain = (from..x).all(|g| new(g).symbol().len() == 1 && Pen::of(new(g)) == self.pen);
                if plain && self.at == Some((from, y)) {
                    for g in from..x {
                        out.extend_from_slice(new(g).symbol().as_bytes());
                    }
                    self.at = Some((x, y));
                }
            }
            self.go(x, y, out);
            let cell = new(x);
            let wanted = Pen::of(cell);
            if cell.symbol() == " " && !wanted.modifier.intersects(ON_BLANK) {
                self.take(Pen { bg: wanted.bg, modifier: self.pen.modifier - ON_BLANK, ..self.pen }, out);
            } else {
                self.take(wanted, out);
            }
            out.extend_from_slice(cell.symbol().as_bytes());
            // Terminals disagree on the width of some characters, and at the last column they wait to wrap.
            let sure = cell.symbol().is_ascii() || (end == x + 1 && cell.symbol().chars().count() == 1);
            self.at = (sure && end < columns).then_some((end, y));
            written_to = Some(end);
        }
    }

    fn go(&mut self, x: u16, y: u16, out: &mut Vec<u8>) {
        match self.at {
            Some(at) if at == (x, y) => {}
            Some((from, line)) if line == y && from < x => push(out, format_args!("\x1b[{}C", x - from)),
            _ if x == 0 => push(out, format_args!("\x1b[{}H", y + 1)),
            _ => push(out, format_args!("\x1b[{};{}H", y + 1, x + 1)),
        }
        self.at = Some((x, y));
    }

    fn take(&mut self, wanted: Pen, out: &mut Vec<u8>) {
        if wanted == self.pen {
            return;
        }
        let mut codes: Vec<String> = Vec::new();
        if wanted == PLAIN {
            codes.push(String::new());
        } else {
            let gone = self.pen.modifier - wanted.modifier;
            let mut kept = self.pen.modifier & wanted.modifier;
            let weight = Modifier::BOLD | Modifier::DIM;
            if gone.intersects(weight) {
                // One code ends both.
                codes.push("22".into());
                kept -= weight;
            }
            for (modifier, code) in [(Modifier::ITALIC, "23"), (Modifier::UNDERLINED, "24"), (Modifier::REVERSED, "27")]
            {
                if gone.contains(modifier) {
                    codes.push(code.into());
                }
            }
            for (modifier, code) in [
                (Modifier::BOLD, "1"),
                (Modifier::DIM, "2"),
                (Modifier::ITALIC, "3"),
                (Modifier::UNDERLINED, "4"),
                (Modifier::REVERSED, "7"),
            ] {
                if (wanted.modifier - kept).contains(modifier) {
                    codes.push(code.into());
                }
            }
            if wanted.fg != self.pen.fg {
                codes.push(colour(wanted.fg, 30));
            }
            if wanted.bg != self.pen.bg {
                codes.push(colour(wanted.bg, 40));
            }
        }
        push(out, format_args!("\x1b[{}m", codes.join(";")));
        self.pen = wanted;
    }

    /// Let the terminal move lines that only changed their place. The best shift must save several lines.
    fn scroll(&mut self, next: &Buffer, out: &mut Vec<u8>) {
        let lines = usize::from(next.area.height);
        let columns = usize::from(next.area.width);
        if columns == 0 {
            return;
        }
        let (old, new) = (fingerprints(&self.shown, columns), fingerprints(next, columns));
        let blank = fingerprints(&Buffer::empty(Rect::new(0, 0, next.area.width, 1)), columns);
        let worth = |y: usize, from: usize| new[y] == old[from] && new[y] != old[y] && blank.first() != Some(&new[y]);
        let mut best = (2, 0i32, 0, 0);
        for shift in 1..lines {
            for up in [true, false] {
                let from = |y: usize| if up { y + shift } else { y - shift };
                let range = if up { 0..lines - shift } else { shift..lines };
                let moved: Vec<usize> = range.filter(|y| worth(*y, from(*y))).collect();
                // Lines inside the region that are already correct would have to be written again.
                let (Some(first), Some(last)) = (moved.first(), moved.last()) else { continue };
                let (top, bottom) = if up { (*first, last + shift) } else { (first - shift, *last) };
                let broken = (top..=bottom).filter(|y| new[*y] == old[*y] && blank.first() != Some(&new[*y])).count();
                let gain = moved.len().saturating_sub(broken);
                if gain > best.0 {
                    best = (gain, if up { shift as i32 } else { -(shift as i32) }, top, bottom);
                }
            }
        }
        let (_, shift, top, bottom) = best;
        if shift == 0 {
            return;
        }
        // Lines that appear take the background of the pen.
        self.take(Pen { bg: Color::Reset, modifier: self.pen.modifier - ON_BLANK, ..self.pen }, out);
        let by = shift.unsigned_abs() as usize;
        let direction = if shift > 0 { 'S' } else { 'T' };
        push(out, format_args!("\x1b[{};{}r\x1b[{by}{direction}\x1b[r", top + 1, bottom + 1));
        let region = &mut self.shown.content[top * columns..(bottom + 1) * columns];
        let size = region.len();
        if shift > 0 {
            region.rotate_left(by * columns);
            region[size - by * columns..].fill(Cell::default());
        } else {
            region.rotate_right(by * columns);
            region[..by * columns].fill(Cell::default());
        }
    }
}

fn fingerprints(buffer: &Buffer, columns: usize) -> Vec<u64> {
    let hasher = foldhash::fast::FixedState::default();
    let line = |cells: &[Cell]| {
        let mut state = hasher.build_hasher();
        for cell in cells {
            state.write(cell.symbol().as_bytes());
            // Blank cells look the same in any colour of text.
            if is_blank(cell) {
                continue;
            }
            std::hash::Hash::hash(&(cell.fg, cell.bg, cell.modifier), &mut state);
        }
        state.finish()
    };
    buffer.content.chunks(columns).map(line).collect()
}

fn colour(color: Color, base: u8) -> String {
    let named = |n: u8| (base + n).to_string();
    let bright = |n: u8| (base + 60 + n).to_string();
    match color {
        Color::Reset => named(9),
        Color::Black => named(0),
        Color::Red => named(1),
        Color::Green => named(2),
        Color::Yellow => named(3),
        Color::Blue => named(4),
        Color::Magenta => named(5),
        Color::Cyan => named(6),
        Color::Gray => named(7),
        Color::DarkGray => bright(0),
        Color::LightRed => bright(1),
        Color::LightGreen => bright(2),
        Color::LightYellow => bright(3),
        Color::LightBlue => bright(4),
        Color::LightMagenta => bright(5),
        Color::LightCyan => bright(6),
        Color::White => bright(7),
        Color::Indexed(i) => format!("{};5;{i}", base + 8),
        Color::Rgb(r, g, b) => format!("{};2;{r};{g};{b}", base + 8),
    }
}

fn push(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to memory does not fail.
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ratatui::style::Style;

    /// Paint a sequence of pictures and look at each in a terminal emulator: it must show just that picture.
    fn check(pictures: &[Buffer]) {
        let (columns, lines) = (pictures[0].area.width, pictures[0].area.height);
        let mut terminal = vt100::Parser::new(lines, columns, 0);
        let mut painter = Painter::default();
        for picture in pictures {
            let mut out = Vec::new();
            painter.paint(picture, &mut out);
            terminal.process(&out);
            for y in 0..lines {
                let mut x = 0;
                while x < columns {
                    let wanted = &picture[(x, y)];
                    let seen = terminal.screen().cell(y, x).unwrap();
                    let text = if seen.has_contents() { seen.contents() } else { " " };
                    assert_eq!(text, wanted.symbol(), "at {x},{y}");
                    let ground = match wanted.bg {
                        Color::Indexed(i) => vt100::Color::Idx(i),
                        _ => vt100::Color::Default,
                    };
                    assert_eq!(seen.bgcolor(), ground, "ground at {x},{y}");
                    if wanted.symbol() != " " {
                        assert_eq!(seen.bold(), wanted.modifier.contains(Modifier::BOLD));
                        assert_eq!(seen.inverse(), wanted.modifier.contains(Modifier::REVERSED));
                    }
                    x += wanted.symbol().width().max(1) as u16;
                }
            }
        }
    }

    fn picture(columns: u16, texts: &[(String, u8)]) -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, columns, texts.len() as u16));
        for (y, (text, look)) in texts.iter().enumerate() {
            let style = match look % 5 {
                0 => Style::new(),
                1 => Style::new().bg(Color::Indexed(4)),
                2 => Style::new().add_modifier(Modifier::BOLD).fg(Color::Rgb(1, 2, 3)),
                3 => Style::new().add_modifier(Modifier::REVERSED),
                _ => Style::new().add_modifier(Modifier::DIM),
            };
            buffer.set_stringn(u16::from(look / 50), y as u16, text, columns.into(), style);
        }
        buffer
    }

    proptest! {
        #[test]
        fn the_terminal_shows_what_was_painted(
            screens in prop::collection::vec(prop::collection::vec(("[a-c 漢█]{0,14}", 0u8..200), 6), 1..6)
        ) {
            let pictures: Vec<Buffer> = screens.iter().map(|s| picture(16, s)).collect();
            check(&pictures);
        }

        #[test]
        fn moved_lines_end_up_right(start in 0usize..20, steps in prop::collection::vec(-7i32..8, 1..6)) {
            let mut at = start as i32;
            let mut pictures = Vec::new();
            for step in steps {
                at = (at + step).max(0);
                let lines: Vec<(String, u8)> = (0..8)
                    .map(|i| if i == 0 { ("head".into(), 2) } else { (format!("line {}", at + i), (at + i) as u8 % 5) })
                    .collect();
                pictures.push(picture(20, &lines));
            }
            check(&pictures);
        }
    }

    #[test]
    fn scrolling_a_tall_list_by_one_line_is_cheap() {
        let at = |from: usize| {
            let lines: Vec<(String, u8)> = (0..50).map(|i| (format!("{:>90}", from + i), 0)).collect();
            picture(100, &lines)
        };
        let mut painter = Painter::default();
        painter.paint(&at(0), &mut Vec::new());
        let mut out = Vec::new();
        painter.paint(&at(1), &mut out);
        assert!(out.len() < 150, "{} bytes", out.len());
    }

    #[test]
    fn nothing_changed_costs_nothing() {
        let one = picture(20, &[("text".into(), 2), ("漢字".into(), 1)]);
        let mut painter = Painter::default();
        painter.paint(&one, &mut Vec::new());
        let mut out = Vec::new();
        painter.paint(&one, &mut out);
        assert!(out.is_empty());
    }
}
