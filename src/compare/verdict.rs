//! The answer in one sentence, and whether it is confident (PRODUCT.md on `verdict`).
//!
//! Confident means: the first cause, or a dimension, explains at least half of the extra time; its difference is
//! significant, corrected for all contexts tested; and it is larger than what the causes reach between random halves
//! of the same executions (the A/A control). A dimension precedes the cause where it explains the cause too: if only
//! large requests wait for the disk, their size is the answer. The groups must not have been chosen by the dimension.

use super::caveats::by_duration;
use super::chance::{MemberValue, TimedExecution, is_shifted_as_far};
use super::dimension::{SeparatingDimension, expected, explained, saved_at_usual_frequency};
use super::doubt::{SIGNIFICANT, doubt, is_place};
use super::evidence::{Evidence, FEWEST_ALIKE};
use super::members::values;
use super::tree::{GroupSide, GroupSums};
use super::words::{TotalDifference, figures, missing_fact, sentence_case, share_of_group};
use super::{Basis, Cause, Verdict, windows};
use crate::base::figure;
use crate::model::Model;
use crate::model::choice::TaskChoice;
use crate::model::metric::Metric;
use crate::model::wait_kind::WaitKind;

/// Largest part of the extra time that a dimension may explain: more is an artefact of how values are distributed.
const MOST_EXPLAINED: f64 = 1.25;
/// Parts that the sentence of a profile names.
const PROFILED: u32 = 3;

/// The verdict, with the choice of the task where the user named none.
pub(super) fn verdict(e: &Evidence<'_>) -> Verdict {
    let mut verdict = weigh(e);
    if let Some(choice) = &e.groups.model.choice {
        if let Some((program, kind)) = choice.whose.as_ref().filter(|(program, _)| !program.is_empty()) {
            verdict.sentence = format!("{program}, its {}: {}", kind.words(), verdict.sentence);
        }
        if !choice.why.is_empty() {
            verdict.sentence += &chosen(e.groups.model, choice);
        }
    }
    verdict
}

fn weigh(e: &Evidence<'_>) -> Verdict {
    let say = |confident, basis, sentence| Verdict { confident, basis, groups: e.origin, sentence, delays: None };
    let cause = e.ranked.causes.first().filter(|c| c.rank.is_some());
    let phrase = e.ranked.phrases.first().map_or("", |p| p);
    let whole = TotalDifference::new(e.groups, e.extra_ns);
    if whole.is_profile() {
        return say(false, Basis::Profile, profile_sentence(e, &whole));
    }
    let (slow_mean, fast_mean) = (figure::time(e.slow.mean_ns as f64), figure::time(e.fast.mean_ns as f64));
    if e.extra_ns <= 0 {
        let text =
            format!("The slow group is not slower: {slow_mean} against {fast_mean} on average; swap the two groups.");
        return say(false, Basis::None, text);
    }
    let doubt = cause.map_or(Some("no single difference is a hundredth of it".to_owned()), |c| doubt(e, c));
    if by_duration(e.slow, e.fast) {
        let answers = |d: &&SeparatingDimension| {
            let explains = d.explains.unwrap_or(0.0);
            let kind_fits = d.decides.about(cause.and_then(|c| c.kind));
            (0.5..=MOST_EXPLAINED).contains(&explains)
                && kind_fits
                && separates(e, d)
                && (doubt.is_some() || explains_cause(e, d))
                && is_no_chance(e, d)
        };
        if let Some(d) = e.dimensions.iter().find(answers) {
            return say(true, Basis::Dimension, dimension_sentence(e, d));
        }
    }
    match (cause, doubt) {
        (Some(cause), None) if is_place(cause) => say(false, Basis::Place, place_sentence(e, cause, &whole)),
        (Some(cause), None) => {
            let clocks = lower_frequency(e, cause);
            let text = format!("{}: {}{}{clocks}.", sentence_case(phrase), figures(cause, &whole), less(e));
            say(true, Basis::Cause, text)
        }
        (Some(cause), Some(doubt)) => {
            let figures = figures(cause, &whole);
            say(
                false,
                Basis::None,
                format!("No clear cause: {doubt}. The largest difference is {phrase}: {figures}{}.", less(e)),
            )
        }
        (None, doubt) => {
            let extra = figure::time(e.extra_ns as f64);
            let doubt = doubt.unwrap_or_default();
            say(
                false,
                Basis::None,
                format!("No clear cause for the {extra} that slow executions take longer: {doubt}."),
            )
        }
    }
}

