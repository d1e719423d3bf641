//! The attributes of a recording: paths of every thread and CPU, and the rows that they name.
//!
//! In: a sealed [`Timeline`]. Out: an [`AttributeTable`] with these attributes (below `hosts/NAME/` where there are
//! several hosts):
//!
//! | path | value |
//! |---|---|
//! | `threads/TID/state` | one of [`STATES`] |
//! | `threads/TID/cpu` | the CPU on which it ran, or in whose run queue it was |
//! | `threads/TID/syscall` | its current system call |
//! | `threads/TID/name`, `/pid`, `/ppid` | as the kernel named them |
//! | `cpus/N/thread` | the tid of its running thread, 0 when idle |
//!
//! Of an MPI run `threads/NAME/state` and `threads/NAME/region`, its innermost region; NAME is `rank 3`, or what else
//! the rank or its thread is called.
//!
//! Instances of one tid share their attributes. Attributes are numbered in the order of their paths. Cost: a sort of
//! the threads, and their names.

use super::StateValue;
use crate::base::time::Timestamp;
use crate::event::host::HostId;
use crate::timeline::attributes::{AttributeId, Attributes};
use crate::timeline::{SegmentKind, Thread, ThreadId, Timeline};
use std::fmt::Write;
use std::ops::Range;

/// Names of the states of a thread.
pub const STATES: &[&str] = SegmentKind::NAMES;

/// The state of a segment; `None` where it is unknown.
pub(super) fn state(kind: SegmentKind) -> Option<StateValue> {
    code(kind).map(StateValue::Code)
}

/// The position of the state of a segment in [`STATES`]; `None` where it is unknown.
pub(super) fn code(kind: SegmentKind) -> Option<u16> {
    (kind != SegmentKind::Unknown).then_some(kind as u16)
}

/// A property of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadLine {
    State,
    Cpu,
    /// Its system call, or the region of a rank.
    Syscall,
    Name,
    Pid,
    Ppid,
}

/// The properties of a thread with the last component of their paths, in the order of these.
const THREAD_LINES: [(&str, ThreadLine); 6] = [
    ("cpu", ThreadLine::Cpu),
    ("name", ThreadLine::Name),
    ("pid", ThreadLine::Pid),
    ("ppid", ThreadLine::Ppid),
    ("state", ThreadLine::State),
    ("syscall", ThreadLine::Syscall),
];

/// Those of a rank of an MPI run, or of a thread of one.
const RANK_LINES: [(&str, ThreadLine); 2] = [("region", ThreadLine::Syscall), ("state", ThreadLine::State)];

/// The rows of an attribute.
#[derive(Clone, Debug)]
pub(super) enum NamedLine {
    /// Of no attribute: it has others below it.
    None,
    /// Of some threads of [`AttributeTable::threads`], which had one tid.
    Threads(ThreadLine, Range<u32>),
    Cpu(HostId, u32),
}

/// The attributes of a timeline.
#[derive(Clone, Debug, Default)]
pub(super) struct AttributeTable {
    pub attributes: Attributes,
    /// By attribute.
    lines: Vec<NamedLine>,
    /// By host and tid, those of one tid by id.
    threads: Vec<ThreadId>,
}

