//! What a profile says in words.
//!
//! In: the parts of one or two profiles with their gains. Out: the verdict in one sentence, a sentence for each cause,
//! and caveats. Of one profile the heaviest functions are named, not the frame that all share; of two, the function
//! that gained, what it has in both, and whether anything else did.

use super::bootstrap::Gain;
use super::{Found, Side};
use crate::base::demangle::abbreviated;
use crate::base::figure;
use crate::base::op::Op;
use crate::compare::filter::{Operand, Test};
use crate::compare::{BASELINE, Basis, Group, ProfileUnit, Verdict};
use crate::model::metric::Metric;
use std::borrow::Cow;

/// Functions that the sentence of one profile names, and the least share that one needs.
const NAMED: usize = 3;
const LEAST_NAMED: f64 = 0.05;
/// A part of this share of its side, which changed by less than this share of the difference, takes the same.
const STEADY_FROM: f64 = 0.1;
const SAME_WITHIN: f64 = 0.05;
/// The event of profiles that only count their samples.
const SAMPLES: &str = "samples";
/// Programs that are named beside the profiled one.
const OTHERS: usize = 3;

/// The answer.
pub(super) fn verdict(found: &Found<'_>, order: &[usize], per: ProfileUnit) -> Verdict {
    if found.is_alone() {
        let sentence = alone(found, order);
        return Verdict { confident: false, basis: Basis::Profile, groups: found.origin, sentence, delays: None };
    }
    let [slow, fast] = [found.slow, found.fast].map(label);
    let wholes = [0, 1].map(|side: usize| found.profile.amount(found.sides[side].whole()));
    let first = order.first().copied().filter(|at| found.gains[*at].gain > 0.0);
    let (Some(first), true) = (first, found.base() > 0.0) else {
        let text = format!("{slow} takes no more than {fast}: {} against {}{}.", wholes[0], wholes[1], less(found));
        return Verdict { confident: false, basis: Basis::None, groups: found.origin, sentence: text, delays: None };
    };
    let share = found.gains[first].gain / found.base();
    let doubt = doubt(found, first, share);
    let at_same_work = if per == ProfileUnit::Sample { "At the same work, " } else { "" };
    let more = more(found, first, [&slow, &fast], share);
    let sentence = match &doubt {
        None => format!("{at_same_work}{more}{}.", others(found, order, first)),
        Some(doubt) => format!("No clear cause: {doubt}. {at_same_work}{more}."),
    };
    let confident = doubt.is_none();
    let basis = if confident { Basis::Cause } else { Basis::None };
    Verdict { confident, basis, groups: found.origin, sentence, delays: None }
}

/// `rank_pages takes 452 ms more in new (602 ms) than in old (150 ms), 100% of the difference of 452 ms`.
fn more(found: &Found<'_>, at: usize, [slow, fast]: [&str; 2], share: f64) -> String {
    let Gain { slow: in_slow, fast: in_fast, gain, .. } = found.gains[at];
    let [gain, in_slow, in_fast] = [gain, in_slow, in_fast].map(|amount| found.profile.amount(amount));
    let of = if found.base() == found.extra() {
        format!("the difference of {}", found.profile.amount(found.extra()))
    } else {
        "what functions gained".to_owned()
    };
    let name = name(found, at);
    format!(
        "{name} takes {gain} more in {slow} ({in_slow}) than in {fast} ({in_fast}), {} of {of}",
        figure::share(share)
    )
}

/// Why the first gain is no answer; `None` where it is one.
fn doubt(found: &Found<'_>, first: usize, share: f64) -> Option<String> {
    let gain = &found.gains[first];
    if share < 0.5 {
        return Some(if gain.beyond < gain.gain / 4.0 {
            "most functions take more, and by the same factor: more work, or a slower machine".to_owned()
        } else {
            "no single function has half of the difference".to_owned()
        });
    }
    if !gain.is_sure {
        let one_run = found.sides.iter().any(|side| side.runs < 2);
        return Some(if one_run {
            "two runs of the same program can differ as much (more runs on each side would show: \
             --baseline 'old-*.data')"
                .to_owned()
        } else {
            "the runs of one side differ as much among themselves".to_owned()
        });
    }
    None
}

/// `; split_words takes the same (300 ms)`: the largest part that did not change, or the next that gained.
fn others(found: &Found<'_>, order: &[usize], first: usize) -> String {
    let whole = found.sides[1].whole();
    let base = found.base();
    let next = order.iter().find(|at| **at != first && found.gains[**at].gain > base * LEAST_NAMED);
    if let Some(next) = next {
        let gain = found.profile.amount(found.gains[*next].gain);
        return format!("; {} takes {gain} more", name(found, *next));
    }
    let is_steady = |at: &&usize| {
        let gain = &found.gains[**at];
        **at != first && gain.fast >= STEADY_FROM * whole && gain.gain.abs() <= SAME_WITHIN * base
    };
    let steady = order.iter().filter(is_steady).max_by(|a, b| found.gains[**a].fast.total_cmp(&found.gains[**b].fast));
    steady.map_or_else(String::new, |at| {
        format!("; {} takes the same ({})", name(found, *at), found.profile.amount(found.gains[*at].slow))
    })
}

/// `; checksum takes 3.1 ms less`.
fn less(found: &Found<'_>) -> String {
    let gains = found.gains.iter().enumerate();
    let least = gains.min_by(|(_, a), (_, b)| a.gain.total_cmp(&b.gain)).filter(|(_, gain)| gain.gain < 0.0);
    least.map_or_else(String::new, |(at, gain)| {
        format!("; {} takes {} less", name(found, at), found.profile.amount(-gain.gain))
    })
}

