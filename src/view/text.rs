//! A comparison as text for people: the verdict first, then the ranked causes; `diff` adds histograms and the tree.
//!
//! Fits any width from 40 columns on: sentences are wrapped, tree lines cut at the right. Bars and marks exist in
//! ASCII and in Unicode. Texts from traces are cleaned of control characters.

use super::diff_parts::DiffParts;
use super::json::largest;
use super::page::{Glyphs, Page, cut, sparkline};
use super::{choice_text, execution_text, function_text, heat_map, profile_text, words};
use crate::base::demangle::abbreviated;
use crate::base::{clean, figure};
use crate::compare::arranged::ArrangedTree;
use crate::compare::functions::by_function;
use crate::compare::members::{binned, sorted_present};
use crate::compare::ranks::{self, GroupMeans, RankComparison, RegionRow};
use crate::compare::{Cause, Comparison, DiffNode, GroupsOrigin, share_of_group};
use crate::model::Model;
use crate::model::execution::ExecutionId;
use crate::model::histogram::Bins;
use crate::model::metric::{Column, Metric};
use crate::model::weights::KeptNumbers;
use std::borrow::Cow;
use unicode_width::UnicodeWidthStr;

/// Nodes of the tree shown, at most.
const TREE_LINES: usize = 60;
/// Functions shown, at most.
const FUNCTION_LINES: usize = 12;
/// Ranked causes.
pub fn explain(model: &Model, c: &Comparison, page: Page) -> String {
    let mut out = String::new();
    head(model, c, page, &mut out);
    if let Some(choice) = model.choice.as_ref().filter(|choice| choice.is_open()) {
        choice_text::table(choice, page, &mut out);
    }
    causes(model, c, page, &mut out);
    if !c.kinds.is_empty() {
        out.push_str("\nKinds of slow executions\n");
        for kind in &c.kinds {
            page.wrap(&mut out, 2, &kind.sentence);
        }
    }
    if model.profile.is_some() {
        profile_text::places(c, page, &mut out);
    } else if !c.dimensions.is_empty() {
        out.push_str("\nAlso different\n");
        for d in &c.dimensions {
            let slow = share_of_group(d.slow_share, c.slow.count);
            let fast = share_of_group(d.fast_share, c.fast.count);
            page.wrap(
                &mut out,
                2,
                &format!("{} {}: {slow} of the slow, {fast} of the fast executions", d.name, d.value),
            );
        }
    }
    notes(c, page, &mut out);
    out
}

/// Groups, histograms, differential tree, causes; or of two executions or one function alone, where these were asked
/// for.
pub fn diff(model: &Model, c: &Comparison, parts: &DiffParts<'_>, page: Page) -> String {
    if let Some((aligned, calls)) = parts.aligned {
        return execution_text::executions(model, aligned, calls, page);
    }
    let mut out = String::new();
    head(model, c, page, &mut out);
    if let Some(function) = parts.function {
        return out + "\n" + &function_text::text(function, page);
    }
    out.push('\n');
    page.wrap(
        &mut out,
        0,
        "Metrics: distribution of the fast and of the slow group, from the smallest to the largest value",
    );
    for column in model.executions.columns.iter().filter(|column| column.metric != Metric::Weight) {
        histogram(model, c, column, page, &mut out);
    }
    if let Some(map) = parts.heat_map {
        out.push('\n');
        heat_map::text(map, page, &mut out);
    }
    if let Some(found) = ranks::ranks(model, c) {
        ranks_side_by_side(&found, page, &mut out);
    }
    match parts.inverted {
        Some(inverted) => {
            out.push('\n');
            let cut = if inverted.truncated { "; the farthest callers are left out" } else { "" };
            page.wrap(&mut out, 0, &format!("Callees first: own time of each frame, its callers below it{cut}"));
            tree(&inverted.model, &inverted.comparison, page, &mut out);
            hidden(inverted, page, &mut out);
        }
        None => match parts.arranged {
            Some(arranged) => {
                tree(&arranged.model, &arranged.comparison, page, &mut out);
                hidden(arranged, page, &mut out);
            }
            None => tree(model, c, page, &mut out),
        },
    }
    functions(model, c, page, &mut out);
    causes(model, c, page, &mut out);
    notes(c, page, &mut out);
    out
}

