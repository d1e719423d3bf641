//! The recording in two lines below the verdict.
//!
//! In: the overview of the recording and the executions. Out: CPU use over time, and where executions begin, `!` where
//! events were lost. Of recordings made one after the other, which have no time in common: where the executions of
//! each group begin, from the begin of their own recording.

use super::app::App;
use super::frame::HeaderLine;
use super::overview::{self, OverviewColumn};
use super::theme::StyleScope;
use super::widget::page::StyledLine;
use super::widget::strip;
use crate::compare::Comparison;
use crate::model::column_values::ColumnValues;
use crate::model::execution::ExecutionId;
use crate::model::metric::Metric;

/// Columns of the labels.
const LABEL: usize = 15;

/// The recording in two lines.
pub fn lines(app: &App, columns: usize) -> Vec<HeaderLine> {
    if overview::strip_lines(app.size) == 0 {
        return Vec::new();
    }
    let executions = app.model.as_deref().zip(app.comparison.as_deref());
    let count = columns.saturating_sub(LABEL + 1);
    let elapsed = executions.and_then(|(model, c)| Some((&model.executions.column(&Metric::Elapsed)?.values, c)));
    if let Some((elapsed, comparison)) = elapsed {
        return from_own_zero(elapsed, comparison, count);
    }
    let Some(whole) = app.overview.whole.as_deref().filter(|whole| !whole.grid.whole().is_empty()) else {
        return Vec::new();
    };
    let drawn = overview::columns(whole, whole.grid.whole(), count, executions);
    let cpu: Vec<f64> = drawn.iter().map(|c| c.mean.cpu_use).collect();
    let mark = |c: &OverviewColumn| match (c.lossy, c.slow, c.fast) {
        (true, ..) => (StyleScope::Warning, '!'),
        (_, 1.., _) => (StyleScope::SlowBar, '●'),
        (_, 0, 1..) => (StyleScope::FastBar, '·'),
        _ => (StyleScope::Dim, ' '),
    };
    let marks: Vec<(StyleScope, char)> = drawn.iter().map(mark).collect();
    let runs = marks.chunk_by(|a, b| a.0 == b.0).filter_map(|run| {
        let (scope, _) = run.first()?;
        Some((*scope, run.iter().map(|(_, symbol)| *symbol).collect::<String>()))
    });
    vec![
        line(vec![label("CPU use (r)"), (StyleScope::StateRunning, strip::line(&cpu, 1.0))]),
        line(std::iter::once(label("● slow  · fast")).chain(runs).collect()),
    ]
}

fn label(text: &str) -> (StyleScope, String) {
    (StyleScope::Dim, format!("{text:<LABEL$}"))
}

fn line(left: StyledLine) -> HeaderLine {
    HeaderLine { left, right: Vec::new(), is_sentence: false }
}

/// How many executions of each group begin in each part of the longer recording.
fn from_own_zero(elapsed: &ColumnValues, comparison: &Comparison, columns: usize) -> Vec<HeaderLine> {
    let longest = elapsed.iter().max().unwrap_or(0).max(1);
    let of = |members: &[ExecutionId]| {
        let mut counts = vec![0.0; columns];
        for begin in members.iter().filter_map(|id| elapsed.get(id.index())) {
            let at = i128::from(begin).max(0) * columns as i128 / (i128::from(longest) + 1);
            if let Some(count) = counts.get_mut(at as usize) {
                *count += 1.0;
            }
        }
        let most = counts.iter().copied().fold(1.0, f64::max);
        strip::line(&counts, most)
    };
    let group = |text: &str, scope, members: &[ExecutionId]| line(vec![label(text), (scope, of(members))]);
    vec![
        group("slow from 0 s", StyleScope::SlowBar, &comparison.slow.members),
        group("fast from 0 s", StyleScope::FastBar, &comparison.fast.members),
    ]
}
