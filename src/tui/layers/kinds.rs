//! Kinds of slow executions, and the other properties in which the groups differ: a list.
//!
//! A kind becomes the slow group, so that it is compared alone; a property leads to its histogram.

use super::menu::{Choice, Menu, MenuItem};
use crate::base::figure;
use crate::compare::{Comparison, Dimension, SlowKind, share_of_group};
use crate::tui::app::{App, LayerResponse};
use crate::tui::pane::Pane;
use crate::tui::update::groups::{effective, make_slow};
use crate::tui::update::patterns::show;
use crate::view::words;

#[derive(Clone, Debug)]
enum KindOrMetric {
    /// A kind of slow executions, by position.
    Kind(usize),
    /// A property, by the name of its metric.
    Metric(String),
}

impl Choice for KindOrMetric {
    fn chosen(self) -> LayerResponse {
        LayerResponse::change(move |app| match self {
            KindOrMetric::Kind(at) => take(app, at),
            KindOrMetric::Metric(name) => go_to_metric(app, &name),
        })
        .closing()
    }
}

/// Show the list.
pub fn open(app: &mut App) {
    let Some(comparison) = app.comparison.clone() else { return app.say("nothing to show yet") };
    let kinds = comparison.kinds.iter().enumerate().map(kind);
    let items: Vec<MenuItem<KindOrMetric>> =
        kinds.chain(comparison.dimensions.iter().map(|d| property(&comparison, d))).collect();
    if items.is_empty() {
        return app.say("all slow executions have the same trouble, and no other property sets them apart");
    }
    app.open(Menu::new("Kinds of slow executions (Enter: compare one alone), and what else differs", items));
}

fn kind((at, kind): (usize, &SlowKind)) -> MenuItem<KindOrMetric> {
    let name = format!("kind {}: {} × {}", at + 1, kind.count, figure::time(kind.mean_ns as f64));
    // Number and mean, with which the sentence begins, are in the name.
    let cause = kind.sentence.split_once(": ").map_or(kind.sentence.as_str(), |(_, cause)| cause);
    MenuItem { name, help: cause.to_owned(), choice: KindOrMetric::Kind(at) }
}

fn property(comparison: &Comparison, dimension: &Dimension) -> MenuItem<KindOrMetric> {
    let slow = share_of_group(dimension.slow_share, comparison.slow.count);
    let fast = share_of_group(dimension.fast_share, comparison.fast.count);
    MenuItem {
        name: dimension.name.clone(),
        help: format!("{}: {slow} of the slow, {fast} of the fast executions", dimension.value),
        choice: KindOrMetric::Metric(dimension.name.clone()),
    }
}

/// Make a kind the slow group; the fast group stays what it is.
fn take(app: &mut App, at: usize) {
    let Some(comparison) = app.comparison.clone() else { return };
    let Some(kind) = comparison.kinds.get(at) else { return };
    let numbers: Vec<u32> = kind.members.iter().map(|id| id.raw()).collect();
    let status = format!("slow group: the {} of kind {}; u goes back", figure::count(numbers.len() as u64), at + 1);
    let fast = effective(app).fast;
    make_slow(app, &numbers, fast, &status)
}

/// Go to the histogram of a property.
fn go_to_metric(app: &mut App, name: &str) {
    let rows = app.counts.as_ref().map_or(&[][..], |counts| &counts.rows);
    let Some(row) = rows.iter().position(|row| words::metric(&row.metric) == name) else {
        return app.say(format!("{name} has no histogram"));
    };
    app.histograms.go_to_row(row);
    show(app, Pane::Histograms)
}
