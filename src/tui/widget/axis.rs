//! Labels of a histogram's axis: round values at their columns, or the value of each bar.
//!
//! In: a metric with its bins, and how the bins share columns. Out: labels with their columns, which do not touch each
//! other and end before the last column. A metric whose bins are single values (names, small counts) has a label under
//! each bar, where it fits; any other has round values, decimal (binary for bytes), the roundest first.

use crate::model::metric::Unit;
use crate::tui::canvas::{clip, width};
use crate::tui::counts::HistogramRow;
use crate::tui::frame::BinGrid;

/// A text below a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisLabel {
    /// The first column, from the first bar.
    pub column: usize,
    pub text: String,
}

/// Columns between two labels.
const BETWEEN: usize = 3;

/// The labels, from left to right.
pub fn labels(row: &HistogramRow, grid: BinGrid) -> Vec<AxisLabel> {
    let columns = grid.count * grid.repeat;
    if is_discrete(row) { of_bars(row, grid) } else { round(row, grid, columns) }
}

/// True where each bin is one value.
fn is_discrete(row: &HistogramRow) -> bool {
    let single = |pair: &[i64]| pair[1].saturating_sub(pair[0]) == 1;
    match row.metric.unit() {
        Unit::Name => true,
        Unit::Ns => false,
        // Distinct values need not be neighbours: the last bin ends right after its value, as those of equal width
        // hardly do.
        Unit::Count | Unit::Bytes => {
            let edges = &row.bins.edges;
            edges.windows(2).all(single) || (!row.bins.logarithmic && edges.windows(2).next_back().is_some_and(single))
        }
    }
}

/// The value of each bar, cut to its bar; of bars that are too narrow as many as fit.
fn of_bars(row: &HistogramRow, grid: BinGrid) -> Vec<AxisLabel> {
    let text = |bin: usize| match row.metric.unit() {
        Unit::Name => row.names.get(bin).cloned(),
        unit => row.bins.edges.get(bin).map(|value| unit.rounded(*value)),
    };
    let columns = grid.count * grid.repeat;
    let mut labels: Vec<AxisLabel> = Vec::new();
    let mut free = 0;
    for bin in (0..row.bins.len()).step_by(grid.step) {
        let column = bin / grid.step * grid.repeat;
        let Some(text) = text(bin).filter(|_| column >= free) else { continue };
        // Names are cut to their bar where some of them are left; numbers are whole or left out.
        let room = columns.saturating_sub(column);
        let is_wide = grid.repeat > 4 && row.metric.unit() == Unit::Name;
        let text = clip(&text, if is_wide { grid.repeat - 1 } else { room }).into_owned();
        let whole = row.metric.unit() == Unit::Name || width(&text) <= room;
        if whole && !text.is_empty() && !text.starts_with('…') {
            free = column + width(&text) + 1;
            labels.push(AxisLabel { column, text });
        }
    }
    labels
}

/// Round values, the roundest first, each where its column begins; the smallest and the largest value where fewer than
/// two round ones fit.
fn round(row: &HistogramRow, grid: BinGrid, columns: usize) -> Vec<AxisLabel> {
    let (Some(least), Some(most)) = (row.bins.edges.first(), row.bins.edges.last()) else { return Vec::new() };
    let unit = row.metric.unit();
    let place = |value: i64, text: String| {
        let column = row.bins.of(value)? / grid.step * grid.repeat;
        (column + width(&text) <= columns).then_some(AxisLabel { column, text })
    };
    let apart = |a: &AxisLabel, b: &AxisLabel| a.column + width(&a.text) + BETWEEN <= b.column;
    let fits = |label: &AxisLabel, labels: &[AxisLabel]| labels.iter().all(|l| apart(l, label) || apart(label, l));
    let mut labels: Vec<AxisLabel> = Vec::new();
    if row.bins.logarithmic {
        // The first bin of values that begin at zero holds all that is too small for the ratio.
        let first = row.bins.edges.get(1).copied().filter(|_| *least <= 0).unwrap_or(*least);
        let zero = (*least == 0).then(|| place(0, "0".to_owned())).flatten();
        labels.extend(zero);
        for value in decades(first, *most, unit) {
            labels.extend(place(value, round_text(value, unit)).filter(|label| fits(label, &labels)));
        }
    } else {
        // The finest step whose multiples all have a place: an axis with gaps would be read wrongly.
        for values in multiples(*least, *most, unit) {
            let found: Vec<AxisLabel> = values.into_iter().filter_map(|v| place(v, round_text(v, unit))).collect();
            if !found.windows(2).all(|pair| apart(&pair[0], &pair[1])) {
                break;
            }
            labels = found;
        }
    }
    if labels.len() < 2 {
        labels = [*least, most.saturating_sub(1)]
            .into_iter()
            .filter_map(|value| {
                let text = unit.rounded(value);
                let column = if value == *least { 0 } else { columns.checked_sub(width(&text))? };
                Some(AxisLabel { column, text })
            })
            .collect();
        if labels.len() == 2 && width(&labels[0].text) + BETWEEN > labels[1].column {
            labels.truncate(1);
        }
        labels.retain(|l| l.column + width(&l.text) <= columns);
    }
    labels.sort_by_key(|l| l.column);
    labels
}

