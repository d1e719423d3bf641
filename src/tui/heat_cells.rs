//! The cells of the heat map: what is counted for them in the background, and the map that is on the screen.
//!
//! In: executions, their groups, the axis, the room for cells. Out: a [`HeatQuestion`], which is the same question as
//! long as none of these changes, and a [`CountedMap`], which knows the question that it answers. Counting is linear in
//! the executions: of a million it takes longer than a frame, so that frames don't wait for it.

use crate::compare::Comparison;
use crate::compare::heat_map::{HeatMap, HeatSize};
use crate::model::Model;
use crate::model::execution::ExecutionId;
use crate::model::metric::Metric;
use std::cmp::Reverse;
use std::sync::Arc;

/// What is to be counted.
#[derive(Clone, Debug)]
pub struct HeatQuestion {
    /// These executions.
    pub model: Arc<Model>,
    /// Their groups.
    pub comparison: Arc<Comparison>,
    /// What the columns are of.
    pub across: Metric,
    /// How many columns and rows there may be.
    pub size: HeatSize,
}

impl HeatQuestion {
    /// True for the same executions, groups, axis and size. Cost: none; a model or comparison is the same object.
    pub fn is_same(&self, other: &HeatQuestion) -> bool {
        self.is_of(&other.model)
            && Arc::ptr_eq(&self.comparison, &other.comparison)
            && (&self.across, self.size) == (&other.across, other.size)
    }

    /// True for a question about these executions.
    pub fn is_of(&self, model: &Arc<Model>) -> bool {
        Arc::ptr_eq(&self.model, model)
    }

    /// Count the executions of each cell. `None` where there are no cells.
    pub fn count(self) -> Option<CountedMap> {
        let groups = [&*self.comparison.slow.members, &*self.comparison.fast.members];
        let map = HeatMap::new(&self.model, &self.across, groups, self.size)?;
        let executions = &self.model.executions;
        let slowest_first = |id: &ExecutionId| (Reverse(executions.duration(id.index())), *id);
        let slowest = (0..executions.len()).map(ExecutionId::at).min_by_key(slowest_first);
        let slowest = slowest.and_then(|id| map.place(&self.model, id)).unwrap_or_default();
        Some(CountedMap { map: Arc::new(map), slowest, of: self })
    }
}

/// A map, and the question that it answers.
#[derive(Clone, Debug)]
pub struct CountedMap {
    pub map: Arc<HeatMap>,
    /// Column and row of the slowest execution, of equals the first.
    pub slowest: (usize, usize),
    pub of: HeatQuestion,
}
