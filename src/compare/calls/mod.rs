//! The call tree of one execution: each call of its critical path from its begin to its end, and two such trees
//! aligned.
//!
//! In: the segments of an execution's timeline, each with its calling context. Out: a [`CallTree`]. Unlike the ECCT it
//! keeps distinct calls of one function apart, and their order: a call lasts as long as neighbouring segments have its
//! context on their path. It lasts no longer than the recording shows it: where no stack is known, `[no stack]` is
//! between the calls before and after. Below a wait for a disk nothing is kept, because the threads that share the
//! disk's time have shares of it, not times of their own.
//!
//! Cost: linear in the segments times their depth; a call at a moment is a binary search. Executions with more than
//! [`MOST_CALLS`] calls are cut at the deepest level up to which they have fewer. ALGORITHMS.md 7.9.

pub mod aligned;
mod repeats;

use crate::base::heap::block;
use crate::base::time::Ns;
use crate::compare::arranged::{KernelFrames, hidden_functions};
use crate::model::Model;
use crate::model::context::{ContextId, Contexts, FrameKind};
use crate::model::execution::ExecutionId;
use crate::model::execution_timeline::ExecutionTimeline;
use crate::model::wait_kind::WaitKind;
use std::ops::Range;

/// Calls of an execution, at most.
pub const MOST_CALLS: usize = 1 << 16;
/// Percent of a call's time that the only call has which it makes, in a chain.
const CHAINED: Ns = 98;
/// Percent of a level's time that are in chains where it shares its line with the next.
const CHAINED_CALLS: Ns = 95;

/// A call: a function, system call, wait or thread of the path, from its begin to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathCall {
    /// Its calling context.
    pub context: ContextId,
    pub parent: Option<u32>,
    /// Calls above it.
    pub level: u32,
    /// Begin, since the execution began.
    pub start_ns: Ns,
    /// Length.
    pub ns: Ns,
    /// Calls of its subtree, itself included.
    pub size: u32,
}

impl PathCall {
    pub fn end_ns(&self) -> Ns {
        self.start_ns + self.ns
    }
}

/// The calls of an execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallTree {
    /// Parents before children, siblings in order of time.
    calls: Vec<PathCall>,
    /// By level: its calls, in order of time.
    levels: Vec<Vec<u32>>,
    lines: Vec<Range<usize>>,
    /// Deeper levels than this were left out, to limit the number of calls.
    pub deepest: Option<u32>,
    /// Functions of the kernel have no calls of their own.
    pub hides_kernel: bool,
}

impl CallTree {
    /// The tree of an execution whose timeline the model has; empty without one.
    pub fn new(model: &Model, execution: ExecutionId, kernel: KernelFrames) -> CallTree {
        let hidden = match kernel {
            KernelFrames::Hidden => hidden_functions(model),
            KernelFrames::Shown => None,
        };
        let hides_kernel = hidden.is_some();
        let tree = model.timelines.get(&execution).map(|timeline| {
            let hidden = hidden.unwrap_or_default();
            CallTree::of(&model.contexts, timeline, &hidden, MOST_CALLS)
        });
        CallTree { hides_kernel, ..tree.unwrap_or_default() }
    }

    /// Bytes on the heap.
    fn heap_bytes(&self) -> usize {
        let levels: usize = self.levels.iter().map(block).sum();
        block(&self.calls) + block(&self.levels) + levels + block(&self.lines)
    }

    fn of(contexts: &Contexts, timeline: &ExecutionTimeline, hidden: &[bool], most: usize) -> CallTree {
        let mut by_level: Vec<usize> = Vec::new();
        walk(contexts, timeline, hidden, usize::MAX, |step| {
            if let CallStep::Begin { level, .. } = step {
                by_level.resize(by_level.len().max(level + 1), 0);
                by_level[level] += 1;
            }
        });
        let fits = by_level.iter().scan(0, |sum: &mut usize, calls| {
            *sum += calls;
            Some(*sum)
        });
        let levels = fits.take_while(|sum| *sum <= most).count().max(1);
        let mut tree = CallTree {
            deepest: (levels < by_level.len()).then_some(levels as u32 - 1),
            levels: vec![Vec::new(); levels.min(by_level.len())],
            ..CallTree::default()
        };
        let mut open: Vec<u32> = Vec::new();
        walk(contexts, timeline, hidden, levels, |step| match step {
            CallStep::Begin { context, level, at_ns } => {
                let at = tree.calls.len() as u32;
                let parent = open.last().copied();
                let call = PathCall { context, parent, level: level as u32, start_ns: at_ns, ns: 0, size: 1 };
                tree.calls.push(call);
                tree.levels[level].push(at);
                open.push(at);
            }
            CallStep::End { at_ns } => {
                let size = tree.calls.len() as u32;
                let ended = open.pop().map(|at| (at, &mut tree.calls[at as usize]));
                ended.into_iter().for_each(|(at, call)| (call.ns, call.size) = (at_ns - call.start_ns, size - at));
            }
        });
        tree.lines = tree.joined_levels();
        tree
    }

    /// All calls, parents before children, siblings in order of time.
    pub fn calls(&self) -> &[PathCall] {
        &self.calls
    }

    /// A call by its position.
    pub fn call(&self, at: u32) -> Option<&PathCall> {
        self.calls.get(at as usize)
    }

    /// The calls of a level, in order of time.
    pub fn level(&self, level: usize) -> &[u32] {
        self.levels.get(level).map_or(&[], Vec::as_slice)
    }

    /// Number of levels.
    pub fn depth(&self) -> usize {
        self.levels.len()
    }

