//! The differential tree in another arrangement: without the kernel's functions, transformed, callees first.
//!
//! In: a model, a comparison and an [`Arrangement`]. Out: the same comparison with a tree over other contexts, which
//! `transforms` makes, and where the time of each context of the model counts among them. Figures and tests are those
//! of the other tree (`compare::tree`). Where nothing is dropped, roots add up to the difference, as those of the other
//! tree do. With callees first the roots are the frames in which time was spent, and children are the callers of their
//! parents: a node is the part of its root's own time that came through these callers. Contexts that an arrangement
//! with callers first makes depend on the model's alone: they are the same for all groups. Cost: a pass over the
//! contexts for each transform, and the own times of both groups times their depth.

mod transforms;

use super::tree::{self, GroupPair, TimesByContext};
use super::{Comparison, DiffTree};
use crate::base::ctx::{Cancelled, Ctx};
use crate::model::Model;
use crate::model::context::{ContextId, Contexts, FrameKind};
use crate::model::execution::{ContextTime, ExecutionId, InclusiveTimes};
use std::sync::Arc;
pub use transforms::{Transform, TransformKind, hidden_functions};
use transforms::{Transformed, reversed, transformed, without_kernel};

/// What the roots of the tree are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TreeDirection {
    /// Processes, with what they call below.
    #[default]
    CallersFirst,
    /// The frames in which time was spent, with their callers below.
    CalleesFirst,
}

/// Whether functions of the kernel are in the tree that only say how it does what it was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KernelFrames {
    /// Their time counts in the system call, page fault or function that led into the kernel.
    #[default]
    Hidden,
    Shown,
}

/// How the contexts of a tree are arranged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrangement {
    pub kernel: KernelFrames,
    /// Done one after the other, on what is left of the tree.
    pub transforms: Vec<Transform>,
}

/// A comparison with its tree in another arrangement.
#[derive(Clone, Debug)]
pub struct ArrangedTree {
    /// Names and the arranged contexts; it has no executions.
    pub model: Arc<Model>,
    /// The comparison. Its tree is about the contexts of [`model`](Self::model), all else as before.
    pub comparison: Arc<Comparison>,
    /// By context of the model that was arranged: the one in which its time counts.
    counted: Vec<Option<ContextId>>,
    /// Callers were left out.
    pub truncated: bool,
    /// Functions of the kernel have no contexts of their own.
    pub hides_kernel: bool,
}

/// Arrange the tree of a comparison of this model, callers first; `None` where it is as it was.
pub fn arrange(
    model: &Model,
    comparison: &Comparison,
    arrangement: &Arrangement,
    ctx: &Ctx,
) -> Result<Option<ArrangedTree>, Cancelled> {
    let Arranged { transformed, hides_kernel } = Arranged::new(model, arrangement);
    let Some(Transformed { mut contexts, counted }) = transformed else { return Ok(None) };
    for ((context, thread), ns) in &model.contexts.who {
        let at = counted[context.index()];
        let is_thread = |at: &ContextId| matches!(contexts.frame(*at).kind, FrameKind::Thread(_));
        if let Some(at) = at.filter(is_thread) {
            *contexts.who.entry((at, *thread)).or_insert(0) += ns;
        }
    }
    let arranged = Model { who: model.who.clone(), ..named(model, contexts) };
    let tree = built(model, comparison, (arranged, counted), ctx)?;
    Ok(Some(ArrangedTree { hides_kernel, ..tree }))
}

/// Arrange the tree of a comparison of this model, callees first.
pub fn invert(
    model: &Model,
    comparison: &Comparison,
    arrangement: &Arrangement,
    ctx: &Ctx,
) -> Result<ArrangedTree, Cancelled> {
    let Arranged { transformed, hides_kernel } = Arranged::new(model, arrangement);
    let contexts = transformed.as_ref().map_or(&model.contexts, |transformed| &transformed.contexts);
    let in_contexts = |context: ContextId| match &transformed {
        Some(transformed) => transformed.counted[context.index()],
        None => Some(context),
    };
    let mut has_time = vec![false; contexts.len()];
    for execution in comparison.slow.members.iter().chain(&comparison.fast.members) {
        ctx.cancel.check()?;
        for time in model.executions.own.row(execution.index()).filter(|time| time.ns > 0) {
            if let Some(context) = in_contexts(time.context) {
                has_time[context.index()] = true;
            }
        }
    }
    let reversed = reversed(contexts, &has_time);
    let last_callers = |at: usize| in_contexts(ContextId::at(at)).and_then(|at| reversed.counted[at.index()]);
    let counted = (0..model.contexts.len()).map(last_callers).collect();
    let tree = built(model, comparison, (named(model, reversed.contexts), counted), ctx)?;
    Ok(ArrangedTree { truncated: reversed.truncated, hides_kernel, ..tree })
}

