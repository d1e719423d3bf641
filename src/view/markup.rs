//! Text of a trace inside markup: HTML, SVG and Markdown.

use crate::base::clean;
use std::borrow::Cow;
use std::fmt::{self, Display, Formatter, Write};

/// A text as content or attribute of HTML and SVG. Unsafe characters are replaced: XML 1.0 has no place for control
/// characters, and invisible ones could deceive.
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'a>(pub &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c if clean::is_unsafe(c) => f.write_char('\u{fffd}')?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// A text in a Markdown line or table cell: nothing in it acts as markup.
#[derive(Clone, Copy, Debug)]
pub struct Plain<'a>(pub &'a str);

impl Display for Plain<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for c in clean::text(self.0).chars() {
            match c {
                '<' => f.write_str("&lt;")?,
                '&' => f.write_str("&amp;")?,
                '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' => write!(f, "\\{c}")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// A text between backquotes; more of them where the text contains some.
pub fn code(text: &str) -> String {
    let text = clean::text(text);
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    if longest > 0 { format!("{fence} {text} {fence}") } else { format!("{fence}{text}{fence}") }
}

/// A text of at most this many letters; `…` in place of the rest.
pub fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    if text.char_indices().nth(most).is_none() {
        return text.into();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{kept}…").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_leaves_no_markup_and_no_invisible_characters() {
        let text = Escaped("<a href=\"x\">&'\u{202e}\u{7}").to_string();
        assert_eq!(text, "&lt;a href=&quot;x&quot;&gt;&amp;&#39;\u{fffd}\u{fffd}");
    }

    #[test]
    fn plain_and_code_leave_no_markdown() {
        assert_eq!(Plain("[a](b) *c* d|e <f>").to_string(), "\\[a\\](b) \\*c\\* d\\|e &lt;f>");
        assert_eq!((code("a"), code("a`b")), ("`a`".to_owned(), "`` a`b ``".to_owned()));
    }
}
