//! The first input in a run of bytes: a key, the mouse, an answer of the terminal, or a sequence that is not
//! understood.
//!
//! In: bytes. Out: [`ParsedInput`]: how many bytes the first input takes, or how long to wait for more. Every sequence
//! ends: by its last byte (any of 0x40 to 0x7e ends a CSI, ECMA-48 section 5.4), by a byte that no sequence contains,
//! or by its length.
//!
//! ```text
//! ESC [ 1 ; 5 D      a key with modifiers      ESC O P            a key of the keypad
//! ESC [ 200 ~        a paste begins            ESC [ < 0;7;3 M    the mouse
//! ESC ] 11;rgb:ffff/ffff/ffff BEL              the background colour
//! ```

use super::event::TerminalEvent;
use crate::tui::background;
use crate::tui::key::KeyPress;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::time::Duration;

/// The rest of an input follows within this time, or the input has ended: a terminal sends a sequence in one piece.
pub(super) const PATIENCE: Duration = Duration::from_millis(50);
/// The answer about the background may come in pieces over a slow line, and nothing else begins like it.
const ANSWER: Duration = Duration::from_millis(300);
/// The longest sequence, in bytes; the longest known has half as many.
pub(super) const LONGEST: usize = 64;

pub(super) const ESC: u8 = 0x1b;

/// The beginning of some bytes.
pub(super) enum ParsedInput {
    /// This many bytes were this input, or nothing that is understood.
    Taken(usize, Option<TerminalEvent>),
    /// The input may go on; wait this long for more.
    Waits(Duration),
}

/// The first input of these bytes.
pub(super) fn parse(bytes: &[u8]) -> ParsedInput {
    match bytes {
        [] => ParsedInput::Waits(PATIENCE),
        [ESC, rest @ ..] => escaped(rest),
        [byte, ..] if *byte < 0x80 => ParsedInput::Taken(1, Some(ascii(*byte, KeyModifiers::NONE))),
        bytes => character(bytes, KeyModifiers::NONE, 0),
    }
}

/// A key. A press always is one; the other arm never happens.
pub(super) fn key(code: KeyCode, modifiers: KeyModifiers) -> TerminalEvent {
    KeyPress::pressed(KeyEvent::new(code, modifiers)).map_or(TerminalEvent::Resized, TerminalEvent::Key)
}

/// A byte of ASCII as a key.
fn ascii(byte: u8, more: KeyModifiers) -> TerminalEvent {
    let control = |c: u8| (KeyCode::Char(char::from(c)), more | KeyModifiers::CONTROL);
    let (code, modifiers) = match byte {
        b'\r' => (KeyCode::Enter, more),
        b'\t' => (KeyCode::Tab, more),
        0x7f => (KeyCode::Backspace, more),
        ESC => (KeyCode::Esc, more),
        0 => control(b' '),
        1..=0x1a => control(byte - 1 + b'a'),
        0x1c..=0x1f => control(byte - 0x1c + b'4'),
        _ => (KeyCode::Char(char::from(byte)), more),
    };
    key(code, modifiers)
}

/// A character beyond ASCII, `skipped` bytes after the beginning of the input.
fn character(bytes: &[u8], modifiers: KeyModifiers, skipped: usize) -> ParsedInput {
    let length = match bytes.first() {
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        _ => return ParsedInput::Taken(skipped + 1, None),
    };
    let have = bytes.get(..length.min(bytes.len())).unwrap_or(bytes);
    match std::str::from_utf8(have) {
        Ok(text) => {
            let input = text.chars().next().map(|c| key(KeyCode::Char(c), modifiers));
            ParsedInput::Taken(skipped + have.len(), input)
        }
        Err(e) if e.error_len().is_none() && bytes.len() < length => ParsedInput::Waits(PATIENCE),
        Err(e) => ParsedInput::Taken(skipped + e.error_len().unwrap_or(1), None),
    }
}

/// The bytes after an ESC.
fn escaped(rest: &[u8]) -> ParsedInput {
    match rest {
        [] => ParsedInput::Waits(PATIENCE),
        [b'[', rest @ ..] => csi(rest),
        [b'O'] => ParsedInput::Waits(PATIENCE),
        [b'O', c, ..] => match keypad(*c) {
            Some(code) => ParsedInput::Taken(3, Some(key(code, KeyModifiers::NONE))),
            None => ParsedInput::Taken(2, Some(key(KeyCode::Char('O'), KeyModifiers::ALT))),
        },
        [b']', rest @ ..] => string(rest, StringKind::Command),
        [b'P' | b'X' | b'^' | b'_', rest @ ..] => string(rest, StringKind::Other),
        // The second may begin a sequence.
        [ESC, ..] => ParsedInput::Taken(1, Some(key(KeyCode::Esc, KeyModifiers::NONE))),
        [byte, ..] if *byte < 0x80 => ParsedInput::Taken(2, Some(ascii(*byte, KeyModifiers::ALT))),
        rest => character(rest, KeyModifiers::ALT, 1),
    }
}