/// Regions shown of all ranks, and by role, at most.
const REGIONS: usize = 15;

/// The iterations of MPI runs by region and rank role, and by number.
fn ranks_side_by_side(found: &RankComparison, page: Page, out: &mut String) {
    let time = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), |ns| figure::time(ns as f64));
    let row = |means: &GroupMeans, of: &str, out: &mut String| {
        let delta = means.delta_ns().map_or_else(|| "-".to_owned(), |ns| figure::extra(ns as f64));
        let (slow, fast) = (time(means.slow_ns), time(means.fast_ns));
        let line = format!("{delta:>11}{slow:>12}{fast:>12}   {}", clean::line(of));
        out.push_str(cut(&line, page.width()).trim_end());
        out.push('\n');
    };
    let (of_all, by_role): (Vec<&RegionRow>, Vec<&RegionRow>) = found.regions.iter().partition(|r| r.role.is_none());
    for (rows, title) in [(of_all, "region, of all ranks"), (by_role, "region and role of the rank")] {
        out.push_str(&format!("\n Difference   slow mean   fast mean   per iteration, by {title}\n"));
        for r in rows.iter().take(REGIONS) {
            let role = r.role.as_ref().map_or_else(String::new, |role| format!(", {role}"));
            row(&r.means, &format!("{}{role}", r.region), out);
        }
        if rows.len() > REGIONS {
            out.push_str(&format!("  {} more are in --json\n", rows.len() - REGIONS));
        }
    }
    out.push_str("\n Difference   slow mean   fast mean   length of iterations\n");
    for r in &found.iterations {
        let of = if r.first == r.last { r.first.to_string() } else { format!("{} to {}", r.first, r.last) };
        row(&r.means, &of, out);
    }
}

fn head(model: &Model, c: &Comparison, page: Page, out: &mut String) {
    for missing in model.notices.asking().sentences() {
        page.wrap(out, 0, &format!("note: {missing}"));
        out.push('\n');
    }
    page.wrap(out, 0, &c.verdict.sentence);
    out.push('\n');
    if let Some(delays) = &c.verdict.delays {
        page.wrap(out, 0, delays);
        out.push('\n');
    }
    if let Some(profile) = &model.profile {
        return profile_text::head(model, profile, c, page, out);
    }
    let task = model.tasks.get(model.task).map_or("", |t| t);
    let how = match c.verdict.groups {
        GroupsOrigin::Given => "",
        GroupsOrigin::Gap => ", split at the largest gap in duration",
        GroupsOrigin::Valley => ", split between two peaks of duration",
        GroupsOrigin::Percentile => ", the slowest against the faster half",
        GroupsOrigin::Trace => ", one trace against the other",
        GroupsOrigin::All => "",
    };
    let executions = figure::plural(model.executions.count(), "execution");
    page.wrap(out, 0, &format!("{task}: {executions}{how}"));
    if let Some(kept) = KeptNumbers::of(&model.executions) {
        page.wrap(out, 2, &kept.words());
    }
    if c.verdict.groups == GroupsOrigin::All {
        page.wrap(out, 2, &format!("all: {}, without a group to compare with", words::durations(&c.slow)));
        return;
    }
    for (name, g) in [("slow", &c.slow), ("fast", &c.fast)] {
        let filters: Vec<String> = g.filters.iter().map(words::filter_in_short).collect();
        let (count, of) = (figure::count(g.count), figure::count(model.executions.count()));
        page.wrap(out, 2, &format!("{name}: {count} of {of}, {} ({})", words::durations(g), filters.join(", ")));
    }
}

