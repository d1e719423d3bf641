//! Text from a trace is untrusted: nothing in it may steer a terminal or deceive a reader.
//!
//! Control characters (C0, DEL, C1), line and paragraph separators, and all that Unicode knows as invisible or as
//! steering the direction of text are written as escapes. All that is drawn, printed or put in JSON goes through here.

use std::borrow::Cow;

/// Characters that are not seen, or change how others are: General_Category Cf, Default_Ignorable_Code_Point and
/// Bidi_Control (Unicode 16), with the separators of lines and paragraphs. First and last of each run, ascending.
const INVISIBLE: [(char, char); 25] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
];

/// True for characters that may not reach a terminal as they are.
pub fn is_unsafe(c: char) -> bool {
    // Most text is ASCII.
    if c < INVISIBLE[0].0 {
        return c.is_control();
    }
    let run = INVISIBLE.partition_point(|(first, _)| *first <= c);
    run.checked_sub(1).and_then(|run| INVISIBLE.get(run)).is_some_and(|(_, last)| c <= *last)
}

/// The most of a quoted piece of text that a message repeats, in characters.
const QUOTED: usize = 200;

/// A message whose quotations (between backquotes) and words are cut if they are too long to read; paths are not.
fn short(message: &str) -> Cow<'_, str> {
    if message.len() <= QUOTED {
        return Cow::Borrowed(message);
    }
    let cut = |piece: &str| match piece.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}...", &piece[..end]),
        None => piece.to_owned(),
    };
    let word = |word: &str| if word.contains('/') { word.to_owned() } else { cut(word) };
    let piece = |(i, piece): (usize, &str)| match i % 2 {
        1 => cut(piece),
        _ => piece.split(' ').map(word).collect::<Vec<_>>().join(" "),
    };
    Cow::Owned(message.split('`').enumerate().map(piece).collect::<Vec<_>>().join("`"))
}

/// The same text with unsafe characters escaped (`\x1b`, `\u{202e}`); borrowed when there are none.
pub fn text(raw: &str) -> Cow<'_, str> {
    if !raw.contains(is_unsafe) {
        return Cow::Borrowed(raw);
    }
    let mut clean = String::with_capacity(raw.len() + 8);
    for c in raw.chars() {
        match c {
            c if !is_unsafe(c) => clean.push(c),
            '\n' => clean.push_str("\\n"),
            '\t' => clean.push_str("\\t"),
            c if u32::from(c) < 0x100 => clean.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => clean.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
        }
    }
    Cow::Owned(clean)
}

/// [`text`] as a string of its own.
pub fn owned(raw: &str) -> String {
    text(raw).into_owned()
}

/// One line for a message: line breaks become spaces, the rest is escaped, long quotations are cut.
pub fn line(raw: &str) -> String {
    let raw = short(raw);
    text(&raw.split(['\n', '\r']).map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join(" ")).into_owned()
}

#[cfg(test)]
mod tests {
    use crate::base::clean::*;

    #[test]
    fn the_table_is_what_unicode_says() {
        use regex_syntax::hir::{Class, HirKind};
        let classes = r"[\p{Cf}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\p{Cc}\p{Zl}\p{Zp}]";
        let HirKind::Class(Class::Unicode(class)) = regex_syntax::parse(classes).unwrap().into_kind() else { panic!() };
        let is_listed = |c: char| class.iter().any(|run| (run.start()..=run.end()).contains(&c));
        for c in '\0'..=char::MAX {
            assert_eq!(is_unsafe(c), is_listed(c), "U+{:04X}", u32::from(c));
        }
    }

    #[test]
    fn a_long_quotation_is_cut_and_a_long_path_is_not() {
        let long = "x".repeat(5000);
        assert_eq!(
            line(&format!("/{long}: no type `{long}` here")),
            format!("/{long}: no type `{}...` here", "x".repeat(200))
        );
    }

    #[test]
    fn nothing_steers_a_terminal() {
        assert_eq!(text("worker-1 é 漢"), "worker-1 é 漢");
        assert_eq!(text("\u{1b}[2J\u{7}\u{7f}\u{9b}x"), "\\x1b[2J\\x07\\x7f\\x9bx");
        assert_eq!(text("a\u{202e}b\u{200b}c\u{2066}"), "a\\u{202e}b\\u{200b}c\\u{2066}");
        assert_eq!(line("one\n  two\u{1b}"), "one two\\x1b");
    }
}