/// `; 2.9 ms of it because of lower CPU frequencies`, of a first cause that is running time, from half of it on.
fn lower_frequency(e: &Evidence<'_>, cause: &Cause) -> String {
    let khz = values(e.groups.model, &Metric::CpuKhz).filter(|_| cause.kind == Some(WaitKind::Cpu));
    let saved = khz.map_or(0.0, |khz| saved_at_usual_frequency(e.groups, &khz));
    if saved > 0.0 && saved * 2.0 >= cause.extra_ns as f64 {
        format!("; {} of it because of lower CPU frequencies", figure::time(saved))
    } else {
        String::new()
    }
}

/// `; other parts take 1.2 ms less`, if that is a tenth of the extra time.
fn less(e: &Evidence<'_>) -> String {
    let less: i64 = e.ranked.causes.iter().map(|c| c.extra_ns.min(0)).sum();
    if less.saturating_mul(-10) > e.extra_ns {
        format!("; other parts take {} less", figure::time(-(less as f64)))
    } else {
        String::new()
    }
}

/// `In retry_backoff, asleep or waiting: ...; this recording does not say what ended it: no wake-up of it was
/// recorded`.
fn place_sentence(e: &Evidence<'_>, cause: &Cause, whole: &TotalDifference) -> String {
    let place = &e.ranked.place;
    let state = if cause.kind == Some(WaitKind::UnknownWait) { "waiting" } else { "running or waiting" };
    let state = match place.site.as_str() {
        "" => format!("{} where no call stack was recorded", sentence_case(state)),
        site => format!("In {site}, {state}"),
    };
    let missing_fact = missing_fact(cause.kind.unwrap_or(WaitKind::UnknownState), place.reason.as_deref());
    format!("{state}: {}; this recording does not say {missing_fact}.", figures(cause, whole))
}

/// The largest parts of the time of all executions.
fn profile_sentence(e: &Evidence<'_>, whole: &TotalDifference) -> String {
    let n = e.slow.count;
    let mean = figure::time(e.slow.mean_ns as f64);
    let parts: Vec<String> = e
        .ranked
        .causes
        .iter()
        .zip(&e.ranked.phrases)
        .filter(|(cause, _)| cause.rank.is_some_and(|rank| rank <= PROFILED) && cause.extra_ns > 0)
        .map(|(cause, phrase)| format!("{phrase}, {}{}", figure::time(cause.extra_ns as f64), whole.share(cause.share)))
        .collect();
    let parts = if parts.is_empty() { "the recording does not show how".to_owned() } else { parts.join("; ") };
    match n {
        1 => format!("The one execution takes {mean}: {parts}."),
        _ => format!("{n} executions take {mean} on average: {parts}."),
    }
}

/// The task that was chosen, why, and others that are worth a look.
fn chosen(model: &Model, choice: &TaskChoice) -> String {
    let task = model.tasks.get(model.task).map_or("", |t| t);
    let mut text = format!(" Analysed: {task}, {}", choice.why);
    if choice.profile {
        text += "; too few executions to compare";
    }
    match choice.others.as_slice() {
        [] => {}
        others => text += &format!("; others: {} (--task, or T in the interface)", others.join(" and ")),
    }
    text + "."
}