fn causes(model: &Model, c: &Comparison, page: Page, out: &mut String) {
    let arrow = match page.glyphs {
        Glyphs::Unicode => " › ",
        Glyphs::Ascii => " > ",
        Glyphs::Words => ", ",
    };
    out.push('\n');
    let extra = figure::time(c.extra_ns as f64);
    let title = match (&model.profile, c.verdict.groups) {
        (Some(profile), _) => profile_text::title(profile, c),
        (None, GroupsOrigin::All) => format!("Where the {extra} of an execution went"),
        (None, _) => format!("Causes of the {extra} by which slow executions are slower"),
    };
    page.wrap(out, 0, &title);
    let most = c.causes.iter().map(|c| c.share.abs()).fold(0.0, f64::max);
    for cause in &c.causes {
        if page.glyphs == Glyphs::Words {
            page.wrap(out, 0, &heading(model, c, cause));
        } else {
            out.push_str(cut(&row(model, c, cause, most, page), page.width()).trim_end());
            out.push('\n');
        }
        page.wrap(out, 4, &cause.sentence);
        if !cause.path.is_empty() {
            let path: Vec<Cow<'_, str>> =
                cause.path.iter().map(|frame| abbreviated(words::frame_of_path(frame))).collect();
            let title = if page.glyphs == Glyphs::Words { "Path: " } else { "" };
            page.wrap(out, 4, &format!("{title}{}", path.join(arrow)));
        }
        if let Some(text) = significance(cause.deviations, cause.p_value) {
            page.wrap(out, 4, &text);
        }
    }
}

/// The figures of a cause as a row with a bar; a bar of full length is `most`.
fn row(model: &Model, c: &Comparison, cause: &Cause, most: f64, page: Page) -> String {
    let rank = cause.rank.map_or_else(|| " -".into(), |r| format!("{r:2}"));
    let bar = page.bar(if most > 0.0 { cause.share.abs() / most } else { 0.0 }, 12);
    let time = model.amount(cause.extra_ns as f64);
    let pad = " ".repeat(12_usize.saturating_sub(bar.width()));
    let kind = cause.kind.map_or("", words::kind);
    format!("{rank} {time:>9} {:>6}  {bar}{pad}  {kind}", c.share(cause.share))
}

/// The first line of a cause in words, for output without columns.
fn heading(model: &Model, c: &Comparison, cause: &Cause) -> String {
    let name = cause.rank.map_or_else(|| "The rest".to_owned(), |rank| format!("Cause {rank}"));
    let mut parts = vec![format!("{name}: {}", model.amount(cause.extra_ns as f64))];
    parts.extend(Some(c.share(cause.share)).filter(|share| !share.is_empty()));
    parts.extend(cause.kind.map(|kind| words::kind(kind).to_owned()));
    parts.join(", ") + "."
}

fn significance(deviations: Option<f64>, p: Option<f64>) -> Option<String> {
    let p = p.map(|p| if p < 1e-4 { "p < 0.0001".to_string() } else { format!("p = {p:.4}") });
    let deviations = deviations.map(|d| match d.abs() {
        size if size >= 100.0 => "over 100 standard deviations".to_string(),
        _ => format!("{d:+.1} standard deviations"),
    });
    let both: Vec<String> = deviations.into_iter().chain(p).collect();
    (!both.is_empty()).then(|| both.join(", "))
}

fn notes(c: &Comparison, page: Page, out: &mut String) {
    if c.warnings.is_empty() {
        return;
    }
    out.push_str("\nCaveats\n");
    for warning in &c.warnings {
        page.wrap(out, 2, &format!("- {warning}"));
    }
}

