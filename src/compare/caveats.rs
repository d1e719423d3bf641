//! Caveats of a comparison: what limits its answer.

use super::{Group, GroupsOrigin};
use crate::base::figure;
use crate::model::Model;
use crate::model::choice::ExecutionKind;
use crate::model::event_name::{ESSENTIAL, SYSTEM_CALLS};
use crate::model::weights::KeptNumbers;

/// Executions in a group below which its figures are called rough.
const FEW: usize = 8;

/// The caveats of a comparison, after what neither group has.
pub(super) fn caveats(
    model: &Model,
    slow: &Group,
    fast: &Group,
    origin: GroupsOrigin,
    left_out: Vec<String>,
) -> Vec<String> {
    let mut caveats = left_out;
    caveats.extend(KeptNumbers::of(&model.executions).map(|kept| {
        format!(
            "{}: figures are those of all executions, tests and the lists of single executions those of the kept ones",
            kept.words()
        )
    }));
    if origin == GroupsOrigin::Percentile {
        caveats.push(
            "no natural gap was found in the durations: the slowest twentieth is compared with the faster half".into(),
        );
    }
    let weights = model.executions.weights();
    for (name, group) in [("slow", slow), ("fast", fast)] {
        let n = group.members.len();
        if n < FEW && origin != GroupsOrigin::All {
            let members = figure::plural(n as u64, "execution");
            caveats.push(format!("the {name} group has only {members}: its figures are rough"));
        }
        let unsure = group.members.iter().filter(|e| model.executions.unsure.get(e.index()) == Some(true));
        let unsure = unsure.map(|e| weights.of(e.index())).sum::<u64>();
        if unsure * 10 > group.count {
            let count = group.count;
            caveats.push(format!(
                "{unsure} of {count} {name} executions ran while events were lost or waited for something unknown"
            ));
        }
    }
    let shared: Vec<_> = slow.members.iter().copied().filter(|e| fast.members.binary_search(e).is_ok()).collect();
    let shared = weights.sum(&shared);
    if shared > 0 {
        caveats.push(format!("{shared} executions are in both groups: they hide part of the difference"));
    }
    if by_duration(slow, fast) {
        caveats.push(
            "the groups were chosen by duration, so they differ by construction: the p-values rank where the \
             time went, they do not prove a difference"
                .into(),
        );
    }
    caveats.extend(without_system_calls(model));
    caveats.extend(model.notices.sentences());
    caveats
}

/// Iterations of a loop stand in for requests where the recording has no system call from which these could be found.
fn without_system_calls(model: &Model) -> Option<String> {
    let (_, kind) = model.choice.as_ref()?.whose.as_ref()?;
    let recorded = || model.traces.iter().filter_map(|trace| trace.recorded.as_ref());
    let has_calls = recorded().any(|trace| SYSTEM_CALLS.iter().any(|call| trace.events.contains(*call)));
    let is_kernel = recorded().any(|trace| trace.events.contains(ESSENTIAL));
    (*kind == ExecutionKind::Iterations && is_kernel && !has_calls).then(|| {
        "system calls were not recorded, so iterations between two waits are compared, not requests (`whyslow info` \
         shows a command that records them)"
            .to_owned()
    })
}

/// True if a filter on the duration separates the groups; a filter that both have does not.
pub(super) fn by_duration(slow: &Group, fast: &Group) -> bool {
    let only = |a: &Group, b: &Group| a.filters.iter().any(|f| f.on_duration() && !b.filters.contains(f));
    only(slow, fast) && only(fast, slow)
}