/// Powers of ten (of 1024 for bytes) that a value can have.
fn powers(unit: Unit) -> Vec<i128> {
    let base: i128 = if unit == Unit::Bytes { 1024 } else { 10 };
    std::iter::successors(Some(1_i128), |p| Some(p * base)).take_while(|p| *p <= i128::from(i64::MAX)).collect()
}

/// Round values between two bounds, the roundest first: powers, then their multiples.
fn decades(least: i64, most: i64, unit: Unit) -> Vec<i64> {
    let factors: &[i128] = if unit == Unit::Bytes { &[1, 32, 8, 128] } else { &[1, 5, 2] };
    let all = factors.iter().flat_map(|factor| powers(unit).into_iter().map(move |p| p * factor));
    all.filter(|v| i128::from(least) <= *v && *v < i128::from(most)).filter_map(|v| i64::try_from(v).ok()).collect()
}

/// The multiples of round steps between two bounds, from the widest step to the narrowest.
fn multiples(least: i64, most: i64, unit: Unit) -> Vec<Vec<i64>> {
    let span = i128::from(most) - i128::from(least);
    let factors: &[i128] = if unit == Unit::Bytes { &[512, 256, 128, 64, 32, 16, 8, 4, 2, 1] } else { &[5, 2, 1] };
    let steps = powers(unit).into_iter().rev().flat_map(|p| factors.iter().map(move |f| p * f));
    let all = |step: i128| {
        let first = i128::from(least).div_euclid(step) * step;
        let values = (0..=span / step + 1).map(|i| first + i * step);
        let inside = values.filter(|v| i128::from(least) <= *v && *v < i128::from(most));
        inside.filter_map(|v| i64::try_from(v).ok()).collect()
    };
    steps.filter(|step| *step < span && span / step <= 24).map(all).collect()
}

/// A round value without decimals that say nothing: `5 ms`, `64 KiB`, `200`.
fn round_text(value: i64, unit: Unit) -> String {
    let exact = unit.exact(value);
    let digits = exact.trim_end_matches(|c: char| c.is_alphabetic());
    match (value, exact.strip_prefix(digits)) {
        (0, _) => "0".to_owned(),
        (_, Some(suffix)) if !suffix.is_empty() => format!("{digits} {suffix}"),
        _ => exact,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::histogram::Bins;
    use crate::model::metric::Metric;
    use crate::tui::counts::GroupCounts;
    use std::sync::Arc;

    fn row(metric: Metric, values: &[i64], names: &[&str]) -> HistogramRow {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        HistogramRow {
            bins: Arc::new(Bins::new(&sorted, metric.unit())),
            names: names.iter().map(|n| (*n).to_owned()).collect(),
            metric,
            all: Arc::new([]),
            slow: GroupCounts::default(),
            fast: GroupCounts::default(),
            separation: 0.0,
        }
    }

    fn drawn(row: &HistogramRow, columns: usize) -> String {
        let grid = BinGrid::new(row.bins.len(), columns);
        let mut line = String::new();
        for label in labels(row, grid) {
            assert!(width(&line) <= label.column, "{line}: {label:?}");
            line = format!("{line:<at$}{text}", at = label.column, text = label.text);
        }
        assert!(width(&line) <= columns, "{line}");
        line
    }

    #[test]
    fn labels_of_discrete_values_name_each_bar_once() {
        assert_eq!(drawn(&row(Metric::Syscalls, &[6, 7, 7], &[]), 30), "6       7");
        let names: Vec<String> = (0..16).map(|i| format!("rank {i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let ranks = row(Metric::Type, &(0..16).collect::<Vec<_>>(), &names);
        assert_eq!(drawn(&ranks, 33), "rank 0  rank 4  rank 8  rank 12");
    }

    #[test]
    fn labels_of_an_even_axis_are_multiples_of_a_round_step() {
        let even: Vec<i64> = (0..1000).map(|i| 1_200_000 + i * 8_000).collect();
        let line = drawn(&row(Metric::Duration, &even, &[]), 60);
        assert!(line.contains("2 ms") && line.contains("4 ms") && line.contains("8 ms"), "{line}");
        let sizes: Vec<i64> = (0..1000).map(|i| i * 100).collect();
        assert!(drawn(&row(Metric::BytesRead, &sizes, &[]), 60).contains("64 KiB"));
    }

    #[test]
    fn labels_of_a_logarithmic_axis_are_decades_first() {
        let skewed: Vec<i64> = (0..1000).map(|i| 700_000 + i * 1000).chain([90_000_000]).collect();
        let line = drawn(&row(Metric::Duration, &skewed, &[]), 60);
        assert!(line.contains("1 ms") && line.contains("10 ms") && line.contains("50 ms"), "{line}");
        let with_zero: Vec<i64> = skewed.iter().copied().chain([0]).collect();
        let line = drawn(&row(Metric::Duration, &with_zero, &[]), 60);
        assert!(line.starts_with('0') && !line.contains("ns"), "zero and small values share the first bin: {line}");
    }

    #[test]
    fn labels_fit_any_width_and_any_values() {
        for columns in 1..80 {
            for values in [vec![i64::MIN + 1, 0, i64::MAX], vec![1_234_567, 1_234_568, 1_234_569], vec![0, 5], vec![3]]
            {
                for metric in [Metric::Duration, Metric::BytesRead, Metric::Syscalls] {
                    drawn(&row(metric, &values, &[]), columns);
                }
            }
        }
    }
}
