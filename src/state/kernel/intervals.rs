//! The state history of a recording: what each thread, CPU and disk was at every instant, as attributes.
//!
//! | attribute | value |
//! |---|---|
//! | `threads/TID/state` | one of [`STATES`] |
//! | `threads/TID/call` | name of the system call it is in |
//! | `threads/TID/name` | its name |
//! | `threads/TID/cpu` | where it runs, or in whose run queue it stands |
//! | `cpus/N/thread` | tid of the thread that runs there; 0 is idle |
//! | `disks/MAJOR:MINOR/requests` | requests between their insertion and completion |
//!
//! With several hosts each path begins with `hosts/NAME/`. Intervals are derived from the sealed recording (status is
//! never stored while stepping, ALGORITHMS.md 3.1), in parallel over runs of threads; cost O(edges + calls). Unknown
//! time at the ends of a life is not stored. Where a thread took over the id of another by exec, the id is the older
//! one's until that ended: an attribute is one thing at a time.

use crate::base::names::Names;
use crate::base::time::{Ns, Span};
use crate::base::work::{Cancelled, Work, in_order};
use crate::state::history::builder::HistoryBuilder;
use crate::state::history::interval::{Run, Value};
use crate::state::recording::{EdgeKind, HostId, Recording, Thread};
use foldhash::HashMap;

/// Names of the values of `threads/TID/state`.
pub const STATES: &[&str] = &[
    "running",
    "interrupted",
    "preempted",
    "blocked",
    "timer",
    "disk",
    "network",
    "user input",
    "ipi",
    "device",
    "unknown",
];

fn code(kind: EdgeKind) -> Value {
    Value::Code(match kind {
        EdgeKind::Running => 0,
        EdgeKind::Interrupted => 1,
        EdgeKind::Preempted => 2,
        EdgeKind::Blocked => 3,
        EdgeKind::Timer => 4,
        EdgeKind::Disk => 5,
        EdgeKind::Network => 6,
        EdgeKind::UserInput => 7,
        EdgeKind::Ipi => 8,
        EdgeKind::Device => 9,
        EdgeKind::Unknown => 10,
    })
}

/// Threads of one piece of work.
const THREADS: usize = 256;

/// The attributes and intervals of a recording; seal the builder with [`Recording::span`].
pub fn history(recording: &Recording, work: &Work) -> Result<HistoryBuilder, Cancelled> {
    let hosts = prefixes(recording);
    let from = beginnings(recording);
    let mut whole = machines(recording, &hosts);
    let pieces = recording.threads.len().div_ceil(THREADS);
    let make = |piece: usize| {
        let mut builder = HistoryBuilder::new(STATES);
        let mut run = Run::default();
        let all = piece * THREADS..recording.threads.len().min((piece + 1) * THREADS);
        for at in all.filter(|at| !recording.threads[*at].idle) {
            let thread = &recording.threads[at];
            let host = hosts.get(thread.host.index()).map_or("", |h| h);
            let mut lines =
                Lines { builder: &mut builder, run: &mut run, path: format!("{host}threads/{}/", thread.tid) };
            lines.thread(&recording.names, thread, from[at]);
        }
        builder.push(run);
        builder
    };
    in_order(work, pieces, make, |_, builder| whole.append(builder))?;
    Ok(whole)
}

/// What the paths of each host begin with.
fn prefixes(recording: &Recording) -> Vec<String> {
    let name = |host: HostId| recording.names.get(recording.hosts[host.index()].name);
    let hosts = (0..recording.hosts.len()).map(HostId::at);
    let prefix = |host: HostId| {
        let twin = (0..host.index()).any(|other| name(HostId::at(other)) == name(host));
        // Two kernels of one name: the second is told apart by its number.
        if twin { format!("hosts/{}#{}/", name(host), host.0) } else { format!("hosts/{}/", name(host)) }
    };
    if recording.hosts.len() < 2 { vec![String::new()] } else { hosts.map(prefix).collect() }
}

