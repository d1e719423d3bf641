//! Waits within one process, of its threads and accelerators: for the thread that leads a team, the slowest of a team,
//! the owner of a lock, an accelerator that is not done.
//!
//! In: what each location recorded of teams, locks and synchronisations. Out: messages and collective operations
//! between its operations, all within one process. Parts of a team's threads belong together by their order in the
//! team, and so do barriers within a part; locks by the order in which they were acquired. Cost: linear, and a search
//! per synchronisation.

use super::NOWHERE;
use super::recorded::{
    Fork, LocationRun, Part, PartBarrier, Released, TaskCompletion, TaskWait, Tasks, ThreadExit, ThreadJoin,
};
use super::task_graph;
use crate::base::time::Timestamp;
use crate::event::operation::{CollectiveInstance, CollectiveKind, Message, OperationPlace};
use crate::input::otf2::{Archive, CreatedThread, LocationKind, TaskKey};
use crate::model::carrier::Carrier;
use foldhash::HashMap;
use std::collections::BTreeMap;

/// Add what ties the locations of each process together.
pub(super) fn tie(
    archive: &Archive,
    locations: &[LocationRun],
    messages: &mut Vec<Message>,
    collectives: &mut Vec<CollectiveInstance>,
) {
    let process = |stream: u32| archive.definitions.locations.get(stream as usize).map_or(0, |l| l.process_index);
    teams(locations, messages, collectives);
    locks(&process, locations, messages);
    tasks(&process, locations, messages);
    joins(&process, locations, messages);
    accelerators(archive, locations, messages);
    launches(archive, locations, messages);
    task_graph::tie(&process, locations, messages);
}

/// Forks and barriers: by team and by the how-manieth time that it works.
fn teams(locations: &[LocationRun], messages: &mut Vec<Message>, collectives: &mut Vec<CollectiveInstance>) {
    let mut parts: BTreeMap<(usize, u32), Vec<(u32, usize)>> = BTreeMap::new();
    for (stream, location) in (0_u32..).zip(locations) {
        let mut how_many: HashMap<usize, u32> = HashMap::default();
        for (at, part) in location.parts.iter().enumerate() {
            let n = how_many.entry(part.group).or_default();
            parts.entry((part.group, *n)).or_default().push((stream, at));
            *n += 1;
        }
    }
    let part = |(stream, at): &(u32, usize)| -> Option<&Part> { locations.get(*stream as usize)?.parts.get(*at) };
    for members in parts.values() {
        let forked = members.iter().find_map(|m| Some((m.0, part(m)?.fork?)));
        for member in members {
            if let (Some((master, Fork { time: sent, operation })), Some(this)) =
                (forked, part(member).filter(|p| p.idle != NOWHERE))
            {
                let (from, to) = (
                    OperationPlace { stream: master, operation },
                    OperationPlace { stream: member.0, operation: this.idle },
                );
                messages.push(Message { carrier: Carrier::Fork, from, to, sent, received: this.time });
            }
        }
        let barriers = |(stream, at): &(u32, usize)| -> &[PartBarrier] {
            let Some(location) = locations.get(*stream as usize) else { return &[] };
            let all = &location.barriers;
            let (from, to) =
                (all.partition_point(|b| (b.part as usize) < *at), all.partition_point(|b| b.part as usize <= *at));
            all.get(from..to).unwrap_or(&[])
        };
        let most = members.iter().map(|m| barriers(m).len()).max().unwrap_or(0);
        for n in 0..most {
            let there =
                |m: &(u32, usize)| Some(OperationPlace { stream: m.0, operation: barriers(m).get(n)?.operation });
            let members: Vec<OperationPlace> = members.iter().filter_map(there).collect();
            if members.len() > 1 {
                collectives.push(CollectiveInstance { exchange: CollectiveKind::TeamBarrier, members });
            }
        }
    }
}

/// Messages from the previous owner of a lock, which released it while another thread waited for it.
fn locks(process: &impl Fn(u32) -> u32, locations: &[LocationRun], messages: &mut Vec<Message>) {
    let mut released: HashMap<(u32, u32, u32), (u32, Released)> = HashMap::default();
    for (stream, location) in (0_u32..).zip(locations) {
        for r in &location.released {
            released.insert((process(stream), r.lock, r.order), (stream, *r));
        }
    }
    for (stream, location) in (0_u32..).zip(locations) {
        for a in &location.acquired {
            let Some(before) = a.order.checked_sub(1) else { continue };
            let Some((from, r)) = released.get(&(process(stream), a.lock, before)) else { continue };
            let to = OperationPlace { stream, operation: a.operation };
            let waited = location.operations.get(a.operation as usize).is_some_and(|o| o.start < r.time);
            if *from != stream && waited {
                let from = OperationPlace { stream: *from, operation: r.operation };
                messages.push(Message { carrier: Carrier::Lock, from, to, sent: r.time, received: a.time });
            }
        }
    }
}

