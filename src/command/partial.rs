//! `whyslow diff` of partial results: the comparison of a fleet from sums.

use super::Outcome;
use super::console::Console;
use crate::base::clean;
use crate::base::notice::Notices;
use crate::options::GroupOptions;
use crate::session::{PartialFiles, UsageError};
use crate::view::stderr::say;
use crate::view::{json, partials};

/// Print the comparison of the groups that the files have; `json`, with the most nodes of the tree.
pub(super) fn diff(
    files: &PartialFiles,
    groups: &GroupOptions,
    (json, most): (bool, Option<usize>),
    console: &mut Console<'_>,
) -> anyhow::Result<Outcome> {
    if !groups.slow.is_empty() || !groups.fast.is_empty() || groups.kind.is_some() || groups.baseline.is_some() {
        let why = "partial results have their groups: build them again with other filters";
        return Err(UsageError(format!("--slow, --fast, --type, --baseline: {}: {why}", files.title())).into());
    }
    let (model, texts, comparison, mut lines) =
        console.with_progress(|ctx| files.compared(groups.asked().as_deref(), ctx))?;
    console.stage("compare");
    if json && !comparison.kept.are_all() {
        lines.insert(0, comparison.kept.words());
    }
    let filters = [texts.slow.as_slice(), texts.fast.as_slice()];
    console.answer(
        json,
        || json::partials(&model, filters, &comparison, &lines, most),
        |page| partials::diff(&model, filters, &comparison, page),
    )?;
    if !json {
        lines.iter().for_each(|line| say(&format!("note: {}", clean::line(line))));
    }
    Ok(Notices::default().into())
}
