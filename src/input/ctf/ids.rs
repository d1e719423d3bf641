//! Event ids to record classes.

use super::schema::EventClass;
use crate::input::record::ClassId;
use foldhash::HashMap;
use get_size2::GetSize;
use std::sync::Arc;

/// The record class of each event id of a stream class.
#[derive(Debug, GetSize)]
pub(super) enum EventIds {
    /// Event headers have no id: there is one class.
    Only(ClassId),
    /// Ids are small: the class is at position `id`.
    Dense(Vec<Option<ClassId>>),
    /// Ids are far apart.
    Sparse(HashMap<u64, ClassId>),
}

impl EventIds {
    /// The table of a stream class whose first event class is `first`.
    pub(super) fn new(events: &[Arc<EventClass>], first: usize, has_id: bool) -> EventIds {
        let class = |(i, event): (usize, &Arc<EventClass>)| (event.id, ClassId::at(first + i));
        if let ([_], false) = (events, has_id) {
            return EventIds::Only(ClassId::at(first));
        }
        let most = events.iter().map(|e| e.id).max().unwrap_or(0);
        if most < 4 * events.len() as u64 + 1024 {
            let mut table = vec![None; most as usize + 1];
            for (id, class) in events.iter().enumerate().map(class) {
                if let Some(place) = table.get_mut(id as usize) {
                    *place = Some(class);
                }
            }
            return EventIds::Dense(table);
        }
        EventIds::Sparse(events.iter().enumerate().map(class).collect())
    }

    /// Upper bound of the ids, or 0 where the ids are far apart.
    pub(super) fn small(&self) -> usize {
        match self {
            EventIds::Only(_) => 1,
            EventIds::Dense(table) => table.len(),
            EventIds::Sparse(_) => 0,
        }
    }

    #[inline(always)]
    pub(super) fn find(&self, id: u64) -> Option<ClassId> {
        match self {
            EventIds::Only(class) => Some(*class),
            EventIds::Dense(table) => usize::try_from(id).ok().and_then(|id| table.get(id).copied().flatten()),
            EventIds::Sparse(map) => map.get(&id).copied(),
        }
    }
}
