//! The fields that a record class is bound to: names to slots.
//!
//! In: the names of fields and contexts, in any dialect. Out: for each the slot of its value in a record, and the paths
//! to decode, each once. Cost: a scan of the class's fields for each name.

use crate::input::Trace;
use crate::input::record::{ClassId, FieldPath, Scope};
use crate::reading::classes::{self, Shape};
use crate::reading::dialect;

/// Position of a value in a record; [`NOWHERE`] where the class has no such field.
pub(super) type Slot = u16;
pub(super) const NOWHERE: Slot = Slot::MAX;

/// The contexts of `ThreadContext`, in its order.
const CONTEXTS: [&str; 6] = ["tid", "pid", "ppid", "vtid", "vpid", "procname"];

/// Slots of the addresses of a call stack.
#[derive(Clone, Copy, Debug)]
pub(super) enum StackSlots {
    /// User space and kernel apart.
    Apart { user: Slot, kernel: Slot },
    /// A call chain of both, with marks between them.
    Chain(Slot),
}

impl StackSlots {
    /// Of records without a call stack.
    pub const NONE: StackSlots = StackSlots::Apart { user: NOWHERE, kernel: NOWHERE };
}

/// Collects the paths of one class, each once.
pub(super) struct Paths<'t> {
    pub trace: &'t Trace,
    pub class: ClassId,
    /// The paths so far; a slot is a position among them.
    pub wanted: Vec<FieldPath>,
}

impl<'t> Paths<'t> {
    /// No path yet.
    pub fn new(trace: &'t Trace, class: ClassId) -> Paths<'t> {
        Paths { trace, class, wanted: Vec::new() }
    }

    fn slot(&mut self, scopes: &[Scope], alternatives: &str) -> Slot {
        for name in alternatives.split('|') {
            for scope in scopes {
                if let Some(at) = self.wanted.iter().position(|w| w.is(*scope, name)) {
                    return at as Slot;
                }
                if self.wanted.len() < usize::from(NOWHERE) && self.trace.has_field(self.class, *scope, name) {
                    self.wanted.push(FieldPath::new(*scope, name));
                    return (self.wanted.len() - 1) as Slot;
                }
            }
        }
        NOWHERE
    }

    /// A context, by LTTng's name of it or that of another dialect.
    pub fn context(&mut self, name: &str) -> Slot {
        let slot = self.slot(&[Scope::CommonContext, Scope::SpecificContext], name);
        match dialect::context(name).filter(|_| slot == NOWHERE) {
            Some(other) => self.any(other),
            None => slot,
        }
    }

    /// The contexts that name the thread of an event; for a switch, the thread that leaves the CPU.
    pub fn identity(&mut self, shape: Shape, wanted: impl Fn(&str) -> bool) -> [Slot; 6] {
        CONTEXTS.map(|name| match (name, shape) {
            _ if !wanted(name) => NOWHERE,
            ("tid", Shape::Switch) => match self.payload(classes::LEAVING) {
                NOWHERE => self.context(name),
                leaving => leaving,
            },
            _ => self.context(name),
        })
    }

    /// The addresses of the call stack, where the class has one.
    pub fn stack(&mut self) -> Option<StackSlots> {
        let (user, kernel) = (self.context("callstack_user"), self.context("callstack_kernel"));
        if user != NOWHERE || kernel != NOWHERE {
            return Some(StackSlots::Apart { user, kernel });
        }
        let both = self.any(dialect::CALL_CHAIN);
        (both != NOWHERE).then_some(StackSlots::Chain(both))
    }

    /// A member of the payload.
    pub fn payload(&mut self, name: &str) -> Slot {
        self.slot(&[Scope::Payload], name)
    }

    /// A member of the payload or of a context.
    pub fn any(&mut self, name: &str) -> Slot {
        self.slot(&[Scope::Payload, Scope::SpecificContext, Scope::CommonContext], name)
    }
}
