//! A line that is typed, on the last line of the screen: a search, a note, the name of a file.

use crate::tui::app::{App, Layer, LayerResponse};
use crate::tui::canvas::Canvas;
use crate::tui::input::TextInput;
use crate::tui::key::{KeyPress, QUIT};
use crossterm::event::KeyCode;
use ratatui::layout::Rect;

/// What a line is typed for.
#[derive(Debug)]
pub struct PromptPurpose {
    /// The text before the line.
    pub label: fn(&App) -> &'static str,
    /// What each change of the text does: searches run while they are typed.
    pub typed: Option<fn(&mut App, &str)>,
    /// What Tab makes of the text.
    pub next: Option<fn(&str) -> String>,
    /// What the text does once it is complete, when the line is gone.
    pub entered: fn(&mut App, &str),
}

/// The line.
#[derive(Clone, Debug)]
pub struct Prompt {
    purpose: &'static PromptPurpose,
    input: TextInput,
}

impl Prompt {
    /// A line that begins with a text.
    pub fn new(purpose: &'static PromptPurpose, text: impl Into<String>) -> Prompt {
        Prompt { purpose, input: TextInput::new(text) }
    }

    fn changed(&self) -> LayerResponse {
        let Some(typed) = self.purpose.typed else { return LayerResponse::TAKEN };
        let text = self.input.text().to_owned();
        LayerResponse::change(move |app| typed(app, &text))
    }
}

impl Layer for Prompt {
    fn key(&mut self, key: KeyPress, _: &App) -> LayerResponse {
        match key.plain() {
            Some(KeyCode::Esc) => LayerResponse::CLOSE,
            Some(KeyCode::Enter) => {
                let (entered, text) = (self.purpose.entered, self.input.text().to_owned());
                LayerResponse::change(move |app| entered(app, &text)).closing()
            }
            Some(KeyCode::Tab) => {
                let Some(next) = self.purpose.next else { return LayerResponse::TAKEN };
                self.input = TextInput::new(next(self.input.text()));
                self.changed()
            }
            _ if key == QUIT => LayerResponse::CLOSE,
            _ if self.input.key(key) => self.changed(),
            _ => LayerResponse::TAKEN,
        }
    }

    fn paste(&mut self, text: &str) -> LayerResponse {
        self.input.insert(text);
        self.changed()
    }

    fn draw(&self, canvas: &mut Canvas<'_>, app: &App) {
        let mut line = canvas.part(last_lines(app, 1));
        line.clear();
        self.input.draw(&mut line, 0, (self.purpose.label)(app));
    }

    fn is_line(&self) -> bool {
        true
    }

    fn shows_below(&self) -> bool {
        true
    }
}

/// The last lines of the screen.
pub fn last_lines(app: &App, lines: u16) -> Rect {
    let lines = lines.min(app.size.1);
    Rect::new(0, app.size.1 - lines, app.size.0, lines)
}
