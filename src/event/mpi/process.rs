//! What the threads and accelerators of one process wait for: the thread that has a team do something, the slowest of a
//! team, whoever has a lock, an accelerator that is not done.
//!
//! In: what each location recorded of teams, locks and synchronisations. Out: messages and meetings between its operations, all
//! within one process. Parts of a team's threads belong together by their order in the team, and so do barriers within
//! a part; locks by the order in which they were acquired. Cost: linear, and a search per synchronisation.

use super::NOWHERE;
use super::recorded::{LocationRun, Part, Released};
use crate::base::time::Ns;
use crate::event::operation::{Exchange, Meeting, Message, Place, Via};
use crate::input::otf2::{Archive, LocationKind};
use foldhash::HashMap;
use std::collections::BTreeMap;

/// Add what ties the locations of each process together.
pub(super) fn tie(
    archive: &Archive,
    locations: &[LocationRun],
    messages: &mut Vec<Message>,
    meetings: &mut Vec<Meeting>,
) {
    teams(locations, messages, meetings);
    locks(archive, locations, messages);
    accelerators(archive, locations, messages);
}

/// Forks and barriers: by team and by the how-manieth time that it works.
fn teams(locations: &[LocationRun], messages: &mut Vec<Message>, meetings: &mut Vec<Meeting>) {
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
            if let (Some((master, (sent, operation))), Some(this)) =
                (forked, part(member).filter(|p| p.idle != NOWHERE))
            {
                let (from, to) =
                    (Place { stream: master, operation }, Place { stream: member.0, operation: this.idle });
                messages.push(Message { via: Via::Fork, from, to, sent, received: this.time });
            }
        }
        let barriers = |(stream, at): &(u32, usize)| -> &[u32] {
            let Some(location) = locations.get(*stream as usize) else { return &[] };
            let from = location.parts.get(*at).map_or(0, |p| p.barriers as usize);
            let to = location.parts.get(at + 1).map_or(location.barriers.len(), |p| p.barriers as usize);
            location.barriers.get(from..to).unwrap_or(&[])
        };
        let most = members.iter().map(|m| barriers(m).len()).max().unwrap_or(0);
        for n in 0..most {
            let there = |m: &(u32, usize)| Some(Place { stream: m.0, operation: *barriers(m).get(n)? });
            let members: Vec<Place> = members.iter().filter_map(there).collect();
            if members.len() > 1 {
                meetings.push(Meeting { exchange: Exchange::TeamBarrier, members });
            }
        }
    }
}

/// Who had a lock before: it was given back while another thread waited for it.
fn locks(archive: &Archive, locations: &[LocationRun], messages: &mut Vec<Message>) {
    let process = |stream: u32| archive.definitions.locations.get(stream as usize).map_or(0, |l| l.process_index);
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
            let to = Place { stream, operation: a.operation };
            let waited = location.operations.get(a.operation as usize).is_some_and(|o| o.start < r.time);
            if *from != stream && waited {
                let from = Place { stream: *from, operation: r.operation };
                messages.push(Message { via: Via::Lock, from, to, sent: r.time, received: a.time });
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
            let ended = |queue: &(u32, u32, &LocationRun)| -> Option<(Ns, Place)> {
                let done = queue.2.operations.partition_point(|o| o.end <= wait.end).checked_sub(1)?;
                let last = queue.2.operations.get(done).filter(|o| o.end > wait.start)?;
                Some((last.end, Place { stream: queue.0, operation: done as u32 }))
            };
            let of_process = queues.iter().filter(|(_, process, _)| *process == l.process_index);
            if let Some((sent, from)) = of_process.filter_map(ended).max_by_key(|(end, _)| *end) {
                let to = Place { stream, operation: *at };
                messages.push(Message { via: Via::Accelerator, from, to, sent, received: sent });
            }
        }
    }
}
