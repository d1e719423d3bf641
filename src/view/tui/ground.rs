//! Whether the terminal's ground is light or dark: the terminal is asked for its colour (OSC 11), and the answer is
//! picked from among the keys.
//!
//! In: what the terminal sends. Out: the same without the answer, and the answer. Nobody waits for it but the first frame, a
//! tenth of a second: over a slow line it comes late, from some terminals (screen, old ones) never, and neither costs a key. What
//! looks like the beginning of the answer is held back until it is one, or is not, or nothing follows at once; then it is
//! passed on in order. So no second question is needed whose answer would tell that this one has none.
//!
//! ```text
//! ESC ] 1 1 ; r g b : f f f f / f f f f / f f f f BEL      (or ESC \ at the end; one to four digits each)
//! ```
//! The reader of keys takes `ESC ]` for Alt-], each character for its key, and BEL for Ctrl-g. Where a read ends behind the
//! `ESC`, that has been passed on as the key Esc, and `]` behind it begins the answer as well.

use crossterm::event::{Event, KeyCode, KeyModifiers};
use std::time::Duration;

/// The question. It ends with BEL because rxvt ends its answer as the question ends, but loses half of an `ESC \`.
pub const QUESTION: &[u8] = b"\x1b]11;?\x07";

/// What was held back is no answer when nothing follows for so long: a terminal sends its answer in one piece.
pub const PATIENCE: Duration = Duration::from_millis(50);

/// The program that was left at once waits so long after the question for its answer.
pub const LATEST: Duration = Duration::from_millis(200);

/// `11;rgba:` and four times four digits with strokes between.
const LONGEST: usize = 27;

/// Picks the answer from among the keys.
#[derive(Debug, Default)]
pub struct Ear {
    /// What may be the answer.
    held: Vec<Event>,
    /// Its text so far.
    text: String,
    /// The last key passed on was Esc.
    escaped: bool,
    answered: bool,
}

/// What an event is as a part of the answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// A character, perhaps behind an `ESC`.
    Character(char, bool),
    Escape,
    Bell,
    Nothing,
}

impl Part {
    fn of(event: &Event) -> Part {
        let Event::Key(key) = event else { return Part::Nothing };
        match (key.code, key.modifiers - KeyModifiers::SHIFT) {
            (KeyCode::Char('g'), KeyModifiers::CONTROL) => Part::Bell,
            (KeyCode::Char(c), KeyModifiers::NONE) => Part::Character(c, false),
            (KeyCode::Char(c), KeyModifiers::ALT) => Part::Character(c, true),
            (KeyCode::Esc, KeyModifiers::NONE) => Part::Escape,
            _ => Part::Nothing,
        }
    }
}

impl Ear {
    /// Something is held back.
    pub fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// An event; what to pass on, in order, and whether the ground is light, once.
    pub fn hear(&mut self, event: Event) -> (Vec<Event>, Option<bool>) {
        let part = Part::of(&event);
        if self.held.is_empty() {
            let begins = part == Part::Character(']', true) || self.escaped && part == Part::Character(']', false);
            self.escaped = part == Part::Escape;
            if self.answered || !begins {
                return (vec![event], None);
            }
            self.held.push(event);
            return (Vec::new(), None);
        }
        let behind_escape = self.held.last().is_some_and(|last| Part::of(last) == Part::Escape);
        match part {
            Part::Bell | Part::Character('\\', true) => return self.end(event),
            Part::Character('\\', false) if behind_escape => return self.end(event),
            Part::Escape if !behind_escape => {}
            Part::Character(c, false) if !behind_escape && self.goes_on_with(c) => self.text.push(c),
            _ => {
                self.held.push(event);
                return (self.release(), None);
            }
        }
        self.held.push(event);
        (Vec::new(), None)
    }

    /// Nothing follows: what was held back are keys.
    pub fn release(&mut self) -> Vec<Event> {
        self.text.clear();
        std::mem::take(&mut self.held)
    }

    fn goes_on_with(&self, c: char) -> bool {
        match "11;rgb".chars().nth(self.text.len()) {
            Some(expected) => c == expected,
            None => self.text.len() < LONGEST && matches!(c, 'a' | ':' | '/' | '0'..='9' | 'A'..='F' | 'b'..='f'),
        }
    }

