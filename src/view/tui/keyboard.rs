//! What the terminal sends: bytes to keys, pastes, the mouse, the answer about the ground, and new sizes.
//!
//! In: bytes as they come, in pieces of any length. Out: [`TerminalEvent`]s. One reader for all of it, because sequences are told from
//! keys only by what follows them and how soon. Rejected: crossterm's reader, which waits without limit for one particular
//! byte behind `ESC [ ?`, `ESC [ <`, `ESC [ M` and `ESC [ 2 0 0 ~`, and takes no key until it comes, Ctrl-C included; its
//! decoder cannot be had without its reader (the tests hold such sequences). What a key is stays crossterm's vocabulary.
//!
//! Invariants: every sequence ends, by its last byte (any of 0x40 to 0x7e ends a CSI, ECMA-48 section 5.4), by a byte that cannot
//! stand in it, by its length, or by time; what was not understood is dropped; a control character within a sequence ends it and
//! is a key. So whatever was sent, a key pressed after a pause is that key.
//!
//! ```text
//! ESC [ 1 ; 5 D      a key with modifiers      ESC O P            a key of the keypad
//! ESC [ 200 ~ ... ESC [ 201 ~   a paste        ESC [ < 0;7;3 M    the mouse
//! ESC ] 11;rgb:ffff/ffff/ffff BEL              the colour of the ground
//! ```

use super::ground;
use super::key::KeyPress;
use super::terminal::is_background;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// What was begun goes on within this time, or has ended: a terminal sends a sequence in one piece.
const PATIENCE: Duration = Duration::from_millis(50);
/// The answer to our question may come in pieces over a slow line, and nothing else begins like it.
const ANSWER: Duration = Duration::from_millis(300);
/// A paste may be long, and the line slow.
const PASTE: Duration = Duration::from_millis(1500);
/// The longest sequence; the longest known has half as many bytes.
const LONGEST: usize = 64;
/// The longest paste that is taken, in bytes; what goes beyond it is dropped.
const LONGEST_PASTE: usize = 1 << 16;

const ESC: u8 = 0x1b;
const PASTE_ENDS: &[u8] = b"\x1b[201~";

/// Something that happened at the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminalEvent {
    /// A key.
    Key(KeyPress),
    /// Pasted text.
    Paste(String),
    /// Wheel: lines down.
    Wheel(isize),
    /// The left button, at this column and line.
    Click(u16, u16),
    /// The ground is light, or dark.
    Ground(bool),
    /// The window has another size.
    Resized,
    /// The terminal gives nothing any more.
    Closed,
}

/// What the beginning of the waiting bytes is.
enum Step {
    /// So many bytes were this, or nothing.
    Taken(usize, Option<TerminalEvent>),
    /// It may go on for so long.
    Waits(Duration),
}

/// Bytes to inputs.
#[derive(Debug, Default)]
pub struct Decoder {
    waiting: Vec<u8>,
    /// A paste so far.
    paste: Option<Vec<u8>>,
}

impl Decoder {
    /// Some more bytes.
    pub fn feed(&mut self, bytes: &[u8], mut take: impl FnMut(TerminalEvent)) {
        self.waiting.extend_from_slice(bytes);
        self.decode(&mut take);
    }

    /// How long to wait for what was begun; `None` where nothing was.
    pub fn patience(&self) -> Option<Duration> {
        match (&self.paste, self.step()) {
            (Some(_), _) => Some(PASTE),
            (None, Step::Waits(patience)) if !self.waiting.is_empty() => Some(patience),
            _ => None,
        }
    }

    /// Nothing followed in time: what was begun has ended.
    pub fn pause(&mut self, mut take: impl FnMut(TerminalEvent)) {
        if let Some(paste) = self.paste.take() {
            take(pasted(paste));
        }
        let begun = std::mem::take(&mut self.waiting);
        match begun.as_slice() {
            [] => {}
            [ESC] => take(key(KeyCode::Esc, KeyModifiers::NONE)),
            [ESC, c @ 0x20..=0x7e] => take(key(KeyCode::Char(char::from(*c)), KeyModifiers::ALT)),
            _ => {}
        }
    }