impl AttributeTable {
    /// The attributes of the CPUs, and of the threads that live before a moment.
    pub fn new(timeline: &Timeline, until: Timestamp) -> AttributeTable {
        let known = timeline.threads_by_id().filter(|(_, of)| !of.idle && of.life.start < until);
        let mut threads: Vec<(ThreadId, &Thread)> = known.collect();
        threads.sort_by_key(|(_, thread)| (thread.host, thread.tid));
        let mut table =
            AttributeTable { threads: threads.iter().map(|(id, _)| *id).collect(), ..AttributeTable::default() };
        let prefixes = prefixes(timeline);
        let prefix = |host: HostId| prefixes.get(host.index()).map_or("", |prefix| prefix);
        let mut hosts: Vec<HostId> = timeline.cpus().map(|(host, _)| host).collect();
        hosts.extend(threads.chunk_by(|a, b| a.1.host == b.1.host).filter_map(|same| Some(same.first()?.1.host)));
        hosts.sort_unstable();
        hosts.dedup();
        hosts.sort_by_key(|host| prefix(*host));
        table.attributes.reserve(7 * threads.len() + 2 * timeline.cpus().len());
        for host in hosts {
            for (_, cpu) in timeline.cpus().filter(|(of, _)| *of == host) {
                let above = table.attributes.path(&format!("{}cpus", prefix(host)));
                let at = table.numbered(above, cpu.into());
                let attribute = table.attributes.child(at, "thread");
                table.name(attribute, NamedLine::Cpu(host, cpu));
            }
            let from = threads.partition_point(|(_, thread)| thread.host < host);
            let own = threads.iter().skip(from).take_while(|(_, thread)| thread.host == host).count();
            if own > 0 {
                let above = table.attributes.path(&format!("{}threads", prefix(host)));
                table.add_threads(timeline, above, &threads, from..from + own);
            }
        }
        table.lines.resize(table.attributes.len(), NamedLine::None);
        table
    }

    /// Add the attributes of the threads of a host, which are a part of all threads.
    fn add_threads(
        &mut self,
        timeline: &Timeline,
        above: AttributeId,
        threads: &[(ThreadId, &Thread)],
        own: Range<usize>,
    ) {
        let lines: &[(&str, ThreadLine)] = if timeline.is_of_ranks() { &RANK_LINES } else { &THREAD_LINES };
        let names: Vec<_> = lines.iter().map(|(name, line)| (self.attributes.name(name), *line)).collect();
        let mut from = own.start as u32;
        for same in threads.get(own).unwrap_or(&[]).chunk_by(|a, b| a.1.tid == b.1.tid) {
            let until = from + same.len() as u32;
            let first = same.first().map(|(_, thread)| *thread);
            let rank = first.filter(|_| timeline.is_of_ranks()).and_then(|thread| thread.names.first());
            let at = match rank {
                Some(rank) => self.attributes.child(above, timeline.names().get(rank.name)),
                None => self.numbered(above, first.map_or(0, |thread| thread.tid.into())),
            };
            for (name, line) in &names {
                let attribute = self.attributes.named(at, *name);
                self.name(attribute, NamedLine::Threads(*line, from..until));
            }
            from = until;
        }
    }

    /// The attribute below another that is named by a number.
    fn numbered(&mut self, above: AttributeId, number: i64) -> AttributeId {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = write!(text, "{number}");
        self.attributes.child(above, &text)
    }

    fn name(&mut self, attribute: AttributeId, line: NamedLine) {
        self.lines.resize((attribute.index() + 1).max(self.lines.len()), NamedLine::None);
        if let Some(place) = self.lines.get_mut(attribute.index()) {
            *place = line;
        }
    }

    /// The rows of an attribute.
    pub fn line(&self, attribute: AttributeId) -> &NamedLine {
        self.lines.get(attribute.index()).unwrap_or(&NamedLine::None)
    }

    /// The threads of a line.
    pub fn threads(&self, threads: &Range<u32>) -> &[ThreadId] {
        self.threads.get(threads.start as usize..threads.end as usize).unwrap_or(&[])
    }
}

/// The first components of the paths of each host: none where there is one host, else its name, made unique by a
/// number.
fn prefixes(timeline: &Timeline) -> Vec<String> {
    let hosts = timeline.hosts();
    if hosts.len() < 2 {
        return vec![String::new(); hosts.len()];
    }
    let mut prefixes: Vec<String> = Vec::with_capacity(hosts.len());
    for host in hosts {
        let name = format!("hosts/{}", timeline.names().get(host.name));
        let taken = |prefix: &String| prefixes.contains(prefix);
        let first = format!("{name}/");
        let others = (2..).map(|n| format!("{name}~{n}/"));
        prefixes.extend(std::iter::once(first).chain(others).find(|prefix| !taken(prefix)));
    }
    prefixes
}
