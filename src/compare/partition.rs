//! Which part of the difference belongs together: every context's own time goes to exactly one part.
//!
//! One human cause lies scattered over many contexts: reached directly or through a third thread that waited too,
//! with and without a sampled stack, in several leaf functions. So time is grouped first by how the execution's own
//! thread spent it ([`WaitKind`]) and by the thread at the end of the path (folded name and process): the one that held
//! the lock, had the CPU; over the network, by the program that answered. Where no single thread has half of what its kind costs, the kind stays
//! whole ("by several"). What no thread is to blame for (its own CPU time, timers, unknown waits) is carved along
//! its own call stack: down into a child that has at least 80 % of its parent's difference (ALGORITHMS.md 7.4), and
//! again with what is left. Disk and interrupts stay whole: whoever queues, the device is one.
//!
//! In: per context, the exact difference of the own times. Out: parts whose sums are exactly that. Cost O(contexts x
//! depth).

use super::tree::frame_text;
use crate::base::names::fold_digits;
use crate::event::kernel_thread;
use crate::model::context::{ContextId, FrameKind};
use crate::model::wait_kind::WaitKind;
use crate::model::{Model, ThreadInfoId};
use std::collections::BTreeMap;

/// Times the rest of a carved part is carved again.
const CARVINGS: usize = 8;

/// Who is to blame, as causes tell them apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BlamedThread {
    /// Name of the process; empty where unknown.
    pub process: String,
    /// Name of the thread with digits folded; `None` for any thread of the process.
    pub thread: Option<String>,
}

/// Where the time of a context comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeOrigin {
    /// The last context of the execution's own thread: where it computed, or waited.
    pub site: ContextId,
    /// The thread frame of who is to blame, if any.
    pub culprit: Option<ContextId>,
    /// The first frame of the own thread that stands for an unknown stack.
    pub unknown: Option<ContextId>,
    state: PathState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathState {
    /// In the own thread's frames.
    Own,
    /// At or below the outermost wait; no thread yet.
    Waiting,
    /// On the path through other threads: a further thread takes the blame over.
    Following,
    /// In a thread of the kernel that only serves: whatever thread stands below takes the blame over.
    Serving,
    /// Whoever is to blame is found; what lies below are details.
    Settled,
}

