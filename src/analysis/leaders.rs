//! The first threads of processes: a process has the name of its first thread.
//!
//! In: a timeline. Out: for a thread and a time the first thread of its process. Cost: linear in threads; a look-up
//! for each query.

use crate::base::time::Timestamp;
use crate::event::host::HostId;
use crate::timeline::{Thread, ThreadId, Timeline};
use foldhash::HashMap;

/// The threads whose tid is the process id, by process.
#[derive(Clone, Debug, Default)]
pub struct Leaders(HashMap<(HostId, i32), Vec<ThreadId>>);

impl Leaders {
    /// The leaders of a timeline.
    pub fn new(timeline: &Timeline) -> Self {
        let mut leaders = Leaders::default();
        for (i, thread) in timeline.threads().iter().enumerate().filter(|(_, t)| t.tid == t.pid && !t.idle) {
            leaders.0.entry((thread.host, thread.pid)).or_default().push(ThreadId::at(i));
        }
        leaders
    }

    /// The first thread of the process that `thread` belongs to at `t`; `thread` itself where that is not known.
    pub fn of<'a>(&self, timeline: &'a Timeline, thread: &'a Thread, t: Timestamp) -> &'a Thread {
        let all = self.0.get(&(thread.host, thread.pid)).map_or(&[][..], |l| l);
        let mut known = all.iter().filter_map(|id| timeline.thread(*id));
        let lived = |l: &&Thread| l.life.start <= t && t <= l.life.end;
        known.clone().rfind(lived).or_else(|| known.next_back()).unwrap_or(thread)
    }
}
