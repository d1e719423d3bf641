//! The differential tree as an icicle: a line for each level, below a box the boxes of what it calls.
//!
//! In: the tree that is shown and a width. Out: boxes. A box is as wide as the slow group's mean time there, in
//! relation to that of all roots; siblings are in the order of their names, so that they do not jump. Its bar is that
//! of the other drawing: shaded what both groups have, full the extra of the slow one, in the colour of the difference
//! (ALGORITHMS.md 7.3). What is narrower than a column has no box, and nothing below it has: the cost is that of the
//! boxes on the screen and of their siblings. The layout makes them ([`lay_out`]); keys, the mouse and drawing read
//! them from the frame.

use super::figures::{figures, part_of};
use super::state::{Cursor, Icicle};
use crate::compare::{Comparison, DiffTree};
use crate::model::Model;
use crate::tui::app::App;
use crate::tui::canvas::Canvas;
use crate::tui::frame::IcicleBox;
use crate::tui::pane::Pane;
use crate::tui::theme::{StyleScope, Theme};
use crate::tui::tree::children;
use crate::view::words;

/// Columns from which a pane has space for it.
pub const WIDE: u16 = 60;

/// The boxes of the subtrees of these nodes in so many columns, parents before children.
fn boxes(tree: &DiffTree, roots: &[u32], columns: usize) -> Vec<IcicleBox> {
    let mean = |at: u32| tree.nodes.get(at as usize).map_or(0.0, |node| node.slow_mean_ns.max(0.0));
    let whole: f64 = roots.iter().map(|at| mean(*at)).sum();
    let column = |ns: f64| if whole > 0.0 { (ns / whole * columns as f64).round() as usize } else { 0 };
    let mut found = Vec::new();
    // Nodes with their level and with where they begin.
    let mut open = Vec::new();
    let mut put = |open: &mut Vec<(u32, usize, f64)>, siblings: &mut dyn Iterator<Item = u32>, level, from: f64| {
        let mut from = from;
        for node in siblings {
            let (x, end) = (column(from), column(from + mean(node)));
            if end > x {
                found.push(IcicleBox { node, level, x, columns: end - x });
                open.push((node, level, from));
            }
            from += mean(node);
        }
    };
    put(&mut open, &mut roots.iter().copied(), 0, 0.0);
    while let Some((node, level, from)) = open.pop() {
        put(&mut open, &mut children(tree, Some(node)), level + 1, from);
    }
    found
}

/// The boxes of the tree that is shown, in a pane of this width; none where it is drawn as rows.
pub fn lay_out(app: &App, width: u16) -> Vec<IcicleBox> {
    let shown = app.shown_tree().filter(|_| app.tree.icicle.is_some());
    shown.map_or_else(Vec::new, |(model, comparison)| {
        let roots = app.tree.rows.roots(&model, &comparison.tree);
        boxes(&comparison.tree, &roots, usize::from(width).saturating_sub(1))
    })
}

/// Draw the tree as an icicle, or as rows again.
pub fn toggle(app: &mut App) {
    let node = app.node().map(|(at, node)| (at, node.context));
    if app.tree.icicle.take().is_some() {
        if let (Some((at, _)), Some((model, comparison))) = (node, app.shown_tree()) {
            app.tree.cursor = Cursor::Row(app.tree.rows.reveal(at, &model, &comparison.tree));
        }
        return;
    }
    if app.frame.inside(Pane::Tree).width < WIDE {
        return app.say(format!("an icicle needs {WIDE} columns; z shows one pane alone"));
    }
    app.tree.icicle = Some(Icicle::new(node.map(|(_, context)| context)));
    app.say("a box is as wide as its time in the slow group; Enter zooms in, - out, |: rows");
}

/// Levels of the icicle, and a line that says what is under the cursor.
pub fn lines(boxes: &[IcicleBox]) -> usize {
    boxes.iter().map(|shown| shown.level + 2).max().unwrap_or(0)
}

