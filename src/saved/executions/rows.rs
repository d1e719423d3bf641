//! Executions and their own times.
//!
//! In: executions. Out: bytes, and executions from them. Values of one sort follow each other, so that the container
//! deflates them well: the contexts of most executions are those of an earlier one, and so are times where executions
//! share a part of their paths, as the iterations of ranks do that wait for each other.

use crate::base::pack::{Pack, Unpack};
use crate::base::time::Timestamp;
use crate::model::context::ContextId;
use crate::model::execution::{ContextTime, Executions, Sparse};
use crate::model::{Model, ThreadInfoId, TraceId};

/// The most numbers that a section may unpack to, per byte of it and in addition: 200,000 executions of three contexts
/// each have about two per byte.
const PER_BYTE: u64 = 128;
const FREE: u64 = 1 << 20;

/// The most numbers that this many bytes may unpack to.
pub(super) fn most_numbers(bytes: usize) -> u64 {
    PER_BYTE.saturating_mul(bytes as u64).saturating_add(FREE)
}

/// The number of executions; then of all of them the starts, each as the distance from the one before, the durations,
/// the threads, the traces with the bit that says whether the path is unsure, and the CPUs.
pub(super) fn pack_executions(executions: &Executions, pack: &mut Pack) {
    let Executions { start, duration, who, trace, cpu, unsure, columns: _, own: _, segments: _ } = executions;
    pack.number(start.len() as u64);
    let mut before = Timestamp::ZERO;
    for start in start.iter() {
        pack.signed(start.ns().wrapping_sub(before.ns()));
        before = start;
    }
    duration.iter().for_each(|duration| pack.number(duration.unsigned_abs()));
    who.iter().for_each(|who| pack.number(who.raw().into()));
    let bits = |(trace, unsure): (TraceId, bool)| u64::from(trace.raw()) << 1 | u64::from(unsure);
    trace.iter().zip(unsure.iter()).for_each(|both| pack.number(bits(both)));
    // Unknown, the largest, becomes the smallest.
    (0..start.len()).for_each(|i| pack.number(cpu.get(i).map_or(0, |cpu| cpu.wrapping_add(1)).into()));
}

/// Executions without own times and metrics, in order; of which threads and traces there are, `tables` knows.
pub(super) fn unpack_executions(unpack: &mut Unpack<'_>) -> Option<Executions> {
    let count = unpack.index(unpack.0.len().checked_add(1)?)?;
    let mut executions = Executions::default();
    let mut before = Timestamp::ZERO;
    for _ in 0..count {
        before = Timestamp::new(before.ns().wrapping_add(unpack.signed()?));
        executions.start.push(before);
    }
    let mut last = None;
    for start in executions.start.iter() {
        let duration = i64::try_from(unpack.number()?).ok()?;
        // No end may leave the line.
        let span = (start, start.checked_add(duration)?);
        (last <= Some(span)).then_some(())?;
        last = Some(span);
        executions.duration.push(duration);
    }
    for _ in 0..count {
        executions.who.push(ThreadInfoId::from_raw(u32::try_from(unpack.number()?).ok()?));
    }
    for _ in 0..count {
        let trace = unpack.number()?;
        executions.unsure.push(trace & 1 == 1);
        executions.trace.push(TraceId::from_raw(u32::try_from(trace >> 1).ok()?));
    }
    for _ in 0..count {
        executions.cpu.push(u16::try_from(unpack.number()?).ok()?.wrapping_sub(1));
    }
    Some(executions)
}

/// The number of bytes of all contexts: of each execution their number, and each as the distance from the one before.
/// Then the times in these contexts; the last of an execution is what is left of its duration.
pub(super) fn pack_own(executions: &Executions, pack: &mut Pack) {
    let (mut contexts, mut times) = (Pack::default(), Pack::default());
    for execution in 0..executions.len() {
        let row = executions.own.row(execution);
        let last = row.len().saturating_sub(1);
        contexts.number(row.len() as u64);
        let mut before = 0;
        for (at, ContextTime { context, ns }) in row.enumerate() {
            contexts.number((context.raw() - before).into());
            before = context.raw();
            if at < last {
                times.number(ns);
            }
        }
    }
    pack.number(contexts.0.len() as u64);
    pack.0.extend(contexts.0);
    pack.0.extend(times.0);
}

/// Own times, which add up to the durations; contexts ascending. The steps from them to their roots are bounded by the
/// bytes.
pub(super) fn unpack_own(model: &Model, unpack: &mut Unpack<'_>) -> Option<Sparse> {
    let Model { executions, contexts, .. } = model;
    let mut most = most_numbers(unpack.0.len());
    let length = unpack.index(unpack.0.len())?;
    let (shapes, times) = unpack.0.split_at_checked(length)?;
    let (mut shapes, mut times) = (Unpack(shapes), Unpack(times));
    let mut own = Sparse::default();
    let mut row: Vec<ContextTime> = Vec::new();
    for execution in 0..executions.len() {
        row.clear();
        let (mut at, mut left) = (0, executions.duration(execution) as u64);
        let count = shapes.number()?;
        for entry in 0..count {
            let step = shapes.index(contexts.len())?;
            (entry == 0 || step > 0).then_some(())?;
            at += step;
            (at < contexts.len()).then_some(())?;
            let ns = if entry + 1 == count { left } else { times.number()? };
            left = left.checked_sub(ns)?;
            let context = ContextId::at(at);
            most = most.checked_sub(u64::from(contexts.depth(context)) + 1)?;
            row.push(ContextTime { context, ns });
        }
        (left == 0).then_some(())?;
        own.push_sorted(&row);
    }
    own.shrink();
    (shapes.0.is_empty()).then_some(())?;
    unpack.0 = times.0;
    Some(own)
}
