//! Activity of a thread on a critical path: the function and the system call that contexts name.
//!
//! In: contexts with the time spent in them, and the position of a thread among those they lead through. Out: the
//! deepest function that covers most of that time, where functions are known, its callers, and the system call. Linear
//! in the contexts times their depth.

use crate::base::names::NameId;
use crate::model::Model;
use crate::model::context::{ContextId, Frame, FrameKind};
use crate::model::execution::ContextTime;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Contexts asked for the name of a function.
const CANDIDATES: usize = 16;

/// Activity of a thread.
#[derive(Clone, Debug, Default)]
pub struct Activity {
    /// The deepest function that covers 80 % (else half) of the time whose function is known.
    pub function: Option<NameId>,
    /// The system call in which at least half of the time was spent.
    pub call: Option<NameId>,
    /// For most of the time it is not known what the function called: the thread may have been deeper.
    pub is_open: bool,
    /// Callers of the function, from the outermost.
    pub callers: Vec<NameId>,
    /// The time in each function, what it calls included, ascending by name.
    pub within: Vec<(NameId, u64)>,
    /// All time, that without a known function included.
    pub total: u64,
}

impl Activity {
    /// Activity of the thread at position `hop` of the path in these contexts.
    pub fn of(model: &Model, leaves: &[ContextTime], hop: usize) -> Activity {
        let mut leaves: Vec<Leaf> =
            leaves.iter().map(|time| Leaf { frames: frames(model, time.context, hop), ns: time.ns }).collect();
        leaves.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.frames.cmp(&b.frames)));
        let is_own = |name: &NameId| model.names.is_program_function(*name);
        let own = Covered::of(&leaves, &is_own);
        let (function, within) = match own.deepest(&leaves, &is_own) {
            Some(function) => (Some(function), own.by),
            None => {
                let all = Covered::of(&leaves, &|_| true);
                (all.deepest(&leaves, &|_| true), all.by)
            }
        };
        let total: u64 = leaves.iter().map(|leaf| leaf.ns).sum();
        let mut calls: BTreeMap<NameId, u64> = BTreeMap::new();
        for leaf in &leaves {
            leaf.of_kind(FrameKind::Call)
                .last()
                .into_iter()
                .for_each(|name| *calls.entry(name).or_default() += leaf.ns);
        }
        let most = calls.into_iter().max_by_key(|(name, ns)| (*ns, Reverse(*name)));
        let ends = |leaf: &&Leaf| leaf.of_kind(FrameKind::Function).last() == function;
        let is_cut = |leaf: &&Leaf| leaf.frames.last().is_none_or(|frame| frame.kind == FrameKind::NoStack);
        let (ended, cut): (u64, u64) = leaves
            .iter()
            .filter(ends)
            .fold((0, 0), |(all, cut), leaf| (all + leaf.ns, cut + if is_cut(&leaf) { leaf.ns } else { 0 }));
        let caller = leaves.iter().find(|leaf| leaf.of_kind(FrameKind::Function).any(|name| Some(name) == function));
        let callers = caller.map(|leaf| leaf.of_kind(FrameKind::Function).take_while(|name| Some(*name) != function));
        Activity {
            function,
            call: most.filter(|(_, ns)| ns * 2 >= total).map(|(name, _)| name),
            is_open: ended > 0 && cut * 2 >= ended,
            callers: callers.into_iter().flatten().collect(),
            within: within.into_iter().collect(),
            total,
        }
    }

    /// The part of all time that was in a function.
    pub fn share_in(&self, function: NameId) -> f64 {
        let at = self.within.binary_search_by_key(&function, |(name, _)| *name).ok();
        at.and_then(|at| self.within.get(at)).map_or(0.0, |(_, ns)| *ns as f64 / self.total.max(1) as f64)
    }
}

/// One context: the frames of the thread, and the time.
struct Leaf {
    frames: Vec<Frame>,
    ns: u64,
}

impl Leaf {
    fn of_kind(&self, kind: FrameKind) -> impl DoubleEndedIterator<Item = NameId> + '_ {
        self.frames.iter().filter(move |frame| frame.kind == kind).map(|frame| frame.name)
    }
}

/// The time in each function that is wanted.
struct Covered {
    by: BTreeMap<NameId, u64>,
    /// The time in which one of them is known.
    known: u64,
}

impl Covered {
    fn of(leaves: &[Leaf], wanted: &dyn Fn(&NameId) -> bool) -> Covered {
        let mut covered = Covered { by: BTreeMap::new(), known: 0 };
        for leaf in leaves {
            let names: BTreeSet<NameId> = leaf.of_kind(FrameKind::Function).filter(wanted).collect();
            covered.known += if names.is_empty() { 0 } else { leaf.ns };
            names.into_iter().for_each(|name| *covered.by.entry(name).or_default() += leaf.ns);
        }
        covered
    }

    /// The deepest function that covers 80 %, else half, of the time in which one is known.
    fn deepest(&self, leaves: &[Leaf], wanted: &dyn Fn(&NameId) -> bool) -> Option<NameId> {
        [80, 50].into_iter().find_map(|percent| {
            let covers = |name: &NameId| self.by.get(name).is_some_and(|ns| ns * 100 >= self.known * percent);
            let deepest = |leaf: &Leaf| leaf.of_kind(FrameKind::Function).rev().filter(wanted).find(covers);
            leaves.iter().take(CANDIDATES).filter(|_| self.known > 0).find_map(deepest)
        })
    }
}

/// The frames of a context that belong to a thread on its way, by the thread's position.
fn frames(model: &Model, context: ContextId, hop: usize) -> Vec<Frame> {
    let mut threads = 0;
    let mut frames = Vec::new();
    for at in model.contexts.path(context) {
        let frame = model.contexts.frame(at);
        match frame.kind {
            FrameKind::Process | FrameKind::Thread(_) => threads += 1,
            FrameKind::Wait(_) => threads += usize::from(threads == hop + 1),
            _ if threads == hop + 1 => frames.push(frame),
            _ => {}
        }
    }
    frames
}
