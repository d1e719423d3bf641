//! The values of hardware counters, by owner: a thread or a CPU.
//!
//! In: the values of a counter in order of time, some at a time. Out: a store with a line for each owner. All owners
//! are known at the end only: a line gets the next number when its owner is first met, and that of its place among the
//! sorted owners then. Cost: a stable sort of the values that come at a time, a hash look-up for each of their owners.

use super::builder::LineStoreBuilder;
use super::parts::LineStore;
use crate::base::names::NameId;
use crate::timeline::{Counter, CounterOwner, CounterValue};
use foldhash::HashMap;

/// The values of a hardware counter.
#[derive(Clone, Debug)]
pub struct CounterStore {
    pub name: NameId,
    /// Sorted; their positions are their lines.
    pub owners: Vec<CounterOwner>,
    pub values: LineStore<CounterValue>,
}

impl CounterStore {
    /// The counter with all its values.
    #[cfg(not(program))]
    pub fn to_counter(&self) -> Counter {
        let values = (0..self.owners.len()).flat_map(|line| self.values.line(line).all()).collect();
        Counter { name: self.name, values }
    }
}

/// The values of a hardware counter while they are sealed.
#[derive(Clone, Debug)]
pub struct CounterBuilder {
    pub name: NameId,
    /// The lines of its owners; numbered anew at the end, when all owners are known.
    lines: HashMap<CounterOwner, u32>,
    pub values: LineStoreBuilder<CounterValue>,
}

impl CounterBuilder {
    /// A counter without values.
    pub fn new(name: NameId) -> CounterBuilder {
        CounterBuilder { name, lines: HashMap::default(), values: LineStoreBuilder::default() }
    }

    /// Add values in order of time, which come after those that it has.
    pub fn push(&mut self, values: &mut [CounterValue]) {
        // The sort is stable: of several values at one time the last event's comes last.
        values.sort_by_key(|value| value.owner);
        for same in values.chunk_by(|a, b| a.owner == b.owner) {
            let Some(first) = same.first() else { continue };
            let next = self.lines.len() as u32;
            let line = *self.lines.entry(first.owner).or_insert(next);
            self.values.push(line as usize, same);
        }
    }

    /// The store of all values, by owner.
    pub fn finish(mut self) -> CounterStore {
        let mut owners: Vec<(CounterOwner, u32)> = self.lines.into_iter().collect();
        owners.sort_unstable();
        let mut lines = vec![0; owners.len()];
        for (line, (_, old)) in (0..).zip(&owners) {
            lines[*old as usize] = line;
        }
        self.values.renumber(&lines);
        let owners: Vec<CounterOwner> = owners.into_iter().map(|(owner, _)| owner).collect();
        CounterStore { name: self.name, values: self.values.finish(owners.len()), owners }
    }
}
