//! Bytes to inputs, across pieces and pauses.

use super::event::TerminalEvent;
use super::sequence::{ESC, ParsedInput, key, parse};
use crossterm::event::{KeyCode, KeyModifiers};
use std::time::Duration;

/// The next bytes of a paste come within this time: a paste may be long, and the line slow.
const PASTE: Duration = Duration::from_millis(1500);
/// The longest paste that is taken, in bytes; the rest is dropped.
const LONGEST_PASTE: usize = 1 << 16;

const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

/// Bytes to inputs.
#[derive(Debug, Default)]
pub struct InputDecoder {
    waiting: Vec<u8>,
    /// A paste so far.
    paste: Option<Vec<u8>>,
}

impl InputDecoder {
    /// Decode some more bytes; `take` gets each input.
    pub fn feed(&mut self, bytes: &[u8], mut take: impl FnMut(TerminalEvent)) {
        self.waiting.extend_from_slice(bytes);
        self.decode(&mut take);
    }

    /// How long to wait for the rest of an input; `None` if no input has begun.
    pub fn patience(&self) -> Option<Duration> {
        match (&self.paste, parse(&self.waiting)) {
            (Some(_), _) => Some(PASTE),
            (None, ParsedInput::Waits(patience)) if !self.waiting.is_empty() => Some(patience),
            _ => None,
        }
    }

    /// Nothing followed in time: the input that had begun has ended.
    pub fn pause(&mut self, mut take: impl FnMut(TerminalEvent)) {
        if let Some(paste) = self.paste.take() {
            take(pasted(paste));
        }
        match std::mem::take(&mut self.waiting).as_slice() {
            [] => {}
            [ESC] => take(key(KeyCode::Esc, KeyModifiers::NONE)),
            [ESC, c @ 0x20..=0x7e] => take(key(KeyCode::Char(char::from(*c)), KeyModifiers::ALT)),
            _ => {}
        }
    }

    fn decode(&mut self, take: &mut impl FnMut(TerminalEvent)) {
        loop {
            if self.paste.is_some() {
                if !self.continue_paste(take) {
                    return;
                }
                continue;
            }
            match parse(&self.waiting) {
                ParsedInput::Taken(bytes, input) => {
                    let begins_paste = self.waiting.get(..bytes) == Some(PASTE_BEGINS);
                    self.waiting.drain(..bytes.clamp(1, self.waiting.len()));
                    if begins_paste {
                        self.paste = Some(Vec::new());
                    }
                    input.into_iter().for_each(&mut *take);
                }
                ParsedInput::Waits(_) => return,
            }
        }
    }

    /// Move the waiting bytes into the paste; false if its end has not come yet.
    fn continue_paste(&mut self, take: &mut impl FnMut(TerminalEvent)) -> bool {
        let end = memchr::memmem::find(&self.waiting, PASTE_ENDS);
        // A user who presses Ctrl-C in a paste that does not end wants to leave it.
        let interrupted = self.waiting.iter().position(|b| *b == 0x03).filter(|at| end.is_none_or(|end| *at < end));
        let (until, after) = match (interrupted, end) {
            (Some(at), _) => (at, at),
            (None, Some(end)) => (end, end + PASTE_ENDS.len()),
            // The bytes at the end may be the beginning of `PASTE_ENDS`.
            (None, None) => {
                let begun = (1..PASTE_ENDS.len()).rev().find(|n| self.waiting.ends_with(&PASTE_ENDS[..*n]));
                let until = self.waiting.len() - begun.unwrap_or(0);
                (until, until)
            }
        };
        let Some(paste) = &mut self.paste else { return true };
        let room = LONGEST_PASTE.saturating_sub(paste.len());
        paste.extend(self.waiting.drain(..after).take(until.min(room)));
        if interrupted.is_none() && end.is_none() {
            return false;
        }
        self.paste.take().into_iter().for_each(|paste| take(pasted(paste)));
        true
    }
}

