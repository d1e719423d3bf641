//! Parts of `whyslow diff` that are printed where options ask for them.

use crate::compare::functions::Sandwich;
use crate::compare::heat_map::HeatMap;
use crate::compare::inverted::InvertedTree;
use crate::compare::moments::Alignment;

/// The parts that were asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiffParts<'a> {
    /// `--executions`: two executions, moment by moment.
    pub aligned: Option<&'a Alignment>,
    /// `--callees-first`: the tree inverted.
    pub inverted: Option<&'a InvertedTree>,
    /// `--heat-map`: executions by when they began, or by a name, and by how long they took.
    pub heat_map: Option<&'a HeatMap>,
    /// `--function`: one function with its callers and callees.
    pub function: Option<&'a Sandwich>,
}
