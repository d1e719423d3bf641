//! The panes of patterns: requests for mining, changes of q and s, the list, the path, and the jump from a step to the
//! executions that ran during it.

use super::groups::regroup;
use super::moving::vertical;
use crate::base::figure;
use crate::base::op::Op;
use crate::base::time::{Ns, Span};
use crate::compare::ComparisonRequest;
use crate::compare::filter::Filter;
use crate::model::Model;
use crate::model::metric::Metric;
use crate::model::settings::{Settings, ThresholdRule};
use crate::view::tui::actions::Action;
use crate::view::tui::app::{App, JumpOrigin};
use crate::view::tui::details;
use crate::view::tui::job::Job;
use crate::view::tui::pane::Pane;
use crate::view::tui::patterns::PathPane;
use crate::view::tui::report::AnomalyReport;
use crate::view::tui::search::MatchStep;
use crate::view::tui::sources::RootCauseRow;
use std::sync::Arc;

/// The values that a setting can take by keys.
struct Steps {
    by: f64,
    least: f64,
    most: f64,
}

const Q: Steps = Steps { by: 0.05, least: 0.05, most: 1.0 };
const S: Steps = Steps { by: 0.25, least: 1.25, most: 20.0 };

impl Steps {
    /// The next value in a direction: 1 is up, -1 down.
    fn next(&self, value: f64, direction: f64) -> f64 {
        // In steps from the round value, so that ten up and ten down end where they began.
        let steps = (value / self.by).round() + direction;
        ((steps * self.by).clamp(self.least, self.most) * 100.0).round() / 100.0
    }
}

/// Go to a pane and start the job that it needs, unless it was started before.
pub fn show(app: &mut App, pane: Pane) {
    app.pane = pane;
    if pane.is_of_patterns() {
        let begun = app.patterns.found.is_some() || app.patterns.busy.is_some();
        if !begun {
            mine(app);
        }
        return;
    }
    let begun = app.model.is_some() || app.busy.is_some() || app.failure.is_some();
    if !begun {
        app.begin(Job::Analyse { task: None });
    }
}

/// Mine patterns, or judge the mined ones under the present settings.
pub fn mine(app: &mut App) {
    app.begin(Job::Mine { settings: app.patterns.settings })
}

/// Change q or s, or how limits are found.
pub fn tune(app: &mut App, action: Action) {
    if app.patterns.found.is_none() && app.patterns.busy.is_none() {
        app.say("patterns not mined yet; press 3");
        return;
    }
    let now = app.patterns.settings;
    let next = match action {
        Action::QuotientDown => Settings { q: Q.next(now.q, -1.0), ..now },
        Action::QuotientUp => Settings { q: Q.next(now.q, 1.0), ..now },
        Action::ThresholdDown => Settings { s: S.next(now.s, -1.0), ..now },
        Action::ThresholdUp => Settings { s: S.next(now.s, 1.0), ..now },
        _ => {
            let limit =
                if now.limit == ThresholdRule::Robust { ThresholdRule::Quotient } else { ThresholdRule::Robust };
            Settings { limit, ..now }
        }
    };
    app.patterns.settings = next;
    let rule = app.patterns.rule();
    if next == now {
        return app.say(format!("{rule}: limit reached"));
    }
    app.say(&rule);
    mine(app)
}

pub fn found(app: &App) -> Option<Arc<AnomalyReport>> {
    app.patterns.found.clone()
}

/// From a source to its occurrences, from an occurrence to its path; along a path.
pub fn open(app: &mut App) {
    let Some(found) = found(app) else { return };
    if app.pane == Pane::Path {
        let PathPane { path, step, .. } = app.patterns.path;
        if found.step(path, step + 1).is_some() {
            app.trail.push(JumpOrigin::Step(app.patterns.path));
            return vertical(app, 1);
        }
        return app.say("end of the path; -: go back");
    }
    let Some(here) = app.patterns.list.here() else { return };
    let several = here.source(&found).is_some_and(|s| s.occurrences.len() > 1);
    if let (RootCauseRow::Source(at), true) = (here, several) {
        return app.patterns.list.toggle(&found, at);
    }
    app.patterns.follow_list();
    if app.patterns.selected().is_none() {
        return app.say("waiting for work: not a delay, so there is no path");
    }
    app.trail.push(JumpOrigin::Anomaly(app.patterns.list.row));
    app.pane = Pane::Path;
}

/// Show the occurrences of the source under the cursor, or hide them and go back to it.
pub fn unfold(app: &mut App, open: bool) {
    let (Some(found), Some(here)) = (found(app), app.patterns.list.here()) else { return };
    let list = &mut app.patterns.list;
    if list.open.contains(&here.at()) != open {
        list.toggle(&found, here.at());
    } else if open {
        vertical(app, 1);
    }
}

