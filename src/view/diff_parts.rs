//! Parts of `whyslow diff` that are printed where options ask for them.

use crate::compare::arranged::ArrangedTree;
use crate::compare::functions::Sandwich;
use crate::compare::moments::Alignment;

/// The parts that were asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiffParts<'a> {
    /// `--executions`: two executions, moment by moment.
    pub aligned: Option<&'a Alignment>,
    /// The tree in the arrangement that was asked for, where it is not as it was.
    pub arranged: Option<&'a ArrangedTree>,
    /// `--callees-first`: the tree inverted.
    pub inverted: Option<&'a ArrangedTree>,
    /// `--function`: one function with its callers and callees.
    pub function: Option<&'a Sandwich>,
}
