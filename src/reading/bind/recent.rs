//! The names and contexts that the records of a stream repeat, because few threads share a CPU.
//!
//! In: a name or a context with the id of its thread. Out: its id in the batch, without a look-up in the batch's tables
//! if a recent record had the same one. The thread's id chooses the entry; an entry counts only if all of it is equal,
//! so the result is that of the tables. Cost: one comparison, of 16 bytes as a rule.

use crate::event::kind::{TextId, ThreadContextId};
use crate::reading::batch::{Batch, ThreadContext};
use smallvec::SmallVec;

/// Entries; threads whose ids differ by a multiple share one.
const ENTRIES: usize = 16;

/// Names of threads have 16 bytes at most.
type Name = SmallVec<[u8; 16]>;

/// A context as it was recorded.
#[derive(Debug)]
struct Context {
    /// tid, pid, ppid, vtid and vpid.
    ids: [Option<i64>; 5],
    name: Name,
    /// Its id in the batch.
    who: ThreadContextId,
}

/// The recent names and contexts of one stream, with their ids in one batch.
#[derive(Debug, Default)]
pub(super) struct Recent {
    names: [Option<(Name, TextId)>; ENTRIES],
    contexts: [Option<Context>; ENTRIES],
}

fn entry(id: i64) -> usize {
    id as usize % ENTRIES
}

impl Recent {
    /// The id of a name; `thread` chooses the entry to compare first.
    pub fn name(&mut self, thread: i32, name: &[u8], batch: &mut Batch) -> TextId {
        let known = &mut self.names[entry(thread.into())];
        match known {
            Some((before, id)) if before.as_slice() == name => *id,
            _ => {
                let id = batch.text(name);
                *known = Some((Name::from_slice(name), id));
                id
            }
        }
    }

    /// The id of a context.
    pub fn context(&mut self, ids: [Option<i64>; 5], name: &[u8], batch: &mut Batch) -> ThreadContextId {
        let at = entry(ids[0].unwrap_or(0));
        if let Some(known) = &self.contexts[at]
            && known.ids == ids
            && known.name.as_slice() == name
        {
            return known.who;
        }
        // Some tracers record no id for a thread that has ended while it still runs.
        let id = |i: usize| ids[i].and_then(|v| i32::try_from(v).ok()).filter(|v| *v >= 0);
        let text = (!name.is_empty()).then(|| self.name(id(0).unwrap_or(0), name, batch));
        let identity = ThreadContext { tid: id(0), pid: id(1), ppid: id(2), vtid: id(3), vpid: id(4), name: text };
        let who =
            if identity == ThreadContext::default() { ThreadContextId::ABSENT } else { batch.context_id(identity) };
        self.contexts[at] = Some(Context { ids, name: Name::from_slice(name), who });
        who
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_entries_count_only_where_all_is_equal() {
        let (mut recent, mut batch) = (Recent::default(), Batch::default());
        let ids = |tid: i64, pid: i64| [Some(tid), Some(pid), None, None, None];
        // 3 and 19 share an entry; a name may change, and with it the context.
        for (tid, pid, name) in [(3, 3, "sh"), (19, 3, "sh"), (3, 3, "sh"), (3, 3, "ls"), (3, 4, "ls"), (3, 3, "sh")] {
            let who = recent.context(ids(tid, pid), name.as_bytes(), &mut batch);
            let found = *batch.context(who).unwrap();
            assert_eq!((found.tid, found.pid), (Some(tid as i32), Some(pid as i32)));
            assert_eq!(batch.text_of(found.name.unwrap()), Some(name));
            assert_eq!(recent.name(tid as i32, name.as_bytes(), &mut batch), found.name.unwrap());
        }
        assert_eq!((batch.contexts(), batch.texts()), (4, 2));
        assert_eq!(recent.context([None; 5], b"", &mut batch), ThreadContextId::ABSENT);
    }
}