/// Move by levels; negative is up. Returns by how many it would have gone up from a root.
pub fn vertical(app: &mut App, by: isize) -> usize {
    let Some((model, comparison)) = app.shown_tree() else { return 0 };
    let tree = &comparison.tree;
    let roots = app.tree.rows.roots(&model, tree);
    for step in 0..by.unsigned_abs() {
        let Some((here, node)) = app.node().map(|(at, node)| (at, node.clone())) else { return 0 };
        let next = if by < 0 {
            if roots.contains(&here) {
                return by.unsigned_abs() - step;
            }
            node.parent
        } else {
            let below = app.frame.icicle.iter().filter(|shown| tree.nodes[shown.node as usize].parent == Some(here));
            below.max_by_key(|shown| (shown.columns, std::cmp::Reverse(shown.x))).map(|shown| shown.node)
        };
        let Some(next) = next else { return 0 };
        put(app, tree, next);
    }
    0
}

/// Move to the box beside it on the same level.
pub fn sideways(app: &mut App, by: isize) {
    let (Some((_, comparison)), Some((here, _))) = (app.shown_tree(), app.node()) else { return };
    let all = &app.frame.icicle;
    let Some(own) = all.iter().find(|shown| shown.node == here) else { return };
    let beside = all.iter().filter(|shown| shown.level == own.level);
    let next = if by < 0 {
        beside.filter(|shown| shown.x < own.x).max_by_key(|shown| shown.x)
    } else {
        beside.filter(|shown| shown.x > own.x).min_by_key(|shown| shown.x)
    };
    if let Some(next) = next.map(|next| next.node) {
        put(app, &comparison.tree, next);
    }
}

fn put(app: &mut App, tree: &DiffTree, node: u32) {
    if let (Some(icicle), Some(node)) = (&mut app.tree.icicle, tree.nodes.get(node as usize)) {
        icicle.at = Some(node.context);
    }
}

/// Put the cursor of the icicle, where there is one, on a node.
pub fn put_on(app: &mut App, node: u32) {
    if let Some((_, comparison)) = app.shown_tree() {
        put(app, &comparison.tree, node);
    }
}

/// Put the cursor on the box at a column of a line below the tree's head; false where there is none.
pub fn click(app: &mut App, line: usize, column: usize) -> bool {
    let (Some((_, comparison)), Some(icicle)) = (app.shown_tree(), &app.tree.icicle) else { return false };
    let level = icicle.offset + line;
    let is_hit = |shown: &&IcicleBox| shown.level == level && (shown.x + 1..=shown.x + shown.columns).contains(&column);
    let Some(hit) = app.frame.icicle.iter().find(is_hit).map(|hit| hit.node) else { return false };
    put(app, &comparison.tree, hit);
    true
}

/// Scroll so that the box under the cursor is visible.
pub fn scroll(app: &mut App) {
    let levels = app.frame.tree.rows.saturating_sub(1).max(1);
    let here = app.node().map(|(at, _)| at);
    let level = app.frame.icicle.iter().find(|shown| Some(shown.node) == here).map_or(0, |shown| shown.level);
    if let Some(icicle) = &mut app.tree.icicle {
        icicle.offset = icicle.offset.clamp(level.saturating_sub(levels - 1), level);
    }
}

/// Draw it into so many lines from `top` on.
pub fn draw(canvas: &mut Canvas<'_>, app: &App, (top, lines): (usize, usize)) {
    let (Some((model, comparison)), Some(icicle)) = (app.shown_tree(), &app.tree.icicle) else { return };
    let tree = &comparison.tree;
    let here = app.node().map(|(at, _)| at).filter(|_| matches!(app.tree.cursor, Cursor::Row(_)));
    let levels = lines.saturating_sub(1);
    for shown in app.frame.icicle.iter().copied() {
        let Some(line) = shown.level.checked_sub(icicle.offset).filter(|line| *line < levels) else { continue };
        let is_here = app.pane == Pane::Tree && here == Some(shown.node);
        draw_box(canvas, app, (&model, &comparison), shown, top + line, is_here);
    }
    if let (Some(node), true) = (here.and_then(|at| tree.nodes.get(at as usize)), levels > 0) {
        let caption = format!("{}: {}", words::frame(&model, node.context), figures(app, node));
        canvas.text(1, top + lines - 1, &caption, StyleScope::Text);
    }
}