/// The contexts of a model, arranged.
struct Arranged {
    /// `None` where they are as they were.
    transformed: Option<Transformed>,
    hides_kernel: bool,
}

impl Arranged {
    fn new(model: &Model, arrangement: &Arrangement) -> Arranged {
        let without_kernel = match arrangement.kernel {
            KernelFrames::Hidden => without_kernel(model),
            KernelFrames::Shown => None,
        };
        let hides_kernel = without_kernel.is_some();
        let next = |done: Option<Transformed>, transform: &Transform| {
            Some(match done {
                None => transformed(&model.contexts, *transform),
                Some(Transformed { contexts, counted }) => {
                    let next = transformed(&contexts, *transform);
                    let counted = counted.into_iter().map(|at| next.counted[at?.index()]).collect();
                    Transformed { counted, ..next }
                }
            })
        };
        Arranged { transformed: arrangement.transforms.iter().fold(without_kernel, next), hides_kernel }
    }
}

/// A model of these contexts, with what their names and figures need.
fn named(model: &Model, contexts: Contexts) -> Model {
    let (names, traces, profile) = (model.names.clone(), model.traces.clone(), model.profile.clone());
    Model { names, traces, profile, contexts, ..Model::default() }
}

/// The tree of other contexts.
fn built(
    model: &Model,
    comparison: &Comparison,
    (arranged, counted): (Model, Vec<Option<ContextId>>),
    ctx: &Ctx,
) -> Result<ArrangedTree, Cancelled> {
    let groups = GroupPair::new(model, &comparison.slow.members, &comparison.fast.members, &ctx.cancel);
    let inclusive = InclusiveTimes::new(&arranged.contexts);
    let mut times = ArrangedTimes { of: model, arranged: &arranged, counted: &counted, inclusive };
    let mut built = tree::build_of(&groups, &mut times)?;
    built.correct(&mut []);
    let comparison = Comparison { tree: built.tree, ..without_tree(comparison) };
    Ok(ArrangedTree {
        model: Arc::new(arranged),
        comparison: Arc::new(comparison),
        counted,
        truncated: false,
        hides_kernel: false,
    })
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

impl ArrangedTree {
    /// Where the time of a context of the model that was arranged counts; `None` where it is left out.
    pub fn counted(&self, context: ContextId) -> Option<ContextId> {
        self.counted.get(context.index()).copied().flatten()
    }

    /// The contexts of the model that was arranged whose time counts in this one itself, ascending.
    pub fn counting_in(&self, arranged: ContextId) -> impl Iterator<Item = ContextId> + '_ {
        let counted = self.counted.iter().enumerate().filter(move |(_, at)| **at == Some(arranged));
        counted.map(|(context, _)| ContextId::at(context))
    }

    /// By arranged context: the first of the model that was arranged whose time counts in it itself.
    pub fn first_counting(&self) -> Vec<Option<ContextId>> {
        let mut first = vec![None; self.model.contexts.len()];
        for (at, arranged) in self.counted.iter().enumerate().rev() {
            if let Some(arranged) = arranged {
                first[arranged.index()] = Some(ContextId::at(at));
            }
        }
        first
    }

    /// By context of the model that was arranged: whether its own time is in this node.
    pub fn contexts_in(&self, node: ContextId) -> Vec<bool> {
        let contexts = &self.model.contexts;
        let above = |at: ContextId| std::iter::successors(Some(at), |at| contexts.parent(*at)).any(|at| at == node);
        self.counted.iter().map(|at| at.is_some_and(above)).collect()
    }
}

/// Times of executions by arranged context.
struct ArrangedTimes<'a> {
    of: &'a Model,
    arranged: &'a Model,
    counted: &'a [Option<ContextId>],
    inclusive: InclusiveTimes<'a>,
}

impl TimesByContext for ArrangedTimes<'_> {
    fn model(&self) -> &Model {
        self.arranged
    }

    fn own(&mut self, execution: ExecutionId, mut put: impl FnMut(ContextId, u64)) {
        own(self.of, self.counted, execution).for_each(|time| put(time.context, time.ns));
    }

    fn inclusive(&mut self, execution: ExecutionId, put: impl FnMut(ContextId, u64)) {
        self.inclusive.of(own(self.of, self.counted, execution), put);
    }
}

/// The own times of an execution by arranged context.
fn own<'a>(
    model: &'a Model,
    counted: &'a [Option<ContextId>],
    execution: ExecutionId,
) -> impl Iterator<Item = ContextTime> + 'a {
    let at = |time: ContextTime| Some(ContextTime { context: counted.get(time.context.index()).copied()??, ..time });
    model.executions.own.row(execution.index()).filter_map(at)
}

#[cfg(test)]
mod tests;
