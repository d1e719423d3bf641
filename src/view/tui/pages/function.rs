//! A function between its callers and its callees: what it costs everywhere.

use crate::base::figure;
use crate::compare::functions::{FrameLevel, Sandwich};
use crate::view::tui::theme::StyleScope;
use crate::view::tui::widget::page::{StyledLine, paragraph, plain};
use crate::view::words;

/// Its lines in this width.
pub fn lines(sandwich: &Sandwich, columns: usize) -> Vec<StyledLine> {
    let function = &sandwich.function;
    let mut lines = vec![plain(StyleScope::Strong, words::frame_of_path(&function.name).to_owned())];
    let text = format!(
        "{} with all that it calls: slow {}, fast {} per execution; {} by itself; in {}",
        figure::extra(function.delta_ns),
        figure::time(function.slow_mean_ns),
        figure::time(function.fast_mean_ns),
        figure::extra(function.self_delta_ns),
        figure::plural(function.places.into(), "place")
    );
    lines.extend(paragraph(StyleScope::Text, &text, columns, 0));
    for (title, level) in [("Callers, the nearest first", &sandwich.callers), ("Callees", &sandwich.callees)] {
        lines.push(StyledLine::new());
        lines.push(plain(StyleScope::Strong, title));
        if level.frames.is_empty() && level.small == 0 {
            lines.push(plain(StyleScope::Dim, "none"));
            continue;
        }
        lines.push(plain(StyleScope::Dim, format!("{:>10} {:>9} {:>9}  frame", "extra", "slow", "fast")));
        add_level(level, 0, columns, &mut lines);
    }
    lines
}

fn add_level(level: &FrameLevel, depth: usize, columns: usize, lines: &mut Vec<StyledLine>) {
    let indent = " ".repeat(depth.min(columns / 3));
    let figures = |extra: f64, slow: f64, fast: f64| {
        format!("{:>10} {:>9} {:>9}  {indent}", figure::extra(extra), figure::time(slow), figure::time(fast))
    };
    for frame in &level.frames {
        lines.push(vec![
            (StyleScope::Dim, figures(frame.delta_ns(), frame.slow_mean_ns, frame.fast_mean_ns)),
            (StyleScope::Text, words::frame_of_path(&frame.name).to_owned()),
        ]);
        // A single frame below another one is not moved in: long chains stay readable.
        let single = frame.next.frames.len() == 1 && frame.next.small == 0;
        add_level(&frame.next, depth + usize::from(!single), columns, lines);
    }
    if level.small > 0 {
        let (slow, fast) = (level.small_slow_ns, level.small_fast_ns);
        let text = format!("{}… {} below 1%", figures(slow - fast, slow, fast), level.small);
        lines.push(plain(StyleScope::Dim, text));
    }
}
