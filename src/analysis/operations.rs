//! A timeline as operations: the system calls and user-space events of each thread, connected by wake-ups and packets,
//! so that patterns can be mined where nothing delimits executions.
//!
//! In: a [`Timeline`]. Out: the neutral [`Operations`] (ALGORITHMS.md 9.1). A wake-up is a message that the waker's
//! call sends and the woken thread's call receives. Waits for timers, disks and devices have no sender and count as the
//! call's own time. Pairs of user-space events and functions enclose calls, while operations enclose nothing: so each
//! of their ends is an operation without length, and the time between is a gap of its own. Cost: linear in calls and
//! segments, a look-up per wake-up, a sort of the user-space events.

use super::leaders::Leaders;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::names::{NameId, Names};
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::host::HostId;
use crate::event::operation::{Message, Operation, OperationKind, OperationPlace, Operations, Sequence};
use crate::model::carrier::Carrier;
use crate::model::thread::ThreadIdentity;
use crate::timeline::questions::Asker;
use crate::timeline::reader::RowCursor;
use crate::timeline::{MarkRow, Segment, SegmentKind, Thread, ThreadId, Timeline, Waker};
use foldhash::{HashMap, HashSet};

/// The threads that are streams: those with system calls or user-space events, except idle tasks and the tracer's own
/// threads. Those wait for the recorded threads, and no thread waits for them.
pub fn streams(timeline: &Timeline) -> impl Iterator<Item = ThreadId> {
    let reader = timeline.reader(Asker::Operations);
    let marked: HashSet<ThreadId> = reader.marks().filter_map(|m| m.thread).collect();
    let active = move |id: &ThreadId| !reader.calls(*id).is_empty() || marked.contains(id);
    let all = timeline.threads().iter().enumerate().map(|(i, t)| (ThreadId::at(i), t));
    let tracer = Tracer::new(timeline);
    all.filter(move |(id, t)| active(id) && !t.idle && !tracer.runs(timeline, t)).map(|(id, _)| id)
}

/// The tracer's threads: all of LTTng's daemons, and the listeners (`NAME-ust`) that it starts in traced programs.
struct Tracer(HashSet<(HostId, i32)>);

impl Tracer {
    fn new(timeline: &Timeline) -> Tracer {
        let daemon = |t: &&Thread| named(timeline, t).any(|name| name.starts_with("lttng-"));
        Tracer(timeline.threads().iter().filter(daemon).map(|t| (t.host, t.pid)).collect())
    }

    fn runs(&self, timeline: &Timeline, thread: &Thread) -> bool {
        let is_listener = || named(timeline, thread).any(|name| name.ends_with("-ust")) && thread.tid != thread.pid;
        self.0.contains(&(thread.host, thread.pid)) || is_listener()
    }
}

/// The names that a thread had.
fn named<'a>(timeline: &'a Timeline, thread: &'a Thread) -> impl Iterator<Item = &'a str> {
    thread.names.iter().map(|name| timeline.names().get(name.name))
}

/// A user-space event at which something began or ended.
struct UserEvent {
    thread: ThreadId,
    time: Timestamp,
    symbol: NameId,
}

/// The user-space events by thread and time. `named` gives the name of what a mark begins or ends.
fn user_events<'a>(
    timeline: &Timeline,
    named: impl Fn(MarkRow) -> Option<&'a str>,
    names: &mut Names,
) -> Vec<UserEvent> {
    let mut symbols: HashMap<(&str, bool), NameId> = HashMap::default();
    let event = |mark: MarkRow| {
        let (thread, name) = (mark.thread?, named(mark)?);
        let end = if mark.begins { "begin" } else { "end" };
        let symbol = symbols.entry((name, mark.begins)).or_insert_with(|| names.intern(&format!("{name} {end}")));
        Some(UserEvent { thread, time: mark.time, symbol: *symbol })
    };
    let mut all: Vec<UserEvent> = timeline.reader(Asker::Operations).marks().filter_map(event).collect();
    all.sort_by_key(|event| (event.thread, event.time));
    all
}

