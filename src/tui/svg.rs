//! A screen as an SVG picture: for the README and for "save screen".
//!
//! In: a buffer of cells. Out: one self-contained SVG document. Text of one line and style is one element, held to
//! the grid by `textLength`, so that the picture does not depend on the font that the reader has. Block characters
//! are drawn as rectangles: fonts leave gaps between them. Cost: linear in the cells.

use super::theme::rgb;
use crate::view::markup::Escaped;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use std::fmt::Write;
use unicode_width::UnicodeWidthStr;

/// Width and height of a cell in pixels.
const CELL: (usize, usize) = (9, 18);
/// Room around the screen.
const MARGIN: usize = 12;

/// The terminal's own colours, which no buffer knows.
#[derive(Clone, Copy, Debug)]
pub struct Ground {
    pub text: [u8; 3],
    /// Behind it.
    pub back: [u8; 3],
}

impl Ground {
    /// Light text on a dark ground.
    pub const DARK: Ground = Ground { text: [216, 222, 233], back: [27, 31, 39] };
    /// Dark text on a light ground.
    pub const LIGHT: Ground = Ground { text: [36, 41, 47], back: [255, 255, 255] };
}

struct Look {
    text: [u8; 3],
    back: Option<[u8; 3]>,
    modifier: Modifier,
}

impl Look {
    fn of(cell: &Cell, ground: Ground) -> Look {
        let text = rgb(cell.fg).unwrap_or(ground.text);
        let back = (cell.bg != Color::Reset).then(|| rgb(cell.bg).unwrap_or(ground.back));
        if cell.modifier.contains(Modifier::REVERSED) {
            Look { text: back.unwrap_or(ground.back), back: Some(text), modifier: cell.modifier }
        } else {
            Look { text, back, modifier: cell.modifier }
        }
    }
}

/// The picture of a buffer.
pub fn picture(buffer: &Buffer, ground: Ground) -> String {
    let (columns, lines) = (usize::from(buffer.area.width), usize::from(buffer.area.height));
    let (width, height) = (columns * CELL.0 + 2 * MARGIN, lines * CELL.1 + 2 * MARGIN);
    let mut svg = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} \
         {height}\">\n\
         <style>text{{font:15px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}}</style>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{}\"/>",
        hex(ground.back)
    );
    for y in 0..lines {
        let row = &buffer.content[y * columns..(y + 1) * columns];
        let mut x = 0;
        while x < columns {
            let cell = &row[x];
            let look = Look::of(cell, ground);
            let alike = |c: &Cell| c.style() == cell.style();
            if let Some(block) = Block::of(cell.symbol()) {
                let run = row[x..].iter().take_while(|c| alike(c) && c.symbol() == cell.symbol()).count();
                let run = if block.width < 8 { 1 } else { run };
                back(&mut svg, x, y, run, &look);
                block.draw(&mut svg, x, y, run, look.text);
                x += run;
                continue;
            }
            let run = row[x..].iter().take_while(|c| alike(c) && Block::of(c.symbol()).is_none()).count();
            back(&mut svg, x, y, run, &look);
            words(&mut svg, row, x, y, run, &look);
            x += run;
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// Text of one style; blanks between words of more than two columns split it.
fn words(svg: &mut String, row: &[Cell], from: usize, y: usize, run: usize, look: &Look) {
    let mut x = from;
    while x < from + run {
        if row[x].symbol() == " " {
            x += 1;
            continue;
        }
        let mut text = String::new();
        let mut end = x;
        let mut at = x;
        while at < from + run {
            if row[at..(at + 3).min(from + run)].iter().all(|c| c.symbol() == " ") {
                break;
            }
            text.push_str(row[at].symbol());
            at += row[at].symbol().width().max(1);
            end = at;
        }
        let shown = text.trim_end();
        let columns = (end - x) - (text.len() - shown.len());
        let mut style = String::new();
        for (modifier, css) in [
            (Modifier::BOLD, " font-weight=\"bold\""),
            (Modifier::ITALIC, " font-style=\"italic\""),
            (Modifier::UNDERLINED, " text-decoration=\"underline\""),
            (Modifier::DIM, " opacity=\"0.6\""),
        ] {
            if look.modifier.contains(modifier) {
                style.push_str(css);
            }
        }
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" textLength=\"{}\" fill=\"{}\"{style}>{}</text>",
            MARGIN + x * CELL.0,
            MARGIN + y * CELL.1 + 13,
            columns * CELL.0,
            hex(look.text),
            Escaped(shown)
        );
        x = end.max(x + 1);
    }
}

fn back(svg: &mut String, x: usize, y: usize, run: usize, look: &Look) {
    if let Some(colour) = look.back {
        rect(
            svg,
            (MARGIN + x * CELL.0) as f64,
            (MARGIN + y * CELL.1) as f64,
            (run * CELL.0) as f64,
            CELL.1 as f64,
            colour,
        );
    }
}

fn rect(svg: &mut String, x: f64, y: f64, width: f64, height: f64, colour: [u8; 3]) {
    let _ = writeln!(
        svg,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{}\" shape-rendering=\"crispEdges\"/>",
        hex(colour)
    );
}

/// A block character: eighths of the cell's width from the left, or of its height from below.
struct Block {
    width: usize,
    height: usize,
}

impl Block {
    fn of(symbol: &str) -> Option<Block> {
        let c = symbol.chars().next()?;
        let eighths = |first: char| (c as u32).checked_sub(first as u32).map(|d| d as usize);
        match c {
            '▁'..='█' => Some(Block { width: 8, height: eighths('▁')? + 1 }),
            '▉'..='▏' => Some(Block { width: 7 - eighths('▉')?, height: 8 }),
            _ => None,
        }
    }

    fn draw(&self, svg: &mut String, x: usize, y: usize, run: usize, colour: [u8; 3]) {
        let (w, h) = (CELL.0 as f64, CELL.1 as f64);
        let (width, height) = (w * self.width as f64 / 8.0 + w * (run - 1) as f64, h * self.height as f64 / 8.0);
        let top = (MARGIN + y * CELL.1) as f64 + h - height;
        rect(svg, (MARGIN + x * CELL.0) as f64, top, width, height, colour);
    }
}

fn hex([r, g, b]: [u8; 3]) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    #[test]
    fn text_is_escaped_and_aligned_to_the_grid() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 10, 1));
        buffer.set_string(1, 0, "a<b & c", Style::new().add_modifier(Modifier::BOLD));
        let svg = picture(&buffer, Ground::DARK);
        let wanted =
            "<text x=\"21\" y=\"25\" textLength=\"63\" fill=\"#d8dee9\" font-weight=\"bold\">a&lt;b &amp; c</text>";
        assert!(svg.contains(wanted), "{svg}");
    }

    #[test]
    fn blocks_are_rectangles_without_gaps() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 4, 1));
        buffer.set_string(0, 0, "██▌▁", Style::new().fg(Color::Rgb(1, 2, 3)));
        let svg = picture(&buffer, Ground::DARK);
        for wanted in ["width=\"18\" height=\"18\"", "width=\"4.5\" height=\"18\"", "width=\"9\" height=\"2.25\""] {
            assert!(svg.contains(wanted), "{wanted} in {svg}");
        }
        assert!(!svg.contains("<text"));
    }
}
