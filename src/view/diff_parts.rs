//! Parts of `whyslow diff` that are printed where options ask for them.

use crate::compare::arranged::ArrangedTree;
use crate::compare::calls::aligned::PairedCalls;
use crate::compare::functions::Sandwich;
use crate::compare::heat_map::HeatMap;
use crate::compare::moments::Alignment;

/// The parts that were asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiffParts<'a> {
    /// `--executions`: two executions, moment by moment and as trees of calls.
    pub aligned: Option<(&'a Alignment, &'a PairedCalls)>,
    /// The tree in the arrangement that was asked for, where it is not as it was.
    pub arranged: Option<&'a ArrangedTree>,
    /// `--callees-first`: the tree inverted.
    pub inverted: Option<&'a ArrangedTree>,
    /// `--heat-map`: executions by when they began, or by a name, and by how long they took.
    pub heat_map: Option<&'a HeatMap>,
    /// `--function`: one function with its callers and callees.
    pub function: Option<&'a Sandwich>,
}
