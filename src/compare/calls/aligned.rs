//! Two executions aligned as trees of calls: which calls of both are the same, level by level.
//!
//! In: the call trees of both. Out: rows in pre-order, each a call of one or both, or calls that repeat; and the
//! partner of each call. The roots are the same; then the calls of each pair are aligned with each other, as section
//! 5.3 of [000] has it: (a) runs that repeat are one element; (b) elements that both have exactly once are pairs, as
//! far as their order agrees; (c) what is between these is aligned so that the pairs have the most time; (d) the calls
//! of runs that are pairs are so one by one, from the first on.
//!
//! Invariants: each call is in exactly one row that is no run; pairs have the same frame, and keep the order of both.
//! Cost: linear in the calls, but for (c), which is a step for each two elements between neighbours of (b); beyond
//! [`MOST_STEPS`] they are paired from the left, and counted. ALGORITHMS.md 7.10.

use super::repeats::{RepeatRun, Units};
use super::{CallTree, PathCall, children};
use crate::base::ctx::{Cancel, Cancelled, Ctx};
use crate::base::heap::{MemoryPart, block};
use crate::base::time::Ns;
use crate::compare::CompareError;
use crate::compare::arranged::KernelFrames;
use crate::compare::moments::unknown_execution;
use crate::compare::sequence::{Paired, paired};
use crate::model::Model;
use crate::model::context::{ContextId, Contexts, Frame};
use crate::model::execution::ExecutionId;
use crate::model::execution_timeline::ExecutionTimeline;
use foldhash::HashMap;
use get_size2::GetSize;

/// Steps of the alignment of two sequences, at most.
const MOST_STEPS: usize = 1 << 20;
/// How far the pairing from the left looks for a partner.
const AHEAD: usize = 64;

/// The calls of one execution in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowCalls {
    /// The first of them.
    pub first: u32,
    /// How often the call, or the unit of several, is there.
    pub times: u32,
    /// Begin of the first, since the execution began.
    pub start_ns: Ns,
    /// End of the last.
    pub end_ns: Ns,
    /// Time in them.
    pub ns: Ns,
}

/// A row of two aligned trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlignedRow {
    pub parent: Option<u32>,
    /// Rows above it.
    pub level: u32,
    /// Rows of its subtree, itself included.
    pub size: u32,
    /// The calling context of the first call: that of the first execution where it has one.
    pub context: ContextId,
    /// Calls of the unit that repeats; 1 for a call.
    pub unit: u32,
    /// The calls of the first execution.
    pub a: Option<RowCalls>,
    /// Those of the second.
    pub b: Option<RowCalls>,
}

impl AlignedRow {
    /// Time in the first execution minus time in the second.
    pub fn delta_ns(&self) -> Ns {
        let ns = |calls: Option<RowCalls>| calls.map_or(0, |calls| calls.ns);
        ns(self.a) - ns(self.b)
    }

    /// The calls of an execution: 0 or 1.
    pub fn calls(&self, of: usize) -> Option<RowCalls> {
        if of == 0 { self.a } else { self.b }
    }

    /// True for calls that repeat.
    pub fn is_run(&self) -> bool {
        self.unit > 1 || [self.a, self.b].into_iter().flatten().any(|calls| calls.times > 1)
    }
}

/// Two executions as trees of calls, aligned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PairedCalls {
    /// The calls of both.
    pub trees: [CallTree; 2],
    /// In pre-order.
    pub rows: Vec<AlignedRow>,
    /// By execution: the row of each call, without runs.
    row_of: [Vec<u32>; 2],
    /// Sequences of calls that were too long to be aligned, and were paired from the left.
    pub coarse: usize,
}

impl PairedCalls {
    /// Align two executions whose timelines the model holds; of one alone all rows are its own.
    pub fn new(
        model: &Model,
        a: ExecutionId,
        b: Option<ExecutionId>,
        kernel: KernelFrames,
        cancel: &Cancel,
    ) -> Result<Self, CompareError> {
        let unknown = std::iter::once(a).chain(b).find(|id| !model.timelines.contains_key(id));
        if let Some(id) = unknown {
            return Err(unknown_execution(model, id));
        }
        let trees = [Some(a), b].map(|id| id.map_or_else(CallTree::default, |id| CallTree::new(model, id, kernel)));
        Ok(Self::of(&model.contexts, trees, cancel)?)
    }

