//! Which region of a location is the innermost one, by calling contexts as well, and over time.
//!
//! In: the records of a location. Out: regions that begin and end with calling contexts, and the changes of the
//! innermost region where they are wanted: rows of a timeline, which no other question needs. Cost: a comparison for
//! each record.

use super::location::{Frame, LocationReader};
use super::regions::Class;
use crate::base::time::Timestamp;
use crate::event::operation::RegionChange;

/// Deeper call stacks are cut: definitions may form a circle.
const DEEPEST: usize = 1024;

impl LocationReader<'_> {
    /// The thread is in this calling context now, found by a sample or an instrumented call; the innermost `entered`
    /// calls are new. Calls around them go on if they are of the same regions, also in another line of these.
    pub(super) fn be_in(&mut self, context: Option<u32>, entered: u32, time: Timestamp) {
        let definitions = &self.archive.definitions;
        let around = |c: &u32| definitions.calling_context(*c).and_then(|c| c.parent);
        let mut now: Vec<u32> = std::iter::successors(context, around).take(DEEPEST).collect();
        now.reverse();
        let region = |c: u32| definitions.calling_context(c).map_or(u32::MAX, |c| c.region);
        let old = now.len().saturating_sub(entered as usize);
        let both = self.contexts.iter().zip(&now).take(old);
        let common = both.take_while(|(a, b)| region(**a) == region(**b)).count();
        for left in self.contexts.split_off(common).into_iter().rev() {
            self.leave_region(region(left), time);
        }
        now.iter().skip(common).for_each(|entered| self.enter(region(*entered), time));
        self.contexts = now;
    }

    /// After the record at `time`: keep what is innermost from now on, where that is wanted. What the tracer made up is
    /// no region.
    pub(super) fn follow_region(&mut self, time: Timestamp) {
        let Some(changes) = &mut self.run.regions else { return };
        let is_real = |frame: &&Frame| frame.symbol.class != Class::Artificial;
        let region = self.frames.iter().rfind(is_real).map(|frame| frame.symbol.name);
        if changes.last().is_none_or(|last| last.region != region) {
            changes.push(RegionChange { time, region });
        }
    }

    /// The last record was at `time`.
    pub(super) fn end_regions(&mut self, time: Timestamp) {
        let changes = self.run.regions.iter_mut().filter(|changes| !changes.is_empty());
        changes.for_each(|changes| changes.push(RegionChange { time, region: None }));
    }
}