fn draw_box(
    canvas: &mut Canvas<'_>,
    app: &App,
    (model, comparison): (&Model, &Comparison),
    shown: IcicleBox,
    y: usize,
    is_here: bool,
) {
    let Some(node) = comparison.tree.nodes.get(shown.node as usize) else { return };
    let scope = Theme::of_difference(node.deviations, part_of(node.delta_ns, comparison.extra_ns as f64));
    let (x, inner) = (shown.x + 1, shown.columns.saturating_sub(1));
    let is_marked = app.tree.marked.nodes.binary_search(&shown.node).is_ok();
    canvas.text(x, y, if is_marked { "●" } else { "│" }, if is_marked { StyleScope::Slow3 } else { StyleScope::Rule });
    if inner > 0 && node.slow_mean_ns > 0.0 {
        canvas.compared_bar(x + 1, y, inner, 1.0, (node.fast_mean_ns / node.slow_mean_ns).min(1.0), scope);
        let name = words::frame(model, node.context);
        let style = if app.tree.search.is_in(&name) { StyleScope::Match } else { StyleScope::Text };
        if inner > 2 {
            canvas.text_in(x + 1, y, inner, &format!("{name} "), style);
        }
    }
    if is_here {
        canvas.shade(x, y, shown.columns, StyleScope::Cursor);
        canvas.text(x, y, "▌", StyleScope::Selection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::DiffNode;
    use crate::model::context::ContextId;

    fn node(parent: Option<u32>, slow_mean_ns: f64) -> DiffNode {
        DiffNode {
            context: ContextId::at(0),
            parent,
            size: 1,
            depth: 0,
            slow_mean_ns,
            fast_mean_ns: 0.0,
            delta_ns: 0.0,
            self_delta_ns: 0.0,
            deviations: None,
            p_value: None,
            slow_affected: 1.0,
            fast_affected: 1.0,
        }
    }

    /// A random tree in pre-order; children have at most the time of their parent.
    fn random(seed: u64) -> DiffTree {
        let mut random = crate::base::statistics::Random::new(seed);
        let mut nodes: Vec<DiffNode> = Vec::new();
        let mut open: Vec<(Option<u32>, f64, usize)> = vec![(None, 1e6, 0), (None, 3e5, 0)];
        while let Some((parent, ns, level)) = open.pop() {
            let at = nodes.len() as u32;
            nodes.push(node(parent, ns));
            let mut left = ns;
            for _ in 0..random.below(4).min(7 - level.min(7)) {
                let part = left * random.below(100) as f64 / 100.0;
                left -= part;
                open.push((Some(at), part, level + 1));
            }
        }
        for at in (0..nodes.len()).rev() {
            if let Some(parent) = nodes[at].parent {
                nodes[parent as usize].size += nodes[at].size;
            }
        }
        DiffTree { nodes }
    }

    #[test]
    fn boxes_lie_below_their_parents_and_do_not_overlap() {
        for seed in 0..200 {
            let tree = random(seed);
            let columns = 20 + (seed as usize * 7) % 200;
            let roots: Vec<u32> = children(&tree, None).collect();
            let all = boxes(&tree, &roots, columns);
            let roots_have: usize = all.iter().filter(|shown| shown.level == 0).map(|shown| shown.columns).sum();
            assert_eq!(roots_have, columns);
            for (at, shown) in all.iter().enumerate() {
                let own = shown.x..shown.x + shown.columns;
                let beside = all.iter().skip(at + 1).filter(|other| other.level == shown.level);
                for other in beside {
                    assert!(other.x >= own.end || other.x + other.columns <= own.start, "{shown:?} {other:?}");
                }
                if let Some(parent) = tree.nodes[shown.node as usize].parent {
                    let above = all.iter().find(|other| other.node == parent).unwrap();
                    assert_eq!(above.level + 1, shown.level);
                    assert!(above.x <= own.start && own.end <= above.x + above.columns, "{above:?} {shown:?}");
                }
            }
        }
    }
}
