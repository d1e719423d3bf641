//! The text of the header, read first: trace and task, the two groups, the verdict.
//!
//! In: the state and a width. Out: all lines in that width; `screen/header.rs` draws those that fit.

use crate::base::figure;
use crate::base::op::Op;
use crate::compare::filter::{Filter, Operand, Test};
use crate::compare::{Basis, Comparison, Group, GroupsOrigin};
use crate::model::TraceLevel;
use crate::model::metric::Metric;
use crate::model::profile::Profile;
use crate::tui::actions::Action;
use crate::tui::app::App;
use crate::tui::canvas::{clip_front, width, wrap};
use crate::tui::frame::{HeaderLine, most_header_lines};
use crate::tui::setup::FirstQuestion;
use crate::tui::theme::StyleScope;
use crate::tui::widget::page::StyledLine;
use crate::tui::widget::progress;
use crate::tui::{header_strips, overview};
use crate::view::anomalies::{verdict, why_others};
use crate::view::words;

/// From this number of lines on the header names the next steps.
const NEXT_STEPS_FROM: u16 = 24;

/// From this number of lines on a sentence says why the verdicts of an MPI run name different ranks.
const ROOM_FOR_REASON: u16 = 40;

/// Below this number of lines both groups share one short line, and the title gives way first.
pub const SMALL: u16 = 16;

/// From this width on both groups share one line, if their texts fit.
const ONE_LINE: usize = 120;

/// From this width on, the lines of the groups have percentiles beside where the groups come from.
const ROOM_FOR_PERCENTILES: usize = 160;

/// From this width on, the warnings in the corner are named and not only counted.
const ROOM_FOR_WORDS: usize = 72;

/// All lines of the header in this width. A test checks that none of them is left out silently.
pub fn lines(app: &App, columns: usize) -> Vec<HeaderLine> {
    let right = corner(app, columns);
    let room = columns.saturating_sub(length(&right) + 2);
    let mut lines = vec![HeaderLine { left: title(app, room), right, is_sentence: false }];
    if app.pane.is_of_patterns() {
        of_patterns(app, columns, &mut lines);
        return lines;
    }
    if let Some(c) = app.comparison.as_ref().filter(|_| app.size.1 < SMALL) {
        lines.push(HeaderLine { left: both_groups(app, c), right: Vec::new(), is_sentence: false });
    } else if let Some(c) = &app.comparison {
        let slow = group(app, "slow", StyleScope::Slow, &c.slow);
        let fast = group(app, "fast", StyleScope::Fast, &c.fast);
        let origin = vec![(StyleScope::Dim, origin(c.verdict.groups).to_owned())];
        let (extra, of) = match profile(app) {
            Some(profile) => (profile.amount(c.extra_ns as f64), " more by the run"),
            None => (figure::extra(c.extra_ns as f64), " per execution"),
        };
        let extra = vec![(StyleScope::Slow3, extra), (StyleScope::Dim, of.to_owned())];
        let gap = || vec![(StyleScope::Dim, "   ".to_owned())];
        let whole = length(&slow) + length(&fast) + length(&extra) + length(&origin) + 8;
        if columns >= ONE_LINE && whole <= columns {
            let (left, right) = ([slow, gap(), fast].concat(), [extra, gap(), origin].concat());
            lines.push(HeaderLine { left, right, is_sentence: false });
        } else {
            lines.push(HeaderLine { left: slow, right: extra, is_sentence: false });
            lines.push(HeaderLine { left: fast, right: origin, is_sentence: false });
        }
    }
    if let Some(failure) = &app.failure {
        sentence(StyleScope::Error, failure, columns, &mut lines);
    } else if app.comparison.is_none() {
        return lines;
    }
    verdicts(app, columns, &mut lines);
    if let Some(tour) = app.tour {
        let skip = app.options.keys.rows().iter().find(|row| row.action == Action::SkipStep);
        sentence(StyleScope::Key, &tour.text(skip.map_or(".", |row| &row.keys)), columns, &mut lines);
    } else if app.size.1 >= NEXT_STEPS_FROM {
        lines.push(next_steps(app));
    }
    lines.extend(header_strips::lines(app, columns).into_iter().take(overview::strip_lines(app.size)));
    lines
}

