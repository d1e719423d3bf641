//! The differential tree inverted: callees first, their callers below them.
//!
//! In: a model and a comparison. Out: the same comparison with a tree whose roots are the frames in which time was
//! spent, and whose children are the callers of their parents: a node is the part of its root's own time that came
//! through these callers. Figures and tests are those of the other tree (`compare::tree`), over contexts whose frames
//! are reversed. Each execution's time is in the last caller's context and counts in all frames below it, so that roots
//! add up to the difference. Cost: the own times of both groups times their depth; at most `MOST` contexts are made,
//! beyond which callers are left out (their time stays with the callee).

use super::tree::{self, GroupPair, TimesByContext};
use super::{Comparison, DiffTree};
use crate::base::ctx::{Cancelled, Ctx};
use crate::model::Model;
use crate::model::context::{ContextId, Contexts};
use crate::model::execution::{ContextTime, ExecutionId, InclusiveTimes};
use std::sync::Arc;

/// Contexts of an inverted tree.
const MOST: usize = 1 << 19;

/// A comparison with its tree inverted.
#[derive(Clone, Debug)]
pub struct InvertedTree {
    /// Names and the reversed contexts; it has no executions.
    pub model: Arc<Model>,
    /// The comparison. Its tree is about the contexts of [`model`](Self::model), all else as before.
    pub comparison: Arc<Comparison>,
    /// By context of the model that was inverted: the last caller of its reversed frames.
    ends: Vec<Option<ContextId>>,
    /// Callers were left out.
    pub truncated: bool,
}

/// Invert the tree of a comparison of this model.
pub fn invert(model: &Model, comparison: &Comparison, ctx: &Ctx) -> Result<InvertedTree, Cancelled> {
    let groups = GroupPair::new(model, &comparison.slow.members, &comparison.fast.members, &ctx.cancel);
    let mut has_time = vec![false; model.contexts.len()];
    for (_, execution) in groups.members() {
        ctx.cancel.check()?;
        for time in model.executions.own.row(execution.index()).filter(|time| time.ns > 0) {
            has_time[time.context.index()] = true;
        }
    }
    let reversed = reverse(model, &has_time);
    let inverted = Model { names: model.names.clone(), contexts: reversed.contexts, ..Model::default() };
    let inclusive = InclusiveTimes::new(&inverted.contexts);
    let mut times = ReversedTimes { of: model, inverted: &inverted, ends: &reversed.ends, inclusive };
    let mut built = tree::build_of(&groups, &mut times)?;
    built.correct(&mut []);
    let comparison = Comparison { tree: built.tree, ..without_tree(comparison) };
    let (model, comparison) = (Arc::new(inverted), Arc::new(comparison));
    Ok(InvertedTree { model, comparison, ends: reversed.ends, truncated: reversed.truncated })
}

fn without_tree(comparison: &Comparison) -> Comparison {
    Comparison {
        slow: comparison.slow.clone(),
        fast: comparison.fast.clone(),
        extra_ns: comparison.extra_ns,
        tree: DiffTree::default(),
        causes: comparison.causes.clone(),
        kinds: comparison.kinds.clone(),
        dimensions: comparison.dimensions.clone(),
        verdict: comparison.verdict.clone(),
        warnings: comparison.warnings.clone(),
    }
}

impl InvertedTree {
    /// By context of the model that was inverted: whether its own time is in this node.
    pub fn contexts_in(&self, node: ContextId) -> Vec<bool> {
        let contexts = &self.model.contexts;
        let above = |end: ContextId| std::iter::successors(Some(end), |at| contexts.parent(*at)).any(|at| at == node);
        self.ends.iter().map(|end| end.is_some_and(above)).collect()
    }
}

struct ReversedContexts {
    contexts: Contexts,
    ends: Vec<Option<ContextId>>,
    truncated: bool,
}

/// The contexts that have time, from their last frame to the root.
fn reverse(model: &Model, has_time: &[bool]) -> ReversedContexts {
    let mut found =
        ReversedContexts { contexts: Contexts::default(), ends: vec![None; has_time.len()], truncated: false };
    for (at, _) in has_time.iter().enumerate().filter(|(_, has_time)| **has_time) {
        let mut end = None;
        for context in std::iter::successors(Some(ContextId::at(at)), |context| model.contexts.parent(*context)) {
            // A frame without callers is always made: no time gets lost.
            if end.is_some() && found.contexts.len() >= MOST {
                found.truncated = true;
                break;
            }
            end = Some(found.contexts.child(end, model.contexts.frame(context)));
        }
        found.ends[at] = end;
    }
    found
}