/// The operations of those threads; `named` gives the name of what each mark begins or ends.
pub fn of_recording<'a>(
    timeline: &Timeline,
    named: impl Fn(MarkRow) -> Option<&'a str>,
    ctx: &Ctx,
) -> Result<Operations, Cancelled> {
    let mut operations = Operations { one_clock: true, ..Operations::default() };
    let events = user_events(timeline, named, &mut operations.names);
    let leaders = Leaders::new(timeline);
    let reader = timeline.reader(Asker::Operations);
    let mut streams: Vec<Option<u32>> = vec![None; timeline.threads().len()];
    for id in self::streams(timeline) {
        ctx.cancel.check()?;
        let Some(stream) = streams.get_mut(id.index()) else { continue };
        *stream = Some(operations.sequences.len() as u32);
        let place = place(timeline, &leaders, id);
        let mut sequence = Sequence { stream: format!("{} {}", place.name, place.tid), ..Sequence::default() };
        sequence.thread = Some(place);
        let own = events.partition_point(|e| e.thread < id)..events.partition_point(|e| e.thread <= id);
        let own = events.get(own).unwrap_or(&[]);
        sequence.operations.reserve_exact(own.len() + reader.calls(id).len());
        let mut own = own.iter().peekable();
        let mut add = |symbol: NameId, kind: OperationKind, span: Span| {
            // Calls of one thread do not nest; where events were lost one may begin before another has ended.
            let start = sequence.operations.last().map_or(span.start, |o| o.end.max(span.start));
            sequence.operations.push(Operation { symbol, kind, start, end: span.end.max(start) });
        };
        let mut segments = reader.segments(id);
        for call in reader.calls(id).all() {
            while let Some(event) = own.next_if(|event| event.time <= call.span.start) {
                add(event.symbol, OperationKind::Work, Span::new(event.time, event.time));
            }
            let kind = if waited(&mut segments, call.span) * 2 > call.span.len() {
                OperationKind::Wait
            } else {
                OperationKind::Work
            };
            add(operations.names.intern(timeline.names().get(call.name)), kind, call.span);
        }
        own.for_each(|event| add(event.symbol, OperationKind::Work, Span::new(event.time, event.time)));
        operations.sequences.push(sequence);
    }
    for (at, to) in streams.iter().enumerate() {
        let Some(to) = *to else { continue };
        ctx.cancel.check()?;
        for segment in reader.segments(ThreadId::at(at)).all() {
            let carrier = match segment.kind {
                SegmentKind::Blocked => Carrier::Wakeup,
                SegmentKind::Network => Carrier::Packet,
                _ => continue,
            };
            let Some(Waker { thread: waker, at: sent }) = segment.waker else { continue };
            let from = stream_of(&streams, waker).and_then(|from| place_at(&operations, from, sent));
            let to = place_at(&operations, to, segment.span.end - 1);
            if let (Some(from), Some(to)) = (from, to) {
                operations.messages.push(Message { carrier, from, to, sent, received: segment.span.end });
            }
        }
    }
    for message in &operations.messages {
        let sequence = operations.sequences.get_mut(message.to.stream as usize);
        if let Some(operation) = sequence.and_then(|s| s.operations.get_mut(message.to.operation as usize)) {
            operation.kind = OperationKind::Receive;
        }
    }
    operations.messages.sort_by_key(|m| (m.to, m.received, m.from));
    Ok(operations)
}

/// The time for which a thread waited in `span`.
fn waited(segments: &mut RowCursor<'_, Segment>, span: Span) -> Ns {
    segments.within(span).filter(|e| e.kind.is_wait()).map(|e| e.span.clip(span).len()).sum()
}

/// The identity of a thread, as propagation paths show it.
pub fn place(timeline: &Timeline, leaders: &Leaders, id: ThreadId) -> ThreadIdentity {
    let Some(thread) = timeline.thread(id) else {
        return ThreadIdentity { pid: 0, tid: 0, name: "unknown".into(), process: "unknown".into() };
    };
    let leader = leaders.of(timeline, thread, thread.life.end);
    let last = |t: &Thread| t.names.last().map_or_else(String::new, |last| timeline.names().get(last.name).to_owned());
    ThreadIdentity { pid: thread.pid, tid: thread.tid, name: last(thread), process: last(leader) }
}

fn stream_of(streams: &[Option<u32>], thread: ThreadId) -> Option<u32> {
    *streams.get(thread.index())?
}

