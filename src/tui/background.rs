//! Light or dark background: the program queries the terminal for its colour (OSC 11), and the answer comes among the
//! keys.
//!
//! In: the text of an answer. Out: [`Background`]. Nothing waits for the answer: the first frame has the colours for
//! the background that `COLORFGBG` names, else for a dark one, and later frames those for the one that was reported.
//! Over a slow line the answer comes late, from some terminals (screen, old ones) never; neither costs a key, because
//! `keyboard` finds the answer in the input whenever it comes. So no second query is needed to detect a terminal that
//! does not answer.
//!
//! ```text
//! ESC ] 1 1 ; r g b : f f f f / f f f f / f f f f BEL      (or ESC \ at the end; one to four digits each)
//! ```

use std::time::Duration;

/// The query. It ends with BEL because rxvt ends its answer as the query ends, but loses half of an `ESC \`.
pub const QUERY: &[u8] = b"\x1b]11;?\x07";

/// A program that the user quits at once still waits this long after the query for the answer.
pub const LATEST: Duration = Duration::from_millis(200);

/// `11;rgba:` and four times four digits with slashes between them.
const LONGEST: usize = 27;

/// Length from which an answer cannot be typed input.
pub const CERTAIN: usize = 6;

/// True if an answer may begin with this text.
pub fn begins_answer(text: &[u8]) -> bool {
    let continues = |(i, byte): (usize, &u8)| match b"11;rgb".get(i) {
        Some(expected) => byte == expected,
        None => matches!(byte, b'a' | b':' | b'/') || byte.is_ascii_hexdigit(),
    };
    text.len() <= LONGEST && text.iter().enumerate().all(continues)
}

/// The background of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// Nearer to white than to black.
    Light,
    /// The other.
    Dark,
}

/// The background that an answer `11;rgb:RR/GG/BB` reports; colours are weighed as eyes do (ITU-R BT.601).
pub fn of_answer(answer: &str) -> Option<Background> {
    let colours = answer.strip_prefix("11;rgb")?;
    let colours = colours.strip_prefix('a').unwrap_or(colours).strip_prefix(':')?;
    let share = |digits: &str| {
        let most = 16_u32.checked_pow(digits.len() as u32)? - 1;
        let value = u32::from_str_radix(digits, 16).ok()?;
        (1..=4).contains(&digits.len()).then(|| value * 1_000 / most)
    };
    let shares: Option<Vec<u32>> = colours.split('/').map(share).collect();
    match shares?.as_slice() {
        [red, green, blue, ..] if 299 * red + 587 * green + 114 * blue > 500 * 1_000 => Some(Background::Light),
        [_, _, _, ..] => Some(Background::Dark),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_answer_weighs_colours_as_eyes_do() {
        for (text, background) in [
            ("11;rgb:ffff/FFFF/ffff", Some(Background::Light)),
            ("11;rgb:1e1e/1e1e/2e2e", Some(Background::Dark)),
            ("11;rgb:ff/ff/d7", Some(Background::Light)),
            ("11;rgba:0000/2b2b/3636/ffff", Some(Background::Dark)),
            ("10;rgb:0/0/0", None),
            ("11;x", None),
            ("11;rgb:fffff/0/0", None),
            ("11;rgb:0/0", None),
            ("11;rgb:0//0", None),
            ("", None),
        ] {
            assert_eq!(of_answer(text), background, "{text}");
            assert!(background.is_none() || (0..=text.len()).all(|n| begins_answer(&text.as_bytes()[..n])), "{text}");
        }
        assert!(!begins_answer(b"11;rgb:ffq") && !begins_answer(&[b'1'; 40]));
    }
}