/// The bytes after `ESC [`.
fn csi(rest: &[u8]) -> ParsedInput {
    // The Linux console's function keys.
    match rest {
        [b'['] => return ParsedInput::Waits(PATIENCE),
        [b'[', c @ b'A'..=b'E', ..] => {
            return ParsedInput::Taken(4, Some(key(KeyCode::F(c - b'A' + 1), KeyModifiers::NONE)));
        }
        _ => {}
    }
    let Some(end) = rest.iter().position(|b| !(0x20..=0x3f).contains(b)) else {
        return if rest.len() > LONGEST {
            ParsedInput::Taken(rest.len() + 2, None)
        } else {
            ParsedInput::Waits(PATIENCE)
        };
    };
    match rest.get(end) {
        Some(last @ 0x40..=0x7e) => ParsedInput::Taken(end + 3, sequence(rest.get(..end).unwrap_or(&[]), *last)),
        // No sequence contains this byte: it begins another input.
        _ => ParsedInput::Taken(end + 2, None),
    }
}

/// A whole sequence: parameters and the last byte.
fn sequence(parameters: &[u8], last: u8) -> Option<TerminalEvent> {
    let text = std::str::from_utf8(parameters).ok()?;
    if let Some(mouse) = text.strip_prefix('<') {
        return button(mouse, last);
    }
    let mut numbers = text.split(';').map(|n| n.parse::<u16>().unwrap_or(1));
    let (first, second) = (numbers.next().unwrap_or(1), numbers.next().unwrap_or(1));
    let modifiers = modifiers(second);
    let code = match last {
        b'Z' => return Some(key(KeyCode::BackTab, modifiers)),
        b'~' => match first {
            1 | 7 => KeyCode::Home,
            2 => KeyCode::Insert,
            3 => KeyCode::Delete,
            4 | 8 => KeyCode::End,
            5 => KeyCode::PageUp,
            6 => KeyCode::PageDown,
            11..=15 => KeyCode::F(first as u8 - 10),
            17..=21 => KeyCode::F(first as u8 - 11),
            23 | 24 => KeyCode::F(first as u8 - 12),
            _ => return None,
        },
        // `ESC [ M` is the mouse of old terminals and no key.
        b'M' => return None,
        last => keypad(last)?,
    };
    text.bytes().all(|b| b.is_ascii_digit() || b == b';').then(|| key(code, modifiers))
}

fn modifiers(parameter: u16) -> KeyModifiers {
    let mask = parameter.saturating_sub(1);
    let bits = [(1, KeyModifiers::SHIFT), (2, KeyModifiers::ALT), (4, KeyModifiers::CONTROL)];
    bits.into_iter().filter(|(bit, _)| mask & bit != 0).fold(KeyModifiers::NONE, |all, (_, modifier)| all | modifier)
}

fn keypad(last: u8) -> Option<KeyCode> {
    Some(match last {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'F' => KeyCode::End,
        b'H' => KeyCode::Home,
        b'M' => KeyCode::Enter,
        b'P'..=b'S' => KeyCode::F(last - b'P' + 1),
        _ => return None,
    })
}

/// `button;column;line` of the mouse; lines and columns from 1.
fn button(parameters: &str, last: u8) -> Option<TerminalEvent> {
    let mut numbers = parameters.split(';').map(|n| n.parse::<u16>().ok());
    let (button, column, line) = (numbers.next()??, numbers.next()??, numbers.next()??);
    // Shift, Alt and Ctrl change nothing here.
    match (button & !0b1_1100, last) {
        (0, b'M') => Some(TerminalEvent::Click(column.checked_sub(1)?, line.checked_sub(1)?)),
        (32, b'M') => Some(TerminalEvent::Drag(column.checked_sub(1)?, line.checked_sub(1)?)),
        (64, b'M') => Some(TerminalEvent::Wheel(-3)),
        (65, b'M') => Some(TerminalEvent::Wheel(3)),
        _ => None,
    }
}

/// The strings that a terminal may send.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StringKind {
    /// An operating system command (`ESC ]`): the answer about the background is one.
    Command,
    Other,
}

/// The bytes after the beginning of a string that BEL or `ESC \` ends.
fn string(rest: &[u8], kind: StringKind) -> ParsedInput {
    let end = rest.iter().position(|b| b.is_ascii_control());
    let text = rest.get(..end.unwrap_or(rest.len())).unwrap_or(&[]);
    let is_command = kind == StringKind::Command;
    let answers = is_command && background::begins_answer(text);
    let input = || {
        let text = std::str::from_utf8(text).ok().filter(|_| is_command)?;
        background::of_answer(text).map(TerminalEvent::Background)
    };
    match end.map(|end| (end, rest.get(end..).unwrap_or(&[]))) {
        Some((end, [0x07, ..])) => ParsedInput::Taken(end + 3, input()),
        Some((end, [ESC, b'\\', ..])) => ParsedInput::Taken(end + 4, input()),
        Some((_, [ESC])) => ParsedInput::Waits(if answers { ANSWER } else { PATIENCE }),
        // Another control character is a key, and an ESC begins the next input.
        Some((end, _)) => ParsedInput::Taken(end + 2, None),
        None if rest.len() > LONGEST => ParsedInput::Taken(rest.len() + 2, None),
        // A key after the beginning of an answer is not part of it.
        None if is_command && !text.is_empty() && !answers => {
            let good = (0..text.len()).rev().find(|n| background::begins_answer(&text[..*n])).unwrap_or(0);
            if good >= background::CERTAIN { ParsedInput::Taken(good + 2, None) } else { ParsedInput::Waits(PATIENCE) }
        }
        None => ParsedInput::Waits(if answers { ANSWER } else { PATIENCE }),
    }
}