/// The last operation of a stream that had begun at `time`; a wake-up from an interrupt or from user code counts for
/// the call before it.
fn place_at(operations: &Operations, stream: u32, time: Timestamp) -> Option<OperationPlace> {
    let all = &operations.sequences.get(stream as usize)?.operations;
    let operation = all.partition_point(|o| o.start <= time).checked_sub(1)?;
    Some(OperationPlace { stream, operation: operation as u32 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::patterns::PatternAnalysis;
    use crate::base::ctx::Ctx;
    use crate::model::settings::Settings;
    use crate::timeline::{Call, Mark, Thread, ThreadDraft, ThreadName, ThreadRows, TimelineDraft};

    const MS: Ns = 1_000_000;

    /// A server that waits for its client, which computes, writes, reads; once it computes ten times as long.
    fn draft() -> TimelineDraft {
        let mut timeline = TimelineDraft::default();
        let [server, client, futex, write, read] =
            ["server", "client", "futex", "write", "read"].map(|n| timeline.tables.names.intern(n));
        let thread = |tid, name| {
            let mut thread = Thread::new(HostId::at(0), tid, Span::of_ns(0, 1_000 * MS));
            (thread.ppid, thread.names) = (1, vec![ThreadName { from: Timestamp::ZERO, name }]);
            ThreadDraft { thread, rows: ThreadRows::default() }
        };
        let (mut waits, mut works) = (thread(10, server), thread(11, client));
        let mut now = 0;
        for i in 0..50 {
            let begin = now;
            now += if i == 30 { 50 * MS } else { 5 * MS };
            let call = |name, start, end| Call { span: Span::of_ns(start, end), name, ret: Some(0), descriptor: None };
            let (woken, end) = (now + MS / 2, now + MS);
            works.rows.calls.push(call(write, now, now + MS));
            works.rows.calls.push(call(read, now + MS, now + 2 * MS));
            waits.rows.calls.push(call(futex, begin + MS / 10, end));
            let span = Span::of_ns(begin + MS / 5, woken);
            let waker = Some(Waker { thread: ThreadId::at(1), at: Timestamp::new(woken) });
            waits.rows.segments.push(Segment { span, kind: SegmentKind::Blocked, waker, qualifier: None, cpu: 0 });
            waits.rows.calls.push(call(read, end + MS / 10, end + MS / 5));
            now += 2 * MS;
        }
        timeline.threads = vec![waits, works];
        timeline
    }

    #[test]
    fn slow_wait_has_the_causing_thread_as_root_cause() {
        let operations = of_recording(&draft().seal(), |_| None, &Ctx::new(1)).unwrap();
        assert_eq!(operations.messages.len(), 50);
        let ctx = Ctx::new(1);
        let mined = PatternAnalysis::new(operations, &ctx).unwrap();
        assert!(mined.clocks.iter().all(|c| c.offset == 0 && c.error == Some(0)), "one clock for all");
        let lateness = mined.lateness(&Settings::default(), &ctx).unwrap();
        let hops: Vec<_> = lateness
            .spread
            .nodes
            .iter()
            .zip(&lateness.spread.causes)
            .filter_map(|(node, cause)| {
                let cause = (*cause)?;
                let source = &lateness.spread.nodes[cause.node as usize];
                let name = |stream: u32| mined.operations.sequences[stream as usize].stream.clone();
                Some((name(source.stream), source.excess / MS, name(node.stream), cause.carrier))
            })
            .collect();
        assert_eq!(hops, [("client 11".to_owned(), 45, "server 10".to_owned(), Carrier::Wakeup)]);
    }

    #[test]
    fn streams_leaves_out_the_tracer() {
        let mut timeline = draft();
        let [daemon, listener] = ["lttng-sessiond", "client-ust"].map(|n| timeline.tables.names.intern(n));
        timeline.threads[0].thread.names.push(ThreadName { from: Timestamp::ZERO, name: daemon });
        timeline.threads[1].thread.names.push(ThreadName { from: Timestamp::new(1), name: listener });
        assert_eq!(
            streams(&timeline.clone().seal()).collect::<Vec<_>>(),
            [ThreadId::at(1)],
            "a main thread may be called anything"
        );
        timeline.threads[1].thread.pid = 5;
        assert_eq!(streams(&timeline.seal()).count(), 0);
    }

    #[test]
    fn user_events_are_placed_between_calls() {
        let mut timeline = draft();
        let mark = |time, begins| Mark {
            time,
            task: 0,
            begins,
            thread: Some(ThreadId::at(1)),
            trace: 0,
            cpu: 0,
            key: None,
            kind: None,
            fields: Default::default(),
        };
        let first = timeline.threads[1].rows.calls[0].span;
        timeline.marks = vec![mark(first.start - 1, true), mark(first.end, false)];
        let operations = of_recording(&timeline.seal(), |_| Some("app:request"), &Ctx::new(1)).unwrap();
        let names: Vec<_> =
            operations.sequences[1].operations.iter().take(4).map(|o| operations.names.get(o.symbol)).collect();
        assert_eq!(names, ["app:request begin", "write", "app:request end", "read"]);
        let sorted = |o: &[Operation]| o.windows(2).all(|w| w[0].end <= w[1].start);
        assert!(operations.sequences.iter().all(|s| sorted(&s.operations)));
    }
}
