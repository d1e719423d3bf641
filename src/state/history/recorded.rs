//! The history of a kernel recording: every thread and CPU as lines that can be asked for.
//!
//! In: a sealed [`Recording`]. Out: a [`History`] with these attributes (below `hosts/NAME/` where there are several hosts):
//!
//! | path | value |
//! |---|---|
//! | `threads/TID/state` | one of [`STATES`] |
//! | `threads/TID/cpu` | the CPU it ran on, or whose queue it stood in |
//! | `threads/TID/syscall` | the system call it was in |
//! | `threads/TID/name`, `/pid`, `/ppid` | as the kernel named them |
//! | `cpus/N/thread` | the tid that ran on it, 0 when idle |
//!
//! Threads that had the same tid one after the other share their lines. Traces contradict themselves: where two things
//! are said of one instant, what began later holds, so lines never overlap. Neighbours of equal value become one
//! interval. Cost: linear in edges, calls and switches, in parallel by thread.

use super::History;
use super::builder::HistoryBuilder;
use super::bulk::BuildError;
use super::interval::{Run, Value};
use super::tree::Shape;
use crate::base::time::{Ns, Span};
use crate::base::work::{Work, in_order};
use crate::state::attributes::AttributeId;
use crate::state::recording::{EdgeKind, Recording, Thread};

/// Names of the states of a thread.
pub const STATES: &[&str] =
    &["running", "interrupted", "preempted", "blocked", "timer", "disk", "network", "user input", "ipi", "device"];

/// The state of an edge; `None` where it is unknown.
fn state(kind: EdgeKind) -> Option<Value> {
    let code = match kind {
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
        EdgeKind::Unknown => return None,
    };
    Some(Value::Code(code))
}

/// The attributes of the threads of one tid, and those threads.
struct Lines<'a> {
    threads: Vec<&'a Thread>,
    state: AttributeId,
    cpu: AttributeId,
    syscall: AttributeId,
    name: AttributeId,
    pid: AttributeId,
    ppid: AttributeId,
}

/// Threads that a worker takes at a time.
const STRETCH: usize = 256;

