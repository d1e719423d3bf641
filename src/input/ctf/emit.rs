//! Writes decode steps, and keeps the known properties of the position.
//!
//! Invariant: every step is pushed by [`Emitter::emit`], which writes the pending addition first and returns the step's
//! index; loops, jumps and selections are patched at that index when their targets are known.

use super::phase::Phase;
use super::steps::{Case, Program, Step, StepIx};

/// Replaced by [`Emitter::patch`] when the target is known.
pub(super) const UNKNOWN_TARGET: StepIx = StepIx::new(0);

/// The steps of a program, and the position after them.
#[derive(Default)]
pub(super) struct Emitter {
    program: Program,
    /// The known properties of the position.
    pub(super) phase: Phase,
    /// Bits to step over before the next step.
    pending: u64,
}

impl Emitter {
    /// Number of steps.
    pub(super) fn here(&self) -> u32 {
        self.program.steps.len() as u32
    }

    /// True where no step was written, apart from the pending addition.
    pub(super) fn is_empty(&self) -> bool {
        self.program.steps.is_empty()
    }

    /// The addition that was not written yet.
    pub(super) fn take_pending(&mut self) -> u64 {
        std::mem::take(&mut self.pending)
    }

    /// The steps written so far; the next ones belong to another program.
    pub(super) fn take(&mut self) -> Program {
        self.flush();
        std::mem::take(&mut self.program)
    }

    /// Adds a step after the pending addition; returns its index.
    pub(super) fn emit(&mut self, step: Step) -> StepIx {
        self.flush();
        let index = StepIx::new(self.here());
        self.program.steps.push(step);
        index
    }

    /// Writes the pending addition.
    pub(super) fn flush(&mut self) {
        if self.pending > 0 {
            self.program.steps.push(Step::Skip(std::mem::take(&mut self.pending)));
        }
    }

    /// The index of the next step.
    pub(super) fn next(&mut self) -> StepIx {
        self.flush();
        StepIx::new(self.here())
    }

    /// Sets the target of a loop or jump.
    pub(super) fn patch(&mut self, index: StepIx, target: StepIx) {
        match self.program.steps.get_mut(index.get() as usize) {
            Some(Step::Loop { end, .. }) => *end = target,
            Some(Step::Jump(to)) => *to = target,
            _ => debug_assert!(false, "step {index:?} has no target"),
        }
    }

    /// The pending bits, where they fit into a step.
    pub(super) fn lead(&mut self) -> u32 {
        match u32::try_from(self.pending) {
            Ok(lead) => {
                self.pending = 0;
                lead
            }
            Err(_) => {
                self.flush();
                0
            }
        }
    }

    /// Forward by a number of bits.
    pub(super) fn skip(&mut self, bits: u64) {
        self.pending = self.pending.saturating_add(bits);
        self.phase = self.phase.advance(bits);
    }

    /// Forward to a multiple of `align` bits.
    pub(super) fn align(&mut self, align: u64) {
        match self.phase.padding(align) {
            Some(padding) => self.skip(padding),
            None => {
                self.emit(Step::Align(align - 1));
                self.phase = Phase::aligned(align);
            }
        }
    }

    /// Sets the cases of a selection.
    pub(super) fn patch_select(&mut self, index: StepIx, cases: impl Iterator<Item = Case>, otherwise: Option<StepIx>) {
        let start = self.program.cases.len() as u32;
        self.program.cases.extend(cases);
        match self.program.steps.get_mut(index.get() as usize) {
            Some(Step::Select { first, count, otherwise: to, .. }) => {
                (*first, *count, *to) = (start, self.program.cases.len() as u32 - start, otherwise);
            }
            _ => debug_assert!(false, "step {index:?} selects nothing"),
        }
    }
}
