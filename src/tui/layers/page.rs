//! A page of text over the panes, to scroll; some pages list sampled executions, of which one is marked.
//!
//! A [`PageContent`] says what the text is. It is wrapped once for each layout of the screen.

use super::timeline;
use crate::model::execution::ExecutionId;
use crate::tui::actions::{Action, ActionScope};
use crate::tui::app::{App, Layer, LayerResponse};
use crate::tui::canvas::Canvas;
use crate::tui::details::SampleExecution;
use crate::tui::key::KeyPress;
use crate::tui::theme::StyleScope;
use crate::tui::widget::page::{MARK, StyledLine};
use crossterm::event::KeyCode;
use ratatui::layout::Position;
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// The content of a page.
pub trait PageContent: Any + Debug {
    fn title(&self) -> &'static str;

    /// The action that opens it, and closes it again.
    fn action(&self) -> Action;

    /// The lines, at most this many columns wide where words can be broken; the sampled execution at position `example`
    /// is marked.
    fn lines(&self, app: &App, columns: usize, example: usize) -> Vec<StyledLine>;

    /// The scope in which keys are looked up.
    fn scope(&self) -> ActionScope {
        ActionScope::Any
    }

    /// The sampled executions, on a page that lists some: Enter opens the marked one.
    fn samples(&self, _app: &App) -> Option<Vec<SampleExecution>> {
        None
    }
}

/// A page on the screen.
#[derive(Clone, Debug)]
pub struct PageLayer {
    page: Arc<dyn PageContent>,
    /// The sampled execution that is marked.
    example: usize,
    /// The first line shown.
    offset: usize,
    /// The lines in the present layout.
    pub lines: Vec<StyledLine>,
}

/// How far to scroll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scroll {
    /// Lines; negative is up.
    Lines(isize),
    Pages(isize),
    /// To the first.
    Home,
    /// To the last.
    End,
}

/// Lines of a page that are shown at once, below its title.
pub fn page_height(app: &App) -> usize {
    usize::from(app.frame.overlay.height).saturating_sub(1)
}

impl PageLayer {
    /// A page from its first line.
    pub fn new(page: impl PageContent) -> PageLayer {
        PageLayer { page: Arc::new(page), example: 0, offset: 0, lines: Vec::new() }
    }

    /// Its content, if it is of this type.
    pub fn content<P: PageContent>(&self) -> Option<&P> {
        (self.page.as_ref() as &dyn Any).downcast_ref()
    }

    fn scroll(&mut self, by: Scroll, app: &App) -> LayerResponse {
        let shown = page_height(app);
        let last = self.lines.len().saturating_sub(shown);
        let offset = match by {
            Scroll::Lines(n) => self.offset.saturating_add_signed(n),
            // Two lines stay in sight.
            Scroll::Pages(n) => self.offset.saturating_add_signed(n * shown.saturating_sub(2).max(1) as isize),
            Scroll::Home => 0,
            Scroll::End => last,
        };
        self.offset = offset.min(last);
        LayerResponse::TAKEN
    }

    /// Keys on pages that list sampled executions.
    fn sample_key(&mut self, key: KeyPress, app: &App) -> Option<LayerResponse> {
        let samples = self.page.samples(app)?;
        Some(match app.options.keys.bound(key, ActionScope::Any) {
            Some(Action::NextPane) => self.mark(1, &samples, app),
            Some(Action::PreviousPane) => self.mark(-1, &samples, app),
            Some(Action::ShowTimeline) => self.open_marked(samples),
            _ if key.plain() == Some(KeyCode::Enter) => self.open_marked(samples),
            _ => return None,
        })
    }

    /// Mark the next or previous sampled execution, and scroll to it.
    fn mark(&mut self, by: isize, samples: &[SampleExecution], app: &App) -> LayerResponse {
        if samples.is_empty() {
            return LayerResponse::TAKEN;
        }
        self.example = (self.example + samples.len()).saturating_add_signed(by) % samples.len();
        self.wrap(app);
        let is_marked = |line: &StyledLine| line.first().is_some_and(|(_, text)| text.starts_with(MARK));
        if let Some(line) = self.lines.iter().position(is_marked) {
            // The line below it has the time of day.
            self.offset = self.offset.min(line).max((line + 2).saturating_sub(page_height(app)));
        }
        LayerResponse::TAKEN
    }