/// `indexer, 451 ms on the CPU (452 samples of cpu-clock): 66% in split_words, 33% in rank_pages, both from main.`
fn alone(found: &Found<'_>, order: &[usize]) -> String {
    let side = &found.sides[0];
    let whole = side.whole();
    let share = |at: &usize| if whole > 0.0 { found.gains[*at].slow / whole } else { 0.0 };
    let named: Vec<usize> = order.iter().copied().filter(|at| share(at) >= LEAST_NAMED).take(NAMED).collect();
    let parts: Vec<String> =
        named.iter().map(|at| format!("{} in {}", figure::share(share(at)), name(found, *at))).collect();
    let parts = if parts.is_empty() { "no function has a twentieth of it".to_owned() } else { parts.join(", ") };
    let caller = found.parts.common_caller(found.model, &named).map_or_else(String::new, |caller| {
        let all = ["", "", ", both", ", all"].get(named.len()).copied().unwrap_or(", all");
        format!("{all} from {}", abbreviated(&caller))
    });
    let samples = figure::plural(found.slow.members.len() as u64, "sample");
    let (event, whose) = (&found.profile.event, &found.profile.whose);
    let taken = if event == SAMPLES { String::new() } else { format!(" ({samples} of {event})") };
    let head = format!("{whose}, {}{}{taken}", found.profile.amount(whole), found.profile.spent());
    format!("{head}: {parts}{caller}.{}", beside(found))
}

/// ` Other programs: 2.1 s (python3 1.9 s, ...).`
fn beside(found: &Found<'_>) -> String {
    let others = &found.profile.left_out;
    if others.is_empty() {
        return String::new();
    }
    let amount = |amount: u64| found.profile.amount(amount as f64);
    let total = others.iter().map(|one| one.amount).fold(0, u64::saturating_add);
    let named: Vec<String> =
        others.iter().take(OTHERS).map(|one| format!("{} {}", one.program, amount(one.amount))).collect();
    let more = if others.len() > OTHERS { ", ..." } else { "" };
    format!(" Other programs meanwhile: {} ({}{more}).", amount(total), named.join(", "))
}

/// The sentence of one part.
pub(super) fn of_cause(found: &Found<'_>, at: usize) -> String {
    let (part, gain) = (&found.parts.all[at], &found.gains[at]);
    let amount = |amount: f64| found.profile.amount(amount);
    let whole = |side: usize| found.sides[side].per_run(part.whole[side] as f64);
    let share = |side: usize, own: f64| match found.sides[side].whole() {
        0.0 => "0%".to_owned(),
        whole => figure::share(own / whole),
    };
    let name = name(found, at);
    let with_callees = |side: usize, own: f64| {
        if whole(side) > own * 1.01 { format!(", {} with what it calls", amount(whole(side))) } else { String::new() }
    };
    if found.is_alone() {
        return format!(
            "{name}: {} by itself ({} of {}){}.",
            amount(gain.slow),
            share(0, gain.slow),
            amount(found.sides[0].whole()),
            with_callees(0, gain.slow)
        );
    }
    let sign = if gain.gain < 0.0 { "less" } else { "more" };
    let interval = gain
        .interval
        .map_or_else(String::new, |(low, high)| format!(" (95% interval {} to {})", amount(low), amount(high)));
    format!(
        "{name} takes {} {sign}{interval}: {} against {} by the run, {} against {} of all samples{}.",
        amount(gain.gain.abs()),
        amount(gain.slow),
        amount(gain.fast),
        share(0, gain.slow),
        share(1, gain.fast),
        with_callees(0, gain.slow)
    )
}

/// What limits the answer.
pub(super) fn warnings(found: &Found<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let profile = found.profile;
    if !profile.other_events.is_empty() {
        warnings.push(format!(
            "the recording also sampled {}: --event chooses one of them",
            profile.other_events.join(", ")
        ));
    }
    if profile.is_time() {
        warnings.push(
            "a profile says where the CPU was used, not what threads waited for: record sched_switch for that".into(),
        );
    }
    let runs = |side: &Side| side.runs < 2;
    if !found.is_alone() && found.sides.iter().any(runs) {
        warnings.push("a side has one run: by how much its runs differ among themselves is unknown".into());
    }
    warnings
}

/// The name of a part, with its program where there are several.
fn name(found: &Found<'_>, at: usize) -> String {
    let part = &found.parts.all[at];
    let several = found.parts.all.iter().any(|other| other.process != part.process && is_large(found, other.own));
    let name: Cow<'_, str> = abbreviated(&part.name);
    if several { format!("{name} of {}", found.model.names.get(part.process)) } else { name.into_owned() }
}

/// A program counts beside others from a twentieth on.
fn is_large(found: &Found<'_>, own: [u128; 2]) -> bool {
    let totals = found.sides.iter().map(|side| side.total);
    own.iter().zip(totals).any(|(own, total)| *own > 0 && own.saturating_mul(20) >= total)
}

/// What a group is called: the label of its trace, where it is that; old and new beside a baseline.
fn label(group: &Group) -> String {
    let named = group.filters.iter().find_map(|filter| match (&filter.metric, &filter.test) {
        (Metric::Trace, Test::Compare(op, Operand::Name(label))) => match (op, label.as_str()) {
            (Op::Equal, BASELINE) => Some("old".to_owned()),
            (Op::NotEqual, BASELINE) => Some("new".to_owned()),
            (Op::Equal, label) => Some(label.to_owned()),
            _ => None,
        },
        _ => None,
    });
    let filters = || group.filters.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    named.unwrap_or_else(|| format!("the group {}", filters()))
}
