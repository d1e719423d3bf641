//! From one screen to the next in few bytes: so that the interface is usable over a slow line.
//!
//! In: the buffer that should be on the screen. Out: bytes for the terminal. The painter remembers what it painted
//! last. It first looks for lines that only moved and lets the terminal scroll them. Then it joins the cells that
//! differ to runs in the same attributes, rewriting a short gap where that is shorter than jumping over it and erasing
//! to the end of a line where the rest is blank; a line that changes much is erased first. The order of the runs is
//! the shortest of several: a change of a colour costs 19 bytes, a jump 8, so in a page of a table it is cheaper to
//! write each column of figures downwards than each row. Cost: linear in the cells, plus lines times shifts, plus the
//! square of the runs where they are few.
//! ratatui's own backend names both colours at each change and never scrolls: a step of the cursor at the edge of
//! a tree would cost it several kilobytes.

mod order;
mod pen;
mod run;
mod scroll;

use pen::{Ink, PLAIN, Pen};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;
use run::{CellPlace, CellRun, changes};

/// The contents of the terminal, and how to change them.
pub struct Painter {
    shown: Buffer,
    valid: bool,
    pen: Pen,
}

impl Default for Painter {
    fn default() -> Self {
        Painter { shown: Buffer::empty(Rect::ZERO), valid: false, pen: PLAIN }
    }
}

impl Painter {
    /// Forget the screen: the next picture is painted whole.
    pub fn forget(&mut self) {
        self.valid = false;
    }

    /// The bytes that turn what is shown into `next`, appended to `out`.
    pub fn paint(&mut self, next: &Buffer, out: &mut Vec<u8>) {
        if !self.valid || self.shown.area != next.area {
            self.shown = Buffer::empty(next.area);
            self.pen = PLAIN;
            self.valid = true;
            out.extend_from_slice(b"\x1b[r\x1b[m\x1b[2J");
        }
        let written = Written { bytes: Vec::new(), pen: self.pen };
        let scrolled = scroll::best(&self.shown, next).map(|scrolled| {
            let mut written = written.clone();
            // Lines that appear take the background of the pen.
            written.pen = written.pen.change(Ink::Blank(Color::Reset), &mut written.bytes);
            scrolled.write(&mut written.bytes);
            let mut shown = self.shown.clone();
            scrolled.apply(&mut shown);
            written.and(&changes(&shown, next))
        });
        let plain = written.and(&changes(&self.shown, next));
        let best = scrolled.filter(|scrolled| scrolled.bytes.len() < plain.bytes.len()).unwrap_or(plain);
        out.extend_from_slice(&best.bytes);
        self.pen = best.pen;
        self.shown.clone_from(next);
    }
}

/// Bytes for the terminal, and its attributes after them.
#[derive(Clone)]
struct Written {
    bytes: Vec<u8>,
    pen: Pen,
}

impl Written {
    /// These bytes and runs in the shortest of several orders.
    fn and(mut self, runs: &[CellRun]) -> Written {
        let orders = [(0..runs.len()).collect(), order::by_ink(runs), order::by_nearest(runs, self.pen)];
        let all = orders.iter().map(|order| written(self.pen, order.iter().filter_map(|at| runs.get(*at))));
        if let Some((bytes, pen)) = all.min_by_key(|(bytes, _)| bytes.len()) {
            self.bytes.extend_from_slice(&bytes);
            self.pen = pen;
        }
        self
    }
}

/// The bytes of runs in this order, and the pen after them.
fn written<'a>(mut pen: Pen, runs: impl Iterator<Item = &'a CellRun>) -> (Vec<u8>, Pen) {
    let mut out = Vec::new();
    let mut at = None;
    for run in runs {
        go(at, run.begin, &mut out);
        pen = pen.change(run.ink, &mut out);
        out.extend_from_slice(&run.text);
        at = run.end;
    }
    (out, pen)
}

/// Move the cursor, by the shorter of both ways.
fn go(from: Option<CellPlace>, to: CellPlace, out: &mut Vec<u8>) {
    if from == Some(to) {
        return;
    }
    let absolute = match to.x {
        0 => format!("\x1b[{}H", to.y + 1),
        x => format!("\x1b[{};{}H", to.y + 1, x + 1),
    };
    let relative = from.and_then(|from| {
        let down = match to.y.checked_sub(from.y)? {
            0 => "",
            1 => "\x1b[B",
            _ => return None,
        };
        let across = match (from.x, to.x) {
            (a, b) if a == b => String::new(),
            (a, b) if a < b => format!("\x1b[{}C", b - a),
            (a, b) => format!("\x1b[{}D", a - b),
        };
        Some(format!("{down}{across}"))
    });
    let shorter = relative.filter(|relative| relative.len() < absolute.len()).unwrap_or(absolute);
    out.extend_from_slice(shorter.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ratatui::style::{Modifier, Style};
    use unicode_width::UnicodeWidthStr;

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
    fn a_page_in_several_colours_is_written_colour_by_colour() {
        let page = |first: u16| {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 80, 20));
            for y in 0..20 {
                for (x, red) in [(0, 1), (30, 2), (60, 3)] {
                    let style = Style::new().fg(Color::Rgb(red, 100, 200));
                    buffer.set_string(x, y, format!("{:04}", first + y * 7), style);
                }
            }
            buffer
        };
        let mut painter = Painter::default();
        painter.paint(&page(1000), &mut Vec::new());
        let mut out = Vec::new();
        painter.paint(&page(5003), &mut out);
        // 60 changes of colour would cost 1,080 bytes.
        assert!(out.len() < 900, "{} bytes", out.len());
        check(&[page(1000), page(5003), page(1001)]);
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
