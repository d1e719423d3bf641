//! The parts of a profile: functions with the time that they spent themselves.
//!
//! In: the own amounts of both sides by context. Out: parts, to exactly one of which each context belongs. The part of
//! a context is the innermost function of the program on its path: what the C library, a runtime or the kernel does
//! for it is its own. Where no such function is known, the innermost function, the kernel's function, the file. The
//! functions of two programs are two parts. Cost: contexts times their depth.

use super::ContextSums;
use crate::base::names::NameId;
use crate::compare::tree::frame_text;
use crate::model::Model;
use crate::model::context::{ContextId, FrameKind};
use std::collections::{BTreeMap, BTreeSet};

/// A function, or what is in place of one.
#[derive(Debug)]
pub(super) struct Part {
    /// As it is drawn: `rank_pages`, `[libc.so.6]`.
    pub name: String,
    pub process: NameId,
    /// Its context with the largest amount on both sides together.
    pub heaviest: ContextId,
    /// Its contexts, ascending.
    pub contexts: Vec<ContextId>,
    /// Its own amounts on both sides.
    pub own: [u128; 2],
    /// Its amounts on both sides with what it calls.
    pub whole: [u128; 2],
    /// The number of samples on each side.
    pub samples: [u64; 2],
}

/// All parts, in the order of their first contexts.
#[derive(Debug)]
pub(super) struct Parts {
    pub all: Vec<Part>,
    /// By context: its part.
    pub of_context: Vec<usize>,
}

/// How much a frame says about where the program is.
fn rank(model: &Model, context: ContextId) -> u8 {
    let frame = model.contexts.frame(context);
    match frame.kind {
        FrameKind::Function | FrameKind::Inlined if model.names.is_program_function(frame.name) => 4,
        FrameKind::Function | FrameKind::Inlined => 3,
        FrameKind::KernelFunction | FrameKind::Call => 2,
        FrameKind::File => 1,
        FrameKind::Process | FrameKind::NoStack | FrameKind::Wait(_) | FrameKind::Thread(_) => 0,
    }
}

impl Parts {
    /// The parts of the contexts in which either side has an amount.
    pub fn new(model: &Model, own: &[ContextSums; 2]) -> Parts {
        let mut sites: Vec<ContextId> = Vec::with_capacity(model.contexts.len());
        let mut roots: Vec<ContextId> = Vec::with_capacity(model.contexts.len());
        let mut ids: BTreeMap<(NameId, FrameKind, NameId), usize> = BTreeMap::new();
        let mut parts = Parts { all: Vec::new(), of_context: vec![usize::MAX; model.contexts.len()] };
        for at in 0..model.contexts.len() {
            let context = ContextId::at(at);
            let parent = model.contexts.parent(context);
            let site = match parent.map(|parent| sites[parent.index()]) {
                Some(above) if rank(model, above) > rank(model, context) => above,
                _ => context,
            };
            sites.push(site);
            roots.push(parent.map_or(context, |parent| roots[parent.index()]));
            if own[0].samples[at] + own[1].samples[at] == 0 {
                continue;
            }
            let (process, frame) = (model.contexts.frame(roots[at]).name, model.contexts.frame(site));
            let next = parts.all.len();
            let part = *ids.entry((process, frame.kind, frame.name)).or_insert(next);
            if part == next {
                parts.all.push(Part {
                    name: frame_text(model, site),
                    process,
                    heaviest: context,
                    contexts: Vec::new(),
                    own: [0; 2],
                    whole: [0; 2],
                    samples: [0; 2],
                });
            }
            parts.of_context[at] = part;
            parts.all[part].take(context, own);
        }
        parts.add_wholes(model, own, &ids);
        parts
    }

    /// Each amount counts once for each function on its path.
    fn add_wholes(
        &mut self,
        model: &Model,
        own: &[ContextSums; 2],
        ids: &BTreeMap<(NameId, FrameKind, NameId), usize>,
    ) {
        for at in (0..model.contexts.len()).filter(|at| self.of_context[*at] != usize::MAX) {
            let path = model.contexts.path(ContextId::at(at));
            let Some(process) = path.first().map(|root| model.contexts.frame(*root).name) else { continue };
            let part = |context: &ContextId| {
                let frame = model.contexts.frame(*context);
                ids.get(&(process, frame.kind, frame.name)).copied()
            };
            for part in path.iter().filter_map(part).collect::<BTreeSet<usize>>() {
                for (whole, sums) in self.all[part].whole.iter_mut().zip(own) {
                    *whole += sums.amounts[at];
                }
            }
        }
    }

    /// The function from which some parts are called, as far as their heaviest contexts show it: the innermost that is
    /// on the paths of all and is none of them.
    pub fn common_caller(&self, model: &Model, parts: &[usize]) -> Option<String> {
        let paths: Vec<Vec<ContextId>> =
            parts.iter().map(|part| model.contexts.path(self.all[*part].heaviest)).collect();
        let first = paths.first()?;
        let is_common =
            |(depth, context): &(usize, &ContextId)| paths.iter().all(|path| path.get(*depth) == Some(*context));
        let common: Vec<&ContextId> =
            first.iter().enumerate().take_while(is_common).map(|(_, context)| context).collect();
        let is_part = |name: &str| parts.iter().any(|part| self.all[*part].name == name);
        let function = |context: &&ContextId| {
            let frame = model.contexts.frame(**context);
            let is_function = matches!(frame.kind, FrameKind::Function | FrameKind::Inlined);
            (is_function && model.names.is_program_function(frame.name)).then(|| frame_text(model, **context))
        };
        common.iter().rev().filter_map(function).find(|name| !is_part(name))
    }
}

impl Part {
    /// Take a context.
    fn take(&mut self, context: ContextId, own: &[ContextSums; 2]) {
        let both = |context: ContextId| own[0].amounts[context.index()] + own[1].amounts[context.index()];
        if both(context) > both(self.heaviest) {
            self.heaviest = context;
        }
        self.contexts.push(context);
        for (side, sums) in own.iter().enumerate() {
            self.own[side] += sums.amounts[context.index()];
            self.samples[side] += sums.samples[context.index()];
        }
    }
}
