//! The responses of the dialog on top: it closes, scrolls, or its text or entry is used.

use super::act::act;
use super::bookmarks;
use super::executions;
use super::functions;
use super::kinds;
use super::moving::scroll_page;
use super::overlays::take_theme;
use super::overview;
use super::timeline;
use crate::model::execution::ExecutionId;
use crate::view::tui::app::App;
use crate::view::tui::details::{Details, SampleExecution, samples_of_moment};
use crate::view::tui::job::Job;
use crate::view::tui::menu::MenuCommand;
use crate::view::tui::message::UiEffect;
use crate::view::tui::overlay::{Overlay, OverlayPage, OverlayResponse};
use crate::view::tui::pages;
use crate::view::tui::pages::details::MARK;
use crate::view::tui::widget::page::StyledLine;

/// Do what the dialog on top responded to a key or a paste.
pub(super) fn respond(app: &mut App, response: OverlayResponse) -> Vec<UiEffect> {
    match response {
        OverlayResponse::Taken => {}
        OverlayResponse::Close => drop(app.layers.pop()),
        OverlayResponse::Scroll(scroll) => scroll_page(app, scroll),
        OverlayResponse::Run(MenuCommand::Function(name)) => functions::show(app, &name),
        OverlayResponse::Run(MenuCommand::Execution(number)) => return executions::show(app, number),
        OverlayResponse::Run(command) => {
            app.layers.pop();
            match command {
                MenuCommand::Function(_) | MenuCommand::Execution(_) => {}
                MenuCommand::Bookmark(at) => return bookmarks::go(app, at),
                MenuCommand::Kind(at) => return kinds::take(app, at),
                MenuCommand::Metric(name) => return kinds::go_to_metric(app, &name),
                MenuCommand::Act(action) => return act(app, action),
                MenuCommand::Task(task) if app.task() == Some(task.as_str()) => {}
                MenuCommand::Task(task) => return app.begin(Job::Analyse { task: Some(task) }),
                MenuCommand::Theme(at) => take_theme(app, at),
            }
        }
        OverlayResponse::MakeSlow(numbers) => {
            app.layers.pop();
            return executions::make_slow(app, &numbers);
        }
        OverlayResponse::Act(action) => return act(app, action),
        OverlayResponse::Timeline(action) => return timeline::act(app, action),
        OverlayResponse::Overview(action) => return overview::act(app, action),
        OverlayResponse::MarkExample(by) => mark_example(app, by),
        OverlayResponse::OpenExample => return open_marked(app),
    }
    Vec::new()
}

/// The sampled executions of the page on top, and which is marked.
fn examples(app: &App) -> Option<(Vec<SampleExecution>, usize)> {
    match app.top::<Overlay>()? {
        Overlay::Page { page: OverlayPage::Details { details, example }, .. } => match details.as_ref() {
            Details::Context { samples, .. } | Details::Range { samples, .. } => Some((samples.clone(), *example)),
        },
        Overlay::Page { page: OverlayPage::Anomaly { report, at, example }, .. } => {
            let span = report.get(*at)?.span;
            Some((samples_of_moment(app.model.as_ref()?, span), *example))
        }
        _ => None,
    }
}

/// Mark the next or previous sampled execution, and scroll to it.
fn mark_example(app: &mut App, by: isize) {
    let Some((samples, marked)) = examples(app).filter(|(samples, _)| !samples.is_empty()) else { return };
    let new = (marked + samples.len()).saturating_add_signed(by) % samples.len();
    let Some(Overlay::Page { page, .. }) = app.top_mut::<Overlay>() else { return };
    if let OverlayPage::Details { example, .. } | OverlayPage::Anomaly { example, .. } = page {
        *example = new;
    }
    let page = page.clone();
    let columns = usize::from(app.frame.overlay.width).saturating_sub(2);
    let lines = pages::lines(app, &page, columns);
    let is_marked = |line: &StyledLine| line.first().is_some_and(|(_, text)| text.starts_with(MARK));
    let (Some(line), height) = (lines.iter().position(is_marked), app.frame.page_height()) else { return };
    if let Some(Overlay::Page { offset, .. }) = app.top_mut::<Overlay>() {
        // The line below it has the time of day.
        *offset = (*offset).min(line).max((line + 2).saturating_sub(height));
    }
}

fn open_marked(app: &mut App) -> Vec<UiEffect> {
    let marked = examples(app).and_then(|(samples, at)| samples.into_iter().nth(at));
    match marked {
        Some(sample) => timeline::open(app, ExecutionId::from_raw(sample.number), sample.group),
        None => {
            app.say("no execution to show here");
            Vec::new()
        }
    }
}
