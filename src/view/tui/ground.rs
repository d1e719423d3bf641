//! Light or dark background: the terminal is queried for its colour (OSC 11), and answers among the keys.
//!
//! In: the text of an answer. Out: light or dark. Only the first frame waits for it, a tenth of a second: over a slow line it
//! comes late, from some terminals (screen, old ones) never, and neither costs a key. `keyboard` finds it in the input.
//! So no second question is needed to detect that this one has no answer.
//!
//! ```text
//! ESC ] 1 1 ; r g b : f f f f / f f f f / f f f f BEL      (or ESC \ at the end; one to four digits each)
//! ```

use std::time::Duration;

/// The question. It ends with BEL because rxvt ends its answer as the question ends, but loses half of an `ESC \`.
pub const QUESTION: &[u8] = b"\x1b]11;?\x07";

/// The program that was left at once waits so long after the question for its answer.
pub const LATEST: Duration = Duration::from_millis(200);

/// `11;rgba:` and four times four digits with strokes between.
const LONGEST: usize = 27;

/// Length from which an answer cannot be typed input.
pub const CERTAIN: usize = 6;

/// True where an answer may begin so.
pub fn begins_answer(text: &[u8]) -> bool {
    let goes_on = |(i, byte): (usize, &u8)| match b"11;rgb".get(i) {
        Some(expected) => byte == expected,
        None => matches!(byte, b'a' | b':' | b'/') || byte.is_ascii_hexdigit(),
    };
    text.len() <= LONGEST && text.iter().enumerate().all(goes_on)
}

/// Whether `11;rgb:RR/GG/BB` is nearer to white than to black, as eyes weigh the colours (ITU-R BT.601).
pub fn is_light(answer: &str) -> Option<bool> {
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

    #[test]
    fn colours_are_weighed_as_eyes_do() {
        for (text, light) in [
            ("11;rgb:ffff/FFFF/ffff", Some(true)),
            ("11;rgb:1e1e/1e1e/2e2e", Some(false)),
            ("11;rgb:ff/ff/d7", Some(true)),
            ("11;rgba:0000/2b2b/3636/ffff", Some(false)),
            ("10;rgb:0/0/0", None),
            ("11;x", None),
            ("11;rgb:fffff/0/0", None),
            ("11;rgb:0/0", None),
            ("11;rgb:0//0", None),
            ("", None),
        ] {
            assert_eq!(is_light(text), light, "{text}");
            assert!(light.is_none() || (0..=text.len()).all(|n| begins_answer(&text.as_bytes()[..n])), "{text}");
        }
        assert!(!begins_answer(b"11;rgb:ffq") && !begins_answer(&[b'1'; 40]));
    }
}
