//! Partition of the difference: every context's own time goes to exactly one part.
//!
//! One human cause is scattered over many contexts: reached directly or through a third thread that waited too, with
//! and without a sampled stack, in several leaf functions. So time is grouped first by how the execution's own thread
//! spent it ([`WaitKind`]) and by the thread at the end of the path (collapsed name and process): the thread that held
//! the lock or ran on the CPU; over the network, the program that answered. Where no single thread has half of the
//! extra time of its kind, the kind stays whole ("by several"). Time for which no thread is to blame (own CPU time,
//! timers, unknown waits) is split along its own call stack: down into a child that has at least 80 % of its parent's
//! difference, and again with the rest. Disk and interrupts stay whole: all requests queue at one device.
//!
//! In: per context, the exact difference of the own times. Out: parts whose sums are exactly that. Cost O(contexts x
//! depth). ALGORITHMS.md 7.6.

use super::tree::frame_text;
use crate::analysis::throttling::is_enforced_in;
use crate::base::names::fold_digits;
use crate::event::kernel_thread;
use crate::model::context::{ContextId, FrameKind};
use crate::model::wait_kind::WaitKind;
use crate::model::{Model, ThreadInfoId};
use std::collections::BTreeMap;

/// Parts that are split off along the stack, at most.
const MOST_SPLITS: usize = 8;
/// Percent of the known part of its parent's difference that a child must have to represent it.
const COVERS: i128 = 80;
/// Unknown stacks represent a part themselves if they have more than this many times its known time.
const MOSTLY_UNKNOWN: i128 = 3;
/// A rest of a wait smaller than the wait divided by this is merged into it.
const STRAY: i128 = 5;

/// The thread or program to blame, as causes distinguish them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BlamedThread {
    /// Name of the process; empty where unknown.
    pub process: String,
    /// Name of the thread with digits collapsed; `None` for any thread of the process.
    pub thread: Option<String>,
}

/// The own and the blamed thread on the path of a context.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeOrigin {
    /// The last context of the execution's own thread: where it ran, or waited.
    pub site: ContextId,
    /// The thread frame of the thread to blame, if any.
    pub culprit: Option<ContextId>,
    /// The first frame of the own thread that is an unknown stack.
    pub unknown: Option<ContextId>,
    /// The kernel held the waiting thread back: the threads that ran meanwhile are not to blame.
    pub throttled: bool,
    state: PathState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathState {
    /// In the frames of the own thread.
    Own,
    /// At or below the outermost wait; no thread yet.
    Waiting,
    /// On the path through other threads: a further thread takes the blame over.
    Following,
    /// In a kernel thread that works for others: any thread below takes the blame over.
    KernelThread,
    /// The thread to blame is found; contexts below are details.
    Settled,
}

/// The origin of every context; parents precede children, so one pass is enough.
pub(super) fn origins(model: &Model) -> Vec<TimeOrigin> {
    let follows = |s: WaitKind| matches!(s, WaitKind::Thread | WaitKind::Network);
    let mut all: Vec<TimeOrigin> = Vec::with_capacity(model.contexts.len());
    for at in 0..model.contexts.len() {
        let context = ContextId::at(at);
        let above = model.contexts.parent(context).map(|p| all[p.index()]);
        let mut origin = above.unwrap_or(TimeOrigin {
            site: context,
            culprit: None,
            unknown: None,
            throttled: false,
            state: PathState::Own,
        });
        match (origin.state, model.contexts.frame(context).kind) {
            (_, FrameKind::Wait(WaitKind::Throttled)) => {
                (origin.throttled, origin.state) = (true, PathState::Settled);
            }
            (PathState::Own | PathState::Following, FrameKind::Wait(WaitKind::Preempted))
                if is_throttled(model, context) =>
            {
                (origin.throttled, origin.state) = (true, PathState::Settled);
            }
            (PathState::Own, FrameKind::Wait(_)) => origin.state = PathState::Waiting,
            (
                PathState::Own | PathState::Waiting | PathState::Following | PathState::KernelThread,
                FrameKind::Thread(_),
            ) => {
                origin.culprit = Some(context);
                origin.state = match follows(model.contexts.spent(context)) {
                    _ if is_kernel_thread(model, context) => PathState::KernelThread,
                    true => PathState::Following,
                    false => PathState::Settled,
                };
            }
            (PathState::Own, kind) => {
                origin.site = context;
                if kind == FrameKind::NoStack {
                    origin.unknown = origin.unknown.or(Some(context));
                }
            }
            (PathState::Following, FrameKind::Wait(s)) if !follows(s) => origin.state = PathState::Settled,
            _ => {}
        }
        all.push(origin);
    }
    all
}