/// True if the dimension passes the controls that causes pass: random halves, its values moved in time, and other
/// windows of time if the groups are windows.
fn is_no_chance(e: &Evidence<'_>, d: &SeparatingDimension) -> bool {
    let executions = &e.groups.model.executions;
    let expected = expected(e.groups.weights, &d.classes, |i| executions.duration(i) as f64);
    let list: Vec<u64> = e.groups.members().map(|(_, x)| expected(x.index()).max(0.0) as u64).collect();
    let slow = e.slow.members.len();
    let mean = |part: &[u64]| part.iter().map(|v| *v as f64).sum::<f64>() / part.len().max(1) as f64;
    let observed = mean(&list[..slow]) - mean(&list[slow..]);
    !e.splits.reach(std::slice::from_ref(&list), observed)
        && !is_reached_in_time(e, d, observed)
        && !windows::differ_elsewhere(e.groups, (e.slow, e.fast), expected, observed)
}

/// True if the dimension too often explains as much after its values were moved in time.
fn is_reached_in_time(e: &Evidence<'_>, d: &SeparatingDimension, observed: f64) -> bool {
    let executions = &e.groups.model.executions;
    let mut sides = vec![None; executions.len()];
    e.groups.members().for_each(|(side, x)| sides[x.index()] = Some(side == GroupSide::Slow));
    let mut numbers = std::collections::BTreeMap::new();
    let mut number = |class: i64| {
        let next = numbers.len() as u32;
        *numbers.entry(class).or_insert(next)
    };
    let classes: Vec<u32> = d.classes.iter().map(&mut number).collect();
    let timed = |(ns, is_slow): (i64, Option<bool>)| TimedExecution { ns: ns.max(0) as u64, is_slow };
    // They are in the order of their starts.
    let timed: Vec<TimedExecution> = executions.duration.iter().zip(sides).map(timed).collect();
    is_shifted_as_far(&classes, &timed, observed)
}

/// True if enough slow executions have the dimension's class, and it is significantly more frequent in one group:
/// tested as a value of 0 or 1.
fn separates(e: &Evidence<'_>, d: &SeparatingDimension) -> bool {
    let slow_classes: Vec<i64> = e.slow.members.iter().map(|x| d.classes.at(x.index())).collect();
    let mut counts = std::collections::BTreeMap::new();
    for class in &slow_classes {
        *counts.entry(*class).or_insert(0_usize) += 1;
    }
    let Some((most, alike)) = counts.into_iter().max_by_key(|(_, n)| *n) else { return false };
    if alike < FEWEST_ALIKE {
        return false;
    }
    let mut pair = GroupSums::new(e.groups);
    let mut values = Vec::new();
    for (member, (side, x)) in e.groups.members().enumerate() {
        let has = u64::from(d.classes.at(x.index()) == most);
        values.push(has);
        if has == 1 {
            pair.put(side, 1, e.groups.weight(member));
        }
    }
    e.groups.p_value(&pair, || MemberValue::of_list(&values)).is_some_and(|p| p < SIGNIFICANT)
}

/// True if the dimension explains at least half of the first cause's difference.
fn explains_cause(e: &Evidence<'_>, d: &SeparatingDimension) -> bool {
    explained(e.groups, &d.classes, |i| e.in_first.time(i)) >= 0.5
}

fn dimension_sentence(e: &Evidence<'_>, d: &SeparatingDimension) -> String {
    let explains = d.explains.unwrap_or(0.0);
    let (explained, whole) = (figure::time(explains * e.extra_ns as f64), figure::time(e.extra_ns as f64));
    let d = &d.dimension;
    let what = match d.name.as_str() {
        "cpu" => format!("began on cpu {}", d.value),
        "cpu_khz" => format!("ran at CPU frequencies {} kHz", d.value),
        name if name.starts_with("field.") => format!("have {name} {}", d.value),
        name => format!("are of {name} {}", d.value),
    };
    format!(
        "The slow executions {what} ({} of them, {} of the fast ones), which explains {explained} of {whole} extra{}.",
        share_of_group(d.slow_share, e.slow.count),
        share_of_group(d.fast_share, e.fast.count),
        TotalDifference::new(e.groups, e.extra_ns).share(explains),
    )
}
