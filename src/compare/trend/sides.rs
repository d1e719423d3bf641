//! What the executions on each side of the changes of a trend spent in their calling contexts.
//!
//! In: the parts of recordings, one after the other, with the side of each execution. Out: for each change the
//! comparison of what is after it with what is before. In memory are the united contexts and for each side their sums,
//! however many recordings there are. Cost: the times of the executions, each by its depth. ALGORITHMS.md 7.13.

use super::Trend;
use crate::base::ctx::{Cancel, Cancelled};
use crate::base::statistics::Sums;
use crate::compare::partials::FleetSums;
use crate::model::Model;
use crate::model::context::ContextId;
use crate::model::execution::InclusiveTimes;
use crate::model::partials::{ContextTotals, DurationHistogram, GroupTotals, HostTotals};
use crate::model::united::{ModelTables, Renamed, TableUnion};
use crate::model::weights::KeptNumbers;
use std::collections::BTreeMap;

/// The sums of one side.
#[derive(Clone, Debug, Default)]
struct SideSums {
    durations: Sums,
    squared_weights: u128,
    kept: KeptNumbers,
    by_length: DurationHistogram,
    /// Executions of which not all is known.
    unsure: u64,
    /// By context of the union.
    contexts: Vec<ContextTotals>,
}

/// The sums of all sides.
#[derive(Default)]
pub struct SidesSums {
    union: TableUnion,
    sides: Vec<SideSums>,
}

impl SidesSums {
    /// Nothing yet, on so many sides.
    pub fn new(sides: usize) -> SidesSums {
        SidesSums { union: TableUnion::default(), sides: vec![SideSums::default(); sides] }
    }

    /// Add the executions of a part that are on a side.
    pub fn add(
        &mut self,
        model: &Model,
        members: impl Iterator<Item = (usize, usize)>,
        cancel: &Cancel,
    ) -> Result<(), Cancelled> {
        let Model { names, who, contexts, executions, .. } = model;
        let weights = executions.weights();
        let mut local: BTreeMap<usize, Vec<ContextTotals>> = BTreeMap::new();
        let mut inclusive = InclusiveTimes::new(contexts);
        for (execution, side) in members {
            cancel.check()?;
            let sums = &mut self.sides[side];
            let ns = u64::try_from(executions.duration(execution)).unwrap_or(0);
            let weight = weights.of(execution);
            sums.durations.n += weight;
            sums.durations.put_times(ns, weight);
            sums.squared_weights += u128::from(weight).pow(2);
            sums.kept.put(weight);
            sums.by_length.put(executions.duration(execution), weight);
            sums.unsure += u64::from(executions.unsure.at(execution)) * weight;
            let totals = local.entry(side).or_insert_with(|| vec![ContextTotals::default(); contexts.len()]);
            inclusive.of(executions.own.row(execution), |context, ns| totals[context.index()].put(ns, weight));
        }
        if local.is_empty() {
            return Ok(());
        }
        let tables = ModelTables { names: names.clone(), who: who.clone(), contexts: contexts.clone() };
        let ids = self.union.add(&tables, &Renamed::new(), &BTreeMap::new());
        for (side, totals) in local {
            let sums = &mut self.sides[side].contexts;
            for (context, totals) in (0..).map(ContextId::at).zip(totals) {
                let place = ids.context(context).index();
                if sums.len() <= place {
                    sums.resize(place + 1, ContextTotals::default());
                }
                sums[place].add(&totals);
            }
        }
        Ok(())
    }

    /// Compare the sides of each change.
    pub fn compare(self, trend: &mut Trend, cancel: &Cancel) {
        let (tables, order) = self.union.sorted();
        let model = Model { names: tables.names, contexts: tables.contexts, ..Model::default() };
        let totals = |side: &SideSums| {
            let contexts = side.contexts.iter().enumerate().filter(|(_, totals)| totals.having > 0);
            let of = |at: usize| order.context(ContextId::at(at));
            let mut contexts: Vec<_> = contexts.map(|(at, totals)| (of(at), *totals)).collect();
            contexts.sort_unstable_by_key(|(context, _)| *context);
            let SideSums { durations, squared_weights, by_length, .. } = side.clone();
            GroupTotals { durations, squared_weights, by_length, contexts }
        };
        for (change, sides) in trend.changes.iter_mut().zip(self.sides.windows(2)) {
            let mut fleet = FleetSums::new(model.contexts.len());
            let mut by_length = sides[0].by_length.clone();
            by_length.add(&sides[1].by_length);
            let unsure = sides.iter().map(|side| side.unsure).sum();
            let groups = [totals(&sides[1]), totals(&sides[0])];
            let mut kept = sides[0].kept;
            kept.add(sides[1].kept);
            fleet.put("", &HostTotals { by_length, kept, unsure, groups, ..HostTotals::default() });
            change.comparison = fleet.compared(&model, cancel);
        }
    }
}