/// Leads from a cause to the tree.
const PLACE: (&str, &str) = ("Enter", "its place in the tree");

/// What to do after the verdict, by its basis.
fn next_steps(app: &App) -> HeaderLine {
    let comparison = app.comparison.as_ref().filter(|_| app.failure.is_none());
    let [first, second] = match comparison {
        Some(c) if c.extra_ns < 0 => [("x", "swap the groups"), ("s", "choose the groups")],
        Some(c) if !c.verdict.confident => [("w", "what limits this answer"), ("1", "compare the metrics")],
        Some(c) if c.verdict.basis == Basis::Dimension => [("1", "compare the metrics"), ("s", "choose the groups")],
        Some(_) if !app.has_events => [("F", "the difference by function"), PLACE],
        Some(_) if is_run(app) => [("i", "sample iterations"), PLACE],
        Some(_) => [("v", "an example as a timeline"), PLACE],
        None => [("T", "choose another task"), ("?", "all keys")],
    };
    let has_kinds = comparison.is_some_and(|c| !c.kinds.is_empty());
    let keys = [first, if has_kinds { ("K", "kinds of slow executions") } else { second }];
    let step =
        |(key, word): &(&str, &str)| [(StyleScope::Key, format!("  {key}")), (StyleScope::Dim, format!(" {word}"))];
    let next = std::iter::once((StyleScope::Dim, "  next:".to_owned()));
    let left = next.chain(keys.iter().flat_map(step)).collect();
    HeaderLine { left, right: Vec::new(), is_sentence: false }
}

/// An MPI run has no timelines of single iterations.
fn is_run(app: &App) -> bool {
    app.model.as_ref().is_some_and(|model| model.traces.iter().all(|trace| trace.level == TraceLevel::MpiRun))
}

/// The verdicts, in the same order in every pane: that of the first question is line 1, the other one says what it is
/// of, and a sentence says why they differ.
fn verdicts(app: &App, columns: usize, lines: &mut Vec<HeaderLine>) {
    let confidence = |c: &Comparison| if c.verdict.confident { StyleScope::Verdict } else { StyleScope::Unsure };
    let comparison = app.comparison.as_ref().filter(|_| app.failure.is_none());
    let compared = comparison.map(|c| (confidence(c), fitting(app, &c.verdict.sentence, columns)));
    let mined = app.patterns.found.as_ref().map(|found| (StyleScope::Verdict, verdict(&found.anomalies)));
    let (first, second, of) = match app.first {
        FirstQuestion::Executions => (compared, mined, "Pattern analysis"),
        FirstQuestion::Patterns => (mined, compared, "Comparison"),
    };
    // Without room for it, the reason is left to the report.
    let both = app.patterns.found.as_ref().zip(comparison).filter(|_| is_run(app) && app.size.1 >= ROOM_FOR_REASON);
    let why = both.and_then(|(found, comparison)| why_others(&found.anomalies, comparison));
    match (first, second) {
        (Some((scope, text)), second) => {
            sentence(scope, &text, columns, lines);
            if let Some((_, text)) = second {
                let why = why.map_or_else(String::new, |why| format!(" {why}"));
                sentence(StyleScope::Unsure, &format!("{of}: {text}{why}"), columns, lines);
            }
        }
        (None, Some((scope, text))) => sentence(scope, &text, columns, lines),
        (None, None) => {}
    }
}

/// The verdict of a comparison; on small screens its place is cut so that its figures, which come last, stay.
fn fitting(app: &App, text: &str, columns: usize) -> String {
    let room = columns.saturating_sub(2);
    let available = most_header_lines(app.size.1).saturating_sub(1);
    let fits = |text: &str| wrap(text, room).len() <= available;
    let parted = text.split_once(": ").filter(|_| app.size.1 < SMALL && !fits(text));
    let Some((place, figures)) = parted else { return text.to_owned() };
    let ends = place.char_indices().rev().map(|(end, _)| format!("{}…: {figures}", place[..end].trim_end()));
    ends.into_iter().find(|shorter| fits(shorter)).unwrap_or_else(|| text.to_owned())
}