/// True for a wait for a CPU that begins where the kernel enforces CPU quotas.
fn is_throttled(model: &Model, wait: ContextId) -> bool {
    let path = model.contexts.path(wait);
    let of_kernel = |c: &&ContextId| model.contexts.frame(**c).kind == FrameKind::KernelFunction;
    let kernel = path.iter().rev().skip(1).take_while(of_kernel);
    is_enforced_in(kernel.map(|c| model.names.get(model.contexts.frame(*c).name)))
}

/// True for the frame of a kernel thread, which is no culprit by itself.
pub(super) fn is_kernel_thread(model: &Model, context: ContextId) -> bool {
    let frame = model.contexts.frame(context);
    matches!(frame.kind, FrameKind::Thread(_)) && kernel_thread::is_name(model.names.get(frame.name))
}

/// For each thread frame the thread that had most of its time.
pub(super) fn main_threads(model: &Model) -> BTreeMap<ContextId, ThreadInfoId> {
    let mut most: BTreeMap<ContextId, (u64, ThreadInfoId)> = BTreeMap::new();
    for ((context, who), ns) in &model.contexts.who {
        let best = most.entry(*context).or_insert((*ns, *who));
        if *ns > best.0 {
            *best = (*ns, *who);
        }
    }
    most.into_iter().map(|(context, (_, who))| (context, who)).collect()
}

/// What a part over several kinds has in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Common {
    /// A function on the execution's own stack, in this context for example.
    Function(ContextId),
    /// A thread for which it waits.
    Thread(BlamedThread),
}

/// A part of the difference.
#[derive(Clone, Debug)]
pub(super) struct DifferencePart {
    /// Kind of the time of the execution's own thread.
    pub kind: WaitKind,
    /// Contexts whose own time belongs to it, ascending.
    pub contexts: Vec<ContextId>,
    /// The exact difference, over the product of the group sizes.
    pub difference: i128,
    /// The thread or program to blame; `None` if there is none, or if several are.
    pub blamed: Option<BlamedThread>,
    /// Several threads share the blame.
    pub several: bool,
    /// For parts that were split along the stack, the own context that names it.
    pub node: Option<ContextId>,
    /// What it has in common where it is of several kinds.
    pub common: Option<Common>,
}

/// The data that the partition reads.
pub(super) struct PartitionInput<'a> {
    pub model: &'a Model,
    pub origins: &'a [TimeOrigin],
    pub threads: &'a BTreeMap<ContextId, ThreadInfoId>,
    /// By context: exact difference of the own times.
    pub own: &'a [i128],
}

impl PartitionInput<'_> {
    /// The difference of some contexts.
    pub fn sum(&self, contexts: &[ContextId]) -> i128 {
        contexts.iter().map(|c| self.own[c.index()]).sum()
    }

    /// The blamed thread of a context.
    pub fn blamed(&self, context: ContextId) -> Option<BlamedThread> {
        let culprit = self.origins[context.index()].culprit?;
        let thread = fold_digits(self.model.names.get(self.model.contexts.frame(culprit).name));
        let process = self.threads.get(&culprit).and_then(|w| self.model.who.get(w.index()));
        let process = process.map_or_else(String::new, |w| self.model.names.get(w.process).to_string());
        Some(BlamedThread { process, thread: Some(thread) })
    }

    /// All of some contexts.
    pub fn part(&self, kind: WaitKind, contexts: Vec<ContextId>) -> DifferencePart {
        let difference = self.sum(&contexts);
        DifferencePart { kind, contexts, difference, blamed: None, several: false, node: None, common: None }
    }
}

