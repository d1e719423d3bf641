//! Keys as the table of actions writes them: `x`, `Shift-Left`, `Ctrl-l`, `PgUp`.
//!
//! In: what the terminal library reports. Out: a small comparable value that reads and writes itself as text, so
//! that the table, the help page and the tests share one spelling. The letter's case carries Shift: terminals
//! disagree on whether `X` also reports the modifier, so it is dropped for characters.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyPress {
    code: KeyCode,
    modifiers: KeyModifiers,
}

const NAMED: &[(&str, KeyCode)] = &[
    ("Up", KeyCode::Up),
    ("Down", KeyCode::Down),
    ("Left", KeyCode::Left),
    ("Right", KeyCode::Right),
    ("PgUp", KeyCode::PageUp),
    ("PgDn", KeyCode::PageDown),
    ("Home", KeyCode::Home),
    ("End", KeyCode::End),
    ("Tab", KeyCode::Tab),
    ("Enter", KeyCode::Enter),
    ("Space", KeyCode::Char(' ')),
    ("Backspace", KeyCode::Backspace),
    ("Delete", KeyCode::Delete),
    ("Esc", KeyCode::Esc),
];

/// Ctrl-c leaves a prompt as it leaves the program: one layer at a time.
pub const QUIT: KeyPress = KeyPress::control('c');

impl KeyPress {
    /// The key of a press or repeat; releases are none.
    pub fn pressed(event: KeyEvent) -> Option<KeyPress> {
        if event.kind == KeyEventKind::Release {
            return None;
        }
        let kept = KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT;
        let modifiers = event.modifiers & kept;
        Some(match event.code {
            KeyCode::BackTab => KeyPress { code: KeyCode::Tab, modifiers: modifiers | KeyModifiers::SHIFT },
            KeyCode::Char(c) => KeyPress { code: KeyCode::Char(c), modifiers: modifiers - KeyModifiers::SHIFT },
            code => KeyPress { code, modifiers },
        })
    }

    /// Tab with Shift.
    pub const BACK_TAB: KeyPress = KeyPress { code: KeyCode::Tab, modifiers: KeyModifiers::SHIFT };

    /// A key without modifiers.
    pub const fn of(code: KeyCode) -> KeyPress {
        KeyPress { code, modifiers: KeyModifiers::NONE }
    }

    /// A letter with Ctrl.
    pub const fn control(letter: char) -> KeyPress {
        KeyPress { code: KeyCode::Char(letter), modifiers: KeyModifiers::CONTROL }
    }

    /// A key as written in the table; `None` if there is no such key.
    pub fn parse(text: &str) -> Option<KeyPress> {
        let mut modifiers = KeyModifiers::NONE;
        let mut rest = text;
        for (prefix, modifier) in
            [("Ctrl-", KeyModifiers::CONTROL), ("Alt-", KeyModifiers::ALT), ("Shift-", KeyModifiers::SHIFT)]
        {
            if let Some(after) = rest.strip_prefix(prefix).filter(|after| !after.is_empty()) {
                modifiers |= modifier;
                rest = after;
            }
        }
        let mut chars = rest.chars();
        let code = match (chars.next(), chars.next()) {
            (Some(c), None) => KeyCode::Char(c),
            _ => NAMED.iter().find(|(name, _)| *name == rest)?.1,
        };
        Some(KeyPress { code, modifiers })
    }

    /// The character that it types, if it types one.
    pub fn typed(self) -> Option<char> {
        match self.code {
            KeyCode::Char(c) if self.modifiers.is_empty() => Some(c),
            _ => None,
        }
    }

    /// Its code, where it comes without modifiers.
    pub fn plain(self) -> Option<KeyCode> {
        self.modifiers.is_empty().then_some(self.code)
    }
}

impl fmt::Display for KeyPress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (prefix, modifier) in
            [("Ctrl-", KeyModifiers::CONTROL), ("Alt-", KeyModifiers::ALT), ("Shift-", KeyModifiers::SHIFT)]
        {
            if self.modifiers.contains(modifier) {
                f.write_str(prefix)?;
            }
        }
        match (NAMED.iter().find(|(_, code)| *code == self.code), self.code) {
            (Some((name, _)), _) => f.write_str(name),
            (None, KeyCode::Char(c)) => write!(f, "{c}"),
            (None, other) => write!(f, "{other}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        for text in ["x", "U", "Shift-Left", "Ctrl-l", "PgDn", "Space", "<", "-", "Shift-Tab"] {
            assert_eq!(KeyPress::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(KeyPress::parse("Nonsense"), None);
    }

    #[test]
    fn shift_is_part_of_a_letter_and_of_nothing_else() {
        let event = |code, modifiers| KeyPress::pressed(KeyEvent::new(code, modifiers)).unwrap();
        assert_eq!(event(KeyCode::Char('U'), KeyModifiers::SHIFT), KeyPress::parse("U").unwrap());
        assert_eq!(event(KeyCode::BackTab, KeyModifiers::SHIFT), KeyPress::parse("Shift-Tab").unwrap());
        assert_eq!(event(KeyCode::Left, KeyModifiers::SHIFT), KeyPress::parse("Shift-Left").unwrap());
    }
}