impl History {
    /// The history of `recording`.
    pub fn of_recording(recording: &Recording, work: &Work) -> Result<History, BuildError> {
        let mut builder = HistoryBuilder::new(STATES);
        builder.texts = recording.names.clone();
        let prefixes = prefixes(recording);
        let prefix = |host: usize| prefixes.get(host).map_or("", |prefix| prefix);
        let mut threads: Vec<&Thread> = recording.threads.iter().filter(|thread| !thread.idle).collect();
        threads.sort_by_key(|thread| (thread.host, thread.tid));
        let mut lines = Vec::new();
        for same in threads.chunk_by(|a, b| (a.host, a.tid) == (b.host, b.tid)) {
            let Some(first) = same.first() else { continue };
            let at = builder.attributes.path(&format!("{}threads/{}", prefix(first.host.index()), first.tid));
            let mut child = |name| builder.attributes.child(at, name);
            lines.push(Lines {
                threads: same.to_vec(),
                state: child("state"),
                cpu: child("cpu"),
                syscall: child("syscall"),
                name: child("name"),
                pid: child("pid"),
                ppid: child("ppid"),
            });
        }
        let stretches: Vec<&[Lines<'_>]> = lines.chunks(STRETCH).collect();
        let make = |i: usize| {
            let mut run = Run::default();
            stretches[i].iter().for_each(|lines| lines.write(&mut run));
            run
        };
        in_order(work, stretches.len(), make, |_, run| builder.push(run))?;
        let mut run = Run::default();
        for ((host, cpu), runs) in &recording.cpus {
            let attribute = builder.attributes.path(&format!("{}cpus/{cpu}/thread", prefix(host.index())));
            let tid = |id| recording.thread(id).map_or(0, |thread| i64::from(thread.tid));
            hold(&mut run, attribute, runs.iter().map(|run| (run.span, Some(Value::Int(tid(run.thread))))));
        }
        builder.push(run);
        builder.seal(recording.span, Shape::default(), work)
    }
}

/// What paths of each host begin with: nothing where there is one, else its name, made different where it is not.
fn prefixes(recording: &Recording) -> Vec<String> {
    if recording.hosts.len() < 2 {
        return vec![String::new(); recording.hosts.len()];
    }
    let mut prefixes: Vec<String> = Vec::with_capacity(recording.hosts.len());
    for host in &recording.hosts {
        let name = format!("hosts/{}", recording.names.get(host.name));
        let taken = |prefix: &String| prefixes.contains(prefix);
        let first = format!("{name}/");
        let others = (2..).map(|n| format!("{name}~{n}/"));
        prefixes.extend(std::iter::once(first).chain(others).find(|prefix| !taken(prefix)));
    }
    prefixes
}

impl Lines<'_> {
    fn write(&self, run: &mut Run) {
        let edges = || self.threads.iter().flat_map(|thread| &thread.edges);
        let calls = self.threads.iter().flat_map(|thread| &thread.calls);
        let lives = || self.threads.iter().map(|thread| (thread, thread.life));
        let names = self.threads.iter().flat_map(|thread| {
            let ends = thread.names.iter().skip(1).map(|(from, _)| *from).chain([thread.life.end]);
            thread.names.iter().zip(ends).map(|((from, name), end)| (Span::new(*from, end), Some(Value::Text(*name))))
        });
        let known = |id: i32| (id != 0).then_some(Value::Int(id.into()));
        hold(run, self.state, edges().map(|edge| (edge.span, state(edge.kind))));
        hold(run, self.cpu, edges().map(|edge| (edge.span, Some(Value::Int(edge.cpu.into())))));
        hold(run, self.syscall, calls.map(|call| (call.span, Some(Value::Text(call.name)))));
        hold(run, self.name, names);
        hold(run, self.pid, lives().map(|(thread, life)| (life, known(thread.pid))));
        hold(run, self.ppid, lives().map(|(thread, life)| (life, known(thread.ppid))));
    }
}

/// Write one line. Of two that overlap the later cuts the earlier off; neighbours of equal value become one.
fn hold(run: &mut Run, attribute: AttributeId, said: impl Iterator<Item = (Span, Option<Value>)>) {
    let mut said: Vec<(Span, Option<Value>)> = said.filter(|(span, _)| !span.is_empty()).collect();
    said.sort_by_key(|(span, _)| span.start);
    let mut open: Option<(Span, Option<Value>)> = None;
    let mut write = |(span, value): (Span, Option<Value>), until: Ns| {
        if let Some(value) = value {
            run.push(attribute, Span::new(span.start, span.end.min(until)), value);
        }
    };
    for (span, value) in said {
        match &mut open {
            Some((before, same)) if *same == value && before.end >= span.start => before.end = before.end.max(span.end),
            _ => {
                if let Some(before) = open.replace((span, value)) {
                    write(before, span.start);
                }
            }
        }
    }
    if let Some(last) = open {
        write(last, Ns::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_no_overlap_and_no_two_neighbours_alike() {
        let said = [
            (Span::new(0, 10), Some(Value::Int(1))),
            (Span::new(10, 20), Some(Value::Int(1))),
            (Span::new(15, 30), Some(Value::Int(2))),
            (Span::new(30, 30), Some(Value::Int(9))),
            (Span::new(30, 40), None),
            (Span::new(35, 50), Some(Value::Int(2))),
            (Span::new(60, 70), Some(Value::Int(2))),
        ];
        let mut run = Run::default();
        hold(&mut run, AttributeId(0), said.into_iter());
        let written: Vec<_> = run.iter().map(|i| (i.span.start, i.span.end, i.value)).collect();
        let two = Value::Int(2);
        assert_eq!(written, [(0, 15, Value::Int(1)), (15, 30, two), (35, 50, two), (60, 70, two)]);
    }
}
