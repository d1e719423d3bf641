//! A sample of executions: all slow ones, and of the others one in so many, with weights.
//!
//! In: a model, its slow executions, and one in how many of the others is kept. Out: the same model with weights; then
//! without those of weight zero. The others, in order of their durations, are divided into strata of that size; of each
//! the execution is kept whose identity (host, thread, begin, end) has the least hash, and represents its stratum. So
//! each is kept with the same chance, numbers of executions are exact, sums are unbiased, durations are within a
//! stratum of what they were, and what is kept follows from the executions alone. Cost: a sort. ALGORITHMS.md 6.6.

use super::column_values::ColumnValues;
use super::context::{ContextId, Contexts};
use super::execution::{ExecutionId, Executions};
use super::metric::{Column, Metric};
use super::{Model, ThreadInfo, ThreadInfoId};
use crate::base::digest::Digester;
use crate::base::packed::bytes_of;
use crate::base::time::Span;
use std::collections::BTreeSet;

/// Give executions their weights; those that are not kept have none: zero. Nothing where all are kept.
pub fn weigh(model: &mut Model, slow: &[ExecutionId], one_in: u64, seed: u64) {
    let e = &model.executions;
    let mut weights: Vec<i64> = vec![0; e.len()];
    slow.iter().for_each(|id| weights[id.index()] = 1);
    let hashes = identities(model, seed);
    let mut others: Vec<usize> = (0..e.len()).filter(|i| weights[*i] == 0).collect();
    others.sort_unstable_by_key(|i| (e.duration(*i), hashes[*i], *i));
    let size = usize::try_from(one_in).unwrap_or(usize::MAX).max(1);
    for stratum in others.chunks(size) {
        if let Some(kept) = stratum.iter().min_by_key(|i| (hashes[**i], **i)) {
            weights[*kept] = stratum.len() as i64;
        }
    }
    if weights.iter().any(|weight| *weight != 1) {
        let place = e.columns.partition_point(|column| column.metric < Metric::Weight);
        model.executions.columns.insert(place, Column { metric: Metric::Weight, values: weights.into() });
    }
}

/// By execution a number that its host, its thread, its begin and its end decide, evenly distributed.
fn identities(model: &Model, seed: u64) -> Vec<u64> {
    let thread = |who: &ThreadInfo| {
        let mut digester = Digester::default();
        digester.add_whole(model.names.get(who.host).as_bytes());
        digester.add(&[who.pid.to_le_bytes(), who.tid.to_le_bytes()].concat());
        let bytes = bytes_of(&digester.finish());
        bytes.iter().fold(seed, |hash, byte| mixed(hash ^ u64::from(*byte)))
    };
    let threads: Vec<u64> = model.who.iter().map(thread).collect();
    let e = &model.executions;
    let of = |(who, span): (ThreadInfoId, Span)| {
        let thread = threads.get(who.index()).copied().unwrap_or(seed);
        mixed(mixed(thread ^ span.start.ns() as u64) ^ span.end.ns() as u64)
    };
    e.who.iter().zip(e.spans()).map(of).collect()
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): each bit of the result depends on each bit of the number.
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ number >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ number >> 31
}

/// True where executions have weights of zero: they were weighed, and those that are not kept are still there.
pub fn is_weighed(model: &Model) -> bool {
    model.executions.column(&Metric::Weight).is_some_and(|column| column.values.iter().any(|weight| weight == 0))
}

/// The executions that are kept, with the contexts in which they spent time. How long threads were behind a frame stays
/// what all executions had.
#[must_use]
pub fn kept(mut model: Model) -> Model {
    let all = std::mem::take(&mut model.executions);
    let weights: Vec<i64> = all.column(&Metric::Weight).map_or_else(Vec::new, |column| column.values.iter().collect());
    let is_kept = |i: usize| weights.get(i) != Some(&0);
    let kept = (0..all.len()).filter(|i| is_kept(*i));
    let used = kept.flat_map(|i| all.own.row(i)).map(|time| time.context).collect();
    let ids = retain(&mut model.contexts, &used);
    let columns =
        all.columns.iter().map(|column| Column { metric: column.metric.clone(), values: ColumnValues::default() });
    let mut executions = Executions { columns: columns.collect(), ..Executions::default() };
    for (_, (mut row, values)) in all.into_rows().enumerate().filter(|(i, _)| is_kept(*i)) {
        row.own.iter_mut().for_each(|time| time.context = ids[time.context.index()].unwrap_or(time.context));
        executions.push(row);
        executions.columns.iter_mut().zip(values).for_each(|(column, value)| column.values.push(value));
    }
    executions.own.shrink();
    model.executions = executions;
    drop_threads(&mut model);
    model
}

/// Keep contexts and those above them. Returns by old id the new one.
fn retain(contexts: &mut Contexts, used: &BTreeSet<ContextId>) -> Vec<Option<ContextId>> {
    let mut stays = vec![false; contexts.len()];
    used.iter().for_each(|id| stays[id.index()] = true);
    for at in (0..stays.len()).rev().map(ContextId::at) {
        if let Some(parent) = contexts.parent(at).filter(|_| stays[at.index()]) {
            stays[parent.index()] = true;
        }
    }
    let old = std::mem::take(contexts);
    let mut ids: Vec<Option<ContextId>> = Vec::with_capacity(old.len());
    for ((parent, frame), stays) in old.nodes().zip(stays) {
        let parent = parent.and_then(|parent| ids[parent.index()]);
        ids.push(stays.then(|| contexts.child(parent, frame)));
    }
    let held = old.who.iter().filter_map(|((context, who), ns)| Some(((ids[context.index()]?, *who), *ns)));
    contexts.who = held.collect();
    ids
}

/// Leave out threads that run no kept execution and are behind no frame.
fn drop_threads(model: &mut Model) {
    let mut used: BTreeSet<usize> = model.executions.who.iter().map(|who| who.index()).collect();
    used.extend(model.contexts.who.keys().map(|(_, who)| who.index()));
    let mut ids = vec![ThreadInfoId::at(0); model.who.len()];
    let all = std::mem::take(&mut model.who);
    for (at, who) in all.into_iter().enumerate().filter(|(at, _)| used.contains(at)) {
        ids[at] = ThreadInfoId::at(model.who.len());
        model.who.push(who);
    }
    let e = &mut model.executions;
    e.who = std::mem::take(&mut e.who).into_iter().map(|who| ids[who.index()]).collect();
    let held = std::mem::take(&mut model.contexts.who).into_iter();
    model.contexts.who = held.map(|((context, who), ns)| ((context, ids[who.index()]), ns)).collect();
}
