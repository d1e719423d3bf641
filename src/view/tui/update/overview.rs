//! The recording at a glance: reading it, and the keys of its dialog.

use crate::base::time::Span;
use crate::model::overview::{RecordingOverview, cut};
use crate::view::tui::actions::Action;
use crate::view::tui::app::App;
use crate::view::tui::groups::GroupSide;
use crate::view::tui::job::{Job, JobError, JobLane};
use crate::view::tui::layers::filters;
use crate::view::tui::message::UiEffect;
use crate::view::tui::overlay::Overlay;
use crate::view::tui::overview::{LABELS, OverviewView, strip_lines};
use crate::view::words;
use std::sync::Arc;

/// Open the dialog; the first time the recording is read.
pub(super) fn open(app: &mut App) -> Vec<UiEffect> {
    let whole = app.overview.whole.as_ref().map_or(Span::default(), |whole| whole.span);
    app.open(Overlay::Overview(Box::new(OverviewView::new(whole))));
    read_whole(app)
}

/// Read the recording for the header, where the screen shows it there.
pub(super) fn read_for_header(app: &mut App) -> Vec<UiEffect> {
    if strip_lines(app.size) > 0 && app.overview.failure.is_none() { read_whole(app) } else { Vec::new() }
}

fn read_whole(app: &mut App) -> Vec<UiEffect> {
    let needed = app.overview.whole.is_none() && app.busy(JobLane::Overview).is_none();
    if needed { app.begin(Job::Overview { span: None }) } else { Vec::new() }
}

/// A part of the recording is read, or not.
pub(super) fn on_overview(app: &mut App, asked: Option<Span>, result: Result<Arc<RecordingOverview>, JobError>) {
    app.overview.busy = None;
    let open = app
        .layers
        .iter_mut()
        .filter_map(|layer| (layer.as_mut() as &mut dyn std::any::Any).downcast_mut::<Overlay>())
        .find_map(|overlay| match overlay {
            Overlay::Overview(view) => Some(view),
            _ => None,
        });
    match (result, asked) {
        (Ok(whole), None) => {
            if let Some(view) = open.filter(|view| view.window.is_empty()) {
                **view = OverviewView::new(whole.span);
            }
            app.overview.whole = Some(whole);
        }
        (Ok(part), Some(span)) => {
            if let Some(view) = open.filter(|view| view.window == span) {
                view.detail = Some(part);
            }
        }
        (Err(error), None) => app.overview.failure = Some(error.to_string()),
        (Err(error), Some(_)) => app.report_failure(error.to_string()),
    }
}

/// The mouse on the drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pointing {
    /// The button went down: the cursor goes there.
    Click,
    /// It moved with the button down: it selects from where it went down.
    Drag,
}

/// The cursor goes to a column of the screen.
pub(super) fn point_to(app: &mut App, x: u16, pointing: Pointing) {
    let count = app.frame.overview_columns;
    let Some(column) = usize::from(x).checked_sub(LABELS + 1).filter(|column| *column < count) else { return };
    let Some(Overlay::Overview(view)) = app.top_mut::<Overlay>() else { return };
    match pointing {
        Pointing::Click => view.anchor = None,
        Pointing::Drag => {
            view.anchor.get_or_insert(view.cursor);
        }
    }
    view.cursor = cut(view.window, count, column);
}

/// Do an action of the dialog's own keys.
pub(super) fn act(app: &mut App, action: Action) -> Vec<UiEffect> {
    let (count, origin) = (app.frame.overview_columns, app.origin());
    let Some(whole) = app.overview.whole.as_ref().map(|whole| whole.span) else { return Vec::new() };
    let Some(Overlay::Overview(view)) = app.top_mut::<Overlay>() else { return Vec::new() };
    let before = view.window;
    match action {
        Action::Left => view.step(-1, count, whole),
        Action::Right => view.step(1, count, whole),
        Action::PageUp | Action::PanLeft => view.step(-(count as i64 / 4), count, whole),
        Action::PageDown | Action::PanRight => view.step(count as i64 / 4, count, whole),
        Action::Home => view.go_to_end(false, count),
        Action::End => view.go_to_end(true, count),
        Action::ZoomIn => view.zoom(1, count, whole),
        Action::ZoomOut => view.zoom(-1, count, whole),
        Action::Zoom => {
            let OverviewView { cursor, anchor, .. } = **view;
            **view = OverviewView { cursor, anchor, ..OverviewView::new(whole) };
        }
        Action::GrowLeft | Action::GrowRight => {
            view.anchor.get_or_insert(view.cursor);
            view.step(if action == Action::GrowLeft { -1 } else { 1 }, count, whole);
        }
        Action::Clear => view.anchor = None,
        Action::MakeSlow | Action::MakeFast => {
            let text = words::filter(&view.filter(count, origin));
            let side = if action == Action::MakeSlow { GroupSide::Slow } else { GroupSide::Fast };
            if app.comparison.is_none() {
                app.say("there are no groups yet");
                return Vec::new();
            }
            app.layers.pop();
            filters::open_with(app, side, text, None);
            return Vec::new();
        }
        _ => {}
    }
    if view.window != before && view.window != whole {
        let span = Some(view.window);
        return app.begin(Job::Overview { span });
    }
    Vec::new()
}