/// Both groups in one short line.
fn both_groups(app: &App, c: &Comparison) -> StyledLine {
    let one = |name: &str, scope, group: &Group| {
        let count = figure::count(group.count);
        let text = match profile(app) {
            Some(profile) => format!(" {}", profile.amount(group.mean_ns as f64)),
            None => format!(" {count} × {}", figure::time(group.mean_ns as f64)),
        };
        [(scope, name.to_owned()), (StyleScope::Strong, text)]
    };
    let gap = (StyleScope::Dim, "  ".to_owned());
    let (slow, fast) = (one("slow", StyleScope::Slow, &c.slow), one("fast", StyleScope::Fast, &c.fast));
    slow.into_iter().chain([gap]).chain(fast).collect()
}

fn sentence(scope: StyleScope, text: &str, columns: usize, lines: &mut Vec<HeaderLine>) {
    for line in wrap(text, columns.saturating_sub(2)) {
        lines.push(HeaderLine { left: vec![(scope, format!("▌ {line}"))], right: Vec::new(), is_sentence: true });
    }
}

/// The result of mining in figures, and the verdicts.
fn of_patterns(app: &App, columns: usize, lines: &mut Vec<HeaderLine>) {
    let rule = vec![(StyleScope::Dim, app.patterns.rule())];
    if let Some(found) = &app.patterns.found {
        let causes = found.anomalies.sources.len() as u64;
        let words = if causes == 1 { " root cause of delay" } else { " root causes of delay" };
        let times = figure::counted(found.anomalies.times(), "occurrence");
        let left = vec![
            (StyleScope::Strong, figure::count(causes)),
            (StyleScope::Dim, format!("{words} ({times}; p: the patterns)")),
        ];
        lines.push(HeaderLine { left, right: rule, is_sentence: false });
    }
    verdicts(app, columns, lines);
    // The reason why there are no executions, where they were requested first.
    if let Some(failure) = &app.failure {
        sentence(StyleScope::Unsure, failure, columns, lines);
    }
}

/// On narrow screens the trace's path is cut, not the task, and at its front, because paths differ at their ends.
fn title(app: &App, room: usize) -> StyledLine {
    let mut line = vec![(StyleScope::Title, "whyslow".to_owned()), (StyleScope::Text, "  ".to_owned())];
    if let Some(task) = app.task() {
        line.push((StyleScope::Dim, "  task ".into()));
        line.push((StyleScope::Strong, task.to_owned()));
    }
    let room = room.saturating_sub(length(&line));
    line[1].1 = format!("  {}", clip_front(&app.title, room));
    line
}

/// Columns that a line takes.
pub fn length(line: &StyledLine) -> usize {
    line.iter().map(|(_, text)| width(text)).sum()
}

/// The right end of the first line: the running job, else the number of warnings and the key that lists them.
fn corner(app: &App, columns: usize) -> StyledLine {
    let warnings = app.warnings().len();
    let named = match warnings {
        _ if columns < ROOM_FOR_WORDS => String::new(),
        1 => " warning:".to_owned(),
        _ => " warnings:".to_owned(),
    };
    let shown = if app.pane.is_of_patterns() { app.patterns.found.is_some() } else { app.comparison.is_some() };
    let other = if app.pane.is_of_patterns() { &app.busy } else { &app.patterns.busy };
    let own = if app.pane.is_of_patterns() { &app.patterns.busy } else { &app.busy };
    match own.as_ref().filter(|_| shown).or(other.as_ref()) {
        Some(busy) => vec![(StyleScope::Progress, progress::short(busy))],
        _ if warnings > 0 => {
            vec![(StyleScope::Warning, format!("⚠ {warnings}{named}")), (StyleScope::Key, " w".to_owned())]
        }
        _ => Vec::new(),
    }
}

