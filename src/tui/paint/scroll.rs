//! Lines that only changed their place: the terminal moves them, which costs a few bytes.

use super::pen::{is_blank, push};
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use std::hash::{BuildHasher, Hasher};

/// A region whose lines move up or down.
pub struct Scrolled {
    top: usize,
    bottom: usize,
    /// By this many lines.
    by: usize,
    /// Towards the first line.
    up: bool,
    columns: usize,
}

/// The shift that leaves the fewest lines to write. Lines that differ a little may cost more after it than before.
pub fn best(shown: &Buffer, next: &Buffer) -> Option<Scrolled> {
    let lines = usize::from(next.area.height);
    let columns = usize::from(next.area.width);
    if columns == 0 {
        return None;
    }
    let (old, new) = (fingerprints(shown, columns), fingerprints(next, columns));
    let blank = fingerprints(&Buffer::empty(Rect::new(0, 0, next.area.width, 1)), columns);
    let worth = |y: usize, from: usize| new[y] == old[from] && new[y] != old[y] && blank.first() != Some(&new[y]);
    let mut best = None;
    let mut most = 0;
    for by in 1..lines {
        for up in [true, false] {
            let from = |y: usize| if up { y + by } else { y - by };
            let range = if up { 0..lines - by } else { by..lines };
            let moved: Vec<usize> = range.filter(|y| worth(*y, from(*y))).collect();
            // Lines inside the region that are already correct would have to be written again.
            let (Some(first), Some(last)) = (moved.first(), moved.last()) else { continue };
            let (top, bottom) = if up { (*first, last + by) } else { (first - by, *last) };
            let broken = (top..=bottom).filter(|y| new[*y] == old[*y] && blank.first() != Some(&new[*y])).count();
            let gain = moved.len().saturating_sub(broken);
            if gain > most {
                most = gain;
                best = Some(Scrolled { top, bottom, by, up, columns });
            }
        }
    }
    best
}

impl Scrolled {
    /// The bytes that let the terminal do it.
    pub fn write(&self, out: &mut Vec<u8>) {
        let direction = if self.up { 'S' } else { 'T' };
        push(out, format_args!("\x1b[{};{}r\x1b[{}{direction}\x1b[r", self.top + 1, self.bottom + 1, self.by));
    }

    /// Do it on a copy of the screen.
    pub fn apply(&self, shown: &mut Buffer) {
        let region = &mut shown.content[self.top * self.columns..(self.bottom + 1) * self.columns];
        let (size, cells) = (region.len(), self.by * self.columns);
        if self.up {
            region.rotate_left(cells);
            region[size - cells..].fill(Cell::default());
        } else {
            region.rotate_right(cells);
            region[..cells].fill(Cell::default());
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
