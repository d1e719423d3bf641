//! The prompt in which the filters of a group are typed: completion, history, and the error below its place.
//!
//! The text is the whole definition of the group, in the grammar of `--slow` and `--fast` (PRODUCT.md, "Filters");
//! [`Filters`] parses it. A text that is no filter stays in the prompt. An empty text removes the group's filters.

use super::prompt::last_lines;
use crate::compare::ComparisonRequest;
use crate::compare::filter::{Filter, Filters};
use crate::tui::app::{App, Layer, LayerResponse};
use crate::tui::canvas::{Canvas, clip_front, width, wrap};
use crate::tui::completion::{Completion, Vocabulary};
use crate::tui::groups::{GroupSide, TypedFilters};
use crate::tui::input::TextInput;
use crate::tui::key::KeyPress;
use crate::tui::theme::StyleScope;
use crate::tui::update::groups::{can_regroup, has_selection, regroup, selected, text_of};
use crossterm::event::KeyCode;
use std::sync::Arc;

/// An error and its place in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PromptError {
    /// One sentence.
    text: String,
    /// The bytes of the text that are wrong.
    place: std::ops::Range<usize>,
}

/// The last completion, while Tab goes through its candidates.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Chosen {
    completion: Completion,
    at: usize,
}

/// The prompt for the filters of a group.
#[derive(Clone, Debug)]
struct FilterPrompt {
    side: GroupSide,
    input: TextInput,
    /// The reason why the text was refused.
    error: Option<PromptError>,
    vocabulary: Arc<Vocabulary>,
    /// Texts that were applied before, the oldest first; the last is the own text.
    history: Vec<String>,
    /// Position in the history.
    at: usize,
    chosen: Option<Chosen>,
}

/// The effect of a key on the prompt.
#[derive(Clone, Debug, PartialEq)]
enum PromptResponse {
    /// It was used up.
    Taken,
    /// Leave the groups as they are.
    Close,
    /// Give the group these filters; none removes its filters.
    Apply(Vec<Filter>),
}

impl FilterPrompt {
    /// A prompt that begins with a text.
    fn new(side: GroupSide, text: String, vocabulary: Arc<Vocabulary>, past: &[String]) -> FilterPrompt {
        let mut history: Vec<String> = past.to_vec();
        history.push(text.clone());
        FilterPrompt {
            side,
            input: TextInput::new(text),
            error: None,
            vocabulary,
            at: history.len() - 1,
            history,
            chosen: None,
        }
    }

    /// The prompt with an error that was found when the text was applied; the whole text is its place.
    fn refused(self, error: String) -> FilterPrompt {
        let place = 0..self.input.text().len();
        FilterPrompt { error: Some(PromptError { text: error, place }), ..self }
    }

    /// The completion at the cursor, and the candidate that Tab has put there.
    fn completion(&self) -> (Completion, Option<usize>) {
        match &self.chosen {
            Some(chosen) => (chosen.completion.clone(), Some(chosen.at)),
            None => (self.vocabulary.complete(self.input.halves().0), None),
        }
    }

    /// Take a key.
    fn press(&mut self, key: KeyPress) -> PromptResponse {
        match key.plain() {
            Some(KeyCode::Esc) => return PromptResponse::Close,
            Some(KeyCode::Enter) => return self.enter(),
            Some(KeyCode::Tab) => self.complete(1),
            Some(KeyCode::Up) => self.recall(self.at.saturating_sub(1)),
            Some(KeyCode::Down) => self.recall(self.at + 1),
            _ if key == KeyPress::control('c') => return PromptResponse::Close,
            _ if key == KeyPress::BACK_TAB => self.complete(-1),
            _ => {
                if self.input.key(key) {
                    self.changed();
                }
            }
        }
        PromptResponse::Taken
    }

    fn changed(&mut self) {
        self.chosen = None;
        self.error = None;
    }

    fn enter(&mut self) -> PromptResponse {
        let text = self.input.text();
        if text.trim().is_empty() {
            return PromptResponse::Apply(Vec::new());
        }
        match text.parse::<Filters>() {
            Ok(filters) => PromptResponse::Apply(filters.0),
            Err(error) => {
                let place = error.place_in(text);
                self.input.go_to(place.end);
                // The line above shows the filter.
                self.error = Some(PromptError { text: error.fault().to_string(), place });
                self.chosen = None;
                PromptResponse::Taken
            }
        }
    }

    /// Put the first candidate in place of the last word, or the next one in place of it.
    fn complete(&mut self, by: isize) {
        self.error = None;
        let chosen = match self.chosen.take() {
            Some(Chosen { completion, at }) => {
                let count = completion.candidates.len();
                let at = (at as isize + by).rem_euclid(count.max(1) as isize) as usize;
                Chosen { completion, at }
            }
            None => Chosen { completion: self.vocabulary.complete(self.input.halves().0), at: 0 },
        };
        let Some(candidate) = chosen.completion.candidates.get(chosen.at) else { return };
        self.input.replace_before(chosen.completion.from, candidate);
        // The only candidate is accepted: the next Tab completes what follows it.
        self.chosen = (chosen.completion.candidates.len() > 1).then_some(chosen);
    }

