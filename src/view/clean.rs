//! Text from traces without anything that a terminal would obey.
//!
//! In: any text. Out: the same text with a visible mark in place of control characters (C0, DEL, C1) and of the
//! invisible characters that reorder or hide their neighbours. Borrowed where nothing had to change, which is nearly
//! always.

use std::borrow::Cow;

fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The text with `\u{fffd}` for each harmful character.
pub fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_harmful) {
        Cow::Owned(text.chars().map(|c| if is_harmful(c) { '\u{fffd}' } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        assert_eq!(clean("a\x1b[31mb\u{9b}c\u{202e}d\n"), "a\u{fffd}[31mb\u{fffd}c\u{fffd}d\u{fffd}");
        assert!(matches!(clean("漢字 µs"), Cow::Borrowed(_)));
    }
}