    fn decode(&mut self, take: &mut impl FnMut(TerminalEvent)) {
        loop {
            if self.paste.is_some() {
                if !self.go_on_with_paste(take) {
                    return;
                }
                continue;
            }
            match self.step() {
                Step::Taken(bytes, input) => {
                    let begins_paste = self.waiting.get(..bytes) == Some(b"\x1b[200~");
                    self.waiting.drain(..bytes.clamp(1, self.waiting.len()));
                    if begins_paste {
                        self.paste = Some(Vec::new());
                    }
                    input.into_iter().for_each(&mut *take);
                }
                Step::Waits(_) => return,
            }
        }
    }

    /// Take what waits into the paste; false where more is needed.
    fn go_on_with_paste(&mut self, take: &mut impl FnMut(TerminalEvent)) -> bool {
        let end = memchr::memmem::find(&self.waiting, PASTE_ENDS);
        // Whoever presses Ctrl-C in a paste that does not end means it.
        let broken = self.waiting.iter().position(|b| *b == 0x03).filter(|at| end.is_none_or(|end| *at < end));
        let (until, behind) = match (broken, end) {
            (Some(at), _) => (at, at),
            (None, Some(end)) => (end, end + PASTE_ENDS.len()),
            // The end may have begun.
            (None, None) => {
                let begun = (1..PASTE_ENDS.len()).rev().find(|n| self.waiting.ends_with(&PASTE_ENDS[..*n]));
                let until = self.waiting.len() - begun.unwrap_or(0);
                (until, until)
            }
        };
        let Some(paste) = &mut self.paste else { return true };
        let room = LONGEST_PASTE.saturating_sub(paste.len());
        paste.extend(self.waiting.drain(..behind).take(until.min(room)));
        if broken.is_none() && end.is_none() {
            return false;
        }
        self.paste.take().into_iter().for_each(|paste| take(pasted(paste)));
        true
    }

    fn step(&self) -> Step {
        match self.waiting.as_slice() {
            [] => Step::Waits(PATIENCE),
            [ESC, rest @ ..] => escaped(rest),
            [byte, ..] if *byte < 0x80 => Step::Taken(1, control_or_character(*byte, KeyModifiers::NONE)),
            bytes => character(bytes, KeyModifiers::NONE, 0),
        }
    }
}

fn pasted(bytes: Vec<u8>) -> TerminalEvent {
    TerminalEvent::Paste(String::from_utf8_lossy(&bytes).into_owned())
}

fn key(code: KeyCode, modifiers: KeyModifiers) -> TerminalEvent {
    KeyPress::pressed(KeyEvent::new(code, modifiers)).map_or(TerminalEvent::Resized, TerminalEvent::Key)
}

/// A byte of ASCII as a key.
fn control_or_character(byte: u8, more: KeyModifiers) -> Option<TerminalEvent> {
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
    Some(key(code, modifiers))
}

/// A character beyond ASCII, `skipped` bytes behind the beginning.
fn character(bytes: &[u8], modifiers: KeyModifiers, skipped: usize) -> Step {
    let length = match bytes.first() {
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        _ => return Step::Taken(skipped + 1, None),
    };
    let have = bytes.get(..length.min(bytes.len())).unwrap_or(bytes);
    match std::str::from_utf8(have) {
        Ok(text) => {
            let input = text.chars().next().map(|c| key(KeyCode::Char(c), modifiers));
            Step::Taken(skipped + have.len(), input)
        }
        Err(e) if e.error_len().is_none() && bytes.len() < length => Step::Waits(PATIENCE),
        Err(e) => Step::Taken(skipped + e.error_len().unwrap_or(1), None),
    }
}

