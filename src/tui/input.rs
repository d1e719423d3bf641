//! One line of text being typed: the search, a file name, the palette's filter, the filters of a group.

use super::canvas::{Canvas, clip_front};
use super::key::KeyPress;
use super::theme::StyleScope;
use crate::base::clean;
use crossterm::event::KeyCode;

/// A text and the place in it where the next character goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextInput {
    text: String,
    /// Byte position, always between characters.
    at: usize,
}

impl TextInput {
    /// A text to begin with; the cursor after it.
    pub fn new(text: impl Into<String>) -> TextInput {
        let text = text.into();
        TextInput { at: text.len(), text }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text before and after the cursor.
    pub fn halves(&self) -> (&str, &str) {
        self.text.split_at(self.at)
    }

    /// Put the cursor at a byte position between characters; elsewhere, or beyond the end, it goes to the end.
    pub fn go_to(&mut self, at: usize) {
        self.at = if self.text.is_char_boundary(at) { at } else { self.text.len() };
    }

    /// Replace the text from a byte position to the cursor; the cursor is after the new text.
    pub fn replace_before(&mut self, from: usize, text: &str) {
        if from <= self.at && self.text.is_char_boundary(from) {
            self.text.replace_range(from..self.at, text);
            self.at = from + text.len();
        }
    }

    /// Typed or pasted text; control characters are no text.
    pub fn insert(&mut self, text: &str) {
        let text: String = text.chars().filter(|c| !clean::is_unsafe(*c)).collect();
        self.text.insert_str(self.at, &text);
        self.at += text.len();
    }

    /// Take a key; false if it does not edit.
    pub fn key(&mut self, key: KeyPress) -> bool {
        if let Some(c) = key.typed() {
            self.insert(c.encode_utf8(&mut [0; 4]));
            return true;
        }
        let before = self.text[..self.at].chars().next_back().map_or(0, char::len_utf8);
        let after = self.text[self.at..].chars().next().map_or(0, char::len_utf8);
        match key.plain() {
            Some(KeyCode::Left) => self.at -= before,
            Some(KeyCode::Right) => self.at += after,
            Some(KeyCode::Home) => self.at = 0,
            Some(KeyCode::End) => self.at = self.text.len(),
            Some(KeyCode::Backspace) => {
                self.text.drain(self.at - before..self.at);
                self.at -= before;
            }
            Some(KeyCode::Delete) => {
                self.text.drain(self.at..self.at + after);
            }
            _ if key == CLEAR => *self = TextInput::default(),
            _ => return false,
        }
        true
    }

    /// Draw it after a label, with its cursor; its end stays in sight.
    pub fn draw(&self, canvas: &mut Canvas<'_>, y: usize, label: &str) {
        let at = canvas.text(0, y, &format!("{label}> "), StyleScope::Key);
        let (before, after) = self.halves();
        let room = canvas.width().saturating_sub(at + 1);
        let before = clip_front(before, room);
        let cursor = canvas.text(at, y, &before, StyleScope::Text);
        canvas.text(cursor, y, after, StyleScope::Text);
        if after.is_empty() {
            canvas.text(cursor, y, "█", StyleScope::Selection);
        } else {
            canvas.shade(cursor, y, 1, StyleScope::Match);
        }
    }
}

/// Empties the line, as in shells.
const CLEAR: KeyPress = KeyPress::control('u');

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn editing_stays_between_characters() {
        let mut input = TextInput::new("aµb");
        for key in ["Left", "Left", "Backspace", "x", "End", "Delete", "Home", "Delete", "漢"] {
            assert!(input.key(KeyPress::parse(key).unwrap()));
        }
        assert_eq!(input.text(), "漢µb");
        input.insert("\x1b[1m\nz");
        assert_eq!(input.text(), "漢[1mzµb");
        assert!(input.key(KeyPress::parse("Ctrl-u").unwrap()) && input.text().is_empty());
        assert!(!input.key(KeyPress::parse("Enter").unwrap()));
    }
}
