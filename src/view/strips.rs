//! Strips of ranks x time as text: how much was computed and waited in each cell.
//!
//! In: a [`RankTimeline`] strip. Out: lines of a given width; each cell is a shade from ` ` (nothing) to `#` (all of
//! its time).

use crate::base::time::Timestamp;
use crate::base::{clean, figure};
use crate::model::timeline::{RankRow, RankTimeline};
use serde::Serialize;
use std::fmt::Write;

/// From nothing to all.
const SHADES: [char; 6] = [' ', '.', ':', '+', '*', '#'];

/// A strip in JSON: shares of each cell in per cent.
#[derive(Clone, Debug, Serialize)]
pub struct StripJson {
    begin_ns: Timestamp,
    end_ns: Timestamp,
    rows: Vec<RowJson>,
}

#[derive(Clone, Debug, Serialize)]
struct RowJson {
    label: String,
    computing: Vec<u8>,
    waiting: Vec<u8>,
}

/// For programs.
pub fn json(strip: &RankTimeline) -> StripJson {
    let row = |r: &RankRow| RowJson {
        label: clean::owned(&r.label),
        computing: r.computing.clone(),
        waiting: r.waiting.clone(),
    };
    StripJson { begin_ns: strip.window.start, end_ns: strip.window.end, rows: strip.rows.iter().map(row).collect() }
}

/// Cells in fewer columns: the mean of those that share one.
fn fold(cells: &[u8], columns: usize) -> Vec<u8> {
    let columns = columns.clamp(1, cells.len().max(1));
    let mean = |column: usize| {
        let of = &cells[column * cells.len() / columns..((column + 1) * cells.len() / columns).max(1).min(cells.len())];
        (of.iter().map(|c| u32::from(*c)).sum::<u32>() / of.len().max(1) as u32) as u8
    };
    (0..columns).map(mean).collect()
}

/// The content of a row's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StripContent {
    /// Time of the program's own code.
    Computing,
    /// Time of waiting.
    Waiting,
    /// The larger of the two: `#` computing, `.` waiting.
    Both,
}

/// The cells of a row in so many columns.
pub fn cells(row: &RankRow, shown: StripContent, columns: usize) -> String {
    let shade = |percent: u8| SHADES[usize::from(percent.min(100)) * (SHADES.len() - 1) / 100];
    // A share above zero is never blank.
    let seen = |percent: u8| if (1..20).contains(&percent) { SHADES[1] } else { shade(percent) };
    let (computing, waiting) = (fold(&row.computing, columns), fold(&row.waiting, columns));
    match shown {
        StripContent::Computing => computing.into_iter().map(seen).collect(),
        StripContent::Waiting => waiting.into_iter().map(seen).collect(),
        StripContent::Both => {
            let more = |(c, w): (&u8, &u8)| match (c, w) {
                (0, 0) => '-',
                (c, w) if c >= w => '#',
                _ => '.',
            };
            computing.iter().zip(&waiting).map(more).collect()
        }
    }
}

/// Rows merged into at most `most`: the mean of neighbours, named after the first and the last.
pub fn folded(strip: &RankTimeline, most: usize) -> Vec<RankRow> {
    let per = strip.rows.len().div_ceil(most.max(1)).max(1);
    let mean = |of: &[RankRow], get: fn(&RankRow) -> &Vec<u8>| -> Vec<u8> {
        let cells = of.first().map_or(0, |r| get(r).len());
        let sum = |cell: usize| of.iter().map(|r| u32::from(get(r).get(cell).copied().unwrap_or(0))).sum::<u32>();
        (0..cells).map(|cell| (sum(cell) / of.len().max(1) as u32) as u8).collect()
    };
    let ends = |label: &str| -> Option<(String, String)> {
        let numbers = label.strip_prefix("ranks ").or(label.strip_prefix("rank "))?;
        let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
        Some((first.to_owned(), last.to_owned()))
    };
    let row = |of: &[RankRow]| {
        let (first, last) = (of.first().map_or("", |r| &r.label), of.last().map_or("", |r| &r.label));
        let label = match (of.len(), ends(first), ends(last)) {
            (1, ..) => first.to_owned(),
            (_, Some((a, _)), Some((_, b))) => format!("ranks {a}-{b}"),
            _ => format!("{first} to {last}"),
        };
        let source = of.iter().any(|r| r.source);
        RankRow { label, source, computing: mean(of, |r| &r.computing), waiting: mean(of, |r| &r.waiting) }
    };
    strip.rows.chunks(per).map(row).collect()
}

/// Lines of a strip: names, cells, and a last line with how long it is.
pub fn lines(strip: &RankTimeline, shown: StripContent, rows: usize, columns: usize) -> Vec<String> {
    let rows = folded(strip, rows);
    let widest = rows.iter().map(|r| r.label.chars().count()).max().unwrap_or(0).min(columns / 3);
    let available = columns.saturating_sub(widest + 3).max(1);
    let mut lines: Vec<String> = Vec::new();
    for row in &rows {
        let mark = if row.source { '>' } else { ' ' };
        let label: String = clean::text(&row.label).chars().take(widest).collect();
        lines.push(format!("{mark}{label:<widest$} |{}", cells(row, shown, available)));
    }
    let mut axis = String::new();
    // Writing to a String cannot fail.
    let _ = write!(axis, " {:widest$} |{} in total", "", figure::duration(strip.window.len()));
    lines.push(axis);
    lines
}
