//! The figures of a node, as rows, boxes and copied texts have them.

use crate::base::figure;
use crate::compare::{DiffNode, share_of_group};
use crate::tui::app::App;

/// `part / whole`, 0 of nothing.
pub fn part_of(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}

/// The figures of a node in words.
pub fn figures(app: &App, node: &DiffNode) -> String {
    let slow = app.comparison.as_ref().map_or(0, |comparison| comparison.slow.count);
    format!(
        "{} (slow {}, fast {}, {} standard deviations, in {} of the slow executions)",
        figure::extra(node.delta_ns),
        figure::time(node.slow_mean_ns),
        figure::time(node.fast_mean_ns),
        figure::deviations(node.deviations),
        share_of_group(node.slow_affected, slow)
    )
}