/// The previous or the next path, in the order of the delays that they cause.
pub fn next_path(app: &mut App, by: isize) {
    let paths = app.patterns.found.as_ref().map_or(0, |f| f.anomalies.paths.len());
    let now = app.patterns.path.path;
    let path = now.saturating_add_signed(by).min(paths.saturating_sub(1));
    if path != now {
        app.patterns.path = PathPane { path, ..PathPane::default() };
    }
}

/// The next order, from its top.
pub fn reorder(app: &mut App) {
    let Some(found) = found(app) else { return };
    let list = &mut app.patterns.list;
    list.order = list.order.next();
    list.rebuild(&found);
    (list.row, list.offset) = (0, 0);
    let said = format!("ordered by {}", list.order.name());
    app.say(&said);
}

/// List only the root causes that match all of these words.
pub fn filter(app: &mut App, words: &str) {
    let Some(found) = found(app) else { return };
    let list = &mut app.patterns.list;
    let here = list.here();
    list.filter = words.trim().to_owned();
    list.rebuild(&found);
    if !here.is_some_and(|at| list.go_to(at)) {
        list.row = 0;
    }
}

pub fn search(app: &mut App, text: &str) {
    if let Some(found) = found(app) {
        app.patterns.list.find(&found, text.to_owned());
    }
}

pub fn step_match(app: &mut App, step: MatchStep) {
    let list = &mut app.patterns.list;
    if list.search.text.is_empty() {
        return app.say("no search yet; /: search");
    }
    // Matches are in the order of the list.
    let mut matches = list.search.matches.iter().peekable();
    let is_match = |(_, row): &(usize, &RootCauseRow)| {
        matches!(row, RootCauseRow::Source(_)) && matches.next_if(|at| **at == row.at()).is_some()
    };
    let rows: Vec<usize> = list.visible.iter().enumerate().filter(is_match).map(|(row, _)| row).collect();
    let count = rows.len();
    if count == 0 {
        let text = format!("no listed root cause or pattern contains {:?}", list.search.text);
        return app.report_failure(&text);
    }
    let before = rows.partition_point(|r| *r < list.row);
    let until = rows.partition_point(|r| *r <= list.row);
    let at = step.target(before, until, count);
    list.row = rows[at];
    app.say(format!("match {} of {count}", at + 1));
}

/// Make the executions of the step's moment the slow group, and go to their tree.
pub fn moment(app: &mut App) {
    let place = app.patterns.path;
    let Some(span) = found(app).and_then(|f| Some(f.step(place.path, place.step)?.span)) else {
        return;
    };
    if app.model.is_none() {
        if app.failure.is_some() {
            app.report_failure("no executions; w: show why");
            return;
        }
        app.moment = Some(span);
        return show(app, Pane::Tree);
    }
    go_to_moment(app, span)
}

/// The same once executions and groups are there.
pub fn go_to_moment(app: &mut App, span: Span) {
    let (Some(model), Some(_)) = (app.model.clone(), &app.comparison) else {
        return app.say("the comparison is still running");
    };
    let members = details::at_moment(&model, span).count();
    if members == 0 {
        return app.report_failure(none_at(&model, span));
    }
    // The rest of the same types is the fast group, unless it was given.
    let request = ComparisonRequest { slow: of_moment(&model, span), by_trace: false, ..app.groups.now().clone() };
    app.trail.push(JumpOrigin::Step(app.patterns.path));
    app.pane = Pane::Tree;
    let said = match members {
        1 => "slow group: the execution at this moment; -: go back, u: undo".to_owned(),
        n => format!("slow group: the {n} executions at this moment; -: go back, u: undo"),
    };
    regroup(app, request, &said)
}

/// The moment of a step: the last instant of its span.
fn instant(model: &Model, span: Span) -> Ns {
    span.end.since(model.origin).max(span.start.since(model.origin) + 1) - 1
}

/// Filters for the executions that ran at the moment of a span: they began before it and end after it.
fn of_moment(model: &Model, span: Span) -> Vec<Filter> {
    let at = instant(model, span);
    vec![Filter::compare(Metric::Start, Op::AtMost, at), Filter::compare(Metric::End, Op::More, at)]
}

/// No execution ran at the moment of a span: the sentence names the nearest one.
fn none_at(model: &Model, span: Span) -> String {
    let (e, at) = (&model.executions, instant(model, span));
    let start = |i: usize| e.start[i].since(model.origin);
    let end = |i: usize| e.end[i].since(model.origin);
    let nearest = (0..e.len()).min_by_key(|i| (start(*i) - at).max(at - end(*i)));
    let stamp = figure::stamp;
    let nearest = nearest.map(|i| format!("; the nearest, {i}, ran from {} to {}", stamp(start(i)), stamp(end(i))));
    format!("no execution ran at {}{}", stamp(at), nearest.unwrap_or_default())
}