fn pasted(bytes: Vec<u8>) -> TerminalEvent {
    TerminalEvent::Paste(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::super::sequence::LONGEST;
    use super::*;
    use crate::tui::background::Background;
    use crate::tui::key::KeyPress;
    use proptest::prelude::*;

    /// The inputs of some pieces with pauses between them.
    fn inputs(pieces: &[&[u8]]) -> Vec<TerminalEvent> {
        let (mut decoder, mut all) = (InputDecoder::default(), Vec::new());
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
    fn feed_decodes_keys() {
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
            let (mut decoder, mut all) = (InputDecoder::default(), Vec::new());
            bytes.bytes().for_each(|b| decoder.feed(&[b], |input| all.push(input)));
            assert_eq!(all, keys(expected), "{bytes:?}, byte by byte");
        }
        assert_eq!(inputs(&[b"\x1b", b"q"]), keys("Esc q"));
    }

    /// crossterm 0.29 takes no key after some of these (`tests/upstream.rs`).
    const UNFINISHED: [&str; 12] = [
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
    fn no_sequence_swallows_the_keys_after_it() {
        for bytes in UNFINISHED {
            let all = inputs(&[bytes.as_bytes(), b"q"]);
            assert_eq!(all.last(), keys("q").last(), "{bytes:?}: {all:?}");
            // Ctrl-C gets through at once.
            let (mut decoder, mut all) = (InputDecoder::default(), Vec::new());
            decoder.feed(bytes.as_bytes(), |input| all.push(input));
            decoder.feed(b"\x03", |input| all.push(input));
            assert!(
                all.contains(&keys("Ctrl-c")[0]) || !bytes.contains("200~") && all.last() == keys("Ctrl-c").last(),
                "{bytes:?}: {all:?}"
            );
        }
        let endless = [b"\x1b[".as_slice(), &[b'1'; 1000]].concat();
        let (mut decoder, mut all) = (InputDecoder::default(), Vec::new());
        decoder.feed(&endless, |input| all.push(input));
        assert!(decoder.waiting.len() <= LONGEST + 2, "{} bytes wait", decoder.waiting.len());
    }

    #[test]
    fn feed_decodes_pastes_as_text() {
        assert_eq!(
            inputs(&[b"\x1b[200~q\x1b[A\x1b[201~x"]),
            [vec![TerminalEvent::Paste("q\x1b[A".into())], keys("x")].concat()
        );
        let (mut decoder, mut all) = (InputDecoder::default(), Vec::new());
        b"\x1b[200~one\x1b[201~".iter().for_each(|b| decoder.feed(&[*b], |input| all.push(input)));
        assert_eq!(all, [TerminalEvent::Paste("one".into())]);
        assert_eq!(inputs(&[b"\x1b[200~cut", b"q"]), [vec![TerminalEvent::Paste("cut".into())], keys("q")].concat());
        let long = [b"\x1b[200~".as_slice(), &vec![b'x'; 1 << 20], b"\x1b[201~q"].concat();
        let all = inputs(&[&long]);
        assert!(matches!(&all[..], [TerminalEvent::Paste(text), TerminalEvent::Key(_)] if text.len() == LONGEST_PASTE));
    }

    #[test]
    fn feed_finds_the_answer_about_the_background_among_keys() {
        for end in ["\x07", "\x1b\\"] {
            let bytes = format!("1\x1b]11;rgb:ffff/FFFF/ffff{end}q");
            assert_eq!(
                inputs(&[bytes.as_bytes()]),
                [keys("1"), vec![TerminalEvent::Background(Background::Light)], keys("q")].concat()
            );
        }
        assert_eq!(inputs(&[b"\x1b]11;rgb:00/00/00\x07"]), [TerminalEvent::Background(Background::Dark)]);
        // Other answers are dropped, and so is an answer that was cut off; a key within it is a key.
        assert_eq!(inputs(&[b"\x1b]10;rgb:0/0/0\x07q"]), keys("q"));
        assert_eq!(inputs(&[b"\x1b]11;rgb:ffq"]), keys("q"));
    }

    #[test]
    fn feed_decodes_the_mouse() {
        assert_eq!(
            inputs(&[b"\x1b[<0;7;3M\x1b[<32;9;3M\x1b[<35;9;4M\x1b[<0;9;3m\x1b[<64;1;1M\x1b[<65;1;1M"]),
            [TerminalEvent::Click(6, 2), TerminalEvent::Drag(8, 2), TerminalEvent::Wheel(-3), TerminalEvent::Wheel(3)]
        );
    }

    proptest! {
        #[test]
        fn a_key_after_a_pause_is_that_key(
            bytes in prop::collection::vec(
                prop_oneof![Just(ESC), Just(b'['), Just(b']'), Just(b'O'), any::<u8>()],
                0..200
            ),
            cuts in prop::collection::vec(0..200_usize, 0..5),
        ) {
            let (mut decoder, mut all) = (InputDecoder::default(), Vec::new());
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