    fn recall(&mut self, at: usize) {
        if at >= self.history.len() || at == self.at {
            return;
        }
        if self.at + 1 == self.history.len() {
            self.history[self.at] = self.input.text().to_owned();
        }
        self.at = at;
        self.input = TextInput::new(self.history[at].clone());
        self.changed();
    }
}

/// Ask for the filters of a group. The selection under the cursor is the first text, together with the group's filters
/// on other metrics; else the group's filters, if they were given.
pub fn open(app: &mut App, side: GroupSide) {
    if !can_regroup(app) {
        return;
    }
    let mut request = app.groups.now().clone();
    let filters = side.of(&mut request);
    if has_selection(app) {
        let selected = selected(app);
        if selected.is_empty() {
            return app.report_failure("the selection covers all values, or several names: narrow it with < and >");
        }
        filters.retain(|f| selected.iter().all(|s| s.metric != f.metric));
        filters.extend(selected);
    }
    let text = text_of(filters);
    open_with(app, side, text, None);
}

/// Show the prompt with a text, and with the reason why it was refused.
pub fn open_with(app: &mut App, side: GroupSide, text: String, error: Option<String>) {
    let Some(model) = &app.model else { return };
    let vocabulary = Arc::new(Vocabulary::new(model, app.counts.as_deref()));
    let prompt = FilterPrompt::new(side, text, vocabulary, &app.typed_filters);
    let prompt = match error {
        Some(error) => prompt.refused(error),
        None => prompt,
    };
    app.open(prompt);
}

/// Give a group the filters that were typed as a text; none removes the group's filters.
fn apply(app: &mut App, side: GroupSide, text: String, filters: Vec<Filter>) {
    let mut request = ComparisonRequest { by_trace: false, ..app.groups.now().clone() };
    *side.of(&mut request) = filters;
    if request.slow.is_empty() && request.fast.is_empty() {
        return regroup(app, app.groups.proposal(), "no filters: groups proposed again");
    }
    if !text.trim().is_empty() {
        app.typed_filters.retain(|t| *t != text);
        app.typed_filters.push(text.clone());
    }
    let given = text_of(side.of(&mut request));
    let status = match given.as_str() {
        "" => format!("{} group: all others", side.name()),
        given => format!("{} group: {given}", side.name()),
    };
    // A selection that has become a filter takes it along when it moves.
    let selected = selected(app);
    let is_selection = !selected.is_empty() && selected.iter().all(|filter| side.of(&mut request).contains(filter));
    let selections = app.histograms.selections();
    regroup(app, request, &status);
    if app.effects.is_empty() {
        return;
    }
    app.typed = Some(TypedFilters { side, text });
    if is_selection {
        app.histograms.attach(selections, side, app.frame.heat);
    }
}

impl Layer for FilterPrompt {
    fn key(&mut self, key: KeyPress, _: &App) -> LayerResponse {
        match self.press(key) {
            PromptResponse::Taken => LayerResponse::TAKEN,
            PromptResponse::Close => LayerResponse::CLOSE,
            PromptResponse::Apply(filters) => {
                let (side, text) = (self.side, self.input.text().to_owned());
                LayerResponse::change(move |app| apply(app, side, text, filters)).closing()
            }
        }
    }

    fn paste(&mut self, text: &str) -> LayerResponse {
        self.input.insert(text);
        self.changed();
        LayerResponse::TAKEN
    }

    fn draw(&self, canvas: &mut Canvas<'_>, app: &App) {
        let lines = height(self, usize::from(app.size.0)) as u16;
        draw(&mut canvas.part(last_lines(app, lines)), self);
    }

    fn is_line(&self) -> bool {
        true
    }
}

/// Most lines of an error.
const ERROR_LINES: usize = 4;

/// The keys of the prompt.
const KEYS: &str = "Tab complete  Up history  Ctrl-u empty  Enter apply  Esc cancel";

/// Lines that the prompt takes on a screen of this width: a title, the text, the error or the candidates.
fn height(prompt: &FilterPrompt, columns: usize) -> usize {
    let below = prompt.error.as_ref().map_or(1, |error| wrap(&error.text, columns).len().clamp(1, ERROR_LINES));
    2 + below
}