/// The profile of which the executions are samples; a group then has an amount by the run in place of a mean.
fn profile(app: &App) -> Option<&Profile> {
    app.model.as_ref()?.profile.as_ref()
}

fn group(app: &App, name: &str, scope: StyleScope, group: &Group) -> StyledLine {
    let filters = filter_texts(&group.filters);
    let none = group.members.is_empty();
    let filters = match filters.join(", ") {
        empty if empty.is_empty() => match (none, profile(app).is_some()) {
            (true, true) => "no samples to compare with".to_owned(),
            (true, false) => "no executions to compare with".to_owned(),
            (false, true) => "all samples".to_owned(),
            (false, false) => "all executions".to_owned(),
        },
        some => some,
    };
    let mean = match profile(app) {
        _ if none => "-".to_owned(),
        Some(profile) => profile.amount(group.mean_ns as f64),
        None => figure::time(group.mean_ns as f64),
    };
    let all = app.model.as_ref().map_or(0, |model| model.executions.count());
    let of = if profile(app).is_some() { " samples, ".to_owned() } else { format!(" of {} × ", figure::count(all)) };
    let percentiles = group.spread.map(words::spread_parts).filter(|_| usize::from(app.size.0) >= ROOM_FOR_PERCENTILES);
    let mut line = vec![
        (scope, name.to_owned()),
        (StyleScope::Strong, format!(" {:>6}", figure::count(group.count))),
        (StyleScope::Dim, of),
        (StyleScope::Strong, mean),
    ];
    for (name, time) in percentiles.into_iter().flatten() {
        line.extend([(StyleScope::Dim, format!("  {name} ")), (StyleScope::Strong, time)]);
    }
    line.push((StyleScope::Dim, format!("  {filters}")));
    line
}

/// The filters of a group, each as text; the two that select the executions of a moment in one.
fn filter_texts(filters: &[Filter]) -> Vec<String> {
    let moment = filters.windows(2).position(|pair| moment(pair).is_some());
    let one = |(i, filter): (usize, &Filter)| match moment {
        Some(at) if i == at => moment_text(&filters[at..at + 2]),
        Some(at) if i == at + 1 => None,
        _ => Some(filter_text(filter)),
    };
    filters.iter().enumerate().filter_map(one).collect()
}

fn moment_text(pair: &[Filter]) -> Option<String> {
    moment(pair).map(|at| format!("those that ran at {}", figure::stamp(at)))
}

/// The moment of `start<=T` and `end>T`.
fn moment(pair: &[Filter]) -> Option<i64> {
    match pair {
        [
            Filter { metric: Metric::Start, test: Test::Compare(Op::AtMost, Operand::Number(at)) },
            Filter { metric: Metric::End, test: Test::Compare(Op::More, Operand::Number(same)) },
        ] if at == same => Some(*at),
        _ => None,
    }
}

/// A filter as one would type it; a range with long exact numbers in three digits (`y` copies the exact one).
fn filter_text(filter: &Filter) -> String {
    if filter.metric == Metric::Group {
        return "all others".to_owned();
    }
    let exact = words::filter(filter);
    let short = |operand: &Operand| match operand {
        Operand::Number(n) => filter.metric.unit().rounded(*n),
        Operand::Percentile(p) => format!("p{p}"),
        Operand::Name(name) => name.clone(),
        Operand::TimeOfDay(time) => time.to_string(),
    };
    match &filter.test {
        Test::In(from, to) if width(&exact) > 24 => {
            format!("{} {} to {}", words::metric(&filter.metric), short(from), short(to))
        }
        _ => words::filter_in_short(filter),
    }
}

/// The origin of the groups.
pub fn origin(origin: GroupsOrigin) -> &'static str {
    match origin {
        GroupsOrigin::Given => "groups: given",
        GroupsOrigin::Gap => "groups: proposed, largest gap",
        GroupsOrigin::Valley => "groups: proposed, two peaks",
        GroupsOrigin::Percentile => "groups: proposed, p95 against p50",
        GroupsOrigin::Trace => "groups: proposed, by trace",
        GroupsOrigin::All => "one group: profile, no comparison",
    }
}
