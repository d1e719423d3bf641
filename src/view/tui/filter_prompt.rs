//! The prompt in which the filters of a group are typed: completion, history, and the error below its place.
//!
//! The text is the whole definition of the group, in the grammar of `--slow` and `--fast` (PRODUCT.md, "Filters");
//! [`Filters`] parses it. A text that is no filter stays in the prompt. An empty text removes the group's filters.

use super::completion::{Completion, Vocabulary};
use super::groups::GroupSide;
use super::input::TextInput;
use super::key::KeyPress;
use crate::compare::filter::{Filter, Filters};
use crossterm::event::KeyCode;
use std::sync::Arc;

/// An error and its place in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptError {
    /// One sentence.
    pub text: String,
    /// The bytes of the text that are wrong.
    pub place: std::ops::Range<usize>,
}

/// The last completion, while Tab goes through its candidates.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Chosen {
    completion: Completion,
    at: usize,
}

/// The prompt for the filters of a group.
#[derive(Clone, Debug)]
pub struct FilterPrompt {
    pub side: GroupSide,
    pub input: TextInput,
    /// The reason why the text was refused.
    pub error: Option<PromptError>,
    vocabulary: Arc<Vocabulary>,
    /// Texts that were applied before, the oldest first; the last is the own text.
    history: Vec<String>,
    /// Position in the history.
    at: usize,
    chosen: Option<Chosen>,
}

/// The effect of a key on the prompt.
#[derive(Clone, Debug, PartialEq)]
pub enum PromptResponse {
    /// It was used up.
    Taken,
    /// Leave the groups as they are.
    Close,
    /// Give the group these filters; none removes its filters.
    Apply(Vec<Filter>),
}

impl FilterPrompt {
    /// A prompt that begins with a text.
    pub fn new(side: GroupSide, text: String, vocabulary: Arc<Vocabulary>, past: &[String]) -> FilterPrompt {
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

    /// The same with an error that was found when the text was applied; the whole text is its place.
    pub fn refused(self, error: String) -> FilterPrompt {
        let place = 0..self.input.text().len();
        FilterPrompt { error: Some(PromptError { text: error, place }), ..self }
    }

    /// The completion at the cursor, and the candidate that Tab has put there.
    pub fn completion(&self) -> (Completion, Option<usize>) {
        match &self.chosen {
            Some(chosen) => (chosen.completion.clone(), Some(chosen.at)),
            None => (self.vocabulary.complete(self.input.halves().0), None),
        }
    }

    /// Take a key.
    pub fn key(&mut self, key: KeyPress) -> PromptResponse {
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

    /// Take pasted text.
    pub fn paste(&mut self, text: &str) {
        self.input.insert(text);
        self.changed();
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
            last = prompt.key(KeyPress::parse(key).unwrap());
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