    /// Count them among the results that a question holds at once: beside the executions and the timelines of which
    /// they are made.
    pub fn hold(&self, model: &Model, ctx: &Ctx) {
        let trees: usize = self.trees.iter().map(CallTree::heap_bytes).sum();
        let own = trees + block(&self.rows) + self.row_of.iter().map(block).sum::<usize>();
        let timelines: usize = model.timelines.values().map(ExecutionTimeline::heap_bytes).sum();
        ctx.progress.parts.hold(MemoryPart::Results, model.executions.get_heap_size() + timelines + own);
    }

    /// Align two trees.
    fn of(contexts: &Contexts, trees: [CallTree; 2], cancel: &Cancel) -> Result<PairedCalls, Cancelled> {
        let row_of = [0, 1].map(|of| vec![0; trees[of].calls().len()]);
        let paired = PairedCalls { trees, row_of, ..Default::default() };
        let mut aligning = Aligning { contexts, paired, todo: Vec::new(), cancel };
        aligning.run()?;
        Ok(aligning.paired)
    }

    /// The positions of the rows right below one, in order; of `None` those of the roots.
    pub fn children(&self, of: Option<u32>) -> impl Iterator<Item = u32> + '_ {
        children(of, self.rows.len(), |at| self.rows.get(at as usize).map_or(1, |row| row.size))
    }

    /// The row of a call of an execution, that of the call alone where it repeats.
    pub fn row_of(&self, execution: usize, call: u32) -> Option<u32> {
        self.row_of.get(execution)?.get(call as usize).copied()
    }

    /// The call of the other execution that is the same.
    pub fn partner(&self, execution: usize, call: u32) -> Option<u32> {
        let row = self.rows.get(self.row_of(execution, call)? as usize)?;
        row.calls(1 - execution.min(1)).map(|calls| calls.first)
    }

    /// The moment of the other execution at which it is where this one is at a moment: between the pairs before and
    /// after it, at the same part of the way.
    pub fn time_in_other(&self, execution: usize, at_ns: Ns) -> Ns {
        let other = 1 - execution.min(1);
        let call = |of: usize, at: u32| self.trees[of].call(at).copied();
        let (mut from, mut to) = (0..self.length(execution), 0..self.length(other));
        let mut above = None;
        loop {
            let mut inside = None;
            for child in self.trees[execution].children(above) {
                let pair = self.partner(execution, child).and_then(|partner| call(other, partner));
                let (Some(own), Some(partner)) = (call(execution, child), pair) else { continue };
                if own.end_ns() <= at_ns {
                    (from.start, to.start) = (own.end_ns(), partner.end_ns());
                } else if own.start_ns > at_ns {
                    (from.end, to.end) = (own.start_ns, partner.start_ns);
                    break;
                } else {
                    (from, to) = (own.start_ns..own.end_ns(), partner.start_ns..partner.end_ns());
                    inside = Some(child);
                    break;
                }
            }
            match inside {
                Some(child) => above = Some(child),
                None => break,
            }
        }
        let (part, whole) =
            (i128::from(at_ns.clamp(from.start, from.end) - from.start), i128::from(from.end - from.start));
        to.start + (part * i128::from(to.end - to.start) / whole.max(1)) as Ns
    }

    /// The contexts of the calls of a row: several where a unit of several repeats.
    pub fn unit(&self, row: &AlignedRow) -> impl Iterator<Item = ContextId> + '_ {
        let of = usize::from(row.a.is_none());
        let tree = &self.trees[of];
        let next = |at: &u32| Some(*at + tree.call(*at)?.size);
        let all = std::iter::successors(row.calls(of).map(|calls| calls.first), next);
        all.take(row.unit as usize).filter_map(|at| tree.call(at)).map(|call| call.context)
    }

    fn length(&self, execution: usize) -> Ns {
        let roots = self.trees[execution].children(None);
        roots.filter_map(|root| self.trees[execution].call(root)).map(PathCall::end_ns).max().unwrap_or(0)
    }
}

/// A row that is still to be made, below its parent.
enum Todo {
    /// A call of one or both.
    Call([Option<u32>; 2]),
    /// Calls of a unit that repeats.
    Run { unit: usize, calls: [Vec<u32>; 2] },
}

