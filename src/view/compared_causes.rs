//! The causes of a comparison beside the root causes of the same executions.
//!
//! Both add up the time of the same contexts: the comparison its mean difference between slow and fast executions, the
//! table of root causes each single delay. In: a comparison with its model, and the root causes found in the same
//! executions. Out: the verdict, and for each root cause the cause of which it is a part. Cost: a binary search in each
//! cause for each root cause. ALGORITHMS.md 9.7.

use crate::base::clean;
use crate::compare::Comparison;
use crate::model::Model;
use crate::model::anomalies::Anomalies;
use crate::model::context::ContextId;
use crate::model::root_cause::RootCause;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The result of a comparison of the same executions, beside the root causes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedCauses {
    /// The comparison's verdict.
    pub sentence: String,
    /// The verdict is confident.
    pub confident: bool,
    /// By root cause: the rank of the cause of which it is a part. `None` where it delayed no execution, or where its
    /// context adds less than a hundredth to the difference.
    pub causes: Vec<Option<u32>>,
}

impl ComparedCauses {
    /// The causes of root causes; none where those are of other executions than the comparison.
    pub fn new(model: &Model, comparison: &Comparison, found: &Anomalies) -> ComparedCauses {
        let task = model.tasks.get(model.task);
        let is_same = found.examined.executions.as_ref().is_none_or(|examined| Some(&examined.task) == task);
        let rank = |context: ContextId| {
            let cause = comparison.causes.iter().find(|cause| cause.contexts.binary_search(&context).is_ok());
            cause.and_then(|cause| cause.rank)
        };
        let of = |source: &RootCause| context(source, found).filter(|_| is_same).and_then(rank);
        ComparedCauses {
            sentence: clean::line(&comparison.verdict.sentence),
            confident: comparison.verdict.confident,
            causes: found.sources.iter().map(of).collect(),
        }
    }

    /// The rank of the cause of which a root cause is a part, by its position in the table.
    pub fn of(&self, at: usize) -> Option<u32> {
        self.causes.get(at).copied().flatten()
    }
}

/// The context in which a root cause spent most of the delays that it caused.
fn context(source: &RootCause, found: &Anomalies) -> Option<ContextId> {
    let mut sums: BTreeMap<ContextId, i64> = BTreeMap::new();
    for occurrence in &source.occurrences {
        let path = occurrence.path.and_then(|path| found.paths.get(path as usize));
        let context = path.and_then(|path| path.context);
        context.into_iter().for_each(|context| *sums.entry(context).or_default() += occurrence.excess_ns);
    }
    sums.into_iter().max_by_key(|(context, ns)| (*ns, Reverse(*context))).map(|(context, _)| context)
}