/// What stands behind an ESC.
fn escaped(rest: &[u8]) -> Step {
    match rest {
        [] => Step::Waits(PATIENCE),
        [b'[', rest @ ..] => csi(rest),
        [b'O'] => Step::Waits(PATIENCE),
        [b'O', c, ..] => match keypad(*c) {
            Some(code) => Step::Taken(3, Some(key(code, KeyModifiers::NONE))),
            None => Step::Taken(2, Some(key(KeyCode::Char('O'), KeyModifiers::ALT))),
        },
        [b']', rest @ ..] => string(rest, true),
        [b'P' | b'X' | b'^' | b'_', rest @ ..] => string(rest, false),
        // The second may begin a sequence.
        [ESC, ..] => Step::Taken(1, Some(key(KeyCode::Esc, KeyModifiers::NONE))),
        [byte, ..] if *byte < 0x80 => Step::Taken(2, control_or_character(*byte, KeyModifiers::ALT)),
        rest => character(rest, KeyModifiers::ALT, 1),
    }
}

/// What stands behind `ESC [`.
fn csi(rest: &[u8]) -> Step {
    // The Linux console's function keys.
    match rest {
        [b'['] => return Step::Waits(PATIENCE),
        [b'[', c @ b'A'..=b'E', ..] => return Step::Taken(4, Some(key(KeyCode::F(c - b'A' + 1), KeyModifiers::NONE))),
        _ => {}
    }
    let Some(end) = rest.iter().position(|b| !(0x20..=0x3f).contains(b)) else {
        return if rest.len() > LONGEST { Step::Taken(rest.len() + 2, None) } else { Step::Waits(PATIENCE) };
    };
    match rest.get(end) {
        Some(last @ 0x40..=0x7e) => Step::Taken(end + 3, sequence(rest.get(..end).unwrap_or(&[]), *last)),
        // This cannot stand in a sequence: it is something of its own.
        _ => Step::Taken(end + 2, None),
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
        (64, b'M') => Some(TerminalEvent::Wheel(-3)),
        (65, b'M') => Some(TerminalEvent::Wheel(3)),
        _ => None,
    }
}

/// What stands behind the beginning of a string that BEL or `ESC \` ends.
fn string(rest: &[u8], may_answer: bool) -> Step {
    let end = rest.iter().position(|b| b.is_ascii_control());
    let text = rest.get(..end.unwrap_or(rest.len())).unwrap_or(&[]);
    let answers = may_answer && ground::begins_answer(text);
    let input = || ground::is_light(std::str::from_utf8(text).ok()?).map(TerminalEvent::Ground);
    match end.map(|end| (end, rest.get(end..).unwrap_or(&[]))) {
        Some((end, [0x07, ..])) => Step::Taken(end + 3, input().filter(|_| may_answer)),
        Some((end, [ESC, b'\\', ..])) => Step::Taken(end + 4, input().filter(|_| may_answer)),
        Some((_, [ESC])) => Step::Waits(if answers { ANSWER } else { PATIENCE }),
        // Another control character is a key, and so is what an ESC begins.
        Some((end, _)) => Step::Taken(end + 2, None),
        None if rest.len() > LONGEST => Step::Taken(rest.len() + 2, None),
        // A key behind the beginning of an answer is none of it.
        None if may_answer && !text.is_empty() && !answers => {
            let good = (0..text.len()).rev().find(|n| ground::begins_answer(&text[..*n])).unwrap_or(0);
            if good >= ground::CERTAIN { Step::Taken(good + 2, None) } else { Step::Waits(PATIENCE) }
        }
        None => Step::Waits(if answers { ANSWER } else { PATIENCE }),
    }
}