    /// The call of a level at a moment.
    pub fn at(&self, level: usize, at_ns: Ns) -> Option<u32> {
        let calls = self.level(level);
        let after = calls.partition_point(|at| self.calls[*at as usize].start_ns <= at_ns);
        let last = *calls.get(after.checked_sub(1)?)?;
        (self.calls[last as usize].end_ns() > at_ns).then_some(last)
    }

    /// The deepest call at a moment.
    pub fn deepest_at(&self, at_ns: Ns) -> Option<u32> {
        let mut found = None;
        for level in 0..self.depth() {
            let Some(at) = self.at(level, at_ns) else { break };
            found = Some(at);
        }
        found
    }

    /// The calls of a level that meet a range of times, by their positions in the level.
    pub fn meeting(&self, level: usize, start_ns: Ns, end_ns: Ns) -> &[u32] {
        let calls = self.level(level);
        let first = calls.partition_point(|at| self.calls[*at as usize].end_ns() <= start_ns);
        let last = calls.partition_point(|at| self.calls[*at as usize].start_ns < end_ns);
        calls.get(first..last).unwrap_or(&[])
    }

    /// The calls that a call makes, in order of time; of `None` the roots.
    pub fn children(&self, of: Option<u32>) -> impl Iterator<Item = u32> + '_ {
        children(of, self.calls.len(), |at| self.call(at).map_or(1, |call| call.size))
    }

    /// The time of a call that none of its calls has.
    pub fn own_ns(&self, at: u32) -> Ns {
        let below = self.children(Some(at)).filter_map(|child| self.call(child));
        self.call(at).map_or(0, |call| call.ns) - below.map(|call| call.ns).sum::<Ns>()
    }

    /// The lines of a drawing: levels that share one. Neighbouring levels do where nearly all time of the upper one is
    /// in calls that make one call alone, which has nearly all of their time: two lines would show the same.
    pub fn lines(&self) -> &[Range<usize>] {
        &self.lines
    }

    /// The line of a level.
    pub fn line_of(&self, level: usize) -> usize {
        self.lines.partition_point(|line| line.end <= level)
    }

    /// The deepest call of a line, or of those above it, at a moment.
    pub fn on_line(&self, line: usize, at_ns: Ns) -> Option<u32> {
        let end = self.lines.get(line)?.end;
        (0..end).rev().find_map(|level| self.at(level, at_ns))
    }

    fn joined_levels(&self) -> Vec<Range<usize>> {
        let mut lines: Vec<Range<usize>> = Vec::new();
        for level in 0..self.depth() {
            match lines.last_mut() {
                Some(line) if self.is_chained(level - 1) => line.end = level + 1,
                _ => lines.push(level..level + 1),
            }
        }
        lines
    }

    /// True where nearly all time of a level is in calls that make one call alone.
    fn is_chained(&self, level: usize) -> bool {
        let (mut chained, mut whole) = (0_i128, 0_i128);
        for at in self.level(level) {
            let mut below = self.children(Some(*at)).filter_map(|child| self.call(child));
            let (Some(call), Some(first)) = (self.call(*at), below.next()) else { continue };
            whole += i128::from(call.ns);
            if below.next().is_none() && first.ns.saturating_mul(100) >= call.ns.saturating_mul(CHAINED) {
                chained += i128::from(call.ns);
            }
        }
        whole > 0 && chained * 100 >= whole * i128::from(CHAINED_CALLS)
    }
}

/// The positions right below one in pre-order, of `None` those of the roots. `size`: of a subtree, itself included.
fn children(of: Option<u32>, all: usize, size: impl Fn(u32) -> u32) -> impl Iterator<Item = u32> {
    let (first, end) = of.map_or((0, all as u32), |of| (of + 1, of + size(of)));
    let next = move |at: &u32| Some(*at + size(*at)).filter(|at| *at < end);
    std::iter::successors((first < end).then_some(first), next)
}

/// A step of a walk along the path.
enum CallStep {
    Begin {
        context: ContextId,
        level: usize,
        at_ns: Ns,
    },
    /// The innermost open call ends.
    End {
        at_ns: Ns,
    },
}

/// Walk along the path: `step` sees each call begin and end, down to `levels`.
fn walk(
    contexts: &Contexts,
    timeline: &ExecutionTimeline,
    hidden: &[bool],
    levels: usize,
    mut step: impl FnMut(CallStep),
) {
    let (mut open, mut path): (Vec<ContextId>, Vec<ContextId>) = (Vec::new(), Vec::new());
    let mut at_ns = 0;
    for segment in &timeline.segments {
        frames(contexts, segment.context, hidden, &mut path);
        path.truncate(levels);
        let common = open.iter().zip(&path).take_while(|(a, b)| a == b).count();
        at_ns = segment.start_ns;
        open.drain(common..).for_each(|_| step(CallStep::End { at_ns }));
        for context in path.drain(..).skip(common) {
            step(CallStep::Begin { context, level: open.len(), at_ns });
            open.push(context);
        }
    }
    let end = timeline.segments.last().map_or(at_ns, |last| last.end_ns());
    open.into_iter().for_each(|_| step(CallStep::End { at_ns: end }));
}

/// The contexts from the root to the innermost one that says what the thread did then.
fn frames(contexts: &Contexts, context: ContextId, hidden: &[bool], path: &mut Vec<ContextId>) {
    path.clear();
    path.extend(std::iter::successors(Some(context), |at| contexts.parent(*at)));
    path.reverse();
    let is_shared = |at: &ContextId| contexts.frame(*at).kind == FrameKind::Wait(WaitKind::Disk);
    if let Some(disk) = path.iter().position(is_shared) {
        path.truncate(disk + 1);
    }
    path.retain(|at| !hidden.get(at.index()).copied().unwrap_or(false));
}

#[cfg(test)]
mod tests;
