//! One-sided communication: how ranks wait for each other at the synchronisations of a window.
//!
//! In: posts, starts, completes and waits of each location with the ranks that they are about, and locks of windows.
//! Out: messages between operations. The n-th start of an origin for a target goes on when the target has posted for
//! the n-th time; the target's n-th wait ends when its origins have completed. A lock is waited for from the last who
//! gave it back. Fences are collectives. Cost: linear, and a search per lock.

use super::recorded::{LocationRun, SyncKind, WindowLock};
use crate::base::time::Timestamp;
use crate::event::operation::{Message, OperationPlace};
use crate::input::otf2::{Archive, LocationId};
use crate::model::carrier::Carrier;
use foldhash::HashMap;

/// Add what ties ranks together over windows.
pub(super) fn tie(archive: &Archive, locations: &[LocationRun], messages: &mut Vec<Message>) {
    access(archive, locations, messages);
    locks(locations, messages);
}

/// A window and two locations: of who exposes memory, and who accesses it.
type Pair = (u32, u32, u32);

fn access(archive: &Archive, locations: &[LocationRun], messages: &mut Vec<Message>) {
    // By target and origin, in order: posts and completes.
    let (mut posts, mut completes): (HashMap<Pair, Vec<OperationPlace>>, HashMap<Pair, Vec<OperationPlace>>) =
        Default::default();
    let members = |group: u32| archive.definitions.group(group).iter().flatten().map(|m: &LocationId| m.raw());
    // A complete is about those of the last start, a wait about those of the last post.
    let each = |sink: &mut dyn FnMut(SyncKind, Pair, OperationPlace)| {
        for (stream, location) in (0_u32..).zip(locations) {
            for sync in &location.syncs {
                let place = OperationPlace { stream, operation: sync.operation };
                for other in members(sync.group) {
                    let pair = match sync.kind {
                        SyncKind::Post | SyncKind::Wait => (sync.window, stream, other),
                        SyncKind::Start | SyncKind::Complete => (sync.window, other, stream),
                    };
                    sink(sync.kind, pair, place);
                }
            }
        }
    };
    each(&mut |kind, pair, place| match kind {
        SyncKind::Post => posts.entry(pair).or_default().push(place),
        SyncKind::Complete => completes.entry(pair).or_default().push(place),
        _ => {}
    });
    let start = |place: OperationPlace| -> Option<Timestamp> {
        Some(locations.get(place.stream as usize)?.operations.get(place.operation as usize)?.start)
    };
    let end = |place: OperationPlace| -> Option<Timestamp> {
        Some(locations.get(place.stream as usize)?.operations.get(place.operation as usize)?.end)
    };
    let mut how_many: HashMap<(Pair, bool), usize> = HashMap::default();
    each(&mut |kind, pair, place| {
        let (from, carrier) = match kind {
            SyncKind::Start => (&posts, Carrier::Post),
            SyncKind::Wait => (&completes, Carrier::Complete),
            _ => return,
        };
        let n = how_many.entry((pair, kind == SyncKind::Start)).or_default();
        if let Some(from) = from.get(&pair).and_then(|all| all.get(*n)).copied()
            && let (Some(sent), Some(received)) = (start(from), end(place))
        {
            messages.push(Message { carrier, from, to: place, sent, received });
        }
        *n += 1;
    });
}

fn locks(locations: &[LocationRun], messages: &mut Vec<Message>) {
    // By window and the rank whose memory it is: when which rank gave it back.
    let mut released: HashMap<(u32, u32), Vec<(Timestamp, OperationPlace)>> = HashMap::default();
    for (stream, location) in (0_u32..).zip(locations) {
        for lock in location.window_locks.iter().filter(|l| l.release) {
            let place = OperationPlace { stream, operation: lock.operation };
            released.entry((lock.window, lock.remote)).or_default().push((lock.time, place));
        }
    }
    released.values_mut().for_each(|all| all.sort_unstable());
    for (stream, location) in (0_u32..).zip(locations) {
        for lock in location.window_locks.iter().filter(|l| !l.release) {
            let Some(all) = released.get(&(lock.window, lock.remote)) else { continue };
            let Some(wait) = location.operations.get(lock.operation as usize) else { continue };
            let before = all.partition_point(|(time, _)| *time <= lock.time);
            let last = all[..before].iter().rev().take_while(|(time, _)| *time > wait.start);
            if let Some((time, from)) = last.into_iter().find(|(_, from)| from.stream != stream) {
                let WindowLock { operation, time: received, .. } = *lock;
                let to = OperationPlace { stream, operation };
                messages.push(Message { carrier: Carrier::Lock, from: *from, to, sent: *time, received });
            }
        }
    }
}
