//! Text from a trace is untrusted: nothing in it may steer a terminal or deceive a reader.
//!
//! Control characters (C0, DEL, C1), line and paragraph separators, bidirectional overrides and characters without
//! width are written as escapes. All that is drawn, printed or put in JSON goes through here.

use std::borrow::Cow;

/// True for characters that may not reach a terminal as they are.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
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

/// One line for a message: line breaks become spaces, the rest is escaped.
pub fn line(raw: &str) -> String {
    text(&raw.split(['\n', '\r']).map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join(" ")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_a_terminal() {
        assert_eq!(text("worker-1 é 漢"), "worker-1 é 漢");
        assert_eq!(text("\u{1b}[2J\u{7}\u{7f}\u{9b}x"), "\\x1b[2J\\x07\\x7f\\x9bx");
        assert_eq!(text("a\u{202e}b\u{200b}c\u{2066}"), "a\\u{202e}b\\u{200b}c\\u{2066}");
        assert_eq!(line("one\n  two\u{1b}"), "one two\\x1b");
    }
}