/// Parts in a fixed order; their differences add up to the whole.
pub(super) fn partition(input: &PartitionInput<'_>) -> Vec<DifferencePart> {
    let mut kinds: BTreeMap<WaitKind, BTreeMap<Option<BlamedThread>, Vec<ContextId>>> = BTreeMap::new();
    for at in (0..input.own.len()).filter(|at| input.own[*at] != 0) {
        let context = ContextId::at(at);
        let kind = input.model.contexts.spent(context);
        let blamed = if kind.row().blames_thread { input.blamed(context) } else { None };
        // Over the network an execution waits for a program; which of its threads takes long is the next question.
        let blamed = blamed.map(|b| match kind {
            WaitKind::Network if !b.process.is_empty() => BlamedThread { thread: None, ..b },
            _ => b,
        });
        kinds.entry(kind).or_default().entry(blamed).or_default().push(context);
    }
    let mut parts = Vec::new();
    for (kind, threads) in kinds {
        let mut of_kind = Vec::new();
        for (blamed, contexts) in threads {
            let whole = blamed.is_some() || kind.row().is_one_cause;
            if whole {
                of_kind.push(DifferencePart { blamed, ..input.part(kind, contexts) });
            } else {
                of_kind.extend(split_by_stack(input, kind, contexts));
            }
        }
        join_scattered(&mut of_kind);
        parts.extend(of_kind);
    }
    parts
}

/// Join the parts of a kind if no thread has half of its extra time: then the kind is the cause, not one thread.
fn join_scattered(parts: &mut Vec<DifferencePart>) {
    let extra = |p: &DifferencePart| if p.blamed.is_some() { p.difference.max(0) } else { 0 };
    let total: i128 = parts.iter().map(extra).sum();
    let largest = parts.iter().map(extra).max().unwrap_or(0);
    if largest * 2 >= total {
        return;
    }
    let (scattered, rest): (Vec<DifferencePart>, Vec<DifferencePart>) = parts.drain(..).partition(|p| extra(p) > 0);
    *parts = rest;
    if let Some(first) = scattered.first() {
        let mut contexts: Vec<ContextId> = scattered.iter().flat_map(|p| p.contexts.iter().copied()).collect();
        contexts.sort_unstable();
        let difference = scattered.iter().map(|p| p.difference).sum();
        let (kind, blamed, node, common) = (first.kind, None, None, None);
        parts.push(DifferencePart { kind, contexts, difference, blamed, several: true, node, common });
    }
}

/// Split time for which no thread is to blame along the own call stack.
fn split_by_stack(input: &PartitionInput<'_>, kind: WaitKind, contexts: Vec<ContextId>) -> Vec<DifferencePart> {
    let mut parts: Vec<DifferencePart> = Vec::new();
    let mut rest = contexts;
    while !rest.is_empty() && parts.len() < MOST_SPLITS {
        let Descent { node, inside, outside } = descend(input, rest);
        let mut part = DifferencePart { node, ..input.part(kind, inside) };
        // Time in an unknown stack below an ancestor of the node is most likely more of the same.
        let (unknown, outside): (Vec<_>, Vec<_>) = outside.into_iter().partition(|c| {
            let from = input.origins[c.index()].unknown.and_then(|u| input.model.contexts.parent(u));
            from.zip(node).is_some_and(|(from, node)| is_below(input.model, node, from))
        });
        rest = outside;
        let unknown_sum = input.sum(&unknown);
        if unknown_sum.signum() == part.difference.signum() {
            // Where unknown stacks have nearly all of the time, the little that has a stack does not represent it.
            if unknown_sum.abs() > MOSTLY_UNKNOWN * part.difference.abs() {
                part.node = node.and_then(|n| input.model.contexts.path(n).first().copied());
            }
            part.difference += unknown_sum;
            part.contexts.extend(unknown);
        } else {
            rest.extend(unknown);
        }
        // A wait's few stray stacks (broken chains) are the same wait; CPU time elsewhere is something else.
        let stray = input.sum(&rest);
        let is_same = stray.signum() == part.difference.signum() && stray.abs() * STRAY < part.difference.abs();
        if kind != WaitKind::Cpu && is_same {
            part.difference += stray;
            part.contexts.append(&mut rest);
        }
        part.contexts.sort_unstable();
        parts.push(part);
    }
    if !rest.is_empty() {
        rest.sort_unstable();
        parts.push(input.part(kind, rest));
    }
    parts
}