/// The origin of every context; parents precede children, so one pass is enough.
pub(super) fn origins(model: &Model) -> Vec<TimeOrigin> {
    let follows = |s: WaitKind| matches!(s, WaitKind::Thread | WaitKind::Network);
    let mut all: Vec<TimeOrigin> = Vec::with_capacity(model.contexts.len());
    for at in 0..model.contexts.len() {
        let context = ContextId::at(at);
        let above = model.contexts.parent(context).map(|p| all[p.index()]);
        let mut origin =
            above.unwrap_or(TimeOrigin { site: context, culprit: None, unknown: None, state: PathState::Own });
        match (origin.state, model.contexts.frame(context).kind) {
            (PathState::Own, FrameKind::Wait(_)) => origin.state = PathState::Waiting,
            (PathState::Own | PathState::Waiting | PathState::Following | PathState::Serving, FrameKind::Thread(_)) => {
                origin.culprit = Some(context);
                origin.state = match follows(model.contexts.spent(context)) {
                    _ if is_servant(model, context) => PathState::Serving,
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

/// True for the frame of a thread of the kernel, which is no culprit by itself.
pub(super) fn is_servant(model: &Model, context: ContextId) -> bool {
    let frame = model.contexts.frame(context);
    matches!(frame.kind, FrameKind::Thread(_)) && kernel_thread::is_name(model.names.get(frame.name))
}

/// For each thread frame the thread that it mostly was.
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

/// A part of the difference.
#[derive(Clone, Debug)]
pub(super) struct DifferencePart {
    /// How the execution's own thread spent it.
    pub kind: WaitKind,
    /// Contexts whose own time belongs to it, ascending.
    pub contexts: Vec<ContextId>,
    /// The exact difference, over the product of the group sizes.
    pub difference: i128,
    /// Who is to blame; `None` where nobody is, or several are.
    pub blamed: Option<BlamedThread>,
    /// Several threads share the blame.
    pub several: bool,
    /// For carved parts, the own context that names it.
    pub node: Option<ContextId>,
}

/// What the partition reads.
pub(super) struct PartitionInput<'a> {
    pub model: &'a Model,
    pub origins: &'a [TimeOrigin],
    pub threads: &'a BTreeMap<ContextId, ThreadInfoId>,
    /// By context: exact difference of the own times.
    pub own: &'a [i128],
}

impl PartitionInput<'_> {
    fn sum(&self, contexts: &[ContextId]) -> i128 {
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

    fn part(&self, kind: WaitKind, contexts: Vec<ContextId>) -> DifferencePart {
        let difference = self.sum(&contexts);
        DifferencePart { kind, contexts, difference, blamed: None, several: false, node: None }
    }
}

/// Parts in a fixed order; their differences add up to the whole.
pub(super) fn partition(ground: &PartitionInput<'_>) -> Vec<DifferencePart> {
    let mut kinds: BTreeMap<WaitKind, BTreeMap<Option<BlamedThread>, Vec<ContextId>>> = BTreeMap::new();
    for at in (0..ground.own.len()).filter(|at| ground.own[*at] != 0) {
        let context = ContextId::at(at);
        let kind = ground.model.contexts.spent(context);
        let by_thread = matches!(kind, WaitKind::Thread | WaitKind::Network | WaitKind::Preempted);
        let blamed = if by_thread { ground.blamed(context) } else { None };
        // Over the network one waits for a program; which of its threads takes long is the next question.
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
            let whole =
                blamed.is_some() || matches!(kind, WaitKind::Disk | WaitKind::Interrupted | WaitKind::Preempted);
            if whole {
                of_kind.push(DifferencePart { blamed, ..ground.part(kind, contexts) });
            } else {
                of_kind.extend(carve(ground, kind, contexts));
            }
        }
        join_scattered(&mut of_kind);
        parts.extend(of_kind);
    }
    parts
}

/// Where no thread has half of the extra time of its kind, the kind is the cause and not any one thread.
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
        parts.push(DifferencePart { kind: first.kind, contexts, difference, blamed: None, several: true, node: None });
    }
}

/// Carve time that no thread is to blame for along the own call stack.
fn carve(ground: &PartitionInput<'_>, kind: WaitKind, contexts: Vec<ContextId>) -> Vec<DifferencePart> {
    let mut parts: Vec<DifferencePart> = Vec::new();
    let mut rest = contexts;
    while !rest.is_empty() && parts.len() < CARVINGS {
        let (node, taken, left) = deepest(ground, rest);
        let mut part = DifferencePart { node, ..ground.part(kind, taken) };
        let goes_with = |sum: i128| sum.signum() == part.difference.signum();
        // What is unknown from a frame above the node on is most likely more of the same.
        let (blind, left): (Vec<_>, Vec<_>) = left.into_iter().partition(|c| {
            let from = ground.origins[c.index()].unknown.and_then(|u| ground.model.contexts.parent(u));
            from.zip(node).is_some_and(|(from, node)| is_below(ground.model, node, from))
        });
        rest = left;
        let dark = ground.sum(&blind);
        if goes_with(dark) {
            // Where it is nearly all, the little that has a stack does not speak for it.
            if dark.abs() > 3 * part.difference.abs() {
                part.node = node.and_then(|n| ground.model.contexts.path(n).first().copied());
            }
            part.difference += dark;
            part.contexts.extend(blind);
        } else {
            rest.extend(blind);
        }
        // A wait's few stray stacks (broken chains) are the same wait; CPU time elsewhere is something else.
        let stray = ground.sum(&rest);
        let same = stray.signum() == part.difference.signum() && stray.abs() * 5 < part.difference.abs();
        if kind != WaitKind::Cpu && same {
            part.difference += stray;
            part.contexts.append(&mut rest);
        }
        part.contexts.sort_unstable();
        parts.push(part);
    }
    if !rest.is_empty() {
        rest.sort_unstable();
        parts.push(ground.part(kind, rest));
    }
    parts
}

/// True when `top` is `context` or stands above it.
pub(super) fn is_below(model: &Model, context: ContextId, top: ContextId) -> bool {
    let mut at = Some(context);
    while at.is_some_and(|a| a > top) {
        at = at.and_then(|a| model.contexts.parent(a));
    }
    at == Some(top)
}

/// The deepest own context reached by going into a child with at least 80 % of what is known of its parent's
/// difference; the contexts below it, and the others.
fn deepest(
    ground: &PartitionInput<'_>,
    contexts: Vec<ContextId>,
) -> (Option<ContextId>, Vec<ContextId>, Vec<ContextId>) {
    let tree = &ground.model.contexts;
    let mut sums: BTreeMap<ContextId, i128> = BTreeMap::new();
    for context in &contexts {
        let mut at = Some(ground.origins[context.index()].site);
        while let Some(c) = at {
            *sums.entry(c).or_insert(0) += ground.own[context.index()];
            at = tree.parent(c);
        }
    }
    let mut children: BTreeMap<Option<ContextId>, Vec<ContextId>> = BTreeMap::new();
    for c in sums.keys() {
        children.entry(tree.parent(*c)).or_default().push(*c);
    }
    let is_known = |c: &&ContextId| tree.frame(**c).kind != FrameKind::NoStack;
    let (mut node, mut whole) = (None, ground.sum(&contexts));
    while let Some(list) = children.get(&node) {
        let unknown: i128 = list.iter().filter(|c| !is_known(c)).map(|c| sums[c]).sum();
        let known = whole - unknown;
        let largest = list.iter().filter(is_known).max_by_key(|c| (sums[c].abs(), std::cmp::Reverse(**c)));
        let Some(child) = largest.filter(|c| sums[c].abs() * 5 >= known.abs() * 4) else { break };
        (node, whole) = (Some(*child), sums[child]);
    }
    let Some(top) = node else { return (None, contexts, Vec::new()) };
    let (taken, left) = contexts.into_iter().partition(|c| is_below(ground.model, ground.origins[c.index()].site, top));
    (node, taken, left)
}

/// Text of the frames from the root to `context`, as drawn; long ones without their middle, at most 60 entries.
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