/// Messages to waits for tasks, from the last of these tasks that another thread ran.
fn tasks(process: &impl Fn(u32) -> u32, locations: &[LocationRun], messages: &mut Vec<Message>) {
    // Tasks made by what a thread does as part of its team are that thread's.
    type Maker = (u32, Option<TaskKey>, u32);
    let maker = |stream: u32, by: Option<TaskKey>| -> Maker { (process(stream), by, by.map_or(stream, |_| 0)) };
    let mut made_by: HashMap<(u32, TaskKey), Maker> = HashMap::default();
    let all = || (0_u32..).zip(locations).filter(|(_, l)| l.tasks != Tasks::default());
    for (stream, location) in all() {
        let made = location.tasks.created.iter();
        made_by.extend(made.map(|t| ((process(stream), t.task), maker(stream, t.creator))));
    }
    let mut done: HashMap<Maker, Vec<(Timestamp, OperationPlace)>> = HashMap::default();
    for (stream, location) in all() {
        for TaskCompletion { task, operation, time } in location.tasks.completed.iter().copied() {
            if let Some(by) = made_by.get(&(process(stream), task)) {
                done.entry(*by).or_default().push((time, OperationPlace { stream, operation }));
            }
        }
    }
    done.values_mut().for_each(|all| all.sort_unstable());
    for (stream, location) in all() {
        for TaskWait { operation, creator } in &location.tasks.waits {
            let (Some(wait), Some(done)) =
                (location.operations.get(*operation as usize), done.get(&maker(stream, *creator)))
            else {
                continue;
            };
            let before = done.partition_point(|(time, _)| *time <= wait.end);
            let during = done[..before].iter().rev().take_while(|(time, _)| *time > wait.start);
            if let Some((time, from)) = during.into_iter().find(|(_, from)| from.stream != stream) {
                let to = OperationPlace { stream, operation: *operation };
                messages.push(Message { carrier: Carrier::Task, from: *from, to, sent: *time, received: *time });
            }
        }
    }
}

/// Messages to waits for the end of a thread, from that thread's last operation.
fn joins(process: &impl Fn(u32) -> u32, locations: &[LocationRun], messages: &mut Vec<Message>) {
    let mut ended: HashMap<(u32, CreatedThread), (OperationPlace, Timestamp)> = HashMap::default();
    for (stream, location) in (0_u32..).zip(locations) {
        if let Some(ThreadExit { thread, operation, time }) = location.ended {
            ended.insert((process(stream), thread), (OperationPlace { stream, operation }, time));
        }
    }
    for (stream, location) in (0_u32..).zip(locations) {
        for ThreadJoin { operation, thread } in &location.joins {
            let Some((from, time)) = ended.get(&(process(stream), *thread)) else { continue };
            let wait = location.operations.get(*operation as usize);
            if from.stream != stream && wait.is_some_and(|wait| wait.start < *time) {
                let to = OperationPlace { stream, operation: *operation };
                messages.push(Message { carrier: Carrier::Exit, from: *from, to, sent: *time, received: *time });
            }
        }
    }
}

/// A queue that had nothing to do waited for the last call that handed work over before it went on: had the work been
/// there earlier, it would have begun earlier.
fn launches(archive: &Archive, locations: &[LocationRun], messages: &mut Vec<Message>) {
    let all = || (0_u32..).zip(archive.definitions.locations.iter().zip(locations));
    let mut handed: HashMap<u32, Vec<(Timestamp, OperationPlace)>> = HashMap::default();
    for (stream, (l, run)) in all() {
        let starts = run.launches.iter().filter_map(|at| {
            Some((run.operations.get(*at as usize)?.start, OperationPlace { stream, operation: *at }))
        });
        handed.entry(l.process_index).or_default().extend(starts);
    }
    handed.values_mut().for_each(|calls| calls.sort_unstable());
    for (stream, (l, run)) in all() {
        let Some(calls) = handed.get(&l.process_index) else { continue };
        for at in &run.idle {
            let Some(idle) = run.operations.get(*at as usize) else { continue };
            let before = calls.partition_point(|(start, _)| *start <= idle.end);
            let last = before.checked_sub(1).and_then(|last| calls.get(last));
            if let Some((start, from)) = last.filter(|(start, _)| *start > idle.start) {
                let to = OperationPlace { stream, operation: *at };
                messages.push(Message { carrier: Carrier::Launch, from: *from, to, sent: *start, received: idle.end });
            }
        }
    }
}

/// A host's wait for an accelerator ends with the last of the accelerator's operations that ended during it.
fn accelerators(archive: &Archive, locations: &[LocationRun], messages: &mut Vec<Message>) {
    let all = || (0_u32..).zip(archive.definitions.locations.iter().zip(locations));
    let queues: Vec<(u32, u32, &LocationRun)> = all()
        .filter(|(_, (l, _))| l.kind == LocationKind::Stream)
        .map(|(stream, (l, run))| (stream, l.process_index, run))
        .collect();
    for (stream, (l, run)) in all() {
        for at in &run.synchronised {
            let Some(wait) = run.operations.get(*at as usize) else { continue };
            let ended = |queue: &(u32, u32, &LocationRun)| -> Option<(Timestamp, OperationPlace)> {
                let done = queue.2.operations.partition_point(|o| o.end <= wait.end).checked_sub(1)?;
                let last = queue.2.operations.get(done).filter(|o| o.end > wait.start)?;
                Some((last.end, OperationPlace { stream: queue.0, operation: done as u32 }))
            };
            let of_process = queues.iter().filter(|(_, process, _)| *process == l.process_index);
            if let Some((sent, from)) = of_process.filter_map(ended).max_by_key(|(end, _)| *end) {
                let to = OperationPlace { stream, operation: *at };
                messages.push(Message { carrier: Carrier::Accelerator, from, to, sent, received: sent });
            }
        }
    }
}
