//! Results of jobs replace the previous ones; the item under the cursor is found again by name.

use super::groups::compare;
use super::heat;
use super::patterns::{go_to_moment, show};
use super::restore;
use crate::compare::Comparison;
use crate::compare::arranged::ArrangedTree;
use crate::model::Model;
use crate::model::context::ContextId;
use crate::tui::app::App;
use crate::tui::counts::HistogramCounts;
use crate::tui::groups::{GroupHistory, TypedFilters};
use crate::tui::job::{BaselineInput, ComparedGroups, Done};
use crate::tui::layers::files::{self, FileContent};
use crate::tui::layers::{filters, overview, tasks, threads, timeline};
use crate::tui::overview::OverviewState;
use crate::tui::pane::Pane;
use crate::tui::panes::histograms::state::HistogramPane;
use crate::tui::panes::tree::arranged::{self, search_again};
use crate::tui::panes::tree::state::{Cursor, Icicle, MarkedNodes};
use crate::tui::patterns::PatternState;
use crate::tui::tree::find_context;
use crate::view::compared_causes::ComparedCauses;
use std::sync::Arc;

pub(super) fn on_done(app: &mut App, done: Done) {
    take(app, done);
    app.compared = match (&app.model, &app.comparison, &app.patterns.found) {
        (Some(model), Some(comparison), Some(found)) => Some(ComparedCauses::new(model, comparison, &found.anomalies)),
        _ => None,
    };
}

fn take(app: &mut App, done: Done) {
    match done {
        Done::Analysed(Ok(model)) => analysed(app, model),
        Done::Analysed(Err(error)) => fail(app, error.to_string()),
        Done::BaselineSet(Ok(input)) => on_baseline(app, *input),
        Done::BaselineSet(Err(error)) => {
            app.busy = None;
            app.report_failure(error.to_string());
        }
        Done::Counted(counts) => {
            replace_counts(app, counts);
            restore::metric(app);
            // Counts are the last part of a job only when the comparison came before them.
        }
        Done::Cells(question, cells) => heat::on_cells(app, &question, *cells),
        Done::Compared(Ok(ComparedGroups { comparison, trees })) => {
            app.busy = None;
            app.failure = None;
            app.groups.confirm();
            app.typed = None;
            let place = arranged::leave(app);
            replace_comparison(app, comparison, trees.callers_first);
            if let (Some(tree), Some(place)) = (trees.callees_first, place) {
                arranged::show(app, tree, Some(place));
            }
            restore::place(app);
            match app.moment.take() {
                Some(moment) => go_to_moment(app, moment),
                None => overview::read_for_header(app),
            }
        }
        Done::Compared(Err(error)) => {
            app.busy = None;
            refuse(app, error.to_string())
        }
        Done::Mined(settings, result) => {
            // A result under old settings is dropped: the newest request follows.
            if settings != app.patterns.settings {
                return;
            }
            app.patterns.busy = None;
            match result {
                Ok(found) => app.patterns.replace(found),
                Err(error) => app.patterns.failure = Some(error.to_string()),
            }
        }
        Done::Timelines(executions, result) => {
            app.busy = None;
            timeline::on_timelines(app, &executions, result)
        }
        of_dialog => {
            take_for_dialog(app, of_dialog);
        }
    }
}

/// The executions are there: the old ones and what was chosen among them go, what was unfolded is remembered.
fn analysed(app: &mut App, model: Arc<Model>) {
    arranged::leave(app);
    if let Some((old, _)) = app.callers_first() {
        app.remembered = app.tree.rows.remember(&old);
        app.trail.clear();
        app.tree.touched = false;
    }
    // Patterns are about the executions of one task, too.
    let task = model.tasks.get(model.task);
    let examined = |p: &PatternState| p.found.as_ref().and_then(|f| f.anomalies.examined.executions.clone());
    if examined(&app.patterns).is_some_and(|e| Some(&e.task) != task) {
        app.patterns = PatternState { settings: app.patterns.settings, ..PatternState::default() };
    }
    app.groups.analysed(task.map_or("", String::as_str));
    let choice = model.choice.clone().filter(|choice| !choice.programs.is_empty());
    app.model = Some(model);
    if let Some(choice) = choice {
        tasks::take_programs(app, choice);
    }
    app.comparison = None;
    app.counts = None;
    app.histograms = HistogramPane::default();
    app.histograms.select_again(app.groups.selections());
    app.tree.rows.visible.clear();
    app.tree.callers_first = None;
    app.tree.icicle = app.tree.icicle.take().map(|_| Icicle::default());
    // Frames have other names in another model.
    app.tree.arrangement.transforms.clear();
    compare(app)
}

/// The input is open with another baseline: title, command line and groups are new, and so is the way back.
fn on_baseline(app: &mut App, input: BaselineInput) {
    let BaselineInput { baseline, title, command_line, request, model } = input;
    app.say(match &baseline {
        Some(old) => format!("the fast side is {old}; C with an empty line takes it away"),
        None => "compared without a baseline".to_owned(),
    });
    (app.baseline, app.title, app.command_line) = (baseline, title, command_line);
    app.groups = GroupHistory::new(request);
    // What was found in the other input.
    app.overview = OverviewState::default();
    app.patterns = PatternState { settings: app.patterns.settings, ..PatternState::default() };
    (app.surveyed, app.programs) = (None, Vec::new());
    analysed(app, model)
}