struct Aligning<'a> {
    contexts: &'a Contexts,
    paired: PairedCalls,
    todo: Vec<(Option<u32>, Todo)>,
    cancel: &'a Cancel,
}

impl Aligning<'_> {
    fn run(&mut self) -> Result<(), Cancelled> {
        let roots = [0, 1].map(|of| self.paired.trees[of].children(None).collect::<Vec<u32>>());
        // The roots are the same, whatever their names.
        let first = match roots.each_ref().map(Vec::as_slice) {
            [[a], [b]] => vec![Todo::Call([Some(*a), Some(*b)])],
            _ => self.aligned(roots)?,
        };
        self.todo.extend(first.into_iter().rev().map(|todo| (None, todo)));
        while let Some((parent, todo)) = self.todo.pop() {
            let (row, below) = match todo {
                Todo::Call(calls) => {
                    let row = self.push(parent, 1, calls.map(|call| call.into_iter().collect()));
                    let below = [0, 1].map(|of| {
                        let call = calls[of];
                        call.map_or_else(Vec::new, |call| self.paired.trees[of].children(Some(call)).collect())
                    });
                    for (of, call) in calls.into_iter().enumerate() {
                        call.into_iter().for_each(|call| self.paired.row_of[of][call as usize] = row);
                    }
                    (row, self.aligned(below)?)
                }
                Todo::Run { unit, calls } => {
                    let longest = calls.iter().map(Vec::len).max().unwrap_or(0);
                    let below = (0..longest).map(|at| Todo::Call(calls.each_ref().map(|all| all.get(at).copied())));
                    let below = below.collect();
                    (self.push(parent, unit, calls), below)
                }
            };
            self.todo.extend(below.into_iter().rev().map(|todo| (Some(row), todo)));
        }
        for at in (0..self.paired.rows.len()).rev() {
            let AlignedRow { parent, size, .. } = self.paired.rows[at];
            parent.into_iter().for_each(|parent| self.paired.rows[parent as usize].size += size);
        }
        Ok(())
    }

    fn push(&mut self, parent: Option<u32>, unit: usize, calls: [Vec<u32>; 2]) -> u32 {
        let of = |of: usize| {
            let all = calls[of].iter().filter_map(|at| self.paired.trees[of].call(*at));
            let (first, last) = (all.clone().next()?, all.clone().next_back()?);
            Some(RowCalls {
                first: *calls[of].first()?,
                times: (calls[of].len() / unit.max(1)) as u32,
                start_ns: first.start_ns,
                end_ns: last.end_ns(),
                ns: all.map(|call| call.ns).sum(),
            })
        };
        let (a, b) = (of(0), of(1));
        let first = a.map(|calls| (0, calls.first)).or(b.map(|calls| (1, calls.first)));
        let context = first.and_then(|(of, call): (usize, u32)| self.paired.trees[of].call(call));
        let level = parent.map_or(0, |parent| self.paired.rows[parent as usize].level + 1);
        let row = self.paired.rows.len() as u32;
        let context = context.map_or(ContextId::at(0), |call| call.context);
        self.paired.rows.push(AlignedRow { parent, level, size: 1, context, unit: unit as u32, a, b });
        row
    }

    /// The calls of two, aligned.
    fn aligned(&mut self, calls: [Vec<u32>; 2]) -> Result<Vec<Todo>, Cancelled> {
        let frame = |of: usize| {
            let of_call = |at: &u32| self.paired.trees[of].call(*at).map(|call| self.contexts.frame(call.context));
            calls[of].iter().filter_map(of_call).collect::<Vec<Frame>>()
        };
        let frames = [frame(0), frame(1)];
        let units = Units::of(&frames[0], &frames[1]);
        let mut names: HashMap<&[Frame], u32> = HashMap::default();
        let elements = [0, 1].map(|of| {
            let element = |run: RepeatRun| {
                let next = names.len() as u32;
                let name = *names.entry(&frames[of][run.start..run.start + run.unit]).or_insert(next);
                let calls = calls[of].iter().skip(run.start).take(run.len());
                let ns = calls.filter_map(|at| self.paired.trees[of].call(*at)).map(|call| call.ns).sum();
                Element { name, ns, run }
            };
            units.runs(&frames[of]).into_iter().map(element).collect::<Vec<Element>>()
        });
        let mut found = Vec::new();
        for pair in pairs(&elements[0], &elements[1], &mut self.paired.coarse, self.cancel)? {
            let runs = match pair {
                Paired::Both(i, j) => [Some(elements[0][i].run), Some(elements[1][j].run)],
                Paired::First(i) => [Some(elements[0][i].run), None],
                Paired::Second(j) => [None, Some(elements[1][j].run)],
            };
            let of_run = |of: usize| runs[of].map_or(&[][..], |run| &calls[of][run.start..run.start + run.len()]);
            let (a, b) = (of_run(0), of_run(1));
            if runs.iter().flatten().all(|run| run.count == 1) {
                // Calls that do not repeat have rows of their own.
                let longest = a.len().max(b.len());
                found.extend((0..longest).map(|at| Todo::Call([a.get(at).copied(), b.get(at).copied()])));
            } else {
                let unit = runs.iter().flatten().map(|run| run.unit).next().unwrap_or(1);
                found.push(Todo::Run { unit, calls: [a.to_vec(), b.to_vec()] });
            }
        }
        Ok(found)
    }
}

