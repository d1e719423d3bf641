//! The page that a text is for: its width, and the characters that it may have.

use crate::base::clean;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Narrowest page.
pub(super) const NARROWEST: usize = 40;

/// The characters of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Glyphs {
    /// Bars and arrows of Unicode.
    #[default]
    Unicode,
    /// Only ASCII.
    Ascii,
    /// Words alone, for screen readers: no bars, no arrows, no columns.
    Words,
}

/// The page that text is written to.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Columns.
    pub width: usize,
    pub glyphs: Glyphs,
}

impl Page {
    pub(super) fn width(&self) -> usize {
        self.width.max(NARROWEST)
    }

    /// True without Unicode.
    pub(super) fn is_ascii(&self) -> bool {
        self.glyphs != Glyphs::Unicode
    }

    /// A bar of `share` of `columns`.
    pub(super) fn bar(&self, share: f64, columns: usize) -> String {
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        if self.is_ascii() {
            return "#".repeat((share * columns as f64).round() as usize);
        }
        let eighths = (share * columns as f64 * 8.0).round() as usize;
        let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
        format!("{}{part}", "█".repeat(eighths / 8))
    }

    /// Wrap words into lines of the page's width, each indented by `indent` spaces.
    pub(super) fn wrap(&self, out: &mut String, indent: usize, text: &str) {
        let available = self.width().saturating_sub(indent).max(1);
        let mut used = 0;
        for word in clean::text(text).split_whitespace() {
            let size = word.width();
            if used > 0 && used + 1 + size > available {
                out.push('\n');
                used = 0;
            }
            if used == 0 {
                out.push_str(&" ".repeat(indent));
            } else {
                out.push(' ');
                used += 1;
            }
            let fits = cut(word, available);
            used += fits.width();
            out.push_str(&fits);
        }
        out.push('\n');
    }
}

/// The beginning of a text that fits `columns`.
pub(super) fn cut(text: &str, columns: usize) -> String {
    let mut used = 0;
    text.chars()
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= columns
        })
        .collect()
}

/// The end of a text that fits `columns`, after a mark: the end of a path says more than its beginning.
pub(super) fn cut_front(text: &str, columns: usize, ascii: bool) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mark = if ascii { "..." } else { "…" };
    let mut room = columns.saturating_sub(mark.width());
    let fits = |c: &char| room.checked_sub(c.width().unwrap_or(0)).map(|rest| room = rest).is_some();
    let mut kept: Vec<char> = text.chars().rev().take_while(fits).collect();
    kept.reverse();
    cut(&format!("{mark}{}", kept.into_iter().collect::<String>()), columns)
}

pub(super) fn sparkline(counts: &[u32], ascii: bool) -> String {
    let levels: &[char] = if ascii {
        &[' ', '.', ':', '-', '=', '#']
    } else {
        &[' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']
    };
    let most = counts.iter().copied().max().unwrap_or(0).max(1) as usize;
    counts.iter().map(|n| levels[(*n as usize * (levels.len() - 1)).div_ceil(most)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_front_keeps_the_end_and_says_so() {
        let path = "/var/traces/lock";
        assert_eq!(cut_front(path, 16, false), path);
        assert_eq!(cut_front(path, 10, false), "…aces/lock");
        assert_eq!(cut_front(path, 10, true), "...es/lock");
        // A wide character that does not fit whole is left out.
        assert_eq!(cut_front("a漢字", 4, false), "…字");
        assert_eq!((cut_front(path, 2, true).as_str(), cut_front(path, 0, false).as_str()), ("..", ""));
    }
}