/// Results that a dialog or a message shows.
fn take_for_dialog(app: &mut App, done: Done) {
    match done {
        Done::Surveyed(result) => {
            app.busy = None;
            match result {
                Ok(tasks) => tasks::on_survey(app, tasks),
                Err(error) => app.report_failure(error.to_string()),
            }
        }
        Done::Arranged(arrangement, result) => arranged::on_arranged(app, arrangement, result),
        Done::Overview(asked, result) => {
            overview::on_overview(app, asked, result);
        }
        Done::Threads(question, result) => {
            app.threads_busy = None;
            threads::on_threads(app, &question, result);
        }
        Done::Concurrent(question, result) => {
            app.busy = None;
            threads::on_concurrent(app, &question, &result);
            timeline::on_concurrent(app, &question, result);
        }
        Done::Exported { path, outcome } => {
            app.busy = None;
            files::on_outcome(app, FileContent::Answer, path, outcome);
        }
        Done::Analysed(_)
        | Done::BaselineSet(_)
        | Done::Timelines(..)
        | Done::Counted(_)
        | Done::Cells(..)
        | Done::Compared(_)
        | Done::Mined(..) => {}
    }
}

/// The task cannot be analysed: what is on the screen stays; without anything there, the failure is shown.
fn fail(app: &mut App, what: String) {
    // The title is on the screen already.
    let what = what.strip_prefix(&format!("{}: ", app.title)).map_or(what.clone(), str::to_owned);
    app.busy = None;
    if restore::give_up(app, &what) {
        return;
    }
    // A model that is there stays: another task could not be analysed.
    if app.model.is_some() {
        app.groups.reject();
        app.histograms.select_again(app.groups.selections());
        return app.report_failure(what);
    }
    app.failure = Some(what);
    app.moment = None;
    // Without executions there may still be patterns.
    show(app, Pane::Anomalies)
}

/// The groups cannot be compared: those on the screen stay, and filters that were typed go back into the prompt.
fn refuse(app: &mut App, what: String) {
    if restore::give_up(app, &what) {
        return;
    }
    let typed = app.typed.take();
    if app.comparison.is_none() || !app.groups.reject() {
        app.failure = Some(what);
        return;
    }
    if typed.is_some() || !app.histograms.dragging {
        app.histograms.select_again(app.groups.selections());
    } else {
        // It was moved to where no execution is.
        app.histograms.detach();
    }
    app.histograms.dragging = false;
    match typed {
        Some(TypedFilters { side, text }) => filters::open_with(app, side, text, Some(what)),
        None => app.report_failure(format!("refused: {what}")),
    }
    // The histograms were counted for the groups that were refused.
    compare(app)
}

pub(super) fn replace_counts(app: &mut App, counts: Arc<HistogramCounts>) {
    let mut counts = counts;
    let rows = Arc::make_mut(&mut counts);
    match &app.counts {
        // Rows do not change places below a filter that is being moved.
        Some(before) if app.histograms.dragging => rows.sort_like(before),
        _ => rows.sort_by_separation(),
    }
    let metric = app.histogram_row().map(|r| r.metric.clone());
    if let Some(at) = metric.and_then(|m| counts.rows.iter().position(|r| r.metric == m)) {
        app.histograms.row = at;
    }
    app.counts = Some(counts);
}

pub(super) fn replace_comparison(app: &mut App, comparison: Arc<Comparison>, callers_first: Option<Arc<ArrangedTree>>) {
    if app.model.is_none() {
        return;
    }
    let cause = match app.tree.cursor {
        Cursor::Cause(i) => app.causes().get(i).map(|c| (c.kind, c.path.clone())),
        Cursor::Row(_) => None,
    };
    let context = app.node().filter(|_| app.tree.touched).map(|(_, n)| n.context);
    app.comparison = Some(Arc::clone(&comparison));
    app.tree.callers_first = callers_first;
    app.tree.marked = MarkedNodes::default();
    let Some((model, arranged)) = app.callers_first() else { return };
    let tree = &arranged.tree;
    if !app.remembered.is_empty() {
        let remembered = std::mem::take(&mut app.remembered);
        app.tree.rows.recall(&remembered, &model, tree);
    } else if !app.tree.touched {
        app.tree.rows.fold_all();
    }
    if !app.tree.touched {
        app.tree.cursor = Cursor::Cause(0);
    }
    if !app.tree.touched
        && let Some(node) = comparison.causes.first().and_then(|cause| app.node_of_cause(cause))
    {
        app.tree.rows.reveal(node, &model, tree);
    }
    app.tree.rows.rebuild(&model, tree);
    if let Some((kind, path)) = cause
        && let Some(at) = comparison.causes.iter().position(|c| c.kind == kind && c.path == path)
    {
        app.tree.cursor = Cursor::Cause(at);
    }
    if let Some(context) = context {
        app.tree.cursor = nearest_row(app, &model, &arranged, context);
    }
    search_again(app);
}

/// The row of a context, or of the nearest one above it that is still there.
pub(super) fn nearest_row(app: &App, model: &Model, comparison: &Comparison, context: ContextId) -> Cursor {
    let mut at = Some(context);
    while let Some(c) = at {
        let row = find_context(model, &comparison.tree, c).and_then(|node| app.tree.rows.row_of(node));
        if let Some(row) = row {
            return Cursor::Row(row);
        }
        at = model.contexts.parent(c);
    }
    Cursor::Row(0)
}