/// Read the terminal and tell what it sends, and when `resized` tells that its size changed, until it is closed or `take`
/// returns false.
pub fn read(resized: &UnixStream, mut take: impl FnMut(TerminalEvent) -> bool) -> io::Result<()> {
    let terminal = rustix::stdio::stdin();
    let mut decoder = Decoder::default();
    let mut bytes = [0; 4096];
    loop {
        let mut ready = [
            PollFd::from_borrowed_fd(terminal, PollFlags::IN),
            PollFd::from_borrowed_fd(resized.as_fd(), PollFlags::IN),
        ];
        let patience = decoder.patience();
        let limit = patience.map(|p| Timespec { tv_sec: p.as_secs() as _, tv_nsec: p.subsec_nanos().into() });
        let number = match poll(&mut ready, limit.as_ref()) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other?,
        };
        let [of_terminal, of_size] = ready.map(|fd| fd.revents());
        let mut inputs = Vec::new();
        if number == 0 {
            decoder.pause(|input| inputs.push(input));
        }
        if of_size.contains(PollFlags::IN) {
            let mut signals = [0; 64];
            rustix::io::read(resized, &mut signals)?;
            inputs.push(TerminalEvent::Resized);
        }
        if !of_terminal.is_empty() && is_background() {
            // What is typed now is the shell's.
            std::thread::sleep(PATIENCE);
        } else if !of_terminal.is_empty() {
            match rustix::io::read(terminal, &mut bytes) {
                Ok(0) => inputs.push(TerminalEvent::Closed),
                Ok(n) => decoder.feed(bytes.get(..n).unwrap_or(&[]), |input| inputs.push(input)),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(_) => inputs.push(TerminalEvent::Closed),
            }
        }
        for input in inputs {
            let closed = input == TerminalEvent::Closed;
            if !take(input) || closed {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What comes of pieces with pauses between them.
    fn inputs(pieces: &[&[u8]]) -> Vec<TerminalEvent> {
        let (mut decoder, mut all) = (Decoder::default(), Vec::new());
        for piece in pieces {
            decoder.feed(piece, |input| all.push(input));
            decoder.pause(|input| all.push(input));
        }
        all
    }

    fn keys(text: &str) -> Vec<TerminalEvent> {
        text.split_whitespace().map(|k| TerminalEvent::Key(KeyPress::parse(k).unwrap())).collect()
    }

    #[test]
    fn keys_are_keys() {
        for (bytes, expected) in [
            ("qG\r\t\x7f", "q G Enter Tab Backspace"),
            ("\x03\x15\x1a", "Ctrl-c Ctrl-u Ctrl-z"),
            ("\x1b[A\x1b[1;2D\x1b[1;5C\x1bOB", "Up Shift-Left Ctrl-Right Down"),
            ("\x1b[5~\x1b[6~\x1b[3~\x1b[H\x1b[F\x1b[1~\x1b[4~\x1b[Z", "PgUp PgDn Delete Home End Home End Shift-Tab"),
            ("\x1bx\x1b\x1b[Ax", "Alt-x Esc Up x"),
            ("µ漢\x1bé", "µ 漢 Alt-é"),
        ] {
            assert_eq!(inputs(&[bytes.as_bytes()]), keys(expected), "{bytes:?}");
            // Each byte by itself, at once.
            let (mut decoder, mut all) = (Decoder::default(), Vec::new());
            bytes.bytes().for_each(|b| decoder.feed(&[b], |input| all.push(input)));
            assert_eq!(all, keys(expected), "{bytes:?}, byte by byte");
        }
        assert_eq!(inputs(&[b"\x1b", b"q"]), keys("Esc q"));
    }

    /// crossterm 0.29 takes no key any more after some of these (`tests/upstream.rs`).
    pub const DEAFENING: [&str; 12] = [
        "\x1b[?",
        "\x1b[<",
        "\x1b[M",
        "\x1b[200~cut off",
        "\x1b[?62;",
        "\x1b[<0;1",
        "\x1b[",
        "\x1bO",
        "\x1b]",
        "\x1bP",
        "\x1b[?1;2c",
        "\x1b]11;rgb:ff",
    ];

    #[test]
    fn nothing_makes_the_keyboard_deaf() {
        for bytes in DEAFENING {
            let all = inputs(&[bytes.as_bytes(), b"q"]);
            assert_eq!(all.last(), keys("q").last(), "{bytes:?}: {all:?}");
            // Ctrl-C gets through at once.
            let (mut decoder, mut all) = (Decoder::default(), Vec::new());
            decoder.feed(bytes.as_bytes(), |input| all.push(input));
            decoder.feed(b"\x03", |input| all.push(input));
            assert!(
                all.contains(&keys("Ctrl-c")[0]) || !bytes.contains("200~") && all.last() == keys("Ctrl-c").last(),
                "{bytes:?}: {all:?}"
            );
        }
        let endless = [b"\x1b[".as_slice(), &[b'1'; 1000]].concat();
        let (mut decoder, mut all) = (Decoder::default(), Vec::new());
        decoder.feed(&endless, |input| all.push(input));
        assert!(decoder.waiting.len() <= LONGEST + 2, "{} bytes wait", decoder.waiting.len());
    }

    #[test]
    fn pastes_are_text() {
        assert_eq!(
            inputs(&[b"\x1b[200~q\x1b[A\x1b[201~x"]),
            [vec![TerminalEvent::Paste("q\x1b[A".into())], keys("x")].concat()
        );
        let (mut decoder, mut all) = (Decoder::default(), Vec::new());
        b"\x1b[200~one\x1b[201~".iter().for_each(|b| decoder.feed(&[*b], |input| all.push(input)));
        assert_eq!(all, [TerminalEvent::Paste("one".into())]);
        assert_eq!(inputs(&[b"\x1b[200~cut", b"q"]), [vec![TerminalEvent::Paste("cut".into())], keys("q")].concat());
        let long = [b"\x1b[200~".as_slice(), &vec![b'x'; 1 << 20], b"\x1b[201~q"].concat();
        let all = inputs(&[&long]);
        assert!(matches!(&all[..], [TerminalEvent::Paste(text), TerminalEvent::Key(_)] if text.len() == LONGEST_PASTE));
    }

    #[test]
    fn the_answer_is_found_among_keys() {
        for end in ["\x07", "\x1b\\"] {
            let bytes = format!("1\x1b]11;rgb:ffff/FFFF/ffff{end}q");
            assert_eq!(inputs(&[bytes.as_bytes()]), [keys("1"), vec![TerminalEvent::Ground(true)], keys("q")].concat());
        }
        assert_eq!(inputs(&[b"\x1b]11;rgb:00/00/00\x07"]), [TerminalEvent::Ground(false)]);
        // Other answers are dropped, and what was cut off; a key within it is a key.
        assert_eq!(inputs(&[b"\x1b]10;rgb:0/0/0\x07q"]), keys("q"));
        assert_eq!(inputs(&[b"\x1b]11;rgb:ffq"]), keys("q"));
    }

    #[test]
    fn the_mouse_is_told_in_cells() {
        assert_eq!(
            inputs(&[b"\x1b[<0;7;3M\x1b[<0;7;3m\x1b[<64;1;1M\x1b[<65;1;1M"]),
            [TerminalEvent::Click(6, 2), TerminalEvent::Wheel(-3), TerminalEvent::Wheel(3)]
        );
    }

    proptest! {
        #[test]
        fn a_key_after_a_pause_is_that_key(
            bytes in prop::collection::vec(prop_oneof![Just(ESC), Just(b'['), Just(b']'), Just(b'O'), any::<u8>()], 0..200),
            cuts in prop::collection::vec(0..200_usize, 0..5),
        ) {
            let (mut decoder, mut all) = (Decoder::default(), Vec::new());
            let mut from = 0;
            let mut cuts = cuts;
            cuts.sort_unstable();
            for cut in cuts.into_iter().chain([bytes.len()]) {
                let cut = cut.clamp(from, bytes.len());
                decoder.feed(&bytes[from..cut], |input| all.push(input));
                prop_assert!(decoder.waiting.len() <= LONGEST + 8);
                from = cut;
            }
            decoder.pause(|input| all.push(input));
            prop_assert_eq!(decoder.patience(), None);
            all.clear();
            decoder.feed(b"?", |input| all.push(input));
            prop_assert_eq!(all, keys("?"));
        }
    }
}
