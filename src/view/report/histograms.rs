//! The metrics of both groups as small bar charts in SVG: the slow executions upwards, the fast ones downwards, in the
//! same bins. Each group's bars are scaled to its own largest bin, because groups differ in size.

use super::document::Report;
use crate::compare::members::{binned, sorted_present};
use crate::model::Model;
use crate::model::histogram::{Bins, ValueRange};
use crate::model::metric::{Column, Metric, Unit};
use crate::view::markup::{Escaped, shortened};
use crate::view::words;
use std::fmt::{self, Write};

const WIDTH: f64 = 380.0;
/// Letters of a label below the bars.
const LABEL: usize = 24;
/// Height of one group's bars.
const BARS: f64 = 40.0;

/// One chart per metric that some execution has and that is not the same for all.
pub(super) fn elements(report: &Report<'_>) -> String {
    let mut out = String::new();
    for column in report.model.executions.columns.iter().filter(|column| column.metric != Metric::Weight) {
        // Writing to a string does not fail.
        let _ = write(report, column, &mut out);
    }
    out
}

fn write(report: &Report<'_>, column: &Column, out: &mut String) -> fmt::Result {
    let (model, c) = (report.model, report.comparison);
    let unit = column.metric.unit();
    let present = sorted_present(column.values.iter());
    let (Some(&least), Some(&most)) = (present.first(), present.last()) else { return Ok(()) };
    if least == most {
        return Ok(());
    }
    let bins = Bins::new(&present, unit);
    let width = WIDTH / bins.len().max(1) as f64;
    let name = words::metric(&column.metric);
    writeln!(
        out,
        "<figure><figcaption>{}{}</figcaption><svg width=\"{WIDTH}\" height=\"{:.0}\" viewBox=\"0 0 {WIDTH} {:.0}\">",
        Escaped(&name),
        if bins.logarithmic { " (logarithmic)" } else { "" },
        2.0 * BARS + 16.0,
        2.0 * BARS + 16.0
    )?;
    for (class, members, is_above) in [("slow", &c.slow.members, true), ("fast", &c.fast.members, false)] {
        let counts = binned(model, column, &bins, members);
        let largest = f64::from(counts.iter().copied().max().unwrap_or(0).max(1));
        for (bin, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let height = BARS * f64::from(*count) / largest;
            let y = if is_above { BARS - height } else { BARS + 1.0 };
            let range = bins.range(bin).map_or_else(String::new, |range| range_text(model, unit, range));
            writeln!(
                out,
                "<rect class=\"{class}\" x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\"><title>{}\
                 </title></rect>",
                bin as f64 * width,
                (width - 0.5).max(0.5),
                Escaped(&format!("{range}: {count} {class}"))
            )?;
        }
    }
    let y = 2.0 * BARS + 13.0;
    // Two long names would run into each other.
    let label = |value| shortened(&model.value_text(unit, value), LABEL).into_owned();
    writeln!(out, "<text x=\"0\" y=\"{y}\">{}</text>", Escaped(&label(least)))?;
    writeln!(out, "<text x=\"{WIDTH}\" y=\"{y}\" text-anchor=\"end\">{}</text>", Escaped(&label(most)))?;
    writeln!(out, "</svg></figure>")
}

fn range_text(model: &Model, unit: Unit, ValueRange { from, to }: ValueRange) -> String {
    match unit {
        Unit::Name => model.value_text(unit, from),
        _ if to - from <= 1 => model.value_text(unit, from),
        _ => format!("{} to {}", model.value_text(unit, from), model.value_text(unit, to)),
    }
}
