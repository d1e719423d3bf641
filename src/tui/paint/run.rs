//! The cells of a screen that differ from what is shown, joined to runs that are written at once.

use super::pen::{Ink, ON_BLANK, is_blank};
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::Color;
use unicode_width::UnicodeWidthStr;

/// A gap of this many unchanged cells is rewritten rather than jumped over.
const GAP: u16 = 4;

/// True when both look the same: the colour of a blank cell's text does not show.
fn same(a: &Cell, b: &Cell) -> bool {
    let blank = a.symbol() == " " && !a.modifier.intersects(ON_BLANK) && !b.modifier.intersects(ON_BLANK);
    a.symbol() == b.symbol() && a.bg == b.bg && (blank || (a.fg == b.fg && a.modifier == b.modifier))
}

/// A position on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellPlace {
    pub x: u16,
    pub y: u16,
}

/// Cells of a line that are written at once.
#[derive(Clone, Debug)]
pub struct CellRun {
    pub begin: CellPlace,
    pub ink: Ink,
    /// The bytes without those that change attributes.
    pub text: Vec<u8>,
    /// The terminal's cursor after it, where that is sure.
    pub end: Option<CellPlace>,
    /// It erases its whole line: the other runs of the line come later.
    pub erases: bool,
}

/// What a jump and a change of attributes cost, about.
const RUN_COST: usize = 12;

/// The runs that turn a screen into another, line by line.
pub fn changes(shown: &Buffer, next: &Buffer) -> Vec<CellRun> {
    let mut runs: Vec<CellRun> = Vec::new();
    let columns = usize::from(next.area.width);
    let blank = vec![Cell::default(); columns];
    let lines = shown.content.chunks(columns.max(1)).zip(next.content.chunks(columns.max(1)));
    for (y, (old, new)) in (0_u16..).zip(lines) {
        let changed = runs_of_line(old, new, y);
        let anew = if changed.len() > 1 { runs_of_line(&blank, new, y) } else { Vec::new() };
        let cost = |runs: &[CellRun]| runs.iter().map(|run| run.text.len() + RUN_COST).sum::<usize>();
        if changed.len() > 1 && RUN_COST + cost(&anew) < cost(&changed) {
            let begin = CellPlace { x: 0, y };
            let (ink, text) = (Ink::Blank(Color::Reset), b"\x1b[2K".to_vec());
            runs.push(CellRun { begin, ink, text, end: Some(begin), erases: true });
            runs.extend(anew);
        } else {
            runs.extend(changed);
        }
    }
    runs
}

/// The runs that turn a line into another, from left to right.
fn runs_of_line(old: &[Cell], new: &[Cell], y: u16) -> Vec<CellRun> {
    let mut runs: Vec<CellRun> = Vec::new();
    let columns = new.len() as u16;
    let new = |x: u16| &new[usize::from(x)];
    let old = |x: u16| &old[usize::from(x)];
    let blank_from = (0..columns).rev().find(|x| !is_blank(new(*x))).map_or(0, |x| x + 1);
    let mut x = 0;
    while x < columns {
        let wide = new(x).symbol().width().clamp(1, 2) as u16;
        // A wide character covers the cell after it, before and now; one that goes away takes that cell along.
        let covered = (x + wide).min(columns);
        let was_covered = x > 0 && old(x - 1).symbol().width() > 1 && !same(new(x - 1), old(x - 1));
        if !was_covered && (x..covered).all(|c| same(new(c), old(c))) {
            x = covered;
            continue;
        }
        let begin = CellPlace { x, y };
        let last = runs.last_mut();
        if x >= blank_from && columns - x > 3 {
            let ink = Ink::Blank(Color::Reset);
            match last.filter(|run| run.end == Some(begin) && run.ink.with(ink).is_some()) {
                Some(run) => run.text.extend_from_slice(b"\x1b[K"),
                None => runs.push(CellRun { begin, ink, text: b"\x1b[K".to_vec(), end: Some(begin), erases: false }),
            }
            return runs;
        }
        let cell = new(x);
        // Terminals disagree on the width of some characters, and at the last column they wait to wrap.
        let is_sure = cell.symbol().is_ascii() || (covered == x + 1 && cell.symbol().chars().count() == 1);
        let end = (is_sure && covered < columns).then_some(CellPlace { x: covered, y });
        match last.and_then(|run| joined(run, x, new).map(|ink| (run, ink))) {
            Some((run, ink)) => {
                let from = run.end.map_or(x, |end| end.x);
                (from..=x).for_each(|at| run.text.extend_from_slice(new(at).symbol().as_bytes()));
                (run.ink, run.end) = (ink, end);
            }
            None => {
                let text = cell.symbol().as_bytes().to_vec();
                runs.push(CellRun { begin, ink: Ink::of(cell), text, end, erases: false });
            }
        }
        x = covered;
    }
    runs
}

/// The ink of a run that goes on up to column `x`: the gap between is short and in the same attributes.
fn joined<'a>(run: &CellRun, x: u16, new: impl Fn(u16) -> &'a Cell) -> Option<Ink> {
    let from = run.end.map(|end| end.x).filter(|from| x - from <= GAP)?;
    if (from..x).any(|at| new(at).symbol().len() != 1) {
        return None;
    }
    (from..=x).try_fold(run.ink, |ink, at| ink.with(Ink::of(new(at))))
}
