//! Transforms of calling contexts: each makes other contexts, and says where the time of each old one counts.
//!
//! In: contexts, parents before children. Out: [`Transformed`]. Kernel functions that only say how the kernel does what
//! it was asked for have no contexts of their own: time there counts in the system call, the page fault, or whatever
//! led into the kernel. Focus, drop and collapse are those of profilers. Contexts can be reversed, too: the frames in
//! which time was spent are the roots then. Each is one pass over the contexts; reversing costs their depth as well.

use crate::compare::kernel_paths;
use crate::model::Model;
use crate::model::context::{ContextId, Contexts, Frame, FrameKind};
use std::mem::discriminant;

/// Contexts of a reversed tree.
const MOST: usize = 1 << 19;

/// What a transform does with a function, call, wait or thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransformKind {
    /// It is a root, with what is below it, and nothing else is left.
    Focus,
    /// It is left out with what is below it, and so is the time there.
    Drop,
    /// What is below it counts as its own time.
    Collapse,
}

/// A transform of all contexts that have a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transform {
    pub kind: TransformKind,
    pub frame: Frame,
}

/// Other contexts.
pub(super) struct Transformed {
    pub contexts: Contexts,
    /// By old context: the new one in which its time counts; `None` where it is left out.
    pub counted: Vec<Option<ContextId>>,
}

/// The place of a context among the new ones.
#[derive(Clone, Copy)]
enum Place {
    /// Left out; contexts below it may be there.
    Above,
    /// Left out with all below it.
    Out,
    /// It has this context.
    Has(ContextId),
    /// Its time, and that of all below it, counts in this context.
    Inside(ContextId),
}

impl Place {
    fn counted(self) -> Option<ContextId> {
        match self {
            Place::Above | Place::Out => None,
            Place::Has(context) | Place::Inside(context) => Some(context),
        }
    }
}

impl Transform {
    /// True for a frame that is drawn as its own is: a function that was put into its caller is the function, and a
    /// thread is the thread, however it was waited for.
    fn is_about(&self, frame: Frame) -> bool {
        let is_function = |kind| matches!(kind, FrameKind::Function | FrameKind::Inlined | FrameKind::KernelFunction);
        let (own, other) = (self.frame.kind, frame.kind);
        let is_alike = discriminant(&own) == discriminant(&other) || is_function(own) && is_function(other);
        self.frame.name == frame.name && is_alike
    }
}

/// Focus, drop or collapse.
pub(super) fn transformed(contexts: &Contexts, transform: Transform) -> Transformed {
    let mut new = Contexts::default();
    let mut places: Vec<Place> = Vec::with_capacity(contexts.len());
    for (parent, frame) in contexts.nodes() {
        let above = parent.map(|parent| places[parent.index()]);
        let is_it = transform.is_about(frame);
        let mut child = || new.child(above.and_then(Place::counted), frame);
        places.push(match (transform.kind, above) {
            (_, Some(Place::Out)) => Place::Out,
            (_, Some(Place::Inside(context))) => Place::Inside(context),
            (TransformKind::Focus, None | Some(Place::Above)) if !is_it => Place::Above,
            (TransformKind::Drop, _) if is_it => Place::Out,
            (TransformKind::Collapse, _) if is_it => Place::Inside(child()),
            _ => Place::Has(child()),
        });
    }
    Transformed { contexts: new, counted: places.into_iter().map(Place::counted).collect() }
}

/// Frames of user mode.
fn is_of_program(kind: FrameKind) -> bool {
    matches!(kind, FrameKind::Function | FrameKind::Inlined | FrameKind::File)
}

/// Without the kernel's functions that say how it does what it was asked for; `None` where there are none.
pub(super) fn without_kernel(model: &Model) -> Option<Transformed> {
    let hidden = hidden_functions(model)?;
    let mut new = Contexts::default();
    let mut counted: Vec<Option<ContextId>> = Vec::with_capacity(hidden.len());
    for ((parent, frame), is_hidden) in model.contexts.nodes().zip(hidden) {
        let above = parent.and_then(|parent| counted[parent.index()]);
        counted.push(if is_hidden { above } else { Some(new.child(above, frame)) });
    }
    Some(Transformed { contexts: new, counted })
}

/// By context: whether its frame is a function of the kernel that only says how it does what it was asked for; `None`
/// where there are none. In a kernel's thread all stay: there they are the program. So do those that the sentence of a
/// cause names.
pub fn hidden_functions(model: &Model) -> Option<Vec<bool>> {
    let contexts = &model.contexts;
    // By context: what is right below it runs in user mode, too: functions of the kernel are there on behalf of that.
    let mut runs_program = vec![false; contexts.len()];
    for (parent, frame) in contexts.nodes() {
        if let (Some(parent), true) = (parent, is_of_program(frame.kind) || frame.kind == FrameKind::Call) {
            runs_program[parent.index()] = true;
        }
    }
    // By context: it led into the kernel, or is there on behalf of a program.
    let mut in_kernel: Vec<bool> = Vec::with_capacity(contexts.len());
    let mut hidden: Vec<bool> = Vec::with_capacity(contexts.len());
    for (parent, frame) in contexts.nodes() {
        let is_below = parent.is_some_and(|parent| in_kernel[parent.index()]);
        hidden.push(match frame.kind {
            FrameKind::KernelFunction => is_below && !kernel_paths::is_named(model.names.get(frame.name)),
            _ => false,
        });
        let led_in = parent.is_some_and(|parent| match contexts.frame(parent).kind {
            FrameKind::Process | FrameKind::Thread(_) => runs_program[parent.index()],
            kind => is_of_program(kind),
        });
        in_kernel.push(match frame.kind {
            FrameKind::Call => true,
            FrameKind::KernelFunction => is_below || led_in,
            _ => false,
        });
    }
    hidden.contains(&true).then_some(hidden)
}

/// Reversed contexts.
pub(super) struct Reversed {
    pub contexts: Contexts,
    /// By old context: the last caller of its reversed frames; `None` where it has no time.
    pub counted: Vec<Option<ContextId>>,
    /// Callers were left out.
    pub truncated: bool,
}

/// The contexts that have time, from their last frame to the root. At most `MOST` are made, beyond which callers are
/// left out: their time stays with the callee.
pub(super) fn reversed(contexts: &Contexts, has_time: &[bool]) -> Reversed {
    let mut found = Reversed { contexts: Contexts::default(), counted: vec![None; has_time.len()], truncated: false };
    for (at, _) in has_time.iter().enumerate().filter(|(_, has_time)| **has_time) {
        let mut end = None;
        for context in std::iter::successors(Some(ContextId::at(at)), |context| contexts.parent(*context)) {
            // A frame without callers is always made: no time gets lost.
            if end.is_some() && found.contexts.len() >= MOST {
                found.truncated = true;
                break;
            }
            end = Some(found.contexts.child(end, contexts.frame(context)));
        }
        found.counted[at] = end;
    }
    found
}