/// A run of calls as an element of a sequence.
#[derive(Clone, Copy, Debug)]
struct Element {
    /// Equal for runs of the same unit.
    name: u32,
    ns: Ns,
    run: RepeatRun,
}

/// Pair the elements of two sequences: those that both have once, then those between.
fn pairs(a: &[Element], b: &[Element], coarse: &mut usize, cancel: &Cancel) -> Result<Vec<Paired>, Cancelled> {
    let mut places: HashMap<u32, [(usize, usize); 2]> = HashMap::default();
    for (of, elements) in [a, b].into_iter().enumerate() {
        for (at, element) in elements.iter().enumerate() {
            let (count, last) = &mut places.entry(element.name).or_default()[of];
            (*count, *last) = (*count + 1, at);
        }
    }
    let once = a.iter().enumerate().filter_map(|(i, element)| match places.get(&element.name) {
        Some([(1, _), (1, j)]) => Some((i, *j)),
        _ => None,
    });
    let anchors = increasing(&once.collect::<Vec<(usize, usize)>>());
    let mut found = Vec::with_capacity(a.len().max(b.len()));
    let (mut i, mut j) = (0, 0);
    for (to_i, to_j) in anchors.into_iter().map(|(i, j)| (i, Some(j))).chain([(a.len(), None)]) {
        cancel.check()?;
        let end = to_j.unwrap_or(b.len());
        between(&a[i..to_i], &b[j..end], coarse, |pair| {
            found.push(match pair {
                Paired::Both(x, y) => Paired::Both(i + x, j + y),
                Paired::First(x) => Paired::First(i + x),
                Paired::Second(y) => Paired::Second(j + y),
            });
        });
        found.extend(to_j.map(|to_j| Paired::Both(to_i, to_j)));
        (i, j) = (to_i + 1, end + 1);
    }
    Ok(found)
}

/// Of pairs with increasing first places, the most that have increasing second places, too.
fn increasing(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // By length of a chain: the last pair of the one that ends first; and by pair, the one before it.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (at, (_, j)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < *j);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut chain: Vec<(usize, usize)> =
        std::iter::successors(ends.last().copied(), |at| before[*at]).map(|at| pairs[at]).collect();
    chain.reverse();
    chain
}

/// Align what is between two pairs.
fn between(a: &[Element], b: &[Element], coarse: &mut usize, mut found: impl FnMut(Paired)) {
    if a.len().saturating_mul(b.len()) <= MOST_STEPS {
        let worth = |a: &Element, b: &Element| (a.name == b.name).then(|| 1 + a.ns.min(b.ns));
        return paired(a, b, worth).into_iter().for_each(found);
    }
    *coarse += 1;
    let mut j = 0;
    for (i, element) in a.iter().enumerate() {
        let mut ahead = b.iter().enumerate().skip(j).take(AHEAD);
        let partner = ahead.find(|(_, other)| other.name == element.name);
        match partner {
            None => found(Paired::First(i)),
            Some((at, _)) => {
                (j..at).for_each(|j| found(Paired::Second(j)));
                found(Paired::Both(i, at));
                j = at + 1;
            }
        }
    }
    (j..b.len()).for_each(|j| found(Paired::Second(j)));
}

#[cfg(test)]
mod tests;
