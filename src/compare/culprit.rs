//! The thread to blame: its host, program, name and ids, as far as they are the same in all that is said of it.
//!
//! In: slow executions, or the frames of threads in the tree. Out: a [`Culprit`]. Cost: linear in the threads below the
//! frames.

use super::Culprit;
use super::tree::{GroupPair, Parties};
use crate::base::names::{NameId, fold_digits};
use crate::event::kernel_thread;
use crate::model::context::ContextId;
use crate::model::execution::ExecutionId;
use crate::model::{Model, ThreadInfo, ThreadInfoId};
use std::collections::{BTreeMap, BTreeSet};

/// Percent of the time that a property of threads must cover to be a property of the culprit.
const AGREES: u128 = 90;

/// True where the culprit has the names of a thread that ran one of the slow executions.
pub(super) fn has_namesake(groups: &GroupPair<'_>, by: &Culprit) -> bool {
    let model = groups.model;
    let is = |name: &Option<String>, id: NameId| name.as_deref() == Some(model.names.get(id));
    let waits = |e: &ExecutionId| model.who.get(model.executions.who.at(e.index()).index());
    let mut who = groups.slow.iter().filter_map(waits);
    Parties::of(model) == Parties::Threads && who.any(|who| is(&by.process, who.process) && is(&by.thread, who.thread))
}

/// The execution's own thread as the culprit: the properties that all slow executions have in common.
pub(super) fn own_thread(groups: &GroupPair<'_>, process: NameId, function: &str) -> Culprit {
    let model = groups.model;
    let mut time: BTreeMap<ThreadInfoId, u64> = BTreeMap::new();
    for e in groups.slow {
        *time.entry(model.executions.who.at(e.index())).or_insert(0) += 1;
    }
    let mut by = Culprit { which: None, ..describe(model, &time) };
    by.process = Some(model.names.get(process).to_string());
    by.function = (!function.is_empty()).then(|| function.to_string());
    by
}

/// Another thread as the culprit, by its frames in the tree.
pub(super) fn other_thread(model: &Model, frames: &BTreeSet<ContextId>, function: Option<NameId>) -> Culprit {
    let mut time: BTreeMap<ThreadInfoId, u64> = BTreeMap::new();
    for frame in frames {
        for (who, ns) in model.contexts.threads_of(*frame) {
            *time.entry(who).or_insert(0) += ns;
        }
    }
    let mut by = describe(model, &time);
    // Of ranks that only have a role in common, the frame is named after the role.
    let is_role = || Parties::of(model) == Parties::Ranks && by.thread.as_ref().is_some_and(|t| t.contains('*'));
    if by.thread.is_none() || is_role() {
        by.thread = frames.first().map(|c| model.names.get(model.contexts.frame(*c).name).to_string());
    }
    by.function = function.map(|f| model.names.function(f).into_owned());
    by
}

/// The properties on which [`AGREES`] percent of the weight agree; thread names with digits collapsed if need be.
fn describe(model: &Model, weights: &BTreeMap<ThreadInfoId, u64>) -> Culprit {
    fn agreed<T: Ord>(
        model: &Model,
        weights: &BTreeMap<ThreadInfoId, u64>,
        of: impl Fn(&ThreadInfo) -> T,
    ) -> Option<T> {
        let mut sums: BTreeMap<T, u128> = BTreeMap::new();
        for (who, weight) in weights {
            if let Some(who) = model.who.get(who.index()) {
                *sums.entry(of(who)).or_insert(0) += u128::from(*weight);
            }
        }
        let total: u128 = sums.values().sum();
        sums.into_iter().find(|(_, sum)| total > 0 && sum * 100 >= total * AGREES).map(|(value, _)| value)
    }
    // One that has most of the weight is worth a number, although others have some, too.
    let total: u128 = weights.values().map(|weight| u128::from(*weight)).sum();
    let most = weights.iter().max_by_key(|(_, weight)| **weight).filter(|(_, weight)| u128::from(**weight) * 2 > total);
    let which = most.and_then(|(who, weight)| {
        let who = model.who.get(who.index())?;
        let mostly = if u128::from(*weight) * 100 >= total * AGREES { "" } else { "mostly " };
        let (what, number) = if who.pid == who.tid { ("pid", who.pid) } else { ("tid", who.tid) };
        Some(format!("{mostly}{what} {number}"))
    });
    let text = |id: NameId| model.names.get(id).to_string();
    let thread = agreed(model, weights, |w| w.thread).map(text);
    let collapsed = || agreed(model, weights, |w| fold_digits(model.names.get(w.thread)));
    Culprit {
        host: agreed(model, weights, |w| w.host).map(text),
        process: agreed(model, weights, |w| w.process).map(text),
        pid: agreed(model, weights, |w| (w.host, w.pid)).map(|(_, pid)| pid),
        tid: agreed(model, weights, |w| (w.host, w.tid)).map(|(_, tid)| tid),
        thread: thread.or_else(collapsed),
        function: None,
        which,
    }
}

/// A thread in words, with its program.
pub(super) fn thread(by: &Culprit) -> String {
    // Sentences call the kernel's own threads by their purpose.
    let of_kernel = by.process.as_deref().is_none_or(kernel_thread::is_name);
    let role = by.thread.as_deref().filter(|_| of_kernel).and_then(kernel_thread::role);
    let which = by.which.as_ref().map_or_else(String::new, |which| format!(" ({which})"));
    match (&by.thread, &by.process) {
        (Some(t), _) if role.is_some() => format!("{} ({t})", role.unwrap_or_default()),
        // A program's main thread is named after it.
        (Some(t), Some(p)) if t == p => format!("{p}{which}"),
        (Some(t), Some(p)) if !p.is_empty() => format!("thread {t} of {p}{which}"),
        (Some(t), _) => format!("thread {t}"),
        (None, Some(p)) => p.clone(),
        (None, None) => "an unknown thread".into(),
    }
}