/// Draw it; on a canvas that is too low the title is left out first, then the line below.
fn draw(canvas: &mut Canvas<'_>, prompt: &FilterPrompt) {
    canvas.clear();
    let mut y = 0;
    if canvas.height() >= 3 {
        canvas.fill(0, 0, canvas.width(), '─', StyleScope::Rule);
        let end = canvas.text(2, 0, &format!(" {} group ", prompt.side.name()), StyleScope::Title);
        if end + width(KEYS) + 3 <= canvas.width() {
            canvas.right(canvas.width() - 1, 0, &format!(" {KEYS} "), StyleScope::Dim);
        }
        y = 1;
    }
    let label = canvas.text(0, y, &format!("{}> ", prompt.side.name()), StyleScope::Key);
    // The cursor and one column after it stay in sight.
    let (before, after) = prompt.input.halves();
    let shown = clip_front(before, canvas.width().saturating_sub(label + 2));
    let cut = width(before) - width(&shown).min(width(before));
    let column = |at: usize| {
        let to = width(prompt.input.text().get(..at).unwrap_or_default());
        label + to.saturating_sub(cut)
    };
    let cursor = canvas.text(label, y, &shown, StyleScope::Text);
    canvas.text(cursor, y, after, StyleScope::Text);
    if let Some(PromptError { place, .. }) = &prompt.error {
        canvas.shade(column(place.start), y, column(place.end) - column(place.start), StyleScope::Error);
    }
    if after.is_empty() {
        canvas.text(cursor, y, "█", StyleScope::Selection);
    } else {
        canvas.shade(cursor, y, 1, StyleScope::Match);
    }
    match &prompt.error {
        Some(error) => draw_error(canvas, y + 1, error, column(error.place.start)),
        None => draw_candidates(canvas, y + 1, prompt, label),
    }
}

/// The error below its place, or from the left border where it is longer.
fn draw_error(canvas: &mut Canvas<'_>, y: usize, error: &PromptError, at: usize) {
    let columns = canvas.width();
    let length = width(&error.text);
    if length <= columns {
        canvas.text(at.min(columns - length), y, &error.text, StyleScope::Error);
        return;
    }
    for (line, text) in wrap(&error.text, columns).iter().take(ERROR_LINES).enumerate() {
        canvas.text(0, y + line, text, StyleScope::Error);
    }
}

/// The candidates, that of Tab marked; after them the values of the metric.
fn draw_candidates(canvas: &mut Canvas<'_>, y: usize, prompt: &FilterPrompt, x: usize) {
    let (completion, chosen) = prompt.completion();
    let is_empty = prompt.input.text().trim().is_empty();
    let mut at = x;
    if is_empty {
        at = canvas.text(at, y, "duration>20ms, type=NAME", StyleScope::Text) + 2;
        at = canvas.text(at, y, "metrics:", StyleScope::Dim) + 1;
    }
    // The chosen candidate stays in sight.
    let columns = canvas.width().saturating_sub(at);
    let first = chosen.map_or(0, |chosen| {
        let mut first = chosen;
        let mut room = columns.saturating_sub(width(&completion.candidates[chosen]));
        while let Some(before) = first.checked_sub(1)
            && let Some(left) = room.checked_sub(width(&completion.candidates[before]) + 2)
        {
            room = left;
            first = before;
        }
        first
    });
    for (i, candidate) in completion.candidates.iter().enumerate().skip(first) {
        if at >= canvas.width() {
            return;
        }
        let scope = if chosen == Some(i) { StyleScope::Match } else { StyleScope::Dim };
        at = canvas.text(at, y, candidate, scope) + 2;
    }
    if !completion.remark.is_empty() && at + width(&completion.remark) <= canvas.width() {
        canvas.right(canvas.width(), y, &completion.remark, StyleScope::Dim);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(text: &str, past: &[&str]) -> FilterPrompt {
        let past: Vec<String> = past.iter().map(|t| (*t).to_owned()).collect();
        FilterPrompt::new(GroupSide::Slow, text.to_owned(), Arc::default(), &past)
    }

    fn press(prompt: &mut FilterPrompt, keys: &str) -> PromptResponse {
        let mut last = PromptResponse::Taken;
        for key in keys.split_whitespace() {
            last = prompt.press(KeyPress::parse(key).unwrap());
        }
        last
    }

    #[test]
    fn key_keeps_a_text_that_is_no_filter_and_names_its_place() {
        let mut prompt = prompt("type=append, duration>5", &[]);
        assert_eq!(press(&mut prompt, "Enter"), PromptResponse::Taken);
        let error = prompt.error.clone().unwrap();
        assert_eq!((error.text.as_str(), error.place), ("`5` has no unit: write 5ms, 5us or 5ns", 22..23));
        assert!(matches!(press(&mut prompt, "m s Enter"), PromptResponse::Apply(filters) if filters.len() == 2));
        assert!(prompt.error.is_none() && prompt.input.text() == "type=append, duration>5ms");
        assert_eq!(press(&mut prompt, "Ctrl-u Enter"), PromptResponse::Apply(Vec::new()));
    }

    #[test]
    fn key_recalls_former_texts_and_comes_back_to_its_own() {
        let mut prompt = prompt("new", &["first", "second"]);
        press(&mut prompt, "x Up Up Up");
        assert_eq!(prompt.input.text(), "first");
        press(&mut prompt, "Down Down Down");
        assert_eq!(prompt.input.text(), "newx");
        assert_eq!(press(&mut prompt, "Esc"), PromptResponse::Close);
    }
}