/// Times of executions by reversed context.
struct ReversedTimes<'a> {
    of: &'a Model,
    inverted: &'a Model,
    ends: &'a [Option<ContextId>],
    inclusive: InclusiveTimes<'a>,
}

impl TimesByContext for ReversedTimes<'_> {
    fn model(&self) -> &Model {
        self.inverted
    }

    fn own(&mut self, execution: ExecutionId, mut put: impl FnMut(ContextId, u64)) {
        reversed(self.of, self.ends, execution).for_each(|time| put(time.context, time.ns));
    }

    fn inclusive(&mut self, execution: ExecutionId, put: impl FnMut(ContextId, u64)) {
        self.inclusive.of(reversed(self.of, self.ends, execution), put);
    }
}

/// The own times of an execution by reversed context.
fn reversed<'a>(
    model: &'a Model,
    ends: &'a [Option<ContextId>],
    execution: ExecutionId,
) -> impl Iterator<Item = ContextTime> + 'a {
    let end = |time: ContextTime| Some(ContextTime { context: ends.get(time.context.index()).copied()??, ..time });
    model.executions.own.row(execution.index()).filter_map(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::functions::by_function;
    use crate::compare::{ComparisonRequest, compare, frame_text, scenario};

    fn made() -> (Model, Comparison, InvertedTree) {
        let model = scenario::lock_contention(5, 16.0);
        let comparison = compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap();
        let inverted = invert(&model, &comparison, &Ctx::new(1)).unwrap();
        (model, comparison, inverted)
    }

    #[test]
    fn invert_gives_roots_that_add_up_to_the_difference() {
        let (_, comparison, inverted) = made();
        let nodes = &inverted.comparison.tree.nodes;
        let roots: f64 = nodes.iter().filter(|n| n.parent.is_none()).map(|n| n.delta_ns).sum();
        assert!((roots - comparison.extra_ns as f64).abs() < 10.0, "{roots} of {}", comparison.extra_ns);
        for (at, node) in nodes.iter().enumerate() {
            let children = nodes.iter().filter(|n| n.parent == Some(at as u32));
            let parts: f64 = children.map(|n| n.delta_ns).sum::<f64>() + node.self_delta_ns;
            assert!((parts - node.delta_ns).abs() < 1.0, "{parts} of {}", node.delta_ns);
        }
        assert!(!inverted.truncated);
    }

    /// A root is what a function costs by itself, over all contexts.
    #[test]
    fn invert_gives_the_own_time_of_each_function() {
        let (model, comparison, inverted) = made();
        let roots = inverted.comparison.tree.nodes.iter().filter(|n| n.parent.is_none());
        let mut found = 0;
        for root in roots {
            let name = frame_text(&inverted.model, root.context);
            let functions = by_function(&model, &comparison.tree);
            // The process at the root of the tree is no function.
            let Some(function) = functions.iter().find(|f| f.name == name) else { continue };
            assert!((function.self_delta_ns - root.delta_ns).abs() < 1.0, "{name}: {root:?} {function:?}");
            found += 1;
        }
        assert!(found > 3, "{found}");
    }

    #[test]
    fn contexts_in_a_node_are_those_whose_frames_end_so() {
        let (model, _, inverted) = made();
        for node in &inverted.comparison.tree.nodes {
            // From the callee to the caller.
            let mut wanted: Vec<String> =
                inverted.model.contexts.path(node.context).iter().map(|c| frame_text(&inverted.model, *c)).collect();
            wanted.reverse();
            let inside = inverted.contexts_in(node.context);
            assert!(inside.contains(&true));
            for (at, _) in inside.iter().enumerate().filter(|(_, inside)| **inside) {
                let path: Vec<String> =
                    model.contexts.path(ContextId::at(at)).iter().map(|c| frame_text(&model, *c)).collect();
                assert!(path.ends_with(&wanted), "{path:?} {wanted:?}");
            }
        }
    }
}
