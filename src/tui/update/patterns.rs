//! Requests for mining, changes of q and s, and the jump from a step of a path to the executions that ran during it.

use super::groups::regroup;
use crate::base::figure;
use crate::base::op::Op;
use crate::base::time::{Ns, Span};
use crate::compare::ComparisonRequest;
use crate::compare::filter::Filter;
use crate::model::Model;
use crate::model::metric::Metric;
use crate::model::settings::{Settings, ThresholdRule};
use crate::tui::actions::Action;
use crate::tui::app::App;
use crate::tui::details;
use crate::tui::job::Job;
use crate::tui::pane::{JumpOrigin, Pane};

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

/// Make the executions of the step's moment the slow group, and go to their tree.
pub fn moment(app: &mut App) {
    let place = app.patterns.path;
    let Some(span) = app.patterns.found.as_ref().and_then(|f| Some(f.step(place.path, place.step)?.span)) else {
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

/// Go to a span of the recording, where executions and groups are there.
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
    let start = |i: usize| e.start.at(i).since(model.origin);
    let end = |i: usize| e.end(i).since(model.origin);
    let nearest = (0..e.len()).min_by_key(|i| (start(*i) - at).max(at - end(*i)));
    let stamp = figure::stamp;
    let nearest = nearest.map(|i| format!("; the nearest, {i}, ran from {} to {}", stamp(start(i)), stamp(end(i))));
    format!("no execution ran at {}{}", stamp(at), nearest.unwrap_or_default())
}
