//! The heat map for people and for scripts: marks and words that the interface shares, a drawing, JSON.
//!
//! A mark says by its shape which groups a cell has, so that it reads without colours, and how many executions on a
//! scale of its group's own fullest cell. Rows of a drawing go down from the longest duration.

use super::page::{Glyphs, Page, cut};
use super::ticks::ticks;
use super::words;
use crate::base::{clean, figure};
use crate::compare::heat_map::{HeatBox, HeatCell, HeatColumn, HeatMap, HeatSize};
use crate::model::metric::{Metric, Unit};
use serde::Serialize;

/// Columns and rows of the JSON document, at most.
pub const JSON_SIZE: HeatSize = HeatSize { times: 100, names: 100, rows: 20 };

/// Columns left of the cells of a drawing, and its rows.
const GUTTER: usize = 12;
const TEXT_ROWS: usize = 12;
/// Cells that are named where nothing is drawn.
const WORDS: usize = 8;
/// Columns of a name, at least.
const NAME_COLUMNS: usize = 4;

/// The mark of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeatMark {
    /// No execution.
    Empty,
    /// Executions of neither group.
    Neither,
    /// Executions of both groups.
    Both,
    /// Of the slow group, from 0 (few) to 2 (as many as in its fullest cell).
    Slow(usize),
    /// Of the fast group, likewise.
    Fast(usize),
}

impl HeatMark {
    /// The mark of a cell where the fullest cells have `most`.
    pub fn new(cell: HeatCell, most: HeatCell) -> HeatMark {
        match cell {
            HeatCell { all: 0, .. } => HeatMark::Empty,
            HeatCell { slow: 0, fast: 0, .. } => HeatMark::Neither,
            HeatCell { slow, fast: 0, .. } => HeatMark::Slow(level(slow, most.slow)),
            HeatCell { slow: 0, fast, .. } => HeatMark::Fast(level(fast, most.fast)),
            _ => HeatMark::Both,
        }
    }

    pub fn symbol(self) -> char {
        match self {
            HeatMark::Empty => ' ',
            HeatMark::Neither => '·',
            HeatMark::Both => '▚',
            HeatMark::Slow(level) => ['▪', '■', '█'][level.min(2)],
            HeatMark::Fast(level) => ['░', '▒', '▓'][level.min(2)],
        }
    }

    /// As the interface draws it on a terminal without Unicode.
    fn ascii(self) -> char {
        match self {
            HeatMark::Empty => ' ',
            HeatMark::Neither => '.',
            HeatMark::Both => '%',
            HeatMark::Slow(level) => ['o', 'O', '#'][level.min(2)],
            HeatMark::Fast(level) => [',', ':', '='][level.min(2)],
        }
    }
}

/// By ratio: counts of cells differ by orders of magnitude.
fn level(count: u32, most: u32) -> usize {
    if most <= 1 {
        return 1;
    }
    (f64::from(count).ln() / f64::from(most).ln() * 2.0).round().clamp(0.0, 2.0) as usize
}

/// What a map shows: `start × duration`.
pub fn title(map: &HeatMap) -> String {
    format!("{} × duration", words::metric(&map.across))
}

/// What a column holds.
pub fn column_words(column: &HeatColumn, across: &Metric) -> String {
    match column {
        HeatColumn::Times(range) => across.unit().rounded(range.from),
        HeatColumn::Name(name) => name.clone(),
        HeatColumn::Others(count) => format!("{count} others"),
        HeatColumn::Absent => "none".to_owned(),
    }
}

/// What a box holds: its columns, then its durations.
pub fn box_words(map: &HeatMap, of: &HeatBox) -> String {
    let columns = map.columns.get(of.columns.clone()).unwrap_or(&[]);
    let across = match columns {
        [] => String::new(),
        [HeatColumn::Times(first), ..] => {
            let end = match columns.last() {
                Some(HeatColumn::Times(last)) => last.to,
                _ => first.to,
            };
            let text = |value| clean::owned(&map.across.unit().rounded(value));
            format!("{}..{}", text(first.from), text(end))
        }
        [one] => column_words(one, &map.across),
        [one, .., last] => {
            format!("{}..{}", column_words(one, &map.across), column_words(last, &map.across))
        }
    };
    let border = |at: usize| map.row_borders.get(at).map_or_else(String::new, |ns| figure::time(*ns as f64));
    format!("{across}, {}..{}", border(of.rows.start), border(of.rows.end))
}

/// The texts below the columns, each with its column, for columns that are `repeat` wide: round times, or names cut to
/// their column.
pub fn column_labels(map: &HeatMap, repeat: usize) -> Vec<(usize, String)> {
    if let (Some(HeatColumn::Times(first)), Some(HeatColumn::Times(last))) = (map.columns.first(), map.columns.last()) {
        let length = last.to.saturating_sub(first.from);
        let begin = figure::duration(first.from);
        let free = begin.chars().count() + 2;
        let rest = ticks(first.from, length, map.columns.len() * repeat);
        return [(0, begin)].into_iter().chain(rest.into_iter().filter(|(column, _)| *column >= free)).collect();
    }
    let all = map.columns.iter().enumerate();
    all.map(|(at, column)| (at * repeat, column_words(column, &map.across))).collect()
}