    fn end(&mut self, event: Event) -> (Vec<Event>, Option<bool>) {
        self.held.push(event);
        match is_light(&self.text) {
            Some(light) => {
                self.answered = true;
                self.release();
                (Vec::new(), Some(light))
            }
            None => (self.release(), None),
        }
    }
}

/// Whether `11;rgb:RR/GG/BB` is nearer to white than to black, as eyes weigh the colours (ITU-R BT.601).
fn is_light(answer: &str) -> Option<bool> {
    let colours = answer.strip_prefix("11;rgb")?;
    let colours = colours.strip_prefix('a').unwrap_or(colours).strip_prefix(':')?;
    let share = |digits: &str| {
        let most = 16_u32.checked_pow(digits.len() as u32)? - 1;
        let value = u32::from_str_radix(digits, 16).ok()?;
        (1..=4).contains(&digits.len()).then(|| value * 1_000 / most)
    };
    let shares: Option<Vec<u32>> = colours.split('/').map(share).collect();
    match shares?.as_slice() {
        [red, green, blue, ..] => Some(299 * red + 587 * green + 114 * blue > 500 * 1_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossterm::event::KeyEvent;

    fn key(c: char) -> Event {
        Event::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE))
    }

    fn with(c: char, modifiers: KeyModifiers) -> Event {
        Event::Key(KeyEvent::new(KeyCode::Char(c), modifiers))
    }

    fn escape() -> Event {
        Event::Key(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE))
    }

    /// As the reader of keys sees an answer.
    fn answer(text: &str, end: &[Event]) -> Vec<Event> {
        let upper = |c: char| if c.is_ascii_uppercase() { with(c, KeyModifiers::SHIFT) } else { key(c) };
        let begin = std::iter::once(with(']', KeyModifiers::ALT));
        begin.chain(text.chars().map(upper)).chain(end.iter().cloned()).collect()
    }

    fn hear(events: &[Event]) -> (Vec<Event>, Vec<bool>, Ear) {
        let (mut ear, mut passed, mut heard) = (Ear::default(), Vec::new(), Vec::new());
        for event in events {
            let (keys, light) = ear.hear(event.clone());
            passed.extend(keys);
            heard.extend(light);
        }
        (passed, heard, ear)
    }

    #[test]
    fn the_answer_is_taken_and_every_key_is_passed_on() {
        let ends: [&[Event]; 3] =
            [&[with('g', KeyModifiers::CONTROL)], &[with('\\', KeyModifiers::ALT)], &[escape(), key('\\')]];
        for (text, light) in [
            ("11;rgb:ffff/FFFF/ffff", true),
            ("11;rgb:1e1e/1e1e/2e2e", false),
            ("11;rgb:ff/ff/d7", true),
            ("11;rgba:0000/2b2b/3636/ffff", false),
        ] {
            for end in ends {
                let events = [&[key('1'), escape()][..], &answer(text, end), &[key('q')]].concat();
                let (passed, heard, _) = hear(&events);
                assert_eq!((passed, heard), (vec![key('1'), escape(), key('q')], vec![light]), "{text}");
            }
        }
        // A read that ended behind the first ESC.
        let mut split = answer("11;rgb:ffff/ffff/ffff", ends[0]);
        split.splice(0..1, [escape(), key(']')]);
        let (passed, heard, _) = hear(&split);
        assert_eq!((passed, heard), (vec![escape()], vec![true]));
    }

    #[test]
    fn what_is_no_answer_are_keys() {
        let bell = with('g', KeyModifiers::CONTROL);
        for text in ["10;rgb:0/0/0", "11;x", "11;rgb:fffff/0/0", "11;rgb:0/0", "11;rgb:0//0", "g", ""] {
            let events = answer(text, std::slice::from_ref(&bell));
            let (mut passed, heard, mut ear) = hear(&events);
            passed.extend(ear.release());
            assert_eq!((passed, heard), (events, vec![]), "{text}");
        }
        let endless = answer(&format!("11;rgb:{}", "0".repeat(100)), &[]);
        let (passed, _, ear) = hear(&endless);
        assert!(passed == endless && !ear.is_holding());
        // What begins like an answer waits for what follows, and only until somebody says that nothing does.
        let (passed, _, mut ear) = hear(&answer("11;r", &[]));
        assert!(passed.is_empty() && ear.is_holding());
        assert_eq!(ear.release(), answer("11;r", &[]));
        assert!(!ear.is_holding());
    }
}