/// For each thread from when on its id is its own.
fn beginnings(recording: &Recording) -> Vec<Ns> {
    let mut order: Vec<usize> = (0..recording.threads.len()).collect();
    let key = |at: &usize| (recording.threads[*at].host, recording.threads[*at].tid, recording.threads[*at].life);
    order.sort_by_key(key);
    let mut from: Vec<Ns> = recording.threads.iter().map(|t| t.life.start).collect();
    let mut taken: Option<(HostId, i32, Ns)> = None;
    for at in order {
        let thread = &recording.threads[at];
        let end = match taken {
            Some((host, tid, end)) if (host, tid) == (thread.host, thread.tid) => {
                from[at] = from[at].max(end);
                end.max(thread.life.end)
            }
            _ => thread.life.end,
        };
        taken = Some((thread.host, thread.tid, end));
    }
    from
}

/// Writes the attributes below one path.
struct Lines<'b> {
    builder: &'b mut HistoryBuilder,
    run: &'b mut Run,
    path: String,
}

impl Lines<'_> {
    /// The intervals of one attribute; neighbours of equal value are one.
    fn line(&mut self, name: &str, from: Ns, intervals: impl Iterator<Item = (Span, Value)>) {
        let attribute = self.builder.attributes.path(&format!("{}{name}", self.path));
        let mut open: Option<(Span, Value)> = None;
        for (span, value) in intervals {
            let span = Span::new(span.start.max(from), span.end);
            if span.is_empty() {
                continue;
            }
            match &mut open {
                Some((last, same)) if *same == value && last.end == span.start => last.end = span.end,
                _ => {
                    if let Some((last, value)) = open.replace((span, value)) {
                        self.run.push(attribute, last, value);
                    }
                }
            }
        }
        if let Some((last, value)) = open {
            self.run.push(attribute, last, value);
        }
    }

    fn thread(&mut self, names: &Names, thread: &Thread, from: Ns) {
        let unknown = |kind: EdgeKind| kind == EdgeKind::Unknown;
        let known = |at: &usize| !unknown(thread.edges[*at].kind);
        let first = (0..thread.edges.len()).find(known).unwrap_or(0);
        let after = (0..thread.edges.len()).rfind(known).map_or(0, |last| last + 1);
        let edges = thread.edges.get(first..after).unwrap_or(&[]);
        self.line("state", from, edges.iter().map(|e| (e.span, code(e.kind))));
        let on_cpu = |kind| matches!(kind, EdgeKind::Running | EdgeKind::Interrupted | EdgeKind::Preempted);
        let queued = edges.iter().filter(|e| on_cpu(e.kind));
        self.line("cpu", from, queued.map(|e| (e.span, Value::Int(i64::from(e.cpu)))));
        let text = |builder: &mut HistoryBuilder, name| Value::Text(builder.texts.intern(names.get(name)));
        let calls: Vec<_> = thread.calls.iter().map(|c| (c.span, text(self.builder, c.name))).collect();
        self.line("call", from, calls.into_iter());
        let ends = thread.names.iter().skip(1).map(|(t, _)| *t).chain([thread.life.end]);
        let held = thread.names.iter().zip(ends).map(|((t, name), end)| (Span::new(*t, end), *name));
        let held: Vec<_> = held.map(|(span, name)| (span, text(self.builder, name))).collect();
        self.line("name", from, held.into_iter());
    }
}

