//! The answer in one sentence, and whether it can be trusted (PRODUCT.md on `verdict`).
//!
//! Confident means: the first cause, or a dimension, explains at least half of the extra time; its difference is
//! significant, corrected for all contexts tested; and it is larger than what the causes reach between random halves
//! of the same executions (the A/A control). A dimension goes before the cause where it explains the cause too: if
//! only large requests wait for the disk, that they are large is the answer. It must not be what the groups were
//! chosen by.

use super::causes::Ranked;
use super::chance::control;
use super::dimension::{Separating, explained};
use super::tree::{Groups, Pair};
use super::words::{figures, percent_words, sentence_case, time_words};
use super::{Basis, Cause, Group, GroupsOrigin, Verdict};
use crate::model::context::Spent;

/// Largest corrected p-value of a difference that counts.
const SIGNIFICANT: f64 = 0.05;
/// Random splits of the control, and those that may reach what was observed.
const ROUNDS: usize = 300;
const MAY_REACH: usize = 3;

/// What the verdict is made of.
pub(super) struct Evidence<'a> {
    pub groups: &'a Groups<'a>,
    pub slow: &'a Group,
    pub fast: &'a Group,
    pub origin: GroupsOrigin,
    pub extra_ns: i64,
    pub ranked: &'a Ranked,
    pub dimensions: &'a [Separating],
}

/// Weigh it.
pub(super) fn verdict(e: &Evidence<'_>) -> Verdict {
    let say = |confident, basis, sentence| Verdict { confident, basis, groups: e.origin, sentence };
    let (slow_mean, fast_mean) = (time_words(e.slow.mean_ns as f64), time_words(e.fast.mean_ns as f64));
    if e.extra_ns <= 0 {
        let text =
            format!("The slow group is not slower: {slow_mean} against {fast_mean} on average. Swap the groups?");
        return say(false, Basis::None, text);
    }
    let cause = e.ranked.causes.first().filter(|c| c.rank.is_some());
    let doubt = cause.map_or(Some("no difference is a hundredth of it"), |c| doubt(e, c));
    let by_duration = |g: &Group| g.filters.iter().any(|f| f.on_duration());
    if by_duration(e.slow) && by_duration(e.fast) {
        let answers = |d: &&Separating| {
            let explains = d.explains.unwrap_or(0.0);
            let kind_fits = !d.is_field || cause.is_some_and(|c| c.kind == Some(Spent::Cpu));
            explains >= 0.5 && kind_fits && separates(e, d) && (doubt.is_some() || explains_cause(e, d))
        };
        if let Some(d) = e.dimensions.iter().find(answers) {
            return say(true, Basis::Dimension, dimension_sentence(e, d));
        }
    }
    match (cause, doubt) {
        (Some(cause), None) => {
            let phrase = e.ranked.phrases.first().map_or("", |p| p);
            let text = format!("{}: {}.", sentence_case(phrase), figures(cause, e.extra_ns, e.slow.members.len()));
            say(true, Basis::Cause, text)
        }
        (Some(cause), Some(doubt)) => {
            let phrase = e.ranked.phrases.first().map_or("", |p| p);
            let figures = figures(cause, e.extra_ns, e.slow.members.len());
            say(false, Basis::None, format!("Nothing stands out, because {doubt}. Most is {phrase}: {figures}."))
        }
        (None, doubt) => {
            let extra = time_words(e.extra_ns as f64);
            let doubt = doubt.unwrap_or_default();
            say(
                false,
                Basis::None,
                format!("Nothing stands out in the {extra} that slow executions take longer: {doubt}."),
            )
        }
    }
}

/// Why the first cause is no answer; `None` when it is one.
fn doubt(e: &Evidence<'_>, cause: &Cause) -> Option<&'static str> {
    if cause.extra_ns.saturating_mul(2) < e.extra_ns {
        return Some("no single cause explains half of the extra time");
    }
    if cause.p_value.is_none_or(|p| p >= SIGNIFICANT) {
        return Some("the executions are too few or too uneven to tell the largest difference from chance");
    }
    let reached = control(&e.ranked.values, e.slow.members.len(), e.fast.members.len(), ROUNDS);
    let as_large = reached.iter().filter(|r| **r >= cause.extra_ns as f64).count();
    (as_large > MAY_REACH).then_some("random halves of the same executions differ as much")
}

/// True when having the dimension's class is significantly more frequent in one group: as a value of 0 or 1.
fn separates(e: &Evidence<'_>, d: &Separating) -> bool {
    let slow_classes: Vec<i64> = e.slow.members.iter().map(|x| d.classes[x.index()]).collect();
    let mut counts = std::collections::BTreeMap::new();
    for class in &slow_classes {
        *counts.entry(*class).or_insert(0_u64) += 1;
    }
    let Some((most, _)) = counts.into_iter().max_by_key(|(_, n)| *n) else { return false };
    let mut pair = Pair::new(e.groups);
    let mut values = Vec::new();
    for (slow, x) in e.groups.members() {
        let has = u64::from(d.classes[x.index()] == most);
        values.push(has);
        if has == 1 {
            pair.put(slow, 1);
        }
    }
    e.groups.p_value(&pair, || values).is_some_and(|p| p < SIGNIFICANT)
}

/// True when at least half of the first cause's difference goes with the dimension.
fn explains_cause(e: &Evidence<'_>, d: &Separating) -> bool {
    let executions = &e.groups.model.executions;
    let first: Vec<f64> = (0..executions.len())
        .map(|i| {
            let of_cause = |(c, _): &(_, _)| e.ranked.first.binary_search(c).is_ok();
            executions.own.row(i).filter(of_cause).map(|(_, ns)| ns as f64).sum()
        })
        .collect();
    explained(e.groups, &d.classes, |i| first[i]) >= 0.5
}

fn dimension_sentence(e: &Evidence<'_>, d: &Separating) -> String {
    let explains = d.explains.unwrap_or(0.0);
    let (told, whole) = (time_words(explains * e.extra_ns as f64), time_words(e.extra_ns as f64));
    let d = &d.dimension;
    let are = match d.name.as_str() {
        "cpu" => "began on",
        name if name.starts_with("field.") => "have",
        _ => "are of",
    };
    format!(
        "The slow ones {are} {} {}: {} of them and {} of the fast ones, which explains {told} of {whole} extra ({}).",
        d.name,
        d.value,
        percent_words(d.slow_share),
        percent_words(d.fast_share),
        percent_words(explains),
    )
}
