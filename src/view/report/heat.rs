//! The heat map of a report in SVG: executions by when they began and by how long they took, both groups by colour.
//!
//! In: the executions of both groups. Out: one `svg` element as wide as the window, a rectangle for each cell that has
//! executions, with its numbers as a tooltip; nothing for profiles, whose samples have no durations. A cell is the
//! darker the more executions of its group it has; cells of both groups have both colours, side by side. Cost: linear
//! in the executions.

use super::document::Report;
use crate::base::figure;
use crate::compare::heat_map::{HeatBox, HeatCell, HeatMap, HeatSize, time_axis};
use crate::view::heat_map::{HeatMark, box_words, column_labels};
use crate::view::markup::Escaped;
use std::fmt::{self, Write};

/// Cells of the map.
const SIZE: HeatSize = HeatSize { times: 160, names: 40, rows: 24 };
/// Height of a row in pixels.
const ROW: usize = 10;
/// Rows between two durations at the left.
const LABELLED: usize = 6;
/// Where cells begin, in per cent of the width.
const LEFT: f64 = 7.0;

/// The drawing; empty where there is none.
pub(super) fn element(report: &Report<'_>) -> String {
    let (model, c) = (report.model, report.comparison);
    let groups = [&*c.slow.members, &*c.fast.members];
    let is_profile = model.profile.is_some();
    let map = HeatMap::new(model, &time_axis(model), groups, SIZE).filter(|_| !is_profile);
    let mut out = String::new();
    if let Some(map) = map {
        // Writing to a string does not fail.
        let _ = write(&map, &mut out);
    }
    out
}

fn write(map: &HeatMap, out: &mut String) -> fmt::Result {
    let (rows, most) = (map.rows(), map.most());
    let width = (100.0 - LEFT) / map.columns.len().max(1) as f64;
    let x = |column: usize| LEFT + column as f64 * width;
    writeln!(out, "<svg class=\"heat\" width=\"100%\" height=\"{}\" font-size=\"11\">", rows * ROW + 18)?;
    for row in 0..rows {
        let y = (rows - 1 - row) * ROW;
        if row % LABELLED == 0 {
            let border = map.row_borders.get(row).map_or_else(String::new, |ns| figure::time(*ns as f64));
            let (end, y) = (LEFT - 0.5, y + ROW);
            writeln!(out, "<text x=\"{end}%\" y=\"{y}\" text-anchor=\"end\">{border}</text>")?;
        }
        for column in 0..map.columns.len() {
            let cell = map.cell(column, row);
            if cell.all == 0 {
                continue;
            }
            let place = HeatBox { columns: column..column + 1, rows: row..row + 1 };
            let HeatCell { all, slow, fast } = cell;
            let words = format!("{}: {slow} slow, {fast} fast, {all} in all", box_words(map, &place));
            let tooltip = Escaped(&words).to_string();
            let mut rectangle = |x: f64, width: f64, class: &str, level: usize| {
                let opacity = [0.4, 0.7, 1.0][level.min(2)];
                writeln!(
                    out,
                    "<rect class=\"{class}\" x=\"{x:.3}%\" y=\"{y}\" width=\"{width:.3}%\" height=\"{ROW}\" \
                     opacity=\"{opacity}\"><title>{tooltip}</title></rect>"
                )
            };
            match HeatMark::new(cell, most) {
                HeatMark::Empty => {}
                HeatMark::Neither => rectangle(x(column), width, "other", 0)?,
                HeatMark::Slow(level) => rectangle(x(column), width, "slow", level)?,
                HeatMark::Fast(level) => rectangle(x(column), width, "fast", level)?,
                HeatMark::Both => {
                    rectangle(x(column), width / 2.0, "slow", 1)?;
                    rectangle(x(column) + width / 2.0, width / 2.0, "fast", 1)?;
                }
            }
        }
    }
    for (column, label) in column_labels(map, 1) {
        writeln!(out, "<text x=\"{:.3}%\" y=\"{}\">{}</text>", x(column), rows * ROW + 14, Escaped(&label))?;
    }
    writeln!(out, "</svg>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ctx::Ctx;
    use crate::compare::{ComparisonRequest, compare, scenario};

    #[test]
    fn element_has_a_rectangle_for_each_cell_with_executions() {
        let model = scenario::lock_contention(5, 16.0);
        let comparison = compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap();
        let svg =
            element(&Report { model: &model, comparison: &comparison, command: "", timelines: None, threads: None });
        let sum = |group: &str| -> usize {
            let words = svg.split("<title>").skip(1).filter_map(|rest| rest.split_once("</title>"));
            // A cell of both groups has two rectangles with the same words.
            let mut words: Vec<&str> = words.map(|(words, _)| words).collect();
            words.dedup();
            let of_cell = |words: &&str| {
                let part = words.rsplit(": ").next()?.split(", ").find(|part| part.ends_with(group))?;
                part.split(' ').next()?.parse::<usize>().ok()
            };
            words.iter().filter_map(of_cell).sum()
        };
        assert_eq!(sum("in all"), model.executions.len(), "{svg}");
        assert_eq!(sum("slow"), comparison.slow.members.len());
        assert_eq!(sum("fast"), comparison.fast.members.len());
    }
}