/// True if `top` is `context` or one of its ancestors.
pub(super) fn is_below(model: &Model, context: ContextId, top: ContextId) -> bool {
    let mut at = Some(context);
    while at.is_some_and(|a| a > top) {
        at = at.and_then(|a| model.contexts.parent(a));
    }
    at == Some(top)
}

/// The deepest own context that [`descend`] reaches, and how it divides the contexts.
struct Descent {
    /// `None` if no child of the root has enough.
    node: Option<ContextId>,
    /// Contexts whose site is the node or below it; all if there is no node.
    inside: Vec<ContextId>,
    /// The others.
    outside: Vec<ContextId>,
}

/// Go from the root into a child as long as it has at least 80 % of the known part of its parent's difference.
fn descend(input: &PartitionInput<'_>, contexts: Vec<ContextId>) -> Descent {
    let tree = &input.model.contexts;
    let mut sums: BTreeMap<ContextId, i128> = BTreeMap::new();
    for context in &contexts {
        let mut at = Some(input.origins[context.index()].site);
        while let Some(c) = at {
            *sums.entry(c).or_insert(0) += input.own[context.index()];
            at = tree.parent(c);
        }
    }
    let mut children: BTreeMap<Option<ContextId>, Vec<ContextId>> = BTreeMap::new();
    for c in sums.keys() {
        children.entry(tree.parent(*c)).or_default().push(*c);
    }
    let is_known = |c: &&ContextId| tree.frame(**c).kind != FrameKind::NoStack;
    let (mut node, mut whole) = (None, input.sum(&contexts));
    while let Some(list) = children.get(&node) {
        let unknown: i128 = list.iter().filter(|c| !is_known(c)).map(|c| sums[c]).sum();
        let known = whole - unknown;
        let largest = list.iter().filter(is_known).max_by_key(|c| (sums[c].abs(), std::cmp::Reverse(**c)));
        let Some(child) = largest.filter(|c| sums[c].abs() * 100 >= known.abs() * COVERS) else { break };
        (node, whole) = (Some(*child), sums[child]);
    }
    let Some(top) = node else { return Descent { node, inside: contexts, outside: Vec::new() } };
    let is_inside = |c: &ContextId| is_below(input.model, input.origins[c.index()].site, top);
    let (inside, outside) = contexts.into_iter().partition(is_inside);
    Descent { node, inside, outside }
}

/// Text of the frames from the root to `context`, as drawn; a long path without its middle, at most 60 entries.
pub(super) fn drawn_path(model: &Model, context: ContextId) -> Vec<String> {
    const HEAD: usize = 20;
    const TAIL: usize = 39;
    let path = model.contexts.path(context);
    let draw = |c: &ContextId| frame_text(model, *c);
    if path.len() <= HEAD + TAIL + 1 {
        return path.iter().map(draw).collect();
    }
    let mut drawn: Vec<String> = path[..HEAD].iter().map(draw).collect();
    drawn.push("...".into());
    drawn.extend(path[path.len() - TAIL..].iter().map(draw));
    drawn
}
