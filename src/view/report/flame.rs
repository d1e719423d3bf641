//! The differential tree as a flame graph in SVG: frames from the top down, as wide as the time of one group, coloured
//! by the difference (red: more in slow executions, blue: less).
//!
//! In: the tree in pre-order. Out: one `svg` element, in a page as wide as the window: places and widths are parts of
//! it. Each frame is an inner `svg`, so that its text is cut at its border, and has its figures as a tooltip. A script
//! of its own fits texts to the window, makes frames zoom at a click and finds functions; the picture is complete
//! without it. Frames too narrow to be seen are left out and counted. Cost: linear in the nodes.
//! (B. Gregg, "Differential Flame Graphs", 2014; the tree itself: ALGORITHMS.md 7.2.)

use super::document::Report;
use crate::base::figure;
use crate::compare::{Comparison, DiffNode, share_of_group};
use crate::view::markup::{Escaped, shortened};
use crate::view::words;
use std::borrow::Cow;
use std::fmt::{self, Write};

/// Width in pixels of a picture alone, and of one in a page for the text that frames show before a script fits it.
const WIDTH: f64 = 1200.0;
/// Height of a frame.
const ROW: u32 = 18;
/// Height of the title.
const HEAD: u32 = 38;
/// Width of the narrowest frame that is drawn.
const NARROWEST: f64 = 0.4;
/// Width of a character of a frame's text.
const CHARACTER: f64 = 6.6;

/// The script that zooms and searches.
pub(super) const SCRIPT: &str = include_str!("flame.js");

/// The group whose time gives the widths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Widths {
    Slow,
    Fast,
}

impl Widths {
    fn of(self, node: &DiffNode) -> f64 {
        match self {
            Widths::Slow => node.slow_mean_ns,
            Widths::Fast => node.fast_mean_ns,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Widths::Slow => "slow",
            Widths::Fast => "fast",
        }
    }
}

/// A frame that is drawn.
struct Frame<'a> {
    node: &'a DiffNode,
    x: f64,
    width: f64,
}

/// The flame graph of the slow executions as a file of its own.
pub(super) fn document(report: &Report<'_>) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write(report, Widths::Slow, true, &mut out);
    out
}

/// A flame graph for a page; the page brings the script.
pub(super) fn element(report: &Report<'_>, widths: Widths) -> String {
    let mut out = format!("<p>{}</p>\n", Escaped(&title(report.comparison, widths)));
    let _ = write(report, widths, false, &mut out);
    out
}

/// The frames with their places, and how many are too narrow.
fn layout(comparison: &Comparison, widths: Widths) -> (Vec<Frame<'_>>, usize) {
    let nodes = &comparison.tree.nodes;
    let total: f64 = nodes.iter().filter(|node| node.parent.is_none()).map(|node| widths.of(node)).sum();
    let scale = if total > 0.0 { WIDTH / total } else { 0.0 };
    let mut frames = Vec::new();
    // For each node the place at which its next child begins; the last entry is that of the roots.
    let mut next = vec![0.0; nodes.len() + 1];
    for (at, node) in nodes.iter().enumerate() {
        let parent = node.parent.map_or(nodes.len(), |parent| parent as usize);
        let (x, width) = (next[parent], widths.of(node) * scale);
        next[at] = x;
        next[parent] = x + width;
        if width >= NARROWEST {
            frames.push(Frame { node, x, width });
        }
    }
    let omitted = nodes.iter().filter(|node| widths.of(node) > 0.0).count() - frames.len();
    (frames, omitted)
}

fn title(comparison: &Comparison, widths: Widths) -> String {
    let group = if widths == Widths::Slow { &comparison.slow } else { &comparison.fast };
    format!(
        "{}, {}, {} on average: width is their time, red is more and blue is less in slow executions",
        widths.name(),
        figure::plural(group.count, "execution"),
        figure::time(group.mean_ns as f64)
    )
}

fn write(report: &Report<'_>, widths: Widths, alone: bool, out: &mut String) -> fmt::Result {
    let c = report.comparison;
    let (frames, omitted) = layout(c, widths);
    let depth = frames.iter().map(|frame| frame.node.depth + 1).max().unwrap_or(0);
    let head = if alone { HEAD } else { ROW };
    let height = head + depth * ROW + ROW;
    writeln!(
        out,
        "<svg class=\"flame\" xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{height}\" \
         font-family=\"ui-monospace, monospace\" font-size=\"11\">",
        if alone { WIDTH.to_string() } else { "100%".to_owned() }
    )?;
    if alone {
        writeln!(out, "<title>{}</title>", Escaped(&c.verdict.sentence))?;
        writeln!(out, "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>")?;
    }
    if alone {
        writeln!(out, "<text x=\"2\" y=\"14\" font-size=\"12\">{}</text>", Escaped(&title(c, widths)))?;
    }
    writeln!(
        out,
        "<text class=\"search\" x=\"100%\" dx=\"-4\" y=\"{}\" text-anchor=\"end\" cursor=\"pointer\"></text>",
        head - 4
    )?;
    let largest = c.tree.nodes.iter().map(|node| node.delta_ns.abs()).fold(0.0, f64::max);
    for frame in &frames {
        write_frame(report, frame, (head, largest), out)?;
    }
    if omitted > 0 {
        let text = format!("{} too narrow to be drawn", figure::plural(omitted as u64, "frame"));
        writeln!(out, "<text x=\"2\" y=\"{}\" fill=\"#555555\">{text}</text>", height - 5)?;
    }
    if alone {
        writeln!(out, "<script><![CDATA[\n{SCRIPT}]]></script>")?;
    }
    writeln!(out, "</svg>")
}