    fn open_marked(&self, samples: Vec<SampleExecution>) -> LayerResponse {
        match samples.into_iter().nth(self.example) {
            Some(sample) => LayerResponse::change(move |app| {
                timeline::open(app, ExecutionId::from_raw(sample.number), sample.group)
            }),
            None => LayerResponse::say("no execution to show here"),
        }
    }

    fn wrap(&mut self, app: &App) {
        let columns = usize::from(app.frame.overlay.width).saturating_sub(2);
        self.lines = self.page.lines(app, columns, self.example);
    }
}

impl Layer for PageLayer {
    fn key(&mut self, key: KeyPress, app: &App) -> LayerResponse {
        if let Some(response) = self.sample_key(key, app) {
            return response;
        }
        match app.options.keys.bound(key, self.page.scope()) {
            Some(Action::Up) => self.scroll(Scroll::Lines(-1), app),
            Some(Action::Down) => self.scroll(Scroll::Lines(1), app),
            Some(Action::PageUp) => self.scroll(Scroll::Pages(-1), app),
            Some(Action::PageDown) => self.scroll(Scroll::Pages(1), app),
            Some(Action::Home) => self.scroll(Scroll::Home, app),
            Some(Action::End) => self.scroll(Scroll::End, app),
            Some(Action::Close | Action::Quit | Action::Back) => LayerResponse::CLOSE,
            Some(own) if own == self.page.action() => LayerResponse::CLOSE,
            Some(action @ (Action::Help | Action::Copy | Action::Redraw | Action::Suspend | Action::Theme)) => {
                LayerResponse::act(action)
            }
            _ => LayerResponse::TAKEN,
        }
    }

    fn click(&mut self, at: Position, app: &App) -> LayerResponse {
        if app.frame.overlay.contains(at) { LayerResponse::TAKEN } else { LayerResponse::CLOSE }
    }

    fn wheel(&mut self, lines: isize, app: &App) -> LayerResponse {
        self.scroll(Scroll::Lines(lines), app)
    }

    fn lay_out(&mut self, app: &App) {
        self.wrap(app);
        self.offset = self.offset.min(self.lines.len().saturating_sub(page_height(app)));
    }

    fn draw(&self, canvas: &mut Canvas<'_>, app: &App) {
        let canvas = &mut canvas.part(app.frame.overlay);
        canvas.clear();
        canvas.fill(0, 0, canvas.width(), '─', StyleScope::Rule);
        let end = canvas.text(2, 0, &format!(" {} ", self.page.title()), StyleScope::Title);
        let shown = canvas.height().saturating_sub(1);
        let last = (self.offset + shown).min(self.lines.len());
        if shown < self.lines.len() {
            let place = format!(" {}-{last} of {} ", self.offset + 1, self.lines.len());
            let at = canvas.width().saturating_sub(place.len() + 2);
            if at > end {
                canvas.text(at, 0, &place, StyleScope::Dim);
            }
        }
        for (y, line) in self.lines.iter().skip(self.offset).take(shown).enumerate() {
            let end = canvas.width();
            canvas.pieces(1, y + 1, end, line);
        }
    }

    fn keys(&self, app: &App) -> &'static [(&'static str, &'static str)] {
        match self.page.samples(app) {
            Some(_) => &[
                ("Esc", "close"),
                ("Enter", "timeline"),
                ("Tab", "next example"),
                ("Up Down", "scroll"),
                ("y", "copy"),
            ],
            None => &[("Esc", "close"), ("Up Down PgUp PgDn", "scroll"), ("y", "copy")],
        }
    }

    /// The lines wrapped so that they fit a message.
    fn copied(&self, app: &App) -> Option<String> {
        let text = |line: StyledLine| line.into_iter().map(|(_, text)| text).collect::<String>();
        Some(self.page.lines(app, 100, self.example).into_iter().map(text).collect::<Vec<_>>().join("\n"))
    }
}