/// A drawing, and the numbers of executions that it shows.
pub fn text(map: &HeatMap, page: Page, out: &mut String) {
    let (most, whole) = (map.most(), HeatBox { columns: 0..map.columns.len(), rows: 0..map.rows() });
    let symbol = |mark: HeatMark| if page.is_ascii() { mark.ascii() } else { mark.symbol() };
    let marks = |of: fn(usize) -> HeatMark| (0..3).map(|level| symbol(of(level))).collect::<String>();
    let sum = map.sum(&whole);
    let times = if page.is_ascii() { "x" } else { "×" };
    let title = format!("{} {times} duration", words::metric(&map.across));
    let legend = format!(
        "{title}: slow {} {}, fast {} {}, both {}, neither {}, of {}",
        figure::count(sum.slow.into()),
        marks(HeatMark::Slow),
        figure::count(sum.fast.into()),
        marks(HeatMark::Fast),
        symbol(HeatMark::Both),
        symbol(HeatMark::Neither),
        figure::counted(sum.all.into(), "execution"),
    );
    page.wrap(out, 0, &legend);
    if page.glyphs == Glyphs::Words {
        return fullest(map, page, out);
    }
    let repeat = repeat(map, page.width().saturating_sub(GUTTER + 2));
    for row in (0..map.rows()).rev() {
        let line: String = (0..map.columns.len())
            .flat_map(|column| std::iter::repeat_n(symbol(HeatMark::new(map.cell(column, row), most)), repeat))
            .collect();
        let border = figure::time(map.row_borders.get(row).map_or(0.0, |ns| *ns as f64));
        out.push_str(cut(&format!("{border:>10} |{line}"), page.width()).trim_end());
        out.push('\n');
    }
    let mut below = " ".repeat(GUTTER);
    for (column, label) in column_labels(map, repeat) {
        let free = (GUTTER + column).checked_sub(below.chars().count());
        let label = if map.across.unit() == Unit::Name { cut(&label, repeat.saturating_sub(1)) } else { label };
        if let Some(free) = free {
            below.push_str(&" ".repeat(free));
            below.push_str(&clean::line(&label));
        }
    }
    out.push_str(cut(&below, page.width()).trim_end());
    out.push('\n');
}

/// The cells with most slow executions, in words.
fn fullest(map: &HeatMap, page: Page, out: &mut String) {
    let all = (0..map.rows()).flat_map(|row| (0..map.columns.len()).map(move |column| (column, row)));
    let mut cells: Vec<(HeatCell, (usize, usize))> = all.map(|(c, r)| (map.cell(c, r), (c, r))).collect();
    cells.retain(|(cell, _)| cell.slow > 0);
    cells.sort_by_key(|(cell, place)| (std::cmp::Reverse(cell.slow), *place));
    for (cell, (column, row)) in cells.into_iter().take(WORDS) {
        let of = HeatBox { columns: column..column + 1, rows: row..row + 1 };
        let words = format!("{}: {} slow, {} fast, {} in all", box_words(map, &of), cell.slow, cell.fast, cell.all);
        page.wrap(out, 2, &words);
    }
}

/// The size of a drawing on a page.
pub fn text_size(page: Page) -> HeatSize {
    let times = page.width().saturating_sub(GUTTER + 2).clamp(8, 100);
    HeatSize { times, names: (times / NAME_COLUMNS).max(2), rows: TEXT_ROWS }
}

/// Columns of the page for each column of the map.
pub fn repeat(map: &HeatMap, columns: usize) -> usize {
    (columns / map.columns.len().max(1)).max(1)
}

/// The document: `cells[row][column]`, rows from the shortest duration.
#[derive(Serialize)]
pub struct HeatMapJson {
    across: String,
    columns: Vec<ColumnJson>,
    row_borders_ns: Vec<i64>,
    all: Vec<Vec<u32>>,
    slow: Vec<Vec<u32>>,
    fast: Vec<Vec<u32>>,
}

/// Exactly one of: a range, a name, a number of names, nothing.
#[derive(Serialize)]
struct ColumnJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    from_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    others: Option<usize>,
}

/// The map as a part of a document.
pub fn json(map: &HeatMap) -> HeatMapJson {
    let column = |column: &HeatColumn| {
        let none = ColumnJson { from_ns: None, to_ns: None, name: None, others: None };
        match column {
            HeatColumn::Times(range) => ColumnJson { from_ns: Some(range.from), to_ns: Some(range.to), ..none },
            HeatColumn::Name(name) => ColumnJson { name: Some(clean::owned(name)), ..none },
            HeatColumn::Others(count) => ColumnJson { others: Some(*count), ..none },
            HeatColumn::Absent => none,
        }
    };
    let counts = |of: fn(HeatCell) -> u32| {
        let row = |row: usize| (0..map.columns.len()).map(|column| of(map.cell(column, row))).collect();
        (0..map.rows()).map(row).collect()
    };
    HeatMapJson {
        across: clean::owned(&map.across.name()),
        columns: map.columns.iter().map(column).collect(),
        row_borders_ns: map.row_borders.clone(),
        all: counts(|cell| cell.all),
        slow: counts(|cell| cell.slow),
        fast: counts(|cell| cell.fast),
    }
}
