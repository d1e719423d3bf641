//! A function between its callers and its callees, as text: for people, and for the page of the interface.
//!
//! In: a [`Sandwich`]. Out: a sentence with what the function costs everywhere, and a row for each frame around it. The
//! command and the interface print the same rows, so that they show the same figures.

use super::page::{Page, cut};
use super::words;
use crate::base::{clean, figure};
use crate::compare::functions::{FrameLevel, Sandwich};

/// The heads of the two lists, in the order of [`lists`].
const TITLES: [&str; 2] = ["Callers, the nearest first", "Callees"];
/// The columns of a row.
pub const HEAD: &str = "     extra      slow      fast  frame";

/// A frame near the function, or several small ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameRow {
    /// Difference, slow and fast mean, indent.
    pub figures: String,
    /// The frame as drawn; empty for small ones.
    pub name: String,
    /// The small ones of this level.
    pub small: String,
}

/// What the function costs over all of its contexts.
pub fn sentence(found: &Sandwich) -> String {
    let function = &found.function;
    format!(
        "{} with all that it calls: slow {}, fast {} per execution; {} by itself; in {}",
        figure::extra(function.delta_ns),
        figure::time(function.slow_mean_ns),
        figure::time(function.fast_mean_ns),
        figure::extra(function.self_delta_ns),
        figure::plural(function.places.into(), "place")
    )
}

/// Callers and callees with their titles, indented by at most a third of this many columns.
pub fn lists(found: &Sandwich, columns: usize) -> [(&'static str, Vec<FrameRow>); 2] {
    let rows = |level: &FrameLevel| {
        let mut rows = Vec::new();
        add_level(level, 0, columns, &mut rows);
        rows
    };
    let [callers, callees] = TITLES;
    [(callers, rows(&found.callers)), (callees, rows(&found.callees))]
}

fn add_level(level: &FrameLevel, depth: usize, columns: usize, rows: &mut Vec<FrameRow>) {
    let indent = " ".repeat(depth.min(columns / 3));
    let figures = |extra: f64, slow: f64, fast: f64| {
        format!("{:>10} {:>9} {:>9}  {indent}", figure::extra(extra), figure::time(slow), figure::time(fast))
    };
    for frame in &level.frames {
        rows.push(FrameRow {
            figures: figures(frame.delta_ns(), frame.slow_mean_ns, frame.fast_mean_ns),
            name: words::frame_of_path(&frame.name).to_owned(),
            small: String::new(),
        });
        // A single frame below another one is not moved in: long chains stay readable.
        let single = frame.next.frames.len() == 1 && frame.next.small == 0;
        add_level(&frame.next, depth + usize::from(!single), columns, rows);
    }
    if level.small > 0 {
        let (slow, fast) = (level.small_slow_ns, level.small_fast_ns);
        let small = format!("\u{2026} {} below 1%", level.small);
        rows.push(FrameRow { figures: figures(slow - fast, slow, fast), name: String::new(), small });
    }
}

/// The whole as text for people.
pub fn text(found: &Sandwich, page: Page) -> String {
    let mut out = String::new();
    page.wrap(&mut out, 0, words::frame_of_path(&found.function.name));
    page.wrap(&mut out, 2, &sentence(found));
    for (title, rows) in lists(found, page.width()) {
        out.push('\n');
        page.wrap(&mut out, 0, title);
        if rows.is_empty() {
            page.wrap(&mut out, 2, "none");
            continue;
        }
        for line in std::iter::once(HEAD.to_owned()).chain(rows.iter().map(|row| row.line(page.is_ascii()))) {
            out.push_str(cut(&line, page.width()).trim_end());
            out.push('\n');
        }
    }
    out
}

impl FrameRow {
    fn line(&self, ascii: bool) -> String {
        let small = if ascii { self.small.replace('\u{2026}', "...") } else { self.small.clone() };
        format!("{}{}{small}", self.figures, clean::text(&self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ctx::Ctx;
    use crate::compare::functions::sandwich;
    use crate::compare::{ComparisonRequest, compare, scenario};
    use crate::view::page::Glyphs;

    #[test]
    fn text_has_the_function_between_callers_and_callees() {
        let model = scenario::lock_contention(5, 16.0);
        let comparison = compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap();
        let found = sandwich(&model, &comparison.tree, "expensive_flush").unwrap();
        for glyphs in [Glyphs::Unicode, Glyphs::Ascii] {
            let ascii = glyphs == Glyphs::Ascii;
            let text = text(&found, Page { width: 80, glyphs });
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(lines[0], "expensive_flush");
            assert!(lines[1].contains("with all that it calls") && text.contains("thread journal"), "{text}");
            assert!(!ascii || text.is_ascii(), "{text}");
            let callers = lines.iter().position(|line| *line == TITLES[0]).unwrap();
            assert!(lines.iter().position(|line| *line == TITLES[1]).unwrap() > callers);
        }
    }
}