fn write_frame(report: &Report<'_>, frame: &Frame<'_>, (head, largest): (u32, f64), out: &mut String) -> fmt::Result {
    let (node, c) = (frame.node, report.comparison);
    let name = words::frame(report.model, node.context);
    let (slow, fast) = (c.slow.count, c.fast.count);
    let figures = format!(
        "{} ({} in slow, {} in fast executions; in {} of the slow and {} of the fast ones)",
        figure::extra(node.delta_ns),
        figure::time(node.slow_mean_ns),
        figure::time(node.fast_mean_ns),
        share_of_group(node.slow_affected, slow),
        share_of_group(node.fast_affected, fast),
    );
    write!(
        out,
        "<svg class=\"frame\" x=\"{:.3}%\" y=\"{}\" width=\"{:.3}%\" height=\"{}\">\
         <title>{}\n{}</title><rect width=\"100%\" height=\"100%\" fill=\"{}\" stroke=\"#ffffff\"/>",
        100.0 * frame.x / WIDTH,
        head + node.depth * ROW,
        100.0 * frame.width / WIDTH,
        ROW,
        Escaped(&name),
        Escaped(&figures),
        colour(node.delta_ns, largest)
    )?;
    // The script shows the text of a frame that becomes wide enough.
    let hidden = if frame.width < 3.0 * CHARACTER { " visibility=\"hidden\"" } else { "" };
    writeln!(out, "<text x=\"3\" y=\"13\"{hidden}>{}</text></svg>", Escaped(&fitted(&name, frame.width)))
}

/// The name as far as the frame has room for whole letters. The script fits it again when it changes the width.
fn fitted(name: &str, width: f64) -> Cow<'_, str> {
    shortened(name, ((width - 6.0).max(0.0) / CHARACTER) as usize)
}

/// White without a difference, then the redder or bluer the larger it is.
fn colour(delta: f64, largest: f64) -> String {
    // The square root parts small differences from none.
    let strength = if largest > 0.0 { (delta.abs() / largest).min(1.0).sqrt() } else { 0.0 };
    let faded = (240.0 - 150.0 * strength).round() as u8;
    if delta > 0.0 { format!("#f0{faded:02x}{faded:02x}") } else { format!("#{faded:02x}{faded:02x}f0") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ctx::Ctx;
    use crate::compare::{ComparisonRequest, compare, scenario};

    #[test]
    fn fitted_cuts_no_letter() {
        assert_eq!(fitted("expensive_flush", 500.0), "expensive_flush");
        assert_eq!(fitted("expensive_flush", 6.0 + 5.0 * CHARACTER), "expe…");
        assert_eq!(fitted("expensive_flush", 1.0), "…");
    }

    #[test]
    fn layout_puts_children_side_by_side_inside_their_parent() {
        let model = scenario::lock_contention(5, 16.0);
        let c = compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap();
        for widths in [Widths::Slow, Widths::Fast] {
            let (frames, omitted) = layout(&c, widths);
            let drawn: usize = frames.len();
            assert_eq!(drawn + omitted, c.tree.nodes.iter().filter(|n| widths.of(n) > 0.0).count());
            for frame in &frames {
                assert!(frame.x >= 0.0 && frame.x + frame.width <= WIDTH + 0.01);
                let Some(parent) = frame.node.parent else { continue };
                let parent = frames.iter().find(|f| std::ptr::eq(f.node, &c.tree.nodes[parent as usize])).unwrap();
                assert!(frame.x >= parent.x - 0.01 && frame.x + frame.width <= parent.x + parent.width + 0.01);
            }
            for (i, a) in frames.iter().enumerate() {
                let is_beside = |b: &&Frame<'_>| b.node.depth == a.node.depth;
                for b in frames[i + 1..].iter().filter(is_beside) {
                    assert!(b.x >= a.x + a.width - 0.01, "frames of one depth do not overlap");
                }
            }
        }
    }

    #[test]
    fn colour_shows_the_direction_of_a_difference() {
        assert_eq!((colour(5.0, 5.0).as_str(), colour(-5.0, 5.0).as_str()), ("#f05a5a", "#5a5af0"));
        assert_eq!(colour(0.0, 0.0), "#f0f0f0");
    }
}