/// CPUs and disks.
fn machines(recording: &Recording, hosts: &[String]) -> HistoryBuilder {
    let mut builder = HistoryBuilder::new(STATES);
    let mut run = Run::default();
    let prefix = |host: HostId| hosts.get(host.index()).map_or("", |h| h);
    for ((host, number), runs) in &recording.cpus {
        let path = format!("{}cpus/{number}/", prefix(*host));
        let tid = |id| recording.thread(id).map_or(0, |t| i64::from(t.tid));
        let held = runs.iter().map(|r| (r.span, Value::Int(tid(r.thread))));
        Lines { builder: &mut builder, run: &mut run, path }.line("thread", Ns::MIN, held);
    }
    let mut steps: HashMap<(HostId, u32), Vec<(Ns, i64)>> = HashMap::default();
    let mut devices: Vec<(HostId, u32)> = Vec::new();
    for request in &recording.disk {
        let device = (request.host, request.device);
        let steps = steps.entry(device).or_insert_with(|| {
            devices.push(device);
            Vec::new()
        });
        steps.extend([(request.span.start, 1), (request.span.end, -1)]);
    }
    for device in devices {
        let mut steps = steps.remove(&device).unwrap_or_default();
        steps.sort_unstable();
        let path = format!("{}disks/{}:{}/", prefix(device.0), device.1 >> 20, device.1 & 0xf_ffff);
        let mut count = 0;
        let held = steps.windows(2).map(|w| {
            count += w[0].1;
            (Span::new(w[0].0, w[1].0), Value::Int(count))
        });
        Lines { builder: &mut builder, run: &mut run, path }.line("requests", Ns::MIN, held);
    }
    builder.push(run);
    builder
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::batch::{Batch, Request};
    use crate::event::kind::{Event, Kind, RequestStep, TextId, WhoId};
    use crate::state::history::History;
    use crate::state::history::lines::Time;
    use crate::state::history::tree::{Depth, Shape};
    use crate::state::kernel::{Generation, Handlers, Machine, Origin};

    fn sealed(kinds: impl Fn(&mut Batch) -> Vec<(Ns, Kind)>) -> History {
        let mut batch = Batch::default();
        let events = kinds(&mut batch);
        let event = |(time, kind)| Event { time, who: WhoId::NOBODY, trace: 0, cpu: 1, kind };
        batch.events = events.into_iter().map(event).collect();
        let origin = Origin { host: HostId(0), kernel: true, generation: Generation::New };
        let mut machine = Machine::new(vec![("h".to_owned(), None)], vec![origin], Handlers::built_in());
        machine.absorb(&batch);
        let (recording, _) = machine.close(Vec::new());
        let work = Work::new(2);
        let shape = Shape { node: 64, fanout: 4, depth: Depth::Variable };
        history(&recording, &work).unwrap().seal(recording.span, shape, &work).unwrap()
    }

    fn line(history: &History, path: &str) -> String {
        let lines = history.lines(path, &Time::Range(history.window()), &Default::default()).unwrap();
        let show = |v: Value| match history.show(v) {
            crate::state::history::Shown::Number(n) => n.to_string(),
            crate::state::history::Shown::Text(t) => t.to_owned(),
        };
        let held = lines[0]
            .held
            .iter()
            .map(|h| format!("{}..{} {}", h.span.start, h.span.end, h.value.map_or_else(|| "?".to_owned(), show)));
        held.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn a_thread_a_cpu_and_a_disk_over_time() {
        let history = sealed(|batch| {
            let (one, two, read) = (batch.text(b"one"), batch.text(b"two"), batch.text(b"read"));
            let request = batch.request(Request { device: 254 << 20 | 3, sector: 8, ..Request::default() });
            let switch = |prev, next, prev_state, prev_name, next_name| Kind::Switch {
                prev,
                next,
                prev_state,
                prev_name,
                next_name,
            };
            vec![
                (0, switch(0, 7, 0, TextId::NONE, one)),
                (3, Kind::CallEntry { name: read }),
                (4, Kind::Block { step: RequestStep::Issue, request }),
                (5, switch(7, 0, 1, two, TextId::NONE)),
                (8, Kind::Block { step: RequestStep::Complete, request }),
                (9, switch(0, 7, 0, TextId::NONE, two)),
                (10, Kind::CallExit { name: read, ret: 0 }),
                (12, switch(7, 0, 0, two, TextId::NONE)),
            ]
        });
        assert_eq!(line(&history, "threads/7/state"), "0..5 running, 5..9 blocked, 9..12 running");
        assert_eq!(line(&history, "threads/7/call"), "0..3 ?, 3..10 read, 10..12 ?");
        assert_eq!(line(&history, "threads/7/name"), "0..5 one, 5..12 two");
        assert_eq!(line(&history, "threads/7/cpu"), "0..5 1, 5..9 ?, 9..12 1");
        assert_eq!(line(&history, "cpus/1/thread"), "0..5 7, 5..9 0, 9..12 7");
        assert_eq!(line(&history, "disks/254:3/requests"), "0..4 ?, 4..8 1, 8..12 ?");
    }
}
