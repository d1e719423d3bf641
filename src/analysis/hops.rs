//! Delays from thread to thread: from the one whose activity explains an execution's time to the execution's own.
//!
//! Contexts name threads as people do, and several threads may share a name; a propagation path needs the thread itself
//! and the carrier of the delay. In: the threads that a critical path goes through (`ecct`). Out: a tree of [`Hop`]s
//! whose roots are the executions' own threads. Interning a child is one look-up; parents precede children.

use crate::model::carrier::Carrier;
use crate::timeline::ThreadId;
use foldhash::HashMap;

crate::base::names::handle! {
/// A [`Hop`] of [`Hops`].
HopId, }

/// A thread that delayed another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hop {
    /// The victim; `None` for the execution's own thread.
    pub above: Option<HopId>,
    pub thread: ThreadId,
    /// The carrier of the delay; without meaning for the execution's own thread.
    pub carrier: Carrier,
}

/// A table of hops.
#[derive(Clone, Debug, Default)]
pub struct Hops {
    all: Vec<Hop>,
    ids: HashMap<Hop, HopId>,
}

impl Hops {
    /// The hop from `above` to `thread`, added where it is new.
    pub fn child(&mut self, above: Option<HopId>, thread: ThreadId, carrier: Carrier) -> HopId {
        let hop = Hop { above, thread, carrier };
        *self.ids.entry(hop).or_insert_with(|| {
            self.all.push(hop);
            HopId::at(self.all.len() - 1)
        })
    }

    /// A hop.
    pub fn get(&self, id: HopId) -> Option<&Hop> {
        self.all.get(id.index())
    }

    /// All hops in order of their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Hop> {
        self.all.iter()
    }

    /// The hops from the execution's own thread to this one.
    pub fn path_to(&self, id: HopId) -> Vec<HopId> {
        let above = |id: &HopId| self.get(*id).and_then(|hop| hop.above);
        let mut path: Vec<HopId> = std::iter::successors(Some(id), above).collect();
        path.reverse();
        path
    }

    /// Add other hops; gives the new id of each. Merging in order of the executions gives the same tree for any
    /// number of workers.
    pub fn merge(&mut self, other: &Hops) -> Vec<HopId> {
        let mut ids: Vec<HopId> = Vec::with_capacity(other.all.len());
        for hop in &other.all {
            let above = hop.above.and_then(|above| ids.get(above.index()).copied());
            ids.push(self.child(above, hop.thread, hop.carrier));
        }
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merge_keeps_the_path_of_each_hop() {
        let mut one = Hops::default();
        let root = one.child(None, ThreadId::at(1), Carrier::Wakeup);
        let lock = one.child(Some(root), ThreadId::at(2), Carrier::Lock);
        let mut other = Hops::default();
        other.child(None, ThreadId::at(9), Carrier::Wakeup);
        let root = other.child(None, ThreadId::at(1), Carrier::Wakeup);
        let (lock_again, disk) = (
            other.child(Some(root), ThreadId::at(2), Carrier::Lock),
            other.child(Some(root), ThreadId::at(2), Carrier::Disk),
        );
        let ids = one.merge(&other);
        assert_eq!(ids[lock_again.index()], lock);
        let path: Vec<_> = one.path_to(ids[disk.index()]).iter().map(|id| one.get(*id).unwrap().carrier).collect();
        assert_eq!(path, [Carrier::Wakeup, Carrier::Disk]);
        assert_eq!(one.iter().len(), 4);
    }
}