fn histogram(model: &Model, c: &Comparison, column: &Column, page: Page, out: &mut String) {
    let unit = column.metric.unit();
    let present = sorted_present(column.values.iter());
    let (Some(least), Some(most)) = (present.first(), present.last()) else { return };
    let bins = Bins::new(&present, unit);
    let columns = (page.width().saturating_sub(44) / 2).clamp(8, 32).min(bins.len().max(1));
    let bars = |members: &[ExecutionId]| {
        let mut counts = vec![0_u32; columns];
        for (bin, count) in binned(model, column, &bins, members).into_iter().enumerate() {
            let sum = &mut counts[bin * columns / bins.len()];
            *sum = sum.saturating_add(count);
        }
        sparkline(&counts, page.is_ascii())
    };
    let name = cut(&clean::text(&words::metric(&column.metric)), 16);
    let (fast, slow) = (bars(&c.fast.members), bars(&c.slow.members));
    let line = format!(
        "  {name:16} |{fast}| |{slow}|  {} .. {}",
        clean::text(&model.value_text(unit, *least)),
        clean::text(&model.value_text(unit, *most))
    );
    out.push_str(cut(&line, page.width()).trim_end());
    out.push('\n');
}

fn tree(model: &Model, c: &Comparison, page: Page, out: &mut String) {
    out.push('\n');
    out.push_str(&cut("Difference   slow mean  deviations   context", page.width()));
    out.push('\n');
    let keep = largest(&c.tree, TREE_LINES);
    let shown: Vec<&DiffNode> = c.tree.nodes.iter().zip(&keep).filter(|(_, keep)| **keep).map(|(n, _)| n).collect();
    for node in &shown {
        let deviations = match node.deviations {
            None => "?".to_string(),
            Some(d) if d > 1.0 && node.fast_affected == 0.0 => "new".into(),
            Some(d) => format!("{d:+.1}"),
        };
        let sure = if node.p_value.is_some_and(|p| p < 0.05) { '*' } else { ' ' };
        // The indent is limited, so that names in deep trees stay visible.
        let indent = (node.depth as usize).min(page.width() / 4);
        let delta = model.amount(node.delta_ns);
        let sign = if node.delta_ns > 0.0 { "+" } else { "" };
        let name = clean::owned(&words::frame(model, node.context));
        let line = format!(
            "{:>10} {:>11} {deviations:>10}{sure}  {}{name}",
            format!("{sign}{delta}"),
            model.amount(node.slow_mean_ns),
            " ".repeat(indent),
        );
        out.push_str(&cut(&line, page.width()));
        out.push('\n');
    }
    let left = c.tree.nodes.len() - shown.len();
    if left > 0 {
        page.wrap(out, 0, &format!("({left} smaller nodes not shown, --json has all; *: significant)"));
    } else {
        out.push_str("(*: significant)\n");
    }
}

/// What an arranged tree does not show.
fn hidden(arranged: &ArrangedTree, page: Page, out: &mut String) {
    if arranged.hides_kernel {
        let text = "(time of the kernel's functions counts in the system call or page fault above them; \
                    --kernel-frames shows them)";
        page.wrap(out, 0, text);
    }
}

/// The largest differences by function.
fn functions(model: &Model, c: &Comparison, page: Page, out: &mut String) {
    let all = by_function(model, &c.tree);
    out.push('\n');
    out.push_str(&cut("Difference   by itself   slow mean  places  function, over all contexts", page.width()));
    out.push('\n');
    for function in all.iter().take(FUNCTION_LINES) {
        let line = format!(
            "{:>10} {:>11} {:>11} {:>7}  {}",
            figure::extra(function.delta_ns),
            figure::extra(function.self_delta_ns),
            figure::time(function.slow_mean_ns),
            function.places,
            clean::text(words::frame_of_path(&function.name)),
        );
        out.push_str(&cut(&line, page.width()));
        out.push('\n');
    }
    let left = all.len().saturating_sub(FUNCTION_LINES);
    if left > 0 {
        page.wrap(out, 0, &format!("({} not shown, --json has all)", figure::plural(left as u64, "smaller one")));
    }
}

#[cfg(test)]
mod tests;
