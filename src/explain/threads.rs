//! Threads of the model: one for each thread and program that it runs.

use crate::analysis::leaders::Leaders;
use crate::base::names::{NameId, Names};
use crate::base::time::Timestamp;
use crate::model::{ThreadInfo, ThreadInfoId};
use crate::timeline::{ThreadId, Timeline};
use foldhash::HashMap;

/// Threads of the model, made on first sight.
pub(super) struct ModelThreads<'a> {
    timeline: &'a Timeline,
    leaders: &'a Leaders,
    ids: HashMap<(ThreadId, Option<NameId>), ThreadInfoId>,
}

impl<'a> ModelThreads<'a> {
    pub(super) fn new(timeline: &'a Timeline, leaders: &'a Leaders) -> Self {
        ModelThreads { timeline, leaders, ids: HashMap::default() }
    }

    /// The model's thread; its names are those at `t`, with their numbers. One that runs several programs is several.
    pub(super) fn id(
        &mut self,
        thread: ThreadId,
        t: Timestamp,
        all: &mut Vec<ThreadInfo>,
        names: &mut Names,
    ) -> ThreadInfoId {
        let known = self.timeline.thread(thread);
        let key = (thread, known.and_then(|known| self.leaders.of(self.timeline, known, t).name_at(t)));
        if let Some(known) = self.ids.get(&key) {
            return *known;
        }
        let id = ThreadInfoId::at(all.len());
        all.push(self.describe(thread, t, names));
        self.ids.insert(key, id);
        id
    }

    fn describe(&self, id: ThreadId, t: Timestamp, names: &mut Names) -> ThreadInfo {
        let Some(thread) = self.timeline.thread(id) else {
            let unknown = names.intern("unknown");
            return ThreadInfo { host: unknown, process: unknown, pid: 0, tid: 0, thread: unknown };
        };
        let mut name = |id: Option<NameId>| names.intern(id.map_or("unknown", |id| self.timeline.names().get(id)));
        let host = name(self.timeline.hosts().get(thread.host.index()).map(|h| h.name));
        let process = name(self.leaders.of(self.timeline, thread, t).name_at(t));
        ThreadInfo { host, process, pid: thread.pid, tid: thread.tid, thread: name(thread.name_at(t)) }
    }
}
