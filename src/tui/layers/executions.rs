//! The list of executions: the slowest first, narrowed by typing; one of them as a timeline, or two side by side.

use super::menu::{Choice, Menu, MenuItem};
use super::prompt::{Prompt, PromptPurpose};
use super::timeline;
use crate::base::figure;
use crate::base::op::Op;
use crate::compare::Comparison;
use crate::compare::filter::Filter;
use crate::compare::members::{members, why_empty};
use crate::model::execution::ExecutionId;
use crate::model::metric::Metric;
use crate::tui::app::{App, LayerResponse};
use crate::tui::groups::GroupSide;
use crate::tui::update::groups;
use crate::view::executions::{ExecutionLine, line};
use std::cmp::Reverse;

/// Executions of a list, at most: each has a line of text, and typing reads all of them.
const MOST: usize = 5_000;

/// Columns of a time of day: `09:45:55.951`.
const CLOCK: usize = 12;

/// The number of an execution.
#[derive(Clone, Debug)]
struct ExecutionNumber(u32);

impl Choice for ExecutionNumber {
    fn chosen(self) -> LayerResponse {
        LayerResponse::change(move |app| show(app, self.0))
    }

    fn execution(&self) -> Option<u32> {
        Some(self.0)
    }

    fn taken(numbers: Vec<u32>) -> LayerResponse {
        LayerResponse::change(move |app| make_slow(app, &numbers)).closing()
    }
}

/// Show the list: those of a histogram's selection, where there is one, else all.
pub fn open(app: &mut App) {
    let selected: Vec<Filter> = groups::selected(app).into_iter().collect();
    list(app, &selected);
}

static TIME: PromptPurpose = PromptPurpose {
    label: |_| "go to time (12.5s, 09:45:56) ",
    typed: None,
    entered: |app, text| at_time(app, text.trim()),
};

/// Ask for a time, whose executions are listed.
pub fn ask_time(app: &mut App) {
    app.open(Prompt::new(&TIME, ""));
}

/// Show the list of those that ran at a time, as it was typed.
fn at_time(app: &mut App, text: &str) {
    if text.is_empty() {
        return;
    }
    match Filter::at_time(text) {
        Ok(filters) => list(app, &filters),
        Err(error) => app.report_failure(format!("{text}: {}", error.fault())),
    }
}

fn list(app: &mut App, filters: &[Filter]) {
    let Some((model, _)) = app.compared_executions() else { return app.say("nothing to show yet") };
    let mut ids = match members(&model, filters, &[]) {
        Ok(ids) if ids.is_empty() => return app.report_failure(why_empty(&model, filters, &[])),
        Ok(ids) => ids,
        Err(error) => return app.report_failure(error.to_string()),
    };
    let slowest_first = |id: &ExecutionId| (Reverse(model.executions.duration(id.index())), *id);
    let left_out = ids.len().saturating_sub(MOST);
    if left_out > 0 {
        // Sorting a million of them would hold up the screen.
        ids.select_nth_unstable_by_key(MOST, slowest_first);
        ids.truncate(MOST);
        app.say(format!("the {MOST} slowest; {} faster ones are not listed", figure::count(left_out as u64)));
    }
    ids.sort_unstable_by_key(slowest_first);
    let digits = ids.iter().max().map_or(1, |last| last.raw().to_string().len());
    let item = |id: &ExecutionId| {
        let ExecutionLine { number, start, duration, what } = line(&model, *id);
        // Without the date, which is that of the recording; thousandths find the line of a log.
        let clock = start.split_once(' ').map(|(_, clock)| clock).filter(|clock| clock.contains(':'));
        let clock = clock.map_or(start.as_str(), |clock| clock.get(..CLOCK).unwrap_or(clock));
        let name = format!("{number:>digits$}  {duration:>8}  {clock}");
        MenuItem { name, help: what, choice: ExecutionNumber(number) }
    };
    let choices = ids.iter().map(item).collect();
    app.open(Menu::new("Executions", choices));
}

/// Show an execution as a timeline: beside the one that is marked, else beside a typical fast one. The list stays
/// below.
fn show(app: &mut App, number: u32) {
    let list = app.layers_of::<Menu<ExecutionNumber>>().next();
    let marked = list.and_then(|list| list.marked.iter().copied().find(|marked| *marked != number));
    let id = ExecutionId::from_raw(number);
    match marked {
        Some(other) => timeline::open_both(app, id, ExecutionId::from_raw(other)),
        None => timeline::open(app, id, ""),
    }
}

/// Make executions of the list the slow group. The fast group keeps its filters; an execution that passes them as well
/// is slow alone.
fn make_slow(app: &mut App, numbers: &[u32]) {
    let count = figure::counted(numbers.len() as u64, "execution");
    let mut fast = groups::effective(app).fast;
    let is_fast = |c: &Comparison| {
        numbers.iter().any(|number| c.fast.members.binary_search(&ExecutionId::from_raw(*number)).is_ok())
    };
    if app.comparison.as_deref().is_some_and(is_fast) {
        let others = Filter::named(Metric::Group, Op::NotEqual, GroupSide::Slow.name());
        fast.retain(|filter| *filter != others);
        fast.push(others);
    }
    groups::make_slow(app, numbers, fast, &format!("slow group: {count} of the list; u goes back"))
}
